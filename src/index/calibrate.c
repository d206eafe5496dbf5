/* calibrate.c - how much effort a walk over this graph needs: found by searching for rows that are not in it yet.
 *
 * Just before the last batch goes in, some of its rows are searched for with growing effort, and the results compared
 * with a scan of all codes. The least effort that finds enough of the ten nearest becomes the segment's default, so
 * that data that is hard (words) and data that is easy (images) reach the same recall without anybody's tuning.
 */
#include "index/graph_impl.h"

enum { SAMPLE = 96, NEAREST = 10, LEAST_ROWS = 2000, STEP = 64, HITS_OF_1000 = 985 };

/* The least is more than easy data need: queries of users are not drawn from the rows. */
static const uint32_t efforts[] = {48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
enum { EFFORTS = sizeof efforts / sizeof *efforts };

/* The NEAREST best of the rows in the graph, by a scan of their codes: sorted entries of a pool. */
static void scan(const lode__grow_state *g, const lode__walk_query *query, uint64_t *best) {
  const unsigned char *rows[STEP];
  float keys[STEP];
  for (size_t i = 0; i < NEAREST; i++) best[i] = UINT64_MAX;
  for (size_t i = 0; i < g->done; i += STEP) {
    size_t m = g->done - i < STEP ? g->done - i : STEP;
    for (size_t j = 0; j < m; j++) rows[j] = g->input.rows + (size_t)g->sequence[i + j] * g->input.stride;
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

/* For one row of the sample: how many of the nearest are found with each effort, to sources[i * EFFORTS ..], which
 * nobody else uses between batches. */
static void try_row(void *arg, size_t i, unsigned worker) {
  lode__grow_state *g = arg;
  lode__grow_worker *w = &g->workers[worker];
  if (w->st != LODE_OK) return;
  uint32_t self = g->sequence[g->done + i];
  const unsigned char *row = g->input.rows + (size_t)self * g->input.stride;
  lode__walk_query query = {0}; /* without the extra dimension, like a query */
  uint64_t best[NEAREST];
  lode__code_query_row(row, g->input.dim, w->query, &query.code);
  scan(g, &query, best);
  for (size_t e = 0; e < EFFORTS && w->st == LODE_OK; e++) {
    uint32_t hits = 0;
    w->st = lode__walk_room_init(&w->walk, g->input.n, efforts[e], &w->err);
    if (w->st == LODE_OK) w->st = lode__walk(&g->view, &query, efforts[e], SIZE_MAX, &w->walk, &w->err);
    /* by distance, not by name: rows as near as the last are as good */
    for (size_t j = 0; j < w->walk.n && j < NEAREST; j++) hits += w->walk.pool[j] >> 32 <= best[NEAREST - 1] >> 32;
    g->sources[i * EFFORTS + e] = hits;
    if (hits == NEAREST) { /* more effort finds no less, or hardly ever */
      for (e++; e < EFFORTS; e++) g->sources[i * EFFORTS + e] = hits;
    }
  }
}

size_t lode__graph_sample(const lode__grow_state *g, size_t batch, lode__parallel_body **body) {
  *body = try_row;
  if (g->done < LEAST_ROWS) return 0;
  return batch < SAMPLE ? batch : SAMPLE;
}

uint32_t lode__graph_effort(const lode__grow_state *g, size_t n) {
  for (size_t e = 0; e < EFFORTS; e++) {
    uint64_t hits = 0;
    for (size_t i = 0; i < n; i++) hits += g->sources[i * EFFORTS + e];
    if (hits * 1000 >= (uint64_t)n * NEAREST * HITS_OF_1000) return efforts[e];
  }
  return efforts[EFFORTS - 1];
}
