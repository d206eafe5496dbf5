/* terms.c - the metadata index and the declared counters.
 *
 * Table term holds (key, value, rid) for every scalar value and array element of the records up to the collection's
 * term_cursor. It only proposes: strings are cut to TERM_MAX_BYTES, and the judge (src/query) looks at the record itself.
 * Values are stored as SQLite orders them: numbers (int64 and double by value), then strings by bytes, then
 * booleans as one-byte blobs.
 */
#include "db.h"

#include <math.h>

#define TERM_BYTES LODE__TERM_BYTES
#define MAX_CACHED_KEYS 256

static int bind_value(sqlite3_stmt *s, int i, const meta_value *v, size_t max_bytes) {
  static const char bools[2] = {0, 1};
  switch (v->type) {
    case META_INT: return sqlite3_bind_int64(s, i, v->i);
    case META_DOUBLE: return sqlite3_bind_double(s, i, v->d);
    case META_BOOL: return sqlite3_bind_blob(s, i, &bools[v->i != 0], 1, SQLITE_STATIC);
    case META_STRING: break;
  }
  size_t len = v->s.len < max_bytes ? v->s.len : max_bytes;
  return sqlite3_bind_text64(s, i, v->s.data ? v->s.data : "", len, SQLITE_STATIC, SQLITE_UTF8);
}

static void column_value(sqlite3_stmt *s, int i, meta_value *v) {
  *v = (meta_value){0};
  switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
      v->type = META_INT;
      v->i = sqlite3_column_int64(s, i);
      return;
    case SQLITE_FLOAT:
      v->type = META_DOUBLE;
      v->d = sqlite3_column_double(s, i);
      return;
    case SQLITE_BLOB: {
      lode_str b = lode__column(s, i);
      v->type = META_BOOL;
      v->i = b.len == 1 && b.data[0] == 1;
      return;
    }
    default:
      v->type = META_STRING;
      v->s = lode__column(s, i);
  }
}

/* ---- Keys ---- */

static void forget_keys(lode__tx *tx, int64_t cid) {
  if (tx->keys_cid == cid) return;
  tx->n_keys = 0;
  mem_arena_reset(&tx->keys_arena);
  tx->keys_cid = cid;
}

static lode_status remember_key(lode__tx *tx, lode_str name, int64_t kid, bool counted, lode_error *err) {
  if (tx->n_keys >= MAX_CACHED_KEYS) return LODE_OK;
  if (!mem_grow(&tx->keys, &tx->cap_keys, tx->n_keys + 1, sizeof *tx->keys)) return err_nomem(err);
  const char *copy = mem_arena_copy(&tx->keys_arena, name.data, name.len);
  if (!copy) return err_nomem(err);
  tx->keys[tx->n_keys++] = (lode__key){{copy, name.len}, kid, counted};
  return LODE_OK;
}

static lode_status find_key(lode__tx *tx, int64_t cid, lode_str name, lode__key *key, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  forget_keys(tx, cid);
  for (size_t i = 0; i < tx->n_keys; i++)
    if (str_eq(tx->keys[i].name, name)) {
      *key = tx->keys[i];
      return LODE_OK;
    }
  *key = (lode__key){0};
  TRY(lode__stmt(tx, LODE__STMT_KEY_GET, &s, err));
  sqlite3_bind_int64(s, 1, cid);
  lode__bind_text(s, 2, name);
  TRY(lode__step(tx, s, &row, err));
  if (row) *key = (lode__key){name, sqlite3_column_int64(s, 0), sqlite3_column_int(s, 1) != 0};
  sqlite3_reset(s);
  return row ? remember_key(tx, name, key->kid, key->counted, err) : LODE_OK;
}

/* *kid is 0 when there is no such key and `create` is false. */
lode_status lode__key_id(lode__tx *tx, int64_t cid, lode_str name, bool create, bool counted, int64_t *kid, lode_error *err) {
  sqlite3_stmt *s;
  lode__key key;
  *kid = 0;
  TRY(find_key(tx, cid, name, &key, err));
  *kid = key.kid;
  if (*kid || !create) return LODE_OK;
  TRY(lode__state_get(tx, LODE__STATE_NEXT_KID, kid, err));
  TRY(lode__state_put(tx, LODE__STATE_NEXT_KID, *kid + 1, err));
  TRY(lode__stmt(tx, LODE__STMT_KEY_PUT, &s, err));
  sqlite3_bind_int64(s, 1, *kid);
  sqlite3_bind_int64(s, 2, cid);
  lode__bind_text(s, 3, name);
  sqlite3_bind_int(s, 4, counted);
  TRY(lode__run(tx, s, err));
  return remember_key(tx, name, *kid, counted, err);
}

