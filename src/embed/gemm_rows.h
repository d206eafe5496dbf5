/* gemm_rows.h - what every kernel shares: that which stands between products, written once with the compiler's vectors and
 * compiled for each instruction set.
 *
 * The including file defines LANES (floats in a vector) and TARGET (function attributes); LEAST, MOST and INVERSE (to 11 bits
 * or more), and SUM_OF and GREATEST_OF (of a vector's floats), where the CPU has instructions for them, which compilers do not
 * find. Multiply-adds they do: these files are compiled with -ffp-contract=fast.
 */
#include "embed/gemm.h"

#include <math.h>

#define TARGET_INLINE static inline __attribute__((always_inline)) TARGET

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));

TARGET_INLINE vec load(const float *p) {
  vec v;
  memcpy(&v, p, sizeof v);
  return v;
}
TARGET_INLINE void store(float *p, vec v) { memcpy(p, &v, sizeof v); }
TARGET_INLINE vec all(float x) { return x - (vec){0}; }
TARGET_INLINE vec pick(ivec mask, vec yes, vec no) { return (vec)((mask & (ivec)yes) | (~mask & (ivec)no)); }
#ifdef MOST
TARGET_INLINE vec least(vec a, vec b) { return (vec)LEAST(a, b); }
TARGET_INLINE vec most(vec a, vec b) { return (vec)MOST(a, b); }
/* A step of Newton's doubles the digits. */
TARGET_INLINE vec inverse(vec x) {
  vec y = (vec)INVERSE(x);
  return y * (2.0f - x * y);
}
#else
TARGET_INLINE vec least(vec a, vec b) { return pick(a < b, a, b); }
TARGET_INLINE vec most(vec a, vec b) { return pick(a > b, a, b); }
TARGET_INLINE vec inverse(vec x) { return 1.0f / x; }
#endif

/* Halves upon halves: a chain of LANES additions would cost more than the rest of a short row. */
#ifdef SUM_OF
TARGET_INLINE float sum_of(vec v) { return SUM_OF(v); }
TARGET_INLINE float greatest_of(vec v) { return GREATEST_OF(v); }
#else
#define FOLD(name, both) \
  TARGET_INLINE float name(vec v) { \
    float x[LANES]; \
    memcpy(x, &v, sizeof x); \
    UNROLL for (int n = LANES / 2; n > 0; n /= 2) \
      UNROLL for (int i = 0; i < n; i++) x[i] = both(x[i], x[i + n]); \
    return x[0]; \
  }
static inline float sum(float a, float b) { return a + b; }
static inline float greater(float a, float b) { return a > b ? a : b; }
FOLD(sum_of, sum)
FOLD(greatest_of, greater)
#endif

static inline const void *row_of(const lode__product *p, size_t i) { return (const char *)p->rows + i * p->row_bytes; }
static inline const void *panel_of(const lode__product *p, size_t i) { return (const char *)p->panels + i * p->panel_bytes; }

/* ---- exp and erf ----
 *
 * Fine for full arithmetic; coarse where what comes out is rounded to 8 or 13 bits anyway. */

/* 2^x for x <= 0, as 2^n * 2^f with |f| <= 1/2; nearly 0 below -126. */
TARGET_INLINE vec power_of(bool fine, vec x) {
  vec kept = most(x, all(-126.0f));
  vec shifted = kept + 12582912.0f; /* 1.5 * 2^23: the low bits hold the rounded number */
  vec f = kept - (shifted - 12582912.0f);
  vec p;
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
  return (vec)((ivec)p + (((ivec)shifted - 0x4B400000) << 23));
}

/* erf(x), |x| bounded: an odd rational approximation of degree 13 / 8, error below 5e-7. */
TARGET_INLINE vec erf_of(vec x) {
  x = most(least(x, all(4.0f)), all(-4.0f));
  vec s = x * x;
  vec p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  vec q = s * -1.45660718464996e-05f + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  return x * p * inverse(q);
}

/* erf(x / sqrt(2)) / 2: error below 4e-5. */
TARGET_INLINE vec half_erf_of(vec x) {
  x = most(least(x, all(4.0f)), all(-4.0f));
  vec s = x * x;
  vec p = s * -1.30128408e-9f + 1.0419545e-7f;
  p = p * s + -3.65711935e-6f;
  p = p * s + 7.48548846e-5f;
  p = p * s + -1.00648939e-3f;
  p = p * s + 9.50539485e-3f;
  p = p * s + -6.58878386e-2f;
  p = p * s + 3.98673385e-1f;
  return x * p;
}

TARGET static void gelu_fine(float *x, size_t n) {
  for (size_t i = 0; i < n; i += LANES) {
    vec v = load(x + i);
    store(x + i, v * 0.5f * (1.0f + erf_of(v * 0.707106781f)));
  }
}
TARGET static void gelu_coarse(float *x, size_t n) {
  for (size_t i = 0; i < n; i += LANES) {
    vec v = load(x + i);
    store(x + i, v * 0.5f + v * half_erf_of(v));
  }
}

/* ---- Rows ---- */

TARGET_INLINE void softmax(bool fine, float *x, size_t m, size_t n, size_t stride, float times, float *factors) {
  float by = times * 1.44269504f;
  for (size_t r = 0; r < m; r++, x += stride) {
    for (size_t i = n; i < stride; i++) x[i] = -INFINITY;
    vec high = load(x), sum = {0};
    for (size_t i = LANES; i < stride; i += LANES) high = most(high, load(x + i));
    vec top = all(greatest_of(high));
    for (size_t i = 0; i < stride; i += LANES) {
      vec e = power_of(fine, (load(x + i) - top) * by); /* in this order: never above 0, however large they are */
      store(x + i, e);
      sum += e;
    }
    for (size_t i = n; i < stride; i++) x[i] = 0;
    factors[r] = 1.0f / sum_of(sum);
  }
}
TARGET static void softmax_fine(float *x, size_t m, size_t n, size_t stride, float times, float *factors) {
  softmax(true, x, m, n, stride, times, factors);
}
TARGET static void softmax_coarse(float *x, size_t m, size_t n, size_t stride, float times, float *factors) {
  softmax(false, x, m, n, stride, times, factors);
}

TARGET static void scale(const float *x, float by, size_t n, float *out) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(out + i, load(x + i) * by);
  for (; i < n; i++) out[i] = x[i] * by;
}

TARGET static void norm(float *x, const float *add, const float *gain, const float *shift, size_t n, float epsilon) {
  vec sum = {0}, squares = {0};
  size_t i = 0;
  float rest = 0, rest_squares = 0;
  for (; i + LANES <= n; i += LANES) {
    vec v = load(x + i);
    if (add) v += load(add + i);
    store(x + i, v);
    sum += v;
  }
  for (size_t j = i; j < n; j++) {
    if (add) x[j] += add[j];
    rest += x[j];
  }
  float mean = (sum_of(sum) + rest) / (float)n;
  for (i = 0; i + LANES <= n; i += LANES) {
    vec d = load(x + i) - mean;
    squares += d * d;
  }
  for (size_t j = i; j < n; j++) rest_squares += (x[j] - mean) * (x[j] - mean);
  float by = 1.0f / sqrtf((sum_of(squares) + rest_squares) / (float)n + epsilon);
  for (i = 0; i + LANES <= n; i += LANES) store(x + i, (load(x + i) - mean) * by * load(gain + i) + load(shift + i));
  for (size_t j = i; j < n; j++) x[j] = (x[j] - mean) * by * gain[j] + shift[j];
}
