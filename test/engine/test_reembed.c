/* SPDX-License-Identifier: Apache-2.0 */
/* test_reembed.c - lode_reembed(): another model for a collection that is in use, killed and failing at any call. */
#include "support/api_kit.h"
#include "support/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Two models that can be told apart: the vector of a text is its length, a salt and its first bytes. */
typedef struct toy {
  uint32_t dimension;
  float salt;
} toy;
static const toy first_model = {4, 1}, second_model = {6, 2}, third_model = {4, 3};

static void toy_vector(const toy *t, lode_str text, float *v) {
  v[0] = (float)text.len;
  v[1] = t->salt;
  for (uint32_t d = 2; d < t->dimension; d++) v[d] = d - 2 < text.len ? (float)(unsigned char)text.data[d - 2] : 0;
}

static lode_status toy_embed(void *ctx, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  const toy *t = ctx;
  (void)err;
  for (size_t i = 0; i < n; i++) toy_vector(t, texts[i], vectors + i * t->dimension);
  return LODE_OK;
}

static lode_str toy_name(const toy *t) {
  static char names[4][40];
  char *name = names[(int)t->salt];
  snprintf(name, sizeof names[0], "toy%d@1/%u/toy", (int)t->salt, t->dimension);
  return str(name);
}

static lode_embedder *toy_open(const toy *t) {
  lode_error err;
  lode_embedder *e;
  OK(lode_embedder_open_custom(toy_name(t), t->dimension, toy_embed, (void *)(uintptr_t)t, &e, &err));
  return e;
}

static lode_collection *toy_collection(lode_store *s, const toy *t) {
  static const lode_str counted = {"kind", 4};
  lode_collection_options o = {.create = true,
                               .metadata = S("{\"owner\": \"me\"}"),
                               .counters = &counted,
                               .n_counters = 1,
                               .embedder = toy_name(t),
                               .embedder_dim = t->dimension};
  lode_error err;
  lode_collection *c;
  OK(lode_collection_open(s, S("notes"), &o, &c, &err));
  return c;
}

static void put(lode_collection *c, const toy *t, unsigned id, const char *word) {
  char name[20], text[64];
  float v[8];
  lode_error err;
  snprintf(name, sizeof name, "r%u", id);
  snprintf(text, sizeof text, "%s %u", word, id);
  toy_vector(t, str(text), v);
  lode_record r = {.id = str(name),
                   .document = str(text),
                   .metadata = S("{\"kind\": \"note\"}"),
                   .vector = v,
                   .dimension = t->dimension};
  OK(lode_upsert(c, NULL, &r, 1, NULL, &err));
}

static void fill(lode_collection *c, const toy *t, unsigned n) {
  for (unsigned i = 0; i < n; i++) put(c, t, i, "first");
}

static lode_status reembed(lode_store *s, const toy *t, lode_progress progress, lode_reembed_report *report,
                           lode_error *err) {
  lode_embedder *e = toy_open(t);
  lode_reembed_request request = {.embedder = e, .progress = progress};
  lode_status st = lode_reembed(s, S("notes"), &request, report, err);
  lode_embedder_close(e);
  return st;
}

/* Every record with a document has the model's vector of it. Returns how many records there are. */
static size_t expect_model(lode_collection *c, const toy *t) {
  lode_error err;
  lode_result *r;
  float v[8];
  OK(lode_get(c, &(lode_get_request){.include = LODE_ALL}, &r, &err));
  for (size_t i = 0; i < lode_result_count(r); i++) {
    const lode_row *row = lode_result_at(r, i);
    if (!row->document.data) continue;
    toy_vector(t, row->document, v);
    CHECKF(row->dimension == t->dimension && memcmp(v, row->vector, t->dimension * sizeof *v) == 0,
           "record %.*s has a vector of another model", (int)row->id.len, row->id.data);
  }
  size_t n = lode_result_count(r);
  lode_result_free(r);
  return n;
}

