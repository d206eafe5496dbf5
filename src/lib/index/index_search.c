/* SPDX-License-Identifier: Apache-2.0 */
/* index_search.c - see index_search.h. Everything runs inside the segment (index_segment_enter()).
 *
 * The costs that decide how a filtered search is done are in distances between codes: a walk needs about
 * INDEX_COST_PER_EFFORT for each row of its beam, and a beam that is wider by the share of rows that do not match; one
 * that steps over those needs several times that, and the marking of the matches; a scan needs one for each match.
 */
#include "index/index_search.h"

#include <math.h>

#include "index/index_tuning.h"

typedef struct index_query {
  index_segment *segment;
  const index_search_request *request;
  index_search_scratch *scratch;
  index_walk_query query;
  uint64_t n_allowed;
  size_t k, keep; /* results; candidates that may be reranked */
  size_t beam;
  size_t n_candidates;
  bool coarse; /* the candidates may be distant from the query, where differences between keys mean little */
} index_query;

void index_search_scratch_release(index_search_scratch *scratch) {
  index_walk_scratch_release(&scratch->walk);
  mem_free(scratch->query);
  mem_free(scratch->vectors);
  mem_free(scratch->allowed);
  mem_free(scratch->candidates);
  mem_free(scratch->near);
  *scratch = (index_search_scratch){0};
}

static bool slot_allowed(const index_query *s, uint32_t slot) {
  const uint64_t *allowed = s->request->allowed;
  return !allowed || (allowed[slot / 64] >> (slot % 64) & 1);
}

static uint64_t count_allowed(const uint64_t *allowed, uint32_t n) {
  uint64_t count = 0;
  if (!allowed) return n;
  for (uint32_t w = 0; w < n / 64; w++) count += (uint64_t)__builtin_popcountll(allowed[w]);
  if (n % 64) count += (uint64_t)__builtin_popcountll(allowed[n / 64] & (((uint64_t)1 << (n % 64)) - 1));
  return count;
}

static lode_status index_query_damaged(lode_error *err, const char *what) {
  return err_set(err, LODE_CORRUPT, "damaged index segment (%s): it will be rebuilt from the records", what);
}

/* ---- Ranking by float vectors ---- */

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

/* The checksums of vectors are in their records: each is a cache miss unless prefetched. */
static void prefetch_records(const index_query *s) {
  size_t n = s->n_candidates < s->k ? s->n_candidates : s->k;
  for (size_t i = 0; i < n; i++)
    __builtin_prefetch(s->segment->records.data + (size_t)(uint32_t)s->scratch->candidates[i] * INDEX_SEG_RECORD_BYTES);
}

/* Candidates are in key order. After the first k, continues until none of the others could be nearer, or a few in a row
 * were not: with precise codes that is at once, with coarse ones (lengths that differ a lot) it takes longer. */
static lode_status rerank_candidates(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err) {
  kernel_topk top;
  code_errors e = code_errors_init(s);
  float norm2 = query_norm2(s);
  for (size_t i = 1; i < s->n_candidates; i++)
    INVARIANT_CHECKED(s->scratch->candidates[i - 1] >> 32 <= s->scratch->candidates[i] >> 32);
  size_t misses = 0, patience = s->coarse ? 2 * s->k : s->k / INDEX_RERANK_PATIENCE + 1;
  TRY(rerank_begin(s, &top, err));
  TRY(index_query_reserve_vectors(s, s->segment->info.dim, err));
  prefetch_records(s);
  for (size_t i = 0; i < s->n_candidates && misses < patience; i++) {
    uint32_t slot = (uint32_t)s->scratch->candidates[i];
    float key = quant_key_of_order((uint32_t)(s->scratch->candidates[i] >> 32));
    if (top.n == top.k && !could_be_nearer(&e, key, kernel_topk_bound(&top))) break;
    TRY(index_segment_vectors_nolock(s->segment, slot, 1, s->scratch->vectors, err));
    float d =
        kernel_distance(s->segment->info.metric, s->request->query, norm2, s->scratch->vectors, s->segment->info.dim);
    code_errors_note(&e, key, d);
    s->scratch->stats.vectors++;
    misses = top.n < top.k || d < kernel_topk_bound(&top) ? 0 : misses + 1;
    if (kernel_topk_wants(&top, d)) kernel_topk_push(&top, d, slot, 0);
  }
  return rerank_end(s, &top, hits, n_hits, err);
}

