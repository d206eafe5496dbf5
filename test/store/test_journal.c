/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal.c - which journals are believed: the table of decisions in docs/FORMAT.md, row by row, by the VFS alone.
 * A database that is healthy is never refused, and one that a transaction has written half of is rolled back or
 * refused, never taken as it is. One that it has written wholly is rolled back, or taken as it is if the journal is
 * damaged. */
#include "support/journal_kit.h"
#include "vfs/journal.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const moments[] = {"before", "half-way", "after"};

typedef enum fate { REFUSED, UNDONE, ASIDE, AS_IT_IS } fate;

/* With a journal that is damaged where it matters. */
static fate fate_without_journal(int moment) { return moment == 1 ? REFUSED : ASIDE; }

/* What becomes of the database at a moment, with that journal. A reader sees the same as a writer, and changes nothing.
 */
static fate try_with(const journal_crash *c, int moment, const journal_bytes *with, const char *what, size_t at) {
  char text[200];
  uint64_t sum = 0, seen = 0;
  snprintf(text, sizeof text, "%s at %zu of %zu, database %s", what, at, c->journal.len, moments[moment]);
  journal_store(journal_db, &c->db[moment]);
  journal_store(journal_file, with);
  int reader = kit_sum_read_only(journal_db, &seen);
  journal_check_same(journal_db, &c->db[moment], text);
  journal_check_same(journal_file, with, text);
  int rc = kit_sum_file(journal_db, &sum);
  CHECKF(reader == rc && (rc != SQLITE_OK || seen == sum), "%s: a reader says %d, a writer %d", text, reader, rc);
  int asides = journal_take_asides();
  if (rc != SQLITE_OK) {
    CHECKF(rc == SQLITE_IOERR_DATA && !asides, "%s: %d", text, rc);
    journal_check_same(journal_file, with, text);
    journal_check_same(journal_db, &c->db[moment], text);
    return REFUSED;
  }
  CHECKF(asides <= 1, "%s", text);
  if (asides) {
    /* whatever was set aside: the database was not changed */
    journal_check_same(journal_db, &c->db[moment], text);
    return ASIDE;
  }
  CHECKF(sum == c->before || sum == c->after, "%s: a mix", text);
  return sum == c->before && moment != 0 ? UNDONE : AS_IT_IS;
}

/* The first sector with each byte changed, in several ways. */
static void flip_header(const journal_crash *c, bool one_segment) {
  journal_bytes copy = {malloc(c->journal.len), c->journal.len};
  static const unsigned char ways[] = {0x01, 0x80, 0xff, 0};
  memcpy(copy.data, c->journal.data, copy.len);
  for (size_t i = 0; i < JOURNAL_HEADER_FULL + 4; i++)
    for (size_t w = 0; w < sizeof ways; w++) {
      unsigned char was = (unsigned char)c->journal.data[i];
      copy.data[i] = (char)(ways[w] ? was ^ ways[w] : 0);
      if ((unsigned char)copy.data[i] == was) continue;
      for (int m = 0; m < 3; m++) {
        fate f = try_with(c, m, &copy, "flip", i);
        /* the magic is proven by the checksum, a count may be one too high, and the rest is unused */
        bool raised = i == JOURNAL_HEADER_COUNT_OFF && (unsigned char)copy.data[i] == was + 1;
        bool harmless = i < 8 || i >= JOURNAL_HEADER_FULL || raised;
        if (m > 0)
          CHECKF(f == (harmless ? UNDONE : fate_without_journal(m)), "flip at %zu, database %s: %d", i, moments[m],
                 (int)f);
        if (m == 0 && one_segment) CHECKF(f != REFUSED, "flip at %zu: a healthy store is refused", i);
      }
      copy.data[i] = (char)was;
    }
  free(copy.data);
}

static void cut_journal(const journal_crash *c) {
  journal_bytes cut = {c->journal.data, 0};
  /* what is left of less than most of the magic could be anything */
  for (cut.len = 5; cut.len < c->journal.len;
       cut.len += test_full() || cut.len < 70 ? 1 : 1 + test_below(2 * JOURNAL_PAGE)) {
    for (int m = 1; m < 3; m++) {
      fate f = try_with(c, m, &cut, "cut", cut.len);
      /* nothing of it was counted that the last sector lacks */
      CHECKF(f == fate_without_journal(m) || cut.len + JOURNAL_PAGE > c->journal.len, "cut to %zu, database %s: %d",
             cut.len, moments[m], (int)f);
    }
  }
  for (cut.len = JOURNAL_SECTOR; cut.len + JOURNAL_SECTOR < c->journal.len; cut.len += JOURNAL_SECTOR)
    CHECK(try_with(c, 1, &cut, "cut", cut.len) == REFUSED && try_with(c, 2, &cut, "cut", cut.len) == ASIDE);
}

