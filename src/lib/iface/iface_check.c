/* SPDX-License-Identifier: Apache-2.0 */
/* iface_check.c - all checks of user input, before anything is written. See iface_check.h. */
#include "iface/iface_check.h"

#include "base/vector.h"
#include "base/meta.h"

#include <math.h>

/* ---- Names and requests ---- */

lode_status iface_check_name(lode_str name, const char *what, lode_error *err) {
  char quoted[256];
  if (!name.data || name.len == 0)
    return err_set(err, LODE_INVALID, "%s is empty: give it 1 to %d bytes", what, LODE_MAX_NAME_BYTES);
  if (name.len > LODE_MAX_NAME_BYTES)
    return err_set(err, LODE_INVALID, "%s has %zu bytes: the most is %d", what, name.len, LODE_MAX_NAME_BYTES);
  if (!utf8_valid(name.data, name.len))
    return err_set(err, LODE_INVALID, "%s %s is not UTF-8", what, str_quote(name, quoted, sizeof quoted));
  for (size_t i = 0; i < name.len; i++) {
    unsigned char c = (unsigned char)name.data[i];
    bool control = c < 0x20 || c == 0x7F || (c == 0xC2 && (unsigned char)name.data[i + 1] < 0xA0); /* C0, DEL, C1 */
    if (control)
      return err_set(err, LODE_INVALID, "%s %s has a control character: remove it", what,
                     str_quote(name, quoted, sizeof quoted));
  }
  return LODE_OK;
}

lode_status iface_check_object(lode_str text, const char *what, lode_error *err) {
  json_doc json = {0};
  lode_error inner;
  lode_status st = LODE_OK;
  if (!text.data) return LODE_OK;
  if (text.len > LODE_MAX_METADATA_BYTES)
    return err_set(err, LODE_LIMIT, "%s has %zu bytes: the most is %u", what, text.len, LODE_MAX_METADATA_BYTES);
  err_clear(&inner);
  st = json_parse(&json, text, NULL, &inner);
  if (st == LODE_NOMEM)
    st = err_nomem(err);
  else if (st != LODE_OK)
    st = err_set(err, LODE_INVALID, "%s is not JSON: %s", what, inner.text);
  else if (json.nodes[0].type != JSON_NODE_OBJECT)
    st = err_set(err, LODE_INVALID, "%s must be a JSON object, such as {\"key\": \"value\"}", what);
  json_release(&json);
  return st;
}

lode_status iface_check_selection(const lode_selection *s, lode_error *err) {
  for (size_t i = 0; i < sizeof s->reserved / sizeof *s->reserved; i++)
    if (s->reserved[i]) return err_set(err, LODE_INVALID, "reserved of a selection is set: zero the struct first");
  if (!s->ids && s->n_ids) return err_set(err, LODE_INVALID, "n_ids is %zu, but there are no ids", s->n_ids);
  return LODE_OK;
}

lode_status iface_check_include(unsigned include, lode_error *err) {
  if (include & ~(unsigned)LODE_ALL)
    return err_set(err, LODE_INVALID,
                   "include has unknown bits (0x%x): use LODE_DOCUMENT, LODE_METADATA and LODE_VECTOR",
                   include & ~(unsigned)LODE_ALL);
  return LODE_OK;
}

enum { CHECK_FINITE_BLOCK = 64 };

/* A whole block without branches, so that the compiler can vectorize it. */
static bool check_block_is_finite(const float *v) {
  uint32_t bits[CHECK_FINITE_BLOCK], bad = 0;
  memcpy(bits, v, sizeof bits);
  for (size_t i = 0; i < CHECK_FINITE_BLOCK; i++)
    bad |= ((bits[i] & 0x7F800000u) + 0x00800000u) & 0x80000000u; /* exponent all ones */
  return bad == 0;
}

/* Index of the first element that is not finite, or n. */
static size_t check_first_not_finite(const float *v, size_t n) {
  size_t i = 0;
  while (n - i >= CHECK_FINITE_BLOCK && check_block_is_finite(v + i)) i += CHECK_FINITE_BLOCK;
  for (; i < n; i++)
    if (!isfinite(v[i])) return i;
  return n;
}

enum { CHECK_MAX_COUNTERS = 64 };

