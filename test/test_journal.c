/* test_journal.c - which journals are believed: the table of decisions in docs/FORMAT.md, row by row, by the VFS alone. A database
 * that is healthy is never refused, and one that a transaction has touched is rolled back or refused, never taken as it is. */
#include "fault.h"
#include "sqlkit.h"
#include "store/judge.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 512 };

static char folder[1000], file[1024], journal[1100];

#define ROWS(from, to) "WITH RECURSIVE n(i) AS (SELECT " #from " UNION ALL SELECT i+1 FROM n WHERE i<" #to ")"
#define FILL ROWS(1, 40) "INSERT INTO t SELECT i, 'key' || (i*7919 % 1000), blob(i, 1, i*i % 900) FROM n;"
#define CHANGE "UPDATE t SET v = blob(id, 2, 300), k = 'n' || k WHERE id % 3 = 1"
#define SPILL "PRAGMA cache_size=4; PRAGMA cache_spill=4;"

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

static uint64_t sum_now(void) {
  uint64_t sum = 0;
  int rc = kit_sum_file(file, &sum);
  CHECKF(rc == SQLITE_OK, "%s: %d", file, rc);
  return sum;
}

static void make_base(void) {
  snprintf(folder, sizeof folder, "%s", test_folder());
  snprintf(file, sizeof file, "%s/a.db", folder);
  snprintf(journal, sizeof journal, "%s-journal", file);
  sqlite3 *db = kit_open(file, PAGE);
  KIT_OK(db, KIT_TABLE);
  KIT_OK(db, FILL);
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

/* How many journals were set aside; they are removed. */
static int take_asides(void) {
  char path[2200];
  int n = 0;
  DIR *dir = opendir(folder);
  CHECK(dir != NULL);
  for (struct dirent *e; (e = readdir(dir));) {
    if (strncmp(e->d_name, "a.db-journal" LODE__ASIDE, 12 + sizeof LODE__ASIDE - 1) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    CHECK(remove(path) == 0);
    n++;
  }
  closedir(dir);
  return n;
}

/* Runs SQL in a child that dies at call number `at` of that kind; true when it lived to the end. */
static bool run_and_die(const char *setup, const char *sql, fault_call call, uint64_t at) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    sqlite3 *db = kit_open(file, PAGE);
    KIT_OK(db, setup);
    fault_install(&lode__os_real);
    fault_set(call, at, false, FAULT_EXIT);
    KIT_OK(db, sql);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  CHECKF(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FAULT_EXIT_STATUS, "status %d", WEXITSTATUS(status));
  return WEXITSTATUS(status) == 0;
}

/* A transaction that was killed, and the database at three moments of it. */
typedef struct crash {
  bytes journal;
  bytes db[3]; /* before it was touched, half-way, written wholly */
  uint64_t before, after;
} crash;
static const char *const moments[] = {"before", "half-way", "after"};

static crash make_crash(const char *setup) {
  crash c = {0};
  make_base();
  c.before = sum_now();
  c.db[0] = load(file);
  CHECK(run_and_die(setup, CHANGE, FAULT_ANY, 0));
  c.after = sum_now();
  CHECK(c.after != c.before);
  store(file, &c.db[0]);
  CHECK(!run_and_die(setup, CHANGE, FAULT_FTRUNCATE, 1));
  c.db[2] = load(file);
  c.journal = load(journal);
  CHECK(c.journal.len > 2000);
  /* half of the pages, and not the first: as if they had been spilled, or as a power cut may leave it */
  c.db[1] = load(file);
  size_t pages = c.db[0].len / PAGE;
  for (size_t i = 0; i < pages; i++)
    if (i == 0 || i % 2) memcpy(c.db[1].data + i * PAGE, c.db[0].data + i * PAGE, PAGE);
  CHECK(memcmp(c.db[1].data, c.db[0].data, c.db[0].len) != 0 && memcmp(c.db[1].data, c.db[2].data, c.db[0].len) != 0);
  CHECK(lode__commit_id((unsigned char *)c.db[0].data) != lode__commit_id((unsigned char *)c.db[2].data));
  return c;
}

static void free_crash(crash *c) {
  for (int i = 0; i < 3; i++) free(c->db[i].data);
  free(c->journal.data);
}

static void check_same_file(const char *path, const bytes *was, const char *what) {
  bytes now = load(path);
  CHECKF(now.len == was->len && memcmp(now.data, was->data, now.len) == 0, "%s: %s was changed", what, path);
  free(now.data);
}

typedef enum fate { REFUSED, UNDONE, ASIDE, AS_IT_IS } fate;

/* What becomes of the database at a moment, with that journal. A reader sees the same as a writer, and changes nothing. */
static fate try_with(const crash *c, int moment, const bytes *with, const char *what, size_t at) {
  char text[200];
  uint64_t sum = 0, seen = 0;
  snprintf(text, sizeof text, "%s at %zu of %zu, database %s", what, at, c->journal.len, moments[moment]);
  store(file, &c->db[moment]);
  store(journal, with);
  int reader = kit_sum_read_only(file, &seen);
  check_same_file(file, &c->db[moment], text);
  check_same_file(journal, with, text);
  int rc = kit_sum_file(file, &sum);
  CHECKF(reader == rc && (rc != SQLITE_OK || seen == sum), "%s: a reader says %d, a writer %d", text, reader, rc);
  int asides = take_asides();
  if (rc != SQLITE_OK) {
    CHECKF(rc == SQLITE_IOERR_DATA && !asides, "%s: %d", text, rc);
    check_same_file(journal, with, text);
    check_same_file(file, &c->db[moment], text);
    return REFUSED;
  }
  CHECKF(asides <= 1, "%s", text);
  if (asides) {
    /* whatever was set aside: the database was not changed */
    check_same_file(file, &c->db[moment], text);
    return ASIDE;
  }
  CHECKF(sum == c->before || sum == c->after, "%s: a mix", text);
  return sum == c->before && moment != 0 ? UNDONE : AS_IT_IS;
}

/* The first sector with each byte changed, in several ways. */
static void flip_header(const crash *c, bool one_segment) {
  bytes copy = {malloc(c->journal.len), c->journal.len};
  static const unsigned char ways[] = {0x01, 0x80, 0xff, 0};
  memcpy(copy.data, c->journal.data, copy.len);
  for (size_t i = 0; i < LODE__HEADER_FULL + 4; i++)
    for (size_t w = 0; w < sizeof ways; w++) {
      unsigned char was = (unsigned char)c->journal.data[i];
      copy.data[i] = (char)(ways[w] ? was ^ ways[w] : 0);
      if ((unsigned char)copy.data[i] == was) continue;
      for (int m = 0; m < 3; m++) {
        fate f = try_with(c, m, &copy, "flip", i);
        /* the magic is proven by the checksum, a count may be one too high, and the rest is unused */
        bool raised = i == LODE__HEADER_COUNT_OFF && (unsigned char)copy.data[i] == was + 1;
        bool harmless = i < 8 || i >= LODE__HEADER_FULL || raised;
        if (m > 0) CHECKF(f == (harmless ? UNDONE : REFUSED), "flip at %zu, database %s: %d", i, moments[m], (int)f);
        if (m == 0 && one_segment) CHECKF(f != REFUSED, "flip at %zu: a healthy store is refused", i);
      }
      copy.data[i] = (char)was;
    }
  free(copy.data);
}

static void cut_journal(const crash *c) {
  bytes cut = {c->journal.data, 0};
  /* what is left of less than most of the magic could be anything */
  for (cut.len = 5; cut.len < c->journal.len; cut.len += test_full() || cut.len < 70 ? 1 : 1 + test_below(2 * PAGE)) {
    for (int m = 1; m < 3; m++) {
      fate f = try_with(c, m, &cut, "cut", cut.len);
      /* nothing of it was counted that the last sector lacks */
      CHECKF(f == REFUSED || cut.len + PAGE > c->journal.len, "cut to %zu, database %s: %d", cut.len, moments[m], (int)f);
    }
  }
  for (cut.len = LODE__SECTOR; cut.len + LODE__SECTOR < c->journal.len; cut.len += LODE__SECTOR)
    CHECK(try_with(c, 2, &cut, "cut", cut.len) == REFUSED);
}

/* Parts of the header zeroed, as bad sectors and careless programs do. */
static void zero_header(const crash *c) {
  static const size_t ranges[][2] = {{0, 4}, {0, 8}, {0, 12}, {0, 28}, {0, 32}, {8, 12}, {28, 40}, {28, 60}, {40, 60}, {4, 60}, {0, 512}};
  bytes copy = {malloc(c->journal.len), c->journal.len};
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
    memcpy(copy.data, c->journal.data, copy.len);
    memset(copy.data + ranges[r][0], 0, ranges[r][1] - ranges[r][0]);
    for (int m = 1; m < 3; m++) {
      fate f = try_with(c, m, &copy, "zeroed", ranges[r][0] * 1000 + ranges[r][1]);
      CHECKF(f == REFUSED || f == UNDONE, "zeroed %zu to %zu, database %s: %d", ranges[r][0], ranges[r][1], moments[m], (int)f);
    }
  }
  free(copy.data);
}

