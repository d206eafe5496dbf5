/* SPDX-License-Identifier: Apache-2.0 */
/* segment_search.c - the nearest vectors in the segments of a snapshot, by their codes.
 *
 * Segments without a graph, and all of a small collection, are searched exactly. Then all rows at the distance of the
 * last are found too, because which of them belong to the result is decided by their ids.
 *
 * Threads: scratch memory of searches is kept by the store, under its lock.
 */
#include "engine/filter_cache.h"
#include "engine/nearest.h"
#include "index/index_search.h"

#include <math.h>

enum { SEGSEARCH_TIES_GROWTH = 4 }; /* this many times as many hits are asked for while the last are equally far */

/* The slots of a segment that may be returned; none: all. The caller releases them. */
static lode_status segsearch_find_allowed(const engine_nearest *near, engine_snapshot *v, size_t i,
                                          engine_filter_slots *out, lode_error *err) {
  const engine_segment_view *c = &v->segs[i];
  *out = (engine_filter_slots){0};
  if (!near->only) {
    out->slots = segments_slots_ref(c->live);
    return LODE_OK;
  }
  if (near->filter.data) TRY(engine_filter_cache_slots(near->reader->handle->store, v, i, near->filter, out, err));
  return out->slots ? LODE_OK : engine_filter_slots_make(c, near->only, &out->slots, err);
}

/* ---- Scratch memory ---- */

static index_search_scratch *scratch_take(engine_store *store) {
  index_search_scratch *scratch = NULL;
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < ENGINE_SCRATCH_SLOTS && !scratch; i++) {
    scratch = store->scratch[i];
    store->scratch[i] = NULL;
  }
  pthread_mutex_unlock(&store->lock);
  return scratch ? scratch : mem_calloc(1, sizeof *scratch);
}

static void scratch_give(engine_store *store, index_search_scratch *scratch) {
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < ENGINE_SCRATCH_SLOTS && scratch; i++) {
    if (store->scratch[i]) continue;
    store->scratch[i] = scratch;
    scratch = NULL;
  }
  pthread_mutex_unlock(&store->lock);
  if (!scratch) return;
  index_search_scratch_release(scratch);
  mem_free(scratch);
}

/* ---- Vectors that have moved ---- */

/* A reader that was between two transactions is so afterwards: what was added meanwhile is still to be looked at. */
lode_status engine_nearest_fetch(void *ctx, int64_t rid, uint64_t vid, float *vector, bool *found, lode_error *err) {
  engine_nearest *near = ctx;
  bool paused = !near->reader->tx;
  (void)rid;
  lode_status st = engine_reader_begin(near->reader, err);
  if (st == LODE_OK) st = store_vec_get(near->reader->tx, (int64_t)vid, vector, near->dim, found, err);
  if (paused) engine_reader_pause(near->reader);
  if (st != LODE_OK && near->fetched == LODE_OK) near->fetched = st;
  return st;
}

/* ---- The search ---- */

static lode_status segsearch_push_hits(engine_best *best, const index_hit *hits, size_t n, lode_error *err) {
  for (size_t i = 0; i < n; i++) {
    float d = isnan(hits[i].distance) ? INFINITY : hits[i].distance;
    if (!kernel_topk_wants(&best->top, d)) continue;
    if (!engine_best_push(best, d, hits[i].record.key, (int64_t)hits[i].record.cursor)) return err_nomem(err);
  }
  return LODE_OK;
}

typedef struct segsearch_ctx {
  engine_snapshot *v;
  index_search_scratch *scratch;
  index_hit *hits;
  size_t cap;
  kernel_neighbour *least;
  size_t cap_least;
} segsearch_ctx;

/* If k candidates were found elsewhere, in other segments, what is farther than all of these is not wanted. */
static lode_status segsearch_set_bound(segsearch_ctx *ctx, const engine_best *best, size_t k,
                                       index_search_request *request, lode_error *err) {
  request->bounded = k > 0 && best->top.n >= k;
  if (!request->bounded) return LODE_OK;
  if (!mem_grow(&ctx->least, &ctx->cap_least, k, sizeof *ctx->least)) return err_nomem(err);
  kernel_topk least = {.heap = ctx->least, .k = k};
  for (size_t i = 0; i < best->top.n; i++)
    if (kernel_topk_wants(&least, best->top.heap[i].distance))
      kernel_topk_push(&least, best->top.heap[i].distance, (int64_t)i, 0);
  request->bound = kernel_topk_bound(&least);
  return LODE_OK;
}

/* A segment shows its k nearest, and what is not farther than the bound: beyond that it may have more, which are nearer
 * than candidates from elsewhere. */
