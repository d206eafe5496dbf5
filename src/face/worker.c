/* worker.c - see worker.h.
 *
 * Threads: the main thread receives frames; a pool runs the calls. `lock` guards the queues and the list of running jobs;
 * `send_lock` guards the socket, so that frames do not mix. Long calls have a queue of their own and at most half of
 * the pool, so that short ones never wait for them. Large reads have another one and a quarter of the pool, as much as there are
 * CPUs; whether a read is large its service finds out, and gives it back then. In each queue clients take turns.
 *
 * Life: READY is sent when the process is set up. When the face closes its end, what is queued and running is finished,
 * the store is closed, and the process exits. Whatever goes wrong with the socket ends the process: nobody is left to
 * answer to.
 */
#include "worker.h"
#include "chroma.h"
#include "crash.h"
#include "sandbox.h"

#include "base/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_THREADS = 64, FAILED = 70, CLIENTS = 256 };

typedef struct worker worker;
typedef struct job job;
struct job {
  lode__task task;
  worker *worker;
  uint64_t id;
  char *payload;
  atomic_bool cancelled;
  bool large;          /* it is one of large_running, or in their queue */
  uint64_t client, turn;
  job *next;
};

/* In order of turns. The first job of a client gets the next turn, its second one the turn after that, and so on: so a client that has
 * one job waits for one job of each other client, however many those have queued. Clients whose numbers share a place share turns. */
typedef struct queue {
  job *first, *last;
  uint64_t now;             /* the turn of the job that was taken last */
  uint64_t turns[CLIENTS];  /* the last turn that each client was given */
} queue;

struct worker {
  const lode__service *services;
  lode__shared *shared;
  pthread_mutex_t send_lock, lock;
  pthread_cond_t work;
  queue brief, large, lengthy;
  job *running;
  unsigned threads, long_running, large_running;
  bool closing;
};

const lode__service lode__services[] = {{"chroma.", lode__service_chroma}, {"mcp.", lode__service_mcp}, {"", lode__service_op}, {0}};

/* ---- Sending ---- */

static void send_frame(worker *w, lode__wire head, const struct iovec *parts, size_t n) {
  head.magic = LODE__WIRE_MAGIC;
  head.size = 0;
  for (size_t i = 0; i < n; i++) head.size += parts[i].iov_len;
  pthread_mutex_lock(&w->send_lock);
  int errnum = lode__wire_send(PROC_CHILD_FD, &head, parts, n);
  pthread_mutex_unlock(&w->send_lock);
  if (errnum) _exit(FAILED); /* the face is gone */
}

static void send_text(worker *w, lode__wire_kind kind, const char *text) {
  struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
  send_frame(w, (lode__wire){.kind = (uint8_t)kind}, &part, 1);
}

static void log_line(void *ctx, const char *line) { send_text(ctx, LODE__WIRE_LOG, line); }

/* ---- What services ask for ---- */

bool lode__task_cancelled(const lode__task *task) {
  job *j = task->job;
  return j && atomic_load_explicit(&j->cancelled, memory_order_relaxed);
}

static bool still_wanted(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return !lode__task_cancelled(ctx);
}

lode_progress lode__task_wanted(lode__task *task) { return (lode_progress){still_wanted, task}; }

lode_status lode__task_row(lode__task *task, lode_str row, lode_error *err) {
  struct iovec part = {(void *)(uintptr_t)row.data, row.len};
  job *j = task->job;
  if (lode__task_cancelled(task)) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  if (j) send_frame(j->worker, (lode__wire){.kind = LODE__WIRE_ROW, .id = j->id}, &part, 1);
  return LODE_OK;
}

void lode__task_progress(lode__task *task, const char *phase, uint64_t done, uint64_t total) {
  lode__wire_progress figures = {done, total};
  struct iovec parts[2] = {{&figures, sizeof figures}, {(void *)(uintptr_t)phase, strlen(phase)}};
  job *j = task->job;
  if (j) send_frame(j->worker, (lode__wire){.kind = LODE__WIRE_PROGRESS, .id = j->id}, parts, 2);
}

