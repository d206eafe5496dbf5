/* SPDX-License-Identifier: Apache-2.0 */
/* test_extreme.c - vectors whose distances leave a float's range: refused when they are written or asked for, and
 * answered sanely where an older store holds them. No distance is ever infinite or not a number. */
#include "engine/engine.h"
#include "engine/query_plan.h"
#include "segments/segment_build.h"
#include "kernel/kernel.h"
#include "support/oracle.h"
#include "support/test.h"

#include <float.h>
#include <math.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
enum { DIM = 16 };
static const lode_metric metrics[] = {LODE_L2, LODE_COSINE, LODE_IP};

static lode_store *make(lode_metric metric, lode_collection **c) {
  lode_store *s;
  lode_error err = {0};
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &s, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true, .metric = metric}, c, &err));
  return s;
}

static void fill(float *v, float size) {
  for (int d = 0; d < DIM; d++) v[d] = size * ((float)test_below(2000) / 1000 - 1);
  v[test_below(DIM)] = size;
}

/* Of "r042". */
static int number_of(lode_str id) {
  CHECK(id.len == 4);
  return (id.data[1] - '0') * 100 + (id.data[2] - '0') * 10 + id.data[3] - '0';
}

/* By how much a sum in float may be off: products that cancel each other leave their rounding. */
static double rounding(lode_metric metric, const float *q, const float *v) {
  double sum = 0;
  if (metric == LODE_IP)
    for (int i = 0; i < DIM; i++) sum += fabs((double)q[i] * v[i]);
  return 1e-6 * sum;
}

/* ---- Written ---- */

TEST(refused_when_written_or_asked_for) {
  static const float outside[] = {1e20f, 3e38f, -3e38f, 5e18f, 1e-13f, 1e-20f, 1e-30f, FLT_TRUE_MIN};
  test_srand(test_seed());
  for (size_t m = 0; m < 3; m++) {
    lode_collection *c;
    lode_store *s = make(metrics[m], &c);
    float v[DIM], good[DIM] = {1};
    lode_error err = {0};
    uint64_t n;
    lode_record fine = {.id = S("fine"), .vector = good, .dimension = DIM};
    OK(lode_add(c, NULL, &fine, 1, LODE_FAIL_EXISTING, NULL, &err));
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
      memset(v, 0, sizeof v);
      v[test_below(DIM)] = outside[i];
      lode_record r = {.id = S("fine"), .vector = v, .dimension = DIM},
                  fresh = {.id = S("new"), .vector = v, .dimension = DIM};
      lode_result *rows = NULL;
      FAILS(LODE_REFUSED, lode_add(c, NULL, &fresh, 1, LODE_FAIL_EXISTING, NULL, &err));
      CHECKF(strstr(err.text, "length"), "%s", err.text);
      FAILS(LODE_REFUSED, lode_upsert(c, NULL, &r, 1, NULL, &err));
      FAILS(LODE_REFUSED, lode_update(c, NULL, &r, 1, NULL, NULL, &err));
      FAILS(LODE_INVALID,
            lode_query(c, &(lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 3}, &rows, &err));
      CHECKF(strstr(err.text, "length"), "%s", err.text);
    }
    OK(lode_count(c, &n, &err));
    CHECK(n == 1);
    lode_collection_close(c);
    lode_close(s);
  }
}

/* What is taken is answered right up to the edges, in the tail and in a segment. */
TEST(the_edges_are_right) {
  enum { N = 120, K = 20 };
  static const float sizes[] = {1e-11f, 1e-6f, 1, 1e9f, 1e18f};
  test_srand(test_seed());
  segments_limits = (segments_build_limits){.tail_rows = 50, .graph_rows = 40, .dead_percent = 50};
  for (size_t m = 0; m < 3; m++)
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
      lode_collection *c;
      lode_store *s = make(metrics[m], &c);
      static float v[N][DIM];
      char ids[N][16];
      float q[DIM];
      lode_error err = {0};
      for (int i = 0; i < N; i++) {
        fill(v[i], sizes[z]);
        snprintf(ids[i], sizeof ids[i], "r%03d", i);
        lode_record r = {.id = {ids[i], 4}, .vector = v[i], .dimension = DIM};
        OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
      }
      fill(q, sizes[z]);
      for (int indexed = 0; indexed < 2; indexed++) {
        lode_result *rows;
        if (indexed) OK(lode_optimize(s, (lode_progress){0}, &err));
        OK(lode_query(c, &(lode_query_request){.vectors = q, .dimension = DIM, .n = 1, .k = K, .exact = true}, &rows,
                      &err));
        CHECK(lode_result_count(rows) == K);
        double last = -INFINITY;
        for (size_t i = 0; i < K; i++) {
          const lode_row *row = lode_result_at(rows, i);
          double want = oracle_definition(metrics[m], q, v[number_of(row->id)], DIM);
          double slack = rounding(metrics[m], q, v[number_of(row->id)]) + (metrics[m] == LODE_L2 ? 0 : 1e-6);
          CHECKF(fabs(row->distance - want) <= 1e-5 * fabs(want) + slack, "%g, not %g", row->distance, want);
          CHECK(row->distance >= last);
          last = row->distance;
        }
        lode_result_free(rows);
      }
      lode_collection_close(c);
      lode_close(s);
    }
}

/* ---- Already there ---- */

