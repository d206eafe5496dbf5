/* db.h - inside src/store: connections, statements, transactions. Not for other folders.
 *
 * Locks in lode.lock (all open-file-description locks, one descriptor per lode__db):
 *   byte CREATE   exclusive: somebody makes the store
 *   byte WAIT     shared: somebody waits for a lock of the truth file. Who has just committed steps aside while it is held.
 *   byte WORK     exclusive: somebody does a step of background work; two would only get in each other's way
 *   byte BUILD    exclusive: somebody makes, replaces or sets aside segments of the vector index
 * The first bytes of the file hold the mark of a complete store and, behind it, who wrote last (for messages only).
 */
#ifndef LODE_DB_H
#define LODE_DB_H

#include "pages.h"
#include "store.h"
#include "vfs.h"

#include <pthread.h>
#include <sqlite3.h>

#define LODE__LOCK_CREATE (1 << 20)
#define LODE__LOCK_WAIT ((1 << 20) + 1)
#define LODE__LOCK_WORK ((1 << 20) + 2)
#define LODE__LOCK_BUILD ((1 << 20) + 3)
#define LODE__APPLICATION_ID 0x6c6f6465 /* "lode" */

/* X(name, SQL). Keys of a collection are the range (?1, ?2] or so: see FORMAT.md. */
#define LODE__STATEMENTS(X)                                                                                        \
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
  X(GRAVE_PUT, "INSERT INTO grave(gid,rids,vid,crc) VALUES(?1,?2,?3,?4)")                                          \
  X(GRAVE_SET, "UPDATE grave SET rids=?2,vid=?3,crc=?4 WHERE gid=?1")                                              \
  X(GRAVE_SCAN, "SELECT gid,rids,vid,crc FROM grave WHERE gid>?1 AND gid<=?2 ORDER BY gid")                        \
  X(GRAVE_DELETE, "DELETE FROM grave WHERE gid=?1")                                                                \
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
#define LODE__STMT_ENUM(name, sql) LODE__STMT_##name,
  LODE__STATEMENTS(LODE__STMT_ENUM)
#undef LODE__STMT_ENUM
  LODE__STMT_COUNT
};

/* Rows of table state. Format 1 had the cursor in row 3. It has moved so that a program which knows no other format, and
 * has the store open while it is brought up, finds none and stops. */
enum {
  LODE__STATE_UID = 1, LODE__STATE_CREATED, LODE__STATE_CURSOR_1, LODE__STATE_NEXT_CID, LODE__STATE_NEXT_KID,
  LODE__STATE_FRESH, LODE__STATE_CURSOR,
};

/* A record that is about to be inserted. */
typedef struct lode__new {
  lode__rec rec;
  lode_str document, vector; /* bytes; data NULL: none */
  uint32_t vector_crc, crc;
} lode__new;

/* What table lode_feed shows (feed.c). */
typedef enum lode__feed_part { LODE__FEED_ALL, LODE__FEED_DOCUMENTS, LODE__FEED_VECTORS } lode__feed_part;
typedef struct lode__feed {
  const lode__new *rows;
  const size_t *order;     /* NULL: as they are */
  const lode_str *ids;     /* instead of rows */
  size_t n;
  lode__feed_part part;    /* rows that have this */
} lode__feed;

/* A temporary folder (private.c). */
typedef struct lode__private {
  char *folder;          /* NULL: none */
  int fd;                /* says that it is in use */
  unsigned generation;   /* of the process that made it, and removes it */
} lode__private;

