/* vectors_next.c - the next snapshot of a collection's vectors, from the last one and what has happened since.
 *
 * That is: vectors with larger keys, and graves behind the last one seen. When a quarter of the rows is dead, chunks are
 * copied without them.
 *
 * Graves may be erased before they were seen (the collection's horizon). How many vectors live is known, so how many of
 * ours are dead without our knowing is known too. As long as they are few they stay: whoever searches asks for that many
 * more and looks at each in the store. Otherwise everything is loaded anew.
 *
 * A segment that is new to the snapshot is marked with all that died (graves, and the store's notes of what was erased);
 * those that it had before, with the graves that are new.
 *
 * One thread at a time makes the next snapshot, under the entry's `update` lock. It loads in read transactions of at
 * most 50 ms; in between, what it has is no snapshot yet. It is done when one transaction has seen both lists to their
 * end, and that transaction is handed on: it is the moment that the snapshot shows.
 */
#include "vectors.h"

enum { CHUNK_BYTES = 1 << 20, CHUNK_MOST_ROWS = 4096, CHUNK_LEAST_ROWS = 16, LOOK_EVERY = 64, LEAST_DEAD = 1024, MOST_UNKNOWN = 1024 };

typedef struct update {
  lode__reader *reader;
  lode__cached *entry;
  lode__vectors *v;         /* in the making */
  lode__rids rids, vids;    /* died, not in its lists yet */
  index_segment_record *died; /* the same as segments know them */
  size_t n_died, cap_died;
  bool fresh;               /* loaded from nothing */
  bool too_large;
  bool cut;                 /* the transaction grew old before the end */
} update;

/* ---- Segments ---- */

static int by_key(const void *a, const void *b) {
  const index_segment_record *x = a, *y = b;
  return (x->key > y->key) - (x->key < y->key);
}

static lode_status note_died(update *u, int64_t rid, int64_t vid, lode_error *err) {
  if (!mem_grow(&u->died, &u->cap_died, u->n_died + 1, sizeof *u->died)) return err_nomem(err);
  u->died[u->n_died++] = (index_segment_record){.key = rid, .cursor = (uint64_t)vid};
  return LODE_OK;
}

static lode_status note_erased(void *ctx, int64_t vid, int64_t rid, lode_error *err) {
  return note_died(ctx, rid, vid, err);
}

/* Of a replaced vector the grave says the vector's key alone. */
static lode_status note_grave(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  update *u = ctx;
  (void)gid;
  if (!rid) TRY(store_vec_owner(u->reader->tx, vid, &rid, err));
  return rid ? note_died(u, rid, vid, err) : LODE_OK;
}

/* Takes those that were noted out of the living of a segment. */
static lode_status bury(update *u, lode__covered *c, lode_error *err) {
  uint32_t rows = c->seg->row.rows;
  size_t found = 0;
  if (u->n_died == 0) return LODE_OK;
  lode__slots *dead = lode__slots_new(rows, false);
  if (!dead) return err_nomem(err);
  lode_status st = index_segment_mark(c->seg->segment, u->died, u->n_died, dead->bits, &found, err);
  if (st == LODE_OK && found) {
    lode__slots *live = lode__slots_new(rows, true);
    if (!live) st = err_nomem(err);
    for (size_t w = 0; live && w < live->words; w++) {
      if (c->live) live->bits[w] = c->live->bits[w];
      live->bits[w] &= ~dead->bits[w];
    }
    if (live) {
      live->n = 0;
      for (size_t w = 0; w < live->words; w++) live->n += (size_t)__builtin_popcountll(live->bits[w]);
      lode__slots_release(c->live);
      c->live = live;
    }
  }
  lode__slots_release(dead);
  return st;
}

/* A damaged segment is left out from now on. */
static lode_status bury_or_suspect(update *u, lode__covered *c, lode_error *err) {
  lode_error why;
  lode_status st = bury(u, c, &why);
  if (st == LODE_OK) return LODE_OK;
  if (st == LODE_NOMEM) return err_nomem(err);
  lode__seg_suspect(c->seg->store, c->seg->row.id, st, why.text);
  return LODE_OK;
}

