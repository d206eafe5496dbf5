/* SPDX-License-Identifier: Apache-2.0 */
/* segment_search.c - the nearest vectors in the segments of a snapshot, and the filter cache.
 *
 * For each segment, a filter becomes a bitmap of slots: those whose record matches and whose vector is live. The list
 * of matching records and these bitmaps stay with the snapshot, so that using a filter again costs nothing until
 * something is written; at its second use, its matches get a graph of their own (index/filtered.h). A few are kept,
 * within an eighth of the memory budget. They are only proposals: the caller evaluates the filter on every record that
 * it returns.
 *
 * Threads: `filter_cache` of a snapshot is guarded by its filter_cache_lock, which is held while bitmaps and graphs are
 * made; an entry that was returned lives as long as the snapshot. Scratch memory of searches is kept by the store,
 * under its lock.
 */
#include "engine/engine.h"

#include <math.h>

enum {
  FCACHE_MAX_LISTS = 16,       /* entries with a list */
  FCACHE_MAX_NOTES = 256,      /* entries with statistics only */
  FCACHE_GRAPH_AFTER_USES = 1, /* uses of a filter before it gets a graph */
  FCACHE_ALL_PERCENT = 90,     /* a filter that matches this share of a segment gets no graph */
};

struct engine_filter_entry {
  engine_filter_entry *next;
  char *filter;
  size_t len;
  engine_rids rids;
  struct fcache_segment {
    engine_slot_set *slots; /* NULL: not made yet */
    index_filtered *match;  /* NULL: no graph */
    unsigned uses;
  } * segs; /* of each segment */
  size_t n_segs;
  uint64_t bytes;
  bool listed; /* has a list; else only `stats` is set */
  engine_filter_stats stats;
};

/* ---- Filters ---- */

void engine_filter_cache_free(engine_filter_entry *entries) {
  while (entries) {
    engine_filter_entry *m = entries;
    entries = m->next;
    for (size_t i = 0; i < m->n_segs; i++) {
      engine_slot_set_release(m->segs[i].slots);
      index_filtered_free(m->segs[i].match);
    }
    mem_free(m->segs);
    mem_free(m->filter);
    mem_free(m->rids.v);
    mem_free(m);
  }
}

static engine_filter_entry *fcache_find(engine_snapshot *v, const char *filter, size_t len, bool listed) {
  engine_filter_entry *m = v->filter_cache;
  while (m && !(m->listed == listed && m->len == len && memcmp(m->filter, filter, len) == 0)) m = m->next;
  return m;
}

const engine_rids *engine_filter_cache_find(engine_snapshot *v, const char *filter, size_t len) {
  pthread_mutex_lock(&v->filter_cache_lock);
  engine_filter_entry *m = fcache_find(v, filter, len, true);
  pthread_mutex_unlock(&v->filter_cache_lock);
  return m ? &m->rids : NULL;
}

engine_filter_stats engine_filter_cache_stats(engine_snapshot *v, const char *filter, size_t len) {
  pthread_mutex_lock(&v->filter_cache_lock);
  const engine_filter_entry *m = fcache_find(v, filter, len, false);
  engine_filter_stats stats = m ? m->stats : (engine_filter_stats){0};
  pthread_mutex_unlock(&v->filter_cache_lock);
  return stats;
}

/* Entries may be in use: if there is no room, a new one is not kept, or gets no graph. */
static bool fcache_fits_budget(const engine_snapshot *v, uint64_t budget, uint64_t more) {
  uint64_t bytes = more;
  for (const engine_filter_entry *m = v->filter_cache; m; m = m->next) bytes += m->bytes;
  return bytes <= budget;
}

/* Lists and statistics have limits of their own: many filters that are used once do not displace those used again. */
static bool fcache_has_slot(const engine_snapshot *v, bool listed) {
  size_t n = 0;
  for (const engine_filter_entry *m = v->filter_cache; m; m = m->next) n += m->listed == listed;
  return n < (listed ? FCACHE_MAX_LISTS : FCACHE_MAX_NOTES);
}

static uint64_t fcache_budget(const lode_store *store) { return store->options->memory_bytes / 8; }

static engine_filter_entry *fcache_entry_new(const engine_snapshot *v, const char *filter, size_t len) {
  engine_filter_entry *m = mem_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->filter = mem_alloc(len + 1);
  m->segs = mem_calloc(v->n_segs, sizeof *m->segs);
  if (!m->filter || !m->segs) {
    engine_filter_cache_free(m);
    return NULL;
  }
  memcpy(m->filter, filter, len);
  m->len = len;
  m->n_segs = v->n_segs;
  m->bytes = sizeof *m + len;
  return m;
}