/* Parts of the header zeroed, as bad sectors and careless programs do. */
static void zero_header(const journal_crash *c) {
  static const size_t ranges[][2] = {{0, 4},   {0, 8},   {0, 12},  {0, 28}, {0, 32}, {8, 12},
                                     {28, 40}, {28, 60}, {40, 60}, {4, 60}, {0, 512}};
  journal_bytes copy = {malloc(c->journal.len), c->journal.len};
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
    memcpy(copy.data, c->journal.data, copy.len);
    memset(copy.data + ranges[r][0], 0, ranges[r][1] - ranges[r][0]);
    for (int m = 1; m < 3; m++) {
      fate f = try_with(c, m, &copy, "zeroed", ranges[r][0] * 1000 + ranges[r][1]);
      CHECKF(f == fate_without_journal(m) || f == UNDONE, "zeroed %zu to %zu, database %s: %d", ranges[r][0],
             ranges[r][1], moments[m], (int)f);
    }
  }
  free(copy.data);
}

/* Somebody's program, or a dying disk: blocks of zeros, of noise and of words, several at once. */
static void damage_at_random(const journal_crash *c) {
  journal_bytes copy = {malloc(c->journal.len), c->journal.len};
  static const char zeros[JOURNAL_SECTOR];
  size_t undone = 0, refused = 0;
  for (int round = 0; round < (test_full() ? 3000 : 150); round++) {
    memcpy(copy.data, c->journal.data, c->journal.len);
    copy.len = c->journal.len;
    for (uint64_t n = 1 + test_below(3), how = test_below(4); n > 0; n--, how = test_below(4)) {
      size_t at = test_below(2) ? 0 : test_below(copy.len), len = 1 + test_below(copy.len / 4);
      if (len > copy.len - at) len = copy.len - at;
      if (how == 0) memset(copy.data + at, 0, len);
      if (how == 1)
        for (size_t i = 0; i < len; i++) copy.data[at + i] = (char)test_below(256);
      if (how == 2)
        for (size_t i = 0; i < len; i++) copy.data[at + i] = "corrupted "[i % 10];
      if (how == 3) copy.len -= len / 2;
    }
    /* one that is zeros looks as after a power cut, unless an image says otherwise, which may be destroyed as well */
    if (memcmp(copy.data, zeros, sizeof zeros) == 0) continue;
    fate f = try_with(c, 1, &copy, "random", (size_t)round);
    CHECKF(f == REFUSED || f == UNDONE, "round %d: %d", round, (int)f);
    undone += f == UNDONE;
    refused += f == REFUSED;
    f = try_with(c, 2, &copy, "random", (size_t)round);
    CHECKF(f == ASIDE || f == UNDONE, "round %d: %d", round, (int)f);
  }
  CHECKF(refused > 20, "%zu refused, %zu undone", refused, undone);
  free(copy.data);
}

TEST_SLOW(a_hot_journal_damaged_at_random, 300) {
  test_srand(test_seed());
  journal_crash c = journal_make_crash("");
  damage_at_random(&c);
  journal_free_crash(&c);
}

TEST_SLOW(a_hot_journal_with_a_damaged_header, 300) {
  journal_crash c = journal_make_crash("");
  for (int m = 1; m < 3; m++) CHECK(try_with(&c, m, &c.journal, "whole", 0) == UNDONE);
  CHECK(try_with(&c, 0, &c.journal, "whole", 0) == AS_IT_IS);
  flip_header(&c, true);
  cut_journal(&c);
  zero_header(&c);
  journal_free_crash(&c);
}

TEST_SLOW(a_hot_journal_of_many_segments_with_a_damaged_header, 300) {
  journal_crash c = journal_make_crash(JOURNAL_SPILL);
  CHECKF(c.journal.data[JOURNAL_HEADER_COUNT_OFF] > 2, "%d segments", c.journal.data[JOURNAL_HEADER_COUNT_OFF]);
  for (int m = 1; m < 3; m++) CHECK(try_with(&c, m, &c.journal, "whole", 0) == UNDONE);
  flip_header(&c, false);
  cut_journal(&c);
  journal_free_crash(&c);
}

/* ---- What is no journal of this database ---- */

static void check_stray(const journal_crash *c, const void *data, size_t len, const char *what) {
  journal_bytes with = {(char *)(uintptr_t)data, len};
  CHECKF(try_with(c, 0, &with, what, len) == ASIDE, "%s", what);
  /* and the database can be written to */
  journal_store(journal_file, &with);
  sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
  KIT_OK(db, "UPDATE t SET k = 'later' WHERE id = 1");
  kit_check_sound(db);
  sqlite3_close(db);
  CHECKF(journal_take_asides() == 1, "%s", what);
}

