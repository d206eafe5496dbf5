/* vectors_cache.c - which collections' vectors are kept in memory, shared by the threads of a store handle.
 *
 * All chunks of a store together take at most half of memory_bytes. Room is made by forgetting the collections that
 * were used longest ago; a reader that still holds them keeps them a little longer. A collection that cannot fit is not
 * cached at all (nearest.c then reads from the store), except for its segments.
 *
 * Pages of segments take the other half: what is more is given back, of the collections used longest ago first.
 *
 * The list of entries, which snapshot is current, and when it was used are guarded by the store's lock.
 */
#include "vectors.h"

enum { TRIM_EVERY = 64 };

/* ---- Room ---- */

size_t lode__cached_budget(const lode_store *store) {
  uint64_t half = store->options->memory_bytes / 2;
  return half > SIZE_MAX ? SIZE_MAX : (size_t)half;
}

bool lode__cached_make_room(lode_store *store, const lode__cached *self, size_t bytes) {
  size_t most = lode__cached_budget(store);
  if (bytes > most) return false;
  for (;;) {
    if (atomic_load(&store->cache_bytes) <= most - bytes) return true;
    lode__cached *oldest = NULL;
    lode__vectors *gone = NULL;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < LODE__CACHE_BUCKETS; i++)
      for (lode__cached *e = store->cached[i]; e; e = e->next)
        if (e != self && e->current && (!oldest || e->used < oldest->used)) oldest = e;
    if (oldest) {
      gone = oldest->current;
      oldest->current = NULL;
    }
    pthread_mutex_unlock(&store->lock);
    if (!gone) return false;
    lode__vectors_release(gone);
  }
}

static uint64_t resident(const lode__vectors *v) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < v->n_segs; i++) bytes += atomic_load(&v->segs[i].seg->segment->resident);
  return bytes;
}

static void evict(lode__vectors *v, uint64_t keep) {
  uint64_t total = resident(v);
  if (total <= keep) return;
  for (size_t i = 0; i < v->n_segs; i++) {
    index_segment *s = v->segs[i].seg->segment;
    double share = (double)atomic_load(&s->resident) / (double)total;
    index_segment_evict(s, (uint64_t)((double)keep * share * 7 / 8)); /* so that it is not due again at once */
  }
}

/* The snapshot whose segments were used longest ago, with a reference, and what all together take. */
static lode__vectors *least_used(lode_store *store, const lode__vectors *self, uint64_t *total) {
  lode__cached *oldest = NULL;
  *total = 0;
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < LODE__CACHE_BUCKETS; i++) {
    for (lode__cached *e = store->cached[i]; e; e = e->next) {
      uint64_t bytes = e->current ? resident(e->current) : 0;
      *total += bytes;
      if (bytes && e->current != self && (!oldest || e->used < oldest->used)) oldest = e;
    }
  }
  lode__vectors *v = oldest ? lode__vectors_share(oldest->current) : NULL;
  pthread_mutex_unlock(&store->lock);
  return v;
}

void lode__vectors_trim(lode_store *store, lode__vectors *self) {
  uint64_t most = lode__cached_budget(store), mine = resident(self), total;
  if (mine <= most && atomic_fetch_add(&store->trim_tick, 1) % TRIM_EVERY != 0) return;
  for (;;) {
    lode__vectors *other = least_used(store, self, &total);
    bool due = other && total > most;
    if (due) evict(other, 0);
    lode__vectors_release(other);
    if (!due) break;
  }
  if (total > most) evict(self, total - mine < most ? most - (total - mine) : 0);
}

/* ---- Entries ---- */

static lode__cached *find_entry(lode_store *store, int64_t cid) {
  lode__cached *e = store->cached[(uint64_t)cid % LODE__CACHE_BUCKETS];
  while (e && e->cid != cid) e = e->next;
  return e;
}

static lode__cached *get_entry(lode_store *store, int64_t cid) {
  pthread_mutex_lock(&store->lock);
  lode__cached *e = find_entry(store, cid);
  if (!e && (e = mem_calloc(1, sizeof *e))) {
    e->cid = cid;
    (void)pthread_mutex_init(&e->update, NULL);
    e->next = store->cached[(uint64_t)cid % LODE__CACHE_BUCKETS];
    store->cached[(uint64_t)cid % LODE__CACHE_BUCKETS] = e;
  }
  pthread_mutex_unlock(&store->lock);
  return e;
}

lode__vectors *lode__cached_current(lode_store *store, lode__cached *e) {
  pthread_mutex_lock(&store->lock);
  lode__vectors *v = lode__vectors_share(e->current);
  e->used = ++store->cache_tick;
  pthread_mutex_unlock(&store->lock);
  return v;
}

