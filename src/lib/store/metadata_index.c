/* SPDX-License-Identifier: Apache-2.0 */
/* metadata_index.c - the metadata index and the declared counters.
 *
 * Table term holds (key, value, rid) for every scalar value and array element of the records up to the collection's
 * term_cursor. It only proposes records: strings are truncated to TERM_MAX_BYTES, and the filter (src/lib/query) is
 * always evaluated on the record itself. Values sort in SQLite's order: numbers (int64 and double by value), then
 * strings by bytes, then booleans as one-byte blobs.
 */
#include "store/metadata_index.h"

#include <math.h>

#define TERM_MAX_BYTES STORE_TERM_MAX_BYTES
#define METAKEY_CACHE_MAX 256

static void term_bind_value(store_tx *tx, sqlite3_stmt *s, int i, const meta_value *v, size_t max_bytes) {
  static const char bools[2] = {0, 1};
  switch (v->type) {
    case META_INT: store_bind_int(tx, s, i, v->i); return;
    case META_DOUBLE: store_bind_real(tx, s, i, v->d); return;
    case META_BOOL: store_bind_blob(tx, s, i, (lode_str){&bools[v->i != 0], 1}); return;
    case META_STRING: break;
  }
  size_t len = v->s.len < max_bytes ? v->s.len : max_bytes;
  store_bind_text(tx, s, i, (lode_str){v->s.data ? v->s.data : "", len});
}

static void term_column_value(sqlite3_stmt *s, int i, meta_value *v) {
  *v = (meta_value){0};
  switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
      v->type = META_INT;
      v->i = store_column_int(s, i);
      return;
    case SQLITE_FLOAT:
      v->type = META_DOUBLE;
      v->d = sqlite3_column_double(s, i);
      return;
    case SQLITE_BLOB: {
      lode_str b = store_column_str(s, i);
      v->type = META_BOOL;
      v->i = b.len == 1 && b.data[0] == 1;
      return;
    }
    default: v->type = META_STRING; v->s = store_column_str(s, i);
  }
}

/* ---- Keys ---- */

static void metakey_cache_clear(store_tx *tx, int64_t cid) {
  if (tx->keys_cid == cid) return;
  tx->n_keys = 0;
  mem_arena_reset(&tx->keys_arena);
  tx->keys_cid = cid;
}

static lode_status metakey_cache_add(store_tx *tx, lode_str name, int64_t kid, bool counted, lode_error *err) {
  if (tx->n_keys >= METAKEY_CACHE_MAX) return LODE_OK;
  if (!mem_grow(&tx->keys, &tx->cap_keys, tx->n_keys + 1, sizeof *tx->keys)) return err_nomem(err);
  const char *copy = mem_arena_copy(&tx->keys_arena, name.data, name.len);
  if (!copy) return err_nomem(err);
  tx->keys[tx->n_keys++] = (store_metakey){{copy, name.len}, kid, counted};
  return LODE_OK;
}

static lode_status metakey_find(store_tx *tx, int64_t cid, lode_str name, store_metakey *key, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  metakey_cache_clear(tx, cid);
  for (size_t i = 0; i < tx->n_keys; i++)
    if (str_eq(tx->keys[i].name, name)) {
      *key = tx->keys[i];
      return LODE_OK;
    }
  *key = (store_metakey){0};
  TRY(store_stmt_key(tx, STORE_STMT_KEY_GET, cid, &s, err));
  store_bind_text(tx, s, 2, name);
  TRY(store_stmt_step(tx, s, &row, err));
  if (row) *key = (store_metakey){name, store_column_int(s, 0), store_column_int(s, 1) != 0};
  store_stmt_reset(s);
  return row ? metakey_cache_add(tx, name, key->kid, key->counted, err) : LODE_OK;
}

lode_status store_metakey_id(store_tx *tx, int64_t cid, lode_str name, bool create, bool counted, int64_t *kid,
                             lode_error *err) {
  sqlite3_stmt *s;
  store_metakey key;
  *kid = 0;
  TRY(metakey_find(tx, cid, name, &key, err));
  *kid = key.kid;
  if (*kid || !create) return LODE_OK;
  TRY(store_state_get(tx, STORE_STATE_NEXT_KID, kid, err));
  TRY(store_state_put(tx, STORE_STATE_NEXT_KID, *kid + 1, err));
  TRY(store_stmt_key(tx, STORE_STMT_KEY_PUT, *kid, &s, err));
  store_bind_int(tx, s, 2, cid);
  store_bind_text(tx, s, 3, name);
  store_bind_int(tx, s, 4, counted);
  TRY(store_stmt_run(tx, s, err));
  return metakey_cache_add(tx, name, *kid, counted, err);
}

