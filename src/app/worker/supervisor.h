/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - runs the worker process of a long-lived front end, and restarts it.
 *
 * A long-lived front end (HTTP, MCP) parses its protocol and never touches the store. All engine work is a call, run
 * by a worker: this program again, as `lode --worker`. If the worker dies for any reason,
 *   - each call that it had received ends with SUPERVISOR_WORKER_DIED and a text that names the crash report; it is not
 *     retried;
 *   - calls that it had not received wait for the next worker;
 *   - a crash report is written (crash.h), and a new worker is started: at once, or after a growing delay if workers
 *     die without having answered anything.
 *
 * Threads: any thread may submit and cancel calls and read statistics. The supervisor's own thread does the rest and
 * runs the callbacks, one at a time and without a lock held: keep them short; they may submit calls. Only `done` of a
 * call that is cancelled before it was sent runs in supervisor_cancel, and of calls left at the end in
 * supervisor_stop. `done` is called exactly once for each accepted call, and last. Everything is bounded: calls, bytes
 * in flight, and the time of each call.
 */
#ifndef LODE_WORKER_SUPERVISOR_H
#define LODE_WORKER_SUPERVISOR_H

#include "worker/wire.h"
#include "worker/worker.h"

typedef struct supervisor_state supervisor_state;

typedef struct supervisor_options {
  const char *program; /* NULL: this program */
  worker_options setup;
  size_t max_calls;    /* calls in flight; 0 = 2,048 */
  size_t max_bytes;    /* total size of bodies in flight; 0 = 1 GiB */
  uint32_t timeout_ms; /* default for calls that are not long; 0 = 60,000 */
  uint32_t stuck_ms;   /* a worker that still holds a call this long after its timeout is killed; 0 = 30,000 */
  void (*log)(void *ctx, const char *line); /* called from any of its threads; may be NULL */
  void *log_ctx;
} supervisor_options;

/* The folder of crash reports: below the store's; if the store is a cluster or read-only, below the user's state
 * folder, which is created now, because the sandbox has to know it. Without it there are no reports. */
void supervisor_put_crash_folder(const worker_options *setup, strbuf *folder);
LODE_MUST lode_status supervisor_start(const supervisor_options *options, supervisor_state **supervisor,
                                       lode_error *err);
/* Accepts no more calls, waits up to grace_ms for those in flight, lets the worker close the store, and frees. */
void supervisor_stop(supervisor_state *supervisor, uint32_t grace_ms);

/* ---- Calls ---- */

typedef enum supervisor_outcome {
  SUPERVISOR_ANSWERED,
  SUPERVISOR_WORKER_DIED, /* while it had the call */
  SUPERVISOR_TIMED_OUT,   /* took longer than allowed */
  SUPERVISOR_CANCELLED,   /* before it was sent to the worker */
  SUPERVISOR_STOPPING,    /* the supervisor is stopping */
} supervisor_outcome;

typedef struct supervisor_reply {
  supervisor_outcome end;
  unsigned code; /* ANSWERED: status set by the service */
  char *body;    /* ANSWERED: allocated, NUL-terminated; a callback that takes it sets this to NULL */
  size_t size;
  const char *text; /* otherwise: what happened, for people */
} supervisor_reply;

typedef struct supervisor_call {
  const char *name;      /* "db.query", "chroma.add": appears in logs and reports */
  const lode_str *words; /* arguments that are names, without NUL; copied */
  size_t n_words;
  lode_str body;  /* must stay valid until done */
  unsigned flags; /* WIRE_CALL_ROWS, ... */
  uint32_t timeout_ms;
  uint64_t client; /* calls of different clients take turns; 0 is a client too */
  void (*row)(void *ctx, lode_str row);
  void (*progress)(void *ctx, lode_str phase, uint64_t done, uint64_t total);
  void (*done)(void *ctx, supervisor_reply *answer);
  void *ctx;
} supervisor_call;

/* LODE_LIMIT: too many calls at once, try again later. LODE_CANCELLED: stopping. On LODE_OK, done will be called,
 * perhaps before this returns. `id` may be NULL. */
LODE_MUST lode_status supervisor_submit(supervisor_state *supervisor, const supervisor_call *call, uint64_t *id,
                                        lode_error *err);
/* Asks a call to stop; done is called in any case. An id that is no longer in use is ignored. */
void supervisor_cancel(supervisor_state *supervisor, uint64_t id);

/* ---- Statistics ---- */

typedef struct supervisor_stats {
  bool ready;   /* a worker accepts calls */
  pid_t worker; /* pid, 0: none */
  size_t in_flight;
  uint64_t calls, refused, answered, died, expired, restarts;
  uint64_t restart_ns; /* duration of the last restart: from the death of a worker until the next one was ready */
} supervisor_stats;
void supervisor_get_stats(supervisor_state *supervisor, supervisor_stats *stats);

#endif
