/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_write.c - add, update, upsert and delete of Chroma's API. See chroma.h.
 *
 * The lists of the body become records whose strings point into it. Small writes share a commit with those of other
 * callers (shared_stores.h); large ones have their own, so that they do not delay the small ones more than necessary.
 */
#include "chroma/base64.h"
#include "chroma/chroma.h"

#include <float.h>
#include <math.h>

enum { CHROMA_SMALL_WRITE = 512 };

typedef struct chroma_batch {
  lode_import_mode mode;
  lode_collection *collection;
  lode_record *records;
  size_t n;
} chroma_batch;

/* ---- Vectors ---- */

static float *chroma_alloc_floats(chroma_request *c, size_t n) { return mem_arena_alloc(&c->arena, n * sizeof(float)); }

static bool chroma_read_base64(chroma_request *c, lode_str text, lode_record *record) {
  size_t n = chroma_base64_floats(text);
  if (n == SIZE_MAX || n > LODE_MAX_DIMENSION)
    return chroma_bad_shape(c, "an embedding is not base64 of 32-bit floats");
  float *out = chroma_alloc_floats(c, n);
  if (!out) return chroma_respond_status(c, err_nomem(&c->err));
  if (!chroma_base64_decode(text, out)) return chroma_bad_shape(c, "an embedding is not base64 of 32-bit floats");
  record->vector = out;
  record->dimension = (uint32_t)n;
  return true;
}

bool chroma_body_floats(chroma_request *c, uint32_t node, float *out) {
  size_t n = 0;
  for (uint32_t i = node + 1; i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i)->next) {
    const json_node *x = chroma_body_node(c, i);
    double d = x->type == JSON_NODE_INT ? (double)x->u.i : x->type == JSON_NODE_DOUBLE ? x->u.d : NAN;
    if (isnan(d)) return chroma_bad_shape(c, "an embedding holds something that is not a number");
    if (fabs(d) > FLT_MAX) return chroma_invalid(c, "an embedding holds a number that does not fit a 32-bit float");
    out[n++] = (float)d;
  }
  return true;
}

static bool chroma_read_vector(chroma_request *c, uint32_t node, bool may_lack, lode_record *record) {
  const json_node *x = chroma_body_node(c, node);
  if (x->type == JSON_NODE_NULL) return may_lack || chroma_bad_shape(c, "an embedding is null");
  if (x->type == JSON_NODE_STRING) return chroma_read_base64(c, x->u.s, record);
  if (x->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "an embedding must be a list of numbers, or base64");
  if (x->u.count == 0 || x->u.count > LODE_MAX_DIMENSION)
    return chroma_invalid(c, "an embedding has %zu numbers: 1 to %d are allowed", x->u.count, LODE_MAX_DIMENSION);
  float *out = chroma_alloc_floats(c, x->u.count);
  if (!out) return chroma_respond_status(c, err_nomem(&c->err));
  record->vector = out;
  record->dimension = (uint32_t)x->u.count;
  return chroma_body_floats(c, node, out);
}

/* ---- Metadata ---- */

static bool chroma_check_value(chroma_request *c, uint32_t node, bool update) {
  const json_node *x = chroma_body_node(c, node);
  if (x->type == JSON_NODE_OBJECT) {
    uint32_t type = chroma_body_key(c, node, "#type");
    if (type || chroma_body_key(c, node, "indices"))
      return chroma_respond_error(c, 501, "ChromaError", "sparse vectors in metadata are unsupported");
    return chroma_bad_shape(c, "a metadata value is an object");
  }
  if (x->type == JSON_NODE_NULL && !update) return chroma_bad_shape(c, "a metadata value is null");
  if (x->type != JSON_NODE_ARRAY) return true;
  json_node_type first = JSON_NODE_NULL;
  if (x->u.count == 0) return chroma_invalid(c, "a metadata list is empty");
  for (uint32_t i = node + 1; i < x->next; i = chroma_body_node(c, i)->next) {
    json_node_type type = chroma_body_node(c, i)->type;
    if (type == JSON_NODE_FALSE) type = JSON_NODE_TRUE;
    if (type == JSON_NODE_NULL || type == JSON_NODE_ARRAY || type == JSON_NODE_OBJECT ||
        (i > node + 1 && type != first))
      return chroma_bad_shape(c, "a metadata list must hold values of one kind");
    first = type;
  }
  return true;
}

