/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_batch.c - see indexer_batch.h. */
#include "indexer/indexer_batch.h"

#include "indexer/indexer_tuning.h"
#include <stdlib.h>

lode_status indexer_batch_add(indexer_batch *b, indexer_file *file, lode_error *err) {
  if (!mem_grow(&b->files, &b->cap, b->n + 1, sizeof *b->files)) {
    indexer_file_free(file);
    return err_nomem(err);
  }
  b->files[b->n++] = file;
  b->chunks += file->n;
  b->bytes += file->arena.used;
  return LODE_OK;
}

bool indexer_batch_full(const indexer_batch *b) {
  return b->chunks >= INDEXER_BATCH_MAX_CHUNKS || b->n >= INDEXER_BATCH_MAX_FILES ||
         b->bytes >= INDEXER_BATCH_MAX_BYTES;
}

static void indexer_batch_empty(indexer_batch *b) {
  for (size_t i = 0; i < b->n; i++) indexer_file_free(b->files[i]);
  b->n = b->chunks = b->bytes = 0;
}

void indexer_batch_release(indexer_batch *b) {
  indexer_batch_empty(b);
  mem_free(b->files);
  memset(b, 0, sizeof *b);
}

/* ---- Ids ---- */

typedef struct indexer_batch_ids {
  lode_str *v;
  size_t n, cap;
  mem_arena arena;
} indexer_batch_ids;

static lode_status indexer_batch_add_id(indexer_batch_ids *ids, lode_str id, lode_error *err) {
  char *copy = mem_arena_copy(&ids->arena, id.data, id.len);
  if (!copy || !mem_grow(&ids->v, &ids->cap, ids->n + 1, sizeof *ids->v)) return err_nomem(err);
  ids->v[ids->n++] = (lode_str){copy, id.len};
  return LODE_OK;
}

static lode_status indexer_batch_add_chunk_ids(indexer_batch_ids *ids, lode_str path, const indexer_file_state *file,
                                               lode_error *err) {
  strbuf id = {0};
  lode_status st = LODE_OK;
  for (size_t i = 0; i < file->chunks && st == LODE_OK; i++) {
    st = indexer_chunk_id(&id, path, &file->version, i, err);
    if (st == LODE_OK) st = indexer_batch_add_id(ids, (lode_str){id.data, id.len - 1}, err);
  }
  strbuf_release(&id);
  return st;
}

static void indexer_batch_ids_release(indexer_batch_ids *ids) {
  mem_free(ids->v);
  mem_arena_release(&ids->arena);
}

/* Commits what succeeded; rolls back what failed. */
static lode_status indexer_batch_end(lode_txn *txn, lode_status st, lode_error *err) {
  if (st == LODE_OK) return lode_commit(txn, err);
  lode_rollback(txn);
  return st;
}

static lode_status indexer_batch_delete_ids(lode_collection *c, lode_txn *txn, const indexer_batch_ids *ids,
                                            lode_error *err) {
  lode_selection select = {.ids = ids->v, .n_ids = ids->n};
  return c && ids->n ? lode_delete(c, txn, &select, NULL, err) : LODE_OK;
}

/* ---- Saved vectors ---- */

typedef struct indexer_batch_saved_vector { /* vectors in the index, by the hash of their text */
  char hash[INDEXER_DIGEST_HEX + 1];
  const float *code, *quality; /* NULL: there is none */
} indexer_batch_saved_vector;

typedef struct indexer_batch_saved_vectors {
  lode_result *code, *quality;
  uint32_t code_dim, quality_dim;
  indexer_batch_saved_vector *v;
  size_t n;
} indexer_batch_saved_vectors;

static int indexer_batch_compare_hash(const void *a, const void *b) {
  return strcmp(((const indexer_batch_saved_vector *)a)->hash, ((const indexer_batch_saved_vector *)b)->hash);
}

static void indexer_batch_saved_release(indexer_batch_saved_vectors *k) {
  lode_result_free(k->code);
  lode_result_free(k->quality);
  mem_free(k->v);
}

