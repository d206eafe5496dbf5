/* SPDX-License-Identifier: Apache-2.0 */
/* bench_query.c - an exact query through the public API, against a plain read of as many bytes.
 *
 *   bench_query NAME FOLDER ROWS ROUNDS      a store made by bench_ingest; where there is none, one without a vector
 * index
 *
 * The ten nearest of all rows, ids and distances only, after warming up. The plain read adds up a buffer of the same
 * size as integers, in one thread. Rounds are interleaved, and the best of each kind counts. The answers are
 * compared once with a plain loop over the same vectors.
 */
#include "common.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { K = 10, QUERIES = 4 };

typedef uint64_t words __attribute__((vector_size(32), aligned(4), may_alias));

static inline __attribute__((always_inline)) uint64_t sum_words(const float *data, size_t bytes) {
  const words *w = (const words *)data;
  words s[4] = {{0}};
  for (size_t n = bytes / sizeof(words) / 4; n > 0; n--, w += 4) {
    s[0] += w[0];
    s[1] += w[1];
    s[2] += w[2];
    s[3] += w[3];
  }
  s[0] += s[1] + s[2] + s[3];
  return s[0][0] + s[0][1] + s[0][2] + s[0][3];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t sum_avx2(const float *data, size_t bytes) {
  return sum_words(data, bytes);
}
#endif

static uint64_t plain_read(const float *data, size_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return sum_avx2(data, bytes);
#endif
  return sum_words(data, bytes);
}

static double distance(const float *a, const float *b) {
  double sum = 0;
  for (size_t d = 0; d < DIM; d++) sum += ((double)a[d] - b[d]) * ((double)a[d] - b[d]);
  return sum;
}

static lode_result *ask(opened *o, const float *vector) {
  lode_error err;
  lode_result *result = NULL;
  lode_query_request q = {.mode = LODE_BY_VECTOR, .vectors = vector, .dimension = DIM, .n = 1, .k = K, .exact = true};
  need(lode_query(o->collection, &q, &result, &err), &err, "query");
  return result;
}

/* The k-th answer must be as near as the k-th of the loop. */
static void compare(opened *o, const float *data, size_t rows, const float *query) {
  double *all = room(rows * sizeof *all);
  lode_result *result = ask(o, query);
  for (size_t i = 0; i < rows; i++) all[i] = distance(data + i * DIM, query);
  (void)percentile(all, rows, 0);
  size_t want = rows < K ? rows : K;
  if (lode_result_count(result) != want) fail("%zu answers, not %zu", lode_result_count(result), want);
  for (size_t k = 0; k < want; k++) {
    double got = lode_result_at(result, k)->distance, off = got - all[k];
    if (off < -1e-4 * all[k] || off > 1e-4 * all[k]) fail("answer %zu is at %g, the exact one at %g", k, got, all[k]);
  }
  lode_result_free(result);
  free(all);
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: bench_query NAME FOLDER ROWS ROUNDS");
  const char *name = argv[1], *folder = argv[2];
  size_t rows = number(argv[3], 1, 10000000, "ROWS"), rounds = number(argv[4], 1, 10000, "ROUNDS");
  size_t bytes = rows * DIM * sizeof(float);
  float *data = room(bytes), queries[QUERIES][DIM];
  for (size_t i = 0; i < rows; i++) row_vector(data + i * DIM, (uint32_t)i);
  for (size_t q = 0; q < QUERIES; q++) row_vector(queries[q], UINT32_MAX - (uint32_t)q);
  if (access(folder, F_OK) != 0) fill_store(folder, (uint32_t)rows, false); /* searched in memory */
  lode_open_options options = {.read_only = true, .memory_bytes = (uint64_t)bytes * 2 + (64u << 20)};
  opened o = open_store(folder, &options);
  double start = now_s(), first, read_best = 0, query_best = 0, *took = room(rounds * sizeof *took);
  lode_result_free(ask(&o, queries[0]));
  first = now_s() - start;
  compare(&o, data, rows, queries[0]);
  uint64_t sum = 0;
  for (size_t round = 0; round < rounds; round++) {
    start = now_s();
    sum += plain_read(data, bytes);
    double read = now_s() - start;
    start = now_s();
    lode_result_free(ask(&o, queries[round % QUERIES]));
    took[round] = now_s() - start;
    if (round == 0 || read < read_best) read_best = read;
    if (round == 0 || took[round] < query_best) query_best = took[round];
  }
  say(name, "rows", (double)rows);
  say(name, "first_ms", first * 1e3);
  say(name, "best_ms", query_best * 1e3);
  say(name, "median_ms", percentile(took, rounds, 0.5) * 1e3);
  say(name, "gb_per_s", (double)bytes / query_best / 1e9);
  say(name, "plain_read_ms", read_best * 1e3);
  say(name, "plain_read_gb_per_s", (double)bytes / read_best / 1e9);
  say(name, "percent", read_best / query_best * 100);
  say(name, "check", (double)(sum & 0xffff)); /* so that no read can be optimized away */
  close_store(&o);
  free(data);
  free(took);
  return 0;
}
