/* SPDX-License-Identifier: Apache-2.0 */
/* test_segments.c - the vector index behind lode_query: recall, liveness, merges, knobs, other processes. */
#include "support/vkit.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

/* Random data has bad luck at times: floors leave room for it. */
static void check_recall(vkit *k, const lode_query_request *knobs, const char *where, int below, double floor) {
  double low, mean = vkit_mean(k, 100, 10, knobs, where, below, &low);
  CHECKF(mean >= floor, "mean recall %.3f", mean);
  CHECKF(low >= floor - 0.45, "first percentile of recall %.3f", low);
}

TEST_SLOW(recall_of_each_metric, 120) {
  static const lode_metric metrics[] = {LODE_L2, LODE_COSINE, LODE_IP};
  for (size_t m = 0; m < 3; m++) {
    vkit k = {.no_background = true};
    test_srand(test_seed() + m);
    vkit_open(&k, test_folder(), metrics[m], 24);
    vkit_add(&k, 6000);
    CHECK(vkit_mean(&k, 10, 10, NULL, NULL, -1, NULL) == 1); /* all in the tail: exact */
    vkit_optimize(&k);
    lode_stats s = vkit_stats(&k);
    CHECKF(s.segments == 1 && s.indexed == 6000 && s.tail == 0 && s.dead == 0, "%llu segments, %llu rows",
           (unsigned long long)s.segments, (unsigned long long)s.indexed);
    CHECK(s.segment_bytes > 6000 * 24 * 5 && s.building == 0);
    check_recall(&k, NULL, NULL, -1, 0.95);
    lode_query_request knobs = {.exact = true};
    CHECK(vkit_mean(&k, 10, 10, &knobs, NULL, -1, NULL) == 1);
    knobs = (lode_query_request){.target_recall = 1};
    CHECK(vkit_mean(&k, 10, 10, &knobs, NULL, -1, NULL) == 1);
    knobs = (lode_query_request){.effort = 400};
    check_recall(&k, &knobs, NULL, -1, 0.99);
    vkit_reopen(&k);
    check_recall(&k, NULL, NULL, -1, 0.95);
    vkit_close(&k);
  }
}

TEST_SLOW(each_is_found_by_its_own_vector, 120) {
  vkit k = {.no_background = true};
  vkit_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  vkit_limits(500, 300);
  vkit_open(&k, test_folder(), LODE_L2, 16);
  vkit_add(&k, 3000);
  vkit_optimize(&k);
  for (size_t i = 0; i < k.n; i += 3) {
    vkit_query(&k, k.v + i * k.dim, 1, NULL, NULL, a);
    CHECK(a->n == 1 && a->id[0] == i && a->distance[0] == 0);
  }
  free(a);
  vkit_close(&k);
}

TEST_SLOW(what_is_written_is_found_at_once, 120) {
  vkit k = {.no_background = true};
  vkit_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  vkit_limits(400, 300);
  vkit_open(&k, test_folder(), LODE_COSINE, 12);
  vkit_add(&k, 1500);
  vkit_optimize(&k);
  for (int round = 0; round < 200; round++) {
    size_t i = test_below(k.n);
    switch (test_below(4)) {
      case 0: vkit_delete_one(&k, i); break;
      case 1: vkit_update(&k, i); break;
      case 2: vkit_add(&k, 1 + test_below(20)), i = k.n - 1; break;
      default:
        if (round % 20 == 0) vkit_optimize(&k);
    }
    vkit_query(&k, k.v + i * k.dim, 10, NULL, NULL, a);
    double r = vkit_recall(&k, k.v + i * k.dim, 10, -1, a);
    CHECKF(r >= 0.5, "recall %.2f", r);
    if (k.alive[i]) CHECK(a->id[0] == i);
  }
  check_recall(&k, NULL, NULL, -1, 0.95);
  free(a);
  vkit_close(&k);
}

