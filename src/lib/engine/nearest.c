/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - the nearest vectors to some queries.
 *
 * Where the vectors come from; the plan (query_plan.c) says which:
 *   record by record   a selection of few records: each vector is read by its key
 *   segments           vectors in the index: found by quantised codes, through the graph or by a scan, and reranked
 *                      exactly (segment_search.c); all read if exact search was asked for
 *   memory             the others, in chunks of a snapshot (vector_snapshot.c): scanned
 *   stream             vectors that do not fit in memory: read from the store in short transactions
 * A long scan runs without a transaction, and one that turns out to be long (the clock is checked at each block of rows
 * and each query of a segment) continues without it; vectors added since are then scanned in a new one. A stream goes
 * from small keys to large ones: what is written meanwhile has larger keys and is seen at the end. So in each case all
 * live vectors of the last transaction have been considered, and some that died on the way; the caller checks the
 * candidates again in that transaction, and asks for a few more than it needs. That is why a search of all records may
 * accept later moments (reader.c). A list of records is of one moment, and so is a search of it. If a segment turns out
 * to be damaged, the search is repeated without it: its vectors then come from the store.
 *
 * The k best are kept together with all others at the k-th distance: which of those belong to the result is decided by
 * their ids, which are not known here. Distances that overflowed to NaN count as infinite.
 */
#include "engine/nearest.h"

#include <math.h>

enum {
  NEAREST_BLOCK_ROWS = 256,  /* rows of a block */
  NEAREST_BLOCK_QUERIES = 8, /* queries compared with a block at a time */
  NEAREST_CHECK_EVERY = 16,  /* records between two checks of the transaction's age */
};
uint64_t engine_scan_in_tx_bytes = (uint64_t)128 << 20; /* about 20 ms */

/* ---- The best ---- */

static bool best_add_tie(engine_best *b, kernel_neighbour item) {
  if (!mem_grow(&b->ties, &b->cap_ties, b->n_ties + 1, sizeof *b->ties)) return false;
  b->ties[b->n_ties++] = item;
  return true;
}

bool engine_best_push(engine_best *b, float distance, int64_t rid, int64_t vid) {
  kernel_topk *top = &b->top;
  if (top->n < top->k) {
    if (!mem_grow(&top->heap, &b->cap, top->n + 1, sizeof *top->heap)) return false;
    kernel_topk_push(top, distance, rid, vid);
    return true;
  }
  kernel_neighbour farthest = top->heap[0];
  if (distance == farthest.distance) return best_add_tie(b, (kernel_neighbour){distance, rid, vid});
  kernel_topk_push(top, distance, rid, vid);
  if (top->heap[0].distance == farthest.distance) return best_add_tie(b, farthest);
  b->n_ties = 0;
  b->full = true;
  return true;
}

/* ---- Blocks of rows ---- */

typedef struct nearest_block {
  const float *data, *norms;
  size_t stride, n;
  const int64_t *rid, *vid;
  const engine_snapshot *snapshot; /* knows which rows are dead; NULL: none */
} nearest_block;

static bool nearest_row_is_live(const nearest_block *b, size_t i) {
  return !b->snapshot || engine_snapshot_is_live(b->snapshot, b->rid[i], b->vid[i]);
}

/* Distances of nq queries from q on to the rows that take part. */
static void nearest_distances(const engine_nearest *near, const nearest_block *b, size_t q, size_t nq,
                              const bool *takes_part, bool few, float *out) {
  kernel_rows queries = {near->queries + q * near->dim, near->norms + q, nq, near->dim, near->dim};
  kernel_rows rows = {b->data, b->norms, b->n, near->dim, b->stride};
  if (!few) {
    kernel_distances_many(near->metric, &queries, &rows, out, NEAREST_BLOCK_ROWS);
    return;
  }
  for (size_t i = 0; i < b->n; i++) {
    if (!takes_part[i]) continue;
    kernel_rows one = {b->data + i * b->stride, b->norms + i, 1, near->dim, b->stride};
    kernel_distances_many(near->metric, &queries, &one, out + i, NEAREST_BLOCK_ROWS);
  }
}

static bool nearest_push_block(engine_best *best, const nearest_block *b, const bool *takes_part,
                               const float *distances) {
  for (size_t i = 0; i < b->n; i++) {
    if (!takes_part[i]) continue;
    float d = isnan(distances[i]) ? INFINITY : distances[i];
    if (!kernel_topk_wants(&best->top, d)) {
      best->full = best->full || nearest_row_is_live(b, i);
      continue;
    }
    if (nearest_row_is_live(b, i) && !engine_best_push(best, d, b->rid[i], b->vid[i])) return false;
  }
  return true;
}

