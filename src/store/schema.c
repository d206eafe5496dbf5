/* schema.c - the tables of the truth file, and how a store comes into being.
 *
 * A new truth file is made under another name, complete and synced, and then renamed: a file called lode.db is never
 * half-made, so an empty or headless one is damage. The mark in lode.lock is written after that: a marked folder
 * without a truth file has lost it, and is not made anew behind the user's back.
 */
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The manifest of the vector index (segments.c). */
#define SEGMENT_TABLES \
  "CREATE TABLE segment(id INTEGER PRIMARY KEY, cid INTEGER NOT NULL, after INTEGER NOT NULL, last INTEGER NOT NULL," \
  " rows INTEGER NOT NULL, kind INTEGER NOT NULL, bytes INTEGER NOT NULL, sum INTEGER NOT NULL, crc INTEGER NOT NULL);" \
  "CREATE TABLE dead(vid INTEGER PRIMARY KEY, rid INTEGER NOT NULL);"

#define SIZE_TABLE "CREATE TABLE size(block INTEGER PRIMARY KEY, codes BLOB NOT NULL);"

const char lode__schema[] =
    "CREATE TABLE state(k INTEGER PRIMARY KEY, v);"
    "CREATE TABLE collection(cid INTEGER PRIMARY KEY, uid INTEGER NOT NULL, name TEXT UNIQUE, metric INTEGER NOT NULL,"
    " dim INTEGER NOT NULL, metadata TEXT, embedder TEXT, embedder_dim INTEGER NOT NULL, counted INTEGER NOT NULL,"
    " created INTEGER NOT NULL, records INTEGER NOT NULL, pending INTEGER NOT NULL, documents INTEGER NOT NULL,"
    " document_bytes INTEGER NOT NULL, graves INTEGER NOT NULL, text_cursor INTEGER NOT NULL,"
    " term_cursor INTEGER NOT NULL, untexted INTEGER NOT NULL, unindexed INTEGER NOT NULL, horizon INTEGER NOT NULL,"
    " crc INTEGER NOT NULL);"
    "CREATE TABLE name(cid INTEGER NOT NULL, id BLOB NOT NULL, rid INTEGER NOT NULL, len INTEGER NOT NULL,"
    " PRIMARY KEY(cid, id)) WITHOUT ROWID;"
    "CREATE TABLE fresh(cid INTEGER NOT NULL, id BLOB NOT NULL, rid INTEGER NOT NULL, len INTEGER NOT NULL,"
    " PRIMARY KEY(cid, id)) WITHOUT ROWID;"
    "CREATE TABLE record(rid INTEGER PRIMARY KEY, id BLOB NOT NULL, seq INTEGER NOT NULL, vid INTEGER NOT NULL,"
    " doc INTEGER, meta TEXT, crc INTEGER NOT NULL);"
    "CREATE INDEX pending ON record(vid) WHERE vid=0;"
    "CREATE TABLE document(rid INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE vector(vid INTEGER PRIMARY KEY, rid INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE grave(gid INTEGER PRIMARY KEY, rids BLOB NOT NULL, vid INTEGER NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE metakey(kid INTEGER PRIMARY KEY, cid INTEGER NOT NULL, name TEXT NOT NULL, counted INTEGER NOT NULL,"
    " UNIQUE(cid, name));"
    "CREATE TABLE term(kid INTEGER NOT NULL, value NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY(kid, value, rid))"
    " WITHOUT ROWID;"
    "CREATE TABLE counter(kid INTEGER NOT NULL, value NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(kid, value)) WITHOUT ROWID;"
    SEGMENT_TABLES SIZE_TABLE
    "CREATE VIRTUAL TABLE text USING fts5(body, content='', columnsize=0, tokenize='lode');"
    /* Words come in large batches from the background: fewer, larger segments are merged less often. */
    "INSERT INTO text(text,rank) VALUES('hashsize',8388608);"
    "INSERT INTO text(text,rank) VALUES('automerge',8);";

lode_status lode__db_check_format(lode__conn *conn, lode_error *err) {
  int64_t values[2] = {0, 0};
  static const char *const pragmas[2] = {"PRAGMA application_id", "PRAGMA user_version"};
  for (int i = 0; i < 2; i++) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(conn->sql, pragmas[i], -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) values[i] = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW) return lode__sql_fail(conn, rc, err);
  }
  if (values[0] != LODE__APPLICATION_ID)
    return lode__fail(err, LODE_CORRUPT, "%s is not a Lode store, or its first page is damaged", conn->db->path);
  if (values[1] > LODE__FORMAT)
    return lode__fail(err, LODE_VERSION,
                      "%s has format %lld, and this Lode knows formats up to %u; use a newer Lode (nothing was changed)",
                      conn->db->path, (long long)values[1], LODE__FORMAT);
  if (values[1] < 1) return lode__fail(err, LODE_CORRUPT, "%s has no valid format number", conn->db->path);
  return LODE_OK;
}

