/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_walk.c - which files an index run must read; see indexer_internal.h. */
#include "indexer/indexer_internal.h"

#include <stdlib.h>

lode_status indexer_add_prefix(indexer_ctx *x, indexer_prefixes *p, lode_str path, lode_error *err) {
  strbuf shown = {0};
  files_path_escape(&shown, path);
  char *copy = shown.failed ? NULL : mem_arena_copy(&x->todo.arena, shown.data ? shown.data : "", shown.len);
  strbuf_release(&shown);
  if (!copy || !mem_grow(&p->v, &p->cap, p->n + 1, sizeof *p->v)) return err_nomem(err);
  p->v[p->n++] = (lode_str){copy, strlen(copy)};
  return LODE_OK;
}

static bool indexer_prefixes_has(const indexer_prefixes *p, lode_str path) {
  return p->n && bsearch(&path, p->v, p->n, sizeof *p->v, sort_cmp_str) != NULL;
}

/* Is the path below one of them? They are sorted. */
static bool indexer_prefixes_cover(const indexer_prefixes *p, lode_str path) {
  if (indexer_prefixes_has(p, (lode_str){path.data, 0})) return path.len > 0;
  for (size_t i = 0; i < path.len; i++)
    if (path.data[i] == '/' && indexer_prefixes_has(p, (lode_str){path.data, i})) return true;
  return false;
}

bool indexer_is_under(const indexer_prefixes *p, lode_str path) {
  return indexer_prefixes_has(p, path) || indexer_prefixes_cover(p, path);
}

/* Sorts them, and removes duplicates and paths below another one. */
static lode_status indexer_prefixes_normalize(indexer_prefixes *p, lode_error *err) {
  size_t n = 0;
  if (!p->n) return LODE_OK;
  qsort(p->v, p->n, sizeof *p->v, sort_cmp_str);
  for (size_t i = 0; i < p->n; i++)
    if (i == 0 || !str_eq(p->v[i], p->v[n - 1])) p->v[n++] = p->v[i];
  p->n = n;
  lode_str *kept = mem_calloc(p->n, sizeof *kept);
  if (!kept) return err_nomem(err);
  n = 0;
  for (size_t i = 0; i < p->n; i++)
    if (!indexer_prefixes_cover(p, p->v[i])) kept[n++] = p->v[i];
  mem_free(p->v);
  *p = (indexer_prefixes){.v = kept, .n = n, .cap = p->n};
  return LODE_OK;
}

/* Same size, times and inode, and written long enough before it was read that a later write would show. */
static bool indexer_looks_same(const indexer_file_state *old, const scan_entry *e) {
  return indexer_file_state_fits(old, e->size, e->inode, e->mtime_ns, e->ctime_ns) &&
         e->mtime_ns / 1000000 + INDEXER_RACY_MS < (int64_t)old->at_ms;
}

static lode_status indexer_add_task(indexer_ctx *x, lode_str shown, const indexer_file_entry *known,
                                    const scan_entry *e, lode_error *err) {
  indexer_tasks *t = &x->todo;
  char *copy = mem_arena_copy(&t->arena, shown.data, shown.len);
  if (!copy || !mem_grow(&t->v, &t->cap, t->n + 1, sizeof *t->v)) return err_nomem(err);
  t->v[t->n] = (indexer_task){
      .path = {copy, shown.len}, .size = e->size, .known = known != NULL, .rewrite = x->rewrite, .recheck = x->recheck};
  if (known) t->v[t->n].old = known->file;
  t->n++;
  t->cost += e->size + INDEXER_FILE_COST;
  return LODE_OK;
}

void indexer_count_unchanged(indexer_report *r, const indexer_file_state *file) {
  r->masked += file->masked;
  if (file->skip != SCAN_SKIP_NONE) {
    r->skipped[file->skip]++;
    return;
  }
  r->files++;
  r->unchanged++;
}

