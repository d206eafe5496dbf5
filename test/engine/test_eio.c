/* SPDX-License-Identifier: Apache-2.0 */
/* test_eio.c - a read of a segment that fails (EIO, EINTR) is no damage: the database answers meanwhile, the file is
 * neither set aside nor counted as damaged, and is used again when it can be read. */
#include "support/test.h"
#include "support/fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static os_calls table;
static uint64_t reads, fails_from, fails_to,
    later_ns; /* reads of segments; those that fail; what is added to the clock */
static int fails_with;
static const char *fails_at; /* that file alone */
static char **old_files;     /* or these alone */
static size_t n_old_files;

static bool is_segment(int fd) {
  char link[64], path[600];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 4 || memcmp(path + n - 4, ".seg", 4) != 0) return false;
  path[n] = '\0';
  if (!n_old_files) return !fails_at || strstr(path, fails_at);
  for (size_t i = 0; i < n_old_files; i++)
    if (strcmp(old_files[i], path) == 0) return true;
  return false;
}

static ssize_t failing_pread(int fd, void *buf, size_t n, off_t at) {
  if (is_segment(fd) && ++reads >= fails_from && reads < fails_to) {
    errno = fails_with;
    return -1;
  }
  return os_real.pread(fd, buf, n, at);
}

static uint64_t later(void) { return os_real.now_ns() + later_ns; }

/* Reads from number `from` on, before `to`, counted from now. */
static void let_fail(uint64_t from, uint64_t to, int with) {
  reads = 0;
  fails_from = from;
  fails_to = to;
  fails_with = with;
}

static int fails_to_open; /* errno of every attempt to open a segment; 0: none */

static int failing_open_below(int dir, const char *name, int flags, unsigned mode) {
  size_t n = strlen(name);
  if (fails_to_open && n > 4 && strcmp(name + n - 4, ".seg") == 0) {
    errno = fails_to_open;
    return -1;
  }
  return os_real.open_below(dir, name, flags, mode);
}

static void make(fixture *k) {
  table = os_real;
  table.open_below = failing_open_below;
  table.pread = failing_pread;
  table.now_ns = later;
  os_api = &table;
  test_srand(test_seed());
  let_fail(UINT64_MAX, 0, EIO);
  fixture_limits(200, 100);
  fixture_open(k, test_folder(), LODE_L2, 24);
  fixture_add(k, 700);
  fixture_optimize(k);
  fixture_reopen(k);
}

static void answers_are_right(fixture *k, const char *what) {
  static const lode_query_request exact = {.exact = true};
  double mean = fixture_mean_recall(k, 5, 10, NULL, NULL, NULL),
         all = fixture_mean_recall(k, 5, 10, &exact, NULL, NULL);
  CHECKF(mean > 0.9 && all == 1, "%s: recall %g, exact %g", what, mean, all);
}

static void nothing_set_aside(fixture *k, const char *what) {
  char *paths[64];
  size_t n = fixture_files(k->folder, ".quarantine", paths, 64);
  CHECKF(n == 0, "%s: %zu files were set aside", what, n);
  lode_stats s = fixture_stats(k);
  CHECKF(s.damaged_segments == 0, "%s: %llu segments count as damaged", what, (unsigned long long)s.damaged_segments);
}

static char *only_file(fixture *k) {
  char *paths[64];
  CHECK(fixture_files(k->folder, ".seg", paths, 64) == 1);
  return paths[0];
}

TEST_SLOW(a_read_that_fails_once, 120) {
  fixture k = {.no_background = true};
  make(&k);
  char *file = only_file(&k);
  for (uint64_t n = 1;; n += 1 + test_below(3)) {
    char what[60];
    snprintf(what, sizeof what, "read %llu", (unsigned long long)n);
    fixture_reopen(&k);
    let_fail(n, n + 1 + test_below(3), n % 4 ? EIO : EINTR); /* the second attempt fails too, or not */
    answers_are_right(&k, what);
    bool reached = reads >= n;
    let_fail(UINT64_MAX, 0, EIO);
    fixture_optimize(&k);
    nothing_set_aside(&k, what);
    char *now = only_file(&k);
    CHECKF(strcmp(now, file) == 0, "%s: the segment was rebuilt", what);
    free(now);
    if (!reached || n > 150) break;
  }
  free(file);
  fixture_close(&k);
}

TEST(reads_that_go_on_failing_and_then_do_not) {
  fixture k = {.no_background = true};
  lode_error err = {0};
  make(&k);
  char *file = only_file(&k);
  let_fail(1, UINT64_MAX, EIO);
  answers_are_right(&k, "while reads fail");
  fixture_optimize(&k);
  answers_are_right(&k, "after optimize");
  lode_status st = lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err);
  CHECKF(st == LODE_IO, "verify: %s %s", lode_status_name(st), err.text);
  nothing_set_aside(&k, "while reads fail");
  let_fail(UINT64_MAX, 0, EIO);
  answers_are_right(&k, "at once");
  later_ns = UINT64_C(6000000000);
  fixture_delete_one(&k, 3); /* the snapshot in memory is made again */
  reads = 0;
  answers_are_right(&k, "some seconds later");
  CHECK(reads > 0);
  OK(lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  nothing_set_aside(&k, "at the end");
  char *now = only_file(&k);
  CHECK(strcmp(now, file) == 0);
  free(now);
  free(file);
  fixture_close(&k);
}