static lode_status rerank_all(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err) {
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
    for (uint32_t i = 0; i < n && !any; i++) any = slot_allowed(s, first + i);
    if (!any) continue;
    TRY(index_segment_vectors_nolock(s->segment, first, n, s->scratch->vectors, err));
    for (uint32_t i = 0; i < n; i++) {
      if (!slot_allowed(s, first + i)) continue;
      float d = kernel_distance(info->metric, s->request->query, norm2, s->scratch->vectors + (size_t)i * info->dim,
                                info->dim);
      if (kernel_topk_wants(&top, d)) kernel_topk_push(&top, d, first + i, 0);
    }
    s->scratch->stats.vectors += n;
  }
  return rerank_end(s, &top, hits, n_hits, err);
}

static lode_status index_query_reserve(index_query *s, size_t keep, lode_error *err) {
  index_search_scratch *scratch = s->scratch;
  s->keep = keep < s->n_allowed ? keep : (size_t)s->n_allowed;
  if (mem_grow(&scratch->candidates, &scratch->candidates_cap, s->keep, sizeof *scratch->candidates)) return LODE_OK;
  return err_nomem(err);
}

/* The matches may be distant from the query, where differences between keys mean little: keep and rerank more
 * candidates. */
static lode_status expect_distant(index_query *s, lode_error *err) {
  size_t keep = INDEX_DISTANT_KEEP * s->beam;
  s->coarse = true;
  return index_query_reserve(s, keep > s->k ? keep : s->k, err);
}

/* ---- Scan of codes ---- */

/* Adds rows to the candidates, of which the `keep` best are kept. */
typedef struct code_scan {
  index_query *s;
  const unsigned char *rows[INDEX_STEP_ROWS];
  size_t n;
} code_scan;

static void code_scan_flush(code_scan *c) {
  float keys[INDEX_STEP_ROWS];
  index_query *s = c->s;
  uint64_t *best = s->scratch->candidates;
  quant_keys(&s->query.code, c->rows, c->n, keys);
  for (size_t i = 0; i < c->n; i++) {
    uint64_t entry = (uint64_t)quant_key_order(keys[i]) << 32 | quant_row_slot(c->rows[i]);
    if (s->n_candidates == s->keep) {
      if (entry >= best[0]) continue;
      /* a max-heap: replace the root, sift down */
      size_t at = 0, child;
      while ((child = 2 * at + 1) < s->keep) {
        if (child + 1 < s->keep && best[child + 1] > best[child]) child++;
        if (best[child] <= entry) break;
        best[at] = best[child];
        at = child;
      }
      best[at] = entry;
      continue;
    }
    size_t at = s->n_candidates++;
    for (; at > 0 && best[(at - 1) / 2] < entry; at = (at - 1) / 2) best[at] = best[(at - 1) / 2];
    best[at] = entry;
  }
  s->scratch->stats.distances += c->n;
  c->n = 0;
}

static lode_status code_scan_add(code_scan *c, uint32_t ordinal, lode_error *err) {
  index_segment *segment = c->s->segment;
  uint64_t at = (uint64_t)ordinal * segment->stride;
  TRY(index_paged_need(&segment->rows, at, segment->stride, err));
  c->rows[c->n] = segment->rows.data + at;
  __builtin_prefetch(c->rows[c->n]);
  __builtin_prefetch(c->rows[c->n] + 64);
  c->n++;
  if (c->n == INDEX_STEP_ROWS) code_scan_flush(c);
  return LODE_OK;
}

