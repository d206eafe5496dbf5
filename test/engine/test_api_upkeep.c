/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_upkeep.c - lode.h as its users meet it: maintenance, threads and forks, stores that move. */
#include "support/api_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Maintenance ---- */

static bool go_on(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)stop_at_once(ctx, phase, done, total);
  return true;
}

TEST(optimize_does_what_is_pending) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_stats stats;
  int calls = 0;
  OK(lode_compact(s, quiet, &err)); /* upkeep is the caller's here */
  add_three(c);
  OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("a"), .n_ids = 1}, NULL, &err));
  OK(lode_store_stats(s, &stats, &err));
  CHECK(stats.untexted > 0 && stats.unindexed > 0 && stats.unerased == 1);
  FAILS(LODE_CANCELLED, lode_optimize(s, (lode_progress){stop_at_once, &calls}, &err));
  CHECK(calls == 1);
  OK(lode_optimize(s, (lode_progress){go_on, &calls}, &err));
  CHECK(calls > 2);
  OK(lode_store_stats(s, &stats, &err));
  CHECK(stats.untexted == 0 && stats.unindexed == 0 && stats.unerased == 0 && stats.records == 2);
  OK(lode_compact(s, quiet, &err));
  CHECK(count(c) == 2);
  lode_collection_close(c);
  lode_close(s);
}

TEST(the_background_thread_does_it_by_itself) {
  lode_error err;
  lode_store *s = open_at(store_place(), (lode_open_options){0});
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("a"), .n_ids = 1}, NULL, &err));
  lode_stats stats;
  for (int i = 0;; i++) {
    OK(lode_collection_stats(c, &stats, &err));
    if (!stats.untexted && !stats.unindexed && !stats.unerased) break;
    CHECKF(i < 1000, "after 10 s: %llu untexted, %llu unindexed, %llu unerased", (unsigned long long)stats.untexted,
           (unsigned long long)stats.unindexed, (unsigned long long)stats.unerased);
    usleep(10000 * test_patience());
  }
  lode_collection_close(c);
  lode_close(s);
}

static void no_damage(void *ctx, const lode_damage *d) {
  (void)ctx;
  test_failed(__FILE__, __LINE__, "%s: %s", d->what, d->detail);
}

TEST(backup_restore_verify_and_salvage_keep_everything) {
  lode_error err;
  char file[4200], folder[4200], saved[4200];
  const char *base = test_folder();
  snprintf(file, sizeof file, "%s/backup", base);
  snprintf(folder, sizeof folder, "%s/restored", base);
  snprintf(saved, sizeof saved, "%s/saved", base);
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  OK(lode_verify(s, no_damage, NULL, quiet, &err));
  FAILS(LODE_INVALID, lode_backup(s, "", quiet, &err));
  OK(lode_backup(s, file, quiet, &err));
  FAILS(LODE_EXISTS, lode_backup(s, file, quiet, &err));
  FAILS(LODE_INVALID, lode_restore(file, NULL, quiet, &err));
  OK(lode_restore(file, folder, quiet, &err));
  FAILS(LODE_EXISTS, lode_restore(file, folder, quiet, &err));
  lode_collection_close(c);
  lode_close(s);
  s = open_at(folder, (lode_open_options){.read_only = true});
  OK(lode_collection_open(s, S("c"), NULL, &c, &err));
  CHECK(count(c) == 3);
  lode_collection_close(c);
  lode_close(s);
  lode_salvage_report report;
  FAILS(LODE_INVALID, lode_salvage(folder, "", no_damage, NULL, quiet, &report, &err));
  OK(lode_salvage(folder, saved, no_damage, NULL, quiet, &report, &err));
  CHECK(report.records == 3 && report.lost == 0 && report.damaged_pages == 0 && report.pages > 0);
  s = open_at(saved, (lode_open_options){.no_background = true});
  OK(lode_collection_open(s, S("c"), NULL, &c, &err));
  expect_ids(c, (lode_get_request){.select.where_document = S("{\"$contains\": \"apple\"}")}, "a");
  lode_collection_close(c);
  lode_close(s);
}

