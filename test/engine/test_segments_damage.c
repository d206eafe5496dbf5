/* SPDX-License-Identifier: Apache-2.0 */
/* test_segments_damage.c - files of the vector index that are flipped, cut, emptied, swapped, removed or forged,
 * builders that are killed, a disk that is full: answers stay complete and right, and the index comes back. */
#include "support/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/segment_forge.h"
#include "support/test.h"

enum { ROWS = 600, DIM = 8 };

/* Two segments and a tail, some dead. */
static void make(fixture *k) {
  fixture_limits(200, 150);
  fixture_open(k, test_folder(), LODE_L2, DIM);
  fixture_add(k, ROWS);
  fixture_optimize(k);
  fixture_delete(k, 10, 20);
  fixture_update(k, 300);
  fixture_add(k, 50);
}

static void check_answers(fixture *k, double floor, const char *what) {
  oracle_filter where = {0};
  double mean = fixture_mean_recall(k, 4, 10, NULL, NULL, NULL);
  CHECKF(mean >= floor, "recall %.3f after %s", mean, what);
  oracle_leaf_filter(&where, 0, ORACLE_LT, oracle_int(30));
  mean = fixture_mean_recall(k, 2, 10, NULL, &where, NULL);
  oracle_filter_release(&where);
  CHECKF(mean >= floor, "recall %.3f of a filter after %s", mean, what);
  lode_query_request exact = {.exact = true};
  CHECKF(fixture_mean_recall(k, 2, 10, &exact, NULL, NULL) == 1, "exact answers after %s", what);
}

/* One that was not set aside, if there is one. */
static char *only_file(fixture *k) {
  char *paths[64];
  size_t n = fixture_files(k->folder, ".seg", paths, 64), at = 0;
  CHECK(n >= 1);
  while (at + 1 < n && strstr(paths[at], ".quarantine-")) at++;
  for (size_t i = 0; i < n; i++)
    if (i != at) free(paths[i]);
  return paths[at];
}

/* Optimizing sets damaged files aside, leaves none without a row, and verify is content. */
static void check_healed(fixture *k, bool aside, const char *what) {
  lode_error err;
  char *paths[64];
  fixture_optimize(k);
  lode_stats s = fixture_stats(k);
  CHECKF(s.segments >= 1 && s.tail < 200, "%llu segments after %s", (unsigned long long)s.segments, what);
  CHECKF(!aside || s.quarantined >= 1, "nothing was set aside after %s", what);
  size_t n = fixture_files(k->folder, ".seg", paths, 64), files = 0;
  for (size_t i = 0; i < n; i++) {
    files += strstr(paths[i], ".quarantine-") == NULL;
    free(paths[i]);
  }
  CHECKF(files == s.segments, "%zu files, %llu segments after %s", files, (unsigned long long)s.segments, what);
  n = fixture_files(k->folder, ".tmp", paths, 64);
  CHECKF(n == 0, "%zu temporary files after %s", n, what);
  lode_status st = lode_verify(k->store, NULL, NULL, (lode_progress){0}, &err);
  CHECKF(st == LODE_OK, "verify after %s: %s", what, err.text);
  check_answers(k, 0.9, what);
}

TEST_SLOW(any_byte_may_be_flipped, 300) {
  fixture k = {.no_background = true};
  size_t len;
  char what[64];
  test_srand(test_seed());
  make(&k);
  char *path = only_file(&k), *bytes = test_read_file(path, &len);
  size_t tries = test_full() ? len : 100;
  for (size_t i = 0; i < tries; i++) {
    size_t at = test_full() ? i : test_below(len);
    char flip = (char)(1 << test_below(8));
    bytes[at] ^= flip;
    test_write_file(path, bytes, len);
    fixture_reopen(&k);
    snprintf(what, sizeof what, "a flip of byte %zu", at);
    check_answers(&k, 0.9, what);
    bytes[at] ^= flip;
    test_write_file(path, bytes, len);
  }
  for (size_t at = 5; at < len; at += len / 5) { /* header, vectors, codes, links, checksums */
    bytes[at] ^= 64;
    test_write_file(path, bytes, len);
    fixture_reopen(&k);
    snprintf(what, sizeof what, "a flip of byte %zu", at);
    check_healed(&k, true, what);
    free(path);
    free(bytes);
    path = only_file(&k);
    bytes = test_read_file(path, &len);
  }
  free(path);
  free(bytes);
  fixture_close(&k);
}