/* Tables that came after the first stores. */
static const struct { const char *name, *make; } later[] = {{"segment", SEGMENT_TABLES}, {"size", SIZE_TABLE}};
enum { LATER = sizeof later / sizeof *later };

/* Which of them a store lacks, as bits. */
static lode_status look_what_lacks(lode__conn *conn, unsigned *lacks, lode_error *err) {
  int rc = SQLITE_ROW;
  *lacks = 0;
  for (unsigned i = 0; i < LATER && rc == SQLITE_ROW; i++) {
    sqlite3_stmt *s = NULL;
    rc = sqlite3_prepare_v2(conn->sql, "SELECT count(*) FROM sqlite_schema WHERE name=?1", -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_bind_text(s, 1, later[i].name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK) rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && sqlite3_column_int64(s, 0) == 0) *lacks |= 1u << i;
    sqlite3_finalize(s);
  }
  return rc == SQLITE_ROW ? LODE_OK : lode__sql_fail(conn, rc, err);
}

lode_status lode__db_upgrade(lode__db *db, lode_error *err) {
  lode__tx *tx = NULL;
  unsigned lacks = 0;
  LODE__TRY(lode__tx_begin(db, LODE__READ, &tx, err));
  lode_status st = look_what_lacks(tx->conn, &lacks, err);
  lode__tx_rollback(tx);
  if (st == LODE_CORRUPT) return LODE_OK; /* whoever needs what is damaged will say so */
  if (st != LODE_OK || !lacks) return st;
  if (db->opt.read_only)
    return lode__fail(err, LODE_VERSION, "%s was made by an earlier Lode; `lode db optimize` brings it up to date", db->path);
  LODE__TRY(lode__tx_begin(db, LODE__WRITE, &tx, err));
  st = look_what_lacks(tx->conn, &lacks, err); /* another process may have been faster */
  for (unsigned i = 0; i < LATER && st == LODE_OK; i++)
    if (lacks & 1u << i) st = lode__exec(tx->conn, later[i].make, err);
  if (st == LODE_OK) return lode__tx_commit(tx, err);
  lode__tx_rollback(tx);
  return st;
}

static lode_status fill_new(lode__conn *conn, lode_error *err) {
  char sql[512];
  int reserved = LODE__PAGE_RESERVED;
  int rc = sqlite3_file_control(conn->sql, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  if (rc != SQLITE_OK) return lode__sql_fail(conn, rc, err);
  snprintf(sql, sizeof sql,
           "PRAGMA page_size=%u; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA encoding='UTF-8'; BEGIN; PRAGMA application_id=%d;"
           "PRAGMA user_version=%u;",
           conn->db->opt.page_bytes, LODE__APPLICATION_ID, LODE__FORMAT);
  LODE__TRY(lode__exec(conn, sql, err));
  LODE__TRY(lode__exec(conn, lode__schema, err));
  snprintf(sql, sizeof sql, "INSERT INTO state(k,v) VALUES(%d,%lld),(%d,%lld),(%d,0),(%d,1),(%d,1),(%d,0); COMMIT;", LODE__STATE_UID,
           (long long)(lode__random() >> 1), LODE__STATE_CREATED, (long long)lode__os_wall_ms(), LODE__STATE_CURSOR,
           LODE__STATE_NEXT_CID, LODE__STATE_NEXT_KID, LODE__STATE_FRESH);
  return lode__exec(conn, sql, err);
}

static lode_status remove_left(const char *path, lode_error *err) {
  if (LODE__RETRY(lode__os->unlink(path)) == 0 || errno == ENOENT) return LODE_OK;
  return lode__fail_errno(err, errno, path);
}

/* The caller holds the CREATE lock and has seen that there is no truth file. */
lode_status lode__db_create(lode__db *db, lode_error *err) {
  lode_status st;
  lode__conn *conn = NULL;
  lode__buf path = {0};
  /* One fixed name: whatever a killed creation left there, journal included, is removed by the next, which holds the lock. */
  lode__buf_addf(&path, "%s.new-journal", db->path);
  lode__buf_addc(&path, 0);
  if (path.failed) return lode__fail_nomem(err);
  LODE__GOTO(remove_left(path.data, err));
  path.len -= sizeof "-journal";
  lode__buf_addc(&path, 0);
  LODE__GOTO(remove_left(path.data, err));
  LODE__GOTO(lode__conn_open(db, path.data, true, &conn, err));
  LODE__GOTO(fill_new(conn, err));
  lode__conn_close(conn);
  conn = NULL;
  if (LODE__RETRY(lode__os->rename(path.data, db->path)) != 0) {
    st = lode__fail_errno(err, errno, db->path);
    goto done;
  }
  LODE__GOTO(lode__os_sync_folder_of(db->path, err));
  /* Its journal was truncated to nothing; without this it would stay behind under the temporary name. */
  path.len--;
  lode__buf_adds(&path, "-journal");
  lode__buf_addc(&path, 0);
  if (!path.failed) (void)LODE__RETRY(lode__os->unlink(path.data));
done:
  lode__conn_close(conn);
  lode__buf_release(&path);
  return st;
}
