/* SPDX-License-Identifier: Apache-2.0 */
/* test_segments.c - the vector index under lode_query: recall, liveness, merges, knobs, other processes. */
#include "engine/filter_cache.h"
#include "store/tombstones.h"
#include "support/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

/* Random data has bad luck at times: floors leave room for it. */
static void check_recall(fixture *k, const lode_query_request *knobs, double floor) {
  double low, mean = fixture_mean_recall(k, 100, 10, knobs, NULL, &low);
  CHECKF(mean >= floor, "mean recall %.3f", mean);
  CHECKF(low >= floor - 0.45, "first percentile of recall %.3f", low);
}

TEST_SLOW(recall_of_each_metric, 120) {
  static const lode_metric metrics[] = {LODE_L2, LODE_COSINE, LODE_IP};
  for (size_t m = 0; m < 3; m++) {
    fixture k = {.no_background = true};
    test_srand(test_seed() + m);
    fixture_open(&k, test_folder(), metrics[m], 24);
    fixture_add(&k, 6000);
    CHECK(fixture_mean_recall(&k, 10, 10, NULL, NULL, NULL) == 1); /* all in the tail: exact */
    fixture_optimize(&k);
    lode_stats s = fixture_stats(&k);
    CHECKF(s.segments == 1 && s.indexed == 6000 && s.tail == 0 && s.dead == 0, "%llu segments, %llu rows",
           (unsigned long long)s.segments, (unsigned long long)s.indexed);
    CHECK(s.segment_bytes > 6000 * 24 * 5 && s.building == 0);
    check_recall(&k, NULL, 0.95);
    lode_query_request knobs = {.exact = true};
    CHECK(fixture_mean_recall(&k, 10, 10, &knobs, NULL, NULL) == 1);
    knobs = (lode_query_request){.target_recall = 1};
    CHECK(fixture_mean_recall(&k, 10, 10, &knobs, NULL, NULL) == 1);
    knobs = (lode_query_request){.effort = 400};
    check_recall(&k, &knobs, 0.99);
    fixture_reopen(&k);
    check_recall(&k, NULL, 0.95);
    fixture_close(&k);
  }
}

TEST_SLOW(each_is_found_by_its_own_vector, 120) {
  fixture k = {.no_background = true};
  fixture_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  fixture_limits(500, 300);
  fixture_open(&k, test_folder(), LODE_L2, 16);
  fixture_add(&k, 3000);
  fixture_optimize(&k);
  for (size_t i = 0; i < k.n; i += 3) {
    fixture_query(&k, k.v[i], 1, NULL, NULL, a);
    CHECK(a->n == 1 && a->id[0] == i && a->distance[0] == 0);
  }
  free(a);
  fixture_close(&k);
}

TEST_SLOW(what_is_written_is_found_at_once, 120) {
  fixture k = {.no_background = true};
  fixture_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  fixture_limits(400, 300);
  fixture_open(&k, test_folder(), LODE_COSINE, 12);
  fixture_add(&k, 1500);
  fixture_optimize(&k);
  for (int round = 0; round < 200; round++) {
    size_t i = test_below(k.n);
    switch (test_below(4)) {
      case 0: fixture_delete_one(&k, i); break;
      case 1: fixture_update(&k, i); break;
      case 2: fixture_add(&k, 1 + test_below(20)), i = k.n - 1; break;
      default:
        if (round % 20 == 0) fixture_optimize(&k);
    }
    fixture_query(&k, k.v[i], 10, NULL, NULL, a);
    double r = fixture_recall(&k, k.v[i], 10, NULL, a);
    CHECKF(r >= 0.5, "recall %.2f", r);
    if (fixture_alive(&k, i)) CHECK(a->id[0] == i);
  }
  check_recall(&k, NULL, 0.95);
  free(a);
  fixture_close(&k);
}

TEST_SLOW(recall_survives_deleting_half_and_adding_others, 180) {
  fixture k = {.no_background = true};
  lode_error err;
  test_srand(test_seed());
  fixture_limits(500, 300);
  fixture_open(&k, test_folder(), LODE_L2, 16);
  fixture_add(&k, 4000);
  fixture_optimize(&k);
  double fresh = fixture_mean_recall(&k, 60, 10, NULL, NULL, NULL);
  for (size_t i = 0; i < 4000; i += 2) fixture_delete_one(&k, i);
  check_recall(&k, NULL, 0.95);
  fixture_add(&k, 2000);
  check_recall(&k, NULL, 0.95);
  fixture_optimize(&k); /* 50 % dead: rebuilt */
  lode_stats s = fixture_stats(&k);
  CHECKF(s.dead * 100 < 20 * (s.indexed + s.dead) && s.unerased == 0, "%llu dead of %llu", (unsigned long long)s.dead,
         (unsigned long long)s.indexed);
  double again = fixture_mean_recall(&k, 60, 10, NULL, NULL, NULL);
  CHECKF(again >= fresh - 0.05, "recall fell from %.3f to %.3f", fresh, again);
  fixture_delete(&k, 1, 100);
  OK(lode_compact(k.store, (lode_progress){0}, &err));
  s = fixture_stats(&k);
  CHECKF(s.dead == 0, "%llu dead after compact", (unsigned long long)s.dead);
  fixture_reopen(&k);
  check_recall(&k, NULL, 0.95);
  fixture_close(&k);
}

/* As when a store that was filled with little memory is opened with more. */
TEST(any_number_of_segments_becomes_one) {
  fixture k = {.no_background = true};
  test_srand(test_seed());
  fixture_limits(20, 300);
  segments_limits.max_rows = 20;
  fixture_open(&k, test_folder(), LODE_L2, 8);
  fixture_add(&k, 2000);
  fixture_optimize(&k);
  CHECK(fixture_stats(&k).segments == 100);
  segments_limits.max_rows = 0;
  fixture_add(&k, 20);
  fixture_optimize(&k);
  lode_stats s = fixture_stats(&k);
  CHECKF(s.segments == 1 && s.indexed == 2020 && s.tail == 0, "%llu segments, %llu rows",
         (unsigned long long)s.segments, (unsigned long long)s.indexed);
  check_recall(&k, NULL, 0.95);
  fixture_close(&k);
}

