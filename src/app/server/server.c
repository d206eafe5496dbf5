/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - connections and requests over libmicrohttpd. See server.h.
 *
 * Each connection has a server_conn_slot in one list, which says what it waits for and since when. `lock` guards the
 * slots and the statistics, nothing else. The reaper thread shuts down sockets that take too long to send a request,
 * and those whose client does not read its response: the number of bytes in the kernel's send queue does not change,
 * or the response takes too long as a whole. When nearly all slots are taken, the connection that has waited longest
 * is shut down, so that slow clients cannot keep others out. The reaper also polls the sockets of suspended
 * connections, which libmicrohttpd does not: the call of a client that hung up is cancelled.
 *
 * States of a request: REQUEST_OPEN (being read), REQUEST_CALLED (its connection is suspended, the supervisor has it),
 * REQUEST_READY (to be answered).
 */
#include "server/server.h"
#include "ops/op_args.h"
#include "server/mhd.h"
#include "server/peer.h"

#include "os/os.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_NS_PER_MS 1000000ull
enum { REQUEST_OPEN, REQUEST_CALLED, REQUEST_READY };
enum { SERVER_SPARE_SLOTS = 16, SERVER_MIN_BODY_RATE = 64 << 10 /* bytes per second */, SERVER_CONN_BYTES = 64 << 10 };
enum { SERVER_MAX_CANCELS = 64, SERVER_REAP_MS = 200 };

typedef struct server_conn_slot server_conn_slot;
struct server_conn_slot {
  int fd;
  bool working;   /* a complete request is being processed: no deadline */
  bool answering; /* a response is being sent */
  int unread;     /* bytes of the response in the send queue at the last look */
  bool shut;
  uint64_t client; /* the same for all connections from one address and, if known, one user */
  bool own_user;   /* the other end belongs to our user; determined before the first byte is read */
  uint64_t call;   /* the supervisor's call, while working; 0: none, or cancelled */
  uint64_t since_ns, until_ns;
  server_conn_slot *before, *after;
};

struct server_state {
  server_options options;
  supervisor_state *supervisor;
  server_metrics *metrics;
  struct MHD_Daemon *daemon;
  int listener; /* -1: none, or the daemon's */
  uint16_t port;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  pthread_t reaper;
  bool reaping, stopping;
  bool cancelling; /* the reaper is cancelling calls without the lock: the supervisor must stay */
  atomic_bool draining;
  server_conn_slot *conn_slots;
  server_stats stats;
  atomic_ullong serial;
  uint32_t salt;
};

const server_options *server_get_options(const server_state *h) { return &h->options; }
supervisor_state *server_get_supervisor(const server_state *h) { return h->supervisor; }
server_metrics *server_get_metrics(server_state *h) { return h->metrics; }
uint16_t server_get_port(const server_state *h) { return h->port; }

void server_get_stats(server_state *h, server_stats *stats) {
  pthread_mutex_lock(&h->lock);
  *stats = h->stats;
  pthread_mutex_unlock(&h->lock);
}

