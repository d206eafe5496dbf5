/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.h - which points of a map lie together, and a name for each such place. */
#ifndef LODE_COMMANDS_CLUSTERS_H
#define LODE_COMMANDS_CLUSTERS_H

#include "base/base.h"

enum { OP_MAX_CLUSTERS = 24 };

typedef struct op_cluster_point {
  lode_str text, path; /* what names are made of: words, folders; path without data: none */
} op_cluster_point;

typedef struct op_clusters {
  uint8_t *of; /* in: room for each point; out: its cluster, from 0; `n` for a point that is in none */
  size_t n;
  char names[OP_MAX_CLUSTERS][64]; /* UTF-8, all different */
} op_clusters;

/* Hills of density on the plane (coordinates from -1 to 1) with at least a hundredth of the points. A name is the
 * folder that most points of a cluster share and few others, or the words that are more frequent there than elsewhere.
 * Equal input gives equal output. */
LODE_MUST lode_status op_clusters_find(const double *xy, const op_cluster_point *points, size_t n_points,
                                       op_clusters *out, lode_error *err);

#endif