static lode_status indexer_visit_entry(indexer_ctx *x, const scan_entry *e, strbuf *shown, lode_error *err) {
  shown->len = 0;
  files_path_escape(shown, e->path);
  if (shown->failed) return err_nomem(err);
  lode_str path = {shown->data ? shown->data : "", shown->len};
  if (e->skip == SCAN_SKIP_UNREADABLE && e->is_folder) return indexer_add_prefix(x, &x->unreadable, e->path, err);
  indexer_file_entry *known = e->is_folder ? NULL : indexer_file_table_find(&x->file_table, path);
  if (known && e->skip == SCAN_SKIP_UNREADABLE) known->mark = x->file_table.mark;
  if (e->skip != SCAN_SKIP_NONE) return LODE_OK;
  if (path.len > INDEXER_MAX_PATH) {
    x->report->skipped[SCAN_SKIP_TOO_DEEP]++;
    return LODE_OK;
  }
  x->seen++;
  if (known) known->mark = x->file_table.mark;
  if (known && !x->recheck && !x->rewrite && indexer_looks_same(&known->file, e)) {
    indexer_count_unchanged(x->report, &known->file);
    return LODE_OK;
  }
  return indexer_add_task(x, path, known, e, err);
}

static lode_status indexer_walk_one(indexer_ctx *x, lode_str below, lode_error *err) {
  scan_walker *walker = NULL;
  strbuf shown = {0};
  scan_entry entry;
  lode_status st = scan_walker_open(x->root, below, &walker, err);
  bool more = st == LODE_OK;
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    return LODE_OK;
  }
  while (more && st == LODE_OK) {
    st = scan_walker_next(walker, &entry, &more, err);
    if (st == LODE_OK && more) st = indexer_visit_entry(x, &entry, &shown, err);
    if (st == LODE_OK && more) st = err_progress(indexer_progress(x), "looking at files", x->seen, 0, err);
  }
  if (walker) {
    const uint64_t *counts = scan_walker_counts(walker);
    for (size_t i = 1; i < SCAN_SKIP_COUNT; i++) x->report->skipped[i] += counts[i];
  }
  scan_walker_close(walker);
  strbuf_release(&shown);
  return st;
}

/* A root that went away during the walk looks like one without files: nothing must be removed because of that. */
lode_status indexer_check_root(const indexer_ctx *x, lode_error *err) {
  struct stat now;
  if (os_api->stat(x->project->root, &now) == 0 && now.st_ino == x->root_stat.st_ino &&
      now.st_dev == x->root_stat.st_dev)
    return LODE_OK;
  return err_set(err, LODE_GONE, "%.400s was removed or replaced while it was indexed; the index is as it was",
                 x->project->root);
}

lode_status indexer_load_files(indexer_ctx *x, lode_error *err) {
  lode_stats stats;
  TRY(lode_collection_stats(x->colls.files, &stats, err));
  if (x->file_table.table && stats.cursor && stats.cursor == x->file_table.cursor) return LODE_OK;
  return indexer_file_table_load(&x->file_table, x->colls.files, indexer_progress(x), err);
}

lode_status indexer_scan(indexer_ctx *x, const lode_str *paths, size_t n, lode_error *err) {
  TRY(indexer_load_files(x, err));
  x->file_table.mark++;
  if (!paths) TRY(indexer_add_prefix(x, &x->scope, STR_LIT(""), err));
  for (size_t i = 0; paths && i < n; i++) TRY(indexer_add_prefix(x, &x->scope, paths[i], err));
  TRY(indexer_prefixes_normalize(&x->scope, err));
  for (size_t i = 0; i < x->scope.n; i++) {
    strbuf raw = {0};
    files_path_unescape(&raw, x->scope.v[i]);
    lode_status st =
        raw.failed ? err_nomem(err) : indexer_walk_one(x, (lode_str){raw.data ? raw.data : "", raw.len}, err);
    strbuf_release(&raw);
    TRY(st);
  }
  TRY(indexer_prefixes_normalize(&x->unreadable, err));
  return indexer_check_root(x, err);
}
