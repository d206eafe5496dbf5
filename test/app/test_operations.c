/* SPDX-License-Identifier: Apache-2.0 */
/* test_operations.c - operations run in process, each answer checked against the schema of its operation. */
#include "base/base.h"
#include "table/op_table.h"
#include "support/test.h"

#include <stdlib.h>

static lode_error err;

static bool has(const char *text, const char *part) { return strstr(text, part) != NULL; }

typedef struct capture {
  op_sink sink;
  const op_def *op;
  strbuf rows, summary, bytes;
  size_t n_rows, n_summaries;
} capture;

static const op_field *field_of(const op_field *fields, lode_str name) {
  for (; fields && fields->name; fields++)
    if (str_eq(str_of(fields->name), name)) return fields;
  return NULL;
}

static bool type_fits(json_node_type type, const op_field *f) {
  if (type == JSON_NODE_NULL) return f->flags & OP_FIELD_NULLABLE;
  switch (f->type) {
    case OP_FIELD_TEXT: return type == JSON_NODE_STRING;
    case OP_FIELD_COUNT:
    case OP_FIELD_NUMBER:
    case OP_FIELD_TIME:
    case OP_FIELD_BYTES: return type == JSON_NODE_INT;
    case OP_FIELD_REAL: return type == JSON_NODE_INT || type == JSON_NODE_DOUBLE;
    case OP_FIELD_BOOL: return type == JSON_NODE_TRUE || type == JSON_NODE_FALSE;
    case OP_FIELD_OBJECT: return type == JSON_NODE_OBJECT;
    case OP_FIELD_TEXTS:
    case OP_FIELD_VECTOR: return type == JSON_NODE_ARRAY;
    case OP_FIELD_SCALAR: return type < JSON_NODE_ARRAY;
  }
  return false;
}

/* Every answer of every test is held against the schema of its operation. */
static void check_fields(const op_def *op, const op_field *fields, lode_str text) {
  json_doc json = {0};
  OK(json_parse(&json, text, NULL, &err));
  CHECK(fields && json.nodes[0].type == JSON_NODE_OBJECT);
  for (uint32_t i = 1; i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    const op_field *f = field_of(fields, json.nodes[i].u.s);
    CHECKF(f && type_fits(json.nodes[i + 1].type, f), "%s answers %.*s", op->name, (int)text.len, text.data);
  }
  for (const op_field *f = fields; f->name; f++)
    CHECKF((f->flags & OP_FIELD_OPTIONAL) || json_get(&json, 0, str_of(f->name)), "%s lacks %s: %.*s", op->name,
           f->name, (int)text.len, text.data);
  json_release(&json);
}

static void (*on_first_row)(void);

static lode_status take_row(op_sink *sink, op_row *row, lode_error *e) {
  capture *c = (capture *)sink;
  size_t start = c->rows.len;
  (void)e;
  op_row_put_json(&c->rows, row);
  lode_str json = {c->rows.data + start, c->rows.len - start};
  check_fields(c->op, c->op->row, json);
  strbuf_addch(&c->rows, '\n');
  if (c->n_rows++ == 0 && on_first_row) on_first_row();
  return LODE_OK;
}

static lode_status take_summary(op_sink *sink, op_row *summary, lode_error *e) {
  capture *c = (capture *)sink;
  (void)e;
  op_row_put_json(&c->summary, summary);
  check_fields(c->op, c->op->summary, (lode_str){c->summary.data, c->summary.len});
  c->n_summaries++;
  return LODE_OK;
}

static lode_status take_bytes(op_sink *sink, const void *data, size_t size, lode_error *e) {
  (void)e;
  strbuf_add(&((capture *)sink)->bytes, data, size);
  return LODE_OK;
}

static lode_status open_here(void *opener, const op_open_options *how, lode_store **store, lode_error *e) {
  lode_open_options options = {.create = how->create, .read_only = !how->write, .page_bytes = how->page_bytes};
  return lode_open(opener, &options, store, e);
}

static void close_here(void *opener, lode_store *store) {
  (void)opener;
  lode_close(store);
}

static capture answer;
static bool nothing;

static bool far; /* as if the caller were on another machine */
static bool (*on_step)(void *ctx, const char *phase, uint64_t done, uint64_t total);
static char folder[300];
static size_t n_notes;

static const char *the_store(void) {
  if (!folder[0]) snprintf(folder, sizeof folder, "%s/store", test_folder());
  return folder;
}

static void take_note(void *ctx, const char *text) {
  (void)ctx;
  (void)text;
  n_notes++;
}

