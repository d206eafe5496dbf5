/* SPDX-License-Identifier: Apache-2.0 */
/* mine.c - pairs of (description, code) from a tar stream of source files.
 *
 *   dpkg-deb --fsys-tarfile X.deb | mine PACKAGE >>pairs.tsv
 *
 * A pair is a comment and the definition that it stands at, a docstring and its function, a file's opening comment and
 * the file, a heading of a manual and its section. No parser: a comment is found by how its line begins, the end of a
 * definition by brackets (strings and comments stepped over) or by indentation. What is found wrongly is a little
 * noise; what counts is that every language works the same way.
 *
 * One line a pair, tab-separated: language, package, path, kind, name, description, code; tab, newline and backslash
 * are written \t \n \\. Kinds: func, type, decl, inline (a comment inside a function and the block after it), module,
 * section.
 */
#include "clean.h"
#include "tar.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  FILE_MAX = 1 << 20,
  CODE_MAX = 2400,      /* bytes of code in a pair */
  ITEM_LINES = 400,     /* a definition that is longer is cut */
  PACKAGE_PAIRS = 5000, /* of one package, so that none rules */
  LINE_MEAN = 160,      /* a file with longer lines is not written by hand */
};

typedef enum style { BRACES, PYTHON, HASHES, DASHES, MARKDOWN } style;

typedef struct language {
  const char *ext, *name;
  style style;
  bool semicolons;  /* a line's end does not end a statement */
  bool long_quotes; /* '...' is a string */
} language;

static const language languages[] = {
    {"c", "c", BRACES, true, false},
    {"h", "c", BRACES, true, false},
    {"cc", "cpp", BRACES, true, false},
    {"cpp", "cpp", BRACES, true, false},
    {"cxx", "cpp", BRACES, true, false},
    {"hpp", "cpp", BRACES, true, false},
    {"hh", "cpp", BRACES, true, false},
    {"hxx", "cpp", BRACES, true, false},
    {"java", "java", BRACES, true, false},
    {"js", "javascript", BRACES, false, true},
    {"mjs", "javascript", BRACES, false, true},
    {"cjs", "javascript", BRACES, false, true},
    {"jsx", "javascript", BRACES, false, true},
    {"ts", "typescript", BRACES, false, true},
    {"tsx", "typescript", BRACES, false, true},
    {"mts", "typescript", BRACES, false, true},
    {"go", "go", BRACES, false, false},
    {"rs", "rust", BRACES, true, false},
    {"cs", "csharp", BRACES, true, false},
    {"kt", "kotlin", BRACES, false, false},
    {"kts", "kotlin", BRACES, false, false},
    {"scala", "scala", BRACES, false, false},
    {"swift", "swift", BRACES, false, false},
    {"php", "php", BRACES, true, true},
    {"groovy", "groovy", BRACES, false, true},
    {"vala", "vala", BRACES, true, false},
    {"dart", "dart", BRACES, true, true},
    {"m", "objc", BRACES, true, false},
    {"mm", "objc", BRACES, true, false},
    {"py", "python", PYTHON, false, false},
    {"rb", "ruby", HASHES, false, false},
    {"pm", "perl", HASHES, false, false},
    {"sh", "shell", HASHES, false, false},
    {"ex", "elixir", HASHES, false, false},
    {"lua", "lua", DASHES, false, false},
    {"hs", "haskell", DASHES, false, false},
    {"md", "text", MARKDOWN, false, false},
};

typedef struct line {
  const char *text; /* without indentation */
  size_t len;       /* without the newline and blanks before it */
  size_t indent, start;
} line;

typedef struct miner {
  const char *package, *path;
  const language *lang;
  const char *data;
  size_t len;
  line *lines;
  size_t n_lines, cap_lines;
  size_t pairs;
} miner;

/* ---- Files ---- */

static const language *language_of(const char *path) {
  const char *dot = strrchr(path, '.');
  if (!dot || strchr(dot, '/')) return NULL;
  for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++) {
    if (strcasecmp(dot + 1, languages[i].ext) == 0) return &languages[i];
  }
  return NULL;
}

