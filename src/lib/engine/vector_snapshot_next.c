/* SPDX-License-Identifier: Apache-2.0 */
/* vector_snapshot_next.c - makes the next snapshot of a collection's vectors from the last one and what has changed
 * since.
 *
 * That is: vectors with larger keys, and tombstones after the last one seen. When a quarter of the rows is dead, chunks
 * are copied without them.
 *
 * Tombstones may be erased before they were seen (the collection's low-water mark). The number of live vectors is
 * known, so the number of rows that are dead without being in the lists is known too. As long as these are few they
 * stay: a search asks for that many more and checks each in the store. Otherwise everything is loaded again.
 *
 * In a segment that is new to the snapshot, all dead vectors are cleared (tombstones, and the store's notes of what was
 * erased); in the others, those with new tombstones.
 *
 * One thread at a time makes the next snapshot, when it has the entry's turn (vector_cache.c). It loads in read
 * transactions of at most 50 ms. It is done when one transaction has seen both lists to their end; that transaction is
 * passed on: its moment is the snapshot's.
 */
#include "engine/vector_snapshot.h"

enum {
  REFRESH_CHUNK_BYTES = 1 << 20, /* size of a chunk, within the two limits that follow */
  REFRESH_CHUNK_MAX_ROWS = 4096, /* rows of a chunk, at most */
  REFRESH_CHUNK_MIN_ROWS = 16,   /* rows of a chunk, at least */
  REFRESH_CHECK_EVERY = 64,      /* rows between two checks of the transaction's age */
  REFRESH_MIN_DEAD = 1024,       /* dead keys before chunks are copied without them */
  REFRESH_MAX_UNKNOWN = 1024,    /* unknown dead rows that a search can cope with */
};

typedef struct refresh_job {
  engine_reader *reader;
  engine_cache_entry *entry;
  engine_snapshot *v;         /* being made */
  engine_rids rids, vids;     /* dead, not in its lists yet */
  index_segment_record *died; /* the same, as keys of segments; sorted by rid */
  size_t n_died, cap_died;
  bool fresh; /* loaded from scratch */
  bool too_large;
  bool cut; /* the transaction grew old before the end */
} refresh_job;

/* ---- Segments ---- */

static int refresh_compare_keys(const void *a, const void *b) {
  const index_segment_record *x = a, *y = b;
  return (x->key > y->key) - (x->key < y->key);
}

static lode_status refresh_note_died(refresh_job *u, int64_t rid, int64_t vid, lode_error *err) {
  if (!mem_grow(&u->died, &u->cap_died, u->n_died + 1, sizeof *u->died)) return err_nomem(err);
  u->died[u->n_died++] = (index_segment_record){.key = rid, .cursor = (uint64_t)vid};
  return LODE_OK;
}

static lode_status refresh_note_erased(void *ctx, int64_t vid, int64_t rid, lode_error *err) {
  return refresh_note_died(ctx, rid, vid, err);
}

/* The tombstone of a replaced vector holds only the vector's key. */
static lode_status refresh_note_tombstone(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  refresh_job *u = ctx;
  (void)gid;
  if (!rid) TRY(store_vec_owner(u->reader->tx, vid, &rid, err));
  return rid ? refresh_note_died(u, rid, vid, err) : LODE_OK;
}

/* Clears the noted vectors in the live bitmap of a segment. */
static lode_status refresh_clear_dead(refresh_job *u, engine_segment_view *c, lode_error *err) {
  uint32_t rows = c->seg->row.rows;
  size_t found = 0;
  if (u->n_died == 0) return LODE_OK;
  segments_slots *dead = segments_slots_new(rows, false);
  if (!dead) return err_nomem(err);
  lode_status st = index_segment_mark(c->seg->segment, u->died, u->n_died, dead->bits, &found, err);
  if (st == LODE_OK && found) {
    segments_slots *live = segments_slots_new(rows, true);
    if (!live) st = err_nomem(err);
    for (size_t w = 0; live && w < live->words; w++) {
      if (c->live) live->bits[w] = c->live->bits[w];
      live->bits[w] &= ~dead->bits[w];
    }
    if (live) {
      live->n = 0;
      for (size_t w = 0; w < live->words; w++) live->n += (size_t)__builtin_popcountll(live->bits[w]);
      segments_slots_release(c->live);
      c->live = live;
    }
  }
  segments_slots_release(dead);
  return st;
}

