/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal_read.c - connections that may only read, beside journals of all kinds, by the VFS alone: they read
 * through a hot one, leave alone what a writer would set aside, write nothing, and examine a journal once. */
#include "support/journal_kit.h"
#include "vfs/journal.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading through ---- */

static uint64_t written;
static ssize_t counting_pwrite(int fd, const void *buf, size_t n, off_t off) {
  written += n;
  return os_real.pwrite(fd, buf, n, off);
}
static int counting_ftruncate(int fd, off_t size) {
  written++;
  return os_real.ftruncate(fd, size);
}

TEST(a_reader_reads_through_a_hot_journal_and_writes_nothing) {
  static os_calls table;
  journal_crash c = journal_make_crash(JOURNAL_SPILL);
  uint64_t sum = 0;
  sqlite3 *reader = NULL;
  journal_store(journal_db, &c.db[2]);
  journal_store(journal_file, &c.journal);
  table = os_real;
  table.pwrite = counting_pwrite;
  table.ftruncate = counting_ftruncate;
  os_api = &table;
  CHECK(sqlite3_open_v2(journal_db, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
  for (int i = 0; i < 3; i++) CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  KIT_OK(reader, "BEGIN; SELECT count(*) FROM t");
  CHECK(kit_state(reader).journal_pages > 5);
  kit_check_sound(reader);
  KIT_OK(reader, "COMMIT");
  CHECK(written == 0);
  os_api = &os_real;
  journal_check_same(journal_db, &c.db[2], "a reader");
  journal_check_same(journal_file, &c.journal, "a reader");
  /* somebody rolls it back, and writes: the reader goes on */
  CHECK(journal_sum_now() == c.before);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  CHECK(kit_state(reader).journal_pages == 0);
  sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
  KIT_OK(db, JOURNAL_CHANGE);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.after);
  /* a second crash */
  sqlite3_close(db);
  journal_store(journal_db, &c.db[1]);
  journal_store(journal_file, &c.journal);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  sqlite3_close(reader);
  journal_free_crash(&c);
}

TEST(a_living_writers_journal_is_not_read_through) {
  uint64_t before, sum = 0;
  journal_make_base();
  before = journal_sum_now();
  sqlite3 *reader = NULL, *writer = kit_open(journal_db, JOURNAL_PAGE), *second = NULL;
  CHECK(sqlite3_open_v2(journal_db, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
  CHECK(sqlite3_open_v2(journal_db, &second, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
  KIT_OK(reader, "BEGIN; SELECT count(*) FROM t");
  KIT_OK(writer, "BEGIN IMMEDIATE; UPDATE t SET k = 'w'");
  CHECK(kit_sum(second, &sum) == SQLITE_OK && sum == before);
  CHECK(kit_exec(writer, "COMMIT") == SQLITE_BUSY); /* the journal is filled in now, and the reader is in the way */
  KIT_OK(reader, "SELECT sum(length(v)) FROM t");
  CHECK(kit_state(reader).journal_pages == 0);
  KIT_OK(writer, "ROLLBACK");
  KIT_OK(reader, "SELECT sum(length(k)) FROM t; COMMIT");
  CHECK(kit_sum(second, &sum) == SQLITE_OK && sum == before && kit_state(second).journal_pages == 0);
  sqlite3_close(reader);
  sqlite3_close(second);
  sqlite3_close(writer);
}

TEST_SLOW(calls_fail_while_reading_through, 120) {
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0, met = 0;
  journal_store(journal_db, &c.db[2]);
  journal_store(journal_file, &c.journal);
  fault_install(&os_real);
  for (int effect = 0; effect < 3; effect++) {
    static const fault_effect effects[] = {FAULT_EIO, FAULT_EINTR, FAULT_SHORT};
    fault_call call = effects[effect] == FAULT_SHORT ? FAULT_PREAD : FAULT_ANY;
    for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(4)) {
      fault_set(call, at, false, effects[effect]);
      int rc = kit_sum_read_only(journal_db, &sum);
      bool hit = fault_hits() > 0;
      fault_clear();
      CHECKF(rc == SQLITE_OK ? sum == c.before
                             : effect == 0 && hit && (rc & 0xff) != SQLITE_CORRUPT && rc != SQLITE_IOERR_DATA,
             "effect %d at call %llu: %d", effect, (unsigned long long)at, rc);
      if (!hit) break;
      met++;
    }
  }
  fault_uninstall();
  CHECK(met > 20);
  journal_check_same(journal_db, &c.db[2], "readers");
  journal_check_same(journal_file, &c.journal, "readers");
  journal_free_crash(&c);
}

TEST_SLOW(memory_fails_while_reading_through, 120) {
  fault_alloc_install();
  fault_alloc_set(0, false);
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0, met = 0;
  journal_store(journal_db, &c.db[2]);
  journal_store(journal_file, &c.journal);
  for (int for_good = 0; for_good < 2; for_good++)
    for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(8)) {
      fault_alloc_set(at, for_good);
      int rc = kit_sum_read_only(journal_db, &sum);
      bool hit = fault_alloc_hits() > 0;
      fault_alloc_set(0, false);
      CHECKF(rc == SQLITE_OK ? sum == c.before : hit, "allocation %llu: %d", (unsigned long long)at, rc);
      CHECKF(rc != SQLITE_IOERR_DATA, "allocation %llu: no memory is no damage", (unsigned long long)at);
      if (!hit) break;
      met++;
    }
  CHECK(met > 20);
  journal_check_same(journal_file, &c.journal, "readers");
  journal_free_crash(&c);
}

/* An image that is damaged after it was proven is an error, not an answer. */
TEST(a_journal_that_is_damaged_while_it_is_read) {
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0;
  sqlite3 *reader = NULL;
  journal_store(journal_db, &c.db[1]);
  journal_store(journal_file, &c.journal);
  CHECK(sqlite3_open_v2(journal_db, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
  KIT_OK(reader, "PRAGMA cache_size=1; BEGIN; SELECT count(*) FROM sqlite_schema");
  int fd = open(journal_file, O_RDWR | O_CLOEXEC);
  for (off_t at = JOURNAL_SECTOR + 100; at < (off_t)c.journal.len; at += JOURNAL_PAGE + 8)
    CHECK(pwrite(fd, "damage", 6, at) == 6);
  close(fd);
  CHECK(kit_exec(reader, "SELECT sum(length(v)) FROM t") == SQLITE_IOERR_DATA);
  kit_exec(reader, "ROLLBACK");
  CHECK(kit_sum(reader, &sum) == SQLITE_IOERR_DATA);
  sqlite3_close(reader);
  journal_free_crash(&c);
}

/* ---- Examined once ---- */

static ino_t watched;
static uint64_t watched_reads;
static ssize_t watching_pread(int fd, void *buf, size_t n, off_t off) {
  struct stat sb;
  if (fstat(fd, &sb) == 0 && sb.st_ino == watched) watched_reads++;
  return os_real.pread(fd, buf, n, off);
}

static os_calls watch_journal(void) {
  struct stat sb;
  os_calls table = os_real;
  CHECK(stat(journal_file, &sb) == 0);
  watched = sb.st_ino;
  table.pread = watching_pread;
  return table;
}

/* Reads of the journal in one transaction, which sees `sum`. */
static uint64_t reads_for(sqlite3 *reader, uint64_t sum) {
  uint64_t seen = 0, was = watched_reads;
  CHECK(kit_sum(reader, &seen) == SQLITE_OK);
  CHECKF(seen == sum, "another answer");
  return watched_reads - was;
}

static sqlite3 *open_reader(void) {
  sqlite3 *reader = NULL;
  CHECK(sqlite3_open_v2(journal_db, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
  return reader;
}

/* With a reader of its own, and the journal `with` beside the database `db`. */
static void check_judged_once(const journal_bytes *db, const journal_bytes *with, uint64_t sum, bool writable,
                              const char *what) {
  enum { TIMES = 20 };
  uint64_t later = 0;
  journal_store(journal_db, db);
  journal_store(journal_file, with);
  os_calls table = watch_journal();
  os_api = &table;
  sqlite3 *reader = open_reader();
  uint64_t first = reads_for(reader, sum);
  for (int i = 0; i < TIMES; i++) later += reads_for(reader, sum);
  CHECKF(first > 0 && later <= TIMES, "%s: %llu reads, then %llu in %d transactions", what, (unsigned long long)first,
         (unsigned long long)later, TIMES);
  /* not at all when a writer has ended it */
  if (writable) (void)journal_sum_now();
  if (writable) CHECKF(reads_for(reader, sum) == 0, "%s", what);
  os_api = &os_real;
  sqlite3_close(reader);
  journal_take_asides();
}

TEST(a_journal_is_examined_once) {
  static char zeros[20000];
  journal_crash c = journal_make_crash("");
  journal_bytes pages = {c.db[0].data + JOURNAL_PAGE, c.db[0].len - JOURNAL_PAGE}, nothing = {zeros, sizeof zeros};
  /* the header is wrong, and the database equals every image */
  journal_bytes flipped = {malloc(c.journal.len), c.journal.len};
  memcpy(flipped.data, c.journal.data, flipped.len);
  flipped.data[JOURNAL_HEADER_BYTES] ^= 1;
  check_judged_once(&c.db[0], &pages, c.before, true, "a stray one");
  check_judged_once(&c.db[0], &flipped, c.before, true, "a stray one of this database");
  check_judged_once(&c.db[0], &nothing, c.before, false, "one that was never filled in");
  free(flipped.data);
  journal_free_crash(&c);
}

/* What a verdict rests on: the database's commit, and the journal as it was. */
TEST(a_cached_verdict_expires_with_what_it_was_based_on) {
  journal_crash c = journal_make_crash("");
  journal_bytes journal = {malloc(c.journal.len), c.journal.len};
  uint64_t sum = 0;
  struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
  memcpy(journal.data, c.journal.data, journal.len);
  CHECK(journal_sum_now() == c.before);
  sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
  KIT_OK(db, "UPDATE t SET k = k || 'x' WHERE id % 2 = 0");
  sqlite3_close(db);
  uint64_t newest = journal_sum_now();
  /* of another moment, until somebody puts the database back to its own */
  journal_store(journal_file, &journal);
  sqlite3 *reader = open_reader();
  for (int i = 0; i < 3; i++) CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == newest);
  journal_store(journal_db, &c.db[2]);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before && kit_state(reader).journal_pages == 0);
  sqlite3_close(reader);
  /* every image equals its page, until one is changed under the same header and length */
  journal.data[JOURNAL_HEADER_BYTES] ^= 1;
  journal_store(journal_db, &c.db[0]);
  journal_store(journal_file, &journal);
  reader = open_reader();
  for (int i = 0; i < 3; i++) CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  int fd = open(journal_file, O_RDWR | O_CLOEXEC);
  CHECK(pwrite(fd, "damage", 6, JOURNAL_SECTOR + 100) == 6 && futimens(fd, long_ago) == 0);
  close(fd);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before); /* damaged, but the database is whole without it */
  /* another file under its name */
  journal_store(journal_file, &(journal_bytes){journal.data, 100});
  CHECK(unlink(journal_file) == 0);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  journal_store(journal_db, &c.db[1]);
  journal_store(journal_file, &c.journal);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  sqlite3_close(reader);
  free(journal.data);
  journal_free_crash(&c);
}

/* Whether there is a journal cannot be told through a folder that somebody turned into a link: that is no "there is
 * none". */
TEST(a_folder_that_became_a_link_is_an_error) {
  char moved[1100];
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0;
  journal_store(journal_db, &c.db[1]);
  journal_store(journal_file, &c.journal);
  sqlite3 *reader = open_reader(), *writer = NULL;
  CHECK(sqlite3_open_v2(journal_db, &writer, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
  snprintf(moved, sizeof moved, "%s-moved", journal_folder);
  CHECK(rename(journal_folder, moved) == 0 && symlink(moved, journal_folder) == 0);
  int rc = kit_sum(reader, &sum);
  CHECKF((rc & 0xff) == SQLITE_IOERR && rc != SQLITE_IOERR_DATA, "a reader says %d", rc);
  rc = kit_sum(writer, &sum);
  CHECKF((rc & 0xff) == SQLITE_IOERR && rc != SQLITE_IOERR_DATA, "a writer says %d", rc);
  CHECK(unlink(journal_folder) == 0 && rename(moved, journal_folder) == 0);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  CHECK(kit_sum(writer, &sum) == SQLITE_OK && sum == c.before && journal_take_asides() == 0);
  sqlite3_close(reader);
  sqlite3_close(writer);
  journal_free_crash(&c);
}

/* ---- Hard links ---- */

TEST(a_database_with_two_names_is_read_only) {
  char other[1100];
  journal_make_base();
  uint64_t sum = 0, before = journal_sum_now();
  sqlite3 *early = kit_open(journal_db, JOURNAL_PAGE), *late = NULL;
  snprintf(other, sizeof other, "%s/other.db", journal_folder);
  CHECK(link(journal_db, other) == 0);
  for (int i = 0; i < 2; i++) {
    const char *name = i ? other : journal_db;
    CHECK(sqlite3_open_v2(name, &late, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, VFS_NAME) == SQLITE_OK);
    CHECK(kit_sum(late, &sum) == SQLITE_OK && sum == before);
    CHECK((kit_exec(late, "UPDATE t SET k = 'w'") & 0xff) == SQLITE_READONLY && kit_state(late).linked);
    sqlite3_close(late);
  }
  CHECK(kit_sum(early, &sum) == SQLITE_OK && sum == before);
  CHECK((kit_exec(early, "UPDATE t SET k = 'w'") & 0xff) == SQLITE_READONLY && kit_state(early).linked);
  CHECK(unlink(other) == 0);
  KIT_OK(early, "UPDATE t SET k = 'w'");
  sqlite3_close(early);
}
