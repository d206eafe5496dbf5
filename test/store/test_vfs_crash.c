/* SPDX-License-Identifier: Apache-2.0 */
/* test_vfs_crash.c - the VFS when something fails: killed processes, hot journals (whole and damaged), failing calls,
 * failing memory, power cuts. Always: what was acknowledged is there, and what is there is all of a transaction or
 * none.
 */
#include "support/fault.h"
#include "support/simdisk.h"
#include "support/sqlkit.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char file[2048], journal[2100];

static void name_files(const char *folder) {
  snprintf(file, sizeof file, "%s/a.db", folder);
  snprintf(journal, sizeof journal, "%s-journal", file);
}

#define ROWS(from, to) "WITH RECURSIVE n(i) AS (SELECT " #from " UNION ALL SELECT i+1 FROM n WHERE i<" #to ")"
#define FILL ROWS(1, 40) "INSERT INTO t SELECT i, 'key' || (i*7919 % 1000), blob(i, 1, i*i % 900) FROM n;"
/* Changes, frees, takes free pages again, and grows. */
#define CHANGE                                                                                                         \
  "BEGIN IMMEDIATE; DELETE FROM t WHERE id % 5 = 0; UPDATE t SET v = blob(id, 2, 300), k = 'n' || k"                   \
  " WHERE id % 3 = 1; " ROWS(100, 115) "INSERT INTO t SELECT i, 'new' || i, blob(i, 1, 400) FROM n; COMMIT"
#define SPILL "PRAGMA cache_size=4; PRAGMA cache_spill=4;"

static void make_base(void) {
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, KIT_TABLE);
  KIT_OK(db, FILL);
  KIT_OK(db, "DELETE FROM t WHERE id % 4 = 0");
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

static uint64_t sum_now(void) {
  uint64_t sum = 0;
  int rc = kit_sum_file(file, &sum);
  CHECKF(rc == SQLITE_OK, "%s: %d", file, rc);
  return sum;
}

static void check_sound_now(void) {
  sqlite3 *db = kit_open(file, 512);
  kit_check_sound(db);
  CHECK(kit_state(db).damaged_reads == 0);
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

typedef struct bytes {
  char *data;
  size_t len;
} bytes;

static bytes load(const char *path) {
  bytes b = {0};
  b.data = test_read_file(path, &b.len);
  return b;
}

static void store(const char *path, const bytes *b) { test_write_file(path, b->data, b->len); }

static bool run_and_die(const char *setup, const char *sql, fault_call call, uint64_t at) {
  return kit_run_and_die(file, 512, setup, sql, call, at);
}

/* ---- kill -9 ---- */

static void killed_anywhere(const char *setup) {
  name_files(test_folder());
  make_base();
  bytes base = load(file);
  uint64_t before = sum_now(), after = 0, hot = 0;
  CHECK(run_and_die(setup, CHANGE, FAULT_ANY, 0));
  after = sum_now();
  CHECK(before != after);
  for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(5)) {
    store(file, &base);
    unlink(journal);
    bool lived = run_and_die(setup, CHANGE, FAULT_ANY, at);
    uint64_t sum = sum_now();
    hot += !lived && sum == before;
    CHECKF(sum == after || (!lived && sum == before), "killed at call %llu", (unsigned long long)at);
    check_sound_now();
    if (lived) break;
  }
  CHECK(hot > 5);
  free(base.data);
}

TEST_SLOW(killed_at_any_call, 300) { killed_anywhere(""); }
TEST_SLOW(killed_at_any_call_while_spilling, 300) { killed_anywhere(SPILL); }

/* ---- Hot journals, damaged ---- */

typedef struct hot {
  bytes db, journal;
  uint64_t before, after; /* after = 0: the database was left half-way */
} hot;

/* Dies at the given call; leaves a hot journal, or ends the test. */
static hot make_hot(const char *setup, fault_call call, uint64_t at, bool all_written) {
  hot h = {0};
  name_files(test_folder());
  make_base();
  h.before = sum_now();
  bytes base = load(file);
  CHECK(run_and_die(setup, CHANGE, FAULT_ANY, 0));
  uint64_t after = sum_now();
  store(file, &base);
  free(base.data);
  CHECK(!run_and_die(setup, CHANGE, call, at));
  h.db = load(file);
  h.journal = load(journal);
  CHECK(h.journal.len > 2000 && (unsigned char)h.journal.data[0] == 0xd9);
  if (all_written) h.after = after;
  CHECK(sum_now() == h.before); /* undamaged, it rolls back */
  return h;
}