/* A damaged segment becomes a suspect and is left out. */
static lode_status refresh_clear_or_suspect(refresh_job *u, engine_segment_view *c, lode_error *err) {
  lode_error why;
  lode_status st = refresh_clear_dead(u, c, &why);
  if (st == LODE_OK) return LODE_OK;
  if (st == LODE_NOMEM) return err_nomem(err);
  segments_suspect(c->seg->segments, c->seg->row.id, st, why.text);
  return LODE_OK;
}

/* Clears everything that ever died in a segment. */
static lode_status refresh_clear_all_dead(refresh_job *u, engine_segment_view *c, lode_error *err) {
  store_tx *tx = u->reader->tx;
  u->n_died = 0;
  TRY(store_dead_each(tx, c->after, c->last, refresh_note_erased, u, err));
  TRY(store_tombstone_each(tx, u->reader->coll.cid, 0, refresh_note_tombstone, u, err));
  if (u->n_died) qsort(u->died, u->n_died, sizeof *u->died, refresh_compare_keys);
  return refresh_clear_or_suspect(u, c, err);
}

typedef struct refresh_segments {
  refresh_job *u;
  engine_segment_view *segs;
  size_t n, cap;
  int64_t last;
} refresh_segments;

static lode_status refresh_add_segment(void *ctx, const store_manifest_row *row, lode_error *err) {
  refresh_segments *list = ctx;
  engine_snapshot *v = list->u->v;
  engine_store *store = list->u->reader->handle->store;
  engine_segment_view c = {0};
  if (!row->proven || row->bytes == 0 || row->after < list->last || segments_is_suspect(&store->segments, row->id))
    return LODE_OK;
  for (size_t i = 0; i < v->n_segs && !c.seg; i++)
    if (v->segs[i].seg->row.id == row->id) c = engine_segment_view_ref(&v->segs[i]);
  if (!c.seg) TRY(segments_open(&store->segments, row, &c.seg, err));
  c.after = row->after; /* the range of a segment may have grown over an empty gap */
  c.last = row->last;
  if (c.seg && c.seg->segment->info.dim != v->dim) { /* from another store, or forged */
    segments_suspect(&store->segments, row->id, LODE_CORRUPT, "its dimension is not the collection's");
    segments_file_release(c.seg);
    segments_slots_release(c.live);
    return LODE_OK;
  }
  if (!c.seg) return LODE_OK;
  if (!mem_grow(&list->segs, &list->cap, list->n + 1, sizeof *list->segs)) {
    segments_file_release(c.seg);
    segments_slots_release(c.live);
    return err_nomem(err);
  }
  list->segs[list->n++] = c;
  list->last = row->last;
  return LODE_OK;
}

static bool refresh_is_known(const engine_snapshot *v, const engine_segment_view *c) {
  for (size_t i = 0; i < v->n_segs; i++)
    if (v->segs[i].seg == c->seg) return true;
  return false;
}

/* Do the new segments cover what the old ones covered? */
static bool refresh_covers(const refresh_segments *list, const engine_snapshot *v) {
  for (size_t i = 0; i < v->n_segs; i++) {
    const engine_segment_view *old = &v->segs[i];
    bool held = false;
    for (size_t j = 0; j < list->n && !held; j++)
      held = list->segs[j].after <= old->after && list->segs[j].last >= old->last;
    if (!held) return false;
  }
  return true;
}

/* Drops rows that a segment now holds. False when that would split a part. */
static bool refresh_drop_covered(engine_snapshot *v) {
  size_t kept = 0;
  bool ok = true;
  for (size_t p = 0; p < v->n_parts; p++) {
    engine_chunk_part part = v->parts[p];
    for (size_t i = 0; i < v->n_segs && part.from < part.n && ok; i++) {
      const engine_segment_view *c = &v->segs[i];
      uint32_t begin = engine_chunk_first_after(&part, c->after), end = engine_chunk_first_after(&part, c->last);
      if (begin == end) continue;
      ok = begin == part.from;
      if (!ok) break;
      v->rows -= end - begin;
      part.from = end;
    }
    if (part.from < part.n)
      v->parts[kept++] = part;
    else
      engine_chunk_release(part.chunk);
  }
  v->n_parts = kept;
  return ok;
}