/* Somebody's program, or a dying disk: blocks of zeros, of noise and of words, several at once. */
static void damage_at_random(const crash *c) {
  bytes copy = {malloc(c->journal.len), c->journal.len};
  static const char zeros[LODE__SECTOR];
  size_t undone = 0, refused = 0;
  for (int round = 0; round < (test_full() ? 3000 : 150); round++) {
    memcpy(copy.data, c->journal.data, c->journal.len);
    copy.len = c->journal.len;
    for (uint64_t n = 1 + test_below(3), how = test_below(4); n > 0; n--, how = test_below(4)) {
      size_t at = test_below(2) ? 0 : test_below(copy.len), len = 1 + test_below(copy.len / 4);
      if (len > copy.len - at) len = copy.len - at;
      if (how == 0) memset(copy.data + at, 0, len);
      if (how == 1) for (size_t i = 0; i < len; i++) copy.data[at + i] = (char)test_below(256);
      if (how == 2) for (size_t i = 0; i < len; i++) copy.data[at + i] = "corrupted "[i % 10];
      if (how == 3) copy.len -= len / 2;
    }
    /* one that is zeros looks as after a power cut, unless an image tells otherwise that may be destroyed as well */
    if (memcmp(copy.data, zeros, sizeof zeros) == 0) continue;
    fate f = try_with(c, 1, &copy, "random", (size_t)round);
    CHECKF(f == REFUSED || f == UNDONE, "round %d: %d", round, (int)f);
    undone += f == UNDONE;
    refused += f == REFUSED;
    f = try_with(c, 2, &copy, "random", (size_t)round);
    CHECKF(f == REFUSED || f == UNDONE, "round %d: %d", round, (int)f);
  }
  CHECKF(refused > 20, "%zu refused, %zu undone", refused, undone);
  free(copy.data);
}

