/* SPDX-License-Identifier: Apache-2.0 */
/* op_service.c - calls that name an operation of the table: "db.query", "search". The body is its arguments as a JSON
 * object; the reply is {"rows":[..],"summary":{..}} or {"error":{"status","message","record"}}, and its code a
 * lode_status. For LODE_CORRUPT the rows that describe the damage are in the reply too, before the error. With
 * WIRE_CALL_ROWS rows are sent one by one, and the reply has no rows. The word WORKER_REMOTE_CALLER means that the
 * caller may be on another machine, WORKER_OWN_PROJECT after it that it may index, which takes no arguments then. */
#include "worker/worker.h"
#include "ops/op_schema.h"
#include "table/op_table.h"

typedef struct service_reply {
  op_sink sink;
  worker_task *task;
  strbuf summary, line; /* line: one row */
  size_t rows;
} service_reply;

static lode_status service_take_row(op_sink *sink, op_row *row, lode_error *err) {
  service_reply *g = (service_reply *)sink;
  strbuf *out = &g->task->out;
  g->rows++;
  if (g->task->flags & WIRE_CALL_ROWS) {
    g->line.len = 0;
    op_row_put_json(&g->line, row);
    if (g->line.failed) return err_nomem(err);
    return worker_task_send_row(g->task, (lode_str){g->line.data, g->line.len}, err);
  }
  if (worker_task_cancelled(g->task)) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  if (out->len > WORKER_MAX_REPLY_BYTES)
    return err_set(err, LODE_LIMIT, "the answer is larger than %d MiB: ask for fewer rows",
                   WORKER_MAX_REPLY_BYTES >> 20);
  if (g->rows > 1) strbuf_addch(out, ',');
  op_row_put_json(out, row);
  return out->failed ? err_nomem(err) : LODE_OK;
}

static lode_status service_take_summary(op_sink *sink, op_row *summary, lode_error *err) {
  service_reply *g = (service_reply *)sink;
  op_row_put_json(&g->summary, summary);
  return g->summary.failed ? err_nomem(err) : LODE_OK;
}

static bool service_on_progress(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  worker_task *task = ctx;
  if (task->flags & WIRE_CALL_PROGRESS) worker_task_progress(task, phase, done, total);
  return !worker_task_cancelled(task);
}

static void service_take_note(void *ctx, const char *text) { worker_task_log(ctx, "%s", text); }

const op_def *worker_op_of_call(const char *name) {
  const char *dot = strchr(name, '.');
  char group[40];
  if (!dot) return op_find(NULL, str_of(name));
  if ((size_t)(dot - name) >= sizeof group) return NULL;
  snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
  return op_find(group, str_of(dot + 1));
}

static lode_status service_no_bytes(op_sink *sink, const void *data, size_t size, lode_error *err) {
  (void)sink;
  (void)data;
  (void)size;
  return err_set(err, LODE_UNSUPPORTED, "this operation writes a file: use the command line");
}

static bool service_is_remote(const worker_task *task) {
  return task->n_words > 0 && str_eq(task->words[0], STR_LIT(WORKER_REMOTE_CALLER));
}

static bool service_may_index(const worker_task *task, const op_def *op) {
  return task->n_words > 1 && str_eq(task->words[1], STR_LIT(WORKER_OWN_PROJECT)) && !op->group &&
         strcmp(op->name, "index") == 0;
}

/* Remote calls may read files that belong to the store, but not name any file of this machine. */
static lode_status service_check_remote(const worker_task *task, const op_def *op, const op_args *args,
                                        lode_error *err) {
  if (!service_is_remote(task)) return LODE_OK;
  bool names = false, any = false;
  for (const op_param *p = op->params; p->name; p++) {
    any = any || op_args_is_set(args, p);
    names = names || (p->type == OP_ARG_PATH && op_args_is_set(args, p));
  }
  if (!names && op_allowed_over_http(op)) return LODE_OK;
  if (!any && service_may_index(task, op)) return LODE_OK;
  return err_set(err, LODE_UNSUPPORTED, "this works on files of the server's machine: use the command line there");
}

static bool service_defer(void *ctx, uint64_t rows) { return worker_task_defer(ctx, rows); }

static lode_status service_run(service_reply *g, const op_def *op, lode_error *err) {
  worker_task *task = g->task;
  op_args args;
  op_context ctx = {.open = worker_stores_open,
                    .release = worker_stores_release,
                    .write = worker_stores_write,
                    .opener = task->shared,
                    .folder = worker_stores_folder(task->shared),
                    .settings = worker_stores_settings(task->shared),
                    .sink = &g->sink,
                    .progress = {service_on_progress, task},
                    .note = service_take_note,
                    .note_ctx = task,
                    .remote = service_is_remote(task),
                    .found = worker_stores_found(task->shared),
                    .adopted = worker_stores_adopted(task->shared),
                    .models = worker_stores_models(task->shared),
                    .defer_read = service_defer,
                    .defer_read_ctx = task};
  lode_status st = op_args_init(&args, op, err);
  if (st == LODE_OK) st = op_args_from_json(&args, task->body.len ? task->body : STR_LIT("{}"), err);
  if (st == LODE_OK) st = service_check_remote(task, op, &args, err);
  if (st == LODE_OK) st = op_run(&ctx, &args, err);
  op_args_release(&args);
  return st;
}

void worker_op_service(worker_task *task) {
  service_reply g = {.sink = {.row = service_take_row, .summary = service_take_summary, .bytes = service_no_bytes},
                     .task = task};
  const op_def *op = worker_op_of_call(task->name);
  lode_error err = {.record = LODE_NO_RECORD};
  lode_status st;
  strbuf_addstr(&task->out, "{\"rows\":[");
  if (op)
    st = service_run(&g, op, &err);
  else
    st = err_set(&err, LODE_NOT_FOUND, "there is no operation %.80s", task->name);
  err.status = st;
  if (st == LODE_OK) {
    strbuf_addstr(&task->out, "],\"summary\":");
    if (g.summary.len)
      strbuf_add(&task->out, g.summary.data, g.summary.len);
    else
      strbuf_addstr(&task->out, "null");
    strbuf_addch(&task->out, '}');
  } else if (st == LODE_CORRUPT && g.rows && !task->out.failed && !(task->flags & WIRE_CALL_ROWS)) {
    strbuf error = {0};
    op_error_put_json(&error, &err);
    strbuf_addstr(&task->out, "],");
    if (!error.failed) strbuf_add(&task->out, error.data + 1, error.len - 1); /* without its { */
    task->out.failed = task->out.failed || error.failed;
    strbuf_release(&error);
  } else {
    task->out.len = 0;
    op_error_put_json(&task->out, &err);
  }
  task->code = st;
  strbuf_release(&g.summary);
  strbuf_release(&g.line);
}
