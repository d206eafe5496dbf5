/* SPDX-License-Identifier: Apache-2.0 */
/* db.h - internals of src/lib/store: connections, statements, transactions. Not for other rooms.
 *
 * Locks in lode.lock (all open-file-description locks, one descriptor per store_db):
 *   byte CREATE   exclusive: held while the store is being created
 *   byte WAIT     shared: held while waiting for a lock of the truth file; a writer that has just committed yields
 *   byte WORK     exclusive: held during a maintenance step; two at once would only obstruct each other
 *   byte BUILD    exclusive: held while building, replacing or quarantining segments of the vector index
 * The file begins with the mark of a complete store; at offset 64 it names the last writer (for messages only).
 */
#ifndef LODE_STORE_DB_H
#define LODE_STORE_DB_H

#include "store/truth_pages.h"
#include "store/store.h"
#include "vfs/vfs.h"

#include <pthread.h>
#include <sqlite3.h>

#define STORE_LOCK_CREATE (1 << 20)
#define STORE_LOCK_WAIT ((1 << 20) + 1)
#define STORE_LOCK_WORK ((1 << 20) + 2)
#define STORE_LOCK_BUILD ((1 << 20) + 3)
#define STORE_APPLICATION_ID 0x6c6f6465 /* "lode" */

/* X(name, SQL). The keys of a collection are a range, mostly (?1, ?2]: see docs/FORMAT.md. */
#define STORE_STATEMENTS(X)                                                                                            \
  X(STATE_GET, "SELECT v FROM state WHERE k=?1")                                                                       \
  X(STATE_PUT, "INSERT INTO state(k,v) VALUES(?1,?2) ON CONFLICT(k) DO UPDATE SET v=excluded.v")                       \
  X(COLL_BY_NAME, "SELECT * FROM collection WHERE name=?1")                                                            \
  X(COLL_BY_CID, "SELECT * FROM collection WHERE cid=?1 AND name IS NOT NULL")                                         \
  X(COLL_EACH, "SELECT * FROM collection WHERE name IS NOT NULL ORDER BY name")                                        \
  X(COLL_INSERT, "INSERT INTO collection(cid,uid,name,metric,dim,metadata,embedder,embedder_dim,counted,created,"      \
                 "records,pending,documents,document_bytes,graves,text_cursor,term_cursor,untexted,unindexed,"         \
                 "horizon,crc) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,0,0,0,0,0,?11,?11,0,0,0,?12)")                    \
  X(COLL_IDENTITY, "UPDATE collection SET name=?2,metric=?3,dim=?4,metadata=?5,embedder=?6,embedder_dim=?7,crc=?8"     \
                   " WHERE cid=?1")                                                                                    \
  X(COLL_COUNTS, "UPDATE collection SET records=?2,pending=?3,documents=?4,document_bytes=?5,graves=?6,"               \
                 "text_cursor=?7,term_cursor=?8,untexted=?9,unindexed=?10,horizon=?11 WHERE cid=?1")                   \
  X(COLL_ERASE, "DELETE FROM collection WHERE cid=?1")                                                                 \
  X(COLL_NEXT_WORK, "SELECT cid FROM collection WHERE cid>?1 AND (name IS NULL OR graves>0 OR untexted>0 OR "          \
                    "unindexed>0) ORDER BY cid LIMIT 1")                                                               \
  X(COLL_NEXT_DEAD, "SELECT cid FROM collection WHERE cid>?1 AND (name IS NULL OR graves>0) ORDER BY cid LIMIT 1")     \
  X(COLL_DROPPED, "SELECT text_cursor,term_cursor FROM collection WHERE cid=?1 AND name IS NULL")                      \
  X(COLL_SUMS, "SELECT count(*),sum(records),sum(pending),sum(graves),sum(untexted),sum(unindexed) FROM collection "   \
               "WHERE name IS NOT NULL")                                                                               \
  X(NAME_GET, "SELECT rid,len FROM fresh WHERE cid=?1 AND id=?2 UNION ALL "                                            \
              "SELECT rid,len FROM name WHERE cid=?1 AND id=?2")                                                       \
  X(NAMES_FIND, "SELECT f.rowid,n.rid,n.len FROM lode_feed AS f CROSS JOIN name AS n ON n.cid=?1 AND n.id=f.id")       \
  X(NAMES_WALK, "SELECT id,rid,len FROM name WHERE cid=?1 AND id>=?2 ORDER BY id")                                     \
  X(NAME_SET, "UPDATE name SET len=?3 WHERE cid=?1 AND id=?2")                                                         \
  X(NAME_DELETE, "DELETE FROM name WHERE cid=?1 AND id=?2 AND rid=?3")                                                 \
  X(NAME_ERASE, "DELETE FROM name WHERE cid=?1 AND id IN (SELECT id FROM name WHERE cid=?1 LIMIT 100)")                \
  X(FRESH_FIND, "SELECT f.rowid,n.rid,n.len FROM lode_feed AS f CROSS JOIN fresh AS n ON n.cid=?1 AND n.id=f.id")      \
  X(FRESH_WALK, "SELECT id,rid,len FROM fresh WHERE cid=?1 AND id>=?2 ORDER BY id")                                    \
  X(FRESH_PUT, "INSERT OR FAIL INTO fresh(cid,id,rid,len) SELECT ?1,id,rid,len FROM lode_feed")                        \
  X(FRESH_SET, "UPDATE fresh SET len=?3 WHERE cid=?1 AND id=?2")                                                       \
  X(FRESH_DELETE, "DELETE FROM fresh WHERE cid=?1 AND id=?2 AND rid=?3")                                               \
  X(FRESH_ERASE, "DELETE FROM fresh WHERE cid=?1 AND id IN (SELECT id FROM fresh WHERE cid=?1 LIMIT 100)")             \
  X(FRESH_MOVE, "INSERT OR FAIL INTO name(cid,id,rid,len) SELECT cid,id,rid,len FROM fresh ORDER BY cid,id")           \
  X(FRESH_CLEAR, "DELETE FROM fresh")                                                                                  \
  X(RECORD_GET, "SELECT rid,id,seq,vid,doc,meta,crc FROM record WHERE rid=?1")                                         \
  X(RECORDS_PUT, "INSERT OR FAIL INTO record(rid,id,seq,vid,doc,meta,crc) SELECT rid,id,seq,vid,doc,meta,crc "         \
                 "FROM lode_feed")                                                                                     \
  X(RECORD_SET, "UPDATE record SET seq=?3,vid=?4,doc=?5,meta=?6,crc=?7 WHERE rid=?1 AND id=?2")                        \
  X(RECORD_DELETE, "DELETE FROM record WHERE rid=?1")                                                                  \
  X(RECORD_SCAN, "SELECT rid,id,seq,vid,doc,meta,crc FROM record WHERE rid>?1 AND rid<=?2 ORDER BY rid")               \
  X(RECORD_KEYS, "SELECT rid FROM record WHERE rid>?1 AND rid<=?2 ORDER BY rid")                                       \
  X(RECORD_PENDING, "SELECT r.rid,r.id,r.seq,r.vid,r.doc,r.meta,r.crc FROM record AS r INDEXED BY pending WHERE "      \
                    "vid=0 AND rid>?1 AND rid<=?2 ORDER BY rid")                                                       \
  X(RECORD_IS_PENDING, "SELECT 1 FROM record INDEXED BY pending WHERE vid=0 AND rid=?1")                               \
  X(DOCUMENT_GET, "SELECT text,crc FROM document WHERE rid=?1")                                                        \
  X(DOCUMENT_PUT, "INSERT INTO document(rid,text,crc) VALUES(?1,?2,?3)")                                               \
  X(DOCUMENTS_PUT, "INSERT OR FAIL INTO document(rid,text,crc) SELECT rid,text,text_crc FROM lode_feed")               \
  X(DOCUMENT_SET, "UPDATE document SET text=?2,crc=?3 WHERE rid=?1")                                                   \
  X(DOCUMENT_DELETE, "DELETE FROM document WHERE rid=?1")                                                              \
  X(VECTOR_GET, "SELECT vid,rid,data,crc FROM vector WHERE vid=?1")                                                    \
  X(VECTOR_PUT, "INSERT INTO vector(vid,rid,data,crc) VALUES(?1,?2,?3,?4)")                                            \
  X(VECTORS_PUT, "INSERT OR FAIL INTO vector(vid,rid,data,crc) SELECT vid,rid,data,data_crc FROM lode_feed")           \
  X(VECTOR_DELETE, "DELETE FROM vector WHERE vid=?1")                                                                  \
  X(VECTOR_SCAN, "SELECT vid,rid,data,crc FROM vector WHERE vid>?1 AND vid<=?2 ORDER BY vid")                          \
  X(VECTOR_OWNER, "SELECT rid FROM vector WHERE vid=?1")                                                               \
  X(SEGMENT_OF, "SELECT id,cid,after,last,rows,kind,bytes,sum,crc FROM segment WHERE cid=?1 ORDER BY after,last")      \
  X(SEGMENT_ALL, "SELECT id,cid,after,last,rows,kind,bytes,sum,crc FROM segment ORDER BY cid,after,last")              \
  X(SEGMENT_PUT, "INSERT OR REPLACE INTO segment(id,cid,after,last,rows,kind,bytes,sum,crc) "                          \
                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")                                                                 \
  X(SEGMENT_DELETE, "DELETE FROM segment WHERE id=?1")                                                                 \
  X(SEGMENT_DROP, "DELETE FROM segment WHERE cid=?1")                                                                  \
  X(SEGMENT_LAST, "SELECT max(last) FROM segment WHERE cid=?1")                                                        \
  X(DEAD_PUT, "INSERT OR IGNORE INTO dead(vid,rid) VALUES(?1,?2)")                                                     \
  X(DEAD_EACH, "SELECT vid,rid FROM dead WHERE vid>?1 AND vid<=?2 ORDER BY vid")                                       \
  X(DEAD_COUNT, "SELECT count(*) FROM dead WHERE vid>?1 AND vid<=?2")                                                  \
  X(DEAD_DELETE, "DELETE FROM dead WHERE vid=?1")                                                                      \
  X(DEAD_DROP, "DELETE FROM dead WHERE vid>?1 AND vid<=?2")                                                            \
  X(TOMBSTONE_PUT, "INSERT INTO grave(gid,rids,vid,crc) VALUES(?1,?2,?3,?4)")                                          \
  X(TOMBSTONE_SET, "UPDATE grave SET rids=?2,vid=?3,crc=?4 WHERE gid=?1")                                              \
  X(TOMBSTONE_SCAN, "SELECT gid,rids,vid,crc FROM grave WHERE gid>?1 AND gid<=?2 ORDER BY gid")                        \
  X(TOMBSTONE_DELETE, "DELETE FROM grave WHERE gid=?1")                                                                \
  X(KEY_GET, "SELECT kid,counted FROM metakey WHERE cid=?1 AND name=?2")                                               \
  X(KEY_PUT, "INSERT INTO metakey(kid,cid,name,counted) VALUES(?1,?2,?3,?4)")                                          \
  X(KEY_COUNTED, "SELECT name,(SELECT count(*) FROM counter WHERE counter.kid=metakey.kid) FROM metakey WHERE "        \
                 "cid=?1 AND counted=1 ORDER BY name")                                                                 \
  X(KEY_ERASE, "DELETE FROM metakey WHERE cid=?1")                                                                     \
  X(TERM_PUT, "INSERT OR IGNORE INTO term(kid,value,rid) VALUES(?1,?2,?3)")                                            \
  X(TERM_DELETE, "DELETE FROM term WHERE kid=?1 AND value=?2 AND rid=?3")                                              \
  X(TERM_EQ, "SELECT value,rid FROM term WHERE kid=?1 AND value=?2")                                                   \
  X(TERM_RANGE, "SELECT value,rid FROM term WHERE kid=?1 AND value>=?2 AND value<=?3 ORDER BY value,rid")              \
  X(COUNTER_ADD, "INSERT INTO counter(kid,value,n) VALUES(?1,?2,?3) ON CONFLICT(kid,value) DO UPDATE SET "             \
                 "n=n+excluded.n")                                                                                     \
  X(COUNTER_TRIM, "DELETE FROM counter WHERE kid=?1 AND value=?2 AND n<=0")                                            \
  X(COUNTER_EACH, "SELECT value,n FROM counter WHERE kid=?1 ORDER BY n DESC,value")                                    \
  X(COUNTER_ERASE, "DELETE FROM counter WHERE kid IN (SELECT kid FROM metakey WHERE cid=?1)")                          \
  X(TEXT_PUT, "INSERT INTO text(rowid,body) VALUES(?1,?2)")                                                            \
  X(TEXT_DELETE, "INSERT INTO text(text,rowid,body) VALUES('delete',?1,?2)")                                           \
  X(TEXT_FIND, "SELECT 1 FROM text WHERE text MATCH ?1 AND rowid>?2 AND rowid<=?3 AND lode_visit(text,?4) "            \
               "ORDER BY rowid")                                                                                       \
  X(TEXT_FORGET, "INSERT INTO text(text) VALUES('delete-all')")                                                        \
  X(SIZES_GET, "SELECT codes FROM size WHERE block=?1")                                                                \
  X(SIZES_PUT, "INSERT OR REPLACE INTO size(block,codes) VALUES(?1,?2)")                                               \
  X(SIZES_ERASE, "DELETE FROM size WHERE block BETWEEN ?1 AND ?2")                                                     \
  X(COLL_FORGET, "UPDATE collection SET text_cursor=?2,untexted=records+?3 WHERE cid=?1")                              \
  X(SCHEMA_COOKIE, "PRAGMA schema_version")                                                                            \
  X(BEGIN_READ, "BEGIN")                                                                                               \
  X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                    \
  X(COMMIT, "COMMIT")                                                                                                  \
  X(ROLLBACK, "ROLLBACK")                                                                                              \
  X(SAVEPOINT, "SAVEPOINT s")                                                                                          \
  X(SAVEPOINT_UNDO, "ROLLBACK TO s")                                                                                   \
  X(SAVEPOINT_END, "RELEASE s")                                                                                        \
  X(NAME_SCAN, "SELECT cid,id,rid FROM name WHERE (cid,id)>(?1,?2) ORDER BY cid,id")                                   \
  X(FRESH_SCAN, "SELECT cid,id,rid FROM fresh WHERE (cid,id)>(?1,?2) ORDER BY cid,id")                                 \
  X(DOCUMENT_KEYS, "SELECT rid FROM document WHERE rid>?1 AND rid<=?2 ORDER BY rid")                                   \
  X(VECTOR_KEYS, "SELECT vid,rid FROM vector WHERE vid>?1 AND vid<=?2 ORDER BY vid")                                   \
  X(VECTOR_EXISTS, "SELECT 1 FROM vector WHERE vid=?1")                                                                \
  X(COLL_CIDS, "SELECT cid,name FROM collection WHERE cid>?1 AND cid<=?2 ORDER BY cid")

enum {
#define STORE_STMT_ENUM(name, sql) STORE_STMT_##name,
  STORE_STATEMENTS(STORE_STMT_ENUM)
#undef STORE_STMT_ENUM
      STORE_STMT_COUNT
};

/* Rows of table state. Format 1 had the cursor in row 3. It moved so that a program that knows only format 1, and has
 * the store open during the upgrade, finds no cursor and stops. */
enum {
  STORE_STATE_UID = 1,
  STORE_STATE_CREATED,
  STORE_STATE_CURSOR_FORMAT_1,
  STORE_STATE_NEXT_CID,
  STORE_STATE_NEXT_KID,
  STORE_STATE_FRESH,
  STORE_STATE_CURSOR,
};

/* A record to be inserted. */
typedef struct store_new_rec {
  store_rec rec;
  lode_str document, vector; /* bytes; data NULL: none */
  uint32_t vector_crc, crc;
} store_new_rec;

/* What the virtual table lode_feed shows (batch_table.c). */
typedef enum store_batch_part { STORE_BATCH_ALL, STORE_BATCH_DOCUMENTS, STORE_BATCH_VECTORS } store_batch_part;
typedef struct store_batch {
  const store_new_rec *rows;
  const size_t *order; /* permutation of rows; NULL: as they are */
  const lode_str *ids; /* only ids, instead of rows */
  size_t n;
  store_batch_part part; /* only rows that have this part */
} store_batch;

/* A temporary folder (private_copy.c). */
typedef struct store_tmpdir {
  char *folder;        /* NULL: none */
  int fd;              /* holds the lock that marks it as in use */
  unsigned generation; /* of the process that created it; only that process removes it */
} store_tmpdir;

typedef struct store_conn store_conn;
struct store_conn {
  store_db *db;
  store_conn *next;
  sqlite3 *sql;
  sqlite3_stmt *stmt[STORE_STMT_COUNT];
  dev_t dev;
  ino_t ino;
  unsigned generation;
  bool linked;            /* the file had several hard links when it was opened */
  uint64_t damage_seen;   /* damaged reads of the VFS that are already in store_db.damaged_pages */
  uint64_t wait_until_ns; /* busy handler: when to give up; 0: not waiting */
  bool waiting;           /* counted in store_db.waiting */
  bool schema_known;      /* the schema with schema_cookie was checked (schema_check.c) */
  int64_t schema_cookie;
  store_batch batch; /* set while a statement that reads lode_feed runs */
  /* Dead keys (store_record.c): the rids and vids in tombstones of one collection, sorted. Kept between transactions,
   * because keys are never reused; erased ones may be among them. */
  int64_t *dead;
  size_t n_dead, cap_dead;
  int64_t dead_cid;     /* 0: not loaded */
  int64_t dead_gid;     /* newest tombstone in the list */
  uint64_t dead_cursor; /* the list is complete for a transaction at this cursor */
};

struct store_db {
  char *folder, *path, *lock_path;
  lode_open_options opt;
  pthread_mutex_t mutex; /* guards everything below; nobody waits for a file lock with it held */
  pthread_cond_t writer_free;
  bool writer_active; /* a thread of this handle has its turn to write */
  bool writer_waits;  /* that thread still waits for SQLite's lock */
  store_conn *idle;
  size_t n_idle;
  int lock_fd; /* -1: none (read-only medium) */
  unsigned lock_generation;
  bool working;       /* a thread of this handle does maintenance */
  unsigned step_rows; /* limit of records per maintenance step after the disk was full; 0: no limit */
  bool building;      /* a thread of this handle holds the builder's lock */
  unsigned queued;    /* threads of this handle that wait for their turn to write */
  unsigned waiting;   /* connections of this handle that wait for a lock */
  dev_t truth_dev;    /* identity of the truth file that was last used */
  ino_t truth_ino;
  unsigned epoch; /* how often that identity has changed */
  uint64_t damaged_pages;
};

/* A metadata key in the cache of a store_tx. */
typedef struct store_metakey {
  lode_str name;
  int64_t kid;
  bool counted;
} store_metakey;

struct store_tx {
  store_db *db;
  store_conn *conn;
  store_tx_kind kind;
  unsigned epoch;
  uint64_t began_ns;
  bool age_checked;                  /* store_tx_is_old() was called before */
  uint64_t cursor;                   /* as read at the start; in a write, the last number handed out */
  uint64_t cursor_saved;             /* as stored in the database */
  int64_t fresh;                     /* rows of table fresh (record_ids.c) */
  int64_t fresh_saved;               /* their number as stored in the database */
  bool fresh_known;                  /* fresh and fresh_saved were loaded */
  int64_t fresh_before;              /* value of fresh at the savepoint; -1: it was not loaded */
  sqlite3_stmt *rec_scan, *vec_scan; /* the running scans */
  int64_t keys_cid;                  /* collection whose metadata keys are cached; 0: none */
  store_metakey *keys;
  size_t n_keys, cap_keys;
  mem_arena keys_arena;
  json_doc json;          /* scratch for metadata */
  int64_t dead_cid;       /* collection whose dead keys in conn are up to date for this transaction; 0: none */
  int64_t segmented_cid;  /* collection that segmented_last belongs to; 0: none */
  int64_t segmented_last; /* the last vid that a segment may hold */
  bool open;              /* BEGIN was done */
  bool format_1;          /* the store had format 1 at BEGIN; a write transaction has upgraded it */
  bool failed;            /* a statement failed: only a rollback, or the end of the savepoint, is allowed */
  lode_status why;        /* the status of that failure */
  bool in_savepoint;
};

/* Maps an SQLite result to a status, with advice in the text. */
lode_status store_err_sql(store_conn *conn, int rc, lode_error *err);
/* LODE_BUSY: others held the lock for too long; the text names the last writer. */
lode_status store_err_locked(store_db *db, lode_error *err);
/* A statement of this transaction's connection, reset, prepared on first use. Bindings are not cleared. */
lode_status store_stmt(store_tx *tx, int which, sqlite3_stmt **stmt, lode_error *err);
/* Steps once: *row says whether there is a row. The statement is reset only on error. */
lode_status store_stmt_step(store_tx *tx, sqlite3_stmt *stmt, bool *row, lode_error *err);
/* Steps to the end and resets. */
lode_status store_stmt_run(store_tx *tx, sqlite3_stmt *stmt, lode_error *err);
lode_status store_exec(store_conn *conn, const char *sql, lode_error *err);
lode_status store_state_get(store_tx *tx, int key, int64_t *value, lode_error *err);
lode_status store_state_find(store_tx *tx, int key, int64_t *value, bool *found, lode_error *err);
lode_status store_state_put(store_tx *tx, int key, int64_t value, lode_error *err);

/* The next commit-ordered number, for a write. */
lode_status store_tx_next_seq(store_tx *tx, uint64_t *seq, lode_error *err);
/* Does anybody wait for a lock or for a turn to write? Long work yields then. */
bool store_db_has_waiters(store_db *db);

static inline int64_t store_key_make(int64_t cid, uint64_t seq) {
  return (int64_t)((uint64_t)cid << STORE_KEY_SEQ_BITS | seq);
}
static inline int64_t store_key_before_first(int64_t cid) { return (int64_t)((uint64_t)cid << STORE_KEY_SEQ_BITS); }
static inline int64_t store_key_last(int64_t cid) { return store_key_make(cid, STORE_KEY_SEQ_MAX); }
static inline int64_t store_key_cid(int64_t key) { return key >> STORE_KEY_SEQ_BITS; }

/* An absent string is bound as NULL. */
static inline int store_bind_blob(sqlite3_stmt *s, int i, lode_str v) {
  return v.data ? sqlite3_bind_blob64(s, i, v.data, v.len, SQLITE_STATIC) : sqlite3_bind_null(s, i);
}
static inline int store_bind_text(sqlite3_stmt *s, int i, lode_str v) {
  return v.data ? sqlite3_bind_text64(s, i, v.data, v.len, SQLITE_STATIC, SQLITE_UTF8) : sqlite3_bind_null(s, i);
}
/* A NULL column is an absent string; an empty one has a valid pointer. */
static inline lode_str store_column_str(sqlite3_stmt *s, int i) {
  if (sqlite3_column_type(s, i) == SQLITE_NULL) return (lode_str){NULL, 0};
  const void *p = sqlite3_column_blob(s, i);
  return (lode_str){p ? p : "", (size_t)sqlite3_column_bytes(s, i)};
}

/* open.c */
char *store_path_join(const char *folder, const char *name); /* freed by the caller; NULL: out of memory */
int store_db_open_lock_file(store_db *db);
/* Opens a truth file that nobody else uses, read-only and without lode.lock. */
lode_status store_db_open_file(const char *file, store_db **db, lode_error *err);
lode_status store_make_folders(const char *folder, lode_error *err); /* mode 0700; missing parents get 0777 */

/* private_copy.c */
lode_status store_tmpdir_create(store_tmpdir *p, lode_error *err); /* also removes what killed processes left */
void store_tmpdir_remove(store_tmpdir *p);                         /* with the files in it */
/* Sets the error text for LODE_FULL in such a folder; other statuses are returned unchanged. */
lode_status store_tmpdir_explain(lode_status st, lode_error *err);

/* schema.c */
typedef struct store_schema_object {
  const char *type, *name, *table;
  const char *sql; /* NULL: an index that SQLite creates with its table */
  bool own;        /* created by its SQL; false: created along with another object */
} store_schema_object;
#define STORE_SCHEMA_OBJECTS 21
extern const store_schema_object store_schema_objects[STORE_SCHEMA_OBJECTS];
/* Is this format one we can read? LODE_VERSION: it was written by a newer Lode. */
lode_status store_schema_first_step(uint32_t format, const char *path, lode_error *err);
lode_status store_db_create(store_db *db, lode_error *err);
/* Reads the store once, and upgrades the format of an older Lode. A handle that is read-only, or cannot write at the
 * moment, uses format 1 as it is. */
lode_status store_db_upgrade(store_db *db, lode_error *err);
/* Upgrades format 1 to STORE_FORMAT, within a write transaction. */
lode_status store_tx_raise_format(store_tx *tx, lode_error *err);

/* schema_check.c */
/* Is the schema one of ours? Called with a lock of the truth file held, before anything else runs in a transaction.
 * Checks again whenever SQLite would parse the schema again. */
lode_status store_schema_check(store_conn *conn, lode_error *err);
/* The same for a file that is read as pages: a backup. */
lode_status store_schema_check_pages(store_pages *pages, const char *path, lode_error *err);
/* Does the schema hold anything that Lode did not create? False if damaged pages make it impossible to know. */
bool store_schema_is_foreign(store_pages *pages, const char *path, lode_error *why);

/* conn.c */
/* Disables whatever a hostile schema could use: triggers, views, extensions, and SQLite features that Lode does not
 * need. */
void store_conn_harden(sqlite3 *sql);
lode_status store_conn_open(store_db *db, const char *path, bool create, store_conn **conn, lode_error *err);
void store_conn_close(store_conn *conn); /* NULL is allowed */
void store_conn_stop_waiting(store_conn *conn);

/* row_checksums.c: the checksum of each kind of row; it proves a row even if it is found alone on a page */
uint32_t store_crc_document(int64_t rid, lode_str text);
uint32_t store_crc_vector(int64_t vid, int64_t rid, const void *data, size_t bytes);
uint32_t store_crc_record(const store_rec *rec, bool has_doc, uint32_t doc_crc);
uint32_t store_crc_tombstone(int64_t gid, lode_str rids, int64_t vid);
uint32_t store_crc_collection(const store_coll *coll);
uint32_t store_crc_manifest(const store_manifest_row *row);

/* manifest.c */
/* Adds a vector that is about to be erased to table dead, if a segment may hold it. rid 0: look it up. */
lode_status store_dead_add(store_tx *tx, int64_t vid, int64_t rid, lode_error *err);
lode_status store_dead_drop_all(store_tx *tx, int64_t cid, lode_error *err);
lode_status store_manifest_drop_all(store_tx *tx, int64_t cid, lode_error *err);

/* store_maintenance.c: the integer result of a pragma */
lode_status store_pragma_int(store_tx *tx, const char *sql, int64_t *value, lode_error *err);

/* store_record.c */
lode_status store_rec_count(store_tx *tx, int64_t cid, uint64_t *n, lode_error *err);

/* backup.c: LODE_CORRUPT unless each collection of a private copy has as many records as its row says */
lode_status store_copy_check_counts(const char *file, lode_progress progress, lode_error *err);

/* batch_table.c */
lode_status store_batch_register(store_conn *conn, lode_error *err); /* for a new connection */
/* Runs a statement that reads lode_feed; `first` is its first parameter, if it has one. */
lode_status store_batch_run(store_tx *tx, int which, int64_t first, store_batch batch, lode_error *err);

/* record_ids.c */
extern int64_t store_fresh_min_rows; /* tests make it small, so that ids are merged often */
/* Adds the ids of new records, in the order given (sorted is fastest). No other record, dead or alive, may have them.
 */
lode_status store_ids_add(store_tx *tx, const store_coll *coll, const store_new_rec *rows, const size_t *order,
                          size_t n, lode_error *err);
lode_status store_ids_merge_fresh(store_tx *tx, lode_error *err); /* moves all rows of `fresh` to `name` */
/* Calls fn for each of the ids (sorted; repeated ones count once) that has a live record. */
typedef lode_status store_id_fn(void *ctx, const store_id_entry *entry, lode_error *err);
lode_status store_ids_each(store_tx *tx, const store_coll *coll, const lode_str *ids, size_t n, store_id_fn *fn,
                           void *ctx, lode_error *err);
lode_status store_id_set_len(store_tx *tx, int64_t cid, lode_str id, int64_t len, lode_error *err);
/* Removes the id if it still belongs to this record. */
lode_status store_id_remove(store_tx *tx, int64_t cid, lode_str id, int64_t rid, lode_error *err);
lode_status store_ids_erase_some(store_tx *tx, int64_t cid, bool *more, lode_error *err); /* of a dropped collection */
lode_status store_ids_save(store_tx *tx, lode_error *err); /* saves the row count of `fresh`, before a commit */

/* tombstones.c */
#define STORE_TOMBSTONE_MAX_RIDS 256 /* records in one row */
typedef struct store_tombstone {
  int64_t gid; /* of the last entry */
  int64_t vid; /* a replaced vector; 0: the row holds records */
  size_t n;
  int64_t rids[STORE_TOMBSTONE_MAX_RIDS]; /* ascending */
} store_tombstone;
lode_status store_tombstone_add_vector(store_tx *tx, store_coll *coll, int64_t vid, lode_error *err);
/* The rids must be ascending. */
lode_status store_tombstone_add_records(store_tx *tx, store_coll *coll, const int64_t *rids, size_t n, lode_error *err);
/* Keeps only the records from index `first` on; deletes the row if none is left. */
lode_status store_tombstone_trim(store_tx *tx, const store_tombstone *tombstone, size_t first, lode_error *err);
bool store_tombstone_decode(int64_t gid, lode_str rids, int64_t vid, store_tombstone *tombstone); /* false: malformed */
/* The current row of a statement with columns gid, rids, vid, crc; its checksum is verified. */
lode_status store_tombstone_read(store_tx *tx, sqlite3_stmt *s, store_tombstone *tombstone, lode_error *err);

/* document_sizes.c: approximate lengths of documents. A writer flushes the last block when it is done. */
unsigned store_doc_size_code(uint64_t bytes); /* 1 to 255 */
uint64_t store_doc_size_min(unsigned code);   /* least length of a document with this code; 0: not known */
lode_status store_doc_sizes_put(store_tx *tx, store_doc_sizes *sizes, int64_t rid, uint64_t bytes, lode_error *err);
lode_status store_doc_sizes_flush(store_tx *tx, store_doc_sizes *sizes, lode_error *err);
lode_status store_doc_sizes_erase(store_tx *tx, int64_t cid, lode_error *err); /* of a dropped collection */

/* store_maintenance.c */
extern uint64_t store_load_batch; /* records whose metadata a bulk load indexes at once; tests make it small */

/* store_write.c */
lode_status store_text_add(store_tx *tx, store_doc_sizes *sizes, int64_t rid, lode_str text, lode_error *err);
lode_status store_text_remove(store_tx *tx, int64_t rid, lode_str text, lode_error *err);

#define STORE_TERM_MAX_BYTES 64 /* strings in the metadata index are truncated to this */

/* metadata_index.c: called by writers for records up to term_cursor; counters: for all records */
lode_status store_terms_add(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
lode_status store_terms_remove(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
lode_status store_counters_change(store_tx *tx, int64_t cid, lode_str metadata, int delta, lode_error *err);
lode_status store_metakey_id(store_tx *tx, int64_t cid, lode_str name, bool create, bool counted, int64_t *kid,
                             lode_error *err);

/* Terms of many records, written in the order of the index. */
typedef struct store_term_item {
  int64_t kid, rid;
  meta_value value;
} store_term_item;
typedef struct store_term_batch {
  store_tx *tx;
  int64_t cid, rid;
  bool creates; /* create keys that do not exist yet */
  store_term_item *items;
  size_t n, cap;
  mem_arena arena;
} store_term_batch;
lode_status store_term_batch_add(store_term_batch *b, store_tx *tx, int64_t cid, int64_t rid, lode_str metadata,
                                 bool creates, lode_error *err);
/* which: STORE_STMT_TERM_PUT or STORE_STMT_TERM_DELETE */
lode_status store_term_batch_write(store_term_batch *b, int which, lode_error *err);
void store_term_batch_release(store_term_batch *b);

/* store_truth.c: the pages of the truth file as a transaction sees them, each verified by its checksum */
typedef struct store_truth {
  sqlite3_file *file;
  uint32_t page_bytes;
  uint32_t pages;      /* as page 1 declares */
  uint32_t file_pages; /* complete pages in the file */
  uint32_t change;     /* SQLite's change counter: differs after every commit */
  bool has_map;        /* as in truth_pages.h */
  int rc;              /* first error of a read through store_truth_pages(); SQLITE_IOERR_DATA: only damaged pages */
} store_truth;
/* Returns SQLite's code; SQLITE_IOERR_SHORT_READ: the file is empty. page_bytes is 0 if page 1 declares an impossible
 * size. */
int store_truth_open(store_conn *conn, store_truth *truth);
lode_status store_truth_begin(store_tx *tx, store_truth *truth, lode_error *err);
/* LODE_CORRUPT: the page is damaged. Free pages may read as zeros. */
lode_status store_truth_read_page(store_tx *tx, const store_truth *truth, uint32_t number, unsigned char *page,
                                  lode_error *err);
/* Makes `pages` read through this handle until the transaction ends. The caller provides the page buffers. */
void store_truth_pages(store_truth *truth, store_pages *pages);
/* backup.c: a consistent copy of the truth file as a new file, synced. */
lode_status store_db_copy(store_db *db, const char *file, lode_progress progress, lode_error *err);

/* salvage_find.c: decodes the row of a record and verifies its checksum; its strings point into the payload. */
struct store_row;
bool store_row_to_rec(const struct store_row *row, const strbuf *payload, store_rec *rec);

/* verify.c: SQLite's integrity check; calls line() for each fault and returns SQLite's result. */
typedef void store_integrity_fn(void *ctx, const char *line);
int store_integrity_check(sqlite3 *sql, store_integrity_fn *line, void *ctx);

/* text_index.c: registers the FTS5 tokenizer and lode_visit() for a new connection. Returns SQLite's code;
 * SQLITE_NOTFOUND: SQLite has no FTS5 (then report store_err_no_fts5()). */
int store_text_register(sqlite3 *sql);
lode_status store_err_no_fts5(lode_error *err);

#endif