static lode_status ordinal_of_slot(index_segment *segment, uint32_t slot, uint32_t *ordinal, lode_error *err) {
  *ordinal = slot;
  if (segment->info.kind == INDEX_FLAT) return LODE_OK;
  TRY(index_paged_need(&segment->ordinals, (uint64_t)slot * 4, 4, err));
  memcpy(ordinal, segment->ordinals.data + (size_t)slot * 4, sizeof *ordinal);
  return *ordinal < segment->info.n ? LODE_OK : index_query_damaged(err, "ordinal of a slot");
}

static lode_status code_scan_allowed(index_query *s, lode_error *err) {
  code_scan c = {.s = s};
  uint32_t n = s->segment->info.n;
  TRY(expect_distant(s, err));
  s->n_candidates = 0;
  s->scratch->stats.ways |= INDEX_BY_SCAN;
  for (uint32_t base = 0; base < n; base += 64) {
    uint64_t bits = s->request->allowed ? s->request->allowed[base / 64] : ~(uint64_t)0;
    if (n - base < 64) bits &= ((uint64_t)1 << (n - base)) - 1;
    for (; bits; bits &= bits - 1) {
      uint32_t slot = base + (uint32_t)__builtin_ctzll(bits), ordinal;
      TRY(ordinal_of_slot(s->segment, slot, &ordinal, err));
      TRY(code_scan_add(&c, ordinal, err));
    }
  }
  if (c.n) code_scan_flush(&c);
  qsort(s->scratch->candidates, s->n_candidates, sizeof *s->scratch->candidates, sort_cmp_u64);
  for (size_t i = 0; i < s->n_candidates; i++) {
    uint32_t slot = (uint32_t)s->scratch->candidates[i];
    if (slot >= n || !slot_allowed(s, slot)) return index_query_damaged(err, "slot of a row");
  }
  return LODE_OK;
}

/* ---- Walks ---- */

static index_graph_view segment_graph_view(index_segment *segment) {
  return (index_graph_view){.rows = &segment->rows,
                            .links = &segment->links,
                            .stride = segment->stride,
                            .n = segment->info.n,
                            .dim = segment->info.dim,
                            .width = segment->info.degree,
                            .n_entries = segment->info.n_entries,
                            .entry_climbs = segment->info.entry_climbs};
}

/* Turns the pool of a walk into candidates: the allowed ones. */
static lode_status candidates_from_pool(index_query *s, lode_error *err) {
  const index_walk_scratch *walk = &s->scratch->walk;
  s->n_candidates = 0;
  for (size_t i = 0; i < walk->n && s->n_candidates < s->keep; i++) {
    const unsigned char *row = s->segment->rows.data + (size_t)index_pool_ordinal(walk->pool[i]) * s->segment->stride;
    uint32_t slot = quant_row_slot(row);
    if (slot >= s->segment->info.n) return index_query_damaged(err, "slot of a row");
    if (!slot_allowed(s, slot)) continue;
    s->scratch->candidates[s->n_candidates++] = (walk->pool[i] >> 32) << 32 | slot;
  }
  return LODE_OK;
}

static lode_status plain_walk(index_query *s, size_t effort, lode_error *err) {
  index_graph_view view = segment_graph_view(s->segment);
  s->scratch->stats.ways |= INDEX_BY_WALK;
  size_t beam = effort > s->keep ? effort : s->keep;
  TRY(index_walk_scratch_init(&s->scratch->walk, view.n, beam, err));
  TRY(index_walk(&view, &s->query, beam, effort, &s->scratch->walk, err));
  return candidates_from_pool(s, err);
}

