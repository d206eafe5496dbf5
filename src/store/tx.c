/* tx.c - the pool of connections, statements and transactions.
 *
 * Threads: lode__db.mutex guards the pool and the counters. A connection is used by one transaction at a time. Writers of
 * one process queue on writer_free, writers of several processes on SQLite's lock. Nobody waits with the mutex held.
 *
 * A transaction begins by looking whether the truth file is still the one that the connection has open: a removed store
 * answers LODE_GONE, a replaced one is opened anew. A forked child leaves its parent's connections alone and opens its own.
 */
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define MAX_IDLE 4

#ifdef LODE_CHECKED
const lode__tx_gaps *_Atomic lode__tx_gaps_hook;
#define DECIDED_BY_TEST(what)                                    \
  do {                                                           \
    const lode__tx_gaps *gaps_ = lode__tx_gaps_hook;             \
    if (gaps_ && gaps_->what) return gaps_->what();              \
  } while (0)
static void meet_gap(void) {
  const lode__tx_gaps *gaps = lode__tx_gaps_hook;
  if (gaps && gaps->gap) gaps->gap();
}
#else
#define DECIDED_BY_TEST(what) ((void)0)
static void meet_gap(void) {}
#endif

/* ---- The pool ---- */

static void forget_connections(lode__db *db) {
  while (db->idle) {
    lode__conn *c = db->idle;
    db->idle = c->next;
    lode__conn_close(c);
  }
  db->n_idle = 0;
}

/* With the mutex held. In a forked child everything of the parent's is left behind. */
static void after_fork(lode__db *db) {
  if (db->lock_generation == lode__vfs_generation()) return;
  forget_connections(db);
  db->writer_active = db->writer_waits = false;
  db->waiting = db->queued = 0;
  db->working = db->building = false;
  if (db->lock_fd >= 0) (void)os_api->close(db->lock_fd);
  db->lock_fd = lode__db_open_lock_file(db);
  db->lock_generation = lode__vfs_generation();
}

/* An idle connection to the file that is there now, or NULL. A writer tries again with a file that had several names. */
static lode_status find_idle(lode__db *db, lode__tx_kind kind, lode__conn **out, lode_error *err) {
  struct stat sb;
  lode_status st = LODE_OK;
  pthread_mutex_lock(&db->mutex);
  after_fork(db);
  if (OS_RETRY(os_api->lstat_at(AT_FDCWD, db->path, &sb)) != 0) {
    int e = errno;
    forget_connections(db);
    db->truth_ino = 0;
    st = e == ENOENT || e == ENOTDIR
             ? err_set(err, LODE_GONE, "%s was removed while open; open the store again", db->path)
             : err_errno(err, e, db->path);
  }
  while (st == LODE_OK && db->idle && !*out) {
    lode__conn *c = db->idle;
    db->idle = c->next;
    db->n_idle--;
    if (c->dev == sb.st_dev && c->ino == sb.st_ino && !(kind == LODE__WRITE && c->linked))
      *out = c;
    else
      lode__conn_close(c);
  }
  pthread_mutex_unlock(&db->mutex);
  return st;
}

/* Which truth file a connection leads to. */
static unsigned note_epoch(lode__db *db, const lode__conn *conn) {
  pthread_mutex_lock(&db->mutex);
  if (conn->dev != db->truth_dev || conn->ino != db->truth_ino) db->epoch++;
  db->truth_dev = conn->dev;
  db->truth_ino = conn->ino;
  unsigned epoch = db->epoch;
  pthread_mutex_unlock(&db->mutex);
  return epoch;
}

static lode_status take_conn(lode__db *db, lode__tx_kind kind, lode__conn **out, unsigned *epoch, lode_error *err) {
  *out = NULL;
  TRY(find_idle(db, kind, out, err));
  /* Opening may have to wait for a lock, so it is done without the mutex. */
  if (!*out) TRY(lode__conn_open(db, db->path, false, out, err));
  *epoch = note_epoch(db, *out);
  return LODE_OK;
}

