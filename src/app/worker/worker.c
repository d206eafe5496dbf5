/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h.
 *
 * Threads: the main thread receives frames; a thread pool runs the calls. `lock` guards the queues and the list of
 * running jobs; `send_lock` guards the socket, so that frames do not mix. Long calls have a queue of their own and at
 * most half of the pool, so that short calls never wait for them. Large reads have a third queue and a quarter of the
 * pool (by default one thread per CPU); a service finds out whether a read is large, and may defer it then. In each
 * queue clients take turns.
 *
 * Life cycle: READY is sent when the process is set up. When the front end closes its end, queued and running calls
 * are finished, the store is closed, and the process exits. A failure of the socket ends the process: there is nobody
 * to answer to.
 */
#include "worker/worker.h"
#include "worker/crash.h"

#include "os/os.h"
#include "os/proc.h"
#include "platform/sandbox.h"
#include "platform/socket.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { WORKER_MAX_THREADS = 64, WORKER_EXIT_FAILED = 70, WORKER_TURN_SLOTS = 256 };

typedef struct worker_state worker_state;
typedef struct worker_job worker_job;
struct worker_job {
  worker_task task;
  worker_state *worker;
  uint64_t id;
  char *payload;
  atomic_bool cancelled;
  bool large; /* counted in large_running, or in the queue of large reads */
  uint64_t client, turn;
  worker_job *next;
};

/* Sorted by turn. The first job of a client gets the next turn, its second job the turn after that, and so on: a
 * client with one job waits for at most one job of each other client, however many they have queued. Clients whose
 * numbers share a slot share turns. */
typedef struct worker_queue {
  worker_job *first, *last;
  uint64_t now;                      /* turn of the last job taken */
  uint64_t turns[WORKER_TURN_SLOTS]; /* last turn given to each client */
} worker_queue;

struct worker_state {
  const worker_service *services;
  worker_stores *shared;
  pthread_mutex_t send_lock, lock;
  pthread_cond_t work;
  worker_queue brief, large, lengthy;
  worker_job *running;
  unsigned threads, long_running, large_running;
  bool closing;
};

/* ---- Sending ---- */

static void worker_send_frame(worker_state *w, proc_frame frame, const lode_str *parts, size_t n) {
  pthread_mutex_lock(&w->send_lock);
  lode_status st = proc_frame_send(PROC_CHILD_FD, frame, parts, n, 0, NULL);
  pthread_mutex_unlock(&w->send_lock);
  if (st != LODE_OK) _exit(WORKER_EXIT_FAILED); /* the front end is gone */
}

static void worker_send_text(worker_state *w, wire_kind kind, const char *text) {
  lode_str part = str_of(text);
  worker_send_frame(w, (proc_frame){.type = (uint16_t)kind}, &part, 1);
}

static void worker_log_line(void *ctx, const char *line) { worker_send_text(ctx, WIRE_LOG, line); }

/* ---- For services ---- */

bool worker_task_cancelled(const worker_task *task) {
  worker_job *j = task->job;
  return j && atomic_load_explicit(&j->cancelled, memory_order_relaxed);
}

static bool worker_still_wanted(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return !worker_task_cancelled(ctx);
}

lode_progress worker_task_cancel_hook(worker_task *task) { return (lode_progress){worker_still_wanted, task}; }

lode_status worker_task_send_row(worker_task *task, lode_str row, lode_error *err) {
  worker_job *j = task->job;
  if (worker_task_cancelled(task)) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  if (j) worker_send_frame(j->worker, (proc_frame){.type = WIRE_ROW, .id = j->id}, &row, 1);
  return LODE_OK;
}

void worker_task_progress(worker_task *task, const char *phase, uint64_t done, uint64_t total) {
  wire_progress progress = {done, total};
  lode_str parts[2] = {{(const char *)&progress, sizeof progress}, str_of(phase)};
  worker_job *j = task->job;
  if (j) worker_send_frame(j->worker, (proc_frame){.type = WIRE_PROGRESS, .id = j->id}, parts, 2);
}

void worker_task_log(worker_task *task, const char *format, ...) {
  char line[600];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (task->job) worker_log_line(((worker_job *)task->job)->worker, line);
}

/* A quarter of the pool: the number of CPUs, unless the number of threads was set. */
static unsigned worker_max_large(const worker_state *w) { return w->threads < 8 ? 1 : w->threads / 4; }

