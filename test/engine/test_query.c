/* SPDX-License-Identifier: Apache-2.0 */
/* test_query.c - what queries by vector answer, against the oracle of world.h: selections, changing data, little
 * memory, long scans, cancelling. */
#include "base/base.h"
#include "os/os.h"
#include "support/test.h"
#include "support/world.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

/* ---- Vectors ---- */

static void all_sizes(lode_metric metric) {
  static const uint32_t dims[] = {1, 3, 16, 17, 100};
  for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
    for (int whole = 0; whole < 2; whole++) {
      world w = world_make(metric, dims[d], whole, 400, (lode_open_options){0});
      static const size_t ks[] = {1, 2, 10, 399, 400, 100000, SIZE_MAX};
      for (size_t k = 0; k < sizeof ks / sizeof *ks; k++) world_query(&w, ks[k], (lode_selection){0}, NULL);
      world_end(&w);
    }
}

TEST(l2_is_exact) { all_sizes(LODE_L2); }
TEST(cosine_is_exact) { all_sizes(LODE_COSINE); }
TEST(ip_is_exact) { all_sizes(LODE_IP); }

TEST(equal_distances_are_ordered_by_id) {
  lode_error err;
  world w = world_make(LODE_L2, 4, true, 1000, (lode_open_options){0});
  const float same[4] = {1, 1, 1, 1}, zero[4] = {0};
  char meta[160];
  for (size_t i = 0; i < w.n; i++) {
    world_record *r = &w.r[i];
    r->has_vector = true;
    memcpy(r->v, same, sizeof same);
    lode_record x = world_record_of(&w, r, meta, sizeof meta);
    OK(lode_update(w.c, NULL, &x, 1, NULL, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    static const size_t ks[] = {1, 10, 999};
    for (size_t k = 0; k < 3; k++) {
      lode_result *r;
      OK(lode_query(w.c, &(lode_query_request){.vectors = zero, .dimension = 4, .n = 1, .k = ks[k]}, &r, &err));
      world_check_nearest(&w, r, 0, 0, zero, NULL, ks[k]);
      lode_result_free(r);
    }
    OK(lode_optimize(w.store, (lode_progress){0}, &err));
  }
  world_end(&w);
}

TEST(many_queries_are_answered_as_each_alone) {
  lode_error err;
  world w = world_make(LODE_L2, 20, false, 700, (lode_open_options){0});
  enum { N = 150 };
  float *q = calloc(N * 20, sizeof *q);
  for (int i = 0; i < N; i++) world_vector(&w, q + i * 20);
  static const size_t ks[] = {1, 60, 5000};
  for (size_t k = 0; k < 3; k++) {
    lode_result *r;
    OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 20, .n = N, .k = ks[k]}, &r, &err));
    size_t each = least(ks[k], world_count(&w, NULL));
    CHECK(lode_result_count(r) == each * N);
    for (size_t i = 0; i < N; i += 13) world_check_nearest(&w, r, i * each, i, q + i * 20, NULL, ks[k]);
    lode_result_free(r);
  }
  free(q);
  world_end(&w);
}

/* ---- Selections ---- */

/* get by the same filter, in the order of insertion. */
static void check_get(const world *w, size_t f) {
  lode_error err;
  lode_result *r;
  size_t at = 0;
  OK(lode_get(w->c, &(lode_get_request){.select = world_selection(f)}, &r, &err));
  for (size_t i = 0; i < w->n; i++) {
    if (!w->r[i].alive || !world_filters[f].keep(&w->r[i])) continue;
    const lode_row *row = lode_result_at(r, at++);
    CHECKF(row && world_find(w, row->id) == &w->r[i], "filter %zu: record %zu", f, i);
  }
  CHECK(lode_result_count(r) == at);
  lode_result_free(r);
}

TEST(filters_select_the_same_with_and_without_an_index) {
  lode_error err;
  world w = world_make(LODE_L2, 8, true, 1200, (lode_open_options){0});
  for (int round = 0; round < 3; round++) {
    for (size_t f = 0; f < world_n_filters; f++) {
      check_get(&w, f);
      world_query(&w, 1, world_selection(f), world_filters[f].keep);
      world_query(&w, 20, world_selection(f), world_filters[f].keep);
      world_query(&w, 5000, world_selection(f), world_filters[f].keep);
    }
    if (round == 0) OK(lode_optimize(w.store, (lode_progress){0}, &err)); /* round 1: all indexed */
    if (round == 1) /* round 2: a tail behind the index, and graves in it */
      for (size_t i = 0; i < 300; i++) {
        world_record *r = &w.r[i];
        r->alive = false;
        OK(lode_delete(w.c, NULL, &(lode_selection){.ids = (lode_str[]){str_of(r->id)}, .n_ids = 1}, NULL, &err));
        world_record *x = &w.r[w.n++];
        snprintf(x->id, sizeof x->id, "x%zu", i);
        world_randomize(&w, x);
        x->alive = true;
        char meta[160];
        lode_record add = world_record_of(&w, x, meta, sizeof meta);
        OK(lode_add(w.c, NULL, &add, 1, LODE_FAIL_EXISTING, NULL, &err));
      }
  }
  world_end(&w);
}

