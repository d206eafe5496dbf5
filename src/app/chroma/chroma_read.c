/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_read.c - get, query and count of Chroma's API. See chroma.h.
 *
 * Replies are columns: ids, documents, ... They grow in parallel while rows are read page by page, and are joined at
 * the end, so the memory used is that of the reply, which is bounded.
 */
#include "chroma/chroma.h"

enum { CHROMA_PAGE_ROWS = 1000, CHROMA_READ_ATTEMPTS = 4 };
enum { INCLUDE_DISTANCES = 1, INCLUDE_DOCUMENTS = 2, INCLUDE_EMBEDDINGS = 4, INCLUDE_METADATAS = 8, INCLUDE_URIS = 16 };

static const char *const include_names[] = {"distances", "documents", "embeddings", "metadatas", "uris"};

typedef struct chroma_reply {
  chroma_request *c;
  unsigned include;
  strbuf ids, documents, embeddings, metadatas, uris, distances;
  json_doc metadata; /* of the current row */
  size_t rows;       /* rows in the current list */
  size_t page_rows;
  uint64_t snapshot; /* commit that the pages show */
  size_t pages;      /* number of pages */
  bool again;        /* a page showed another commit: read again */
} chroma_reply;

static void reply_release(chroma_reply *a) {
  strbuf *all[] = {&a->ids, &a->documents, &a->embeddings, &a->metadatas, &a->uris, &a->distances};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) strbuf_release(all[i]);
  json_release(&a->metadata);
}

static bool reply_read_include(chroma_request *c, unsigned fallback, unsigned *include) {
  uint32_t node = chroma_body_key(c, 0, "include");
  *include = fallback;
  if (!node) return true;
  if (chroma_body_node(c, node)->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "include must be a list");
  *include = 0;
  for (uint32_t i = node + 1; i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i)->next) {
    const json_node *x = chroma_body_node(c, i);
    size_t at = 0;
    if (x->type != JSON_NODE_STRING) return chroma_invalid(c, "include must be a list of strings");
    while (at < 5 && !(x->type == JSON_NODE_STRING && str_eq(x->u.s, str_of(include_names[at])))) at++;
    if (at == 5) return chroma_bad_shape(c, "include knows distances, documents, embeddings, metadatas and uris");
    *include |= 1u << at;
  }
  return true;
}

static unsigned reply_parts(unsigned include) {
  return (include & INCLUDE_DOCUMENTS ? LODE_DOCUMENT : 0) |
         (include & (INCLUDE_METADATAS | INCLUDE_URIS) ? LODE_METADATA : 0) |
         (include & INCLUDE_EMBEDDINGS ? LODE_VECTOR : 0);
}

/* ---- Rows ---- */

static void reply_put_vector(strbuf *out, const lode_row *row) {
  if (row->vector)
    json_put_vector(out, row->vector, row->dimension);
  else
    strbuf_addstr(out, "null");
}

static void reply_put_text(strbuf *out, lode_str text) {
  if (text.data)
    json_put_string(out, text);
  else
    strbuf_addstr(out, "null");
}

/* Metadata without the uri, which has a column of its own. */
static lode_status reply_put_metadata(chroma_reply *a, lode_str text, lode_error *err) {
  const char uri[] = "\"" RESCUE_LAYOUT_URI "\"";
  json_doc *json = &a->metadata;
  bool first = true;
  if (!text.data || !memmem(text.data, text.len, uri, sizeof uri - 1)) {
    if (a->include & INCLUDE_METADATAS)
      text.data ? strbuf_add(&a->metadatas, text.data, text.len) : strbuf_addstr(&a->metadatas, "null");
    if (a->include & INCLUDE_URIS) strbuf_addstr(&a->uris, "null");
    return LODE_OK;
  }
  TRY(json_parse(json, text, NULL, err));
  uint32_t own = json_get(json, 0, STR_LIT(RESCUE_LAYOUT_URI));
  if (a->include & INCLUDE_URIS) own ? json_put_node(&a->uris, json, own) : strbuf_addstr(&a->uris, "null");
  if (!(a->include & INCLUDE_METADATAS)) return LODE_OK;
  strbuf_addch(&a->metadatas, '{');
  for (uint32_t i = 1; i < json->nodes[0].next; i = json->nodes[i + 1].next) {
    if (i + 1 == own) continue;
    if (!first) strbuf_addch(&a->metadatas, ',');
    json_put_node(&a->metadatas, json, i);
    strbuf_addch(&a->metadatas, ':');
    json_put_node(&a->metadatas, json, i + 1);
    first = false;
  }
  strbuf_addch(&a->metadatas, '}');
  return LODE_OK;
}