bool worker_task_defer(worker_task *task, uint64_t rows) {
  worker_job *j = task->job;
  if (!j || rows <= WORKER_LARGE_READ_ROWS || j->large || task->flags & WIRE_CALL_LONG) return false;
  worker_state *w = j->worker;
  pthread_mutex_lock(&w->lock);
  /* those already waiting come first */
  task->defer_read = w->large.first || w->large_running >= worker_max_large(w);
  w->large_running += !task->defer_read;
  pthread_mutex_unlock(&w->lock);
  j->large = true;
  return task->defer_read;
}

/* ---- Running ---- */

static void worker_queue_add(worker_queue *q, worker_job *j) {
  uint64_t *given = &q->turns[j->client % WORKER_TURN_SLOTS];
  j->turn = *given = (*given > q->now ? *given : q->now) + 1;
  /* usually at the end: there is one client, or none has a backlog */
  worker_job **at = q->last && q->last->turn <= j->turn ? &q->last->next : &q->first;
  while (*at && (*at)->turn <= j->turn) at = &(*at)->next;
  j->next = *at;
  *at = j;
  if (!j->next) q->last = j;
}

static worker_job *worker_queue_take(worker_queue *q) {
  worker_job *j = q->first;
  if (!j) return NULL;
  q->first = j->next;
  if (!q->first) q->last = NULL;
  q->now = j->turn;
  return j;
}

/* Caller holds the lock. One large read makes progress even under a constant load of short calls. */
static worker_job *worker_take_job(worker_state *w) {
  worker_job *j = w->large_running == 0 ? worker_queue_take(&w->large) : NULL;
  if (!j) j = worker_queue_take(&w->brief);
  if (!j && w->large_running < worker_max_large(w)) j = worker_queue_take(&w->large);
  if (!j && w->long_running < (w->threads + 1) / 2) j = worker_queue_take(&w->lengthy);
  return j;
}

/* The next job for this thread, moved to the running jobs. NULL: none, and none will come. */
static worker_job *worker_next_job(worker_state *w) {
  worker_job *j = NULL;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    j = worker_take_job(w);
    if (j || (w->closing && !w->lengthy.first && !w->large.first)) break;
    pthread_cond_wait(&w->work, &w->lock);
  }
  if (j) {
    j->next = w->running;
    w->running = j;
    w->long_running += (j->task.flags & WIRE_CALL_LONG) != 0;
    w->large_running += j->large;
  }
  pthread_mutex_unlock(&w->lock);
  return j;
}

/* Caller holds the lock. */
static void worker_stop_running(worker_state *w, worker_job *j) {
  worker_job **at = &w->running;
  while (*at != j) at = &(*at)->next;
  *at = j->next;
}

static void worker_end_job(worker_state *w, worker_job *j) {
  bool is_long = (j->task.flags & WIRE_CALL_LONG) != 0;
  pthread_mutex_lock(&w->lock);
  worker_stop_running(w, j);
  w->long_running -= is_long;
  w->large_running -= j->large;
  if (is_long || j->large) pthread_cond_broadcast(&w->work);
  pthread_mutex_unlock(&w->lock);
  strbuf_release(&j->task.out);
  mem_free(j->payload);
  mem_free(j);
}

static void worker_requeue_job(worker_state *w, worker_job *j) {
  strbuf_release(&j->task.out);
  j->task.defer_read = false;
  pthread_mutex_lock(&w->lock);
  worker_stop_running(w, j);
  worker_queue_add(&w->large, j);
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
}

/* False: it was deferred. */
static bool worker_run_job(worker_state *w, worker_job *j) {
  worker_task *task = &j->task;
  const worker_service *s = w->services;
  /* the last service takes the rest */
  while (s[1].prefix && strncmp(task->name, s->prefix, strlen(s->prefix)) != 0) s++;
  crash_set_activity(task->name);
  atomic_fetch_add_explicit(&crash_live_stats.calls, 1, memory_order_relaxed);
  s->run(task);
  crash_set_activity(NULL);
  if (task->defer_read) {
    worker_requeue_job(w, j);
    return false;
  }
  lode_str part = {task->out.data, task->out.failed ? 0 : task->out.len};
  if (task->out.failed) task->code = LODE_NOMEM;
  worker_send_frame(w, (proc_frame){.type = WIRE_DONE, .code = (uint32_t)task->code, .id = j->id}, &part, 1);
  return true;
}

