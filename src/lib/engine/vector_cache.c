/* SPDX-License-Identifier: Apache-2.0 */
/* vector_cache.c - which collections' vectors are kept in memory, shared by the threads of a store handle.
 *
 * All chunks of a store together take at most half of memory_bytes. Room is made by dropping the least recently used
 * collections; a reader that still holds one keeps it a little longer. A collection that cannot fit is not cached at
 * all (nearest.c then reads from the store), except for its segments.
 *
 * Pages of segments take the other half: the excess is evicted, from the least recently used collections first. Half of
 * what they leave is lent to the vectors that searches have read (index/segment_vectors.h); these are the first to go.
 *
 * Threads: the list of entries and what they hold is guarded by the store's lock, which is held for lookups and changes
 * of pointers only. The next snapshot of a collection is made without it, by one thread at a time: the one that has the
 * entry's turn, marked by `updating`. Others wait for the turn (`updated`), and usually find a snapshot that is new
 * enough when they get it. A thread that waits must have no transaction open: it would block a commit, and whoever has
 * the turn may itself be waiting for that commit.
 */
#include "engine/vector_snapshot.h"

#include "index/segment_vectors.h"

enum {
  CACHE_TRIM_EVERY = 64,   /* queries between two looks at the memory of all collections */
  CACHE_VECTORS_SHARE = 2, /* one part in this many of the memory that is left is lent to vectors */
  CACHE_VECTORS_LEAST = 64 /* not if that holds less than one vector in this many: hardly any would be found there */
};

/* ---- Memory ---- */

size_t engine_cache_budget(const engine_store *store) {
  uint64_t half = store->head.options->memory_bytes / 2;
  return half > SIZE_MAX ? SIZE_MAX : (size_t)half;
}

bool engine_cache_make_room(engine_store *store, const engine_cache_entry *self, size_t bytes) {
  size_t budget = engine_cache_budget(store);
  if (bytes > budget) return false;
  for (;;) {
    if (atomic_load(&store->cache_bytes) <= budget - bytes) return true;
    engine_cache_entry *oldest = NULL;
    engine_snapshot *gone = NULL;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++)
      for (engine_cache_entry *e = store->cached[i]; e; e = e->next)
        if (e != self && e->current && (!oldest || e->used < oldest->used)) oldest = e;
    if (oldest) {
      gone = oldest->current;
      oldest->current = NULL;
    }
    pthread_mutex_unlock(&store->lock);
    if (!gone) return false;
    engine_snapshot_release(gone);
  }
}

static uint64_t cache_vector_bytes(const engine_snapshot *v) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < v->n_segs; i++) bytes += atomic_load(&v->segs[i].seg->segment->vector_bytes);
  return bytes;
}

static uint64_t cache_resident_bytes(const engine_snapshot *v) {
  uint64_t bytes = cache_vector_bytes(v);
  for (size_t i = 0; i < v->n_segs; i++) bytes += atomic_load(&v->segs[i].seg->segment->resident);
  return bytes;
}

/* False: nothing was given back, because of searches that are running; the last of them will do it. */
static bool cache_evict(engine_snapshot *v, uint64_t keep) {
  uint64_t total = cache_resident_bytes(v);
  if (total <= keep) return true;
  for (size_t i = 0; i < v->n_segs; i++) {
    index_segment *s = v->segs[i].seg->segment;
    double share = (double)(atomic_load(&s->resident) + atomic_load(&s->vector_bytes)) / (double)total;
    /* some headroom, so that it is not due again at once */
    index_segment_evict(s, (uint64_t)((double)keep * share * 7 / 8));
  }
  return cache_resident_bytes(v) < total;
}

/* The same for the vectors alone. */
static bool cache_drop_vectors(engine_snapshot *v) {
  uint64_t before = cache_vector_bytes(v);
  for (size_t i = 0; i < v->n_segs; i++) {
    index_segment *s = v->segs[i].seg->segment;
    if (atomic_load(&s->vector_bytes)) index_segment_evict(s, atomic_load(&s->resident));
  }
  return cache_vector_bytes(v) < before;
}

/* Lends a part of the memory that is left, beside pages that are not loaded yet, to vectors. */
static void cache_lend_to_vectors(engine_snapshot *v, uint64_t left) {
  uint64_t wanted = 0, to_come = 0;
  for (size_t i = 0; i < v->n_segs; i++) {
    const index_segment *s = v->segs[i].seg->segment;
    uint64_t pages = index_segment_section_bytes(s);
    uint64_t loaded = atomic_load(&s->resident);
    if (loaded < pages) to_come += pages - loaded;
    if (!atomic_load(&s->vector_bytes)) wanted += index_vectors_wanted(s);
  }
  uint64_t lent = left > to_come ? (left - to_come) / CACHE_VECTORS_SHARE : 0;
  if (wanted == 0 || lent < wanted / CACHE_VECTORS_LEAST) return;
  double share = lent < wanted ? (double)lent / (double)wanted : 1;
  for (size_t i = 0; i < v->n_segs; i++) {
    index_segment *s = v->segs[i].seg->segment;
    index_vectors_keep(s, (uint64_t)((double)index_vectors_wanted(s) * share));
  }
}

