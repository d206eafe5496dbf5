/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - a client that asks a server of Chroma's API as fast as it can, and says how fast that is.
 *
 *   load HOST PORT NAME RECORDS DIM CONNECTIONS SECONDS [STORE-CHECK]
 *
 * The same data, requests and order for every server: vectors around random centres from a fixed seed. Requests are
 * made beforehand, so that this program costs little. Three phases: ingest (batches over 4 connections), query (all
 * connections), mixed (90 % query, 10 % upsert of one record). At the end every record whose write was acknowledged is
 * looked for. Lines "NAME.figure value".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 500, QUERIES = 512, CENTRES = 200, MOST_TIMES = 1 << 22, INGEST_CONNECTIONS = 4 };

static const char *host, *name;
static int port, records, dim, connections;
static double seconds;
static char collection[200];
static float *vectors;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what) {
  fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* ---- Text ---- */

typedef struct text {
  char *data;
  size_t len, cap;
} text;

static void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *t, const char *format, ...) {
  va_list list;
  for (;;) {
    va_start(list, format);
    int n = vsnprintf(t->data + t->len, t->cap - t->len, format, list);
    va_end(list);
    if (n >= 0 && t->len + (size_t)n < t->cap) {
      t->len += (size_t)n;
      return;
    }
    t->cap = t->cap * 2 + (size_t)n + 256;
    t->data = realloc(t->data, t->cap);
    if (!t->data) die("memory");
  }
}

static void add_base64(text *t, const float *v) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *p = (const unsigned char *)v;
  size_t n = (size_t)dim * sizeof *v;
  for (size_t i = 0; i < n; i += 3) {
    unsigned x = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    char four[5] = {digits[x >> 18], digits[x >> 12 & 63], i + 1 < n ? digits[x >> 6 & 63] : '=',
                    i + 2 < n ? digits[x & 63] : '=', 0};
    add(t, "%s", four);
  }
}

/* ---- Data ---- */

static uint64_t seed = 42;
static uint64_t rnd(void) {
  seed += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t x = seed;
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}
static float noise(float width) { return width * ((float)(rnd() >> 40) / (float)(1 << 23) - 1); }

static void make_data(void) {
  float *centres = malloc((size_t)CENTRES * (size_t)dim * sizeof *centres);
  vectors = malloc((size_t)records * (size_t)dim * sizeof *vectors);
  if (!centres || !vectors) die("memory");
  for (int i = 0; i < CENTRES * dim; i++) centres[i] = noise(1);
  for (int r = 0; r < records; r++) {
    const float *c = centres + (size_t)(rnd() % CENTRES) * (size_t)dim;
    for (int d = 0; d < dim; d++) vectors[(size_t)r * (size_t)dim + (size_t)d] = c[d] + noise(0.4f);
  }
  free(centres);
}

/* ---- HTTP ---- */

static int dial(void) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, host, &to.sin_addr);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
    if (fd >= 0) close(fd);
    return -1;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void request(text *t, const char *method, const char *path, const text *body) {
  t->len = 0;
  add(t,
      "%s /api/v2/tenants/default_tenant/databases/default_database%s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: "
      "application/json\r\nContent-Length: %zu\r\n\r\n",
      method, path, host, port, body ? body->len : 0);
  if (body) add(t, "%.*s", (int)body->len, body->data);
}

/* Sends a request, reads its answer into `in`, and gives the status; -1 when the connection broke. *body is where the
 * body begins. */
