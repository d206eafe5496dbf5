/* SPDX-License-Identifier: Apache-2.0 */
/* graph_walk.c - see graph_walk.h.
 *
 * The time is spent waiting for memory: a hop gathers the neighbours that were not seen yet, prefetches all their rows,
 * and only then computes. The visited set is a bitmap (n / 8 bytes: it stays in the second-level cache), cleared
 * through the list of touched rows. Whether a row was seen before is unpredictable, so it is tested without a branch.
 */
#include "index/graph_walk.h"

#include <math.h>

#include "index/index_tuning.h"

lode_status index_walk_scratch_init(index_walk_scratch *scratch, uint32_t n, size_t beam, lode_error *err) {
  size_t words = (size_t)n / 64 + 1;
  if (beam > n) beam = n;
  if (beam < 1) beam = 1;
  if (scratch->visited_words < words) {
    mem_free(scratch->visited);
    scratch->visited_words = 0;
    scratch->visited = mem_calloc(words, sizeof *scratch->visited);
    if (!scratch->visited) return err_nomem(err);
    scratch->visited_words = words;
  }
  if (!mem_grow(&scratch->pool, &scratch->pool_cap, beam + 1, sizeof *scratch->pool)) return err_nomem(err);
  return LODE_OK;
}

void index_walk_scratch_release(index_walk_scratch *scratch) {
  mem_free(scratch->pool);
  mem_free(scratch->visited);
  mem_free(scratch->touched);
  mem_free(scratch->links);
  *scratch = (index_walk_scratch){0};
}

/* Appends to `touched`, which must have room for n more, the rows not seen before, up to the first that is not below
 * the limit. Returns how many. */
static inline size_t walk_visit_all(index_walk_scratch *scratch, const uint32_t *ordinals, size_t n, uint32_t limit) {
  uint64_t *visited = scratch->visited;
  uint32_t *fresh = scratch->touched + scratch->n_touched;
  size_t n_fresh = 0;
  for (size_t i = 0; i < n && ordinals[i] < limit; i++) {
    uint32_t ordinal = ordinals[i];
    uint64_t before = visited[ordinal / 64], bit = (uint64_t)1 << (ordinal % 64);
    visited[ordinal / 64] = before | bit;
    fresh[n_fresh] = ordinal;
    n_fresh += !(before & bit);
  }
  scratch->n_touched += n_fresh;
  return n_fresh;
}

static inline bool walk_visit(index_walk_scratch *scratch, uint32_t ordinal) {
  return walk_visit_all(scratch, &ordinal, 1, UINT32_MAX) == 1;
}

static void walk_clear_visited(index_walk_scratch *scratch) {
  for (size_t i = 0; i < scratch->n_touched; i++) scratch->visited[scratch->touched[i] / 64] = 0;
  scratch->n_touched = 0;
}

static inline float pool_entry_key(uint64_t entry) { return quant_key_of_order((uint32_t)(entry >> 32)); }

/* How many of the n entries, which are sorted, are less than this one. Without branches: nothing predicts them. */
static inline size_t pool_place(const uint64_t *pool, size_t n, uint64_t entry) {
  size_t at = 0;
  for (; n > 1; n -= n / 2) at += pool[at + n / 2 - 1] < entry ? n / 2 : 0;
  return n ? at + (pool[at] < entry) : 0;
}