/* Opens the crashed database with that journal: before, after, or a clear error, and then the journal is kept. */
static bool try_hot(const hot *h, const bytes *with, const char *what, size_t at) {
  uint64_t sum = 0;
  store(file, &h->db);
  store(journal, with);
  int rc = kit_sum_file(file, &sum);
  if (rc == SQLITE_OK) {
    CHECKF(sum == h->before || (h->after && sum == h->after), "%s at %zu of %zu: a mix", what, at, h->journal.len);
    return true;
  }
  CHECKF(rc == SQLITE_IOERR_DATA, "%s at %zu: %d", what, at, rc);
  bytes kept = load(journal), db = load(file);
  CHECKF(kept.len == with->len && memcmp(kept.data, with->data, kept.len) == 0, "%s at %zu", what, at);
  CHECKF(db.len == h->db.len && memcmp(db.data, h->db.data, db.len) == 0, "%s at %zu", what, at);
  free(kept.data);
  free(db.data);
  return false;
}

/* Without its journal, a database that was written wholly is of one moment: the one after the transaction. */
static void damage_hot(const hot *h) {
  bool whole = h->after != 0;
  bytes copy = {malloc(h->journal.len), h->journal.len};
  size_t step = test_full() ? 1 : 19, refused = 0, tried = 0;
  CHECK(copy.data != NULL);
  memcpy(copy.data, h->journal.data, copy.len);
  for (size_t i = 0; i < 60 * 8; i++) { /* every bit of the header; the magic is proven by the checksum */
    copy.data[i / 8] = (char)(copy.data[i / 8] ^ 1 << i % 8);
    /* a crash too may leave the count of segments one too high; how many there are depends on SQLite's version */
    bool raised = i == 32 * 8 && (copy.data[32] & 1);
    CHECKF(try_hot(h, &copy, "flip", i / 8) == (whole || raised || i < 8 * 8), "bit %zu of byte %zu", i % 8, i / 8);
    copy.data[i / 8] = h->journal.data[i / 8];
  }
  for (size_t i = 60; i < h->journal.len; i += 1 + test_below(step)) {
    copy.data[i] = (char)(copy.data[i] ^ (char)(1 + test_below(255)));
    refused += !try_hot(h, &copy, "flip", i);
    tried++;
    copy.data[i] = h->journal.data[i];
  }
  CHECKF(whole ? refused == 0 : refused * 2 > tried, "%zu of %zu", refused, tried);
  /* less than most of the magic could be anything, and counts as emptied */
  for (copy.len = whole ? 0 : 5; copy.len < h->journal.len; copy.len += 1 + test_below(step)) {
    bool fine = try_hot(h, &copy, "cut", copy.len);
    CHECKF(whole ? fine : !fine || copy.len < 5 || copy.len + 512 > h->journal.len, "cut at %zu of %zu", copy.len,
           h->journal.len);
  }
  /* segments end at sectors: the likeliest places to be taken for an end */
  for (copy.len = 512; copy.len + 512 < h->journal.len; copy.len += 512)
    CHECK(try_hot(h, &copy, "cut", copy.len) == whole);
  free(copy.data);
}

static void free_hot(hot *h) {
  free(h->db.data);
  free(h->journal.data);
}

TEST_SLOW(damaged_journal_of_a_written_transaction, 600) {
  hot h = make_hot("", FAULT_FTRUNCATE, 1, true); /* between the last write and the end of the journal */
  damage_hot(&h);
  free_hot(&h);
}

/* Dies before the last `left` writes: all of the journal is synced by then. */
static void damage_half_written(const char *setup, uint64_t left) {
  name_files(test_folder());
  make_base();
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, setup);
  fault_install(&os_real);
  KIT_OK(db, CHANGE);
  uint64_t writes = fault_count(FAULT_PWRITE);
  fault_uninstall();
  sqlite3_close(db);
  hot h = make_hot(setup, FAULT_PWRITE, writes - left, false);
  damage_hot(&h);
  free_hot(&h);
}

TEST_SLOW(damaged_journal_of_a_half_written_transaction, 600) { damage_half_written("", 10); }
TEST_SLOW(damaged_journal_of_a_half_written_spilled_transaction, 600) { damage_half_written(SPILL, 1); }