void lode__cached_drop(lode_store *store, lode__cached *entry) {
  pthread_mutex_lock(&store->lock);
  lode__vectors *gone = entry->current;
  entry->current = NULL;
  pthread_mutex_unlock(&store->lock);
  lode__vectors_release(gone);
}

void lode__cached_publish(lode_store *store, lode__cached *e, lode__vectors *v) {
  pthread_mutex_lock(&store->lock);
  lode__vectors *old = e->current;
  e->current = lode__vectors_share(v);
  pthread_mutex_unlock(&store->lock);
  lode__vectors_release(old);
}

/* ---- For readers ---- */

lode_status lode__vectors_get(lode__reader *reader, lode__vectors **out, lode_error *err) {
  lode__cached *entry = get_entry(reader->handle->store, reader->handle->cid);
  *out = NULL;
  if (!entry) return err_nomem(err);
  TRY(lode__reader_begin(reader, err));
  lode__vectors *now = lode__cached_current(reader->handle->store, entry);
  if (lode__vectors_current(now, reader) && !lode__vectors_suspect(now)) {
    *out = now;
    return LODE_OK;
  }
  lode__vectors_release(now);
  if (pthread_mutex_trylock(&entry->update) != 0) {
    if (reader->pinned) return LODE_OK; /* see core.h: never wait with a transaction open */
    lode__reader_pause(reader);
    pthread_mutex_lock(&entry->update);
  }
  lode__moment before = lode__reader_follow(reader);
  lode_status st = lode__vectors_next(reader, entry, out, err);
  pthread_mutex_unlock(&entry->update);
  if (st == LODE_OK && !*out) st = lode__reader_begin(reader, err);
  lode_status joined = lode__reader_rejoin(reader, &before, st == LODE_OK ? err : NULL);
  if (st == LODE_OK) st = joined;
  if (st == LODE_OK) return LODE_OK;
  lode__vectors_release(*out);
  *out = NULL;
  return st;
}

lode_status lode__vectors_peek(lode__reader *reader, lode__vectors **out, lode_error *err) {
  lode__cached *entry = get_entry(reader->handle->store, reader->handle->cid);
  lode__vectors *now = entry ? lode__cached_current(reader->handle->store, entry) : NULL;
  bool indexed = now && now->n_segs;
  *out = NULL;
  lode__vectors_release(now);
  if (!indexed) return LODE_OK;
  TRY(lode__vectors_get(reader, out, err));
  if (*out && (*out)->n_segs) return LODE_OK;
  lode__vectors_release(*out);
  *out = NULL;
  return LODE_OK;
}

void lode__vectors_preload(lode_collection *handle) {
  lode__reader reader;
  lode__vectors *v = NULL;
  lode__reader_init(&reader, handle);
  if (lode__reader_begin(&reader, NULL) == LODE_OK && reader.coll.dim && lode__vectors_get(&reader, &v, NULL) == LODE_OK)
    lode__vectors_release(v);
  lode__reader_release(&reader);
}

bool lode__vectors_loaded(const lode_collection *handle) {
  lode_store *store = handle->store;
  pthread_mutex_lock(&store->lock);
  lode__cached *e = find_entry(store, handle->cid);
  bool loaded = e && e->current;
  pthread_mutex_unlock(&store->lock);
  return loaded;
}

void lode__vectors_forget(lode_store *store, int64_t cid) {
  pthread_mutex_lock(&store->lock);
  lode__cached *e = find_entry(store, cid);
  lode__vectors *gone = e ? e->current : NULL;
  if (e) e->current = NULL;
  pthread_mutex_unlock(&store->lock);
  lode__vectors_release(gone);
}

void lode__vectors_forget_all(lode_store *store) {
  for (size_t i = 0; i < LODE__CACHE_BUCKETS; i++) {
    for (lode__cached *e = store->cached[i], *next; e; e = next) {
      next = e->next;
      lode__vectors_release(e->current);
      (void)pthread_mutex_destroy(&e->update);
      mem_free(e);
    }
    store->cached[i] = NULL;
  }
}

void lode__vectors_after_fork(lode_store *store, bool sane) {
  for (size_t i = 0; i < LODE__CACHE_BUCKETS; i++) {
    if (!sane) store->cached[i] = NULL; /* half changed by a thread that is not here: lost to the child */
    for (lode__cached *e = store->cached[i]; e; e = e->next) {
      (void)pthread_mutex_init(&e->update, NULL);
      lode__vectors_release(e->current); /* another thread of the parent may have been adding rows to its chunks */
      e->current = NULL;
    }
  }
  atomic_store(&store->cache_bytes, 0); /* what threads of the parent held will never be given back here */
}
