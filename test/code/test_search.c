/* SPDX-License-Identifier: Apache-2.0 */
/* test_search.c - the parts of code search that are functions: words, questions, ranking, records, settings, edits of
 * settings files, and an index run on a tree of its own, under failing allocations too. test/shell/code.sh has the
 * program. */
#include "support/test.h"

#include "os/os.h"
#include "indexer/audit.h"
#include "search/context.h"
#include "project/project_config.h"
#include "indexer/indexer.h"
#include "search/rank.h"
#include "indexer/code_record.h"
#include "search/code_search.h"
#include "search/search_internal.h"
#include "search/search_words.h"
#include "support/fault.h"
#include "store/store.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static lode_error err;
#define S(text) str_of(text)

/* ---- Words and questions ---- */

static double alike(const char *a, const char *b) {
  search_words x, y;
  search_words_split(S(a), &x);
  search_words_split(S(b), &y);
  CHECK(x.n == 1 && y.n == 1);
  return search_word_similarity(&x.v[0], &y.v[0]);
}

TEST(words_are_split_and_compared_by_their_stems) {
  search_words w;
  search_words_split(S("parseHTTPHeaders src/http_parser.c"), &w);
  static const char *const want[] = {"parse", "http", "headers", "src", "parser", "c"};
  CHECK(w.n == 6);
  for (size_t i = 0; i < w.n; i++) CHECKF(strcmp(w.v[i].text, want[i]) == 0, "word %zu is %s", i, w.v[i].text);
  CHECK(alike("parsing", "parser") == 1);
  CHECK(alike("logger", "logging") == 1);
  CHECK(alike("sessions", "session") == 1);
  CHECK(alike("compress", "compression") > 0.5);
  CHECK(alike("auth", "authentication") > 0);
  CHECK(alike("cat", "dog") == 0);
  CHECK(alike("as", "assert") == 0);
  search_words_split(S(""), &w);
  CHECK(w.n == 0);
  char many[4000];
  size_t at = 0;
  for (int i = 0; at + 10 < sizeof many; i++) at += (size_t)snprintf(many + at, sizeof many - at, "w%dx ", i);
  search_words_split(S(many), &w);
  CHECK(w.n == SEARCH_MAX_WORDS);
}