TEST_SLOW(damaged_journal_of_a_spilled_transaction, 600) {
  hot h = make_hot(SPILL, FAULT_FTRUNCATE, 1, true);
  CHECKF(h.journal.data[32] > 2, "%d segments", h.journal.data[32]);
  damage_hot(&h);
  free_hot(&h);
}

/* SQLite looks for the name of a super-journal at the end of a journal, if the last page image ends like the length of
 * one. With 65 records, those bytes are where a header could begin. (Page 1 is changed first, so that it is not last.)
 */
TEST_SLOW(a_journal_of_any_length_is_rolled_back, 300) {
  char sql[2000], aa[801], bb[801];
  size_t at_sector = 0;
  memset(aa, 'a', sizeof aa - 1);
  memset(bb, 'b', sizeof bb - 1);
  aa[800] = bb[800] = 0;
  name_files(test_folder());
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, KIT_TABLE);
  snprintf(sql, sizeof sql, ROWS(1, 90) "INSERT INTO t SELECT i, 'k' || i, x'%s00000007' FROM n", aa);
  KIT_OK(db, sql);
  CHECK(sqlite3_close(db) == SQLITE_OK);
  bytes base = load(file);
  uint64_t before = sum_now();
  for (int rows = 50; rows < 80; rows++) {
    store(file, &base);
    snprintf(sql, sizeof sql, "BEGIN; PRAGMA user_version=7; UPDATE t SET v = x'%s' WHERE id <= %d; COMMIT", bb, rows);
    CHECK(!run_and_die("", sql, FAULT_FTRUNCATE, 1));
    bytes left = load(journal);
    at_sector += (left.len - 8) % 512 == 0;
    free(left.data);
    CHECKF(sum_now() == before, "%d rows", rows);
  }
  CHECK(at_sector > 0);
  free(base.data);
}

TEST(a_database_cut_beside_its_hot_journal) {
  hot h = make_hot("", FAULT_FTRUNCATE, 1, true);
  uint64_t sum = 0;
  sqlite3 *db = NULL;
  size_t whole = h.db.len;
  for (size_t pages = 0; pages < 10; pages++) {
    h.db.len = pages * 512;
    CHECK(!try_hot(&h, &h.journal, "database cut", h.db.len));
  }
  int rc = kit_try_open(file, 512, &db);
  if (rc == SQLITE_OK) rc = kit_sum(db, &sum);
  CHECK(rc == SQLITE_IOERR_DATA && kit_state(db).damaged_journal);
  sqlite3_close(db);
  h.db.len = whole;
  free_hot(&h);
}

TEST(leftovers_of_an_unfinished_journal_do_no_harm) {
  name_files(test_folder());
  make_base();
  uint64_t before = sum_now();
  CHECK(!run_and_die("", CHANGE, FAULT_SYNC, 1)); /* records written, header not filled in */
  bytes left = load(journal);
  CHECK(left.len > 2000 && left.data[0] == 0);
  for (size_t i = 1000; i < left.len; i += 100) left.data[i] ^= 1; /* and torn, as nothing of it was synced */
  store(journal, &left);
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, "BEGIN; UPDATE t SET k = 'x' WHERE id = 1; ROLLBACK");
  CHECK(!kit_state(db).damaged_journal);
  CHECK(sqlite3_close(db) == SQLITE_OK);
  CHECK(sum_now() == before);
  check_sound_now();
  free(left.data);
}

TEST(an_image_that_was_never_written_is_sealed_in_the_journal) {
  name_files(test_folder());
  make_base();
  uint64_t before = sum_now();
  /* Free pages, taken and given back, stay in the cache with content that no file ever had. The vacuum then makes
   * trunk pages of some, for which SQLite journals them as they are in the cache. */
  CHECK(!run_and_die("DELETE FROM t WHERE id > 5 AND id <> 39; BEGIN;" ROWS(
                         800, 830) "INSERT INTO t SELECT i, 'x', blob(i, 1, 900) FROM n; ROLLBACK",
                     "PRAGMA incremental_vacuum", FAULT_FTRUNCATE, 1));
  bytes hot_journal = load(journal);
  CHECK(hot_journal.len > 1000 && (unsigned char)hot_journal.data[0] == 0xd9);
  free(hot_journal.data);
  CHECK(sum_now() != before);
  check_sound_now();
}

/* ---- Failing calls ---- */

