/* SPDX-License-Identifier: Apache-2.0 */
/* tx.c - the connection pool and transactions.
 *
 * Threads: store_db.mutex guards the pool and the counters. A connection is used by one transaction at a time.
 * Writers of one handle queue, and their turns come in the order in which they asked; writers of several processes
 * wait for SQLite's lock. Nobody waits for a file lock, or does any I/O, with the mutex held; only a forked child,
 * which has one thread, drops what is its parent's.
 *
 * A transaction begins by checking whether the database file is still the one that the connection has open: if it was
 * removed, the status is LODE_GONE; if it was replaced, the new one is opened. A forked child does not touch its
 * parent's connections and opens its own.
 *
 * Invariants
 *   1. A connection serves one transaction at a time, and is idle with no statement running and no batch.
 *   2. At most one thread of a handle has its turn to write, from before BEGIN until its transaction has ended.
 *   3. After a failed statement a transaction cannot be committed; the end of the savepoint in which it failed may
 *      heal it.
 *   4. There is one savepoint at a time, in writes only, and it ends before the commit.
 *   5. The cursor of a write only grows, and is saved in the transaction that used its numbers: a number of a row that
 *      was committed is never given to another.
 */
#include "store/record_ids.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define TX_MAX_IDLE_CONNS 4

#ifdef LODE_CHECKED
const store_tx_hooks *_Atomic store_tx_test_hooks;
#define TX_TEST_DECIDES(what)                                                                                          \
  do {                                                                                                                 \
    const store_tx_hooks *hooks_ = store_tx_test_hooks;                                                                \
    if (hooks_ && hooks_->what) return hooks_->what();                                                                 \
  } while (0)
static void tx_run_gap_hook(void) {
  const store_tx_hooks *hooks = store_tx_test_hooks;
  if (hooks && hooks->gap) hooks->gap();
}
#else
#define TX_TEST_DECIDES(what) ((void)0)
static void tx_run_gap_hook(void) {}
#endif

/* ---- The pool ---- */

static void tx_close_all(store_conn *conns) {
  for (store_conn *c = conns, *next; c; c = next) {
    next = c->next;
    store_conn_close(c);
  }
}

/* Called with the mutex held. In a forked child, drops everything that belongs to the parent. */
static void tx_after_fork(store_db *db) {
  if (db->lock_generation == vfs_generation()) return;
  tx_close_all(db->idle); /* no other thread waits: the child has one */
  db->idle = NULL;
  db->n_idle = 0;
  db->writer_active = db->writer_waits = false;
  db->turns = NULL;
  db->waiting = 0;
  memset(db->leased, 0, sizeof db->leased);
  if (db->lock_fd >= 0) (void)os_api->close(db->lock_fd);
  db->lock_fd = store_db_open_lock_file(db);
  db->lock_generation = vfs_generation();
}

/* An idle connection to the present database file, or NULL. A writer does not use one that was opened while the file
 * had several hard links: a new connection checks that again. */
static lode_status tx_find_idle(store_db *db, store_tx_kind kind, store_conn **out, lode_error *err) {
  struct stat sb;
  store_conn *useless = NULL;
  int e = OS_RETRY(os_api->lstat_at(AT_FDCWD, db->path, &sb)) == 0 ? 0 : errno;
  pthread_mutex_lock(&db->mutex);
  tx_after_fork(db);
  if (e) db->truth_ino = 0;
  while (db->idle && !*out) {
    store_conn *c = db->idle;
    db->idle = c->next;
    db->n_idle--;
    if (!e && c->dev == sb.st_dev && c->ino == sb.st_ino && !(kind == STORE_TX_WRITE && c->linked)) {
      *out = c;
    } else {
      c->next = useless;
      useless = c;
    }
  }
  pthread_mutex_unlock(&db->mutex);
  tx_close_all(useless);
  if (e == ENOENT || e == ENOTDIR)
    return err_set(err, LODE_GONE, "%s was removed while open; open the store again", db->path);
  return e ? err_errno(err, e, db->path) : LODE_OK;
}

/* Returns the epoch of the connection's database file; a file other than the last one starts a new epoch. */
static unsigned tx_note_epoch(store_db *db, const store_conn *conn) {
  pthread_mutex_lock(&db->mutex);
  if (conn->dev != db->truth_dev || conn->ino != db->truth_ino) {
    db->epoch++;
    db->newest_number = 0;
  }
  db->truth_dev = conn->dev;
  db->truth_ino = conn->ino;
  unsigned epoch = db->epoch;
  pthread_mutex_unlock(&db->mutex);
  return epoch;
}

