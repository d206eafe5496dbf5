/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h.
 *
 * Between fork and exec, locks may be held by threads of the parent that do not exist in the child: the child makes
 * only system calls, and everything they need is prepared before. A failed exec is reported through a pipe that a
 * successful exec closes.
 */
#include "platform/process.h"

#include "platform/platform_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

/* ---- Limits ---- */

/* Of both, so that it cannot be raised again. */
#define PROCESS_SET_LIMIT(which, value)                                                                                \
  do {                                                                                                                 \
    struct rlimit now_;                                                                                                \
    rlim_t want_ = (rlim_t)(value);                                                                                    \
    if (getrlimit(which, &now_) != 0) break;                                                                           \
    if (now_.rlim_max != RLIM_INFINITY && want_ > now_.rlim_max) want_ = now_.rlim_max;                                \
    now_.rlim_cur = now_.rlim_max = want_;                                                                             \
    (void)setrlimit(which, &now_);                                                                                     \
  } while (0)

void os_limit_memory(uint64_t bytes) { PROCESS_SET_LIMIT(RLIMIT_AS, bytes); }

void os_raise_fd_limit(void) {
  struct rlimit now;
  if (getrlimit(RLIMIT_NOFILE, &now) != 0) return;
  rlim_t want = now.rlim_max < 65536 ? now.rlim_max : 65536;
#ifdef OPEN_MAX
  if (want > OPEN_MAX && now.rlim_max == RLIM_INFINITY) want = OPEN_MAX; /* macOS refuses more */
#endif
  now.rlim_cur = want;
  (void)setrlimit(RLIMIT_NOFILE, &now);
}

void os_cpu_alarm(uint32_t ms) {
  struct itimerval timer = {.it_value = {ms / 1000, (ms % 1000) * 1000}};
  (void)setitimer(ITIMER_PROF, &timer, NULL);
}

/* ---- Spawning ---- */

/* Runs in the child. socket, null and report are above the child's descriptors, CLOEXEC and distinct. Never returns. */
static void spawn_exec_child(const os_spawn_options *o, int socket, int null, int report) {
  struct sigaction default_action = {.sa_handler = SIG_DFL};
  sigset_t none;
  int errnum;
  sigemptyset(&none);
  for (int s = 1; s < 32; s++) sigaction(s, &default_action, NULL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) goto failed;
  /* without standard error the first file that the program opens would take its number */
  if ((o->quiet || fcntl(STDERR_FILENO, F_GETFD) < 0) && dup2(null, STDERR_FILENO) < 0) goto failed;
  if (dup2(socket, OS_SPAWN_FD) < 0) goto failed;
  if (dup2(report, OS_SPAWN_FD + 1) < 0 || fcntl(OS_SPAWN_FD + 1, F_SETFD, FD_CLOEXEC) < 0) goto failed;
  report = OS_SPAWN_FD + 1;
  os_sys_close_from(report + 1);
  if (o->memory_bytes) PROCESS_SET_LIMIT(RLIMIT_AS, o->memory_bytes);
  if (o->cpu_seconds) PROCESS_SET_LIMIT(RLIMIT_CPU, o->cpu_seconds);
  if (o->no_core) PROCESS_SET_LIMIT(RLIMIT_CORE, 0);
  if (o->no_new_privs) (void)os_sys_no_new_privs();
  execv(o->path, (char *const *)(uintptr_t)o->argv);
failed:
  errnum = errno;
  while (write(report, &errnum, sizeof errnum) < 0 && errno == EINTR) continue;
  _exit(127);
}

/* Moves a descriptor above those that the child has; the original is closed. */
static int spawn_lift_fd(int fd) {
  if (fd < 0 || fd > OS_SPAWN_FD + 1) return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, OS_SPAWN_FD + 2);
  os_close_quietly(fd);
  return up;
}

static int spawn_read_errno(int fd) {
  int errnum = 0;
  ssize_t got = OS_RETRY(read(fd, &errnum, sizeof errnum));
  return got == (ssize_t)sizeof errnum ? errnum : 0;
}

typedef struct spawn_fds {
  int pair[2], report[2], null;
} spawn_fds;