/* CHANGE with a fault; then all or nothing, and all if it was acknowledged. Returns whether the fault was met. */
static bool change_with_fault(const bytes *base, uint64_t before, uint64_t after, fault_call call, uint64_t at,
                              bool for_good, fault_effect effect) {
  sqlite3 *db = NULL;
  store(file, base);
  unlink(journal);
  fault_set(call, at, for_good, effect);
  int rc = kit_try_open(file, 512, &db);
  if (rc == SQLITE_OK) rc = kit_exec(db, CHANGE);
  sqlite3_close(db);
  bool met = fault_hits() > 0;
  fault_clear();
  uint64_t sum = sum_now();
  if (effect == FAULT_EINTR || effect == FAULT_SHORT || !met)
    CHECKF(rc == SQLITE_OK, "%s %llu: %d", fault_call_name(call), (unsigned long long)at, rc);
  CHECKF(rc == SQLITE_OK ? sum == after : sum == before || sum == after, "%s %llu, effect %d%s: %d",
         fault_call_name(call), (unsigned long long)at, (int)effect, for_good ? " for good" : "", rc);
  check_sound_now();
  return met;
}

static void each_call_fails(fault_call call, bool for_good, fault_effect effect) {
  name_files(test_folder());
  make_base();
  uint64_t before = sum_now(), met = 0;
  bytes base = load(file);
  CHECK(run_and_die("", CHANGE, FAULT_ANY, 0));
  uint64_t after = sum_now();
  fault_install(&os_real);
  for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(4)) {
    if (!change_with_fault(&base, before, after, call, at, for_good, effect)) break;
    met++;
  }
  CHECKF(met > 2, "only %llu faults", (unsigned long long)met);
  fault_uninstall();
  free(base.data);
}

TEST_SLOW(any_call_fails_once, 300) { each_call_fails(FAULT_ANY, false, FAULT_EIO); }
TEST_SLOW(any_call_fails_for_good, 300) { each_call_fails(FAULT_ANY, true, FAULT_EIO); }
TEST_SLOW(the_disk_is_full_once, 300) { each_call_fails(FAULT_PWRITE, false, FAULT_ENOSPC); }
TEST_SLOW(the_disk_is_full_for_good, 300) { each_call_fails(FAULT_PWRITE, true, FAULT_ENOSPC); }
TEST_SLOW(any_call_is_interrupted, 300) { each_call_fails(FAULT_ANY, false, FAULT_EINTR); }
TEST_SLOW(reads_are_short, 300) { each_call_fails(FAULT_PREAD, false, FAULT_SHORT); }
TEST_SLOW(all_reads_are_short, 300) { each_call_fails(FAULT_PREAD, true, FAULT_SHORT); }
TEST_SLOW(writes_are_short, 300) { each_call_fails(FAULT_PWRITE, false, FAULT_SHORT); }
TEST_SLOW(all_writes_are_short, 300) { each_call_fails(FAULT_PWRITE, true, FAULT_SHORT); }

TEST(a_failed_sync_is_never_forgotten) {
  name_files(test_folder());
  make_base();
  fault_install(&os_real);
  for (uint64_t at = 1; at <= 4; at++) {
    uint64_t before = sum_now();
    sqlite3 *db = kit_open(file, 512);
    fault_set(FAULT_SYNC, at, false, FAULT_EIO);
    int rc = kit_exec(db, "UPDATE t SET k = k || 'x' WHERE id = 1");
    CHECKF(fault_hits() == 1 && (rc & 0xff) == SQLITE_IOERR, "sync %llu: %d", (unsigned long long)at, rc);
    kit_exec(db, "ROLLBACK");
    rc = kit_exec(db, "UPDATE t SET k = 'second' WHERE id = 2"); /* the disk is well again, but who knows */
    CHECKF((rc & 0xff) == SQLITE_IOERR, "after sync %llu: %d", (unsigned long long)at, rc);
    CHECK(kit_state(db).last_errno == EIO);
    sqlite3_close(db);
    fault_clear();
    uint64_t sum = sum_now();
    db = kit_open(file, 512);
    KIT_OK(db, "UPDATE t SET k = k || 'y' WHERE id = 3");
    sqlite3_close(db);
    CHECK(at == 4 || sum == before); /* the fourth is that of the emptied journal */
    check_sound_now();
  }
  fault_uninstall();
}

