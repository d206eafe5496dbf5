/* SPDX-License-Identifier: Apache-2.0 */
/* test_locks.c - locks that cannot be had: interrupted, failing, or held by somebody who does nothing. */
#include "support/fault.h"
#include "lode.h"
#include "store/tx.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){(text), sizeof(text) - 1})
static lode_error err;

TEST(interrupted_locks_are_taken_all_the_same) {
  uint64_t hits = 1;
  for (uint64_t n = 1; hits; n++) {
    lode_store *store;
    lode_collection *c;
    char folder[400];
    snprintf(folder, sizeof folder, "%s/s", test_folder());
    fault_install(&os_real);
    fault_set(FAULT_LOCK, n, false, FAULT_EINTR);
    OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &store, &err));
    OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
    OK(lode_add(c, NULL, &(lode_record){.id = S("a"), .document = S("text")}, 1, LODE_FAIL_EXISTING, NULL, &err));
    OK(lode_optimize(store, (lode_progress){0}, &err));
    hits = fault_hits();
    lode_collection_close(c);
    lode_close(store);
    fault_uninstall();
    CHECK(n < 1000);
  }
}

/* A handle that was opened while a call failed works like any other, or there is none. */
TEST(a_handle_has_its_lock_file_or_is_none) {
  uint64_t hits = 1;
  char folder[400];
  lode_store *store;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &store, &err));
  lode_close(store);
  for (uint64_t n = 1; hits; n++) {
    fault_install(&os_real);
    fault_set(FAULT_ANY, n, false, FAULT_EIO);
    lode_status st = lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &store, &err);
    hits = fault_hits();
    fault_uninstall();
    CHECKF(st == LODE_OK || (hits && st == LODE_IO), "call %llu: %s", (unsigned long long)n, err.text);
    if (st != LODE_OK) continue;
    OK(lode_optimize(store, (lode_progress){0}, &err));
    lode_close(store);
  }
}

/* A call that fails while a store is made is LODE_IO, whatever was there already. */
TEST_SLOW(a_store_that_could_not_be_made_is_not_gone, 120) {
  uint64_t hits = 1;
  for (uint64_t n = 1; hits; n++) {
    char folder[400];
    lode_store *store;
    snprintf(folder, sizeof folder, "%s/s%llu", test_folder(), (unsigned long long)n);
    fault_install(&os_real);
    fault_set(FAULT_ANY, n, false, FAULT_EIO);
    lode_status st = lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &store, &err);
    hits = fault_hits();
    fault_uninstall();
    CHECKF(st == LODE_OK || (hits && st == LODE_IO), "call %llu: %s %s", (unsigned long long)n, lode_status_name(st),
           err.text);
    if (st == LODE_OK) lode_close(store);
  }
}

static const char *made_here;

/* Another process makes the store just after this one has looked for it. */
static int look_too_early(int dir, const char *name, struct stat *st) {
  int rc = os_real.lstat_at(dir, name, st), e = errno;
  if (rc < 0 && made_here && strcmp(name, "lode.db") == 0) {
    const char *folder = made_here;
    const os_calls *kept = os_api;
    lode_store *store;
    lode_collection *c;
    made_here = NULL;
    os_api = &os_real;
    OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &store, &err));
    OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
    lode_collection_close(c);
    lode_close(store);
    os_api = kept;
  }
  errno = e;
  return rc;
}

TEST(a_store_that_was_made_meanwhile_is_no_damage) {
  os_calls table = os_real;
  lode_store *store;
  made_here = test_folder();
  table.lstat_at = look_too_early;
  os_api = &table;
  OK(lode_open(made_here, &(lode_open_options){.read_only = true}, &store, &err));
  lode_close(store);
  os_api = &os_real;
}

/* ---- The lock of the background work ---- */

static int work_errno;
static off_t work_byte;
static uint64_t now, asked;

static int work_lock(int fd, short type, off_t start, off_t len) {
  if (start != work_byte || type == F_UNLCK) return os_real.lock(fd, type, start, len);
  asked++;
  errno = work_errno;
  return -1;
}

static uint64_t look_at_clock(void) { return now; }
static void no_sleep(uint64_t us) { now += us * 1000; }

