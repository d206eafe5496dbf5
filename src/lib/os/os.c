/* SPDX-License-Identifier: Apache-2.0 */
/* os.c - see os.h. Calls interrupted by a signal are retried: a test's table may interrupt too. */
#include "os/os.h"

/* ---- Files of unknown type ---- */

int os_not_regular(const struct stat *st) {
  if (S_ISREG(st->st_mode)) return 0;
  return S_ISLNK(st->st_mode) ? ELOOP : S_ISDIR(st->st_mode) ? EISDIR : ENXIO;
}

int os_keep_regular(int fd) {
  struct stat st;
  if (fd < 0) return -1;
  int errnum = OS_RETRY(os_api->fstat(fd, &st)) < 0 ? errno : os_not_regular(&st);
  if (errnum == 0) return fd;
  (void)os_api->close(fd);
  errno = errnum;
  return -1;
}

int os_open_regular(const char *path) {
  struct stat st;
  if (OS_RETRY(os_api->stat(path, &st)) < 0) return -1;
  errno = os_not_regular(&st);
  if (errno) return -1;
  return os_keep_regular(OS_RETRY(os_api->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)));
}

/* ---- Complete reads and writes ---- */

/* Linux transfers at most 0x7ffff000 bytes per call; asking for less keeps counts within ssize_t everywhere. */
enum { TRANSFER_MAX = 1 << 30 };

static bool os_past_max_offset(uint64_t off, size_t n) {
  return off > (uint64_t)INT64_MAX || n > (uint64_t)INT64_MAX - off;
}

lode_status os_read_full(int fd, void *buf, size_t n, uint64_t off, size_t *got, lode_error *err) {
  size_t done = 0;
  *got = 0;
  if (os_past_max_offset(off, n)) return err_errno(err, EOVERFLOW, "reading a file");
  while (done < n) {
    size_t ask = n - done < TRANSFER_MAX ? n - done : TRANSFER_MAX;
    ssize_t rc = os_api->pread(fd, (char *)buf + done, ask, (off_t)(off + done));
    if (rc < 0 && errno == EINTR) continue;
    if (rc < 0) return err_errno(err, errno, "reading a file");
    if (rc == 0) break;
    done += (size_t)rc;
  }
  *got = done;
  return LODE_OK;
}

lode_status os_write_full(int fd, const void *buf, size_t n, uint64_t off, lode_error *err) {
  size_t done = 0;
  if (os_past_max_offset(off, n)) return err_errno(err, EOVERFLOW, "writing a file");
  while (done < n) {
    size_t ask = n - done < TRANSFER_MAX ? n - done : TRANSFER_MAX;
    ssize_t rc = os_api->pwrite(fd, (const char *)buf + done, ask, (off_t)(off + done));
    if (rc < 0 && errno == EINTR) continue;
    if (rc < 0) return err_errno(err, errno, "writing a file");
    if (rc == 0) return err_errno(err, EIO, "writing a file"); /* no progress and no error */
    done += (size_t)rc;
  }
  return LODE_OK;
}

/* ---- Directories ---- */

static lode_status os_parent_dir(const char *path, char **dir, lode_error *err) {
  size_t len = strlen(path);
  while (len > 1 && path[len - 1] == '/') len--;
  while (len > 0 && path[len - 1] != '/') len--;
  while (len > 1 && path[len - 1] == '/') len--;
  const char *from = len ? path : ".";
  if (len == 0) len = 1;
  *dir = str_dup(from, len);
  return *dir ? LODE_OK : err_nomem(err);
}

lode_status os_sync_dir(int fd, const char *what, lode_error *err) {
  /* Some file systems cannot sync a directory and return EINVAL: nothing more can be done there. */
  int rc = fd < 0 ? -1 : OS_RETRY(os_api->fsync(fd));
  lode_status st = rc < 0 && (fd < 0 || errno != EINVAL) ? err_errno(err, errno, what) : LODE_OK;
  if (fd >= 0) (void)os_api->close(fd);
  return st;
}

void os_set_mode(int fd, const struct stat *made, unsigned mode) {
  unsigned inherited = made->st_mode & 07000; /* a directory's group may be that of its parent's */
  if ((made->st_mode & 0777) != mode) (void)OS_RETRY(os_api->fchmod(fd, inherited | mode));
}

lode_status os_sync_parent_dir(const char *path, lode_error *err) {
  char *dir = NULL;
  TRY(os_parent_dir(path, &dir, err));
  lode_status st = os_sync_dir(OS_RETRY(os_api->open(dir, O_RDONLY | O_DIRECTORY, 0)), dir, err);
  mem_free(dir);
  return st;
}
