/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.c - see beneath.h. */
#include "os/beneath.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

lode_status beneath_resolve(const char *path, char **resolved, lode_error *err) {
  char cwd[4096];
  struct stat st;
  strbuf b = {0};
  *resolved = NULL;
  size_t len = strlen(path);
  while (len > 1 && path[len - 1] == '/') len--;
  if (path[0] != '/') {
    if (!getcwd(cwd, sizeof cwd)) return err_errno(err, errno, "the current directory");
    strbuf_addstr(&b, strcmp(cwd, "/") == 0 ? "" : cwd);
    strbuf_addch(&b, '/');
  }
  strbuf_add(&b, path, len);
  strbuf_addch(&b, '\0');
  char *target = NULL;
  bool exists = !b.failed && OS_RETRY(os_api->lstat_at(AT_FDCWD, b.data, &st)) == 0;
  if (exists && S_ISLNK(st.st_mode)) target = realpath(b.data, NULL);
  if (target) {
    b.len = 0;
    strbuf_add(&b, target, strlen(target) + 1);
    free(target);
  }
  if (b.failed) strbuf_release(&b);
  *resolved = b.data; /* NULL after a release */
  return b.data ? LODE_OK : err_nomem(err);
}

bool beneath_split(const char *path, char *dir, size_t dir_size, const char **name) {
  const char *slash = strrchr(path, '/');
  size_t len = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
  if (len == 0 || len >= dir_size) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(dir, path, len);
  dir[len] = '\0';
  *name = slash + 1;
  return true;
}

/* ---- Reaching a directory ---- */

static void close_keeping_errno(int fd) {
  int errnum = errno;
  if (fd >= 0) (void)os_api->close(fd);
  errno = errnum;
}

int beneath_open_dir(const char *dir) {
  struct stat st;
  int fd = OS_RETRY(os_api->open(dir, OS_OPEN_DIR, 0));
  if (fd < 0 && errno == ENOTDIR) { /* also returned for a link */
    errno = OS_RETRY(os_api->lstat_at(AT_FDCWD, dir, &st)) == 0 && S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
  }
  return fd;
}

/* Opens the directory that holds the last component of the name. */
static int beneath_open_parent(const char *dir, const char *name, const char **last) {
  char between[PATH_MAX];
  const char *slash = strrchr(name, '/');
  int at = beneath_open_dir(dir), fd;
  *last = slash ? slash + 1 : name;
  if (at < 0 || !slash) return at;
  if ((size_t)(slash - name) >= sizeof between) {
    errno = ENAMETOOLONG;
    fd = -1;
  } else {
    memcpy(between, name, (size_t)(slash - name));
    between[slash - name] = '\0';
    fd = OS_RETRY(os_api->open_below(at, between, OS_OPEN_DIR, 0));
  }
  close_keeping_errno(at);
  return fd;
}

/* ---- Operations ---- */

int beneath_open(const char *dir, const char *name, int flags, unsigned mode) {
  struct stat st;
  const char *last;
  int fd = -1, at = beneath_open_parent(dir, name, &last);
  if (at < 0) return -1;
  int errnum = OS_RETRY(os_api->lstat_at(at, last, &st)) == 0 ? os_not_regular(&st) : errno == ENOENT ? 0 : errno;
  if (errnum)
    errno = errnum;
  else
    fd = os_keep_regular(OS_RETRY(os_api->open_below(at, last, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode)));
  close_keeping_errno(at);
  return fd;
}

int beneath_lstat(const char *dir, const char *name, struct stat *st) {
  const char *last;
  int at = beneath_open_parent(dir, name, &last);
  if (at < 0) return -1;
  int rc = OS_RETRY(os_api->lstat_at(at, last, st));
  close_keeping_errno(at);
  return rc;
}

int beneath_unlink(const char *dir, const char *name) {
  struct stat st;
  const char *last;
  int at = beneath_open_parent(dir, name, &last);
  if (at < 0) return -1;
  int rc = OS_RETRY(os_api->lstat_at(at, last, &st));
  if (rc == 0) {
    errno = os_not_regular(&st);
    rc = errno ? -1 : OS_RETRY(os_api->unlink_at(at, last));
  }
  close_keeping_errno(at);
  return rc;
}

int beneath_set_aside(const char *dir, const char *name) {
  char aside[NAME_MAX + 1];
  struct stat st;
  const char *last;
  const uint64_t now = os_wall_ms();
  int rc = 0, at = beneath_open_parent(dir, name, &last);
  if (at < 0) return -1;
  for (uint64_t i = 0; i < 1000 && rc == 0; i++) {
    int n = snprintf(aside, sizeof aside, "%s" STOREFILE_QUARANTINE_INFIX "%llu", last, (unsigned long long)(now + i));
    errno = ENAMETOOLONG;
    rc = n < (int)sizeof aside ? OS_RETRY(os_api->lstat_at(at, aside, &st)) : -1;
  }
  if (rc < 0 && errno == ENOENT) {
    rc = OS_RETRY(os_api->rename_at(at, last, at, aside));
  } else if (rc == 0) {
    rc = -1;
    errno = EEXIST;
  }
  close_keeping_errno(at);
  return rc;
}

int beneath_rename(const char *dir, const char *from, const char *to) {
  const char *last, *slash = strrchr(to, '/');
  int at = beneath_open_parent(dir, from, &last);
  if (at < 0) return -1;
  int rc = OS_RETRY(os_api->rename_at(at, last, at, slash ? slash + 1 : to));
  close_keeping_errno(at);
  return rc;
}

int beneath_mkdir(const char *dir, const char *name, unsigned mode) {
  const char *last;
  int at = beneath_open_parent(dir, name, &last);
  if (at < 0) return -1;
  int rc = OS_RETRY(os_api->mkdir_at(at, last, mode));
  close_keeping_errno(at);
  return rc;
}

int beneath_mkdir_parents(const char *dir, const char *name, unsigned mode) {
  char part[PATH_MAX];
  for (const char *p = name; (p = strchr(p, '/')) != NULL; p++) {
    size_t len = (size_t)(p - name);
    if (len >= sizeof part) {
      errno = ENAMETOOLONG;
      return -1;
    }
    memcpy(part, name, len);
    part[len] = '\0';
    if (beneath_mkdir(dir, part, mode) < 0 && errno != EEXIST) return -1;
  }
  return 0;
}

lode_status beneath_sync_dir(const char *dir, const char *name, lode_error *err) {
  const char *last;
  int fd = -1, at = beneath_open_parent(dir, name, &last);
  if (at >= 0) fd = OS_RETRY(os_api->open_below(at, ".", O_RDONLY | O_DIRECTORY, 0));
  close_keeping_errno(at);
  return os_sync_dir(fd, dir, err);
}

os_dir *beneath_list(const char *dir, const char *name) {
  int at = beneath_open_dir(dir);
  if (at < 0) return NULL;
  int fd = OS_RETRY(os_api->open_below(at, name, O_RDONLY | O_DIRECTORY, 0));
  close_keeping_errno(at);
  return fd < 0 ? NULL : os_dir_from_fd(fd);
}
