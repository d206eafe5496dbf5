/* SPDX-License-Identifier: Apache-2.0 */
/* os.c - the real os_calls table, and helpers based on the table in use.
 *
 * Every descriptor is CLOEXEC and above 2. Calls interrupted by a signal are retried here and, because a test's table
 * may interrupt too, in the helpers. Locks are open-file-description locks: two descriptors from two opens conflict
 * even within one process, and closing one never releases the other's.
 */
#include "os/os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* ---- The table ---- */

/* A program without standard input, output or error still prints to 1 and 2: no file may have those descriptors. */
static int os_above_stdio(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), errnum = errno;
  close(fd);
  errno = errnum;
  return up;
}

static int real_open(const char *path, int flags, unsigned mode) {
  int fd;
  do {
    fd = open(path, flags | O_CLOEXEC, (mode_t)mode);
  } while (fd < 0 && errno == EINTR);
  return os_above_stdio(fd);
}

static int real_close(int fd) {
  /* Linux closes the descriptor even on EINTR: retrying could close somebody else's. */
  int rc = close(fd);
  return rc < 0 && errno == EINTR ? 0 : rc;
}

static ssize_t real_pread(int fd, void *buf, size_t n, off_t off) { return pread(fd, buf, n, off); }
static ssize_t real_pwrite(int fd, const void *buf, size_t n, off_t off) { return pwrite(fd, buf, n, off); }

static int real_ftruncate(int fd, off_t size) {
  int rc;
  do {
    rc = ftruncate(fd, size);
  } while (rc < 0 && errno == EINTR);
  return rc;
}

static int real_fsync(int fd) {
  int rc;
  do {
    rc = fsync(fd);
  } while (rc < 0 && errno == EINTR);
  return rc;
}

static int real_fdatasync(int fd) {
  int rc;
  do {
    rc = fdatasync(fd);
  } while (rc < 0 && errno == EINTR);
  return rc;
}

static int real_fstat(int fd, struct stat *st) { return fstat(fd, st); }
static int real_stat(const char *path, struct stat *st) { return stat(path, st); }

/* For a link where a directory is expected the kernel returns ENOTDIR: convert it to ELOOP, as elsewhere. */
static int os_loop_errno(int fd, int dir, const char *path) {
  struct stat st;
  if (fd < 0 && errno == ENOTDIR)
    errno = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
  return fd;
}

/* Component by component, for kernels without openat2. */
static int portable_open_below(int dir, const char *path, int flags, unsigned mode) {
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
    int errnum = errno;
    if (at != dir) close(at);
    errno = errnum;
    if (fd < 0 || !path) return os_above_stdio(fd);
    at = fd;
  }
}

/* openat2 returns EAGAIN if a rename kept it from proving that the path stays below the directory, and also as long as
 * somebody holds a lease on the file. So it is tried a few times, then component by component, where EAGAIN is final.
 * */
enum { OPENAT2_TRIES = 16 };

static int real_open_below(int dir, const char *path, int flags, unsigned mode) {
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
    return portable_open_below(dir, path, flags, mode);
  return os_above_stdio(os_loop_errno((int)fd, dir, path));
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

static int real_lock(int fd, short type, off_t start, off_t len) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
  int rc;
  do {
    rc = fcntl(fd, F_OFD_SETLK, &range);
  } while (rc < 0 && errno == EINTR);
  if (rc < 0 && errno == EACCES) errno = EAGAIN; /* POSIX allows either */
  return rc;
}

static int real_lock_held(int fd, short type, off_t start, off_t len) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
  int rc;
  do {
    rc = fcntl(fd, F_OFD_GETLK, &range);
  } while (rc < 0 && errno == EINTR);
  return rc < 0 ? -1 : range.l_type != F_UNLCK;
}

static uint64_t os_clock_ns(clockid_t clock) {
  struct timespec now = {0};
  clock_gettime(clock, &now);
  return (uint64_t)os_timespec_ns(now);
}

static uint64_t real_now_ns(void) { return os_clock_ns(CLOCK_MONOTONIC); }

static void real_sleep_us(uint64_t us) {
  struct timespec left = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) continue;
}

#define ALL_BUT_OPEN_BELOW                                                                                             \
  .open = real_open, .close = real_close, .pread = real_pread, .pwrite = real_pwrite, .ftruncate = real_ftruncate,     \
  .fsync = real_fsync, .fdatasync = real_fdatasync, .fstat = real_fstat, .stat = real_stat, .lstat_at = real_lstat_at, \
  .unlink_at = real_unlink_at, .rename_at = real_rename_at, .mkdir_at = real_mkdir_at, .rmdir_at = real_rmdir_at,      \
  .unlink = real_unlink, .rename = real_rename, .mkdir = real_mkdir, .rmdir = real_rmdir, .lock = real_lock,           \
  .lock_held = real_lock_held, .now_ns = real_now_ns, .sleep_us = real_sleep_us

