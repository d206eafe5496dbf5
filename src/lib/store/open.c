/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opening and closing a store: its folder, its lock file, its options.
 *
 * A folder that is marked as a complete store but has no database file has lost it: that is damage, and no empty truth
 * file is created in its place.
 */
#include "store/schema.h"

#include "os/beneath.h"
#include "os/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char lock_file_mark[] = "lode store\n";

/* ---- Opening ---- */

/* What is given was checked before (iface_check_open_options). */
static void open_fill_defaults(lode_open_options *o) {
  if (!o->busy_ms) o->busy_ms = 10000;
  if (!o->page_bytes) o->page_bytes = 16384;
  if (!o->memory_bytes) o->memory_bytes = UINT64_C(256) << 20;
  if (!o->max_document_bytes) o->max_document_bytes = UINT64_C(64) << 20;
}

char *store_path_join(const char *folder, const char *name) {
  strbuf b = {0};
  strbuf_addstr(&b, folder);
  strbuf_addch(&b, '/');
  strbuf_addstr(&b, name);
  strbuf_addch(&b, 0);
  if (b.failed) strbuf_release(&b);
  return b.failed ? NULL : b.data;
}

/* Creates one folder durably; it may exist already. */
static lode_status open_make_folder(const char *path, unsigned mode, lode_error *err) {
  struct stat sb;
  if (OS_RETRY(os_api->mkdir(path, mode)) == 0) return os_sync_parent_dir(path, err);
  int e = errno;
  if (OS_RETRY(os_api->stat(path, &sb)) != 0) return err_errno(err, e == EEXIST ? errno : e, path);
  if (S_ISDIR(sb.st_mode)) return LODE_OK;
  if (e == EEXIST) return err_set(err, LODE_INVALID, "%.400s is a file: a store is a folder, name another one", path);
  return err_errno(err, e, path);
}

lode_status store_make_folders(const char *folder, lode_error *err) {
  size_t size = strlen(folder) + 1;
  char *path = mem_alloc(size);
  if (!path) return err_nomem(err);
  memcpy(path, folder, size);
  lode_status st = LODE_OK;
  for (char *p = path + 1; *p && st == LODE_OK; p++) {
    if (*p != '/') continue;
    *p = 0;
    st = open_make_folder(path, 0777, err);
    *p = '/';
  }
  if (st == LODE_OK) st = open_make_folder(path, 0700, err);
  mem_free(path);
  return st;
}

/* Without permission, or on a read-only medium, there may be no lock file, or one that cannot be written to. */
static bool open_may_lack_lock(int errnum) {
  return errnum == ENOENT || errnum == EACCES || errnum == EPERM || errnum == EROFS;
}

/* A copy of a store may lack it; where there is no store, only `create` makes one. */
static bool open_makes_lock(const store_db *db) {
  struct stat sb;
  return db->opt.create || beneath_lstat(db->folder, STOREFILE_DB, &sb) == 0;
}

int store_db_open_lock_file(store_db *db) {
  int fd = -1;
  if (!db->opt.read_only)
    fd = open_makes_lock(db) ? storefile_open_or_create(db->folder, STOREFILE_LOCK)
                             : beneath_open(db->folder, STOREFILE_LOCK, O_RDWR, 0);
  if (fd < 0 && (db->opt.read_only || open_may_lack_lock(errno)))
    fd = beneath_open(db->folder, STOREFILE_LOCK, O_RDONLY, 0);
  return fd;
}

/* A folder in which nothing can be made needs no sync, and some file systems do not know it. */
static int open_sync_folder(const char *path) {
  int fd = OS_RETRY(os_api->open(path, O_RDONLY | O_DIRECTORY, 0));
  int rc = fd < 0 ? -1 : OS_RETRY(os_api->fsync(fd)), e = rc < 0 ? errno : 0;
  if (fd >= 0) (void)os_api->close(fd);
  return e == EACCES || e == EPERM || e == EROFS || e == EINVAL ? 0 : e;
}

lode_status store_sync_folders(const char *folder, lode_error *err) {
  lode_status st = LODE_OK;
  size_t len = strlen(folder);
  char *path = str_dup(folder, len);
  if (!path) return err_nomem(err);
  while (st == LODE_OK && len > 0) {
    while (len > 0 && path[len] != '/') len--;
    path[len] = 0;
    const char *above = len ? path : folder[0] == '/' ? "/" : ".";
    int e = open_sync_folder(above);
    if (e) st = err_errno(err, e, above);
  }
  mem_free(path);
  return st;
}

static bool open_is_marked(store_db *db) {
  char mark[sizeof lock_file_mark] = "";
  size_t got = 0;
  return db->lock_fd >= 0 && os_read_full(db->lock_fd, mark, sizeof lock_file_mark - 1, 0, &got, NULL) == LODE_OK &&
         memcmp(mark, lock_file_mark, sizeof lock_file_mark - 1) == 0;
}