static void server_log_line(server_state *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void server_log_line(server_state *h, const char *format, ...) {
  char line[1000];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  h->options.say(h->options.say_ctx, line);
}

/* ---- Connections ---- */

/* Caller holds the lock. Gives the connection `ms` for its next step. */
static void conn_set_deadline(server_conn_slot *s, uint64_t ms) {
  s->working = s->answering = false;
  s->call = 0;
  s->since_ns = os_api->now_ns();
  s->until_ns = s->since_ns + ms * SERVER_NS_PER_MS;
}

/* Caller holds the lock. The client must read a response of this size. */
static void wait_for_reader(const server_state *h, server_conn_slot *s, uint64_t bytes) {
  conn_set_deadline(s, h->options.wait_s * 1000ull + bytes * 1000 / SERVER_MIN_BODY_RATE);
  s->answering = true;
  s->unread = 0;
}

/* The client is not late if the send queue is empty, or changes. */
static bool is_late(const server_state *h, server_conn_slot *s, uint64_t now) {
  int unread = 0;
  if (now >= s->until_ns) return true;
  if (!s->answering || ioctl(s->fd, TIOCOUTQ, &unread) != 0) return false;
  if (unread == 0 || unread != s->unread) s->since_ns = now;
  s->unread = unread;
  return now - s->since_ns >= h->options.wait_s * 1000 * SERVER_NS_PER_MS;
}

static void conn_shut(server_state *h, server_conn_slot *s) {
  if (s->shut) return;
  s->shut = true;
  h->stats.reaped++;
  shutdown(s->fd, SHUT_RDWR); /* libmicrohttpd sees the end of the stream and closes it */
}

static void conn_evict(server_state *h) {
  server_conn_slot *oldest = NULL;
  if (h->stats.connections + SERVER_SPARE_SLOTS < h->options.max_connections) return;
  for (server_conn_slot *s = h->conn_slots; s; s = s->after)
    if (!s->working && !s->shut && (!oldest || s->since_ns < oldest->since_ns)) oldest = s;
  if (oldest) conn_shut(h, oldest);
}

/* Called once, when the connection is accepted: its user cannot change. Called without the lock, because it asks the
 * kernel. */
static bool conn_is_own_user(const server_state *h, int fd) {
  uid_t uid;
  return h->options.own_user && server_peer_uid(fd, &uid) && uid == geteuid();
}

/* Never 0, which means no client. */
static uint64_t conn_client_id(int fd, bool own_user) {
  struct sockaddr_storage peer;
  struct in6_addr address = {0};
  socklen_t size = sizeof peer;
  if (fd >= 0 && getpeername(fd, (struct sockaddr *)&peer, &size) == 0) {
    if (peer.ss_family == AF_INET)
      memcpy(&address, &((struct sockaddr_in *)&peer)->sin_addr, 4);
    else if (peer.ss_family == AF_INET6)
      address = ((struct sockaddr_in6 *)&peer)->sin6_addr;
  }
  return (hash_bytes(&address, sizeof address) ^ own_user) | 1ull << 63;
}

static void mhd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode what) {
  server_state *h = cls;
  server_conn_slot *s = *context;
  const union MHD_ConnectionInfo *info = server_mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  int fd = info ? info->connect_fd : -1;
  bool own_user = what == MHD_CONNECTION_NOTIFY_STARTED && conn_is_own_user(h, fd);
  pthread_mutex_lock(&h->lock);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    conn_evict(h);
    s = mem_calloc(1, sizeof *s);
    *context = s;
    if (s) {
      int one = 1;
      s->fd = fd;
      s->own_user = own_user;
      s->client = conn_client_id(fd, own_user);
      setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      conn_set_deadline(s, h->options.wait_s * 1000ull);
      s->after = h->conn_slots;
      if (s->after) s->after->before = s;
      h->conn_slots = s;
      h->stats.connections++;
    }
  } else if (s) {
    if (s->before)
      s->before->after = s->after;
    else
      h->conn_slots = s->after;
    if (s->after) s->after->before = s->before;
    h->stats.connections--;
    mem_free(s);
    *context = NULL;
  }
  pthread_mutex_unlock(&h->lock);
}

/* Caller holds the lock. The calls of clients that have hung up, at most `max`; each is returned once. */
static size_t conn_find_hung_up(server_state *h, uint64_t *calls, size_t max) {
  size_t n = 0;
  for (server_conn_slot *s = h->conn_slots; s && n < max; s = s->after) {
    struct pollfd fd = {.fd = s->fd, .events = POLLRDHUP};
    if (!s->working || !s->call || poll(&fd, 1, 0) <= 0) continue;
    calls[n++] = s->call;
    s->call = 0;
  }
  h->stats.hung_up += n;
  return n;
}

static void *conn_reaper(void *ctx) {
  server_state *h = ctx;
  pthread_mutex_lock(&h->lock);
  while (!h->stopping) {
    uint64_t now = os_api->now_ns(), gone[SERVER_MAX_CANCELS];
    for (server_conn_slot *s = h->conn_slots; s; s = s->after)
      if (!s->working && !s->shut && is_late(h, s, now)) conn_shut(h, s);
    size_t n = h->draining ? 0 : conn_find_hung_up(h, gone, SERVER_MAX_CANCELS);
    if (n) {
      h->cancelling = true;
      pthread_mutex_unlock(&h->lock);
      for (size_t i = 0; i < n; i++) supervisor_cancel(h->supervisor, gone[i]);
      pthread_mutex_lock(&h->lock);
      h->cancelling = false;
      pthread_cond_broadcast(&h->wake);
    }
    if (h->stopping) break;
    struct timespec until = os_deadline(SERVER_REAP_MS);
    pthread_cond_timedwait(&h->wake, &h->lock, &until);
  }
  pthread_mutex_unlock(&h->lock);
  return NULL;
}

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
    response_add_header(response, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
  }
  if (h->draining || r->last) response_add_header(response, "Connection", "close");
  server_metrics_record(h->metrics, r->route ? r->route : "other", r->status, ns, r->body.len, r->answer_size);
  request_log(r, ns);
  pthread_mutex_lock(&h->lock);
  if (r->conn_slot) wait_for_reader(h, r->conn_slot, r->answer_size);
  pthread_mutex_unlock(&h->lock);
  enum MHD_Result queued = server_mhd.queue_response(r->connection, r->status, response);
  server_mhd.destroy_response(response);
  return queued;
}

/* ---- Calls ---- */

