/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the manifest of the vector index: which segment files exist, what each holds, and which of it is dead.
 *
 * A segment holds the vectors of a collection with after < vid <= last that were alive when it was built. Its row is
 * inserted before its file is created (bytes 0: being built) and completed in the transaction that publishes it,
 * which also removes the rows of the segments that it replaces. So whoever erases a vector can tell from the rows
 * alone whether a file may hold it.
 *
 * Invariant: each vector in a published segment is alive, or has a tombstone, or is in table `dead`, where it is put
 * when it is erased. Rows of `dead` for vectors that are in no file do no harm; builders remove them.
 *
 * Readers ignore rows that fail their checksum: the vectors are then read from the database file.
 */
#include "store/row_checksums.h"
#include "store/tombstones.h"

/* ---- Rows ---- */

static void manifest_row_from_stmt(sqlite3_stmt *s, store_manifest_row *row) {
  *row = (store_manifest_row){
      .id = (uint64_t)store_column_int(s, 0),
      .cid = store_column_int(s, 1),
      .after = store_column_int(s, 2),
      .last = store_column_int(s, 3),
      .rows = (uint32_t)store_column_int(s, 4),
      .kind = (uint32_t)store_column_int(s, 5),
      .bytes = (uint64_t)store_column_int(s, 6),
      .table_crc = (uint32_t)store_column_int(s, 7),
  };
  row->proven = (uint32_t)store_column_int(s, 8) == store_crc_manifest(row) && row->after <= row->last &&
                store_key_cid(row->after) == row->cid && store_key_cid(row->last) == row->cid;
}

lode_status store_manifest_each(store_tx *tx, int64_t cid, store_manifest_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool more;
  lode_status st = LODE_OK;
  TRY(store_stmt(tx, cid ? STORE_STMT_SEGMENT_OF : STORE_STMT_SEGMENT_ALL, &s, err));
  if (cid) store_bind_int(tx, s, 1, cid);
  for (;;) {
    store_manifest_row row;
    TRY(store_stmt_step(tx, s, &more, err));
    if (!more) break;
    manifest_row_from_stmt(s, &row);
    st = fn(ctx, &row, err);
    if (st != LODE_OK) break;
  }
  store_stmt_reset(s);
  return st;
}

lode_status store_manifest_put(store_tx *tx, const store_manifest_row *row, lode_error *err) {
  sqlite3_stmt *s;
  uint64_t seq;
  ENSURE(row->after <= row->last && store_key_cid(row->after) == row->cid && store_key_cid(row->last) == row->cid, err);
  TRY(store_tx_next_seq(tx, &seq, err)); /* moves the cursor, so that readers notice the change */
  TRY(store_stmt_key(tx, STORE_STMT_SEGMENT_PUT, (int64_t)row->id, &s, err));
  store_bind_int(tx, s, 2, row->cid);
  store_bind_int(tx, s, 3, row->after);
  store_bind_int(tx, s, 4, row->last);
  store_bind_int(tx, s, 5, row->rows);
  store_bind_int(tx, s, 6, row->kind);
  store_bind_int(tx, s, 7, (int64_t)row->bytes);
  store_bind_int(tx, s, 8, row->table_crc);
  store_bind_int(tx, s, 9, store_crc_manifest(row));
  tx->segmented_cid = 0;
  return store_stmt_run(tx, s, err);
}

lode_status store_manifest_remove(store_tx *tx, uint64_t id, lode_error *err) {
  uint64_t seq;
  TRY(store_tx_next_seq(tx, &seq, err));
  tx->segmented_cid = 0;
  return store_run_key(tx, STORE_STMT_SEGMENT_DELETE, (int64_t)id, err);
}

lode_status store_manifest_drop_all(store_tx *tx, int64_t cid, lode_error *err) {
  tx->segmented_cid = 0;
  return store_run_key(tx, STORE_STMT_SEGMENT_DROP, cid, err);
}

/* ---- Dead vectors in segments ---- */

/* The last vid that any segment of the collection, finished or being built, may hold. */
static lode_status manifest_last_vid(store_tx *tx, int64_t cid, int64_t *last, lode_error *err) {
  sqlite3_stmt *s;
  if (tx->segmented_cid != cid) {
    TRY(store_stmt_key(tx, STORE_STMT_SEGMENT_LAST, cid, &s, err));
    TRY(store_stmt_int(tx, s, &tx->segmented_last, NULL, err));
    tx->segmented_cid = cid;
  }
  *last = tx->segmented_last;
  return LODE_OK;
}

lode_status store_vec_owner(store_tx *tx, int64_t vid, int64_t *rid, lode_error *err) {
  sqlite3_stmt *s;
  *rid = 0;
  TRY(store_stmt_key(tx, STORE_STMT_VECTOR_OWNER, vid, &s, err));
  return store_stmt_int(tx, s, rid, NULL, err);
}

lode_status store_dead_add(store_tx *tx, int64_t vid, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  int64_t last;
  TRY(manifest_last_vid(tx, store_key_cid(vid), &last, err));
  if (vid > last) return LODE_OK;
  if (!rid) TRY(store_vec_owner(tx, vid, &rid, err));
  if (!rid) return LODE_OK;
  TRY(store_stmt_key(tx, STORE_STMT_DEAD_PUT, vid, &s, err));
  store_bind_int(tx, s, 2, rid);
  return store_stmt_run(tx, s, err);
}

lode_status store_dead_each(store_tx *tx, int64_t after, int64_t last, store_dead_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  lode_status st = LODE_OK;
  TRY(store_stmt_range(tx, STORE_STMT_DEAD_EACH, after, last, &s, err));
  for (;;) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    st = fn(ctx, store_column_int(s, 0), store_column_int(s, 1), err);
    if (st != LODE_OK) break;
  }
  store_stmt_reset(s);
  return st;
}

lode_status store_dead_count(store_tx *tx, int64_t after, int64_t last, uint64_t *n, lode_error *err) {
  sqlite3_stmt *s;
  int64_t count;
  *n = 0;
  TRY(store_stmt_range(tx, STORE_STMT_DEAD_COUNT, after, last, &s, err));
  TRY(store_stmt_int(tx, s, &count, NULL, err));
  *n = (uint64_t)count;
  return LODE_OK;
}

lode_status store_dead_remove(store_tx *tx, const int64_t *vids, size_t n, lode_error *err) {
  for (size_t i = 0; i < n; i++) TRY(store_run_key(tx, STORE_STMT_DEAD_DELETE, vids[i], err));
  return LODE_OK;
}

lode_status store_dead_drop_all(store_tx *tx, int64_t cid, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_range(tx, STORE_STMT_DEAD_DROP, store_key_before_first(cid), store_key_last(cid), &s, err));
  return store_stmt_run(tx, s, err);
}

int64_t store_vec_last(store_tx *tx, int64_t cid) { return store_key_make(cid, tx->cursor); }
int64_t store_vec_before_first(int64_t cid) { return store_key_before_first(cid); }

/* ---- The builder's lock ---- */

lode_status store_build_lock(store_db *db, lode_error *err) { return store_lease_take(db, STORE_LEASE_BUILD, err); }
void store_build_unlock(store_db *db) { store_lease_end(db, STORE_LEASE_BUILD); }
