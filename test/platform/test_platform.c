/* SPDX-License-Identifier: Apache-2.0 */
/* test_platform.c - the platform's calls keep their contracts. Those of the table are tried on os_real and on
 * os_portable, which is what systems without open-file-description locks have. */
#include "lode.h"
#include "os/os.h"
#include "os/proc.h"
#include "platform/dirwatch.h"
#include "platform/event.h"
#include "platform/memory.h"
#include "platform/platform_internal.h"
#include "platform/process.h"
#include "platform/socket.h"
#include "support/fault.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static lode_error err;
static const os_calls *const tables[] = {&os_real, &os_portable};
static const char *const table_names[] = {"real", "portable"};
enum { TABLES = 2 };

/* ---- Locks ---- */

static const char *lock_path(void) {
  static char path[500];
  snprintf(path, sizeof path, "%s/file", test_folder());
  test_write_file(path, "0123456789", 10);
  return path;
}

static int open_with(const os_calls *os, const char *path) {
  int fd = os->open(path, O_RDWR, 0);
  CHECK(fd > STDERR_FILENO);
  return fd;
}

/* Can a process of its own take this lock? */
static bool others_can_lock(const char *path, short type, off_t start, off_t len) {
  pid_t pid = fork();
  int status;
  CHECK(pid >= 0);
  if (pid == 0) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    _exit(fd < 0 ? 2 : fcntl(fd, F_SETLK, &range) == 0 ? 0 : 1);
  }
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2);
  return WEXITSTATUS(status) == 0;
}

TEST(descriptors_of_one_process_conflict) {
  for (int t = 0; t < TABLES; t++) {
    const os_calls *os = tables[t];
    const char *path = lock_path();
    int a = open_with(os, path), b = open_with(os, path);
    CHECKF(os->lock(a, F_WRLCK, 5, 3) == 0, "%s", table_names[t]);
    CHECK(os->lock(b, F_RDLCK, 7, 1) == -1 && errno == EAGAIN);
    CHECK(os->lock(b, F_WRLCK, 0, 0) == -1 && errno == EAGAIN);
    CHECK(os->lock_held(b, F_RDLCK, 0, 0) == 1 && os->lock_held(a, F_WRLCK, 0, 0) == 0);
    CHECK(os->lock(b, F_WRLCK, 8, 2) == 0 && os->lock(b, F_WRLCK, 0, 5) == 0);
    CHECK(os->lock(a, F_RDLCK, 5, 3) == 0 && os->lock(b, F_RDLCK, 5, 3) == 0); /* both read */
    CHECK(os->lock(a, F_WRLCK, 6, 1) == -1 && errno == EAGAIN);
    CHECK(os->lock(b, F_UNLCK, 0, 0) == 0 && os->lock(a, F_WRLCK, 6, 1) == 0);
    CHECK(os->close(a) == 0 && os->lock_held(b, F_WRLCK, 0, 0) == 0 && os->lock(b, F_WRLCK, 0, 0) == 0);
    CHECK(os->close(b) == 0 && others_can_lock(path, F_WRLCK, 0, 0));
  }
}

/* POSIX locks of the file would all be lost. */
TEST(closing_another_descriptor_keeps_locks) {
  for (int t = 0; t < TABLES; t++) {
    const os_calls *os = tables[t];
    const char *path = lock_path();
    int a = open_with(os, path), b = open_with(os, path), c = open_with(os, path);
    CHECK(os->lock(a, F_WRLCK, 0, 1) == 0 && os->lock(b, F_RDLCK, 4, 1) == 0);
    CHECK(os->close(c) == 0);
    CHECKF(!others_can_lock(path, F_RDLCK, 0, 1), "%s: lost when an unlocked one was closed", table_names[t]);
    CHECK(os->close(b) == 0);
    CHECKF(!others_can_lock(path, F_RDLCK, 0, 1), "%s: lost when a locked one was closed", table_names[t]);
    CHECKF(others_can_lock(path, F_WRLCK, 4, 1), "%s: the closed one's lock is still held", table_names[t]);
    CHECK(os->lock(a, F_UNLCK, 0, 1) == 0 && others_can_lock(path, F_WRLCK, 0, 0));
    CHECK(os->close(a) == 0 && fcntl(c, F_GETFD) < 0 && fcntl(b, F_GETFD) < 0);
  }
}