TEST_SLOW(half_deleted_and_others_added, 180) {
  vkit k = {.no_background = true};
  lode_error err;
  test_srand(test_seed());
  vkit_limits(500, 300);
  vkit_open(&k, test_folder(), LODE_L2, 16);
  vkit_add(&k, 4000);
  vkit_optimize(&k);
  double fresh = vkit_mean(&k, 60, 10, NULL, NULL, -1, NULL);
  for (size_t i = 0; i < 4000; i += 2) vkit_delete_one(&k, i);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_add(&k, 2000);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_optimize(&k); /* 50 % dead: made anew */
  lode_stats s = vkit_stats(&k);
  CHECKF(s.dead * 100 < 20 * (s.indexed + s.dead) && s.unerased == 0, "%llu dead of %llu", (unsigned long long)s.dead,
         (unsigned long long)s.indexed);
  double again = vkit_mean(&k, 60, 10, NULL, NULL, -1, NULL);
  CHECKF(again >= fresh - 0.05, "recall fell from %.3f to %.3f", fresh, again);
  vkit_delete(&k, 1, 100);
  OK(lode_compact(k.store, (lode_progress){0}, &err));
  s = vkit_stats(&k);
  CHECKF(s.dead == 0, "%llu dead after compact", (unsigned long long)s.dead);
  vkit_reopen(&k);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_close(&k);
}

/* As when a store that was filled with little memory is opened with more. */
TEST(any_number_of_segments_becomes_one) {
  vkit k = {.no_background = true};
  test_srand(test_seed());
  vkit_limits(20, 300);
  engine_limits.max_rows = 20;
  vkit_open(&k, test_folder(), LODE_L2, 8);
  vkit_add(&k, 2000);
  vkit_optimize(&k);
  CHECK(vkit_stats(&k).segments == 100);
  engine_limits.max_rows = 0;
  vkit_add(&k, 20);
  vkit_optimize(&k);
  lode_stats s = vkit_stats(&k);
  CHECKF(s.segments == 1 && s.indexed == 2020 && s.tail == 0, "%llu segments, %llu rows",
         (unsigned long long)s.segments, (unsigned long long)s.indexed);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_close(&k);
}

/* The bytes of a deleted vector are in no file after a compact. */
TEST(compact_removes_deleted_vectors) {
  vkit k = {.no_background = true};
  lode_error err;
  char *paths[16];
  test_srand(test_seed());
  vkit_limits(100, 300);
  vkit_open(&k, test_folder(), LODE_L2, 8);
  vkit_add(&k, 300);
  vkit_optimize(&k);
  float gone[8];
  memcpy(gone, k.v + 77 * k.dim, sizeof gone);
  for (int round = 0; round < 2; round++) {
    size_t n = vkit_files(k.folder, ".seg", paths, 16), hits = 0;
    CHECK(n >= 1);
    for (size_t i = 0; i < n; i++) {
      size_t len;
      char *bytes = test_read_file(paths[i], &len);
      hits += memmem(bytes, len, gone, sizeof gone) != NULL;
      free(bytes);
      free(paths[i]);
    }
    CHECK(hits == (round == 0));
    if (round == 0) vkit_delete_one(&k, 77);
    if (round == 0) OK(lode_compact(k.store, (lode_progress){0}, &err));
  }
  vkit_close(&k);
}

TEST_SLOW(background_builds_and_merges, 120) {
  vkit k = {0};
  test_srand(test_seed());
  vkit_limits(200, 150);
  vkit_open(&k, test_folder(), LODE_L2, 8);
  for (int i = 0; i < 12; i++) {
    vkit_add(&k, 250);
    if (i % 3 == 2) vkit_wait_built(&k);
    CHECK(vkit_mean(&k, 3, 10, NULL, NULL, -1, NULL) > 0.6);
  }
  vkit_wait_built(&k);
  lode_stats s = vkit_stats(&k);
  CHECKF(s.segments >= 1 && s.segments <= 6, "%llu segments", (unsigned long long)s.segments);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_close(&k);
}

/* How many segments have a graph, and how many are flat, by the headers of their files. */
static void count_kinds(const vkit *k, unsigned *flat, unsigned *graph) {
  char path[600];
  snprintf(path, sizeof path, "%s/segments", k->folder);
  DIR *folder = opendir(path);
  *flat = *graph = 0;
  if (!folder) return;
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    unsigned char head[16] = {0};
    if (!strstr(e->d_name, ".seg")) continue;
    snprintf(path, sizeof path, "%s/segments/%.200s", k->folder, e->d_name);
    FILE *f = fopen(path, "rb");
    if (!f && errno == ENOENT) continue; /* replaced by the background meanwhile */
    CHECK(f && fread(head, 1, sizeof head, f) == sizeof head);
    if (f) fclose(f);
    *(head[12] == INDEX_GRAPH ? graph : flat) += 1;
  }
  closedir(folder);
}