void lode__task_log(lode__task *task, const char *format, ...) {
  char line[600];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  if (task->job) log_line(((job *)task->job)->worker, line);
}

/* As many as there are CPUs, where the number of threads was not given. */
static unsigned most_large(const worker *w) { return w->threads < 8 ? 1 : w->threads / 4; }

bool lode__task_put_back(lode__task *task, uint64_t rows) {
  job *j = task->job;
  if (!j || rows <= LODE__LARGE_ROWS || j->large || task->flags & LODE__CALL_LONG) return false;
  worker *w = j->worker;
  pthread_mutex_lock(&w->lock);
  /* Those that wait already come first */
  task->put_back = w->large.first || w->large_running >= most_large(w);
  w->large_running += !task->put_back;
  pthread_mutex_unlock(&w->lock);
  j->large = true;
  return task->put_back;
}

/* ---- Running ---- */

static void queue_add(queue *q, job *j) {
  uint64_t *given = &q->turns[j->client % CLIENTS];
  j->turn = *given = (*given > q->now ? *given : q->now) + 1;
  /* Nearly always at the end: there is one client, or none has a backlog */
  job **at = q->last && q->last->turn <= j->turn ? &q->last->next : &q->first;
  while (*at && (*at)->turn <= j->turn) at = &(*at)->next;
  j->next = *at;
  *at = j;
  if (!j->next) q->last = j;
}

static job *queue_take(queue *q) {
  job *j = q->first;
  if (!j) return NULL;
  q->first = j->next;
  if (!q->first) q->last = NULL;
  q->now = j->turn;
  return j;
}

/* With the lock. One large read goes on even where short calls never end. */
static job *take_job(worker *w) {
  job *j = w->large_running == 0 ? queue_take(&w->large) : NULL;
  if (!j) j = queue_take(&w->brief);
  if (!j && w->large_running < most_large(w)) j = queue_take(&w->large);
  if (!j && w->long_running < (w->threads + 1) / 2) j = queue_take(&w->lengthy);
  return j;
}

/* The next job that this thread may run, moved to the running ones. NULL: none, and none will come. */
static job *next_job(worker *w) {
  job *j = NULL;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    j = take_job(w);
    if (j || (w->closing && !w->lengthy.first && !w->large.first)) break;
    pthread_cond_wait(&w->work, &w->lock);
  }
  if (j) {
    j->next = w->running;
    w->running = j;
    w->long_running += (j->task.flags & LODE__CALL_LONG) != 0;
    w->large_running += j->large;
  }
  pthread_mutex_unlock(&w->lock);
  return j;
}

/* With the lock. */
static void stop_running(worker *w, job *j) {
  job **at = &w->running;
  while (*at != j) at = &(*at)->next;
  *at = j->next;
}

static void end_job(worker *w, job *j) {
  bool is_long = (j->task.flags & LODE__CALL_LONG) != 0;
  pthread_mutex_lock(&w->lock);
  stop_running(w, j);
  w->long_running -= is_long;
  w->large_running -= j->large;
  if (is_long || j->large) pthread_cond_broadcast(&w->work);
  pthread_mutex_unlock(&w->lock);
  strbuf_release(&j->task.out);
  mem_free(j->payload);
  mem_free(j);
}

static void wait_again(worker *w, job *j) {
  strbuf_release(&j->task.out);
  j->task.put_back = false;
  pthread_mutex_lock(&w->lock);
  stop_running(w, j);
  queue_add(&w->large, j);
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
}

/* False: it was put back. */
static bool run_job(worker *w, job *j) {
  lode__task *task = &j->task;
  const lode__service *s = w->services;
  while (s[1].prefix && strncmp(task->name, s->prefix, strlen(s->prefix)) != 0) s++; /* the last takes what is left */
  lode__crash_doing(task->name);
  atomic_fetch_add_explicit(&lode__crash.calls, 1, memory_order_relaxed);
  s->run(task);
  lode__crash_doing(NULL);
  if (task->put_back) {
    wait_again(w, j);
    return false;
  }
  struct iovec part = {task->out.data, task->out.failed ? 0 : task->out.len};
  if (task->out.failed) task->code = LODE_NOMEM;
  send_frame(w, (lode__wire){.kind = LODE__WIRE_DONE, .code = (uint16_t)task->code, .id = j->id}, &part, 1);
  return true;
}