lode_status iface_check_open_options(const lode_open_options *o, lode_error *err) {
  if (o->create && o->read_only)
    return err_set(err, LODE_INVALID, "a store cannot be created and opened for reading only: choose one");
  if (o->page_bytes && (o->page_bytes < 512 || o->page_bytes > 65536 || (o->page_bytes & (o->page_bytes - 1))))
    return err_set(err, LODE_INVALID, "page_bytes is %u: it must be a power of two from 512 to 65,536", o->page_bytes);
  if (o->memory_bytes && o->memory_bytes < (16u << 20))
    return err_set(err, LODE_INVALID, "the memory budget (memory_bytes, --memory) is %llu: the least is 16 MiB",
                   (unsigned long long)o->memory_bytes);
  if (o->max_document_bytes > LODE_MAX_DOCUMENT_BYTES)
    return err_set(err, LODE_INVALID,
                   "the largest document (max_document_bytes, --max-document) is %llu: the most is %u",
                   (unsigned long long)o->max_document_bytes, LODE_MAX_DOCUMENT_BYTES);
  return LODE_OK;
}

lode_status iface_check_coll_options(const lode_collection_options *o, lode_error *err) {
  if ((unsigned)o->metric > LODE_IP)
    return err_set(err, LODE_INVALID, "there is no metric %d: use LODE_L2, LODE_COSINE or LODE_IP", (int)o->metric);
  TRY(iface_check_object(o->metadata, "the collection's metadata", err));
  if (o->embedder.data) TRY(iface_check_name(o->embedder, "the name of the embedder", err));
  if (o->embedder_dim > LODE_MAX_DIMENSION)
    return err_set(err, LODE_INVALID, "embedder_dim is %u: the most is %d", o->embedder_dim, LODE_MAX_DIMENSION);
  if (o->embedder_dim && !o->embedder.data)
    return err_set(err, LODE_INVALID, "embedder_dim is given without the name of the embedder");
  if (o->n_counters > CHECK_MAX_COUNTERS || (o->n_counters && !o->counters))
    return err_set(err, LODE_INVALID, "a collection may have up to %d counters", CHECK_MAX_COUNTERS);
  for (size_t i = 0; i < o->n_counters; i++) {
    TRY(iface_check_name(o->counters[i], "the key of a counter", err));
    for (size_t j = 0; j < i; j++)
      if (str_eq(o->counters[i], o->counters[j]))
        return err_set(err, LODE_INVALID, "counters %zu and %zu are the same key", j, i);
  }
  return LODE_OK;
}

#define CHECK_LENGTHS_TEXT                                                                                             \
  "lengths from 1e-12 to 4e18 are possible, and 0: distances of others do not fit in a float. Divide it by its "       \
  "length"

static lode_status check_query_lengths(const lode_query_request *r, lode_error *err) {
  for (size_t i = 0; i < r->n; i++) {
    double length = vec_length(r->vectors + i * r->dimension, r->dimension);
    if (!vec_length_fits(length))
      return err_set_at(err, LODE_INVALID, i, "the vector of query %zu has length %.3g: " CHECK_LENGTHS_TEXT, i,
                        length);
  }
  return LODE_OK;
}

static lode_status check_query_vectors(const lode_query_request *r, lode_error *err) {
  size_t total;
  if (!r->vectors) return err_set(err, LODE_INVALID, "a query by vector needs vectors");
  if (r->dimension < 1 || r->dimension > LODE_MAX_DIMENSION)
    return err_set(err, LODE_INVALID, "the query has %u dimensions: 1 to %d are possible", r->dimension,
                   LODE_MAX_DIMENSION);
  if (mem_mul_overflow(r->n, r->dimension, &total)) return err_set(err, LODE_INVALID, "n is too large: %zu", r->n);
  size_t bad = check_first_not_finite(r->vectors, total);
  if (bad < total)
    return err_set_at(err, LODE_INVALID, bad / r->dimension, "element %zu of query %zu is not a finite number",
                      bad % r->dimension, bad / r->dimension);
  return check_query_lengths(r, err);
}

lode_status iface_check_query(const lode_query_request *r, lode_error *err) {
  TRY(iface_check_include(r->include, err));
  TRY(iface_check_selection(&r->select, err));
  if (r->mode != LODE_BY_VECTOR && r->mode != LODE_BY_TEXT && r->mode != LODE_HYBRID)
    return err_set(err, LODE_INVALID, "there is no mode %d: use LODE_BY_VECTOR, LODE_BY_TEXT or LODE_HYBRID",
                   (int)r->mode);
  if (r->n && r->mode != LODE_BY_TEXT) TRY(check_query_vectors(r, err));
  if (r->n && r->mode != LODE_BY_VECTOR && !r->texts) return err_set(err, LODE_INVALID, "a query by text needs texts");
  if (!(r->target_recall >= 0 && r->target_recall <= 1))
    return err_set(err, LODE_INVALID, "the recall to aim at must be from 0 to 1");
  if (r->effort > LODE_MAX_EFFORT)
    return err_set(err, LODE_INVALID, "effort is %u: the most is %d", r->effort, LODE_MAX_EFFORT);
  if (!isfinite(r->vector_weight) || !isfinite(r->text_weight) || r->vector_weight < 0 || r->text_weight < 0)
    return err_set(err, LODE_INVALID, "weights must be finite and not negative");
  if (r->explain > 1)
    return err_set(err, LODE_INVALID, "explain is %llu: 0 and 1 are possible", (unsigned long long)r->explain);
  return LODE_OK;
}