static size_t collections_in(lode_store *s, lode_collection_info *notes) {
  lode_error err;
  lode_collection_list *list;
  OK(lode_collections(s, &list, &err));
  size_t n = lode_collection_list_count(list);
  for (size_t i = 0; notes && i < n; i++)
    if (eq(lode_collection_list_at(list, i)->name, "notes")) *notes = *lode_collection_list_at(list, i);
  if (notes) {
    CHECK(eq(notes->metadata, "{\"owner\": \"me\"}"));
    notes->name = notes->metadata = notes->embedder = NONE;
  }
  lode_collection_list_free(list);
  return n;
}

TEST(a_collection_gets_another_model) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *named = toy_collection(s, &first_model), *c;
  lode_collection_info before, after;
  lode_reembed_report report;
  lode_facet_list *facets;
  float query[8];
  OK(lode_collection_open(s, S("notes"), NULL, &c, &err));
  fill(c, &first_model, 600);
  collections_in(s, &before);
  OK(reembed(s, &second_model, quiet, &report, &err));
  CHECK(report.records == 600 && report.embedded == 600 && report.reused == 0 && report.without_vector == 0);
  CHECK(collections_in(s, &after) == 1 && after.uid == before.uid && after.dimension == second_model.dimension);
  /* handles stay valid, but for one that was opened with the old model */
  CHECK(expect_model(c, &second_model) == 600 && count(c) == 600);
  put(c, &second_model, 600, "later");
  toy_vector(&second_model, S("later 600"), query);
  lode_query_request near = {.vectors = query, .dimension = 6, .n = 1, .k = 1};
  lode_result *r;
  OK(lode_query(c, &near, &r, &err));
  CHECK(strcmp(ids_of(r), "r600") == 0 && lode_result_at(r, 0)->distance == 0);
  lode_result_free(r);
  FAILS(LODE_MISMATCH, lode_query(named, &near, &r, &err));
  OK(lode_counters(c, S("kind"), &facets, &err));
  CHECK(lode_facet_list_count(facets) == 1 && lode_facet_list_at(facets, 0)->count == 601);
  lode_facet_list_free(facets);
  OK(lode_optimize(s, quiet, &err));
  OK(lode_verify(s, NULL, NULL, quiet, &err));
  OK(lode_query(c, &near, &r, &err));
  CHECK(strcmp(ids_of(r), "r600") == 0);
  lode_result_free(r);
  /* the same model again: nothing to do */
  OK(reembed(s, &second_model, quiet, &report, &err));
  CHECK(report.embedded == 0 && report.records == 601);
  lode_collection_close(c);
  lode_collection_close(named);
  lode_close(s);
}

TEST(a_handle_of_a_dropped_collection_follows_nobody) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = toy_collection(s, &first_model), *again;
  uint64_t n;
  fill(c, &first_model, 3);
  OK(reembed(s, &second_model, quiet, NULL, &err));
  OK(lode_collection_drop(s, S("notes"), &err));
  again = toy_collection(s, &first_model);
  FAILS(LODE_NOT_FOUND, lode_count(c, &n, &err));
  lode_collection_close(again);
  lode_collection_close(c);
  lode_close(s);
}

/* What is written while the vectors are made. */
typedef struct meddler {
  lode_store *store;
  lode_collection *c;
  unsigned calls;
} meddler;

static bool meddle(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  meddler *m = ctx;
  lode_error err;
  char gone[20];
  CHECK(strcmp(phase, "embed") == 0 && done <= total);
  unsigned i = m->calls++;
  snprintf(gone, sizeof gone, "r%u", 3 * i);
  put(m->c, &first_model, 5 * i + 1, "changed");
  put(m->c, &first_model, 1000 + i, "added");
  lode_str gone_id = str(gone);
  OK(lode_delete(m->c, NULL, &(lode_selection){.ids = &gone_id, .n_ids = 1}, NULL, &err));
  lode_record only_metadata = {.id = S("r2"), .metadata = S("{\"seen\": true}")};
  OK(lode_update(m->c, NULL, &only_metadata, 1, NULL, NULL, &err));
  OK(lode_collection_set_metadata(m->store, S("notes"), S("{\"owner\": \"me\"}"), &err));
  return true;
}

