/* SPDX-License-Identifier: Apache-2.0 */
/* test_search_cost.c - what a search reads, counted in calls: nothing here depends on time. */
#include "support/test.h"

#include "search/code_search.h"
#include "search/context.h"
#include "support/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static lode_error err;

enum { FILES = 60, FUNCTIONS = 25, BATCH = FUNCTIONS };

typedef struct cost_scene {
  project_info project;
  lode_store *store;
  uint64_t pages; /* of the database file */
} cost_scene;

/* A short function, as the indexer stores it. Its name is one word that nothing else has, and its metadata are long: to
 * evaluate a filter on every record is to read many pages, and to find a few by the index is not. */
static void make_record(int file, int function, mem_arena *arena, lode_record *out) {
  strbuf id = {0}, metadata = {0}, text = {0};
  int n = file * FUNCTIONS + function;
  char name[] = {'w', (char)('a' + n / 676), (char)('a' + n / 26 % 26), (char)('a' + n % 26), 'x', 0};
  strbuf_addf(&id, "part%d.c#%d", file, function);
  strbuf_addf(&metadata,
              "{\"path\":\"part%d.c\",\"language\":\"c\",\"kind\":\"function\",\"name\":\"%s\",\"head\":\"defined\","
              "\"span\":\"%d-%d/%d@0\",\"hash\":\"%032d\",\"defs\":[\"inner_%s\"],\"at\":\"%d "
              "function\",\"padding\":\"%0600d\"}",
              file, name, function * 3 + 1, function * 3 + 3, function * 3 + 1, n, name, function * 3 + 2, n);
  strbuf_addf(&text, "int %s(int a) {\n  return a + inner_%s(%d);\n}\n", name, name, n);
  *out = (lode_record){.id = {mem_arena_copy(arena, id.data, id.len), id.len},
                       .metadata = {mem_arena_copy(arena, metadata.data, metadata.len), metadata.len},
                       .document = {mem_arena_copy(arena, text.data, text.len), text.len}};
  strbuf_release(&id);
  strbuf_release(&metadata);
  strbuf_release(&text);
}

static void add_records(lode_store *store) {
  lode_collection *code, *files;
  mem_arena arena;
  mem_arena_init(&arena, 0);
  OK(lode_collection_open(store, STR_LIT("code"), &(lode_collection_options){.create = true}, &code, &err));
  OK(lode_collection_open(store, STR_LIT("files"), &(lode_collection_options){.create = true}, &files, &err));
  for (int f = 0; f < FILES; f++) {
    lode_record records[BATCH];
    for (int i = 0; i < FUNCTIONS; i++) make_record(f, i, &arena, &records[i]);
    OK(lode_upsert(code, NULL, records, BATCH, NULL, &err));
  }
  lode_collection_close(code);
  lode_collection_close(files);
  mem_arena_release(&arena);
  OK(lode_optimize(store, (lode_progress){0}, &err));
}

/* The store of a project, opened for reading with nothing in any cache. */
static void scene_open(cost_scene *s) {
  const char *root = test_folder();
  char folder[400], database[420];
  struct stat info;
  snprintf(folder, sizeof folder, "%s/.lode", root);
  snprintf(database, sizeof database, "%s/lode.db", folder);
  CHECK(mkdir(folder, 0700) == 0);
  OK(project_open(&s->project, root, NULL, &err));
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true}, &s->store, &err));
  add_records(s->store);
  lode_close(s->store);
  CHECK(stat(database, &info) == 0);
  s->pages = (uint64_t)info.st_size / 4096;
  fault_install(os_api);
  OK(lode_open(folder, &(lode_open_options){.read_only = true, .no_background = true}, &s->store, &err));
  fault_set(FAULT_ANY, 0, false, FAULT_EIO); /* counts from zero; nothing fails */
}

static void scene_close(cost_scene *s) {
  fault_uninstall();
  lode_close(s->store);
  project_release(&s->project);
}

static void expect_few_reads(const cost_scene *s, const char *what) {
  uint64_t reads = fault_count(FAULT_PREAD);
  CHECKF(reads > 0 && reads < s->pages / 8, "%s: %llu reads of a database of %llu pages", what,
         (unsigned long long)reads, (unsigned long long)s->pages);
}

TEST(the_definition_of_a_name_is_found_without_reading_every_chunk) {
  cost_scene s = {0};
  search_context_result context;
  scene_open(&s);
  OK(search_context_find(&s.project, s.store, &(search_context_request){.name = STR_LIT("wagex"), .limit = 3}, &context,
                         &err));
  CHECK(context.n > 0 && str_eq(context.items[0].name, STR_LIT("wagex")));
  search_context_result_release(&context);
  expect_few_reads(&s, "context");
  scene_close(&s);
}

TEST(a_search_for_names_does_not_read_every_chunk) {
  static const search_request requests[] = {
      {.query = {"wagex", 5}},
      {.query = {"where is wagex", 14}},
      {.query = {"return", 6}, .name = {"wagex", 5}},
  };
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
    cost_scene s = {0};
    search_result result;
    search_request request = requests[i];
    scene_open(&s);
    request.mode = LODE_BY_TEXT;
    request.limit = 5;
    OK(search_run(&s.project, s.store, &request, &result, &err));
    CHECK(result.n > 0 && str_eq(result.hits[0].name, STR_LIT("wagex")));
    search_result_release(&result);
    expect_few_reads(&s, requests[i].query.data);
    scene_close(&s);
  }
}