/* Was there a store, though its database and its lock file are gone? A journal or a segment is left, or the segments
 * cannot be listed. */
static bool open_has_remains(store_db *db) {
  struct stat sb;
  uint64_t id;
  const char *name, *ending;
  os_kind kind;
  int errnum = 0;
  bool found = beneath_lstat(db->folder, STOREFILE_JOURNAL, &sb) == 0 && S_ISREG(sb.st_mode);
  os_dir *dir = found ? NULL : beneath_list(db->folder, STOREFILE_SEGMENTS_DIR);
  while (dir && !found && (name = os_dir_next_kind(dir, &kind, &errnum)) != NULL)
    found = storefile_parse_segment(name, &id, &ending);
  if (dir) os_dir_close(dir);
  return found || errnum != 0;
}

static lode_status open_wait_for_create_lock(store_db *db, lode_error *err) {
  uint64_t until = os_api->now_ns() + (uint64_t)db->opt.busy_ms * 1000000u;
  while (OS_RETRY(os_api->lock(db->lock_fd, F_WRLCK, STORE_LOCK_CREATE, 1)) != 0) {
    if (errno != EAGAIN && errno != EACCES) return err_errno(err, errno, db->lock_path);
    if (os_api->now_ns() >= until) return err_set(err, LODE_BUSY, "another process is making the store %s", db->folder);
    os_api->sleep_us(500);
  }
  return LODE_OK;
}

static lode_status open_create_if_missing(store_db *db, lode_error *err) {
  struct stat sb;
  lode_status st = LODE_OK;
  TRY(open_wait_for_create_lock(db, err));
  if (beneath_lstat(db->folder, STOREFILE_DB, &sb) != 0) {
    if (errno != ENOENT)
      st = err_errno(err, errno, db->path);
    else if (open_is_marked(db))
      st = err_set(err, LODE_CORRUPT,
                   "%s is missing, but there was a store here: restore a backup, or remove %s to start over", db->path,
                   db->lock_path);
    else if ((st = store_sync_folders(db->folder, err)) == LODE_OK)
      st = store_db_create(db, err);
  }
  (void)OS_RETRY(os_api->lock(db->lock_fd, F_UNLCK, STORE_LOCK_CREATE, 1));
  return st;
}

/* Prepares the folder, the lock file and, with opt.create, a new database file. */
static lode_status open_prepare_folder(store_db *db, lode_error *err) {
  struct stat sb;
  char fs[32];
  if (db->opt.create && !db->opt.read_only) TRY(store_make_folders(db->folder, err));
  if (OS_RETRY(os_api->lstat_at(AT_FDCWD, db->folder, &sb)) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return err_errno(err, errno, db->folder);
    return err_set(err, LODE_NOT_FOUND, "there is no store at %s; `lode db create` makes one", db->folder);
  }
  if (S_ISLNK(sb.st_mode)) return err_errno(err, ELOOP, db->folder);
  if (!S_ISDIR(sb.st_mode)) return err_set(err, LODE_INVALID, "%s is not a folder", db->folder);
  db->lock_fd = store_db_open_lock_file(db);
  int e = errno;
  /* If something else is in its place, or it cannot be opened now, refuse: otherwise the store would be written without
   * locks. */
  if (db->lock_fd < 0 && beneath_lstat(db->folder, STOREFILE_LOCK, &sb) == 0 && !S_ISREG(sb.st_mode))
    return err_errno(err, os_not_regular(&sb), db->lock_path);
  if (db->lock_fd < 0 && !db->opt.read_only && !open_may_lack_lock(e)) return err_errno(err, e, db->lock_path);
  db->lock_generation = vfs_generation();
  os_fs_kind kind = os_fs_kind_of(db->folder, fs, sizeof fs);
  if (kind == OS_FS_NETWORK)
    store_db_log(db,
                 "%s is on a network file system (%s), whose locks may not be reliable: use it from one machine only",
                 db->folder, fs);
  if (kind == OS_FS_WINDOWS)
    store_db_log(
        db,
        "%s is on a Windows drive, which is slow here and whose locks may not be reliable: keep the store in a "
        "folder of the Linux file system, such as your home folder",
        db->folder);
  if (beneath_lstat(db->folder, STOREFILE_DB, &sb) == 0) return LODE_OK;
  if (errno != ENOENT) return err_errno(err, errno, db->path);
  if (db->opt.create && !db->opt.read_only) {
    if (db->lock_fd < 0) {
      db->lock_fd = store_db_open_lock_file(db);
      if (db->lock_fd < 0) return err_errno(err, errno, db->lock_path);
    }
    return open_create_if_missing(db, err);
  }
  bool was_here = open_is_marked(db) || open_has_remains(db);
  if (was_here && beneath_lstat(db->folder, STOREFILE_DB, &sb) == 0) return LODE_OK; /* it was made meanwhile */
  if (was_here)
    return err_set(err, LODE_CORRUPT, "%s is missing, but there was a store here: restore a backup", db->path);
  return err_set(err, LODE_NOT_FOUND, "there is no store at %s; `lode db create` makes one", db->folder);
}

