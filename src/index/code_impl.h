/* code_impl.h - what an implementation of the integer kernels provides; only for the code*.c files. */
#ifndef LODE_CODE_IMPL_H
#define LODE_CODE_IMPL_H

#include "index/code.h"

typedef struct lode__code_kernel {
  const char *name;
  bool (*supported)(void);
  /* See lode__code_keys. Reads no bytes of a row but its codes, and the first LODE__CODE_LEAST. Eighth bits behind those (a
   * forged file) give some key, nothing worse. */
  void (*keys)(const lode__code_query *query, const unsigned char *const *rows, size_t n, float *out);
  /* out[j] = codes[j] - 64, without their eighth bits; returns the sum of out. */
  int32_t (*centre)(const unsigned char *codes, size_t dim, int8_t *out);
} lode__code_kernel;

int32_t lode__code_centre(const unsigned char *codes, size_t dim, int8_t *out); /* the portable one */

/* The key of a row, from the eighth bits of its first 64 bytes and the sum of products of the query's codes and its own. */
static inline float lode__code_key(const lode__code_query *query, uint64_t head, int32_t sum) {
  int32_t dot = (int32_t)((uint32_t)sum - (uint32_t)query->offset);
  return lode__code_float((uint32_t)(head >> 32)) - query->scale * lode__code_float((uint32_t)head) * (float)dot;
}

extern const lode__code_kernel lode__code_portable;
#if defined(__x86_64__)
extern const lode__code_kernel lode__code_avx2, lode__code_avx512;
#endif
#if defined(__aarch64__)
extern const lode__code_kernel lode__code_neon, lode__code_neon_dot;
#endif

#endif
