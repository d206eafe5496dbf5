/* SPDX-License-Identifier: Apache-2.0 */
/* index_rank.c - ranks the candidates of a search by the distances of their float vectors; see index_query.h. */
#include "index/index_query.h"
#include "index/segment_vectors.h"

#include <math.h>

#include "index/index_tuning.h"

static lode_status index_query_reserve_vectors(index_query *s, size_t floats, lode_error *err) {
  index_search_scratch *scratch = s->scratch;
  if (mem_grow(&scratch->vectors, &scratch->vectors_cap, floats, sizeof *scratch->vectors)) return LODE_OK;
  return err_nomem(err);
}

static lode_status rerank_begin(index_query *s, kernel_topk *top, lode_error *err) {
  if (!mem_grow(&s->scratch->near, &s->scratch->near_cap, s->k, sizeof *s->scratch->near)) return err_nomem(err);
  *top = (kernel_topk){.heap = s->scratch->near, .k = s->k};
  return LODE_OK;
}

static lode_status rerank_end(index_query *s, kernel_topk *top, index_hit *hits, size_t *n_hits, lode_error *err) {
  ENSURE(top->n <= s->k, err);
  kernel_topk_sort(top);
  for (size_t i = 0; i < top->n; i++) {
    hits[i] = (index_hit){.distance = top->heap[i].distance, .slot = (uint32_t)top->heap[i].key};
    TRY(index_segment_record_nolock(s->segment, hits[i].slot, &hits[i].record, err));
  }
  *n_hits = top->n;
  return LODE_OK;
}

static float query_norm2(const index_query *s) {
  const float *q = s->request->query;
  return s->segment->info.metric == LODE_COSINE ? kernel_dot(q, q, s->segment->info.dim) : 0;
}

/* Estimates the error of codes for this query. Without error, a distance would be slope * key plus a constant; how much
 * that constant varies among the rows measured shows how large the errors are. */
typedef struct code_errors {
  double slope, low, high;
  size_t n;
  bool odd; /* a distance overflowed: no estimate */
} code_errors;

static code_errors code_errors_init(const index_query *s) {
  double unit = s->segment->info.unit;
  return (code_errors){
      .slope = (s->segment->info.metric == LODE_L2 ? 1 : 0.5) / (unit * unit), .low = INFINITY, .high = -INFINITY};
}

static void code_errors_note(code_errors *e, float key, float distance) {
  double rest = distance - e->slope * key;
  if (!isfinite(rest)) e->odd = true;
  e->low = fmin(e->low, rest);
  e->high = fmax(e->high, rest);
  e->n++;
}

/* Could a row with this key, or a larger one, be nearer than the bound if its error were twice the largest seen? */
static bool could_be_nearer(const code_errors *e, float key, float bound) {
  if (e->n < INDEX_MIN_ERRORS_SEEN || e->odd) return true;
  return e->slope * key + e->low - (e->high - e->low) < bound;
}

/* A row on the grid holds its vector. */
static lode_status rank_take_vector(index_query *s, uint32_t slot, index_vector *vector, lode_error *err) {
  bool exact;
  TRY(index_segment_decode_nolock(s->segment, slot, s->scratch->vectors, &exact, err));
  *vector = (index_vector){.data = s->scratch->vectors};
  return exact ? LODE_OK : index_vector_take(s->segment, slot, s->scratch->vectors, &s->request->fetch, vector, err);
}

/* Records (what the results are, and checksums of vectors) and vectors are cache misses unless prefetched. */
static void rank_prefetch(const index_query *s, size_t from, size_t n) {
  for (size_t i = from; i < from + n && i < s->n_candidates; i++) {
    uint32_t slot = (uint32_t)s->scratch->candidates[i];
    __builtin_prefetch(s->segment->records.data + (size_t)slot * s->segment->record_bytes);
    index_vector_prefetch(s->segment, slot);
    index_segment_prefetch_row(s->segment, slot, true);
  }
}

/* The distance of a slot's vector, which is read if it is not in memory. */
static lode_status rank_distance(index_query *s, uint32_t slot, float norm2, float *distance, bool *gone,
                                 lode_error *err) {
  index_search_scratch *scratch = s->scratch;
  index_vector vector;
  TRY(rank_take_vector(s, slot, &vector, err));
  *gone = index_vector_is_gone(vector.data);
  if (!*gone)
    *distance = kernel_distance(s->segment->info.metric, s->request->query, norm2, vector.data, s->segment->info.dim);
  index_vector_give(&vector);
  scratch->stats.vectors++;
  scratch->stats.vectors_read += vector.read;
  return LODE_OK;
}

