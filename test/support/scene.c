/* SPDX-License-Identifier: Apache-2.0 */
#include "support/scene.h"

#include "base/byteorder.h"
#include "store/record_ids.h"
#include "store/text_index.h"
#include "support/test.h"
#include "vfs/vfs_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define DIM 8
#define MANY 36

/* ---- Hashing ---- */

static uint64_t mix(uint64_t h, const void *data, size_t len) {
  const unsigned char *p = data;
  for (size_t i = 0; i < len; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
  return h ^ (h >> 29);
}

static uint64_t mix_str(uint64_t h, lode_str s) {
  uint64_t len = s.data ? s.len + 1 : 0;
  h = mix(h, &len, sizeof len);
  return s.data ? mix(h, s.data, s.len) : h;
}

static uint64_t mix_rows(uint64_t h, const lode_result *rows, bool scores) {
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *r = lode_result_at(rows, i);
    h = mix_str(h, r->id);
    h = mix_str(h, r->document);
    h = mix_str(h, r->metadata);
    if (r->vector) h = mix(h, r->vector, r->dimension * sizeof(float));
    if (scores && !isnan(r->distance)) h = mix(h, &r->distance, sizeof r->distance);
    h = mix(h, &r->query, sizeof r->query);
  }
  return h;
}

/* ---- Content ---- */

static void fill(float *v, int i) {
  for (int d = 0; d < DIM; d++) v[d] = (float)((i * 37 + d * 11) % 97) / 97.0f - 0.4f;
}

static lode_status put(lode_collection *c, lode_txn *txn, int from, int n, bool vectors, lode_error *err) {
  char ids[64][24], docs[64][120], metas[64][120];
  float v[64][DIM];
  lode_record r[64];
  if (n > 64) n = 64;
  for (int i = 0; i < n; i++) {
    int k = from + i;
    snprintf(ids[i], sizeof ids[i], "item-%03d", k);
    snprintf(docs[i], sizeof docs[i], "document %d about getUserName and snake_case_%d in src/file%d.c", k, k % 5,
             k % 7);
    snprintf(metas[i], sizeof metas[i],
             "{\"n\":%d,\"half\":%d.5,\"path\":\"src/file%d.c\",\"odd\":%s,\"tags\":[\"t%d\",\"all\"]}", k, k, k % 7,
             k % 2 ? "true" : "false", k % 3);
    fill(v[i], k);
    r[i] = (lode_record){.id = {ids[i], strlen(ids[i])}, .metadata = {metas[i], strlen(metas[i])}};
    if (k % 6 != 5) r[i].document = (lode_str){docs[i], strlen(docs[i])};
    if (vectors && k % 9 != 8) {
      r[i].vector = v[i];
      r[i].dimension = DIM;
    }
  }
  return lode_upsert(c, txn, r, (size_t)n, NULL, err);
}

void scene_make(const char *folder, uint32_t page_bytes) {
  lode_store *store;
  lode_collection *a, *b;
  lode_error err = {0};
  lode_open_options o = {.create = true, .page_bytes = page_bytes, .no_background = true};
  lode_str counters[1] = {S("path")};
  lode_collection_options ca = {.create = true,
                                .metric = LODE_L2,
                                .counters = counters,
                                .n_counters = 1,
                                .metadata = S("{\"made\":\"by a test\"}")};
  lode_collection_options cb = {.create = true, .metric = LODE_COSINE, .embedder = S("none"), .embedder_dim = DIM};
  store_fresh_min_rows = 10; /* names are in both tables */
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, S("alpha"), &ca, &a, &err));
  OK(lode_collection_open(store, S("beta"), &cb, &b, &err));
  OK(put(a, NULL, 0, MANY, true, &err));
  OK(put(b, NULL, 100, 12, true, &err));
  OK(lode_optimize(store, (lode_progress){0}, &err));
  lode_str gone[2] = {S("item-003"), S("item-010")};
  lode_selection sel = {.ids = gone, .n_ids = 2};
  OK(lode_delete(a, NULL, &sel, NULL, &err));
  OK(put(a, NULL, MANY, 6, true, &err)); /* past the indexes' cursors */
  float v[DIM];
  fill(v, 500);
  lode_record change = {.id = S("item-005"),
                        .document = S("changed afterwards"),
                        .metadata = S("{\"n\":null,\"new\":1}"),
                        .vector = v,
                        .dimension = DIM};
  OK(lode_update(a, NULL, &change, 1, NULL, NULL, &err));
  lode_collection_close(a);
  lode_collection_close(b);
  lode_close(store);
}