TEST(a_shared_lock_is_held_until_the_last_holder_releases_it) {
  for (int t = 0; t < TABLES; t++) {
    const os_calls *os = tables[t];
    const char *path = lock_path();
    int a = open_with(os, path), b = open_with(os, path);
    CHECK(os->lock(a, F_RDLCK, 0, 10) == 0 && os->lock(b, F_RDLCK, 3, 2) == 0);
    CHECK(os->lock(a, F_UNLCK, 0, 10) == 0);
    CHECKF(others_can_lock(path, F_WRLCK, 0, 3), "%s: before", table_names[t]);
    CHECKF(!others_can_lock(path, F_WRLCK, 3, 1) && !others_can_lock(path, F_WRLCK, 4, 1), "%s: within",
           table_names[t]);
    CHECKF(others_can_lock(path, F_WRLCK, 5, 5), "%s: after", table_names[t]);
    CHECK(os->lock(a, F_RDLCK, 0, 0) == 0 && os->lock(a, F_UNLCK, 4, 1) == 0); /* splits its range */
    CHECK(!others_can_lock(path, F_WRLCK, 9, 1) && !others_can_lock(path, F_WRLCK, 4, 1));
    CHECK(os->close(b) == 0 && others_can_lock(path, F_WRLCK, 4, 1) && !others_can_lock(path, F_WRLCK, 3, 1));
    CHECK(os->close(a) == 0 && others_can_lock(path, F_WRLCK, 0, 0));
  }
}

/* Random calls: both tables always answer the same. */
TEST(tables_answer_the_same) {
  enum { FDS = 5, BYTES = 12, ROUNDS = 4000 };
  static const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
  const char *path[TABLES];
  char paths[TABLES][500];
  int fds[TABLES][FDS];
  for (int t = 0; t < TABLES; t++) {
    snprintf(paths[t], sizeof paths[t], "%s", lock_path());
    path[t] = paths[t];
    for (int i = 0; i < FDS; i++) fds[t][i] = open_with(tables[t], path[t]);
  }
  for (int round = 0; round < ROUNDS; round++) {
    size_t i = (size_t)test_below(FDS);
    uint64_t what = test_below(20);
    short type = types[test_below(3)];
    off_t start = (off_t)test_below(BYTES), len = (off_t)test_below(5);
    int rc[TABLES], errnum[TABLES];
    for (int t = 0; t < TABLES; t++) {
      errno = 0;
      if (what == 0) {
        rc[t] = tables[t]->close(fds[t][i]);
        fds[t][i] = open_with(tables[t], path[t]);
      } else if (what < 4 && type != F_UNLCK) {
        rc[t] = tables[t]->lock_held(fds[t][i], type, start, len);
      } else {
        rc[t] = tables[t]->lock(fds[t][i], type, start, len);
      }
      errnum[t] = rc[t] < 0 ? errno : 0;
    }
    CHECKF(rc[0] == rc[1] && errnum[0] == errnum[1], "round %d: %d (%d) and %d (%d)", round, rc[0], errnum[0], rc[1],
           errnum[1]);
  }
  for (int t = 0; t < TABLES; t++)
    for (int i = 0; i < FDS; i++) CHECK(tables[t]->close(fds[t][i]) == 0);
  for (int t = 0; t < TABLES; t++) CHECK(others_can_lock(path[t], F_WRLCK, 0, 0));
}

