/* index.c - one run: walk, index, remove, switch, embed. See index.h. */
#include "index.h"

#include "batch.h"
#include "fill.h"
#include "fs.h"
#include "stamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 100, FLUSH_MS = 1000, YOUNG_MS = 2000, FILE_COST = 2048, MOST_NOTES = 20 };

typedef struct tasks {
  lode__feed_task *v;
  size_t n, cap;
  uint64_t cost;         /* bytes, and something for each file */
  lode__arena arena;
} tasks;

typedef struct prefixes {
  lode_str *v;
  size_t n, cap;
} prefixes;

struct lode__indexer {
  const lode__project *project;
  lode_store *store;
  lode__index_options options;
  lode__root *root;
  struct stat root_stat;
  lode__pool *pool;
  lode_embedder *embedder, *second;
  bool own_embedder, instant; /* instant: the model is fast enough to embed in the first pass */
  lode__shelf shelf;
  lode_collection *old_code, *old_quality; /* while building aside: donors of vectors */
  bool aside, donate;       /* donate: vectors of old_code are of the same model */
  lode__known_files known;
  lode__stamp stamp;
  /* of one run */
  lode__index_report *report;
  tasks todo;
  prefixes scope, unreadable;
  size_t notes;
};

static void note(lode__indexer *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(lode__indexer *x, const char *format, ...) {
  char text[600];
  va_list list;
  if (!x->options.note || x->notes++ >= MOST_NOTES) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  x->options.note(x->options.note_ctx, text);
}

static bool step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  lode__indexer *x = ctx;
  if (x->options.job) lode__job_note(x->options.job, phase, done, total);
  return !x->options.progress.step || x->options.progress.step(x->options.progress.ctx, phase, done, total);
}

static lode_progress progress_of(lode__indexer *x) { return (lode_progress){step, x}; }
static uint64_t now_ms(void) { return lode__os->now_ns() / 1000000; }

/* ---- Models ---- */

static bool is_instant(lode_str identity) {
  static const char family[] = "/static";
  return identity.len >= sizeof family - 1 && memcmp(identity.data + identity.len - (sizeof family - 1), family, sizeof family - 1) == 0;
}

