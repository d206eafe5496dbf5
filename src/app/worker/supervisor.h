/* supervisor.h - the worker process of a long-lived face, kept alive.
 *
 * A face that lives long (HTTP, MCP) parses its protocol and never touches the store. All engine work is a call, run by a
 * worker: this program again, under `lode --worker`. Whatever kills the worker,
 *   - each call that it had received is answered DIED, with a text that names the crash report; none is tried again by us;
 *   - calls that it had not received wait for the next one;
 *   - a crash report is written (crash.h), and a new worker is started: at once, or after a growing pause when workers
 *     die without having answered anything.
 *
 * Threads: any thread may call, cancel and ask for figures. One thread of the supervisor's own does the rest, and runs
 * all callbacks, one at a time and without a lock held: keep them short; they may make calls. `done` comes exactly once for
 * each accepted call, and last. Everything is bounded: calls, bytes in flight, and the time of each.
 */
#ifndef LODE_WORKER_SUPERVISOR_H
#define LODE_WORKER_SUPERVISOR_H

#include "worker/wire.h"
#include "worker/worker.h"

typedef struct supervisor_state supervisor_state;

typedef struct supervisor_options {
  const char *program;     /* NULL: this one */
  worker_options setup;
  size_t max_calls;        /* at a time; 0 = 2,048 */
  size_t max_bytes;        /* of bodies in flight; 0 = 1 GiB */
  uint32_t timeout_ms;     /* of calls that name none and are not long; 0 = 60,000 */
  uint32_t stuck_ms;       /* a worker that keeps a call for this long after it was given up is ended; 0 = 30,000 */
  void (*log)(void *ctx, const char *line); /* from any thread of the supervisor's; may be NULL */
  void *log_ctx;
} supervisor_options;

lode_status supervisor_start(const supervisor_options *options, supervisor_state **supervisor, lode_error *err);
/* Takes no more calls, lets those in flight finish for grace_ms, lets the worker close the store, and frees. */
void supervisor_stop(supervisor_state *supervisor, uint32_t grace_ms);

/* ---- Calls ---- */

typedef enum supervisor_outcome {
  SUPERVISOR_ANSWERED,
  SUPERVISOR_WORKER_DIED,      /* the worker did, while it had the call */
  SUPERVISOR_TIMED_OUT,   /* it took longer than it may */
  SUPERVISOR_CANCELLED, /* before the worker had it */
  SUPERVISOR_STOPPING,   /* the supervisor is stopping */
} supervisor_outcome;

typedef struct supervisor_reply {
  supervisor_outcome end;
  unsigned code;       /* ANSWERED: what the service said */
  char *body;          /* ANSWERED: allocated, NUL behind it; whoever takes it sets this to NULL */
  size_t size;
  const char *text;    /* otherwise: what happened, for people */
} supervisor_reply;

typedef struct supervisor_call {
  const char *name;           /* "db.query", "chroma.add": goes into logs and reports */
  const lode_str *words;      /* arguments that are names: no NUL in them; copied */
  size_t n_words;
  lode_str body;              /* must stay until done */
  unsigned flags;             /* WIRE_CALL_ROWS, ... */
  uint32_t timeout_ms;
  uint64_t client;            /* calls of different clients take turns; 0 is one too */
  void (*row)(void *ctx, lode_str row);
  void (*progress)(void *ctx, lode_str phase, uint64_t done, uint64_t total);
  void (*done)(void *ctx, supervisor_reply *answer);
  void *ctx;
} supervisor_call;

/* LODE_LIMIT: too many at once, try again later. LODE_CANCELLED: stopping. When it is LODE_OK, done will come, perhaps
 * before this returns. `id` may be NULL. */
lode_status supervisor_submit(supervisor_state *supervisor, const supervisor_call *call, uint64_t *id, lode_error *err);
/* Asks it to stop; done comes anyway. An id that is gone is nothing. */
void supervisor_cancel(supervisor_state *supervisor, uint64_t id);

/* ---- Figures ---- */

typedef struct supervisor_stats {
  bool ready;            /* a worker takes calls */
  pid_t worker;          /* 0: none */
  size_t in_flight;
  uint64_t calls, refused, answered, died, expired, restarts;
  uint64_t restart_ns;   /* of the last restart: from the death of a worker to the next one taking calls */
} supervisor_stats;
/* The folder of reports; as long as the supervisor lives. */
const char *supervisor_crash_folder(const supervisor_state *supervisor);
void supervisor_get_stats(supervisor_state *supervisor, supervisor_stats *figures);

#endif
