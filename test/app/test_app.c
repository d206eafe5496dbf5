/* SPDX-License-Identifier: Apache-2.0 */
/* test_app.c - the table of operations and what is derived from it: schemas, arguments from JSON and from flags, help,
 * and the texts for people. */
#include "base/base.h"
#include "cli/cli.h"
#include "cli/cli_help.h"
#include "cli/cli_progress.h"
#include "table/op_args_db.h"
#include "ops/op_schema.h"
#include "ops/op_text.h"
#include "ops/suggest.h"
#include "ops/vector_file.h"
#include "support/test.h"

#include <math.h>

static lode_error err;

static lode_str str(const char *s) { return str_of(s); }
static bool has(const char *text, const char *part) { return strstr(text, part) != NULL; }

/* ---- The table ---- */

static size_t count_params(const op_param *params) {
  size_t n = 0;
  while (params[n].name) n++;
  return n;
}

static const op_field *field_of(const op_field *fields, lode_str name) {
  for (; fields && fields->name; fields++)
    if (str_eq(str(fields->name), name)) return fields;
  return NULL;
}

/* Each parameter has a place of its own in the operation's struct of arguments. */
static void check_places(const op_def *op) {
  for (const op_param *p = op->params; p->name; p++) {
    CHECKF(p->args_size == op->args_size, "%s %s is of another struct", op->name, p->name);
    for (const op_param *q = op->params; q < p; q++)
      CHECKF(p->offset != q->offset, "%s: %s and %s share a place", op->name, q->name, p->name);
  }
}

TEST(every_entry_of_the_table_is_complete) {
  OP_EACH_GROUP(g) OP_EACH(g, op) {
    CHECKF(op_same_group(g->name, op->group), "%s is in another group's table", op->name);
    CHECKF(op->about && op->run && op->examples && op->params, "%s", op->name);
    CHECKF(op->row || op->summary || (op->flags & OP_LOCAL), "%s answers nothing", op->name);
    CHECKF(count_params(op->params) <= OP_MAX_PARAMS, "%s", op->name);
    check_places(op);
    CHECK(op_find(op->group, str(op->name)) == op);
    bool optional = false;
    for (const op_param *p = op->params; p->name; p++) {
      CHECKF(p->about, "%s %s", op->name, p->name);
      CHECKF(op_param_find(op->params, str(p->name)) == p, "%s has %s twice", op->name, p->name);
      CHECKF(!op_param_find(cli_common_def.params, str(p->name)), "%s %s hides a common flag", op->name, p->name);
      CHECKF((p->type == OP_ARG_CHOICE || p->type == OP_ARG_SET) == (p->choices != NULL), "%s %s", op->name, p->name);
      CHECKF((p->type == OP_ARG_FLAG) == (p->value == NULL), "%s %s", op->name, p->name);
      if (p->into) CHECK(p->type == OP_ARG_LINES && op_param_find(op->params, str(p->into))->type == OP_ARG_LIST);
      if (!(p->flags & OP_PARAM_POSITIONAL)) continue;
      CHECKF(!(optional && (p->flags & OP_PARAM_REQUIRED)), "%s: %s comes after an optional one", op->name, p->name);
      optional = optional || !(p->flags & OP_PARAM_REQUIRED);
    }
  }
}

TEST(sentences_name_fields_that_exist) {
  OP_EACH_GROUP(g) OP_EACH(g, op) {
    for (const char *p = op->say; p && (p = strchr(p, '{')) != NULL; p++) {
      const char *end = strchr(p, '}');
      CHECK(end);
      const char *name = p + 1 + (p[1] == '?');
      if (strncmp(p, "{s}", 3) == 0 || strncmp(p, "{es}", 4) == 0 || memchr(p, '|', strcspn(p, "}"))) continue;
      CHECKF(field_of(op->summary, (lode_str){name, (size_t)(end - name)}), "%s says %s", op->name, p);
    }
  }
}