static void *pool_thread(void *ctx) {
  worker *w = ctx;
  job *j;
  if (lode__crash_thread_begin(NULL) != LODE_OK) return NULL;
  while ((j = next_job(w)) != NULL) {
    if (run_job(w, j)) end_job(w, j);
  }
  lode__crash_thread_end();
  return NULL;
}

/* ---- Receiving ---- */

static bool accept_call(worker *w, const lode__wire *head, char *payload) {
  job *j = mem_calloc(1, sizeof *j);
  lode_str words[LODE__WIRE_WORDS], body;
  if (!j || head->words == 0 || !lode__wire_words(head, payload, words, &body)) {
    mem_free(j);
    return false;
  }
  j->worker = w;
  j->id = head->id;
  j->payload = payload;
  j->client = head->client;
  j->large = head->code & LODE__CALL_LARGE;
  j->task = (lode__task){.name = words[0].data, .n_words = head->words - 1u, .body = body, .flags = head->code,
                         .shared = w->shared, .job = j};
  for (size_t i = 1; i < head->words; i++) j->task.words[i - 1] = words[i];
  pthread_mutex_lock(&w->lock);
  queue_add(head->code & LODE__CALL_LONG ? &w->lengthy : j->large ? &w->large : &w->brief, j);
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
  return true;
}

static void mark_cancelled(job *j, uint64_t id) {
  for (; j; j = j->next)
    if (j->id == id) atomic_store(&j->cancelled, true);
}

static void cancel_call(worker *w, uint64_t id) {
  pthread_mutex_lock(&w->lock);
  mark_cancelled(w->running, id);
  mark_cancelled(w->brief.first, id);
  mark_cancelled(w->large.first, id);
  mark_cancelled(w->lengthy.first, id);
  pthread_mutex_unlock(&w->lock);
}

/* Until the face closes its end. */
static void receive_all(worker *w) {
  lode__wire head;
  char *payload;
  while (lode__wire_receive(PROC_CHILD_FD, &head, &payload, SIZE_MAX - 1) == 0) {
    bool taken = head.kind == LODE__WIRE_CALL && accept_call(w, &head, payload);
    if (head.kind == LODE__WIRE_CANCEL) cancel_call(w, head.id);
    else if (!taken) break;
    if (!taken) mem_free(payload);
  }
}

/* ---- Beginning and end ---- */

