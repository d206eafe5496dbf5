/* vector.c - see vector.h. */
#include "vector.h"

#include <math.h>

double lode__cosine(const float *a, const float *b, uint32_t dim) {
  double dot = 0, aa = 0, bb = 0;
  for (uint32_t i = 0; i < dim; i++) {
    dot += (double)a[i] * b[i];
    aa += (double)a[i] * a[i];
    bb += (double)b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? dot / sqrt(aa * bb) : 0;
}