static uint64_t hash_collection(uint64_t h, lode_store *store, const lode_collection_info *info) {
  lode_collection *c;
  lode_result *rows;
  lode_facet_list *facets;
  lode_error err = {0};
  h = mix_str(h, info->name);
  h = mix_str(h, info->metadata);
  h = mix_str(h, info->embedder);
  h = mix(h, &info->metric, sizeof info->metric);
  h = mix(h, &info->dimension, sizeof info->dimension);
  h = mix(h, &info->records, sizeof info->records);
  h = mix(h, &info->pending, sizeof info->pending);
  OK(lode_collection_open(store, info->name, NULL, &c, &err));
  lode_get_request req = {.include = LODE_ALL};
  OK(lode_get(c, &req, &rows, &err));
  CHECK(lode_result_count(rows) == info->records);
  h = mix_rows(h, rows, false);
  lode_result_free(rows);
  if (lode_counters(c, S("path"), &facets, &err) == LODE_OK) {
    for (size_t i = 0; i < lode_facet_list_count(facets); i++) {
      h = mix_str(h, lode_facet_list_at(facets, i)->value);
      h = mix(h, &lode_facet_list_at(facets, i)->count, sizeof(uint64_t));
    }
    lode_facet_list_free(facets);
  }
  lode_collection_close(c);
  return h;
}

