/* SPDX-License-Identifier: Apache-2.0 */
/* test_vfs.c - the VFS in fair weather and over damaged files: never wrong rows, never a signal. */
#include "base/byteorder.h"
#include "support/sqlkit.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[1024], other[2048];

static const char *in_folder(const char *folder, const char *file) {
  snprintf(path, sizeof path, "%s/%s", folder, file);
  return path;
}

static bool exists(const char *file) {
  struct stat st;
  return stat(file, &st) == 0;
}

static uint64_t sum_of(sqlite3 *db) {
  uint64_t sum = 0;
  int rc = kit_sum(db, &sum);
  CHECKF(rc == SQLITE_OK, "sum: %d %s", rc, sqlite3_errmsg(db));
  return sum;
}

/* About 40 pages of 512 bytes: rows of all sizes, an index, overflow pages, free pages. */
static void make_small(const char *file, unsigned page_bytes) {
  sqlite3 *db = kit_open(file, page_bytes);
  KIT_OK(db, KIT_TABLE);
  KIT_OK(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60)"
             "INSERT INTO t SELECT i, 'key' || (i*7919 % 1000), blob(i, 1, i*i % 900) FROM n");
  KIT_OK(db, "DELETE FROM t WHERE id % 4 = 0");
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

/* ---- Use ---- */

static void use_all(unsigned page_bytes) {
  const char *file = in_folder(test_folder(), "a.db");
  char sql[2048];
  sqlite3 *db = kit_open(file, page_bytes);
  KIT_OK(db, KIT_TABLE);
  snprintf(sql, sizeof sql,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<150)"
           "INSERT INTO t SELECT i, 'key' || i, blob(i, 1, i * %u / 50) FROM n",
           page_bytes); /* up to three pages */
  KIT_OK(db, sql);
  KIT_OK(db, "BEGIN; UPDATE t SET v = blob(id, 2, length(v)) WHERE id % 3 = 0; SAVEPOINT a; DELETE FROM t;"
             "ROLLBACK TO a; DELETE FROM t WHERE id > 120; COMMIT");
  KIT_OK(db, "BEGIN; DELETE FROM t WHERE id < 100; INSERT INTO t VALUES(1000, 'x', blob(9, 9, 100000)); ROLLBACK");
  kit_check_sound(db);
  kit_check_pages(file);
  sqlite3_stmt *stmt = NULL;
  snprintf(sql, sizeof sql, "SELECT count(*), sum(v IS blob(id, 1 + (id %% 3 = 0), id * %u / 50)) FROM t", page_bytes);
  CHECK(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW);
  CHECK(sqlite3_column_int(stmt, 0) == 120 && sqlite3_column_int(stmt, 1) == 120);
  sqlite3_finalize(stmt);
  uint64_t sum = sum_of(db), again = 0;
  KIT_OK(db, "PRAGMA incremental_vacuum(3)");
  kit_check_pages(file);
  KIT_OK(db, "PRAGMA page_size=8192; VACUUM"); /* the page size of a database stays */
  kit_check_sound(db);
  kit_check_pages(file);
  CHECK(sum_of(db) == sum);
  snprintf(sql, sizeof sql, "VACUUM INTO '%s-copy'", file);
  KIT_OK(db, sql);
  CHECK(kit_state(db).damaged_reads == 0);
  CHECK(sqlite3_close(db) == SQLITE_OK);
  snprintf(other, sizeof other, "%s-copy", file);
  kit_check_pages(other);
  CHECK(kit_sum_file(other, &again) == SQLITE_OK && again == sum);
  CHECK(kit_sum_file(file, &again) == SQLITE_OK && again == sum);
}

TEST(page_size_512) { use_all(512); }
TEST(page_size_4096) { use_all(4096); }
TEST(page_size_16384) { use_all(16384); }
TEST(page_size_65536) { use_all(65536); }

