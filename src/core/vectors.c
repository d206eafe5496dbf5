/* vectors.c - the vectors of a collection in memory, shared by the threads of a store handle.
 *
 * A snapshot (lode__vectors) is all living vectors at one moment, and never changes; readers hold a reference. It is a
 * list of chunks, filled in the order of vid, and two sorted lists of dead keys. The next snapshot is made from the
 * last one and what has happened since: vectors with larger keys, and graves behind the last one seen. It shares the
 * chunks; rows are added behind those that older snapshots know of, where nobody looks. When a quarter of the rows is
 * dead, chunks are copied without them.
 *
 * Graves may be erased before they were seen (the collection's horizon). How many vectors live is known, so how many of
 * ours are dead without our knowing is known too. As long as they are few they stay: whoever searches asks for that many
 * more and looks at each in the store. Otherwise everything is loaded anew.
 *
 * One thread at a time makes the next snapshot, under the entry's `update` lock. It loads in read transactions of at
 * most 50 ms; in between, what it has is no snapshot yet. It is done when one transaction has seen both lists to their
 * end, and that transaction is handed on: it is the moment that the snapshot shows.
 *
 * All chunks of a store together take at most half of memory_bytes. Room is made by forgetting the collections that
 * were used longest ago; a reader that still holds them keeps them a little longer. A collection that cannot fit is not
 * cached at all (nearest.c then reads from the store).
 */
#include "core.h"

enum { CHUNK_BYTES = 1 << 20, CHUNK_MOST_ROWS = 4096, CHUNK_LEAST_ROWS = 16, LOOK_EVERY = 64, LEAST_DEAD = 1024,
       MOST_UNKNOWN = 1024 };

struct lode__cached {
  lode__cached *next;
  int64_t cid;
  pthread_mutex_t update;  /* held while the next snapshot is made */
  lode__vectors *current;  /* guarded, as is `used`, by the store's lock; NULL: none */
  uint64_t used;
};

/* ---- Chunks ---- */

static uint32_t stride_of(uint32_t dim) { return (dim + 15u) & ~15u; }

static size_t row_bytes(uint32_t stride) { return (size_t)stride * sizeof(float) + sizeof(float) + 2 * sizeof(int64_t); }

static void chunk_release(lode__chunk *c) {
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  atomic_fetch_sub(&c->store->cache_bytes, c->bytes);
  lode__free(c);
}

static lode__chunk *chunk_new(lode_store *store, uint32_t stride, uint32_t cap) {
  size_t head = (sizeof(lode__chunk) + 63) / 64 * 64;
  size_t bytes = head + (size_t)cap * row_bytes(stride);
  char *p = lode__alloc_aligned(64, bytes);
  if (!p) return NULL;
  lode__chunk *c = (lode__chunk *)p;
  *c = (lode__chunk){.store = store, .bytes = bytes, .cap = cap};
  atomic_init(&c->refs, 1);
  c->rows = (float *)(p + head);
  c->vid = (int64_t *)(c->rows + (size_t)cap * stride);
  c->rid = c->vid + cap;
  c->norms = (float *)(c->rid + cap);
  atomic_fetch_add(&store->cache_bytes, bytes);
  return c;
}

/* ---- Lists of dead keys ---- */

static void keys_release(lode__keys *k) {
  if (k && atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1) lode__free(k);
}

static int compare_keys(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static bool keys_have(const lode__keys *k, int64_t key) {
  return k && bsearch(&key, k->v, k->n, sizeof key, compare_keys) != NULL;
}

/* Replaces *k by a list that also holds the new keys. */
static lode_status keys_add(lode__keys **k, const lode__rids *more, lode_error *err) {
  size_t old = *k ? (*k)->n : 0, n, bytes;
  if (more->n == 0) return LODE_OK;
  if (lode__add_over(old, more->n, &n) || lode__mul_over(n, sizeof(int64_t), &bytes) ||
      lode__add_over(bytes, sizeof(lode__keys), &bytes))
    return lode__fail_nomem(err);
  lode__keys *joined = lode__alloc(bytes);
  if (!joined) return lode__fail_nomem(err);
  atomic_init(&joined->refs, 1);
  joined->n = n;
  if (old) memcpy(joined->v, (*k)->v, old * sizeof(int64_t));
  memcpy(joined->v + old, more->v, more->n * sizeof(int64_t));
  qsort(joined->v, n, sizeof(int64_t), compare_keys);
  keys_release(*k);
  *k = joined;
  return LODE_OK;
}

bool lode__vectors_alive(const lode__vectors *v, int64_t rid, int64_t vid) {
  return !keys_have(v->dead_rids, rid) && !keys_have(v->dead_vids, vid);
}

/* ---- Snapshots ---- */

void lode__vectors_release(lode__vectors *v) {
  if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < v->n_parts; i++) chunk_release(v->parts[i].chunk);
  lode__free(v->parts);
  keys_release(v->dead_rids);
  keys_release(v->dead_vids);
  lode__free(v);
}

