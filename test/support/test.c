/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - runs the tests of one program; see test.h.
 *
 * Each test is a child process that leads a process group of its own. When it ends, by itself or by its timeout, the
 * whole group is killed and what it left behind is reaped (the runner is their reaper), so that no test can disturb
 * the next. A child's exit status is its verdict: 0, EXIT_CHECK (a check failed and said so), or EXIT_SKIPPED;
 * anything else, a signal or a sanitizer's own status, is a failure too. Folders live under one folder per run, which
 * the runner removes, also when it is interrupted; one whose runner was killed outright is removed by the next program.
 * It is in use while somebody holds the lock of the file .owner in it (test/support/run.sh does the same). The seed is
 * drawn by the runner, which can thus name it also when the child was killed.
 */
#include "support/test.h"

#include "platform/platform.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, EXIT_CHECK = 99, SLOW_FACTOR = 4 };

typedef struct shared_state {
  atomic_bool seed_used; /* written by the child, read by the runner */
} shared_state;

static test_case *first_case, **next_case = &first_case;
static const test_case *current;
static shared_state *shared;
static char run_folder[4096];
static uint64_t seed, rng[4];
static bool rng_ready, nofork;
static jmp_buf nofork_skip;
static pid_t child;
static struct { unsigned passed, failed, skipped; } total;

/* AddressSanitizer asks for its settings here; ASAN_OPTIONS comes after them. With the usual 256 MB of freed memory
 * that is kept from reuse, a test that makes half a million pieces comes near the number of mappings that Linux allows
 * a process (65,530). */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "quarantine_size_mb=64"; }

/* ---- For tests ---- */

void test_register(test_case *t) {
  *next_case = t;
  next_case = &t->next;
}

static void print_seed(void) {
  if (atomic_load(&shared->seed_used)) fprintf(stderr, "  replay with LODE_TEST_SEED=%llu\n", (unsigned long long)seed);
}

void test_failed(const char *file, int line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  flockfile(stderr);
  fprintf(stderr, "%s:%d: %s: ", file, line, current ? current->name : "?");
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  if (nofork) print_seed();
  funlockfile(stderr);
  va_end(args);
  fflush(NULL);
  if (nofork) abort();
  _exit(EXIT_CHECK);
}

void test_skip(const char *why) {
  printf("skipped %s: %s\n", current->name, why);
  fflush(NULL);
  if (nofork) longjmp(nofork_skip, 1);
  _exit(EXIT_SKIPPED);
}

bool test_full(void) {
  const char *value = getenv("LODE_TEST_FULL");
  return value && strcmp(value, "1") == 0;
}

unsigned test_patience(void) {
  const char *value = getenv("LODE_TEST_PATIENCE");
  unsigned long n = value ? strtoul(value, NULL, 10) : 1;
  return n < 1 ? 1 : n > 1000 ? 1000 : (unsigned)n;
}

#ifdef LODE_COVERAGE
/* Children of tests end by _exit, which does not write down what they reached. */
void __gcov_dump(void);
void _exit(int status) {
  __gcov_dump();
  for (;;) syscall(SYS_exit_group, status);
}
#endif

/* ---- Random numbers: xoshiro256**, seeded by splitmix64 ---- */

uint64_t test_seed(void) {
  atomic_store(&shared->seed_used, true);
  return seed;
}

void test_srand(uint64_t from) {
  for (int i = 0; i < 4; i++) {
    uint64_t x = from += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    rng[i] = x ^ (x >> 31);
  }
  rng_ready = true;
}

static uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

uint64_t test_rand(void) {
  if (!rng_ready) test_srand(test_seed());
  uint64_t result = rotate(rng[1] * 5, 7) * 9, t = rng[1] << 17;
  rng[2] ^= rng[0];
  rng[3] ^= rng[1];
  rng[1] ^= rng[2];
  rng[0] ^= rng[3];
  rng[2] ^= t;
  rng[3] = rotate(rng[3], 45);
  return result;
}

uint64_t test_below(uint64_t n) { return (uint64_t)(((unsigned __int128)test_rand() * n) >> 64); }

/* ---- Files ---- */

const char *test_folder(void) {
  /* kept in a list so that the pointers stay good, and reachable for the leak checker, until the test ends */
  struct made {
    struct made *older;
    char path[sizeof run_folder + 16];
  };
  static struct made *newest;
  struct made *m = malloc(sizeof *m);
  if (!m) test_failed(__FILE__, __LINE__, "out of memory");
  m->older = newest;
  newest = m;
  snprintf(m->path, sizeof m->path, "%s/t-XXXXXX", run_folder);
  if (!mkdtemp(m->path)) test_failed(__FILE__, __LINE__, "%s: %s", m->path, strerror(errno));
  return m->path;
}

