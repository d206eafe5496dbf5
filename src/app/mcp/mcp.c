/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.c - messages of the protocol. See mcp.h. */
#include "mcp/mcp.h"

#include "os/os.h"

#include <pthread.h>

enum {
  MCP_PARSE_ERROR = -32700,
  MCP_BAD_REQUEST = -32600,
  MCP_NO_METHOD = -32601,
  MCP_BAD_PARAMS = -32602,
  MCP_INTERNAL = -32603,
  MCP_NO_RESOURCE = -32002, /* of the handshake era */
  MCP_BAD_VERSION = -32022
};
enum { MCP_MAX_BATCH = 1000, MCP_MAX_URI = 8192, MCP_MAX_ID = 256, MCP_MAX_TOKEN = 256, MCP_TTL_MS = 3600000 };
#define MCP_PROGRESS_NS 100000000u

/* Newest first: if a client asks for an unknown version, the first is offered. */
static const char *const mcp_handshake_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

#define MCP_INSTRUCTIONS                                                                                               \
  "Knows the code of one project. search finds code by meaning, words or names; symbol shows where a name is "         \
  "defined, "                                                                                                          \
  "used and called; impact what a change may break; outline what a file or folder defines; read the lines "            \
  "themselves; "                                                                                                       \
  "grep matches text. Answers keep to max_tokens and say what they left out. Without an index, or after files "        \
  "changed "                                                                                                           \
  "a lot, call index; status says which. memory keeps records of your own."

typedef struct mcp_batch {
  strbuf out;     /* replies, separated by commas */
  size_t waiting; /* requests without reply, plus one while the batch is being read */
} mcp_batch;

struct mcp_session {
  mcp_callbacks callbacks;
  pthread_mutex_t lock;
  mcp_request *requests;
  size_t in_flight;
  json_doc json; /* the line being read */
};

/* A message being read. */
typedef struct mcp_message {
  mcp_session *mcp;
  uint32_t params, meta; /* in mcp->json; 0: none */
  strbuf id;
  bool stateless;
  mcp_batch *batch;
} mcp_message;

/* ---- Sending ---- */

static void mcp_put_version(strbuf *out) {
  strbuf_addstr(out, "{\"name\":\"lode\",\"title\":\"Lode\",\"version\":");
  json_put_string(out, str_of(lode_version()));
  strbuf_addch(out, '}');
}

static void mcp_batch_flush(mcp_session *m, mcp_batch *b) {
  strbuf line = {0};
  if (b->out.len) {
    strbuf_addch(&line, '[');
    strbuf_add(&line, b->out.data, b->out.len);
    strbuf_addstr(&line, "]\n");
    m->callbacks.send(m->callbacks.ctx, &line);
  }
  strbuf_release(&b->out);
  mem_free(b);
}

/* A member of the batch is done, with or without a reply. */
static void mcp_batch_leave(mcp_session *m, mcp_batch *b, const strbuf *answer) {
  pthread_mutex_lock(&m->lock);
  if (answer) {
    if (b->out.len) strbuf_addch(&b->out, ',');
    strbuf_add(&b->out, answer->data, answer->len);
  }
  bool last = --b->waiting == 0;
  pthread_mutex_unlock(&m->lock);
  if (last) mcp_batch_flush(m, b);
}

static void mcp_batch_enter(mcp_session *m, mcp_batch *b) {
  pthread_mutex_lock(&m->lock);
  b->waiting++;
  pthread_mutex_unlock(&m->lock);
}

/* Sends a reply, or adds it to its batch. Takes over the buffer. */
static void mcp_deliver(mcp_session *m, mcp_batch *b, strbuf *answer) {
  if (b) {
    mcp_batch_leave(m, b, answer);
    strbuf_release(answer);
    return;
  }
  strbuf_addch(answer, '\n');
  m->callbacks.send(m->callbacks.ctx, answer);
}

static void mcp_begin_reply(strbuf *out, const strbuf *id) {
  strbuf_addstr(out, "{\"jsonrpc\":\"2.0\",\"id\":");
  if (id && id->len)
    strbuf_add(out, id->data, id->len);
  else
    strbuf_addstr(out, "null");
}

