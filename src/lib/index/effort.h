/* SPDX-License-Identifier: Apache-2.0 */
/* effort.h - how many of the nearest rows a given effort finds, as measured when the graph was built (calibrate.c). */
#ifndef LODE_INDEX_EFFORT_H
#define LODE_INDEX_EFFORT_H

#include "base/base.h"

enum { INDEX_EFFORTS = 20 /* points of the curve */, INDEX_FOUND_ALL = 10000 };

/* found[i]: how many of 10,000 of the ten nearest a walk with index_effort_at(i) finds, at least (less the standard
 * error of the sample). Ascending; all zero: not known. */
typedef struct index_effort_curve {
  uint16_t found[INDEX_EFFORTS];
} index_effort_curve;

/* The codes do not tell the vectors apart: whatever the effort, a walk finds next to nothing. Such a segment is
 * searched exactly. */
static inline void index_effort_set_blind(index_effort_curve *curve) {
  for (size_t i = 0; i < INDEX_EFFORTS; i++) curve->found[i] = 1;
}
static inline bool index_effort_is_blind(const index_effort_curve *curve) {
  return curve->found[INDEX_EFFORTS - 1] == 1;
}

/* 8, 12, 16, 24 ... 4096, 6144 */
static inline uint32_t index_effort_at(size_t i) { return (i % 2 ? 12u : 8u) << (i / 2); }

enum { INDEX_EFFORT_UNKNOWN = 0, INDEX_EFFORT_NONE = UINT16_MAX };
/* The effort that finds this share of the ten nearest, with a margin for sampling error: a quarter of what may be
 * missed. INDEX_EFFORT_NONE: none of those tried. */
uint32_t index_effort_for(const index_effort_curve *curve, double recall);

#endif
