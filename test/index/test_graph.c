/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph.c - the graph: its invariants for every kind of data, the same bytes with any number of threads and on any
 * kernel, recall with and without filters, effort, and how many distances a query costs. */
#include <math.h>

#include "base/crc32c.h"
#include "support/index_scene.h"
#include "support/test.h"

static const char *const shape_names[] = {"clusters", "uniform", "equal", "zeros", "line", "duplicates", "skewed"};

/* Mean recall of some queries; every one is checked for order, distances, and number. */
static double recall_of(scene *s, const uint64_t *allowed, size_t k, uint32_t beam, size_t queries,
                        index_search_stats *stats) {
  lode_error err;
  index_search_scratch scratch = {0};
  index_hit *hits = malloc((k + 1) * sizeof *hits);
  float *query = malloc(s->dim * sizeof *query);
  double sum = 0;
  CHECK(hits && query);
  for (size_t i = 0; i < queries; i++) {
    size_t n_hits;
    scene_query(s, query);
    index_search_request request = {.query = query, .k = k, .beam = beam, .allowed = allowed};
    OK(index_search(s->segment, &request, &scratch, hits, &n_hits, &err));
    sum += scene_recall(s, query, allowed, k, hits, n_hits);
  }
  if (stats) *stats = scratch.stats;
  index_search_scratch_release(&scratch);
  free(hits);
  free(query);
  return sum / (double)queries;
}

static void check_segment(scene *s, const char *what) {
  index_graph_report report;
  lode_error err;
  lode_status st = index_segment_verify(s->segment, &report, &err);
  CHECKF(st == LODE_OK, "%s, n %u, dim %u: %s", what, s->n, s->dim, err.text);
  CHECK(report.unreachable == 0);
}

TEST_SLOW(every_kind_of_data_gives_a_connected_graph_with_recall, 240) {
  test_srand(test_seed());
  for (shape how = CLUSTERS; how <= SKEWED; how++) {
    for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
      scene s;
      scene_init(&s, how, metric, 2500, 24);
      scene_build(&s, INDEX_GRAPH, 1);
      check_segment(&s, shape_names[how]);
      double r = recall_of(&s, NULL, 10, 0, 50, NULL);
      /* 500 answers on random data: the floor leaves room for chance below the default's goal of 0.97 */
      CHECKF(r >= 0.94, "%s, metric %d: recall %.3f", shape_names[how], (int)metric, r);
      scene_release(&s);
    }
  }
}

TEST(any_number_of_rows_and_dimensions) {
  test_srand(test_seed());
  static const uint32_t counts[] = {1, 2, 3, 5, 17, 33, 34, 65, 200}, dims[] = {1, 2, 31, 32, 33, 128};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (size_t j = 0; j < sizeof dims / sizeof *dims; j++) {
      for (index_segment_kind kind = INDEX_FLAT; kind <= INDEX_GRAPH; kind++) {
        scene s;
        scene_init(&s, UNIFORM, (lode_metric)test_below(3), counts[i], dims[j]);
        scene_build(&s, kind, 1);
        check_segment(&s, "uniform");
        CHECK(recall_of(&s, NULL, 10, 0, 5, NULL) >= 0.9);
        CHECK(recall_of(&s, NULL, counts[i] + 5, 0, 2, NULL) >= 0.97); /* k larger than the segment: all of it */
        scene_release(&s);
      }
    }
  }
}

TEST(the_largest_dimension) {
  test_srand(test_seed());
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    scene s;
    scene_init(&s, CLUSTERS, metric, 40, LODE_MAX_DIMENSION);
    scene_build(&s, INDEX_GRAPH, 1);
    check_segment(&s, "clusters");
    CHECK(recall_of(&s, NULL, 5, 0, 5, NULL) >= 0.9);
    scene_release(&s);
  }
}

