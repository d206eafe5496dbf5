/* walk.c - see walk.h.
 *
 * Where the time goes is memory: a hop gathers the neighbours that were not seen yet, starts the loads of all their
 * rows, and only then computes. The visited set is a bitmap (n / 8 bytes: it stays in the second-level cache), cleared
 * by the list of what was touched. Whether a row was seen before nobody can foretell: that is found without a branch.
 */
#include "index/walk.h"

#include <math.h>

enum {
  SEEDS = 8,          /* entries that a walk begins with, */
  MOST_SEEDS = 64,    /* if it climbs */
  SHIFT = 8,          /* entries of the pool that make room together */
  STEP = 64,          /* rows whose keys are computed together */
  FRESH = 32,         /* allowed rows that an expansion among them brings at most */
  AHEAD = 8,          /* rows of links that are asked for before they are looked at */
  LINES_AHEAD = 14,   /* cache lines of a row that are asked for before the hardware sees the stream */
};

lode_status lode__walk_room_init(lode__walk_room *room, uint32_t n, size_t beam, lode_error *err) {
  size_t words = (size_t)n / 64 + 1;
  if (beam > n) beam = n;
  if (beam < 1) beam = 1;
  if (room->visited_words < words) {
    mem_free(room->visited);
    room->visited_words = 0;
    room->visited = mem_calloc(words, sizeof *room->visited);
    if (!room->visited) return err_nomem(err);
    room->visited_words = words;
  }
  if (!mem_grow(&room->pool, &room->pool_cap, beam + 1, sizeof *room->pool)) return err_nomem(err);
  return LODE_OK;
}

void lode__walk_room_release(lode__walk_room *room) {
  mem_free(room->pool);
  mem_free(room->visited);
  mem_free(room->touched);
  *room = (lode__walk_room){0};
}

/* Those of the rows, up to the first that is not below the limit, that were not seen before go to `touched`, where there is room
 * for n more; returns how many. */
static inline size_t visit_all(lode__walk_room *room, const uint32_t *ordinals, size_t n, uint32_t limit) {
  uint64_t *visited = room->visited;
  uint32_t *fresh = room->touched + room->n_touched;
  size_t n_fresh = 0;
  for (size_t i = 0; i < n && ordinals[i] < limit; i++) {
    uint32_t ordinal = ordinals[i];
    uint64_t before = visited[ordinal / 64], bit = (uint64_t)1 << (ordinal % 64);
    visited[ordinal / 64] = before | bit;
    fresh[n_fresh] = ordinal;
    n_fresh += !(before & bit);
  }
  room->n_touched += n_fresh;
  return n_fresh;
}

static inline bool visit(lode__walk_room *room, uint32_t ordinal) { return visit_all(room, &ordinal, 1, UINT32_MAX) == 1; }

static void forget(lode__walk_room *room) {
  for (size_t i = 0; i < room->n_touched; i++) room->visited[room->touched[i] / 64] = 0;
  room->n_touched = 0;
}

static inline float key_of(uint64_t entry) { return lode__code_key_of((uint32_t)(entry >> 32)); }

/* Looks for its place from the end: most that come are not much better than the worst. */
static inline void offer(lode__walk_room *room, uint64_t entry) {
  uint64_t *pool = room->pool;
  size_t at = room->n;
  if (at < room->beam) room->n++;
  else if (entry >= pool[--at]) return;
  for (; at >= SHIFT && pool[at - SHIFT] > entry; at -= SHIFT) {
    memmove(pool + at - SHIFT + 1, pool + at - SHIFT, SHIFT * sizeof *pool);
  }
  for (; at > 0 && pool[at - 1] > entry; at--) pool[at] = pool[at - 1];
  pool[at] = entry;
  if (at < room->next) room->next = at;
}

static inline const unsigned char *row_at(const lode__graph_view *view, uint32_t ordinal) {
  return view->rows->data + (size_t)ordinal * view->stride;
}

static inline lode_status need_row(const lode__graph_view *view, uint32_t ordinal, lode_error *err) {
  return lode__paged_need(view->rows, (uint64_t)ordinal * view->stride, view->stride, err);
}

