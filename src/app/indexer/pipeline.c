/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - see pipeline.h.
 *
 * Lock: `mutex` guards the queue, `next_task`, `running` and `stop`. A file in progress belongs to its thread, one in
 * the queue to the pipeline, and one that was returned to the caller. */
#include "indexer/pipeline.h"

#include "indexer/indexer_tuning.h"
#include <pthread.h>
#include <time.h>

enum { PIPELINE_MAX_THREADS = 64 };

struct indexer_pipeline {
  indexer_pipeline_options options;
  pthread_mutex_t mutex;
  pthread_cond_t has_file, has_room;
  indexer_file *first, **last;
  size_t waiting, waiting_bytes;
  size_t next_task;
  uint32_t running;
  bool stop;
  pthread_t threads[PIPELINE_MAX_THREADS];
  uint32_t n_threads;
};

typedef struct pipeline_worker { /* buffers that a thread reuses for each file */
  indexer_pipeline *pipeline;
  strbuf text, raw, outline;
  parser_pool_result parsed;
} pipeline_worker;

void indexer_file_free(indexer_file *file) {
  if (!file) return;
  mem_arena_release(&file->arena);
  mem_free(file->vectors);
  mem_free(file);
}

/* ---- One file ---- */

static lode_status pipeline_embed(const indexer_pipeline *p, indexer_file *f, lode_error *err) {
  lode_str texts[INDEXER_EMBED_BATCH];
  uint32_t dim = lode_embedder_info_of(p->options.embedder)->dimension;
  size_t total;
  if (mem_mul_overflow(f->n, dim, &total)) return err_nomem(err);
  f->vectors = mem_calloc(total, sizeof *f->vectors);
  if (!f->vectors) return err_nomem(err);
  for (size_t at = 0; at < f->n; at += INDEXER_EMBED_BATCH) {
    size_t n = f->n - at < INDEXER_EMBED_BATCH ? f->n - at : INDEXER_EMBED_BATCH;
    for (size_t i = 0; i < n; i++) texts[i] = f->records[at + i].embed;
    TRY(lode_embed(p->options.embedder, texts, n, f->vectors + at * dim, err));
  }
  return LODE_OK;
}

static lode_status pipeline_keep_symbols(pipeline_worker *w, indexer_file *f, lode_error *err) {
  if (w->parsed.outcome != PARSER_POOL_SYNTAX || !w->parsed.symbols.len) return LODE_OK;
  w->outline.len = 0;
  indexer_symbols_put(&w->outline, f->language, (lode_str){w->parsed.symbols.data, w->parsed.symbols.len});
  if (w->outline.len > LODE_MAX_METADATA_BYTES) return LODE_OK;
  char *copy = w->outline.failed ? NULL : mem_arena_copy(&f->arena, w->outline.data, w->outline.len);
  if (!copy) return err_nomem(err);
  f->symbols = (lode_str){copy, w->outline.len};
  return LODE_OK;
}

static lode_status pipeline_make_records(pipeline_worker *w, indexer_file *f, lode_error *err) {
  const indexer_pipeline *p = w->pipeline;
  indexer_chunk_source source = {
      .path = f->task->path, .language = f->language, .text = {w->text.data, w->text.len}, .chunks = &w->parsed.chunks};
  f->n = source.chunks->n;
  f->records = mem_arena_alloc(&f->arena, (f->n ? f->n : 1) * sizeof *f->records);
  if (!f->records) return err_nomem(err);
  for (size_t i = 0; i < f->n; i++) TRY(indexer_record_make(&source, i, &f->arena, &f->records[i], err));
  w->outline.len = 0;
  TRY(indexer_outline_make(&source, &w->outline, err));
  char *outline = mem_arena_copy(&f->arena, w->outline.data, w->outline.len);
  if (!outline) return err_nomem(err);
  f->outline = (lode_str){outline, w->outline.len};
  TRY(pipeline_keep_symbols(w, f, err));
  f->state.chunks = (uint32_t)f->n;
  return p->options.embedder && f->n ? pipeline_embed(p, f, err) : LODE_OK;
}

