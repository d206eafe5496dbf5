/* SPDX-License-Identifier: Apache-2.0 */
/* server_internal.h - the state of the server, shared by server.c (start and stop), server_conn.c (connections) and
 * server_request.c (requests). */
#ifndef LODE_SERVER_SERVER_INTERNAL_H
#define LODE_SERVER_SERVER_INTERNAL_H

#include "server/mhd.h"
#include "server/server.h"

#include <pthread.h>

#define SERVER_NS_PER_MS 1000000ull
enum { SERVER_MIN_BODY_RATE = 64 << 10 /* bytes per second */ };

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
  server_request *watched; /* calls whose progress is kept */
  server_stats stats;
  atomic_ullong serial;
  uint32_t salt;
};

__attribute__((format(printf, 2, 3))) void server_log_line(server_state *http, const char *format, ...);

/* ---- Connections (server_conn.c) ---- */

/* Caller holds the lock. Gives the connection `ms` for its next step. */
void server_conn_set_deadline(server_conn_slot *slot, uint64_t ms);
/* Caller holds the lock. The client must read a response of this size. */
void server_conn_wait_reader(const server_state *http, server_conn_slot *slot, uint64_t bytes);
/* The thread that shuts down slow connections and cancels the calls of clients that hung up. */
void *server_conn_reaper(void *http);

/* ---- Callbacks of libmicrohttpd ---- */

void server_on_connection(void *http, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what);
enum MHD_Result server_on_request(void *http, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **context);
void server_on_completed(void *http, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code);

#endif
