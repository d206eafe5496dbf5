/* SPDX-License-Identifier: Apache-2.0 */
/* segment_plan.c - which segment to build next.
 *
 * In order of importance, for each collection:
 *   1. gaps between segments, where a damaged file was quarantined: rebuilt
 *   2. flat segments that a bulk load left, or the time when the collection was small (exact_rows): rebuilt with a
 *      graph, as many of them at once as fit in one segment
 *   3. segments with many dead rows: rebuilt without them
 *   4. the tail, when it has tail_rows: made a segment together with those before it that are not much larger, so that
 *      each is at least about twice as large as all that follow, and their number grows with the logarithm of the rows
 *   5. the same without a tail, after deletions
 *   6. placed segments most of whose vectors have moved in the database file
 * During a bulk load (request->flat) graphs are left as they are, with their dead rows; what the load adds is written
 * at most twice before it becomes a graph: as a segment of tail_rows, and as one of PLAN_LOAD_FACTOR times as many. A
 * segment has at most as many rows as can be built within half of the memory budget: the rest is for pages and
 * transactions.
 */
#include "segments/segment_build.h"

/* exact_rows: 20,000 codes of 384 dimensions are 8 MB, which are scanned in less than half a millisecond. */
segments_build_limits segments_limits = {
    .tail_rows = 4096, .exact_rows = 20000, .graph_rows = 2000, .dead_percent = 20, .place_bytes = 8 << 20};

enum {
  PLAN_MIN_ROW_LIMIT = 20000, /* rows that a segment may have however small the memory budget is */
  PLAN_MERGE_FACTOR = 2,      /* a segment is merged with what follows unless it is more than this many times larger */
  PLAN_DEGREE = 32,           /* links per row, to estimate the memory of a build */
  PLAN_LOAD_FACTOR = 8,       /* in a bulk load, this many times tail_rows are merged into one flat segment */
};

typedef struct plan_segment {
  store_manifest_row row;
  uint64_t dead, live;
} plan_segment;

typedef struct plan_ctx {
  segments_store *segments;
  store_tx *tx;
  const segments_build_request *request;
  segments_build_plan *plan;
  plan_segment *segs;
  size_t n, cap;
} plan_ctx;

static lode_status plan_add_segment(void *ctx, const store_manifest_row *row, lode_error *err) {
  plan_ctx *s = ctx;
  if (!row->proven || row->bytes == 0) return LODE_OK;
  if (!mem_grow(&s->segs, &s->cap, s->n + 1, sizeof *s->segs)) return err_nomem(err);
  s->segs[s->n++] = (plan_segment){.row = *row};
  return LODE_OK;
}

static size_t plan_max_rows(const segments_store *segments, uint32_t dim) {
  if (segments_limits.max_rows) return segments_limits.max_rows;
  size_t low = quant_grid_low_bytes(&(quant_grid){.step = QUANT_GRID_STEP_MAX}, dim);
  size_t row = quant_stride(dim) + low + 6 * PLAN_DEGREE + 44 + 2 * sizeof(int64_t);
  uint64_t rows = segments->options->memory_bytes / 2 / row;
  if (rows < PLAN_MIN_ROW_LIMIT) rows = PLAN_MIN_ROW_LIMIT;
  return rows < INDEX_MAX_ROWS ? (size_t)rows : INDEX_MAX_ROWS;
}

/* Sets the range; always true, for "found". */
static bool plan_set_range(plan_ctx *s, int64_t after, int64_t last) {
  s->plan->after = after;
  s->plan->last = last;
  return true;
}

static bool plan_find_gap(plan_ctx *s, int64_t first) {
  int64_t at = first;
  for (size_t i = 0; i < s->n; i++) {
    if (s->segs[i].row.after > at) return plan_set_range(s, at, s->segs[i].row.after);
    if (s->segs[i].row.last > at) at = s->segs[i].row.last;
  }
  return false;
}

static bool plan_find_dead(plan_ctx *s) {
  if (s->request->flat) return false;
  for (size_t i = 0; i < s->n; i++) {
    const plan_segment *c = &s->segs[i];
    bool many = c->dead * 100 >= (uint64_t)segments_limits.dead_percent * c->row.rows;
    if (c->dead == 0 || (!many && !s->request->only_dead)) continue;
    if (s->request->only_dead) s->plan->flat = c->row.kind == INDEX_FLAT;
    s->plan->max_rows = INDEX_MAX_ROWS; /* what was one segment may stay one */
    return plan_set_range(s, c->row.after, c->row.last);
  }
  return false;
}

