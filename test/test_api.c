/* test_api.c - lode.h as its users meet it: each function once in the way it is meant to be used, and each refusal. */
#include "lode.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define NONE ((lode_str){NULL, 0})

static lode_str str(const char *s) { return (lode_str){s, strlen(s)}; }
static bool eq(lode_str a, const char *b) { return a.data && a.len == strlen(b) && memcmp(a.data, b, a.len) == 0; }

static const lode_progress quiet;

static lode_store *open_at(const char *folder, lode_open_options o) {
  lode_error err;
  lode_store *store;
  o.create = !o.read_only;
  OK(lode_open(folder, &o, &store, &err));
  return store;
}

static lode_store *open_new(void) { return open_at(test_folder(), (lode_open_options){.no_background = true}); }

static lode_collection *collection(lode_store *store, const char *name, lode_metric metric) {
  lode_error err;
  lode_collection *c;
  OK(lode_collection_open(store, str(name), &(lode_collection_options){.create = true, .metric = metric}, &c, &err));
  return c;
}

/* The ids of a result, joined by spaces. */
static const char *ids_of(const lode_result *r) {
  static char text[4096];
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < lode_result_count(r); i++) {
    lode_str id = lode_result_at(r, i)->id;
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", i ? " " : "", (int)id.len, id.data);
  }
  return text;
}

static void expect_ids(lode_collection *c, lode_get_request request, const char *ids) {
  lode_error err;
  lode_result *r;
  OK(lode_get(c, &request, &r, &err));
  CHECKF(strcmp(ids_of(r), ids) == 0, "got \"%s\", wanted \"%s\"", ids_of(r), ids);
  lode_result_free(r);
}

static uint64_t count(lode_collection *c) {
  lode_error err;
  uint64_t n;
  OK(lode_count(c, &n, &err));
  return n;
}

static const float a3[] = {1, 0, 0}, b3[] = {0, 1, 0}, c3[] = {0, 0, 1};

static void add_three(lode_collection *c) {
  lode_error err;
  lode_record r[] = {
      {S("a"), S("red apple"), S("{\"n\": 1, \"tags\": [\"x\", \"y\"]}"), a3, 3},
      {S("b"), S("blue boat"), S("{\"n\": 2}"), b3, 3},
      {S("c"), NONE, NONE, c3, 3},
  };
  OK(lode_add(c, NULL, r, 3, LODE_FAIL_EXISTING, NULL, &err));
}

/* ---- Names ---- */

TEST(statuses_and_metrics_have_names) {
  lode_metric m;
  CHECK(strcmp(lode_status_name(LODE_NOT_FOUND), "NOT_FOUND") == 0);
  CHECK(strlen(lode_status_text(LODE_CORRUPT)) > 0);
  CHECK(strcmp(lode_version(), LODE_VERSION_TEXT) == 0);
  CHECK(strcmp(lode_metric_name(LODE_COSINE), "cosine") == 0);
  CHECK(lode_metric_parse(S("ip"), &m) && m == LODE_IP);
  CHECK(lode_metric_parse(S("l2"), &m) && m == LODE_L2);
  CHECK(!lode_metric_parse(S("L2"), &m) && !lode_metric_parse(NONE, &m));
}

/* ---- Stores ---- */

TEST(open_refuses_what_it_cannot_do) {
  lode_error err;
  lode_store *s;
  char missing[4200];
  snprintf(missing, sizeof missing, "%s/none", test_folder());
  FAILS(LODE_NOT_FOUND, lode_open(missing, NULL, &s, &err));
  CHECK(!s);
  FAILS(LODE_INVALID, lode_open("", NULL, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .read_only = true}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .page_bytes = 1000}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .page_bytes = 1 << 17}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .memory_bytes = 1 << 20}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .max_document_bytes = 1u << 30}, &s, &err));
  lode_close(NULL);
}

TEST(a_store_is_found_again) {
  lode_error err;
  const char *folder = test_folder();
  lode_store *s = open_at(folder, (lode_open_options){.page_bytes = 4096});
  lode_collection *c = collection(s, "things", LODE_L2);
  add_three(c);
  lode_collection_close(c);
  lode_close(s);
  s = open_at(folder, (lode_open_options){.read_only = true});
  OK(lode_collection_open(s, S("things"), NULL, &c, &err));
  CHECK(count(c) == 3);
  lode_stats stats;
  OK(lode_store_stats(s, &stats, &err));
  CHECK(stats.collections == 1 && stats.records == 3 && stats.pending == 0 && stats.page_bytes == 4096);
  CHECK(stats.files > 0 && stats.bytes > 4096 && stats.cursor > 0 && stats.format > 0);
  lode_collection_close(c);
  lode_close(s);
}