static lode_status nearest_scan_block(engine_nearest *near, const nearest_block *b, size_t *hint, lode_error *err) {
  float distances[NEAREST_BLOCK_QUERIES * NEAREST_BLOCK_ROWS];
  bool takes_part[NEAREST_BLOCK_ROWS];
  size_t n = 0;
  for (size_t i = 0; i < b->n; i++) {
    takes_part[i] = !near->only || engine_rids_contain(near->only, b->rid[i], hint);
    n += takes_part[i];
  }
  if (n == 0) return LODE_OK;
  near->trace->scanned += n;
  for (size_t q = 0; q < near->n; q += NEAREST_BLOCK_QUERIES) {
    size_t nq = near->n - q < NEAREST_BLOCK_QUERIES ? near->n - q : NEAREST_BLOCK_QUERIES;
    nearest_distances(near, b, q, nq, takes_part, n * 4 < b->n, distances);
    for (size_t i = 0; i < nq; i++)
      if (!nearest_push_block(&near->best[q + i], b, takes_part, distances + i * NEAREST_BLOCK_ROWS))
        return err_nomem(err);
  }
  return LODE_OK;
}

/* ---- From memory ---- */

/* Scans all rows with vid > after_vid. */
static lode_status nearest_scan_memory(engine_nearest *near, const engine_snapshot *v, int64_t after_vid,
                                       lode_error *err) {
  size_t hint = 0;
  for (size_t p = 0; p < v->n_parts; p++) {
    const engine_chunk_part *part = &v->parts[p];
    const engine_chunk *c = part->chunk;
    for (uint32_t i = engine_chunk_first_after(part, after_vid); i < part->n; i += NEAREST_BLOCK_ROWS) {
      nearest_block b = {
          .data = c->rows + (size_t)i * v->stride,
          .norms = c->norms + i,
          .stride = v->stride,
          .n = part->n - i < NEAREST_BLOCK_ROWS ? part->n - i : NEAREST_BLOCK_ROWS,
          .rid = c->rid + i,
          .vid = c->vid + i,
          .snapshot = v,
      };
      TRY(engine_reader_yield_if_old(near->reader, err));
      TRY(nearest_scan_block(near, &b, &hint, err));
    }
  }
  return LODE_OK;
}

/* ---- From the store ---- */

typedef struct nearest_stream {
  engine_nearest *near;
  const engine_snapshot *v; /* whose segments are skipped; NULL: nothing is */
  float *rows, *norms;
  int64_t rid[NEAREST_BLOCK_ROWS], vid[NEAREST_BLOCK_ROWS];
  size_t n;
  int64_t last_vid;
  size_t hint;
  uint64_t met;    /* vectors seen so far */
  uint64_t cursor; /* of the last transaction */
  bool moved;      /* the transactions saw different commits */
} nearest_stream;

static lode_status nearest_stream_flush(nearest_stream *s, lode_error *err) {
  size_t dim = s->near->dim;
  for (size_t i = 0; i < s->n; i++) s->norms[i] = kernel_dot(s->rows + i * dim, s->rows + i * dim, dim);
  nearest_block b = {.data = s->rows, .norms = s->norms, .stride = dim, .n = s->n, .rid = s->rid, .vid = s->vid};
  s->n = 0;
  return nearest_scan_block(s->near, &b, &s->hint, err);
}

/* Reads until the transaction is old or one gap between segments ends. *ended: the last vector was reached. */
static lode_status nearest_stream_some(nearest_stream *s, bool *ended, lode_error *err) {
  engine_reader *reader = s->near->reader;
  int64_t from = s->last_vid, to = INT64_MAX;
  bool more = true, past_gap = false;
  *ended = false;
  s->moved |= s->cursor && s->cursor != store_tx_cursor(reader->tx);
  s->cursor = store_tx_cursor(reader->tx);
  if (s->v && !engine_snapshot_next_gap(s->v, s->last_vid, &from, &to)) {
    *ended = true;
    return LODE_OK;
  }
  s->last_vid = from;
  TRY(store_vec_scan(reader->tx, reader->coll.cid, from, err));
  while (more && !past_gap) {
    const void *data;
    uint32_t dim;
    TRY(store_vec_next(reader->tx, &s->vid[s->n], &s->rid[s->n], &data, &dim, &more, err));
    past_gap = more && s->vid[s->n] > to;
    if (more && dim != s->near->dim)
      return err_set(err, LODE_CORRUPT, "a stored vector has %u dimensions in a collection of %u: run `lode db verify`",
                     dim, s->near->dim);
    if (past_gap) s->last_vid = to;
    if (more && !past_gap) {
      memcpy(s->rows + s->n * dim, data, (size_t)dim * sizeof(float));
      s->last_vid = s->vid[s->n++];
      s->met++;
    }
    if (s->n < NEAREST_BLOCK_ROWS && more && !past_gap) continue;
    TRY(nearest_stream_flush(s, err));
    if (more && !past_gap && engine_reader_is_old(reader)) return LODE_OK;
  }
  *ended = !more;
  return LODE_OK;
}

