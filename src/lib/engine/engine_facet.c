/* SPDX-License-Identifier: Apache-2.0 */
/* engine_facet.c - how many records have each value of a metadata key.
 *
 * Without a filter, values come from the metadata index: it holds (value, record) for all records up to its cursor;
 * records after the cursor are read. With a filter, the selected records are read. Either way a record counts once for
 * each distinct value, and equal numbers are one value (1 and 1.0), written as an integer if it is one.
 *
 * The index is scanned in short transactions of one moment (reader.c), one type of value after the other (they have
 * different key ranges), resuming at a value.
 */
#include "engine/select.h"

#include <float.h>

typedef struct facet_count {
  meta_value value;
  uint64_t hash;
  uint64_t n;
} facet_count;

/* ---- Table of counts ---- */

typedef struct facet_table {
  facet_count *counts; /* in order of first appearance */
  size_t n, cap;
  size_t *slots;  /* open addressing: position + 1, or 0 */
  size_t n_slots; /* a power of two */
  size_t last;    /* the value counted last: an index yields equal values in a row */
  size_t limit_bytes;
  mem_arena arena;
} facet_table;

static meta_value facet_normalize(meta_value v) {
  if (v.type == META_DOUBLE && v.d >= -0x1p63 && v.d < 0x1p63 && v.d == (double)(int64_t)v.d)
    return (meta_value){.type = META_INT, .i = (int64_t)v.d};
  return v;
}

static uint64_t facet_hash(const meta_value *v) {
  switch (v->type) {
    case META_STRING: return hash_bytes(v->s.data, v->s.len);
    case META_DOUBLE: return hash_bytes(&v->d, sizeof v->d);
    default: return hash_bytes(&v->i, sizeof v->i) + (v->type == META_BOOL);
  }
}

static bool facet_values_equal(const meta_value *a, const meta_value *b) {
  return a->type == b->type && meta_value_cmp(a, b) == 0;
}

static lode_status facet_rehash(facet_table *t, lode_error *err) {
  size_t n = t->n_slots ? t->n_slots * 2 : 256;
  size_t *slots = mem_calloc(n, sizeof *slots);
  if (!slots) return err_nomem(err);
  for (size_t i = 0; i < t->n; i++) {
    size_t at = t->counts[i].hash & (n - 1);
    while (slots[at]) at = (at + 1) & (n - 1);
    slots[at] = i + 1;
  }
  mem_free(t->slots);
  t->slots = slots;
  t->n_slots = n;
  return LODE_OK;
}

static lode_status facet_add_value(facet_table *t, meta_value v, uint64_t hash, size_t slot, lode_error *err) {
  size_t bytes = t->arena.used + t->n * sizeof *t->counts + t->n_slots * sizeof *t->slots;
  if (bytes > t->limit_bytes)
    return err_set(err, LODE_LIMIT,
                   "the key has more different values than fit in the store's memory budget: narrow them "
                   "by a filter, or open the store with more memory_bytes");
  if (v.type == META_STRING) {
    v.s.data = mem_arena_copy(&t->arena, v.s.data, v.s.len);
    if (!v.s.data) return err_nomem(err);
  }
  if (!mem_grow(&t->counts, &t->cap, t->n + 1, sizeof *t->counts)) return err_nomem(err);
  t->counts[t->n] = (facet_count){.value = v, .hash = hash, .n = 1};
  t->last = t->n++;
  t->slots[slot] = t->n;
  return LODE_OK;
}

static lode_status facet_count_value(facet_table *t, const meta_value *value, lode_error *err) {
  meta_value v = facet_normalize(*value);
  if (t->n && facet_values_equal(&t->counts[t->last].value, &v)) {
    t->counts[t->last].n++;
    return LODE_OK;
  }
  if (t->n * 4 >= t->n_slots * 3) TRY(facet_rehash(t, err));
  uint64_t hash = facet_hash(&v);
  size_t at = hash & (t->n_slots - 1);
  for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
    facet_count *c = &t->counts[t->slots[at] - 1];
    if (c->hash != hash || !facet_values_equal(&c->value, &v)) continue;
    c->n++;
    t->last = t->slots[at] - 1;
    return LODE_OK;
  }
  return facet_add_value(t, v, hash, at, err);
}

static void facet_table_release(facet_table *t) {
  mem_free(t->counts);
  mem_free(t->slots);
  mem_arena_release(&t->arena);
}

/* ---- The resulting list ---- */

static int facet_compare_counts(const void *a, const void *b) {
  const facet_count *x = a, *y = b;
  if (x->n != y->n) return x->n > y->n ? -1 : 1;
  return meta_value_cmp(&x->value, &y->value);
}

