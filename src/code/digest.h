/* digest.h - what files and texts are called by: the first 16 bytes of their SHA-256. Equal digests are taken to mean equal bytes. */
#ifndef LODE_CODE_DIGEST_H
#define LODE_CODE_DIGEST_H

#include "base/sha256.h"

#define LODE__DIGEST_BYTES 16
#define LODE__DIGEST_HEX (2 * LODE__DIGEST_BYTES)

static inline void lode__digest_of(const void *data, size_t len, uint8_t out[LODE__DIGEST_BYTES]) {
  uint8_t whole[SHA256_BYTES];
  sha256_of(data, len, whole);
  memcpy(out, whole, LODE__DIGEST_BYTES);
}

/* In lower-case hexadecimal, NUL behind. */
static inline void lode__digest_hex(const uint8_t digest[LODE__DIGEST_BYTES], char out[LODE__DIGEST_HEX + 1]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < LODE__DIGEST_BYTES; i++) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  out[LODE__DIGEST_HEX] = '\0';
}

#endif