static void *worker_pool_thread(void *ctx) {
  worker_state *w = ctx;
  worker_job *j;
  if (crash_thread_begin(NULL) != LODE_OK) return NULL;
  while ((j = worker_next_job(w)) != NULL) {
    if (worker_run_job(w, j)) worker_end_job(w, j);
  }
  crash_thread_end();
  return NULL;
}

/* ---- Receiving ---- */

static bool worker_accept_call(worker_state *w, const proc_frame *frame, char *payload) {
  worker_job *j = mem_calloc(1, sizeof *j);
  lode_str words[WIRE_MAX_WORDS], body;
  if (!j || frame->words == 0 || !wire_split_words(frame, payload, words, &body)) {
    mem_free(j);
    return false;
  }
  j->worker = w;
  j->id = frame->id;
  j->payload = payload;
  j->client = frame->client;
  j->large = frame->code & WIRE_CALL_LARGE;
  j->task = (worker_task){.name = words[0].data,
                          .n_words = frame->words - 1u,
                          .body = body,
                          .flags = frame->code,
                          .shared = w->shared,
                          .job = j};
  for (size_t i = 1; i < frame->words; i++) j->task.words[i - 1] = words[i];
  pthread_mutex_lock(&w->lock);
  worker_queue_add(frame->code & WIRE_CALL_LONG ? &w->lengthy : j->large ? &w->large : &w->brief, j);
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
  return true;
}

static void worker_mark_cancelled(worker_job *j, uint64_t id) {
  for (; j; j = j->next)
    if (j->id == id) atomic_store(&j->cancelled, true);
}

static void worker_cancel_call(worker_state *w, uint64_t id) {
  pthread_mutex_lock(&w->lock);
  worker_mark_cancelled(w->running, id);
  worker_mark_cancelled(w->brief.first, id);
  worker_mark_cancelled(w->large.first, id);
  worker_mark_cancelled(w->lengthy.first, id);
  pthread_mutex_unlock(&w->lock);
}

/* Returns when the front end closes its end. */
static void worker_receive_all(worker_state *w) {
  proc_frame frame;
  strbuf payload = {0};
  while (proc_frame_receive(PROC_CHILD_FD, WIRE_MAX_BODY, 0, &frame, &payload, NULL) == LODE_OK) {
    if (!wire_frame_valid(&frame)) break;
    if (frame.type == WIRE_CANCEL)
      worker_cancel_call(w, frame.id);
    else if (frame.type == WIRE_CALL && worker_accept_call(w, &frame, payload.data))
      payload = (strbuf){0}; /* the job has it */
    else
      break;
  }
  strbuf_release(&payload);
}

/* ---- Start and stop ---- */

lode_status worker_build_argv(const worker_options *setup, const char *program, strbuf *buffer,
                              char *argv[WORKER_MAX_ARGS + 1], lode_error *err) {
  size_t at = 0, n = WORKER_FIXED_ARGS + setup->models.n;
  if (setup->models.n > OP_MAX_ALLOWED_MODELS)
    return err_set(err, LODE_LIMIT, "%zu models are too many to allow; the most is %d", setup->models.n,
                   OP_MAX_ALLOWED_MODELS);
  buffer->len = 0;
  strbuf_addf(buffer, "%s%c" WORKER_ARG "%c%s%c%s%c", program, 0, 0, setup->store, 0,
              setup->beside ? setup->beside : "", 0);
  strbuf_addf(buffer, "%llu%c%llu%c%u%c%u%c%u%c", (unsigned long long)setup->memory_bytes, 0,
              (unsigned long long)setup->max_document_bytes, 0, setup->busy_ms, 0, setup->threads, 0,
              setup->create | setup->preload << 1 | setup->no_sandbox << 2 | setup->read_only << 3 | setup->found << 4 |
                  setup->adopted << 5,
              0);
  for (size_t i = 0; i < setup->models.n; i++) {
    strbuf_add(buffer, setup->models.allowed[i].data, setup->models.allowed[i].len);
    strbuf_addch(buffer, 0);
  }
  if (buffer->failed) return err_nomem(err);
  for (size_t i = 0; i < n; i++) {
    argv[i] = buffer->data + at;
    at += strlen(argv[i]) + 1;
  }
  argv[n] = NULL;
  return LODE_OK;
}

