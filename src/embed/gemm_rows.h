/* gemm_rows.h - what every kernel shares: that which stands between products, written once with the compiler's vectors and
 * compiled for each instruction set.
 *
 * The including file defines LANES (floats in a vector) and TARGET (function attributes); LEAST, MOST and INVERSE (to 11 bits
 * or more) where the CPU has instructions for them, which compilers do not find. Multiply-adds they do: these files are
 * compiled with -ffp-contract=fast.
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

static inline const void *row_of(const lode__product *p, size_t i) { return (const char *)p->rows + i * p->row_bytes; }
static inline const void *panel_of(const lode__product *p, size_t i) { return (const char *)p->panels + i * p->panel_bytes; }

/* ---- exp and erf ---- */

/* e^x for x <= 0 (and a little above): 2^n * 2^f with |f| <= 1/2, relative error below 2e-7; 1e-38 below -87. */
TARGET_INLINE vec exp_of(vec x) {
  vec kept = most(x, all(-87.3f));
  vec shifted = kept * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: the low bits hold the rounded number */
  vec n = shifted - 12582912.0f;
  vec f = kept - n * 0.693359375f;
  f = f - n * -2.12194440e-4f;
  vec p = f * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * (f * f) + f + 1.0f;
  ivec power = ((ivec)shifted - 0x4B400000 + 127) << 23;
  return p * (vec)power;
}

/* A ratio of polynomials on [-4, 4], beyond which it is 1 in float; absolute error below 4e-7. */
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

TARGET static void gelu(float *x, size_t n) {
  for (size_t i = 0; i < n; i += LANES) {
    vec v = load(x + i);
    store(x + i, v * 0.5f * (1.0f + erf_of(v * 0.707106781f)));
  }
}

/* ---- Rows ---- */

TARGET static float softmax(float *x, size_t n, size_t padded, float times) {
  for (size_t i = n; i < padded; i++) x[i] = -INFINITY;
  vec high = all(x[0]), sum = {0};
  for (size_t i = 0; i < padded; i += LANES) high = most(high, load(x + i));
  float top = greatest_of(high);
  for (size_t i = 0; i < padded; i += LANES) {
    vec e = exp_of((load(x + i) - top) * times);
    store(x + i, e);
    sum += e;
  }
  for (size_t i = n; i < padded; i++) x[i] = 0;
  return 1.0f / sum_of(sum);
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
