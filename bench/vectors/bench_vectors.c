/* SPDX-License-Identifier: Apache-2.0 */
/* bench_vectors.c - vector queries through lode.h: documents and metadata beside the vectors, durable, in a store on
 * disk.
 *
 *   bench_vectors load FILE STORE [--rows N] [--threads N]     FILE: of bench/index/make-data.mjs
 *   bench_vectors query FILE STORE TRUTH [--queries N]
 *   bench_vectors threads FILE STORE [--threads N]             one thread that asks against N (2)
 *   bench_vectors cold STORE FILE                              open + first query, by a new process
 *   bench_vectors truth FILE TRUTH [--rows N] [--queries N]    the distance of the tenth nearest of each query
 *
 * Prints "name value" lines. Recall counts ties fairly. Filters are on metadata "p" (0 to 99, spread evenly).
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lode.h"

enum { K = 10, BATCH = 1000, MOST_THREADS = 64 };

typedef struct data {
  uint32_t n, n_queries, dim, metric;
  float *rows, *queries;
} data;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void stop(const char *what) {
  fprintf(stderr, "bench_vectors: %s\n", what);
  exit(1);
}

static void check(lode_status st, const lode_error *err) {
  if (st != LODE_OK) stop(err->text);
}

static void *memory(size_t bytes) {
  void *p = malloc(bytes ? bytes : 1);
  if (!p) stop("out of memory");
  return p;
}

static void read_data(data *d, const char *file, uint32_t rows, uint32_t queries, bool with_rows) {
  uint32_t head[4];
  FILE *f = fopen(file, "rb");
  if (!f || fread(head, sizeof head, 1, f) != 1) stop(file);
  d->n = rows && rows < head[0] ? rows : head[0];
  d->n_queries = queries < head[1] ? queries : head[1];
  d->dim = head[2];
  d->metric = head[3];
  size_t bytes = d->dim * sizeof(float);
  d->queries = memory(d->n_queries * bytes);
  if (with_rows) {
    d->rows = memory(d->n * bytes);
    if (fread(d->rows, bytes, d->n, f) != d->n) stop(file);
  }
  if (fseek(f, (long)(sizeof head + head[0] * bytes), SEEK_SET) != 0) stop(file);
  if (fread(d->queries, bytes, d->n_queries, f) != d->n_queries) stop(file);
  fclose(f);
}

/* ---- Load ---- */

static void load(const data *d, const char *folder, uint32_t threads) {
  lode_error err;
  lode_store *store;
  lode_collection *c;
  lode_open_options o = {
      .create = true, .no_background = true, .memory_bytes = (uint64_t)1 << 30, .build_threads = threads};
  check(lode_open(folder, &o, &store, &err), &err);
  lode_collection_options co = {.create = true, .metric = d->metric ? LODE_COSINE : LODE_L2};
  check(lode_collection_open(store, (lode_str){"v", 1}, &co, &c, &err), &err);
  lode_record *r = memory(BATCH * sizeof *r);
  char *text = memory(BATCH * 256);
  double begin = now();
  for (uint32_t at = 0; at < d->n; at += BATCH) {
    uint32_t m = d->n - at < BATCH ? d->n - at : BATCH;
    for (uint32_t i = 0; i < m; i++) {
      char *p = text + i * 256;
      int id = snprintf(p, 24, "%u", at + i),
          meta = snprintf(p + 24, 64, "{\"p\":%u,\"kind\":\"row\"}", (at + i) * 7919u % 100);
      int doc = snprintf(p + 88, 160, "record number %u of the benchmark, with a few words of text", at + i);
      r[i] = (lode_record){.id = {p, (size_t)id},
                           .metadata = {p + 24, (size_t)meta},
                           .document = {p + 88, (size_t)doc},
                           .vector = d->rows + (size_t)(at + i) * d->dim,
                           .dimension = d->dim};
    }
    check(lode_add(c, NULL, r, m, LODE_FAIL_EXISTING, NULL, &err), &err);
  }
  printf("lode_add_s %.2f\n", now() - begin);
  check(lode_optimize(store, (lode_progress){0}, &err), &err);
  printf("lode_add_and_index_s %.2f\n", now() - begin);
  lode_stats s;
  check(lode_store_stats(store, &s, &err), &err);
  printf("lode_segments %llu\nlode_bytes %llu\n", (unsigned long long)s.segments, (unsigned long long)s.bytes);
  lode_collection_close(c);
  lode_close(store);
}

/* ---- Truth ---- */

static double distance(const data *d, const float *q, const float *v) {
  double dot = 0, l2 = 0, nq = 0, nv = 0;
  for (uint32_t j = 0; j < d->dim; j++) {
    dot += (double)q[j] * v[j], nq += (double)q[j] * q[j], nv += (double)v[j] * v[j];
    l2 += ((double)q[j] - v[j]) * ((double)q[j] - v[j]);
  }
  return d->metric ? 1 - (nq > 0 && nv > 0 ? dot / sqrt(nq * nv) : 0) : l2;
}

