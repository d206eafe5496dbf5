/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - the digest of files and texts: the first 16 bytes of SHA-256. Equal digests are taken to mean equal
 * bytes. */
#ifndef LODE_INDEXER_DIGEST_H
#define LODE_INDEXER_DIGEST_H

#include "base/sha256.h"

#define INDEXER_DIGEST_BYTES 16
#define INDEXER_DIGEST_HEX (2 * INDEXER_DIGEST_BYTES)

static inline void indexer_digest_of(const void *data, size_t len, uint8_t out[INDEXER_DIGEST_BYTES]) {
  uint8_t whole[SHA256_BYTES];
  sha256_of(data, len, whole);
  memcpy(out, whole, INDEXER_DIGEST_BYTES);
}

/* In lower-case hexadecimal, NUL-terminated. */
static inline void indexer_digest_hex(const uint8_t digest[INDEXER_DIGEST_BYTES], char out[INDEXER_DIGEST_HEX + 1]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < INDEXER_DIGEST_BYTES; i++) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  out[INDEXER_DIGEST_HEX] = '\0';
}

#endif