static void mcp_put_result(strbuf *out, const strbuf *id, bool stateless, lode_str members) {
  mcp_begin_reply(out, id);
  strbuf_addstr(out, ",\"result\":{");
  strbuf_add(out, members.data, members.len);
  if (stateless) {
    strbuf_addf(out, "%s\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":",
                members.len ? "," : "");
    mcp_put_version(out);
    strbuf_addch(out, '}');
  }
  strbuf_addstr(out, "}}");
}

static void mcp_put_rpc_error(strbuf *out, const strbuf *id, int code, const char *text, const char *data) {
  mcp_begin_reply(out, id);
  strbuf_addf(out, ",\"error\":{\"code\":%d,\"message\":", code);
  json_put_string(out, str_of(text));
  if (data) strbuf_addf(out, ",\"data\":%s", data);
  strbuf_addstr(out, "}}");
}

static void mcp_refuse(mcp_message *x, int code, const char *text, const char *data) {
  strbuf out = {0};
  if (x->batch) mcp_batch_enter(x->mcp, x->batch);
  mcp_put_rpc_error(&out, &x->id, code, text, data);
  mcp_deliver(x->mcp, x->batch, &out);
}

static void mcp_send_result(mcp_message *x, strbuf *members) {
  strbuf out = {0};
  if (x->batch) mcp_batch_enter(x->mcp, x->batch);
  mcp_put_result(&out, &x->id, x->stateless, (lode_str){members->data ? members->data : "", members->len});
  out.failed = out.failed || members->failed;
  mcp_deliver(x->mcp, x->batch, &out);
  strbuf_release(members);
}

/* ---- Reading ---- */

static uint32_t mcp_member(const mcp_session *m, uint32_t object, const char *key, json_node_type type) {
  if (m->json.nodes[object].type != JSON_NODE_OBJECT) return 0;
  uint32_t node = json_get(&m->json, object, str_of(key));
  return node && m->json.nodes[node].type == type ? node : 0;
}

static lode_str mcp_text_at(const mcp_session *m, uint32_t node) {
  return node ? m->json.nodes[node].u.s : (lode_str){"", 0};
}

/* Ids and progress tokens: a string or a number, of at most `max` bytes. */
static bool mcp_take_id(const mcp_session *m, uint32_t node, size_t max, strbuf *out) {
  json_node_type type = m->json.nodes[node].type;
  if (type != JSON_NODE_STRING && type != JSON_NODE_INT && type != JSON_NODE_DOUBLE) return false;
  json_put_node(out, &m->json, node);
  if (!out->failed && out->len <= max) return true;
  strbuf_release(out);
  return false;
}

/* ---- Methods ---- */

static void mcp_put_cache(strbuf *out) { strbuf_addf(out, ",\"ttlMs\":%d,\"cacheScope\":\"public\"", MCP_TTL_MS); }

static void mcp_discover(mcp_message *x) {
  strbuf out = {0};
  x->stateless = true;
  strbuf_addstr(&out, "\"supportedVersions\":[\"" MCP_STATELESS_VERSION
                      "\"],\"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{}},\"instructions\":");
  json_put_string(&out, STR_LIT(MCP_INSTRUCTIONS));
  mcp_put_cache(&out);
  mcp_send_result(x, &out);
}

static void mcp_initialize(mcp_message *x) {
  lode_str wanted =
      mcp_text_at(x->mcp, x->params ? mcp_member(x->mcp, x->params, "protocolVersion", JSON_NODE_STRING) : 0);
  const char *version = mcp_handshake_versions[0];
  strbuf out = {0};
  for (size_t i = 0; i < sizeof mcp_handshake_versions / sizeof *mcp_handshake_versions; i++)
    if (str_eq(str_of(mcp_handshake_versions[i]), wanted)) version = mcp_handshake_versions[i];
  x->stateless = false;
  strbuf_addf(
      &out,
      "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{}},\"serverInfo\":",
      version);
  mcp_put_version(&out);
  strbuf_addstr(&out, ",\"instructions\":");
  json_put_string(&out, STR_LIT(MCP_INSTRUCTIONS));
  mcp_send_result(x, &out);
}