/* A reference to the least recently used of the other snapshots that `bytes_of` finds something of in memory, and the
 * bytes of all. */
static engine_snapshot *cache_least_used(engine_store *store, const engine_snapshot *self,
                                         uint64_t (*bytes_of)(const engine_snapshot *), uint64_t *total) {
  engine_cache_entry *oldest = NULL;
  *total = 0;
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++) {
    for (engine_cache_entry *e = store->cached[i]; e; e = e->next) {
      if (!e->current) continue;
      *total += cache_resident_bytes(e->current);
      if (e->current != self && bytes_of(e->current) && (!oldest || e->used < oldest->used)) oldest = e;
    }
  }
  engine_snapshot *v = oldest ? engine_snapshot_ref(oldest->current) : NULL;
  pthread_mutex_unlock(&store->lock);
  return v;
}

/* Takes memory from the other snapshots, the least recently used first, until all fit in the budget or nothing is given
 * back any more. Returns the bytes of all. */
static uint64_t cache_trim_others(engine_store *store, const engine_snapshot *self, bool pages) {
  uint64_t total, budget = engine_cache_budget(store);
  for (bool due = true; due;) {
    engine_snapshot *other = cache_least_used(store, self, pages ? cache_resident_bytes : cache_vector_bytes, &total);
    due = other && total > budget && (pages ? cache_evict(other, 0) : cache_drop_vectors(other));
    engine_snapshot_release(other);
  }
  return total;
}

void engine_snapshot_trim(engine_store *store, engine_snapshot *self) {
  uint64_t budget = engine_cache_budget(store), mine = cache_resident_bytes(self);
  if (mine <= budget && atomic_fetch_add(&store->trim_tick, 1) % CACHE_TRIM_EVERY != 0) return;
  uint64_t total = cache_trim_others(store, self, false);
  if (total <= budget) {
    cache_lend_to_vectors(self, budget - total);
    return;
  }
  (void)!cache_drop_vectors(self);
  total = cache_trim_others(store, self, true);
  mine = cache_resident_bytes(self);
  if (total > budget) (void)!cache_evict(self, total - mine < budget ? budget - (total - mine) : 0);
}

/* ---- Entries ---- */

static engine_cache_entry *cache_find_entry(engine_store *store, int64_t cid) {
  if (!INVARIANT(os_mutex_is_locked(&store->lock))) return NULL;
  engine_cache_entry *e = store->cached[(uint64_t)cid % ENGINE_CACHE_BUCKETS];
  while (e && e->cid != cid) e = e->next;
  return e;
}

static engine_cache_entry *cache_get_entry(engine_store *store, int64_t cid) {
  pthread_mutex_lock(&store->lock);
  engine_cache_entry *e = cache_find_entry(store, cid);
  if (!e && (e = mem_calloc(1, sizeof *e))) {
    e->cid = cid;
    (void)pthread_cond_init(&e->updated, NULL);
    e->next = store->cached[(uint64_t)cid % ENGINE_CACHE_BUCKETS];
    store->cached[(uint64_t)cid % ENGINE_CACHE_BUCKETS] = e;
  }
  pthread_mutex_unlock(&store->lock);
  return e;
}

engine_snapshot *engine_cache_current(engine_store *store, engine_cache_entry *e) {
  pthread_mutex_lock(&store->lock);
  engine_snapshot *v = engine_snapshot_ref(e->current);
  e->used = ++store->cache_tick;
  pthread_mutex_unlock(&store->lock);
  return v;
}

void engine_cache_drop(engine_store *store, engine_cache_entry *entry) {
  pthread_mutex_lock(&store->lock);
  engine_snapshot *gone = entry->current;
  entry->current = NULL;
  pthread_mutex_unlock(&store->lock);
  engine_snapshot_release(gone);
}

void engine_cache_publish(engine_store *store, engine_cache_entry *e, engine_snapshot *v) {
  pthread_mutex_lock(&store->lock);
  engine_snapshot *old = e->current;
  e->current = engine_snapshot_ref(v);
  pthread_mutex_unlock(&store->lock);
  engine_snapshot_release(old);
}

/* ---- Turns ---- */

/* False: another thread has the turn, and the caller does not want to wait. */
static bool cache_take_turn(engine_store *store, engine_cache_entry *e, bool wait) {
  pthread_mutex_lock(&store->lock);
  while (e->updating && wait) pthread_cond_wait(&e->updated, &store->lock);
  bool taken = !e->updating;
  e->updating = true;
  pthread_mutex_unlock(&store->lock);
  return taken;
}

