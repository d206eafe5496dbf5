/* SPDX-License-Identifier: Apache-2.0 */
/* language_lex.c - see language_lex.h. */
#include "scan/language_lex.h"

/* Of all languages together: few of them are names in another one. */
static const char *const lex_words[] = {
    "False",     "None",      "True",     "abstract",  "and",        "as",       "async",   "await",   "auto",
    "bool",      "boolean",   "break",    "byte",      "case",       "catch",    "char",    "class",   "const",
    "constexpr", "continue",  "def",      "default",   "defer",      "del",      "delete",  "do",      "double",
    "elif",      "else",      "end",      "enum",      "except",     "export",   "extends", "extern",  "false",
    "final",     "finally",   "float",    "fn",        "for",        "foreach",  "from",    "func",    "function",
    "go",        "goto",      "if",       "impl",      "implements", "import",   "in",      "inline",  "instanceof",
    "int",       "interface", "is",       "lambda",    "let",        "local",    "long",    "loop",    "match",
    "mod",       "module",    "mut",      "namespace", "new",        "nil",      "none",    "not",     "null",
    "nullptr",   "of",        "operator", "or",        "override",   "package",  "pass",    "private", "protected",
    "pub",       "public",    "raise",    "return",    "self",       "short",    "signed",  "sizeof",  "static",
    "string",    "struct",    "super",    "switch",    "template",   "then",     "this",    "throw",   "throws",
    "trait",     "true",      "try",      "type",      "typedef",    "typename", "typeof",  "union",   "unless",
    "unsafe",    "unsigned",  "use",      "using",     "val",        "var",      "virtual", "void",    "volatile",
    "when",      "where",     "while",    "with",      "yield",
};

static bool lex_is_in(const char *list, lode_str name) {
  for (const char *at = list; *at;) {
    size_t len = strcspn(at, " ");
    if (len == name.len && memcmp(at, name.data, len) == 0) return true;
    at += len + (at[len] == ' ');
  }
  return false;
}

/* Words of others that are names in C */
static const char lex_names_in_c[] =
    "False None True abstract and as async await boolean byte catch class constexpr def defer del delete elif end "
    "except export extends final finally fn foreach from func function go impl implements import in instanceof "
    "interface is lambda let local loop match mod module mut namespace new nil none not null of operator or override "
    "package pass private protected pub public raise self string super template then this throw throws trait try type "
    "typename unless unsafe use using val var virtual when where with yield";

/* A member is a name, whatever it is called. */
static bool lex_is_member(lode_str line, size_t at) {
  return at > 0 && (line.data[at - 1] == '.' || (at > 1 && line.data[at - 1] == '>' && line.data[at - 2] == '-'));
}

static bool lex_is_word(const lang_lexer *x, lode_str text) {
  if (x->c && lex_is_in(lex_names_in_c, text)) return false;
  for (size_t i = 0; i < sizeof lex_words / sizeof *lex_words; i++)
    if (str_eq(text, str_of(lex_words[i]))) return true;
  return false;
}

static bool lex_starts(lode_str line, size_t at, const char *with) {
  size_t len = with ? strlen(with) : 0;
  return len && line.len - at >= len && memcmp(line.data + at, with, len) == 0;
}

static bool lex_is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         (unsigned char)c >= 0x80;
}