static void spoil(fixture *k, int how, const char *path, const char *other) {
  size_t len, other_len;
  char *bytes = test_read_file(path, &len);
  char command[4500];
  switch (how) {
    case 0: test_write_file(path, bytes, len / 2); break;
    case 1: test_write_file(path, bytes, 0); break;
    case 2: CHECK(unlink(path) == 0); break;
    case 3: test_write_file(path, bytes, len - 1); break;
    case 4: {
      char *theirs = test_read_file(other, &other_len);
      test_write_file(path, theirs, other_len);
      free(theirs);
      break;
    }
    case 5: memset(bytes + len / 3, 0, len / 3), test_write_file(path, bytes, len); break;
    case 6:
      snprintf(command, sizeof command, "%s/segments", k->folder);
      test_remove_tree(command);
      break;
    default: {
      char *longer = calloc(1, len + 4096);
      memcpy(longer, bytes, len);
      test_write_file(path, longer, len + 4096);
      free(longer);
    }
  }
  free(bytes);
}

TEST_SLOW(files_cut_emptied_swapped_or_removed, 300) {
  static const char *const names[] = {
      "a cut to half",   "an emptied file",  "a removed file", "a cut by a byte", "another collection's file",
      "a zeroed middle", "a removed folder", "a longer file"};
  fixture other = {.no_background = true};
  test_srand(test_seed());
  make(&other);
  char *theirs = only_file(&other);
  for (int how = 0; how < 8; how++) {
    for (int open = 0; open < 2; open++) {
      fixture k = {.no_background = true};
      make(&k);
      char *path = only_file(&k);
      if (open)
        check_answers(&k, 0.9, "nothing"); /* the file is open, and partly in memory */
      else
        fixture_reopen(&k);
      spoil(&k, how, path, theirs);
      for (int i = 0; i < 3; i++) check_answers(&k, 0.9, names[how]);
      fixture_reopen(&k);
      check_answers(&k, 0.9, names[how]);
      check_healed(&k, how != 2 && how != 6, names[how]);
      free(path);
      fixture_close(&k);
    }
  }
  free(theirs);
  fixture_close(&other);
}

/* The manifest's sum binds a file to its moment: one that was made before, under the name of the newest, is damage. */
TEST_SLOW(an_older_file_under_the_right_name_is_damage, 120) {
  fixture k = {.no_background = true};
  size_t len;
  test_srand(test_seed());
  make(&k);
  char *path = only_file(&k), *older = test_read_file(path, &len);
  free(path);
  fixture_delete(&k, 100, 400);
  lode_error err = {0};
  OK(lode_compact(k.store, (lode_progress){0}, &err));
  fixture_optimize(&k);
  path = only_file(&k);
  fixture_reopen(&k);
  test_write_file(path, older, len);
  check_answers(&k, 0.9, "an older file");
  fixture_reopen(&k);
  check_answers(&k, 0.9, "an older file");
  fixture_add(&k, ROWS);
  check_healed(&k, true, "an older file");
  free(path);
  free(older);
  fixture_close(&k);
}

