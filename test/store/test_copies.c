/* SPDX-License-Identifier: Apache-2.0 */
/* test_copies.c - copies of a store taken with cp while others write, and writers that are killed: each state is whole,
 * or found damaged. */
#include "support/test.h"

#include "lode.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
enum { PAGE = 512, DIM = 8, BATCH = 5 };

/* Adds batches, deletes whole ones, and compacts, until it is killed. */
static void write_for_ever(const char *folder, uint64_t seed) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  test_srand(seed);
  OK(lode_open(folder, &(lode_open_options){.no_background = test_below(2)}, &store, &err));
  OK(lode_collection_open(store, S("batches"), NULL, &c, &err));
  for (uint64_t i = 0;; i++) {
    char ids[BATCH][40], metas[40];
    float v[BATCH][DIM] = {{0}};
    lode_record r[BATCH];
    uint64_t batch = test_below(40);
    snprintf(metas, sizeof metas, "{\"batch\":%u}", (unsigned)batch);
    for (int k = 0; k < BATCH; k++) {
      snprintf(ids[k], sizeof ids[k], "%u-%d", (unsigned)batch, k);
      for (int d = 0; d < DIM; d++) v[k][d] = (float)test_below(100);
      r[k] = (lode_record){.id = {ids[k], strlen(ids[k])},
                           .metadata = {metas, strlen(metas)},
                           .document = {ids[k], strlen(ids[k])},
                           .vector = v[k],
                           .dimension = DIM};
    }
    char where[60];
    snprintf(where, sizeof where, "{\"batch\":%u}", (unsigned)batch);
    if (test_below(4) == 0)
      OK(lode_delete(c, NULL, &(lode_selection){.where = {where, strlen(where)}}, NULL, &err));
    else
      OK(lode_upsert(c, NULL, r, BATCH, NULL, &err));
    if (i % 30 == 29) OK(lode_compact(store, (lode_progress){0}, &err));
  }
}

static pid_t start_writer(const char *folder) {
  uint64_t seed = test_rand();
  pid_t pid = fork();
  if (pid == 0) {
    write_for_ever(folder, seed);
    _exit(1);
  }
  CHECK(pid > 0);
  return pid;
}

static void stop_writer(pid_t pid) {
  int status = 0;
  CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
  CHECKF(WIFSIGNALED(status), "the writer failed");
}

static void make_batches(const char *folder) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  OK(lode_open(folder, &(lode_open_options){.create = true, .page_bytes = PAGE, .no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("batches"), &(lode_collection_options){.create = true, .metric = LODE_L2}, &c,
                          &err));
  lode_collection_close(c);
  lode_close(store);
}

/* All batches are whole. */
static lode_status check_batches(const char *folder, bool read_only, lode_error *err) {
  lode_store *store;
  lode_collection *c = NULL;
  lode_result *rows = NULL;
  uint64_t n = 0;
  lode_status st = lode_open(folder, &(lode_open_options){.no_background = true, .read_only = read_only}, &store, err);
  if (st != LODE_OK) return st;
  st = lode_collection_open(store, S("batches"), NULL, &c, err);
  if (st == LODE_OK) st = lode_count(c, &n, err);
  if (st == LODE_OK) st = lode_get(c, &(lode_get_request){.include = LODE_ALL}, &rows, err);
  if (st == LODE_OK) CHECKF(n % BATCH == 0 && lode_result_count(rows) == n, "%llu records", (unsigned long long)n);
  lode_result_free(rows);
  if (st == LODE_OK) st = lode_verify(store, NULL, NULL, (lode_progress){0}, err);
  lode_collection_close(c);
  lode_close(store);
  return st;
}

TEST_SLOW(copies_taken_under_a_writer_are_whole_or_damaged, 900) {
  lode_error err = {0};
  char work[400], to[420], command[1400];
  int whole = 0, damaged = 0, absent = 0;
  test_srand(test_seed());
  snprintf(work, sizeof work, "%s/s", test_folder());
  make_batches(work);
  pid_t writers[2] = {start_writer(work), start_writer(work)};
  snprintf(to, sizeof to, "%s-copy", work);
  for (int i = 0; i < (test_full() ? 1000 : 40); i++) {
    snprintf(command, sizeof command, "rm -rf '%s'; cp -r '%s' '%s' 2>/dev/null", to, work, to);
    (void)!system(command);
    lode_status st = check_batches(to, test_below(2), &err);
    CHECKF(st == LODE_OK || st == LODE_CORRUPT || st == LODE_NOT_FOUND, "%s %s", lode_status_name(st), err.text);
    whole += st == LODE_OK;
    damaged += st == LODE_CORRUPT;
    absent += st == LODE_NOT_FOUND; /* cp gave up on the database */
  }
  for (int i = 0; i < 2; i++) stop_writer(writers[i]);
  CHECKF(whole + damaged > 20, "%d whole, %d damaged", whole, damaged);
  if (test_full())
    fprintf(stderr, "copies: %d whole, %d found damaged, %d without a database\n", whole, damaged, absent);
  OK(check_batches(work, false, &err));
}

TEST_SLOW(killed_writers_leave_no_damage, 900) {
  lode_error err = {0};
  char work[400], map[420];
  test_srand(test_seed());
  snprintf(work, sizeof work, "%s/s", test_folder());
  snprintf(map, sizeof map, "%s/lode.pages", work);
  make_batches(work);
  for (int i = 0; i < (test_full() ? 2000 : 60); i++) {
    pid_t a = start_writer(work), b = test_below(2) ? start_writer(work) : 0;
    usleep((useconds_t)test_below(60000));
    stop_writer(a);
    if (test_below(3) == 0) unlink(map);
    if (!b && test_below(2)) OK(check_batches(work, true, &err));
    if (b) stop_writer(b);
    OK(check_batches(work, test_below(2), &err));
  }
}
