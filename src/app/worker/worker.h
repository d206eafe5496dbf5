/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the process that does the engine work of a long-lived front end. supervisor.h starts it.
 *
 * It receives calls, runs each on a thread of its pool, and sends the replies. A service handles the calls with one
 * prefix: "chroma." or, for all other names, the operation table ("db.query", "search").
 */
#ifndef LODE_WORKER_WORKER_H
#define LODE_WORKER_WORKER_H

#include "worker/shared_stores.h"
#include "worker/wire.h"

/* Options of a worker, passed as its arguments. Its socket is PROC_CHILD_FD; the first message on it is the
 * descriptor for the worker part of a crash report (SCM_RIGHTS, with one byte). */
typedef struct worker_options {
  const char *store;
  const char *beside; /* of a store on a cluster: the project's folder, which may be written; NULL: none */
  uint64_t memory_bytes, max_document_bytes; /* 0: the library's defaults */
  uint32_t busy_ms;
  uint32_t threads;       /* 0 = by the number of CPUs, 4 to 32 */
  bool create;            /* create the store if it does not exist */
  bool preload;           /* open the store before the first call */
  bool no_sandbox;        /* no Landlock, no seccomp: for sanitizers and debuggers */
  bool read_only;         /* never write to the store, nor create one */
  bool found, adopted;    /* see op_context */
  op_model_policy models; /* models that requests may name; at most OP_MAX_ALLOWED_MODELS */
} worker_options;

#define WORKER_ARG "--worker"

/* argv for exec, NULL-terminated; its strings live in the buffer. */
#define WORKER_FIXED_ARGS 9 /* followed by the names of models */
#define WORKER_MAX_ARGS (WORKER_FIXED_ARGS + OP_MAX_ALLOWED_MODELS)
LODE_MUST lode_status worker_build_argv(const worker_options *setup, const char *program, strbuf *buffer,
                                        char *argv[WORKER_MAX_ARGS + 1], lode_error *err);

/* One call, as its service sees it. */
typedef struct worker_task worker_task;
struct worker_task {
  const char *name;
  lode_str words[WIRE_MAX_WORDS];
  size_t n_words;
  lode_str body; /* NUL-terminated */
  unsigned flags;
  worker_stores *shared;
  strbuf out;      /* body of the reply: filled by the service */
  unsigned code;   /* status of the reply */
  bool defer_read; /* set by worker_task_defer() */
  void *job;       /* private to the worker; NULL: run without a worker, with no cancellation, rows or progress */
};

/* True if the caller has cancelled the call. */
bool worker_task_cancelled(const worker_task *task);
/* Asked before a read of this many rows. True: it is a large read, and no more of those may run now. The service
 * must return at once without a reply; it is run again from the start later. */
bool worker_task_defer(worker_task *task, uint64_t rows);
#define WORKER_LARGE_READ_ROWS 1000
/* A progress callback for the library that stops it when the caller has cancelled. */
lode_progress worker_task_cancel_hook(worker_task *task);
/* Only if task->flags ask for it. */
LODE_MUST lode_status worker_task_send_row(worker_task *task, lode_str row, lode_error *err);
void worker_task_progress(worker_task *task, const char *phase, uint64_t done, uint64_t total);
__attribute__((format(printf, 2, 3))) void worker_task_log(worker_task *task, const char *format, ...);

typedef struct worker_service {
  const char *prefix; /* "chroma."; the last service takes the rest */
  void (*run)(worker_task *task);
} worker_service;
extern const worker_service worker_services[]; /* ends with a NULL prefix */

/* For services: approximate maximum size of a reply that is collected in memory. */
#define WORKER_MAX_REPLY_BYTES (256 << 20)
void worker_op_service(worker_task *task);
#define WORKER_REMOTE_CALLER "afar"
/* The second word of a remote caller: it may bring the index of the store's own project up to date. */
#define WORKER_OWN_PROJECT "own project"
/* The operation named by a call, or NULL. */
const op_def *worker_op_of_call(const char *name);

/* main() of a worker, when argv[1] is WORKER_ARG. `services` NULL: worker_services. */
int worker_main(int argc, char **argv, const worker_service *services);

#endif