/* Nobody can be lost: rows that are copies of each other, in their thousands, are all reachable, and quickly. */
TEST_SLOW(thousands_of_copies, 120) {
  test_srand(test_seed());
  static const shape shapes[] = {EQUAL, DUPLICATES, ZEROS};
  for (size_t i = 0; i < 3; i++) {
    scene s;
    scene_init(&s, shapes[i], LODE_L2, 20000, 16);
    scene_build(&s, INDEX_GRAPH, 1);
    check_segment(&s, shape_names[shapes[i]]);
    CHECK(recall_of(&s, NULL, 100, 0, 5, NULL) >= 0.97);
    scene_release(&s);
  }
}

TEST(every_row_is_found_by_its_own_vector) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  index_search_scratch scratch = {0};
  scene_init(&s, CLUSTERS, LODE_L2, 5000, 32);
  scene_build(&s, INDEX_GRAPH, 1);
  uint32_t missed = 0;
  for (uint32_t i = 0; i < s.n; i++) {
    index_hit hits[10];
    size_t n;
    index_search_request request = {.query = s.vectors + (size_t)i * s.dim, .k = 10};
    OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
    missed += hits[0].distance != 0;
  }
  CHECKF(missed == 0, "%u rows were not found", missed);
  index_search_scratch_release(&scratch);
  scene_release(&s);
}

TEST_SLOW(the_same_bytes_with_any_number_of_threads_and_on_any_kernel, 240) {
  test_srand(test_seed());
  static const char *const kernels[] = {"portable", "avx2", "avx512", "neon", "neon-dot"};
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    scene s;
    scene_init(&s, CLUSTERS, metric, 2200, 20);
    scene_build(&s, INDEX_GRAPH, 1);
    uint32_t first = crc32c_update(0, s.file, s.file_bytes);
    static const unsigned workers[] = {2, 3, 8};
    for (size_t i = 0; i < 3; i++) {
      scene_build(&s, INDEX_GRAPH, workers[i]);
      CHECKF(crc32c_update(0, s.file, s.file_bytes) == first, "%u threads", workers[i]);
    }
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
      if (!quant_use(kernels[i])) continue;
      scene_build(&s, INDEX_GRAPH, 1);
      CHECKF(crc32c_update(0, s.file, s.file_bytes) == first, "%s", kernels[i]);
    }
    quant_use(NULL);
    scene_release(&s);
  }
}

/* ---- Filters ---- */

typedef enum relation { INDEPENDENT, NEAR, FAR } relation;

/* Bits for about `share` of the rows: any, or those near to one vector, or those far from it. */
static uint64_t make_filter(const scene *s, uint64_t *allowed, double share, relation how, const float *centre) {
  uint64_t count = 0;
  memset(allowed, 0, (s->n / 64 + 1) * sizeof *allowed);
  double bound = 0;
  if (how != INDEPENDENT) { /* the distance that this share of a sample is within */
    enum { SAMPLE = 1000 };
    double d[SAMPLE];
    for (int i = 0; i < SAMPLE; i++) d[i] = scene_distance(s, centre, (uint32_t)test_below(s->n));
    for (int i = 1; i < SAMPLE; i++)
      for (int j = i; j > 0 && d[j - 1] > d[j]; j--) {
        double t = d[j];
        d[j] = d[j - 1];
        d[j - 1] = t;
      }
    bound = d[(int)((how == NEAR ? share : 1 - share) * (SAMPLE - 1))];
  }
  for (uint32_t i = 0; i < s->n; i++) {
    double d = how == INDEPENDENT ? 0 : scene_distance(s, centre, i);
    bool in = how == INDEPENDENT ? (double)test_below(1u << 30) / (1u << 30) < share
              : how == NEAR      ? d <= bound
                                 : d >= bound;
    if (!in) continue;
    allowed[i / 64] |= (uint64_t)1 << (i % 64);
    count++;
  }
  if (!count) {
    allowed[0] |= 1;
    count = 1;
  }
  return count;
}

