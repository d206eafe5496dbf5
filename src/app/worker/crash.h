/* SPDX-License-Identifier: Apache-2.0 */
/* crash.h - reports about workers that died.
 *
 * The worker part runs in a signal handler: it writes signal, operation, backtrace and the state of the store to a
 * descriptor shared with the supervisor, using async-signal-safe calls only. The supervisor part writes this to a
 * file, adds what only the supervisor knows (how the process ended, which calls were in flight, the store's files),
 * and keeps the newest reports. No report contains any part of a document, an id, or an argument of a call.
 */
#ifndef LODE_WORKER_CRASH_H
#define LODE_WORKER_CRASH_H

#include "os/proc.h"

#include <stdatomic.h>

/* ---- In the worker ---- */

/* Counters that the handler prints; updated by the worker. */
typedef struct crash_stats {
  atomic_bool open;       /* the store is open */
  atomic_uint committing; /* threads inside a write */
  atomic_ullong commits, calls;
} crash_stats;
extern crash_stats crash_live_stats;

/* Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS and SIGABRT. Called once, before threads start. */
LODE_MUST lode_status crash_install(int fd, lode_error *err);
/* Called by each thread before its first call: sets up an alternate stack for the handler, so that stack overflows
 * are caught too. */
LODE_MUST lode_status crash_thread_begin(lode_error *err);
void crash_thread_end(void);
/* Sets what this thread is doing; the string must stay valid until the next call. NULL: nothing. */
void crash_set_activity(const char *name);

/* ---- In the supervisor ---- */

#define CRASH_NAME_BYTES 64
typedef struct crash_call {
  char name[CRASH_NAME_BYTES];
  uint64_t ms; /* how long it had been running */
} crash_call;

typedef struct crash_facts {
  const char *folder; /* folder of the reports; created if missing */
  const char *store;
  pid_t pid;
  proc_exit end;
  uint64_t lived_ms, answered;
  int fd; /* descriptor with the worker part */
  const crash_call *calls;
  size_t n_calls; /* calls in flight */
} crash_facts;

/* Writes a report and stores its path in `path`; of more than CRASH_MAX_REPORTS reports the oldest are removed. */
#define CRASH_MAX_REPORTS 20
LODE_MUST lode_status crash_write_report(const crash_facts *facts, strbuf *path, lode_error *err);
/* "SIGSEGV", "exit status 3" */
void crash_describe_end(const proc_exit *end, char *text, size_t size);

#endif
