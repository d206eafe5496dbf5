/* SPDX-License-Identifier: Apache-2.0 */
/* op_mcp.c - `lode mcp`: reads messages from standard input, writes replies to standard output, runs tools in the
 * worker. See mcp.h.
 *
 * Threads: the main thread reads lines and never waits for tools, so cancellations are always seen; a second thread
 * writes the queued output, so a client that does not read holds up nobody; the supervisor's thread delivers replies.
 * When the queue is long, reading pauses. `lock` guards the queue.
 *
 * Life cycle: nothing is opened before a tool is called; then the supervisor starts the worker. The end of input (or
 * SIGTERM, SIGINT) ends the server: long calls are cancelled; at the end of input all other requests are answered,
 * each within its timeout, unless nobody reads replies for OP_MCP_GRACE_MS. If the store's folder is replaced (`lode
 * reset`, `lode doctor --repair`), a new worker is started.
 */
#include "ops/op_row.h"
#include "table/op_args_serve.h"
#include "ops/op_text.h"
#include "mcp/mcp.h"
#include "setup/instructions.h"
#include "setup/mcp_clients.h"
#include "models/model_embedder.h"
#include "worker/supervisor.h"

#include "os/os.h"
#include "platform/event.h"
#include "project/project.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum {
  OP_MCP_READ_BYTES = 64 << 10,
  OP_MCP_KEEP_BYTES = 1 << 20,
  OP_MCP_QUEUE_BYTES = 8 << 20,
  OP_MCP_GRACE_MS = 5000,
  OP_MCP_REWATCH_MS = 10000,
  OP_MCP_MAX_CALLS = 2048
};
#define OP_MCP_MAX_CALL_BYTES ((size_t)256 << 20)

typedef struct op_mcp_output op_mcp_output;
struct op_mcp_output {
  strbuf line;
  op_mcp_output *next;
};

typedef struct op_mcp_server {
  mcp_session *mcp;
  project_info project;
  const lode_open_options *settings;
  bool no_sandbox, compat;
  op_model_policy models;       /* models that tools may name */
  bool found;                   /* the store's folder was found, not named */
  bool looked, expected;        /* a tool was called; a worker is about to create the store */
  supervisor_state *supervisor; /* NULL until a tool is called */
  struct stat folder;           /* the store's folder when the worker was started; st_ino 0: none */
  /* output */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  op_mcp_output *first, **last;
  size_t queued;        /* bytes, including those being written */
  uint64_t written;     /* total bytes */
  bool closing, closed; /* no more output will come; nobody reads output */
  os_event wake;        /* the output is closed */
  /* input */
  strbuf in;
  size_t scanned;
  bool skipping; /* dropping the rest of a line that is too long */
  /* watching */
  bool watch;
  atomic_bool watching;
  uint64_t watch_call, watch_ns;
  strbuf watch_body; /* arguments of the call */
} op_mcp_server;

static void op_mcp_log_line(void *ctx, const char *text) {
  strbuf line = {0};
  (void)ctx;
  strbuf_addstr(&line, "lode mcp: ");
  op_put_printable(&line, str_of(text), 0);
  strbuf_addch(&line, '\n');
  /* a failure cannot be reported to anybody */
  if (!line.failed) (void)!op_write_fd(STDERR_FILENO, line.data, line.len);
  strbuf_release(&line);
}

/* ---- Output ---- */