/* A commit that was seen can only be followed by later ones, unless the disk has lost it or somebody put an older copy
 * into the file: then what was cached is of another history, although its numbers may be the same. */
static void tx_note_commit(store_tx *tx) {
  store_db *db = tx->db;
  vfs_file_state vs = {0};
  (void)sqlite3_file_control(tx->conn->sql, "main", VFS_FCNTL_STATE, &vs);
  pthread_mutex_lock(&db->mutex);
  uint32_t newest = db->newest_number;
  bool back = vs.commit_number < newest /* 0: format 1 */
              || (newest && vs.commit_number == newest && vs.commit_id != db->newest_commit_id);
  if (back) db->epoch++;
  tx->epoch = db->epoch;
  db->newest_number = vs.commit_number;
  db->newest_commit_id = vs.commit_id;
  pthread_mutex_unlock(&db->mutex);
  if (tx->conn->epoch != tx->epoch) {
    tx->conn->epoch = tx->epoch;
    tx->conn->dead_cid = 0;
  }
  if (back)
    store_db_log(db,
                 "%s went back from commit %u to an earlier one, or another: the disk lost a write, or an older copy "
                 "was put there",
                 db->path, newest);
}

/* After a commit, when the lock is gone: others may have seen later commits by now, or another file. */
static void tx_note_own_commit(store_tx *tx) {
  store_db *db = tx->db;
  vfs_file_state vs = {0};
  (void)sqlite3_file_control(tx->conn->sql, "main", VFS_FCNTL_STATE, &vs);
  pthread_mutex_lock(&db->mutex);
  bool same_file = tx->conn->dev == db->truth_dev && tx->conn->ino == db->truth_ino;
  if (same_file && vs.commit_number > db->newest_number) {
    db->newest_number = vs.commit_number;
    db->newest_commit_id = vs.commit_id;
  }
  pthread_mutex_unlock(&db->mutex);
}

static lode_status tx_take_conn(store_db *db, store_tx_kind kind, store_conn **out, unsigned *epoch, lode_error *err) {
  *out = NULL;
  TRY(tx_find_idle(db, kind, out, err));
  /* Opening may have to wait for a lock, so it is done without the mutex. */
  bool opened = !*out;
  if (opened) TRY(store_conn_open(db, db->path, false, out, err));
  *epoch = tx_note_epoch(db, *out);
  if (opened) (*out)->epoch = *epoch;
  return LODE_OK;
}

static void tx_give_conn(store_conn *conn, bool healthy) {
  store_db *db = conn->db;
  healthy = healthy && store_conn_is_idle(conn) && INVARIANT(conn->batch.n == 0);
  pthread_mutex_lock(&db->mutex);
  if (healthy && db->n_idle < TX_MAX_IDLE_CONNS && conn->generation == vfs_generation()) {
    conn->next = db->idle;
    db->idle = conn;
    db->n_idle++;
    conn = NULL;
  }
  pthread_mutex_unlock(&db->mutex);
  store_conn_close(conn);
}

/* Does anybody wait for a lock of the file? */
static bool lock_is_wanted(store_db *db) {
  TX_TEST_DECIDES(lock_is_wanted);
  pthread_mutex_lock(&db->mutex);
  bool yes = db->waiting > 0;
  int fd = db->lock_fd;
  pthread_mutex_unlock(&db->mutex);
  return yes || (fd >= 0 && os_api->lock_held(fd, F_WRLCK, STORE_LOCK_WAIT, 1) == 1);
}

bool store_db_has_waiters(store_db *db) {
  pthread_mutex_lock(&db->mutex);
  bool yes = db->turns != NULL;
  pthread_mutex_unlock(&db->mutex);
  return yes || lock_is_wanted(db);
}

/* ---- Table state ---- */

lode_status store_state_find(store_tx *tx, int key, int64_t *value, bool *found, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  *found = false;
  TRY(store_stmt_key(tx, STORE_STMT_STATE_GET, key, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  *value = row ? store_column_int(s, 0) : 0;
  *found = row && sqlite3_column_type(s, 0) == SQLITE_INTEGER;
  store_stmt_reset(s);
  return LODE_OK;
}

lode_status store_state_get(store_tx *tx, int key, int64_t *value, lode_error *err) {
  bool found;
  TRY(store_state_find(tx, key, value, &found, err));
  return found ? LODE_OK : err_set(err, LODE_CORRUPT, "row %d of table state is missing in %s", key, tx->db->path);
}

lode_status store_state_put(store_tx *tx, int key, int64_t value, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, STORE_STMT_STATE_PUT, key, &s, err));
  store_bind_int(tx, s, 2, value);
  return store_stmt_run(tx, s, err);
}