static void optimize_with(off_t byte, int errnum, lode_status wanted, uint64_t most) {
  lode_store *store;
  lode_collection *c;
  char folder[400];
  static os_calls table;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  table = os_real;
  table.now_ns = look_at_clock;
  table.sleep_us = no_sleep;
  os_api = &table;
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true, .busy_ms = 2000}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  OK(lode_add(c, NULL, &(lode_record){.id = S("a"), .document = S("text")}, 1, LODE_FAIL_EXISTING, NULL, &err));
  table.lock = work_lock;
  work_byte = byte;
  work_errno = errnum;
  FAILS(wanted, lode_optimize(store, (lode_progress){0}, &err));
  CHECKF(err.text[0] && asked > 0 && asked <= most, "asked %llu times: %s", (unsigned long long)asked, err.text);
  table.lock = os_real.lock;
  OK(lode_optimize(store, (lode_progress){0}, &err));
  lode_collection_close(c);
  lode_close(store);
}

static uint64_t unlocks, fails_at;

static int64_t unlock_fails(oscall *c) {
  char path[OSCALL_PATH];
  oscall_path(c, path);
  size_t n = strlen(path);
  bool truth = c->kind == OSCALL_LOCK && c->lock == F_UNLCK && n > 7 && strcmp(path + n - 7, "lode.db") == 0;
  if (!truth || ++unlocks != fails_at) return oscall_pass(c);
  errno = ENOLCK;
  return -1;
}

/* What one handle does with an unlock that fails, and another one right after it. */
static void write_beside(lode_store *store, lode_collection *c, lode_collection *other) {
  lode_result *rows;
  lode_status st = lode_get(c, &(lode_get_request){.include = LODE_ALL}, &rows, &err);
  CHECKF(st == LODE_OK || st == LODE_IO, "%s", err.text);
  lode_result_free(rows);
  st = lode_upsert(c, NULL, &(lode_record){.id = S("a"), .document = S("text")}, 1, NULL, &err);
  CHECKF(st == LODE_OK || st == LODE_IO, "%s", err.text);
  st = lode_optimize(store, (lode_progress){0}, &err);
  CHECKF(st == LODE_OK || st == LODE_IO, "%s", err.text);
  fails_at = 0;
  OK(lode_upsert(other, NULL, &(lode_record){.id = S("b"), .document = S("text")}, 1, NULL, &err));
}

/* A lock that could not be given back does not stay with an idle connection. */
TEST(a_failed_unlock_keeps_nobody_out) {
  lode_open_options o = {.create = true, .no_background = true, .busy_ms = 1000};
  lode_store *store, *beside;
  lode_collection *c, *other;
  char folder[400];
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  oscall_push(unlock_fails, &os_real);
  OK(lode_open(folder, &o, &beside, &err));
  OK(lode_collection_open(beside, S("c"), &(lode_collection_options){.create = true}, &other, &err));
  uint64_t made = 1;
  for (uint64_t n = 1; made >= n; n++) {
    OK(lode_open(folder, &o, &store, &err));
    OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
    unlocks = 0;
    fails_at = n;
    write_beside(store, c, other);
    made = unlocks;
    lode_collection_close(c);
    lode_close(store);
  }
  oscall_pop(unlock_fails);
  CHECKF(made > 10, "only %llu unlocks", (unsigned long long)made);
  lode_collection_close(other);
  lode_close(beside);
}

TEST(optimize_gives_up_at_once_when_its_lock_fails) { optimize_with(STORE_LOCK_WORK, EIO, LODE_IO, 1); }
TEST(optimize_gives_up_when_nobody_makes_progress) { optimize_with(STORE_LOCK_WORK, EAGAIN, LODE_BUSY, 5000); }
TEST(optimize_says_so_when_the_lock_of_builders_fails) { optimize_with(STORE_LOCK_BUILD, EIO, LODE_IO, 1); }

/* A copy of a store may lack the lock file. Whoever may write makes it again; locks work then. */
TEST(a_lock_file_that_is_missing_is_made) {
  store_db *db, *other;
  char folder[400], lock[420];
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  snprintf(lock, sizeof lock, "%s/lode.lock", folder);
  OK(store_db_open(folder, &(lode_open_options){.create = true}, &db, &err));
  store_db_close(db);
  CHECK(unlink(lock) == 0);
  OK(store_db_open(folder, &(lode_open_options){.read_only = true}, &db, &err));
  CHECK(access(lock, F_OK) != 0); /* a reader writes nothing */
  store_db_close(db);
  OK(store_db_open(folder, &(lode_open_options){0}, &db, &err));
  OK(store_db_open(folder, &(lode_open_options){0}, &other, &err));
  OK(store_build_lock(db, &err));
  FAILS(LODE_BUSY, store_build_lock(other, &err));
  store_build_unlock(db);
  OK(store_build_lock(other, &err));
  store_build_unlock(other);
  store_db_close(other);
  store_db_close(db);
}

/* ---- The writers' turn ---- */

static atomic_bool waiting_ends;

