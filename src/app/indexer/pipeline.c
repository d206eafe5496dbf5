/* pipeline.c - see pipeline.h.
 *
 * Lock: `mutex` guards the queue, `next_task`, `running` and `stop`. A file that is being made belongs to its thread, one in the queue to
 * nobody, one that was given out to the caller. */
#include "indexer/pipeline.h"

#include <pthread.h>
#include <time.h>

enum { PIPELINE_QUEUE_FILES = 256, PIPELINE_MAX_THREADS = 64, PIPELINE_EMBED_BATCH = 128 };
#define PIPELINE_QUEUE_BYTES (64u << 20)

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

typedef struct pipeline_worker { /* what a thread uses again for each file */
  indexer_pipeline *feed;
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

static lode_status pipeline_embed(const indexer_pipeline *feed, indexer_file *f, lode_error *err) {
  lode_str texts[PIPELINE_EMBED_BATCH];
  uint32_t dim = lode_embedder_info_of(feed->options.embedder)->dimension;
  size_t total;
  if (mem_mul_overflow(f->n, dim, &total)) return err_nomem(err);
  f->vectors = mem_calloc(total, sizeof *f->vectors);
  if (!f->vectors) return err_nomem(err);
  for (size_t at = 0; at < f->n; at += PIPELINE_EMBED_BATCH) {
    size_t n = f->n - at < PIPELINE_EMBED_BATCH ? f->n - at : PIPELINE_EMBED_BATCH;
    for (size_t i = 0; i < n; i++) texts[i] = f->records[at + i].embed;
    TRY(lode_embed(feed->options.embedder, texts, n, f->vectors + at * dim, err));
  }
  return LODE_OK;
}

static lode_status pipeline_make_records(pipeline_worker *w, indexer_file *f, lode_error *err) {
  const indexer_pipeline *feed = w->feed;
  indexer_chunk_source source = {.path = f->task->path, .language = f->language, .text = {w->text.data, w->text.len},
                               .chunks = &w->parsed.chunks};
  f->n = source.chunks->n;
  f->records = mem_arena_alloc(&f->arena, (f->n ? f->n : 1) * sizeof *f->records);
  if (!f->records) return err_nomem(err);
  for (size_t i = 0; i < f->n; i++) TRY(indexer_record_make(&source, i, &f->arena, &f->records[i], err));
  w->outline.len = 0;
  TRY(indexer_outline_make(&source, &w->outline, err));
  char *outline = mem_arena_copy(&f->arena, w->outline.data, w->outline.len);
  if (!outline) return err_nomem(err);
  f->outline = (lode_str){outline, w->outline.len};
  f->state.chunks = (uint32_t)f->n;
  return feed->options.embedder && f->n ? pipeline_embed(feed, f, err) : LODE_OK;
}

/* Looked at again, the same bytes are left out for the same reason, or have no secrets and had none. */
static bool pipeline_is_unchanged(const indexer_file *f) {
  const indexer_file_state *old = &f->task->old;
  if (f->skip != SCAN_SKIP_NONE) return old->skip == f->skip && !old->chunks;
  return old->skip == SCAN_SKIP_NONE && old->chunks && !old->masked && !f->state.masked;
}

/* Its bytes are those that are indexed. */
static lode_status pipeline_keep_old(indexer_file *f) {
  f->same = true;
  f->skip = SCAN_SKIP_NONE; /* its state says why it has no chunks */
  f->state.chunks = f->task->old.chunks;
  f->state.masked = f->task->old.masked;
  f->state.skip = f->task->old.skip;
  return LODE_OK;
}

static lode_status pipeline_read_file(pipeline_worker *w, indexer_file *f, lode_error *err) {
  const indexer_pipeline_options *o = &w->feed->options;
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
  bool same = f->task->known && memcmp(f->state.hash, f->task->old.hash, sizeof f->state.hash) == 0;
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

static const indexer_task *pipeline_take_task(indexer_pipeline *feed) {
  const indexer_task *task = NULL;
  pthread_mutex_lock(&feed->mutex);
  while (!feed->stop && feed->waiting && (feed->waiting >= PIPELINE_QUEUE_FILES || feed->waiting_bytes >= PIPELINE_QUEUE_BYTES))
    pthread_cond_wait(&feed->has_room, &feed->mutex);
  if (!feed->stop && feed->next_task < feed->options.n) task = &feed->options.tasks[feed->next_task++];
  pthread_mutex_unlock(&feed->mutex);
  return task;
}

static void pipeline_enqueue(indexer_pipeline *feed, indexer_file *file) {
  pthread_mutex_lock(&feed->mutex);
  *feed->last = file;
  feed->last = &file->next;
  feed->waiting++;
  feed->waiting_bytes += file->arena.used;
  pthread_cond_signal(&feed->has_file);
  pthread_mutex_unlock(&feed->mutex);
}

static void *pipeline_thread(void *ctx) {
  pipeline_worker w = {.feed = ctx};
  indexer_pipeline *feed = ctx;
  const indexer_task *task;
  while ((task = pipeline_take_task(feed)) != NULL) {
    indexer_file *file = pipeline_make_file(&w, task);
    if (!file) break; /* the writer notices that a file is missing */
    pipeline_enqueue(feed, file);
  }
  strbuf_release(&w.text);
  strbuf_release(&w.raw);
  strbuf_release(&w.outline);
  parser_pool_result_release(&w.parsed);
  pthread_mutex_lock(&feed->mutex);
  feed->running--;
  pthread_cond_signal(&feed->has_file);
  pthread_mutex_unlock(&feed->mutex);
  return NULL;
}

lode_status indexer_pipeline_open(const indexer_pipeline_options *options, indexer_pipeline **out, lode_error *err) {
  indexer_pipeline *feed = mem_calloc(1, sizeof *feed);
  *out = NULL;
  if (!feed) return err_nomem(err);
  feed->options = *options;
  feed->last = &feed->first;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&feed->mutex, NULL);
  pthread_cond_init(&feed->has_file, &clock);
  pthread_cond_init(&feed->has_room, &clock);
  pthread_condattr_destroy(&clock);
  uint32_t want = options->threads < 1 ? 1 : options->threads > PIPELINE_MAX_THREADS ? PIPELINE_MAX_THREADS : options->threads;
  if (want > options->n) want = options->n ? (uint32_t)options->n : 1;
  feed->running = want;
  int errnum = 0;
  while (feed->n_threads < want && (errnum = pthread_create(&feed->threads[feed->n_threads], NULL, pipeline_thread, feed)) == 0)
    feed->n_threads++;
  pthread_mutex_lock(&feed->mutex);
  feed->running -= want - feed->n_threads;
  pthread_mutex_unlock(&feed->mutex);
  if (feed->n_threads == 0) {
    indexer_pipeline_close(feed);
    return err_errno(err, errnum, "no thread can be started");
  }
  *out = feed;
  return LODE_OK;
}

indexer_file *indexer_pipeline_next(indexer_pipeline *feed, uint32_t wait_ms, bool *waiting) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += wait_ms / 1000;
  until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_mutex_lock(&feed->mutex);
  int rc = 0;
  while (!feed->first && feed->running && rc == 0) rc = pthread_cond_timedwait(&feed->has_file, &feed->mutex, &until);
  indexer_file *file = feed->first;
  *waiting = !file && feed->running;
  if (file) {
    feed->first = file->next;
    if (!feed->first) feed->last = &feed->first;
    file->next = NULL;
    feed->waiting--;
    feed->waiting_bytes -= file->arena.used;
    pthread_cond_signal(&feed->has_room);
  }
  pthread_mutex_unlock(&feed->mutex);
  return file;
}

void indexer_pipeline_close(indexer_pipeline *feed) {
  if (!feed) return;
  pthread_mutex_lock(&feed->mutex);
  feed->stop = true;
  pthread_cond_broadcast(&feed->has_room);
  pthread_mutex_unlock(&feed->mutex);
  for (uint32_t i = 0; i < feed->n_threads; i++) pthread_join(feed->threads[i], NULL);
  while (feed->first) {
    indexer_file *file = feed->first;
    feed->first = file->next;
    indexer_file_free(file);
  }
  pthread_cond_destroy(&feed->has_file);
  pthread_cond_destroy(&feed->has_room);
  pthread_mutex_destroy(&feed->mutex);
  mem_free(feed);
}
