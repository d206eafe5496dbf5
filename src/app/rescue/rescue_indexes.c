/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_indexes.c - recovers rows that tables have lost from their indexes. Used only when something is damaged.
 *
 * An index has the indexed columns and the key of the table's row. embeddings has an index on (segment_id,
 * embedding_id), which is everything but the log position. embedding_metadata has one on (id, key), and one for each
 * type of value except booleans, on (key, value). So for a lost row, the first gives its owner and the others its
 * value.
 */
#include "rescue/chroma_tables.h"

#include <stdlib.h>

void rescue_set_index_root(rescue_dir *c, lode_str name, int64_t root) {
  static const char *const names[RESCUE_INDEX_COUNT] = {
      [RESCUE_INDEX_ROWS] = "sqlite_autoindex_embeddings_1",
      [RESCUE_INDEX_META] = "sqlite_autoindex_embedding_metadata_1",
      [RESCUE_INDEX_META_STRING] = "embedding_metadata_string_value",
      [RESCUE_INDEX_META_INT] = "embedding_metadata_int_value",
      [RESCUE_INDEX_META_REAL] = "embedding_metadata_float_value",
      [RESCUE_INDEX_ARRAY] = "embedding_metadata_array_id_key",
      [RESCUE_INDEX_ARRAY_STRING] = "embedding_metadata_array_key_string",
      [RESCUE_INDEX_ARRAY_INT] = "embedding_metadata_array_key_int",
      [RESCUE_INDEX_ARRAY_REAL] = "embedding_metadata_array_key_float",
      [RESCUE_INDEX_COLL_ID] = "sqlite_autoindex_collections_1",
      [RESCUE_INDEX_COLL_NAME] = "sqlite_autoindex_collections_2",
  };
  for (int i = 0; i < RESCUE_INDEX_COUNT; i++)
    if (str_eq(name, str_of(names[i])) && root > 0 && root <= UINT32_MAX) c->indexes[i] = (uint32_t)root;
}

/* ---- Rows of embeddings ---- */

static bool lost_has_key(const rescue_keys *k, int64_t key) {
  return k->n && bsearch(&key, k->items, k->n, sizeof *k->items, sort_cmp_i64) != NULL;
}

typedef struct lost_reader {
  rescue_dir *c;
  rescue_keys present; /* keys of rows that the table still has */
  rescue_meta_kind kind;
  bool array;
} lost_reader;

static lode_status lost_row(void *ctx, const sqf_row *row, lode_error *err) {
  lost_reader *r = ctx;
  rescue_dir *c = r->c;
  const sqf_value *v = row->values;
  if (row->n != 3 || v[0].type != SQF_TEXT || v[1].type != SQF_TEXT || v[2].type != SQF_INT || v[1].s.len == 0)
    return LODE_OK;
  if (lost_has_key(&r->present, v[2].i)) return LODE_OK;
  if (!mem_grow(&c->rows, &c->cap_rows, c->n_rows + 1, sizeof *c->rows)) return err_nomem(err);
  rescue_emb_row *it = &c->rows[c->n_rows];
  *it = (rescue_emb_row){.key = v[2].i, .seq = -1, .stray = true};
  TRY(rescue_intern(c, v[0].s, &it->segment, err));
  it->id = (lode_str){mem_arena_copy(&c->arena, v[1].s.data, v[1].s.len), v[1].s.len};
  if (!it->id.data) return err_nomem(err);
  c->index_rows++;
  c->n_rows += it->segment != RESCUE_NO_NAME;
  return LODE_OK;
}

static lode_status lost_rows(rescue_dir *c, lode_error *err) {
  lost_reader r = {.c = c};
  lode_status st = LODE_OK;
  if (!c->indexes[RESCUE_INDEX_ROWS]) return LODE_OK;
  if (!mem_grow(&r.present.items, &r.present.cap, c->n_rows + 1, sizeof *r.present.items)) return err_nomem(err);
  for (size_t i = 0; i < c->n_rows; i++) r.present.items[r.present.n++] = c->rows[i].key;
  if (r.present.n > 1) qsort(r.present.items, r.present.n, sizeof *r.present.items, sort_cmp_i64);
  st = sqf_walk_index(c->file, c->indexes[RESCUE_INDEX_ROWS], lost_row, &r, err);
  mem_free(r.present.items);
  return st;
}

/* ---- Values ---- */

static lode_status lost_meta_row(void *ctx, const sqf_row *row, lode_error *err) {
  lost_reader *r = ctx;
  rescue_lost_rows *o = &r->c->parts->lost[r->array];
  const sqf_value *v = row->values;
  if (row->n != 3 || v[0].type != SQF_INT || v[1].type != SQF_TEXT || v[2].type != SQF_INT) return LODE_OK;
  if (lost_has_key(&r->c->parts->seen[r->array], v[2].i)) return LODE_OK;
  if (!mem_grow(&o->items, &o->cap, o->n + 1, sizeof *o->items)) return err_nomem(err);
  o->items[o->n++] = (rescue_lost_row){v[2].i, v[0].i, row->place, false};
  return LODE_OK;
}