/* All that died in a segment, whenever. */
static lode_status bury_all(update *u, lode__covered *c, lode_error *err) {
  store_tx *tx = u->reader->tx;
  u->n_died = 0;
  TRY(store_dead_each(tx, c->after, c->last, note_erased, u, err));
  TRY(store_tombstone_each(tx, u->reader->coll.cid, 0, note_grave, u, err));
  if (u->n_died) qsort(u->died, u->n_died, sizeof *u->died, by_key);
  return bury_or_suspect(u, c, err);
}

typedef struct seg_list {
  update *u;
  lode__covered *segs;
  size_t n, cap;
  int64_t last;
} seg_list;

static lode_status add_seg(void *ctx, const store_manifest_row *row, lode_error *err) {
  seg_list *list = ctx;
  lode__vectors *v = list->u->v;
  lode_store *store = list->u->reader->handle->store;
  lode__covered c = {0};
  if (!row->proven || row->bytes == 0 || row->after < list->last || lode__seg_is_suspect(store, row->id)) return LODE_OK;
  for (size_t i = 0; i < v->n_segs && !c.seg; i++)
    if (v->segs[i].seg->row.id == row->id) c = lode__covered_share(&v->segs[i]);
  if (!c.seg) TRY(lode__seg_open(store, row, &c.seg, err));
  c.after = row->after; /* the range of a known one may have grown over an empty gap */
  c.last = row->last;
  if (c.seg && c.seg->segment->info.dim != v->dim) { /* of another store, or forged */
    lode__seg_suspect(store, row->id, LODE_CORRUPT, "its dimension is not the collection's");
    lode__seg_release(c.seg);
    lode__slots_release(c.live);
    return LODE_OK;
  }
  if (!c.seg) return LODE_OK;
  if (!mem_grow(&list->segs, &list->cap, list->n + 1, sizeof *list->segs)) {
    lode__seg_release(c.seg);
    lode__slots_release(c.live);
    return err_nomem(err);
  }
  list->segs[list->n++] = c;
  list->last = row->last;
  return LODE_OK;
}

static bool is_known(const lode__vectors *v, const lode__covered *c) {
  for (size_t i = 0; i < v->n_segs; i++)
    if (v->segs[i].seg == c->seg) return true;
  return false;
}

/* Is what the old ones held still held? */
static bool covers(const seg_list *list, const lode__vectors *v) {
  for (size_t i = 0; i < v->n_segs; i++) {
    const lode__covered *old = &v->segs[i];
    bool held = false;
    for (size_t j = 0; j < list->n && !held; j++)
      held = list->segs[j].after <= old->after && list->segs[j].last >= old->last;
    if (!held) return false;
  }
  return true;
}

