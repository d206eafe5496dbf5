/* SPDX-License-Identifier: Apache-2.0 */
/* test_mcp.c - messages of MCP without a worker: what is answered, what never is, and memory that runs out at any
 * place. test/shell/mcp.sh and test/shell/mcp_clients.sh have the whole program. */
#include "support/fault.h"
#include "mcp/mcp.h"
#include "table/op_args_code.h"
#include "table/op_args_db.h"
#include "support/test.h"

#include <stdlib.h>

static lode_error err;
static mcp_session *mcp;
static strbuf sent; /* all lines */
static mcp_request *waiting[64];
static size_t n_waiting;
static uint64_t calls, cancelled[64], n_cancelled;

static void take_line(void *ctx, strbuf *line) {
  (void)ctx;
  if (!line->failed) strbuf_add(&sent, line->data, line->len);
  strbuf_release(line);
}

static void take_call(void *ctx, mcp_request *r) {
  (void)ctx;
  r->call = ++calls;
  CHECK(n_waiting < 64);
  waiting[n_waiting++] = r;
}

static void take_cancel(void *ctx, uint64_t call) {
  (void)ctx;
  cancelled[n_cancelled++] = call;
}

static bool compat; /* as with --compat */

static void begin(void) {
  mcp_callbacks port = {.send = take_line, .call = take_call, .cancel = take_cancel, .compat = compat};
  OK(mcp_session_new(&port, &mcp, &err));
}

static void end(void) {
  mcp_session_free(mcp);
  strbuf_release(&sent);
}

static void say(const char *line) {
  sent.len = 0;
  mcp_handle_line(mcp, str_of(line));
  strbuf_addch(&sent, '\0');
}

static void answer(size_t i) {
  sent.len = 0;
  mcp_respond(waiting[i], STR_LIT("\"content\":[]"));
  strbuf_addch(&sent, '\0');
}

/* ---- Text by others ---- */

/* The lines of a text between its first line, which must be `head`, and a fence that closes; the fence must be the end.
 */
static void check_block(const char *text, const char *head, lode_str content) {
  size_t n = strlen(head), ticks = 0;
  CHECKF(strncmp(text, head, n) == 0 && text[n] == '\n', "head: %.200s", text);
  const char *fence = text + n + 1, *body = strchr(fence, '\n') + 1, *at = body;
  while (fence[ticks] == '`') ticks++;
  CHECKF(ticks >= 3, "no fence: %.200s", fence);
  for (;;) { /* CommonMark: a line of at least as many backticks, and nothing else, closes */
    const char *line = at, *end = strchr(at, '\n');
    CHECK(end != NULL);
    size_t spaces = strspn(line, " "), run = strspn(line + spaces, "`");
    if (spaces <= 3 && run >= ticks && strspn(line + spaces + run, " \t") == (size_t)(end - line) - spaces - run) break;
    at = end + 1;
  }
  size_t len = (size_t)(at - body);
  CHECKF(len >= content.len && len <= content.len + 1 && memcmp(body, content.data, content.len) == 0,
         "content of %zu, wanted %zu: %s", len, content.len, text);
  CHECKF(strspn(at, "`\n") == strlen(at), "after the block: %s", at);
}

static void put_member(op_context *ctx, const op_field *field, const json_doc *json, uint32_t node) {
  const json_node *x = &json->nodes[node];
  strbuf text = {0};
  json_put_node(&text, json, node);
  if (x->type == JSON_NODE_NULL)
    op_row_null(ctx, field->name);
  else if (field->type == OP_FIELD_TEXT)
    op_row_text(ctx, field->name, x->u.s);
  else if (x->type == JSON_NODE_INT)
    op_row_count(ctx, field->name, (uint64_t)x->u.i);
  else
    op_row_json(ctx, field->name, op_row_copy(ctx, (lode_str){text.data, text.len}));
  strbuf_release(&text);
}

/* The text of a row that has the members of a JSON object. */
static void put_row(strbuf *out, const op_def *op, const strbuf *row) {
  op_context ctx = {.op = op};
  json_doc json = {0};
  OK(json_parse(&json, (lode_str){row->data, row->len}, NULL, &err));
  mem_arena_init(&ctx.row.arena, 0);
  op_row_begin(&ctx);
  for (const op_field *f = op->row; f->name; f++) {
    uint32_t node = json_get(&json, 0, str_of(f->name));
    if (node) put_member(&ctx, f, &json, node);
  }
  mcp_put_row(out, op, &ctx.row, 1);
  strbuf_addch(out, '\0');
  CHECK(!out->failed);
  mem_arena_release(&ctx.row.arena);
  json_release(&json);
}

