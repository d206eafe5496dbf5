/* vector.h - measures of a few vectors at a time; what searches is index/kernel.h. */
#ifndef LODE_VECTOR_H
#define LODE_VECTOR_H

#include "base.h"

/* In double; 0 where one of them has no length. */
double lode__cosine(const float *a, const float *b, uint32_t dim);

#endif