/* One page of it is of an older file, at the same place: its checksum is that of another id. */
TEST_SLOW(an_older_page_in_a_file_is_damage, 300) {
  enum { SEG_PAGE = 4096 };
  fixture k = {.no_background = true};
  size_t older_len, len;
  lode_error err = {0};
  test_srand(test_seed());
  make(&k);
  char *path = only_file(&k), *older = test_read_file(path, &older_len);
  free(path);
  fixture_delete(&k, 100, 400);
  OK(lode_compact(k.store, (lode_progress){0}, &err));
  fixture_add(&k, ROWS);
  fixture_optimize(&k);
  path = only_file(&k);
  char *bytes = test_read_file(path, &len), *copy = malloc(len);
  size_t tried = 0;
  for (size_t at = 0; at + SEG_PAGE <= len && at + SEG_PAGE <= older_len; at += SEG_PAGE) {
    if (memcmp(bytes + at, older + at, SEG_PAGE) == 0) continue;
    memcpy(copy, bytes, len);
    memcpy(copy + at, older + at, SEG_PAGE);
    test_write_file(path, copy, len);
    fixture_reopen(&k);
    check_answers(&k, 0.9, "an older page");
    FAILS(LODE_CORRUPT, lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
    tried++;
  }
  CHECKF(tried > 3, "%zu pages", tried);
  free(bytes);
  free(copy);
  free(path);
  free(older);
  fixture_close(&k);
}

/* ---- While queries run ---- */

typedef struct crowd {
  fixture *k;
  atomic_bool stop;
  atomic_uint rounds;
} crowd;

static void *ask_on(void *ctx) {
  crowd *c = ctx;
  const float *q = c->k->v[5]; /* of a record that stays */
  fixture_answer *a = malloc(sizeof *a);
  while (!atomic_load(&c->stop)) {
    fixture_query(c->k, q, 10, NULL, NULL, a);
    CHECK(a->n == 10 && a->id[0] == 5);
    CHECK(fixture_recall(c->k, q, 10, NULL, a) >= 0.6);
    atomic_fetch_add(&c->rounds, 1);
  }
  free(a);
  return NULL;
}

TEST_SLOW(files_cut_while_queries_run, 120) {
  fixture k = {0}; /* with its background threads */
  pthread_t threads[2];
  crowd c = {.k = &k};
  fixture_limits(200, 150);
  test_srand(test_seed());
  fixture_open(&k, test_folder(), LODE_L2, DIM);
  fixture_add(&k, ROWS);
  fixture_wait_built(&k);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, ask_on, &c) == 0);
  for (int how = 0; how < 7; how++) {
    char *path = only_file(&k);
    unsigned before = atomic_load(&c.rounds);
    if (!strstr(path, ".quarantine-")) spoil(&k, how == 4 ? 0 : how, path, NULL);
    free(path);
    while (atomic_load(&c.rounds) < before + 10) usleep(1000);
    for (unsigned i = 0; i < 3000 * test_patience(); i++) {
      lode_stats s = fixture_stats(&k);
      char *paths[64];
      size_t n = fixture_files(k.folder, ".seg", paths, 64), files = 0;
      for (size_t j = 0; j < n; j++) {
        files += strstr(paths[j], ".quarantine-") == NULL;
        free(paths[j]);
      }
      if (s.segments >= 1 && s.tail < 200 && s.building == 0 && files >= 1) break;
      usleep(10000);
    }
  }
  atomic_store(&c.stop, true);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  check_healed(&k, false, "files cut while queries ran"); /* what was set aside went with the folder */
  fixture_close(&k);
}

/* A process that has too many files open knows nothing about the one that it could not open. */
static int open_too_many(int folder, const char *path, int flags, unsigned mode) {
  if (!strstr(path, ".seg")) return os_real.open_below(folder, path, flags, mode);
  errno = EMFILE;
  return -1;
}

TEST(a_file_that_cannot_be_opened_for_lack_of_descriptors_is_not_damaged) {
  fixture k = {.no_background = true};
  os_calls table = os_real;
  test_srand(test_seed());
  make(&k);
  char *path = only_file(&k);
  fixture_reopen(&k);
  table.open_below = open_too_many;
  os_api = &table;
  check_answers(&k, 1, "too many open files");
  fixture_optimize(&k);
  os_api = &os_real;
  CHECK(fixture_stats(&k).damaged_segments == 0 && fixture_stats(&k).quarantined == 0);
  fixture_optimize(&k);
  char *same = only_file(&k);
  CHECK(strcmp(path, same) == 0 && fixture_stats(&k).quarantined == 0);
  free(path);
  free(same);
  fixture_close(&k);
}

