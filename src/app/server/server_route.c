/* SPDX-License-Identifier: Apache-2.0 */
/* server_route.c - maps method and path to a response or to a call of the worker.
 *
 * route_table has all routes. In a pattern {} stands for one segment, which is decoded and becomes a word of the call;
 * values of the query string that a route names become words too. The first match wins; a path that only matches with
 * another method is 405.
 */
#include "chroma/chroma.h"
#include "ops/op_schema.h"
#include "table/op_table.h"
#include "server/page.h"
#include "server/server.h"
#include "docs/docs.h"

#include "os/os.h"

typedef void route_fn(server_request *r);

typedef struct route_entry {
  const char *method, *pattern;
  const char *call;     /* call of the worker, or NULL */
  route_fn *answer;     /* responds without the worker, or NULL */
  const char *query[2]; /* names of query values that become words */
} route_entry;

/* ---- Responses without the worker ---- */

static void route_put_text(server_request *r, unsigned status, const char *text) {
  strbuf body = {0};
  strbuf_addstr(&body, text);
  server_respond(r, status, &body);
}

static void route_heartbeat(server_request *r) {
  strbuf body = {0};
  strbuf_addf(&body, "{\"nanosecond heartbeat\":%llu}", (unsigned long long)os_wall_ms() * 1000000ull);
  server_respond(r, 200, &body);
}

/* The version of Chroma's API that we implement, not ours: its clients check it. */
static void route_version(server_request *r) { route_put_text(r, 200, "\"1.0.0\""); }

static void route_identity(server_request *r) {
  route_put_text(r, 200, "{\"user_id\":\"\",\"tenant\":\"default_tenant\",\"databases\":[\"default_database\"]}");
}

static void route_preflight(server_request *r) {
  strbuf body = {0};
  size_t fits = server_get_options(r->http)->max_body / CHROMA_RECORD_BYTES;
  strbuf_addf(&body, "{\"max_batch_size\":%zu,\"supports_base64_encoding\":true}",
              fits < CHROMA_MAX_BATCH ? fits : (size_t)CHROMA_MAX_BATCH);
  server_respond(r, 200, &body);
}

static void route_healthcheck(server_request *r) {
  supervisor_stats f;
  supervisor_get_stats(server_get_supervisor(r->http), &f);
  strbuf body = {0};
  strbuf_addf(&body, "{\"is_executor_ready\":%s,\"is_log_client_ready\":%s}", f.ready ? "true" : "false",
              f.ready ? "true" : "false");
  server_respond(r, f.ready ? 200 : 503, &body);
}

static void route_healthz(server_request *r) { route_put_text(r, 200, "{\"status\":\"ok\"}"); }

static void route_readyz(server_request *r) {
  supervisor_stats f;
  supervisor_get_stats(server_get_supervisor(r->http), &f);
  route_put_text(r, f.ready ? 200 : 503,
                 f.ready ? "{\"status\":\"ready\"}" : "{\"status\":\"the worker is starting\"}");
  r->retry_later = !f.ready;
}