/* The bytes of a deleted vector are in no file after a compact. */
TEST(compact_removes_deleted_vectors) {
  fixture k = {.no_background = true};
  lode_error err;
  char *paths[16];
  test_srand(test_seed());
  fixture_limits(100, 300);
  fixture_open(&k, test_folder(), LODE_L2, 8);
  fixture_add(&k, 300);
  fixture_optimize(&k);
  float gone[8];
  memcpy(gone, k.v[77], sizeof gone);
  for (int round = 0; round < 2; round++) {
    size_t n = fixture_files(k.folder, ".seg", paths, 16), hits = 0;
    CHECK(n >= 1);
    for (size_t i = 0; i < n; i++) {
      size_t len;
      char *bytes = test_read_file(paths[i], &len);
      hits += memmem(bytes, len, gone, sizeof gone) != NULL;
      free(bytes);
      free(paths[i]);
    }
    CHECK(hits == (round == 0 && segments_limits.place_bytes > 0)); /* a placed segment has none */
    if (round == 0) fixture_delete_one(&k, 77);
    if (round == 0) OK(lode_compact(k.store, (lode_progress){0}, &err));
  }
  fixture_close(&k);
}

/* Rows of another collection lie before those of this one, or among them, until it is dropped. */
static void add_another_collection(fixture *k, lode_collection **c) {
  enum { ROWS = 400, FLOATS = 2048 }; /* a page each */
  lode_error err;
  lode_record records[ROWS] = {0};
  static float vectors[ROWS][FLOATS];
  static char ids[ROWS][16];
  lode_collection_options options = {.create = true};
  OK(lode_collection_open(k->store, (lode_str){"d", 1}, &options, c, &err));
  for (size_t i = 0; i < ROWS; i++) {
    for (size_t j = 0; j < FLOATS; j++) vectors[i][j] = (float)(i * j);
    int len = snprintf(ids[i], sizeof ids[i], "d%zu", i);
    records[i] = (lode_record){.id = {ids[i], (size_t)len}, .vector = vectors[i], .dimension = FLOATS};
  }
  OK(lode_add(*c, NULL, records, ROWS, LODE_FAIL_EXISTING, NULL, &err));
}

