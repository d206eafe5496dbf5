/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - one connection to the database file: opening it, waiting for locks, leases, mapping errors.
 *
 * Waiting. SQLite's own busy handler sleeps longer and longer, so that readers starve while a writer never pauses.
 * Ours polls every 100 us at first and at most every millisecond, and meanwhile locks the WAIT byte of lode.lock; a
 * writer that has committed checks that byte and yields (tx.c).
 */
#include "store/schema.h"
#include "store/text_index.h"

#include <errno.h>
#include <fcntl.h>

static int conn_on_busy(void *ctx, int tries) {
  store_conn *conn = ctx;
  store_db *db = conn->db;
  uint64_t now = os_api->now_ns();
  if (conn->wait_until_ns == 0) conn->wait_until_ns = now + (uint64_t)db->opt.busy_ms * 1000000u;
  if (now >= conn->wait_until_ns) return 0;
  if (!conn->waiting) {
    conn->waiting = true;
    pthread_mutex_lock(&db->mutex);
    if (db->waiting++ == 0 && db->lock_fd >= 0) (void)os_api->lock(db->lock_fd, F_RDLCK, STORE_LOCK_WAIT, 1);
    pthread_mutex_unlock(&db->mutex);
  }
  os_api->sleep_us(tries < 200 ? 100 : tries < 1000 ? 250 : 1000);
  return 1;
}

void store_conn_stop_waiting(store_conn *conn) {
  store_db *db = conn->db;
  conn->wait_until_ns = 0;
  if (!conn->waiting) return;
  conn->waiting = false;
  pthread_mutex_lock(&db->mutex);
  if (db->waiting > 0 && --db->waiting == 0 && db->lock_fd >= 0)
    (void)os_api->lock(db->lock_fd, F_UNLCK, STORE_LOCK_WAIT, 1);
  pthread_mutex_unlock(&db->mutex);
}

/* ---- Leases ---- */

static off_t lease_byte(store_lease lease) { return lease == STORE_LEASE_WORK ? STORE_LOCK_WORK : STORE_LOCK_BUILD; }

static lode_status lease_lock(const store_db *db, int fd, store_lease lease, lode_error *err) {
  if (fd >= 0 && OS_RETRY(os_api->lock(fd, F_WRLCK, lease_byte(lease), 1)) == 0) return LODE_OK;
  if (fd < 0 || errno == EBADF) /* there is none, or it is open for reading */
    return err_set(err, LODE_READONLY, "%s cannot be written to, and nothing is maintained without that lock",
                   db->lock_path);
  if (errno != EAGAIN && errno != EACCES) return err_errno(err, errno, db->lock_path);
  return err_set(err, LODE_BUSY, "another process is at work on %s", db->path);
}

lode_status store_lease_take(store_db *db, store_lease lease, lode_error *err) {
  pthread_mutex_lock(&db->mutex);
  bool mine = !db->leased[lease];
  db->leased[lease] = true;
  int fd = db->lock_fd;
  pthread_mutex_unlock(&db->mutex);
  if (!mine) return err_set(err, LODE_BUSY, "another thread is at work on %s", db->path);
  lode_status st = lease_lock(db, fd, lease, err);
  if (st == LODE_OK) return LODE_OK;
  pthread_mutex_lock(&db->mutex);
  db->leased[lease] = false;
  pthread_mutex_unlock(&db->mutex);
  return st;
}

void store_lease_end(store_db *db, store_lease lease) {
  if (db->lock_fd >= 0) (void)OS_RETRY(os_api->lock(db->lock_fd, F_UNLCK, lease_byte(lease), 1));
  pthread_mutex_lock(&db->mutex);
  db->leased[lease] = false;
  pthread_mutex_unlock(&db->mutex);
}

/* ---- Errors ---- */

