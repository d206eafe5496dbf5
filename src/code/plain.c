/* plain.c - chunks without a grammar: sections of documents, paragraphs and lines of everything else.
 *
 * Documents are cut at their headings; a heading without text of its own stays with the section below it. What is longer than
 * a chunk is cut into parts. One pass over the lines, with a stack of the headings that are open.
 */
#include "code/chunk_make.h"

#include <ctype.h>

enum { LEVELS = 8 }; /* headings nested deeper count as the last level */

typedef struct heading {
  uint32_t start; /* of its first line */
  uint32_t body;  /* behind its last line */
  int level;      /* 1 to LEVELS */
  lode_str name;
} heading;

typedef struct line {
  const char *p;
  size_t n; /* without the end of line */
  uint32_t at, next;
} line;

static bool next_line(lode_str text, uint32_t at, line *l) {
  if (at >= text.len) return false;
  const char *p = text.data + at, *eol = memchr(p, '\n', text.len - at);
  size_t n = eol ? (size_t)(eol - p) : text.len - at;
  *l = (line){p, n, at, at + (uint32_t)n + (eol != NULL)};
  if (l->n && p[l->n - 1] == '\r') l->n--;
  return true;
}

static bool is_blank(const line *l) {
  for (size_t i = 0; i < l->n; i++)
    if (!isspace((unsigned char)l->p[i])) return false;
  return true;
}

/* How many times the line repeats one sign from `signs`, with nothing but spaces behind; 0 if it is no such line. */
static size_t ruler(const line *l, const char *signs) {
  size_t n = 0, i;
  if (l->n == 0 || !strchr(signs, l->p[0])) return 0;
  while (n < l->n && l->p[n] == l->p[0]) n++;
  for (i = n; i < l->n; i++)
    if (l->p[i] != ' ') return 0;
  return n;
}

/* ---- The sections of a document, as they are found ---- */

typedef struct document {
  lode__chunk_list *list;
  lode_str text;
  uint32_t max;
  heading open[LEVELS]; /* the headings above the current one, by depth */
  uint32_t index[LEVELS]; /* their chunks */
  int depth;
  uint32_t from;        /* where the section that is being read begins, empty headings before it included */
  heading now;
  bool has_heading;
  bool failed;
} document;

static lode_str parents_of(document *d) {
  char text[LODE__CHUNK_PARENTS_BYTES];
  size_t n = 0;
  for (int i = 0; i < d->depth; i++) {
    lode_str name = d->open[i].name;
    if (n + name.len + 3 > sizeof text) break;
    if (n) memcpy(text + n, " > ", 3), n += 3;
    memcpy(text + n, name.data, name.len);
    n += name.len;
  }
  return lode__chunk_string(d->list, (lode_str){text, n}, LODE__CHUNK_PARENTS_BYTES, LODE__STRING_LINE);
}

static void close_section(document *d, uint32_t end) {
  lode__chunk shape = {.kind = LODE__KIND_SECTION, .parent = LODE__CHUNK_NO_PARENT, .line = d->from};
  if (end <= d->from) return;
  if (d->has_heading) {
    shape.name = shape.signature = d->now.name;
    shape.line = d->now.start;
    shape.parents = parents_of(d);
    for (int i = d->depth; i-- > 0 && shape.parent == LODE__CHUNK_NO_PARENT;) shape.parent = d->index[i];
  }
  uint32_t index = (uint32_t)d->list->n;
  if (!lode__chunk_add_cut(d->list, d->text, &shape, d->from, end, d->max)) d->failed = true;
  if (d->has_heading && d->depth < LEVELS) {
    d->open[d->depth] = d->now;
    d->index[d->depth++] = index;
  }
  d->from = end;
}

static bool only_blank(lode_str text, uint32_t from, uint32_t to) {
  while (from < to && isspace((unsigned char)text.data[from])) from++;
  return from == to;
}

static void open_section(document *d, heading h) {
  bool empty = d->has_heading && only_blank(d->text, d->now.body, h.start) && h.level > d->now.level;
  if (h.level > LEVELS) h.level = LEVELS;
  if (empty) { /* no chunk of its own, but a name above the next one */
    if (d->depth < LEVELS) {
      d->open[d->depth] = d->now;
      d->index[d->depth++] = LODE__CHUNK_NO_PARENT;
    }
  } else {
    close_section(d, h.start);
  }
  while (d->depth > 0 && d->open[d->depth - 1].level >= h.level) d->depth--;
  d->now = h;
  d->has_heading = true;
}

static lode_str heading_name(document *d, const char *p, size_t n) {
  return lode__chunk_string(d->list, (lode_str){p, n}, LODE__CHUNK_NAME_BYTES, LODE__STRING_LINE);
}

/* ---- Markdown ---- */

