/* SPDX-License-Identifier: Apache-2.0 */
/* test_query.c - queries by vector answer what the oracle does, to the bit: selections, changing data, little memory,
 * long scans, cancelling. */
#include "base/base.h"
#include "engine/engine.h"
#include "os/os.h"
#include "support/fixture.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

static fixture make(lode_metric metric, uint32_t dim, size_t n) {
  fixture f = {.no_background = true};
  test_srand(test_seed());
  fixture_open(&f, test_folder(), metric, dim);
  fixture_fill(&f, n);
  return f;
}

/* ---- Vectors ---- */

static void check_sizes(lode_metric metric) {
  static const uint32_t dims[] = {1, 3, 16, 17, 100};
  for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
    fixture f = make(metric, dims[d], 400);
    static const size_t ks[] = {1, 2, 10, 299, 400, 100000, SIZE_MAX};
    for (size_t k = 0; k < sizeof ks / sizeof *ks; k++) fixture_check_query(&f, ks[k], NULL);
    fixture_close(&f);
  }
}

TEST(l2_is_exact) { check_sizes(LODE_L2); }
TEST(cosine_is_exact) { check_sizes(LODE_COSINE); }
TEST(ip_is_exact) { check_sizes(LODE_IP); }

TEST(equal_distances_are_ordered_by_id) {
  fixture f = {.no_background = true};
  const float same[4] = {1, 1, 1, 1}, zero[4] = {0};
  fixture_open(&f, test_folder(), LODE_L2, 4);
  for (unsigned i = 0; i < 1000; i++) {
    oracle_record r = {0};
    oracle_name_record(&r, i);
    oracle_set_vector(&r, same, 4);
    fixture_write(&f, ORACLE_ADD, &r, 1);
  }
  for (int round = 0; round < 2; round++) {
    static const size_t ks[] = {1, 10, 999};
    for (size_t k = 0; k < 3; k++) fixture_check_query_for(&f, zero, 1, ks[k], NULL);
    fixture_optimize(&f);
  }
  fixture_close(&f);
}

TEST(many_queries_are_answered_as_each_alone) {
  enum { N = 150, DIM = 20 };
  fixture f = make(LODE_L2, DIM, 700);
  float *q = calloc(N * DIM, sizeof *q);
  for (int i = 0; i < N; i++) oracle_random_vector(q + i * DIM, DIM);
  static const size_t ks[] = {1, 60, 5000};
  for (size_t k = 0; k < 3; k++) fixture_check_query_for(&f, q, ks[k] > 100 ? 12 : N, ks[k], NULL);
  free(q);
  fixture_close(&f);
}

/* ---- Selections ---- */

/* get by the same selection, in the order of insertion. */
static void check_get(const fixture *f, const oracle_selection *s) {
  lode_error err;
  lode_result *rows;
  size_t at = 0;
  OK(lode_get(f->c, &(lode_get_request){.select = oracle_request(s), .include = LODE_ALL}, &rows, &err));
  for (size_t i = 0; i < f->oracle.n; i++) {
    if (!oracle_selected(s, &f->oracle.r[i])) continue;
    const lode_row *row = lode_result_at(rows, at++);
    CHECKF(row, "%zu rows only", at - 1);
    oracle_check_row(row, &f->oracle.r[i], LODE_ALL);
  }
  CHECK(lode_result_count(rows) == at);
  lode_result_free(rows);
}

/* Filters on metadata, on documents, on both. */
static void random_selection(oracle_selection *s, oracle_filter *where, oracle_filter *document) {
  size_t how = test_below(4);
  *s = (oracle_selection){.where = how < 3 ? where : NULL, .document = how > 1 ? document : NULL};
  if (s->where) oracle_random_filter(where, false, -1);
  if (s->document) oracle_random_filter(document, true, -1);
}

