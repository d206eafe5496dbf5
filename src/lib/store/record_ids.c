/* SPDX-License-Identifier: Apache-2.0 */
/* record_ids.c - the index from an id to its record.
 *
 * An id has at most one row, in table `name` or in `fresh`; both have the same columns. New ids go to `fresh`, which
 * is small: ids come in no order, so in a large table each would touch another page, to be journaled and written at
 * every commit. When `fresh` grows beyond its limit, the same transaction moves all its rows to `name`, in order. The
 * number of rows of `fresh` is kept in table state.
 *
 * A deletion leaves the id in place (tombstones.c): its record is alive, or has a tombstone and is skipped here. The
 * row is removed when the record is erased, or when its id is used again.
 */
#include "store/record_ids.h"

/* `fresh` may hold store_fresh_min_rows rows, plus 1/FRESH_FRACTION of the records of the collection being written. */
int64_t store_fresh_min_rows = 16384;
#define FRESH_FRACTION 32

/* ---- The row count of `fresh` ---- */

static lode_status ids_load_fresh_count(store_tx *tx, lode_error *err) {
  if (tx->fresh_known) return LODE_OK;
  TRY(store_state_get(tx, STORE_STATE_FRESH, &tx->fresh, err));
  tx->fresh_saved = tx->fresh;
  tx->fresh_known = true;
  return LODE_OK;
}

lode_status store_ids_save(store_tx *tx, lode_error *err) {
  if (!tx->fresh_known || tx->fresh == tx->fresh_saved) return LODE_OK;
  TRY(store_state_put(tx, STORE_STATE_FRESH, tx->fresh, err));
  tx->fresh_saved = tx->fresh;
  return LODE_OK;
}

/* ---- Lookup ---- */

static lode_status ids_err_outside(store_tx *tx, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the name table of %s points outside of its collection", tx->db->path);
}

lode_status store_rec_find(store_tx *tx, int64_t cid, lode_str id, int64_t *rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, alive;
  *rid = 0;
  TRY(store_stmt_key(tx, STORE_STMT_NAME_GET, cid, &s, err));
  store_bind_blob(tx, s, 2, id);
  TRY(store_stmt_step(tx, s, &row, err));
  int64_t found = row ? store_column_int(s, 0) : 0;
  store_stmt_reset(s);
  if (!row) return LODE_OK;
  if (store_key_cid(found) != cid) return ids_err_outside(tx, err);
  TRY(store_rec_is_live(tx, found, &alive, err));
  if (alive) *rid = found;
  return LODE_OK;
}

/* Looks up conn->batch in one of the two tables. */
static lode_status ids_find_in_table(store_tx *tx, int which, int64_t cid, store_id_entry *entries, size_t n,
                                     lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  TRY(store_stmt_key(tx, which, cid, &s, err));
  for (;;) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    int64_t at = store_column_int(s, 0), rid = store_column_int(s, 1);
    if (at < 0 || (uint64_t)at >= n || store_key_cid(rid) != cid) {
      store_stmt_reset(s);
      return ids_err_outside(tx, err);
    }
    entries[at] = (store_id_entry){.rid = rid, .len = store_column_int(s, 2)};
  }
  store_stmt_reset(s);
  return LODE_OK;
}

lode_status store_ids_find(store_tx *tx, int64_t cid, const lode_str *ids, size_t n, store_id_entry *entries,
                           lode_error *err) {
  memset(entries, 0, n * sizeof *entries);
  if (n == 0) return LODE_OK;
  TRY(ids_load_fresh_count(tx, err));
  ENSURE(tx->conn->batch.n == 0, err);
  tx->conn->batch = (store_batch){.ids = ids, .n = n};
  lode_status st = ids_find_in_table(tx, STORE_STMT_NAMES_FIND, cid, entries, n, err);
  if (st == LODE_OK && tx->fresh) st = ids_find_in_table(tx, STORE_STMT_FRESH_FIND, cid, entries, n, err);
  tx->conn->batch = (store_batch){0};
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    bool alive = true;
    if (entries[i].rid) st = store_rec_is_live(tx, entries[i].rid, &alive, err);
    entries[i].dead = !alive;
  }
  return st;
}

/* ---- Many at once ---- */

enum { IDS_LOOKUP_BATCH = 1024 };
#define IDS_WALK_FRACTION 8 /* from 1/8 of the collection's ids on, a walk through all is cheaper than lookups */

static lode_status ids_each_by_lookup(store_tx *tx, int64_t cid, const lode_str *ids, size_t n, store_id_fn *fn,
                                      void *ctx, lode_error *err) {
  store_id_entry entries[IDS_LOOKUP_BATCH];
  for (size_t at = 0, some; at < n; at += some) {
    some = n - at < IDS_LOOKUP_BATCH ? n - at : IDS_LOOKUP_BATCH;
    TRY(store_ids_find(tx, cid, ids + at, some, entries, err));
    for (size_t i = 0; i < some; i++) {
      int order = at + i > 0 ? str_cmp(ids[at + i - 1], ids[at + i]) : -1;
      ENSURE(order <= 0, err); /* sorted by the caller */
      if (entries[i].rid && !entries[i].dead && order != 0) TRY(fn(ctx, &entries[i], err));
    }
  }
  return LODE_OK;
}