TEST(pages_freed_before_written_leave_no_holes) {
  const char *file = in_folder(test_folder(), "a.db");
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, KIT_TABLE "; PRAGMA secure_delete=OFF"); /* SQLite then skips such pages when it writes */
  KIT_OK(db, "BEGIN; INSERT INTO t VALUES(1, 'a', blob(1, 1, 20000)); INSERT INTO t VALUES(2, 'b', blob(2, 1, 3000));"
             "DELETE FROM t WHERE id = 1; COMMIT; PRAGMA secure_delete=ON");
  kit_check_pages(file);
  kit_check_sound(db);
  KIT_OK(db, "BEGIN; INSERT INTO t VALUES(3, 'a', blob(3, 1, 20000)); DELETE FROM t WHERE id = 3; COMMIT");
  kit_check_pages(file);
  kit_check_sound(db);
  sqlite3_close(db);
}

TEST(spilled_transaction_rolls_back) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  sqlite3 *db = kit_open(file, 512);
  uint64_t before = sum_of(db);
  KIT_OK(db, "PRAGMA cache_size=5; PRAGMA cache_spill=5");
  KIT_OK(db, "BEGIN; UPDATE t SET v = blob(id, 7, 700); SAVEPOINT s; UPDATE t SET v = blob(id, 8, 20), k = k || 'x';"
             "DELETE FROM t WHERE id > 30; ROLLBACK TO s; UPDATE t SET k = 'y' || k; ROLLBACK");
  CHECK(sum_of(db) == before);
  kit_check_sound(db);
  kit_check_pages(file);
  sqlite3_close(db);
}

TEST(two_page_sizes_meet) {
  const char *file = in_folder(test_folder(), "a.db");
  sqlite3 *early = kit_open(file, 4096); /* the file is empty: this one expects pages of 4096 bytes */
  KIT_OK(early, "SELECT * FROM sqlite_schema");
  make_small(file, 512);
  uint64_t sum = sum_of(early), again = 0;
  CHECK(kit_sum_file(file, &again) == SQLITE_OK && again == sum);
  sqlite3_close(early);
  unlink(file);
  early = kit_open(file, 4096);
  KIT_OK(early, "SELECT * FROM sqlite_schema");
  make_small(file, 65536);
  CHECK(sum_of(early) == sum);
  sqlite3_close(early);
}

TEST(a_database_without_room_for_checksums_is_not_made) {
  const char *file = in_folder(test_folder(), "a.db");
  lode_error err = {0};
  sqlite3 *db = NULL;
  OK(vfs_register(&err));
  CHECK(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, VFS_NAME) == SQLITE_OK);
  CHECK(kit_exec(db, KIT_TABLE) == SQLITE_IOERR_WRITE);
  sqlite3_close(db);
}

/* ---- Damage ---- */

static void poke(const char *file, off_t at, unsigned char value) {
  int fd = open(file, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0 && pwrite(fd, &value, 1, at) == 1);
  close(fd);
}

static bool is_damage(int rc) {
  return rc == SQLITE_IOERR_DATA || rc == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT;
}

TEST_SLOW(every_flipped_byte_is_noticed_or_harmless, 600) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  uint64_t want = 0, got = 0;
  size_t len = 0, noticed = 0, tried = 0;
  unsigned char *data = (unsigned char *)test_read_file(file, &len);
  CHECK(kit_sum_file(file, &want) == SQLITE_OK);
  for (size_t i = 0; i < len; i += test_full() ? 1 : 1 + test_below(13)) {
    poke(file, (off_t)i, (unsigned char)(data[i] ^ (1 + test_below(255))));
    int rc = kit_sum_file(file, &got);
    CHECKF(rc == SQLITE_OK ? got == want : is_damage(rc), "byte %zu: %d", i, rc);
    tried++;
    noticed += rc != SQLITE_OK;
    poke(file, (off_t)i, data[i]);
  }
  CHECKF(noticed * 2 > tried, "%zu of %zu", noticed, tried); /* the rest lies in free pages */
  CHECK(kit_sum_file(file, &got) == SQLITE_OK && got == want);
  free(data);
}

TEST(every_bit_of_the_header_counts) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  size_t len = 0;
  unsigned char *data = (unsigned char *)test_read_file(file, &len);
  uint64_t got = 0;
  for (size_t i = 0; i < 100 * 8; i++) {
    poke(file, (off_t)(i / 8), (unsigned char)(data[i / 8] ^ 1u << i % 8));
    int rc = kit_sum_file(file, &got);
    CHECKF(is_damage(rc), "bit %zu of byte %zu: %d", i % 8, i / 8, rc);
    poke(file, (off_t)(i / 8), data[i / 8]);
  }
  CHECK(kit_sum_file(file, &got) == SQLITE_OK);
  free(data);
}

