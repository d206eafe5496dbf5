/* SPDX-License-Identifier: Apache-2.0 */
/* test_operations.c - operations run in process: their answers, the moment they are of, and copies. */
#include "base/base.h"
#include "support/op_kit.h"
#include "support/test.h"

#include <stdlib.h>

static lode_error err;

static lode_status run(const char *verb, const char *json) { return op_kit_run(verb, json, &err); }
static bool has(const char *text, const char *part) { return strstr(text, part) != NULL; }

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
  CHECKF(has(op_kit_answer.summary.data, "\"written\":3"), "%s", op_kit_answer.summary.data);
  OK(run("collections", "{}"));
  CHECK(op_kit_answer.n_rows == 1 && has(op_kit_answer.rows.data, "\"records\":3") &&
        has(op_kit_answer.rows.data, "\"pending\":1"));
  OK(run("count", "{\"collection\":\"c\"}"));
  CHECK(has(op_kit_answer.summary.data, "\"count\":3"));
  OK(run("get",
         "{\"collection\":\"c\",\"ids\":[\"d\",\"a\",\"zz\"],\"include\":[\"document\",\"metadata\",\"embedding\"]}"));
  CHECKF(strcmp(op_kit_answer.rows.data,
                "{\"id\":\"d\",\"document\":null,\"metadata\":{\"lang\":\"go\"},\"embedding\":null}\n"
                "{\"id\":\"a\",\"document\":\"parse the "
                "header\",\"metadata\":{\"lang\":\"c\",\"n\":1},\"embedding\":[1.0,0.0]}\n") == 0,
         "%s", op_kit_answer.rows.data);
  OK(run("get", "{\"collection\":\"c\",\"pending\":true,\"include\":[]}"));
  CHECKF(strcmp(op_kit_answer.rows.data, "{\"id\":\"d\"}\n") == 0, "%s", op_kit_answer.rows.data);
  OK(run("query", "{\"collection\":\"c\",\"vectors\":[[1,0],[0,1]],\"k\":1,\"include\":[]}"));
  CHECKF(has(op_kit_answer.rows.data, "{\"query\":0,\"rank\":1,\"id\":\"a\",\"distance\":0") &&
             has(op_kit_answer.rows.data, "{\"query\":1,\"rank\":1,\"id\":\"b\""),
         "%s", op_kit_answer.rows.data);
  OK(run("query", "{\"collection\":\"c\",\"text\":\"header\"}"));
  CHECKF(op_kit_answer.n_rows == 1 && has(op_kit_answer.rows.data, "\"distance\":null,\"score\":"), "%s",
         op_kit_answer.rows.data);
  OK(run("query", "{\"collection\":\"c\",\"text\":\"header\",\"vector\":[0,1]}"));
  CHECK(op_kit_answer.n_rows == 2 && has(op_kit_answer.rows.data, "\"score\":"));
  OK(run("facets", "{\"collection\":\"c\",\"key\":\"lang\"}"));
  CHECKF(strcmp(op_kit_answer.rows.data, "{\"value\":\"c\",\"count\":2}\n{\"value\":\"go\",\"count\":1}\n") == 0, "%s",
         op_kit_answer.rows.data);
  OK(run("facets", "{\"collection\":\"c\",\"key\":\"n\",\"limit\":1}"));
  CHECK(op_kit_answer.n_rows == 1);
  OK(run("stats", "{}"));
  CHECK(has(op_kit_answer.summary.data, "\"collections\":1"));
  OK(run("stats", "{\"collection\":\"c\"}"));
  CHECK(has(op_kit_answer.summary.data, "\"metric\":\"l2\"") && has(op_kit_answer.summary.data, "\"dimension\":2"));
  OK(run("update", "{\"collection\":\"c\",\"records\":[{\"id\":\"d\",\"embedding\":[1,1]},{\"id\":\"zz\"}]}"));
  CHECK(has(op_kit_answer.summary.data, "\"written\":1") && has(op_kit_answer.summary.data, "\"skipped\":1"));
  OK(run("export", "{\"collection\":\"c\"}"));
  CHECK(op_kit_answer.bytes.len > 0 && op_kit_answer.n_summaries == 0);
  OK(run("verify", "{}"));
  CHECK(op_kit_answer.n_rows == 0 && has(op_kit_answer.summary.data, "\"ok\":true"));
  OK(run("optimize", "{}"));
  OK(run("compact", "{}"));
  OK(run("rename", "{\"collection\":\"c\",\"new_name\":\"e\"}"));
  OK(run("delete", "{\"collection\":\"e\",\"where\":{\"lang\":\"c\"}}"));
  CHECK(has(op_kit_answer.summary.data, "\"deleted\":2"));
  CHECK(run("drop", "{\"collection\":\"e\"}") == LODE_REFUSED); /* there is no terminal to be asked */
  op_kit_how.remote = true;
  OK(run("drop", "{\"collection\":\"e\"}"));
  op_kit_how.remote = false;
  CHECK(has(op_kit_answer.summary.data, "\"dropped\":1"));
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
  CHECK(has(op_kit_answer.summary.data, "\"count\":3"));
}