TEST(a_read_only_store_refuses_writes) {
  lode_error err;
  const char *folder = test_folder();
  lode_store *s = open_at(folder, (lode_open_options){.no_background = true});
  lode_collection *c = collection(s, "things", LODE_L2);
  add_three(c);
  lode_collection_close(c);
  lode_close(s);
  s = open_at(folder, (lode_open_options){.read_only = true});
  OK(lode_collection_open(s, S("things"), NULL, &c, &err));
  lode_record r = {.id = S("d")};
  lode_txn *txn;
  size_t n;
  FAILS(LODE_READONLY, lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  FAILS(LODE_READONLY, lode_delete(c, NULL, &(lode_selection){.where = S("{}")}, &n, &err));
  FAILS(LODE_READONLY, lode_begin(s, &txn, &err));
  CHECK(!txn);
  FAILS(LODE_READONLY, lode_collection_drop(s, S("things"), &err));
  FAILS(LODE_READONLY, lode_optimize(s, quiet, &err));
  lode_collection *other;
  FAILS(LODE_READONLY, lode_collection_open(s, S("new"), &(lode_collection_options){.create = true}, &other, &err));
  CHECK(count(c) == 3);
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Collections ---- */

TEST(collections_are_made_listed_renamed_and_dropped) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c, *again;
  lode_str counted[] = {S("lang")};
  lode_collection_options o = {.create = true, .must_create = true, .metric = LODE_COSINE, .metadata = S("{\"owner\": {\"deep\": [1, null]}}"),
                               .embedder = S("model-1"), .embedder_dim = 3, .counters = counted, .n_counters = 1};
  OK(lode_collection_open(s, S("b"), &o, &c, &err));
  FAILS(LODE_EXISTS, lode_collection_open(s, S("b"), &o, &again, &err));
  CHECK(!again);
  FAILS(LODE_NOT_FOUND, lode_collection_open(s, S("a"), NULL, &again, &err));
  lode_collection_close(collection(s, "a", LODE_IP));
  FAILS(LODE_EXISTS, lode_collection_rename(s, S("a"), S("b"), &err));
  FAILS(LODE_NOT_FOUND, lode_collection_rename(s, S("x"), S("y"), &err));
  OK(lode_collection_rename(s, S("a"), S("a"), &err));
  OK(lode_collection_rename(s, S("a"), S("z \xC3\xA9"), &err));
  OK(lode_collection_set_metadata(s, S("z \xC3\xA9"), S("{\"k\": 1}"), &err));
  FAILS(LODE_INVALID, lode_collection_set_metadata(s, S("b"), S("[1]"), &err));
  FAILS(LODE_INVALID, lode_collection_set_metadata(s, S("b"), S("{"), &err));
  add_three(c);

  lode_collection_list *list;
  OK(lode_collections(s, &list, &err));
  CHECK(lode_collection_list_count(list) == 2 && !lode_collection_list_at(list, 2));
  const lode_collection_info *i = lode_collection_list_at(list, 0);
  CHECK(eq(i->name, "b") && i->metric == LODE_COSINE && i->dimension == 3 && i->records == 3 && i->pending == 0);
  CHECK(eq(i->embedder, "model-1") && i->embedder_dim == 3 && eq(i->metadata, "{\"owner\": {\"deep\": [1, null]}}"));
  uint64_t uid = i->uid;
  i = lode_collection_list_at(list, 1);
  CHECK(eq(i->name, "z \xC3\xA9") && i->metric == LODE_IP && i->dimension == 0 && eq(i->metadata, "{\"k\": 1}") && !i->embedder.data);
  lode_collection_list_free(list);
  lode_collection_list_free(NULL);

  OK(lode_collection_drop(s, S("b"), &err));
  FAILS(LODE_NOT_FOUND, lode_collection_drop(s, S("b"), &err));
  uint64_t n;
  FAILS(LODE_NOT_FOUND, lode_count(c, &n, &err));
  /* The old handle does not take the new collection of that name for its own. */
  again = collection(s, "b", LODE_L2);
  FAILS(LODE_NOT_FOUND, lode_count(c, &n, &err));
  FAILS(LODE_NOT_FOUND, lode_add(c, NULL, &(lode_record){.id = S("x")}, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(count(again) == 0);
  OK(lode_collections(s, &list, &err));
  CHECK(lode_collection_list_at(list, 0)->uid != uid);
  lode_collection_list_free(list);
  lode_collection_close(c);
  lode_collection_close(again);
  lode_collection_close(NULL);
  lode_close(s);
}

TEST(names_and_options_of_collections_are_checked) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c;
  char longest[514];
  memset(longest, 'n', sizeof longest);
  lode_collection_options o = {.create = true};
  const lode_str bad[] = {NONE, S(""), {longest, 513}, S("a\nb"), S("a\0b"), S("\x7F"), S("\xC2\x85"), S("\xFF")};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) FAILS(LODE_INVALID, lode_collection_open(s, bad[i], &o, &c, &err));
  OK(lode_collection_open(s, (lode_str){longest, 512}, &o, &c, &err));
  lode_collection_close(c);
  lode_str twice[] = {S("k"), S("k")};
  const lode_collection_options wrong[] = {
      {.create = true, .metric = (lode_metric)9},
      {.create = true, .metadata = S("\"text\"")},
      {.create = true, .embedder = S("")},
      {.create = true, .embedder_dim = 3},
      {.create = true, .embedder = S("e"), .embedder_dim = LODE_MAX_DIMENSION + 1},
      {.create = true, .counters = twice, .n_counters = 2},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) FAILS(LODE_INVALID, lode_collection_open(s, S("w"), &wrong[i], &c, &err));
  FAILS(LODE_NOT_FOUND, lode_collection_open(s, S("w"), NULL, &c, &err));
  lode_close(s);
}

TEST(another_embedding_model_is_refused_for_vectors_alone) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *first = collection(s, "c", LODE_L2), *mine, *other, *longer;
  /* The model is stamped by the first open that names one. */
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.embedder = S("mine"), .embedder_dim = 3}, &mine, &err));
  lode_record four = {S("four"), NONE, NONE, (float[]){1, 2, 3, 4}, 4};
  FAILS(LODE_MISMATCH, lode_add(mine, NULL, &four, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(err.record == 0);
  add_three(mine);
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.embedder = S("other")}, &other, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.embedder = S("mine"), .embedder_dim = 4}, &longer, &err));
  lode_record vector = {S("v"), NONE, NONE, a3, 3}, text = {.id = S("t"), .document = S("some words")};
  lode_result *r;
  lode_query_request by_vector = {.vectors = a3, .dimension = 3, .n = 1, .k = 1};
  lode_query_request by_text = {.mode = LODE_BY_TEXT, .texts = &S("apple words"), .n = 1, .k = 5};
  FAILS(LODE_MISMATCH, lode_add(other, NULL, &vector, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(strstr(err.text, "mine") && strstr(err.text, "other"));
  FAILS(LODE_MISMATCH, lode_query(other, &by_vector, &r, &err));
  FAILS(LODE_MISMATCH, lode_query(longer, &by_vector, &r, &err));
  OK(lode_add(other, NULL, &text, 1, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_query(other, &by_text, &r, &err));
  CHECK(lode_result_count(r) == 2);
  lode_result_free(r);
  OK(lode_query(mine, &by_vector, &r, &err));
  lode_result_free(r);
  OK(lode_add(first, NULL, &vector, 1, LODE_FAIL_EXISTING, NULL, &err)); /* named no model: not asked */
  lode_collection_close(first);
  lode_collection_close(mine);
  lode_collection_close(other);
  lode_collection_close(longer);
  lode_close(s);
}

/* ---- Writing ---- */

TEST(records_come_back_as_they_were_given) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_record r[] = {
      {S("id \xE2\x82\xAC"), S(""), S("{ \"s\" : \"\\u00e9\" , \"i\":-9223372036854775808, \"d\":0.1, \"b\":true, \"a\":[1,2.5] }"), a3, 3},
      {S("plain"), NONE, S("{}"), NULL, 0},
  };
  lode_write_result w;
  OK(lode_add(c, NULL, r, 2, LODE_FAIL_EXISTING, &w, &err));
  CHECK(w.written == 2 && w.skipped == 0);
  lode_result *got;
  OK(lode_get(c, &(lode_get_request){.include = LODE_ALL}, &got, &err));
  CHECK(lode_result_count(got) == 2 && lode_result_next(got) == 0 && !lode_result_at(got, 2));
  const lode_row *row = lode_result_at(got, 0);
  CHECK(eq(row->id, "id \xE2\x82\xAC") && eq(row->document, ""));
  CHECKF(eq(row->metadata, "{\"s\":\"\xC3\xA9\",\"i\":-9223372036854775808,\"d\":0.1,\"b\":true,\"a\":[1,2.5]}"), "%s", row->metadata.data);
  CHECK(row->dimension == 3 && memcmp(row->vector, a3, sizeof a3) == 0 && isnan(row->distance) && row->cursor > 0);
  row = lode_result_at(got, 1);
  CHECK(!row->document.data && !row->metadata.data && !row->vector && row->dimension == 0);
  lode_result_free(got);
  OK(lode_get(c, &(lode_get_request){.include = 0}, &got, &err));
  row = lode_result_at(got, 0);
  CHECK(!row->document.data && !row->metadata.data && !row->vector);
  lode_result_free(got);
  lode_result_free(NULL);
  lode_collection_close(c);
  lode_close(s);
}

TEST(bad_records_are_refused_and_nothing_is_written) {
  lode_error err;
  lode_store *s = open_at(test_folder(), (lode_open_options){.no_background = true, .max_document_bytes = 10});
  lode_collection *c = collection(s, "c", LODE_L2);
  static char long_id[4097], big[(1 << 20) + 100];
  memset(long_id, 'i', sizeof long_id);
  memset(big, 'x', sizeof big);
  memcpy(big, "{\"k\":\"", 6);
  memcpy(big + sizeof big - 2, "\"}", 2);
  const float nan3[] = {1, NAN, 3}, inf3[] = {1, 2, -INFINITY};
  static const float huge[LODE_MAX_DIMENSION + 1];
  const lode_record bad[] = {
      {.id = NONE},
      {.id = S("")},
      {.id = {long_id, 4097}},
      {.id = S("\xC3")},
      {.id = S("d"), .document = S("\xFF\xFE")},
      {.id = S("d"), .document = S("eleven byte")},
      {.id = S("d"), .metadata = S("[]")},
      {.id = S("d"), .metadata = S("{\"k\": }")},
      {.id = S("d"), .metadata = S("{\"k\": {\"no\": 1}}")},
      {.id = S("d"), .metadata = S("{\"k\": null}")},
      {.id = S("d"), .metadata = S("{\"k\": 1, \"k\": 2}")},
      {.id = S("d"), .metadata = S("{\"k\": [1, \"x\"]}")},
      {.id = S("d"), .metadata = {big, sizeof big}},
      {.id = S("d"), .vector = nan3, .dimension = 3},
      {.id = S("d"), .vector = inf3, .dimension = 3},
      {.id = S("d"), .vector = a3, .dimension = 0},
      {.id = S("d"), .vector = huge, .dimension = LODE_MAX_DIMENSION + 1},
      {.id = S("good")},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lode_record r[] = {{.id = S("good")}, bad[i]};
    lode_write_result w = {7, 7};
    FAILS(LODE_REFUSED, lode_add(c, NULL, r, 2, LODE_FAIL_EXISTING, &w, &err));
    CHECKF(err.record == 1, "case %zu names record %zu: %s", i, err.record, err.text);
    CHECK(w.written == 0 && w.skipped == 0);
    if (i != 9) FAILS(LODE_REFUSED, lode_upsert(c, NULL, r, 2, NULL, &err));
    if (i != 9) FAILS(LODE_REFUSED, lode_update(c, NULL, r, 2, NULL, NULL, &err));
  }
  FAILS(LODE_INVALID, lode_add(c, NULL, NULL, 1, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_add(c, NULL, NULL, 0, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(count(c) == 0);
  lode_record fits[] = {{.id = {long_id, 4096}, .document = S("ten bytes."), .vector = huge, .dimension = LODE_MAX_DIMENSION}};
  OK(lode_add(c, NULL, fits, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(count(c) == 1);
  lode_collection_close(c);
  lode_close(s);
}

TEST(dimensions_must_agree) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_record mixed[] = {{.id = S("x"), .vector = a3, .dimension = 3}, {.id = S("y"), .vector = a3, .dimension = 2}};
  FAILS(LODE_MISMATCH, lode_add(c, NULL, mixed, 2, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(err.record == 1);
  /* A skipped vector does not fix the dimension. */
  OK(lode_update(c, NULL, mixed, 1, NULL, NULL, &err));
  OK(lode_add(c, NULL, mixed + 1, 1, LODE_FAIL_EXISTING, NULL, &err));
  FAILS(LODE_MISMATCH, lode_add(c, NULL, mixed, 1, LODE_FAIL_EXISTING, NULL, &err));
  FAILS(LODE_MISMATCH, lode_upsert(c, NULL, mixed, 1, NULL, &err));
  CHECK(count(c) == 1);
  lode_collection_close(c);
  lode_close(s);
}

TEST(add_fails_or_keeps_what_exists) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  lode_record r[] = {{.id = S("new")}, {.id = S("b"), .document = S("other")}};
  lode_write_result w;
  FAILS(LODE_EXISTS, lode_add(c, NULL, r, 2, LODE_FAIL_EXISTING, &w, &err));
  CHECK(err.record == 1 && count(c) == 3);
  OK(lode_add(c, NULL, r, 2, LODE_KEEP_EXISTING, &w, &err));
  CHECK(w.written == 1 && w.skipped == 1 && count(c) == 4);
  expect_ids(c, (lode_get_request){.select.where_document = S("{\"$contains\": \"blue\"}")}, "b");
  lode_collection_close(c);
  lode_close(s);
}

static void expect_metadata(lode_collection *c, lode_str id, const char *metadata) {
  lode_error err;
  lode_result *r;
  OK(lode_get(c, &(lode_get_request){.select = {.ids = &id, .n_ids = 1}, .include = LODE_ALL}, &r, &err));
  CHECK(lode_result_count(r) == 1);
  lode_str got = lode_result_at(r, 0)->metadata;
  CHECKF(metadata ? eq(got, metadata) : !got.data, "%.*s", (int)got.len, got.data ? got.data : "");
  lode_result_free(r);
}

TEST(update_and_upsert_change_what_is_given) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  bool missing[2] = {false, false};
  lode_write_result w;
  lode_record u[] = {
      {.id = S("a"), .metadata = S("{\"n\": null, \"m\": [true, false], \"tags\": \"z\"}")},
      {.id = S("nobody"), .document = S("x")},
  };
  OK(lode_update(c, NULL, u, 2, missing, &w, &err));
  CHECK(w.written == 1 && w.skipped == 1 && !missing[0] && missing[1] && count(c) == 3);
  expect_metadata(c, S("a"), "{\"tags\":\"z\",\"m\":[true,false]}");
  expect_ids(c, (lode_get_request){.select.where_document = S("{\"$contains\": \"red\"}")}, "a");
  OK(lode_update(c, NULL, &(lode_record){.id = S("a"), .metadata = S("{\"tags\": null, \"m\": null}")}, 1, NULL, NULL, &err));
  expect_metadata(c, S("a"), NULL);
  OK(lode_update(c, NULL, &(lode_record){.id = S("b"), .metadata = S("{}")}, 1, NULL, NULL, &err));
  expect_metadata(c, S("b"), "{\"n\":2}");

  lode_record up[] = {
      {.id = S("b"), .document = S("green boat"), .metadata = S("{\"k\": \"v\"}")},
      {.id = S("d"), .metadata = S("{\"gone\": null, \"stays\": 1}"), .vector = a3, .dimension = 3},
      {.id = S("e"), .metadata = S("{\"gone\": null}")},
  };
  OK(lode_upsert(c, NULL, up, 3, &w, &err));
  CHECK(w.written == 3 && w.skipped == 0 && count(c) == 5);
  expect_metadata(c, S("b"), "{\"n\":2,\"k\":\"v\"}");
  expect_metadata(c, S("d"), "{\"stays\":1}");
  expect_metadata(c, S("e"), NULL);
  expect_ids(c, (lode_get_request){.select.where_document = S("{\"$contains\": \"boat\"}")}, "b");
  /* b kept its vector; e has none. */
  expect_ids(c, (lode_get_request){.pending_only = true}, "e");
  OK(lode_update(c, NULL, &(lode_record){.id = S("e"), .vector = b3, .dimension = 3}, 1, NULL, NULL, &err));
  expect_ids(c, (lode_get_request){.pending_only = true}, "");
  lode_result *r;
  OK(lode_query(c, &(lode_query_request){.vectors = b3, .dimension = 3, .n = 1, .k = 2}, &r, &err));
  CHECK(strcmp(ids_of(r), "b e") == 0 && lode_result_at(r, 1)->distance == 0);
  lode_result_free(r);
  lode_collection_close(c);
  lode_close(s);
}

TEST(merged_metadata_has_a_limit) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  static char half[600000];
  for (int i = 0; i < 2; i++) {
    memset(half, 'x', sizeof half);
    memcpy(half, i ? "{\"b\":\"" : "{\"a\":\"", 6);
    memcpy(half + sizeof half - 2, "\"}", 2);
    lode_record r[] = {{.id = S("fine")}, {.id = S("x"), .metadata = {half, sizeof half}}};
    if (i) {
      FAILS(LODE_REFUSED, lode_upsert(c, NULL, r, 2, NULL, &err));
      CHECK(err.record == 1);
    } else {
      OK(lode_upsert(c, NULL, r + 1, 1, NULL, &err));
    }
  }
  CHECK(count(c) == 1);
  lode_collection_close(c);
  lode_close(s);
}

TEST(a_transaction_is_all_or_nothing) {
  lode_error err;
  lode_store *s = open_new(), *elsewhere = open_new();
  lode_collection *c = collection(s, "c", LODE_L2), *d = collection(s, "d", LODE_L2), *far = collection(elsewhere, "c", LODE_L2);
  lode_txn *txn;
  lode_record one = {.id = S("1"), .document = S("one"), .metadata = S("{\"k\": 1}")}, two = {.id = S("2")};
  size_t n;
  OK(lode_begin(s, &txn, &err));
  OK(lode_add(c, txn, &one, 1, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_add(d, txn, &one, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(count(c) == 0); /* nobody sees it yet */
  lode_rollback(txn);
  CHECK(count(c) == 0 && count(d) == 0);

  OK(lode_begin(s, &txn, &err));
  OK(lode_add(c, txn, &one, 1, LODE_FAIL_EXISTING, NULL, &err));
  FAILS(LODE_INVALID, lode_add(far, txn, &one, 1, LODE_FAIL_EXISTING, NULL, &err));
  lode_record again[] = {two, one};
  FAILS(LODE_EXISTS, lode_add(c, txn, again, 2, LODE_FAIL_EXISTING, NULL, &err)); /* undone alone */
  OK(lode_upsert(d, txn, &two, 1, NULL, &err));
  OK(lode_delete(d, txn, &(lode_selection){.where = S("{}")}, &n, &err)); /* sees the write before it */
  CHECK(n == 1);
  OK(lode_upsert(d, txn, again, 2, NULL, &err));
  OK(lode_commit(txn, &err));
  CHECK(count(c) == 1 && count(d) == 2);
  expect_ids(c, (lode_get_request){0}, "1");
  expect_ids(d, (lode_get_request){0}, "2 1");
  lode_stats stats;
  OK(lode_collection_stats(d, &stats, &err));
  CHECK(stats.records == 2 && stats.pending == 2 && stats.collections == 1 && stats.files == 0);
  lode_rollback(NULL);
  lode_collection_close(c);
  lode_collection_close(d);
  lode_collection_close(far);
  lode_close(s);
  lode_close(elsewhere);
}

TEST(delete_takes_ids_filters_or_both) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  size_t n = 9;
  FAILS(LODE_INVALID, lode_delete(c, NULL, &(lode_selection){0}, &n, &err));
  CHECK(n == 0 && count(c) == 3);
  FAILS(LODE_INVALID, lode_delete(c, NULL, &(lode_selection){.n_ids = 1}, &n, &err));
  FAILS(LODE_INVALID, lode_delete(c, NULL, &(lode_selection){.where = S("{\"n\": {\"$lt\": [1]}}")}, &n, &err));
  lode_str ids[] = {S("b"), S("nobody"), S("b"), S("a")};
  OK(lode_delete(c, NULL, &(lode_selection){.ids = ids, .n_ids = 0}, &n, &err));
  CHECK(n == 0);
  OK(lode_delete(c, NULL, &(lode_selection){.ids = ids, .n_ids = 4, .where = S("{\"n\": 2}")}, &n, &err));
  CHECK(n == 1);
  expect_ids(c, (lode_get_request){0}, "a c");
  OK(lode_delete(c, NULL, &(lode_selection){.where_document = S("{\"$not_contains\": \"apple\"}")}, &n, &err));
  CHECK(n == 1);
  OK(lode_add(c, NULL, &(lode_record){.id = S("b")}, 1, LODE_FAIL_EXISTING, NULL, &err)); /* the id is free again */
  expect_ids(c, (lode_get_request){0}, "a b");
  OK(lode_delete(c, NULL, &(lode_selection){.where = S("{}")}, NULL, &err));
  CHECK(count(c) == 0);
  lode_collection_close(c);
  lode_close(s);
}

TEST(a_delete_of_many_ids_is_one_call) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  enum { N = 100000, KEPT = 500 };
  char(*text)[16] = calloc(N, sizeof *text);
  lode_str *ids = calloc(N, sizeof *ids);
  lode_record *r = calloc(1000, sizeof *r);
  for (size_t i = 0; i < N; i++) ids[i] = (lode_str){text[i], (size_t)snprintf(text[i], sizeof text[i], "%zu", i * 7919 % N)};
  for (size_t i = 0; i < 1000; i++) r[i] = (lode_record){.id = ids[i * 100]};
  OK(lode_add(c, NULL, r, 1000, LODE_FAIL_EXISTING, NULL, &err));
  size_t n;
  OK(lode_delete(c, NULL, &(lode_selection){.ids = ids, .n_ids = N / 2}, &n, &err)); /* most of them do not exist */
  CHECK(n == KEPT && count(c) == KEPT);
  free(text);
  free(ids);
  free(r);
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Reading ---- */

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
    expect_ids(c, (lode_get_request){.select = {.ids = ids, .n_ids = 5, .where = S("{\"n\": {\"$gt\": 1}}")}, .limit = 2, .offset = 1}, "5 3");
    expect_ids(c, (lode_get_request){.select = {.ids = ids, .n_ids = 0}}, "");
    expect_ids(c, (lode_get_request){.select.where = S("{\"n\": {\"$in\": [4, 8, 77]}}")}, "8 4");

    /* Paging, with and without a filter and by ids, brings each row once. */
    lode_get_request pages[] = {{.limit = 3}, {.limit = 3, .select.where = S("{\"n\": {\"$gte\": 3}}")},
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
  lode_store *s = open_at(test_folder(), (lode_open_options){.no_background = true, .memory_bytes = 16 << 20});
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
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s=%llu", i ? " " : "", (int)f->value.len, f->value.data,
             (unsigned long long)f->count);
  }
  CHECKF(strcmp(text, wanted) == 0, "got %s, wanted %s", text, wanted);
}

TEST(facets_and_counters_count_values) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c;
  lode_str counted[] = {S("k")};
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true, .counters = counted, .n_counters = 1}, &c, &err));
  const char *metas[] = {"{\"k\": \"a\"}", "{\"k\": [\"a\", \"b\", \"a\"]}", "{\"k\": 1}", "{\"k\": 1.0}", "{\"k\": true}",
                         "{\"k\": \"b\", \"z\": 1}", "{\"other\": \"a\"}", "{\"k\": 2.5}", "{\"k\": []}", "{\"k\": \"\"}"};
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
      OK(lode_add(c, NULL, &(lode_record){.id = S("5"), .metadata = S("{\"z\": 1, \"k\": \"b\"}")}, 1, LODE_FAIL_EXISTING, NULL, &err));
      OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("1"), .n_ids = 1}, NULL, &err));
      OK(lode_upsert(c, NULL, &(lode_record){.id = S("0"), .metadata = S("{\"k\": [\"a\", \"a\"]}")}, 1, NULL, &err));
      OK(lode_add(c, NULL, &(lode_record){.id = S("y"), .metadata = S("{\"k\": \"a\"}")}, 1, LODE_FAIL_EXISTING, NULL, &err));
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
  for (int i = 0; i < 4; i++) { /* they differ far behind what an index keeps */
    memset(values[i], 'v', 299);
    values[i][299] = 0;
    values[i][290] = (char)('0' + i / 2);
    snprintf(meta[i], sizeof meta[i], "{\"k\": [\"short\", \"%.299s\"]}", values[i]);
    OK(lode_add(c, NULL, &(lode_record){.id = str(values[i] + 290 - i), .metadata = str(meta[i])}, 1, LODE_FAIL_EXISTING, NULL, &err));
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

/* ---- Maintenance ---- */

static bool stop_at_once(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase;
  CHECK(done <= total || total == 0);
  ++*(int *)ctx;
  return false;
}

static bool go_on(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)stop_at_once(ctx, phase, done, total);
  return true;
}

