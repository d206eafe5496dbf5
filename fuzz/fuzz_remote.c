/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_remote.c - a cluster that answers anything: no crash, no endless loop, and rows that are whole. The input is
 * answers with NULs between them, each a status of three digits and a body; they are given to the requests in turn, and
 * when there are no more, there is no answer. */
#include "remote/remote.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_REQUESTS = 300 };

static const uint8_t *left;
static size_t n_left;
static unsigned requests;

static void require(bool truth) {
  if (!truth) abort();
}

static lode_status answer(http_client *http, const http_request *request, http_response *response, lode_error *err) {
  (void)http;
  require(request->url && request->method);
  response->status = 0;
  response->retry_after_s = 0;
  response->body.len = 0;
  if (n_left == 0) return err_set(err, LODE_IO, "no more answers");
  require(++requests < MOST_REQUESTS); /* each answer is asked for once or twice, and an empty one ends it all */
  const uint8_t *end = memchr(left, 0, n_left);
  size_t len = end ? (size_t)(end - left) : n_left, head = 0;
  while (head < 3 && head < len && left[head] >= '0' && left[head] <= '9')
    response->status = response->status * 10 + (left[head++] - '0');
  if (head < 3) response->status = 200, head = 0;
  strbuf_add(&response->body, left + head, len - head);
  left += end ? len + 1 : len;
  n_left -= end ? len + 1 : len;
  return response->body.failed ? err_nomem(err) : LODE_OK;
}

static void check(lode_status st, const lode_error *err) {
  if (st != LODE_OK) require(err->text[0] && memchr(err->text, 0, sizeof err->text));
}

static void check_rows(lode_status st, lode_result **given, bool measured, const lode_error *err) {
  lode_result *rows = *given;
  check(st, err);
  require((st == LODE_OK) == (rows != NULL));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    require(row->id.data && row->dimension <= LODE_MAX_DIMENSION && (row->dimension == 0) == (row->vector == NULL));
    if (measured) require(!isnan(row->distance));
  }
  lode_result_free(rows);
}

static void ask(lode_collection *c) {
  lode_error err = {.record = LODE_NO_RECORD};
  lode_str ids[] = {STR_LIT("a"), STR_LIT("b")}, text = STR_LIT("red apple");
  const float v[] = {1, 0, 0};
  lode_result *rows;
  lode_facet_list *facets;
  uint64_t n;
  check_rows(lode_get(c, &(lode_get_request){.include = LODE_ALL, .limit = 300}, &rows, &err), &rows, false, &err);
  check_rows(lode_get(c, &(lode_get_request){.select = {.ids = ids, .n_ids = 2}, .include = LODE_ALL}, &rows, &err),
             &rows, false, &err);
  lode_query_request q = {.vectors = v, .dimension = 3, .n = 1, .k = 2, .include = LODE_ALL};
  check_rows(lode_query(c, &q, &rows, &err), &rows, true, &err);
  q.mode = LODE_BY_TEXT;
  q.texts = &text;
  check_rows(lode_query(c, &q, &rows, &err), &rows, false, &err);
  q.mode = LODE_HYBRID;
  q.select.where = STR_LIT("{\"k\":1}");
  check_rows(lode_query(c, &q, &rows, &err), &rows, false, &err);
  check(lode_count(c, &n, &err), &err);
  check(lode_facets(c, STR_LIT("k"), (lode_str){0}, 0, &facets, &err), &err);
  lode_facet_list_free(facets);
  check(
      lode_upsert(c, NULL, &(lode_record){.id = ids[0], .document = text, .vector = v, .dimension = 3}, 1, NULL, &err),
      &err);
  check(lode_delete(c, NULL, &(lode_selection){.where = STR_LIT("{\"k\":1}")}, NULL, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lode_open_options options = {.create = true, .busy_ms = 1, .memory_bytes = 16 << 20};
  lode_error err = {.record = LODE_NO_RECORD};
  lode_store *store;
  lode_collection *c;
  lode_collection_list *list;
  left = data;
  n_left = size;
  requests = 0;
  remote_transport = answer;
  lode_status st = lode_open("qdrant://127.0.0.1:1/fuzz", &options, &store, &err);
  check(st, &err);
  if (st != LODE_OK) return 0;
  if (lode_collection_open(store, STR_LIT("c"), &(lode_collection_options){.create = true, .metric = LODE_COSINE}, &c,
                           &err) == LODE_OK) {
    ask(c);
    lode_collection_close(c);
  }
  check(lode_collections(store, &list, &err), &err);
  lode_collection_list_free(list);
  check(lode_verify(store, NULL, NULL, (lode_progress){0}, &err), &err);
  lode_close(store);
  return 0;
}
