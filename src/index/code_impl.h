/* code_impl.h - what an implementation of the integer kernels provides; only for the code*.c files. */
#ifndef LODE_CODE_IMPL_H
#define LODE_CODE_IMPL_H

#include "base/base.h"

typedef struct lode__code_kernel {
  const char *name;
  bool (*supported)(void);
  /* out[i] = sum of query[j] * rows[i][j] over j < dim; rows are bytes of 0 to 127. Reads nothing outside of them.
   * Bytes above 127 (a forged file) give some number, nothing worse. */
  void (*dots)(const int8_t *query, size_t dim, const unsigned char *const *rows, size_t n, int32_t *out);
  /* out[j] = codes[j] - 64, codes of 0 to 127 (the top bit is ignored); returns the sum of out. */
  int32_t (*centre)(const unsigned char *codes, size_t dim, int8_t *out);
} lode__code_kernel;

int32_t lode__code_centre(const unsigned char *codes, size_t dim, int8_t *out); /* the portable one */

extern const lode__code_kernel lode__code_portable;
#if defined(__x86_64__)
extern const lode__code_kernel lode__code_avx2, lode__code_avx512;
#endif
#if defined(__aarch64__)
extern const lode__code_kernel lode__code_neon, lode__code_neon_dot;
#endif

#endif
