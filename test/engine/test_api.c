/* SPDX-License-Identifier: Apache-2.0 */
/* test_api.c - lode.h as its users meet it: stores, collections and writes, each function once in the way it is meant
 * to be used, and each refusal. Reading, streams and upkeep have programs of their own. */
#include "support/api_kit.h"

#include <math.h>
#include <stdlib.h>

/* ---- Names ---- */

TEST(statuses_and_metrics_have_names) {
  lode_metric m;
  CHECK(strcmp(lode_status_name(LODE_NOT_FOUND), "NOT_FOUND") == 0);
  CHECK(strlen(lode_status_text(LODE_CORRUPT)) > 0);
  CHECK(strcmp(lode_metric_name(LODE_COSINE), "cosine") == 0);
  CHECK(lode_metric_parse(S("ip"), &m) && m == LODE_IP);
  CHECK(lode_metric_parse(S("l2"), &m) && m == LODE_L2);
  CHECK(!lode_metric_parse(S("L2"), &m) && !lode_metric_parse(NONE, &m));
}

TEST(the_version_is_the_same_as_text_and_as_a_number) {
  unsigned major, minor, patch;
  CHECK(strcmp(lode_version(), LODE_VERSION_TEXT) == 0 && lode_version_number() == LODE_VERSION_NUMBER);
  CHECK(sscanf(lode_version(), "%u.%u.%u", &major, &minor, &patch) == 3);
  CHECK(major * 1000000 + minor * 1000 + patch == LODE_VERSION_NUMBER);
}

/* ---- Stores ---- */

TEST(open_refuses_what_it_cannot_do) {
  lode_error err;
  lode_store *s;
  const char *missing = store_place();
  FAILS(LODE_NOT_FOUND, lode_open(missing, NULL, &s, &err));
  CHECK(!s);
  FAILS(LODE_INVALID, lode_open("", NULL, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .read_only = true}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .page_bytes = 1000}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .page_bytes = 1 << 17}, &s, &err));
  FAILS(LODE_INVALID, lode_open(missing, &(lode_open_options){.create = true, .memory_bytes = 1 << 20}, &s, &err));
  FAILS(LODE_INVALID,
        lode_open(missing, &(lode_open_options){.create = true, .max_document_bytes = 1u << 30}, &s, &err));
  lode_close(NULL);
}

TEST(a_store_is_found_again) {
  lode_error err;
  const char *folder = store_place();
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
  CHECK(stats.collections == 1 && stats.records == 3 && stats.pending == 0);
  if (stats.files)
    CHECK(stats.page_bytes == 4096 && stats.bytes > 4096 && stats.cursor > 0 && stats.format > 0);
  else
    CHECK(stats.page_bytes == 0 && stats.bytes == 0 && !in_a_folder());
  lode_collection_close(c);
  lode_close(s);
}

TEST(a_read_only_store_refuses_writes) {
  lode_error err;
  const char *folder = store_place();
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
  lode_collection_options o = {.create = true,
                               .must_create = true,
                               .metric = LODE_COSINE,
                               .metadata = S("{\"owner\": {\"deep\": [1, null]}}"),
                               .embedder = S("model-1"),
                               .embedder_dim = 3,
                               .counters = counted,
                               .n_counters = 1};
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
  CHECK(eq(i->name, "z \xC3\xA9") && i->metric == LODE_IP && i->dimension == 0 && eq(i->metadata, "{\"k\": 1}") &&
        !i->embedder.data);
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

static bool exists(lode_store *s, const char *name) {
  lode_error err;
  lode_collection *c = NULL;
  lode_status st = lode_collection_open(s, str(name), NULL, &c, &err);
  lode_collection_close(c);
  CHECKF(st == LODE_OK || st == LODE_NOT_FOUND, "%s", err.text);
  return st == LODE_OK;
}

TEST(collections_are_replaced_all_or_none) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *old = collection(s, "code", LODE_L2), *made = collection(s, "code.new", LODE_L2);
  lode_collection *files = collection(s, "files.new", LODE_L2);
  uint64_t n;
  add_three(made);
  lode_replacement wrong[] = {{S("code.new"), S("code")}, {S("nobody"), S("files")}};
  FAILS(LODE_NOT_FOUND, lode_collections_replace(s, wrong, 2, &err));
  CHECK(exists(s, "code.new") && count(old) == 0); /* nothing was changed by the first of them */
  FAILS(LODE_INVALID, lode_collections_replace(s, &(lode_replacement){S("code.new"), S("")}, 1, &err));
  OK(lode_collections_replace(s, NULL, 0, &err));
  lode_replacement right[] = {{S("code.new"), S("code")}, {S("files.new"), S("files")}, {S("files"), S("files")}};
  OK(lode_collections_replace(s, right, 3, &err));
  CHECK(!exists(s, "code.new") && !exists(s, "files.new") && exists(s, "files"));
  CHECK(count(made) == 3 && count(files) == 0); /* handles go with their collections */
  FAILS(LODE_NOT_FOUND, lode_count(old, &n, &err));
  lode_collection *now = collection(s, "code", LODE_L2);
  CHECK(count(now) == 3);
  lode_collection_close(now);
  lode_collection_close(old);
  lode_collection_close(made);
  lode_collection_close(files);
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
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(LODE_INVALID, lode_collection_open(s, bad[i], &o, &c, &err));
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
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    FAILS(LODE_INVALID, lode_collection_open(s, S("w"), &wrong[i], &c, &err));
  FAILS(LODE_NOT_FOUND, lode_collection_open(s, S("w"), NULL, &c, &err));
  lode_close(s);
}

