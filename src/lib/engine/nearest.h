/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - the nearest vectors to some queries, wherever they are stored: nearest.c, and segment_search.c for those
 * in segments. */
#ifndef LODE_ENGINE_NEAREST_H
#define LODE_ENGINE_NEAREST_H

#include "engine/query_explain.h"
#include "engine/vector_snapshot.h"
#include "kernel/kernel.h"

/* The best `want` candidates of one query, and all others at the distance of the last. */
typedef struct engine_best {
  kernel_topk top;
  size_t cap;
  kernel_neighbour *ties;
  size_t n_ties, cap_ties;
  bool full;   /* candidates were left out; all are farther than those held, or than `reach` */
  float reach; /* no candidate up to this distance was left out; INFINITY: segments showed all they have */
} engine_best;

typedef struct engine_nearest {
  engine_reader *reader;
  lode_metric metric;
  uint32_t dim;
  const float *queries; /* n x dim */
  size_t n;
  float *norms;            /* squared norm of each query */
  engine_best *best;       /* of each query; key is rid, aux is vid */
  const engine_rids *only; /* NULL: all records */
  uint32_t effort;         /* of graph walks; 0: the default */
  double target_recall;    /* 0: the default */
  lode_str filter;         /* the key of `only` in the filter cache; absent: none */
  engine_facts *facts;     /* those about vectors are fetched as they are needed */
  engine_plan *plan;       /* complete on return */
  engine_trace *trace;
  lode_status fetched; /* the first failure of engine_nearest_fetch() */
} engine_nearest;
/* For near->plan->candidates of each query; the caller sets what is not in the arguments afterwards. */
LODE_MUST lode_status engine_nearest_init(engine_nearest *near, engine_reader *reader, const float *queries, size_t n,
                                          engine_plan *plan, lode_error *err);
/* Fills `best`. On return every live vector of the reader's current transaction has been considered. Without `only`,
 * and if the reader has taken nothing yet, this may be a later moment than before. Candidates may have died since:
 * check each again. *again: repeat the search. */
LODE_MUST lode_status engine_nearest_run(engine_nearest *near, bool *again, lode_error *err);
void engine_nearest_release(engine_nearest *near);

/* Longer scans run without a transaction. Tests lower it. */
extern uint64_t engine_scan_in_tx_bytes;

/* Adds a candidate; false when out of memory. */
LODE_MUST bool engine_best_push(engine_best *best, float distance, int64_t rid, int64_t vid);
/* Searches the snapshot's segments by their codes. *damaged: one of them cannot be trusted; search again. */
LODE_MUST lode_status engine_segments_search(engine_nearest *near, engine_snapshot *vectors, bool *damaged,
                                             lode_error *err);
/* An index_fetch_fn of an engine_nearest: a vector that has moved in the database file, by its key. A failure is not
 * the segment's fault: near->fetched tells. */
LODE_MUST lode_status engine_nearest_fetch(void *near, int64_t rid, uint64_t vid, float *vector, bool *found,
                                           lode_error *err);

#endif