/* Dropping the other collection frees pages, and the pages of these vectors move there when the file shrinks. */
TEST_SLOW(vectors_move_in_the_database_file, 120) {
  fixture k = {.no_background = true};
  lode_error err;
  lode_collection *other;
  lode_query_request exact = {.exact = true};
  char *before[4], *after[4];
  test_srand(test_seed());
  fixture_limits(1000, 300);
  segments_limits.place_bytes = 0;
  fixture_open(&k, test_folder(), LODE_L2, 64);
  add_another_collection(&k, &other);
  fixture_add(&k, 3000);
  fixture_optimize(&k);
  CHECK(fixture_files(k.folder, ".seg", before, 4) == 1);
  lode_collection_close(other);
  OK(lode_collection_drop(k.store, (lode_str){"d", 1}, &err));
  OK(lode_compact(k.store, (lode_progress){0}, &err));
  for (int i = 0; i < 4; i++) {
    check_recall(&k, NULL, 0.95);
    CHECK(fixture_mean_recall(&k, 10, 10, &exact, NULL, NULL) == 1);
    CHECK(fixture_files(k.folder, ".seg", after, 4) == 1);
    bool same = strcmp(before[0], after[0]) == 0;
    free(after[0]);
    CHECKF(same == (i < 2), "step %d: %s places", i, same ? "the first" : "new");
    if (i % 2 == 0)
      fixture_reopen(&k);
    else
      fixture_optimize(&k); /* finds that the places are wrong */
  }
  OK(lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  free(before[0]);
  fixture_close(&k);
}

TEST_SLOW(the_background_builds_and_merges, 120) {
  fixture k = {0};
  test_srand(test_seed());
  fixture_limits(200, 150);
  fixture_open(&k, test_folder(), LODE_L2, 8);
  for (int i = 0; i < 12; i++) {
    fixture_add(&k, 250);
    if (i % 3 == 2) fixture_wait_built(&k);
    CHECK(fixture_mean_recall(&k, 3, 10, NULL, NULL, NULL) > 0.6);
  }
  fixture_wait_built(&k);
  lode_stats s = fixture_stats(&k);
  CHECKF(s.segments >= 1 && s.segments <= 6, "%llu segments", (unsigned long long)s.segments);
  check_recall(&k, NULL, 0.95);
  fixture_close(&k);
}

/* How many segments have a graph, and how many are flat, by the headers of their files. */
static void count_kinds(const fixture *k, unsigned *flat, unsigned *graph) {
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
  fixture_limits(200, 150);
  for (int finished = 0; finished < 2; finished++) {
    char folder[400];
    fixture k = {.bulk_load = true};
    snprintf(folder, sizeof folder, "%s/%d", test_folder(), finished);
    fixture_open(&k, folder, LODE_L2, 8);
    for (int i = 0; i < 8; i++) {
      fixture_add(&k, 250);
      if (i % 3 == 2) fixture_wait_built(&k);
      CHECK(fixture_mean_recall(&k, 3, 10, NULL, NULL, NULL) == 1);
    }
    fixture_wait_built(&k);
    count_kinds(&k, &flat, &graph);
    CHECKF(graph == 0 && flat > 0, "%u graphs, %u flat", graph, flat);
    if (!finished) {
      k.bulk_load = false;
      k.no_background = true;
      fixture_reopen(&k);
    }
    fixture_optimize(&k);
    count_kinds(&k, &flat, &graph);
    CHECKF(graph == 1 && flat == 0, "%u graphs, %u flat", graph, flat);
    lode_stats s = fixture_stats(&k);
    CHECK(s.segments == 1 && s.indexed == 2000 && s.tail == 0);
    check_recall(&k, NULL, 0.95);
    fixture_delete(&k, 0, 1000);
    fixture_optimize(&k);
    s = fixture_stats(&k);
    CHECKF(s.dead == 0 && s.indexed == 1000, "%llu dead of %llu", (unsigned long long)s.dead,
           (unsigned long long)s.indexed);
    fixture_close(&k);
  }
}

/* A graph pays for itself when there is more than can be scanned. */
TEST(a_small_collection_has_no_graph) {
  fixture k = {.no_background = true};
  unsigned flat, graph;
  test_srand(test_seed());
  fixture_limits(100, 60);
  segments_limits.exact_rows = 1000;
  fixture_open(&k, test_folder(), LODE_L2, 8);
  for (size_t n = 250; n <= 1000; n += 250) {
    fixture_add(&k, 250);
    fixture_optimize(&k);
    count_kinds(&k, &flat, &graph);
    CHECKF(graph == 0 && flat > 0 && fixture_stats(&k).tail == 0, "%zu: %u graphs, %u flat", n, graph, flat);
  }
  CHECK(fixture_mean_recall(&k, 5, 10, NULL, NULL, NULL) == 1);
  fixture_add(&k, 1); /* now it is no small one any more */
  fixture_optimize(&k);
  count_kinds(&k, &flat, &graph);
  CHECKF(graph == 1 && flat == 0 && fixture_stats(&k).indexed == 1001, "%u graphs, %u flat", graph, flat);
  check_recall(&k, NULL, 0.95);
  fixture_delete(&k, 0, 600); /* rebuilt for its dead rows: as a small one */
  fixture_optimize(&k);
  count_kinds(&k, &flat, &graph);
  CHECKF(graph == 0 && flat == 1 && fixture_stats(&k).indexed == 401, "%u graphs, %u flat", graph, flat);
  CHECK(fixture_mean_recall(&k, 5, 10, NULL, NULL, NULL) == 1);
  fixture_close(&k);
}

/* A load of 1,000 rows, 50 at a time: flat segments are merged once, `together` of them, and not again and again. */
static void load(fixture *k, unsigned together) {
  segments_build_request request = {.flat = true};
  lode_error err;
  unsigned flat, graph;
  test_srand(test_seed());
  fixture_limits(50, 30);
  fixture_open(k, test_folder(), LODE_L2, 8);
  for (unsigned round = 1; round <= 20; round++) {
    bool more = true;
    fixture_add(k, 50);
    while (more) OK(segments_build_step(&engine_store_of(k->store)->segments, &request, &more, &err));
    count_kinds(k, &flat, &graph);
    CHECKF(graph == 0 && flat == round / together + round % together, "%u graphs and %u flat after %u", graph, flat,
           round);
  }
  CHECK(fixture_mean_recall(k, 3, 10, NULL, NULL, NULL) == 1);
}

TEST(bulk_load_merges_once) {
  fixture k = {.no_background = true, .bulk_load = true};
  load(&k, 8);
  fixture_close(&k);
}

/* Never to more than half of what may be built at once: two that are not full make one that may be. */
TEST(bulk_load_keeps_to_the_budget) {
  fixture k = {.no_background = true, .bulk_load = true};
  unsigned flat, graph;
  segments_limits.max_rows = 200;
  load(&k, 2);
  fixture_optimize(&k);
  count_kinds(&k, &flat, &graph);
  CHECKF(graph == 5 && flat == 0, "%u graphs and %u flat of 1,000 rows, 200 at once", graph, flat);
  check_recall(&k, NULL, 0.95);
  fixture_close(&k);
  segments_limits.max_rows = 0;
}

/* The most memory that this process has had, in bytes; 0: not known. */
static uint64_t most_memory(void) {
  char line[200];
  unsigned long kib = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmHWM: %lu", &kib) == 1) break;
  if (f) (void)fclose(f);
  return (uint64_t)kib << 10;
}

/* Records with all that is indexed: words, metadata, vectors. */
static void add_full_records(lode_collection *c, size_t first) {
  enum { ROWS = 500, FLOATS = 256 };
  static lode_record records[ROWS];
  static float vectors[ROWS][FLOATS];
  static char texts[ROWS][4][300];
  lode_error err;
  for (size_t i = 0; i < ROWS; i++) {
    int len[3] = {snprintf(texts[i][0], 300, "id-%zu", first + i), 0,
                  snprintf(texts[i][2], 300, "{\"a\":%zu,\"b\":\"value %u\",\"c\":%u}", first + i,
                           (unsigned)test_below(1000), (unsigned)test_below(10))};
    for (int w = 0; w < 40; w++)
      len[1] += snprintf(texts[i][1] + len[1], (size_t)(300 - len[1]), "w%u ", (unsigned)test_below(20000));
    for (size_t j = 0; j < FLOATS; j++) vectors[i][j] = (float)test_below(1000) + (j < 4 ? 1000 : 0);
    records[i] = (lode_record){.id = {texts[i][0], (size_t)len[0]},
                               .document = {texts[i][1], (size_t)len[1]},
                               .metadata = {texts[i][2], (size_t)len[2]},
                               .vector = vectors[i],
                               .dimension = FLOATS};
  }
  OK(lode_add(c, NULL, records, ROWS, LODE_FAIL_EXISTING, NULL, &err));
}

/* Freed memory that the allocator keeps counts as well: whoever runs this sees no other. */
TEST_SLOW(loading_and_building_keep_to_the_budget, 240) {
  enum { BUDGET = 24 << 20, OWN = 8 << 20, ROWS = 20000 }; /* OWN: the program's code, buffers of threads */
  lode_error err;
  lode_store *store;
  lode_collection *c;
  lode_open_options o = {.create = true, .memory_bytes = BUDGET};
  lode_collection_options how = {.create = true};
  if (BUILD_ASAN || BUILD_TSAN) test_skip("sanitizers need several times as much");
  test_srand(test_seed());
  uint64_t before = most_memory();
  if (!before) test_skip("this system does not say how much memory a process has had");
  OK(lode_open(test_folder(), &o, &store, &err));
  OK(lode_collection_open(store, (lode_str){"c", 1}, &how, &c, &err));
  for (size_t i = 0; i < ROWS; i += 500) add_full_records(c, i);
  OK(lode_optimize(store, (lode_progress){0}, &err));
  uint64_t most = most_memory();
  CHECKF(most - before <= BUDGET + OWN, "%.1f MiB more than before", (double)(most - before) / (1 << 20));
  lode_collection_close(c);
  lode_close(store);
}

TEST_SLOW(another_process_picks_segments_up, 120) {
  fixture k = {.no_background = true};
  int down[2], up[2];
  char c = 0;
  test_srand(test_seed());
  fixture_limits(200, 150);
  fixture_open(&k, test_folder(), LODE_L2, 8);
  fixture_add(&k, 1000);
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
  CHECK(fixture_mean_recall(&k, 5, 10, NULL, NULL, NULL) == 1);
  for (int round = 0; round < 3; round++) {
    CHECK(write(down[1], "b", 1) == 1 && read(up[0], &c, 1) == 1);
    check_recall(&k, NULL, 0.95);
    lode_stats s = fixture_stats(&k);
    CHECK(s.segments >= 1 && s.tail < 200);
    fixture_delete(&k, (size_t)round * 300, 100);
    fixture_update(&k, 900);
    fixture_add(&k, 300);
    check_recall(&k, NULL, 0.95);
  }
  CHECK(write(down[1], "q", 1) == 1);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  fixture_close(&k);
}

TEST_SLOW(filters_of_any_selectivity, 180) {
  oracle_filter where = {0};
  fixture k = {.no_background = true};
  test_srand(test_seed());
  fixture_limits(1000, 800);
  fixture_open(&k, test_folder(), LODE_L2, 16);
  fixture_add(&k, 5000);
  fixture_optimize(&k);
  fixture_delete(&k, 1000, 300);
  fixture_add(&k, 500);
  static const unsigned below[] = {1, 2, 10, 20, 50, 99, 100};
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    oracle_leaf_filter(&where, 0, ORACLE_LT, oracle_int(below[i]));
    for (int round = 0; round < 2; round++) {
      double mean = fixture_mean_recall(&k, 30, 10, NULL, &where, NULL);
      CHECKF(mean >= 0.95, "recall %.3f with %u %%", mean, below[i]);
    }
  }
  float q[16];
  fixture_answer *a = malloc(sizeof *a);
  fixture_random(&k, q);
  fixture_query(&k, q, 10, &(lode_query_request){.select.where = STR_LIT("{\"n\":-1}")}, NULL, a);
  CHECK(a->n == 0);
  oracle_leaf_filter(&where, 0, ORACLE_LT, oracle_int(1));
  fixture_query(&k, q, 200, NULL, &where, a); /* fewer match than are asked for */
  fixture_recall(&k, q, 200, &where, a);
  oracle_filter_release(&where);
  free(a);
  fixture_close(&k);
}