TEST(schemas_are_json_and_list_the_parameters) {
  json_doc json = {0};
  OP_EACH_GROUP(g) OP_EACH(g, op) {
    strbuf out = {0};
    op_schema(&out, op);
    CHECK(!out.failed);
    OK(json_parse(&json, (lode_str){out.data, out.len}, NULL, &err));
    uint32_t input = json_get(&json, 0, str("inputSchema")), output = json_get(&json, 0, str("outputSchema"));
    uint32_t props = json_get(&json, input, str("properties")), required = json_get(&json, input, str("required"));
    CHECK(input && output && props && required);
    size_t shown = 0, needed = 0;
    for (const op_param *p = op->params; p->name; p++) {
      uint32_t prop = json_get(&json, props, str(p->name));
      CHECKF((prop != 0) == !(p->flags & OP_PARAM_CLI_ONLY), "%s %s", op->name, p->name);
      if (!prop) continue;
      CHECK(json_get(&json, prop, str("type")) && json_get(&json, prop, str("description")));
      CHECK((json_get(&json, prop, str("default")) != 0) == (p->fallback != NULL));
      shown++;
      needed += (p->flags & OP_PARAM_REQUIRED) != 0;
    }
    CHECK(json.nodes[props].u.count == shown);
    /* MCP has rows and the summary's fields in one object */
    for (const op_field *f = op->row ? op->summary : NULL; f && f->name; f++) CHECK(strcmp(f->name, "rows") != 0);
    CHECK(json.nodes[required].u.count == needed);
    strbuf_release(&out);
  }
  json_release(&json);
}

static void manuals(strbuf *out) {
  cli_man_page(out, NULL);
  cli_man_page(out, "db");
}

TEST(help_manual_and_completions_name_every_flag) {
  cli_style style = {.width = 100};
  void (*texts[])(strbuf *) = {manuals, cli_complete_bash, cli_complete_zsh, cli_complete_fish};
  OP_EACH_GROUP(g) OP_EACH(g, op) {
    strbuf help = {0};
    cli_help_op(&help, op, &style);
    strbuf_addch(&help, '\0');
    for (const op_param *p = op->params; p->name; p++) {
      strbuf flag = {0};
      if (p->flags & OP_PARAM_POSITIONAL)
        strbuf_addstr(&flag, p->value);
      else
        cli_put_flag(&flag, p);
      strbuf_addch(&flag, '\0');
      CHECKF(has(help.data, flag.data), "help of %s lacks %s", op->name, flag.data);
      strbuf_release(&flag);
    }
    strbuf_release(&help);
  }
  for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
    strbuf text = {0};
    texts[t](&text);
    strbuf_addch(&text, '\0');
    CHECK(!text.failed);
    OP_EACH_GROUP(g) OP_EACH(g, op) {
      char name[64] = ""; /* a manual page writes - as \\- */
      for (size_t i = 0, n = 0; op->name[i] && n < sizeof name - 3; i++) {
        if (t == 0 && op->name[i] == '-') name[n++] = '\\';
        name[n++] = op->name[i];
      }
      CHECKF(has(text.data, name), "text %zu lacks %s", t, name);
    }
    CHECK(has(text.data, t == 0 ? "where\\-document" : "where-document"));
    strbuf_release(&text);
  }
}

/* ---- Arguments from JSON ---- */

static lode_status from_json(op_args *args, const char *verb, const char *json) {
  TRY(op_args_init(args, op_find("db", str(verb)), &err));
  return op_args_from_json(args, str(json), &err);
}

TEST(json_arguments_become_typed_values) {
  op_args args;
  OK(from_json(
      &args, "query",
      "{\"collection\":\"c\",\"vector\":[1,2.5,-3],\"k\":7,\"where\":{\"a\":{\"$in\":[1,2]}},\"ids\":[\"x\",\"y,z\"],"
      "\"include\":[\"metadata\"],\"mode\":\"vector\",\"text_weight\":0.5,\"where_document\":null}"));
  const op_query_args *q = args.values;
  CHECK(str_eq(q->collection.text, str("c")));
  CHECK(q->vector.n == 1 && q->vector.dimension == 3 && q->vector.values[1] == 2.5f && q->vector.values[2] == -3);
  CHECK(q->k.n == 7 && q->k.set);
  CHECK(str_eq(q->where.text, str("{\"a\":{\"$in\":[1,2]}}")));
  CHECK(q->ids.n == 2 && str_eq(q->ids.items[1], str("y,z")));
  CHECK(q->include.bits == 2 && q->mode.index == 1);
  CHECK(q->text_weight.x == 0.5);
  CHECK(q->vector_weight.x == 1 && !q->vector_weight.set);
  CHECK(!q->where_document.set);
  CHECK(op_args_find(&args, "k", OP_ARG_INT) == &q->k && !op_args_find(&args, "nonsense", OP_ARG_INT));
  op_args_release(&args);

  OK(from_json(&args, "query", "{\"collection\":\"c\",\"vectors\":[[1,2],[3,4],[5,6]]}"));
  q = args.values;
  CHECK(q->vectors.n == 3 && q->vectors.values[5] == 6);
  CHECK(q->k.n == 10 && q->include.bits == 3);
  op_args_release(&args);
}

