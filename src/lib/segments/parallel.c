/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.c - runs one loop on several threads, started for it and joined at its end. The caller's thread takes part;
 * if threads cannot be created, fewer do the work. The threads block all signals. */
#include "segments/segment_build.h"

enum { PARALLEL_MAX_THREADS = 8, PARALLEL_GRAIN = 16 /* iterations that a thread takes at a time */ };

typedef struct parallel_loop {
  atomic_size_t next;
  atomic_uint workers;
  size_t n;
  index_parallel_body *body;
  void *arg;
} parallel_loop;

static void *parallel_worker(void *ctx) {
  parallel_loop *l = ctx;
  unsigned worker = atomic_fetch_add(&l->workers, 1);
  for (;;) {
    size_t first = atomic_fetch_add(&l->next, PARALLEL_GRAIN);
    if (first >= l->n) return NULL;
    size_t end = l->n - first < PARALLEL_GRAIN ? l->n : first + PARALLEL_GRAIN;
    for (size_t i = first; i < end; i++) l->body(l->arg, i, worker);
  }
}

static void parallel_run(void *ctx, size_t n, index_parallel_body *body, void *arg) {
  const unsigned *wanted = ctx;
  pthread_t threads[PARALLEL_MAX_THREADS];
  unsigned started = 0, max = n / PARALLEL_GRAIN < *wanted ? (unsigned)(n / PARALLEL_GRAIN) : *wanted;
  parallel_loop l = {.n = n, .body = body, .arg = arg};
  while (started + 1 < max && os_thread_create(&threads[started], parallel_worker, &l) == 0) started++;
  (void)parallel_worker(&l);
  for (unsigned i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
}

index_parallel segments_parallel(unsigned *n) {
  if (*n == 0) *n = os_cpu_count();
  if (*n > PARALLEL_MAX_THREADS) *n = PARALLEL_MAX_THREADS;
  return (index_parallel){.run = *n > 1 ? parallel_run : NULL, .ctx = n, .workers = *n};
}
