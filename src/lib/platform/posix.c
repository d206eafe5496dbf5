/* SPDX-License-Identifier: Apache-2.0 */
/* posix.c - the platform `posix`: nothing that only one system has. */
#include "platform/platform_internal.h"

#if !OS_LINUX && !OS_DARWIN

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int os_sys_open_below(int dir, const char *path, int flags, unsigned mode) {
  return os_portable_open_below(dir, path, flags, mode);
}
int os_sys_close(int fd) { return os_portable_close(fd); }
int os_sys_fsync(int fd) { return os_portable_fsync(fd); }
int os_sys_fdatasync(int fd) { return os_portable_fdatasync(fd); }
int os_sys_lock(int fd, short type, off_t start, off_t len) { return os_portable_lock(fd, type, start, len); }
int os_sys_lock_held(int fd, short type, off_t start, off_t len) { return os_portable_lock_held(fd, type, start, len); }
int os_sys_nameless_file(void) { return os_portable_nameless_file(); }
int os_sys_pipe(int ends[2]) { return os_portable_pipe(ends); }
int os_sys_socket_pair(int ends[2]) { return os_portable_socket_pair(ends); }
int os_sys_socket(int family, int type) { return os_portable_socket(family, type); }
void os_sys_close_from(int first) { os_portable_close_from(first); }
bool os_sys_no_new_privs(void) { return false; }
int os_random(void *buf, size_t n, bool now) { return os_portable_random(buf, n, now); }

/* POSIX has no birth times. */
int os_sys_birth(const char *path, os_birth *out) {
  (void)path, (void)out;
  errno = ENOTSUP;
  return -1;
}

/* POSIX does not tell file systems apart. */
os_fs_kind os_fs_kind_of(const char *path, char *name, size_t name_size) {
  (void)path;
  if (name_size) name[0] = '\0';
  return OS_FS_LOCAL;
}

#endif