static void give_conn(lode__conn *conn, bool healthy) {
  lode__db *db = conn->db;
  pthread_mutex_lock(&db->mutex);
  if (healthy && db->n_idle < MAX_IDLE && conn->generation == lode__vfs_generation()) {
    conn->next = db->idle;
    db->idle = conn;
    db->n_idle++;
    conn = NULL;
  }
  pthread_mutex_unlock(&db->mutex);
  lode__conn_close(conn);
}

/* Does anybody wait for a lock of the file? */
static bool is_wanted(lode__db *db) {
  DECIDED_BY_TEST(is_wanted);
  pthread_mutex_lock(&db->mutex);
  bool yes = db->waiting > 0;
  int fd = db->lock_fd;
  pthread_mutex_unlock(&db->mutex);
  return yes || (fd >= 0 && os_api->lock_held(fd, F_WRLCK, LODE__LOCK_WAIT, 1) == 1);
}

bool lode__db_others_wait(lode__db *db) {
  pthread_mutex_lock(&db->mutex);
  bool yes = db->queued > 0;
  pthread_mutex_unlock(&db->mutex);
  return yes || is_wanted(db);
}

/* ---- Statements ---- */

static const char *const statement_sql[LODE__STMT_COUNT] = {
#define STATEMENT_TEXT(name, sql) sql,
    LODE__STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

lode_status lode__stmt(lode__tx *tx, int which, sqlite3_stmt **stmt, lode_error *err) {
  *stmt = NULL;
  lode__conn *conn = tx->conn;
  /* An error can make SQLite roll back by itself; what ran now would be committed alone. */
  if (tx->open && sqlite3_get_autocommit(conn->sql))
    return err_set(err, tx->why ? tx->why : LODE_INTERNAL, "the transaction was rolled back because of an error: %s",
                      lode_status_text(tx->why));
  if (!conn->stmt[which]) {
    int rc = sqlite3_prepare_v3(conn->sql, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT, &conn->stmt[which], NULL);
    if (rc != SQLITE_OK) return lode__sql_fail(conn, rc, err);
  }
  sqlite3_reset(conn->stmt[which]);
  *stmt = conn->stmt[which];
  return LODE_OK;
}

lode_status lode__step(lode__tx *tx, sqlite3_stmt *stmt, bool *row, lode_error *err) {
  int rc = sqlite3_step(stmt);
  *row = rc == SQLITE_ROW;
  lode__conn_stop_waiting(tx->conn); /* each wait has its own time-out */
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) return LODE_OK;
  lode_status st = lode__sql_fail(tx->conn, rc, err);
  tx->failed = true;
  tx->why = st;
  sqlite3_reset(stmt);
  return st;
}

lode_status lode__run(lode__tx *tx, sqlite3_stmt *stmt, lode_error *err) {
  bool row;
  lode_status st;
  do {
    st = lode__step(tx, stmt, &row, err);
  } while (st == LODE_OK && row);
  sqlite3_reset(stmt);
  return st;
}

lode_status lode__state_find(lode__tx *tx, int key, int64_t *value, bool *found, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  *found = false;
  TRY(lode__stmt(tx, LODE__STMT_STATE_GET, &s, err));
  sqlite3_bind_int(s, 1, key);
  TRY(lode__step(tx, s, &row, err));
  *value = row ? sqlite3_column_int64(s, 0) : 0;
  *found = row && sqlite3_column_type(s, 0) == SQLITE_INTEGER;
  sqlite3_reset(s);
  return LODE_OK;
}

lode_status lode__state_get(lode__tx *tx, int key, int64_t *value, lode_error *err) {
  bool found;
  TRY(lode__state_find(tx, key, value, &found, err));
  return found ? LODE_OK : err_set(err, LODE_CORRUPT, "row %d of table state is missing in %s", key, tx->db->path);
}

