/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - construction of the graph; see graph.h.
 *
 * Distances are squared distances of decoded rows: bias + bias - 2 * dot. For inner products there is an additional
 * dimension ("extra") that gives all rows the same length, so that the nearest by l2 have the greatest inner product:
 * sqrt(longest^2 - length^2). For cosine only zero vectors have it: their distance to each row is that of an orthogonal
 * row. While the graph grows, rows have places for more than `degree` links, so that a row is pruned only once in a
 * while, not for each reverse link.
 */
#include "index/graph.h"

#include <math.h>
#include <stdlib.h>

#include "index/graph_impl.h"
#include "index/index_tuning.h"

static uint64_t graph_mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static void graph_for_each(index_build_state *g, size_t n, index_parallel_body *body) {
  if (g->options.parallel.run && n > 1) {
    g->options.parallel.run(g->options.parallel.ctx, n, body, g);
    return;
  }
  for (size_t i = 0; i < n; i++) body(g, i, 0);
}

/* ---- Set-up ---- */

static uint32_t entries_for(uint32_t n) {
  uint32_t some = (uint32_t)(sqrt((double)n) / 2);
  return some < INDEX_MIN_ENTRIES ? INDEX_MIN_ENTRIES : some > INDEX_MAX_ENTRIES ? INDEX_MAX_ENTRIES : some;
}

/* Puts the row nearest to the centre first and shuffles the others. */
static void choose_order(index_build_state *g) {
  uint32_t n = g->n_unique, middle = 0, *sequence = g->sequence;
  float nearest = INFINITY;
  for (uint32_t i = 0; i < n; i++) {
    float norm = quant_row_norm2(g->input.rows + sequence[i] * g->input.stride, g->input.dim);
    if (norm < nearest) {
      nearest = norm;
      middle = i;
    }
  }
  uint32_t t = sequence[middle];
  sequence[middle] = sequence[0];
  sequence[0] = t;
  for (uint32_t i = n - 1; i > 1; i--) {
    uint32_t j = 1 + (uint32_t)(graph_mix(i) % i);
    t = sequence[i];
    sequence[i] = sequence[j];
    sequence[j] = t;
  }
}

/* Sets the additional dimension, and a bias that includes it. */
static lode_status set_extra(index_build_state *g, lode_error *err) {
  const index_graph_input *in = &g->input;
  float longest = 0;
  double sum = 0;
  bool wanted = in->metric == LODE_IP;
  for (uint32_t i = 0; i < in->n && in->metric != LODE_L2; i++) {
    if (in->lengths[i] > longest) longest = in->lengths[i];
    sum += (double)in->lengths[i];
    if (in->metric == LODE_COSINE && in->lengths[i] == 0) wanted = true;
  }
  if (!wanted) return LODE_OK;
  if (in->metric == LODE_IP && INDEX_UNEVEN_LENGTHS * sum < (double)longest * in->n)
    g->entry_climbs = INDEX_ENTRY_CLIMBS;
  g->extra = mem_calloc(in->n, sizeof *g->extra);
  if (!g->extra) return err_nomem(err);
  for (uint32_t i = 0; i < in->n; i++) {
    if (in->metric == LODE_COSINE) {
      g->extra[i] = in->lengths[i] == 0 ? in->unit : 0; /* the bias already includes it */
      continue;
    }
    unsigned char *row = in->rows + i * in->stride;
    float extra2 = longest - in->lengths[i];
    float bias = quant_row_norm2(row, in->dim) + extra2;
    g->extra[i] = sqrtf(extra2);
    quant_set_row_bias(row, bias);
  }
  return LODE_OK;
}

static void unset_extra(index_build_state *g) {
  for (uint32_t i = 0; g->extra && g->input.metric == LODE_IP && i < g->input.n; i++) {
    quant_set_row_bias(g->input.rows + i * g->input.stride, 0);
  }
}