TEST(a_query_is_words_or_a_name) {
  static const struct {
    const char *text;
    bool is_name;
    size_t names;
  } cases[] = {{"Mux", true, 1},
               {"parseHeader", true, 1},
               {"std::vector", true, 2},
               {"foo_bar()", true, 1},
               {"how are retries done", false, 0},
               {"where is parseHeader called", false, 1},
               {"what does `close` do", false, 1},
               {"read_line and write_line", false, 2},
               {"", false, 0},
               {"?!", false, 0},
               {"class Router", true, 1},
               {"parse_header function", true, 1},
               {"struct Mux definition", true, 1},
               {"method Router.add", true, 2},
               {"type token", false, 0},
               {"class", true, 1},
               {"class module", false, 0},
               {"function that closes Sessions", false, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    search_question q;
    search_question_parse(S(cases[i].text), &q);
    CHECKF(q.is_name == cases[i].is_name && q.n_names == cases[i].names, "%s: name %d, %zu names", cases[i].text,
           q.is_name, q.n_names);
  }
  search_question q;
  search_question_parse(S("the tests of the parser"), &q);
  CHECK(q.wants_tests && q.words.n == 2);
  search_question_parse(S(" class  Router "), &q);
  CHECK(str_eq(q.text, S("Router")) && q.words.n == 1 && str_eq(q.names[0], S("Router")));
  search_question_parse(S("how to do it"), &q);
  CHECK(q.words.n > 0); /* nothing but stop words: then they count */
}

static double held(const char *query, const char *text) {
  search_phrase p;
  search_phrase_parse(S(query), &p);
  return search_phrase_match(&p, S(text));
}

TEST(text_as_it_stands_is_known) {
  static const char code[] = "  if (!fp) return fail(\"cannot open %s: %d\", path);\n  open_the_gate(guests);\n";
  CHECK(held("return fail(\"cannot open %s", code) == 1);
  CHECK(held("if (!fp)\n return fail(\"cannot open", code) > 0.8); /* lines joined */
  CHECK(held("x.c:12: return fail(cannot open s d path)", code) > 0.5);
  CHECK(held("return open fail path cannot (guests)", code) == 0);         /* its words, in another order */
  CHECK(held("cannot open", code) > 0 && held("cannot open", code) < 0.1); /* who asks may mean anything */
  CHECK(held("open_the_gate", code) == 0);                                 /* a name: definitions decide */
  CHECK(held("", code) == 0 && held("fail", "") == 0);
  /* plain words: all of them in order, in any case, at any place, and only then */
  static const char words[] = "retained Messages\nARE (stored";
  CHECK(held("retained messages are stored", words) > 0 && held("RETAINED MESSAGES ARE STORED", words) > 0);
  CHECK(held("messages are stored", words) > 0 && held("retained messages are", words) > 0);
  CHECK(held("retained messages are store", words) == 0 && held("retained message are stored", words) == 0);
  CHECK(held("retained messages are stored", "stored") == 0 && held("the retained messages are stored", words) == 0);
}

/* What no grammar parses: heads between #ifdefs, attributes that are macros. */
TEST(a_definition_is_seen_in_the_text) {
  static const struct {
    const char *language, *text;
    uint32_t line; /* 0: none */
  } cases[] = {
      {"c", "int other;\n static void\nfoo\n (struct dtoa *C, U *rv)\n{\n}\n", 12},
      {"c", "#ifdef WIN32\nint foo(int argc, char *argv[]) {\n#else\nint main(void) {\n#endif\n", 11},
      {"c++", "  void foo() ASSERT_EXCLUSIVE_LOCK() {}\n", 10},
      {"c++", "  Status foo(const std::string& fname)\n      EXCLUSIVE_LOCKS_REQUIRED(mutex_) {\n", 10},
      {"c", "struct foo { const char* name; };\n", 10},
      {"typescript", "    foo(): AsyncStack {\n", 10},
      {"c", "int foo(int);\n", 0},
      {"c", "  if (foo(x)) {\n", 0},
      {"c", "  return foo(x) {\n", 0},
      {"c", "  x = foo(x); {\n", 0},
      {"c", "struct foo *next;\n{", 0},
      {"c", "int foobar(void) {\n", 0},
      {"c", "foo(", 0},
      {"c", "foo((((", 0},
      {"ruby", "foo(x) { |y| y }\n", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rank_candidate c = {.language = S(cases[i].language), .text = S(cases[i].text), .first = 10};
    indexer_def def = {0};
    bool found = search_find_definition(&c, S("foo"), &def);
    CHECKF(found == (cases[i].line != 0) && (!found || def.line == cases[i].line), "%s: line %u", cases[i].text,
           def.line);
  }
}

/* ---- Ranking ---- */

static rank_candidate chunk(const char *id, const char *path, const char *name, const char *kind, double bm25) {
  return (rank_candidate){.id = S(id),
                          .path = S(path),
                          .language = S("c"),
                          .kind = S(kind),
                          .name = S(name),
                          .parents = S(""),
                          .head = true,
                          .bm25 = bm25,
                          .cosine = NAN,
                          .cosine2 = NAN};
}

static size_t rank(const char *query, rank_candidate *v, size_t n, size_t limit, rank_hit *hits) {
  search_question q;
  size_t found;
  search_question_parse(S(query), &q);
  OK(rank_run(&q, v, n, NULL, limit, hits, &found, &err));
  return found;
}

TEST(definitions_come_before_uses) {
  rank_candidate v[] = {chunk("a#0", "src/uses.c", "run", "function", 5),
                        chunk("b#0", "src/defs.c", "open_door", "function", 4)};
  rank_hit hits[4];
  CHECK(rank("open_door", v, 2, 4, hits) == 2);
  CHECK(str_eq(hits[0].chunk->id, S("b#0")));
}

TEST(a_definition_that_only_tests_have_is_found_by_its_name) {
  rank_candidate v[] = {chunk("a#0", "src/open_doors.c", "open_doors", "function", 4),
                        chunk("b#0", "test/test_doors.c", "open_door", "function", 5),
                        chunk("c#0", "src/door.c", "open_door", "function", 5)};
  rank_hit hits[4];
  CHECK(rank("open_door", v, 2, 4, hits) == 2);
  CHECK(str_eq(hits[0].chunk->id, S("b#0")));
  for (size_t i = 0; i < 3; i++) v[i].measured = false;
  CHECK(rank("open_door", v, 3, 4, hits) == 3);
  CHECK(str_eq(hits[0].chunk->id, S("c#0"))); /* where there is another, that one */
}

/* The place in `v` of the first result. */
static size_t first_of(const char *query, rank_candidate *v, size_t n) {
  rank_hit hits[8];
  for (size_t i = 0; i < n; i++) v[i].measured = false;
  CHECK(rank(query, v, n, 8, hits) > 0);
  return (size_t)(hits[0].chunk - v);
}

TEST(the_thing_itself_comes_before_what_has_its_name) {
  rank_candidate v[] = {chunk("a#1", "src/router.h", "Router", "constructor", 9),
                        chunk("b#0", "src/impl.rs", "Router", "impl", 9),
                        chunk("c#0", "src/use.c", "router", "function", 9),
                        chunk("d#4", "src/long.c", "Router", "class", 9),
                        chunk("e#0", "src/decl.h", "Router", "function", 9),
                        chunk("f#0", "lib/deep/thing.c", "Router", "class", 0.1)};
  v[3].head = false;    /* a later part of a long class */
  v[4].declared = true; /* a prototype */
  CHECK(first_of("Router", v, 6) == 5);
  CHECK(first_of("router", v, 6) == 2); /* as it is written */
  v[2].parents = S("Web Server");
  CHECK(first_of("Server::router", v, 6) == 2);
  CHECK(first_of("deep.Router", v, 6) == 5);
}

TEST(definitions_that_share_a_chunk_are_found_by_their_names) {
  indexer_def defs[] = {{.name = S("MAX_DOORS"), .kind = S("macro"), .line = 7},
                        {.name = S("DoorError"), .kind = S("class"), .line = 9}};
  rank_candidate v[] = {chunk("a#0", "src/doors.c", "open_doors", "function", 9),
                        chunk("b#0", "src/x.c", "", "module", 1)};
  rank_hit hits[4];
  v[1].defs = defs;
  v[1].n_defs = 2;
  CHECK(first_of("DoorError", v, 2) == 1 && v[1].shown == 2);
  CHECK(first_of("MAX_DOORS", v, 2) == 1 && v[1].shown == 1);
  CHECK(first_of("open_doors", v, 2) == 0);
  v[0].measured = v[1].measured = false;
  CHECK(rank("how many doors there are", v, 2, 4, hits) == 2 && v[1].shown == 0);
}

TEST(a_text_that_is_held_comes_first_even_in_a_test) {
  rank_candidate v[] = {chunk("a#0", "src/gate.c", "open_gate", "function", 9),
                        chunk("b#0", "test/x.c", "", "module", 0.1)};
  v[0].text = S("int open_gate(int guests) { return guests; }");
  v[1].text = S("  CHECK(open_gate(12) == guests + 3);");
  CHECK(first_of("CHECK(open_gate(12) == guests", v, 2) == 1);
  CHECK(first_of("how is the gate opened", v, 2) == 0);
}

TEST(a_longer_answer_begins_with_the_shorter_one) {
  rank_candidate v[40];
  static char ids[40][24], paths[40][24];
  rank_hit all[40], few[40];
  for (int i = 0; i < 40; i++) {
    snprintf(ids[i], sizeof ids[i], "f%d#0", i);
    snprintf(paths[i], sizeof paths[i], "src/f%d.c", i / 2);
    v[i] = chunk(ids[i], paths[i], "f", "function", 1 + i % 7);
    v[i].hash = i % 5 ? NULL : "same";
  }
  size_t n = rank("some words", v, 40, 40, all);
  CHECK(n == 33); /* eight are copies of each other */
  for (size_t limit = 1; limit < n; limit++) {
    for (int i = 0; i < 40; i++) v[i].measured = false;
    CHECK(rank("some words", v, 40, limit, few) == limit);
    for (size_t i = 0; i < limit; i++)
      CHECK(few[i].chunk == all[i].chunk && few[i].copies == all[i].copies && few[i].score == all[i].score);
  }
}

TEST(names_of_files_count_and_tests_come_later) {
  rank_candidate v[] = {chunk("a#0", "src/misc.c", "x", "function", 5),
                        chunk("b#0", "src/retry.c", "y", "function", 4.5),
                        chunk("c#0", "tests/retry_test.c", "z", "function", 5)};
  rank_hit hits[4];
  CHECK(rank("retry of requests", v, 3, 4, hits) == 3);
  CHECK(str_eq(hits[0].chunk->id, S("b#0")));
  for (size_t i = 0; i < 3; i++) v[i].measured = false;
  CHECK(rank("tests of retry", v, 3, 4, hits) == 3);
  CHECK(str_eq(hits[0].chunk->id, S("c#0")) || str_eq(hits[0].chunk->id, S("b#0")));
}

TEST(one_file_does_not_fill_the_page_and_copies_are_folded) {
  rank_candidate v[22];
  rank_hit hits[30];
  static char ids[20][24];
  for (int i = 0; i < 20; i++) {
    snprintf(ids[i], sizeof ids[i], "a#%02d", i);
    v[i] = chunk(ids[i], "a.c", "f", "function", 9);
  }
  v[20] = chunk("b#0", "b.c", "g", "function", 6);
  v[21] = chunk("c#0", "c.c", "h", "function", 5);
  v[20].hash = v[21].hash = "same";
  CHECK(rank("some words", v, 22, 10, hits) == 10);
  size_t at = 0;
  while (at < 10 && !str_eq(hits[at].chunk->path, S("b.c"))) at++;
  CHECK(at > 0 && at < 10 && hits[at].copies == 1);
  for (int i = 0; i < 22; i++) v[i].measured = false;
  CHECK(rank("some words", v, 22, 30, hits) == 21); /* the rest of a.c follows, the copy does not */
}

TEST(the_chunk_that_is_shown_is_chosen_apart_from_the_score_of_its_file) {
  rank_candidate v[] = {chunk("a#0", "a.c", "misc", "function", 8),
                        chunk("a#1", "a.c", "retry_request", "function", 6)};
  rank_hit hits[2];
  CHECK(rank("how is a request retried, retry", v, 2, 2, hits) == 2);
  CHECK(v[0].score > v[1].score); /* more words, and its file is worth as much */
  CHECK(str_eq(hits[0].chunk->id, S("a#1")));
}

/* The order of two files with equal words, asked by `query`: true when the first one comes first. */
static bool first_wins(const char *query, const char *first, const char *second, const char *language) {
  rank_candidate v[] = {chunk("b#0", first, "x", "function", 5), chunk("a#0", second, "x", "function", 5.01)};
  rank_hit hits[2];
  for (size_t i = 0; i < 2; i++) v[i].hash = i ? "two" : "one";
  v[1].language = S(language);
  CHECK(rank(query, v, 2, 2, hits) == 2);
  return str_eq(hits[0].chunk->path, S(first));
}

TEST(what_is_rarely_meant_comes_later_unless_it_is_asked_for) {
  CHECK(!first_wins("open a window", "src/a.c", "src/b.c", "c")); /* the other one has a little more */
  CHECK(first_wins("open a pipe", "unix/a.c", "win/b.c", "c"));
  CHECK(!first_wins("open a pipe on windows", "unix/a.c", "win/b.c", "c"));
  CHECK(first_wins("open a pipe", "src/a_linux.c", "src/b_darwin.c", "c"));
  CHECK(!first_wins("open a pipe", "src/a.c", "src/windows/b.c",
                    "c")); /* nothing is for this system: windows may be on a screen */
  CHECK(first_wins("open a pipe", "src/v2/a.c", "src/v1/b.c", "c"));
  CHECK(!first_wins("open a pipe in v1", "src/v2/a.c", "src/v1/b.c", "c"));
  CHECK(!first_wins("open a pipe", "lib/v2/a.c", "src/v1/b.c", "c")); /* versions of different things */
  CHECK(first_wins("open a pipe", "src/a.c", "src/legacy/b.c", "c"));
  CHECK(!first_wins("open a legacy pipe", "src/a.c", "src/legacy/b.c", "c"));
  CHECK(first_wins("open a pipe", "src/a.js", "src/b.d.ts", "typescript"));
  CHECK(first_wins("open a pipe", "src/a.c", "src/b.json", "json")); /* whatever kind its chunks are */
  CHECK(first_wins("open a pipe", "src/a.c", "_examples/b.c", "c"));
}

TEST(a_file_is_not_counted_once_for_each_of_its_chunks) {
  /* Many chunks that say nothing do not multiply what the name of their file is worth */
  rank_candidate v[22];
  rank_hit hits[30];
  static char ids[20][24];
  for (int i = 0; i < 20; i++) {
    snprintf(ids[i], sizeof ids[i], "a#%d", i);
    v[i] = chunk(ids[i], "src/pipe_names.c", "x", "text", 0);
  }
  v[20] = chunk("b#0", "src/pipe_modes.c", "x", "text", 9);
  v[21] = chunk("c#0", "src/other.c", "x", "text", 1);
  CHECK(rank("open a pipe", v, 22, 30, hits) > 2);
  CHECK(str_eq(hits[0].chunk->id, S("b#0")));
}

static bool shows(const char *query, const char *text, size_t most, const char *want, uint32_t skipped) {
  search_question q;
  uint32_t before;
  search_question_parse(S(query), &q);
  lode_str shown = search_window(&q, S(text), most, &before);
  return str_eq(shown, S(want)) && before == skipped;
}

TEST(of_a_long_chunk_the_lines_that_have_the_words_are_shown) {
  const char *text = "void run() {\n  start();\n  wait();\n  close_session();\n  stop();\n}\n";
  CHECK(shows("session", text, 1000, text, 0));
  CHECK(shows("session", text, 32, "  wait();\n  close_session();\n", 2));
  CHECK(shows("session", text, 3, "  close_session();\n", 3)); /* a line that is too long stays whole */
  CHECK(shows("nothing of it", text, 26, "void run() {\n  start();\n", 0));
  CHECK(shows("run", text, 26, "void run() {\n  start();\n", 0));
  CHECK(shows("session", "no_line_ends_here_session", 4, "no_line_ends_here_session", 0));
  CHECK(shows("session", "", 0, "", 0));
}

TEST(a_second_chunk_comes_before_files_that_hardly_match) {
  rank_candidate v[] = {chunk("a#0", "a.c", "x", "text", 9), chunk("a#1", "a.c", "y", "text", 8.5),
                        chunk("a#2", "a.c", "u", "text", 2), chunk("b#0", "b.c", "z", "text", 0.1),
                        chunk("c#0", "c.c", "w", "text", 6)};
  rank_hit hits[5];
  CHECK(rank("some words", v, 5, 5, hits) == 5);
  static const char *const want[] = {"a#0", "a#1", "c#0", "a#2", "b#0"};
  for (size_t i = 0; i < 5; i++)
    CHECKF(str_eq(hits[i].chunk->id, S(want[i])), "hit %zu is %.*s", i, (int)hits[i].chunk->id.len,
           hits[i].chunk->id.data);
  for (size_t i = 1; i < 5; i++) CHECK(hits[i].score <= hits[i - 1].score);
}

TEST(of_files_that_match_alike_the_one_that_others_name_comes_first) {
  rank_candidate v[] = {chunk("a#0", "src/pipe_names.c", "x", "function", 5),
                        chunk("b#0", "src/pipe-modes.c", "y", "function", 5),
                        chunk("c#0", "src/one.c", "z", "function", 1), chunk("d#0", "src/two.c", "w", "function", 1)};
  rank_hit hits[4];
  v[0].text = S("pipe-modes of pipe_names: pipe_names, PIPE_NAMES"); /* what a file says of itself does not count */
  v[2].text = S("#include \"Pipe-Modes.h\"");
  v[3].text = S("pipe-modes->next and pipe-modes; old_pipe_names");
  CHECK(rank("open a pipe", v, 4, 4, hits) == 4);
  CHECK(str_eq(hits[0].chunk->id, S("b#0")));
  CHECK(v[1].features[RANK_FEATURE_CENTRAL] == 1 && v[0].features[RANK_FEATURE_CENTRAL] == 0);
}

TEST(words_alone_count_double) {
  rank_candidate v[] = {chunk("a#0", "a.c", "", "text", 5), chunk("b#0", "b.c", "", "text", 0)};
  double text = rank_default_weights.feature[0][RANK_FEATURE_TEXT];
  rank_hit hits[2];
  CHECK(rank("some words", v, 2, 2, hits) == 2 && hits[0].score == 2 * text);
  v[1].cosine = 0.5;
  for (size_t i = 0; i < 2; i++) v[i].measured = false;
  CHECK(rank("some words", v, 2, 2, hits) == 2 && v[0].score == text);
}

TEST(a_plain_file_has_the_name_of_its_folder) {
  CHECK(first_wins("open a pipe", "src/pipe/index.js", "src/b.js", "javascript"));
  CHECK(first_wins("open a pipe", "src/pipe/__init__.py", "src/b.py", "python"));
  CHECK(!first_wins("open a pipe", "main.go", "src/b.go", "go"));
}

TEST(words_written_together_are_known) {
  search_words w;
  search_words_split(S("thread pools threadpool threads poolthread"), &w);
  CHECK(w.n == 5 && search_word_is_compound(&w.v[0], &w.v[1], &w.v[2]));
  CHECK(!search_word_is_compound(&w.v[0], &w.v[1], &w.v[3]) && !search_word_is_compound(&w.v[0], &w.v[1], &w.v[4]));
  CHECK(!first_wins("queue of a thread pool", "src/thread.c", "src/threadpool.c", "c"));
}

TEST(ranking_is_total_and_finite) {
  rank_candidate v[60];
  rank_hit hits[60];
  static char ids[60][48], paths[60][48];
  test_srand(test_seed());
  for (int round = 0; round < 50; round++) {
    size_t n = test_below(60) + 1;
    for (size_t i = 0; i < n; i++) {
      snprintf(ids[i], sizeof ids[i], "p%d#%zu", (int)test_below(9), i);
      snprintf(paths[i], sizeof paths[i], "d%d/p%d.c", (int)test_below(2), (int)test_below(9));
      v[i] = chunk(ids[i], paths[i], i % 3 ? "name_of" : "", i % 2 ? "function" : "text", (double)test_below(100) / 7);
      if (test_below(2)) v[i].cosine = (double)test_below(200) / 100 - 1;
    }
    size_t found = rank(round % 2 ? "name_of" : "words of a question", v, n, 60, hits);
    CHECK(found <= n && found > 0);
    for (size_t i = 0; i < found; i++) {
      CHECK(isfinite(hits[i].score));
      for (size_t k = 0; k < i; k++) CHECK(hits[i].chunk != hits[k].chunk);
    }
  }
  size_t found;
  search_question q;
  search_question_parse(S("x"), &q);
  OK(rank_run(&q, v, 0, NULL, 10, hits, &found, &err));
  CHECK(found == 0);
}

/* ---- Records ---- */

TEST(paths_of_any_bytes_come_back) {
  test_srand(test_seed());
  for (int round = 0; round < 2000; round++) {
    char raw[40];
    strbuf shown = {0}, back = {0};
    size_t n = test_below(sizeof raw);
    for (size_t i = 0; i < n; i++)
      raw[i] = test_below(3) ? "\\xx0f9a/\303\251\377\n"[test_below(13)] : (char)(test_below(255) + 1);
    files_path_escape(&shown, (lode_str){raw, n});
    CHECK(utf8_valid(shown.data ? shown.data : "", shown.len));
    files_path_unescape(&back, (lode_str){shown.data ? shown.data : "", shown.len});
    CHECKF(back.len == n && memcmp(back.data ? back.data : "", raw, n) == 0, "seed %llu",
           (unsigned long long)test_seed());
    strbuf_release(&shown);
    strbuf_release(&back);
  }
}

TEST(states_come_back_and_nonsense_is_refused) {
  indexer_file_state a = {.size = 123,
                          .inode = UINT64_C(9000000000),
                          .at_ms = 77,
                          .mtime_ns = -5,
                          .ctime_ns = 6,
                          .chunks = 4,
                          .masked = 2,
                          .skip = SCAN_SKIP_BINARY},
                     b;
  json_doc json = {0};
  strbuf text = {0};
  for (size_t i = 0; i < sizeof a.hash; i++) a.hash[i] = (uint8_t)(i * 17);
  indexer_file_state_put(&text, &a, "c");
  CHECK(indexer_file_state_parse((lode_str){text.data, text.len}, &json, &b));
  CHECK(memcmp(&a, &b, sizeof a) == 0);
  static const char *const wrong[] = {"", "{}", "[]", "{\"size\":1}",
                                      "{\"size\":1,\"mtime\":1,\"inode\":1,\"at\":1,\"chunks\":-1,\"hash\":\"00\"}"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK(!indexer_file_state_parse(S(wrong[i]), &json, &b));
  indexer_chunk_view view;
  static const char *const spans[] = {"1-2/1@3", "1-2/1", "x", "1-2/1@3@4", "99999999999-1/1@1", ""};
  for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
    char meta[100];
    snprintf(meta, sizeof meta, "{\"path\":\"p\",\"span\":\"%s\"}", spans[i]);
    lode_status st = indexer_chunk_view_parse(S(meta), &json, &view, &err);
    CHECKF((st == LODE_OK) == (i == 0), "%s", spans[i]);
  }
  json_release(&json);
  strbuf_release(&text);
}

/* A state that was stored before the time of change was kept has 0 there: a file fits it if nothing has changed since
 * the file was indexed. Otherwise the time of change must be the same. */
TEST(a_state_fits_the_file_that_it_was_made_of) {
  enum { INDEXED_MS = 5000, MS = 1000000 };
  indexer_file_state s = {.size = 10, .inode = 3, .at_ms = INDEXED_MS, .mtime_ns = 40, .ctime_ns = 0};
  CHECK(indexer_file_state_fits(&s, 10, 3, 40, 50));
  CHECK(indexer_file_state_fits(&s, 10, 3, 40, (int64_t)INDEXED_MS * MS - 1));
  CHECK(!indexer_file_state_fits(&s, 10, 3, 40, (int64_t)INDEXED_MS * MS)); /* perhaps after it was read */
  CHECK(!indexer_file_state_fits(&s, 10, 3, 40, (int64_t)(INDEXED_MS + 1) * MS));
  CHECK(!indexer_file_state_fits(&s, 11, 3, 40, 50) && !indexer_file_state_fits(&s, 10, 4, 40, 50));
  CHECK(!indexer_file_state_fits(&s, 10, 3, 41, 50));
  s.ctime_ns = 50;
  CHECK(indexer_file_state_fits(&s, 10, 3, 40, 50));
  CHECK(!indexer_file_state_fits(&s, 10, 3, 40, 49) && !indexer_file_state_fits(&s, 10, 3, 40, 51));
  CHECK(!indexer_file_state_fits(&s, 11, 3, 40, 50));
  json_doc json = {0}; /* as an index of before it holds it */
  indexer_file_state old;
  static const char stored[] =
      "{\"size\":1,\"mtime\":1,\"inode\":1,\"at\":1,\"chunks\":0,\"hash\":\"00000000000000000000000000000000\"}";
  CHECK(indexer_file_state_parse(S(stored), &json, &old) && old.ctime_ns == 0 && old.at_ms == 1);
  json_release(&json);
}

/* ---- Settings ---- */

TEST(settings_keep_what_they_do_not_know) {
  const char *folder = test_folder();
  char path[300];
  config_values config;
  snprintf(path, sizeof path, "%s/config.json", folder);
  OK(config_load(&config, folder, &err));
  CHECK(config_int(&config, CONFIG_SEARCH_LIMIT) == 10);
  test_write_file(path, "{\"theirs\":[1,2],\"search.limit\":7}", 33);
  OK(config_load(&config, folder, &err));
  CHECK(config_int(&config, CONFIG_SEARCH_LIMIT) == 7);
  OK(config_set(&config, CONFIG_MODEL, S("none"), &err));
  FAILS(LODE_INVALID, config_set(&config, CONFIG_QUALITY, S("maybe"), &err));
  OK(config_save(&config, folder, &err));
  config_release(&config);
  char *text = test_read_file(path, NULL);
  CHECK(strstr(text, "\"theirs\": [1,2]") && strstr(text, "\"model\": \"none\""));
  free(text);
  test_write_file(path, "{\"search.limit\":\"x\"}", 20);
  FAILS(LODE_INVALID, config_load(&config, folder, &err));
}

/* ---- An index of a small tree, with a model of our own ---- */

static lode_status embed_letters(void *ctx, const lode_str *texts, size_t n, float *vectors, lode_error *e) {
  (void)ctx, (void)e;
  for (size_t i = 0; i < n; i++) {
    float *v = vectors + i * 8;
    for (size_t k = 0; k < 8; k++) v[k] = 0.01f;
    for (size_t k = 0; k < texts[i].len; k++) v[(unsigned char)texts[i].data[k] % 8] += 1;
  }
  return LODE_OK;
}

typedef struct scene {
  project_info project;
  lode_store *store;
  lode_embedder *model;
} scene;

static void write_in(const char *root, const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", root, name);
  test_write_file(path, text, strlen(text));
}

static void scene_open(scene *s, const char *identity) {
  const char *root = test_folder();
  char folder[400];
  lode_open_options options = {.create = true, .no_background = true};
  snprintf(folder, sizeof folder, "%s/.lode", root);
  mkdir(folder, 0700);
  write_in(root, "alpha.c", "/* opens the door */\nint open_door(int key) {\n  return key == 7;\n}\n");
  write_in(root, "beta.py", "def close_window(w):\n    \"\"\"Shuts the window.\"\"\"\n    w.shut()\n");
  OK(project_open(&s->project, root, NULL, &err));
  OK(lode_open(folder, &options, &s->store, &err));
  OK(lode_embedder_open_custom(S(identity), 8, embed_letters, NULL, &s->model, &err));
}

static void scene_close(scene *s) {
  lode_close(s->store);
  lode_embedder_close(s->model);
  project_release(&s->project);
}

static lode_status run_index(scene *s, bool force, indexer_report *report) {
  indexer_options options = {.embedder = s->model, .workers = 1, .force = force};
  indexer_ctx *indexer = NULL;
  lode_status st = indexer_open(&s->project, s->store, &options, &indexer, &err);
  if (st == LODE_OK) st = indexer_run(indexer, NULL, 0, report, &err);
  indexer_close(indexer);
  return st;
}

static void expect_first(scene *s, const char *query, lode_mode mode, const char *path) {
  search_request request = {.query = S(query), .mode = mode, .limit = 5, .embedder = s->model};
  search_result result;
  OK(search_run(&s->project, s->store, &request, &result, &err));
  CHECKF(result.n > 0 && str_eq(result.hits[0].path, S(path)), "%s: %zu hits", query, result.n);
  search_result_release(&result);
}

TEST(a_tree_is_indexed_searched_and_followed) {
  static const char *const models[] = {"letters@1/8/static", "letters@1/8/float"}; /* in the first pass, and after it */
  for (size_t m = 0; m < 2; m++) {
    scene s = {0};
    indexer_report r;
    indexer_audit audit;
    scene_open(&s, models[m]);
    OK(run_index(&s, false, &r));
    CHECK(r.added == 2 && r.pending == 0 && r.vectors == r.chunks);
    expect_first(&s, "open_door", LODE_HYBRID, "alpha.c");
    expect_first(&s, "shuts the window", LODE_BY_TEXT, "beta.py");
    expect_first(&s, "close_window", LODE_BY_VECTOR, "beta.py");
    OK(run_index(&s, false, &r));
    CHECK(r.unchanged == 2 && r.chunks == 0);
    write_in(s.project.root, "alpha.c", "int open_gate(void) { return 1; }\n");
    OK(run_index(&s, false, &r));
    CHECK(r.changed == 1 && r.unchanged == 1);
    expect_first(&s, "open_gate", LODE_HYBRID, "alpha.c");
    OK(run_index(&s, true, &r));
    CHECK(r.added == 2);
    /* A slow model does not embed the same texts again */
    if (m == 1)
      CHECKF(r.reused >= 2 && r.vectors == 0, "%llu reused, %llu made", (unsigned long long)r.reused,
             (unsigned long long)r.vectors);
    expect_first(&s, "open_gate", LODE_HYBRID, "alpha.c");
    OK(indexer_audit_run(s.store, false, (lode_progress){0}, &audit, &err));
    CHECK(audit.files == 2 && !audit.short_files && !audit.orphans);
    scene_close(&s);
  }
}

/* Who stays finds a change before any index holds it, and leaves those to the store. */
/* How many results a search for a text as it stands has; the first of them is of that file; NULL: of any. */
static size_t verbatim(scene *s, search_request request, const char *path) {
  search_result result;
  request.mode = LODE_HYBRID;
  request.limit = 10;
  request.embedder = s->model;
  OK(search_run(&s->project, s->store, &request, &result, &err));
  size_t n = result.n;
  CHECK(!result.weak && (n == 0 || !path || str_eq(result.hits[0].path, S(path))));
  search_result_release(&result);
  return n;
}

TEST(text_as_it_stands_is_found_and_verified) {
  scene s = {0};
  indexer_report r;
  search_result result;
  scene_open(&s, "letters@1/8/static");
  write_in(s.project.root, "gamma.c", "/* one (two three) four */\nint gamma_ray;\n");
  write_in(s.project.root, "delta.c", "/* one two (three four) */\nint delta_ray;\n");
  OK(run_index(&s, false, &r));
  CHECK(verbatim(&s, (search_request){.query = S("(two three)"), .exact = true}, "gamma.c") == 1);
  CHECK(verbatim(&s, (search_request){.query = S("wo thre"), .exact = true}, "gamma.c") == 1); /* no whole word */
  CHECK(verbatim(&s, (search_request){.query = S("(Two three)"), .exact = true}, "") == 0);
  CHECK(verbatim(&s, (search_request){.query = S("gamma.c"), .exact = true}, "") == 0); /* a path is not text */
  CHECK(verbatim(&s, (search_request){.query = S("one .two th"), .regex = true}, "gamma.c") == 1);
  CHECK(verbatim(&s, (search_request){.query = S("^int (delta|gamma)_ray;$"), .regex = true}, "delta.c") == 2);
  CHECK(verbatim(&s, (search_request){.query = S("delta\\.c"), .regex = true}, "") == 0);
  CHECK(verbatim(&s, (search_request){.query = S("ray \"two (three\"")}, "delta.c") == 1);
  CHECK(search_run(&s.project, s.store,
                   &(search_request){.query = S("(x"), .regex = true, .mode = LODE_BY_TEXT, .limit = 1}, &result,
                   &err) == LODE_INVALID);
  CHECK(strstr(err.text, "\"(x\" is wrong") != NULL);
  OK(search_run(&s.project, s.store,
                &(search_request){.query = S("\"four one\" gamma"), .mode = LODE_BY_TEXT, .limit = 3}, &result, &err));
  CHECK(result.n > 0 && strstr(result.note, "without the quotes") != NULL);
  search_result_release(&result);
  OK(search_run(
      &s.project, s.store,
      &(search_request){.query = S("xyzzy plugh frobnicate"), .mode = LODE_HYBRID, .limit = 3, .embedder = s.model},
      &result, &err));
  CHECK(result.n == 0 || result.weak);
  search_result_release(&result);
  scene_close(&s);
}

static bool stop_at_once(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  ++*(size_t *)ctx;
  return false;
}

TEST(text_as_it_stands_is_looked_for_in_all_chunks) {
  scene s = {0};
  indexer_report r;
  search_result result;
  char name[32], text[200];
  size_t asked = 0;
  scene_open(&s, "letters@1/8/static");
  for (int i = 0; i < 600; i++) {
    snprintf(name, sizeof name, "use%03d.c", i);
    snprintf(text, sizeof text, "int use%d(void) { return the_target(%d) + xthe_targety; }\n", i, i);
    write_in(s.project.root, name, text);
  }
  OK(run_index(&s, false, &r));
  write_in(s.project.root, "zzz.c", "int the_target(int n) { return n; }\n");
  OK(run_index(&s, false, &r));
  search_request exact = {.query = S("the_target"), .exact = true},
                 pattern = {.query = S("the_(other|target)\\("), .regex = true};
  CHECK(verbatim(&s, exact, NULL) == 10);
  CHECK(verbatim(&s, pattern, NULL) == 10);
  CHECK(verbatim(&s, (search_request){.query = S("he_targe"), .exact = true}, NULL) == 10);
  CHECK(verbatim(&s, (search_request){.query = S("the_target"), .exact = true, .path = S("*9.c")}, "use009.c") == 10);
  exact.mode = pattern.mode = LODE_BY_TEXT;
  exact.limit = pattern.limit = 1000; /* more than the words' first batch: all of them, once each */
  OK(search_run(&s.project, s.store, &exact, &result, &err));
  CHECKF(result.n == 601, "%zu", result.n);
  search_result_release(&result);
  OK(search_run(&s.project, s.store, &pattern, &result, &err));
  CHECKF(result.n == 601, "%zu", result.n);
  search_result_release(&result);
  pattern.progress = (lode_progress){stop_at_once, &asked};
  CHECK(search_run(&s.project, s.store, &pattern, &result, &err) == LODE_CANCELLED && asked == 1);
  scene_close(&s);
}

/* A pattern means what it means alone, and is shown as it was written. */
TEST(a_pattern_is_taken_as_it_is_written) {
  static const struct {
    const char *pattern, *says;
    lode_status st;
  } wrong[] = {{"a)|(b", "\"a)|(b\" is wrong at byte 1:", LODE_INVALID},
               {"(x", "\"(x\" is wrong at byte 2:", LODE_INVALID},
               {"x(*SKIP)", "\"x(*SKIP)\" has a verb", LODE_INVALID},
               {"(e+)+[QR]", "\"(e+)+[QR]\" takes too much work", LODE_LIMIT}};
  scene s = {0};
  indexer_report r;
  search_result result;
  char long_text[4000] = "/* ";
  memset(long_text + 3, 'e', sizeof long_text - 10);
  memcpy(long_text + sizeof long_text - 8, " */\n", 5);
  scene_open(&s, "letters@1/8/static");
  write_in(s.project.root, "long.c", long_text);
  write_in(s.project.root, "gamma.c", "int gamma_ray; /* a # b */\nint second;\n");
  OK(run_index(&s, false, &r));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    search_request request = {.query = S(wrong[i].pattern), .regex = true, .mode = LODE_BY_TEXT, .limit = 3};
    lode_status st = search_run(&s.project, s.store, &request, &result, &err);
    CHECKF(st == wrong[i].st && strstr(err.text, wrong[i].says) && !strstr(err.text, "(?m)"), "%s: %s",
           wrong[i].pattern, err.text);
    if (st == LODE_OK) search_result_release(&result);
  }
  CHECK(verbatim(&s, (search_request){.query = S("(?x) gamma _ray # a comment"), .regex = true}, "gamma.c") == 1);
  CHECK(verbatim(&s, (search_request){.query = S("\\Qa # b"), .regex = true}, "gamma.c") == 1);
  CHECK(verbatim(&s, (search_request){.query = S("^int second"), .regex = true}, "gamma.c") == 1);
  CHECK(verbatim(&s, (search_request){.query = S("gamma\\.c|nothing"), .regex = true}, "") == 0);
  scene_close(&s);
}

TEST(copies_are_folded_and_files_listed_once) {
  scene s = {0};
  indexer_report r;
  search_result result;
  char name[32], text[4000] = "";
  scene_open(&s, "letters@1/8/static");
  for (int i = 0; i < 400; i++) { /* more than one batch of candidates */
    snprintf(name, sizeof name, "copy%03d.c", i);
    write_in(s.project.root, name, "int quorum_of(int nodes) { return nodes / 2 + 1; }\n");
  }
  for (int i = 0; i < 20; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "int quorum_%d(int nodes) {\n  int quorum = nodes / %d;\n  return quorum + nodes + %d;\n}\n\n", i, i + 1,
             i);
  write_in(s.project.root, "many.c", text);
  OK(run_index(&s, false, &r));
  search_request request = {.query = S("quorum nodes"), .mode = LODE_BY_TEXT, .limit = 30};
  OK(search_run(&s.project, s.store, &request, &result, &err));
  size_t copies = 0;
  for (size_t i = 0; i < result.n; i++) copies += memcmp(result.hits[i].path.data, "copy", 4) == 0;
  CHECKF(copies == 1, "%zu copies", copies);
  search_result_release(&result);
  request.files_only = true;
  OK(search_run(&s.project, s.store, &request, &result, &err));
  for (size_t i = 0; i < result.n; i++)
    for (size_t k = 0; k < i; k++) CHECK(!str_eq(result.hits[i].path, result.hits[k].path));
  CHECK(result.n >= 2);
  search_result_release(&result);
  scene_close(&s);
}

/* Its parts are everywhere, the name is not. */
TEST(a_name_that_is_nowhere_is_weak) {
  static const struct {
    const char *query;
    bool weak;
  } cases[] = {{"close_door", true}, {"closeDoor", true}, {"open_door", false},
               {"OPEN_DOOR", false}, {"door", false},     {"window_handle_of", false}};
  scene s = {0};
  indexer_report r;
  scene_open(&s, "letters@1/8/static");
  write_in(s.project.root, "gamma.c",
           "/* calls window_handle_of() of the system to close and open doors */\nint gamma_ray;\n");
  OK(run_index(&s, false, &r));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    search_request request = {.query = S(cases[i].query), .mode = LODE_HYBRID, .limit = 3, .embedder = s.model};
    search_result result;
    OK(search_run(&s.project, s.store, &request, &result, &err));
    CHECKF((result.n == 0 || result.weak) == cases[i].weak, "%s", cases[i].query);
    search_result_release(&result);
  }
  scene_close(&s);
}