/* Flat until lode_optimize(); what a killed load left is made graphs by whoever builds next. */
TEST_SLOW(bulk_load_stays_flat, 120) {
  unsigned flat, graph;
  test_srand(test_seed());
  vkit_limits(200, 150);
  for (int finished = 0; finished < 2; finished++) {
    char folder[400];
    vkit k = {.bulk_load = true};
    snprintf(folder, sizeof folder, "%s/%d", test_folder(), finished);
    vkit_open(&k, folder, LODE_L2, 8);
    for (int i = 0; i < 8; i++) {
      vkit_add(&k, 250);
      if (i % 3 == 2) vkit_wait_built(&k);
      CHECK(vkit_mean(&k, 3, 10, NULL, NULL, -1, NULL) == 1);
    }
    vkit_wait_built(&k);
    count_kinds(&k, &flat, &graph);
    CHECKF(graph == 0 && flat > 0, "%u graphs, %u flat", graph, flat);
    if (!finished) {
      k.bulk_load = false;
      k.no_background = true;
      vkit_reopen(&k);
    }
    vkit_optimize(&k);
    count_kinds(&k, &flat, &graph);
    CHECKF(graph == 1 && flat == 0, "%u graphs, %u flat", graph, flat);
    lode_stats s = vkit_stats(&k);
    CHECK(s.segments == 1 && s.indexed == 2000 && s.tail == 0);
    check_recall(&k, NULL, NULL, -1, 0.95);
    vkit_delete(&k, 0, 1000);
    vkit_optimize(&k);
    s = vkit_stats(&k);
    CHECKF(s.dead == 0 && s.indexed == 1000, "%llu dead of %llu", (unsigned long long)s.dead,
           (unsigned long long)s.indexed);
    vkit_close(&k);
  }
}

/* A load of 1,000 rows, 50 at a time: so many of the flat segments are put together once, and not again and again. */
static void load(vkit *k, unsigned together) {
  engine_build_request request = {.flat = true};
  lode_error err;
  unsigned flat, graph;
  test_srand(test_seed());
  vkit_limits(50, 30);
  vkit_open(k, test_folder(), LODE_L2, 8);
  for (unsigned round = 1; round <= 20; round++) {
    bool more = true;
    vkit_add(k, 50);
    while (more) OK(engine_build_step(k->store, &request, &more, &err));
    count_kinds(k, &flat, &graph);
    CHECKF(graph == 0 && flat == round / together + round % together, "%u graphs and %u flat after %u", graph, flat,
           round);
  }
  CHECK(vkit_mean(k, 3, 10, NULL, NULL, -1, NULL) == 1);
}

TEST(bulk_load_merges_once) {
  vkit k = {.no_background = true, .bulk_load = true};
  load(&k, 8);
  vkit_close(&k);
}

/* Never to more than half of what may be built at once: two that are not full make one that may be. */
TEST(bulk_load_keeps_to_the_budget) {
  vkit k = {.no_background = true, .bulk_load = true};
  unsigned flat, graph;
  engine_limits.max_rows = 200;
  load(&k, 2);
  vkit_optimize(&k);
  count_kinds(&k, &flat, &graph);
  CHECKF(graph == 5 && flat == 0, "%u graphs and %u flat of 1,000 rows, 200 at once", graph, flat);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_close(&k);
  engine_limits.max_rows = 0;
}