TEST_SLOW(filters_of_any_selectivity, 120) {
  test_srand(test_seed());
  static const double shares[] = {0, 0.0001, 0.001, 0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 0.9, 0.99, 1};
  scene s;
  scene_init(&s, CLUSTERS, LODE_L2, 40000, 16);
  scene_build(&s, INDEX_GRAPH, 1);
  uint64_t *allowed = malloc((s.n / 64 + 1) * sizeof *allowed);
  CHECK(allowed != NULL);
  unsigned ways = 0;
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    for (relation how = INDEPENDENT; how <= FAR; how++) {
      index_search_stats stats;
      uint64_t matches = make_filter(&s, allowed, shares[i], how, s.vectors + test_below(s.n) * s.dim);
      /* with less effort, a walk among the matches costs less than a scan of them or a walk over all rows */
      double r = recall_of(&s, allowed, 10, shares[i] == 0.07 ? 12 : 64, 20, &stats);
      ways |= stats.ways;
      CHECKF(r >= 0.92, "share %g, relation %d: recall %.3f", shares[i], (int)how, r);
      /* not more expensive than scanning the matches, but for the walk that found them too few */
      double cost = (double)stats.distances / 20;
      CHECKF(cost <= 2.0 * (double)matches + 64, "share %g, relation %d: %.0f distances for %llu matches", shares[i],
             (int)how, cost, (unsigned long long)matches);
    }
  }
  CHECKF(ways == (INDEX_BY_WALK | INDEX_BY_WALK_ALLOWED | INDEX_BY_SCAN), "ways %u", ways); /* each was tried */
  free(allowed);
  scene_release(&s);
}

/* Clusters whose lengths differ by factors of about exp(spread): the greatest products are at the ends of several. */
static double ip_recall(uint64_t seed, float spread, uint32_t rows) {
  enum { CENTRES = 20, DIM = 24, QUERIES = 60, K = 10 };
  scene s;
  lode_error err;
  index_search_scratch scratch = {0};
  float centres[CENTRES][DIM], lengths[CENTRES], query[DIM];
  size_t found = 0;
  test_srand(seed);
  scene_init(&s, CLUSTERS, LODE_IP, rows, DIM);
  for (size_t c = 0; c < CENTRES; c++) {
    lengths[c] = expf(spread * scene_normal());
    for (size_t j = 0; j < DIM; j++) centres[c][j] = scene_normal();
  }
  for (size_t i = 0; i < rows; i++) {
    size_t c = test_below(CENTRES);
    for (size_t j = 0; j < DIM; j++) s.vectors[i * DIM + j] = lengths[c] * (centres[c][j] + 0.4f * scene_normal());
  }
  scene_build(&s, INDEX_GRAPH, 2);
  for (int q = 0; q < QUERIES; q++) {
    index_hit near[K], exact[K];
    size_t n, n_exact;
    scene_query(&s, query);
    index_search_request request = {.query = query, .k = K};
    OK(index_search(s.segment, &request, &scratch, near, &n, &err));
    request.exact = true;
    OK(index_search(s.segment, &request, &scratch, exact, &n_exact, &err));
    CHECK(n == K && n_exact == K);
    for (size_t i = 0; i < n; i++)
      found += near[i].distance <= exact[K - 1].distance + 1e-6f * fabsf(exact[K - 1].distance);
  }
  index_search_scratch_release(&scratch);
  scene_release(&s);
  return (double)found / (QUERIES * K);
}

/* With walks that begin at the best entries and nothing else the first two had 0.87 and 0.86. */
TEST_SLOW(inner_products_with_clusters_of_different_length, 900) {
  static const uint64_t seeds[] = {15, 42};
  for (size_t t = 0; t < sizeof seeds / sizeof *seeds; t++) {
    double recall = ip_recall(seeds[t], 1, 20000);
    CHECKF(recall >= 0.97, "seed %llu: recall %.3f", (unsigned long long)seeds[t], recall);
  }
  for (uint64_t seed = 1; test_full() && seed <= 10; seed++) {
    for (int spread = 1; spread <= 4; spread++) {
      double recall = ip_recall(seed, (float)spread, 25000);
      CHECKF(recall >= 0.97, "seed %llu, spread %d: recall %.3f", (unsigned long long)seed, spread, recall);
    }
  }
}