static lode_status conn_err_corrupt(store_conn *conn, lode_error *err) {
  vfs_file_state vs = {0};
  const char *advice = "run `lode db verify`, then `lode db salvage` to bring over what is whole";
  if (conn->sql) (void)sqlite3_file_control(conn->sql, "main", VFS_FCNTL_STATE, &vs);
  if (vs.damaged_reads > conn->damage_seen) {
    pthread_mutex_lock(&conn->db->mutex);
    conn->db->damaged_pages += vs.damaged_reads - conn->damage_seen;
    pthread_mutex_unlock(&conn->db->mutex);
    conn->damage_seen = vs.damaged_reads;
    if (vs.damage == VFS_DAMAGE_MIXED)
      return err_set(err, LODE_CORRUPT,
                     "the pages of %s are not of one moment: it was copied while it was written to, or the disk lost a "
                     "write; restore a backup, or %s",
                     conn->db->path, advice);
    return err_set(err, LODE_CORRUPT, "page %u of %s is %s; %s", vs.damaged_page, conn->db->path,
                   vs.damage == VFS_DAMAGE_OLD ? "an older version than the newest commit left" : "damaged", advice);
  }
  if (vs.damaged_journal)
    return err_set(
        err, LODE_CORRUPT,
        "%s-journal is damaged, so an interrupted transaction cannot be undone; keep a copy of the folder, then %s",
        conn->db->path, advice);
  return err_set(err, LODE_CORRUPT, "%s is damaged (%s); %s", conn->db->path,
                 conn->sql ? sqlite3_errmsg(conn->sql) : "no database", advice);
}

lode_status store_err_locked(store_db *db, lode_error *err) {
  char who[65] = "";
  size_t got = 0;
  if (db->lock_fd < 0 || os_read_full(db->lock_fd, who, 64, 64, &got, NULL) != LODE_OK) got = 0;
  who[got] = 0;
  for (char *p = who; *p; p++)
    if (*p < 32 || *p == 127) {
      *p = 0;
      break;
    }
  return err_set(err, LODE_BUSY,
                 "%s was locked for %u ms; last writer: %s. Try again, or wait longer (busy_ms, --busy-ms)", db->path,
                 db->opt.busy_ms, who[0] ? who : "unknown");
}

static lode_status conn_err_io(store_conn *conn, int rc, lode_error *err) {
  vfs_file_state vs = {0};
  if (conn->sql) (void)sqlite3_file_control(conn->sql, "main", VFS_FCNTL_STATE, &vs);
  if (rc == SQLITE_IOERR_DATA || rc == SQLITE_IOERR_CORRUPTFS) return conn_err_corrupt(conn, err);
  if (rc == SQLITE_IOERR_NOMEM) return err_nomem(err);
  if (vs.last_errno) return err_errno(err, vs.last_errno, conn->db->path);
  return err_set(err, LODE_IO, "%s: %s", conn->db->path, conn->sql ? sqlite3_errmsg(conn->sql) : sqlite3_errstr(rc));
}

/* Why could the file not be opened? It does not exist, or something else is in its place. */
static lode_status conn_err_cannot_open(store_conn *conn, int rc, lode_error *err) {
  struct stat sb;
  const char *path = conn->db->path;
  int why = conn->sql ? sqlite3_system_errno(conn->sql) : 0;
  if (OS_RETRY(os_api->lstat_at(AT_FDCWD, path, &sb)) != 0) {
    if (errno == ENOENT && why && why != ENOENT) return err_errno(err, why, path); /* it could not be made */
    if (errno == ENOENT) return err_set(err, LODE_GONE, "%s was removed while open; open the store again", path);
    return err_errno(err, errno, path);
  }
  if (S_ISLNK(sb.st_mode))
    return err_set(err, LODE_REFUSED,
                   "%s is a symbolic link: journal and locks would be in another place than its target's; "
                   "open the folder that the file is in (that may be a link)",
                   path);
  if (!S_ISREG(sb.st_mode)) return err_errno(err, os_not_regular(&sb), path);
  if (beneath_lstat(conn->db->folder, STOREFILE_JOURNAL, &sb) == 0 && !S_ISREG(sb.st_mode)) {
    char *journal = store_path_join(conn->db->folder, STOREFILE_JOURNAL);
    lode_status st = err_errno(err, os_not_regular(&sb), journal ? journal : STOREFILE_JOURNAL);
    mem_free(journal);
    return st;
  }
  return conn_err_io(conn, rc, err);
}

