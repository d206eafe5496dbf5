/* db.h - inside src/lib/store: connections, statements, transactions. Not for other folders.
 *
 * Locks in lode.lock (all open-file-description locks, one descriptor per store_db):
 *   byte CREATE   exclusive: somebody makes the store
 *   byte WAIT     shared: somebody waits for a lock of the truth file. Who has just committed steps aside while it is held.
 *   byte WORK     exclusive: somebody does a step of background work; two would only get in each other's way
 *   byte BUILD    exclusive: somebody makes, replaces or sets aside segments of the vector index
 * The first bytes of the file hold the mark of a complete store and, behind it, who wrote last (for messages only).
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

/* X(name, SQL). Keys of a collection are the range (?1, ?2] or so: see FORMAT.md. */
#define STORE_STATEMENTS(X)                                                                                        \
  X(STATE_GET, "SELECT v FROM state WHERE k=?1")                                                                   \
  X(STATE_PUT, "INSERT INTO state(k,v) VALUES(?1,?2) ON CONFLICT(k) DO UPDATE SET v=excluded.v")                   \
  X(COLL_BY_NAME, "SELECT * FROM collection WHERE name=?1")                                                        \
  X(COLL_BY_CID, "SELECT * FROM collection WHERE cid=?1 AND name IS NOT NULL")                                     \
  X(COLL_EACH, "SELECT * FROM collection WHERE name IS NOT NULL ORDER BY name")                                    \
  X(COLL_INSERT, "INSERT INTO collection(cid,uid,name,metric,dim,metadata,embedder,embedder_dim,counted,created,"  \
                 "records,pending,documents,document_bytes,graves,text_cursor,term_cursor,untexted,unindexed,"     \
                 "horizon,crc) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,0,0,0,0,0,?11,?11,0,0,0,?12)")                 \
  X(COLL_IDENTITY, "UPDATE collection SET name=?2,metric=?3,dim=?4,metadata=?5,embedder=?6,embedder_dim=?7,crc=?8" \
                   " WHERE cid=?1")                                                                                \
  X(COLL_COUNTS, "UPDATE collection SET records=?2,pending=?3,documents=?4,document_bytes=?5,graves=?6,"           \
                 "text_cursor=?7,term_cursor=?8,untexted=?9,unindexed=?10,horizon=?11 WHERE cid=?1")               \
  X(COLL_ERASE, "DELETE FROM collection WHERE cid=?1")                                                             \
  X(COLL_NEXT_WORK, "SELECT cid FROM collection WHERE cid>?1 AND (name IS NULL OR graves>0 OR untexted>0 OR "      \
                    "unindexed>0) ORDER BY cid LIMIT 1")                                                           \
  X(COLL_NEXT_DEAD, "SELECT cid FROM collection WHERE cid>?1 AND (name IS NULL OR graves>0) ORDER BY cid LIMIT 1")  \
  X(COLL_DROPPED, "SELECT text_cursor,term_cursor FROM collection WHERE cid=?1 AND name IS NULL")                                        \
  X(COLL_SUMS, "SELECT count(*),sum(records),sum(pending),sum(graves),sum(untexted),sum(unindexed) FROM collection " \
               "WHERE name IS NOT NULL")                                                                           \
  X(NAME_GET, "SELECT rid,len FROM fresh WHERE cid=?1 AND id=?2 UNION ALL "                                        \
              "SELECT rid,len FROM name WHERE cid=?1 AND id=?2")                                                   \
  X(NAMES_FIND, "SELECT f.rowid,n.rid,n.len FROM lode_feed AS f CROSS JOIN name AS n ON n.cid=?1 AND n.id=f.id")   \
  X(NAMES_WALK, "SELECT id,rid,len FROM name WHERE cid=?1 AND id>=?2 ORDER BY id")                                 \
  X(NAME_SET, "UPDATE name SET len=?3 WHERE cid=?1 AND id=?2")                                                     \
  X(NAME_DELETE, "DELETE FROM name WHERE cid=?1 AND id=?2 AND rid=?3")                                             \
  X(NAME_ERASE, "DELETE FROM name WHERE cid=?1 AND id IN (SELECT id FROM name WHERE cid=?1 LIMIT 100)")            \
  X(FRESH_FIND, "SELECT f.rowid,n.rid,n.len FROM lode_feed AS f CROSS JOIN fresh AS n ON n.cid=?1 AND n.id=f.id")  \
  X(FRESH_WALK, "SELECT id,rid,len FROM fresh WHERE cid=?1 AND id>=?2 ORDER BY id")                                \
  X(FRESH_PUT, "INSERT OR FAIL INTO fresh(cid,id,rid,len) SELECT ?1,id,rid,len FROM lode_feed")                    \
  X(FRESH_SET, "UPDATE fresh SET len=?3 WHERE cid=?1 AND id=?2")                                                   \
  X(FRESH_DELETE, "DELETE FROM fresh WHERE cid=?1 AND id=?2 AND rid=?3")                                           \
  X(FRESH_ERASE, "DELETE FROM fresh WHERE cid=?1 AND id IN (SELECT id FROM fresh WHERE cid=?1 LIMIT 100)")         \
  X(FRESH_MOVE, "INSERT OR FAIL INTO name(cid,id,rid,len) SELECT cid,id,rid,len FROM fresh ORDER BY cid,id")       \
  X(FRESH_CLEAR, "DELETE FROM fresh")                                                                              \
  X(RECORD_GET, "SELECT rid,id,seq,vid,doc,meta,crc FROM record WHERE rid=?1")                                     \
  X(RECORDS_PUT, "INSERT OR FAIL INTO record(rid,id,seq,vid,doc,meta,crc) SELECT rid,id,seq,vid,doc,meta,crc "     \
                 "FROM lode_feed")                                                                                 \
  X(RECORD_SET, "UPDATE record SET seq=?3,vid=?4,doc=?5,meta=?6,crc=?7 WHERE rid=?1 AND id=?2")                    \
  X(RECORD_DELETE, "DELETE FROM record WHERE rid=?1")                                                              \
  X(RECORD_SCAN, "SELECT rid,id,seq,vid,doc,meta,crc FROM record WHERE rid>?1 AND rid<=?2 ORDER BY rid")           \
  X(RECORD_KEYS, "SELECT rid FROM record WHERE rid>?1 AND rid<=?2 ORDER BY rid")                                   \
  X(RECORD_PENDING, "SELECT r.rid,r.id,r.seq,r.vid,r.doc,r.meta,r.crc FROM record AS r INDEXED BY pending WHERE "  \
                    "vid=0 AND rid>?1 AND rid<=?2 ORDER BY rid")                                                   \
  X(RECORD_IS_PENDING, "SELECT 1 FROM record INDEXED BY pending WHERE vid=0 AND rid=?1")                           \
  X(DOCUMENT_GET, "SELECT text,crc FROM document WHERE rid=?1")                                                        \
  X(DOCUMENT_PUT, "INSERT INTO document(rid,text,crc) VALUES(?1,?2,?3)")                                                  \
  X(DOCUMENTS_PUT, "INSERT OR FAIL INTO document(rid,text,crc) SELECT rid,text,text_crc FROM lode_feed")           \
  X(DOCUMENT_SET, "UPDATE document SET text=?2,crc=?3 WHERE rid=?1")                                                      \
  X(DOCUMENT_DELETE, "DELETE FROM document WHERE rid=?1")                                                          \
  X(VECTOR_GET, "SELECT vid,rid,data,crc FROM vector WHERE vid=?1")                                                \
  X(VECTOR_PUT, "INSERT INTO vector(vid,rid,data,crc) VALUES(?1,?2,?3,?4)")                                        \
  X(VECTORS_PUT, "INSERT OR FAIL INTO vector(vid,rid,data,crc) SELECT vid,rid,data,data_crc FROM lode_feed")       \
  X(VECTOR_DELETE, "DELETE FROM vector WHERE vid=?1")                                                              \
  X(VECTOR_SCAN, "SELECT vid,rid,data,crc FROM vector WHERE vid>?1 AND vid<=?2 ORDER BY vid")                      \
  X(VECTOR_OWNER, "SELECT rid FROM vector WHERE vid=?1")                                                           \
  X(SEGMENT_OF, "SELECT id,cid,after,last,rows,kind,bytes,sum,crc FROM segment WHERE cid=?1 ORDER BY after,last")  \
  X(SEGMENT_ALL, "SELECT id,cid,after,last,rows,kind,bytes,sum,crc FROM segment ORDER BY cid,after,last")          \
  X(SEGMENT_PUT, "INSERT OR REPLACE INTO segment(id,cid,after,last,rows,kind,bytes,sum,crc) "                      \
                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")                                                             \
  X(SEGMENT_DELETE, "DELETE FROM segment WHERE id=?1")                                                             \
  X(SEGMENT_DROP, "DELETE FROM segment WHERE cid=?1")                                                              \
  X(SEGMENT_LAST, "SELECT max(last) FROM segment WHERE cid=?1")                                                    \
  X(DEAD_PUT, "INSERT OR IGNORE INTO dead(vid,rid) VALUES(?1,?2)")                                                 \
  X(DEAD_EACH, "SELECT vid,rid FROM dead WHERE vid>?1 AND vid<=?2 ORDER BY vid")                                   \
  X(DEAD_COUNT, "SELECT count(*) FROM dead WHERE vid>?1 AND vid<=?2")                                              \
  X(DEAD_DELETE, "DELETE FROM dead WHERE vid=?1")                                                                  \
  X(DEAD_DROP, "DELETE FROM dead WHERE vid>?1 AND vid<=?2")                                                        \
  X(TOMBSTONE_PUT, "INSERT INTO grave(gid,rids,vid,crc) VALUES(?1,?2,?3,?4)")                                          \
  X(TOMBSTONE_SET, "UPDATE grave SET rids=?2,vid=?3,crc=?4 WHERE gid=?1")                                              \
  X(TOMBSTONE_SCAN, "SELECT gid,rids,vid,crc FROM grave WHERE gid>?1 AND gid<=?2 ORDER BY gid")                        \
  X(TOMBSTONE_DELETE, "DELETE FROM grave WHERE gid=?1")                                                                \
  X(KEY_GET, "SELECT kid,counted FROM metakey WHERE cid=?1 AND name=?2")                                           \
  X(KEY_PUT, "INSERT INTO metakey(kid,cid,name,counted) VALUES(?1,?2,?3,?4)")                                      \
  X(KEY_COUNTED, "SELECT name,(SELECT count(*) FROM counter WHERE counter.kid=metakey.kid) FROM metakey WHERE "   \
                 "cid=?1 AND counted=1 ORDER BY name")                                                             \
  X(KEY_ERASE, "DELETE FROM metakey WHERE cid=?1")                                                                 \
  X(TERM_PUT, "INSERT OR IGNORE INTO term(kid,value,rid) VALUES(?1,?2,?3)")                                        \
  X(TERM_DELETE, "DELETE FROM term WHERE kid=?1 AND value=?2 AND rid=?3")                                          \
  X(TERM_EQ, "SELECT value,rid FROM term WHERE kid=?1 AND value=?2")                                               \
  X(TERM_RANGE, "SELECT value,rid FROM term WHERE kid=?1 AND value>=?2 AND value<=?3 ORDER BY value,rid")          \
  X(COUNTER_ADD, "INSERT INTO counter(kid,value,n) VALUES(?1,?2,?3) ON CONFLICT(kid,value) DO UPDATE SET "         \
                 "n=n+excluded.n")                                                                                 \
  X(COUNTER_TRIM, "DELETE FROM counter WHERE kid=?1 AND value=?2 AND n<=0")                                        \
  X(COUNTER_EACH, "SELECT value,n FROM counter WHERE kid=?1 ORDER BY n DESC,value")                                \
  X(COUNTER_ERASE, "DELETE FROM counter WHERE kid IN (SELECT kid FROM metakey WHERE cid=?1)")                      \
  X(TEXT_PUT, "INSERT INTO text(rowid,body) VALUES(?1,?2)")                                                        \
  X(TEXT_DELETE, "INSERT INTO text(text,rowid,body) VALUES('delete',?1,?2)")                                       \
  X(TEXT_FIND, "SELECT 1 FROM text WHERE text MATCH ?1 AND rowid>?2 AND rowid<=?3 AND lode_visit(text,?4) "         \
               "ORDER BY rowid")                                                                                    \
  X(TEXT_FORGET, "INSERT INTO text(text) VALUES('delete-all')")                                                    \
  X(SIZES_GET, "SELECT codes FROM size WHERE block=?1")                                                             \
  X(SIZES_PUT, "INSERT OR REPLACE INTO size(block,codes) VALUES(?1,?2)")                                            \
  X(SIZES_ERASE, "DELETE FROM size WHERE block BETWEEN ?1 AND ?2")                                                  \
  X(COLL_FORGET, "UPDATE collection SET text_cursor=?2,untexted=records+?3 WHERE cid=?1")                          \
  X(SCHEMA_COOKIE, "PRAGMA schema_version")                                                                        \
  X(BEGIN_READ, "BEGIN")                                                                                           \
  X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                \
  X(COMMIT, "COMMIT")                                                                                              \
  X(ROLLBACK, "ROLLBACK")                                                                                          \
  X(SAVEPOINT, "SAVEPOINT s")                                                                                      \
  X(SAVEPOINT_UNDO, "ROLLBACK TO s")                                                                               \
  X(SAVEPOINT_END, "RELEASE s")                                                                                    \
  X(NAME_SCAN, "SELECT cid,id,rid FROM name WHERE (cid,id)>(?1,?2) ORDER BY cid,id")                               \
  X(FRESH_SCAN, "SELECT cid,id,rid FROM fresh WHERE (cid,id)>(?1,?2) ORDER BY cid,id")                             \
  X(DOCUMENT_KEYS, "SELECT rid FROM document WHERE rid>?1 AND rid<=?2 ORDER BY rid")                               \
  X(VECTOR_KEYS, "SELECT vid,rid FROM vector WHERE vid>?1 AND vid<=?2 ORDER BY vid")                               \
  X(VECTOR_EXISTS, "SELECT 1 FROM vector WHERE vid=?1")                                                            \
  X(COLL_CIDS, "SELECT cid,name FROM collection WHERE cid>?1 AND cid<=?2 ORDER BY cid")

enum {
#define STORE_STMT_ENUM(name, sql) STORE_STMT_##name,
  STORE_STATEMENTS(STORE_STMT_ENUM)
#undef STORE_STMT_ENUM
  STORE_STMT_COUNT
};

/* Rows of table state. Format 1 had the cursor in row 3. It has moved so that a program which knows no other format, and
 * has the store open while it is brought up, finds none and stops. */
enum {
  STORE_STATE_UID = 1, STORE_STATE_CREATED, STORE_STATE_CURSOR_FORMAT_1, STORE_STATE_NEXT_CID, STORE_STATE_NEXT_KID,
  STORE_STATE_FRESH, STORE_STATE_CURSOR,
};

/* A record that is about to be inserted. */
typedef struct store_new_rec {
  store_rec rec;
  lode_str document, vector; /* bytes; data NULL: none */
  uint32_t vector_crc, crc;
} store_new_rec;

/* What table lode_feed shows (batch_table.c). */
typedef enum store_batch_part { STORE_BATCH_ALL, STORE_BATCH_DOCUMENTS, STORE_BATCH_VECTORS } store_batch_part;
typedef struct store_batch {
  const store_new_rec *rows;
  const size_t *order;     /* NULL: as they are */
  const lode_str *ids;     /* instead of rows */
  size_t n;
  store_batch_part part;    /* rows that have this */
} store_batch;

/* A temporary folder (private_copy.c). */
typedef struct store_tmpdir {
  char *folder;          /* NULL: none */
  int fd;                /* says that it is in use */
  unsigned generation;   /* of the process that made it, and removes it */
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
  bool linked;             /* the file had several names when it was opened */
  uint64_t damage_seen;    /* of the VFS state, already added to the db's count */
  uint64_t wait_until_ns;  /* busy handler: give up then; 0 when not waiting */
  bool waiting;
  bool schema_known;       /* the schema with the number below was compared (schema_check.c) */
  int64_t schema_cookie;
  store_batch batch;         /* while a statement that reads it runs */
  /* The dead (store_record.c): keys in graves of one collection, sorted. Kept from transaction to transaction, because keys are
   * never used again; erased ones may be among them. */
  int64_t *dead;
  size_t n_dead, cap_dead;
  int64_t dead_cid;        /* 0: not loaded */
  int64_t dead_gid;        /* graves up to this one are in */
  uint64_t dead_cursor;    /* and all that a transaction at this cursor sees */
};

struct store_db {
  char *folder, *path, *lock_path;
  lode_open_options opt;
  pthread_mutex_t mutex;     /* guards everything below; nobody waits for a lock with it held */
  pthread_cond_t writer_free;
  bool writer_active;        /* a thread of this handle has a write transaction open, */
  bool writer_waits;         /* or has its turn and waits for the lock that others hold */
  store_conn *idle;
  size_t n_idle;
  int lock_fd;               /* -1: none (read-only medium) */
  unsigned lock_generation;
  bool working;              /* a thread of this handle does background work */
  unsigned few;              /* records in a step of that work since the disk was full; 0: many */
  bool building;             /* a thread of this handle holds the builder's lock */
  unsigned queued;           /* writers of this process that wait for their turn */
  unsigned waiting;          /* connections of this handle that wait now */
  dev_t truth_dev;           /* the truth file that was last opened */
  ino_t truth_ino;
  unsigned epoch;            /* how often that was another one than before */
  uint64_t damaged_pages;
};

/* What store_tx keeps of one collection's metadata keys. */
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
  bool looked_at;        /* store_tx_is_old() was asked before */
  uint64_t cursor;       /* as read at the start; writers: the last one handed out */
  uint64_t cursor_saved; /* as it stands in the database */
  int64_t fresh, fresh_saved; /* rows of table fresh, in the same two ways (record_ids.c) */
  bool fresh_known;
  int64_t fresh_before;  /* the savepoint, -1: it was not known */
  sqlite3_stmt *rec_scan, *vec_scan; /* the running scans */
  int64_t keys_cid;      /* whose keys are cached; 0: none */
  store_metakey *keys;
  size_t n_keys, cap_keys;
  mem_arena keys_arena;
  json_doc json;       /* scratch for metadata */
  int64_t dead_cid;      /* for which the connection's list of the dead is as this transaction sees it; 0: none */
  int64_t segmented_cid; /* of which segmented_last is known; 0: of none */
  int64_t segmented_last; /* the last vector that a segment may hold */
  bool open;             /* BEGIN was done */
  bool format_1;         /* the store has format 1; writers have raised it */
  bool failed;           /* a statement failed half-way: only rollback, or an end of the savepoint, is allowed */
  lode_status why;       /* it failed */
  bool in_savepoint;
};

