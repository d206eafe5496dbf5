/* SPDX-License-Identifier: Apache-2.0 */
/* engine_maintain.c - maintenance on demand. The store does the work (store.h); this file adds waiting, progress and
 * handles. */
#include "engine/engine.h"
#include "segments/segment_build.h"
#include "repair/repair.h"

#include <pthread.h>

static bool optimize_goes_on(lode_progress p, const char *phase, uint64_t done, uint64_t total) {
  return !p.step || p.step(p.ctx, phase, done, total);
}

/* Writers come first, and another process may be doing the same work: retry, and give up only when nobody has made
 * progress for busy_ms. */
typedef lode_status optimize_step_fn(store_db *db, bool *more, lode_error *err);

static lode_status optimize_step_or_wait(engine_store *store, optimize_step_fn *step, bool *more, lode_error *err) {
  uint64_t wait_ns = (uint64_t)store->head.options->busy_ms * 1000000, until = os_api->now_ns() + wait_ns;
  uint64_t left = UINT64_MAX, now_left;
  for (uint64_t us = 500;; us = us < 20000 ? us * 2 : us) {
    lode_status st = step(store->db, more, err);
    if (st != LODE_BUSY) return st;
    if (os_api->now_ns() >= until) {
      lode_error ignored; /* the text of LODE_BUSY stays */
      if (store_maintain_left(store->db, &now_left, &ignored) != LODE_OK || now_left >= left) return st;
      left = now_left;
      until = os_api->now_ns() + wait_ns;
    }
    os_api->sleep_us(us);
  }
}

static lode_status optimize_store(engine_store *store, lode_progress progress, lode_error *err) {
  uint64_t total = 0, left = 0;
  bool more = true;
  TRY(store_maintain_left(store->db, &total, err));
  for (left = total; more;) {
    if (!optimize_goes_on(progress, "optimize", total - left, total))
      return err_set(err, LODE_CANCELLED, "cancelled: what is done stays done, the rest will be done later");
    TRY(optimize_step_or_wait(store, store_maintain_step, &more, err));
    if (progress.step) TRY(store_maintain_left(store->db, &left, err));
    if (left > total) total = left;
  }
  err_clear(err);
  (void)optimize_goes_on(progress, "optimize", total, total);
  return LODE_OK;
}

static lode_status optimize_check_writable(const engine_store *store, lode_error *err) {
  if (!store->head.options->read_only) return LODE_OK;
  return err_set(err, LODE_READONLY, "%s is open for reading only: open it without read_only",
                 store_db_folder(store->db));
}

/* ---- Both indexes in parallel ----
 *
 * The text index is built by one thread. In a bulk load, another thread builds the vector index meanwhile; it reports
 * no progress itself, because the caller's function is only called on the caller's thread.
 */

typedef struct optimize_builder {
  engine_store *store;
  segments_build_request request;
  lode_status st;
  lode_error err;
  atomic_bool stop, ended;
} optimize_builder;

static bool optimize_builder_stops(void *ctx) { return atomic_load(&((optimize_builder *)ctx)->stop); }

static void *optimize_build_main(void *ctx) {
  optimize_builder *b = ctx;
  b->st = segments_build_all(&b->store->segments, &b->request, &b->err);
  atomic_store(&b->ended, true);
  return NULL;
}

static void optimize_wait_builder(optimize_builder *b, lode_progress progress) {
  while (!atomic_load(&b->ended)) {
    uint64_t total = atomic_load(&b->store->segments.progress.total),
             done = atomic_load(&b->store->segments.progress.done);
    if (!optimize_goes_on(progress, "index", done < total ? done : total, total)) atomic_store(&b->stop, true);
    os_api->sleep_us(20000);
  }
}

static lode_status optimize_in_parallel(engine_store *store, optimize_builder *b, lode_progress progress,
                                        lode_error *err) {
  pthread_t thread;
  bool in_parallel = os_thread_create(&thread, optimize_build_main, b) == 0;
  lode_status st = optimize_store(store, progress, err);
  if (!in_parallel) return st;
  if (st != LODE_OK) atomic_store(&b->stop, true);
  optimize_wait_builder(b, st == LODE_OK ? progress : (lode_progress){0});
  (void)pthread_join(thread, NULL);
  if (st == LODE_OK && b->st != LODE_OK && err) *err = b->err;
  return st == LODE_OK ? b->st : st;
}

/* Erasing may have left segments with many dead rows, so the builder runs once more at the end. It then checks all
 * files, except at the end of a bulk load, when reading all older data would take too long. */
