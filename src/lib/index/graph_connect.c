/* SPDX-License-Identifier: Apache-2.0 */
/* graph_connect.c - finishes a graph: every row reachable, neighbours close to each other; and the check of both.
 *
 * Reachability: a tree of shortest paths from the first entry marks what is reachable. A row that is not gets a link
 * from a near row that is: in a free place, or in place of that row's farthest link that the tree does not need. So
 * nothing that was reachable is lost. There always is such a place: the tree of m rows uses m - 1 of at least m *
 * degree places, and degree is at least 2.
 */
#include <stdlib.h>

#include "index/graph_impl.h"

typedef struct connect_tree {
  index_build_state *g;
  uint32_t *parent; /* INDEX_NO_LINK: not reached */
  uint32_t *queue;  /* the reachable rows */
  uint32_t n_reached;
  uint32_t spare;  /* no row before this queue position has a place to give */
  uint32_t newest; /* the row attached last */
} connect_tree;

static void connect_spread(connect_tree *t, uint32_t from) {
  index_build_state *g = t->g;
  for (uint32_t i = from; i < t->n_reached; i++) {
    uint32_t row = t->queue[i];
    const uint32_t *links = g->links + (size_t)row * g->width;
    for (uint32_t j = 0; j < g->width && links[j] != INDEX_NO_LINK; j++) {
      if (t->parent[links[j]] != INDEX_NO_LINK) continue;
      t->parent[links[j]] = row;
      t->queue[t->n_reached++] = links[j];
    }
  }
}

/* Links a reachable row to an orphan; false when it has no place to give. */
static bool connect_attach(connect_tree *t, uint32_t from, uint32_t orphan) {
  uint32_t *links = t->g->links + (size_t)from * t->g->width, place = INDEX_NO_LINK;
  if (from == orphan || t->parent[from] == INDEX_NO_LINK) return false;
  for (uint32_t j = 0; j < t->g->width; j++) {
    if (links[j] == INDEX_NO_LINK) {
      place = j;
      break;
    }
    if (t->parent[links[j]] != from) place = j; /* links are sorted by distance, or nearly: the last one is distant */
  }
  if (place == INDEX_NO_LINK) return false;
  links[place] = orphan;
  t->parent[orphan] = from;
  t->queue[t->n_reached++] = orphan;
  t->newest = orphan;
  return true;
}

static lode_status connect_row(connect_tree *t, uint32_t orphan, lode_error *err) {
  index_build_state *g = t->g;
  index_build_worker *w = &g->workers[0];
  const unsigned char *row = g->input.rows + (size_t)orphan * g->input.stride;
  index_walk_query query = {.extra = g->extra ? g->extra[orphan] : 0};
  uint32_t before = t->n_reached;
  quant_query_of_row(row, g->input.dim, w->query, &query.code);
  TRY(index_walk(&g->view, &query, g->options.beam, SIZE_MAX, &w->walk, err));
  bool attached = false;
  for (size_t i = 0; i < w->walk.n && !attached; i++)
    attached = connect_attach(t, index_pool_ordinal(w->walk.pool[i]), orphan);
  if (!attached) attached = connect_attach(t, t->newest, orphan);
  while (!attached && t->spare < before) {
    attached = connect_attach(t, t->queue[t->spare], orphan);
    if (!attached) t->spare++;
  }
  ENSURE(attached, err);
  connect_spread(t, before);
  return LODE_OK;
}

lode_status index_graph_connect(index_build_state *g, lode_error *err) {
  lode_status st = LODE_OK;
  connect_tree t = {.g = g, .newest = g->sequence[0]};
  t.parent = mem_calloc(g->input.n, sizeof *t.parent);
  t.queue = mem_calloc(g->input.n, sizeof *t.queue);
  if (!t.parent || !t.queue) TRY_GOTO(err_nomem(err));
  memset(t.parent, 0xFF, g->input.n * sizeof *t.parent);
  t.queue[t.n_reached++] = g->sequence[0];
  t.parent[g->sequence[0]] = g->sequence[0];
  connect_spread(&t, 0);
  for (uint32_t i = 0; i < g->input.n; i++) {
    if (t.parent[i] == INDEX_NO_LINK) TRY_GOTO(connect_row(&t, i, err));
  }
done:
  mem_free(t.parent);
  mem_free(t.queue);
  return st;
}

