/* SPDX-License-Identifier: Apache-2.0 */
/* test_symbol_graph.c - questions about definitions and uses on tables that were made to do harm: damaged records,
 * 100,000 definitions and uses of one name, deep nesting, circles of calls, bases and imports; and with every
 * allocation and every call to the system failing once. */
#include "indexer/code_record.h"
#include "indexer/index_stamp.h"
#include "support/fault.h"
#include "support/test.h"
#include "symbols/symbol_tuning.h"
#include "symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static lode_error err;

/* ---- An index that is written by hand ---- */

typedef struct scene {
  project_info project;
  lode_store *store;
  lode_collection *code, *tables;
} scene;

static void scene_open(scene *s) {
  char folder[400];
  strbuf text = {0};
  lode_collection *files;
  lode_open_options options = {.create = true, .no_background = true};
  indexer_stamp stamp = {.revision = INDEXER_REVISION, .indexed_ms = 1, .scanned_ms = 1};
  fault_no_sync();
  snprintf(folder, sizeof folder, "%s/.lode", test_folder());
  mkdir(folder, 0700);
  OK(project_open(&s->project, test_folder(), NULL, &err));
  OK(lode_open(folder, &options, &s->store, &err));
  indexer_stamp_put(&text, &stamp);
  lode_collection_options plain = {.create = true}, stamped = {.create = true, .metadata = {text.data, text.len}};
  OK(lode_collection_open(s->store, str_of(INDEXER_COLL_FILES), &stamped, &files, &err));
  OK(lode_collection_open(s->store, str_of(INDEXER_COLL_CODE), &plain, &s->code, &err));
  OK(lode_collection_open(s->store, str_of(INDEXER_COLL_SYMBOLS), &plain, &s->tables, &err));
  lode_collection_close(files);
  strbuf_release(&text);
}

static void scene_close(scene *s) {
  lode_collection_close(s->code);
  lode_collection_close(s->tables);
  lode_close(s->store);
  project_release(&s->project);
}

static void put_def(strbuf *table, lang_kind kind, const char *name, uint32_t line, uint32_t end, uint32_t outer) {
  chunk_def d = {.kind = kind,
                 .line = line,
                 .end_line = end,
                 .outer = outer,
                 .name = str_of(name),
                 .scope = STR_LIT(""),
                 .type = STR_LIT(""),
                 .signature = str_of(name),
                 .brief = STR_LIT("")};
  chunk_symbols_put_def(table, &d);
}

static void put_ref(strbuf *table, chunk_use use, const char *name, const char *module, uint32_t line) {
  chunk_ref_group g = {.use = use,
                       .name = str_of(name),
                       .qualifier = str_of(module),
                       .local = use == CHUNK_USE_IMPORT ? str_of(name) : STR_LIT(""),
                       .lines = &line,
                       .n_lines = 1};
  chunk_symbols_put_refs(table, &g);
}

/* A file with one chunk, of this name and text. Takes over the table. */
static void put_file(scene *s, const char *path, const char *name, const char *text, strbuf *table) {
  strbuf symbols = {0}, chunk = {0};
  char id[300];
  snprintf(id, sizeof id, "%s#0", path);
  indexer_symbols_put(&symbols, lang_find(STR_LIT("python")), (lode_str){table->data, table->len});
  strbuf_addf(&chunk, "{\"name\":\"%s\",\"defs\":[\"%s\"]}", name, name);
  lode_record c = {.id = str_of(id), .document = str_of(text), .metadata = {chunk.data, chunk.len}};
  lode_record t = {.id = str_of(path), .metadata = {symbols.data, symbols.len}};
  OK(lode_upsert(s->code, NULL, &c, 1, NULL, &err));
  OK(lode_upsert(s->tables, NULL, &t, 1, NULL, &err));
  strbuf_release(&symbols);
  strbuf_release(&chunk);
  strbuf_release(table);
  *table = (strbuf){0};
}

/* Three files: `top` calls `middle`, which calls `bottom`; they import each other in a circle. */
static void put_three(scene *s) {
  static const char *const names[] = {"top", "middle", "bottom"};
  strbuf table = {0};
  for (size_t i = 0; i < 3; i++) {
    char path[20], text[80];
    const char *next = names[(i + 1) % 3];
    snprintf(path, sizeof path, "%s.py", names[i]);
    snprintf(text, sizeof text, "from %s import %s\ndef %s(): %s()\n", next, next, names[i], next);
    put_def(&table, LANG_KIND_FUNCTION, names[i], 2, 3, CHUNK_NO_DEF);
    put_ref(&table, CHUNK_USE_IMPORT, next, next, 1);
    if (i < 2) put_ref(&table, CHUNK_USE_CALL, next, "", 3);
    put_file(s, path, names[i], text, &table);
  }
}