static void segsearch_limit_reach(engine_best *best, const index_hit *hits, size_t n, size_t k,
                                  const index_search_request *request) {
  if (n >= k && hits[k - 1].distance < best->reach) best->reach = hits[k - 1].distance;
  if (request->bounded && request->bound < best->reach) best->reach = request->bound;
  if (n >= k || request->bounded) best->full = true;
}

/* The hits of one query in one segment. */
static lode_status segsearch_query(segsearch_ctx *ctx, index_segment *segment, index_search_request *request, size_t k,
                                   size_t *n, lode_error *err) {
  for (request->k = k + request->exact;; request->k *= SEGSEARCH_TIES_GROWTH) {
    if (!mem_grow(&ctx->hits, &ctx->cap, request->k, sizeof *ctx->hits)) return err_nomem(err);
    TRY(index_search(segment, request, ctx->scratch, ctx->hits, n, err));
    if (!request->exact || *n < request->k || ctx->hits[*n - 1].distance > ctx->hits[k - 1].distance) return LODE_OK;
  }
}

/* Excess pages are evicted after each query: a group of queries may touch all pages. */
static lode_status segsearch_one(engine_nearest *near, segsearch_ctx *ctx, size_t seg,
                                 const engine_filter_slots *allowed, lode_error *err) {
  index_segment *segment = ctx->v->segs[seg].seg->segment;
  size_t n = 0, k = near->plan->per_segment;
  bool exact = near->plan->vectors == ENGINE_VECTORS_CODES || segment->info.kind == INDEX_FLAT;
  index_search_request request = {.beam = near->effort,
                                  .recall = near->target_recall,
                                  .exact = exact,
                                  .allowed = allowed->slots ? allowed->slots->bits : NULL,
                                  .n_allowed = allowed->slots ? (uint32_t)allowed->slots->n : 0,
                                  .match = allowed->match,
                                  .fetch = {engine_nearest_fetch, near}};
  near->trace->segments++;
  for (size_t q = 0; q < near->n; q++) {
    TRY(engine_reader_yield_if_old(near->reader, err));
    engine_best *best = &near->best[q];
    request.query = near->queries + q * near->dim;
    TRY(segsearch_set_bound(ctx, best, k, &request, err));
    TRY(segsearch_query(ctx, segment, &request, k, &n, err));
    TRY(segsearch_push_hits(best, ctx->hits, n, err));
    segsearch_limit_reach(best, ctx->hits, n, k, &request);
    engine_snapshot_trim(near->reader->handle->store, ctx->v);
  }
  segments_note_moved(ctx->v->segs[seg].seg, (uint64_t)segment->info.n);
  return LODE_OK;
}

/* Moves the figures of the searches to the trace. */
static void segsearch_count(index_search_stats *to, index_search_stats *from) {
  to->distances += from->distances;
  to->hops += from->hops;
  to->vectors += from->vectors;
  to->vectors_read += from->vectors_read;
  to->ways |= from->ways;
  *from = (index_search_stats){0};
}

lode_status engine_segments_search(engine_nearest *near, engine_snapshot *v, bool *damaged, lode_error *err) {
  engine_store *store = near->reader->handle->store;
  lode_status st = LODE_OK;
  lode_error why;
  segsearch_ctx ctx = {.v = v, .scratch = scratch_take(store)};
  if (!ctx.scratch) st = err_nomem(err);
  for (size_t i = 0; i < v->n_segs && st == LODE_OK; i++) {
    engine_filter_slots allowed;
    st = segsearch_find_allowed(near, v, i, &allowed, &why);
    if (st == LODE_OK && (!allowed.slots || allowed.slots->n)) st = segsearch_one(near, &ctx, i, &allowed, &why);
    segments_slots_release(allowed.slots);
    if (st == LODE_OK) continue;
    if (st == LODE_NOMEM || near->reader->gave_way || near->fetched != LODE_OK) { /* not the file's fault */
      st = err_set(err, st, "%s", why.text);
      break;
    }
    segments_suspect(&store->segments, v->segs[i].seg->row.id, st, why.text);
    *damaged = true;
    st = LODE_OK;
    break;
  }
  if (ctx.scratch) {
    segsearch_count(&near->trace->index, &ctx.scratch->stats);
    scratch_give(store, ctx.scratch);
  }
  mem_free(ctx.hits);
  mem_free(ctx.least);
  return st;
}

void engine_scratch_free(engine_store *store) {
  for (size_t i = 0; i < ENGINE_SCRATCH_SLOTS; i++) {
    if (!store->scratch[i]) continue;
    index_search_scratch_release(store->scratch[i]);
    mem_free(store->scratch[i]);
    store->scratch[i] = NULL;
  }
}
