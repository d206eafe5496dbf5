/* SPDX-License-Identifier: Apache-2.0 */
/* fill_vectors.c - see fill_vectors.h. */
#include "indexer/fill_vectors.h"

#include "indexer/indexer_tuning.h"

typedef struct backfill_need { /* a chunk without a vector */
  lode_str id;
  char hash[INDEXER_DIGEST_HEX + 1];
  lode_str text;
  const float *vector;
} backfill_need;

typedef struct backfill_page {
  lode_result *pending, *texts;
  lode_result *twins[2], *vectors[2]; /* [0] of the target itself, [1] of the donor */
  backfill_need needs[INDEXER_FILL_BATCH];
  lode_str ids[INDEXER_FILL_BATCH];
  size_t n;
  mem_arena arena;
  json_doc json;
  strbuf scratch;
  float *made;
  uint32_t dimension; /* of copied vectors */
  uint64_t next;
} backfill_page;

static void backfill_page_release(backfill_page *p) {
  lode_result_free(p->pending);
  lode_result_free(p->texts);
  for (size_t i = 0; i < 2; i++) {
    lode_result_free(p->twins[i]);
    lode_result_free(p->vectors[i]);
  }
  mem_arena_release(&p->arena);
  json_release(&p->json);
  strbuf_release(&p->scratch);
  mem_free(p->made);
  mem_free(p);
}

/* ---- Chunks without a vector, and their texts ---- */

static lode_status backfill_read_needs(indexer_backfill *f, backfill_page *p, uint64_t after, lode_error *err) {
  lode_get_request request = {.pending_only = true, .limit = INDEXER_FILL_BATCH, .after = after};
  TRY(lode_get(f->target, &request, &p->pending, err));
  p->next = lode_result_next(p->pending);
  size_t n = lode_result_count(p->pending);
  for (size_t i = 0; i < n; i++) p->ids[i] = lode_result_at(p->pending, i)->id;
  if (n == 0) return LODE_OK;
  request = (lode_get_request){.select = {.ids = p->ids, .n_ids = n}, .include = LODE_DOCUMENT | LODE_METADATA};
  TRY(lode_get(f->code, &request, &p->texts, err));
  for (size_t i = 0; i < lode_result_count(p->texts); i++) {
    const lode_row *row = lode_result_at(p->texts, i);
    backfill_need *to = &p->needs[p->n];
    indexer_chunk_view view;
    if (indexer_chunk_view_parse(row->metadata, &p->json, &view, NULL) != LODE_OK ||
        view.hash.len != INDEXER_DIGEST_HEX)
      continue;
    p->scratch.len = 0;
    TRY(indexer_embed_text(&view, row->document.data ? row->document : STR_LIT(""), &p->scratch, err));
    char *copy = mem_arena_copy(&p->arena, p->scratch.data ? p->scratch.data : "", p->scratch.len);
    if (!copy) return err_nomem(err);
    *to = (backfill_need){.id = row->id, .text = {copy, p->scratch.len}};
    memcpy(to->hash, view.hash.data, INDEXER_DIGEST_HEX);
    p->n++;
  }
  return LODE_OK;
}

/* ---- Copying ---- */

/* Finds chunks with these hashes, in any file. */
static lode_status backfill_find_twins(lode_collection *code, backfill_page *p, lode_result **twins, lode_error *err) {
  p->scratch.len = 0;
  strbuf_addstr(&p->scratch, "{\"hash\":{\"$in\":[");
  for (size_t i = 0; i < p->n; i++) strbuf_addf(&p->scratch, "%s\"%s\"", i ? "," : "", p->needs[i].hash);
  strbuf_addstr(&p->scratch, "]}}");
  if (p->scratch.failed) return err_nomem(err);
  lode_get_request request = {.select = {.where = {p->scratch.data, p->scratch.len}},
                              .limit = 16 * INDEXER_FILL_BATCH,
                              .include = LODE_METADATA};
  return lode_get(code, &request, twins, err);
}

static lode_status backfill_copy_vectors(indexer_backfill *f, backfill_page *p, size_t from, lode_error *err) {
  lode_collection *code = from ? f->donor_code : f->code, *target = from ? f->donor_target : f->target;
  if (!code || !target || p->n == 0) return LODE_OK;
  TRY(backfill_find_twins(code, p, &p->twins[from], err));
  size_t n = lode_result_count(p->twins[from]);
  if (n == 0) return LODE_OK;
  lode_str *ids = mem_calloc(n, sizeof *ids);
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < n; i++) ids[i] = lode_result_at(p->twins[from], i)->id;
  lode_get_request request = {.select = {.ids = ids, .n_ids = n}, .include = LODE_VECTOR};
  lode_status st = lode_get(target, &request, &p->vectors[from], err);
  mem_free(ids);
  size_t at = 0; /* both results are ordered by id; the second may lack some */
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    const lode_row *twin = lode_result_at(p->twins[from], i), *row = lode_result_at(p->vectors[from], at);
    indexer_chunk_view view;
    if (!row || !str_eq(row->id, twin->id)) continue;
    at++;
    if (!row->vector || indexer_chunk_view_parse(twin->metadata, &p->json, &view, NULL) != LODE_OK) continue;
    for (size_t k = 0; k < p->n; k++)
      if (!p->needs[k].vector && str_eq(view.hash, str_of(p->needs[k].hash))) {
        p->needs[k].vector = row->vector;
        p->dimension = row->dimension;
        f->reused++;
      }
  }
  return st;
}