/* ---- Terms of one record ---- */

typedef struct term_job {
  lode__tx *tx;
  int64_t cid, rid;
  int statement;
  int delta;
} term_job;

static lode_status on_term(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  term_job *job = ctx;
  sqlite3_stmt *s;
  int64_t kid;
  TRY(lode__key_id(job->tx, job->cid, key, job->statement == LODE__STMT_TERM_PUT, false, &kid, err));
  if (!kid) return LODE_OK;
  TRY(lode__stmt(job->tx, job->statement, &s, err));
  sqlite3_bind_int64(s, 1, kid);
  bind_value(s, 2, value, TERM_BYTES);
  sqlite3_bind_int64(s, 3, job->rid);
  return lode__run(job->tx, s, err);
}

static lode_status each_value(lode__tx *tx, lode_str metadata, meta_value_fn *fn, void *ctx, lode_error *err) {
  TRY(meta_parse_stored(&tx->json, metadata, err));
  return meta_each_value(&tx->json, fn, ctx, err);
}

lode_status lode__terms_add(lode__tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err) {
  term_job job = {tx, cid, rid, LODE__STMT_TERM_PUT, 0};
  return each_value(tx, metadata, on_term, &job, err);
}

lode_status lode__terms_remove(lode__tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err) {
  term_job job = {tx, cid, rid, LODE__STMT_TERM_DELETE, 0};
  return each_value(tx, metadata, on_term, &job, err);
}

/* ---- Terms of many records at once: sorted first, so that the index is walked from left to right ---- */

static lode_status on_batch_term(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  lode__term_batch *b = ctx;
  int64_t kid;
  TRY(lode__key_id(b->tx, b->cid, key, b->creates, false, &kid, err));
  if (!kid) return LODE_OK;
  if (!mem_grow(&b->items, &b->cap, b->n + 1, sizeof *b->items)) return err_nomem(err);
  lode__term_item *it = &b->items[b->n];
  *it = (lode__term_item){kid, b->rid, *value};
  if (value->type == META_STRING) {
    size_t len = value->s.len < TERM_BYTES ? value->s.len : TERM_BYTES;
    it->value.s = (lode_str){mem_arena_copy(&b->arena, value->s.data, len), len};
    if (!it->value.s.data) return err_nomem(err);
  }
  b->n++;
  return LODE_OK;
}

lode_status lode__term_batch_add(lode__term_batch *b, lode__tx *tx, int64_t cid, int64_t rid, lode_str metadata,
                                 bool creates, lode_error *err) {
  b->tx = tx;
  b->cid = cid;
  b->rid = rid;
  b->creates = creates;
  return each_value(tx, metadata, on_batch_term, b, err);
}

static int compare_items(const void *x, const void *y) {
  const lode__term_item *a = x, *b = y;
  if (a->kid != b->kid) return a->kid < b->kid ? -1 : 1;
  int c = meta_value_cmp(&a->value, &b->value);
  return c ? c : (a->rid > b->rid) - (a->rid < b->rid);
}

lode_status lode__term_batch_write(lode__term_batch *b, int which, lode_error *err) {
  sqlite3_stmt *s;
  if (b->n) qsort(b->items, b->n, sizeof *b->items, compare_items);
  for (size_t i = 0; i < b->n; i++) {
    TRY(lode__stmt(b->tx, which, &s, err));
    sqlite3_bind_int64(s, 1, b->items[i].kid);
    bind_value(s, 2, &b->items[i].value, TERM_BYTES);
    sqlite3_bind_int64(s, 3, b->items[i].rid);
    TRY(lode__run(b->tx, s, err));
  }
  return LODE_OK;
}

void lode__term_batch_release(lode__term_batch *b) {
  mem_free(b->items);
  mem_arena_release(&b->arena);
  *b = (lode__term_batch){0};
}

/* ---- Asking ---- */