TEST(what_is_written_meanwhile_is_not_lost) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = toy_collection(s, &first_model);
  lode_result *r;
  fill(c, &first_model, 900);
  meddler m = {.store = s};
  OK(lode_collection_open(s, S("notes"), NULL, &m.c, &err));
  OK(reembed(s, &second_model, (lode_progress){meddle, &m}, NULL, &err));
  CHECK(m.calls >= 4);
  CHECK(expect_model(m.c, &second_model) == 900); /* each call adds one and deletes one */
  expect_ids(m.c, (lode_get_request){.select = {.ids = &S("r0"), .n_ids = 1}}, "");
  expect_metadata(m.c, S("r2"), "{\"kind\":\"note\",\"seen\":true}");
  OK(lode_get(m.c, &(lode_get_request){.select = {.ids = &S("r1"), .n_ids = 1}, .include = LODE_ALL}, &r, &err));
  CHECK(eq(lode_result_at(r, 0)->document, "changed 1"));
  lode_result_free(r);
  CHECK(collections_in(s, NULL) == 1);
  lode_collection_close(m.c);
  lode_collection_close(c);
  lode_close(s);
}

static bool stop_second(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return ++*(int *)ctx < 2;
}

TEST(an_interrupted_call_is_resumed) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = toy_collection(s, &first_model);
  lode_reembed_report report;
  int calls = 0;
  fill(c, &first_model, 700);
  FAILS(LODE_CANCELLED, reembed(s, &second_model, (lode_progress){stop_second, &calls}, &report, &err));
  CHECK(expect_model(c, &first_model) == 700 && collections_in(s, NULL) == 2);
  OK(reembed(s, &second_model, quiet, &report, &err));
  CHECK(report.reused == 512 && report.embedded == 188);
  CHECK(collections_in(s, NULL) == 1);
  /* another model has no use for what was made */
  calls = 0;
  FAILS(LODE_CANCELLED, reembed(s, &first_model, (lode_progress){stop_second, &calls}, &report, &err));
  OK(reembed(s, &third_model, quiet, &report, &err));
  CHECK(report.reused == 0 && report.embedded == 700 && collections_in(s, NULL) == 1);
  lode_collection_close(c);
  lode_close(s);
}

TEST(a_vector_without_a_document_is_not_lost_silently) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = toy_collection(s, &first_model);
  lode_reembed_report report;
  float v[4] = {1, 2, 3, 4};
  fill(c, &first_model, 3);
  lode_record bare[] = {{.id = S("pending")}, {.id = S("bare"), .vector = v, .dimension = 4}};
  OK(lode_add(c, NULL, bare, 2, LODE_FAIL_EXISTING, NULL, &err));
  FAILS(LODE_REFUSED, reembed(s, &second_model, quiet, &report, &err));
  CHECK(strstr(err.text, "bare") && expect_model(c, &first_model) == 5);
  lode_embedder *e = toy_open(&second_model);
  OK(lode_reembed(s, S("notes"), &(lode_reembed_request){.embedder = e, .drop_vectors = true}, &report, &err));
  CHECK(report.without_vector == 2 && report.embedded == 3);
  FAILS(LODE_NOT_FOUND, lode_reembed(s, S("nobody"), &(lode_reembed_request){.embedder = e}, NULL, &err));
  FAILS(LODE_INVALID, lode_reembed(s, S("notes"), &(lode_reembed_request){0}, NULL, &err));
  lode_embedder_close(e);
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Readers and writers beside it ---- */

typedef struct onlooker {
  lode_store *store;
  const toy *model; /* of a writer */
  atomic_bool stop;
  atomic_uint seen[4]; /* answers by model */
} onlooker;

