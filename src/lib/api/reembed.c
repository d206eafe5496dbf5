/* SPDX-License-Identifier: Apache-2.0 */
/* reembed.c - lode_reembed(): other vectors for a whole collection, while it is in use.
 *
 * A second collection, NAME~reembed, is made of the same records with vectors of the new model. The first pass compares
 * all records with what an interrupted call may have left there. Each later pass looks at the records that changed
 * since the pass before it began (lode_row.cursor) and is shorter than that one. The last pass runs in the
 * transaction that also puts the new collection in the place of the old one, so nothing is missed.
 *
 * Invariants: the old collection is only read. After a pass, the new one has every record of the old one as it was when
 * the pass began. Records are written whole: document, metadata and vector of one record are of one moment.
 */
#include "api/sized.h"
#include "base/json.h"
#include "iface/iface.h"
#include "iface/iface_check.h"

enum {
  REEMBED_PAGE_ROWS = 256,  /* records that are read, embedded and committed together */
  REEMBED_FEW_CHANGES = 64, /* few enough to be embedded while other writers wait */
  REEMBED_MAX_PASSES = 16,  /* after these the rest is embedded in the last transaction, however much it is */
  REEMBED_MAX_SWITCHES = 8, /* attempts, each overtaken by a change of the collection's metadata */
};

typedef struct reembed_job {
  lode_store *store;
  lode_str name, aside; /* of the old and the new collection */
  lode_collection *old, *next;
  lode_reembed_request request;
  mem_arena arena; /* of everything that lasts for the whole call */
  size_t page_rows;
  uint64_t since; /* records that have not changed since this cursor are there; 0: nothing is known */
  uint64_t total;
  lode_reembed_report report;
  lode_txn *txn; /* of the last pass; else NULL */
  /* of one pass */
  uint64_t changed;   /* records written */
  uint64_t additions; /* of those: records that the new collection did not have */
  /* of one page */
  lode_record *records;
  lode_str *ids, *stale;
  size_t n, n_stale;
} reembed_job;

static bool reembed_same_text(lode_str a, lode_str b) { return (a.data == NULL) == (b.data == NULL) && str_eq(a, b); }

static lode_status reembed_by_ids(lode_collection *from, const lode_str *ids, size_t n, unsigned include,
                                  lode_result **rows, lode_error *err) {
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = include};
  return lode_get(from, &get, rows, err);
}

/* ---- One page ---- */

/* A record without a document cannot be embedded: its vector would be lost. */
static lode_status reembed_check_vectorless(reembed_job *j, const lode_result *page, lode_error *err) {
  lode_result *rows;
  size_t n = 0;
  char quoted[256];
  for (size_t i = 0; i < lode_result_count(page); i++)
    if (!lode_result_at(page, i)->document.data) j->ids[n++] = lode_result_at(page, i)->id;
  if (n == 0 || j->request.drop_vectors) return LODE_OK;
  TRY(reembed_by_ids(j->old, j->ids, n, LODE_VECTOR, &rows, err));
  lode_status st = LODE_OK;
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++)
    if (lode_result_at(rows, i)->vector)
      st = err_set(err, LODE_REFUSED,
                   "record %s has a vector and no document that could be embedded: it would lose its vector. Give it a "
                   "document, delete it, or accept the loss with drop_vectors (--drop-vectors)",
                   str_quote(lode_result_at(rows, i)->id, quoted, sizeof quoted));
  lode_result_free(rows);
  return st;
}

/* Lists the rows of the page that differ in the new collection, `rows`, which has them in the same order. A vector
 * that belongs to the same document is used again. */