static void request_on_done(void *ctx, supervisor_reply *answer) {
  server_request *r = ctx;
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
  supervisor_call call = {.name = r->call,
                          .words = r->words,
                          .n_words = r->n_words,
                          .body = {r->body.data, r->body.len},
                          .flags = r->call_flags,
                          .client = r->conn_slot ? ((server_conn_slot *)r->conn_slot)->client : 0,
                          .done = request_on_done,
                          .ctx = r};
  r->waiting = REQUEST_CALLED;
  server_mhd.suspend_connection(r->connection); /* before the call, which may be done at once */
  /* The slot is freed under this lock. The call may be done at once, and then r no longer exists. */
  pthread_mutex_t *lock = &r->http->lock;
  pthread_mutex_lock(lock);
  lode_status st = supervisor_submit(r->http->supervisor, &call,
                                     r->conn_slot ? &((server_conn_slot *)r->conn_slot)->call : NULL, &err);
  pthread_mutex_unlock(lock);
  if (st == LODE_OK) return;
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

static const char *request_header(const server_request *r, const char *name) { return server_request_header(r, name); }

static void request_set_id(server_request *r) {
  const char *given = request_header(r, "X-Request-Id");
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
  const char *bearer = request_header(r, "Authorization"), *chroma = request_header(r, "X-Chroma-Token");
  lode_str token = r->http->options.token;
  if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 && server_token_matches(token, str_of(bearer + 7))) return true;
  if (chroma && strncasecmp(chroma, "Bearer ", 7) == 0) chroma += 7;
  return chroma && server_token_matches(token, str_of(chroma));
}

/* Paths that reveal nothing about the store: the probes, and the page, which asks for the token. */
static bool request_is_public(const server_request *r) {
  static const char *const paths[] = {"/healthz", "/readyz", "/", "/ui", "/ui/"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (str_eq(r->path, str_of(paths[i]))) return true;
  return false;
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
  const char *host = request_header(r, "Host"), *origin = request_header(r, "Origin"),
             *length = request_header(r, "Content-Length");
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
  const char *length = request_header(r, "Content-Length");
  uint64_t bytes = 0;
  if (length && !op_parse_uint(str_of(length), &bytes)) bytes = 0; /* libmicrohttpd refuses it */
  pthread_mutex_lock(&h->lock);
  h->stats.requests++;
  if (r->conn_slot)
    conn_set_deadline(r->conn_slot, h->options.wait_s * 1000ull +
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

static enum MHD_Result mhd_on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
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
    if (r->conn_slot) ((server_conn_slot *)r->conn_slot)->working = true;
    pthread_mutex_unlock(&r->http->lock);
    server_route(r);
    if (!r->answered) {
      request_call(r);
      return MHD_YES;
    }
  }
  return request_send_response(r);
}

static void mhd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                             enum MHD_RequestTerminationCode code) {
  server_state *h = cls;
  server_request *r = *context;
  (void)connection;
  (void)code;
  if (!r) return;
  pthread_mutex_lock(&h->lock);
  h->stats.requests--;
  if (r->conn_slot && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
    conn_set_deadline(r->conn_slot, h->options.wait_s * 1000ull);
  pthread_mutex_unlock(&h->lock);
  mem_free(r->answer);
  strbuf_release(&r->target);
  strbuf_release(&r->body);
  mem_free(r);
  *context = NULL;
}

/* We decode paths ourselves, segment by segment: a name may contain %2F. */
static size_t mhd_keep_escapes(void *cls, struct MHD_Connection *connection, char *text) {
  (void)cls;
  (void)connection;
  return strlen(text);
}

static void mhd_on_notice(void *cls, const char *format, va_list list) {
  char line[400];
  int n = vsnprintf(line, sizeof line, format, list);
  while (n > 0 && n < (int)sizeof line && line[n - 1] == '\n') line[--n] = '\0';
  if (((server_state *)cls)->options.log == SERVER_LOG_REQUESTS) server_log_line(cls, "http: %s", line);
}

/* ---- Start and stop ---- */

static lode_status listen_resolve(const server_options *o, struct addrinfo **found, lode_error *err) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  char port[8];
  snprintf(port, sizeof port, "%u", o->port);
  int code = getaddrinfo(o->host, port, &hints, found);
  if (code == 0) return LODE_OK;
  return err_set(err, LODE_INVALID, "the host %.200s cannot be used: %s", o->host, gai_strerror(code));
}

