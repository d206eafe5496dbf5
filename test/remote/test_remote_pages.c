/* SPDX-License-Identifier: Apache-2.0 */
/* test_remote_pages.c - pages of records with the same place in the order, the explanation of a query, memory that runs
 * out, and a transaction of another engine. The cluster is a function of the test that takes the place of HTTP: it has
 * one collection, of ROWS records with the same n. */
#include "remote/remote_select.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3000, AFTER = REMOTE_MAX_SAME_PLACE };

static void put_points(strbuf *out, size_t n) {
  strbuf_addstr(out, "{\"result\":{\"points\":[");
  for (size_t i = 0; i < n; i++)
    strbuf_addf(out, "%s{\"id\":%zu,\"score\":%zu,\"payload\":{\"id\":\"r%04zu\",\"n\":7,\"seq\":7,\"p\":true}}",
                i ? "," : "", i, 2 * ROWS - i, i);
  strbuf_addstr(out, "]}}");
}

static lode_status answer(http_client *http, const http_request *request, http_response *response, lode_error *err) {
  static const char entry[] =
      "{\"id\":1,\"payload\":{\"uid\":\"5\",\"generation\":1,\"metric\":\"l2\",\"name\":\"c\"}}";
  strbuf *out = &response->body;
  (void)http;
  response->status = 200;
  response->retry_after_s = 0;
  out->len = 0;
  if (strstr(request->url, "/collections/lode-registry/points/scroll")) {
    strbuf_addf(out, "{\"result\":{\"points\":[%s],\"next_page_offset\":null}}", entry);
  } else if (strstr(request->url, "/collections/lode-registry/points")) {
    strbuf_addf(out, "{\"result\":[%s]}", entry);
  } else if (strstr(request->url, "/collections/lode-5-1/points/scroll") ||
             strstr(request->url, "/collections/lode-5-1/points/query")) {
    size_t limit = strtoul(strstr(request->body.data, "\"limit\":") + 8, NULL, 10);
    put_points(out, limit < ROWS ? limit : ROWS);
  } else if (strstr(request->url, "/points/count")) {
    strbuf_addf(out, "{\"result\":{\"count\":%d}}", ROWS);
  } else {
    strbuf_addstr(out, "{\"result\":{\"status\":\"green\"}}");
  }
  return out->failed ? err_nomem(err) : LODE_OK;
}

static void open_cluster(lode_store **store, lode_collection **c) {
  lode_error err;
  remote_transport = answer;
  lode_status st = lode_open("qdrant://127.0.0.1:1", NULL, store, &err);
  if (st == LODE_UNSUPPORTED) test_skip("libcurl is not installed");
  OK(st);
  OK(lode_collection_open(*store, STR_LIT("c"), NULL, c, &err));
}

/* Reads pages until the end; returns the status of the last one. Each record must come once, in order. */
static lode_status read_pages(lode_collection *c, size_t limit, size_t *n, lode_error *err) {
  lode_get_request request = {.limit = limit};
  *n = 0;
  do {
    lode_result *page;
    lode_status st = lode_get(c, &request, &page, err);
    if (st != LODE_OK) return st;
    for (size_t i = 0; i < lode_result_count(page); i++, (*n)++) {
      char id[16];
      snprintf(id, sizeof id, "r%04zu", *n);
      CHECKF(str_eq(lode_result_at(page, i)->id, str_of(id)), "%zu of pages of %zu is %s", *n, limit,
             lode_result_at(page, i)->id.data);
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
  } while (request.after);
  return LODE_OK;
}

TEST(pages_end_among_records_of_one_place) {
  static const size_t limits[] = {0, 100, 999, AFTER, ROWS - 1 - AFTER, ROWS, ROWS + 1};
  lode_store *store;
  lode_collection *c;
  lode_error err;
  size_t n;
  open_cluster(&store, &c);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    size_t last = limits[i] ? (ROWS - 1) / limits[i] * limits[i] : 0; /* where the last page begins */
    if (last <= AFTER) {
      OK(read_pages(c, limits[i], &n, &err));
      CHECK(n == ROWS);
    } else {
      FAILS(LODE_LIMIT, read_pages(c, limits[i], &n, &err));
    }
  }
  FAILS(LODE_LIMIT, read_pages(c, AFTER + 1, &n, &err));
  CHECK(n == 0);
  lode_collection_close(c);
  lode_close(store);
}

/* What Qdrant was asked for, and how many of the points that it returned match here. */
TEST(a_query_is_explained) {
  lode_store *store;
  lode_collection *c;
  lode_result *r;
  lode_error err;
  lode_str text = STR_LIT("words");
  lode_query_request request = {.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 5, .explain = 1};
  open_cluster(&store, &c);
  OK(lode_query(c, &request, &r, &err));
  const char *json = lode_result_explain(r).data;
  CHECKF(strstr(json, "{\"step\":\"query\",\"method\":\"by text\",\"queries\":1,\"k\":5},"
                      "{\"step\":\"search\",\"method\":\"words, by Qdrant\",\"query\":0,\"limit\":9,\"returned\":9,"
                      "\"matched\":9,\"ms\":"),
         "%s", json);
  lode_result_free(r);
  request.select.where = STR_LIT("{\"lang\":\"c\"}"); /* nothing matches: more and more are asked for */
  OK(lode_query(c, &request, &r, &err));
  json = lode_result_explain(r).data;
  CHECKF(lode_result_count(r) == 0 && strstr(json, "\"filter\":\"{") && strstr(json, "\"limit\":14,\"returned\":14,") &&
             strstr(json, "\"limit\":3584,\"returned\":3000,\"matched\":0,"),
         "%s", json);
  lode_result_free(r);
  request.explain = 0;
  OK(lode_query(c, &request, &r, &err));
  CHECK(!lode_result_explain(r).data);
  lode_result_free(r);
  lode_collection_close(c);
  lode_close(store);
}

static _Atomic unsigned allocs_left;
static bool count_down(void) {
  if (atomic_load(&allocs_left) == 0) return false;
  atomic_fetch_sub(&allocs_left, 1);
  return true;
}

TEST(memory_that_runs_out_is_a_status) {
  lode_store *store;
  lode_collection *c;
  lode_error err;
  open_cluster(&store, &c);
  lode_status st = LODE_NOMEM;
  for (unsigned n = 0; st != LODE_OK; n++) {
    CHECK(n < 1000);
    allocs_left = n;
    mem_alloc_hook = count_down;
    st = lode_optimize(store, (lode_progress){0}, &err);
    mem_alloc_hook = NULL;
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "%u allocations: %s", n, err.text);
  }
  lode_collection_close(c);
  lode_close(store);
}

TEST(a_transaction_of_an_embedded_store_is_refused) {
  lode_store *store, *embedded;
  lode_collection *c;
  lode_txn *txn;
  lode_error err;
  lode_selection all = {.where = STR_LIT("{}")};
  open_cluster(&store, &c);
  OK(lode_open(test_folder(), &(lode_open_options){.create = true}, &embedded, &err));
  OK(lode_begin(embedded, &txn, &err));
  FAILS(LODE_INVALID, lode_upsert(c, txn, &(lode_record){.id = STR_LIT("a")}, 1, NULL, &err));
  FAILS(LODE_INVALID, lode_delete(c, txn, &all, NULL, &err));
  lode_rollback(txn);
  lode_close(embedded);
  lode_collection_close(c);
  lode_close(store);
}
