/* SPDX-License-Identifier: Apache-2.0 */
/* old_glibc.h - system calls that glibc 2.17 has no functions for; included before every source of the library for it.
 * An old kernel says ENOSYS, and the callers have other ways. */
#ifndef LODE_DIST_OLD_GLIBC_H
#define LODE_DIST_OLD_GLIBC_H

#include <linux/stat.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef GRND_NONBLOCK
#define GRND_NONBLOCK 1
#endif

static inline ssize_t dist_getrandom(void *buf, size_t n, unsigned flags) {
  return (ssize_t)syscall(SYS_getrandom, buf, n, flags);
}
#define getrandom dist_getrandom

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif
static inline int dist_memfd_create(const char *name, unsigned flags) {
  return (int)syscall(SYS_memfd_create, name, flags);
}
#define memfd_create dist_memfd_create

static inline int dist_statx(int dir, const char *path, int flags, unsigned mask, struct statx *out) {
  return (int)syscall(SYS_statx, dir, path, flags, mask, out);
}
#define statx(...) dist_statx(__VA_ARGS__)

#endif