static void mcp_ping(mcp_message *x) {
  strbuf out = {0};
  if (x->stateless)
    mcp_refuse(x, MCP_NO_METHOD, "ping is not a method of this protocol version", NULL);
  else
    mcp_send_result(x, &out);
}

static void mcp_list_tools(mcp_message *x) {
  strbuf out = {0};
  if (x->params && mcp_member(x->mcp, x->params, "cursor", JSON_NODE_STRING)) {
    mcp_refuse(x, MCP_BAD_PARAMS, "\"cursor\": there is one page of tools only", NULL);
    return;
  }
  strbuf_addstr(&out, "\"tools\":");
  mcp_tools_put(&out, x->mcp->callbacks.compat);
  if (x->stateless) mcp_put_cache(&out);
  mcp_send_result(x, &out);
}

static void mcp_list_prompts(mcp_message *x) {
  strbuf out = {0};
  if (x->params && mcp_member(x->mcp, x->params, "cursor", JSON_NODE_STRING)) {
    mcp_refuse(x, MCP_BAD_PARAMS, "\"cursor\": there is one page of prompts only", NULL);
    return;
  }
  strbuf_addstr(&out, "\"prompts\":");
  mcp_prompts_put(&out);
  if (x->stateless) mcp_put_cache(&out);
  mcp_send_result(x, &out);
}

static void mcp_get_prompt(mcp_message *x) {
  strbuf out = {0};
  char why[400];
  if (mcp_prompt_put(&out, &x->mcp->json, x->params, why, sizeof why))
    mcp_send_result(x, &out);
  else
    mcp_refuse(x, MCP_BAD_PARAMS, why, NULL);
}

static void mcp_list_resources(mcp_message *x) {
  strbuf out = {0};
  if (x->params && mcp_member(x->mcp, x->params, "cursor", JSON_NODE_STRING)) {
    mcp_refuse(x, MCP_BAD_PARAMS, "\"cursor\": there is one page of resources only", NULL);
    return;
  }
  strbuf_addstr(&out, "\"resources\":");
  mcp_resources_put(&out);
  if (x->stateless) mcp_put_cache(&out);
  mcp_send_result(x, &out);
}

static void mcp_list_templates(mcp_message *x) {
  strbuf out = {0};
  strbuf_addstr(&out, "\"resourceTemplates\":");
  mcp_resource_templates_put(&out);
  if (x->stateless) mcp_put_cache(&out);
  mcp_send_result(x, &out);
}

/* ---- Tools ---- */

static void mcp_request_release(mcp_request *r) {
  strbuf_release(&r->arguments);
  strbuf_release(&r->uri);
  strbuf_release(&r->id);
  strbuf_release(&r->token);
  mem_free(r);
}

static void mcp_request_link(mcp_session *m, mcp_request *r) {
  pthread_mutex_lock(&m->lock);
  r->after = m->requests;
  if (r->after) r->after->before = r;
  m->requests = r;
  m->in_flight++;
  if (r->batch) r->batch->waiting++;
  pthread_mutex_unlock(&m->lock);
}