static int ask(int fd, const text *out, text *in, const char **body) {
  for (size_t at = 0; at < out->len;) {
    ssize_t n = send(fd, out->data + at, out->len - at, MSG_NOSIGNAL);
    if (n <= 0) return -1;
    at += (size_t)n;
  }
  in->len = 0;
  size_t want = 0;
  *body = NULL;
  for (;;) {
    if (in->cap - in->len < 65536) {
      in->cap = in->cap * 2 + 131072;
      size_t offset = *body ? (size_t)(*body - in->data) : 0;
      in->data = realloc(in->data, in->cap);
      if (!in->data) die("memory");
      if (*body) *body = in->data + offset;
    }
    ssize_t n = recv(fd, in->data + in->len, in->cap - in->len - 1, 0);
    if (n <= 0) return -1;
    in->len += (size_t)n;
    in->data[in->len] = '\0';
    if (!*body) {
      char *end = strstr(in->data, "\r\n\r\n");
      if (!end) continue;
      *body = end + 4;
      for (char *p = in->data; p < end; p++) *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
      char *length = strstr(in->data, "content-length:");
      want = length && length < end ? strtoull(length + 15, NULL, 10) : 0;
    }
    if (in->len >= (size_t)(*body - in->data) + want) return (int)strtol(in->data + 9, NULL, 10);
  }
}

/* ---- Phases ---- */

typedef struct times {
  float *ms;
  size_t n;
} times;

static void note(times *t, double ms) {
  if (t->n < MOST_TIMES) t->ms[t->n++] = (float)ms;
}

typedef struct worker {
  pthread_t thread;
  int number, first, last; /* ingest: its records */
  bool mixed;
  times query, write;
  uint64_t errors, hits, asked, gaps_over;
  double worst_gap;
  int written; /* mixed: upserts 0 .. written - 1 were acknowledged */
} worker;

static text query_requests[QUERIES];
static int query_targets[QUERIES];
static double deadline;

static void make_queries(void) {
  char path[300];
  snprintf(path, sizeof path, "/collections/%s/query", collection);
  for (int q = 0; q < QUERIES; q++) {
    text body = {0};
    query_targets[q] = (int)(rnd() % (uint64_t)records);
    add(&body, "{\"query_embeddings\":[[");
    for (int d = 0; d < dim; d++)
      add(&body, "%s%.6g", d ? "," : "",
          (double)(vectors[(size_t)query_targets[q] * (size_t)dim + (size_t)d] + noise(0.05f)));
    add(&body, "]],\"n_results\":10,\"include\":[\"distances\",\"documents\",\"metadatas\"]}");
    request(&query_requests[q], "POST", path, &body);
    free(body.data);
  }
}

static void *ingest(void *ctx) {
  worker *w = ctx;
  text out = {0}, in = {0}, body = {0};
  const char *answer;
  char path[300];
  int fd = dial();
  snprintf(path, sizeof path, "/collections/%s/add", collection);
  for (int at = w->first; at < w->last; at += BATCH) {
    int end = at + BATCH < w->last ? at + BATCH : w->last;
    body.len = 0;
    add(&body, "{\"ids\":[");
    for (int i = at; i < end; i++) add(&body, "%s\"r%d\"", i > at ? "," : "", i);
    add(&body, "],\"embeddings\":[");
    for (int i = at; i < end; i++) {
      add(&body, "%s\"", i > at ? "," : "");
      add_base64(&body, vectors + (size_t)i * (size_t)dim);
      add(&body, "\"");
    }
    add(&body, "],\"documents\":[");
    for (int i = at; i < end; i++) add(&body, "%s\"document number %d about topic %d\"", i > at ? "," : "", i, i % 97);
    add(&body, "],\"metadatas\":[");
    for (int i = at; i < end; i++) add(&body, "%s{\"n\":%d,\"topic\":\"t%d\"}", i > at ? "," : "", i, i % 97);
    add(&body, "]}");
    request(&out, "POST", path, &body);
    int status = fd < 0 ? -1 : ask(fd, &out, &in, &answer);
    if (status != 201 && status != 200) {
      w->errors++;
      if (fd >= 0) close(fd);
      fd = dial();
    }
  }
  if (fd >= 0) close(fd);
  free(out.data);
  free(in.data);
  free(body.data);
  return NULL;
}

