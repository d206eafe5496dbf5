/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - the choice of an implementation, the portable one, and distances computed from its sums.
 *
 * The choice is one atomic pointer. Threads that find it empty all choose, and choose the same, so no lock is needed;
 * what it points to is constant, so relaxed order is enough.
 */
#include "kernel/kernel.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "kernel/kernel_impl.h"

#if FLT_EVAL_METHOD != 0
#error "distances need float arithmetic in float precision: on 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif

/* ---- Portable ---- */

static inline float kernel_sum_lanes(float *lanes) {
  for (size_t half = KERNEL_LANES / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

static float kernel_portable_dot(const float *a, const float *b, size_t dim) {
  float lanes[KERNEL_LANES] = {0};
  size_t i = 0;
  for (; dim - i >= KERNEL_LANES; i += KERNEL_LANES)
    for (size_t j = 0; j < KERNEL_LANES; j++) lanes[j] += a[i + j] * b[i + j];
  for (size_t j = 0; i + j < dim; j++) lanes[j] += a[i + j] * b[i + j];
  return kernel_sum_lanes(lanes);
}

static float kernel_portable_l2sq(const float *a, const float *b, size_t dim) {
  float lanes[KERNEL_LANES] = {0};
  size_t i = 0;
  for (; dim - i >= KERNEL_LANES; i += KERNEL_LANES) {
    for (size_t j = 0; j < KERNEL_LANES; j++) {
      float d = a[i + j] - b[i + j];
      lanes[j] += d * d;
    }
  }
  for (size_t j = 0; i + j < dim; j++) {
    float d = a[i + j] - b[i + j];
    lanes[j] += d * d;
  }
  return kernel_sum_lanes(lanes);
}

static void kernel_portable_dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim,
                                 float *out) {
  for (size_t i = 0; i < n; i++) out[i] = kernel_portable_dot(query, rows + i * stride, dim);
}

static void kernel_portable_l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim,
                                  float *out) {
  for (size_t i = 0; i < n; i++) out[i] = kernel_portable_l2sq(query, rows + i * stride, dim);
}

static bool kernel_portable_supported(void) { return true; }

const kernel_ops kernel_portable = {
    .name = "portable",
    .supported = kernel_portable_supported,
    .dot = kernel_portable_dot,
    .l2sq = kernel_portable_l2sq,
    .dots = kernel_portable_dots,
    .l2sqs = kernel_portable_l2sqs,
};

/* ---- The choice ---- */

/* Best first. */
static const kernel_ops *const kernel_list[] = {
#if defined(__x86_64__)
    &kernel_avx512,
    &kernel_avx2,
#endif
#if defined(__aarch64__)
    &kernel_neon,
#endif
    &kernel_portable,
};

static _Atomic(const kernel_ops *) kernel_chosen;

/* The implementation of that name (NULL: the best) that this CPU supports, or NULL. */
static const kernel_ops *kernel_find(const char *name) {
  for (size_t i = 0; i < sizeof kernel_list / sizeof *kernel_list; i++)
    if ((!name || strcmp(name, kernel_list[i]->name) == 0) && kernel_list[i]->supported()) return kernel_list[i];
  return NULL;
}

static const kernel_ops *kernel_choose(void) {
  const char *forced = getenv("LODE_SIMD");
  const kernel_ops *k = forced ? kernel_find(forced) : NULL;
  if (!k) k = kernel_find(NULL);
  atomic_store_explicit(&kernel_chosen, k, memory_order_relaxed);
  return k;
}

static inline const kernel_ops *kernel_current(void) {
  const kernel_ops *k = atomic_load_explicit(&kernel_chosen, memory_order_relaxed);
  return k ? k : kernel_choose();
}

const char *kernel_name(void) { return kernel_current()->name; }

bool kernel_use(const char *name) {
  if (!name) {
    kernel_choose();
    return true;
  }
  const kernel_ops *k = kernel_find(name);
  if (k) atomic_store_explicit(&kernel_chosen, k, memory_order_relaxed);
  return k != NULL;
}

/* ---- Distances ---- */

/* CPUs differ in the sign and payload of the NaNs that they produce. */
static inline float one_nan(float x) { return x == x ? x : __builtin_nanf(""); }

#define MIN_NORM2 0x1p-80f /* squared lengths from here on are not affected by squares that underflowed */
#define MAX_NORM2 0x1p125f /* squared lengths up to here did not overflow in between */

static inline bool is_usual(float norm2) { return norm2 >= MIN_NORM2 && norm2 <= MAX_NORM2; }
static inline bool is_finite(float x) { return x >= -FLT_MAX && x <= FLT_MAX; }

