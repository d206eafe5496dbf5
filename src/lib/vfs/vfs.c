/* SPDX-License-Identifier: Apache-2.0 */
/* vfs.c - the VFS "lode": opening files, and the small services SQLite asks for. The contract is in vfs.h; the methods
 * of an open file are in vfs_file.c, pages in vfs_page.c, journals in vfs_journal.c.
 *
 * Neither a file nor the directory it is in may be a symbolic link (os/beneath.h): a database opened through a link
 * would have its journal beside the link, where other processes would not find it, and a hostile link leads to files
 * that are not ours. Links further up in the path are harmless.
 */
#include "vfs/vfs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { VFS_PATH_MAX = 4096 };

/* ---- Opening ---- */

/* Never returns 0, 1 or 2, so that a stray printf cannot write into a database: /dev/null occupies those descriptors.
 * */
static int open_above_stderr(const char *path, int flags, unsigned mode) {
  for (;;) {
    int fd, filler;
    fd = OS_RETRY(os_api->open(path, flags | O_CLOEXEC, mode));
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    os_api->close(fd);
    if (!OS_OPEN_NAMELESS || (flags & OS_OPEN_NAMELESS) != OS_OPEN_NAMELESS) flags &= ~O_EXCL; /* the file now exists */
    filler = OS_RETRY(os_api->open("/dev/null", O_RDWR, 0));
    if (filler < 0) return -1;
  }
}

int vfs_file_open(vfs_file *f, int flags, unsigned mode) {
  struct stat st;
  int r;
  char dir[VFS_PATH_MAX];
  const char *name;
  /* Under the list's lock: a child forked between open and add would keep the descriptor, and with it its locks. */
  vfs_list_lock();
  if (beneath_split(f->path, dir, sizeof dir, &name)) f->fd = beneath_open(dir, name, flags, mode);
  if (f->fd >= 0) vfs_list_add(f);
  vfs_list_unlock();
  if (f->fd < 0) return vfs_file_note_errno(f, SQLITE_CANTOPEN);
  r = OS_RETRY(os_api->fstat(f->fd, &st));
  if (r == 0) {
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->state.linked = st.st_nlink > 1;
    /* a new journal: whoever may write to the database must be able to roll back */
    if (f->kind == VFS_FILE_JOURNAL && (flags & O_EXCL)) os_set_mode(f->fd, &st, mode);
    return SQLITE_OK;
  }
  int rc = vfs_file_note_errno(f, SQLITE_IOERR_FSTAT);
  vfs_file_close(f);
  return rc;
}