/* Statistics of many filters take no slots from filters whose matches are cached. */
TEST(statistics_of_filters_take_no_slots_of_lists) {
  enum { NOTES = 100, LISTS = 16 };
  fixture k = {.no_background = true};
  lode_error err;
  engine_reader reader;
  engine_snapshot *v = NULL;
  char filter[16];
  fixture_limits(50, 30);
  fixture_open(&k, test_folder(), LODE_L2, 8);
  fixture_add(&k, 200);
  fixture_optimize(&k);
  engine_reader_init(&reader, engine_collection_of(k.c));
  OK(engine_reader_begin(&reader, &err));
  OK(engine_snapshot_get(&reader, &v, &err));
  CHECK(v && v->n_segs);
  for (int i = 0; i < NOTES; i++) {
    snprintf(filter, sizeof filter, "f%d", i);
    engine_filter_stats seen = {.evaluated = 10, .matched = 1};
    engine_filter_cache_note(engine_store_of(k.store), v, str_of(filter), seen);
  }
  for (int i = 0; i <= LISTS; i++) {
    engine_rids rids = {0};
    snprintf(filter, sizeof filter, "f%d", i);
    CHECK(engine_rids_add(&rids, 1));
    const engine_rids *kept = engine_filter_cache_add(engine_store_of(k.store), v, str_of(filter), &rids);
    CHECKF((kept != NULL) == (i < LISTS), "list %d", i);
    mem_free(rids.v);
  }
  CHECK(engine_filter_cache_stats(v, STR_LIT("f99")).evaluated == 10);
  engine_snapshot_release(v);
  engine_reader_release(&reader);
  fixture_close(&k);
}

static bool is_listed(fixture *k, const char *where) {
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
  engine_reader_init(&reader, engine_collection_of(k->c));
  OK(engine_reader_begin(&reader, &err));
  OK(engine_snapshot_get(&reader, &v, &err));
  bool listed = engine_filter_cache_find(v, (lode_str){key.data, key.len}) != NULL;
  strbuf_release(&key);
  engine_snapshot_release(v);
  engine_reader_release(&reader);
  return listed;
}

/* Records on a line; of those nearest to its end that are evaluated first, two match (n = 0 and 1), of all others a
 * tenth does. The list would have 3,200: too many for one query, worth it for more. */