TEST_SLOW(filters_select_the_same_with_and_without_an_index, 120) {
  fixture f = make(LODE_L2, 8, 1200);
  oracle_filter where = {0}, document = {0};
  oracle_selection s;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 20; i++) {
      random_selection(&s, &where, &document);
      check_get(&f, &s);
      fixture_check_query(&f, 1, &s);
      fixture_check_query(&f, 20, &s);
      fixture_check_query(&f, 5000, &s);
    }
    if (round == 0) fixture_optimize(&f); /* round 1: all indexed */
    if (round == 1) {                     /* round 2: a tail after the index, and tombstones in it */
      for (size_t i = 0; i < 300; i++) fixture_remove(&f, 0);
      fixture_fill(&f, 300);
    }
  }
  oracle_filter_release(&where);
  oracle_filter_release(&document);
  fixture_close(&f);
}

TEST(ids_restrict_a_query) {
  enum { N = 600 };
  fixture f = make(LODE_COSINE, 8, N);
  oracle_filter where = {0};
  static const size_t sizes[] = {1, 5, 100, N};
  for (size_t s = 0; s < 4; s++)
    for (int round = 0; round < 5; round++) {
      lode_str ids[N + 2];
      for (size_t i = 0; i < sizes[s]; i++) ids[i] = oracle_id(&f.oracle.r[i * 7 % N]);
      ids[sizes[s]] = S("nobody");
      ids[sizes[s] + 1] = ids[0];
      oracle_random_filter(&where, false, -1);
      oracle_selection select = {.ids = ids, .n_ids = sizes[s] + 2, .where = round ? &where : NULL};
      fixture_check_query(&f, 50, &select);
    }
  oracle_filter_release(&where);
  fixture_close(&f);
}

/* ---- Changing data under a warm cache ---- */

TEST_SLOW(a_warm_cache_follows_every_change, 120) {
  fixture f = make(LODE_L2, 8, 1500);
  oracle_filter where = {0}, document = {0};
  for (unsigned round = 0; round < 80; round++) {
    for (size_t i = test_below(60); i-- > 0;) fixture_change(&f);
    if (test_below(5) == 0) fixture_optimize(&f); /* erases tombstones before the cache has seen them */
    fixture_check_query(&f, 1 + test_below(30), NULL);
    if (round % 3 == 0) {
      oracle_selection s;
      random_selection(&s, &where, &document);
      fixture_check_query(&f, 1 + test_below(30), &s);
    }
    if (test_below(6) == 0) fixture_optimize(&f);
  }
  oracle_filter_release(&where);
  oracle_filter_release(&document);
  fixture_close(&f);
}

TEST(what_was_erased_unseen_is_not_found) {
  fixture f = make(LODE_L2, 8, 2000);
  /* few stay in the cache, not known to be dead; after many it is rebuilt */
  static const size_t deletions[] = {1, 40, 300, 900};
  float q[8];
  oracle_hit *all = calloc(f.oracle.n, sizeof *all);
  oracle_random_vector(q, 8);
  for (size_t d = 0; d < 4; d++) {
    fixture_check_query(&f, 10, NULL); /* warm */
    for (size_t i = 0; i < deletions[d]; i += 10) {
      oracle_record gone[10];
      size_t n = oracle_nearest(&f.oracle, q, NULL, all), some = deletions[d] - i < 10 ? deletions[d] - i : 10;
      for (size_t j = 0; j < some && j < n; j++) gone[j] = *all[j].r;
      for (size_t j = 0; j < some && j < n; j++) fixture_remove(&f, oracle_find(&f.oracle, oracle_id(&gone[j])));
    }
    fixture_optimize(&f);
    fixture_check_query_for(&f, q, 1, 10, NULL);
  }
  free(all);
  fixture_close(&f);
}

TEST(another_handle_is_followed_too) {
  lode_error err;
  fixture f = {.no_background = true};
  lode_store *theirs;
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_L2, 8);
  OK(lode_open(f.folder, &(lode_open_options){.no_background = true}, &theirs, &err));
  OK(lode_collection_open(theirs, S("c"), NULL, &f.writer, &err));
  fixture_fill(&f, 300);
  for (int round = 0; round < 30; round++) {
    for (size_t i = test_below(10); i-- > 0;) fixture_change(&f);
    fixture_check_query(&f, 10, NULL);
    if (round % 7 == 0) OK(lode_optimize(theirs, (lode_progress){0}, &err));
  }
  lode_collection_close(f.writer);
  lode_close(theirs);
  fixture_close(&f);
}

