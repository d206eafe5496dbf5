/* graves.c - what died and is not erased yet.
 *
 * Every dead record and every replaced vector has a number of its own (gid), in order of death. A row of table grave is
 * one vector, or a run of records that died together: their keys in rising order, the first as its distance from the
 * collection's first key, each further one as its distance from the one before, in LEB128. The row's key is the gid of the
 * last; those before it count down. So a deletion of a million records is some thousand small rows, in the order in
 * which they will be erased.
 */
#include "db.h"

static size_t put_number(unsigned char *out, uint64_t v) {
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = (unsigned char)(v | 0x80);
  out[n++] = (unsigned char)v;
  return n;
}

/* Bytes taken, or 0 when they are no number below 2^42. */
static size_t take_number(const unsigned char *p, size_t left, uint64_t *v) {
  *v = 0;
  for (size_t n = 0; n < left && n < 6; n++) {
    *v |= (uint64_t)(p[n] & 0x7F) << (7 * n);
    if (p[n] < 0x80) return n + 1;
  }
  return 0;
}

bool lode__grave_decode(int64_t gid, lode_str rids, int64_t vid, lode__grave *tombstone) {
  int64_t key = lode__key_first(lode__key_cid(gid)), last = lode__key_last(lode__key_cid(gid));
  *tombstone = (lode__grave){.gid = gid, .vid = vid};
  if (vid) return rids.len == 0 && lode__key_cid(vid) == lode__key_cid(gid);
  for (size_t at = 0, taken; at < rids.len; at += taken) {
    uint64_t step;
    taken = take_number((const unsigned char *)rids.data + at, rids.len - at, &step);
    if (!taken || step == 0 || step > (uint64_t)(last - key) || tombstone->n == LODE__GRAVE_MOST) return false;
    key += (int64_t)step;
    tombstone->rids[tombstone->n++] = key;
  }
  return tombstone->n > 0 && tombstone->n <= (size_t)(gid - lode__key_first(lode__key_cid(gid)));
}

static size_t encode(int64_t cid, const int64_t *rids, size_t n, unsigned char *out) {
  int64_t before = lode__key_first(cid);
  size_t len = 0;
  for (size_t i = 0; i < n; i++) {
    len += put_number(out + len, (uint64_t)(rids[i] - before));
    before = rids[i];
  }
  return len;
}

static lode_status write_row(lode__tx *tx, int which, int64_t gid, const int64_t *rids, size_t n, int64_t vid, lode_error *err) {
  unsigned char bytes[LODE__GRAVE_MOST * 6];
  sqlite3_stmt *s;
  lode_str coded = {(const char *)bytes, encode(lode__key_cid(gid), rids, n, bytes)};
  TRY(lode__stmt(tx, which, &s, err));
  sqlite3_bind_int64(s, 1, gid);
  sqlite3_bind_blob64(s, 2, coded.data, coded.len, SQLITE_STATIC);
  sqlite3_bind_int64(s, 3, vid);
  sqlite3_bind_int64(s, 4, lode__crc_grave(gid, coded, vid));
  lode_status st = lode__run(tx, s, err);
  sqlite3_clear_bindings(s); /* they point to our stack */
  return st;
}

static lode_status dig(lode__tx *tx, lode__coll *coll, const int64_t *rids, size_t n, int64_t vid, lode_error *err) {
  uint64_t seq = 0;
  size_t dead = vid ? 1 : n;
  for (size_t i = 0; i < dead; i++) TRY(lode__tx_next(tx, &seq, err));
  coll->tombstones += dead;
  tx->dead_cid = 0;
  return write_row(tx, LODE__STMT_GRAVE_PUT, lode__key_of(coll->cid, seq), rids, n, vid, err);
}

lode_status lode__grave_dig_vector(lode__tx *tx, lode__coll *coll, int64_t vid, lode_error *err) {
  return dig(tx, coll, NULL, 0, vid, err);
}

lode_status lode__grave_dig_records(lode__tx *tx, lode__coll *coll, const int64_t *rids, size_t n, lode_error *err) {
  for (size_t at = 0, some; at < n; at += some) {
    some = n - at < LODE__GRAVE_MOST ? n - at : LODE__GRAVE_MOST;
    TRY(dig(tx, coll, rids + at, some, 0, err));
  }
  return LODE_OK;
}

lode_status lode__grave_shorten(lode__tx *tx, const lode__grave *tombstone, size_t first, lode_error *err) {
  if (first < tombstone->n) return write_row(tx, LODE__STMT_GRAVE_SET, tombstone->gid, tombstone->rids + first, tombstone->n - first, 0, err);
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, LODE__STMT_GRAVE_DELETE, &s, err));
  sqlite3_bind_int64(s, 1, tombstone->gid);
  return lode__run(tx, s, err);
}

/* ---- Reading ---- */

lode_status lode__grave_read(lode__tx *tx, sqlite3_stmt *s, lode__grave *tombstone, lode_error *err) {
  int64_t gid = sqlite3_column_int64(s, 0), vid = sqlite3_column_int64(s, 2);
  lode_str rids = lode__column(s, 1);
  bool proven = (uint32_t)sqlite3_column_int64(s, 3) == lode__crc_grave(gid, rids, vid);
  if (proven && lode__grave_decode(gid, rids, vid, tombstone)) return LODE_OK;
  return err_set(err, LODE_CORRUPT, "the note of a deletion (%lld) in %s fails its checksum; run `lode db verify`, then `lode db "
                                       "salvage`", (long long)gid, tx->db->path);
}

/* One row's dead behind after_gid. */
static lode_status each_of(const lode__grave *g, int64_t after_gid, lode__grave_fn *fn, void *ctx, lode_error *err) {
  if (g->vid) return fn(ctx, g->gid, 0, g->vid, err);
  int64_t first = g->gid - (int64_t)g->n + 1;
  size_t i = after_gid >= first ? (size_t)(after_gid - first) + 1 : 0;
  for (; i < g->n; i++) TRY(fn(ctx, first + (int64_t)i, g->rids[i], 0, err));
  return LODE_OK;
}

lode_status lode__grave_each(lode__tx *tx, int64_t cid, int64_t after_gid, lode__grave_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  lode_status st;
  lode__grave tombstone;
  TRY(lode__stmt(tx, LODE__STMT_GRAVE_SCAN, &s, err));
  int64_t first = lode__key_first(cid);
  sqlite3_bind_int64(s, 1, after_gid > first ? after_gid : first);
  sqlite3_bind_int64(s, 2, lode__key_last(cid));
  for (;;) {
    TRY(lode__step(tx, s, &row, err));
    if (!row) break;
    TRY_GOTO(lode__grave_read(tx, s, &tombstone, err));
    TRY_GOTO(each_of(&tombstone, after_gid, fn, ctx, err));
  }
  st = LODE_OK;
done:
  sqlite3_reset(s);
  return st;
}

lode_status lode__grave_horizon(lode__tx *tx, int64_t cid, int64_t *gid, lode_error *err) {
  lode__coll c;
  *gid = 0;
  TRY(lode__coll_load(tx, cid, NULL, &c, err));
  *gid = c.low_water;
  return LODE_OK;
}