static strbuf *reply_column(chroma_reply *a, unsigned bit) {
  switch (bit) {
    case INCLUDE_DISTANCES: return &a->distances;
    case INCLUDE_DOCUMENTS: return &a->documents;
    case INCLUDE_EMBEDDINGS: return &a->embeddings;
    case INCLUDE_METADATAS: return &a->metadatas;
    default: return &a->uris;
  }
}

/* Appends to every column of the reply. */
static void reply_put_all(chroma_reply *a, const char *text) {
  strbuf_addstr(&a->ids, text);
  for (unsigned bit = 1; bit <= INCLUDE_URIS; bit <<= 1)
    if (a->include & bit) strbuf_addstr(reply_column(a, bit), text);
}

static void reply_clear_all(chroma_reply *a) {
  a->ids.len = 0;
  for (unsigned bit = 1; bit <= INCLUDE_URIS; bit <<= 1) reply_column(a, bit)->len = 0;
}

static size_t reply_size(const chroma_reply *a) {
  return a->ids.len + a->documents.len + a->embeddings.len + a->metadatas.len + a->uris.len + a->distances.len;
}

static lode_status reply_put_row(chroma_reply *a, const lode_row *row, lode_error *err) {
  if (a->rows++) reply_put_all(a, ",");
  json_put_string(&a->ids, row->id);
  if (a->include & INCLUDE_DISTANCES) json_put_float(&a->distances, (float)row->distance);
  if (a->include & INCLUDE_DOCUMENTS) reply_put_text(&a->documents, row->document);
  if (a->include & INCLUDE_EMBEDDINGS) reply_put_vector(&a->embeddings, row);
  if (reply_size(a) > WORKER_MAX_REPLY_BYTES)
    return err_set(err, LODE_LIMIT, "the answer is larger than %d MiB: use limit and offset",
                   WORKER_MAX_REPLY_BYTES >> 20);
  return a->include & (INCLUDE_METADATAS | INCLUDE_URIS) ? reply_put_metadata(a, row->metadata, err) : LODE_OK;
}

static void reply_put_column(chroma_reply *a, const char *name, unsigned bit) {
  strbuf *out = &a->c->task->out, *values = reply_column(a, bit);
  strbuf_addf(out, ",\"%s\":", name);
  if (a->include & bit)
    strbuf_add(out, values->data, values->len);
  else
    strbuf_addstr(out, "null");
  out->failed = out->failed || values->failed;
}

/* Joins the columns to one object. `fallback`: the echoed include if the request had none. */
static bool reply_finish(chroma_reply *a, bool query, const char *fallback) {
  strbuf *out = &a->c->task->out;
  uint32_t include = chroma_body_key(a->c, 0, "include");
  strbuf_addstr(out, "{\"ids\":");
  strbuf_add(out, a->ids.data, a->ids.len);
  reply_put_column(a, "embeddings", INCLUDE_EMBEDDINGS);
  reply_put_column(a, "documents", INCLUDE_DOCUMENTS);
  reply_put_column(a, "uris", INCLUDE_URIS);
  reply_put_column(a, "metadatas", INCLUDE_METADATAS);
  if (query) reply_put_column(a, "distances", INCLUDE_DISTANCES);
  strbuf_addstr(out, ",\"include\":");
  if (include)
    json_put_node(out, &a->c->json, include);
  else
    strbuf_addstr(out, fallback);
  strbuf_addch(out, '}');
  if (!out->failed && !a->ids.failed) return true;
  return chroma_respond_status(a->c, err_nomem(&a->c->err));
}

/* ---- get ---- */

typedef struct row_place {
  uint64_t position;
  lode_str id;
  const lode_row *row;
} row_place;

static int row_place_cmp(const void *a, const void *b) {
  const row_place *x = a, *y = b;
  return x->position < y->position ? -1 : x->position > y->position;
}