/* The walk among allowed rows begins with probes, which are more than are asked for here; the scratch buffer is new
 * each time. */
TEST(a_narrow_beam_leaves_space_for_probes) {
  enum { ROWS = 10000, DIM = 4, K = 4, EVERY = 24 };
  scene s;
  lode_error err;
  uint64_t *allowed = calloc(ROWS / 64 + 1, sizeof *allowed);
  float query[DIM];
  test_srand(test_seed());
  scene_init(&s, UNIFORM, LODE_L2, ROWS, DIM);
  scene_build(&s, INDEX_GRAPH, 2);
  OK(scene_open(&s, &err));
  for (uint32_t i = 0; i < ROWS; i += EVERY) allowed[i / 64] |= (uint64_t)1 << (i % 64);
  unsigned ways = 0;
  for (uint32_t beam = 1; beam <= 16; beam++) {
    index_search_scratch scratch = {0};
    index_hit hits[K];
    size_t n;
    scene_query(&s, query);
    index_search_request request = {.query = query, .k = K, .beam = beam, .allowed = allowed};
    OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
    CHECK(n == K);
    for (size_t i = 0; i < n; i++) CHECK(hits[i].slot % EVERY == 0);
    ways |= scratch.stats.ways;
    index_search_scratch_release(&scratch);
  }
  CHECK(ways & INDEX_BY_WALK_ALLOWED);
  free(allowed);
  scene_release(&s);
}

TEST(no_match_is_no_hit_and_bits_past_the_end_do_not_count) {
  test_srand(test_seed());
  for (index_segment_kind kind = INDEX_FLAT; kind <= INDEX_GRAPH; kind++) {
    scene s;
    lode_error err;
    index_search_scratch scratch = {0};
    index_hit hits[5];
    size_t n = 9;
    uint64_t none[2] = {0, ~(uint64_t)0 << 6}; /* 70 rows */
    scene_init(&s, UNIFORM, LODE_L2, 70, 8);
    scene_build(&s, kind, 1);
    index_search_request request = {.query = s.vectors, .k = 5, .allowed = none};
    OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
    CHECK(n == 0);
    index_search_scratch_release(&scratch);
    scene_release(&s);
  }
}

/* ---- Effort and exactness ---- */

TEST(more_effort_finds_more) {
  test_srand(test_seed());
  scene s;
  scene_init(&s, UNIFORM, LODE_COSINE, 20000, 40);
  scene_build(&s, INDEX_GRAPH, 1);
  double low = recall_of(&s, NULL, 10, 12, 50, NULL), high = recall_of(&s, NULL, 10, 400, 50, NULL);
  CHECKF(low < high && high >= 0.96, "%.3f, %.3f", low, high);
  scene_release(&s);
}

TEST(an_effort_is_read_from_a_curve) {
  index_effort_curve c = {{0}};
  CHECK(index_effort_for(&c, 0.9) == INDEX_EFFORT_UNKNOWN);
  for (size_t i = 0; i < INDEX_EFFORTS; i++) c.found[i] = (uint16_t)(5000 + 250 * i); /* up to 97.5 % */
  CHECK(index_effort_at(0) == 8 && index_effort_at(1) == 12 && index_effort_at(INDEX_EFFORTS - 1) == 6144);
  CHECK(index_effort_for(&c, 0.1) == 8);
  CHECK(index_effort_for(&c, 0.5) ==
        index_effort_at(5)); /* 62.5 % of them in the sample: a quarter of the rest is margin */
  CHECK(index_effort_for(&c, 0.51) > index_effort_at(5) && index_effort_for(&c, 0.51) < index_effort_at(6));
  CHECK(index_effort_for(&c, 0.97) == INDEX_EFFORT_NONE);
  for (double r = 0.01, last = 0; r < 0.96; r += 0.01) {
    CHECK(index_effort_for(&c, r) >= last);
    last = index_effort_for(&c, r);
  }
  for (size_t i = 0; i < INDEX_EFFORTS; i++)
    c.found[i] = (uint16_t)test_below(65536); /* forged: anything, but at once */
  CHECK(index_effort_for(&c, 0.98) <= UINT16_MAX);
}