TEST(a_filter_is_listed_when_it_comes_again) {
  enum { ROWS = 32000, DIM = 4, EVALUATED = 4 + 4 * (4 + 4), LAST = EVALUATED + 8 };
  static const char where[] = "{\"n\":{\"$lt\":10}}";
  static const lode_query_request filtered = {.select.where = {where, sizeof where - 1}};
  fixture k = {.no_background = true};
  fixture_answer *a = malloc(sizeof *a);
  float *v = calloc((size_t)ROWS * DIM, sizeof *v), end[DIM] = {0};
  fixture_limits(1000, 800);
  fixture_open(&k, test_folder(), LODE_L2, DIM);
  for (size_t i = 0; i < ROWS; i++) { /* 0 and 1, then 10 and on, then 2 to 9, then the rest */
    size_t place = i < 2 ? i : i < 10 ? i + EVALUATED - 2 : i < LAST ? i - 8 : i;
    v[i * DIM] = (float)place;
  }
  fixture_add_vectors(&k, v, ROWS);
  fixture_optimize(&k);
  fixture_query(&k, end, 4, NULL, NULL, a); /* the snapshot is there from now on */
  for (int use = 0; use < 3; use++) {
    fixture_query(&k, end, 4, &filtered, NULL, a);
    CHECK(a->n == 4);
    for (size_t i = 0; i < a->n; i++) CHECKF((size_t)a->id[i] == i, "place %zu: %zu", i, (size_t)a->id[i]);
    CHECKF(is_listed(&k, where) == (use > 0), "use %d", use);
  }
  free(a);
  free(v);
  fixture_close(&k);
}

/* An index proposes arrays that hold a value for a filter that wants the value itself: none may come back, none be
 * missing. */
TEST(the_filter_decides_what_an_index_proposes) {
  fixture k = {.no_background = true};
  const lode_query_request both = {.select.where = STR_LIT("{\"n\":{\"$gt\":6,\"$lt\":9}}")};
  oracle_filter seven = {0};
  fixture_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  fixture_limits(300, 200);
  fixture_open(&k, test_folder(), LODE_L2, 8);
  oracle_leaf_filter(&seven, 0, ORACLE_EQ, oracle_int(7));
  fixture_add(&k, 1500);
  for (size_t i = 0; i < 200; i++) { /* the nearest to record 0 and others: arrays */
    oracle_record r = {.has_meta = true};
    r.id_len = (size_t)snprintf(r.id, sizeof r.id, "%zu", i);
    r.meta = (oracle_meta){1, {{.array = true, .n = 2, .v = {(uint16_t)oracle_int(7), (uint16_t)oracle_int(8)}}}};
    fixture_write(&k, ORACLE_UPDATE, &r, 1);
  }
  fixture_optimize(&k);
  for (int round = 0; round < 4; round++) {
    fixture_query(&k, k.v[0], 20, NULL, &seven, a); /* 13 are left of 15 */
    CHECK(a->n == 13 && fixture_recall(&k, k.v[0], 20, &seven, a) == 1);
    fixture_query(&k, k.v[0], 10, &both, NULL, a);
    CHECKF(a->n == 10, "%zu", a->n);
    for (size_t i = 0; i < a->n; i++) CHECK(a->id[i] >= 200 && (a->id[i] % 100 == 7 || a->id[i] % 100 == 8));
  }
  oracle_filter_release(&seven);
  free(a);
  fixture_close(&k);
}

/* A segment shows its k nearest. Where the filter rejects some of them, what comes next may be in that segment, too,
 * and farther matches from elsewhere do not take its place. */
TEST(matches_that_a_segment_did_not_show_are_asked_for) {
  const lode_query_request seven = {.select.where = STR_LIT("{\"n\":7}")};
  fixture_answer *a = malloc(sizeof *a);
  CHECK(a != NULL);
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    fixture k = {.no_background = true};
    float end[2] = {metric == LODE_L2 ? 0 : 1, 0};
    test_srand(test_seed());
    fixture_limits(100, 2000);
    fixture_open(&k, test_folder(), metric, 2);
    for (size_t i = 0; i < 400; i++) { /* 5 arrays, 20 that match, 275 others; outside of the segment 100 that match */
      float x = metric == LODE_L2 ? (float)i : 1000 - (float)i, v[2] = {x, metric == LODE_COSINE ? (float)i * 9 : 0};
      char id[16];
      lode_error err;
      lode_str meta = str_of(i < 5 ? "{\"n\":[7,8]}" : i < 25 || i >= 300 ? "{\"n\":7}" : "{\"n\":3}");
      lode_record r = {.vector = v, .dimension = 2, .metadata = meta};
      r.id = (lode_str){id, (size_t)snprintf(id, sizeof id, "%zu", i)};
      OK(lode_add(k.c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
      if (i == 299) fixture_optimize(&k);
    }
    CHECK(fixture_stats(&k).segments == 1 && fixture_stats(&k).tail == 100);
    fixture_query(&k, end, 10, NULL, NULL, a); /* the snapshot is there from now on */
    for (int use = 0; use < 4; use++) {
      fixture_query(&k, end, 10, &seven, NULL, a);
      CHECKF(a->n == 10, "metric %d, use %d: %zu", metric, use, a->n);
      for (size_t i = 0; i < a->n; i++)
        CHECKF((size_t)a->id[i] == 5 + i, "metric %d, use %d, place %zu: %zu", metric, use, i, (size_t)a->id[i]);
    }
    fixture_close(&k);
  }
  free(a);
}

TEST(k_beyond_everything_gives_all) {
  fixture k = {.no_background = true};
  fixture_answer *a = malloc(sizeof *a);
  float q[4];
  test_srand(test_seed());
  fixture_limits(50, 300);
  fixture_open(&k, test_folder(), LODE_L2, 4);
  fixture_add(&k, 700);
  fixture_optimize(&k);
  fixture_delete(&k, 3, 50);
  fixture_random(&k, q);
  static const size_t wanted[] = {1, 10, 100, 649, 650, 651, 4000};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    fixture_query(&k, q, wanted[i], NULL, NULL, a);
    CHECK(fixture_recall(&k, q, wanted[i], NULL, a) > 0.9);
  }
  free(a);
  fixture_close(&k);
}