static void op_mcp_send_line(void *ctx, strbuf *line) {
  op_mcp_server *s = ctx;
  op_mcp_output *o = line->failed ? NULL : mem_alloc(sizeof *o);
  if (!o) {
    strbuf_release(line);
    op_mcp_log_line(NULL, "out of memory: an answer was lost");
    return;
  }
  *o = (op_mcp_output){.line = *line};
  *line = (strbuf){0};
  pthread_mutex_lock(&s->lock);
  *s->last = o;
  s->last = &o->next;
  s->queued += o->line.len;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

static void *op_mcp_write_lines(void *ctx) {
  op_mcp_server *s = ctx;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->first && !s->closing) pthread_cond_wait(&s->changed, &s->lock);
    op_mcp_output *o = s->first;
    if (!o) break;
    s->first = o->next;
    if (!s->first) s->last = &s->first;
    bool closed = s->closed;
    pthread_mutex_unlock(&s->lock);
    int errnum = closed ? 0 : op_write_fd(STDOUT_FILENO, o->line.data, o->line.len);
    if (errnum && errnum != EPIPE) op_mcp_log_line(NULL, strerror(errnum));
    pthread_mutex_lock(&s->lock);
    s->queued -= o->line.len;
    s->written += o->line.len;
    if (errnum && !s->closed) {
      s->closed = true;
      os_event_set(s->wake);
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

/* Waits until at most `max` bytes are queued, or nobody reads; false after a timeout. */
static bool op_mcp_wait_output(op_mcp_server *s, size_t max, uint64_t wait_ms) {
  struct timespec until = os_deadline(wait_ms);
  int errnum = 0;
  pthread_mutex_lock(&s->lock);
  while (s->queued > max && !s->closed && errnum == 0) errnum = os_cond_wait_until(&s->changed, &s->lock, &until);
  pthread_mutex_unlock(&s->lock);
  return errnum == 0;
}

/* ---- The worker ---- */

static void op_mcp_stat_folder(const op_mcp_server *s, struct stat *now) {
  if (os_api->stat(s->project.folder, now) != 0) memset(now, 0, sizeof *now);
}

static bool op_mcp_folder_changed(const op_mcp_server *s) {
  struct stat now;
  op_mcp_stat_folder(s, &now);
  return now.st_ino != s->folder.st_ino || now.st_dev != s->folder.st_dev;
}

static void op_mcp_stop_worker(op_mcp_server *s, uint32_t grace_ms) {
  if (atomic_load(&s->watching)) supervisor_cancel(s->supervisor, s->watch_call);
  supervisor_stop(s->supervisor, grace_ms);
  s->supervisor = NULL;
}

static lode_status op_mcp_need_worker(op_mcp_server *s, lode_error *err) {
  /* a worker that was started without a folder can have no call that takes long */
  bool idle = mcp_in_flight(s->mcp) <= 1 || s->folder.st_ino == 0;
  if (s->supervisor && idle && op_mcp_folder_changed(s)) {
    op_mcp_log_line(NULL, "the store's folder is another one: a new worker");
    op_mcp_stop_worker(s, 1000);
  }
  if (s->supervisor) return LODE_OK;
  op_mcp_stat_folder(s, &s->folder);
  supervisor_options options = {.setup = {.store = project_store(&s->project),
                                          .beside = s->project.address ? s->project.folder : NULL,
                                          .memory_bytes = s->settings->memory_bytes,
                                          .max_document_bytes = s->settings->max_document_bytes,
                                          .busy_ms = s->settings->busy_ms,
                                          .no_sandbox = s->no_sandbox,
                                          .read_only = s->settings->read_only,
                                          .found = s->found,
                                          .models = s->models},
                                .max_calls = OP_MCP_MAX_CALLS,
                                .max_bytes = OP_MCP_MAX_CALL_BYTES,
                                .log = op_mcp_log_line};
  return supervisor_start(&options, &s->supervisor, err);
}

/* What the worker cannot do itself, because its sandbox lets it write only below the store's folder. The folder of a
 * new store is made, and added to the user's trust list. A store that the worker adopted is added after its first
 * reply, which says so. Whether a store may be used is decided by the worker, which reports why not. */
static void op_mcp_prepare_store(op_mcp_server *s, bool writes) {
  lode_error err = {.record = LODE_NO_RECORD};
  bool refused = false;
  if (s->settings->read_only) return;
  if (s->found) {
    trust_info trust;
    trust_examine(s->project.folder, s->looked, &trust);
    refused = trust_check(&trust, NULL) != LODE_OK;
    trust_release(&trust);
    s->looked = true;
  }
  if (!writes || refused || trust_has_store(s->project.folder)) return;
  lode_status st = project_prepare(&s->project, &err);
  if (st == LODE_OK && s->found && !s->expected) st = trust_add_created(s->project.folder, NULL, &err);
  if (st != LODE_OK) op_mcp_log_line(NULL, err.text);
  s->expected = true;
}

static void op_mcp_call_done(void *ctx, supervisor_reply *answer) {
  mcp_request *r = ctx;
  if (answer->end == SUPERVISOR_ANSWERED)
    mcp_respond(r, (lode_str){answer->body, answer->size});
  else
    mcp_respond_error(r, answer->text);
}

static void op_mcp_call_progress(void *ctx, lode_str phase, uint64_t done, uint64_t total) {
  mcp_send_progress(ctx, phase, done, total);
}

static void op_mcp_run_tool(void *ctx, mcp_request *r) {
  op_mcp_server *s = ctx;
  char name[80];
  lode_error err = {.record = LODE_NO_RECORD};
  lode_str words[] = {str_of(s->project.root), STR_LIT("compat")};
  snprintf(name, sizeof name, "mcp.%s", r->tool->name);
  supervisor_call call = {.name = name,
                          .words = words,
                          .n_words = r->tool->compat ? 2 : 1,
                          .body = {r->arguments.data, r->arguments.len},
                          .done = op_mcp_call_done,
                          .ctx = r};
  if (r->tool->is_long) {
    call.flags = WIRE_CALL_LONG | WIRE_CALL_PROGRESS;
    call.progress = op_mcp_call_progress;
  }
  op_mcp_prepare_store(s, !(mcp_tool_base_op(r->tool)->flags & OP_READ_ONLY));
  lode_status st = op_mcp_need_worker(s, &err);
  if (st == LODE_OK) st = supervisor_submit(s->supervisor, &call, &r->call, &err);
  if (st != LODE_OK) mcp_respond_error(r, err.text);
}

static void op_mcp_cancel_call(void *ctx, uint64_t call) {
  op_mcp_server *s = ctx;
  if (s->supervisor) supervisor_cancel(s->supervisor, call);
}

/* ---- Watching ---- */

static void op_mcp_watch_done(void *ctx, supervisor_reply *answer) {
  op_mcp_server *s = ctx;
  char line[700];
  if (answer->end == SUPERVISOR_ANSWERED && answer->code != LODE_OK && answer->code != LODE_CANCELLED) {
    snprintf(line, sizeof line, "not watching for now: %.600s", answer->body);
    op_mcp_log_line(NULL, line);
  }
  atomic_store(&s->watching, false);
}

/* Asks the worker to watch. If that ends, asks again later: the process that watches now may have ended by then. */
static void op_mcp_keep_watching(op_mcp_server *s) {
  strbuf *body = &s->watch_body;
  uint64_t now = os_api->now_ns();
  lode_error err = {.record = LODE_NO_RECORD};
  if (!s->watch || atomic_load(&s->watching) || now < s->watch_ns) return;
  s->watch_ns = now + OP_MCP_REWATCH_MS * UINT64_C(1000000);
  if (!body->len) {
    strbuf_addstr(body, "{\"path\":");
    json_put_string(body, str_of(s->project.root));
    strbuf_addch(body, '}');
  }
  supervisor_call call = {.name = "watch",
                          .body = {body->data, body->len},
                          .flags = WIRE_CALL_LONG | WIRE_CALL_PROGRESS | WIRE_CALL_ROWS,
                          .done = op_mcp_watch_done,
                          .ctx = s};
  atomic_store(&s->watching, true);
  op_mcp_prepare_store(s, true);
  lode_status st = body->failed ? err_nomem(&err) : op_mcp_need_worker(s, &err);
  if (st == LODE_OK) st = supervisor_submit(s->supervisor, &call, &s->watch_call, &err);
  if (st == LODE_OK) return;
  atomic_store(&s->watching, false);
  op_mcp_log_line(NULL, err.text);
}

/* ---- Input ---- */

/* Handles the complete lines in the buffer. */
static void op_mcp_take_lines(op_mcp_server *s) {
  size_t start = 0;
  for (;;) {
    char *end = memchr(s->in.data + s->scanned, '\n', s->in.len - s->scanned);
    if (!end) break;
    size_t at = (size_t)(end - s->in.data);
    if (s->skipping)
      mcp_line_too_long(s->mcp);
    else
      mcp_handle_line(s->mcp, (lode_str){s->in.data + start, at - start});
    s->skipping = false;
    start = s->scanned = at + 1;
    while (!op_mcp_wait_output(s, OP_MCP_QUEUE_BYTES, 1000) && !op_interrupted) {}
  }
  memmove(s->in.data, s->in.data + start, s->in.len - start);
  s->in.len -= start;
  s->scanned = s->in.len;
  if (s->in.len > MCP_MAX_LINE_BYTES) s->skipping = true;
  if (s->skipping || (s->in.len == 0 && s->in.cap > OP_MCP_KEEP_BYTES)) {
    strbuf_release(&s->in);
    s->scanned = 0;
  }
}

/* False at the end of input. */
static bool op_mcp_read_input(op_mcp_server *s) {
  struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = s->wake.in, .events = POLLIN}};
  if (op_interrupted) return false;
  int n = os_poll(fds, 2, s->watch ? 1000 : -1);
  if (n <= 0) return (n == 0 || errno == EINTR) && !op_interrupted;
  if (fds[1].revents) return false;
  char *space = strbuf_reserve(&s->in, OP_MCP_READ_BYTES);
  if (!space) { /* handled like a line that is too long */
    strbuf_release(&s->in);
    s->scanned = 0;
    s->skipping = true;
    return true;
  }
  ssize_t got = read(STDIN_FILENO, space, OP_MCP_READ_BYTES);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  s->in.len += (size_t)got;
  op_mcp_take_lines(s);
  return true;
}