TEST(optimize_does_what_is_pending) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_stats stats;
  int calls = 0;
  add_three(c);
  OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("a"), .n_ids = 1}, NULL, &err));
  OK(lode_store_stats(s, &stats, &err));
  CHECK(stats.untexted > 0 && stats.unindexed > 0 && stats.unerased == 1);
  FAILS(LODE_CANCELLED, lode_optimize(s, (lode_progress){stop_at_once, &calls}, &err));
  CHECK(calls == 1);
  OK(lode_optimize(s, (lode_progress){go_on, &calls}, &err));
  CHECK(calls > 2);
  OK(lode_store_stats(s, &stats, &err));
  CHECK(stats.untexted == 0 && stats.unindexed == 0 && stats.unerased == 0 && stats.records == 2);
  OK(lode_compact(s, quiet, &err));
  CHECK(count(c) == 2);
  lode_collection_close(c);
  lode_close(s);
}

TEST(the_background_thread_does_it_by_itself) {
  lode_error err;
  lode_store *s = open_at(test_folder(), (lode_open_options){0});
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  OK(lode_delete(c, NULL, &(lode_selection){.ids = &S("a"), .n_ids = 1}, NULL, &err));
  lode_stats stats;
  for (int i = 0;; i++) {
    OK(lode_collection_stats(c, &stats, &err));
    if (!stats.untexted && !stats.unindexed && !stats.unerased) break;
    CHECKF(i < 1000, "after 10 s: %llu untexted, %llu unindexed, %llu unerased", (unsigned long long)stats.untexted,
           (unsigned long long)stats.unindexed, (unsigned long long)stats.unerased);
    usleep(10000);
  }
  lode_collection_close(c);
  lode_close(s);
}