TEST_SLOW(what_is_no_journal_is_set_aside, 120) {
  journal_crash c = journal_make_crash("");
  static char noise[5000];
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)test_below(256);
  noise[0] = 'n';
  check_stray(&c, "x", 1, "one byte");
  for (size_t len = 1; len < 5; len++) check_stray(&c, sqf_journal_magic, len, "the begin of a journal");
  check_stray(&c, "corrupted", 9, "a word");
  for (size_t len = 2; len < sizeof noise; len += 1 + test_below(len)) check_stray(&c, noise, len, "noise");
  check_stray(&c, c.db[0].data, c.db[0].len, "the database itself");
  check_stray(&c, c.db[0].data + JOURNAL_PAGE, c.db[0].len - JOURNAL_PAGE, "pages of the database");
  /* zeros say that nothing was begun */
  memset(noise, 0, sizeof noise);
  journal_bytes zeros = {noise, sizeof noise};
  CHECK(try_with(&c, 0, &zeros, "zeros", 0) == AS_IT_IS);
  zeros.len = 0;
  CHECK(try_with(&c, 0, &zeros, "emptied", 0) == AS_IT_IS);
  journal_free_crash(&c);
}

/* Its length is nobody's word: no more is read of it than this database could have needed. */
TEST(a_huge_journal_of_nothing_takes_no_time) {
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0;
  for (int how = 0; how < 2; how++) {
    journal_store(journal_db, &c.db[0]);
    test_write_file(journal_file, how ? "noise" : "", how ? 5 : 0);
    CHECK(truncate(journal_file, (off_t)1 << 42) == 0);
    fault_install(&os_real);
    uint64_t before = fault_count(FAULT_PREAD);
    CHECK(kit_sum_read_only(journal_db, &sum) == SQLITE_OK && sum == c.before);
    CHECK(kit_sum_file(journal_db, &sum) == SQLITE_OK && sum == c.before);
    CHECKF(fault_count(FAULT_PREAD) - before < 5000, "%llu reads",
           (unsigned long long)(fault_count(FAULT_PREAD) - before));
    fault_uninstall();
    CHECK(unlink(journal_file) == 0 || errno == ENOENT);
    journal_take_asides();
  }
  journal_free_crash(&c);
}

TEST(a_link_a_pipe_or_a_folder_in_place_of_a_journal_is_set_aside) {
  char target[1100];
  journal_crash c = journal_make_crash("");
  snprintf(target, sizeof target, "%s/target", journal_folder);
  for (int how = 0; how < 4; how++) {
    uint64_t sum = 0;
    journal_store(journal_db, &c.db[0]);
    CHECK(unlink(journal_file) == 0 || errno == ENOENT);
    test_write_file(target, "precious", 8);
    if (how == 0) CHECK(symlink(target, journal_file) == 0);
    if (how == 1) CHECK(mkfifo(journal_file, 0600) == 0);
    if (how == 2) CHECK(mkdir(journal_file, 0700) == 0);
    if (how == 3) CHECK(symlink("/nonexistent/place", journal_file) == 0);
    CHECKF(kit_sum_read_only(journal_db, &sum) == SQLITE_OK && sum == c.before, "way %d", how);
    sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
    KIT_OK(db, "UPDATE t SET k = 'later' WHERE id = 1");
    sqlite3_close(db);
    CHECKF(journal_take_asides() == 1, "way %d", how);
    size_t len;
    char *text = test_read_file(target, &len);
    CHECKF(len == 8 && memcmp(text, "precious", 8) == 0, "way %d", how);
    free(text);
  }
  journal_free_crash(&c);
}

TEST(a_journal_of_another_moment_is_set_aside) {
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0;
  journal_store(journal_db, &c.db[2]);
  journal_store(journal_file, &c.journal);
  CHECK(journal_sum_now() == c.before); /* recovered */
  sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
  for (int i = 0; i < 3; i++) KIT_OK(db, "UPDATE t SET k = k || 'x', v = blob(id, 5, 200) WHERE id % 2 = 0");
  sqlite3_close(db);
  uint64_t newest = journal_sum_now();
  CHECK(newest != c.before);
  journal_bytes now = journal_load(journal_db);
  /* whole, cut, and with each byte of its header changed: the ids show it, or else it is refused, but never rolled back
   */
  journal_bytes copy = {malloc(c.journal.len), c.journal.len};
  memcpy(copy.data, c.journal.data, copy.len);
  for (size_t i = 0; i < JOURNAL_HEADER_IDS_OFF; i++) {
    journal_store(journal_db, &now);
    copy.data[i] ^= 0x11;
    journal_store(journal_file, &copy);
    CHECKF(kit_sum_read_only(journal_db, &sum) == SQLITE_OK && sum == newest, "byte %zu", i);
    CHECKF(kit_sum_file(journal_db, &sum) == SQLITE_OK && sum == newest && journal_take_asides() == 1, "byte %zu", i);
    copy.data[i] ^= 0x11;
  }
  for (copy.len = JOURNAL_HEADER_FULL; copy.len <= c.journal.len; copy.len += 1 + test_below(500)) {
    journal_store(journal_db, &now);
    journal_store(journal_file, &copy);
    CHECKF(kit_sum_file(journal_db, &sum) == SQLITE_OK && sum == newest && journal_take_asides() == 1, "cut to %zu",
           copy.len);
  }
  journal_check_same(journal_db, &now, "afterwards");
  free(copy.data);
  free(now.data);
  journal_free_crash(&c);
}

