/* SPDX-License-Identifier: Apache-2.0 */
/* portable.c - calls made of POSIX only: all of the platform `posix`, most of `darwin`, and what `linux` falls back to
 * on an old kernel. locks_table.c has the locks. */
#include "platform/platform_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Files ---- */

/* Component by component. */
int os_portable_open_below(int dir, const char *path, int flags, unsigned mode) {
  char name[256];
  int at = dir, fd = -1;
  for (;;) {
    size_t len = strcspn(path, "/");
    if (len == 0 || len >= sizeof name || (len == 2 && path[0] == '.' && path[1] == '.')) {
      errno = len >= sizeof name ? ENAMETOOLONG : len ? EXDEV : ENOENT;
      fd = -1;
    } else {
      memcpy(name, path, len);
      name[len] = '\0';
      bool last = path[len] == '\0';
      do {
        fd = openat(at, name, (last ? flags : OS_OPEN_DIR) | O_NOFOLLOW | O_CLOEXEC, last ? (mode_t)mode : 0);
      } while (fd < 0 && errno == EINTR);
      fd = os_loop_errno(fd, at, name);
      path += len + !last;
      if (fd >= 0 && last) path = NULL;
    }
    if (at != dir) os_close_quietly(at);
    if (fd < 0 || !path) return os_above_stdio(fd);
    at = fd;
  }
}

int os_portable_fsync(int fd) { return OS_RETRY(fsync(fd)); }
int os_portable_fdatasync(int fd) { return OS_RETRY(fsync(fd)); }

int os_portable_random(void *buf, size_t n, bool now) {
  int fd = OS_RETRY(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  size_t done = 0;
  (void)now; /* it never waits */
  while (fd >= 0 && done < n) {
    ssize_t got = OS_RETRY(read(fd, (char *)buf + done, n - done));
    if (got == 0) errno = EIO;
    if (got <= 0) break;
    done += (size_t)got;
  }
  os_close_quietly(fd);
  return done == n ? 0 : -1;
}

int os_portable_nameless_file(void) {
  const char *dir = getenv("TMPDIR");
  char path[1100];
  int fd = -1;
  if (!dir || dir[0] != '/' || strlen(dir) > 1000) dir = "/tmp";
  for (int tries = 0; fd < 0 && tries < 16; tries++) {
    uint64_t number;
    if (os_random(&number, sizeof number, true) < 0) return -1;
    snprintf(path, sizeof path, "%s/lode-%016llx", dir, (unsigned long long)number);
    fd = OS_RETRY(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd >= 0) unlink(path);
  return os_above_stdio(fd);
}

/* ---- Descriptors ---- */

/* A child that another thread forks before the flag is set inherits the descriptor; proc_spawn() closes all that it
 * does not know, and nothing waits for such a descriptor to be closed. */
static int portable_cloexec(int rc, int ends[2]) {
  if (rc != 0) return rc;
  if (fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0) return 0;
  os_close_quietly(ends[0]);
  os_close_quietly(ends[1]);
  return -1;
}

#ifdef __APPLE__
#define OS_NOSIGPIPE SO_NOSIGPIPE
#endif

/* Where MSG_NOSIGNAL is not honoured. */
static void portable_no_sigpipe(int fd) {
#ifdef OS_NOSIGPIPE
  int one = 1;
  (void)setsockopt(fd, SOL_SOCKET, OS_NOSIGPIPE, &one, sizeof one);
#else
  (void)fd;
#endif
}

int os_portable_pipe(int ends[2]) { return portable_cloexec(pipe(ends), ends); }

int os_portable_socket_pair(int ends[2]) {
  int rc = portable_cloexec(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), ends);
  if (rc == 0) portable_no_sigpipe(ends[0]);
  if (rc == 0) portable_no_sigpipe(ends[1]);
  return rc;
}

int os_portable_socket(int family, int type) {
  int fd = socket(family, type, 0);
  if (fd < 0) return -1;
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    os_close_quietly(fd);
    return -1;
  }
  portable_no_sigpipe(fd);
  return fd;
}

void os_portable_close_from(int first) {
  long max = sysconf(_SC_OPEN_MAX);
  if (max < 0 || max > 65536) max = 65536;
  for (int fd = first; fd < (int)max; fd++) close(fd);
}