static bool wanted(const char *path) {
  static const char *const refused[] = {
      ".min.",
      "/test/",
      "/tests/",
      "/testdata/",
      "_test.",
      "/vendor/",
      "/third_party/",
      "/thirdparty/",
      "/3rdparty/",
      "node_modules/",
      "/locale/",
      "/locales/",
      ".pb.",
      "_pb2",
      "/dist/",
      "/umd/",
      "/examples/",
      "/migrations/",
      ".test.",
      ".spec.",
      "/site-packages/tests",
      "/debian/",
      "CHANGELOG",
      "changelog",
      "ChangeLog",
      "CODE_OF_CONDUCT",
      "LICENSE",
      "HISTORY",
  };
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (strstr(path, refused[i])) return false;
  }
  return language_of(path) != NULL;
}

static bool split_lines(miner *m) {
  m->n_lines = 0;
  for (size_t at = 0; at < m->len;) {
    const char *eol = memchr(m->data + at, '\n', m->len - at);
    size_t end = eol ? (size_t)(eol - m->data) : m->len, start = at, stop = end;
    if (m->n_lines == m->cap_lines) {
      m->cap_lines = m->cap_lines ? m->cap_lines * 2 : 4096;
      m->lines = realloc(m->lines, m->cap_lines * sizeof *m->lines);
      if (!m->lines) exit(1);
    }
    size_t indent = 0;
    while (start < stop && (m->data[start] == ' ' || m->data[start] == '\t'))
      indent += m->data[start++] == '\t' ? 4 : 1;
    while (stop > start && isspace((unsigned char)m->data[stop - 1])) stop--;
    m->lines[m->n_lines++] = (line){m->data + start, stop - start, indent, at};
    at = end + 1;
  }
  return m->n_lines > 3 && m->len / m->n_lines < LINE_MEAN && !memchr(m->data, 0, m->len);
}

/* ---- Writing pairs ---- */

static void put_escaped(const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\n')
      fputs("\\n", stdout);
    else if (s[i] == '\t')
      fputs("\\t", stdout);
    else if (s[i] == '\\')
      fputs("\\\\", stdout);
    else if (s[i] != '\r')
      putchar(s[i]);
  }
}

/* Without the parts of a path that only packaging knows. */
static const char *source_path(const char *path) {
  static const char *const prefixes[] = {
      "/dist-packages/", "/share/gocode/src/", "/cargo/registry/", "/share/nodejs/",
      "/share/php/",     "/vendor_ruby/",      "/lib/ruby/",
  };
  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
    const char *at = strstr(path, prefixes[i]);
    if (at) return at + strlen(prefixes[i]);
  }
  while (path[0] == '.' || path[0] == '/') path++;
  const char *slash = strchr(path, '/'); /* the archive's own folder */
  return slash && strncmp(path, "usr/", 4) != 0 ? slash + 1 : path;
}

typedef struct span {
  size_t from, to; /* bytes of the file */
} span;

static size_t cut_at_line(const char *s, size_t n) {
  if (n <= CODE_MAX) return n;
  size_t cut = CODE_MAX;
  while (cut > CODE_MAX / 2 && s[cut] != '\n') cut--;
  return cut;
}

/* `head`: code that comes before the rest (a signature, where a docstring is taken out between the two). */
static void emit(miner *m, const char *kind, span name, const char *raw, size_t raw_len, span head, span rest) {
  char doc[DOC_MAX + 1];
  size_t n = clean_doc(raw, raw_len, doc);
  if (m->pairs >= PACKAGE_PAIRS || !doc_is_useful(doc, n)) return;
  size_t head_len = cut_at_line(m->data + head.from, head.to - head.from);
  size_t rest_len = cut_at_line(m->data + rest.from, rest.to - rest.from);
  if (head_len + rest_len > CODE_MAX) rest_len = CODE_MAX > head_len ? CODE_MAX - head_len : 0;
  if (head_len + rest_len < 24) return;
  const char *path = source_path(m->path);
  m->pairs++;
  printf("%s\t%s\t", m->lang->name, m->package);
  put_escaped(path, strlen(path));
  printf("\t%s\t", kind);
  put_escaped(m->data + name.from, name.to - name.from);
  putchar('\t');
  put_escaped(doc, n);
  putchar('\t');
  put_escaped(m->data + head.from, head_len);
  put_escaped(m->data + rest.from, rest_len);
  putchar('\n');
}

