/* op_mcp.c - `lode mcp`: standard input to messages, messages to standard output, tools to the worker. See mcp.h.
 *
 * Threads: the main one reads lines and never waits for work, so that cancellation is always heard; a second one writes what is queued,
 * so that a client that does not read holds up nobody; the supervisor's own brings answers. When the queue is long, reading pauses.
 * `lock` guards the queue.
 *
 * Life: nothing is opened before a tool is called; then the supervisor starts the worker. The end of the input (or SIGTERM, SIGINT) ends the
 * server: long work is cancelled; at the end of the input every other request that was read is answered, each within the time that a
 * request may take, unless nobody reads answers for GRACE_MS.
 * A store's folder that was replaced meanwhile (`lode reset`, `lode doctor --repair`) gets a new worker.
 */
#include "cli.h"
#include "mcp.h"
#include "mcp_clients.h"
#include "model.h"
#include "supervisor.h"

#include "base/os.h"
#include "code/project.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, KEEP_BYTES = 1 << 20, QUEUE_BYTES = 8 << 20, GRACE_MS = 5000, WATCH_AGAIN_MS = 10000, MOST_CALLS = 2048 };
#define MOST_CALL_BYTES ((size_t)256 << 20)

typedef struct outgoing outgoing;
struct outgoing {
  strbuf line;
  outgoing *next;
};

typedef struct server {
  lode__mcp *mcp;
  project_info project;
  const lode_open_options *settings;
  bool no_sandbox;
  lode__model_policy models;    /* that tools may name */
  bool found;                   /* the store's folder was found, not named */
  bool looked, expected;        /* a tool was called; the store is about to be made by a worker */
  lode__supervisor *supervisor; /* NULL until a tool is called */
  struct stat folder;           /* of the store, when the worker was started; st_ino 0: there was none */
  /* output */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  outgoing *first, **last;
  size_t queued;                /* bytes, with those that are being written */
  uint64_t written;             /* bytes, so far */
  bool closing, closed;         /* no more will come; nobody reads any more */
  int wake;                     /* eventfd: the output is closed */
  /* input */
  strbuf in;
  size_t scanned;
  bool skipping;                /* the rest of a line that is too long */
  /* watching */
  bool watch;
  atomic_bool watching;
  uint64_t watch_call, watch_ns;
  strbuf watch_body;         /* its arguments */
} server;

static void log_line(void *ctx, const char *text) {
  strbuf line = {0};
  (void)ctx;
  strbuf_addstr(&line, "lode mcp: ");
  lode__put_clean(&line, str_of(text), 0);
  strbuf_addch(&line, '\n');
  /* Nobody is left to be told when standard error fails */
  if (!line.failed) (void)lode__write_fd(STDERR_FILENO, line.data, line.len);
  strbuf_release(&line);
}

/* ---- Output ---- */

static void send_line(void *ctx, strbuf *line) {
  server *s = ctx;
  outgoing *o = line->failed ? NULL : mem_alloc(sizeof *o);
  if (!o) {
    strbuf_release(line);
    log_line(NULL, "out of memory: an answer was lost");
    return;
  }
  *o = (outgoing){.line = *line};
  *line = (strbuf){0};
  pthread_mutex_lock(&s->lock);
  *s->last = o;
  s->last = &o->next;
  s->queued += o->line.len;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

static void *write_lines(void *ctx) {
  server *s = ctx;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->first && !s->closing) pthread_cond_wait(&s->changed, &s->lock);
    outgoing *o = s->first;
    if (!o) break;
    s->first = o->next;
    if (!s->first) s->last = &s->first;
    bool closed = s->closed;
    pthread_mutex_unlock(&s->lock);
    int errnum = closed ? 0 : lode__write_fd(STDOUT_FILENO, o->line.data, o->line.len);
    if (errnum && errnum != EPIPE) log_line(NULL, strerror(errnum));
    pthread_mutex_lock(&s->lock);
    s->queued -= o->line.len;
    s->written += o->line.len;
    if (errnum && !s->closed) {
      s->closed = true;
      (void)eventfd_write(s->wake, 1);
    }
    pthread_cond_broadcast(&s->changed);
    strbuf_release(&o->line);
    mem_free(o);
  }
  s->queued = 0;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* Waits until no more than `most` bytes are queued, or nobody reads any more; false when it took too long. */
static bool wait_for_output(server *s, size_t most, uint64_t wait_ms) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)(wait_ms / 1000);
  int errnum = 0;
  pthread_mutex_lock(&s->lock);
  while (s->queued > most && !s->closed && errnum == 0)
    errnum = pthread_cond_timedwait(&s->changed, &s->lock, &until);
  pthread_mutex_unlock(&s->lock);
  return errnum == 0;
}

