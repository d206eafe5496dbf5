/* SPDX-License-Identifier: Apache-2.0 */
/* statements.h - running SQL: the prepared statements of a connection, checked binding, stepping, reading columns.
 *
 * Only statements.c calls sqlite3_bind_*(), sqlite3_step() and sqlite3_prepare*() (tools/check-names.sh). A bind that
 * fails is remembered by the transaction, and the next step of any of its statements returns the error: a statement
 * never runs with a parameter that was not set.
 *
 * Bound strings are not copied: they must stay valid until the statement is reset or bound again. A statement that has
 * returned a row is reset by whoever stopped stepping it; a row that is left standing keeps its strings valid.
 */
#ifndef LODE_STORE_STATEMENTS_H
#define LODE_STORE_STATEMENTS_H

#include "store/sql.h"
#include "store/store.h"

#include <sqlite3.h>

typedef struct store_conn store_conn; /* conn.h */

enum {
#define STORE_STMT_ENUM(name, sql) STORE_STMT_##name,
  STORE_STATEMENTS(STORE_STMT_ENUM)
#undef STORE_STMT_ENUM
      STORE_STMT_COUNT
};

/* ---- Getting a statement ---- */

/* A statement of this transaction's connection, reset, prepared on first use. Bindings are kept from the last use. */
LODE_MUST lode_status store_stmt(store_tx *tx, int which, sqlite3_stmt **stmt, lode_error *err);
/* The same, with the first parameter set; with the first two. */
LODE_MUST lode_status store_stmt_key(store_tx *tx, int which, int64_t key, sqlite3_stmt **stmt, lode_error *err);
LODE_MUST lode_status store_stmt_range(store_tx *tx, int which, int64_t after, int64_t last, sqlite3_stmt **stmt,
                                       lode_error *err);
/* A statement that is not in the table, for the caller to finalize. */
LODE_MUST lode_status store_stmt_prepare(store_tx *tx, const char *sql, sqlite3_stmt **stmt, lode_error *err);

/* ---- Parameters: numbered from 1; an absent string is bound as NULL ---- */

void store_bind_int(store_tx *tx, sqlite3_stmt *stmt, int i, int64_t value);
void store_bind_real(store_tx *tx, sqlite3_stmt *stmt, int i, double value);
void store_bind_null(store_tx *tx, sqlite3_stmt *stmt, int i);
void store_bind_blob(store_tx *tx, sqlite3_stmt *stmt, int i, lode_str value);
void store_bind_text(store_tx *tx, sqlite3_stmt *stmt, int i, lode_str value);
void store_bind_copy(store_tx *tx, sqlite3_stmt *stmt, int i, lode_str value); /* a blob; SQLite copies it */
void store_bind_value(store_tx *tx, sqlite3_stmt *stmt, int i, const sqlite3_value *value);
void store_bind_pointer(store_tx *tx, sqlite3_stmt *stmt, int i, void *pointer, const char *type);

/* ---- Running ---- */

/* Steps once: *row says whether there is a row. The statement is reset only on error. */
LODE_MUST lode_status store_stmt_step(store_tx *tx, sqlite3_stmt *stmt, bool *row, lode_error *err);
/* Steps to the end and resets. */
LODE_MUST lode_status store_stmt_run(store_tx *tx, sqlite3_stmt *stmt, lode_error *err);
/* Steps once and resets: the integer in the first column. *row, unless NULL: there was a row; *value is 0 if not. */
LODE_MUST lode_status store_stmt_int(store_tx *tx, sqlite3_stmt *stmt, int64_t *value, bool *row, lode_error *err);
void store_stmt_reset(sqlite3_stmt *stmt); /* NULL is allowed */
/* Gets a statement without parameters, or with one, and runs it. */
LODE_MUST lode_status store_run(store_tx *tx, int which, lode_error *err);
LODE_MUST lode_status store_run_key(store_tx *tx, int which, int64_t key, lode_error *err);
/* The integer that a statement without parameters returns, such as a pragma. */
LODE_MUST lode_status store_get_int(store_tx *tx, int which, int64_t *value, lode_error *err);

/* Returns up to this many free pages to the file system. */
LODE_MUST lode_status store_vacuum(store_tx *tx, unsigned max_pages, lode_error *err);

/* Without a transaction, for a connection that is being set up or checked. */
LODE_MUST lode_status store_exec(store_conn *conn, const char *sql, lode_error *err);
/* SQLite's number of the schema's version. Takes the lock of a read, and does not make SQLite parse the schema. */
LODE_MUST lode_status store_schema_cookie(store_conn *conn, int64_t *cookie, lode_error *err);

/* ---- Columns: numbered from 0 ---- */

static inline int64_t store_column_int(sqlite3_stmt *s, int i) { return sqlite3_column_int64(s, i); }
static inline bool store_column_is_null(sqlite3_stmt *s, int i) { return sqlite3_column_type(s, i) == SQLITE_NULL; }
/* A NULL column is an absent string; an empty one has a valid pointer. */
static inline lode_str store_column_str(sqlite3_stmt *s, int i) {
  if (store_column_is_null(s, i)) return (lode_str){NULL, 0};
  const void *p = sqlite3_column_blob(s, i);
  return (lode_str){p ? p : "", (size_t)sqlite3_column_bytes(s, i)};
}

#endif