TEST(records_of_a_request_are_parsed) {
  op_args args;
  OK(from_json(&args, "add",
               "{\"collection\":\"c\",\"records\":[{\"id\":\"a\",\"embedding\":[1, 2.5],\"metadata\":{\"k\": [1]}},"
               "{\"document\":\"x\",\"id\":\"b\\n\",\"metadata\":null}]}"));
  const op_arg_records *records = &((const op_write_args *)args.values)->records;
  CHECK(records->n == 2 && !records->stream);
  const lode_record *a = &records->records[0], *b = &records->records[1];
  CHECK(a->dimension == 2 && a->vector[1] == 2.5f && str_eq(a->metadata, str("{\"k\":[1]}")) && !a->document.data);
  CHECK(str_eq(b->id, str("b\n")) && str_eq(b->document, str("x")) && !b->metadata.data && !b->vector);
  op_args_release(&args);
  const char *bad[] = {"7",
                       "{}",
                       "{\"id\":1}",
                       "{\"id\":\"a\",\"document\":[]}",
                       "{\"id\":\"a\",\"metadata\":[]}",
                       "{\"id\":\"a\",\"embedding\":[]}",
                       "{\"id\":\"a\",\"embedding\":[\"1\"]}",
                       "{\"id\":\"a\",\"vector\":[1]}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char json[200];
    snprintf(json, sizeof json, "{\"collection\":\"c\",\"records\":[{\"id\":\"x\"},%s]}", bad[i]);
    FAILS(LODE_REFUSED, from_json(&args, "add", json));
    CHECKF(err.record == 1 && has(err.text, "record 1"), "%s: %s", bad[i], err.text);
    op_args_release(&args);
  }
}

TEST(wrong_json_arguments_are_refused_and_named) {
  static const struct {
    const char *verb, *json, *says;
  } cases[] = {
      {"count", "[]", "object"},
      {"count", "{", ""},
      {"count", "{}", "collection"},
      {"count", "{\"collection\":3}", "collection"},
      {"count", "{\"collection\":\"a\",\"colection\":\"b\"}", "did you mean \"collection\""},
      {"count", "{\"collection\":\"a\",\"collection\":\"b\"}", "collection"},
      {"get", "{\"collection\":\"a\",\"limit\":-1}", "limit"},
      {"get", "{\"collection\":\"a\",\"limit\":1.5}", "limit"},
      {"get", "{\"collection\":\"a\",\"limit\":\"1\"}", "limit"},
      {"get", "{\"collection\":\"a\",\"ids\":\"x\"}", "ids"},
      {"get", "{\"collection\":\"a\",\"ids\":[1]}", "ids"},
      {"get", "{\"collection\":\"a\",\"ids_file\":\"/etc/passwd\"}", "ids_file"},
      {"get", "{\"collection\":\"a\",\"pending\":1}", "pending"},
      {"get", "{\"collection\":\"a\",\"where\":[]}", "where"},
      {"get", "{\"collection\":\"a\",\"where\":\"{}\"}", "where"},
      {"get", "{\"collection\":\"a\",\"include\":[\"all\"]}", "include"},
      {"query", "{\"collection\":\"a\",\"vector\":[]}", "vector"},
      {"query", "{\"collection\":\"a\",\"vector\":[1,\"2\"]}", "vector"},
      {"query", "{\"collection\":\"a\",\"vector\":[1e300]}", "vector"},
      {"query", "{\"collection\":\"a\",\"vectors\":[1,2]}", "vectors"},
      {"query", "{\"collection\":\"a\",\"vectors\":[[1,2],[3]]}", "vectors"},
      {"query", "{\"collection\":\"a\",\"vectors\":[[1,2],3]}", "vectors"},
      {"query", "{\"collection\":\"a\",\"k\":0}", "k"},
      {"query", "{\"collection\":\"a\",\"mode\":\"vectr\"}", "did you mean vector"},
      {"create", "{\"collection\":\"a\",\"embedder_dim\":65536}", "embedder_dim"},
      {"add", "{\"collection\":\"a\"}", "records"},
      {"add", "{\"collection\":\"a\",\"records\":{}}", "records"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    op_args args;
    lode_status st = from_json(&args, cases[i].verb, cases[i].json);
    CHECKF(st == LODE_INVALID, "%s %s: %s", cases[i].verb, cases[i].json, lode_status_name(st));
    CHECKF(has(err.text, cases[i].says), "%s %s: %s", cases[i].verb, cases[i].json, err.text);
    op_args_release(&args);
  }
}

static size_t allocations_left;
static bool fail_later(void) { return allocations_left && allocations_left--; }

TEST(arguments_survive_every_failed_allocation) {
  const char *json = "{\"collection\":\"c\",\"vectors\":[[1,2],[3,4]],\"where\":{\"a\":1},\"ids\":[\"x\",\"y\"],"
                     "\"text\":\"\\u00e4b\"}";
  lode_status st = LODE_NOMEM;
  size_t n = 0;
  for (; st != LODE_OK; n++) {
    op_args args;
    allocations_left = n;
    mem_alloc_hook = fail_later;
    st = from_json(&args, "query", json);
    mem_alloc_hook = NULL;
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "call %zu: %s %s", n, lode_status_name(st), err.text);
    op_args_release(&args);
    CHECK(n < 1000);
  }
  CHECK(n > 3);
}