static lode_status conn_err_full(store_conn *conn, lode_error *err) {
  vfs_file_state vs = {0};
  if (conn->sql) (void)sqlite3_file_control(conn->sql, "main", VFS_FCNTL_STATE, &vs);
  return err_set(err, LODE_FULL, "no space left for %s%s; nothing of this write was kept", conn->db->path,
                 vs.last_errno == EFBIG ? " (a limit on the size of files: see ulimit -f)" : "");
}

static lode_status conn_err_readonly(store_conn *conn, lode_error *err) {
  vfs_file_state vs = {0};
  const char *path = conn->db->path;
  if (conn->sql) (void)sqlite3_file_control(conn->sql, "main", VFS_FCNTL_STATE, &vs);
  if (vs.linked)
    return err_set(
        err, LODE_REFUSED,
        "%s has more than one name (hard links), and an interrupted write would be undone under one of them only; "
        "make it a file of its own first: in its folder, `cp -p lode.db own && mv own lode.db`",
        path);
  return err_set(err, LODE_READONLY, "%s cannot be written: check its permissions", path);
}

lode_status store_err_sql(store_conn *conn, int rc, lode_error *err) {
  const char *path = conn->db->path;
  int extended = conn->sql ? sqlite3_extended_errcode(conn->sql) : rc;
  /* An rc that is already extended may come from the file's methods, not from the connection: keep it. */
  if ((extended & 0xff) == rc) rc = extended;
  switch (rc & 0xff) {
    case SQLITE_NOMEM: return err_nomem(err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return store_err_locked(conn->db, err);
    case SQLITE_IOERR: return conn_err_io(conn, rc, err);
    case SQLITE_ERROR: /* all our SQL is fixed, so this means that a table or column is missing */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return conn_err_corrupt(conn, err);
    case SQLITE_FULL: return conn_err_full(conn, err);
    case SQLITE_INTERRUPT: return err_set(err, LODE_CANCELLED, "cancelled");
    case SQLITE_TOOBIG: return err_set(err, LODE_LIMIT, "a value is larger than SQLite's limit of 1,000,000,000 bytes");
    case SQLITE_READONLY:
      if (rc == SQLITE_READONLY_DBMOVED)
        return err_set(err, LODE_GONE, "%s was removed or replaced while open; open the store again", path);
      return conn_err_readonly(conn, err);
    case SQLITE_CANTOPEN: return conn_err_cannot_open(conn, rc, err);
    default:
      return err_internal(err, "SQLite returned %d (%.100s) for %.200s", rc,
                          conn->sql ? sqlite3_errmsg(conn->sql) : sqlite3_errstr(rc), path);
  }
}

/* A connection caches up to a sixteenth of the memory budget. Dirty pages may take half of the budget before they are
 * spilled, because spilling locks out readers until the commit. cache_spill is made odd because SQLite also evaluates
 * it as a boolean, of which it uses only the low byte. */
static lode_status conn_configure(store_conn *conn, lode_error *err) {
  char sql[400];
  uint64_t budget = conn->db->opt.memory_bytes, page = conn->db->opt.page_bytes;
  if (page < 512) page = 512;
  snprintf(sql, sizeof sql, STORE_SQL_SETTINGS, (unsigned long long)(budget / 16 / 1024),
           (unsigned long long)(budget / 2 / page | 1));
  return store_exec(conn, sql, err);
}

void store_conn_harden(sqlite3 *sql) {
  static const struct {
    int what, value;
  } settings[] = {
      {SQLITE_DBCONFIG_DEFENSIVE, 1},
      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
      {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
      {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
      {SQLITE_DBCONFIG_DQS_DDL, 0},
      {SQLITE_DBCONFIG_DQS_DML, 0},
  };
  static const struct {
    int what, value;
  } limits[] = {
      {SQLITE_LIMIT_SQL_LENGTH, 16384},  {SQLITE_LIMIT_COLUMN, 64},  {SQLITE_LIMIT_EXPR_DEPTH, 64},
      {SQLITE_LIMIT_COMPOUND_SELECT, 8}, {SQLITE_LIMIT_ATTACHED, 0}, {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
      {SQLITE_LIMIT_WORKER_THREADS, 0},
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    (void)sqlite3_db_config(sql, settings[i].what, settings[i].value, NULL);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) (void)sqlite3_limit(sql, limits[i].what, limits[i].value);
}

/* Setting the journal mode is the first statement for which SQLite parses the schema. So the schema is checked before
 * it, each time a file is opened (the store may have been replaced), and both happen in one transaction: what SQLite
 * parses is what was checked. On failure the caller closes the connection. */
static lode_status conn_enter_schema(store_conn *conn, bool create, lode_error *err) {
  if (create) return store_exec(conn, STORE_SQL_JOURNAL_MODE, err);
  TRY(store_exec(conn, "BEGIN", err));
  TRY(store_schema_check(conn, err));
  TRY(store_exec(conn, STORE_SQL_JOURNAL_MODE, err));
  return store_exec(conn, "COMMIT", err);
}

lode_status store_conn_open(store_db *db, const char *path, bool create, store_conn **out, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat sb;
  vfs_file_state vs = {0};
  *out = NULL;
  store_conn *conn = mem_calloc(1, sizeof *conn);
  if (!conn) return err_nomem(err);
  conn->db = db;
  conn->generation = vfs_generation();
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= db->opt.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (create) flags |= SQLITE_OPEN_CREATE;
  int rc = sqlite3_open_v2(path, &conn->sql, flags, VFS_NAME);
  if (rc != SQLITE_OK) {
    st = store_err_sql(conn, rc, err);
    goto done;
  }
  (void)sqlite3_busy_handler(conn->sql, conn_on_busy, conn);
  store_conn_harden(conn->sql);
  rc = sqlite3_file_control(conn->sql, "main", VFS_FCNTL_STATE, &vs);
  if (rc != SQLITE_OK || OS_RETRY(os_api->fstat(vs.fd, &sb)) != 0) {
    st = err_errno(err, rc == SQLITE_OK ? errno : EIO, path);
    goto done;
  }
  conn->dev = sb.st_dev;
  conn->ino = sb.st_ino;
  conn->linked = vs.linked;
  TRY_GOTO(conn_enter_schema(conn, create, err)); /* before anything else that makes SQLite parse the schema */
  rc = store_text_register(conn->sql);
  if (rc != SQLITE_OK) {
    st = rc == SQLITE_NOTFOUND ? store_err_no_fts5(err) : store_err_sql(conn, rc, err);
    goto done;
  }
  TRY_GOTO(store_batch_register(conn, err));
  TRY_GOTO(conn_configure(conn, err));
done:
  if (st == LODE_OK)
    *out = conn;
  else
    store_conn_close(conn);
  return st;
}

bool store_conn_is_idle(store_conn *conn) {
  vfs_file_state vs = {0};
  return sqlite3_file_control(conn->sql, "main", VFS_FCNTL_STATE, &vs) == SQLITE_OK && !vs.lock_stuck;
}

void store_conn_close(store_conn *conn) {
  if (!conn) return;
  store_conn_stop_waiting(conn);
  /* In a forked child the connection belongs to the parent: closing it could roll back the parent's transaction. */
  if (conn->generation == vfs_generation()) {
    for (int i = 0; i < STORE_STMT_COUNT; i++) sqlite3_finalize(conn->stmt[i]);
    (void)sqlite3_close_v2(conn->sql);
  }
  mem_free(conn->dead);
  mem_free(conn);
}
