/* SPDX-License-Identifier: Apache-2.0 */
/* background.c - two threads per store handle: one does maintenance in short steps, one builds segments of the vector
 * index.
 *
 * Each sleeps on its `wake` until a commit of this handle wakes it, and checks every two seconds for work that other
 * processes left. A step is a transaction of some milliseconds (store.h). Steps yield to writers: while this handle is
 * being written to, a step waits for a quiet moment, but for at most BACKGROUND_MAX_PAUSES pauses, so that a saturating
 * writer loses little and the indexes still grow. After LODE_BUSY (another process writes) the wait doubles each time.
 * Any other failure is logged once and retried later: maintenance is never needed for correct results. The builder runs
 * long, but holds no transaction while it computes; it stops when the handle is closed, and leaves the work to
 * lode_optimize() while that runs.
 *
 * Flags are guarded by store->lock, which is never held during a step. The threads block all signals.
 */
#include "engine/engine.h"
#include "segments/segment_build.h"

#include <time.h>

enum {
  BACKGROUND_POLL_MS = 2000,    /* between two checks for work of other processes */
  BACKGROUND_PAUSE_MS = 20,     /* one pause while writers are active */
  BACKGROUND_MAX_PAUSES = 100,  /* before a step runs all the same */
  BACKGROUND_QUIET_MS = 300,    /* since the last commit: no writer is active */
  BACKGROUND_BUSY_MIN_MS = 5,   /* first wait after LODE_BUSY */
  BACKGROUND_BUSY_MAX_MS = 250, /* longest wait after LODE_BUSY */
};

/* Sleeps; ends early when woken, if `until_woken`, and always on stop. Returns false when it is time to stop. */
static bool background_sleep(engine_store *store, engine_background *b, unsigned ms, bool until_woken, bool *woken) {
  struct timespec until = os_deadline(ms);
  pthread_mutex_lock(&store->lock);
  while (!b->stop && !(until_woken && b->woken))
    if (os_cond_wait_until(&b->wake, &store->lock, &until) != 0) break;
  *woken = b->woken;
  if (until_woken) b->woken = false;
  bool go_on = !b->stop;
  pthread_mutex_unlock(&store->lock);
  return go_on;
}

static bool background_must_stop(engine_store *store, const engine_background *b) {
  pthread_mutex_lock(&store->lock);
  bool stopping = b->stop;
  pthread_mutex_unlock(&store->lock);
  return stopping;
}

static bool background_has_writers(engine_store *store) {
  if (atomic_load(&store->writers) > 0) return true;
  return os_api->now_ns() - atomic_load(&store->written_ns) < (uint64_t)BACKGROUND_QUIET_MS * 1000000;
}

/* A bulk load has no quiet moments, and its backlog would have to be worked off at its end on one thread: when there is
 * enough for a whole step, the step does not wait. */
static bool background_is_urgent(engine_store *store, const engine_background *b) {
  bool much = false;
  if (!store->head.options->bulk_load || b != &store->background) return false;
  return store_maintain_fills_step(store->db, &much, NULL) == LODE_OK && much;
}

/* Waits for a quiet moment; false: time to stop. */
static bool background_wait_for_quiet(engine_store *store, engine_background *b) {
  bool woken;
  for (unsigned i = 0; i < BACKGROUND_MAX_PAUSES && background_has_writers(store) && !background_is_urgent(store, b);
       i++)
    if (!background_sleep(store, b, BACKGROUND_PAUSE_MS, false, &woken)) return false;
  return true;
}

