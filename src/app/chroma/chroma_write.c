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
  uint32_t *metadatas, *uris; /* nodes of the body, or 0 */
  size_t n;
} chroma_batch;

/* ---- Vectors ---- */

static float *chroma_alloc_floats(chroma_request *c, size_t n) { return mem_arena_alloc(&c->arena, n * sizeof(float)); }

static bool chroma_wrong_dimension(chroma_request *c, size_t n) {
  return chroma_invalid(c, "an embedding has %zu numbers: 1 to %d are allowed", n, LODE_MAX_DIMENSION);
}

static bool chroma_read_base64(chroma_request *c, lode_str text, lode_record *record) {
  size_t n = chroma_base64_floats(text);
  if (n == SIZE_MAX) return chroma_invalid(c, "Invalid base64 string: an embedding is not base64 of 32-bit floats");
  if (n == 0 || n > LODE_MAX_DIMENSION) return chroma_wrong_dimension(c, n);
  float *out = chroma_alloc_floats(c, n);
  if (!out) return chroma_respond_status(c, err_nomem(&c->err));
  if (!chroma_base64_decode(text, out))
    return chroma_invalid(c, "Invalid base64 string: an embedding is not base64 of 32-bit floats");
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
  float *out = chroma_alloc_floats(c, x->u.count + 1);
  if (!out) return chroma_respond_status(c, err_nomem(&c->err));
  record->vector = out;
  record->dimension = x->u.count > UINT32_MAX ? UINT32_MAX : (uint32_t)x->u.count; /* checked by chroma_read_batch */
  return chroma_body_floats(c, node, out);
}

/* ---- Metadata ---- */

bool chroma_check_value(chroma_request *c, uint32_t node, bool update) {
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
  for (uint32_t i = node + 1; i < x->next; i = chroma_body_node(c, i)->next) {
    json_node_type type = chroma_body_node(c, i)->type;
    if (type == JSON_NODE_FALSE) type = JSON_NODE_TRUE;
    if (type == JSON_NODE_INT) type = JSON_NODE_DOUBLE; /* JavaScript writes 2.0 as 2 */
    if (type == JSON_NODE_NULL || type == JSON_NODE_ARRAY || type == JSON_NODE_OBJECT ||
        (i > node + 1 && type != first))
      return chroma_bad_shape(c, "a metadata list must hold values of one kind");
    first = type;
  }
  return true;
}

/* Writes a list. Numbers of both kinds become doubles: the values of a list are of one kind. */
static void chroma_put_list(strbuf *out, const json_doc *json, uint32_t node) {
  bool doubles = false;
  for (uint32_t i = node + 1; i < json->nodes[node].next; i++) doubles |= json->nodes[i].type == JSON_NODE_DOUBLE;
  if (!doubles) {
    json_put_node(out, json, node);
    return;
  }
  for (uint32_t i = node + 1; i < json->nodes[node].next; i++) {
    strbuf_addch(out, i == node + 1 ? '[' : ',');
    json_put_double(out, json->nodes[i].type == JSON_NODE_INT ? (double)json->nodes[i].u.i : json->nodes[i].u.d);
  }
  strbuf_addch(out, ']');
}

/* Values of a record's metadata are scalars and lists, under keys that are not reserved. */
static bool chroma_check_metadata(chroma_request *c, uint32_t node, bool update) {
  for (uint32_t i = node + 1; i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i + 1)->next)
    if (!chroma_check_value(c, i + 1, update)) return false;
  for (uint32_t i = node + 1; i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i + 1)->next) {
    lode_str key = chroma_body_node(c, i)->u.s;
    if (key.len == 0 || key.data[0] == '$' || key.data[0] == '#' ||
        (key.len >= 7 && memcmp(key.data, "chroma:", 7) == 0))
      return chroma_invalid(c, "Validation error: metadatas: a metadata key may not be empty or begin with $, # or "
                               "chroma:");
  }
  return true;
}

/* Joins metadata and uri of a record to one object; no data if it is empty. Either node may be 0. As with Chroma, an
 * empty list is as good as none. */
static bool chroma_read_metadata(chroma_request *c, uint32_t node, uint32_t uri, lode_str *text) {
  strbuf out = {0};
  bool any = false, ok = true;
  if (!node && !uri) return true;
  strbuf_addch(&out, '{');
  for (uint32_t i = node + 1; node && i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i + 1)->next) {
    const json_node *value = chroma_body_node(c, i + 1);
    if (value->type == JSON_NODE_ARRAY && value->u.count == 0) continue;
    if (any) strbuf_addch(&out, ',');
    json_put_node(&out, &c->json, i);
    strbuf_addch(&out, ':');
    value->type == JSON_NODE_ARRAY ? chroma_put_list(&out, &c->json, i + 1) : json_put_node(&out, &c->json, i + 1);
    any = true;
  }
  if (uri) {
    strbuf_addf(&out, "%s\"" RESCUE_LAYOUT_URI "\":", any ? "," : "");
    json_put_node(&out, &c->json, uri);
    any = true;
  }
  strbuf_addch(&out, '}');
  if (any && !out.failed) *text = (lode_str){mem_arena_copy(&c->arena, out.data, out.len), out.len};
  if (any && (out.failed || !text->data)) ok = chroma_respond_status(c, err_nomem(&c->err));
  strbuf_release(&out);
  return ok;
}

/* ---- Batches ---- */

typedef bool chroma_read_element(chroma_request *c, const chroma_batch *b, size_t i, uint32_t node);

typedef struct chroma_column {
  const char *name;
  chroma_read_element *read;
} chroma_column;

static bool chroma_element_vector(chroma_request *c, const chroma_batch *b, size_t i, uint32_t node) {
  return chroma_read_vector(c, node, b->mode == LODE_IMPORT_UPDATE, &b->records[i]);
}

