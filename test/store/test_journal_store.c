/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal_store.c - journals as a user meets them: one that was put back later, rubbish in its place, stores of
 * 0.1.0, hard links, and readers beside writers that are killed. */
#include "support/fault.h"
#include "lode.h"
#include "support/scene.h"
#include "store/tx.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

static char folder[500], truth[600], journal[620];

static void name_store(const char *name) {
  snprintf(folder, sizeof folder, "%s/%s", test_folder(), name);
  snprintf(truth, sizeof truth, "%s/lode.db", folder);
  snprintf(journal, sizeof journal, "%s-journal", truth);
}

static void open_store(bool read_only, bool create, lode_store **store, lode_collection **c) {
  lode_error err = {0};
  lode_open_options o = {
      .create = create, .read_only = read_only, .no_background = true, .page_bytes = 512, .busy_ms = 60000};
  OK(lode_open(folder, &o, store, &err));
  OK(lode_collection_open(*store, S("c"), &(lode_collection_options){.create = create}, c, &err));
}

static lode_status add(lode_collection *c, int from, int n, lode_error *err) {
  static char ids[100][16], texts[100][80];
  static lode_record r[100];
  for (int i = 0; i < n; i++) {
    r[i] = (lode_record){
        .id = {ids[i], (size_t)snprintf(ids[i], sizeof ids[i], "%d", from + i)},
        .document = {texts[i], (size_t)snprintf(texts[i], sizeof texts[i], "number %d %060d", from + i, from + i)}};
  }
  return lode_add(c, NULL, r, (size_t)n, LODE_FAIL_EXISTING, NULL, err);
}

static uint64_t count(bool read_only) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t n;
  open_store(read_only, false, &store, &c);
  OK(lode_count(c, &n, &err));
  lode_collection_close(c);
  lode_close(store);
  return n;
}

static uint64_t quarantined(void) {
  lode_store *store;
  lode_error err = {0};
  lode_stats stats;
  OK(lode_open(folder, &(lode_open_options){.no_background = true, .read_only = true}, &store, &err));
  OK(lode_store_stats(store, &stats, &err));
  lode_close(store);
  return stats.quarantined;
}

/* Adds `n` records in a process that dies before it can end its journal. */
static void crash_while_adding(int from, int n) {
  int status;
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    lode_store *store;
    lode_collection *c;
    lode_error err = {0};
    open_store(false, false, &store, &c);
    fault_install(&os_real);
    fault_set(FAULT_FTRUNCATE, 1, false, FAULT_EXIT);
    OK(add(c, from, n, &err));
    _exit(0);
  }
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == FAULT_EXIT_STATUS);
}

static void make_store(int records) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  open_store(false, true, &store, &c);
  OK(add(c, 0, records, &err));
  lode_collection_close(c);
  lode_close(store);
}

/* ---- One that was put back, and one that never was ---- */

TEST(an_old_journal_put_back_undoes_nothing) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  char saved[700];
  name_store("s");
  make_store(10);
  crash_while_adding(10, 20);
  snprintf(saved, sizeof saved, "%s/saved", test_folder());
  test_copy_tree(folder, saved);
  CHECK(count(false) == 10); /* recovered */
  open_store(false, false, &store, &c);
  for (int i = 10; i < 40; i += 10) OK(add(c, i, 10, &err));
  lode_collection_close(c);
  lode_close(store);
  size_t len;
  snprintf(saved + strlen(saved), 20, "/lode.db-journal");
  char *old = test_read_file(saved, &len);
  CHECK(len > 1024);
  test_write_file(journal, old, len);
  free(old);
  CHECK(count(true) == 40);
  CHECK(quarantined() == 0); /* readers leave it alone */
  CHECK(count(false) == 40);
  CHECK(quarantined() == 1);
  scene_verify(folder, "an old journal was put back");
  CHECK(count(true) == 40);
}