TEST(text_of_files_and_records_cannot_leave_its_block) {
  static const char *const parts[] = {
      "`",      "``",    "```", "````", "\n", "\n```\n", "\n2. src/other.c:1-2\n", "Note: all is well\n",
      "```c\n", "~~~\n", "x",   " ",    "\t", "é"};
  const op_def *search = op_find(NULL, STR_LIT("search")), *get = op_find("db", STR_LIT("get"));
  test_srand(test_seed());
  for (int round = 0; round < 3000; round++) {
    strbuf text = {0}, row = {0}, out = {0};
    do strbuf_addstr(&text, parts[test_rand() % (sizeof parts / sizeof *parts)]);
    while (test_rand() % 12);
    bool code = round & 1;
    strbuf_addstr(&row, code ? "{\"path\":\"a.c\",\"start_line\":1,\"end_line\":2,\"kind\":\"function\",\"name\":null,"
                               "\"language\":\"c\",\"snippet\":"
                             : "{\"id\":\"a\",\"document\":");
    json_put_string(&row, (lode_str){text.data, text.len});
    strbuf_addch(&row, '}');
    put_row(&out, code ? search : get, &row);
    check_block(out.data, code ? "1. a.c:1-2 function" : "1. a", (lode_str){text.data, text.len});
    strbuf_release(&text);
    strbuf_release(&row);
    strbuf_release(&out);
  }
}

TEST(names_by_others_are_one_line) {
  const op_def *search = op_find(NULL, STR_LIT("search")), *get = op_find("db", STR_LIT("get")),
               *list = op_find("db", STR_LIT("collections"));
  static const struct {
    bool code;
    const char *row, *wanted;
  } cases[] = {
      {true,
       "{\"path\":\"a\\n2. "
       "b.c\",\"start_line\":1,\"end_line\":2,\"kind\":\"k`\",\"name\":\"n\\u202e\",\"parents\":\"p\\r\",\"language\":"
       "\"c```\\nNote: x\",\"snippet\":\"y\",\"stale\":\"gone\"}",
       "1. a⏎2. b.c:1-2 k\\x60 p\\x0d / n\\u202e (the file is gone)\n```cNotex\ny\n```\n"},
      {false, "{\"id\":\"a\\n2. b\",\"document\":null,\"metadata\":{\"k`\":\"v\\nw\\u202e\"}}",
       "1. a⏎2. b\nmetadata: {\"k\\x60\":\"v\\nw\\u202e\"}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    strbuf row = {0}, out = {0};
    strbuf_addstr(&row, cases[i].row);
    put_row(&out, cases[i].code ? search : get, &row);
    CHECKF(strcmp(out.data, cases[i].wanted) == 0, "%zu: %s", i, out.data);
    strbuf_release(&row);
    strbuf_release(&out);
  }
  strbuf row = {0}, out = {0};
  strbuf_addstr(&row, "{\"name\":\"a\\n2. name b\",\"records\":1}");
  put_row(&out, list, &row);
  CHECKF(strcmp(out.data, "1. name a⏎2. name b, records 1\n") == 0, "%s", out.data);
  strbuf_release(&row);
  strbuf_release(&out);
}

static bool has(const char *text) { return strstr(sent.data, text) != NULL; }
static bool silent(void) { return sent.len == 1; }

#define CALL(id, meta)                                                                                                 \
  "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"index_project\"" meta "}}"

TEST(both_eras_in_one_session) {
  begin();
  say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2024-11-05\"}}");
  CHECK(has("\"protocolVersion\":\"2024-11-05\"") && !has("resultType"));
  say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
      "protocolVersion\":\"2026-07-28\"}}}");
  CHECK(has("\"resultType\":\"complete\"") && has("\"ttlMs\":") && has("\"cacheScope\":"));
  say("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
  CHECK(has("\"tools\":[") && !has("resultType") && !has("ttlMs"));
  say(CALL("4", ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"));
  CHECK(silent() && n_waiting == 1);
  answer(0);
  CHECK(has("\"id\":4") && has("\"resultType\":\"complete\"") && !has("ttlMs"));
  say("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
      "protocolVersion\":7}}}");
  CHECK(has("-32602"));
  end();
}

TEST(a_cancelled_request_is_never_answered) {
  begin();
  say(CALL("1", ""));
  say(CALL("\"1\"", ""));
  say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"1\"}}");
  CHECK(silent() && n_cancelled == 1 && cancelled[0] == 2);
  say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"1\"}}");
  CHECK(n_cancelled == 1); /* once */
  sent.len = 0;
  mcp_send_progress(waiting[1], STR_LIT("late"), 5, 10);
  CHECK(sent.len == 0);
  answer(1);
  CHECK(silent());
  answer(0);
  CHECK(has("\"id\":1,"));
  say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}"); /* too late */
  CHECK(n_cancelled == 1 && mcp_in_flight(mcp) == 0);
  end();
}