static uint64_t content_of(const char *folder) {
  lode_store *store;
  lode_collection_list *list;
  lode_error err = {0};
  lode_open_options o = {.no_background = true};
  uint64_t h = 1469598103934665603u;
  lode_status st = lode_open(folder, &o, &store, &err);
  if (st == LODE_NOT_FOUND) return 0; /* no store at all */
  OK(st);
  OK(lode_collections(store, &list, &err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++)
    h = hash_collection(h, store, lode_collection_list_at(list, i));
  lode_collection_list_free(list);
  lode_close(store);
  return h;
}

uint64_t scene_content(const char *folder) {
  char inner[700];
  snprintf(inner, sizeof inner, "%s/inner", folder);
  return content_of(folder) ^ content_of(inner) * 31;
}

static void show_damage(void *ctx, const lode_damage *d) {
  fprintf(stderr, "%s: %s: %s\n", (const char *)ctx, d->what, d->detail);
}

void scene_verify(const char *folder, const char *what) {
  lode_store *store;
  lode_error err = {0};
  char name[200];
  lode_open_options o = {.no_background = true};
  snprintf(name, sizeof name, "%s", what);
  lode_status st = lode_open(folder, &o, &store, &err);
  if (st == LODE_NOT_FOUND) return;
  CHECKF(st == LODE_OK, "%s: %s", what, err.text);
  st = lode_verify(store, show_damage, name, (lode_progress){0}, &err);
  CHECKF(st == LODE_OK, "%s: verify says %s", what, err.text);
  lode_close(store);
}

/* ---- Questions ---- */

static const char *const questions[SCENE_QUESTIONS] = {"count",      "get",    "vector query", "filtered query",
                                                       "text query", "facets", "collections"};
const char *scene_question(int q) { return questions[q]; }

static outcome failed(lode_status st, const lode_error *err) {
  outcome o = {.status = st};
  snprintf(o.text, sizeof o.text, "%s", err->text);
  return o;
}

static outcome ask_query(lode_collection *c, int q) {
  lode_error err = {0};
  lode_result *rows = NULL;
  float v[2 * DIM];
  fill(v, 4);
  fill(v + DIM, 77);
  lode_str text = S("getUserName snake_case_2 file3");
  lode_query_request req = {.vectors = v, .dimension = DIM, .n = 2, .k = 9, .include = LODE_ALL};
  if (q == 3) req.select.where = S("{\"$or\":[{\"path\":\"src/file3.c\"},{\"n\":{\"$gte\":30}}]}");
  if (q == 4) req = (lode_query_request){.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 8, .include = LODE_ALL};
  lode_status st = lode_query(c, &req, &rows, &err);
  if (st != LODE_OK) return failed(st, &err);
  outcome o = {.answer = mix_rows(7, rows, true)};
  lode_result_free(rows);
  return o;
}

static outcome ask_alpha(lode_collection *c, int q) {
  lode_error err = {0};
  lode_result *rows;
  lode_facet_list *facets;
  lode_status st;
  uint64_t n, h = 3;
  if (q == 0) {
    st = lode_count(c, &n, &err);
    return st == LODE_OK ? (outcome){.answer = n + 1} : failed(st, &err);
  }
  if (q == 1) {
    lode_get_request req = {.include = LODE_ALL};
    st = lode_get(c, &req, &rows, &err);
    if (st != LODE_OK) return failed(st, &err);
    h = mix_rows(h, rows, false);
    lode_result_free(rows);
    return (outcome){.answer = h};
  }
  if (q != 5) return ask_query(c, q);
  st = lode_facets(c, S("tags"), (lode_str){0}, 0, &facets, &err);
  if (st != LODE_OK) return failed(st, &err);
  for (size_t i = 0; i < lode_facet_list_count(facets); i++) {
    h = mix_str(h, lode_facet_list_at(facets, i)->value);
    h = mix(h, &lode_facet_list_at(facets, i)->count, sizeof(uint64_t));
  }
  lode_facet_list_free(facets);
  return (outcome){.answer = h};
}

outcome scene_ask(lode_store *store, int q) {
  lode_error err = {0};
  lode_collection *c;
  lode_collection_list *list;
  lode_status st;
  if (q == 6) {
    uint64_t h = 5;
    st = lode_collections(store, &list, &err);
    if (st != LODE_OK) return failed(st, &err);
    for (size_t i = 0; i < lode_collection_list_count(list); i++) {
      h = mix_str(h, lode_collection_list_at(list, i)->name);
      h = mix(h, &lode_collection_list_at(list, i)->records, sizeof(uint64_t));
    }
    lode_collection_list_free(list);
    return (outcome){.answer = h};
  }
  st = lode_collection_open(store, S("alpha"), NULL, &c, &err);
  if (st != LODE_OK) return failed(st, &err);
  outcome o = ask_alpha(c, q);
  lode_collection_close(c);
  return o;
}

outcome scene_open_and_ask(const char *folder, int q, bool read_only) {
  lode_store *store;
  lode_error err = {0};
  lode_open_options o = {.no_background = true, .read_only = read_only, .busy_ms = 2000};
  lode_status st = lode_open(folder, &o, &store, &err);
  if (st != LODE_OK) return failed(st, &err);
  outcome out = scene_ask(store, q);
  lode_close(store);
  return out;
}

/* ---- Acts ---- */

typedef struct stage {
  lode_store *store;
  lode_collection *c;
  lode_error err;
  lode_status st;
} stage;

static stage enter(const char *folder, bool create) {
  stage s = {0};
  lode_open_options o = {.no_background = true, .create = create, .page_bytes = 512, .memory_bytes = 16 << 20};
  s.st = lode_open(folder, &o, &s.store, &s.err);
  if (s.st == LODE_OK) s.st = lode_collection_open(s.store, S("alpha"), NULL, &s.c, &s.err);
  return s;
}

static outcome leave(stage *s) {
  outcome o = {.status = s->st};
  if (s->st != LODE_OK) snprintf(o.text, sizeof o.text, "%s", s->err.text);
  lode_collection_close(s->c);
  lode_close(s->store);
  return o;
}

static outcome play_create_store(const char *folder) {
  char path[600];
  lode_store *store;
  lode_error err = {0};
  lode_open_options o = {.create = true, .no_background = true, .page_bytes = 512};
  snprintf(path, sizeof path, "%s/inner", folder);
  lode_status st = lode_open(path, &o, &store, &err);
  if (st != LODE_OK) return failed(st, &err);
  lode_close(store);
  return (outcome){0};
}

static outcome play_create_collection(const char *folder) {
  stage s = enter(folder, false);
  lode_collection *c = NULL;
  lode_str counters[2] = {S("a"), S("b")};
  lode_collection_options o = {.create = true, .must_create = true, .counters = counters, .n_counters = 2};
  if (s.st == LODE_OK) s.st = lode_collection_open(s.store, S("gamma"), &o, &c, &s.err);
  lode_collection_close(c);
  return leave(&s);
}

static outcome play_add(const char *folder) {
  stage s = enter(folder, false);
  if (s.st == LODE_OK) s.st = put(s.c, NULL, 200, 10, true, &s.err);
  return leave(&s);
}

static outcome play_upsert(const char *folder) {
  stage s = enter(folder, false);
  if (s.st == LODE_OK) s.st = put(s.c, NULL, 20, 30, true, &s.err);
  return leave(&s);
}

static outcome play_update(const char *folder) {
  stage s = enter(folder, false);
  float v[DIM];
  fill(v, 9);
  lode_record r[2] = {
      {.id = S("item-001"), .document = S("other text"), .metadata = S("{\"path\":\"x\",\"tags\":null}")},
      {.id = S("item-008"), .vector = v, .dimension = DIM}};
  if (s.st == LODE_OK) s.st = lode_update(s.c, NULL, r, 2, NULL, NULL, &s.err);
  return leave(&s);
}

static outcome play_delete_ids(const char *folder) {
  stage s = enter(folder, false);
  lode_str ids[3] = {S("item-001"), S("item-002"), S("nobody")};
  lode_selection sel = {.ids = ids, .n_ids = 3};
  if (s.st == LODE_OK) s.st = lode_delete(s.c, NULL, &sel, NULL, &s.err);
  return leave(&s);
}

static outcome play_delete_where(const char *folder) {
  stage s = enter(folder, false);
  lode_selection sel = {.where = S("{\"path\":{\"$in\":[\"src/file1.c\",\"src/file2.c\"]}}"),
                        .where_document = S("{\"$regex\":\"get[A-Z]\"}")};
  if (s.st == LODE_OK) s.st = lode_delete(s.c, NULL, &sel, NULL, &s.err);
  return leave(&s);
}

static outcome play_rename(const char *folder) {
  stage s = enter(folder, false);
  if (s.st == LODE_OK) s.st = lode_collection_rename(s.store, S("beta"), S("delta"), &s.err);
  return leave(&s);
}

static outcome play_drop(const char *folder) {
  stage s = enter(folder, false);
  if (s.st == LODE_OK) s.st = lode_collection_drop(s.store, S("beta"), &s.err);
  return leave(&s);
}

static outcome play_transaction(const char *folder) {
  stage s = enter(folder, false);
  lode_txn *txn = NULL;
  lode_selection sel = {.where = S("{\"odd\":true}")};
  if (s.st == LODE_OK) s.st = lode_begin(s.store, &txn, &s.err);
  if (s.st == LODE_OK) s.st = put(s.c, txn, 300, 5, true, &s.err);
  if (s.st == LODE_OK) s.st = lode_delete(s.c, txn, &sel, NULL, &s.err);
  if (s.st == LODE_OK) s.st = put(s.c, txn, 0, 3, false, &s.err);
  if (s.st == LODE_OK)
    s.st = lode_commit(txn, &s.err);
  else if (txn)
    lode_rollback(txn);
  return leave(&s);
}

static outcome play_optimize(const char *folder) {
  stage s = enter(folder, false);
  if (s.st == LODE_OK) s.st = lode_optimize(s.store, (lode_progress){0}, &s.err);
  return leave(&s);
}

static outcome play_compact(const char *folder) {
  stage s = enter(folder, false);
  if (s.st == LODE_OK) s.st = lode_compact(s.store, (lode_progress){0}, &s.err);
  return leave(&s);
}

static outcome play_backup(const char *folder) {
  stage s = enter(folder, false);
  char path[600];
  snprintf(path, sizeof path, "%s/copy.backup", folder);
  if (s.st == LODE_OK) s.st = lode_backup(s.store, path, (lode_progress){0}, &s.err);
  return leave(&s);
}

typedef struct text_source {
  const char *text;
  size_t len, at;
} text_source;

static int64_t read_text(void *ctx, void *buffer, size_t size) {
  text_source *t = ctx;
  size_t n = t->len - t->at < size ? t->len - t->at : size;
  memcpy(buffer, t->text + t->at, n);
  t->at += n;
  return (int64_t)n;
}

static outcome play_import(const char *folder) {
  static const char lines[] =
      "{\"id\":\"imported-1\",\"document\":\"one\",\"metadata\":{\"a\":1},\"embedding\":[1,2,3,4,5,6,7,8]}\n"
      "{\"id\":\"imported-2\",\"document\":\"two\"}\n";
  stage s = enter(folder, false);
  text_source t = {lines, sizeof lines - 1, 0};
  lode_import_request req = {.mode = LODE_IMPORT_UPSERT, .read = read_text, .ctx = &t};
  if (s.st == LODE_OK) s.st = lode_import(s.c, &req, (lode_progress){0}, NULL, &s.err);
  return leave(&s);
}

static int64_t hash_text(void *ctx, const void *data, size_t size) {
  uint64_t *h = ctx;
  /* byte by byte, so that the cuts between calls do not matter */
  const unsigned char *p = data;
  for (size_t i = 0; i < size; i++) *h = (*h ^ p[i]) * UINT64_C(0x100000001b3);
  return (int64_t)size;
}

static outcome play_export(const char *folder) {
  stage s = enter(folder, false);
  uint64_t h = 11;
  if (s.st == LODE_OK) s.st = lode_export(s.c, NULL, LODE_ALL, hash_text, &h, (lode_progress){0}, NULL, &s.err);
  outcome o = leave(&s);
  o.answer = o.status == LODE_OK ? h : 0;
  return o;
}

#define ASK(number, name)                                                                                              \
  static outcome play_##name(const char *folder) { return scene_open_and_ask(folder, number, number % 2 == 0); }
ASK(0, count)
ASK(1, get)
ASK(2, vector_query)
ASK(3, filtered_query)
ASK(4, text_query)
ASK(5, facets)

const act scene_acts[] = {
    {"create store", play_create_store, true},
    {"create collection", play_create_collection, true},
    {"add", play_add, true},
    {"upsert", play_upsert, true},
    {"update", play_update, true},
    {"delete by ids", play_delete_ids, true},
    {"delete by filter", play_delete_where, true},
    {"rename", play_rename, true},
    {"drop", play_drop, true},
    {"transaction", play_transaction, true},
    {"optimize", play_optimize, true},
    {"compact", play_compact, true},
    {"backup", play_backup, false},
    {"import", play_import, true},
    {"export", play_export, false},
    {"count", play_count, false},
    {"get", play_get, false},
    {"vector query", play_vector_query, false},
    {"filtered query", play_filtered_query, false},
    {"text query", play_text_query, false},
    {"facets", play_facets, false},
};
const int scene_n_acts = (int)(sizeof scene_acts / sizeof *scene_acts);

void scene_sql(const char *folder, const char *sql) {
  char path[600], *text = NULL;
  sqlite3 *db = NULL;
  lode_error err = {0};
  snprintf(path, sizeof path, "%s/lode.db", folder);
  OK(vfs_register(&err));
  CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, VFS_NAME) == SQLITE_OK);
  CHECK(store_text_register(db) == SQLITE_OK);
  int rc = sqlite3_exec(db, sql, NULL, NULL, &text);
  CHECKF(rc == SQLITE_OK, "%s: %s", sql, text ? text : "?");
  sqlite3_close(db);
}

