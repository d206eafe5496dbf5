/* SPDX-License-Identifier: Apache-2.0 */
/* index_search.h - the nearest rows of a segment: by graph, by a scan of codes, or exactly; always with exact
 * distances.
 *
 * Codes only choose candidates; these are reranked by their float vectors, whose distances (kernel.h) are returned. An
 * exact search scans the codes of all rows and measures those whose codes do not prove that they are farther
 * (quant_bounds.h); where too many are left, or a segment does not say how large the errors of its codes are, it reads
 * all vectors.
 * With a filter the cheapest of three methods is used: a scan of the codes of the matches (if few match), a walk that
 * steps over rows that do not match (some), or a plain walk with a wider beam (most). If a walk finds fewer than it
 * should, the matches are scanned: there are never fewer results than exist. A prepared filter (filtered.h) is scanned
 * in one array, or walked over a graph of its own.
 */
#ifndef LODE_INDEX_INDEX_SEARCH_H
#define LODE_INDEX_INDEX_SEARCH_H

#include "kernel/kernel.h"
#include "index/filtered.h"

typedef struct index_search_request {
  const float *query; /* dim finite floats */
  size_t k;
  uint32_t beam;           /* effort: how many of the nearest rows a walk expands; 0: by `recall`. May be below k */
  double recall;           /* the share of the nearest to find, as calibrated; 0: the segment's default */
  bool exact;              /* the nearest of all allowed rows, by a scan of codes with bounds, or of all vectors */
  const uint64_t *allowed; /* bitmap of the slots that are live and match the filter, in whole words; NULL: all */
  uint32_t n_allowed;      /* how many bits are set; 0: not known, they are counted */
  index_filtered *match;   /* the same filter, prepared; NULL: not */
  index_fetch fetch;       /* for vectors of placed segments that have moved */
  bool bounded;            /* rows farther than `bound` are not wanted */
  float bound;
} index_search_request;

typedef struct index_hit {
  float distance;
  uint32_t slot;
  index_segment_record record;
} index_hit;

enum { INDEX_BY_WALK = 1, INDEX_BY_WALK_ALLOWED = 2, INDEX_BY_SCAN = 4, INDEX_BY_EXACT = 8, INDEX_BY_FILTERED = 16 };
typedef struct index_search_stats { /* accumulates */
  uint64_t distances;               /* between codes */
  uint64_t hops;
  uint64_t vectors;      /* measured for exact distances */
  uint64_t vectors_read; /* of these: read from the file */
  unsigned ways;         /* methods used: INDEX_BY_* */
} index_search_stats;

/* Scratch memory of one thread, for any segments one after the other; valid when zeroed. */
typedef struct index_search_scratch {
  index_walk_scratch walk;
  int8_t *query;
  size_t query_cap;
  float *vectors;
  size_t vectors_cap;
  uint64_t *allowed; /* by ordinal */
  size_t allowed_cap;
  uint64_t *candidates; /* key (order-preserving integer), then slot */
  size_t candidates_cap;
  uint64_t *least; /* the k least keys of a scan, as candidates */
  size_t least_cap;
  kernel_neighbour *near;
  size_t near_cap;
  index_search_stats stats;
} index_search_scratch;
void index_search_scratch_release(index_search_scratch *scratch);

/* Writes min(k, allowed rows) hits, nearest first, ties by slot; hits has room for k. With a bound, rows that are
 * proven to be farther may be left out, so that their vectors need not be read. LODE_CORRUPT when the segment is
 * damaged: read the database file instead. */
LODE_MUST lode_status index_search(index_segment *segment, const index_search_request *request,
                                   index_search_scratch *scratch, index_hit *hits, size_t *n_hits, lode_error *err);

#endif