/* ---- Definitions ---- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }

static bool begins(const line *l, const char *word) {
  size_t n = strlen(word);
  return l->len >= n && memcmp(l->text, word, n) == 0 && (l->len == n || !is_word(l->text[n]) || !is_word(word[n - 1]));
}

static bool has_word(const char *s, size_t n, const char *word, size_t *at) {
  size_t w = strlen(word);
  for (size_t i = 0; i + w <= n; i++) {
    if (memcmp(s + i, word, w) == 0 && (i == 0 || !is_word(s[i - 1])) && (i + w == n || !is_word(s[i + w]))) {
      if (at) *at = i + w;
      return true;
    }
  }
  return false;
}

static const char *const type_words[] = {"class",    "struct",    "interface", "enum",   "trait",
                                         "object",   "namespace", "impl",      "module", "union",
                                         "protocol", "extension", "record",    "type",   "package"};
static const char *const statement_words[] = {"if",    "for",   "while",   "switch", "return", "else", "case",
                                              "try",   "throw", "do",      "break",  "match",  "with", "assert",
                                              "yield", "goto",  "foreach", "defer",  "select", "loop", "delete",
                                              "await", "raise", "}",       "default"};

static span offset_of(const miner *m, const char *from, size_t len) {
  return (span){(size_t)(from - m->data), (size_t)(from - m->data) + len};
}

/* The name that a head defines: what stands before its first bracket, or after a word like "class". */
static span name_of(const miner *m, const char *head, size_t n) {
  for (size_t i = 0; i < sizeof type_words / sizeof type_words[0]; i++) {
    size_t at;
    if (!has_word(head, n, type_words[i], &at)) continue;
    while (at < n && head[at] == ' ') at++;
    size_t end = at;
    while (end < n && is_word(head[end])) end++;
    if (end > at) return offset_of(m, head + at, end - at);
  }
  for (size_t i = 1; i < n; i++) {
    if ((head[i] != '(' && head[i] != '<') || !is_word(head[i - 1])) continue;
    size_t from = i;
    while (from && is_word(head[from - 1])) from--;
    if (i - from == 4 && memcmp(head + from, "func", 4) == 0) continue;
    return offset_of(m, head + from, i - from);
  }
  return (span){0, 0};
}

typedef struct item {
  size_t from, to; /* bytes */
  size_t n_lines;
  const char *kind; /* NULL: not a definition */
  span name;
} item;

static bool is_attribute(const line *l) {
  return l->len && (l->text[0] == '@' || (l->text[0] == '#' && l->len > 1 && l->text[1] == '[') ||
                    (l->text[0] == '[' && l->text[l->len - 1] == ']') || begins(l, "template"));
}

/* Steps over a string or character literal that begins at `at`; returns where it ends. */
static size_t skip_literal(const miner *m, size_t at, size_t end) {
  char quote = m->data[at];
  if (quote == '\'' && !m->lang->long_quotes) {
    for (size_t i = at + 1; i < end && i < at + 5; i++) {
      if (m->data[i] == '\'' && (i > at + 1 || m->data[i - 1] != '\\')) return i;
    }
    return at; /* a lifetime, an apostrophe */
  }
  for (size_t i = at + 1; i < end; i++) {
    if (m->data[i] == '\\')
      i++;
    else if (m->data[i] == quote)
      return i;
    else if (m->data[i] == '\n' && quote != '`')
      return i - 1;
  }
  return end - 1;
}

