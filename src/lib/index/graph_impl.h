/* graph_impl.h - the state of a construction, shared by graph.c (growth) and graph_connect.c (reachability, order). */
#ifndef LODE_INDEX_GRAPH_IMPL_H
#define LODE_INDEX_GRAPH_IMPL_H

#include "index/graph.h"

/* What one thread needs. */
typedef struct index_build_worker {
  index_walk_scratch walk;
  int8_t *query, *candidate;         /* rooms for a row's codes */
  uint64_t *candidates;              /* order of the distance, ordinal */
  uint32_t *chosen;                  /* by graph_prune() */
  const unsigned char **chosen_rows; /* their rows */
  lode_status st;
  lode_error err;
} index_build_worker;

typedef struct index_build_state {
  index_graph_input input;
  index_graph_options options;
  uint32_t room;       /* links that a row has room for; at the end: degree */
  uint32_t n_entries;
  uint32_t *links;
  uint32_t *sequence;  /* in which rows are inserted; its beginning are the entries; after n_unique: copies */
  uint32_t *original;  /* of each row: itself, or the row of which it is a copy */
  uint32_t n_unique;
  uint32_t effort;     /* 0: not known */
  index_effort_curve curve;
  uint32_t climbs;
  size_t done;         /* rows that are in the graph */
  float *extra;
  index_paged row_bytes, link_bytes;
  index_graph_view view;
  index_build_worker *workers;
  unsigned n_workers;
  uint32_t *found;     /* a batch's links, degree for each row */
  uint32_t *incoming;  /* for each row, zero between uses */
  uint32_t *targets, *starts, *sources; /* sources of targets[i]: from starts[i] to starts[i + 1] */
  size_t n_targets;
} index_build_state;

static inline const unsigned char *index_build_row(const index_build_state *g, uint32_t i) {
  return g->input.rows + (size_t)i * g->input.stride;
}

/* Copies (rows with equal codes) do not take part in the growth: they would fill each other's links and shut the
 * others out. Finds them: sets original, n_unique and the sequence, middle first, the others in order, copies last. */
LODE_MUST lode_status index_graph_find_copies(index_build_state *g, lode_error *err);
/* Gives the copies their links, and links to them. */
LODE_MUST lode_status index_graph_add_copies(index_build_state *g, lode_error *err);
/* How many rows of the batch that comes next to try, by running *body for each; then what effort they call for. */
size_t index_calibrate_sample(const index_build_state *g, size_t batch, index_parallel_body **body);
uint32_t index_calibrate_effort(const index_build_state *g, size_t n, index_effort_curve *curve);
/* Adds links until every row can be reached from the first entry. */
LODE_MUST lode_status index_graph_connect(index_build_state *g, lode_error *err);
/* Chooses the order of the finished graph. */
LODE_MUST lode_status index_graph_reorder(const index_build_state *g, index_graph *graph, lode_error *err);

#endif