static void no_damage(void *ctx, const lode_damage *d) {
  (void)ctx;
  test_failed(__FILE__, __LINE__, "%s: %s", d->what, d->detail);
}

TEST(backup_restore_verify_and_salvage_keep_everything) {
  lode_error err;
  char file[4200], folder[4200], saved[4200];
  const char *base = test_folder();
  snprintf(file, sizeof file, "%s/backup", base);
  snprintf(folder, sizeof folder, "%s/restored", base);
  snprintf(saved, sizeof saved, "%s/saved", base);
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  OK(lode_verify(s, no_damage, NULL, quiet, &err));
  FAILS(LODE_INVALID, lode_backup(s, "", quiet, &err));
  OK(lode_backup(s, file, quiet, &err));
  FAILS(LODE_EXISTS, lode_backup(s, file, quiet, &err));
  FAILS(LODE_INVALID, lode_restore(file, NULL, quiet, &err));
  OK(lode_restore(file, folder, quiet, &err));
  FAILS(LODE_EXISTS, lode_restore(file, folder, quiet, &err));
  lode_collection_close(c);
  lode_close(s);
  s = open_at(folder, (lode_open_options){.read_only = true});
  OK(lode_collection_open(s, S("c"), NULL, &c, &err));
  CHECK(count(c) == 3);
  lode_collection_close(c);
  lode_close(s);
  lode_salvage_report report;
  FAILS(LODE_INVALID, lode_salvage(folder, "", no_damage, NULL, quiet, &report, &err));
  OK(lode_salvage(folder, saved, no_damage, NULL, quiet, &report, &err));
  CHECK(report.records == 3 && report.lost == 0 && report.damaged_pages == 0 && report.pages > 0);
  s = open_at(saved, (lode_open_options){.no_background = true});
  OK(lode_collection_open(s, S("c"), NULL, &c, &err));
  expect_ids(c, (lode_get_request){.select.where_document = S("{\"$contains\": \"apple\"}")}, "a");
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Streams ---- */

typedef struct stream {
  char *data;
  size_t len, at, piece; /* piece: how much a call gives at most */
} stream;

static int64_t write_stream(void *ctx, const void *data, size_t size) {
  stream *s = ctx;
  if (s->piece && size > s->piece) size = s->piece;
  s->data = realloc(s->data, s->len + size + 1);
  memcpy(s->data + s->len, data, size);
  s->len += size;
  s->data[s->len] = 0;
  return (int64_t)size;
}

static int64_t fail_write(void *ctx, const void *data, size_t size) {
  (void)ctx, (void)data, (void)size;
  return -1;
}

static int64_t read_stream(void *ctx, void *buffer, size_t size) {
  stream *s = ctx;
  size_t n = s->len - s->at < size ? s->len - s->at : size;
  if (s->piece && n > s->piece) n = s->piece;
  memcpy(buffer, s->data + s->at, n);
  s->at += n;
  return (int64_t)n;
}

static int64_t fail_read(void *ctx, void *buffer, size_t size) {
  (void)ctx, (void)buffer, (void)size;
  return -1;
}

TEST(export_and_import_are_inverse) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2), *d = collection(s, "d", LODE_L2);
  const float odd[] = {0.1f, -3.4028235e38f, 1.17549435e-38f};
  lode_record r[] = {
      {S("q\"\n\xE2\x82\xAC"), S("line 1\nline 2\t\x01\\"), S("{\"embedding\": [1, 2], \"d\": 0.1}"), odd, 3},
      {S("bare"), NONE, NONE, NULL, 0},
      {S("empty"), S(""), NONE, c3, 3},
  };
  uint64_t written;
  OK(lode_add(c, NULL, r, 3, LODE_FAIL_EXISTING, NULL, &err));
  stream out = {.piece = 7};
  OK(lode_export(c, NULL, LODE_ALL, write_stream, &out, quiet, &written, &err));
  CHECK(written == 3);
  lode_import_report report;
  stream in = {out.data, out.len, 0, 3};
  lode_import_request req = {.read = read_stream, .ctx = &in};
  OK(lode_import(d, &req, quiet, &report, &err));
  CHECK(report.lines == 3 && report.written == 3 && report.skipped == 0);
  stream again = {0};
  OK(lode_export(d, NULL, LODE_ALL, write_stream, &again, quiet, &written, &err));
  CHECKF(again.len == out.len && memcmp(again.data, out.data, out.len) == 0, "%s\n%s", out.data, again.data);
  lode_result *got;
  OK(lode_get(d, &(lode_get_request){.include = LODE_VECTOR, .limit = 1}, &got, &err));
  CHECK(memcmp(lode_result_at(got, 0)->vector, odd, sizeof odd) == 0);
  lode_result_free(got);

  stream some = {0};
  lode_str ids[] = {S("empty"), S("bare")};
  OK(lode_export(d, &(lode_selection){.ids = ids, .n_ids = 2}, 0, write_stream, &some, quiet, &written, &err));
  CHECKF(written == 2 && strcmp(some.data, "{\"id\":\"bare\"}\n{\"id\":\"empty\"}\n") == 0, "%s", some.data);
  int calls = 0;
  FAILS(LODE_CANCELLED, lode_export(d, NULL, 0, write_stream, &some, (lode_progress){stop_at_once, &calls}, &written, &err));
  CHECK(calls == 1 && written == 0);
  FAILS(LODE_IO, lode_export(d, NULL, 0, fail_write, NULL, quiet, NULL, &err));
  FAILS(LODE_INVALID, lode_export(d, NULL, 16, write_stream, &some, quiet, NULL, &err));
  free(out.data);
  free(again.data);
  free(some.data);
  lode_collection_close(c);
  lode_collection_close(d);
  lode_close(s);
}

