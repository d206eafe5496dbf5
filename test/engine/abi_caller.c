/* SPDX-License-Identifier: Apache-2.0 */
/* abi_caller.c - a program of somebody who has another lode.h than the library: test/shell/abi.sh compiles it with
 * headers whose structs have fewer fields (SHORTER), more (LONGER), or those of today. Every struct is on the heap with
 * the size that this program knows, so that AddressSanitizer sees a byte that is read or written after it. */
#include <lode.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define NEW(type) ((type *)made(sizeof(type), 0))
#define RESULT(type) ((type *)made(sizeof(type), 0xEE)) /* what the library does not write is seen */

static lode_error err;

static void failed(int line, const char *what) {
  fprintf(stderr, "abi_caller.c:%d: %s (%s)\n", line, what, err.text);
  exit(1);
}
#define CHECK(cond)                                                                                                    \
  do {                                                                                                                 \
    if (!(cond)) failed(__LINE__, #cond);                                                                              \
  } while (0)
#define OK(call) CHECK((call) == LODE_OK)

static void *made(size_t size, int fill) {
  void *p = malloc(size);
  if (!p) exit(2);
  return memset(p, fill, size);
}

/* A field that the library does not have: refused if it is set, zero in results. */
#ifdef LONGER
#define REFUSES(s, call)                                                                                               \
  do {                                                                                                                 \
    (s)->added[1] = 7;                                                                                                 \
    CHECK((call) == LODE_INVALID && strstr(err.text, "does not have"));                                                \
    (s)->added[1] = 0;                                                                                                 \
  } while (0)
#define ADDED_IS_ZERO(s) CHECK(!(s)->added[0] && !(s)->added[1] && !(s)->added[2])
#else
#define REFUSES(s, call) (void)0
#define ADDED_IS_ZERO(s) (void)0
#endif

static lode_status embed(void *ctx, const lode_str *texts, size_t n, float *vectors, lode_error *e) {
  (void)ctx, (void)texts, (void)e;
  for (size_t i = 0; i < 2 * n; i++) vectors[i] = 1;
  return LODE_OK;
}

static int64_t read_line(void *ctx, void *buffer, size_t size) {
  static const char line[] = "{\"id\":\"imported\",\"document\":\"from a line\"}\n";
  bool *done = ctx;
  if (*done || size < sizeof line) return 0;
  *done = true;
  memcpy(buffer, line, sizeof line - 1);
  return sizeof line - 1;
}

static void use_writes(lode_collection *c) {
  lode_record *r = made(3 * sizeof *r, 0);
  lode_write_result *result = RESULT(lode_write_result);
  bool missing[3];
  static const char *const ids[] = {"a", "b", "c"};
  for (size_t i = 0; i < 3; i++) r[i].id = (lode_str){ids[i], 1}, r[i].document = S("a document");
  REFUSES(&r[2], lode_add(c, NULL, r, 3, LODE_FAIL_EXISTING, result, &err));
  OK(lode_add(c, NULL, r, 3, LODE_FAIL_EXISTING, result, &err));
  CHECK(result->written == 3);
  ADDED_IS_ZERO(result);
  OK(lode_upsert(c, NULL, r + 1, 2, result, &err));
  CHECK(result->written == 2);
  r[2].id = S("nobody");
  OK(lode_update(c, NULL, r, 3, missing, result, &err));
  CHECK(result->written == 2 && !missing[0] && !missing[1] && missing[2]);
  OK(lode_upsert(c, NULL, r, 1, NULL, &err));
  free(result);
  free(r);
}

static void use_embedders(const char *folder) {
  lode_embedder *e;
  lode_model_list *models;
  lode_embedder_options *o = NEW(lode_embedder_options);
  lode_record *r = made(2 * sizeof *r, 0);
  float *vectors;
  r[0].id = S("x");
  r[1].id = S("y"), r[1].document = S("text");
  OK(lode_embedder_open_custom(S("ones@1/2/float"), 2, embed, NULL, &e, &err));
  REFUSES(&r[0], lode_embed_records(e, r, 2, &vectors, &err));
  OK(lode_embed_records(e, r, 2, &vectors, &err));
  CHECK(!r[0].vector && r[1].vector == vectors && r[1].vector[1] == 1 && r[1].document.len == 4);
  lode_vectors_free(vectors);
  lode_embedder_close(e);
  o->folder = folder;
  REFUSES(o, lode_embedder_open(S("minilm"), o, &e, &err));
  REFUSES(o, lode_models(o, &models, &err));
  REFUSES(o, lode_model_verify(S("minilm"), o, &err));
  REFUSES(o, lode_model_install(S("minilm"), folder, o, (lode_progress){0}, &err));
  CHECK(lode_embedder_open(S("minilm"), o, &e, &err) == LODE_NOT_FOUND && !e);
  CHECK(lode_model_verify(S("minilm"), o, &err) == LODE_NOT_FOUND);
  CHECK(lode_model_install(S("minilm"), folder, o, (lode_progress){0}, &err) == LODE_NOT_FOUND);
  OK(lode_models(o, &models, &err));
  CHECK(lode_model_list_count(models) > 0 && !lode_model_list_at(models, 0)->installed);
  lode_model_list_free(models);
  free(o);
  free(r);
}

static void use_reads(lode_collection *c) {
  lode_result *rows;
  lode_get_request *get = NEW(lode_get_request);
  lode_query_request *query = NEW(lode_query_request);
  lode_str text = S("document");
  get->include = LODE_DOCUMENT;
  REFUSES(get, lode_get(c, get, &rows, &err));
  OK(lode_get(c, get, &rows, &err));
  CHECK(lode_result_count(rows) == 3 && lode_result_at(rows, 2)->document.len == 10);
  lode_result_free(rows);
  query->mode = LODE_BY_TEXT;
  query->texts = &text;
  query->n = 1;
  query->k = 2;
  REFUSES(query, lode_query(c, query, &rows, &err));
  OK(lode_query(c, query, &rows, &err));
  CHECK(lode_result_count(rows) == 2);
  lode_result_free(rows);
  free(get);
  free(query);
}

static void use_import(lode_collection *c) {
  bool done = false;
  lode_import_request *import = NEW(lode_import_request);
  lode_import_report *report = RESULT(lode_import_report);
  import->read = read_line;
  import->ctx = &done;
  REFUSES(import, lode_import(c, import, (lode_progress){0}, report, &err));
  OK(lode_import(c, import, (lode_progress){0}, report, &err));
  CHECK(report->lines == 1 && report->written == 1);
  ADDED_IS_ZERO(report);
  free(import);
  free(report);
}

static void use_reembed(lode_store *store) {
  lode_reembed_request *request = NEW(lode_reembed_request);
  lode_reembed_report *report = RESULT(lode_reembed_report);
  OK(lode_embedder_open_custom(S("ones@1/2/float"), 2, embed, NULL, &request->embedder, &err));
  request->drop_vectors = true;
  REFUSES(request, lode_reembed(store, S("c"), request, report, &err));
  OK(lode_reembed(store, S("c"), request, report, &err));
  CHECK(report->records == 4);
  ADDED_IS_ZERO(report);
  lode_embedder_close(request->embedder);
  free(request);
  free(report);
}

static void use_stats(lode_store *store, lode_collection *c) {
  lode_stats *stats = RESULT(lode_stats);
  OK(lode_store_stats(store, stats, &err));
  CHECK(stats->collections == 2 && stats->records == 4 && stats->page_bytes == 4096);
  ADDED_IS_ZERO(stats);
  OK(lode_collection_stats(c, stats, &err));
  CHECK(stats->collections == 1 && stats->records == 4);
  free(stats);
}

int main(int argc, char **argv) {
  char copy[4096];
  lode_store *store;
  lode_collection *c, *other;
  if (argc != 2) return 2;
  snprintf(copy, sizeof copy, "%s-salvaged", argv[1]);
  lode_open_options *open = NEW(lode_open_options);
  lode_collection_options *kind = NEW(lode_collection_options);
  lode_replacement *pair = NEW(lode_replacement);
  lode_salvage_report *report = RESULT(lode_salvage_report);
  open->create = kind->create = true;
  open->page_bytes = 4096;
  REFUSES(open, lode_open(argv[1], open, &store, &err));
  OK(lode_open(argv[1], open, &store, &err));
  REFUSES(kind, lode_collection_open(store, S("c"), kind, &c, &err));
  OK(lode_collection_open(store, S("c"), kind, &c, &err));
  OK(lode_collection_open(store, S("built"), kind, &other, &err));
  lode_collection_close(other);
  OK(lode_collection_open(store, S("c"), NULL, &other, &err));
  lode_collection_close(other);
  pair->name = S("built");
  pair->new_name = S("other");
  REFUSES(pair, lode_collections_replace(store, pair, 1, &err));
  OK(lode_collections_replace(store, pair, 1, &err));
  use_writes(c);
  use_reads(c);
  use_import(c);
  use_stats(store, c);
  use_embedders(argv[1]);
  use_reembed(store);
  lode_collection_close(c);
  lode_close(store);
  OK(lode_salvage(argv[1], copy, NULL, NULL, (lode_progress){0}, report, &err));
  CHECK(report->records == 4);
  ADDED_IS_ZERO(report);
  free(open);
  free(kind);
  free(pair);
  free(report);
  return 0;
}
