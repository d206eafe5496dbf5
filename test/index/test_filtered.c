/* SPDX-License-Identifier: Apache-2.0 */
/* test_filtered.c - the matches of a filter that were made ready: their graph against an independent search of its
 * ways, answers against brute force, odd filters, damage, threads, memory that runs out. */
#include "support/index_scene.h"

#include <pthread.h>
#include <stdlib.h>

#include "support/test.h"

typedef struct filter {
  uint64_t *slots;
  uint32_t n;
} filter;

static filter make_filter(const scene *s, unsigned percent) {
  filter f = {.slots = calloc(s->n / 64 + 1, sizeof *f.slots)};
  CHECK(f.slots != NULL);
  for (uint32_t i = 0; i < s->n; i++) {
    if (test_below(100) >= percent) continue;
    f.slots[i / 64] |= (uint64_t)1 << (i % 64);
    f.n++;
  }
  if (!f.n) {
    f.slots[0] |= 1;
    f.n = 1;
  }
  return f;
}

static bool matches(const scene *s, const filter *f, uint32_t ordinal) {
  uint32_t slot = quant_row_slot(s->segment->rows.data + (size_t)ordinal * s->segment->stride);
  return f->slots[slot / 64] >> (slot % 64) & 1;
}

/* Is `to` reached from `from` over rows that do not match? Depth first, unlike the code under test, and without its
 * limits. */
static bool is_reached(const scene *s, const filter *f, uint32_t from, uint32_t to) {
  uint32_t degree = s->segment->info.degree, n = s->n, top = 0;
  index_graph_links links = {.data = s->segment->links.data, .width = degree, .bits = s->segment->info.link_bits};
  bool *seen = calloc(n, sizeof *seen), found = false;
  uint32_t *stack = malloc(n * sizeof *stack);
  CHECK(seen && stack);
  seen[from] = true;
  stack[top++] = from;
  while (top && !found) {
    uint32_t row[INDEX_MAX_DEGREE];
    index_unpack_links(&links, stack[--top], row);
    for (uint32_t i = 0; i < degree && row[i] < n && !found; i++) {
      found = row[i] == to;
      if (seen[row[i]]) continue;
      seen[row[i]] = true;
      if (!matches(s, f, row[i])) stack[top++] = row[i];
    }
  }
  free(seen);
  free(stack);
  return found;
}

static void check_links(scene *s, const filter *f, index_filtered *m, uint32_t rank) {
  lode_error err;
  size_t bytes = INDEX_FILTERED_WIDTH * sizeof(uint32_t), at = rank * bytes;
  OK(index_paged_need(&m->links, at, bytes, &err));
  const uint32_t *row = (const uint32_t *)(const void *)(m->links.data + at);
  for (size_t i = 0; i < INDEX_FILTERED_WIDTH; i++) {
    if (row[i] == INDEX_NO_LINK) {
      for (; i < INDEX_FILTERED_WIDTH; i++) CHECK(row[i] == INDEX_NO_LINK); /* nothing past the end */
      break;
    }
    CHECKF(row[i] < m->n && row[i] != rank, "link %u of match %u", row[i], rank);
    for (size_t j = 0; j < i; j++) CHECKF(row[j] != row[i], "match %u is linked to %u twice", rank, row[i]);
    CHECK(matches(s, f, m->ordinal_of[row[i]]));
    CHECKF(is_reached(s, f, m->ordinal_of[rank], m->ordinal_of[row[i]]), "match %u has no way to %u", rank, row[i]);
  }
}

TEST_SLOW(links_lead_over_rows_that_do_not_match, 120) {
  static const unsigned percents[] = {1, 5, 30, 100};
  scene s;
  lode_error err;
  test_srand(test_seed());
  scene_init(&s, CLUSTERS, LODE_L2, 3000, 16);
  scene_build(&s, INDEX_GRAPH, 1);
  OK(index_segment_preload(s.segment, &err));
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    filter f = make_filter(&s, percents[i]);
    index_filtered *m;
    OK(index_filtered_new(s.segment, f.slots, f.n, &m, &err));
    CHECK(m->n == f.n);
    for (uint32_t r = 0; r < m->n; r++) { /* rows and numbers, in the order of the segment */
      CHECK(matches(&s, &f, m->ordinal_of[r]) && (r == 0 || m->ordinal_of[r] > m->ordinal_of[r - 1]));
      CHECK(memcmp(m->rows.data + (size_t)r * s.segment->stride,
                   s.segment->rows.data + (size_t)m->ordinal_of[r] * s.segment->stride, s.segment->stride) == 0);
    }
    for (uint32_t tries = 0; tries < 30; tries++) check_links(&s, &f, m, (uint32_t)test_below(m->n));
    index_filtered_free(m);
    free(f.slots);
  }
  scene_release(&s);
}

