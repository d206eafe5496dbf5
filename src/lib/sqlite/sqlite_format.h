/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_format.h - the parts of SQLite's file format (fileformat2.html) that all our readers of it need. */
#ifndef LODE_SQLITE_SQLITE_FORMAT_H
#define LODE_SQLITE_SQLITE_FORMAT_H

#include "base/byteorder.h" /* SQLite's integers are big-endian, those added by Lode little-endian */

#include <stdbool.h>
#include <string.h>

/* ---- Pages ---- */

#define SQF_PAGE_MIN 512u
#define SQF_PAGE_MAX 65536u

static inline bool sqf_page_size_valid(uint64_t n) {
  return n >= SQF_PAGE_MIN && n <= SQF_PAGE_MAX && (n & (n - 1)) == 0;
}

/* The page size declared in a database's first bytes, 0 if it is invalid; 65536 is stored as 1. */
static inline uint32_t sqf_page_size(const unsigned char *page1) {
  uint32_t n = (uint32_t)page1[16] << 8 | (uint32_t)page1[17] << 16;
  return sqf_page_size_valid(n) ? n : 0;
}

static inline bool sqf_has_magic(const unsigned char *page1) { return memcmp(page1, "SQLite format 3", 16) == 0; }

/* A trunk page of the free list: next trunk, number of leaves, leaves. 0 leaves if it has more than fit. */
static inline uint32_t sqf_trunk_leaves(const unsigned char *trunk, uint32_t usable) {
  uint32_t n = num_be32(trunk + 4);
  return n <= usable / 4 - 2 ? n : 0;
}

/* ---- Locks ---- */

#define SQF_PENDING_BYTE 0x40000000u
#define SQF_RESERVED_BYTE (SQF_PENDING_BYTE + 1)
#define SQF_SHARED_FIRST (SQF_PENDING_BYTE + 2)
#define SQF_SHARED_SIZE 510

/* The page that contains those bytes is never used. */
static inline uint32_t sqf_lock_page(uint32_t page_bytes) { return SQF_PENDING_BYTE / page_bytes + 1; }

#endif