/* ---- Terms of one record ---- */

typedef struct term_job {
  store_tx *tx;
  int64_t cid, rid;
  int statement;
  int delta;
} term_job;

static lode_status term_on_value(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  term_job *job = ctx;
  sqlite3_stmt *s;
  int64_t kid;
  TRY(store_metakey_id(job->tx, job->cid, key, job->statement == STORE_STMT_TERM_PUT, false, &kid, err));
  if (!kid) return LODE_OK;
  TRY(store_stmt_key(job->tx, job->statement, kid, &s, err));
  term_bind_value(job->tx, s, 2, value, TERM_MAX_BYTES);
  store_bind_int(job->tx, s, 3, job->rid);
  return store_stmt_run(job->tx, s, err);
}

static lode_status term_each_value(store_tx *tx, lode_str metadata, meta_value_fn *fn, void *ctx, lode_error *err) {
  TRY(meta_parse_stored(&tx->json, metadata, err));
  return meta_each_value(&tx->json, fn, ctx, err);
}

lode_status store_terms_add(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err) {
  term_job job = {tx, cid, rid, STORE_STMT_TERM_PUT, 0};
  return term_each_value(tx, metadata, term_on_value, &job, err);
}

lode_status store_terms_remove(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err) {
  term_job job = {tx, cid, rid, STORE_STMT_TERM_DELETE, 0};
  return term_each_value(tx, metadata, term_on_value, &job, err);
}

/* ---- Terms of many records at once: sorted first, so that the index is written in order ---- */

static lode_status term_batch_on_value(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  store_term_batch *b = ctx;
  int64_t kid;
  TRY(store_metakey_id(b->tx, b->cid, key, b->creates, false, &kid, err));
  if (!kid) return LODE_OK;
  if (!mem_grow(&b->items, &b->cap, b->n + 1, sizeof *b->items)) return err_nomem(err);
  store_term_item *it = &b->items[b->n];
  *it = (store_term_item){kid, b->rid, *value};
  if (value->type == META_STRING) {
    size_t len = value->s.len < TERM_MAX_BYTES ? value->s.len : TERM_MAX_BYTES;
    it->value.s = (lode_str){mem_arena_copy(&b->arena, value->s.data, len), len};
    if (!it->value.s.data) return err_nomem(err);
  }
  b->n++;
  return LODE_OK;
}

lode_status store_term_batch_add(store_term_batch *b, store_tx *tx, int64_t cid, int64_t rid, lode_str metadata,
                                 bool creates, lode_error *err) {
  b->tx = tx;
  b->cid = cid;
  b->rid = rid;
  b->creates = creates;
  return term_each_value(tx, metadata, term_batch_on_value, b, err);
}

static int term_compare_items(const void *x, const void *y) {
  const store_term_item *a = x, *b = y;
  if (a->kid != b->kid) return a->kid < b->kid ? -1 : 1;
  int c = meta_value_cmp(&a->value, &b->value);
  return c ? c : (a->rid > b->rid) - (a->rid < b->rid);
}

lode_status store_term_batch_write(store_term_batch *b, int which, lode_error *err) {
  sqlite3_stmt *s;
  if (b->n) qsort(b->items, b->n, sizeof *b->items, term_compare_items);
  for (size_t i = 0; i < b->n; i++) {
    TRY(store_stmt_key(b->tx, which, b->items[i].kid, &s, err));
    term_bind_value(b->tx, s, 2, &b->items[i].value, TERM_MAX_BYTES);
    store_bind_int(b->tx, s, 3, b->items[i].rid);
    TRY(store_stmt_run(b->tx, s, err));
  }
  return LODE_OK;
}

void store_term_batch_release(store_term_batch *b) {
  mem_free(b->items);
  mem_arena_release(&b->arena);
  *b = (store_term_batch){0};
}

/* ---- Queries ---- */

