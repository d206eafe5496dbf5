/* SPDX-License-Identifier: Apache-2.0 */
/* tombstones.c - records and vectors that were deleted but not erased yet.
 *
 * Every dead record and every replaced vector has a number of its own (gid), in order of deletion. A row of table
 * grave is one vector, or a run of records that were deleted together: their keys in ascending order, the first as
 * its distance from store_key_before_first(), each other one as its distance from the previous one, in LEB128. The
 * row's key is the gid of its last record; the gids of the records before it count down. So deleting a million
 * records writes some thousand small rows, in the order in which the records will be erased.
 */
#include "store/row_checksums.h"
#include "store/tombstones.h"

static size_t tombstone_put_varint(unsigned char *out, uint64_t v) {
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
  out[n++] = (unsigned char)v;
  return n;
}

/* Returns the number of bytes read, or 0 if they are not a number below 2^42. */
static size_t tombstone_get_varint(const unsigned char *p, size_t left, uint64_t *v) {
  *v = 0;
  for (size_t n = 0; n < left && n < 6; n++) {
    *v |= (uint64_t)(p[n] & 0x7F) << (7 * n);
    if (p[n] < 0x80) return n + 1;
  }
  return 0;
}

bool store_tombstone_decode(int64_t gid, lode_str rids, int64_t vid, store_tombstone *tombstone) {
  int64_t key = store_key_before_first(store_key_cid(gid)), last = store_key_last(store_key_cid(gid));
  *tombstone = (store_tombstone){.gid = gid, .vid = vid};
  if (vid) return rids.len == 0 && store_key_cid(vid) == store_key_cid(gid);
  for (size_t at = 0, taken; at < rids.len; at += taken) {
    uint64_t step;
    taken = tombstone_get_varint((const unsigned char *)rids.data + at, rids.len - at, &step);
    if (!taken || step == 0 || step > (uint64_t)(last - key) || tombstone->n == STORE_TOMBSTONE_MAX_RIDS) return false;
    key += (int64_t)step;
    tombstone->rids[tombstone->n++] = key;
  }
  return tombstone->n > 0 && tombstone->n <= (size_t)(gid - store_key_before_first(store_key_cid(gid)));
}

static size_t tombstone_encode(int64_t cid, const int64_t *rids, size_t n, unsigned char *out) {
  int64_t before = store_key_before_first(cid);
  size_t len = 0;
  for (size_t i = 0; i < n; i++) {
    len += tombstone_put_varint(out + len, (uint64_t)(rids[i] - before));
    before = rids[i];
  }
  return len;
}

static lode_status tombstone_write_row(store_tx *tx, int which, int64_t gid, const int64_t *rids, size_t n, int64_t vid,
                                       lode_error *err) {
  unsigned char bytes[STORE_TOMBSTONE_MAX_RIDS * 6];
  sqlite3_stmt *s;
  ENSURE(n <= STORE_TOMBSTONE_MAX_RIDS && (n == 0) == (vid != 0), err);
  for (size_t i = 0; i < n; i++)
    ENSURE(store_key_cid(rids[i]) == store_key_cid(gid) && (i == 0 || rids[i] > rids[i - 1]), err);
  lode_str coded = {(const char *)bytes, tombstone_encode(store_key_cid(gid), rids, n, bytes)};
  TRY(store_stmt_key(tx, which, gid, &s, err));
  store_bind_blob(tx, s, 2, coded);
  store_bind_int(tx, s, 3, vid);
  store_bind_int(tx, s, 4, store_crc_tombstone(gid, coded, vid));
  lode_status st = store_stmt_run(tx, s, err);
  (void)sqlite3_clear_bindings(s); /* they point to this stack frame */
  return st;
}

