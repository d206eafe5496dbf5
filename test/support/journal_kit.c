/* SPDX-License-Identifier: Apache-2.0 */
/* journal_kit.c - see journal_kit.h. */
#include "support/journal_kit.h"
#include "vfs/journal.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

char journal_folder[1000], journal_db[1024], journal_file[1100];

#define ROWS(from, to) "WITH RECURSIVE n(i) AS (SELECT " #from " UNION ALL SELECT i+1 FROM n WHERE i<" #to ")"
#define FILL ROWS(1, 40) "INSERT INTO t SELECT i, 'key' || (i*7919 % 1000), blob(i, 1, i*i % 900) FROM n;"

journal_bytes journal_load(const char *path) {
  journal_bytes b = {0};
  b.data = test_read_file(path, &b.len);
  return b;
}

void journal_store(const char *path, const journal_bytes *b) { test_write_file(path, b->data, b->len); }

uint64_t journal_sum_now(void) {
  uint64_t sum = 0;
  int rc = kit_sum_file(journal_db, &sum);
  CHECKF(rc == SQLITE_OK, "%s: %d", journal_db, rc);
  return sum;
}

void journal_make_base(void) {
  snprintf(journal_folder, sizeof journal_folder, "%s", test_folder());
  snprintf(journal_db, sizeof journal_db, "%s/a.db", journal_folder);
  snprintf(journal_file, sizeof journal_file, "%s-journal", journal_db);
  sqlite3 *db = kit_open(journal_db, JOURNAL_PAGE);
  KIT_OK(db, KIT_TABLE);
  KIT_OK(db, FILL);
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

int journal_take_asides(void) {
  char path[2200];
  int n = 0;
  DIR *dir = opendir(journal_folder);
  CHECK(dir != NULL);
  for (struct dirent *e; (e = readdir(dir));) {
    if (strncmp(e->d_name, "a.db-journal" STOREFILE_QUARANTINE_INFIX, 12 + sizeof STOREFILE_QUARANTINE_INFIX - 1) != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", journal_folder, e->d_name);
    CHECK(remove(path) == 0);
    n++;
  }
  closedir(dir);
  return n;
}

journal_crash journal_make_crash(const char *setup) {
  journal_crash c = {0};
  journal_make_base();
  c.before = journal_sum_now();
  c.db[0] = journal_load(journal_db);
  CHECK(kit_run_and_die(journal_db, JOURNAL_PAGE, setup, JOURNAL_CHANGE, FAULT_ANY, 0));
  c.after = journal_sum_now();
  CHECK(c.after != c.before);
  journal_store(journal_db, &c.db[0]);
  CHECK(!kit_run_and_die(journal_db, JOURNAL_PAGE, setup, JOURNAL_CHANGE, FAULT_FTRUNCATE, 1));
  c.db[2] = journal_load(journal_db);
  c.journal = journal_load(journal_file);
  CHECK(c.journal.len > 2000);
  /* half of the pages, and not the first: as if they had been spilled, or as a power cut may leave it */
  c.db[1] = journal_load(journal_db);
  size_t pages = c.db[0].len / JOURNAL_PAGE;
  for (size_t i = 0; i < pages; i++)
    if (i == 0 || i % 2) memcpy(c.db[1].data + i * JOURNAL_PAGE, c.db[0].data + i * JOURNAL_PAGE, JOURNAL_PAGE);
  CHECK(memcmp(c.db[1].data, c.db[0].data, c.db[0].len) != 0 && memcmp(c.db[1].data, c.db[2].data, c.db[0].len) != 0);
  CHECK(journal_commit_id((unsigned char *)c.db[0].data) != journal_commit_id((unsigned char *)c.db[2].data));
  return c;
}

void journal_free_crash(journal_crash *c) {
  for (int i = 0; i < 3; i++) free(c->db[i].data);
  free(c->journal.data);
}

void journal_check_same(const char *path, const journal_bytes *was, const char *what) {
  journal_bytes now = journal_load(path);
  CHECKF(now.len == was->len && memcmp(now.data, was->data, now.len) == 0, "%s: %s was changed", what, path);
  free(now.data);
}