static lode_status refresh_start_over(refresh_job *u, lode_error *err);

/* Loads the segments as the transaction sees them. */
static lode_status refresh_read_segments(refresh_job *u, lode_error *err) {
  refresh_segments list = {.u = u, .last = INT64_MIN};
  lode_status st;
  TRY_GOTO(store_manifest_each(u->reader->tx, u->reader->coll.cid, refresh_add_segment, &list, err));
  bool keeps = refresh_covers(&list, u->v);
  for (size_t i = 0; i < list.n; i++)
    if (u->v->missed || !refresh_is_known(u->v, &list.segs[i])) TRY_GOTO(refresh_clear_all_dead(u, &list.segs[i], err));
  engine_segment_view *old = u->v->segs;
  size_t n_old = u->v->n_segs;
  u->v->segs = list.segs;
  u->v->n_segs = list.n;
  list.segs = old;
  list.n = n_old;
  if (!keeps || !refresh_drop_covered(u->v)) st = refresh_start_over(u, err);
done:
  engine_segment_views_free(list.segs, list.n);
  return st;
}

/* ---- Tombstones and vectors ---- */

static lode_status refresh_on_tombstone(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  refresh_job *u = ctx;
  if (u->v->n_segs) TRY(refresh_note_tombstone(u, gid, rid, vid, err));
  bool ok = rid ? engine_rids_add(&u->rids, rid) : engine_rids_add(&u->vids, vid);
  if (!ok) return err_nomem(err);
  u->v->last_gid = gid;
  u->cut = (u->rids.n + u->vids.n) % REFRESH_CHECK_EVERY == 0 && engine_reader_is_old(u->reader);
  return u->cut ? LODE_CANCELLED : LODE_OK;
}

static lode_status refresh_read_tombstones(refresh_job *u, lode_error *err) {
  u->rids.n = u->vids.n = u->n_died = 0;
  lode_status st =
      store_tombstone_each(u->reader->tx, u->reader->coll.cid, u->v->last_gid, refresh_on_tombstone, u, err);
  if (st == LODE_CANCELLED && u->cut) st = LODE_OK;
  if (st == LODE_OK) st = engine_key_set_add(&u->v->dead_rids, &u->rids, err);
  if (st == LODE_OK) st = engine_key_set_add(&u->v->dead_vids, &u->vids, err);
  if (u->n_died) qsort(u->died, u->n_died, sizeof *u->died, refresh_compare_keys);
  for (size_t i = 0; i < u->v->n_segs && st == LODE_OK; i++) st = refresh_clear_or_suspect(u, &u->v->segs[i], err);
  return st;
}

/* Makes sure that the last part has room for a row. false: over budget (too_large) or out of memory. */
static bool refresh_reserve_row(refresh_job *u) {
  engine_snapshot *v = u->v;
  engine_store *store = u->reader->handle->store;
  if (v->n_parts && v->parts[v->n_parts - 1].n < v->parts[v->n_parts - 1].chunk->cap) return true;
  size_t rows = REFRESH_CHUNK_BYTES / engine_snapshot_row_bytes(v->stride);
  uint64_t expected = u->reader->coll.records - u->reader->coll.pending;
  if (rows > REFRESH_CHUNK_MAX_ROWS) rows = REFRESH_CHUNK_MAX_ROWS;
  if (v->n_parts == 0 && rows > expected) rows = (size_t)expected;
  if (rows < REFRESH_CHUNK_MIN_ROWS) rows = REFRESH_CHUNK_MIN_ROWS;
  if (!engine_cache_make_room(store, u->entry, rows * engine_snapshot_row_bytes(v->stride) + 256)) {
    u->too_large = true;
    return false;
  }
  if (!mem_grow(&v->parts, &v->cap_parts, v->n_parts + 1, sizeof *v->parts)) return false;
  engine_chunk *c = engine_chunk_new(store, v->stride, (uint32_t)rows);
  if (!c) return false;
  v->parts[v->n_parts++] = (engine_chunk_part){.chunk = c};
  return true;
}

