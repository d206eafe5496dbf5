/* vectors.c - the vectors of a collection in memory: snapshots.
 *
 * A snapshot (lode__vectors) is all living vectors at one moment, and never changes; readers hold a reference. It is a
 * list of chunks, filled in the order of vid, and two sorted lists of dead keys. The next snapshot shares the chunks; rows
 * are added behind those that older snapshots know of, where nobody looks.
 *
 * Vectors that a segment of the index holds (segments.c) are not loaded: the snapshot holds the segments, and for each
 * the slots whose vectors are alive. What no segment holds (the tail, and gaps where a file is damaged) is in the chunks.
 */
#include "vectors.h"

/* ---- Chunks ---- */

void lode__chunk_release(lode__chunk *c) {
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  atomic_fetch_sub(&c->store->cache_bytes, c->bytes);
  mem_free(c);
}

lode__chunk *lode__chunk_new(lode_store *store, uint32_t stride, uint32_t cap) {
  size_t head = (sizeof(lode__chunk) + 63) / 64 * 64;
  size_t bytes = head + (size_t)cap * lode__vectors_row_bytes(stride);
  char *p = mem_alloc_aligned(64, bytes);
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

void lode__keys_release(lode__keys *k) {
  if (k && atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1) mem_free(k);
}

static bool keys_have(const lode__keys *k, int64_t key) {
  return k && bsearch(&key, k->v, k->n, sizeof key, sort_cmp_i64) != NULL;
}

lode_status lode__keys_add(lode__keys **k, const lode__rids *more, lode_error *err) {
  size_t old = *k ? (*k)->n : 0, n, bytes;
  if (more->n == 0) return LODE_OK;
  if (mem_add_overflow(old, more->n, &n) || mem_mul_overflow(n, sizeof(int64_t), &bytes) ||
      mem_add_overflow(bytes, sizeof(lode__keys), &bytes))
    return err_nomem(err);
  lode__keys *joined = mem_alloc(bytes);
  if (!joined) return err_nomem(err);
  atomic_init(&joined->refs, 1);
  joined->n = n;
  if (old) memcpy(joined->v, (*k)->v, old * sizeof(int64_t));
  memcpy(joined->v + old, more->v, more->n * sizeof(int64_t));
  qsort(joined->v, n, sizeof(int64_t), sort_cmp_i64);
  lode__keys_release(*k);
  *k = joined;
  return LODE_OK;
}

bool lode__vectors_alive(const lode__vectors *v, int64_t rid, int64_t vid) {
  return !keys_have(v->dead_rids, rid) && !keys_have(v->dead_vids, vid);
}

/* ---- Snapshots ---- */

void lode__covered_free(lode__covered *segs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    lode__seg_release(segs[i].seg);
    lode__slots_release(segs[i].live);
  }
  mem_free(segs);
}

lode__covered lode__covered_share(const lode__covered *c) {
  if (c->live) atomic_fetch_add_explicit(&c->live->refs, 1, memory_order_relaxed);
  return (lode__covered){.seg = lode__seg_share(c->seg), .live = c->live, .after = c->after, .last = c->last};
}

void lode__vectors_release(lode__vectors *v) {
  if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) return;
  lode__marked_free(v->filter_cache);
  lode__covered_free(v->segs, v->n_segs);
  (void)pthread_mutex_destroy(&v->marks_lock);
  for (size_t i = 0; i < v->n_parts; i++) lode__chunk_release(v->parts[i].chunk);
  mem_free(v->parts);
  lode__keys_release(v->dead_rids);
  lode__keys_release(v->dead_vids);
  mem_free(v);
}

lode__vectors *lode__vectors_share(lode__vectors *v) {
  if (v) atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
  return v;
}

lode__vectors *lode__vectors_new(uint32_t dim, const lode__vectors *from) {
  lode__vectors *v = mem_calloc(1, sizeof *v);
  if (!v) return NULL;
  atomic_init(&v->refs, 1);
  (void)pthread_mutex_init(&v->marks_lock, NULL);
  v->dim = dim;
  v->stride = lode__vectors_stride(dim);
  if (!from) return v;
  v->parts = mem_calloc(from->n_parts, sizeof *v->parts);
  v->segs = mem_calloc(from->n_segs, sizeof *v->segs);
  if (!v->parts || !v->segs) {
    lode__vectors_release(v);
    return NULL;
  }
  for (; v->n_segs < from->n_segs; v->n_segs++) v->segs[v->n_segs] = lode__covered_share(&from->segs[v->n_segs]);
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

/* ---- Segments ---- */

lode_status lode__vectors_lost(const store_coll *coll, uint64_t met, lode_error *err) {
  return err_set(err, LODE_CORRUPT,
                    "collection %.*s has %llu vectors and %llu were found: run `lode db verify`, then `lode db salvage`",
                    (int)coll->name.len, coll->name.data, (unsigned long long)(coll->records - coll->pending),
                    (unsigned long long)met);
}

bool lode__vectors_gap(const lode__vectors *v, int64_t at, int64_t *from, int64_t *to) {
  *from = at;
  *to = INT64_MAX;
  for (size_t i = 0; i < v->n_segs && *to == INT64_MAX; i++) {
    const lode__covered *c = &v->segs[i];
    if (c->after > *from) *to = c->after;
    else if (c->last > *from) *from = c->last;
  }
  return *from < *to;
}

bool lode__vectors_suspect(const lode__vectors *v) {
  for (size_t i = 0; i < v->n_segs; i++)
    if (lode__seg_is_suspect(v->segs[i].seg->store, v->segs[i].seg->row.id)) return true;
  return false;
}

uint64_t lode__vectors_spend(lode__vectors *v, uint64_t cost) { return atomic_fetch_add(&v->spent, cost) + cost; }

bool lode__vectors_current(const lode__vectors *v, const lode__reader *r) {
  return v && v->epoch == r->epoch && v->cursor == store_tx_cursor(r->tx) && v->dim == r->coll.dim;
}
