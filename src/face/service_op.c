/* service_op.c - calls that name an operation of the table: "db.query", "search". The body is its arguments as a JSON object;
 * the answer is {"rows":[..],"summary":{..}}, or {"error":{"status","message","record"}}, and its code a lode_status. Of damage
 * that was found (LODE_CORRUPT) the rows that name it are in the answer too, before the error. With
 * LODE__CALL_ROWS the rows go ahead one by one, and the answer holds the summary alone. The word LODE__FROM_AFAR says that the
 * caller may be on another machine.
 */
#include "worker.h"

typedef struct gather {
  lode__sink sink;
  lode__task *task;
  strbuf summary;
  size_t rows;
} gather;

static lode_status take_row(lode__sink *sink, lode_str json, lode_error *err) {
  gather *g = (gather *)sink;
  strbuf *out = &g->task->out;
  g->rows++;
  if (g->task->flags & LODE__CALL_ROWS) return lode__task_row(g->task, json, err);
  if (lode__task_cancelled(g->task)) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  if (out->len > LODE__ANSWER_BYTES)
    return err_set(err, LODE_LIMIT, "the answer is larger than %d MiB: ask for fewer rows", LODE__ANSWER_BYTES >> 20);
  if (g->rows > 1) strbuf_addch(out, ',');
  strbuf_add(out, json.data, json.len);
  return out->failed ? err_nomem(err) : LODE_OK;
}

static lode_status take_summary(lode__sink *sink, lode_str json, lode_error *err) {
  gather *g = (gather *)sink;
  strbuf_add(&g->summary, json.data, json.len);
  return g->summary.failed ? err_nomem(err) : LODE_OK;
}

static bool step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  lode__task *task = ctx;
  if (task->flags & LODE__CALL_PROGRESS) lode__task_progress(task, phase, done, total);
  return !lode__task_cancelled(task);
}

static void take_note(void *ctx, const char *text) { lode__task_log(ctx, "%s", text); }

const lode__op *lode__op_of_call(const char *name) {
  const char *dot = strchr(name, '.');
  char group[40];
  if (!dot) return lode__op_find(NULL, str_of(name));
  if ((size_t)(dot - name) >= sizeof group) return NULL;
  snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
  return lode__op_find(group, str_of(dot + 1));
}

void lode__put_error(strbuf *out, lode_status status, const lode_error *err) {
  strbuf_addf(out, "{\"error\":{\"status\":\"%s\",\"message\":", lode_status_name(status));
  json_put_string(out, str_of(err->text[0] ? err->text : lode_status_text(status)));
  if (err->record != LODE_NO_RECORD) strbuf_addf(out, ",\"record\":%zu", err->record);
  strbuf_addstr(out, "}}");
}

static lode_status no_bytes(lode__sink *sink, const void *data, size_t size, lode_error *err) {
  (void)sink;
  (void)data;
  (void)size;
  return err_set(err, LODE_UNSUPPORTED, "this operation writes a file: use the command line");
}

static bool is_far(const lode__task *task) { return task->n_words > 0 && str_eq(task->words[0], STR_LIT(LODE__FROM_AFAR)); }

/* What requests may do with the files of this machine: read those that belong to the store, and name none. */
static lode_status check_far(const lode__task *task, const lode__op *op, const lode__args *args, lode_error *err) {
  if (!is_far(task)) return LODE_OK;
  bool names = false;
  for (const lode__param *p = op->params; p->name; p++) names = names || (p->type == LODE__ARG_PATH && args->values[p - op->params].set);
  if (!names && lode__op_for_requests(op)) return LODE_OK;
  return err_set(err, LODE_UNSUPPORTED, "this works on files of the server's machine: use the command line there");
}

static bool put_back(void *ctx, uint64_t rows) { return lode__task_put_back(ctx, rows); }

static lode_status run(gather *g, const lode__op *op, lode_error *err) {
  lode__task *task = g->task;
  lode__args args;
  lode__op_context ctx = {.open = lode__shared_open, .release = lode__shared_release, .write = lode__shared_write, .opener = task->shared,
                          .folder = lode__shared_folder(task->shared), .settings = lode__shared_settings(task->shared), .sink = &g->sink, .progress = {step, task},
                          .note = take_note, .note_ctx = task, .far = is_far(task),
                          .found = lode__shared_found(task->shared), .adopted = lode__shared_adopted(task->shared),
                          .models = lode__shared_models(task->shared), .put_back = put_back, .put_back_ctx = task};
  lode__args_init(&args, op);
  lode_status st = lode__args_from_json(&args, task->body.len ? task->body : STR_LIT("{}"), err);
  if (st == LODE_OK) st = check_far(task, op, &args, err);
  if (st == LODE_OK) st = lode__op_run(&ctx, &args, err);
  lode__args_release(&args);
  return st;
}

void lode__service_op(lode__task *task) {
  gather g = {.sink = {.row = take_row, .summary = take_summary, .bytes = no_bytes}, .task = task};
  const lode__op *op = lode__op_of_call(task->name);
  lode_error err = {.record = LODE_NO_RECORD};
  lode_status st;
  strbuf_addstr(&task->out, "{\"rows\":[");
  if (op) st = run(&g, op, &err);
  else st = err_set(&err, LODE_NOT_FOUND, "there is no operation %.80s", task->name);
  if (st == LODE_OK) {
    strbuf_addstr(&task->out, "],\"summary\":");
    if (g.summary.len) strbuf_add(&task->out, g.summary.data, g.summary.len);
    else strbuf_addstr(&task->out, "null");
    strbuf_addch(&task->out, '}');
  } else if (st == LODE_CORRUPT && g.rows && !task->out.failed && !(task->flags & LODE__CALL_ROWS)) {
    strbuf error = {0};
    lode__put_error(&error, st, &err);
    strbuf_addstr(&task->out, "],");
    if (!error.failed) strbuf_add(&task->out, error.data + 1, error.len - 1); /* without its { */
    task->out.failed = task->out.failed || error.failed;
    strbuf_release(&error);
  } else {
    task->out.len = 0;
    lode__put_error(&task->out, st, &err);
  }
  task->code = st;
  strbuf_release(&g.summary);
}
