/* SPDX-License-Identifier: Apache-2.0 */
/* projection.h - projects vectors to two dimensions: the directions of largest variance (PCA), for a map.
 *
 * Subspace iteration in double on the centred vectors, always from the same start: equal input gives equal output, bit
 * for bit, on every machine with IEEE doubles. The covariance matrix is never formed: a pass costs n * dimension.
 */
#ifndef LODE_COMMANDS_PROJECTION_H
#define LODE_COMMANDS_PROJECTION_H

#include "base/base.h"

typedef struct op_projection {
  float *vectors; /* n rows of `dimension`; they are modified: centred, and scaled */
  size_t n;
  uint32_t dimension;
  bool unit;       /* scale each to unit length */
  double *xy;      /* gets n pairs from -1 to 1, both axes with the same scale, the larger variance on x */
  double kept;     /* result: share of the variance that is shown, 0 to 1; 1 if there is no variance */
  uint32_t passes; /* result: over the vectors */
} op_projection;

/* The sign of an axis makes its largest coordinate positive. A direction without variance (one vector, all equal,
 * dimension 1) gives zeros. LODE_CANCELLED if `progress` says so. */
LODE_MUST lode_status op_projection_compute(op_projection *projection, lode_progress progress, lode_error *err);

#endif
