/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.h - the nearest of each point among the points themselves, for a map: by comparing all pairs. */
#ifndef LODE_COMMANDS_NEIGHBOURS_H
#define LODE_COMMANDS_NEIGHBOURS_H

#include "base/base.h"

/* For each of n vectors the indices of the k nearest others (k < n), nearest first, equal distances by index; `nearest`
 * has n * k places. Distances are Euclidean, of vectors rounded to 16 bits. Costs n * n / 2 products of vectors, which
 * for 10,000 vectors of 384 dimensions is about a second. LODE_CANCELLED if `progress` says so. */
LODE_MUST lode_status op_neighbours_find(const float *vectors, size_t n, uint32_t dimension, uint32_t k,
                                         uint32_t *nearest, lode_progress progress, lode_error *err);
/* Of the first `near` in each row of `shown` (rows of `shown_k`), the share that is among the first `far` in the same
 * row of `real` (rows of `real_k`): how many neighbours on a map are real ones. */
double op_neighbours_share(const uint32_t *shown, uint32_t shown_k, uint32_t near, const uint32_t *real,
                           uint32_t real_k, uint32_t far, size_t n);

#endif