/* A forked child has none of the locks, and what it closes changes nothing. */
TEST(a_forked_child_leaves_locks_alone) {
  for (int t = 0; t < TABLES; t++) {
    const os_calls *os = tables[t];
    const char *path = lock_path();
    int a = open_with(os, path), b = open_with(os, path), status;
    CHECK(os->lock(a, F_WRLCK, 0, 1) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      (void)os->close(a);
      (void)os->close(b);
      int fresh = os->open(path, O_RDWR, 0);
      _exit(fresh >= 0 && os->lock(fresh, F_RDLCK, 0, 1) == -1 && errno == EAGAIN &&
                    os->lock_held(fresh, F_RDLCK, 0, 1) == 1
                ? 0
                : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECKF(WEXITSTATUS(status) == 0, "%s", table_names[t]);
    CHECK(!others_can_lock(path, F_RDLCK, 0, 1) && os->close(a) == 0 && os->close(b) == 0);
  }
}

/* ---- File systems ---- */

TEST(file_systems_are_told_apart) {
#if OS_LINUX
  static const char wsl2[] = "5.15.153.1-microsoft-standard-WSL2", wsl1[] = "4.4.0-19041-Microsoft",
                    other[] = "6.1.0-21-amd64";
  enum { NINE_P = 0x01021997, NFS = 0x6969, EXT4 = 0xEF53, WSLFS = 0x53464846 };
  const char *name;
  CHECK(os_linux_fs_kind(NINE_P, wsl2, "/mnt/c/Users/a/.lode", &name) == OS_FS_WINDOWS && strcmp(name, "WSL") == 0);
  CHECK(os_linux_fs_kind(WSLFS, wsl1, "/mnt/d", &name) == OS_FS_WINDOWS);
  CHECK(os_linux_fs_kind(EXT4, wsl2, "/home/a/.lode", &name) == OS_FS_LOCAL && !*name);
  CHECK(os_linux_fs_kind(EXT4, wsl2, "/mnt/disk/a", &name) == OS_FS_LOCAL);
  CHECK(os_linux_fs_kind(NINE_P, other, "/mnt/c/a", &name) == OS_FS_NETWORK && strcmp(name, "9P") == 0);
  CHECK(os_linux_fs_kind(NFS, wsl2, "/home/a", &name) == OS_FS_NETWORK && strcmp(name, "NFS") == 0);
#else
  test_skip("only Linux tells file systems apart by number");
#endif
}

/* ---- Sorting, random numbers, times ---- */

static int compare_by(const void *a, const void *b, void *ctx) {
  const int *rank = ctx;
  return rank[*(const int *)a] - rank[*(const int *)b];
}

static int compare_nested(const void *a, const void *b, void *ctx) {
  int rank[] = {3, 2, 1, 0}, list[] = {0, 1, 2, 3};
  os_sort(list, 4, sizeof *list, compare_by, rank);
  CHECK(list[0] == 3 && list[3] == 0);
  return compare_by(a, b, ctx);
}

TEST(sorting_hands_the_context_over) {
  int rank[] = {2, 0, 3, 1}, list[] = {0, 1, 2, 3};
  os_sort(list, 4, sizeof *list, compare_by, rank);
  CHECK(list[0] == 1 && list[1] == 3 && list[2] == 0 && list[3] == 2);
  int again[] = {0, 1, 2, 3};
  os_sort(again, 4, sizeof *again, compare_nested, rank);
  CHECK(memcmp(list, again, sizeof list) == 0);
}

TEST(the_last_byte_is_found) {
  const char text[] = "a/b/c";
  CHECK(os_memrchr(text, '/', 5) == text + 3 && os_memrchr(text, '/', 3) == text + 1);
  CHECK(os_memrchr(text, '/', 1) == NULL && os_memrchr(text, 'a', 0) == NULL && os_memrchr(text, 'a', 5) == text);
}

TEST(random_bytes_differ) {
  unsigned char a[600] = {0}, b[600] = {0};
  CHECK(os_random(a, sizeof a, false) == 0 && os_random(b, sizeof b, true) == 0 && memcmp(a, b, sizeof a) != 0);
  size_t zeros = 0;
  for (size_t i = 0; i < sizeof a; i++) zeros += a[i] == 0;
  CHECK(zeros < 60);
}

TEST(a_deadline_passes) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond;
  CHECK(os_cond_init(&cond) == 0);
  pthread_mutex_lock(&mutex);
  uint64_t before = os_api->now_ns();
  struct timespec until = os_deadline(50);
  int rc = 0;
  while (rc == 0) rc = os_cond_wait_until(&cond, &mutex, &until);
  CHECK(rc == ETIMEDOUT && os_api->now_ns() - before >= 49000000u);
  pthread_mutex_unlock(&mutex);
}

/* ---- Events and files without a name ---- */

TEST(an_event_stays_set_until_it_is_cleared) {
  os_event event;
  CHECK(os_event_open(&event) == 0);
  struct pollfd p = {.fd = event.in, .events = POLLIN};
  CHECK(os_poll(&p, 1, 0) == 0);
  for (int i = 0; i < 100000; i++) os_event_set(event); /* more than a pipe holds */
  CHECK(os_poll(&p, 1, 0) == 1 && os_poll(&p, 1, 0) == 1);
  os_event_clear(event);
  CHECK(os_poll(&p, 1, 0) == 0);
  os_event_set(event);
  CHECK(os_poll(&p, 1, 0) == 1);
  os_event_close(&event);
  os_event_close(&event);
  CHECK(event.in == -1);
}

TEST(a_file_without_a_name_is_passed_on) {
  int ends[2], fd = os_nameless_file();
  struct stat st;
  char text[5] = "";
  CHECK(fd > STDERR_FILENO && fstat(fd, &st) == 0 && st.st_nlink == 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && os_socket_send_fd(ends[0], fd) == 0);
  int got = os_socket_receive_fd(ends[1]);
  CHECK(got >= 0 && (fcntl(got, F_GETFD) & FD_CLOEXEC));
  CHECK(pwrite(got, "text", 4, 0) == 4 && pread(fd, text, 4, 0) == 4 && strcmp(text, "text") == 0);
  close(ends[0]);
  CHECK(os_socket_hung_up(ends[1]) && os_socket_receive_fd(ends[1]) == -1);
  struct iovec part = {text, 4};
  CHECK(os_socket_send(ends[1], &part, 1, true) == -1 && errno == EPIPE); /* and no SIGPIPE */
  close(ends[1]);
  close(fd);
  close(got);
}

/* ---- Memory ---- */

TEST(dropped_memory_can_be_used_again) {
  size_t n = 1 << 20;
  unsigned char *p = mem_alloc_aligned(1 << 16, n);
  CHECK(p);
  memset(p, 7, n);
  os_memory_advise(p, n, OS_MEMORY_DROP);
  memset(p, 9, n);
  for (size_t i = 0; i < n; i++) CHECK(p[i] == 9);
  mem_free(p);
}

/* Resident memory of this process, in bytes; 0: not known. */
static uint64_t resident(void) {
  unsigned long pages = 0, shown = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fscanf(f, "%lu %lu", &pages, &shown) != 2) shown = 0;
  if (f) (void)fclose(f);
  return (uint64_t)shown * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Every hundredth piece stays, so that the allocator cannot give back the end of what it has. */
TEST(freed_memory_goes_back_to_the_system) {
#ifdef __GLIBC__
  enum { PIECES = 20000, BYTES = 2000 };
  static void *pieces[PIECES];
  if (BUILD_ASAN || BUILD_TSAN || !resident()) test_skip("another allocator, or the system does not tell");
  for (size_t i = 0; i < PIECES; i++) {
    pieces[i] = malloc(BYTES);
    CHECK(pieces[i] != NULL);
    memset(pieces[i], 1, BYTES);
  }
  for (size_t i = 0; i < PIECES; i++)
    if (i % 100) free(pieces[i]);
  uint64_t before = resident();
  os_memory_trim();
  uint64_t after = resident();
  for (size_t i = 0; i < PIECES; i += 100) free(pieces[i]);
  CHECKF(after + (20u << 20) < before, "%llu bytes before, %llu after", (unsigned long long)before,
         (unsigned long long)after);
#else
  test_skip("only for the C library of GNU");
#endif
}

/* ---- Watching ---- */

static bool saw(os_dirwatch *w, int dir, const char *name, unsigned with, unsigned without) {
  os_dirwatch_event e;
  for (int tries = 0; tries < 600; tries++) {
    while (os_dirwatch_next(w, &e) > 0)
      if (e.dir == dir && strcmp(e.name, name) == 0 && (e.what & with) == with && !(e.what & without)) return true;
    (void)os_dirwatch_wait(w, 100);
  }
  return false;
}

TEST(changes_of_a_directory_are_seen) {
  char path[600], dir[500];
  snprintf(dir, sizeof dir, "%s", test_folder());
  snprintf(path, sizeof path, "%s/old", dir);
  test_write_file(path, "1", 1);
  os_dirwatch *w = os_dirwatch_open();
  CHECK(w);
  int id = os_dirwatch_add(w, dir);
  CHECK(id >= 0 && os_dirwatch_add(w, dir) == id);
  CHECK(os_dirwatch_add(w, path) == -1 && errno == ENOTDIR);
  test_write_file(path, "22", 2);
  CHECK(saw(w, id, "old", 0, OS_DIRWATCH_NEW | OS_DIRWATCH_DIR));
  snprintf(path, sizeof path, "%s/new", dir);
  test_write_file(path, "1", 1);
  CHECK(saw(w, id, "new", OS_DIRWATCH_NEW, OS_DIRWATCH_DIR));
  snprintf(path, sizeof path, "%s/folder", dir);
  CHECK(mkdir(path, 0700) == 0 && saw(w, id, "folder", OS_DIRWATCH_NEW | OS_DIRWATCH_DIR, 0));
  int inner = os_dirwatch_add(w, path);
  CHECK(inner >= 0 && inner != id && rmdir(path) == 0 && saw(w, inner, "", OS_DIRWATCH_END, 0));
  snprintf(path, sizeof path, "%s/old", dir);
  CHECK(unlink(path) == 0 && saw(w, id, "old", 0, OS_DIRWATCH_NEW));
  os_dirwatch_close(w);
}

/* ---- Processes ---- */

/* Runs a shell command as a child of proc_spawn(); its exit code. */
static int spawned(const char *command, bool quiet) {
  const char *const argv[] = {"sh", "-c", command, NULL};
  proc_options options = {.path = "/bin/sh", .argv = argv, .quiet = quiet};
  proc_child child;
  OK(proc_spawn(&options, &child, &err));
  CHECK(child.fd > STDERR_FILENO);
  for (int i = 0; i < 6000; i++) {
    proc_exit end = proc_poll(&child);
    if (end.ended) {
      (void)proc_close(&child, 0);
      return end.signal ? 100 + end.signal : end.code;
    }
    os_api->sleep_us(10000);
  }
  (void)proc_kill(&child);
  return -1;
}

/* The child has descriptors 0 to 3 and no others, whichever of 0 to 2 its parent has. */
TEST(a_child_has_its_descriptors_whatever_its_parent_lacks) {
  static const char command[] = "for n in 0 1 2 3; do (: <&$n) 2>/dev/null || exit 1$n; done\n"
                                "for n in 4 5 6 7 8 9; do (: <&$n) 2>/dev/null && exit 2$n; done\nexit 0";
  for (int closed = 0; closed < 8; closed++) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      for (int fd = 0; fd < 3; fd++)
        if (closed & 1 << fd) close(fd);
      _exit(spawned(command, false));
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECKF(WEXITSTATUS(status) == 0, "closed %d: exit %d", closed, WEXITSTATUS(status));
  }
}

