/* SPDX-License-Identifier: Apache-2.0 */
/* vector_snapshot.c - the vectors of a collection in memory: snapshots.
 *
 * A snapshot (engine_snapshot) is all live vectors at one moment. It is immutable; readers hold a reference. It is a
 * list of chunks, filled in vid order, and two sorted lists of dead keys. The next snapshot shares the chunks; rows are
 * added after those that older snapshots know of, where no reader looks.
 *
 * Vectors in a segment of the index (segment_files.c) are not loaded: the snapshot holds the segments, and for each a
 * bitmap of its live slots. What no segment holds (the tail, and gaps where a file is damaged) is in the chunks.
 */
#include "engine/filter_cache.h"
#include "engine/vector_snapshot.h"

/* ---- Chunks ---- */

void engine_chunk_release(engine_chunk *c) {
  if (!mem_unref(&c->refs)) return;
  atomic_fetch_sub(&c->store->cache_bytes, c->bytes);
  mem_free(c);
}

engine_chunk *engine_chunk_new(engine_store *store, uint32_t stride, uint32_t cap) {
  size_t head = (sizeof(engine_chunk) + 63) / 64 * 64;
  size_t bytes = head + (size_t)cap * engine_snapshot_row_bytes(stride);
  char *p = mem_alloc_aligned(64, bytes);
  if (!p) return NULL;
  engine_chunk *c = (engine_chunk *)p;
  *c = (engine_chunk){.store = store, .bytes = bytes, .cap = cap};
  atomic_init(&c->refs, 1);
  c->rows = (float *)(p + head);
  c->vid = (int64_t *)(c->rows + (size_t)cap * stride);
  c->rid = c->vid + cap;
  c->norms = (float *)(c->rid + cap);
  atomic_fetch_add(&store->cache_bytes, bytes);
  return c;
}

uint32_t engine_chunk_first_after(const engine_chunk_part *p, int64_t vid) {
  uint32_t at = p->from;
  SORT_LOWER_BOUND(at, p->n, p->chunk->vid[at] <= vid);
  return at;
}

/* ---- Lists of dead keys ---- */

void engine_key_set_release(engine_key_set *k) {
  if (k && mem_unref(&k->refs)) mem_free(k);
}

static bool key_set_has(const engine_key_set *k, int64_t key) {
  return k && bsearch(&key, k->v, k->n, sizeof key, sort_cmp_i64) != NULL;
}

lode_status engine_key_set_add(engine_key_set **k, const engine_rids *more, lode_error *err) {
  size_t old = *k ? (*k)->n : 0, n, bytes;
  if (more->n == 0) return LODE_OK;
  if (mem_add_overflow(old, more->n, &n) || mem_mul_overflow(n, sizeof(int64_t), &bytes) ||
      mem_add_overflow(bytes, sizeof(engine_key_set), &bytes))
    return err_nomem(err);
  engine_key_set *joined = mem_alloc(bytes);
  if (!joined) return err_nomem(err);
  atomic_init(&joined->refs, 1);
  joined->n = n;
  if (old) memcpy(joined->v, (*k)->v, old * sizeof(int64_t));
  memcpy(joined->v + old, more->v, more->n * sizeof(int64_t));
  qsort(joined->v, n, sizeof(int64_t), sort_cmp_i64);
  engine_key_set_release(*k);
  *k = joined;
  return LODE_OK;
}

bool engine_snapshot_is_live(const engine_snapshot *v, int64_t rid, int64_t vid) {
  return !key_set_has(v->dead_rids, rid) && !key_set_has(v->dead_vids, vid);
}

/* ---- Snapshots ---- */

void engine_segment_views_free(engine_segment_view *segs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    segments_file_release(segs[i].seg);
    segments_slots_release(segs[i].live);
  }
  mem_free(segs);
}

engine_segment_view engine_segment_view_ref(const engine_segment_view *c) {
  return (engine_segment_view){segments_file_ref(c->seg), segments_slots_ref(c->live), c->after, c->last};
}