static void make_upsert(text *out, text *body, const worker *w) {
  char path[300];
  snprintf(path, sizeof path, "/collections/%s/upsert", collection);
  body->len = 0;
  add(body, "{\"ids\":[\"w%d-%d\"],\"embeddings\":[\"", w->number, w->written);
  add_base64(body, vectors + (size_t)((w->number * 7919 + w->written) % records) * (size_t)dim);
  add(body, "\"],\"documents\":[\"upserted %d\"],\"metadatas\":[{\"n\":%d}]}", w->written, w->written);
  request(out, "POST", path, body);
}

static void *load(void *ctx) {
  worker *w = ctx;
  text out = {0}, in = {0}, body = {0};
  const char *answer = NULL;
  char target[40];
  int fd = dial();
  uint64_t turn = (uint64_t)w->number * 37;
  double last_good = now();
  while (now() < deadline) {
    bool write = w->mixed && turn % 10 == 9;
    int q = (int)(turn++ % QUERIES);
    if (fd < 0) {
      fd = dial();
      if (fd < 0) {
        w->errors++;
        usleep(1000);
        continue;
      }
    }
    if (write) make_upsert(&out, &body, w);
    double start = now();
    int status = ask(fd, write ? &out : &query_requests[q], &in, &answer), end_ok = status == 200;
    double end = now();
    if (status < 0) {
      close(fd);
      fd = -1;
    }
    if (!end_ok) {
      w->errors++;
      continue;
    }
    if (end - last_good > w->worst_gap) w->worst_gap = end - last_good;
    last_good = end;
    note(write ? &w->write : &w->query, (end - start) * 1e3);
    if (write) {
      w->written++;
    } else {
      snprintf(target, sizeof target, "\"r%d\"", query_targets[q]);
      w->asked++;
      w->hits += strstr(answer, target) != NULL;
    }
  }
  if (fd >= 0) close(fd);
  free(out.data);
  free(in.data);
  free(body.data);
  return NULL;
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x < y ? -1 : x > y;
}

static void report_times(const char *phase, const char *what, worker *w, int n, bool write, double took) {
  size_t total = 0, at = 0;
  for (int i = 0; i < n; i++) total += write ? w[i].write.n : w[i].query.n;
  float *all = malloc((total + 1) * sizeof *all);
  if (!all) die("memory");
  for (int i = 0; i < n; i++) {
    times *t = write ? &w[i].write : &w[i].query;
    memcpy(all + at, t->ms, t->n * sizeof *all);
    at += t->n;
  }
  qsort(all, total, sizeof *all, by_value);
  printf("%s.%s.%s_per_second %.0f\n", name, phase, what, (double)total / took);
  if (total)
    printf("%s.%s.%s_p50_ms %.3f\n%s.%s.%s_p99_ms %.3f\n", name, phase, what, (double)all[total / 2], name, phase, what,
           (double)all[total * 99 / 100]);
  free(all);
}

static void run_load(const char *phase, bool mixed, worker *w) {
  uint64_t errors = 0, hits = 0, asked = 0;
  double start = now(), gap = 0;
  deadline = start + seconds;
  for (int i = 0; i < connections; i++) {
    float *q = w[i].query.ms ? w[i].query.ms : malloc(MOST_TIMES / 16 * sizeof *q * 16 / (size_t)connections + 4096);
    float *u = w[i].write.ms ? w[i].write.ms : malloc(MOST_TIMES / 16 * sizeof *u * 16 / (size_t)connections + 4096);
    if (!q || !u) die("memory");
    w[i] = (worker){.number = i, .mixed = mixed, .query = {.ms = q}, .write = {.ms = u}};
    if (pthread_create(&w[i].thread, NULL, load, &w[i]) != 0) die("thread");
  }
  for (int i = 0; i < connections; i++) pthread_join(w[i].thread, NULL);
  double took = now() - start;
  for (int i = 0; i < connections; i++) {
    errors += w[i].errors;
    hits += w[i].hits;
    asked += w[i].asked;
    if (w[i].worst_gap > gap) gap = w[i].worst_gap;
  }
  report_times(phase, "query", w, connections, false, took);
  if (mixed) report_times(phase, "upsert", w, connections, true, took);
  printf("%s.%s.errors %llu\n%s.%s.found_percent %.2f\n%s.%s.longest_silence_ms %.1f\n", name, phase,
         (unsigned long long)errors, name, phase, asked ? 100.0 * (double)hits / (double)asked : 0, name, phase,
         gap * 1e3);
}

