/* SPDX-License-Identifier: Apache-2.0 */
/* os.h - the only interface to the operating system.
 *
 * Everything that uses a file or a clock goes through the table os_api, so that tests can make call N fail, return
 * short or be interrupted, can lose what was not synced, and can count calls. The functions have the contracts of their
 * POSIX namesakes (-1 and errno). Files are never memory-mapped: the table has no such entry.
 *
 * Locks are open-file-description locks (F_OFD_SETLK): unlike POSIX record locks they are not lost when another
 * descriptor of the same file is closed. Descriptors are CLOEXEC.
 */
#ifndef LODE_OS_OS_H
#define LODE_OS_OS_H

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct os_calls {
  int (*open)(const char *path, int flags, unsigned mode);
  int (*close)(int fd);
  ssize_t (*pread)(int fd, void *buf, size_t n, off_t off);
  ssize_t (*pwrite)(int fd, const void *buf, size_t n, off_t off);
  int (*ftruncate)(int fd, off_t size);
  int (*fsync)(int fd); /* file or directory */
  int (*fdatasync)(int fd);
  int (*fstat)(int fd, struct stat *st);
  int (*stat)(const char *path, struct stat *st);
  /* For directories that others may have filled. Opens a relative path below an open directory, or its own "."; no
   * component may be a link or ".." (ELOOP, EXDEV): what is opened or created is below the directory. */
  int (*open_below)(int dir, const char *path, int flags, unsigned mode);
  int (*lstat_at)(int dir, const char *name, struct stat *st); /* does not follow links */
  /* One name in an open directory. If it is a link, the link itself is removed or renamed. */
  int (*unlink_at)(int dir, const char *name);
  int (*rename_at)(int from_dir, const char *from, int to_dir, const char *to);
  int (*mkdir_at)(int dir, const char *name, unsigned mode);
  int (*rmdir_at)(int dir, const char *name);
  int (*unlink)(const char *path);
  int (*rename)(const char *from, const char *to);
  int (*mkdir)(const char *path, unsigned mode);
  int (*rmdir)(const char *path);
  /* type is F_RDLCK, F_WRLCK or F_UNLCK; never waits: EAGAIN if somebody else holds the lock */
  int (*lock)(int fd, short type, off_t start, off_t len);
  /* 1 if another open file description holds a conflicting lock on the range, 0 if none does, -1 on failure */
  int (*lock_held)(int fd, short type, off_t start, off_t len);
  uint64_t (*now_ns)(void); /* monotonic */
  void (*sleep_us)(uint64_t us);
} os_calls;

extern const os_calls os_real;
/* The same with POSIX calls only: what os_real falls back to on a kernel that lacks openat2. */
extern const os_calls os_portable;
/* The table in use. Only tests assign it, before any store is open. */
extern const os_calls *os_api;

/* How to open a directory for the calls that take one: not through a link. */
#ifdef O_PATH
#define OS_OPEN_DIR (O_PATH | O_DIRECTORY | O_NOFOLLOW)
#else
#define OS_OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#endif

/* Retries a call of the table as long as a signal interrupts it. */
#define OS_RETRY(call)                                                                                                 \
  __extension__({                                                                                                      \
    __typeof__(call) retry_;                                                                                           \
    do {                                                                                                               \
      retry_ = (call);                                                                                                 \
    } while (retry_ < 0 && errno == EINTR);                                                                            \
    retry_;                                                                                                            \
  })

/* Opens a file of unknown type for reading. Only regular files are opened (otherwise ENXIO or EISDIR): opening a FIFO
 * waits for its other end, and opening a device may act on it. The path may lead through links. */
int os_open_regular(const char *path);
/* Its two steps: 0, or the errno for a file type; and a descriptor, closed (-1 and errno) unless it is a regular file.
 * */
int os_not_regular(const struct stat *st);
int os_keep_regular(int fd);

/* Complete reads and writes, despite EINTR and short counts. *got < n only at the end of the file. */
LODE_MUST lode_status os_read_full(int fd, void *buf, size_t n, uint64_t off, size_t *got, lode_error *err);
LODE_MUST lode_status os_write_full(int fd, const void *buf, size_t n, uint64_t off, lode_error *err);
/* Syncs the directory of a path: makes creations, renames and removals in it durable. */
LODE_MUST lode_status os_sync_parent_dir(const char *path, lode_error *err);
/* The same for a descriptor that was just opened (if -1, with errno set); closes it. */
LODE_MUST lode_status os_sync_dir(int fd, const char *what, lode_error *err);
/* Lists the names in a directory, without . and .. ; os_dir_next() returns NULL at the end. */
typedef struct os_dir os_dir;
os_dir *os_dir_open(const char *path); /* NULL and errno */
/* The same for an open descriptor, which it takes over (also on failure). */
os_dir *os_dir_from_fd(int fd);
const char *os_dir_next(os_dir *dir);
/* With the type reported by the file system: DT_DIR, DT_REG, DT_LNK, ... or DT_UNKNOWN (dirent.h). *errnum is 0 at the
 * end of the list. */
const char *os_dir_next_kind(os_dir *dir, int *kind, int *errnum);
int os_dir_fd(const os_dir *dir);
void os_dir_close(os_dir *dir);
/* The directory of the program or shared library that contains this code, to find what is installed beside it. False if
 * it is unknown or does not fit. */
LODE_MUST bool os_program_dir(char *dir, size_t size);
/* Starts a thread of the library inside somebody else's program: it blocks signals, which are for the program's
 * threads, except those of a fault, which go to the thread that causes it and must reach a handler. Returns 0 or an
 * errno. */
int os_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* A condition variable that waits by the monotonic clock, as os_deadline() does, so that setting the wall clock neither
 * ends a wait nor prolongs it. Returns 0 or an errno. */
LODE_MUST int os_cond_init(pthread_cond_t *cond);
/* For INVARIANTs of what is called under a lock: does a thread hold it? */
bool os_mutex_is_locked(pthread_mutex_t *mutex);
/* The time ms milliseconds from now, for pthread_cond_timedwait(). */
struct timespec os_deadline(uint64_t ms);
/* Processors that are online; at least 1. */
unsigned os_cpu_count(void);
/* Times of a stat, in nanoseconds. */
static inline int64_t os_timespec_ns(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }
/* Wall clock, milliseconds since 1970 (UTC). */
uint64_t os_wall_ms(void);
/* Identifies a file among all that have been or will be at its path: inode and birth time, as text. (Not the device,
 * whose number may change with the next boot or mount.) *exact is false if the file system records no birth times: then
 * it is device and inode, and a later file may have the same. "" if there is no file. Does not follow links. */
void os_file_identity(const char *path, char *text, size_t size, bool *exact);
/* True if the file system at path is a network one (NFS, SMB, ...): its locks cannot be trusted. */
bool os_is_network_fs(const char *path, char *name, size_t name_size);

#endif