/* The row of links, there to be read. */
static inline lode_status links_of(const lode__graph_view *view, uint32_t ordinal, const uint32_t **links,
                                   lode_error *err) {
  size_t bytes = view->width * sizeof(uint32_t);
  TRY(lode__paged_need(view->links, (uint64_t)ordinal * bytes, bytes, err));
  *links = (const uint32_t *)(const void *)(view->links->data + (size_t)ordinal * bytes);
  return LODE_OK;
}

static inline void fetch_row(const unsigned char *row, size_t stride) {
  const unsigned char *p = (const unsigned char *)((uintptr_t)row & ~(uintptr_t)63), *end = row + stride;
  for (unsigned i = 0; i < LINES_AHEAD && p < end; i++, p += 64) {
    __builtin_prefetch(p);
    atomic_signal_fence(memory_order_seq_cst); /* gcc 12 is known to drop loops of nothing but prefetches */
  }
}

static inline uint64_t entry_of(float key, uint32_t ordinal) { return (uint64_t)lode__code_order(key) << 32 | (uint64_t)ordinal << 1; }

/* Keys of at most STEP rows. */
static inline void keys_of(const lode__graph_view *view, const lode__walk_query *query, const uint32_t *list, size_t n,
                           float *keys) {
  const unsigned char *rows[STEP];
  if (n == 0) return;
  for (size_t j = 0; j < n; j++) rows[j] = row_at(view, list[j]);
  lode__code_keys(&query->code, rows, n, keys);
  for (size_t j = 0; view->extra && j < n; j++) keys[j] -= 2 * query->extra * view->extra[list[j]];
}

/* Keys of the rows in list, offered to the pool. */
static void score(const lode__graph_view *view, const lode__walk_query *query, const uint32_t *list, size_t n,
                  lode__walk_room *room) {
  float keys[STEP], worst = room->n < room->beam ? INFINITY : key_of(room->pool[room->n - 1]);
  for (size_t i = 0; i < n; i += STEP) {
    size_t m = n - i < STEP ? n - i : STEP;
    keys_of(view, query, list + i, m, keys);
    for (size_t j = 0; j < m; j++) {
      if (keys[j] > worst) continue; /* most are */
      offer(room, entry_of(keys[j], list[i + j]));
      if (room->n == room->beam) worst = key_of(room->pool[room->n - 1]);
    }
  }
  room->count.distances += n;
}

static lode_status room_for(lode__walk_room *room, size_t more, lode_error *err) {
  size_t need = room->n_touched + more;
  if (need <= room->touched_cap || mem_grow(&room->touched, &room->touched_cap, need, sizeof *room->touched)) {
    return LODE_OK;
  }
  return err_nomem(err);
}

/* Starts the loads of the rows. */
static lode_status fetch_rows(const lode__graph_view *view, const uint32_t *list, size_t n, lode_error *err) {
  for (size_t i = 0; i < n && !lode__paged_whole(view->rows); i++) TRY(need_row(view, list[i], err));
  for (size_t i = 0; i < n; i++) fetch_row(row_at(view, list[i]), view->stride);
  return LODE_OK;
}

/* The neighbours of a row that were not seen yet, on their way to the cache. */
static lode_status gather(const lode__graph_view *view, uint32_t ordinal, lode__walk_room *room, const uint32_t **fresh,
                          size_t *n, lode_error *err) {
  const uint32_t *links;
  TRY(links_of(view, ordinal, &links, err));
  TRY(room_for(room, view->width, err));
  room->count.hops++;
  *n = visit_all(room, links, view->width, view->n);
  *fresh = room->touched + room->n_touched - *n;
  return fetch_rows(view, *fresh, *n, err);
}

static lode_status expand(const lode__graph_view *view, const lode__walk_query *query, uint32_t ordinal,
                          lode__walk_room *room, lode_error *err) {
  const uint32_t *fresh;
  size_t n;
  TRY(gather(view, ordinal, room, &fresh, &n, err));
  score(view, query, fresh, n, room);
  return LODE_OK;
}

