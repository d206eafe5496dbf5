/* SPDX-License-Identifier: Apache-2.0 */
/* search_versions.c - see search_versions.h. */
#include "search/search_versions.h"

#include "indexer/indexer_tuning.h"

#include <stdlib.h>

enum { VERSIONS_PAGE = 1000 };

void search_versions_init(search_versions *s) {
  memset(s, 0, sizeof *s);
  mem_arena_init(&s->arena, 0);
}

void search_versions_release(search_versions *s) {
  mem_free(s->v);
  mem_arena_release(&s->arena);
  memset(s, 0, sizeof *s);
}

static int versions_compare(const void *a, const void *b) {
  return str_cmp(((const search_file_version *)a)->path, ((const search_file_version *)b)->path);
}

static search_file_version *versions_find(const search_versions *s, lode_str path) {
  search_file_version key = {.path = path};
  return s && s->n ? bsearch(&key, s->v, s->n, sizeof key, versions_compare) : NULL;
}

/* Adds the files that are not known, without a version, and puts their paths into `paths`. */
static lode_status versions_add(search_versions *s, const lode_str *ids, size_t n, lode_str *paths, size_t *n_paths,
                                lode_error *err) {
  *n_paths = 0;
  for (size_t i = 0; i < n; i++) {
    lode_str path;
    if (!indexer_chunk_id_parse(ids[i], &path, NULL) || versions_find(s, path)) continue;
    paths[(*n_paths)++] = path;
  }
  qsort(paths, *n_paths, sizeof *paths, sort_cmp_str);
  size_t kept = 0;
  for (size_t i = 0; i < *n_paths; i++)
    if (!kept || !str_eq(paths[i], paths[kept - 1])) paths[kept++] = paths[i];
  *n_paths = kept;
  if (!mem_grow(&s->v, &s->cap, s->n + kept, sizeof *s->v)) return err_nomem(err);
  for (size_t i = 0; i < kept; i++) {
    char *copy = mem_arena_copy(&s->arena, paths[i].data, paths[i].len);
    if (!copy) return err_nomem(err);
    s->v[s->n++] = (search_file_version){.path = {copy, paths[i].len}};
  }
  qsort(s->v, s->n, sizeof *s->v, versions_compare);
  return LODE_OK;
}

static lode_status versions_read(search_versions *s, lode_collection *files, const lode_str *paths, size_t n,
                                 lode_error *err) {
  json_doc json = {0};
  lode_status st = LODE_OK;
  for (size_t at = 0; at < n && st == LODE_OK; at += VERSIONS_PAGE) {
    lode_get_request get = {.select = {.ids = paths + at, .n_ids = n - at < VERSIONS_PAGE ? n - at : VERSIONS_PAGE},
                            .include = LODE_METADATA};
    lode_result *rows = NULL;
    st = lode_get(files, &get, &rows, err);
    for (size_t i = 0; i < lode_result_count(rows); i++) {
      indexer_file_state state;
      search_file_version *file = versions_find(s, lode_result_at(rows, i)->id);
      if (!file || !indexer_file_state_parse(lode_result_at(rows, i)->metadata, &json, &state)) continue;
      file->version = state.version;
      file->there = true;
    }
    lode_result_free(rows);
  }
  json_release(&json);
  return st;
}

lode_status search_versions_load(search_versions *s, lode_collection *files, const lode_str *ids, size_t n,
                                 lode_error *err) {
  lode_str *paths = mem_calloc(n ? n : 1, sizeof *paths);
  size_t n_paths = 0;
  lode_status st = paths ? versions_add(s, ids, n, paths, &n_paths, err) : err_nomem(err);
  if (st == LODE_OK) st = versions_read(s, files, paths, n_paths, err);
  mem_free(paths);
  return st;
}

lode_status search_versions_load_rows(search_versions *s, lode_collection *files, const lode_result *rows,
                                      lode_error *err) {
  size_t n = lode_result_count(rows);
  lode_str *ids = mem_calloc(n ? n : 1, sizeof *ids);
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < n; i++) ids[i] = lode_result_at(rows, i)->id;
  lode_status st = search_versions_load(s, files, ids, n, err);
  mem_free(ids);
  return st;
}

search_version_fit search_versions_judge(const search_versions *s, const search_versions *before, lode_str id,
                                         bool *settled) {
  lode_str path;
  indexer_version version;
  bool parsed = indexer_chunk_id_parse(id, &path, &version);
  const search_file_version *now = parsed ? versions_find(s, path) : NULL, *was = versions_find(before, path);
  if (!now || !now->there) return parsed ? SEARCH_VERSION_OTHER : SEARCH_VERSION_FITS;
  bool sure = indexer_version_age_ms(&now->version) >= INDEXER_VERSION_YOUNG_MS ||
              (was && was->there && indexer_version_eq(&was->version, &now->version));
  if (!sure) *settled = false;
  if (!indexer_version_eq(&now->version, &version)) return SEARCH_VERSION_OTHER;
  return sure ? SEARCH_VERSION_FITS : SEARCH_VERSION_UNSURE;
}
