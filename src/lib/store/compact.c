/* SPDX-License-Identifier: Apache-2.0 */
/* compact.c - makes the database file as small as possible while others use it.
 *
 * Pages that random deletions left half empty are repacked: a run of rows is deleted and inserted again in order,
 * which fills pages to about 95 %. A run is a short transaction, and a crash between two runs costs nothing. Rows
 * that were only ever appended fill their pages better than that, so a run that gains no page is rolled back: a table
 * never grows. The text index is merged into one segment, which drops its deleted words. Freed pages are zeroed
 * (secure_delete) and returned to the file system.
 */
#include "store/tx.h"

#define COMPACT_RUN_BYTES (1u << 20)
#define COMPACT_VACUUM_PAGES 512 /* free pages returned per transaction */

typedef struct compact_table {
  const char *name, *columns, *key, *after; /* `after` holds the placeholders of the key */
  int n_columns, n_key;                     /* the key's columns come first */
  bool shadow;                              /* a shadow table of FTS5: writable only without SQLite's defensive mode */
} compact_table;

static const compact_table compact_tables[] = {
    {"name", "cid,id,rid,len", "cid,id", "(?1,?2)", 4, 2, false},
    {"fresh", "cid,id,rid,len", "cid,id", "(?1,?2)", 4, 2, false},
    {"record", "rid,id,seq,vid,doc,meta,crc", "rid", "?1", 7, 1, false},
    {"document", "rid,text,crc", "rid", "?1", 3, 1, false},
    {"vector", "vid,rid,data,crc", "vid", "?1", 4, 1, false},
    {"term", "kid,value,rid", "kid,value,rid", "(?1,?2,?3)", 3, 3, false},
    /* A merged segment may have been inserted before others and have split their pages. */
    {"text_data", "id,block", "id", "?1", 2, 1, true},
    {"text_idx", "segid,term,pgno", "segid,term", "(?1,?2)", 3, 2, true},
};

/* A run of rows, copied to memory. */
typedef struct compact_run {
  sqlite3_value **values; /* n_columns for each row */
  size_t rows, cap, bytes;
  sqlite3_value *last[3]; /* key of the last row of the previous run */
} compact_run;

static void compact_free_rows(compact_run *r, int n_columns) {
  for (size_t i = 0; i < r->rows * (size_t)n_columns; i++) sqlite3_value_free(r->values[i]);
  r->rows = r->bytes = 0;
}

static void compact_free_run(compact_run *r, int n_columns) {
  compact_free_rows(r, n_columns);
  mem_free(r->values);
  for (int i = 0; i < 3; i++) sqlite3_value_free(r->last[i]);
  *r = (compact_run){0};
}

static lode_status compact_prepare(store_tx *tx, sqlite3_stmt **s, lode_error *err, const char *format, ...) {
  char sql[400];
  va_list ap;
  va_start(ap, format);
  vsnprintf(sql, sizeof sql, format, ap);
  va_end(ap);
  return store_stmt_prepare(tx, sql, s, err);
}

static void compact_bind_values(store_tx *tx, sqlite3_stmt *s, sqlite3_value **values, int n) {
  for (int i = 0; i < n; i++) store_bind_value(tx, s, i + 1, values[i]);
}

