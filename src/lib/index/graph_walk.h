/* graph_walk.h - best-first search over a graph of codes: used by queries and by the construction of the graph.
 *
 * A pool holds the `beam` best rows seen, sorted; the best that was not expanded yet is expanded, which offers its
 * neighbours to the pool, until the best `effort` of them (usually all) are expanded. Entries of the pool are 64-bit
 * numbers: the order of the key, then the ordinal, then a bit that says "expanded". So ties are broken by ordinal and
 * the walk is the same everywhere. Links are rows of `width` ordinals; the first that is not below n ends a row, so
 * forged links end it too.
 */
#ifndef LODE_INDEX_GRAPH_WALK_H
#define LODE_INDEX_GRAPH_WALK_H

#include "kernel/quant.h"
#include "index/paged.h"

#define INDEX_NO_LINK 0xFFFFFFFFu
#define INDEX_MAX_ROWS 0x7FFFFFFFu /* ordinals have 31 bits */

typedef struct index_graph_view {
  index_paged *rows, *links;
  size_t stride;
  uint32_t n, dim, width;
  uint32_t n_entries;      /* where walks begin: */
  const uint32_t *entries; /* these; NULL: ordinals 0 to n_entries - 1 */
  uint32_t climbs;         /* from so many of them, each by itself, to where nothing near is better, before the walk; see graph.h */
  const float *extra;      /* construction only, may be NULL: one more dimension of each row, see graph.c */
} index_graph_view;

typedef struct index_walk_count {
  uint64_t distances, hops;
} index_walk_count;

/* Room of one thread; zeroed is empty. */
typedef struct index_walk_scratch {
  uint64_t *pool;
  size_t pool_cap, n, beam, effort, next;
  uint64_t *visited; /* a bit for each row; all zero between walks */
  size_t visited_words;
  uint32_t *touched; /* the rows whose bit is set */
  size_t n_touched, touched_cap;
  index_walk_count count; /* adds up */
} index_walk_scratch;

typedef struct index_walk_query {
  quant_query code;
  float extra;              /* construction only */
} index_walk_query;

static inline uint32_t index_pool_ordinal(uint64_t entry) { return (uint32_t)entry >> 1; }

LODE_MUST lode_status index_walk_scratch_init(index_walk_scratch *room, uint32_t n, size_t beam, lode_error *err);
void index_walk_scratch_release(index_walk_scratch *room);
/* Only rows whose bit is set in `allowed` (by ordinal) enter the pool; other rows are stepped over: their neighbours
 * are looked at in their place. Begins near the query and, as the allowed rows may be elsewhere, with some seeds.
 * When hardly any is allowed near the query, the nearest are at the rim of something far away, where greed leads
 * astray: then all seeds (else only a few of them) and distant_beam count; distant_beam 0 gives such a search up, with an
 * empty pool. room must have been made for the greater of the two. */
typedef struct index_walk_filter {
  const uint64_t *allowed;
  const uint32_t *seeds;
  size_t n_seeds, beam, distant_beam;
} index_walk_filter;
LODE_MUST lode_status index_walk_allowed(const index_graph_view *view, const index_walk_query *query,
                                         const index_walk_filter *filter, index_walk_scratch *room, lode_error *err);
/* Leaves the pool sorted: room->pool[0 .. room->n). Ends when the `effort` best are expanded. room must have been made
 * for at least view->n rows and beam. */
LODE_MUST lode_status index_walk(const index_graph_view *view, const index_walk_query *query, size_t beam,
                                 size_t effort, index_walk_scratch *room, lode_error *err);

#endif
