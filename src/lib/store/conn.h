/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - a store's handle and its connections to the database file. Not for other rooms, except repair.
 *
 * Locks in lode.lock (all open-file-description locks, one descriptor per store_db):
 *   byte CREATE   exclusive: held while the store is being created
 *   byte WAIT     shared: held while waiting for a lock of the database file; a writer that has just committed yields
 *   byte WORK     exclusive: held during a maintenance step; two at once would only obstruct each other
 *   byte BUILD    exclusive: held while building, replacing or quarantining segments of the vector index
 * The file begins with the mark of a complete store; at offset 64 it names the last writer (for messages only).
 */
#ifndef LODE_STORE_CONN_H
#define LODE_STORE_CONN_H

#include "store/batch_table.h"
#include "store/statements.h"
#include "vfs/vfs.h"

#include <pthread.h>
#include <stdatomic.h>

#define STORE_LOCK_CREATE (1 << 20)
#define STORE_LOCK_WAIT ((1 << 20) + 1)
#define STORE_LOCK_WORK ((1 << 20) + 2)
#define STORE_LOCK_BUILD ((1 << 20) + 3)

/* Work that one thread at a time does, among all processes. Released when its holder dies. */
typedef enum store_lease { STORE_LEASE_WORK, STORE_LEASE_BUILD, STORE_LEASES } store_lease;

struct store_conn {
  store_db *db;
  store_conn *next;
  sqlite3 *sql;
  sqlite3_stmt *stmt[STORE_STMT_COUNT];
  dev_t dev;
  ino_t ino;
  unsigned generation;
  unsigned epoch;         /* of the dead keys below */
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

/* A thread that waits for its turn to write. */
typedef struct store_turn store_turn;
struct store_turn {
  pthread_cond_t come;
  store_turn *next;
};

struct store_db {
  char *folder, *path, *lock_path;
  lode_open_options opt;
  atomic_bool broken;    /* an invariant did not hold: no transaction begins any more */
  pthread_mutex_t mutex; /* guards everything below; nobody waits for a file lock with it held */
  bool writer_active;    /* a thread of this handle has its turn to write */
  bool writer_waits;     /* that thread still waits for SQLite's lock */
  uint64_t turn;         /* counts the turns */
  store_turn *turns;     /* threads of this handle that wait for theirs, the first one first */
  store_conn *idle;
  size_t n_idle;
  int lock_fd; /* -1: none (read-only medium) */
  unsigned lock_generation;
  bool leased[STORE_LEASES]; /* a thread of this handle has that lease */
  unsigned step_rows;        /* limit of records per maintenance step after the disk was full; 0: no limit */
  unsigned waiting;          /* connections of this handle that wait for a lock */
  dev_t truth_dev;           /* identity of the database file that was last used */
  ino_t truth_ino;
  unsigned epoch;            /* how often that identity has changed, or its commits went back */
  uint32_t newest_number;    /* of the newest commit that was seen; 0: none */
  uint64_t newest_commit_id; /* of that commit */
  uint64_t damaged_pages;
};

/* ---- Opening (open.c) ---- */

LODE_MUST char *store_path_join(const char *folder, const char *name); /* freed by the caller; NULL: out of memory */
LODE_MUST int store_db_open_lock_file(store_db *db);
/* Opens a database file that nobody else uses, read-only and without lode.lock. */
LODE_MUST lode_status store_db_open_file(const char *file, store_db **db, lode_error *err);
LODE_MUST lode_status store_make_folders(const char *folder, lode_error *err); /* mode 0700; missing parents get 0777 */
/* Makes the names of a folder and of those above it durable: whoever made them may have died before doing it. */
LODE_MUST lode_status store_sync_folders(const char *folder, lode_error *err);

/* ---- Connections (conn.c) ---- */

LODE_MUST lode_status store_conn_open(store_db *db, const char *path, bool create, store_conn **conn, lode_error *err);
/* Does it hold no lock, as far as it knows? Otherwise it may not be kept for later. */
LODE_MUST bool store_conn_is_idle(store_conn *conn);
void store_conn_close(store_conn *conn); /* NULL is allowed */
void store_conn_stop_waiting(store_conn *conn);
/* Disables whatever a hostile schema could use: triggers, views, extensions, and SQLite features that Lode does not
 * need. */
void store_conn_harden(sqlite3 *sql);
/* Does anybody wait for a lock or for a turn to write? Long work yields then. (tx.c) */
bool store_db_has_waiters(store_db *db);

/* LODE_BUSY only if another thread or process has it: after any other error, trying again would not help. */
LODE_MUST lode_status store_lease_take(store_db *db, store_lease lease, lode_error *err);
void store_lease_end(store_db *db, store_lease lease);

/* ---- Errors (conn.c) ---- */

/* Maps an SQLite result to a status, with advice in the text. */
LODE_MUST lode_status store_err_sql(store_conn *conn, int rc, lode_error *err);
/* LODE_BUSY: others held the lock for too long; the text names the last writer. */
LODE_MUST lode_status store_err_locked(store_db *db, lode_error *err);

#endif