/* ---- Arguments from flags ---- */

static lode_status parse(cli_command *c, const char *line) {
  static char words[32][128];
  static char *argv[33];
  int argc = 0;
  for (const char *p = line; *p;) {
    size_t len = strcspn(p, " ");
    CHECK(argc < 32 && len < sizeof words[0]);
    memcpy(words[argc], p, len);
    words[argc][len] = '\0';
    argv[argc] = words[argc];
    argc++;
    p += len;
    while (*p == ' ') p++;
  }
  argv[argc] = NULL;
  return cli_parse(c, argc, argv, &err);
}

TEST(flags_may_stand_anywhere) {
  const char *lines[] = {
      "lode db query c --vector [1,2] -k 5 --json --store /s --ids a,b",
      "lode --store /s db --json query -k5 --ids a --ids b --vector=[1,2] c",
      "lode db query --vector [1,2] -k=5 --ids [\"a\",\"b\"] --json --store=/s -- c",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    cli_command c;
    OK(parse(&c, lines[i]));
    CHECK(c.op == op_find("db", str("query")));
    const op_query_args *q = c.args.values;
    CHECK(str_eq(q->collection.text, str("c")));
    CHECK(q->vector.dimension == 2 && q->k.n == 5);
    CHECK(q->ids.n == 2 && str_eq(q->ids.items[1], str("b")));
    CHECK(cli_common(&c)->json.on && strcmp(cli_common(&c)->store.path, "/s") == 0);
    cli_command_release(&c);
  }
}

TEST(a_double_dash_ends_the_flags) {
  cli_command c;
  OK(parse(&c, "lode db count -- --help"));
  CHECK(!c.help && str_eq(((const op_count_args *)c.args.values)->collection.text, str("--help")));
  cli_command_release(&c);
}