static void refresh_put_row(engine_snapshot *v, int64_t vid, int64_t rid, const void *data) {
  engine_chunk_part *p = &v->parts[v->n_parts - 1];
  engine_chunk *c = p->chunk;
  float *row = c->rows + (size_t)p->n * v->stride;
  memcpy(row, data, (size_t)v->dim * sizeof(float));
  memset(row + v->dim, 0, (size_t)(v->stride - v->dim) * sizeof(float));
  c->norms[p->n] = kernel_dot(row, row, v->dim);
  c->vid[p->n] = vid;
  c->rid[p->n] = rid;
  p->n++;
  v->rows++;
}

/* Reads the vectors of one gap between segments; *ended: there are none after it. */
static lode_status refresh_read_gap(refresh_job *u, int64_t from, int64_t to, bool *ended, lode_error *err) {
  store_tx *tx = u->reader->tx;
  TRY(store_vec_scan(tx, u->reader->coll.cid, from, err));
  for (size_t i = 1;; i++) {
    int64_t vid, rid;
    const void *data;
    uint32_t dim;
    bool more;
    TRY(store_vec_next(tx, &vid, &rid, &data, &dim, &more, err));
    *ended = !more;
    if (!more || vid > to) return LODE_OK;
    if (dim != u->v->dim)
      return err_set(err, LODE_CORRUPT, "a stored vector has %u dimensions in a collection of %u: run `lode db verify`",
                     dim, u->v->dim);
    if (vid <= u->v->last_vid)
      return err_set(err, LODE_CORRUPT, "stored vectors are not in the order of their keys: run `lode db verify`");
    if (!refresh_reserve_row(u)) return u->too_large ? LODE_OK : err_nomem(err);
    refresh_put_row(u->v, vid, rid, data);
    u->v->last_vid = vid;
    if (i % REFRESH_CHECK_EVERY == 0 && engine_reader_is_old(u->reader)) {
      u->cut = true;
      return LODE_OK;
    }
  }
}

static lode_status refresh_read_vectors(refresh_job *u, lode_error *err) {
  engine_snapshot *v = u->v;
  int64_t from, to;
  bool ended = false;
  while (!ended && !u->cut && !u->too_large && engine_snapshot_next_gap(v, v->last_vid, &from, &to)) {
    TRY(refresh_read_gap(u, from, to, &ended, err));
    if (!ended && !u->cut && !u->too_large) v->last_vid = to;
  }
  if (ended && v->n_segs && v->last_vid < v->segs[v->n_segs - 1].last) v->last_vid = v->segs[v->n_segs - 1].last;
  return LODE_OK;
}

/* Starts with an empty snapshot, but keeps the segments and their live bitmaps. */
static lode_status refresh_start_over(refresh_job *u, lode_error *err) {
  engine_snapshot *old = u->v;
  u->v = engine_snapshot_new(u->reader->coll.dim, NULL);
  if (!u->v) {
    u->v = old;
    return err_nomem(err);
  }
  if (old && old->dim == u->v->dim) {
    u->v->segs = old->segs;
    u->v->n_segs = old->n_segs;
    u->v->missed = old->missed;
    old->segs = NULL;
    old->n_segs = 0;
  }
  engine_snapshot_release(old);
  u->v->last_gid = u->reader->coll.low_water;
  u->v->epoch = u->reader->epoch;
  u->fresh = true;
  return LODE_OK;
}

/* About how many vectors are in no segment: live bitmaps may lack some tombstones. */
static uint64_t refresh_loose_rows(const refresh_job *u) {
  uint64_t living = u->reader->coll.records - u->reader->coll.pending, held = 0;
  for (size_t i = 0; i < u->v->n_segs; i++)
    held += u->v->segs[i].live ? u->v->segs[i].live->n : u->v->segs[i].seg->row.rows;
  return living > held ? living - held : 0;
}