static lode_status optimize_all(engine_store *store, bool unreadable, lode_progress progress, lode_error *err) {
  bool in_parallel = store->head.options->bulk_load;
  optimize_builder b = {
      .store = store, .request = {.stop = optimize_builder_stops, .stop_ctx = &b}, .err = {.record = LODE_NO_RECORD}};
  segments_build_request request = {
      .progress = progress, .thorough = unreadable || !store->head.options->bulk_load, .unreadable = unreadable};
  atomic_fetch_add(&store->optimizers, 1);
  lode_status st = in_parallel ? optimize_in_parallel(store, &b, progress, err) : optimize_store(store, progress, err);
  if (st == LODE_OK) st = segments_build_all(&store->segments, &request, err);
  atomic_fetch_sub(&store->optimizers, 1);
  return st;
}

lode_status engine_optimize(lode_store *head, lode_progress progress, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  engine_enter(store);
  TRY(optimize_check_writable(store, err));
  return optimize_all(store, false, progress, err);
}

lode_status engine_rebuild_unreadable(lode_store *head, lode_progress progress, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  engine_enter(store);
  TRY(optimize_check_writable(store, err));
  return optimize_all(store, true, progress, err);
}

static lode_status compact_erase_all(engine_store *store, lode_progress progress, lode_error *err) {
  bool more = true;
  while (more) {
    if (!optimize_goes_on(progress, "erase", 0, 0))
      return err_set(err, LODE_CANCELLED, "cancelled: what is done stays done");
    TRY(optimize_step_or_wait(store, store_maintain_erase, &more, err));
  }
  err_clear(err);
  return LODE_OK;
}

/* Removes deleted vectors from segments too. Nothing is done that could make the store larger: indexes that lag stay as
 * they are, for the background threads or lode_optimize() to update. */
lode_status engine_compact(lode_store *head, lode_progress progress, lode_error *err) {
  engine_store *store = engine_store_of(head);
  segments_build_request request = {.progress = progress, .only_dead = true};
  lode_status st;
  err_clear(err);
  engine_enter(store);
  TRY(optimize_check_writable(store, err));
  atomic_fetch_add(&store->optimizers, 1);
  TRY_GOTO(compact_erase_all(store, progress, err));
  TRY_GOTO(segments_build_all(&store->segments, &request, err));
  TRY_GOTO(store_db_compact(store->db, progress, err));
done:
  atomic_fetch_sub(&store->optimizers, 1);
  return st;
}

lode_status engine_verify(lode_store *head, lode_damage_fn *found, void *ctx, lode_progress progress, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  engine_enter(store);
  uint64_t n = 0;
  lode_error why;
  lode_status st = verify_store(store->db, found, ctx, progress, err);
  if (st != LODE_OK && st != LODE_CORRUPT) return st;
  lode_status index = segments_verify(&store->segments, found, ctx, progress, &n, &why);
  if (st == LODE_CORRUPT) return st; /* damage of the database file matters more */
  if (index != LODE_OK) return err_set(err, index, "%s", why.text);
  return n ? err_set(err, LODE_CORRUPT, "the vector index is damaged in %llu places; `lode db optimize` rebuilds it",
                     (unsigned long long)n)
           : LODE_OK;
}

lode_status engine_verify_folder(const char *folder, lode_damage_fn *found, void *ctx, lode_progress progress,
                                 lode_error *err) {
  err_clear(err);
  if (!folder || !*folder) return err_set(err, LODE_INVALID, "name the folder of the damaged store");
  return verify_folder(folder, found, ctx, progress, err);
}

lode_status engine_salvage(const char *from, const char *to, lode_damage_fn *lost, void *ctx, lode_progress progress,
                           lode_salvage_report *report, lode_error *err) {
  err_clear(err);
  *report = (lode_salvage_report){0};
  if (!from || !*from || !to || !*to)
    return err_set(err, LODE_INVALID, "name the damaged store and a folder for the new one");
  return salvage_store(from, to, lost, ctx, progress, report, err);
}

lode_status engine_backup(lode_store *head, const char *file, lode_progress progress, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  engine_enter(store);
  if (!file || !*file) return err_set(err, LODE_INVALID, "name the file for the backup");
  return backup_store(store->db, file, progress, err);
}

lode_status engine_restore(const char *file, const char *folder, lode_progress progress, lode_error *err) {
  err_clear(err);
  if (!file || !*file || !folder || !*folder)
    return err_set(err, LODE_INVALID, "name the backup and the folder for the new store");
  return backup_restore(file, folder, progress, err);
}

/* Builds the vector index at the end of a bulk load. The records are safe in any case: what fails here is done
 * later. */
void engine_loaded(lode_store *head, uint64_t records, lode_progress progress) {
  engine_store *store = engine_store_of(head);
  segments_build_request request = {.progress = progress};
  lode_error why;
  if (records < segments_limits.tail_rows) return;
  err_clear(&why);
  if (segments_build_all(&store->segments, &request, &why) != LODE_OK)
    store_db_log(store->db, "the vector index is put off: %s", why.text);
}