static int64_t refuse_secret(oscall *c) {
  if (c->kind != OSCALL_OPEN || !c->path || !strstr(c->path, "secret")) return oscall_pass(c);
  errno = EACCES;
  return -1;
}

/* A search would index it in vain, again and again. */
TEST(a_file_that_cannot_be_read_is_not_changed) {
  scene s = {0};
  indexer_report r;
  indexer_changes changes;
  scene_open(&s, "letters@1/8/static");
  write_in(s.project.root, "secret.c", "int old_text;\n");
  OK(run_index(&s, false, &r));
  CHECK(r.added == 3);
  write_in(s.project.root, "secret.c", "int new_text_now;\n");
  write_in(s.project.root, "secret2.c", "int never_read;\n");
  OK(indexer_compare(&s.project, s.store, (lode_progress){0}, &changes, &err));
  CHECK(changes.changed == 1 && changes.added == 1 && !changes.removed && !changes.touched);
  oscall_push(refuse_secret, os_api);
  OK(run_index(&s, false, &r));
  OK(indexer_compare(&s.project, s.store, (lode_progress){0}, &changes, &err));
  oscall_pop(refuse_secret);
  CHECKF(changes.files == 4 && !changes.changed && !changes.added && !changes.removed, "%llu %llu %llu %llu",
         (unsigned long long)changes.files, (unsigned long long)changes.changed, (unsigned long long)changes.added,
         (unsigned long long)changes.removed);
  scene_close(&s);
}