void engine_snapshot_release(engine_snapshot *v) {
  if (!v || !mem_unref(&v->refs)) return;
  engine_filter_cache_free(v->filter_cache);
  engine_segment_views_free(v->segs, v->n_segs);
  (void)pthread_mutex_destroy(&v->filter_cache_lock);
  for (size_t i = 0; i < v->n_parts; i++) engine_chunk_release(v->parts[i].chunk);
  mem_free(v->parts);
  engine_key_set_release(v->dead_rids);
  engine_key_set_release(v->dead_vids);
  mem_free(v);
}

engine_snapshot *engine_snapshot_ref(engine_snapshot *v) {
  if (v) mem_ref(&v->refs);
  return v;
}

engine_snapshot *engine_snapshot_new(uint32_t dim, const engine_snapshot *from) {
  engine_snapshot *v = mem_calloc(1, sizeof *v);
  if (!v) return NULL;
  atomic_init(&v->refs, 1);
  (void)pthread_mutex_init(&v->filter_cache_lock, NULL);
  v->dim = dim;
  v->stride = engine_snapshot_stride(dim);
  if (!from) return v;
  v->parts = mem_calloc(from->n_parts, sizeof *v->parts);
  v->segs = mem_calloc(from->n_segs, sizeof *v->segs);
  if (!v->parts || !v->segs) {
    engine_snapshot_release(v);
    return NULL;
  }
  for (; v->n_segs < from->n_segs; v->n_segs++) v->segs[v->n_segs] = engine_segment_view_ref(&from->segs[v->n_segs]);
  for (size_t i = 0; i < from->n_parts; i++) {
    v->parts[i] = from->parts[i];
    mem_ref(&v->parts[i].chunk->refs);
  }
  v->n_parts = v->cap_parts = from->n_parts;
  v->rows = from->rows;
  v->dead_rids = from->dead_rids;
  v->dead_vids = from->dead_vids;
  if (v->dead_rids) mem_ref(&v->dead_rids->refs);
  if (v->dead_vids) mem_ref(&v->dead_vids->refs);
  v->last_vid = from->last_vid;
  v->last_gid = from->last_gid;
  v->epoch = from->epoch;
  v->unknown = from->unknown;
  return v;
}

/* ---- Segments ---- */

lode_status engine_lost_vectors(const store_coll *coll, uint64_t met, lode_error *err) {
  return err_set(err, LODE_CORRUPT,
                 "collection %.*s has %llu vectors and %llu were found: run `lode db verify`, then `lode db salvage`",
                 (int)coll->name.len, coll->name.data, (unsigned long long)(coll->records - coll->pending),
                 (unsigned long long)met);
}

bool engine_snapshot_next_gap(const engine_snapshot *v, int64_t at, int64_t *from, int64_t *to) {
  *from = at;
  *to = INT64_MAX;
  for (size_t i = 0; i < v->n_segs && *to == INT64_MAX; i++) {
    const engine_segment_view *c = &v->segs[i];
    if (c->after > *from)
      *to = c->after;
    else if (c->last > *from)
      *from = c->last;
  }
  return *from < *to;
}

static bool snapshot_parts_in_order(const engine_snapshot *v) {
  size_t rows = 0;
  int64_t last = INT64_MIN;
  for (size_t p = 0; p < v->n_parts; p++) {
    const engine_chunk_part *part = &v->parts[p];
    if (part->from >= part->n || part->n > part->chunk->cap || part->chunk->vid[part->from] <= last) return false;
    last = part->chunk->vid[part->n - 1];
    rows += part->n - part->from;
  }
  return rows == v->rows;
}

bool engine_snapshot_is_sound(const engine_snapshot *v) {
  for (size_t i = 0; i < v->n_segs; i++) {
    const engine_segment_view *c = &v->segs[i];
    if (c->after > c->last || (i && c->after < v->segs[i - 1].last)) return false;
    if (c->live && c->live->n > c->seg->row.rows) return false;
  }
  return snapshot_parts_in_order(v);
}

bool engine_snapshot_is_suspect(const engine_snapshot *v) {
  for (size_t i = 0; i < v->n_segs; i++)
    if (segments_is_suspect(v->segs[i].seg->segments, v->segs[i].seg->row.id)) return true;
  return false;
}

bool engine_snapshot_is_current(const engine_snapshot *v, const engine_reader *r) {
  return v && v->epoch == r->epoch && v->cursor == store_tx_cursor(r->tx) && v->dim == r->coll.dim;
}