static lode_status import_text(lode_collection *c, const char *text, lode_import_request req, lode_import_report *report, lode_error *err) {
  stream in = {.len = strlen(text)};
  in.data = malloc(in.len + 1);
  memcpy(in.data, text, in.len + 1);
  req.read = read_stream;
  req.ctx = &in;
  lode_status st = lode_import(c, &req, quiet, report, err);
  free(in.data);
  return st;
}

TEST(import_of_lines_takes_modes_and_names_bad_lines) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_import_report report;
  OK(import_text(c, "\xEF\xBB\xBF{\"id\": \"a\", \"document\": \"x\", \"embedding\": [1, 2e0]}\r\n\n  \n {\"id\":\"b\",\"document\":null,\"metadata\":{\"k\":1}}",
                 (lode_import_request){.batch = 1}, &report, &err));
  CHECK(report.lines == 2 && report.written == 2);
  OK(import_text(c, "{\"id\":\"a\"}\n{\"id\":\"c\"}\n{\"id\":\"c\",\"document\":\"ignored\"}\n",
                 (lode_import_request){.on_existing = LODE_KEEP_EXISTING}, &report, &err));
  CHECK(report.lines == 3 && report.written == 1 && report.skipped == 2);
  OK(import_text(c, "{\"id\":\"b\",\"metadata\":{\"m\":2}}\n{\"id\":\"b\",\"metadata\":{\"k\":null}}\n",
                 (lode_import_request){.mode = LODE_IMPORT_UPSERT}, &report, &err));
  CHECK(report.written == 2);
  expect_metadata(c, S("b"), "{\"m\":2}");
  OK(import_text(c, "{\"id\":\"b\",\"document\":\"d\"}\n{\"id\":\"nobody\"}\n", (lode_import_request){.mode = LODE_IMPORT_UPDATE}, &report, &err));
  CHECK(report.written == 1 && report.skipped == 1 && count(c) == 3);
  OK(import_text(c, "{\"id\":\"u\", \"embedd\\u0069ng\": [3, 4]}", (lode_import_request){0}, &report, &err));

  const struct { const char *text; lode_status status; size_t line; } bad[] = {
      {"{\"id\":\"x\"}\n\n[]\n", LODE_REFUSED, 2},
      {"{\"id\":\"x\"}\n{\"id\":", LODE_REFUSED, 1},
      {"{\"document\":\"x\"}", LODE_REFUSED, 0},
      {"{\"id\":7}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"id\":\"y\"}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"uri\":\"y\"}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"metadata\":[]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"metadata\":{\"a\":{}}}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":\"[1]\"}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[1,[2]]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[1e999,1]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[1,2,3]}", LODE_MISMATCH, 0},
      {"{\"id\":\"y\"}\n{\"id\":\"a\"}", LODE_EXISTS, 1},
      {"{\"id\":\"\"}", LODE_REFUSED, 0},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lode_status st = import_text(c, bad[i].text, (lode_import_request){0}, &report, &err);
    CHECKF(st == bad[i].status && err.record == bad[i].line, "case %zu: %s line %zu: %s", i, lode_status_name(st), err.record, err.text);
    CHECK(report.written == 0 && count(c) == 4);
  }
  /* Batches before the bad one stay. */
  FAILS(LODE_REFUSED, import_text(c, "{\"id\":\"k1\"}\n{\"id\":\"k2\"}\n{\"id\":\"k3\"}\nx\n", (lode_import_request){.batch = 2}, &report, &err));
  CHECK(report.written == 2 && count(c) == 6);
  FAILS(LODE_INVALID, import_text(c, "", (lode_import_request){.format = (lode_format)5}, &report, &err));
  FAILS(LODE_INVALID, import_text(c, "", (lode_import_request){.mode = (lode_import_mode)5}, &report, &err));
  FAILS(LODE_INVALID, import_text(c, "", (lode_import_request){.batch = SIZE_MAX}, &report, &err));
  FAILS(LODE_IO, lode_import(c, &(lode_import_request){.read = fail_read}, quiet, &report, &err));
  FAILS(LODE_INVALID, lode_import(c, &(lode_import_request){0}, quiet, &report, &err));
  lode_collection_close(c);
  lode_close(s);
}