TEST_SLOW(every_cut_is_noticed, 600) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  size_t len = 0;
  char *data = test_read_file(file, &len);
  uint64_t got = 0;
  for (size_t cut = 0; cut < len; cut += test_full() ? 1 : 1 + test_below(97)) {
    test_write_file(file, data, cut);
    int rc = kit_sum_file(file, &got);
    /* an empty file is an empty database: it has no table */
    CHECKF(cut == 0 ? rc == SQLITE_ERROR : is_damage(rc), "cut at %zu: %d", cut, rc);
  }
  free(data);
}

TEST(a_page_at_another_place_is_damage) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  uint64_t sum = 0;
  size_t len = 0;
  unsigned char *data = (unsigned char *)test_read_file(file, &len);
  unsigned char page[512];
  memcpy(page, data + 4 * 512, 512);
  memmove(data + 4 * 512, data + 5 * 512, 512);
  memcpy(data + 5 * 512, page, 512);
  test_write_file(file, data, len);
  CHECK(is_damage(kit_sum_file(file, &sum)));
  free(data);
}

TEST(damage_under_a_warm_cache) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  size_t len = 0;
  unsigned char *data = (unsigned char *)test_read_file(file, &len);
  uint64_t sum = 0;
  sqlite3 *db = kit_open(file, 512), *writer = kit_open(file, 512);
  KIT_OK(db, "PRAGMA cache_size=10");
  sum_of(db);
  /* cut in the middle of a read: the pages that are gone must not read as zeros */
  KIT_OK(db, "BEGIN; SELECT count(*) FROM sqlite_schema");
  CHECK(truncate(file, 8 * 512) == 0);
  CHECK(kit_exec(db, "SELECT sum(length(v)), sum(v IS NULL) FROM t") == SQLITE_IOERR_DATA);
  kit_exec(db, "ROLLBACK"); /* SQLite may have done so itself */
  vfs_file_state state = kit_state(db);
  CHECK(state.damaged_reads > 0 && state.damaged_page > 8);
  test_write_file(file, data, len);
  sum_of(db);
  /* a commit by another, hidden by a flipped bit of the change counter: the cache must not be believed */
  uint32_t counter = num_be16(data + 26);
  if (counter % 2 == 1) KIT_OK(writer, "UPDATE t SET k = k || 'z' WHERE id = 1"); /* one more is then one bit more */
  sum_of(db);
  KIT_OK(writer, "UPDATE t SET k = 'changed' WHERE id = 1");
  free(data);
  data = (unsigned char *)test_read_file(file, &len);
  poke(file, 27, (unsigned char)(data[27] ^ 1));
  CHECK(kit_sum(db, &sum) == SQLITE_IOERR_DATA);
  free(data);
  sqlite3_close(db);
  sqlite3_close(writer);
}

static sqlite3_file *file_of(sqlite3 *db) {
  sqlite3_file *f = NULL;
  CHECK(sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f) == SQLITE_OK && f);
  return f;
}

static void check_part(sqlite3_file *f, const unsigned char *data, size_t n, size_t off) {
  unsigned char buf[8192 + 1];
  memset(buf, 0xa5, sizeof buf);
  int rc = f->pMethods->xRead(f, buf, (int)n, (sqlite3_int64)off);
  CHECKF(rc == SQLITE_OK && memcmp(buf, data + off, n) == 0 && buf[n] == 0xa5, "%zu bytes at %zu: %d", n, off, rc);
}

/* SQLite 3.45.0 to 3.47.0 read overflow pages without the page cache, and only as many bytes from the start of the page
 * as they want. A part whose length happens to be another page size is still a part. */
