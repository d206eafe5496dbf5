/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - distances between float vectors, the same to the last bit on every CPU.
 *
 * Sums are kept in 16 lanes that start at +0: lane j adds up the elements i with i mod 16 == j, in order of i, each
 * step one multiplication and one addition (never fused); lanes are then added as a fixed tree: 16 to 8 (j + j+8), 8 to
 * 4, 4 to 2, 2 to 1. Every implementation (AVX-512, AVX2, NEON, portable) does exactly that, so they agree bit for bit.
 * A tail may be padded with zeros: a lane is never -0, so adding +0 changes nothing. The implementation is chosen at
 * the first use; LODE_SIMD=portable|avx2|avx512|neon forces one (an unavailable one is ignored).
 *
 * Vectors are finite floats, aligned to 4 bytes, in the default rounding mode. If squares or products leave the range
 * of float (elements beyond about 1e18), the sums below are infinite or NaN; every NaN is the same quiet one. Distances
 * are finite: if a sum has left that range, they are computed again in double, element by element, and clamped to
 * FLT_MAX. For cosine that is also done if a squared length is so small that squares underflowed. Such vectors are
 * refused when they are written (base/vector.h); older stores may hold some.
 *
 * Pure: no files, no clock, no allocation. All functions may be called by many threads at once.
 */
#ifndef LODE_KERNEL_KERNEL_H
#define LODE_KERNEL_KERNEL_H

#include "base/base.h"

float kernel_dot(const float *a, const float *b, size_t dim);
float kernel_l2sq(const float *a, const float *b, size_t dim);
const char *kernel_name(void);
/* For tests: switches to an implementation by name; false if this CPU lacks it. NULL: choose again, as at the first
 * use. */
bool kernel_use(const char *name);

/* Distances of `n` rows (row i at rows + i * stride floats) to the query, written to out; as in lode.h.
 *   l2: kernel_l2sq()    ip: 1 - dot, in float
 *   cosine: 1 - dot / sqrt(query_norm2 * norm2), in double, the quotient clamped to -1 .. 1, rounded to float once;
 *           exactly 0 between equal vectors, and 1 if one has no length
 * query_norm2, norms: squared lengths (kernel_dot() of a vector with itself), only read for cosine; norms may be NULL:
 * then they are computed, at about twice the cost. */
void kernel_distances(lode_metric metric, const float *query, float query_norm2, const float *rows, size_t stride,
                      const float *norms, size_t n, size_t dim, float *out);
/* One distance, for reranking and tails. */
float kernel_distance(lode_metric metric, const float *query, float query_norm2, const float *row, size_t dim);

typedef struct kernel_rows {
  const float *data;  /* row i at data + i * stride */
  const float *norms; /* as above */
  size_t n, dim, stride;
} kernel_rows;
/* Distances between many queries and the same rows, which are read from memory once for all queries: the distance of
 * query q (at queries->data + q * queries->stride) and row i goes to out[q * out_stride + i]. Both must have the same
 * dim. */
void kernel_distances_many(lode_metric metric, const kernel_rows *queries, const kernel_rows *rows, float *out,
                           size_t out_stride);

/* ---- The k nearest so far: a bounded max-heap on (distance, key, aux) ----
 *
 *   kernel_neighbour heap[10];
 *   kernel_topk top = {.heap = heap, .k = 10};
 *   for (...) if (kernel_topk_wants(&top, distance)) kernel_topk_push(&top, distance, key, aux);
 *   kernel_topk_sort(&top);   now heap[0 .. top.n) are the nearest
 */

typedef struct kernel_neighbour {
  float distance;
  int64_t key;
  int64_t aux;
} kernel_neighbour;
typedef struct kernel_topk {
  kernel_neighbour *heap; /* room for k */
  size_t k, n;
} kernel_topk;

/* Keeps the k smallest by distance, then key, then aux, in whatever order they come; +0 and -0 are the same distance.
 * NaN distances come after all others. */
void kernel_topk_push(kernel_topk *top, float distance, int64_t key, int64_t aux);
/* The distance that a candidate must not exceed to be kept; +infinity while fewer than k are held, or while the
 * farthest held is a NaN; -infinity if k is 0. */
float kernel_topk_bound(const kernel_topk *top);
/* False if pushing that distance would certainly change nothing. */
static inline bool kernel_topk_wants(const kernel_topk *top, float distance) {
  return top->n < top->k || (top->k != 0 && !(distance > top->heap[0].distance));
}
void kernel_topk_sort(kernel_topk *top); /* nearest first; it is no heap afterwards */

#endif