static void ask(lode_collection *c, const data *d, uint32_t q, const char *where, const lode_query_request *knobs,
                double *out, size_t *n) {
  lode_error err;
  lode_result *result;
  lode_query_request r = *knobs;
  r.vectors = d->queries + (size_t)q * d->dim;
  r.dimension = d->dim;
  r.n = 1;
  r.k = K;
  r.include = LODE_DOCUMENT | LODE_METADATA;
  if (where) r.select.where = (lode_str){where, strlen(where)};
  check(lode_query(c, &r, &result, &err), &err);
  *n = lode_result_count(result);
  for (size_t i = 0; i < *n; i++) out[i] = lode_result_at(result, i)->distance;
  lode_result_free(result);
}

typedef struct truth_part {
  const data *d;
  uint32_t first, step;
  double *bounds;
} truth_part;

static void *find_truth(void *ctx) {
  const truth_part *p = ctx;
  const data *d = p->d;
  for (uint32_t q = p->first; q < d->n_queries; q += p->step) {
    double best[K];
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
      double x = distance(d, d->queries + (size_t)q * d->dim, d->rows + (size_t)i * d->dim);
      if (n == K && x >= best[K - 1]) continue;
      uint32_t at = n < K ? n++ : K - 1;
      for (; at > 0 && best[at - 1] > x; at--) best[at] = best[at - 1];
      best[at] = x;
    }
    p->bounds[q] = best[n - 1];
  }
  return NULL;
}

/* In double precision, on two threads. */
static void truth(const data *d, const char *file) {
  enum { PARTS = 2 };
  double *bounds = memory(d->n_queries * sizeof *bounds);
  truth_part parts[PARTS];
  pthread_t threads[PARTS];
  for (uint32_t i = 0; i < PARTS; i++) {
    parts[i] = (truth_part){d, i, PARTS, bounds};
    if (pthread_create(&threads[i], NULL, find_truth, &parts[i]) != 0) stop("no thread");
  }
  for (uint32_t i = 0; i < PARTS; i++) pthread_join(threads[i], NULL);
  FILE *f = fopen(file, "wb");
  if (!f || fwrite(bounds, sizeof *bounds, d->n_queries, f) != d->n_queries) stop(file);
  fclose(f);
  free(bounds);
}

/* ---- Queries ---- */

static void open_warm(const char *folder, lode_store **store, lode_collection **c) {
  lode_error err;
  lode_open_options o = {.no_background = true, .memory_bytes = (uint64_t)1 << 30, .preload = true};
  check(lode_open(folder, &o, store, &err), &err);
  check(lode_collection_open(*store, (lode_str){"v", 1}, NULL, c, &err), &err);
}

/* A thread that asks all queries over and over for some time. */
typedef struct asker {
  lode_collection *c;
  const data *d;
  double seconds, speed;
} asker;

static void *ask_on(void *ctx) {
  asker *a = ctx;
  double out[K], begin = now(), past = 0;
  size_t n, asked = 0;
  static const lode_query_request none;
  while (past < a->seconds) {
    for (uint32_t q = 0; q < a->d->n_queries; q++) ask(a->c, a->d, q, NULL, &none, out, &n);
    asked += a->d->n_queries;
    past = now() - begin;
  }
  a->speed = (double)asked / past;
  return NULL;
}

static double ask_with(lode_collection *c, const data *d, unsigned threads, double seconds) {
  asker who[MOST_THREADS];
  pthread_t thread[MOST_THREADS];
  double sum = 0;
  for (unsigned i = 0; i < threads; i++) {
    who[i] = (asker){.c = c, .d = d, .seconds = seconds};
    if (pthread_create(&thread[i], NULL, ask_on, &who[i]) != 0) stop("no thread");
  }
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(thread[i], NULL);
    sum += who[i].speed;
  }
  return sum;
}

/* Rounds of one and of several are interleaved, after one in which each thread's connection gets its pages; the best of
 * each counts. */
static void threaded(const data *d, const char *folder, unsigned threads) {
  lode_store *store;
  lode_collection *c;
  double one = 0, many = 0;
  if (threads < 2 || threads > MOST_THREADS) threads = 2;
  open_warm(folder, &store, &c);
  (void)ask_with(c, d, threads, 0.3);
  for (int round = 0; round < 3; round++) {
    one = fmax(one, ask_with(c, d, 1, 1));
    many = fmax(many, ask_with(c, d, threads, 1));
  }
  printf("lode_one_thread_qps %.0f\nlode_%u_threads_qps %.0f\nlode_%u_threads_ratio %.2f\n", one, threads, many,
         threads, many / one);
  lode_collection_close(c);
  lode_close(store);
}

