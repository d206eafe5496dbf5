/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - child processes that do dangerous work: spawning, limits, reaping. os/frame.h has the messages
 * between parent and child.
 *
 * A child is a program started by fork and exec with one end of a socket pair as descriptor 3, /dev/null as standard
 * input and output, and no other descriptor of ours except standard error. Memory and CPU limits are set before exec. A
 * child reads the end of its socket when it is no longer needed or its parent is gone, and exits; nothing depends on
 * signals from the parent.
 *
 * Threads: a proc_child belongs to one thread at a time. Spawning is safe in a multi-threaded process: between fork and
 * exec only async-signal-safe calls are made. Never use PR_SET_PDEATHSIG: it fires when the spawning *thread* ends.
 */
#ifndef LODE_OS_PROC_H
#define LODE_OS_PROC_H

#include "base/base.h"

#include "platform/process.h"

#define PROC_CHILD_FD OS_SPAWN_FD /* the child's end */

typedef struct proc_child {
  pid_t pid; /* 0: none */
  int fd;    /* the parent's end, CLOEXEC, blocking; -1: none */
} proc_child;
#define PROC_NONE ((proc_child){0, -1})

typedef os_spawn_options proc_options; /* platform/process.h */

/* LODE_NOT_FOUND if there is no such program, or it cannot be executed. */
LODE_MUST lode_status proc_spawn(const proc_options *options, proc_child *proc, lode_error *err);

typedef struct proc_exit {
  bool ended;
  int signal; /* the signal that ended it, or 0 */
  int code;   /* its exit code if no signal did */
} proc_exit;

/* Closes the socket, which asks the child to exit; waits up to wait_ms, then kills it by its pid; reaps it. Returns how
 * it ended (signal 9 if it had to be killed). *proc is PROC_NONE afterwards. */
proc_exit proc_close(proc_child *proc, uint32_t wait_ms);
/* Kills it at once and reaps it. If it has ended already, returns how. */
proc_exit proc_kill(proc_child *proc);
/* Has it ended? If so, reaps it; never waits. */
proc_exit proc_poll(proc_child *proc);
/* "SIGSEGV", or "signal 63" if it has no well-known name; buf is used only for the latter. */
const char *proc_signal_name(int number, char *buf, size_t size);

#endif
