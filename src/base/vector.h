/* vector.h - measures of a few vectors at a time; what searches is index/kernel.h. */
#ifndef LODE_VECTOR_H
#define LODE_VECTOR_H

#include "base.h"

/* In double; 0 where one of them has no length. */
double lode__cosine(const float *a, const float *b, uint32_t dim);

/* Lengths that a vector may have, besides 0. Between two such vectors every distance fits in a float, and squares of what
 * matters do not underflow: l2 is at most 2^126. */
#define LODE__LEAST_LENGTH 0x1p-40
#define LODE__MOST_LENGTH 0x1p62
double lode__vector_length(const float *v, size_t n);
static inline bool lode__length_fits(double length) {
  return length == 0 || (length >= LODE__LEAST_LENGTH && length <= LODE__MOST_LENGTH);
}

#endif
