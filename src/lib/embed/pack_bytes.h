/* SPDX-License-Identifier: Apache-2.0 */
/* pack_bytes.h - byte order and constants of the pack format, for pack.c and pack_write.c. */
#ifndef LODE_EMBED_PACK_BYTES_H
#define LODE_EMBED_PACK_BYTES_H

#include "base/base.h"
#include "base/crc32c.h"

#define EMBED_PACK_MAGIC "LODEMODL"
enum { EMBED_PACK_HEADER_BYTES = 64, EMBED_PACK_SECTION_BYTES = 40, EMBED_PACK_MAX_CHUNK = 1u << 24 };

static inline uint32_t embed_get_u32(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t embed_get_u64(const unsigned char *p) {
  return embed_get_u32(p) | (uint64_t)embed_get_u32(p + 4) << 32;
}
static inline void embed_put_u32(unsigned char *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (8 * i));
}
static inline void embed_put_u64(unsigned char *p, uint64_t v) {
  for (int i = 0; i < 8; i++) p[i] = (unsigned char)(v >> (8 * i));
}
static inline uint32_t embed_pack_crc(uint64_t offset, const void *data, size_t bytes) {
  return crc32c_update(crc32c_update_u64(0, offset), data, bytes);
}

#endif
