/* kernel.h - distances between float vectors, the same to the last bit on every CPU.
 *
 * Sums are kept in 16 lanes: lane j adds up the elements i with i mod 16 == j, in order of i, each step one multiply
 * and one add (no fused ones); lanes are then added as a fixed tree: 16 to 8 (j + j+8), 8 to 4, 4 to 2, 2 to 1. Every
 * implementation (AVX-512, AVX2, NEON, portable) does just that, so they agree bit for bit. The choice is made at
 * run time; LODE_SIMD=portable|avx2|avx512|neon forces one (an unavailable one is ignored).
 * Pure: no files, no clock, no allocation.
 */
#ifndef LODE_KERNEL_H
#define LODE_KERNEL_H

#include "base/base.h"

float lode__dot(const float *a, const float *b, size_t dim);
float lode__l2sq(const float *a, const float *b, size_t dim);
const char *lode__kernel_name(void);
/* Tests: switch to an implementation by name; false if this CPU lacks it. NULL: the best. */
bool lode__kernel_use(const char *name);

/* A vector ready for scanning: distances of `n` rows (row i at rows + i * stride floats) to the query, written to out.
 * norms: squared lengths of the rows (lode__dot(row, row)); only read for cosine. Distances as in lode.h. */
void lode__distances(lode_metric metric, const float *query, float query_norm2, const float *rows, size_t stride,
                     const float *norms, size_t n, size_t dim, float *out);
/* One distance; for re-ranking and tails. */
float lode__distance(lode_metric metric, const float *query, float query_norm2, const float *row, size_t dim);

/* ---- The k nearest so far: a bounded max-heap on (distance, key) ---- */

typedef struct lode__near { float distance; int64_t key; int64_t aux; } lode__near;
typedef struct lode__topk {
  lode__near *heap;  /* room for k */
  size_t k, n;
} lode__topk;

/* Keeps the k smallest by distance, then key. NaN distances are kept behind all others. */
void lode__topk_push(lode__topk *top, float distance, int64_t key, int64_t aux);
/* The distance that a candidate must not exceed to have a chance; +infinity while fewer than k are held. */
float lode__topk_bound(const lode__topk *top);
void lode__topk_sort(lode__topk *top); /* nearest first; ends the heap */

#endif
