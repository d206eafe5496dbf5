/* question.c - what a query is: words, or a name. See rank.h. */
#include "rank.h"

#include "code/walk.h"

enum { MOST_NAME_BYTES = 128 };

static bool is_name_char(unsigned char c) { return c == '$' || lode__is_name_byte(c); }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/* snake_case, camelCase, HTTPServer, kCamel, mem2reg: what nobody writes in a sentence. */
static bool looks_coded(lode_str name) {
  for (size_t i = 0; i < name.len; i++) {
    char c = name.data[i];
    if (c == '_' || c == '$') return true;
    if (i && is_upper(c) && is_lower(name.data[i - 1])) return true;
    if (i && is_lower(c) && i > 1 && is_upper(name.data[i - 1]) && is_upper(name.data[i - 2])) return true;
    if (c >= '0' && c <= '9' && i) return true;
  }
  return false;
}

static bool add_name(lode__question *q, lode_str name) {
  if (q->n_names == sizeof q->names / sizeof *q->names || name.len == 0 || name.len > MOST_NAME_BYTES) return false;
  for (size_t i = 0; i < q->n_names; i++)
    if (str_eq(q->names[i], name)) return true;
  q->names[q->n_names++] = name;
  return true;
}

/* Identifiers: of a query that is one name, its parts at joiners; of a sentence, those that look coded, stand in `quotes` or with (). */
static void find_names(lode__question *q) {
  const char *p = q->text.data, *end = p + q->text.len;
  while (p < end) {
    while (p < end && !is_name_char((unsigned char)*p)) p++;
    const char *start = p;
    while (p < end && is_name_char((unsigned char)*p)) p++;
    lode_str name = {start, (size_t)(p - start)};
    bool quoted = start > q->text.data && start[-1] == '`';
    bool called = p < end && *p == '(';
    if (name.len && (q->is_name || quoted || called || looks_coded(name) || (name.len > 1 && is_upper(name.data[0]) && start > q->text.data)))
      (void)add_name(q, name);
  }
}

/* No spaces, and nothing but name characters and joiners; "foo()" counts. */
static bool is_one_name(lode_str text) {
  size_t letters = 0;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (is_name_char(c)) letters++;
    else if (!strchr(".:/-#>&*()?!@", c) || c == 0) return false;
  }
  return letters > 0;
}

static lode_str trim(lode_str text) {
  while (text.len && (unsigned char)text.data[0] <= ' ') text.data++, text.len--;
  while (text.len && (unsigned char)text.data[text.len - 1] <= ' ') text.len--;
  return text;
}

static bool has_any(lode_str text, const char *any) {
  for (size_t i = 0; i < text.len; i++)
    if (text.data[i] && strchr(any, text.data[i])) return true;
  return false;
}

static lode_str first_word(lode_str text) {
  size_t n = 0;
  while (n < text.len && (unsigned char)text.data[n] > ' ') n++;
  return (lode_str){text.data, n};
}

static lode_str last_word(lode_str text) {
  size_t at = text.len;
  while (at && (unsigned char)text.data[at - 1] > ' ') at--;
  return (lode_str){text.data + at, text.len - at};
}

static bool is_kind_word(lode_str word) {
  static const char *const kinds[] = {"class", "constant", "constructor", "def", "definition", "enum", "fn", "func", "function", "interface", "macro", "method",
                                      "module", "namespace", "object", "protocol", "record", "struct", "trait", "type", "typedef", "union", "variable"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (str_eq(word, str_of(kinds[i]))) return true;
  return false;
}

/* "class Router", "parse_header function", "struct Mux definition" ask for the name. Plain words stay: "type token", "module". */
static lode_str without_kinds(lode_str text) {
  lode_str rest = text;
  while (rest.len && is_kind_word(first_word(rest)) && first_word(rest).len < rest.len)
    rest = trim((lode_str){rest.data + first_word(rest).len, rest.len - first_word(rest).len});
  while (rest.len && is_kind_word(last_word(rest)) && last_word(rest).len < rest.len) rest = trim((lode_str){rest.data, rest.len - last_word(rest).len});
  bool named = rest.len && is_one_name(rest) && (looks_coded(rest) || is_upper(rest.data[0]) || has_any(rest, ".:#("));
  return named ? rest : text;
}

static bool says(const lode__words *words, const char *word) {
  lode__words other;
  lode__words_of(str_of(word), &other);
  for (size_t i = 0; i < words->n; i++)
    if (words->v[i].stem == other.v[0].stem && memcmp(words->v[i].text, other.v[0].text, other.v[0].stem) == 0) return true;
  return false;
}

void lode__question_read(lode_str text, lode__question *q) {
  lode__words all;
  memset(q, 0, sizeof *q);
  q->text = without_kinds(trim(text));
  q->is_name = is_one_name(q->text);
  lode__words_of(q->text, &all);
  for (size_t i = 0; i < all.n; i++)
    if (!lode__word_is_stop(&all.v[i])) q->words.v[q->words.n++] = all.v[i];
  if (q->words.n == 0) q->words = all;
  find_names(q);
  q->wants_tests = says(&all, "test") || says(&all, "tests") || says(&all, "spec");
  q->wants_docs = says(&all, "documentation") || says(&all, "readme") || says(&all, "docs");
  q->wants_old = says(&all, "legacy") || says(&all, "deprecated") || says(&all, "compatibility") || says(&all, "compat");
  for (size_t i = 0; i < all.n; i++) q->wants_foreign = q->wants_foreign || lode__is_foreign((lode_str){all.v[i].text, all.v[i].len});
  q->wants_examples = says(&all, "example") || says(&all, "demo");
}