/* The tool of a family, and its arguments without the word that picks it; NULL: no such word, which is answered. */
static const mcp_tool *mcp_take_pick(mcp_message *x, const mcp_tool *family, uint32_t given, strbuf *arguments) {
  mcp_session *m = x->mcp;
  bool object = given && m->json.nodes[given].type == JSON_NODE_OBJECT;
  uint32_t word = object ? json_get(&m->json, given, str_of(family->pick)) : 0;
  const char *first = family->picks;
  lode_str meant = word ? mcp_text_at(m, m->json.nodes[word].type == JSON_NODE_STRING ? word : 0)
                        : (lode_str){first, strcspn(first, "=")};
  const mcp_tool *tool = mcp_tool_pick(family, meant);
  char text[400];
  if (!tool) {
    size_t len = (size_t)snprintf(text, sizeof text, "\"%s\" of the tool %s must be one of its words:", family->pick,
                                  family->name);
    for (const char *p = family->picks; *p && len < sizeof text; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|'))
      len += (size_t)snprintf(text + len, sizeof text - len, "%s %.*s", p == family->picks ? "" : ",",
                              (int)strcspn(p, "="), p);
    mcp_refuse(x, MCP_BAD_PARAMS, text, NULL);
    return NULL;
  }
  strbuf_addstr(arguments, "{");
  for (uint32_t key = object ? given + 1 : 0; key && key < m->json.nodes[given].next;) {
    uint32_t value = key + 1;
    if (value != word) {
      if (arguments->len > 1) strbuf_addch(arguments, ',');
      json_put_string(arguments, m->json.nodes[key].u.s);
      strbuf_addch(arguments, ':');
      json_put_node(arguments, &m->json, value);
    }
    key = m->json.nodes[value].next;
  }
  if (!object || !json_get(&m->json, given, STR_LIT("max_tokens")))
    strbuf_addf(arguments, "%s\"max_tokens\":%d", arguments->len > 1 ? "," : "", MCP_DEFAULT_TOKENS);
  strbuf_addch(arguments, '}');
  return tool;
}

static void mcp_refuse_tool(mcp_message *x, uint32_t name) {
  lode_str given = mcp_text_at(x->mcp, name);
  const char *instead = x->mcp->callbacks.compat ? mcp_compat_instead(given) : NULL;
  char text[500], quoted[256];
  str_quote(given, quoted, sizeof quoted);
  if (!name)
    snprintf(text, sizeof text, "\"name\" must be the name of a tool");
  else if (instead)
    snprintf(text, sizeof text, "Lode does not have mcp-vector-search's tool %s: %s", quoted, instead);
  else
    snprintf(text, sizeof text, "there is no tool %s; tools/list has them", quoted);
  mcp_refuse(x, MCP_BAD_PARAMS, text, NULL);
}

/* The same call that a client gave up waiting for, still under way: the new request takes it over. True: it did, and
 * `r` is gone. */
static bool mcp_attach(mcp_session *m, mcp_request *r) {
  lode_str arguments = {r->arguments.data, r->arguments.len};
  pthread_mutex_lock(&m->lock);
  mcp_request *old = r->tool->is_long ? m->requests : NULL;
  while (old && !(old->detached && !old->cancelled && old->tool == r->tool &&
                  str_eq((lode_str){old->arguments.data, old->arguments.len}, arguments)))
    old = old->after;
  if (old) {
    old->detached = false;
    old->id = r->id;
    old->token = r->token;
    old->stateless = r->stateless;
    old->batch = r->batch;
    old->shown_ns = 0;
    if (old->batch) old->batch->waiting++;
    r->id = r->token = (strbuf){0};
  }
  pthread_mutex_unlock(&m->lock);
  if (old) mcp_request_release(r);
  return old != NULL;
}

static void mcp_call_tool(mcp_message *x) {
  mcp_session *m = x->mcp;
  uint32_t name = x->params ? mcp_member(m, x->params, "name", JSON_NODE_STRING) : 0;
  uint32_t given = x->params ? json_get(&m->json, x->params, STR_LIT("arguments")) : 0;
  uint32_t token = x->meta ? json_get(&m->json, x->meta, STR_LIT("progressToken")) : 0;
  const mcp_tool *tool = mcp_tool_find(mcp_text_at(m, name), m->callbacks.compat);
  mcp_request *r = NULL;
  if (!name || !tool) {
    mcp_refuse_tool(x, name);
    return;
  }
  strbuf picked = {0};
  if (tool->pick && !(tool = mcp_take_pick(x, tool, given, &picked))) return;
  r = mem_calloc(1, sizeof *r);
  if (!r) {
    strbuf_release(&picked);
    mcp_refuse(x, MCP_INTERNAL, "out of memory", NULL);
    return;
  }
  *r = (mcp_request){.mcp = m, .tool = tool, .stateless = x->stateless, .batch = x->batch, .id = x->id};
  x->id = (strbuf){0};
  if (token) (void)mcp_take_id(m, token, MCP_MAX_TOKEN, &r->token);
  if (picked.len)
    r->arguments = picked;
  else if (given && m->json.nodes[given].type != JSON_NODE_NULL)
    json_put_node(&r->arguments, &m->json, given);
  else
    strbuf_addstr(&r->arguments, "{}");
  if (!r->arguments.failed && mcp_attach(m, r)) return;
  mcp_request_link(m, r);
  if (r->arguments.failed)
    mcp_respond_error(r, "out of memory");
  else
    m->callbacks.call(m->callbacks.ctx, r);
}

static void mcp_read_resource(mcp_message *x) {
  mcp_session *m = x->mcp;
  uint32_t node = x->params ? mcp_member(m, x->params, "uri", JSON_NODE_STRING) : 0;
  lode_str uri = mcp_text_at(m, node);
  strbuf arguments = {0};
  char quoted[256], text[400];
  const mcp_tool *tool = uri.len && uri.len <= MCP_MAX_URI ? mcp_resource_find(uri, &arguments) : NULL;
  if (!tool) {
    snprintf(text, sizeof text,
             node ? "there is no resource %s; resources/list and resources/templates/list have them"
                  : "\"uri\" must be the URI of a resource%s",
             node ? str_quote(uri, quoted, sizeof quoted) : "");
    mcp_refuse(x, !node || x->stateless ? MCP_BAD_PARAMS : MCP_NO_RESOURCE, text, NULL);
    strbuf_release(&arguments);
    return;
  }
  mcp_request *r = mem_calloc(1, sizeof *r);
  if (!r) {
    strbuf_release(&arguments);
    mcp_refuse(x, MCP_INTERNAL, "out of memory", NULL);
    return;
  }
  *r = (mcp_request){
      .mcp = m, .tool = tool, .stateless = x->stateless, .batch = x->batch, .id = x->id, .arguments = arguments};
  x->id = (strbuf){0};
  strbuf_add(&r->uri, uri.data, uri.len);
  mcp_request_link(m, r);
  if (r->arguments.failed || r->uri.failed)
    mcp_respond_error(r, "out of memory");
  else
    m->callbacks.call(m->callbacks.ctx, r);
}

/* A resource that is not there is an error of the protocol, not a result. */
static void mcp_put_resource_reply(const mcp_request *r, lode_str members, strbuf *out) {
  strbuf result = {0}, why = {0};
  if (mcp_resource_put(&result, (lode_str){r->uri.data, r->uri.len}, members, &why)) {
    if (r->stateless) strbuf_addstr(&result, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
    mcp_put_result(out, &r->id, r->stateless, (lode_str){result.data ? result.data : "", result.len});
  } else {
    const char *text = why.failed || !why.data ? "out of memory" : why.data;
    bool absent = strncmp(text, "NOT_FOUND", 9) == 0, wrong = strncmp(text, "INVALID", 7) == 0;
    mcp_put_rpc_error(out, &r->id,
                      !absent && !wrong ? MCP_INTERNAL
                      : r->stateless    ? MCP_BAD_PARAMS
                                        : MCP_NO_RESOURCE,
                      text, NULL);
  }
  out->failed = out->failed || result.failed;
  strbuf_release(&result);
  strbuf_release(&why);
}

static void mcp_request_unlink(mcp_session *m, mcp_request *r) {
  if (r->before)
    r->before->after = r->after;
  else
    m->requests = r->after;
  if (r->after) r->after->before = r->before;
}

void mcp_respond(mcp_request *r, lode_str members) {
  mcp_session *m = r->mcp;
  strbuf out = {0};
  pthread_mutex_lock(&m->lock);
  mcp_request_unlink(m, r);
  bool cancelled = r->cancelled || r->detached;
  pthread_mutex_unlock(&m->lock);
  if (!cancelled) {
    if (r->uri.len)
      mcp_put_resource_reply(r, members, &out);
    else
      mcp_put_result(&out, &r->id, r->stateless, members);
    mcp_deliver(m, r->batch, &out);
  } else if (r->batch) {
    mcp_batch_leave(m, r->batch, NULL);
  }
  mcp_request_release(r);
  pthread_mutex_lock(&m->lock);
  m->in_flight--; /* last: when none is in flight, everything may be freed */
  pthread_mutex_unlock(&m->lock);
}

void mcp_respond_error(mcp_request *r, const char *text) {
  strbuf members = {0};
  mcp_put_failure(&members, str_of(text));
  mcp_respond(r, members.failed ? STR_LIT("\"content\":[],\"isError\":true") : (lode_str){members.data, members.len});
  strbuf_release(&members);
}

/* Each phase begins at 0, but the progress that a client sees must only grow. */
void mcp_send_progress(mcp_request *r, lode_str phase, uint64_t done, uint64_t total) {
  mcp_session *m = r->mcp;
  strbuf out = {0};
  uint64_t now = os_api->now_ns();
  size_t len = phase.len < sizeof r->phase - 1 ? phase.len : sizeof r->phase - 1;
  if (strlen(r->phase) != len || memcmp(r->phase, phase.data, len) != 0) {
    r->base = r->shown;
    memcpy(r->phase, phase.data, len);
    r->phase[len] = '\0';
  }
  uint64_t value = r->base + done;
  if (value <= r->shown || (r->shown_ns && now - r->shown_ns < MCP_PROGRESS_NS)) return;
  pthread_mutex_lock(&m->lock); /* another request may take the call over, with a token of its own */
  bool wanted = !r->cancelled && !r->detached && r->token.len;
  strbuf_addstr(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
  strbuf_add(&out, r->token.data ? r->token.data : "", r->token.len);
  if (wanted) r->shown_ns = now;
  pthread_mutex_unlock(&m->lock);
  if (!wanted) {
    strbuf_release(&out);
    return;
  }
  r->shown = value;
  strbuf_addf(&out, ",\"progress\":%llu", (unsigned long long)value);
  if (total) strbuf_addf(&out, ",\"total\":%llu", (unsigned long long)(r->base + total));
  strbuf_addstr(&out, ",\"message\":");
  json_put_string(&out, str_of(r->phase));
  strbuf_addstr(&out, "}}\n");
  m->callbacks.send(m->callbacks.ctx, &out);
}

/* ---- Cancellation ---- */

/* A client that waited as long as it does says so as its reason: the SDKs "Request timed out". */
static bool mcp_is_timeout(lode_str reason) {
  static const char *const words[] = {"timed out", "timeout", "time out"};
  char text[200];
  size_t n = reason.len < sizeof text - 1 ? reason.len : sizeof text - 1;
  for (size_t i = 0; i < n; i++)
    text[i] = (char)(reason.data[i] >= 'A' && reason.data[i] <= 'Z' ? reason.data[i] + 32 : reason.data[i]);
  text[n] = '\0';
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr(text, words[i])) return true;
  return false;
}

/* Nobody waits for the reply any more; the work goes on. Returns the batch that waits for it. */
static mcp_batch *mcp_detach(mcp_request *r) {
  mcp_batch *batch = r->batch;
  r->detached = true;
  r->batch = NULL;
  strbuf_release(&r->id);
  strbuf_release(&r->token);
  return batch;
}

static void mcp_cancel(mcp_message *x) {
  mcp_session *m = x->mcp;
  uint32_t node = x->params ? json_get(&m->json, x->params, STR_LIT("requestId")) : 0;
  uint32_t why = x->params ? mcp_member(m, x->params, "reason", JSON_NODE_STRING) : 0;
  bool timeout = mcp_is_timeout(mcp_text_at(m, why));
  mcp_batch *batch = NULL;
  strbuf id = {0};
  uint64_t call = 0;
  if (!node || !mcp_take_id(m, node, MCP_MAX_ID, &id)) return;
  pthread_mutex_lock(&m->lock);
  for (mcp_request *r = m->requests; r && !call; r = r->after) {
    bool meant = str_eq((lode_str){r->id.data, r->id.len}, (lode_str){id.data, id.len});
    if (r->cancelled || r->detached || !meant) continue;
    if (timeout && r->tool->is_long) {
      batch = mcp_detach(r);
      break;
    }
    r->cancelled = true;
    call = r->call;
    break;
  }
  pthread_mutex_unlock(&m->lock);
  strbuf_release(&id);
  if (batch) mcp_batch_leave(m, batch, NULL);
  if (call) m->callbacks.cancel(m->callbacks.ctx, call);
}

void mcp_cancel_all(mcp_session *m, bool only_long) {
  for (;;) {
    uint64_t call = 0;
    pthread_mutex_lock(&m->lock);
    mcp_request *r = m->requests;
    while (r && (r->cancelled || (only_long && !r->tool->is_long))) r = r->after;
    if (r) {
      r->cancelled = true;
      call = r->call;
    }
    pthread_mutex_unlock(&m->lock);
    if (!r) return;
    if (call) m->callbacks.cancel(m->callbacks.ctx, call);
  }
}

size_t mcp_in_flight(mcp_session *m) {
  pthread_mutex_lock(&m->lock);
  size_t n = m->in_flight;
  pthread_mutex_unlock(&m->lock);
  return n;
}

/* ---- Messages ---- */

/* False: the message was refused. */
static bool mcp_check_version(mcp_message *x) {
  mcp_session *m = x->mcp;
  uint32_t node = x->meta ? json_get(&m->json, x->meta, STR_LIT("io.modelcontextprotocol/protocolVersion")) : 0;
  strbuf data = {0};
  if (!node) return true;
  x->stateless = true;
  if (m->json.nodes[node].type != JSON_NODE_STRING) {
    mcp_refuse(x, MCP_BAD_PARAMS, "\"io.modelcontextprotocol/protocolVersion\" must be a string", NULL);
    return false;
  }
  if (str_eq(m->json.nodes[node].u.s, STR_LIT(MCP_STATELESS_VERSION))) return true;
  strbuf_addstr(&data, "{\"supported\":[\"" MCP_STATELESS_VERSION "\"],\"requested\":");
  lode_str requested = m->json.nodes[node].u.s;
  if (requested.len > 100) requested = STR_LIT("?");
  json_put_string(&data, requested);
  strbuf_addf(&data, "}%c", 0);
  mcp_refuse(x, MCP_BAD_VERSION, "Unsupported protocol version", data.failed ? NULL : data.data);
  strbuf_release(&data);
  return false;
}

static void mcp_dispatch(mcp_message *x, lode_str method) {
  static const struct {
    const char *name;
    void (*run)(mcp_message *x);
  } methods[] = {{"initialize", mcp_initialize},        {"ping", mcp_ping},
                 {"server/discover", mcp_discover},     {"prompts/list", mcp_list_prompts},
                 {"prompts/get", mcp_get_prompt},       {"tools/list", mcp_list_tools},
                 {"tools/call", mcp_call_tool},         {"resources/list", mcp_list_resources},
                 {"resources/read", mcp_read_resource}, {"resources/templates/list", mcp_list_templates}};
  char text[400], quoted[256];
  bool handshake = str_eq(method, STR_LIT("initialize"));
  if (!handshake && !mcp_check_version(x)) return;
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (!str_eq(str_of(methods[i].name), method)) continue;
    methods[i].run(x);
    return;
  }
  snprintf(text, sizeof text, "there is no method %s", str_quote(method, quoted, sizeof quoted));
  mcp_refuse(x, MCP_NO_METHOD, text, NULL);
}

static void mcp_take_message(mcp_session *m, uint32_t node, mcp_batch *b) {
  mcp_message x = {.mcp = m, .batch = b};
  const json_doc *json = &m->json;
  if (json->nodes[node].type != JSON_NODE_OBJECT) {
    mcp_refuse(&x, MCP_BAD_REQUEST, "a message must be a JSON object", NULL);
    return;
  }
  uint32_t id = json_get(json, node, STR_LIT("id")), method = json_get(json, node, STR_LIT("method"));
  bool answer = !method && (json_get(json, node, STR_LIT("result")) || json_get(json, node, STR_LIT("error")));
  if (answer) return; /* we send no requests, so a response is ignored */
  bool bad_id = id && !mcp_take_id(m, id, MCP_MAX_ID, &x.id);
  x.params = json_get(json, node, STR_LIT("params"));
  bool bad_params = x.params && json->nodes[x.params].type != JSON_NODE_OBJECT;
  if (bad_params) x.params = 0;
  if (x.params) x.meta = mcp_member(m, x.params, "_meta", JSON_NODE_OBJECT);
  if (!str_eq(mcp_text_at(m, mcp_member(m, node, "jsonrpc", JSON_NODE_STRING)), STR_LIT("2.0")))
    mcp_refuse(&x, MCP_BAD_REQUEST, "\"jsonrpc\" must be \"2.0\"", NULL);
  else if (!method || json->nodes[method].type != JSON_NODE_STRING)
    mcp_refuse(&x, MCP_BAD_REQUEST, "\"method\" must be a string", NULL);
  else if (bad_id)
    mcp_refuse(&x, MCP_BAD_REQUEST, "\"id\" must be a number or a short string", NULL);
  else if (!id && str_eq(json->nodes[method].u.s, STR_LIT("notifications/cancelled")))
    mcp_cancel(&x);
  else if (!id)
    (void)0; /* notifications are never answered */
  else if (bad_params)
    mcp_refuse(&x, MCP_BAD_PARAMS, "\"params\" must be an object", NULL);
  else
    mcp_dispatch(&x, json->nodes[method].u.s);
  strbuf_release(&x.id);
}

static void mcp_take_batch(mcp_session *m) {
  mcp_message x = {.mcp = m};
  size_t n = m->json.nodes[0].u.count;
  mcp_batch *b = n && n <= MCP_MAX_BATCH ? mem_calloc(1, sizeof *b) : NULL;
  if (!b) {
    mcp_refuse(&x, MCP_BAD_REQUEST, "a batch must hold 1 to 1,000 messages", NULL);
    return;
  }
  b->waiting = 1;
  for (uint32_t i = 1; i < m->json.count; i = m->json.nodes[i].next) mcp_take_message(m, i, b);
  mcp_batch_leave(m, b, NULL);
}

void mcp_handle_line(mcp_session *m, lode_str line) {
  static const json_limits limits = {.max_nodes = 4u << 20, .max_depth = 200};
  lode_error err = {.record = LODE_NO_RECORD};
  mcp_message x = {.mcp = m};
  size_t blank = 0;
  while (blank < line.len && strchr(" \t\r", line.data[blank]) && line.data[blank]) blank++;
  if (blank == line.len) return;
  lode_status st = json_parse(&m->json, line, &limits, &err);
  if (st != LODE_OK)
    mcp_refuse(&x,
               st == LODE_INVALID ? MCP_PARSE_ERROR
               : st == LODE_LIMIT ? MCP_BAD_REQUEST
                                  : MCP_INTERNAL,
               err.text, NULL);
  else if (m->json.nodes[0].type == JSON_NODE_ARRAY)
    mcp_take_batch(m);
  else
    mcp_take_message(m, 0, NULL);
  if (m->json.cap > 1u << 16) json_release(&m->json);
}

void mcp_line_too_long(mcp_session *m) {
  mcp_message x = {.mcp = m};
  char text[100];
  snprintf(text, sizeof text, "a line is longer than %u MiB: send less at a time", MCP_MAX_LINE_BYTES >> 20);
  mcp_refuse(&x, MCP_BAD_REQUEST, text, NULL);
}

lode_status mcp_session_new(const mcp_callbacks *callbacks, mcp_session **mcp, lode_error *err) {
  mcp_session *m = mem_calloc(1, sizeof *m);
  *mcp = m;
  if (!m) return err_nomem(err);
  m->callbacks = *callbacks;
  pthread_mutex_init(&m->lock, NULL);
  return LODE_OK;
}

void mcp_session_free(mcp_session *m) {
  if (!m) return;
  json_release(&m->json);
  pthread_mutex_destroy(&m->lock);
  mem_free(m);
}
