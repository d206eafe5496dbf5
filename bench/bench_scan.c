/* SPDX-License-Identifier: Apache-2.0 */
/* bench_scan.c - how near an exact query comes to the speed of plain reading, on one thread.
 *
 *   bench_scan [ROWS [DIM [ROUNDS [MIN_PERCENT]]]]      100,000 rows of 384, 15 rounds
 *
 * A scan is what an exact query does: distances of all rows, in blocks, the ten nearest kept. The plain read adds up
 * the same bytes as integers in independent sums. Rounds are interleaved, so that a busy moment of the machine
 * hits all alike, and the best of each kind counts. "batch of 16" is kernel_distances_many; its GB/s count each row
 * once for each query, which is why they may pass those of memory. Ends with 1 when one scan is slower than MIN_PERCENT
 * of the plain read. LODE_SIMD chooses the kernel, as everywhere.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel/kernel.h"

enum { K = 10, BLOCK = 256, BATCH = 16, KINDS = 5 };

typedef struct scene {
  float *data, *norms, *queries, *out; /* BATCH queries; out: BATCH blocks */
  float query_norms[BATCH];
  size_t n, dim;
  uint64_t result; /* of every run, so that no work can be optimized away */
} scene;

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

static void plain_read(scene *s) {
  size_t bytes = s->n * s->dim * sizeof(float);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    s->result += sum_avx2(s->data, bytes);
    return;
  }
#endif
  s->result += sum_words(s->data, bytes);
}

static void keep(kernel_topk *top, const float *distances, size_t n, size_t first) {
  for (size_t i = 0; i < n; i++)
    if (kernel_topk_wants(top, distances[i])) kernel_topk_push(top, distances[i], (int64_t)(first + i), 0);
}

static void scan(scene *s, lode_metric metric) {
  kernel_neighbour room[K];
  kernel_topk top = {.heap = room, .k = K};
  for (size_t i = 0; i < s->n; i += BLOCK) {
    size_t n = s->n - i < BLOCK ? s->n - i : BLOCK;
    kernel_distances(metric, s->queries, s->query_norms[0], s->data + i * s->dim, s->dim, s->norms + i, n, s->dim,
                     s->out);
    keep(&top, s->out, n, i);
  }
  kernel_topk_sort(&top);
  s->result += top.n ? (uint64_t)top.heap[0].key : 0;
}

static void batch(scene *s, lode_metric metric) {
  kernel_neighbour room[BATCH][K];
  kernel_topk top[BATCH];
  kernel_rows queries = {s->queries, s->query_norms, BATCH, s->dim, s->dim};
  for (size_t q = 0; q < BATCH; q++) top[q] = (kernel_topk){.heap = room[q], .k = K};
  for (size_t i = 0; i < s->n; i += BLOCK) {
    size_t n = s->n - i < BLOCK ? s->n - i : BLOCK;
    kernel_rows rows = {s->data + i * s->dim, s->norms + i, n, s->dim, s->dim};
    kernel_distances_many(metric, &queries, &rows, s->out, BLOCK);
    for (size_t q = 0; q < BATCH; q++) keep(&top[q], s->out + q * BLOCK, n, i);
  }
  for (size_t q = 0; q < BATCH; q++) s->result += top[q].n ? (uint64_t)top[q].heap[0].key : 0;
}

static void run(scene *s, size_t kind) {
  switch (kind) {
    case 0: plain_read(s); break;
    case 1: scan(s, LODE_L2); break;
    case 2: scan(s, LODE_COSINE); break;
    case 3: scan(s, LODE_IP); break;
    default: batch(s, LODE_L2); break;
  }
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *need(size_t count, size_t size) {
  size_t bytes = 0;
  void *p = NULL;
  if (!mem_mul_overflow(count, size, &bytes)) p = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!p) {
    fprintf(stderr, "bench_scan: out of memory; try fewer rows\n");
    exit(2);
  }
  return p;
}

static void fill(float *p, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    p[i] = (float)(int32_t)(seed >> 32) / 2147483648.0f;
  }
}

static scene make_scene(size_t n, size_t dim) {
  scene s = {.n = n, .dim = dim};
  s.data = need(n * dim, sizeof(float));
  s.norms = need(n, sizeof(float));
  s.queries = need(BATCH * dim, sizeof(float));
  s.out = need(BATCH * BLOCK, sizeof(float));
  fill(s.data, n * dim, 1);
  fill(s.queries, BATCH * dim, 2);
  for (size_t i = 0; i < n; i++) s.norms[i] = kernel_dot(s.data + i * dim, s.data + i * dim, dim);
  for (size_t q = 0; q < BATCH; q++) s.query_norms[q] = kernel_dot(s.queries + q * dim, s.queries + q * dim, dim);
  return s;
}

int main(int argc, char **argv) {
  static const char *const names[KINDS] = {"plain read", "scan l2", "scan cosine", "scan ip", "batch of 16, l2"};
  size_t given[4] = {100000, 384, 15, 0};
  for (int a = 1; a < argc && a <= 4; a++) given[a - 1] = strtoull(argv[a], NULL, 10);
  if (given[0] == 0 || given[1] == 0 || given[2] == 0 || given[1] > LODE_MAX_DIMENSION ||
      given[0] > SIZE_MAX / 8 / given[1]) {
    fprintf(stderr, "usage: bench_scan [ROWS [DIM [ROUNDS [MIN_PERCENT]]]]\n");
    return 2;
  }
  scene s = make_scene(given[0], given[1]);
  double best[KINDS] = {0};
  for (size_t round = 0; round < given[2]; round++) {
    for (size_t kind = 0; kind < KINDS; kind++) {
      double start = now_s();
      run(&s, kind);
      double took = now_s() - start;
      if (round == 0 || took < best[kind]) best[kind] = took;
    }
  }
  double bytes = (double)s.n * (double)s.dim * sizeof(float), worst = 1;
  printf("%zu rows x %zu floats, kernel %s, best of %zu rounds (check %" PRIu64 ")\n", s.n, s.dim, kernel_name(),
         given[2], s.result);
  for (size_t kind = 0; kind < KINDS; kind++) {
    double moved = kind == 4 ? bytes * BATCH : bytes, ratio = moved / best[kind] / (bytes / best[0]);
    printf("%-16s %8.2f ms %8.2f GB/s %6.0f %% of plain read\n", names[kind], best[kind] * 1e3,
           moved / best[kind] / 1e9, ratio * 100);
    if (ratio < worst) worst = ratio;
  }
  free(s.data);
  free(s.norms);
  free(s.queries);
  free(s.out);
  return worst * 100 < (double)given[3] ? 1 : 0;
}
