/* sha256.h - SHA-256, for names that nobody can make collide: content of files, ids of points, downloads. */
#ifndef LODE_SHA256_H
#define LODE_SHA256_H

#include "base.h"

enum { LODE__SHA256_BYTES = 32, LODE__SHA256_HEX = 65 };

typedef struct lode__sha256 {
  uint32_t state[8];
  uint64_t bytes;
  uint8_t block[64];
} lode__sha256;

void lode__sha256_init(lode__sha256 *sha);
void lode__sha256_add(lode__sha256 *sha, const void *data, size_t len);
void lode__sha256_end(lode__sha256 *sha, uint8_t digest[LODE__SHA256_BYTES]);
/* All at once. */
void lode__sha256_of(const void *data, size_t len, uint8_t digest[LODE__SHA256_BYTES]);
/* Lower case, with a NUL. */
void lode__sha256_hex(const uint8_t digest[LODE__SHA256_BYTES], char hex[LODE__SHA256_HEX]);

#endif
