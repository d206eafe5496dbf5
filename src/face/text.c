/* text.c - answers for people: tables, records, figures, sentences. What is shown comes from the fields of the table.
 *
 * Rows that have an id and a document or a rank are shown as records, others as a table with one column a field.
 * A table is laid out when its first LAYOUT_ROWS rows are known, so that memory stays bounded. Text of users is
 * shown with control characters made visible: a document cannot talk to the terminal.
 */
#include "cli.h"

enum { LAYOUT_ROWS = 1000, PREVIEW_LINES = 4, CELL_CHARS = 60, FIELD_CHARS = 20, NARROWEST = 12 };

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"

static void paint(lode__writer *w, const char *code) {
  if (w->style.color) strbuf_addstr(&w->out, code);
}

/* ---- Values ---- */

void lode__put_grouped(strbuf *out, uint64_t n) {
  char digits[24];
  int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) strbuf_addch(out, ',');
    strbuf_addch(out, digits[i]);
  }
}

void lode__put_bytes(strbuf *out, uint64_t n) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double d = (double)n / 1024;
  size_t unit = 0;
  if (n < 1024) {
    strbuf_addf(out, "%u bytes", (unsigned)n);
    return;
  }
  for (; d >= 1023.95 && unit < 5; unit++) d /= 1024;
  strbuf_addf(out, "%.1f %s", d, units[unit]);
}

static void put_char(strbuf *out, const char *p, size_t width) {
  uint32_t code = utf8_decode(p, width);
  if (code == '\t') strbuf_addch(out, ' ');
  else if (code == '\n') strbuf_addstr(out, "⏎");
  else if (!utf8_is_hidden(code)) strbuf_add(out, p, width);
  else if (code <= 0xFF) strbuf_addf(out, "\\x%02x", (unsigned)code);
  else strbuf_addf(out, code <= 0xFFFF ? "\\u%04x" : "\\u{%x}", (unsigned)code);
}

void lode__put_clean(strbuf *out, lode_str text, size_t max) {
  size_t chars = 0;
  for (size_t i = 0; i < text.len; chars++) {
    size_t width = utf8_width(text.data + i, text.len - i), n = width ? width : 1;
    if (max && chars + 1 >= max && i + n < text.len) {
      strbuf_addstr(out, "…");
      return;
    }
    if (width) put_char(out, text.data + i, width);
    else strbuf_addstr(out, "\xef\xbf\xbd");
    i += n;
  }
}

static size_t columns(const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
  return n;
}

/* Counts by name, {"c":120,"go":3}: c 120, go 3. A list of texts: its members. False for anything else. */
static bool put_members(strbuf *out, const json_doc *json, uint32_t node) {
  bool object = json->nodes[node].type == JSON_NODE_OBJECT;
  json_node_type member = object ? JSON_NODE_INT : JSON_NODE_STRING;
  uint32_t first = node + 1, end = json->nodes[node].next;
  if (!object && json->nodes[node].type != JSON_NODE_ARRAY) return false;
  for (uint32_t i = first; i < end; i = json->nodes[i + object].next)
    if (json->nodes[i + object].type != member || (object && json->nodes[i + 1].u.i < 0)) return false;
  if (first == end) strbuf_addch(out, '-');
  for (uint32_t i = first; i < end; i = json->nodes[i + object].next) {
    if (i > first) strbuf_addstr(out, ", ");
    strbuf_add(out, json->nodes[i].u.s.data, json->nodes[i].u.s.len);
    if (object) strbuf_addch(out, ' ');
    if (object) lode__put_grouped(out, (uint64_t)json->nodes[i + 1].u.i);
  }
  return true;
}

/* A value as text, by the type of its field. */
static void put_value(strbuf *out, const json_doc *json, uint32_t node, lode__field_type type, size_t max) {
  const json_node *x = &json->nodes[node];
  strbuf text = {0};
  if (x->type == JSON_NODE_NULL) {
    strbuf_addstr(out, "-");
  } else if (x->type == JSON_NODE_STRING) {
    lode__put_clean(out, x->u.s, max);
  } else if (x->type == JSON_NODE_INT && x->u.i >= 0 && type == LODE__FIELD_COUNT) {
    lode__put_grouped(out, (uint64_t)x->u.i);
  } else if (x->type == JSON_NODE_INT && x->u.i >= 0 && type == LODE__FIELD_BYTES) {
    lode__put_bytes(out, (uint64_t)x->u.i);
  } else if (x->type == JSON_NODE_DOUBLE && type == LODE__FIELD_REAL) {
    strbuf_addf(out, "%.6g", x->u.d);
  } else if (type == LODE__FIELD_BOOL) {
    strbuf_addstr(out, x->type == JSON_NODE_TRUE ? "yes" : "no");
  } else {
    bool listed = (type == LODE__FIELD_OBJECT || type == LODE__FIELD_TEXTS) && put_members(&text, json, node);
    if (!listed) json_put_node(&text, json, node);
    lode__put_clean(out, (lode_str){text.data, text.len}, max);
    out->failed = out->failed || text.failed;
    strbuf_release(&text);
  }
}