/* Is there a bound, and can codes prove that a row is farther? */
static bool rank_uses_bound(index_query *s) {
  const index_segment *segment = s->segment;
  return s->request->bounded && (s->proven || quant_bounds_of(&segment->model, &segment->info.spread, s->request->query,
                                                              &s->query.code, &s->bounds));
}

/* Can no row with this key, or a larger one, be nearer than those in `top`? Proven, or expected by the errors seen. */
static bool rank_is_complete(const index_query *s, const kernel_topk *top, const code_errors *e, float key) {
  if (top->n < top->k) return false;
  return s->proven ? quant_bounds_least(&s->bounds, key) > kernel_topk_bound(top)
                   : !could_be_nearer(e, key, kernel_topk_bound(top));
}

/* Candidates are in key order. After the first k, continues until none of the others can be nearer. If that is not
 * proven, also until a few in a row were not: with precise codes that is at once, with coarse ones (lengths that differ
 * a lot) it takes longer. */
lode_status index_rank_candidates(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err) {
  kernel_topk top;
  code_errors e = code_errors_init(s);
  float norm2 = query_norm2(s);
  bool bounded = rank_uses_bound(s);
  for (size_t i = 1; i < s->n_candidates; i++)
    INVARIANT_CHECKED(s->scratch->candidates[i - 1] >> 32 <= s->scratch->candidates[i] >> 32);
  size_t misses = 0, patience = s->proven ? SIZE_MAX : s->coarse ? 2 * s->k : s->k / INDEX_RERANK_PATIENCE + 1;
  TRY(rerank_begin(s, &top, err));
  TRY(index_query_reserve_vectors(s, s->segment->info.dim, err));
  for (size_t i = 0; i < s->n_candidates && i < s->k; i++)
    index_segment_prefetch_row(s->segment, (uint32_t)s->scratch->candidates[i], false);
  rank_prefetch(s, 0, INDEX_RERANK_AHEAD);
  for (size_t i = 0; i < s->n_candidates && misses < patience; i++) {
    uint32_t slot = (uint32_t)s->scratch->candidates[i];
    bool gone;
    float d = 0, key = quant_key_of_order((uint32_t)(s->scratch->candidates[i] >> 32));
    if (rank_is_complete(s, &top, &e, key)) break;
    if (bounded && quant_bounds_least(&s->bounds, key) > s->request->bound) break;
    rank_prefetch(s, i + INDEX_RERANK_AHEAD, 1);
    TRY(rank_distance(s, slot, norm2, &d, &gone, err));
    if (gone) continue;
    code_errors_note(&e, key, d);
    misses = top.n < top.k || d < kernel_topk_bound(&top) ? 0 : misses + 1;
    if (kernel_topk_wants(&top, d)) kernel_topk_push(&top, d, slot, 0);
  }
  return rerank_end(s, &top, hits, n_hits, err);
}

lode_status index_rank_all(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err) {
  const index_segment_info *info = &s->segment->info;
  kernel_topk top;
  float norm2 = query_norm2(s);
  uint32_t block = (uint32_t)(INDEX_EXACT_BYTES / sizeof(float) / info->dim);
  if (block == 0) block = 1;
  TRY(rerank_begin(s, &top, err));
  TRY(index_query_reserve_vectors(s, (size_t)block * info->dim, err));
  for (uint32_t first = 0, n; first < info->n; first += n) {
    bool any = false;
    n = info->n - first < block ? info->n - first : block;
    for (uint32_t i = 0; i < n && !any; i++) any = index_query_allows(s, first + i);
    if (!any) continue;
    TRY(index_segment_vectors_nolock(s->segment, first, n, s->scratch->vectors, &s->request->fetch, err));
    for (uint32_t i = 0; i < n; i++) {
      const float *vector = s->scratch->vectors + (size_t)i * info->dim;
      if (!index_query_allows(s, first + i) || index_vector_is_gone(vector)) continue;
      float d = kernel_distance(info->metric, s->request->query, norm2, vector, info->dim);
      if (kernel_topk_wants(&top, d)) kernel_topk_push(&top, d, first + i, 0);
    }
    s->scratch->stats.vectors += n;
    s->scratch->stats.vectors_read += n;
  }
  return rerank_end(s, &top, hits, n_hits, err);
}
