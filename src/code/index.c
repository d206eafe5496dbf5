/* index.c - one run: walk, index, remove, switch, embed. See index.h. */
#include "indexing.h"

#include "code/fill.h"

#include <stdio.h>
#include <unistd.h>

enum { WAIT_MS = 100, FLUSH_MS = 1000, MOST_NOTES = 20 };

void lode__indexing_note(lode__indexer *x, const char *format, ...) {
  char text[600];
  va_list list;
  if (!x->options.note || x->notes++ >= MOST_NOTES) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  x->options.note(x->options.note_ctx, text);
}

bool lode__indexing_step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  lode__indexer *x = ctx;
  if (x->options.job) lode__job_note(x->options.job, phase, done, total);
  return !x->options.progress.step || x->options.progress.step(x->options.progress.ctx, phase, done, total);
}

lode_progress lode__indexing_progress(lode__indexer *x) { return (lode_progress){lode__indexing_step, x}; }
static uint64_t now_ms(void) { return os_api->now_ns() / 1000000; }

/* ---- Life ---- */

lode__walk_options lode__index_walk_options(const lode__config *config) {
  return (lode__walk_options){
      .hidden = lode__config_bool(config, LODE__CONFIG_INDEX_HIDDEN),
      .generated = lode__config_bool(config, LODE__CONFIG_INDEX_GENERATED),
      .secrets = lode__secrets_of(lode__config_text(config, LODE__CONFIG_INDEX_SECRETS)),
      .max_bytes = lode__config_int(config, LODE__CONFIG_INDEX_MAX_FILE),
  };
}

lode_status lode__indexer_open(const lode__project *project, lode_store *store, const lode__index_options *options,
                               lode__indexer **out, lode_error *err) {
  const lode__config *config = &project->config;
  lode__walk_options walk = lode__index_walk_options(config);
  lode_status st;
  *out = NULL;
  lode__indexer *x = mem_calloc(1, sizeof *x);
  if (!x) return err_nomem(err);
  x->project = project;
  x->store = store;
  x->options = *options;
  if (!x->options.workers) x->options.workers = (uint32_t)lode__config_int(config, LODE__CONFIG_INDEX_WORKERS);
  if (!x->options.workers) x->options.workers = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
  lode__pool_options pool = {.workers = x->options.workers};
  mem_arena_init(&x->known.paths, 0);
  TRY_GOTO(lode__root_open(project->root, &walk, &x->root, err));
  if (os_api->stat(project->root, &x->root_stat) < 0) TRY_GOTO(err_errno(err, errno, project->root));
  TRY_GOTO(lode__pool_open(&pool, &x->pool, err));
  TRY_GOTO(lode__indexing_open_models(x, err));
  TRY_GOTO(lode__indexing_open(x, err));
  *out = x;
done:
  if (st != LODE_OK) lode__indexer_close(x);
  return st;
}

static void forget_run(lode__indexer *x) {
  mem_free(x->todo.v);
  mem_arena_release(&x->todo.arena);
  mem_free(x->scope.v);
  mem_free(x->unreadable.v);
  x->todo = (tasks){0};
  x->scope = x->unreadable = (prefixes){0};
}

void lode__indexer_close(lode__indexer *x) {
  if (!x) return;
  forget_run(x);
  lode__indexing_close(x);
  lode__known_release(&x->known);
  lode__pool_close(x->pool);
  lode__root_close(x->root);
  if (x->own_embedder) lode_embedder_close(x->embedder);
  lode_embedder_close(x->second);
  mem_free(x);
}

const lode__root *lode__indexer_root(const lode__indexer *x) { return x->root; }

/* ---- Index ---- */

static void account(lode__indexer *x, const lode__feed_file *f) {
  lode__index_report *r = x->report;
  char quoted[256];
  lode__skip skip = f->skip != LODE__SKIP_NONE ? f->skip : f->state.skip;
  if (skip != LODE__SKIP_NONE) r->skipped[skip]++;
  r->masked += f->state.masked;
  if (f->same) r->unchanged++;
  else if (f->task->known) r->changed++;
  else if (f->skip == LODE__SKIP_NONE) r->added++;
  if (f->same || f->skip != LODE__SKIP_NONE) return;
  r->chunks += f->n;
  r->bytes += f->state.size;
  if (f->vectors) r->vectors += f->n;
  if (f->outcome < LODE__PARSE_CRASHED) return;
  r->unparsed++;
  lode__indexing_note(x, "%s: %s%s%s; it was cut by lines", str_quote(f->task->path, quoted, sizeof quoted),
       lode__parse_outcome_text(f->outcome), f->detail[0] ? ": " : "", f->detail);
}