TEST_SLOW(a_hot_journal_damaged_at_random, 300) {
  test_srand(test_seed());
  crash c = make_crash("");
  damage_at_random(&c);
  free_crash(&c);
}

TEST_SLOW(a_hot_journal_with_a_damaged_header, 300) {
  crash c = make_crash("");
  for (int m = 1; m < 3; m++) CHECK(try_with(&c, m, &c.journal, "whole", 0) == UNDONE);
  CHECK(try_with(&c, 0, &c.journal, "whole", 0) == AS_IT_IS);
  flip_header(&c, true);
  cut_journal(&c);
  zero_header(&c);
  free_crash(&c);
}

TEST_SLOW(a_hot_journal_of_many_segments_with_a_damaged_header, 300) {
  crash c = make_crash(SPILL);
  CHECKF(c.journal.data[LODE__HEADER_COUNT_OFF] > 2, "%d segments", c.journal.data[LODE__HEADER_COUNT_OFF]);
  for (int m = 1; m < 3; m++) CHECK(try_with(&c, m, &c.journal, "whole", 0) == UNDONE);
  flip_header(&c, false);
  cut_journal(&c);
  free_crash(&c);
}

/* ---- What is no journal of this database ---- */

static void check_stray(const crash *c, const void *data, size_t len, const char *what) {
  bytes with = {(char *)(uintptr_t)data, len};
  CHECKF(try_with(c, 0, &with, what, len) == ASIDE, "%s", what);
  /* and the database can be written to */
  store(journal, &with);
  sqlite3 *db = kit_open(file, PAGE);
  KIT_OK(db, "UPDATE t SET k = 'later' WHERE id = 1");
  kit_check_sound(db);
  sqlite3_close(db);
  CHECKF(take_asides() == 1, "%s", what);
}