static lode_status tombstone_add(store_tx *tx, store_coll *coll, const int64_t *rids, size_t n, int64_t vid,
                                 lode_error *err) {
  uint64_t seq = 0;
  size_t dead = vid ? 1 : n;
  for (size_t i = 0; i < dead; i++) TRY(store_tx_next_seq(tx, &seq, err));
  coll->tombstones += dead;
  tx->dead_cid = 0;
  return tombstone_write_row(tx, STORE_STMT_TOMBSTONE_PUT, store_key_make(coll->cid, seq), rids, n, vid, err);
}

lode_status store_tombstone_add_vector(store_tx *tx, store_coll *coll, int64_t vid, lode_error *err) {
  return tombstone_add(tx, coll, NULL, 0, vid, err);
}

lode_status store_tombstone_add_records(store_tx *tx, store_coll *coll, const int64_t *rids, size_t n,
                                        lode_error *err) {
  for (size_t at = 0, some; at < n; at += some) {
    some = n - at < STORE_TOMBSTONE_MAX_RIDS ? n - at : STORE_TOMBSTONE_MAX_RIDS;
    TRY(tombstone_add(tx, coll, rids + at, some, 0, err));
  }
  return LODE_OK;
}

lode_status store_tombstone_trim(store_tx *tx, const store_tombstone *tombstone, size_t first, lode_error *err) {
  if (first < tombstone->n)
    return tombstone_write_row(tx, STORE_STMT_TOMBSTONE_SET, tombstone->gid, tombstone->rids + first,
                               tombstone->n - first, 0, err);
  return store_run_key(tx, STORE_STMT_TOMBSTONE_DELETE, tombstone->gid, err);
}

/* ---- Reading ---- */

lode_status store_tombstone_read(store_tx *tx, sqlite3_stmt *s, store_tombstone *tombstone, lode_error *err) {
  int64_t gid = store_column_int(s, 0), vid = store_column_int(s, 2);
  lode_str rids = store_column_str(s, 1);
  bool proven = (uint32_t)store_column_int(s, 3) == store_crc_tombstone(gid, rids, vid);
  if (proven && store_tombstone_decode(gid, rids, vid, tombstone)) return LODE_OK;
  return err_set(err, LODE_CORRUPT,
                 "tombstone %lld in %s fails its checksum; run `lode db verify`, then `lode db "
                 "salvage`",
                 (long long)gid, tx->db->path);
}

/* Calls fn for the entries of one row with a gid > after_gid. */
static lode_status tombstone_each_in_row(const store_tombstone *g, int64_t after_gid, store_tombstone_fn *fn, void *ctx,
                                         lode_error *err) {
  if (g->vid) return fn(ctx, g->gid, 0, g->vid, err);
  int64_t first = g->gid - (int64_t)g->n + 1;
  size_t i = after_gid >= first ? (size_t)(after_gid - first) + 1 : 0;
  for (; i < g->n; i++) TRY(fn(ctx, first + (int64_t)i, g->rids[i], 0, err));
  return LODE_OK;
}

lode_status store_tombstone_each(store_tx *tx, int64_t cid, int64_t after_gid, store_tombstone_fn *fn, void *ctx,
                                 lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  lode_status st;
  store_tombstone tombstone;
  TRY(store_stmt(tx, STORE_STMT_TOMBSTONE_SCAN, &s, err));
  int64_t first = store_key_before_first(cid);
  store_bind_int(tx, s, 1, after_gid > first ? after_gid : first);
  store_bind_int(tx, s, 2, store_key_last(cid));
  for (;;) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    TRY_GOTO(store_tombstone_read(tx, s, &tombstone, err));
    TRY_GOTO(tombstone_each_in_row(&tombstone, after_gid, fn, ctx, err));
  }
  st = LODE_OK;
done:
  store_stmt_reset(s);
  return st;
}

lode_status store_tombstone_low_water(store_tx *tx, int64_t cid, int64_t *gid, lode_error *err) {
  store_coll c;
  *gid = 0;
  TRY(store_coll_load(tx, cid, NULL, &c, err));
  *gid = c.low_water;
  return LODE_OK;
}