/* Moves queries halfway to some row: they are no longer drawn like the rows are. */
static void mix_queries(scene *s, uint32_t first, uint32_t n) {
  for (uint32_t q = 0; q < n; q++) {
    const float *other = s->vectors + test_below(first) * s->dim;
    float *query = s->vectors + (size_t)(first + q) * s->dim;
    for (uint32_t j = 0; j < s->dim; j++) query[j] = 0.5f * (query[j] + other[j]);
  }
}

/* For queries that are drawn like the rows are, and for others, which lie between two of them. */
TEST_SLOW(a_wanted_recall_is_reached, 120) {
  static const double wanted[] = {0.8, 0.9, 0.95, 0.99};
  enum { ROWS = 12000, QUERIES = 150 };
  test_srand(test_seed());
  for (shape how = CLUSTERS; how <= UNIFORM; how++) {
    scene s;
    lode_error err;
    uint64_t before = 0;
    scene_init(&s, how, LODE_L2, ROWS + QUERIES, how == UNIFORM ? 24 : 48);
    s.n = ROWS;
    scene_build(&s, INDEX_GRAPH, 1);
    for (size_t t = 0; t < 2 * sizeof wanted / sizeof *wanted; t++) {
      size_t i = t % (sizeof wanted / sizeof *wanted);
      if (t == sizeof wanted / sizeof *wanted) {
        mix_queries(&s, ROWS, QUERIES);
        before = 0;
      }
      index_search_scratch scratch = {0};
      double sum = 0;
      for (uint32_t q = 0; q < QUERIES; q++) {
        index_hit hits[10];
        size_t n;
        index_search_request request = {.query = s.vectors + (size_t)(ROWS + q) * s.dim, .k = 10, .recall = wanted[i]};
        OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
        sum += scene_recall(&s, request.query, NULL, 10, hits, n);
      }
      double slack = 0.01 + 0.3 * (1 - wanted[i]); /* these are a sample too, and what one misses comes in heaps */
      CHECKF(sum / QUERIES >= wanted[i] - slack, "%s: recall %.3f, not %.2f", shape_names[how], sum / QUERIES,
             wanted[i]);
      CHECKF(scratch.stats.distances >= before, "%s: %.2f costs less than a smaller one", shape_names[how], wanted[i]);
      before = scratch.stats.distances;
      index_search_scratch_release(&scratch);
    }
    s.segment->info.curve.found[INDEX_EFFORTS - 1] = 9000; /* as if no effort had found more */
    for (size_t i = 0; i < INDEX_EFFORTS; i++)
      if (s.segment->info.curve.found[i] > 9000) s.segment->info.curve.found[i] = 9000;
    index_search_scratch scratch = {0};
    index_hit hits[10];
    size_t n;
    index_search_request request = {.query = s.vectors + (size_t)ROWS * s.dim, .k = 10, .recall = 0.99};
    OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
    CHECK(scratch.stats.ways == INDEX_BY_SCAN && scene_recall(&s, request.query, NULL, 10, hits, n) == 1);
    index_search_scratch_release(&scratch);
    scene_release(&s);
  }
}

