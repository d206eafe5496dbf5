/* SPDX-License-Identifier: Apache-2.0 */
/* tree_texts.c - what the texts of types, values, callees and imports say; see tree_refs.h. These are short, and
 * regular enough across languages that reading their text is simpler than following each grammar's nodes. */
#include "parser/tree_refs.h"

#include <ctype.h>

enum { TEXTS_MAX_IMPORT = 8192, TEXTS_MAX_NESTING = 16 };

bool parser_is_word_char(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static lode_str texts_trim(lode_str s) {
  while (s.len && isspace((unsigned char)s.data[0])) s.data++, s.len--;
  while (s.len && isspace((unsigned char)s.data[s.len - 1])) s.len--;
  return s;
}

static lode_str texts_skip(lode_str s, size_t n) { return (lode_str){s.data + n, s.len - n}; }

static size_t texts_word(lode_str s) {
  size_t n = 0;
  while (n < s.len && parser_is_word_char(s.data[n])) n++;
  return n;
}

static bool texts_starts(lode_str s, const char *word) {
  size_t n = strlen(word);
  return s.len >= n && memcmp(s.data, word, n) == 0;
}

/* Takes a word that is followed by something else than a word. */
static bool texts_take_word(lode_str *s, const char *word) {
  lode_str t = texts_trim(*s);
  size_t n = strlen(word);
  if (!texts_starts(t, word) || (t.len > n && parser_is_word_char(t.data[n]))) return false;
  *s = texts_trim(texts_skip(t, n));
  return true;
}

/* The separator of a path at the start of the text: "." "::" "->" "\" "?."; 0: none. */
static size_t texts_separator(lode_str s) {
  if (texts_starts(s, "::") || texts_starts(s, "->") || texts_starts(s, "?.")) return 2;
  if (texts_starts(s, "?->") || texts_starts(s, "!!.")) return 3;
  return s.len && (s.data[0] == '.' || s.data[0] == '\\') ? 1 : 0;
}

/* Takes a.b::c; *last is its last part, *before the part before that. */
static bool texts_take_path(lode_str *s, lode_str *before, lode_str *last) {
  size_t n = texts_word(*s);
  *before = *last = STR_LIT("");
  while (n) {
    *before = *last;
    *last = (lode_str){s->data, n};
    *s = texts_skip(*s, n);
    size_t sep = texts_separator(*s);
    if (!sep) break;
    n = texts_word(texts_skip(*s, sep));
    if (n) *s = texts_skip(*s, sep);
  }
  return last->len > 0;
}

static bool texts_in(lode_str word, const char *const *list) {
  for (size_t i = 0; list[i]; i++)
    if (str_eq(word, str_of(list[i]))) return true;
  return false;
}

lode_str parser_type_name(lode_str s) {
  static const char *const marks[] = {"const", "struct", "class",  "enum",     "union",    "mut",      "ref",
                                      "dyn",   "impl",   "final",  "readonly", "typename", "volatile", "static",
                                      "in",    "out",    "params", "register", "restrict", NULL};
  static const char *const wrappers[] = {"Arc",      "Rc",  "Box",  "unique_ptr", "shared_ptr",
                                         "Optional", "Ref", "Type", NULL};
  static const char *const nothing[] = {"auto", "var", "val", "let", "map", "chan", "func", "fn", "any", "void", NULL};
  lode_str before, last;
  for (int i = 0; i < 8; i++) {
    while (s.len && !parser_is_word_char(s.data[0])) {
      if (s.data[0] == '[' || s.data[0] == '(') return STR_LIT("");
      s = texts_skip(s, 1);
    }
    if (!texts_take_path(&s, &before, &last)) return STR_LIT("");
    if (last.data[0] == '\'' || texts_in(last, nothing)) return STR_LIT("");
    bool wraps = texts_in(last, wrappers) && s.len && (s.data[0] == '<' || s.data[0] == '[');
    if (!wraps && !texts_in(last, marks)) return isdigit((unsigned char)last.data[0]) ? STR_LIT("") : last;
    if (wraps) s = texts_skip(s, 1);
  }
  return STR_LIT("");
}

lode_str parser_value_type(lode_str s) {
  lode_str before, last;
  bool is_new = false;
  for (int i = 0; i < 4; i++) {
    if (texts_take_word(&s, "new"))
      is_new = true;
    else if (!texts_take_word(&s, "await") && !texts_take_word(&s, "mut") && s.len && strchr("&*(", s.data[0]))
      s = texts_skip(s, 1);
  }
  if (!texts_take_path(&s, &before, &last)) return STR_LIT("");
  bool upper = isupper((unsigned char)last.data[0]) != 0, called = s.len && s.data[0] == '(';
  if (is_new) return last;
  if (before.len && isupper((unsigned char)before.data[0]) && called && !upper) return before;
  if (upper && texts_starts(last, "New") && last.len > 3 && isupper((unsigned char)last.data[3])) return STR_LIT("");
  return upper && s.len && strchr("({<", s.data[0]) ? last : STR_LIT("");
}

lode_str parser_called_name(lode_str s) {
  size_t depth = 0, n = 0;
  s = texts_trim(s);
  while (s.len && s.data[s.len - 1] == '?') s.len--; /* of Rust: the value, or return */
  if (!s.len || s.data[s.len - 1] != ')' || s.len > 2000) return STR_LIT("");
  for (size_t i = s.len; i-- > 0;) {
    depth += s.data[i] == ')';
    if (s.data[i] == '(' && --depth == 0) {
      s.len = i;
      break;
    }
  }
  while (n < s.len && parser_is_word_char(s.data[s.len - n - 1])) n++;
  return (lode_str){s.data + s.len - n, n};
}

/* Without type arguments at its end: f::<T>, f<T>. */
static lode_str texts_without_arguments(lode_str s) {
  if (!s.len || s.data[s.len - 1] != '>' || texts_starts(s, "operator")) return s;
  size_t depth = 0;
  for (size_t i = s.len; i-- > 0;) {
    depth += s.data[i] == '>' && !(i && s.data[i - 1] == '-');
    if (s.data[i] == '<' && --depth == 0) {
      s.len = i;
      break;
    }
  }
  if (s.len > 2 && s.data[s.len - 1] == ':' && s.data[s.len - 2] == ':') s.len -= 2;
  return s;
}

bool parser_split_callee(lode_str text, lode_str *owner, lode_str *name) {
  lode_str s = texts_without_arguments(texts_trim(text));
  size_t n = 0;
  while (n < s.len && parser_is_word_char(s.data[s.len - n - 1])) n++;
  if (!n || isdigit((unsigned char)s.data[s.len - n])) return false;
  *name = (lode_str){s.data + s.len - n, n};
  s = texts_trim((lode_str){s.data, s.len - n});
  static const char *const separators[] = {"?->", "!!.", "::", "->", "?.", ".", "\\"};
  for (size_t i = 0; s.len && i < sizeof separators / sizeof *separators; i++) {
    size_t m = strlen(separators[i]);
    if (s.len < m || memcmp(s.data + s.len - m, separators[i], m) != 0) continue;
    *owner = texts_trim((lode_str){s.data, s.len - m});
    return true;
  }
  *owner = (lode_str){s.data, 0};
  return s.len == 0;
}

/* ---- Imports ---- */

typedef struct texts_imports {
  parser_refs *refs;
  uint32_t line;
} texts_imports;

static void texts_add(texts_imports *x, lode_str module, lode_str name, lode_str local) {
  if (module.len > CHUNK_MAX_QUALIFIER || name.len > 200 || local.len > 200 || (!module.len && !name.len)) return;
  chunk_ref_group use = {.use = CHUNK_USE_IMPORT, .name = name, .qualifier = module, .local = local};
  parser_refs_add(x->refs, &use, x->line);
}

/* The text up to `stop`, which is taken too. */
static lode_str texts_until(lode_str *s, char stop) {
  const char *end = s->len ? memchr(s->data, stop, s->len) : NULL;
  lode_str part = {s->data, end ? (size_t)(end - s->data) : s->len};
  *s = texts_skip(*s, part.len + (end != NULL));
  return texts_trim(part);
}

/* "x as y", "x: y": what and its name here. */
static void texts_split_alias(lode_str part, lode_str *what, lode_str *local) {
  *what = part;
  *local = STR_LIT("");
  for (size_t i = 1; i + 4 <= part.len; i++)
    if (isspace((unsigned char)part.data[i]) && memcmp(part.data + i + 1, "as", 2) == 0 &&
        isspace((unsigned char)part.data[i + 3])) {
      *what = texts_trim((lode_str){part.data, i});
      *local = texts_trim(texts_skip(part, i + 4));
      return;
    }
}

static lode_str texts_last_part(lode_str path, lode_str *rest) {
  size_t n = path.len;
  while (n && parser_is_word_char(path.data[n - 1])) n--;
  size_t before = n;
  while (before && !parser_is_word_char(path.data[before - 1])) before--;
  *rest = (lode_str){path.data, before};
  return (lode_str){path.data + n, path.len - n};
}

static lode_str texts_first_part(lode_str path) { return (lode_str){path.data, texts_word(path)}; }

static void texts_python(texts_imports *x, lode_str s) {
  lode_str what, local;
  if (texts_take_word(&s, "from")) {
    size_t n = 0;
    while (n < s.len && !isspace((unsigned char)s.data[n])) n++;
    lode_str module = {s.data, n};
    s = texts_skip(s, n);
    if (!texts_take_word(&s, "import")) return;
    while (s.len) {
      lode_str part = texts_until(&s, ',');
      while (part.len && (part.data[0] == '(' || part.data[0] == '\\')) part = texts_trim(texts_skip(part, 1));
      while (part.len && (part.data[part.len - 1] == ')')) part = texts_trim((lode_str){part.data, part.len - 1});
      texts_split_alias(part, &what, &local);
      if (what.len) texts_add(x, module, what, local.len ? local : what);
    }
    return;
  }
  if (!texts_take_word(&s, "import")) return;
  while (s.len) {
    texts_split_alias(texts_until(&s, ','), &what, &local);
    texts_add(x, what, STR_LIT(""), local.len ? local : texts_first_part(what));
  }
}

/* The text between the last pair of quotes. */
static lode_str texts_quoted(lode_str s) {
  size_t end = s.len;
  while (end && !strchr("\"'`", s.data[end - 1])) end--;
  if (!end) return STR_LIT("");
  size_t start = end - 1;
  while (start && s.data[start - 1] != s.data[end - 1]) start--;
  return start ? (lode_str){s.data + start, end - 1 - start} : STR_LIT("");
}

static void texts_js(texts_imports *x, lode_str s) {
  lode_str module = texts_quoted(s), what, local;
  bool is_export = texts_take_word(&s, "export");
  if (!is_export) (void)texts_take_word(&s, "import");
  (void)texts_take_word(&s, "type");
  if (!module.len) return;
  s.len = (size_t)(module.data - 1 - s.data);
  bool any = false, inside = false;
  while (s.len) {
    lode_str part = texts_until(&s, ',');
    const char *open = part.len ? memchr(part.data, '{', part.len) : NULL;
    if (open) part = texts_skip(part, (size_t)(open - part.data) + 1), inside = true;
    const char *close = part.len ? memchr(part.data, '}', part.len) : NULL;
    lode_str item = close ? (lode_str){part.data, (size_t)(close - part.data)} : part;
    item = texts_trim(item);
    (void)texts_take_word(&item, "type");
    texts_split_alias(item, &what, &local);
    if (texts_starts(what, "*"))
      texts_add(x, module, STR_LIT("*"), texts_first_part(local)), any = true;
    else if (what.len && texts_word(what)) {
      what.len = texts_word(what);
      texts_add(x, module, inside ? what : STR_LIT("default"), is_export ? STR_LIT("") : local.len ? local : what);
      any = true;
    }
    if (close) inside = false;
  }
  if (!any) texts_add(x, module, STR_LIT(""), STR_LIT(""));
}

static void texts_go(texts_imports *x, lode_str s) {
  lode_str module = texts_quoted(s), rest;
  size_t n = texts_word(s);
  lode_str local = n || (s.len && s.data[0] == '.') ? (lode_str){s.data, n ? n : 1} : texts_last_part(module, &rest);
  /* the package of a/b/v2 is b, as a rule */
  if (local.len >= 2 && local.data[0] == 'v' && isdigit((unsigned char)local.data[1]) && !n)
    local = texts_last_part(rest, &rest);
  if (module.len) texts_add(x, module, STR_LIT(""), local);
}

static void texts_dots(texts_imports *x, lode_str s) {
  static const char *const words[] = {"import", "using", "use", "global", "static", "function", "const", NULL};
  for (size_t i = 0; words[i]; i++) (void)texts_take_word(&s, words[i]);
  while (s.len && strchr("; \n\r", s.data[s.len - 1])) s.len--;
  lode_str what, local, module;
  const char *equals = s.len ? memchr(s.data, '=', s.len) : NULL;
  texts_split_alias(s, &what, &local);
  if (equals) { /* using C = D.E */
    local = texts_trim((lode_str){s.data, (size_t)(equals - s.data)});
    what = texts_trim(texts_skip(s, (size_t)(equals - s.data) + 1));
  }
  if (what.len > 2 && (what.data[what.len - 1] == '*' || what.data[what.len - 1] == '_')) {
    texts_add(x, (lode_str){what.data, what.len - 2}, STR_LIT("*"), STR_LIT(""));
    return;
  }
  lode_str name = texts_last_part(what, &module);
  if (name.len) texts_add(x, module, name, local.len ? local : name);
}

/* use a::b::{c, d::{e as f}, *}: a stack of prefixes, for braces in braces. */
static void texts_rust(texts_imports *x, lode_str s) {
  lode_str prefix[TEXTS_MAX_NESTING] = {{"", 0}};
  size_t depth = 0;
  char joined[CHUNK_MAX_QUALIFIER + 1];
  if (texts_take_word(&s, "pub") && s.len && s.data[0] == '(') (void)texts_until(&s, ')');
  (void)texts_take_word(&s, "use");
  while (s.len) {
    size_t n = 0;
    while (n < s.len && !memchr("{},;", s.data[n], 4)) n++;
    lode_str item = texts_trim((lode_str){s.data, n}), what, local, module, path;
    char end = n < s.len ? s.data[n] : ';';
    s = texts_skip(s, n + (n < s.len));
    texts_split_alias(item, &what, &local);
    lode_str up = prefix[depth];
    int len = snprintf(joined, sizeof joined, "%.*s%s%.*s", (int)up.len, up.data, up.len && what.len ? "::" : "",
                       (int)what.len, what.data);
    if (len < 0 || len >= (int)sizeof joined) return;
    char *copy = mem_arena_copy(&x->refs->strings, joined, (size_t)len);
    if (!copy) return;
    path = (lode_str){copy, (size_t)len};
    if (end == '{') {
      while (path.len && path.data[path.len - 1] == ':') path.len--;
      if (depth + 1 >= TEXTS_MAX_NESTING) return;
      prefix[++depth] = path;
      continue;
    }
    if (what.len && what.data[what.len - 1] == '*') {
      path.len -= path.len >= 3 ? 3 : path.len;
      texts_add(x, path, STR_LIT("*"), STR_LIT(""));
    } else if (what.len) {
      lode_str name = texts_last_part(path, &module);
      texts_add(x, module, name, local.len ? local : name);
    }
    if (end == '}' && depth) depth--;
    if (end == ';') return;
  }
}

void parser_add_imports(parser_refs *refs, lang_import how, lode_str text, uint32_t line) {
  texts_imports x = {refs, line};
  lode_str s = texts_trim(text);
  if (s.len > TEXTS_MAX_IMPORT) s.len = TEXTS_MAX_IMPORT;
  switch (how) {
    case LANG_IMPORT_C: {
      const char *open = s.len ? memchr(s.data, '<', s.len) : NULL;
      lode_str module = open ? texts_skip(s, (size_t)(open - s.data) + 1) : texts_quoted(s);
      if (open) module = texts_until(&module, '>');
      texts_add(&x, module, STR_LIT(""), STR_LIT(""));
      break;
    }
    case LANG_IMPORT_PYTHON: texts_python(&x, s); break;
    case LANG_IMPORT_JS: texts_js(&x, s); break;
    case LANG_IMPORT_GO: texts_go(&x, s); break;
    case LANG_IMPORT_DOTS: texts_dots(&x, s); break;
    case LANG_IMPORT_RUST: texts_rust(&x, s); break;
    case LANG_IMPORT_NONE: break;
  }
}