TEST_SLOW(what_is_no_journal_is_set_aside, 120) {
  crash c = make_crash("");
  static char noise[5000];
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)test_below(256);
  noise[0] = 'n';
  check_stray(&c, "x", 1, "one byte");
  for (size_t len = 1; len < 5; len++) check_stray(&c, lode__journal_magic, len, "the begin of a journal");
  check_stray(&c, "corrupted", 9, "a word");
  for (size_t len = 2; len < sizeof noise; len += 1 + test_below(len)) check_stray(&c, noise, len, "noise");
  check_stray(&c, c.db[0].data, c.db[0].len, "the database itself");
  check_stray(&c, c.db[0].data + PAGE, c.db[0].len - PAGE, "pages of the database");
  /* zeros say that nothing was begun */
  memset(noise, 0, sizeof noise);
  bytes zeros = {noise, sizeof noise};
  CHECK(try_with(&c, 0, &zeros, "zeros", 0) == AS_IT_IS);
  zeros.len = 0;
  CHECK(try_with(&c, 0, &zeros, "emptied", 0) == AS_IT_IS);
  free_crash(&c);
}

/* Its length is nobody's word: no more is read of it than this database could have needed. */
TEST(a_huge_journal_of_nothing_takes_no_time) {
  crash c = make_crash("");
  uint64_t sum = 0;
  for (int how = 0; how < 2; how++) {
    store(file, &c.db[0]);
    test_write_file(journal, how ? "noise" : "", how ? 5 : 0);
    CHECK(truncate(journal, (off_t)1 << 42) == 0);
    fault_install(&lode__os_real);
    uint64_t before = fault_count(FAULT_PREAD);
    CHECK(kit_sum_read_only(file, &sum) == SQLITE_OK && sum == c.before);
    CHECK(kit_sum_file(file, &sum) == SQLITE_OK && sum == c.before);
    CHECKF(fault_count(FAULT_PREAD) - before < 5000, "%llu reads", (unsigned long long)(fault_count(FAULT_PREAD) - before));
    fault_uninstall();
    CHECK(unlink(journal) == 0 || errno == ENOENT);
    take_asides();
  }
  free_crash(&c);
}

TEST(a_link_a_pipe_or_a_folder_in_place_of_a_journal_is_set_aside) {
  char target[1100];
  crash c = make_crash("");
  snprintf(target, sizeof target, "%s/target", folder);
  for (int how = 0; how < 4; how++) {
    uint64_t sum = 0;
    store(file, &c.db[0]);
    CHECK(unlink(journal) == 0 || errno == ENOENT);
    test_write_file(target, "precious", 8);
    if (how == 0) CHECK(symlink(target, journal) == 0);
    if (how == 1) CHECK(mkfifo(journal, 0600) == 0);
    if (how == 2) CHECK(mkdir(journal, 0700) == 0);
    if (how == 3) CHECK(symlink("/nonexistent/place", journal) == 0);
    CHECKF(kit_sum_read_only(file, &sum) == SQLITE_OK && sum == c.before, "way %d", how);
    sqlite3 *db = kit_open(file, PAGE);
    KIT_OK(db, "UPDATE t SET k = 'later' WHERE id = 1");
    sqlite3_close(db);
    CHECKF(take_asides() == 1, "way %d", how);
    size_t len;
    char *text = test_read_file(target, &len);
    CHECKF(len == 8 && memcmp(text, "precious", 8) == 0, "way %d", how);
    free(text);
  }
  free_crash(&c);
}

