/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_null.c - every function of lode.h with NULL where a handle, a struct or a result is expected, and with sizes
 * that cannot be: a status with a text and zeroed results, or nothing, never a crash. A function that lode.h has and
 * this file does not call fails it. */
#include "support/api_kit.h"

#include <ctype.h>
#include <unistd.h>

typedef struct names {
  char list[128][64];
  size_t n;
} names;
static names called, declared;

static bool has_name(const names *all, const char *name) {
  for (size_t i = 0; i < all->n; i++)
    if (strcmp(all->list[i], name) == 0) return true;
  return false;
}

static void add_name(names *all, const char *from, size_t len) {
  CHECK(all->n < 128 && len < 64);
  memcpy(all->list[all->n], from, len);
  all->list[all->n][len] = 0;
  if (!has_name(all, all->list[all->n])) all->n++;
}

/* Notes the function that a call begins with. */
static void note(const char *call) { add_name(&called, call, strcspn(call, "(")); }

static lode_error err;

/* The call is LODE_INVALID and says why, with an error and without one. */
#define REFUSED(call)                                                                                                  \
  do {                                                                                                                 \
    lode_error *const to[] = {&err, NULL};                                                                             \
    note(#call);                                                                                                       \
    for (int i_ = 0; i_ < 2; i_++) {                                                                                   \
      lode_error *e = to[i_];                                                                                          \
      lode_status st_ = (call);                                                                                        \
      CHECKF(st_ == LODE_INVALID, "%s: %s", #call, lode_status_name(st_));                                             \
    }                                                                                                                  \
    CHECKF(err.status == LODE_INVALID && err.text[0], "%s: no text", #call);                                           \
    err = (lode_error){0};                                                                                             \
  } while (0)
/* It gives nothing. */
#define NOTHING(call)                                                                                                  \
  do {                                                                                                                 \
    note(#call);                                                                                                       \
    CHECKF(!(call), "%s", #call);                                                                                      \
  } while (0)
#define RETURNS(call)                                                                                                  \
  do {                                                                                                                 \
    note(#call);                                                                                                       \
    call;                                                                                                              \
  } while (0)

#define JUNK ((void *)(uintptr_t)0xDEAD)
static const lode_progress none;

static int64_t no_write(void *ctx, const void *data, size_t size) {
  (void)ctx, (void)data;
  return (int64_t)size;
}

static lode_status no_embed(void *ctx, const lode_str *texts, size_t n, float *vectors, lode_error *e) {
  (void)ctx, (void)texts, (void)e;
  memset(vectors, 0, n * sizeof *vectors);
  return LODE_OK;
}

static bool is_zero(const void *data, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (((const char *)data)[i]) return false;
  return true;
}

static void null_stores(lode_store *s) {
  lode_store *store = JUNK;
  lode_collection *c = JUNK;
  lode_collection_list *list = JUNK;
  lode_txn *txn = JUNK;
  lode_stats stats;
  uint64_t id = 7;
  memset(&stats, 1, sizeof stats);
  REFUSED(lode_open(NULL, NULL, &store, e));
  CHECK(!store);
  REFUSED(lode_open("x", NULL, NULL, e));
  REFUSED(lode_collection_open(NULL, S("x"), NULL, &c, e));
  CHECK(!c);
  REFUSED(lode_collection_open(s, S("x"), NULL, NULL, e));
  REFUSED(lode_collection_open(s, NONE, NULL, &c, e));
  REFUSED(lode_collection_rename(NULL, S("x"), S("y"), e));
  REFUSED(lode_collection_rename(s, NONE, NONE, e));
  REFUSED(lode_collections_replace(NULL, &(lode_replacement){S("x"), S("y")}, 1, e));
  REFUSED(lode_collections_replace(s, NULL, 1, e));
  REFUSED(lode_collection_set_metadata(NULL, S("x"), S("{}"), e));
  REFUSED(lode_collection_drop(NULL, S("x"), e));
  REFUSED(lode_collections(NULL, &list, e));
  CHECK(!list);
  REFUSED(lode_collections(s, NULL, e));
  REFUSED(lode_begin(NULL, &txn, e));
  CHECK(!txn);
  REFUSED(lode_begin(s, NULL, e));
  REFUSED(lode_commit(NULL, e));
  REFUSED(lode_store_stats(NULL, &stats, e));
  CHECK(is_zero(&stats, sizeof stats));
  REFUSED(lode_store_stats(s, NULL, e));
  lode_reembed_report report;
  memset(&report, 1, sizeof report);
  REFUSED(lode_reembed(NULL, S("x"), &(lode_reembed_request){0}, &report, e));
  CHECK(is_zero(&report, sizeof report));
  REFUSED(lode_reembed(s, S("x"), NULL, NULL, e));
  REFUSED(lode_reembed(s, S("x"), &(lode_reembed_request){0}, NULL, e));
  REFUSED(lode_store_id(NULL, &id, e));
  CHECK(id == 0);
  REFUSED(lode_store_id(s, NULL, e));
  REFUSED(lode_optimize(NULL, none, e));
  REFUSED(lode_rebuild_unreadable(NULL, none, e));
  REFUSED(lode_verify_folder(NULL, NULL, NULL, none, e));
  REFUSED(lode_compact(NULL, none, e));
  REFUSED(lode_verify(NULL, NULL, NULL, none, e));
  REFUSED(lode_backup(NULL, "x", none, e));
  REFUSED(lode_backup(s, NULL, none, e));
  REFUSED(lode_restore(NULL, "x", none, e));
  REFUSED(lode_restore("x", NULL, none, e));
  RETURNS(lode_close(NULL));
  RETURNS(lode_rollback(NULL));
}

static void null_writes(lode_collection *c) {
  lode_record r = {.id = S("x")}, odd = {.id = S("x"), .reserved = 1};
  lode_selection all = {.where = S("{}")}, used = {.where = S("{}"), .reserved = {0, 1}};
  lode_write_result result = {3, 4};
  lode_salvage_report salvage;
  size_t deleted = 7;
  memset(&salvage, 1, sizeof salvage);
  REFUSED(lode_add(NULL, NULL, &r, 1, LODE_FAIL_EXISTING, &result, e));
  CHECK(is_zero(&result, sizeof result));
  REFUSED(lode_add(c, NULL, NULL, 1, LODE_FAIL_EXISTING, NULL, e));
  REFUSED(lode_add(c, NULL, &r, SIZE_MAX, LODE_FAIL_EXISTING, NULL, e));
  REFUSED(lode_upsert(NULL, NULL, &r, 1, &result, e));
  REFUSED(lode_upsert(c, NULL, NULL, 1, NULL, e));
  REFUSED(lode_update(NULL, NULL, &r, 1, NULL, &result, e));
  REFUSED(lode_update(c, NULL, NULL, 1, NULL, NULL, e));
  FAILS(LODE_REFUSED, lode_add(c, NULL, &odd, 1, LODE_FAIL_EXISTING, &result, &err));
  CHECK(err.record == 0);
  REFUSED(lode_delete(NULL, NULL, &all, &deleted, e));
  CHECK(deleted == 0);
  REFUSED(lode_delete(c, NULL, NULL, &deleted, e));
  REFUSED(lode_delete(c, NULL, &used, &deleted, e));
  REFUSED(lode_delete(c, NULL, &(lode_selection){.n_ids = 1}, &deleted, e));
  REFUSED(lode_salvage(NULL, "x", NULL, NULL, none, &salvage, e));
  CHECK(is_zero(&salvage, sizeof salvage));
  REFUSED(lode_salvage("x", NULL, NULL, NULL, none, NULL, e));
  CHECK(count(c) == 3);
}

static void null_reads(lode_collection *c) {
  lode_result *rows = JUNK;
  lode_facet_list *facets = JUNK;
  bool matches = false;
  lode_query_request query = {.n = 1, .k = 1};
  lode_import_request import = {0};
  lode_import_report report = {1, 2, 3};
  lode_stats stats;
  uint64_t n = 7;
  memset(&stats, 1, sizeof stats);
  REFUSED(lode_get(NULL, NULL, &rows, e));
  CHECK(!rows);
  REFUSED(lode_get(c, NULL, NULL, e));
  REFUSED(lode_get(c, &(lode_get_request){.select.reserved = {1}}, &rows, e));
  REFUSED(lode_query(NULL, &query, &rows, e));
  REFUSED(lode_query(c, NULL, &rows, e));
  REFUSED(lode_query(c, &query, NULL, e));
  REFUSED(lode_query(c, &query, &rows, e));
  REFUSED(lode_query(c, &(lode_query_request){.mode = LODE_BY_TEXT, .n = 1, .k = 1}, &rows, e));
  REFUSED(lode_count(NULL, &n, e));
  CHECK(n == 0);
  REFUSED(lode_count(c, NULL, e));
  REFUSED(lode_facets(NULL, S("n"), NONE, 0, &facets, e));
  CHECK(!facets);
  REFUSED(lode_facets(c, S("n"), NONE, 0, NULL, e));
  REFUSED(lode_facets(c, NONE, NONE, 0, &facets, e));
  REFUSED(lode_counters(NULL, NONE, &facets, e));
  REFUSED(lode_counters(c, NONE, NULL, e));
  REFUSED(lode_match_texts(NONE, NULL, 1, &matches, e));
  REFUSED(lode_match_texts(NONE, &S("x"), 1, NULL, e));
  REFUSED(lode_collection_stats(NULL, &stats, e));
  CHECK(is_zero(&stats, sizeof stats));
  REFUSED(lode_collection_stats(c, NULL, e));
  n = 7;
  REFUSED(lode_export(NULL, NULL, 0, no_write, NULL, none, &n, e));
  CHECK(n == 0);
  REFUSED(lode_export(c, NULL, 0, NULL, NULL, none, &n, e));
  REFUSED(lode_import(NULL, &import, none, &report, e));
  CHECK(is_zero(&report, sizeof report));
  REFUSED(lode_import(c, NULL, none, NULL, e));
  REFUSED(lode_import(c, &import, none, NULL, e));
  RETURNS(lode_collection_close(NULL));
}

static void null_embedders(void) {
  lode_embedder *embedder = JUNK, *own;
  lode_str text = S("text");
  lode_record r = {.id = S("x"), .document = text};
  float v[2] = {0}, *vectors = JUNK;
  REFUSED(lode_embedder_open(S("minilm"), NULL, NULL, e));
  REFUSED(lode_embedder_open(S("x\0y"), NULL, &embedder, e));
  CHECK(!embedder);
  REFUSED(lode_embedder_open_custom(S("x"), 2, no_embed, NULL, NULL, e));
  REFUSED(lode_embedder_open_custom(S("x"), 2, NULL, NULL, &embedder, e));
  OK(lode_embedder_open_custom(S("x"), 2, no_embed, NULL, &own, &err));
  NOTHING(lode_embedder_info_of(NULL));
  REFUSED(lode_embed(NULL, &text, 1, v, e));
  REFUSED(lode_embed(own, NULL, 1, v, e));
  REFUSED(lode_embed(own, &text, 1, NULL, e));
  REFUSED(lode_embed_records(NULL, &r, 1, &vectors, e));
  CHECK(!vectors);
  REFUSED(lode_embed_records(own, NULL, 1, &vectors, e));
  REFUSED(lode_embed_records(own, &r, 1, NULL, e));
  REFUSED(lode_models(NULL, NULL, e));
  note("lode_model_verify");
  FAILS(LODE_NOT_FOUND, lode_model_verify(NONE, NULL, &err));
  REFUSED(lode_model_install(S("minilm"), NULL, NULL, none, e));
  NOTHING(lode_model_list_count(NULL));
  NOTHING(lode_model_list_at(NULL, 0));
  RETURNS(lode_model_list_free(NULL));
  RETURNS(lode_vectors_free(NULL));
  RETURNS(lode_embedder_close(NULL));
  lode_embedder_close(own);
}

static void null_results(void) {
  NOTHING(lode_collection_list_count(NULL));
  NOTHING(lode_collection_list_at(NULL, 0));
  RETURNS(lode_collection_list_free(NULL));
  NOTHING(lode_result_count(NULL));
  NOTHING(lode_result_at(NULL, 0));
  NOTHING(lode_result_next(NULL));
  NOTHING(lode_result_moment(NULL));
  NOTHING(lode_result_explain(NULL).data);
  RETURNS(lode_result_free(NULL));
  NOTHING(lode_facet_list_count(NULL));
  NOTHING(lode_facet_list_at(NULL, 0));
  RETURNS(lode_facet_list_free(NULL));
  NOTHING(lode_metric_parse(NONE, NULL));
  CHECK(lode_metric_parse(S("l2"), NULL));
  note("lode_metric_name"), note("lode_status_name"), note("lode_status_text");
  CHECK(lode_metric_name((lode_metric)99) && lode_status_name((lode_status)99) && lode_status_text((lode_status)99));
  note("lode_version"), note("lode_version_number"); /* these take nothing */
}

/* What was not zeroed by the caller, or is no size of a struct. */
static void impossible_sizes(lode_store *s, lode_collection *c) {
  lode_store *store;
  lode_stats stats;
  lode_result *rows;
  lode_record r = {.id = S("x")};
  lode_write_result result;
  lode_open_options open = {0};
  lode_get_request get = {0};
  const size_t sizes[] = {0, 4097, SIZE_MAX};
  for (size_t i = 0; i < 3; i++) {
    REFUSED(lode_open_sized("x", &open, sizes[i], &store, e));
    REFUSED(lode_store_stats_sized(s, &stats, sizes[i], e));
    REFUSED(lode_get_sized(c, &get, sizes[i], &rows, e));
    REFUSED(lode_add_sized(c, NULL, &r, sizes[i], 1, LODE_FAIL_EXISTING, &result, sizeof result, e));
    REFUSED(lode_add_sized(c, NULL, &r, sizeof r, 1, LODE_FAIL_EXISTING, &result, sizes[i], e));
  }
  REFUSED(lode_add_sized(c, NULL, &r, 8, SIZE_MAX / 8, LODE_FAIL_EXISTING, NULL, 0, e));
  CHECK(count(c) == 3);
}

/* The functions that lode.h declares: LODE_API or LODE_INLINE, a type, a name, a parenthesis. */
static void read_header(void) {
  if (access("include/lode.h", R_OK) != 0) test_skip("lode.h is not here: run it from the top of the source");
  size_t len;
  char *text = test_read_file("include/lode.h", &len);
  for (char *at = text; (at = strstr(at, "LODE_")) != NULL; at++) {
    if (strncmp(at, "LODE_API ", 9) != 0 && strncmp(at, "LODE_INLINE ", 12) != 0) continue;
    char *end = at + strcspn(at, "(\n;"), *name = end;
    while (name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
    if (*end != '(' || strncmp(name, "lode_", 5) != 0) continue;
    bool is_sized = end - name > 6 && strncmp(end - 6, "_sized", 6) == 0;
    if (!is_sized) add_name(&declared, name, (size_t)(end - name));
  }
  free(text);
}

TEST(every_function_refuses_null) {
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  read_header();
  null_stores(s);
  null_writes(c);
  null_reads(c);
  null_embedders();
  null_results();
  CHECK(declared.n > 60);
  for (size_t i = 0; i < declared.n; i++)
    CHECKF(has_name(&called, declared.list[i]), "%s is not tried", declared.list[i]);
  lode_collection_close(c);
  lode_close(s);
}

TEST(impossible_sizes_are_refused) {
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  add_three(c);
  impossible_sizes(s, c);
  lode_collection_close(c);
  lode_close(s);
}