/* Makes the bitmap of allowed ordinals, and picks some of them, evenly spread, as seeds. */
static lode_status allowed_by_ordinal(index_query *s, uint32_t *seeds, size_t *n_seeds, lode_error *err) {
  uint32_t n = s->segment->info.n;
  size_t words = (size_t)n / 64 + 1, seen = 0, every = (size_t)(s->n_allowed / INDEX_ALLOWED_SEEDS) + 1;
  if (!mem_grow(&s->scratch->allowed, &s->scratch->allowed_cap, words, sizeof *s->scratch->allowed)) {
    return err_nomem(err);
  }
  memset(s->scratch->allowed, 0, words * sizeof *s->scratch->allowed);
  *n_seeds = 0;
  for (uint32_t base = 0; base < n; base += 64) {
    uint64_t bits = s->request->allowed[base / 64];
    if (n - base < 64) bits &= ((uint64_t)1 << (n - base)) - 1;
    for (; bits; bits &= bits - 1) {
      uint32_t ordinal;
      TRY(ordinal_of_slot(s->segment, base + (uint32_t)__builtin_ctzll(bits), &ordinal, err));
      s->scratch->allowed[ordinal / 64] |= (uint64_t)1 << (ordinal % 64);
      if (seen++ % every == 0 && *n_seeds < INDEX_ALLOWED_SEEDS) seeds[(*n_seeds)++] = ordinal;
    }
  }
  return LODE_OK;
}

/* Are there so few that they are scanned if they are distant from the query? */
static bool few_if_distant(const index_query *s) {
  return s->n_allowed <= (uint64_t)INDEX_DISTANT_SCAN_WALKS * INDEX_COST_PER_EFFORT * s->beam;
}

/* distant: the matches are known not to be near the query. */
static lode_status allowed_walk(index_query *s, bool distant, lode_error *err) {
  index_graph_view view = segment_graph_view(s->segment);
  uint32_t seeds[INDEX_ALLOWED_SEEDS];
  size_t n_seeds = 0;
  if (distant) TRY(expect_distant(s, err));
  s->scratch->stats.ways |= INDEX_BY_WALK_ALLOWED;
  size_t wide_beam = few_if_distant(s) ? 0 : INDEX_DISTANT_BEAM_FACTOR * s->beam;
  TRY(index_walk_scratch_init(&s->scratch->walk, view.n, wide_beam > s->keep ? wide_beam : s->keep, err));
  TRY(allowed_by_ordinal(s, seeds, &n_seeds, err));
  index_walk_filter filter = {.allowed = s->scratch->allowed,
                              .seeds = seeds,
                              .n_seeds = n_seeds,
                              .beam = distant ? wide_beam : s->keep,
                              .distant_beam = wide_beam};
  TRY(index_walk_allowed(&view, &s->query, &filter, &s->scratch->walk, err));
  return candidates_from_pool(s, err);
}

/* ---- Prepared filters ---- */

static lode_status code_scan_filtered(index_query *s, lode_error *err) {
  const index_filtered *m = s->request->match;
  code_scan c = {.s = s};
  TRY(expect_distant(s, err));
  s->n_candidates = 0;
  s->scratch->stats.ways |= INDEX_BY_SCAN | INDEX_BY_FILTERED;
  for (uint32_t i = 0; i < m->n; i++) {
    c.rows[c.n++] = m->rows.data + (size_t)i * s->segment->stride;
    if (c.n == INDEX_STEP_ROWS) code_scan_flush(&c);
  }
  if (c.n) code_scan_flush(&c);
  qsort(s->scratch->candidates, s->n_candidates, sizeof *s->scratch->candidates, sort_cmp_u64);
  for (size_t i = 0; i < s->n_candidates; i++) {
    uint32_t slot = (uint32_t)s->scratch->candidates[i];
    if (slot >= s->segment->info.n || !slot_allowed(s, slot)) return index_query_damaged(err, "slot of a row");
  }
  return LODE_OK;
}