/* ---- Questions, all of them; what they found as one number ---- */

typedef struct questions {
  symbols_world world;
  symbols_ids ids, to, unused;
  symbols_edges edges, callees, path;
  symbols_cycle *cycles;
  size_t n_cycles;
} questions;

static lode_status ask_each(questions *q, const char *first, const char *last) {
  symbols_walk_options deep = {.depth = 32}, all = {.depth = 32, .all_uses = true};
  TRY(symbols_find(&q->world, str_of(last), &q->to, &err));
  TRY(symbols_callers(&q->world, &q->to, &all, &q->edges, &err));
  TRY(symbols_find(&q->world, str_of(first), &q->ids, &err));
  TRY(symbols_callees(&q->world, &q->ids, &deep, &q->callees, &err));
  TRY(symbols_trace(&q->world, &q->ids, &q->to, &q->path, &err));
  TRY(symbols_load_all(&q->world, (lode_progress){0}, &err));
  TRY(symbols_unused(&q->world, &q->unused, &err));
  return symbols_cycles(&q->world, &q->cycles, &q->n_cycles, &err);
}

static size_t found_by(const questions *q) {
  return q->ids.n + 10 * q->to.n + 100 * q->edges.n + 1000 * q->callees.n + 10000 * q->path.n + 100000 * q->n_cycles;
}

static lode_status ask(const scene *s, const char *first, const char *last, size_t *found, bool *more) {
  questions q = {0};
  lode_status st = symbols_open(&s->project, s->store, &q.world, &err);
  if (st == LODE_OK) st = ask_each(&q, first, last);
  *found = found_by(&q);
  if (more) *more = q.edges.more || q.world.more;
  mem_free(q.ids.v);
  mem_free(q.to.v);
  mem_free(q.unused.v);
  mem_free(q.edges.v);
  mem_free(q.callees.v);
  mem_free(q.path.v);
  symbols_cycles_free(q.cycles, q.n_cycles);
  symbols_close(&q.world);
  return st;
}

/* One definition of each, two callers, two callees, a path of two steps, one circle of imports. */
enum { FOUND_OF_THREE = 1 + 10 + 200 + 2000 + 20000 + 100000 };

TEST(questions_are_answered_from_tables_made_by_hand) {
  scene s = {0};
  size_t found;
  scene_open(&s);
  put_three(&s);
  OK(ask(&s, "top", "bottom", &found, NULL));
  CHECKF(found == FOUND_OF_THREE, "%zu", found);
  OK(ask(&s, "nothing", "nowhere", &found, NULL));
  CHECKF(found == 100000, "%zu", found);
  scene_close(&s);
}

/* ---- What fails ---- */

TEST(memory_runs_out_at_every_place) {
  scene s = {0};
  size_t found;
  fault_alloc_install();
  scene_open(&s);
  put_three(&s);
  uint64_t n = 1;
  for (bool hit = true; hit; n++) {
    fault_alloc_set(n, false);
    lode_status st = ask(&s, "top", "bottom", &found, NULL);
    hit = fault_alloc_hits() > 0;
    fault_alloc_set(0, false);
    CHECKF(st == LODE_NOMEM || (st == LODE_OK && found == FOUND_OF_THREE), "allocation %llu: %s, %zu",
           (unsigned long long)n, lode_status_name(st), found);
    CHECK(n < 20000);
  }
  CHECKF(n > 100, "%llu allocations", (unsigned long long)n);
  scene_close(&s);
}

TEST(the_disk_fails_at_every_call) {
  static const fault_effect effects[] = {FAULT_EIO, FAULT_SHORT, FAULT_EINTR};
  scene s = {0};
  size_t found;
  scene_open(&s);
  put_three(&s);
  for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
    fault_call call = effects[i] == FAULT_SHORT ? FAULT_PREAD : FAULT_ANY;
    uint64_t n = 1;
    fault_install(os_api);
    for (bool hit = true; hit; n++) {
      fault_set(call, n, false, effects[i]);
      lode_status st = ask(&s, "top", "bottom", &found, NULL);
      hit = fault_hits() > 0;
      fault_clear();
      CHECKF(st != LODE_OK || found == FOUND_OF_THREE, "effect %zu, call %llu: %zu", i, (unsigned long long)n, found);
      CHECKF(st == LODE_OK || effects[i] == FAULT_EIO, "effect %zu, call %llu: %s: %s", i, (unsigned long long)n,
             lode_status_name(st), err.text);
      CHECKF(st == LODE_OK || st == LODE_IO || st == LODE_CORRUPT || st == LODE_BUSY, "%s: %s", lode_status_name(st),
             err.text);
      OK(ask(&s, "top", "bottom", &found, NULL));
      CHECK(found == FOUND_OF_THREE && n < 5000);
    }
    fault_uninstall();
    CHECKF(n > 3, "%llu calls", (unsigned long long)n);
  }
  scene_close(&s);
}

