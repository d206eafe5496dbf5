/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunk.c - chunks: golden results for each language, the partition on real and on hostile text, bytes between
 * processes. */
#include "chunk/chunk_make.h"
#include "chunk/parser_pool.h"
#include "support/fault.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static lode_error err;

/* ---- Golden results: test/chunk/NAME, NAME.chunks and NAME.symbols; LODE_TEST_BLESS=1 rewrites them ---- */

static void show_lines(strbuf *out, const char *label, lode_str s) {
  if (s.len == 0) return;
  strbuf_addf(out, "  %s: ", label);
  for (size_t i = 0; i < s.len; i++) {
    strbuf_addch(out, s.data[i]);
    if (s.data[i] == '\n') strbuf_addstr(out, "    ");
  }
  strbuf_addch(out, '\n');
}

static void show(strbuf *out, const parser_pool_result *r) {
  for (size_t i = 0; i < r->chunks.n; i++) {
    const chunk_item *c = &r->chunks.items[i];
    strbuf_addf(out, "%zu %s %.*s lines %u-%u at %u bytes %u-%u", i, lang_kind_name(c->kind), (int)c->name.len,
                c->name.data, c->start_line, c->end_line, c->line, c->start, c->end);
    if (c->parts > 1) strbuf_addf(out, " part %u of %u", c->part, c->parts);
    if (c->parent != CHUNK_NO_PARENT) strbuf_addf(out, " in %u", c->parent);
    strbuf_addch(out, '\n');
    show_lines(out, "parents", c->parents);
    show_lines(out, "signature", c->signature);
    show_lines(out, "doc", c->doc);
    show_lines(out, "skeleton", c->skeleton);
    show_lines(out, "symbols", c->symbols);
  }
}

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && strcmp(s + n - m, end) == 0;
}

static bool is_sample(const char *name) {
  return name[0] != '.' && !ends_with(name, ".chunks") && !ends_with(name, ".symbols");
}

static void compare_golden(const char *name, const char *ending, const strbuf *is) {
  char golden[400];
  size_t m;
  snprintf(golden, sizeof golden, "test/chunk/%s.%s", name, ending);
  if (getenv("LODE_TEST_BLESS")) test_write_file(golden, is->data ? is->data : "", is->len);
  char *wanted = test_read_file(golden, &m);
  CHECKF(m == is->len && memcmp(wanted, is->data ? is->data : "", m) == 0, "%s differs:\n%.*s", golden, (int)is->len,
         is->data ? is->data : "");
  free(wanted);
}

static void check_golden(parser_pool *pool, const char *name, unsigned *compared, unsigned *skipped) {
  char path[400];
  size_t n;
  strbuf out = {0};
  parser_pool_result r = {0};
  snprintf(path, sizeof path, "test/chunk/%s", name);
  char *text = test_read_file(path, &n);
  const lang_info *language = lang_detect(str_of(name), (lode_str){text, n});
  OK(parser_pool_chunk(pool, language, (lode_str){text, n}, &r, &err));
  CHECKF(chunk_list_problem(&r.chunks, n) == NULL, "%s: %s", name, chunk_list_problem(&r.chunks, n));
  if (r.outcome == PARSER_POOL_NO_GRAMMAR) {
    ++*skipped;
  } else {
    CHECKF(r.outcome == PARSER_POOL_SYNTAX || r.outcome == PARSER_POOL_PLAIN, "%s: %s", name,
           parser_pool_outcome_text(r.outcome));
    show(&out, &r);
    compare_golden(name, "chunks", &out);
    for (size_t i = 0; i < r.symbols.len; i++)
      if (r.symbols.data[i] == 0x7f) r.symbols.data[i] = '\t'; /* to be read */
    if (r.outcome == PARSER_POOL_SYNTAX) compare_golden(name, "symbols", &r.symbols);
    ++*compared;
  }
  free(text);
  strbuf_release(&out);
  parser_pool_result_release(&r);
}