static lode_status run(const char *verb, const char *json) {
  strbuf_release(&answer.rows);
  strbuf_release(&answer.summary);
  strbuf_release(&answer.bytes);
  answer = (capture){.sink = {take_row, take_summary, take_bytes, NULL}, .op = op_find("db", str_of(verb))};
  op_context ctx = {.open = open_here,
                    .release = close_here,
                    .opener = (void *)the_store(),
                    .folder = the_store(),
                    .sink = &answer.sink,
                    .note = take_note,
                    .progress = {on_step, NULL},
                    .remote = far};
  op_args args;
  n_notes = 0;
  lode_status st = op_args_init(&args, answer.op, &err);
  if (st == LODE_OK) st = op_args_from_json(&args, str_of(json), &err);
  if (st == LODE_OK) st = op_run(&ctx, &args, &err);
  op_args_release(&args);
  nothing = ctx.nothing;
  strbuf_addch(&answer.rows, '\0');
  strbuf_addch(&answer.summary, '\0');
  return st;
}

static void fill(void) {
  OK(run("create", "{\"collection\":\"c\",\"metric\":\"l2\",\"counters\":[\"lang\"],\"metadata\":{\"a\":[1]}}"));
  OK(run("add",
         "{\"collection\":\"c\",\"records\":["
         "{\"id\":\"a\",\"document\":\"parse the header\",\"metadata\":{\"lang\":\"c\",\"n\":1},\"embedding\":[1,0]},"
         "{\"id\":\"b\",\"document\":\"write the body\",\"metadata\":{\"lang\":\"c\",\"n\":2},\"embedding\":[0,1]},"
         "{\"id\":\"d\",\"metadata\":{\"lang\":\"go\"}}]}"));
}

TEST(operations_answer_as_their_schemas_say) {
  fill();
  CHECKF(has(answer.summary.data, "\"written\":3"), "%s", answer.summary.data);
  OK(run("collections", "{}"));
  CHECK(answer.n_rows == 1 && has(answer.rows.data, "\"records\":3") && has(answer.rows.data, "\"pending\":1"));
  OK(run("count", "{\"collection\":\"c\"}"));
  CHECK(has(answer.summary.data, "\"count\":3"));
  OK(run("get",
         "{\"collection\":\"c\",\"ids\":[\"d\",\"a\",\"zz\"],\"include\":[\"document\",\"metadata\",\"embedding\"]}"));
  CHECKF(strcmp(answer.rows.data, "{\"id\":\"d\",\"document\":null,\"metadata\":{\"lang\":\"go\"},\"embedding\":null}\n"
                                  "{\"id\":\"a\",\"document\":\"parse the "
                                  "header\",\"metadata\":{\"lang\":\"c\",\"n\":1},\"embedding\":[1.0,0.0]}\n") == 0,
         "%s", answer.rows.data);
  OK(run("get", "{\"collection\":\"c\",\"pending\":true,\"include\":[]}"));
  CHECKF(strcmp(answer.rows.data, "{\"id\":\"d\"}\n") == 0, "%s", answer.rows.data);
  OK(run("query", "{\"collection\":\"c\",\"vectors\":[[1,0],[0,1]],\"k\":1,\"include\":[]}"));
  CHECKF(has(answer.rows.data, "{\"query\":0,\"rank\":1,\"id\":\"a\",\"distance\":0") &&
             has(answer.rows.data, "{\"query\":1,\"rank\":1,\"id\":\"b\""),
         "%s", answer.rows.data);
  OK(run("query", "{\"collection\":\"c\",\"text\":\"header\"}"));
  CHECKF(answer.n_rows == 1 && has(answer.rows.data, "\"distance\":null,\"score\":"), "%s", answer.rows.data);
  OK(run("query", "{\"collection\":\"c\",\"text\":\"header\",\"vector\":[0,1]}"));
  CHECK(answer.n_rows == 2 && has(answer.rows.data, "\"score\":"));
  OK(run("facets", "{\"collection\":\"c\",\"key\":\"lang\"}"));
  CHECKF(strcmp(answer.rows.data, "{\"value\":\"c\",\"count\":2}\n{\"value\":\"go\",\"count\":1}\n") == 0, "%s",
         answer.rows.data);
  OK(run("facets", "{\"collection\":\"c\",\"key\":\"n\",\"limit\":1}"));
  CHECK(answer.n_rows == 1);
  OK(run("stats", "{}"));
  CHECK(has(answer.summary.data, "\"collections\":1"));
  OK(run("stats", "{\"collection\":\"c\"}"));
  CHECK(has(answer.summary.data, "\"metric\":\"l2\"") && has(answer.summary.data, "\"dimension\":2"));
  OK(run("update", "{\"collection\":\"c\",\"records\":[{\"id\":\"d\",\"embedding\":[1,1]},{\"id\":\"zz\"}]}"));
  CHECK(has(answer.summary.data, "\"written\":1") && has(answer.summary.data, "\"skipped\":1"));
  OK(run("export", "{\"collection\":\"c\"}"));
  CHECK(answer.bytes.len > 0 && answer.n_summaries == 0);
  OK(run("verify", "{}"));
  CHECK(answer.n_rows == 0 && has(answer.summary.data, "\"ok\":true"));
  OK(run("optimize", "{}"));
  OK(run("compact", "{}"));
  OK(run("rename", "{\"collection\":\"c\",\"new_name\":\"e\"}"));
  OK(run("delete", "{\"collection\":\"e\",\"where\":{\"lang\":\"c\"}}"));
  CHECK(has(answer.summary.data, "\"deleted\":2"));
  CHECK(run("drop", "{\"collection\":\"e\"}") == LODE_REFUSED); /* there is no terminal to be asked */
  far = true;
  OK(run("drop", "{\"collection\":\"e\"}"));
  far = false;
  CHECK(has(answer.summary.data, "\"dropped\":1"));
}

