/* os.h - one door to the operating system.
 *
 * Everything that touches a file or a clock goes through the table lode__os, so that tests can let call N fail,
 * be short or be interrupted, can lose what was not synced, and can count. The functions have the contracts of
 * their POSIX namesakes (-1 and errno). Files are never mapped: the table has no such entry.
 *
 * Locks are open-file-description locks (F_OFD_SETLK): unlike POSIX record locks they are not lost when some
 * other descriptor of the same file is closed. Descriptors are CLOEXEC.
 */
#ifndef LODE_OS_H
#define LODE_OS_H

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct lode__os_table {
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
} lode__os_table;

extern const lode__os_table lode__os_real;
/* The same, made of POSIX calls alone: what lode__os_real falls back to on a kernel that lacks openat2. */
extern const lode__os_table lode__os_portable;
/* The one in use. Only tests assign it, before any store is open. */
extern const lode__os_table *lode__os;

/* How a folder is opened for the calls that take one: not through a link. */
#ifdef O_PATH
#define LODE__OPEN_FOLDER (O_PATH | O_DIRECTORY | O_NOFOLLOW)
#else
#define LODE__OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
#endif

/* A call of the table, again as long as a signal interrupts it. */
#define LODE__RETRY(call)                         \
  __extension__({                                 \
    __typeof__(call) retry_;                      \
    do {                                          \
      retry_ = (call);                            \
    } while (retry_ < 0 && errno == EINTR);       \
    retry_;                                       \
  })

/* Opens a file for reading that may turn out to be anything. What is not a regular file is not opened (ENXIO; EISDIR): to open
 * a FIFO waits for its other end, and to open a device may act on it. The path may lead through links. */
int lode__os_open_regular(const char *path);
/* Its two halves: 0 or the errno for what was seen; and a descriptor that is closed (-1, errno) unless it is such a file. */
int lode__os_not_regular(const struct stat *st);
int lode__os_keep_regular(int fd);

/* Whole transfers, over EINTR and short counts. */
lode_status lode__os_read_full(int fd, void *buf, size_t n, uint64_t off, size_t *got, lode_error *err);
lode_status lode__os_write_full(int fd, const void *buf, size_t n, uint64_t off, lode_error *err);
/* Folder of a path, fsynced: makes creations, renames and removals in it durable. */
lode_status lode__os_sync_folder_of(const char *path, lode_error *err);
/* The same of a descriptor that has just been opened (-1: errno says why not), and is closed. */
lode_status lode__os_sync_folder(int fd, const char *what, lode_error *err);
/* The names in a folder, without . and .. ; NULL at the end. */
typedef struct lode__os_folder lode__os_folder;
lode__os_folder *lode__os_folder_open(const char *path); /* NULL and errno */
/* The same of an open descriptor, which then belongs to the folder (also on failure). */
lode__os_folder *lode__os_folder_of(int fd);
const char *lode__os_folder_next(lode__os_folder *folder);
/* With the kind that the file system tells: DT_DIR, DT_REG, DT_LNK, ... or DT_UNKNOWN (dirent.h). *errnum: 0 at the end. */
const char *lode__os_folder_next_kind(lode__os_folder *folder, int *kind, int *errnum);
int lode__os_folder_fd(const lode__os_folder *folder);
void lode__os_folder_close(lode__os_folder *folder);
/* The folder of the program or shared library that this code is part of: what is installed beside it is found from
 * there. False when it cannot be told or does not fit. */
bool lode__os_own_folder(char *folder, size_t size);
/* A thread of the library in a program that is somebody else's: signals are for the program's own threads, but for those of a
 * fault, which go to the thread that makes it; were they blocked, no handler would be asked. 0, or an errno. */
int lode__os_thread(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* Wall clock, milliseconds since 1970 (UTC). */
uint64_t lode__os_wall_ms(void);
/* What tells a file from every other that has been or will be at its path: inode and time of birth, as text. (Not the
 * device, whose number may change with the next boot or mount.) *exact is false where the file system keeps no times of
 * birth: then it is device and inode, and a later file may have the same. "" when there is no file. Follows no link. */
void lode__os_identity(const char *path, char *text, size_t size, bool *exact);
/* True when the file system at path is a network one (NFS, SMB, ...): locks there are not to be trusted. */
bool lode__os_is_network(const char *path, char *name, size_t name_size);

#endif