static lode_status nearest_run_stream(engine_nearest *near, const engine_snapshot *v, lode_error *err) {
  nearest_stream *s = mem_calloc(1, sizeof *s);
  lode_status st = LODE_OK;
  bool ended = false;
  if (!s) return err_nomem(err);
  s->near = near;
  s->v = v;
  s->rows = mem_alloc_aligned(64, (size_t)NEAREST_BLOCK_ROWS * near->dim * sizeof(float));
  s->norms = mem_alloc_aligned(64, NEAREST_BLOCK_ROWS * sizeof(float));
  if (!s->rows || !s->norms) st = err_nomem(err);
  while (st == LODE_OK && !ended) {
    st = engine_reader_renew_if_old(near->reader, err);
    if (st == LODE_OK) st = nearest_stream_some(s, &ended, err);
  }
  const store_coll *c = &near->reader->coll;
  if (st == LODE_OK && !v && !s->moved && !near->reader->borrowed && s->met != c->records - c->pending)
    st = engine_lost_vectors(c, s->met, err);
  mem_free(s->rows);
  mem_free(s->norms);
  mem_free(s);
  return st;
}

/* ---- All of a segment ---- */

typedef struct nearest_segment_scan {
  float *rows, *norms;
  index_segment_record records[NEAREST_BLOCK_ROWS];
  int64_t rid[NEAREST_BLOCK_ROWS], vid[NEAREST_BLOCK_ROWS];
} nearest_segment_scan;

static bool nearest_slot_is_live(const engine_segment_view *c, uint32_t slot) {
  return !c->live || (c->live->bits[slot / 64] >> (slot % 64) & 1);
}

static lode_status nearest_read_block(engine_nearest *near, const engine_segment_view *c, uint32_t first, uint32_t n,
                                      nearest_segment_scan *w, size_t *hint, lode_error *err) {
  size_t dim = near->dim, kept = 0;
  index_fetch fetch = {engine_nearest_fetch, near};
  TRY(index_segment_get_block(c->seg->segment, first, n, w->rows, w->records, &fetch, err));
  for (uint32_t i = 0; i < n; i++) {
    if (!nearest_slot_is_live(c, first + i) || index_vector_is_gone(w->rows + i * dim)) continue;
    if (kept != i) memcpy(w->rows + kept * dim, w->rows + i * dim, dim * sizeof(float));
    w->rid[kept] = w->records[i].key;
    w->vid[kept] = (int64_t)w->records[i].cursor;
    kept++;
  }
  if (near->metric == LODE_COSINE)
    for (size_t i = 0; i < kept; i++) w->norms[i] = kernel_dot(w->rows + i * dim, w->rows + i * dim, dim);
  nearest_block b = {.data = w->rows, .norms = w->norms, .stride = dim, .n = kept, .rid = w->rid, .vid = w->vid};
  return nearest_scan_block(near, &b, hint, err);
}

/* Scans every live vector of the segments. */
static lode_status nearest_scan_segments(engine_nearest *near, engine_snapshot *v, bool *damaged, lode_error *err) {
  lode_status st = LODE_OK;
  lode_error why;
  nearest_segment_scan *w = mem_calloc(1, sizeof *w);
  if (!w) return err_nomem(err);
  w->rows = mem_alloc_aligned(64, (size_t)NEAREST_BLOCK_ROWS * near->dim * sizeof(float));
  w->norms = mem_calloc(NEAREST_BLOCK_ROWS, sizeof(float));
  if (!w->rows || !w->norms) st = err_nomem(err);
  for (size_t i = 0; i < v->n_segs && st == LODE_OK; i++) {
    const engine_segment_view *c = &v->segs[i];
    uint32_t rows = c->seg->row.rows;
    size_t hint = 0;
    for (uint32_t at = 0; at < rows && st == LODE_OK; at += NEAREST_BLOCK_ROWS) {
      TRY_GOTO(engine_reader_yield_if_old(near->reader, err));
      st = nearest_read_block(near, c, at, rows - at < NEAREST_BLOCK_ROWS ? rows - at : NEAREST_BLOCK_ROWS, w, &hint,
                              &why);
    }
    if (st == LODE_OK) continue;
    if (near->fetched != LODE_OK) TRY_GOTO(err_set(err, st, "%s", why.text));
    if (st != LODE_NOMEM) segments_suspect(c->seg->segments, c->seg->row.id, st, why.text);
    *damaged = st != LODE_NOMEM;
    st = *damaged ? LODE_OK : err_nomem(err);
    break;
  }
done:
  mem_free(w->rows);
  mem_free(w->norms);
  mem_free(w);
  engine_snapshot_trim(near->reader->handle->store, v);
  return st;
}