/* Maps an SQLite result to a status and says what to do. */
lode_status store_err_sql(store_conn *conn, int rc, lode_error *err);
/* LODE_BUSY: others have held the lock for too long, and who they are. */
lode_status store_err_locked(store_db *db, lode_error *err);
/* A reset statement with no bindings left over, prepared on first use. */
lode_status store_stmt(store_tx *tx, int which, sqlite3_stmt **stmt, lode_error *err);
/* Steps to the first row: *row says whether there is one. The statement is not reset. */
lode_status store_stmt_step(store_tx *tx, sqlite3_stmt *stmt, bool *row, lode_error *err);
/* Steps to the end and resets. */
lode_status store_stmt_run(store_tx *tx, sqlite3_stmt *stmt, lode_error *err);
lode_status store_exec(store_conn *conn, const char *sql, lode_error *err);
lode_status store_state_get(store_tx *tx, int key, int64_t *value, lode_error *err);
lode_status store_state_find(store_tx *tx, int key, int64_t *value, bool *found, lode_error *err);
lode_status store_state_put(store_tx *tx, int key, int64_t value, lode_error *err);

/* The next commit-ordered number of a write. */
lode_status store_tx_next_seq(store_tx *tx, uint64_t *seq, lode_error *err);
/* Is anybody else waiting for a lock? Long work steps aside then. */
bool store_db_has_waiters(store_db *db);

