/* SPDX-License-Identifier: Apache-2.0 */
/* quant_bounds.h - how far the distance that a key stands for can be from the distance between the vectors themselves.
 *
 * A decoded row is within `error` of its vector, a decoded query within its own error of the query. By the triangle
 * inequality the distance between the decoded ones is then within the sum of both of the true distance (l2, and cosine,
 * which is half of the squared l2 distance of normalised vectors); for inner products Cauchy-Schwarz gives a bound.
 * Roundings of keys and of kernel_distance() are added. So a scan of keys can prove which rows are not among the
 * nearest: everything that is left is measured by its float vector, and the result is exact.
 */
#ifndef LODE_KERNEL_QUANT_BOUNDS_H
#define LODE_KERNEL_QUANT_BOUNDS_H

#include "kernel/quant.h"

/* Of all rows of a segment, in the model's units; both zero: not known. */
typedef struct quant_spread {
  float error;  /* the greatest distance between a vector and its decoded row */
  float length; /* of the longest decoded row */
} quant_spread;
/* Widens the spread to include one more row. */
void quant_spread_add(quant_spread *spread, const quant_model *model, const float *vector, const unsigned char *row);

typedef struct quant_bounds {
  lode_metric metric;
  double offset;             /* l2, cosine: squared length of the decoded query; ip: inner product of query and mean */
  double reach;              /* how far the database may be: as a distance (l2, cosine), as an inner product (ip) */
  double rounding;           /* of keys */
  double slope;              /* of squared distances, or of inner products, to those of the metric */
  double relative, absolute; /* rounding of kernel_distance() */
} quant_bounds;
/* False if nothing can be proven: the spread is not known, or the query's values leave the range of the model (or, for
 * cosine, it has no length). */
LODE_MUST bool quant_bounds_of(const quant_model *model, const quant_spread *spread, const float *vector,
                               const quant_query *query, quant_bounds *bounds);
/* The least that kernel_distance() can return for a row with this key. Ascending. */
double quant_bounds_least(const quant_bounds *bounds, float key);
/* The greatest key that a row can have which is not farther than some row with this key. */
float quant_bounds_last_key(const quant_bounds *bounds, float key);

#endif
