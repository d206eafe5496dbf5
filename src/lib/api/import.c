/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - imports records from JSON lines, .npy or .fvecs, in batches of one commit each.
 *
 * The result is the same as writing the records one by one: an id that occurs again starts a new batch, so it does not
 * matter where batches end. The exception is an add that fails on existing ids, which refuses the batch instead. A line
 * is {"id", "document", "metadata", "embedding"}; only the id is required, null is the same as absent, and other keys
 * are refused rather than lost. The embedding is parsed separately, straight to floats, so that an exported float32 is
 * imported with the same bits.
 */
#include "base/json.h"
#include "base/matrix.h"
#include "iface/iface.h"
#include "api/import_input.h"
#include "api/sized.h"

enum { IMPORT_DEFAULT_BATCH = 1000, IMPORT_MAX_BATCH = 1000000 };

typedef struct import_job {
  lode_collection *handle;
  const lode_open_options *options;
  const lode_import_request *request;
  lode_import_report report;
  api_input in;
  size_t batch, max_line;
  uint64_t line; /* the current one, from 0 */
  lode_record *records;
  uint64_t *lines; /* line of each record in the batch */
  size_t n, cap_records, cap_lines;
  uint64_t *seen; /* hashes of the batch's ids; open addressing, 0: free */
  size_t n_seen;
  bool *missing;   /* per record of the batch; NULL if not requested */
  mem_arena arena; /* what the records point to */
  json_doc json;
  strbuf rest;      /* a line without its embedding */
  strbuf text, row; /* metadata; a vector, or its JSON text */
  float *vector;
} import_job;

/* Adds the line, or the row of a matrix, to the error. */
static lode_status import_err_at_line(const import_job *m, uint64_t line, lode_status st, lode_error *err) {
  if (!err || st == LODE_OK || st == LODE_NOMEM) return st;
  lode_error inner = *err;
  const char *unit = m->request->format == LODE_JSONL ? "line" : "row";
  return err_set_at(err, st, (size_t)line, "%s %llu: %s", unit, (unsigned long long)line + 1, inner.text);
}

/* ---- Batches ---- */

static lode_status import_write_batch(import_job *m, lode_progress progress, lode_error *err) {
  lode_write_result result = {0};
  lode_status st;
  float *vectors = NULL;
  if (m->n == 0) return LODE_OK;
  if (m->request->embedder) TRY(lode_embed_records(m->request->embedder, m->records, m->n, &vectors, err));
  switch (m->request->mode) {
    case LODE_IMPORT_UPSERT: st = lode_upsert(m->handle, NULL, m->records, m->n, &result, err); break;
    case LODE_IMPORT_UPDATE: st = lode_update(m->handle, NULL, m->records, m->n, m->missing, &result, err); break;
    default: st = lode_add(m->handle, NULL, m->records, m->n, m->request->on_existing, &result, err);
  }
  lode_vectors_free(vectors);
  if (st != LODE_OK) return err && err->record < m->n ? import_err_at_line(m, m->lines[err->record], st, err) : st;
  for (size_t i = 0; m->missing && i < m->n; i++)
    if (m->missing[i]) m->request->missing(m->request->missing_ctx, m->records[i].id);
  m->report.written += result.written;
  m->report.skipped += result.skipped;
  m->n = 0;
  memset(m->seen, 0, m->n_seen * sizeof *m->seen);
  mem_arena_reset(&m->arena);
  if (!err_go_on(progress, "importing", m->report.lines, 0))
    return err_set(err, LODE_CANCELLED, "cancelled after %llu records: they stay", (unsigned long long)m->report.lines);
  return LODE_OK;
}

/* True if the id, or one with the same hash, is already in the batch; otherwise adds it to `seen`. */
static bool import_is_repeated(import_job *m, lode_str id) {
  uint64_t hash = hash_bytes(id.data, id.len) | 1;
  size_t at = (hash >> 1) & (m->n_seen - 1);
  for (; m->seen[at]; at = (at + 1) & (m->n_seen - 1))
    if (m->seen[at] == hash) return true;
  m->seen[at] = hash;
  return false;
}

static bool import_is_full(const import_job *m) {
  return m->n >= m->batch || m->arena.used > m->options->memory_bytes / 4;
}