/* The rows in insertion order, without duplicates. */
static lode_status reply_order_rows(chroma_request *c, const lode_result *rows, row_place **out, size_t *kept) {
  size_t n = lode_result_count(rows);
  row_place *places = *out = mem_arena_alloc(&c->arena, (n + 1) * sizeof *places);
  *kept = 0;
  if (!places) return err_nomem(&c->err);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, i);
    places[i] = (row_place){row->position, row->id, row};
  }
  qsort(places, n, sizeof *places, row_place_cmp);
  for (size_t i = 0; i < n; i++)
    if (*kept == 0 || !str_eq(places[i].id, places[*kept - 1].id)) places[(*kept)++] = places[i];
  return LODE_OK;
}

/* Replaces the selection by the ids that exist and match, in insertion order, without duplicates. */
static lode_status reply_order_ids(chroma_request *c, lode_collection *collection, lode_selection *select,
                                   lode_result **rows) {
  lode_get_request request = {.select = *select, .progress = worker_task_cancel_hook(c->task)};
  row_place *places;
  size_t kept;
  TRY(lode_get(collection, &request, rows, &c->err));
  TRY(reply_order_rows(c, *rows, &places, &kept));
  lode_str *ids = mem_arena_alloc(&c->arena, (kept + 1) * sizeof *ids);
  if (!ids) return err_nomem(&c->err);
  for (size_t i = 0; i < kept; i++) ids[i] = places[i].id;
  *select = (lode_selection){.ids = ids, .n_ids = kept};
  return LODE_OK;
}

/* In one call, which needs memory for all matches. */
static lode_status chroma_get_ids_at_once(chroma_reply *a, lode_collection *collection, lode_get_request *request,
                                          uint64_t limit) {
  chroma_request *c = a->c;
  lode_result *rows = NULL;
  row_place *places;
  size_t n, at = request->offset;
  request->offset = 0;
  lode_status st = lode_get(collection, request, &rows, &c->err);
  if (st == LODE_OK) st = reply_order_rows(c, rows, &places, &n);
  for (; st == LODE_OK && at < n && limit; at++, limit--) st = reply_put_row(a, places[at].row, &c->err);
  lode_result_free(rows);
  return st;
}

/* All pages must show the same commit; sets a->again if this one shows another than the first. */
static lode_status reply_put_page(chroma_reply *a, const lode_result *result, lode_error *err) {
  uint64_t snapshot = lode_result_moment(result);
  if (a->pages++ == 0) a->snapshot = snapshot;
  if (a->snapshot != snapshot) {
    a->again = true;
    return LODE_OK;
  }
  for (size_t i = 0; i < lode_result_count(result); i++) TRY(reply_put_row(a, lode_result_at(result, i), err));
  return LODE_OK;
}

static lode_status chroma_get_by_ids(chroma_reply *a, lode_collection *collection, lode_get_request *request,
                                     uint64_t limit) {
  chroma_request *c = a->c;
  lode_result *places = NULL;
  lode_status st;
  if (a->page_rows == SIZE_MAX) return chroma_get_ids_at_once(a, collection, request, limit);
  if (request->select.n_ids > 1) TRY_GOTO(reply_order_ids(c, collection, &request->select, &places));
  const lode_str *ids = request->select.ids;
  size_t n = request->select.n_ids, at = request->offset;
  if (limit < n && at < n - limit) n = at + (size_t)limit;
  request->offset = 0;
  if (places) a->snapshot = lode_result_moment(places), a->pages = 1;
  for (st = LODE_OK; st == LODE_OK && at < n && !a->again; at += request->select.n_ids) {
    lode_result *result = NULL;
    request->select.ids = ids + at;
    request->select.n_ids = n - at < a->page_rows ? n - at : a->page_rows;
    st = lode_get(collection, request, &result, &c->err);
    if (st == LODE_OK) st = reply_put_page(a, result, &c->err);
    lode_result_free(result);
  }
done:
  lode_result_free(places);
  return st;
}

static lode_status chroma_get_by_filter(chroma_reply *a, lode_collection *collection, lode_get_request *request,
                                        uint64_t left) {
  lode_status st = LODE_OK;
  while (st == LODE_OK && left && !a->again) {
    lode_result *result = NULL;
    request->limit = left < a->page_rows ? (size_t)left : a->page_rows;
    st = lode_get(collection, request, &result, &a->c->err);
    if (st == LODE_OK) st = reply_put_page(a, result, &a->c->err);
    left -= lode_result_count(result);
    request->after = lode_result_next(result);
    request->offset = 0;
    lode_result_free(result);
    if (!request->after) break;
  }
  return st;
}

