/* indexed.c - the nearest vectors in the segments of a snapshot, and the filters that were used with it.
 *
 * A filter becomes a bitmap of slots for each segment: those whose record matches and whose vector lives. The list of
 * the records that match, and these bitmaps, stay with the snapshot, so that a filter that is used again costs nothing
 * as long as nothing is written; when it comes a second time, its matches are made ready for many searches (index/match.h).
 * A few are kept, within an eighth of the memory budget. They are only proposals: the caller judges every record that it
 * answers with.
 *
 * Threads: `marks` of a snapshot are guarded by its marks_lock, which is held while a filter is marked; an entry that was
 * handed out stays as long as the snapshot does. Rooms of searches are kept by the store, under its lock.
 */
#include "core.h"

#include <math.h>

enum { MOST_MARKS = 16, MOST_NOTES = 256, READY_AFTER = 1, ALL_PERCENT = 90 };

struct lode__marked {
  lode__marked *next;
  char *filter;
  size_t len;
  lode__rids rids;
  struct marked_seg {
    lode__slots *slots;   /* NULL: not marked yet */
    index_filtered *match;   /* NULL: not made ready */
    unsigned uses;
  } *segs;                /* of each segment */
  size_t n_segs;
  uint64_t bytes;
  bool listed;            /* else only this is known: */
  lode__filter_note note;
};

/* ---- Filters ---- */

void lode__marked_free(lode__marked *marks) {
  while (marks) {
    lode__marked *m = marks;
    marks = m->next;
    for (size_t i = 0; i < m->n_segs; i++) {
      lode__slots_release(m->segs[i].slots);
      index_filtered_free(m->segs[i].match);
    }
    mem_free(m->segs);
    mem_free(m->filter);
    mem_free(m->rids.v);
    mem_free(m);
  }
}

static lode__marked *find_mark(lode__vectors *v, const char *filter, size_t len, bool listed) {
  lode__marked *m = v->filter_cache;
  while (m && !(m->listed == listed && m->len == len && memcmp(m->filter, filter, len) == 0)) m = m->next;
  return m;
}

const lode__rids *lode__marked_find(lode__vectors *v, const char *filter, size_t len) {
  pthread_mutex_lock(&v->marks_lock);
  lode__marked *m = find_mark(v, filter, len, true);
  pthread_mutex_unlock(&v->marks_lock);
  return m ? &m->rids : NULL;
}

lode__filter_note lode__marked_noted(lode__vectors *v, const char *filter, size_t len) {
  pthread_mutex_lock(&v->marks_lock);
  const lode__marked *m = find_mark(v, filter, len, false);
  lode__filter_note note = m ? m->note : (lode__filter_note){0};
  pthread_mutex_unlock(&v->marks_lock);
  return note;
}

/* Entries may be in use by others: when there is no room, the new one is not kept, or not made ready. */
static bool has_room(const lode__vectors *v, uint64_t budget, uint64_t more) {
  uint64_t bytes = more;
  for (const lode__marked *m = v->filter_cache; m; m = m->next) bytes += m->bytes;
  return bytes <= budget;
}

/* Lists and notes each have places of their own: whoever asks with many filters takes none from those that come again. */
static bool has_place(const lode__vectors *v, bool listed) {
  size_t n = 0;
  for (const lode__marked *m = v->filter_cache; m; m = m->next) n += m->listed == listed;
  return n < (listed ? MOST_MARKS : MOST_NOTES);
}

static uint64_t marks_budget(const lode_store *store) { return store->options->memory_bytes / 8; }

static lode__marked *mark_new(const lode__vectors *v, const char *filter, size_t len) {
  lode__marked *m = mem_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->filter = mem_alloc(len + 1);
  m->segs = mem_calloc(v->n_segs, sizeof *m->segs);
  if (!m->filter || !m->segs) {
    lode__marked_free(m);
    return NULL;
  }
  memcpy(m->filter, filter, len);
  m->len = len;
  m->n_segs = v->n_segs;
  m->bytes = sizeof *m + len;
  return m;
}

/* Under the lock: the entry that there is, or m if there is room for it, or NULL. */
static lode__marked *keep_mark(const lode_store *store, lode__vectors *v, lode__marked *m) {
  lode__marked *old = find_mark(v, m->filter, m->len, m->listed);
  if (old) return old;
  if (!has_place(v, m->listed) || !has_room(v, marks_budget(store), m->bytes)) return NULL;
  m->next = v->filter_cache;
  return v->filter_cache = m;
}

