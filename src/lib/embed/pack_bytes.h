/* SPDX-License-Identifier: Apache-2.0 */
/* pack_bytes.h - constants and checksums of the pack format, for pack.c and pack_write.c. */
#ifndef LODE_EMBED_PACK_BYTES_H
#define LODE_EMBED_PACK_BYTES_H

#include "base/base.h"
#include "base/crc32c.h"

#define EMBED_PACK_MAGIC "LODEMODL"
enum { EMBED_PACK_HEADER_BYTES = 64, EMBED_PACK_SECTION_BYTES = 40, EMBED_PACK_MAX_CHUNK = 1u << 24 };

static inline uint32_t embed_pack_crc(uint64_t offset, const void *data, size_t bytes) {
  return crc32c_update(crc32c_update_u64(0, offset), data, bytes);
}

#endif