TEST(a_watcher_does_not_wait_for_indexes) {
  scene s = {0};
  indexer_report r;
  indexer_ctx *indexer = NULL;
  lode_stats stats;
  lode_str path = S("alpha.c");
  scene_open(&s, "letters@1/8/static");
  indexer_options options = {.embedder = s.model, .workers = 1, .stays = true};
  OK(indexer_open(&s.project, s.store, &options, &indexer, &err));
  for (int whole = 1; whole >= 0; whole--) {
    if (!whole) write_in(s.project.root, "alpha.c", "int open_gate(void) { return 1; }\n");
    OK(indexer_run(indexer, whole ? NULL : &path, 1, &r, &err));
    OK(lode_store_stats(s.store, &stats, &err));
    CHECKF((stats.untexted == 0) == whole, "%llu without index", (unsigned long long)stats.untexted);
    expect_first(&s, whole ? "open_door" : "open_gate", LODE_BY_TEXT, "alpha.c");
  }
  indexer_close(indexer);
  scene_close(&s);
}

/* A rebuilt index replaces all that was there, so it is never built from a part. */
TEST(a_rebuilt_index_is_complete) {
  scene s = {0};
  indexer_report r;
  uint64_t n = 0;
  indexer_options options = {.workers = 1, .force = true};
  lode_collection_options plain = {0};
  lode_str part = S("beta.py");
  scene_open(&s, "letters@1/8/static");
  options.embedder = s.model;
  OK(run_index(&s, false, &r));
  for (int removes = 0; removes < 2; removes++) {
    indexer_ctx *indexer = NULL;
    lode_collection *files = NULL;
    OK(indexer_open(&s.project, s.store, &options, &indexer, &err));
    if (removes)
      OK(indexer_remove(indexer, part, &r, &err));
    else
      OK(indexer_run(indexer, &part, 1, &r, &err));
    indexer_close(indexer);
    OK(lode_collection_open(s.store, S(INDEXER_COLL_FILES), &plain, &files, &err));
    OK(lode_count(files, &n, &err));
    lode_collection_close(files);
    CHECKF(n == (removes ? 1u : 2u), "%llu files", (unsigned long long)n);
    expect_first(&s, "open_door", LODE_HYBRID, "alpha.c");
  }
  scene_close(&s);
}

