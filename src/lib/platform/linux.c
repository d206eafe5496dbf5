/* SPDX-License-Identifier: Apache-2.0 */
/* linux.c - what Linux has of its own: openat2, open-file-description locks, statx, getrandom, memfd, close_range. */
#include "platform/platform_internal.h"

#if OS_LINUX

#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- Files ---- */

/* openat2 returns EAGAIN if a rename kept it from proving that the path stays below the directory, and also as long as
 * somebody holds a lease on the file. So it is tried a few times, then component by component, where EAGAIN is final.
 * */
enum { OPENAT2_TRIES = 16 };

int os_sys_open_below(int dir, const char *path, int flags, unsigned mode) {
  struct open_how how = {.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
                         .mode = flags & O_CREAT ? mode : 0,
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  long fd;
  int tries = 0;
  do {
    fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < OPENAT2_TRIES)));
  /* EPERM: a sandbox that does not know the call */
  if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
    return os_portable_open_below(dir, path, flags, mode);
  return os_above_stdio(os_loop_errno((int)fd, dir, path));
}

int os_sys_close(int fd) {
  /* Linux closes the descriptor even on EINTR: retrying could close somebody else's. */
  int rc = close(fd);
  return rc < 0 && errno == EINTR ? 0 : rc;
}

int os_sys_fsync(int fd) { return OS_RETRY(fsync(fd)); }
int os_sys_fdatasync(int fd) { return OS_RETRY(fdatasync(fd)); }

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

int os_sys_birth(const char *path, os_birth *out) {
#ifdef STATX_BTIME
  struct statx s;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &s) != 0) return -1;
  *out = (os_birth){s.stx_ino, s.stx_btime.tv_sec, s.stx_btime.tv_nsec};
  if (s.stx_mask & STATX_INO && s.stx_mask & STATX_BTIME) return 0;
#else
  (void)path, (void)out;
#endif
  errno = ENOTSUP;
  return -1;
}

int os_sys_nameless_file(void) {
  int fd = memfd_create("lode", MFD_CLOEXEC);
  return fd < 0 ? os_portable_nameless_file() : os_above_stdio(fd);
}

static const struct {
  uint32_t magic;
  const char *name;
} network_systems[] = {
    {0x6969, "NFS"},        {0xFF534D42, "CIFS"},     {0xFE534D42, "SMB2"},   {0x517B, "SMB"},
    {0x01021997, "9P"},     {0x5346414F, "AFS"},      {0x6B414653, "AFS"},    {0x00C36400, "Ceph"},
    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},     {0x73757245, "Coda"},   {0x564C, "NCP"},
    {0x7461636F, "OCFS2"},  {0x01161970, "GFS2"},     {0x19830326, "BeeGFS"}, {0xAAD7AAEA, "PanFS"},
    {0xBEEFDEAD, "SNFS"},   {0x20030528, "OrangeFS"}, {0x786F4256, "vboxsf"}, {0xBACBACBC, "vmhgfs"},
};

/* Under WSL the drives of Windows are below /mnt: /mnt/c. */
static bool fs_is_drive_path(const char *path) {
  return strncmp(path, "/mnt/", 5) == 0 && path[5] >= 'a' && path[5] <= 'z' && (path[6] == '/' || path[6] == '\0');
}

os_fs_kind os_linux_fs_kind(uint32_t magic, const char *release, const char *path, const char **name) {
  *name = "";
  if ((strstr(release, "microsoft") || strstr(release, "Microsoft")) && fs_is_drive_path(path)) {
    *name = "WSL";
    return OS_FS_WINDOWS;
  }
  for (size_t i = 0; i < sizeof network_systems / sizeof network_systems[0]; i++) {
    if (magic != network_systems[i].magic) continue;
    *name = network_systems[i].name;
    return OS_FS_NETWORK;
  }
  return OS_FS_LOCAL;
}

os_fs_kind os_fs_kind_of(const char *path, char *name, size_t name_size) {
  struct statfs fs;
  struct utsname system;
  const char *found;
  if (name_size) name[0] = '\0';
  if (OS_RETRY(statfs(path, &fs)) < 0 || uname(&system) < 0) return OS_FS_LOCAL;
  char *real = realpath(path, NULL);
  os_fs_kind kind = os_linux_fs_kind((uint32_t)fs.f_type, system.release, real ? real : path, &found);
  free(real);
  if (name_size) snprintf(name, name_size, "%s", found);
  return kind;
}

/* ---- The process ---- */

int os_random(void *buf, size_t n, bool now) {
  for (size_t done = 0; done < n;) {
    ssize_t got = getrandom((char *)buf + done, n - done, now ? GRND_NONBLOCK : 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    done += (size_t)got;
  }
  return 0;
}

bool os_program_path(char *path, size_t size) {
  ssize_t n = size > 1 ? readlink("/proc/self/exe", path, size - 1) : 0;
  if (n <= 0 || (size_t)n >= size - 1) return false;
  path[n] = '\0';
  return strchr(path, '/') != NULL;
}

void os_program_started_as(const char *argv0) { (void)argv0; }

void os_program_name(char *name, size_t size) {
  int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd >= 0 && size ? read(fd, name, size - 1) : 0;
  os_close_quietly(fd);
  if (size) name[got > 0 ? got : 0] = '\0';
  if (size) name[strcspn(name, "\n")] = '\0';
}

/* Works in a changed root and after the file was replaced by another version. */
const char *os_program_again(void) { return "/proc/self/exe"; }

int os_sys_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }
int os_sys_socket_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); }
int os_sys_socket(int family, int type) { return socket(family, type | SOCK_CLOEXEC, 0); }

void os_sys_close_from(int first) {
  if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) != 0) os_portable_close_from(first);
}

bool os_sys_no_new_privs(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; }

/* ---- Memory and text ---- */

void os_sort(void *first, size_t n, size_t size, int (*compare)(const void *a, const void *b, void *ctx), void *ctx) {
  qsort_r(first, n, size, compare, ctx);
}

const void *os_memrchr(const void *s, int c, size_t n) { return memrchr(s, c, n); }

#endif