static inline int64_t store_key_make(int64_t cid, uint64_t seq) { return (int64_t)((uint64_t)cid << STORE_KEY_SEQ_BITS | seq); }
static inline int64_t store_key_before_first(int64_t cid) { return (int64_t)((uint64_t)cid << STORE_KEY_SEQ_BITS); }
static inline int64_t store_key_last(int64_t cid) { return store_key_make(cid, STORE_KEY_SEQ_MAX); }
static inline int64_t store_key_cid(int64_t key) { return key >> STORE_KEY_SEQ_BITS; }

/* Binding of byte strings: absent is NULL. */
static inline int store_bind_blob(sqlite3_stmt *s, int i, lode_str v) {
  return v.data ? sqlite3_bind_blob64(s, i, v.data, v.len, SQLITE_STATIC) : sqlite3_bind_null(s, i);
}
static inline int store_bind_text(sqlite3_stmt *s, int i, lode_str v) {
  return v.data ? sqlite3_bind_text64(s, i, v.data, v.len, SQLITE_STATIC, SQLITE_UTF8) : sqlite3_bind_null(s, i);
}
/* NULL columns are absent; empty ones have a valid pointer. */
static inline lode_str store_column_str(sqlite3_stmt *s, int i) {
  if (sqlite3_column_type(s, i) == SQLITE_NULL) return (lode_str){NULL, 0};
  const void *p = sqlite3_column_blob(s, i);
  return (lode_str){p ? p : "", (size_t)sqlite3_column_bytes(s, i)};
}