/* A read-only handle answers, reports, and touches nothing. */
TEST(a_read_only_handle_reports_damage_and_repairs_nothing) {
  fixture k = {.no_background = true};
  lode_error err;
  size_t len, after;
  char *paths[8];
  test_srand(test_seed());
  make(&k);
  char *path = only_file(&k), *bytes = test_read_file(path, &len);
  bytes[len / 2] ^= 1;
  bytes[5] ^= 1;
  test_write_file(path, bytes, len);
  lode_collection_close(k.c);
  lode_close(k.store);
  lode_open_options o = {.read_only = true};
  OK(lode_open(k.folder, &o, &k.store, &err));
  OK(lode_collection_open(k.store, (lode_str){"c", 1}, NULL, &k.c, &err));
  check_answers(&k, 1, "a flip, seen by a reader");
  CHECKF(fixture_stats(&k).damaged_segments == 1 && fixture_stats(&k).quarantined == 0,
         "%llu damaged, %llu set aside, %llu", (unsigned long long)fixture_stats(&k).damaged_segments,
         (unsigned long long)fixture_stats(&k).quarantined, (unsigned long long)fixture_stats(&k).segments);
  char *same = test_read_file(path, &after);
  CHECK(after == len && memcmp(same, bytes, len) == 0);
  CHECK(fixture_files(k.folder, "", paths, 8) == 1);
  free(paths[0]);
  free(same);
  free(bytes);
  free(path);
  FAILS(LODE_CORRUPT, lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  fixture_reopen(&k);
  check_healed(&k, true, "a flip that a reader saw");
  fixture_close(&k);
}

/* ---- Forged files: all checksums and the manifest are right ---- */

static lode_status find_row(void *ctx, const store_manifest_row *row, lode_error *err) {
  (void)err;
  *(store_manifest_row *)ctx = *row;
  return LODE_OK;
}

static void set_manifest(fixture *k, const store_manifest_row *row) {
  lode_error err;
  store_tx *tx;
  OK(store_tx_begin(engine_store_of(k->store)->db, STORE_TX_WRITE, &tx, &err));
  OK(store_manifest_put(tx, row, &err));
  OK(store_tx_commit(tx, &err));
}

static void ask_forged(fixture *k, const lode_query_request *knobs, const char *where) {
  lode_error err;
  float q[DIM];
  lode_result *result = NULL;
  lode_query_request r = knobs ? *knobs : (lode_query_request){0};
  fixture_random(k, q);
  r.vectors = q;
  r.dimension = DIM;
  r.n = 1;
  r.k = 10;
  if (where) r.select.where = str_of(where);
  OK(lode_query(k->c, &r, &result, &err));
  CHECK(lode_result_count(result) <= 10);
  for (size_t i = 0; i < lode_result_count(result); i++) { /* whatever it answers, it lives */
    char id[24] = "";
    const lode_row *row = lode_result_at(result, i);
    memcpy(id, row->id.data, row->id.len < 23 ? row->id.len : 23);
    CHECK(fixture_alive(k, strtoul(id, NULL, 10)));
  }
  lode_result_free(result);
}

TEST_SLOW(forged_files_do_no_harm, 300) {
  fixture k = {.no_background = true};
  store_manifest_row row = {0};
  lode_error err;
  store_tx *tx;
  size_t len;
  test_srand(test_seed());
  make(&k);
  char *path = only_file(&k), *good = test_read_file(path, &len), *bytes = malloc(len);
  OK(store_tx_begin(engine_store_of(k.store)->db, STORE_TX_READ, &tx, &err));
  OK(store_manifest_each(tx, 0, find_row, &row, &err));
  store_tx_rollback(tx);
  size_t tries = test_full() ? len : 150;
  for (size_t i = 0; i < tries; i++) {
    memcpy(bytes, good, len);
    size_t at = test_full() ? i : test_below(3) ? test_below(len) : test_below(64);
    for (int flips = 0; flips < 3; flips++, at = test_below(len)) bytes[at] ^= (char)(1 + test_below(255));
    store_manifest_row forged = row;
    uint64_t id;
    if (!segment_forge((unsigned char *)bytes, len, &id, &forged.table_crc) || id != row.id) continue;
    test_write_file(path, bytes, len);
    set_manifest(&k, &forged);
    fixture_reopen(&k);
    ask_forged(&k, NULL, NULL);
    for (int times = 0; times < 3; times++)
      ask_forged(&k, NULL, "{\"n\":{\"$lt\":40}}"); /* from the second on from the filter cache */
    ask_forged(&k, &(lode_query_request){.exact = true}, NULL);
    if (i % 10 == 0) (void)!lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err);
  }
  free(bytes);
  free(good);
  free(path);
  fixture_close(&k);
}