static double recall_with(scene *s, const filter *f, index_filtered *m, unsigned queries, index_search_stats *stats) {
  lode_error err;
  index_search_scratch scratch = {0};
  index_hit hits[10];
  float query[64];
  double sum = 0;
  for (unsigned q = 0; q < queries; q++) {
    size_t n;
    scene_query(s, query);
    index_search_request request = {.query = query, .k = 10, .allowed = f->slots, .match = m};
    OK(index_search(s->segment, &request, &scratch, hits, &n, &err));
    sum +=
        scene_recall(s, query, f->slots, 10, hits, n); /* that each matches, none comes twice, and there are enough */
  }
  *stats = scratch.stats;
  index_search_scratch_release(&scratch);
  return sum / queries;
}

/* Of any size, by scan and by walk, at the cost of a walk without a filter or of a scan of the matches. */
TEST_SLOW(recall_and_cost, 180) {
  static const unsigned percents[] = {0, 1, 5, 20, 50, 85};
  scene s;
  lode_error err;
  unsigned ways = 0;
  test_srand(test_seed());
  scene_init(&s, CLUSTERS, LODE_COSINE, 20000, 24);
  scene_build(&s, INDEX_GRAPH, 1);
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    index_search_stats stats;
    filter f = make_filter(&s, percents[i]);
    index_filtered *m;
    OK(index_filtered_new(s.segment, f.slots, f.n, &m, &err));
    double r = recall_with(&s, &f, m, 20, &stats), cost = (double)stats.distances / 20;
    ways |= stats.ways;
    CHECKF(r >= 0.95, "%u %%: recall %.3f", percents[i], r);
    CHECKF(cost <= 1.1 * (double)f.n + 64 && cost <= 6000, "%u %%: %.0f distances for %u matches", percents[i], cost,
           f.n);
    index_filtered_free(m);
    free(f.slots);
  }
  CHECKF(ways == (INDEX_BY_WALK | INDEX_BY_SCAN | INDEX_BY_FILTERED), "ways %u", ways);
  scene_release(&s);
}

static int by_distance(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* The share of rows that is farthest from a point. */
static filter far_filter(const scene *s, const float *point, unsigned percent) {
  filter f = {.slots = calloc(s->n / 64 + 1, sizeof *f.slots)};
  double *distances = malloc(s->n * sizeof *distances), *sorted = malloc(s->n * sizeof *sorted);
  CHECK(f.slots && distances && sorted);
  for (uint32_t i = 0; i < s->n; i++) distances[i] = sorted[i] = scene_distance(s, point, i);
  qsort(sorted, s->n, sizeof *sorted, by_distance);
  double bound = sorted[s->n - s->n / 100 * percent];
  for (uint32_t i = 0; i < s->n; i++) {
    if (distances[i] < bound) continue;
    f.slots[i / 64] |= (uint64_t)1 << (i % 64);
    f.n++;
  }
  free(distances);
  free(sorted);
  return f;
}

/* Nothing near the query matches: its nearest matches are at the rim of what is far away, and lie in several clusters.
 */
TEST_SLOW(matches_that_are_far_are_found, 180) {
  static const unsigned percents[] = {2, 20, 50, 80, 95};
  enum { FILTERS = 12 };
  scene s;
  lode_error err;
  float query[16];
  test_srand(test_seed());
  scene_init(&s, CLUSTERS, test_below(2) ? LODE_COSINE : LODE_L2, 12000, 16);
  scene_build(&s, INDEX_GRAPH, 1);
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    double once = 0, again = 0;
    for (unsigned j = 0; j < FILTERS; j++) {
      index_search_scratch scratch = {0};
      index_hit hits[10];
      index_filtered *m;
      size_t n;
      scene_query(&s, query);
      filter f = far_filter(&s, query, percents[i]);
      const float *other = s.vectors + test_below(s.n) * s.dim;
      for (uint32_t d = 0; d < s.dim; d++)
        query[d] = 0.9f * query[d] + 0.1f * other[d]; /* else thousands are equally far */
      OK(index_filtered_new(s.segment, f.slots, f.n, &m, &err));
      index_search_request request = {.query = query, .k = 10, .allowed = f.slots};
      OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
      once += scene_recall(&s, query, f.slots, 10, hits, n) / FILTERS;
      request.match = m;
      OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
      again += scene_recall(&s, query, f.slots, 10, hits, n) / FILTERS;
      index_filtered_free(m);
      index_search_scratch_release(&scratch);
      free(f.slots);
    }
    CHECKF(once >= 0.95 && again >= 0.95, "%u %%: recall %.3f, used again %.3f", percents[i], once, again);
  }
  scene_release(&s);
}

