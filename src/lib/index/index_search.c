/* SPDX-License-Identifier: Apache-2.0 */
/* index_search.c - see index_search.h. Everything runs inside the segment (index_segment_enter()).
 *
 * The costs that decide how a filtered search is done are in distances between codes: a walk needs about
 * INDEX_COST_PER_EFFORT for each row of its beam, and a beam that is wider by the share of rows that do not match; one
 * that steps over those needs several times that, and the marking of the matches; a scan needs one for each match.
 */
#include "index/index_query.h"

#include "index/index_tuning.h"

void index_search_scratch_release(index_search_scratch *scratch) {
  index_walk_scratch_release(&scratch->walk);
  mem_free(scratch->query);
  mem_free(scratch->vectors);
  mem_free(scratch->allowed);
  mem_free(scratch->candidates);
  mem_free(scratch->least);
  mem_free(scratch->near);
  *scratch = (index_search_scratch){0};
}

static uint64_t count_allowed(const uint64_t *allowed, uint32_t n) {
  uint64_t count = 0;
  if (!allowed) return n;
  for (uint32_t w = 0; w < n / 64; w++) count += (uint64_t)__builtin_popcountll(allowed[w]);
  if (n % 64) count += (uint64_t)__builtin_popcountll(allowed[n / 64] & (((uint64_t)1 << (n % 64)) - 1));
  return count;
}

/* ---- Walks ---- */

static index_graph_view segment_graph_view(index_segment *segment) {
  return (index_graph_view){.rows = &segment->rows,
                            .links = &segment->links,
                            .stride = segment->stride,
                            .n = segment->info.n,
                            .dim = segment->info.dim,
                            .width = segment->info.degree,
                            .link_bits = segment->info.link_bits,
                            .n_entries = segment->info.n_entries,
                            .entry_climbs = segment->info.entry_climbs};
}

static const unsigned char *pool_row(const index_query *s, uint64_t entry) {
  return s->segment->rows.data + (size_t)index_pool_ordinal(entry) * s->segment->stride;
}

/* Turns the pool of a walk into candidates: the allowed ones. Of a wide pool, the rows have left the cache. */
static lode_status candidates_from_pool(index_query *s, lode_error *err) {
  const index_walk_scratch *walk = &s->scratch->walk;
  s->n_candidates = 0;
  for (size_t i = 0; i < walk->n && s->n_candidates < s->keep; i++) {
    if (i + INDEX_POOL_ROWS_AHEAD < walk->n)
      __builtin_prefetch(pool_row(s, walk->pool[i + INDEX_POOL_ROWS_AHEAD]) + QUANT_SLOT_AT);
    const unsigned char *row = pool_row(s, walk->pool[i]);
    uint32_t slot = quant_row_slot(row);
    if (slot >= s->segment->info.n) return index_query_damaged(err, "slot of a row");
    if (!index_query_allows(s, slot)) continue;
    s->scratch->candidates[s->n_candidates++] = (walk->pool[i] >> 32) << 32 | slot;
  }
  return LODE_OK;
}

static lode_status plain_walk(index_query *s, size_t pool, size_t effort, lode_error *err) {
  index_graph_view view = segment_graph_view(s->segment);
  s->scratch->stats.ways |= INDEX_BY_WALK;
  size_t beam = pool > s->keep ? pool : s->keep;
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
      TRY(index_segment_ordinal_nolock(s->segment, base + (uint32_t)__builtin_ctzll(bits), &ordinal, err));
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
  if (distant) TRY(index_query_expect_distant(s, err));
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
    if (slot >= s->segment->info.n || !index_query_allows(s, slot)) return index_query_damaged(err, "slot of a row");
    s->scratch->candidates[s->n_candidates++] = (walk->pool[i] >> 32) << 32 | slot;
  }
  return LODE_OK;
}

static lode_status find_filtered_candidates(index_query *s, lode_error *err) {
  index_filtered_starts starts, near;
  size_t beam = s->beam + s->beam / 4;
  if (s->segment->info.kind == INDEX_FLAT ||
      s->n_allowed <= (uint64_t)INDEX_FILTERED_SCAN_WALKS * INDEX_COST_PER_EFFORT * s->beam)
    return index_scan(s, err);
  TRY(index_filtered_begin(s->request->match, &s->query.code, &starts, err));
  s->scratch->stats.distances += s->segment->info.n_entries;
  if (starts.distant) {
    TRY(probe_near_query(s, &near, err));
    if (near.distant && few_if_distant(s)) return index_scan(s, err);
    if (near.distant) TRY(index_query_expect_distant(s, err));
    if (near.distant)
      beam = INDEX_DISTANT_BEAM_FACTOR * s->beam;
    else
      starts = near;
  }
  TRY(filtered_walk(s, &starts, beam, err));
  return s->scratch->walk.n < s->scratch->walk.beam || s->n_candidates < s->k ? index_scan(s, err) : LODE_OK;
}

/* A walk over all rows, allowed or not, whose k nearest allowed ones are wanted: these are about the k / share nearest
 * of all. It keeps twice as many. To have seen them it need not expand all: their neighbours are among them. */