static lode_status facet_make_list(facet_table *t, size_t limit, lode_facet_list **out, lode_error *err) {
  strbuf buf = {0};
  lode_status st = LODE_OK;
  lode_facet_list *list = mem_calloc(1, sizeof *list);
  size_t n = limit && limit < t->n ? limit : t->n;
  if (!list) return err_nomem(err);
  mem_arena_init(&list->arena, 0);
  if (t->n) qsort(t->counts, t->n, sizeof *t->counts, facet_compare_counts);
  list->facets = mem_calloc(n, sizeof *list->facets);
  if (!list->facets) st = err_nomem(err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    buf.len = 0;
    meta_value_put(&buf, &t->counts[i].value);
    char *text = buf.failed ? NULL : mem_arena_copy(&list->arena, buf.data, buf.len);
    if (!text) st = err_nomem(err);
    list->facets[list->n++] = (lode_facet){{text, buf.len}, t->counts[i].n};
  }
  strbuf_release(&buf);
  if (st == LODE_OK)
    *out = list;
  else
    lode_facet_list_free(list);
  return st;
}

/* ---- Counting ---- */

typedef struct facet_counting {
  engine_reader *reader;
  lode_str key;
  facet_table totals;
  json_doc json;
  /* scan of the index */
  int64_t cursor; /* records after it are read */
  meta_value at;  /* where to resume; strings are in `text` */
  strbuf text;
  bool paused;
  engine_rids long_rids; /* records with strings too long for the index */
} facet_counting;

static lode_status facet_count_if_key(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  facet_counting *c = ctx;
  return str_eq(key, c->key) ? facet_count_value(&c->totals, value, err) : LODE_OK;
}

/* Counts all selected records. */
static lode_status facet_count_selected(facet_counting *c, engine_select *select, lode_error *err) {
  for (;;) {
    store_rec rec;
    bool more;
    TRY(engine_select_next(select, &rec, &more, err));
    if (!more) return LODE_OK;
    if (!rec.metadata.data) continue;
    TRY(meta_parse_stored(&c->json, rec.metadata, err));
    TRY(meta_each_value(&c->json, facet_count_if_key, c, err));
  }
}

/* ---- By the index ---- */

static bool facet_set_position(facet_counting *c, const meta_value *value) {
  c->at = *value;
  if (value->type != META_STRING) return true;
  c->text.len = 0;
  strbuf_add(&c->text, value->s.data, value->s.len);
  c->at.s = (lode_str){c->text.len ? c->text.data : "", c->text.len};
  return !c->text.failed;
}

/* Long strings are truncated in the index: `prefix` is what it holds of them. */
typedef struct facet_long_values {
  facet_counting *c;
  lode_str prefix;
} facet_long_values;

static lode_status facet_count_long(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  facet_long_values *l = ctx;
  bool is_it = str_eq(key, l->c->key) && value->type == META_STRING && value->s.len >= l->prefix.len &&
               memcmp(value->s.data, l->prefix.data, l->prefix.len) == 0;
  return is_it ? facet_count_value(&l->c->totals, value, err) : LODE_OK;
}

/* Reads the records that the index holds under the current, truncated value. */
static lode_status facet_count_long_values(facet_counting *c, lode_error *err) {
  facet_long_values l = {c, c->at.s};
  for (size_t i = 0; i < c->long_rids.n; i++) {
    store_rec rec;
    bool found;
    TRY(store_rec_read(c->reader->tx, c->long_rids.v[i], &rec, &found, err));
    if (!found || !rec.metadata.data) continue;
    TRY(meta_parse_stored(&c->json, rec.metadata, err));
    TRY(meta_each_value(&c->json, facet_count_long, &l, err));
  }
  c->long_rids.n = 0;
  return LODE_OK;
}

static lode_status facet_count_term(void *ctx, const meta_value *value, bool exact, int64_t rid, lode_error *err) {
  facet_counting *c = ctx;
  bool alive;
  if (meta_value_cmp(value, &c->at) != 0) {
    TRY(facet_count_long_values(c, err));
    if (!facet_set_position(c, value)) return err_nomem(err);
    c->paused = engine_reader_is_old(c->reader);
    if (c->paused) return LODE_CANCELLED;
  }
  if (rid > c->cursor) return LODE_OK;
  if (!exact) return engine_rids_add(&c->long_rids, rid) ? LODE_OK : err_nomem(err);
  TRY(store_rec_is_live(c->reader->tx, rid, &alive, err));
  return alive ? facet_count_value(&c->totals, value, err) : LODE_OK;
}

