/* SPDX-License-Identifier: Apache-2.0 */
/* op_lance.c - `lode import lance`: LanceDB's tables into a store.
 *
 * Nothing but LanceDB reads its format, so its own Python package does: a child process, `python -m lode.lance`
 * (bindings/python/lode/lance.py), writes JSON lines into a pipe. First it lists the tables, then it is run for each of
 * them, and what it writes is imported like a file, as the table was when it was listed. Ids that are there already are
 * kept, so an interrupted import is completed by starting it again. A line that begins with "!" is why the child
 * failed; anything else that is no object comes from the interpreter, before the child could redirect its standard
 * error.
 */
#include "base/json.h"
#include "ops/op_row.h"
#include "ops/op_target.h"
#include "os/os.h"
#include "platform/process.h"
#include "table/op_args_rescue.h"

#include <unistd.h>

enum {
  LANCE_MAX_TABLES = 10000,
  LANCE_MAX_LIST_BYTES = 16 << 20, /* what the list of tables may come to */
  LANCE_WHY_BYTES = 4096,          /* of what a failing child writes */
  LANCE_READ_BYTES = 1 << 16,
};

typedef struct lance_job {
  op_context *ctx;
  const op_import_lance_args *args;
  const char *python;
  const char *table;      /* the one that is wanted; NULL: all */
  const char *columns[7]; /* flags for the child; ends with NULL */
  mem_arena arena;
  uint64_t tables, rows, records, written;
} lance_job;

/* The child, and what it writes. */
typedef struct lance_reader {
  pid_t pid;
  int fd;
  bool line_start; /* the next byte begins a line */
  bool failed;     /* a line was no object: that and the rest is `why` */
  strbuf why;
} lance_reader;

/* ---- The child ---- */

/* For the records of a table, as it was at the version; NULL: for the list of tables. */
static lode_status lance_start(const lance_job *j, const char *table, uint64_t version, lance_reader *r,
                               lode_error *err) {
  const char *only = table ? table : j->table;
  char at[32];
  snprintf(at, sizeof at, "--version=%llu", (unsigned long long)version);
  const char *words[] = {
      j->python, "-m", "lode.lance", j->args->dir.path, table ? at : "--list", only ? "--table" : NULL, only};
  char *argv[16];
  size_t n = 0;
  int ends[2];
  *r = (lance_reader){.fd = -1, .line_start = true};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i]) argv[n++] = (char *)(uintptr_t)words[i];
  for (size_t i = 0; j->columns[i]; i++) argv[n++] = (char *)(uintptr_t)j->columns[i];
  argv[n] = NULL;
  if (os_pipe(ends) < 0) return err_errno(err, errno, "a pipe");
  r->pid = os_start(argv, OS_NULL, ends[1]);
  int problem = errno;
  (void)os_api->close(ends[1]);
  r->fd = ends[0];
  if (r->pid > 0) return LODE_OK;
  (void)os_api->close(r->fd);
  return err_set(
      err, problem == ENOENT ? LODE_NOT_FOUND : LODE_IO,
      "%.200s cannot be started: %s; LanceDB's Python package reads its tables: name an interpreter that has "
      "it with --python",
      j->python, strerror(problem));
}

/* How much of the data is lines that are objects, or parts of one; the rest is why the child failed. */
static size_t lance_keep_objects(lance_reader *r, const char *data, size_t n) {
  size_t kept = 0;
  for (; kept < n && !r->failed; kept++) {
    r->failed = r->line_start && data[kept] != '{';
    if (r->failed) break;
    r->line_start = data[kept] == '\n';
  }
  if (r->failed && r->why.len < LANCE_WHY_BYTES) strbuf_add(&r->why, data + kept, n - kept);
  return kept;
}

static int64_t lance_read(void *ctx, void *buffer, size_t size) {
  lance_reader *r = ctx;
  for (;;) {
    ssize_t n = OS_RETRY(read(r->fd, buffer, size));
    if (n <= 0) return r->failed ? -1 : n;
    size_t kept = lance_keep_objects(r, buffer, (size_t)n);
    if (kept) return (int64_t)kept;
  }
}

/* The last line of what it wrote: Python's reason comes at the end. NUL-terminated. */
static const char *lance_last_line(strbuf *why) {
  while (why->len && (why->data[why->len - 1] == '\n' || why->data[why->len - 1] == ' ')) why->len--;
  strbuf_addch(why, 0);
  if (why->failed) return "";
  const char *line = strrchr(why->data, '\n');
  return line ? line + 1 : why->data;
}

