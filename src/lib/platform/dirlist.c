/* SPDX-License-Identifier: Apache-2.0 */
/* dirlist.c - see dirlist.h. An os_dir is a DIR. */
#include "platform/dirlist.h"

#include "platform/platform_internal.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static DIR *dir_stream(const os_dir *dir) { return (DIR *)(uintptr_t)dir; }

os_dir *os_dir_open(const char *path) {
  int fd = OS_RETRY(os_api->open(path, O_RDONLY | O_DIRECTORY, 0));
  return fd < 0 ? NULL : os_dir_from_fd(fd);
}

os_dir *os_dir_from_fd(int fd) {
  DIR *stream = fdopendir(fd);
  if (!stream) {
    int errnum = errno;
    (void)os_api->close(fd);
    errno = errnum;
  }
  return (os_dir *)stream;
}

static os_kind dir_kind(const struct dirent *e) {
#ifdef DT_UNKNOWN
  switch (e->d_type) {
    case DT_REG: return OS_KIND_FILE;
    case DT_DIR: return OS_KIND_DIR;
    case DT_LNK: return OS_KIND_LINK;
    case DT_UNKNOWN: return OS_KIND_UNKNOWN;
    default: return OS_KIND_OTHER;
  }
#else
  (void)e;
  return OS_KIND_UNKNOWN;
#endif
}

int os_shared_dir_next(os_dir *dir, const char **name, os_kind *kind) {
  struct dirent *e;
  do {
    errno = 0;
    e = readdir(dir_stream(dir));
  } while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
  if (!e) return errno ? -1 : 0;
  *name = e->d_name;
  *kind = dir_kind(e);
  return 1;
}

const char *os_dir_next_kind(os_dir *dir, os_kind *kind, int *errnum) {
  const char *name = NULL;
  *kind = OS_KIND_UNKNOWN;
  int got = OS_RETRY(os_api->dir_next(dir, &name, kind));
  *errnum = got < 0 ? errno : 0;
  return got > 0 ? name : NULL;
}

const char *os_dir_next(os_dir *dir) {
  os_kind kind;
  int errnum;
  return os_dir_next_kind(dir, &kind, &errnum);
}

int os_dir_fd(const os_dir *dir) { return dirfd(dir_stream(dir)); }

void os_dir_close(os_dir *dir) {
  if (dir) closedir(dir_stream(dir));
}
