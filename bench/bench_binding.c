/* bench_binding.c - the calls of bench/python/bench.py, made from C on the same store: what is left of Python's figures is the binding's.
 *
 *   bench_binding FOLDER CALLS      prints "name seconds" for one call of each kind, the best of several rounds
 *
 * FOLDER is what bench.py has made: collection "bench", 384 numbers, ids r0, r1, ...; the questions are its vectors.
 */
#include "common.h"

#include <stdio.h>

enum { ROUNDS = 7, MANY = 1000 };

typedef void call_fn(lode_collection *c, const float *questions, uint32_t i);

static void do_count(lode_collection *c, const float *questions, uint32_t i) {
  uint64_t n;
  lode_error err;
  (void)questions, (void)i;
  need(lode_count(c, &n, &err), &err, "counting");
}

static void do_get(lode_collection *c, const float *questions, uint32_t i) {
  char text[32];
  lode_error err;
  lode_result *rows;
  (void)questions;
  lode_str id = {text, (size_t)snprintf(text, sizeof text, "r%u", i % MANY)};
  lode_get_request request = {.select = {.ids = &id, .n_ids = 1}, .include = LODE_DOCUMENT | LODE_METADATA};
  need(lode_get(c, &request, &rows, &err), &err, "getting");
  lode_result_free(rows);
}

static void ask(lode_collection *c, const float *questions, size_t n, lode_query_request request) {
  lode_error err;
  lode_result *rows;
  request.vectors = questions;
  request.n = n;
  request.dimension = DIM;
  request.k = 10;
  need(lode_query(c, &request, &rows, &err), &err, "asking");
  lode_result_free(rows);
}

static void do_query(lode_collection *c, const float *questions, uint32_t i) {
  ask(c, questions + (size_t)(i % MANY) * DIM, 1, (lode_query_request){.include = 0});
}
static void do_query_many(lode_collection *c, const float *questions, uint32_t i) {
  (void)i;
  ask(c, questions, MANY, (lode_query_request){.include = 0});
}

static void measure(const char *name, call_fn *fn, lode_collection *c, const float *questions, uint32_t calls) {
  double best = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now_s();
    for (uint32_t i = 0; i < calls; i++) fn(c, questions, i);
    double each = (now_s() - start) / calls;
    if (each < best) best = each;
  }
  printf("%s %.9f\n", name, best);
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage: bench_binding FOLDER CALLS");
  uint32_t calls = number(argv[2], 1, 1000000, "calls");
  lode_error err;
  lode_result *rows;
  opened o = open_store(argv[1], &(lode_open_options){.read_only = true});
  lode_get_request all = {.include = LODE_VECTOR, .limit = MANY};
  float *questions = room((size_t)MANY * DIM * sizeof(float));
  need(lode_get(o.collection, &all, &rows, &err), &err, "reading the questions");
  if (lode_result_count(rows) != MANY) fail("the store is too small");
  for (size_t i = 0; i < MANY; i++)
    for (size_t k = 0; k < DIM; k++) questions[i * DIM + k] = lode_result_at(rows, i)->vector[k];
  lode_result_free(rows);
  measure("count", do_count, o.collection, questions, calls);
  measure("get", do_get, o.collection, questions, calls);
  measure("query", do_query, o.collection, questions, calls);
  measure("query_many", do_query_many, o.collection, questions, 1);
  close_store(&o);
  return 0;
}