TEST(exact_search_is_exact) {
  test_srand(test_seed());
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    scene s;
    lode_error err;
    index_search_scratch scratch = {0};
    index_hit hits[20];
    size_t n;
    scene_init(&s, UNIFORM, metric, 3000, 70);
    scene_build(&s, INDEX_GRAPH, 1);
    uint64_t *allowed = malloc((s.n / 64 + 1) * sizeof *allowed);
    CHECK(allowed != NULL);
    make_filter(&s, allowed, 0.2, INDEPENDENT, NULL);
    for (int filtered = 0; filtered < 2; filtered++) {
      float query[70];
      scene_query(&s, query);
      index_search_request request = {.query = query, .k = 20, .exact = true, .allowed = filtered ? allowed : NULL};
      OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
      CHECK(scene_recall(&s, query, request.allowed, 20, hits, n) == 1);
    }
    free(allowed);
    index_search_scratch_release(&scratch);
    scene_release(&s);
  }
}

/* What codes prove is true: for every kind of data the same hits, to the bit, as by reading all vectors, which is what
 * a file of a version without errors of codes gets; and few vectors are read. */
TEST(codes_prove_what_is_nearest) {
  static const shape shapes[] = {CLUSTERS, UNIFORM, EQUAL, ZEROS, LINE, DUPLICATES, SKEWED};
  test_srand(test_seed());
  for (size_t how = 0; how < sizeof shapes / sizeof *shapes * 3; how++) {
    scene s;
    lode_error err;
    index_search_scratch scratch = {0};
    index_hit proven[15], all[15];
    size_t n_proven, n_all;
    scene_init(&s, shapes[how / 3], (lode_metric)(how % 3), 1500, 48);
    scene_build(&s, how % 2 ? INDEX_GRAPH : INDEX_FLAT, 1);
    quant_spread spread = s.segment->info.spread;
    uint64_t *allowed = malloc((s.n / 64 + 1) * sizeof *allowed);
    CHECK(allowed != NULL);
    for (int i = 0; i < 12; i++) {
      float query[48];
      scene_query(&s, query);
      for (int j = 0; j < 48 && i % 4 == 3; j++) query[j] *= 1e6f; /* far away from all */
      make_filter(&s, allowed, i % 3 ? 0.1 : 0.6, INDEPENDENT, NULL);
      index_search_request request = {.query = query, .k = 15, .exact = true, .allowed = i % 2 ? allowed : NULL};
      OK(index_search(s.segment, &request, &scratch, proven, &n_proven, &err));
      s.segment->info.spread = (quant_spread){0};
      OK(index_search(s.segment, &request, &scratch, all, &n_all, &err));
      s.segment->info.spread = spread;
      CHECKF(n_proven == n_all && memcmp(proven, all, n_all * sizeof *all) == 0, "%s, metric %zu, query %d",
             shape_names[shapes[how / 3]], how % 3, i);
    }
    free(allowed);
    index_search_scratch_release(&scratch);
    scene_release(&s);
  }
}

/* Counts do not depend on the machine: a change that makes queries more expensive, or worse, is seen here. */
TEST(a_query_costs_few_distances_and_bytes) {
  test_srand(20260101);
  scene s;
  index_search_stats stats;
  scene_init(&s, CLUSTERS, LODE_L2, 20000, 32);
  scene_build(&s, INDEX_GRAPH, 1);
  s.bytes_read = 0;
  double r = recall_of(&s, NULL, 10, 32, 200, &stats);
  double distances = (double)stats.distances / 200, vectors = (double)stats.vectors / 200;
  CHECKF(r >= 0.92 && distances <= 700 && vectors <= 13.5, "recall %.3f, %.0f distances, %.1f vectors", r, distances,
         vectors);
  /* a filter of independent matches costs what its share says, not a multiple of that */
  uint64_t allowed[20000 / 64 + 1];
  static const struct { double share, most; } filters[] = {{0.99, 1.1}, {0.5, 1.4}, {0.25, 2}, {0.1, 3.5}};
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
    make_filter(&s, allowed, filters[i].share, INDEPENDENT, NULL);
    r = recall_of(&s, allowed, 10, 32, 200, &stats);
    CHECKF(r >= 0.92 && (double)stats.distances / 200 <= filters[i].most * distances,
           "share %.2f: recall %.3f, %.0f distances instead of %.0f", filters[i].share, r,
           (double)stats.distances / 200, distances);
  }
  index_search_scratch scratch = {0};
  for (int i = 0; i < 50; i++) {
    lode_error err;
    index_hit hits[10];
    size_t n;
    float query[32];
    scene_query(&s, query);
    OK(index_search(s.segment, &(index_search_request){.query = query, .k = 10, .exact = true}, &scratch, hits, &n,
                    &err));
  }
  CHECKF(scratch.stats.distances == 50 * 20000 && scratch.stats.vectors <= 50 * 40,
         "%llu vectors read for exact answers", (unsigned long long)scratch.stats.vectors);
  index_search_scratch_release(&scratch);
  scene_release(&s);
}

