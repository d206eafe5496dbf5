/* SPDX-License-Identifier: Apache-2.0 */
/* row_checksums.c - the CRC-32C of each kind of row. Each begins with a letter and the row's key, so that a row
 * proves what it is and where it belongs even if it is found alone on a page of a damaged file. Integers are
 * little-endian. */
#include "store/row_checksums.h"

#include "base/crc32c.h"

static uint32_t row_crc_begin(char kind, int64_t key) {
  return crc32c_update_u64(crc32c_update(0, &kind, 1), (uint64_t)key);
}

/* Length + 1 and the bytes; 0 if absent. */
static uint32_t row_crc_add_str(uint32_t crc, lode_str s) {
  if (!s.data) return crc32c_update_u64(crc, 0);
  return crc32c_update(crc32c_update_u64(crc, (uint64_t)s.len + 1), s.data, s.len);
}

uint32_t store_crc_document(int64_t rid, lode_str text) {
  return crc32c_update(row_crc_begin('D', rid), text.data, text.len);
}

uint32_t store_crc_vector(int64_t vid, int64_t rid, const void *data, size_t bytes) {
  return crc32c_update(crc32c_update_u64(row_crc_begin('V', vid), (uint64_t)rid), data, bytes);
}

uint32_t store_crc_record(const store_rec *rec) {
  uint32_t crc = row_crc_begin('R', rec->rid);
  crc = crc32c_update_u64(crc, rec->seq);
  crc = crc32c_update_u64(crc, (uint64_t)rec->vid);
  crc = crc32c_update_u64(crc, rec->has_document ? (uint64_t)rec->doc_crc + 1 : 0);
  crc = row_crc_add_str(crc, rec->id);
  return row_crc_add_str(crc, rec->metadata);
}

uint32_t store_crc_tombstone(int64_t gid, lode_str rids, int64_t vid) {
  return crc32c_update(crc32c_update_u64(row_crc_begin('G', gid), (uint64_t)vid), rids.data, rids.len);
}

uint32_t store_crc_collection(const store_coll *coll) {
  uint32_t crc = row_crc_begin('C', coll->cid);
  crc = crc32c_update_u64(crc, coll->uid);
  crc = crc32c_update_u32(crc, (uint32_t)coll->metric);
  crc = crc32c_update_u32(crc, coll->dim);
  crc = crc32c_update_u32(crc, coll->embedder_dim);
  crc = crc32c_update_u32(crc, coll->counted);
  crc = row_crc_add_str(crc, coll->name);
  crc = row_crc_add_str(crc, coll->metadata);
  return row_crc_add_str(crc, coll->embedder);
}

uint32_t store_crc_manifest(const store_manifest_row *row) {
  uint32_t crc = crc32c_update_u64(row_crc_begin('S', (int64_t)row->id), (uint64_t)row->cid);
  crc = crc32c_update_u64(crc32c_update_u64(crc, (uint64_t)row->after), (uint64_t)row->last);
  crc = crc32c_update_u32(crc32c_update_u32(crc, row->rows), row->kind);
  return crc32c_update_u32(crc32c_update_u64(crc, row->bytes), row->table_crc);
}
