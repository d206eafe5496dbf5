/* SPDX-License-Identifier: Apache-2.0 */
/* vector_cache.c - which collections' vectors are kept in memory, shared by the threads of a store handle.
 *
 * All chunks of a store together take at most half of memory_bytes. Room is made by dropping the least recently used
 * collections; a reader that still holds one keeps it a little longer. A collection that cannot fit is not cached at
 * all (nearest.c then reads from the store), except for its segments.
 *
 * Pages of segments take the other half: the excess is evicted, from the least recently used collections first.
 *
 * The list of entries, the current snapshots and their times of use are guarded by the store's lock.
 */
#include "engine/vector_snapshot.h"

enum { CACHE_TRIM_EVERY = 64 };

/* ---- Memory ---- */

size_t engine_cache_budget(const lode_store *store) {
  uint64_t half = store->options->memory_bytes / 2;
  return half > SIZE_MAX ? SIZE_MAX : (size_t)half;
}

bool engine_cache_make_room(lode_store *store, const engine_cache_entry *self, size_t bytes) {
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

static uint64_t cache_resident_bytes(const engine_snapshot *v) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < v->n_segs; i++) bytes += atomic_load(&v->segs[i].seg->segment->resident);
  return bytes;
}

static void cache_evict(engine_snapshot *v, uint64_t keep) {
  uint64_t total = cache_resident_bytes(v);
  if (total <= keep) return;
  for (size_t i = 0; i < v->n_segs; i++) {
    index_segment *s = v->segs[i].seg->segment;
    double share = (double)atomic_load(&s->resident) / (double)total;
    /* some headroom, so that it is not due again at once */
    index_segment_evict(s, (uint64_t)((double)keep * share * 7 / 8));
  }
}

/* A reference to the least recently used snapshot with resident segment pages, and the total of all. */
static engine_snapshot *cache_least_used(lode_store *store, const engine_snapshot *self, uint64_t *total) {
  engine_cache_entry *oldest = NULL;
  *total = 0;
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++) {
    for (engine_cache_entry *e = store->cached[i]; e; e = e->next) {
      uint64_t bytes = e->current ? cache_resident_bytes(e->current) : 0;
      *total += bytes;
      if (bytes && e->current != self && (!oldest || e->used < oldest->used)) oldest = e;
    }
  }
  engine_snapshot *v = oldest ? engine_snapshot_ref(oldest->current) : NULL;
  pthread_mutex_unlock(&store->lock);
  return v;
}

void engine_snapshot_trim(lode_store *store, engine_snapshot *self) {
  uint64_t budget = engine_cache_budget(store), mine = cache_resident_bytes(self), total;
  if (mine <= budget && atomic_fetch_add(&store->trim_tick, 1) % CACHE_TRIM_EVERY != 0) return;
  for (;;) {
    engine_snapshot *other = cache_least_used(store, self, &total);
    bool due = other && total > budget;
    if (due) cache_evict(other, 0);
    engine_snapshot_release(other);
    if (!due) break;
  }
  if (total > budget) cache_evict(self, total - mine < budget ? budget - (total - mine) : 0);
}

/* ---- Entries ---- */

static engine_cache_entry *cache_find_entry(lode_store *store, int64_t cid) {
  engine_cache_entry *e = store->cached[(uint64_t)cid % ENGINE_CACHE_BUCKETS];
  while (e && e->cid != cid) e = e->next;
  return e;
}

static engine_cache_entry *cache_get_entry(lode_store *store, int64_t cid) {
  pthread_mutex_lock(&store->lock);
  engine_cache_entry *e = cache_find_entry(store, cid);
  if (!e && (e = mem_calloc(1, sizeof *e))) {
    e->cid = cid;
    (void)pthread_mutex_init(&e->update, NULL);
    e->next = store->cached[(uint64_t)cid % ENGINE_CACHE_BUCKETS];
    store->cached[(uint64_t)cid % ENGINE_CACHE_BUCKETS] = e;
  }
  pthread_mutex_unlock(&store->lock);
  return e;
}