static lode_status make_workers(index_build_state *g, lode_error *err) {
  size_t query_bytes = quant_query_bytes(g->input.dim);
  size_t max =
      (size_t)g->options.beam + g->width + g->options.degree + INDEX_MAX_BATCH; /* candidates of one row, at most */
  for (unsigned i = 0; i < g->n_workers; i++) {
    index_build_worker *w = &g->workers[i];
    TRY(index_walk_scratch_init(&w->walk, g->input.n, g->options.beam, err));
    w->query = mem_alloc_aligned(QUANT_QUERY_ALIGN, query_bytes);
    w->candidate = mem_alloc_aligned(QUANT_QUERY_ALIGN, query_bytes);
    w->candidates = mem_calloc(max, sizeof *w->candidates);
    w->chosen = mem_calloc(g->width, sizeof *w->chosen);
    w->chosen_rows = mem_calloc(g->width, sizeof *w->chosen_rows);
    if (!w->query || !w->candidate || !w->candidates || !w->chosen || !w->chosen_rows) return err_nomem(err);
  }
  return LODE_OK;
}

static lode_status graph_set_up(index_build_state *g, lode_error *err) {
  const index_graph_input *in = &g->input;
  g->n_workers = g->options.parallel.run && g->options.parallel.workers ? g->options.parallel.workers : 1;
  g->width = g->options.degree + g->options.degree / 2;
  size_t cells;
  if (mem_mul_overflow(in->n, g->width, &cells) || cells > SIZE_MAX / sizeof *g->links) return err_nomem(err);
  g->links = mem_alloc_large(cells * sizeof *g->links);
  g->sequence = mem_calloc(in->n, sizeof *g->sequence);
  g->original = mem_calloc(in->n, sizeof *g->original);
  g->incoming = mem_calloc(in->n, sizeof *g->incoming);
  g->workers = mem_calloc(g->n_workers, sizeof *g->workers);
  g->found = mem_calloc((size_t)INDEX_MAX_BATCH * g->options.degree, sizeof *g->found);
  g->targets = mem_calloc((size_t)INDEX_MAX_BATCH * g->options.degree, sizeof *g->targets);
  g->starts = mem_calloc((size_t)INDEX_MAX_BATCH * g->options.degree + 1, sizeof *g->starts);
  g->sources = mem_calloc((size_t)INDEX_MAX_BATCH * g->options.degree, sizeof *g->sources);
  if (!g->links || !g->sequence || !g->original || !g->incoming || !g->workers || !g->found || !g->targets ||
      !g->starts || !g->sources) {
    return err_nomem(err);
  }
  memset(g->links, 0xFF, cells * sizeof *g->links);
  TRY(index_graph_find_copies(g, err));
  choose_order(g);
  if (g->n_entries > g->n_unique) g->n_entries = g->n_unique;
  TRY(set_extra(g, err));
  TRY(make_workers(g, err));
  g->row_bytes = (index_paged){.data = in->rows, .bytes = (uint64_t)in->n * in->stride};
  g->link_bytes = (index_paged){.data = (const unsigned char *)g->links, .bytes = cells * sizeof *g->links};
  g->view = (index_graph_view){.rows = &g->row_bytes,
                               .links = &g->link_bytes,
                               .stride = in->stride,
                               .n = in->n,
                               .dim = in->dim,
                               .width = g->width,
                               .link_bits = 32,
                               .entries = g->sequence,
                               .extra = g->extra};
  return LODE_OK;
}

static void graph_tear_down(index_build_state *g) {
  for (unsigned i = 0; g->workers && i < g->n_workers; i++) {
    index_build_worker *w = &g->workers[i];
    index_walk_scratch_release(&w->walk);
    mem_free(w->query);
    mem_free(w->candidate);
    mem_free(w->candidates);
    mem_free(w->chosen);
    mem_free(w->chosen_rows);
  }
  unset_extra(g);
  mem_free(g->workers);
  mem_free(g->links);
  mem_free(g->sequence);
  mem_free(g->original);
  mem_free(g->incoming);
  mem_free(g->found);
  mem_free(g->targets);
  mem_free(g->starts);
  mem_free(g->sources);
  mem_free(g->extra);
}

/* ---- Pruning ---- */

static inline float extra_of(const index_build_state *g, uint32_t i) { return g->extra ? g->extra[i] : 0; }

