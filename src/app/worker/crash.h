/* crash.h - what is left of a worker that died.
 *
 * The worker's half runs inside a signal handler: it writes signal, operation, backtrace and the state of the store to a
 * descriptor that the supervisor holds too, by async-signal-safe calls alone. The supervisor's half makes a file of it, adds
 * what only the living know (how the process ended, which calls were in flight, the store's files), and keeps the newest
 * reports. No report holds a word of a document, an id, or an argument of a call.
 */
#ifndef LODE_WORKER_CRASH_H
#define LODE_WORKER_CRASH_H

#include "os/proc.h"

#include <stdatomic.h>

/* ---- In the worker ---- */

/* Figures that the handler prints; the engine keeps them. */
typedef struct crash_stats {
  atomic_bool open;            /* the store is */
  atomic_uint committing;      /* threads that are inside a write */
  atomic_ullong commits, calls;
} crash_stats;
extern crash_stats crash_live_stats;

/* Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS and SIGABRT; once, before threads start. */
lode_status crash_install(int fd, lode_error *err);
/* For each thread, before its first call: a stack of its own for the handler, so that an overflow is caught too. */
lode_status crash_thread_begin(lode_error *err);
void crash_thread_end(void);
/* What this thread does now; must stay valid until the next call. NULL: nothing. */
void crash_set_activity(const char *name);

/* ---- In the supervisor ---- */

#define CRASH_NAME_BYTES 64
typedef struct crash_call {
  char name[CRASH_NAME_BYTES];
  uint64_t ms; /* how long it had been running */
} crash_call;

typedef struct crash_facts {
  const char *folder;     /* where reports go: made if there is none */
  const char *store;
  pid_t pid;
  proc_exit end;
  uint64_t lived_ms, answered;
  int fd;                 /* the worker's half */
  const crash_call *calls;
  size_t n_calls;         /* in flight */
} crash_facts;

/* Writes a report and names it in `path`; the oldest beyond CRASH_MAX_REPORTS go. */
#define CRASH_MAX_REPORTS 20
lode_status crash_write_report(const crash_facts *facts, strbuf *path, lode_error *err);
/* "SIGSEGV", "exit status 3" */
void crash_describe_end(const proc_exit *end, char *text, size_t size);

#endif
