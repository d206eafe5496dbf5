/* feed.c - rows in memory as a table that SQL can read: one statement writes, or looks up, a whole batch.
 *
 * A statement for each row costs as much in beginning and ending as in what it does; `INSERT ... SELECT ... FROM lode_feed`
 * begins once, and its cursor stays where the row before was put. The table exists in our connections alone (never in
 * the file), shows what conn->feed points to at that moment, and is empty at all other times.
 */
#include "db.h"

enum { F_RID, F_ID, F_LEN, F_TEXT, F_TEXT_CRC, F_VID, F_DATA, F_DATA_CRC, F_SEQ, F_DOC, F_META, F_CRC };
static const char columns[] = "CREATE TABLE x(rid,id,len,text,text_crc,vid,data,data_crc,seq,doc,meta,crc)";

typedef struct feed_table {
  sqlite3_vtab base;
  lode__conn *conn;
} feed_table;

typedef struct feed_cursor {
  sqlite3_vtab_cursor base;
  const lode__feed *batch;
  size_t at;
} feed_cursor;

static int feed_connect(sqlite3 *sql, void *conn, int argc, const char *const *argv, sqlite3_vtab **out, char **why) {
  (void)argc;
  (void)argv;
  (void)why;
  int rc = sqlite3_declare_vtab(sql, columns);
  if (rc != SQLITE_OK) return rc;
  feed_table *t = sqlite3_malloc(sizeof *t);
  if (!t) return SQLITE_NOMEM;
  *t = (feed_table){.conn = conn};
  *out = &t->base;
  return SQLITE_OK;
}

static int feed_disconnect(sqlite3_vtab *table) {
  sqlite3_free(table);
  return SQLITE_OK;
}

/* Always read from end to end, and always the outer loop. */
static int feed_best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
  (void)table;
  info->estimatedCost = 1;
  info->estimatedRows = 1000;
  return SQLITE_OK;
}

static int feed_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out) {
  feed_cursor *c = sqlite3_malloc(sizeof *c);
  if (!c) return SQLITE_NOMEM;
  *c = (feed_cursor){.batch = &((feed_table *)table)->conn->batch};
  *out = &c->base;
  return SQLITE_OK;
}

static int feed_close(sqlite3_vtab_cursor *cursor) {
  sqlite3_free(cursor);
  return SQLITE_OK;
}

static const lode__new *row_at(const feed_cursor *c) {
  return &c->batch->rows[c->batch->order ? c->batch->order[c->at] : c->at];
}

/* Is the row at hand one of those that are wanted? */
static bool is_wanted(const feed_cursor *c) {
  switch (c->batch->part) {
    case LODE__FEED_DOCUMENTS: return row_at(c)->rec.has_document;
    case LODE__FEED_VECTORS: return row_at(c)->rec.vid != 0;
    default: return true;
  }
}

static void skip_unwanted(feed_cursor *c) {
  while (c->at < c->batch->n && !is_wanted(c)) c->at++;
}

static int feed_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc, sqlite3_value **argv) {
  (void)number;
  (void)text;
  (void)argc;
  (void)argv;
  feed_cursor *c = (feed_cursor *)cursor;
  c->at = 0;
  skip_unwanted(c);
  return SQLITE_OK;
}

static int feed_next(sqlite3_vtab_cursor *cursor) {
  feed_cursor *c = (feed_cursor *)cursor;
  c->at++;
  skip_unwanted(c);
  return SQLITE_OK;
}

static int feed_eof(sqlite3_vtab_cursor *cursor) {
  const feed_cursor *c = (const feed_cursor *)cursor;
  return c->at >= c->batch->n;
}

static void give_blob(sqlite3_context *ctx, lode_str v) {
  if (v.data) sqlite3_result_blob64(ctx, v.data, v.len, SQLITE_STATIC);
}

static void give_text(sqlite3_context *ctx, lode_str v) {
  if (v.data) sqlite3_result_text64(ctx, v.data, v.len, SQLITE_STATIC, SQLITE_UTF8);
}

static int feed_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx, int column) {
  const feed_cursor *c = (const feed_cursor *)cursor;
  if (c->batch->ids) { /* ids alone */
    if (column == F_ID) give_blob(ctx, c->batch->ids[c->at]);
    return SQLITE_OK;
  }
  const lode__new *r = row_at(c);
  switch (column) {
    case F_RID: sqlite3_result_int64(ctx, r->rec.rid); break;
    case F_ID: give_blob(ctx, r->rec.id); break;
    case F_LEN: sqlite3_result_int64(ctx, r->document.data ? (int64_t)r->document.len + 1 : 0); break;
    case F_TEXT: give_text(ctx, r->document); break;
    case F_TEXT_CRC: sqlite3_result_int64(ctx, r->rec.doc_crc); break;
    case F_VID: sqlite3_result_int64(ctx, r->rec.vid); break;
    case F_DATA: give_blob(ctx, r->vector); break;
    case F_DATA_CRC: sqlite3_result_int64(ctx, r->vector_crc); break;
    case F_SEQ: sqlite3_result_int64(ctx, (int64_t)r->rec.seq); break;
    case F_DOC:
      if (r->rec.has_document) sqlite3_result_int64(ctx, r->rec.doc_crc);
      break;
    case F_META: give_text(ctx, r->rec.metadata); break;
    case F_CRC: sqlite3_result_int64(ctx, r->crc); break;
    default: break;
  }
  return SQLITE_OK;
}

static int feed_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid) {
  *rowid = (sqlite3_int64)((const feed_cursor *)cursor)->at;
  return SQLITE_OK;
}

lode_status lode__feed_register(lode__conn *conn, lode_error *err) {
  static const sqlite3_module module = {
      .xConnect = feed_connect, .xBestIndex = feed_best_index, .xDisconnect = feed_disconnect, .xOpen = feed_open,
      .xClose = feed_close,     .xFilter = feed_filter,        .xNext = feed_next,             .xEof = feed_eof,
      .xColumn = feed_column,   .xRowid = feed_rowid,
  };
  int rc = sqlite3_create_module(conn->sql, "lode_feed", &module, conn);
  return rc == SQLITE_OK ? LODE_OK : lode__sql_fail(conn, rc, err);
}

lode_status lode__feed_run(lode__tx *tx, int which, int64_t first, lode__feed batch, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, which, &s, err));
  if (sqlite3_bind_parameter_count(s)) sqlite3_bind_int64(s, 1, first);
  tx->conn->batch = batch;
  lode_status st = lode__run(tx, s, err);
  tx->conn->batch = (lode__feed){0};
  return st;
}