/* A candidate: its distance to the row as an order-preserving integer, then its ordinal. */
static inline uint64_t candidate_of(float distance, uint32_t ordinal) {
  return (uint64_t)quant_key_order(distance) << 32 | ordinal;
}

static inline float candidate_distance(uint64_t candidate) { return quant_key_of_order((uint32_t)(candidate >> 32)); }

/* Is one of the n chosen rows nearer to the candidate than `distance`, its distance from the row (RNG pruning)? */
static bool prune_is_occluded(const index_build_state *g, index_build_worker *w, uint32_t candidate, float distance,
                              size_t n) {
  const unsigned char *row = index_build_row(g, candidate);
  quant_query query;
  float keys[INDEX_PRUNE_GROUP], bias = quant_row_bias(row), extra = 2 * extra_of(g, candidate);
  if (n) quant_query_of_row(row, g->input.dim, w->candidate, &query);
  for (size_t i = 0; i < n; i += INDEX_PRUNE_GROUP) {
    size_t m = n - i < INDEX_PRUNE_GROUP ? n - i : INDEX_PRUNE_GROUP;
    quant_keys(&query, w->chosen_rows + i, m, keys);
    for (size_t j = 0; j < m; j++) {
      float d = bias + keys[j];
      if (g->extra) d -= extra * g->extra[w->chosen[i + j]];
      if (g->options.alpha * d < distance) return true;
    }
  }
  return false;
}

/* Chooses neighbours from distinct candidates, sorted by distance, into w->chosen; returns how many, at most degree.
 * Places that are left go to the nearest of the occluded ones: they cost nothing, and at equal recall save a tenth of
 * the distances. */
static size_t graph_prune(const index_build_state *g, index_build_worker *w, const uint64_t *candidates, size_t n) {
  size_t chosen = 0, seen = 0;
  for (size_t i = 0; i < n && chosen < g->options.degree; i++) {
    uint32_t c = (uint32_t)candidates[i];
    if (prune_is_occluded(g, w, c, candidate_distance(candidates[i]), chosen)) continue;
    w->chosen[chosen] = c;
    w->chosen_rows[chosen++] = index_build_row(g, c);
  }
  size_t visible = chosen; /* in the order of the candidates */
  for (size_t i = 0; i < n && chosen < g->options.degree; i++) {
    uint32_t c = (uint32_t)candidates[i];
    if (seen < visible && c == w->chosen[seen])
      seen++;
    else
      w->chosen[chosen++] = c;
  }
  return chosen;
}

/* ---- Entries ---- */

/* Lowers `nearest` to the distances from one row where those are smaller. */
static void keep_least(const index_build_state *g, uint32_t from, const uint32_t *rows, size_t n, float *nearest) {
  const unsigned char *row = index_build_row(g, from), *others[INDEX_PRUNE_GROUP];
  index_build_worker *w = &g->workers[0];
  quant_query query;
  float keys[INDEX_PRUNE_GROUP], bias = quant_row_bias(row);
  quant_query_of_row(row, g->input.dim, w->query, &query);
  for (size_t i = 0; i < n; i += INDEX_PRUNE_GROUP) {
    size_t m = n - i < INDEX_PRUNE_GROUP ? n - i : INDEX_PRUNE_GROUP;
    for (size_t j = 0; j < m; j++) others[j] = index_build_row(g, rows[i + j]);
    quant_keys(&query, others, m, keys);
    for (size_t j = 0; j < m; j++) {
      float d = bias + keys[j] - 2 * extra_of(g, from) * extra_of(g, rows[i + j]);
      if (d < nearest[i + j]) nearest[i + j] = d;
    }
  }
}

/* Half of the entries are random rows, which lie where most rows are; each of the others is the row of a sample that is
 * farthest from all entries so far, so that isolated regions have one. */
