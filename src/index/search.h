/* search.h - the nearest rows of a segment: by graph, by a scan of codes, or exactly; always with exact distances.
 *
 * Codes only choose candidates; these are ranked by their float vectors, whose distances (kernel.h) are returned.
 * With a filter the cheapest of three ways is taken: a scan of the codes of the matches (few of them), a walk that steps
 * over rows that do not match (some), a plain walk with a wider beam (most). When a walk finds fewer than it should,
 * the matches are scanned: never fewer results than exist. A filter that was made ready (match.h) is scanned in one piece
 * of memory, or walked over a graph of its own.
 */
#ifndef LODE_SEARCH_H
#define LODE_SEARCH_H

#include "index/kernel.h"
#include "index/match.h"

typedef struct lode__search_request {
  const float *query;      /* dim finite floats */
  size_t k;
  uint32_t beam;           /* effort: how many of the nearest rows a walk expands; 0: as recall says. May be below k */
  double recall;           /* the share of the nearest to find, as the segment was calibrated; 0: its default */
  bool exact;              /* read every vector that is allowed */
  const uint64_t *allowed; /* a bit for each of segment->info.n slots (live, and matching the filter), in whole words;
                              NULL: all. Bits past the last slot are ignored */
  lode__match *match;      /* the same, made ready; NULL: not */
} lode__search_request;

typedef struct lode__segment_hit {
  float distance;
  uint32_t slot;
  lode__segment_record record;
} lode__segment_hit;

enum { LODE__BY_WALK = 1, LODE__BY_WALK_ALLOWED = 2, LODE__BY_SCAN = 4, LODE__BY_EXACT = 8, LODE__BY_MATCH = 16 };
typedef struct lode__search_stats { /* adds up */
  uint64_t distances;  /* of codes */
  uint64_t hops;
  uint64_t vectors;    /* read for exact distances */
  unsigned ways;       /* which were taken */
} lode__search_stats;

/* Room of one thread, for any segments one after the other; zeroed is empty. */
typedef struct lode__search_room {
  lode__walk_room walk;
  int8_t *query;
  size_t query_cap;
  float *vectors;
  size_t vectors_cap;
  uint64_t *allowed;      /* by ordinal */
  size_t allowed_cap;
  uint64_t *candidates;   /* order of the key, then slot */
  size_t candidates_cap;
  lode__near *near;
  size_t near_cap;
  lode__search_stats stats;
} lode__search_room;
void lode__search_room_release(lode__search_room *room);

/* Writes min(k, allowed rows) hits, nearest first, ties by slot; hits has room for k. LODE_CORRUPT when the segment is
 * damaged: then answer from the truth. */
LODE_MUST lode_status lode__segment_search(lode__segment *segment, const lode__search_request *request,
                                           lode__search_room *room, lode__segment_hit *hits, size_t *n_hits, lode_error *err);

#endif
