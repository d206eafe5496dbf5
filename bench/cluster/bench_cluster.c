/* bench_cluster.c - one program against any store, by its address: rows written, queries, queries with a filter, a second.
 *
 *   bench_cluster STORE ROWS
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { WRITE_BATCH = 500, QUERIES = 1000 };

static double write_rows(opened *o, uint32_t rows) {
  lode_error err;
  batch *b = batch_new();
  double took = 0;
  for (uint32_t at = 0; at < rows; at += WRITE_BATCH) {
    size_t n = rows - at < WRITE_BATCH ? rows - at : WRITE_BATCH;
    batch_fill(b, at, n);
    double start = now_s();
    need(lode_add(o->collection, NULL, b->records, n, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    took += now_s() - start;
  }
  free(b);
  return rows / took;
}

static double ask(opened *o, uint32_t rows, const char *where) {
  lode_error err;
  float v[DIM];
  lode_query_request q = {.vectors = v, .dimension = DIM, .n = 1, .k = 10, .include = LODE_DOCUMENT | LODE_METADATA};
  if (where) q.select.where = (lode_str){where, __builtin_strlen(where)};
  double took = 0;
  for (uint32_t i = 0; i < QUERIES; i++) {
    lode_result *result;
    row_vector(v, rows + i);
    double start = now_s();
    need(lode_query(o->collection, &q, &result, &err), &err, "query");
    took += now_s() - start;
    if (lode_result_count(result) != 10) fail("%zu results", lode_result_count(result));
    lode_result_free(result);
  }
  return QUERIES / took;
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage: bench_cluster STORE ROWS");
  uint32_t rows = number(argv[2], 1000, 10000000, "ROWS");
  lode_open_options options = {.create = true};
  opened o = open_store(argv[1], &options);
  printf("ingest %.1f\n", write_rows(&o, rows));
  optimize(&o);
  (void)ask(&o, rows, NULL);
  printf("query %.1f\n", ask(&o, rows, NULL));
  (void)ask(&o, rows, "{\"language\":\"c\"}");
  printf("filtered %.1f\n", ask(&o, rows, "{\"language\":\"c\"}"));
  printf("rss %.0f\n", memory_now_mib());
  close_store(&o);
  return 0;
}