static void reembed_list_differing(reembed_job *j, const lode_result *page, const lode_result *rows) {
  j->n = j->n_stale = 0;
  for (size_t i = 0, at = 0; i < lode_result_count(page); i++) {
    const lode_row *row = lode_result_at(page, i), *twin = lode_result_at(rows, at);
    if (twin && !str_eq(twin->id, row->id)) twin = NULL;
    at += twin != NULL;
    bool embedded = twin && reembed_same_text(twin->document, row->document) && (twin->vector || !row->document.data);
    if (embedded && !j->since) j->report.reused += twin->vector != NULL;
    if (embedded && reembed_same_text(twin->metadata, row->metadata)) continue;
    j->records[j->n++] = (lode_record){.id = row->id,
                                       .document = row->document,
                                       .metadata = row->metadata,
                                       .vector = embedded ? twin->vector : NULL,
                                       .dimension = embedded ? twin->dimension : 0};
    if (twin) j->stale[j->n_stale++] = row->id;
  }
}

static lode_status reembed_write(reembed_job *j, lode_txn *txn, lode_error *err) {
  lode_selection old = {.ids = j->stale, .n_ids = j->n_stale};
  if (j->n_stale) TRY(lode_delete(j->next, txn, &old, NULL, err));
  return lode_add(j->next, txn, j->records, j->n, LODE_KEEP_EXISTING, NULL, err);
}

/* Makes the missing vectors of the listed records, and writes them. */
static lode_status reembed_write_listed(reembed_job *j, lode_error *err) {
  float *vectors = NULL;
  uint64_t missing = 0;
  if (j->n == 0) return LODE_OK;
  for (size_t i = 0; i < j->n; i++) missing += j->records[i].document.data && !j->records[i].vector;
  TRY(lode_embed_records(j->request.embedder, j->records, j->n, &vectors, err));
  lode_txn *txn = j->txn;
  lode_status st = txn ? LODE_OK : lode_begin(j->store, &txn, err);
  if (st == LODE_OK) st = reembed_write(j, txn, err);
  if (!j->txn && st == LODE_OK) {
    st = lode_commit(txn, err);
  } else if (!j->txn && txn) {
    lode_rollback(txn);
  }
  lode_vectors_free(vectors);
  if (st != LODE_OK) return st;
  j->changed += j->n;
  j->additions += j->n - j->n_stale;
  j->report.embedded += missing;
  return LODE_OK;
}

/* Brings rows of the old collection, with documents and metadata, over. */
static lode_status reembed_page(reembed_job *j, const lode_result *page, lode_error *err) {
  lode_result *rows;
  size_t n = lode_result_count(page);
  TRY(reembed_check_vectorless(j, page, err));
  for (size_t i = 0; i < n; i++) j->ids[i] = lode_result_at(page, i)->id;
  TRY(reembed_by_ids(j->next, j->ids, n, LODE_ALL, &rows, err));
  reembed_list_differing(j, page, rows);
  lode_status st = reembed_write_listed(j, err);
  lode_result_free(rows);
  return st;
}

/* The same for those of the rows, ids only, that have changed since the last pass. */
static lode_status reembed_changed(reembed_job *j, const lode_result *page, lode_error *err) {
  lode_result *rows;
  size_t n = 0;
  for (size_t i = 0; i < lode_result_count(page); i++)
    if (lode_result_at(page, i)->cursor > j->since) j->ids[n++] = lode_result_at(page, i)->id;
  if (n == 0) return LODE_OK;
  TRY(reembed_by_ids(j->old, j->ids, n, LODE_DOCUMENT | LODE_METADATA, &rows, err));
  lode_status st = reembed_page(j, rows, err);
  lode_result_free(rows);
  return st;
}

/* ---- One pass ---- */

