/* SPDX-License-Identifier: Apache-2.0 */
/* store_record.c - reading records, documents and vectors. Every row that is returned has a verified checksum. */
#include "store/row_checksums.h"
#include "store/tx.h"

/* Columns of the SELECTs on record. */
enum { REC_COL_RID, REC_COL_ID, REC_COL_SEQ, REC_COL_VID, REC_COL_DOC, REC_COL_META, REC_COL_CRC };

static lode_status rec_damaged(store_tx *tx, const char *what, int64_t key, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "%s %lld in %s fails its checksum; run `lode db verify`, then `lode db salvage`",
                 what, (long long)key, tx->db->path);
}

static lode_status rec_from_row(store_tx *tx, sqlite3_stmt *s, store_rec *rec, lode_error *err) {
  rec->rid = store_column_int(s, REC_COL_RID);
  rec->seq = (uint64_t)store_column_int(s, REC_COL_SEQ);
  rec->vid = store_column_int(s, REC_COL_VID);
  rec->has_document = !store_column_is_null(s, REC_COL_DOC);
  rec->id = store_column_str(s, REC_COL_ID);
  rec->metadata = store_column_str(s, REC_COL_META);
  rec->doc_crc = (uint32_t)store_column_int(s, REC_COL_DOC);
  uint32_t crc = (uint32_t)store_column_int(s, REC_COL_CRC);
  if (crc == store_crc_record(rec)) return LODE_OK;
  lode_status st = rec_damaged(tx, "record", rec->rid, err);
  *rec = (store_rec){0};
  return st;
}

/* ---- Dead keys ---- */

typedef struct rec_new_dead {
  int64_t *keys;
  size_t n, cap;
  int64_t gid;
} rec_new_dead;

static lode_status rec_collect_dead(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  rec_new_dead *d = ctx;
  if (!mem_grow(&d->keys, &d->cap, d->n + 1, sizeof *d->keys)) return err_nomem(err);
  d->keys[d->n++] = rid ? rid : vid;
  d->gid = gid;
  return LODE_OK;
}

/* Merges the sorted new keys into the connection's list, from the end. */
static lode_status rec_merge_dead(store_conn *c, const rec_new_dead *d, lode_error *err) {
  if (!mem_grow(&c->dead, &c->cap_dead, c->n_dead + d->n, sizeof *c->dead)) return err_nomem(err);
  size_t old = c->n_dead, new = d->n;
  while (new) {
    bool take_old = old && c->dead[old - 1] > d->keys[new - 1];
    c->dead[old + new - 1] = take_old ? c->dead[old - 1] : d->keys[new - 1];
    take_old ? old-- : new --;
  }
  c->n_dead += d->n;
  return LODE_OK;
}

/* Makes conn->dead hold the dead keys of a collection as this transaction sees them. A long list is not read again
 * for each short transaction: the connection keeps it, and only newer tombstones are read. */
static lode_status rec_load_dead(store_tx *tx, int64_t cid, lode_error *err) {
  store_conn *c = tx->conn;
  rec_new_dead d = {0};
  lode_status st = LODE_OK;
  if (tx->dead_cid == cid) return LODE_OK;
  tx->dead_cid = 0;
  if (c->dead_cid == cid && c->n_dead && tx->cursor >= c->dead_cursor) {
    int64_t low_water;
    TRY(store_tombstone_low_water(tx, cid, &low_water, err));
    if (low_water >= c->dead_gid) c->dead_cid = 0; /* all keys in the list were erased */
  }
  if (c->dead_cid != cid || tx->cursor < c->dead_cursor) {
    c->dead_cid = 0;
    c->n_dead = 0;
    c->dead_gid = 0;
  }
  if (c->dead_cid != cid || tx->cursor != c->dead_cursor) {
    c->dead_cid = 0; /* invalid until the new keys are merged */
    d.gid = c->dead_gid;
    TRY_GOTO(store_tombstone_each(tx, cid, c->dead_gid, rec_collect_dead, &d, err));
    if (d.n) qsort(d.keys, d.n, sizeof *d.keys, sort_cmp_i64);
    if (d.n) TRY_GOTO(rec_merge_dead(c, &d, err));
  }
  c->dead_cid = tx->dead_cid = cid;
  c->dead_gid = d.gid ? d.gid : c->dead_gid;
  c->dead_cursor = tx->cursor;
done:
  mem_free(d.keys);
  return st;
}