/* A .npy of version v with this header, and data behind it. */
static stream npy(int v, const char *header, const void *data, size_t len) {
  size_t h = strlen(header);
  stream s = {0};
  unsigned char head[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)v, 0, (unsigned char)h, (unsigned char)(h >> 8), 0, 0};
  (void)write_stream(&s, head, v == 1 ? 10 : 12);
  (void)write_stream(&s, header, h);
  (void)write_stream(&s, data, len);
  return s;
}

TEST(import_of_npy) {
  lode_error err;
  lode_store *s = open_new();
  const float f[] = {1, 2, 3, 4, 5, 6};
  const double g[] = {1, 2, 3, 4, 5, 6};
  for (int v = 1; v <= 3; v++) {
    char name[24];
    snprintf(name, sizeof name, "v%d", v);
    lode_collection *c = collection(s, name, LODE_L2);
    stream in = v == 2 ? npy(v, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }  \n", g, sizeof g)
                       : npy(v, "{'shape': (2,3), 'fortran_order':False, \"descr\": '<f4'}", f, sizeof f);
    in.piece = 5;
    lode_import_report report;
    OK(lode_import(c, &(lode_import_request){.format = LODE_NPY, .first_id = 41, .read = read_stream, .ctx = &in}, quiet, &report, &err));
    CHECK(report.lines == 2 && report.written == 2);
    expect_ids(c, (lode_get_request){0}, "41 42");
    lode_result *r;
    OK(lode_get(c, &(lode_get_request){.include = LODE_VECTOR, .select = {.ids = &S("42"), .n_ids = 1}}, &r, &err));
    CHECK(memcmp(lode_result_at(r, 0)->vector, f + 3, 3 * sizeof *f) == 0);
    lode_result_free(r);
    lode_collection_close(c);
    free(in.data);
  }
  lode_collection *c = collection(s, "bad", LODE_L2);
  const char *headers[] = {
      "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}",    "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}",  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 65536)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3)}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}",   "{", "", "{'descr': '<f4"};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    stream in = npy(1, headers[i], f, sizeof f);
    lode_status st = lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err);
    CHECKF(st == LODE_INVALID, "%s: %s", headers[i], lode_status_name(st));
    free(in.data);
  }
  stream in = npy(9, "{}", f, 4);
  FAILS(LODE_INVALID, lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err));
  in.at = 1;
  FAILS(LODE_INVALID, lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err));
  free(in.data);
  const double large[] = {1e300};
  in = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}", large, sizeof large);
  FAILS(LODE_REFUSED, lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err));
  free(in.data);
  CHECK(count(c) == 0);
  lode_collection_close(c);
  lode_close(s);
}