TEST(wrong_command_lines_are_refused_with_advice) {
  static const struct {
    const char *line, *says;
  } cases[] = {
      {"lode bd", "lode db"},
      {"lode count c", "lode db count"},
      {"lode db cuont c", "lode db count"},
      {"lode db coll", "lode db collections"},
      {"lode db zzzzzzzz", "--help"},
      {"lode db count", "NAME"},
      {"lode db count a b", "takes no argument \"b\""},
      {"lode db count a --wher {}", "has no flag"},
      {"lode db get a --were {}", "--where?"},
      {"lode db get a --where", "needs a value"},
      {"lode db get a --where --limit 3", "needs a value"},
      {"lode db get a --limit 3 --limit 4", "twice"},
      {"lode db get a --limit 3x", "--limit"},
      {"lode db get a --limit -3", "--limit"},
      {"lode db get a --limit 99999999999999999999", "--limit"},
      {"lode db get a --pending=yes", "takes no value"},
      {"lode db get a --ids a,,b", "--ids"},
      {"lode db get a --ids [1]", "--ids"},
      {"lode db get a --ids-file /nonexistent/file", "there is no file"},
      {"lode db get a --where @/nonexistent/file", "there is no file"},
      {"lode db get a --include documents", "did you mean document?"},
      {"lode db query a --vector [1,x]", "--vector"},
      {"lode db query a --vector []", "--vector"},
      {"lode db query a --text-weight nan", "--text-weight"},
      {"lode db query a -z", "-z"},
      {"lode db create a --metric l3", "did you mean l2?"},
      {"lode db create a --page-bytes 100", "512"},
      {"lode db count a --memory 64Q", "64M"},
      {"lode db count a --color sometimes", "--color"},
      {"lode db add a /nonexistent/file", "there is no file"},
      {"lode help --completions tcsh", "bash"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cli_command c;
    lode_status st = parse(&c, cases[i].line);
    CHECKF(st == LODE_INVALID, "%s: %s", cases[i].line, lode_status_name(st));
    CHECKF(has(err.text, cases[i].says), "%s: %s", cases[i].line, err.text);
    cli_command_release(&c);
  }
}

TEST(help_is_given_where_the_rest_is_wrong) {
  const char *lines[] = {"lode db get --help", "lode db get --nonsense --help", "lode db --help", "lode -h",
                         "lode db get a b c -h"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    cli_command c;
    OK(parse(&c, lines[i]));
    CHECK(c.help);
    cli_command_release(&c);
  }
}

TEST(one_argument_alone_reads_standard_input) {
  cli_command c;
  CHECK(freopen("/dev/null", "r", stdin));
  FAILS(LODE_INVALID, parse(&c, "lode db get a --where - --where-document -"));
  CHECK(has(err.text, "--where-document") && has(err.text, "standard input"));
  cli_command_release(&c);
}

TEST(ids_of_a_file_are_one_a_line) {
  char path[300], line[400];
  cli_command c;
  snprintf(path, sizeof path, "%s/ids", test_folder());
  const char text[] = "a\nb,c\r\n\n  d\nlast";
  test_write_file(path, text, sizeof text - 1);
  snprintf(line, sizeof line, "lode db get c --ids first --ids-file %s", path);
  OK(parse(&c, line));
  const op_arg_list *ids = &((const op_get_args *)c.args.values)->ids;
  CHECK(ids->set && ids->n == 5);
  CHECK(str_eq(ids->items[0], str("first")) && str_eq(ids->items[2], str("b,c")));
  CHECK(str_eq(ids->items[3], str("  d")) && str_eq(ids->items[4], str("last")));
  cli_command_release(&c);
}

/* Some at a time, wherever the pieces end. */
TEST(lines_of_a_stream) {
  char path[300];
  snprintf(path, sizeof path, "%s/lines", test_folder());
  const char text[] = "\n\na\nb,c\r\n\n  d\n\r\nlonger one\nlast";
  static const char *const wanted[] = {"a", "b,c", "  d", "longer one", "last"};
  test_write_file(path, text, sizeof text - 1);
  for (size_t bytes = 12; bytes < 60; bytes++) {
    op_stream stream;
    op_lines lines = {.stream = &stream};
    size_t n = 0;
    OK(op_stream_open(&stream, path, &err));
    do {
      OK(op_lines_next(&lines, bytes, &err));
      for (size_t i = 0; i < lines.n; i++, n++)
        CHECKF(n < 5 && str_eq(lines.list[i], str(wanted[n])), "%zu bytes, line %zu", bytes, n);
      CHECK(lines.n || lines.ended);
    } while (!lines.ended);
    CHECK(n == 5);
    op_lines_release(&lines);
    op_stream_close(&stream);
  }
  op_stream stream;
  op_lines lines = {.stream = &stream};
  OK(op_stream_open(&stream, path, &err));
  lode_status st = LODE_OK;
  while (st == LODE_OK && !lines.ended) st = op_lines_next(&lines, 8, &err);
  CHECK(st == LODE_LIMIT && has(err.text, "longer than 8 bytes"));
  op_lines_release(&lines);
  op_stream_close(&stream);
}

TEST(statuses_have_exit_codes) {
  CHECK(cli_exit_code(LODE_OK) == 0 && cli_exit_code(LODE_NOT_FOUND) == 1 && cli_exit_code(LODE_INVALID) == 2);
  CHECK(cli_exit_code(LODE_CORRUPT) == 3 && cli_exit_code(LODE_BUSY) == 4);
  lode_status refused[] = {LODE_REFUSED,     LODE_MISMATCH, LODE_EXISTS, LODE_LIMIT, LODE_READONLY, LODE_TOO_NEW,
                           LODE_UNSUPPORTED, LODE_IO,       LODE_FULL,   LODE_NOMEM, LODE_GONE,     LODE_INTERNAL};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) CHECK(cli_exit_code(refused[i]) == 5);
}