/* ---- Damage ---- */

TEST(damaged_records_are_left_out_and_counted) {
  static const char *const bad[] = {"{}",
                                    "{\"language\":\"python\",\"table\":7}",
                                    "{\"language\":\"klingon\",\"table\":\"\"}",
                                    "{\"language\":7,\"table\":\"\"}",
                                    "{\"table\":\"d\\tf\\t1\\t9\\t0\\t2\\tf\\t\\t\\t\\t\\n\"}",
                                    "{\"language\":\"python\",\"table\":\"nonsense\"}",
                                    "{\"language\":\"python\",\"table\":\"d\\tf\\t9\\t1\\t0\\t2\\tf\\t\\t\\t\\t\\n\"}",
                                    "{\"language\":\"python\",\"table\":\"d\\tf\\t1\\t9\\t7\\t2\\tf\\t\\t\\t\\t\\n\"}"};
  enum { N = sizeof bad / sizeof *bad };
  scene s = {0};
  symbols_world w;
  size_t found;
  uint64_t silent = 1; /* a table that is no text is an empty one */
  scene_open(&s);
  put_three(&s);
  for (size_t i = 0; i < N; i++) {
    char id[20];
    snprintf(id, sizeof id, "bad%zu.py", i);
    lode_record t = {.id = str_of(id), .metadata = str_of(bad[i])};
    OK(lode_upsert(s.tables, NULL, &t, 1, NULL, &err));
  }
  lode_record none = {.id = STR_LIT("none.py")};
  OK(lode_upsert(s.tables, NULL, &none, 1, NULL, &err));
  OK(symbols_open(&s.project, s.store, &w, &err));
  OK(symbols_load_all(&w, (lode_progress){0}, &err));
  CHECKF(w.damaged == N + 1 - silent && w.n_files == 3 + silent, "%llu damaged, %zu read",
         (unsigned long long)w.damaged, w.n_files);
  symbols_close(&w);
  OK(ask(&s, "top", "bottom", &found, NULL));
  CHECKF(found == FOUND_OF_THREE, "%zu", found);
  scene_close(&s);
}

/* ---- Too much of everything ---- */

/* Files that define one name over and over, and call it: nothing says which is meant. */
TEST_SLOW(one_name_is_defined_and_used_100000_times, 240) {
  enum { FILES = 100, EACH = 1000 };
  scene s = {0};
  strbuf table = {0};
  size_t found;
  bool more;
  scene_open(&s);
  for (int f = 0; f < FILES; f++) {
    char path[20];
    snprintf(path, sizeof path, "f%d.py", f);
    for (uint32_t i = 0; i < EACH; i++)
      put_def(&table, i % 2 ? LANG_KIND_METHOD : LANG_KIND_FUNCTION, "everywhere", 2 * i + 1, 2 * i + 2, CHUNK_NO_DEF);
    for (uint32_t i = 0; i < EACH; i++) {
      put_ref(&table, CHUNK_USE_CALL, "everywhere", i % 3 ? "?" : "", 2 * i + 2);
      put_ref(&table, CHUNK_USE_BASE, "everywhere", "", 2 * i + 2);
    }
    put_file(&s, path, "everywhere", "def everywhere(): everywhere()", &table);
  }
  OK(ask(&s, "everywhere", "everywhere", &found, &more));
  CHECK(more); /* it says that it has not looked at everything */
  symbols_world w;
  symbols_ids ids = {0};
  OK(symbols_open(&s.project, s.store, &w, &err));
  OK(symbols_find(&w, STR_LIT("everywhere"), &ids, &err));
  CHECKF(ids.n == SYMBOLS_MAX_CANDIDATES, "%zu", ids.n);
  mem_free(ids.v);
  symbols_close(&w);
  scene_close(&s);
}

/* 200 files, each with a class that has the same method, a function of the same name, and ten uses of each. */
static void put_alike(scene *s, int files) {
  strbuf table = {0};
  for (int f = 0; f < files; f++) {
    char path[20], own[20];
    snprintf(path, sizeof path, "f%d.py", f);
    snprintf(own, sizeof own, "own%c%c", 'a' + f / 26, 'a' + f % 26);
    put_def(&table, LANG_KIND_CLASS, "Alike", 1, 9, CHUNK_NO_DEF);
    put_def(&table, LANG_KIND_METHOD, "shutting", 2, 8, 0);
    put_def(&table, LANG_KIND_FUNCTION, "starting", 10, 40, CHUNK_NO_DEF);
    for (uint32_t i = 0; i < 10; i++) {
      put_ref(&table, CHUNK_USE_CALL, "shutting", "?", 20 + i);
      put_ref(&table, CHUNK_USE_CALL, "starting", "", 20 + i);
    }
    put_ref(&table, CHUNK_USE_CALL, own, "", 30);
    char text[80];
    snprintf(text, sizeof text, "def starting(): shutting() starting() %s()", own);
    put_file(s, path, "starting", text, &table);
  }
}

