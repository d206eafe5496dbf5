/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_watch.c - `lode watch`: keeps the index up to date while files change.
 *
 * The watcher holds the project's PROJECT_JOB_WATCH as long as it runs, and PROJECT_JOB_INDEX only while it indexes,
 * so that it alternates with `lode index`. A change is searchable once it is written. The rest is not urgent: the
 * store's threads update its indexes, and when idle the watcher builds the graphs of new vectors, and makes missing
 * vectors if the setting `quality` is on.
 */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "os/os.h"
#include "scan/watch.h"

enum { OP_WATCH_POLL_MS = 500, OP_WATCH_IDLE_MS = 5000, OP_WATCH_PATIENCE_MS = 2000 };

typedef struct op_watch_state {
  op_context *ctx;
  project_info project;
  project_job watch, index;
  lode_store *store;
  indexer_ctx *indexer;
  watch_monitor *events;
  uint64_t scanned_ms; /* monotonic */
  bool indexes_done, vectors_done;
} op_watch_state;

static uint64_t op_watch_now_ms(void) { return os_api->now_ns() / 1000000; }

static lode_status op_watch_report(op_watch_state *w, const char *what, const indexer_report *r, uint64_t ms,
                                   lode_error *err) {
  op_row_begin(w->ctx);
  op_row_time(w->ctx, "time", os_wall_ms());
  op_row_text(w->ctx, "what", str_of(what));
  op_row_count(w->ctx, "added", r->added);
  op_row_count(w->ctx, "changed", r->changed);
  op_row_count(w->ctx, "removed", r->removed);
  op_row_count(w->ctx, "ms", ms);
  TRY(op_row_send(w->ctx, err));
  return w->ctx->sink->flush ? w->ctx->sink->flush(w->ctx->sink, err) : LODE_OK;
}

static bool op_watch_stopped(const op_watch_state *w) { return !err_go_on(w->ctx->progress, "watching", 0, 0); }

/* Waits for other indexers as long as they need; LODE_CANCELLED if the watcher is stopped meanwhile. */
static lode_status op_watch_take_turn(op_watch_state *w, lode_error *err) {
  uint64_t start = op_watch_now_ms();
  lode_error why = {.record = LODE_NO_RECORD};
  for (bool noted = false;;) {
    lode_status st = project_job_begin(&w->index, &w->project, PROJECT_JOB_INDEX, OP_WATCH_POLL_MS, &why);
    if (st == LODE_OK) return st;
    if (st != LODE_BUSY) {
      if (err) *err = why;
      return st;
    }
    if (op_watch_stopped(w)) return err_set(err, LODE_CANCELLED, "cancelled");
    if (noted || op_watch_now_ms() - start < OP_WATCH_PATIENCE_MS) continue;
    op_note(w->ctx, "waiting for another indexer: %.300s", why.text);
    noted = true;
  }
}

/* Searches believe what the watcher says of itself, so it is written at once. */
static void op_watch_tell(op_watch_state *w, bool current) {
  bool incomplete = false;
  if (w->events) (void)watch_dir_count(w->events, &incomplete);
  w->watch.noted_ms = 0;
  project_job_note(&w->watch,
                   !current     ? "catching up"
                   : incomplete ? "watching some folders"
                                : PROJECT_WATCH_CURRENT,
                   0, 0);
}

/* paths NULL: the whole tree. */
static lode_status op_watch_update(op_watch_state *w, const char *what, const lode_str *paths, size_t n,
                                   lode_error *err) {
  indexer_report report;
  uint64_t start = op_watch_now_ms();
  op_watch_tell(w, false);
  TRY(op_watch_take_turn(w, err));
  lode_status st = indexer_run(w->indexer, paths, n, &report, err);
  project_job_end(&w->index);
  op_watch_tell(w, st == LODE_OK && !watch_has_changes(w->events));
  if (st != LODE_OK) return st;
  if (!paths) w->scanned_ms = op_watch_now_ms();
  bool any = report.added || report.changed || report.removed;
  w->vectors_done = w->vectors_done && !any;
  w->indexes_done = !paths || (w->indexes_done && !any);
  return any || !paths ? op_watch_report(w, what, &report, op_watch_now_ms() - start, err) : LODE_OK;
}

