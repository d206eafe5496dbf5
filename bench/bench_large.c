/* SPDX-License-Identifier: Apache-2.0 */
/* bench_large.c - a vector index that is larger than the memory budget: built, opened, searched, updated.
 *
 *   bench_large NAME FOLDER ROWS DIM BUDGET_MIB QUERIES
 *
 * Rows are vectors alone: points of 16 latent dimensions around 1,000 centres, spread over DIM dimensions, l2. They are
 * added as a bulk load, then lode_optimize() makes the graphs; the store is opened again, QUERIES are asked for their
 * ten nearest, one at a time, and a hundredth of the rows is replaced. Recall is measured against exact search, for the
 * first of the queries. Peaks are those of the whole process, per stage; cpu_ms is the time of the processor for a
 * query.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LATENT = 16, CENTRES = 1000, K = 10, EXACT_QUERIES = 30 };

typedef struct maker {
  uint32_t dim;
  float *basis;   /* LATENT x dim */
  float *vectors; /* BATCH x dim */
  char (*ids)[32];
  lode_record *records;
} maker;

static float normal(uint32_t *state) {
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += (float)(int32_t)random_next(state) / 2147483648.0f;
  return sum;
}

static void make_vector(const maker *m, float *out, uint32_t i, uint32_t stream) {
  uint32_t state = i * 2654435761u + stream * 40503u, centre = random_next(&state) % CENTRES * 7919u + 17u;
  memset(out, 0, m->dim * sizeof *out);
  for (uint32_t l = 0; l < LATENT; l++) {
    float z = normal(&centre) + 0.5f * normal(&state);
    for (uint32_t d = 0; d < m->dim; d++) out[d] += z * m->basis[(size_t)l * m->dim + d];
  }
}

static maker maker_new(uint32_t dim) {
  uint32_t state = 1;
  maker m = {.dim = dim,
             .basis = room((size_t)LATENT * dim * sizeof *m.basis),
             .vectors = room((size_t)BATCH * dim * sizeof *m.vectors),
             .ids = room(BATCH * sizeof *m.ids),
             .records = room(BATCH * sizeof *m.records)};
  for (size_t i = 0; i < (size_t)LATENT * dim; i++) m.basis[i] = normal(&state);
  return m;
}

/* Rows first, first + step, ...; stream 1 are those that were added first. */
static void put_rows(opened *o, maker *m, uint32_t first, uint32_t step, uint32_t n, uint32_t stream) {
  lode_error err;
  for (uint32_t i = 0; i < n; i++) {
    float *vector = m->vectors + (size_t)i * m->dim;
    make_vector(m, vector, first + i * step, stream);
    size_t len = row_id(m->ids[i], sizeof m->ids[i], first + i * step);
    m->records[i] = (lode_record){.id = {m->ids[i], len}, .vector = vector, .dimension = m->dim};
  }
  need(lode_upsert(o->collection, NULL, m->records, n, NULL, &err), &err, "add");
}

static void load(const char *name, const char *folder, maker *m, uint32_t rows, lode_open_options options) {
  double start = now_s();
  options.create = options.bulk_load = true;
  opened o = open_store(folder, &options);
  for (uint32_t at = 0; at < rows; at += BATCH) put_rows(&o, m, at, 1, rows - at < BATCH ? rows - at : BATCH, 1);
  say(name, "load_s", now_s() - start);
  say(name, "load_peak_mib", memory_peak_mib());
  memory_reset_peak();
  start = now_s();
  optimize(&o);
  say(name, "optimize_s", now_s() - start);
  say(name, "optimize_peak_mib", memory_peak_mib());
  close_store(&o);
}

static lode_result *ask(opened *o, const maker *m, const float *vector, bool exact) {
  lode_error err;
  lode_result *result = NULL;
  lode_query_request q = {
      .mode = LODE_BY_VECTOR, .vectors = vector, .dimension = m->dim, .n = 1, .k = K, .exact = exact};
  need(lode_query(o->collection, &q, &result, &err), &err, "query");
  if (lode_result_count(result) != K) fail("%zu results", lode_result_count(result));
  return result;
}

static void search(const char *name, opened *o, const maker *m, uint32_t queries) {
  float *query = room(m->dim * sizeof *query);
  double *took = room(queries * sizeof *took), found = 0, first = 0;
  uint32_t compared = queries < EXACT_QUERIES ? queries : EXACT_QUERIES;
  clock_t cpu = clock();
  for (uint32_t i = 0; i < queries; i++) {
    make_vector(m, query, i, 3);
    double start = now_s();
    lode_result_free(ask(o, m, query, false));
    took[i] = now_s() - start;
    if (i == 0) first = took[0];
  }
  say(name, "cpu_ms", (double)(clock() - cpu) / CLOCKS_PER_SEC * 1e3 / queries);
  say(name, "first_ms", first * 1e3);
  say(name, "p50_ms", percentile(took, queries, 0.5) * 1e3);
  say(name, "p99_ms", percentile(took, queries, 0.99) * 1e3);
  say(name, "search_peak_mib", memory_peak_mib());
  for (uint32_t i = 0; i < compared; i++) {
    make_vector(m, query, i, 3);
    lode_result *near = ask(o, m, query, false), *exact = ask(o, m, query, true);
    for (size_t r = 0; r < K; r++) found += lode_result_at(near, r)->distance <= lode_result_at(exact, K - 1)->distance;
    lode_result_free(near);
    lode_result_free(exact);
  }
  say(name, "recall", found / compared / K);
  say(name, "exact_peak_mib", memory_peak_mib());
  free(took);
  free(query);
}

int main(int argc, char **argv) {
  if (argc != 7) fail("usage: bench_large NAME FOLDER ROWS DIM BUDGET_MIB QUERIES");
  const char *name = argv[1], *folder = argv[2];
  uint32_t rows = number(argv[3], 10000, 100000000, "ROWS"), dim = number(argv[4], 8, LODE_MAX_DIMENSION, "DIM"),
           queries = number(argv[6], 1, 1000000, "QUERIES");
  lode_open_options options = {.memory_bytes = (uint64_t)number(argv[5], 16, 65536, "BUDGET_MIB") << 20};
  double files, bytes;
  maker m = maker_new(dim);
  memory_reset_peak();
  load(name, folder, &m, rows, options);
  memory_reset_peak();
  double start = now_s();
  opened o = open_store(folder, &options);
  say(name, "open_ms", (now_s() - start) * 1e3);
  search(name, &o, &m, queries);
  memory_reset_peak();
  start = now_s();
  for (uint32_t at = 0; at < rows / 100; at += BATCH)
    put_rows(&o, &m, at * 100, 100, rows / 100 - at < BATCH ? rows / 100 - at : BATCH, 2);
  say(name, "update_s", now_s() - start);
  say(name, "update_peak_mib", memory_peak_mib());
  close_store(&o);
  folder_size(folder, &files, &bytes);
  say(name, "disk_mib", bytes / (1 << 20));
  return 0;
}
