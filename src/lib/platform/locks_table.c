/* SPDX-License-Identifier: Apache-2.0 */
/* locks_table.c - locks of open file descriptions, made of POSIX record locks.
 *
 * A record lock belongs to a process and an inode: two descriptors of one process never conflict, and closing any
 * descriptor of the inode releases everything. So this table knows, for each inode, which descriptor holds which range:
 *   - a conflict within the process is found in the table, one with another process by fcntl;
 *   - the process holds of a range the strongest lock that any of its descriptors holds. Releasing a shared lock
 *     releases only those parts that no other descriptor holds;
 *   - closing a descriptor while others hold locks on its inode is put off until the last of them is released.
 * This holds as long as nobody closes a descriptor of such a file past os_api. Like the locks themselves, the table is
 * not inherited by a forked child.
 *
 * One mutex guards the table. It is taken around fork, so that the child finds it whole and can empty it.
 */
#include "platform/platform_internal.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct locked_range {
  struct locked_range *next;
  int fd;
  short type;       /* F_RDLCK or F_WRLCK */
  off_t start, end; /* end: the first byte after it, LOCK_END if it has none */
} locked_range;

typedef struct put_off {
  struct put_off *next;
  int fd;
} put_off;

typedef struct locked_file {
  struct locked_file *next;
  dev_t dev;
  ino_t ino;
  locked_range *ranges;
  put_off *closing;
} locked_file;

#define LOCK_END ((off_t)INT64_MAX)

static pthread_mutex_t lock_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static locked_file *locked_files;

/* ---- The table ---- */

static locked_file *locked_file_find(int fd) {
  struct stat st;
  locked_file *file = locked_files;
  if (!file || fstat(fd, &st) != 0) return NULL;
  while (file && (file->dev != st.st_dev || file->ino != st.st_ino)) file = file->next;
  return file;
}

static locked_file *locked_file_add(int fd) {
  struct stat st;
  locked_file *file = locked_file_find(fd);
  if (file || fstat(fd, &st) != 0) return file;
  file = calloc(1, sizeof *file);
  if (!file) return NULL;
  *file = (locked_file){.next = locked_files, .dev = st.st_dev, .ino = st.st_ino};
  return locked_files = file;
}

/* Forgets a file on which nobody holds a lock any more, and does the closing that was put off. */
static void locked_file_settle(locked_file *file) {
  if (file->ranges) return;
  while (file->closing) {
    put_off *c = file->closing;
    file->closing = c->next;
    close(c->fd);
    free(c);
  }
  locked_file **at = &locked_files;
  while (*at != file) at = &(*at)->next;
  *at = file->next;
  free(file);
}

static void lock_before_fork(void) { pthread_mutex_lock(&lock_mutex); }
static void lock_after_fork(void) { pthread_mutex_unlock(&lock_mutex); }

static void lock_in_child(void) {
  while (locked_files) {
    locked_range *r = locked_files->ranges;
    if (r) locked_files->ranges = r->next;
    if (r)
      free(r);
    else
      locked_file_settle(locked_files);
  }
  pthread_mutex_unlock(&lock_mutex);
}

static void lock_prepare(void) { (void)pthread_atfork(lock_before_fork, lock_after_fork, lock_in_child); }

static void lock_enter(void) {
  pthread_once(&lock_once, lock_prepare);
  pthread_mutex_lock(&lock_mutex);
}

/* ---- Ranges ---- */

static off_t range_end(off_t start, off_t len) { return len == 0 || start > LOCK_END - len ? LOCK_END : start + len; }

static bool range_overlaps(const locked_range *r, off_t start, off_t end) { return r->start < end && start < r->end; }

static bool lock_conflicts(const locked_file *file, int fd, short type, off_t start, off_t end) {
  for (const locked_range *r = file ? file->ranges : NULL; r; r = r->next)
    if (r->fd != fd && range_overlaps(r, start, end) && (type == F_WRLCK || r->type == F_WRLCK)) return true;
  return false;
}

static int lock_fcntl(int fd, int command, struct flock *range) {
  int rc = OS_RETRY(fcntl(fd, command, range));
  if (rc < 0 && errno == EACCES) errno = EAGAIN; /* POSIX allows either */
  return rc;
}

static int lock_process_range(int fd, short type, off_t start, off_t end) {
  struct flock range = {
      .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = end == LOCK_END ? 0 : end - start};
  return lock_fcntl(fd, F_SETLK, &range);
}

