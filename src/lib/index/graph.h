/* graph.h - construction and validation of the graph of a segment: one layer, alpha-pruned (Vamana).
 *
 * Rows are inserted in a shuffled order, in batches that grow with the graph. Each row of a batch searches the graph
 * as it was before the batch and keeps the neighbours that no nearer neighbour stands in front of; then the links back
 * are merged, target by target in a fixed order. So the result does not depend on the number of threads. At the end
 * every row is made reachable from the first one, and an order is chosen in which neighbours lie near each other.
 */
#ifndef LODE_INDEX_GRAPH_H
#define LODE_INDEX_GRAPH_H

#include "index/effort.h"
#include "index/graph_walk.h"

/* Runs body(arg, i, worker) for each i below n, in any order, on any thread, worker < workers and never the same at the
 * same time; returns when all are done. */
typedef void index_parallel_body(void *arg, size_t i, unsigned worker);
typedef struct index_parallel {
  void (*run)(void *ctx, size_t n, index_parallel_body *body, void *arg); /* NULL: one after the other, here */
  void *ctx;
  unsigned workers; /* 0 counts as 1 */
} index_parallel;

typedef struct index_graph_options {
  uint32_t degree;      /* links of a row at most; 0: 32 */
  uint32_t beam;        /* breadth of the searches; 0: 128 */
  float alpha;          /* on squared distances: how much nearer a neighbour must be to hide another; 0: 1.05 */
  uint32_t entries;     /* 0: as many as suits n */
  index_parallel parallel;
  lode_progress progress;
} index_graph_options;

typedef struct index_graph {
  uint32_t n, degree;
  uint32_t n_entries;
  uint32_t effort;  /* that finds about 98 of 100 of the ten nearest of a row that is not in it; 0: too small to say */
  index_effort_curve curve;
  /* Under inner products, where rows differ in length, the best are at the ends of several clusters, and a walk that has come to the end
   * of one sees nothing but that: so walks are to begin with so many climbs. 0 otherwise. The curve is that of walks without. */
  uint32_t climbs;
  uint32_t *links;  /* n * degree, by old ordinals, rows filled up with INDEX_NO_LINK */
  uint32_t *order;  /* new ordinal -> old; the entries come first, the one nearest to the centre before all */
  uint32_t *place;  /* old ordinal -> new */
} index_graph;

/* rows: n rows of stride bytes, whose bias is changed for the time of the call when the metric is ip. lengths: what
 * quant_encode_row returned for each row; only read for ip, may be NULL otherwise. */
typedef struct index_graph_input {
  unsigned char *rows;
  const float *lengths;
  size_t stride;
  uint32_t n, dim;
  lode_metric metric;
  float unit; /* of the model */
} index_graph_input;
LODE_MUST lode_status index_graph_build(const index_graph_input *input, const index_graph_options *options,
                                        index_graph *graph, lode_error *err);
void index_graph_release(index_graph *graph);
/* Writes the links of the row that has the given new ordinal, in new ordinals: degree numbers. */
void index_graph_get_links(const index_graph *graph, uint32_t ordinal, uint32_t *out);

/* ---- Invariants: links below n, none to itself or twice, rows closed by INDEX_NO_LINK, every row reachable ---- */

typedef struct index_graph_report {
  uint32_t bad_link;      /* the first row with a wrong link, or INDEX_NO_LINK */
  uint32_t unreachable;   /* rows that no walk from row 0 can reach */
  uint64_t links;
} index_graph_report;
/* links: n rows of width ordinals, all there. LODE_CORRUPT when an invariant is broken; err names the row. */
LODE_MUST lode_status index_graph_check(const uint32_t *links, uint32_t n, uint32_t width, index_graph_report *report,
                                        lode_error *err);

#endif