TEST(ids_restrict_a_query) {
  lode_error err;
  world w = world_make(LODE_COSINE, 8, false, 600, (lode_open_options){0});
  static const size_t sizes[] = {1, 5, 100, 600};
  for (size_t s = 0; s < 4; s++) {
    lode_str ids[602];
    float q[WORLD_MOST_DIM];
    world few = w;
    few.r = calloc(WORLD_MOST, sizeof *few.r);
    few.n = sizes[s];
    for (size_t i = 0; i < sizes[s]; i++) {
      few.r[i] = w.r[i * 7 % 600];
      ids[i] = str_of(few.r[i].id);
    }
    ids[sizes[s]] = S("nobody");
    ids[sizes[s] + 1] = ids[0];
    world_vector(&w, q);
    lode_result *r;
    OK(lode_query(w.c,
                  &(lode_query_request){
                      .vectors = q,
                      .dimension = 8,
                      .n = 1,
                      .k = 50,
                      .select = {.ids = ids, .n_ids = sizes[s] + 2, .where = S("{\"tag\": {\"$ne\": \"t2\"}}")}},
                  &r, &err));
    size_t kept = 0;
    for (size_t i = 0; i < few.n; i++) {
      if (few.r[i].tag == 2) few.r[i].alive = false;
      kept += few.r[i].alive && few.r[i].has_vector;
    }
    CHECK(lode_result_count(r) == least(50, kept));
    world_check_nearest(&few, r, 0, 0, q, NULL, 50);
    lode_result_free(r);
    free(few.r);
  }
  world_end(&w);
}

/* ---- Changing data under a warm cache ---- */

/* One random change, by this or by another handle of the store. */
static void change(world *w, lode_collection *c) {
  lode_error err;
  char meta[160];
  world_record *r = &w->r[test_below(w->n)];
  switch (test_below(4)) {
    case 0:
      if (w->n == WORLD_MOST) return;
      r = &w->r[w->n++];
      snprintf(r->id, sizeof r->id, "n%zu", w->n * 7919 % 10007);
      world_randomize(w, r);
      r->alive = true;
      lode_record add = world_record_of(w, r, meta, sizeof meta);
      OK(lode_add(c, NULL, &add, 1, LODE_FAIL_EXISTING, NULL, &err));
      break;
    case 1:
      if (!r->alive) return;
      world_vector(w, r->v);
      r->has_vector = true;
      OK(lode_update(c, NULL, &(lode_record){.id = str_of(r->id), .vector = r->v, .dimension = w->dim}, 1, NULL, NULL,
                     &err));
      break;
    default:
      if (!r->alive) return;
      r->alive = false;
      OK(lode_delete(c, NULL, &(lode_selection){.ids = (lode_str[]){str_of(r->id)}, .n_ids = 1}, NULL, &err));
  }
}

static void change_and_query(size_t records, uint32_t dim, unsigned rounds, lode_open_options o) {
  lode_error err;
  world w = world_make(LODE_L2, dim, true, records, o);
  for (unsigned round = 0; round < rounds; round++) {
    for (size_t i = test_below(60); i-- > 0;) change(&w, w.c);
    if (test_below(5) == 0)
      OK(lode_optimize(w.store, (lode_progress){0}, &err)); /* erases graves before the cache has seen them */
    world_query(&w, 1 + test_below(30), (lode_selection){0}, NULL);
    if (round % 3 == 0) {
      size_t f = test_below(world_n_filters);
      world_query(&w, 1 + test_below(30), world_selection(f), world_filters[f].keep);
    }
    if (test_below(6) == 0) OK(lode_optimize(w.store, (lode_progress){0}, &err));
  }
  world_end(&w);
}

TEST(a_warm_cache_follows_every_change) { change_and_query(1500, 8, 80, (lode_open_options){0}); }