static bool refresh_could_fit(const refresh_job *u) {
  return refresh_loose_rows(u) <= engine_cache_budget(u->reader->handle->store) /
                                      engine_snapshot_row_bytes(engine_snapshot_stride(u->reader->coll.dim));
}

/* Loads within one transaction, as far as its age allows; u->cut: it ended early. */
static lode_status refresh_advance(refresh_job *u, lode_error *err) {
  u->cut = false;
  if (!u->v || u->v->dim != u->reader->coll.dim || u->v->streams) TRY(refresh_start_over(u, err));
  if (u->v->last_gid < u->reader->coll.low_water) {
    u->v->last_gid = u->reader->coll.low_water;
    u->v->missed = true;
  }
  TRY(refresh_read_segments(u, err));
  u->too_large = !refresh_could_fit(u);
  if (!u->too_large) TRY(refresh_read_vectors(u, err));
  if (!u->cut) TRY(refresh_read_tombstones(u, err)); /* after the vectors, some of which may have been replaced */
  if (!u->cut && engine_snapshot_is_suspect(u->v)) u->cut = true; /* again, without the suspects */
  return LODE_OK;
}

static lode_status refresh_load(refresh_job *u, lode_error *err) {
  do {
    TRY(engine_reader_renew_if_old(u->reader, err));
    TRY(refresh_advance(u, err));
  } while (u->cut);
  return LODE_OK;
}

/* ---- Dead rows that are in no list ---- */

static size_t refresh_count_live(const engine_snapshot *v) {
  size_t alive = 0;
  for (size_t i = 0; i < v->n_segs; i++) alive += v->segs[i].live ? v->segs[i].live->n : v->segs[i].seg->row.rows;
  for (size_t p = 0; p < v->n_parts; p++)
    for (uint32_t i = v->parts[p].from; i < v->parts[p].n; i++)
      alive += engine_snapshot_is_live(v, v->parts[p].chunk->rid[i], v->parts[p].chunk->vid[i]);
  return alive;
}

/* Every live vector has been loaded; fewer than the collection's count means that some are lost. Segments are checked
 * by the builder. */
static lode_status refresh_check_count(const refresh_job *u, lode_error *err) {
  const store_coll *c = &u->reader->coll;
  uint64_t living = c->records - c->pending;
  if (!u->fresh || u->too_large || u->v->n_segs) return LODE_OK;
  size_t alive = refresh_count_live(u->v);
  return alive >= living ? LODE_OK : engine_lost_vectors(c, alive, err);
}

static void refresh_count_unknown(refresh_job *u) {
  engine_snapshot *v = u->v;
  uint64_t living = u->reader->coll.records - u->reader->coll.pending;
  if (!v->missed) return; /* those that were unknown before still are: their tombstones are gone */
  size_t alive = refresh_count_live(v);
  v->unknown = alive > living ? alive - (size_t)living : 0;
  v->missed = false;
}

/* Are they more than a search can cope with? */
static bool refresh_too_many_unknown(const refresh_job *u) {
  const engine_snapshot *v = u->v;
  return v->unknown > REFRESH_MAX_UNKNOWN || v->unknown > v->rows / 4 + 16;
}

/* ---- Copying without the dead ---- */

static size_t refresh_count_dead(const engine_snapshot *v) {
  return (v->dead_rids ? v->dead_rids->n : 0) + (v->dead_vids ? v->dead_vids->n : 0);
}

/* One chunk at a time, so that it takes memory for one more chunk only. The new parts belong to v alone. */
static bool refresh_copy_part(refresh_job *u, engine_chunk_part *part) {
  engine_snapshot *v = u->v;
  engine_chunk *from = part->chunk;
  uint32_t n = 0;
  for (uint32_t i = part->from; i < part->n; i++) n += engine_snapshot_is_live(v, from->rid[i], from->vid[i]);
  if (n == part->n - part->from) return true;
  engine_chunk *to = engine_chunk_new(from->store, v->stride, n ? n : 1);
  if (!to) return false;
  uint32_t at = 0;
  for (uint32_t i = part->from; i < part->n; i++) {
    if (!engine_snapshot_is_live(v, from->rid[i], from->vid[i])) continue;
    memcpy(to->rows + (size_t)at * v->stride, from->rows + (size_t)i * v->stride, (size_t)v->stride * sizeof(float));
    to->norms[at] = from->norms[i];
    to->vid[at] = from->vid[i];
    to->rid[at++] = from->rid[i];
  }
  v->rows -= part->n - part->from - n;
  *part = (engine_chunk_part){.chunk = to, .n = n};
  engine_chunk_release(from);
  return true;
}