typedef struct lode__conn lode__conn;
struct lode__conn {
  lode__db *db;
  lode__conn *next;
  sqlite3 *sql;
  sqlite3_stmt *stmt[LODE__STMT_COUNT];
  dev_t dev;
  ino_t ino;
  unsigned generation;
  bool linked;             /* the file had several names when it was opened */
  uint64_t damage_seen;    /* of the VFS state, already added to the db's count */
  uint64_t wait_until_ns;  /* busy handler: give up then; 0 when not waiting */
  bool waiting;
  bool schema_known;       /* the schema with the number below was compared (schema_check.c) */
  int64_t schema_cookie;
  lode__feed batch;         /* while a statement that reads it runs */
  /* The dead (record.c): keys in graves of one collection, sorted. Kept from transaction to transaction, because keys are
   * never used again; erased ones may be among them. */
  int64_t *dead;
  size_t n_dead, cap_dead;
  int64_t dead_cid;        /* 0: not loaded */
  int64_t dead_gid;        /* graves up to this one are in */
  uint64_t dead_cursor;    /* and all that a transaction at this cursor sees */
};

struct lode__db {
  char *folder, *path, *lock_path;
  lode_open_options opt;
  pthread_mutex_t mutex;     /* guards everything below; nobody waits for a lock with it held */
  pthread_cond_t writer_free;
  bool writer_active;        /* a thread of this handle has a write transaction open, */
  bool writer_waits;         /* or has its turn and waits for the lock that others hold */
  lode__conn *idle;
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

/* What lode__tx keeps of one collection's metadata keys. */
typedef struct lode__key {
  lode_str name;
  int64_t kid;
  bool counted;
} lode__key;

struct lode__tx {
  lode__db *db;
  lode__conn *conn;
  lode__tx_kind kind;
  unsigned epoch;
  uint64_t began_ns;
  bool looked_at;        /* lode__tx_is_old() was asked before */
  uint64_t cursor;       /* as read at the start; writers: the last one handed out */
  uint64_t cursor_saved; /* as it stands in the database */
  int64_t fresh, fresh_saved; /* rows of table fresh, in the same two ways (names.c) */
  bool fresh_known;
  int64_t fresh_before;  /* the savepoint, -1: it was not known */
  sqlite3_stmt *rec_scan, *vec_scan; /* the running scans */
  int64_t keys_cid;      /* whose keys are cached; 0: none */
  lode__key *keys;
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
lode_status lode__sql_fail(lode__conn *conn, int rc, lode_error *err);
/* LODE_BUSY: others have held the lock for too long, and who they are. */
lode_status lode__db_locked(lode__db *db, lode_error *err);
/* A reset statement with no bindings left over, prepared on first use. */
lode_status lode__stmt(lode__tx *tx, int which, sqlite3_stmt **stmt, lode_error *err);
/* Steps to the first row: *row says whether there is one. The statement is not reset. */
lode_status lode__step(lode__tx *tx, sqlite3_stmt *stmt, bool *row, lode_error *err);
/* Steps to the end and resets. */
lode_status lode__run(lode__tx *tx, sqlite3_stmt *stmt, lode_error *err);
lode_status lode__exec(lode__conn *conn, const char *sql, lode_error *err);
lode_status lode__state_get(lode__tx *tx, int key, int64_t *value, lode_error *err);
lode_status lode__state_find(lode__tx *tx, int key, int64_t *value, bool *found, lode_error *err);
lode_status lode__state_put(lode__tx *tx, int key, int64_t value, lode_error *err);

/* The next commit-ordered number of a write. */
lode_status lode__tx_next(lode__tx *tx, uint64_t *seq, lode_error *err);
/* Is anybody else waiting for a lock? Long work steps aside then. */
bool lode__db_others_wait(lode__db *db);

static inline int64_t lode__key_of(int64_t cid, uint64_t seq) { return (int64_t)((uint64_t)cid << LODE__KEY_BITS | seq); }
static inline int64_t lode__key_first(int64_t cid) { return (int64_t)((uint64_t)cid << LODE__KEY_BITS); }
static inline int64_t lode__key_last(int64_t cid) { return lode__key_of(cid, LODE__KEY_MAX); }
static inline int64_t lode__key_cid(int64_t key) { return key >> LODE__KEY_BITS; }

/* Binding of byte strings: absent is NULL. */
static inline int lode__bind_blob(sqlite3_stmt *s, int i, lode_str v) {
  return v.data ? sqlite3_bind_blob64(s, i, v.data, v.len, SQLITE_STATIC) : sqlite3_bind_null(s, i);
}
static inline int lode__bind_text(sqlite3_stmt *s, int i, lode_str v) {
  return v.data ? sqlite3_bind_text64(s, i, v.data, v.len, SQLITE_STATIC, SQLITE_UTF8) : sqlite3_bind_null(s, i);
}
/* NULL columns are absent; empty ones have a valid pointer. */
static inline lode_str lode__column(sqlite3_stmt *s, int i) {
  if (sqlite3_column_type(s, i) == SQLITE_NULL) return (lode_str){NULL, 0};
  const void *p = sqlite3_column_blob(s, i);
  return (lode_str){p ? p : "", (size_t)sqlite3_column_bytes(s, i)};
}

/* open.c */
char *lode__path_join(const char *folder, const char *name); /* freed by the caller; NULL when out of memory */
int lode__db_open_lock_file(lode__db *db);
/* A truth file outside of a store's folder, which nobody else knows: for reading, without locks. */
lode_status lode__db_open_file(const char *file, lode__db **db, lode_error *err);
lode_status lode__make_folder(const char *folder, lode_error *err); /* mode 0700, with its parents */

/* private.c */
lode_status lode__private_make(lode__private *p, lode_error *err); /* also removes what killed processes left */
void lode__private_drop(lode__private *p);                         /* with the files in it */
/* The text for a full disk under such a folder; other failures stay as they are. */
lode_status lode__private_failed(lode_status st, lode_error *err);

/* schema.c */
typedef struct lode__object {
  const char *type, *name, *table;
  const char *sql;  /* NULL: an index that SQLite makes with its table */
  bool own;         /* made by its SQL; false: comes with another */
} lode__object;
#define LODE__SCHEMA_OBJECTS 21
extern const lode__object lode__schema_objects[LODE__SCHEMA_OBJECTS];
/* LODE_VERSION: a newer Lode's. */
lode_status lode__schema_format(uint32_t format, const char *path, lode_error *err);
lode_status lode__db_create(lode__db *db, lode_error *err);
/* Reads the store once, and brings one that was made by an earlier Lode up to date. A read-only handle reads format 1 as it
 * is, and so does one that cannot write at the moment. */
lode_status lode__db_upgrade(lode__db *db, lode_error *err);
/* From format 1 to this one, within a write transaction. */
lode_status lode__db_raise_format(lode__tx *tx, lode_error *err);

/* schema_check.c */
/* With a lock of the truth file held, before anything else runs in a transaction: is the schema one of ours? Looks again
 * whenever SQLite would. */
lode_status lode__schema_check(lode__conn *conn, lode_error *err);
/* The same for a file that is read as pages: a backup. */
lode_status lode__schema_check_pages(lode__pages *pages, const char *path, lode_error *err);
/* Is there anything in the schema that Lode did not make? Not known, so false, where pages of it are damaged. */
bool lode__schema_is_foreign(lode__pages *pages, const char *path, lode_error *why);

/* conn.c */
/* Nothing that a schema might hold is run or trusted, and nothing of SQLite that Lode has no use for can be reached. */
void lode__conn_harden(sqlite3 *sql);
lode_status lode__conn_open(lode__db *db, const char *path, bool create, lode__conn **conn, lode_error *err);
void lode__conn_close(lode__conn *conn); /* NULL is allowed */
void lode__conn_stop_waiting(lode__conn *conn);

/* checksums.c: what proves a row, also when it is found alone on a page */
uint32_t lode__crc_document(int64_t rid, lode_str text);
uint32_t lode__crc_vector(int64_t vid, int64_t rid, const void *data, size_t bytes);
uint32_t lode__crc_record(const lode__rec *rec, bool has_doc, uint32_t doc_crc);
uint32_t lode__crc_grave(int64_t gid, lode_str rids, int64_t vid);
uint32_t lode__crc_collection(const lode__coll *coll);
uint32_t lode__crc_segment(const lode__seg_row *row);

/* segments.c: notes a vector that is about to be erased, if a segment may hold it. rid 0: look it up. */
lode_status lode__dead_note(lode__tx *tx, int64_t vid, int64_t rid, lode_error *err);
lode_status lode__dead_drop_all(lode__tx *tx, int64_t cid, lode_error *err);
lode_status lode__seg_drop_all(lode__tx *tx, int64_t cid, lode_error *err);

/* work.c: what a pragma says. */
lode_status lode__pragma_number(lode__tx *tx, const char *sql, int64_t *value, lode_error *err);

/* record.c */
lode_status lode__rec_count(lode__tx *tx, int64_t cid, uint64_t *n, lode_error *err);

/* backup.c: LODE_CORRUPT unless each collection of a copy that nobody else knows has as many records as it says. */
lode_status lode__copy_check_counts(const char *file, lode_progress progress, lode_error *err);

/* feed.c */
lode_status lode__feed_register(lode__conn *conn, lode_error *err); /* for a new connection */
/* Runs a statement that reads lode_feed; `first` is its first parameter, if it has one. */
lode_status lode__feed_run(lode__tx *tx, int which, int64_t first, lode__feed batch, lode_error *err);

/* names.c */
extern int64_t lode__fresh_least; /* tests make it small, so that names move often */
/* Adds the names of new records, in the order given (sorted is fastest). No other record, dead or alive, has them. */
lode_status lode__names_add(lode__tx *tx, const lode__coll *coll, const lode__new *rows, const size_t *order, size_t n,
                            lode_error *err);
lode_status lode__names_move(lode__tx *tx, lode_error *err); /* all of `fresh` to `name` */
/* Calls fn for each of the ids (sorted; repeated ones count once) that has a living record. */
typedef lode_status lode__name_fn(void *ctx, const lode__name *name, lode_error *err);
lode_status lode__names_each(lode__tx *tx, const lode__coll *coll, const lode_str *ids, size_t n, lode__name_fn *fn, void *ctx,
                             lode_error *err);
lode_status lode__name_set_len(lode__tx *tx, int64_t cid, lode_str id, int64_t len, lode_error *err);
/* Of that record, if the name is still its own. */
lode_status lode__name_remove(lode__tx *tx, int64_t cid, lode_str id, int64_t rid, lode_error *err);
lode_status lode__names_erase_some(lode__tx *tx, int64_t cid, bool *more, lode_error *err); /* of a dropped collection */
lode_status lode__names_save(lode__tx *tx, lode_error *err); /* before a commit */

/* graves.c */
#define LODE__GRAVE_MOST 256 /* records in one row */
typedef struct lode__grave {
  int64_t gid;   /* of the last */
  int64_t vid;   /* a vector; 0: records */
  size_t n;
  int64_t rids[LODE__GRAVE_MOST]; /* rising */
} lode__grave;
lode_status lode__grave_dig_vector(lode__tx *tx, lode__coll *coll, int64_t vid, lode_error *err);
lode_status lode__grave_dig_records(lode__tx *tx, lode__coll *coll, const int64_t *rids, size_t n, lode_error *err); /* rising */
/* Keeps the records from `first` on; none left: the row goes. */
lode_status lode__grave_shorten(lode__tx *tx, const lode__grave *tombstone, size_t first, lode_error *err);
bool lode__grave_decode(int64_t gid, lode_str rids, int64_t vid, lode__grave *tombstone); /* false: not possible */
/* The row that a statement with columns gid, rids, vid, crc stands on; proven. */
lode_status lode__grave_read(lode__tx *tx, sqlite3_stmt *s, lode__grave *tombstone, lode_error *err);

/* sizes.c: about how long documents are. Blocks are read and written as rids come; flush at the end of a writer's turn. */
unsigned lode__size_code(uint64_t bytes);       /* 1 to 255 */
uint64_t lode__size_least(unsigned code);       /* no document with this code is shorter; 0: not known */
lode_status lode__sizes_put(lode__tx *tx, lode__sizes *sizes, int64_t rid, uint64_t bytes, lode_error *err);
lode_status lode__sizes_flush(lode__tx *tx, lode__sizes *sizes, lode_error *err);
lode_status lode__sizes_erase(lode__tx *tx, int64_t cid, lode_error *err); /* of a dropped collection */

/* work.c */
extern uint64_t lode__load_records; /* a bulk load indexes the metadata of so many at once; tests make it small */

/* write.c */
lode_status lode__text_row_add(lode__tx *tx, lode__sizes *sizes, int64_t rid, lode_str text, lode_error *err);
lode_status lode__text_row_remove(lode__tx *tx, int64_t rid, lode_str text, lode_error *err);

#define LODE__TERM_BYTES 64 /* of a string in the metadata index; the rest is cut off */

/* terms.c: called by the writers for records below the indexes' cursors */
lode_status lode__terms_add(lode__tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
lode_status lode__terms_remove(lode__tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
lode_status lode__counters_change(lode__tx *tx, int64_t cid, lode_str metadata, int delta, lode_error *err);
lode_status lode__key_id(lode__tx *tx, int64_t cid, lode_str name, bool create, bool counted, int64_t *kid, lode_error *err);

/* The same for many records, written in the order of the index. */
typedef struct lode__term_item {
  int64_t kid, rid;
  meta_value value;
} lode__term_item;
typedef struct lode__term_batch {
  lode__tx *tx;
  int64_t cid, rid;
  bool creates; /* keys that are new */
  lode__term_item *items;
  size_t n, cap;
  mem_arena arena;
} lode__term_batch;
lode_status lode__term_batch_add(lode__term_batch *b, lode__tx *tx, int64_t cid, int64_t rid, lode_str metadata,
                                 bool creates, lode_error *err);
/* which: LODE__STMT_TERM_PUT or LODE__STMT_TERM_DELETE */
lode_status lode__term_batch_write(lode__term_batch *b, int which, lode_error *err);
void lode__term_batch_release(lode__term_batch *b);

/* truth.c: the pages of the truth file as a transaction sees them, each proven by its checksum */
typedef struct lode__truth {
  sqlite3_file *file;
  uint32_t page_bytes;
  uint32_t pages;      /* of the database */
  uint32_t file_pages; /* whole ones in the file */
  uint32_t change;     /* differs after every commit */
  bool has_map;        /* as in pages.h */
  int rc;              /* how a read for pages.h has failed; SQLITE_IOERR_DATA: only by damage */
} lode__truth;
/* SQLite's code; SQLITE_IOERR_SHORT_READ: the file is empty. page_bytes is 0 when page 1 declares an impossible size. */
int lode__truth_open(lode__conn *conn, lode__truth *truth);
lode_status lode__truth_look(lode__tx *tx, lode__truth *truth, lode_error *err);
/* LODE_CORRUPT: the page is damaged. Free pages may read as zeros. */
lode_status lode__truth_read(lode__tx *tx, const lode__truth *truth, uint32_t number, unsigned char *page, lode_error *err);
/* Sets up pages.h to read from it, until the transaction ends; page buffers are the caller's. */
void lode__truth_pages(lode__truth *truth, lode__pages *pages);
/* backup.c: the whole truth at one moment, synced, in a new file. */
lode_status lode__db_copy(lode__db *db, const char *file, lode_progress progress, lode_error *err);

/* salvage_find.c: decodes a record's row as read by pages.h, and proves it; its strings lie in the payload */
struct lode__row;
bool lode__row_record(const struct lode__row *row, const strbuf *payload, lode__rec *rec);

/* verify.c: SQLite's own check of its structures; calls line() for each fault and returns SQLite's result */
typedef void lode__integrity_fn(void *ctx, const char *line);
int lode__integrity_each(sqlite3 *sql, lode__integrity_fn *line, void *ctx);

/* text.c: FTS5's tokenizer and the counting function, for a new connection. Returns SQLite's code; SQLITE_NOTFOUND: there
 * is no FTS5, for which the second makes the error. */
int lode__text_register(sqlite3 *sql);
lode_status lode__text_missing(lode_error *err);

#endif
