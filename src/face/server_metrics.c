/* server_metrics.c - counts and times of requests, as Prometheus reads them.
 *
 * One slot for each pair of route and status, found by the route's address; a fixed number of them. Adding is lock-free but
 * for a new slot. Times go into buckets that grow by powers of two.
 */
#include "server.h"

#include <pthread.h>
#include <sys/resource.h>

enum { SLOTS = 512, BUCKETS = 16, FIRST_US = 100 }; /* 0.1 ms to 3.3 s, and the rest */

typedef struct slot {
  const char *_Atomic route;
  unsigned status;
  atomic_ullong count, sum_us, in, out, buckets[BUCKETS + 1];
} slot;

struct lode__metrics {
  pthread_mutex_t lock;
  atomic_size_t used;
  slot slots[SLOTS];
};

lode__metrics *lode__metrics_make(void) {
  lode__metrics *m = mem_calloc(1, sizeof *m);
  if (m) pthread_mutex_init(&m->lock, NULL);
  return m;
}

void lode__metrics_free(lode__metrics *m) {
  if (!m) return;
  pthread_mutex_destroy(&m->lock);
  mem_free(m);
}

static slot *find(lode__metrics *m, const char *route, unsigned status) {
  size_t n = atomic_load(&m->used);
  for (size_t i = 0; i < n; i++)
    if (atomic_load(&m->slots[i].route) == route && m->slots[i].status == status) return &m->slots[i];
  return NULL;
}

void lode__metrics_add(lode__metrics *m, const char *route, unsigned status, uint64_t ns, size_t in, size_t out) {
  uint64_t us = ns / 1000;
  size_t bucket = 0;
  slot *s = find(m, route, status);
  if (!s) {
    pthread_mutex_lock(&m->lock);
    s = find(m, route, status);
    size_t n = atomic_load(&m->used);
    if (!s && n < SLOTS) {
      s = &m->slots[n];
      s->status = status;
      atomic_store(&s->route, route);
      atomic_store(&m->used, n + 1);
    }
    pthread_mutex_unlock(&m->lock);
    if (!s) return;
  }
  while (bucket < BUCKETS && us > (uint64_t)FIRST_US << bucket) bucket++;
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->sum_us, us, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->in, in, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->out, out, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->buckets[bucket], 1, memory_order_relaxed);
}

static void head(strbuf *out, const char *name, const char *type, const char *about) {
  strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, about, name, type);
}

static void figure(strbuf *out, const char *name, const char *type, const char *about, unsigned long long value) {
  head(out, name, type, about);
  strbuf_addf(out, "%s %llu\n", name, value);
}

static void put_slots(lode__metrics *m, strbuf *out, const char *name, const char *about, size_t offset) {
  head(out, name, "counter", about);
  for (size_t i = 0; i < atomic_load(&m->used); i++) {
    slot *s = &m->slots[i];
    atomic_ullong *value = (atomic_ullong *)(void *)((char *)s + offset);
    strbuf_addf(out, "%s{route=\"%s\",status=\"%u\"} %llu\n", name, atomic_load(&s->route), s->status, atomic_load(value));
  }
}

static void put_times(lode__metrics *m, strbuf *out) {
  head(out, "lode_http_request_seconds", "histogram", "time from the first byte of a request to its answer");
  for (size_t i = 0; i < atomic_load(&m->used); i++) {
    slot *s = &m->slots[i];
    const char *route = atomic_load(&s->route);
    unsigned long long sum = 0;
    for (size_t b = 0; b <= BUCKETS; b++) {
      sum += atomic_load(&s->buckets[b]);
      strbuf_addf(out, "lode_http_request_seconds_bucket{route=\"%s\",status=\"%u\",le=\"", route, s->status);
      if (b < BUCKETS) strbuf_addf(out, "%.4f", (double)(FIRST_US << b) / 1e6);
      else strbuf_addstr(out, "+Inf");
      strbuf_addf(out, "\"} %llu\n", sum);
    }
    strbuf_addf(out, "lode_http_request_seconds_sum{route=\"%s\",status=\"%u\"} %.6f\n", route, s->status,
                   (double)atomic_load(&s->sum_us) / 1e6);
    strbuf_addf(out, "lode_http_request_seconds_count{route=\"%s\",status=\"%u\"} %llu\n", route, s->status, sum);
  }
}

void lode__metrics_put(lode__metrics *m, strbuf *out, const lode__server_figures *http, const lode__supervisor_figures *s) {
  put_slots(m, out, "lode_http_requests_total", "requests answered", offsetof(slot, count));
  put_slots(m, out, "lode_http_request_bytes_total", "bytes of bodies received", offsetof(slot, in));
  put_slots(m, out, "lode_http_response_bytes_total", "bytes of bodies sent", offsetof(slot, out));
  put_times(m, out);
  figure(out, "lode_http_connections", "gauge", "open connections", http->connections);
  figure(out, "lode_http_requests_in_work", "gauge", "requests that have no answer yet", http->requests);
  figure(out, "lode_http_connections_reaped_total", "counter", "connections closed for being slow", http->reaped);
  figure(out, "lode_http_hung_up_total", "counter", "clients that went before their answer came; what they asked for was cancelled", http->hung_up);
  figure(out, "lode_worker_ready", "gauge", "1 when a worker takes calls", s->ready);
  figure(out, "lode_worker_restarts_total", "counter", "workers that died", s->restarts);
  figure(out, "lode_worker_calls_total", "counter", "calls handed to workers", s->calls);
  figure(out, "lode_worker_calls_in_flight", "gauge", "calls without an answer", s->in_flight);
  figure(out, "lode_worker_calls_died_total", "counter", "calls lost with their worker", s->died);
  figure(out, "lode_worker_calls_expired_total", "counter", "calls that took too long", s->expired);
  figure(out, "lode_worker_calls_refused_total", "counter", "calls refused because too many were in flight", s->refused);
  head(out, "lode_worker_last_restart_seconds", "gauge", "from the death of the last worker to the next one taking calls");
  strbuf_addf(out, "lode_worker_last_restart_seconds %.6f\n", (double)s->restart_ns / 1e9);
}
