/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - child processes; see proc.h.
 *
 * Between fork and exec, locks may be held by threads of the parent that do not exist in the child: the child makes
 * only system calls, and everything they need is prepared before. A failed exec is reported through a pipe that a
 * successful exec closes, so that a missing program is an error here and not a child that dies.
 */
#include "os/proc.h"

#include "os/os.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Spawning ---- */

static void proc_set_limit(int which, uint64_t value) {
  struct rlimit now;
  if (getrlimit((__rlimit_resource_t)which, &now) != 0) return;
  if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max) value = now.rlim_max;
  now.rlim_cur = now.rlim_max = value;
  setrlimit((__rlimit_resource_t)which, &now);
}

/* Closes everything above the child's descriptors; without close_range, tries all descriptors below 65536. */
static void close_above(int last) {
  if (syscall(SYS_close_range, (unsigned)last + 1, ~0u, 0u) == 0) return;
  for (int fd = last + 1; fd < 65536; fd++) close(fd);
}

/* Runs in the child. `report` is CLOEXEC and above the others; socket, null and report are distinct. Never returns. */
static void proc_exec_child(const proc_options *o, int socket, int null, int report) {
  struct sigaction default_action = {.sa_handler = SIG_DFL};
  sigset_t none;
  int errnum;
  sigemptyset(&none);
  for (int s = 1; s < 32; s++) sigaction(s, &default_action, NULL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) goto failed;
  if (o->quiet && dup2(null, STDERR_FILENO) < 0) goto failed;
  if (dup2(socket, PROC_CHILD_FD) < 0) goto failed;
  if (dup3(report, PROC_CHILD_FD + 1, O_CLOEXEC) < 0) goto failed;
  report = PROC_CHILD_FD + 1;
  close_above(report);
  if (o->memory_bytes) proc_set_limit(RLIMIT_AS, o->memory_bytes);
  if (o->cpu_seconds) proc_set_limit(RLIMIT_CPU, o->cpu_seconds);
  if (o->no_core) proc_set_limit(RLIMIT_CORE, 0);
  if (o->no_new_privs) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  execv(o->path, (char *const *)(uintptr_t)o->argv);
failed:
  errnum = errno;
  while (write(report, &errnum, sizeof errnum) < 0 && errno == EINTR) continue;
  _exit(127);
}

/* Moves a descriptor above those that the child overwrites; the original is closed. */
static int proc_lift_fd(int fd) {
  if (fd < 0 || fd > PROC_CHILD_FD + 1) return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, PROC_CHILD_FD + 2), errnum = errno;
  close(fd);
  errno = errnum;
  return up;
}

static int proc_read_errno(int fd) {
  int errnum = 0;
  ssize_t got;
  do {
    got = read(fd, &errnum, sizeof errnum);
  } while (got < 0 && errno == EINTR);
  return got == (ssize_t)sizeof errnum ? errnum : 0;
}

static void proc_reap(pid_t pid) {
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

lode_status proc_spawn(const proc_options *options, proc_child *proc, lode_error *err) {
  lode_status st = LODE_OK;
  int pair[2] = {-1, -1}, report[2] = {-1, -1}, null = -1, errnum;
  sigset_t all, before;
  pid_t pid;
  *proc = PROC_NONE;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || pipe2(report, O_CLOEXEC) != 0 ||
      (null = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
    TRY_GOTO(err_errno(err, errno, "starting a process"));
  pair[1] = proc_lift_fd(pair[1]);
  report[1] = proc_lift_fd(report[1]);
  null = proc_lift_fd(null);
  if (pair[1] < 0 || report[1] < 0 || null < 0) TRY_GOTO(err_errno(err, errno, "starting a process"));
  /* None of our signal handlers may run in the child, where memory may be half-modified. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid = fork();
  errnum = errno;
  if (pid == 0) proc_exec_child(options, pair[1], null, report[1]);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (pid < 0) TRY_GOTO(err_errno(err, errnum, "starting a process"));
  close(report[1]);
  report[1] = -1;
  errnum = proc_read_errno(report[0]);
  if (errnum != 0) {
    proc_reap(pid);
    if (errnum != ENOENT && errnum != EACCES && errnum != ENOTDIR && errnum != ENOEXEC)
      TRY_GOTO(err_errno(err, errnum, options->path));
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%.400s cannot be started: %s", options->path, strerror(errnum)));
  }
  *proc = (proc_child){pid, pair[0]};
  pair[0] = -1;
done:
  for (int i = 0; i < 2; i++) {
    if (pair[i] >= 0) close(pair[i]);
    if (report[i] >= 0) close(report[i]);
  }
  if (null >= 0) close(null);
  return st;
}

/* ---- Waiting for a child ---- */

static proc_exit proc_wait(proc_child *proc, int flags) {
  proc_exit end = {0};
  int status = 0;
  pid_t got;
  if (proc->pid <= 0) return (proc_exit){.ended = true};
  do {
    got = waitpid(proc->pid, &status, flags);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return end;
  end.ended = true; /* also if somebody else reaped it: then the exit status is unknown */
  if (got > 0 && WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (got > 0 && WIFEXITED(status)) end.code = WEXITSTATUS(status);
  proc->pid = 0;
  return end;
}

static void proc_hang_up(proc_child *proc) {
  if (proc->fd >= 0) close(proc->fd);
  proc->fd = -1;
}

proc_exit proc_poll(proc_child *proc) { return proc_wait(proc, WNOHANG); }

proc_exit proc_kill(proc_child *proc) {
  proc_exit end = proc_wait(proc, WNOHANG);
  proc_hang_up(proc);
  if (end.ended) return end;
  kill(proc->pid, SIGKILL); /* it is not reaped yet, so the pid is still its own */
  return proc_wait(proc, 0);
}

proc_exit proc_close(proc_child *proc, uint32_t wait_ms) {
  uint64_t until = os_api->now_ns() + (uint64_t)wait_ms * 1000000u, pause_us = 100;
  proc_hang_up(proc);
  for (;;) {
    proc_exit end = proc_wait(proc, WNOHANG);
    if (end.ended) return end;
    if (os_api->now_ns() >= until) return proc_kill(proc);
    os_api->sleep_us(pause_us);
    if (pause_us < 10000) pause_us *= 2;
  }
}

const char *proc_signal_name(int number, char *buf, size_t size) {
  static const struct {
    int number;
    const char *name;
  } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},      {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"},
               {SIGILL, "SIGILL"},   {SIGKILL, "SIGKILL"},    {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},
               {SIGHUP, "SIGHUP"},   {SIGQUIT, "SIGQUIT"},    {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"},
               {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},
               {SIGPROF, "SIGPROF"}, {SIGVTALRM, "SIGVTALRM"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].number == number) return names[i].name;
  snprintf(buf, size, "signal %d", number);
  return buf;
}
