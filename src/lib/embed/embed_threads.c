/* SPDX-License-Identifier: Apache-2.0 */
/* embed_threads.c - see embed_threads.h. */
#include "embed/embed_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "os/os.h"

enum { THREADPOOL_SPIN_TURNS = 1000 }; /* busy waits before a thread sleeps: about 50 microseconds */

typedef struct threadpool_member {
  embed_threadpool *pool;
  size_t me;
  uint64_t seen; /* rounds seen */
  pthread_t thread;
} threadpool_member;

struct embed_threadpool {
  pid_t pid; /* process that owns the threads */
  pthread_mutex_t lock;
  pthread_cond_t more;
  _Atomic(uint64_t) round; /* changes under the lock, after what follows was set */
  _Atomic(size_t) busy;    /* members that have not finished the round */
  bool end;
  size_t n_work;
  void (*work)(void *ctx, size_t me);
  void *ctx;
  size_t n; /* number of members */
  threadpool_member all[EMBED_THREADPOOL_MAX];
};

static void threadpool_await_round(threadpool_member *m) {
  embed_threadpool *pool = m->pool;
  for (unsigned turns = 0; turns < THREADPOOL_SPIN_TURNS; embed_spin_wait(&turns))
    if (atomic_load_explicit(&pool->round, memory_order_acquire) != m->seen) return;
  pthread_mutex_lock(&pool->lock);
  while (atomic_load_explicit(&pool->round, memory_order_acquire) == m->seen)
    pthread_cond_wait(&pool->more, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

static void *threadpool_thread(void *arg) {
  threadpool_member *m = arg;
  embed_threadpool *pool = m->pool;
  for (;;) {
    threadpool_await_round(m);
    m->seen++;
    bool end = pool->end;
    if (!end && m->me < pool->n_work) pool->work(pool->ctx, m->me);
    atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_release);
    if (end) return NULL;
  }
}

static void threadpool_next_round(embed_threadpool *pool) {
  atomic_store_explicit(&pool->busy, pool->n, memory_order_relaxed);
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add_explicit(&pool->round, 1, memory_order_release);
  pthread_cond_broadcast(&pool->more);
  pthread_mutex_unlock(&pool->lock);
}

static void threadpool_init(embed_threadpool *pool) {
  *pool = (embed_threadpool){.pid = getpid()};
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->more, NULL);
}

embed_threadpool *embed_threadpool_new(void) {
  embed_threadpool *pool = mem_alloc(sizeof *pool);
  if (pool) threadpool_init(pool);
  return pool;
}

void embed_threadpool_free(embed_threadpool *pool) {
  if (!pool) return;
  if (pool->pid == getpid()) {
    pool->end = true;
    threadpool_next_round(pool);
    for (size_t i = 0; i < pool->n; i++) pthread_join(pool->all[i].thread, NULL);
    pthread_cond_destroy(&pool->more);
    pthread_mutex_destroy(&pool->lock);
  }
  mem_free(pool);
}

size_t embed_threadpool_grow(embed_threadpool *pool, size_t want) {
  /* after a fork: the lock may be held by a thread that does not exist here */
  if (pool->pid != getpid()) threadpool_init(pool);
  if (want > EMBED_THREADPOOL_MAX) want = EMBED_THREADPOOL_MAX;
  for (; pool->n + 1 < want; pool->n++) {
    threadpool_member *m = &pool->all[pool->n];
    *m = (threadpool_member){.pool = pool, .me = pool->n + 1, .seen = atomic_load(&pool->round)};
    if (os_thread_create(&m->thread, threadpool_thread, m) != 0) break;
  }
  return pool->n + 1 < want ? pool->n + 1 : want;
}

void embed_threadpool_run(embed_threadpool *pool, size_t n, void (*work)(void *ctx, size_t me), void *ctx) {
  if (n > 1) {
    pool->n_work = n;
    pool->work = work;
    pool->ctx = ctx;
    threadpool_next_round(pool);
  }
  work(ctx, 0);
  for (unsigned turns = 0; n > 1 && atomic_load_explicit(&pool->busy, memory_order_acquire) > 0;)
    embed_spin_wait(&turns);
}