static void route_metrics(server_request *r) {
  supervisor_stats supervisor;
  server_stats http;
  strbuf body = {0};
  supervisor_get_stats(server_get_supervisor(r->http), &supervisor);
  server_get_stats(r->http, &http);
  server_metrics_put(server_get_metrics(r->http), &body, &http, &supervisor);
  server_respond(r, 200, &body);
  r->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void route_page(server_request *r) {
  const server_page_headers *head = server_page_headers_get();
  const char *cached = server_request_header(r, "If-None-Match");
  strbuf body = {0};
  bool same = cached && strcmp(cached, head->etag) == 0;
  if (!same) strbuf_add(&body, (const char *)server_page_bytes, server_page_size);
  server_respond(r, same ? 304 : 200, &body);
  r->type = "text/html; charset=utf-8";
  r->etag = head->etag;
  r->policy = head->policy;
}

enum { ROUTE_DOC_WIDTH = 110 };

/* The documents as plain text, as `lode help docs` shows them. */
static void route_docs(server_request *r) {
  strbuf body = {0};
  for (const docs_page *page = docs_pages; page->name; page++)
    strbuf_addf(&body, "/docs/%-16s %s\n", page->name, page->title);
  server_respond(r, 200, &body);
  r->type = "text/plain; charset=utf-8";
}

static void route_document(server_request *r) {
  const docs_page *page = docs_find(r->words[0]);
  strbuf body = {0};
  if (!page) {
    server_respond_error(r, 404, "NotFoundError", "there is no such document; /docs lists them");
    return;
  }
  docs_put_text(&body, (lode_str){(const char *)page->bytes, page->size}, false, ROUTE_DOC_WIDTH);
  server_respond(r, 200, &body);
  r->type = "text/plain; charset=utf-8";
}

static void route_old_api(server_request *r) {
  server_respond_error(r, 410, "Unimplemented", "The v1 API is deprecated. Please use /v2 apis");
}

static void route_may_reset(server_request *r) {
  if (!server_get_options(r->http)->allow_reset)
    server_respond_error(r, 403, "ChromaError", "Resetting is not allowed: start the server with --allow-reset");
}

/* ---- Operations of the table ---- */

static unsigned route_http_status(lode_status st) {
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

static void route_from_status(server_request *r, unsigned code) { r->status = route_http_status((lode_status)code); }

static void route_fail_status(server_request *r, lode_status st, const char *text) {
  lode_error err = {.status = st, .record = LODE_NO_RECORD};
  strbuf body = {0};
  snprintf(err.text, sizeof err.text, "%s", text);
  op_error_put_json(&body, &err);
  server_respond(r, route_http_status(st), &body);
}

static void route_put_schema(strbuf *out, const op_def *op) {
  op_param params[OP_MAX_PARAMS + 1];
  op_def shown;
  op_http_view(op, &shown, params);
  op_schema(out, &shown);
}

/* The operation named by the words "db", "query", or "search"; sets the name of its call. */
static const op_def *route_op_of_words(server_request *r) {
  if (r->n_words == 2)
    snprintf(r->call_name, sizeof r->call_name, "%.*s.%.*s", (int)r->words[0].len, r->words[0].data,
             (int)r->words[1].len, r->words[1].data);
  else
    snprintf(r->call_name, sizeof r->call_name, "%.*s", (int)r->words[0].len, r->words[0].data);
  return worker_op_of_call(r->call_name);
}

/* The page of `lode ui` may index the project that it shows, by a call without arguments: the worker checks that. */
static bool route_is_own_index(const server_request *r, const op_def *op) {
  return server_get_options(r->http)->own_page && !op->group && strcmp(op->name, "index") == 0;
}

static bool route_allows(const server_request *r, const op_def *op) {
  return op_allowed_over_http(op) || route_is_own_index(r, op);
}

static void route_run_op(server_request *r) {
  const op_def *op = route_op_of_words(r);
  r->words[0] = STR_LIT(WORKER_REMOTE_CALLER);
  r->n_words = 1;
  if (op && route_is_own_index(r, op)) r->words[r->n_words++] = STR_LIT(WORKER_OWN_PROJECT);
  if (!op) {
    route_fail_status(r, LODE_NOT_FOUND, "there is no such operation; GET /api/lode/v1 lists them");
  } else if (!route_allows(r, op)) { /* the worker checks the arguments too */
    route_fail_status(r, LODE_UNSUPPORTED,
                      "this operation works on files of the server's machine: use the command line there");
  } else {
    r->route = op->name;
    r->call = r->call_name;
    r->call_flags = !(op->flags & OP_LONG) ? 0 : op->flags & OP_READ_ONLY ? WIRE_CALL_LARGE : WIRE_CALL_LONG;
    r->translate = route_from_status;
  }
}

static void route_op_schema(server_request *r) {
  const op_def *op = route_op_of_words(r);
  strbuf body = {0};
  if (!op || !route_allows(r, op)) {
    route_fail_status(r, LODE_NOT_FOUND, "there is no such operation; GET /api/lode/v1 lists them");
    return;
  }
  route_put_schema(&body, op);
  server_respond(r, 200, &body);
}

static void route_op_list(server_request *r) {
  strbuf body = {0};
  strbuf_addf(&body, "{\"version\":\"%s\",\"operations\":[", lode_version());
  bool first = true;
  OP_EACH_GROUP(g) {
    OP_EACH(g, op) {
      if (!op_allowed_over_http(op)) continue;
      strbuf_addf(&body, "%s{\"path\":\"/api/lode/v1/%s%s%s\",\"schema\":", first ? "" : ",", g->name ? g->name : "",
                  g->name ? "/" : "", op->name);
      route_put_schema(&body, op);
      strbuf_addch(&body, '}');
      first = false;
    }
  }
  strbuf_addstr(&body, "]}");
  server_respond(r, 200, &body);
}

static void route_progress(server_request *r) {
  strbuf body = {0};
  if (server_put_progress(r, r->words[0], &body))
    server_respond(r, 200, &body);
  else
    route_fail_status(r, LODE_NOT_FOUND, "no long call of yours with this X-Request-Id is being answered");
}

/* ---- Routes ---- */

#define ROUTE_V2 "/api/v2"
#define ROUTE_DATABASE ROUTE_V2 "/tenants/{}/databases/{}"
#define ROUTE_COLLECTION ROUTE_DATABASE "/collections/{}"

static const route_entry route_table[] = {
    {"GET", "/", NULL, route_page, {0}},
    {"GET", "/ui", NULL, route_page, {0}},
    {"GET", "/docs", NULL, route_docs, {0}},
    {"GET", "/docs/{}", NULL, route_document, {0}},
    {"GET", "/healthz", NULL, route_healthz, {0}},
    {"GET", "/readyz", NULL, route_readyz, {0}},
    {"GET", "/metrics", NULL, route_metrics, {0}},
    {"POST", ROUTE_COLLECTION "/query", "chroma.query", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/get", "chroma.get", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/add", "chroma.add", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/upsert", "chroma.upsert", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/update", "chroma.update", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/delete", "chroma.delete", NULL, {0}},
    {"GET", ROUTE_COLLECTION "/count", "chroma.count", NULL, {"read_level"}},
    {"GET", ROUTE_COLLECTION "/indexing_status", "chroma.indexing_status", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/search", "chroma.search", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/fork", "chroma.fork", NULL, {0}},
    {"GET", ROUTE_COLLECTION "/fork_count", "chroma.fork_count", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/functions/attach", "chroma.attach_function", NULL, {0}},
    {"GET", ROUTE_COLLECTION "/functions/{}", "chroma.get_function", NULL, {0}},
    {"POST", ROUTE_COLLECTION "/attached_functions/{}/detach", "chroma.detach_function", NULL, {0}},
    {"GET", ROUTE_DATABASE "/collections/by-id/{}", "chroma.get_collection_by_id", NULL, {0}},
    {"GET", ROUTE_COLLECTION, "chroma.get_collection", NULL, {0}},
    {"PUT", ROUTE_COLLECTION, "chroma.update_collection", NULL, {0}},
    {"DELETE", ROUTE_COLLECTION, "chroma.delete_collection", NULL, {0}},
    {"GET", ROUTE_DATABASE "/collections", "chroma.list_collections", NULL, {"limit", "offset"}},
    {"POST", ROUTE_DATABASE "/collections", "chroma.create_collection", NULL, {0}},
    {"GET", ROUTE_DATABASE "/collections_count", "chroma.count_collections", NULL, {0}},
    {"GET", ROUTE_DATABASE, "chroma.get_database", NULL, {0}},
    {"DELETE", ROUTE_DATABASE, "chroma.delete_database", NULL, {0}},
    {"GET", ROUTE_V2 "/tenants/{}/databases", "chroma.list_databases", NULL, {"limit", "offset"}},
    {"POST", ROUTE_V2 "/tenants/{}/databases", "chroma.create_database", NULL, {0}},
    {"GET", ROUTE_V2 "/tenants/{}", "chroma.get_tenant", NULL, {0}},
    {"PATCH", ROUTE_V2 "/tenants/{}", "chroma.update_tenant", NULL, {0}},
    {"POST", ROUTE_V2 "/tenants", "chroma.create_tenant", NULL, {0}},
    {"POST", ROUTE_V2 "/reset", "chroma.reset", route_may_reset, {0}},
    {"GET", ROUTE_V2 "/heartbeat", NULL, route_heartbeat, {0}},
    {"GET", ROUTE_V2, NULL, route_heartbeat, {0}},
    {"GET", ROUTE_V2 "/version", NULL, route_version, {0}},
    {"GET", ROUTE_V2 "/healthcheck", NULL, route_healthcheck, {0}},
    {"GET", ROUTE_V2 "/pre-flight-checks", NULL, route_preflight, {0}},
    {"GET", ROUTE_V2 "/auth/identity", NULL, route_identity, {0}},
    {"GET", "/api/lode/v1", NULL, route_op_list, {0}},
    {"POST", "/api/lode/v1/{}/{}", NULL, route_run_op, {0}},
    {"POST", "/api/lode/v1/{}", NULL, route_run_op, {0}},
    {"GET", "/api/lode/v1/progress/{}", NULL, route_progress, {0}},
    {"GET", "/api/lode/v1/{}/{}", NULL, route_op_schema, {0}},
    {"GET", "/api/lode/v1/{}", NULL, route_op_schema, {0}},
    {0}};

/* Does the path match? Its {} segments become words, not decoded yet. */
static bool route_matches(const char *pattern, lode_str path, lode_str *words, size_t *n_words) {
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

/* Copies the words to the reserved space after the path, and decodes them there. */
static bool route_decode_words(server_request *r) {
  size_t at = r->target.len;
  for (size_t i = 0; i < r->n_words; i++) {
    lode_str *word = &r->words[i];
    char *copy = r->target.data + at;
    memcpy(copy, word->data, word->len);
    at += word->len;
    word->data = copy;
    if (!server_percent_decode(copy, &word->len)) return false;
  }
  return true;
}

static void route_take(server_request *r, const route_entry *at) {
  r->route = at->call ? at->call : at->pattern;
  if (!route_decode_words(r)) {
    server_respond_error(r, 400, "InvalidArgumentError", "the path holds a name that is not UTF-8 in percent encoding");
    return;
  }
  for (size_t i = 0; i < 2 && at->query[i]; i++) {
    lode_str value = server_query_param(r, at->query[i]);
    if (value.data && !value.len) {
      server_respond_error(r, 400, "InvalidArgumentError", "a value of the query string is empty");
      return;
    }
    r->words[r->n_words++] = value.data ? value : STR_LIT("");
  }
  r->call = at->call;
  if (at->answer) at->answer(r);
}

static void route_allow_method(server_request *r, const char *method) {
  size_t len = strlen(r->allow);
  if (!strstr(r->allow, method)) snprintf(r->allow + len, sizeof r->allow - len, "%s%s", len ? ", " : "", method);
}

void server_route(server_request *r) {
  lode_str path = r->path;
  if (str_eq(path, STR_LIT("/api/v1")) || (path.len > 8 && memcmp(path.data, "/api/v1/", 8) == 0)) {
    route_old_api(r);
    return;
  }
  if (strcmp(r->method, "OPTIONS") == 0) {
    route_put_text(r, 204, "");
    route_allow_method(r, "DELETE, GET, PATCH, POST, PUT");
    return;
  }
  const char *method = strcmp(r->method, "HEAD") == 0 ? "GET" : r->method;
  while (path.len > 1 && path.data[path.len - 1] == '/') path.len--;
  for (const route_entry *at = route_table; at->pattern; at++) {
    if (!route_matches(at->pattern, path, r->words, &r->n_words)) continue;
    if (strcmp(at->method, method) == 0) {
      route_take(r, at);
      return;
    }
    route_allow_method(r, at->method);
  }
  if (r->allow[0])
    server_respond_error(r, 405, "MethodNotAllowedError", "this path takes %s", r->allow);
  else
    server_respond_error(r, 404, "NotFoundError",
                         "there is nothing at this path; GET /api/lode/v1 lists the operations, / is a page "
                         "for people");
}
