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
  if (a->repair) TRY(indexer_is_versioned(store, &a->colls.versioned, err));
  TRY(lode_collection_open(store, STR_LIT(INDEXER_COLL_CODE), &plain, &a->colls.code, err));
  TRY(lode_collection_open(store, STR_LIT(INDEXER_COLL_FILES), &plain, &a->colls.files, err));
  lode_status st = lode_collection_open(store, STR_LIT(INDEXER_COLL_QUALITY), &plain, &a->colls.quality, err);
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  st = lode_collection_open(store, STR_LIT(INDEXER_COLL_SYMBOLS), &plain, &a->colls.symbols, err);
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  err_clear(err);
  return LODE_OK;
}

/* The file that a chunk belongs to, NULL: none. *young: of no file yet, perhaps: somebody is writing it. */
static indexer_file_entry *audit_file_of(audit_state *a, lode_str id, bool *young) {
  indexer_version version;
  lode_str path;
  *young = false;
  if (!indexer_chunk_id_parse(id, &path, &version)) return NULL;
  *young = indexer_version_age_ms(&version) < INDEXER_VERSION_ORPHAN_MS;
  indexer_file_entry *known = indexer_file_table_find(&a->file_table, path);
  return known && indexer_version_eq(&known->file.version, &version) ? known : NULL;
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
      lode_str id = lode_result_at(rows, i)->id;
      bool young;
      indexer_file_entry *known = audit_file_of(a, id, &young);
      a->audit->chunks++;
      if (known)
        a->counts[known - a->file_table.items]++;
      else if (!young)
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

/* Has the file another version by now, or one that may be about to be replaced? Then what was counted says nothing. */
static lode_status audit_is_moving(const audit_state *a, const indexer_file_entry *known, bool *moving,
                                   lode_error *err) {
  lode_get_request get = {.select = {.ids = &known->path, .n_ids = 1}, .include = LODE_METADATA};
  lode_result *rows = NULL;
  json_doc json = {0};
  indexer_file_state now;
  *moving = false;
  if (!known->file.version.text[0]) return LODE_OK;
  TRY(lode_get(a->colls.files, &get, &rows, err));
  const lode_row *row = lode_result_at(rows, 0);
  bool same = row && indexer_file_state_parse(row->metadata, &json, &now) &&
              indexer_version_eq(&now.version, &known->file.version);
  *moving = !same || indexer_version_age_ms(&now.version) < INDEXER_VERSION_ORPHAN_MS;
  json_release(&json);
  lode_result_free(rows);
  return LODE_OK;
}

static lode_status audit_files(audit_state *a, lode_error *err) {
  bool moving;
  for (size_t i = 0; i < a->file_table.n; i++) {
    indexer_file_entry *known = &a->file_table.items[i];
    uint32_t max = a->counts[i] > known->file.chunks ? a->counts[i] : known->file.chunks;
    a->audit->files++;
    if (a->counts[i] == known->file.chunks) continue;
    TRY(audit_is_moving(a, known, &moving, err));
    if (moving) continue;
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