static void *wait_again_and_again(void *store) {
  lode_error mine;
  lode_txn *txn;
  while (!atomic_load(&waiting_ends))
    if (lode_begin(store, &txn, &mine) == LODE_OK) lode_rollback(txn);
  return NULL;
}

/* A thread that waits for another thread of its handle, which waits for somebody else, must learn of that one. */
TEST(who_waits_in_vain_is_told_who_holds_the_lock) {
  lode_store *holder, *store;
  lode_txn *held, *txn;
  pthread_t thread;
  char folder[400];
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &holder, &err));
  OK(lode_open(folder, &(lode_open_options){.no_background = true, .busy_ms = 50}, &store, &err));
  OK(lode_begin(holder, &held, &err));
  CHECK(pthread_create(&thread, NULL, wait_again_and_again, store) == 0);
  for (int i = 0; i < 10; i++) {
    FAILS(LODE_BUSY, lode_begin(store, &txn, &err));
    CHECKF(strstr(err.text, "was locked for 50 ms; last writer: process"), "%s", err.text);
  }
  atomic_store(&waiting_ends, true);
  pthread_join(thread, NULL);
  lode_rollback(held);
  OK(lode_begin(store, &txn, &err));
  FAILS(LODE_BUSY, lode_begin(store, &held, &err));
  CHECKF(strstr(err.text, "this process has had a write transaction open"), "%s", err.text);
  lode_rollback(txn);
  lode_close(store);
  lode_close(holder);
}

enum { QUEUED = 6, TURNS = 4 };

typedef struct queued_writer {
  pthread_t thread;
  store_db *db;
  int number;
} queued_writer;

static atomic_int served[QUEUED * TURNS];
static atomic_int n_served;

/* Asks again as soon as its turn is over. */
static void *write_in_turns(void *ctx) {
  const queued_writer *w = ctx;
  lode_error mine;
  for (int i = 0; i < TURNS; i++) {
    store_tx *tx;
    OK(store_tx_begin(w->db, STORE_TX_WRITE, &tx, &mine));
    int at = atomic_fetch_add(&n_served, 1);
    if (at < QUEUED * TURNS) atomic_store(&served[at], w->number);
    store_tx_rollback(tx);
  }
  return NULL;
}

static int count_queued(store_db *db) {
  int n = 0;
  pthread_mutex_lock(&db->mutex);
  for (const store_turn *t = db->turns; t; t = t->next) n++;
  pthread_mutex_unlock(&db->mutex);
  return n;
}

/* Whoever has just written does not overtake those who wait. */
TEST(writers_of_a_handle_take_turns_in_order) {
  queued_writer w[QUEUED];
  store_db *db;
  store_tx *tx;
  char folder[400];
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(store_db_open(folder, &(lode_open_options){.create = true, .no_background = true, .busy_ms = 60000}, &db, &err));
  OK(store_tx_begin(db, STORE_TX_WRITE, &tx, &err));
  for (int i = 0; i < QUEUED; i++) {
    w[i] = (queued_writer){.db = db, .number = i};
    CHECK(pthread_create(&w[i].thread, NULL, write_in_turns, &w[i]) == 0);
    while (count_queued(db) <= i) usleep(100);
  }
  store_tx_rollback(tx);
  OK(store_tx_begin(db, STORE_TX_WRITE, &tx, &err));
  CHECKF(atomic_load(&n_served) >= QUEUED, "our second turn came after %d of %d", atomic_load(&n_served), QUEUED);
  store_tx_rollback(tx);
  for (int i = 0; i < QUEUED; i++) pthread_join(w[i].thread, NULL);
  for (int i = 0; i < QUEUED; i++)
    CHECKF(atomic_load(&served[i]) == i, "turn %d: writer %d", i, atomic_load(&served[i]));
  store_db_close(db);
}

/* ---- The builder's lock ---- */

/* It was the parent's at the fork, and is free when the child asks. */
TEST(a_child_may_build_what_its_parent_was_building) {
  store_db *db;
  store_tx *tx;
  int gate[2];
  char folder[400], byte = 0;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(store_db_open(folder, &(lode_open_options){.create = true, .no_background = true}, &db, &err));
  OK(store_build_lock(db, &err));
  CHECK(pipe(gate) == 0);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    bool ok = read(gate[0], &byte, 1) == 1 && store_tx_begin(db, STORE_TX_READ, &tx, &err) == LODE_OK;
    if (ok) store_tx_rollback(tx);
    _exit(ok && store_build_lock(db, &err) == LODE_OK ? 0 : 1);
  }
  store_build_unlock(db);
  CHECK(write(gate[1], &byte, 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  close(gate[0]);
  close(gate[1]);
  store_db_close(db);
}