static lode_status lance_failed(const lance_job *j, lance_reader *r, lode_error *err) {
  const char *why = lance_last_line(&r->why);
  if (why[0] == '!') return err_set(err, LODE_REFUSED, "LanceDB: %.400s", why + 1 + (why[1] == ' '));
  return err_set(
      err, LODE_NOT_FOUND,
      "%.200s cannot run the package lode (%.200s): install its wheel beside lancedb, or name another interpreter "
      "with --python",
      j->python, why);
}

/* Ends the child. `st` is what became of its lines; if the child failed, that is the reason for it. */
static lode_status lance_end(const lance_job *j, lance_reader *r, lode_status st, lode_error *err) {
  os_exit end = {0};
  char rest[LANCE_READ_BYTES];
  while (r->failed && OS_RETRY(read(r->fd, rest, sizeof rest)) > 0) {}
  (void)os_api->close(r->fd); /* a child that goes on writing ends */
  (void)os_wait(r->pid, true, &end);
  if (r->failed)
    st = lance_failed(j, r, err);
  else if (st == LODE_OK && (end.signal || end.code))
    st = err_set(err, LODE_IO, "LanceDB's reader ended with %s %d: start again to complete the import",
                 end.signal ? "signal" : "exit code", end.signal ? end.signal : end.code);
  strbuf_release(&r->why);
  return st;
}

/* ---- Tables ---- */

static lode_status lance_list(const lance_job *j, strbuf *list, lode_error *err) {
  lance_reader r;
  char buffer[LANCE_READ_BYTES];
  TRY(lance_start(j, NULL, 0, &r, err));
  lode_status st = LODE_OK;
  for (int64_t n; st == LODE_OK && (n = lance_read(&r, buffer, sizeof buffer)) > 0;) {
    strbuf_add(list, buffer, (size_t)n);
    if (list->failed) st = err_nomem(err);
    if (list->len > LANCE_MAX_LIST_BYTES) st = err_set(err, LODE_LIMIT, "the list of tables is too long");
  }
  return lance_end(j, &r, st, err);
}

/* One line of the list. */
typedef struct lance_table {
  lode_str name;
  lode_metric metric;
  uint64_t version, rows, records; /* records: without rows that others replace */
} lance_table;

static lode_status lance_parse_table(const lance_job *j, const json_doc *json, lance_table *t, lode_error *err) {
  uint32_t name = json_get(json, 0, STR_LIT("table")), metric = json_get(json, 0, STR_LIT("metric")),
           rows = json_get(json, 0, STR_LIT("rows")), records = json_get(json, 0, STR_LIT("records")),
           version = json_get(json, 0, STR_LIT("version"));
  bool sane = name && metric && rows && records && version && json->nodes[name].type == JSON_NODE_STRING &&
              json->nodes[metric].type == JSON_NODE_STRING && json->nodes[rows].type == JSON_NODE_INT &&
              json->nodes[records].type == JSON_NODE_INT && json->nodes[version].type == JSON_NODE_INT &&
              lode_metric_parse(json->nodes[metric].u.s, &t->metric);
  if (!sane) return err_set(err, LODE_REFUSED, "the package lode of %.200s is of another version", j->python);
  t->name = json->nodes[name].u.s;
  t->version = (uint64_t)json->nodes[version].u.i;
  t->rows = (uint64_t)json->nodes[rows].u.i;
  t->records = (uint64_t)json->nodes[records].u.i;
  if (j->args->metric.set && !lode_metric_parse(j->args->metric.text, &t->metric))
    return err_set(err, LODE_INVALID, "no such metric");
  return LODE_OK;
}

static lode_status lance_import_lines(lance_job *j, const lance_table *t, const char *name, lode_import_report *done,
                                      lode_error *err) {
  lance_reader r;
  op_target target;
  op_open_options how = {.write = true, .create = true, .bulk = true, .folder = j->args->to.path};
  lode_collection_options options = {.create = true, .metric = t->metric};
  lode_str collection = j->args->collection.set ? j->args->collection.text : t->name;
  uint64_t count = 0;
  TRY(op_target_open(j->ctx, collection, &how, &options, &target, err));
  lode_status st = lance_start(j, name, t->version, &r, err);
  if (st == LODE_OK) {
    lode_import_request request = {
        .mode = LODE_IMPORT_ADD, .on_existing = LODE_KEEP_EXISTING, .read = lance_read, .ctx = &r};
    st = lode_import(target.collection, &request, j->ctx->progress, done, err);
    st = lance_end(j, &r, st, err);
  }
  if (st == LODE_OK) st = lode_count(target.collection, &count, err);
  if (st == LODE_OK && (done->lines != t->records || count < t->records))
    st = err_set(
        err, LODE_IO,
        "the table %s has %llu records, %llu were read and %llu are there: was it changed meanwhile? Start again", name,
        (unsigned long long)t->records, (unsigned long long)done->lines, (unsigned long long)count);
  if (st == LODE_OK && done->written) (void)!lode_optimize(target.store, j->ctx->progress, NULL);
  op_target_close(j->ctx, &target);
  return st;
}