typedef struct plain_walk_size {
  uint64_t pool, effort;
} plain_walk_size;

static plain_walk_size plain_walk_size_of(const index_query *s) {
  uint64_t n = s->segment->info.n, rows = (uint64_t)s->k * n / s->n_allowed, more = rows - s->k;
  uint64_t pool = s->beam + INDEX_EFFORT_PER_RESULT * more, effort = s->beam + more / INDEX_PASSED_PER_EFFORT;
  if (more > 0 && pool < rows) pool = rows;
  return (plain_walk_size){.pool = pool < n ? pool : n, .effort = effort < n ? effort : n};
}

static lode_status index_query_candidates(index_query *s, lode_error *err) {
  uint64_t n = s->segment->info.n, m = s->n_allowed;
  plain_walk_size plain = plain_walk_size_of(s);
  uint64_t walk = (uint64_t)s->beam * INDEX_COST_PER_EFFORT, scan_cost = m / INDEX_SCANNED_PER_COST;
  uint64_t plain_cost = plain.effort * INDEX_COST_PER_EFFORT,
           allowed_cost = INDEX_NEAR_SCAN_WALKS * walk + m / INDEX_MARKS_PER_COST;
  bool distant = false, nearly_all = m * 100 >= n * INDEX_PLAIN_WALK_PERCENT;
  if (s->request->match && !nearly_all) return find_filtered_candidates(s, err);
  if (s->segment->info.kind == INDEX_FLAT) return index_scan(s, err);
  if (plain_cost <= allowed_cost || nearly_all) {
    if (scan_cost <= plain_cost) return index_scan(s, err);
    TRY(plain_walk(s, (size_t)plain.pool, (size_t)plain.effort, err));
    /* If far fewer are allowed than elsewhere, the filter excludes what is near this query. */
    if (s->n_candidates >= s->k && 2 * s->n_candidates * n >= s->scratch->walk.n * m) return LODE_OK;
    if (!s->request->allowed) return index_scan(s, err);
    if (few_if_distant(s)) return index_scan(s, err);
    distant = true;
  }
  if (scan_cost <= allowed_cost || m * 1000 < n * INDEX_MIN_WALK_PERMILLE) return index_scan(s, err);
  TRY(allowed_walk(s, distant, err));
  /* If the pool did not fill up, the walk was cut off from the other matches. */
  return s->scratch->walk.n < s->scratch->walk.beam || s->n_candidates < s->k ? index_scan(s, err) : LODE_OK;
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

/* The codes of the query. */
static lode_status index_query_encode(index_query *s, lode_error *err) {
  index_search_scratch *scratch = s->scratch;
  size_t bytes = quant_query_bytes(s->segment->info.dim);
  if (scratch->query_cap < bytes) {
    mem_free(scratch->query);
    scratch->query_cap = 0;
    scratch->query = mem_alloc_aligned(QUANT_QUERY_ALIGN, bytes);
    if (!scratch->query) return err_nomem(err);
    scratch->query_cap = bytes;
  }
  quant_query_of_vector(&s->segment->model, s->request->query, scratch->query, &s->query.code);
  return LODE_OK;
}

static lode_status index_query_run(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err) {
  s->exact = s->request->exact || recall_beyond_walks(s);
  index_walk_count before = s->scratch->walk.count;
  size_t more = s->k > INDEX_CALIBRATE_K ? INDEX_EFFORT_PER_RESULT * (s->k - INDEX_CALIBRATE_K) : 0;
  s->beam = s->request->beam ? s->request->beam : index_query_effort(s) + more;
  TRY(index_query_reserve(s, s->beam > s->k ? s->beam : s->k, err));
  TRY(index_query_encode(s, err));
  TRY(s->exact ? index_scan(s, err) : index_query_candidates(s, err));
  s->scratch->stats.distances += s->scratch->walk.count.distances - before.distances;
  s->scratch->stats.hops += s->scratch->walk.count.hops - before.hops;
  bool few = s->n_candidates <= s->segment->info.n / INDEX_POSSIBLE_SHARE + s->k;
  if (s->proven ? few : !s->exact) return index_rank_candidates(s, hits, n_hits, err);
  s->scratch->stats.ways |= INDEX_BY_EXACT;
  return index_rank_all(s, hits, n_hits, err);
}

lode_status index_search(index_segment *segment, const index_search_request *request, index_search_scratch *scratch,
                         index_hit *hits, size_t *n_hits, lode_error *err) {
  index_query s = {.segment = segment, .request = request, .scratch = scratch};
  *n_hits = 0;
  s.n_allowed = request->match                           ? request->match->n
                : request->allowed && request->n_allowed ? request->n_allowed
                                                         : count_allowed(request->allowed, segment->info.n);
  s.k = request->k < s.n_allowed ? request->k : (size_t)s.n_allowed;
  if (s.k == 0) return LODE_OK;
  unsigned side = index_segment_enter(segment);
  lode_status st = index_query_run(&s, hits, n_hits, err);
  index_segment_leave(segment, side);
  if (st != LODE_OK) *n_hits = 0;
  return st;
}