/* A client that gives up waiting for long work: the work goes on, and who asks for the same again gets its reply. */
TEST(long_work_survives_a_clients_timeout) {
  begin();
  n_waiting = n_cancelled = 0;
  calls = 0;
  say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"index\",\"arguments\":{\"force\":"
      "false},\"_meta\":{\"progressToken\":\"a\"}}}");
  say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"
      "call\",\"params\":{\"name\":\"search\",\"arguments\":{\"query\":"
      "\"x\"}}}");
  const char *reason = "\"reason\":\"McpError: MCP error -32001: Request timed out\"}}";
  char line[400];
  for (int id = 1; id <= 2; id++) {
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%d,%s", id, reason);
    say(line);
  }
  CHECK(n_cancelled == 1 && cancelled[0] == 2); /* a short one is stopped */
  sent.len = 0;
  mcp_send_progress(waiting[0], STR_LIT("indexing"), 5, 10);
  CHECK(sent.len == 0);
  /* another call is another */
  say("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/"
      "call\",\"params\":{\"name\":\"index\",\"arguments\":{\"force\":true}}}");
  CHECK(n_waiting == 3);
  say("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"index\",\"arguments\":{\"force\":"
      "false},\"_meta\":{\"progressToken\":\"b\"}}}");
  CHECK(n_waiting == 3);
  sent.len = 0;
  mcp_send_progress(waiting[0], STR_LIT("indexing"), 6, 10);
  strbuf_addch(&sent, '\0');
  CHECKF(strstr(sent.data, "\"progressToken\":\"b\"") != NULL, "%s", sent.data);
  answer(0);
  CHECKF(strstr(sent.data, "\"id\":4") != NULL, "%s", sent.data);
  /* given up, ended before anybody asks again: nobody is told */
  snprintf(line, sizeof line,
           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":3,%s", reason);
  say(line);
  answer(2);
  CHECK(sent.len == 1);
  answer(1);
  CHECK(sent.len == 1 && mcp_in_flight(mcp) == 0);
  end();
}

TEST(resources_are_calls_of_tools) {
  begin();
  n_waiting = n_cancelled = 0;
  static const struct {
    const char *uri, *tool, *arguments; /* tool NULL: refused */
  } cases[] = {
      {"lode://overview", "overview", "{}"},
      {"lode://status", "status", "{\"check\":true}"},
      {"lode://outline/src/a%20b.c", "outline", "{\"file\":\"src/a b.c\"}"},
      {"lode://outline/100%", "outline", "{\"file\":\"100%\"}"},
      {"lode://symbol/A.b", "symbol_definition", "{\"name\":\"A.b\"}"},
      {"lode://outline/", NULL, NULL},
      {"lode://outline/a%00b", NULL, NULL},
      {"lode://outline/a%ffb", NULL, NULL},
      {"lode://overview/x", NULL, NULL},
      {"file:///etc/passwd", NULL, NULL},
      {"", NULL, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[300];
    size_t before = n_waiting;
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"resources/read\",\"params\":{\"uri\":\"%s\"}}", i,
             cases[i].uri);
    say(line);
    CHECKF((n_waiting > before) == (cases[i].tool != NULL), "%s", cases[i].uri);
    if (!cases[i].tool) {
      CHECKF(strstr(sent.data, "-32002") != NULL, "%s: %s", cases[i].uri, sent.data);
      continue;
    }
    mcp_request *r = waiting[before];
    CHECKF(strcmp(r->tool->name, cases[i].tool) == 0 &&
               str_eq((lode_str){r->arguments.data, r->arguments.len}, str_of(cases[i].arguments)),
           "%s: %s %.*s", cases[i].uri, r->tool->name, (int)r->arguments.len, r->arguments.data);
  }
  sent.len = 0;
  mcp_respond(waiting[0],
              STR_LIT("\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"}],"
                      "\"isError\":false"));
  strbuf_addch(&sent, '\0');
  CHECKF(strstr(sent.data,
                "\"contents\":[{\"uri\":\"lode://overview\",\"mimeType\":\"text/plain\",\"text\":\"one\\n\\ntwo\"}]"),
         "%s", sent.data);
  sent.len = 0;
  mcp_respond(waiting[1], STR_LIT("\"content\":[{\"type\":\"text\",\"text\":\"NOT_FOUND: no\"}],\"isError\":true"));
  strbuf_addch(&sent, '\0');
  CHECKF(strstr(sent.data, "{\"code\":-32002,\"message\":\"NOT_FOUND: no\"}"), "%s", sent.data);
  for (size_t i = 2; i < n_waiting; i++) {
    sent.len = 0;
    mcp_respond(waiting[i], STR_LIT("garbage"));
    strbuf_addch(&sent, '\0');
    CHECKF(strstr(sent.data, "-32603") != NULL, "%s", sent.data);
  }
  CHECK(mcp_in_flight(mcp) == 0);
  end();
}

