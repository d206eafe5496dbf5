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

/* One row for each object of the schema, with its SQL exactly as SQLite keeps it. Whatever is added later gets a step of its own
 * (enum lode__schema_step), here and in `formats`, and upgrades follow from the table. */
#define TABLE(name, step, columns) {"table", name, name, "CREATE TABLE " name columns, step, true}
#define SHADOW(name, columns) {"table", name, name, "CREATE TABLE '" name "'" columns, LODE__STEP_FIRST, false}
#define AUTOINDEX(table) {"index", "sqlite_autoindex_" table "_1", table, NULL, LODE__STEP_FIRST, false}

const lode__object lode__schema_objects[LODE__SCHEMA_OBJECTS] = {
    TABLE("state", LODE__STEP_FIRST, "(k INTEGER PRIMARY KEY, v)"),
    TABLE("collection", LODE__STEP_FIRST,
          "(cid INTEGER PRIMARY KEY, uid INTEGER NOT NULL, name TEXT UNIQUE, metric INTEGER NOT NULL,"
          " dim INTEGER NOT NULL, metadata TEXT, embedder TEXT, embedder_dim INTEGER NOT NULL, counted INTEGER NOT NULL,"
          " created INTEGER NOT NULL, records INTEGER NOT NULL, pending INTEGER NOT NULL, documents INTEGER NOT NULL,"
          " document_bytes INTEGER NOT NULL, graves INTEGER NOT NULL, text_cursor INTEGER NOT NULL,"
          " term_cursor INTEGER NOT NULL, untexted INTEGER NOT NULL, unindexed INTEGER NOT NULL, horizon INTEGER NOT NULL,"
          " crc INTEGER NOT NULL)"),
    AUTOINDEX("collection"),
    TABLE("name", LODE__STEP_FIRST,
          "(cid INTEGER NOT NULL, id BLOB NOT NULL, rid INTEGER NOT NULL, len INTEGER NOT NULL,"
          " PRIMARY KEY(cid, id)) WITHOUT ROWID"),
    TABLE("fresh", LODE__STEP_FIRST,
          "(cid INTEGER NOT NULL, id BLOB NOT NULL, rid INTEGER NOT NULL, len INTEGER NOT NULL,"
          " PRIMARY KEY(cid, id)) WITHOUT ROWID"),
    TABLE("record", LODE__STEP_FIRST,
          "(rid INTEGER PRIMARY KEY, id BLOB NOT NULL, seq INTEGER NOT NULL, vid INTEGER NOT NULL,"
          " doc INTEGER, meta TEXT, crc INTEGER NOT NULL)"),
    {"index", "pending", "record", "CREATE INDEX pending ON record(vid) WHERE vid=0", LODE__STEP_FIRST, true},
    TABLE("document", LODE__STEP_FIRST, "(rid INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER NOT NULL)"),
    TABLE("vector", LODE__STEP_FIRST,
          "(vid INTEGER PRIMARY KEY, rid INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL)"),
    TABLE("grave", LODE__STEP_FIRST,
          "(gid INTEGER PRIMARY KEY, rids BLOB NOT NULL, vid INTEGER NOT NULL, crc INTEGER NOT NULL)"),
    TABLE("metakey", LODE__STEP_FIRST,
          "(kid INTEGER PRIMARY KEY, cid INTEGER NOT NULL, name TEXT NOT NULL, counted INTEGER NOT NULL,"
          " UNIQUE(cid, name))"),
    AUTOINDEX("metakey"),
    TABLE("term", LODE__STEP_FIRST,
          "(kid INTEGER NOT NULL, value NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY(kid, value, rid))"
          " WITHOUT ROWID"),
    TABLE("counter", LODE__STEP_FIRST,
          "(kid INTEGER NOT NULL, value NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(kid, value)) WITHOUT ROWID"),
    TABLE("segment", LODE__STEP_VECTORS, /* the manifest of the vector index (segments.c) */
          "(id INTEGER PRIMARY KEY, cid INTEGER NOT NULL, after INTEGER NOT NULL, last INTEGER NOT NULL,"
          " rows INTEGER NOT NULL, kind INTEGER NOT NULL, bytes INTEGER NOT NULL, sum INTEGER NOT NULL, crc INTEGER NOT NULL)"),
    TABLE("dead", LODE__STEP_VECTORS, "(vid INTEGER PRIMARY KEY, rid INTEGER NOT NULL)"),
    TABLE("size", LODE__STEP_SIZES, "(block INTEGER PRIMARY KEY, codes BLOB NOT NULL)"),
    {"table", "text", "text", "CREATE VIRTUAL TABLE text USING fts5(body, content='', columnsize=0, tokenize='lode')",
     LODE__STEP_FIRST, true},
    /* What FTS5 makes for it: the same in every SQLite from 3.40 to 3.53. */
    SHADOW("text_data", "(id INTEGER PRIMARY KEY, block BLOB)"),
    SHADOW("text_idx", "(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID"),
    SHADOW("text_config", "(k PRIMARY KEY, v) WITHOUT ROWID"),
};

/* Words come in large batches from the background: fewer, larger segments are merged less often. */
static const char text_settings[] = "INSERT INTO text(text,rank) VALUES('hashsize',8388608);"
                                    "INSERT INTO text(text,rank) VALUES('automerge',8);";

/* Which steps stores of a format may be at: any from this one on. */
static const struct { uint32_t format, first_step; } formats[] = {{1, LODE__STEP_FIRST}, {2, LODE__STEP_SIZES}};