static lode_status spread_entries(index_build_state *g, lode_error *err) {
  uint32_t drawn = (g->n_entries + 1) / 2, *sequence = g->sequence;
  uint32_t sample = g->n_unique / INDEX_ENTRY_SAMPLE < g->n_entries ? g->n_unique : g->n_entries * INDEX_ENTRY_SAMPLE;
  float *nearest = mem_calloc(sample, sizeof *nearest);
  if (!nearest) return err_nomem(err);
  for (uint32_t i = 0; i < sample; i++) nearest[i] = INFINITY;
  for (uint32_t i = 0; i < drawn; i++) keep_least(g, sequence[i], sequence + drawn, sample - drawn, nearest + drawn);
  for (uint32_t next = drawn; next < g->n_entries; next++) {
    uint32_t farthest = next;
    for (uint32_t i = next + 1; i < sample; i++)
      if (nearest[i] > nearest[farthest]) farthest = i;
    uint32_t row = sequence[farthest];
    sequence[farthest] = sequence[next];
    nearest[farthest] = nearest[next];
    sequence[next] = row;
    keep_least(g, row, sequence + next + 1, sample - next - 1, nearest + next + 1);
  }
  mem_free(nearest);
  return LODE_OK;
}

/* ---- One batch ---- */

/* Searches for one row of the batch and prunes the result into `found`, not into `links`, which other threads are
 * reading. */
static void find_links(void *arg, size_t i, unsigned worker) {
  index_build_state *g = arg;
  index_build_worker *w = &g->workers[worker];
  if (w->st != LODE_OK) return;
  uint32_t self = g->sequence[g->done + i], *found = g->found + i * g->options.degree;
  const unsigned char *row = index_build_row(g, self);
  index_walk_query query = {.extra = extra_of(g, self)};
  quant_query_of_row(row, g->input.dim, w->query, &query.code);
  w->st = index_walk(&g->view, &query, g->options.beam, SIZE_MAX, &w->walk, &w->err);
  if (w->st != LODE_OK) return;
  float bias = quant_row_bias(row);
  size_t n = 0;
  for (size_t j = 0; j < w->walk.n; j++) {
    uint64_t entry = w->walk.pool[j];
    uint32_t ordinal = index_pool_ordinal(entry);
    if (ordinal == self) continue;
    w->candidates[n++] = candidate_of(bias + candidate_distance(entry), ordinal); /* remains sorted */
  }
  size_t chosen = graph_prune(g, w, w->candidates, n);
  for (size_t j = 0; j < g->options.degree; j++) found[j] = j < chosen ? w->chosen[j] : INDEX_NO_LINK;
}

/* Sorts the reverse links by target, in the order of the batch: targets, starts and sources. */
static void collect_targets(index_build_state *g, size_t batch) {
  size_t degree = g->options.degree;
  uint32_t total = 0;
  g->n_targets = 0;
  for (size_t i = 0; i < batch * degree; i++) {
    uint32_t t = g->found[i];
    if (t == INDEX_NO_LINK) continue;
    if (g->incoming[t]++ == 0) g->targets[g->n_targets++] = t;
  }
  for (size_t i = 0; i < g->n_targets; i++) {
    uint32_t t = g->targets[i], n = g->incoming[t];
    g->starts[i] = total;
    g->incoming[t] = total;
    total += n;
  }
  g->starts[g->n_targets] = total;
  for (size_t i = 0; i < batch * degree; i++) {
    uint32_t t = g->found[i];
    if (t != INDEX_NO_LINK) g->sources[g->incoming[t]++] = g->sequence[g->done + i / degree];
  }
  for (size_t i = 0; i < g->n_targets; i++) g->incoming[g->targets[i]] = 0;
}

static size_t count_links(const uint32_t *links, size_t width) {
  size_t n = 0;
  while (n < width && links[n] != INDEX_NO_LINK) n++;
  return n;
}