TEST_SLOW(memory_fails_anywhere, 300) {
  fault_alloc_install();
  fault_alloc_set(0, false);
  name_files(test_folder());
  make_base();
  uint64_t before = sum_now(), after = 0;
  bytes base = load(file);
  CHECK(run_and_die("", CHANGE, FAULT_ANY, 0));
  after = sum_now();
  for (int for_good = 0; for_good < 2; for_good++) {
    for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(40)) {
      sqlite3 *db = NULL;
      store(file, &base);
      unlink(journal);
      fault_alloc_set(at, for_good);
      int rc = kit_try_open(file, 512, &db);
      if (rc == SQLITE_OK) rc = kit_exec(db, CHANGE);
      sqlite3_close(db);
      bool met = fault_alloc_hits() > 0;
      fault_alloc_set(0, false);
      uint64_t sum = sum_now();
      CHECKF(rc == SQLITE_OK ? sum == after : sum == before || sum == after, "allocation %llu: %d",
             (unsigned long long)at, rc);
      check_sound_now();
      if (!met) break;
    }
  }
  free(base.data);
}

/* ---- Power cuts ---- */

static const char *const steps[] = {
    KIT_TABLE,
    FILL,
    "DELETE FROM t WHERE id % 4 = 0",
    CHANGE,
    "PRAGMA incremental_vacuum(4)",
    "BEGIN; UPDATE t SET k = 'undone'; ROLLBACK; INSERT INTO t VALUES(500, 'after', blob(500, 1, 2000))",
    SPILL "BEGIN; UPDATE t SET v = blob(id, 5, 350), k = 's' || k; COMMIT; PRAGMA cache_spill=OFF",
    "DELETE FROM t WHERE id > 20",
    "PRAGMA incremental_vacuum",
    ROWS(700, 720) "INSERT INTO t SELECT i, 'late' || i, blob(i, 1, 500) FROM n",
};
enum { STEPS = sizeof steps / sizeof steps[0] };

/* Runs the steps until one fails; sums[i] is the content before step i. Says how many were acknowledged. */
static int run_steps(uint64_t *sums) {
  sqlite3 *db = NULL;
  int done = 0;
  if (kit_try_open(file, 512, &db) == SQLITE_OK) {
    while (done < STEPS && kit_exec(db, steps[done]) == SQLITE_OK) {
      done++;
      if (sums && kit_sum(db, &sums[done]) != SQLITE_OK) test_failed(__FILE__, __LINE__, "step %d", done);
    }
  }
  sqlite3_close(db);
  return done;
}