static bool chroma_element_document(chroma_request *c, const chroma_batch *b, size_t i, uint32_t node) {
  const json_node *x = chroma_body_node(c, node);
  if (x->type == JSON_NODE_STRING) b->records[i].document = x->u.s;
  return x->type == JSON_NODE_STRING || x->type == JSON_NODE_NULL || chroma_bad_shape(c, "documents must hold strings");
}

static bool chroma_element_metadata(chroma_request *c, const chroma_batch *b, size_t i, uint32_t node) {
  const json_node *x = chroma_body_node(c, node);
  b->metadatas[i] = x->type == JSON_NODE_NULL ? 0 : node;
  if (x->type != JSON_NODE_OBJECT)
    return x->type == JSON_NODE_NULL || chroma_bad_shape(c, "metadatas must hold objects");
  return chroma_check_metadata(c, node, b->mode != LODE_IMPORT_ADD);
}

static bool chroma_element_uri(chroma_request *c, const chroma_batch *b, size_t i, uint32_t node) {
  const json_node *x = chroma_body_node(c, node);
  b->uris[i] = x->type == JSON_NODE_NULL ? 0 : node;
  return x->type == JSON_NODE_STRING || x->type == JSON_NODE_NULL || chroma_bad_shape(c, "uris must hold strings");
}

/* A list parallel to ids. What is of the wrong type is reported before lengths that differ, as by Chroma. */
static bool chroma_read_column(chroma_request *c, const chroma_batch *b, const chroma_column *column, size_t *count) {
  uint32_t node = chroma_body_key(c, 0, column->name);
  size_t i = 0;
  *count = b->n;
  if (!node) return true;
  if (chroma_body_node(c, node)->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "%s must be a list", column->name);
  *count = chroma_body_node(c, node)->u.count;
  for (uint32_t at = node + 1; i < b->n && at < chroma_body_node(c, node)->next; at = chroma_body_node(c, at)->next)
    if (!column->read(c, b, i++, at)) return false;
  return true;
}

static bool chroma_alloc_batch(chroma_request *c, chroma_batch *b) {
  b->records = mem_arena_alloc(&c->arena, (b->n + 1) * sizeof *b->records);
  b->metadatas = mem_arena_alloc(&c->arena, (b->n + 1) * sizeof *b->metadatas);
  b->uris = mem_arena_alloc(&c->arena, (b->n + 1) * sizeof *b->uris);
  if (!b->records || !b->metadatas || !b->uris) return chroma_respond_status(c, err_nomem(&c->err));
  memset(b->records, 0, (b->n + 1) * sizeof *b->records);
  memset(b->metadatas, 0, (b->n + 1) * sizeof *b->metadatas);
  memset(b->uris, 0, (b->n + 1) * sizeof *b->uris);
  return true;
}

static bool chroma_read_batch(chroma_request *c, chroma_batch *b) {
  static const chroma_column columns[] = {{"documents", chroma_element_document},
                                          {"metadatas", chroma_element_metadata},
                                          {"uris", chroma_element_uri},
                                          {"embeddings", chroma_element_vector}};
  enum { COLUMNS = sizeof columns / sizeof *columns };
  const lode_str *ids;
  size_t counts[COLUMNS];
  if (!chroma_body_ids(c, &ids, &b->n)) return false;
  if (!ids) return chroma_bad_shape(c, "missing field `ids`");
  if (b->n > CHROMA_MAX_BATCH)
    return chroma_respond_error(c, 413, "InvalidArgumentError", "%zu records in one request: %d are the most", b->n,
                                CHROMA_MAX_BATCH);
  if (!chroma_body_key(c, 0, "embeddings") && b->mode != LODE_IMPORT_UPDATE)
    return chroma_bad_shape(c, "missing field `embeddings`");
  if (!chroma_alloc_batch(c, b)) return false;
  for (size_t k = 0; k < COLUMNS; k++)
    if (!chroma_read_column(c, b, &columns[k], &counts[k])) return false;
  for (size_t k = 0; k < COLUMNS; k++)
    if (counts[k] != b->n)
      return chroma_invalid(c, "%zu ids, but %zu %s: there must be as many", b->n, counts[k], columns[k].name);
  for (size_t i = 0; i < b->n; i++) {
    b->records[i].id = ids[i];
    if (b->records[i].vector && (b->records[i].dimension == 0 || b->records[i].dimension > LODE_MAX_DIMENSION))
      return chroma_wrong_dimension(c, b->records[i].dimension);
    if (!chroma_read_metadata(c, b->metadatas[i], b->uris[i], &b->records[i].metadata)) return false;
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
  if (!chroma_body_count(c, "limit", UINT64_MAX, &limit) || !chroma_body_selection(c, &d.select) ||
      !chroma_coll_acquire(c, &handle))
    return false;
  bool filtered = d.select.where.data || d.select.where_document.data, by_ids = d.select.ids && !filtered;
  if (!filtered && d.select.ids && !d.select.n_ids) {
    chroma_coll_release(c, handle, LODE_OK);
    return chroma_invalid(c, "Validation error: ids, where: Either ids or where must be specified");
  }
  if (limit != UINT64_MAX && !filtered) {
    chroma_coll_release(c, handle, LODE_OK);
    return chroma_invalid(
        c, "Validation error: limit, where: limit can only be specified when a where clause is provided");
  }
  size_t asked = d.select.n_ids;
  d.collection = handle->collection;
  st = chroma_check_may_change(c, handle->name);
  if (st == LODE_OK && limit != UINT64_MAX && filtered)
    st = chroma_limit_selection(c, &d, limit ? limit : 1, &rows); /* with 0 for the sake of a wrong filter */
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