/* Whether a definition may go on after line k, which left no bracket open and no block after it. */
static bool goes_on(const miner *m, size_t k, size_t first) {
  if (k + 1 >= m->n_lines) return false;
  const line *l = &m->lines[k], *next = &m->lines[k + 1];
  if (next->len == 0 || begins(next, "//") || begins(next, "/*")) return false;
  if (is_attribute(l) || m->lang->semicolons) return true;
  char last = l->len ? l->text[l->len - 1] : 0, lead = next->text[0];
  if (strchr("=,:+-|&?(", last) || strchr("{.):=&|?+", lead)) return true;
  return next->indent > m->lines[first].indent;
}

/* The end of the definition that begins at line k, by brackets. */
static item brace_item(const miner *m, size_t k) {
  item it = {.from = m->lines[k].start};
  int round = 0, curly = 0;
  size_t row = k, limit = k + ITEM_LINES < m->n_lines ? k + ITEM_LINES : m->n_lines;
  size_t end = limit < m->n_lines ? m->lines[limit].start : m->len;
  bool block = false, over = false;
  size_t at = it.from;
  for (; at < end && !over; at++) {
    char c = m->data[at];
    if (c == '"' || c == '\'' || c == '`') {
      at = skip_literal(m, at, end);
    } else if (c == '/' && at + 1 < end && m->data[at + 1] == '/') {
      while (at + 1 < end && m->data[at + 1] != '\n') at++;
    } else if (c == '/' && at + 1 < end && m->data[at + 1] == '*') {
      for (at += 2; at + 1 < end && !(m->data[at] == '*' && m->data[at + 1] == '/'); at++) {}
      at++;
    } else if (c == '(' || c == '[') {
      round++;
    } else if (c == ')' || c == ']') {
      round--;
    } else if (c == '{') {
      curly++;
      block |= round <= 0;
    } else if (c == '}') {
      curly--;
      over = curly < 0 || (curly == 0 && round <= 0);
      if (curly < 0) at--;
    } else if (c == ';' && curly == 0 && round <= 0) {
      over = true;
    } else if (c == '\n') {
      while (row + 1 < limit && m->lines[row + 1].start <= at + 1) row++;
      if (curly == 0 && round <= 0 && row > k && !goes_on(m, row - 1, k)) over = true;
    }
  }
  while (at < m->len && m->data[at - 1] != '\n' && m->data[at] != '\n') at++;
  it.to = at < m->len ? at : m->len;
  while (row + 1 < m->n_lines && m->lines[row + 1].start < it.to) row++;
  it.n_lines = row - k + 1;
  size_t head = k;
  while (head + 1 < m->n_lines && is_attribute(&m->lines[head])) head++;
  const line *h = &m->lines[head];
  for (size_t i = 0; i < sizeof statement_words / sizeof statement_words[0]; i++) {
    if (begins(h, statement_words[i])) {
      it.kind = block && it.n_lines >= 4 ? "inline" : NULL;
      return it;
    }
  }
  size_t head_len = h->len < 200 ? h->len : 200;
  it.name = name_of(m, h->text, head_len);
  bool is_type = false;
  for (size_t i = 0; i < sizeof type_words / sizeof type_words[0]; i++)
    is_type |= has_word(h->text, head_len, type_words[i], NULL);
  if (h->len == 0 || (h->text[0] == '#' && !begins(h, "#define")))
    it.kind = NULL;
  else if (is_type && (block || m->lang->style != BRACES))
    it.kind = "type";
  else if (block)
    it.kind = memchr(h->text, '(', head_len) ? "func" : "decl";
  else
    it.kind = "decl";
  return it;
}