/* When rechecked: are the same bytes skipped for the same reason, or without secrets now and before? */
static bool pipeline_is_unchanged(const indexer_file *f) {
  const indexer_file_state *old = &f->task->old;
  if (f->skip != SCAN_SKIP_NONE) return old->skip == f->skip && !old->chunks;
  return old->skip == SCAN_SKIP_NONE && old->chunks && !old->masked && !f->state.masked;
}

/* The bytes are the indexed ones: keeps the recorded chunks. */
static lode_status pipeline_keep_old(indexer_file *f) {
  f->same = true;
  f->skip = SCAN_SKIP_NONE; /* state.skip says why it has no chunks */
  f->state.chunks = f->task->old.chunks;
  f->state.masked = f->task->old.masked;
  f->state.skip = f->task->old.skip;
  f->state.version = f->task->old.version;
  f->state.symbols = f->task->old.symbols;
  return LODE_OK;
}

static lode_status pipeline_read_file(pipeline_worker *w, indexer_file *f, lode_error *err) {
  const indexer_pipeline_options *o = &w->pipeline->options;
  scan_entry entry;
  w->raw.len = 0;
  files_path_unescape(&w->raw, f->task->path);
  strbuf_addch(&w->raw, '\0');
  if (w->raw.failed) return err_nomem(err);
  lode_str raw = {w->raw.data, w->raw.len - 1};
  f->state.at_ms = os_wall_ms();
  TRY(scan_root_read(o->root, raw, &w->text, &entry, err));
  f->skip = entry.skip;
  f->state.size = entry.size;
  f->state.mtime_ns = entry.mtime_ns;
  f->state.ctime_ns = entry.ctime_ns;
  f->state.inode = entry.inode;
  f->state.skip = f->skip;
  if (f->skip != SCAN_SKIP_NONE) return LODE_OK;
  lode_str text = {w->text.data ? w->text.data : "", w->text.len};
  indexer_digest_of(text.data, text.len, f->state.hash);
  f->language = lang_detect(raw, text);
  bool same =
      f->task->known && !f->task->rewrite && memcmp(f->state.hash, f->task->old.hash, sizeof f->state.hash) == 0;
  if (same && !f->task->recheck) return pipeline_keep_old(f);
  f->skip = scan_classify_text(o->root, raw, f->language, text);
  if (f->skip == SCAN_SKIP_NONE) f->skip = scan_root_mask(o->root, w->text.data, w->text.len, &f->state.masked);
  f->state.skip = f->skip;
  if (same && pipeline_is_unchanged(f)) return pipeline_keep_old(f);
  if (f->skip != SCAN_SKIP_NONE) return LODE_OK;
  TRY(parser_pool_chunk(o->pool, f->language, text, &w->parsed, err));
  f->outcome = w->parsed.outcome;
  memcpy(f->detail, w->parsed.detail, sizeof f->detail);
  return pipeline_make_records(w, f, err);
}

static indexer_file *pipeline_make_file(pipeline_worker *w, const indexer_task *task) {
  indexer_file *f = mem_calloc(1, sizeof *f);
  if (!f) return NULL;
  f->task = task;
  f->error.record = LODE_NO_RECORD;
  f->language = lang_detect(task->path, (lode_str){0});
  mem_arena_init(&f->arena, 0);
  lode_status st = pipeline_read_file(w, f, &f->error);
  f->error.status = st;
  return f;
}

/* ---- Threads ---- */

static const indexer_task *pipeline_take_task(indexer_pipeline *p) {
  const indexer_task *task = NULL;
  pthread_mutex_lock(&p->mutex);
  while (!p->stop && p->waiting && (p->waiting >= INDEXER_QUEUE_FILES || p->waiting_bytes >= INDEXER_QUEUE_BYTES))
    pthread_cond_wait(&p->has_room, &p->mutex);
  if (!p->stop && p->next_task < p->options.n) task = &p->options.tasks[p->next_task++];
  pthread_mutex_unlock(&p->mutex);
  return task;
}