static lode_status open_model(lode__indexer *x, const char *name, lode_embedder **out, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_embedder_options options = {.threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
  lode_status st = lode_embedder_open(lode__str(name), &options, out, &why);
  if (st == LODE_NOMEM) return lode__fail_nomem(err);
  if (st != LODE_OK) note(x, "no vectors are made, search goes by words alone: %.400s", why.text);
  return LODE_OK;
}

static lode_status open_models(lode__indexer *x, lode_error *err) {
  const char *name = lode__config_text(&x->project->config, LODE__CONFIG_MODEL);
  x->embedder = x->options.embedder;
  if (!x->embedder && strcmp(name, "none") != 0) {
    LODE__TRY(open_model(x, name, &x->embedder, err));
    x->own_embedder = x->embedder != NULL;
  }
  if (x->embedder) x->instant = is_instant(lode_embedder_info_of(x->embedder)->identity);
  return LODE_OK;
}

/* ---- Collections ---- */

typedef struct found { /* what the store says about the collections */
  bool code, files, quality, aside;
  char embedder[400];
  lode__stamp stamp;
  uint64_t records;
} found;

static bool named(const lode_collection_info *info, const char *name) { return lode__str_eq(info->name, lode__str(name)); }

static lode_status look(lode__indexer *x, found *f, lode_error *err) {
  lode_collection_list *list = NULL;
  memset(f, 0, sizeof *f);
  LODE__TRY(lode_collections(x->store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (named(info, LODE__CODE)) {
      f->code = true;
      f->records = info->records;
      if (info->embedder.data) snprintf(f->embedder, sizeof f->embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    } else if (named(info, LODE__CODE_FILES)) {
      f->files = true;
      lode__stamp_parse(info->metadata, &f->stamp);
    } else if (named(info, LODE__CODE_QUALITY)) {
      f->quality = true;
    } else if (named(info, LODE__CODE LODE__CODE_ASIDE) || named(info, LODE__CODE_FILES LODE__CODE_ASIDE) ||
               named(info, LODE__CODE_QUALITY LODE__CODE_ASIDE)) {
      f->aside = true;
    }
  }
  lode_collection_list_free(list);
  return LODE_OK;
}

static lode_status drop_aside(lode__indexer *x, lode_error *err) {
  static const char *const names[] = {LODE__CODE LODE__CODE_ASIDE, LODE__CODE_FILES LODE__CODE_ASIDE,
                                      LODE__CODE_QUALITY LODE__CODE_ASIDE};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lode_status st = lode_collection_drop(x->store, lode__str(names[i]), err);
    if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  }
  lode__error_clear(err);
  return LODE_OK;
}

static lode_status open_one(lode__indexer *x, const char *name, bool aside, const lode_collection_options *options,
                            lode_collection **out, lode_error *err) {
  char full[64];
  snprintf(full, sizeof full, "%s%s", name, aside ? LODE__CODE_ASIDE : "");
  return lode_collection_open(x->store, lode__str(full), options, out, err);
}

static lode_collection_options with_model(lode_embedder *embedder) {
  lode_collection_options o = {.create = true, .metric = LODE_COSINE};
  if (embedder) {
    o.embedder = lode_embedder_info_of(embedder)->identity;
    o.embedder_dim = lode_embedder_info_of(embedder)->dimension;
  }
  return o;
}

static lode_status open_shelf(lode__indexer *x, bool aside, bool quality, lode_error *err) {
  static const lode_str code_counters[] = {{"language", 8}, {"kind", 4}}, file_counters[] = {{"language", 8}, {"skip", 4}};
  lode_collection_options o = with_model(x->embedder);
  x->shelf.store = x->store;
  o.counters = code_counters;
  o.n_counters = 2;
  LODE__TRY(open_one(x, LODE__CODE, aside, &o, &x->shelf.code, err));
  o = (lode_collection_options){.create = true, .counters = file_counters, .n_counters = 2};
  LODE__TRY(open_one(x, LODE__CODE_FILES, aside, &o, &x->shelf.files, err));
  if (!quality) return LODE_OK;
  if (!x->second) LODE__TRY(open_model(x, LODE_MODEL_MINILM, &x->second, err));
  o = with_model(x->second);
  return open_one(x, LODE__CODE_QUALITY, aside, &o, &x->shelf.quality, err);
}

static void close_shelf(lode__indexer *x) {
  if (x->shelf.code) lode_collection_close(x->shelf.code);
  if (x->shelf.files) lode_collection_close(x->shelf.files);
  if (x->shelf.quality) lode_collection_close(x->shelf.quality);
  if (x->old_code) lode_collection_close(x->old_code);
  if (x->old_quality) lode_collection_close(x->old_quality);
  x->shelf = (lode__shelf){0};
  x->old_code = x->old_quality = NULL;
}

static lode_status check_model(const lode__indexer *x, const found *f, lode_error *err) {
  if (!x->embedder || !f->embedder[0]) return LODE_OK;
  lode_str mine = lode_embedder_info_of(x->embedder)->identity;
  if (lode__str_eq(mine, lode__str(f->embedder))) return LODE_OK;
  return lode__fail(err, LODE_MISMATCH,
                    "the index has vectors of %.150s, and the configuration says %.*s: `lode index --force` makes the index anew, "
                    "`lode config set model` goes back; search by words goes on",
                    f->embedder, (int)mine.len, mine.data);
}

/* The old collections stay open while new ones are built: equal texts take their vectors from there. */
static lode_status open_donors(lode__indexer *x, const found *f, lode_error *err) {
  lode_collection_options plain = {0};
  x->donate = x->embedder && !x->instant && lode__str_eq(lode_embedder_info_of(x->embedder)->identity, lode__str(f->embedder));
  if (f->code) LODE__TRY(open_one(x, LODE__CODE, false, &plain, &x->old_code, err));
  if (f->quality) LODE__TRY(open_one(x, LODE__CODE_QUALITY, false, &plain, &x->old_quality, err));
  return LODE_OK;
}

/* A newer code@1 instead of code@0: vectors that cost next to nothing are made anew without being asked. */
static bool is_newer_model(const lode__indexer *x, const found *f) {
  if (!x->embedder || !x->instant || !f->embedder[0]) return false;
  lode_str mine = lode_embedder_info_of(x->embedder)->identity, theirs = lode__str(f->embedder);
  size_t name = strcspn(f->embedder, "@") + 1;
  return !lode__str_eq(mine, theirs) && name <= theirs.len && name <= mine.len && memcmp(mine.data, theirs.data, name) == 0;
}

static lode_status keep_stamp(lode__indexer *x, lode_error *err) {
  lode__buf text = {0};
  lode__stamp_put(&text, &x->stamp);
  lode_status st = text.failed ? lode__fail_nomem(err)
                               : lode_collection_set_metadata(x->store, lode__str(x->aside ? LODE__CODE_FILES LODE__CODE_ASIDE : LODE__CODE_FILES),
                                                              (lode_str){text.data, text.len}, err);
  lode__buf_release(&text);
  return st;
}

static lode_status open_collections(lode__indexer *x, lode_error *err) {
  found f;
  bool quality;
  LODE__TRY(look(x, &f, err));
  if (f.aside) LODE__TRY(drop_aside(x, err));
  bool recut = f.files && f.records && f.stamp.revision != LODE__CODE_REVISION, newer = is_newer_model(x, &f);
  x->aside = f.code && (x->options.force || recut || newer);
  if (recut && !x->options.force) note(x, "this lode cuts files in another way than the one that made the index: it is made anew");
  else if (newer && !x->options.force) note(x, "this lode has a newer model than the one that made the vectors: the index is made anew");
  if (!x->aside) LODE__TRY(check_model(x, &f, err));
  x->stamp = f.stamp;
  quality = f.quality || x->options.quality || lode__config_bool(&x->project->config, LODE__CONFIG_QUALITY);
  if (x->aside) LODE__TRY(open_donors(x, &f, err));
  LODE__TRY(open_shelf(x, x->aside, quality, err));
  if (x->aside || f.records || f.stamp.revision == LODE__CODE_REVISION) return LODE_OK;
  /* Known from the start, so that a first run that was interrupted is gone on with */
  x->stamp.revision = LODE__CODE_REVISION;
  return keep_stamp(x, err);
}

/* ---- Life ---- */

lode_status lode__indexer_open(const lode__project *project, lode_store *store, const lode__index_options *options,
                               lode__indexer **out, lode_error *err) {
  const lode__config *config = &project->config;
  lode__walk_options walk = {
      .hidden = lode__config_bool(config, LODE__CONFIG_INDEX_HIDDEN),
      .generated = lode__config_bool(config, LODE__CONFIG_INDEX_GENERATED),
      .max_bytes = lode__config_int(config, LODE__CONFIG_INDEX_MAX_FILE),
  };
  lode_status st;
  *out = NULL;
  lode__indexer *x = lode__alloc_zero(1, sizeof *x);
  if (!x) return lode__fail_nomem(err);
  x->project = project;
  x->store = store;
  x->options = *options;
  if (!x->options.workers) x->options.workers = (uint32_t)lode__config_int(config, LODE__CONFIG_INDEX_WORKERS);
  if (!x->options.workers) x->options.workers = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
  lode__pool_options pool = {.workers = x->options.workers};
  lode__arena_init(&x->known.paths, 0);
  LODE__GOTO(lode__root_open(project->root, &walk, &x->root, err));
  if (lode__os->stat(project->root, &x->root_stat) < 0) LODE__GOTO(lode__fail_errno(err, errno, project->root));
  LODE__GOTO(lode__pool_open(&pool, &x->pool, err));
  LODE__GOTO(open_models(x, err));
  LODE__GOTO(open_collections(x, err));
  *out = x;
done:
  if (st != LODE_OK) lode__indexer_close(x);
  return st;
}

static void forget_run(lode__indexer *x) {
  lode__free(x->todo.v);
  lode__arena_release(&x->todo.arena);
  lode__free(x->scope.v);
  lode__free(x->unreadable.v);
  x->todo = (tasks){0};
  x->scope = x->unreadable = (prefixes){0};
}

void lode__indexer_close(lode__indexer *x) {
  if (!x) return;
  forget_run(x);
  close_shelf(x);
  lode__known_release(&x->known);
  lode__pool_close(x->pool);
  lode__root_close(x->root);
  if (x->own_embedder) lode_embedder_close(x->embedder);
  lode_embedder_close(x->second);
  lode__free(x);
}

const lode__root *lode__indexer_root(const lode__indexer *x) { return x->root; }

/* ---- Walk ---- */

static lode_status add_prefix(lode__indexer *x, prefixes *p, lode_str path, lode_error *err) {
  lode__buf shown = {0};
  lode__path_show(&shown, path);
  char *copy = shown.failed ? NULL : lode__arena_copy(&x->todo.arena, shown.data ? shown.data : "", shown.len);
  lode__buf_release(&shown);
  if (!copy || !lode__grow(&p->v, &p->cap, p->n + 1, sizeof *p->v)) return lode__fail_nomem(err);
  p->v[p->n++] = (lode_str){copy, strlen(copy)};
  return LODE_OK;
}

static int by_bytes(const void *a, const void *b) { return lode__str_cmp(*(const lode_str *)a, *(const lode_str *)b); }

static bool has_prefix(const prefixes *p, lode_str path) { return p->n && bsearch(&path, p->v, p->n, sizeof *p->v, by_bytes) != NULL; }

/* Lies the path below one of them? They are sorted. */
static bool is_below(const prefixes *p, lode_str path) {
  if (has_prefix(p, (lode_str){path.data, 0})) return path.len > 0;
  for (size_t i = 0; i < path.len; i++)
    if (path.data[i] == '/' && has_prefix(p, (lode_str){path.data, i})) return true;
  return false;
}

static bool is_under(const prefixes *p, lode_str path) { return has_prefix(p, path) || is_below(p, path); }

/* Sorted, each once, and none below another. */
static lode_status tidy(prefixes *p, lode_error *err) {
  size_t n = 0;
  if (!p->n) return LODE_OK;
  qsort(p->v, p->n, sizeof *p->v, by_bytes);
  for (size_t i = 0; i < p->n; i++)
    if (i == 0 || !lode__str_eq(p->v[i], p->v[n - 1])) p->v[n++] = p->v[i];
  p->n = n;
  lode_str *kept = lode__alloc_zero(p->n, sizeof *kept);
  if (!kept) return lode__fail_nomem(err);
  n = 0;
  for (size_t i = 0; i < p->n; i++)
    if (!is_below(p, p->v[i])) kept[n++] = p->v[i];
  lode__free(p->v);
  *p = (prefixes){.v = kept, .n = n, .cap = p->n};
  return LODE_OK;
}

/* Same name, size, time and inode, and written long enough before it was read that a later write would show. */
static bool looks_same(const lode__file_state *old, const lode__entry *e) {
  return old->size == e->size && old->mtime_ns == e->mtime_ns && old->inode == e->inode &&
      e->mtime_ns / 1000000 + YOUNG_MS < (int64_t)old->at_ms;
}

static lode_status add_task(lode__indexer *x, lode_str shown, const lode__known *known, const lode__entry *e, lode_error *err) {
  tasks *t = &x->todo;
  char *copy = lode__arena_copy(&t->arena, shown.data, shown.len);
  if (!copy || !lode__grow(&t->v, &t->cap, t->n + 1, sizeof *t->v)) return lode__fail_nomem(err);
  t->v[t->n] = (lode__feed_task){.path = {copy, shown.len}, .size = e->size, .known = known != NULL};
  if (known) t->v[t->n].old = known->file;
  t->n++;
  t->cost += e->size + FILE_COST;
  return LODE_OK;
}

static lode_status meet(lode__indexer *x, const lode__entry *e, lode__buf *shown, lode_error *err) {
  shown->len = 0;
  lode__path_show(shown, e->path);
  if (shown->failed) return lode__fail_nomem(err);
  lode_str path = {shown->data ? shown->data : "", shown->len};
  if (e->skip == LODE__SKIP_UNREADABLE && e->is_folder) return add_prefix(x, &x->unreadable, e->path, err);
  lode__known *known = e->is_folder ? NULL : lode__known_find(&x->known, path);
  if (known && e->skip == LODE__SKIP_UNREADABLE) known->mark = x->known.mark;
  if (e->skip != LODE__SKIP_NONE) return LODE_OK;
  if (path.len > LODE__ID_PATH_BYTES) {
    x->report->skipped[LODE__SKIP_TOO_DEEP]++;
    return LODE_OK;
  }
  x->report->files++;
  if (known) known->mark = x->known.mark;
  if (known && looks_same(&known->file, e)) {
    x->report->unchanged++;
    return LODE_OK;
  }
  return add_task(x, path, known, e, err);
}

static lode_status walk_one(lode__indexer *x, lode_str below, lode_error *err) {
  lode__walker *walker = NULL;
  lode__buf shown = {0};
  lode__entry entry;
  lode_status st = lode__walker_open(x->root, below, &walker, err);
  bool more = st == LODE_OK;
  if (st == LODE_NOT_FOUND) {
    lode__error_clear(err);
    return LODE_OK;
  }
  while (more && st == LODE_OK) {
    st = lode__walker_next(walker, &entry, &more, err);
    if (st == LODE_OK && more) st = meet(x, &entry, &shown, err);
    if (st == LODE_OK && more && !step(x, "looking at files", x->report->files, 0)) st = lode__fail(err, LODE_CANCELLED, "interrupted");
  }
  if (walker) {
    const uint64_t *counts = lode__walker_counts(walker);
    for (size_t i = 1; i < LODE__SKIP_COUNT; i++) x->report->skipped[i] += counts[i];
  }
  lode__walker_close(walker);
  lode__buf_release(&shown);
  return st;
}

/* A root that went away while it was walked looks like one without files: nothing must be removed because of that. */
static lode_status check_root(const lode__indexer *x, lode_error *err) {
  struct stat now;
  if (lode__os->stat(x->project->root, &now) == 0 && now.st_ino == x->root_stat.st_ino && now.st_dev == x->root_stat.st_dev)
    return LODE_OK;
  return lode__fail(err, LODE_GONE, "%.400s was removed or replaced while it was indexed; the index is as it was", x->project->root);
}

static lode_status load_known(lode__indexer *x, lode_error *err) {
  lode_stats stats;
  LODE__TRY(lode_collection_stats(x->shelf.files, &stats, err));
  if (x->known.table && stats.cursor == x->known.cursor) return LODE_OK;
  return lode__known_load(&x->known, x->shelf.files, progress_of(x), err);
}

static lode_status walk(lode__indexer *x, const lode_str *paths, size_t n, lode_error *err) {
  LODE__TRY(load_known(x, err));
  x->known.mark++;
  if (!paths) LODE__TRY(add_prefix(x, &x->scope, LODE__LIT(""), err));
  for (size_t i = 0; paths && i < n; i++) LODE__TRY(add_prefix(x, &x->scope, paths[i], err));
  LODE__TRY(tidy(&x->scope, err));
  for (size_t i = 0; i < x->scope.n; i++) {
    lode__buf raw = {0};
    lode__path_bytes(&raw, x->scope.v[i]);
    lode_status st = raw.failed ? lode__fail_nomem(err) : walk_one(x, (lode_str){raw.data ? raw.data : "", raw.len}, err);
    lode__buf_release(&raw);
    LODE__TRY(st);
  }
  LODE__TRY(tidy(&x->unreadable, err));
  return check_root(x, err);
}

/* ---- Index ---- */

static void account(lode__indexer *x, const lode__feed_file *f) {
  lode__index_report *r = x->report;
  char quoted[256];
  if (f->skip != LODE__SKIP_NONE) r->skipped[f->skip]++;
  if (f->same) r->unchanged++;
  else if (f->task->known) r->changed++;
  else if (f->skip == LODE__SKIP_NONE) r->added++;
  if (f->same || f->skip != LODE__SKIP_NONE) return;
  r->chunks += f->n;
  r->bytes += f->state.size;
  if (f->vectors) r->vectors += f->n;
  if (f->outcome < LODE__PARSE_CRASHED) return;
  r->unparsed++;
  note(x, "%s: %s%s%s; it was cut by lines", lode__quote(f->task->path, quoted, sizeof quoted),
       lode__parse_outcome_text(f->outcome), f->detail[0] ? ": " : "", f->detail);
}

static lode_status drain(lode__indexer *x, lode__feed *feed, lode__file_batch *batch, size_t *done, lode_error *err) {
  uint64_t flushed = now_ms(), cost = 0;
  bool waiting = true;
  lode__feed_file *file;
  while ((file = lode__feed_next(feed, WAIT_MS, &waiting)) != NULL || waiting) {
    if (file) {
      lode_error failed = file->error;
      cost += file->task->size + FILE_COST;
      (*done)++;
      if (failed.status != LODE_OK) {
        lode__feed_file_free(file);
        if (err) *err = failed;
        return failed.status;
      }
      account(x, file);
      LODE__TRY(lode__file_batch_add(batch, file, err));
    }
    if (lode__file_batch_full(batch) || now_ms() - flushed >= FLUSH_MS) {
      LODE__TRY(lode__file_batch_flush(batch, err));
      flushed = now_ms();
    }
    /* Files, but by their cost: so that the time left is right when large ones are still to come */
    uint64_t shown = x->todo.cost ? (uint64_t)((double)cost / (double)x->todo.cost * (double)x->todo.n) : 0;
    if (!step(x, "indexing", shown < x->todo.n ? shown : x->todo.n, x->todo.n)) {
      LODE__TRY(lode__file_batch_flush(batch, err));
      return lode__fail(err, LODE_CANCELLED, "interrupted: what was done stays, `lode index` goes on from there");
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
  LODE__GOTO(lode__feed_open(&o, &feed, err));
  LODE__GOTO(drain(x, feed, &batch, &done, err));
  if (done < x->todo.n) st = lode__fail_nomem(err);
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
    if (k->gone || k->mark == x->known.mark || !is_under(&x->scope, k->path) || is_under(&x->unreadable, k->path)) continue;
    if (!lode__grow(&gone, &cap, n + 1, sizeof *gone)) LODE__GOTO(lode__fail_nomem(err));
    gone[n++] = k;
  }
  if (n) LODE__GOTO(check_root(x, err));
  LODE__GOTO(lode__file_batch_remove(&x->shelf, &x->known, gone, n, progress_of(x), err));
  x->report->removed = n;
done:
  lode__free(gone);
  return st;
}

/* ---- Vectors ---- */

static lode_status fill(lode__indexer *x, lode_collection *target, lode_collection *donor, lode_embedder *embedder,
                        const char *phase, lode_error *err) {
  lode__fill f = {.code = x->shelf.code, .target = target, .donor_code = x->old_code, .donor_target = donor, .embedder = embedder,
                  .phase = phase, .progress = progress_of(x)};
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
    LODE__TRY(fill(x, x->shelf.code, x->donate ? x->old_code : NULL, NULL, "finding known vectors", err));
  if (x->shelf.quality && (x->report->added || x->aside))
    LODE__TRY(fill(x, x->shelf.quality, x->old_quality, NULL, "finding known vectors", err));
  return LODE_OK;
}

static lode_status embed(lode__indexer *x, lode_error *err) {
  if (x->options.no_vectors) return LODE_OK;
  if (x->embedder) LODE__TRY(fill(x, x->shelf.code, NULL, x->embedder, "embedding", err));
  if (x->shelf.quality && x->second && (x->options.quality || lode__config_bool(&x->project->config, LODE__CONFIG_QUALITY)))
    LODE__TRY(fill(x, x->shelf.quality, NULL, x->second, "embedding (quality)", err));
  return LODE_OK;
}

/* ---- The end ---- */

static lode_status switch_over(lode__indexer *x, lode_error *err) {
  lode_replacement pairs[] = {
      {LODE__LIT(LODE__CODE LODE__CODE_ASIDE), LODE__LIT(LODE__CODE)},
      {LODE__LIT(LODE__CODE_FILES LODE__CODE_ASIDE), LODE__LIT(LODE__CODE_FILES)},
      {LODE__LIT(LODE__CODE_QUALITY LODE__CODE_ASIDE), LODE__LIT(LODE__CODE_QUALITY)},
  };
  if (!x->aside) return LODE_OK;
  if (x->old_code) lode_collection_close(x->old_code);
  if (x->old_quality) lode_collection_close(x->old_quality);
  x->old_code = x->old_quality = NULL;
  LODE__TRY(lode_collections_replace(x->store, pairs, x->shelf.quality ? 3 : 2, err));
  x->aside = false;
  x->options.force = false;
  return LODE_OK;
}

static lode_status write_stamp(lode__indexer *x, bool whole, uint64_t started, lode_error *err) {
  lode__stamp *s = &x->stamp;
  s->revision = LODE__CODE_REVISION;
  s->indexed_ms = lode__os_wall_ms();
  if (whole) {
    s->scanned_ms = s->indexed_ms;
    s->took_ms = now_ms() - started;
    memcpy(s->skipped, x->report->skipped, sizeof s->skipped);
  }
  snprintf(s->lode, sizeof s->lode, "%s", lode_version());
  snprintf(s->root, sizeof s->root, "%s", lode__utf8_valid(x->project->root, strlen(x->project->root)) ? x->project->root : "");
  return keep_stamp(x, err);
}

static bool did_something(const lode__index_report *r) { return r->chunks || r->changed || r->removed || r->vectors || r->reused; }

static lode_status finish(lode__indexer *x, bool whole, uint64_t started, lode_error *err) {
  lode_stats stats;
  LODE__TRY(write_stamp(x, whole, started, err));
  LODE__TRY(switch_over(x, err));
  if (did_something(x->report)) LODE__TRY(lode_optimize(x->store, progress_of(x), err));
  uint64_t before = now_ms();
  LODE__TRY(embed(x, err));
  x->report->embed_ms = now_ms() - before;
  if (x->report->embed_ms > FLUSH_MS) LODE__TRY(lode_optimize(x->store, progress_of(x), err));
  LODE__TRY(lode_collection_stats(x->shelf.code, &stats, err));
  x->report->pending = stats.pending;
  LODE__TRY(lode_collection_stats(x->shelf.files, &stats, err));
  x->known.cursor = stats.cursor;
  return LODE_OK;
}

lode_status lode__indexer_run(lode__indexer *x, const lode_str *paths, size_t n_paths, lode__index_report *report, lode_error *err) {
  uint64_t start = now_ms(), walked, indexed;
  lode_status st;
  memset(report, 0, sizeof *report);
  x->report = report;
  x->notes = 0;
  lode__arena_init(&x->todo.arena, 0);
  report->vectorless = !x->embedder;
  LODE__GOTO(walk(x, paths, n_paths, err));
  walked = now_ms();
  report->walk_ms = walked - start;
  LODE__GOTO(index_files(x, err));
  LODE__GOTO(reuse(x, err));
  LODE__GOTO(remove_unseen(x, err));
  indexed = now_ms();
  report->index_ms = indexed - walked;
  LODE__GOTO(finish(x, paths == NULL, start, err));
  report->finish_ms = now_ms() - indexed - report->embed_ms;
done:
  forget_run(x);
  return st;
}

lode_status lode__indexer_remove(lode__indexer *x, lode_str path, lode__index_report *report, lode_error *err) {
  lode_status st;
  memset(report, 0, sizeof *report);
  x->report = report;
  lode__arena_init(&x->todo.arena, 0);
  LODE__GOTO(load_known(x, err));
  x->known.mark++;
  LODE__GOTO(add_prefix(x, &x->scope, path, err));
  LODE__GOTO(remove_unseen(x, err));
  LODE__GOTO(finish(x, false, now_ms(), err));
done:
  forget_run(x);
  return st;
}

/* ---- Comparing ---- */

typedef struct comparing {
  lode__known_files known;
  lode__index_changes *changes;
  lode__buf shown;
} comparing;

static lode_status compare_entry(comparing *c, const lode__entry *e, lode_error *err) {
  if (e->skip != LODE__SKIP_NONE) return LODE_OK;
  c->shown.len = 0;
  lode__path_show(&c->shown, e->path);
  if (c->shown.failed) return lode__fail_nomem(err);
  lode__known *known = lode__known_find(&c->known, (lode_str){c->shown.data, c->shown.len});
  c->changes->files++;
  if (!known) {
    c->changes->added++;
    return LODE_OK;
  }
  known->mark = 1;
  if (known->file.size != e->size || known->file.mtime_ns != e->mtime_ns || known->file.inode != e->inode) c->changes->changed++;
  return LODE_OK;
}

lode_status lode__index_compare(const lode__project *project, lode_store *store, lode_progress progress,
                                lode__index_changes *changes, lode_error *err) {
  const lode__config *config = &project->config;
  lode__walk_options options = {.hidden = lode__config_bool(config, LODE__CONFIG_INDEX_HIDDEN),
                                .generated = lode__config_bool(config, LODE__CONFIG_INDEX_GENERATED),
                                .max_bytes = lode__config_int(config, LODE__CONFIG_INDEX_MAX_FILE)};
  lode_collection_options plain = {0};
  lode_collection *files = NULL;
  lode__root *root = NULL;
  lode__walker *walker = NULL;
  comparing c = {.changes = changes};
  lode__entry entry;
  lode_status st;
  bool more = true;
  memset(changes, 0, sizeof *changes);
  LODE__GOTO(lode_collection_open(store, LODE__LIT(LODE__CODE_FILES), &plain, &files, err));
  LODE__GOTO(lode__known_load(&c.known, files, progress, err));
  LODE__GOTO(lode__root_open(project->root, &options, &root, err));
  LODE__GOTO(lode__walker_open(root, LODE__LIT(""), &walker, err));
  while (more) {
    LODE__GOTO(lode__walker_next(walker, &entry, &more, err));
    if (more) LODE__GOTO(compare_entry(&c, &entry, err));
    if (progress.step && !progress.step(progress.ctx, "looking at files", changes->files, 0))
      LODE__GOTO(lode__fail(err, LODE_CANCELLED, "interrupted"));
  }
  for (size_t i = 0; i < c.known.n; i++) changes->removed += c.known.items[i].mark == 0;
done:
  lode__buf_release(&c.shown);
  lode__known_release(&c.known);
  lode__walker_close(walker);
  lode__root_close(root);
  if (files) lode_collection_close(files);
  return st;
}
