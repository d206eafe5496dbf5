/* indexes.c - rows that tables have lost, out of their indexes. Only walked when something is damaged.
 *
 * An index holds the indexed columns and the key of the table's row. embeddings has one over (segment_id, embedding_id), which
 * is all of it but the position; embedding_metadata has one over (id, key) and one for each kind of value but booleans,
 * over (key, value). So for a lost row, the first tells whose it was and the others what it said.
 */
#include "tables.h"

#include <stdlib.h>

void lode__chroma_index_found(lode__chroma *c, lode_str name, int64_t root) {
  static const char *const names[LODE__I_COUNT] = {
      [LODE__I_ROWS] = "sqlite_autoindex_embeddings_1",
      [LODE__I_META] = "sqlite_autoindex_embedding_metadata_1",
      [LODE__I_META_STRING] = "embedding_metadata_string_value",
      [LODE__I_META_INT] = "embedding_metadata_int_value",
      [LODE__I_META_REAL] = "embedding_metadata_float_value",
      [LODE__I_ARRAY] = "embedding_metadata_array_id_key",
      [LODE__I_ARRAY_STRING] = "embedding_metadata_array_key_string",
      [LODE__I_ARRAY_INT] = "embedding_metadata_array_key_int",
      [LODE__I_ARRAY_REAL] = "embedding_metadata_array_key_float",
      [LODE__I_COLL_ID] = "sqlite_autoindex_collections_1",
      [LODE__I_COLL_NAME] = "sqlite_autoindex_collections_2",
  };
  for (int i = 0; i < LODE__I_COUNT; i++)
    if (str_eq(name, str_of(names[i])) && root > 0 && root <= UINT32_MAX) c->indexes[i] = (uint32_t)root;
}

/* ---- Rows of embeddings ---- */

static bool has_key(const lode__chroma_keys *k, int64_t key) {
  return k->n && bsearch(&key, k->items, k->n, sizeof *k->items, sort_cmp_i64) != NULL;
}

typedef struct reading {
  lode__chroma *c;
  lode__chroma_keys known;  /* keys of rows that the table still has */
  lode__meta_kind kind;
  bool array;
} reading;

static lode_status lost_row(void *ctx, const sqf_row *row, lode_error *err) {
  reading *r = ctx;
  lode__chroma *c = r->c;
  const sqf_value *v = row->values;
  if (row->n != 3 || v[0].type != SQF_TEXT || v[1].type != SQF_TEXT || v[2].type != SQF_INT || v[1].s.len == 0) return LODE_OK;
  if (has_key(&r->known, v[2].i)) return LODE_OK;
  if (!mem_grow(&c->rows, &c->cap_rows, c->n_rows + 1, sizeof *c->rows)) return err_nomem(err);
  lode__chroma_row *it = &c->rows[c->n_rows];
  *it = (lode__chroma_row){.key = v[2].i, .seq = -1, .stray = true};
  TRY(lode__chroma_intern(c, v[0].s, &it->segment, err));
  it->id = (lode_str){mem_arena_copy(&c->arena, v[1].s.data, v[1].s.len), v[1].s.len};
  if (!it->id.data) return err_nomem(err);
  c->index_rows++;
  c->n_rows += it->segment != LODE__NO_NAME;
  return LODE_OK;
}

static lode_status lost_rows(lode__chroma *c, lode_error *err) {
  reading r = {.c = c};
  lode_status st = LODE_OK;
  if (!c->indexes[LODE__I_ROWS]) return LODE_OK;
  if (!mem_grow(&r.known.items, &r.known.cap, c->n_rows + 1, sizeof *r.known.items)) return err_nomem(err);
  for (size_t i = 0; i < c->n_rows; i++) r.known.items[r.known.n++] = c->rows[i].key;
  if (r.known.n > 1) qsort(r.known.items, r.known.n, sizeof *r.known.items, sort_cmp_i64);
  st = sqf_walk_index(c->file, c->indexes[LODE__I_ROWS], lost_row, &r, err);
  mem_free(r.known.items);
  return st;
}

/* ---- Values ---- */

static lode_status lost_owner(void *ctx, const sqf_row *row, lode_error *err) {
  reading *r = ctx;
  lode__chroma_owners *o = &r->c->parts->owners[r->array];
  const sqf_value *v = row->values;
  if (row->n != 3 || v[0].type != SQF_INT || v[1].type != SQF_TEXT || v[2].type != SQF_INT) return LODE_OK;
  if (has_key(&r->c->parts->met[r->array], v[2].i)) return LODE_OK;
  if (!mem_grow(&o->items, &o->cap, o->n + 1, sizeof *o->items)) return err_nomem(err);
  o->items[o->n++] = (lode__chroma_owner){v[2].i, v[0].i, row->place, false};
  return LODE_OK;
}

