/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_plain.c - chunks without a grammar: sections of documents, paragraphs and lines of everything else.
 *
 * Documents are split at their headings; a heading without text of its own shares a chunk with the section below it.
 * What is longer than a chunk is split into parts. One pass over the lines, with a stack of open headings.
 */
#include "chunk/chunk_make.h"

#include <ctype.h>

enum { PLAIN_HEADING_LEVELS = 8 }; /* deeper headings count as the last level */

typedef struct plain_heading {
  uint32_t start; /* of its first line */
  uint32_t body;  /* after its last line */
  int level;      /* 1 to PLAIN_HEADING_LEVELS */
  lode_str name;
} plain_heading;

typedef struct plain_line {
  const char *p;
  size_t n; /* without the end of line */
  uint32_t at, next;
} plain_line;

static bool plain_next_line(lode_str text, uint32_t at, plain_line *l) {
  if (at >= text.len) return false;
  const char *p = text.data + at, *eol = memchr(p, '\n', text.len - at);
  size_t n = eol ? (size_t)(eol - p) : text.len - at;
  *l = (plain_line){p, n, at, at + (uint32_t)n + (eol != NULL)};
  if (l->n && p[l->n - 1] == '\r') l->n--;
  return true;
}

static bool plain_is_blank(const plain_line *l) {
  for (size_t i = 0; i < l->n; i++)
    if (!isspace((unsigned char)l->p[i])) return false;
  return true;
}

/* Length of a line that repeats one character of `signs`, perhaps followed by spaces; 0 for any other line. */
static size_t plain_rule_length(const plain_line *l, const char *signs) {
  size_t n = 0, i;
  if (l->n == 0 || !strchr(signs, l->p[0])) return 0;
  while (n < l->n && l->p[n] == l->p[0]) n++;
  for (i = n; i < l->n; i++)
    if (l->p[i] != ' ') return 0;
  return n;
}

/* ---- The sections of a document ---- */

typedef struct plain_document {
  chunk_list *list;
  lode_str text;
  uint32_t max;
  plain_heading open[PLAIN_HEADING_LEVELS]; /* the headings above the current one, by depth */
  uint32_t index[PLAIN_HEADING_LEVELS];     /* their chunks */
  int depth;
  uint32_t from; /* start of the current section, with the empty headings before it */
  plain_heading now;
  bool has_heading;
  bool failed;
} plain_document;

static lode_str plain_parents(plain_document *d) {
  char text[CHUNK_MAX_PARENTS];
  size_t n = 0;
  for (int i = 0; i < d->depth; i++) {
    lode_str name = d->open[i].name;
    if (n + name.len + 3 > sizeof text) break;
    if (n) memcpy(text + n, " > ", 3), n += 3;
    memcpy(text + n, name.data, name.len);
    n += name.len;
  }
  return chunk_clean_string(d->list, (lode_str){text, n}, CHUNK_MAX_PARENTS, CHUNK_STRING_ONE_LINE);
}

static void plain_close_section(plain_document *d, uint32_t end) {
  chunk_item shape = {.kind = LANG_KIND_SECTION, .parent = CHUNK_NO_PARENT, .line = d->from};
  if (end <= d->from) return;
  if (d->has_heading) {
    shape.name = shape.signature = d->now.name;
    shape.line = d->now.start;
    shape.parents = plain_parents(d);
    for (int i = d->depth; i-- > 0 && shape.parent == CHUNK_NO_PARENT;) shape.parent = d->index[i];
  }
  uint32_t index = (uint32_t)d->list->n;
  if (!chunk_list_add_split(d->list, d->text, &shape, d->from, end, d->max)) d->failed = true;
  if (d->has_heading && d->depth < PLAIN_HEADING_LEVELS) {
    d->open[d->depth] = d->now;
    d->index[d->depth++] = index;
  }
  d->from = end;
}

static bool plain_only_blank(lode_str text, uint32_t from, uint32_t to) {
  while (from < to && isspace((unsigned char)text.data[from])) from++;
  return from == to;
}

static void plain_open_section(plain_document *d, plain_heading h) {
  bool empty = d->has_heading && plain_only_blank(d->text, d->now.body, h.start) && h.level > d->now.level;
  if (h.level > PLAIN_HEADING_LEVELS) h.level = PLAIN_HEADING_LEVELS;
  if (empty) { /* not a chunk, but a parent of the next one */
    if (d->depth < PLAIN_HEADING_LEVELS) {
      d->open[d->depth] = d->now;
      d->index[d->depth++] = CHUNK_NO_PARENT;
    }
  } else {
    plain_close_section(d, h.start);
  }
  while (d->depth > 0 && d->open[d->depth - 1].level >= h.level) d->depth--;
  d->now = h;
  d->has_heading = true;
}

static lode_str plain_heading_name(plain_document *d, const char *p, size_t n) {
  return chunk_clean_string(d->list, (lode_str){p, n}, CHUNK_MAX_NAME, CHUNK_STRING_ONE_LINE);
}

/* ---- Markdown ---- */

/* "## Name ##": the level, and where the name is. */
static int plain_atx_level(const plain_line *l, const char **name, size_t *n) {
  size_t i = 0, end = l->n;
  while (i < l->n && i < 3 && l->p[i] == ' ') i++;
  size_t from = i;
  while (i < l->n && l->p[i] == '#') i++;
  size_t level = i - from;
  if (level < 1 || level > 6 || (i < l->n && l->p[i] != ' ' && l->p[i] != '\t')) return 0;
  while (end > i && (l->p[end - 1] == ' ' || l->p[end - 1] == '#')) end--;
  *name = l->p + i;
  *n = end - i;
  return (int)level;
}