TEST(a_request_is_whole_or_absent) {
  fill();
  lode_status st =
      run("add", "{\"collection\":\"c\",\"records\":[{\"id\":\"x\"},{\"id\":\"y\",\"embedding\":[1,2,3]}]}");
  CHECKF(st == LODE_MISMATCH || st == LODE_REFUSED, "%s", lode_status_name(st));
  CHECK(err.record == 1);
  st = run("add", "{\"collection\":\"c\",\"records\":[{\"id\":\"x\"},{\"id\":\"x\"}]}");
  CHECKF(st == LODE_REFUSED || st == LODE_INVALID || st == LODE_EXISTS, "%s", lode_status_name(st));
  OK(run("count", "{\"collection\":\"c\"}"));
  CHECK(has(answer.summary.data, "\"count\":3"));
}

TEST(nothing_found_is_no_failure) {
  fill();
  OK(run("get", "{\"collection\":\"c\",\"ids\":[\"zz\"]}"));
  CHECK(nothing);
  OK(run("get", "{\"collection\":\"c\",\"ids\":[]}"));
  CHECK(nothing && answer.n_rows == 0);
  OK(run("query", "{\"collection\":\"c\",\"vector\":[1,0],\"where\":{\"n\":99}}"));
  CHECK(nothing);
  OK(run("delete", "{\"collection\":\"c\",\"ids\":[]}"));
  CHECK(nothing && has(answer.summary.data, "\"deleted\":0"));
  OK(run("update", "{\"collection\":\"c\",\"records\":[{\"id\":\"zz\"}]}"));
  CHECK(nothing);
}

TEST(operations_refuse_what_makes_no_sense) {
  fill();
  FAILS(LODE_INVALID, run("delete", "{\"collection\":\"c\"}"));
  CHECK(has(err.text, "{}"));
  FAILS(LODE_INVALID, run("query", "{\"collection\":\"c\"}"));
  FAILS(LODE_INVALID, run("query", "{\"collection\":\"c\",\"text\":\"x\",\"mode\":\"vector\"}"));
  CHECK(has(err.text, "does not say which model"));
  FAILS(LODE_INVALID, run("query", "{\"collection\":\"c\",\"vector\":[1,0],\"vectors\":[[1,0]]}"));
  FAILS(LODE_INVALID, run("query", "{\"collection\":\"c\",\"vector\":[1,0],\"mode\":\"text\",\"text\":\"x\"}"));
  FAILS(LODE_INVALID, run("query", "{\"collection\":\"c\",\"vector\":[1,0],\"where\":{\"a\":{\"$nope\":1}}}"));
  FAILS(LODE_MISMATCH, run("query", "{\"collection\":\"c\",\"vector\":[1,0,0]}"));
  FAILS(LODE_NOT_FOUND, run("count", "{\"collection\":\"cc\"}"));
  CHECK(has(err.text, "did you mean \"c\""));
  FAILS(LODE_NOT_FOUND, run("drop", "{\"collection\":\"unheard of\"}"));
  CHECK(has(err.text, "lode db create"));
  FAILS(LODE_EXISTS, run("create", "{\"collection\":\"c\"}"));
  OK(run("create", "{\"collection\":\"c\",\"if_missing\":true}"));
  CHECK(has(answer.summary.data, "\"created\":false"));
}

