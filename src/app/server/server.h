/* server.h - the HTTP face: connections, requests, and what guards them. `lode serve` runs it.
 *
 * A request is read, guarded (Host, Origin, token, caps), and routed. What needs the engine becomes a call of the supervisor;
 * its connection sleeps meanwhile, so a few threads serve many connections, and a slow engine, client or upload holds up
 * nobody else. The front never parses a body: the worker does, and answers with the bytes that go to the client.
 *
 * Threads: libmicrohttpd's run the handlers, the supervisor's runs the ends of calls, and one of our own sees to it that no
 * connection dawdles. A request belongs to one of them at a time: to the supervisor's from the call until `done`.
 */
#ifndef LODE_SERVER_SERVER_H
#define LODE_SERVER_SERVER_H

#include "worker/supervisor.h"

#include <stdatomic.h>

typedef struct server_state server_state;
typedef struct server_request server_request;

typedef enum server_log_level { SERVER_LOG_REQUESTS, SERVER_LOG_ERRORS, SERVER_LOG_NOTHING } server_log_level;

/* Strings must outlive the server. Zero means the default. */
typedef struct server_options {
  const char *host;             /* "127.0.0.1" */
  uint16_t port;
  bool any_port;                /* port 0 means: the system picks one */
  lode_str token;               /* absent: none is asked for */
  bool own_user;                /* connections of the server's own user need no token, those of others do: see peer.h */
  const lode_str *allow_hosts, *allow_origins;
  size_t n_allow_hosts, n_allow_origins;
  const char *certificate, *key; /* PEM texts; NULL: no TLS */
  bool allow_reset;
  size_t max_body;              /* bytes; 128 MiB */
  uint32_t max_connections;     /* 512 */
  uint32_t wait_s;              /* for the rest of a request, for the next one, and for a client to read on; 30 */
  server_log_level log;
  void (*say)(void *ctx, const char *line);
  void *say_ctx;
} server_options;

lode_status server_start(const server_options *options, supervisor_state *supervisor, server_state **http, lode_error *err);
uint16_t server_get_port(const server_state *http);
/* No new connections; requests that come on old ones are answered 503. */
void server_drain(server_state *http);
/* After the supervisor was stopped: all requests have their answers; sends them, closes, frees. */
void server_stop(server_state *http);

/* ---- Routes (server_route.c) ---- */

struct server_request {
  server_state *http;
  void *connection;        /* libmicrohttpd's */
  char id[40];             /* goes into the log and the answer's X-Request-Id */
  char method[8];
  lode_str path;           /* as it came: not decoded */
  strbuf target;        /* holds path */
  strbuf body;
  uint64_t started_ns;
  const char *route;       /* for metrics: a pattern or a call's name, never the path itself */
  /* the answer */
  unsigned status;
  const char *type;        /* content type; NULL: JSON */
  char *answer;            /* allocated, sent and freed; NULL: none */
  size_t answer_size;
  const char *etag;        /* the answer may be kept, and asked for again with this; or NULL */
  const char *policy;      /* Content-Security-Policy, or NULL */
  char allow[40];          /* 405: the methods that are */
  bool retry_later;        /* adds Retry-After */
  bool last;               /* ends the connection */
  bool answered;
  bool chunked;            /* its body is: there may be headers after it */
  unsigned waiting;        /* state of its call: see server.c */
  lode_str words[WIRE_MAX_WORDS];
  size_t n_words;
  const char *call;        /* "chroma.add": what to ask the worker */
  char call_name[80];
  unsigned call_flags;     /* WIRE_CALL_LONG, ... */
  void (*translate)(server_request *request, unsigned code); /* of the worker's answer; NULL: code is the status */
  void *conn_slot;              /* the connection's, see server.c */
};

/* Decides what to do with a whole request: answers it, or names the call that will. */
void server_route(server_request *request);
/* Takes the buffer's bytes as the answer. */
void server_respond(server_request *request, unsigned status, strbuf *body);
/* {"error":NAME,"message":TEXT}, as Chroma's clients read it. */
__attribute__((format(printf, 4, 5))) void server_respond_error(server_request *request, unsigned status, const char *name,
                                                              const char *format, ...);
/* A header of the request, or NULL. */
const char *server_request_header(const server_request *request, const char *name);
/* A value of the query string, not decoded; absent when it is not there. */
lode_str server_query_param(const server_request *request, const char *name);
const server_options *server_get_options(const server_state *http);
supervisor_state *server_get_supervisor(const server_state *http);

/* ---- Guards (server_guard.c) ---- */

/* Is this name a loopback address or localhost? */
bool server_is_loopback(const char *host);
/* Host: an address, localhost, or one of those allowed. A name that an attacker's DNS points at us is none of these. */
bool server_host_allowed(const server_options *options, const char *host);
/* Is it the name of a header (RFC 9110, 5.1)? One with a space before the colon is not: others may take it for the name without. */
bool server_is_header_name(const char *name);
/* Does the value follow its name as on one line: "Name\0 value"? */
bool server_is_one_line(const char *name, const char *value);
/* Origin: this server itself, or one of those allowed. */
bool server_origin_allowed(const server_options *options, const char *origin, const char *host);
/* In time that does not depend on where they differ. */
bool server_token_matches(lode_str token, lode_str given);
/* %41 to A; false for what is no escape, for NUL, and for what is not UTF-8. In place. */
bool server_percent_decode(char *text, size_t *len);

/* ---- Metrics (server_metrics.c) ---- */

typedef struct server_metrics server_metrics;
server_metrics *server_metrics_new(void);
void server_metrics_free(server_metrics *metrics);
/* `route` must be a string that lives for ever. */
void server_metrics_record(server_metrics *metrics, const char *route, unsigned status, uint64_t ns, size_t in, size_t out);
typedef struct server_stats {
  size_t connections, requests; /* open, in work */
  uint64_t reaped;              /* connections that were closed for being slow */
  uint64_t hung_up;             /* clients that went before their answer came */
} server_stats;
void server_metrics_put(server_metrics *metrics, strbuf *out, const server_stats *http,
                       const supervisor_stats *supervisor);
server_metrics *server_get_metrics(server_state *http);
void server_get_stats(server_state *http, server_stats *figures);

#endif