/* Also those that stay here: a program without standard streams still reads 0 and prints to 1 and 2. */
static bool spawn_open_fds(spawn_fds *f) {
  *f = (spawn_fds){{-1, -1}, {-1, -1}, -1};
  if (os_sys_socket_pair(f->pair) != 0 || os_sys_pipe(f->report) != 0) return false;
  f->null = OS_RETRY(open("/dev/null", O_RDWR | O_CLOEXEC));
  int *all[] = {&f->pair[0], &f->pair[1], &f->report[0], &f->report[1], &f->null};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if ((*all[i] = spawn_lift_fd(*all[i])) < 0) return false;
  return true;
}

static void spawn_close_fds(spawn_fds *f) {
  int all[] = {f->pair[0], f->pair[1], f->report[0], f->report[1], f->null};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) os_close_quietly(all[i]);
}

static pid_t spawn_fork(const os_spawn_options *o, const spawn_fds *f) {
  sigset_t all, before;
  /* None of our signal handlers may run in the child, where memory may be half-modified. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = fork();
  int errnum = errno;
  if (pid == 0) spawn_exec_child(o, f->pair[1], f->null, f->report[1]);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = errnum;
  return pid;
}

pid_t os_shared_spawn(const os_spawn_options *options, int *fd, bool *refused) {
  spawn_fds f;
  os_exit end;
  pid_t pid = -1;
  *fd = -1;
  *refused = false;
  if (spawn_open_fds(&f)) pid = spawn_fork(options, &f);
  if (pid > 0) {
    close(f.report[1]);
    f.report[1] = -1;
    int errnum = spawn_read_errno(f.report[0]);
    if (errnum == 0) {
      *fd = f.pair[0];
      f.pair[0] = -1;
    } else {
      (void)os_wait(pid, true, &end);
      pid = -1;
      *refused = true;
      errno = errnum;
    }
  }
  spawn_close_fds(&f);
  return pid;
}

pid_t os_shared_start(char *const *argv, int in, int out) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int errnum = posix_spawn_file_actions_init(&actions);
  if (errnum == 0) {
    if (in == OS_NULL) posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    for (int to = STDOUT_FILENO; to <= STDERR_FILENO; to++) {
      if (out == OS_NULL) posix_spawn_file_actions_addopen(&actions, to, "/dev/null", O_WRONLY, 0);
      if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, to);
    }
    errnum = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
  }
  if (errnum == 0) return pid;
  errno = errnum;
  return -1;
}

int os_wait(pid_t pid, bool wait, os_exit *end) {
  int status = 0;
  *end = (os_exit){0};
  pid_t got = OS_RETRY(waitpid(pid, &status, wait ? 0 : WNOHANG));
  if (got <= 0) return (int)got;
  if (WIFSIGNALED(status)) end->signal = WTERMSIG(status);
  if (WIFEXITED(status)) end->code = WEXITSTATUS(status);
  return 1;
}

int os_pipe(int ends[2]) { return os_sys_pipe(ends); }

/* ---- Surroundings ---- */

void os_reserve_stdio(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

bool os_terminal_size(int fd, unsigned *rows, unsigned *columns) {
  struct winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return false;
  *rows = size.ws_row;
  *columns = size.ws_col;
  return true;
}

static struct termios process_keys_before;
static volatile sig_atomic_t process_keys_known;

bool os_keys_begin(int fd) {
  struct termios now;
  if (tcgetattr(fd, &now) != 0) return false;
  if (!process_keys_known) process_keys_before = now;
  process_keys_known = 1;
  now.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INLCR | IGNCR | IXON);
  now.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
  now.c_cc[VMIN] = 1;
  now.c_cc[VTIME] = 0;
  return tcsetattr(fd, TCSADRAIN, &now) == 0;
}

void os_keys_end(int fd) {
  if (process_keys_known) (void)tcsetattr(fd, TCSADRAIN, &process_keys_before);
  process_keys_known = 0;
}

int os_wait_input(int fd, int timeout_ms) {
  struct pollfd one = {.fd = fd, .events = POLLIN};
  int n = poll(&one, 1, timeout_ms);
  return n < 0 ? (errno == EINTR ? 0 : -1) : n;
}

bool os_disk_free(const char *path, uint64_t *bytes) {
  struct statvfs disk;
  if (OS_RETRY(statvfs(path, &disk)) != 0) return false;
  *bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
  return true;
}
