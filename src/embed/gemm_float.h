/* gemm_float.h - the float half of a kernel, written once with the compiler's vectors and compiled for each instruction set.
 *
 * The including file defines LANES (floats in a vector), ROWS (rows of a tile) and TARGET (function attributes). Multiply-
 * adds are left to the compiler: these files are compiled with -ffp-contract=fast.
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
TARGET_INLINE vec least(vec a, vec b) { return pick(a < b, a, b); }
TARGET_INLINE vec most(vec a, vec b) { return pick(a > b, a, b); }

TARGET_INLINE float sum_of(vec v) {
  float s = 0;
  for (int i = 0; i < LANES; i++) s += v[i];
  return s;
}

/* ---- Products ---- */

enum { VECS = LODE__PANEL / LANES };

/* Rows of the next tile, where `left` remain: as many as there are registers for, and no small rest that would have too few
 * sums to keep the CPU busy. */
static inline size_t tile_rows(size_t left) {
  if (left >= 2 * ROWS || left == ROWS) return ROWS;
  return left < ROWS ? left : (left + 1) / 2;
}

/* Asks for tile number `at` of `of` equal shares of the next panel. */
static inline void fetch_share(const void *next, size_t bytes, size_t at, size_t of) {
  const char *p = next;
  size_t lines = (bytes + 63) / 64;
  for (size_t i = lines * at / of; i < lines * (at + 1) / of; i++) __builtin_prefetch(p + 64 * i, 0, 3);
}

TARGET_INLINE void tile(int rows, const lode__product *p, size_t row) {
  vec acc[ROWS][VECS];
  const float *a = p->a + row * p->lda, *panel = p->panel;
  float *c = p->c + row * p->ldc;
  size_t lda = p->lda, ldc = p->ldc, k = p->k;
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int j = 0; j < VECS; j++) {
      const float *base = p->more ? c + (size_t)r * ldc : p->bias;
      acc[r][j] = base ? load(base + j * LANES) : (vec){0};
    }
  for (size_t i = 0; i < k; i++) {
    vec b[VECS];
    UNROLL for (int j = 0; j < VECS; j++) b[j] = load(panel + i * LODE__PANEL + (size_t)j * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      vec x = all(a[(size_t)r * lda + i]);
      UNROLL for (int j = 0; j < VECS; j++) acc[r][j] += x * b[j];
    }
  }
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int j = 0; j < VECS; j++) store(c + (size_t)r * ldc + (size_t)j * LANES, acc[r][j]);
}

/* A tile of each number of rows: SIZES(F) makes a case for each up to ROWS. */
#define CASE(F, rows, ...) case rows: F(rows, __VA_ARGS__); break;
#if ROWS >= 12
#define MORE_SIZES(F, ...) CASE(F, 7, __VA_ARGS__) CASE(F, 8, __VA_ARGS__) CASE(F, 9, __VA_ARGS__) \
  CASE(F, 10, __VA_ARGS__) CASE(F, 11, __VA_ARGS__) CASE(F, 12, __VA_ARGS__)
#else
#define MORE_SIZES(F, ...)
#endif
#if ROWS >= 6
#define SIZES(F, ...) CASE(F, 1, __VA_ARGS__) CASE(F, 2, __VA_ARGS__) CASE(F, 3, __VA_ARGS__) CASE(F, 4, __VA_ARGS__) \
  CASE(F, 5, __VA_ARGS__) CASE(F, 6, __VA_ARGS__) MORE_SIZES(F, __VA_ARGS__)
#else
#define SIZES(F, ...) CASE(F, 1, __VA_ARGS__) CASE(F, 2, __VA_ARGS__)
#endif

TARGET static void panel(const lode__product *p) {
  size_t tiles = (p->m + ROWS - 1) / ROWS;
  for (size_t row = 0, t = 0; row < p->m; t++) {
    size_t rows = tile_rows(p->m - row);
    if (p->next) fetch_share(p->next, p->k * LODE__PANEL * sizeof(float), t, tiles);
    switch (rows) { SIZES(tile, p, row) }
    row += rows;
  }
}

/* ---- exp and erf ---- */

/* e^x for x <= 0 (and a little above): 2^n * 2^f with |f| <= 1/2, relative error below 2e-7; 0 below -87. */
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
  return pick(x < all(-87.3f), (vec){0}, p * (vec)power);
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
  return x * p / q;
}

TARGET static void gelu(float *x, size_t n) {
  for (size_t i = 0; i < n; i += LANES) {
    vec v = load(x + i);
    store(x + i, v * 0.5f * (1.0f + erf_of(v * 0.707106781f)));
  }
}

/* ---- Rows ---- */

TARGET static void softmax(float *x, size_t n, size_t padded, float scale) {
  for (size_t i = n; i < padded; i++) x[i] = -INFINITY;
  vec high = all(x[0]), sum = {0};
  for (size_t i = 0; i < padded; i += LANES) high = most(high, load(x + i));
  float top = high[0];
  for (int i = 1; i < LANES; i++) top = high[i] > top ? high[i] : top;
  for (size_t i = 0; i < padded; i += LANES) {
    vec e = exp_of((load(x + i) - top) * scale);
    store(x + i, e);
    sum += e;
  }
  float share = 1.0f / sum_of(sum);
  for (size_t i = 0; i < padded; i += LANES) store(x + i, load(x + i) * share);
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
  float scale = 1.0f / sqrtf((sum_of(squares) + rest_squares) / (float)n + epsilon);
  for (i = 0; i + LANES <= n; i += LANES) store(x + i, (load(x + i) - mean) * scale * load(gain + i) + load(shift + i));
  for (size_t j = i; j < n; j++) x[j] = (x[j] - mean) * scale * gain[j] + shift[j];
}

/* The greatest absolute value of a row. */
TARGET_INLINE float top_of(const float *x, size_t n) {
  vec high = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) high = most(high, most(load(x + i), -load(x + i)));
  float top = 0;
  for (int j = 0; j < LANES; j++) top = high[j] > top ? high[j] : top;
  for (; i < n; i++) top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
  return top;
}

/* Rounded to the nearest: adding 1.5 * 2^23 leaves the number in the low bits. */
TARGET_INLINE ivec rounded(vec x) { return (ivec)(x + 12582912.0f) - 0x4B400000; }

TARGET static void narrow(const float *p, size_t k, const float *scales, int16_t *out) {
  for (int j = 0; j < VECS; j++) {
    vec by = 1.0f / load(scales + j * LANES);
    for (size_t i = 0; i < k; i += 2) {
      ivec low = rounded(load(p + i * LODE__PANEL + (size_t)j * LANES) * by), high = {0};
      if (i + 1 < k) high = rounded(load(p + (i + 1) * LODE__PANEL + (size_t)j * LANES) * by);
      ivec pair = (low & 0xFFFF) | (high << 16);
      memcpy(out + i * LODE__PANEL + 2 * (size_t)j * LANES, &pair, sizeof pair);
    }
  }
}