/* ---- Records ---- */

static void put_line(lode__writer *w, lode_str line, size_t indent) {
  size_t width = w->full ? 0 : w->style.width > indent + 20 ? w->style.width - indent : 20;
  if (line.len && line.data[line.len - 1] == '\r') line.len--;
  for (size_t i = 0; line.len && i < indent; i++) strbuf_addch(&w->out, ' ');
  lode__put_clean(&w->out, line, width);
  strbuf_addch(&w->out, '\n');
}

static void put_document(lode__writer *w, lode_str text, size_t indent) {
  size_t lines = 0;
  while (text.len) {
    const char *end = memchr(text.data, '\n', text.len);
    size_t len = end ? (size_t)(end - text.data) : text.len;
    if (!w->full && lines == PREVIEW_LINES) {
      paint(w, DIM);
      put_line(w, STR_LIT("…"), indent);
      paint(w, PLAIN);
      return;
    }
    put_line(w, (lode_str){text.data, len}, indent);
    lines++;
    text.data += end ? len + 1 : len;
    text.len -= end ? len + 1 : len;
  }
}

static void put_metadata(lode__writer *w, uint32_t object, size_t indent) {
  const json_doc *json = &w->parsed;
  for (size_t i = 0; i < indent; i++) strbuf_addch(&w->out, ' ');
  paint(w, DIM);
  for (uint32_t i = object + 1; i < json->nodes[object].next; i = json->nodes[i + 1].next) {
    if (i > object + 1) strbuf_addstr(&w->out, "  ");
    lode__put_clean(&w->out, json->nodes[i].u.s, w->full ? 0 : CELL_CHARS);
    strbuf_addch(&w->out, '=');
    put_value(&w->out, json, i + 1, LODE__FIELD_SCALAR, w->full ? 0 : CELL_CHARS);
  }
  paint(w, PLAIN);
  strbuf_addch(&w->out, '\n');
}

static uint32_t value_of(const lode__writer *w, const char *name) {
  uint32_t node = json_get(&w->parsed, 0, str_of(name));
  return node && w->parsed.nodes[node].type != JSON_NODE_NULL ? node : 0;
}

static void put_measure(lode__writer *w, const char *name) {
  uint32_t node = value_of(w, name);
  if (!node) return;
  paint(w, DIM);
  strbuf_addf(&w->out, "  %s ", name);
  put_value(&w->out, &w->parsed, node, LODE__FIELD_REAL, 0);
  paint(w, PLAIN);
}

static void put_vector(lode__writer *w, uint32_t node, size_t indent) {
  size_t start = w->out.len;
  for (size_t i = 0; i < indent; i++) strbuf_addch(&w->out, ' ');
  strbuf_addf(&w->out, "%zu numbers: ", w->parsed.nodes[node].u.count);
  size_t used = w->out.len - start;
  size_t room = w->style.width > used + 20 ? w->style.width - used : 20;
  put_value(&w->out, &w->parsed, node, LODE__FIELD_VECTOR, w->full ? 0 : room);
  strbuf_addch(&w->out, '\n');
}

static void put_record(lode__writer *w) {
  uint32_t rank = value_of(w, "rank"), query = value_of(w, "query"), node;
  size_t indent = rank ? 5 : 2;
  if (query && (uint64_t)w->parsed.nodes[query].u.i != w->query) {
    w->query = (uint64_t)w->parsed.nodes[query].u.i;
    paint(w, BOLD);
    strbuf_addf(&w->out, "\nquery %llu\n", (unsigned long long)w->query);
    paint(w, PLAIN);
  }
  if (rank) strbuf_addf(&w->out, "%3lld  ", (long long)w->parsed.nodes[rank].u.i);
  paint(w, CYAN);
  if ((node = value_of(w, "id"))) lode__put_clean(&w->out, w->parsed.nodes[node].u.s, 0);
  paint(w, PLAIN);
  put_measure(w, "distance");
  put_measure(w, "score");
  strbuf_addch(&w->out, '\n');
  if ((node = value_of(w, "document"))) put_document(w, w->parsed.nodes[node].u.s, indent);
  if ((node = value_of(w, "metadata"))) put_metadata(w, node, indent);
  if ((node = value_of(w, "embedding"))) put_vector(w, node, indent);
}

