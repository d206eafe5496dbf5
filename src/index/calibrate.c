/* calibrate.c - how much effort a walk over this graph needs: found by searching for rows that are not in it yet.
 *
 * Just before the last batch goes in, some of its rows are searched for with growing effort, and the results compared
 * with a scan of all codes. What each effort finds becomes the segment's curve (effort.h), from which the effort for a
 * wanted recall is read; so data that is hard (words) and data that is easy (images) reach the same recall without
 * anybody's tuning.
 */
#include "index/graph_impl.h"

#include <math.h>

enum { SAMPLE = 256, NEAREST = 10, LEAST_ROWS = 2000, STEP = 64,
       LEAST_USUAL = 48, /* more than easy data need: queries of users are not drawn from the rows */
       MOST_USUAL = 1024 };
static const double usual_recall = 0.98;

/* The NEAREST best of the rows in the graph, by a scan of their codes: sorted entries of a pool. */
static void scan(const lode__grow_state *g, const lode__walk_query *query, uint64_t *best) {
  const unsigned char *rows[STEP];
  float keys[STEP];
  for (size_t i = 0; i < NEAREST; i++) best[i] = UINT64_MAX;
  for (size_t i = 0; i < g->done; i += STEP) {
    size_t m = g->done - i < STEP ? g->done - i : STEP;
    for (size_t j = 0; j < m; j++) rows[j] = lode__grow_row(g, g->sequence[i + j]);
    lode__code_keys(&query->code, rows, m, keys);
    for (size_t j = 0; j < m; j++) {
      uint32_t ordinal = g->sequence[i + j];
      uint64_t entry = (uint64_t)lode__code_order(keys[j]) << 32 | (uint64_t)ordinal << 1;
      if (entry >= best[NEAREST - 1]) continue;
      size_t at = NEAREST - 1;
      for (; at > 0 && best[at - 1] > entry; at--) best[at] = best[at - 1];
      best[at] = entry;
    }
  }
}

/* How many of the nearest an effort finds. By distance, not by name: rows as near as the last are as good. */
static uint32_t found_with(const lode__grow_state *g, lode__grow_worker *w, const lode__walk_query *query, size_t effort,
                           const uint64_t *best) {
  size_t beam = effort > NEAREST ? effort : NEAREST;
  uint32_t hits = 0;
  if (effort * LODE__PER_EFFORT >= g->done) return NEAREST; /* a search would scan */
  w->st = lode__walk_room_init(&w->walk, g->input.n, beam, &w->err);
  if (w->st == LODE_OK) w->st = lode__walk(&g->view, query, beam, effort, &w->walk, &w->err);
  for (size_t j = 0; j < w->walk.n && j < NEAREST; j++) hits += w->walk.pool[j] >> 32 <= best[NEAREST - 1] >> 32;
  return hits;
}

/* For one row of the sample: what each effort finds, to sources[i * LODE__EFFORTS ..], which nobody else uses between
 * batches. */
static void try_row(void *arg, size_t i, unsigned worker) {
  lode__grow_state *g = arg;
  lode__grow_worker *w = &g->workers[worker];
  uint32_t *found = g->sources + i * LODE__EFFORTS, self = g->sequence[g->done + i];
  const unsigned char *row = lode__grow_row(g, self);
  lode__walk_query query = {0}; /* without the extra dimension, like a query */
  uint64_t best[NEAREST];
  if (w->st != LODE_OK) return;
  lode__code_query_row(row, g->input.dim, w->query, &query.code);
  scan(g, &query, best);
  for (size_t e = 0; e < LODE__EFFORTS && w->st == LODE_OK; e++) { /* more effort finds no less, or hardly ever */
    found[e] = e > 0 && found[e - 1] == NEAREST ? NEAREST : found_with(g, w, &query, lode__effort_at(e), best);
  }
}

size_t lode__graph_sample(const lode__grow_state *g, size_t batch, lode__parallel_body **body) {
  *body = try_row;
  if (g->done < LEAST_ROWS) return 0;
  return batch < SAMPLE ? batch : SAMPLE;
}

uint32_t lode__graph_effort(const lode__grow_state *g, size_t n, lode__effort_curve *curve) {
  uint16_t most = 0;
  for (size_t e = 0; e < LODE__EFFORTS; e++) {
    uint64_t hits = 0;
    for (size_t i = 0; i < n; i++) hits += g->sources[i * LODE__EFFORTS + e];
    uint16_t found = (uint16_t)(hits * LODE__FOUND_ALL / (n * NEAREST));
    if (found > most) most = found;
    curve->found[e] = most;
  }
  uint32_t effort = lode__effort_for(curve, usual_recall);
  return effort < LEAST_USUAL ? LEAST_USUAL : effort > MOST_USUAL ? MOST_USUAL : effort;
}

uint32_t lode__effort_for(const lode__effort_curve *curve, double recall) {
  const uint16_t *found = curve->found;
  double wanted = LODE__FOUND_ALL * (1 - 0.75 * (1 - recall));
  size_t i = 0;
  if (found[LODE__EFFORTS - 1] == 0) return LODE__EFFORT_UNKNOWN;
  while (i < LODE__EFFORTS && found[i] < wanted) i++;
  if (i == LODE__EFFORTS) return LODE__EFFORT_NONE;
  if (i == 0 || found[i] <= found[i - 1]) return lode__effort_at(i);
  double part = (wanted - found[i - 1]) / (found[i] - found[i - 1]);
  return lode__effort_at(i - 1) + (uint32_t)ceil(part * (lode__effort_at(i) - lode__effort_at(i - 1)));
}
