/* chroma_write.c - add, update, upsert and delete of Chroma's API. See chroma.h.
 *
 * The body's lists become records whose strings point into it. Small writes share a commit with those of other callers
 * (shared.h); large ones have one of their own, so that they do not keep the small ones waiting longer than they must.
 */
#include "base64.h"
#include "chroma.h"

#include <float.h>
#include <math.h>

enum { SMALL_WRITE = 512 };

typedef enum verb { ADD, UPSERT, UPDATE } verb;

typedef struct batch {
  verb verb;
  lode_collection *collection;
  lode_record *records;
  size_t n;
} batch;

/* ---- Vectors ---- */

static float *floats(lode__chroma *c, size_t n) { return mem_arena_alloc(&c->arena, n * sizeof(float)); }

static bool read_base64(lode__chroma *c, lode_str text, lode_record *record) {
  size_t n = lode__base64_floats(text);
  if (n == SIZE_MAX || n > LODE_MAX_DIMENSION) return lode__chroma_shape(c, "an embedding is not base64 of 32-bit floats");
  float *out = floats(c, n);
  if (!out) return lode__chroma_failed(c, err_nomem(&c->err));
  if (!lode__base64_decode(text, out)) return lode__chroma_shape(c, "an embedding is not base64 of 32-bit floats");
  record->vector = out;
  record->dimension = (uint32_t)n;
  return true;
}

bool lode__chroma_floats(lode__chroma *c, uint32_t node, float *out) {
  size_t n = 0;
  for (uint32_t i = node + 1; i < lode__chroma_node(c, node)->next; i = lode__chroma_node(c, i)->next) {
    const json_node *x = lode__chroma_node(c, i);
    double d = x->type == JSON_NODE_INT ? (double)x->u.i : x->type == JSON_NODE_DOUBLE ? x->u.d : NAN;
    if (isnan(d)) return lode__chroma_shape(c, "an embedding holds something that is not a number");
    if (fabs(d) > FLT_MAX) return lode__chroma_invalid(c, "an embedding holds a number that does not fit a 32-bit float");
    out[n++] = (float)d;
  }
  return true;
}

static bool read_vector(lode__chroma *c, uint32_t node, bool may_lack, lode_record *record) {
  const json_node *x = lode__chroma_node(c, node);
  if (x->type == JSON_NODE_NULL) return may_lack || lode__chroma_shape(c, "an embedding is null");
  if (x->type == JSON_NODE_STRING) return read_base64(c, x->u.s, record);
  if (x->type != JSON_NODE_ARRAY) return lode__chroma_shape(c, "an embedding must be a list of numbers, or base64");
  if (x->u.count == 0 || x->u.count > LODE_MAX_DIMENSION)
    return lode__chroma_invalid(c, "an embedding has %zu numbers: 1 to %d are allowed", x->u.count, LODE_MAX_DIMENSION);
  float *out = floats(c, x->u.count);
  if (!out) return lode__chroma_failed(c, err_nomem(&c->err));
  record->vector = out;
  record->dimension = (uint32_t)x->u.count;
  return lode__chroma_floats(c, node, out);
}

/* ---- Metadata ---- */

static bool check_value(lode__chroma *c, uint32_t node, bool update) {
  const json_node *x = lode__chroma_node(c, node);
  if (x->type == JSON_NODE_OBJECT) {
    uint32_t type = lode__chroma_key(c, node, "#type");
    if (type || lode__chroma_key(c, node, "indices"))
      return lode__chroma_fail(c, 501, "ChromaError", "sparse vectors in metadata are unsupported");
    return lode__chroma_shape(c, "a metadata value is an object");
  }
  if (x->type == JSON_NODE_NULL && !update) return lode__chroma_shape(c, "a metadata value is null");
  if (x->type != JSON_NODE_ARRAY) return true;
  json_node_type first = JSON_NODE_NULL;
  if (x->u.count == 0) return lode__chroma_invalid(c, "a metadata list is empty");
  for (uint32_t i = node + 1; i < x->next; i = lode__chroma_node(c, i)->next) {
    json_node_type type = lode__chroma_node(c, i)->type;
    if (type == JSON_NODE_FALSE) type = JSON_NODE_TRUE;
    if (type == JSON_NODE_NULL || type == JSON_NODE_ARRAY || type == JSON_NODE_OBJECT || (i > node + 1 && type != first))
      return lode__chroma_shape(c, "a metadata list must hold values of one kind");
    first = type;
  }
  return true;
}