static void read_parts(unsigned page_bytes) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, page_bytes);
  size_t len = 0;
  unsigned char *data = (unsigned char *)test_read_file(file, &len), buf[128];
  sqlite3 *db = kit_open(file, page_bytes);
  KIT_OK(db, "BEGIN; SELECT count(*) FROM sqlite_schema");
  sqlite3_file *f = file_of(db);
  for (size_t off = page_bytes; off < len; off += page_bytes) {
    for (size_t n = 1; n < page_bytes; n += 1 + test_below(97)) check_part(f, data, n, off);
    for (size_t n = 512; n <= page_bytes; n *= 2) check_part(f, data, n, off);
    check_part(f, data, 100, off + page_bytes - 100);
  }
  CHECK(kit_state(db).damaged_reads == 0);
  /* what lies in two pages has no checksum of its own */
  CHECK(f->pMethods->xRead(f, buf, 16, (sqlite3_int64)page_bytes * 2 - 8) == SQLITE_IOERR_READ);
  /* after the end is what this transaction has not written yet */
  CHECK(f->pMethods->xRead(f, buf, 100, (sqlite3_int64)len) == SQLITE_IOERR_SHORT_READ);
  /* damage outside the part counts as well: the page is cut short, then one of its bits is wrong */
  uint32_t page = 2 + (uint32_t)test_below(3);
  size_t at = (size_t)(page - 1) * page_bytes, hit = 64 + test_below(page_bytes - 64);
  CHECK(truncate(file, (off_t)(at + hit)) == 0);
  CHECK(f->pMethods->xRead(f, buf, 60, (sqlite3_int64)at) == SQLITE_IOERR_DATA);
  data[at + hit] ^= 4;
  test_write_file(file, data, len);
  CHECK(f->pMethods->xRead(f, buf, 60, (sqlite3_int64)at) == SQLITE_IOERR_DATA);
  CHECK(kit_state(db).damaged_reads == 2 && kit_state(db).damaged_page == page);
  sqlite3_close(db);
  free(data);
}

TEST(parts_of_pages_of_512) { read_parts(512); }
TEST(parts_of_pages_of_1024) { read_parts(1024); }
TEST(parts_of_pages_of_8192) { read_parts(8192); }

/* The page numbers of the free list's leaves, by the file format. */
static uint32_t some_free_leaf(const unsigned char *data) {
  uint32_t trunk = num_be16(data + 34);
  CHECK(trunk > 1);
  const unsigned char *page = data + (trunk - 1) * 512;
  CHECK(page[7] > 1); /* leaves */
  return num_be16(page + 10);
}

TEST(a_torn_free_page_is_not_damage) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  size_t len = 0;
  unsigned char *data = (unsigned char *)test_read_file(file, &len);
  uint32_t leaf = some_free_leaf(data);
  poke(file, (off_t)(leaf - 1) * 512 + 100, 0xee); /* as a power cut may leave it */
  sqlite3 *db = kit_open(file, 512);
  uint64_t sum = sum_of(db);
  kit_check_sound(db);
  KIT_OK(db, "BEGIN; SELECT count(*) FROM sqlite_schema"); /* nor does a part of it show anything but zeros */
  unsigned char part[200], zeros[sizeof part] = {0};
  sqlite3_file *f = file_of(db);
  memset(part, 0xa5, sizeof part);
  CHECK(f->pMethods->xRead(f, part, sizeof part, (sqlite3_int64)(leaf - 1) * 512) == SQLITE_OK);
  CHECK(memcmp(part, zeros, sizeof part) == 0);
  KIT_OK(db, "COMMIT");
  CHECK(kit_state(db).damaged_reads == 0);
  KIT_OK(db, "PRAGMA incremental_vacuum");
  kit_check_pages(file);
  CHECK(sum_of(db) == sum);
  sqlite3_close(db);
  free(data);
}

/* ---- Locks ---- */

static sqlite3 *open_foreign(const char *file) {
  sqlite3 *db = NULL;
  CHECK(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, "unix") == SQLITE_OK);
  return db;
}

