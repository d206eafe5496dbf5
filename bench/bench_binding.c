/* SPDX-License-Identifier: Apache-2.0 */
/* bench_binding.c - the calls of bench/python/bench.py, made from C on the same store: what is left of Python's figures
 * is the binding's.
 *
 *   bench_binding FOLDER CALLS ROUNDS      prints "name seconds" of CPU for one call of each kind, the best of the
 * rounds
 *
 * FOLDER is what bench.py has made: collection "bench", ids r0, r1, ...; the questions are the vectors of its first
 * records.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 1000 };

typedef struct questions {
  uint32_t dimension, n; /* n <= MANY */
  float *vectors;
} questions;

typedef void call_fn(lode_collection *c, const questions *q, uint32_t i);

static void do_count(lode_collection *c, const questions *q, uint32_t i) {
  uint64_t n;
  lode_error err;
  (void)q, (void)i;
  need(lode_count(c, &n, &err), &err, "counting");
}

static void do_get(lode_collection *c, const questions *q, uint32_t i) {
  char text[32];
  lode_error err;
  lode_result *rows;
  lode_str id = {text, (size_t)snprintf(text, sizeof text, "r%u", i % q->n)};
  lode_get_request request = {.select = {.ids = &id, .n_ids = 1}, .include = LODE_DOCUMENT | LODE_METADATA};
  need(lode_get(c, &request, &rows, &err), &err, "getting");
  lode_result_free(rows);
}

static void ask(lode_collection *c, const questions *q, uint32_t first, uint32_t n, unsigned include) {
  lode_error err;
  lode_result *rows;
  lode_query_request request = {.vectors = q->vectors + (size_t)first * q->dimension,
                                .n = n,
                                .dimension = q->dimension,
                                .k = 10,
                                .include = include};
  need(lode_query(c, &request, &rows, &err), &err, "asking");
  lode_result_free(rows);
}

static void do_query(lode_collection *c, const questions *q, uint32_t i) { ask(c, q, i % q->n, 1, 0); }
static void do_query_parts(lode_collection *c, const questions *q, uint32_t i) {
  ask(c, q, i % q->n, 1, LODE_DOCUMENT | LODE_METADATA);
}
static void do_query_many(lode_collection *c, const questions *q, uint32_t i) {
  (void)i;
  ask(c, q, 0, q->n, 0);
}

/* Others on the machine are not in it */
static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static questions questions_of(lode_collection *c) {
  lode_error err;
  lode_result *rows;
  lode_get_request first = {.include = LODE_VECTOR, .limit = MANY};
  need(lode_get(c, &first, &rows, &err), &err, "reading the questions");
  questions q = {.n = (uint32_t)lode_result_count(rows)};
  if (q.n == 0) fail("the store is empty");
  q.dimension = lode_result_at(rows, 0)->dimension;
  q.vectors = room((size_t)q.n * q.dimension * sizeof(float));
  for (size_t i = 0; i < q.n; i++)
    memcpy(q.vectors + i * q.dimension, lode_result_at(rows, i)->vector, q.dimension * sizeof(float));
  lode_result_free(rows);
  return q;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    call_fn *fn;
    bool once; /* a round is one call */
  } kinds[] = {{"count", do_count, false},
               {"get", do_get, false},
               {"query", do_query, false},
               {"query_parts", do_query_parts, false},
               {"query_many", do_query_many, true}};
  if (argc != 4) fail("usage: bench_binding FOLDER CALLS ROUNDS");
  uint32_t most = number(argv[2], 1, 1000000, "calls"), rounds = number(argv[3], 1, 1000000, "rounds");
  opened o = open_store(argv[1], &(lode_open_options){.read_only = true});
  questions q = questions_of(o.collection);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    uint32_t calls = kinds[k].once ? 1 : most;
    double best = 1e9;
    for (uint32_t round = 0; round < rounds; round++) {
      double start = cpu_s();
      for (uint32_t i = 0; i < calls; i++) kinds[k].fn(o.collection, &q, i);
      double each = (cpu_s() - start) / calls;
      if (each < best) best = each;
    }
    printf("%s %.9f\n", kinds[k].name, best);
  }
  free(q.vectors);
  close_store(&o);
  return 0;
}
