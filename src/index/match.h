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
  uint32_t *stand_in;       /* of each entry of the segment: the match nearest to it by links, LODE__NO_LINK: none */
  bool *sparse;             /* of each entry of the segment: around it matches are rarer than they should be */
  pthread_mutex_t locks[LODE__MATCH_LOCKS];
} lode__match;

/* slots: a bit for each slot that matches, n of them set. */
LODE_MUST lode_status lode__match_make(lode__segment *segment, const uint64_t *slots, uint32_t n, lode__match **match,
                                       lode_error *err);
void lode__match_free(lode__match *match);
/* Bytes that it takes, when all of it is there. */
uint64_t lode__match_bytes(const lode__segment *segment, uint32_t n);

/* Where a walk begins. */
enum { LODE__MATCH_STARTS = 40 };
typedef struct lode__match_starts {
  uint32_t ranks[LODE__MATCH_STARTS]; /* all different */
  uint32_t n;
  bool far;                           /* the matches may not be where the query is */
} lode__match_starts;
/* As the segment's entries say, which costs next to nothing. Called, as the next, with the segment's use lock held. */
LODE_MUST lode_status lode__match_begin(lode__match *match, const lode__code_query *query, lode__match_starts *starts,
                                        lode_error *err);
/* As the rows nearest to the query say, whether they match or not: matches among them and their neighbours. scouts: the pool of a
 * walk over the segment. */
LODE_MUST lode_status lode__match_look_around(lode__match *match, const lode__walk_room *scouts, lode__match_starts *starts,
                                              lode_error *err);
/* starts must stay. */
lode__graph_view lode__match_view(lode__match *match, const lode__match_starts *starts);

#endif