/* ---- Start and stop ---- */

static void op_mcp_on_signal(int number) { op_interrupted = number; }

static void op_mcp_catch_signals(void) {
  struct sigaction stop = {.sa_handler = op_mcp_on_signal, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &stop, NULL);
  sigaction(SIGTERM, &stop, NULL);
  struct sigaction was;
  /* SIGHUP is ignored under nohup */
  if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) sigaction(SIGHUP, &stop, NULL);
}

/* Waits until all requests are answered and written, unless we are interrupted or nobody reads. */
static void op_mcp_finish_requests(op_mcp_server *s) {
  uint64_t written = 0, since = os_api->now_ns();
  for (;;) {
    size_t left = mcp_in_flight(s->mcp);
    uint64_t now = os_api->now_ns();
    pthread_mutex_lock(&s->lock);
    bool end = s->closed || op_interrupted || (left == 0 && s->queued == 0);
    if (s->queued == 0 || s->written != written) since = now; /* nothing to read, or it is being read */
    written = s->written;
    pthread_mutex_unlock(&s->lock);
    if (end || now - since > (uint64_t)OP_MCP_GRACE_MS * 1000000) return;
    os_api->sleep_us(2000);
  }
}

/* Answers pending requests and shuts down. */
static void op_mcp_finish(op_mcp_server *s, pthread_t writer) {
  pthread_mutex_lock(&s->lock);
  bool gone = s->closed || op_interrupted;
  pthread_mutex_unlock(&s->lock);
  mcp_cancel_all(s->mcp, !gone);
  if (!gone) op_mcp_finish_requests(s);
  if (s->supervisor) op_mcp_stop_worker(s, gone ? 500 : OP_MCP_GRACE_MS);
  bool written = op_mcp_wait_output(s, 0, gone ? 1000 : OP_MCP_GRACE_MS);
  /* blocked in a write that nobody reads */
  if (!written) _exit(0);
  pthread_mutex_lock(&s->lock);
  s->closing = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  pthread_join(writer, NULL);
}