static lode_status open_init_locks(store_db *db, lode_error *err) {
  return pthread_mutex_init(&db->mutex, NULL) == 0 ? LODE_OK : err_nomem(err);
}

/* The locks are initialized again without being destroyed: destroying a condition variable that a thread of the
 * parent waits for would wait for that thread. */
void store_db_after_fork(store_db *db) { (void)!open_init_locks(db, NULL); }

lode_status store_db_open(const char *folder, const lode_open_options *options, store_db **out, lode_error *err) {
  lode_status st;
  *out = NULL;
  if (!folder || !*folder) return err_set(err, LODE_INVALID, "the store's folder is empty");
  TRY(vfs_register(err));
  store_db *db = mem_calloc(1, sizeof *db);
  if (!db) return err_nomem(err);
  st = open_init_locks(db, err);
  if (st != LODE_OK) {
    mem_free(db);
    return st;
  }
  db->lock_fd = -1;
  if (options) db->opt = *options;
  open_fill_defaults(&db->opt);
  /* The store keeps this path even if the process changes its directory or a link that led here changes. */
  TRY_GOTO(beneath_resolve(folder, &db->folder, err));
  db->path = store_path_join(db->folder, STOREFILE_DB);
  db->lock_path = store_path_join(db->folder, STOREFILE_LOCK);
  if (!db->path || !db->lock_path) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(open_prepare_folder(db, err));
  TRY_GOTO(store_db_upgrade(db, err));
  if (!db->opt.read_only && !open_is_marked(db) && db->lock_fd >= 0)
    (void)!os_write_full(db->lock_fd, lock_file_mark, sizeof lock_file_mark - 1, 0, NULL); /* the next one may */
done:
  if (st == LODE_OK)
    *out = db;
  else
    store_db_close(db);
  return st;
}

/* The folder may be a link given by the user; the VFS follows none. */
static lode_status open_resolve_folder(const char *file, char **folder, char **path, lode_error *err) {
  char above[4096];
  const char *name;
  char *absolute = NULL;
  TRY(beneath_resolve(file, &absolute, err));
  lode_status st = beneath_split(absolute, above, sizeof above, &name)
                       ? beneath_resolve(above, folder, err)
                       : err_set(err, LODE_INVALID, "the path of %.100s... is too long", file);
  if (st == LODE_OK && !(*path = store_path_join(*folder, name))) st = err_nomem(err);
  mem_free(absolute);
  return st;
}

lode_status store_db_open_file(const char *file, store_db **out, lode_error *err) {
  *out = NULL;
  TRY(vfs_register(err));
  store_db *db = mem_calloc(1, sizeof *db);
  if (!db) return err_nomem(err);
  lode_status st = open_init_locks(db, err);
  if (st != LODE_OK) {
    mem_free(db);
    return st;
  }
  db->lock_fd = -1;
  db->lock_generation = vfs_generation();
  db->opt.read_only = true;
  open_fill_defaults(&db->opt);
  st = open_resolve_folder(file, &db->folder, &db->path, err);
  if (st == LODE_OK)
    *out = db;
  else
    store_db_close(db);
  return st;
}

void store_db_close(store_db *db) {
  if (!db) return;
  while (db->idle) {
    store_conn *c = db->idle;
    db->idle = c->next;
    store_conn_close(c);
  }
  if (db->lock_fd >= 0) (void)os_api->close(db->lock_fd);
  pthread_mutex_destroy(&db->mutex);
  mem_free(db->folder);
  mem_free(db->path);
  mem_free(db->lock_path);
  mem_free(db);
}

const lode_open_options *store_db_options(const store_db *db) { return &db->opt; }
const char *store_db_folder(const store_db *db) { return db->folder; }

lode_status store_db_broken(store_db *db, const char *what, lode_error *err) {
  atomic_store(&db->broken, true);
  return err_internal(err, "%s", what);
}

void store_db_log(store_db *db, const char *format, ...) {
  char line[1024];
  va_list ap;
  if (!db->opt.log) return;
  va_start(ap, format);
  vsnprintf(line, sizeof line, format, ap);
  va_end(ap);
  db->opt.log(db->opt.log_ctx, line);
}