TEST(progress_only_grows_and_only_for_a_token) {
  begin();
  say(CALL("1", ",\"_meta\":{\"progressToken\":\"t\"}"));
  say(CALL("2", ""));
  sent.len = 0;
  mcp_send_progress(waiting[1], STR_LIT("walk"), 5, 10);
  CHECK(sent.len == 0);
  uint64_t last = 0;
  for (int phase = 0; phase < 3; phase++)
    for (uint64_t i = 0; i < 50; i++) {
      char name[16];
      sent.len = 0;
      snprintf(name, sizeof name, "p%d", phase);
      mcp_send_progress(waiting[0], str_of(name), i, 50);
      waiting[0]->shown_ns = 0; /* as if time had passed */
      if (!sent.len) continue;
      strbuf_addch(&sent, '\0');
      const char *at = strstr(sent.data, "\"progress\":");
      CHECK(at && has("\"progressToken\":\"t\""));
      uint64_t value = strtoull(at + 11, NULL, 10);
      CHECKF(value > last, "%llu after %llu", (unsigned long long)value, (unsigned long long)last);
      last = value;
    }
  CHECK(last >= 100);
  answer(0);
  answer(1);
  end();
}

TEST(a_batch_is_answered_as_one_when_all_of_it_is_done) {
  begin();
  say("[" CALL("1", "") ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}," CALL(
      "3", "") ",{\"jsonrpc\":\"2.0\",\"method\":\"x\"},5]");
  CHECK(silent() && n_waiting == 2);
  say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":3}}");
  answer(1);
  CHECK(silent());
  answer(0);
  CHECK(sent.data[0] == '[' && has("\"id\":1,") && has("\"id\":2,") && !has("\"id\":3,") && has("\"id\":null,"));
  say("[]");
  CHECK(has("-32600"));
  say("[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]"); /* notifications alone: nothing */
  CHECK(silent());
  end();
}

TEST(everything_is_asked_to_stop) {
  begin();
  say(CALL("1", ""));
  say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"count\"}}");
  mcp_cancel_all(mcp, true);
  CHECK(n_cancelled == 1 && cancelled[0] == 1);
  mcp_cancel_all(mcp, false);
  CHECK(n_cancelled == 2 && cancelled[1] == 2);
  answer(0);
  CHECK(silent());
  answer(1);
  CHECK(silent());
  end();
}

/* The parameter of the operation that a tool's parameter fills, or NULL. */
static const op_param *filled_by(const op_def *to, const op_param *p) {
  for (const op_param *q = to->params; q->name; q++)
    if (q->offset == p->offset && q->type == p->type) return q;
  return NULL;
}