TEST_SLOW(another_process_picks_segments_up, 120) {
  vkit k = {.no_background = true};
  int down[2], up[2];
  char c = 0;
  test_srand(test_seed());
  vkit_limits(200, 150);
  vkit_open(&k, test_folder(), LODE_L2, 8);
  vkit_add(&k, 1000);
  CHECK(pipe(down) == 0 && pipe(up) == 0);
  pid_t pid = fork();
  if (pid == 0) { /* builds when it is told to */
    lode_store *store;
    lode_error err;
    lode_open_options o = {.no_background = true};
    while (read(down[0], &c, 1) == 1 && c == 'b') {
      OK(lode_open(k.folder, &o, &store, &err));
      OK(lode_optimize(store, (lode_progress){0}, &err));
      lode_close(store);
      if (write(up[1], "d", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  CHECK(vkit_mean(&k, 5, 10, NULL, NULL, -1, NULL) == 1);
  for (int round = 0; round < 3; round++) {
    CHECK(write(down[1], "b", 1) == 1 && read(up[0], &c, 1) == 1);
    check_recall(&k, NULL, NULL, -1, 0.95);
    lode_stats s = vkit_stats(&k);
    CHECK(s.segments >= 1 && s.tail < 200);
    vkit_delete(&k, (size_t)round * 300, 100);
    vkit_update(&k, 900);
    vkit_add(&k, 300);
    check_recall(&k, NULL, NULL, -1, 0.95);
  }
  CHECK(write(down[1], "q", 1) == 1);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  vkit_close(&k);
}

TEST_SLOW(filters_of_any_selectivity, 180) {
  vkit k = {.no_background = true};
  test_srand(test_seed());
  vkit_limits(1000, 800);
  vkit_open(&k, test_folder(), LODE_L2, 16);
  vkit_add(&k, 5000);
  vkit_optimize(&k);
  vkit_delete(&k, 1000, 300);
  vkit_add(&k, 500);
  static const int below[] = {1, 2, 10, 20, 50, 99, 100};
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    char where[64];
    snprintf(where, sizeof where, "{\"g\":{\"$lt\":%d}}", below[i]);
    for (int round = 0; round < 2; round++) {
      double mean = vkit_mean(&k, 30, 10, NULL, where, below[i], NULL);
      CHECKF(mean >= 0.95, "recall %.3f with %d %%", mean, below[i]);
    }
  }
  float q[16];
  vkit_answer *a = malloc(sizeof *a);
  vkit_random(&k, q);
  vkit_query(&k, q, 10, NULL, "{\"g\":-1}", a);
  CHECK(a->n == 0);
  vkit_query(&k, q, 200, NULL, "{\"g\":{\"$lt\":1}}", a); /* fewer match than are asked for */
  vkit_recall(&k, q, 200, 1, a);
  free(a);
  vkit_close(&k);
}

/* Whoever asks with many filters takes no places from those that come again. */
TEST(notes_of_filters_take_no_places_of_lists) {
  enum { NOTES = 100, LISTS = 16 };
  vkit k = {.no_background = true};
  lode_error err;
  engine_reader reader;
  engine_snapshot *v = NULL;
  char filter[16];
  vkit_limits(50, 30);
  vkit_open(&k, test_folder(), LODE_L2, 8);
  vkit_add(&k, 200);
  vkit_optimize(&k);
  engine_reader_init(&reader, k.c);
  OK(engine_reader_begin(&reader, &err));
  OK(engine_snapshot_get(&reader, &v, &err));
  CHECK(v && v->n_segs);
  for (int i = 0; i < NOTES; i++) {
    size_t len = (size_t)snprintf(filter, sizeof filter, "f%d", i);
    engine_filter_cache_note(k.store, v, filter, len, (engine_filter_stats){.evaluated = 10, .matched = 1});
  }
  for (int i = 0; i <= LISTS; i++) {
    engine_rids rids = {0};
    size_t len = (size_t)snprintf(filter, sizeof filter, "f%d", i);
    CHECK(engine_rids_add(&rids, 1));
    const engine_rids *kept = engine_filter_cache_add(k.store, v, filter, len, &rids);
    CHECKF((kept != NULL) == (i < LISTS), "list %d", i);
    mem_free(rids.v);
  }
  CHECK(engine_filter_cache_stats(v, "f99", 3).evaluated == 10);
  engine_snapshot_release(v);
  engine_reader_release(&reader);
  vkit_close(&k);
}

static bool is_listed(vkit *k, const char *where) {
  lode_error err;
  engine_reader reader;
  engine_snapshot *v = NULL;
  strbuf key = {0};
  size_t len = strlen(where), none = 0;
  strbuf_add(&key, &len, sizeof len);
  strbuf_addch(&key, 1);
  strbuf_add(&key, where, len);
  strbuf_add(&key, &none, sizeof none);
  strbuf_addch(&key, 0);
  engine_reader_init(&reader, k->c);
  OK(engine_reader_begin(&reader, &err));
  OK(engine_snapshot_get(&reader, &v, &err));
  bool listed = engine_filter_cache_find(v, key.data, key.len) != NULL;
  strbuf_release(&key);
  engine_snapshot_release(v);
  engine_reader_release(&reader);
  return listed;
}

/* Records on a line; of those nearest to its end that are judged first, two match (groups 0 and 1), of all others a
 * tenth does. The list would have 3,200: too many for one query, worth it for more. */
TEST(a_filter_is_listed_when_it_comes_again) {
  enum { ROWS = 32000, DIM = 4, JUDGED = 4 + 4 * (4 + 4), LAST = JUDGED + 8 };
  static const char where[] = "{\"g\":{\"$lt\":10}}";
  vkit k = {.no_background = true};
  vkit_answer *a = malloc(sizeof *a);
  float *v = calloc((size_t)ROWS * DIM, sizeof *v), end[DIM] = {0};
  vkit_limits(1000, 800);
  vkit_open(&k, test_folder(), LODE_L2, DIM);
  for (size_t i = 0; i < ROWS; i++) { /* 0 and 1, then 10 and on, then 2 to 9, then the rest */
    size_t place = i < 2 ? i : i < 10 ? i + JUDGED - 2 : i < LAST ? i - 8 : i;
    v[i * DIM] = (float)place;
  }
  vkit_add_vectors(&k, v, ROWS);
  vkit_optimize(&k);
  vkit_query(&k, end, 4, NULL, NULL, a); /* the snapshot is there from now on */
  for (int use = 0; use < 3; use++) {
    vkit_query(&k, end, 4, NULL, where, a);
    CHECK(a->n == 4);
    for (size_t i = 0; i < a->n; i++) CHECKF((size_t)a->id[i] == i, "place %zu: %zu", i, (size_t)a->id[i]);
    CHECKF(is_listed(&k, where) == (use > 0), "use %d", use);
  }
  free(a);
  free(v);
  vkit_close(&k);
}

/* An index proposes arrays that hold a value for a filter that wants the value itself: none may come back, none be
 * missing. */
TEST(what_an_index_proposes_is_judged) {
  vkit k = {.no_background = true};
  lode_error err;
  vkit_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  vkit_limits(300, 200);
  vkit_open(&k, test_folder(), LODE_L2, 8);
  vkit_add(&k, 1500);
  for (size_t i = 0; i < 200; i++) { /* the nearest to record 0 and others: arrays */
    char id[24];
    lode_record r = {.id = {id, (size_t)snprintf(id, sizeof id, "%zu", i)}, .metadata = STR_LIT("{\"g\":[7,8]}")};
    OK(lode_update(k.c, NULL, &r, 1, NULL, NULL, &err));
    k.group[i] = 1000;
  }
  vkit_optimize(&k);
  for (int round = 0; round < 4; round++) {
    vkit_query(&k, k.v, 20, NULL, "{\"g\":7}", a); /* group 7 only: 13 are left of 15 */
    CHECKF(a->n == 13, "%zu", a->n);
    for (size_t i = 0; i < a->n; i++) CHECK(a->id[i] % 100 == 7 && a->id[i] >= 200);
    vkit_query(&k, k.v, 10, NULL, "{\"g\":{\"$gt\":6,\"$lt\":9}}", a);
    CHECKF(a->n == 10, "%zu", a->n);
    for (size_t i = 0; i < a->n; i++) CHECK(a->id[i] >= 200 && (a->id[i] % 100 == 7 || a->id[i] % 100 == 8));
  }
  free(a);
  vkit_close(&k);
}

TEST(as_many_as_there_are) {
  vkit k = {.no_background = true};
  vkit_answer *a = malloc(sizeof *a);
  float q[4];
  test_srand(test_seed());
  vkit_limits(50, 300);
  vkit_open(&k, test_folder(), LODE_L2, 4);
  vkit_add(&k, 700);
  vkit_optimize(&k);
  vkit_delete(&k, 3, 50);
  vkit_random(&k, q);
  static const size_t wanted[] = {1, 10, 100, 649, 650, 651, 4000};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    vkit_query(&k, q, wanted[i], NULL, NULL, a);
    CHECK(vkit_recall(&k, q, wanted[i], -1, a) > 0.9);
  }
  free(a);
  vkit_close(&k);
}

/* Equal vectors, zero vectors, one dimension. */
TEST_SLOW(odd_collections, 120) {
  static const lode_metric metrics[] = {LODE_L2, LODE_COSINE, LODE_IP};
  vkit_answer *a = malloc(sizeof *a);
  vkit_limits(100, 80);
  for (size_t m = 0; m < 3; m++) {
    for (int kind = 0; kind < 3; kind++) {
      vkit k = {.no_background = true};
      uint32_t dim = kind == 0 ? 1 : 6;
      float v[500 * 6];
      for (size_t i = 0; i < 500 * dim; i++)
        v[i] = kind == 0 ? (float)(i % 37) - 18 : kind == 1 ? 0.5f : i / dim % 3 ? 1 : 0;
      vkit_open(&k, test_folder(), metrics[m], dim);
      vkit_add_vectors(&k, v, 500);
      vkit_optimize(&k);
      CHECK(vkit_stats(&k).segments >= 1);
      float q[6] = {1, 2, 0.5f, 1, 0, 1}, zero[6] = {0};
      vkit_query(&k, q, 20, NULL, NULL, a);
      vkit_recall(&k, q, 20, -1, a);
      vkit_query(&k, zero, 500, NULL, NULL, a);
      vkit_recall(&k, zero, 500, -1, a);
      vkit_close(&k);
    }
  }
  free(a);
}

/* A collection that does not fit into memory: pages go and come. */
TEST_SLOW(small_memory, 120) {
  vkit k = {.no_background = true, .memory_bytes = 16 << 20};
  test_srand(test_seed());
  vkit_limits(1000, 800);
  vkit_open(&k, test_folder(), LODE_L2, 1024);
  vkit_add(&k, 2500);
  vkit_optimize(&k);
  vkit_add(&k, 900);
  vkit_reopen(&k);
  check_recall(&k, NULL, NULL, -1, 0.95);
  vkit_close(&k);
}

TEST(wrong_knobs_are_refused) {
  vkit k = {.no_background = true};
  lode_error err;
  lode_result *r;
  float q[4] = {1, 2, 3, 4};
  vkit_open(&k, test_folder(), LODE_L2, 4);
  lode_query_request request = {.vectors = q, .dimension = 4, .n = 1, .k = 1, .target_recall = 1.5};
  FAILS(LODE_INVALID, lode_query(k.c, &request, &r, &err));
  request.target_recall = NAN;
  FAILS(LODE_INVALID, lode_query(k.c, &request, &r, &err));
  request.target_recall = 0;
  request.effort = LODE_MAX_EFFORT + 1;
  FAILS(LODE_INVALID, lode_query(k.c, &request, &r, &err));
  vkit_close(&k);
}

TEST(a_dropped_collection_takes_its_files_along) {
  vkit k = {.no_background = true};
  lode_error err;
  char *paths[4];
  vkit_limits(100, 300);
  vkit_open(&k, test_folder(), LODE_L2, 4);
  vkit_add(&k, 200);
  vkit_optimize(&k);
  CHECK(vkit_files(k.folder, ".seg", paths, 4) == 1);
  free(paths[0]);
  OK(lode_collection_drop(k.store, (lode_str){"c", 1}, &err));
  vkit_optimize(&k);
  CHECK(vkit_files(k.folder, "", paths, 4) == 0);
  CHECK(vkit_stats(&k).segments == 0);
  vkit_close(&k);
}

/* ---- What a query may cost: a change that makes it cost more must say so here ---- */

static ssize_t (*real_pread)(int fd, void *buf, size_t n, off_t off);
static _Atomic uint64_t bytes_read, reads;
static ssize_t counting_pread(int fd, void *buf, size_t n, off_t off) {
  ssize_t got = real_pread(fd, buf, n, off);
  atomic_fetch_add(&bytes_read, got > 0 ? (uint64_t)got : 0);
  atomic_fetch_add(&reads, 1);
  return got;
}

TEST_SLOW(cost_of_a_query, 120) {
  static os_calls table;
  vkit k = {.no_background = true};
  vkit_answer *a = malloc(sizeof *a);
  float q[32];
  test_srand(7); /* the same data always */
  vkit_limits(4096, 2000);
  vkit_open(&k, test_folder(), LODE_L2, 32);
  vkit_add(&k, 12000);
  vkit_optimize(&k);
  CHECK(vkit_stats(&k).segments == 1);
  vkit_random(&k, q);
  vkit_query(&k, q, 10, NULL, NULL, a);
  index_search_stats before = k.store->scratch[0]->stats;
  for (int i = 0; i < 50; i++) {
    vkit_random(&k, q);
    vkit_query(&k, q, 10, NULL, NULL, a);
  }
  index_search_stats after = k.store->scratch[0]->stats;
  uint64_t distances = (after.distances - before.distances) / 50, vectors = (after.vectors - before.vectors) / 50;
  CHECKF(distances < 12000 / 5, "%llu distances a query", (unsigned long long)distances);
  CHECKF(vectors <= 13, "%llu vectors read a query", (unsigned long long)vectors);
  /* the first query of a new handle reads what it needs: not a tenth of the files */
  table = os_real;
  real_pread = table.pread;
  table.pread = counting_pread;
  os_api = &table;
  vkit_reopen(&k);
  bytes_read = reads = 0;
  vkit_query(&k, q, 10, NULL, NULL, a);
  lode_stats s = vkit_stats(&k);
  CHECKF(bytes_read < s.segment_bytes * 6 / 10, "%llu bytes of %llu read by a first query",
         (unsigned long long)bytes_read, (unsigned long long)s.segment_bytes);
  bytes_read = reads = 0;
  for (int i = 0; i < 50; i++) vkit_query(&k, q, 10, NULL, NULL, a);
  CHECKF(bytes_read / 50 < 16384 + 20 * 32 * 4, "%llu bytes read by a query that was asked before",
         (unsigned long long)bytes_read / 50);
  os_api = &os_real;
  free(a);
  vkit_close(&k);
}

/* Built by one thread or by several, with whatever instructions: the same answers to the bit. */
TEST_SLOW(threads_and_kernels_do_not_matter, 180) {
  static const char *const kernels[] = {"portable", "avx2", "avx512", "neon", NULL};
  vkit_answer *a = malloc(sizeof *a), *first = malloc(20 * sizeof *first);
  float *queries = malloc(20 * 24 * sizeof *queries), *v = malloc(1500 * 24 * sizeof *v);
  vkit shape = {.dim = 24};
  bool have = false;
  test_srand(test_seed());
  for (size_t i = 0; i < 20; i++) vkit_random(&shape, queries + i * 24);
  for (size_t i = 0; i < 1500; i++) vkit_random(&shape, v + i * 24);
  vkit_limits(500, 300);
  for (int run = 0; run < 6; run++) {
    vkit k = {.no_background = true};
    const char *name = run < 4 ? kernels[run] : NULL;
    if (name && (!kernel_use(name) || !quant_use(name))) continue;
    if (!name) (void)(kernel_use(NULL) && quant_use(NULL));
    engine_limits.threads = run == 4 ? 3 : 1;
    vkit_open(&k, test_folder(), LODE_COSINE, 24);
    vkit_add_vectors(&k, v, 1500);
    vkit_optimize(&k);
    for (size_t i = 0; i < 20; i++) {
      vkit_query(&k, queries + i * 24, 10, NULL, NULL, a);
      if (!have) first[i] = *a;
      CHECKF(a->n == first[i].n && memcmp(a->id, first[i].id, a->n * sizeof *a->id) == 0 &&
                 memcmp(a->distance, first[i].distance, a->n * sizeof *a->distance) == 0,
             "run %d answers otherwise", run);
    }
    have = true;
    vkit_close(&k);
  }
  free(a);
  free(first);
  free(queries);
  free(v);
}

/* ---- What must not matter ---- */

/* Answers of two ways are as good as each other: distances rank by rank, as far as recall goes. */
static void same_within_recall(const vkit_answer *a, const vkit_answer *b, const char *what) {
  size_t same = 0;
  CHECKF(a->n == b->n, "%zu rows and %zu: %s", a->n, b->n, what);
  for (size_t i = 0; i < a->n; i++) same += a->distance[i] == b->distance[i];
  CHECKF(same * 10 >= a->n * 5, "%zu of %zu ranks are the same: %s", same, a->n, what);
}

TEST_SLOW(metamorphic, 180) {
  vkit k = {.no_background = true};
  vkit_answer *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  lode_query_request exact = {.exact = true};
  float q[16];
  lode_error err;
  test_srand(test_seed());
  vkit_limits(300, 200);
  vkit_open(&k, test_folder(), LODE_L2, 16);
  vkit_add(&k, 250);
  vkit_random(&k, q);
  vkit_query(&k, q, 10, NULL, NULL, a); /* all in the tail: the same as exact, to the bit */
  vkit_query(&k, q, 10, &exact, NULL, b);
  CHECK(memcmp(a->id, b->id, a->n * sizeof *a->id) == 0 &&
        memcmp(a->distance, b->distance, a->n * sizeof *a->distance) == 0);
  for (int i = 0; i < 4; i++) {
    vkit_add(&k, 400);
    vkit_optimize(&k);
  }
  for (int i = 0; i < 10; i++) {
    vkit_random(&k, q);
    vkit_query(&k, q, 10, NULL, NULL, a);
    vkit_query(&k, q, 10, &exact, NULL, b);
    same_within_recall(a, b, "indexed and exact");
    vkit_query(&k, q, 10, NULL, "{}", b);
    same_within_recall(a, b, "with a filter that is true");
    vkit_query(&k, q, 20, NULL, NULL, b);
    b->n = b->n < 10 ? b->n : 10;
    same_within_recall(a, b, "the ten of twenty");
  }
  /* before a merge, after it, after reopening */
  vkit_query(&k, q, 10, NULL, NULL, a);
  engine_limits.tail_rows = 1;
  vkit_optimize(&k);
  vkit_query(&k, q, 10, NULL, NULL, b);
  same_within_recall(a, b, "before and after a merge");
  vkit_reopen(&k);
  vkit_query(&k, q, 10, NULL, NULL, a);
  CHECK(memcmp(a->id, b->id, a->n * sizeof *a->id) == 0);
  /* without group 3 by a filter, and after deleting it */
  vkit_query(&k, q, 10, NULL, "{\"g\":{\"$ne\":3}}", a);
  for (size_t i = 3; i < k.n; i += 100) vkit_delete_one(&k, i);
  vkit_query(&k, q, 10, NULL, NULL, b);
  same_within_recall(a, b, "not X, and X deleted");
  /* the index removed */
  char path[4400];
  snprintf(path, sizeof path, "%s/segments", k.folder);
  test_remove_tree(path);
  vkit_reopen(&k);
  vkit_query(&k, q, 10, NULL, NULL, a);
  vkit_query(&k, q, 10, &exact, NULL, b);
  CHECK(memcmp(a->id, b->id, a->n * sizeof *a->id) == 0);
  OK(lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  free(a);
  free(b);
  vkit_close(&k);
}

/* A server: the index is in memory before the first query. */
TEST(preloading) {
  vkit k = {.no_background = true};
  lode_error err;
  vkit_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  vkit_limits(300, 200);
  vkit_open(&k, test_folder(), LODE_L2, 16);
  vkit_add(&k, 1000);
  vkit_optimize(&k);
  lode_collection_close(k.c);
  lode_close(k.store);
  OK(lode_open(k.folder, &(lode_open_options){.no_background = true, .preload = true}, &k.store, &err));
  OK(lode_collection_open(k.store, (lode_str){"c", 1}, NULL, &k.c, &err));
  static os_calls table;
  table = os_real;
  real_pread = table.pread;
  table.pread = counting_pread;
  os_api = &table;
  reads = 0;
  vkit_query(&k, k.v, 5, NULL, NULL, a);
  CHECK(a->id[0] == 0);
  CHECKF(reads < 40, "%llu reads", (unsigned long long)reads); /* vectors and records of the answer */
  os_api = &os_real;
  free(a);
  vkit_close(&k);
}