/* ---- Tables ---- */

static bool is_number(lode__field_type type) {
  return type == LODE__FIELD_COUNT || type == LODE__FIELD_NUMBER || type == LODE__FIELD_BYTES ||
      type == LODE__FIELD_REAL;
}

static size_t column_count(const lode__op *op) {
  size_t n = 0;
  while (n < 16 && op->row[n].name) n++;
  return n;
}

/* The last cell of a row that is wider than the terminal: a sentence goes on below itself, the rest is cut. */
static void put_narrow(lode__writer *w, const char *text, size_t column) {
  size_t at = w->style.width - w->room;
  if (w->op->row[column].type == LODE__FIELD_TEXT) {
    lode__put_wrapped(&w->out, text, at, at, w->style.width);
    return;
  }
  lode__put_clean(&w->out, str_of(text), w->room);
  strbuf_addch(&w->out, '\n');
}

static void put_cell(lode__writer *w, const char *text, size_t column, bool last) {
  size_t len = strlen(text), have = columns(text, len), pad = w->widths[column] > have ? w->widths[column] - have : 0;
  bool right = is_number(w->op->row[column].type);
  if (right) strbuf_addf(&w->out, "%*s", (int)pad, "");
  if (last && !right && w->room && have > w->room) {
    put_narrow(w, text, column);
    return;
  }
  strbuf_add(&w->out, text, len);
  if (!right && !last) strbuf_addf(&w->out, "%*s", (int)pad, "");
  strbuf_addstr(&w->out, last ? "\n" : "  ");
}

/* In capitals, with spaces. */
static const char *heading(const lode__field *field, char *name, size_t size) {
  snprintf(name, size, "%s", field->name);
  for (char *p = name; *p; p++) *p = *p == '_' ? ' ' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
  return name;
}

static void put_heading(lode__writer *w, size_t n) {
  char name[40];
  if (w->stacked) return;
  paint(w, BOLD);
  for (size_t i = 0; i < n; i++) put_cell(w, heading(&w->op->row[i], name, sizeof name), i, i + 1 == n);
  paint(w, PLAIN);
}

/* NAME   value, a line each, and an empty line between rows. */
static void put_stacked(lode__writer *w, const char *text, size_t column, bool first) {
  size_t names = 0;
  char name[40];
  for (const lode__field *f = w->op->row; f->name; f++) names = strlen(f->name) > names ? strlen(f->name) : names;
  if (column == 0 && !first) strbuf_addch(&w->out, '\n');
  paint(w, BOLD);
  strbuf_addf(&w->out, "%-*s  ", (int)names, heading(&w->op->row[column], name, sizeof name));
  paint(w, PLAIN);
  lode__put_wrapped(&w->out, text, names + 2, names + 2, w->style.width);
}

static void put_cells(lode__writer *w, size_t n, bool first) {
  const char *cell = w->cells.data;
  for (size_t i = 0; i < w->n_cells; i++) {
    if (w->stacked) put_stacked(w, cell, i % n, first && i == 0);
    else put_cell(w, cell, i % n, i % n + 1 == n);
    cell += strlen(cell) + 1;
  }
  w->n_cells = 0;
  w->cells.len = 0;
}

/* How the columns fit a terminal; files and pipes get lines as long as they are. */
static void fit(lode__writer *w, size_t n) {
  size_t before = 2 * (n - 1), last = w->widths[n - 1];
  for (size_t i = 0; i + 1 < n; i++) before += w->widths[i];
  if (!w->narrow || before + last <= w->style.width) return;
  w->stacked = before + (is_number(w->op->row[n - 1].type) ? last : NARROWEST) > w->style.width;
  if (!w->stacked) w->room = w->style.width - before;
}

void lode__text_layout(lode__writer *w) {
  if (w->n_cells == 0 || w->cells.failed) {
    w->out.failed = w->out.failed || w->cells.failed;
    return;
  }
  size_t n = column_count(w->op);
  const char *cell = w->cells.data;
  bool first = !w->laid_out;
  if (first) {
    for (size_t i = 0; i < n; i++) w->widths[i] = strlen(w->op->row[i].name);
    for (size_t i = 0; i < w->n_cells; i++) {
      size_t len = strlen(cell), have = columns(cell, len);
      if (have > w->widths[i % n]) w->widths[i % n] = have;
      cell += len + 1;
    }
    fit(w, n);
    put_heading(w, n);
    w->laid_out = true;
  }
  put_cells(w, n, first);
}

