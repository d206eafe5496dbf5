/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - how much effort a walk over this graph needs, measured by searching for rows that are not in it yet.
 *
 * Just before the last batch is inserted, some of its rows are searched for with growing effort, and the results
 * compared with a scan of all codes. What each effort finds becomes the segment's curve (effort.h), which gives the
 * effort for a target recall; so hard data (text) and easy data (images) reach the same recall without tuning.
 */
#include "index/graph_impl.h"

#include <math.h>

enum {
  CALIBRATE_SAMPLE = 256,    /* rows to search for, at most */
  CALIBRATE_K = 10,          /* nearest rows to find */
  CALIBRATE_MIN_ROWS = 2000, /* smaller graphs are not calibrated */
  CALIBRATE_STEP = 64,       /* rows whose keys are computed together */
  DEFAULT_EFFORT_MIN = 48,   /* more than easy data need: real queries are not drawn from the rows */
  DEFAULT_EFFORT_MAX = 1024, /* of the default effort */
};
static const double default_recall = 0.98;

/* The CALIBRATE_K best of the rows in the graph, by a scan of their codes, as sorted pool entries. */
static void calibrate_scan(const index_build_state *g, const index_walk_query *query, uint64_t *best) {
  const unsigned char *rows[CALIBRATE_STEP];
  float keys[CALIBRATE_STEP];
  for (size_t i = 0; i < CALIBRATE_K; i++) best[i] = UINT64_MAX;
  for (size_t i = 0; i < g->done; i += CALIBRATE_STEP) {
    size_t m = g->done - i < CALIBRATE_STEP ? g->done - i : CALIBRATE_STEP;
    for (size_t j = 0; j < m; j++) rows[j] = index_build_row(g, g->sequence[i + j]);
    quant_keys(&query->code, rows, m, keys);
    for (size_t j = 0; j < m; j++) {
      uint32_t ordinal = g->sequence[i + j];
      uint64_t entry = (uint64_t)quant_key_order(keys[j]) << 32 | (uint64_t)ordinal << 1;
      if (entry >= best[CALIBRATE_K - 1]) continue;
      size_t at = CALIBRATE_K - 1;
      for (; at > 0 && best[at - 1] > entry; at--) best[at] = best[at - 1];
      best[at] = entry;
    }
  }
}

/* How many of the nearest an effort finds. Compared by distance, not by ordinal: rows as near as the last are as
 * good. */
static uint32_t calibrate_found(const index_build_state *g, index_build_worker *w, const index_walk_query *query,
                                size_t effort, const uint64_t *best) {
  size_t beam = effort > CALIBRATE_K ? effort : CALIBRATE_K;
  uint32_t hits = 0;
  if (effort * INDEX_COST_PER_EFFORT >= g->done) return CALIBRATE_K; /* a search would scan all codes */
  w->st = index_walk_scratch_init(&w->walk, g->input.n, beam, &w->err);
  if (w->st == LODE_OK) w->st = index_walk(&g->view, query, beam, effort, &w->walk, &w->err);
  for (size_t j = 0; j < w->walk.n && j < CALIBRATE_K; j++)
    hits += w->walk.pool[j] >> 32 <= best[CALIBRATE_K - 1] >> 32;
  return hits;
}

/* For one row of the sample: stores what each effort finds in sources[i * INDEX_EFFORTS ..], which is unused between
 * batches. */
static void calibrate_row(void *arg, size_t i, unsigned worker) {
  index_build_state *g = arg;
  index_build_worker *w = &g->workers[worker];
  uint32_t *found = g->sources + i * INDEX_EFFORTS, self = g->sequence[g->done + i];
  const unsigned char *row = index_build_row(g, self);
  index_walk_query query = {0}; /* like a query, without the extra dimension */
  uint64_t best[CALIBRATE_K];
  if (w->st != LODE_OK) return;
  quant_query_of_row(row, g->input.dim, w->query, &query.code);
  calibrate_scan(g, &query, best);
  for (size_t e = 0; e < INDEX_EFFORTS && w->st == LODE_OK; e++) { /* more effort almost never finds less */
    found[e] =
        e > 0 && found[e - 1] == CALIBRATE_K ? CALIBRATE_K : calibrate_found(g, w, &query, index_effort_at(e), best);
  }
}

size_t index_calibrate_sample(const index_build_state *g, size_t batch, index_parallel_body **body) {
  *body = calibrate_row;
  if (g->done < CALIBRATE_MIN_ROWS) return 0;
  return batch < CALIBRATE_SAMPLE ? batch : CALIBRATE_SAMPLE;
}

uint32_t index_calibrate_effort(const index_build_state *g, size_t n, index_effort_curve *curve) {
  uint16_t max = 0;
  for (size_t e = 0; e < INDEX_EFFORTS; e++) {
    uint64_t hits = 0;
    for (size_t i = 0; i < n; i++) hits += g->sources[i * INDEX_EFFORTS + e];
    uint16_t found = (uint16_t)(hits * INDEX_FOUND_ALL / (n * CALIBRATE_K));
    if (found > max) max = found;
    curve->found[e] = max;
  }
  uint32_t effort = index_effort_for(curve, default_recall);
  return effort < DEFAULT_EFFORT_MIN ? DEFAULT_EFFORT_MIN : effort > DEFAULT_EFFORT_MAX ? DEFAULT_EFFORT_MAX : effort;
}

uint32_t index_effort_for(const index_effort_curve *curve, double recall) {
  const uint16_t *found = curve->found;
  double wanted = INDEX_FOUND_ALL * (1 - 0.75 * (1 - recall));
  size_t i = 0;
  if (found[INDEX_EFFORTS - 1] == 0) return INDEX_EFFORT_UNKNOWN;
  while (i < INDEX_EFFORTS && found[i] < wanted) i++;
  if (i == INDEX_EFFORTS) return INDEX_EFFORT_NONE;
  if (i == 0 || found[i] <= found[i - 1]) return index_effort_at(i);
  double part = (wanted - found[i - 1]) / (found[i] - found[i - 1]);
  return index_effort_at(i - 1) + (uint32_t)ceil(part * (index_effort_at(i) - index_effort_at(i - 1)));
}