static int lost_compare_rows(const void *a, const void *b) {
  const rescue_lost_row *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

static rescue_lost_row *lost_find_row(rescue_dir *c, bool array, int64_t key) {
  rescue_lost_row wanted = {.key = key};
  rescue_lost_rows *o = &c->parts->lost[array];
  return o->n ? bsearch(&wanted, o->items, o->n, sizeof *o->items, lost_compare_rows) : NULL;
}

static lode_status lost_meta_rows(rescue_dir *c, bool array, lode_error *err) {
  lost_reader r = {.c = c, .array = array};
  rescue_lost_rows *o = &c->parts->lost[array];
  rescue_keys *seen = &c->parts->seen[array];
  uint32_t root = c->indexes[array ? RESCUE_INDEX_ARRAY : RESCUE_INDEX_META];
  sqf_info before, after;
  if (!root) return LODE_OK;
  if (seen->n > 1) qsort(seen->items, seen->n, sizeof *seen->items, sort_cmp_i64);
  sqf_get_info(c->file, &before);
  TRY(sqf_walk_index(c->file, root, lost_meta_row, &r, err));
  sqf_get_info(c->file, &after);
  o->sound = before.damaged_pages == after.damaged_pages && before.damaged_rows == after.damaged_rows;
  if (o->n > 1) qsort(o->items, o->n, sizeof *o->items, lost_compare_rows);
  return LODE_OK;
}

bool rescue_is_lost_row(rescue_dir *c, int64_t row, int64_t id, bool *array) {
  const rescue_raw_tables *p = c->parts;
  for (int i = 0; i < 2; i++) {
    rescue_lost_row *o = lost_find_row(c, i, row);
    if (!o || o->id != id) continue;
    o->found = true;
    *array = i;
    return true;
  }
  /* without sound indexes, anything that looks like a row is used */
  return !p->lost[0].sound || (c->tables[RESCUE_TABLE_ARRAYS].root && !p->lost[1].sound);
}

static lode_status lost_value(void *ctx, const sqf_row *row, lode_error *err) {
  lost_reader *r = ctx;
  const sqf_value *v = row->values;
  if (row->n != 3 || v[0].type != SQF_TEXT || v[2].type != SQF_INT) return LODE_OK;
  rescue_lost_row *o = lost_find_row(r->c, r->array, v[2].i);
  if (!o || o->found) return LODE_OK;
  o->found = true;
  r->c->index_rows++;
  rescue_meta meta = {.key = o->id, .order = v[2].i, .place = row->place, .kind = (uint8_t)r->kind, .array = r->array};
  return rescue_add_meta(r->c, meta, err);
}

lode_status rescue_read_index_values(rescue_dir *c, lode_error *err) {
  static const rescue_meta_kind kinds[] = {RESCUE_META_STRING, RESCUE_META_INT, RESCUE_META_REAL};
  for (int array = 0; array < 2; array++) {
    const rescue_lost_rows *o = &c->parts->lost[array];
    lost_reader r = {.c = c, .array = array};
    for (int i = 0; i < 3 && o->n; i++) {
      uint32_t root = c->indexes[(array ? RESCUE_INDEX_ARRAY : RESCUE_INDEX_META) + 1 + i];
      r.kind = kinds[i];
      if (root) TRY(sqf_walk_index(c->file, root, lost_value, &r, err));
    }
    for (size_t i = 0; i < o->n; i++) { /* booleans have no index */
      const rescue_lost_row *lost = &o->items[i];
      rescue_meta meta = {
          .key = lost->id, .order = lost->key, .place = lost->place, .kind = RESCUE_META_LOST, .array = array};
      if (!lost->found) TRY(rescue_add_meta(c, meta, err));
    }
  }
  return LODE_OK;
}

/* ---- Names of collections: (id, key) and (name, database, key) ---- */

static lode_status lost_collection(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  rescue_raw_tables *p = c->parts;
  const sqf_value *v = row->values;
  bool by_id = row->n == 2;
  if ((row->n != 2 && row->n != 3) || v[0].type != SQF_TEXT || v[row->n - 1].type != SQF_INT) return LODE_OK;
  int64_t key = v[row->n - 1].i;
  rescue_coll_row *it = NULL;
  for (size_t i = 0; i < p->n_collections && !it; i++)
    if (p->collections[i].key == key) it = &p->collections[i];
  if (!it) {
    if (!mem_grow(&p->collections, &p->cap_collections, p->n_collections + 1, sizeof *p->collections))
      return err_nomem(err);
    it = &p->collections[p->n_collections++];
    *it = (rescue_coll_row){.key = key, .id = RESCUE_NO_NAME, .stray = true};
  }
  if (!it->stray) return LODE_OK;
  if (by_id) return rescue_intern(c, v[0].s, &it->id, err);
  it->name = (lode_str){mem_arena_copy(&c->arena, v[0].s.data, v[0].s.len), v[0].s.len};
  if (v[1].type == SQF_TEXT) it->database = (lode_str){mem_arena_copy(&c->arena, v[1].s.data, v[1].s.len), v[1].s.len};
  return it->name.data ? LODE_OK : err_nomem(err);
}

lode_status rescue_read_indexes(rescue_dir *c, lode_error *err) {
  for (int i = RESCUE_INDEX_COLL_ID; i <= RESCUE_INDEX_COLL_NAME; i++)
    if (c->indexes[i]) TRY(sqf_walk_index(c->file, c->indexes[i], lost_collection, c, err));
  TRY(lost_rows(c, err));
  TRY(lost_meta_rows(c, false, err));
  return lost_meta_rows(c, true, err);
}

void rescue_index_value(const rescue_meta *m, sqf_row *row, rescue_value *out) {
  if (m->kind == RESCUE_META_LOST) {
    out->lost = true;
    if (row->n == 3 && row->values[1].type == SQF_TEXT) out->key = row->values[1].s;
    return;
  }
  if (row->n != 3 || row->values[0].type != SQF_TEXT) return;
  sqf_value *v = &row->values[1];
  if (m->kind == RESCUE_META_REAL && v->type == SQF_INT) *v = (sqf_value){.type = SQF_REAL, .d = (double)v->i};
  out->key = row->values[0].s;
  if (v->type != SQF_NULL) out->value = v;
}