static uint32_t first_behind(const lode__part *p, int64_t vid) {
  uint32_t low = p->from, high = p->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (p->chunk->vid[middle] <= vid) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Drops rows that a segment holds now. False when that would cut a part in two. */
static bool drop_covered(lode__vectors *v) {
  size_t kept = 0;
  bool ok = true;
  for (size_t p = 0; p < v->n_parts; p++) {
    lode__part part = v->parts[p];
    for (size_t i = 0; i < v->n_segs && part.from < part.n && ok; i++) {
      const lode__covered *c = &v->segs[i];
      uint32_t begin = first_behind(&part, c->after), end = first_behind(&part, c->last);
      if (begin == end) continue;
      ok = begin == part.from;
      if (!ok) break;
      v->rows -= end - begin;
      part.from = end;
    }
    if (part.from < part.n) v->parts[kept++] = part;
    else lode__chunk_release(part.chunk);
  }
  v->n_parts = kept;
  return ok;
}

static lode_status begin_anew(update *u, lode_error *err);

/* The segments as the transaction sees them. */
static lode_status see_segments(update *u, lode_error *err) {
  seg_list list = {.u = u, .last = INT64_MIN};
  lode_status st;
  TRY_GOTO(store_manifest_each(u->reader->tx, u->reader->coll.cid, add_seg, &list, err));
  bool keeps = covers(&list, u->v);
  for (size_t i = 0; i < list.n; i++)
    if (u->v->missed || !is_known(u->v, &list.segs[i])) TRY_GOTO(bury_all(u, &list.segs[i], err));
  lode__covered *old = u->v->segs;
  size_t n_old = u->v->n_segs;
  u->v->segs = list.segs;
  u->v->n_segs = list.n;
  list.segs = old;
  list.n = n_old;
  if (!keeps || !drop_covered(u->v)) st = begin_anew(u, err);
done:
  lode__covered_free(list.segs, list.n);
  return st;
}

/* ---- Graves and vectors ---- */

static lode_status see_grave(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  update *u = ctx;
  if (u->v->n_segs) TRY(note_grave(u, gid, rid, vid, err));
  bool ok = rid ? lode__rids_add(&u->rids, rid) : lode__rids_add(&u->vids, vid);
  if (!ok) return err_nomem(err);
  u->v->last_gid = gid;
  u->cut = (u->rids.n + u->vids.n) % LOOK_EVERY == 0 && lode__reader_is_old(u->reader);
  return u->cut ? LODE_CANCELLED : LODE_OK;
}

static lode_status see_graves(update *u, lode_error *err) {
  u->rids.n = u->vids.n = u->n_died = 0;
  lode_status st = store_tombstone_each(u->reader->tx, u->reader->coll.cid, u->v->last_gid, see_grave, u, err);
  if (st == LODE_CANCELLED && u->cut) st = LODE_OK;
  if (st == LODE_OK) st = lode__keys_add(&u->v->dead_rids, &u->rids, err);
  if (st == LODE_OK) st = lode__keys_add(&u->v->dead_vids, &u->vids, err);
  if (u->n_died) qsort(u->died, u->n_died, sizeof *u->died, by_key);
  for (size_t i = 0; i < u->v->n_segs && st == LODE_OK; i++) st = bury_or_suspect(u, &u->v->segs[i], err);
  return st;
}

/* Makes sure that the last part has room. false: out of room (too_large) or of memory. */
static bool room_for_row(update *u) {
  lode__vectors *v = u->v;
  lode_store *store = u->reader->handle->store;
  if (v->n_parts && v->parts[v->n_parts - 1].n < v->parts[v->n_parts - 1].chunk->cap) return true;
  size_t rows = CHUNK_BYTES / lode__vectors_row_bytes(v->stride);
  uint64_t expected = u->reader->coll.records - u->reader->coll.pending;
  if (rows > CHUNK_MOST_ROWS) rows = CHUNK_MOST_ROWS;
  if (v->n_parts == 0 && rows > expected) rows = (size_t)expected;
  if (rows < CHUNK_LEAST_ROWS) rows = CHUNK_LEAST_ROWS;
  if (!lode__cached_make_room(store, u->entry, rows * lode__vectors_row_bytes(v->stride) + 256)) {
    u->too_large = true;
    return false;
  }
  if (!mem_grow(&v->parts, &v->cap_parts, v->n_parts + 1, sizeof *v->parts)) return false;
  lode__chunk *c = lode__chunk_new(store, v->stride, (uint32_t)rows);
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
  c->norms[p->n] = kernel_dot(row, row, v->dim);
  c->vid[p->n] = vid;
  c->rid[p->n] = rid;
  p->n++;
  v->rows++;
}

/* Those of one gap between segments; *ended says that there are none behind it either. */
static lode_status see_gap(update *u, int64_t from, int64_t to, bool *ended, lode_error *err) {
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
    if (!room_for_row(u)) return u->too_large ? LODE_OK : err_nomem(err);
    put_row(u->v, vid, rid, data);
    u->v->last_vid = vid;
    if (i % LOOK_EVERY == 0 && lode__reader_is_old(u->reader)) {
      u->cut = true;
      return LODE_OK;
    }
  }
}

