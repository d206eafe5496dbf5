/* SPDX-License-Identifier: Apache-2.0 */
/* byteorder.h - integers in files and messages: little-endian (le) and big-endian (be), at any alignment.
 *
 * Compilers turn each of these into one load or store, with a byte swap where the machine needs it.
 */
#ifndef LODE_BASE_BYTEORDER_H
#define LODE_BASE_BYTEORDER_H

#include <stdint.h>
#include <string.h>

static inline uint16_t num_le16(const void *at) {
  const unsigned char *p = at;
  return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t num_le32(const void *at) {
  const unsigned char *p = at;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
/* Not made of two halves: gcc 12 does not merge those in a loop, and checksums are made of this. */
static inline uint64_t num_le64(const void *at) {
  uint64_t v;
  memcpy(&v, at, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  return v;
}

static inline uint16_t num_be16(const void *at) {
  const unsigned char *p = at;
  return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t num_be32(const void *at) {
  const unsigned char *p = at;
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}
static inline uint64_t num_be64(const void *at) {
  const unsigned char *p = at;
  return (uint64_t)num_be32(p) << 32 | num_be32(p + 4);
}

static inline void num_put_le32(void *at, uint32_t v) {
  unsigned char *p = at;
  p[0] = (unsigned char)v, p[1] = (unsigned char)(v >> 8);
  p[2] = (unsigned char)(v >> 16), p[3] = (unsigned char)(v >> 24);
}
static inline void num_put_le64(void *at, uint64_t v) {
  num_put_le32(at, (uint32_t)v);
  num_put_le32((unsigned char *)at + 4, (uint32_t)(v >> 32));
}

static inline void num_put_be32(void *at, uint32_t v) {
  unsigned char *p = at;
  p[0] = (unsigned char)(v >> 24), p[1] = (unsigned char)(v >> 16);
  p[2] = (unsigned char)(v >> 8), p[3] = (unsigned char)v;
}
static inline void num_put_be64(void *at, uint64_t v) {
  num_put_be32(at, (uint32_t)(v >> 32));
  num_put_be32((unsigned char *)at + 4, (uint32_t)v);
}

#endif
