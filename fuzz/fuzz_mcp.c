/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mcp.c - any lines to the MCP server: what comes out is one JSON message a line, every request that can be told
 * apart is answered, and no arguments get further than an operation that checks them.
 *
 * Input: lines. The worker is not there: a call's arguments are checked as it would, and translated to those of the
 * operation; then it is answered, every third one only after the next line, so that cancellation meets requests in
 * flight.
 */
#include "mcp/mcp.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mcp_request *late[64];
static size_t n_late, calls;

static void take(void *ctx, strbuf *line) {
  json_doc json = {0};
  lode_error err;
  (void)ctx;
  REQUIRE(!line->failed && line->len > 1 && line->data[line->len - 1] == '\n');
  REQUIRE(!memchr(line->data, '\n', line->len - 1));
  REQUIRE(json_parse(&json, (lode_str){line->data, line->len - 1}, NULL, &err) == LODE_OK);
  REQUIRE(json.nodes[0].type == JSON_NODE_OBJECT || json.nodes[0].type == JSON_NODE_ARRAY);
  json_release(&json);
  strbuf_release(line);
}

static void check_arguments(const mcp_request *r, lode_error *err) {
  op_param params[OP_MAX_PARAMS + 1];
  op_def op;
  op_args args;
  mcp_tool_as_op(r->tool, &op, params);
  lode_status st = op_args_init(&args, &op, err);
  if (st == LODE_OK) st = op_args_from_json(&args, (lode_str){r->arguments.data, r->arguments.len}, err);
  if (st == LODE_OK) st = mcp_tool_complete(r->tool, "/project", &args, err);
  REQUIRE(st == LODE_OK || (err->text[0] && st != LODE_INTERNAL));
  op_args_release(&args);
}

static void answer(mcp_request *r) {
  mcp_send_progress(r, STR_LIT("one"), 1, 2);
  mcp_send_progress(r, STR_LIT("two"), 1, 0);
  if (calls % 2)
    mcp_respond_error(r, "no");
  else
    mcp_respond(r, STR_LIT("\"content\":[]"));
}

static void run(void *ctx, mcp_request *r) {
  lode_error err = {.record = LODE_NO_RECORD};
  (void)ctx;
  r->call = ++calls;
  check_arguments(r, &err);
  if (calls % 3 == 0 && n_late < sizeof late / sizeof *late)
    late[n_late++] = r;
  else
    answer(r);
}

static void cancel(void *ctx, uint64_t call) {
  (void)ctx;
  REQUIRE(call && call <= calls);
}

static void answer_late(void) {
  while (n_late) answer(late[--n_late]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const mcp_callbacks port = {.send = take, .call = run, .cancel = cancel};
  lode_str rest = {(const char *)data, size};
  mcp_session *mcp;
  lode_error err;
  calls = 0;
  REQUIRE(mcp_session_new(&port, &mcp, &err) == LODE_OK);
  while (rest.len) {
    const char *end = memchr(rest.data, '\n', rest.len);
    lode_str line = {rest.data, end ? (size_t)(end - rest.data) : rest.len};
    size_t used = line.len + (end != NULL);
    mcp_handle_line(mcp, line);
    if (line.len % 2) answer_late();
    rest.data += used;
    rest.len -= used;
  }
  answer_late();
  REQUIRE(mcp_in_flight(mcp) == 0);
  mcp_session_free(mcp);
  return 0;
}