/* Most of its vectors are not at their places in the database file any more: reading them costs a search by key each.
 * Once is enough: what is built is another segment. */
static bool plan_find_moved(plan_ctx *s) {
  uint64_t id = atomic_load(&s->segments->moved);
  for (size_t i = 0; id && !s->request->flat && i < s->n; i++) {
    const store_manifest_row *row = &s->segs[i].row;
    if (row->id != id) continue;
    atomic_store(&s->segments->moved, 0);
    s->plan->flat = s->plan->flat || row->kind == INDEX_FLAT;
    s->plan->max_rows = INDEX_MAX_ROWS;
    return plan_set_range(s, row->after, row->last);
  }
  return false;
}

static size_t plan_load_run_start(const plan_ctx *s, size_t end, uint64_t sum) {
  uint64_t full = (uint64_t)PLAN_LOAD_FACTOR * segments_limits.tail_rows;
  size_t i = end;
  if (full > s->plan->max_rows / 2) full = s->plan->max_rows / 2; /* two that are not full always fit in one */
  while (sum < full && i > 0 && s->segs[i - 1].live < full && s->segs[i - 1].row.kind == INDEX_FLAT)
    sum += s->segs[--i].live;
  return sum >= full ? i : end;
}

/* Start of the run of segments before `end` that is merged with the `sum` rows after them. */
static size_t plan_run_start(const plan_ctx *s, size_t end, uint64_t sum) {
  if (s->request->flat) return plan_load_run_start(s, end, sum);
  size_t i = end;
  while (i > 0 && s->segs[i - 1].live <= PLAN_MERGE_FACTOR * sum && sum + s->segs[i - 1].live <= s->plan->max_rows)
    sum += s->segs[--i].live;
  return i;
}

static bool plan_is_left_flat(const plan_segment *c) {
  return c->row.kind == INDEX_FLAT && c->row.rows >= segments_limits.graph_rows;
}

/* Merged with those before it that would be merged with it anyway, and with the tail after the last. */
static bool plan_find_flat(plan_ctx *s, uint64_t n_tail) {
  size_t i = 0, end;
  uint64_t sum = 0;
  if (s->request->flat || s->plan->flat) return false;
  while (i < s->n && !plan_is_left_flat(&s->segs[i])) i++;
  if (i == s->n) return false;
  for (end = i; end < s->n && (end == i || sum + s->segs[end].live <= s->plan->max_rows); end++)
    sum += s->segs[end].live;
  i = plan_run_start(s, i, sum);
  int64_t last = s->segs[end - 1].row.last;
  for (size_t k = i; k < end; k++) n_tail += s->segs[k].live;
  if (end == s->n && n_tail <= s->plan->max_rows) last = INT64_MAX;
  s->plan->max_rows = INDEX_MAX_ROWS;
  return plan_set_range(s, s->segs[i].row.after, last);
}

static bool plan_find_merge(plan_ctx *s, int64_t first, uint64_t n_tail) {
  if (n_tail >= segments_limits.tail_rows) {
    size_t i = plan_run_start(s, s->n, n_tail);
    /* not shortened: a segment is replaced completely or not at all */
    if (i < s->n) s->plan->max_rows = INDEX_MAX_ROWS;
    return plan_set_range(s, i < s->n ? s->segs[i].row.after : s->n ? s->segs[s->n - 1].row.last : first, INT64_MAX);
  }
  if (s->n < 2) return false;
  size_t i = plan_run_start(s, s->n - 1, s->segs[s->n - 1].live);
  s->plan->max_rows = INDEX_MAX_ROWS;
  return i < s->n - 1 && plan_set_range(s, s->segs[i].row.after, s->segs[s->n - 1].row.last);
}

/* The living vectors after `last`, the end of the last segment. `estimate` is what the counts say, and too high where a
 * killed builder left rows of `dead` for vectors that no segment holds any more. So they are counted, up to tail_rows,
 * or the same tail would be built over and over again. */
