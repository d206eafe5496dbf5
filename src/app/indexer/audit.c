/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - see audit.h. */
#include "indexer/audit.h"

#include "indexer/indexer_tuning.h"

typedef struct audit_state {
  indexer_colls colls;
  indexer_file_table file_table;
  uint32_t *counts; /* chunks found, by position in file_table.items */
  indexer_audit *audit;
  lode_progress progress;
  bool repair;
} audit_state;

static lode_status audit_open_colls(audit_state *a, lode_store *store, lode_error *err) {
  lode_collection_options plain = {0};
  a->colls.store = store;
  TRY(lode_collection_open(store, STR_LIT(INDEXER_COLL_CODE), &plain, &a->colls.code, err));
  TRY(lode_collection_open(store, STR_LIT(INDEXER_COLL_FILES), &plain, &a->colls.files, err));
  lode_status st = lode_collection_open(store, STR_LIT(INDEXER_COLL_QUALITY), &plain, &a->colls.quality, err);
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  st = lode_collection_open(store, STR_LIT(INDEXER_COLL_SYMBOLS), &plain, &a->colls.symbols, err);
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  err_clear(err);
  return LODE_OK;
}

/* PATH#N */
static bool audit_split_id(lode_str id, lode_str *path) {
  size_t at = id.len;
  while (at && id.data[at - 1] >= '0' && id.data[at - 1] <= '9') at--;
  if (at == id.len || at < 2 || id.data[at - 1] != '#') return false;
  *path = (lode_str){id.data, at - 1};
  return true;
}

static lode_status audit_delete(lode_collection *c, const lode_str *ids, size_t n, lode_error *err) {
  lode_selection select = {.ids = ids, .n_ids = n};
  return c && n ? lode_delete(c, NULL, &select, NULL, err) : LODE_OK;
}

static lode_status audit_chunks(audit_state *a, lode_error *err) {
  lode_get_request request = {.limit = INDEXER_FILES_PAGE};
  lode_status st = LODE_OK;
  do {
    lode_result *rows = NULL;
    lode_str orphans[INDEXER_FILES_PAGE];
    size_t n = 0;
    TRY(lode_get(a->colls.code, &request, &rows, err));
    for (size_t i = 0; i < lode_result_count(rows); i++) {
      lode_str id = lode_result_at(rows, i)->id, path;
      indexer_file_entry *known = audit_split_id(id, &path) ? indexer_file_table_find(&a->file_table, path) : NULL;
      a->audit->chunks++;
      if (known)
        a->counts[known - a->file_table.items]++;
      else
        orphans[n++] = id;
    }
    a->audit->orphans += n;
    if (a->repair) {
      st = audit_delete(a->colls.code, orphans, n, err);
      if (st == LODE_OK) st = audit_delete(a->colls.quality, orphans, n, err);
      a->audit->mended += n;
    }
    request.after = lode_result_next(rows);
    lode_result_free(rows);
    if (st != LODE_OK) return st;
    TRY(err_progress(a->progress, "checking chunks", a->audit->chunks, 0, err));
  } while (request.after);
  return LODE_OK;
}

static lode_status audit_files(audit_state *a, lode_error *err) {
  for (size_t i = 0; i < a->file_table.n; i++) {
    indexer_file_entry *known = &a->file_table.items[i];
    uint32_t max = a->counts[i] > known->file.chunks ? a->counts[i] : known->file.chunks;
    a->audit->files++;
    if (a->counts[i] == known->file.chunks) continue;
    a->audit->short_files++;
    if (!a->repair) continue;
    /* Numbers beyond the count are possible when chunks in the middle are lost */
    known->file.chunks = max + 1024;
    TRY(indexer_remove_files(&a->colls, &a->file_table, &known, 1, (lode_progress){0}, err));
    a->audit->mended++;
  }
  return LODE_OK;
}

lode_status indexer_audit_run(lode_store *store, bool repair, lode_progress progress, indexer_audit *audit,
                              lode_error *err) {
  audit_state a = {.audit = audit, .repair = repair, .progress = progress};
  uint64_t code = 0, quality = 0;
  lode_status st;
  memset(audit, 0, sizeof *audit);
  TRY_GOTO(audit_open_colls(&a, store, err));
  TRY_GOTO(indexer_file_table_load(&a.file_table, a.colls.files, progress, err));
  a.counts = mem_calloc(a.file_table.n + 1, sizeof *a.counts);
  if (!a.counts) TRY_GOTO(err_nomem(err));
  TRY_GOTO(audit_chunks(&a, err));
  TRY_GOTO(audit_files(&a, err));
  if (a.colls.quality) {
    TRY_GOTO(lode_count(a.colls.code, &code, err));
    TRY_GOTO(lode_count(a.colls.quality, &quality, err));
    audit->unpaired = code > quality ? code - quality : quality - code;
  }
done:
  if (a.colls.code) lode_collection_close(a.colls.code);
  if (a.colls.files) lode_collection_close(a.colls.files);
  if (a.colls.quality) lode_collection_close(a.colls.quality);
  if (a.colls.symbols) lode_collection_close(a.colls.symbols);
  indexer_file_table_release(&a.file_table);
  mem_free(a.counts);
  return st;
}
