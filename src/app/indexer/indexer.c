/* SPDX-License-Identifier: Apache-2.0 */
/* indexer.c - one run: walk, index, remove, switch, embed; see indexer.h. */
#include "indexer/indexer_internal.h"

#include "indexer/audit.h"
#include "indexer/fill_vectors.h"

#include <stdio.h>

void indexer_note(indexer_ctx *x, const char *format, ...) {
  char text[600];
  va_list list;
  if (!x->options.note || x->notes++ >= INDEXER_MAX_NOTES) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  x->options.note(x->options.note_ctx, text);
}

static bool indexer_on_progress(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  indexer_ctx *x = ctx;
  if (x->options.job) project_job_note(x->options.job, phase, done, total);
  return err_go_on(x->options.progress, phase, done, total);
}

lode_progress indexer_progress(indexer_ctx *x) { return (lode_progress){indexer_on_progress, x}; }
static uint64_t indexer_now_ms(void) { return os_api->now_ns() / 1000000; }

/* ---- Opening and closing ---- */

scan_options indexer_scan_options(const config_values *config) {
  return (scan_options){
      .hidden = config_bool(config, CONFIG_INDEX_HIDDEN),
      .generated = config_bool(config, CONFIG_INDEX_GENERATED),
      .secrets = mask_policy_parse(config_text(config, CONFIG_INDEX_SECRETS)),
      .max_bytes = config_int(config, CONFIG_INDEX_MAX_FILE),
      .exclude = str_of(config_text(config, CONFIG_INDEX_EXCLUDE)),
      .extensions = str_of(config_text(config, CONFIG_INDEX_EXTENSIONS)),
  };
}

lode_status indexer_open(const project_info *project, lode_store *store, const indexer_options *options,
                         indexer_ctx **out, lode_error *err) {
  const config_values *config = &project->config;
  scan_options walk = indexer_scan_options(config);
  lode_status st;
  *out = NULL;
  indexer_ctx *x = mem_calloc(1, sizeof *x);
  if (!x) return err_nomem(err);
  x->project = project;
  x->store = store;
  x->options = *options;
  if (!x->options.workers) x->options.workers = (uint32_t)config_int(config, CONFIG_INDEX_WORKERS);
  if (!x->options.workers) x->options.workers = os_cpu_count();
  parser_pool_options pool = {.workers = x->options.workers};
  mem_arena_init(&x->file_table.paths, 0);
  TRY_GOTO(scan_root_open(project->root, &walk, &x->root, err));
  if (os_api->stat(project->root, &x->root_stat) < 0) TRY_GOTO(err_errno(err, errno, project->root));
  TRY_GOTO(parser_pool_open(&pool, &x->pool, err));
  TRY_GOTO(indexer_open_models(x, err));
  TRY_GOTO(indexer_prepare_colls(x, err));
  *out = x;
done:
  if (st != LODE_OK) indexer_close(x);
  return st;
}

static void indexer_forget_run(indexer_ctx *x) {
  mem_free(x->todo.v);
  mem_arena_release(&x->todo.arena);
  mem_free(x->scope.v);
  mem_free(x->unreadable.v);
  x->todo = (indexer_tasks){0};
  x->scope = x->unreadable = (indexer_prefixes){0};
}

void indexer_close(indexer_ctx *x) {
  if (!x) return;
  indexer_forget_run(x);
  indexer_close_colls(x);
  indexer_file_table_release(&x->file_table);
  parser_pool_close(x->pool);
  scan_root_close(x->root);
  if (x->own_embedder) lode_embedder_close(x->embedder);
  lode_embedder_close(x->second);
  mem_free(x);
}

const scan_root *indexer_root(const indexer_ctx *x) { return x->root; }

/* ---- Index ---- */