const os_calls os_real = {ALL_BUT_OPEN_BELOW, .open_below = real_open_below};
const os_calls os_portable = {ALL_BUT_OPEN_BELOW, .open_below = portable_open_below};

const os_calls *os_api = &os_real;

/* ---- Files of unknown type ---- */

int os_not_regular(const struct stat *st) {
  if (S_ISREG(st->st_mode)) return 0;
  return S_ISLNK(st->st_mode) ? ELOOP : S_ISDIR(st->st_mode) ? EISDIR : ENXIO;
}

int os_keep_regular(int fd) {
  struct stat st;
  if (fd < 0) return -1;
  int errnum = OS_RETRY(os_api->fstat(fd, &st)) < 0 ? errno : os_not_regular(&st);
  if (errnum == 0) return fd;
  (void)os_api->close(fd);
  errno = errnum;
  return -1;
}

int os_open_regular(const char *path) {
  struct stat st;
  if (OS_RETRY(os_api->stat(path, &st)) < 0) return -1;
  errno = os_not_regular(&st);
  if (errno) return -1;
  return os_keep_regular(OS_RETRY(os_api->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0)));
}

/* ---- Complete reads and writes ---- */

/* Linux transfers at most 0x7ffff000 bytes per call; asking for less keeps counts within ssize_t everywhere. */
enum { TRANSFER_MAX = 1 << 30 };

static bool os_past_max_offset(uint64_t off, size_t n) {
  return off > (uint64_t)INT64_MAX || n > (uint64_t)INT64_MAX - off;
}

lode_status os_read_full(int fd, void *buf, size_t n, uint64_t off, size_t *got, lode_error *err) {
  size_t done = 0;
  *got = 0;
  if (os_past_max_offset(off, n)) return err_errno(err, EOVERFLOW, "reading a file");
  while (done < n) {
    size_t ask = n - done < TRANSFER_MAX ? n - done : TRANSFER_MAX;
    ssize_t rc = os_api->pread(fd, (char *)buf + done, ask, (off_t)(off + done));
    if (rc < 0 && errno == EINTR) continue;
    if (rc < 0) return err_errno(err, errno, "reading a file");
    if (rc == 0) break;
    done += (size_t)rc;
  }
  *got = done;
  return LODE_OK;
}

lode_status os_write_full(int fd, const void *buf, size_t n, uint64_t off, lode_error *err) {
  size_t done = 0;
  if (os_past_max_offset(off, n)) return err_errno(err, EOVERFLOW, "writing a file");
  while (done < n) {
    size_t ask = n - done < TRANSFER_MAX ? n - done : TRANSFER_MAX;
    ssize_t rc = os_api->pwrite(fd, (const char *)buf + done, ask, (off_t)(off + done));
    if (rc < 0 && errno == EINTR) continue;
    if (rc < 0) return err_errno(err, errno, "writing a file");
    if (rc == 0) return err_errno(err, EIO, "writing a file"); /* no progress and no error */
    done += (size_t)rc;
  }
  return LODE_OK;
}

/* ---- Directories ---- */

static lode_status os_parent_dir(const char *path, char **dir, lode_error *err) {
  size_t len = strlen(path);
  while (len > 1 && path[len - 1] == '/') len--;
  while (len > 0 && path[len - 1] != '/') len--;
  while (len > 1 && path[len - 1] == '/') len--;
  const char *from = len ? path : ".";
  if (len == 0) len = 1;
  *dir = str_dup(from, len);
  return *dir ? LODE_OK : err_nomem(err);
}

lode_status os_sync_dir(int fd, const char *what, lode_error *err) {
  /* Some file systems cannot sync a directory and return EINVAL: nothing more can be done there. */
  int rc = fd < 0 ? -1 : OS_RETRY(os_api->fsync(fd));
  lode_status st = rc < 0 && (fd < 0 || errno != EINVAL) ? err_errno(err, errno, what) : LODE_OK;
  if (fd >= 0) (void)os_api->close(fd);
  return st;
}

lode_status os_sync_parent_dir(const char *path, lode_error *err) {
  char *dir = NULL;
  TRY(os_parent_dir(path, &dir, err));
  lode_status st = os_sync_dir(OS_RETRY(os_api->open(dir, O_RDONLY | O_DIRECTORY, 0)), dir, err);
  mem_free(dir);
  return st;
}