/* Adds a copy of a record to the batch. */
static lode_status import_add(import_job *m, lode_record r, lode_progress progress, lode_error *err) {
  bool fails = m->request->mode == LODE_IMPORT_ADD && m->request->on_existing == LODE_FAIL_EXISTING;
  if (r.id.data && !fails && import_is_repeated(m, r.id)) {
    TRY(import_write_batch(m, progress, err));
    (void)import_is_repeated(m, r.id);
  }
  if (!mem_grow(&m->records, &m->cap_records, m->n + 1, sizeof *m->records) ||
      !mem_grow(&m->lines, &m->cap_lines, m->n + 1, sizeof *m->lines))
    return err_nomem(err);
  lode_str *parts[] = {&r.id, &r.document, &r.metadata};
  for (size_t i = 0; i < 3; i++)
    if (parts[i]->data && !(parts[i]->data = mem_arena_copy(&m->arena, parts[i]->data, parts[i]->len)))
      return err_nomem(err);
  if (r.vector && !(r.vector = mem_arena_copy(&m->arena, r.vector, (size_t)r.dimension * sizeof(float))))
    return err_nomem(err);
  m->lines[m->n] = m->line;
  m->records[m->n++] = r;
  m->report.lines++;
  return import_is_full(m) ? import_write_batch(m, progress, err) : LODE_OK;
}

/* ---- Lines ---- */

static bool import_is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Finds the array that is the value of "embedding" in the object, without parsing the rest. Only a guess: if it is
 * wrong or the text is not JSON, the parser notices. */
static bool import_find_embedding(lode_str line, lode_str *array) {
  size_t depth = 0, key = 0, key_len = 0;
  for (size_t i = 0; i < line.len; i++) {
    char c = line.data[i];
    if (c == '"') {
      key = i + 1;
      for (i++; i < line.len && line.data[i] != '"'; i++) i += line.data[i] == '\\';
      key_len = i - key;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      if (depth) depth--;
    } else if (c == ':' && depth == 1 && key_len == 9 && memcmp(line.data + key, "embedding", 9) == 0) {
      for (i++; i < line.len && import_is_space(line.data[i]); i++) {}
      const char *end = i < line.len && line.data[i] == '[' ? memchr(line.data + i, ']', line.len - i) : NULL;
      *array = (lode_str){line.data + i, end ? (size_t)(end - line.data) - i + 1 : 0};
      return end != NULL;
    }
  }
  return false;
}

static lode_status import_wrong(lode_error *err, const char *what) { return err_set(err, LODE_REFUSED, "%s", what); }

/* Reads one key of the object. *floats: the JSON text of the embedding, if it was not removed before. */
static lode_status import_take_key(import_job *m, lode_str key, uint32_t node, unsigned *seen, lode_record *r,
                                   lode_str *floats, lode_error *err) {
  static const char *const names[] = {"id", "document", "metadata", "embedding"};
  const json_node *v = &m->json.nodes[node];
  char quoted[256];
  unsigned k = 0;
  while (k < 4 && !str_eq(key, str_of(names[k]))) k++;
  if (k == 4)
    return err_set(err, LODE_REFUSED, "the key %s is not known: id, document, metadata and embedding are",
                   str_quote(key, quoted, sizeof quoted));
  if (*seen & 1u << k) return err_set(err, LODE_REFUSED, "the key \"%s\" comes twice", names[k]);
  *seen |= 1u << k;
  if (v->type == JSON_NODE_NULL) return LODE_OK;
  if (k < 2) {
    if (v->type != JSON_NODE_STRING) return err_set(err, LODE_REFUSED, "\"%s\" must be a string", names[k]);
    *(k == 0 ? &r->id : &r->document) = v->u.s;
    return LODE_OK;
  }
  if (k == 2 && v->type != JSON_NODE_OBJECT) return import_wrong(err, "\"metadata\" must be an object");
  if (k == 3 && v->type != JSON_NODE_ARRAY) return import_wrong(err, "\"embedding\" must be an array of numbers");
  strbuf *buf = k == 2 ? &m->text : &m->row;
  buf->len = 0;
  json_put_node(buf, &m->json, node);
  if (buf->failed) return err_nomem(err);
  *(k == 2 ? &r->metadata : floats) = (lode_str){buf->data, buf->len};
  return LODE_OK;
}