static const lode_row *indexer_batch_row_of(const lode_result *rows, lode_str id, size_t *hint) {
  size_t n = lode_result_count(rows);
  for (size_t tried = 0; tried < n; tried++, *hint = (*hint + 1) % n) {
    const lode_row *row = lode_result_at(rows, *hint);
    if (str_eq(row->id, id)) return row;
  }
  return NULL;
}

/* Reads the vectors of the old chunks before they are deleted. Both results are ordered by id, so the hint is nearly
 * always right. */
static lode_status indexer_batch_save_vectors(const indexer_batch *b, const indexer_batch_ids *old,
                                              indexer_batch_saved_vectors *k, lode_error *err) {
  lode_get_request request = {.select = {.ids = old->v, .n_ids = old->n}, .include = LODE_METADATA | LODE_VECTOR};
  json_doc json = {0};
  indexer_chunk_view view;
  lode_status st = LODE_OK;
  size_t hint = 0;
  if (old->n == 0 || (!b->keep_vectors && !b->colls->quality)) return LODE_OK;
  if (!b->keep_vectors) request.include = LODE_METADATA;
  TRY_GOTO(lode_get(b->colls->code, &request, &k->code, err));
  request.include = LODE_VECTOR;
  if (b->colls->quality) TRY_GOTO(lode_get(b->colls->quality, &request, &k->quality, err));
  k->v = mem_calloc(lode_result_count(k->code), sizeof *k->v);
  if (!k->v) TRY_GOTO(err_nomem(err));
  for (size_t i = 0; i < lode_result_count(k->code); i++) {
    const lode_row *row = lode_result_at(k->code, i);
    if (indexer_chunk_view_parse(row->metadata, &json, &view, NULL) != LODE_OK || view.hash.len != INDEXER_DIGEST_HEX)
      continue;
    memcpy(k->v[k->n].hash, view.hash.data, INDEXER_DIGEST_HEX);
    const lode_row *second = indexer_batch_row_of(k->quality, row->id, &hint);
    if (row->vector) k->code_dim = row->dimension;
    if (second && second->vector) k->quality_dim = second->dimension;
    k->v[k->n].code = row->vector;
    k->v[k->n++].quality = second ? second->vector : NULL;
  }
  if (k->n) qsort(k->v, k->n, sizeof *k->v, indexer_batch_compare_hash);
done:
  json_release(&json);
  return st;
}

static const indexer_batch_saved_vector *indexer_batch_find_saved(const indexer_batch_saved_vectors *k,
                                                                  const char *hash) {
  indexer_batch_saved_vector key;
  if (!k->n) return NULL;
  memcpy(key.hash, hash, sizeof key.hash);
  return bsearch(&key, k->v, k->n, sizeof key, indexer_batch_compare_hash);
}

/* ---- Records ---- */

typedef struct indexer_batch_records {
  lode_record *v;
  size_t n;
} indexer_batch_records;

/* Gives a record the id of its file's version. */
static lode_status indexer_batch_name_record(const indexer_file *file, size_t i, mem_arena *arena, lode_str *id,
                                             lode_error *err) {
  strbuf text = {0};
  *id = file->records[i].id;
  if (!file->state.version.text[0]) return LODE_OK;
  lode_status st = indexer_chunk_id(&text, file->task->path, &file->state.version, i, err);
  char *copy = st == LODE_OK ? mem_arena_copy(arena, text.data, text.len) : NULL;
  if (copy) *id = (lode_str){copy, text.len - 1};
  if (st == LODE_OK && !copy) st = err_nomem(err);
  strbuf_release(&text);
  return st;
}