TEST(pages_of_get_go_on_where_they_ended) {
  strbuf records = {0};
  OK(run("create", "{\"collection\":\"p\"}"));
  strbuf_addstr(&records, "{\"collection\":\"p\",\"records\":[");
  for (int i = 0; i < 1000; i++) strbuf_addf(&records, "%s{\"id\":\"%d\"}", i ? "," : "", i);
  strbuf_addstr(&records, "]}");
  strbuf_addch(&records, '\0');
  OK(run("add", records.data));
  strbuf_release(&records);
  OK(run("get", "{\"collection\":\"p\",\"include\":[]}"));
  CHECK(answer.n_rows == 100);
  OK(run("get", "{\"collection\":\"p\",\"include\":[],\"limit\":0}"));
  CHECK(answer.n_rows == 1000 && has(answer.summary.data, "\"next\":null"));
  OK(run("get", "{\"collection\":\"p\",\"include\":[],\"limit\":3,\"offset\":997}"));
  CHECKF(strcmp(answer.rows.data, "{\"id\":\"997\"}\n{\"id\":\"998\"}\n{\"id\":\"999\"}\n") == 0, "%s",
         answer.rows.data);
  size_t seen = 0;
  char request[128] = "{\"collection\":\"p\",\"include\":[],\"limit\":300}";
  for (int page = 0; page < 10; page++) {
    OK(run("get", request));
    seen += answer.n_rows;
    json_doc json = {0};
    OK(json_parse(&json, str_of(answer.summary.data), NULL, &err));
    uint32_t next = json_get(&json, 0, STR_LIT("next"));
    bool end = json.nodes[next].type == JSON_NODE_NULL;
    if (!end)
      snprintf(request, sizeof request, "{\"collection\":\"p\",\"include\":[],\"limit\":300,\"after\":%lld}",
               (long long)json.nodes[next].u.i);
    json_release(&json);
    if (end) break;
  }
  CHECKF(seen == 1000, "%zu", seen);
}

/* ---- One answer, one moment ---- */

enum { MOMENT_RECORDS = 1500, MOMENT_QUERIES = 200 };

static unsigned generation;

/* Gives all records the next generation, in one commit of somebody else. */
static void write_generation(void) {
  static char ids[MOMENT_RECORDS][8], json[32];
  static lode_record records[MOMENT_RECORDS];
  static const float vector[2] = {1, 0};
  lode_store *store;
  lode_collection *collection;
  lode_error e;
  snprintf(json, sizeof json, "{\"gen\":%u}", ++generation);
  for (size_t i = 0; i < MOMENT_RECORDS; i++) {
    snprintf(ids[i], sizeof ids[i], "%zu", i);
    records[i] = (lode_record){.id = str_of(ids[i]), .metadata = str_of(json), .vector = vector, .dimension = 2};
  }
  OK(lode_open(the_store(), &(lode_open_options){.create = true}, &store, &e));
  OK(lode_collection_open(store, STR_LIT("m"), &(lode_collection_options){.create = true}, &collection, &e));
  OK(lode_upsert(collection, NULL, records, MOMENT_RECORDS, NULL, &e));
  lode_collection_close(collection);
  lode_close(store);
}

/* How many rows are not of the last generation that the answer can have. */
static size_t other_generations(void) {
  size_t others = 0;
  const char *first = strstr(answer.rows.data, "\"gen\":");
  unsigned long gen = first ? strtoul(first + 6, NULL, 10) : 0;
  for (const char *p = first; p; p = strstr(p + 1, "\"gen\":")) others += strtoul(p + 6, NULL, 10) != gen;
  return others;
}

static unsigned steps, commits_left;

/* Commits before the second call of each attempt, and of every call while commits are left. */
static bool commit_between_calls(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx;
  (void)phase;
  (void)done;
  (void)total;
  if (steps++ && commits_left) {
    commits_left--;
    write_generation();
  }
  return true;
}

static const char *query_of_many(void) {
  static strbuf json;
  json.len = 0;
  strbuf_addstr(&json, "{\"collection\":\"m\",\"k\":3,\"include\":[\"metadata\"],\"vectors\":[");
  for (int i = 0; i < MOMENT_QUERIES; i++) strbuf_addstr(&json, i ? ",[1,0]" : "[1,0]");
  strbuf_addstr(&json, "]}");
  strbuf_addch(&json, '\0');
  return json.data;
}

