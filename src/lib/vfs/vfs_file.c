/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_file.c - the methods of an open file: reads and writes, locks, syncs.
 *
 * Locks are SQLite's (the same bytes as in its "unix" VFS, so its command-line tool can read a store in use). They are
 * taken on the open file description: each connection has its own, so connections of one process exclude each other
 * without bookkeeping, and closing another descriptor of the file releases nothing.
 *
 * After a failed sync the kernel may have dropped what it could not write. A sync is therefore never retried: the
 * connection's database file remembers the failure, for itself and its journals, until it is closed.
 *
 * Threads and fork: a file belongs to its connection, which SQLite serializes. The list of open files is guarded by
 * vfs_list_mutex, which fork holds; the child closes every file of the list (keeping them would keep the parent's locks
 * alive) and sets fd = -1, on which every method fails.
 *
 * Invariants, which SQLite keeps
 *   1. Locks go from NONE to SHARED first; RESERVED and EXCLUSIVE are taken from SHARED or above, and given back to
 *      SHARED or NONE.
 *   2. A database is written to under the EXCLUSIVE lock only; its journal is begun under RESERVED or above.
 */
#include "vfs/vfs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { VFS_PENDING_LOCK = 3 }; /* SQLITE_LOCK_PENDING; SQLite never requests it itself */

static pthread_mutex_t vfs_list_mutex = PTHREAD_MUTEX_INITIALIZER;
static vfs_file *vfs_list_head;
static atomic_uint vfs_fork_generation;
static _Thread_local int vfs_noted_errno;

/* ---- Plain transfers ---- */

int vfs_file_note_errno(vfs_file *f, int rc) {
  vfs_file *owner = f->db ? f->db : f;
  owner->state.last_errno = vfs_noted_errno = errno;
  owner->state.failed_calls++;
  return rc;
}

int vfs_file_last_errno(void) { return vfs_noted_errno; }

int vfs_file_pread(vfs_file *f, void *buf, size_t n, uint64_t off, size_t *got) {
  *got = 0;
  while (*got < n) {
    ssize_t r;
    r = OS_RETRY(os_api->pread(f->fd, (char *)buf + *got, n - *got, (off_t)(off + *got)));
    if (r < 0) return vfs_file_note_errno(f, SQLITE_IOERR_READ);
    if (r == 0) break;
    *got += (size_t)r;
  }
  return SQLITE_OK;
}

int vfs_file_pwrite(vfs_file *f, const void *buf, size_t n, uint64_t off) {
  for (size_t done = 0; done < n;) {
    ssize_t r;
    r = OS_RETRY(os_api->pwrite(f->fd, (const char *)buf + done, n - done, (off_t)(off + done)));
    if (r < 0) return vfs_file_note_errno(f, err_is_disk_full(errno) ? SQLITE_FULL : SQLITE_IOERR_WRITE);
    if (r == 0) {
      errno = EIO;
      return vfs_file_note_errno(f, SQLITE_IOERR_WRITE);
    }
    done += (size_t)r;
  }
  return SQLITE_OK;
}

int vfs_file_fdatasync(vfs_file *f) {
  vfs_file *owner = f->db ? f->db : f;
  int r;
  if (owner->sync_failed) return SQLITE_IOERR_FSYNC;
  /* fdatasync is enough: it includes the file's length, the only metadata needed to read it back */
  r = OS_RETRY(os_api->fdatasync(f->fd));
  if (r == 0) return SQLITE_OK;
  owner->sync_failed = true;
  return vfs_file_note_errno(f, SQLITE_IOERR_FSYNC);
}

int vfs_file_bytes(vfs_file *f, uint64_t *size) {
  struct stat st;
  int r;
  *size = 0;
  r = OS_RETRY(os_api->fstat(f->fd, &st));
  if (r < 0) return vfs_file_note_errno(f, SQLITE_IOERR_FSTAT);
  *size = (uint64_t)st.st_size;
  return SQLITE_OK;
}