TEST(import_of_fvecs) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  struct { int32_t dim; float v[2]; } f[] = {{2, {1, 2}}, {2, {3, 4}}, {2, {5, 6}}};
  stream in = {.data = (char *)f, .len = sizeof f};
  lode_import_request req = {.format = LODE_FVECS, .read = read_stream, .ctx = &in, .batch = 2};
  lode_import_report report;
  OK(lode_import(c, &req, quiet, &report, &err));
  CHECK(report.lines == 3 && report.written == 3);
  expect_ids(c, (lode_get_request){0}, "0 1 2");
  req.first_id = 100;
  in.at = 0;
  in.len -= 1; /* cut off: the whole batches before stay */
  FAILS(LODE_INVALID, lode_import(c, &req, quiet, &report, &err));
  CHECK(err.record == 2 && report.written == 2);
  req.first_id = 200;
  in.at = 0;
  f[1].dim = -1;
  FAILS(LODE_INVALID, lode_import(c, &req, quiet, &report, &err));
  CHECK(err.record == 1);
  req.first_id = UINT64_MAX;
  f[1].dim = 2;
  in.at = 0;
  in.len++;
  FAILS(LODE_LIMIT, lode_import(c, &req, quiet, &report, &err));
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Threads and processes ---- */

typedef struct crowd {
  lode_collection *c;
  atomic_bool stop;
} crowd;

