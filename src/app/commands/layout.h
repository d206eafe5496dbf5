/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - places points on the plane so that neighbours in space are neighbours there: t-SNE over the graph of the
 * nearest neighbours, with repulsion summed by a quadtree (Barnes and Hut). */
#ifndef LODE_COMMANDS_LAYOUT_H
#define LODE_COMMANDS_LAYOUT_H

#include "base/base.h"

typedef struct op_layout_points {
  size_t n;                /* points; fewer than 2^31 */
  const uint32_t *nearest; /* of each point the k nearest others: rows of `stride` */
  uint32_t k, stride;
  double *xy; /* in: n pairs to start from, such as a projection; out: from -1 to 1, both axes with the same scale */
} op_layout_points;

/* Nothing is random: equal input gives equal output, bit for bit. About 3 KB for each point, some seconds for 10,000.
 * LODE_CANCELLED if `progress` says so. */
LODE_MUST lode_status op_layout_compute(op_layout_points *layout, lode_progress progress, lode_error *err);

#endif
