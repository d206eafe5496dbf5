/* SPDX-License-Identifier: Apache-2.0 */
/* filter_cache.c - matches of filters that were used, kept with a snapshot of vectors.
 *
 * For each segment, a filter becomes a bitmap of slots: those whose record matches and whose vector is live. The list
 * of matching records and these bitmaps stay with the snapshot, so that using a filter again costs nothing until
 * something is written; at its second use, its matches get a graph of their own (index/filtered.h). A few are kept,
 * within an eighth of the memory budget. They are only proposals: the caller evaluates the filter on every record that
 * it returns.
 *
 * Threads: filter_cache_lock of a snapshot guards its list of entries, and of each entry `segs`, `bytes` and `stats`.
 * It is held for lookups and changes of pointers only, never while a bitmap or a graph is made:
 *   - A bitmap is made by whoever misses it; of several that were made at the same time, the first stays.
 *   - A graph is made by one thread, which sets `making_graph` before. Others search without it meanwhile.
 * An entry lives as long as the snapshot, and so do its filter, its list, and bitmaps and graphs once they are set.
 */
#include "engine/filter_cache.h"

#include "index/filtered.h"

enum {
  FCACHE_MAX_LISTS = 16,       /* entries with a list */
  FCACHE_MAX_NOTES = 256,      /* entries with statistics only */
  FCACHE_GRAPH_AFTER_USES = 1, /* uses of a filter before it gets a graph */
  FCACHE_ALL_PERCENT = 90,     /* a filter that matches this share of a segment gets no graph */
};

#ifdef LODE_CHECKED
void (*_Atomic engine_filter_graph_hook)(void);
static void fcache_call_hook(void) {
  void (*hook)(void) = engine_filter_graph_hook;
  if (hook) hook();
}
#define FCACHE_TEST_HOOK() fcache_call_hook()
#else
#define FCACHE_TEST_HOOK() ((void)0)
#endif

struct engine_filter_entry {
  engine_filter_entry *next;
  lode_str filter;
  engine_rids rids;
  struct fcache_segment {
    segments_slots *slots; /* NULL: not made yet */
    index_filtered *match; /* NULL: no graph */
    unsigned uses;
    bool making_graph;
  } * segs; /* of each segment */
  size_t n_segs;
  uint64_t bytes;
  bool listed; /* has a list; else only `stats` is set */
  engine_filter_stats stats;
};

void engine_filter_cache_free(engine_filter_entry *entries) {
  while (entries) {
    engine_filter_entry *m = entries;
    entries = m->next;
    for (size_t i = 0; i < m->n_segs; i++) {
      segments_slots_release(m->segs[i].slots);
      index_filtered_free(m->segs[i].match);
    }
    mem_free(m->segs);
    mem_free((char *)(uintptr_t)m->filter.data);
    mem_free(m->rids.v);
    mem_free(m);
  }
}

static engine_filter_entry *fcache_find(engine_snapshot *v, lode_str filter, bool listed) {
  engine_filter_entry *m = v->filter_cache;
  while (m && !(m->listed == listed && str_eq(m->filter, filter))) m = m->next;
  return m;
}

const engine_rids *engine_filter_cache_find(engine_snapshot *v, lode_str filter) {
  pthread_mutex_lock(&v->filter_cache_lock);
  engine_filter_entry *m = fcache_find(v, filter, true);
  pthread_mutex_unlock(&v->filter_cache_lock);
  return m ? &m->rids : NULL;
}