static void indexer_count_file(indexer_ctx *x, const indexer_file *f) {
  indexer_report *r = x->report;
  char quoted[256];
  bool was = f->task->known && f->task->old.skip == SCAN_SKIP_NONE;
  if (f->same) {
    indexer_count_unchanged(r, &f->state);
    return;
  }
  r->masked += f->state.masked;
  if (f->skip != SCAN_SKIP_NONE) {
    r->skipped[f->skip]++;
    r->removed += was;
    return;
  }
  r->files++;
  r->changed += was;
  r->added += !was;
  r->chunks += f->n;
  r->bytes += f->state.size;
  if (f->vectors) r->vectors += f->n;
  if (f->outcome < PARSER_POOL_CRASHED) return;
  r->unparsed++;
  indexer_note(x, "%s: %s%s%s; it was cut by lines", str_quote(f->task->path, quoted, sizeof quoted),
               parser_pool_outcome_text(f->outcome), f->detail[0] ? ": " : "", f->detail);
}

static lode_status indexer_drain(indexer_ctx *x, indexer_pipeline *pipeline, indexer_batch *batch, size_t *done,
                                 lode_error *err) {
  uint64_t flushed = indexer_now_ms(), cost = 0;
  bool waiting = true;
  indexer_file *file;
  while ((file = indexer_pipeline_next(pipeline, INDEXER_WAIT_MS, &waiting)) != NULL || waiting) {
    if (file) {
      lode_error failed = file->error;
      cost += file->task->size + INDEXER_FILE_COST;
      (*done)++;
      if (failed.status != LODE_OK) {
        indexer_file_free(file);
        if (err) *err = failed;
        return failed.status;
      }
      indexer_count_file(x, file);
      TRY(indexer_batch_add(batch, file, err));
    }
    if (indexer_batch_full(batch) || indexer_now_ms() - flushed >= INDEXER_FLUSH_MS) {
      TRY(indexer_batch_flush(batch, err));
      flushed = indexer_now_ms();
    }
    /* Counts files, weighted by cost: so that the time left is right when large files are still to come */
    uint64_t shown = x->todo.cost ? (uint64_t)((double)cost / (double)x->todo.cost * (double)x->todo.n) : 0;
    if (!indexer_on_progress(x, "indexing", shown < x->todo.n ? shown : x->todo.n, x->todo.n)) {
      TRY(indexer_batch_flush(batch, err));
      return err_set(err, LODE_CANCELLED, "interrupted: what was done stays, `lode index` goes on from there");
    }
  }
  return indexer_batch_flush(batch, err);
}

static lode_status indexer_index_files(indexer_ctx *x, lode_error *err) {
  indexer_pipeline_options o = {.root = x->root,
                                .pool = x->pool,
                                .embedder = x->instant ? x->embedder : NULL,
                                .threads = x->options.workers,
                                .tasks = x->todo.v,
                                .n = x->todo.n};
  indexer_batch batch = {.colls = &x->colls, .file_table = &x->file_table, .keep_vectors = !x->instant};
  indexer_pipeline *pipeline = NULL;
  size_t done = 0;
  lode_status st = LODE_OK;
  if (x->todo.n == 0) return LODE_OK;
  if (o.embedder) batch.dimension = lode_embedder_info_of(o.embedder)->dimension;
  TRY_GOTO(indexer_pipeline_open(&o, &pipeline, err));
  TRY_GOTO(indexer_drain(x, pipeline, &batch, &done, err));
  if (done < x->todo.n) st = err_nomem(err);
done:
  x->report->reused += batch.reused;
  indexer_pipeline_close(pipeline);
  indexer_batch_release(&batch);
  return st;
}

/* ---- Remove ---- */

static lode_status indexer_remove_unseen(indexer_ctx *x, lode_error *err) {
  indexer_file_entry **gone = NULL;
  size_t n = 0, cap = 0;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < x->file_table.n; i++) {
    indexer_file_entry *k = &x->file_table.items[i];
    if (k->gone || k->mark == x->file_table.mark || !indexer_is_under(&x->scope, k->path) ||
        indexer_is_under(&x->unreadable, k->path))
      continue;
    if (!mem_grow(&gone, &cap, n + 1, sizeof *gone)) TRY_GOTO(err_nomem(err));
    gone[n++] = k;
  }
  if (n) TRY_GOTO(indexer_check_root(x, err));
  TRY_GOTO(indexer_remove_files(&x->colls, &x->file_table, gone, n, indexer_progress(x), err));
  x->report->removed += n;