/* Equal vectors, zero vectors, one dimension. */
TEST_SLOW(equal_zero_and_one_dimensional_vectors_are_found, 120) {
  static const lode_metric metrics[] = {LODE_L2, LODE_COSINE, LODE_IP};
  fixture_answer *a = malloc(sizeof *a);
  fixture_limits(100, 80);
  for (size_t m = 0; m < 3; m++) {
    for (int kind = 0; kind < 3; kind++) {
      fixture k = {.no_background = true};
      uint32_t dim = kind == 0 ? 1 : 6;
      float v[500 * 6];
      for (size_t i = 0; i < 500 * dim; i++)
        v[i] = kind == 0 ? (float)(i % 37) - 18 : kind == 1 ? 0.5f : i / dim % 3 ? 1 : 0;
      fixture_open(&k, test_folder(), metrics[m], dim);
      fixture_add_vectors(&k, v, 500);
      fixture_optimize(&k);
      CHECK(fixture_stats(&k).segments >= 1);
      float q[6] = {1, 2, 0.5f, 1, 0, 1}, zero[6] = {0};
      fixture_query(&k, q, 20, NULL, NULL, a);
      fixture_recall(&k, q, 20, NULL, a);
      fixture_query(&k, zero, 500, NULL, NULL, a);
      fixture_recall(&k, zero, 500, NULL, a);
      fixture_close(&k);
    }
  }
  free(a);
}

/* A collection that does not fit into memory: pages go and come. */
TEST_SLOW(an_index_larger_than_memory_answers_well, 120) {
  fixture k = {.no_background = true, .memory_bytes = 16 << 20};
  test_srand(test_seed());
  fixture_limits(1000, 800);
  fixture_open(&k, test_folder(), LODE_L2, 1024);
  fixture_add(&k, 2500);
  fixture_optimize(&k);
  fixture_add(&k, 900);
  fixture_reopen(&k);
  check_recall(&k, NULL, 0.95);
  fixture_close(&k);
}

TEST(wrong_efforts_are_refused) {
  fixture k = {.no_background = true};
  lode_error err;
  lode_result *r;
  float q[4] = {1, 2, 3, 4};
  fixture_open(&k, test_folder(), LODE_L2, 4);
  lode_query_request request = {.vectors = q, .dimension = 4, .n = 1, .k = 1, .target_recall = 1.5};
  FAILS(LODE_INVALID, lode_query(k.c, &request, &r, &err));
  request.target_recall = NAN;
  FAILS(LODE_INVALID, lode_query(k.c, &request, &r, &err));
  request.target_recall = 0;
  request.effort = LODE_MAX_EFFORT + 1;
  FAILS(LODE_INVALID, lode_query(k.c, &request, &r, &err));
  fixture_close(&k);
}

TEST(a_dropped_collection_takes_its_files_along) {
  fixture k = {.no_background = true};
  lode_error err;
  char *paths[4];
  fixture_limits(100, 300);
  fixture_open(&k, test_folder(), LODE_L2, 4);
  fixture_add(&k, 200);
  fixture_optimize(&k);
  CHECK(fixture_files(k.folder, ".seg", paths, 4) == 1);
  free(paths[0]);
  OK(lode_collection_drop(k.store, (lode_str){"c", 1}, &err));
  fixture_optimize(&k);
  CHECK(fixture_files(k.folder, "", paths, 4) == 0);
  CHECK(fixture_stats(&k).segments == 0);
  fixture_close(&k);
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

/* A figure of the explanation of a query for the ten nearest. */
static uint64_t explained(fixture *k, const float *q, const char *name) {
  lode_error err;
  lode_result *rows;
  char key[32];
  lode_query_request r = {.vectors = q, .dimension = k->oracle.dim, .n = 1, .k = 10, .explain = 1};
  OK(lode_query(k->c, &r, &rows, &err));
  lode_str json = lode_result_explain(rows);
  char *text = strndup(json.data, json.len);
  CHECK(text != NULL);
  snprintf(key, sizeof key, "\"%s\":", name);
  const char *at = strstr(text, key);
  CHECKF(at != NULL, "no %s in %s", key, text);
  uint64_t figure = strtoull(at + strlen(key), NULL, 10);
  free(text);
  lode_result_free(rows);
  return figure;
}

TEST_SLOW(a_query_computes_and_reads_little, 120) {
  static os_calls table;
  fixture k = {.no_background = true};
  fixture_answer *a = malloc(sizeof *a);
  float q[32];
  test_srand(7); /* the same data always */
  fixture_limits(4096, 2000);
  fixture_open(&k, test_folder(), LODE_L2, 32);
  fixture_add(&k, 12000);
  fixture_optimize(&k);
  CHECK(fixture_stats(&k).segments == 1);
  fixture_random(&k, q);
  fixture_query(&k, q, 10, NULL, NULL, a);
  uint64_t distances = 0, vectors = 0;
  for (int i = 0; i < 50; i++) {
    fixture_random(&k, q);
    distances += explained(&k, q, "distances");
    vectors += explained(&k, q, "reranked");
  }
  CHECKF(distances > 0 && distances / 50 < 12000 / 5, "%llu distances of 50 queries", (unsigned long long)distances);
  CHECKF(vectors >= 500 && vectors <= 50 * 13, "%llu vectors read by 50 queries", (unsigned long long)vectors);
  /* the first query of a new handle reads what it needs: not a tenth of the files */
  table = os_real;
  real_pread = table.pread;
  table.pread = counting_pread;
  os_api = &table;
  fixture_reopen(&k);
  bytes_read = reads = 0;
  fixture_query(&k, q, 10, NULL, NULL, a);
  lode_stats s = fixture_stats(&k);
  CHECKF(bytes_read < s.segment_bytes * 6 / 10, "%llu bytes of %llu read by a first query",
         (unsigned long long)bytes_read, (unsigned long long)s.segment_bytes);
  bytes_read = reads = 0;
  for (int i = 0; i < 50; i++) fixture_query(&k, q, 10, NULL, NULL, a);
  CHECKF(bytes_read / 50 < 16384 + 20 * 32 * 4, "%llu bytes read by a query that was asked before",
         (unsigned long long)bytes_read / 50);
  os_api = &os_real;
  free(a);
  fixture_close(&k);
}

/* Vectors of a second segment are read only if they may be nearer than what the first one had. */
TEST_SLOW(several_segments_read_hardly_more_than_one, 120) {
  fixture k = {.no_background = true};
  float q[32];
  uint64_t vectors = 0;
  test_srand(7); /* the same data always */
  fixture_limits(1000, 800);
  fixture_open(&k, test_folder(), LODE_L2, 32);
  fixture_add(&k, 9000);
  fixture_optimize(&k);
  fixture_add(&k, 2000);
  fixture_optimize(&k);
  CHECK(fixture_stats(&k).segments == 2);
  for (int i = 0; i < 50; i++) {
    fixture_random(&k, q);
    vectors += explained(&k, q, "reranked");
  }
  CHECKF(vectors >= 500 && vectors <= 50 * 19, "%llu vectors measured by 50 queries", (unsigned long long)vectors);
  fixture_close(&k);
}

/* What is left of the budget is lent to vectors that were read: a query that is asked again reads none. */
TEST_SLOW(vectors_stay_in_memory_where_there_is_room, 120) {
  fixture k = {.no_background = true};
  float q[32];
  test_srand(test_seed());
  fixture_limits(4096, 2000);
  fixture_open(&k, test_folder(), LODE_L2, 32);
  fixture_add(&k, 9000);
  fixture_optimize(&k);
  fixture_random(&k, q);
  CHECK(explained(&k, q, "vectors_read") >= 10);
  for (int i = 0; i < 70; i++) (void)explained(&k, q, "hops"); /* now and then it is seen how much room there is */
  CHECK(explained(&k, q, "vectors_read") == 0 && explained(&k, q, "reranked") >= 10);
  fixture_close(&k);
}

/* Exact when small: all codes are scanned, few vectors are read, and answers are those of the oracle to the bit, also
 * where many are equally far. */
TEST(a_small_collection_is_searched_exactly) {
  test_srand(test_seed());
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    fixture k = {.no_background = true};
    float q[24];
    fixture_limits(300, 200);
    segments_limits.exact_rows = 20000;
    fixture_open(&k, test_folder(), metric, 24);
    fixture_add(&k, 1400);
    for (int i = 0; i < 40; i++) fixture_add_vectors(&k, k.v[1399], 1);
    fixture_optimize(&k);
    fixture_add(&k, 100);
    fixture_delete(&k, 50, 100);
    CHECK(fixture_stats(&k).segments >= 1);
    uint64_t read = 0;
    for (int i = 0; i < 30; i++) {
      fixture_random(&k, q);
      fixture_check_query_for(&k, i % 5 ? q : k.v[1399], 1, (size_t)(i % 3 ? 10 : 25), NULL);
      read += explained(&k, q, "reranked");
      CHECK(explained(&k, q, "hops") == 0 && explained(&k, q, "distances") >= 1300);
    }
    CHECKF(read <= 30 * 60, "%llu vectors read by 30 queries", (unsigned long long)read);
    fixture_close(&k);
  }
}