TEST(a_program_that_cannot_be_started_is_an_error) {
  const char *const argv[] = {"x", NULL};
  proc_child child;
  FAILS(LODE_NOT_FOUND, proc_spawn(&(proc_options){.path = "/nonexistent/x", .argv = argv}, &child, &err));
  CHECK(strstr(err.text, "/nonexistent/x") && child.pid == 0 && child.fd == -1);
  FAILS(LODE_NOT_FOUND, proc_spawn(&(proc_options){.path = "/etc/passwd", .argv = argv}, &child, &err));
}

TEST(a_list_that_breaks_off_is_told_from_its_end) {
  const char *folder = test_folder();
  char path[500];
  os_kind kind;
  int errnum, names = 0;
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%d", folder, i);
    test_write_file(path, "", 0);
  }
  fault_install(&os_real);
  for (uint64_t at = 0; at <= 4; at++) {
    names = 0;
    fault_set(FAULT_DIR_NEXT, at, false, FAULT_EIO);
    os_dir *dir = os_dir_open(folder);
    while (os_dir_next_kind(dir, &kind, &errnum)) names++;
    os_dir_close(dir);
    CHECK(names == (at ? (int)at - 1 : 3) && errnum == (at ? EIO : 0));
  }
  fault_set(FAULT_DIR_NEXT, 2, false, FAULT_EINTR);
  os_dir *dir = os_dir_open(folder);
  for (names = 0; os_dir_next_kind(dir, &kind, &errnum);) names++;
  os_dir_close(dir);
  CHECK(names == 3 && !errnum && fault_hits() == 1);
  fault_uninstall();
}

