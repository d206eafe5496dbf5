/* nearest.c - the nearest vectors to some queries.
 *
 * Where the vectors come from:
 *   record by record   a selection of few records: each vector is read by its key
 *   segments           those that the index holds: walked or scanned by codes and ranked exactly (indexed.c), or, when
 *                      the caller wants exact results, all read
 *   memory             the others, as a snapshot of vectors.c holds them, scanned
 *   stream             those that do not fit in memory: read from the store in short transactions
 * A long scan is done without a transaction, and one that turns out to be long (each block of rows and each query of a
 * segment looks at the clock) goes on without it; the vectors that have come since are then scanned in a new one. A stream
 * goes from small keys to large: what is written meanwhile has larger keys and is met at its end. So in each case all
 * living vectors of the last transaction have been looked at, and some that died on the way; the caller looks at the
 * candidates again in that transaction, and asks for some more than it needs because some may have died. That is why
 * a search of all records may follow later moments (reader.c). A list of records is of one moment, and so is its
 * search.
 * A segment that turns out to be damaged is left out, and the search done again: its vectors come from the store then.
 *
 * The k best are kept together with all others at the k-th distance: which of those belong to the answer is decided by
 * their ids, which are not known here. Distances that overflowed to NaN count as infinite.
 */
#include "core.h"

#include <math.h>

enum { BLOCK_ROWS = 256, BLOCK_QUERIES = 8, LOOK_EVERY = 16, FEW_RECORDS = 8, FEW_WHEN_COLD = 2000 };
uint64_t lode__scan_in_tx_bytes = (uint64_t)128 << 20; /* some 20 ms */

/* ---- The best ---- */

static bool add_tie(lode__best *b, kernel_neighbour item) {
  if (!mem_grow(&b->ties, &b->cap_ties, b->n_ties + 1, sizeof *b->ties)) return false;
  b->ties[b->n_ties++] = item;
  return true;
}

bool lode__best_push(lode__best *b, float distance, int64_t rid, int64_t vid) {
  kernel_topk *top = &b->top;
  if (top->n < top->k) {
    if (!mem_grow(&top->heap, &b->cap, top->n + 1, sizeof *top->heap)) return false;
    kernel_topk_push(top, distance, rid, vid);
    return true;
  }
  kernel_neighbour farthest = top->heap[0];
  if (distance == farthest.distance) return add_tie(b, (kernel_neighbour){distance, rid, vid});
  kernel_topk_push(top, distance, rid, vid);
  if (top->heap[0].distance == farthest.distance) return add_tie(b, farthest);
  b->n_ties = 0;
  b->full = true;
  return true;
}

/* ---- Blocks of rows ---- */

typedef struct block {
  const float *data, *norms;
  size_t stride, n;
  const int64_t *rid, *vid;
  const lode__vectors *snapshot; /* knows who is dead; NULL: nobody is */
} block;

static bool is_alive(const block *b, size_t i) {
  return !b->snapshot || lode__vectors_alive(b->snapshot, b->rid[i], b->vid[i]);
}

/* Distances of some queries to the rows that take part. */
static void measure(const lode__nearest *near, const block *b, size_t q, size_t nq, const bool *takes_part, bool few,
                    float *out) {
  kernel_rows queries = {near->queries + q * near->dim, near->norms + q, nq, near->dim, near->dim};
  kernel_rows rows = {b->data, b->norms, b->n, near->dim, b->stride};
  if (!few) {
    kernel_distances_many(near->metric, &queries, &rows, out, BLOCK_ROWS);
    return;
  }
  for (size_t i = 0; i < b->n; i++) {
    if (!takes_part[i]) continue;
    kernel_rows one = {b->data + i * b->stride, b->norms + i, 1, near->dim, b->stride};
    kernel_distances_many(near->metric, &queries, &one, out + i, BLOCK_ROWS);
  }
}

static bool keep_best(lode__best *best, const block *b, const bool *takes_part, const float *distances) {
  for (size_t i = 0; i < b->n; i++) {
    if (!takes_part[i]) continue;
    float d = isnan(distances[i]) ? INFINITY : distances[i];
    if (!kernel_topk_wants(&best->top, d)) {
      best->full = best->full || is_alive(b, i);
      continue;
    }
    if (is_alive(b, i) && !lode__best_push(best, d, b->rid[i], b->vid[i])) return false;
  }
  return true;
}