/* Built by one thread or by several, with whatever instructions: the same answers to the bit. */
TEST_SLOW(threads_and_kernels_do_not_matter, 180) {
  static const char *const kernels[] = {"portable", "avx2", "avx512", "neon", NULL};
  fixture_answer *a = malloc(sizeof *a), *first = malloc(20 * sizeof *first);
  float *queries = malloc(20 * 24 * sizeof *queries), *v = malloc(1500 * 24 * sizeof *v);
  fixture shape = {.oracle.dim = 24};
  bool have = false;
  test_srand(test_seed());
  for (size_t i = 0; i < 20; i++) fixture_random(&shape, queries + i * 24);
  for (size_t i = 0; i < 1500; i++) fixture_random(&shape, v + i * 24);
  fixture_limits(500, 300);
  for (int run = 0; run < 6; run++) {
    fixture k = {.no_background = true};
    const char *name = run < 4 ? kernels[run] : NULL;
    if (name && (!kernel_use(name) || !quant_use(name))) continue;
    if (!name) (void)(kernel_use(NULL) && quant_use(NULL));
    segments_limits.threads = run == 4 ? 3 : 1;
    fixture_open(&k, test_folder(), LODE_COSINE, 24);
    fixture_add_vectors(&k, v, 1500);
    fixture_optimize(&k);
    for (size_t i = 0; i < 20; i++) {
      fixture_query(&k, queries + i * 24, 10, NULL, NULL, a);
      if (!have) first[i] = *a;
      CHECKF(a->n == first[i].n && memcmp(a->id, first[i].id, a->n * sizeof *a->id) == 0 &&
                 memcmp(a->distance, first[i].distance, a->n * sizeof *a->distance) == 0,
             "run %d answers otherwise", run);
    }
    have = true;
    fixture_close(&k);
  }
  free(a);
  free(first);
  free(queries);
  free(v);
}

/* ---- What must not matter ---- */

/* Answers of two ways are as good as each other: distances rank by rank, as far as recall goes. */
static void same_within_recall(const fixture_answer *a, const fixture_answer *b, const char *what) {
  size_t same = 0;
  CHECKF(a->n == b->n, "%zu rows and %zu: %s", a->n, b->n, what);
  for (size_t i = 0; i < a->n; i++) same += a->distance[i] == b->distance[i];
  CHECKF(same * 10 >= a->n * 5, "%zu of %zu ranks are the same: %s", same, a->n, what);
}

