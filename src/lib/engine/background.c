/* background.c - two threads per store handle: one does maintenance in short steps, one makes segments of the vector index.
 *
 * Each sleeps on its `wake` until a commit of this handle kicks it, and looks by itself every two seconds
 * for what other processes left. Each step is a transaction of some milliseconds (store.h). It makes room for
 * writers: while this handle is being written to, a step waits for a quiet moment, but not longer than BACKGROUND_MAX_PAUSES allow, so
 * that a saturating writer loses little and yet does not keep the indexes from growing; LODE_BUSY (another process
 * writes) makes it wait longer each time. Any other failure is logged once and tried again later: maintenance is never
 * needed for right answers. The builder works long, but holds no transaction while it computes; it stops when the
 * handle is closed, and leaves the work to lode_optimize() while that runs.
 *
 * Flags are guarded by store->lock, which is never held during a step. The threads block all signals.
 */
#include "engine/engine.h"

#include <time.h>

enum { BACKGROUND_POLL_MS = 2000, BACKGROUND_PAUSE_MS = 20, BACKGROUND_MAX_PAUSES = 100, BACKGROUND_QUIET_MS = 300, BACKGROUND_BUSY_MIN_MS = 5, BACKGROUND_BUSY_MAX_MS = 250 };

static struct timespec background_deadline(unsigned ms) {
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
static bool background_sleep(lode_store *store, engine_background *b, unsigned ms, bool for_kick, bool *kicked) {
  struct timespec until = background_deadline(ms);
  pthread_mutex_lock(&store->lock);
  while (!b->stop && !(for_kick && b->woken))
    if (pthread_cond_timedwait(&b->wake, &store->lock, &until) != 0) break;
  *kicked = b->woken;
  if (for_kick) b->woken = false;
  bool go_on = !b->stop;
  pthread_mutex_unlock(&store->lock);
  return go_on;
}

static bool background_must_stop(lode_store *store, const engine_background *b) {
  pthread_mutex_lock(&store->lock);
  bool stopping = b->stop;
  pthread_mutex_unlock(&store->lock);
  return stopping;
}

static bool background_has_writers(lode_store *store) {
  if (atomic_load(&store->writers) > 0) return true;
  return os_api->now_ns() - atomic_load(&store->written_ns) < (uint64_t)BACKGROUND_QUIET_MS * 1000000;
}

/* In a bulk load there is no quiet moment, and what falls behind has to be caught up with at its end, on one thread: what is enough for a
 * whole step does not wait. */
static bool background_is_urgent(lode_store *store, const engine_background *b) {
  bool much = false;
  if (!store->options->bulk_load || b != &store->background) return false;
  return store_maintain_fills_step(store->db, &much, NULL) == LODE_OK && much;
}

/* Waits for a quiet moment; false: it is time to stop. */
static bool background_wait_for_quiet(lode_store *store, engine_background *b) {
  bool kicked;
  for (unsigned i = 0; i < BACKGROUND_MAX_PAUSES && background_has_writers(store) && !background_is_urgent(store, b); i++)
    if (!background_sleep(store, b, BACKGROUND_PAUSE_MS, false, &kicked)) return false;
  return true;
}

/* Steps until nothing is left, a failure or a stop. */
static lode_status background_work(lode_store *store, lode_error *err) {
  bool more = true, kicked;
  unsigned busy_ms = BACKGROUND_BUSY_MIN_MS;
  while (more && !background_must_stop(store, &store->background) && atomic_load(&store->optimizers) == 0) {
    if (!background_wait_for_quiet(store, &store->background)) return LODE_OK;
    lode_status st = store_maintain_step(store->db, &more, err);
    if (st == LODE_BUSY) {
      if (!background_sleep(store, &store->background, busy_ms, false, &kicked)) break;
      busy_ms = busy_ms * 2 < BACKGROUND_BUSY_MAX_MS ? busy_ms * 2 : BACKGROUND_BUSY_MAX_MS;
      more = true;
      continue;
    }
    if (st != LODE_OK) return st;
    busy_ms = BACKGROUND_BUSY_MIN_MS;
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
    err_clear(&err);
    lode_status st = kicked ? LODE_OK : store_maintain_left(store->db, &left, &err);
    if (st == LODE_OK && (kicked || left > 0)) st = background_work(store, &err);
    if (st == LODE_BUSY) st = LODE_OK;
    if (st != LODE_OK && st != told) store_db_log(store->db, "maintenance is put off: %s", err.text);
    told = st;
    if (st != LODE_OK && !background_sleep(store, &store->background, BACKGROUND_POLL_MS, false, &kicked)) break;
  } while (background_sleep(store, &store->background, BACKGROUND_POLL_MS, true, &kicked));
  return NULL;
}

/* ---- The builder ---- */

static bool background_build_stops(void *ctx) {
  lode_store *store = ctx;
  return background_must_stop(store, &store->builder);
}

/* Has anything been written, by whomever, since it was last seen that there is nothing to do? */
static bool background_has_news(lode_store *store, uint64_t *seen) {
  store_tx *tx;
  engine_sweep_missing(store);
  if (atomic_load(&store->n_suspects) > 0) return true;
  if (store_tx_begin(store->db, STORE_TX_READ, &tx, NULL) != LODE_OK) return false;
  uint64_t cursor = store_tx_cursor(tx);
  store_tx_rollback(tx);
  bool news = cursor != *seen;
  *seen = cursor;
  return news;
}

static lode_status background_build(lode_store *store, lode_error *err) {
  engine_build_request request = {.stop = background_build_stops, .stop_ctx = store, .gentle = true, .flat = store->options->bulk_load};
  bool more = true;
  while (more && !background_build_stops(store) && atomic_load(&store->optimizers) == 0) {
    if (!background_wait_for_quiet(store, &store->builder)) return LODE_OK;
    TRY(engine_build_step(store, &request, &more, err));
  }
  return LODE_OK;
}

static void *background_build_main(void *ctx) {
  lode_store *store = ctx;
  lode_status told = LODE_OK;
  uint64_t seen = UINT64_MAX;
  bool kicked = true, failed = false;
  do {
    lode_error err;
    err_clear(&err);
    bool news = background_has_news(store, &seen);
    lode_status st = news || failed ? background_build(store, &err) : LODE_OK;
    failed = st != LODE_OK;
    if (st == LODE_BUSY || st == LODE_CANCELLED) st = LODE_OK;
    if (st != LODE_OK && st != told) store_db_log(store->db, "the vector index is put off: %s", err.text);
    told = st;
    if (st != LODE_OK && !background_sleep(store, &store->builder, BACKGROUND_POLL_MS, false, &kicked)) break;
  } while (background_sleep(store, &store->builder, BACKGROUND_POLL_MS, true, &kicked));
  return NULL;
}

/* ---- Threads ---- */

static void background_thread_start(lode_store *store, engine_background *b, void *(*body)(void *)) {
  pthread_condattr_t attr;
  (void)pthread_condattr_init(&attr);
  (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&b->wake, &attr);
  (void)pthread_condattr_destroy(&attr);
  pthread_mutex_lock(&store->lock);
  int rc = os_thread_create(&b->thread, body, store);
  b->running = rc == 0;
  pthread_mutex_unlock(&store->lock);
  if (rc == 0) return;
  (void)pthread_cond_destroy(&b->wake);
  store_db_log(store->db, "no thread for maintenance (%s): lode_optimize() does that work", strerror(rc));
}

void engine_background_start(lode_store *store) {
  background_thread_start(store, &store->background, background_main);
  background_thread_start(store, &store->builder, background_build_main);
}

static void background_thread_stop(lode_store *store, engine_background *b) {
  if (!b->running) return;
  pthread_mutex_lock(&store->lock);
  b->stop = true;
  (void)pthread_cond_signal(&b->wake);
  pthread_mutex_unlock(&store->lock);
  (void)pthread_join(b->thread, NULL);
  pthread_mutex_lock(&store->lock);
  b->running = false;
  pthread_mutex_unlock(&store->lock);
  (void)pthread_cond_destroy(&b->wake);
}

void engine_background_stop(lode_store *store) {
  background_thread_stop(store, &store->builder);
  background_thread_stop(store, &store->background);
}

static void background_thread_wake(engine_background *b) {
  if (!b->running) return;
  b->woken = true;
  (void)pthread_cond_signal(&b->wake);
}

void engine_background_wake(lode_store *store) {
  pthread_mutex_lock(&store->lock);
  background_thread_wake(&store->background);
  background_thread_wake(&store->builder);
  pthread_mutex_unlock(&store->lock);
}