/* The cost is that of all records, or of the limit: even a filter may have to read them. */
static bool chroma_get_deferred(chroma_request *c, const worker_handle *handle, const lode_selection *select,
                                uint64_t limit) {
  uint64_t rows = select->ids && select->n_ids < limit ? select->n_ids : limit;
  /* if the count fails, the read will report it */
  if (rows > WORKER_LARGE_READ_ROWS && !select->ids && lode_count(handle->collection, &rows, &c->err) != LODE_OK)
    return false;
  return worker_task_defer(c->task, rows < limit ? rows : limit);
}

/* Reads page by page, which needs little memory; if others commit all the time, the last attempt reads all at once. */
static lode_status chroma_get_all(chroma_reply *a, lode_collection *collection, const lode_get_request *request,
                                  uint64_t limit) {
  lode_status st = LODE_OK;
  a->again = true;
  for (int attempt = 1; st == LODE_OK && a->again; attempt++) {
    lode_get_request copy = *request;
    a->again = false;
    a->pages = 0;
    a->rows = 0;
    a->page_rows = attempt < CHROMA_READ_ATTEMPTS ? CHROMA_PAGE_ROWS : SIZE_MAX;
    reply_clear_all(a);
    reply_put_all(a, "[");
    st = copy.select.ids ? chroma_get_by_ids(a, collection, &copy, limit)
                         : chroma_get_by_filter(a, collection, &copy, limit);
    reply_put_all(a, "]");
  }
  return st;
}

bool chroma_do_get(chroma_request *c) {
  chroma_reply a = {.c = c};
  lode_get_request request = {.progress = worker_task_cancel_hook(c->task)};
  uint64_t limit, offset;
  worker_handle *handle;
  if (!chroma_body_count(c, "limit", UINT64_MAX, &limit) || !chroma_body_count(c, "offset", 0, &offset) ||
      !reply_read_include(c, INCLUDE_DOCUMENTS | INCLUDE_METADATAS, &a.include) ||
      !chroma_body_selection(c, &request.select) || !chroma_coll_acquire(c, &handle))
    return false;
  if (chroma_get_deferred(c, handle, &request.select, limit)) {
    chroma_coll_release(c, handle, LODE_OK);
    return false;
  }
  a.include &= ~(unsigned)INCLUDE_DISTANCES;
  request.include = reply_parts(a.include);
  request.offset = (size_t)offset;
  lode_status st = chroma_get_all(&a, handle->collection, &request, limit);
  chroma_coll_release(c, handle, st);
  bool ok = st == LODE_OK          ? reply_finish(&a, false, "[\"documents\",\"metadatas\"]")
            : st == LODE_NOT_FOUND ? chroma_no_collection(c)
                                   : chroma_respond_status(c, st);
  reply_release(&a);
  return ok;
}

/* ---- query ---- */

static bool chroma_read_queries(chroma_request *c, lode_query_request *request) {
  uint32_t node = chroma_body_key(c, 0, "query_embeddings");
  const json_node *list = chroma_body_node(c, node);
  size_t size, at = 0;
  if (!node || list->type != JSON_NODE_ARRAY)
    return chroma_bad_shape(c, "query_embeddings must be a list of lists of numbers");
  if (list->u.count == 0) return true; /* no queries, no answers */
  const json_node *first = chroma_body_node(c, node + 1);
  request->n = list->u.count;
  if (first->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "query_embeddings must be a list of lists of numbers");
  if (first->u.count == 0 || first->u.count > LODE_MAX_DIMENSION)
    return chroma_invalid(c, "a query embedding has %zu numbers: 1 to %d are allowed", first->u.count,
                          LODE_MAX_DIMENSION);
  request->dimension = (uint32_t)first->u.count;
  float *out =
      mem_mul_overflow(request->n, first->u.count * sizeof *out, &size) ? NULL : mem_arena_alloc(&c->arena, size);
  if (!out) return chroma_respond_status(c, err_nomem(&c->err));
  request->vectors = out;
  for (uint32_t i = node + 1; i < list->next; i = chroma_body_node(c, i)->next, at++) {
    const json_node *x = chroma_body_node(c, i);
    if (x->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "query_embeddings must be a list of lists of numbers");
    if (x->u.count != request->dimension)
      return chroma_invalid(c, "query embeddings have %u and %zu numbers: they must be alike", request->dimension,
                            x->u.count);
    if (!chroma_body_floats(c, i, out + at * request->dimension)) return false;
  }
  return true;
}