lode_status lode__worker_argv(const lode__worker_setup *setup, const char *program, strbuf *buffer,
                              char *argv[LODE__WORKER_MOST_ARGS + 1], lode_error *err) {
  size_t at = 0, n = LODE__WORKER_ARGC + setup->models.n;
  if (setup->models.n > LODE__MODELS_ALLOWED)
    return err_set(err, LODE_LIMIT, "%zu models are too many to allow; the most is %d", setup->models.n, LODE__MODELS_ALLOWED);
  buffer->len = 0;
  strbuf_addf(buffer, "%s%c" LODE__WORKER_ARG "%c%s%c", program, 0, 0, setup->store, 0);
  strbuf_addf(buffer, "%llu%c%llu%c%u%c%u%c%u%c", (unsigned long long)setup->memory_bytes, 0,
                 (unsigned long long)setup->max_document_bytes, 0, setup->busy_ms, 0, setup->threads, 0,
                 setup->create | setup->preload << 1 | setup->no_sandbox << 2 | setup->read_only << 3 | setup->found << 4 |
                     setup->adopted << 5, 0);
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

static bool read_setup(lode__worker_setup *setup, int argc, char **argv, lode_str models[LODE__MODELS_ALLOWED]) {
  uint64_t n[5];
  if (argc < LODE__WORKER_ARGC || argc > LODE__WORKER_MOST_ARGS) return false;
  for (int i = 0; i < 5; i++)
    if (!lode__parse_uint(str_of(argv[3 + i]), &n[i])) return false;
  *setup = (lode__worker_setup){.store = argv[2], .memory_bytes = n[0], .max_document_bytes = n[1],
                                .busy_ms = (uint32_t)n[2], .threads = (uint32_t)n[3], .create = n[4] & 1,
                                .preload = n[4] & 2, .no_sandbox = n[4] & 4, .read_only = n[4] & 8,
                                .found = n[4] & 16, .adopted = n[4] & 32,
                                .models = {models, (size_t)(argc - LODE__WORKER_ARGC)}};
  for (size_t i = 0; i < setup->models.n; i++) models[i] = str_of(argv[LODE__WORKER_ARGC + i]);
  return true;
}

static unsigned pick_threads(unsigned wanted) {
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (wanted == 0) wanted = cpus < 1 ? 4 : (unsigned)cpus * 4;
  if (wanted < 4) wanted = 4;
  return wanted > 32 ? 32 : wanted;
}

static void open_early(worker *w) {
  lode__open_how how = {.write = true};
  lode_store *store;
  lode_error err;
  if (lode__shared_store(w->shared, &how, &store, &err) != LODE_OK) log_line(w, err.text); /* each call will say so too */
}

/* -1: the face is gone already. */
static int receive_crash_fd(void) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  char byte;
  struct iovec iov = {&byte, 1};
  struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  int fd = -1;
  if (recvmsg(PROC_CHILD_FD, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  struct cmsghdr *c = CMSG_FIRSTHDR(&message);
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return fd;
}

static int serve(worker *w, const lode__worker_setup *setup) {
  pthread_t pool[MOST_THREADS];
  char sandbox[400] = "no sandbox: switched off";
  unsigned started = 0;
  if (setup->preload) open_early(w);
  if (!setup->no_sandbox) lode__sandbox_worker(setup->store, sandbox, sizeof sandbox);
  w->threads = pick_threads(setup->threads);
  while (started < w->threads && pthread_create(&pool[started], NULL, pool_thread, w) == 0) started++;
  if (started == 0) return FAILED;
  pthread_mutex_lock(&w->lock);
  w->threads = started; /* fewer, where the system gives no more */
  pthread_mutex_unlock(&w->lock);
  send_text(w, LODE__WIRE_READY, sandbox);
  receive_all(w);
  pthread_mutex_lock(&w->lock);
  w->closing = true;
  pthread_cond_broadcast(&w->work);
  pthread_mutex_unlock(&w->lock);
  for (unsigned i = 0; i < started; i++) pthread_join(pool[i], NULL);
  return 0;
}

int lode__worker_main(int argc, char **argv, const lode__service *services) {
  worker w = {.services = services ? services : lode__services};
  lode__worker_setup setup;
  lode_str models[LODE__MODELS_ALLOWED];
  lode_error err = {.record = LODE_NO_RECORD};
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  if (!read_setup(&setup, argc, argv, models)) return FAILED;
  /* A terminal's Ctrl-C is for the face, which lets us finish */
  static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) sigaction(ignored[i], &ignore, NULL);
  int crash_fd = receive_crash_fd();
  lode_open_options options = {.memory_bytes = setup.memory_bytes, .max_document_bytes = setup.max_document_bytes,
                               .busy_ms = setup.busy_ms, .create = setup.create, .read_only = setup.read_only, .log = log_line, .log_ctx = &w};
  pthread_mutex_init(&w.send_lock, NULL);
  pthread_mutex_init(&w.lock, NULL);
  pthread_cond_init(&w.work, NULL);
  if (crash_fd < 0 || lode__crash_catch(crash_fd, &err) != LODE_OK) return FAILED;
  if (lode__shared_make(setup.store, &options, &w.shared, &err) != LODE_OK) return FAILED;
  lode__shared_allow_models(w.shared, setup.models);
  lode__shared_mark(w.shared, setup.found, setup.adopted);
  int code = serve(&w, &setup);
  lode__shared_free(w.shared);
  lode__crash_thread_end();
  return code;
}