TEST(another_model_is_refused_until_force) {
  scene s = {0};
  indexer_report r;
  lode_embedder *other;
  scene_open(&s, "letters@1/8/static");
  OK(run_index(&s, false, &r));
  OK(lode_embedder_open_custom(S("figures@1/8/static"), 8, embed_letters, NULL, &other, &err));
  lode_embedder *first = s.model;
  s.model = other;
  FAILS(LODE_MISMATCH, run_index(&s, false, &r));
  CHECK(strstr(err.text, "--force"));
  expect_first(&s, "open_door", LODE_BY_TEXT, "alpha.c");
  OK(run_index(&s, true, &r));
  expect_first(&s, "open_door", LODE_HYBRID, "alpha.c");
  s.model = first;
  scene_close(&s);
  lode_embedder_close(other);
}

/* Deletes a record without the index knowing. */
static void lose(const scene *s, const char *collection, const char *id) {
  lode_collection *c;
  lode_collection_options plain = {0};
  lode_selection one = {.ids = (lode_str[]){str_of(id)}, .n_ids = 1};
  size_t deleted;
  OK(lode_collection_open(s->store, str_of(collection), &plain, &c, &err));
  OK(lode_delete(c, NULL, &one, &deleted, &err));
  CHECK(deleted == 1);
  lode_collection_close(c);
}