/* Prunes a row's links and n more to `degree`. */
static void prune_links(index_build_state *g, index_build_worker *w, uint32_t self, const uint32_t *more, size_t n) {
  uint32_t *links = g->links + (size_t)self * g->width;
  const unsigned char *row = index_build_row(g, self), *rows[INDEX_PRUNE_GROUP];
  size_t old = count_links(links, g->width), all = old + n;
  quant_query query;
  float keys[INDEX_PRUNE_GROUP], bias = quant_row_bias(row), extra = 2 * extra_of(g, self);
  quant_query_of_row(row, g->input.dim, w->query, &query);
  for (size_t i = 0; i < all; i += INDEX_PRUNE_GROUP) {
    size_t m = all - i < INDEX_PRUNE_GROUP ? all - i : INDEX_PRUNE_GROUP;
    uint32_t ordinals[INDEX_PRUNE_GROUP];
    for (size_t j = 0; j < m; j++) {
      ordinals[j] = i + j < old ? links[i + j] : more[i + j - old];
      rows[j] = index_build_row(g, ordinals[j]);
    }
    quant_keys(&query, rows, m, keys);
    for (size_t j = 0; j < m; j++) {
      float d = bias + keys[j];
      if (g->extra) d -= extra * g->extra[ordinals[j]];
      w->candidates[i + j] = candidate_of(d, ordinals[j]);
    }
  }
  qsort(w->candidates, all, sizeof *w->candidates, sort_cmp_u64);
  size_t chosen = graph_prune(g, w, w->candidates, all);
  for (size_t j = 0; j < g->width; j++) links[j] = j < chosen ? w->chosen[j] : INDEX_NO_LINK;
}

static void merge_target(void *arg, size_t i, unsigned worker) {
  index_build_state *g = arg;
  uint32_t target = g->targets[i], *links = g->links + (size_t)target * g->width;
  const uint32_t *more = g->sources + g->starts[i];
  size_t n = g->starts[i + 1] - g->starts[i], old = count_links(links, g->width);
  if (old + n <= g->width) {
    for (size_t j = 0; j < n; j++) links[old + j] = more[j];
    return;
  }
  prune_links(g, &g->workers[worker], target, more, n);
}

static void shrink_row(void *arg, size_t i, unsigned worker) {
  index_build_state *g = arg;
  uint32_t *links = g->links + i * g->width;
  if (links[g->options.degree] != INDEX_NO_LINK) prune_links(g, &g->workers[worker], (uint32_t)i, NULL, 0);
}

static size_t next_batch(const index_build_state *g, size_t end) {
  size_t batch = g->done <= INDEX_FIRST_BATCH ? g->done : g->done / INDEX_BATCH_SHARE;
  if (batch < INDEX_FIRST_BATCH && g->done >= INDEX_FIRST_BATCH) batch = INDEX_FIRST_BATCH;
  if (batch > INDEX_MAX_BATCH) batch = INDEX_MAX_BATCH;
  /* batches get sorted, so none may contain both entries and other rows */
  if (g->done < g->n_entries && batch > g->n_entries - g->done) batch = g->n_entries - g->done;
  if (batch > end - g->done) batch = end - g->done;
  return batch;
}

static lode_status first_failure(const index_build_state *g, lode_error *err) {
  for (unsigned i = 0; i < g->n_workers; i++) {
    if (g->workers[i].st == LODE_OK) continue;
    if (err) *err = g->workers[i].err;
    return g->workers[i].st;
  }
  return LODE_OK;
}

/* Searches for the next rows, which are not in the graph yet. */
static lode_status graph_calibrate(index_build_state *g, size_t n, lode_error *err) {
  graph_for_each(g, n, index_calibrate_row);
  TRY(first_failure(g, err));
  g->effort = index_calibrate_effort(g, n, &g->curve);
  return LODE_OK;
}

/* Inserts rows, batch by batch, until `end` are in the graph. */
static lode_status graph_insert(index_build_state *g, size_t end, lode_error *err) {
  while (g->done < end) {
    size_t batch = next_batch(g, end);
    g->view.n_entries = g->done < g->n_entries ? (uint32_t)g->done : g->n_entries;
    qsort(g->sequence + g->done, batch, sizeof *g->sequence, sort_cmp_u32);
    graph_for_each(g, batch, find_links);
    TRY(first_failure(g, err));
    for (size_t i = 0; i < batch; i++) {
      memcpy(g->links + (size_t)g->sequence[g->done + i] * g->width, g->found + i * g->options.degree,
             g->options.degree * sizeof *g->links);
    }
    collect_targets(g, batch);
    graph_for_each(g, g->n_targets, merge_target);
    g->done += batch;
    if (!err_go_on(g->options.progress, "building the vector index", g->done, g->n_unique))
      return err_set(err, LODE_CANCELLED, "the construction of the index was cancelled");
  }
  return LODE_OK;
}

