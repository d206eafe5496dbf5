/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_read.c - lode.h as its users meet it: getting, facets, and what a query refuses. */
#include "support/api_kit.h"

#include <math.h>
#include <stdlib.h>

/* ---- Reading ---- */

TEST(texts_are_matched_without_a_store) {
  lode_error err;
  lode_str texts[] = {S("one two"), S("three"), S(""), {NULL, 0}, S("\xff")};
  bool m[5] = {true, true, true, true, true};
  OK(lode_match_texts(S("{\"$contains\":\"two\"}"), texts, 5, m, &err));
  CHECK(m[0] && !m[1] && !m[2] && !m[3] && !m[4]);
  OK(lode_match_texts(S("{\"$not\":{\"$regex\":\"^t.*e$\"}}"), texts, 3, m, &err));
  CHECK(m[0] && !m[1] && m[2]);
  OK(lode_match_texts((lode_str){0}, texts, 4, m, &err));
  CHECK(m[0] && m[1] && m[2] && m[3]);
  m[0] = true;
  FAILS(LODE_INVALID, lode_match_texts(S("{\"$regex\":\"(\"}"), texts, 4, m, &err));
  FAILS(LODE_INVALID, lode_match_texts(S("{\"$regex\":\".\"}"), texts, 5, m, &err));
  CHECK(!m[0] && strstr(err.text, "text 4 is not valid UTF-8"));
  OK(lode_match_texts(S("{\"$contains\":\"x\"}"), NULL, 0, NULL, &err));
}

TEST(get_selects_orders_and_pages) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  for (int i = 9; i >= 0; i--) { /* 9 is inserted first */
    char id[24], meta[48];
    snprintf(id, sizeof id, "%d", i);
    snprintf(meta, sizeof meta, "{\"n\": %d}", i);
    OK(lode_add(c, NULL, &(lode_record){.id = str(id), .metadata = str(meta)}, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    expect_ids(c, (lode_get_request){0}, "9 8 7 6 5 4 3 2 1 0");
    expect_ids(c, (lode_get_request){.limit = 3, .offset = 2}, "7 6 5");
    expect_ids(c, (lode_get_request){.offset = 20}, "");
    lode_str ids[] = {S("3"), S("x"), S("5"), S("3"), S("1")};
    expect_ids(c, (lode_get_request){.select = {.ids = ids, .n_ids = 5}}, "3 5 3 1");
    expect_ids(c,
               (lode_get_request){
                   .select = {.ids = ids, .n_ids = 5, .where = S("{\"n\": {\"$gt\": 1}}")}, .limit = 2, .offset = 1},
               "5 3");
    expect_ids(c, (lode_get_request){.select = {.ids = ids, .n_ids = 0}}, "");
    expect_ids(c, (lode_get_request){.select.where = S("{\"n\": {\"$in\": [4, 8, 77]}}")}, "8 4");

    /* Paging, with and without a filter and by ids, brings each row once. */
    lode_get_request pages[] = {{.limit = 3},
                                {.limit = 3, .select.where = S("{\"n\": {\"$gte\": 3}}")},
                                {.limit = 2, .select = {.ids = ids, .n_ids = 5}}};
    const char *wanted[] = {"9 8 7 6 5 4 3 2 1 0", "9 8 7 6 5 4 3", "3 5 3 1"};
    for (int p = 0; p < 3; p++) {
      char all[256] = "";
      lode_result *r;
      do {
        OK(lode_get(c, &pages[p], &r, &err));
        CHECK(lode_result_count(r) <= pages[p].limit);
        const char *page = ids_of(r);
        if (*page) snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? " " : "", page);
        pages[p].after = lode_result_next(r);
        lode_result_free(r);
      } while (pages[p].after);
      CHECKF(strcmp(all, wanted[p]) == 0, "pages %d: %s", p, all);
    }
    OK(lode_optimize(s, quiet, &err)); /* and again, from the indexes */
  }
  lode_result *r;
  FAILS(LODE_INVALID, lode_get(c, &(lode_get_request){.include = 8}, &r, &err));
  CHECK(!r);
  FAILS(LODE_INVALID, lode_get(c, &(lode_get_request){.after = UINT64_MAX}, &r, &err));
  FAILS(LODE_INVALID, lode_get(c, &(lode_get_request){.select.where = S("{\"n\": {\"$like\": 1}}")}, &r, &err));
  CHECK(strstr(err.text, "$like"));
  FAILS(LODE_INVALID, lode_get(c, &(lode_get_request){.select.where_document = S("{\"$contains\": 1}")}, &r, &err));
  lode_collection_close(c);
  lode_close(s);
}

