/* SPDX-License-Identifier: Apache-2.0 */
/* server_request.c - requests: read, checked, routed, called, answered.
 *
 * States of a request: REQUEST_OPEN (being read), REQUEST_CALLED (its connection is suspended, the supervisor has it),
 * REQUEST_READY (to be answered).
 */
#include "server/server_internal.h"
#include "ops/op_args.h"

#include "os/os.h"

#include <strings.h>

enum { REQUEST_OPEN, REQUEST_CALLED, REQUEST_READY };

/* ---- Responses ---- */

void server_respond(server_request *r, unsigned status, strbuf *body) {
  mem_free(r->answer);
  r->status = body->failed ? 503 : status;
  r->answer = body->failed ? NULL : body->data;
  r->answer_size = body->failed ? 0 : body->len;
  if (body->failed) strbuf_release(body);
  *body = (strbuf){0};
  r->answered = true;
}

void server_respond_error(server_request *r, unsigned status, const char *name, const char *format, ...) {
  char text[1000];
  strbuf body = {0};
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  strbuf_addstr(&body, "{\"error\":");
  json_put_string(&body, str_of(name));
  strbuf_addstr(&body, ",\"message\":");
  json_put_string(&body, str_of(text));
  strbuf_addch(&body, '}');
  server_respond(r, status, &body);
}

const char *server_request_header(const server_request *r, const char *name) {
  return server_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

lode_str server_query_param(const server_request *r, const char *name) {
  return str_of(server_mhd.lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name));
}

static void response_add_header(struct MHD_Response *response, const char *name, const char *value) {
  /* fails only for lack of memory: then the header is missing */
  (void)server_mhd.add_response_header(response, name, value);
}

static void request_log(server_request *r, uint64_t ns) {
  server_state *h = r->http;
  if (h->options.log == SERVER_LOG_NOTHING || (h->options.log == SERVER_LOG_ERRORS && r->status < 500)) return;
  server_log_line(h, "%s %s %.*s %u %zu bytes in, %zu out, %.3f ms", r->id, r->method,
                  (int)(r->path.len < 300 ? r->path.len : 300), r->path.data, r->status, r->body.len, r->answer_size,
                  (double)ns / 1e6);
}

static enum MHD_Result request_send_response(server_request *r) {
  server_state *h = r->http;
  uint64_t ns = os_api->now_ns() - r->started_ns;
  const char *origin = server_mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Origin");
  struct MHD_Response *response =
      r->answer ? server_mhd.create_response_from_buffer_with_free_callback(r->answer_size, r->answer, mem_free)
                : server_mhd.create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  r->answer = NULL; /* owned by the response */
  if (r->answer_size || r->type) response_add_header(response, "Content-Type", r->type ? r->type : "application/json");
  response_add_header(response, "X-Request-Id", r->id);
  if (r->status >= 400) response_add_header(response, "chroma-trace-id", r->id); /* Chroma's clients show it */
  response_add_header(response, "X-Content-Type-Options", "nosniff");
  response_add_header(response, "Cache-Control", r->etag ? "no-cache" : "no-store");
  if (r->etag) response_add_header(response, "ETag", r->etag);
  if (r->policy) {
    response_add_header(response, "Content-Security-Policy", r->policy);
    response_add_header(response, "Referrer-Policy", "no-referrer");
  }
  if (r->allow[0]) response_add_header(response, "Allow", r->allow);
  if (r->retry_later) response_add_header(response, "Retry-After", "1");
  if (r->status == 401) response_add_header(response, "WWW-Authenticate", "Bearer");
  if (origin && r->status != 403) {
    response_add_header(response, "Access-Control-Allow-Origin", origin);
    response_add_header(response, "Vary", "Origin");
    response_add_header(response, "Access-Control-Allow-Headers",
                        "authorization, content-type, x-chroma-token, x-request-id");
    response_add_header(response, "Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE");
  }
  if (h->draining || r->last) response_add_header(response, "Connection", "close");
  server_metrics_record(h->metrics, r, ns);
  request_log(r, ns);
  pthread_mutex_lock(&h->lock);
  if (r->conn_slot) server_conn_wait_reader(h, r->conn_slot, r->answer_size);
  pthread_mutex_unlock(&h->lock);
  enum MHD_Result queued = server_mhd.queue_response(r->connection, r->status, response);
  server_mhd.destroy_response(response);
  return queued;
}

/* ---- Calls ---- */