static bool worker_parse_argv(worker_options *setup, int argc, char **argv, lode_str models[OP_MAX_ALLOWED_MODELS]) {
  uint64_t n[5];
  if (argc < WORKER_FIXED_ARGS || argc > WORKER_MAX_ARGS) return false;
  for (int i = 0; i < 5; i++)
    if (!op_parse_uint(str_of(argv[4 + i]), &n[i])) return false;
  *setup = (worker_options){.store = argv[2],
                            .beside = argv[3][0] ? argv[3] : NULL,
                            .memory_bytes = n[0],
                            .max_document_bytes = n[1],
                            .busy_ms = (uint32_t)n[2],
                            .threads = (uint32_t)n[3],
                            .create = n[4] & 1,
                            .preload = n[4] & 2,
                            .no_sandbox = n[4] & 4,
                            .read_only = n[4] & 8,
                            .found = n[4] & 16,
                            .adopted = n[4] & 32,
                            .models = {models, (size_t)(argc - WORKER_FIXED_ARGS)}};
  for (size_t i = 0; i < setup->models.n; i++) models[i] = str_of(argv[WORKER_FIXED_ARGS + i]);
  return true;
}

static unsigned worker_pick_threads(unsigned wanted) {
  if (wanted == 0) wanted = os_cpu_count() * 4;
  if (wanted < 4) wanted = 4;
  return wanted > 32 ? 32 : wanted;
}

static void worker_preload(worker_state *w) {
  op_open_options how = {.write = true};
  lode_store *store;
  lode_error err;
  /* each call will report a failure too */
  if (worker_stores_main(w->shared, &how, &store, &err) != LODE_OK) worker_log_line(w, err.text);
}

static int worker_serve(worker_state *w, const worker_options *setup) {
  pthread_t pool[WORKER_MAX_THREADS];
  char sandbox[400] = "no sandbox: switched off";
  unsigned started = 0;
  /* before an open store starts threads */
  if (!setup->no_sandbox) os_sandbox(setup->store, setup->beside, sandbox, sizeof sandbox);
  if (setup->preload) worker_preload(w);
  w->threads = worker_pick_threads(setup->threads);
  while (started < w->threads && pthread_create(&pool[started], NULL, worker_pool_thread, w) == 0) started++;
  if (started == 0) return WORKER_EXIT_FAILED;
  pthread_mutex_lock(&w->lock);
  w->threads = started; /* fewer, if the system does not allow more */
  pthread_mutex_unlock(&w->lock);
  worker_send_text(w, WIRE_READY, sandbox);
  worker_receive_all(w);
  pthread_mutex_lock(&w->lock);
  w->closing = true;
  pthread_cond_broadcast(&w->work);
  pthread_mutex_unlock(&w->lock);
  for (unsigned i = 0; i < started; i++) pthread_join(pool[i], NULL);
  return 0;
}

int worker_main(int argc, char **argv, const worker_service *services) {
  worker_state w = {.services = services ? services : worker_services};
  worker_options setup;
  lode_str models[OP_MAX_ALLOWED_MODELS];
  lode_error err = {.record = LODE_NO_RECORD};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  if (!worker_parse_argv(&setup, argc, argv, models)) return WORKER_EXIT_FAILED;
  /* Ctrl-C on a terminal is for the front end, which lets us finish */
  static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) sigaction(ignored[i], &ignore, NULL);
  int crash_fd = os_socket_receive_fd(PROC_CHILD_FD); /* -1: the front end is gone */
  lode_open_options options = {.memory_bytes = setup.memory_bytes,
                               .max_document_bytes = setup.max_document_bytes,
                               .busy_ms = setup.busy_ms,
                               .create = setup.create,
                               .read_only = setup.read_only,
                               .log = worker_log_line,
                               .log_ctx = &w};
  pthread_mutex_init(&w.send_lock, NULL);
  pthread_mutex_init(&w.lock, NULL);
  pthread_cond_init(&w.work, NULL);
  if (crash_fd < 0 || crash_install(crash_fd, &err) != LODE_OK) return WORKER_EXIT_FAILED;
  if (worker_stores_new(setup.store, &options, &w.shared, &err) != LODE_OK) return WORKER_EXIT_FAILED;
  worker_stores_allow_models(w.shared, setup.models);
  worker_stores_set_origin(w.shared, setup.found, setup.adopted);
  int code = worker_serve(&w, &setup);
  worker_stores_free(w.shared);
  crash_thread_end();
  return code;
}
