/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_rows.h - shared by all kernels: the functions between products, written once with the compiler's vectors and
 * compiled for each instruction set.
 *
 * The including file defines GEMM_LANES (floats in a vector) and GEMM_TARGET (function attributes). If the CPU has
 * instructions that compilers do not find, it also defines GEMM_MIN_OP, GEMM_MAX_OP and GEMM_RCP_OP (to 11 bits or
 * more), and GEMM_SUM_OP and GEMM_GREATEST_OP (of a vector's floats). Multiply-adds are found: these files are compiled
 * with -ffp-contract=fast.
 */
#include "gemm/gemm.h"

#include <math.h>

#define GEMM_INLINE static inline __attribute__((always_inline)) GEMM_TARGET

#if defined(__clang__)
#define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 16")
#endif

typedef float gemm_vec __attribute__((vector_size(GEMM_LANES * 4)));
typedef int32_t gemm_ivec __attribute__((vector_size(GEMM_LANES * 4)));

GEMM_INLINE gemm_vec gemm_load(const float *p) {
  gemm_vec v;
  memcpy(&v, p, sizeof v);
  return v;
}
GEMM_INLINE void gemm_store(float *p, gemm_vec v) { memcpy(p, &v, sizeof v); }
GEMM_INLINE gemm_vec gemm_all(float x) { return x - (gemm_vec){0}; }
GEMM_INLINE gemm_vec gemm_pick(gemm_ivec mask, gemm_vec yes, gemm_vec no) {
  return (gemm_vec)((mask & (gemm_ivec)yes) | (~mask & (gemm_ivec)no));
}
#ifdef GEMM_MAX_OP
GEMM_INLINE gemm_vec gemm_least(gemm_vec a, gemm_vec b) { return (gemm_vec)GEMM_MIN_OP(a, b); }
GEMM_INLINE gemm_vec gemm_most(gemm_vec a, gemm_vec b) { return (gemm_vec)GEMM_MAX_OP(a, b); }
/* One Newton step doubles the precision. */
GEMM_INLINE gemm_vec gemm_inverse(gemm_vec x) {
  gemm_vec y = (gemm_vec)GEMM_RCP_OP(x);
  return y * (2.0f - x * y);
}
#else
GEMM_INLINE gemm_vec gemm_least(gemm_vec a, gemm_vec b) { return gemm_pick(a < b, a, b); }
GEMM_INLINE gemm_vec gemm_most(gemm_vec a, gemm_vec b) { return gemm_pick(a > b, a, b); }
GEMM_INLINE gemm_vec gemm_inverse(gemm_vec x) { return 1.0f / x; }
#endif

/* Adds halves repeatedly: a chain of GEMM_LANES additions would cost more than the rest of a short row. */
#ifdef GEMM_SUM_OP
GEMM_INLINE float gemm_sum_of(gemm_vec v) { return GEMM_SUM_OP(v); }
GEMM_INLINE float gemm_greatest_of(gemm_vec v) { return GEMM_GREATEST_OP(v); }
#else
#define GEMM_FOLD(name, both)                                                                                          \
  GEMM_INLINE float name(gemm_vec v) {                                                                                 \
    float x[GEMM_LANES];                                                                                               \
    memcpy(x, &v, sizeof x);                                                                                           \
    GEMM_UNROLL for (int n = GEMM_LANES / 2; n > 0; n /= 2) GEMM_UNROLL for (int i = 0; i < n; i++) x[i] =             \
        both(x[i], x[i + n]);                                                                                          \
    return x[0];                                                                                                       \
  }
static inline float gemm_add(float a, float b) { return a + b; }
static inline float gemm_greater(float a, float b) { return a > b ? a : b; }
GEMM_FOLD(gemm_sum_of, gemm_add)
GEMM_FOLD(gemm_greatest_of, gemm_greater)
#endif

static inline const void *gemm_row_of(const gemm_product *p, size_t i) {
  return (const char *)p->rows + i * p->row_bytes;
}
static inline const void *gemm_panel_of(const gemm_product *p, size_t i) {
  return (const char *)p->panels + i * p->panel_bytes;
}

/* ---- exp and erf ----
 *
 * Fine for full arithmetic; coarse if the result is rounded to 8 or 13 bits anyway.
 */

/* 2^x for x <= 0, as 2^n * 2^f with |f| <= 1/2; nearly 0 below -126. */
GEMM_INLINE gemm_vec gemm_exp2(bool fine, gemm_vec x) {
  gemm_vec kept = gemm_most(x, gemm_all(-126.0f));
  gemm_vec shifted = kept + 12582912.0f; /* 1.5 * 2^23: the low bits hold the rounded integer */
  gemm_vec f = kept - (shifted - 12582912.0f);
  gemm_vec p;
  if (fine) { /* relative error 2e-7 */
    p = f * 1.535336188e-4f + 1.339887440e-3f;
    p = p * f + 9.618437358e-3f;
    p = p * f + 5.550332471e-2f;
    p = p * f + 2.402264791e-1f;
    p = p * f + 6.931472029e-1f;
    p = p * f + 1.0f;
  } else { /* 8e-5 */
    p = f * 5.51717303e-2f + 2.42611291e-1f;
    p = p * f + 6.93260991e-1f;
    p = p * f + 9.99928064e-1f;
  }
  return (gemm_vec)((gemm_ivec)p + (((gemm_ivec)shifted - 0x4B400000) << 23));
}

/* erf(x), |x| bounded: an odd rational approximation of degree 13 / 8, error below 5e-7. */
GEMM_INLINE gemm_vec gemm_erf(gemm_vec x) {
  x = gemm_most(gemm_least(x, gemm_all(4.0f)), gemm_all(-4.0f));
  gemm_vec s = x * x;
  gemm_vec p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  gemm_vec q = s * -1.45660718464996e-05f + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  return x * p * gemm_inverse(q);
}

/* erf(x / sqrt(2)) / 2: error below 4e-5. */
GEMM_INLINE gemm_vec gemm_half_erf(gemm_vec x) {
  x = gemm_most(gemm_least(x, gemm_all(4.0f)), gemm_all(-4.0f));
  gemm_vec s = x * x;
  gemm_vec p = s * -1.30128408e-9f + 1.0419545e-7f;
  p = p * s + -3.65711935e-6f;
  p = p * s + 7.48548846e-5f;
  p = p * s + -1.00648939e-3f;
  p = p * s + 9.50539485e-3f;
  p = p * s + -6.58878386e-2f;
  p = p * s + 3.98673385e-1f;
  return x * p;
}

GEMM_TARGET static void gemm_gelu_fine(float *x, size_t n) {
  for (size_t i = 0; i < n; i += GEMM_LANES) {
    gemm_vec v = gemm_load(x + i);
    gemm_store(x + i, v * 0.5f * (1.0f + gemm_erf(v * 0.707106781f)));
  }
}
GEMM_TARGET static void gemm_gelu_coarse(float *x, size_t n) {
  for (size_t i = 0; i < n; i += GEMM_LANES) {
    gemm_vec v = gemm_load(x + i);
    gemm_store(x + i, v * 0.5f + v * gemm_half_erf(v));
  }
}

/* ---- Rows ---- */

GEMM_INLINE void gemm_softmax(bool fine, float *x, size_t m, size_t n, size_t stride, float times, float *factors) {
  float by = times * 1.44269504f;
  for (size_t r = 0; r < m; r++, x += stride) {
    for (size_t i = n; i < stride; i++) x[i] = -INFINITY;
    gemm_vec high = gemm_load(x), sum = {0};
    for (size_t i = GEMM_LANES; i < stride; i += GEMM_LANES) high = gemm_most(high, gemm_load(x + i));
    gemm_vec top = gemm_all(gemm_greatest_of(high));
    for (size_t i = 0; i < stride; i += GEMM_LANES) {
      /* in this order: never above 0, however large the values are */
      gemm_vec e = gemm_exp2(fine, (gemm_load(x + i) - top) * by);
      gemm_store(x + i, e);
      sum += e;
    }
    for (size_t i = n; i < stride; i++) x[i] = 0;
    factors[r] = 1.0f / gemm_sum_of(sum);
  }
}
GEMM_TARGET static void gemm_softmax_fine(float *x, size_t m, size_t n, size_t stride, float times, float *factors) {
  gemm_softmax(true, x, m, n, stride, times, factors);
}
GEMM_TARGET static void gemm_softmax_coarse(float *x, size_t m, size_t n, size_t stride, float times, float *factors) {
  gemm_softmax(false, x, m, n, stride, times, factors);
}

GEMM_TARGET static void gemm_scale(const float *x, float by, size_t n, float *out) {
  size_t i = 0;
  for (; i + GEMM_LANES <= n; i += GEMM_LANES) gemm_store(out + i, gemm_load(x + i) * by);
  for (; i < n; i++) out[i] = x[i] * by;
}

GEMM_TARGET static void gemm_norm(float *x, const float *add, const float *gain, const float *shift, size_t n,
                                  float epsilon) {
  gemm_vec sum = {0}, squares = {0};
  size_t i = 0;
  float rest = 0, rest_squares = 0;
  for (; i + GEMM_LANES <= n; i += GEMM_LANES) {
    gemm_vec v = gemm_load(x + i);
    if (add) v += gemm_load(add + i);
    gemm_store(x + i, v);
    sum += v;
  }
  for (size_t j = i; j < n; j++) {
    if (add) x[j] += add[j];
    rest += x[j];
  }
  float mean = (gemm_sum_of(sum) + rest) / (float)n;
  for (i = 0; i + GEMM_LANES <= n; i += GEMM_LANES) {
    gemm_vec d = gemm_load(x + i) - mean;
    squares += d * d;
  }
  for (size_t j = i; j < n; j++) rest_squares += (x[j] - mean) * (x[j] - mean);
  float by = 1.0f / sqrtf((gemm_sum_of(squares) + rest_squares) / (float)n + epsilon);
  for (i = 0; i + GEMM_LANES <= n; i += GEMM_LANES)
    gemm_store(x + i, (gemm_load(x + i) - mean) * by * gemm_load(gain + i) + gemm_load(shift + i));
  for (size_t j = i; j < n; j++) x[j] = (x[j] - mean) * by * gain[j] + shift[j];
}