/* A long call whose client chose its id is watched: the client can ask how far it is. */
static void request_watch(server_request *r) {
  server_state *h = r->http;
  if (!(r->call_flags & (WIRE_CALL_LONG | WIRE_CALL_LARGE)) || !server_request_header(r, "X-Request-Id")) return;
  r->call_flags |= WIRE_CALL_PROGRESS;
  r->watched = true;
  pthread_mutex_lock(&h->lock);
  r->next_watched = h->watched;
  h->watched = r;
  pthread_mutex_unlock(&h->lock);
}

static void request_unwatch(server_request *r) {
  server_state *h = r->http;
  if (!r->watched) return;
  pthread_mutex_lock(&h->lock);
  server_request **at = &h->watched;
  while (*at != r) at = &(*at)->next_watched;
  *at = r->next_watched;
  pthread_mutex_unlock(&h->lock);
  r->watched = false;
}

static void request_on_progress(void *ctx, lode_str phase, uint64_t done, uint64_t total) {
  server_request *r = ctx;
  pthread_mutex_lock(&r->http->lock);
  snprintf(r->phase, sizeof r->phase, "%.*s", (int)phase.len, phase.data);
  r->phase_done = done;
  r->phase_total = total;
  pthread_mutex_unlock(&r->http->lock);
}

bool server_put_progress(const server_request *request, lode_str id, strbuf *out) {
  server_state *h = request->http;
  pthread_mutex_lock(&h->lock);
  const server_request *r = h->watched;
  while (r && !(str_eq(str_of(r->id), id) && r->conn_slot && request->conn_slot &&
                r->conn_slot->client == request->conn_slot->client))
    r = r->next_watched;
  if (r) {
    strbuf_addstr(out, "{\"phase\":");
    json_put_string(out, str_of(r->phase));
    strbuf_addf(out, ",\"done\":%llu,\"total\":%llu}", (unsigned long long)r->phase_done,
                (unsigned long long)r->phase_total);
  }
  pthread_mutex_unlock(&h->lock);
  return r != NULL;
}

static void request_on_done(void *ctx, supervisor_reply *answer) {
  server_request *r = ctx;
  request_unwatch(r);
  if (answer->end == SUPERVISOR_ANSWERED) {
    r->status = answer->code;
    mem_free(r->answer);
    r->answer = answer->body;
    r->answer_size = answer->size;
    r->answered = true;
    answer->body = NULL;
    if (r->translate) r->translate(r, answer->code);
  } else if (answer->end == SUPERVISOR_WORKER_DIED) {
    server_respond_error(r, 500, "InternalError", "%s", answer->text);
  } else if (answer->end == SUPERVISOR_TIMED_OUT) {
    server_respond_error(r, 408, "TimeoutError", "%s", answer->text);
  } else {
    server_respond_error(r, 503, "UnavailableError", "%s", answer->text);
    r->retry_later = true;
  }
  r->waiting = REQUEST_READY;
  server_mhd.resume_connection(r->connection);
}

static void request_call(server_request *r) {
  lode_error err = {.record = LODE_NO_RECORD};
  request_watch(r);
  bool patient = r->watched && r->http->options.own_page; /* a person looks on, and can end it */
  supervisor_call call = {.name = r->call,
                          .words = r->words,
                          .n_words = r->n_words,
                          .body = {r->body.data, r->body.len},
                          .flags = r->call_flags,
                          .client = r->conn_slot ? r->conn_slot->client : 0,
                          .timeout_ms = patient ? UINT32_MAX : 0,
                          .progress = r->watched ? request_on_progress : NULL,
                          .done = request_on_done,
                          .ctx = r};
  r->waiting = REQUEST_CALLED;
  server_mhd.suspend_connection(r->connection); /* before the call, which may be done at once */
  /* The slot is freed under this lock. The call may be done at once, and then r no longer exists. */
  pthread_mutex_t *lock = &r->http->lock;
  pthread_mutex_lock(lock);
  lode_status st = supervisor_submit(r->http->supervisor, &call, r->conn_slot ? &r->conn_slot->call : NULL, &err);
  pthread_mutex_unlock(lock);
  if (st == LODE_OK) return;
  request_unwatch(r);
  r->retry_later = st != LODE_INVALID;
  server_respond_error(r,
                       st == LODE_INVALID ? 400
                       : st == LODE_LIMIT ? 429
                                          : 503,
                       st == LODE_INVALID ? "InvalidArgumentError"
                       : st == LODE_LIMIT ? "RateLimitError"
                                          : "UnavailableError",
                       "%s", err.text);
  r->waiting = REQUEST_READY;
  server_mhd.resume_connection(r->connection);
}