static lode_status indexer_batch_chunk_records(indexer_batch *b, const indexer_batch_saved_vectors *k, mem_arena *arena,
                                               indexer_batch_records *code, indexer_batch_records *quality,
                                               lode_error *err) {
  code->v = mem_calloc(b->chunks, sizeof *code->v);
  quality->v = mem_calloc(b->chunks, sizeof *quality->v);
  if (!code->v || !quality->v) return err_nomem(err);
  for (size_t f = 0; f < b->n; f++) {
    const indexer_file *file = b->files[f];
    for (size_t i = 0; i < file->n; i++) {
      const indexer_record *r = &file->records[i];
      const indexer_batch_saved_vector *old = indexer_batch_find_saved(k, r->hash);
      lode_record *to = &code->v[code->n++], *second = &quality->v[quality->n++];
      lode_str id;
      TRY(indexer_batch_name_record(file, i, arena, &id, err));
      *to = (lode_record){.id = id, .document = r->document, .metadata = r->metadata};
      *second = (lode_record){.id = id};
      if (file->vectors) {
        to->vector = file->vectors + i * b->dimension;
        to->dimension = b->dimension;
      } else if (old && old->code) {
        to->vector = old->code;
        to->dimension = k->code_dim;
        b->reused++;
      }
      if (old && old->quality) {
        second->vector = old->quality;
        second->dimension = k->quality_dim;
        b->reused++;
      }
    }
  }
  return LODE_OK;
}

static bool indexer_batch_has_state(const indexer_file *f) { return f->skip != SCAN_SKIP_UNREADABLE; }

static lode_status indexer_batch_file_records(const indexer_batch *b, mem_arena *arena, indexer_batch_records *files,
                                              lode_error *err) {
  strbuf text = {0};
  lode_status st = LODE_OK;
  files->v = mem_calloc(b->n, sizeof *files->v);
  if (!files->v) return err_nomem(err);
  for (size_t i = 0; i < b->n; i++) {
    const indexer_file *f = b->files[i];
    /* a record that is written again could bring back a version that another writer has replaced meanwhile */
    if (!indexer_batch_has_state(f) || (f->same && b->colls->versioned)) continue;
    text.len = 0;
    indexer_file_state_put(&text, &f->state, f->language->name);
    char *copy = text.failed ? NULL : mem_arena_copy(arena, text.data, text.len);
    if (!copy) TRY_GOTO(err_nomem(err));
    files->v[files->n++] = (lode_record){
        .id = f->task->path, .metadata = {copy, text.len}, .document = f->outline.len ? f->outline : (lode_str){0}};
  }
done:
  strbuf_release(&text);
  return st;
}

static lode_status indexer_batch_symbol_records(const indexer_batch *b, indexer_batch_records *symbols,
                                                lode_error *err) {
  symbols->v = mem_calloc(b->n, sizeof *symbols->v);
  if (!symbols->v) return err_nomem(err);
  for (size_t i = 0; i < b->n; i++)
    if (b->files[i]->symbols.len)
      symbols->v[symbols->n++] = (lode_record){.id = b->files[i]->task->path, .metadata = b->files[i]->symbols};
  return LODE_OK;
}

/* ---- The transaction ---- */

typedef struct indexer_batch_txn {
  indexer_batch_ids old_chunks, old_files;
  indexer_batch_saved_vectors saved;
  indexer_batch_records code, quality, files, symbols;
  mem_arena arena;
} indexer_batch_txn;

/* A file with the same bytes keeps its chunks: only its state is written. */
static bool indexer_batch_is_rewritten(const indexer_file *f) { return indexer_batch_has_state(f) && !f->same; }

static lode_status indexer_batch_list_old(const indexer_batch *b, indexer_batch_txn *w, lode_error *err) {
  for (size_t i = 0; i < b->n; i++) {
    const indexer_file *f = b->files[i];
    if (!f->task->known || !indexer_batch_is_rewritten(f)) continue;
    TRY(indexer_batch_add_chunk_ids(&w->old_chunks, f->task->path, &f->task->old, err));
    TRY(indexer_batch_add_id(&w->old_files, f->task->path, err));
  }
  return LODE_OK;
}

/* Deletes records of the rewritten files that the file table does not know of: left after a loss, or written by
 * another process meanwhile. Chunks of other files stay: nothing would replace them. */