/* Every acknowledged upsert must be there. */
static void check_writes(const worker *w) {
  text out = {0}, in = {0}, body = {0};
  const char *answer;
  char path[300];
  uint64_t lost = 0, total = 0;
  int fd = dial();
  snprintf(path, sizeof path, "/collections/%s/get", collection);
  for (int i = 0; i < connections; i++) {
    for (int at = 0; at < w[i].written; at += BATCH) {
      int end = at + BATCH < w[i].written ? at + BATCH : w[i].written, n = 0;
      body.len = 0;
      add(&body, "{\"include\":[],\"ids\":[");
      for (int k = at; k < end; k++) add(&body, "%s\"w%d-%d\"", k > at ? "," : "", i, k);
      add(&body, "]}");
      request(&out, "POST", path, &body);
      if (ask(fd, &out, &in, &answer) != 200) die("check");
      for (const char *p = answer; (p = strstr(p, "\"w")) != NULL; p++) n++;
      lost += (uint64_t)(end - at - n);
      total += (uint64_t)(end - at);
    }
  }
  close(fd);
  printf("%s.mixed.acknowledged %llu\n%s.mixed.lost %llu\n", name, (unsigned long long)total, name,
         (unsigned long long)lost);
  free(out.data);
  free(in.data);
  free(body.data);
}

static void create_collection(void) {
  text out = {0}, in = {0}, body = {0};
  const char *answer;
  int fd = dial();
  add(&body, "{\"name\":\"bench\",\"get_or_create\":true}");
  request(&out, "POST", "/collections", &body);
  if (fd < 0 || ask(fd, &out, &in, &answer) != 200) die("the server does not answer");
  const char *id = strstr(answer, "\"id\":\"");
  if (!id || sscanf(id + 6, "%36[0-9a-f-]", collection) != 1) die("no collection id");
  close(fd);
  free(out.data);
  free(in.data);
  free(body.data);
}

int main(int argc, char **argv) {
  if (argc != 8) {
    fprintf(stderr, "usage: load HOST PORT NAME RECORDS DIM CONNECTIONS SECONDS\n");
    return 2;
  }
  host = argv[1];
  port = (int)strtol(argv[2], NULL, 10);
  name = argv[3];
  records = (int)strtol(argv[4], NULL, 10);
  dim = (int)strtol(argv[5], NULL, 10);
  connections = (int)strtol(argv[6], NULL, 10);
  seconds = strtod(argv[7], NULL);
  worker *w = calloc((size_t)connections + INGEST_CONNECTIONS, sizeof *w);
  if (!w || records < 1 || dim < 1 || connections < 1) return 2;
  make_data();
  create_collection();
  double start = now();
  uint64_t errors = 0;
  for (int i = 0; i < INGEST_CONNECTIONS; i++) {
    w[i] = (worker){.first = records / INGEST_CONNECTIONS * i,
                    .last = i == INGEST_CONNECTIONS - 1 ? records : records / INGEST_CONNECTIONS * (i + 1)};
    if (pthread_create(&w[i].thread, NULL, ingest, &w[i]) != 0) die("thread");
  }
  for (int i = 0; i < INGEST_CONNECTIONS; i++) {
    pthread_join(w[i].thread, NULL);
    errors += w[i].errors;
  }
  printf("%s.ingest.records_per_second %.0f\n%s.ingest.errors %llu\n", name, records / (now() - start), name,
         (unsigned long long)errors);
  fflush(stdout);
  memset(w, 0, sizeof *w * ((size_t)connections + INGEST_CONNECTIONS));
  make_queries();
  run_load("query", false, w);
  fflush(stdout);
  run_load("mixed", true, w);
  check_writes(w);
  free(w);
  free(vectors);
  return 0;
}
