/* embed_threads.h - threads that stay: for work that is done in less time than it takes to start some.
 *
 * A crew works for one caller at a time. Between two calls its threads stay awake for a moment, then sleep. A process that was
 * forked has none of them: there the crew begins anew.
 */
#ifndef LODE_EMBED_EMBED_THREADS_H
#define LODE_EMBED_EMBED_THREADS_H

#include <sched.h>

#include "base/base.h"

enum { EMBED_THREADPOOL_MAX = 64 };

typedef struct embed_threadpool embed_threadpool;

embed_threadpool *embed_threadpool_new(void); /* of nobody but the caller; NULL: no memory */
void embed_threadpool_free(embed_threadpool *crew);

/* Sees to it that there are `want` to work, the caller among them; returns how many there are, fewer where the system gives no more. */
size_t embed_threadpool_grow(embed_threadpool *crew, size_t want);
/* work(ctx, 0) to work(ctx, n - 1), all at once, the first of them here; n at most what hire returned. Returns when all are done. */
void embed_threadpool_run(embed_threadpool *crew, size_t n, void (*work)(void *ctx, size_t me), void *ctx);

/* One turn of waiting for another thread that will not be long. *turns begins with 0. In turn with others where there are more
 * threads than processors. */
static inline void embed_spin_wait(unsigned *turns) {
  enum { SPIN_TURNS = 2000 };
  if (++*turns > SPIN_TURNS) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