/* ---- Small things ---- */

TEST(numbers_are_read_strictly) {
  uint64_t v = 0;
  CHECK(op_parse_uint(str("18446744073709551615"), &v) && v == UINT64_MAX);
  CHECK(!op_parse_uint(str("18446744073709551616"), &v));
  const char *bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "1.0", "1,000"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECKF(!op_parse_uint(str(bad[i]), &v), "%s", bad[i]);
  CHECK(op_parse_size(str("64M"), &v) && v == 64u << 20);
  CHECK(op_parse_size(str("1k"), &v) && v == 1024);
  CHECK(op_parse_size(str("1KiB"), &v) && v == 1024);
  CHECK(op_parse_size(str("512B"), &v) && v == 512);
  CHECK(op_parse_size(str("2TB"), &v) && v == UINT64_C(2) << 40);
  const char *bad_sizes[] = {"", "M", "iB", "1i", "5iB", "1.5G", "99999999999T", "1MM", "-1M"};
  for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++)
    CHECKF(!op_parse_size(str(bad_sizes[i]), &v), "%s", bad_sizes[i]);
}

static const char *suggestion(const char *word) {
  static op_suggest s;
  op_suggest_init(&s, str(word));
  OP_EACH_GROUP(g) OP_EACH(g, op) op_suggest_try(&s, str(op->name));
  return s.found ? s.text : "";
}

TEST(suggestions_are_near) {
  CHECK(strcmp(suggestion("qurey"), "query") == 0);
  CHECK(strcmp(suggestion("ad"), "add") == 0);
  CHECK(strcmp(suggestion("udpate"), "update") == 0);
  CHECK(strcmp(suggestion("xylophone"), "") == 0);
  CHECK(strcmp(suggestion(""), "") == 0);
}

static const char *text_of(strbuf *buf) {
  strbuf_addch(buf, '\0');
  return buf->data;
}

TEST(figures_are_readable) {
  strbuf b = {0};
  op_put_grouped(&b, 0);
  strbuf_addch(&b, ' ');
  op_put_grouped(&b, 999);
  strbuf_addch(&b, ' ');
  op_put_grouped(&b, 1234567);
  strbuf_addch(&b, ' ');
  op_put_grouped(&b, UINT64_MAX);
  CHECKF(strcmp(text_of(&b), "0 999 1,234,567 18,446,744,073,709,551,615") == 0, "%s", b.data);
  b.len = 0;
  op_put_bytes(&b, 1023);
  strbuf_addch(&b, '|');
  op_put_bytes(&b, 1536);
  strbuf_addch(&b, '|');
  op_put_bytes(&b, (UINT64_C(1) << 20) - 1);
  strbuf_addch(&b, '|');
  op_put_bytes(&b, UINT64_C(5) << 40);
  CHECKF(strcmp(text_of(&b), "1023 bytes|1.5 KiB|1.0 MiB|5.0 TiB") == 0, "%s", b.data);
  strbuf_release(&b);
}

TEST(a_document_cannot_talk_to_the_terminal) {
  strbuf b = {0};
  op_put_printable(&b, str("a\033[2Jb\tc\x7f\nd\xc2\x9bz\xff"), 0);
  CHECKF(strcmp(text_of(&b), "a\\x1b[2Jb c\\x7f⏎d\\x9bz\xef\xbf\xbd") == 0, "%s", b.data);
  b.len = 0;
  op_put_printable(&b, str("äöüß"), 3);
  CHECKF(strcmp(text_of(&b), "äö…") == 0, "%s", b.data);
  strbuf_release(&b);
}

