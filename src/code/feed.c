/* feed.c - see feed.h.
 *
 * Lock: `mutex` guards the queue, `next_task`, `running` and `stop`. A file that is being made belongs to its thread, one in the queue to
 * nobody, one that was given out to the caller. */
#include "feed.h"

#include <pthread.h>
#include <time.h>

enum { QUEUE_FILES = 256, MOST_THREADS = 64, EMBED_BATCH = 128 };
#define QUEUE_BYTES (64u << 20)

struct lode__feed {
  lode__feed_options options;
  pthread_mutex_t mutex;
  pthread_cond_t has_file, has_room;
  lode__feed_file *first, **last;
  size_t waiting, waiting_bytes;
  size_t next_task;
  uint32_t running;
  bool stop;
  pthread_t threads[MOST_THREADS];
  uint32_t n_threads;
};

typedef struct worker { /* what a thread uses again for each file */
  lode__feed *feed;
  strbuf text, raw, outline;
  lode__pool_result parsed;
} worker;

void lode__feed_file_free(lode__feed_file *file) {
  if (!file) return;
  mem_arena_release(&file->arena);
  mem_free(file->vectors);
  mem_free(file);
}

/* ---- One file ---- */

static lode_status embed(const lode__feed *feed, lode__feed_file *f, lode_error *err) {
  lode_str texts[EMBED_BATCH];
  uint32_t dim = lode_embedder_info_of(feed->options.embedder)->dimension;
  size_t total;
  if (mem_mul_overflow(f->n, dim, &total)) return err_nomem(err);
  f->vectors = mem_calloc(total, sizeof *f->vectors);
  if (!f->vectors) return err_nomem(err);
  for (size_t at = 0; at < f->n; at += EMBED_BATCH) {
    size_t n = f->n - at < EMBED_BATCH ? f->n - at : EMBED_BATCH;
    for (size_t i = 0; i < n; i++) texts[i] = f->records[at + i].embed;
    TRY(lode_embed(feed->options.embedder, texts, n, f->vectors + at * dim, err));
  }
  return LODE_OK;
}

static lode_status make_records(worker *w, lode__feed_file *f, lode_error *err) {
  const lode__feed *feed = w->feed;
  lode__chunk_source source = {.path = f->task->path, .language = f->language, .text = {w->text.data, w->text.len},
                               .chunks = &w->parsed.chunks};
  f->n = source.chunks->n;
  f->records = mem_arena_alloc(&f->arena, (f->n ? f->n : 1) * sizeof *f->records);
  if (!f->records) return err_nomem(err);
  for (size_t i = 0; i < f->n; i++) TRY(lode__chunk_record_make(&source, i, &f->arena, &f->records[i], err));
  w->outline.len = 0;
  TRY(lode__outline_make(&source, &w->outline, err));
  char *outline = mem_arena_copy(&f->arena, w->outline.data, w->outline.len);
  if (!outline) return err_nomem(err);
  f->outline = (lode_str){outline, w->outline.len};
  f->state.chunks = (uint32_t)f->n;
  return feed->options.embedder && f->n ? embed(feed, f, err) : LODE_OK;
}

/* Looked at again, the same bytes are left out for the same reason, or have no secrets and had none. */
static bool is_kept(const lode__feed_file *f) {
  const lode__file_state *old = &f->task->old;
  if (f->skip != LODE__SKIP_NONE) return old->skip == f->skip && !old->chunks;
  return old->skip == LODE__SKIP_NONE && old->chunks && !old->masked && !f->state.masked;
}

/* Its bytes are those that are indexed. */
static lode_status keep_old(lode__feed_file *f) {
  f->same = true;
  f->skip = LODE__SKIP_NONE; /* its state says why it has no chunks */
  f->state.chunks = f->task->old.chunks;
  f->state.masked = f->task->old.masked;
  f->state.skip = f->task->old.skip;
  return LODE_OK;
}

static lode_status read_file(worker *w, lode__feed_file *f, lode_error *err) {
  const lode__feed_options *o = &w->feed->options;
  lode__entry entry;
  w->raw.len = 0;
  lode__path_bytes(&w->raw, f->task->path);
  strbuf_addch(&w->raw, '\0');
  if (w->raw.failed) return err_nomem(err);
  lode_str raw = {w->raw.data, w->raw.len - 1};
  f->state.at_ms = os_wall_ms();
  TRY(lode__root_read(o->root, raw, &w->text, &entry, err));
  f->skip = entry.skip;
  f->state.size = entry.size;
  f->state.mtime_ns = entry.mtime_ns;
  f->state.ctime_ns = entry.ctime_ns;
  f->state.inode = entry.inode;
  f->state.skip = f->skip;
  if (f->skip != LODE__SKIP_NONE) return LODE_OK;
  lode_str text = {w->text.data ? w->text.data : "", w->text.len};
  lode__digest_of(text.data, text.len, f->state.hash);
  f->language = lode__language_of(raw, text);
  bool same = f->task->known && memcmp(f->state.hash, f->task->old.hash, sizeof f->state.hash) == 0;
  if (same && !f->task->recheck) return keep_old(f);
  f->skip = lode__judge_text(o->root, raw, f->language, text);
  if (f->skip == LODE__SKIP_NONE) f->skip = lode__root_mask(o->root, w->text.data, w->text.len, &f->state.masked);
  f->state.skip = f->skip;
  if (same && is_kept(f)) return keep_old(f);
  if (f->skip != LODE__SKIP_NONE) return LODE_OK;
  TRY(lode__pool_chunk(o->pool, f->language, text, &w->parsed, err));
  f->outcome = w->parsed.outcome;
  memcpy(f->detail, w->parsed.detail, sizeof f->detail);
  return make_records(w, f, err);
}