static const char *get_by_ids(void) {
  static strbuf json;
  json.len = 0;
  strbuf_addstr(&json, "{\"collection\":\"m\",\"ids\":[");
  for (int i = 0; i < MOMENT_RECORDS; i++) strbuf_addf(&json, "%s\"%d\"", i ? "," : "", i);
  strbuf_addstr(&json, "],\"offset\":10}");
  strbuf_addch(&json, '\0');
  return json.data;
}

static const struct {
  const char *verb;
  const char *(*json)(void);
  size_t rows;
} moment_cases[] = {{"get", NULL, MOMENT_RECORDS},
                    {"get", get_by_ids, MOMENT_RECORDS - 10},
                    {"query", query_of_many, MOMENT_QUERIES * 3}};
enum { N_MOMENT_CASES = sizeof moment_cases / sizeof *moment_cases };

static void run_moment_case(size_t i) {
  const char *json = moment_cases[i].json ? moment_cases[i].json() : "{\"collection\":\"m\",\"limit\":0}";
  OK(run(moment_cases[i].verb, json));
  CHECKF(answer.n_rows == moment_cases[i].rows, "%s %zu: %zu rows", moment_cases[i].verb, i, answer.n_rows);
}

TEST(a_commit_while_rows_are_sent_does_not_mix_moments) {
  write_generation();
  for (size_t i = 0; i < N_MOMENT_CASES; i++) {
    on_first_row = write_generation;
    run_moment_case(i);
    on_first_row = NULL;
    CHECKF(other_generations() == 0, "case %zu: %zu rows of another moment", i, other_generations());
  }
}

TEST(a_commit_between_pages_has_them_read_again) {
  write_generation();
  for (size_t i = 0; i < N_MOMENT_CASES; i++) {
    steps = 0;
    commits_left = 3;
    on_step = commit_between_calls;
    run_moment_case(i);
    on_step = NULL;
    CHECKF(commits_left == 0 && other_generations() == 0 && n_notes == 0, "case %zu: %zu of another moment, %zu notes",
           i, other_generations(), n_notes);
  }
}

/* A group of queries cannot grow: where others commit before every call, the results are of several moments. */
TEST(an_answer_of_several_moments_says_so) {
  write_generation();
  steps = 0;
  commits_left = 1000;
  on_step = commit_between_calls;
  run_moment_case(2);
  on_step = NULL;
  CHECKF(other_generations() > 0 && n_notes == 1, "%zu notes", n_notes);
}

/* ---- Copies ---- */

TEST(a_copy_that_fails_takes_nothing_away) {
  char push[700];
  snprintf(push, sizeof push, "{\"collection\":\"e\",\"as\":\"c\",\"to\":\"%s\"}", the_store());
  fill();
  OK(run("create", "{\"collection\":\"e\"}"));
  /* the target has records of this name, and vectors of another dimension */
  OK(run("add", "{\"collection\":\"e\",\"records\":[{\"id\":\"a\",\"embedding\":[1,2,3]},{\"id\":\"b\"}]}"));
  FAILS(LODE_MISMATCH, run("push", push));
  OK(run("get", "{\"collection\":\"c\",\"include\":[\"document\"]}"));
  CHECKF(answer.n_rows == 3 && has(answer.rows.data, "parse the header") && has(answer.rows.data, "write the body"),
         "%s", answer.rows.data);
}

TEST(a_copy_makes_records_equal) {
  char push[700];
  snprintf(push, sizeof push, "{\"collection\":\"e\",\"as\":\"c\",\"to\":\"%s\"}", the_store());
  fill();
  OK(run("create", "{\"collection\":\"e\"}"));
  OK(run("add", "{\"collection\":\"e\",\"records\":[{\"id\":\"a\",\"metadata\":{\"x\":1},\"embedding\":[1,2]},"
                "{\"id\":\"b\"},{\"id\":\"new\"}]}"));
  OK(run("push", push));
  CHECKF(has(answer.summary.data, "\"written\":3") && has(answer.summary.data, "\"extra\":1"), "%s",
         answer.summary.data);
  OK(run("push", push));
  CHECKF(has(answer.summary.data, "\"written\":0") && has(answer.summary.data, "\"equal\":3"), "%s",
         answer.summary.data);
  OK(run("get", "{\"collection\":\"c\",\"ids\":[\"a\",\"b\"],\"include\":[\"document\",\"metadata\",\"embedding\"]}"));
  CHECKF(strcmp(answer.rows.data, "{\"id\":\"a\",\"document\":null,\"metadata\":{\"x\":1},\"embedding\":[1.0,2.0]}\n"
                                  "{\"id\":\"b\",\"document\":null,\"metadata\":null,\"embedding\":null}\n") == 0,
         "%s", answer.rows.data);
}