/* Metadata and uri of a record as one object; absent when there is nothing in it. Either node may be 0. */
static bool read_metadata(lode__chroma *c, uint32_t node, uint32_t uri, bool update, lode_str *text) {
  strbuf out = {0};
  bool ok = true, any = false;
  if (node && lode__chroma_node(c, node)->type == JSON_NODE_NULL) node = 0;
  if (uri && lode__chroma_node(c, uri)->type == JSON_NODE_NULL) uri = 0;
  if (node && lode__chroma_node(c, node)->type != JSON_NODE_OBJECT) return lode__chroma_shape(c, "metadatas must hold objects");
  if (uri && lode__chroma_node(c, uri)->type != JSON_NODE_STRING) return lode__chroma_shape(c, "uris must hold strings");
  if (!node && !uri) return true;
  strbuf_addch(&out, '{');
  for (uint32_t i = node + 1; node && ok && i < lode__chroma_node(c, node)->next; i = lode__chroma_node(c, i + 1)->next) {
    lode_str key = lode__chroma_node(c, i)->u.s;
    ok = check_value(c, i + 1, update);
    if (ok && key.len >= 7 && memcmp(key.data, "chroma:", 7) == 0) ok = lode__chroma_invalid(c, "metadata keys may not begin with chroma:");
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
  if (ok && any && (out.failed || !text->data)) ok = lode__chroma_failed(c, err_nomem(&c->err));
  strbuf_release(&out);
  return ok;
}

/* ---- Batches ---- */

/* A list beside ids, or 0: as long as they are. */
static bool list_of(lode__chroma *c, const char *key, size_t n, uint32_t *node) {
  *node = lode__chroma_key(c, 0, key);
  if (!*node) return true;
  if (lode__chroma_node(c, *node)->type != JSON_NODE_ARRAY) return lode__chroma_shape(c, "%s must be a list", key);
  size_t count = lode__chroma_node(c, *node)->u.count;
  return count == n || lode__chroma_invalid(c, "%zu ids, but %zu %s: there must be as many", n, count, key);
}

/* Steps to the next element of a list that may not be there. */
static void step(lode__chroma *c, uint32_t *at) {
  if (*at) *at = lode__chroma_node(c, *at)->next;
}

static bool read_batch(lode__chroma *c, batch *b) {
  const lode_str *ids;
  uint32_t vector, document, metadata, uri;
  bool update = b->verb != ADD;
  if (!lode__chroma_ids(c, &ids, &b->n)) return false;
  if (!ids) return lode__chroma_shape(c, "missing field `ids`");
  if (b->n == 0) return lode__chroma_invalid(c, "ids is empty: give at least one");
  if (b->n > LODE__CHROMA_BATCH)
    return lode__chroma_fail(c, 413, "InvalidArgumentError", "%zu records in one request: %d are the most", b->n, LODE__CHROMA_BATCH);
  if (!list_of(c, "embeddings", b->n, &vector) || !list_of(c, "documents", b->n, &document) ||
      !list_of(c, "metadatas", b->n, &metadata) || !list_of(c, "uris", b->n, &uri))
    return false;
  if (!vector && b->verb != UPDATE) return lode__chroma_shape(c, "missing field `embeddings`");
  b->records = mem_arena_alloc(&c->arena, b->n * sizeof *b->records);
  if (!b->records) return lode__chroma_failed(c, err_nomem(&c->err));
  memset(b->records, 0, b->n * sizeof *b->records);
  vector += vector != 0;
  document += document != 0;
  metadata += metadata != 0;
  uri += uri != 0;
  for (size_t i = 0; i < b->n; i++) {
    lode_record *r = &b->records[i];
    r->id = ids[i];
    if (vector && !read_vector(c, vector, b->verb == UPDATE, r)) return false;
    if (document && lode__chroma_node(c, document)->type == JSON_NODE_STRING) r->document = lode__chroma_node(c, document)->u.s;
    else if (document && lode__chroma_node(c, document)->type != JSON_NODE_NULL) return lode__chroma_shape(c, "documents must hold strings");
    if (!read_metadata(c, metadata, uri, update, &r->metadata)) return false;
    step(c, &vector);
    step(c, &document);
    step(c, &metadata);
    step(c, &uri);
  }
  return true;
}

static lode_status write_batch(void *ctx, lode_txn *txn, lode_error *err) {
  batch *b = ctx;
  if (b->verb == ADD) return lode_add(b->collection, txn, b->records, b->n, LODE_KEEP_EXISTING, NULL, err);
  if (b->verb == UPSERT) return lode_upsert(b->collection, txn, b->records, b->n, NULL, err);
  return lode_update(b->collection, txn, b->records, b->n, NULL, NULL, err);
}

static bool run(lode__chroma *c, verb what) {
  batch b = {.verb = what};
  lode__handle *handle;
  if (!read_batch(c, &b) || !lode__chroma_hold(c, &handle)) return false;
  b.collection = handle->collection;
  lode_status st = lode__chroma_may_change(c, handle->name);
  if (st == LODE_OK) st = b.n <= SMALL_WRITE ? lode__shared_write(c->task->shared, write_batch, &b, &c->err) : write_batch(&b, NULL, &c->err);
  lode__chroma_let_go(c, handle, st);
  if (st == LODE_NOT_FOUND) return lode__chroma_no_collection(c);
  if (st != LODE_OK) return lode__chroma_failed(c, st);
  return lode__chroma_text(c, what == ADD ? 201 : 200, "{}");
}

bool lode__chroma_add(lode__chroma *c) { return run(c, ADD); }
bool lode__chroma_upsert(lode__chroma *c) { return run(c, UPSERT); }
bool lode__chroma_update(lode__chroma *c) { return run(c, UPDATE); }

/* ---- Delete ---- */

typedef struct deletion {
  lode_collection *collection;
  lode_selection select;
  size_t deleted;
} deletion;

static lode_status run_deletion(void *ctx, lode_txn *txn, lode_error *err) {
  deletion *d = ctx;
  return lode_delete(d->collection, txn, &d->select, &d->deleted, err);
}

/* The first `limit` records that match, as a selection of ids. */
static lode_status limit_selection(lode__chroma *c, deletion *d, uint64_t limit, lode_result **rows) {
  lode_get_request request = {.select = d->select, .limit = (size_t)limit};
  TRY(lode_get(d->collection, &request, rows, &c->err));
  size_t n = lode_result_count(*rows);
  lode_str *ids = mem_arena_alloc(&c->arena, (n + 1) * sizeof *ids);
  if (!ids) return err_nomem(&c->err);
  for (size_t i = 0; i < n; i++) ids[i] = lode_result_at(*rows, i)->id;
  d->select = (lode_selection){.ids = ids, .n_ids = n};
  return LODE_OK;
}

bool lode__chroma_delete(lode__chroma *c) {
  deletion d = {0};
  uint64_t limit;
  lode__handle *handle;
  lode_result *rows = NULL;
  lode_status st;
  if (!lode__chroma_selection(c, &d.select) || !lode__chroma_count_of(c, "limit", UINT64_MAX, &limit) || !lode__chroma_hold(c, &handle)) return false;
  bool filtered = d.select.where.data || d.select.where_document.data, by_ids = d.select.ids && !filtered;
  size_t asked = d.select.n_ids;
  d.collection = handle->collection;
  st = lode__chroma_may_change(c, handle->name);
  if (st == LODE_OK && limit != UINT64_MAX && filtered) st = limit ? limit_selection(c, &d, limit, &rows) : LODE_OK;
  if (st == LODE_OK && limit && (filtered || asked)) st = lode__shared_write(c->task->shared, run_deletion, &d, &c->err);
  lode_result_free(rows);
  lode__chroma_let_go(c, handle, st);
  if (st == LODE_NOT_FOUND) return lode__chroma_no_collection(c);
  if (st != LODE_OK) return lode__chroma_failed(c, st);
  /* Chroma counts the ids that were asked for, there or not */
  strbuf_addf(&c->task->out, "{\"deleted\":%zu}", by_ids ? asked : d.deleted);
  return true;
}
