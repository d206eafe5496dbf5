/* sizes.c - about how long documents are, in one byte each.
 *
 * A search by words that ranks has to know how long each candidate's document is, and a common word has a hundred thousand
 * candidates: to read the documents themselves would be a page for each. So the text index keeps, for a block of LODE__SIZES keys
 * in one row, a byte for each: three bits behind the leading one of (bytes + 1), rounded down, so that what is read is never more
 * than the truth and hardly less. 0: not known. Keys are given once, so that a byte never speaks of another record.
 */
#include "db.h"

enum { MANTISSA = 3 };

unsigned lode__size_code(uint64_t bytes) {
  uint64_t v = bytes + 1;
  unsigned e = 63u - (unsigned)__builtin_clzll(v), m = (unsigned)(v << MANTISSA >> e) & ((1u << MANTISSA) - 1);
  unsigned code = 1 + (e << MANTISSA) + m;
  return code < 255 ? code : 255;
}

uint64_t lode__size_least(unsigned code) {
  if (code == 0) return 0;
  unsigned e = (code - 1) >> MANTISSA, m = (code - 1) & ((1u << MANTISSA) - 1);
  return ((((uint64_t)1 << MANTISSA) + m) << e >> MANTISSA) - 1;
}

static lode_status load_block(lode__tx *tx, lode__sizes *z, int64_t block, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  z->loaded = false;
  memset(z->codes, 0, sizeof z->codes);
  TRY(lode__stmt(tx, LODE__STMT_SIZES_GET, &s, err));
  sqlite3_bind_int64(s, 1, block);
  TRY(lode__step(tx, s, &row, err));
  if (row) {
    lode_str codes = lode__column(s, 0);
    if (codes.data) memcpy(z->codes, codes.data, codes.len < sizeof z->codes ? codes.len : sizeof z->codes);
  }
  sqlite3_reset(s);
  z->block = block;
  z->loaded = true;
  return LODE_OK;
}

static lode_status need_block(lode__tx *tx, lode__sizes *z, int64_t rid, lode_error *err) {
  int64_t block = rid / LODE__SIZES;
  if (z->loaded && z->block == block) return LODE_OK;
  TRY(lode__sizes_flush(tx, z, err));
  return load_block(tx, z, block, err);
}

lode_status lode__sizes_flush(lode__tx *tx, lode__sizes *z, lode_error *err) {
  sqlite3_stmt *s;
  if (!z->changed) return LODE_OK;
  TRY(lode__stmt(tx, LODE__STMT_SIZES_PUT, &s, err));
  sqlite3_bind_int64(s, 1, z->block);
  sqlite3_bind_blob(s, 2, z->codes, sizeof z->codes, SQLITE_STATIC);
  z->changed = false;
  return lode__run(tx, s, err);
}

lode_status lode__sizes_put(lode__tx *tx, lode__sizes *z, int64_t rid, uint64_t bytes, lode_error *err) {
  TRY(need_block(tx, z, rid, err));
  z->codes[rid % LODE__SIZES] = (unsigned char)lode__size_code(bytes);
  z->changed = true;
  return LODE_OK;
}

lode_status lode__sizes_get(lode__tx *tx, lode__sizes *z, int64_t rid, uint64_t *least, lode_error *err) {
  TRY(need_block(tx, z, rid, err));
  *least = lode__size_least(z->codes[rid % LODE__SIZES]);
  return LODE_OK;
}

lode_status lode__sizes_erase(lode__tx *tx, int64_t cid, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, LODE__STMT_SIZES_ERASE, &s, err));
  sqlite3_bind_int64(s, 1, lode__key_first(cid) / LODE__SIZES);
  sqlite3_bind_int64(s, 2, lode__key_last(cid) / LODE__SIZES);
  return lode__run(tx, s, err);
}
