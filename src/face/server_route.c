/* server_route.c - from method and path to an answer or to a call of the worker.
 *
 * The table is the whole map. In a pattern {} stands for one segment, which becomes a word of the call, decoded; "?limit" asks for
 * values of the query string, which become words too. First match wins; a path that matches with another method is 405.
 */
#include "chroma.h"
#include "page.h"
#include "server.h"

#include "base/os.h"

typedef void answer_fn(lode__request *r);

typedef struct route {
  const char *method, *pattern;
  const char *call;     /* of the worker, or NULL */
  answer_fn *answer;    /* here, without the worker; or NULL */
  const char *query[2]; /* names of query values that go along */
} route;

/* ---- Answers without the worker ---- */

static void put_text(lode__request *r, unsigned status, const char *text) {
  strbuf body = {0};
  strbuf_addstr(&body, text);
  lode__request_answer(r, status, &body);
}

static void heartbeat(lode__request *r) {
  strbuf body = {0};
  strbuf_addf(&body, "{\"nanosecond heartbeat\":%llu}", (unsigned long long)os_wall_ms() * 1000000ull);
  lode__request_answer(r, 200, &body);
}

/* The version of Chroma's API that we speak, not ours: its clients look at it. */
static void version(lode__request *r) { put_text(r, 200, "\"1.0.0\""); }

static void identity(lode__request *r) {
  put_text(r, 200, "{\"user_id\":\"\",\"tenant\":\"default_tenant\",\"databases\":[\"default_database\"]}");
}

static void preflight(lode__request *r) {
  strbuf body = {0};
  strbuf_addf(&body, "{\"max_batch_size\":%d,\"supports_base64_encoding\":true}", LODE__CHROMA_BATCH);
  lode__request_answer(r, 200, &body);
}

static void healthcheck(lode__request *r) {
  lode__supervisor_figures f;
  lode__supervisor_figures_get(lode__server_supervisor(r->http), &f);
  strbuf body = {0};
  strbuf_addf(&body, "{\"is_executor_ready\":%s,\"is_log_client_ready\":%s}", f.ready ? "true" : "false", f.ready ? "true" : "false");
  lode__request_answer(r, f.ready ? 200 : 503, &body);
}

static void healthz(lode__request *r) { put_text(r, 200, "{\"status\":\"ok\"}"); }

static void readyz(lode__request *r) {
  lode__supervisor_figures f;
  lode__supervisor_figures_get(lode__server_supervisor(r->http), &f);
  put_text(r, f.ready ? 200 : 503, f.ready ? "{\"status\":\"ready\"}" : "{\"status\":\"the worker is starting\"}");
  r->retry_later = !f.ready;
}

