/* SPDX-License-Identifier: Apache-2.0 */
/* sqlkit.h - a small database on the VFS "lode" for tests: made, changed and summed up the same way everywhere.
 *
 * The table is t(id INTEGER PRIMARY KEY, k TEXT, v BLOB) with an index on k. What a row holds follows from its id and a
 * generation, so that any reader can tell a right row from a wrong one.
 */
#ifndef LODE_SQLKIT_H
#define LODE_SQLKIT_H

#include "support/fault.h"
#include "vfs/vfs.h"

#include <sqlite3.h>

/* As lode opens it: TRUNCATE journal, FULL sync, no mapping, temporary data in memory, no spilling, incremental
 * vacuum, checksums. Ends the test on failure. */
sqlite3 *kit_open(const char *path, unsigned page_bytes);
/* The same, but gives the SQLite code. *db may be set also on failure; close it. */
int kit_try_open(const char *path, unsigned page_bytes, sqlite3 **db);
/* Runs statements; returns the extended code. */
int kit_exec(sqlite3 *db, const char *sql);
#define KIT_OK(db, sql) CHECKF(kit_exec(db, sql) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db))

#define KIT_TABLE "CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT, v BLOB); CREATE INDEX tk ON t(k);"
/* SQL functions of every kit connection: blob(id, generation, size) makes a row's v. */

/* Sum over all rows read by the table and over all keys read by the index. Never 0 with SQLITE_OK. */
int kit_sum(sqlite3 *db, uint64_t *sum);
/* Opens, sums, closes. */
int kit_sum_file(const char *path, uint64_t *sum);
/* The same by a connection that may only read. */
int kit_sum_read_only(const char *path, uint64_t *sum);
/* PRAGMA integrity_check says ok, and every page of the file can be read. */
void kit_check_sound(sqlite3 *db);
/* Every page of the file carries its checksum. */
void kit_check_pages(const char *path);
vfs_file_state kit_state(sqlite3 *db);
/* Runs SQL in a child that dies at call number `at` of that kind; true when it lived to the end. */
bool kit_run_and_die(const char *path, unsigned page_bytes, const char *setup, const char *sql, fault_call call,
                     uint64_t at);

#endif
