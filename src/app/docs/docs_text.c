/* SPDX-License-Identifier: Apache-2.0 */
/* docs_text.c - Markdown laid out for a terminal. See docs.h.
 *
 * One pass over the lines. A block (a paragraph, an item of a list, a table) is gathered until a line ends it, then
 * written. Inline marks become escape sequences, or stay as quotes where there are no colours; lines are wrapped by the
 * columns that are seen.
 */
#include "docs/docs.h"

enum { DOCS_MAX_COLUMNS = 8, DOCS_MIN_CELL = 16, DOCS_INDENT = 2 };

#define DOCS_BOLD "\033[1m"
#define DOCS_CODE "\033[36m"
#define DOCS_PLAIN "\033[0m"

typedef struct docs_view {
  strbuf *out;
  bool color;
  size_t width;
  strbuf block;     /* lines of a paragraph or an item, joined by spaces */
  size_t indent;    /* of the block's lines */
  const char *mark; /* what its first line begins with */
  strbuf table;     /* rows of a table, with their newlines */
  bool fenced, comment, blank;
} docs_view;

/* ---- Inline marks ---- */

/* The columns that the text takes: escape sequences take none. */
static size_t docs_columns(const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] == '\033') {
      while (i < len && text[i] != 'm') i++;
      continue;
    }
    n += ((unsigned char)text[i] & 0xc0) != 0x80;
  }
  return n;
}

static size_t docs_find_text(lode_str text, size_t from, const char *what) {
  size_t len = strlen(what);
  for (size_t i = from; i + len <= text.len; i++)
    if (memcmp(text.data + i, what, len) == 0) return i;
  return SIZE_MAX;
}

static void docs_put_marked(const docs_view *v, strbuf *out, lode_str text, const char *code, const char *quote) {
  strbuf_addstr(out, v->color ? code : quote);
  strbuf_add(out, text.data, text.len);
  strbuf_addstr(out, v->color ? DOCS_PLAIN : quote);
}

/* [text](target): the target is said when it is a document or an address, and not what the text says already. */
static size_t docs_put_link(strbuf *out, lode_str text, size_t at) {
  size_t middle = docs_find_text(text, at, "]("),
         end = middle == SIZE_MAX ? SIZE_MAX : docs_find_text(text, middle, ")");
  if (end == SIZE_MAX) {
    strbuf_addch(out, '[');
    return at + 1;
  }
  lode_str label = {text.data + at + 1, middle - at - 1}, target = {text.data + middle + 2, end - middle - 2};
  strbuf_add(out, label.data, label.len);
  bool said = docs_find_text(label, 0, ".md") != SIZE_MAX || docs_find_text(target, 0, "#") == 0;
  if (!said) strbuf_addf(out, " (%.*s)", (int)target.len, target.data);
  return end + 1;
}

static void docs_put_inline(const docs_view *v, strbuf *out, lode_str text) {
  for (size_t i = 0; i < text.len;) {
    bool bold = text.len - i > 2 && text.data[i] == '*' && text.data[i + 1] == '*', code = text.data[i] == '`';
    size_t end = bold ? docs_find_text(text, i + 2, "**") : code ? docs_find_text(text, i + 1, "`") : SIZE_MAX;
    if (end != SIZE_MAX && bold) {
      docs_put_marked(v, out, (lode_str){text.data + i + 2, end - i - 2}, DOCS_BOLD, "");
      i = end + 2;
    } else if (end != SIZE_MAX) {
      docs_put_marked(v, out, (lode_str){text.data + i + 1, end - i - 1}, DOCS_CODE, "`");
      i = end + 1;
    } else if (text.data[i] == '[') {
      i = docs_put_link(out, text, i);
    } else {
      strbuf_addch(out, text.data[i++]);
    }
  }
}

/* ---- Paragraphs and items ---- */

/* Words in lines of at most `width` columns; the first begins at column `at`, the others at `indent`. */
static void docs_put_wrapped(strbuf *out, const char *text, size_t len, size_t at, size_t indent, size_t width) {
  bool first = true;
  for (size_t i = 0; i < len;) {
    size_t end = i;
    while (end < len && text[end] != ' ') end++;
    size_t columns = docs_columns(text + i, end - i);
    if (!first && at + 1 + columns > width) {
      strbuf_addf(out, "\n%*s", (int)indent, "");
      at = indent;
    } else if (!first) {
      strbuf_addch(out, ' ');
      at++;
    }
    strbuf_add(out, text + i, end - i);
    at += columns;
    first = false;
    for (i = end; i < len && text[i] == ' ';) i++;
  }
  strbuf_addch(out, '\n');
}

static void docs_end_block(docs_view *v) {
  strbuf text = {0};
  if (v->block.len == 0) return;
  docs_put_inline(v, &text, (lode_str){v->block.data, v->block.len});
  size_t mark = strlen(v->mark);
  strbuf_addf(v->out, "%*s%s", (int)(v->indent - mark), "", v->mark);
  if (text.len) docs_put_wrapped(v->out, text.data, text.len, v->indent, v->indent, v->width);
  v->out->failed = v->out->failed || text.failed;
  strbuf_release(&text);
  v->block.len = 0;
}