/* As format 1 had it: page 1 and its image have no id, and the journal names none. */
static void make_format_1(journal_crash *c) {
  for (int i = 0; i < 3; i++) {
    journal_put_commit_id((unsigned char *)c->db[i].data, 0);
    vfs_seal_page(1, (unsigned char *)c->db[i].data, JOURNAL_PAGE, 0);
  }
  unsigned char *j = (unsigned char *)c->journal.data;
  memset(j + JOURNAL_HEADER_IDS_OFF, 0, JOURNAL_HEADER_FULL - JOURNAL_HEADER_IDS_OFF);
  for (size_t at = JOURNAL_SECTOR; at < c->journal.len; at += JOURNAL_PAGE + 8) {
    if (j[at] || j[at + 1] || j[at + 2] || j[at + 3] != 1) continue;
    unsigned char *image = j + at + 4; /* SQLite's own sum is of every 200th byte from the end, and stays */
    journal_put_commit_id(image, 0);
    vfs_seal_page(1, image, JOURNAL_PAGE, 0);
    return;
  }
  CHECK(!"page 1 is in no journal");
}

TEST(a_journal_without_ids_belongs_to_format_1) {
  journal_crash c = journal_make_crash("");
  uint64_t sum = 0;
  journal_bytes now = journal_load(journal_db);
  journal_crash old = c;
  make_format_1(&old);
  for (int m = 1; m < 3; m++) CHECK(try_with(&old, m, &old.journal, "format 1", 0) == UNDONE);
  CHECK(try_with(&old, 0, &old.journal, "format 1", 0) == AS_IT_IS);
  /* the database has an id: the journal is older than that */
  journal_store(journal_db, &now);
  journal_store(journal_file, &old.journal);
  CHECK(kit_sum_file(journal_db, &sum) == SQLITE_OK && journal_take_asides() == 1);
  journal_check_same(journal_db, &now, "a journal of format 1");
  free(now.data);
  journal_free_crash(&c);
}

/* The journal of the transaction that brings a store to format 2: id 0 alone would name every store of format 1. */
TEST(a_journal_of_an_upgrade_belongs_to_one_database) {
  journal_crash c = journal_make_crash("");
  uint64_t after = journal_commit_id((unsigned char *)c.db[2].data);
  journal_bytes written = journal_load(journal_db);
  memcpy(written.data, c.db[2].data, written.len);
  make_format_1(&c);
  memcpy(c.db[2].data, written.data, written.len);
  journal_put_ids((unsigned char *)c.journal.data, 0, after);
  for (int m = 1; m < 3; m++) CHECK(try_with(&c, m, &c.journal, "upgrade", 0) == UNDONE);
  CHECK(try_with(&c, 0, &c.journal, "upgrade", 0) == AS_IT_IS);
  /* another database of format 1, or another moment of it */
  c.db[0].data[27] ^= 1; /* its change counter */
  vfs_seal_page(1, (unsigned char *)c.db[0].data, JOURNAL_PAGE, 0);
  CHECK(try_with(&c, 0, &c.journal, "upgrade of another", 0) == ASIDE);
  free(written.data);
  journal_free_crash(&c);
}

TEST(every_commit_has_an_id_of_its_own) {
  uint64_t ids[30];
  journal_make_base();
  sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
  for (int i = 0; i < 30; i++) {
    if (i % 3 == 1) KIT_OK(db, "BEGIN; UPDATE t SET k = 'undone'; ROLLBACK");
    if (i % 3 == 2)
      KIT_OK(db, JOURNAL_SPILL "BEGIN; UPDATE t SET k = 'undone'; SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; ROLLBACK");
    journal_bytes b = journal_load(journal_db);
    ids[i] = journal_commit_id((unsigned char *)b.data);
    free(b.data);
    CHECK(ids[i] != 0);
    /* an id stays until something was committed */
    if (i % 3)
      CHECKF(ids[i] == ids[i - 1], "a rollback left another id");
    else
      for (int k = 0; k < i; k++) CHECK(ids[k] != ids[i]);
    if (i % 3 == 2) KIT_OK(db, "UPDATE t SET k = k || 'y' WHERE id = 2");
  }
  kit_check_pages(journal_db);
  kit_check_sound(db);
  sqlite3_close(db);
}