TEST(without_a_time_of_birth_a_file_has_its_inode) {
  char with[64], without[64];
  bool exact;
  const char *path = lock_path();
  fault_install(&os_real);
  os_file_identity(path, with, sizeof with, &exact);
  fault_set(FAULT_BIRTH, 1, true, FAULT_EIO);
  os_file_identity(path, without, sizeof without, &exact);
  CHECK(fault_hits() == 1 && !exact && *without && !strchr(without, '.'));
  fault_set(FAULT_BIRTH, 1, false, FAULT_EINTR);
  os_file_identity(path, without, sizeof without, &exact);
  CHECK(fault_hits() == 1 && strcmp(with, without) == 0);
  fault_uninstall();
}

TEST(a_process_that_cannot_be_had_is_an_error) {
  const char *const argv[] = {"sh", NULL};
  char *const start[] = {(char[]){"true"}, NULL};
  proc_child child;
  os_exit end;
  fault_install(&os_real);
  fault_set(FAULT_SPAWN, 1, false, FAULT_EIO);
  FAILS(LODE_IO, proc_spawn(&(proc_options){.path = "/bin/sh", .argv = argv}, &child, &err));
  CHECK(fault_hits() == 1 && child.pid == 0 && child.fd == -1);
  fault_set(FAULT_SPAWN, 1, false, FAULT_EIO);
  CHECK(os_start(start, OS_NULL, OS_NULL) == -1 && errno == EIO);
  pid_t pid = os_start(start, OS_NULL, OS_NULL);
  CHECK(pid > 0 && os_wait(pid, true, &end) == 1 && end.code == 0);
  fault_uninstall();
}