/* open.c */
char *store_path_join(const char *folder, const char *name); /* freed by the caller; NULL when out of memory */
int store_db_open_lock_file(store_db *db);
/* A truth file outside of a store's folder, which nobody else knows: for reading, without locks. */
lode_status store_db_open_file(const char *file, store_db **db, lode_error *err);
lode_status store_make_folders(const char *folder, lode_error *err); /* mode 0700, with its parents */

/* private_copy.c */
lode_status store_tmpdir_create(store_tmpdir *p, lode_error *err); /* also removes what killed processes left */
void store_tmpdir_remove(store_tmpdir *p);                         /* with the files in it */
/* The text for a full disk under such a folder; other failures stay as they are. */
lode_status store_tmpdir_explain(lode_status st, lode_error *err);

/* schema.c */
typedef struct store_schema_object {
  const char *type, *name, *table;
  const char *sql;  /* NULL: an index that SQLite makes with its table */
  bool own;         /* made by its SQL; false: comes with another */
} store_schema_object;
#define STORE_SCHEMA_OBJECTS 21
extern const store_schema_object store_schema_objects[STORE_SCHEMA_OBJECTS];
/* LODE_VERSION: a newer Lode's. */
lode_status store_schema_first_step(uint32_t format, const char *path, lode_error *err);
lode_status store_db_create(store_db *db, lode_error *err);
/* Reads the store once, and brings one that was made by an earlier Lode up to date. A read-only handle reads format 1 as it
 * is, and so does one that cannot write at the moment. */