static item indent_item(const miner *m, size_t k) {
  item it = {.from = m->lines[k].start};
  size_t row = k + 1, last = k;
  for (; row < m->n_lines && row < k + ITEM_LINES; row++) {
    const line *l = &m->lines[row];
    if (l->len == 0) continue;
    bool closes = begins(l, "end") || l->text[0] == '}' || l->text[0] == '{' || l->text[0] == ')';
    if (l->indent <= m->lines[k].indent && !closes) break;
    last = row;
    if (l->indent <= m->lines[k].indent && l->text[0] != '{') break;
  }
  it.n_lines = last - k + 1;
  it.to = last + 1 < m->n_lines ? m->lines[last + 1].start : m->len;
  it.name = name_of(m, m->lines[k].text, m->lines[k].len < 200 ? m->lines[k].len : 200);
  if (it.name.to == 0) {
    size_t at;
    if (has_word(m->lines[k].text, m->lines[k].len, "def", &at) ||
        has_word(m->lines[k].text, m->lines[k].len, "sub", &at)) {
      const char *s = m->lines[k].text + at;
      size_t n = 0;
      while (*s == ' ') s++;
      while (is_word(s[n])) n++;
      it.name = offset_of(m, s, n);
    }
  }
  it.kind =
      begins(&m->lines[k], "class") || begins(&m->lines[k], "module") || begins(&m->lines[k], "data") ? "type" : "func";
  return it;
}

/* ---- Comments ---- */

static span raw_of(const miner *m, size_t from, size_t to) {
  return (span){m->lines[from].start, to < m->n_lines ? m->lines[to].start : m->len};
}

static void emit_module(miner *m, size_t from, size_t to) {
  if (to >= m->n_lines) return;
  span raw = raw_of(m, from, to);
  size_t at = m->lines[to].start;
  emit(m, "module", (span){0, 0}, m->data + raw.from, raw.to - raw.from, (span){at, at}, (span){at, m->len});
}

static void emit_item(miner *m, size_t from, size_t to, const item *it, bool documentation) {
  span raw = raw_of(m, from, to);
  if (!it->kind) return;
  bool inner = it->kind[0] == 'i' || (it->kind[0] == 'd' && !documentation);
  if (inner && it->n_lines < 4) return;
  emit(m, inner ? "inline" : it->kind, it->name, m->data + raw.from, raw.to - raw.from, (span){it->from, it->from},
       (span){it->from, it->to});
}

/* Lines from i on that are one comment; returns the line after it, or i when it is none (or code follows it). */
static size_t comment_end(const miner *m, size_t i) {
  const line *l = &m->lines[i];
  if (begins(l, "/*")) {
    for (size_t j = i; j < m->n_lines && j < i + 200; j++) {
      const line *x = &m->lines[j];
      for (size_t c = j == i ? 2 : 0; c + 1 < x->len; c++) {
        if (x->text[c] == '*' && x->text[c + 1] == '/') return c + 2 == x->len ? j + 1 : i;
      }
    }
    return i;
  }
  size_t j = i;
  while (j < m->n_lines && begins(&m->lines[j], "//")) j++;
  return j;
}

static void mine_braces(miner *m) {
  bool opened = false; /* code was seen */
  for (size_t i = 0; i < m->n_lines;) {
    size_t end = comment_end(m, i);
    if (end == i) {
      opened |= m->lines[i].len > 0 && m->lines[i].text[0] != '<';
      i++;
      continue;
    }
    bool inner_doc = m->lines[i].len > 2 && m->lines[i].text[2] == '!';
    bool documentation =
        m->lines[i].len > 2 && (m->lines[i].text[2] == '*' || m->lines[i].text[2] == '/' || m->lang->name[0] == 'g');
    if (end >= m->n_lines) return;
    const line *next = &m->lines[end];
    if (inner_doc || (!opened && (next->len == 0 || begins(next, "package") || begins(next, "#include") ||
                                  begins(next, "import") || begins(next, "#ifndef") || begins(next, "use")))) {
      emit_module(m, i, end);
    } else if (next->len) {
      item it = brace_item(m, end);
      emit_item(m, i, end, &it, documentation);
    }
    i = end;
  }
}

static bool is_hash_head(const line *l) {
  return begins(l, "def") || begins(l, "class") || begins(l, "module") || begins(l, "sub") || begins(l, "function") ||
         begins(l, "local function") || begins(l, "defp") || begins(l, "data") ||
         (l->len > 4 && memcmp(l->text + l->len - 4, "() {", 4) == 0);
}

