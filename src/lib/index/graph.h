/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - construction and validation of the graph of a segment: one layer, alpha-pruned (Vamana).
 *
 * Rows are inserted in shuffled order, in batches that grow with the graph. Each row of a batch searches the graph as
 * it was before the batch and keeps the neighbours that no nearer neighbour occludes; then the reverse links are
 * merged, target by target in a fixed order. So the result does not depend on the number of threads. At the end every
 * row is made reachable from the first one, and rows are ordered so that neighbours are close to each other.
 */
#ifndef LODE_INDEX_GRAPH_H
#define LODE_INDEX_GRAPH_H

#include "index/effort.h"
#include "index/graph_walk.h"

/* Runs body(arg, i, worker) for each i below n, in any order, on any thread; worker < workers, and never the same on
 * two threads at a time. Returns when all are done. */
typedef void index_parallel_body(void *arg, size_t i, unsigned worker);
typedef struct index_parallel {
  /* NULL: sequentially on the caller's thread */
  void (*run)(void *ctx, size_t n, index_parallel_body *body, void *arg);
  void *ctx;
  unsigned workers; /* 0 counts as 1 */
} index_parallel;

typedef struct index_graph_options {
  uint32_t degree;  /* maximum links of a row; 0: 32 */
  uint32_t beam;    /* beam of the searches; 0: 128 */
  float alpha;      /* on squared distances: how much nearer a neighbour must be to occlude another; 0: 1.05 */
  uint32_t entries; /* entry points; 0: chosen by n */
  index_parallel parallel;
  lode_progress progress;
} index_graph_options;

typedef struct index_graph {
  uint32_t n, degree;
  uint32_t n_entries;
  /* Effort that finds about 98% of the ten nearest of a row that is not in the graph; 0: too small to measure. */
  uint32_t effort;
  index_effort_curve curve;
  /* Number of entry climbs. With inner products and rows of unequal length, the best rows are at the ends of several
   * clusters, and a walk that reaches the end of one sees only that one. So walks start with greedy descents from this
   * many entries. 0 otherwise. The curve was measured without them. */
  uint32_t entry_climbs;
  uint32_t *links; /* n * degree, by old ordinals; unused places are INDEX_NO_LINK */
  uint32_t *order; /* new ordinal -> old; the entries come first, beginning with the one nearest to the centre */
  uint32_t *place; /* old ordinal -> new */
} index_graph;

/* rows: n rows of stride bytes. Their bias is changed during the call if the metric is ip. lengths: what
 * quant_encode_row() returned for each row; may be NULL for l2. */
typedef struct index_graph_input {
  unsigned char *rows;
  const float *lengths;
  size_t stride;
  uint32_t n, dim;
  lode_metric metric;
  float unit; /* unit of the quantisation model */
} index_graph_input;
LODE_MUST lode_status index_graph_build(const index_graph_input *input, const index_graph_options *options,
                                        index_graph *graph, lode_error *err);
void index_graph_release(index_graph *graph);
/* Writes the links of the row with the given new ordinal, as new ordinals: degree numbers. */
void index_graph_get_links(const index_graph *graph, uint32_t ordinal, uint32_t *out);

/* ---- Invariants: links below n, none to itself or twice, unused places are INDEX_NO_LINK, every row reachable ---- */

typedef struct index_graph_report {
  uint32_t bad_link;    /* the first row with an invalid link, or INDEX_NO_LINK */
  uint32_t unreachable; /* rows that no walk from row 0 can reach */
  uint64_t links;
} index_graph_report;
/* Of n rows. LODE_CORRUPT when an invariant is broken; err names the row. */
LODE_MUST lode_status index_graph_check(const index_graph_links *links, uint32_t n, index_graph_report *report,
                                        lode_error *err);

#endif