/* Deletes records of the new collection that the old one does not have. */
static lode_status reembed_delete_extra(reembed_job *j, lode_error *err) {
  lode_get_request get = {.limit = j->page_rows};
  do {
    lode_result *page, *rows = NULL;
    lode_status st;
    size_t n = 0;
    TRY(lode_get(j->next, &get, &page, err));
    for (size_t i = 0; i < lode_result_count(page); i++) j->ids[i] = lode_result_at(page, i)->id;
    TRY_GOTO(reembed_by_ids(j->old, j->ids, lode_result_count(page), 0, &rows, err));
    for (size_t i = 0, at = 0; i < lode_result_count(page); i++) {
      const lode_row *row = lode_result_at(rows, at);
      if (row && str_eq(row->id, j->ids[i]))
        at++;
      else
        j->stale[n++] = j->ids[i];
    }
    if (n) TRY_GOTO(lode_delete(j->next, j->txn, &(lode_selection){.ids = j->stale, .n_ids = n}, NULL, err));
    get.after = lode_result_next(page);
  done:
    lode_result_free(page);
    lode_result_free(rows);
    TRY(st);
  } while (get.after);
  return LODE_OK;
}

/* Reads do not see what the txn has written. */
static lode_status reembed_match_counts(reembed_job *j, lode_error *err) {
  uint64_t old_records, new_records;
  TRY(lode_count(j->old, &old_records, err));
  TRY(lode_count(j->next, &new_records, err));
  if (j->txn) new_records += j->additions;
  return old_records == new_records ? LODE_OK : reembed_delete_extra(j, err);
}

static lode_status reembed_report_progress(reembed_job *j, uint64_t done, lode_error *err) {
  lode_progress p = j->request.progress;
  if (done > j->total) j->total = done;
  if (!p.step || p.step(p.ctx, "embed", done, j->total)) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "cancelled; the collection is as it was, and starting again resumes the work");
}

static lode_status reembed_pass(reembed_job *j, lode_error *err) {
  lode_get_request get = {.include = j->since ? 0 : LODE_DOCUMENT | LODE_METADATA};
  uint64_t began = 0, done = 0;
  j->changed = j->additions = 0;
  do {
    lode_result *page;
    get.limit = j->page_rows;
    lode_status st = lode_get(j->old, &get, &page, err);
    if (st == LODE_OK) {
      if (!began) began = lode_result_moment(page);
      st = j->since ? reembed_changed(j, page, err) : reembed_page(j, page, err);
      if (st == LODE_OK) {
        get.after = lode_result_next(page);
        done += lode_result_count(page);
      }
      lode_result_free(page);
    }
    if (st == LODE_LIMIT && j->page_rows > 1) { /* large documents: fewer at a time */
      j->page_rows /= 4;
      continue;
    }
    TRY(st);
    if (!j->since) TRY(reembed_report_progress(j, done, err));
  } while (get.after);
  TRY(reembed_match_counts(j, err));
  j->since = began;
  return LODE_OK;
}

/* ---- The collections ---- */

/* *info and *aside: of the two collections, with strings in the list; NULL if there is none. */
static lode_status reembed_describe(const reembed_job *j, lode_collection_list **list,
                                    const lode_collection_info **info, const lode_collection_info **aside,
                                    lode_error *err) {
  char quoted[256];
  *info = *aside = NULL;
  TRY(lode_collections(j->store, list, err));
  for (size_t i = 0; i < lode_collection_list_count(*list); i++) {
    const lode_collection_info *each = lode_collection_list_at(*list, i);
    if (str_eq(each->name, j->name)) *info = each;
    if (str_eq(each->name, j->aside)) *aside = each;
  }
  if (*info) return LODE_OK;
  lode_collection_list_free(*list);
  *list = NULL;
  return err_set(err, LODE_NOT_FOUND, "there is no collection %s; `lode db collections` lists them",
                 str_quote(j->name, quoted, sizeof quoted));
}