static lode__feed_file *make_file(worker *w, const lode__feed_task *task) {
  lode__feed_file *f = mem_calloc(1, sizeof *f);
  if (!f) return NULL;
  f->task = task;
  f->error.record = LODE_NO_RECORD;
  f->language = lode__language_of(task->path, (lode_str){0});
  mem_arena_init(&f->arena, 0);
  lode_status st = read_file(w, f, &f->error);
  f->error.status = st;
  return f;
}

/* ---- Threads ---- */

static const lode__feed_task *take_task(lode__feed *feed) {
  const lode__feed_task *task = NULL;
  pthread_mutex_lock(&feed->mutex);
  while (!feed->stop && feed->waiting && (feed->waiting >= QUEUE_FILES || feed->waiting_bytes >= QUEUE_BYTES))
    pthread_cond_wait(&feed->has_room, &feed->mutex);
  if (!feed->stop && feed->next_task < feed->options.n) task = &feed->options.tasks[feed->next_task++];
  pthread_mutex_unlock(&feed->mutex);
  return task;
}

static void give(lode__feed *feed, lode__feed_file *file) {
  pthread_mutex_lock(&feed->mutex);
  *feed->last = file;
  feed->last = &file->next;
  feed->waiting++;
  feed->waiting_bytes += file->arena.used;
  pthread_cond_signal(&feed->has_file);
  pthread_mutex_unlock(&feed->mutex);
}

static void *run(void *ctx) {
  worker w = {.feed = ctx};
  lode__feed *feed = ctx;
  const lode__feed_task *task;
  while ((task = take_task(feed)) != NULL) {
    lode__feed_file *file = make_file(&w, task);
    if (!file) break; /* the writer notices that a file is missing */
    give(feed, file);
  }
  strbuf_release(&w.text);
  strbuf_release(&w.raw);
  strbuf_release(&w.outline);
  lode__pool_result_release(&w.parsed);
  pthread_mutex_lock(&feed->mutex);
  feed->running--;
  pthread_cond_signal(&feed->has_file);
  pthread_mutex_unlock(&feed->mutex);
  return NULL;
}

lode_status lode__feed_open(const lode__feed_options *options, lode__feed **out, lode_error *err) {
  lode__feed *feed = mem_calloc(1, sizeof *feed);
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
  uint32_t want = options->threads < 1 ? 1 : options->threads > MOST_THREADS ? MOST_THREADS : options->threads;
  if (want > options->n) want = options->n ? (uint32_t)options->n : 1;
  feed->running = want;
  int errnum = 0;
  while (feed->n_threads < want && (errnum = pthread_create(&feed->threads[feed->n_threads], NULL, run, feed)) == 0)
    feed->n_threads++;
  pthread_mutex_lock(&feed->mutex);
  feed->running -= want - feed->n_threads;
  pthread_mutex_unlock(&feed->mutex);
  if (feed->n_threads == 0) {
    lode__feed_close(feed);
    return err_errno(err, errnum, "no thread can be started");
  }
  *out = feed;
  return LODE_OK;
}

lode__feed_file *lode__feed_next(lode__feed *feed, uint32_t wait_ms, bool *waiting) {
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
  lode__feed_file *file = feed->first;
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

void lode__feed_close(lode__feed *feed) {
  if (!feed) return;
  pthread_mutex_lock(&feed->mutex);
  feed->stop = true;
  pthread_cond_broadcast(&feed->has_room);
  pthread_mutex_unlock(&feed->mutex);
  for (uint32_t i = 0; i < feed->n_threads; i++) pthread_join(feed->threads[i], NULL);
  while (feed->first) {
    lode__feed_file *file = feed->first;
    feed->first = file->next;
    lode__feed_file_free(file);
  }
  pthread_cond_destroy(&feed->has_file);
  pthread_cond_destroy(&feed->has_room);
  pthread_mutex_destroy(&feed->mutex);
  mem_free(feed);
}