TEST(a_journal_of_another_moment_is_set_aside) {
  crash c = make_crash("");
  uint64_t sum = 0;
  store(file, &c.db[2]);
  store(journal, &c.journal);
  CHECK(sum_now() == c.before); /* recovered */
  sqlite3 *db = kit_open(file, PAGE);
  for (int i = 0; i < 3; i++) KIT_OK(db, "UPDATE t SET k = k || 'x', v = blob(id, 5, 200) WHERE id % 2 = 0");
  sqlite3_close(db);
  uint64_t newest = sum_now();
  CHECK(newest != c.before);
  bytes now = load(file);
  /* whole, cut, and with each byte of its header changed: the ids tell, or else it is refused, but never rolled back */
  bytes copy = {malloc(c.journal.len), c.journal.len};
  memcpy(copy.data, c.journal.data, copy.len);
  for (size_t i = 0; i < LODE__HEADER_IDS_OFF; i++) {
    store(file, &now);
    copy.data[i] ^= 0x11;
    store(journal, &copy);
    CHECKF(kit_sum_read_only(file, &sum) == SQLITE_OK && sum == newest, "byte %zu", i);
    CHECKF(kit_sum_file(file, &sum) == SQLITE_OK && sum == newest && take_asides() == 1, "byte %zu", i);
    copy.data[i] ^= 0x11;
  }
  for (copy.len = LODE__HEADER_FULL; copy.len <= c.journal.len; copy.len += 1 + test_below(500)) {
    store(file, &now);
    store(journal, &copy);
    CHECKF(kit_sum_file(file, &sum) == SQLITE_OK && sum == newest && take_asides() == 1, "cut to %zu", copy.len);
  }
  check_same_file(file, &now, "afterwards");
  free(copy.data);
  free(now.data);
  free_crash(&c);
}

/* As format 1 had it: page 1 and its image have no id, and the journal names none. */
static void make_format_1(crash *c) {
  for (int i = 0; i < 3; i++) {
    lode__commit_id_put((unsigned char *)c->db[i].data, 0);
    lode__page_make_sound(1, (unsigned char *)c->db[i].data, PAGE);
  }
  unsigned char *j = (unsigned char *)c->journal.data;
  memset(j + LODE__HEADER_IDS_OFF, 0, LODE__HEADER_FULL - LODE__HEADER_IDS_OFF);
  for (size_t at = LODE__SECTOR; at < c->journal.len; at += PAGE + 8) {
    if (j[at] || j[at + 1] || j[at + 2] || j[at + 3] != 1) continue;
    unsigned char *image = j + at + 4; /* SQLite's own sum is of every 200th byte from the end, and stays */
    lode__commit_id_put(image, 0);
    lode__page_make_sound(1, image, PAGE);
    return;
  }
  CHECK(!"page 1 is in no journal");
}

TEST(a_journal_without_ids_belongs_to_format_1) {
  crash c = make_crash("");
  uint64_t sum = 0;
  bytes now = load(file);
  crash old = c;
  make_format_1(&old);
  for (int m = 1; m < 3; m++) CHECK(try_with(&old, m, &old.journal, "format 1", 0) == UNDONE);
  CHECK(try_with(&old, 0, &old.journal, "format 1", 0) == AS_IT_IS);
  /* the database has an id: the journal is older than that */
  store(file, &now);
  store(journal, &old.journal);
  CHECK(kit_sum_file(file, &sum) == SQLITE_OK && take_asides() == 1);
  check_same_file(file, &now, "a journal of format 1");
  free(now.data);
  free_crash(&c);
}