/* Vectors of 16 KiB: 8 MiB of cache hold some 500. */
TEST_SLOW(what_does_not_fit_in_memory_is_answered_all_the_same, 120) {
  lode_error err;
  enum { DIM = 4096, N = 700 };
  lode_store *small, *large;
  lode_collection *c[2], *d;
  const char *folder = test_folder();
  test_srand(test_seed());
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true, .memory_bytes = 16 << 20}, &small,
               &err));
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &large, &err));
  OK(lode_collection_open(small, S("c"), &(lode_collection_options){.create = true, .metric = LODE_COSINE}, &c[0],
                          &err));
  OK(lode_collection_open(large, S("c"), NULL, &c[1], &err));
  OK(lode_collection_open(small, S("d"), &(lode_collection_options){.create = true}, &d, &err));
  float *v = calloc(DIM, sizeof *v);
  for (int i = 0; i < N; i++) {
    char id[24], meta[48];
    snprintf(id, sizeof id, "%d", i);
    snprintf(meta, sizeof meta, "{\"n\": %d}", i % 3);
    for (int j = 0; j < DIM; j++) v[j] = (float)test_below(1000) - 500;
    lode_record x = {.id = str_of(id), .metadata = str_of(meta), .vector = v, .dimension = DIM};
    OK(lode_add(c[0], NULL, &x, 1, LODE_FAIL_EXISTING, NULL, &err));
    if (i % 4 == 0) OK(lode_add(d, NULL, &x, 1, LODE_FAIL_EXISTING, NULL, &err));
    if (i % 5 == 4)
      OK(lode_upsert(c[0], NULL, &(lode_record){.id = S("3"), .vector = v, .dimension = DIM}, 1, NULL, &err));
    if (i % 7 == 6)
      OK(lode_delete(c[0], NULL, &(lode_selection){.ids = (lode_str[]){str_of(id)}, .n_ids = 1}, NULL, &err));
  }
  lode_str wheres[] = {{0}, S("{\"n\": 1}"), S("{\"n\": {\"$ne\": 1}}")};
  for (int round = 0; round < 2; round++) {
    for (int f = 0; f < 3; f++) {
      lode_result *r[2];
      for (int i = 0; i < 2; i++)
        OK(lode_query(c[i],
                      &(lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 40, .select.where = wheres[f]},
                      &r[i], &err));
      CHECK(lode_result_count(r[0]) == 40 && lode_result_count(r[1]) == 40);
      for (size_t i = 0; i < 40; i++) {
        const lode_row *x = lode_result_at(r[0], i), *y = lode_result_at(r[1], i);
        CHECK(x->id.len == y->id.len && memcmp(x->id.data, y->id.data, x->id.len) == 0 && x->distance == y->distance);
      }
      lode_result_free(r[0]);
      lode_result_free(r[1]);
    }
    lode_result *r; /* a smaller collection of the same handle is cached beside it */
    OK(lode_query(d, &(lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 1000}, &r, &err));
    CHECK(lode_result_count(r) == N / 4);
    lode_result_free(r);
    OK(lode_optimize(small, (lode_progress){0}, &err));
  }
  free(v);
  lode_collection_close(c[0]);
  lode_collection_close(c[1]);
  lode_collection_close(d);
  lode_close(small);
  lode_close(large);
}