void scene_reseal(void *bytes, size_t len, size_t page_bytes) {
  unsigned char *first = bytes, *page = first + page_bytes;
  uint64_t root, sum = 0;
  uint32_t number, declared = num_be32(first + 28);
  journal_get_root(first, &root, &number);
  for (uint32_t i = 2; i <= len / page_bytes; i++, page += page_bytes) {
    const unsigned char *seal = page + page_bytes - VFS_SEAL_BYTES;
    vfs_seal_page(i, page, page_bytes, num_le32(seal + 4));
    if (i <= declared) sum += vfs_map_hash(i, vfs_seal_version(seal));
  }
  journal_put_root(first, sum, number);
  vfs_seal_page(1, first, page_bytes, 0);
}

void scene_drop_root(void *bytes, size_t len, size_t page_bytes) {
  unsigned char *page = bytes;
  journal_put_root(page, 0, 0);
  for (size_t i = 0; i < len / page_bytes; i++, page += page_bytes) vfs_seal_page((uint32_t)i + 1, page, page_bytes, 0);
}

void scene_set_format(const char *file, unsigned format) {
  size_t len;
  unsigned char *bytes = (unsigned char *)test_read_file(file, &len);
  size_t page = num_be16(bytes + 16);
  if (page == 1) page = 65536;
  CHECK(len >= page);
  num_put_be32(bytes + 60, format); /* user_version */
  vfs_seal_page(1, bytes, page, 0);
  test_write_file(file, bytes, len);
  free(bytes);
}