TEST_SLOW(golden_results_for_each_language, 300) {
  unsigned compared = 0, skipped = 0;
  parser_pool *pool;
  OK(parser_pool_open(NULL, &pool, &err));
  DIR *dir = opendir("test/chunk");
  CHECK(dir != NULL);
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    if (is_sample(e->d_name)) check_golden(pool, e->d_name, &compared, &skipped);
  closedir(dir);
  parser_pool_close(pool);
  CHECK(compared >= 3);
  if (skipped) printf("skipped: %u languages whose grammars are not built (make grammars)\n", skipped);
}

TEST(every_grammar_of_the_table_has_a_sample) {
  bool seen[256] = {false};
  DIR *dir = opendir("test/chunk");
  CHECK(dir != NULL && lang_count < 256);
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    if (is_sample(e->d_name)) seen[lang_id(lang_detect(str_of(e->d_name), (lode_str){0}))] = true;
  closedir(dir);
  for (size_t i = 0; i < lang_count; i++)
    CHECKF(seen[i] || lang_table[i].split == LANG_SPLIT_LINES, "%s has no sample in test/chunk", lang_table[i].name);
}

/* ---- Languages ---- */

static const char *language_of(const char *path, const char *head) {
  return lang_detect(str_of(path), head ? str_of(head) : (lode_str){0})->name;
}

TEST(files_are_known_by_name_and_first_line) {
  CHECK(strcmp(language_of("a/b.c", NULL), "c") == 0);
  CHECK(strcmp(language_of("B.CPP", NULL), "c++") == 0);
  CHECK(strcmp(language_of("x/Makefile", NULL), "make") == 0);
  CHECK(strcmp(language_of("Makefile.am", NULL), "make") == 0);
  CHECK(strcmp(language_of("CMakeLists.txt", NULL), "cmake") == 0);
  CHECK(strcmp(language_of("run", "#!/usr/bin/env -S python3.11 -u\n"), "python") == 0);
  CHECK(strcmp(language_of("run", "#!/bin/bash\n"), "shell") == 0);
  CHECK(strcmp(language_of("run", "#!\n"), "text") == 0);
  CHECK(strcmp(language_of("run", "#! "), "text") == 0);
  CHECK(strcmp(language_of("a.h", "int f(void);\n"), "c") == 0);
  CHECK(strcmp(language_of("a.h", "\nclass A {\npublic:\n};\n"), "c++") == 0);
  CHECK(strcmp(language_of("", NULL), "text") == 0);
  CHECK(strcmp(language_of(".", NULL), "text") == 0);
  CHECK(strcmp(language_of("a/.c", NULL), "text") == 0);
  CHECK(strcmp(lang_find(STR_LIT("CPP"))->name, "c++") == 0);
  CHECK(lang_find(STR_LIT("klingon")) == NULL);
  CHECK(lang_kind_find(STR_LIT("method")) == LANG_KIND_METHOD && lang_kind_find(STR_LIT("x")) == LANG_KIND_COUNT);
}

/* ---- Hostile text, with and without grammars ---- */

static void check_text(parser_pool *pool, const lang_info *language, lode_str text, const char *what) {
  parser_pool_result r = {0};
  OK(parser_pool_chunk(pool, language, text, &r, &err));
  const char *wrong = chunk_list_problem(&r.chunks, text.len);
  CHECKF(!wrong, "%s as %s: %s", what, language->name, wrong);
  parser_pool_result_release(&r);
}

static char *repeated(const char *unit, size_t times, size_t *n) {
  size_t len = strlen(unit);
  char *text = malloc(len * times + 1);
  CHECK(text != NULL);
  for (size_t i = 0; i < times; i++) memcpy(text + i * len, unit, len);
  *n = len * times;
  return text;
}