/* ---- The worker ---- */

static void look_at_folder(const server *s, struct stat *now) {
  if (stat(s->project.folder, now) != 0) memset(now, 0, sizeof *now);
}

static bool folder_changed(const server *s) {
  struct stat now;
  look_at_folder(s, &now);
  return now.st_ino != s->folder.st_ino || now.st_dev != s->folder.st_dev;
}

static void stop_worker(server *s, uint32_t grace_ms) {
  if (atomic_load(&s->watching)) lode__supervisor_cancel(s->supervisor, s->watch_call);
  lode__supervisor_stop(s->supervisor, grace_ms);
  s->supervisor = NULL;
}

static lode_status need_worker(server *s, lode_error *err) {
  if (s->supervisor && folder_changed(s) && lode__mcp_in_flight(s->mcp) <= 1) {
    log_line(NULL, "the store's folder is another one: a new worker");
    stop_worker(s, 1000);
  }
  if (s->supervisor) return LODE_OK;
  look_at_folder(s, &s->folder);
  lode__supervisor_options options = {
      .setup = {.store = s->project.folder, .memory_bytes = s->settings->memory_bytes, .max_document_bytes = s->settings->max_document_bytes,
                .busy_ms = s->settings->busy_ms, .no_sandbox = s->no_sandbox, .read_only = s->settings->read_only,
                .found = s->found, .models = s->models},
      .max_calls = MOST_CALLS,
      .max_bytes = MOST_CALL_BYTES,
      .log = log_line};
  return lode__supervisor_start(&options, &s->supervisor, err);
}

/* The worker, which may not write the user's list, decides whether the store is to be used and says why not. What it adopted is put into
 * the list behind its first answer, which says so; a store that it is about to make, before. */
static void keep_list(server *s, bool writes) {
  lode_error err = {.record = LODE_NO_RECORD};
  trust_info trust;
  if (!s->found || s->settings->read_only) return;
  trust_examine(s->project.folder, s->looked, &trust);
  bool refused = trust_check(&trust, NULL) != LODE_OK;
  trust_release(&trust);
  s->looked = true;
  if (!writes || refused || s->expected || trust_has_store(s->project.folder)) return;
  s->expected = true;
  if (trust_add_created(s->project.folder, NULL, &err) != LODE_OK) log_line(NULL, err.text);
}

static void call_done(void *ctx, lode__answer *answer) {
  lode__mcp_request *r = ctx;
  if (answer->end == LODE__CALL_ANSWERED) lode__mcp_answer(r, (lode_str){answer->body, answer->size});
  else lode__mcp_fail(r, answer->text);
}

static void call_progress(void *ctx, lode_str phase, uint64_t done, uint64_t total) { lode__mcp_progress(ctx, phase, done, total); }

static void run_tool(void *ctx, lode__mcp_request *r) {
  server *s = ctx;
  char name[80];
  lode_error err = {.record = LODE_NO_RECORD};
  lode_str root = str_of(s->project.root);
  snprintf(name, sizeof name, "mcp.%s", r->tool->name);
  lode__call call = {.name = name, .words = &root, .n_words = 1, .body = {r->arguments.data, r->arguments.len}, .done = call_done, .ctx = r};
  if (r->tool->is_long) {
    call.flags = LODE__CALL_LONG | LODE__CALL_PROGRESS;
    call.progress = call_progress;
  }
  keep_list(s, !(lode__tool_base(r->tool)->flags & LODE__OP_READS));
  lode_status st = need_worker(s, &err);
  if (st == LODE_OK) st = lode__supervisor_call(s->supervisor, &call, &r->call, &err);
  if (st != LODE_OK) lode__mcp_fail(r, err.text);
}

static void cancel_call(void *ctx, uint64_t call) {
  server *s = ctx;
  if (s->supervisor) lode__supervisor_cancel(s->supervisor, call);
}

/* ---- Watching ---- */

static void watch_done(void *ctx, lode__answer *answer) {
  server *s = ctx;
  char line[700];
  if (answer->end == LODE__CALL_ANSWERED && answer->code != LODE_OK && answer->code != LODE_CANCELLED) {
    snprintf(line, sizeof line, "not watching for now: %.600s", answer->body);
    log_line(NULL, line);
  }
  atomic_store(&s->watching, false);
}

