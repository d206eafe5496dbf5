/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the HTTP front end: connections, requests and their checks. `lode serve` runs it.
 *
 * A request is read, checked (Host, Origin, token, limits) and routed. What needs the engine becomes a call of the
 * supervisor; the connection is suspended meanwhile, so a few threads serve many connections, and a slow engine,
 * client or upload holds up nobody else. The server never parses a body: the worker does, and replies with the bytes
 * that are sent to the client.
 *
 * Threads: libmicrohttpd's run the handlers, the supervisor's runs `done` of calls, and the reaper, our own, closes
 * slow connections and cancels calls of clients that hung up. A request belongs to one thread at a time: to the
 * supervisor from the call until `done`.
 */
#ifndef LODE_SERVER_SERVER_H
#define LODE_SERVER_SERVER_H

#include "worker/supervisor.h"

#include <stdatomic.h>

typedef struct server_state server_state;
typedef struct server_request server_request;
typedef struct server_conn_slot server_conn_slot;

typedef enum server_log_level { SERVER_LOG_REQUESTS, SERVER_LOG_ERRORS, SERVER_LOG_NOTHING } server_log_level;

/* Strings must outlive the server. Zero means the default. */
typedef struct server_options {
  const char *host; /* "127.0.0.1" */
  uint16_t port;
  bool any_port;  /* port 0 means that the system picks one */
  lode_str token; /* no data: none is required */
  bool own_user;  /* connections of the server's own user need no token, all others do: see os_peer_uid() */
  const lode_str *allow_hosts, *allow_origins;
  size_t n_allow_hosts, n_allow_origins;
  const char *certificate, *key; /* PEM texts; NULL: no TLS */
  bool allow_reset;
  bool own_page;            /* `lode ui`: its page may index the project, and wait for long calls that it watches */
  size_t max_body;          /* bytes; 128 MiB */
  uint32_t max_connections; /* 512 */
  uint32_t wait_s;          /* for the rest of a request, for the next one, and for a client to read on; 30 */
  server_log_level log;
  void (*say)(void *ctx, const char *line);
  void *say_ctx;
} server_options;

/* Listens, without starting a thread: connections wait until server_start(). */
LODE_MUST lode_status server_listen(const server_options *options, server_state **http, lode_error *err);
/* After a failure, too, server_stop() ends it. */
LODE_MUST lode_status server_start(server_state *http, supervisor_state *supervisor, lode_error *err);
uint16_t server_get_port(const server_state *http);
/* No new connections; requests on open ones are answered with 503. */
void server_drain(server_state *http);
/* Called after the supervisor was stopped, when all requests have their responses: sends them, closes, frees. */
void server_stop(server_state *http);

/* ---- Routes (server_route.c) ---- */

struct server_request {
  server_state *http;
  void *connection; /* MHD_Connection */
  char id[40];      /* appears in the log and in X-Request-Id */
  char method[8];
  lode_str path; /* not decoded */
  strbuf target; /* holds path, then decoded words */
  strbuf body;
  uint64_t started_ns;
  const char *route; /* for metrics: a pattern or a call's name, never the path itself */
  /* the response */
  unsigned status;
  const char *type; /* content type; NULL: JSON */
  char *answer;     /* allocated, sent and freed; NULL: empty */
  size_t answer_size;
  const char *etag;   /* the response may be cached and revalidated; or NULL */
  const char *policy; /* Content-Security-Policy, or NULL */
  char allow[40];     /* 405: the allowed methods */
  bool retry_later;   /* adds Retry-After */
  bool last;          /* ends the connection */
  bool answered;
  bool chunked;     /* the body is chunked: trailers may follow */
  unsigned waiting; /* state of the request: see server_request.c */
  lode_str words[WIRE_MAX_WORDS];
  size_t n_words;
  const char *call; /* "chroma.add": the worker's call */
  char call_name[80];
  unsigned call_flags; /* WIRE_CALL_LONG, ... */
  /* sets the status from the reply's code; NULL: the code is the status */
  void (*translate)(server_request *request, unsigned code);
  server_conn_slot *conn_slot; /* of the connection; NULL: memory ran out */
  /* a long call whose client named it by X-Request-Id, so that it can ask how far it is; under the server's lock */
  bool watched;
  char phase[48];
  uint64_t phase_done, phase_total;
  server_request *next_watched;
};

/* Routes a complete request: responds to it, or sets the call that will. */
void server_route(server_request *request);
/* Responds with the buffer, which it takes over. */
void server_respond(server_request *request, unsigned status, strbuf *body);
/* {"error":NAME,"message":TEXT}, as Chroma's clients expect. */
__attribute__((format(printf, 4, 5))) void server_respond_error(server_request *request, unsigned status,
                                                                const char *name, const char *format, ...);
/* A header of the request, or NULL. */
const char *server_request_header(const server_request *request, const char *name);
/* A value of the query string, not decoded; no data if it is missing. */
lode_str server_query_param(const server_request *request, const char *name);
const server_options *server_get_options(const server_state *http);
/* How far the watched call of this id is, as JSON, if the same client made it; false if there is none. */
LODE_MUST bool server_put_progress(const server_request *request, lode_str id, strbuf *out);
supervisor_state *server_get_supervisor(const server_state *http);

/* ---- Checks (server_guard.c) ---- */

/* Is it a loopback address or localhost? */
bool server_is_loopback(const char *host);
/* Host: an address, localhost, or an allowed name. Protects against DNS rebinding: a name that an attacker points at
 * us is none of these. */
bool server_host_allowed(const server_options *options, const char *host);
/* Is it a valid header name (RFC 9110, 5.1)? A name with a space before the colon is not: others may read it without
 * the space. */
bool server_is_header_name(const char *name);
/* Does the value follow its name in memory, as on one line: "Name\0 value"? */
bool server_is_one_line(const char *name, const char *value);
/* Origin: this server itself, or an allowed one. */
bool server_origin_allowed(const server_options *options, const char *origin, const char *host);
/* Takes time that does not depend on where they differ. */
bool server_token_matches(lode_str token, lode_str given);
/* Decodes %41 to A in place; false for an invalid escape, for NUL, and for text that is not UTF-8. */
LODE_MUST bool server_percent_decode(char *text, size_t *len);

/* ---- Metrics (server_metrics.c) ---- */

typedef struct server_metrics server_metrics;
server_metrics *server_metrics_new(void);
void server_metrics_free(server_metrics *metrics);
/* Counts a request that is answered; `ns` is how long it took. */
void server_metrics_record(server_metrics *metrics, const server_request *request, uint64_t ns);
typedef struct server_stats {
  size_t connections, requests; /* open connections, requests in progress */
  uint64_t reaped;              /* connections closed for being slow */
  uint64_t hung_up;             /* clients that hung up before their response */
} server_stats;
void server_metrics_put(server_metrics *metrics, strbuf *out, const server_stats *http,
                        const supervisor_stats *supervisor);
server_metrics *server_get_metrics(server_state *http);
void server_get_stats(server_state *http, server_stats *stats);

#endif