/* The journal of the transaction that brings a store to format 2: id 0 alone would name every store of format 1. */
TEST(a_journal_of_an_upgrade_belongs_to_one_database) {
  crash c = make_crash("");
  uint64_t after = lode__commit_id((unsigned char *)c.db[2].data);
  bytes written = load(file);
  memcpy(written.data, c.db[2].data, written.len);
  make_format_1(&c);
  memcpy(c.db[2].data, written.data, written.len);
  lode__journal_ids_put((unsigned char *)c.journal.data, 0, after);
  for (int m = 1; m < 3; m++) CHECK(try_with(&c, m, &c.journal, "upgrade", 0) == UNDONE);
  CHECK(try_with(&c, 0, &c.journal, "upgrade", 0) == AS_IT_IS);
  /* another database of format 1, or another moment of it */
  c.db[0].data[27] ^= 1; /* its change counter */
  lode__page_make_sound(1, (unsigned char *)c.db[0].data, PAGE);
  CHECK(try_with(&c, 0, &c.journal, "upgrade of another", 0) == ASIDE);
  free(written.data);
  free_crash(&c);
}

TEST(every_commit_has_an_id_of_its_own) {
  uint64_t ids[30];
  make_base();
  sqlite3 *db = kit_open(file, PAGE);
  for (int i = 0; i < 30; i++) {
    if (i % 3 == 1) KIT_OK(db, "BEGIN; UPDATE t SET k = 'undone'; ROLLBACK");
    if (i % 3 == 2) KIT_OK(db, SPILL "BEGIN; UPDATE t SET k = 'undone'; SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; ROLLBACK");
    bytes b = load(file);
    ids[i] = lode__commit_id((unsigned char *)b.data);
    free(b.data);
    CHECK(ids[i] != 0);
    /* an id stays until something was committed */
    if (i % 3) CHECKF(ids[i] == ids[i - 1], "a rollback left another id");
    else for (int k = 0; k < i; k++) CHECK(ids[k] != ids[i]);
    if (i % 3 == 2) KIT_OK(db, "UPDATE t SET k = k || 'y' WHERE id = 2");
  }
  kit_check_pages(file);
  kit_check_sound(db);
  sqlite3_close(db);
}

/* ---- Reading through ---- */

static uint64_t written;
static ssize_t counting_pwrite(int fd, const void *buf, size_t n, off_t off) {
  written += n;
  return lode__os_real.pwrite(fd, buf, n, off);
}
static int counting_ftruncate(int fd, off_t size) {
  written++;
  return lode__os_real.ftruncate(fd, size);
}

TEST(a_reader_reads_through_a_hot_journal_and_writes_nothing) {
  static lode__os_table table;
  crash c = make_crash(SPILL);
  uint64_t sum = 0;
  sqlite3 *reader = NULL;
  store(file, &c.db[2]);
  store(journal, &c.journal);
  table = lode__os_real;
  table.pwrite = counting_pwrite;
  table.ftruncate = counting_ftruncate;
  lode__os = &table;
  CHECK(sqlite3_open_v2(file, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, LODE__VFS_NAME) == SQLITE_OK);
  for (int i = 0; i < 3; i++) CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  KIT_OK(reader, "BEGIN; SELECT count(*) FROM t");
  CHECK(kit_state(reader).journal_pages > 5);
  kit_check_sound(reader);
  KIT_OK(reader, "COMMIT");
  CHECK(written == 0);
  lode__os = &lode__os_real;
  check_same_file(file, &c.db[2], "a reader");
  check_same_file(journal, &c.journal, "a reader");
  /* somebody rolls it back, and writes: the reader goes on */
  CHECK(sum_now() == c.before);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  CHECK(kit_state(reader).journal_pages == 0);
  sqlite3 *db = kit_open(file, PAGE);
  KIT_OK(db, CHANGE);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.after);
  /* a second crash */
  sqlite3_close(db);
  store(file, &c.db[1]);
  store(journal, &c.journal);
  CHECK(kit_sum(reader, &sum) == SQLITE_OK && sum == c.before);
  sqlite3_close(reader);
  free_crash(&c);
}