TEST(text_that_turns_or_hides_is_shown_as_escapes) {
  /* Trojan source: bidirectional overrides and isolates, marks, zero-width characters, a byte order mark, tags */
  static const struct {
    const char *raw, *shown;
  } cases[] = {{"a\u202Eb", "a\\u202eb"},
               {"\u202A\u202B\u202C\u202D", "\\u202a\\u202b\\u202c\\u202d"},
               {"\u2066x\u2067y\u2068z\u2069", "\\u2066x\\u2067y\\u2068z\\u2069"},
               {"\u200E\u200F\u061C", "\\u200e\\u200f\\u061c"},
               {"\u200B\u200D\u2060\uFEFF", "\\u200b\\u200d\\u2060\\ufeff"},
               {"\u2028\u2029\u00AD", "\\u2028\\u2029\\xad"},
               {"\U000E0041", "\\u{e0041}"},
               {"✔\uFE0F é 漢 😀", "✔\uFE0F é 漢 😀"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    strbuf b = {0};
    op_put_printable(&b, str(cases[i].raw), 0);
    CHECKF(strcmp(text_of(&b), cases[i].shown) == 0, "case %zu: %s", i, b.data);
    strbuf_release(&b);
  }
  /* A message that quotes what a user wrote is for terminals too */
  char quoted[256];
  CHECKF(strcmp(str_quote(str("a\u202Eb"), quoted, sizeof quoted), "\"a\\xe2\\x80\\xaeb\"") == 0, "%s", quoted);
}

TEST(the_progress_line_tells_rate_and_time_left) {
  cli_progress bar = {.phase = "import", .phase_ns = 0};
  strbuf b = {0};
  cli_progress_line(&b, &bar, UINT64_C(10000000000), 5000, 20000, 80);
  CHECKF(has(text_of(&b), " 25%") && has(b.data, "5,000/20,000") && has(b.data, "500/s") && has(b.data, "left 0:30"),
         "%s", b.data);
  /* Of unknown length, but a file whose half is read */
  op_stream stream = {.size = 1000, .pos = 500};
  const op_stream *input = &stream;
  bar = (cli_progress){.phase = "import", .input = &input};
  b.len = 0;
  cli_progress_line(&b, &bar, UINT64_C(10000000000), 5000, 0, 80);
  CHECKF(has(text_of(&b), " 50%") && has(b.data, "left 0:10"), "%s", b.data);
  strbuf_release(&b);
}

/* ---- Vector files ---- */

static size_t make_npy(char *out, const char *descr, const char *order, const char *shape, const void *body,
                       size_t size) {
  char header[128];
  int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape);
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (char)n;
  out[9] = 0;
  memcpy(out + 10, header, (size_t)n);
  memcpy(out + 10 + n, body, size);
  return 10 + (size_t)n + size;
}

static lode_status load(const char *data, size_t len, lode_format format, float **v, size_t *n, uint32_t *dim) {
  return op_vectors_parse((lode_str){data, len}, format, v, n, dim, &err);
}