TEST(an_answer_larger_than_the_budget_is_refused) {
  lode_error err;
  lode_store *s = open_at(store_place(), (lode_open_options){.no_background = true, .memory_bytes = 16 << 20});
  lode_collection *c = collection(s, "c", LODE_L2);
  char *big = malloc(3 << 20);
  memset(big, 'd', 3 << 20);
  for (int i = 0; i < 6; i++) {
    char id[24];
    snprintf(id, sizeof id, "%d", i);
    OK(lode_add(c, NULL, &(lode_record){.id = str(id), .document = {big, 3 << 20}}, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  lode_result *r;
  FAILS(LODE_LIMIT, lode_get(c, &(lode_get_request){.include = LODE_DOCUMENT}, &r, &err));
  CHECK(!r);
  OK(lode_get(c, &(lode_get_request){.include = LODE_DOCUMENT, .limit = 4}, &r, &err));
  CHECK(lode_result_count(r) == 4 && lode_result_at(r, 3)->document.len == 3 << 20);
  lode_result_free(r);
  free(big);
  lode_collection_close(c);
  lode_close(s);
}

static void expect_facets(const lode_facet_list *l, const char *wanted) {
  char text[1024] = "";
  for (size_t i = 0; i < lode_facet_list_count(l); i++) {
    const lode_facet *f = lode_facet_list_at(l, i);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s=%llu", i ? " " : "", (int)f->value.len,
             f->value.data, (unsigned long long)f->count);
  }
  CHECKF(strcmp(text, wanted) == 0, "got %s, wanted %s", text, wanted);
}

TEST(facets_and_counters_count_values) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c;
  lode_str counted[] = {S("k")};
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true, .counters = counted, .n_counters = 1},
                          &c, &err));
  const char *metas[] = {"{\"k\": \"a\"}",     "{\"k\": [\"a\", \"b\", \"a\"]}",
                         "{\"k\": 1}",         "{\"k\": 1.0}",
                         "{\"k\": true}",      "{\"k\": \"b\", \"z\": 1}",
                         "{\"other\": \"a\"}", "{\"k\": 2.5}",
                         "{\"k\": []}",        "{\"k\": \"\"}"};
  enum { N = sizeof metas / sizeof *metas };
  for (int i = 0; i < N; i++) {
    char id[24];
    snprintf(id, sizeof id, "%d", i);
    OK(lode_add(c, NULL, &(lode_record){.id = str(id), .metadata = str(metas[i])}, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  lode_facet_list *l;
  const char *all = "1=2 \"a\"=2 \"b\"=2 true=1 2.5=1 \"\"=1";
  for (int round = 0; round < 3; round++) {
    OK(lode_facets(c, S("k"), NONE, 0, &l, &err));
    expect_facets(l, all);
    CHECK(!lode_facet_list_at(l, 99));
    lode_facet_list_free(l);
    OK(lode_facets(c, S("k"), S("{}"), 2, &l, &err));
    expect_facets(l, "1=2 \"a\"=2");
    lode_facet_list_free(l);
    OK(lode_facets(c, S("k"), S("{\"z\": 1}"), 0, &l, &err));
    expect_facets(l, "\"b\"=1");
    lode_facet_list_free(l);
    OK(lode_facets(c, S("nothing"), NONE, 0, &l, &err));
    expect_facets(l, "");
    lode_facet_list_free(l);
    OK(lode_counters(c, S("k"), &l, &err));
    expect_facets(l, round == 2 ? "1=2 \"a\"=2 true=1 2.5=1 \"\"=1 \"b\"=1" : all);
    lode_facet_list_free(l);
    if (round == 0) OK(lode_optimize(s, quiet, &err));
    if (round == 1) {
      OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("5"), .n_ids = 1}, NULL, &err));
      OK(lode_facets(c, S("k"), NONE, 0, &l, &err)); /* the index still holds the dead */
      all = "1=2 \"a\"=2 true=1 2.5=1 \"\"=1 \"b\"=1";
      expect_facets(l, all);
      lode_facet_list_free(l);
      OK(lode_add(c, NULL, &(lode_record){.id = S("5"), .metadata = S("{\"z\": 1, \"k\": \"b\"}")}, 1,
                  LODE_FAIL_EXISTING, NULL, &err));
      OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("1"), .n_ids = 1}, NULL, &err));
      OK(lode_upsert(c, NULL, &(lode_record){.id = S("0"), .metadata = S("{\"k\": [\"a\", \"a\"]}")}, 1, NULL, &err));
      OK(lode_add(c, NULL, &(lode_record){.id = S("y"), .metadata = S("{\"k\": \"a\"}")}, 1, LODE_FAIL_EXISTING, NULL,
                  &err));
    }
  }
  FAILS(LODE_INVALID, lode_facets(c, NONE, NONE, 0, &l, &err));
  FAILS(LODE_INVALID, lode_facets(c, S("k"), S("{\"$xor\": []}"), 0, &l, &err));
  FAILS(LODE_NOT_FOUND, lode_counters(c, S("z"), &l, &err));
  OK(lode_counters(c, NONE, &l, &err)); /* the declared keys themselves */
  CHECK(lode_facet_list_count(l) == 1 && lode_facet_list_at(l, 0)->value.len == 3);
  CHECK(memcmp(lode_facet_list_at(l, 0)->value.data, "\"k\"", 3) == 0 && lode_facet_list_at(l, 0)->count > 0);
  lode_facet_list_free(l);
  lode_facet_list_free(NULL);
  lode_collection_close(c);
  lode_close(s);
}