static void pipeline_enqueue(indexer_pipeline *p, indexer_file *file) {
  pthread_mutex_lock(&p->mutex);
  *p->last = file;
  p->last = &file->next;
  p->waiting++;
  p->waiting_bytes += file->arena.used;
  pthread_cond_signal(&p->has_file);
  pthread_mutex_unlock(&p->mutex);
}

static void *pipeline_thread(void *ctx) {
  pipeline_worker w = {.pipeline = ctx};
  indexer_pipeline *p = ctx;
  const indexer_task *task;
  while ((task = pipeline_take_task(p)) != NULL) {
    indexer_file *file = pipeline_make_file(&w, task);
    if (!file) break; /* the writer notices that a file is missing */
    pipeline_enqueue(p, file);
  }
  strbuf_release(&w.text);
  strbuf_release(&w.raw);
  strbuf_release(&w.outline);
  parser_pool_result_release(&w.parsed);
  pthread_mutex_lock(&p->mutex);
  p->running--;
  pthread_cond_signal(&p->has_file);
  pthread_mutex_unlock(&p->mutex);
  return NULL;
}

lode_status indexer_pipeline_open(const indexer_pipeline_options *options, indexer_pipeline **out, lode_error *err) {
  indexer_pipeline *p = mem_calloc(1, sizeof *p);
  *out = NULL;
  if (!p) return err_nomem(err);
  int errnum = os_cond_init(&p->has_file);
  if (errnum) {
    mem_free(p);
    return err_errno(err, errnum, "pthread_cond_init");
  }
  p->options = *options;
  p->last = &p->first;
  pthread_mutex_init(&p->mutex, NULL);
  pthread_cond_init(&p->has_room, NULL);
  uint32_t want = options->threads < 1                      ? 1
                  : options->threads > PIPELINE_MAX_THREADS ? PIPELINE_MAX_THREADS
                                                            : options->threads;
  if (want > options->n) want = options->n ? (uint32_t)options->n : 1;
  p->running = want;
  while (p->n_threads < want && (errnum = pthread_create(&p->threads[p->n_threads], NULL, pipeline_thread, p)) == 0)
    p->n_threads++;
  pthread_mutex_lock(&p->mutex);
  p->running -= want - p->n_threads;
  pthread_mutex_unlock(&p->mutex);
  if (p->n_threads == 0) {
    indexer_pipeline_close(p);
    return err_errno(err, errnum, "no thread can be started");
  }
  *out = p;
  return LODE_OK;
}

indexer_file *indexer_pipeline_next(indexer_pipeline *p, uint32_t wait_ms, bool *waiting) {
  struct timespec until = os_deadline(wait_ms);
  pthread_mutex_lock(&p->mutex);
  int rc = 0;
  while (!p->first && p->running && rc == 0) rc = os_cond_wait_until(&p->has_file, &p->mutex, &until);
  indexer_file *file = p->first;
  *waiting = !file && p->running;
  if (file) {
    p->first = file->next;
    if (!p->first) p->last = &p->first;
    file->next = NULL;
    p->waiting--;
    p->waiting_bytes -= file->arena.used;
    pthread_cond_broadcast(&p->has_room); /* how many may go on is for each to see */
  }
  pthread_mutex_unlock(&p->mutex);
  return file;
}

void indexer_pipeline_close(indexer_pipeline *p) {
  if (!p) return;
  pthread_mutex_lock(&p->mutex);
  p->stop = true;
  pthread_cond_broadcast(&p->has_room);
  pthread_mutex_unlock(&p->mutex);
  for (uint32_t i = 0; i < p->n_threads; i++) pthread_join(p->threads[i], NULL);
  while (p->first) {
    indexer_file *file = p->first;
    p->first = file->next;
    indexer_file_free(file);
  }
  pthread_cond_destroy(&p->has_file);
  pthread_cond_destroy(&p->has_room);
  pthread_mutex_destroy(&p->mutex);
  mem_free(p);
}
