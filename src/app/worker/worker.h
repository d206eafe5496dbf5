/* worker.h - the process that does the engine work of a long-lived face. supervisor.h starts it.
 *
 * It receives calls, runs each on a thread of its pool, and sends the answers. A service is the code behind calls with
 * one prefix: "chroma." or, for all other names, the table of operations ("db.query", "search").
 */
#ifndef LODE_WORKER_WORKER_H
#define LODE_WORKER_WORKER_H

#include "worker/shared_stores.h"
#include "worker/wire.h"

/* What a worker is started with. It travels as its arguments; its socket is PROC_CHILD_FD, and the first thing that comes
 * through it is the descriptor for its half of a crash report (SCM_RIGHTS, with one byte). */
typedef struct worker_options {
  const char *store;
  uint64_t memory_bytes, max_document_bytes; /* 0: the library's defaults */
  uint32_t busy_ms;
  uint32_t threads;    /* 0 = by the number of CPUs, 4 to 32 */
  bool create;         /* make the store if there is none */
  bool preload;        /* open the store before the first call */
  bool no_sandbox;     /* no Landlock, no seccomp: for sanitizers and debuggers */
  bool read_only;      /* never write to the store, nor make one */
  bool found, adopted; /* as in op_context */
  op_model_policy models; /* which ones requests may name; at most OP_MAX_ALLOWED_MODELS */
} worker_options;

#define WORKER_ARG "--worker"

/* argv for exec, NULL behind it; its strings live in the buffer. */
#define WORKER_FIXED_ARGS 8 /* and the names of models after these */
#define WORKER_MAX_ARGS (WORKER_FIXED_ARGS + OP_MAX_ALLOWED_MODELS)
lode_status worker_build_argv(const worker_options *setup, const char *program, strbuf *buffer,
                              char *argv[WORKER_MAX_ARGS + 1], lode_error *err);

/* One call, as its service sees it. */
typedef struct worker_task worker_task;
struct worker_task {
  const char *name;
  lode_str words[WIRE_MAX_WORDS];
  size_t n_words;
  lode_str body;       /* NUL behind it */
  unsigned flags;
  worker_stores *shared;
  strbuf out;       /* the answer's body: filled by the service */
  unsigned code;       /* and its status */
  bool defer_read;       /* by worker_task_defer() */
  void *job;           /* the worker's; NULL: run without one, and nobody cancels it or hears of rows and progress */
};

/* True when the caller does not want it any more. */
bool worker_task_cancelled(const worker_task *task);
/* Before a read of this many rows. True: it is a large one, and as many of those run as may. The service returns at once, without an
 * answer, and is run again from the start when there is room. */
bool worker_task_defer(worker_task *task, uint64_t rows);
#define WORKER_LARGE_READ_ROWS 1000
/* For requests to the library: asks whether the caller still wants it. */
lode_progress worker_task_cancel_hook(worker_task *task);
/* Only where task->flags ask for them. */
lode_status worker_task_send_row(worker_task *task, lode_str row, lode_error *err);
void worker_task_progress(worker_task *task, const char *phase, uint64_t done, uint64_t total);
__attribute__((format(printf, 2, 3))) void worker_task_log(worker_task *task, const char *format, ...);

typedef struct worker_service {
  const char *prefix;  /* "chroma."; the last one takes what is left */
  void (*run)(worker_task *task);
} worker_service;
extern const worker_service worker_services[]; /* ends with a NULL prefix */

/* Of the services: an answer that is gathered as a whole may be this long, a little more or less. */
#define WORKER_MAX_REPLY_BYTES (256 << 20)
void worker_op_service(worker_task *task);
#define WORKER_REMOTE_CALLER "afar"
/* The operation that a call's name means, or NULL. */
const op_def *worker_op_of_call(const char *name);
/* {"error":{"status","message","record"}} */
void worker_put_error(strbuf *out, lode_status status, const lode_error *err);

/* main() of a worker, when argv[1] is WORKER_ARG. `services` NULL: worker_services. */
int worker_main(int argc, char **argv, const worker_service *services);

#endif