/* Asks the worker to watch; again after a while when that ended, for another process may watch now and not later. */
static void keep_watching(server *s) {
  strbuf *body = &s->watch_body;
  uint64_t now = os_api->now_ns();
  lode_error err = {.record = LODE_NO_RECORD};
  if (!s->watch || atomic_load(&s->watching) || now < s->watch_ns) return;
  s->watch_ns = now + WATCH_AGAIN_MS * UINT64_C(1000000);
  if (!body->len) {
    strbuf_addstr(body, "{\"path\":");
    json_put_string(body, str_of(s->project.root));
    strbuf_addch(body, '}');
  }
  lode__call call = {.name = "watch", .body = {body->data, body->len}, .flags = LODE__CALL_LONG | LODE__CALL_PROGRESS | LODE__CALL_ROWS,
                     .done = watch_done, .ctx = s};
  atomic_store(&s->watching, true);
  keep_list(s, true);
  lode_status st = body->failed ? err_nomem(&err) : need_worker(s, &err);
  if (st == LODE_OK) st = lode__supervisor_call(s->supervisor, &call, &s->watch_call, &err);
  if (st == LODE_OK) return;
  atomic_store(&s->watching, false);
  log_line(NULL, err.text);
}

/* ---- Input ---- */

/* Whole lines of what was read. */
static void take_lines(server *s) {
  size_t start = 0;
  for (;;) {
    char *end = memchr(s->in.data + s->scanned, '\n', s->in.len - s->scanned);
    if (!end) break;
    size_t at = (size_t)(end - s->in.data);
    if (s->skipping) lode__mcp_too_long(s->mcp);
    else lode__mcp_take(s->mcp, (lode_str){s->in.data + start, at - start});
    s->skipping = false;
    start = s->scanned = at + 1;
    while (!wait_for_output(s, QUEUE_BYTES, 1000) && !lode__interrupted) {}
  }
  memmove(s->in.data, s->in.data + start, s->in.len - start);
  s->in.len -= start;
  s->scanned = s->in.len;
  if (s->in.len > LODE__MCP_LINE_BYTES) s->skipping = true;
  if (s->skipping || (s->in.len == 0 && s->in.cap > KEEP_BYTES)) {
    strbuf_release(&s->in);
    s->scanned = 0;
  }
}

/* False at the end. */
static bool read_some(server *s) {
  struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
  if (lode__interrupted) return false;
  int n = poll(fds, 2, s->watch ? 1000 : -1);
  if (n <= 0) return (n == 0 || errno == EINTR) && !lode__interrupted;
  if (fds[1].revents) return false;
  char *room = strbuf_reserve(&s->in, READ_BYTES);
  if (!room) { /* as if the line were too long */
    strbuf_release(&s->in);
    s->scanned = 0;
    s->skipping = true;
    return true;
  }
  ssize_t got = read(STDIN_FILENO, room, READ_BYTES);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  s->in.len += (size_t)got;
  take_lines(s);
  return true;
}

/* ---- Beginning and end ---- */

static void on_signal(int number) { lode__interrupted = number; }

static void catch_signals(void) {
  struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &stop, NULL);
  sigaction(SIGTERM, &stop, NULL);
  struct sigaction was;
  if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) sigaction(SIGHUP, &stop, NULL); /* nohup */
}

/* Waits until all that was asked is answered and written, and nobody stopped us or stopped reading. */
static void answer_the_rest(server *s) {
  uint64_t written = 0, since = os_api->now_ns();
  for (;;) {
    size_t left = lode__mcp_in_flight(s->mcp);
    uint64_t now = os_api->now_ns();
    pthread_mutex_lock(&s->lock);
    bool end = s->closed || lode__interrupted || (left == 0 && s->queued == 0);
    if (s->queued == 0 || s->written != written) since = now; /* nothing to read, or it is read */
    written = s->written;
    pthread_mutex_unlock(&s->lock);
    if (end || now - since > (uint64_t)GRACE_MS * 1000000) return;
    os_api->sleep_us(2000);
  }
}

/* Answers what was asked, and goes. */
static void finish(server *s, pthread_t writer) {
  pthread_mutex_lock(&s->lock);
  bool gone = s->closed || lode__interrupted;
  pthread_mutex_unlock(&s->lock);
  lode__mcp_cancel_all(s->mcp, !gone);
  if (!gone) answer_the_rest(s);
  if (s->supervisor) stop_worker(s, gone ? 500 : GRACE_MS);
  bool written = wait_for_output(s, 0, gone ? 1000 : GRACE_MS);
  /* Blocked in a write that nobody reads: nothing else is left to do */
  if (!written) _exit(0);
  pthread_mutex_lock(&s->lock);
  s->closing = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  pthread_join(writer, NULL);
}