/* The rows nearest to the query, matching or not, show where to start, and whether the matches are there at all. */
static lode_status probe_near_query(index_query *s, index_filtered_starts *starts, lode_error *err) {
  index_graph_view view = segment_graph_view(s->segment);
  index_walk_scratch *walk = &s->scratch->walk;
  TRY(index_walk_scratch_init(walk, view.n, INDEX_PROBE_BEAM, err));
  TRY(index_walk(&view, &s->query, INDEX_PROBE_BEAM, INDEX_PROBE_BEAM, walk, err));
  return index_filtered_probe(s->request->match, walk, starts, err);
}

static lode_status filtered_walk(index_query *s, const index_filtered_starts *starts, size_t beam, lode_error *err) {
  index_filtered *m = s->request->match;
  index_graph_view view = index_filtered_view(m, starts);
  index_walk_scratch *walk = &s->scratch->walk;
  if (beam < s->keep) beam = s->keep;
  s->scratch->stats.ways |= INDEX_BY_WALK | INDEX_BY_FILTERED;
  TRY(index_walk_scratch_init(walk, view.n, beam, err));
  TRY(index_walk(&view, &s->query, beam, SIZE_MAX, walk, err));
  s->n_candidates = 0;
  for (size_t i = 0; i < walk->n && s->n_candidates < s->keep; i++) {
    uint32_t slot = quant_row_slot(m->rows.data + (size_t)index_pool_ordinal(walk->pool[i]) * view.stride);
    if (slot >= s->segment->info.n || !slot_allowed(s, slot)) return index_query_damaged(err, "slot of a row");
    s->scratch->candidates[s->n_candidates++] = (walk->pool[i] >> 32) << 32 | slot;
  }
  return LODE_OK;
}

static lode_status find_filtered_candidates(index_query *s, lode_error *err) {
  index_filtered_starts starts, near;
  size_t beam = s->beam + s->beam / 4;
  if (s->segment->info.kind == INDEX_FLAT ||
      s->n_allowed <= (uint64_t)INDEX_FILTERED_SCAN_WALKS * INDEX_COST_PER_EFFORT * s->beam)
    return code_scan_filtered(s, err);
  TRY(index_filtered_begin(s->request->match, &s->query.code, &starts, err));
  s->scratch->stats.distances += s->segment->info.n_entries;
  if (starts.distant) {
    TRY(probe_near_query(s, &near, err));
    if (near.distant && few_if_distant(s)) return code_scan_filtered(s, err);
    if (near.distant) TRY(expect_distant(s, err));
    if (near.distant)
      beam = INDEX_DISTANT_BEAM_FACTOR * s->beam;
    else
      starts = near;
  }
  TRY(filtered_walk(s, &starts, beam, err));
  return s->scratch->walk.n < s->scratch->walk.beam || s->n_candidates < s->k ? code_scan_filtered(s, err) : LODE_OK;
}

static lode_status index_query_candidates(index_query *s, lode_error *err) {
  uint64_t n = s->segment->info.n, m = s->n_allowed;
  uint64_t walk = (uint64_t)s->beam * INDEX_COST_PER_EFFORT, wide = (uint64_t)s->beam * n / m;
  uint64_t plain_cost = wide * INDEX_COST_PER_EFFORT,
           allowed_cost = INDEX_NEAR_SCAN_WALKS * walk + m / INDEX_MARKS_PER_COST;
  bool distant = false, nearly_all = m * 100 >= n * INDEX_PLAIN_WALK_PERCENT;
  if (s->request->match && !nearly_all) return find_filtered_candidates(s, err);
  if (s->segment->info.kind == INDEX_FLAT) return code_scan_allowed(s, err);
  if (plain_cost <= allowed_cost || nearly_all) {
    if (m <= plain_cost) return code_scan_allowed(s, err);
    if (s->request->allowed && wide < s->keep) wide = s->keep; /* not all of the pool will be allowed */
    TRY(plain_walk(s, wide > n ? n : (size_t)wide, err));
    /* About `beam` candidates should be allowed; if not, the filter excludes what is near this query. */
    if (s->n_candidates >= s->k && (!s->request->allowed || 2 * s->n_candidates >= s->keep)) return LODE_OK;
    if (!s->request->allowed) return code_scan_allowed(s, err);
    if (few_if_distant(s)) return code_scan_allowed(s, err);
    distant = true;
  }
  if (m <= allowed_cost || m * 1000 < n * INDEX_MIN_WALK_PERMILLE) return code_scan_allowed(s, err);
  TRY(allowed_walk(s, distant, err));
  /* If the pool did not fill up, the walk was cut off from the other matches. */
  return s->scratch->walk.n < s->scratch->walk.beam || s->n_candidates < s->k ? code_scan_allowed(s, err) : LODE_OK;
}