static lode_status op_mcp_serve(op_mcp_server *s, lode_error *err) {
  pthread_t writer;
  mcp_callbacks callbacks = {
      .send = op_mcp_send_line, .call = op_mcp_run_tool, .cancel = op_mcp_cancel_call, .ctx = s, .compat = s->compat};
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  int errnum = os_cond_init(&s->changed);
  if (errnum) return err_errno(err, errnum, "pthread_cond_init");
  if (os_event_open(&s->wake) < 0) return err_errno(err, errno, "opening an event");
  TRY(mcp_session_new(&callbacks, &s->mcp, err));
  errnum = pthread_create(&writer, NULL, op_mcp_write_lines, s);
  if (errnum) return err_errno(err, errnum, "pthread_create");
  op_mcp_catch_signals();
  do op_mcp_keep_watching(s);
  while (op_mcp_read_input(s));
  /* a last line without its end */
  if (s->in.len && !s->skipping) mcp_handle_line(s->mcp, (lode_str){s->in.data, s->in.len});
  op_mcp_finish(s, writer);
  return LODE_OK;
}

lode_status op_do_mcp(op_context *ctx, const op_mcp_args *args, lode_error *err) {
  op_mcp_server s = {.settings = ctx->settings,
                     .watch = args->watch.on,
                     .no_sandbox = args->no_sandbox.on,
                     .compat = args->compat.on,
                     .wake = OS_EVENT_NONE};
  TRY(model_policy_of_args(&args->allow_model, &s.models, err));
  TRY(project_locate(&s.project, args->path.path, ctx->folder, err));
  s.found = ctx->folder == NULL;
  if (s.project.passed[0]) op_mcp_log_line(NULL, s.project.passed);
  lode_status st = op_mcp_serve(&s, err);
  if (s.looked) op_mcp_prepare_store(&s, false);
  mcp_session_free(s.mcp);
  os_event_close(&s.wake);
  strbuf_release(&s.in);
  strbuf_release(&s.watch_body);
  project_release(&s.project);
  return st;
}