/* ---- Transactions ---- */

/* Why a thread has waited in vain since turn number `seen`. */
static lode_status tx_err_no_turn(store_db *db, uint64_t seen, lode_error *err) {
  if (db->writer_waits) return store_err_locked(db, err);
  if (db->turn == seen)
    return err_set(err, LODE_BUSY,
                   "this process has had a write transaction open for more than %u ms: commit it or roll it back",
                   db->opt.busy_ms);
  return err_set(
      err, LODE_BUSY,
      "other threads of this process that asked first have been writing for %u ms: write more records at a time, "
      "or raise busy_ms to wait longer",
      db->opt.busy_ms);
}

static void tx_take_turn(store_db *db) {
  db->writer_active = db->writer_waits = true;
  db->turn++;
}

/* Called with the mutex held. */
static lode_status tx_queue_for_turn(store_db *db, store_turn *me, lode_error *err) {
  struct timespec until = os_deadline(db->opt.busy_ms);
  uint64_t seen = db->turn;
  lode_status st = LODE_OK;
  store_turn **at = &db->turns;
  while (*at) at = &(*at)->next;
  *at = me;
  while ((db->writer_active || db->turns != me) && st == LODE_OK)
    if (os_cond_wait_until(&me->come, &db->mutex, &until) == ETIMEDOUT && (db->writer_active || db->turns != me))
      st = tx_err_no_turn(db, seen, err);
  for (at = &db->turns; *at != me;) at = &(*at)->next;
  *at = me->next;
  return st;
}

static lode_status tx_wait_for_turn(store_db *db, lode_error *err) {
  store_turn me = {.next = NULL};
  lode_status st = LODE_OK;
  if (os_cond_init(&me.come) != 0) return err_nomem(err);
  pthread_mutex_lock(&db->mutex);
  tx_after_fork(db);
  if (db->writer_active || db->turns) st = tx_queue_for_turn(db, &me, err);
  if (st == LODE_OK) tx_take_turn(db);
  pthread_mutex_unlock(&db->mutex);
  pthread_cond_destroy(&me.come);
  return st;
}

static void tx_end_turn(store_db *db) {
  pthread_mutex_lock(&db->mutex);
  db->writer_active = db->writer_waits = false;
  if (db->turns) pthread_cond_signal(&db->turns->come);
  pthread_mutex_unlock(&db->mutex);
}

/* Writes who we are, for the LODE_BUSY message of others. Only informative, so it is never synced. */
static void tx_sign_lock_file(store_db *db) {
  char now[64] = "", was[64];
  char comm[20] = "";
  size_t got = 0;
  if (db->lock_fd < 0) return;
  os_program_name(comm, sizeof comm);
  snprintf(now, sizeof now, "process %ld (%s)\n", (long)getpid(), comm);
  if (os_read_full(db->lock_fd, was, sizeof was, 64, &got, NULL) == LODE_OK && got == sizeof was &&
      memcmp(was, now, sizeof now) == 0)
    return;
  (void)!os_write_full(db->lock_fd, now, sizeof now, 64, NULL); /* only for messages of others */
}

static void tx_begin_writing(store_db *db) {
  pthread_mutex_lock(&db->mutex);
  db->writer_waits = false;
  pthread_mutex_unlock(&db->mutex);
  tx_sign_lock_file(db);
}

static lode_status tx_read_cursor(store_tx *tx, int64_t *cursor, lode_error *err) {
  bool found;
  TRY(store_state_find(tx, STORE_STATE_CURSOR, cursor, &found, err));
  if (found) return LODE_OK;
  TRY(store_state_find(tx, STORE_STATE_CURSOR_FORMAT_1, cursor, &tx->format_1, err));
  if (!tx->format_1) return store_state_get(tx, STORE_STATE_CURSOR, cursor, err); /* says that it is missing */
  return tx->kind == STORE_TX_WRITE ? store_tx_raise_format(tx, err) : LODE_OK;
}