bool os_program_dir(char *dir, size_t size) {
  Dl_info self;
  char *slash;
  if (size < 2) return false;
  /* A shared library is identified by the path it was loaded from. A program may have only a bare name here, or, in a
   * worker, which is this program started again, /proc/self/exe. */
  if (dladdr((const void *)&os_real, &self) && self.dli_fname && self.dli_fname[0] == '/' &&
      strlen(self.dli_fname) < size && strcmp(self.dli_fname, "/proc/self/exe") != 0) {
    memcpy(dir, self.dli_fname, strlen(self.dli_fname) + 1);
  } else {
    ssize_t n = readlink("/proc/self/exe", dir, size - 1);
    if (n <= 0 || (size_t)n >= size - 1) return false;
    dir[n] = 0;
  }
  slash = strrchr(dir, '/');
  if (!slash) return false;
  *slash = 0;
  return true;
}

int os_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT};
  sigset_t others, before;
  sigfillset(&others);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&others, faults[i]);
  pthread_sigmask(SIG_BLOCK, &others, &before); /* a thread inherits the mask of its creator */
  int errnum = pthread_create(thread, NULL, body, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return errnum;
}

int os_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attr;
  int errnum = pthread_condattr_init(&attr);
  if (errnum) return errnum;
  errnum = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  if (!errnum) errnum = pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
  return errnum;
}

bool os_mutex_is_locked(pthread_mutex_t *mutex) {
  if (pthread_mutex_trylock(mutex) != 0) return true;
  pthread_mutex_unlock(mutex);
  return false;
}

struct timespec os_deadline(uint64_t ms) {
  uint64_t ns = os_clock_ns(CLOCK_MONOTONIC) + ms * 1000000u;
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

unsigned os_cpu_count(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (unsigned)n;
}
uint64_t os_wall_ms(void) { return os_clock_ns(CLOCK_REALTIME) / 1000000u; }

/* ---- Network file systems ---- */

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

void os_file_identity(const char *path, char *text, size_t size, bool *exact) {
  struct stat st;
  text[0] = '\0';
  *exact = false;
#ifdef STATX_BTIME
  struct statx s;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &s) == 0 && s.stx_mask & STATX_INO &&
      s.stx_mask & STATX_BTIME) {
    snprintf(text, size, "%llx-%llx.%x", (unsigned long long)s.stx_ino, (unsigned long long)s.stx_btime.tv_sec,
             s.stx_btime.tv_nsec);
    *exact = true;
    return;
  }
#endif
  if (os_api->lstat_at(AT_FDCWD, path, &st) == 0)
    snprintf(text, size, "%llx-%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

bool os_is_network_fs(const char *path, char *name, size_t name_size) {
  struct statfs fs;
  int rc;
  if (name_size) name[0] = '\0';
  do {
    rc = statfs(path, &fs);
  } while (rc < 0 && errno == EINTR);
  if (rc < 0) return false;
  for (size_t i = 0; i < sizeof network_systems / sizeof network_systems[0]; i++) {
    if ((uint32_t)fs.f_type != network_systems[i].magic) continue;
    if (name_size) snprintf(name, name_size, "%s", network_systems[i].name);
    return true;
  }
  return false;
}

struct os_dir {
  DIR *stream;
};

os_dir *os_dir_open(const char *path) {
  os_dir *dir = mem_alloc(sizeof *dir);
  if (!dir) return NULL;
  dir->stream = opendir(path);
  if (dir->stream) return dir;
  mem_free(dir);
  return NULL;
}

os_dir *os_dir_from_fd(int fd) {
  os_dir *dir = mem_alloc(sizeof *dir);
  if (dir) dir->stream = fdopendir(fd);
  if (dir && dir->stream) return dir;
  int errnum = dir ? errno : ENOMEM;
  mem_free(dir);
  close(fd);
  errno = errnum;
  return NULL;
}

const char *os_dir_next_kind(os_dir *dir, int *kind, int *errnum) {
  struct dirent *e;
  do {
    errno = 0;
    e = readdir(dir->stream);
  } while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
  *errnum = e ? 0 : errno;
  *kind = e ? e->d_type : DT_UNKNOWN;
  return e ? e->d_name : NULL;
}

const char *os_dir_next(os_dir *dir) {
  int kind, errnum;
  return os_dir_next_kind(dir, &kind, &errnum);
}

int os_dir_fd(const os_dir *dir) { return dirfd(dir->stream); }

void os_dir_close(os_dir *dir) {
  if (!dir) return;
  closedir(dir->stream);
  mem_free(dir);
}