TEST(what_is_wrong_is_refused) {
  scene s;
  lode_error err;
  index_filtered *m;
  test_srand(test_seed());
  scene_init(&s, UNIFORM, LODE_IP, 500, 8);
  scene_build(&s, INDEX_GRAPH, 1);
  filter f = make_filter(&s, 50);
  FAILS(LODE_INVALID, index_filtered_new(s.segment, f.slots, 0, &m, &err));
  FAILS(LODE_INVALID, index_filtered_new(s.segment, f.slots, f.n + 1, &m, &err));
  FAILS(LODE_INVALID, index_filtered_new(s.segment, f.slots, s.n + 1, &m, &err));
  CHECK(m == NULL);
  f.slots[s.n / 64] |= ~(uint64_t)0 << (s.n % 64); /* bits past the last slot do not count */
  OK(index_filtered_new(s.segment, f.slots, f.n, &m, &err));
  index_filtered_free(m);
  /* two slots that claim one row */
  uint64_t at = s.segment->layout.at[INDEX_SEG_ORDINALS];
  memcpy(s.file + at, s.file + at + 4, 4);
  scene_repair(&s);
  OK(scene_open(&s, &err));
  f.slots[0] |= 3;
  f.n = 0;
  for (uint32_t i = 0; i < s.n; i++) f.n += f.slots[i / 64] >> (i % 64) & 1;
  FAILS(LODE_CORRUPT, index_filtered_new(s.segment, f.slots, f.n, &m, &err));
  CHECK(m == NULL);
  free(f.slots);
  scene_release(&s);
}

/* ---- Threads ---- */

enum { QUERIES = 8 };
typedef struct crowd {
  scene *s;
  const filter *f;
  index_filtered *m;
  float queries[QUERIES][24];
  index_hit want[QUERIES][10];
} crowd;

static void ask(const crowd *c, index_search_scratch *scratch, index_filtered *m, unsigned q, index_hit *hits) {
  lode_error err;
  size_t n;
  index_search_request request = {.query = c->queries[q], .k = 10, .allowed = c->f->slots, .match = m};
  OK(index_search(c->s->segment, &request, scratch, hits, &n, &err));
  CHECK(n == 10);
}

static void *search_on(void *arg) {
  const crowd *c = arg;
  index_search_scratch scratch = {0};
  index_hit hits[10];
  for (unsigned r = 0; r < 40; r++) {
    ask(c, &scratch, c->m, r % QUERIES, hits);
    CHECK(memcmp(hits, c->want[r % QUERIES], sizeof hits) == 0);
  }
  index_search_scratch_release(&scratch);
  return NULL;
}

/* The graph grows under several threads, while pages of the segment come and go: all get what one alone does. */
TEST_SLOW(threads_share_it, 120) {
  scene s;
  lode_error err;
  index_search_scratch scratch = {0};
  pthread_t threads[4];
  test_srand(test_seed());
  scene_init(&s, CLUSTERS, LODE_L2, 12000, 24);
  scene_build(&s, INDEX_GRAPH, 1);
  filter f = make_filter(&s, 50);
  crowd c = {.s = &s, .f = &f};
  OK(index_filtered_new(s.segment, f.slots, f.n, &c.m, &err));
  for (unsigned q = 0; q < QUERIES; q++) {
    scene_query(&s, c.queries[q]);
    ask(&c, &scratch, c.m, q, c.want[q]);
  }
  CHECK(scratch.stats.ways & INDEX_BY_WALK);
  index_filtered_free(c.m);
  OK(index_filtered_new(s.segment, f.slots, f.n, &c.m, &err)); /* without links again */
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, search_on, &c) == 0);
  for (int i = 0; i < 100; i++) index_segment_evict(s.segment, 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  index_search_scratch_release(&scratch);
  index_filtered_free(c.m);
  free(f.slots);
  scene_release(&s);
}

static unsigned allocations_left;
static bool allow_some(void) { return allocations_left > 0 && allocations_left--; }

TEST(every_allocation_may_fail) {
  scene s;
  lode_error err;
  bool finished = false;
  test_srand(test_seed());
  scene_init(&s, CLUSTERS, LODE_L2, 3000, 8);
  scene_build(&s, INDEX_GRAPH, 1);
  filter f = make_filter(&s, 85);
  for (unsigned n = 0; n < 200 && !finished; n++) {
    index_search_scratch scratch = {0};
    index_hit hits[10];
    index_filtered *m = NULL;
    size_t n_hits = 0;
    allocations_left = n;
    mem_alloc_hook = allow_some;
    lode_status st = index_filtered_new(s.segment, f.slots, f.n, &m, &err);
    index_search_request request = {.query = s.vectors, .k = 10, .beam = 12, .allowed = f.slots, .match = m};
    if (st == LODE_OK) st = index_search(s.segment, &request, &scratch, hits, &n_hits, &err);
    mem_alloc_hook = NULL;
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "%u: %s", n, err.text);
    finished = st == LODE_OK && n_hits == 10 && allocations_left > 0;
    index_filtered_free(m);
    index_search_scratch_release(&scratch);
  }
  CHECK(finished);
  free(f.slots);
  scene_release(&s);
}