/* Joins metadata and uri of a record to one object; no data if it is empty. Either node may be 0. */
static bool chroma_read_metadata(chroma_request *c, uint32_t node, uint32_t uri, bool update, lode_str *text) {
  strbuf out = {0};
  bool ok = true, any = false;
  if (node && chroma_body_node(c, node)->type == JSON_NODE_NULL) node = 0;
  if (uri && chroma_body_node(c, uri)->type == JSON_NODE_NULL) uri = 0;
  if (node && chroma_body_node(c, node)->type != JSON_NODE_OBJECT)
    return chroma_bad_shape(c, "metadatas must hold objects");
  if (uri && chroma_body_node(c, uri)->type != JSON_NODE_STRING) return chroma_bad_shape(c, "uris must hold strings");
  if (!node && !uri) return true;
  strbuf_addch(&out, '{');
  for (uint32_t i = node + 1; node && ok && i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i + 1)->next) {
    lode_str key = chroma_body_node(c, i)->u.s;
    ok = chroma_check_value(c, i + 1, update);
    if (ok && key.len >= 7 && memcmp(key.data, "chroma:", 7) == 0)
      ok = chroma_invalid(c, "metadata keys may not begin with chroma:");
    if (any) strbuf_addch(&out, ',');
    json_put_node(&out, &c->json, i);
    strbuf_addch(&out, ':');
    json_put_node(&out, &c->json, i + 1);
    any = true;
  }
  if (uri) {
    strbuf_addf(&out, "%s\"" RESCUE_LAYOUT_URI "\":", any ? "," : "");
    json_put_node(&out, &c->json, uri);
    any = true;
  }
  strbuf_addch(&out, '}');
  if (ok && any && !out.failed) *text = (lode_str){mem_arena_copy(&c->arena, out.data, out.len), out.len};
  if (ok && any && (out.failed || !text->data)) ok = chroma_respond_status(c, err_nomem(&c->err));
  strbuf_release(&out);
  return ok;
}

/* ---- Batches ---- */

/* A list parallel to ids, of the same length; 0 if missing. */
static bool chroma_body_list(chroma_request *c, const char *key, size_t n, uint32_t *node) {
  *node = chroma_body_key(c, 0, key);
  if (!*node) return true;
  if (chroma_body_node(c, *node)->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "%s must be a list", key);
  size_t count = chroma_body_node(c, *node)->u.count;
  return count == n || chroma_invalid(c, "%zu ids, but %zu %s: there must be as many", n, count, key);
}

/* Steps to the next element of a list that may be missing. */
static void chroma_next_element(chroma_request *c, uint32_t *at) {
  if (*at) *at = chroma_body_node(c, *at)->next;
}

static bool chroma_read_batch(chroma_request *c, chroma_batch *b) {
  const lode_str *ids;
  uint32_t vector, document, metadata, uri;
  bool update = b->mode != LODE_IMPORT_ADD;
  if (!chroma_body_ids(c, &ids, &b->n)) return false;
  if (!ids) return chroma_bad_shape(c, "missing field `ids`");
  if (b->n == 0) return chroma_invalid(c, "ids is empty: give at least one");
  if (b->n > CHROMA_MAX_BATCH)
    return chroma_respond_error(c, 413, "InvalidArgumentError", "%zu records in one request: %d are the most", b->n,
                                CHROMA_MAX_BATCH);
  if (!chroma_body_list(c, "embeddings", b->n, &vector) || !chroma_body_list(c, "documents", b->n, &document) ||
      !chroma_body_list(c, "metadatas", b->n, &metadata) || !chroma_body_list(c, "uris", b->n, &uri))
    return false;
  if (!vector && b->mode != LODE_IMPORT_UPDATE) return chroma_bad_shape(c, "missing field `embeddings`");
  b->records = mem_arena_alloc(&c->arena, b->n * sizeof *b->records);
  if (!b->records) return chroma_respond_status(c, err_nomem(&c->err));
  memset(b->records, 0, b->n * sizeof *b->records);
  vector += vector != 0;
  document += document != 0;
  metadata += metadata != 0;
  uri += uri != 0;
  for (size_t i = 0; i < b->n; i++) {
    lode_record *r = &b->records[i];
    r->id = ids[i];
    if (vector && !chroma_read_vector(c, vector, b->mode == LODE_IMPORT_UPDATE, r)) return false;
    if (document && chroma_body_node(c, document)->type == JSON_NODE_STRING)
      r->document = chroma_body_node(c, document)->u.s;
    else if (document && chroma_body_node(c, document)->type != JSON_NODE_NULL)
      return chroma_bad_shape(c, "documents must hold strings");
    if (!chroma_read_metadata(c, metadata, uri, update, &r->metadata)) return false;
    chroma_next_element(c, &vector);
    chroma_next_element(c, &document);
    chroma_next_element(c, &metadata);
    chroma_next_element(c, &uri);
  }
  return true;
}