/* No answer holds vectors of two models, and no record is missing. */
static void *look_on(void *ctx) {
  onlooker *o = ctx;
  lode_error err;
  lode_collection *c;
  OK(lode_collection_open(o->store, S("notes"), NULL, &c, &err));
  while (!atomic_load(&o->stop)) {
    lode_result *r;
    lode_query_request words = {
        .mode = LODE_BY_TEXT, .texts = &S("first"), .n = 1, .k = 50, .include = LODE_DOCUMENT | LODE_VECTOR};
    OK(lode_query(c, &words, &r, &err));
    CHECK(lode_result_count(r) == 50);
    float salt = lode_result_at(r, 0)->vector[1];
    for (size_t i = 0; i < lode_result_count(r); i++) CHECK(lode_result_at(r, i)->vector[1] == salt);
    lode_result_free(r);
    atomic_fetch_add(&o->seen[(int)salt], 1);
    CHECK(count(c) == 500);
  }
  lode_collection_close(c);
  return NULL;
}

TEST_SLOW(answers_never_mix_two_models, 300) {
  lode_error err;
  lode_store *s = open_at(store_place(), (lode_open_options){0});
  lode_collection *c = toy_collection(s, &first_model);
  onlooker o = {.store = s};
  pthread_t threads[2];
  fill(c, &first_model, 500);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, look_on, &o) == 0);
  for (int i = 0; i < 12; i++) OK(reembed(s, i % 2 ? &first_model : &second_model, quiet, NULL, &err));
  atomic_store(&o.stop, true);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(atomic_load(&o.seen[1]) + atomic_load(&o.seen[2]) > 0);
  CHECK(expect_model(c, &first_model) == 500);
  OK(lode_verify(s, NULL, NULL, quiet, &err));
  lode_collection_close(c);
  lode_close(s);
}

static char shared_folder[500];

static void *reembed_too(void *ctx) {
  lode_store *s = open_at(shared_folder, (lode_open_options){.no_background = true});
  lode_error err;
  OK(reembed(s, ctx, quiet, NULL, &err));
  lode_close(s);
  return NULL;
}

TEST_SLOW(several_at_once_share_the_work, 300) {
  pthread_t threads[3];
  if (!in_a_folder()) test_skip("of a folder");
  snprintf(shared_folder, sizeof shared_folder, "%s", test_folder());
  lode_store *s = open_at(shared_folder, (lode_open_options){.no_background = true});
  lode_collection *c = toy_collection(s, &first_model);
  fill(c, &first_model, 600);
  for (int round = 0; round < 6; round++) {
    const toy *t = round % 2 ? &first_model : &second_model;
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, reembed_too, (void *)(uintptr_t)t) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(expect_model(c, t) == 600 && collections_in(s, NULL) <= 2);
  }
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Kills and failing calls ---- */

static char work_folder[500];

/* ctx: what is done at each progress, or NULL. */
static lode_status do_reembed(void *ctx, lode_error *err) {
  lode_store *s;
  const lode_progress *progress = ctx;
  lode_status st = lode_open(work_folder, &(lode_open_options){.no_background = true}, &s, err);
  if (st != LODE_OK) return st;
  st = reembed(s, &second_model, progress ? *progress : quiet, NULL, err);
  lode_close(s);
  return st;
}

/* The collection is wholly of one model; which one. */
static const toy *model_now(void) {
  lode_error err;
  lode_store *s = open_at(work_folder, (lode_open_options){.no_background = true});
  lode_collection *c;
  lode_collection_info info;
  OK(lode_collection_open(s, S("notes"), NULL, &c, &err));
  collections_in(s, &info);
  const toy *t = info.dimension == first_model.dimension ? &first_model : &second_model;
  CHECK(expect_model(c, t) == 300);
  OK(lode_verify(s, NULL, NULL, quiet, &err));
  lode_collection_close(c);
  lode_close(s);
  return t;
}