/* `key` is a rid or a vid: both come from one counter and are never equal. */
static bool rec_is_dead(const store_tx *tx, int64_t key) {
  const store_conn *c = tx->conn;
  return c->n_dead && bsearch(&key, c->dead, c->n_dead, sizeof key, sort_cmp_i64);
}

lode_status store_rec_is_live(store_tx *tx, int64_t rid, bool *alive, lode_error *err) {
  *alive = false;
  TRY(rec_load_dead(tx, store_key_cid(rid), err));
  *alive = !rec_is_dead(tx, rid);
  return LODE_OK;
}

/* ---- Single records ---- */

lode_status store_rec_read(store_tx *tx, int64_t rid, store_rec *rec, bool *found, lode_error *err) {
  *rec = (store_rec){0};
  *found = false;
  TRY(rec_load_dead(tx, store_key_cid(rid), err));
  return rec_is_dead(tx, rid) ? LODE_OK : store_rec_read_live(tx, rid, rec, found, err);
}

lode_status store_rec_read_live(store_tx *tx, int64_t rid, store_rec *rec, bool *found, lode_error *err) {
  sqlite3_stmt *s;
  *rec = (store_rec){0};
  *found = false;
  TRY(store_stmt_key(tx, STORE_STMT_RECORD_GET, rid, &s, err));
  TRY(store_stmt_step(tx, s, found, err));
  if (!*found) {
    store_stmt_reset(s);
    return LODE_OK;
  }
  lode_status st = rec_from_row(tx, s, rec, err);
  *found = st == LODE_OK;
  return st;
}