static void metrics(lode__request *r) {
  lode__supervisor_figures supervisor;
  lode__server_figures http;
  strbuf body = {0};
  lode__supervisor_figures_get(lode__server_supervisor(r->http), &supervisor);
  lode__server_figures_get(r->http, &http);
  lode__metrics_put(lode__server_metrics(r->http), &body, &http, &supervisor);
  lode__request_answer(r, 200, &body);
  r->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void page(lode__request *r) {
  const lode__page_head *head = lode__page_head_get();
  const char *known = lode__request_header(r, "If-None-Match");
  strbuf body = {0};
  bool same = known && strcmp(known, head->etag) == 0;
  if (!same) strbuf_add(&body, (const char *)lode__page_bytes, lode__page_size);
  lode__request_answer(r, same ? 304 : 200, &body);
  r->type = "text/html; charset=utf-8";
  r->etag = head->etag;
  r->policy = head->policy;
}

static void old_api(lode__request *r) {
  lode__request_fail(r, 410, "Unimplemented", "The v1 API is deprecated. Please use /v2 apis");
}

static void no_functions(lode__request *r) { lode__request_fail(r, 501, "ChromaError", "Attached functions are unsupported for local chroma"); }

static void may_reset(lode__request *r) {
  if (!lode__server_options_of(r->http)->allow_reset)
    lode__request_fail(r, 403, "ChromaError", "Resetting is not allowed: start the server with --allow-reset");
}

/* ---- Operations of the table ---- */

static unsigned http_status(lode_status st) {
  switch (st) {
    case LODE_OK: return 200;
    case LODE_INVALID: return 400;
    case LODE_READONLY: return 403;
    case LODE_NOT_FOUND: return 404;
    case LODE_CANCELLED: return 408;
    case LODE_EXISTS:
    case LODE_MISMATCH: return 409;
    case LODE_LIMIT: return 413;
    case LODE_REFUSED: return 422;
    case LODE_UNSUPPORTED: return 501;
    case LODE_BUSY:
    case LODE_GONE:
    case LODE_NOMEM: return 503;
    case LODE_FULL: return 507;
    default: return 500;
  }
}

static void from_lode(lode__request *r, unsigned code) { r->status = http_status((lode_status)code); }

static void fail_lode(lode__request *r, lode_status st, const char *text) {
  lode_error err = {.record = LODE_NO_RECORD};
  strbuf body = {0};
  snprintf(err.text, sizeof err.text, "%s", text);
  lode__put_error(&body, st, &err);
  lode__request_answer(r, http_status(st), &body);
}

static void put_schema(strbuf *out, const lode__op *op) {
  lode__param params[LODE__OP_MAX_PARAMS + 1];
  lode__op shown;
  lode__op_as_request(op, &shown, params);
  lode__op_schema(out, &shown);
}

/* Words "db", "query", or "search": the operation, and its name as a call. */
static const lode__op *op_of_words(lode__request *r) {
  if (r->n_words == 2)
    snprintf(r->call_name, sizeof r->call_name, "%.*s.%.*s", (int)r->words[0].len, r->words[0].data, (int)r->words[1].len, r->words[1].data);
  else snprintf(r->call_name, sizeof r->call_name, "%.*s", (int)r->words[0].len, r->words[0].data);
  return lode__op_of_call(r->call_name);
}

static void run_op(lode__request *r) {
  const lode__op *op = op_of_words(r);
  r->words[0] = STR_LIT(LODE__FROM_AFAR);
  r->n_words = 1;
  if (!op) {
    fail_lode(r, LODE_NOT_FOUND, "there is no such operation; GET /api/lode/v1 lists them");
  } else if (!lode__op_for_requests(op)) { /* the worker looks at the arguments too */
    fail_lode(r, LODE_UNSUPPORTED, "this operation works on files of the server's machine: use the command line there");
  } else {
    r->route = op->name;
    r->call = r->call_name;
    r->call_flags = !(op->flags & LODE__OP_LONG) ? 0 : op->flags & LODE__OP_READS ? LODE__CALL_LARGE : LODE__CALL_LONG;
    r->translate = from_lode;
  }
}

static void op_schema(lode__request *r) {
  const lode__op *op = op_of_words(r);
  strbuf body = {0};
  if (!op || !lode__op_for_requests(op)) {
    fail_lode(r, LODE_NOT_FOUND, "there is no such operation; GET /api/lode/v1 lists them");
    return;
  }
  put_schema(&body, op);
  lode__request_answer(r, 200, &body);
}

static void op_list(lode__request *r) {
  strbuf body = {0};
  strbuf_addf(&body, "{\"version\":\"%s\",\"operations\":[", lode_version());
  bool first = true;
  LODE__EACH_GROUP(g) {
    LODE__EACH_OP(g, op) {
      if (!lode__op_for_requests(op)) continue;
      strbuf_addf(&body, "%s{\"path\":\"/api/lode/v1/%s%s%s\",\"schema\":", first ? "" : ",", g->name ? g->name : "", g->name ? "/" : "", op->name);
      put_schema(&body, op);
      strbuf_addch(&body, '}');
      first = false;
    }
  }
  strbuf_addstr(&body, "]}");
  lode__request_answer(r, 200, &body);
}

/* ---- The map ---- */

#define V2 "/api/v2"
#define D V2 "/tenants/{}/databases/{}"
#define C D "/collections/{}"

static const route routes[] = {
    {"GET", "/", NULL, page, {0}},
    {"GET", "/ui", NULL, page, {0}},
    {"GET", "/healthz", NULL, healthz, {0}},
    {"GET", "/readyz", NULL, readyz, {0}},
    {"GET", "/metrics", NULL, metrics, {0}},
    {"POST", C "/query", "chroma.query", NULL, {0}},
    {"POST", C "/get", "chroma.get", NULL, {0}},
    {"POST", C "/add", "chroma.add", NULL, {0}},
    {"POST", C "/upsert", "chroma.upsert", NULL, {0}},
    {"POST", C "/update", "chroma.update", NULL, {0}},
    {"POST", C "/delete", "chroma.delete", NULL, {0}},
    {"GET", C "/count", "chroma.count", NULL, {0}},
    {"GET", C "/indexing_status", "chroma.indexing_status", NULL, {0}},
    {"POST", C "/search", "chroma.search", NULL, {0}},
    {"POST", C "/fork", "chroma.fork", NULL, {0}},
    {"GET", C "/fork_count", "chroma.fork_count", NULL, {0}},
    {"POST", C "/functions/attach", NULL, no_functions, {0}},
    {"GET", C "/functions/{}", NULL, no_functions, {0}},
    {"POST", C "/attached_functions/{}/detach", NULL, no_functions, {0}},
    {"GET", D "/collections/by-id/{}", "chroma.get_collection_by_id", NULL, {0}},
    {"GET", C, "chroma.get_collection", NULL, {0}},
    {"PUT", C, "chroma.update_collection", NULL, {0}},
    {"DELETE", C, "chroma.delete_collection", NULL, {0}},
    {"GET", D "/collections", "chroma.list_collections", NULL, {"limit", "offset"}},
    {"POST", D "/collections", "chroma.create_collection", NULL, {0}},
    {"GET", D "/collections_count", "chroma.count_collections", NULL, {0}},
    {"GET", D, "chroma.get_database", NULL, {0}},
    {"DELETE", D, "chroma.delete_database", NULL, {0}},
    {"GET", V2 "/tenants/{}/databases", "chroma.list_databases", NULL, {"limit", "offset"}},
    {"POST", V2 "/tenants/{}/databases", "chroma.create_database", NULL, {0}},
    {"GET", V2 "/tenants/{}", "chroma.get_tenant", NULL, {0}},
    {"POST", V2 "/tenants", "chroma.create_tenant", NULL, {0}},
    {"POST", V2 "/reset", "chroma.reset", may_reset, {0}},
    {"GET", V2 "/heartbeat", NULL, heartbeat, {0}},
    {"GET", V2, NULL, heartbeat, {0}},
    {"GET", V2 "/version", NULL, version, {0}},
    {"GET", V2 "/healthcheck", NULL, healthcheck, {0}},
    {"GET", V2 "/pre-flight-checks", NULL, preflight, {0}},
    {"GET", V2 "/auth/identity", NULL, identity, {0}},
    {"GET", "/api/lode/v1", NULL, op_list, {0}},
    {"POST", "/api/lode/v1/{}/{}", NULL, run_op, {0}},
    {"POST", "/api/lode/v1/{}", NULL, run_op, {0}},
    {"GET", "/api/lode/v1/{}/{}", NULL, op_schema, {0}},
    {"GET", "/api/lode/v1/{}", NULL, op_schema, {0}},
    {0}};

/* Does the path match? Its {} segments become words, still encoded. */
static bool matches(const char *pattern, lode_str path, lode_str *words, size_t *n_words) {
  const char *p = path.data, *end = p + path.len;
  *n_words = 0;
  while (*pattern) {
    if (pattern[0] == '{') {
      const char *slash = p < end ? memchr(p, '/', (size_t)(end - p)) : NULL;
      words[*n_words] = (lode_str){p, (size_t)((slash ? slash : end) - p)};
      if (words[*n_words].len == 0) return false;
      p += words[(*n_words)++].len;
      pattern += 2;
    } else if (p < end && *p == *pattern) {
      p++;
      pattern++;
    } else {
      return false;
    }
  }
  return p == end;
}

/* Copies of the words behind the path, where there is room for them; decoded there. */
static bool decode_words(lode__request *r) {
  size_t at = r->target.len;
  for (size_t i = 0; i < r->n_words; i++) {
    lode_str *word = &r->words[i];
    char *copy = r->target.data + at;
    memcpy(copy, word->data, word->len);
    at += word->len;
    word->data = copy;
    if (!lode__percent_decode(copy, &word->len)) return false;
  }
  return true;
}

static void take(lode__request *r, const route *at) {
  r->route = at->call ? at->call : at->pattern;
  if (!decode_words(r)) {
    lode__request_fail(r, 400, "InvalidArgumentError", "the path holds a name that is not UTF-8 in percent encoding");
    return;
  }
  for (size_t i = 0; i < 2 && at->query[i]; i++) {
    lode_str value = lode__request_query(r, at->query[i]);
    r->words[r->n_words++] = value.data ? value : STR_LIT("");
  }
  r->call = at->call;
  if (at->answer) at->answer(r);
}

static void allow(lode__request *r, const char *method) {
  size_t len = strlen(r->allow);
  if (!strstr(r->allow, method)) snprintf(r->allow + len, sizeof r->allow - len, "%s%s", len ? ", " : "", method);
}

void lode__server_route(lode__request *r) {
  lode_str path = r->path;
  if (str_eq(path, STR_LIT("/api/v1")) || (path.len > 8 && memcmp(path.data, "/api/v1/", 8) == 0)) {
    old_api(r);
    return;
  }
  if (strcmp(r->method, "OPTIONS") == 0) {
    put_text(r, 204, "");
    allow(r, "DELETE, GET, POST, PUT");
    return;
  }
  const char *method = strcmp(r->method, "HEAD") == 0 ? "GET" : r->method;
  while (path.len > 1 && path.data[path.len - 1] == '/') path.len--;
  for (const route *at = routes; at->pattern; at++) {
    if (!matches(at->pattern, path, r->words, &r->n_words)) continue;
    if (strcmp(at->method, method) == 0) {
      take(r, at);
      return;
    }
    allow(r, at->method);
  }
  if (r->allow[0]) lode__request_fail(r, 405, "MethodNotAllowedError", "this path takes %s", r->allow);
  else lode__request_fail(r, 404, "NotFoundError", "there is nothing at this path; GET /api/lode/v1 lists the operations, / is a page "
                                                  "for people");
}