/* From neighbour to better neighbour, until there is none, whether or not the pool has better ones. */
static lode_status climb(const lode__graph_view *view, const lode__walk_query *query, uint64_t from, lode__walk_room *room,
                         lode_error *err) {
  float keys[STEP];
  for (uint64_t best = from;; from = best) {
    const uint32_t *fresh;
    size_t n;
    TRY(gather(view, lode__pool_ordinal(from), room, &fresh, &n, err));
    for (size_t i = 0; i < n; i += STEP) {
      size_t m = n - i < STEP ? n - i : STEP;
      keys_of(view, query, fresh + i, m, keys);
      for (size_t j = 0; j < m; j++) {
        uint64_t entry = entry_of(keys[j], fresh[i + j]);
        offer(room, entry);
        if (entry < best) best = entry;
      }
    }
    room->count.distances += n;
    if (best == from) return LODE_OK;
  }
}

/* Begins with the nearest few of the entries. */
static lode_status seed(const lode__graph_view *view, const lode__walk_query *query, lode__walk_room *room,
                        lode_error *err) {
  size_t n = view->n_entries, climbs = view->climbs < MOST_SEEDS ? view->climbs : MOST_SEEDS;
  size_t wanted = climbs > SEEDS ? climbs : SEEDS, n_best = n < wanted ? n : wanted;
  uint64_t best[MOST_SEEDS];
  uint32_t list[STEP];
  float keys[STEP], worst = INFINITY;
  for (size_t i = 0; i < wanted; i++) best[i] = UINT64_MAX;
  for (size_t i = 0; i < n; i += STEP) {
    size_t m = n - i < STEP ? n - i : STEP;
    for (size_t j = 0; j < m; j++) list[j] = view->entries ? view->entries[i + j] : (uint32_t)(i + j);
    for (size_t j = 0; j < m && !lode__paged_whole(view->rows); j++) TRY(need_row(view, list[j], err));
    keys_of(view, query, list, m, keys);
    for (size_t j = 0; j < m; j++) {
      if (keys[j] > worst) continue;
      uint64_t entry = entry_of(keys[j], list[j]);
      if (entry >= best[wanted - 1]) continue;
      size_t at = wanted - 1;
      for (; at > 0 && best[at - 1] > entry; at--) best[at] = best[at - 1];
      best[at] = entry;
      if (best[wanted - 1] != UINT64_MAX) worst = key_of(best[wanted - 1]);
    }
  }
  room->count.distances += n;
  for (size_t i = 0; i < n_best; i++) {
    visit(room, lode__pool_ordinal(best[i]));
    offer(room, best[i]);
  }
  for (size_t i = 0; i < n_best && i < climbs; i++) TRY(climb(view, query, best[i], room, err));
  return LODE_OK;
}

/* The best of the pool that is not expanded yet is marked and given; false when there is none. Its links and those of
 * the next are on their way. */
static inline bool take(const lode__graph_view *view, lode__walk_room *room, uint32_t *ordinal) {
  size_t end = room->n < room->effort ? room->n : room->effort;
  while (room->next < end && (room->pool[room->next] & 1)) room->next++;
  if (room->next >= end) return false;
  *ordinal = lode__pool_ordinal(room->pool[room->next]);
  room->pool[room->next++] |= 1;
  size_t bytes = view->width * sizeof(uint32_t);
  if (room->next < room->n) {
    fetch_row(view->links->data + (size_t)lode__pool_ordinal(room->pool[room->next]) * bytes, bytes);
  }
  return true;
}

static lode_status begin(const lode__graph_view *view, size_t beam, size_t effort, lode__walk_room *room,
                         lode_error *err) {
  room->beam = beam < view->n ? beam : view->n;
  room->effort = effort;
  room->n = room->next = 0;
  return room_for(room, MOST_SEEDS, err);
}

lode_status lode__walk(const lode__graph_view *view, const lode__walk_query *query, size_t beam, size_t effort,
                       lode__walk_room *room, lode_error *err) {
  lode_status st = LODE_OK;
  uint32_t ordinal;
  TRY_GOTO(begin(view, beam, effort, room, err));
  TRY_GOTO(seed(view, query, room, err));
  while (take(view, room, &ordinal)) TRY_GOTO(expand(view, query, ordinal, room, err));
done:
  forget(room);
  return st;
}

/* ---- Among allowed rows ---- */

static inline bool has(const uint64_t *allowed, uint32_t ordinal) {
  return allowed[ordinal / 64] >> (ordinal % 64) & 1;
}