/* ---- Requests ---- */

static void request_set_id(server_request *r) {
  const char *given = server_request_header(r, "X-Request-Id");
  size_t n = 0;
  for (; given && given[n] && n < sizeof r->id; n++) {
    char c = given[n];
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-' && c != '_') break;
  }
  if (n && n < sizeof r->id && !given[n])
    memcpy(r->id, given, n + 1);
  else
    snprintf(r->id, sizeof r->id, "%08x-%llx", r->http->salt,
             (unsigned long long)atomic_fetch_add(&r->http->serial, 1));
}

static bool request_token_given(const server_request *r) {
  const char *bearer = server_request_header(r, "Authorization"), *chroma = server_request_header(r, "X-Chroma-Token");
  lode_str token = r->http->options.token;
  if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 && server_token_matches(token, str_of(bearer + 7))) return true;
  if (chroma && strncasecmp(chroma, "Bearer ", 7) == 0) chroma += 7;
  return chroma && server_token_matches(token, str_of(chroma));
}

/* Paths that reveal nothing about the store: the probes, the documents, and the page, which asks for the token. */
static bool request_is_public(const server_request *r) {
  static const char *const paths[] = {"/healthz", "/readyz", "/", "/ui", "/ui/", "/docs"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (str_eq(r->path, str_of(paths[i]))) return true;
  return r->path.len > 6 && memcmp(r->path.data, "/docs/", 6) == 0;
}

static bool request_token_missing(const server_request *r) {
  const server_options *o = &r->http->options;
  const server_conn_slot *s = r->conn_slot;
  if (o->own_user ? s && s->own_user : !o->token.data) return false;
  return strcmp(r->method, "OPTIONS") != 0 && !request_is_public(r) && !(o->token.data && request_token_given(r));
}

/* Some headers may come only once: a proxy in front of us may use the other one, and see requests where we see a
 * body. The same applies to names with spaces and to continued lines, which libmicrohttpd refuses from 1.0 on.
 * Earlier versions build a wrong name for a continued line, in other memory; all other headers stay where they were
 * received, name and value on one line, which is how they are distinguished. */
typedef struct header_framing {
  unsigned hosts, lengths, encodings;
  bool strict; /* libmicrohttpd refuses them itself */
  bool malformed, unknown_encoding;
} header_framing;

static enum MHD_Result header_count(void *cls, enum MHD_ValueKind kind, const char *name, const char *value) {
  header_framing *f = cls;
  (void)kind;
  f->malformed = f->malformed || !server_is_header_name(name) || (!f->strict && !server_is_one_line(name, value));
  if (strcasecmp(name, "Transfer-Encoding") == 0)
    f->unknown_encoding = f->unknown_encoding || !value || strcasecmp(value, "chunked") != 0;
  f->hosts += strcasecmp(name, "Host") == 0;
  f->lengths += strcasecmp(name, "Content-Length") == 0;
  f->encodings += strcasecmp(name, "Transfer-Encoding") == 0;
  return MHD_YES;
}

/* What is wrong with the headers, or with the trailers of a chunked body; NULL: nothing. */
static const char *header_misframed(server_request *r, enum MHD_ValueKind kind) {
  header_framing f = {.strict = server_mhd.get_version()[0] != '0'};
  (void)server_mhd.get_connection_values(r->connection, kind, header_count, &f);
  if (kind == MHD_HEADER_KIND) r->chunked = f.encodings != 0;
  if (f.malformed) return "a header has a space in its name, or is continued on the next line";
  if (f.unknown_encoding) return "Transfer-Encoding can only be chunked";
  return f.hosts > 1 || f.lengths + f.encodings > 1 ? "Host, and Content-Length or Transfer-Encoding, must come once"
                                                    : NULL;
}

static bool request_well_framed(server_request *r, enum MHD_ValueKind kind) {
  const char *wrong = header_misframed(r, kind);
  if (!wrong) return true;
  server_respond_error(r, 400, "InvalidArgumentError", "%s", wrong);
  r->last = true;
  return false;
}

/* Checks a request before its body is read. */
static void request_guard(server_request *r) {
  const server_options *o = &r->http->options;
  const char *host = server_request_header(r, "Host"), *origin = server_request_header(r, "Origin"),
             *length = server_request_header(r, "Content-Length");
  uint64_t bytes = 0;
  if (!request_well_framed(r, MHD_HEADER_KIND)) return;
  if (!server_host_allowed(o, host))
    server_respond_error(r, 403, "ForbiddenError",
                         "this server does not answer to the name in Host; --allow-host NAME makes it");
  else if (!server_origin_allowed(o, origin, host))
    server_respond_error(r, 403, "ForbiddenError",
                         "pages from this Origin may not use this server; --allow-origin ORIGIN lets them");
  else if (r->http->draining) {
    server_respond_error(r, 503, "UnavailableError", "the server is stopping");
    r->retry_later = true;
  } else if (request_token_missing(r) && o->token.data)
    server_respond_error(r, 401, "AuthError",
                         "a token is needed: Authorization: Bearer TOKEN, or X-Chroma-Token: TOKEN");
  else if (request_token_missing(r))
    server_respond_error(
        r, 401, "AuthError",
        "this server is for connections of its own user, and has no token for others: lode serve --token or "
        "--token-file FILE gives it one");
  else if (length && (!op_parse_uint(str_of(length), &bytes) || bytes > o->max_body))
    server_respond_error(r, 413, "PayloadTooLargeError",
                         "the body is longer than %zu bytes; --max-body sets that limit", o->max_body);
}

static server_request *request_begin(server_state *h, struct MHD_Connection *connection, const char *url,
                                     const char *method) {
  server_request *r = mem_calloc(1, sizeof *r);
  if (!r) return NULL;
  r->http = h;
  r->connection = connection;
  r->started_ns = os_api->now_ns();
  snprintf(r->method, sizeof r->method, "%s", method);
  strbuf_add(&r->target, url, strlen(url));
  if (!strbuf_reserve(&r->target, strlen(url))) { /* space for the decoded words */
    strbuf_release(&r->target);
    mem_free(r);
    return NULL;
  }
  r->path = (lode_str){r->target.data, r->target.len};
  const union MHD_ConnectionInfo *info = server_mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  r->conn_slot = info ? info->socket_context : NULL;
  request_set_id(r);
  const char *length = server_request_header(r, "Content-Length");
  uint64_t bytes = 0;
  if (length && !op_parse_uint(str_of(length), &bytes)) bytes = 0; /* libmicrohttpd refuses it */
  pthread_mutex_lock(&h->lock);
  h->stats.requests++;
  if (r->conn_slot)
    server_conn_set_deadline(r->conn_slot, h->options.wait_s * 1000ull +
                                               (bytes < h->options.max_body ? bytes : 0) * 1000 / SERVER_MIN_BODY_RATE);
  pthread_mutex_unlock(&h->lock);
  request_guard(r);
  return r;
}

static void request_add_body(server_request *r, const char *data, size_t size) {
  if (r->answered) return; /* already refused: the rest is read and dropped */
  if (r->body.len + size > r->http->options.max_body) {
    strbuf_release(&r->body);
    server_respond_error(r, 413, "PayloadTooLargeError",
                         "the body is longer than %zu bytes; --max-body sets that limit", r->http->options.max_body);
    return;
  }
  strbuf_add(&r->body, data, size);
  if (r->body.failed) {
    strbuf_release(&r->body);
    server_respond_error(r, 503, "UnavailableError", "out of memory");
  }
}

enum MHD_Result server_on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **context) {
  server_request *r = *context;
  (void)version;
  if (!r) {
    r = request_begin(cls, connection, url, method);
    *context = r;
    if (!r) return MHD_NO;
    /* refusing a body unread ends the connection */
    return r->answered ? request_send_response(r) : MHD_YES;
  }
  if (*size) {
    request_add_body(r, data, *size);
    *size = 0;
    return MHD_YES;
  }
  if (r->waiting == REQUEST_OPEN && !r->answered && (!r->chunked || request_well_framed(r, MHD_FOOTER_KIND))) {
    pthread_mutex_lock(&r->http->lock);
    if (r->conn_slot) r->conn_slot->working = true;
    pthread_mutex_unlock(&r->http->lock);
    server_route(r);
    if (!r->answered) {
      request_call(r);
      return MHD_YES;
    }
  }
  return request_send_response(r);
}

void server_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code) {
  server_state *h = cls;
  server_request *r = *context;
  (void)connection;
  (void)code;
  if (!r) return;
  pthread_mutex_lock(&h->lock);
  h->stats.requests--;
  if (r->conn_slot && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
    server_conn_set_deadline(r->conn_slot, h->options.wait_s * 1000ull);
  pthread_mutex_unlock(&h->lock);
  mem_free(r->answer);
  strbuf_release(&r->target);
  strbuf_release(&r->body);
  mem_free(r);
  *context = NULL;
}