TEST(rubbish_in_place_of_a_journal_stops_nobody) {
  static const struct {
    const char *data;
    size_t len;
  } rubbish[] = {{"x", 1}, {"corrupted", 9}, {"\0\0\0\0", 4}, {"SQLite format 3", 16}};
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  name_store("s");
  make_store(10);
  for (int i = 0; i < 4; i++) {
    test_write_file(journal, rubbish[i].data, rubbish[i].len);
    CHECK(count(true) == (uint64_t)(10 + i));
    open_store(false, false, &store, &c);
    OK(add(c, 10 + i, 1, &err));
    lode_collection_close(c);
    lode_close(store);
    scene_verify(folder, "rubbish");
  }
  CHECK(quarantined() == 3); /* zeros are a journal that was never filled in */
}

/* A link, a FIFO, a folder: each is moved aside as it is and counted, and what it leads to stays. */
TEST(what_is_no_journal_is_set_aside_and_counted) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  char target[700];
  size_t len;
  name_store("s");
  make_store(10);
  snprintf(target, sizeof target, "%s/../target", folder);
  test_write_file(target, "precious", 8);
  for (int i = 0; i < 3; i++) {
    (void)remove(journal);
    CHECK((i == 0 ? symlink(target, journal) : i == 1 ? mkfifo(journal, 0600) : mkdir(journal, 0700)) == 0);
    CHECK(count(true) == (uint64_t)(10 + i));
    open_store(false, false, &store, &c);
    OK(add(c, 10 + i, 1, &err));
    lode_collection_close(c);
    lode_close(store);
    CHECKF(quarantined() == (uint64_t)i + 1, "%llu counted, %d there", (unsigned long long)quarantined(), i + 1);
  }
  char *bytes = test_read_file(target, &len);
  CHECK(len == 8 && memcmp(bytes, "precious", 8) == 0);
  free(bytes);
  snprintf(target, sizeof target, "%s/notes.quarantine-old", folder);
  test_write_file(target, "a user's", 8);
  CHECK(quarantined() == 3); /* not a name of Lode's */
}

/* ---- Hard links ---- */

TEST(a_store_with_two_names_is_read_and_not_written) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t n;
  char other[700];
  name_store("s");
  make_store(10);
  snprintf(other, sizeof other, "%s/copy", test_folder());
  CHECK(link(truth, other) == 0);
  CHECK(count(true) == 10);
  open_store(false, false, &store, &c);
  OK(lode_count(c, &n, &err));
  CHECK(n == 10);
  FAILS(LODE_REFUSED, add(c, 10, 1, &err));
  CHECKF(strstr(err.text, "hard link") && strstr(err.text, "mv own lode.db"), "%s", err.text);
  OK(lode_count(c, &n, &err));
  CHECK(unlink(other) == 0);
  OK(add(c, 10, 1, &err)); /* without opening it again */
  lode_collection_close(c);
  lode_close(store);
  CHECK(count(true) == 11);
}

/* ---- 0.1.0 ---- */

static char *records; /* what its stores hold */

static void unpack(void) {
  char command[1200];
  size_t len;
  const char *to = test_folder();
  if (access("test/fixtures/store-0.1.0.tar.gz", R_OK) != 0)
    test_skip("the fixtures are not here: run it from the top of the source");
  snprintf(command, sizeof command, "tar -xzf test/fixtures/store-0.1.0.tar.gz -C '%s'", to);
  CHECK(system(command) == 0);
  snprintf(command, sizeof command, "%s/records.jsonl", to);
  records = test_read_file(command, &len);
  CHECK(len > 500);
  snprintf(folder, sizeof folder, "%s", to);
}

static void use(const char *root, const char *name) {
  char from[700];
  const char *to = test_folder();
  snprintf(from, sizeof from, "%s/%s", root, name);
  snprintf(folder, sizeof folder, "%s/s", to);
  snprintf(truth, sizeof truth, "%s/lode.db", folder);
  snprintf(journal, sizeof journal, "%s-journal", truth);
  test_copy_tree(from, folder);
}