static lode_status tx_begin_on_conn(store_tx *tx, lode_error *err) {
  int64_t cursor;
  TRY(store_run(tx, tx->kind == STORE_TX_WRITE ? STORE_STMT_BEGIN_WRITE : STORE_STMT_BEGIN_READ, err));
  tx->open = true;
  TRY(store_schema_check(tx->conn, err));
  TRY(tx_read_cursor(tx, &cursor, err));
  tx_note_commit(tx); /* it holds a lock by now */
  if (cursor < 0 || cursor > STORE_KEY_SEQ_MAX)
    return err_set(err, LODE_CORRUPT, "the cursor in %s is out of range", tx->db->path);
  tx->cursor = tx->cursor_saved = (uint64_t)cursor;
  return LODE_OK;
}

static lode_status tx_begin_once(store_tx *tx, lode_error *err) {
  tx->failed = tx->open = tx->format_1 = false;
  TRY(tx_take_conn(tx->db, tx->kind, &tx->conn, &tx->epoch, err));
  lode_status st = tx_begin_on_conn(tx, err);
  tx->began_ns = os_api->now_ns(); /* when it got its lock, for which it may have waited */
  store_conn_stop_waiting(tx->conn);
  if (st == LODE_OK) return st;
  tx_give_conn(tx->conn, false);
  tx->conn = NULL;
  return st;
}

lode_status store_tx_begin(store_db *db, store_tx_kind kind, store_tx **out, lode_error *err) {
  *out = NULL;
  if (atomic_load_explicit(&db->broken, memory_order_relaxed))
    return err_internal(err, "this handle has met a contradiction before");
  if (kind == STORE_TX_WRITE && db->opt.read_only)
    return err_set(err, LODE_READONLY, "%s is open for reading only", db->folder);
  if (kind == STORE_TX_READ) tx_run_gap_hook();
  store_tx *tx = mem_calloc(1, sizeof *tx);
  if (!tx) return err_nomem(err);
  tx->db = db;
  tx->kind = kind;
  lode_status st = kind == STORE_TX_WRITE ? tx_wait_for_turn(db, err) : LODE_OK;
  if (st != LODE_OK) {
    mem_free(tx);
    return st;
  }
  st = tx_begin_once(tx, err);
  if (st == LODE_OK) {
    if (kind == STORE_TX_WRITE) tx_begin_writing(db);
    *out = tx;
    return st;
  }
  if (kind == STORE_TX_WRITE) tx_end_turn(db);
  mem_free(tx);
  return st;
}

/* Lets waiting readers and writers of other connections in before our next write, for at most 2 ms. */
static void tx_yield(store_db *db) {
  for (int i = 0; i < 20 && lock_is_wanted(db); i++) os_api->sleep_us(100);
}

static void tx_free(store_tx *tx, bool healthy) {
  store_db *db = tx->db;
  bool writer = tx->kind == STORE_TX_WRITE;
  tx_give_conn(tx->conn, healthy);
  if (writer) {
    tx_yield(db);
    tx_end_turn(db);
  }
  mem_free(tx->keys);
  mem_arena_release(&tx->keys_arena);
  json_release(&tx->json);
  mem_free(tx);
}

static void tx_reset_statements(store_conn *conn) {
  for (int i = 0; i < STORE_STMT_COUNT; i++) store_stmt_reset(conn->stmt[i]);
}

lode_status store_tx_commit(store_tx *tx, lode_error *err) {
  lode_status st = LODE_OK;
  if (tx->kind == STORE_TX_READ) {
    store_tx_rollback(tx);
    return LODE_OK;
  }
  if (tx->failed) {
    lode_status why = tx->why;
    store_tx_rollback(tx);
    return err_set(err, why, "the transaction failed before its commit (%s), and was rolled back",
                   lode_status_text(why));
  }
  if (tx->conn->generation != vfs_generation()) {
    store_tx_rollback(tx);
    return err_set(err, LODE_GONE, "the transaction belongs to the process that forked this one");
  }
  if (!INVARIANT(tx->open && !tx->in_savepoint && tx->cursor >= tx->cursor_saved)) {
    store_tx_rollback(tx);
    return err_internal(err, "commit of a transaction that is not ready for it");
  }
  tx_reset_statements(tx->conn);
  if (tx->cursor != tx->cursor_saved) {
    TRY_GOTO(store_state_put(tx, STORE_STATE_CURSOR, (int64_t)tx->cursor, err));
    TRY_GOTO(store_state_put(tx, STORE_STATE_COMMITTED, (int64_t)os_wall_ms(), err));
  }
  TRY_GOTO(store_ids_save(tx, err));
  TRY_GOTO(store_run(tx, STORE_STMT_COMMIT, err));
  tx_note_own_commit(tx);
  store_conn_stop_waiting(tx->conn);
done:
  if (st != LODE_OK) {
    tx->failed = true;
    store_tx_rollback(tx);
  } else {
    tx_free(tx, true);
  }
  return st;
}

