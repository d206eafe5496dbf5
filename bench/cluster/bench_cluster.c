/* SPDX-License-Identifier: Apache-2.0 */
/* bench_cluster.c - one program against any store, by its address: rows written, queries, queries with a filter, a
 * second; recall.
 *
 *   bench_cluster STORE ROWS [RECALL]
 *   bench_cluster --turns STORE EFFORT     in turns with another client of the same node, see turns.mjs
 *
 * Vectors lie in heaps, as those of texts do: half of each is that of one of HEAPS rows, half its own. RECALL: queries
 * go with the least effort that finds this share of the true nearest, so that stores are compared at the same recall;
 * else with the default one.
 */
#include "common.h"

#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WRITE_BATCH = 500, QUERIES = 1000, RECALL_QUERIES = 200, K = 10, HEAPS = 500, THREADS = 4 };

static void heap_vector(float *out, uint32_t i) {
  float own[DIM];
  row_vector(out, i * 7919u % HEAPS);
  row_vector(own, 1000000000u + i);
  for (size_t d = 0; d < DIM; d++) out[d] = 0.5f * out[d] + 0.5f * own[d];
}

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What the calls took; making rows and queries does not count. */
typedef struct taken {
  double wall, cpu;
} taken;
static taken begin(void) { return (taken){now_s(), cpu_s()}; }
static void end(taken *sum, taken start) {
  sum->wall += now_s() - start.wall;
  sum->cpu += cpu_s() - start.cpu;
}

