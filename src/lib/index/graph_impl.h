/* SPDX-License-Identifier: Apache-2.0 */
/* graph_impl.h - the state of a graph construction, shared by graph.c, graph_connect.c, graph_copies.c and
 * calibrate.c. */
#ifndef LODE_INDEX_GRAPH_IMPL_H
#define LODE_INDEX_GRAPH_IMPL_H

#include "index/graph.h"

/* The state of one thread. */
typedef struct index_build_worker {
  index_walk_scratch walk;
  int8_t *query, *candidate;         /* buffers for the codes of a row */
  uint64_t *candidates;              /* distance (order-preserving integer), then ordinal */
  uint32_t *chosen;                  /* by graph_prune() */
  const unsigned char **chosen_rows; /* their rows */
  lode_status st;
  lode_error err;
} index_build_worker;

typedef struct index_build_state {
  index_graph_input input;
  index_graph_options options;
  uint32_t width; /* places for links in a row; at the end: degree */
  uint32_t n_entries;
  uint32_t *links;
  uint32_t *sequence; /* order of insertion: the entries first, copies from n_unique on */
  uint32_t *original; /* for each row: itself, or the row that it is a copy of */
  uint32_t n_unique;
  uint32_t effort; /* 0: not measured */
  index_effort_curve curve;
  uint32_t entry_climbs;
  size_t done; /* rows in the graph */
  float *extra;
  index_paged row_bytes, link_bytes;
  index_graph_view view;
  index_build_worker *workers;
  unsigned n_workers;
  uint32_t *found;                      /* links of a batch, degree for each row */
  uint32_t *incoming;                   /* counter for each row; zero between uses */
  uint32_t *targets, *starts, *sources; /* sources of targets[i]: from starts[i] to starts[i + 1] */
  size_t n_targets;
} index_build_state;

static inline const unsigned char *index_build_row(const index_build_state *g, uint32_t i) {
  return g->input.rows + (size_t)i * g->input.stride;
}

/* Copies (rows with equal codes) are left out while the graph grows: they would fill each other's links and shut out
 * the others. Finds them: sets original, n_unique and the sequence, with copies last. */
LODE_MUST lode_status index_graph_find_copies(index_build_state *g, lode_error *err);
/* Links the copies into the graph. */
LODE_MUST lode_status index_graph_add_copies(index_build_state *g, lode_error *err);
/* Calibration: how many rows are held back for it, a search for each of them, and the effort that these need. */
size_t index_calibrate_sample(const index_build_state *g);
void index_calibrate_row(void *state, size_t i, unsigned worker);
uint32_t index_calibrate_effort(const index_build_state *g, size_t n, index_effort_curve *curve);
/* Adds links until every row is reachable from the first entry. */
LODE_MUST lode_status index_graph_connect(index_build_state *g, lode_error *err);
/* Chooses the order of the rows of the finished graph. */
LODE_MUST lode_status index_graph_reorder(const index_build_state *g, index_graph *graph, lode_error *err);

#endif