/* "## Name ##": the level, and where the name is. */
static int atx(const line *l, const char **name, size_t *n) {
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

/* ``` or ~~~, three or more, at most three spaces before: how many, and which. */
static size_t fence(const line *l, char *sign) {
  size_t i = 0, n = 0;
  while (i < l->n && i < 3 && l->p[i] == ' ') i++;
  if (i >= l->n || (l->p[i] != '`' && l->p[i] != '~')) return 0;
  *sign = l->p[i];
  while (i + n < l->n && l->p[i + n] == *sign) n++;
  return n >= 3 ? n : 0;
}

/* Lines that cannot be the text of an underlined heading. */
static bool is_plain_text(const line *l) {
  size_t i = 0;
  while (i < l->n && l->p[i] == ' ') i++;
  if (i > 3 || i == l->n) return false;
  char c = l->p[i];
  return !(c == '>' || c == '|' || c == '#' || c == '<' || ((c == '-' || c == '*' || c == '+') && i + 1 < l->n && l->p[i + 1] == ' '));
}

static void read_markdown(document *d) {
  line l = {0}, before = {0};
  size_t fenced = 0;
  char fence_sign = 0, sign = 0;
  bool front = d->text.len >= 4 && memcmp(d->text.data, "---", 3) == 0 && (d->text.data[3] == '\n' || d->text.data[3] == '\r');
  for (uint32_t at = 0; next_line(d->text, at, &l) && !d->failed; before = l, at = l.next) {
    const char *name = NULL;
    size_t n = 0, marks;
    if (front) { /* settings before the text */
      if (at > 0 && ruler(&l, "-.") == 3) front = false;
      continue;
    }
    marks = fence(&l, &sign);
    if (fenced) {
      if (marks >= fenced && sign == fence_sign) fenced = 0;
      continue;
    }
    if (marks) {
      fenced = marks;
      fence_sign = sign;
      continue;
    }
    int level = atx(&l, &name, &n);
    if (level) {
      open_section(d, (heading){l.at, l.next, level, heading_name(d, name, n)});
      continue;
    }
    marks = ruler(&l, "=-");
    bool follows = before.n && before.next == l.at && !is_blank(&before) && is_plain_text(&before);
    if (marks && follows && (l.p[0] == '=' || marks >= 3) && before.at >= d->from) {
      open_section(d, (heading){before.at, l.next, l.p[0] == '=' ? 1 : 2, heading_name(d, before.p, before.n)});
      l.n = 0;
    }
  }
}

/* ---- reStructuredText: a line and a ruler below it of at least its length, perhaps one above ---- */

static const char rst_signs[] = "=-`:.'\"~^_*+#<>";

static void read_rst(document *d) {
  line l = {0}, before = {0}, above = {0};
  char styles[LEVELS]; /* in the order of their first use: the levels */
  int n_styles = 0;
  for (uint32_t at = 0; next_line(d->text, at, &l) && !d->failed; above = before, before = l, at = l.next) {
    size_t marks = ruler(&l, rst_signs), over = ruler(&above, rst_signs);
    bool text = before.n && !is_blank(&before) && !ruler(&before, rst_signs) && before.at >= d->from;
    if (!text || marks < 2 || marks + 1 < before.n) continue;
    bool has_over = over == marks && above.p && above.p[0] == l.p[0];
    if (!has_over && isspace((unsigned char)before.p[0])) continue;
    char style = (char)(l.p[0] | (has_over ? 0x80 : 0));
    int level = 0;
    while (level < n_styles && styles[level] != style) level++;
    if (level == n_styles && n_styles < LEVELS) styles[n_styles++] = style;
    open_section(d, (heading){has_over && above.at >= d->from ? above.at : before.at, l.next, level + 1, heading_name(d, before.p, before.n)});
    l.n = 0;
  }
}

/* ---- All ---- */

lode_status lode__chunk_plain(const lode__language *language, lode_str text, const lode__chunk_options *options,
                              lode__chunk_list *list, lode_error *err) {
  lode__chunk_options o = lode__chunk_bounds(options);
  bool ok = true;
  lode__chunk_list_clear(list);
  if (text.len > LODE__CHUNK_MAX_TEXT)
    return err_set(err, LODE_LIMIT, "a text of %zu bytes; the limit is %u", text.len, LODE__CHUNK_MAX_TEXT);
  if (text.len == 0) return LODE_OK;
  if (language->reader == LODE__READ_MARKDOWN || language->reader == LODE__READ_RST) {
    document d = {.list = list, .text = text, .max = o.max_bytes};
    if (language->reader == LODE__READ_MARKDOWN) read_markdown(&d);
    else read_rst(&d);
    close_section(&d, (uint32_t)text.len);
    ok = !d.failed;
  } else {
    lode__chunk shape = {.kind = language->data ? LODE__KIND_DATA : LODE__KIND_TEXT, .parent = LODE__CHUNK_NO_PARENT};
    ok = lode__chunk_add_cut(list, text, &shape, 0, (uint32_t)text.len, o.max_bytes);
    /* pieces of a file are no parts of a definition */
    for (size_t i = 0; i < list->n; i++) list->items[i].part = 0, list->items[i].parts = 1;
  }
  if (!ok || list->failed) {
    lode__chunk_list_clear(list);
    return err_nomem(err);
  }
  lode__chunk_number_lines(list, text);
  return LODE_OK;
}
