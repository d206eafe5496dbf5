/* projection.h - vectors onto the plane: their two directions of largest variance (PCA), for a map that people look at.
 *
 * Subspace iteration in double on the centred vectors, from a start that is always the same: equal input gives equal output, bit by
 * bit, on every machine with IEEE doubles. Never forms the covariance matrix: a pass costs n * dimension, whatever the dimension.
 */
#ifndef LODE_COMMANDS_PROJECTION_H
#define LODE_COMMANDS_PROJECTION_H

#include "base/base.h"

typedef struct op_projection {
  double kept;     /* share of the variance that the plane shows, 0 to 1; 1 where there is no variance */
  uint32_t passes; /* over the vectors */
} op_projection;

/* `vectors` are n rows of `dimension`; with `unit` each counts by its direction alone. They are changed: unit length, mean taken off.
 * xy gets n pairs from -1 to 1, both axes by the same scale, the larger spread on x; the sign of an axis is such that
 * its largest coordinate is positive. No variance in a direction (one vector, all equal, dimension 1): zeros there.
 * LODE_CANCELLED when `progress` says so. */
lode_status op_projection_compute(float *vectors, size_t n, uint32_t dimension, bool unit, lode_progress progress, double *xy, op_projection *plane,
                           lode_error *err);

#endif