static lode_status serve(server *s, lode_error *err) {
  pthread_t writer;
  lode__mcp_port port = {.send = send_line, .call = run_tool, .cancel = cancel_call, .ctx = s};
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->wake < 0) return err_errno(err, errno, "eventfd");
  TRY(lode__mcp_make(&port, &s->mcp, err));
  int errnum = pthread_create(&writer, NULL, write_lines, s);
  if (errnum) return err_errno(err, errnum, "pthread_create");
  catch_signals();
  do keep_watching(s);
  while (read_some(s));
  if (s->in.len && !s->skipping) lode__mcp_take(s->mcp, (lode_str){s->in.data, s->in.len}); /* a last line without its end */
  finish(s, writer);
  return LODE_OK;
}

lode_status lode__op_mcp(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  server s = {.settings = ctx->settings, .watch = lode__arg_of(args, "watch")->number, .no_sandbox = lode__arg_of(args, "no_sandbox")->number,
              .wake = -1};
  TRY(lode__models_allowed(args, &s.models, err));
  TRY(project_locate(&s.project, lode__arg_of(args, "path")->text.data, ctx->folder, err));
  s.found = ctx->folder == NULL;
  if (s.project.passed[0]) log_line(NULL, s.project.passed);
  lode_status st = serve(&s, err);
  if (s.looked) keep_list(&s, false);
  lode__mcp_free(s.mcp);
  if (s.wake >= 0) close(s.wake);
  strbuf_release(&s.in);
  strbuf_release(&s.watch_body);
  project_release(&s.project);
  return st;
}

/* ---- install, remove ---- */

static lode_status tell(lode__op_context *ctx, size_t i, const char *path, const char *state, lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "client", str_of(lode__mcp_name(i)));
  lode__row_text(ctx, "state", str_of(state));
  lode__row_text(ctx, "file", str_of(path));
  return lode__row_send(ctx, err);
}

static lode_status install_one(lode__op_context *ctx, size_t i, const char *root, bool print, lode_error *err) {
  strbuf program = {0}, path = {0}, text = {0};
  lode__mcp_state state;
  bool changed = false;
  lode_status st;
  TRY_GOTO(lode__mcp_program(&program, err));
  TRY_GOTO(lode__mcp_look(i, root, &state, &path, err));
  if (print) {
    TRY_GOTO(lode__mcp_preview(i, root, program.data, &text, err));
    TRY_GOTO(ctx->sink->bytes(ctx->sink, text.data ? text.data : "", text.len, err));
    goto done;
  }
  TRY_GOTO(lode__mcp_install(i, root, program.data, &changed, err));
  TRY_GOTO(tell(ctx, i, path.data, changed ? "registered" : "same", err));
done:
  strbuf_release(&program);
  strbuf_release(&path);
  strbuf_release(&text);
  return st;
}

static lode_status remove_one(lode__op_context *ctx, size_t i, const char *root, lode_error *err) {
  strbuf path = {0};
  lode__mcp_state state;
  bool changed = false;
  lode_status st;
  TRY_GOTO(lode__mcp_look(i, root, &state, &path, err));
  TRY_GOTO(lode__mcp_remove(i, root, &changed, err));
  TRY_GOTO(tell(ctx, i, path.data, changed ? "removed" : "absent", err));
done:
  strbuf_release(&path);
  return st;
}

/* The client that is named, or all that are used here. */
static lode_status each_client(lode__op_context *ctx, const lode__args *args, bool install, lode_error *err) {
  const lode__arg *client = lode__arg_of(args, "client");
  bool print = lode__arg_of(args, "print")->number, any = false;
  project_info project;
  lode_status st = LODE_OK;
  TRY(project_locate(&project, lode__arg_of(args, "path")->text.data, ctx->folder, err));
  for (size_t i = 0; i < lode__mcp_count() && st == LODE_OK; i++) {
    if (!str_eq(str_of(lode__mcp_name(i)), client->text)) continue;
    any = true;
    st = install ? install_one(ctx, i, project.root, print, err) : remove_one(ctx, i, project.root, err);
  }
  if (st == LODE_OK && !any) st = err_internal(err, "a client of the table is not known");
  project_release(&project);
  return st;
}

lode_status lode__op_mcp_install(lode__op_context *ctx, const lode__args *args, lode_error *err) { return each_client(ctx, args, true, err); }
lode_status lode__op_mcp_remove(lode__op_context *ctx, const lode__args *args, lode_error *err) { return each_client(ctx, args, false, err); }