TEST(a_store_has_an_id_that_its_copies_share) {
  lode_error err;
  char file[4200], folder[4200];
  const char *base = test_folder(), *place = store_place();
  uint64_t id = 1, again = 2, other = 3;
  lode_store *s = open_at(place, (lode_open_options){.create = true, .no_background = true});
  lode_status st = lode_store_id(s, &id, &err);
  if (st == LODE_UNSUPPORTED) {
    CHECK(id == 0 && strstr(err.text, "address")); /* a cluster */
    lode_close(s);
    return;
  }
  OK(st);
  CHECK(id != 0);
  snprintf(file, sizeof file, "%s/backup", base);
  snprintf(folder, sizeof folder, "%s/restored", base);
  OK(lode_backup(s, file, quiet, &err));
  lode_close(s);
  s = open_at(place, (lode_open_options){.read_only = true});
  OK(lode_store_id(s, &again, &err));
  CHECK(again == id);
  lode_close(s);
  OK(lode_restore(file, folder, quiet, &err));
  s = open_at(folder, (lode_open_options){.read_only = true});
  OK(lode_store_id(s, &again, &err));
  CHECK(again == id);
  lode_close(s);
  s = open_at(test_folder(), (lode_open_options){.create = true, .no_background = true});
  OK(lode_store_id(s, &other, &err));
  CHECK(other != id);
  lode_close(s);
}

/* ---- Threads and processes ---- */

typedef struct crowd {
  lode_collection *c;
  atomic_bool stop;
} crowd;

/* Writes pairs in one transaction each; whoever reads must never see half a pair. */
static void *write_pairs(void *ctx) {
  crowd *w = ctx;
  lode_error err;
  for (int i = 0; i < 150; i++) {
    char left[24], right[24];
    snprintf(left, sizeof left, "l%d", i % 40);
    snprintf(right, sizeof right, "r%d", i % 40);
    float v[3] = {(float)i, 1, 0};
    lode_record pair[] = {{.id = str(left), .document = S("left"), .vector = v, .dimension = 3},
                          {.id = str(right), .document = S("right"), .vector = v, .dimension = 3}};
    OK(lode_upsert(w->c, NULL, pair, 2, NULL, &err));
    lode_str ids[] = {str(left), str(right)};
    if (i % 3 == 0) OK(lode_delete(w->c, NULL, &(lode_selection){.ids = ids, .n_ids = 2}, NULL, &err));
  }
  atomic_store(&w->stop, true);
  return NULL;
}

static void *query_pairs(void *ctx) {
  crowd *w = ctx;
  lode_error err;
  const float zero[3] = {0, 0, 0};
  while (!atomic_load(&w->stop)) {
    lode_result *r;
    OK(lode_query(w->c, &(lode_query_request){.vectors = zero, .dimension = 3, .n = 1, .k = 1000}, &r, &err));
    size_t n = lode_result_count(r), left = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
      const lode_row *row = lode_result_at(r, i);
      bool is_left = row->id.data[0] == 'l';
      left += is_left;
      sum += is_left ? row->distance : -row->distance;
    }
    CHECKF(left * 2 == n && sum == 0, "%zu rows, %zu left, %g", n, left, sum);
    lode_result_free(r);
    OK(lode_query(w->c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = &S("left right"), .n = 1, .k = 1000}, &r,
                  &err));
    CHECK(lode_result_count(r) % 2 == 0);
    lode_result_free(r);
  }
  return NULL;
}

TEST(queries_see_one_moment_while_others_write) {
  lode_error err;
  lode_store *s = open_at(store_place(), (lode_open_options){0});
  lode_txn *txn;
  OK(lode_begin(s, &txn, &err)); /* where there are none, a batch may be seen in part */
  lode_rollback(txn);
  crowd w = {.c = collection(s, "c", LODE_L2)};
  pthread_t writer, readers[2];
  CHECK(pthread_create(&writer, NULL, write_pairs, &w) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&readers[i], NULL, query_pairs, &w) == 0);
  CHECK(pthread_join(writer, NULL) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(readers[i], NULL) == 0);
  lode_collection_close(w.c);
  lode_close(s);
}