lode_status lode__state_put(lode__tx *tx, int key, int64_t value, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, LODE__STMT_STATE_PUT, &s, err));
  sqlite3_bind_int(s, 1, key);
  sqlite3_bind_int64(s, 2, value);
  return lode__run(tx, s, err);
}

/* ---- Transactions ---- */

static lode_status own_transaction(const lode__db *db, lode_error *err) {
  return err_set(err, LODE_BUSY, "this process has had a write transaction open for more than %u ms: commit it or roll it back",
                    db->opt.busy_ms);
}

static lode_status wait_for_writer_turn(lode__db *db, lode_error *err) {
  struct timespec until;
  lode_status st = LODE_OK;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += db->opt.busy_ms / 1000;
  until.tv_nsec += (long)(db->opt.busy_ms % 1000) * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_mutex_lock(&db->mutex);
  after_fork(db);
  db->queued++;
  while (db->writer_active && st == LODE_OK)
    if (pthread_cond_timedwait(&db->writer_free, &db->mutex, &until) == ETIMEDOUT && db->writer_active)
      st = db->writer_waits ? lode__db_locked(db, err) : own_transaction(db, err);
  db->queued--;
  if (st == LODE_OK) db->writer_active = db->writer_waits = true;
  pthread_mutex_unlock(&db->mutex);
  return st;
}

static void end_writer_turn(lode__db *db) {
  pthread_mutex_lock(&db->mutex);
  db->writer_active = db->writer_waits = false;
  pthread_cond_signal(&db->writer_free);
  pthread_mutex_unlock(&db->mutex);
}

/* For the message of whoever waits in vain. Not part of any promise, so never synced. */
static void sign_lock_file(lode__db *db) {
  char now[64] = "", was[64];
  char comm[20] = "";
  size_t got = 0;
  if (db->lock_fd < 0) return;
  int fd = OS_RETRY(os_api->open("/proc/self/comm", O_RDONLY, 0));
  if (fd >= 0) {
    if (os_read_full(fd, comm, sizeof comm - 1, 0, &got, NULL) != LODE_OK) got = 0;
    (void)os_api->close(fd);
  }
  comm[got] = 0;
  comm[strcspn(comm, "\n")] = 0;
  snprintf(now, sizeof now, "process %ld (%s)\n", (long)getpid(), comm);
  if (os_read_full(db->lock_fd, was, sizeof was, 64, &got, NULL) == LODE_OK && got == sizeof was &&
      memcmp(was, now, sizeof now) == 0)
    return;
  (void)os_write_full(db->lock_fd, now, sizeof now, 64, NULL);
}

static void begin_writing(lode__db *db) {
  pthread_mutex_lock(&db->mutex);
  db->writer_waits = false;
  pthread_mutex_unlock(&db->mutex);
  sign_lock_file(db);
}

static lode_status read_cursor(lode__tx *tx, int64_t *cursor, lode_error *err) {
  bool found;
  TRY(lode__state_find(tx, LODE__STATE_CURSOR, cursor, &found, err));
  if (found) return LODE_OK;
  TRY(lode__state_find(tx, LODE__STATE_CURSOR_1, cursor, &tx->format_1, err));
  if (!tx->format_1) return lode__state_get(tx, LODE__STATE_CURSOR, cursor, err); /* says that it is missing */
  return tx->kind == LODE__WRITE ? lode__db_raise_format(tx, err) : LODE_OK;
}

static lode_status begin_on_conn(lode__tx *tx, lode_error *err) {
  sqlite3_stmt *s;
  int64_t cursor;
  TRY(lode__stmt(tx, tx->kind == LODE__WRITE ? LODE__STMT_BEGIN_WRITE : LODE__STMT_BEGIN_READ, &s, err));
  TRY(lode__run(tx, s, err));
  tx->open = true;
  TRY(lode__schema_check(tx->conn, err));
  TRY(read_cursor(tx, &cursor, err));
  if (cursor < 0 || cursor > LODE__KEY_MAX)
    return err_set(err, LODE_CORRUPT, "the cursor in %s is out of range", tx->db->path);
  tx->cursor = tx->cursor_saved = (uint64_t)cursor;
  return LODE_OK;
}