static int compare_owners(const void *a, const void *b) {
  const lode__chroma_owner *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

static lode__chroma_owner *owner_of(lode__chroma *c, bool array, int64_t key) {
  lode__chroma_owner wanted = {.key = key};
  lode__chroma_owners *o = &c->parts->owners[array];
  return o->n ? bsearch(&wanted, o->items, o->n, sizeof *o->items, compare_owners) : NULL;
}

static lode_status lost_owners(lode__chroma *c, bool array, lode_error *err) {
  reading r = {.c = c, .array = array};
  lode__chroma_owners *o = &c->parts->owners[array];
  lode__chroma_keys *met = &c->parts->met[array];
  uint32_t root = c->indexes[array ? LODE__I_ARRAY : LODE__I_META];
  sqf_info before, after;
  if (!root) return LODE_OK;
  if (met->n > 1) qsort(met->items, met->n, sizeof *met->items, sort_cmp_i64);
  sqf_get_info(c->file, &before);
  TRY(sqf_walk_index(c->file, root, lost_owner, &r, err));
  sqf_get_info(c->file, &after);
  o->sound = before.damaged_pages == after.damaged_pages && before.damaged_rows == after.damaged_rows;
  if (o->n > 1) qsort(o->items, o->n, sizeof *o->items, compare_owners);
  return LODE_OK;
}

bool lode__chroma_index_knows(lode__chroma *c, int64_t row, int64_t id, bool *array) {
  const lode__chroma_parts *p = c->parts;
  for (int i = 0; i < 2; i++) {
    lode__chroma_owner *o = owner_of(c, i, row);
    if (!o || o->id != id) continue;
    o->told = true;
    *array = i;
    return true;
  }
  /* without sound indexes, whatever looks like a row is taken */
  return !p->owners[0].sound || (c->tables[LODE__T_ARRAYS].root && !p->owners[1].sound);
}

static lode_status lost_value(void *ctx, const sqf_row *row, lode_error *err) {
  reading *r = ctx;
  const sqf_value *v = row->values;
  if (row->n != 3 || v[0].type != SQF_TEXT || v[2].type != SQF_INT) return LODE_OK;
  lode__chroma_owner *o = owner_of(r->c, r->array, v[2].i);
  if (!o || o->told) return LODE_OK;
  o->told = true;
  r->c->index_rows++;
  return lode__chroma_add_meta(r->c, o->id, v[2].i, row->place, r->kind, r->array, err);
}

lode_status lode__chroma_index_values(lode__chroma *c, lode_error *err) {
  static const lode__meta_kind kinds[] = {LODE__META_STRING, LODE__META_INT, LODE__META_REAL};
  for (int array = 0; array < 2; array++) {
    const lode__chroma_owners *o = &c->parts->owners[array];
    reading r = {.c = c, .array = array};
    for (int i = 0; i < 3 && o->n; i++) {
      uint32_t root = c->indexes[(array ? LODE__I_ARRAY : LODE__I_META) + 1 + i];
      r.kind = kinds[i];
      if (root) TRY(sqf_walk_index(c->file, root, lost_value, &r, err));
    }
    for (size_t i = 0; i < o->n; i++) /* booleans have no index */
      if (!o->items[i].told)
        TRY(lode__chroma_add_meta(c, o->items[i].id, o->items[i].key, o->items[i].place, LODE__META_GONE, array, err));
  }
  return LODE_OK;
}

/* ---- Names of collections: (id, key) and (name, database, key) ---- */

static lode_status lost_collection(void *ctx, const sqf_row *row, lode_error *err) {
  lode__chroma *c = ctx;
  lode__chroma_parts *p = c->parts;
  const sqf_value *v = row->values;
  bool by_id = row->n == 2;
  if ((row->n != 2 && row->n != 3) || v[0].type != SQF_TEXT || v[row->n - 1].type != SQF_INT) return LODE_OK;
  int64_t key = v[row->n - 1].i;
  lode__chroma_collection *it = NULL;
  for (size_t i = 0; i < p->n_collections && !it; i++)
    if (p->collections[i].key == key) it = &p->collections[i];
  if (!it) {
    if (!mem_grow(&p->collections, &p->cap_collections, p->n_collections + 1, sizeof *p->collections)) return err_nomem(err);
    it = &p->collections[p->n_collections++];
    *it = (lode__chroma_collection){.key = key, .id = LODE__NO_NAME, .stray = true};
  }
  if (!it->stray) return LODE_OK;
  if (by_id) return lode__chroma_intern(c, v[0].s, &it->id, err);
  it->name = (lode_str){mem_arena_copy(&c->arena, v[0].s.data, v[0].s.len), v[0].s.len};
  if (v[1].type == SQF_TEXT) it->database = (lode_str){mem_arena_copy(&c->arena, v[1].s.data, v[1].s.len), v[1].s.len};
  return it->name.data ? LODE_OK : err_nomem(err);
}

lode_status lode__chroma_indexes(lode__chroma *c, lode_error *err) {
  for (int i = LODE__I_COLL_ID; i <= LODE__I_COLL_NAME; i++)
    if (c->indexes[i]) TRY(sqf_walk_index(c->file, c->indexes[i], lost_collection, c, err));
  TRY(lost_rows(c, err));
  TRY(lost_owners(c, false, err));
  return lost_owners(c, true, err);
}

void lode__chroma_index_value(const lode__chroma_meta *m, sqf_row *row, lode__chroma_value *out) {
  if (m->kind == LODE__META_GONE) {
    out->gone = true;
    if (row->n == 3 && row->values[1].type == SQF_TEXT) out->key = row->values[1].s;
    return;
  }
  if (row->n != 3 || row->values[0].type != SQF_TEXT) return;
  sqf_value *v = &row->values[1];
  if (m->kind == LODE__META_REAL && v->type == SQF_INT) *v = (sqf_value){.type = SQF_REAL, .d = (double)v->i};
  out->key = row->values[0].s;
  if (v->type != SQF_NULL) out->value = v;
}