lode_status store_db_upgrade(store_db *db, lode_error *err);
/* From format 1 to this one, within a write transaction. */
lode_status store_tx_raise_format(store_tx *tx, lode_error *err);

/* schema_check.c */
/* With a lock of the truth file held, before anything else runs in a transaction: is the schema one of ours? Looks again
 * whenever SQLite would. */
lode_status store_schema_check(store_conn *conn, lode_error *err);
/* The same for a file that is read as pages: a backup. */
lode_status store_schema_check_pages(store_pages *pages, const char *path, lode_error *err);
/* Is there anything in the schema that Lode did not make? Not known, so false, where pages of it are damaged. */
bool store_schema_is_foreign(store_pages *pages, const char *path, lode_error *why);

/* conn.c */
/* Nothing that a schema might hold is run or trusted, and nothing of SQLite that Lode has no use for can be reached. */
void store_conn_harden(sqlite3 *sql);
lode_status store_conn_open(store_db *db, const char *path, bool create, store_conn **conn, lode_error *err);
void store_conn_close(store_conn *conn); /* NULL is allowed */
void store_conn_stop_waiting(store_conn *conn);

/* row_checksums.c: what proves a row, also when it is found alone on a page */
uint32_t store_crc_document(int64_t rid, lode_str text);
uint32_t store_crc_vector(int64_t vid, int64_t rid, const void *data, size_t bytes);
uint32_t store_crc_record(const store_rec *rec, bool has_doc, uint32_t doc_crc);
uint32_t store_crc_tombstone(int64_t gid, lode_str rids, int64_t vid);
uint32_t store_crc_collection(const store_coll *coll);
uint32_t store_crc_manifest(const store_manifest_row *row);

