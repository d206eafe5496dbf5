/* worker.h - the process that does the engine work of a long-lived face. supervisor.h starts it.
 *
 * It receives calls, runs each on a thread of its pool, and sends the answers. A service is the code behind calls with
 * one prefix: "chroma." or, for all other names, the table of operations ("db.query", "search").
 */
#ifndef LODE_FACE_WORKER_H
#define LODE_FACE_WORKER_H

#include "shared.h"
#include "wire.h"

/* What a worker is started with. It travels as its arguments; its socket is PROC_CHILD_FD, and the first thing that comes
 * through it is the descriptor for its half of a crash report (SCM_RIGHTS, with one byte). */
typedef struct lode__worker_setup {
  const char *store;
  uint64_t memory_bytes, max_document_bytes; /* 0: the library's defaults */
  uint32_t busy_ms;
  uint32_t threads;    /* 0 = by the number of CPUs, 4 to 32 */
  bool create;         /* make the store if there is none */
  bool preload;        /* open the store before the first call */
  bool no_sandbox;     /* no Landlock, no seccomp: for sanitizers and debuggers */
  bool read_only;      /* never write to the store, nor make one */
  bool found, adopted; /* as in lode__op_context */
  lode__model_policy models; /* which ones requests may name; at most LODE__MODELS_ALLOWED */
} lode__worker_setup;

#define LODE__WORKER_ARG "--worker"

/* argv for exec, NULL behind it; its strings live in the buffer. */
#define LODE__WORKER_ARGC 8 /* and the names of models after these */
#define LODE__WORKER_MOST_ARGS (LODE__WORKER_ARGC + LODE__MODELS_ALLOWED)
lode_status lode__worker_argv(const lode__worker_setup *setup, const char *program, strbuf *buffer,
                              char *argv[LODE__WORKER_MOST_ARGS + 1], lode_error *err);

/* One call, as its service sees it. */
typedef struct lode__task lode__task;
struct lode__task {
  const char *name;
  lode_str words[LODE__WIRE_WORDS];
  size_t n_words;
  lode_str body;       /* NUL behind it */
  unsigned flags;
  lode__shared *shared;
  strbuf out;       /* the answer's body: filled by the service */
  unsigned code;       /* and its status */
  bool put_back;       /* by lode__task_put_back() */
  void *job;           /* the worker's; NULL: run without one, and nobody cancels it or hears of rows and progress */
};

/* True when the caller does not want it any more. */
bool lode__task_cancelled(const lode__task *task);
/* Before a read of this many rows. True: it is a large one, and as many of those run as may. The service returns at once, without an
 * answer, and is run again from the start when there is room. */
bool lode__task_put_back(lode__task *task, uint64_t rows);
#define LODE__LARGE_ROWS 1000
/* For requests to the library: asks whether the caller still wants it. */
lode_progress lode__task_wanted(lode__task *task);
/* Only where task->flags ask for them. */
lode_status lode__task_row(lode__task *task, lode_str row, lode_error *err);
void lode__task_progress(lode__task *task, const char *phase, uint64_t done, uint64_t total);
__attribute__((format(printf, 2, 3))) void lode__task_log(lode__task *task, const char *format, ...);

typedef struct lode__service {
  const char *prefix;  /* "chroma."; the last one takes what is left */
  void (*run)(lode__task *task);
} lode__service;
extern const lode__service lode__services[]; /* ends with a NULL prefix */

/* Of the services: an answer that is gathered as a whole may be this long, a little more or less. */
#define LODE__ANSWER_BYTES (256 << 20)
void lode__service_op(lode__task *task);
#define LODE__FROM_AFAR "afar"
void lode__service_mcp(lode__task *task);
/* The operation that a call's name means, or NULL. */
const lode__op *lode__op_of_call(const char *name);
/* {"error":{"status","message","record"}} */
void lode__put_error(strbuf *out, lode_status status, const lode_error *err);

/* main() of a worker, when argv[1] is LODE__WORKER_ARG. `services` NULL: lode__services. */
int lode__worker_main(int argc, char **argv, const lode__service *services);

#endif