static lode_status see_vectors(update *u, lode_error *err) {
  lode__vectors *v = u->v;
  int64_t from, to;
  bool ended = false;
  while (!ended && !u->cut && !u->too_large && lode__vectors_gap(v, v->last_vid, &from, &to)) {
    TRY(see_gap(u, from, to, &ended, err));
    if (!ended && !u->cut && !u->too_large) v->last_vid = to;
  }
  if (ended && v->n_segs && v->last_vid < v->segs[v->n_segs - 1].last) v->last_vid = v->segs[v->n_segs - 1].last;
  return LODE_OK;
}

/* Keeps the segments: who is dead in them stays dead. */
static lode_status begin_anew(update *u, lode_error *err) {
  lode__vectors *old = u->v;
  u->v = lode__vectors_new(u->reader->coll.dim, NULL);
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
  lode__vectors_release(old);
  u->v->last_gid = u->reader->coll.low_water;
  u->v->epoch = u->reader->epoch;
  u->fresh = true;
  return LODE_OK;
}

/* How many vectors are in no segment: about, as graves of others may be among those counted. */
static uint64_t loose_rows(const update *u) {
  uint64_t living = u->reader->coll.records - u->reader->coll.pending, held = 0;
  for (size_t i = 0; i < u->v->n_segs; i++)
    held += u->v->segs[i].live ? u->v->segs[i].live->n : u->v->segs[i].seg->row.rows;
  return living > held ? living - held : 0;
}

static bool could_fit(const update *u) {
  return loose_rows(u) <= lode__cached_budget(u->reader->handle->store) / lode__vectors_row_bytes(lode__vectors_stride(u->reader->coll.dim));
}

/* In one transaction as far as its age allows; u->cut says that it ended early. */
static lode_status advance(update *u, lode_error *err) {
  u->cut = false;
  if (!u->v || u->v->dim != u->reader->coll.dim || u->v->streams) TRY(begin_anew(u, err));
  if (u->v->last_gid < u->reader->coll.low_water) {
    u->v->last_gid = u->reader->coll.low_water;
    u->v->missed = true;
  }
  TRY(see_segments(u, err));
  u->too_large = !could_fit(u);
  if (!u->too_large) TRY(see_vectors(u, err));
  if (!u->cut) TRY(see_graves(u, err)); /* behind the scan: it may have met vectors that were replaced */
  if (!u->cut && lode__vectors_suspect(u->v)) u->cut = true; /* once more without them */
  return LODE_OK;
}

static lode_status load(update *u, lode_error *err) {
  do {
    TRY(lode__reader_renew_if_old(u->reader, err));
    TRY(advance(u, err));
  } while (u->cut);
  return LODE_OK;
}

/* ---- The dead that we do not know of ---- */

static size_t count_alive(const lode__vectors *v) {
  size_t alive = 0;
  for (size_t i = 0; i < v->n_segs; i++) alive += v->segs[i].live ? v->segs[i].live->n : v->segs[i].seg->row.rows;
  for (size_t p = 0; p < v->n_parts; p++)
    for (uint32_t i = v->parts[p].from; i < v->parts[p].n; i++)
      alive += lode__vectors_alive(v, v->parts[p].chunk->rid[i], v->parts[p].chunk->vid[i]);
  return alive;
}

/* Every living vector has been met; fewer than the truth says means that some are lost. (Segments are the builder's to judge.) */
static lode_status check_number(const update *u, lode_error *err) {
  const store_coll *c = &u->reader->coll;
  uint64_t living = c->records - c->pending;
  if (!u->fresh || u->too_large || u->v->n_segs) return LODE_OK;
  size_t alive = count_alive(u->v);
  return alive >= living ? LODE_OK : lode__vectors_lost(c, alive, err);
}

static void count_unknown(update *u) {
  lode__vectors *v = u->v;
  uint64_t living = u->reader->coll.records - u->reader->coll.pending;
  if (!v->missed) return; /* those that were unknown before still are: their graves are gone */
  size_t alive = count_alive(v);
  v->unknown = alive > living ? alive - (size_t)living : 0;
  v->missed = false;
}