static lode_status plan_count_tail(store_tx *tx, int64_t cid, int64_t last, uint64_t estimate, uint64_t *n_tail,
                                   lode_error *err) {
  int64_t vid, rid;
  bool more = true;
  *n_tail = estimate;
  if (estimate == 0) return LODE_OK;
  TRY(store_vec_scan_keys(tx, cid, last, err));
  for (uint64_t n = 0; n < estimate && n < segments_limits.tail_rows; n++) {
    TRY(store_vec_next_key(tx, &vid, &rid, &more, err));
    if (more) continue;
    *n_tail = n;
    return LODE_OK;
  }
  return LODE_OK;
}

static lode_status plan_collection(void *ctx, const store_coll *coll, lode_error *err) {
  plan_ctx *s = ctx;
  uint64_t held = 0, n_tail, living = coll->records - coll->pending;
  if (s->plan->cid || coll->dim == 0) return LODE_OK;
  s->n = 0;
  TRY(store_manifest_each(s->tx, coll->cid, plan_add_segment, s, err));
  if (s->n == 0 && living < segments_limits.tail_rows) return LODE_OK;
  for (size_t i = 0; i < s->n; i++) {
    plan_segment *c = &s->segs[i];
    TRY(store_dead_count(s->tx, c->row.after, c->row.last, &c->dead, err));
    if (c->dead > c->row.rows) c->dead = c->row.rows;
    c->live = c->row.rows - c->dead;
    held += c->live;
  }
  *s->plan = (segments_build_plan){
      .uid = coll->uid,
      .metric = coll->metric,
      .dim = coll->dim,
      .flat = living <= segments_limits.exact_rows,
      .max_rows = plan_max_rows(s->segments, coll->dim),
  };
  int64_t first = store_vec_before_first(coll->cid);
  n_tail = living > held ? living - held : 0;
  if (s->n && n_tail >= segments_limits.tail_rows)
    TRY(plan_count_tail(s->tx, coll->cid, s->segs[s->n - 1].row.last, n_tail, &n_tail, err));
  if (s->request->only_dead ? plan_find_dead(s)
                            : plan_find_gap(s, first) || plan_find_flat(s, n_tail) || plan_find_dead(s) ||
                                  plan_find_merge(s, first, n_tail) || plan_find_moved(s))
    s->plan->cid = coll->cid;
  return LODE_OK;
}

lode_status segments_build_plan_next(segments_store *segments, const segments_build_request *request,
                                     segments_build_plan *plan, lode_error *err) {
  plan_ctx s = {.segments = segments, .request = request, .plan = plan};
  *plan = (segments_build_plan){0};
  TRY(store_tx_begin(segments->db, STORE_TX_READ, &s.tx, err));
  lode_status st = store_coll_each(s.tx, plan_collection, &s, err);
  store_tx_rollback(s.tx);
  mem_free(s.segs);
  if (st == LODE_OK && !plan->cid && !request->flat) atomic_store(&segments->moved, 0); /* it is no more */
  return st;
}

/* ---- Counts ---- */

typedef struct plan_counting {
  store_tx *tx;
  segments_counts *counts;
  uint64_t held; /* living vectors, by the counts */
  int64_t last;  /* of the segments so far */
  bool gap;      /* before one of them */
} plan_counting;

static lode_status plan_count_row(void *ctx, const store_manifest_row *row, lode_error *err) {
  plan_counting *c = ctx;
  uint64_t dead = 0;
  if (!row->proven) return LODE_OK;
  if (row->bytes == 0) {
    c->counts->making++;
    return LODE_OK;
  }
  TRY(store_dead_count(c->tx, row->after, row->last, &dead, err));
  c->counts->segments++;
  c->counts->rows += row->rows;
  c->counts->bytes += row->bytes;
  c->held += row->rows - (dead < row->rows ? dead : row->rows);
  c->gap = c->gap || row->after > c->last;
  if (row->last > c->last) c->last = row->last;
  return LODE_OK;
}

lode_status segments_count(store_tx *tx, const store_coll *coll, segments_counts *counts, lode_error *err) {
  plan_counting c = {.tx = tx, .counts = counts, .last = store_vec_before_first(coll->cid)};
  uint64_t living = coll->records - coll->pending, segments = counts->segments, tail;
  TRY(store_manifest_each(tx, coll->cid, plan_count_row, &c, err));
  tail = living > c.held ? living - c.held : 0;
  if (counts->segments > segments && !c.gap) TRY(plan_count_tail(tx, coll->cid, c.last, tail, &tail, err));
  counts->tail += tail;
  return LODE_OK;
}