static lode_status lance_import_table(lance_job *j, const lance_table *t, lode_error *err) {
  lode_import_report done = {0};
  const char *name = mem_arena_copy(&j->arena, t->name.data, t->name.len);
  if (!name) return err_nomem(err);
  TRY(lance_import_lines(j, t, name, &done, err));
  j->tables++;
  j->rows += t->rows;
  j->records += t->records;
  j->written += done.written;
  op_row_begin(j->ctx);
  op_row_text(j->ctx, "table", t->name);
  op_row_text(j->ctx, "metric", str_of(lode_metric_name(t->metric)));
  op_row_count(j->ctx, "rows", t->rows);
  op_row_count(j->ctx, "records", t->records);
  op_row_count(j->ctx, "written", done.written);
  return op_row_send(j->ctx, err);
}

static lode_status lance_import_listed(lance_job *j, lode_str list, lode_error *err) {
  json_doc json = {0};
  lode_status st = LODE_OK;
  bool found = false;
  for (size_t at = 0; at < list.len && st == LODE_OK;) {
    const char *end = memchr(list.data + at, '\n', list.len - at);
    size_t len = end ? (size_t)(end - list.data) - at : list.len - at;
    lance_table t = {0};
    st = json_parse(&json, (lode_str){list.data + at, len}, NULL, err);
    if (st == LODE_OK) st = lance_parse_table(j, &json, &t, err);
    bool wanted = st == LODE_OK && (!j->table || str_eq(t.name, str_of(j->table)));
    if (wanted && j->tables >= LANCE_MAX_TABLES)
      st = err_set(err, LODE_LIMIT, "too many tables: name one with --table");
    if (wanted && j->args->collection.set && j->tables)
      st = err_set(err, LODE_INVALID,
                   "--collection names one collection, and there are several tables: say --table too");
    if (wanted && st == LODE_OK) st = lance_import_table(j, &t, err);
    found |= wanted;
    at += len + 1;
  }
  json_release(&json);
  if (st == LODE_OK && !found)
    st = err_set(err, LODE_NOT_FOUND, "there is no such table in %.300s: `lode import lance` alone takes all there are",
                 j->args->dir.path);
  return st;
}

/* A flag for the child with an argument's text. */
static lode_status lance_add_column(lance_job *j, size_t *n, const char *flag, const op_arg_text *column,
                                    lode_error *err) {
  if (!column->set) return LODE_OK;
  const char *text = mem_arena_copy(&j->arena, column->text.data, column->text.len);
  if (!text) return err_nomem(err);
  j->columns[(*n)++] = flag;
  j->columns[(*n)++] = text;
  return LODE_OK;
}

lode_status op_do_import_lance(op_context *ctx, const op_import_lance_args *args, lode_error *err) {
  lance_job j = {.ctx = ctx, .args = args, .python = args->python.path ? args->python.path : "python3"};
  strbuf list = {0};
  lode_status st;
  size_t n = 0;
  mem_arena_init(&j.arena, 0);
  if (args->table.set && !(j.table = mem_arena_copy(&j.arena, args->table.text.data, args->table.text.len)))
    TRY_GOTO(err_nomem(err));
  TRY_GOTO(lance_add_column(&j, &n, "--id", &args->id, err));
  TRY_GOTO(lance_add_column(&j, &n, "--text", &args->text, err));
  TRY_GOTO(lance_add_column(&j, &n, "--vector", &args->vector, err));
  TRY_GOTO(lance_list(&j, &list, err));
  TRY_GOTO(lance_import_listed(&j, (lode_str){list.data, list.len}, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "from", str_of(args->dir.path));
  op_row_count(ctx, "tables", j.tables);
  op_row_count(ctx, "records", j.records);
  op_row_count(ctx, "written", j.written);
  op_row_count(ctx, "replaced", j.rows - j.records);
  st = op_row_send(ctx, err);
done:
  strbuf_release(&list);
  mem_arena_release(&j.arena);
  return st;
}