static int vfs_open_db(vfs_file *f, int flags, int *out_flags) {
  bool writable = (flags & SQLITE_OPEN_READWRITE) != 0;
  int create = flags & SQLITE_OPEN_CREATE ? O_CREAT : 0;
  if (flags & SQLITE_OPEN_EXCLUSIVE) create |= O_EXCL;
  int rc = vfs_file_open(f, writable ? O_RDWR | create : O_RDONLY, 0600);
  bool refused = rc == SQLITE_CANTOPEN && (errno == EACCES || errno == EPERM || errno == EROFS);
  bool linked = rc == SQLITE_OK && f->state.linked;
  f->read_only = !writable || refused || linked;
  if (writable && f->read_only) {
    *out_flags = (*out_flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    vfs_file_close(f);
    rc = vfs_file_open(f, O_RDONLY, 0);
  }
  return rc;
}

static int vfs_open_journal(vfs_file *f, int flags) {
  sqlite3_file *db = sqlite3_database_file_object(f->path);
  if (!db || db->pMethods != &vfs_file_methods) return SQLITE_CANTOPEN;
  f->db = (vfs_file *)db;
  if (!(flags & SQLITE_OPEN_READWRITE)) return vfs_journal_open_probe(f);
  return flags & SQLITE_OPEN_CREATE ? vfs_journal_open_write(f) : vfs_journal_open_rollback(f);
}

/* Has no name from the start, or is unlinked at once. */
static int vfs_open_temp(vfs_file *f) {
  const char *dir = getenv("TMPDIR");
  char path[VFS_PATH_MAX];
  if (!dir || dir[0] != '/' || strlen(dir) > VFS_PATH_MAX - 64) dir = "/tmp";
  f->fd = OS_OPEN_NAMELESS ? open_above_stderr(dir, O_RDWR | OS_OPEN_NAMELESS, 0600) : -1;
  for (int tries = 0; f->fd < 0 && tries < 16; tries++) {
    snprintf(path, sizeof path, "%s/lode-%016llx", dir, (unsigned long long)rand_u64());
    f->fd = open_above_stderr(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (f->fd >= 0)
      (void)os_api->unlink(path);
    else if (errno != EEXIST)
      break;
  }
  if (f->fd < 0) return vfs_file_note_errno(f, SQLITE_CANTOPEN);
  vfs_list_lock();
  vfs_list_add(f);
  vfs_list_unlock();
  return SQLITE_OK;
}

static int vfs_open_by_kind(vfs_file *f, int flags, int *out_flags) {
  if (!f->path || (flags & (SQLITE_OPEN_DELETEONCLOSE | SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB |
                            SQLITE_OPEN_TEMP_JOURNAL | SQLITE_OPEN_SUBJOURNAL))) {
    f->kind = VFS_FILE_TEMP;
    return vfs_open_temp(f);
  }
  if (flags & SQLITE_OPEN_MAIN_DB) {
    f->kind = VFS_FILE_DB;
    return vfs_open_db(f, flags, out_flags);
  }
  if (flags & SQLITE_OPEN_MAIN_JOURNAL) {
    f->kind = VFS_FILE_JOURNAL;
    return vfs_open_journal(f, flags);
  }
  return SQLITE_CANTOPEN; /* WAL and super-journals are not supported */
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
  vfs_file *f = (vfs_file *)file;
  int opened = flags;
  (void)vfs;
  memset(f, 0, sizeof *f);
  f->fd = f->moment.map.fd = -1;
  f->path = name;
  int rc = vfs_open_by_kind(f, flags, &opened);
  if (rc != SQLITE_OK) {
    vfs_file_close(f);
    return rc;
  }
  f->base.pMethods = &vfs_file_methods;
  if (out_flags) *out_flags = opened;
  return SQLITE_OK;
}

/* ---- The rest of the VFS ---- */

/* SQLite deletes only journals by name. They are truncated and synced instead, as at the end of every transaction: a
 * connection may have to roll back in its first read, before its journal mode can be set (conn.c). */
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_dir) {
  char dir[VFS_PATH_MAX];
  const char *file;
  (void)vfs;
  (void)sync_dir; /* the name stays */
  if (!beneath_split(name, dir, sizeof dir, &file)) return SQLITE_IOERR_DELETE;
  int fd = beneath_open(dir, file, O_RDWR, 0);
  if (fd < 0) return errno == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
  int rc = OS_RETRY(os_api->ftruncate(fd, 0)) != 0 ? SQLITE_IOERR_TRUNCATE
           : OS_RETRY(os_api->fdatasync(fd)) != 0  ? SQLITE_IOERR_FSYNC
                                                   : SQLITE_OK;
  (void)os_api->close(fd);
  return rc;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
  struct stat st;
  bool exists = false;
  size_t len = strlen(name);
  (void)vfs;
  (void)flags;
  *result = 0;
  /* WAL is not supported: a file of that name must not keep the database from being opened. */
  if (len >= 4 && memcmp(name + len - 4, "-wal", 4) == 0) return SQLITE_OK;
  int rc = vfs_stat_path(name, &st, &exists);
  /* An empty journal counts as absent: this saves opening it at the start of every transaction. */
  *result = exists && (!S_ISREG(st.st_mode) || st.st_size > 0);
  return rc;
}

static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *out) {
  char cwd[VFS_PATH_MAX] = "";
  (void)vfs;
  if (name[0] != '/' && !getcwd(cwd, sizeof cwd)) return SQLITE_CANTOPEN;
  int n = snprintf(out, (size_t)size, "%s%s%s", cwd, name[0] == '/' ? "" : "/", name);
  return n < 0 || n >= size ? SQLITE_CANTOPEN : SQLITE_OK;
}

static void *vfs_dl_open(sqlite3_vfs *vfs, const char *name) {
  (void)vfs;
  (void)name;
  return NULL;
}

static void vfs_dl_error(sqlite3_vfs *vfs, int size, char *text) {
  (void)vfs;
  snprintf(text, (size_t)size, "a lode store loads no extensions");
}

static void (*vfs_dl_sym(sqlite3_vfs *vfs, void *handle, const char *name))(void) {
  (void)vfs;
  (void)handle;
  (void)name;
  return NULL;
}