/* Too many open files: this one is as good as before. */
TEST(a_file_that_cannot_be_opened_now_is_no_damage) {
  static const int errnums[] = {EMFILE, ENFILE, EIO};
  fixture k = {.no_background = true};
  make(&k);
  char *file = only_file(&k);
  for (size_t i = 0; i < sizeof errnums / sizeof *errnums; i++) {
    const char *what = strerror(errnums[i]);
    fixture_reopen(&k);
    fails_to_open = errnums[i];
    answers_are_right(&k, what);
    nothing_set_aside(&k, what);
    fails_to_open = 0;
    later_ns += UINT64_C(6000000000);
    fixture_delete_one(&k, (int)i); /* the snapshot in memory is made again */
    let_fail(UINT64_MAX, 0, EIO);
    answers_are_right(&k, what);
    CHECKF(reads > 0, "%s: the file is not used again", what);
    nothing_set_aside(&k, what);
  }
  char *now = only_file(&k);
  CHECK(strcmp(now, file) == 0);
  free(now);
  free(file);
  fixture_close(&k);
}

/* Damage is still damage. */
TEST(what_is_damaged_is_set_aside) {
  fixture k = {.no_background = true};
  size_t len;
  char *paths[64];
  make(&k);
  char *file = only_file(&k), *bytes = test_read_file(file, &len);
  bytes[len / 2] ^= 1;
  test_write_file(file, bytes, len);
  fixture_reopen(&k);
  let_fail(3, 6, EIO);
  answers_are_right(&k, "damaged");
  let_fail(UINT64_MAX, 0, EIO);
  later_ns = UINT64_C(6000000000);
  fixture_optimize(&k);
  answers_are_right(&k, "rebuilt");
  CHECK(fixture_files(k.folder, ".quarantine", paths, 64) == 1);
  free(paths[0]);
  free(file);
  free(bytes);
  fixture_close(&k);
}

/* Bad sectors: the user says that the segment is to be built again. */
TEST(what_stays_unreadable_is_rebuilt_when_asked_for) {
  fixture k = {.no_background = true};
  lode_error err = {0};
  char *paths[64];
  make(&k);
  char *file = only_file(&k);
  fails_at = strrchr(file, '/') + 1;
  let_fail(1, UINT64_MAX, EIO);
  answers_are_right(&k, "unreadable");
  lode_status st = lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err);
  CHECKF(st == LODE_IO && strstr(err.text, "--rebuild-unreadable"), "verify: %s %s", lode_status_name(st), err.text);
  fixture_optimize(&k);
  nothing_set_aside(&k, "optimize");
  OK(lode_rebuild_unreadable(k.store, (lode_progress){0}, &err));
  CHECK(fixture_files(k.folder, ".quarantine", paths, 64) == 1);
  free(paths[0]);
  CHECK(access(file, F_OK) != 0 &&
        fixture_files(k.folder, ".seg", paths, 64) == 2); /* the new one, and the old one aside */
  free(paths[0]);
  free(paths[1]);
  answers_are_right(&k, "rebuilt");
  OK(lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  fixture_reopen(&k);
  answers_are_right(&k, "reopened");
  OK(lode_rebuild_unreadable(k.store, (lode_progress){0}, &err)); /* all can be read: nothing is done */
  CHECK(fixture_files(k.folder, ".quarantine", paths, 64) == 1);
  free(paths[0]);
  free(file);
  fixture_close(&k);
}

/* More segments than the list of suspects holds. */
TEST(all_that_stay_unreadable_are_rebuilt) {
  enum { COLLECTIONS = SEGMENTS_MAX_SUSPECTS + 6, ROWS = 20, DIM = 4 };
  fixture k = {.no_background = true};
  lode_error err = {0};
  lode_stats stats;
  char *paths[COLLECTIONS], *aside[COLLECTIONS + 1];
  make(&k);
  fixture_limits(ROWS, 100);
  for (int c = 1; c < COLLECTIONS; c++) {
    char name[16], ids[ROWS][16];
    float v[ROWS][DIM];
    lode_record records[ROWS];
    lode_collection *coll;
    snprintf(name, sizeof name, "c%d", c);
    for (int i = 0; i < ROWS; i++) {
      snprintf(ids[i], sizeof ids[i], "r%d", i);
      for (int d = 0; d < DIM; d++) v[i][d] = (float)(test_rand() % 1000) / 1000;
      records[i] = (lode_record){.id = {ids[i], strlen(ids[i])}, .vector = v[i], .dimension = DIM};
    }
    OK(lode_collection_open(k.store, (lode_str){name, strlen(name)}, &(lode_collection_options){.create = true}, &coll,
                            &err));
    OK(lode_upsert(coll, NULL, records, ROWS, NULL, &err));
    lode_collection_close(coll);
  }
  fixture_optimize(&k);
  OK(lode_store_stats(k.store, &stats, &err));
  CHECKF(stats.segments == COLLECTIONS, "%llu segments", (unsigned long long)stats.segments);
  CHECK(fixture_files(k.folder, ".seg", paths, COLLECTIONS) == COLLECTIONS);
  fixture_reopen(&k);
  old_files = paths;
  n_old_files = COLLECTIONS;
  let_fail(1, UINT64_MAX, EIO);
  OK(lode_rebuild_unreadable(k.store, (lode_progress){0}, &err));
  CHECK(fixture_files(k.folder, ".quarantine", aside, COLLECTIONS + 1) == COLLECTIONS);
  OK(lode_verify(k.store, NULL, NULL, (lode_progress){0}, &err));
  OK(lode_store_stats(k.store, &stats, &err));
  CHECKF(stats.segments == COLLECTIONS, "%llu segments", (unsigned long long)stats.segments);
  n_old_files = 0;
  for (size_t i = 0; i < COLLECTIONS; i++) {
    free(paths[i]);
    free(aside[i]);
  }
  fixture_close(&k);
}
