/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - child processes; see proc.h. */
#include "os/proc.h"

#include "os/os.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

lode_status proc_spawn(const proc_options *options, proc_child *proc, lode_error *err) {
  bool refused;
  *proc = PROC_NONE;
  proc_child child;
  child.pid = os_spawn(options, &child.fd, &refused);
  if (child.pid > 0) {
    *proc = child;
    return LODE_OK;
  }
  if (!refused) return err_errno(err, errno, "starting a process");
  if (errno != ENOENT && errno != EACCES && errno != ENOTDIR && errno != ENOEXEC)
    return err_errno(err, errno, options->path);
  return err_set(err, LODE_NOT_FOUND, "%.400s cannot be started: %s", options->path, strerror(errno));
}

/* ---- Waiting for a child ---- */

static proc_exit proc_wait(proc_child *proc, bool wait) {
  os_exit how;
  if (proc->pid <= 0) return (proc_exit){.ended = true};
  int got = os_wait(proc->pid, wait, &how);
  if (got == 0) return (proc_exit){0};
  proc->pid = 0;
  /* also if somebody else reaped it: then the exit status is unknown */
  return (proc_exit){.ended = true, .signal = how.signal, .code = how.code};
}

static void proc_hang_up(proc_child *proc) {
  if (proc->fd >= 0) close(proc->fd);
  proc->fd = -1;
}

proc_exit proc_poll(proc_child *proc) { return proc_wait(proc, false); }

proc_exit proc_kill(proc_child *proc) {
  proc_exit end = proc_wait(proc, false);
  proc_hang_up(proc);
  if (end.ended) return end;
  kill(proc->pid, SIGKILL); /* it is not reaped yet, so the pid is still its own */
  return proc_wait(proc, true);
}

proc_exit proc_close(proc_child *proc, uint32_t wait_ms) {
  uint64_t until = os_api->now_ns() + (uint64_t)wait_ms * 1000000u, pause_us = 100;
  proc_hang_up(proc);
  for (;;) {
    proc_exit end = proc_wait(proc, false);
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
