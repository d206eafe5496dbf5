/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - reciprocal rank fusion of two rankings. */
#ifndef LODE_QUERY_FUSE_H
#define LODE_QUERY_FUSE_H

#include "base/base.h"

typedef struct fuse_ranked {
  uint64_t key; /* the record */
  double score; /* out: fused score, larger is better */
} fuse_ranked;

/* score(r) = sum over lists of weight / (60 + rank), rank from 1. Writes the union of both lists, best first, ties by
 * smaller key, to out (na + nb entries) and its size to *n. a and b must have distinct keys each, best first.
 * LODE_INVALID for a weight that is negative or not finite. */
LODE_MUST lode_status fuse_rankings(const uint64_t *a, size_t na, double weight_a, const uint64_t *b, size_t nb,
                                    double weight_b, fuse_ranked *out, size_t *n, lode_error *err);

/* How many hits of each ranking go into a fusion of which k are returned. */
size_t fuse_depth(size_t k);

#endif