/* Runs steps until nothing is left, one fails, or it is time to stop. */
static lode_status background_work(engine_store *store, lode_error *err) {
  bool more = true, woken;
  unsigned busy_ms = BACKGROUND_BUSY_MIN_MS;
  while (more && !background_must_stop(store, &store->background) && atomic_load(&store->optimizers) == 0) {
    if (!background_wait_for_quiet(store, &store->background)) return LODE_OK;
    lode_status st = store_maintain_step(store->db, &more, err);
    if (st == LODE_BUSY) {
      if (!background_sleep(store, &store->background, busy_ms, false, &woken)) break;
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
  engine_store *store = ctx;
  lode_status logged = LODE_OK;
  bool woken = true; /* check once at the start */
  do {
    lode_error err;
    uint64_t left = 0;
    err_clear(&err);
    lode_status st = woken ? LODE_OK : store_maintain_left(store->db, &left, &err);
    if (st == LODE_OK && (woken || left > 0)) st = background_work(store, &err);
    if (st == LODE_BUSY) st = LODE_OK;
    if (st != LODE_OK && st != logged) store_db_log(store->db, "maintenance is put off: %s", err.text);
    logged = st;
    if (st != LODE_OK && !background_sleep(store, &store->background, BACKGROUND_POLL_MS, false, &woken)) break;
  } while (background_sleep(store, &store->background, BACKGROUND_POLL_MS, true, &woken));
  return NULL;
}

/* ---- The builder ---- */

static bool background_build_stops(void *ctx) {
  engine_store *store = ctx;
  return background_must_stop(store, &store->builder);
}

/* Has anyone written since the last check that found nothing to do? */
static bool background_has_news(engine_store *store, uint64_t *seen) {
  store_tx *tx;
  segments_sweep_missing(&store->segments);
  if (atomic_load(&store->segments.n_suspects) > 0) return true;
  if (store_tx_begin(store->db, STORE_TX_READ, &tx, NULL) != LODE_OK) return false;
  uint64_t cursor = store_tx_cursor(tx);
  store_tx_rollback(tx);
  bool news = cursor != *seen;
  *seen = cursor;
  return news;
}

static lode_status background_build(engine_store *store, lode_error *err) {
  segments_build_request request = {
      .stop = background_build_stops, .stop_ctx = store, .gentle = true, .flat = store->head.options->bulk_load};
  bool more = true;
  while (more && !background_build_stops(store) && atomic_load(&store->optimizers) == 0) {
    if (!background_wait_for_quiet(store, &store->builder)) return LODE_OK;
    TRY(segments_build_step(&store->segments, &request, &more, err));
  }
  return LODE_OK;
}

static void *background_build_main(void *ctx) {
  engine_store *store = ctx;
  lode_status logged = LODE_OK;
  uint64_t seen = UINT64_MAX;
  bool woken = true, failed = false;
  do {
    lode_error err;
    err_clear(&err);
    bool news = background_has_news(store, &seen);
    lode_status st = news || failed ? background_build(store, &err) : LODE_OK;
    failed = st != LODE_OK;
    if (st == LODE_BUSY || st == LODE_CANCELLED) st = LODE_OK;
    if (st != LODE_OK && st != logged) store_db_log(store->db, "the vector index is put off: %s", err.text);
    logged = st;
    if (st != LODE_OK && !background_sleep(store, &store->builder, BACKGROUND_POLL_MS, false, &woken)) break;
  } while (background_sleep(store, &store->builder, BACKGROUND_POLL_MS, true, &woken));
  return NULL;
}

/* ---- Threads ---- */

static void background_thread_start(engine_store *store, engine_background *b, void *(*body)(void *)) {
  int rc = os_cond_init(&b->wake);
  if (rc == 0) {
    pthread_mutex_lock(&store->lock);
    rc = os_thread_create(&b->thread, body, store);
    b->running = rc == 0;
    pthread_mutex_unlock(&store->lock);
    if (rc == 0) return;
    (void)pthread_cond_destroy(&b->wake);
  }
  store_db_log(store->db, "no thread for maintenance (%s): lode_optimize() does that work", strerror(rc));
}

void engine_background_start(engine_store *store) {
  background_thread_start(store, &store->background, background_main);
  background_thread_start(store, &store->builder, background_build_main);
}

static void background_thread_stop(engine_store *store, engine_background *b) {
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

void engine_background_stop(engine_store *store) {
  background_thread_stop(store, &store->builder);
  background_thread_stop(store, &store->background);
}

/* Under the store's lock. */
static void background_thread_wake(engine_background *b) {
  if (!b->running) return;
  b->woken = true;
  (void)pthread_cond_signal(&b->wake);
}

void engine_builder_wake(void *ctx) {
  engine_store *store = ctx;
  pthread_mutex_lock(&store->lock);
  background_thread_wake(&store->builder);
  pthread_mutex_unlock(&store->lock);
}

void engine_background_wake(engine_store *store) {
  pthread_mutex_lock(&store->lock);
  background_thread_wake(&store->background);
  background_thread_wake(&store->builder);
  pthread_mutex_unlock(&store->lock);
}