static lode_status facet_count_type(facet_counting *c, meta_value first, lode_error *err) {
  lode_status st;
  c->at = first;
  do {
    bool cut;
    meta_value low = c->at;
    store_term_range range = {.key = c->key, .low = &low};
    c->paused = false;
    TRY(engine_reader_renew_if_old(c->reader, err));
    st = store_term_each(c->reader->tx, c->reader->coll.cid, &range, 0, &cut, facet_count_term, c, err);
  } while (c->paused && st == LODE_CANCELLED);
  return st == LODE_OK ? facet_count_long_values(c, err) : st;
}

static lode_status facet_count_indexed(facet_counting *c, lode_error *err) {
  TRY(engine_reader_begin(c->reader, err));
  c->cursor = c->reader->coll.term_cursor;
  TRY(facet_count_type(c, (meta_value){.type = META_DOUBLE, .d = -DBL_MAX}, err));
  TRY(facet_count_type(c, (meta_value){.type = META_STRING, .s = {"", 0}}, err));
  return facet_count_type(c, (meta_value){.type = META_BOOL}, err);
}

/* ---- The public functions ---- */

static void facet_counting_init(facet_counting *c, engine_reader *reader, lode_str key) {
  uint64_t limit = reader->handle->store->head.options->memory_bytes;
  *c = (facet_counting){.reader = reader, .key = key};
  c->totals.limit_bytes = limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
  mem_arena_init(&c->totals.arena, 0);
}

static void facet_counting_reset(facet_counting *c) {
  size_t limit = c->totals.limit_bytes;
  facet_table_release(&c->totals);
  c->totals = (facet_table){.limit_bytes = limit};
  mem_arena_init(&c->totals.arena, 0);
  c->long_rids.n = 0;
}

static void facet_counting_release(facet_counting *c) {
  facet_table_release(&c->totals);
  json_release(&c->json);
  strbuf_release(&c->text);
  mem_free(c->long_rids.v);
}

typedef struct facet_job {
  facet_counting c;
  engine_reader reader;
  engine_select select;
} facet_job;

static lode_status facet_count_all(void *ctx, lode_error *err) {
  facet_job *f = ctx;
  facet_counting_reset(&f->c);
  engine_select_rewind(&f->select);
  if (!f->select.has_filter) {
    TRY(facet_count_indexed(&f->c, err));
    engine_select_start_after(&f->select, f->c.cursor);
  }
  return facet_count_selected(&f->c, &f->select, err);
}

lode_status engine_facets(lode_collection *head, lode_str key, lode_str where, size_t limit, lode_facet_list **list,
                          lode_error *err) {
  engine_collection *collection = engine_collection_of(head);
  lode_selection what = {.where = where};
  facet_job f = {0};
  lode_status st;
  err_clear(err);
  *list = NULL;
  if (!key.data) return err_set(err, LODE_INVALID, "name the metadata key whose values are to be counted");
  engine_reader_init(&f.reader, collection);
  facet_counting_init(&f.c, &f.reader, key);
  TRY_GOTO(engine_select_init(&f.select, &f.reader, &what, err));
  TRY_GOTO(engine_reader_run(&f.reader, facet_count_all, &f, err));
  st = facet_make_list(&f.c.totals, limit, list, err);
done:
  facet_counting_release(&f.c);
  engine_select_release(&f.select);
  engine_reader_release(&f.reader);
  return st;
}

static lode_status facet_take_counter(void *ctx, const meta_value *value, uint64_t n, lode_error *err) {
  facet_counting *c = ctx;
  if (n == 0) return LODE_OK;
  TRY(facet_count_value(&c->totals, value, err));
  c->totals.counts[c->totals.last].n += n - 1;
  return LODE_OK;
}

/* A declared key is listed even while no record has a value for it. */
static lode_status facet_take_key(void *ctx, const meta_value *value, uint64_t n, lode_error *err) {
  facet_counting *c = ctx;
  TRY(facet_count_value(&c->totals, value, err));
  c->totals.counts[c->totals.last].n = n;
  return LODE_OK;
}

lode_status engine_counters(lode_collection *head, lode_str key, lode_facet_list **list, lode_error *err) {
  engine_collection *collection = engine_collection_of(head);
  engine_reader reader;
  facet_counting c;
  lode_status st;
  err_clear(err);
  *list = NULL;
  engine_reader_init(&reader, collection);
  facet_counting_init(&c, &reader, key);
  TRY_GOTO(engine_reader_begin(&reader, err));
  TRY_GOTO(key.data ? store_counter_each(reader.tx, reader.coll.cid, key, facet_take_counter, &c, err)
                    : store_counter_keys(reader.tx, reader.coll.cid, facet_take_key, &c, err));
  st = facet_make_list(&c.totals, 0, list, err);
done:
  facet_counting_release(&c);
  engine_reader_release(&reader);
  return st;
}