int vfs_stat_path(const char *path, struct stat *st, bool *exists) {
  int r;
  r = OS_RETRY(os_api->lstat_at(AT_FDCWD, path, st));
  *exists = r == 0;
  /* if the file cannot be examined, that must not be taken for "no journal" */
  return r == 0 || errno == ENOENT || errno == ENOTDIR ? SQLITE_OK : SQLITE_IOERR_ACCESS;
}

/* ---- The list, and fork ---- */

void vfs_list_lock(void) { pthread_mutex_lock(&vfs_list_mutex); }
void vfs_list_unlock(void) { pthread_mutex_unlock(&vfs_list_mutex); }

void vfs_list_add(vfs_file *f) {
  f->prev = NULL;
  f->next = vfs_list_head;
  if (vfs_list_head) vfs_list_head->prev = f;
  vfs_list_head = f;
  f->listed = true;
}

void vfs_file_close(vfs_file *f) {
  int fd = f->fd;
  vfs_list_lock();
  if (f->listed) {
    if (f->prev)
      f->prev->next = f->next;
    else
      vfs_list_head = f->next;
    if (f->next) f->next->prev = f->prev;
    f->listed = false;
  }
  f->fd = -1;
  vfs_list_unlock();
  if (fd >= 0) os_api->close(fd); /* everything that matters was synced: an error changes nothing */
}

void vfs_after_fork_in_child(void) {
  /* Only close() is safe here, and it must not go through a test's os_api. */
  for (vfs_file *f = vfs_list_head, *next; f; f = next) {
    next = f->next;
    if (f->fd >= 0) close(f->fd);
    if (f->kind == VFS_FILE_DB && f->moment.map.fd >= 0) close(f->moment.map.fd);
    f->fd = f->moment.map.fd = -1;
    f->listed = false;
  }
  vfs_list_head = NULL;
  atomic_fetch_add(&vfs_fork_generation, 1);
  pthread_mutex_unlock(&vfs_list_mutex);
}

unsigned vfs_generation(void) { return atomic_load(&vfs_fork_generation); }

/* ---- Locks ---- */

static int vfs_set_lock(vfs_file *f, short type, off_t start, off_t len, int failure) {
  int r;
  r = OS_RETRY(os_api->lock(f->fd, type, start, len));
  if (r == 0) return SQLITE_OK;
  if (type != F_UNLCK && (errno == EAGAIN || errno == EACCES)) return SQLITE_BUSY;
  return vfs_file_note_errno(f, failure);
}

/* If this fails, it is tried again before the next lock; a connection that is not used any more must be closed. */
static int vfs_drop_locks(vfs_file *f) {
  int rc = vfs_set_lock(f, F_UNLCK, 0, 0, SQLITE_IOERR_UNLOCK);
  f->state.lock_stuck = rc != SQLITE_OK;
  return rc;
}

static int vfs_lock_shared(vfs_file *f) {
  int rc = vfs_set_lock(f, F_RDLCK, SQF_PENDING_BYTE, 1, SQLITE_IOERR_LOCK);
  if (rc != SQLITE_OK) return rc;
  rc = vfs_set_lock(f, F_RDLCK, SQF_SHARED_FIRST, SQF_SHARED_SIZE, SQLITE_IOERR_LOCK);
  int rc2 = vfs_set_lock(f, F_UNLCK, SQF_PENDING_BYTE, 1, SQLITE_IOERR_UNLOCK);
  if (rc == SQLITE_OK && rc2 == SQLITE_OK) return SQLITE_OK;
  (void)vfs_drop_locks(f);
  return rc != SQLITE_OK ? rc : rc2;
}

