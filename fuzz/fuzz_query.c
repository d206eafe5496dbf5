/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_query.c - any query request to a small store: answered or refused, and the answer is one.
 *
 * Input: a JSON object with any of "where", "where_document", "text", "vector", "k" and "ids". What comes back must be
 * in order, without repetition, no more than k; each hit must match the filter by itself (asked for by its id), and
 * with k large enough there must be as many as a plain get of the filter finds.
 */
#include "base/json.h"
#include "scratch.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 40, DIM = 4, MOST_IDS = 16 };

static lode_store *store;
static lode_collection *things;

/* ---- The store: half of it indexed ---- */

static void add_record(unsigned i) {
  char id[32], document[120], metadata[160];
  float v[DIM] = {(float)(i % 5), (float)(i % 3) - 1, (float)i / 8, i % 11 ? 1 : 0};
  lode_error err;
  snprintf(id, sizeof id, "id-%u", i);
  snprintf(document, sizeof document, "document %u: getUserName in src/file%u.c, alpha%s", i, i % 7,
           i % 2 ? " beta" : "\ngamma");
  snprintf(metadata, sizeof metadata,
           "{\"n\":%u,\"half\":%u.5,\"path\":\"src/file%u.c\",\"odd\":%s,\"tags\":[\"t%u\",\"all\"]}", i, i, i % 7,
           i % 2 ? "true" : "false", i % 3);
  lode_record r = {.id = str_of(id), .vector = i % 9 ? v : NULL, .dimension = DIM};
  if (i % 6) r.document = str_of(document);
  if (i % 8) r.metadata = str_of(metadata);
  REQUIRE(lode_add(things, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err) == LODE_OK);
}

static void prepare(void) {
  static const lode_open_options options = {.create = true, .no_background = true, .page_bytes = 4096};
  static const lode_collection_options create = {.create = true, .metric = LODE_COSINE};
  char path[300];
  lode_error err;
  if (store) return;
  scratch_begin();
  scratch_store(path, sizeof path);
  REQUIRE(lode_open(path, &options, &store, &err) == LODE_OK);
  REQUIRE(lode_collection_open(store, str_of("things"), &create, &things, &err) == LODE_OK);
  for (unsigned i = 0; i < RECORDS; i++) {
    add_record(i);
    if (i == RECORDS / 2) REQUIRE(lode_optimize(store, (lode_progress){0}, &err) == LODE_OK);
  }
}

/* ---- The request ---- */

typedef struct request {
  json_doc json;
  strbuf where, where_document;
  lode_str ids[MOST_IDS];
  float vector[64];
  lode_query_request query;
  lode_str text;
} request;

static lode_str as_text(const request *r, uint32_t node, strbuf *buf) {
  if (!node) return (lode_str){NULL, 0};
  json_put_node(buf, &r->json, node);
  return (lode_str){buf->data, buf->len};
}

static uint32_t value_of(const request *r, const char *key) { return json_get(&r->json, 0, str_of(key)); }

static void read_ids(request *r, uint32_t node) {
  const json_node *nodes = r->json.nodes;
  size_t n = 0;
  if (!node || nodes[node].type != JSON_NODE_ARRAY) return;
  for (uint32_t e = node + 1; e < nodes[node].next && n < MOST_IDS; e = nodes[e].next)
    if (nodes[e].type == JSON_NODE_STRING) r->ids[n++] = nodes[e].u.s;
  r->query.select.ids = r->ids;
  r->query.select.n_ids = n;
}

static void read_vector(request *r, uint32_t node) {
  strbuf text = {0};
  size_t dim;
  if (node && json_parse_floats(as_text(r, node, &text), r->vector, 64, &dim, NULL) == LODE_OK && dim) {
    r->query.vectors = r->vector;
    r->query.dimension = (uint32_t)dim;
  }
  strbuf_release(&text);
}