static lode__vectors *share(lode__vectors *v) {
  if (v) atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
  return v;
}

/* A snapshot to be extended: an empty one, or one that shares all of `from`. */
static lode__vectors *vectors_new(uint32_t dim, const lode__vectors *from) {
  lode__vectors *v = lode__alloc_zero(1, sizeof *v);
  if (!v) return NULL;
  atomic_init(&v->refs, 1);
  v->dim = dim;
  v->stride = stride_of(dim);
  if (!from) return v;
  v->parts = lode__alloc_zero(from->n_parts, sizeof *v->parts);
  if (!v->parts) {
    lode__free(v);
    return NULL;
  }
  for (size_t i = 0; i < from->n_parts; i++) {
    v->parts[i] = from->parts[i];
    atomic_fetch_add_explicit(&v->parts[i].chunk->refs, 1, memory_order_relaxed);
  }
  v->n_parts = v->cap_parts = from->n_parts;
  v->rows = from->rows;
  v->dead_rids = from->dead_rids;
  v->dead_vids = from->dead_vids;
  if (v->dead_rids) atomic_fetch_add_explicit(&v->dead_rids->refs, 1, memory_order_relaxed);
  if (v->dead_vids) atomic_fetch_add_explicit(&v->dead_vids->refs, 1, memory_order_relaxed);
  v->last_vid = from->last_vid;
  v->last_gid = from->last_gid;
  v->epoch = from->epoch;
  v->unknown = from->unknown;
  return v;
}

/* ---- Room ---- */

static size_t budget(const lode_store *store) {
  uint64_t half = store->options->memory_bytes / 2;
  return half > SIZE_MAX ? SIZE_MAX : (size_t)half;
}