TEST(lost_chunks_are_found_and_read_again) {
  scene s = {0};
  indexer_report r;
  indexer_audit audit;
  scene_open(&s, "letters@1/8/static");
  OK(run_index(&s, false, &r));
  lose(&s, "code", "alpha.c#0");
  OK(indexer_audit_run(s.store, false, (lode_progress){0}, &audit, &err));
  CHECK(audit.short_files == 1 && audit.mended == 0);
  OK(indexer_audit_run(s.store, true, (lode_progress){0}, &audit, &err));
  CHECK(audit.mended == 1);
  OK(run_index(&s, false, &r));
  CHECK(r.added == 1);
  expect_first(&s, "open_door", LODE_HYBRID, "alpha.c");
  scene_close(&s);
}

/* A program may drop any collection: whatever is gone, the next run indexes everything again. */
TEST(a_dropped_collection_is_noticed) {
  static const char *const names[] = {INDEXER_COLL_CODE, INDEXER_COLL_FILES, INDEXER_COLL_SYMBOLS};
  scene s = {0};
  indexer_report r;
  indexer_audit audit;
  scene_open(&s, "letters@1/8/static");
  OK(run_index(&s, false, &r));
  for (size_t i = 0; i < 3; i++) {
    OK(lode_collection_drop(s.store, str_of(names[i]), &err));
    OK(run_index(&s, false, &r));
    CHECKF(r.added == 2 && r.files == 2, "%s: %llu added", names[i], (unsigned long long)r.added);
    OK(indexer_audit_run(s.store, false, (lode_progress){0}, &audit, &err));
    CHECK(audit.files == 2 && !audit.short_files && !audit.orphans && !audit.unpaired);
    expect_first(&s, "open_door", LODE_HYBRID, "alpha.c");
  }
  scene_close(&s);
}