static FTS *walk(const char *path) {
  char *roots[] = {(char *)(uintptr_t)path, NULL};
  return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

void test_remove_tree(const char *path) {
  FTS *tree = walk(path);
  if (!tree) return;
  for (FTSENT *e; (e = fts_read(tree));) {
    if (e->fts_info == FTS_D && (e->fts_statp->st_mode & 0700) != 0700)
      chmod(e->fts_accpath, 0700);
    else if (e->fts_info == FTS_DP)
      rmdir(e->fts_accpath);
    else if (e->fts_info != FTS_D)
      unlink(e->fts_accpath);
  }
  fts_close(tree);
}

char *test_read_file(const char *path, size_t *len) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) < 0) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
  size_t size = (size_t)st.st_size, got = 0;
  char *data = malloc(size + 1);
  if (!data) test_failed(__FILE__, __LINE__, "%s: out of memory", path);
  while (got < size) {
    ssize_t n = read(fd, data + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    if (n == 0) break;
    got += (size_t)n;
  }
  close(fd);
  data[got] = '\0';
  if (len) *len = got;
  return data;
}

static void write_file(const char *path, const void *data, size_t len, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
  for (size_t put = 0; put < len;) {
    ssize_t n = write(fd, (const char *)data + put, len - put);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    put += (size_t)n;
  }
  if (close(fd) < 0) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
}

void test_write_file(const char *path, const void *data, size_t len) { write_file(path, data, len, 0644); }

static void copy_link(const char *from, const char *to) {
  char target[4096];
  ssize_t n = readlink(from, target, sizeof target - 1);
  if (n >= 0) target[n] = '\0';
  if (n < 0 || symlink(target, to) < 0) test_failed(__FILE__, __LINE__, "%s: %s", to, strerror(errno));
}

static void copy_file(const char *from, const char *to, mode_t mode) {
  size_t len;
  char *data = test_read_file(from, &len);
  write_file(to, data, len, mode);
  free(data);
}

void test_copy_tree(const char *from, const char *to) {
  char path[8192];
  FTS *tree = walk(from);
  if (!tree) test_failed(__FILE__, __LINE__, "%s: %s", from, strerror(errno));
  size_t root = strlen(from);
  while (root > 1 && from[root - 1] == '/') root--;
  for (FTSENT *e; (e = fts_read(tree));) {
    const char *below = e->fts_path + root;
    while (*below == '/') below++;
    snprintf(path, sizeof path, "%s%s%s", to, *below ? "/" : "", below);
    mode_t mode = e->fts_statp->st_mode & 07777;
    switch (e->fts_info) {
      case FTS_D:
        if (mkdir(path, 0700) < 0 && errno != EEXIST) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
        break;
      case FTS_DP:
        if (e->fts_level > 0) chmod(path, mode);
        break;
      case FTS_F: copy_file(e->fts_accpath, path, mode); break;
      case FTS_SL:
      case FTS_SLNONE: copy_link(e->fts_accpath, path); break;
      default: test_failed(__FILE__, __LINE__, "%s: cannot be copied", e->fts_path);
    }
  }
  fts_close(tree);
}

/* ---- The runner ---- */

/* What the last test left in it; .owner stays, and its lock. */
static void empty_run_folder(void) {
  DIR *d = opendir(run_folder);
  char path[sizeof run_folder + 260];
  if (!d) return;
  for (struct dirent *e; (e = readdir(d));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, ".owner") == 0) continue;
    snprintf(path, sizeof path, "%s/%s", run_folder, e->d_name);
    test_remove_tree(path);
  }
  closedir(d);
}

/* Folders of runners that are dead: nobody holds the lock. */
static void remove_dead(const char *base) {
  char path[sizeof run_folder], owner[sizeof run_folder + 16];
  struct stat st;
  DIR *d = opendir(base);
  if (!d) return;
  for (struct dirent *e; (e = readdir(d));) {
    if (strncmp(e->d_name, "lode-test-", 10) != 0) continue;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", base, e->d_name) >= sizeof path) continue;
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) continue;
    snprintf(owner, sizeof owner, "%s/.owner", path);
    int fd = open(owner, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) test_remove_tree(path);
    close(fd);
  }
  closedir(d);
}

/* Locked before it has its name: nobody must find a folder of ours without its lock. The lock lasts as long as this
 * process and the tests that it forks. */
static void make_run_folder(const char *base) {
  char fresh[sizeof run_folder + 16], owner[sizeof run_folder + 16];
  if ((size_t)snprintf(run_folder, sizeof run_folder, "%s/lode-test-XXXXXX", base) >= sizeof run_folder ||
      !mkdtemp(run_folder)) {
    perror(base);
    exit(EXIT_FAILURE);
  }
  snprintf(fresh, sizeof fresh, "%s/.owner.new", run_folder);
  snprintf(owner, sizeof owner, "%s/.owner", run_folder);
  int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || rename(fresh, owner) < 0) {
    perror(owner);
    exit(EXIT_FAILURE);
  }
}

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void kill_group(void) {
  if (child > 0) kill(-child, SIGKILL);
}