/* Binds the bounds of a range in SQLite's order of values. An open end stays within the type of the other end. */
static void term_bind_range(store_tx *tx, sqlite3_stmt *s, const store_term_range *r) {
  const meta_value *any = r->low ? r->low : r->high;
  if (r->low)
    term_bind_value(tx, s, 2, r->low, TERM_MAX_BYTES);
  else if (any && any->type == META_STRING)
    store_bind_text(tx, s, 2, STR_LIT(""));
  else if (any && any->type == META_BOOL)
    store_bind_blob(tx, s, 2, STR_LIT(""));
  else
    store_bind_real(tx, s, 2, -INFINITY);
  if (r->high)
    term_bind_value(tx, s, 3, r->high, TERM_MAX_BYTES);
  else if (any && any->type == META_STRING)
    store_bind_blob(tx, s, 3, STR_LIT(""));
  else if (any && any->type != META_BOOL)
    store_bind_real(tx, s, 3, INFINITY);
  else
    store_bind_blob(tx, s, 3, STR_LIT("\xff"));
}

lode_status store_term_each(store_tx *tx, int64_t cid, const store_term_range *range, size_t limit, bool *truncated,
                            store_term_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  store_metakey key;
  meta_value value;
  lode_status st = LODE_OK;
  *truncated = false;
  TRY(metakey_find(tx, cid, range->key, &key, err));
  if (!key.kid) return LODE_OK;
  bool exactly = range->low && range->low == range->high;
  TRY(store_stmt_key(tx, exactly ? STORE_STMT_TERM_EQ : STORE_STMT_TERM_RANGE, key.kid, &s, err));
  if (exactly)
    term_bind_value(tx, s, 2, range->low, TERM_MAX_BYTES);
  else
    term_bind_range(tx, s, range);
  for (size_t n = 0;; n++) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    if (limit && n == limit) {
      *truncated = true;
      break;
    }
    term_column_value(s, 0, &value);
    st = fn(ctx, &value, value.type != META_STRING || value.s.len < TERM_MAX_BYTES, store_column_int(s, 1), err);
    if (st != LODE_OK) break;
  }
  store_stmt_reset(s);
  return st;
}

/* ---- Counters ---- */

static lode_status counter_on_value(void *ctx, lode_str name, const meta_value *value, lode_error *err) {
  term_job *job = ctx;
  sqlite3_stmt *s;
  store_metakey key;
  TRY(metakey_find(job->tx, job->cid, name, &key, err));
  if (!key.counted) return LODE_OK;
  TRY(store_stmt_key(job->tx, STORE_STMT_COUNTER_ADD, key.kid, &s, err));
  term_bind_value(job->tx, s, 2, value, SIZE_MAX);
  store_bind_int(job->tx, s, 3, job->delta);
  TRY(store_stmt_run(job->tx, s, err));
  if (job->delta > 0) return LODE_OK;
  TRY(store_stmt_key(job->tx, STORE_STMT_COUNTER_TRIM, key.kid, &s, err));
  term_bind_value(job->tx, s, 2, value, SIZE_MAX);
  return store_stmt_run(job->tx, s, err);
}

lode_status store_counters_change(store_tx *tx, int64_t cid, lode_str metadata, int delta, lode_error *err) {
  term_job job = {tx, cid, 0, 0, delta};
  return term_each_value(tx, metadata, counter_on_value, &job, err);
}

/* Rows of (value, count). */
static lode_status counter_each_row(store_tx *tx, int which, int64_t key, store_counter_fn *fn, void *ctx,
                                    lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  meta_value value;
  lode_status st = LODE_OK;
  TRY(store_stmt_key(tx, which, key, &s, err));
  for (;;) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    term_column_value(s, 0, &value);
    st = fn(ctx, &value, (uint64_t)store_column_int(s, 1), err);
    if (st != LODE_OK) break;
  }
  store_stmt_reset(s);
  return st;
}

lode_status store_counter_each(store_tx *tx, int64_t cid, lode_str name, store_counter_fn *fn, void *ctx,
                               lode_error *err) {
  store_metakey key;
  char quoted[256];
  TRY(metakey_find(tx, cid, name, &key, err));
  if (key.counted) return counter_each_row(tx, STORE_STMT_COUNTER_EACH, key.kid, fn, ctx, err);
  return err_set(err, LODE_NOT_FOUND, "%s is not a declared counter of this collection; facets count any key",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status store_counter_keys(store_tx *tx, int64_t cid, store_counter_fn *fn, void *ctx, lode_error *err) {
  return counter_each_row(tx, STORE_STMT_KEY_COUNTED, cid, fn, ctx, err);
}