typedef struct text {
  char data[8192];
  size_t len;
} text;

static int64_t take(void *ctx, const void *data, size_t size) {
  text *t = ctx;
  CHECK(t->len + size < sizeof t->data);
  memcpy(t->data + t->len, data, size);
  t->len += size;
  return (int64_t)size;
}

/* Opens it, compares all records, and says which format it has then. */
static uint32_t check_records(bool read_only) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  lode_stats stats;
  text t = {.len = 0};
  open_store(read_only, false, &store, &c);
  OK(lode_export(c, NULL, LODE_ALL, take, &t, (lode_progress){0}, NULL, &err));
  t.data[t.len] = 0;
  CHECKF(strcmp(t.data, records) == 0, "other records: %s", t.data);
  OK(lode_store_stats(store, &stats, &err));
  lode_collection_close(c);
  lode_close(store);
  return stats.format;
}

static char *read_both(size_t *len) {
  size_t a, b;
  char *x = test_read_file(truth, &a), *y = test_read_file(journal, &b);
  x = realloc(x, a + b + 1);
  memcpy(x + a, y, b);
  free(y);
  *len = a + b;
  return x;
}

TEST(stores_of_0_1_0_are_read_as_they_are_and_brought_up) {
  char root[500];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  unpack();
  snprintf(root, sizeof root, "%s", folder);
  for (int hot = 0; hot < 2; hot++) {
    size_t len, now_len;
    use(root, hot ? "hot" : "whole");
    char *was = read_both(&len);
    CHECK(check_records(true) == 1);
    char *now = read_both(&now_len);
    CHECK(now_len == len && memcmp(was, now, len) == 0);
    free(was);
    free(now);
    CHECK(check_records(false) == 2);
    CHECK(check_records(true) == 2);
    CHECK(quarantined() == 0);
    scene_verify(folder, "a store of 0.1.0");
    open_store(false, false, &store, &c);
    OK(add(c, 100, 10, &err));
    lode_collection_close(c);
    lode_close(store);
    CHECK(count(true) == 22);
    scene_verify(folder, "a store of 0.1.0, written to");
  }
}

/* Somebody else writes, or only holds the lock, all the time: it is read as it is, and brought up by the first write.
 */