/* The keys of the collection's counters: facets whose values are JSON strings. */
static lode_status reembed_read_counters(reembed_job *j, lode_str **keys, size_t *n, lode_error *err) {
  lode_facet_list *list;
  json_doc json = {0};
  TRY(lode_counters(j->old, (lode_str){0}, &list, err));
  lode_status st = LODE_OK;
  *n = lode_facet_list_count(list);
  *keys = mem_arena_alloc(&j->arena, (*n + 1) * sizeof **keys);
  if (!*keys) st = err_nomem(err);
  for (size_t i = 0; i < *n && st == LODE_OK; i++) {
    lode_str value = lode_facet_list_at(list, i)->value;
    st = json_parse(&json, value, NULL, err);
    if (st != LODE_OK) break;
    if (json.nodes[0].type == JSON_NODE_STRING) value = json.nodes[0].u.s;
    (*keys)[i] = (lode_str){mem_arena_copy(&j->arena, value.data, value.len), value.len};
    if (!(*keys)[i].data) st = err_nomem(err);
  }
  json_release(&json);
  lode_facet_list_free(list);
  return st;
}

static lode_status reembed_open_aside(reembed_job *j, const lode_collection_info *info, lode_error *err) {
  const lode_embedder_info *model = lode_embedder_info_of(j->request.embedder);
  lode_collection_options options = {.create = true,
                                     .metric = info->metric,
                                     .metadata = info->metadata,
                                     .embedder = model->identity,
                                     .embedder_dim = model->dimension};
  lode_str *keys;
  TRY(reembed_read_counters(j, &keys, &options.n_counters, err));
  options.counters = keys;
  return lode_collection_open(j->store, j->aside, &options, &j->next, err);
}

/* Opens both collections. *done: the vectors are of that model already. */
static lode_status reembed_open(reembed_job *j, bool *done, lode_error *err) {
  const lode_embedder_info *model = lode_embedder_info_of(j->request.embedder);
  const lode_collection_info *info, *aside;
  lode_collection_list *list = NULL;
  lode_status st;
  TRY(reembed_describe(j, &list, &info, &aside, err));
  *done = info->embedder.data && str_eq(info->embedder, model->identity);
  j->total = j->report.records = info->records;
  if (aside && (*done || !aside->embedder.data || !str_eq(aside->embedder, model->identity)))
    TRY_GOTO(lode_collection_drop(j->store, j->aside, err));
  TRY_GOTO(lode_collection_open(j->store, j->name, NULL, &j->old, err));
  if (!*done) TRY_GOTO(reembed_open_aside(j, info, err));
  st = LODE_OK;
done:
  lode_collection_list_free(list);
  return st;
}

/* Gives the new collection the user metadata of the old one; *same: it had it. */
static lode_status reembed_match_metadata(const reembed_job *j, bool *same, lode_error *err) {
  const lode_collection_info *info, *aside;
  lode_collection_list *list = NULL;
  TRY(reembed_describe(j, &list, &info, &aside, err));
  *same = aside && reembed_same_text(info->metadata, aside->metadata);
  lode_status st = LODE_OK;
  if (!aside)
    st = err_set(err, LODE_GONE, "the collection that was being made aside is gone: somebody dropped it; start again");
  else if (!*same && !j->txn)
    st = lode_collection_set_metadata(j->store, j->aside, info->metadata.data ? info->metadata : str_of("{}"), err);
  lode_collection_list_free(list);
  return st;
}

/* ---- The whole ---- */

/* *done is false when the collection's metadata changed before the transaction began. */
static lode_status reembed_try_switch(reembed_job *j, bool *done, lode_error *err) {
  bool same;
  *done = false;
  TRY(reembed_match_metadata(j, &same, err));
  TRY(lode_begin(j->store, &j->txn, err));
  lode_status st = reembed_match_metadata(j, done, err);
  if (st == LODE_OK && *done) st = reembed_pass(j, err);
  if (st == LODE_OK && *done) st = j->store->engine->collection_succeed(j->txn, j->name, j->aside, err);
  lode_txn *txn = j->txn;
  j->txn = NULL;
  if (st == LODE_OK && *done) return lode_commit(txn, err);
  lode_rollback(txn);
  return st;
}