static void make_base(char *base, size_t size) {
  snprintf(base, size, "%s/base", test_folder());
  snprintf(work_folder, sizeof work_folder, "%s/work", test_folder());
  lode_store *s = open_at(base, (lode_open_options){.no_background = true, .page_bytes = 1024});
  lode_collection *c = toy_collection(s, &first_model);
  fill(c, &first_model, 300);
  lode_collection_close(c);
  lode_close(s);
}

TEST_SLOW(killed_at_any_call, 600) {
  char base[500];
  unsigned switched = 0, kept = 0;
  if (!in_a_folder()) test_skip("kills are of a folder");
  fault_no_sync();
  test_srand(test_seed());
  make_base(base, sizeof base);
  test_copy_tree(base, work_folder);
  uint64_t total = fault_in_child(do_reembed, NULL, FAULT_ANY, 0, FAULT_EXIT);
  CHECK(total > 100 && model_now() == &second_model);
  for (uint64_t tries = test_full() ? 400 : 50; tries; tries--) {
    uint64_t n = tries == 1 ? total - 1 : 1 + test_below(total);
    test_remove_tree(work_folder);
    test_copy_tree(base, work_folder);
    (void)fault_in_child(do_reembed, NULL, FAULT_ANY, n, FAULT_EXIT);
    *(model_now() == &second_model ? &switched : &kept) += 1;
    CHECKF(fault_in_child(do_reembed, NULL, FAULT_ANY, 0, FAULT_EXIT) || model_now() == &second_model,
           "killed at call %llu: it cannot be resumed", (unsigned long long)n);
    CHECK(model_now() == &second_model);
  }
  CHECKF(kept > 0 && switched > 0, "%u kept, %u switched", kept, switched);
}

TEST_SLOW(memory_fails_at_any_call, 600) {
  char base[500];
  lode_error err;
  if (!in_a_folder()) test_skip("of a folder");
  fault_alloc_install();
  test_srand(test_seed());
  make_base(base, sizeof base);
  test_copy_tree(base, work_folder);
  fault_alloc_set(0, false);
  OK(do_reembed(NULL, &err));
  uint64_t total = fault_alloc_count();
  for (uint64_t n = 1; n <= total; n += 1 + test_below(test_full() ? 1 : 2 * total / 40)) {
    test_remove_tree(work_folder);
    test_copy_tree(base, work_folder);
    fault_alloc_set(n, false);
    lode_status st = do_reembed(NULL, &err);
    fault_alloc_set(0, false);
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "allocation %llu: %s %s", (unsigned long long)n, lode_status_name(st),
           err.text);
    CHECK((model_now() == &second_model) == (st == LODE_OK));
  }
}

TEST_SLOW(the_disk_fails_at_any_call, 600) {
  char base[500];
  lode_error err;
  if (!in_a_folder()) test_skip("of a folder");
  test_srand(test_seed());
  make_base(base, sizeof base);
  test_copy_tree(base, work_folder);
  fault_install(os_api);
  OK(do_reembed(NULL, &err));
  uint64_t total = fault_count(FAULT_ANY);
  for (uint64_t n = 1; n <= total; n += 1 + test_below(test_full() ? 1 : 2 * total / 40)) {
    test_remove_tree(work_folder);
    test_copy_tree(base, work_folder);
    fault_set(FAULT_ANY, n, false, FAULT_EIO);
    lode_status st = do_reembed(NULL, &err);
    fault_clear();
    const toy *now = model_now();
    CHECKF(st != LODE_CORRUPT && st != LODE_INTERNAL, "call %llu: %s %s", (unsigned long long)n, lode_status_name(st),
           err.text);
    if (st == LODE_OK) CHECK(now == &second_model);
  }
}

/* ---- Beside upkeep ---- */

static void remove_backup(char path[540]) {
  snprintf(path, 540, "%s.backup", work_folder);
  (void)unlink(path);
}