lode_status store_rec_document(store_tx *tx, int64_t rid, lode_str *document, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  *document = (lode_str){NULL, 0};
  TRY(store_stmt_key(tx, STORE_STMT_DOCUMENT_GET, rid, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  if (!row) return rec_damaged(tx, "the document of record", rid, err);
  *document = store_column_str(s, 0);
  if ((uint32_t)store_column_int(s, 1) == store_crc_document(rid, *document)) return LODE_OK;
  *document = (lode_str){NULL, 0};
  return rec_damaged(tx, "the document of record", rid, err);
}

lode_status store_rec_document_bytes(store_tx *tx, int64_t rid, uint64_t *bytes, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  *bytes = 0;
  TRY(store_stmt_key(tx, STORE_STMT_DOCUMENT_GET, rid, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  if (row) *bytes = store_column_str(s, 0).len;
  store_stmt_reset(s);
  return row ? LODE_OK : rec_damaged(tx, "the document of record", rid, err);
}

lode_status store_rec_vector(store_tx *tx, int64_t vid, float *out, uint32_t dim, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  TRY(store_stmt_key(tx, STORE_STMT_VECTOR_GET, vid, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  if (!row) return rec_damaged(tx, "vector", vid, err);
  lode_str data = store_column_str(s, 2);
  int64_t rid = store_column_int(s, 1);
  uint32_t crc = (uint32_t)store_column_int(s, 3);
  if (data.len != (size_t)dim * sizeof(float) || crc != store_crc_vector(vid, rid, data.data, data.len)) {
    store_stmt_reset(s);
    return rec_damaged(tx, "vector", vid, err);
  }
  memcpy(out, data.data, data.len);
  store_stmt_reset(s);
  return LODE_OK;
}

lode_status store_vec_get(store_tx *tx, int64_t vid, float *out, uint32_t dim, bool *found, lode_error *err) {
  int64_t rid = 0;
  TRY(store_vec_owner(tx, vid, &rid, err));
  *found = rid != 0;
  return *found ? store_rec_vector(tx, vid, out, dim, err) : LODE_OK;
}

/* ---- Scans ---- */

static lode_status rec_begin_scan(store_tx *tx, int which, int64_t cid, int64_t after, sqlite3_stmt **scan,
                                  lode_error *err) {
  int64_t first = store_key_before_first(cid);
  *scan = NULL;
  TRY(rec_load_dead(tx, cid, err));
  return store_stmt_range(tx, which, after > first ? after : first, store_key_last(cid), scan, err);
}

lode_status store_rec_scan(store_tx *tx, int64_t cid, int64_t after_rid, lode_error *err) {
  return rec_begin_scan(tx, STORE_STMT_RECORD_SCAN, cid, after_rid, &tx->rec_scan, err);
}

lode_status store_rec_scan_pending(store_tx *tx, int64_t cid, int64_t after_rid, lode_error *err) {
  return rec_begin_scan(tx, STORE_STMT_RECORD_PENDING, cid, after_rid, &tx->rec_scan, err);
}

lode_status store_rec_next(store_tx *tx, store_rec *rec, bool *more, lode_error *err) {
  *rec = (store_rec){0};
  do {
    TRY(store_stmt_step(tx, tx->rec_scan, more, err));
    if (!*more) {
      store_stmt_reset(tx->rec_scan);
      return LODE_OK;
    }
  } while (rec_is_dead(tx, store_column_int(tx->rec_scan, REC_COL_RID)));
  lode_status st = rec_from_row(tx, tx->rec_scan, rec, err);
  *more = st == LODE_OK;
  return st;
}

lode_status store_rec_count(store_tx *tx, int64_t cid, uint64_t *n, lode_error *err) {
  sqlite3_stmt *s;
  bool more = true;
  *n = 0;
  TRY(rec_begin_scan(tx, STORE_STMT_RECORD_KEYS, cid, 0, &s, err));
  for (;;) {
    TRY(store_stmt_step(tx, s, &more, err));
    if (!more) break;
    *n += !rec_is_dead(tx, store_column_int(s, 0));
  }
  store_stmt_reset(s);
  return LODE_OK;
}

lode_status store_vec_scan(store_tx *tx, int64_t cid, int64_t after_vid, lode_error *err) {
  return rec_begin_scan(tx, STORE_STMT_VECTOR_SCAN, cid, after_vid, &tx->vec_scan, err);
}

lode_status store_vec_next_key(store_tx *tx, int64_t *vid, int64_t *rid, bool *more, lode_error *err) {
  do {
    TRY(store_stmt_step(tx, tx->vec_scan, more, err));
    if (!*more) {
      store_stmt_reset(tx->vec_scan);
      return LODE_OK;
    }
    *vid = store_column_int(tx->vec_scan, 0);
    *rid = store_column_int(tx->vec_scan, 1);
  } while (rec_is_dead(tx, *rid) || rec_is_dead(tx, *vid));
  return LODE_OK;
}

lode_status store_vec_next(store_tx *tx, int64_t *vid, int64_t *rid, const void **data, uint32_t *dim, bool *more,
                           lode_error *err) {
  TRY(store_vec_next_key(tx, vid, rid, more, err));
  if (!*more) return LODE_OK;
  lode_str bytes = store_column_str(tx->vec_scan, 2);
  *data = bytes.data;
  *dim = (uint32_t)(bytes.len / sizeof(float));
  uint32_t crc = (uint32_t)store_column_int(tx->vec_scan, 3);
  if (bytes.len > LODE_MAX_DIMENSION * sizeof(float) || crc != store_crc_vector(*vid, *rid, bytes.data, bytes.len)) {
    *more = false;
    return rec_damaged(tx, "vector", *vid, err);
  }
  return LODE_OK;
}

lode_status store_vec_scan_keys(store_tx *tx, int64_t cid, int64_t after_vid, lode_error *err) {
  return rec_begin_scan(tx, STORE_STMT_VECTOR_KEYS, cid, after_vid, &tx->vec_scan, err);
}
