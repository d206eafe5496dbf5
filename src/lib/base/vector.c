/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - see vector.h. */
#include "base/vector.h"

#include <math.h>

/* Several partial sums, so that the compiler can vectorize. Squares of all floats are normal numbers in double. */
double vec_length(const float *v, size_t n) {
  enum { VEC_LANES = 8 };
  double sums[VEC_LANES] = {0}, sum = 0;
  size_t i = 0;
  for (; n - i >= VEC_LANES; i += VEC_LANES)
    for (size_t j = 0; j < VEC_LANES; j++) sums[j] += (double)v[i + j] * (double)v[i + j];
  for (size_t j = 0; i + j < n; j++) sums[j] += (double)v[i + j] * (double)v[i + j];
  for (size_t j = 0; j < VEC_LANES; j++) sum += sums[j];
  return sqrt(sum);
}

double vec_cosine(const float *a, const float *b, uint32_t dim) {
  double dot = 0, aa = 0, bb = 0;
  for (uint32_t i = 0; i < dim; i++) {
    dot += (double)a[i] * b[i];
    aa += (double)a[i] * a[i];
    bb += (double)b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? dot / sqrt(aa * bb) : 0;
}

/* ---- Half precision ---- */

float vec_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exp = half >> 10 & 31, frac = half & 0x3FF, bits;
  if (exp == 31) {
    bits = sign | 0x7F800000 | frac << 13;
  } else if (exp > 0) {
    bits = sign | (exp + 112) << 23 | frac << 13;
  } else { /* frac * 2^-24, exact */
    float f = (float)frac * 0x1p-24f;
    memcpy(&bits, &f, sizeof bits);
    bits |= sign;
  }
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

uint16_t vec_float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, abs = bits & 0x7FFFFFFF;
  if (abs > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (abs >= 0x477FF000) return (uint16_t)(sign | 0x7C00);
  if (abs < 0x38800000) { /* below 2^-14: a multiple of 2^-24; adding 0.5 leaves it rounded in the low bits */
    float f, half = 0.5f;
    memcpy(&f, &abs, sizeof f);
    f += half;
    memcpy(&abs, &f, sizeof abs);
    return (uint16_t)(sign | (abs - 0x3F000000));
  }
  abs += 0xFFF + (abs >> 13 & 1);
  return (uint16_t)(sign | (abs - 0x38000000) >> 13);
}