/* ---- Embedding ---- */

/* Equal texts of one page are embedded once. */
static lode_status backfill_make_vectors(indexer_backfill *f, backfill_page *p, lode_error *err) {
  lode_str texts[INDEXER_FILL_BATCH];
  size_t which[INDEXER_FILL_BATCH], n = 0;
  uint32_t dim = lode_embedder_info_of(f->embedder)->dimension;
  for (size_t i = 0; i < p->n; i++) {
    bool twin = p->needs[i].vector != NULL;
    for (size_t k = 0; k < n && !twin; k++) twin = strcmp(p->needs[which[k]].hash, p->needs[i].hash) == 0;
    if (twin) continue;
    which[n] = i;
    texts[n++] = p->needs[i].text;
  }
  if (n == 0) return LODE_OK;
  p->made = mem_calloc(n * (size_t)dim, sizeof *p->made);
  if (!p->made) return err_nomem(err);
  TRY(lode_embed(f->embedder, texts, n, p->made, err));
  for (size_t k = 0; k < n; k++)
    for (size_t i = which[k]; i < p->n; i++) {
      if (p->needs[i].vector || strcmp(p->needs[which[k]].hash, p->needs[i].hash) != 0) continue;
      p->needs[i].vector = p->made + k * dim;
      f->made++;
    }
  return LODE_OK;
}

static lode_status backfill_write_vectors(indexer_backfill *f, backfill_page *p, lode_error *err) {
  lode_record records[INDEXER_FILL_BATCH];
  size_t n = 0;
  uint32_t dim = p->dimension ? p->dimension : f->embedder ? lode_embedder_info_of(f->embedder)->dimension : 0;
  for (size_t i = 0; i < p->n; i++)
    if (p->needs[i].vector)
      records[n++] = (lode_record){.id = p->needs[i].id, .vector = p->needs[i].vector, .dimension = dim};
  return n ? lode_update(f->target, NULL, records, n, NULL, NULL, err) : LODE_OK;
}

static lode_status backfill_run_page(indexer_backfill *f, uint64_t after, uint64_t *next, lode_error *err) {
  backfill_page *p = mem_calloc(1, sizeof *p);
  lode_status st;
  if (!p) return err_nomem(err);
  mem_arena_init(&p->arena, 0);
  TRY_GOTO(backfill_read_needs(f, p, after, err));
  for (size_t from = 0; from < 2; from++) TRY_GOTO(backfill_copy_vectors(f, p, from, err));
  if (f->embedder) TRY_GOTO(backfill_make_vectors(f, p, err));
  TRY_GOTO(backfill_write_vectors(f, p, err));
  *next = p->next;
done:
  backfill_page_release(p);
  return st;
}

lode_status indexer_backfill_run(indexer_backfill *f, lode_error *err) {
  lode_stats stats;
  uint64_t after = 0;
  TRY(lode_collection_stats(f->target, &stats, err));
  for (uint64_t total = stats.pending; stats.pending;) {
    TRY(err_progress(f->progress, f->phase, f->made + f->reused, total, err));
    TRY(backfill_run_page(f, after, &after, err));
    if (!after) break;
  }
  return LODE_OK;
}

lode_status indexer_backfill_prepare(indexer_backfill *f, lode_error *err) {
  lode_get_request request = {.limit = INDEXER_FILL_PAGE};
  uint64_t have, want, done = 0;
  TRY(lode_count(f->target, &have, err));
  TRY(lode_count(f->code, &want, err));
  if (have == want) return LODE_OK;
  do {
    lode_result *rows = NULL;
    TRY(lode_get(f->code, &request, &rows, err));
    size_t n = lode_result_count(rows);
    lode_record *records = mem_calloc(n, sizeof *records);
    lode_status st = records ? LODE_OK : err_nomem(err);
    for (size_t i = 0; i < n && st == LODE_OK; i++) records[i].id = lode_result_at(rows, i)->id;
    if (st == LODE_OK && n) st = lode_add(f->target, NULL, records, n, LODE_KEEP_EXISTING, NULL, err);
    request.after = lode_result_next(rows);
    mem_free(records);
    lode_result_free(rows);
    if (st != LODE_OK) return st;
    done += n;
    TRY(err_progress(f->progress, f->phase, done, want, err));
  } while (request.after);
  return LODE_OK;
}