static void pool_sort(uint64_t *entries, size_t n) {
  for (size_t i = 1; i < n; i++) {
    uint64_t entry = entries[i];
    size_t at = i;
    for (; at > 0 && entries[at - 1] > entry; at--) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
}

/* Offers all that a hop found to the pool. From its end on, each stretch between two of them is moved once: with a wide
 * beam, moving the rest of the pool for each of them takes a quarter of a walk. Changes the order of `fresh`. */
static void pool_merge(index_walk_scratch *scratch, uint64_t *fresh, size_t n_fresh) {
  uint64_t *pool = scratch->pool;
  size_t end = scratch->n, room = scratch->beam - end;
  pool_sort(fresh, n_fresh);
  for (size_t excess = n_fresh > room ? n_fresh - room : 0; excess > 0; excess--) { /* the worst of both leave */
    if (end > 0 && pool[end - 1] > fresh[n_fresh - 1])
      end--;
    else
      n_fresh--;
  }
  scratch->n = end + n_fresh;
  for (; n_fresh > 0; n_fresh--) {
    size_t at = pool_place(pool, end, fresh[n_fresh - 1]);
    if (at < end) memmove(pool + at + n_fresh, pool + at, (end - at) * sizeof *pool);
    pool[at + n_fresh - 1] = fresh[n_fresh - 1];
    end = at;
  }
  if (end < scratch->next) scratch->next = end;
}

static inline const unsigned char *walk_row_at(const index_graph_view *view, uint32_t ordinal) {
  return view->rows->data + (size_t)ordinal * view->stride;
}

static inline lode_status walk_need_row(const index_graph_view *view, uint32_t ordinal, lode_error *err) {
  return index_paged_need(view->rows, (uint64_t)ordinal * view->stride, view->stride, err);
}

/* ---- Links ---- */

/* The last links are read with what is before them, so that nothing after the row is. */
void index_unpack_links(const index_graph_links *links, uint32_t row, uint32_t *out) {
  uint32_t bits = links->bits, none = index_link_none(bits);
  size_t bytes = index_link_row_bytes(links->width, bits);
  const unsigned char *from = links->data + row * bytes;
  for (uint32_t i = 0; i < links->width; i++) {
    size_t at = (size_t)i * bits, byte = at / 8 < bytes - 8 ? at / 8 : bytes - 8;
    uint64_t x;
    memcpy(&x, from + byte, sizeof x);
    out[i] = (uint32_t)(x >> (at - 8 * byte)) & none;
  }
}

void index_pack_links(const uint32_t *links, uint32_t width, uint32_t bits, unsigned char *out) {
  memset(out, 0, index_link_row_bytes(width, bits));
  for (size_t i = 0; i < (size_t)width * bits; i++)
    out[i / 8] |= (unsigned char)((links[i / bits] >> (i % bits) & 1) << (i % 8));
}

static inline size_t walk_link_row_bytes(const index_graph_view *view) {
  return view->link_bits == 32 ? view->width * sizeof(uint32_t) : index_link_row_bytes(view->width, view->link_bits);
}

static inline const unsigned char *walk_links_at(const index_graph_view *view, uint32_t ordinal) {
  return view->links->data + (size_t)ordinal * walk_link_row_bytes(view);
}

/* The row of links, loaded; valid until the next. */
static inline lode_status walk_links_of(const index_graph_view *view, uint32_t ordinal, index_walk_scratch *scratch,
                                        const uint32_t **links, lode_error *err) {
  size_t bytes = walk_link_row_bytes(view);
  TRY(index_paged_need(view->links, (uint64_t)ordinal * bytes, bytes, err));
  *links = (const uint32_t *)(const void *)walk_links_at(view, ordinal);
  if (view->link_bits == 32) return LODE_OK;
  index_graph_links packed = {.data = view->links->data, .width = view->width, .bits = view->link_bits};
  index_unpack_links(&packed, ordinal, scratch->links);
  *links = scratch->links;
  return LODE_OK;
}

static inline void walk_prefetch_links(const index_graph_view *view, uint32_t ordinal) {
  index_prefetch_row(walk_links_at(view, ordinal), walk_link_row_bytes(view));
}

static inline uint64_t pool_entry(float key, uint32_t ordinal) {
  return (uint64_t)quant_key_order(key) << 32 | (uint64_t)ordinal << 1;
}

/* Keys of at most INDEX_STEP_ROWS rows. */
static inline void walk_keys_of(const index_graph_view *view, const index_walk_query *query, const uint32_t *list,
                                size_t n, float *keys) {
  const unsigned char *rows[INDEX_STEP_ROWS];
  if (n == 0) return;
  for (size_t j = 0; j < n; j++) rows[j] = walk_row_at(view, list[j]);
  quant_keys(&query->code, rows, n, keys);
  for (size_t j = 0; view->extra && j < n; j++) keys[j] -= 2 * query->extra * view->extra[list[j]];
}

/* Offers the rows in list to the pool. */
static void walk_score(const index_graph_view *view, const index_walk_query *query, const uint32_t *list, size_t n,
                       index_walk_scratch *scratch) {
  float keys[INDEX_STEP_ROWS];
  uint64_t fresh[INDEX_STEP_ROWS];
  for (size_t i = 0; i < n; i += INDEX_STEP_ROWS) {
    size_t m = n - i < INDEX_STEP_ROWS ? n - i : INDEX_STEP_ROWS, n_fresh = 0;
    float worst = scratch->n < scratch->beam ? INFINITY : pool_entry_key(scratch->pool[scratch->n - 1]);
    walk_keys_of(view, query, list + i, m, keys);
    for (size_t j = 0; j < m; j++) {
      fresh[n_fresh] = pool_entry(keys[j], list[i + j]);
      n_fresh += !(keys[j] > worst);
    }
    if (n_fresh) pool_merge(scratch, fresh, n_fresh);
  }
  scratch->count.distances += n;
}

static lode_status walk_reserve(index_walk_scratch *scratch, size_t more, lode_error *err) {
  size_t need = scratch->n_touched + more;
  if (need <= scratch->touched_cap ||
      mem_grow(&scratch->touched, &scratch->touched_cap, need, sizeof *scratch->touched)) {
    return LODE_OK;
  }
  return err_nomem(err);
}

/* Prefetches the rows. */
static lode_status walk_prefetch_rows(const index_graph_view *view, const uint32_t *list, size_t n, lode_error *err) {
  for (size_t i = 0; i < n && !index_paged_complete(view->rows); i++) TRY(walk_need_row(view, list[i], err));
  for (size_t i = 0; i < n; i++) index_prefetch_row(walk_row_at(view, list[i]), view->stride);
  return LODE_OK;
}

/* The neighbours of a row that were not seen yet, prefetched. */
static lode_status walk_gather(const index_graph_view *view, uint32_t ordinal, index_walk_scratch *scratch,
                               const uint32_t **fresh, size_t *n, lode_error *err) {
  const uint32_t *links;
  TRY(walk_links_of(view, ordinal, scratch, &links, err));
  TRY(walk_reserve(scratch, view->width, err));
  scratch->count.hops++;
  *n = walk_visit_all(scratch, links, view->width, view->n);
  *fresh = scratch->touched + scratch->n_touched - *n;
  return walk_prefetch_rows(view, *fresh, *n, err);
}

static lode_status walk_expand(const index_graph_view *view, const index_walk_query *query, uint32_t ordinal,
                               index_walk_scratch *scratch, lode_error *err) {
  const uint32_t *fresh;
  size_t n;
  TRY(walk_gather(view, ordinal, scratch, &fresh, &n, err));
  walk_score(view, query, fresh, n, scratch);
  return LODE_OK;
}

/* Entry climb: from neighbour to better neighbour until there is none, whether or not the pool has better ones. */
static lode_status walk_climb(const index_graph_view *view, const index_walk_query *query, uint64_t from,
                              index_walk_scratch *scratch, lode_error *err) {
  float keys[INDEX_STEP_ROWS];
  uint64_t offers[INDEX_STEP_ROWS];
  for (uint64_t best = from;; from = best) {
    const uint32_t *fresh;
    size_t n;
    TRY(walk_gather(view, index_pool_ordinal(from), scratch, &fresh, &n, err));
    for (size_t i = 0; i < n; i += INDEX_STEP_ROWS) {
      size_t m = n - i < INDEX_STEP_ROWS ? n - i : INDEX_STEP_ROWS;
      walk_keys_of(view, query, fresh + i, m, keys);
      for (size_t j = 0; j < m; j++) {
        offers[j] = pool_entry(keys[j], fresh[i + j]);
        if (offers[j] < best) best = offers[j];
      }
      pool_merge(scratch, offers, m);
    }
    scratch->count.distances += n;
    if (best == from) return LODE_OK;
  }
}

/* Starts with the nearest few of the entries. */
static lode_status walk_seed(const index_graph_view *view, const index_walk_query *query, index_walk_scratch *scratch,
                             lode_error *err) {
  size_t n = view->n_entries,
         entry_climbs = view->entry_climbs < INDEX_WALK_MAX_SEEDS ? view->entry_climbs : INDEX_WALK_MAX_SEEDS;
  size_t wanted = entry_climbs > INDEX_WALK_SEEDS ? entry_climbs : INDEX_WALK_SEEDS, n_best = n < wanted ? n : wanted;
  uint64_t best[INDEX_WALK_MAX_SEEDS];
  uint32_t list[INDEX_STEP_ROWS];
  float keys[INDEX_STEP_ROWS], worst = INFINITY;
  for (size_t i = 0; i < wanted; i++) best[i] = UINT64_MAX;
  for (size_t i = 0; i < n; i += INDEX_STEP_ROWS) {
    size_t m = n - i < INDEX_STEP_ROWS ? n - i : INDEX_STEP_ROWS;
    for (size_t j = 0; j < m; j++) list[j] = view->entries ? view->entries[i + j] : (uint32_t)(i + j);
    for (size_t j = 0; j < m && !index_paged_complete(view->rows); j++) TRY(walk_need_row(view, list[j], err));
    walk_keys_of(view, query, list, m, keys);
    for (size_t j = 0; j < m; j++) {
      if (keys[j] > worst) continue;
      uint64_t entry = pool_entry(keys[j], list[j]);
      if (entry >= best[wanted - 1]) continue;
      size_t at = wanted - 1;
      for (; at > 0 && best[at - 1] > entry; at--) best[at] = best[at - 1];
      best[at] = entry;
      if (best[wanted - 1] != UINT64_MAX) worst = pool_entry_key(best[wanted - 1]);
    }
  }
  scratch->count.distances += n;
  for (size_t i = 0; i < n_best; i++) walk_visit(scratch, index_pool_ordinal(best[i]));
  pool_merge(scratch, best, n_best);
  for (size_t i = 0; i < n_best && i < entry_climbs; i++) TRY(walk_climb(view, query, best[i], scratch, err));
  return LODE_OK;
}

/* Marks and returns the best of the pool that is not expanded yet; false when there is none. Prefetches the links of
 * the next one. */
static inline bool walk_take_best(const index_graph_view *view, index_walk_scratch *scratch, uint32_t *ordinal) {
  size_t end = scratch->n < scratch->effort ? scratch->n : scratch->effort;
  while (scratch->next < end && (scratch->pool[scratch->next] & 1)) scratch->next++;
  if (scratch->next >= end) return false;
  *ordinal = index_pool_ordinal(scratch->pool[scratch->next]);
  scratch->pool[scratch->next++] |= 1;
  if (scratch->next < scratch->n) walk_prefetch_links(view, index_pool_ordinal(scratch->pool[scratch->next]));
  return true;
}

/* Is the pool sorted, without repetition, within the beam, of rows that exist? */
static bool walk_pool_is_sound(const index_graph_view *view, const index_walk_scratch *scratch) {
  for (size_t i = 0; i < scratch->n; i++) {
    if (index_pool_ordinal(scratch->pool[i]) >= view->n) return false;
    if (i > 0 && scratch->pool[i - 1] >> 1 >= scratch->pool[i] >> 1) return false;
  }
  return scratch->n <= scratch->beam && scratch->n_touched == 0;
}

static lode_status walk_begin(const index_graph_view *view, size_t beam, size_t effort, index_walk_scratch *scratch,
                              lode_error *err) {
  scratch->beam = beam < view->n ? beam : view->n;
  scratch->effort = effort;
  scratch->n = scratch->next = 0;
  if (!mem_grow(&scratch->links, &scratch->links_cap, view->width, sizeof *scratch->links)) return err_nomem(err);
  return walk_reserve(scratch, INDEX_WALK_MAX_SEEDS, err);
}

lode_status index_walk(const index_graph_view *view, const index_walk_query *query, size_t beam, size_t effort,
                       index_walk_scratch *scratch, lode_error *err) {
  lode_status st = LODE_OK;
  uint32_t ordinal;
  TRY_GOTO(walk_begin(view, beam, effort, scratch, err));
  TRY_GOTO(walk_seed(view, query, scratch, err));
  while (walk_take_best(view, scratch, &ordinal)) TRY_GOTO(walk_expand(view, query, ordinal, scratch, err));
done:
  walk_clear_visited(scratch);
  INVARIANT_CHECKED(st != LODE_OK || walk_pool_is_sound(view, scratch));
  return st;
}

/* ---- Among allowed rows ---- */

static inline bool walk_is_allowed(const uint64_t *allowed, uint32_t ordinal) {
  return allowed[ordinal / 64] >> (ordinal % 64) & 1;
}

/* Like walk_expand(), but rows that are not allowed only pass on their own neighbours, until about a row's worth is
 * found. */
static lode_status walk_expand_allowed(const index_graph_view *view, const index_walk_query *query,
                                       const uint64_t *allowed, uint32_t ordinal, index_walk_scratch *scratch,
                                       lode_error *err) {
  uint32_t fresh[INDEX_WALK_MAX_FRESH], passed[INDEX_STEP_ROWS];
  size_t n_fresh = 0, n_passed = 0;
  const uint32_t *links;
  TRY(walk_links_of(view, ordinal, scratch, &links, err));
  TRY(walk_reserve(scratch, (size_t)view->width + INDEX_WALK_MAX_FRESH, err));
  scratch->count.hops++;
  for (uint32_t i = 0;
       i < view->width && links[i] < view->n && n_fresh < INDEX_WALK_MAX_FRESH && n_passed < INDEX_STEP_ROWS; i++) {
    if (!walk_visit(scratch, links[i])) continue;
    if (walk_is_allowed(allowed, links[i]))
      fresh[n_fresh++] = links[i];
    else
      passed[n_passed++] = links[i];
  }
  for (size_t p = 0; p < n_passed && p < INDEX_WALK_LINKS_AHEAD; p++) walk_prefetch_links(view, passed[p]);
  for (size_t p = 0; p < n_passed && n_fresh < INDEX_WALK_MAX_FRESH; p++) {
    if (p + INDEX_WALK_LINKS_AHEAD < n_passed) walk_prefetch_links(view, passed[p + INDEX_WALK_LINKS_AHEAD]);
    TRY(walk_links_of(view, passed[p], scratch, &links, err));
    for (uint32_t i = 0; i < view->width && links[i] < view->n && n_fresh < INDEX_WALK_MAX_FRESH; i++) {
      if (walk_is_allowed(allowed, links[i]) && walk_visit(scratch, links[i])) fresh[n_fresh++] = links[i];
    }
  }
  TRY(walk_prefetch_rows(view, fresh, n_fresh, err));
  walk_score(view, query, fresh, n_fresh, scratch);
  return LODE_OK;
}

/* Scores the allowed and new ones of every `every`th row. */
static lode_status walk_score_allowed(const index_graph_view *view, const index_walk_query *query,
                                      const uint64_t *allowed, const uint32_t *rows, size_t n, size_t every,
                                      index_walk_scratch *scratch, lode_error *err) {
  size_t before = scratch->n_touched;
  TRY(walk_reserve(scratch, n, err));
  for (size_t i = 0; i < n; i += every) {
    if (rows[i] < view->n && walk_is_allowed(allowed, rows[i])) (void)walk_visit(scratch, rows[i]);
  }
  TRY(walk_prefetch_rows(view, scratch->touched + before, scratch->n_touched - before, err));
  walk_score(view, query, scratch->touched + before, scratch->n_touched - before, scratch);
  return LODE_OK;
}

lode_status index_walk_allowed(const index_graph_view *view, const index_walk_query *query,
                               const index_walk_filter *filter, index_walk_scratch *scratch, lode_error *err) {
  lode_status st = LODE_OK;
  uint32_t probes[INDEX_WALK_PROBES], ordinal;
  size_t n_probes;
  TRY(index_walk_scratch_init(scratch, view->n, INDEX_WALK_PROBES, err)); /* in case all other beams are narrower */
  TRY(index_walk(view, query, INDEX_WALK_PROBES, INDEX_WALK_PROBES, scratch, err));
  for (n_probes = 0; n_probes < scratch->n; n_probes++) probes[n_probes] = index_pool_ordinal(scratch->pool[n_probes]);
  TRY_GOTO(walk_begin(view, filter->beam, SIZE_MAX, scratch, err));
  TRY_GOTO(walk_score_allowed(view, query, filter->allowed, probes, n_probes, 1, scratch, err));
  uint64_t scored = scratch->count.distances;
  for (size_t i = 0; i < n_probes; i++)
    TRY_GOTO(walk_expand_allowed(view, query, filter->allowed, probes[i], scratch, err));
  bool distant = scratch->count.distances - scored < INDEX_WALK_FEW_ALLOWED;
  size_t every = distant ? 1 : filter->n_seeds / INDEX_WALK_NEAR_SEEDS + 1;
  if (distant && filter->distant_beam == 0) {
    scratch->n = 0;
    goto done;
  }
  if (distant) scratch->beam = filter->distant_beam < view->n ? filter->distant_beam : view->n;
  TRY_GOTO(walk_score_allowed(view, query, filter->allowed, filter->seeds, filter->n_seeds, every, scratch, err));
  while (walk_take_best(view, scratch, &ordinal))
    TRY_GOTO(walk_expand_allowed(view, query, filter->allowed, ordinal, scratch, err));
done:
  walk_clear_visited(scratch);
  INVARIANT_CHECKED(st != LODE_OK || walk_pool_is_sound(view, scratch));
  return st;
}