static lode_status drain(lode__indexer *x, lode__feed *feed, lode__file_batch *batch, size_t *done, lode_error *err) {
  uint64_t flushed = now_ms(), cost = 0;
  bool waiting = true;
  lode__feed_file *file;
  while ((file = lode__feed_next(feed, WAIT_MS, &waiting)) != NULL || waiting) {
    if (file) {
      lode_error failed = file->error;
      cost += file->task->size + LODE__FILE_COST;
      (*done)++;
      if (failed.status != LODE_OK) {
        lode__feed_file_free(file);
        if (err) *err = failed;
        return failed.status;
      }
      account(x, file);
      TRY(lode__file_batch_add(batch, file, err));
    }
    if (lode__file_batch_full(batch) || now_ms() - flushed >= FLUSH_MS) {
      TRY(lode__file_batch_flush(batch, err));
      flushed = now_ms();
    }
    /* Files, but by their cost: so that the time left is right when large ones are still to come */
    uint64_t shown = x->todo.cost ? (uint64_t)((double)cost / (double)x->todo.cost * (double)x->todo.n) : 0;
    if (!lode__indexing_step(x, "indexing", shown < x->todo.n ? shown : x->todo.n, x->todo.n)) {
      TRY(lode__file_batch_flush(batch, err));
      return err_set(err, LODE_CANCELLED, "interrupted: what was done stays, `lode index` goes on from there");
    }
  }
  return lode__file_batch_flush(batch, err);
}

static lode_status index_files(lode__indexer *x, lode_error *err) {
  lode__feed_options o = {.root = x->root, .pool = x->pool, .embedder = x->instant ? x->embedder : NULL,
                          .threads = x->options.workers, .tasks = x->todo.v, .n = x->todo.n};
  lode__file_batch batch = {.shelf = &x->shelf, .known = &x->known, .keep_vectors = !x->instant};
  lode__feed *feed = NULL;
  size_t done = 0;
  lode_status st = LODE_OK;
  if (x->todo.n == 0) return LODE_OK;
  if (o.embedder) batch.dimension = lode_embedder_info_of(o.embedder)->dimension;
  TRY_GOTO(lode__feed_open(&o, &feed, err));
  TRY_GOTO(drain(x, feed, &batch, &done, err));
  if (done < x->todo.n) st = err_nomem(err);
done:
  x->report->reused += batch.reused;
  lode__feed_close(feed);
  lode__file_batch_release(&batch);
  return st;
}

/* ---- Remove ---- */

static lode_status remove_unseen(lode__indexer *x, lode_error *err) {
  lode__known **gone = NULL;
  size_t n = 0, cap = 0;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < x->known.n; i++) {
    lode__known *k = &x->known.items[i];
    if (k->gone || k->mark == x->known.mark || !lode__indexing_is_under(&x->scope, k->path) || lode__indexing_is_under(&x->unreadable, k->path)) continue;
    if (!mem_grow(&gone, &cap, n + 1, sizeof *gone)) TRY_GOTO(err_nomem(err));
    gone[n++] = k;
  }
  if (n) TRY_GOTO(lode__indexing_check_root(x, err));
  TRY_GOTO(lode__file_batch_remove(&x->shelf, &x->known, gone, n, lode__indexing_progress(x), err));
  x->report->removed = n;
done:
  mem_free(gone);
  return st;
}

/* ---- Vectors ---- */

static lode_status fill(lode__indexer *x, lode_collection *target, lode_collection *donor, lode_embedder *embedder,
                        const char *phase, lode_error *err) {
  lode__fill f = {.code = x->shelf.code, .target = target, .donor_code = x->old_code, .donor_target = donor, .embedder = embedder,
                  .phase = phase, .progress = lode__indexing_progress(x)};
  lode_status st = LODE_OK;
  if (target != x->shelf.code) st = lode__fill_prepare(&f, err);
  if (st == LODE_OK) st = lode__fill_run(&f, err);
  x->report->vectors += f.made;
  x->report->reused += f.reused;
  return st;
}

/* What others have: without a model, so that it is quick. */
static lode_status reuse(lode__indexer *x, lode_error *err) {
  if (!x->instant && x->embedder && (x->report->added || x->aside))
    TRY(fill(x, x->shelf.code, x->donate ? x->old_code : NULL, NULL, "finding known vectors", err));
  if (x->shelf.quality && (x->report->added || x->aside))
    TRY(fill(x, x->shelf.quality, x->old_quality, NULL, "finding known vectors", err));
  return LODE_OK;
}

static lode_status embed(lode__indexer *x, lode_error *err) {
  if (x->options.no_vectors) return LODE_OK;
  if (x->embedder) TRY(fill(x, x->shelf.code, NULL, x->embedder, "embedding", err));
  if (x->shelf.quality && x->second && (x->options.quality || lode__config_bool(&x->project->config, LODE__CONFIG_QUALITY)))
    TRY(fill(x, x->shelf.quality, NULL, x->second, "embedding (quality)", err));
  return LODE_OK;
}