void iface_query_weights(const lode_query_request *r, double *vector, double *text) {
  bool given = r->vector_weight > 0 || r->text_weight > 0;
  *vector = given ? r->vector_weight : 1;
  *text = given ? r->text_weight : 1;
}

/* ---- Embedding models ---- */

lode_status iface_check_embedder(const iface_vector_spec *handle, const iface_vector_spec *coll, lode_error *err) {
  char mine[256], theirs[256];
  if (!handle->embedder.data) return LODE_OK;
  if (coll->embedder.data && !str_eq(handle->embedder, coll->embedder))
    return err_set(err, LODE_MISMATCH,
                   "the vectors of this collection were made by %s, and this handle uses %s: use that model, or put "
                   "the documents into a new collection and embed them again (text search works as it is)",
                   str_quote(coll->embedder, theirs, sizeof theirs), str_quote(handle->embedder, mine, sizeof mine));
  uint32_t dim = coll->dim ? coll->dim : coll->embedder_dim;
  if (handle->embedder_dim && dim && handle->embedder_dim != dim)
    return err_set(err, LODE_MISMATCH,
                   "the vectors of this collection have %u dimensions, and %s makes %u: use the model that they were "
                   "made with, or a new collection",
                   dim, str_quote(handle->embedder, mine, sizeof mine), handle->embedder_dim);
  return LODE_OK;
}

/* ---- Records ---- */

static lode_status check_record_texts(uint64_t cap, const lode_record *r, size_t i, lode_error *err) {
  char quoted[256];
  if (r->reserved) return err_set_at(err, LODE_REFUSED, i, "reserved of record %zu is set: zero the struct first", i);
  if (!r->id.data || r->id.len == 0)
    return err_set_at(err, LODE_REFUSED, i, "record %zu has no id: give it 1 to %d bytes", i, LODE_MAX_ID_BYTES);
  if (r->id.len > LODE_MAX_ID_BYTES)
    return err_set_at(err, LODE_REFUSED, i, "the id of record %zu has %zu bytes: the most is %d", i, r->id.len,
                      LODE_MAX_ID_BYTES);
  if (!utf8_valid(r->id.data, r->id.len))
    return err_set_at(err, LODE_REFUSED, i, "the id %s of record %zu is not UTF-8",
                      str_quote(r->id, quoted, sizeof quoted), i);
  if (!r->document.data) return LODE_OK;
  if (r->document.len > cap)
    return err_set_at(err, LODE_REFUSED, i,
                      "the document of %s has %zu bytes: the most is %llu (max_document_bytes when opening the store, "
                      "--max-document)",
                      str_quote(r->id, quoted, sizeof quoted), r->document.len, (unsigned long long)cap);
  if (!utf8_valid(r->document.data, r->document.len))
    return err_set_at(err, LODE_REFUSED, i, "the document of %s is not UTF-8: convert it first",
                      str_quote(r->id, quoted, sizeof quoted));
  return LODE_OK;
}

static lode_status check_record_vector(const lode_record *r, size_t i, lode_error *err) {
  char quoted[256];
  if (!r->vector) return LODE_OK;
  if (r->dimension < 1 || r->dimension > LODE_MAX_DIMENSION)
    return err_set_at(err, LODE_REFUSED, i, "the vector of %s has %u dimensions: 1 to %d are possible",
                      str_quote(r->id, quoted, sizeof quoted), r->dimension, LODE_MAX_DIMENSION);
  size_t bad = check_first_not_finite(r->vector, r->dimension);
  if (bad < r->dimension)
    return err_set_at(err, LODE_REFUSED, i, "element %zu of the vector of %s is %s: vectors must be finite", bad,
                      str_quote(r->id, quoted, sizeof quoted), isnan(r->vector[bad]) ? "not a number" : "infinite");
  double length = vec_length(r->vector, r->dimension);
  if (!vec_length_fits(length))
    return err_set_at(err, LODE_REFUSED, i, "the vector of %s has length %.3g: " CHECK_LENGTHS_TEXT,
                      str_quote(r->id, quoted, sizeof quoted), length);
  return LODE_OK;
}