/* manifest.c: notes a vector that is about to be erased, if a segment may hold it. rid 0: look it up. */
lode_status store_dead_add(store_tx *tx, int64_t vid, int64_t rid, lode_error *err);
lode_status store_dead_drop_all(store_tx *tx, int64_t cid, lode_error *err);
lode_status store_manifest_drop_all(store_tx *tx, int64_t cid, lode_error *err);

/* store_maintenance.c: what a pragma says. */
lode_status store_pragma_int(store_tx *tx, const char *sql, int64_t *value, lode_error *err);

/* store_record.c */
lode_status store_rec_count(store_tx *tx, int64_t cid, uint64_t *n, lode_error *err);

/* backup.c: LODE_CORRUPT unless each collection of a copy that nobody else knows has as many records as it says. */
lode_status store_copy_check_counts(const char *file, lode_progress progress, lode_error *err);

/* batch_table.c */
lode_status store_batch_register(store_conn *conn, lode_error *err); /* for a new connection */
/* Runs a statement that reads lode_feed; `first` is its first parameter, if it has one. */
lode_status store_batch_run(store_tx *tx, int which, int64_t first, store_batch batch, lode_error *err);

/* record_ids.c */
extern int64_t store_fresh_min_rows; /* tests make it small, so that names move often */
/* Adds the names of new records, in the order given (sorted is fastest). No other record, dead or alive, has them. */
lode_status store_ids_add(store_tx *tx, const store_coll *coll, const store_new_rec *rows, const size_t *order, size_t n,
                            lode_error *err);