TEST_SLOW(hostile_texts_are_chunked_without_harm, 600) {
  static const char *const units[] = {
      "(",  "{", "[",      "<div>",    "((a)", "if(x){", "/*", "\"",     "`${", "#if A\n", "  - a:\n", "def f():\n ",
      "\n", " ", "\t\r\n", "class A{", "=>",   "'",      "\\", "begin ", "@",   "x=",      "fn a(){"};
  parser_pool_options o = {.cpu_ms = 300, .workers = 1};
  parser_pool *pool;
  OK(parser_pool_open(&o, &pool, &err));
  test_srand(test_seed());
  for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
    size_t n;
    char *text = repeated(units[u], 20000, &n);
    for (size_t l = 0; l < lang_count; l++) {
      if (!lang_table[l].grammar || (!test_full() && test_below(8) != 0)) continue;
      check_text(pool, &lang_table[l], (lode_str){text, n}, units[u]);
    }
    check_text(pool, lang_find(STR_LIT("markdown")), (lode_str){text, n}, units[u]);
    check_text(pool, lang_find(STR_LIT("rst")), (lode_str){text, n}, units[u]);
    check_text(pool, &lang_table[0], (lode_str){text, n}, units[u]);
    free(text);
  }
  parser_pool_close(pool);
}

TEST(ten_megabytes_on_one_line) {
  size_t n;
  chunk_list list = {0};
  char *text = repeated("abcdefghi\xC3\xA4", 900000, &n);
  OK(chunk_plain(&lang_table[0], (lode_str){text, n}, NULL, &list, &err));
  CHECK(chunk_list_problem(&list, n) == NULL);
  for (size_t i = 0; i < list.n; i++) {
    CHECK(list.items[i].end - list.items[i].start <= 2400 && list.items[i].start_line == 1 &&
          list.items[i].end_line == 1);
    CHECK(((unsigned char)text[list.items[i].start] & 0xC0) != 0x80); /* no character is cut in two */
  }
  chunk_list_release(&list);
  free(text);
}

static void random_text(char *text, size_t n) {
  static const char signs[] = "\n\n\n  \tab{}()#=-*`\"'/\\<>:;0\r|_~.,!\x80\xC3\xA4\xFF";
  for (size_t i = 0; i < n; i++) text[i] = test_below(40) == 0 ? '\0' : signs[test_below(sizeof signs - 1)];
}

TEST(random_bytes_keep_the_partition) {
  chunk_list list = {0};
  char text[6000];
  test_srand(test_seed());
  for (int round = 0; round < (test_full() ? 20000 : 600); round++) {
    size_t n = test_below(sizeof text);
    random_text(text, n);
    chunk_options o = {.max_bytes = 256 + (uint32_t)test_below(1000)};
    for (size_t l = 0; l < lang_count; l++) {
      if (lang_table[l].split == LANG_SPLIT_TREE || (lang_table[l].split == LANG_SPLIT_LINES && l != 0)) continue;
      OK(chunk_plain(&lang_table[l], (lode_str){text, n}, &o, &list, &err));
      const char *wrong = chunk_list_problem(&list, n);
      CHECKF(!wrong, "%s: %s", lang_table[l].name, wrong);
    }
  }
  chunk_list_release(&list);
}

TEST_SLOW(random_bytes_keep_the_partition_with_every_grammar, 300) {
  char text[3000];
  parser_pool *pool;
  parser_pool_options o = {.chunk = {.max_bytes = 300}, .cpu_ms = 500, .workers = 2};
  OK(parser_pool_open(&o, &pool, &err));
  test_srand(test_seed());
  for (size_t l = 0; l < lang_count; l++) {
    if (!lang_table[l].grammar) continue;
    for (int round = 0; round < (test_full() ? 200 : 3); round++) {
      size_t n = test_below(sizeof text);
      random_text(text, n);
      check_text(pool, &lang_table[l], (lode_str){text, n}, "random bytes");
    }
  }
  parser_pool_close(pool);
}

/* Samples with bytes changed, cut and doubled: broken syntax still gives chunks. */
TEST_SLOW(broken_syntax_still_gives_chunks, 300) {
  parser_pool *pool;
  OK(parser_pool_open(NULL, &pool, &err));
  test_srand(test_seed());
  DIR *dir = opendir("test/chunk");
  CHECK(dir != NULL);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char path[400];
    size_t n;
    if (!is_sample(e->d_name)) continue;
    snprintf(path, sizeof path, "test/chunk/%s", e->d_name);
    char *text = test_read_file(path, &n);
    const lang_info *language = lang_detect(str_of(e->d_name), (lode_str){0});
    for (int round = 0; round < (test_full() ? 300 : 6) && n > 4; round++) {
      size_t len = n - test_below(n / 2);
      for (int i = 0; i < 4; i++) text[test_below(n)] = "{}()\n\"' \0x;:"[test_below(13)];
      check_text(pool, language, (lode_str){text, len}, e->d_name);
    }
    free(text);
  }
  closedir(dir);
  parser_pool_close(pool);
}