/* Another handle compacts and backs up. A call may have been made to fail. */
static bool upkeep(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  char backup[540];
  lode_error err;
  lode_store *s;
  (void)phase, (void)done, (void)total;
  remove_backup(backup);
  lode_status st = lode_open(work_folder, &(lode_open_options){.no_background = true}, &s, &err);
  if (st != LODE_OK) return true;
  lode_status compacted = lode_compact(s, quiet, &err);
  lode_status backed_up = lode_backup(s, backup, quiet, &err);
  CHECKF(compacted == LODE_OK || compacted == LODE_IO, "compact: %s", lode_status_name(compacted));
  CHECKF(backed_up == LODE_OK || backed_up == LODE_IO, "backup: %s %s", lode_status_name(backed_up), err.text);
  *(unsigned *)ctx += compacted == LODE_OK && backed_up == LODE_OK;
  lode_close(s);
  return true;
}

/* A backup that was made meanwhile has the old model, wholly. */
static void expect_old_backup(void) {
  char backup[540], kept[500];
  lode_error err;
  snprintf(backup, sizeof backup, "%s.backup", work_folder);
  snprintf(kept, sizeof kept, "%s", work_folder);
  snprintf(work_folder, sizeof work_folder, "%s/restored", test_folder());
  OK(lode_restore(backup, work_folder, quiet, &err));
  CHECK(model_now() == &first_model);
  CHECK(do_reembed(NULL, &err) == LODE_OK && model_now() == &second_model); /* and goes on from there */
  snprintf(work_folder, sizeof work_folder, "%s", kept);
}

TEST_SLOW(beside_compact_and_backup, 600) {
  char base[500];
  lode_error err;
  unsigned done = 0;
  lode_progress beside = {upkeep, &done};
  if (!in_a_folder()) test_skip("of a folder");
  test_srand(test_seed());
  make_base(base, sizeof base);
  test_copy_tree(base, work_folder);
  fault_install(os_api);
  OK(do_reembed(&beside, &err));
  uint64_t total = fault_count(FAULT_ANY);
  CHECK(done >= 2 && model_now() == &second_model);
  expect_old_backup();
  for (uint64_t n = 1; n <= total; n += 1 + test_below(test_full() ? 4 : 2 * total / 30)) {
    test_remove_tree(work_folder);
    test_copy_tree(base, work_folder);
    fault_set(FAULT_ANY, n, false, FAULT_EIO);
    lode_status st = do_reembed(&beside, &err);
    fault_clear();
    CHECKF(st != LODE_CORRUPT && st != LODE_INTERNAL, "call %llu: %s %s", (unsigned long long)n, lode_status_name(st),
           err.text);
    const toy *now = model_now();
    if (st == LODE_OK) CHECK(now == &second_model);
  }
}

TEST_SLOW(killed_beside_compact_and_backup, 600) {
  char base[500];
  unsigned done = 0;
  lode_progress beside = {upkeep, &done};
  if (!in_a_folder()) test_skip("kills are of a folder");
  fault_no_sync();
  test_srand(test_seed());
  make_base(base, sizeof base);
  test_copy_tree(base, work_folder);
  uint64_t total = fault_in_child(do_reembed, &beside, FAULT_ANY, 0, FAULT_EXIT);
  CHECK(total > 100);
  for (uint64_t tries = test_full() ? 300 : 30; tries; tries--) {
    test_remove_tree(work_folder);
    test_copy_tree(base, work_folder);
    (void)fault_in_child(do_reembed, &beside, FAULT_ANY, 1 + test_below(total), FAULT_EXIT);
    (void)model_now();
    (void)fault_in_child(do_reembed, NULL, FAULT_ANY, 0, FAULT_EXIT);
    CHECK(model_now() == &second_model);
  }
}

/* Once: the store is moved away, and a backup of it is restored in its place. */
static bool restore_in_place(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  char backup[540], moved[540];
  lode_error err;
  (void)phase, (void)done, (void)total;
  if ((*(unsigned *)ctx)++ != 1) return true;
  remove_backup(backup);
  lode_store *s = open_at(work_folder, (lode_open_options){.no_background = true});
  OK(lode_backup(s, backup, quiet, &err));
  lode_close(s);
  snprintf(moved, sizeof moved, "%s.moved", work_folder);
  CHECK(rename(work_folder, moved) == 0);
  OK(lode_restore(backup, work_folder, quiet, &err));
  return true;
}