static lode_status indexer_batch_delete_unknown(const indexer_batch *b, lode_txn *txn, lode_error *err) {
  strbuf where = {0};
  lode_status st = LODE_OK;
  for (size_t i = 0; i < b->n && st == LODE_OK; i++) {
    indexer_batch_ids ids = {0};
    lode_result *found = NULL;
    if (!indexer_batch_is_rewritten(b->files[i])) continue;
    where.len = 0;
    strbuf_addstr(&where, "{\"path\":");
    json_put_string(&where, b->files[i]->task->path);
    strbuf_addch(&where, '}');
    lode_get_request request = {.select = {.where = {where.data, where.len}}};
    st = where.failed ? err_nomem(err) : lode_get(b->colls->code, &request, &found, err);
    for (size_t r = 0; r < lode_result_count(found) && st == LODE_OK; r++)
      st = indexer_batch_add_id(&ids, lode_result_at(found, r)->id, err);
    if (st == LODE_OK) st = indexer_batch_delete_ids(b->colls->code, txn, &ids, err);
    if (st == LODE_OK) st = indexer_batch_delete_ids(b->colls->quality, txn, &ids, err);
    ids.n = 0;
    if (st == LODE_OK) st = indexer_batch_add_id(&ids, b->files[i]->task->path, err);
    if (st == LODE_OK) st = indexer_batch_delete_ids(b->colls->files, txn, &ids, err);
    if (st == LODE_OK) st = indexer_batch_delete_ids(b->colls->symbols, txn, &ids, err);
    lode_result_free(found);
    indexer_batch_ids_release(&ids);
  }
  strbuf_release(&where);
  return st;
}

static lode_status indexer_batch_write_all(const indexer_batch *b, indexer_batch_txn *w, bool delete_unknown,
                                           lode_error *err) {
  const indexer_colls *s = b->colls;
  lode_txn *txn = NULL;
  lode_status st;
  TRY(lode_begin(s->store, &txn, err));
  TRY_GOTO(indexer_batch_delete_ids(s->code, txn, &w->old_chunks, err));
  TRY_GOTO(indexer_batch_delete_ids(s->quality, txn, &w->old_chunks, err));
  TRY_GOTO(indexer_batch_delete_ids(s->files, txn, &w->old_files, err));
  TRY_GOTO(indexer_batch_delete_ids(s->symbols, txn, &w->old_files, err));
  if (delete_unknown) TRY_GOTO(indexer_batch_delete_unknown(b, txn, err));
  if (w->code.n) TRY_GOTO(lode_add(s->code, txn, w->code.v, w->code.n, LODE_FAIL_EXISTING, NULL, err));
  if (s->quality && w->quality.n)
    TRY_GOTO(lode_add(s->quality, txn, w->quality.v, w->quality.n, LODE_FAIL_EXISTING, NULL, err));
  if (w->files.n) TRY_GOTO(lode_upsert(s->files, txn, w->files.v, w->files.n, NULL, err));
  if (s->symbols && w->symbols.n) TRY_GOTO(lode_upsert(s->symbols, txn, w->symbols.v, w->symbols.n, NULL, err));
done:
  return indexer_batch_end(txn, st, err);
}

static lode_status indexer_batch_note_files(indexer_batch *b, lode_error *err) {
  for (size_t i = 0; i < b->n; i++)
    if (indexer_batch_has_state(b->files[i]))
      TRY(indexer_file_table_put(b->file_table, b->files[i]->task->path, &b->files[i]->state, err));
  return LODE_OK;
}

/* ---- Without transactions: versions ---- */

lode_status indexer_is_versioned(lode_store *store, bool *versioned, lode_error *err) {
  lode_txn *txn = NULL;
  lode_status st = lode_begin(store, &txn, err);
  *versioned = st == LODE_UNSUPPORTED;
  if (st == LODE_OK) lode_rollback(txn);
  if (st == LODE_UNSUPPORTED || st == LODE_BUSY) err_clear(err); /* who waits for a lock has them */
  return st == LODE_UNSUPPORTED || st == LODE_BUSY ? LODE_OK : st;
}

