/* code_impl.h - what an implementation of the integer kernels provides; only for the code*.c files. */
#ifndef LODE_CODE_IMPL_H
#define LODE_CODE_IMPL_H

#include "index/code.h"

typedef struct lode__code_kernel {
  const char *name;
  bool (*supported)(void);
  /* See lode__code_keys. Reads nothing outside of the rows' heads and codes. Bytes above 127 (a forged file) give some key,
   * nothing worse. */
  void (*keys)(const lode__code_query *query, const unsigned char *const *rows, size_t n, float *out);
  /* out[j] = codes[j] - 64, codes of 0 to 127 (the top bit is ignored); returns the sum of out. */
  int32_t (*centre)(const unsigned char *codes, size_t dim, int8_t *out);
} lode__code_kernel;

int32_t lode__code_centre(const unsigned char *codes, size_t dim, int8_t *out); /* the portable one */

/* The key of a row, from the sum of products of the query's codes and the row's bytes. */
static inline float lode__code_key(const lode__code_query *query, const unsigned char *row, int32_t sum) {
  int32_t dot = (int32_t)((uint32_t)sum - (uint32_t)query->offset);
  return lode__code_bias(row) - query->scale * lode__code_scale(row) * (float)dot;
}

extern const lode__code_kernel lode__code_portable;
#if defined(__x86_64__)
extern const lode__code_kernel lode__code_avx2, lode__code_avx512;
#endif
#if defined(__aarch64__)
extern const lode__code_kernel lode__code_neon, lode__code_neon_dot;
#endif

#endif
