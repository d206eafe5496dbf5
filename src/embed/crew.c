/* crew.c - see crew.h. */
#include "embed/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/os.h"

enum { AWAKE = 1000 }; /* turns before a thread sleeps: some 50 microseconds */

typedef struct member {
  lode__crew *crew;
  size_t me;
  uint64_t seen; /* rounds */
  pthread_t thread;
} member;

struct lode__crew {
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
  member all[LODE__CREW_MAX];
};

static void await_round(member *m) {
  lode__crew *crew = m->crew;
  for (unsigned turns = 0; turns < AWAKE; lode__wait_awake(&turns))
    if (atomic_load_explicit(&crew->round, memory_order_acquire) != m->seen) return;
  pthread_mutex_lock(&crew->lock);
  while (atomic_load_explicit(&crew->round, memory_order_acquire) == m->seen) pthread_cond_wait(&crew->more, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
}

static void *serve(void *arg) {
  member *m = arg;
  lode__crew *crew = m->crew;
  for (;;) {
    await_round(m);
    m->seen++;
    bool end = crew->end;
    if (!end && m->me < crew->n_work) crew->work(crew->ctx, m->me);
    atomic_fetch_sub_explicit(&crew->busy, 1, memory_order_release);
    if (end) return NULL;
  }
}

static void next_round(lode__crew *crew) {
  atomic_store_explicit(&crew->busy, crew->n, memory_order_relaxed);
  pthread_mutex_lock(&crew->lock);
  atomic_fetch_add_explicit(&crew->round, 1, memory_order_release);
  pthread_cond_broadcast(&crew->more);
  pthread_mutex_unlock(&crew->lock);
}

static void begin(lode__crew *crew) {
  *crew = (lode__crew){.pid = getpid()};
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->more, NULL);
}

lode__crew *lode__crew_new(void) {
  lode__crew *crew = mem_alloc(sizeof *crew);
  if (crew) begin(crew);
  return crew;
}

void lode__crew_free(lode__crew *crew) {
  if (!crew) return;
  if (crew->pid == getpid()) {
    crew->end = true;
    next_round(crew);
    for (size_t i = 0; i < crew->n; i++) pthread_join(crew->all[i].thread, NULL);
    pthread_cond_destroy(&crew->more);
    pthread_mutex_destroy(&crew->lock);
  }
  mem_free(crew);
}

size_t lode__crew_hire(lode__crew *crew, size_t want) {
  if (crew->pid != getpid()) begin(crew); /* the lock may be held by a thread that is not here */
  if (want > LODE__CREW_MAX) want = LODE__CREW_MAX;
  for (; crew->n + 1 < want; crew->n++) {
    member *m = &crew->all[crew->n];
    *m = (member){.crew = crew, .me = crew->n + 1, .seen = atomic_load(&crew->round)};
    if (os_thread_create(&m->thread, serve, m) != 0) break;
  }
  return crew->n + 1 < want ? crew->n + 1 : want;
}

void lode__crew_run(lode__crew *crew, size_t n, void (*work)(void *ctx, size_t me), void *ctx) {
  if (n > 1) {
    crew->n_work = n;
    crew->work = work;
    crew->ctx = ctx;
    next_round(crew);
  }
  work(ctx, 0);
  for (unsigned turns = 0; n > 1 && atomic_load_explicit(&crew->busy, memory_order_acquire) > 0;) lode__wait_awake(&turns);
}
