/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - reciprocal rank fusion of two rankings. */
#ifndef LODE_QUERY_FUSE_H
#define LODE_QUERY_FUSE_H

#include "base/base.h"

typedef struct fuse_ranked {
  uint64_t key; /* the record */
  double score; /* out: fused score, larger is better */
} fuse_ranked;

/* Distinct keys, best first; the weight is finite and not negative. */
typedef struct fuse_ranking {
  const uint64_t *keys;
  size_t n;
  double weight;
} fuse_ranking;

/* score(r) = sum over rankings of weight / (60 + rank), rank from 1. Writes the union of both, best first, ties by
 * smaller key, to out, which has space for a.n + b.n entries, and returns its size. */
size_t fuse_rankings(fuse_ranking a, fuse_ranking b, fuse_ranked *out);

/* How many hits of each ranking go into a fusion of which k are returned. */
size_t fuse_depth(size_t k);

#endif
