/* bench_cluster.c - one program against any store, by its address: rows written, queries, queries with a filter, a second; recall.
 *
 *   bench_cluster STORE ROWS [RECALL]
 *
 * Vectors lie in heaps, as those of texts do: half of each is that of one of HEAPS rows, half its own. RECALL: queries go with the least
 * effort that finds this share of the true nearest, so that stores are compared at the same recall; else with the default one.
 */
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRITE_BATCH = 500, QUERIES = 1000, RECALL_QUERIES = 200, K = 10, HEAPS = 500, THREADS = 4 };

static void heap_vector(float *out, uint32_t i) {
  float own[DIM];
  row_vector(out, i * 7919u % HEAPS);
  row_vector(own, 1000000000u + i);
  for (size_t d = 0; d < DIM; d++) out[d] = 0.5f * out[d] + 0.5f * own[d];
}

static double write_rows(opened *o, uint32_t rows) {
  lode_error err;
  batch *b = batch_new();
  double took = 0;
  for (uint32_t at = 0; at < rows; at += WRITE_BATCH) {
    size_t n = rows - at < WRITE_BATCH ? rows - at : WRITE_BATCH;
    batch_fill(b, at, n);
    for (size_t k = 0; k < n; k++) heap_vector(b->rows[k].vector, at + (uint32_t)k);
    double start = now_s();
    need(lode_add(o->collection, NULL, b->records, n, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    took += now_s() - start;
  }
  free(b);
  return rows / took;
}

typedef struct asking {
  lode_collection *collection;
  const char *where;
  uint32_t first, n, effort;
  double took;
} asking;

static lode_result *query(const asking *a, uint32_t i, bool exact) {
  lode_error err;
  float v[DIM];
  lode_result *result;
  lode_query_request q = {.vectors = v, .dimension = DIM, .n = 1, .k = K, .include = LODE_DOCUMENT | LODE_METADATA, .effort = a->effort, .exact = exact};
  if (a->where) q.select.where = (lode_str){a->where, __builtin_strlen(a->where)};
  heap_vector(v, i);
  need(lode_query(a->collection, &q, &result, &err), &err, "query");
  if (lode_result_count(result) != K) fail("%zu results", lode_result_count(result));
  return result;
}

static void *ask(void *ctx) {
  asking *a = ctx;
  for (uint32_t i = 0; i < a->n; i++) {
    double start = now_s();
    lode_result *result = query(a, a->first + i, false);
    a->took += now_s() - start;
    lode_result_free(result);
  }
  return NULL;
}

/* Queries a second; warms up first. */
static double rate(const asking *what) {
  asking a = *what;
  (void)ask(&a);
  a.took = 0;
  (void)ask(&a);
  return a.n / a.took;
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
  for (uint32_t i = 0; i < RECALL_QUERIES; i++) {
    lode_result *got = query(a, a->first + i, false), *best = query(a, a->first + i, true);
    for (size_t x = 0; x < K; x++) {
      const lode_row *row = lode_result_at(got, x);
      found += row->distance <= lode_result_at(best, K - 1)->distance;
    }
    lode_result_free(got);
    lode_result_free(best);
  }
  return (double)found / (K * RECALL_QUERIES);
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4) fail("usage: bench_cluster STORE ROWS [RECALL]");
  uint32_t rows = number(argv[2], 1000, 10000000, "ROWS");
  double wanted = argc == 4 ? strtod(argv[3], NULL) : 0;
  lode_error err;
  lode_open_options options = {.create = true};
  opened o = {0};
  need(lode_open(argv[1], &options, &o.store, &err), &err, "open");
  need(lode_collection_open(o.store, (lode_str){COLLECTION, sizeof COLLECTION - 1}, &(lode_collection_options){.create = true, .metric = LODE_COSINE},
                            &o.collection, &err), &err, "open the collection");
  asking a = {.collection = o.collection, .first = rows, .n = QUERIES};
  printf("ingest %.1f\n", write_rows(&o, rows));
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
  a.where = "{\"language\":\"c\"}";
  printf("filtered %.1f\n", rate(&a));
  printf("rss %.0f\n", memory_now_mib());
  close_store(&o);
  return 0;
}