static void cache_end_turn(engine_store *store, engine_cache_entry *e) {
  pthread_mutex_lock(&store->lock);
  bool had = INVARIANT(e->updating);
  (void)had;
  e->updating = false;
  (void)pthread_cond_signal(&e->updated);
  pthread_mutex_unlock(&store->lock);
}

/* ---- For readers ---- */

lode_status engine_snapshot_get(engine_reader *reader, engine_snapshot **out, lode_error *err) {
  engine_store *store = reader->handle->store;
  *out = NULL;
  TRY(engine_reader_begin(reader, err));
  engine_cache_entry *entry = cache_get_entry(store, reader->coll.cid);
  if (!entry) return err_nomem(err);
  engine_snapshot *now = engine_cache_current(store, entry);
  if (engine_snapshot_is_current(now, reader) && !engine_snapshot_is_suspect(now)) {
    *out = now;
    return LODE_OK;
  }
  engine_snapshot_release(now);
  if (!cache_take_turn(store, entry, false)) {
    if (reader->pinned) return LODE_OK; /* it keeps its transaction */
    engine_reader_pause(reader);
    STORE_ENSURE(store->db, !reader->tx && cache_take_turn(store, entry, true), err);
  }
  engine_moment before = engine_reader_allow_later(reader);
  lode_status st = engine_snapshot_next(reader, entry, out, err);
  cache_end_turn(store, entry);
  if (st == LODE_OK && !*out) st = engine_reader_begin(reader, err);
  lode_status joined = engine_reader_require_same(reader, &before, st == LODE_OK ? err : NULL);
  if (st == LODE_OK) st = joined;
  if (st == LODE_OK && *out && !INVARIANT(engine_snapshot_is_current(*out, reader)))
    st = store_db_broken(store->db, "a snapshot of another moment", err);
  if (st == LODE_OK) return LODE_OK;
  engine_snapshot_release(*out);
  *out = NULL;
  return st;
}

lode_status engine_snapshot_peek(engine_reader *reader, engine_snapshot **out, lode_error *err) {
  engine_cache_entry *entry = cache_get_entry(reader->handle->store, reader->handle->cid);
  engine_snapshot *now = entry ? engine_cache_current(reader->handle->store, entry) : NULL;
  bool indexed = now && now->n_segs;
  *out = NULL;
  engine_snapshot_release(now);
  if (!indexed) return LODE_OK;
  TRY(engine_snapshot_get(reader, out, err));
  if (*out && (*out)->n_segs) return LODE_OK;
  engine_snapshot_release(*out);
  *out = NULL;
  return LODE_OK;
}

void engine_snapshot_preload(engine_collection *handle) {
  engine_reader reader;
  engine_snapshot *v = NULL;
  engine_reader_init(&reader, handle);
  if (engine_reader_begin(&reader, NULL) == LODE_OK && reader.coll.dim &&
      engine_snapshot_get(&reader, &v, NULL) == LODE_OK)
    engine_snapshot_release(v);
  engine_reader_release(&reader);
}

bool engine_snapshot_is_cached(const engine_collection *handle) {
  engine_store *store = handle->store;
  pthread_mutex_lock(&store->lock);
  engine_cache_entry *e = cache_find_entry(store, handle->cid);
  bool loaded = e && e->current;
  pthread_mutex_unlock(&store->lock);
  return loaded;
}

void engine_cache_forget(engine_store *store, int64_t cid) {
  pthread_mutex_lock(&store->lock);
  engine_cache_entry *e = cache_find_entry(store, cid);
  engine_snapshot *gone = e ? e->current : NULL;
  if (e) e->current = NULL;
  pthread_mutex_unlock(&store->lock);
  engine_snapshot_release(gone);
}

void engine_cache_forget_all(engine_store *store) {
  for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++) {
    for (engine_cache_entry *e = store->cached[i], *next; e; e = next) {
      next = e->next;
      engine_snapshot_release(e->current);
      (void)pthread_cond_destroy(&e->updated);
      mem_free(e);
    }
    store->cached[i] = NULL;
  }
}

void engine_cache_after_fork(engine_store *store, bool sane) {
  for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++) {
    /* may be half changed by a thread that does not exist here: leaked in the child */
    if (!sane) store->cached[i] = NULL;
    for (engine_cache_entry *e = store->cached[i]; e; e = e->next) {
      (void)pthread_cond_init(&e->updated, NULL);
      e->updating = false;
      engine_snapshot_release(e->current); /* a thread of the parent may have been adding rows to its chunks */
      e->current = NULL;
    }
  }
  atomic_store(&store->cache_bytes, 0); /* what threads of the parent held is never released here */
}