/* One possible world after the cut: it must be what was acknowledged, or one step more. */
static void check_world(const uint64_t *sums, int done, const char *folder, uint64_t sync, uint64_t seed) {
  uint64_t sum = 0, seen = 0;
  sqlite3 *db = NULL;
  name_files(folder);
  int reader = kit_sum_read_only(file, &seen); /* nothing has been rolled back yet */
  int rc = kit_try_open(file, 512, &db);
  if (rc == SQLITE_OK) rc = kit_sum(db, &sum);
  CHECKF(rc == SQLITE_OK ? reader == rc && seen == sum : reader != SQLITE_OK, "sync %llu, world %llu: a reader says %d",
         (unsigned long long)sync, (unsigned long long)seed, reader);
  if (done <= 1 && rc == SQLITE_ERROR)
    sum = 0; /* no table yet */
  else
    CHECKF(rc == SQLITE_OK, "sync %llu, world %llu: %d %s", (unsigned long long)sync, (unsigned long long)seed, rc,
           sqlite3_errmsg(db));
  CHECKF(sum == sums[done] || (done < STEPS && sum == sums[done + 1]), "sync %llu, world %llu: step %d is torn",
         (unsigned long long)sync, (unsigned long long)seed, done);
  if (sum) kit_check_sound(db);
  CHECK(kit_state(db).damaged_reads == 0 && !kit_state(db).damaged_journal);
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

/* The power fails again while the world is recovering. */
static void cut_again(const uint64_t *sums, int done, const char *world, uint64_t sync, uint64_t seed) {
  char second[1200];
  uint64_t sum = 0;
  snprintf(second, sizeof second, "%s-2", world);
  for (uint64_t n = 1;; n++) {
    char copy[1200];
    snprintf(copy, sizeof copy, "%s-1", world);
    test_remove_tree(copy);
    test_remove_tree(second);
    test_copy_tree(world, copy);
    simdisk_start(copy);
    simdisk_cut_at(n);
    name_files(copy);
    (void)kit_sum_file(file, &sum);
    bool again = simdisk_is_cut();
    if (again) simdisk_cut(seed + n, second);
    simdisk_stop();
    if (!again) return;
    check_world(sums, done, second, sync, seed);
  }
}

TEST_SLOW(power_cut_at_every_sync, 900) {
  uint64_t sums[STEPS + 1] = {0}, first = test_seed(), worlds = test_full() ? 60 : 5, total = 0;
  const char *folder = test_folder();
  name_files(folder);
  CHECK(run_steps(sums) == STEPS);
  for (int i = 0; i < STEPS; i++) CHECKF(i == 4 || i == 8 || sums[i] != sums[i + 1], "step %d changes nothing", i);
  for (uint64_t sync = 1;; sync++) {
    char disk[1024], world[1024];
    snprintf(disk, sizeof disk, "%s/disk", folder);
    CHECK(mkdir(disk, 0700) == 0);
    simdisk_start(disk);
    simdisk_cut_at(sync);
    name_files(disk);
    int done = run_steps(NULL);
    bool cut = simdisk_is_cut();
    CHECK(cut || done == STEPS);
    for (uint64_t i = 0; i < worlds; i++) {
      snprintf(world, sizeof world, "%s/world-%llu", folder, (unsigned long long)i);
      simdisk_cut(first + sync * 1000 + i, world);
    }
    simdisk_stop();
    for (uint64_t i = 0; i < worlds; i++) {
      snprintf(world, sizeof world, "%s/world-%llu", folder, (unsigned long long)i);
      if (i < 2 && (test_full() || sync % 5 == 0)) cut_again(sums, done, world, sync, first + sync * 1000 + i);
      check_world(sums, done, world, sync, i);
      test_remove_tree(world);
    }
    test_remove_tree(disk);
    total++;
    if (!cut) break;
  }
  CHECKF(total > 40, "only %llu syncs", (unsigned long long)total);
}

/* The disk itself: a test of the tests. */
TEST(the_simulated_disk_loses_what_was_not_synced) {
  const char *folder = test_folder();
  char disk[1024], a[1100], world[1024], in_world[1100];
  bool lost = false, kept = false, torn = false, absent = false;
  snprintf(disk, sizeof disk, "%s/disk", folder);
  snprintf(a, sizeof a, "%s/a", disk);
  CHECK(mkdir(disk, 0700) == 0);
  simdisk_start(disk);
  char old_data[2048], new_data[2048];
  memset(old_data, 'o', sizeof old_data);
  memset(new_data, 'n', sizeof new_data);
  int fd = os_api->open(a, O_RDWR | O_CREAT, 0600), dir = os_api->open(disk, O_RDONLY | O_DIRECTORY, 0);
  CHECK(fd >= 0 && dir >= 0);
  CHECK(os_api->pwrite(fd, old_data, sizeof old_data, 0) == sizeof old_data);
  CHECK(os_api->fdatasync(fd) == 0);
  for (int named = 0; named < 2; named++) {
    for (uint64_t seed = 0; seed < 60; seed++) {
      snprintf(world, sizeof world, "%s/w-%d-%llu", folder, named, (unsigned long long)seed);
      snprintf(in_world, sizeof in_world, "%s/a", world);
      simdisk_cut(seed, world);
      struct stat st;
      if (stat(in_world, &st) < 0) {
        CHECK(!named);
        absent = true;
        continue;
      }
      bytes b = load(in_world);
      CHECK(b.len == sizeof old_data);
      bool is_old = memcmp(b.data, old_data, b.len) == 0, is_new = memcmp(b.data, new_data, b.len) == 0;
      for (size_t i = 0; i < b.len; i++) CHECK(b.data[i] == b.data[i / 512 * 512]);
      CHECK(named || is_old);
      if (named) {
        lost |= is_old;
        kept |= is_new;
        torn |= !is_old && !is_new;
      }
      free(b.data);
    }
    CHECK(os_api->fsync(dir) == 0);
    if (!named) CHECK(os_api->pwrite(fd, new_data, sizeof new_data, 0) == sizeof new_data);
  }
  CHECK(absent && lost && kept && torn);
  simdisk_cut_at(1);
  CHECK(os_api->fdatasync(fd) == -1 && errno == EIO && simdisk_is_cut());
  CHECK(os_api->pwrite(fd, "x", 1, 0) == -1 && errno == EIO);
  os_api->close(fd);
  os_api->close(dir);
  simdisk_stop();
}
