/* SPDX-License-Identifier: Apache-2.0 */
/* filtered.h - the matches of a filter in one segment, prepared for many searches.
 *
 * A filter that is used again is worth some preparation: the codes of its matches are copied into one array (in the
 * order of the segment, where neighbours are close to each other), so that few of them are scanned at memory speed; and
 * a graph among the matches alone is built on demand, row by row: a match is linked to the matches that are reached
 * from it over rows that do not match. Walks over that graph cost as much as walks over the segment's own. Matches are
 * numbered ("ranks") in ascending order of their ordinals.
 */
#ifndef LODE_INDEX_FILTERED_H
#define LODE_INDEX_FILTERED_H

#include "index/index_tuning.h"
#include "index/segment.h"

enum { INDEX_FILTERED_WIDTH = 32 };

typedef struct index_filtered {
  index_segment *segment; /* must outlive it */
  uint32_t n;
  uint64_t *ordinals;      /* bitmap of the matching ordinals */
  uint32_t *before;        /* for each word of `ordinals`: how many match before it */
  uint32_t *ordinal_of;    /* the ordinal of each rank */
  index_paged rows, links; /* by rank */
  uint32_t *stand_in;      /* for each entry of the segment: the match nearest to it by links; INDEX_NO_LINK: none */
  bool *sparse;            /* for each entry of the segment: matches are rarer around it than on average */
  pthread_mutex_t lock;    /* held to store a row of links */
} index_filtered;

/* slots: bitmap of the matching slots, n of them set. */
LODE_MUST lode_status index_filtered_new(index_segment *segment, const uint64_t *slots, uint32_t n,
                                         index_filtered **match, lode_error *err);
void index_filtered_free(index_filtered *match);
/* Its size in bytes when all links are built. */
uint64_t index_filtered_bytes(const index_segment *segment, uint32_t n);

/* Where a walk starts. */
typedef struct index_filtered_starts {
  uint32_t ranks[INDEX_FILTERED_STARTS]; /* distinct */
  uint32_t n;
  bool distant; /* the matches may not be near the query */
} index_filtered_starts;
/* Chooses starts by the segment's entries, which is cheap. This and the next are called inside the segment
 * (index_segment_enter()). */
LODE_MUST lode_status index_filtered_begin(index_filtered *match, const quant_query *query,
                                           index_filtered_starts *starts, lode_error *err);
/* Chooses starts by the rows nearest to the query, whether they match or not: matches among them and their neighbours.
 * probes: the pool of a walk over the segment. */
LODE_MUST lode_status index_filtered_probe(index_filtered *match, const index_walk_scratch *probes,
                                           index_filtered_starts *starts, lode_error *err);
/* `starts` must outlive the view. */
index_graph_view index_filtered_view(index_filtered *match, const index_filtered_starts *starts);

#endif