/* Under the lock: the existing entry, or m if there is room for it, or NULL. */
static engine_filter_entry *fcache_insert(const lode_store *store, engine_snapshot *v, engine_filter_entry *m) {
  engine_filter_entry *old = fcache_find(v, m->filter, m->len, m->listed);
  if (old) return old;
  if (!fcache_has_slot(v, m->listed) || !fcache_fits_budget(v, fcache_budget(store), m->bytes)) return NULL;
  m->next = v->filter_cache;
  return v->filter_cache = m;
}

const engine_rids *engine_filter_cache_add(const lode_store *store, engine_snapshot *v, const char *filter, size_t len,
                                           engine_rids *rids) {
  engine_filter_entry *m = fcache_entry_new(v, filter, len);
  if (!m) return NULL;
  m->listed = true;
  m->bytes += rids->n * sizeof *rids->v;
  for (size_t i = 0; i < v->n_segs; i++) m->bytes += v->segs[i].seg->row.rows / 8;
  pthread_mutex_lock(&v->filter_cache_lock);
  engine_filter_entry *kept = fcache_insert(store, v, m);
  if (kept == m) {
    m->rids = *rids;
    *rids = (engine_rids){0};
  }
  pthread_mutex_unlock(&v->filter_cache_lock);
  if (kept != m) engine_filter_cache_free(m);
  return kept ? &kept->rids : NULL;
}

void engine_filter_cache_note(const lode_store *store, engine_snapshot *v, const char *filter, size_t len,
                              engine_filter_stats more) {
  engine_filter_entry *m = fcache_entry_new(v, filter, len);
  if (!m) return;
  pthread_mutex_lock(&v->filter_cache_lock);
  engine_filter_entry *kept = fcache_insert(store, v, m);
  if (kept) {
    kept->stats.evaluated += more.evaluated;
    kept->stats.matched += more.matched;
    kept->stats.scans |= more.scans;
  }
  pthread_mutex_unlock(&v->filter_cache_lock);
  if (kept != m) engine_filter_cache_free(m);
}

static lode_status fcache_make_bitmap(const engine_segment_view *c, const engine_rids *rids, engine_slot_set **out,
                                      lode_error *err) {
  size_t found = 0;
  index_segment_record *keys = mem_calloc(rids->n, sizeof *keys);
  engine_slot_set *slots = engine_slot_set_new(c->seg->row.rows, false);
  lode_status st = keys && slots ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < rids->n && st == LODE_OK; i++) keys[i].key = rids->v[i];
  if (st == LODE_OK) st = index_segment_mark(c->seg->segment, keys, rids->n, slots->bits, &found, err);
  if (st == LODE_OK) {
    slots->n = 0;
    for (size_t w = 0; w < slots->words; w++) {
      if (c->live) slots->bits[w] &= c->live->bits[w];
      slots->n += (size_t)__builtin_popcountll(slots->bits[w]);
    }
    *out = slots;
    slots = NULL;
  }
  engine_slot_set_release(slots);
  mem_free(keys);
  return st;
}

/* Builds the filter's graph for segment i if it is worth it. */
static void fcache_make_graph(const lode_store *store, engine_snapshot *v, engine_filter_entry *m, size_t i) {
  struct fcache_segment *s = &m->segs[i];
  index_segment *segment = v->segs[i].seg->segment;
  lode_error ignored;
  if (s->match || s->uses++ < FCACHE_GRAPH_AFTER_USES || s->slots->n == 0) return;
  if (segment->info.kind != INDEX_GRAPH || s->slots->n * 100 >= (size_t)segment->info.n * FCACHE_ALL_PERCENT) return;
  uint64_t bytes = index_filtered_bytes(segment, (uint32_t)s->slots->n);
  if (!fcache_fits_budget(v, fcache_budget(store), bytes)) return;
  /* if it fails, the search itself will report why */
  if (index_filtered_new(segment, s->slots->bits, (uint32_t)s->slots->n, &s->match, &ignored) == LODE_OK)
    m->bytes += bytes;
}

typedef struct segsearch_allowed {
  engine_slot_set *slots; /* NULL: all; the caller releases it */
  index_filtered *match;  /* owned by the snapshot; NULL: none */
} segsearch_allowed;

