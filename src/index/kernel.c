/* kernel.c - the choice of an implementation, the portable one, and distances made of its sums.
 *
 * The choice is one atomic pointer. Threads that meet it empty all choose, and choose the same, so no lock is needed;
 * what it points to is constant, so relaxed order is enough.
 */
#include "index/kernel.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "index/kernel_impl.h"

#if FLT_EVAL_METHOD != 0
#error "distances need float arithmetic in float precision: on 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif

/* ---- Portable ---- */

static inline float sum_lanes(float *lanes) {
  for (size_t half = LODE__LANES / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

static float portable_dot(const float *a, const float *b, size_t dim) {
  float lanes[LODE__LANES] = {0};
  size_t i = 0;
  for (; dim - i >= LODE__LANES; i += LODE__LANES)
    for (size_t j = 0; j < LODE__LANES; j++) lanes[j] += a[i + j] * b[i + j];
  for (size_t j = 0; i + j < dim; j++) lanes[j] += a[i + j] * b[i + j];
  return sum_lanes(lanes);
}

static float portable_l2sq(const float *a, const float *b, size_t dim) {
  float lanes[LODE__LANES] = {0};
  size_t i = 0;
  for (; dim - i >= LODE__LANES; i += LODE__LANES) {
    for (size_t j = 0; j < LODE__LANES; j++) {
      float d = a[i + j] - b[i + j];
      lanes[j] += d * d;
    }
  }
  for (size_t j = 0; i + j < dim; j++) {
    float d = a[i + j] - b[i + j];
    lanes[j] += d * d;
  }
  return sum_lanes(lanes);
}

static void portable_dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = portable_dot(query, rows + i * stride, dim);
}

static void portable_l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = portable_l2sq(query, rows + i * stride, dim);
}

static bool portable_supported(void) { return true; }

const lode__kernel lode__kernel_portable = {
    .name = "portable", .supported = portable_supported,
    .dot = portable_dot, .l2sq = portable_l2sq, .dots = portable_dots, .l2sqs = portable_l2sqs,
};

/* ---- The choice ---- */

/* Best first. */
static const lode__kernel *const kernels[] = {
#if defined(__x86_64__)
    &lode__kernel_avx512,
    &lode__kernel_avx2,
#endif
#if defined(__aarch64__)
    &lode__kernel_neon,
#endif
    &lode__kernel_portable,
};

static _Atomic(const lode__kernel *) chosen;

/* The one of that name (NULL: the best) that this CPU has, or NULL. */
static const lode__kernel *find(const char *name) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if ((!name || strcmp(name, kernels[i]->name) == 0) && kernels[i]->supported()) return kernels[i];
  return NULL;
}

static const lode__kernel *choose(void) {
  const char *forced = getenv("LODE_SIMD");
  const lode__kernel *k = forced ? find(forced) : NULL;
  if (!k) k = find(NULL);
  atomic_store_explicit(&chosen, k, memory_order_relaxed);
  return k;
}

static inline const lode__kernel *kernel(void) {
  const lode__kernel *k = atomic_load_explicit(&chosen, memory_order_relaxed);
  return k ? k : choose();
}

const char *lode__kernel_name(void) { return kernel()->name; }

bool lode__kernel_use(const char *name) {
  if (!name) {
    choose();
    return true;
  }
  const lode__kernel *k = find(name);
  if (k) atomic_store_explicit(&chosen, k, memory_order_relaxed);
  return k != NULL;
}

/* ---- Distances ---- */

/* CPUs differ in the sign and payload of the NaNs that they make. */
static inline float one_nan(float x) { return x == x ? x : __builtin_nanf(""); }

/* Squared lengths between these leave no trace of what underflowed or overflowed on the way. */
#define LEAST_NORM2 0x1p-80f
#define MOST_NORM2 0x1p125f

static inline bool is_usual(float norm2) { return norm2 >= LEAST_NORM2 && norm2 <= MOST_NORM2; }
static inline bool is_finite(float x) { return x >= -FLT_MAX && x <= FLT_MAX; }

static float within_float(double x) { return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : (float)x; }

static float cosine_between(double dot, double norm2_product) {
  double c = dot / sqrt(norm2_product);
  if (c > 1) c = 1;
  if (c < -1) c = -1;
  return (float)(1 - c);
}

/* For the few that float's range is too small for. In double no square or product of floats overflows or underflows. */
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

typedef struct pair {
  const float *query, *row;
  size_t dim;
} pair;

static inline float cosine_of(float dot, float norm2_query, float norm2_row, pair of) {
  /* The product of two floats is exact in double, and neither overflows nor underflows there. */
  if (is_usual(norm2_query) && is_usual(norm2_row)) return cosine_between(dot, (double)norm2_query * (double)norm2_row);
  return distance_in_double(LODE_COSINE, of.query, of.row, of.dim);
}

float lode__dot(const float *a, const float *b, size_t dim) { return one_nan(kernel()->dot(a, b, dim)); }

float lode__l2sq(const float *a, const float *b, size_t dim) { return one_nan(kernel()->l2sq(a, b, dim)); }

void lode__distances(lode_metric metric, const float *query, float query_norm2, const float *rows, size_t stride,
                     const float *norms, size_t n, size_t dim, float *out) {
  const lode__kernel *k = kernel();
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
    out[i] = cosine_of(out[i], query_norm2, norms ? norms[i] : k->dot(row, row, dim), (pair){query, row, dim});
  }
}

/* By dot and l2sq, which unlike dots and l2sqs do not read ahead of the row. */
float lode__distance(lode_metric metric, const float *query, float query_norm2, const float *row, size_t dim) {
  const lode__kernel *k = kernel();
  float sum = metric == LODE_L2 ? k->l2sq(query, row, dim) : k->dot(query, row, dim);
  if (metric == LODE_COSINE) return cosine_of(sum, query_norm2, k->dot(row, row, dim), (pair){query, row, dim});
  if (!is_finite(sum)) return distance_in_double(metric, query, row, dim);
  return metric == LODE_IP ? 1 - sum : sum;
}

/* Rows are taken in tiles that stay in the second-level cache while query after query passes over them. */
void lode__distances_many(lode_metric metric, const lode__rows *queries, const lode__rows *rows, float *out,
                          size_t out_stride) {
  enum { TILE_FLOATS = 128 * 1024 / sizeof(float), LEAST_ROWS = 4 };
  size_t tile = TILE_FLOATS / (rows->dim ? rows->dim : 1);
  if (tile < LEAST_ROWS) tile = LEAST_ROWS;
  for (size_t i = 0; i < rows->n; i += tile) {
    size_t n = rows->n - i < tile ? rows->n - i : tile;
    const float *data = rows->data + i * rows->stride;
    const float *norms = rows->norms ? rows->norms + i : NULL;
    for (size_t q = 0; q < queries->n; q++) {
      const float *query = queries->data + q * queries->stride;
      float norm2 = 0;
      if (metric == LODE_COSINE) norm2 = queries->norms ? queries->norms[q] : lode__dot(query, query, queries->dim);
      lode__distances(metric, query, norm2, data, rows->stride, norms, n, rows->dim, out + q * out_stride + i);
    }
  }
}