static void measure(lode_collection *c, const data *d, const char *name, const char *where,
                    const lode_query_request *knobs, const double *bounds) {
  double out[K], best = 0;
  size_t n, hits = 0;
  for (int round = 0; round < 3; round++) {
    double begin = now();
    hits = 0;
    for (uint32_t q = 0; q < d->n_queries; q++) {
      ask(c, d, q, where, knobs, out, &n);
      for (size_t i = 0; i < n && bounds; i++) hits += out[i] <= bounds[q] + 1e-5 * (1 + fabs(bounds[q]));
    }
    double speed = d->n_queries / (now() - begin);
    if (speed > best) best = speed;
  }
  printf("%s_qps %.0f\n", name, best);
  if (bounds) printf("%s_recall %.4f\n", name, (double)hits / ((double)d->n_queries * K));
  fflush(stdout);
}

/* The first use of a filter, its later ones, and the exact scan of what matches, for as many queries as fit in some
 * seconds. */
static void filtered(lode_collection *c, const data *d, unsigned percent) {
  char where[64], name[64];
  double *bounds = memory(d->n_queries * sizeof *bounds), out[K];
  static const lode_query_request none;
  lode_query_request exact = {.exact = true};
  size_t n;
  data some = *d;
  snprintf(where, sizeof where, "{\"p\":{\"$lt\":%u}}", percent);
  snprintf(name, sizeof name, "lode_filter_%u", percent);
  double begin = now();
  ask(c, d, 0, where, &none, out, &n);
  printf("%s_first_ms %.2f\n", name, (now() - begin) * 1e3);
  begin = now();
  for (some.n_queries = 0; some.n_queries < d->n_queries && (some.n_queries < 5 || now() - begin < 3);
       some.n_queries++) {
    ask(c, d, some.n_queries, where, &exact, out, &n);
    bounds[some.n_queries] = n == K ? out[K - 1] : INFINITY;
  }
  printf("%s_exact_qps %.1f\n", name, some.n_queries / (now() - begin));
  measure(c, &some, name, where, &none, bounds);
  free(bounds);
}

static void query(const data *d, const char *folder, const char *truth_file) {
  lode_store *store;
  lode_collection *c;
  double *bounds = memory(d->n_queries * sizeof *bounds);
  FILE *f = fopen(truth_file, "rb");
  if (!f || fread(bounds, sizeof *bounds, d->n_queries, f) != d->n_queries) stop(truth_file);
  fclose(f);
  open_warm(folder, &store, &c);
  static const lode_query_request none;
  measure(c, d, "lode", NULL, &none, bounds);
  lode_query_request knobs = {.target_recall = 0.95};
  measure(c, d, "lode_095", NULL, &knobs, bounds);
  knobs.target_recall = 0.99;
  measure(c, d, "lode_099", NULL, &knobs, bounds);
  static const unsigned percents[] = {1, 10, 50, 99};
  for (size_t i = 0; i < 4; i++) filtered(c, d, percents[i]);
  lode_collection_close(c);
  lode_close(store);
  free(bounds);
}

static void cold(const data *d, const char *folder) {
  lode_error err;
  lode_store *store;
  lode_collection *c;
  double out[K], begin = now();
  size_t n;
  uint64_t count;
  static const lode_query_request none;
  lode_open_options o = {.read_only = true};
  check(lode_open(folder, &o, &store, &err), &err);
  check(lode_collection_open(store, (lode_str){"v", 1}, NULL, &c, &err), &err);
  check(lode_count(c, &count, &err), &err);
  printf("lode_cold_count_ms %.2f\n", (now() - begin) * 1e3);
  ask(c, d, 0, NULL, &none, out, &n);
  printf("lode_cold_query_ms %.2f\n", (now() - begin) * 1e3);
  lode_collection_close(c);
  lode_close(store);
}

int main(int argc, char **argv) {
  uint32_t rows = 0, queries = 300, threads = 0;
  const char *names[4] = {0};
  int n = 0;
  for (int i = 1; i < argc; i++) {
    bool value = i + 1 < argc;
    if (strcmp(argv[i], "--rows") == 0 && value)
      rows = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--queries") == 0 && value)
      queries = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--threads") == 0 && value)
      threads = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (n < 4)
      names[n++] = argv[i];
  }
  if (n < 3) stop("usage: see the head of bench_vectors.c");
  data d = {0};
  if (strcmp(names[0], "load") == 0)
    read_data(&d, names[1], rows, queries, true), load(&d, names[2], threads);
  else if (strcmp(names[0], "truth") == 0)
    read_data(&d, names[1], rows, queries, true), truth(&d, names[2]);
  else if (strcmp(names[0], "query") == 0 && n == 4)
    read_data(&d, names[1], rows, queries, false), query(&d, names[2], names[3]);
  else if (strcmp(names[0], "threads") == 0)
    read_data(&d, names[1], rows, queries, false), threaded(&d, names[2], threads);
  else if (strcmp(names[0], "cold") == 0)
    read_data(&d, names[2], rows, queries, false), cold(&d, names[1]);
  else
    stop("load, truth, query, threads or cold?");
  free(d.rows);
  free(d.queries);
  return 0;
}