static taken write_rows(lode_collection *c, uint32_t first, uint32_t rows) {
  lode_error err;
  batch *b = batch_new();
  taken took = {0};
  for (uint32_t at = 0; at < rows; at += WRITE_BATCH) {
    size_t n = rows - at < WRITE_BATCH ? rows - at : WRITE_BATCH;
    batch_fill(b, first + at, n);
    for (size_t k = 0; k < n; k++) heap_vector(b->rows[k].vector, first + at + (uint32_t)k);
    taken start = begin();
    need(lode_add(c, NULL, b->records, n, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    end(&took, start);
  }
  free(b);
  return took;
}

typedef struct asking {
  lode_collection *collection;
  const char *where;
  uint32_t first, n, effort;
  taken took;
} asking;

static lode_result *query(const asking *a, uint32_t i, bool exact, taken *took) {
  lode_error err;
  float v[DIM];
  lode_result *result;
  lode_query_request q = {.vectors = v,
                          .dimension = DIM,
                          .n = 1,
                          .k = K,
                          .include = LODE_DOCUMENT | LODE_METADATA,
                          .effort = a->effort,
                          .exact = exact};
  if (a->where) q.select.where = (lode_str){a->where, __builtin_strlen(a->where)};
  heap_vector(v, i);
  taken start = begin();
  need(lode_query(a->collection, &q, &result, &err), &err, "query");
  end(took, start);
  if (lode_result_count(result) != K) fail("%zu results", lode_result_count(result));
  return result;
}

static void *ask(void *ctx) {
  asking *a = ctx;
  a->took = (taken){0};
  for (uint32_t i = 0; i < a->n; i++) lode_result_free(query(a, a->first + i, false, &a->took));
  return NULL;
}

/* Queries a second; warms up first. */
static double rate(const asking *what) {
  asking a = *what;
  (void)ask(&a);
  (void)ask(&a);
  return a.n / a.took.wall;
}

static double rate_of_many(const asking *what) {
  pthread_t threads[THREADS];
  asking each[THREADS];
  double start = now_s();
  for (int i = 0; i < THREADS; i++) {
    each[i] = *what;
    each[i].first += (uint32_t)i * what->n;
    if (pthread_create(&threads[i], NULL, ask, &each[i])) fail("no thread");
  }
  for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
  return THREADS * what->n / (now_s() - start);
}

static double recall(const asking *a) {
  size_t found = 0;
  taken unused = {0};
  for (uint32_t i = 0; i < RECALL_QUERIES; i++) {
    lode_result *got = query(a, a->first + i, false, &unused), *best = query(a, a->first + i, true, &unused);
    for (size_t x = 0; x < K; x++) {
      const lode_row *row = lode_result_at(got, x);
      found += row->distance <= lode_result_at(best, K - 1)->distance;
    }
    lode_result_free(got);
    lode_result_free(best);
  }
  return (double)found / (K * RECALL_QUERIES);
}

static lode_collection *open_collection(lode_store *store, const char *name) {
  lode_error err;
  lode_collection *c;
  lode_collection_options how = {.create = true, .metric = LODE_COSINE};
  need(lode_collection_open(store, str_of(name), &how, &c, &err), &err, "open the collection");
  return c;
}

static opened open_address(const char *address) {
  lode_error err;
  opened o = {0};
  need(lode_open(address, &(lode_open_options){.create = true}, &o.store, &err), &err, "open");
  o.collection = open_collection(o.store, COLLECTION);
  return o;
}

/* ---- In turns with another client ---- */

#define FILTER "{\"language\":\"c\"}"
#define REHEARSAL "rehearsal"

static FILE *record; /* requests go there too, one a line */

static lode_status send_and_record(http_client *http, const http_request *r, http_response *response, lode_error *err) {
  (void)fprintf(record, "%s %s %.*s\n", r->method, r->url, (int)r->body.len, r->body.data ? r->body.data : "");
  return http_send(http, r, response, err);
}

/* Lines of stdin: `write FIRST N FILE`, `query FIRST N FILE`, `filter FIRST N FILE`; each is answered with the seconds
 * and the seconds of CPU that the calls took. With a FILE, which is not -, it is a rehearsal: the requests are
 * recorded, and rows go to a collection that lasts until `drop`. */
static void take_turns(const char *address, uint32_t effort) {
  opened o = open_address(address);
  lode_collection *rehearsal = open_collection(o.store, REHEARSAL);
  lode_error err;
  char line[1200], verb[16], file[1024];
  uint32_t first, n;
  (void)write_rows(rehearsal, 2000000000u, 1); /* its dimension is fixed: what is recorded are writes alone */
  while (fgets(line, sizeof line, stdin) && sscanf(line, "%15s %u %u %1023s", verb, &first, &n, file) == 4) {
    bool recorded = strcmp(file, "-") != 0;
    asking a = {.collection = o.collection,
                .first = first,
                .n = n,
                .effort = effort,
                .where = strcmp(verb, "filter") == 0 ? FILTER : NULL};
    if (recorded && !(record = fopen(file, "we"))) fail("%s cannot be written", file);
    remote_transport = recorded ? send_and_record : http_send;
    if (strcmp(verb, "drop") == 0)
      need(lode_collection_drop(o.store, str_of(REHEARSAL), &err), &err, "drop");
    else if (strcmp(verb, "write") == 0)
      a.took = write_rows(recorded ? rehearsal : o.collection, first, n);
    else
      (void)ask(&a);
    if (record && fclose(record)) fail("%s cannot be written", file);
    record = NULL;
    printf("%.6f %.6f\n", a.took.wall, a.took.cpu);
    (void)fflush(stdout);
  }
  lode_collection_close(rehearsal);
  close_store(&o);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--turns") == 0) {
    take_turns(argv[2], number(argv[3], 0, 4096, "EFFORT"));
    return 0;
  }
  if (argc < 3 || argc > 4) fail("usage: bench_cluster STORE ROWS [RECALL], bench_cluster --turns STORE EFFORT");
  uint32_t rows = number(argv[2], 1000, 10000000, "ROWS");
  double wanted = argc == 4 ? strtod(argv[3], NULL) : 0;
  opened o = open_address(argv[1]);
  asking a = {.collection = o.collection, .first = rows, .n = QUERIES};
  printf("ingest %.1f\n", rows / write_rows(o.collection, 0, rows).wall);
  double start = now_s();
  optimize(&o);
  printf("optimize %.1f\n", now_s() - start);
  double reached = recall(&a);
  for (a.effort = wanted > 0 ? 32 : 0; wanted > 0 && a.effort < 4096; a.effort *= 2)
    if ((reached = recall(&a)) >= wanted) break;
  printf("recall %.4f\n", reached);
  printf("effort %u\n", a.effort);
  printf("query %.1f\n", rate(&a));
  printf("query4 %.1f\n", rate_of_many(&a));
  a.where = FILTER;
  printf("filtered %.1f\n", rate(&a));
  printf("rss %.0f\n", memory_now_mib());
  close_store(&o);
  return 0;
}