/* The effort of a search that does not give one. */
static size_t index_query_effort(const index_query *s) {
  const index_segment_info *info = &s->segment->info;
  size_t fallback = info->effort ? info->effort : INDEX_DEFAULT_BEAM;
  if (!(s->request->recall > 0)) return fallback;
  uint32_t effort = index_effort_for(&info->curve, s->request->recall);
  if (effort != INDEX_EFFORT_UNKNOWN) return effort;
  return s->request->recall > INDEX_DEFAULT_RECALL ? INDEX_HIGH_RECALL_FACTOR * fallback : fallback;
}

/* Is the target recall higher than any effort that was tried has reached, or is any? */
static bool recall_beyond_walks(const index_query *s) {
  const index_search_request *r = s->request;
  if (index_effort_is_blind(&s->segment->info.curve)) return true;
  return !r->beam && r->recall > 0 && index_effort_for(&s->segment->info.curve, r->recall) == INDEX_EFFORT_NONE;
}

static lode_status index_query_prepare(index_query *s, lode_error *err) {
  const index_segment_info *info = &s->segment->info;
  index_search_scratch *scratch = s->scratch;
  size_t bytes = quant_query_bytes(info->dim);
  if (scratch->query_cap < bytes) {
    mem_free(scratch->query);
    scratch->query_cap = 0;
    scratch->query = mem_alloc_aligned(QUANT_QUERY_ALIGN, bytes);
    if (!scratch->query) return err_nomem(err);
    scratch->query_cap = bytes;
  }
  s->beam = s->request->beam
                ? s->request->beam
                : index_query_effort(s) +
                      (s->k > INDEX_CALIBRATE_K ? INDEX_EFFORT_PER_RESULT * (s->k - INDEX_CALIBRATE_K) : 0);
  TRY(index_query_reserve(s, s->beam > s->k ? s->beam : s->k, err));
  quant_query_of_vector(&s->segment->model, s->request->query, scratch->query, &s->query.code);
  return LODE_OK;
}

static lode_status index_query_run(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err) {
  if (s->request->exact || recall_beyond_walks(s)) {
    s->scratch->stats.ways |= INDEX_BY_EXACT;
    return rerank_all(s, hits, n_hits, err);
  }
  index_walk_count before = s->scratch->walk.count;
  TRY(index_query_prepare(s, err));
  TRY(index_query_candidates(s, err));
  s->scratch->stats.distances += s->scratch->walk.count.distances - before.distances;
  s->scratch->stats.hops += s->scratch->walk.count.hops - before.hops;
  return rerank_candidates(s, hits, n_hits, err);
}

lode_status index_search(index_segment *segment, const index_search_request *request, index_search_scratch *scratch,
                         index_hit *hits, size_t *n_hits, lode_error *err) {
  index_query s = {.segment = segment, .request = request, .scratch = scratch};
  *n_hits = 0;
  s.n_allowed = request->match ? request->match->n : count_allowed(request->allowed, segment->info.n);
  s.k = request->k < s.n_allowed ? request->k : (size_t)s.n_allowed;
  if (s.k == 0) return LODE_OK;
  unsigned side = index_segment_enter(segment);
  lode_status st = index_query_run(&s, hits, n_hits, err);
  index_segment_leave(segment, side);
  if (st != LODE_OK) *n_hits = 0;
  return st;
}