/* Vectors of 16 KiB, and a cache that holds some 500 of them: the vectors of one of two collections of 350. */
TEST(a_collection_gives_way_to_one_that_is_used) {
  enum { DIM = 4096, N = 350, BATCH = 50 };
  static const lode_str names[] = {S("one"), S("two")};
  lode_error err;
  lode_store *store;
  lode_collection *c[2];
  lode_open_options options = {.create = true, .no_background = true, .memory_bytes = 16 << 20};
  OK(lode_open(test_folder(), &options, &store, &err));
  float *v = calloc((size_t)BATCH * DIM, sizeof *v);
  for (int i = 0; i < 2; i++) {
    OK(lode_collection_open(store, names[i], &(lode_collection_options){.create = true}, &c[i], &err));
    for (int n = 0; n < N; n += BATCH) {
      lode_record batch[BATCH] = {0};
      char ids[BATCH][24];
      for (int k = 0; k < BATCH; k++) {
        snprintf(ids[k], sizeof ids[k], "%d", n + k);
        v[k * DIM] = (float)(n + k);
        batch[k] = (lode_record){.id = str_of(ids[k]), .vector = v + k * DIM, .dimension = DIM};
      }
      OK(lode_add(c[i], NULL, batch, BATCH, LODE_FAIL_EXISTING, NULL, &err));
    }
  }
  const _Atomic size_t *used = &engine_store_of(store)->cache_bytes;
  for (int round = 0; round < 5; round++) {
    lode_result *r;
    v[0] = 77;
    OK(lode_query(c[round % 2], &(lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = N}, &r, &err));
    CHECK(lode_result_count(r) == N && str_eq(lode_result_at(r, 0)->id, S("77")));
    CHECKF(*used >= N * DIM * sizeof *v && *used <= 8 << 20, "round %d: %zu bytes are cached", round, *used);
    lode_result_free(r);
  }
  free(v);
  lode_collection_close(c[0]);
  lode_collection_close(c[1]);
  lode_close(store);
}

/* ---- Long scans while others write ---- */

enum { LONG_DIM = 2048, LONG_RECORDS = 2000, LONG_QUERIES = 16, PAIRS = 30 };

typedef struct scene {
  lode_collection *c;
  atomic_bool stop;
} scene;

/* Both of a pair are written, moved and deleted together, always nearer than all others. */
static void *move_pairs(void *ctx) {
  scene *s = ctx;
  lode_error err;
  float *v = calloc(LONG_DIM, sizeof *v);
  for (unsigned i = 0; !atomic_load(&s->stop); i++) {
    char left[24], right[24];
    snprintf(left, sizeof left, "l%u", i * 7 % PAIRS);
    snprintf(right, sizeof right, "r%u", i * 7 % PAIRS);
    v[i % 16] = (float)(i % 5);
    lode_record pair[] = {{.id = str_of(left), .vector = v, .dimension = LONG_DIM},
                          {.id = str_of(right), .vector = v, .dimension = LONG_DIM}};
    lode_str ids[] = {str_of(left), str_of(right)};
    OK(lode_upsert(s->c, NULL, pair, 2, NULL, &err));
    if (i % 4 == 0) OK(lode_delete(s->c, NULL, &(lode_selection){.ids = ids, .n_ids = 2}, NULL, &err));
  }
  free(v);
  return NULL;
}