/* Rows come query by query: writes one list per query, even without rows. */
static lode_status reply_put_hits(chroma_reply *a, const lode_result *result, size_t queries, lode_error *err) {
  size_t at = 0, n = result ? lode_result_count(result) : 0;
  for (size_t q = 0; q < queries; q++) {
    reply_put_all(a, q ? ",[" : "[");
    a->rows = 0;
    for (; at < n && lode_result_at(result, at)->query == q; at++)
      TRY(reply_put_row(a, lode_result_at(result, at), err));
    reply_put_all(a, "]");
  }
  return LODE_OK;
}

bool chroma_do_query(chroma_request *c) {
  chroma_reply a = {.c = c};
  lode_query_request request = {.mode = LODE_BY_VECTOR, .progress = worker_task_cancel_hook(c->task)};
  uint64_t k;
  worker_handle *handle;
  lode_result *result = NULL;
  lode_status st = LODE_OK;
  if (!chroma_body_count(c, "n_results", 10, &k) ||
      !reply_read_include(c, INCLUDE_DOCUMENTS | INCLUDE_METADATAS | INCLUDE_DISTANCES, &a.include) ||
      !chroma_read_queries(c, &request) || !chroma_body_selection(c, &request.select))
    return false;
  if (request.n && k > CHROMA_MAX_HITS / request.n)
    return chroma_invalid(c, "%zu queries with %llu results each: %d results in all are the most", request.n,
                          (unsigned long long)k, CHROMA_MAX_HITS);
  if (worker_task_defer(c->task, k * request.n) || !chroma_coll_acquire(c, &handle)) return false;
  request.k = (size_t)k;
  request.include = reply_parts(a.include);
  if (k && request.n) st = lode_query(handle->collection, &request, &result, &c->err);
  reply_put_all(&a, "[");
  if (st == LODE_OK) st = reply_put_hits(&a, result, request.n, &c->err);
  reply_put_all(&a, "]");
  lode_result_free(result);
  chroma_coll_release(c, handle, st);
  bool ok = st == LODE_OK          ? reply_finish(&a, true, "[\"documents\",\"metadatas\",\"distances\"]")
            : st == LODE_NOT_FOUND ? chroma_no_collection(c)
                                   : chroma_respond_status(c, st);
  reply_release(&a);
  return ok;
}

/* ---- count ---- */

/* All of them mean the same here: every record is counted. */
static bool chroma_check_read_level(chroma_request *c) {
  lode_str level = c->task->words[3];
  return level.len == 0 || chroma_is_read_level(level) || chroma_invalid(c, "read_level must be " CHROMA_READ_LEVELS);
}

bool chroma_do_count(chroma_request *c) {
  worker_handle *handle;
  uint64_t n;
  if (!chroma_check_read_level(c)) return false;
  if (!chroma_coll_acquire(c, &handle)) return false;
  lode_status st = lode_count(handle->collection, &n, &c->err);
  chroma_coll_release(c, handle, st);
  if (st == LODE_NOT_FOUND) return chroma_no_collection(c);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  strbuf_addf(&c->task->out, "%llu", (unsigned long long)n);
  return true;
}

/* Queries see every record, indexed or not: this only reports the progress of background work. */
bool chroma_do_indexing_status(chroma_request *c) {
  worker_handle *handle;
  lode_stats stats;
  if (!chroma_coll_acquire(c, &handle)) return false;
  lode_status st = lode_collection_stats(handle->collection, &stats, &c->err);
  chroma_coll_release(c, handle, st);
  if (st == LODE_NOT_FOUND) return chroma_no_collection(c);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  uint64_t left = stats.unindexed > stats.untexted ? stats.unindexed : stats.untexted;
  if (left > stats.records) left = stats.records; /* deleted records wait to be taken out of the index, too */
  strbuf_addf(&c->task->out,
              "{\"op_indexing_progress\":%.4f,\"num_unindexed_ops\":%llu,\"num_indexed_ops\":%llu,\"total_ops\":%llu}",
              stats.records ? (double)(stats.records - left) / (double)stats.records : 1.0, (unsigned long long)left,
              (unsigned long long)(stats.records - left), (unsigned long long)stats.records);
  return true;
}