static lode_status chroma_write_batch(void *ctx, lode_txn *txn, lode_error *err) {
  chroma_batch *b = ctx;
  if (b->mode == LODE_IMPORT_ADD) return lode_add(b->collection, txn, b->records, b->n, LODE_KEEP_EXISTING, NULL, err);
  if (b->mode == LODE_IMPORT_UPSERT) return lode_upsert(b->collection, txn, b->records, b->n, NULL, err);
  return lode_update(b->collection, txn, b->records, b->n, NULL, NULL, err);
}

static bool chroma_write(chroma_request *c, lode_import_mode mode) {
  chroma_batch b = {.mode = mode};
  worker_handle *handle;
  if (!chroma_read_batch(c, &b) || !chroma_coll_acquire(c, &handle)) return false;
  b.collection = handle->collection;
  lode_status st = chroma_check_may_change(c, handle->name);
  if (st == LODE_OK)
    st = b.n <= CHROMA_SMALL_WRITE ? worker_stores_write(c->task->shared, chroma_write_batch, &b, &c->err)
                                   : chroma_write_batch(&b, NULL, &c->err);
  chroma_coll_release(c, handle, st);
  if (st == LODE_NOT_FOUND) return chroma_no_collection(c);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  return chroma_respond(c, mode == LODE_IMPORT_ADD ? 201 : 200, "{}");
}

bool chroma_do_add(chroma_request *c) { return chroma_write(c, LODE_IMPORT_ADD); }
bool chroma_do_upsert(chroma_request *c) { return chroma_write(c, LODE_IMPORT_UPSERT); }
bool chroma_do_update(chroma_request *c) { return chroma_write(c, LODE_IMPORT_UPDATE); }

/* ---- Delete ---- */

typedef struct chroma_deletion {
  lode_collection *collection;
  lode_selection select;
  size_t deleted;
} chroma_deletion;

static lode_status chroma_run_deletion(void *ctx, lode_txn *txn, lode_error *err) {
  chroma_deletion *d = ctx;
  return lode_delete(d->collection, txn, &d->select, &d->deleted, err);
}

/* Narrows the selection to the first `limit` matches. The filter stays: they may change before they are deleted. */
static lode_status chroma_limit_selection(chroma_request *c, chroma_deletion *d, uint64_t limit, lode_result **rows) {
  lode_get_request request = {.select = d->select, .limit = (size_t)limit};
  TRY(lode_get(d->collection, &request, rows, &c->err));
  size_t n = lode_result_count(*rows);
  lode_str *ids = mem_arena_alloc(&c->arena, (n + 1) * sizeof *ids);
  if (!ids) return err_nomem(&c->err);
  for (size_t i = 0; i < n; i++) ids[i] = lode_result_at(*rows, i)->id;
  d->select.ids = ids;
  d->select.n_ids = n;
  return LODE_OK;
}

bool chroma_do_delete(chroma_request *c) {
  chroma_deletion d = {0};
  uint64_t limit;
  worker_handle *handle;
  lode_result *rows = NULL;
  lode_status st;
  if (!chroma_body_selection(c, &d.select) || !chroma_body_count(c, "limit", UINT64_MAX, &limit) ||
      !chroma_coll_acquire(c, &handle))
    return false;
  bool filtered = d.select.where.data || d.select.where_document.data, by_ids = d.select.ids && !filtered;
  size_t asked = d.select.n_ids;
  d.collection = handle->collection;
  st = chroma_check_may_change(c, handle->name);
  if (st == LODE_OK && limit != UINT64_MAX && filtered)
    st = limit ? chroma_limit_selection(c, &d, limit, &rows) : LODE_OK;
  if (st == LODE_OK && limit && (filtered || asked))
    st = worker_stores_write(c->task->shared, chroma_run_deletion, &d, &c->err);
  lode_result_free(rows);
  chroma_coll_release(c, handle, st);
  if (st == LODE_NOT_FOUND) return chroma_no_collection(c);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  /* Chroma counts the requested ids, even those that do not exist */
  strbuf_addf(&c->task->out, "{\"deleted\":%zu}", by_ids ? asked : d.deleted);
  return true;
}