/* ---- Kills, a full disk, two builders ---- */

/* In a child: builds, with a fault at call `at`. Exits 7 when the build got past it. */
static void build_in_child(const char *folder, fault_call call, uint64_t at, bool for_good, fault_effect effect,
                           bool compacts) {
  lode_store *store;
  lode_error err;
  lode_open_options o = {.no_background = true};
  segments_limits.threads = 1;
  fault_install(&os_real);
  OK(lode_open(folder, &o, &store, &err));
  fault_set(call, at, for_good, effect);
  lode_status st =
      compacts ? lode_compact(store, (lode_progress){0}, &err) : lode_optimize(store, (lode_progress){0}, &err);
  (void)st;
  bool hit = fault_hits() > 0;
  fault_clear();
  lode_close(store);
  _exit(hit ? 0 : 7);
}

static bool run_child(fixture *k, fault_call call, uint64_t at, bool for_good, fault_effect effect, bool compacts) {
  int status;
  pid_t pid = fork();
  if (pid == 0) build_in_child(k->folder, call, at, for_good, effect, compacts);
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECKF(WIFEXITED(status), "the builder died by signal %d at call %llu", WTERMSIG(status), (unsigned long long)at);
  return WEXITSTATUS(status) != 7;
}

/* For calls N, N + step, ... of a build over segments, dead rows and a tail. */
static void fail_everywhere(fault_call call, bool for_good, fault_effect effect, uint64_t step, const char *what) {
  fixture k = {.no_background = true};
  uint64_t at = 1 + test_below(step);
  make(&k);
  for (bool hit = true; hit; at += 1 + test_below(2 * step)) {
    fixture_add(&k, 160 + test_below(80)); /* there is something to merge */
    fixture_delete(&k, test_below(k.n), 30);
    lode_collection_close(k.c);
    lode_close(k.store);
    hit = run_child(&k, call, at, for_good, effect, at % 3 == 0);
    lode_error err;
    OK(lode_open(k.folder, &(lode_open_options){.no_background = true}, &k.store, &err));
    OK(lode_collection_open(k.store, (lode_str){"c", 1}, NULL, &k.c, &err));
    check_answers(&k, 0.85, what);
    if (k.n > 4000) break;
  }
  check_healed(&k, false, what);
  fixture_close(&k);
}

TEST_SLOW(a_builder_killed_at_any_call, 300) {
  test_srand(test_seed());
  fail_everywhere(FAULT_ANY, false, FAULT_EXIT, test_full() ? 1 : 60, "a kill");
}

TEST_SLOW(a_builder_killed_at_its_own_calls, 300) {
  static const fault_call calls[] = {FAULT_RENAME, FAULT_FSYNC, FAULT_UNLINK, FAULT_PWRITE};
  test_srand(test_seed());
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    fail_everywhere(calls[i], false, FAULT_EXIT, calls[i] == FAULT_PWRITE ? 20 : 2, fault_call_name(calls[i]));
}