/* Chunks that nobody knows of are in the way of a file; the files beside it in the batch, whose bytes are the same,
 * keep theirs. */
TEST(a_file_that_is_swept_takes_no_other_with_it) {
  scene s = {0};
  indexer_report r;
  indexer_audit audit;
  scene_open(&s, "letters@1/8/static");
  OK(run_index(&s, false, &r));
  lose(&s, "files", "alpha.c");
  OK(run_index(&s, false, &r));
  CHECK(r.added == 1 && r.unchanged == 1);
  OK(indexer_audit_run(s.store, false, (lode_progress){0}, &audit, &err));
  CHECKF(audit.files == 2 && !audit.short_files && !audit.orphans, "%llu files, %llu short",
         (unsigned long long)audit.files, (unsigned long long)audit.short_files);
  expect_first(&s, "open_door", LODE_BY_TEXT, "alpha.c");
  expect_first(&s, "shuts the window", LODE_BY_TEXT, "beta.py");
  scene_close(&s);
}

/* ---- Secrets ---- */

#define TOKEN                                                                                                          \
  "gh"                                                                                                                 \
  "p_16C7e42F292c6912E7710c838347Ae178B4a"

static bool holds(scene *s, const char *words) {
  lode_collection_options plain = {0};
  lode_get_request get = {.include = LODE_DOCUMENT};
  lode_collection *code = NULL;
  lode_result *rows = NULL;
  bool found = false;
  OK(lode_collection_open(s->store, S("code"), &plain, &code, &err));
  OK(lode_get(code, &get, &rows, &err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    lode_str d = lode_result_at(rows, i)->document;
    found = found || (d.len && memmem(d.data, d.len, words, strlen(words)));
  }
  lode_result_free(rows);
  lode_collection_close(code);
  return found;
}

static long steps_left;
static bool stop_later(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx, (void)phase, (void)done, (void)total;
  return steps_left-- > 0;
}

/* As if it had been made by a lode that masked nothing: whatever stops the run that looks at all files again, the next
 * one goes on. */
TEST(an_index_with_secrets_in_it_is_repaired_once) {
  scene s = {0};
  indexer_report r;
  long most = 0;
  scene_open(&s, "letters@1/8/static");
  for (int i = 0; i < 4; i++) {
    char name[40], text[200];
    snprintf(name, sizeof name, "secret%d.py", i);
    snprintf(text, sizeof text, "def secret_%d():\n    return \"%s\"\n", i, TOKEN);
    write_in(s.project.root, name, text);
  }
  for (long stop = 0; stop <= most; stop += 3) {
    OK(config_set(&s.project.config, CONFIG_INDEX_SECRETS, S("index"), &err));
    OK(run_index(&s, false, &r));
    CHECK(holds(&s, TOKEN) && r.masked == 0);
    OK(config_set(&s.project.config, CONFIG_INDEX_SECRETS, S("mask"), &err));
    indexer_options options = {.embedder = s.model, .workers = 1, .progress = {stop_later, NULL}};
    indexer_ctx *indexer = NULL;
    steps_left = stop ? stop : 1000000;
    OK(indexer_open(&s.project, s.store, &options, &indexer, &err));
    lode_status st = indexer_run(indexer, NULL, 0, &r, &err);
    indexer_close(indexer);
    if (stop == 0) most = 1000000 - steps_left; /* the steps of a whole run */
    CHECKF(st == LODE_OK || (stop && st == LODE_CANCELLED), "stop %ld: %s", stop, lode_status_name(st));
    OK(run_index(&s, false, &r));
    CHECKF(!holds(&s, TOKEN) && holds(&s, "secret_3") && r.masked == 4, "stop %ld: %llu masked", stop,
           (unsigned long long)r.masked);
    OK(run_index(&s, false, &r));
    CHECKF(r.unchanged == 6 && r.changed == 0 && r.masked == 4, "stop %ld: %llu changed", stop,
           (unsigned long long)r.changed);
  }
  CHECKF(most > 2, "%ld steps", most);
  scene_close(&s);
}

/* ---- A search beside an index run ---- */

static struct {
  scene *other;
  pthread_t thread;
  bool busy, moved;
  unsigned gap;
} beside;

/* The door moves from one file to another in one gap between two transactions of the search. */
static void move_door(void) {
  indexer_report r;
  char path[700];
  if (beside.busy || !pthread_equal(pthread_self(), beside.thread) || beside.gap == 0 || --beside.gap) return;
  beside.busy = true;
  beside.moved = !beside.moved;
  snprintf(path, sizeof path, "%s/%s", beside.other->project.root, beside.moved ? "alpha.c" : "gamma.c");
  CHECK(remove(path) == 0);
  write_in(beside.other->project.root, beside.moved ? "gamma.c" : "alpha.c",
           "int open_door(int key) {\n  return key == 7;\n}\n");
  OK(run_index(beside.other, false, &r));
  beside.busy = false;
}
static const store_tx_hooks moving = {.gap = move_door};

TEST_SLOW(a_search_beside_an_index_run_is_of_one_moment, 120) {
  scene s = {0}, other;
  indexer_report r;
  scene_open(&s, "letters@1/8/static");
  OK(run_index(&s, false, &r));
  other = s;
  char folder[400];
  snprintf(folder, sizeof folder, "%s/.lode", s.project.root);
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &other.store, &err));
  beside.other = &other;
  beside.thread = pthread_self();
  store_tx_test_hooks = &moving;
  for (unsigned gap = 1; gap <= 24; gap++) {
    search_request request = {
        .query = S("open_door"), .mode = gap % 2 ? LODE_BY_TEXT : LODE_HYBRID, .limit = 5, .embedder = s.model};
    search_result result;
    beside.gap = gap;
    OK(search_run(&s.project, s.store, &request, &result, &err));
    size_t doors = 0;
    for (size_t i = 0; i < result.n; i++) {
      const search_hit *hit = &result.hits[i];
      bool door = !str_eq(hit->path, S("beta.py"));
      doors += door;
      CHECKF(!door || (hit->snippet.len && memmem(hit->snippet.data, hit->snippet.len, "open_door", 9)),
             "gap %u: %.*s without its text", gap, (int)hit->path.len, hit->path.data);
    }
    CHECKF(doors == 1, "gap %u: %zu doors", gap, doors);
    search_result_release(&result);
  }
  store_tx_test_hooks = NULL;
  lode_close(other.store);
  scene_close(&s);
}