/* Like expand; but rows that are not allowed only pass on their own neighbours, until about a row's worth is found. */
static lode_status expand_allowed(const lode__graph_view *view, const lode__walk_query *query, const uint64_t *allowed,
                                  uint32_t ordinal, lode__walk_room *room, lode_error *err) {
  uint32_t fresh[FRESH], passed[STEP];
  size_t n_fresh = 0, n_passed = 0;
  const uint32_t *links;
  TRY(links_of(view, ordinal, &links, err));
  TRY(room_for(room, (size_t)view->width + FRESH, err));
  room->count.hops++;
  for (uint32_t i = 0; i < view->width && links[i] < view->n && n_fresh < FRESH && n_passed < STEP; i++) {
    if (!visit(room, links[i])) continue;
    if (has(allowed, links[i])) fresh[n_fresh++] = links[i];
    else passed[n_passed++] = links[i];
  }
  size_t bytes = view->width * sizeof(uint32_t);
  for (size_t p = 0; p < n_passed && p < AHEAD; p++) fetch_row(view->links->data + (size_t)passed[p] * bytes, bytes);
  for (size_t p = 0; p < n_passed && n_fresh < FRESH; p++) {
    if (p + AHEAD < n_passed) fetch_row(view->links->data + (size_t)passed[p + AHEAD] * bytes, bytes);
    TRY(links_of(view, passed[p], &links, err));
    for (uint32_t i = 0; i < view->width && links[i] < view->n && n_fresh < FRESH; i++) {
      if (has(allowed, links[i]) && visit(room, links[i])) fresh[n_fresh++] = links[i];
    }
  }
  TRY(fetch_rows(view, fresh, n_fresh, err));
  score(view, query, fresh, n_fresh, room);
  return LODE_OK;
}

enum { SCOUTS = 16, FEW = 4 * SCOUTS, NEAR_SEEDS = 32 };

/* Scores those of the rows that are allowed and new: every `every`th of them. */
static lode_status score_allowed(const lode__graph_view *view, const lode__walk_query *query, const uint64_t *allowed,
                                 const uint32_t *rows, size_t n, size_t every, lode__walk_room *room,
                                 lode_error *err) {
  size_t before = room->n_touched;
  TRY(room_for(room, n, err));
  for (size_t i = 0; i < n; i += every) {
    if (rows[i] < view->n && has(allowed, rows[i])) (void)visit(room, rows[i]);
  }
  TRY(fetch_rows(view, room->touched + before, room->n_touched - before, err));
  score(view, query, room->touched + before, room->n_touched - before, room);
  return LODE_OK;
}

lode_status lode__walk_allowed(const lode__graph_view *view, const lode__walk_query *query,
                               const lode__walk_filter *filter, lode__walk_room *room, lode_error *err) {
  lode_status st = LODE_OK;
  uint32_t scouts[SCOUTS], ordinal;
  size_t n_scouts;
  TRY(lode__walk_room_init(room, view->n, SCOUTS, err)); /* where all beams are narrower */
  TRY(lode__walk(view, query, SCOUTS, SCOUTS, room, err));
  for (n_scouts = 0; n_scouts < room->n; n_scouts++) scouts[n_scouts] = lode__pool_ordinal(room->pool[n_scouts]);
  TRY_GOTO(begin(view, filter->beam, SIZE_MAX, room, err));
  TRY_GOTO(score_allowed(view, query, filter->allowed, scouts, n_scouts, 1, room, err));
  uint64_t scored = room->count.distances;
  for (size_t i = 0; i < n_scouts; i++) TRY_GOTO(expand_allowed(view, query, filter->allowed, scouts[i], room, err));
  bool far = room->count.distances - scored < FEW;
  size_t every = far ? 1 : filter->n_seeds / NEAR_SEEDS + 1;
  if (far && filter->far_beam == 0) {
    room->n = 0;
    goto done;
  }
  if (far) room->beam = filter->far_beam < view->n ? filter->far_beam : view->n;
  TRY_GOTO(score_allowed(view, query, filter->allowed, filter->seeds, filter->n_seeds, every, room, err));
  while (take(view, room, &ordinal)) TRY_GOTO(expand_allowed(view, query, filter->allowed, ordinal, room, err));
done:
  forget(room);
  return st;
}