static float within_float(double x) { return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : (float)x; }

static float cosine_between(double dot, double norm2_product) {
  double c = dot / sqrt(norm2_product);
  if (c > 1) c = 1;
  if (c < -1) c = -1;
  return (float)(1 - c);
}

/* For the few vectors that exceed the range of float. In double no square or product of floats overflows or
 * underflows. */
static float distance_in_double(lode_metric metric, const float *a, const float *b, size_t dim) {
  double l2 = 0, dot = 0, norm2_a = 0, norm2_b = 0;
  for (size_t i = 0; i < dim; i++) {
    double x = a[i], y = b[i];
    l2 += (x - y) * (x - y);
    dot += x * y;
    norm2_a += x * x;
    norm2_b += y * y;
  }
  if (metric == LODE_L2) return within_float(l2);
  if (metric == LODE_IP) return within_float(1 - dot);
  return norm2_a == 0 || norm2_b == 0 ? 1 : cosine_between(dot, norm2_a * norm2_b);
}

typedef struct kernel_pair {
  const float *query, *row;
  size_t dim;
} kernel_pair;

static inline float cosine_of(float dot, float norm2_query, float norm2_row, kernel_pair of) {
  /* The product of two floats is exact in double, and neither overflows nor underflows there. */
  if (is_usual(norm2_query) && is_usual(norm2_row)) return cosine_between(dot, (double)norm2_query * (double)norm2_row);
  return distance_in_double(LODE_COSINE, of.query, of.row, of.dim);
}

float kernel_dot(const float *a, const float *b, size_t dim) { return one_nan(kernel_current()->dot(a, b, dim)); }

float kernel_l2sq(const float *a, const float *b, size_t dim) { return one_nan(kernel_current()->l2sq(a, b, dim)); }

void kernel_distances(lode_metric metric, const float *query, float query_norm2, const float *rows, size_t stride,
                      const float *norms, size_t n, size_t dim, float *out) {
  const kernel_ops *k = kernel_current();
  if (metric == LODE_L2) {
    k->l2sqs(query, rows, stride, n, dim, out);
    for (size_t i = 0; i < n; i++)
      if (!is_finite(out[i])) out[i] = distance_in_double(metric, query, rows + i * stride, dim);
    return;
  }
  k->dots(query, rows, stride, n, dim, out);
  if (metric == LODE_IP) {
    for (size_t i = 0; i < n; i++)
      out[i] = is_finite(out[i]) ? 1 - out[i] : distance_in_double(metric, query, rows + i * stride, dim);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const float *row = rows + i * stride;
    out[i] = cosine_of(out[i], query_norm2, norms ? norms[i] : k->dot(row, row, dim), (kernel_pair){query, row, dim});
  }
}

/* Uses dot and l2sq, which unlike dots and l2sqs do not prefetch beyond the row. */
float kernel_distance(lode_metric metric, const float *query, float query_norm2, const float *row, size_t dim) {
  const kernel_ops *k = kernel_current();
  float sum = metric == LODE_L2 ? k->l2sq(query, row, dim) : k->dot(query, row, dim);
  if (metric == LODE_COSINE) return cosine_of(sum, query_norm2, k->dot(row, row, dim), (kernel_pair){query, row, dim});
  if (!is_finite(sum)) return distance_in_double(metric, query, row, dim);
  return metric == LODE_IP ? 1 - sum : sum;
}

/* Rows are processed in tiles that stay in the second-level cache while all queries pass over them. */
void kernel_distances_many(lode_metric metric, const kernel_rows *queries, const kernel_rows *rows, float *out,
                           size_t out_stride) {
  enum { TILE_FLOATS = 128 * 1024 / sizeof(float), TILE_MIN_ROWS = 4 };
  size_t tile = TILE_FLOATS / (rows->dim ? rows->dim : 1);
  if (tile < TILE_MIN_ROWS) tile = TILE_MIN_ROWS;
  for (size_t i = 0; i < rows->n; i += tile) {
    size_t n = rows->n - i < tile ? rows->n - i : tile;
    const float *data = rows->data + i * rows->stride;
    const float *norms = rows->norms ? rows->norms + i : NULL;
    for (size_t q = 0; q < queries->n; q++) {
      const float *query = queries->data + q * queries->stride;
      float norm2 = 0;
      if (metric == LODE_COSINE) norm2 = queries->norms ? queries->norms[q] : kernel_dot(query, query, queries->dim);
      kernel_distances(metric, query, norm2, data, rows->stride, norms, n, rows->dim, out + q * out_stride + i);
    }
  }
}