TEST(facets_tell_long_strings_apart) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  char meta[4][700], values[4][300];
  for (int i = 0; i < 4; i++) { /* they differ far past what an index keeps */
    memset(values[i], 'v', 299);
    values[i][299] = 0;
    values[i][290] = (char)('0' + i / 2);
    snprintf(meta[i], sizeof meta[i], "{\"k\": [\"short\", \"%.299s\"]}", values[i]);
    OK(lode_add(c, NULL, &(lode_record){.id = str(values[i] + 290 - i), .metadata = str(meta[i])}, 1,
                LODE_FAIL_EXISTING, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    lode_facet_list *l;
    OK(lode_facets(c, S("k"), NONE, 0, &l, &err));
    CHECK(lode_facet_list_count(l) == 3);
    CHECK(eq(lode_facet_list_at(l, 0)->value, "\"short\"") && lode_facet_list_at(l, 0)->count == 4);
    CHECK(lode_facet_list_at(l, 1)->count == 2 && lode_facet_list_at(l, 1)->value.len == 301);
    lode_facet_list_free(l);
    char where[400];
    snprintf(where, sizeof where, "{\"k\": {\"$contains\": \"%.299s\"}}", values[2]);
    lode_result *r;
    OK(lode_get(c, &(lode_get_request){.select.where = str(where)}, &r, &err));
    CHECK(lode_result_count(r) == 2);
    lode_result_free(r);
    OK(lode_optimize(s, quiet, &err));
  }
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Query: what is refused (test_query.c has what is answered) ---- */

TEST(queries_are_checked) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_result *r;
  lode_query_request q = {.vectors = a3, .dimension = 3, .n = 1, .k = 5};
  OK(lode_query(c, &q, &r, &err)); /* nothing there, and no dimension yet */
  CHECK(lode_result_count(r) == 0);
  lode_result_free(r);
  add_three(c);
  const float nan3[] = {0, 0, 0, NAN, 0, 0};
  const lode_query_request bad[] = {
      {.vectors = NULL, .dimension = 3, .n = 1, .k = 5},
      {.vectors = a3, .dimension = 0, .n = 1, .k = 5},
      {.vectors = nan3, .dimension = 3, .n = 2, .k = 5},
      {.vectors = a3, .dimension = 3, .n = 1, .k = 5, .include = 64},
      {.mode = (lode_mode)7, .vectors = a3, .dimension = 3, .n = 1, .k = 5},
      {.mode = LODE_BY_TEXT, .n = 1, .k = 5},
      {.mode = LODE_HYBRID, .vectors = a3, .dimension = 3, .n = 1, .k = 5},
      {.mode = LODE_HYBRID, .vectors = a3, .dimension = 3, .texts = &S("x"), .n = 1, .k = 5, .text_weight = -1},
      {.mode = LODE_HYBRID, .vectors = a3, .dimension = 3, .texts = &S("x"), .n = 1, .k = 5, .vector_weight = NAN},
      {.vectors = a3, .dimension = 3, .n = 1, .k = 5, .select = {.n_ids = 2}},
      {.vectors = a3, .dimension = 3, .n = 1, .k = 5, .select = {.where = S("nonsense")}},
      {.vectors = a3, .dimension = 3, .n = 1, .k = 5, .select = {.where_document = S("{\"$regex\": \"(\"}")}},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lode_status st = lode_query(c, &bad[i], &r, &err);
    CHECKF(st == LODE_INVALID && !r, "case %zu: %s %s", i, lode_status_name(st), err.text);
  }
  FAILS(LODE_INVALID, lode_query(c, &bad[2], &r, &err));
  CHECK(err.record == 1);
  q.dimension = 2;
  FAILS(LODE_MISMATCH, lode_query(c, &q, &r, &err));
  q.dimension = 3;
  q.k = 0;
  OK(lode_query(c, &q, &r, &err));
  CHECK(lode_result_count(r) == 0);
  lode_result_free(r);
  q.k = 5;
  q.n = 0;
  OK(lode_query(c, &q, &r, &err));
  CHECK(lode_result_count(r) == 0);
  lode_result_free(r);
  lode_collection_close(c);
  lode_close(s);
}