/* Merges the sorted ids with a scan of one table from the first id on. */
static lode_status ids_each_by_walk(store_tx *tx, int which, int64_t cid, const lode_str *ids, size_t n,
                                    store_id_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row, alive;
  lode_status st;
  TRY(store_stmt_key(tx, which, cid, &s, err));
  store_bind_blob(tx, s, 2, ids[0]);
  for (size_t i = 0; i < n;) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    lode_str id = store_column_str(s, 0);
    int order = -1;
    while (i < n && (order = str_cmp(ids[i], id)) < 0) i++;
    if (i == n || order != 0) continue;
    store_id_entry entry = {.rid = store_column_int(s, 1), .len = store_column_int(s, 2)};
    TRY_GOTO(store_key_cid(entry.rid) == cid ? LODE_OK : ids_err_outside(tx, err));
    TRY_GOTO(store_rec_is_live(tx, entry.rid, &alive, err));
    if (alive) TRY_GOTO(fn(ctx, &entry, err));
    i++;
  }
  st = LODE_OK;
done:
  store_stmt_reset(s);
  return st;
}

lode_status store_ids_each(store_tx *tx, const store_coll *coll, const lode_str *ids, size_t n, store_id_fn *fn,
                           void *ctx, lode_error *err) {
  if (n == 0) return LODE_OK;
  if (n < IDS_LOOKUP_BATCH || n < (coll->records + coll->tombstones) / IDS_WALK_FRACTION)
    return ids_each_by_lookup(tx, coll->cid, ids, n, fn, ctx, err);
  TRY(ids_load_fresh_count(tx, err));
  TRY(ids_each_by_walk(tx, STORE_STMT_NAMES_WALK, coll->cid, ids, n, fn, ctx, err));
  return tx->fresh ? ids_each_by_walk(tx, STORE_STMT_FRESH_WALK, coll->cid, ids, n, fn, ctx, err) : LODE_OK;
}

/* ---- Changing ---- */

/* Runs the statement for `fresh` and, if that has no such row, the one for `name`. */
static lode_status id_change(store_tx *tx, int in_fresh, int in_name, int64_t cid, lode_str id, int64_t value,
                             bool *was_fresh, lode_error *err) {
  TRY(ids_load_fresh_count(tx, err));
  *was_fresh = false;
  for (int pass = tx->fresh ? 0 : 1; pass < 2; pass++) {
    sqlite3_stmt *s;
    TRY(store_stmt_key(tx, pass ? in_name : in_fresh, cid, &s, err));
    store_bind_blob(tx, s, 2, id);
    store_bind_int(tx, s, 3, value);
    TRY(store_stmt_run(tx, s, err));
    *was_fresh = pass == 0;
    if (sqlite3_changes(tx->conn->sql)) return LODE_OK;
  }
  *was_fresh = false;
  return LODE_OK;
}

lode_status store_id_set_len(store_tx *tx, int64_t cid, lode_str id, int64_t len, lode_error *err) {
  bool was_fresh;
  return id_change(tx, STORE_STMT_FRESH_SET, STORE_STMT_NAME_SET, cid, id, len, &was_fresh, err);
}

lode_status store_id_remove(store_tx *tx, int64_t cid, lode_str id, int64_t rid, lode_error *err) {
  bool was_fresh;
  TRY(id_change(tx, STORE_STMT_FRESH_DELETE, STORE_STMT_NAME_DELETE, cid, id, rid, &was_fresh, err));
  tx->fresh -= was_fresh;
  return LODE_OK;
}

lode_status store_ids_erase_some(store_tx *tx, int64_t cid, bool *more, lode_error *err) {
  static const int statements[2] = {STORE_STMT_FRESH_ERASE, STORE_STMT_NAME_ERASE};
  *more = true;
  TRY(ids_load_fresh_count(tx, err));
  for (int i = 0; i < 2; i++) {
    TRY(store_run_key(tx, statements[i], cid, err));
    int gone = sqlite3_changes(tx->conn->sql);
    if (i == 0) tx->fresh -= gone;
    if (gone) return LODE_OK;
  }
  *more = false;
  return LODE_OK;
}

/* ---- Adding ---- */

/* Moves all rows of `fresh` to `name`. */
static lode_status ids_merge_fresh(store_tx *tx, lode_error *err) {
  TRY(ids_load_fresh_count(tx, err));
  TRY(store_run(tx, STORE_STMT_FRESH_MOVE, err));
  TRY(store_run(tx, STORE_STMT_FRESH_CLEAR, err));
  tx->fresh = 0;
  return LODE_OK;
}

lode_status store_ids_add(store_tx *tx, const store_coll *coll, const store_new_rec *rows, const size_t *order,
                          size_t n, lode_error *err) {
  TRY(ids_load_fresh_count(tx, err));
  TRY(store_batch_run(tx, STORE_STMT_FRESH_PUT, coll->cid, (store_batch){.rows = rows, .order = order, .n = n}, err));
  tx->fresh += (int64_t)n;
  return tx->fresh > store_fresh_min_rows + (int64_t)(coll->records / FRESH_FRACTION) ? ids_merge_fresh(tx, err)
                                                                                      : LODE_OK;
}
