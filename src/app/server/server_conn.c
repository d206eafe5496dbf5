/* SPDX-License-Identifier: Apache-2.0 */
/* server_conn.c - connections: which are open, what each waits for, and which are closed because they wait too long.
 *
 * Each connection has a server_conn_slot in one list, which says what it waits for and since when. The reaper thread
 * shuts down sockets that take too long to send a request, and those whose client does not read its response: the
 * number of bytes in the kernel's send queue does not change, or the response takes too long as a whole. When nearly
 * all slots are taken, the connection that has waited longest is shut down, so that slow clients cannot keep others
 * out. The reaper also polls the sockets of suspended connections, which libmicrohttpd does not: the call of a client
 * that hung up is cancelled.
 */
#include "server/server_internal.h"

#include "os/os.h"
#include "platform/socket.h"

#include <unistd.h>

enum { SERVER_SPARE_SLOTS = 16, SERVER_MAX_CANCELS = 64, SERVER_REAP_MS = 200 };

void server_conn_set_deadline(server_conn_slot *s, uint64_t ms) {
  s->working = s->answering = false;
  s->call = 0;
  s->since_ns = os_api->now_ns();
  s->until_ns = s->since_ns + ms * SERVER_NS_PER_MS;
}

void server_conn_wait_reader(const server_state *h, server_conn_slot *s, uint64_t bytes) {
  server_conn_set_deadline(s, h->options.wait_s * 1000ull + bytes * 1000 / SERVER_MIN_BODY_RATE);
  s->answering = true;
  s->unread = 0;
}

/* The client is not late if the send queue is empty, or changes. */
static bool conn_is_late(const server_state *h, server_conn_slot *s, uint64_t now) {
  int unread = 0;
  if (now >= s->until_ns) return true;
  if (!s->answering || !os_socket_unsent(s->fd, &unread)) return false;
  if (unread == 0 || unread != s->unread) s->since_ns = now;
  s->unread = unread;
  return now - s->since_ns >= h->options.wait_s * 1000 * SERVER_NS_PER_MS;
}

static void conn_shut(server_state *h, server_conn_slot *s) {
  if (s->shut) return;
  s->shut = true;
  h->stats.reaped++;
  os_socket_shut(s->fd, true); /* libmicrohttpd sees the end of the stream and closes it */
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
  return h->options.own_user && os_peer_uid(fd, &uid) && uid == geteuid();
}

/* Never 0, which means no client. */
static uint64_t conn_client_id(int fd, bool own_user) {
  unsigned char address[16];
  os_socket_peer(fd, address);
  return (hash_bytes(address, sizeof address) ^ own_user) | 1ull << 63;
}

void server_on_connection(void *cls, struct MHD_Connection *connection, void **context,
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
      s->fd = fd;
      s->own_user = own_user;
      s->client = conn_client_id(fd, own_user);
      os_socket_no_delay(s->fd);
      server_conn_set_deadline(s, h->options.wait_s * 1000ull);
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
    if (!s->working || !s->call || !os_socket_hung_up(s->fd)) continue;
    calls[n++] = s->call;
    s->call = 0;
  }
  h->stats.hung_up += n;
  return n;
}

void *server_conn_reaper(void *ctx) {
  server_state *h = ctx;
  pthread_mutex_lock(&h->lock);
  while (!h->stopping) {
    uint64_t now = os_api->now_ns(), gone[SERVER_MAX_CANCELS];
    for (server_conn_slot *s = h->conn_slots; s; s = s->after)
      if (!s->working && !s->shut && conn_is_late(h, s, now)) conn_shut(h, s);
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
    os_cond_wait_until(&h->wake, &h->lock, &until);
  }
  pthread_mutex_unlock(&h->lock);
  return NULL;
}
