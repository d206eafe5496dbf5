/* SPDX-License-Identifier: Apache-2.0 */
/* engine_facet.c - how many records have each value of a metadata key.
 *
 * Without a filter, values come from the metadata index: it holds (value, record) for all records up to its cursor;
 * records after the cursor are read. With a filter, the selected records are read. Either way a record counts once for
 * each distinct value.
 *
 * The index is scanned in short transactions of one moment (reader.c), one type of value after the other (they have
 * different key ranges), resuming at a value.
 */
#include "engine/select.h"
#include "iface/iface_facets.h"

#include <float.h>

/* ---- Counting ---- */

typedef struct facet_counting {
  engine_reader *reader;
  lode_str key;
  iface_facets totals;
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
  return str_eq(key, c->key) ? iface_facets_add(&c->totals, value, 1, err) : LODE_OK;
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
  return is_it ? iface_facets_add(&l->c->totals, value, 1, err) : LODE_OK;
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
  return alive ? iface_facets_add(&c->totals, value, 1, err) : LODE_OK;
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
  *c = (facet_counting){.reader = reader, .key = key};
  iface_facets_init(&c->totals, reader->handle->store->head.options->memory_bytes);
}

static void facet_counting_release(facet_counting *c) {
  iface_facets_release(&c->totals);
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
  iface_facets_clear(&f->c.totals);
  f->c.long_rids.n = 0;
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
  st = iface_facets_list(&f.c.totals, limit, list, err);
done:
  facet_counting_release(&f.c);
  engine_select_release(&f.select);
  engine_reader_release(&f.reader);
  return st;
}

static lode_status facet_take_counter(void *ctx, const meta_value *value, uint64_t n, lode_error *err) {
  facet_counting *c = ctx;
  return n ? iface_facets_add(&c->totals, value, n, err) : LODE_OK;
}

/* A declared key is listed even while no record has a value for it. */
static lode_status facet_take_key(void *ctx, const meta_value *value, uint64_t n, lode_error *err) {
  facet_counting *c = ctx;
  return iface_facets_add(&c->totals, value, n, err);
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
  st = iface_facets_list(&c.totals, 0, list, err);
done:
  facet_counting_release(&c);
  engine_reader_release(&reader);
  return st;
}