TEST(nothing_found_is_no_failure) {
  fill();
  OK(run("get", "{\"collection\":\"c\",\"ids\":[\"zz\"]}"));
  CHECK(op_kit_answer.nothing);
  OK(run("get", "{\"collection\":\"c\",\"ids\":[]}"));
  CHECK(op_kit_answer.nothing && op_kit_answer.n_rows == 0);
  OK(run("query", "{\"collection\":\"c\",\"vector\":[1,0],\"where\":{\"n\":99}}"));
  CHECK(op_kit_answer.nothing);
  OK(run("delete", "{\"collection\":\"c\",\"ids\":[]}"));
  CHECK(op_kit_answer.nothing && has(op_kit_answer.summary.data, "\"deleted\":0"));
  OK(run("update", "{\"collection\":\"c\",\"records\":[{\"id\":\"zz\"}]}"));
  CHECK(op_kit_answer.nothing);
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
  CHECK(has(op_kit_answer.summary.data, "\"created\":false"));
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
  CHECK(op_kit_answer.n_rows == 100);
  OK(run("get", "{\"collection\":\"p\",\"include\":[],\"limit\":0}"));
  CHECK(op_kit_answer.n_rows == 1000 && has(op_kit_answer.summary.data, "\"next\":null"));
  OK(run("get", "{\"collection\":\"p\",\"include\":[],\"limit\":3,\"offset\":997}"));
  CHECKF(strcmp(op_kit_answer.rows.data, "{\"id\":\"997\"}\n{\"id\":\"998\"}\n{\"id\":\"999\"}\n") == 0, "%s",
         op_kit_answer.rows.data);
  size_t seen = 0;
  char request[128] = "{\"collection\":\"p\",\"include\":[],\"limit\":300}";
  for (int page = 0; page < 10; page++) {
    OK(run("get", request));
    seen += op_kit_answer.n_rows;
    json_doc json = {0};
    OK(json_parse(&json, str_of(op_kit_answer.summary.data), NULL, &err));
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
  OK(lode_open(op_kit_store(), &(lode_open_options){.create = true}, &store, &e));
  OK(lode_collection_open(store, STR_LIT("m"), &(lode_collection_options){.create = true}, &collection, &e));
  OK(lode_upsert(collection, NULL, records, MOMENT_RECORDS, NULL, &e));
  lode_collection_close(collection);
  lode_close(store);
}

/* How many rows are not of the last generation that the answer can have. */
static size_t other_generations(void) {
  size_t others = 0;
  const char *first = strstr(op_kit_answer.rows.data, "\"gen\":");
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
  CHECKF(op_kit_answer.n_rows == moment_cases[i].rows, "%s %zu: %zu rows", moment_cases[i].verb, i,
         op_kit_answer.n_rows);
}

TEST(a_commit_while_rows_are_sent_does_not_mix_moments) {
  write_generation();
  for (size_t i = 0; i < N_MOMENT_CASES; i++) {
    op_kit_how.on_first_row = write_generation;
    run_moment_case(i);
    op_kit_how.on_first_row = NULL;
    CHECKF(other_generations() == 0, "case %zu: %zu rows of another moment", i, other_generations());
  }
}

TEST(a_commit_between_pages_has_them_read_again) {
  write_generation();
  for (size_t i = 0; i < N_MOMENT_CASES; i++) {
    steps = 0;
    commits_left = 3;
    op_kit_how.on_step = commit_between_calls;
    run_moment_case(i);
    op_kit_how.on_step = NULL;
    CHECKF(commits_left == 0 && other_generations() == 0 && op_kit_answer.n_notes == 0,
           "case %zu: %zu of another moment, %zu notes", i, other_generations(), op_kit_answer.n_notes);
  }
}

/* A group of queries cannot grow: where others commit before every call, the results are of several moments. */
TEST(an_answer_of_several_moments_says_so) {
  write_generation();
  steps = 0;
  commits_left = 1000;
  op_kit_how.on_step = commit_between_calls;
  run_moment_case(2);
  op_kit_how.on_step = NULL;
  CHECKF(other_generations() > 0 && op_kit_answer.n_notes == 1, "%zu notes", op_kit_answer.n_notes);
}

/* ---- Copies ---- */

TEST(a_copy_that_fails_takes_nothing_away) {
  char push[700];
  snprintf(push, sizeof push, "{\"collection\":\"e\",\"as\":\"c\",\"to\":\"%s\"}", op_kit_store());
  fill();
  OK(run("create", "{\"collection\":\"e\"}"));
  /* the target has records of this name, and vectors of another dimension */
  OK(run("add", "{\"collection\":\"e\",\"records\":[{\"id\":\"a\",\"embedding\":[1,2,3]},{\"id\":\"b\"}]}"));
  FAILS(LODE_MISMATCH, run("push", push));
  OK(run("get", "{\"collection\":\"c\",\"include\":[\"document\"]}"));
  CHECKF(op_kit_answer.n_rows == 3 && has(op_kit_answer.rows.data, "parse the header") &&
             has(op_kit_answer.rows.data, "write the body"),
         "%s", op_kit_answer.rows.data);
}

TEST(a_copy_makes_records_equal) {
  char push[700];
  snprintf(push, sizeof push, "{\"collection\":\"e\",\"as\":\"c\",\"to\":\"%s\"}", op_kit_store());
  fill();
  OK(run("create", "{\"collection\":\"e\"}"));
  OK(run("add", "{\"collection\":\"e\",\"records\":[{\"id\":\"a\",\"metadata\":{\"x\":1},\"embedding\":[1,2]},"
                "{\"id\":\"b\"},{\"id\":\"new\"}]}"));
  OK(run("push", push));
  CHECKF(has(op_kit_answer.summary.data, "\"written\":3") && has(op_kit_answer.summary.data, "\"extra\":1"), "%s",
         op_kit_answer.summary.data);
  OK(run("push", push));
  CHECKF(has(op_kit_answer.summary.data, "\"written\":0") && has(op_kit_answer.summary.data, "\"equal\":3"), "%s",
         op_kit_answer.summary.data);
  OK(run("get", "{\"collection\":\"c\",\"ids\":[\"a\",\"b\"],\"include\":[\"document\",\"metadata\",\"embedding\"]}"));
  CHECKF(strcmp(op_kit_answer.rows.data,
                "{\"id\":\"a\",\"document\":null,\"metadata\":{\"x\":1},\"embedding\":[1.0,2.0]}\n"
                "{\"id\":\"b\",\"document\":null,\"metadata\":null,\"embedding\":null}\n") == 0,
         "%s", op_kit_answer.rows.data);
}