/* Writes pairs in one transaction each; whoever reads must never see half a pair. */
static void *write_pairs(void *ctx) {
  crowd *w = ctx;
  lode_error err;
  for (int i = 0; i < 150; i++) {
    char left[24], right[24];
    snprintf(left, sizeof left, "l%d", i % 40);
    snprintf(right, sizeof right, "r%d", i % 40);
    float v[3] = {(float)i, 1, 0};
    lode_record pair[] = {{.id = str(left), .document = S("left"), .vector = v, .dimension = 3}, {.id = str(right), .document = S("right"), .vector = v, .dimension = 3}};
    OK(lode_upsert(w->c, NULL, pair, 2, NULL, &err));
    lode_str ids[] = {str(left), str(right)};
    if (i % 3 == 0) OK(lode_delete(w->c, NULL, &(lode_selection){.ids = ids, .n_ids = 2}, NULL, &err));
  }
  atomic_store(&w->stop, true);
  return NULL;
}

static void *query_pairs(void *ctx) {
  crowd *w = ctx;
  lode_error err;
  const float zero[3] = {0, 0, 0};
  while (!atomic_load(&w->stop)) {
    lode_result *r;
    OK(lode_query(w->c, &(lode_query_request){.vectors = zero, .dimension = 3, .n = 1, .k = 1000}, &r, &err));
    size_t n = lode_result_count(r), left = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
      const lode_row *row = lode_result_at(r, i);
      bool is_left = row->id.data[0] == 'l';
      left += is_left;
      sum += is_left ? row->distance : -row->distance;
    }
    CHECKF(left * 2 == n && sum == 0, "%zu rows, %zu left, %g", n, left, sum);
    lode_result_free(r);
    OK(lode_query(w->c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = &S("left right"), .n = 1, .k = 1000}, &r, &err));
    CHECK(lode_result_count(r) % 2 == 0);
    lode_result_free(r);
  }
  return NULL;
}

TEST(queries_see_one_moment_while_others_write) {
  lode_store *s = open_at(test_folder(), (lode_open_options){0});
  crowd w = {.c = collection(s, "c", LODE_L2)};
  pthread_t writer, readers[2];
  CHECK(pthread_create(&writer, NULL, write_pairs, &w) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&readers[i], NULL, query_pairs, &w) == 0);
  CHECK(pthread_join(writer, NULL) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(readers[i], NULL) == 0);
  lode_collection_close(w.c);
  lode_close(s);
}

TEST(a_forked_child_goes_on_with_the_handle) {
  lode_error err;
  lode_store *s = open_at(test_folder(), (lode_open_options){0});
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  lode_query_request q = {.vectors = b3, .dimension = 3, .n = 1, .k = 1};
  lode_result *r;
  OK(lode_query(c, &q, &r, &err)); /* something to inherit */
  lode_result_free(r);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    bool ok = lode_upsert(c, NULL, &(lode_record){.id = S("child"), .vector = b3, .dimension = 3}, 1, NULL, &err) == LODE_OK &&
              lode_query(c, &q, &r, &err) == LODE_OK && lode_result_count(r) == 1 && eq(lode_result_at(r, 0)->id, "b") &&
              lode_optimize(s, quiet, &err) == LODE_OK;
    lode_collection_close(c);
    lode_close(s);
    _exit(ok ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(count(c) == 4);
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Stores that move ---- */

static void add_vectors(lode_collection *c, int from, int to, float x) {
  lode_error err;
  for (int i = from; i < to; i++) {
    char id[16];
    float v[] = {x, (float)i};
    snprintf(id, sizeof id, "r%d", i);
    OK(lode_add(c, NULL, &(lode_record){.id = str(id), .vector = v, .dimension = 2}, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
}

static double nearest_distance(lode_collection *c, const char *id) {
  lode_error err;
  lode_result *r;
  float q[] = {7, 15};
  OK(lode_query(c, &(lode_query_request){.vectors = q, .dimension = 2, .n = 1, .k = 1}, &r, &err));
  CHECKF(strcmp(ids_of(r), id) == 0, "found %s instead of %s", ids_of(r), id);
  double distance = lode_result_at(r, 0)->distance;
  lode_result_free(r);
  return distance;
}

/* Both went on from one backup, so the same keys mean other vectors: nothing cached of the old one may answer for the new. */
TEST(a_store_replaced_by_its_own_older_backup_answers_for_itself) {
  for (int more = 0; more <= 5; more += 5) {
    lode_error err;
    char folder[4096], other[4096], file[4096], from[4200], to[4200];
    snprintf(folder, sizeof folder, "%s/store%d", test_folder(), more);
    snprintf(other, sizeof other, "%s/other%d", test_folder(), more);
    snprintf(file, sizeof file, "%s/backup%d", test_folder(), more);
    snprintf(from, sizeof from, "%s/lode.db", other);
    snprintf(to, sizeof to, "%s/lode.db", folder);
    lode_store *store = open_at(folder, (lode_open_options){.no_background = true});
    lode_collection *c = collection(store, "c", LODE_L2);
    add_vectors(c, 0, 10, 0);
    OK(lode_backup(store, file, quiet, &err));
    add_vectors(c, 10, 20, 0);
    CHECK(nearest_distance(c, "r15") == 49);
    OK(lode_restore(file, other, quiet, &err));
    lode_store *second = open_at(other, (lode_open_options){.no_background = true});
    lode_collection *d = collection(second, "c", LODE_L2);
    add_vectors(d, 10, 20 + more, 7);
    lode_collection_close(d);
    lode_close(second);
    CHECK(rename(from, to) == 0);
    CHECK(nearest_distance(c, "r15") == 0);
    lode_collection_close(c);
    lode_close(store);
  }
}

TEST(a_store_stays_where_it_was_opened) {
  CHECK(chdir(test_folder()) == 0);
  lode_store *store = open_at("here", (lode_open_options){.no_background = true});
  lode_collection *c = collection(store, "c", LODE_L2);
  CHECK(chdir("/") == 0);
  add_three(c);
  CHECK(count(c) == 3);
  lode_collection_close(c);
  lode_close(store);
}

TEST(an_id_twice_in_one_import_refuses_its_batch) {
  lode_error err;
  lode_import_report report;
  lode_store *store = open_new();
  lode_collection *c = collection(store, "c", LODE_L2);
  FAILS(LODE_REFUSED, import_text(c, "{\"id\":\"x\"}\n{\"id\":\"x\"}\n", (lode_import_request){0}, &report, &err));
  CHECK(err.record == 1 && count(c) == 0);
  lode_collection_close(c);
  lode_close(store);
}