static void put_table_row(lode__writer *w) {
  size_t n = column_count(w->op);
  for (size_t i = 0; i < n; i++) {
    uint32_t node = json_get(&w->parsed, 0, str_of(w->op->row[i].name));
    /* A sentence at the end of a row is shown whole */
    bool whole = w->full || (i + 1 == n && w->op->row[i].type != LODE__FIELD_OBJECT);
    if (node) put_value(&w->cells, &w->parsed, node, w->op->row[i].type, whole ? 0 : CELL_CHARS);
    strbuf_addch(&w->cells, '\0');
    w->n_cells++;
  }
  if (w->laid_out || w->n_cells >= LAYOUT_ROWS * n) lode__text_layout(w);
}

lode_status lode__text_row(lode__writer *w, lode_error *err) {
  bool record = false;
  if (w->op->layout == LODE__LAYOUT_HITS) lode__text_hit(w);
  if (w->op->layout == LODE__LAYOUT_CHECKS) lode__text_check(w);
  if (w->op->layout != LODE__LAYOUT_AUTO) return w->out.failed ? err_nomem(err) : LODE_OK;
  for (const lode__field *f = w->op->row; f->name; f++) record = record || f->type == LODE__FIELD_VECTOR;
  if (record) put_record(w);
  else put_table_row(w);
  return w->out.failed || w->cells.failed ? err_nomem(err) : LODE_OK;
}

/* ---- Summaries ---- */

static lode__field_type type_of(const lode__field *fields, lode_str name) {
  for (; fields && fields->name; fields++)
    if (str_eq(str_of(fields->name), name)) return fields->type;
  return LODE__FIELD_SCALAR;
}

static bool is_blank(const json_doc *json, uint32_t node) {
  const json_node *x = &json->nodes[node];
  return node == 0 || x->type == JSON_NODE_NULL || x->type == JSON_NODE_FALSE ||
      (x->type == JSON_NODE_INT && x->u.i == 0);
}

/* "{written} added[, {skipped} kept]"; what is in brackets goes when a field in it is blank. {?made} only asks, and shows nothing. */
static void put_sentence(lode__writer *w, const char *say) {
  size_t open_at = SIZE_MAX;
  bool drop = false;
  for (const char *p = say; *p; p++) {
    if (*p == '[') {
      open_at = w->out.len;
      drop = false;
    } else if (*p == ']') {
      if (drop && !w->out.failed) w->out.len = open_at;
    } else if (*p == '{') {
      const char *end = strchr(p, '}');
      bool asks = p[1] == '?';
      lode_str name = {p + 1 + asks, (size_t)(end - p - 1) - asks};
      uint32_t node = json_get(&w->parsed, 0, name);
      drop = drop || is_blank(&w->parsed, node);
      if (node && !asks) put_value(&w->out, &w->parsed, node, type_of(w->op->summary, name), 0);
      p = end;
    } else {
      strbuf_addch(&w->out, *p);
    }
  }
  strbuf_addch(&w->out, '\n');
}

/* One figure a line, names aligned. */
static void put_figures(lode__writer *w) {
  size_t column = 14;
  for (const lode__field *f = w->op->summary; f->name; f++)
    if (json_get(&w->parsed, 0, str_of(f->name)) && strlen(f->name) > column) column = strlen(f->name);
  size_t room = w->style.width > column + 1 + FIELD_CHARS ? w->style.width - column - 1 : FIELD_CHARS;
  for (const lode__field *f = w->op->summary; f->name; f++) {
    uint32_t node = json_get(&w->parsed, 0, str_of(f->name));
    char name[40];
    if (!node) continue;
    snprintf(name, sizeof name, "%s", f->name);
    for (char *p = name; *p; p++)
      if (*p == '_') *p = ' ';
    paint(w, DIM);
    strbuf_addf(&w->out, "%-*s", (int)column, name);
    paint(w, PLAIN);
    strbuf_addch(&w->out, ' ');
    put_value(&w->out, &w->parsed, node, f->type, w->full || f->type == LODE__FIELD_TEXT ? 0 : room);
    strbuf_addch(&w->out, '\n');
  }
}

lode_status lode__text_summary(lode__writer *w, lode_error *err) {
  lode__text_layout(w);
  /* What was asked for is shown, what was merely done is not when quiet */
  if (w->quiet && w->op->say && !(w->op->flags & LODE__OP_READS)) return LODE_OK;
  if (w->op->say) put_sentence(w, w->op->say);
  else if (!(w->op->flags & LODE__OP_HIDE_SUMMARY)) put_figures(w);
  return w->out.failed ? err_nomem(err) : LODE_OK;
}