void store_tx_rollback(store_tx *tx) {
  if (!tx) return;
  bool healthy = !tx->failed;
  if (tx->conn->generation == vfs_generation()) {
    tx_reset_statements(tx->conn);
    if (!sqlite3_get_autocommit(tx->conn->sql)) healthy &= store_run(tx, STORE_STMT_ROLLBACK, NULL) == LODE_OK;
    store_conn_stop_waiting(tx->conn);
    if (tx->kind == STORE_TX_WRITE) tx->conn->dead_cid = 0; /* its gids will be used again */
  } else {
    healthy = false;
  }
  tx_free(tx, healthy);
}

/* Never true on the first call: every transaction makes some progress, however long it waited for the processor. */
bool store_tx_is_old(store_tx *tx) {
  if (tx->kind != STORE_TX_READ || !tx->age_checked) {
    tx->age_checked = true;
    return false;
  }
  TX_TEST_DECIDES(is_old);
  return os_api->now_ns() - tx->began_ns > UINT64_C(50000000);
}

bool store_tx_must_yield(const store_tx *tx) {
  if (tx->kind != STORE_TX_READ) return false;
  TX_TEST_DECIDES(must_yield);
  return os_api->now_ns() - tx->began_ns > (uint64_t)tx->db->opt.busy_ms * 500000 && store_db_has_waiters(tx->db);
}

uint64_t store_tx_cursor(store_tx *tx) { return tx->cursor; }
unsigned store_tx_epoch(const store_tx *tx) { return tx->epoch; }

lode_status store_tx_next_seq(store_tx *tx, uint64_t *seq, lode_error *err) {
  ENSURE(tx->open && tx->kind == STORE_TX_WRITE, err);
  if (tx->cursor >= (uint64_t)STORE_KEY_SEQ_MAX)
    return err_set(err, LODE_LIMIT,
                   "the store has used up its 2^40 change numbers: export it and import it into a new one");
  *seq = ++tx->cursor;
  return LODE_OK;
}

lode_status store_tx_savepoint(store_tx *tx, lode_error *err) {
  ENSURE(tx->open && tx->kind == STORE_TX_WRITE && !tx->in_savepoint, err);
  if (tx->failed)
    return err_set(err, tx->why, "the transaction has failed before (%s): roll it back", lode_status_text(tx->why));
  TRY(store_run(tx, STORE_STMT_SAVEPOINT, err));
  tx->in_savepoint = true;
  tx->fresh_before = tx->fresh_known ? tx->fresh : -1;
  return LODE_OK;
}

void store_tx_savepoint_end(store_tx *tx, bool keep) {
  lode_status st = LODE_OK;
  if (!tx->in_savepoint) return;
  tx->in_savepoint = false;
  /* An error may have ended the whole transaction (disk full, damage): then it cannot be continued. */
  bool lost = sqlite3_get_autocommit(tx->conn->sql);
  if (!lost && !keep) {
    tx->keys_cid = tx->dead_cid = tx->conn->dead_cid = 0;
    tx->fresh_known = tx->fresh_before >= 0;
    tx->fresh = tx->fresh_before;
    st = store_run(tx, STORE_STMT_SAVEPOINT_UNDO, NULL);
    (void)sqlite3_file_control(tx->conn->sql, "main", VFS_FCNTL_UNDONE, NULL);
  }
  if (!lost && st == LODE_OK) st = store_run(tx, STORE_STMT_SAVEPOINT_END, NULL);
  tx->failed = lost || st != LODE_OK;
  if (st != LODE_OK) tx->why = st;
  if (tx->failed && tx->why == LODE_OK) tx->why = LODE_INTERNAL; /* commit must report an error */
}

/* ---- Pages ---- */

lode_status store_tx_pages(store_tx *tx, vfs_pages *pages, lode_error *err) {
  int rc = vfs_pages_attach(pages, tx->conn->sql);
  return rc == SQLITE_OK ? LODE_OK : store_err_sql(tx->conn, rc, err);
}

lode_status store_tx_read_page(store_tx *tx, vfs_pages *pages, uint32_t number, unsigned char *page, lode_error *err) {
  int rc = vfs_pages_read_rc(pages, number, page);
  if (rc == SQLITE_IOERR_SHORT_READ)
    return err_set(err, LODE_CORRUPT, "page %u of %s is missing", number, tx->db->path);
  return rc == SQLITE_OK ? LODE_OK : store_err_sql(tx->conn, rc, err);
}