/* Fails if the file got a second name after it was opened; see vfs.h. */
static int vfs_refuse_linked(vfs_file *f) {
  struct stat st;
  if (OS_RETRY(os_api->fstat(f->fd, &st)) != 0) return vfs_file_note_errno(f, SQLITE_IOERR_FSTAT);
  f->state.linked = st.st_nlink > 1;
  return f->state.linked ? SQLITE_READONLY : SQLITE_OK;
}

static int vfs_lock(sqlite3_file *file, int level) {
  vfs_file *f = (vfs_file *)file;
  int rc = SQLITE_OK;
  if (f->fd < 0) return SQLITE_IOERR;
  if (f->lock >= level) return SQLITE_OK;
  if (!INVARIANT(f->lock != SQLITE_LOCK_NONE || level == SQLITE_LOCK_SHARED)) return SQLITE_MISUSE;
  if (level == SQLITE_LOCK_SHARED) {
    if (f->state.lock_stuck) rc = vfs_drop_locks(f);
    if (rc == SQLITE_OK) rc = vfs_lock_shared(f);
    f->commit_known = f->moment.ready = false;
  } else if (level == SQLITE_LOCK_RESERVED) {
    rc = vfs_refuse_linked(f);
    if (rc == SQLITE_OK) rc = vfs_set_lock(f, F_WRLCK, SQF_RESERVED_BYTE, 1, SQLITE_IOERR_LOCK);
  } else {
    /* PENDING keeps new readers out while the old ones finish; it is kept even if they have not finished yet. */
    if (f->lock < SQLITE_LOCK_RESERVED) rc = vfs_refuse_linked(f); /* to roll back */
    if (rc == SQLITE_OK && f->lock < VFS_PENDING_LOCK)
      rc = vfs_set_lock(f, F_WRLCK, SQF_PENDING_BYTE, 1, SQLITE_IOERR_LOCK);
    if (rc != SQLITE_OK) return rc;
    f->lock = VFS_PENDING_LOCK;
    rc = vfs_set_lock(f, F_WRLCK, SQF_SHARED_FIRST, SQF_SHARED_SIZE, SQLITE_IOERR_LOCK);
  }
  if (rc == SQLITE_OK) f->lock = level;
  return rc;
}

static int vfs_unlock(sqlite3_file *file, int level) {
  vfs_file *f = (vfs_file *)file;
  int rc = SQLITE_OK;
  if (f->fd < 0) return SQLITE_IOERR;
  if (!INVARIANT(level == SQLITE_LOCK_NONE || level == SQLITE_LOCK_SHARED)) return SQLITE_MISUSE;
  if (f->lock <= level) return SQLITE_OK;
  vfs_moment_end(f);
  f->wrote = false;
  f->next_commit_id = 0;
  f->commit_known = false;
  if (level == SQLITE_LOCK_SHARED) {
    /* convert to a read lock first: some lock must be held at all times */
    rc = vfs_set_lock(f, F_RDLCK, SQF_SHARED_FIRST, SQF_SHARED_SIZE, SQLITE_IOERR_RDLOCK);
    if (rc == SQLITE_OK) rc = vfs_set_lock(f, F_UNLCK, SQF_PENDING_BYTE, 2, SQLITE_IOERR_UNLOCK);
    if (rc == SQLITE_OK) f->lock = level;
    return rc == SQLITE_BUSY ? SQLITE_IOERR_RDLOCK : rc;
  }
  vfs_view_pause(f);
  f->size = 0; /* from now on others may change it */
  f->lock = SQLITE_LOCK_NONE;
  return vfs_drop_locks(f);
}

static int vfs_check_reserved(sqlite3_file *file, int *held) {
  vfs_file *f = (vfs_file *)file;
  int r = 1;
  *held = 0;
  if (f->fd < 0) return SQLITE_IOERR;
  if (f->lock < SQLITE_LOCK_RESERVED) r = OS_RETRY(os_api->lock_held(f->fd, F_WRLCK, SQF_RESERVED_BYTE, 1));
  if (r < 0) return vfs_file_note_errno(f, SQLITE_IOERR_CHECKRESERVEDLOCK);
  *held = r;
  return SQLITE_OK;
}