/* Releases what no other descriptor holds. */
static int lock_release_range(const locked_file *file, int fd, off_t start, off_t end) {
  int rc = 0;
  while (start < end) {
    off_t held_to = start, free_to = end;
    for (const locked_range *r = file->ranges; r; r = r->next) {
      if (r->fd == fd || !range_overlaps(r, start, end)) continue;
      if (r->start <= start && r->end > held_to) held_to = r->end;
      if (r->start > start && r->start < free_to) free_to = r->start;
    }
    if (held_to == start && lock_process_range(fd, F_UNLCK, start, free_to) < 0) rc = -1;
    start = held_to > start ? held_to : free_to;
  }
  return rc;
}

/* Takes the range away from the descriptor's ranges. `spare` is used when one is split in two; returns it if not. */
static locked_range *ranges_cut(locked_file *file, int fd, off_t start, off_t end, locked_range *spare) {
  for (locked_range **at = &file->ranges; *at;) {
    locked_range *r = *at;
    if (r->fd != fd || !range_overlaps(r, start, end)) {
      at = &r->next;
    } else if (r->start < start && r->end > end) {
      *spare = (locked_range){.next = r->next, .fd = fd, .type = r->type, .start = end, .end = r->end};
      r->end = start;
      r->next = spare;
      return NULL; /* no other range of this descriptor overlaps */
    } else if (r->start < start) {
      r->end = start;
      at = &r->next;
    } else if (r->end > end) {
      r->start = end;
      at = &r->next;
    } else {
      *at = r->next;
      free(r);
    }
  }
  return spare;
}

static int lock_apply(locked_file *file, int fd, short type, off_t start, off_t end) {
  locked_range *spare = malloc(sizeof *spare), *range = type == F_UNLCK ? NULL : malloc(sizeof *range);
  int rc = -1;
  if (!spare || (type != F_UNLCK && !range))
    errno = ENOLCK;
  else if (type == F_UNLCK)
    rc = lock_release_range(file, fd, start, end);
  else
    rc = lock_process_range(fd, type, start, end);
  if (rc == 0) {
    spare = ranges_cut(file, fd, start, end, spare);
    if (range) {
      *range = (locked_range){.next = file->ranges, .fd = fd, .type = type, .start = start, .end = end};
      file->ranges = range;
      range = NULL;
    }
  }
  free(spare);
  free(range);
  return rc;
}

/* ---- Calls ---- */

int os_portable_lock(int fd, short type, off_t start, off_t len) {
  off_t end = range_end(start, len);
  int rc = -1;
  lock_enter();
  locked_file *file = type == F_UNLCK ? locked_file_find(fd) : locked_file_add(fd);
  if (!file && type == F_UNLCK)
    rc = fcntl(fd, F_GETFD) < 0 ? -1 : 0;
  else if (!file)
    errno = fcntl(fd, F_GETFD) < 0 ? EBADF : ENOLCK;
  else if (type != F_UNLCK && lock_conflicts(file, fd, type, start, end))
    errno = EAGAIN;
  else
    rc = lock_apply(file, fd, type, start, end);
  int errnum = errno;
  if (file) locked_file_settle(file);
  pthread_mutex_unlock(&lock_mutex);
  errno = errnum;
  return rc;
}

int os_portable_lock_held(int fd, short type, off_t start, off_t len) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
  lock_enter();
  bool here = lock_conflicts(locked_file_find(fd), fd, type, start, range_end(start, len));
  int rc = here ? 0 : lock_fcntl(fd, F_GETLK, &range);
  pthread_mutex_unlock(&lock_mutex);
  return here ? 1 : rc < 0 ? -1 : range.l_type != F_UNLCK;
}

/* The descriptor is closed when nobody needs the locks of its inode; until then its number stays taken. */
int os_portable_close(int fd) {
  int rc = 0;
  lock_enter();
  locked_file *file = locked_file_find(fd);
  if (file) {
    put_off *later = malloc(sizeof *later);
    for (locked_range *r = file->ranges; r;) {
      locked_range own = *r;
      r = r->next;
      if (own.fd != fd) continue;
      (void)lock_release_range(file, fd, own.start, own.end);
      (void)ranges_cut(file, fd, own.start, own.end, NULL);
      r = file->ranges;
    }
    if (later) {
      *later = (put_off){.next = file->closing, .fd = fd};
      file->closing = later;
    } /* else it stays open: better than to lose the locks of others */
    locked_file_settle(file);
  } else {
    rc = close(fd);
    if (rc < 0 && errno == EINTR) rc = 0; /* it is closed: retrying could close somebody else's */
  }
  pthread_mutex_unlock(&lock_mutex);
  return rc;
}