/* Makes room for so many bytes by forgetting other collections. */
static bool make_room(lode_store *store, const lode__cached *self, size_t bytes) {
  size_t most = budget(store);
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

/* ---- Making the next snapshot ---- */

typedef struct update {
  lode__reader *reader;
  lode__cached *entry;
  lode__vectors *v;         /* in the making */
  lode__rids rids, vids;    /* died, not in its lists yet */
  bool too_large;
  bool cut;                 /* the transaction grew old before the end */
} update;

static lode_status see_grave(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  update *u = ctx;
  bool ok = rid ? lode__rids_add(&u->rids, rid) : lode__rids_add(&u->vids, vid);
  if (!ok) return lode__fail_nomem(err);
  u->v->last_gid = gid;
  u->cut = (u->rids.n + u->vids.n) % LOOK_EVERY == 0 && lode__reader_is_old(u->reader);
  return u->cut ? LODE_CANCELLED : LODE_OK;
}

static lode_status see_graves(update *u, lode_error *err) {
  u->rids.n = u->vids.n = 0;
  lode_status st = lode__grave_each(u->reader->tx, u->reader->coll.cid, u->v->last_gid, see_grave, u, err);
  if (st == LODE_CANCELLED && u->cut) st = LODE_OK;
  if (st == LODE_OK) st = keys_add(&u->v->dead_rids, &u->rids, err);
  if (st == LODE_OK) st = keys_add(&u->v->dead_vids, &u->vids, err);
  return st;
}

/* Makes sure that the last part has room. false: out of room (too_large) or of memory. */
static bool room_for_row(update *u) {
  lode__vectors *v = u->v;
  lode_store *store = u->reader->handle->store;
  if (v->n_parts && v->parts[v->n_parts - 1].n < v->parts[v->n_parts - 1].chunk->cap) return true;
  size_t rows = CHUNK_BYTES / row_bytes(v->stride);
  uint64_t expected = u->reader->coll.records - u->reader->coll.pending;
  if (rows > CHUNK_MOST_ROWS) rows = CHUNK_MOST_ROWS;
  if (v->n_parts == 0 && rows > expected) rows = (size_t)expected;
  if (rows < CHUNK_LEAST_ROWS) rows = CHUNK_LEAST_ROWS;
  if (!make_room(store, u->entry, rows * row_bytes(v->stride) + 256)) {
    u->too_large = true;
    return false;
  }
  if (!lode__grow(&v->parts, &v->cap_parts, v->n_parts + 1, sizeof *v->parts)) return false;
  lode__chunk *c = chunk_new(store, v->stride, (uint32_t)rows);
  if (!c) return false;
  v->parts[v->n_parts++] = (lode__part){.chunk = c};
  return true;
}

static void put_row(lode__vectors *v, int64_t vid, int64_t rid, const void *data) {
  lode__part *p = &v->parts[v->n_parts - 1];
  lode__chunk *c = p->chunk;
  float *row = c->rows + (size_t)p->n * v->stride;
  memcpy(row, data, (size_t)v->dim * sizeof(float));
  memset(row + v->dim, 0, (size_t)(v->stride - v->dim) * sizeof(float));
  c->norms[p->n] = lode__dot(row, row, v->dim);
  c->vid[p->n] = vid;
  c->rid[p->n] = rid;
  p->n++;
  v->rows++;
}

static lode_status see_vectors(update *u, lode_error *err) {
  lode__tx *tx = u->reader->tx;
  LODE__TRY(lode__vec_scan(tx, u->reader->coll.cid, u->v->last_vid, err));
  for (size_t i = 1;; i++) {
    int64_t vid, rid;
    const void *data;
    uint32_t dim;
    bool more;
    LODE__TRY(lode__vec_next(tx, &vid, &rid, &data, &dim, &more, err));
    if (!more) return LODE_OK;
    if (dim != u->v->dim)
      return lode__fail(err, LODE_CORRUPT, "a stored vector has %u dimensions in a collection of %u: run `lode db verify`",
                        dim, u->v->dim);
    if (!room_for_row(u)) return u->too_large ? LODE_OK : lode__fail_nomem(err);
    put_row(u->v, vid, rid, data);
    u->v->last_vid = vid;
    if (i % LOOK_EVERY == 0 && lode__reader_is_old(u->reader)) {
      u->cut = true;
      return LODE_OK;
    }
  }
}

static lode_status begin_anew(update *u, lode_error *err) {
  lode__vectors_release(u->v);
  u->v = vectors_new(u->reader->coll.dim, NULL);
  if (!u->v) return lode__fail_nomem(err);
  u->v->last_gid = u->reader->coll.horizon;
  u->v->epoch = u->reader->epoch;
  return LODE_OK;
}

/* In one transaction as far as its age allows; u->cut says that it ended early. */
static lode_status advance(update *u, lode_error *err) {
  u->cut = false;
  if (!u->v || u->v->dim != u->reader->coll.dim) LODE__TRY(begin_anew(u, err));
  if (u->v->last_gid < u->reader->coll.horizon) {
    u->v->last_gid = u->reader->coll.horizon;
    u->v->missed = true;
  }
  LODE__TRY(see_vectors(u, err));
  if (u->cut || u->too_large) return LODE_OK;
  return see_graves(u, err); /* behind the scan: it may have met vectors that were replaced */
}

static lode_status load(update *u, lode_error *err) {
  do {
    LODE__TRY(lode__reader_renew_if_old(u->reader, err));
    LODE__TRY(advance(u, err));
  } while (u->cut && !u->too_large);
  return LODE_OK;
}

/* ---- The dead that we do not know of ---- */

static void count_unknown(update *u) {
  lode__vectors *v = u->v;
  uint64_t living = u->reader->coll.records - u->reader->coll.pending;
  size_t alive = 0;
  if (!v->missed) return; /* those that were unknown before still are: their graves are gone */
  for (size_t p = 0; p < v->n_parts; p++)
    for (uint32_t i = 0; i < v->parts[p].n; i++)
      alive += lode__vectors_alive(v, v->parts[p].chunk->rid[i], v->parts[p].chunk->vid[i]);
  v->unknown = alive > living ? alive - (size_t)living : 0;
  v->missed = false;
}

/* Are they more than a search can cope with? A patient reader wants none at all. */
static bool too_many_unknown(const update *u) {
  const lode__vectors *v = u->v;
  return v->unknown > MOST_UNKNOWN || v->unknown > v->rows / 4 || (v->unknown && u->reader->patient);
}

/* ---- Copying without the dead ---- */

static size_t count_dead(const lode__vectors *v) {
  return (v->dead_rids ? v->dead_rids->n : 0) + (v->dead_vids ? v->dead_vids->n : 0);
}

/* Chunk by chunk, so that it takes one chunk more than before. The new parts are v's alone. */
static bool copy_part(update *u, lode__part *part) {
  lode__vectors *v = u->v;
  lode__chunk *from = part->chunk;
  uint32_t n = 0;
  for (uint32_t i = 0; i < part->n; i++) n += lode__vectors_alive(v, from->rid[i], from->vid[i]);
  if (n == part->n) return true;
  lode__chunk *to = chunk_new(from->store, v->stride, n ? n : 1);
  if (!to) return false;
  uint32_t at = 0;
  for (uint32_t i = 0; i < part->n; i++) {
    if (!lode__vectors_alive(v, from->rid[i], from->vid[i])) continue;
    memcpy(to->rows + (size_t)at * v->stride, from->rows + (size_t)i * v->stride, (size_t)v->stride * sizeof(float));
    to->norms[at] = from->norms[i];
    to->vid[at] = from->vid[i];
    to->rid[at++] = from->rid[i];
  }
  v->rows -= part->n - n;
  *part = (lode__part){.chunk = to, .n = n};
  chunk_release(from);
  return true;
}

static void drop_current(lode_store *store, lode__cached *entry) {
  pthread_mutex_lock(&store->lock);
  lode__vectors *gone = entry->current;
  entry->current = NULL;
  pthread_mutex_unlock(&store->lock);
  lode__vectors_release(gone);
}

static void shed_dead(update *u) {
  lode__vectors *v = u->v;
  size_t dead = count_dead(v), kept = 0;
  bool ok = true;
  if (dead < LEAST_DEAD || dead < v->rows / 4) return;
  drop_current(u->reader->handle->store, u->entry); /* else its chunks would stay beside the copies */
  for (size_t i = 0; i < v->n_parts && ok; i++) ok = copy_part(u, &v->parts[i]);
  if (!ok) return; /* no memory: what is dead is still in the lists */
  for (size_t i = 0; i < v->n_parts; i++) {
    if (v->parts[i].n)
      v->parts[kept++] = v->parts[i];
    else
      chunk_release(v->parts[i].chunk);
  }
  v->n_parts = kept;
  keys_release(v->dead_rids);
  keys_release(v->dead_vids);
  v->dead_rids = v->dead_vids = NULL;
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
  if (!e && (e = lode__alloc_zero(1, sizeof *e))) {
    e->cid = cid;
    (void)pthread_mutex_init(&e->update, NULL);
    e->next = store->cached[(uint64_t)cid % LODE__CACHE_BUCKETS];
    store->cached[(uint64_t)cid % LODE__CACHE_BUCKETS] = e;
  }
  pthread_mutex_unlock(&store->lock);
  return e;
}

static lode__vectors *current_of(lode_store *store, lode__cached *e) {
  pthread_mutex_lock(&store->lock);
  lode__vectors *v = share(e->current);
  e->used = ++store->cache_tick;
  pthread_mutex_unlock(&store->lock);
  return v;
}

static void publish(lode_store *store, lode__cached *e, lode__vectors *v) {
  pthread_mutex_lock(&store->lock);
  lode__vectors *old = e->current;
  e->current = share(v);
  pthread_mutex_unlock(&store->lock);
  lode__vectors_release(old);
}

static bool could_fit(const lode__reader *r) {
  uint64_t n = r->coll.records - r->coll.pending;
  return n <= budget(r->handle->store) / row_bytes(stride_of(r->coll.dim));
}

/* With the update lock held. */
static lode_status make_current(update *u, lode__vectors **out, lode_error *err) {
  lode__reader *r = u->reader;
  lode_store *store = r->handle->store;
  lode_status st = LODE_OK;
  lode__vectors *base = current_of(store, u->entry);
  LODE__GOTO(lode__reader_begin(r, err));
  if (base && base->epoch != r->epoch) { /* another store: the same keys may mean other vectors there */
    lode__vectors_release(base);
    base = NULL;
  }
  if (base && base->cursor == lode__tx_cursor(r->tx) && base->dim == r->coll.dim && !(r->patient && base->unknown)) {
    *out = base;
    return LODE_OK;
  }
  u->too_large = !could_fit(r);
  if (u->too_large) goto done;
  if (base && !(u->v = vectors_new(base->dim, base))) {
    st = lode__fail_nomem(err);
    goto done;
  }
  LODE__GOTO(load(u, err));
  if (!u->too_large) count_unknown(u);
  if (!u->too_large && too_many_unknown(u)) {
    LODE__GOTO(begin_anew(u, err));
    LODE__GOTO(load(u, err));
    if (!u->too_large) count_unknown(u);
  }
  if (u->too_large) goto done;
  lode__vectors_release(base);
  base = NULL;
  shed_dead(u);
  u->v->cursor = lode__tx_cursor(r->tx);
  publish(store, u->entry, u->v);
  *out = u->v;
  u->v = NULL;
done:
  lode__vectors_release(base);
  if (u->too_large) drop_current(store, u->entry);
  return st;
}

lode_status lode__vectors_get(lode__reader *reader, lode__vectors **out, lode_error *err) {
  update u = {.reader = reader};
  *out = NULL;
  u.entry = get_entry(reader->handle->store, reader->handle->cid);
  if (!u.entry) return lode__fail_nomem(err);
  if (pthread_mutex_trylock(&u.entry->update) != 0) {
    lode__reader_pause(reader); /* see core.h: never wait with a transaction open */
    pthread_mutex_lock(&u.entry->update);
  }
  lode_status st = make_current(&u, out, err);
  pthread_mutex_unlock(&u.entry->update);
  lode__vectors_release(u.v);
  lode__free(u.rids.v);
  lode__free(u.vids.v);
  if (st == LODE_OK && !*out) st = lode__reader_begin(reader, err);
  return st;
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
      lode__free(e);
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