/* ---- File methods ---- */

static int vfs_close(sqlite3_file *file) {
  vfs_file *f = (vfs_file *)file;
  vfs_file_close(f);
  vfs_view_drop(f);
  if (f->kind == VFS_FILE_DB) vfs_moment_release(f);
  mem_free(f->page);
  mem_free(f->part);
  f->page = f->part = NULL;
  f->base.pMethods = NULL;
  return SQLITE_OK;
}

static int vfs_read(sqlite3_file *file, void *buf, int amount, sqlite3_int64 at) {
  vfs_file *f = (vfs_file *)file;
  size_t n = (size_t)amount, got = 0;
  uint64_t off = (uint64_t)at;
  if (f->shown) {
    memset(buf, 0, n);
    if (at == 0 && n > 0) *(unsigned char *)buf = f->first_byte;
    return n == 1 && at == 0 ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }
  if (f->fd < 0 || amount < 0 || at < 0) return SQLITE_IOERR;
  if (f->kind == VFS_FILE_DB) return vfs_page_read(f, buf, n, off);
  if (f->kind == VFS_FILE_JOURNAL) return vfs_journal_read(f, buf, n, off);
  int rc = vfs_file_pread(f, buf, n, off, &got);
  if (rc != SQLITE_OK) return rc;
  memset((char *)buf + got, 0, n - got);
  return got < n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int vfs_write(sqlite3_file *file, const void *buf, int amount, sqlite3_int64 at) {
  vfs_file *f = (vfs_file *)file;
  void *own = (void *)(uintptr_t)buf; /* sealed in place: see vfs_page.c */
  if (f->fd < 0 || amount < 0 || at < 0) return SQLITE_IOERR;
  if (f->kind == VFS_FILE_DB) return vfs_page_write(f, own, (size_t)amount, (uint64_t)at);
  if (f->kind == VFS_FILE_JOURNAL) return vfs_journal_write(f, own, (size_t)amount, (uint64_t)at);
  return vfs_file_pwrite(f, buf, (size_t)amount, (uint64_t)at);
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size) {
  vfs_file *f = (vfs_file *)file;
  int r;
  if (f->fd < 0 || size < 0) return SQLITE_IOERR;
  f->wrote = true;
  r = OS_RETRY(os_api->ftruncate(f->fd, size));
  if (r < 0) return vfs_file_note_errno(f, SQLITE_IOERR_TRUNCATE);
  f->size = (uint64_t)size;
  if (size == 0) {
    f->page_bytes = 0;
    f->commit_known = false;
    vfs_moment_end(f); /* the first transaction of a database was rolled back: page 1 is not written again */
    memset(&f->journal, 0, sizeof f->journal);
  }
  return SQLITE_OK;
}

/* A journal is useless if its name is lost in a crash, so its name is synced with its first content. One directory sync
 * per journal and connection is enough, because the file stays. */
static int vfs_sync_journal_name(vfs_file *f) {
  if (os_sync_parent_dir(f->path, NULL) != LODE_OK) {
    if (f->db) f->db->sync_failed = true;
    return vfs_file_note_errno(f, SQLITE_IOERR_DIR_FSYNC);
  }
  f->name_due = false;
  if (f->db) {
    f->db->journal_named = true;
    f->db->journal_dev = f->dev;
    f->db->journal_ino = f->ino;
  }
  return SQLITE_OK;
}

static int vfs_sync(sqlite3_file *file, int flags) {
  vfs_file *f = (vfs_file *)file;
  (void)flags;
  if (f->fd < 0) return SQLITE_IOERR;
  int rc = f->kind == VFS_FILE_JOURNAL ? vfs_journal_sync(f) : vfs_file_fdatasync(f);
  if (rc == SQLITE_OK && f->name_due) rc = vfs_sync_journal_name(f);
  return rc;
}

static int vfs_file_size(sqlite3_file *file, sqlite3_int64 *size) {
  vfs_file *f = (vfs_file *)file;
  uint64_t now = 0;
  *size = 0;
  if (f->fd < 0) return SQLITE_IOERR;
  int rc = vfs_view_size(f, &now) ? SQLITE_OK : vfs_file_bytes(f, &now);
  if (rc != SQLITE_OK) return rc;
  if (f->kind == VFS_FILE_DB) {
    if (now == 0 && f->lock != SQLITE_LOCK_NONE) rc = vfs_journal_check_empty_db(f);
    if (rc != SQLITE_OK) return rc;
    if (f->lock != SQLITE_LOCK_NONE) f->size = now;
  }
  *size = (sqlite3_int64)now;
  return SQLITE_OK;
}

int vfs_file_was_moved(vfs_file *f, bool *moved) {
  struct stat st;
  bool exists = false;
  int rc = vfs_stat_path(f->path, &st, &exists);
  *moved = !exists || st.st_dev != f->dev || st.st_ino != f->ino;
  return rc == SQLITE_OK ? rc : vfs_file_note_errno(f, rc);
}

static int vfs_control_db(vfs_file *f, int op, void *arg) {
  switch (op) {
    case SQLITE_FCNTL_HAS_MOVED: {
      bool moved = false;
      int rc = vfs_file_was_moved(f, &moved);
      *(int *)arg = moved;
      return rc;
    }
    case SQLITE_FCNTL_SYNC: return vfs_moment_complete(f); /* also sent if SQLite does not sync */
    case VFS_FCNTL_UNDONE: f->moment.undone = true; return SQLITE_OK;
    case VFS_FCNTL_STATE:
      f->state.fd = f->fd;
      f->state.commit_number = f->commit.number;
      f->state.commit_id = f->commit.id;
      *(vfs_file_state *)arg = f->state;
      return SQLITE_OK;
    case SQLITE_FCNTL_PRAGMA: {
      /* VACUUM to another page size would write partial pages: an existing database keeps its page size */
      char **argv = arg;
      bool set = argv[2] && sqlite3_stricmp(argv[1], "page_size") == 0;
      return set && f->page_bytes ? SQLITE_OK : SQLITE_NOTFOUND;
    }
    default: return SQLITE_NOTFOUND;
  }
}

static int vfs_control(sqlite3_file *file, int op, void *arg) {
  vfs_file *f = (vfs_file *)file;
  if (op == SQLITE_FCNTL_VFSNAME) {
    *(char **)arg = sqlite3_mprintf("%s", VFS_NAME);
    return *(char **)arg ? SQLITE_OK : SQLITE_NOMEM;
  }
  if (f->fd < 0) return SQLITE_IOERR;
  switch (op) {
    case SQLITE_FCNTL_LOCKSTATE: *(int *)arg = f->lock; return SQLITE_OK;
    case SQLITE_FCNTL_LAST_ERRNO: *(int *)arg = f->state.last_errno; return SQLITE_OK;
    case SQLITE_FCNTL_SIZE_HINT:
    case SQLITE_FCNTL_CHUNK_SIZE: return SQLITE_OK;
    default: return f->kind == VFS_FILE_DB ? vfs_control_db(f, op, arg) : SQLITE_NOTFOUND;
  }
}

static int vfs_sector_size(sqlite3_file *file) {
  (void)file;
  return JOURNAL_SECTOR;
}

/* A power cut does not damage bytes next to those being written (SQLite's own VFS assumes the same): this makes SQLite
 * place journal headers at multiples of 512. Nothing else is promised, so SQLite syncs before and after each header. */
static int vfs_characteristics(sqlite3_file *file) {
  (void)file;
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

const sqlite3_io_methods vfs_file_methods = {
    .iVersion = 1,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_file_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_check_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
};
