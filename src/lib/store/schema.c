/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - the tables of the database file; creating and upgrading a store.
 *
 * A new database file is created under another name, completed, synced, and then renamed: a file called lode.db is
 * never half-made, so an empty one or one without a header is damaged. The mark in lode.lock is written after that: a
 * marked folder without a database file has lost it, and no new one is created silently.
 */
#include "store/schema.h"

#include <errno.h>

#define SCHEMA_TABLE(name, columns) {"table", name, name, "CREATE TABLE " name columns, true},
#define SCHEMA_OBJECT(type, name, table, sql) {type, name, table, sql, true},
#define SCHEMA_AUTOINDEX(table) {"index", "sqlite_autoindex_" table "_1", table, NULL, false},
#define SCHEMA_SHADOW(name, columns) {"table", name, name, "CREATE TABLE '" name "'" columns, false},
const store_schema_object store_schema_objects[] = {
    STORE_SCHEMA(SCHEMA_TABLE, SCHEMA_OBJECT, SCHEMA_AUTOINDEX, SCHEMA_SHADOW)};
_Static_assert(sizeof store_schema_objects / sizeof *store_schema_objects == STORE_SCHEMA_OBJECTS, "sql.h counts them");

lode_status store_schema_check_format(uint32_t format, const char *path, lode_error *err) {
  if (format >= 1 && format <= STORE_FORMAT) return LODE_OK;
  if (format > STORE_FORMAT)
    return err_set(err, LODE_TOO_NEW,
                   "%s has format %u, and this Lode knows formats up to %u; use a newer Lode (nothing was changed)",
                   path, format, STORE_FORMAT);
  return err_set(err, LODE_CORRUPT, "%s has no valid format number; `lode db salvage` brings over what is whole", path);
}

static lode_status schema_make_objects(store_conn *conn, lode_error *err) {
  for (size_t i = 0; i < STORE_SCHEMA_OBJECTS; i++)
    if (store_schema_objects[i].own) TRY(store_exec(conn, store_schema_objects[i].sql, err));
  return LODE_OK;
}

lode_status store_tx_raise_format(store_tx *tx, lode_error *err) {
  char sql[200];
  store_conn *conn = tx->conn;
  conn->schema_known = false; /* check again in the next transaction: this one may be rolled back */
  snprintf(sql, sizeof sql, STORE_SQL_RAISE_FORMAT, STORE_FORMAT, STORE_STATE_CURSOR, STORE_STATE_CURSOR_FORMAT_1);
  return store_exec(conn, sql, err);
}

/* If the upgrade is not possible now, the next writer does it. LODE_BUSY is included because a reader must never fail
 * because of a writer. */
static bool schema_cannot_be_written(lode_status st) {
  return st == LODE_READONLY || st == LODE_REFUSED || st == LODE_FULL || st == LODE_BUSY;
}

lode_status store_db_upgrade(store_db *db, lode_error *err) {
  store_tx *tx = NULL;
  TRY(store_tx_begin(db, STORE_TX_READ, &tx, err));
  bool old = tx->format_1;
  store_tx_rollback(tx);
  if (!old || db->opt.read_only) return LODE_OK;
  lode_status st = store_tx_begin(db, STORE_TX_WRITE, &tx, err); /* upgrades the format */
  if (st == LODE_OK) st = store_tx_commit(tx, err);
  if (!schema_cannot_be_written(st)) return st;
  err_clear(err); /* format 1 can be read as it is */
  return LODE_OK;
}

static lode_status schema_fill_new(store_conn *conn, lode_error *err) {
  char sql[512];
  int reserved = VFS_SEAL_BYTES;
  int rc = sqlite3_file_control(conn->sql, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  if (rc != SQLITE_OK) return store_err_sql(conn, rc, err);
  snprintf(sql, sizeof sql, STORE_SQL_NEW_FILE, conn->db->opt.page_bytes, STORE_APPLICATION_ID, STORE_FORMAT);
  TRY(store_exec(conn, sql, err));
  TRY(schema_make_objects(conn, err));
  TRY(store_exec(conn, STORE_SQL_FTS_SETTINGS, err));
  snprintf(sql, sizeof sql, STORE_SQL_NEW_STATE, STORE_STATE_UID, (long long)(rand_u64() >> 1), STORE_STATE_CREATED,
           (long long)os_wall_ms(), STORE_STATE_CURSOR, STORE_STATE_NEXT_CID, STORE_STATE_NEXT_KID, STORE_STATE_FRESH);
  return store_exec(conn, sql, err);
}

lode_status store_db_id(store_db *db, uint64_t *id, lode_error *err) {
  store_tx *tx;
  int64_t value = 0;
  *id = 0;
  TRY(store_tx_begin(db, STORE_TX_READ, &tx, err));
  lode_status st = store_state_get(tx, STORE_STATE_UID, &value, err);
  store_tx_rollback(tx);
  if (st == LODE_OK) *id = (uint64_t)value;
  return st;
}

static lode_status schema_remove_leftover(const store_db *db, const char *name, lode_error *err) {
  if (beneath_unlink(db->folder, name) == 0 || errno == ENOENT) return LODE_OK;
  return err_errno(err, errno, name);
}

/* The caller holds the CREATE lock and has checked that there is no database file. */
lode_status store_db_create(store_db *db, lode_error *err) {
  lode_status st = LODE_OK;
  store_conn *conn = NULL;
  /* The name is fixed, so that the next creation, which holds the lock, removes what a killed one left. */
  char *path = store_path_join(db->folder, STOREFILE_NEW);
  if (!path) return err_nomem(err);
  TRY_GOTO(schema_remove_leftover(db, STOREFILE_NEW_JOURNAL, err));
  TRY_GOTO(schema_remove_leftover(db, STOREFILE_NEW, err));
  TRY_GOTO(store_conn_open(db, path, true, &conn, err));
  TRY_GOTO(schema_fill_new(conn, err));
  store_conn_close(conn);
  conn = NULL;
  if (beneath_rename(db->folder, STOREFILE_NEW, STOREFILE_DB) != 0) {
    st = err_errno(err, errno, db->path);
    goto done;
  }
  TRY_GOTO(beneath_sync_dir(db->folder, STOREFILE_DB, err));
  /* The empty journal would otherwise remain under the temporary name. */
  (void)beneath_unlink(db->folder, STOREFILE_NEW_JOURNAL);
done:
  store_conn_close(conn);
  mem_free(path);
  return st;
}
