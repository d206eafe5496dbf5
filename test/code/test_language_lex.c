/* SPDX-License-Identifier: Apache-2.0 */
/* test_language_lex.c - code as tokens: each family of languages, pieces of files, and any bytes. */
#include "scan/language_lex.h"
#include "support/test.h"

/* A letter for each byte: c comment, s string, n number, w word, . name, space for the rest. */
static const char *lexed(const char *language, const char *text) {
  static char out[400];
  lode_str rest = str_of(text);
  lang_lexer lexer;
  size_t n = 0;
  const char *newline = strchr(text, '\n');
  lang_lexer_begin(&lexer, str_of(language), (lode_str){text, newline ? (size_t)(newline - text) : rest.len});
  while (rest.len) {
    newline = memchr(rest.data, '\n', rest.len);
    lode_str line = {rest.data, newline ? (size_t)(newline - rest.data) : rest.len};
    for (size_t at = 0, start; at < line.len;) {
      start = at;
      char letter = " csnw."[lang_lexer_next(&lexer, line, &at)];
      CHECK(at > start && at <= line.len);
      while (start++ < at && n < sizeof out - 2) out[n++] = letter;
    }
    lang_lexer_end_line(&lexer);
    rest = (lode_str){line.data + line.len + (newline ? 1 : 0), rest.len - line.len - (newline ? 1 : 0)};
    if (newline) out[n++] = '\n';
  }
  out[n] = '\0';
  return out;
}
static void is(const char *language, const char *text, const char *want) {
  const char *got = lexed(language, text);
  CHECKF(strcmp(got, want) == 0, "%s\n%s\n%s\nwanted\n%s", language, text, got, want);
}

TEST(families) {
  is("c", "int x = 10; // ten", "www .   nn  cccccc");
  is("c", "a /* b\nc */ d", ". cccc\ncccc .");
  is("c", "s = \"a\\\"b\" + 'c';", ".   ssssss   sss ");
  is("python", "def f(): # x\n  \"\"\"doc\n  more\"\"\" + 1.5", "www .    ccc\n  ssssss\nsssssssss   nnn");
  is("rust", "fn f<'a>(c: char) { 'x' }", "ww .  .  .  wwww    sss  ");
  is("sql", "x -- y", ". cccc");
  is("lua", "--[[ a\nb ]] c", "cccccc\ncccc .");
  is("html", "a <!-- b --> c", ". cccccccccc .");
  is("javascript", "`a\nb` + c", "ss\nss   .");
  is("c", "use.end = x->type; new", "... ...   .  ....  ...");
  is("rust", "use x.end", "www . ...");
  is("markdown", "don't // if", "           ");
}

TEST(pieces_of_files) {
  is("c", " * inside of a comment\n */\nint x;", "cccccccccccccccccccccc\nccc\nwww . ");
  is("c", "* 2", "ccc");                                  /* could be either: comments are more frequent */
  is("c", "\"not closed\nint x;", "sssssssssss\nwww . "); /* goes no further than its line */
  is("python", "x = 'it", ".   sss");
}

TEST(any_bytes) {
  static const char *const names[] = {"c",    "python", "rust", "sql",           "lua",
                                      "html", "ocaml",  "json", "nothing known", ""};
  static const char letters[] = "\"'`/*-#[]<!>\\ab1._$ \xc3";
  test_srand(test_seed());
  for (int round = 0; round < 5000; round++) {
    char text[120];
    size_t n = (size_t)test_below(sizeof text - 1);
    for (size_t i = 0; i < n; i++) text[i] = letters[test_below(sizeof letters - 1)];
    text[n] = '\0';
    (void)lexed(names[test_below(sizeof names / sizeof *names)], text); /* checks that each token moves on */
  }
}