static void mine_marked(miner *m, const char *mark) {
  for (size_t i = 0; i < m->n_lines;) {
    size_t end = i;
    while (end < m->n_lines && begins(&m->lines[end], mark)) end++;
    if (end == i) {
      i++;
      continue;
    }
    if (end < m->n_lines && is_hash_head(&m->lines[end])) {
      item it = indent_item(m, end);
      emit_item(m, i, end, &it, true);
    }
    i = end;
  }
}

/* ---- Python ---- */

/* A string of three quotes that begins at line i: sets where its text is, returns the line after it, or i. */
static size_t docstring(const miner *m, size_t i, span *text) {
  if (i >= m->n_lines) return i;
  const line *l = &m->lines[i];
  size_t skip = l->len && strchr("rRuU", l->text[0]) ? 1 : 0;
  if (l->len < skip + 3) return i;
  const char *quote = l->text + skip;
  if (memcmp(quote, "\"\"\"", 3) != 0 && memcmp(quote, "'''", 3) != 0) return i;
  size_t from = (size_t)(quote - m->data) + 3;
  for (size_t at = from; at + 3 <= m->len; at++) {
    if (memcmp(m->data + at, quote, 3) != 0) continue;
    *text = (span){from, at};
    while (i < m->n_lines && m->lines[i].start <= at) i++;
    return i;
  }
  return i;
}

static void mine_python(miner *m) {
  bool opened = false;
  for (size_t i = 0; i < m->n_lines; i++) {
    const line *l = &m->lines[i];
    span text;
    if (!opened && l->len && l->text[0] != '#') {
      size_t end = docstring(m, i, &text);
      if (end > i && end < m->n_lines) {
        size_t at = m->lines[end].start;
        emit(m, "module", (span){0, 0}, m->data + text.from, text.to - text.from, (span){at, at}, (span){at, m->len});
        i = end - 1;
        opened = true;
        continue;
      }
      opened = true;
    }
    if (!begins(l, "def") && !begins(l, "async def") && !begins(l, "class")) continue;
    size_t body = i;
    while (body < m->n_lines && body < i + 30 &&
           (m->lines[body].len == 0 || m->lines[body].text[m->lines[body].len - 1] != ':'))
      body++;
    body++;
    size_t end = docstring(m, body, &text);
    if (end == body || end >= m->n_lines) continue;
    item it = indent_item(m, i);
    if (it.to <= m->lines[end].start) continue;
    emit(m, it.kind, it.name, m->data + text.from, text.to - text.from, (span){it.from, m->lines[body].start},
         (span){m->lines[end].start, it.to});
  }
}

/* ---- Manuals ---- */

static void mine_markdown(miner *m) {
  for (size_t i = 0; i < m->n_lines; i++) {
    const line *l = &m->lines[i];
    if (!begins(l, "#") || l->indent) continue;
    size_t end = i + 1;
    while (end < m->n_lines && !(begins(&m->lines[end], "#") && m->lines[end].indent == 0)) end++;
    size_t from = i + 1 < m->n_lines ? m->lines[i + 1].start : m->len,
           to = end < m->n_lines ? m->lines[end].start : m->len;
    if (to > from + 120) emit(m, "section", (span){0, 0}, l->text, l->len, (span){from, from}, (span){from, to});
    i = end - 1;
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: mine PACKAGE <files.tar >>pairs.tsv\n");
    return 2;
  }
  miner m = {.package = argv[1]};
  tar_file file = {.data = NULL};
  while (m.pairs < PACKAGE_PAIRS && tar_next(stdin, FILE_MAX, wanted, &file)) {
    m.path = file.path;
    m.lang = language_of(file.path);
    m.data = file.data;
    m.len = file.len;
    if (!split_lines(&m)) continue;
    switch (m.lang->style) {
      case BRACES: mine_braces(&m); break;
      case PYTHON: mine_python(&m); break;
      case HASHES: mine_marked(&m, "#"); break;
      case DASHES: mine_marked(&m, "--"); break;
      case MARKDOWN: mine_markdown(&m); break;
    }
  }
  tar_release(&file);
  free(m.lines);
  return ferror(stdout) ? 1 : 0;
}