/* From now on rows have places for `degree` links. */
static void graph_shrink(index_build_state *g) {
  graph_for_each(g, g->input.n, shrink_row);
  for (uint32_t i = 0; i < g->input.n; i++) {
    memmove(g->links + (size_t)i * g->options.degree, g->links + (size_t)i * g->width,
            g->options.degree * sizeof *g->links);
  }
  g->width = g->view.width = g->options.degree;
}

/* A few rows are held back until the others are linked as they will stay: what is measured with them, in a graph that
 * still has more links, would promise more than searches find. */
static lode_status graph_grow(index_build_state *g, lode_error *err) {
  size_t sample = index_calibrate_sample(g);
  g->done = 1;
  TRY(graph_insert(g, g->n_unique - sample, err));
  graph_shrink(g);
  if (sample) TRY(graph_calibrate(g, sample, err));
  return graph_insert(g, g->n_unique, err);
}

/* ---- All of it ---- */

static lode_status graph_check_input(const index_graph_input *input, const index_graph_options *options,
                                     lode_error *err) {
  if (input->n == 0 || input->n > INDEX_MAX_ROWS || input->dim == 0 || input->dim > LODE_MAX_DIMENSION ||
      input->stride < quant_stride(input->dim) || (input->metric != LODE_L2 && !input->lengths)) {
    return err_set(err, LODE_INVALID, "a graph needs 1 to 2,147,483,647 rows of 1 to 65,535 dimensions");
  }
  if (options->degree > INDEX_MAX_DEGREE || options->degree == 1) {
    return err_set(err, LODE_INVALID, "the degree of a graph is 2 to %d", INDEX_MAX_DEGREE);
  }
  return LODE_OK;
}

lode_status index_graph_build(const index_graph_input *input, const index_graph_options *options, index_graph *graph,
                              lode_error *err) {
  index_build_state g = {.input = *input, .options = *options};
  lode_status st = LODE_OK;
  *graph = (index_graph){0};
  TRY(graph_check_input(input, options, err));
  if (!g.options.degree) g.options.degree = INDEX_DEGREE;
  if (!g.options.beam) g.options.beam = INDEX_BUILD_BEAM;
  if (!(g.options.alpha > 0)) g.options.alpha = INDEX_PRUNE_ALPHA;
  g.n_entries = options->entries ? options->entries : entries_for(input->n);
  TRY_GOTO(graph_set_up(&g, err));
  TRY_GOTO(spread_entries(&g, err));
  TRY_GOTO(graph_grow(&g, err));
  g.view.n_entries = g.n_entries;
  graph->n = input->n;
  graph->degree = g.options.degree;
  graph->n_entries = g.n_entries;
  graph->effort = g.effort;
  graph->curve = g.curve;
  graph->entry_climbs = g.entry_climbs;
  TRY_GOTO(index_graph_add_copies(&g, err));
  TRY_GOTO(index_graph_connect(&g, err));
  TRY_GOTO(index_graph_reorder(&g, graph, err));
  graph->links = g.links;
  g.links = NULL;
done:
  graph_tear_down(&g);
  if (st != LODE_OK) index_graph_release(graph);
  return st;
}

void index_graph_release(index_graph *graph) {
  mem_free(graph->links);
  mem_free(graph->order);
  mem_free(graph->place);
  *graph = (index_graph){0};
}

void index_graph_get_links(const index_graph *graph, uint32_t ordinal, uint32_t *out) {
  const uint32_t *links = graph->links + (size_t)graph->order[ordinal] * graph->degree;
  for (uint32_t i = 0; i < graph->degree; i++) out[i] = links[i] == INDEX_NO_LINK ? links[i] : graph->place[links[i]];
}