done:
  mem_free(gone);
  return st;
}

/* ---- Vectors ---- */

static lode_status indexer_run_backfill(indexer_ctx *x, lode_collection *target, lode_collection *donor,
                                        lode_embedder *embedder, const char *phase, lode_error *err) {
  indexer_backfill f = {.code = x->colls.code,
                        .target = target,
                        .donor_code = x->old_code,
                        .donor_target = donor,
                        .embedder = embedder,
                        .phase = phase,
                        .progress = indexer_progress(x)};
  lode_status st = LODE_OK;
  if (target != x->colls.code) st = indexer_backfill_prepare(&f, err);
  if (st == LODE_OK) st = indexer_backfill_run(&f, err);
  x->report->vectors += f.made;
  x->report->reused += f.reused;
  return st;
}

/* Copies vectors of equal texts; quick, because no model is needed. */
static lode_status indexer_reuse_vectors(indexer_ctx *x, lode_error *err) {
  if (!x->instant && x->embedder && (x->report->added || x->rebuild))
    TRY(indexer_run_backfill(x, x->colls.code, x->donate ? x->old_code : NULL, NULL, "finding known vectors", err));
  if (x->colls.quality && (x->report->added || x->rebuild))
    TRY(indexer_run_backfill(x, x->colls.quality, x->old_quality, NULL, "finding known vectors", err));
  return LODE_OK;
}

static lode_status indexer_embed_pending(indexer_ctx *x, lode_error *err) {
  if (x->options.no_vectors) return LODE_OK;
  if (x->embedder) TRY(indexer_run_backfill(x, x->colls.code, NULL, x->embedder, "embedding", err));
  if (x->colls.quality && x->second && (x->options.quality || config_bool(&x->project->config, CONFIG_QUALITY)))
    TRY(indexer_run_backfill(x, x->colls.quality, NULL, x->second, "embedding (quality)", err));
  return LODE_OK;
}

/* ---- The end ---- */

static lode_status indexer_switch_over(indexer_ctx *x, lode_error *err) {
  lode_replacement pairs[] = {
      {STR_LIT(INDEXER_COLL_CODE INDEXER_NEW_SUFFIX), STR_LIT(INDEXER_COLL_CODE)},
      {STR_LIT(INDEXER_COLL_FILES INDEXER_NEW_SUFFIX), STR_LIT(INDEXER_COLL_FILES)},
      {STR_LIT(INDEXER_COLL_SYMBOLS INDEXER_NEW_SUFFIX), STR_LIT(INDEXER_COLL_SYMBOLS)},
      {STR_LIT(INDEXER_COLL_QUALITY INDEXER_NEW_SUFFIX), STR_LIT(INDEXER_COLL_QUALITY)},
  };
  if (!x->rebuild) return LODE_OK;
  if (x->old_code) lode_collection_close(x->old_code);
  if (x->old_quality) lode_collection_close(x->old_quality);
  x->old_code = x->old_quality = NULL;
  TRY(lode_collections_replace(x->store, pairs, x->colls.quality ? 4 : 3, err));
  TRY(indexer_drop_kept(x, err));
  x->rebuild = false;
  x->options.force = false;
  return LODE_OK;
}

static lode_status indexer_write_stamp(indexer_ctx *x, bool whole, uint64_t started, lode_error *err) {
  indexer_stamp *s = &x->stamp;
  s->revision = INDEXER_REVISION;
  s->indexed_ms = os_wall_ms();
  if (whole) {
    s->scanned_ms = s->indexed_ms;
    s->took_ms = indexer_now_ms() - started;
    memcpy(s->skipped, x->report->skipped, sizeof s->skipped);
    s->masked = x->report->masked;
    indexer_stamp_secrets(&x->project->config, s->secrets);
    x->recheck = x->rewrite = false;
  }
  snprintf(s->lode, sizeof s->lode, "%s", lode_version());
  snprintf(s->root, sizeof s->root, "%s",
           utf8_valid(x->project->root, strlen(x->project->root)) ? x->project->root : "");
  return indexer_save_stamp(x, err);
}

