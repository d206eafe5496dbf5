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
#ifndef LODE_FACE_SUPERVISOR_H
#define LODE_FACE_SUPERVISOR_H

#include "wire.h"
#include "worker.h"

typedef struct lode__supervisor lode__supervisor;

typedef struct lode__supervisor_options {
  const char *program;     /* NULL: this one */
  lode__worker_setup setup;
  size_t max_calls;        /* at a time; 0 = 2,048 */
  size_t max_bytes;        /* of bodies in flight; 0 = 1 GiB */
  uint32_t timeout_ms;     /* of calls that name none and are not long; 0 = 60,000 */
  uint32_t stuck_ms;       /* a worker that keeps a call for this long after it was given up is ended; 0 = 30,000 */
  void (*log)(void *ctx, const char *line); /* from any thread of the supervisor's; may be NULL */
  void *log_ctx;
} lode__supervisor_options;

lode_status lode__supervisor_start(const lode__supervisor_options *options, lode__supervisor **supervisor, lode_error *err);
/* Takes no more calls, lets those in flight finish for grace_ms, lets the worker close the store, and frees. */
void lode__supervisor_stop(lode__supervisor *supervisor, uint32_t grace_ms);

/* ---- Calls ---- */

typedef enum lode__call_end {
  LODE__CALL_ANSWERED,
  LODE__CALL_DIED,      /* the worker did, while it had the call */
  LODE__CALL_EXPIRED,   /* it took longer than it may */
  LODE__CALL_CANCELLED, /* before the worker had it */
  LODE__CALL_STOPPED,   /* the supervisor is stopping */
} lode__call_end;

typedef struct lode__answer {
  lode__call_end end;
  unsigned code;       /* ANSWERED: what the service said */
  char *body;          /* ANSWERED: allocated, NUL behind it; whoever takes it sets this to NULL */
  size_t size;
  const char *text;    /* otherwise: what happened, for people */
} lode__answer;

typedef struct lode__call {
  const char *name;           /* "db.query", "chroma.add": goes into logs and reports */
  const lode_str *words;      /* arguments that are names: no NUL in them; copied */
  size_t n_words;
  lode_str body;              /* must stay until done */
  unsigned flags;             /* LODE__CALL_ROWS, ... */
  uint32_t timeout_ms;
  uint64_t client;            /* calls of different clients take turns; 0 is one too */
  void (*row)(void *ctx, lode_str row);
  void (*progress)(void *ctx, lode_str phase, uint64_t done, uint64_t total);
  void (*done)(void *ctx, lode__answer *answer);
  void *ctx;
} lode__call;

/* LODE_LIMIT: too many at once, try again later. LODE_CANCELLED: stopping. When it is LODE_OK, done will come, perhaps
 * before this returns. `id` may be NULL. */
lode_status lode__supervisor_call(lode__supervisor *supervisor, const lode__call *call, uint64_t *id, lode_error *err);
/* Asks it to stop; done comes anyway. An id that is gone is nothing. */
void lode__supervisor_cancel(lode__supervisor *supervisor, uint64_t id);

/* ---- Figures ---- */

typedef struct lode__supervisor_figures {
  bool ready;            /* a worker takes calls */
  pid_t worker;          /* 0: none */
  size_t in_flight;
  uint64_t calls, refused, answered, died, expired, restarts;
  uint64_t restart_ns;   /* of the last restart: from the death of a worker to the next one taking calls */
} lode__supervisor_figures;
/* The folder of reports; as long as the supervisor lives. */
const char *lode__supervisor_crashes(const lode__supervisor *supervisor);
void lode__supervisor_figures_get(lode__supervisor *supervisor, lode__supervisor_figures *figures);

#endif