static lode_status op_watch_begin(op_watch_state *w, const op_watch_args *args, lode_error *err) {
  indexer_options options = {.no_vectors = true,
                             .stays = !args->once.on,
                             .job = &w->index,
                             .note = w->ctx->note,
                             .note_ctx = w->ctx->note_ctx};
  uint64_t quiet = args->debounce.set ? args->debounce.n : config_int(&w->project.config, CONFIG_WATCH_DEBOUNCE);
  bool incomplete;
  TRY(op_check_may_write(w->ctx, err));
  TRY(trust_check(&w->project.trust, err));
  TRY(project_prepare(&w->project, err));
  TRY(project_job_begin(&w->watch, &w->project, PROJECT_JOB_WATCH, 0, err));
  TRY(op_code_open(w->ctx, &w->project, true, &w->store, err));
  TRY(indexer_open(&w->project, w->store, &options, &w->indexer, err));
  /* start watching first, so that changes during the scan are noticed */
  TRY(watch_open(indexer_root(w->indexer), (uint32_t)(quiet < 60000 ? quiet : 60000), &w->events, err));
  TRY(op_watch_update(w, "the whole tree", NULL, 0, err));
  size_t folders = watch_dir_count(w->events, &incomplete);
  op_note(w->ctx, "watching %zu folders of %.300s", folders, w->project.root);
  if (incomplete)
    op_note(
        w->ctx,
        "the kernel watches no more folders (fs.inotify.max_user_watches): the others are looked at from time to time");
  return LODE_OK;
}

/* Progress callback of work for idle times: stops it when the watcher is stopped or a file has changed. */
static bool op_watch_is_idle(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  op_watch_state *w = ctx;
  (void)phase;
  if (w->index.fd >= 0) project_job_note(&w->index, "embedding", done, total);
  return !watch_has_changes(w->events) && !op_watch_stopped(w);
}

static lode_status op_watch_finish_indexes(op_watch_state *w, lode_error *err) {
  if (w->indexes_done) return LODE_OK;
  TRY(lode_optimize(w->store, (lode_progress){op_watch_is_idle, w}, err));
  w->indexes_done = true;
  return LODE_OK;
}

static lode_status op_watch_make_vectors(op_watch_state *w, lode_error *err) {
  indexer_options options = {.quality = true, .job = &w->index, .progress = {op_watch_is_idle, w}};
  indexer_ctx *filler = NULL;
  indexer_report report;
  lode_str nothing = STR_LIT(".lode");
  if (w->vectors_done || !config_bool(&w->project.config, CONFIG_QUALITY)) return LODE_OK;
  TRY(project_job_begin(&w->index, &w->project, PROJECT_JOB_INDEX, 0, err));
  lode_status st = indexer_open(&w->project, w->store, &options, &filler, err);
  if (st == LODE_OK) st = indexer_run(filler, &nothing, 1, &report, err);
  indexer_close(filler);
  project_job_end(&w->index);
  w->vectors_done = st == LODE_OK;
  return st;
}

static lode_status op_watch_run(op_watch_state *w, bool once, lode_error *err) {
  uint64_t rescan_ms = config_int(&w->project.config, CONFIG_WATCH_RESCAN) * 1000, idle_since = op_watch_now_ms();
  for (;;) {
    watch_changes changes;
    if (op_watch_stopped(w)) return LODE_OK;
    TRY(watch_wait(w->events, OP_WATCH_POLL_MS, &changes, err));
    bool due = changes.everything || (rescan_ms && op_watch_now_ms() - w->scanned_ms >= rescan_ms);
    if (due)
      TRY(op_watch_update(w, changes.everything ? "events were lost: the whole tree" : "the whole tree", NULL, 0, err));
    else if (changes.n)
      TRY(op_watch_update(w, "changes", changes.paths, changes.n, err));
    if (due || changes.n) idle_since = op_watch_now_ms();
    if (once && (changes.n || changes.everything)) return LODE_OK;
    if (op_watch_now_ms() - idle_since < OP_WATCH_IDLE_MS) continue;
    lode_status st = op_watch_finish_indexes(w, err);
    if (st == LODE_OK) st = op_watch_make_vectors(w, err);
    if (st != LODE_OK && st != LODE_BUSY && st != LODE_CANCELLED) return st;
    idle_since = op_watch_now_ms();
  }
}

lode_status op_do_watch(op_context *ctx, const op_watch_args *args, lode_error *err) {
  op_watch_state w = {.ctx = ctx, .watch = {.fd = -1}, .index = {.fd = -1}};
  lode_status st;
  TRY(op_code_project(ctx, args->path.path, &w.project, err));
  TRY_GOTO(op_watch_begin(&w, args, err));
  TRY_GOTO(op_watch_run(&w, args->once.on, err));
done:
  if (st == LODE_CANCELLED) { /* Ctrl-C is the normal end */
    err_clear(err);
    st = LODE_OK;
  }
  watch_close(w.events);
  indexer_close(w.indexer);
  if (w.store) ctx->release(ctx->opener, w.store);
  project_job_end(&w.index);
  project_job_end(&w.watch);
  project_release(&w.project);
  return st;
}