/* ---- The end ---- */

static lode_status switch_over(lode__indexer *x, lode_error *err) {
  lode_replacement pairs[] = {
      {STR_LIT(LODE__CODE LODE__CODE_ASIDE), STR_LIT(LODE__CODE)},
      {STR_LIT(LODE__CODE_FILES LODE__CODE_ASIDE), STR_LIT(LODE__CODE_FILES)},
      {STR_LIT(LODE__CODE_QUALITY LODE__CODE_ASIDE), STR_LIT(LODE__CODE_QUALITY)},
  };
  if (!x->aside) return LODE_OK;
  if (x->old_code) lode_collection_close(x->old_code);
  if (x->old_quality) lode_collection_close(x->old_quality);
  x->old_code = x->old_quality = NULL;
  TRY(lode_collections_replace(x->store, pairs, x->shelf.quality ? 3 : 2, err));
  x->aside = false;
  x->options.force = false;
  return LODE_OK;
}

static lode_status write_stamp(lode__indexer *x, bool whole, uint64_t started, lode_error *err) {
  lode__stamp *s = &x->stamp;
  s->revision = LODE__CODE_REVISION;
  s->indexed_ms = os_wall_ms();
  if (whole) {
    s->scanned_ms = s->indexed_ms;
    s->took_ms = now_ms() - started;
    memcpy(s->skipped, x->report->skipped, sizeof s->skipped);
    s->masked = x->report->masked;
    lode__stamp_secrets(&x->project->config, s->secrets);
    x->recheck = false;
  }
  snprintf(s->lode, sizeof s->lode, "%s", lode_version());
  snprintf(s->root, sizeof s->root, "%s", utf8_valid(x->project->root, strlen(x->project->root)) ? x->project->root : "");
  return lode__indexing_keep_stamp(x, err);
}

static bool did_something(const lode__index_report *r) { return r->chunks || r->changed || r->removed || r->vectors || r->reused; }

static lode_status finish(lode__indexer *x, bool whole, uint64_t started, lode_error *err) {
  lode_stats stats;
  TRY(write_stamp(x, whole, started, err));
  TRY(switch_over(x, err));
  if (did_something(x->report) && (whole || !x->options.stays)) TRY(lode_optimize(x->store, lode__indexing_progress(x), err));
  uint64_t before = now_ms();
  TRY(embed(x, err));
  x->report->embed_ms = now_ms() - before;
  if (x->report->embed_ms > FLUSH_MS) TRY(lode_optimize(x->store, lode__indexing_progress(x), err));
  TRY(lode_collection_stats(x->shelf.code, &stats, err));
  x->report->pending = stats.pending;
  TRY(lode_collection_stats(x->shelf.files, &stats, err));
  x->known.cursor = stats.cursor;
  return LODE_OK;
}

lode_status lode__indexer_run(lode__indexer *x, const lode_str *paths, size_t n_paths, lode__index_report *report, lode_error *err) {
  uint64_t start = now_ms(), walked, indexed;
  lode_status st;
  memset(report, 0, sizeof *report);
  x->report = report;
  x->notes = 0;
  mem_arena_init(&x->todo.arena, 0);
  if (x->aside) paths = NULL; /* what is made anew is made whole: it takes the place of all that was there */
  report->vectorless = !x->embedder;
  TRY_GOTO(lode__indexing_walk(x, paths, n_paths, err));
  walked = now_ms();
  report->walk_ms = walked - start;
  TRY_GOTO(index_files(x, err));
  TRY_GOTO(reuse(x, err));
  TRY_GOTO(remove_unseen(x, err));
  indexed = now_ms();
  report->index_ms = indexed - walked;
  TRY_GOTO(finish(x, paths == NULL, start, err));
  report->finish_ms = now_ms() - indexed - report->embed_ms;
done:
  forget_run(x);
  return st;
}

lode_status lode__indexer_remove(lode__indexer *x, lode_str path, lode__index_report *report, lode_error *err) {
  lode_status st;
  if (x->aside) TRY(lode__indexer_run(x, NULL, 0, report, err));
  memset(report, 0, sizeof *report);
  x->report = report;
  mem_arena_init(&x->todo.arena, 0);
  TRY_GOTO(lode__indexing_load_known(x, err));
  x->known.mark++;
  TRY_GOTO(lode__indexing_add_prefix(x, &x->scope, path, err));
  TRY_GOTO(remove_unseen(x, err));
  TRY_GOTO(finish(x, false, now_ms(), err));
done:
  forget_run(x);
  return st;
}