static void locks_exclude(sqlite3 *a, sqlite3 *b) {
  KIT_OK(a, "BEGIN IMMEDIATE");
  CHECK(kit_exec(b, "BEGIN IMMEDIATE") == SQLITE_BUSY);
  KIT_OK(b, "SELECT count(*) FROM t");
  KIT_OK(a, "ROLLBACK; BEGIN EXCLUSIVE");
  CHECK(kit_exec(b, "SELECT count(*) FROM t") == SQLITE_BUSY);
  KIT_OK(a, "ROLLBACK; BEGIN; SELECT count(*) FROM t"); /* a reader ... */
  KIT_OK(b, "BEGIN IMMEDIATE; SELECT count(*) FROM t");
  CHECK(kit_exec(b, "ROLLBACK; BEGIN EXCLUSIVE") == SQLITE_BUSY); /* ... holds up a commit */
  KIT_OK(a, "COMMIT");
  KIT_OK(b, "BEGIN EXCLUSIVE; ROLLBACK");
}

TEST(locks_of_two_connections) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  sqlite3 *a = kit_open(file, 512), *b = kit_open(file, 512);
  locks_exclude(a, b);
  locks_exclude(b, a);
  /* closing a third one of the same process drops nobody's locks */
  KIT_OK(a, "BEGIN IMMEDIATE");
  sqlite3_close(kit_open(file, 512));
  CHECK(kit_exec(b, "BEGIN IMMEDIATE") == SQLITE_BUSY);
  int state = 0;
  CHECK(sqlite3_file_control(a, "main", SQLITE_FCNTL_LOCKSTATE, &state) == SQLITE_OK && state == SQLITE_LOCK_RESERVED);
  sqlite3_close(a);
  KIT_OK(b, "BEGIN IMMEDIATE; ROLLBACK");
  sqlite3_close(b);
}

TEST(a_waiting_writer_keeps_new_readers_out) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  sqlite3 *reader = kit_open(file, 512), *writer = kit_open(file, 512), *late = kit_open(file, 512);
  KIT_OK(reader, "BEGIN; SELECT count(*) FROM t");
  KIT_OK(writer, "BEGIN IMMEDIATE; UPDATE t SET k = 'w' WHERE id = 1");
  KIT_OK(late, "SELECT count(*) FROM t");
  CHECK(kit_exec(writer, "COMMIT") == SQLITE_BUSY); /* it waits for the reader, and says so by the PENDING lock */
  CHECK(kit_exec(late, "SELECT count(*) FROM t") == SQLITE_BUSY);
  KIT_OK(reader, "SELECT count(*) FROM t; COMMIT");
  KIT_OK(writer, "COMMIT");
  KIT_OK(late, "SELECT count(*) FROM t");
  sqlite3_close(reader);
  sqlite3_close(writer);
  sqlite3_close(late);
}

TEST(locks_agree_with_sqlites_own) {
  if (strcmp(OS_NAME, "posix") == 0) test_skip("in one process POSIX locks do not keep SQLite's own VFS out");
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  sqlite3 *a = kit_open(file, 512), *b = open_foreign(file);
  locks_exclude(a, b);
  locks_exclude(b, a);
  sqlite3_close(a);
  sqlite3_close(b);
}

TEST(locks_between_processes) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  enum { WRITERS = 3, EACH = 25 };
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, "CREATE TABLE c(n); INSERT INTO c VALUES(0)");
  for (int i = 0; i < WRITERS; i++) {
    if (fork() != 0) continue;
    sqlite3 *own = NULL;
    while (kit_try_open(file, 512, &own) == SQLITE_BUSY) sqlite3_close(own);
    sqlite3_busy_timeout(own, 30000);
    for (int j = 0; j < EACH; j++) KIT_OK(own, "BEGIN IMMEDIATE; UPDATE c SET n = n + 1; COMMIT");
    sqlite3_close(own);
    _exit(0);
  }
  for (int i = 0, status = 0; i < WRITERS; i++) CHECK(wait(&status) > 0 && status == 0);
  sqlite3_stmt *stmt = NULL;
  CHECK(sqlite3_prepare_v2(db, "SELECT n FROM c", -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW);
  CHECKF(sqlite3_column_int(stmt, 0) == WRITERS * EACH, "%d", sqlite3_column_int(stmt, 0));
  sqlite3_finalize(stmt);
  kit_check_sound(db);
  sqlite3_close(db);
}

/* ---- Processes, folders, descriptors ---- */