/* ---- A snapshot ---- */

static bool nearest_has_zero_query(const engine_nearest *near) {
  for (size_t q = 0; q < near->n && near->metric == LODE_COSINE; q++)
    if (!(near->norms[q] > 0)) return true;
  return false;
}

static void nearest_learn_snapshot(engine_nearest *near, const engine_snapshot *v) {
  engine_facts *f = near->facts;
  f->known |= ENGINE_FACT_SNAPSHOT;
  f->fits = v != NULL;
  f->zero_query = nearest_has_zero_query(near);
  f->indexed = 0;
  for (size_t i = 0; v && i < v->n_segs; i++) f->indexed += v->segs[i].seg->row.rows;
  f->rest = v ? v->rows : 0;
}

/* Scans the vectors in memory and, as long as that was done without a transaction, those added since. */
static lode_status scan_to_present(engine_nearest *near, engine_snapshot *v, bool *again, lode_error *err) {
  engine_reader *reader = near->reader;
  engine_snapshot *held = NULL;
  int64_t seen = 0;
  lode_status st;
  for (;;) {
    engine_snapshot *later = NULL;
    TRY_GOTO(nearest_scan_memory(near, v, seen, err));
    if (reader->tx) break;
    TRY_GOTO(engine_reader_begin(reader, err));
    TRY_GOTO(engine_snapshot_get(reader, &later, err));
    seen = v->last_vid;
    engine_snapshot_release(held);
    held = v = later;
    *again = !v || v->dim != near->dim || v->streams || (v->n_segs && v->segs[v->n_segs - 1].last > seen);
    if (*again) break;
  }
done:
  engine_snapshot_release(held);
  return st;
}

static lode_status nearest_run_snapshot(engine_nearest *near, engine_snapshot *v, bool *damaged, bool *again,
                                        lode_error *err) {
  engine_reader *reader = near->reader;
  if (v->dim != near->dim) {
    *again = true;
    return LODE_OK;
  }
  for (size_t q = 0; q < near->n; q++) { /* this many may turn out to be dead */
    size_t *k = &near->best[q].top.k;
    *k = *k > SIZE_MAX - v->unknown ? SIZE_MAX : *k + v->unknown;
  }
  bool exact = near->plan->vectors == ENGINE_VECTORS_SCAN;
  uint64_t rows = near->facts->rest + (exact ? near->facts->indexed : 0);
  bool in_tx = rows * v->stride * sizeof(float) * near->n <= engine_scan_in_tx_bytes;
  if (!in_tx && !v->streams) engine_reader_pause(reader);
  if (v->n_segs)
    TRY(exact ? nearest_scan_segments(near, v, damaged, err) : engine_segments_search(near, v, damaged, err));
  if (*damaged) return LODE_OK;
  if (!v->streams) return scan_to_present(near, v, again, err);
  TRY(engine_reader_begin(reader, err));
  return nearest_run_stream(near, v, err);
}

static lode_status nearest_run_by_record(engine_nearest *near, lode_error *err) {
  lode_status st = LODE_OK;
  size_t hint = 0;
  float *row = mem_alloc_aligned(64, (size_t)near->dim * sizeof(float));
  if (!row) return err_nomem(err);
  for (size_t i = 0; i < near->only->n; i++) {
    store_rec rec;
    bool found;
    if (i % NEAREST_CHECK_EVERY == 0) TRY_GOTO(engine_reader_renew_if_old(near->reader, err));
    TRY_GOTO(store_rec_read(near->reader->tx, near->only->v[i], &rec, &found, err));
    if (!found || !rec.vid) continue;
    TRY_GOTO(store_rec_vector(near->reader->tx, rec.vid, row, near->dim, err));
    near->trace->by_key++;
    float norm = kernel_dot(row, row, near->dim);
    nearest_block b = {.data = row, .norms = &norm, .stride = near->dim, .n = 1, .rid = &rec.rid, .vid = &rec.vid};
    TRY_GOTO(nearest_scan_block(near, &b, &hint, err));
  }
done:
  mem_free(row);
  return st;
}