engine_filter_stats engine_filter_cache_stats(engine_snapshot *v, lode_str filter) {
  pthread_mutex_lock(&v->filter_cache_lock);
  const engine_filter_entry *m = fcache_find(v, filter, false);
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

static uint64_t fcache_budget(const engine_store *store) { return store->head.options->memory_bytes / 8; }

static engine_filter_entry *fcache_entry_new(const engine_snapshot *v, lode_str filter) {
  engine_filter_entry *m = mem_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->filter = (lode_str){str_dup(filter.data, filter.len), filter.len};
  m->segs = mem_calloc(v->n_segs, sizeof *m->segs);
  if (!m->filter.data || !m->segs) {
    engine_filter_cache_free(m);
    return NULL;
  }
  m->n_segs = v->n_segs;
  m->bytes = sizeof *m + filter.len;
  return m;
}

/* Under the lock: the existing entry, or m if there is room for it, or NULL. */
static engine_filter_entry *fcache_insert(const engine_store *store, engine_snapshot *v, engine_filter_entry *m) {
  if (!INVARIANT(os_mutex_is_locked(&v->filter_cache_lock))) return NULL;
  engine_filter_entry *old = fcache_find(v, m->filter, m->listed);
  if (old) return old;
  if (!fcache_has_slot(v, m->listed) || !fcache_fits_budget(v, fcache_budget(store), m->bytes)) return NULL;
  m->next = v->filter_cache;
  return v->filter_cache = m;
}

const engine_rids *engine_filter_cache_add(const engine_store *store, engine_snapshot *v, lode_str filter,
                                           engine_rids *rids) {
  engine_filter_entry *m = fcache_entry_new(v, filter);
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

void engine_filter_cache_note(const engine_store *store, engine_snapshot *v, lode_str filter,
                              engine_filter_stats more) {
  engine_filter_entry *m = fcache_entry_new(v, filter);
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

lode_status engine_filter_slots_make(const engine_segment_view *c, const engine_rids *rids, segments_slots **out,
                                     lode_error *err) {
  size_t found = 0;
  index_segment_record *keys = mem_calloc(rids->n, sizeof *keys);
  segments_slots *slots = segments_slots_new(c->seg->row.rows, false);
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
  segments_slots_release(slots);
  mem_free(keys);
  return st;
}

/* Under the lock: counts a use. True if the caller is to make the graph; its memory is accounted for already. */
static bool fcache_claim_graph(const engine_store *store, engine_snapshot *v, engine_filter_entry *m, size_t i,
                               uint64_t *bytes) {
  struct fcache_segment *s = &m->segs[i];
  const index_segment *segment = v->segs[i].seg->segment;
  if (!INVARIANT(s->slots && os_mutex_is_locked(&v->filter_cache_lock))) return false;
  if (s->match || s->making_graph || s->uses++ < FCACHE_GRAPH_AFTER_USES || s->slots->n == 0) return false;
  if (segment->info.kind != INDEX_GRAPH) return false;
  if (s->slots->n * 100 >= (size_t)segment->info.n * FCACHE_ALL_PERCENT) return false;
  *bytes = index_filtered_bytes(segment, (uint32_t)s->slots->n);
  if (!fcache_fits_budget(v, fcache_budget(store), *bytes)) return false;
  m->bytes += *bytes;
  return s->making_graph = true;
}

/* The graph of segment i; NULL: it has none, or another thread is making it. */
static index_filtered *fcache_get_graph(const engine_store *store, engine_snapshot *v, engine_filter_entry *m,
                                        size_t i) {
  struct fcache_segment *s = &m->segs[i];
  index_filtered *made = NULL;
  uint64_t bytes;
  lode_error ignored;
  pthread_mutex_lock(&v->filter_cache_lock);
  bool mine = fcache_claim_graph(store, v, m, i, &bytes);
  index_filtered *match = s->match;
  pthread_mutex_unlock(&v->filter_cache_lock);
  if (!mine) return match;
  FCACHE_TEST_HOOK();
  /* if it fails, the search itself will report why */
  bool ok =
      index_filtered_new(v->segs[i].seg->segment, s->slots->bits, (uint32_t)s->slots->n, &made, &ignored) == LODE_OK;
  pthread_mutex_lock(&v->filter_cache_lock);
  s->making_graph = false;
  if (ok)
    s->match = made;
  else
    m->bytes -= bytes;
  pthread_mutex_unlock(&v->filter_cache_lock);
  return ok ? made : NULL;
}

/* A reference to the bitmap of segment i, made if it is missing. */
static lode_status fcache_get_bitmap(engine_snapshot *v, engine_filter_entry *m, size_t i, segments_slots **out,
                                     lode_error *err) {
  segments_slots *made = NULL;
  pthread_mutex_lock(&v->filter_cache_lock);
  *out = segments_slots_ref(m->segs[i].slots);
  pthread_mutex_unlock(&v->filter_cache_lock);
  if (*out) return LODE_OK;
  TRY(engine_filter_slots_make(&v->segs[i], &m->rids, &made, err));
  pthread_mutex_lock(&v->filter_cache_lock);
  if (!m->segs[i].slots) {
    m->segs[i].slots = made;
    made = NULL;
  }
  *out = segments_slots_ref(m->segs[i].slots);
  pthread_mutex_unlock(&v->filter_cache_lock);
  segments_slots_release(made);
  return LODE_OK;
}

lode_status engine_filter_cache_slots(const engine_store *store, engine_snapshot *v, size_t i, lode_str filter,
                                      engine_filter_slots *out, lode_error *err) {
  *out = (engine_filter_slots){0};
  pthread_mutex_lock(&v->filter_cache_lock);
  engine_filter_entry *m = fcache_find(v, filter, true);
  pthread_mutex_unlock(&v->filter_cache_lock);
  if (!m) return LODE_OK;
  ENSURE(i < m->n_segs, err);
  TRY(fcache_get_bitmap(v, m, i, &out->slots, err));
  out->match = fcache_get_graph(store, v, m, i);
  return LODE_OK;
}