TEST(what_was_erased_unseen_is_not_found) {
  lode_error err;
  world w = world_make(LODE_L2, 8, false, 2000, (lode_open_options){0});
  static const size_t deletions[] = {1, 40, 300,
                                     900}; /* few stay in the cache, not known to be dead; many make it anew */
  float q[WORLD_MOST_DIM];
  world_answer *all = calloc(w.n, sizeof *all);
  world_vector(&w, q);
  for (size_t d = 0; d < 4; d++) {
    lode_result *r;
    world_query(&w, 10, (lode_selection){0}, NULL); /* warm */
    size_t n = world_nearest(&w, q, NULL, all);
    for (size_t i = 0; i < deletions[d] && i < n; i++) {
      world_record *nearest = &w.r[all[i].r - w.r];
      OK(lode_delete(w.c, NULL, &(lode_selection){.ids = (lode_str[]){str_of(nearest->id)}, .n_ids = 1}, NULL, &err));
      nearest->alive = false;
    }
    OK(lode_optimize(w.store, (lode_progress){0}, &err));
    OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 8, .n = 1, .k = 10}, &r, &err));
    CHECK(lode_result_count(r) == 10);
    world_check_nearest(&w, r, 0, 0, q, NULL, 10);
    lode_result_free(r);
  }
  free(all);
  world_end(&w);
}

TEST(another_handle_is_followed_too) {
  lode_error err;
  world w = world_make(LODE_L2, 8, true, 300, (lode_open_options){0});
  const char *folder = test_folder();
  lode_store *mine, *theirs;
  lode_collection *a, *b;
  lode_open_options o = {.create = true, .no_background = true};
  OK(lode_open(folder, &o, &mine, &err));
  OK(lode_open(folder, &o, &theirs, &err));
  OK(lode_collection_open(mine, S("c"), &(lode_collection_options){.create = true}, &a, &err));
  OK(lode_collection_open(theirs, S("c"), NULL, &b, &err));
  lode_collection *first = w.c;
  char meta[160];
  for (size_t i = 0; i < w.n; i++) {
    lode_record x = world_record_of(&w, &w.r[i], meta, sizeof meta);
    OK(lode_add(b, NULL, &x, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  w.c = a;
  for (int round = 0; round < 30; round++) {
    for (size_t i = test_below(10); i-- > 0;) change(&w, b);
    world_query(&w, 10, (lode_selection){0}, NULL);
    if (round % 7 == 0) OK(lode_optimize(theirs, (lode_progress){0}, &err));
  }
  w.c = first;
  lode_collection_close(a);
  lode_collection_close(b);
  lode_close(mine);
  lode_close(theirs);
  world_end(&w);
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
    lode_result *r; /* a least collection of the same handle is cached beside it */
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

TEST(what_nobody_wants_any_more_is_cancelled) {
  lode_error err;
  world w = world_make(LODE_L2, 8, true, 2000, (lode_open_options){0});
  float v[WORLD_MOST_DIM];
  lode_result *r;
  world_vector(&w, v);
  lode_str where = S("{\"$and\": [{\"tag\": {\"$ne\": \"t1\"}}, {\"$not\": {\"tag\": \"t2\"}}]}");
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
    OK(lode_query(w.c, &q, &r, &err));
    lode_result_free(r);
    int times = asked;
    CHECKF(times > 2, "asked %d times only", times);
    for (stop_after = 1; stop_after <= times; stop_after += 1 + times / 10) {
      asked = 0;
      lode_status st = lode_query(w.c, &q, &r, &err); /* a warm cache may ask less often */
      CHECKF(st == (asked < stop_after ? LODE_OK : LODE_CANCELLED), "asked %d times, stopped at %d: %s", asked,
             stop_after, lode_status_name(st));
      CHECK((st == LODE_OK) == (r != NULL) && asked <= stop_after && (stop_after > 1 || !r));
      lode_result_free(r);
    }
  }
  stop_after = 1;
  asked = 0;
  FAILS(LODE_CANCELLED, lode_get(w.c, &g, &r, &err));
  CHECK(!r);
  os_api = real_os;
  stop_after = 0;
  OK(lode_get(w.c, &g, &r, &err));
  CHECK(lode_result_count(r) == 3);
  lode_result_free(r);
  world_end(&w);
}

TEST(rows_carry_what_was_asked_for) {
  lode_error err;
  world w = world_make(LODE_L2, 5, true, 50, (lode_open_options){0});
  lode_result *r;
  float q[WORLD_MOST_DIM];
  world_vector(&w, q);
  OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 5, .n = 1, .k = 50, .include = LODE_ALL}, &r,
                &err));
  for (size_t i = 0; i < lode_result_count(r); i++) {
    const lode_row *row = lode_result_at(r, i);
    const world_record *x = world_find(&w, row->id);
    CHECK(row->dimension == 5 && memcmp(row->vector, x->v, 5 * sizeof(float)) == 0 && row->metadata.data &&
          row->cursor > 0);
    CHECK(x->has_document
              ? row->document.len == strlen(x->text) && memcmp(row->document.data, x->text, row->document.len) == 0
              : !row->document.data);
  }
  lode_result_free(r);
  world_end(&w);
}