const lode__rids *lode__marked_add(const lode_store *store, lode__vectors *v, const char *filter, size_t len, lode__rids *rids) {
  lode__marked *m = mark_new(v, filter, len);
  if (!m) return NULL;
  m->listed = true;
  m->bytes += rids->n * sizeof *rids->v;
  for (size_t i = 0; i < v->n_segs; i++) m->bytes += v->segs[i].seg->row.rows / 8;
  pthread_mutex_lock(&v->marks_lock);
  lode__marked *kept = keep_mark(store, v, m);
  if (kept == m) {
    m->rids = *rids;
    *rids = (lode__rids){0};
  }
  pthread_mutex_unlock(&v->marks_lock);
  if (kept != m) lode__marked_free(m);
  return kept ? &kept->rids : NULL;
}

void lode__marked_note(const lode_store *store, lode__vectors *v, const char *filter, size_t len, lode__filter_note more) {
  lode__marked *m = mark_new(v, filter, len);
  if (!m) return;
  pthread_mutex_lock(&v->marks_lock);
  lode__marked *kept = keep_mark(store, v, m);
  if (kept) {
    kept->note.evaluated += more.evaluated;
    kept->note.matched += more.matched;
    kept->note.scans |= more.scans;
  }
  pthread_mutex_unlock(&v->marks_lock);
  if (kept != m) lode__marked_free(m);
}

static lode_status mark(const lode__covered *c, const lode__rids *rids, lode__slots **out, lode_error *err) {
  size_t found = 0;
  index_segment_record *who = mem_calloc(rids->n, sizeof *who);
  lode__slots *slots = lode__slots_new(c->seg->row.rows, false);
  lode_status st = who && slots ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < rids->n && st == LODE_OK; i++) who[i].key = rids->v[i];
  if (st == LODE_OK) st = index_segment_mark(c->seg->segment, who, rids->n, slots->bits, &found, err);
  if (st == LODE_OK) {
    slots->n = 0;
    for (size_t w = 0; w < slots->words; w++) {
      if (c->live) slots->bits[w] &= c->live->bits[w];
      slots->n += (size_t)__builtin_popcountll(slots->bits[w]);
    }
    *out = slots;
    slots = NULL;
  }
  lode__slots_release(slots);
  mem_free(who);
  return st;
}

/* Is the filter worth a graph of its own here? */
static void make_ready(const lode_store *store, lode__vectors *v, lode__marked *m, size_t i) {
  struct marked_seg *s = &m->segs[i];
  index_segment *segment = v->segs[i].seg->segment;
  lode_error ignored;
  if (s->match || s->uses++ < READY_AFTER || s->slots->n == 0) return;
  if (segment->info.kind != INDEX_GRAPH || s->slots->n * 100 >= (size_t)segment->info.n * ALL_PERCENT) return;
  uint64_t bytes = index_filtered_bytes(segment, (uint32_t)s->slots->n);
  if (!has_room(v, marks_budget(store), bytes)) return;
  /* if it fails, the search itself will meet what is wrong */
  if (index_filtered_new(segment, s->slots->bits, (uint32_t)s->slots->n, &s->match, &ignored) == LODE_OK) m->bytes += bytes;
}

typedef struct allowed {
  lode__slots *slots;   /* NULL: all; to be released */
  index_filtered *match;   /* the snapshot's; NULL: not made ready */
} allowed;

/* The slots of a segment that may be answered. */
static lode_status find_allowed(const lode__nearest *near, lode__vectors *v, size_t i, allowed *out, lode_error *err) {
  const lode__covered *c = &v->segs[i];
  lode_status st = LODE_OK;
  *out = (allowed){0};
  if (!near->only) {
    out->slots = c->live;
    if (c->live) atomic_fetch_add_explicit(&c->live->refs, 1, memory_order_relaxed);
    return LODE_OK;
  }
  if (!near->filter) return mark(c, near->only, &out->slots, err);
  pthread_mutex_lock(&v->marks_lock);
  lode__marked *m = find_mark(v, near->filter, near->filter_len, true);
  if (m && !m->segs[i].slots) st = mark(c, &m->rids, &m->segs[i].slots, err);
  if (m && st == LODE_OK) {
    make_ready(near->reader->handle->store, v, m, i);
    *out = (allowed){m->segs[i].slots, m->segs[i].match};
    atomic_fetch_add_explicit(&out->slots->refs, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&v->marks_lock);
  return m ? st : mark(c, near->only, &out->slots, err);
}

/* ---- Rooms ---- */

static index_search_scratch *take_room(lode_store *store) {
  index_search_scratch *room = NULL;
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < LODE__KEPT_ROOMS && !room; i++) {
    room = store->scratch[i];
    store->scratch[i] = NULL;
  }
  pthread_mutex_unlock(&store->lock);
  return room ? room : mem_calloc(1, sizeof *room);
}