static lode_status begin_once(lode__tx *tx, lode_error *err) {
  tx->failed = tx->open = tx->format_1 = false;
  TRY(take_conn(tx->db, tx->kind, &tx->conn, &tx->epoch, err));
  lode_status st = begin_on_conn(tx, err);
  tx->began_ns = os_api->now_ns(); /* of its lock, for which it may have waited */
  lode__conn_stop_waiting(tx->conn);
  if (st == LODE_OK) return st;
  give_conn(tx->conn, false);
  tx->conn = NULL;
  return st;
}

lode_status lode__tx_begin(lode__db *db, lode__tx_kind kind, lode__tx **out, lode_error *err) {
  *out = NULL;
  if (kind == LODE__WRITE && db->opt.read_only)
    return err_set(err, LODE_READONLY, "%s is open for reading only", db->folder);
  if (kind == LODE__READ) meet_gap();
  lode__tx *tx = mem_calloc(1, sizeof *tx);
  if (!tx) return err_nomem(err);
  tx->db = db;
  tx->kind = kind;
  lode_status st = kind == LODE__WRITE ? wait_for_writer_turn(db, err) : LODE_OK;
  if (st != LODE_OK) {
    mem_free(tx);
    return st;
  }
  st = begin_once(tx, err);
  if (st == LODE_OK) {
    if (kind == LODE__WRITE) begin_writing(db);
    *out = tx;
    return st;
  }
  if (kind == LODE__WRITE) end_writer_turn(db);
  mem_free(tx);
  return st;
}

/* Readers and other writers that wait get in before the next commit of ours: at most 2 ms for them. */
static void step_aside(lode__db *db) {
  for (int i = 0; i < 20 && is_wanted(db); i++) os_api->sleep_us(100);
}

static void free_tx(lode__tx *tx, bool healthy) {
  lode__db *db = tx->db;
  bool writer = tx->kind == LODE__WRITE;
  give_conn(tx->conn, healthy);
  if (writer) {
    step_aside(db);
    end_writer_turn(db);
  }
  mem_free(tx->keys);
  mem_arena_release(&tx->keys_arena);
  json_release(&tx->json);
  mem_free(tx);
}

static void reset_all(lode__conn *conn) {
  for (int i = 0; i < LODE__STMT_COUNT; i++)
    if (conn->stmt[i]) sqlite3_reset(conn->stmt[i]);
}

lode_status lode__tx_commit(lode__tx *tx, lode_error *err) {
  sqlite3_stmt *s;
  lode_status st = LODE_OK;
  if (tx->kind == LODE__READ) {
    lode__tx_rollback(tx);
    return LODE_OK;
  }
  if (tx->failed) {
    lode_status why = tx->why;
    lode__tx_rollback(tx);
    return err_set(err, why, "the transaction failed before its commit (%s), and was rolled back", lode_status_text(why));
  }
  if (tx->conn->generation != lode__vfs_generation()) {
    lode__tx_rollback(tx);
    return err_set(err, LODE_GONE, "the transaction belongs to the process that forked this one");
  }
  reset_all(tx->conn);
  if (tx->cursor != tx->cursor_saved) TRY_GOTO(lode__state_put(tx, LODE__STATE_CURSOR, (int64_t)tx->cursor, err));
  TRY_GOTO(lode__names_save(tx, err));
  TRY_GOTO(lode__stmt(tx, LODE__STMT_COMMIT, &s, err));
  TRY_GOTO(lode__run(tx, s, err));
  lode__conn_stop_waiting(tx->conn);
done:
  if (st != LODE_OK) {
    tx->failed = true;
    lode__tx_rollback(tx);
  } else {
    free_tx(tx, true);
  }
  return st;
}

