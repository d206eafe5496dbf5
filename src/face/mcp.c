/* mcp.c - messages of the protocol. See mcp.h. */
#include "mcp.h"

#include "base/os.h"

#include <pthread.h>

enum { PARSE_ERROR = -32700, BAD_REQUEST = -32600, NO_METHOD = -32601, BAD_PARAMS = -32602, INTERNAL = -32603, BAD_VERSION = -32022 };
enum { MOST_BATCH = 1000, MOST_ID = 256, MOST_TOKEN = 256, TTL_MS = 3600000 };
#define PROGRESS_NS 100000000u

/* Newest first: what a client asks for and we do not know is answered with the first. */
static const char *const handshakes[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

#define INSTRUCTIONS                                                                                                                 \
  "Searches the code of one project by meaning, words and names, and keeps records for you. Begin with search_code; search_context "   \
  "shows what is around a result and who uses it. When get_project_status says that there is no index, or files changed, call "       \
  "index_project. add, upsert, query, get and delete work on collections of your own."

typedef struct lode__mcp_batch {
  strbuf out;   /* answers, with commas between */
  size_t waiting;  /* requests without answer, and one for the reader while it reads */
} batch;

struct lode__mcp {
  lode__mcp_port port;
  pthread_mutex_t lock;
  lode__mcp_request *requests;
  size_t in_flight;
  json_doc json; /* the line being read */
};

/* One message while it is read. */
typedef struct message {
  lode__mcp *mcp;
  uint32_t params, meta; /* in mcp->json; 0: none */
  strbuf id;
  bool modern;
  batch *batch;
} message;

/* ---- Sending ---- */

static void put_version(strbuf *out) {
  strbuf_addstr(out, "{\"name\":\"lode\",\"title\":\"Lode\",\"version\":");
  json_put_string(out, str_of(lode_version()));
  strbuf_addch(out, '}');
}

static void flush_batch(lode__mcp *m, batch *b) {
  strbuf line = {0};
  if (b->out.len) {
    strbuf_addch(&line, '[');
    strbuf_add(&line, b->out.data, b->out.len);
    strbuf_addstr(&line, "]\n");
    m->port.send(m->port.ctx, &line);
  }
  strbuf_release(&b->out);
  mem_free(b);
}

/* One that belongs to the batch is done, with or without an answer. */
static void leave_batch(lode__mcp *m, batch *b, const strbuf *answer) {
  pthread_mutex_lock(&m->lock);
  if (answer) {
    if (b->out.len) strbuf_addch(&b->out, ',');
    strbuf_add(&b->out, answer->data, answer->len);
  }
  bool last = --b->waiting == 0;
  pthread_mutex_unlock(&m->lock);
  if (last) flush_batch(m, b);
}

static void enter_batch(lode__mcp *m, batch *b) {
  pthread_mutex_lock(&m->lock);
  b->waiting++;
  pthread_mutex_unlock(&m->lock);
}

/* Sends an answer, or keeps it for its batch. Takes the buffer's memory. */
static void deliver(lode__mcp *m, batch *b, strbuf *answer) {
  if (b) {
    leave_batch(m, b, answer);
    strbuf_release(answer);
    return;
  }
  strbuf_addch(answer, '\n');
  m->port.send(m->port.ctx, answer);
}

static void begin_answer(strbuf *out, const strbuf *id) {
  strbuf_addstr(out, "{\"jsonrpc\":\"2.0\",\"id\":");
  if (id && id->len) strbuf_add(out, id->data, id->len);
  else strbuf_addstr(out, "null");
}

static void put_result(strbuf *out, const strbuf *id, bool modern, lode_str members) {
  begin_answer(out, id);
  strbuf_addstr(out, ",\"result\":{");
  strbuf_add(out, members.data, members.len);
  if (modern) {
    strbuf_addf(out, "%s\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":", members.len ? "," : "");
    put_version(out);
    strbuf_addch(out, '}');
  }
  strbuf_addstr(out, "}}");
}

static void put_failure(strbuf *out, const strbuf *id, int code, const char *text, const char *data) {
  begin_answer(out, id);
  strbuf_addf(out, ",\"error\":{\"code\":%d,\"message\":", code);
  json_put_string(out, str_of(text));
  if (data) strbuf_addf(out, ",\"data\":%s", data);
  strbuf_addstr(out, "}}");
}

static void refuse(message *x, int code, const char *text, const char *data) {
  strbuf out = {0};
  if (x->batch) enter_batch(x->mcp, x->batch);
  put_failure(&out, &x->id, code, text, data);
  deliver(x->mcp, x->batch, &out);
}

static void reply(message *x, strbuf *members) {
  strbuf out = {0};
  if (x->batch) enter_batch(x->mcp, x->batch);
  put_result(&out, &x->id, x->modern, (lode_str){members->data ? members->data : "", members->len});
  out.failed = out.failed || members->failed;
  deliver(x->mcp, x->batch, &out);
  strbuf_release(members);
}

/* ---- Reading ---- */

static uint32_t member(const lode__mcp *m, uint32_t object, const char *key, json_node_type type) {
  if (m->json.nodes[object].type != JSON_NODE_OBJECT) return 0;
  uint32_t node = json_get(&m->json, object, str_of(key));
  return node && m->json.nodes[node].type == type ? node : 0;
}

static lode_str text_at(const lode__mcp *m, uint32_t node) { return node ? m->json.nodes[node].u.s : (lode_str){"", 0}; }

/* A string or a number. */
static bool take_id(const lode__mcp *m, uint32_t node, size_t max, strbuf *out) {
  json_node_type type = m->json.nodes[node].type;
  if (type != JSON_NODE_STRING && type != JSON_NODE_INT && type != JSON_NODE_DOUBLE) return false;
  json_put_node(out, &m->json, node);
  if (!out->failed && out->len <= max) return true;
  strbuf_release(out);
  return false;
}

/* ---- Methods ---- */

static void put_cache(strbuf *out) { strbuf_addf(out, ",\"ttlMs\":%d,\"cacheScope\":\"public\"", TTL_MS); }

static void discover(message *x) {
  strbuf out = {0};
  x->modern = true;
  strbuf_addstr(&out, "\"supportedVersions\":[\"" LODE__MCP_MODERN "\"],\"capabilities\":{\"tools\":{}},\"instructions\":");
  json_put_string(&out, STR_LIT(INSTRUCTIONS));
  put_cache(&out);
  reply(x, &out);
}

static void initialize(message *x) {
  lode_str wanted = text_at(x->mcp, x->params ? member(x->mcp, x->params, "protocolVersion", JSON_NODE_STRING) : 0);
  const char *version = handshakes[0];
  strbuf out = {0};
  for (size_t i = 0; i < sizeof handshakes / sizeof *handshakes; i++)
    if (str_eq(str_of(handshakes[i]), wanted)) version = handshakes[i];
  x->modern = false;
  strbuf_addf(&out, "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":", version);
  put_version(&out);
  strbuf_addstr(&out, ",\"instructions\":");
  json_put_string(&out, STR_LIT(INSTRUCTIONS));
  reply(x, &out);
}

static void ping(message *x) {
  strbuf out = {0};
  if (x->modern) refuse(x, NO_METHOD, "ping is not a method of this protocol version", NULL);
  else reply(x, &out);
}

static void list_tools(message *x) {
  strbuf out = {0};
  if (x->params && member(x->mcp, x->params, "cursor", JSON_NODE_STRING)) {
    refuse(x, BAD_PARAMS, "\"cursor\": there is one page of tools only", NULL);
    return;
  }
  strbuf_addstr(&out, "\"tools\":");
  lode__tools_put(&out);
  if (x->modern) put_cache(&out);
  reply(x, &out);
}

/* ---- Tools ---- */

static void release_request(lode__mcp_request *r) {
  strbuf_release(&r->arguments);
  strbuf_release(&r->id);
  strbuf_release(&r->token);
  mem_free(r);
}

static void enlist(lode__mcp *m, lode__mcp_request *r) {
  pthread_mutex_lock(&m->lock);
  r->after = m->requests;
  if (r->after) r->after->before = r;
  m->requests = r;
  m->in_flight++;
  if (r->batch) r->batch->waiting++;
  pthread_mutex_unlock(&m->lock);
}

static void call_tool(message *x) {
  lode__mcp *m = x->mcp;
  uint32_t name = x->params ? member(m, x->params, "name", JSON_NODE_STRING) : 0;
  uint32_t given = x->params ? json_get(&m->json, x->params, STR_LIT("arguments")) : 0;
  uint32_t token = x->meta ? json_get(&m->json, x->meta, STR_LIT("progressToken")) : 0;
  const lode__tool *tool = lode__tool_find(text_at(m, name));
  char text[400], quoted[256];
  lode__mcp_request *r = NULL;
  if (!name || !tool) {
    snprintf(text, sizeof text, name ? "there is no tool %s; tools/list has them" : "\"name\" must be the name of a tool",
             str_quote(text_at(m, name), quoted, sizeof quoted));
    refuse(x, BAD_PARAMS, text, NULL);
    return;
  }
  r = mem_calloc(1, sizeof *r);
  if (!r) {
    refuse(x, INTERNAL, "out of memory", NULL);
    return;
  }
  *r = (lode__mcp_request){.mcp = m, .tool = tool, .modern = x->modern, .batch = x->batch, .id = x->id};
  x->id = (strbuf){0};
  if (token) (void)take_id(m, token, MOST_TOKEN, &r->token);
  if (given && m->json.nodes[given].type != JSON_NODE_NULL) json_put_node(&r->arguments, &m->json, given);
  else strbuf_addstr(&r->arguments, "{}");
  enlist(m, r);
  if (r->arguments.failed) lode__mcp_fail(r, "out of memory");
  else m->port.call(m->port.ctx, r);
}

static void unlink_request(lode__mcp *m, lode__mcp_request *r) {
  if (r->before) r->before->after = r->after;
  else m->requests = r->after;
  if (r->after) r->after->before = r->before;
}

void lode__mcp_answer(lode__mcp_request *r, lode_str members) {
  lode__mcp *m = r->mcp;
  strbuf out = {0};
  pthread_mutex_lock(&m->lock);
  unlink_request(m, r);
  bool cancelled = r->cancelled;
  pthread_mutex_unlock(&m->lock);
  if (!cancelled) {
    put_result(&out, &r->id, r->modern, members);
    deliver(m, r->batch, &out);
  } else if (r->batch) {
    leave_batch(m, r->batch, NULL);
  }
  release_request(r);
  pthread_mutex_lock(&m->lock);
  m->in_flight--; /* last: whoever sees none in flight may free everything */
  pthread_mutex_unlock(&m->lock);
}

void lode__mcp_fail(lode__mcp_request *r, const char *text) {
  strbuf members = {0};
  lode__mcp_put_failure(&members, str_of(text));
  lode__mcp_answer(r, members.failed ? STR_LIT("\"content\":[],\"isError\":true") : (lode_str){members.data, members.len});
  strbuf_release(&members);
}

/* Phases follow each other, and each begins at 0; what a client sees only grows. */
void lode__mcp_progress(lode__mcp_request *r, lode_str phase, uint64_t done, uint64_t total) {
  lode__mcp *m = r->mcp;
  strbuf out = {0};
  uint64_t now = os_api->now_ns();
  if (!r->token.len) return;
  size_t len = phase.len < sizeof r->phase - 1 ? phase.len : sizeof r->phase - 1;
  if (strlen(r->phase) != len || memcmp(r->phase, phase.data, len) != 0) {
    r->base = r->shown;
    memcpy(r->phase, phase.data, len);
    r->phase[len] = '\0';
  }
  uint64_t value = r->base + done;
  if (value <= r->shown || (r->shown_ns && now - r->shown_ns < PROGRESS_NS)) return;
  pthread_mutex_lock(&m->lock);
  bool cancelled = r->cancelled;
  pthread_mutex_unlock(&m->lock);
  if (cancelled) return;
  r->shown = value;
  r->shown_ns = now;
  strbuf_addstr(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
  strbuf_add(&out, r->token.data, r->token.len);
  strbuf_addf(&out, ",\"progress\":%llu", (unsigned long long)value);
  if (total) strbuf_addf(&out, ",\"total\":%llu", (unsigned long long)(r->base + total));
  strbuf_addstr(&out, ",\"message\":");
  json_put_string(&out, str_of(r->phase));
  strbuf_addstr(&out, "}}\n");
  m->port.send(m->port.ctx, &out);
}

/* ---- Cancelling ---- */

static void cancel(message *x) {
  lode__mcp *m = x->mcp;
  uint32_t node = x->params ? json_get(&m->json, x->params, STR_LIT("requestId")) : 0;
  strbuf id = {0};
  uint64_t call = 0;
  if (!node || !take_id(m, node, MOST_ID, &id)) return;
  pthread_mutex_lock(&m->lock);
  for (lode__mcp_request *r = m->requests; r && !call; r = r->after) {
    if (r->cancelled || !str_eq((lode_str){r->id.data, r->id.len}, (lode_str){id.data, id.len})) continue;
    r->cancelled = true;
    call = r->call;
    break;
  }
  pthread_mutex_unlock(&m->lock);
  strbuf_release(&id);
  if (call) m->port.cancel(m->port.ctx, call);
}

void lode__mcp_cancel_all(lode__mcp *m, bool only_long) {
  for (;;) {
    uint64_t call = 0;
    pthread_mutex_lock(&m->lock);
    lode__mcp_request *r = m->requests;
    while (r && (r->cancelled || (only_long && !r->tool->is_long))) r = r->after;
    if (r) {
      r->cancelled = true;
      call = r->call;
    }
    pthread_mutex_unlock(&m->lock);
    if (!r) return;
    if (call) m->port.cancel(m->port.ctx, call);
  }
}

size_t lode__mcp_in_flight(lode__mcp *m) {
  pthread_mutex_lock(&m->lock);
  size_t n = m->in_flight;
  pthread_mutex_unlock(&m->lock);
  return n;
}

/* ---- Messages ---- */

/* False: refused. */
static bool check_version(message *x) {
  lode__mcp *m = x->mcp;
  uint32_t node = x->meta ? json_get(&m->json, x->meta, STR_LIT("io.modelcontextprotocol/protocolVersion")) : 0;
  strbuf data = {0};
  if (!node) return true;
  x->modern = true;
  if (m->json.nodes[node].type != JSON_NODE_STRING) {
    refuse(x, BAD_PARAMS, "\"io.modelcontextprotocol/protocolVersion\" must be a string", NULL);
    return false;
  }
  if (str_eq(m->json.nodes[node].u.s, STR_LIT(LODE__MCP_MODERN))) return true;
  strbuf_addstr(&data, "{\"supported\":[\"" LODE__MCP_MODERN "\"],\"requested\":");
  lode_str requested = m->json.nodes[node].u.s;
  if (requested.len > 100) requested = STR_LIT("?");
  json_put_string(&data, requested);
  strbuf_addf(&data, "}%c", 0);
  refuse(x, BAD_VERSION, "Unsupported protocol version", data.failed ? NULL : data.data);
  strbuf_release(&data);
  return false;
}

static void dispatch(message *x, lode_str method) {
  static const struct {
    const char *name;
    void (*run)(message *x);
  } methods[] = {{"initialize", initialize}, {"ping", ping}, {"server/discover", discover}, {"tools/list", list_tools}, {"tools/call", call_tool}};
  char text[400], quoted[256];
  bool handshake = str_eq(method, STR_LIT("initialize"));
  if (!handshake && !check_version(x)) return;
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (!str_eq(str_of(methods[i].name), method)) continue;
    methods[i].run(x);
    return;
  }
  snprintf(text, sizeof text, "there is no method %s", str_quote(method, quoted, sizeof quoted));
  refuse(x, NO_METHOD, text, NULL);
}

static void take_message(lode__mcp *m, uint32_t node, batch *b) {
  message x = {.mcp = m, .batch = b};
  const json_doc *json = &m->json;
  if (json->nodes[node].type != JSON_NODE_OBJECT) {
    refuse(&x, BAD_REQUEST, "a message must be a JSON object", NULL);
    return;
  }
  uint32_t id = json_get(json, node, STR_LIT("id")), method = json_get(json, node, STR_LIT("method"));
  bool answer = !method && (json_get(json, node, STR_LIT("result")) || json_get(json, node, STR_LIT("error")));
  if (answer) return; /* we ask nothing, so it is nobody's */
  bool bad_id = id && !take_id(m, id, MOST_ID, &x.id);
  x.params = json_get(json, node, STR_LIT("params"));
  bool bad_params = x.params && json->nodes[x.params].type != JSON_NODE_OBJECT;
  if (bad_params) x.params = 0;
  if (x.params) x.meta = member(m, x.params, "_meta", JSON_NODE_OBJECT);
  if (!str_eq(text_at(m, member(m, node, "jsonrpc", JSON_NODE_STRING)), STR_LIT("2.0")))
    refuse(&x, BAD_REQUEST, "\"jsonrpc\" must be \"2.0\"", NULL);
  else if (!method || json->nodes[method].type != JSON_NODE_STRING) refuse(&x, BAD_REQUEST, "\"method\" must be a string", NULL);
  else if (bad_id) refuse(&x, BAD_REQUEST, "\"id\" must be a number or a short string", NULL);
  else if (!id && str_eq(json->nodes[method].u.s, STR_LIT("notifications/cancelled"))) cancel(&x);
  else if (!id) (void)0; /* notifications are never answered */
  else if (bad_params) refuse(&x, BAD_PARAMS, "\"params\" must be an object", NULL);
  else dispatch(&x, json->nodes[method].u.s);
  strbuf_release(&x.id);
}

static void take_batch(lode__mcp *m) {
  message x = {.mcp = m};
  size_t n = m->json.nodes[0].u.count;
  batch *b = n && n <= MOST_BATCH ? mem_calloc(1, sizeof *b) : NULL;
  if (!b) {
    refuse(&x, BAD_REQUEST, "a batch must hold 1 to 1,000 messages", NULL);
    return;
  }
  b->waiting = 1;
  for (uint32_t i = 1; i < m->json.count; i = m->json.nodes[i].next) take_message(m, i, b);
  leave_batch(m, b, NULL);
}

void lode__mcp_take(lode__mcp *m, lode_str line) {
  static const json_limits limits = {.max_nodes = 4u << 20, .max_depth = 200};
  lode_error err = {.record = LODE_NO_RECORD};
  message x = {.mcp = m};
  size_t blank = 0;
  while (blank < line.len && strchr(" \t\r", line.data[blank]) && line.data[blank]) blank++;
  if (blank == line.len) return;
  lode_status st = json_parse(&m->json, line, &limits, &err);
  if (st != LODE_OK) refuse(&x, st == LODE_INVALID ? PARSE_ERROR : st == LODE_LIMIT ? BAD_REQUEST : INTERNAL, err.text, NULL);
  else if (m->json.nodes[0].type == JSON_NODE_ARRAY) take_batch(m);
  else take_message(m, 0, NULL);
  if (m->json.cap > 1u << 16) json_release(&m->json);
}

void lode__mcp_too_long(lode__mcp *m) {
  message x = {.mcp = m};
  char text[100];
  snprintf(text, sizeof text, "a line is longer than %u MiB: send less at a time", LODE__MCP_LINE_BYTES >> 20);
  refuse(&x, BAD_REQUEST, text, NULL);
}

lode_status lode__mcp_make(const lode__mcp_port *port, lode__mcp **mcp, lode_error *err) {
  lode__mcp *m = mem_calloc(1, sizeof *m);
  *mcp = m;
  if (!m) return err_nomem(err);
  m->port = *port;
  pthread_mutex_init(&m->lock, NULL);
  return LODE_OK;
}

void lode__mcp_free(lode__mcp *m) {
  if (!m) return;
  json_release(&m->json);
  pthread_mutex_destroy(&m->lock);
  mem_free(m);
}