lode_status lode__schema_format(uint32_t format, const char *path, unsigned *first_step, lode_error *err) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (formats[i].format == format) {
      *first_step = formats[i].first_step;
      return LODE_OK;
    }
  if (format > LODE__FORMAT)
    return lode__fail(err, LODE_VERSION,
                      "%s has format %u, and this Lode knows formats up to %u; use a newer Lode (nothing was changed)", path,
                      format, LODE__FORMAT);
  return lode__fail(err, LODE_CORRUPT, "%s has no valid format number; `lode db salvage` brings over what is whole", path);
}

/* What a store at step `from` lacks; 0 makes all of it. */
static lode_status make_objects(lode__conn *conn, unsigned from, lode_error *err) {
  for (size_t i = 0; i < LODE__SCHEMA_OBJECTS; i++) {
    const lode__object *o = &lode__schema_objects[i];
    if (o->own && o->step > from) LODE__TRY(lode__exec(conn, o->sql, err));
  }
  return LODE_OK;
}

lode_status lode__db_raise_format(lode__tx *tx, lode_error *err) {
  char sql[200];
  lode__conn *conn = tx->conn;
  conn->schema_known = false; /* in the next transaction: this one may be rolled back */
  LODE__TRY(make_objects(conn, conn->step, err));
  conn->step = LODE__STEP_LAST;
  snprintf(sql, sizeof sql, "PRAGMA user_version=%u; UPDATE state SET k=%d WHERE k=%d", LODE__FORMAT, LODE__STATE_CURSOR,
           LODE__STATE_CURSOR_1);
  return lode__exec(conn, sql, err);
}

/* Whoever writes to it later raises the format then. */
static bool is_not_to_be_written(lode_status st) { return st == LODE_READONLY || st == LODE_REFUSED || st == LODE_FULL; }

lode_status lode__db_upgrade(lode__db *db, lode_error *err) {
  lode__tx *tx = NULL;
  LODE__TRY(lode__tx_begin(db, LODE__READ, &tx, err));
  unsigned step = tx->conn->step;
  bool old = tx->format_1;
  lode__tx_rollback(tx);
  if (step == LODE__STEP_LAST && (!old || db->opt.read_only)) return LODE_OK;
  if (db->opt.read_only)
    return lode__fail(err, LODE_VERSION, "%s was made by an earlier Lode; `lode db optimize` brings it up to date", db->path);
  lode_status st = lode__tx_begin(db, LODE__WRITE, &tx, err); /* raises the format */
  if (st == LODE_OK) {
    st = make_objects(tx->conn, tx->conn->step, err); /* as it is now: another process may have been faster */
    if (st == LODE_OK) st = lode__tx_commit(tx, err);
    else lode__tx_rollback(tx);
  }
  if (st == LODE_OK || step != LODE__STEP_LAST || !is_not_to_be_written(st)) return st;
  lode__error_clear(err); /* it can be read as it is */
  return LODE_OK;
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
  LODE__TRY(make_objects(conn, 0, err));
  LODE__TRY(lode__exec(conn, text_settings, err));
  snprintf(sql, sizeof sql, "INSERT INTO state(k,v) VALUES(%d,%lld),(%d,%lld),(%d,0),(%d,1),(%d,1),(%d,0); COMMIT;", LODE__STATE_UID,
           (long long)(lode__random() >> 1), LODE__STATE_CREATED, (long long)lode__os_wall_ms(), LODE__STATE_CURSOR,
           LODE__STATE_NEXT_CID, LODE__STATE_NEXT_KID, LODE__STATE_FRESH);
  return lode__exec(conn, sql, err);
}

lode_status lode__db_id(lode__db *db, uint64_t *id, lode_error *err) {
  lode__tx *tx;
  int64_t value = 0;
  *id = 0;
  LODE__TRY(lode__tx_begin(db, LODE__READ, &tx, err));
  lode_status st = lode__state_get(tx, LODE__STATE_UID, &value, err);
  lode__tx_rollback(tx);
  if (st == LODE_OK) *id = (uint64_t)value;
  return st;
}

static lode_status remove_left(const lode__db *db, const char *name, lode_error *err) {
  if (lode__inside_unlink(db->folder, name) == 0 || errno == ENOENT) return LODE_OK;
  return lode__fail_errno(err, errno, name);
}

/* The caller holds the CREATE lock and has seen that there is no truth file. */
lode_status lode__db_create(lode__db *db, lode_error *err) {
  lode_status st = LODE_OK;
  lode__conn *conn = NULL;
  /* One fixed name: whatever a killed creation left there, journal included, is removed by the next, which holds the lock. */
  char *path = lode__path_join(db->folder, LODE__NEW_FILE);
  if (!path) return lode__fail_nomem(err);
  LODE__GOTO(remove_left(db, LODE__NEW_JOURNAL_FILE, err));
  LODE__GOTO(remove_left(db, LODE__NEW_FILE, err));
  LODE__GOTO(lode__conn_open(db, path, true, &conn, err));
  LODE__GOTO(fill_new(conn, err));
  lode__conn_close(conn);
  conn = NULL;
  if (lode__inside_rename(db->folder, LODE__NEW_FILE, LODE__TRUTH_FILE) != 0) {
    st = lode__fail_errno(err, errno, db->path);
    goto done;
  }
  LODE__GOTO(lode__inside_sync(db->folder, LODE__TRUTH_FILE, err));
  /* Its journal was truncated to nothing; without this it would stay behind under the temporary name. */
  (void)lode__inside_unlink(db->folder, LODE__NEW_JOURNAL_FILE);
done:
  lode__conn_close(conn);
  lode__free(path);
  return st;
}