/* Reads the next run of rows. */
static lode_status compact_read_rows(store_tx *tx, const compact_table *t, compact_run *r, lode_error *err) {
  sqlite3_stmt *s = NULL;
  lode_status st;
  bool row;
  if (r->last[0])
    TRY_GOTO(compact_prepare(tx, &s, err, STORE_SQL_PACK_NEXT, t->columns, t->name, t->key, t->after, t->key));
  else
    TRY_GOTO(compact_prepare(tx, &s, err, STORE_SQL_PACK_FIRST, t->columns, t->name, t->key));
  if (r->last[0]) compact_bind_values(tx, s, r->last, t->n_key);
  while (r->bytes < COMPACT_RUN_BYTES) {
    TRY_GOTO(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    size_t n = (size_t)t->n_columns, at = r->rows * n;
    if (!mem_grow(&r->values, &r->cap, at + n, sizeof *r->values)) {
      st = err_nomem(err);
      goto done;
    }
    memset(r->values + at, 0, n * sizeof *r->values);
    r->rows++;
    for (size_t i = 0; i < n; i++) {
      r->values[at + i] = sqlite3_value_dup(sqlite3_column_value(s, (int)i));
      if (!r->values[at + i]) {
        st = err_nomem(err);
        goto done;
      }
      r->bytes += 16 + (size_t)sqlite3_column_bytes(s, (int)i);
    }
  }
done:
  sqlite3_finalize(s);
  return st;
}

/* Deletes the rows of the run and inserts them again, in order. */
static lode_status compact_insert_rows(store_tx *tx, const compact_table *t, compact_run *r, lode_error *err) {
  static const char placeholders[] = "?,?,?,?,?,?,?,?";
  sqlite3_stmt *out = NULL, *in = NULL;
  lode_status st;
  TRY_GOTO(
      compact_prepare(tx, &in, err, STORE_SQL_PACK_INSERT, t->name, t->columns, 2 * t->n_columns - 1, placeholders));
  TRY_GOTO(compact_prepare(tx, &out, err, STORE_SQL_PACK_DELETE, t->name, t->key, t->after));
  for (size_t i = 0; i < r->rows; i++) {
    sqlite3_value **row = r->values + i * (size_t)t->n_columns;
    compact_bind_values(tx, out, row, t->n_key);
    TRY_GOTO(store_stmt_run(tx, out, err));
  }
  for (size_t i = 0; i < r->rows; i++) {
    sqlite3_value **row = r->values + i * (size_t)t->n_columns;
    compact_bind_values(tx, in, row, t->n_columns);
    TRY_GOTO(store_stmt_run(tx, in, err));
  }
done:
  sqlite3_finalize(in);
  sqlite3_finalize(out);
  return st;
}

static lode_status compact_keep_last_key(const compact_table *t, compact_run *r, lode_error *err) {
  sqlite3_value **row = r->values + (r->rows - 1) * (size_t)t->n_columns;
  for (int i = 0; i < t->n_key; i++) {
    sqlite3_value *copy = sqlite3_value_dup(row[i]);
    if (!copy) return err_nomem(err);
    sqlite3_value_free(r->last[i]);
    r->last[i] = copy;
  }
  return LODE_OK;
}

/* Pages that are not on the free list. */
static lode_status compact_used_pages(store_tx *tx, int64_t *pages, lode_error *err) {
  int64_t unused;
  TRY(store_get_int(tx, STORE_STMT_PAGE_COUNT, pages, err));
  TRY(store_get_int(tx, STORE_STMT_FREE_PAGES, &unused, err));
  *pages -= unused;
  return LODE_OK;
}

/* Repacks one run; *more is false at the end of the table. */
static lode_status compact_pack_run(store_db *db, const compact_table *t, compact_run *r, bool *more, lode_error *err) {
  store_tx *tx;
  lode_status st;
  int64_t before = 0, after = 0;
  *more = false;
  TRY(store_tx_begin(db, STORE_TX_WRITE, &tx, err));
  TRY_GOTO(compact_read_rows(tx, t, r, err));
  *more = r->rows > 0;
  if (!*more) goto done;
  TRY_GOTO(compact_used_pages(tx, &before, err));
  if (t->shadow) (void)sqlite3_db_config(tx->conn->sql, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
  st = compact_insert_rows(tx, t, r, err);
  if (t->shadow) (void)sqlite3_db_config(tx->conn->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  if (st != LODE_OK) goto done;
  TRY_GOTO(compact_used_pages(tx, &after, err));
  TRY_GOTO(compact_keep_last_key(t, r, err));
done:
  compact_free_rows(r, t->n_columns);
  if (st == LODE_OK && after < before) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* Merges some of the text index, in a transaction of its own; *changes: rows changed, as SQLite counts them. */
static lode_status compact_merge_some(store_db *db, int pages, int *changes, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(db, STORE_TX_WRITE, &tx, err));
  int before = sqlite3_total_changes(tx->conn->sql);
  lode_status st = store_run_key(tx, STORE_STMT_TEXT_MERGE, pages, err);
  *changes = sqlite3_total_changes(tx->conn->sql) - before;
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

static lode_status compact_progress(lode_progress p, const char *phase, uint64_t done, uint64_t total,
                                    lode_error *err) {
  if (!p.step || p.step(p.ctx, phase, done, total)) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "cancelled; what was done so far is kept");
}

/* The first command starts a merge of all segments, the others continue it; with fewer than two changes it is done. */
static lode_status compact_merge_text(store_db *db, lode_progress progress, lode_error *err) {
  int changes;
  TRY(compact_merge_some(db, -256, &changes, err));
  for (uint64_t i = 0; changes >= 2; i++) {
    TRY(compact_progress(progress, "text index", i, 0, err));
    TRY(compact_merge_some(db, 256, &changes, err));
  }
  return LODE_OK;
}

static lode_status compact_free_pages(store_db *db, int64_t *pages, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(db, STORE_TX_READ, &tx, err));
  lode_status st = store_get_int(tx, STORE_STMT_FREE_PAGES, pages, err);
  store_tx_rollback(tx);
  return st;
}

static lode_status compact_vacuum_some(store_db *db, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(db, STORE_TX_WRITE, &tx, err));
  lode_status st = store_vacuum(tx, COMPACT_VACUUM_PAGES, err);
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

static lode_status compact_vacuum(store_db *db, lode_progress progress, lode_error *err) {
  int64_t total, left, before;
  TRY(compact_free_pages(db, &total, err));
  for (left = total; left > 0;) {
    TRY(compact_progress(progress, "giving pages back", (uint64_t)(total - left), (uint64_t)total, err));
    TRY(compact_vacuum_some(db, err));
    before = left;
    TRY(compact_free_pages(db, &left, err));
    if (left >= before) break; /* others free and use pages meanwhile */
  }
  return LODE_OK;
}

lode_status store_db_compact(store_db *db, lode_progress progress, lode_error *err) {
  bool more;
  TRY(compact_merge_text(db, progress, err));
  for (size_t t = 0; t < sizeof compact_tables / sizeof *compact_tables; t++) {
    compact_run r = {0};
    lode_status st = LODE_OK;
    more = true;
    for (uint64_t i = 0; more && st == LODE_OK; i++) {
      st = compact_progress(progress, "packing", i, 0, err);
      if (st == LODE_OK) st = compact_pack_run(db, &compact_tables[t], &r, &more, err);
    }
    compact_free_run(&r, compact_tables[t].n_columns);
    TRY(st);
    TRY(compact_vacuum(db, progress, err));
  }
  return compact_vacuum(db, progress, err);
}
