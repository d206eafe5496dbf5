/* SPDX-License-Identifier: Apache-2.0 */
/* vector.h - lengths and distances of single vectors; searching uses kernel/kernel.h. */
#ifndef LODE_BASE_VECTOR_H
#define LODE_BASE_VECTOR_H

#include "base/base.h"

/* Computed in double; 0 if one of them has length 0. */
double vec_cosine(const float *a, const float *b, uint32_t dim);

/* Lengths that a vector may have, besides 0. Between two such vectors every distance fits in a float, and the squares
 * of significant values do not underflow: l2 is at most 2^126. */
#define VEC_MIN_LENGTH 0x1p-40
#define VEC_MAX_LENGTH 0x1p62
double vec_length(const float *v, size_t n);
static inline bool vec_length_fits(double length) {
  return length == 0 || (length >= VEC_MIN_LENGTH && length <= VEC_MAX_LENGTH);
}

/* IEEE half precision, as its bits. */
float vec_half_to_float(uint16_t half);
uint16_t vec_float_to_half(float value); /* nearest, ties to even; out of range: infinity */

#endif