TEST_SLOW(equivalent_queries_have_equivalent_answers, 180) {
  fixture k = {.no_background = true};
  fixture_answer *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  lode_query_request exact = {.exact = true};
  float q[16];
  lode_error err;
  test_srand(test_seed());
  fixture_limits(300, 200);
  fixture_open(&k, test_folder(), LODE_L2, 16);
  fixture_add(&k, 250);
  fixture_random(&k, q);
  fixture_query(&k, q, 10, NULL, NULL, a); /* all in the tail: the same as exact, to the bit */
  fixture_query(&k, q, 10, &exact, NULL, b);
  CHECK(memcmp(a->id, b->id, a->n * sizeof *a->id) == 0 &&
        memcmp(a->distance, b->distance, a->n * sizeof *a->distance) == 0);
  for (int i = 0; i < 4; i++) {
    fixture_add(&k, 400);
    fixture_optimize(&k);
  }
  for (int i = 0; i < 10; i++) {
    fixture_random(&k, q);
    fixture_query(&k, q, 10, NULL, NULL, a);
    fixture_query(&k, q, 10, &exact, NULL, b);
    same_within_recall(a, b, "indexed and exact");
    fixture_query(&k, q, 10, &(lode_query_request){.select.where = STR_LIT("{}")}, NULL, b);
    same_within_recall(a, b, "with a filter that is true");
    fixture_query(&k, q, 20, NULL, NULL, b);
    b->n = b->n < 10 ? b->n : 10;
    same_within_recall(a, b, "the ten of twenty");
  }
  /* before a merge, after it, after reopening */
  fixture_query(&k, q, 10, NULL, NULL, a);
  segments_limits.tail_rows = 1;
  fixture_optimize(&k);
  fixture_query(&k, q, 10, NULL, NULL, b);
  same_within_recall(a, b, "before and after a merge");
  fixture_reopen(&k);
  fixture_query(&k, q, 10, NULL, NULL, a);
  CHECK(memcmp(a->id, b->id, a->n * sizeof *a->id) == 0);
  /* without those of n = 3 by a filter, and after deleting it */
  fixture_query(&k, q, 10, &(lode_query_request){.select.where = STR_LIT("{\"n\":{\"$ne\":3}}")}, NULL, a);
  for (size_t i = 3; i < k.n; i += 100) fixture_delete_one(&k, i);
  fixture_query(&k, q, 10, NULL, NULL, b);
  same_within_recall(a, b, "not X, and X deleted");
  /* the index removed */
  char path[4400];
  snprintf(path, sizeof path, "%s/segments", k.folder);
  test_remove_tree(path);
  fixture_reopen(&k);
  fixture_query(&k, q, 10, NULL, NULL, a);
  fixture_query(&k, q, 10, &exact, NULL, b);
  CHECK(memcmp(a->id, b->id, a->n * sizeof *a->id) == 0);
  OK(lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  free(a);
  free(b);
  fixture_close(&k);
}

/* A server: the index is in memory before the first query. */
TEST(a_preloaded_index_is_not_read_by_the_first_query) {
  fixture k = {.no_background = true};
  lode_error err;
  fixture_answer *a = malloc(sizeof *a);
  test_srand(test_seed());
  fixture_limits(300, 200);
  fixture_open(&k, test_folder(), LODE_L2, 16);
  fixture_add(&k, 1000);
  fixture_optimize(&k);
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
  fixture_query(&k, k.v[0], 5, NULL, NULL, a);
  CHECK(a->id[0] == 0);
  CHECKF(reads < 40, "%llu reads", (unsigned long long)reads); /* vectors and records of the answer */
  os_api = &os_real;
  free(a);
  fixture_close(&k);
}

TEST(a_handle_that_met_a_contradiction_does_nothing_more) {
  fixture k = {.no_background = true};
  lode_error err;
  uint64_t n;
  fixture_open(&k, test_folder(), LODE_L2, 8);
  fixture_add(&k, 100);
  CHECK(store_db_broken(engine_store_of(k.store)->db, "what release builds do", &err) == LODE_INTERNAL);
  FAILS(LODE_INTERNAL, lode_count(k.c, &n, &err));
  CHECK(strstr(err.text, "open the store again"));
  FAILS(LODE_INTERNAL, lode_add(k.c, NULL, &(lode_record){.id = {"x", 1}}, 1, LODE_FAIL_EXISTING, NULL, &err));
  FAILS(LODE_INTERNAL, lode_optimize(k.store, (lode_progress){0}, &err));
  fixture_reopen(&k);
  OK(lode_count(k.c, &n, &err));
  CHECK(n == 100);
  fixture_close(&k);
}

static bool seldom(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return ++*(int *)ctx < 1000;
}

/* A builder that was killed after it published a segment leaves notes of dead vectors that no segment holds. */
static void optimize_with_notes(int notes) {
  enum { ROWS = 300, TAIL = 20 };
  fixture f = {.folder = test_folder(), .no_background = true};
  lode_error err;
  store_db *db;
  store_tx *tx;
  int64_t vid, keys[ROWS];
  bool more;
  int steps = 0;
  fixture_limits(TAIL, 1000);
  fixture_open(&f, f.folder, LODE_L2, 8);
  fixture_add(&f, ROWS);
  fixture_optimize(&f);
  fixture_add(&f, 2 * TAIL);
  fixture_optimize(&f); /* a small segment after a large one */
  OK(store_db_open(f.folder, &(lode_open_options){.no_background = true}, &db, &err));
  OK(store_tx_begin(db, STORE_TX_WRITE, &tx, &err));
  OK(store_vec_scan_keys(tx, 1, store_vec_before_first(1), &err));
  for (int i = 0; i < notes; i++) OK(store_vec_next_key(tx, &vid, &keys[i], &more, &err));
  for (int i = 0; i < notes; i++) OK(store_dead_add(tx, keys[i], keys[i], &err)); /* of records: no vector has these */
  OK(store_tx_commit(tx, &err));
  store_db_close(db);
  OK(lode_optimize(f.store, (lode_progress){seldom, &steps}, &err));
  fixture_check_query(&f, 10, NULL);
  fixture_check_query(&f, ROWS, NULL);
  fixture_close(&f);
}

TEST(notes_of_dead_vectors_are_no_tail) { optimize_with_notes(30); }
TEST(notes_of_dead_vectors_empty_no_segment) { optimize_with_notes(300); }
