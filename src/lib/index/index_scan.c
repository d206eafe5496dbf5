/* SPDX-License-Identifier: Apache-2.0 */
/* index_scan.c - candidates by a scan of codes; see index_query.h.
 *
 * If the segment says how large the errors of its codes are, these are all rows that can be among the nearest, and the
 * search is exact. Otherwise (files of older versions, a query out of range) the best few.
 */
#include "index/index_query.h"

#include <math.h>

#include "index/index_tuning.h"

lode_status index_query_reserve(index_query *s, size_t keep, lode_error *err) {
  index_search_scratch *scratch = s->scratch;
  s->keep = keep < s->n_allowed ? keep : (size_t)s->n_allowed;
  if (mem_grow(&scratch->candidates, &scratch->candidates_cap, s->keep, sizeof *scratch->candidates)) return LODE_OK;
  return err_nomem(err);
}

lode_status index_query_expect_distant(index_query *s, lode_error *err) {
  size_t keep = INDEX_DISTANT_KEEP * s->beam;
  s->coarse = true;
  return index_query_reserve(s, keep > s->k ? keep : s->k, err);
}

/* ---- Keys of rows ---- */

/* Collects rows until there are enough for one call of quant_keys(), whose results `take` gets. */
typedef struct code_scan code_scan;
struct code_scan {
  index_query *s;
  void (*take)(code_scan *c, uint64_t entry); /* entry: the key as an integer of its order, then the slot */
  float last_key;                             /* rows with greater keys are not passed to `take` */
  const unsigned char *rows[INDEX_STEP_ROWS];
  size_t n;
  bool no_memory;
};

/* Of n of the rows, at most INDEX_STEP_ROWS. */
static void code_scan_keys(code_scan *c, const unsigned char *const *rows, size_t n) {
  float keys[INDEX_STEP_ROWS];
  quant_keys(&c->s->query.code, rows, n, keys);
  for (size_t i = 0; i < n; i++)
    if (!(keys[i] > c->last_key)) c->take(c, (uint64_t)quant_key_order(keys[i]) << 32 | quant_row_slot(rows[i]));
  c->s->scratch->stats.distances += n;
}

static void code_scan_flush(code_scan *c) {
  if (c->n) code_scan_keys(c, c->rows, c->n);
  c->n = 0;
}

static void code_scan_row(code_scan *c, const unsigned char *row) {
  c->rows[c->n++] = row;
  if (c->n == INDEX_STEP_ROWS) code_scan_flush(c);
}

/* Rows that are anywhere: the next few are on their way from memory while the keys of some are computed. */
static void code_scan_scattered(code_scan *c) {
  size_t stride = c->s->segment->stride, step = INDEX_SCAN_AHEAD_BYTES / stride, ahead = 0;
  if (step < INDEX_SCAN_AHEAD_MIN) step = INDEX_SCAN_AHEAD_MIN;
  for (size_t i = 0, m; i < c->n; i += m) {
    m = c->n - i < step ? c->n - i : step;
    for (; ahead < c->n && ahead < i + 2 * step; ahead++) index_prefetch_row(c->rows[ahead], stride);
    code_scan_keys(c, c->rows + i, m);
  }
  c->n = 0;
}

/* At most INDEX_STEP_ROWS slots, whose ordinals are on their way. */
static lode_status code_scan_some(code_scan *c, const uint32_t *slots, size_t n, lode_error *err) {
  index_segment *segment = c->s->segment;
  uint32_t ordinal;
  for (c->n = 0; c->n < n; c->n++) {
    TRY(index_segment_ordinal_nolock(segment, slots[c->n], &ordinal, err));
    uint64_t at = (uint64_t)ordinal * segment->stride;
    TRY(index_paged_need(&segment->rows, at, segment->stride, err));
    c->rows[c->n] = segment->rows.data + at;
  }
  code_scan_scattered(c);
  return LODE_OK;
}

static lode_status code_scan_slots(code_scan *c, lode_error *err) {
  const index_segment *segment = c->s->segment;
  uint32_t n = segment->info.n, slots[INDEX_STEP_ROWS];
  size_t n_slots = 0;
  for (uint32_t base = 0; base < n; base += 64) {
    uint64_t bits = c->s->request->allowed ? c->s->request->allowed[base / 64] : ~(uint64_t)0;
    if (n - base < 64) bits &= ((uint64_t)1 << (n - base)) - 1;
    for (; bits; bits &= bits - 1) {
      uint32_t slot = base + (uint32_t)__builtin_ctzll(bits);
      if (segment->info.kind == INDEX_GRAPH) __builtin_prefetch(segment->ordinals.data + (size_t)slot * 4);
      slots[n_slots++] = slot;
      if (n_slots < INDEX_STEP_ROWS) continue;
      TRY(code_scan_some(c, slots, n_slots, err));
      n_slots = 0;
    }
  }
  return code_scan_some(c, slots, n_slots, err);
}

