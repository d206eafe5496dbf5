/* known.c - see known.h. Open addressing; entries are never taken out of the table, a removed one is marked. */
#include "known.h"

enum { PAGE = 5000, LEAST_TABLE = 1024 };

void lode__known_release(lode__known_files *s) {
  mem_free(s->items);
  mem_free(s->table);
  mem_arena_release(&s->paths);
  memset(s, 0, sizeof *s);
}

static size_t slot_of(const lode__known_files *s, lode_str path) {
  size_t at = (size_t)hash_bytes(path.data, path.len) & (s->table_size - 1);
  while (s->table[at] && !str_eq(s->items[s->table[at] - 1].path, path)) at = (at + 1) & (s->table_size - 1);
  return at;
}

/* Room for one more: at most half of the table is used. */
static bool make_room(lode__known_files *s) {
  if (!mem_grow(&s->items, &s->cap, s->n + 1, sizeof *s->items)) return false;
  if (s->n + 1 <= s->table_size / 2) return true;
  size_t size = s->table_size ? s->table_size * 2 : LEAST_TABLE;
  uint32_t *table = mem_calloc(size, sizeof *table);
  if (!table) return false;
  mem_free(s->table);
  s->table = table;
  s->table_size = size;
  for (size_t i = 0; i < s->n; i++) s->table[slot_of(s, s->items[i].path)] = (uint32_t)i + 1;
  return true;
}

static lode__known *find_any(lode__known_files *s, lode_str path) {
  if (!s->table_size) return NULL;
  uint32_t at = s->table[slot_of(s, path)];
  return at ? &s->items[at - 1] : NULL;
}

lode__known *lode__known_find(lode__known_files *s, lode_str path) {
  lode__known *known = find_any(s, path);
  return known && !known->gone ? known : NULL;
}

lode_status lode__known_put(lode__known_files *s, lode_str path, const lode__file_state *file, lode_error *err) {
  lode__known *known = find_any(s, path);
  if (!known) {
    if (s->n >= UINT32_MAX - 1) return err_set(err, LODE_LIMIT, "more than four billion files");
    char *copy = mem_arena_copy(&s->paths, path.data, path.len);
    if (!copy || !make_room(s)) return err_nomem(err);
    known = &s->items[s->n++];
    *known = (lode__known){.path = {copy, path.len}};
    s->table[slot_of(s, known->path)] = (uint32_t)s->n;
  }
  known->file = *file;
  known->gone = false;
  known->mark = s->mark;
  return LODE_OK;
}

void lode__known_remove(lode__known_files *s, lode__known *known) {
  (void)s;
  known->gone = true;
}

lode_status lode__known_load(lode__known_files *s, lode_collection *files, lode_progress progress, lode_error *err) {
  lode_get_request request = {.limit = PAGE, .include = LODE_METADATA};
  json_doc json = {0};
  lode_stats stats;
  lode_status st;
  lode__known_release(s);
  mem_arena_init(&s->paths, 0);
  TRY_GOTO(lode_collection_stats(files, &stats, err));
  s->cursor = stats.cursor;
  for (;;) {
    lode_result *page = NULL;
    TRY_GOTO(lode_get(files, &request, &page, err));
    for (size_t i = 0; i < lode_result_count(page) && st == LODE_OK; i++) {
      const lode_row *row = lode_result_at(page, i);
      lode__file_state file;
      if (!lode__file_state_of(row->metadata, &json, &file)) memset(&file, 0, sizeof file);
      st = lode__known_put(s, row->id, &file, err);
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
    if (st != LODE_OK || !request.after) break;
    if (progress.step && !progress.step(progress.ctx, "reading the index", s->n, stats.records)) {
      st = err_set(err, LODE_CANCELLED, "interrupted");
      break;
    }
  }
done:
  json_release(&json);
  if (st != LODE_OK) lode__known_release(s);
  return st;
}
