/* SPDX-License-Identifier: Apache-2.0 */
/* segment_forge.h - makes the checksums of a segment's file right for its bytes as they are, so that tests and fuzzers
 * get past them. */
#ifndef LODE_SEGMENT_FORGE_H
#define LODE_SEGMENT_FORGE_H

#include "base/crc32c.h"
#include "index/index_search.h"

#include <stdlib.h>
#include <string.h>

static inline void segment_forge_put32(unsigned char *p, uint32_t v) { memcpy(p, &v, sizeof v); }

/* False: the header makes no sense beyond its checksum. Gives the id that is in it, and the checksum that a manifest
 * keeps. */
static inline bool segment_forge(unsigned char *bytes, size_t len, uint64_t *id, uint32_t *table_crc) {
  index_segment_info info;
  index_segment_layout layout;
  if (len < INDEX_PAGE_BYTES) return false;
  segment_forge_put32(bytes + INDEX_SEG_HEADER_CRC_AT, crc32c_update(0, bytes, INDEX_SEG_HEADER_CRC_AT));
  if (index_segment_get_header(bytes, len, &info, NULL) != LODE_OK) return false;
  if (!index_segment_layout_of(&info, &layout)) abort();
  *id = info.id;
  size_t row = info.dim * sizeof(float);
  for (uint32_t i = 0; i < info.n && !info.placed; i++)
    segment_forge_put32(bytes + layout.at[INDEX_SEG_RECORDS] + (size_t)i * INDEX_SEG_RECORD_BYTES + 16,
                        index_segment_vector_crc(info.id, i, bytes + layout.at[INDEX_SEG_VECTORS] + i * row, row));
  unsigned char *table = bytes + layout.at[INDEX_SEG_CHECKSUMS];
  segment_forge_put32(table, index_segment_page_crc(info.id, 0, bytes));
  for (uint64_t at = layout.at[INDEX_SEG_MEAN]; at < layout.at[INDEX_SEG_CHECKSUMS]; at += INDEX_PAGE_BYTES) {
    uint64_t page = at / INDEX_PAGE_BYTES;
    segment_forge_put32(table + index_segment_crc_slot(&layout, page) * 4,
                        index_segment_page_crc(info.id, page, bytes + at));
  }
  *table_crc = index_segment_table_crc(info.id, table, (size_t)layout.bytes[INDEX_SEG_CHECKSUMS]);
  return true;
}

#endif