/* As a Lode without the check wrote it. */
static void write_unchecked(lode_store *s, float (*v)[DIM], int n) {
  store_tx *tx;
  store_coll coll;
  mem_arena arena;
  lode_error err = {0};
  mem_arena_init(&arena, 0);
  OK(store_tx_begin(engine_store_of(s)->db, STORE_TX_WRITE, &tx, &err));
  OK(store_coll_find(tx, S("c"), &arena, &coll, &err));
  for (int i = 0; i < n; i++) {
    char id[16];
    snprintf(id, sizeof id, "r%03d", i);
    store_change change = {.id = {id, 4}, .vector = v[i], .dim = DIM, .set_document = true, .set_metadata = true};
    OK(store_rec_insert(tx, &coll, &change, 1, &err));
  }
  OK(store_coll_save(tx, &coll, &err));
  OK(store_tx_commit(tx, &err));
  mem_arena_release(&arena);
}

static void check_old(lode_collection *c, lode_metric metric, float (*v)[DIM], int n, const float *q, bool exact) {
  lode_error err = {0};
  lode_result *rows;
  float last = -FLT_MAX;
  OK(lode_query(c, &(lode_query_request){.vectors = q, .dimension = DIM, .n = 1, .k = (size_t)n, .exact = exact}, &rows,
                &err));
  CHECK(lode_result_count(rows) == (size_t)n);
  for (int i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, (size_t)i);
    double want = oracle_definition(metric, q, v[number_of(row->id)], DIM);
    double slack = rounding(metric, q, v[number_of(row->id)]) + 1e-6;
    if (want > FLT_MAX) want = FLT_MAX;
    if (want < -FLT_MAX) want = -FLT_MAX;
    CHECKF(isfinite(row->distance) && row->distance >= last, "%g after %g", row->distance, last);
    CHECKF(fabs(row->distance - want) <= 1e-5 * fabs(want) + slack, "metric %d: %g, not %g", metric, row->distance,
           want);
    last = row->distance;
  }
  lode_result_free(rows);
}

TEST(older_stores_are_answered) {
  enum { N = 160 };
  static const float sizes[] = {1e20f, 3e38f, 1e-30f, 1e-42f, 1, 0};
  static float v[N][DIM];
  test_srand(test_seed());
  segments_limits = (segments_build_limits){.tail_rows = 50, .graph_rows = 60, .dead_percent = 50};
  for (size_t m = 0; m < 3; m++) {
    lode_collection *c;
    lode_store *s = make(metrics[m], &c);
    lode_error err = {0};
    lode_stats stats;
    float q[DIM];
    for (int i = 0; i < N; i++) fill(v[i], sizes[(size_t)i % 6]);
    fill(q, 1);
    write_unchecked(s, v, N);
    for (int indexed = 0; indexed < 2; indexed++) {
      if (indexed) OK(lode_optimize(s, (lode_progress){0}, &err));
      check_old(c, metrics[m], v, N, q, true);
      check_old(c, metrics[m], v, N, q, false);
    }
    OK(lode_store_stats(s, &stats, &err));
    CHECK(stats.segments == 1 && stats.damaged_segments == 0);
    lode_collection_close(c);
    lode_close(s);
  }
}

/* ---- Codes that tell nothing ---- */

/* Many equal vectors far away make the steps of the codes so large that all others have the same code: only the
 * vectors themselves tell which is nearest. */
TEST(near_vectors_beside_far_ones_are_found) {
  enum { FAR = 1536, NEAR = 600, K = 10 };
  static float v[FAR + NEAR][DIM];
  static char ids[FAR + NEAR][16];
  static lode_record records[FAR + NEAR];
  test_srand(test_seed());
  segments_limits = (segments_build_limits){.tail_rows = 50, .graph_rows = 60, .dead_percent = 50};
  for (size_t m = 0; m < 3; m++) {
    lode_collection *c;
    lode_store *s = make(metrics[m], &c);
    lode_error err = {0};
    size_t found = 0;
    for (int i = 0; i < FAR + NEAR; i++) {
      if (i < FAR)
        for (int d = 0; d < DIM; d++) v[i][d] = 1e6f;
      else
        fill(v[i], 1);
      int n = snprintf(ids[i], sizeof ids[i], "r%04d", i);
      records[i] = (lode_record){.id = {ids[i], (size_t)n}, .vector = v[i], .dimension = DIM};
    }
    OK(lode_add(c, NULL, records, FAR + NEAR, LODE_FAIL_EXISTING, NULL, &err));
    OK(lode_optimize(s, (lode_progress){0}, &err));
    for (int q = 0; q < 10; q++) {
      lode_result *rows, *exact;
      float query[DIM];
      fill(query, 1);
      lode_query_request request = {.vectors = query, .dimension = DIM, .n = 1, .k = K};
      OK(lode_query(c, &request, &rows, &err));
      request.exact = true;
      OK(lode_query(c, &request, &exact, &err));
      CHECK(lode_result_count(rows) == K && lode_result_count(exact) == K);
      for (size_t i = 0; i < K; i++)
        found += lode_result_at(rows, i)->distance <= lode_result_at(exact, K - 1)->distance;
      lode_result_free(rows);
      lode_result_free(exact);
    }
    CHECKF(found >= 95, "metric %zu: %zu of 100", m, found);
    lode_collection_close(c);
    lode_close(s);
  }
}
