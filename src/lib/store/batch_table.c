/* SPDX-License-Identifier: Apache-2.0 */
/* batch_table.c - a virtual table of the rows in memory: one SQL statement writes, or looks up, a whole batch.
 *
 * With one statement per row, starting and finishing it costs as much as the work itself. `INSERT ... SELECT ... FROM
 * lode_feed` starts once, and its b-tree cursor stays where the previous row was put. The table exists only in our
 * connections (never in the file), shows conn->batch while store_batch_run() or store_ids_find() runs, and is empty
 * otherwise.
 */
#include "store/batch_table.h"

#include "store/tx.h"

/* The columns of STORE_SQL_BATCH_TABLE. */
enum {
  BATCH_COL_RID,
  BATCH_COL_ID,
  BATCH_COL_LEN,
  BATCH_COL_TEXT,
  BATCH_COL_TEXT_CRC,
  BATCH_COL_VID,
  BATCH_COL_DATA,
  BATCH_COL_DATA_CRC,
  BATCH_COL_SEQ,
  BATCH_COL_DOC,
  BATCH_COL_META,
  BATCH_COL_CRC
};

typedef struct batch_vtab {
  sqlite3_vtab base;
  store_conn *conn;
} batch_vtab;

typedef struct batch_cursor {
  sqlite3_vtab_cursor base;
  const store_batch *batch;
  size_t at;
} batch_cursor;

static int batch_connect(sqlite3 *sql, void *conn, int argc, const char *const *argv, sqlite3_vtab **out, char **why) {
  (void)argc;
  (void)argv;
  (void)why;
  int rc = sqlite3_declare_vtab(sql, STORE_SQL_BATCH_TABLE);
  if (rc != SQLITE_OK) return rc;
  batch_vtab *t = sqlite3_malloc(sizeof *t);
  if (!t) return SQLITE_NOMEM;
  *t = (batch_vtab){.conn = conn};
  *out = &t->base;
  return SQLITE_OK;
}

static int batch_disconnect(sqlite3_vtab *table) {
  sqlite3_free(table);
  return SQLITE_OK;
}

/* The table is always scanned completely, and is always the outer loop. */
static int batch_best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
  (void)table;
  info->estimatedCost = 1;
  info->estimatedRows = 1000;
  return SQLITE_OK;
}

static int batch_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
  batch_cursor *c = sqlite3_malloc(sizeof *c);
  if (!c) return SQLITE_NOMEM;
  *c = (batch_cursor){.batch = &((batch_vtab *)table)->conn->batch};
  *out = &c->base;
  return SQLITE_OK;
}

static int batch_close(sqlite3_vtab_cursor *cursor) {
  sqlite3_free(cursor);
  return SQLITE_OK;
}

static const store_new_rec *batch_row_at(const batch_cursor *c) {
  return &c->batch->rows[c->batch->order ? c->batch->order[c->at] : c->at];
}

static bool batch_row_is_wanted(const batch_cursor *c) {
  switch (c->batch->part) {
    case STORE_BATCH_DOCUMENTS: return batch_row_at(c)->rec.has_document;
    case STORE_BATCH_VECTORS: return batch_row_at(c)->rec.vid != 0;
    default: return true;
  }
}

static void batch_skip_unwanted(batch_cursor *c) {
  while (c->at < c->batch->n && !batch_row_is_wanted(c)) c->at++;
}

static int batch_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc, sqlite3_value **argv) {
  (void)number;
  (void)text;
  (void)argc;
  (void)argv;
  batch_cursor *c = (batch_cursor *)cursor;
  c->at = 0;
  batch_skip_unwanted(c);
  return SQLITE_OK;
}

static int batch_next(sqlite3_vtab_cursor *cursor) {
  batch_cursor *c = (batch_cursor *)cursor;
  c->at++;
  batch_skip_unwanted(c);
  return SQLITE_OK;
}

static int batch_eof(sqlite3_vtab_cursor *cursor) {
  const batch_cursor *c = (const batch_cursor *)cursor;
  return c->at >= c->batch->n;
}

static void batch_result_blob(sqlite3_context *ctx, lode_str v) {
  if (v.data) sqlite3_result_blob64(ctx, v.data, v.len, SQLITE_STATIC);
}

static void batch_result_text(sqlite3_context *ctx, lode_str v) {
  if (v.data) sqlite3_result_text64(ctx, v.data, v.len, SQLITE_STATIC, SQLITE_UTF8);
}

static int batch_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx, int column) {
  const batch_cursor *c = (const batch_cursor *)cursor;
  if (c->batch->ids) { /* only column id is set */
    if (column == BATCH_COL_ID) batch_result_blob(ctx, c->batch->ids[c->at]);
    return SQLITE_OK;
  }
  const store_new_rec *r = batch_row_at(c);
  switch (column) {
    case BATCH_COL_RID: sqlite3_result_int64(ctx, r->rec.rid); break;
    case BATCH_COL_ID: batch_result_blob(ctx, r->rec.id); break;
    case BATCH_COL_LEN: sqlite3_result_int64(ctx, r->document.data ? (int64_t)r->document.len + 1 : 0); break;
    case BATCH_COL_TEXT: batch_result_text(ctx, r->document); break;
    case BATCH_COL_TEXT_CRC: sqlite3_result_int64(ctx, r->rec.doc_crc); break;
    case BATCH_COL_VID: sqlite3_result_int64(ctx, r->rec.vid); break;
    case BATCH_COL_DATA: batch_result_blob(ctx, r->vector); break;
    case BATCH_COL_DATA_CRC: sqlite3_result_int64(ctx, r->vector_crc); break;
    case BATCH_COL_SEQ: sqlite3_result_int64(ctx, (int64_t)r->rec.seq); break;
    case BATCH_COL_DOC:
      if (r->rec.has_document) sqlite3_result_int64(ctx, r->rec.doc_crc);
      break;
    case BATCH_COL_META: batch_result_text(ctx, r->rec.metadata); break;
    case BATCH_COL_CRC: sqlite3_result_int64(ctx, r->crc); break;
    default: break;
  }
  return SQLITE_OK;
}

static int batch_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid) {
  *rowid = (sqlite3_int64)((const batch_cursor *)cursor)->at;
  return SQLITE_OK;
}

lode_status store_batch_register(store_conn *conn, lode_error *err) {
  static const sqlite3_module module = {
      .xConnect = batch_connect,
      .xBestIndex = batch_best_index,
      .xDisconnect = batch_disconnect,
      .xOpen = batch_open,
      .xClose = batch_close,
      .xFilter = batch_filter,
      .xNext = batch_next,
      .xEof = batch_eof,
      .xColumn = batch_column,
      .xRowid = batch_rowid,
  };
  int rc = sqlite3_create_module(conn->sql, "lode_feed", &module, conn);
  return rc == SQLITE_OK ? LODE_OK : store_err_sql(conn, rc, err);
}

lode_status store_batch_run(store_tx *tx, int which, int64_t first, store_batch batch, lode_error *err) {
  sqlite3_stmt *s;
  ENSURE(tx->conn->batch.n == 0, err); /* a batch is not shown while another is */
  TRY(store_stmt(tx, which, &s, err));
  if (sqlite3_bind_parameter_count(s)) store_bind_int(tx, s, 1, first);
  tx->conn->batch = batch;
  lode_status st = store_stmt_run(tx, s, err);
  tx->conn->batch = (store_batch){0};
  return st;
}
