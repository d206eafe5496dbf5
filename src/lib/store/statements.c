/* SPDX-License-Identifier: Apache-2.0 */
/* statements.c - the prepared statements of a connection. The contract is in statements.h, the texts are in sql.h. */
#include "store/tx.h"

static const char *const stmt_sql[STORE_STMT_COUNT] = {
#define STMT_SQL(name, sql) sql,
    STORE_STATEMENTS(STMT_SQL)
#undef STMT_SQL
};

/* ---- Getting a statement ---- */

static int stmt_prepare_once(store_conn *conn, int which) {
  sqlite3_stmt **s = &conn->stmt[which];
  return *s ? SQLITE_OK : sqlite3_prepare_v3(conn->sql, stmt_sql[which], -1, SQLITE_PREPARE_PERSISTENT, s, NULL);
}

/* The transaction cannot be committed; SQLite may have rolled it back. */
static lode_status stmt_failed(store_tx *tx, int rc, lode_error *err) {
  lode_status st = store_err_sql(tx->conn, rc, err);
  tx->failed = true;
  tx->why = st;
  return st;
}

lode_status store_stmt(store_tx *tx, int which, sqlite3_stmt **stmt, lode_error *err) {
  *stmt = NULL;
  ENSURE(which >= 0 && which < STORE_STMT_COUNT, err);
  store_conn *conn = tx->conn;
  /* After some errors SQLite rolls back by itself; a statement run now would be committed on its own. */
  if (tx->open && sqlite3_get_autocommit(conn->sql)) {
    if (tx->why == LODE_OK) return err_internal(err, "SQLite rolled the transaction back, and no statement had failed");
    return err_set(err, tx->why, "the transaction was rolled back because of an error: %s", lode_status_text(tx->why));
  }
  int rc = stmt_prepare_once(conn, which);
  if (rc != SQLITE_OK) return stmt_failed(tx, rc, err);
  store_stmt_reset(conn->stmt[which]);
  *stmt = conn->stmt[which];
  return LODE_OK;
}

lode_status store_stmt_key(store_tx *tx, int which, int64_t key, sqlite3_stmt **stmt, lode_error *err) {
  TRY(store_stmt(tx, which, stmt, err));
  store_bind_int(tx, *stmt, 1, key);
  return LODE_OK;
}

lode_status store_stmt_range(store_tx *tx, int which, int64_t after, int64_t last, sqlite3_stmt **stmt,
                             lode_error *err) {
  TRY(store_stmt_key(tx, which, after, stmt, err));
  store_bind_int(tx, *stmt, 2, last);
  return LODE_OK;
}

lode_status store_stmt_prepare(store_tx *tx, const char *sql, sqlite3_stmt **stmt, lode_error *err) {
  int rc = sqlite3_prepare_v2(tx->conn->sql, sql, -1, stmt, NULL);
  return rc == SQLITE_OK ? LODE_OK : stmt_failed(tx, rc, err);
}

/* ---- Parameters ---- */

/* The first failure counts: what follows it may be a consequence. */
static void stmt_note_bind(store_tx *tx, int rc) {
  if (tx->bind_rc == SQLITE_OK) tx->bind_rc = rc;
}