/* ---- The check itself ---- */

TEST(the_check_of_a_graph_sees_what_is_wrong) {
  lode_error err;
  index_graph_report report;
  const uint32_t none = INDEX_NO_LINK;
  uint32_t links[4][3] = {{1, none, none}, {2, 0, none}, {3, none, none}, {0, none, none}};
  index_graph_links all = {.data = (const unsigned char *)links, .width = 3, .bits = 32};
  OK(index_graph_check(&all, 4, &report, &err));
  CHECK(report.links == 5 && report.unreachable == 0);
  links[1][0] = 0, links[1][1] = none; /* 2 and 3 are cut off */
  FAILS(LODE_CORRUPT, index_graph_check(&all, 4, &report, &err));
  CHECK(report.unreachable == 2);
  static const uint32_t wrong[][3] = {{4, none, none}, {1, none, none}, {2, 2, none}, {2, none, 3}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    memcpy(links[1], wrong[i], sizeof wrong[i]);
    FAILS(LODE_CORRUPT, index_graph_check(&all, 4, &report, &err));
    CHECK(report.bad_link == 1);
  }
}

/* Links of as many bits as n rows need; nothing is read after a row. */
TEST(packed_links_are_the_links) {
  test_srand(test_seed());
  for (uint32_t bits = 8; bits <= 32; bits++) {
    for (uint32_t width = 2; width <= 40; width++) {
      uint32_t links[3][40], got[40], most = index_link_none(bits);
      size_t bytes = index_link_row_bytes(width, bits);
      unsigned char *packed = malloc(3 * bytes); /* what is read after it, the sanitiser sees */
      CHECK(packed != NULL && bytes * 8 >= (size_t)width * bits);
      for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < width; j++)
          links[i][j] = test_below(4) ? (uint32_t)(test_rand() % ((uint64_t)most + 1)) : INDEX_NO_LINK;
        index_pack_links(links[i], width, bits, packed + i * bytes);
      }
      index_graph_links all = {.data = packed, .width = width, .bits = bits};
      for (uint32_t i = 0; i < 3; i++) {
        index_unpack_links(&all, i, got);
        for (uint32_t j = 0; j < width; j++)
          CHECKF(got[j] == (links[i][j] & most), "%u bits, link %u of %u: %u, not %u", bits, j, width, got[j],
                 links[i][j]);
      }
      free(packed);
    }
  }
  CHECK(index_link_bits(1) == 8 && index_link_bits(255) == 8 && index_link_bits(256) == 9);
  CHECK(index_link_bits(65535) == 16 && index_link_bits(65536) == 17 && index_link_bits(INDEX_MAX_ROWS) == 31);
}

static bool cancel_soon(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase;
  CHECK(done <= total);
  return ++*(int *)ctx < 3;
}

