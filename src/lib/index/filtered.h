/* filtered.h - the matches of a filter in one segment, made ready for many searches.
 *
 * A filter that is used again is worth some work: the codes of its matches are copied into one piece of memory (in the
 * order of the segment, where neighbours lie near each other), so that few of them are scanned at the speed of memory; and
 * a graph among them alone is made as it is needed, row by row: a match is linked to the matches that are reached from it
 * over rows that do not match. Walks over that graph cost what walks over the segment's own do.
 * Numbers of matches ("ranks") are those of their ordinals in rising order.
 */
#ifndef LODE_INDEX_FILTERED_H
#define LODE_INDEX_FILTERED_H

#include "index/segment.h"

enum { INDEX_FILTERED_WIDTH = 32, INDEX_FILTERED_LOCKS = 8 };

typedef struct index_filtered {
  index_segment *segment;   /* outlives it */
  uint32_t n;
  uint64_t *ordinals;       /* a bit for each ordinal that matches */
  uint32_t *before;         /* of each word of ordinals: how many match before it */
  uint32_t *ordinal_of;     /* of each rank */
  index_paged rows, links;  /* by rank */
  uint32_t *stand_in;       /* of each entry of the segment: the match nearest to it by links, INDEX_NO_LINK: none */
  bool *sparse;             /* of each entry of the segment: around it matches are rarer than they should be */
  pthread_mutex_t locks[INDEX_FILTERED_LOCKS];
} index_filtered;

/* slots: a bit for each slot that matches, n of them set. */
LODE_MUST lode_status index_filtered_new(index_segment *segment, const uint64_t *slots, uint32_t n, index_filtered **match,
                                       lode_error *err);
void index_filtered_free(index_filtered *match);
/* Bytes that it takes, when all of it is there. */
uint64_t index_filtered_bytes(const index_segment *segment, uint32_t n);

/* Where a walk begins. */
enum { INDEX_FILTERED_STARTS = 40 };
typedef struct index_filtered_starts {
  uint32_t ranks[INDEX_FILTERED_STARTS]; /* all different */
  uint32_t n;
  bool far;                           /* the matches may not be where the query is */
} index_filtered_starts;
/* As the segment's entries say, which costs next to nothing. Called, as the next, with the segment's use lock held. */
LODE_MUST lode_status index_filtered_begin(index_filtered *match, const quant_query *query, index_filtered_starts *starts,
                                        lode_error *err);
/* As the rows nearest to the query say, whether they match or not: matches among them and their neighbours. probes: the pool of a
 * walk over the segment. */
LODE_MUST lode_status index_filtered_probe(index_filtered *match, const index_walk_scratch *probes, index_filtered_starts *starts,
                                              lode_error *err);
/* starts must stay. */
index_graph_view index_filtered_view(index_filtered *match, const index_filtered_starts *starts);

#endif