/* Removes what writers that died have left, and has the next run read again what was lost. Only looks where the number
 * of chunks is not the files'. */
static lode_status indexer_sweep(indexer_ctx *x, lode_error *err) {
  uint64_t wanted = 0, there;
  indexer_audit audit;
  if (!x->colls.versioned) return LODE_OK;
  for (size_t i = 0; i < x->file_table.n; i++)
    if (!x->file_table.items[i].gone) wanted += x->file_table.items[i].file.chunks;
  TRY(lode_count(x->colls.code, &there, err));
  return there == wanted ? LODE_OK : indexer_audit_run(x->store, true, indexer_progress(x), &audit, err);
}

static bool indexer_changed_anything(const indexer_report *r) {
  return r->chunks || r->changed || r->removed || r->vectors || r->reused;
}

static lode_status indexer_finish(indexer_ctx *x, bool whole, uint64_t started, lode_error *err) {
  lode_stats stats;
  uint64_t before = indexer_now_ms();
  if (x->rebuild && x->other_model) TRY(indexer_embed_pending(x, err));
  x->report->embed_ms = indexer_now_ms() - before;
  TRY(indexer_write_stamp(x, whole, started, err));
  TRY(indexer_switch_over(x, err));
  if (indexer_changed_anything(x->report) && (whole || !x->options.stays))
    TRY(lode_optimize(x->store, indexer_progress(x), err));
  if (whole) TRY(indexer_sweep(x, err));
  before = indexer_now_ms();
  TRY(indexer_embed_pending(x, err));
  x->report->embed_ms += indexer_now_ms() - before;
  if (x->report->embed_ms > INDEXER_FLUSH_MS) TRY(lode_optimize(x->store, indexer_progress(x), err));
  TRY(lode_collection_stats(x->colls.code, &stats, err));
  x->report->pending = stats.pending;
  TRY(lode_collection_stats(x->colls.files, &stats, err));
  x->file_table.cursor = stats.cursor;
  return LODE_OK;
}

lode_status indexer_run(indexer_ctx *x, const lode_str *paths, size_t n_paths, indexer_report *report,
                        lode_error *err) {
  uint64_t start = indexer_now_ms(), walked, indexed;
  lode_status st;
  memset(report, 0, sizeof *report);
  x->report = report;
  x->notes = x->seen = 0;
  mem_arena_init(&x->todo.arena, 0);
  if (x->rebuild || x->rewrite) paths = NULL; /* a rebuild covers everything: it replaces all that was there */
  report->vectorless = !x->embedder;
  TRY_GOTO(indexer_scan(x, paths, n_paths, err));
  walked = indexer_now_ms();
  report->walk_ms = walked - start;
  TRY_GOTO(indexer_index_files(x, err));
  TRY_GOTO(indexer_reuse_vectors(x, err));
  TRY_GOTO(indexer_remove_unseen(x, err));
  indexed = indexer_now_ms();
  report->index_ms = indexed - walked;
  TRY_GOTO(indexer_finish(x, paths == NULL, start, err));
  report->finish_ms = indexer_now_ms() - indexed - report->embed_ms;
done:
  indexer_forget_run(x);
  return st;
}

lode_status indexer_remove(indexer_ctx *x, lode_str path, indexer_report *report, lode_error *err) {
  lode_status st;
  if (x->rebuild || x->rewrite) TRY(indexer_run(x, NULL, 0, report, err));
  memset(report, 0, sizeof *report);
  x->report = report;
  mem_arena_init(&x->todo.arena, 0);
  TRY_GOTO(indexer_load_files(x, err));
  x->file_table.mark++;
  TRY_GOTO(indexer_add_prefix(x, &x->scope, path, err));
  TRY_GOTO(indexer_remove_unseen(x, err));
  TRY_GOTO(indexer_finish(x, false, indexer_now_ms(), err));
done:
  indexer_forget_run(x);
  return st;
}