/* ---- install, remove ---- */

/* text: what became of the instructions; NULL: they were not asked for. */
static lode_status op_mcp_send_client(op_context *ctx, size_t i, const char *path, const char *state, const char *text,
                                      lode_error *err) {
  op_row_begin(ctx);
  op_row_text(ctx, "client", str_of(setup_client_name(i)));
  op_row_text(ctx, "state", str_of(state));
  op_row_text(ctx, "file", str_of(path));
  if (text) {
    op_row_text(ctx, "instructions", str_of(text));
    op_row_text(ctx, "instructions_file", str_of(setup_text_path(i)));
  }
  return op_row_send(ctx, err);
}

/* Writes or removes the instructions, and sends the row; if that fails, the entry is done all the same. */
static lode_status op_mcp_send_with_text(op_context *ctx, size_t i, const char *root, const char *path,
                                         const char *entry, bool install, lode_error *err) {
  static const char *const written[] = {"none", "written", "same", "written", "left", "left"};
  static const char *const removed[] = {"none", "absent", "removed", "removed", "left", "absent"};
  const char *file = setup_text_path(i), *client = setup_client_name(i);
  lode_error why = {.record = LODE_NO_RECORD};
  setup_text_state state;
  lode_status st = install ? setup_text_write(i, root, &state, &why) : setup_text_remove(i, root, &state, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  const char *text = st != LODE_OK ? "failed" : install ? written[state] : removed[state];
  if (st == LODE_OK && state == SETUP_TEXT_FOREIGN)
    op_note(ctx, "%s was left as it is: Lode did not write it, or it was edited since", file);
  if (st == LODE_OK && install && state == SETUP_TEXT_NONE)
    op_note(ctx, "%s is yours: `lode mcp install --client %s --print` shows lines for it", file, client);
  if (st == LODE_OK && install && state == SETUP_TEXT_HINDERS)
    op_note(ctx, "%s was not written: %s would no longer be read; --print shows lines for it", file,
            setup_text_hindered(i));
  TRY(op_mcp_send_client(ctx, i, path, entry, text, err));
  if (st == LODE_OK) return LODE_OK;
  return err_set(err, st,
                 "the settings are done, the instructions in %s are not: %.300s (--no-instructions leaves "
                 "them out)",
                 file, why.text);
}

/* The settings, and what stands in the file of instructions or is to be added to it. */
static lode_status op_mcp_print_client(op_context *ctx, size_t i, const char *root, const char *program, bool with_text,
                                       lode_error *err) {
  strbuf text = {0};
  lode_status st = setup_client_preview(i, root, program, &text, err);
  if (st == LODE_OK && with_text) {
    strbuf_addf(&text, "\n# %s\n", setup_text_path(i));
    st = setup_text_put(i, &text, err);
  }
  if (st == LODE_OK) st = ctx->sink->bytes(ctx->sink, text.data ? text.data : "", text.len, err);
  strbuf_release(&text);
  return st;
}

static lode_status op_mcp_install_one(op_context *ctx, size_t i, const char *root, const op_mcp_client_args *args,
                                      lode_error *err) {
  strbuf program = {0}, path = {0};
  bool with_text = !args->no_instructions.on;
  setup_client_state state;
  bool changed = false;
  lode_status st;
  TRY_GOTO(setup_program_path(&program, err));
  TRY_GOTO(setup_client_inspect(i, root, &state, &path, err));
  if (args->print.on) {
    st = op_mcp_print_client(ctx, i, root, program.data, with_text, err);
    goto done;
  }
  TRY_GOTO(setup_client_install(i, root, program.data, &changed, err));
  const char *entry = changed ? "registered" : "same";
  st = with_text ? op_mcp_send_with_text(ctx, i, root, path.data, entry, true, err)
                 : op_mcp_send_client(ctx, i, path.data, entry, NULL, err);
done:
  strbuf_release(&program);
  strbuf_release(&path);
  return st;
}

static lode_status op_mcp_remove_one(op_context *ctx, size_t i, const char *root, lode_error *err) {
  strbuf path = {0};
  setup_client_state state;
  bool changed = false;
  lode_status st;
  TRY_GOTO(setup_client_inspect(i, root, &state, &path, err));
  TRY_GOTO(setup_client_remove(i, root, SETUP_CLIENT_ENTRY, &changed, err));
  st = op_mcp_send_with_text(ctx, i, root, path.data, changed ? "removed" : "absent", false, err);
done:
  strbuf_release(&path);
  return st;
}

/* Installs or removes the entry of the named client. */
static lode_status op_mcp_each_client(op_context *ctx, const op_mcp_client_args *args, bool install, lode_error *err) {
  bool any = false;
  project_info project;
  lode_status st = LODE_OK;
  TRY(project_locate(&project, args->path.path, ctx->folder, err));
  for (size_t i = 0; i < setup_client_count() && st == LODE_OK; i++) {
    if (!str_eq(str_of(setup_client_name(i)), args->client.text)) continue;
    any = true;
    st = install ? op_mcp_install_one(ctx, i, project.root, args, err) : op_mcp_remove_one(ctx, i, project.root, err);
  }
  if (st == LODE_OK && !any) st = err_internal(err, "a client of the table is not known");
  project_release(&project);
  return st;
}

lode_status op_do_mcp_install(op_context *ctx, const op_mcp_client_args *args, lode_error *err) {
  return op_mcp_each_client(ctx, args, true, err);
}
lode_status op_do_mcp_remove(op_context *ctx, const op_mcp_client_args *args, lode_error *err) {
  return op_mcp_each_client(ctx, args, false, err);
}
