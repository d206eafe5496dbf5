/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - SHA-256, where collisions must be impossible: content of files, ids of points, downloads. */
#ifndef LODE_BASE_SHA256_H
#define LODE_BASE_SHA256_H

#include "base/base.h"

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 65 };

typedef struct sha256_ctx {
  uint32_t state[8];
  uint64_t bytes;
  uint8_t block[64];
} sha256_ctx;

void sha256_init(sha256_ctx *sha);
void sha256_update(sha256_ctx *sha, const void *data, size_t len);
void sha256_final(sha256_ctx *sha, uint8_t digest[SHA256_BYTES]);
/* All at once. */
void sha256_of(const void *data, size_t len, uint8_t digest[SHA256_BYTES]);
/* Lower case, with a NUL. */
void sha256_hex(const uint8_t digest[SHA256_BYTES], char hex[SHA256_HEX_BYTES]);

#endif