TEST(construction_can_be_cancelled_and_may_run_out_of_memory) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  int steps = 0;
  scene_init(&s, UNIFORM, LODE_IP, 3000, 8);
  size_t stride = quant_stride(s.dim);
  float mean[8], *lengths = malloc(s.n * sizeof *lengths);
  unsigned char *rows = mem_alloc_aligned(64, s.n * stride);
  quant_fit fit;
  quant_model model;
  index_graph graph;
  CHECK(lengths && rows);
  OK(quant_fit_begin(&fit, s.metric, s.dim, &err));
  quant_fit_add(&fit, s.vectors);
  quant_fit_end(&fit, mean, &model);
  quant_fit_release(&fit);
  for (uint32_t i = 0; i < s.n; i++) lengths[i] = quant_encode_row(&model, s.vectors + i * s.dim, i, rows + i * stride);
  uint32_t before = crc32c_update(0, rows, s.n * stride);
  index_graph_input input = {.rows = rows,
                             .lengths = lengths,
                             .stride = stride,
                             .n = s.n,
                             .dim = s.dim,
                             .metric = s.metric,
                             .unit = model.unit};
  index_graph_options options = {.progress = {cancel_soon, &steps}};
  FAILS(LODE_CANCELLED, index_graph_build(&input, &options, &graph, &err));
  CHECK(graph.links == NULL && crc32c_update(0, rows, s.n * stride) == before);
  input.n = 0;
  FAILS(LODE_INVALID, index_graph_build(&input, &options, &graph, &err));
  input.n = 100;
  options = (index_graph_options){.degree = 1};
  FAILS(LODE_INVALID, index_graph_build(&input, &options, &graph, &err));
  free(lengths);
  mem_free(rows);
  scene_release(&s);
}

static unsigned allocations_left;
static bool allow_some(void) { return allocations_left > 0 && allocations_left--; }

/* Whichever allocation fails, the answer is LODE_NOMEM, and nothing leaks (the leak checker says so). */
TEST(every_allocation_may_fail) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  scene_init(&s, CLUSTERS, LODE_IP, 300, 8);
  scene_build(&s, INDEX_GRAPH, 1);
  bool finished = false;
  for (unsigned n = 0; n < 1000 && !finished; n++) {
    index_search_scratch scratch = {0};
    index_hit hits[10];
    size_t n_hits = 0;
    uint64_t allowed[5] = {~(uint64_t)0, 0, ~(uint64_t)0, 0, 1};
    allocations_left = n;
    mem_alloc_hook = allow_some;
    lode_status st = scene_open(&s, &err);
    index_search_request request = {.query = s.vectors, .k = 10, .allowed = n % 2 ? allowed : NULL, .beam = 12};
    if (st == LODE_OK) st = index_search(s.segment, &request, &scratch, hits, &n_hits, &err);
    mem_alloc_hook = NULL;
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "%u: %s", n, err.text);
    finished = st == LODE_OK && n_hits == 10 && allocations_left > 0;
    index_search_scratch_release(&scratch);
  }
  CHECK(finished);
  scene_release(&s);
}

/* One large cluster, and small ones that lie apart: of each a row is an entry. */
TEST(what_lies_apart_has_an_entry) {
  enum { SMALL = 10, SMALL_ROWS = 200, ROWS = 6000, DIM = 16 };
  scene s;
  lode_error err;
  bool has[SMALL + 1] = {false};
  test_srand(test_seed());
  scene_init(&s, UNIFORM, LODE_L2, ROWS, DIM);
  for (uint32_t i = 0; i < SMALL * SMALL_ROWS; i++) s.vectors[(size_t)i * DIM + i % SMALL] += 100;
  scene_build(&s, INDEX_GRAPH, 1);
  OK(index_segment_preload(s.segment, &err));
  for (uint32_t i = 0; i < s.segment->info.n_entries; i++) {
    uint32_t slot = quant_row_slot(s.segment->rows.data + (size_t)i * s.segment->stride);
    has[slot < SMALL * SMALL_ROWS ? slot % SMALL : SMALL] = true;
  }
  for (uint32_t c = 0; c <= SMALL; c++) CHECKF(has[c], "cluster %u has no entry", c);
  scene_release(&s);
}
