/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the server as a whole: listening, starting and stopping libmicrohttpd. See server.h. `lock` of the state
 * guards the slots of connections and the statistics, nothing else. */
#include "server/server_internal.h"

#include "os/os.h"
#include "platform/socket.h"

#include <unistd.h>

enum { SERVER_CONN_BYTES = 64 << 10 };

const server_options *server_get_options(const server_state *h) { return &h->options; }
supervisor_state *server_get_supervisor(const server_state *h) { return h->supervisor; }
server_metrics *server_get_metrics(server_state *h) { return h->metrics; }
uint16_t server_get_port(const server_state *h) { return h->port; }

void server_get_stats(server_state *h, server_stats *stats) {
  pthread_mutex_lock(&h->lock);
  *stats = h->stats;
  pthread_mutex_unlock(&h->lock);
}

void server_log_line(server_state *h, const char *format, ...) {
  char line[1000];
  va_list list;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  h->options.say(h->options.say_ctx, line);
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

static lode_status listen_at(const server_options *o, int *fd, uint16_t *port, lode_error *err) {
  const char *why;
  *port = o->port;
  *fd = os_socket_listen(o->host, port, &why);
  if (*fd >= 0) return LODE_OK;
  if (why) return err_set(err, LODE_INVALID, "the host %.200s cannot be used: %s", o->host, why);
  if (errno == EADDRINUSE)
    return err_set(err, LODE_BUSY, "port %u of %.200s is taken: another server runs there; --port N takes another one",
                   o->port, o->host);
  return err_errno(err, errno, "listening");
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
    return err_set(err, LODE_UNSUPPORTED,
                   "this build has no TLS for servers: put a reverse proxy that has it in front");
  h->daemon = server_mhd.start_daemon(
      flags, 0, NULL, NULL, server_on_request, h, MHD_OPTION_EXTERNAL_LOGGER, mhd_on_notice, h,
      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, server_on_completed,
      h, MHD_OPTION_NOTIFY_CONNECTION, server_on_connection, h, MHD_OPTION_UNESCAPE_CALLBACK, mhd_keep_escapes, NULL,
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
  int errnum = pthread_create(&h->reaper, NULL, server_conn_reaper, h);
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
