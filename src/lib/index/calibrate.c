/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - how much effort a walk over this graph needs, measured by searching for rows that are not in it yet.
 *
 * A few rows are held back until all others are in the graph and linked as they will stay. They are searched for with
 * growing effort, and the results compared with a scan of all codes; so hard data (text) and easy data (images) reach
 * the same recall without tuning. Real queries are often unlike the data (questions, where the data are answers): so
 * queries halfway between two rows are tried too, which are harder. The segment's curve (effort.h), from which the
 * effort for a target recall is read, is the lower of both, less the standard error of the sample: between clusters a
 * query finds nearly all or next to nothing, and the mean of some hundred is a rough one. The default effort is that of
 * rows.
 */
#include "index/graph_impl.h"
#include "index/index_tuning.h"

#include <math.h>

enum { CALIBRATE_STEP = 7919 }; /* a prime: which rows queries are mixed with */

/* One query in three is a row; the others lie between one and another, where the mean varies more. */
static bool calibrate_is_between(size_t i) { return i % 3 != 0; }

/* The INDEX_CALIBRATE_K best of the rows in the graph, by a scan of their codes, as sorted pool entries. */
static void calibrate_scan(const index_build_state *g, const index_walk_query *query, uint64_t *best) {
  const unsigned char *rows[INDEX_STEP_ROWS];
  float keys[INDEX_STEP_ROWS];
  for (size_t i = 0; i < INDEX_CALIBRATE_K; i++) best[i] = UINT64_MAX;
  for (size_t i = 0; i < g->done; i += INDEX_STEP_ROWS) {
    size_t m = g->done - i < INDEX_STEP_ROWS ? g->done - i : INDEX_STEP_ROWS;
    for (size_t j = 0; j < m; j++) rows[j] = index_build_row(g, g->sequence[i + j]);
    quant_keys(&query->code, rows, m, keys);
    for (size_t j = 0; j < m; j++) {
      uint32_t ordinal = g->sequence[i + j];
      uint64_t entry = (uint64_t)quant_key_order(keys[j]) << 32 | (uint64_t)ordinal << 1;
      if (entry >= best[INDEX_CALIBRATE_K - 1]) continue;
      size_t at = INDEX_CALIBRATE_K - 1;
      for (; at > 0 && best[at - 1] > entry; at--) best[at] = best[at - 1];
      best[at] = entry;
    }
  }
}

/* How many of the nearest an effort finds. Compared by distance, not by ordinal: rows as near as the last are as
 * good. */
static uint32_t calibrate_found(const index_build_state *g, index_build_worker *w, const index_walk_query *query,
                                size_t effort, const uint64_t *best) {
  size_t beam = effort > INDEX_CALIBRATE_K ? effort : INDEX_CALIBRATE_K;
  uint32_t hits = 0;
  if (effort * INDEX_COST_PER_EFFORT >= g->done) return INDEX_CALIBRATE_K; /* a search would scan all codes */
  w->st = index_walk_scratch_init(&w->walk, g->input.n, beam, &w->err);
  if (w->st == LODE_OK) w->st = index_walk(&g->view, query, beam, effort, &w->walk, &w->err);
  for (size_t j = 0; j < w->walk.n && j < INDEX_CALIBRATE_K; j++)
    hits += w->walk.pool[j] >> 32 <= best[INDEX_CALIBRATE_K - 1] >> 32;
  return hits;
}

/* For one query of the sample: stores what each effort finds in sources[i * INDEX_EFFORTS ..], which is unused between
 * batches. */
void index_calibrate_row(void *arg, size_t i, unsigned worker) {
  index_build_state *g = arg;
  index_build_worker *w = &g->workers[worker];
  uint32_t *found = g->sources + i * INDEX_EFFORTS, self = g->sequence[g->done + i];
  const unsigned char *row = index_build_row(g, self);
  index_walk_query query = {0}; /* like a query, without the extra dimension */
  uint64_t best[INDEX_CALIBRATE_K];
  if (w->st != LODE_OK) return;
  if (calibrate_is_between(i))
    quant_query_between(row, index_build_row(g, g->sequence[i * CALIBRATE_STEP % g->done]), g->input.dim, w->query,
                        &query.code);
  else
    quant_query_of_row(row, g->input.dim, w->query, &query.code);
  calibrate_scan(g, &query, best);
  for (size_t e = 0; e < INDEX_EFFORTS && w->st == LODE_OK; e++) { /* more effort almost never finds less */
    found[e] = e > 0 && found[e - 1] == INDEX_CALIBRATE_K ? INDEX_CALIBRATE_K
                                                          : calibrate_found(g, w, &query, index_effort_at(e), best);
  }
}

size_t index_calibrate_sample(const index_build_state *g) {
  return g->n_unique < INDEX_CALIBRATE_MIN_ROWS + INDEX_CALIBRATE_SAMPLE ? 0 : INDEX_CALIBRATE_SAMPLE;
}

/* What each effort finds of the queries of a kind, less `errors` standard errors of that mean. */
static void calibrate_curve(const index_build_state *g, size_t n, bool between, double errors,
                            index_effort_curve *curve) {
  uint16_t most = 0;
  for (size_t e = 0; e < INDEX_EFFORTS; e++) {
    double sum = 0, squares = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
      double found = (double)g->sources[i * INDEX_EFFORTS + e] / INDEX_CALIBRATE_K;
      if (calibrate_is_between(i) != between) continue;
      sum += found;
      squares += found * found;
      count++;
    }
    double mean = count > 0 ? sum / count : 0, variance = count > 0 ? squares / count - mean * mean : 0;
    double found = INDEX_FOUND_ALL * (mean - errors * sqrt(fmax(0, variance) / fmax(1, count)));
    if (found > most) most = (uint16_t)found;
    curve->found[e] = most;
  }
}

uint32_t index_calibrate_effort(const index_build_state *g, size_t n, index_effort_curve *curve) {
  index_effort_curve between;
  calibrate_curve(g, n, false, 0, curve);
  uint32_t effort = index_effort_for(curve, INDEX_DEFAULT_RECALL);
  calibrate_curve(g, n, false, 1, curve);
  calibrate_curve(g, n, true, 1, &between);
  for (size_t e = 0; e < INDEX_EFFORTS; e++)
    if (between.found[e] < curve->found[e]) curve->found[e] = between.found[e];
  return effort < INDEX_EFFORT_MIN ? INDEX_EFFORT_MIN : effort > INDEX_EFFORT_MAX ? INDEX_EFFORT_MAX : effort;
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