void lang_lexer_begin(lang_lexer *x, lode_str language, lode_str first) {
  *x = (lang_lexer){.line_comment = "//", .open = "/*", .close = "*/"};
  x->c = str_eq(language, STR_LIT("c"));
  x->prose = lex_is_in("text markdown rst", language);
  x->triple = lex_is_in("python elixir swift scala toml julia", language);
  x->characters = lex_is_in("rust haskell ocaml lisp clojure", language);
  if (lex_is_in("python ruby shell perl yaml toml make r elixir powershell julia nix dockerfile cmake ini", language)) {
    x->line_comment = "#";
    x->open = NULL;
  } else if (lex_is_in("sql lua haskell ada elm", language)) {
    x->line_comment = "--";
    if (str_eq(language, STR_LIT("lua"))) {
      x->open = "--[[";
      x->close = "]]";
    }
  } else if (lex_is_in("html svelte vue xml", language)) {
    x->line_comment = NULL;
    x->open = "<!--";
    x->close = "-->";
  } else if (str_eq(language, STR_LIT("ocaml"))) {
    x->line_comment = NULL;
    x->open = "(*";
    x->close = "*)";
  } else if (lex_is_in("css json", language)) {
    x->line_comment = NULL;
  }
  size_t at = 0;
  while (at < first.len && (first.data[at] == ' ' || first.data[at] == '\t')) at++;
  /* " * goes on": the middle of a block comment, as C and its relatives write them */
  if (x->open && x->open[0] == '/' && (lex_starts(first, at, "* ") || lex_starts(first, at, "*/"))) {
    x->until = x->close;
    x->inside = LANG_TOKEN_COMMENT;
  }
}

/* The rest of what spans pieces: to its end, or that of the line. */
static lang_token lex_inside(lang_lexer *x, lode_str line, size_t *at) {
  size_t i = *at;
  while (i < line.len && !lex_starts(line, i, x->until))
    i += line.data[i] == '\\' && x->inside != LANG_TOKEN_COMMENT ? 2 : 1;
  if (i < line.len) {
    i += strlen(x->until);
    x->until = NULL;
  }
  *at = i < line.len ? i : line.len;
  return x->inside;
}

static lang_token lex_enter(lang_lexer *x, lode_str line, size_t *at, lang_token inside, size_t mark,
                            const char *until) {
  x->inside = inside;
  x->until = until;
  *at += mark;
  return *at < line.len ? lex_inside(x, line, at) : inside;
}

/* 'x' and '\n', but not the 'a of a lifetime. */
static bool lex_is_character(lode_str line, size_t at) {
  return at + 2 < line.len && (line.data[at + 1] == '\\' || line.data[at + 2] == '\'');
}

lang_token lang_lexer_next(lang_lexer *x, lode_str line, size_t *at) {
  static const char *const quotes[] = {"\"\"\"", "'''", "\"", "`", "'"};
  size_t i = *at;
  if (x->prose) {
    *at = line.len;
    return LANG_TOKEN_PLAIN;
  }
  if (x->until) return lex_inside(x, line, at);
  if (lex_starts(line, i, x->open)) return lex_enter(x, line, at, LANG_TOKEN_COMMENT, strlen(x->open), x->close);
  if (lex_starts(line, i, x->line_comment)) {
    *at = line.len;
    return LANG_TOKEN_COMMENT;
  }
  for (size_t q = x->triple ? 0 : 2; q < sizeof quotes / sizeof *quotes; q++) {
    if (!lex_starts(line, i, quotes[q])) continue;
    if (*quotes[q] == '\'' && x->characters && !lex_is_character(line, i)) break;
    return lex_enter(x, line, at, LANG_TOKEN_STRING, strlen(quotes[q]), quotes[q]);
  }
  if (!lex_is_name_byte(line.data[i])) {
    *at = i + 1;
    return LANG_TOKEN_PLAIN;
  }
  bool digit = line.data[i] >= '0' && line.data[i] <= '9';
  while (i < line.len && (lex_is_name_byte(line.data[i]) || (digit && line.data[i] == '.'))) i++;
  lode_str text = {line.data + *at, i - *at};
  bool member = lex_is_member(line, *at);
  *at = i;
  return digit ? LANG_TOKEN_NUMBER : !member && lex_is_word(x, text) ? LANG_TOKEN_WORD : LANG_TOKEN_NAME;
}

void lang_lexer_end_line(lang_lexer *x) {
  bool spans = x->until && (x->inside == LANG_TOKEN_COMMENT || strlen(x->until) == 3 || *x->until == '`');
  if (!spans) x->until = NULL;
}