/* Somebody sets the clock back by a year, and then ten years ahead. */
TEST(a_wall_clock_that_is_set_loses_nothing) {
  static const int64_t wrong_ms[] = {-365ll * 86400000, 3650ll * 86400000, 0};
  lode_open_options options = {.create = true, .no_background = true};
  const char *folder = test_folder();
  lode_store *store;
  lode_stats stats;
  uint64_t now = os_wall_ms();
  fault_install(&os_real);
  for (size_t i = 0; i < sizeof wrong_ms / sizeof *wrong_ms; i++) {
    lode_collection *some;
    float v[2] = {1, (float)i};
    char id[8];
    fault_clock_set(wrong_ms[i]);
    CHECK(wrong_ms[i] == 0 || (os_wall_ms() > now) == (wrong_ms[i] > 0));
    snprintf(id, sizeof id, "r%zu", i);
    OK(lode_open(folder, &options, &store, &err));
    OK(lode_collection_open(store, (lode_str){"some", 4}, &(lode_collection_options){.create = true}, &some, &err));
    lode_record record = {.id = {id, strlen(id)}, .vector = v, .dimension = 2};
    OK(lode_add(some, NULL, &record, 1, LODE_FAIL_EXISTING, NULL, &err));
    OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
    OK(lode_store_stats(store, &stats, &err));
    CHECK(stats.records == i + 1);
    lode_collection_close(some);
    lode_close(store);
  }
  fault_uninstall();
}

TEST(the_program_is_found) {
  char path[4096], dir[4096], name[64];
  CHECK(os_program_path(path, sizeof path) && strstr(path, "/test_platform") && access(path, X_OK) == 0);
  CHECK(os_program_dir(dir, sizeof dir) && strncmp(path, dir, strlen(dir)) == 0);
  CHECK(!os_program_path(path, 4));
  os_program_name(name, sizeof name);
  CHECK(strcmp(name, "test_platform") == 0);
}