TEST(a_restore_in_its_place) {
  char base[500];
  lode_error err;
  unsigned calls = 0;
  lode_progress beside = {restore_in_place, &calls};
  if (!in_a_folder()) test_skip("of a folder");
  make_base(base, sizeof base);
  test_copy_tree(base, work_folder);
  lode_status st = do_reembed(&beside, &err);
  CHECK(calls >= 2);
  const toy *now = model_now();
  CHECKF(now == (st == LODE_OK ? &second_model : &first_model), "%s: %s", lode_status_name(st), err.text);
  CHECKF(st == LODE_OK || st == LODE_GONE, "%s: %s", lode_status_name(st), err.text);
  OK(do_reembed(NULL, &err));
  CHECK(model_now() == &second_model);
}

/* ---- Stores of 0.1.0 ---- */

static lode_status reembed_old(void *ctx, lode_error *err) {
  lode_embedder *e = toy_open(&second_model);
  lode_reembed_request request = {.embedder = e};
  lode_store *s = NULL;
  (void)ctx;
  lode_status st = lode_open(work_folder, &(lode_open_options){.no_background = true}, &s, err);
  if (st == LODE_OK) st = lode_reembed(s, S("c"), &request, NULL, err);
  lode_close(s);
  lode_embedder_close(e);
  return st;
}

/* Twelve records with vectors of 3 dimensions, or of the new model. */
static bool is_old_store_whole(void) {
  lode_error err;
  lode_collection *c;
  lode_result *r;
  lode_store *s = open_at(work_folder, (lode_open_options){.no_background = true});
  OK(lode_collection_open(s, S("c"), NULL, &c, &err));
  OK(lode_get(c, &(lode_get_request){.include = LODE_ALL}, &r, &err));
  bool renewed = lode_result_at(r, 0)->dimension == second_model.dimension;
  CHECK(lode_result_count(r) == 12 && (renewed || lode_result_at(r, 0)->dimension == 3));
  lode_result_free(r);
  CHECK(!renewed || expect_model(c, &second_model) == 12);
  OK(lode_verify(s, NULL, NULL, quiet, &err));
  lode_collection_close(c);
  lode_close(s);
  return renewed;
}

TEST_SLOW(stores_of_0_1_0, 300) {
  static const char *const stores[] = {"whole", "hot"};
  char command[1200], from[500];
  const char *to = test_folder();
  if (!in_a_folder()) test_skip("of a folder");
  if (access("test/fixtures/store-0.1.0.tar.gz", R_OK) != 0)
    test_skip("the fixtures are not here: run it from the top of the source");
  fault_no_sync();
  test_srand(test_seed());
  snprintf(command, sizeof command, "tar -xzf test/fixtures/store-0.1.0.tar.gz -C '%s'", to);
  CHECK(system(command) == 0);
  snprintf(work_folder, sizeof work_folder, "%s/work", to);
  for (int i = 0; i < 2; i++) {
    snprintf(from, sizeof from, "%s/%s", to, stores[i]);
    test_copy_tree(from, work_folder);
    uint64_t total = fault_in_child(reembed_old, NULL, FAULT_ANY, 0, FAULT_EXIT);
    CHECK(total > 100 && is_old_store_whole());
    for (int tries = test_full() ? 200 : 20; tries; tries--) {
      test_remove_tree(work_folder);
      test_copy_tree(from, work_folder);
      (void)fault_in_child(reembed_old, NULL, FAULT_ANY, 1 + test_below(total), FAULT_EXIT);
      if (!is_old_store_whole()) (void)fault_in_child(reembed_old, NULL, FAULT_ANY, 0, FAULT_EXIT);
      CHECK(is_old_store_whole());
    }
    test_remove_tree(work_folder);
  }
}