static void vfs_dl_close(sqlite3_vfs *vfs, void *handle) {
  (void)vfs;
  (void)handle;
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *out) {
  (void)vfs;
  memset(out, 0, (size_t)size);
  return os_random(out, (size_t)size, false) == 0 ? size : 0;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us) {
  (void)vfs;
  if (us > 0) os_api->sleep_us((uint64_t)us);
  return us;
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *now) {
  static const sqlite3_int64 epoch = INT64_C(24405875) * 8640000; /* 1970 as a Julian day, in ms */
  (void)vfs;
  *now = epoch + (sqlite3_int64)os_wall_ms();
  return SQLITE_OK;
}

static int vfs_time(sqlite3_vfs *vfs, double *now) {
  sqlite3_int64 ms = 0;
  int rc = vfs_time_ms(vfs, &ms);
  *now = (double)ms / 86400000.0;
  return rc;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *text) {
  (void)vfs;
  (void)size;
  (void)text;
  return vfs_file_last_errno();
}

static sqlite3_vfs vfs_methods = {
    .iVersion = 2,
    .szOsFile = sizeof(vfs_file),
    .mxPathname = VFS_PATH_MAX,
    .zName = VFS_NAME,
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_pathname,
    .xDlOpen = vfs_dl_open,
    .xDlError = vfs_dl_error,
    .xDlSym = vfs_dl_sym,
    .xDlClose = vfs_dl_close,
    .xRandomness = vfs_randomness,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
    .xGetLastError = vfs_last_error,
    .xCurrentTimeInt64 = vfs_time_ms,
};

/* ---- Fork ----
 *
 * SQLite has process-wide locks (memory, page cache, random numbers, list of VFSes). One held by another thread during
 * a fork would stay locked in the child for ever, so a fork takes them all, in the order in which SQLite nests them.
 */

static pthread_mutex_t vfs_register_mutex = PTHREAD_MUTEX_INITIALIZER;
static const int vfs_sqlite_lock_ids[] = {SQLITE_MUTEX_STATIC_PRNG, SQLITE_MUTEX_STATIC_MAIN, SQLITE_MUTEX_STATIC_VFS1,
                                          SQLITE_MUTEX_STATIC_LRU,  SQLITE_MUTEX_STATIC_PMEM, SQLITE_MUTEX_STATIC_MEM};
enum { VFS_SQLITE_LOCKS = sizeof vfs_sqlite_lock_ids / sizeof *vfs_sqlite_lock_ids };
static sqlite3_mutex *vfs_sqlite_locks[VFS_SQLITE_LOCKS];

static void vfs_before_fork(void) {
  pthread_mutex_lock(&vfs_register_mutex);
  for (int i = 0; i < VFS_SQLITE_LOCKS; i++) sqlite3_mutex_enter(vfs_sqlite_locks[i]);
  vfs_list_lock();
}

static void vfs_release_sqlite_locks(void) {
  for (int i = VFS_SQLITE_LOCKS; i-- > 0;) sqlite3_mutex_leave(vfs_sqlite_locks[i]);
  pthread_mutex_unlock(&vfs_register_mutex);
}

static void vfs_after_fork(void) {
  vfs_list_unlock();
  vfs_release_sqlite_locks();
}

static void vfs_fork_child(void) {
  vfs_after_fork_in_child();
  vfs_release_sqlite_locks();
}

lode_status vfs_register(lode_error *err) {
  static bool forks_handled;
  int rc;
  pthread_mutex_lock(&vfs_register_mutex);
  /* Memory statistics would take a process-wide mutex for each allocation, some hundred times per query. The call is
   * refused if the application has already initialized SQLite: then its own setting stays. */
  (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  rc = sqlite3_initialize();
  if (rc == SQLITE_OK && !forks_handled) {
    for (int i = 0; i < VFS_SQLITE_LOCKS; i++) vfs_sqlite_locks[i] = sqlite3_mutex_alloc(vfs_sqlite_lock_ids[i]);
    if (pthread_atfork(vfs_before_fork, vfs_after_fork, vfs_fork_child) == 0)
      forks_handled = true;
    else
      rc = SQLITE_NOMEM;
  }
  if (rc == SQLITE_OK && sqlite3_vfs_find(VFS_NAME) != &vfs_methods) rc = sqlite3_vfs_register(&vfs_methods, 0);
  pthread_mutex_unlock(&vfs_register_mutex);
  if (rc == SQLITE_OK) return LODE_OK;
  if (rc == SQLITE_NOMEM) return err_nomem(err);
  return err_set(err, LODE_UNSUPPORTED, "this build of SQLite does not take a VFS: %s", sqlite3_errstr(rc));
}
