/* background.c - one thread per store handle that does maintenance in short steps.
 *
 * It sleeps on store->background.wake until a commit of this handle kicks it, and looks by itself every two seconds
 * for what other processes left. Each step is a transaction of some milliseconds (store.h). It makes room for
 * writers: while this handle is being written to, a step waits for a quiet moment, but not longer than PAUSES allow, so
 * that a saturating writer loses little and yet does not keep the indexes from growing; LODE_BUSY (another process
 * writes) makes it wait longer each time. Any other failure is logged once and tried again later: maintenance is never
 * needed for right answers.
 *
 * Flags are guarded by store->lock, which is never held during a step. The thread blocks all signals.
 */
#include "core.h"

#include <signal.h>
#include <time.h>

enum { LOOK_MS = 2000, PAUSE_MS = 20, PAUSES = 100, QUIET_MS = 300, BUSY_LEAST_MS = 5, BUSY_MOST_MS = 250 };

static struct timespec in_ms(unsigned ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += (long)(ms % 1000) * 1000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

/* Sleeps; a kick ends it early if `for_kick`, a stop always does. Returns false when it is time to stop. */
static bool sleep_ms(lode_store *store, unsigned ms, bool for_kick, bool *kicked) {
  lode__background *b = &store->background;
  struct timespec until = in_ms(ms);
  pthread_mutex_lock(&store->lock);
  while (!b->stop && !(for_kick && b->kicked))
    if (pthread_cond_timedwait(&b->wake, &store->lock, &until) != 0) break;
  *kicked = b->kicked;
  if (for_kick) b->kicked = false;
  bool go_on = !b->stop;
  pthread_mutex_unlock(&store->lock);
  return go_on;
}

static bool must_stop(lode_store *store) {
  pthread_mutex_lock(&store->lock);
  bool stop = store->background.stop;
  pthread_mutex_unlock(&store->lock);
  return stop;
}

static bool is_written_to(lode_store *store) {
  if (atomic_load(&store->writers) > 0) return true;
  return lode__os->now_ns() - atomic_load(&store->written_ns) < (uint64_t)QUIET_MS * 1000000;
}

/* Steps until nothing is left, a failure or a stop. */
static lode_status work(lode_store *store, lode_error *err) {
  bool more = true, kicked;
  unsigned busy_ms = BUSY_LEAST_MS;
  while (more && !must_stop(store) && atomic_load(&store->optimizers) == 0) {
    for (unsigned i = 0; i < PAUSES && is_written_to(store); i++)
      if (!sleep_ms(store, PAUSE_MS, false, &kicked)) return LODE_OK;
    lode_status st = lode__work_step(store->db, &more, err);
    if (st == LODE_BUSY) {
      if (!sleep_ms(store, busy_ms, false, &kicked)) break;
      busy_ms = busy_ms * 2 < BUSY_MOST_MS ? busy_ms * 2 : BUSY_MOST_MS;
      more = true;
      continue;
    }
    if (st != LODE_OK) return st;
    busy_ms = BUSY_LEAST_MS;
  }
  return LODE_OK;
}

static void *background_main(void *ctx) {
  lode_store *store = ctx;
  lode_status told = LODE_OK;
  bool kicked = true; /* look once at the start */
  do {
    lode_error err;
    uint64_t left = 0;
    lode__error_clear(&err);
    lode_status st = kicked ? LODE_OK : lode__work_left(store->db, &left, &err);
    if (st == LODE_OK && (kicked || left > 0)) st = work(store, &err);
    if (st == LODE_BUSY) st = LODE_OK;
    if (st != LODE_OK && st != told) lode__db_log(store->db, "maintenance is put off: %s", err.text);
    told = st;
    if (st != LODE_OK && !sleep_ms(store, LOOK_MS, false, &kicked)) break;
  } while (sleep_ms(store, LOOK_MS, true, &kicked));
  return NULL;
}

void lode__background_start(lode_store *store) {
  lode__background *b = &store->background;
  pthread_condattr_t attr;
  sigset_t all, before;
  (void)pthread_condattr_init(&attr);
  (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&b->wake, &attr);
  (void)pthread_condattr_destroy(&attr);
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = pthread_create(&b->thread, NULL, background_main, store);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  b->running = rc == 0;
  if (rc == 0) return;
  (void)pthread_cond_destroy(&b->wake);
  lode__db_log(store->db, "no thread for maintenance (%s): lode_optimize() does that work", strerror(rc));
}

void lode__background_stop(lode_store *store) {
  lode__background *b = &store->background;
  if (!b->running) return;
  pthread_mutex_lock(&store->lock);
  b->stop = true;
  (void)pthread_cond_signal(&b->wake);
  pthread_mutex_unlock(&store->lock);
  (void)pthread_join(b->thread, NULL);
  (void)pthread_cond_destroy(&b->wake);
  b->running = false;
}

void lode__background_kick(lode_store *store) {
  if (!store->background.running) return;
  pthread_mutex_lock(&store->lock);
  store->background.kicked = true;
  (void)pthread_cond_signal(&store->background.wake);
  pthread_mutex_unlock(&store->lock);
}