/* ---- The search ---- */

lode_status engine_nearest_init(engine_nearest *near, engine_reader *reader, const float *queries, size_t n,
                                engine_plan *plan, lode_error *err) {
  *near = (engine_nearest){.reader = reader,
                           .metric = reader->coll.metric,
                           .dim = reader->coll.dim,
                           .queries = queries,
                           .n = n,
                           .plan = plan};
  near->norms = mem_calloc(n, sizeof *near->norms);
  near->best = mem_calloc(n, sizeof *near->best);
  if (!near->norms || !near->best) {
    engine_nearest_release(near);
    return err_nomem(err);
  }
  for (size_t q = 0; q < n; q++) {
    near->norms[q] = kernel_dot(queries + q * near->dim, queries + q * near->dim, near->dim);
    near->best[q].top.k = plan->candidates;
    near->best[q].reach = INFINITY;
  }
  return LODE_OK;
}

static lode_status nearest_find_published(void *ctx, const store_manifest_row *row, lode_error *err) {
  bool *found = ctx;
  (void)err;
  *found = *found || row->bytes > 0;
  return LODE_OK;
}

static lode_status nearest_learn_manifest(engine_nearest *near, lode_error *err) {
  engine_facts *f = near->facts;
  f->loaded = engine_snapshot_is_cached(near->reader->handle);
  f->published = false;
  TRY(store_manifest_each(near->reader->tx, near->reader->coll.cid, nearest_find_published, &f->published, err));
  f->known |= ENGINE_FACT_MANIFEST;
  return LODE_OK;
}

static void nearest_start_over(engine_nearest *near) {
  for (size_t q = 0; q < near->n; q++) {
    near->best[q].top.n = near->best[q].n_ties = 0;
    near->best[q].top.k = near->plan->candidates;
    near->best[q].full = false;
    near->best[q].reach = INFINITY;
  }
}

/* Completes the plan. *v is the snapshot, if it is part of the plan. */
static lode_status nearest_make_plan(engine_nearest *near, engine_snapshot **v, lode_error *err) {
  near->facts->known &= ~(unsigned)(ENGINE_FACT_MANIFEST | ENGINE_FACT_SNAPSHOT);
  for (;;) {
    *near->plan = engine_plan_make(near->facts);
    if (near->plan->need == ENGINE_FACT_MANIFEST) {
      TRY(nearest_learn_manifest(near, err));
    } else if (near->plan->need == ENGINE_FACT_SNAPSHOT) {
      TRY(engine_snapshot_get(near->reader, v, err));
      nearest_learn_snapshot(near, *v);
    } else {
      STORE_ENSURE(near->reader->handle->store->db, !near->plan->need, err);
      return LODE_OK;
    }
  }
}

static lode_status nearest_search(engine_nearest *near, bool *again, lode_error *err) {
  for (bool damaged = true; damaged;) { /* each round leaves out one more segment */
    engine_snapshot *v = NULL;
    lode_status st;
    damaged = false;
    TRY(engine_reader_begin(near->reader, err));
    nearest_start_over(near);
    TRY(nearest_make_plan(near, &v, err));
    switch (near->plan->vectors) {
      case ENGINE_VECTORS_NONE: return LODE_OK;
      case ENGINE_VECTORS_BY_RECORD: return nearest_run_by_record(near, err);
      case ENGINE_VECTORS_STREAM: return nearest_run_stream(near, NULL, err);
      default: st = nearest_run_snapshot(near, v, &damaged, again, err);
    }
    engine_snapshot_release(v);
    TRY(st);
    near->trace->damaged += damaged;
  }
  return LODE_OK;
}

lode_status engine_nearest_run(engine_nearest *near, bool *again, lode_error *err) {
  engine_reader *reader = near->reader;
  *again = false;
  if (near->only || reader->taken) return nearest_search(near, again, err);
  (void)engine_reader_allow_later(reader);
  lode_status st = nearest_search(near, again, err);
  lode_status settled = engine_reader_adopt_current(reader, st == LODE_OK ? err : NULL);
  return st == LODE_OK ? settled : st;
}

void engine_nearest_release(engine_nearest *near) {
  for (size_t q = 0; near->best && q < near->n; q++) {
    mem_free(near->best[q].top.heap);
    mem_free(near->best[q].ties);
  }
  mem_free(near->best);
  mem_free(near->norms);
  *near = (engine_nearest){0};
}
