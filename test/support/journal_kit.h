/* SPDX-License-Identifier: Apache-2.0 */
/* journal_kit.h - a database whose transaction was killed, and its journal, for the tests of journals. */
#ifndef LODE_JOURNAL_KIT_H
#define LODE_JOURNAL_KIT_H

#include "support/fault.h"
#include "support/sqlkit.h"

enum { JOURNAL_PAGE = 512 };
#define JOURNAL_SPILL "PRAGMA cache_size=4; PRAGMA cache_spill=4;"
#define JOURNAL_CHANGE "UPDATE t SET v = blob(id, 2, 300), k = 'n' || k WHERE id % 3 = 1"

/* Of the test at hand; set by journal_make_base(). */
extern char journal_folder[1000], journal_db[1024], journal_file[1100];

typedef struct journal_bytes {
  char *data;
  size_t len;
} journal_bytes;

journal_bytes journal_load(const char *path);
void journal_store(const char *path, const journal_bytes *b);
/* Fails the test when the file is another than it was. */
void journal_check_same(const char *path, const journal_bytes *was, const char *what);

/* A database of 40 rows (sqlkit.h) in a folder of its own. */
void journal_make_base(void);
/* Its sum, read by a connection that may write: recovers it. */
uint64_t journal_sum_now(void);
/* How many journals were set aside; they are removed. */
int journal_take_asides(void);

/* A transaction that was killed, and the database at three moments of it. */
typedef struct journal_crash {
  journal_bytes journal;
  journal_bytes db[3]; /* before it was touched, half-way, written wholly */
  uint64_t before, after;
} journal_crash;
/* `setup`: SQL to run before it. */
journal_crash journal_make_crash(const char *setup);
void journal_free_crash(journal_crash *c);

#endif