static void docs_add_to_block(docs_view *v, lode_str line) {
  while (line.len && *line.data == ' ') line = (lode_str){line.data + 1, line.len - 1};
  if (v->block.len) strbuf_addch(&v->block, ' ');
  strbuf_add(&v->block, line.data, line.len);
}

static void docs_put_heading(docs_view *v, lode_str line) {
  size_t level = 0, start = v->out->len;
  while (level < line.len && line.data[level] == '#') level++;
  lode_str text = {line.data + level, line.len - level};
  while (text.len && *text.data == ' ') text = (lode_str){text.data + 1, text.len - 1};
  if (v->color) strbuf_addstr(v->out, DOCS_BOLD);
  docs_put_inline(&(docs_view){.color = false}, v->out, text);
  size_t columns = v->out->failed || v->out->len == start ? 0 : docs_columns(v->out->data + start, v->out->len - start);
  strbuf_addstr(v->out, v->color ? DOCS_PLAIN "\n" : "\n");
  for (size_t i = 0; i < columns && !v->color && level < 3; i++) strbuf_addch(v->out, level == 1 ? '=' : '-');
  if (!v->color && level < 3) strbuf_addch(v->out, '\n');
}

/* ---- Tables ---- */

typedef struct docs_row {
  lode_str cells[DOCS_MAX_COLUMNS];
  size_t n;
} docs_row;

static lode_str docs_next_line(lode_str *text) {
  const char *end = memchr(text->data, '\n', text->len);
  lode_str line = {text->data, end ? (size_t)(end - text->data) : text->len};
  size_t used = end ? line.len + 1 : line.len;
  text->data += used;
  text->len -= used;
  return line;
}

/* | a | b |; a | within backquotes is none. */
static void docs_split_row(lode_str line, docs_row *row) {
  bool code = false;
  size_t from = 1;
  row->n = 0;
  for (size_t i = 1; i < line.len && row->n < DOCS_MAX_COLUMNS; i++) {
    if (line.data[i] == '`') code = !code;
    if (line.data[i] != '|' || code) continue;
    lode_str cell = {line.data + from, i - from};
    while (cell.len && *cell.data == ' ') cell = (lode_str){cell.data + 1, cell.len - 1};
    while (cell.len && cell.data[cell.len - 1] == ' ') cell.len--;
    row->cells[row->n++] = cell;
    from = i + 1;
  }
}

static size_t docs_cell_columns(const docs_view *v, lode_str cell) {
  strbuf text = {0};
  docs_put_inline(v, &text, cell);
  size_t n = text.len ? docs_columns(text.data, text.len) : 0;
  v->out->failed = v->out->failed || text.failed;
  strbuf_release(&text);
  return n;
}

static bool docs_is_rule(const docs_row *row) {
  for (size_t i = 0; i < row->n; i++)
    for (size_t c = 0; c < row->cells[i].len; c++)
      if (!strchr("-: ", row->cells[i].data[c])) return false;
  return row->n > 0;
}

/* Cells beside each other, the last one wrapped. */
static void docs_put_row(docs_view *v, const docs_row *row, const size_t *widths, bool bold) {
  size_t at = DOCS_INDENT;
  strbuf_addf(v->out, "%*s", DOCS_INDENT, "");
  for (size_t i = 0; i < row->n; i++) {
    strbuf cell = {0};
    if (bold && v->color) strbuf_addstr(&cell, DOCS_BOLD);
    docs_put_inline(v, &cell, row->cells[i]);
    if (bold && v->color) strbuf_addstr(&cell, DOCS_PLAIN);
    size_t have = cell.len ? docs_columns(cell.data, cell.len) : 0;
    if (i + 1 == row->n) {
      docs_put_wrapped(v->out, cell.len ? cell.data : "", cell.len, at, at, v->width);
    } else {
      strbuf_add(v->out, cell.data ? cell.data : "", cell.len);
      strbuf_addf(v->out, "%*s", have < widths[i] + 2 ? (int)(widths[i] + 2 - have) : 0, "");
      at += widths[i] + 2;
    }
    v->out->failed = v->out->failed || cell.failed;
    strbuf_release(&cell);
  }
}

/* The first cell as a heading, the others below it: for a table that is too wide. */
static void docs_put_stacked(docs_view *v, const docs_row *head, const docs_row *row) {
  for (size_t i = 0; i < row->n; i++) {
    strbuf cell = {0};
    size_t indent = i == 0 ? DOCS_INDENT : 2 * DOCS_INDENT;
    if (row->cells[i].len == 0) continue;
    if (i > 0 && i < head->n && head->cells[i].len && row->n > 2) {
      docs_put_inline(v, &cell, head->cells[i]);
      strbuf_addstr(&cell, ": ");
    }
    docs_put_inline(v, &cell, row->cells[i]);
    strbuf_addf(v->out, "%*s", (int)indent, "");
    if (cell.len) docs_put_wrapped(v->out, cell.data, cell.len, indent, indent + (i ? DOCS_INDENT : 0), v->width);
    v->out->failed = v->out->failed || cell.failed;
    strbuf_release(&cell);
  }
}