TEST(a_store_of_0_1_0_is_read_beside_a_writer) {
  char root[500];
  sqlite3 *writer = NULL;
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t n;
  unpack();
  snprintf(root, sizeof root, "%s", folder);
  use(root, "whole");
  OK(vfs_register(&err));
  CHECK(sqlite3_open_v2(truth, &writer, SQLITE_OPEN_READWRITE, VFS_NAME) == SQLITE_OK);
  CHECK(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
  OK(lode_open(folder, &(lode_open_options){.no_background = true, .busy_ms = 20}, &store, &err));
  OK(lode_collection_open(store, S("c"), NULL, &c, &err));
  OK(lode_count(c, &n, &err));
  CHECK(n == 12);
  CHECK(add(c, 100, 10, &err) == LODE_BUSY);
  CHECK(sqlite3_exec(writer, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_close(writer);
  OK(add(c, 100, 10, &err));
  lode_collection_close(c);
  lode_close(store);
  CHECK(count(true) == 22);
  scene_verify(folder, "a store of 0.1.0, written to later");
}

TEST(a_journal_of_0_1_0_is_not_rolled_back_into_format_2) {
  char root[500], path[700];
  size_t len;
  unpack();
  snprintf(root, sizeof root, "%s", folder);
  snprintf(path, sizeof path, "%s/hot/lode.db-journal", root);
  char *old = test_read_file(path, &len);
  use(root, "whole");
  CHECK(check_records(false) == 2);
  crash_while_adding(100, 5);
  CHECK(count(false) == 12);
  test_write_file(journal, old, len);
  CHECK(check_records(true) == 2 && check_records(false) == 2);
  CHECK(quarantined() == 1);
  scene_verify(folder, "a journal of 0.1.0 beside format 2");
  free(old);
}

static lode_status only_open(void *ctx, lode_error *err) {
  (void)ctx;
  lode_store *store;
  lode_status st = lode_open(folder, &(lode_open_options){.no_background = true}, &store, err);
  if (st == LODE_OK) lode_close(store);
  return st;
}

TEST_SLOW(killed_while_a_store_is_brought_up, 300) {
  char root[500];
  bool left_old = false, left_new = false;
  unpack();
  snprintf(root, sizeof root, "%s", folder);
  for (int hot = 0; hot < 2; hot++) {
    use(root, hot ? "hot" : "whole");
    uint64_t total = fault_in_child(only_open, NULL, FAULT_ANY, 0, FAULT_EXIT);
    CHECK(total > 20 && check_records(true) == 2);
    for (uint64_t n = 1; n <= total; n += test_full() ? 1 : 1 + test_below(5)) {
      use(root, hot ? "hot" : "whole");
      (void)fault_in_child(only_open, NULL, FAULT_ANY, n, FAULT_EXIT);
      uint32_t format = check_records(true);
      left_old |= format == 1;
      left_new |= format == 2;
      CHECKF(check_records(false) == 2, "killed at call %llu", (unsigned long long)n);
      CHECK(quarantined() == 0);
      scene_verify(folder, "killed while it was brought up");
    }
  }
  CHECK(left_old && left_new);
}

TEST(a_store_of_0_1_0_on_a_full_disk_can_be_read) {
  char root[500];
  unpack();
  snprintf(root, sizeof root, "%s", folder);
  use(root, "whole");
  fault_install(&os_real);
  fault_set(FAULT_PWRITE, 1, true, FAULT_ENOSPC);
  CHECK(check_records(false) == 1);
  CHECK(fault_hits() > 0);
  fault_uninstall();
  CHECK(check_records(false) == 2);
}

/* ---- How a rollback ends ---- */

static ino_t journal_ino;
static unsigned emptied, removed;
static bool sync_due;

static bool is_journal(int fd) {
  struct stat sb;
  return fstat(fd, &sb) == 0 && sb.st_ino == journal_ino;
}
static int noting_ftruncate(int fd, off_t size) {
  if (is_journal(fd)) {
    CHECK(size == 0);
    emptied++;
    sync_due = true;
  }
  return os_real.ftruncate(fd, size);
}
static int noting_fdatasync(int fd) {
  if (is_journal(fd)) sync_due = false;
  return os_real.fdatasync(fd);
}
static int noting_unlink_at(int at, const char *name) {
  removed += strstr(name, "-journal") != NULL;
  return os_real.unlink_at(at, name);
}

/* Also one that begins with the first read of a connection, which is that of the schema: the journal is emptied, and
 * that is synced. */
TEST(a_rollback_while_opening_empties_the_journal) {
  static os_calls table;
  struct stat sb;
  name_store("s");
  make_store(10);
  crash_while_adding(10, 20);
  CHECK(stat(journal, &sb) == 0 && sb.st_size > 0);
  journal_ino = sb.st_ino;
  table = os_real;
  table.ftruncate = noting_ftruncate;
  table.fdatasync = noting_fdatasync;
  table.unlink_at = noting_unlink_at;
  os_api = &table;
  CHECK(count(false) == 10);
  os_api = &os_real;
  CHECKF(emptied == 1 && !removed && !sync_due, "emptied %u times, removed %u times%s", emptied, removed,
         sync_due ? ", not synced" : "");
  CHECK(stat(journal, &sb) == 0 && sb.st_size == 0 && sb.st_ino == journal_ino);
  scene_verify(folder, "rolled back while opening");
}

TEST_SLOW(calls_fail_in_a_rollback_while_opening, 120) {
  lode_error err = {0};
  char saved[700];
  uint64_t met = 0;
  name_store("s");
  make_store(10);
  crash_while_adding(10, 20);
  snprintf(saved, sizeof saved, "%s/saved", test_folder());
  test_copy_tree(folder, saved);
  fault_install(&os_real);
  for (uint64_t at = 1, hit = 1; hit; at += test_full() ? 1 : 1 + test_below(3)) {
    test_remove_tree(folder);
    test_copy_tree(saved, folder);
    fault_set(FAULT_ANY, at, test_below(2), FAULT_EIO);
    lode_status st = only_open(NULL, &err);
    hit = fault_hits();
    fault_clear();
    CHECKF(st == LODE_OK || (st == LODE_IO && hit), "call %llu: %s %s", (unsigned long long)at, lode_status_name(st),
           err.text);
    CHECKF(count(true) == 10 && count(false) == 10, "call %llu", (unsigned long long)at);
    met += hit > 0;
  }
  fault_uninstall();
  CHECK(met > 15 && quarantined() == 0);
}

/* ---- Many processes ---- */

enum { EACH = 7 }; /* records in a transaction */

/* Transactions of EACH records; ends at one of the calls that the first two make, most often in the middle of a commit.
 */
static void write_and_die(int who) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  open_store(false, false, &store, &c);
  fault_install(&os_real);
  fault_set(FAULT_ANY, 1 + test_below(160), false, FAULT_EXIT);
  for (int i = 0;; i++) OK(add(c, who * 1000 + i * EACH, EACH, &err));
}

static void read_until(const char *stop, bool read_only) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t n, last = 0;
  struct stat sb;
  while (stat(stop, &sb) != 0) {
    open_store(read_only, false, &store, &c);
    for (int i = 0; i < 20; i++) {
      lode_result *rows;
      OK(lode_count(c, &n, &err));
      CHECKF(n % EACH == 0 && n >= last, "%llu records after %llu", (unsigned long long)n, (unsigned long long)last);
      last = n;
      OK(lode_get(c, &(lode_get_request){.limit = 40, .include = LODE_ALL}, &rows, &err));
      CHECK(lode_result_count(rows) >= (n < 40 ? n : 40));
      lode_result_free(rows);
    }
    lode_collection_close(c);
    lode_close(store);
  }
  _exit(0);
}

/* A reader's count never falls: what was counted is committed. The next writer, or a reader that may write, rolls back.
 */
TEST_SLOW(readers_beside_writers_that_are_killed, 240) {
  enum { READERS = 4, KILLS = 100 };
  pid_t readers[READERS];
  char stop[700];
  int hot = 0;
  name_store("s");
  make_store(EACH);
  snprintf(stop, sizeof stop, "%s/stop", test_folder());
  for (int i = 0; i < READERS; i++) {
    readers[i] = fork();
    CHECK(readers[i] >= 0);
    if (readers[i] == 0) read_until(stop, i < READERS - 1);
  }
  for (int k = 1; k <= (test_full() ? 20 * KILLS : KILLS); k++) {
    int status;
    struct stat sb;
    pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer == 0) {
      test_srand(test_seed() + (uint64_t)k);
      write_and_die(k);
    }
    CHECK(waitpid(writer, &status, 0) == writer);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == FAULT_EXIT_STATUS, "writer %d ended with status %x", k,
           (unsigned)status);
    hot += stat(journal, &sb) == 0 && sb.st_size > 0;
  }
  test_write_file(stop, "", 0);
  for (int i = 0; i < READERS; i++) {
    int status;
    CHECK(waitpid(readers[i], &status, 0) == readers[i]);
    CHECKF(status == 0, "reader %d ended with status %x", i, (unsigned)status);
  }
  CHECKF(hot > KILLS / 10, "only %d journals were left", hot);
  CHECK(count(false) % EACH == 0);
  CHECK(quarantined() == 0);
  scene_verify(folder, "after many kills");
}