TEST(another_embedding_model_is_refused_for_vectors_alone) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *first = collection(s, "c", LODE_L2), *mine, *other, *longer;
  /* The model is stamped by the first open that names one. */
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.embedder = S("mine"), .embedder_dim = 3}, &mine,
                          &err));
  lode_record four = {.id = S("four"), .vector = (float[]){1, 2, 3, 4}, .dimension = 4};
  FAILS(LODE_MISMATCH, lode_add(mine, NULL, &four, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(err.record == 0);
  add_three(mine);
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.embedder = S("other")}, &other, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.embedder = S("mine"), .embedder_dim = 4}, &longer,
                          &err));
  lode_record vector = {.id = S("v"), .vector = a3, .dimension = 3}, text = {.id = S("t"), .document = S("some words")};
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
      {.id = S("id \xE2\x82\xAC"),
       .document = S(""),
       .metadata = S("{ \"s\" : \"\\u00e9\" , \"i\":-9223372036854775808, \"d\":0.1, \"b\":true, \"a\":[1,2.5] }"),
       .vector = a3,
       .dimension = 3},
      {.id = S("plain"), .metadata = S("{}")},
  };
  lode_write_result w;
  OK(lode_add(c, NULL, r, 2, LODE_FAIL_EXISTING, &w, &err));
  CHECK(w.written == 2 && w.skipped == 0);
  lode_result *got;
  OK(lode_get(c, &(lode_get_request){.include = LODE_ALL}, &got, &err));
  CHECK(lode_result_count(got) == 2 && lode_result_next(got) == 0 && !lode_result_at(got, 2));
  const lode_row *row = lode_result_at(got, 0);
  CHECK(eq(row->id, "id \xE2\x82\xAC") && eq(row->document, ""));
  CHECKF(eq(row->metadata, "{\"s\":\"\xC3\xA9\",\"i\":-9223372036854775808,\"d\":0.1,\"b\":true,\"a\":[1,2.5]}"), "%s",
         row->metadata.data);
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
  lode_store *s = open_at(store_place(), (lode_open_options){.no_background = true, .max_document_bytes = 10});
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
  lode_record fits[] = {
      {.id = {long_id, 4096}, .document = S("ten bytes."), .vector = huge, .dimension = LODE_MAX_DIMENSION}};
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
  OK(lode_update(c, NULL, &(lode_record){.id = S("a"), .metadata = S("{\"tags\": null, \"m\": null}")}, 1, NULL, NULL,
                 &err));
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
  lode_collection *c = collection(s, "c", LODE_L2), *d = collection(s, "d", LODE_L2),
                  *far = collection(elsewhere, "c", LODE_L2);
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
  for (size_t i = 0; i < N; i++)
    ids[i] = (lode_str){text[i], (size_t)snprintf(text[i], sizeof text[i], "%zu", i * 7919 % N)};
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
