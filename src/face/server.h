/* server.h - the HTTP face: connections, requests, and what guards them. `lode serve` runs it.
 *
 * A request is read, guarded (Host, Origin, token, caps), and routed. What needs the engine becomes a call of the supervisor;
 * its connection sleeps meanwhile, so a few threads serve many connections, and a slow engine, client or upload holds up
 * nobody else. The front never parses a body: the worker does, and answers with the bytes that go to the client.
 *
 * Threads: libmicrohttpd's run the handlers, the supervisor's runs the ends of calls, and one of our own sees to it that no
 * connection dawdles. A request belongs to one of them at a time: to the supervisor's from the call until `done`.
 */
#ifndef LODE_FACE_SERVER_H
#define LODE_FACE_SERVER_H

#include "supervisor.h"

#include <stdatomic.h>

typedef struct lode__server lode__server;
typedef struct lode__request lode__request;

typedef enum lode__server_log { LODE__LOG_REQUESTS, LODE__LOG_ERRORS, LODE__LOG_NOTHING } lode__server_log;

/* Strings must outlive the server. Zero means the default. */
typedef struct lode__server_options {
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
  lode__server_log log;
  void (*say)(void *ctx, const char *line);
  void *say_ctx;
} lode__server_options;

lode_status lode__server_start(const lode__server_options *options, lode__supervisor *supervisor, lode__server **http, lode_error *err);
uint16_t lode__server_port(const lode__server *http);
/* No new connections; requests that come on old ones are answered 503. */
void lode__server_drain(lode__server *http);
/* After the supervisor was stopped: all requests have their answers; sends them, closes, frees. */
void lode__server_stop(lode__server *http);

/* ---- Routes (server_route.c) ---- */

struct lode__request {
  lode__server *http;
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
  lode_str words[LODE__WIRE_WORDS];
  size_t n_words;
  const char *call;        /* "chroma.add": what to ask the worker */
  char call_name[80];
  unsigned call_flags;     /* LODE__CALL_LONG, ... */
  void (*translate)(lode__request *request, unsigned code); /* of the worker's answer; NULL: code is the status */
  void *seat;              /* the connection's, see server.c */
};

/* Decides what to do with a whole request: answers it, or names the call that will. */
void lode__server_route(lode__request *request);
/* Takes the buffer's bytes as the answer. */
void lode__request_answer(lode__request *request, unsigned status, strbuf *body);
/* {"error":NAME,"message":TEXT}, as Chroma's clients read it. */
__attribute__((format(printf, 4, 5))) void lode__request_fail(lode__request *request, unsigned status, const char *name,
                                                              const char *format, ...);
/* A header of the request, or NULL. */
const char *lode__request_header(const lode__request *request, const char *name);
/* A value of the query string, not decoded; absent when it is not there. */
lode_str lode__request_query(const lode__request *request, const char *name);
const lode__server_options *lode__server_options_of(const lode__server *http);
lode__supervisor *lode__server_supervisor(const lode__server *http);

/* ---- Guards (server_guard.c) ---- */

/* Is this name a loopback address or localhost? */
bool lode__is_loopback(const char *host);
/* Host: an address, localhost, or one of those allowed. A name that an attacker's DNS points at us is none of these. */
bool lode__host_allowed(const lode__server_options *options, const char *host);
/* Is it the name of a header (RFC 9110, 5.1)? One with a space before the colon is not: others may take it for the name without. */
bool lode__is_header_name(const char *name);
/* Does the value follow its name as on one line: "Name\0 value"? */
bool lode__is_one_line(const char *name, const char *value);
/* Origin: this server itself, or one of those allowed. */
bool lode__origin_allowed(const lode__server_options *options, const char *origin, const char *host);
/* In time that does not depend on where they differ. */
bool lode__token_matches(lode_str token, lode_str given);
/* %41 to A; false for what is no escape, for NUL, and for what is not UTF-8. In place. */
bool lode__percent_decode(char *text, size_t *len);

/* ---- Metrics (server_metrics.c) ---- */

typedef struct lode__metrics lode__metrics;
lode__metrics *lode__metrics_make(void);
void lode__metrics_free(lode__metrics *metrics);
/* `route` must be a string that lives for ever. */
void lode__metrics_add(lode__metrics *metrics, const char *route, unsigned status, uint64_t ns, size_t in, size_t out);
typedef struct lode__server_figures {
  size_t connections, requests; /* open, in work */
  uint64_t reaped;              /* connections that were closed for being slow */
  uint64_t hung_up;             /* clients that went before their answer came */
} lode__server_figures;
void lode__metrics_put(lode__metrics *metrics, strbuf *out, const lode__server_figures *http,
                       const lode__supervisor_figures *supervisor);
lode__metrics *lode__server_metrics(lode__server *http);
void lode__server_figures_get(lode__server *http, lode__server_figures *figures);

#endif