static bool read_request(request *r, lode_str text) {
  if (json_parse(&r->json, text, NULL, NULL) != LODE_OK || r->json.nodes[0].type != JSON_NODE_OBJECT) return false;
  const json_node *nodes = r->json.nodes;
  uint32_t k = value_of(r, "k"), words = value_of(r, "text");
  r->query = (lode_query_request){.n = 1, .k = k && nodes[k].type == JSON_NODE_INT ? (size_t)nodes[k].u.i : 10};
  r->query.select.where = as_text(r, value_of(r, "where"), &r->where);
  r->query.select.where_document = as_text(r, value_of(r, "where_document"), &r->where_document);
  read_ids(r, value_of(r, "ids"));
  read_vector(r, value_of(r, "vector"));
  if (words && nodes[words].type == JSON_NODE_STRING) {
    r->text = nodes[words].u.s;
    r->query.texts = &r->text;
  }
  r->query.mode = r->query.vectors && r->query.texts ? LODE_HYBRID : r->query.texts ? LODE_BY_TEXT : LODE_BY_VECTOR;
  return true;
}

static void release(request *r) {
  json_release(&r->json);
  strbuf_release(&r->where);
  strbuf_release(&r->where_document);
}

/* ---- What must be true ---- */

static bool in_order(const lode_row *a, const lode_row *b, bool by_distance) {
  double x = by_distance ? a->distance : -a->score, y = by_distance ? b->distance : -b->score;
  return x < y || (x == y && str_cmp(a->id, b->id) < 0);
}

static bool matches(const request *r, lode_str id) {
  lode_get_request one = {
      .select = {
          .ids = &id, .n_ids = 1, .where = r->query.select.where, .where_document = r->query.select.where_document}};
  lode_result *rows;
  REQUIRE(lode_get(things, &one, &rows, NULL) == LODE_OK);
  bool found = lode_result_count(rows) == 1;
  lode_result_free(rows);
  return found;
}

static bool was_asked_for(const request *r, lode_str id) {
  for (size_t i = 0; i < r->query.select.n_ids; i++)
    if (str_eq(r->query.select.ids[i], id)) return true;
  return !r->query.select.ids;
}

static void check_hits(const request *r, const lode_result *rows) {
  bool by_distance = r->query.mode == LODE_BY_VECTOR;
  size_t n = lode_result_count(rows);
  REQUIRE(n <= r->query.k && n <= RECORDS);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, i);
    REQUIRE(row->rank == i && row->query == 0);
    REQUIRE(!by_distance || !isnan(row->distance));
    REQUIRE(i == 0 || in_order(lode_result_at(rows, i - 1), row, by_distance));
    REQUIRE(was_asked_for(r, row->id) && matches(r, row->id));
  }
}

/* Never fewer than exist. */
static void check_all_found(const request *r, const lode_result *rows) {
  lode_get_request get = {.select = r->query.select, .include = LODE_VECTOR};
  lode_result *all;
  size_t wanted = 0;
  REQUIRE(lode_get(things, &get, &all, NULL) == LODE_OK);
  for (size_t i = 0; i < lode_result_count(all); i++) {
    bool repeated = false;
    for (size_t j = 0; j < i && !repeated; j++)
      repeated = str_eq(lode_result_at(all, j)->id, lode_result_at(all, i)->id);
    wanted += lode_result_at(all, i)->vector && !repeated;
  }
  REQUIRE(lode_result_count(rows) == (wanted < r->query.k ? wanted : r->query.k));
  lode_result_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  request r = {0};
  lode_result *rows = NULL;
  lode_error err = {0};
  prepare();
  if (read_request(&r, (lode_str){(const char *)data, size})) {
    lode_status st = lode_query(things, &r.query, &rows, &err);
    if (st == LODE_OK) {
      check_hits(&r, rows);
      if (r.query.mode == LODE_BY_VECTOR) check_all_found(&r, rows);
    } else {
      REQUIRE(rows == NULL && err.text[0] && err.status == st);
      REQUIRE(st == LODE_INVALID || st == LODE_LIMIT || st == LODE_MISMATCH);
    }
    lode_result_free(rows);
  }
  release(&r);
  return 0;
}
