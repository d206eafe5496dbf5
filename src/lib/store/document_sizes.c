/* SPDX-License-Identifier: Apache-2.0 */
/* document_sizes.c - approximate lengths of documents, one byte each.
 *
 * A ranked text search needs the length of each candidate's document, and a common word has a hundred thousand
 * candidates: reading the documents themselves would cost a page each. So table size has a row for each block of
 * STORE_DOC_SIZES_BLOCK keys, with a byte for each key: the exponent of (bytes + 1) and the three bits after its
 * leading one, rounded down. The decoded length is never more than the real one, and at most an eighth less. 0: not
 * known. Keys are never reused, so a byte always belongs to the same record.
 */
#include "store/db.h"

enum { DOC_SIZE_MANTISSA_BITS = 3 };

unsigned store_doc_size_code(uint64_t bytes) {
  uint64_t v = bytes + 1;
  unsigned e = 63u - (unsigned)__builtin_clzll(v);
  unsigned m = (unsigned)(v << DOC_SIZE_MANTISSA_BITS >> e) & ((1u << DOC_SIZE_MANTISSA_BITS) - 1);
  unsigned code = 1 + (e << DOC_SIZE_MANTISSA_BITS) + m;
  return code < 255 ? code : 255;
}

uint64_t store_doc_size_min(unsigned code) {
  if (code == 0) return 0;
  unsigned e = (code - 1) >> DOC_SIZE_MANTISSA_BITS, m = (code - 1) & ((1u << DOC_SIZE_MANTISSA_BITS) - 1);
  return ((((uint64_t)1 << DOC_SIZE_MANTISSA_BITS) + m) << e >> DOC_SIZE_MANTISSA_BITS) - 1;
}

static lode_status doc_sizes_load_block(store_tx *tx, store_doc_sizes *z, int64_t block, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  z->loaded = false;
  memset(z->codes, 0, sizeof z->codes);
  TRY(store_stmt(tx, STORE_STMT_SIZES_GET, &s, err));
  sqlite3_bind_int64(s, 1, block);
  TRY(store_stmt_step(tx, s, &row, err));
  if (row) {
    lode_str codes = store_column_str(s, 0);
    if (codes.data) memcpy(z->codes, codes.data, codes.len < sizeof z->codes ? codes.len : sizeof z->codes);
  }
  sqlite3_reset(s);
  z->block = block;
  z->loaded = true;
  return LODE_OK;
}

static lode_status doc_sizes_need_block(store_tx *tx, store_doc_sizes *z, int64_t rid, lode_error *err) {
  int64_t block = rid / STORE_DOC_SIZES_BLOCK;
  if (z->loaded && z->block == block) return LODE_OK;
  TRY(store_doc_sizes_flush(tx, z, err));
  return doc_sizes_load_block(tx, z, block, err);
}

lode_status store_doc_sizes_flush(store_tx *tx, store_doc_sizes *z, lode_error *err) {
  sqlite3_stmt *s;
  if (!z->changed) return LODE_OK;
  TRY(store_stmt(tx, STORE_STMT_SIZES_PUT, &s, err));
  sqlite3_bind_int64(s, 1, z->block);
  sqlite3_bind_blob(s, 2, z->codes, sizeof z->codes, SQLITE_STATIC);
  z->changed = false;
  return store_stmt_run(tx, s, err);
}

lode_status store_doc_sizes_put(store_tx *tx, store_doc_sizes *z, int64_t rid, uint64_t bytes, lode_error *err) {
  TRY(doc_sizes_need_block(tx, z, rid, err));
  z->codes[rid % STORE_DOC_SIZES_BLOCK] = (unsigned char)store_doc_size_code(bytes);
  z->changed = true;
  return LODE_OK;
}

lode_status store_doc_sizes_get(store_tx *tx, store_doc_sizes *z, int64_t rid, uint64_t *min_bytes, lode_error *err) {
  TRY(doc_sizes_need_block(tx, z, rid, err));
  *min_bytes = store_doc_size_min(z->codes[rid % STORE_DOC_SIZES_BLOCK]);
  return LODE_OK;
}

lode_status store_doc_sizes_erase(store_tx *tx, int64_t cid, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt(tx, STORE_STMT_SIZES_ERASE, &s, err));
  sqlite3_bind_int64(s, 1, store_key_before_first(cid) / STORE_DOC_SIZES_BLOCK);
  sqlite3_bind_int64(s, 2, store_key_last(cid) / STORE_DOC_SIZES_BLOCK);
  return store_stmt_run(tx, s, err);
}