/* Each tool fits its operation, and its schemas are JSON. */
TEST(tools_fit_the_table) {
  strbuf list = {0};
  json_doc json = {0};
  size_t listed = 0;
  for (const mcp_tool *tool = mcp_tools; tool->name; tool++) {
    listed += tool->listed;
    op_param params[OP_MAX_PARAMS + 1];
    op_def op;
    const op_def *to = mcp_tool_base_op(tool);
    CHECKF(to != NULL, "%s has no operation", tool->name);
    CHECKF(!tool->project || op_param_find(to->params, str_of(tool->project)), "%s", tool->name);
    CHECKF(!tool->always || op_param_find(to->params, str_of(tool->always)), "%s", tool->name);
    CHECKF(!tool->place || op_param_find(to->params, str_of(tool->place)), "%s", tool->name);
    mcp_tool_as_op(tool, &op, params);
    /* Whatever it takes reaches the operation */
    for (const op_param *p = op.params; p->name; p++) {
      CHECKF(p->args_size == (filled_by(to, p) ? to->args_size : op.args_size), "%s: %s", tool->name, p->name);
      CHECKF(filled_by(to, p) || (tool->place && strcmp(p->name, "line") == 0), "%s: %s goes nowhere", tool->name,
             p->name);
    }
  }
  mcp_tools_put(&list, false);
  CHECKF(list.len < 12000, "the list of tools has %zu bytes: it is read by every session", list.len);
  OK(json_parse(&json, (lode_str){list.data, list.len}, NULL, &err));
  CHECK(json.nodes[0].u.count == listed && listed == 9);
  for (const mcp_tool *tool = mcp_tools; tool->name; tool++)
    for (const char *p = tool->picks; p && *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
      CHECKF(mcp_tool_pick(tool, (lode_str){p, strcspn(p, "=")}) != NULL, "%s: %s", tool->name, p);
  json_release(&json);
  strbuf_release(&list);
}

static lode_status completed;
static void complete(op_args *args, const char *name, const char *json) {
  static op_param params[OP_MAX_PARAMS + 1];
  static op_def op;
  const mcp_tool *tool = mcp_tool_find(str_of(name), compat);
  mcp_tool_as_op(tool, &op, params);
  OK(op_args_init(args, &op, &err));
  OK(op_args_from_json(args, str_of(json), &err));
  completed = mcp_tool_complete(tool, "/project", args, &err);
  CHECK(args->op == mcp_tool_base_op(tool));
}

TEST(arguments_of_tools_become_those_of_operations) {
  op_args args;
  complete(&args, "search_similar", "{\"file\":\"a/b.c\",\"line\":7,\"language\":\"go\",\"kind\":\"enum\"}");
  const op_search_args *search = args.values;
  CHECK(str_eq(search->similar.text, STR_LIT("/project/a/b.c:7")) && search->similar.set);
  CHECK(str_eq(search->lang.text, STR_LIT("go")) && str_eq(search->type.text, STR_LIT("enum")));
  CHECK(search->limit.set && search->limit.n == 10 && strcmp(search->project.path, "/project") == 0);
  op_args_release(&args);
  complete(&args, "search_context", "{\"file\":\"/x\"}");
  const op_context_args *context = args.values;
  CHECK(str_eq(context->at.text, STR_LIT("/x")) && !context->name.set);
  CHECK(context->limit.n == 10); /* as the tool's schema says, not the operation's default */
  op_args_release(&args);
  complete(&args, "embed_pending", "{}");
  CHECK(((const op_index_args *)args.values)->pending.on);
  op_args_release(&args);
  complete(&args, "add", "{\"collection\":\"c\",\"records\":[{\"id\":\"a\"}]}");
  const op_write_args *add = args.values;
  CHECK(add->create.on && add->records.n == 1 && !add->metric.set && str_eq(add->metric.text, STR_LIT("l2")));
  op_args_release(&args);
}

/* The tools of mcp-vector-search: each has its operation, and the list is JSON. */
TEST(tools_of_mcp_vector_search_fit_the_table) {
  strbuf list = {0};
  json_doc json = {0};
  size_t listed = 0;
  for (const mcp_tool *tool = mcp_compat_tools; tool->name; tool++) {
    const op_def *to = mcp_tool_base_op(tool);
    listed += tool->listed;
    CHECKF(to && tool->compat && tool->brief && !mcp_compat_instead(str_of(tool->name)), "%s", tool->name);
    CHECKF(op_param_find(to->params, str_of(tool->project)), "%s", tool->name);
    for (const char *p = tool->picks; p && *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
      CHECKF(mcp_tool_pick(tool, (lode_str){p, strcspn(p, "=")}) != NULL, "%s: %s", tool->name, p);
    for (const op_param *p = tool->params; p && p->name; p++)
      CHECKF(filled_by(to, p) || (tool->adapt && p->args_size == tool->args_size), "%s: %s goes nowhere", tool->name,
             p->name);
  }
  for (const mcp_tool *tool = mcp_tools; tool->name; tool++) listed += tool->listed;
  mcp_tools_put(&list, true);
  OK(json_parse(&json, (lode_str){list.data, list.len}, NULL, &err));
  CHECK(json.nodes[0].u.count == listed);
  json_release(&json);
  strbuf_release(&list);
}

TEST(arguments_of_mcp_vector_search_become_those_of_operations) {
  op_args args;
  const op_search_args *search;
  compat = true;
  complete(&args, "search_code",
           "{\"query\":\"q\",\"file_extensions\":[\".ts\",\"js\"],\"function_name\":\"f\",\"search_mode\":\"bm25\"}");
  search = args.values;
  CHECK(completed == LODE_OK && str_eq(search->path.text, STR_LIT("*.ts,*.js")) && search->mode.index == 2);
  CHECK(str_eq(search->name.text, STR_LIT("f")) && str_eq(search->type.text, STR_LIT("function")));
  op_args_release(&args);
  complete(&args, "search_similar", "{\"file_path\":\"a/b.c\",\"function_name\":\"f\"}");
  search = args.values;
  CHECK(completed == LODE_OK && str_eq(search->similar.text, STR_LIT("/project/a/b.c:f")) && !search->name.set);
  op_args_release(&args);
  complete(&args, "search_context", "{\"description\":\"d\",\"focus_areas\":[\"x\",\"y z\"]}");
  search = args.values;
  CHECK(completed == LODE_OK && str_eq(search->query.text, STR_LIT("d x y z")));
  op_args_release(&args);
  complete(&args, "embed_chunks", "{\"fresh\":true}");
  CHECK(((const op_index_args *)args.values)->force.on && !((const op_index_args *)args.values)->pending.on);
  op_args_release(&args);
  static const char *const wrong[][2] = {
      {"search_code", "{\"query\":\"q\",\"files\":\"*.c\",\"tests_only\":true}"},
      {"search_code", "{\"query\":\"q\",\"function_name\":\"f\",\"class_name\":\"c\"}"},
      {"search_hybrid", "{\"query\":\"q\",\"project_path\":\"/other\"}"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    complete(&args, wrong[i][0], wrong[i][1]);
    CHECKF(completed == LODE_INVALID, "%s", wrong[i][1]);
    op_args_release(&args);
  }
  compat = false;
}

TEST(tools_of_mcp_vector_search_are_there_when_asked_for) {
  static const char wiki[] =
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"wiki_generate\"}}";
  static const char kg[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"kg_query\","
                           "\"arguments\":{\"entity\":\"f\",\"relationship\":\"called_by\"}}}";
  begin();
  say(wiki);
  CHECK(has("there is no tool"));
  say(kg);
  CHECK(has("there is no tool") && n_waiting == 0);
  end();
  compat = true;
  begin();
  say(wiki);
  CHECK(has("needs a language model") && n_waiting == 0);
  say(kg);
  CHECK(n_waiting == 1 && strcmp(waiting[0]->tool->base, "callers") == 0);
  CHECK(strncmp(waiting[0]->arguments.data, "{\"entity\":\"f\"", 13) == 0);
  answer(0);
  end();
  compat = false;
}

static void whole_session(void) {
  n_waiting = n_cancelled = 0;
  say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}");
  say("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
  say("[" CALL("3", ",\"_meta\":{\"progressToken\":1}") "," CALL("4", ",\"arguments\":{\"force\":true}") "]");
  say(CALL("5", ""));
  say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":5}}");
  for (size_t i = 0; i < n_waiting; i++) {
    mcp_send_progress(waiting[i], STR_LIT("x"), 1, 2);
    mcp_respond_error(waiting[i], "no");
  }
  CHECK(mcp_in_flight(mcp) == 0);
}

TEST(memory_runs_out_at_any_place) {
  fault_alloc_install();
  begin();
  for (uint64_t n = 1;; n++) {
    fault_alloc_set(n, false);
    whole_session();
    bool hit = fault_alloc_hits() > 0;
    fault_alloc_set(0, false);
    if (!hit) break;
    CHECK(n < 5000);
    strbuf_release(&sent);
  }
  say("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
  CHECK(has("\"result\":{}"));
  end();
}
