/* SPDX-License-Identifier: Apache-2.0 */
/* file_table.c - see file_table.h. Open addressing; slots are never freed, a removed entry is only marked. */
#include "indexer/file_table.h"

#include "indexer/indexer_tuning.h"

enum { FILE_TABLE_MIN_SIZE = 1024 };

void indexer_file_table_release(indexer_file_table *s) {
  mem_free(s->items);
  mem_free(s->table);
  mem_arena_release(&s->paths);
  memset(s, 0, sizeof *s);
}

static size_t file_table_slot(const indexer_file_table *s, lode_str path) {
  size_t at = (size_t)hash_bytes(path.data, path.len) & (s->table_size - 1);
  while (s->table[at] && !str_eq(s->items[s->table[at] - 1].path, path)) at = (at + 1) & (s->table_size - 1);
  return at;
}

/* Makes space for one more entry: at most half of the slots are used. */
static bool file_table_grow(indexer_file_table *s) {
  if (!mem_grow(&s->items, &s->cap, s->n + 1, sizeof *s->items)) return false;
  if (s->n + 1 <= s->table_size / 2) return true;
  size_t size = s->table_size ? s->table_size * 2 : FILE_TABLE_MIN_SIZE;
  uint32_t *table = mem_calloc(size, sizeof *table);
  if (!table) return false;
  mem_free(s->table);
  s->table = table;
  s->table_size = size;
  for (size_t i = 0; i < s->n; i++) s->table[file_table_slot(s, s->items[i].path)] = (uint32_t)i + 1;
  return true;
}

static indexer_file_entry *file_table_find_any(indexer_file_table *s, lode_str path) {
  if (!s->table_size) return NULL;
  uint32_t at = s->table[file_table_slot(s, path)];
  return at ? &s->items[at - 1] : NULL;
}

indexer_file_entry *indexer_file_table_find(indexer_file_table *s, lode_str path) {
  indexer_file_entry *entry = file_table_find_any(s, path);
  return entry && !entry->gone ? entry : NULL;
}

lode_status indexer_file_table_put(indexer_file_table *s, lode_str path, const indexer_file_state *file,
                                   lode_error *err) {
  indexer_file_entry *entry = file_table_find_any(s, path);
  if (!entry) {
    if (s->n >= UINT32_MAX - 1) return err_set(err, LODE_LIMIT, "more than four billion files");
    char *copy = mem_arena_copy(&s->paths, path.data, path.len);
    if (!copy || !file_table_grow(s)) return err_nomem(err);
    entry = &s->items[s->n++];
    *entry = (indexer_file_entry){.path = {copy, path.len}};
    s->table[file_table_slot(s, entry->path)] = (uint32_t)s->n;
  }
  entry->file = *file;
  entry->gone = false;
  entry->mark = s->mark;
  return LODE_OK;
}

void indexer_file_table_remove(indexer_file_table *s, indexer_file_entry *entry) {
  (void)s;
  entry->gone = true;
}

lode_status indexer_file_table_load(indexer_file_table *s, lode_collection *files, lode_progress progress,
                                    lode_error *err) {
  lode_get_request request = {.limit = INDEXER_FILES_PAGE, .include = LODE_METADATA};
  json_doc json = {0};
  lode_stats stats;
  lode_status st;
  indexer_file_table_release(s);
  mem_arena_init(&s->paths, 0);
  TRY_GOTO(lode_collection_stats(files, &stats, err));
  s->cursor = stats.cursor;
  for (;;) {
    lode_result *page = NULL;
    TRY_GOTO(lode_get(files, &request, &page, err));
    for (size_t i = 0; i < lode_result_count(page) && st == LODE_OK; i++) {
      const lode_row *row = lode_result_at(page, i);
      indexer_file_state file;
      if (!indexer_file_state_parse(row->metadata, &json, &file)) memset(&file, 0, sizeof file);
      st = indexer_file_table_put(s, row->id, &file, err);
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
    if (st != LODE_OK || !request.after) break;
    TRY_GOTO(err_progress(progress, "reading the index", s->n, stats.records, err));
  }
done:
  json_release(&json);
  if (st != LODE_OK) indexer_file_table_release(s);
  return st;
}