static void docs_end_table(docs_view *v) {
  lode_str rest = {v->table.data, v->table.len}, again = rest;
  size_t widths[DOCS_MAX_COLUMNS] = {0}, before = DOCS_INDENT;
  docs_row head = {0}, row;
  if (v->table.len == 0) return;
  while (rest.len) {
    docs_split_row(docs_next_line(&rest), &row);
    for (size_t i = 0; i < row.n; i++) {
      size_t have = docs_is_rule(&row) ? 0 : docs_cell_columns(v, row.cells[i]);
      if (have > widths[i]) widths[i] = have;
    }
  }
  docs_split_row(docs_next_line(&again), &head);
  for (size_t i = 0; i + 1 < head.n; i++) before += widths[i] + 2;
  bool stacked = before + DOCS_MIN_CELL > v->width || (before > v->width / 2 && before + widths[head.n - 1] > v->width);
  bool named = false;
  for (size_t i = 0; i < head.n; i++) named = named || head.cells[i].len;
  if (!stacked && named) docs_put_row(v, &head, widths, true);
  while (again.len) {
    docs_split_row(docs_next_line(&again), &row);
    if (docs_is_rule(&row)) continue;
    if (stacked)
      docs_put_stacked(v, &head, &row);
    else
      docs_put_row(v, &row, widths, false);
  }
  v->table.len = 0;
}

/* ---- Lines ---- */

/* "- " or "1. ": how many columns the mark takes, with the spaces before it; 0: no item. */
static size_t docs_item_of(lode_str line, const char **mark) {
  size_t space = 0, digits;
  while (space < line.len && line.data[space] == ' ') space++;
  if (space + 2 < line.len && line.data[space] == '-' && line.data[space + 1] == ' ') {
    *mark = "- ";
    return space + 2;
  }
  for (digits = space; digits < line.len && line.data[digits] >= '0' && line.data[digits] <= '9';) digits++;
  if (digits == space || digits + 2 > line.len || line.data[digits] != '.' || line.data[digits + 1] != ' ') return 0;
  *mark = "";
  return digits + 2;
}

static void docs_end_all(docs_view *v) {
  docs_end_block(v);
  docs_end_table(v);
}

static void docs_put_verbatim(docs_view *v, lode_str line, size_t indent) {
  if (line.len && v->color)
    strbuf_addf(v->out, "%*s" DOCS_CODE "%.*s" DOCS_PLAIN, (int)indent, "", (int)line.len, line.data);
  if (line.len && !v->color) strbuf_addf(v->out, "%*s%.*s", (int)indent, "", (int)line.len, line.data);
  strbuf_addch(v->out, '\n');
}

static bool docs_begins(lode_str line, const char *with) {
  size_t len = strlen(with);
  return line.len >= len && memcmp(line.data, with, len) == 0;
}

/* What is not text: comments, fences, pictures, empty lines. */
static bool docs_take_special(docs_view *v, lode_str line) {
  if (v->comment || (!v->fenced && docs_begins(line, "<!--"))) {
    v->comment = docs_find_text(line, 0, "-->") == SIZE_MAX;
    return true;
  }
  if (docs_begins(line, "```")) {
    docs_end_all(v);
    v->fenced = !v->fenced;
    return true;
  }
  if (v->fenced) {
    docs_put_verbatim(v, line, 2 * DOCS_INDENT);
    return true;
  }
  return docs_begins(line, "![");
}

static void docs_take_line(docs_view *v, lode_str line) {
  const char *mark = "";
  if (docs_take_special(v, line)) {
    if (v->fenced) v->blank = false;
    return;
  }
  if (line.len == 0) {
    docs_end_all(v);
    if (!v->blank) strbuf_addch(v->out, '\n');
    v->blank = true;
    return;
  }
  size_t item = docs_item_of(line, &mark);
  v->blank = false;
  if (*line.data == '#') {
    docs_end_all(v);
    docs_put_heading(v, line);
  } else if (*line.data == '|') {
    docs_end_block(v);
    strbuf_add(&v->table, line.data, line.len);
    strbuf_addch(&v->table, '\n');
  } else if (v->block.len == 0 && item == 0 && docs_begins(line, "    ")) {
    docs_put_verbatim(v, (lode_str){line.data + 4, line.len - 4}, 2 * DOCS_INDENT);
  } else {
    docs_end_table(v);
    if (item || v->block.len == 0) {
      docs_end_block(v);
      v->indent = item;
      v->mark = mark;
    }
    if (item && *mark) line = (lode_str){line.data + item, line.len - item};
    if (item && !*mark) v->indent = 0;
    docs_add_to_block(v, line);
  }
}

void docs_put_text(strbuf *out, lode_str markdown, bool color, size_t width) {
  docs_view v = {.out = out, .color = color, .width = width < 40 ? 40 : width, .mark = "", .blank = true};
  while (markdown.len) docs_take_line(&v, docs_next_line(&markdown));
  docs_end_all(&v);
  out->failed = out->failed || v.block.failed || v.table.failed;
  strbuf_release(&v.block);
  strbuf_release(&v.table);
}