/* Prefixes an error's text with the record's id. */
static lode_status check_name_record(lode_error *err, lode_status st, lode_str id, size_t i) {
  char quoted[256];
  if (!err || st == LODE_NOMEM) return st;
  lode_error inner = *err;
  return err_set_at(err, st, i, "record %s: %s", str_quote(id, quoted, sizeof quoted), inner.text);
}

static lode_status check_record_metadata(iface_batch *b, json_doc *json, strbuf *buf, size_t i, bool allow_null,
                                         lode_error *err) {
  const lode_record *r = &b->records[i];
  if (!r->metadata.data) return LODE_OK;
  lode_status st = meta_check(json, r->metadata, allow_null, err);
  if (st != LODE_OK) return check_name_record(err, st, r->id, i);
  if (json->nodes[0].u.count == 0) return LODE_OK;
  for (uint32_t at = 1; at < json->nodes[0].next; at = json->nodes[at + 1].next)
    if (json->nodes[at + 1].type == JSON_NODE_NULL) b->has_null[i] = true;
  if (json->compact) { /* the caller's own text can be used for the duration of the call */
    b->metadata[i] = r->metadata;
    return LODE_OK;
  }
  buf->len = 0;
  json_put_node(buf, json, 0);
  char *copy = buf->failed ? NULL : mem_arena_copy(&b->arena, buf->data, buf->len);
  if (!copy) return err_nomem(err);
  b->metadata[i] = (lode_str){copy, buf->len};
  return LODE_OK;
}

static lode_status check_ids_distinct(iface_batch *b, lode_error *err) {
  char quoted[256];
  if (b->n) TRY(sort_strings(&b->records->id, sizeof *b->records, b->n, b->order, err));
  for (size_t i = 1; i < b->n; i++) {
    size_t x = b->order[i - 1], y = b->order[i];
    if (str_eq(b->records[x].id, b->records[y].id))
      return err_set_at(err, LODE_REFUSED, y, "the id %s comes twice in the batch, as record %zu and record %zu",
                        str_quote(b->records[y].id, quoted, sizeof quoted), x, y);
  }
  return LODE_OK;
}

lode_status iface_batch_init(iface_batch *b, uint64_t max_document_bytes, const lode_record *records, size_t n,
                             bool allow_null, lode_error *err) {
  json_doc json = {0};
  strbuf buf = {0};
  lode_status st = LODE_OK;
  *b = (iface_batch){.records = records, .n = n};
  mem_arena_init(&b->arena, 0);
  if (n && !records) return err_set(err, LODE_INVALID, "n is %zu, but there are no records", n);
  b->order = mem_calloc(n, sizeof *b->order);
  b->metadata = mem_calloc(n, sizeof *b->metadata);
  b->has_null = mem_calloc(n, sizeof *b->has_null);
  if (!b->order || !b->metadata || !b->has_null) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < n; i++) {
    TRY_GOTO(check_record_texts(max_document_bytes, &records[i], i, err));
    TRY_GOTO(check_record_vector(&records[i], i, err));
    TRY_GOTO(check_record_metadata(b, &json, &buf, i, allow_null, err));
  }
  st = check_ids_distinct(b, err);
done:
  json_release(&json);
  strbuf_release(&buf);
  if (st != LODE_OK) iface_batch_release(b);
  return st;
}

void iface_batch_release(iface_batch *b) {
  mem_free(b->order);
  mem_free(b->metadata);
  mem_free(b->has_null);
  mem_arena_release(&b->arena);
  *b = (iface_batch){0};
}

lode_status iface_batch_check_vectors(const iface_batch *b, const iface_vector_spec *handle,
                                      const iface_vector_spec *coll, uint32_t *dim, lode_error *err) {
  char quoted[256];
  bool checked = false;
  *dim = coll->dim;
  for (size_t i = 0; i < b->n; i++) {
    const lode_record *r = &b->records[i];
    if (!r->vector) continue;
    if (!checked) TRY(iface_check_embedder(handle, coll, err));
    checked = true;
    if (*dim == 0) *dim = coll->embedder_dim ? coll->embedder_dim : r->dimension;
    if (r->dimension != *dim)
      return err_set_at(err, LODE_MISMATCH, i,
                        "the vector of %s has %u dimensions, and the collection's have %u: use the model that those "
                        "were made with, or a new collection",
                        str_quote(r->id, quoted, sizeof quoted), r->dimension, *dim);
  }
  if (!checked) *dim = coll->dim;
  return LODE_OK;
}