static lode_status import_parse_object(import_job *m, lode_str text, lode_record *r, lode_str *floats,
                                       lode_error *err) {
  unsigned seen = 0;
  lode_status st = json_parse(&m->json, text, NULL, err);
  if (st != LODE_OK) {
    if (st != LODE_NOMEM && err) err->status = LODE_REFUSED;
    return st == LODE_NOMEM ? st : LODE_REFUSED;
  }
  const json_node *top = &m->json.nodes[0];
  if (top->type != JSON_NODE_OBJECT)
    return import_wrong(err, "an object is wanted: {\"id\": ..., \"document\": ..., ...}");
  for (uint32_t at = 1; at < top->next; at = m->json.nodes[at + 1].next)
    TRY(import_take_key(m, m->json.nodes[at].u.s, at + 1, &seen, r, floats, err));
  return r->id.data ? LODE_OK : import_wrong(err, "the \"id\" is missing");
}

static lode_status import_bad_embedding(const lode_record *r, const lode_error *why, lode_error *err) {
  char quoted[256];
  return err_set(err, LODE_REFUSED, "record %s: the embedding cannot be used: %s",
                 str_quote(r->id, quoted, sizeof quoted), why->text);
}

static lode_status import_parse_line(import_job *m, lode_str line, lode_record *r, lode_error *err) {
  lode_str floats = {NULL, 0}, text = line;
  size_t dim;
  if (import_find_embedding(line, &floats)) {
    size_t before = (size_t)(floats.data - line.data);
    m->rest.len = 0;
    strbuf_add(&m->rest, line.data, before);
    strbuf_addstr(&m->rest, "null");
    strbuf_add(&m->rest, floats.data + floats.len, line.len - before - floats.len);
    if (m->rest.failed) return err_nomem(err);
    text = (lode_str){m->rest.data, m->rest.len};
  } else {
    floats = (lode_str){NULL, 0};
  }
  lode_status st = import_parse_object(m, text, r, &floats, err);
  if (st == LODE_REFUSED && text.data != line.data) {
    /* The guess may be wrong; and an error must name a byte of the original line. */
    *r = (lode_record){0};
    floats = (lode_str){NULL, 0};
    st = import_parse_object(m, line, r, &floats, err);
  }
  if (st != LODE_OK || !floats.data) return st;
  lode_error why;
  st = json_parse_floats(floats, m->vector, LODE_MAX_DIMENSION, &dim, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return import_bad_embedding(r, &why, err);
  if (dim == 0) return import_wrong(err, "\"embedding\" is an empty array: leave it out for a record without a vector");
  r->vector = m->vector;
  r->dimension = (uint32_t)dim;
  return LODE_OK;
}

static lode_status import_lines(import_job *m, lode_progress progress, lode_error *err) {
  for (m->line = 0;; m->line++) {
    lode_str line;
    lode_record r = {0};
    bool more;
    lode_status st = api_input_line(&m->in, m->max_line, &line, &more, err);
    if (st != LODE_OK) return import_err_at_line(m, m->line, st, err);
    if (!more) return LODE_OK;
    bool has_bom = m->line == 0 && line.len >= 3 && memcmp(line.data, "\xEF\xBB\xBF", 3) == 0;
    if (has_bom) line = (lode_str){line.data + 3, line.len - 3};
    while (line.len && import_is_space(line.data[line.len - 1])) line.len--;
    if (line.len == 0) continue;
    st = import_parse_line(m, line, &r, err);
    if (st != LODE_OK) return import_err_at_line(m, m->line, st, err);
    TRY(import_add(m, r, progress, err));
  }
}

/* ---- Matrices ---- */

static lode_status import_rows(import_job *m, lode_progress progress, lode_error *err) {
  vec_matrix matrix = {.format = m->request->format, .read = api_input_bytes, .ctx = &m->in};
  TRY(vec_matrix_begin(&matrix, err));
  for (m->line = 0;; m->line++) {
    char id[24];
    bool more;
    uint64_t number;
    lode_record r = {0};
    m->row.len = 0;
    lode_status st = vec_matrix_next(&matrix, &m->row, &r.dimension, &more, err);
    if (st != LODE_OK) return import_err_at_line(m, m->line, st, err);
    if (!more) return LODE_OK;
    if (__builtin_add_overflow(m->request->first_id, m->line, &number))
      return import_err_at_line(m, m->line,
                                err_set(err, LODE_LIMIT, "the ids exceed 64 bits: choose a smaller first_id"), err);
    int len = snprintf(id, sizeof id, "%llu", (unsigned long long)number);
    r.id = (lode_str){id, (size_t)len};
    r.vector = (const float *)(const void *)m->row.data;
    TRY(import_add(m, r, progress, err));
  }
}

/* ---- The public function ---- */

static lode_status import_check_request(const lode_import_request *r, lode_error *err) {
  if (r->format != LODE_JSONL && r->format != LODE_NPY && r->format != LODE_FVECS)
    return err_set(err, LODE_INVALID, "there is no format %d: use LODE_JSONL, LODE_NPY or LODE_FVECS", (int)r->format);
  if (r->mode != LODE_IMPORT_ADD && r->mode != LODE_IMPORT_UPSERT && r->mode != LODE_IMPORT_UPDATE)
    return err_set(err, LODE_INVALID, "there is no import mode %d", (int)r->mode);
  if (!r->read) return err_set(err, LODE_INVALID, "an import needs a function that reads: set `read`");
  if (r->batch > IMPORT_MAX_BATCH)
    return err_set(err, LODE_INVALID, "batch is %zu: the most is %d", r->batch, IMPORT_MAX_BATCH);
  return LODE_OK;
}

static lode_status import_prepare(import_job *m, lode_error *err) {
  TRY(api_input_init(&m->in, m->request->read, m->request->ctx, err));
  m->batch = m->request->batch ? m->request->batch : IMPORT_DEFAULT_BATCH;
  /* A byte of text takes up to six bytes as JSON. */
  m->max_line = (size_t)m->options->max_document_bytes * 6 + LODE_MAX_METADATA_BYTES * 6u + LODE_MAX_DIMENSION * 32u +
                LODE_MAX_ID_BYTES * 6u;
  for (m->n_seen = 64; m->n_seen < m->batch * 2; m->n_seen *= 2) {}
  m->seen = mem_calloc(m->n_seen, sizeof *m->seen);
  m->vector = mem_alloc((size_t)LODE_MAX_DIMENSION * sizeof *m->vector);
  bool wants_missing = m->request->mode == LODE_IMPORT_UPDATE && m->request->missing;
  if (wants_missing) m->missing = mem_calloc(m->batch, sizeof *m->missing);
  if (wants_missing && !m->missing) return err_nomem(err);
  return m->seen && m->vector ? LODE_OK : err_nomem(err);
}

static lode_status import_run(import_job *m, lode_progress progress, lode_error *err) {
  lode_store *store = m->handle->store;
  lode_status st;
  mem_arena_init(&m->arena, 0);
  TRY_GOTO(import_check_request(m->request, err));
  TRY_GOTO(import_prepare(m, err));
  TRY_GOTO(m->request->format == LODE_JSONL ? import_lines(m, progress, err) : import_rows(m, progress, err));
  TRY_GOTO(import_write_batch(m, progress, err));
  if (store->engine->loaded) store->engine->loaded(store, m->report.written, progress);
done:
  api_input_release(&m->in);
  mem_free(m->records);
  mem_free(m->lines);
  mem_free(m->seen);
  mem_free(m->missing);
  mem_free(m->vector);
  mem_arena_release(&m->arena);
  json_release(&m->json);
  strbuf_release(&m->rest);
  strbuf_release(&m->text);
  strbuf_release(&m->row);
  return st;
}

lode_status lode_import_sized(lode_collection *collection, const lode_import_request *request, size_t request_size,
                              lode_progress progress, lode_import_report *report, size_t report_size, lode_error *err) {
  lode_import_request own;
  err_clear(err);
  import_job m = {.handle = collection, .request = &own};
  if (report) TRY(api_check_size(report_size, "lode_import_report", err));
  api_give(report, report_size, &m.report, sizeof m.report);
  API_REQUIRE(collection, err);
  API_REQUIRE(request, err);
  TRY(API_TAKE(&own, request, request_size, lode_import_request, err));
  m.options = collection->store->options;
  lode_status st = import_run(&m, progress, err);
  api_give(report, report_size, &m.report, sizeof m.report);
  return st;
}
