/* SPDX-License-Identifier: Apache-2.0 */
/* server_metrics.c - counts and durations of requests, in Prometheus format.
 *
 * A fixed number of slots, one for each pair of route and status, looked up by the route's address. Recording takes a
 * lock only for a new slot. Durations go into buckets that grow by powers of two.
 */
#include "server/server.h"

#include <pthread.h>

enum { METRICS_SLOTS = 512, METRICS_BUCKETS = 16, METRICS_FIRST_US = 100 }; /* buckets: 0.1 ms to 3.3 s, and the rest */

typedef struct metrics_slot {
  const char *_Atomic route;
  unsigned status;
  atomic_ullong count, sum_us, in, out, buckets[METRICS_BUCKETS + 1];
} metrics_slot;

struct server_metrics {
  pthread_mutex_t lock;
  atomic_size_t used;
  metrics_slot slots[METRICS_SLOTS];
};

server_metrics *server_metrics_new(void) {
  server_metrics *m = mem_calloc(1, sizeof *m);
  if (m) pthread_mutex_init(&m->lock, NULL);
  return m;
}

void server_metrics_free(server_metrics *m) {
  if (!m) return;
  pthread_mutex_destroy(&m->lock);
  mem_free(m);
}

static metrics_slot *metrics_find_slot(server_metrics *m, const char *route, unsigned status) {
  size_t n = atomic_load(&m->used);
  for (size_t i = 0; i < n; i++)
    if (atomic_load(&m->slots[i].route) == route && m->slots[i].status == status) return &m->slots[i];
  return NULL;
}

void server_metrics_record(server_metrics *m, const server_request *r, uint64_t ns) {
  const char *route = r->route ? r->route : "other";
  unsigned status = r->status;
  uint64_t us = ns / 1000;
  size_t bucket = 0;
  metrics_slot *s = metrics_find_slot(m, route, status);
  if (!s) {
    pthread_mutex_lock(&m->lock);
    s = metrics_find_slot(m, route, status);
    size_t n = atomic_load(&m->used);
    if (!s && n < METRICS_SLOTS) {
      s = &m->slots[n];
      s->status = status;
      atomic_store(&s->route, route);
      atomic_store(&m->used, n + 1);
    }
    pthread_mutex_unlock(&m->lock);
    if (!s) return;
  }
  while (bucket < METRICS_BUCKETS && us > (uint64_t)METRICS_FIRST_US << bucket) bucket++;
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->sum_us, us, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->in, r->body.len, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->out, r->answer_size, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->buckets[bucket], 1, memory_order_relaxed);
}

static void metrics_put_head(strbuf *out, const char *name, const char *type, const char *about) {
  strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, about, name, type);
}

static void metrics_put_value(strbuf *out, const char *name, const char *type, const char *about,
                              unsigned long long value) {
  metrics_put_head(out, name, type, about);
  strbuf_addf(out, "%s %llu\n", name, value);
}

static void metrics_put_slots(server_metrics *m, strbuf *out, const char *name, const char *about, size_t offset) {
  metrics_put_head(out, name, "counter", about);
  for (size_t i = 0; i < atomic_load(&m->used); i++) {
    metrics_slot *s = &m->slots[i];
    atomic_ullong *value = (atomic_ullong *)(void *)((char *)s + offset);
    strbuf_addf(out, "%s{route=\"%s\",status=\"%u\"} %llu\n", name, atomic_load(&s->route), s->status,
                atomic_load(value));
  }
}

static void metrics_put_times(server_metrics *m, strbuf *out) {
  metrics_put_head(out, "lode_http_request_seconds", "histogram",
                   "time from the first byte of a request to its answer");
  for (size_t i = 0; i < atomic_load(&m->used); i++) {
    metrics_slot *s = &m->slots[i];
    const char *route = atomic_load(&s->route);
    unsigned long long sum = 0;
    for (size_t b = 0; b <= METRICS_BUCKETS; b++) {
      sum += atomic_load(&s->buckets[b]);
      strbuf_addf(out, "lode_http_request_seconds_bucket{route=\"%s\",status=\"%u\",le=\"", route, s->status);
      if (b < METRICS_BUCKETS)
        strbuf_addf(out, "%.4f", (double)(METRICS_FIRST_US << b) / 1e6);
      else
        strbuf_addstr(out, "+Inf");
      strbuf_addf(out, "\"} %llu\n", sum);
    }
    strbuf_addf(out, "lode_http_request_seconds_sum{route=\"%s\",status=\"%u\"} %.6f\n", route, s->status,
                (double)atomic_load(&s->sum_us) / 1e6);
    strbuf_addf(out, "lode_http_request_seconds_count{route=\"%s\",status=\"%u\"} %llu\n", route, s->status, sum);
  }
}

void server_metrics_put(server_metrics *m, strbuf *out, const server_stats *http, const supervisor_stats *s) {
  metrics_put_slots(m, out, "lode_http_requests_total", "requests answered", offsetof(metrics_slot, count));
  metrics_put_slots(m, out, "lode_http_request_bytes_total", "bytes of bodies received", offsetof(metrics_slot, in));
  metrics_put_slots(m, out, "lode_http_response_bytes_total", "bytes of bodies sent", offsetof(metrics_slot, out));
  metrics_put_times(m, out);
  metrics_put_value(out, "lode_http_connections", "gauge", "open connections", http->connections);
  metrics_put_value(out, "lode_http_requests_in_work", "gauge", "requests that have no answer yet", http->requests);
  metrics_put_value(out, "lode_http_connections_reaped_total", "counter", "connections closed for being slow",
                    http->reaped);
  metrics_put_value(out, "lode_http_hung_up_total", "counter",
                    "clients that went before their answer came; what they asked for was cancelled", http->hung_up);
  metrics_put_value(out, "lode_worker_ready", "gauge", "1 when a worker takes calls", s->ready);
  metrics_put_value(out, "lode_worker_restarts_total", "counter", "workers that died", s->restarts);
  metrics_put_value(out, "lode_worker_calls_total", "counter", "calls handed to workers", s->calls);
  metrics_put_value(out, "lode_worker_calls_in_flight", "gauge", "calls without an answer", s->in_flight);
  metrics_put_value(out, "lode_worker_calls_died_total", "counter", "calls lost with their worker", s->died);
  metrics_put_value(out, "lode_worker_calls_expired_total", "counter", "calls that took too long", s->expired);
  metrics_put_value(out, "lode_worker_calls_refused_total", "counter", "calls refused because too many were in flight",
                    s->refused);
  metrics_put_head(out, "lode_worker_last_restart_seconds", "gauge",
                   "from the death of the last worker to the next one taking calls");
  strbuf_addf(out, "lode_worker_last_restart_seconds %.6f\n", (double)s->restart_ns / 1e9);
}