TEST(vector_files_of_each_format_are_read) {
  const float f4[] = {1, 2, 3, 4, 5, 6};
  const double f8[] = {1, 2, 3, 4, 5, 6};
  char file[512];
  float *v;
  size_t n;
  uint32_t dim;
  OK(load(file, make_npy(file, "<f4", "False", "(2, 3)", f4, sizeof f4), LODE_NPY, &v, &n, &dim));
  CHECK(n == 2 && dim == 3 && v[5] == 6);
  mem_free(v);
  OK(load(file, make_npy(file, "<f8", "False", "(3, 2)", f8, sizeof f8), LODE_NPY, &v, &n, &dim));
  CHECK(n == 3 && dim == 2 && v[4] == 5);
  mem_free(v);
  OK(load(file, make_npy(file, "<f4", "False", "(6,)", f4, sizeof f4), LODE_NPY, &v, &n, &dim));
  CHECK(n == 1 && dim == 6);
  mem_free(v);
  FAILS(LODE_INVALID, load(file, make_npy(file, "<f4", "True", "(2, 3)", f4, sizeof f4), LODE_NPY, &v, &n, &dim));
  FAILS(LODE_INVALID, load(file, make_npy(file, "<i4", "False", "(2, 3)", f4, sizeof f4), LODE_NPY, &v, &n, &dim));
  FAILS(LODE_INVALID, load(file, make_npy(file, "<f4", "False", "(2, 4)", f4, sizeof f4), LODE_NPY, &v, &n, &dim));
  FAILS(LODE_INVALID, load(file, make_npy(file, "<f4", "False", "(1, 2, 3)", f4, sizeof f4), LODE_NPY, &v, &n, &dim));

  size_t len = make_npy(file, "<f4", "False", "(2, 3)", f4, sizeof f4);
  FAILS(LODE_INVALID, load(file, len + 1, LODE_NPY, &v, &n, &dim)); /* more bytes than the header says */
  file[6] = 9;
  FAILS(LODE_INVALID, load(file, len, LODE_NPY, &v, &n, &dim)); /* a version that does not exist */
  const float endless[] = {1, HUGE_VALF};
  FAILS(LODE_INVALID,
        load(file, make_npy(file, "<f4", "False", "(1, 2)", endless, sizeof endless), LODE_NPY, &v, &n, &dim));

  char fvecs[] = "\2\0\0\0\0\0\x80\x3f\0\0\0\x40\2\0\0\0\0\0\x40\x40\0\0\x80\x40";
  OK(load(fvecs, 24, LODE_FVECS, &v, &n, &dim));
  CHECK(n == 2 && dim == 2 && v[0] == 1 && v[3] == 4);
  mem_free(v);
  FAILS(LODE_INVALID, load(fvecs, 23, LODE_FVECS, &v, &n, &dim));
  FAILS(LODE_INVALID, load(fvecs, 0, LODE_FVECS, &v, &n, &dim));
  fvecs[12] = 1; /* vectors of two dimensions */
  FAILS(LODE_INVALID, load(fvecs, 20, LODE_FVECS, &v, &n, &dim));
  CHECK(err.record == 1);

  const char *lines = "[1, 2]\n\n[3,4]\r\n";
  OK(load(lines, strlen(lines), LODE_JSONL, &v, &n, &dim));
  CHECK(n == 2 && dim == 2 && v[2] == 3);
  mem_free(v);
  FAILS(LODE_INVALID, load("[1]\n[1,2]", 9, LODE_JSONL, &v, &n, &dim));
  CHECK(err.record == 1);
  FAILS(LODE_INVALID, load("", 0, LODE_JSONL, &v, &n, &dim));

  const char *wrapped = " [ [1, 2] ,\n [3,4] ]\n";
  OK(load(wrapped, strlen(wrapped), LODE_JSONL, &v, &n, &dim));
  CHECK(n == 2 && dim == 2 && v[3] == 4);
  mem_free(v);
  static const char *const bad[] = {"[[1,2]",        "[[1,2],",     "[[1,2],]",  "[[1,2][3,4]]", "[[1,2]] x",
                                    "[[1,2]] [3,4]", "[[1,2],[3]]", "[[1,[2]]]", "[[]]",         "[[",
                                    "[[1,2],3]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(LODE_INVALID, load(bad[i], strlen(bad[i]), LODE_JSONL, &v, &n, &dim));
}

TEST(damaged_vector_files_are_read_or_refused) {
  const float f4[] = {1, 2, 3, 4, 5, 6};
  char file[512], copy[512];
  size_t len = make_npy(file, "<f4", "False", "(2, 3)", f4, sizeof f4);
  for (size_t cut = 0; cut <= len; cut++) {
    float *v;
    size_t n;
    uint32_t dim;
    /* A copy that ends where the data ends, so that a sanitizer sees a read past it */
    char *exact = mem_alloc(cut);
    memcpy(exact, file, cut);
    CHECK((load(exact, cut, LODE_NPY, &v, &n, &dim) == LODE_OK) == (cut == len));
    mem_free(v);
    mem_free(exact);
  }
  for (size_t i = 0; i < len * 8; i++) {
    float *v;
    size_t n;
    uint32_t dim;
    memcpy(copy, file, len);
    copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
    lode_status st = load(copy, len, LODE_NPY, &v, &n, &dim);
    CHECKF(st == LODE_OK || st == LODE_INVALID, "bit %zu: %s", i, lode_status_name(st));
    CHECKF((st == LODE_OK) == (v != NULL) && n * dim <= 6, "bit %zu", i);
    mem_free(v);
  }
}