static lode_status indexer_batch_make_versions(indexer_batch *b, lode_error *err) {
  for (size_t i = 0; i < b->n; i++) {
    indexer_file *f = b->files[i];
    if (!indexer_batch_is_rewritten(f)) continue;
    TRY(indexer_version_make(&f->state.version, err));
    f->state.symbols = f->symbols.len != 0;
  }
  return LODE_OK;
}

/* The chunks to be deleted are those of the records as they are now: others write, too. */
static lode_status indexer_batch_list_current(const indexer_batch *b, indexer_batch_txn *w, lode_error *err) {
  lode_get_request get = {.include = LODE_METADATA};
  lode_str *paths = mem_calloc(b->n, sizeof *paths);
  lode_result *rows = NULL;
  json_doc json = {0};
  lode_status st = paths ? LODE_OK : err_nomem(err);
  get.select.ids = paths;
  for (size_t i = 0; i < b->n && st == LODE_OK; i++) {
    const indexer_file *f = b->files[i];
    if (!indexer_batch_is_rewritten(f)) continue;
    paths[get.select.n_ids++] = f->task->path;
    if (!f->symbols.len) st = indexer_batch_add_id(&w->old_files, f->task->path, err);
  }
  if (st == LODE_OK && get.select.n_ids) st = lode_get(b->colls->files, &get, &rows, err);
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++) {
    indexer_file_state state;
    if (indexer_file_state_parse(lode_result_at(rows, i)->metadata, &json, &state))
      st = indexer_batch_add_chunk_ids(&w->old_chunks, lode_result_at(rows, i)->id, &state, err);
  }
  json_release(&json);
  lode_result_free(rows);
  mem_free(paths);
  return st;
}

/* The records of the files are what readers go by: all that they name is there before, and what they named until then
 * goes after. */
static lode_status indexer_batch_write_versions(const indexer_batch *b, indexer_batch_txn *w, lode_error *err) {
  const indexer_colls *s = b->colls;
  uint64_t start = os_api->now_ns();
  if (w->code.n) TRY(lode_upsert(s->code, NULL, w->code.v, w->code.n, NULL, err));
  if (s->quality && w->quality.n) TRY(lode_upsert(s->quality, NULL, w->quality.v, w->quality.n, NULL, err));
  if (s->symbols && w->symbols.n) TRY(lode_upsert(s->symbols, NULL, w->symbols.v, w->symbols.n, NULL, err));
  if (os_api->now_ns() - start > INDEXER_VERSION_WRITE_MS * UINT64_C(1000000))
    return err_set(err, LODE_BUSY, "the store took longer than %d s to write a batch: run `lode index` again",
                   INDEXER_VERSION_WRITE_MS / 1000);
  if (w->files.n) TRY(lode_upsert(s->files, NULL, w->files.v, w->files.n, NULL, err));
  TRY(indexer_batch_delete_ids(s->code, NULL, &w->old_chunks, err));
  TRY(indexer_batch_delete_ids(s->quality, NULL, &w->old_chunks, err));
  return indexer_batch_delete_ids(s->symbols, NULL, &w->old_files, err);
}

/* ---- A batch ---- */

static lode_status indexer_batch_make(indexer_batch *b, indexer_batch_txn *w, lode_error *err) {
  mem_arena_init(&w->arena, 0);
  mem_arena_init(&w->old_chunks.arena, 0);
  mem_arena_init(&w->old_files.arena, 0);
  if (b->colls->versioned) TRY(indexer_batch_make_versions(b, err));
  TRY(b->colls->versioned ? indexer_batch_list_current(b, w, err) : indexer_batch_list_old(b, w, err));
  TRY(indexer_batch_save_vectors(b, &w->old_chunks, &w->saved, err));
  TRY(indexer_batch_chunk_records(b, &w->saved, &w->arena, &w->code, &w->quality, err));
  TRY(indexer_batch_file_records(b, &w->arena, &w->files, err));
  return indexer_batch_symbol_records(b, &w->symbols, err);
}