TEST_SLOW(a_long_scan_sees_one_moment, 120) {
  lode_error err;
  lode_store *store;
  scene s = {0};
  pthread_t writer;
  lode_record batch[100];
  float *v = calloc(LONG_DIM * 100, sizeof *v), *queries = calloc(LONG_QUERIES * LONG_DIM, sizeof *queries);
  char ids[100][16];
  OK(lode_open(test_folder(), &(lode_open_options){.create = true}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &s.c, &err));
  for (size_t i = 0; i < LONG_RECORDS; i++) {
    for (size_t j = 0; j < LONG_DIM; j++) v[i % 100 * LONG_DIM + j] = (float)(100 + (i + j) % 7);
    snprintf(ids[i % 100], sizeof ids[0], "%zu", i);
    batch[i % 100] = (lode_record){.id = str_of(ids[i % 100]), .vector = v + i % 100 * LONG_DIM, .dimension = LONG_DIM};
    if (i % 100 == 99) OK(lode_add(s.c, NULL, batch, 100, LODE_FAIL_EXISTING, NULL, &err));
  }
  CHECK(pthread_create(&writer, NULL, move_pairs, &s) == 0);
  for (int round = 0; round < 12; round++) {
    lode_result *r;
    OK(lode_query(
        s.c, &(lode_query_request){.vectors = queries, .dimension = LONG_DIM, .n = LONG_QUERIES, .k = 2 * PAIRS + 5},
        &r, &err));
    CHECK(lode_result_count(r) == LONG_QUERIES * (2 * PAIRS + 5));
    double sum[LONG_QUERIES] = {0};
    size_t rows[LONG_QUERIES] = {0};
    for (size_t i = 0; i < lode_result_count(r); i++) {
      const lode_row *row = lode_result_at(r, i);
      if (row->id.data[0] != 'l' && row->id.data[0] != 'r') continue;
      rows[row->query]++;
      sum[row->query] += row->id.data[0] == 'l' ? row->distance : -row->distance;
    }
    for (size_t q = 0; q < LONG_QUERIES; q++) {
      CHECKF(rows[q] % 2 == 0 && sum[q] == 0, "query %zu: %zu rows, %g", q, rows[q], sum[q]);
      CHECK(rows[q] == rows[0]); /* the same moment for all of a group */
    }
    lode_result_free(r);
  }
  atomic_store(&s.stop, true);
  CHECK(pthread_join(writer, NULL) == 0);
  free(v);
  free(queries);
  lode_collection_close(s.c);
  lode_close(store);
}

/* ---- Cancelling ---- */

static int stop_after, asked;

static bool stop_at(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx, (void)phase, (void)done, (void)total;
  return ++asked != stop_after;
}

/* A clock by which every look at it takes longer than a transaction may. */
static const os_calls *real_os;
static uint64_t hasty_ns(void) {
  static uint64_t late;
  return real_os->now_ns() + (late += 60000000);
}

TEST(a_query_that_is_no_longer_wanted_is_cancelled) {
  lode_error err;
  fixture f = make(LODE_L2, 8, 2000);
  float v[8];
  lode_result *r;
  oracle_random_vector(v, 8);
  lode_str where = S("{\"$and\": [{\"path\": {\"$ne\": \"a\"}}, {\"$not\": {\"path\": \"b\"}}]}");
  lode_query_request q = {.vectors = v,
                          .dimension = 8,
                          .texts = &S("alpha beta"),
                          .n = 1,
                          .k = 5,
                          .select.where = where,
                          .progress = {stop_at, NULL}};
  lode_get_request g = {.select.where = where, .limit = 3, .progress = {stop_at, NULL}};
  os_calls hasty = *os_api;
  real_os = os_api;
  hasty.now_ns = hasty_ns;
  os_api = &hasty;
  for (int mode = LODE_BY_VECTOR; mode <= LODE_HYBRID; mode++) {
    q.mode = (lode_mode)mode;
    stop_after = asked = 0;
    OK(lode_query(f.c, &q, &r, &err));
    lode_result_free(r);
    int times = asked;
    CHECKF(times > 2, "asked %d times only", times);
    for (stop_after = 1; stop_after <= times; stop_after += 1 + times / 10) {
      asked = 0;
      lode_status st = lode_query(f.c, &q, &r, &err); /* a warm cache may ask less often */
      CHECKF(st == (asked < stop_after ? LODE_OK : LODE_CANCELLED), "asked %d times, stopped at %d: %s", asked,
             stop_after, lode_status_name(st));
      CHECK((st == LODE_OK) == (r != NULL) && asked <= stop_after && (stop_after > 1 || !r));
      lode_result_free(r);
    }
  }
  stop_after = 1;
  asked = 0;
  FAILS(LODE_CANCELLED, lode_get(f.c, &g, &r, &err));
  CHECK(!r);
  os_api = real_os;
  stop_after = 0;
  OK(lode_get(f.c, &g, &r, &err));
  CHECK(lode_result_count(r) == 3);
  lode_result_free(r);
  fixture_close(&f);
}