/* Under ASan without the store's thread: its allocator may be left locked in a child of many threads. */
TEST(a_forked_child_goes_on_with_the_handle) {
  lode_error err;
  lode_store *s = open_at(store_place(), (lode_open_options){.no_background = BUILD_ASAN});
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  lode_query_request q = {.vectors = b3, .dimension = 3, .n = 1, .k = 1};
  lode_result *r;
  OK(lode_query(c, &q, &r, &err)); /* something to inherit */
  lode_result_free(r);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    bool ok = lode_upsert(c, NULL, &(lode_record){.id = S("child"), .vector = b3, .dimension = 3}, 1, NULL, &err) ==
                  LODE_OK &&
              lode_query(c, &q, &r, &err) == LODE_OK && lode_result_count(r) == 1 &&
              eq(lode_result_at(r, 0)->id, "b") && lode_optimize(s, quiet, &err) == LODE_OK;
    lode_collection_close(c);
    lode_close(s);
    _exit(ok ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(count(c) == 4);
  lode_collection_close(c);
  lode_close(s);
}

/* Each process of the next test: its own record gets a vector, one gets none, one that was there is deleted, one
 * changed. */
enum { PROCESSES = 4, ROUNDS = 6 };

static void bring_vectors(const char *place, int who, int start) {
  lode_error err;
  char byte;
  lode_store *s = open_at(place, (lode_open_options){.no_background = true, .busy_ms = 60000});
  lode_collection *c = collection(s, "c", LODE_L2);
  CHECK(count(c) >= 1);
  CHECK(read(start, &byte, 1) == 0); /* until all are there */
  for (int i = 0; i < ROUNDS; i++) {
    char near[40], bare[40], gone[40], kept[40];
    snprintf(near, sizeof near, "v%d-%d", who, i);
    snprintf(bare, sizeof bare, "p%d-%d", who, i);
    snprintf(gone, sizeof gone, "gone%d-%d", who, i);
    snprintf(kept, sizeof kept, "kept%d-%d", who, i);
    lode_str gone_id = str(gone);
    float v[] = {(float)who, (float)i};
    lode_record bare_record = {.id = str(bare), .document = S("without")},
                near_record = {.id = str(near), .vector = v, .dimension = 2};
    bool first = (who + i) % 2;
    size_t n;
    OK(lode_add(c, NULL, first ? &near_record : &bare_record, 1, LODE_FAIL_EXISTING, NULL, &err));
    OK(lode_delete(c, NULL, &(lode_selection){.ids = &gone_id, .n_ids = 1}, &n, &err));
    CHECK(n == 1);
    OK(lode_update(
        c, NULL,
        &(lode_record){.id = str(kept), .document = S("changed"), .vector = i % 2 ? v : NULL, .dimension = 2 * (i % 2)},
        1, NULL, NULL, &err));
    OK(lode_add(c, NULL, first ? &bare_record : &near_record, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  lode_collection_close(c);
  lode_close(s);
}

/* The first vector fixes the dimension. Whatever that takes, nothing that others write at that moment is lost. */
TEST_SLOW(many_processes_bring_the_first_vector_at_once, 240) {
  lode_error err;
  const char *place = store_place();
  lode_store *s = open_at(place, (lode_open_options){.no_background = true});
  lode_collection *c = collection(s, "c", LODE_L2);
  pid_t children[PROCESSES];
  int start[2];
  for (int who = 0; who < PROCESSES; who++) {
    for (int i = 0; i < ROUNDS * 2; i++) {
      char id[40];
      snprintf(id, sizeof id, "%s%d-%d", i % 2 ? "gone" : "kept", who, i / 2);
      OK(lode_add(c, NULL, &(lode_record){.id = str(id), .document = S("as it was")}, 1, LODE_FAIL_EXISTING, NULL,
                  &err));
    }
  }
  CHECK(pipe(start) == 0);
  fflush(NULL);
  for (int who = 0; who < PROCESSES; who++) {
    children[who] = fork();
    CHECK(children[who] >= 0);
    if (children[who] == 0) {
      close(start[1]);
      bring_vectors(place, who, start[0]);
      _exit(0);
    }
  }
  close(start[1]);
  close(start[0]);
  for (int who = 0; who < PROCESSES; who++) {
    int status;
    CHECK(waitpid(children[who], &status, 0) == children[who] && status == 0);
  }
  CHECK(count(c) == PROCESSES * ROUNDS * 3);
  lode_result *r;
  OK(lode_get(c, &(lode_get_request){.select.where_document = S("{\"$contains\": \"changed\"}")}, &r, &err));
  CHECK(lode_result_count(r) == PROCESSES * ROUNDS);
  lode_result_free(r);
  OK(lode_query(c, &(lode_query_request){.vectors = (float[]){0, 0}, .dimension = 2, .n = 1, .k = 1000}, &r, &err));
  CHECKF(lode_result_count(r) == PROCESSES * ROUNDS * 3 / 2, "%zu with vectors", lode_result_count(r));
  lode_result_free(r);
  OK(lode_get(c, &(lode_get_request){.pending_only = true}, &r, &err));
  CHECKF(lode_result_count(r) == PROCESSES * ROUNDS * 3 / 2, "%zu without", lode_result_count(r));
  lode_result_free(r);
  OK(lode_verify(s, no_damage, NULL, quiet, &err));
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Stores that move ---- */

static void add_vectors(lode_collection *c, int from, int to, float x) {
  lode_error err;
  for (int i = from; i < to; i++) {
    char id[16];
    float v[] = {x, (float)i};
    snprintf(id, sizeof id, "r%d", i);
    OK(lode_add(c, NULL, &(lode_record){.id = str(id), .vector = v, .dimension = 2}, 1, LODE_FAIL_EXISTING, NULL,
                &err));
  }
}

static double nearest_distance(lode_collection *c, const char *id) {
  lode_error err;
  lode_result *r;
  float q[] = {7, 15};
  OK(lode_query(c, &(lode_query_request){.vectors = q, .dimension = 2, .n = 1, .k = 1}, &r, &err));
  CHECKF(strcmp(ids_of(r), id) == 0, "found %s instead of %s", ids_of(r), id);
  double distance = lode_result_at(r, 0)->distance;
  lode_result_free(r);
  return distance;
}

/* Both went on from one backup, so the same keys mean other vectors: nothing cached of the old one may answer for the
 * new. */
TEST(a_store_replaced_by_its_own_older_backup_answers_for_itself) {
  for (int more = 0; more <= 5; more += 5) {
    lode_error err;
    char folder[4096], other[4096], file[4096], from[4200], to[4200];
    snprintf(folder, sizeof folder, "%s/store%d", test_folder(), more);
    snprintf(other, sizeof other, "%s/other%d", test_folder(), more);
    snprintf(file, sizeof file, "%s/backup%d", test_folder(), more);
    snprintf(from, sizeof from, "%s/lode.db", other);
    snprintf(to, sizeof to, "%s/lode.db", folder);
    lode_store *store = open_at(folder, (lode_open_options){.no_background = true});
    lode_collection *c = collection(store, "c", LODE_L2);
    add_vectors(c, 0, 10, 0);
    OK(lode_backup(store, file, quiet, &err));
    add_vectors(c, 10, 20, 0);
    CHECK(nearest_distance(c, "r15") == 49);
    OK(lode_restore(file, other, quiet, &err));
    lode_store *second = open_at(other, (lode_open_options){.no_background = true});
    lode_collection *d = collection(second, "c", LODE_L2);
    add_vectors(d, 10, 20 + more, 7);
    lode_collection_close(d);
    lode_close(second);
    CHECK(rename(from, to) == 0);
    CHECK(nearest_distance(c, "r15") == 0);
    lode_collection_close(c);
    lode_close(store);
  }
}

TEST(a_store_stays_where_it_was_opened) {
  CHECK(chdir(test_folder()) == 0);
  lode_store *store = open_at("here", (lode_open_options){.no_background = true});
  lode_collection *c = collection(store, "c", LODE_L2);
  CHECK(chdir("/") == 0);
  add_three(c);
  CHECK(count(c) == 3);
  lode_collection_close(c);
  lode_close(store);
}
