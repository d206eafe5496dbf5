/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - parses a query: words, or a name; see rank.h. */
#include "search/rank.h"

#include "scan/scan.h"

static bool question_is_name_char(unsigned char c) { return c == '$' || search_is_name_byte(c); }
static bool question_is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool question_is_lower(char c) { return c >= 'a' && c <= 'z'; }

/* snake_case, camelCase, HTTPServer, kCamel, mem2reg: not words of a sentence. */
static bool question_looks_coded(lode_str name) {
  for (size_t i = 0; i < name.len; i++) {
    char c = name.data[i];
    if (c == '_' || c == '$') return true;
    if (i && question_is_upper(c) && question_is_lower(name.data[i - 1])) return true;
    if (i && question_is_lower(c) && i > 1 && question_is_upper(name.data[i - 1]) &&
        question_is_upper(name.data[i - 2]))
      return true;
    if (c >= '0' && c <= '9' && i) return true;
  }
  return false;
}

static bool question_add_name(search_question *q, lode_str name) {
  if (q->n_names == sizeof q->names / sizeof *q->names || name.len == 0 || name.len > SEARCH_MAX_NAME) return false;
  for (size_t i = 0; i < q->n_names; i++)
    if (str_eq(q->names[i], name)) return true;
  q->names[q->n_names++] = name;
  return true;
}

/* Collects identifiers. If the query is one name: its parts between joiners. In a sentence: those that look like
 * code, are in `backquotes`, are followed by (, or are capitalised and not first. */
static void question_find_names(search_question *q) {
  const char *p = q->text.data, *end = p + q->text.len;
  while (p < end) {
    while (p < end && !question_is_name_char((unsigned char)*p)) p++;
    const char *start = p;
    while (p < end && question_is_name_char((unsigned char)*p)) p++;
    lode_str name = {start, (size_t)(p - start)};
    bool quoted = start > q->text.data && start[-1] == '`';
    bool called = p < end && *p == '(';
    /* Ruby's and Elixir's fork_worker! and empty? are names; without the sign they are the next best */
    bool marked = q->is_name && name.len && p + 1 == end && (*p == '!' || *p == '?');
    if (marked) (void)question_add_name(q, name);
    if (marked) name.len++;
    if (name.len && (q->is_name || quoted || called || question_looks_coded(name) ||
                     (name.len > 1 && question_is_upper(name.data[0]) && start > q->text.data)))
      (void)question_add_name(q, name);
  }
}

/* No spaces, only name characters and joiners; "foo()" counts, a call with arguments is text. */
static bool question_is_one_name(lode_str text) {
  size_t letters = 0;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (question_is_name_char(c))
      letters++;
    else if (c == '(' && !(i + 2 == text.len && text.data[i + 1] == ')'))
      return false;
    else if (!strchr(".:/-#>&*()?!@", c) || c == 0)
      return false;
  }
  return letters > 0;
}

static lode_str question_trim(lode_str text) {
  while (text.len && (unsigned char)text.data[0] <= ' ') text.data++, text.len--;
  while (text.len && (unsigned char)text.data[text.len - 1] <= ' ') text.len--;
  return text;
}

static bool question_has_any(lode_str text, const char *any) {
  for (size_t i = 0; i < text.len; i++)
    if (text.data[i] && strchr(any, text.data[i])) return true;
  return false;
}

static lode_str question_first_word(lode_str text) {
  size_t n = 0;
  while (n < text.len && (unsigned char)text.data[n] > ' ') n++;
  return (lode_str){text.data, n};
}

static lode_str question_last_word(lode_str text) {
  size_t at = text.len;
  while (at && (unsigned char)text.data[at - 1] > ' ') at--;
  return (lode_str){text.data + at, text.len - at};
}

static bool question_is_kind_word(lode_str word) {
  static const char *const kinds[] = {"class",  "constant",  "constructor", "def",       "definition", "enum",
                                      "fn",     "func",      "function",    "interface", "macro",      "method",
                                      "module", "namespace", "object",      "protocol",  "record",     "struct",
                                      "trait",  "type",      "typedef",     "union",     "variable"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (str_eq(word, str_of(kinds[i]))) return true;
  return false;
}

/* "class Router", "parse_header function", "struct Mux definition" ask for the name. Ordinary words are kept: "type
 * token". */
static lode_str question_drop_kinds(lode_str text) {
  lode_str rest = text;
  while (rest.len && question_is_kind_word(question_first_word(rest)) && question_first_word(rest).len < rest.len)
    rest =
        question_trim((lode_str){rest.data + question_first_word(rest).len, rest.len - question_first_word(rest).len});
  while (rest.len && question_is_kind_word(question_last_word(rest)) && question_last_word(rest).len < rest.len)
    rest = question_trim((lode_str){rest.data, rest.len - question_last_word(rest).len});
  bool named = rest.len && question_is_one_name(rest) &&
               (question_looks_coded(rest) || question_is_upper(rest.data[0]) || question_has_any(rest, ".:#("));
  return named ? rest : text;
}

static bool question_says(const search_words *words, const char *word) {
  search_words other;
  search_words_split(str_of(word), &other);
  for (size_t i = 0; i < words->n; i++)
    if (words->v[i].stem == other.v[0].stem && memcmp(words->v[i].text, other.v[0].text, other.v[0].stem) == 0)
      return true;
  return false;
}

void search_question_parse(lode_str text, search_question *q) {
  search_words all;
  memset(q, 0, sizeof *q);
  q->text = question_drop_kinds(question_trim(text));
  search_phrase_parse(question_trim(text), &q->phrase);
  q->is_name = question_is_one_name(q->text);
  search_words_split(q->text, &all);
  for (size_t i = 0; i < all.n; i++)
    if (!search_word_is_stop(&all.v[i])) q->words.v[q->words.n++] = all.v[i];
  if (q->words.n == 0) q->words = all;
  question_find_names(q);
  q->is_coded = q->is_name && q->n_names && question_looks_coded(q->names[q->n_names - 1]);
  q->is_joined = q->is_name && question_has_any(q->text, "-/");
  q->wants_tests = question_says(&all, "test") || question_says(&all, "tests") || question_says(&all, "spec");
  q->wants_docs = question_says(&all, "documentation") || question_says(&all, "readme") || question_says(&all, "docs");
  q->wants_legacy = question_says(&all, "legacy") || question_says(&all, "deprecated") ||
                    question_says(&all, "compatibility") || question_says(&all, "compat");
  for (size_t i = 0; i < all.n; i++)
    q->wants_other_os = q->wants_other_os || scan_is_other_os((lode_str){all.v[i].text, all.v[i].len});
  q->wants_examples = question_says(&all, "example") || question_says(&all, "demo");
}