/* Bounds of a range as SQLite orders values; each end stays within the type of the other. */
static void bind_range(sqlite3_stmt *s, const lode__term_range *r) {
  const meta_value *any = r->low ? r->low : r->high;
  if (r->low)
    bind_value(s, 2, r->low, TERM_BYTES);
  else if (any && any->type == META_STRING)
    sqlite3_bind_text(s, 2, "", 0, SQLITE_STATIC);
  else if (any && any->type == META_BOOL)
    sqlite3_bind_blob(s, 2, "", 0, SQLITE_STATIC);
  else
    sqlite3_bind_double(s, 2, -INFINITY);
  if (r->high)
    bind_value(s, 3, r->high, TERM_BYTES);
  else if (any && any->type == META_STRING)
    sqlite3_bind_blob(s, 3, "", 0, SQLITE_STATIC);
  else if (any && any->type != META_BOOL)
    sqlite3_bind_double(s, 3, INFINITY);
  else
    sqlite3_bind_blob(s, 3, "\xff", 1, SQLITE_STATIC);
}

lode_status lode__term_each(lode__tx *tx, int64_t cid, const lode__term_range *range, size_t limit, bool *cut,
                            lode__term_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  lode__key key;
  meta_value value;
  lode_status st = LODE_OK;
  *cut = false;
  TRY(find_key(tx, cid, range->key, &key, err));
  if (!key.kid) return LODE_OK;
  bool exactly = range->low && range->low == range->high;
  TRY(lode__stmt(tx, exactly ? LODE__STMT_TERM_EQ : LODE__STMT_TERM_RANGE, &s, err));
  sqlite3_bind_int64(s, 1, key.kid);
  if (exactly)
    bind_value(s, 2, range->low, TERM_BYTES);
  else
    bind_range(s, range);
  for (size_t n = 0;; n++) {
    TRY(lode__step(tx, s, &row, err));
    if (!row) break;
    if (limit && n == limit) {
      *cut = true;
      break;
    }
    column_value(s, 0, &value);
    st = fn(ctx, &value, value.type != META_STRING || value.s.len < TERM_BYTES, sqlite3_column_int64(s, 1), err);
    if (st != LODE_OK) break;
  }
  sqlite3_reset(s);
  return st;
}

/* ---- Counters ---- */

static lode_status on_counted(void *ctx, lode_str name, const meta_value *value, lode_error *err) {
  term_job *job = ctx;
  sqlite3_stmt *s;
  lode__key key;
  TRY(find_key(job->tx, job->cid, name, &key, err));
  if (!key.counted) return LODE_OK;
  TRY(lode__stmt(job->tx, LODE__STMT_COUNTER_ADD, &s, err));
  sqlite3_bind_int64(s, 1, key.kid);
  bind_value(s, 2, value, SIZE_MAX);
  sqlite3_bind_int(s, 3, job->delta);
  TRY(lode__run(job->tx, s, err));
  if (job->delta > 0) return LODE_OK;
  TRY(lode__stmt(job->tx, LODE__STMT_COUNTER_TRIM, &s, err));
  sqlite3_bind_int64(s, 1, key.kid);
  bind_value(s, 2, value, SIZE_MAX);
  return lode__run(job->tx, s, err);
}

lode_status lode__counters_change(lode__tx *tx, int64_t cid, lode_str metadata, int delta, lode_error *err) {
  term_job job = {tx, cid, 0, 0, delta};
  return each_value(tx, metadata, on_counted, &job, err);
}

/* Rows of (value, count). */
static lode_status each_count(lode__tx *tx, int which, int64_t key, lode__counter_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  meta_value value;
  lode_status st = LODE_OK;
  TRY(lode__stmt(tx, which, &s, err));
  sqlite3_bind_int64(s, 1, key);
  for (;;) {
    TRY(lode__step(tx, s, &row, err));
    if (!row) break;
    column_value(s, 0, &value);
    st = fn(ctx, &value, (uint64_t)sqlite3_column_int64(s, 1), err);
    if (st != LODE_OK) break;
  }
  sqlite3_reset(s);
  return st;
}

lode_status lode__counter_each(lode__tx *tx, int64_t cid, lode_str name, lode__counter_fn *fn, void *ctx, lode_error *err) {
  lode__key key;
  char quoted[256];
  TRY(find_key(tx, cid, name, &key, err));
  if (key.counted) return each_count(tx, LODE__STMT_COUNTER_EACH, key.kid, fn, ctx, err);
  return err_set(err, LODE_NOT_FOUND, "%s is not a declared counter of this collection; facets count any key",
                    str_quote(name, quoted, sizeof quoted));
}

lode_status lode__counter_keys(lode__tx *tx, int64_t cid, lode__counter_fn *fn, void *ctx, lode_error *err) {
  return each_count(tx, LODE__STMT_KEY_COUNTED, cid, fn, ctx, err);
}
