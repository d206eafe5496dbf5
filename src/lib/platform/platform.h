/* SPDX-License-Identifier: Apache-2.0 */
/* platform.h - the door to the operating system: which one it is, and the table of calls.
 *
 * There are three implementations. `linux` and `darwin` are chosen by the compiler; `posix` (make PLATFORM=posix) uses
 * nothing that only one system has. Files without a suffix are shared, linux.c, darwin.c and posix.c have what differs,
 * portable.c what more than one of them uses. Code outside this room knows no system by name: it calls functions of
 * this room, and tools/check-platform.sh refuses other headers and calls.
 *
 * Everything that uses a file, a clock or another program goes through the table os_api, so that tests can make call N
 * fail, return short or be interrupted, can lose what was not synced, and can count calls. The functions have the
 * contracts of their POSIX namesakes (-1 and errno). Files are never memory-mapped: the table has no such entry.
 *
 * Locks belong to an open file description: two descriptors from two opens conflict even within one process, and
 * closing one never releases the other's. Descriptors are CLOEXEC and above 2.
 */
#ifndef LODE_PLATFORM_PLATFORM_H
#define LODE_PLATFORM_PLATFORM_H

#include "platform/dirlist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define OS_LINUX 0
#define OS_DARWIN 0
#if defined(LODE_PLATFORM_POSIX)
#define OS_NAME "posix"
#elif defined(__linux__)
#undef OS_LINUX
#define OS_LINUX 1
#define OS_NAME "linux"
#elif defined(__APPLE__)
#undef OS_DARWIN
#define OS_DARWIN 1
#define OS_NAME "darwin"
#else
#define OS_NAME "posix"
#endif

struct os_spawn_options; /* process.h */

typedef struct os_birth {
  uint64_t ino;
  int64_t seconds;
  uint32_t ns;
} os_birth;

typedef struct os_calls {
  int (*open)(const char *path, int flags, unsigned mode);
  int (*close)(int fd);
  ssize_t (*pread)(int fd, void *buf, size_t n, off_t off);
  ssize_t (*pwrite)(int fd, const void *buf, size_t n, off_t off);
  int (*ftruncate)(int fd, off_t size);
  int (*fsync)(int fd); /* file or directory; what was written survives a power cut, also in the drive's cache */
  int (*fdatasync)(int fd);
  int (*fstat)(int fd, struct stat *st);
  int (*fchmod)(int fd, unsigned mode);
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
  /* The next entry of an open directory, without . and ..: 1; 0: there are no more; -1: it cannot be read further. */
  int (*dir_next)(os_dir *dir, const char **name, os_kind *kind);
  int (*birth)(const char *path, os_birth *out); /* does not follow links; ENOTSUP: the file system does not tell */
  /* os_spawn() and os_start() of process.h */
  pid_t (*spawn)(const struct os_spawn_options *options, int *fd, bool *refused);
  pid_t (*start)(char *const *argv, int in, int out);
  uint64_t (*wall_ms)(void); /* since 1970 (UTC); somebody may set it, also back */
  uint64_t (*now_ns)(void);  /* monotonic */
  void (*sleep_us)(uint64_t us);
} os_calls;

extern const os_calls os_real;
/* The same with POSIX calls only: os_real of the platform `posix`. Here on every platform, so that tests can use it. */
extern const os_calls os_portable;
/* The table in use. Only tests assign it, before any store is open. */
extern const os_calls *os_api;

/* How to open a directory for the calls that take one: not through a link. */
#if OS_LINUX
#define OS_OPEN_DIR (O_PATH | O_DIRECTORY | O_NOFOLLOW)
#define OS_OPEN_STAT O_PATH /* only for fstat */
#define OS_OPEN_NAMELESS O_TMPFILE
#else
#define OS_OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#define OS_OPEN_STAT (O_RDONLY | O_NONBLOCK | O_NOCTTY)
#define OS_OPEN_NAMELESS 0 /* not to be had: a file is created and unlinked */
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

/* Times of a stat, in nanoseconds. */
static inline int64_t os_timespec_ns(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }
#ifdef __APPLE__
static inline int64_t os_mtime_ns(const struct stat *st) { return os_timespec_ns(st->st_mtimespec); }
static inline int64_t os_ctime_ns(const struct stat *st) { return os_timespec_ns(st->st_ctimespec); }
#else
static inline int64_t os_mtime_ns(const struct stat *st) { return os_timespec_ns(st->st_mtim); }
static inline int64_t os_ctime_ns(const struct stat *st) { return os_timespec_ns(st->st_ctim); }
#endif

/* Random bytes from the system. -1 and errno: none can be had. `now`: fails (EAGAIN) instead of waiting for the system
 * to gather them, early at boot. */
int os_random(void *buf, size_t n, bool now);
/* Wall clock, milliseconds since 1970 (UTC). */
uint64_t os_wall_ms(void);
/* Identifies a file among all that have been or will be at its path: inode and birth time, as text. (Not the device,
 * whose number may change with the next boot or mount.) *exact is false if the file system records no birth times: then
 * it is device and inode, and a later file may have the same. "" if there is no file. Does not follow links. */
void os_file_identity(const char *path, char *text, size_t size, bool *exact);
/* Can the locks of the file system at path be trusted? Not those of a network one, or of the host of a virtual machine
 * (NFS, SMB, vboxsf; `name` says which), nor those of a Windows drive that is seen through WSL. What is unknown counts
 * as local. */
typedef enum os_fs_kind { OS_FS_LOCAL, OS_FS_NETWORK, OS_FS_WINDOWS } os_fs_kind;
os_fs_kind os_fs_kind_of(const char *path, char *name, size_t name_size);
/* To be called first in main(): where the system does not know the path of the running program, this does. */
void os_program_started_as(const char *argv0);
/* The path of the running program; false if it is unknown or does not fit. */
bool os_program_path(char *path, size_t size);
/* What to start to run this program again; it may be a name that only the system understands. */
const char *os_program_again(void);
/* The name of the running program, for messages; "" if it is unknown. */
void os_program_name(char *name, size_t size);

/* qsort with a context for the comparison. */
void os_sort(void *first, size_t n, size_t size, int (*compare)(const void *a, const void *b, void *ctx), void *ctx);
/* The last `c` in the n bytes at s, or NULL. */
const void *os_memrchr(const void *s, int c, size_t n);
/* The text of an errno, in buf or constant. */
const char *os_error_text(int errnum, char *buf, size_t size);

#endif
