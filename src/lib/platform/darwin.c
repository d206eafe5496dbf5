/* SPDX-License-Identifier: Apache-2.0 */
/* darwin.c - macOS: POSIX, and the few calls that are better there. fsync() leaves data in the drive's cache, so syncs
 * are F_FULLFSYNC. pipe2 and SOCK_CLOEXEC are missing, or too new to rely on. */
#include "platform/platform_internal.h"

#if OS_DARWIN

#include <mach-o/dyld.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <unistd.h>

int os_sys_open_below(int dir, const char *path, int flags, unsigned mode) {
  return os_portable_open_below(dir, path, flags, mode);
}

/* Some file systems (SMB, old FAT drivers) do not know F_FULLFSYNC. */
int os_sys_fsync(int fd) { return OS_RETRY(fcntl(fd, F_FULLFSYNC)) == 0 ? 0 : os_portable_fsync(fd); }
int os_sys_fdatasync(int fd) { return os_sys_fsync(fd); }

#if defined(F_OFD_SETLK) && defined(F_OFD_GETLK)
int os_sys_close(int fd) {
  int rc = close(fd);
  return rc < 0 && errno == EINTR ? 0 : rc;
}
int os_sys_lock(int fd, short type, off_t start, off_t len) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
  int rc = OS_RETRY(fcntl(fd, F_OFD_SETLK, &range));
  if (rc < 0 && errno == EACCES) errno = EAGAIN; /* POSIX allows either */
  return rc;
}
int os_sys_lock_held(int fd, short type, off_t start, off_t len) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
  int rc = OS_RETRY(fcntl(fd, F_OFD_GETLK, &range));
  return rc < 0 ? -1 : range.l_type != F_UNLCK;
}
#else
int os_sys_close(int fd) { return os_portable_close(fd); }
int os_sys_lock(int fd, short type, off_t start, off_t len) { return os_portable_lock(fd, type, start, len); }
int os_sys_lock_held(int fd, short type, off_t start, off_t len) { return os_portable_lock_held(fd, type, start, len); }
#endif

int os_sys_nameless_file(void) { return os_portable_nameless_file(); }
int os_sys_pipe(int ends[2]) { return os_portable_pipe(ends); }
int os_sys_socket_pair(int ends[2]) { return os_portable_socket_pair(ends); }
int os_sys_socket(int family, int type) { return os_portable_socket(family, type); }
void os_sys_close_from(int first) { os_portable_close_from(first); }
bool os_sys_no_new_privs(void) { return false; }

int os_random(void *buf, size_t n, bool now) {
  (void)now; /* it never waits */
  for (size_t done = 0; done < n;) {
    size_t step = n - done < 256 ? n - done : 256; /* the most that one call gives */
    if (getentropy((char *)buf + done, step) != 0) return -1;
    done += step;
  }
  return 0;
}

int os_sys_birth(const char *path, os_birth *out) {
  struct stat st;
  if (lstat(path, &st) != 0) return -1;
  *out = (os_birth){st.st_ino, st.st_birthtimespec.tv_sec, (uint32_t)st.st_birthtimespec.tv_nsec};
  if (out->seconds > 0) return 0;
  errno = ENOTSUP;
  return -1;
}

os_fs_kind os_fs_kind_of(const char *path, char *name, size_t name_size) {
  struct statfs fs;
  if (name_size) name[0] = '\0';
  if (OS_RETRY(statfs(path, &fs)) < 0 || fs.f_flags & MNT_LOCAL) return OS_FS_LOCAL;
  if (name_size) snprintf(name, name_size, "%s", fs.f_fstypename);
  return OS_FS_NETWORK;
}

#endif
