/* SPDX-License-Identifier: Apache-2.0 */
/* search_define.c - definitions that the parser did not see; see search_internal.h.
 *
 * Heads between #ifdefs, attributes that are macros and other things that a grammar cannot know hide the name of a
 * function or a type from the index. For a query that is a name, the text is looked at: NAME (...) {, with nothing but
 * words, macros and types before and after, or struct NAME {. Only in languages with such heads, where a call is not
 * followed by a brace.
 */
#include "search/search_internal.h"

typedef enum define_kind { DEFINE_FUNCTION, DEFINE_UNTYPED, DEFINE_TYPE } define_kind;

/* Without a type before it, a function is a constructor in these. */
static bool define_has_constructors(lode_str language) {
  return str_eq(language, STR_LIT("c++")) || str_eq(language, STR_LIT("c#")) || str_eq(language, STR_LIT("java"));
}

static bool define_is_language(lode_str language) {
  static const char *const known[] = {"c", "c++", "c#", "java", "javascript", "typescript", "tsx", "php"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (str_eq(language, str_of(known[i]))) return true;
  return false;
}

static bool define_is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool define_is_one_of(lode_str word, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (str_eq(word, str_of(list[i]))) return true;
  return false;
}

/* Is what stands before the name on its line nothing but types and qualifiers? They say what it is. */
static bool define_is_prefix(lode_str before, define_kind *kind) {
  static const char *const qualifiers[] = {"explicit",  "inline",  "constexpr", "public",
                                           "protected", "private", "internal"};
  static const char *const statements[] = {"return", "else", "new",   "await", "throw",
                                           "case",   "goto", "yield", "do",    "if"};
  static const char *const types[] = {"struct", "class", "enum", "union", "interface", "namespace"};
  lode_str word = {"", 0};
  bool typed = false;
  for (size_t i = 0; i < before.len;) {
    size_t start = i;
    while (i < before.len && search_is_name_byte((unsigned char)before.data[i])) i++;
    if (i > start) {
      word = (lode_str){before.data + start, i - start};
      if (define_is_one_of(word, statements, sizeof statements / sizeof *statements)) return false;
      typed = typed || !define_is_one_of(word, qualifiers, sizeof qualifiers / sizeof *qualifiers);
    } else if (define_is_space(before.data[i]) || strchr("*&:~<>,[]", before.data[i])) {
      i++;
    } else {
      return false;
    }
  }
  bool scoped = before.len && strchr(":~", before.data[before.len - 1]); /* Foo::Foo, ~Foo */
  *kind = define_is_one_of(word, types, sizeof types / sizeof *types) ? DEFINE_TYPE
          : typed && !scoped                                          ? DEFINE_FUNCTION
                                                                      : DEFINE_UNTYPED;
  return true;
}

/* The end of what is between parentheses that open at `at`; 0 if they do not close. */
static size_t define_skip_parens(lode_str text, size_t at) {
  size_t depth = 0;
  for (size_t i = at; i < text.len && i - at < SEARCH_DEFINE_HEAD; i++) {
    depth += text.data[i] == '(';
    if (text.data[i] == ')' && --depth == 0) return i + 1;
    if (text.data[i] == ';' || text.data[i] == '{') return 0;
  }
  return 0;
}

/* Does a body begin at `at`, after nothing but words, types and macros with their arguments? */
static bool define_has_body(lode_str text, size_t at) {
  for (size_t i = at, end = at + SEARCH_DEFINE_HEAD; i < text.len && i < end;) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '{') return true;
    if (c == '(') {
      i = define_skip_parens(text, i);
      if (!i) return false;
    } else if (search_is_name_byte(c) || define_is_space(text.data[i]) || strchr(":<>,*&[]|?", text.data[i])) {
      i++;
    } else {
      return false;
    }
  }
  return false;
}

/* Is the name at `at` the head of a definition? */
static bool define_is_head(lode_str text, size_t at, lode_str name, define_kind *kind) {
  size_t line = at, after = at + name.len;
  while (line > 0 && text.data[line - 1] != '\n') line--;
  if (!define_is_prefix((lode_str){text.data + line, at - line}, kind)) return false;
  if (*kind == DEFINE_TYPE) return define_has_body(text, after);
  while (after < text.len && define_is_space(text.data[after])) after++;
  if (after >= text.len || text.data[after] != '(') return false;
  after = define_skip_parens(text, after);
  return after && define_has_body(text, after);
}

bool search_find_definition(const rank_candidate *c, lode_str name, indexer_def *def) {
  lode_str text = c->text;
  if (!name.len || !define_is_language(c->language)) return false;
  for (size_t at = 0; at + name.len <= text.len; at += name.len) {
    const char *found = memmem(text.data + at, text.len - at, name.data, name.len);
    if (!found) return false;
    at = (size_t)(found - text.data);
    size_t end = at + name.len;
    define_kind kind = DEFINE_FUNCTION;
    bool whole = (at == 0 || !search_is_name_byte((unsigned char)text.data[at - 1])) &&
                 (end == text.len || !search_is_name_byte((unsigned char)text.data[end]));
    if (!whole || !define_is_head(text, at, name, &kind)) continue;
    uint32_t line = c->first;
    for (size_t i = 0; i < at; i++) line += text.data[i] == '\n';
    bool constructor = kind == DEFINE_UNTYPED && define_has_constructors(c->language);
    *def = (indexer_def){.name = name,
                         .kind = kind == DEFINE_TYPE ? STR_LIT("struct")
                                 : constructor       ? STR_LIT("constructor")
                                                     : STR_LIT("function"),
                         .line = line};
    return true;
  }
  return false;
}
