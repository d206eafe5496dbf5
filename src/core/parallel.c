/* parallel.c - one loop on several threads: started for it, joined at its end. The caller's thread takes part; when
 * threads cannot be had, fewer do the work. The threads block all signals. */
#include "core.h"

#include <unistd.h>

enum { MOST_THREADS = 8, GRAIN = 16 };

typedef struct loop {
  atomic_size_t next;
  atomic_uint workers;
  size_t n;
  index_parallel_body *body;
  void *arg;
} loop;

static void *work(void *ctx) {
  loop *l = ctx;
  unsigned worker = atomic_fetch_add(&l->workers, 1);
  for (;;) {
    size_t first = atomic_fetch_add(&l->next, GRAIN);
    if (first >= l->n) return NULL;
    size_t end = l->n - first < GRAIN ? l->n : first + GRAIN;
    for (size_t i = first; i < end; i++) l->body(l->arg, i, worker);
  }
}

static void run(void *ctx, size_t n, index_parallel_body *body, void *arg) {
  const unsigned *wanted = ctx;
  pthread_t threads[MOST_THREADS];
  unsigned started = 0, most = n / GRAIN < *wanted ? (unsigned)(n / GRAIN) : *wanted;
  loop l = {.n = n, .body = body, .arg = arg};
  while (started + 1 < most && os_thread_create(&threads[started], work, &l) == 0) started++;
  (void)work(&l);
  for (unsigned i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
}

index_parallel lode__threads(unsigned *n) {
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (*n == 0) *n = cpus > 0 ? (unsigned)cpus : 1;
  if (*n > MOST_THREADS) *n = MOST_THREADS;
  return (index_parallel){.run = *n > 1 ? run : NULL, .ctx = n, .workers = *n};
}