/* ---- The partition on this project's own files ---- */

static void check_folder(parser_pool *pool, const char *folder, unsigned *files) {
  DIR *dir = opendir(folder);
  CHECKF(dir != NULL, "%s", folder);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char path[700];
    size_t n;
    if (e->d_name[0] == '.' || e->d_type != DT_REG) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    char *text = test_read_file(path, &n);
    check_text(pool, lang_detect(str_of(path), (lode_str){text, n}), (lode_str){text, n}, path);
    free(text);
    ++*files;
  }
  closedir(dir);
}

TEST_SLOW(the_partition_holds_on_real_files, 300) {
  static const char *const folders[] = {
      ".",           "src/lib/base", "src/app/scan", "src/app/parser", "src/lib/store",
      "src/app/cli", "include",      "docs",         "tools",          "test/store"};
  unsigned files = 0;
  parser_pool *pool;
  parser_pool_options o = {.chunk = {.max_bytes = 700}};
  OK(parser_pool_open(&o, &pool, &err));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) check_folder(pool, folders[i], &files);
  parser_pool_close(pool);
  CHECK(files > 100);
}

/* ---- Long definitions ---- */

TEST(long_definitions_are_cut_at_statements_with_their_head) {
  parser_pool *pool;
  parser_pool_result r = {0};
  strbuf text = {0};
  parser_pool_options o = {.chunk = {.max_bytes = 600}};
  OK(parser_pool_open(&o, &pool, &err));
  if (!parser_pool_has(pool, lang_find(STR_LIT("c")))) {
    parser_pool_close(pool);
    test_skip("the grammar of C is not built (make grammars)");
  }
  strbuf_addstr(&text, "/* Adds up. */\nstatic int sum(int a)\n{\n  int s = 0;\n");
  for (int i = 0; i < 60; i++) strbuf_addf(&text, "  if (a > %d) {\n    s += %d;\n    s -= a;\n  }\n", i, i);
  strbuf_addstr(&text, "  return s;\n}\n");
  OK(parser_pool_chunk(pool, lang_find(STR_LIT("c")), (lode_str){text.data, text.len}, &r, &err));
  CHECK(r.outcome == PARSER_POOL_SYNTAX && !r.broken && r.chunks.n > 3);
  for (size_t i = 0; i < r.chunks.n; i++) {
    const chunk_item *c = &r.chunks.items[i];
    CHECK(c->end - c->start <= 600 && c->part == i && c->parts == r.chunks.n && c->kind == LANG_KIND_FUNCTION);
    CHECK(str_eq(c->name, STR_LIT("sum")) && str_eq(c->signature, STR_LIT("static int sum(int a)")));
    CHECK(str_eq(c->doc, i ? STR_LIT("") : STR_LIT("Adds up.")));
    if (i)
      CHECKF(strncmp(text.data + c->start, "  if (", 6) == 0 || strncmp(text.data + c->start, "  return", 8) == 0,
             "part %zu", i);
  }
  strbuf_release(&text);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

TEST(a_long_definition_leaves_no_remnant) {
  parser_pool *pool;
  parser_pool_options o = {.chunk = {.max_bytes = 600}};
  OK(parser_pool_open(&o, &pool, &err));
  if (!parser_pool_has(pool, lang_find(STR_LIT("c")))) {
    parser_pool_close(pool);
    test_skip("the grammar of C is not built (make grammars)");
  }
  for (int n = 2; n < 60; n++) {
    parser_pool_result r = {0};
    strbuf text = {0};
    strbuf_addstr(&text, "int sum(int a)\n{\n  int s = 0;\n");
    for (int i = 0; i < n; i++) strbuf_addf(&text, "  if (a > %d) {\n    s += %d;\n  }\n", i, i);
    strbuf_addstr(&text, "  return s;\n}\n");
    OK(parser_pool_chunk(pool, lang_find(STR_LIT("c")), (lode_str){text.data, text.len}, &r, &err));
    for (size_t i = 0; i < r.chunks.n; i++) {
      uint32_t size = r.chunks.items[i].end - r.chunks.items[i].start;
      CHECKF(r.chunks.n == 1 || size >= 100, "%d statements: part %zu of %zu has %u bytes", n, i, r.chunks.n, size);
    }
    strbuf_release(&text);
    parser_pool_result_release(&r);
  }
  parser_pool_close(pool);
}

/* ---- Between processes ---- */

static void sample_list(chunk_list *list, lode_str *text) {
  *text = str_of("# One\n\ntext\n\n## Two\n\nmore text\n\n# Three\n\nend\n");
  OK(chunk_plain(lang_find(STR_LIT("markdown")), *text, NULL, list, &err));
  CHECK(list->n == 3);
}

TEST(lists_survive_the_way_and_damage_is_found) {
  chunk_list list = {0}, copy = {0};
  strbuf bytes = {0};
  lode_str text;
  unsigned refused = 0;
  sample_list(&list, &text);
  chunk_list_encode(&list, &bytes);
  OK(chunk_list_decode((lode_str){bytes.data, bytes.len}, text.len, &copy, &err));
  CHECK(copy.n == list.n && str_eq(copy.items[1].parents, STR_LIT("One")) && copy.items[1].parent == 0);
  FAILS(LODE_CORRUPT, chunk_list_decode((lode_str){bytes.data, bytes.len}, text.len + 1, &copy, &err));
  for (size_t cut = 0; cut < bytes.len; cut++)
    FAILS(LODE_CORRUPT, chunk_list_decode((lode_str){bytes.data, cut}, text.len, &copy, &err));
  for (size_t bit = 0; bit < bytes.len * 8; bit++) {
    bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ (1 << (bit % 8)));
    lode_status st = chunk_list_decode((lode_str){bytes.data, bytes.len}, text.len, &copy, &err);
    if (st == LODE_OK)
      CHECK(chunk_list_problem(&copy, text.len) == NULL);
    else
      refused++;
    bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ (1 << (bit % 8)));
  }
  CHECK(refused > bytes.len);
  strbuf_release(&bytes);
  chunk_list_release(&list);
  chunk_list_release(&copy);
}

