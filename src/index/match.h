/* match.h - the matches of a filter in one segment, made ready for many searches.
 *
 * A filter that is used again is worth some work: the codes of its matches are copied into one piece of memory (in the
 * order of the segment, where neighbours lie near each other), so that few of them are scanned at the speed of memory; and
 * a graph among them alone is made as it is needed, row by row: a match is linked to the matches that are reached from it
 * over rows that do not match. Walks over that graph cost what walks over the segment's own do.
 * Numbers of matches ("ranks") are those of their ordinals in rising order.
 */
#ifndef LODE_MATCH_H
#define LODE_MATCH_H

#include "index/segment.h"

enum { LODE__MATCH_WIDTH = 32, LODE__MATCH_LOCKS = 8 };

typedef struct lode__match {
  lode__segment *segment;   /* outlives it */
  uint32_t n;
  uint64_t *ordinals;       /* a bit for each ordinal that matches */
  uint32_t *before;         /* of each word of ordinals: how many match before it */
  uint32_t *ordinal_of;     /* of each rank */
  lode__paged rows, links;  /* by rank */
  uint32_t *entries;        /* ranks in rising order, where walks begin */
  uint32_t n_entries;
  pthread_mutex_t locks[LODE__MATCH_LOCKS];
} lode__match;

/* slots: a bit for each slot that matches, n of them set. */
LODE_MUST lode_status lode__match_make(lode__segment *segment, const uint64_t *slots, uint32_t n, lode__match **match,
                                       lode_error *err);
void lode__match_free(lode__match *match);
/* Bytes that it takes, when all of it is there. */
uint64_t lode__match_bytes(const lode__segment *segment, uint32_t n);
lode__graph_view lode__match_view(lode__match *match);

/* Where a walk begins that knows the rows nearest to its query, whether they match or not. */
enum { LODE__MATCH_STARTS = 64 };
typedef struct lode__match_starts {
  uint32_t ranks[LODE__MATCH_STARTS]; /* matches among those rows and their neighbours */
  uint32_t n;
  bool far;                           /* they are fewer than chance would have it: the matches lie somewhere else */
} lode__match_starts;
/* scouts: the pool of a walk over the segment. Called within a search: the segment's use lock is held. */
LODE_MUST lode_status lode__match_look_around(lode__match *match, const lode__walk_room *scouts, lode__match_starts *starts,
                                              lode_error *err);

#endif
