/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the tables os_real and os_portable, and the calls that are the same on every platform. Calls interrupted by
 * a signal are retried here and, because a test's table may interrupt too, by their callers. */
#include "platform/platform_internal.h"
#include "platform/process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Descriptors ---- */

void os_close_quietly(int fd) {
  int errnum = errno;
  if (fd >= 0) close(fd);
  errno = errnum;
}

int os_above_stdio(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), errnum = errno;
  (void)os_sys_close(fd); /* a plain close could release locks of the file */
  errno = errnum;
  return up;
}

/* ---- Files ---- */

static int real_open(const char *path, int flags, unsigned mode) {
  return os_above_stdio(OS_RETRY(open(path, flags | O_CLOEXEC, (mode_t)mode)));
}

static ssize_t real_pread(int fd, void *buf, size_t n, off_t off) { return pread(fd, buf, n, off); }
static ssize_t real_pwrite(int fd, const void *buf, size_t n, off_t off) { return pwrite(fd, buf, n, off); }
static int real_ftruncate(int fd, off_t size) { return OS_RETRY(ftruncate(fd, size)); }
static int real_fstat(int fd, struct stat *st) { return fstat(fd, st); }
static int real_fchmod(int fd, unsigned mode) { return fchmod(fd, (mode_t)mode); }
static int real_stat(const char *path, struct stat *st) { return stat(path, st); }

int os_loop_errno(int fd, int dir, const char *path) {
  struct stat st;
  if (fd < 0 && errno == ENOTDIR)
    errno = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
  return fd;
}

static int real_lstat_at(int dir, const char *name, struct stat *st) {
  return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
}

/* Accepts a name, not a path: no component could be a link. */
static bool os_is_one_name(const char *name) {
  if (!strchr(name, '/')) return true;
  errno = EXDEV;
  return false;
}

static int real_unlink_at(int dir, const char *name) { return os_is_one_name(name) ? unlinkat(dir, name, 0) : -1; }
static int real_rename_at(int from_dir, const char *from, int to_dir, const char *to) {
  return os_is_one_name(from) && os_is_one_name(to) ? renameat(from_dir, from, to_dir, to) : -1;
}
static int real_mkdir_at(int dir, const char *name, unsigned mode) {
  return os_is_one_name(name) ? mkdirat(dir, name, (mode_t)mode) : -1;
}
static int real_rmdir_at(int dir, const char *name) {
  return os_is_one_name(name) ? unlinkat(dir, name, AT_REMOVEDIR) : -1;
}

static int real_unlink(const char *path) { return unlink(path); }
static int real_rename(const char *from, const char *to) { return rename(from, to); }
static int real_mkdir(const char *path, unsigned mode) { return mkdir(path, (mode_t)mode); }
static int real_rmdir(const char *path) { return rmdir(path); }

/* ---- Clocks ---- */

uint64_t os_clock_ns(int clock) {
  struct timespec now = {0};
  clock_gettime((clockid_t)clock, &now);
  return (uint64_t)os_timespec_ns(now);
}

static uint64_t real_now_ns(void) { return os_clock_ns(CLOCK_MONOTONIC); }

static void real_sleep_us(uint64_t us) {
  struct timespec left = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) continue;
}

static uint64_t real_wall_ms(void) { return os_clock_ns(CLOCK_REALTIME) / 1000000u; }

/* ---- The tables ---- */

#define SHARED_CALLS                                                                                                   \
  .open = real_open, .pread = real_pread, .pwrite = real_pwrite, .ftruncate = real_ftruncate, .fstat = real_fstat,     \
  .fchmod = real_fchmod, .stat = real_stat, .lstat_at = real_lstat_at, .unlink_at = real_unlink_at,                    \
  .rename_at = real_rename_at, .mkdir_at = real_mkdir_at, .rmdir_at = real_rmdir_at, .unlink = real_unlink,            \
  .rename = real_rename, .mkdir = real_mkdir, .rmdir = real_rmdir, .dir_next = os_shared_dir_next,                     \
  .spawn = os_shared_spawn, .start = os_shared_start, .wall_ms = real_wall_ms, .now_ns = real_now_ns,                  \
  .sleep_us = real_sleep_us

const os_calls os_real = {SHARED_CALLS,
                          .close = os_sys_close,
                          .fsync = os_sys_fsync,
                          .fdatasync = os_sys_fdatasync,
                          .open_below = os_sys_open_below,
                          .lock = os_sys_lock,
                          .lock_held = os_sys_lock_held,
                          .birth = os_sys_birth};
const os_calls os_portable = {SHARED_CALLS,
                              .close = os_portable_close,
                              .fsync = os_portable_fsync,
                              .fdatasync = os_portable_fdatasync,
                              .open_below = os_portable_open_below,
                              .lock = os_portable_lock,
                              .lock_held = os_portable_lock_held,
                              .birth = os_sys_birth};

const os_calls *os_api = &os_real;

/* ---- What is made of them ---- */

uint64_t os_wall_ms(void) { return os_api->wall_ms(); }
pid_t os_spawn(const os_spawn_options *options, int *fd, bool *refused) { return os_api->spawn(options, fd, refused); }
pid_t os_start(char *const *argv, int in, int out) { return os_api->start(argv, in, out); }

void os_file_identity(const char *path, char *text, size_t size, bool *exact) {
  struct stat st;
  os_birth birth;
  text[0] = '\0';
  *exact = OS_RETRY(os_api->birth(path, &birth)) == 0;
  if (*exact)
    snprintf(text, size, "%llx-%llx.%x", (unsigned long long)birth.ino, (unsigned long long)birth.seconds, birth.ns);
  else if (OS_RETRY(os_api->lstat_at(AT_FDCWD, path, &st)) == 0)
    snprintf(text, size, "%llx-%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

const char *os_error_text(int errnum, char *buf, size_t size) {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  return strerror_r(errnum, buf, size);
#else
  if (strerror_r(errnum, buf, size) != 0) snprintf(buf, size, "error %d", errnum);
  return buf;
#endif
}
