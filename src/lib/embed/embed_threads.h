/* SPDX-License-Identifier: Apache-2.0 */
/* embed_threads.h - a thread pool for work that takes less time than starting threads.
 *
 * A pool works for one caller at a time. Between two calls its threads spin for a moment, then sleep. A forked process
 * has none of them: there the pool starts empty again.
 */
#ifndef LODE_EMBED_EMBED_THREADS_H
#define LODE_EMBED_EMBED_THREADS_H

#include <sched.h>

#include "base/base.h"

enum { EMBED_THREADPOOL_MAX = 64 };

typedef struct embed_threadpool embed_threadpool;

embed_threadpool *embed_threadpool_new(void); /* with the caller's thread only; NULL: out of memory */
void embed_threadpool_free(embed_threadpool *pool);

/* Grows the pool to `want` threads, including the caller's; returns how many there are, fewer if the system gives no
 * more. */
size_t embed_threadpool_grow(embed_threadpool *pool, size_t want);
/* Runs work(ctx, 0) to work(ctx, n - 1) in parallel, the first on the caller's thread; n is at most what
 * embed_threadpool_grow() returned. Returns when all are done. */
void embed_threadpool_run(embed_threadpool *pool, size_t n, void (*work)(void *ctx, size_t me), void *ctx);

/* One iteration of a busy wait for another thread that will not take long. *turns starts at 0. Yields after a while, in
 * case there are more threads than processors. */
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