static bool connect_links_valid(const uint32_t *links, uint32_t self, uint32_t n, uint32_t width) {
  uint32_t used = 0;
  while (used < width && links[used] != INDEX_NO_LINK) used++;
  for (uint32_t j = used; j < width; j++)
    if (links[j] != INDEX_NO_LINK) return false;
  for (uint32_t j = 0; j < used; j++) {
    if (links[j] >= n || links[j] == self) return false;
    for (uint32_t k = 0; k < j; k++)
      if (links[k] == links[j]) return false;
  }
  return true;
}

/* Breadth-first order from the entries: rows that are visited together are stored together. */
lode_status index_graph_reorder(const index_build_state *g, index_graph *graph, lode_error *err) {
  uint32_t n = g->input.n, last = 0;
  graph->order = mem_calloc(n, sizeof *graph->order);
  graph->place = mem_calloc(n, sizeof *graph->place);
  if (!graph->order || !graph->place) return err_nomem(err);
  memset(graph->place, 0xFF, n * sizeof *graph->place);
  for (uint32_t i = 0; i < g->n_entries; i++) {
    graph->order[last] = g->sequence[i];
    graph->place[g->sequence[i]] = last++;
  }
  for (uint32_t i = 0; i < last; i++) {
    const uint32_t *links = g->links + (size_t)graph->order[i] * g->width;
    for (uint32_t j = 0; j < g->width && links[j] != INDEX_NO_LINK; j++) {
      if (graph->place[links[j]] != INDEX_NO_LINK) continue;
      graph->place[links[j]] = last;
      graph->order[last++] = links[j];
    }
  }
  ENSURE(last == n, err);
  for (uint32_t i = 0; i < n; i++)
    INVARIANT_CHECKED(graph->place[graph->order[i]] == i &&
                      connect_links_valid(g->links + (size_t)i * g->width, i, n, g->width));
  return LODE_OK;
}

/* ---- Check ---- */

static void connect_unpack(const index_graph_links *links, uint32_t from, uint32_t *row) {
  index_unpack_links(links, from, row);
  for (uint32_t j = 0; j < links->width; j++)
    if (row[j] == index_link_none(links->bits)) row[j] = INDEX_NO_LINK;
}

lode_status index_graph_check(const index_graph_links *links, uint32_t n, index_graph_report *report, lode_error *err) {
  lode_status st = LODE_OK;
  uint32_t reached = 0, row[INDEX_MAX_DEGREE], width = links->width;
  ENSURE(width <= INDEX_MAX_DEGREE, err);
  *report = (index_graph_report){.bad_link = INDEX_NO_LINK};
  unsigned char *seen = mem_calloc(n ? n : 1, 1);
  uint32_t *queue = mem_calloc(n ? n : 1, sizeof *queue);
  if (!seen || !queue) TRY_GOTO(err_nomem(err));
  for (uint32_t i = 0; i < n; i++) {
    connect_unpack(links, i, row);
    if (connect_links_valid(row, i, n, width)) continue;
    report->bad_link = i;
    TRY_GOTO(err_set(err, LODE_CORRUPT, "the links of row %u of the graph are wrong: rebuild the index", i));
  }
  if (n) {
    seen[0] = 1;
    queue[reached++] = 0;
  }
  for (uint32_t i = 0; i < reached; i++) {
    connect_unpack(links, queue[i], row);
    for (uint32_t j = 0; j < width && row[j] != INDEX_NO_LINK; j++) {
      report->links++;
      if (seen[row[j]]) continue;
      seen[row[j]] = 1;
      queue[reached++] = row[j];
    }
  }
  report->unreachable = n - reached;
  if (reached < n) {
    st = err_set(err, LODE_CORRUPT, "%u rows of the graph cannot be reached: rebuild the index", n - reached);
  }
done:
  mem_free(seen);
  mem_free(queue);
  return st;
}