TEST_SLOW(a_full_disk, 300) {
  static const fault_call calls[] = {FAULT_PWRITE, FAULT_FSYNC, FAULT_RENAME, FAULT_MKDIR, FAULT_OPEN, FAULT_FTRUNCATE};
  test_srand(test_seed());
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    fail_everywhere(calls[i], i % 2, FAULT_ENOSPC, calls[i] == FAULT_PWRITE ? 25 : 3, fault_call_name(calls[i]));
  fail_everywhere(FAULT_ANY, true, FAULT_ENOSPC, 60, "ENOSPC from every call");
  fail_everywhere(FAULT_ANY, false, FAULT_EIO, 60, "EIO from any call");
}

/* kill -9 at a random moment, from outside. */
TEST_SLOW(a_builder_killed_at_any_moment, 300) {
  fixture k = {.no_background = true};
  test_srand(test_seed());
  make(&k);
  for (int round = 0; round < (test_full() ? 200 : 15); round++) {
    fixture_add(&k, 220);
    fixture_delete(&k, test_below(k.n), 40);
    pid_t pid = fork();
    if (pid == 0) {
      lode_store *store;
      lode_error err;
      OK(lode_open(k.folder, &(lode_open_options){.no_background = true}, &store, &err));
      OK(lode_compact(store, (lode_progress){0}, &err));
      _exit(0);
    }
    usleep((unsigned)test_below(120000));
    (void)kill(pid, SIGKILL);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    check_answers(&k, 0.85, "kill -9");
  }
  check_healed(&k, false, "kill -9");
  fixture_close(&k);
}

TEST_SLOW(two_builders_at_once, 120) {
  fixture k = {.no_background = true};
  pid_t pids[3];
  test_srand(test_seed());
  make(&k);
  for (int round = 0; round < 4; round++) {
    fixture_add(&k, 500);
    fixture_delete(&k, test_below(k.n), 60);
    for (int i = 0; i < 3; i++) {
      pids[i] = fork();
      if (pids[i]) continue;
      lode_store *store;
      lode_error err;
      OK(lode_open(k.folder, &(lode_open_options){.no_background = true}, &store, &err));
      OK(i == 2 ? lode_compact(store, (lode_progress){0}, &err) : lode_optimize(store, (lode_progress){0}, &err));
      lode_close(store);
      _exit(0);
    }
    check_answers(&k, 0.85, "building by three");
    for (int i = 0; i < 3; i++) {
      int status;
      CHECK(waitpid(pids[i], &status, 0) == pids[i]);
      CHECK(status == 0);
    }
    check_healed(&k, false, "building by three");
  }
  fixture_close(&k);
}

TEST_SLOW(memory_that_runs_out, 300) {
  fixture k = {.no_background = true};
  float q[DIM];
  lode_error err;
  fault_alloc_install();
  segments_limits.threads = 1;
  test_srand(test_seed());
  make(&k);
  fixture_random(&k, q);
  uint64_t step = test_full() ? 1 : 7, hits = 1;
  for (uint64_t at = 1; hits; at += 1 + test_below(step)) { /* a query of a new handle */
    fixture_reopen(&k);
    lode_result *r = NULL;
    lode_query_request request = {.vectors = q, .dimension = DIM, .n = 1, .k = 10};
    fault_alloc_set(at, false);
    lode_status st = lode_query(k.c, &request, &r, &err);
    hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "%s", err.text);
    CHECK(st != LODE_OK || lode_result_count(r) == 10);
    CHECK(fixture_stats(&k).damaged_segments == 0);
    lode_result_free(r);
  }
  hits = 1;
  for (uint64_t at = 1; hits; at += 1 + test_below(test_full() ? 1 : 200)) {
    fixture_add(&k, 200);
    fault_alloc_set(at, false);
    lode_status st = lode_optimize(k.store, (lode_progress){0}, &err);
    hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "%s", err.text);
    if (k.n > 6000) break;
  }
  check_healed(&k, false, "memory that ran out");
  fixture_close(&k);
}