/* How many open descriptors lead to the file; each must be CLOEXEC and above 2. */
static int count_fds(const char *file) {
  DIR *dir = opendir("/proc/self/fd");
  char link[64], target[4096];
  int count = 0;
  CHECK(dir != NULL);
  for (struct dirent *e; (e = readdir(dir));) {
    snprintf(link, sizeof link, "/proc/self/fd/%.20s", e->d_name);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0) continue;
    target[n] = '\0';
    if (strncmp(target, file, strlen(file)) != 0) continue;
    int fd = (int)strtol(e->d_name, NULL, 10);
    CHECKF(fd > 2 && (fcntl(fd, F_GETFD) & FD_CLOEXEC), "descriptor %d", fd);
    count++;
  }
  closedir(dir);
  return count;
}

TEST(a_fork_orphans_the_connection) {
  const char *file = in_folder(test_folder(), "a.db");
  int to_child[2], to_parent[2], status = 0;
  char byte = 0;
  uint64_t sum = 0;
  make_small(file, 512);
  sqlite3 *db = kit_open(file, 512), *second = kit_open(file, 512);
  unsigned generation = vfs_generation();
  KIT_OK(db, "BEGIN EXCLUSIVE; UPDATE t SET k = 'q' WHERE id = 1");
  CHECK(count_fds(file) == 3); /* two connections, one journal */
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  pid_t child = fork();
  if (child == 0) {
    CHECK(vfs_generation() == generation + 1);
    CHECK(count_fds(file) == 0);
    CHECK((kit_exec(second, "SELECT count(*) FROM t") & 0xff) == SQLITE_IOERR);
    CHECK((kit_exec(db, "COMMIT") & 0xff) == SQLITE_IOERR);
    CHECK(kit_sum_file(file, &sum) == SQLITE_BUSY); /* the parent's lock stands */
    sqlite3_close(second);
    CHECK(write(to_parent[1], "x", 1) == 1);
    CHECK(read(to_child[0], &byte, 1) == 1); /* the parent has closed: its locks must be gone though we live */
    CHECK(kit_sum_file(file, &sum) == SQLITE_OK);
    _exit(0);
  }
  CHECK(child > 0 && vfs_generation() == generation);
  close(to_parent[1]);
  CHECK(read(to_parent[0], &byte, 1) == 1);
  KIT_OK(db, "COMMIT");
  KIT_OK(db, "BEGIN EXCLUSIVE");
  sqlite3_close(db);
  KIT_OK(second, "BEGIN EXCLUSIVE; ROLLBACK");
  CHECK(write(to_child[1], "x", 1) == 1);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  sqlite3_close(second);
}

TEST(nothing_is_written_where_the_database_was) {
  const char *folder = test_folder();
  char file[1024], journal[1100], moved[1024];
  snprintf(file, sizeof file, "%s/s/a.db", folder);
  snprintf(journal, sizeof journal, "%s-journal", file);
  snprintf(moved, sizeof moved, "%s/moved", folder);
  in_folder(folder, "s");
  CHECK(mkdir(path, 0700) == 0);
  make_small(file, 512);
  sqlite3 *db = kit_open(file, 512);
  int has_moved = 1;
  CHECK(sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) == SQLITE_OK && !has_moved);
  KIT_OK(db, "UPDATE t SET k = 'a' WHERE id = 1");
  CHECK(rename(path, moved) == 0);
  CHECK(sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved) == SQLITE_OK && has_moved);
  CHECK(kit_exec(db, "UPDATE t SET k = 'b' WHERE id = 1") == SQLITE_READONLY_DBMOVED);
  CHECK(!exists(path));
  CHECK(mkdir(path, 0700) == 0); /* a new store in the same place */
  make_small(file, 512);
  unlink(journal);
  CHECK(kit_exec(db, "UPDATE t SET k = 'b' WHERE id = 1") == SQLITE_READONLY_DBMOVED);
  CHECK(!exists(journal));
  sqlite3_close(db);
}

/* Another store takes the place of ours after SQLite asked whether it has moved, before it opens the journal. */
static char replaced_file[1024], replaced_by[1024];
static int replacing_open(int folder, const char *name, int flags, unsigned mode) {
  size_t n = strlen(name);
  if (replaced_by[0] && n > 8 && strcmp(name + n - 8, "-journal") == 0) {
    CHECK(rename(replaced_by, replaced_file) == 0);
    replaced_by[0] = '\0';
  }
  return os_real.open_below(folder, name, flags, mode);
}