/* Allocation N fails: an error or a result, never a crash, and afterwards all is well. */
static _Atomic long countdown = -1;
static bool count_down(void) { return countdown < 0 || countdown-- > 0; }

TEST_SLOW(no_allocation_that_fails_does_harm, 120) {
  scene s = {0};
  indexer_report r;
  scene_open(&s, "letters@1/8/static");
  test_srand(test_seed());
  mem_alloc_hook = count_down;
  for (int round = 0; round < (test_full() ? 400 : 40); round++) {
    write_in(s.project.root, "alpha.c",
             round % 2 ? "int open_gate(void) { return 1; }\n" : "int open_door(void) { return 2; }\n");
    countdown = (long)test_below(3000);
    lode_status st = run_index(&s, round % 5 == 4, &r);
    countdown = -1;
    CHECKF(st == LODE_OK || st == LODE_NOMEM || st == LODE_IO || st == LODE_CORRUPT || st == LODE_BUSY,
           "round %d: %s %s", round, lode_status_name(st), err.text);
    static const char *const queries[] = {"open", "\"open_\"", "return [12]", "open_door"};
    search_request request = {.query = S(queries[round % 4]),
                              .mode = LODE_HYBRID,
                              .limit = 5,
                              .context = 2,
                              .embedder = s.model,
                              .regex = round % 4 == 2,
                              .exact = round % 8 == 3};
    search_context_request around = {.name = S("close_window"), .limit = 5};
    search_result result;
    search_context_result context;
    countdown = (long)test_below(1500);
    if (search_run(&s.project, s.store, &request, &result, &err) == LODE_OK) search_result_release(&result);
    countdown = (long)test_below(600);
    if (search_context_find(&s.project, s.store, &around, &context, &err) == LODE_OK)
      search_context_result_release(&context);
    countdown = -1;
  }
  OK(run_index(&s, false, &r));
  expect_first(&s, "close_window", LODE_BY_TEXT, "beta.py");
  mem_alloc_hook = NULL;
  scene_close(&s);
}