lode_status store_ids_merge_fresh(store_tx *tx, lode_error *err); /* all of `fresh` to `name` */
/* Calls fn for each of the ids (sorted; repeated ones count once) that has a living record. */
typedef lode_status store_id_fn(void *ctx, const store_id_entry *name, lode_error *err);
lode_status store_ids_each(store_tx *tx, const store_coll *coll, const lode_str *ids, size_t n, store_id_fn *fn, void *ctx,
                             lode_error *err);
lode_status store_id_set_len(store_tx *tx, int64_t cid, lode_str id, int64_t len, lode_error *err);
/* Of that record, if the name is still its own. */
lode_status store_id_remove(store_tx *tx, int64_t cid, lode_str id, int64_t rid, lode_error *err);
lode_status store_ids_erase_some(store_tx *tx, int64_t cid, bool *more, lode_error *err); /* of a dropped collection */
lode_status store_ids_save(store_tx *tx, lode_error *err); /* before a commit */

/* tombstones.c */
#define STORE_TOMBSTONE_MAX_RIDS 256 /* records in one row */
typedef struct store_tombstone {
  int64_t gid;   /* of the last */
  int64_t vid;   /* a vector; 0: records */
  size_t n;
  int64_t rids[STORE_TOMBSTONE_MAX_RIDS]; /* rising */
} store_tombstone;
lode_status store_tombstone_add_vector(store_tx *tx, store_coll *coll, int64_t vid, lode_error *err);
lode_status store_tombstone_add_records(store_tx *tx, store_coll *coll, const int64_t *rids, size_t n, lode_error *err); /* rising */
/* Keeps the records from `first` on; none left: the row goes. */
lode_status store_tombstone_trim(store_tx *tx, const store_tombstone *tombstone, size_t first, lode_error *err);
bool store_tombstone_decode(int64_t gid, lode_str rids, int64_t vid, store_tombstone *tombstone); /* false: not possible */
/* The row that a statement with columns gid, rids, vid, crc stands on; proven. */
lode_status store_tombstone_read(store_tx *tx, sqlite3_stmt *s, store_tombstone *tombstone, lode_error *err);

