/* SPDX-License-Identifier: Apache-2.0 */
/* cli_text.c - results for people: tables, records, summaries, sentences. What is shown is derived from the fields of
 * the table.
 *
 * Rows of operations that have a vector field are shown as records, others as a table with one column per field. A
 * table is laid out when its first TEXT_LAYOUT_ROWS rows are known, so that memory stays bounded. Control characters
 * in users' texts are made visible: a document cannot control the terminal.
 */
#include "cli/cli_writer.h"
#include "ops/op_text.h"

enum {
  TEXT_LAYOUT_ROWS = 1000,
  TEXT_PREVIEW_LINES = 4,
  TEXT_CELL_CHARS = 60,
  TEXT_FIELD_CHARS = 20,
  TEXT_MIN_WIDTH = 12
};

#define TEXT_CYAN "\033[36m"

void cli_text_paint(cli_writer *w, const char *code) {
  if (w->style.color) strbuf_addstr(&w->out, w->muted ? "\033[0;2m" : code);
}

static size_t text_columns(const char *text, size_t len) {
  size_t n = 0;
  for (size_t i = 0; i < len; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
  return n;
}

/* ---- Records ---- */

static void text_put_line(cli_writer *w, lode_str line, size_t indent) {
  size_t width = w->full ? 0 : w->style.width > indent + 20 ? w->style.width - indent : 20;
  if (line.len && line.data[line.len - 1] == '\r') line.len--;
  for (size_t i = 0; line.len && i < indent; i++) strbuf_addch(&w->out, ' ');
  op_put_printable(&w->out, line, width);
  strbuf_addch(&w->out, '\n');
}

static void text_put_document(cli_writer *w, lode_str text, size_t indent) {
  size_t lines = 0;
  while (text.len) {
    const char *end = memchr(text.data, '\n', text.len);
    size_t len = end ? (size_t)(end - text.data) : text.len;
    if (!w->full && lines == TEXT_PREVIEW_LINES) {
      cli_text_paint(w, CLI_DIM);
      text_put_line(w, STR_LIT("…"), indent);
      cli_text_paint(w, CLI_PLAIN);
      return;
    }
    text_put_line(w, (lode_str){text.data, len}, indent);
    lines++;
    text.data += end ? len + 1 : len;
    text.len -= end ? len + 1 : len;
  }
}

static void text_put_metadata(cli_writer *w, lode_str metadata, size_t indent) {
  json_doc json = {0};
  size_t max = w->full ? 0 : TEXT_CELL_CHARS;
  if (json_parse(&json, metadata, NULL, NULL) != LODE_OK) {
    w->out.failed = true; /* only for lack of memory: it is JSON */
    return;
  }
  for (size_t i = 0; i < indent; i++) strbuf_addch(&w->out, ' ');
  cli_text_paint(w, CLI_DIM);
  for (uint32_t i = 1; i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    if (i > 1) strbuf_addstr(&w->out, "  ");
    op_put_printable(&w->out, json.nodes[i].u.s, max);
    strbuf_addch(&w->out, '=');
    op_put_node(&w->out, &json, i + 1, max);
  }
  cli_text_paint(w, CLI_PLAIN);
  strbuf_addch(&w->out, '\n');
  json_release(&json);
}

static void text_put_measure(cli_writer *w, const op_row *row, const char *name) {
  const op_value *v = op_row_get(row, name);
  if (!v) return;
  cli_text_paint(w, CLI_DIM);
  strbuf_addf(&w->out, "  %s ", name);
  op_put_value(&w->out, v, 0);
  cli_text_paint(w, CLI_PLAIN);
}

static void text_put_vector(cli_writer *w, const op_value *vector, size_t indent) {
  size_t start = w->out.len;
  for (size_t i = 0; i < indent; i++) strbuf_addch(&w->out, ' ');
  strbuf_addf(&w->out, "%u numbers: ", vector->u.vector.dimension);
  size_t used = w->out.len - start;
  size_t space = w->style.width > used + 20 ? w->style.width - used : 20;
  op_put_value(&w->out, vector, w->full ? 0 : space);
  strbuf_addch(&w->out, '\n');
}

static void text_put_record(cli_writer *w, const op_row *row) {
  const op_value *rank = op_row_get(row, "rank"), *query = op_row_get(row, "query"), *v;
  size_t indent = rank ? 5 : 2;
  if (query && query->u.count != w->query) {
    w->query = query->u.count;
    cli_text_paint(w, CLI_BOLD);
    strbuf_addf(&w->out, "\nquery %llu\n", (unsigned long long)w->query);
    cli_text_paint(w, CLI_PLAIN);
  }
  if (rank) strbuf_addf(&w->out, "%3llu  ", (unsigned long long)rank->u.count);
  cli_text_paint(w, TEXT_CYAN);
  op_put_printable(&w->out, op_row_get_text(row, "id"), 0);
  cli_text_paint(w, CLI_PLAIN);
  text_put_measure(w, row, "distance");
  text_put_measure(w, row, "score");
  strbuf_addch(&w->out, '\n');
  text_put_document(w, op_row_get_text(row, "document"), indent);
  if ((v = op_row_get(row, "metadata"))) text_put_metadata(w, v->u.text, indent);
  if ((v = op_row_get(row, "embedding"))) text_put_vector(w, v, indent);
}

/* ---- Tables ---- */

static bool text_is_number(op_field_type type) {
  return type == OP_FIELD_COUNT || type == OP_FIELD_NUMBER || type == OP_FIELD_BYTES || type == OP_FIELD_REAL;
}

static size_t text_column_count(const op_def *op) {
  size_t n = 0;
  while (n < 16 && op->row[n].name) n++;
  return n;
}

/* The last cell of a row, if it is too wide for the terminal: text is wrapped, other values are truncated. */
static void text_put_narrow(cli_writer *w, const char *text, size_t column) {
  size_t at = w->style.width - w->last_width;
  if (w->op->row[column].type == OP_FIELD_TEXT) {
    cli_put_wrapped(&w->out, text, at, at, w->style.width);
    return;
  }
  op_put_printable(&w->out, str_of(text), w->last_width);
  strbuf_addch(&w->out, '\n');
}

static void text_put_cell(cli_writer *w, const char *text, size_t column, bool last) {
  size_t len = strlen(text), have = text_columns(text, len),
         pad = w->widths[column] > have ? w->widths[column] - have : 0;
  bool right = text_is_number(w->op->row[column].type);
  if (right) strbuf_addf(&w->out, "%*s", (int)pad, "");
  if (last && !right && w->last_width && have > w->last_width) {
    text_put_narrow(w, text, column);
    return;
  }
  strbuf_add(&w->out, text, len);
  if (!right && !last) strbuf_addf(&w->out, "%*s", (int)pad, "");
  strbuf_addstr(&w->out, last ? "\n" : "  ");
}

/* Upper case, with spaces. */
static const char *text_heading(const op_field *field, char *name, size_t size) {
  snprintf(name, size, "%s", field->name);
  for (char *p = name; *p; p++) *p = *p == '_' ? ' ' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
  return name;
}

static void text_put_heading(cli_writer *w) {
  char name[40];
  if (w->stacked) return;
  cli_text_paint(w, CLI_BOLD);
  for (size_t i = 0; i < w->shown; i++)
    text_put_cell(w, text_heading(&w->op->row[i], name, sizeof name), i, i + 1 == w->shown);
  cli_text_paint(w, CLI_PLAIN);
}

/* NAME   value, one per line, with an empty line between rows. */
static void text_put_stacked(cli_writer *w, const char *text, size_t column, bool first) {
  size_t names = 0;
  char name[40];
  for (size_t i = 0; i < w->shown; i++) {
    size_t len = strlen(w->op->row[i].name);
    if (len > names) names = len;
  }
  if (column == 0 && !first) strbuf_addch(&w->out, '\n');
  cli_text_paint(w, CLI_BOLD);
  strbuf_addf(&w->out, "%-*s  ", (int)names, text_heading(&w->op->row[column], name, sizeof name));
  cli_text_paint(w, CLI_PLAIN);
  cli_put_wrapped(&w->out, text, names + 2, names + 2, w->style.width);
}

static void text_put_cells(cli_writer *w, size_t n, bool first) {
  const char *cell = w->cells.data;
  for (size_t i = 0; i < w->n_cells; i++) {
    if (i % n < w->shown && w->stacked)
      text_put_stacked(w, cell, i % n, first && i == 0);
    else if (i % n < w->shown)
      text_put_cell(w, cell, i % n, i % n + 1 == w->shown);
    cell += strlen(cell) + 1;
  }
  w->n_cells = 0;
  w->cells.len = 0;
}

/* Fits the columns to the terminal; files and pipes get full lines. */
static void text_fit_columns(cli_writer *w) {
  size_t n = w->shown, before = 2 * (n - 1), last = w->widths[n - 1];
  for (size_t i = 0; i + 1 < n; i++) before += w->widths[i];
  if (!w->narrow || before + last <= w->style.width) return;
  w->stacked = before + (text_is_number(w->op->row[n - 1].type) ? last : TEXT_MIN_WIDTH) > w->style.width;
  if (!w->stacked) w->last_width = w->style.width - before;
}

/* A column at the end that no row of the layout has a value for is not shown. */
static bool text_is_empty_column(const cli_writer *w, size_t column) {
  return w->widths[column] == 0 && w->op->row[column].flags & OP_FIELD_OPTIONAL;
}

void cli_text_layout(cli_writer *w) {
  if (w->n_cells == 0 || w->cells.failed) {
    w->out.failed = w->out.failed || w->cells.failed;
    return;
  }
  size_t n = text_column_count(w->op);
  const char *cell = w->cells.data;
  bool first = !w->laid_out;
  if (first) {
    memset(w->widths, 0, sizeof w->widths);
    for (size_t i = 0; i < w->n_cells; i++) {
      size_t len = strlen(cell), have = text_columns(cell, len);
      if (have > w->widths[i % n]) w->widths[i % n] = have;
      cell += len + 1;
    }
    for (w->shown = n; w->shown > 1 && text_is_empty_column(w, w->shown - 1);) w->shown--;
    for (size_t i = 0; i < n; i++) {
      size_t heading = strlen(w->op->row[i].name);
      if (heading > w->widths[i]) w->widths[i] = heading;
    }
    text_fit_columns(w);
    text_put_heading(w);
    w->laid_out = true;
  }
  text_put_cells(w, n, first);
}

static void text_put_table_row(cli_writer *w, const op_row *row) {
  size_t n = text_column_count(w->op);
  for (size_t i = 0; i < n; i++) {
    const op_value *v = op_row_find(row, w->op->row[i].name);
    /* text at the end of a row is not truncated */
    bool whole = w->full || (i + 1 == n && w->op->row[i].type != OP_FIELD_OBJECT);
    if (v) op_put_value(&w->cells, v, whole ? 0 : TEXT_CELL_CHARS);
    strbuf_addch(&w->cells, '\0');
    w->n_cells++;
  }
  if (w->laid_out || w->n_cells >= TEXT_LAYOUT_ROWS * n) cli_text_layout(w);
}

lode_status cli_text_row(cli_writer *w, const op_row *row, lode_error *err) {
  bool record = false;
  if (w->op->layout == OP_LAYOUT_HITS) cli_text_hit(w, row);
  if (w->op->layout == OP_LAYOUT_CHECKS) cli_text_check(w, row);
  if (w->op->layout >= OP_LAYOUT_OUTLINE) cli_text_symbol(w, row);
  if (w->op->layout != OP_LAYOUT_AUTO) return w->out.failed ? err_nomem(err) : LODE_OK;
  for (const op_field *f = w->op->row; f->name; f++) record = record || f->type == OP_FIELD_VECTOR;
  if (record)
    text_put_record(w, row);
  else
    text_put_table_row(w, row);
  return w->out.failed || w->cells.failed ? err_nomem(err) : LODE_OK;
}

/* ---- The explanation of a query ---- */

enum { TEXT_STEP_INDENT = 10 };

/* Writes the line, which begins at the indent, and empties it. */
static void text_put_step_line(cli_writer *w, strbuf *line) {
  strbuf_addch(line, '\0');
  if (!line->failed) cli_put_wrapped(&w->out, line->data, TEXT_STEP_INDENT, TEXT_STEP_INDENT, w->style.width);
  line->len = 0;
}

/* Name, method and reason of a step, then its figures. */
static void text_put_step(cli_writer *w, const json_doc *json, uint32_t step, strbuf *line) {
  uint32_t name = json_get(json, step, STR_LIT("step")), method = json_get(json, step, STR_LIT("method")),
           why = json_get(json, step, STR_LIT("why"));
  if (name) op_put_node(line, json, name, TEXT_STEP_INDENT - 1);
  cli_text_paint(w, CLI_BOLD);
  strbuf_addf(&w->out, "%-*.*s", TEXT_STEP_INDENT, (int)line->len, line->len ? line->data : "");
  cli_text_paint(w, CLI_PLAIN);
  line->len = 0;
  if (method) op_put_node(line, json, method, 0);
  if (method && why) strbuf_addstr(line, ": ");
  if (why) op_put_node(line, json, why, 0);
  text_put_step_line(w, line);
  for (uint32_t i = step + 1; i < json->nodes[step].next; i = json->nodes[i + 1].next) {
    lode_str label = json->nodes[i].u.s;
    if (i + 1 == name || i + 1 == method || i + 1 == why) continue;
    if (line->len) strbuf_addstr(line, ", ");
    bool is_time = str_eq(label, STR_LIT("ms"));
    for (size_t c = 0; c < label.len && !is_time; c++) strbuf_addch(line, label.data[c] == '_' ? ' ' : label.data[c]);
    if (!is_time) strbuf_addch(line, ' ');
    op_put_node(line, json, i + 1, 0);
    if (is_time) strbuf_addstr(line, " ms");
  }
  if (line->len == 0) return;
  strbuf_addf(&w->out, "%*s", TEXT_STEP_INDENT, "");
  text_put_step_line(w, line);
}

static void text_put_explanation(cli_writer *w, lode_str explanation) {
  json_doc json = {0};
  strbuf line = {0};
  if (json_parse(&json, explanation, NULL, NULL) == LODE_OK) {
    uint32_t steps = json_get(&json, 0, STR_LIT("steps"));
    for (uint32_t at = steps + 1; steps && at < json.nodes[steps].next; at = json.nodes[at].next)
      text_put_step(w, &json, at, &line);
  } else {
    w->out.failed = true; /* only for lack of memory: it is JSON */
  }
  w->out.failed = w->out.failed || line.failed;
  strbuf_release(&line);
  json_release(&json);
}

/* ---- Summaries ---- */

/* Details, and what there is nothing to say about, are shown on request. */
static bool text_is_hidden(const cli_writer *w, const op_field *f, const op_value *v) {
  bool nothing = v->type == OP_VALUE_NULL || (v->type == OP_VALUE_COUNT && v->u.count == 0);
  if (w->verbose || w->full) return false;
  return f->flags & OP_FIELD_DETAIL || (f->flags & OP_FIELD_QUIET && nothing);
}

/* One value per line, names aligned. */
static void text_put_figures(cli_writer *w, const op_row *summary) {
  size_t column = 14;
  const op_value *explanation = op_row_get(summary, "explain");
  if (explanation) {
    text_put_explanation(w, explanation->u.text);
    return;
  }
  for (size_t i = 0; i < summary->n; i++) {
    const op_value *v = &summary->values[i];
    size_t len = text_is_hidden(w, v->field, v) ? 0 : strlen(v->field->name);
    if (len > column) column = len;
  }
  size_t space = w->style.width > column + 1 + TEXT_FIELD_CHARS ? w->style.width - column - 1 : TEXT_FIELD_CHARS;
  for (const op_field *f = w->op->summary; f->name; f++) {
    const op_value *v = op_row_find(summary, f->name);
    char name[40];
    if (!v || text_is_hidden(w, f, v)) continue;
    size_t unit = f->type == OP_FIELD_TIME ? strlen("_ms") : 0; /* not of a date */
    snprintf(name, sizeof name, "%.*s", (int)(strlen(f->name) - unit), f->name);
    for (char *p = name; *p; p++)
      if (*p == '_') *p = ' ';
    cli_text_paint(w, CLI_DIM);
    strbuf_addf(&w->out, "%-*s", (int)column, name);
    cli_text_paint(w, CLI_PLAIN);
    strbuf_addch(&w->out, ' ');
    op_put_value(&w->out, v, w->full || f->type == OP_FIELD_TEXT ? 0 : space);
    strbuf_addch(&w->out, '\n');
  }
}

lode_status cli_text_summary(cli_writer *w, const op_row *summary, lode_error *err) {
  cli_text_layout(w);
  /* quiet hides reports of what was done, but not results */
  if (w->quiet && w->op->say && !(w->op->flags & OP_READ_ONLY)) return LODE_OK;
  if (w->op->say)
    op_put_sentence(&w->out, w->op->say, summary);
  else if (!(w->op->flags & OP_HIDE_SUMMARY))
    text_put_figures(w, summary);
  return w->out.failed ? err_nomem(err) : LODE_OK;
}