TEST(a_journal_of_another_store_is_not_touched) {
  const char *folder = test_folder();
  os_calls table = os_real;
  size_t len = 0;
  table.open_below = replacing_open;
  snprintf(replaced_file, sizeof replaced_file, "%s/a.db", folder);
  snprintf(replaced_by, sizeof replaced_by, "%s/b.db", folder);
  snprintf(other, sizeof other, "%s-journal", replaced_file);
  make_small(replaced_file, 512);
  make_small(replaced_by, 512);
  sqlite3 *db = kit_open(replaced_file, 512);
  KIT_OK(db, "SELECT count(*) FROM t; BEGIN IMMEDIATE");
  test_write_file(other, "\0journal of another", 19); /* not finished, so not hot */
  os_api = &table;
  CHECK(kit_exec(db, "UPDATE t SET k = 'a' WHERE id = 1") == SQLITE_READONLY_DBMOVED);
  os_api = &os_real;
  char *data = test_read_file(other, &len);
  CHECK(len == 19 && memcmp(data, "\0journal of another", 19) == 0);
  free(data);
  sqlite3_close(db);
}

TEST(nothing_is_mapped_and_wal_stays_off) {
  const char *file = in_folder(test_folder(), "a.db");
  size_t len = 0;
  make_small(file, 512);
  sqlite3 *db = kit_open(file, 512);
  sqlite3_stmt *stmt = NULL;
  KIT_OK(db, "PRAGMA mmap_size=100000000");
  sum_of(db);
  CHECK(sqlite3_prepare_v2(db, "PRAGMA journal_mode=WAL", -1, &stmt, NULL) == SQLITE_OK);
  CHECK(sqlite3_step(stmt) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), "truncate") == 0);
  sqlite3_finalize(stmt);
  CHECK(kit_exec(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; UPDATE t SET k = 'w' WHERE id = 1") != 0);
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[5000];
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps)) {
    CHECKF(!strstr(line, file), "%s", line);
    len++;
  }
  CHECK(len > 5);
  fclose(maps);
  sqlite3_close(db);
}

TEST(a_stray_wal_file_is_no_obstacle) {
  const char *file = in_folder(test_folder(), "a.db");
  uint64_t sum = 0;
  make_small(file, 512);
  snprintf(other, sizeof other, "%s-wal", file);
  test_write_file(other, "not a log", 9);
  CHECK(kit_sum_file(file, &sum) == SQLITE_OK);
  CHECK(exists(other));
}

TEST(descriptors_stay_clear_of_stdio) {
  const char *file = in_folder(test_folder(), "a.db");
  make_small(file, 512);
  close(0);
  sqlite3 *db = kit_open(file, 512);
  KIT_OK(db, "BEGIN IMMEDIATE; UPDATE t SET k = 'a' WHERE id = 1");
  CHECK(count_fds(file) == 2);
  CHECK(kit_state(db).fd > 2);
  struct stat st;
  CHECK(stat(file, &st) == 0 && (st.st_mode & 0777) == 0600);
  snprintf(other, sizeof other, "%s-journal", file);
  CHECK(stat(other, &st) == 0 && (st.st_mode & 0777) == 0600);
  KIT_OK(db, "COMMIT");
  sqlite3_close(db);
}

TEST(links_and_pipes_are_refused) {
  const char *folder = test_folder();
  sqlite3 *db = NULL;
  make_small(in_folder(folder, "a.db"), 512);
  snprintf(other, sizeof other, "%s/link.db", folder);
  CHECK(symlink(path, other) == 0);
  CHECK(kit_try_open(other, 512, &db) == SQLITE_CANTOPEN);
  sqlite3_close(db);
  snprintf(other, sizeof other, "%s/pipe.db", folder);
  CHECK(mkfifo(other, 0600) == 0);
  CHECK(kit_try_open(other, 512, &db) == SQLITE_CANTOPEN);
  sqlite3_close(db);
}