/* document_sizes.c: about how long documents are. Blocks are read and written as rids come; flush at the end of a writer's turn. */
unsigned store_doc_size_code(uint64_t bytes);       /* 1 to 255 */
uint64_t store_doc_size_min(unsigned code);       /* no document with this code is shorter; 0: not known */
lode_status store_doc_sizes_put(store_tx *tx, store_doc_sizes *sizes, int64_t rid, uint64_t bytes, lode_error *err);
lode_status store_doc_sizes_flush(store_tx *tx, store_doc_sizes *sizes, lode_error *err);
lode_status store_doc_sizes_erase(store_tx *tx, int64_t cid, lode_error *err); /* of a dropped collection */

/* store_maintenance.c */
extern uint64_t store_load_batch; /* a bulk load indexes the metadata of so many at once; tests make it small */

/* store_write.c */
lode_status store_text_add(store_tx *tx, store_doc_sizes *sizes, int64_t rid, lode_str text, lode_error *err);
lode_status store_text_remove(store_tx *tx, int64_t rid, lode_str text, lode_error *err);

#define STORE_TERM_MAX_BYTES 64 /* of a string in the metadata index; the rest is cut off */

/* metadata_index.c: called by the writers for records below the indexes' cursors */
lode_status store_terms_add(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
lode_status store_terms_remove(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
lode_status store_counters_change(store_tx *tx, int64_t cid, lode_str metadata, int delta, lode_error *err);
lode_status store_metakey_id(store_tx *tx, int64_t cid, lode_str name, bool create, bool counted, int64_t *kid, lode_error *err);

/* The same for many records, written in the order of the index. */
typedef struct store_term_item {
  int64_t kid, rid;
  meta_value value;
} store_term_item;
typedef struct store_term_batch {
  store_tx *tx;
  int64_t cid, rid;
  bool creates; /* keys that are new */
  store_term_item *items;
  size_t n, cap;
  mem_arena arena;
} store_term_batch;
lode_status store_term_batch_add(store_term_batch *b, store_tx *tx, int64_t cid, int64_t rid, lode_str metadata,
                                 bool creates, lode_error *err);
/* which: STORE_STMT_TERM_PUT or STORE_STMT_TERM_DELETE */
lode_status store_term_batch_write(store_term_batch *b, int which, lode_error *err);
void store_term_batch_release(store_term_batch *b);

/* store_truth.c: the pages of the truth file as a transaction sees them, each proven by its checksum */
typedef struct store_truth {
  sqlite3_file *file;
  uint32_t page_bytes;
  uint32_t pages;      /* of the database */
  uint32_t file_pages; /* whole ones in the file */
  uint32_t change;     /* differs after every commit */
  bool has_map;        /* as in truth_pages.h */
  int rc;              /* how a read for truth_pages.h has failed; SQLITE_IOERR_DATA: only by damage */
} store_truth;
/* SQLite's code; SQLITE_IOERR_SHORT_READ: the file is empty. page_bytes is 0 when page 1 declares an impossible size. */
int store_truth_open(store_conn *conn, store_truth *truth);
lode_status store_truth_begin(store_tx *tx, store_truth *truth, lode_error *err);
/* LODE_CORRUPT: the page is damaged. Free pages may read as zeros. */
lode_status store_truth_read_page(store_tx *tx, const store_truth *truth, uint32_t number, unsigned char *page, lode_error *err);
/* Sets up truth_pages.h to read from it, until the transaction ends; page buffers are the caller's. */
void store_truth_pages(store_truth *truth, store_pages *pages);
/* backup.c: the whole truth at one moment, synced, in a new file. */
lode_status store_db_copy(store_db *db, const char *file, lode_progress progress, lode_error *err);

/* salvage_find.c: decodes a record's row as read by truth_pages.h, and proves it; its strings lie in the payload */
struct store_row;
bool store_row_to_rec(const struct store_row *row, const strbuf *payload, store_rec *rec);

/* verify.c: SQLite's own check of its structures; calls line() for each fault and returns SQLite's result */
typedef void store_integrity_fn(void *ctx, const char *line);
int store_integrity_check(sqlite3 *sql, store_integrity_fn *line, void *ctx);

/* text_index.c: FTS5's tokenizer and the counting function, for a new connection. Returns SQLite's code; SQLITE_NOTFOUND: there
 * is no FTS5, for which the second makes the error. */
int store_text_register(sqlite3 *sql);
lode_status store_err_no_fts5(lode_error *err);

#endif
