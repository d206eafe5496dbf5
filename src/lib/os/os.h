/* os.h - one door to the operating system.
 *
 * Everything that touches a file or a clock goes through the table os_api, so that tests can let call N fail,
 * be short or be interrupted, can lose what was not synced, and can count. The functions have the contracts of
 * their POSIX namesakes (-1 and errno). Files are never mapped: the table has no such entry.
 *
 * Locks are open-file-description locks (F_OFD_SETLK): unlike POSIX record locks they are not lost when some
 * other descriptor of the same file is closed. Descriptors are CLOEXEC.
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
  int (*fsync)(int fd);      /* file or folder */
  int (*fdatasync)(int fd);
  int (*fstat)(int fd, struct stat *st);
  int (*stat)(const char *path, struct stat *st);
  /* For folders that others may have filled. A relative path below an open folder, or its own "."; neither a link nor ..
   * may be on the way, nor be the last name (ELOOP, EXDEV): what is opened or made lies below the folder. */
  int (*open_below)(int folder, const char *path, int flags, unsigned mode);
  int (*lstat_at)(int folder, const char *name, struct stat *st); /* follows nothing */
  /* One name in an open folder. Of a link, the link itself is removed or renamed. */
  int (*unlink_at)(int folder, const char *name);
  int (*rename_at)(int from_folder, const char *from, int to_folder, const char *to);
  int (*mkdir_at)(int folder, const char *name, unsigned mode);
  int (*rmdir_at)(int folder, const char *name);
  int (*unlink)(const char *path);
  int (*rename)(const char *from, const char *to);
  int (*mkdir)(const char *path, unsigned mode);
  int (*rmdir)(const char *path);
  /* type is F_RDLCK, F_WRLCK or F_UNLCK; never waits: EAGAIN when another holds it */
  int (*lock)(int fd, short type, off_t start, off_t len);
  /* 1 when another description holds a lock that conflicts with `type` on the range, 0 when none, -1 */
  int (*lock_held)(int fd, short type, off_t start, off_t len);
  uint64_t (*now_ns)(void);  /* monotonic */
  void (*sleep_us)(uint64_t us);
} os_calls;

extern const os_calls os_real;
/* The same, made of POSIX calls alone: what os_real falls back to on a kernel that lacks openat2. */
extern const os_calls os_portable;
/* The one in use. Only tests assign it, before any store is open. */
extern const os_calls *os_api;

/* How a folder is opened for the calls that take one: not through a link. */
#ifdef O_PATH
#define OS_OPEN_DIR (O_PATH | O_DIRECTORY | O_NOFOLLOW)
#else
#define OS_OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#endif

/* A call of the table, again as long as a signal interrupts it. */
#define OS_RETRY(call)                         \
  __extension__({                                 \
    __typeof__(call) retry_;                      \
    do {                                          \
      retry_ = (call);                            \
    } while (retry_ < 0 && errno == EINTR);       \
    retry_;                                       \
  })

/* Opens a file for reading that may turn out to be anything. What is not a regular file is not opened (ENXIO; EISDIR): to open
 * a FIFO waits for its other end, and to open a device may act on it. The path may lead through links. */
int os_open_regular(const char *path);
/* Its two halves: 0 or the errno for what was seen; and a descriptor that is closed (-1, errno) unless it is such a file. */
int os_not_regular(const struct stat *st);
int os_keep_regular(int fd);

/* Whole transfers, over EINTR and short counts. */
lode_status os_read_full(int fd, void *buf, size_t n, uint64_t off, size_t *got, lode_error *err);
lode_status os_write_full(int fd, const void *buf, size_t n, uint64_t off, lode_error *err);
/* Folder of a path, fsynced: makes creations, renames and removals in it durable. */
lode_status os_sync_parent_dir(const char *path, lode_error *err);
/* The same of a descriptor that has just been opened (-1: errno says why not), and is closed. */
lode_status os_sync_dir(int fd, const char *what, lode_error *err);
/* The names in a folder, without . and .. ; NULL at the end. */
typedef struct os_dir os_dir;
os_dir *os_dir_open(const char *path); /* NULL and errno */
/* The same of an open descriptor, which then belongs to the folder (also on failure). */
os_dir *os_dir_from_fd(int fd);
const char *os_dir_next(os_dir *folder);
/* With the kind that the file system tells: DT_DIR, DT_REG, DT_LNK, ... or DT_UNKNOWN (dirent.h). *errnum: 0 at the end. */
const char *os_dir_next_kind(os_dir *folder, int *kind, int *errnum);
int os_dir_fd(const os_dir *folder);
void os_dir_close(os_dir *folder);
/* The folder of the program or shared library that this code is part of: what is installed beside it is found from
 * there. False when it cannot be told or does not fit. */
bool os_program_dir(char *folder, size_t size);
/* A thread of the library in a program that is somebody else's: signals are for the program's own threads, but for those of a
 * fault, which go to the thread that makes it; were they blocked, no handler would be asked. 0, or an errno. */
int os_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* Wall clock, milliseconds since 1970 (UTC). */
uint64_t os_wall_ms(void);
/* What tells a file from every other that has been or will be at its path: inode and time of birth, as text. (Not the
 * device, whose number may change with the next boot or mount.) *exact is false where the file system keeps no times of
 * birth: then it is device and inode, and a later file may have the same. "" when there is no file. Follows no link. */
void os_file_identity(const char *path, char *text, size_t size, bool *exact);
/* True when the file system at path is a network one (NFS, SMB, ...): locks there are not to be trusted. */
bool os_is_network_fs(const char *path, char *name, size_t name_size);

#endif