TEST(a_living_writers_journal_is_not_read_through) {
  uint64_t before, sum = 0;
  make_base();
  before = sum_now();
  sqlite3 *reader = NULL, *writer = kit_open(file, PAGE), *second = NULL;
  CHECK(sqlite3_open_v2(file, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, LODE__VFS_NAME) == SQLITE_OK);
  CHECK(sqlite3_open_v2(file, &second, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, LODE__VFS_NAME) == SQLITE_OK);
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
  crash c = make_crash("");
  uint64_t sum = 0, met = 0;
  store(file, &c.db[2]);
  store(journal, &c.journal);
  fault_install(&lode__os_real);
  for (int effect = 0; effect < 3; effect++) {
    static const fault_effect effects[] = {FAULT_EIO, FAULT_EINTR, FAULT_SHORT};
    fault_call call = effects[effect] == FAULT_SHORT ? FAULT_PREAD : FAULT_ANY;
    for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(4)) {
      fault_set(call, at, false, effects[effect]);
      int rc = kit_sum_read_only(file, &sum);
      bool hit = fault_hits() > 0;
      fault_clear();
      CHECKF(rc == SQLITE_OK ? sum == c.before : effect == 0 && hit && (rc & 0xff) != SQLITE_CORRUPT && rc != SQLITE_IOERR_DATA,
             "effect %d at call %llu: %d", effect, (unsigned long long)at, rc);
      if (!hit) break;
      met++;
    }
  }
  fault_uninstall();
  CHECK(met > 20);
  check_same_file(file, &c.db[2], "readers");
  check_same_file(journal, &c.journal, "readers");
  free_crash(&c);
}

TEST_SLOW(memory_fails_while_reading_through, 120) {
  fault_alloc_install();
  fault_alloc_set(0, false);
  crash c = make_crash("");
  uint64_t sum = 0, met = 0;
  store(file, &c.db[2]);
  store(journal, &c.journal);
  for (int for_good = 0; for_good < 2; for_good++)
    for (uint64_t at = 1;; at += test_full() ? 1 : 1 + test_below(8)) {
      fault_alloc_set(at, for_good);
      int rc = kit_sum_read_only(file, &sum);
      bool hit = fault_alloc_hits() > 0;
      fault_alloc_set(0, false);
      CHECKF(rc == SQLITE_OK ? sum == c.before : hit, "allocation %llu: %d", (unsigned long long)at, rc);
      CHECKF(rc != SQLITE_IOERR_DATA, "allocation %llu: no memory is no damage", (unsigned long long)at);
      if (!hit) break;
      met++;
    }
  CHECK(met > 20);
  check_same_file(journal, &c.journal, "readers");
  free_crash(&c);
}

/* An image that is damaged after it was proven is an error, not an answer. */
TEST(a_journal_that_is_damaged_while_it_is_read) {
  crash c = make_crash("");
  uint64_t sum = 0;
  sqlite3 *reader = NULL;
  store(file, &c.db[2]);
  store(journal, &c.journal);
  CHECK(sqlite3_open_v2(file, &reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, LODE__VFS_NAME) == SQLITE_OK);
  KIT_OK(reader, "PRAGMA cache_size=1; BEGIN; SELECT count(*) FROM sqlite_schema");
  int fd = open(journal, O_RDWR | O_CLOEXEC);
  for (off_t at = LODE__SECTOR + 100; at < (off_t)c.journal.len; at += PAGE + 8) CHECK(pwrite(fd, "damage", 6, at) == 6);
  close(fd);
  CHECK(kit_exec(reader, "SELECT sum(length(v)) FROM t") == SQLITE_IOERR_DATA);
  kit_exec(reader, "ROLLBACK");
  CHECK(kit_sum(reader, &sum) == SQLITE_IOERR_DATA);
  sqlite3_close(reader);
  free_crash(&c);
}

/* ---- Hard links ---- */

TEST(a_database_with_two_names_is_read_only) {
  char other[1100];
  make_base();
  uint64_t sum = 0, before = sum_now();
  sqlite3 *early = kit_open(file, PAGE), *late = NULL;
  snprintf(other, sizeof other, "%s/other.db", folder);
  CHECK(link(file, other) == 0);
  for (int i = 0; i < 2; i++) {
    const char *name = i ? other : file;
    CHECK(sqlite3_open_v2(name, &late, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, LODE__VFS_NAME) == SQLITE_OK);
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