/* Are they more than a search can cope with? A patient reader wants none at all. */
static bool too_many_unknown(const update *u) {
  const lode__vectors *v = u->v;
  return v->unknown > MOST_UNKNOWN || v->unknown > v->rows / 4 + 16;
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
  for (uint32_t i = part->from; i < part->n; i++) n += lode__vectors_alive(v, from->rid[i], from->vid[i]);
  if (n == part->n - part->from) return true;
  lode__chunk *to = lode__chunk_new(from->store, v->stride, n ? n : 1);
  if (!to) return false;
  uint32_t at = 0;
  for (uint32_t i = part->from; i < part->n; i++) {
    if (!lode__vectors_alive(v, from->rid[i], from->vid[i])) continue;
    memcpy(to->rows + (size_t)at * v->stride, from->rows + (size_t)i * v->stride, (size_t)v->stride * sizeof(float));
    to->norms[at] = from->norms[i];
    to->vid[at] = from->vid[i];
    to->rid[at++] = from->rid[i];
  }
  v->rows -= part->n - part->from - n;
  *part = (lode__part){.chunk = to, .n = n};
  lode__chunk_release(from);
  return true;
}

static void shed_dead(update *u) {
  lode__vectors *v = u->v;
  size_t dead = count_dead(v), kept = 0;
  bool ok = true;
  if (dead < LEAST_DEAD || dead < v->rows / 4) return;
  lode__cached_drop(u->reader->handle->store, u->entry); /* else its chunks would stay beside the copies */
  for (size_t i = 0; i < v->n_parts && ok; i++) ok = copy_part(u, &v->parts[i]);
  if (!ok) return; /* no memory: what is dead is still in the lists */
  for (size_t i = 0; i < v->n_parts; i++) {
    if (v->parts[i].n)
      v->parts[kept++] = v->parts[i];
    else
      lode__chunk_release(v->parts[i].chunk);
  }
  v->n_parts = kept;
  lode__keys_release(v->dead_rids);
  lode__keys_release(v->dead_vids);
  v->dead_rids = v->dead_vids = NULL;
}

/* ---- All of it ---- */

static lode_status make_current(update *u, lode__vectors **out, lode_error *err) {
  lode__reader *r = u->reader;
  lode_store *store = r->handle->store;
  lode_status st = LODE_OK;
  lode__vectors *base = lode__cached_current(store, u->entry);
  TRY_GOTO(lode__reader_begin(r, err));
  if (base && base->epoch != r->epoch) { /* another store: the same keys may mean other vectors there */
    lode__vectors_release(base);
    base = NULL;
  }
  if (lode__vectors_current(base, r) && !lode__vectors_suspect(base)) {
    *out = base;
    return LODE_OK;
  }
  if (base && !(u->v = lode__vectors_new(base->dim, base))) {
    st = err_nomem(err);
    goto done;
  }
  if (u->v) u->v->streams = base->streams;
  TRY_GOTO(load(u, err));
  count_unknown(u);
  if (too_many_unknown(u)) {
    TRY_GOTO(begin_anew(u, err));
    TRY_GOTO(load(u, err));
    count_unknown(u);
  }
  TRY_GOTO(check_number(u, err));
  if (u->too_large && u->v->n_segs == 0) goto done;
  if (u->too_large) {
    TRY_GOTO(begin_anew(u, err)); /* gives the chunks back */
    u->v->streams = true;
  }
  lode__vectors_release(base);
  base = NULL;
  shed_dead(u);
  u->v->missed = false;
  u->v->cursor = store_tx_cursor(r->tx);
  lode__cached_publish(store, u->entry, u->v);
  *out = u->v;
  u->v = NULL;
done:
  lode__vectors_release(base);
  if (u->too_large && !*out) lode__cached_drop(store, u->entry);
  return st;
}

lode_status lode__vectors_next(lode__reader *reader, lode__cached *entry, lode__vectors **out, lode_error *err) {
  update u = {.reader = reader, .entry = entry};
  lode_status st = make_current(&u, out, err);
  lode__vectors_release(u.v);
  mem_free(u.rids.v);
  mem_free(u.vids.v);
  mem_free(u.died);
  return st;
}