/* A fence of three or more ` or ~ after at most three spaces: its length, and the character. */
static size_t plain_fence_length(const plain_line *l, char *sign) {
  size_t i = 0, n = 0;
  while (i < l->n && i < 3 && l->p[i] == ' ') i++;
  if (i >= l->n || (l->p[i] != '`' && l->p[i] != '~')) return 0;
  *sign = l->p[i];
  while (i + n < l->n && l->p[i + n] == *sign) n++;
  return n >= 3 ? n : 0;
}

/* May the line be the text of an underlined heading? */
static bool plain_is_text_line(const plain_line *l) {
  size_t i = 0;
  while (i < l->n && l->p[i] == ' ') i++;
  if (i > 3 || i == l->n) return false;
  char c = l->p[i];
  return !(c == '>' || c == '|' || c == '#' || c == '<' ||
           ((c == '-' || c == '*' || c == '+') && i + 1 < l->n && l->p[i + 1] == ' '));
}

static void plain_read_markdown(plain_document *d) {
  plain_line l = {0}, before = {0};
  size_t fenced = 0;
  char fence_sign = 0, sign = 0;
  bool front =
      d->text.len >= 4 && memcmp(d->text.data, "---", 3) == 0 && (d->text.data[3] == '\n' || d->text.data[3] == '\r');
  for (uint32_t at = 0; plain_next_line(d->text, at, &l) && !d->failed; before = l, at = l.next) {
    const char *name = NULL;
    size_t n = 0, length;
    if (front) { /* front matter */
      if (at > 0 && plain_rule_length(&l, "-.") == 3) front = false;
      continue;
    }
    length = plain_fence_length(&l, &sign);
    if (fenced) {
      if (length >= fenced && sign == fence_sign) fenced = 0;
      continue;
    }
    if (length) {
      fenced = length;
      fence_sign = sign;
      continue;
    }
    int level = plain_atx_level(&l, &name, &n);
    if (level) {
      plain_open_section(d, (plain_heading){l.at, l.next, level, plain_heading_name(d, name, n)});
      continue;
    }
    length = plain_rule_length(&l, "=-");
    bool follows = before.n && before.next == l.at && !plain_is_blank(&before) && plain_is_text_line(&before);
    if (length && follows && (l.p[0] == '=' || length >= 3) && before.at >= d->from) {
      plain_open_section(
          d, (plain_heading){before.at, l.next, l.p[0] == '=' ? 1 : 2, plain_heading_name(d, before.p, before.n)});
      l.n = 0;
    }
  }
}

/* ---- reStructuredText: a line with a rule below it of at least its length, perhaps one above too ---- */

static const char rst_signs[] = "=-`:.'\"~^_*+#<>";

static void plain_read_rst(plain_document *d) {
  plain_line l = {0}, before = {0}, above = {0};
  char styles[PLAIN_HEADING_LEVELS]; /* in the order of first use, which gives the levels */
  int n_styles = 0;
  for (uint32_t at = 0; plain_next_line(d->text, at, &l) && !d->failed; above = before, before = l, at = l.next) {
    size_t length = plain_rule_length(&l, rst_signs), over = plain_rule_length(&above, rst_signs);
    bool text = before.n && !plain_is_blank(&before) && !plain_rule_length(&before, rst_signs) && before.at >= d->from;
    if (!text || length < 2 || length + 1 < before.n) continue;
    bool has_over = over == length && above.p && above.p[0] == l.p[0];
    if (!has_over && isspace((unsigned char)before.p[0])) continue;
    char style = (char)(l.p[0] | (has_over ? 0x80 : 0));
    int level = 0;
    while (level < n_styles && styles[level] != style) level++;
    if (level == n_styles && n_styles < PLAIN_HEADING_LEVELS) styles[n_styles++] = style;
    plain_open_section(d, (plain_heading){has_over && above.at >= d->from ? above.at : before.at, l.next, level + 1,
                                          plain_heading_name(d, before.p, before.n)});
    l.n = 0;
  }
}

/* ---- Entry point ---- */

lode_status chunk_plain(const lang_info *language, lode_str text, const chunk_options *options, chunk_list *list,
                        lode_error *err) {
  chunk_options o = chunk_options_resolve(options);
  bool ok = true;
  chunk_list_clear(list);
  if (text.len > LANG_MAX_TEXT)
    return err_set(err, LODE_LIMIT, "a text of %zu bytes; the limit is %u", text.len, LANG_MAX_TEXT);
  if (text.len == 0) return LODE_OK;
  if (language->split == LANG_SPLIT_MARKDOWN || language->split == LANG_SPLIT_RST) {
    plain_document d = {.list = list, .text = text, .max = o.max_bytes};
    if (language->split == LANG_SPLIT_MARKDOWN)
      plain_read_markdown(&d);
    else
      plain_read_rst(&d);
    plain_close_section(&d, (uint32_t)text.len);
    ok = !d.failed;
  } else {
    chunk_item shape = {.kind = language->data ? LANG_KIND_DATA : LANG_KIND_TEXT, .parent = CHUNK_NO_PARENT};
    ok = chunk_list_add_split(list, text, &shape, 0, (uint32_t)text.len, o.max_bytes);
    /* pieces of a file are not parts of a definition */
    for (size_t i = 0; i < list->n; i++) list->items[i].part = 0, list->items[i].parts = 1;
  }
  if (!ok || list->failed) {
    chunk_list_clear(list);
    return err_nomem(err);
  }
  chunk_number_lines(list, text);
  return LODE_OK;
}
