/* SPDX-License-Identifier: Apache-2.0 */
/* private_copy.c - temporary folders for copies of the database file, and removal of those left by killed processes.
 *
 * A folder is $TMPDIR/lode-private-XXXXXX, mode 0700. It holds a file `in-use`, which is locked for as long as the
 * folder is needed; the lock is released when the process dies. Before a folder is created, the others are swept:
 * those whose file can be locked are removed, with the known files in them and no others. A folder without that file
 * was left by a process that was killed early, or has just been created: it is removed when it is an hour old.
 */
#include "repair/repair_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TMPDIR_PREFIX "lode-private-"
#define TMPDIR_HOUR_MS UINT64_C(3600000)
static const char tmpdir_lock_name[] = STOREFILE_IN_USE;

static const char *tmpdir_parent(void) {
  const char *tmp = getenv("TMPDIR");
  return tmp && *tmp ? tmp : "/tmp";
}

static void tmpdir_remove_folder(const char *folder) {
  (void)!storefile_clear(folder, STOREFILE_DATA | STOREFILE_PRIVATE, NULL, NULL, NULL);
  (void)OS_RETRY(os_api->rmdir(folder));
}

/* ---- Sweeping ---- */

/* Is it a folder of this user, and not a link to one? */
static bool tmpdir_is_own(const char *path, struct stat *sb) {
  int fd = OS_RETRY(os_api->open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0));
  if (fd < 0) return false;
  bool own = OS_RETRY(os_api->fstat(fd, sb)) == 0 && sb->st_uid == geteuid();
  (void)os_api->close(fd);
  return own;
}

static void tmpdir_sweep_one(const char *folder) {
  struct stat sb;
  if (!tmpdir_is_own(folder, &sb)) return;
  int fd = beneath_open(folder, tmpdir_lock_name, O_RDWR, 0);
  bool missing = fd < 0 && errno == ENOENT;
  uint64_t made_ms = (uint64_t)sb.st_mtime * 1000;
  if (fd >= 0 && OS_RETRY(os_api->lock(fd, F_WRLCK, 0, 1)) == 0)
    tmpdir_remove_folder(folder);
  else if (missing && made_ms + TMPDIR_HOUR_MS < os_wall_ms())
    (void)OS_RETRY(os_api->rmdir(folder));
  if (fd >= 0) (void)os_api->close(fd);
}

static void tmpdir_sweep(void) {
  os_dir *all = os_dir_open(tmpdir_parent());
  const char *name;
  if (!all) return;
  while ((name = os_dir_next(all)) != NULL) {
    if (strncmp(name, TMPDIR_PREFIX, sizeof TMPDIR_PREFIX - 1) != 0) continue;
    char *path = store_path_join(tmpdir_parent(), name);
    if (path) tmpdir_sweep_one(path);
    mem_free(path);
  }
  os_dir_close(all);
}

/* ---- Creating ---- */

/* Takes the lock of a new folder. *swept: another process was faster and is removing it. */
static lode_status tmpdir_claim(repair_tmpdir *p, bool *swept, lode_error *err) {
  struct stat by_path, by_fd;
  char *path = store_path_join(p->folder, tmpdir_lock_name);
  if (!path) return err_nomem(err);
  p->fd = beneath_open(p->folder, tmpdir_lock_name, O_RDWR | O_CREAT | O_EXCL, 0600);
  lode_status st = p->fd < 0 ? err_errno(err, errno, path) : LODE_OK;
  if (st == LODE_OK && OS_RETRY(os_api->lock(p->fd, F_WRLCK, 0, 1)) != 0) {
    *swept = errno == EAGAIN || errno == EACCES;
    if (!*swept) st = err_errno(err, errno, path);
  } else if (st == LODE_OK) {
    *swept = beneath_lstat(p->folder, tmpdir_lock_name, &by_path) != 0 || OS_RETRY(os_api->fstat(p->fd, &by_fd)) != 0 ||
             by_path.st_ino != by_fd.st_ino;
  }
  mem_free(path);
  return st;
}

lode_status repair_tmpdir_create(repair_tmpdir *p, lode_error *err) {
  lode_status st = LODE_OK;
  bool swept = true;
  *p = (repair_tmpdir){.fd = -1};
  tmpdir_sweep();
  for (int tries = 0; tries < 3 && swept && st == LODE_OK; tries++) {
    swept = false;
    p->folder = store_path_join(tmpdir_parent(), TMPDIR_PREFIX "XXXXXX");
    if (!p->folder) return err_nomem(err);
    p->generation = vfs_generation();
    if (!mkdtemp(p->folder)) {
      st = err_errno(err, errno, tmpdir_parent());
      mem_free(p->folder);
      *p = (repair_tmpdir){.fd = -1};
      return repair_tmpdir_explain(st, err);
    }
    st = tmpdir_claim(p, &swept, err);
    if (st != LODE_OK || swept) repair_tmpdir_remove(p);
  }
  if (st == LODE_OK && swept)
    st = err_set(err, LODE_BUSY, "temporary folders in %s are removed as soon as they are made", tmpdir_parent());
  return repair_tmpdir_explain(st, err);
}

void repair_tmpdir_remove(repair_tmpdir *p) {
  if (!p->folder) return;
  if (p->generation == vfs_generation()) tmpdir_remove_folder(p->folder); /* in a forked child it is the parent's */
  if (p->fd >= 0) (void)os_api->close(p->fd);
  mem_free(p->folder);
  *p = (repair_tmpdir){.fd = -1};
}

lode_status repair_tmpdir_explain(lode_status st, lode_error *err) {
  if (st != LODE_FULL) return st;
  return err_set(err, LODE_FULL,
                 "there is no room in %s for a private copy of the store: free some, or let TMPDIR name a folder "
                 "on a larger disk",
                 tmpdir_parent());
}