static lode_status reembed_run(reembed_job *j, lode_error *err) {
  bool done = false;
  TRY(reembed_open(j, &done, err));
  for (unsigned pass = 1; !done && pass <= REEMBED_MAX_PASSES; pass++) {
    TRY(reembed_pass(j, err));
    if (j->changed <= REEMBED_FEW_CHANGES) break;
  }
  for (unsigned i = 1; !done && i <= REEMBED_MAX_SWITCHES; i++) TRY(reembed_try_switch(j, &done, err));
  if (!done)
    return err_set(err, LODE_BUSY, "the collection's metadata changes all the time: start again to resume the work");
  /* From here on nothing fails: the collection has the new vectors. */
  lode_stats stats;
  if (lode_collection_stats(j->old, &stats, NULL) == LODE_OK) {
    j->report.records = stats.records;
    j->report.without_vector = stats.pending;
  }
  return LODE_OK;
}

/* Has another call with the same model put the new vectors in place? */
static bool reembed_was_done(const reembed_job *j) {
  const lode_collection_info *info, *aside;
  lode_collection_list *list = NULL;
  if (reembed_describe(j, &list, &info, &aside, NULL) != LODE_OK) return false;
  bool done = info->embedder.data && str_eq(info->embedder, lode_embedder_info_of(j->request.embedder)->identity);
  lode_collection_list_free(list);
  return done;
}

static lode_status reembed_begin(reembed_job *j, lode_error *err) {
  static const char suffix[] = "~reembed";
  mem_arena_init(&j->arena, 0);
  j->page_rows = REEMBED_PAGE_ROWS;
  TRY(iface_check_name(j->name, "the name of the collection", err));
  char *aside = mem_arena_alloc(&j->arena, j->name.len + sizeof suffix);
  j->records = mem_arena_alloc(&j->arena, REEMBED_PAGE_ROWS * sizeof *j->records);
  j->ids = mem_arena_alloc(&j->arena, REEMBED_PAGE_ROWS * sizeof *j->ids);
  j->stale = mem_arena_alloc(&j->arena, REEMBED_PAGE_ROWS * sizeof *j->stale);
  if (!aside || !j->records || !j->ids || !j->stale) return err_nomem(err);
  memcpy(aside, j->name.data, j->name.len);
  memcpy(aside + j->name.len, suffix, sizeof suffix);
  j->aside = (lode_str){aside, j->name.len + sizeof suffix - 1};
  return LODE_OK;
}

lode_status lode_reembed_sized(lode_store *store, lode_str name, const lode_reembed_request *request,
                               size_t request_size, lode_reembed_report *report, size_t report_size, lode_error *err) {
  static const lode_reembed_report none;
  reembed_job j = {.store = store, .name = name};
  err_clear(err);
  if (report) {
    TRY(api_check_size(report_size, "lode_reembed_report", err));
    api_give(report, report_size, &none, sizeof none);
  }
  API_REQUIRE(store, err);
  API_REQUIRE(request, err);
  TRY(API_TAKE(&j.request, request, request_size, lode_reembed_request, err));
  if (!j.request.embedder) return err_set(err, LODE_INVALID, "embedder is NULL: it is required");
  if (!store->engine->collection_succeed)
    return err_set(err, LODE_UNSUPPORTED,
                   "a cluster cannot change the model of a collection in one step: copy it into a new collection");
  lode_status st = reembed_begin(&j, err);
  if (st == LODE_OK) st = reembed_run(&j, err);
  if ((st == LODE_NOT_FOUND || st == LODE_GONE) && j.next && reembed_was_done(&j)) {
    err_clear(err);
    st = LODE_OK;
  }
  if (st == LODE_OK) api_give(report, report_size, &j.report, sizeof j.report);
  lode_collection_close(j.old);
  lode_collection_close(j.next);
  mem_arena_release(&j.arena);
  return st;
}