static void refresh_drop_dead(refresh_job *u) {
  engine_snapshot *v = u->v;
  size_t dead = refresh_count_dead(v), kept = 0;
  bool ok = true;
  if (dead < REFRESH_MIN_DEAD || dead < v->rows / 4) return;
  /* otherwise its chunks would stay in memory beside the copies */
  engine_cache_drop(u->reader->handle->store, u->entry);
  for (size_t i = 0; i < v->n_parts && ok; i++) ok = refresh_copy_part(u, &v->parts[i]);
  if (!ok) return; /* out of memory: the dead rows are still in the lists */
  for (size_t i = 0; i < v->n_parts; i++) {
    if (v->parts[i].n)
      v->parts[kept++] = v->parts[i];
    else
      engine_chunk_release(v->parts[i].chunk);
  }
  v->n_parts = kept;
  engine_key_set_release(v->dead_rids);
  engine_key_set_release(v->dead_vids);
  v->dead_rids = v->dead_vids = NULL;
}

/* ---- All of it ---- */

/* What searches rely on. */
static lode_status refresh_check(const refresh_job *u, const engine_snapshot *base, lode_error *err) {
  engine_store *store = u->reader->handle->store;
  STORE_ENSURE(store->db, engine_snapshot_is_sound(u->v), err);
  STORE_ENSURE(store->db, !base || base->cursor <= u->v->cursor, err); /* a reader's transaction keeps writers out */
  return LODE_OK;
}

static lode_status refresh_make_current(refresh_job *u, engine_snapshot **out, lode_error *err) {
  engine_reader *r = u->reader;
  engine_store *store = r->handle->store;
  lode_status st = LODE_OK;
  engine_snapshot *base = engine_cache_current(store, u->entry);
  TRY_GOTO(engine_reader_begin(r, err));
  if (base && base->epoch != r->epoch) { /* another database file: the same keys may be other vectors */
    engine_snapshot_release(base);
    base = NULL;
  }
  if (engine_snapshot_is_current(base, r) && !engine_snapshot_is_suspect(base)) {
    *out = base;
    return LODE_OK;
  }
  if (base && !(u->v = engine_snapshot_new(base->dim, base))) {
    st = err_nomem(err);
    goto done;
  }
  if (u->v) u->v->streams = base->streams;
  TRY_GOTO(refresh_load(u, err));
  refresh_count_unknown(u);
  if (refresh_too_many_unknown(u)) {
    TRY_GOTO(refresh_start_over(u, err));
    TRY_GOTO(refresh_load(u, err));
    refresh_count_unknown(u);
  }
  TRY_GOTO(refresh_check_count(u, err));
  if (u->too_large && u->v->n_segs == 0) goto done;
  if (u->too_large) {
    TRY_GOTO(refresh_start_over(u, err)); /* frees the chunks */
    u->v->streams = true;
  }
  u->v->cursor = store_tx_cursor(r->tx);
  TRY_GOTO(refresh_check(u, base, err));
  engine_snapshot_release(base); /* before refresh_drop_dead(), which needs the memory */
  base = NULL;
  refresh_drop_dead(u);
  u->v->missed = false;
  engine_cache_publish(store, u->entry, u->v);
  *out = u->v;
  u->v = NULL;
done:
  engine_snapshot_release(base);
  if (u->too_large && !*out) engine_cache_drop(store, u->entry);
  return st;
}

lode_status engine_snapshot_next(engine_reader *reader, engine_cache_entry *entry, engine_snapshot **out,
                                 lode_error *err) {
  refresh_job u = {.reader = reader, .entry = entry};
  lode_status st = refresh_make_current(&u, out, err);
  engine_snapshot_release(u.v);
  mem_free(u.rids.v);
  mem_free(u.vids.v);
  mem_free(u.died);
  return st;
}