static void give_room(lode_store *store, index_search_scratch *room) {
  pthread_mutex_lock(&store->lock);
  for (size_t i = 0; i < LODE__KEPT_ROOMS && room; i++) {
    if (store->scratch[i]) continue;
    store->scratch[i] = room;
    room = NULL;
  }
  pthread_mutex_unlock(&store->lock);
  if (!room) return;
  index_search_scratch_release(room);
  mem_free(room);
}

/* ---- The search ---- */

static lode_status take_hits(lode__best *best, const index_hit *hits, size_t n, lode_error *err) {
  for (size_t i = 0; i < n; i++) {
    float d = isnan(hits[i].distance) ? INFINITY : hits[i].distance;
    if (!kernel_topk_wants(&best->top, d)) continue;
    if (!lode__best_push(best, d, hits[i].record.key, (int64_t)hits[i].record.cursor)) return err_nomem(err);
  }
  return LODE_OK;
}

/* What a search works with. */
typedef struct search_kit {
  lode__vectors *v;
  index_search_scratch *room;
  index_hit *hits; /* near->k of them */
} search_kit;

/* Pages that are too many are given back after each query: a group of queries may touch all there are. */
static lode_status search_segment(lode__nearest *near, const search_kit *kit, size_t seg, const allowed *may, lode_error *err) {
  index_segment *segment = kit->v->segs[seg].seg->segment;
  size_t n = 0;
  index_search_request request = {.k = near->k, .beam = near->effort, .recall = near->target_recall,
                                  .allowed = may->slots ? may->slots->bits : NULL, .match = may->match};
  for (size_t q = 0; q < near->n; q++) {
    TRY(lode__reader_pause_if_old(near->reader, err));
    request.query = near->queries + q * near->dim;
    TRY(index_search(segment, &request, kit->room, kit->hits, &n, err));
    TRY(take_hits(&near->best[q], kit->hits, n, err));
    if (n == near->k) near->best[q].full = true; /* more may be there */
    lode__vectors_trim(near->reader->handle->store, kit->v);
  }
  return LODE_OK;
}

lode_status lode__indexed_search(lode__nearest *near, lode__vectors *v, bool *damaged, lode_error *err) {
  lode_store *store = near->reader->handle->store;
  lode_status st = LODE_OK;
  lode_error why;
  search_kit kit = {.v = v, .room = take_room(store), .hits = mem_calloc(near->k, sizeof *kit.hits)};
  if (!kit.room || !kit.hits) st = err_nomem(err);
  for (size_t i = 0; i < v->n_segs && st == LODE_OK; i++) {
    allowed may;
    if (v->segs[i].seg->segment->info.kind == INDEX_FLAT) continue; /* nearest.c reads them wholly */
    st = find_allowed(near, v, i, &may, &why);
    if (st == LODE_OK && (!may.slots || may.slots->n)) st = search_segment(near, &kit, i, &may, &why);
    lode__slots_release(may.slots);
    if (st == LODE_OK) continue;
    if (st == LODE_NOMEM || near->reader->gave_way) { /* says nothing about the file */
      st = err_set(err, st, "%s", why.text);
      break;
    }
    lode__seg_suspect(store, v->segs[i].seg->row.id, st, why.text);
    *damaged = true;
    st = LODE_OK;
    break;
  }
  if (kit.room) give_room(store, kit.room);
  mem_free(kit.hits);
  return st;
}

void lode__indexed_forget(lode_store *store) {
  for (size_t i = 0; i < LODE__KEPT_ROOMS; i++) {
    if (!store->scratch[i]) continue;
    index_search_scratch_release(store->scratch[i]);
    mem_free(store->scratch[i]);
    store->scratch[i] = NULL;
  }
}