/* What the test started and left behind is ours now, and dead or dying; it must be gone before its folder is. */
static void reap_group(void) {
  kill_group();
  for (;;) {
    pid_t p = waitpid(-child, NULL, 0);
    if (p < 0 && errno != EINTR) break;
  }
  while (waitpid(-1, NULL, WNOHANG) > 0) continue;
  child = 0;
}

static void interrupted(int signo) {
  reap_group();
  test_remove_tree(run_folder);
  signal(signo, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signo);
  raise(signo);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  _exit(128 + signo);
}

/* Waits for the child. Returns false when its time is over and it was killed. */
static bool wait_child(const sigset_t *waited, unsigned timeout_s, int *status) {
  uint64_t deadline = now_ms() + (uint64_t)timeout_s * 1000;
  for (;;) {
    pid_t p = waitpid(child, status, WNOHANG);
    if (p == child) return true;
    uint64_t now = now_ms();
    if (now >= deadline) break;
    uint64_t ms = deadline - now;
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    int signo = sigtimedwait(waited, NULL, &left);
    if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP) interrupted(signo);
  }
  kill_group();
  while (waitpid(child, status, 0) < 0 && errno == EINTR) continue;
  return false;
}

static void report(const test_case *t, int status, bool in_time, unsigned timeout_s) {
  if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    total.passed++;
    return;
  }
  if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) {
    total.skipped++;
    return;
  }
  total.failed++;
  if (!in_time) {
    fprintf(stderr, "FAILED %s: not done after %u s\n", t->name, timeout_s);
  } else if (WIFSIGNALED(status)) {
    fprintf(stderr, "FAILED %s: signal %d (%s)\n", t->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != EXIT_CHECK) {
    fprintf(stderr, "FAILED %s: exit status %d\n", t->name, WEXITSTATUS(status));
  }
  print_seed();
  fflush(stderr);
}

/* Instrumented code is several times slower. */
static unsigned timeout_of(const test_case *t) {
  return t->timeout_s * (BUILD_ASAN || BUILD_TSAN ? SLOW_FACTOR : 1) * test_patience();
}

static void run_forked(const test_case *t) {
  sigset_t waited, before;
  int status = 0;
  sigemptyset(&waited);
  sigaddset(&waited, SIGCHLD);
  sigaddset(&waited, SIGINT);
  sigaddset(&waited, SIGTERM);
  sigaddset(&waited, SIGHUP);
  sigprocmask(SIG_BLOCK, &waited, &before);
  fflush(NULL);
  pid_t runner = getpid();
  child = fork();
  if (child < 0) {
    perror("fork");
    exit(EXIT_FAILURE);
  }
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner) _exit(EXIT_FAILURE);
    sigprocmask(SIG_SETMASK, &before, NULL);
    t->run();
    exit(0); /* not _exit: the leak checker has its say */
  }
  setpgid(child, child); /* whoever comes first */
  bool in_time = wait_child(&waited, timeout_of(t), &status);
  reap_group();
  sigprocmask(SIG_SETMASK, &before, NULL);
  report(t, status, in_time, timeout_of(t));
}

static void run_here(const test_case *t) {
  if (setjmp(nofork_skip)) {
    total.skipped++;
    return;
  }
  t->run();
  total.passed++;
}

static bool wanted(const test_case *t, int argc, char **argv) {
  if (argc < 2) return true;
  for (int i = 1; i < argc; i++) {
    if (strstr(t->name, argv[i])) return true;
  }
  return false;
}

static void prepare(void) {
  const char *tmp = getenv("TMPDIR"), *fixed = getenv("LODE_TEST_SEED"), *no = getenv("LODE_TEST_NOFORK");
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  seed = fixed ? strtoull(fixed, NULL, 10) : ((uint64_t)t.tv_sec * 1000003u + (uint64_t)t.tv_nsec) % 1000000000u;
  nofork = no && strcmp(no, "1") == 0;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    perror("mmap");
    exit(EXIT_FAILURE);
  }
  if (!tmp || !*tmp) tmp = "/tmp";
  remove_dead(tmp);
  make_run_folder(tmp);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(int argc, char **argv) {
  os_program_started_as(argv[0]);
  prepare();
  for (const test_case *t = first_case; t; t = t->next) {
    if (!wanted(t, argc, argv)) continue;
    current = t;
    rng_ready = false;
    atomic_store(&shared->seed_used, false);
    if (nofork)
      run_here(t);
    else
      run_forked(t);
    empty_run_folder();
  }
  test_remove_tree(run_folder);
  printf("%u passed, %u failed", total.passed, total.failed);
  if (total.skipped) printf(", %u skipped", total.skipped);
  printf("\n");
  return total.failed ? EXIT_FAILURE : 0;
}