void store_bind_int(store_tx *tx, sqlite3_stmt *s, int i, int64_t value) {
  stmt_note_bind(tx, sqlite3_bind_int64(s, i, value));
}
void store_bind_real(store_tx *tx, sqlite3_stmt *s, int i, double value) {
  stmt_note_bind(tx, sqlite3_bind_double(s, i, value));
}
void store_bind_null(store_tx *tx, sqlite3_stmt *s, int i) { stmt_note_bind(tx, sqlite3_bind_null(s, i)); }
void store_bind_blob(store_tx *tx, sqlite3_stmt *s, int i, lode_str v) {
  stmt_note_bind(tx, v.data ? sqlite3_bind_blob64(s, i, v.data, v.len, SQLITE_STATIC) : sqlite3_bind_null(s, i));
}
void store_bind_text(store_tx *tx, sqlite3_stmt *s, int i, lode_str v) {
  stmt_note_bind(tx, v.data ? sqlite3_bind_text64(s, i, v.data, v.len, SQLITE_STATIC, SQLITE_UTF8)
                            : sqlite3_bind_null(s, i));
}
void store_bind_copy(store_tx *tx, sqlite3_stmt *s, int i, lode_str v) {
  stmt_note_bind(tx, sqlite3_bind_blob64(s, i, v.data ? v.data : "", v.len, SQLITE_TRANSIENT));
}
void store_bind_value(store_tx *tx, sqlite3_stmt *s, int i, const sqlite3_value *value) {
  stmt_note_bind(tx, sqlite3_bind_value(s, i, value));
}
void store_bind_pointer(store_tx *tx, sqlite3_stmt *s, int i, void *pointer, const char *type) {
  stmt_note_bind(tx, sqlite3_bind_pointer(s, i, pointer, type, NULL));
}

/* ---- Running ---- */

lode_status store_stmt_step(store_tx *tx, sqlite3_stmt *stmt, bool *row, lode_error *err) {
  int rc = tx->bind_rc == SQLITE_OK ? sqlite3_step(stmt) : tx->bind_rc;
  tx->bind_rc = SQLITE_OK;
  *row = rc == SQLITE_ROW;
  store_conn_stop_waiting(tx->conn); /* each wait has its own timeout */
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) return LODE_OK;
  lode_status st = stmt_failed(tx, rc, err);
  store_stmt_reset(stmt);
  return st;
}

lode_status store_stmt_run(store_tx *tx, sqlite3_stmt *stmt, lode_error *err) {
  bool row;
  lode_status st;
  do {
    st = store_stmt_step(tx, stmt, &row, err);
  } while (st == LODE_OK && row);
  store_stmt_reset(stmt);
  return st;
}

lode_status store_stmt_int(store_tx *tx, sqlite3_stmt *stmt, int64_t *value, bool *row, lode_error *err) {
  bool found;
  *value = 0;
  lode_status st = store_stmt_step(tx, stmt, &found, err);
  if (found) *value = store_column_int(stmt, 0);
  if (row) *row = found;
  store_stmt_reset(stmt);
  return st;
}

/* sqlite3_reset() repeats the error of the last step, which was returned then. */
void store_stmt_reset(sqlite3_stmt *stmt) { (void)sqlite3_reset(stmt); }

lode_status store_run(store_tx *tx, int which, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt(tx, which, &s, err));
  return store_stmt_run(tx, s, err);
}

lode_status store_run_key(store_tx *tx, int which, int64_t key, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, which, key, &s, err));
  return store_stmt_run(tx, s, err);
}

lode_status store_get_int(store_tx *tx, int which, int64_t *value, lode_error *err) {
  sqlite3_stmt *s;
  *value = 0;
  TRY(store_stmt(tx, which, &s, err));
  return store_stmt_int(tx, s, value, NULL, err);
}

lode_status store_vacuum(store_tx *tx, unsigned max_pages, lode_error *err) {
  char sql[64];
  snprintf(sql, sizeof sql, STORE_SQL_VACUUM, max_pages);
  return store_exec(tx->conn, sql, err);
}

/* ---- Without a transaction ---- */

lode_status store_exec(store_conn *conn, const char *sql, lode_error *err) {
  int rc = sqlite3_exec(conn->sql, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? LODE_OK : store_err_sql(conn, rc, err);
}

lode_status store_schema_cookie(store_conn *conn, int64_t *cookie, lode_error *err) {
  *cookie = 0;
  int rc = stmt_prepare_once(conn, STORE_STMT_SCHEMA_COOKIE);
  sqlite3_stmt *s = conn->stmt[STORE_STMT_SCHEMA_COOKIE];
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  if (rc == SQLITE_ROW) *cookie = store_column_int(s, 0);
  int end = sqlite3_reset(s);
  if (rc == SQLITE_ROW) rc = end;
  return rc == SQLITE_OK ? LODE_OK : store_err_sql(conn, rc, err);
}
