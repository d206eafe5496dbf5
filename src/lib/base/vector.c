/* vector.c - see vector.h. */
#include "base/vector.h"

#include <math.h>

/* In lanes, of which the compiler makes vector code. The squares of all floats are normal numbers in double. */
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