void lode__tx_rollback(lode__tx *tx) {
  sqlite3_stmt *s;
  if (!tx) return;
  bool healthy = !tx->failed;
  if (tx->conn->generation == lode__vfs_generation()) {
    reset_all(tx->conn);
    if (!sqlite3_get_autocommit(tx->conn->sql))
      healthy &= lode__stmt(tx, LODE__STMT_ROLLBACK, &s, NULL) == LODE_OK && lode__run(tx, s, NULL) == LODE_OK;
    lode__conn_stop_waiting(tx->conn);
    if (tx->kind == LODE__WRITE) tx->conn->dead_cid = 0; /* its numbers will be given to others */
  } else {
    healthy = false;
  }
  free_tx(tx, healthy);
}

/* Never at the first look: whoever goes on in a new transaction gets something done in it, however long it waited for
 * the processor. */
bool lode__tx_is_old(lode__tx *tx) {
  if (tx->kind != LODE__READ || !tx->looked_at) {
    tx->looked_at = true;
    return false;
  }
  DECIDED_BY_TEST(is_old);
  return os_api->now_ns() - tx->began_ns > UINT64_C(50000000);
}

bool lode__tx_outstays(const lode__tx *tx) {
  if (tx->kind != LODE__READ) return false;
  DECIDED_BY_TEST(outstays);
  return os_api->now_ns() - tx->began_ns > (uint64_t)tx->db->opt.busy_ms * 500000 && lode__db_others_wait(tx->db);
}

lode__db *lode__tx_db(lode__tx *tx) { return tx->db; }
uint64_t lode__tx_cursor(lode__tx *tx) { return tx->cursor; }
unsigned lode__tx_epoch(const lode__tx *tx) { return tx->epoch; }

lode_status lode__tx_next(lode__tx *tx, uint64_t *seq, lode_error *err) {
  if (tx->cursor >= (uint64_t)LODE__KEY_MAX)
    return err_set(err, LODE_LIMIT, "the store has used up its 2^40 change numbers: export it and import it into a new one");
  *seq = ++tx->cursor;
  return LODE_OK;
}

lode_status lode__tx_savepoint(lode__tx *tx, lode_error *err) {
  sqlite3_stmt *s;
  if (tx->failed)
    return err_set(err, tx->why, "the transaction has failed before (%s): roll it back", lode_status_text(tx->why));
  TRY(lode__stmt(tx, LODE__STMT_SAVEPOINT, &s, err));
  TRY(lode__run(tx, s, err));
  tx->in_savepoint = true;
  tx->fresh_before = tx->fresh_known ? tx->fresh : -1;
  return LODE_OK;
}

void lode__tx_savepoint_end(lode__tx *tx, bool keep) {
  sqlite3_stmt *s;
  lode_status st = LODE_OK;
  if (!tx->in_savepoint) return;
  tx->in_savepoint = false;
  /* An error may have ended the whole transaction (disk full, damage): then nothing is left to go on with. */
  bool lost = sqlite3_get_autocommit(tx->conn->sql);
  if (!lost && !keep) {
    tx->keys_cid = tx->dead_cid = tx->conn->dead_cid = 0;
    tx->fresh_known = tx->fresh_before >= 0;
    tx->fresh = tx->fresh_before;
    st = lode__stmt(tx, LODE__STMT_SAVEPOINT_UNDO, &s, NULL);
    if (st == LODE_OK) st = lode__run(tx, s, NULL);
  }
  if (!lost && st == LODE_OK) st = lode__stmt(tx, LODE__STMT_SAVEPOINT_END, &s, NULL);
  if (!lost && st == LODE_OK) st = lode__run(tx, s, NULL);
  tx->failed = lost || st != LODE_OK;
  if (st != LODE_OK) tx->why = st;
  if (tx->failed && tx->why == LODE_OK) tx->why = LODE_INTERNAL; /* never committed as if all were well */
}