/* The slots of a segment that may be returned. */
static lode_status segsearch_find_allowed(const engine_nearest *near, engine_snapshot *v, size_t i,
                                          segsearch_allowed *out, lode_error *err) {
  const engine_segment_view *c = &v->segs[i];
  lode_status st = LODE_OK;
  *out = (segsearch_allowed){0};
  if (!near->only) {
    out->slots = c->live;
    if (c->live) atomic_fetch_add_explicit(&c->live->refs, 1, memory_order_relaxed);
    return LODE_OK;
  }
  if (!near->filter) return fcache_make_bitmap(c, near->only, &out->slots, err);
  pthread_mutex_lock(&v->filter_cache_lock);
  engine_filter_entry *m = fcache_find(v, near->filter, near->filter_len, true);
  if (m && !m->segs[i].slots) st = fcache_make_bitmap(c, &m->rids, &m->segs[i].slots, err);
  if (m && st == LODE_OK) {
    fcache_make_graph(near->reader->handle->store, v, m, i);
    *out = (segsearch_allowed){m->segs[i].slots, m->segs[i].match};
    atomic_fetch_add_explicit(&out->slots->refs, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&v->filter_cache_lock);
  return m ? st : fcache_make_bitmap(c, near->only, &out->slots, err);
}

/* ---- Scratch memory ---- */

static index_search_scratch *scratch_take(lode_store *store) {
  index_search_scratch *scratch = NULL;
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < ENGINE_SCRATCH_SLOTS && !scratch; i++) {
    scratch = store->scratch[i];
    store->scratch[i] = NULL;
  }
  pthread_mutex_unlock(&store->lock);
  return scratch ? scratch : mem_calloc(1, sizeof *scratch);
}

static void scratch_give(lode_store *store, index_search_scratch *scratch) {
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
  index_hit *hits; /* near->k elements */
} segsearch_ctx;

/* Excess pages are evicted after each query: a group of queries may touch all pages. */
static lode_status segsearch_one(engine_nearest *near, const segsearch_ctx *ctx, size_t seg,
                                 const segsearch_allowed *allowed, lode_error *err) {
  index_segment *segment = ctx->v->segs[seg].seg->segment;
  size_t n = 0;
  index_search_request request = {.k = near->k,
                                  .beam = near->effort,
                                  .recall = near->target_recall,
                                  .allowed = allowed->slots ? allowed->slots->bits : NULL,
                                  .match = allowed->match};
  for (size_t q = 0; q < near->n; q++) {
    TRY(engine_reader_yield_if_old(near->reader, err));
    request.query = near->queries + q * near->dim;
    TRY(index_search(segment, &request, ctx->scratch, ctx->hits, &n, err));
    TRY(segsearch_push_hits(&near->best[q], ctx->hits, n, err));
    if (n == near->k) near->best[q].full = true; /* there may be more */
    engine_snapshot_trim(near->reader->handle->store, ctx->v);
  }
  return LODE_OK;
}

lode_status engine_segments_search(engine_nearest *near, engine_snapshot *v, bool *damaged, lode_error *err) {
  lode_store *store = near->reader->handle->store;
  lode_status st = LODE_OK;
  lode_error why;
  segsearch_ctx ctx = {.v = v, .scratch = scratch_take(store), .hits = mem_calloc(near->k, sizeof *ctx.hits)};
  if (!ctx.scratch || !ctx.hits) st = err_nomem(err);
  for (size_t i = 0; i < v->n_segs && st == LODE_OK; i++) {
    segsearch_allowed allowed;
    if (v->segs[i].seg->segment->info.kind == INDEX_FLAT) continue; /* nearest.c scans them */
    st = segsearch_find_allowed(near, v, i, &allowed, &why);
    if (st == LODE_OK && (!allowed.slots || allowed.slots->n)) st = segsearch_one(near, &ctx, i, &allowed, &why);
    engine_slot_set_release(allowed.slots);
    if (st == LODE_OK) continue;
    if (st == LODE_NOMEM || near->reader->gave_way) { /* not the file's fault */
      st = err_set(err, st, "%s", why.text);
      break;
    }
    engine_segment_suspect(store, v->segs[i].seg->row.id, st, why.text);
    *damaged = true;
    st = LODE_OK;
    break;
  }
  if (ctx.scratch) scratch_give(store, ctx.scratch);
  mem_free(ctx.hits);
  return st;
}

void engine_scratch_free(lode_store *store) {
  for (size_t i = 0; i < ENGINE_SCRATCH_SLOTS; i++) {
    if (!store->scratch[i]) continue;
    index_search_scratch_release(store->scratch[i]);
    mem_free(store->scratch[i]);
    store->scratch[i] = NULL;
  }
}