TEST(memory_that_runs_out_is_an_error) {
  lode_str text;
  chunk_list list = {0}, copy = {0};
  strbuf bytes = {0};
  sample_list(&list, &text);
  chunk_list_encode(&list, &bytes);
  chunk_list_release(&list);
  fault_alloc_install();
  for (uint64_t at = 1;; at++) {
    fault_alloc_set(at, false);
    lode_status a = chunk_plain(lang_find(STR_LIT("markdown")), text, NULL, &list, &err);
    lode_status b = chunk_list_decode((lode_str){bytes.data, bytes.len}, text.len, &copy, &err);
    uint64_t hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECK(a == LODE_OK || a == LODE_NOMEM);
    CHECK(b == LODE_OK || b == LODE_NOMEM);
    CHECK((hits == 0) == (a == LODE_OK && b == LODE_OK));
    if (a == LODE_OK) CHECK(chunk_list_problem(&list, text.len) == NULL && list.n == 3 && list.items[2].name.len == 5);
    chunk_list_release(&list);
    chunk_list_release(&copy);
    if (!hits) break;
  }
  strbuf_release(&bytes);
}

TEST(texts_beyond_the_limit_are_refused) {
  chunk_list list = {0};
  FAILS(LODE_LIMIT, chunk_plain(&lang_table[0], (lode_str){"", (size_t)LANG_MAX_TEXT + 1}, NULL, &list, &err));
  OK(chunk_plain(&lang_table[0], STR_LIT(""), NULL, &list, &err));
  CHECK(list.n == 0 && chunk_list_problem(&list, 0) == NULL && chunk_list_problem(&list, 1) != NULL);
  chunk_list_release(&list);
}