static void indexer_batch_txn_release(indexer_batch_txn *w) {
  mem_free(w->code.v);
  mem_free(w->quality.v);
  mem_free(w->files.v);
  mem_free(w->symbols.v);
  indexer_batch_saved_release(&w->saved);
  indexer_batch_ids_release(&w->old_chunks);
  indexer_batch_ids_release(&w->old_files);
  mem_arena_release(&w->arena);
}

static lode_status indexer_batch_write(indexer_batch *b, bool *again, lode_error *err) {
  indexer_batch_txn w = {0};
  uint64_t reused = b->reused;
  lode_status st = indexer_batch_make(b, &w, err);
  *again = false;
  if (st == LODE_OK && b->colls->versioned) {
    st = indexer_batch_write_versions(b, &w, err);
    *again = st == LODE_BUSY;
    if (*again) b->reused = reused;
  } else if (st == LODE_OK) {
    for (int tries = 0;
         (st = indexer_batch_write_all(b, &w, false, err)) == LODE_BUSY && tries < INDEXER_BATCH_MAX_TRIES; tries++) {}
    if (st == LODE_EXISTS || st == LODE_REFUSED) st = indexer_batch_write_all(b, &w, true, err);
  }
  indexer_batch_txn_release(&w);
  return st;
}

lode_status indexer_batch_flush(indexer_batch *b, lode_error *err) {
  bool again = true;
  lode_status st = LODE_OK;
  if (b->n == 0) return LODE_OK;
  for (int tries = 0; again && tries < INDEXER_BATCH_MAX_TRIES; tries++) st = indexer_batch_write(b, &again, err);
  if (st == LODE_OK) st = indexer_batch_note_files(b, err);
  indexer_batch_empty(b);
  return st;
}

/* ---- Removal ---- */

static lode_status indexer_batch_remove_ids(const indexer_colls *s, const indexer_batch_ids *chunks,
                                            const indexer_batch_ids *files, lode_error *err) {
  lode_txn *txn = NULL;
  lode_status st;
  if (!s->versioned) TRY(lode_begin(s->store, &txn, err));
  /* the files first: without their records, nobody takes the chunks for theirs */
  TRY_GOTO(indexer_batch_delete_ids(s->files, txn, files, err));
  TRY_GOTO(indexer_batch_delete_ids(s->symbols, txn, files, err));
  TRY_GOTO(indexer_batch_delete_ids(s->code, txn, chunks, err));
  TRY_GOTO(indexer_batch_delete_ids(s->quality, txn, chunks, err));
done:
  return txn ? indexer_batch_end(txn, st, err) : st;
}

lode_status indexer_remove_files(const indexer_colls *colls, indexer_file_table *file_table, indexer_file_entry **files,
                                 size_t n, lode_progress progress, lode_error *err) {
  for (size_t at = 0; at < n;) {
    indexer_batch_ids chunks = {0}, paths = {0};
    size_t end = at;
    lode_status st = LODE_OK;
    mem_arena_init(&chunks.arena, 0);
    mem_arena_init(&paths.arena, 0);
    for (; end < n && chunks.n + paths.n < INDEXER_BATCH_REMOVE_IDS && st == LODE_OK; end++) {
      st = indexer_batch_add_chunk_ids(&chunks, files[end]->path, &files[end]->file, err);
      if (st == LODE_OK) st = indexer_batch_add_id(&paths, files[end]->path, err);
    }
    if (st == LODE_OK) st = indexer_batch_remove_ids(colls, &chunks, &paths, err);
    indexer_batch_ids_release(&chunks);
    indexer_batch_ids_release(&paths);
    if (st != LODE_OK) return st;
    for (; at < end; at++) indexer_file_table_remove(file_table, files[at]);
    TRY(err_progress(progress, "removing", at, n, err));
  }
  return LODE_OK;
}