/* In the order in which they lie in memory; `take` must look whether a row is allowed. */
static lode_status code_scan_all(code_scan *c, lode_error *err) {
  index_segment *segment = c->s->segment;
  TRY(index_paged_need(&segment->rows, 0, segment->rows.bytes, err));
  for (uint32_t i = 0; i < segment->info.n; i++) code_scan_row(c, segment->rows.data + (size_t)i * segment->stride);
  code_scan_flush(c);
  return LODE_OK;
}

static void code_scan_filtered(code_scan *c) {
  const index_filtered *m = c->s->request->match;
  for (uint32_t i = 0; i < m->n; i++) code_scan_row(c, m->rows.data + (size_t)i * c->s->segment->stride);
  code_scan_flush(c);
}

/* Sorts the candidates by key. If there are too few, rows have forged slots. */
static lode_status code_scan_sort(index_query *s, lode_error *err) {
  if (s->n_candidates < s->k) return index_query_damaged(err, "slot of a row");
  qsort(s->scratch->candidates, s->n_candidates, sizeof *s->scratch->candidates, sort_cmp_u64);
  return LODE_OK;
}

/* ---- The best few ---- */

/* Adds an entry to a max-heap of *n entries, of which it keeps the `keep` least. */
static void code_heap_offer(uint64_t *heap, size_t *n, size_t keep, uint64_t entry) {
  size_t at = 0, child;
  if (*n < keep) {
    for (at = (*n)++; at > 0 && heap[(at - 1) / 2] < entry; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
    return;
  }
  if (entry >= heap[0]) return;
  while ((child = 2 * at + 1) < keep) { /* replace the root, sift down */
    if (child + 1 < keep && heap[child + 1] > heap[child]) child++;
    if (heap[child] <= entry) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = entry;
}

static void take_best(code_scan *c, uint64_t entry) {
  index_query *s = c->s;
  uint32_t slot = (uint32_t)entry;
  if (slot >= s->segment->info.n || !index_query_allows(s, slot)) return;
  code_heap_offer(s->scratch->candidates, &s->n_candidates, s->keep, entry);
  if (s->n_candidates == s->keep) c->last_key = quant_key_of_order((uint32_t)(s->scratch->candidates[0] >> 32));
}

/* The rows that are scanned: matches that lie together, some of all rows, or all in the order of memory. */
static lode_status code_scan_run(code_scan *c, lode_error *err) {
  index_query *s = c->s;
  s->n_candidates = 0;
  s->scratch->stats.ways |= INDEX_BY_SCAN;
  if (s->request->match) {
    s->scratch->stats.ways |= INDEX_BY_FILTERED;
    code_scan_filtered(c);
    return LODE_OK;
  }
  return s->n_allowed < s->segment->info.n - s->segment->info.n / INDEX_SCAN_ALL_SHARE ? code_scan_slots(c, err)
                                                                                       : code_scan_all(c, err);
}

static lode_status scan_best(index_query *s, lode_error *err) {
  code_scan c = {.s = s, .take = take_best, .last_key = INFINITY};
  TRY(index_query_expect_distant(s, err));
  TRY(code_scan_run(&c, err));
  return code_scan_sort(s, err);
}

/* ---- All that can be among the nearest ---- */

/* The k least keys so far say up to which key rows have to be kept. Those kept before that was known are removed in the
 * end. */
static void take_possible(code_scan *c, uint64_t entry) {
  index_query *s = c->s;
  uint32_t slot = (uint32_t)entry;
  uint64_t *heap = s->scratch->least, before = s->n_least == s->k ? heap[0] : UINT64_MAX;
  if (slot >= s->segment->info.n || !index_query_allows(s, slot)) return;
  if (!mem_grow(&s->scratch->candidates, &s->scratch->candidates_cap, s->n_candidates + 1, sizeof entry)) {
    c->no_memory = true;
    return;
  }
  s->scratch->candidates[s->n_candidates++] = entry;
  code_heap_offer(heap, &s->n_least, s->k, entry);
  if (s->n_least == s->k && heap[0] != before)
    c->last_key = quant_bounds_last_key(&s->bounds, quant_key_of_order((uint32_t)(heap[0] >> 32)));
}

static lode_status scan_possible(index_query *s, lode_error *err) {
  index_search_scratch *scratch = s->scratch;
  code_scan c = {.s = s, .take = take_possible, .last_key = INFINITY};
  if (!mem_grow(&scratch->least, &scratch->least_cap, s->k, sizeof *scratch->least)) return err_nomem(err);
  s->n_least = 0;
  TRY(code_scan_run(&c, err));
  if (c.no_memory) return err_nomem(err);
  size_t kept = 0;
  uint64_t last = (uint64_t)quant_key_order(c.last_key) << 32 | UINT32_MAX;
  for (size_t i = 0; i < s->n_candidates; i++)
    if (scratch->candidates[i] <= last) scratch->candidates[kept++] = scratch->candidates[i];
  s->n_candidates = kept;
  s->proven = true;
  return code_scan_sort(s, err);
}

lode_status index_scan(index_query *s, lode_error *err) {
  const index_segment *segment = s->segment;
  bool known = quant_bounds_of(&segment->model, &segment->info.spread, s->request->query, &s->query.code, &s->bounds);
  if (!known && s->exact) return LODE_OK;
  return known ? scan_possible(s, err) : scan_best(s, err);
}
