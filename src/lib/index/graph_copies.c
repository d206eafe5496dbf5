/* SPDX-License-Identifier: Apache-2.0 */
/* graph_copies.c - rows with equal codes: found before the graph grows, linked afterwards.
 *
 * The copies of a row form a tree below it: row 0 is the original, the parent of row i > 0 is row (i - 1) /
 * INDEX_COPIES_FANOUT, so thousands are reached in a few steps. The other links of a copy are those of the original, so
 * that it is no dead end. The original gives up its last links for those to its first copies.
 */
#include <stdlib.h>

#include "index/graph_impl.h"
#include "index/index_tuning.h"

lode_status index_graph_find_copies(index_build_state *g, lode_error *err) {
  uint32_t n = g->input.n, last = n;
  uint64_t *sums = mem_calloc(n, sizeof *sums);
  if (!sums) return err_nomem(err);
  for (uint32_t i = 0; i < n; i++) {
    sums[i] = (uint64_t)quant_row_hash(index_build_row(g, i), g->input.stride) << 32 | i;
    g->original[i] = i;
  }
  qsort(sums, n, sizeof *sums, sort_cmp_u64);
  for (uint32_t i = 1; i < n; i++) {
    uint32_t before = g->original[(uint32_t)sums[i - 1]], self = (uint32_t)sums[i];
    if (sums[i] >> 32 != sums[i - 1] >> 32) continue;
    if (quant_row_equal(index_build_row(g, before), index_build_row(g, self), g->input.stride))
      g->original[self] = before;
  }
  mem_free(sums);
  for (uint32_t i = n; i-- > 0;) {
    if (g->original[i] != i) g->sequence[--last] = i;
  }
  g->n_unique = last;
  for (uint32_t i = 0, at = 0; i < n; i++) {
    if (g->original[i] == i) g->sequence[at++] = i;
  }
  return LODE_OK;
}

/* Puts a link into a free place, or in place of the nth last. */
static void copies_put_link(index_build_state *g, uint32_t from, uint32_t to, uint32_t nth) {
  uint32_t *links = g->links + (size_t)from * g->width, used = 0;
  while (used < g->width && links[used] != INDEX_NO_LINK) used++;
  links[used < g->width ? used : g->width - 1 - nth] = to;
}

/* Links the rows of one group, the original first. */
static void copies_link_group(index_build_state *g, const uint32_t *rows, uint32_t n) {
  const uint32_t *first = g->links + (size_t)rows[0] * g->width;
  uint32_t fan = g->width > 2 * INDEX_COPIES_FANOUT ? INDEX_COPIES_FANOUT : 1;
  for (uint32_t i = 1; i < n; i++) {
    uint32_t *links = g->links + (size_t)rows[i] * g->width, used = 0;
    /* copied before the original gives some up; places for the link back and for its own copies are kept */
    links[used++] = rows[0];
    for (uint32_t j = 0; used + fan < g->width && first[j] != INDEX_NO_LINK; j++) links[used++] = first[j];
  }
  for (uint32_t i = 1; i < n; i++) copies_put_link(g, rows[(i - 1) / fan], rows[i], (i - 1) % fan);
}

lode_status index_graph_add_copies(index_build_state *g, lode_error *err) {
  uint32_t n = g->input.n, copies = n - g->n_unique, total = 0, *ends = g->incoming;
  if (copies == 0) return LODE_OK;
  uint32_t *rows = mem_calloc(n, sizeof *rows); /* grouped by original, by a counting sort */
  if (!rows) return err_nomem(err);
  for (uint32_t i = g->n_unique; i < n; i++) ends[g->original[g->sequence[i]]]++;
  for (uint32_t i = 0; i < n; i++) {
    if (g->original[i] != i || ends[i] == 0) continue;
    uint32_t count = ends[i] + 1;
    rows[total] = i;
    ends[i] = total + 1;
    total += count;
  }
  for (uint32_t i = g->n_unique; i < n; i++) rows[ends[g->original[g->sequence[i]]]++] = g->sequence[i];
  for (uint32_t i = 0, at = 0; i < n; i++) {
    if (g->original[i] != i || ends[i] == 0) continue;
    copies_link_group(g, rows + at, ends[i] - at);
    at = ends[i];
    ends[i] = 0;
  }
  mem_free(rows);
  return LODE_OK;
}