static lode_status look_at(lode__nearest *near, const block *b, size_t *hint, lode_error *err) {
  float distances[BLOCK_QUERIES * BLOCK_ROWS];
  bool takes_part[BLOCK_ROWS];
  size_t n = 0;
  for (size_t i = 0; i < b->n; i++) {
    takes_part[i] = !near->only || lode__rids_have(near->only, b->rid[i], hint);
    n += takes_part[i];
  }
  if (n == 0) return LODE_OK;
  for (size_t q = 0; q < near->n; q += BLOCK_QUERIES) {
    size_t nq = near->n - q < BLOCK_QUERIES ? near->n - q : BLOCK_QUERIES;
    measure(near, b, q, nq, takes_part, n * 4 < b->n, distances);
    for (size_t i = 0; i < nq; i++)
      if (!keep_best(&near->best[q + i], b, takes_part, distances + i * BLOCK_ROWS)) return err_nomem(err);
  }
  return LODE_OK;
}

/* ---- From memory ---- */

static uint32_t first_after(const lode__part *p, int64_t vid) {
  uint32_t low = p->from, high = p->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (p->chunk->vid[middle] <= vid)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* All rows with keys larger than after_vid. */
static lode_status scan_memory(lode__nearest *near, const lode__vectors *v, int64_t after_vid, lode_error *err) {
  size_t hint = 0;
  for (size_t p = 0; p < v->n_parts; p++) {
    const lode__part *part = &v->parts[p];
    const lode__chunk *c = part->chunk;
    for (uint32_t i = first_after(part, after_vid); i < part->n; i += BLOCK_ROWS) {
      block b = {
          .data = c->rows + (size_t)i * v->stride,
          .norms = c->norms + i,
          .stride = v->stride,
          .n = part->n - i < BLOCK_ROWS ? part->n - i : BLOCK_ROWS,
          .rid = c->rid + i,
          .vid = c->vid + i,
          .snapshot = v,
      };
      TRY(lode__reader_pause_if_old(near->reader, err));
      TRY(look_at(near, &b, &hint, err));
    }
  }
  return LODE_OK;
}

/* ---- From the store ---- */

typedef struct stream {
  lode__nearest *near;
  const lode__vectors *v; /* whose segments are passed over; NULL: nothing is */
  float *rows, *norms;
  int64_t rid[BLOCK_ROWS], vid[BLOCK_ROWS];
  size_t n;
  int64_t last_vid;
  size_t hint;
  uint64_t met, cursor;   /* all of them so far, and the commit that all transactions saw; */
  bool moved;             /* or they did not */
} stream;

static lode_status flush(stream *s, lode_error *err) {
  size_t dim = s->near->dim;
  for (size_t i = 0; i < s->n; i++) s->norms[i] = kernel_dot(s->rows + i * dim, s->rows + i * dim, dim);
  block b = {.data = s->rows, .norms = s->norms, .stride = dim, .n = s->n, .rid = s->rid, .vid = s->vid};
  s->n = 0;
  return look_at(s->near, &b, &s->hint, err);
}

/* One transaction's worth, of one gap between segments at most; *ended says that the last vector was reached. */
static lode_status stream_some(stream *s, bool *ended, lode_error *err) {
  lode__reader *reader = s->near->reader;
  int64_t from = s->last_vid, to = INT64_MAX;
  bool more = true, behind = false;
  *ended = false;
  s->moved |= s->cursor && s->cursor != store_tx_cursor(reader->tx);
  s->cursor = store_tx_cursor(reader->tx);
  if (s->v && !lode__vectors_gap(s->v, s->last_vid, &from, &to)) {
    *ended = true;
    return LODE_OK;
  }
  s->last_vid = from;
  TRY(store_vec_scan(reader->tx, reader->coll.cid, from, err));
  while (more && !behind) {
    const void *data;
    uint32_t dim;
    TRY(store_vec_next(reader->tx, &s->vid[s->n], &s->rid[s->n], &data, &dim, &more, err));
    behind = more && s->vid[s->n] > to;
    if (more && dim != s->near->dim)
      return err_set(err, LODE_CORRUPT, "a stored vector has %u dimensions in a collection of %u: run `lode db verify`",
                        dim, s->near->dim);
    if (behind) s->last_vid = to;
    if (more && !behind) {
      memcpy(s->rows + s->n * dim, data, (size_t)dim * sizeof(float));
      s->last_vid = s->vid[s->n++];
      s->met++;
    }
    if (s->n < BLOCK_ROWS && more && !behind) continue;
    TRY(flush(s, err));
    if (more && !behind && lode__reader_is_old(reader)) return LODE_OK;
  }
  *ended = !more;
  return LODE_OK;
}

static lode_status run_stream(lode__nearest *near, const lode__vectors *v, lode_error *err) {
  stream *s = mem_calloc(1, sizeof *s);
  lode_status st = LODE_OK;
  bool ended = false;
  if (!s) return err_nomem(err);
  s->near = near;
  s->v = v;
  s->rows = mem_alloc_aligned(64, (size_t)BLOCK_ROWS * near->dim * sizeof(float));
  s->norms = mem_alloc_aligned(64, BLOCK_ROWS * sizeof(float));
  if (!s->rows || !s->norms) st = err_nomem(err);
  while (st == LODE_OK && !ended) {
    st = lode__reader_renew_if_old(near->reader, err);
    if (st == LODE_OK) st = stream_some(s, &ended, err);
  }
  const store_coll *c = &near->reader->coll;
  if (st == LODE_OK && !v && !s->moved && !near->reader->borrowed && s->met != c->records - c->pending)
    st = lode__vectors_lost(c, s->met, err);
  mem_free(s->rows);
  mem_free(s->norms);
  mem_free(s);
  return st;
}

/* ---- All of a segment ---- */

typedef struct whole {
  float *rows, *norms;
  index_segment_record records[BLOCK_ROWS];
  int64_t rid[BLOCK_ROWS], vid[BLOCK_ROWS];
} whole;

static bool slot_lives(const lode__covered *c, uint32_t slot) {
  return !c->live || (c->live->bits[slot / 64] >> (slot % 64) & 1);
}

static lode_status read_block(lode__nearest *near, const lode__covered *c, uint32_t first, uint32_t n, whole *w, size_t *hint,
                              lode_error *err) {
  size_t dim = near->dim, kept = 0;
  TRY(index_segment_get_block(c->seg->segment, first, n, w->rows, w->records, err));
  for (uint32_t i = 0; i < n; i++) {
    if (!slot_lives(c, first + i)) continue;
    if (kept != i) memcpy(w->rows + kept * dim, w->rows + i * dim, dim * sizeof(float));
    w->rid[kept] = w->records[i].key;
    w->vid[kept] = (int64_t)w->records[i].cursor;
    kept++;
  }
  if (near->metric == LODE_COSINE)
    for (size_t i = 0; i < kept; i++) w->norms[i] = kernel_dot(w->rows + i * dim, w->rows + i * dim, dim);
  block b = {.data = w->rows, .norms = w->norms, .stride = dim, .n = kept, .rid = w->rid, .vid = w->vid};
  return look_at(near, &b, hint, err);
}

/* Every living vector of the segments, by blocks: of all, or of those without a graph, which are small. */
static lode_status scan_segments(lode__nearest *near, lode__vectors *v, bool all, bool *damaged, lode_error *err) {
  lode_status st = LODE_OK;
  lode_error why;
  whole *w = mem_calloc(1, sizeof *w);
  if (!w) return err_nomem(err);
  w->rows = mem_alloc_aligned(64, (size_t)BLOCK_ROWS * near->dim * sizeof(float));
  w->norms = mem_calloc(BLOCK_ROWS, sizeof(float));
  if (!w->rows || !w->norms) st = err_nomem(err);
  for (size_t i = 0; i < v->n_segs && st == LODE_OK; i++) {
    const lode__covered *c = &v->segs[i];
    uint32_t rows = c->seg->row.rows;
    size_t hint = 0;
    if (!all && c->seg->segment->info.kind == INDEX_GRAPH) continue;
    for (uint32_t at = 0; at < rows && st == LODE_OK; at += BLOCK_ROWS) {
      TRY_GOTO(lode__reader_pause_if_old(near->reader, err));
      st = read_block(near, c, at, rows - at < BLOCK_ROWS ? rows - at : BLOCK_ROWS, w, &hint, &why);
    }
    if (st == LODE_OK) continue;
    if (st != LODE_NOMEM) lode__seg_suspect(c->seg->store, c->seg->row.id, st, why.text);
    *damaged = st != LODE_NOMEM;
    st = *damaged ? LODE_OK : err_nomem(err);
    break;
  }
done:
  mem_free(w->rows);
  mem_free(w->norms);
  mem_free(w);
  lode__vectors_trim(near->reader->handle->store, v);
  return st;
}

/* ---- A snapshot ---- */

/* Does the order depend on ids alone, or is so much asked for that an index does not help? */
static bool must_be_exact(const lode__nearest *near, const lode__vectors *v) {
  uint64_t rows = 0;
  if (near->exact) return true;
  for (size_t q = 0; q < near->n && near->metric == LODE_COSINE; q++)
    if (!(near->norms[q] > 0)) return true;
  for (size_t i = 0; i < v->n_segs; i++) rows += v->segs[i].seg->row.rows;
  return v->n_segs && near->k > rows / 8;
}

static uint64_t bytes_to_read(const lode__nearest *near, const lode__vectors *v, bool exact) {
  uint64_t rows = v->rows;
  for (size_t i = 0; i < v->n_segs && exact; i++) rows += v->segs[i].seg->row.rows;
  return rows * v->stride * sizeof(float) * near->n;
}

/* The vectors in memory, and as long as that was done without a transaction, those that have come since. */
static lode_status scan_to_present(lode__nearest *near, lode__vectors *v, bool *again, lode_error *err) {
  lode__reader *reader = near->reader;
  lode__vectors *held = NULL;
  int64_t seen = 0;
  lode_status st;
  for (;;) {
    lode__vectors *later = NULL;
    TRY_GOTO(scan_memory(near, v, seen, err));
    if (reader->tx) break;
    TRY_GOTO(lode__reader_begin(reader, err));
    TRY_GOTO(lode__vectors_get(reader, &later, err));
    seen = v->last_vid;
    lode__vectors_release(held);
    held = v = later;
    *again = !v || v->dim != near->dim || v->streams || (v->n_segs && v->segs[v->n_segs - 1].last > seen);
    if (*again) break;
  }
done:
  lode__vectors_release(held);
  return st;
}

static lode_status run_snapshot(lode__nearest *near, lode__vectors *v, bool *damaged, bool *again, lode_error *err) {
  lode__reader *reader = near->reader;
  if (v->dim != near->dim) {
    *again = true;
    return LODE_OK;
  }
  for (size_t q = 0; q < near->n; q++) { /* so many may turn out to be dead */
    size_t *k = &near->best[q].top.k;
    *k = *k > SIZE_MAX - v->unknown ? SIZE_MAX : *k + v->unknown;
  }
  bool exact = must_be_exact(near, v);
  bool in_tx = bytes_to_read(near, v, exact) <= lode__scan_in_tx_bytes;
  if (!in_tx && !v->streams) lode__reader_pause(reader);
  if (v->n_segs && !exact) TRY(lode__indexed_search(near, v, damaged, err));
  if (v->n_segs && !*damaged) TRY(scan_segments(near, v, exact, damaged, err));
  if (*damaged) return LODE_OK;
  if (!v->streams) return scan_to_present(near, v, again, err);
  TRY(lode__reader_begin(reader, err));
  return run_stream(near, v, err);
}

static lode_status run_by_record(lode__nearest *near, lode_error *err) {
  lode_status st = LODE_OK;
  size_t hint = 0;
  float *row = mem_alloc_aligned(64, (size_t)near->dim * sizeof(float));
  if (!row) return err_nomem(err);
  near->by_record = true;
  for (size_t i = 0; i < near->only->n; i++) {
    store_rec rec;
    bool found;
    if (i % LOOK_EVERY == 0) TRY_GOTO(lode__reader_renew_if_old(near->reader, err));
    TRY_GOTO(store_rec_read(near->reader->tx, near->only->v[i], &rec, &found, err));
    if (!found || !rec.vid) continue;
    TRY_GOTO(store_rec_vector(near->reader->tx, rec.vid, row, near->dim, err));
    float norm = kernel_dot(row, row, near->dim);
    block b = {.data = row, .norms = &norm, .stride = near->dim, .n = 1, .rid = &rec.rid, .vid = &rec.vid};
    TRY_GOTO(look_at(near, &b, &hint, err));
  }
done:
  mem_free(row);
  return st;
}

/* ---- The search ---- */

lode_status lode__nearest_init(lode__nearest *near, lode__reader *reader, const float *queries, size_t n, size_t want,
                               const lode__rids *only, lode_error *err) {
  *near = (lode__nearest){.reader = reader, .metric = reader->coll.metric, .dim = reader->coll.dim, .queries = queries,
                          .n = n, .only = only};
  near->k = want;
  near->norms = mem_calloc(n, sizeof *near->norms);
  near->best = mem_calloc(n, sizeof *near->best);
  if (!near->norms || !near->best) {
    lode__nearest_release(near);
    return err_nomem(err);
  }
  for (size_t q = 0; q < n; q++) {
    near->norms[q] = kernel_dot(queries + q * near->dim, queries + q * near->dim, near->dim);
    near->best[q].top.k = want;
  }
  return LODE_OK;
}

static lode_status find_published(void *ctx, const store_manifest_row *row, lode_error *err) {
  bool *found = ctx;
  (void)err;
  *found = *found || row->bytes > 0;
  return LODE_OK;
}

/* Reading a vector by its key costs some ten times what scanning past it does, in memory some hundred times; where there is
 * an index in use it is worth while for a handful only. */
static lode_status few_enough(const lode__nearest *near, bool *few, lode_error *err) {
  uint64_t all = near->reader->coll.records;
  bool indexed = false;
  *few = near->only && near->only->n <= FEW_RECORDS;
  if (!near->only || *few) return LODE_OK;
  bool loaded = lode__vectors_loaded(near->reader->handle);
  TRY(store_manifest_each(near->reader->tx, near->reader->coll.cid, find_published, &indexed, err));
  if (indexed) *few = near->only->n <= (loaded ? FEW_RECORDS : FEW_WHEN_COLD);
  else *few = near->only->n < all / (loaded ? 32 : 4);
  return LODE_OK;
}

static void start_over(lode__nearest *near, const size_t *wanted) {
  for (size_t q = 0; q < near->n; q++) {
    near->best[q].top.n = near->best[q].n_ties = 0;
    near->best[q].top.k = *wanted;
    near->best[q].full = false;
  }
}

static lode_status search_from(lode__nearest *near, bool *again, lode_error *err) {
  size_t wanted = near->best[0].top.k;
  bool damaged = true, few;
  TRY(lode__reader_begin(near->reader, err));
  TRY(few_enough(near, &few, err));
  if (few) return run_by_record(near, err);
  if (near->from_truth) return run_stream(near, NULL, err);
  while (damaged) { /* each round leaves out one segment more */
    lode__vectors *v = NULL;
    damaged = false;
    start_over(near, &wanted);
    TRY(lode__vectors_get(near->reader, &v, err));
    lode_status st = v ? run_snapshot(near, v, &damaged, again, err) : run_stream(near, NULL, err);
    lode__vectors_release(v);
    TRY(st);
    if (damaged) TRY(lode__reader_begin(near->reader, err));
  }
  return LODE_OK;
}

lode_status lode__nearest_run(lode__nearest *near, bool *again, lode_error *err) {
  lode__reader *reader = near->reader;
  *again = false;
  if (reader->coll.dim == 0 || (near->only && near->only->n == 0)) return LODE_OK;
  if (near->only || reader->taken) return search_from(near, again, err);
  (void)lode__reader_follow(reader);
  lode_status st = search_from(near, again, err);
  lode_status settled = lode__reader_settle(reader, st == LODE_OK ? err : NULL);
  return st == LODE_OK ? settled : st;
}

void lode__nearest_release(lode__nearest *near) {
  for (size_t q = 0; near->best && q < near->n; q++) {
    mem_free(near->best[q].top.heap);
    mem_free(near->best[q].ties);
  }
  mem_free(near->best);
  mem_free(near->norms);
  *near = (lode__nearest){0};
}