static lode_status listen_at(const server_options *o, int *fd, uint16_t *port, lode_error *err) {
  struct addrinfo *a = NULL;
  struct sockaddr_storage bound;
  socklen_t len = sizeof bound;
  lode_status st;
  int one = 1;
  *fd = -1;
  TRY(listen_resolve(o, &a, err));
  *fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*fd < 0) TRY_GOTO(err_errno(err, errno, "socket"));
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(*fd, a->ai_addr, a->ai_addrlen) < 0 || listen(*fd, 1024) < 0) {
    if (errno == EADDRINUSE)
      TRY_GOTO(err_set(err, LODE_BUSY,
                       "port %u of %.200s is taken: another server runs there; --port N takes another one", o->port,
                       o->host));
    TRY_GOTO(err_errno(err, errno, "listening"));
  }
  if (getsockname(*fd, (struct sockaddr *)&bound, &len) < 0) TRY_GOTO(err_errno(err, errno, "getsockname"));
  *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                            : ((struct sockaddr_in *)&bound)->sin_port);
  st = LODE_OK;
done:
  if (st != LODE_OK && *fd >= 0) {
    close(*fd);
    *fd = -1;
  }
  freeaddrinfo(a);
  return st;
}

static void server_fill_defaults(server_options *o) {
  if (!o->host) o->host = "127.0.0.1";
  if (!o->port && !o->any_port) o->port = 8000;
  if (!o->max_body) o->max_body = 128u << 20;
  if (!o->max_connections) o->max_connections = 512;
  if (!o->wait_s) o->wait_s = 30;
}

static lode_status mhd_start(server_state *h, int fd, lode_error *err) {
  const server_options *o = &h->options;
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_ITC |
                   (o->certificate ? MHD_USE_TLS : 0);
  unsigned cpus = os_cpu_count(), threads = cpus > 8 ? 4 : cpus / 2;
  struct MHD_OptionItem more[4] = {{MHD_OPTION_END, 0, NULL}};
  size_t n = 0;
  if (o->certificate) {
    more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->certificate};
    more[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key};
  }
  if (threads > 1) more[n++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL};
  more[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
  if (o->certificate && server_mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
    return err_set(err, LODE_UNSUPPORTED, "this build of libmicrohttpd has no TLS");
  h->daemon = server_mhd.start_daemon(
      flags, 0, NULL, NULL, mhd_on_request, h, MHD_OPTION_EXTERNAL_LOGGER, mhd_on_notice, h, MHD_OPTION_LISTEN_SOCKET,
      fd, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, mhd_on_completed, h,
      MHD_OPTION_NOTIFY_CONNECTION, mhd_on_connection, h, MHD_OPTION_UNESCAPE_CALLBACK, mhd_keep_escapes, NULL,
      MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      (size_t)SERVER_CONN_BYTES, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
  if (!h->daemon)
    return err_set(err, LODE_IO, "the HTTP server does not start%s",
                   o->certificate ? ": is it a good certificate and its key?" : "");
  return LODE_OK;
}

lode_status server_listen(const server_options *options, server_state **out, lode_error *err) {
  server_state *h = mem_calloc(1, sizeof *h);
  lode_status st;
  *out = NULL;
  if (!h) return err_nomem(err);
  int errnum = os_cond_init(&h->wake);
  if (errnum) {
    mem_free(h);
    return err_errno(err, errnum, "pthread_cond_init");
  }
  h->options = *options;
  h->listener = -1;
  h->salt = (uint32_t)rand_u64();
  server_fill_defaults(&h->options);
  pthread_mutex_init(&h->lock, NULL);
  TRY_GOTO(server_mhd_load(err));
  h->metrics = server_metrics_new();
  if (!h->metrics) TRY_GOTO(err_nomem(err));
  TRY_GOTO(listen_at(&h->options, &h->listener, &h->port, err));
  *out = h;
done:
  if (st != LODE_OK) server_stop(h);
  return st;
}

lode_status server_start(server_state *h, supervisor_state *supervisor, lode_error *err) {
  h->supervisor = supervisor;
  TRY(mhd_start(h, h->listener, err));
  h->listener = -1; /* the daemon's */
  int errnum = pthread_create(&h->reaper, NULL, conn_reaper, h);
  if (errnum) return err_errno(err, errnum, "pthread_create");
  h->reaping = true;
  return LODE_OK;
}

void server_drain(server_state *h) {
  int fd = server_mhd.quiesce_daemon(h->daemon);
  pthread_mutex_lock(&h->lock);
  h->draining = true;
  while (h->cancelling) pthread_cond_wait(&h->wake, &h->lock);
  pthread_mutex_unlock(&h->lock);
  if (fd >= 0) close(fd);
}

void server_stop(server_state *h) {
  if (!h) return;
  if (h->reaping) {
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->reaper, NULL);
  }
  if (h->daemon) server_mhd.stop_daemon(h->daemon);
  if (h->listener >= 0) close(h->listener);
  server_metrics_free(h->metrics);
  pthread_cond_destroy(&h->wake);
  pthread_mutex_destroy(&h->lock);
  mem_free(h);
}
