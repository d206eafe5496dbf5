/* embed_threads.c - see embed_threads.h. */
#include "embed/embed_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "os/os.h"

enum { THREADPOOL_SPIN_TURNS = 1000 }; /* turns before a thread sleeps: some 50 microseconds */

typedef struct threadpool_member {
  embed_threadpool *crew;
  size_t me;
  uint64_t seen; /* rounds */
  pthread_t thread;
} threadpool_member;

struct embed_threadpool {
  pid_t pid; /* whose threads they are */
  pthread_mutex_t lock;
  pthread_cond_t more;
  _Atomic(uint64_t) round; /* changes under the lock; what is below is set before */
  _Atomic(size_t) busy;    /* members that are not done with it */
  bool end;
  size_t n_work;
  void (*work)(void *ctx, size_t me);
  void *ctx;
  size_t n; /* members */
  threadpool_member all[EMBED_THREADPOOL_MAX];
};

static void threadpool_await_round(threadpool_member *m) {
  embed_threadpool *crew = m->crew;
  for (unsigned turns = 0; turns < THREADPOOL_SPIN_TURNS; embed_spin_wait(&turns))
    if (atomic_load_explicit(&crew->round, memory_order_acquire) != m->seen) return;
  pthread_mutex_lock(&crew->lock);
  while (atomic_load_explicit(&crew->round, memory_order_acquire) == m->seen) pthread_cond_wait(&crew->more, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
}

static void *threadpool_thread(void *arg) {
  threadpool_member *m = arg;
  embed_threadpool *crew = m->crew;
  for (;;) {
    threadpool_await_round(m);
    m->seen++;
    bool end = crew->end;
    if (!end && m->me < crew->n_work) crew->work(crew->ctx, m->me);
    atomic_fetch_sub_explicit(&crew->busy, 1, memory_order_release);
    if (end) return NULL;
  }
}

static void threadpool_next_round(embed_threadpool *crew) {
  atomic_store_explicit(&crew->busy, crew->n, memory_order_relaxed);
  pthread_mutex_lock(&crew->lock);
  atomic_fetch_add_explicit(&crew->round, 1, memory_order_release);
  pthread_cond_broadcast(&crew->more);
  pthread_mutex_unlock(&crew->lock);
}

static void threadpool_init(embed_threadpool *crew) {
  *crew = (embed_threadpool){.pid = getpid()};
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->more, NULL);
}

embed_threadpool *embed_threadpool_new(void) {
  embed_threadpool *crew = mem_alloc(sizeof *crew);
  if (crew) threadpool_init(crew);
  return crew;
}

void embed_threadpool_free(embed_threadpool *crew) {
  if (!crew) return;
  if (crew->pid == getpid()) {
    crew->end = true;
    threadpool_next_round(crew);
    for (size_t i = 0; i < crew->n; i++) pthread_join(crew->all[i].thread, NULL);
    pthread_cond_destroy(&crew->more);
    pthread_mutex_destroy(&crew->lock);
  }
  mem_free(crew);
}

size_t embed_threadpool_grow(embed_threadpool *crew, size_t want) {
  if (crew->pid != getpid()) threadpool_init(crew); /* the lock may be held by a thread that is not here */
  if (want > EMBED_THREADPOOL_MAX) want = EMBED_THREADPOOL_MAX;
  for (; crew->n + 1 < want; crew->n++) {
    threadpool_member *m = &crew->all[crew->n];
    *m = (threadpool_member){.crew = crew, .me = crew->n + 1, .seen = atomic_load(&crew->round)};
    if (os_thread_create(&m->thread, threadpool_thread, m) != 0) break;
  }
  return crew->n + 1 < want ? crew->n + 1 : want;
}

void embed_threadpool_run(embed_threadpool *crew, size_t n, void (*work)(void *ctx, size_t me), void *ctx) {
  if (n > 1) {
    crew->n_work = n;
    crew->work = work;
    crew->ctx = ctx;
    threadpool_next_round(crew);
  }
  work(ctx, 0);
  for (unsigned turns = 0; n > 1 && atomic_load_explicit(&crew->busy, memory_order_acquire) > 0;) embed_spin_wait(&turns);
}
