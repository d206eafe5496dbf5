/* SPDX-License-Identifier: Apache-2.0 */
/* quant_impl.h - what an implementation of the integer kernels provides; only for the quant*.c files. */
#ifndef LODE_KERNEL_QUANT_IMPL_H
#define LODE_KERNEL_QUANT_IMPL_H

#include "kernel/quant.h"
#include "kernel/quant_decode.h"

typedef struct quant_ops {
  const char *name;
  bool (*supported)(void);
  /* See quant_keys(). Reads only the codes of a row and its first QUANT_MIN_ROW_BYTES. Top bits set after those (a
   * forged file) give some key, nothing worse. */
  void (*keys)(const quant_query *query, const unsigned char *const *rows, size_t n, float *out);
  /* out[j] = codes[j] - 64, ignoring top bits; returns the sum of out. */
  int32_t (*centre)(const unsigned char *codes, size_t dim, int8_t *out);
  /* See quant_grid_decode(). */
  void (*decode)(const quant_grid *grid, const unsigned char *row, const unsigned char *low, size_t dim, float *vector);
} quant_ops;

/* Portable implementations. */
int32_t quant_portable_centre(const unsigned char *codes, size_t dim, int8_t *out);
void quant_portable_decode(const quant_grid *grid, const unsigned char *row, const unsigned char *low, size_t dim,
                           float *vector);

/* The key of a row, from the top bits of its first 64 bytes and the dot product of the query's codes and its own. */
static inline float quant_key(const quant_query *query, uint64_t head, int32_t sum) {
  int32_t dot = (int32_t)((uint32_t)sum - (uint32_t)query->offset);
  return quant_float_of_bits((uint32_t)(head >> 32)) - query->scale * quant_float_of_bits((uint32_t)head) * (float)dot;
}

extern const quant_ops quant_portable;
#if defined(__x86_64__)
extern const quant_ops quant_avx2, quant_avx512;
#endif
#if defined(__aarch64__)
extern const quant_ops quant_neon, quant_neon_dot;
#endif

#endif