/* Whether a use can mean what is asked about is looked at first, and answers about values of which nothing is known are
 * kept: 2,000 uses of a name that is defined 200 times are no 400,000 comparisons. */
TEST(uses_are_not_compared_with_all_definitions) {
  static const char *const asked[] = {"f0.py:shutting", "f0.py:starting"};
  scene s = {0};
  scene_open(&s);
  put_alike(&s, 200);
  for (size_t i = 0; i < 2; i++) {
    symbols_world w;
    symbols_ids ids = {0};
    symbols_edges edges = {0};
    symbols_walk_options options = {.depth = 1};
    OK(symbols_open(&s.project, s.store, &w, &err));
    OK(symbols_find(&w, str_of(asked[i]), &ids, &err));
    CHECK(ids.n == 1);
    OK(symbols_callers(&w, &ids, &options, &edges, &err));
    CHECKF(w.steps < 5000, "%s: %llu", asked[i], (unsigned long long)w.steps);
    CHECKF(edges.n >= 1 && !edges.more, "%s: %zu", asked[i], edges.n);
    mem_free(ids.v);
    mem_free(edges.v);
    symbols_close(&w);
  }
  scene_close(&s);
}

/* Files that use names of one word are found by the text index, not by reading all tables. */
TEST(a_few_names_do_not_make_all_tables_read) {
  scene s = {0};
  symbols_world w;
  scene_open(&s);
  put_alike(&s, 200);
  OK(symbols_open(&s.project, s.store, &w, &err));
  for (int i = 0; i < 6; i++) {
    char own[20];
    snprintf(own, sizeof own, "owna%c", 'a' + i);
    OK(symbols_load_users(&w, str_of(own), &err));
  }
  CHECKF(w.n_files == 6, "%zu", w.n_files);
  symbols_close(&w);
  scene_close(&s);
}

/* One inside of the other; each calls the outermost. */
TEST_SLOW(definitions_are_nested_10000_deep, 120) {
  enum { DEEP = 10000 };
  scene s = {0};
  strbuf table = {0}, name = {0};
  size_t found;
  symbols_world w;
  scene_open(&s);
  for (uint32_t i = 0; i < DEEP; i++)
    put_def(&table, LANG_KIND_CLASS, i ? "inner" : "outermost", i + 1, 3 * DEEP - i, i ? i - 1 : CHUNK_NO_DEF);
  for (uint32_t i = 0; i < 2000; i++) put_ref(&table, CHUNK_USE_CALL, "outermost", "", 2 * DEEP + i);
  put_file(&s, "deep.py", "outermost", "class outermost", &table);
  OK(ask(&s, "outermost", "inner", &found, NULL));
  OK(symbols_open(&s.project, s.store, &w, &err));
  OK(symbols_load_all(&w, (lode_progress){0}, &err));
  CHECK(w.n_files == 1);
  symbols_put_name(&w, (symbols_id){0, (uint32_t)w.files[0].table.n_defs - 1}, &name);
  CHECKF(!name.failed && name.len < 200, "%zu", name.len);
  strbuf_release(&name);
  symbols_close(&w);
  scene_close(&s);
}

/* 3,000 files, each of which imports, calls and inherits the next one's; the last the first one's. */
TEST_SLOW(calls_bases_and_imports_go_in_circles, 120) {
  enum { RING = 3000 };
  scene s = {0};
  strbuf table = {0};
  size_t found;
  scene_open(&s);
  for (int i = 0; i < RING; i++) {
    char path[20], name[20], next[20], module[20], text[200];
    snprintf(path, sizeof path, "m%d.py", i);
    snprintf(name, sizeof name, "c%d", i);
    snprintf(next, sizeof next, "c%d", (i + 1) % RING);
    snprintf(module, sizeof module, "m%d", (i + 1) % RING);
    snprintf(text, sizeof text, "from %s import %s\nclass %s(%s): %s()", module, next, name, next, next);
    put_def(&table, LANG_KIND_CLASS, name, 2, 4, CHUNK_NO_DEF);
    put_ref(&table, CHUNK_USE_IMPORT, next, module, 1);
    put_ref(&table, CHUNK_USE_BASE, next, "", 2);
    put_ref(&table, CHUNK_USE_CALL, next, "", 3);
    put_file(&s, path, name, text, &table);
  }
  OK(ask(&s, "c0", "c40", &found, NULL));
  /* one of each, 32 steps to callers and callees, a path of 40 calls, one circle of imports */
  CHECKF(found == 1 + 10 + 3200 + 32000 + 400000 + 100000, "%zu", found);
  scene_close(&s);
}