engine_snapshot *engine_cache_current(lode_store *store, engine_cache_entry *e) {
  pthread_mutex_lock(&store->lock);
  engine_snapshot *v = engine_snapshot_ref(e->current);
  e->used = ++store->cache_tick;
  pthread_mutex_unlock(&store->lock);
  return v;
}

void engine_cache_drop(lode_store *store, engine_cache_entry *entry) {
  pthread_mutex_lock(&store->lock);
  engine_snapshot *gone = entry->current;
  entry->current = NULL;
  pthread_mutex_unlock(&store->lock);
  engine_snapshot_release(gone);
}

void engine_cache_publish(lode_store *store, engine_cache_entry *e, engine_snapshot *v) {
  pthread_mutex_lock(&store->lock);
  engine_snapshot *old = e->current;
  e->current = engine_snapshot_ref(v);
  pthread_mutex_unlock(&store->lock);
  engine_snapshot_release(old);
}

/* ---- For readers ---- */

lode_status engine_snapshot_get(engine_reader *reader, engine_snapshot **out, lode_error *err) {
  engine_cache_entry *entry = cache_get_entry(reader->handle->store, reader->handle->cid);
  *out = NULL;
  if (!entry) return err_nomem(err);
  TRY(engine_reader_begin(reader, err));
  engine_snapshot *now = engine_cache_current(reader->handle->store, entry);
  if (engine_snapshot_is_current(now, reader) && !engine_snapshot_is_suspect(now)) {
    *out = now;
    return LODE_OK;
  }
  engine_snapshot_release(now);
  if (pthread_mutex_trylock(&entry->update) != 0) {
    if (reader->pinned) return LODE_OK; /* never wait with a transaction open: see engine.h */
    engine_reader_pause(reader);
    pthread_mutex_lock(&entry->update);
  }
  engine_moment before = engine_reader_allow_later(reader);
  lode_status st = engine_snapshot_next(reader, entry, out, err);
  pthread_mutex_unlock(&entry->update);
  if (st == LODE_OK && !*out) st = engine_reader_begin(reader, err);
  lode_status joined = engine_reader_require_same(reader, &before, st == LODE_OK ? err : NULL);
  if (st == LODE_OK) st = joined;
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

void engine_snapshot_preload(lode_collection *handle) {
  engine_reader reader;
  engine_snapshot *v = NULL;
  engine_reader_init(&reader, handle);
  if (engine_reader_begin(&reader, NULL) == LODE_OK && reader.coll.dim &&
      engine_snapshot_get(&reader, &v, NULL) == LODE_OK)
    engine_snapshot_release(v);
  engine_reader_release(&reader);
}

bool engine_snapshot_is_cached(const lode_collection *handle) {
  lode_store *store = handle->store;
  pthread_mutex_lock(&store->lock);
  engine_cache_entry *e = cache_find_entry(store, handle->cid);
  bool loaded = e && e->current;
  pthread_mutex_unlock(&store->lock);
  return loaded;
}

void engine_cache_forget(lode_store *store, int64_t cid) {
  pthread_mutex_lock(&store->lock);
  engine_cache_entry *e = cache_find_entry(store, cid);
  engine_snapshot *gone = e ? e->current : NULL;
  if (e) e->current = NULL;
  pthread_mutex_unlock(&store->lock);
  engine_snapshot_release(gone);
}

void engine_cache_forget_all(lode_store *store) {
  for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++) {
    for (engine_cache_entry *e = store->cached[i], *next; e; e = next) {
      next = e->next;
      engine_snapshot_release(e->current);
      (void)pthread_mutex_destroy(&e->update);
      mem_free(e);
    }
    store->cached[i] = NULL;
  }
}

void engine_cache_after_fork(lode_store *store, bool sane) {
  for (size_t i = 0; i < ENGINE_CACHE_BUCKETS; i++) {
    /* may be half changed by a thread that does not exist here: leaked in the child */
    if (!sane) store->cached[i] = NULL;
    for (engine_cache_entry *e = store->cached[i]; e; e = e->next) {
      (void)pthread_mutex_init(&e->update, NULL);
      engine_snapshot_release(e->current); /* a thread of the parent may have been adding rows to its chunks */
      e->current = NULL;
    }
  }
  atomic_store(&store->cache_bytes, 0); /* what threads of the parent held is never released here */
}
