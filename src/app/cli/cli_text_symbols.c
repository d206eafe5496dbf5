/* SPDX-License-Identifier: Apache-2.0 */
/* cli_text_symbols.c - definitions, uses and calls for people.
 *
 *   src/net/retry.go
 *     12-20   struct   Backoff struct
 *     14      property   tries int
 *     41-67   method   func (b *Backoff) Next() time.Duration
 *
 * Rows of one file stand below its path, what lies inside of something else is indented. Calls are trees: below a
 * function those that call it, or those that it calls.
 */
#include "cli/cli_writer.h"
#include "ops/op_text.h"

enum { SYMBOLS_MIN_WIDTH = 24, SYMBOLS_MAX_INDENT = 24, SYMBOLS_LINES = 11, SYMBOLS_KIND = 9 };

#define SYMBOLS_PATH_COLOR "\033[35m"
#define SYMBOLS_LINE_COLOR "\033[32m"

static void symbols_put(cli_writer *w, const char *color, lode_str text, size_t max) {
  cli_text_paint(w, color);
  op_put_printable(&w->out, text, max);
  cli_text_paint(w, CLI_PLAIN);
}

static void symbols_put_spaces(cli_writer *w, size_t n) { strbuf_addf(&w->out, "%*s", (int)n, ""); }

/* Is it another heading than that of the last row? Remembers it. */
static bool symbols_is_new_heading(cli_writer *w, lode_str a, lode_str b) {
  bool same = w->heading.len == a.len + b.len + 1 && memcmp(w->heading.data, a.data, a.len) == 0 &&
              memcmp(w->heading.data + a.len + 1, b.data, b.len) == 0;
  if (same) return false;
  w->heading.len = 0;
  strbuf_add(&w->heading, a.data, a.len);
  strbuf_addch(&w->heading, '\n');
  strbuf_add(&w->heading, b.data, b.len);
  return true;
}

static void symbols_put_path_heading(cli_writer *w, const op_row *row) {
  lode_str path = op_row_get_text(row, "path");
  if (!symbols_is_new_heading(w, path, STR_LIT(""))) return;
  if (w->rows) strbuf_addch(&w->out, '\n');
  symbols_put(w, SYMBOLS_PATH_COLOR, path, 0);
  strbuf_addch(&w->out, '\n');
}

/* "12-20", or "12"; how many characters. */
static size_t symbols_put_lines(cli_writer *w, const op_row *row) {
  unsigned long long first = op_row_get_count(row, "line"), last = op_row_get_count(row, "end_line");
  char text[48];
  int n =
      last > first ? snprintf(text, sizeof text, "%llu-%llu", first, last) : snprintf(text, sizeof text, "%llu", first);
  symbols_put(w, SYMBOLS_LINE_COLOR, str_of(text), 0);
  return (size_t)n;
}

/* What is left of the terminal's width; 0: no limit. */
static size_t symbols_space(const cli_writer *w, size_t used) {
  if (w->full || !w->narrow) return 0;
  return w->style.width > used + SYMBOLS_MIN_WIDTH ? w->style.width - used : SYMBOLS_MIN_WIDTH;
}

/* Lines, kind, and the signature; without one the name. */
static void symbols_put_outline(cli_writer *w, const op_row *row) {
  lode_str text = op_row_get_text(row, "signature"), kind = op_row_get_text(row, "kind");
  size_t level = 2 * (size_t)op_row_get_count(row, "level"), used;
  bool nested = op_row_get(row, "level") != NULL;
  symbols_put_path_heading(w, row);
  strbuf_addstr(&w->out, "  ");
  used = symbols_put_lines(w, row);
  symbols_put_spaces(w, used < SYMBOLS_LINES ? SYMBOLS_LINES - used : 1);
  symbols_put(w, CLI_DIM, kind, 0);
  symbols_put_spaces(w, kind.len < SYMBOLS_KIND ? SYMBOLS_KIND - kind.len + 1 : 1);
  if (level > SYMBOLS_MAX_INDENT) level = SYMBOLS_MAX_INDENT;
  symbols_put_spaces(w, level);
  if (!nested || !text.len) text = op_row_get_text(row, "name");
  op_put_printable(&w->out, text, symbols_space(w, 2 + SYMBOLS_LINES + SYMBOLS_KIND + 1 + level));
  unsigned long long more = op_row_get_count(row, "more");
  if (more) {
    cli_text_paint(w, CLI_DIM);
    strbuf_addf(&w->out, "\n  … and %llu more: lode outline ", more);
    op_put_printable(&w->out, op_row_get_text(row, "path"), 0);
    cli_text_paint(w, CLI_PLAIN);
  }
  strbuf_addch(&w->out, '\n');
}

/* Place, name and kind; below, signature and documentation. */
static void symbols_put_def(cli_writer *w, const op_row *row) {
  static const char *const below[] = {"signature", "doc"};
  symbols_put(w, SYMBOLS_PATH_COLOR, op_row_get_text(row, "path"), 0);
  strbuf_addch(&w->out, ':');
  (void)symbols_put_lines(w, row);
  strbuf_addstr(&w->out, "  ");
  symbols_put(w, CLI_BOLD, op_row_get_text(row, "name"), 0);
  strbuf_addstr(&w->out, "  ");
  symbols_put(w, CLI_DIM, op_row_get_text(row, "kind"), 0);
  if (op_row_get(row, "declared")) symbols_put(w, CLI_DIM, STR_LIT(", declared"), 0);
  strbuf_addch(&w->out, '\n');
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    lode_str text = op_row_get_text(row, below[i]);
    if (!text.len) continue;
    symbols_put_spaces(w, 4);
    symbols_put(w, i ? CLI_DIM : "", text, symbols_space(w, 4));
    strbuf_addch(&w->out, '\n');
  }
}

static void symbols_put_doubt(cli_writer *w, const op_row *row) {
  unsigned long long n = op_row_get_count(row, "candidates");
  if (!n) return;
  cli_text_paint(w, CLI_DIM);
  strbuf_addf(&w->out, "  (%s of %llu)", op_row_find(row, "in") ? "one" : "may be one", n);
  cli_text_paint(w, CLI_PLAIN);
}

/* Line, the definition around it, the definition that is meant; below, the line's text. */
static void symbols_put_use(cli_writer *w, const op_row *row) {
  lode_str use = op_row_get_text(row, "use"), in = op_row_get_text(row, "in"), to = op_row_get_text(row, "to"),
           text = op_row_get_text(row, "text");
  symbols_put_path_heading(w, row);
  strbuf_addf(&w->out, "  ");
  size_t used = symbols_put_lines(w, row);
  symbols_put_spaces(w, used < 7 ? 7 - used : 1);
  symbols_put(w, CLI_DIM, use, 0);
  symbols_put_spaces(w, use.len < 7 ? 8 - use.len : 1);
  if (in.len) {
    symbols_put(w, CLI_BOLD, in, 0);
    strbuf_addstr(&w->out, "  ");
  }
  op_put_printable(&w->out, text, symbols_space(w, 20 + in.len));
  if (to.len) {
    cli_text_paint(w, CLI_DIM);
    strbuf_addstr(&w->out, "  → ");
    op_put_printable(&w->out, to, 0);
    cli_text_paint(w, CLI_PLAIN);
  }
  symbols_put_doubt(w, row);
  strbuf_addch(&w->out, '\n');
}

/* How it is used, if not by one sure call. */
static void symbols_put_manner(cli_writer *w, const op_row *row) {
  lode_str use = op_row_get_text(row, "use");
  unsigned long long times = op_row_get_count(row, "times");
  bool call = str_eq(use, STR_LIT("call"));
  cli_text_paint(w, CLI_DIM);
  if (times > 1)
    strbuf_addf(&w->out, "  %llu %.*ss", times, (int)use.len, use.data);
  else if (!call)
    strbuf_addf(&w->out, "  %.*s", (int)use.len, use.data);
  cli_text_paint(w, CLI_PLAIN);
  symbols_put_doubt(w, row);
  strbuf_addch(&w->out, '\n');
}

static void symbols_put_node(cli_writer *w, const op_row *row, lode_str name) {
  uint64_t depth = op_row_get_count(row, "depth");
  size_t indent = 2 * (size_t)(depth ? depth : 1);
  symbols_put_spaces(w, indent > SYMBOLS_MAX_INDENT ? SYMBOLS_MAX_INDENT : indent);
  symbols_put(w, "", name.len ? name : STR_LIT("(outside of definitions)"), 0);
  strbuf_addstr(&w->out, "  ");
}

static void symbols_put_top(cli_writer *w, lode_str name, lode_str place) {
  if (!symbols_is_new_heading(w, name, place)) return;
  if (w->rows) strbuf_addch(&w->out, '\n');
  symbols_put(w, CLI_BOLD, name, 0);
  strbuf_addstr(&w->out, "  ");
  symbols_put(w, SYMBOLS_PATH_COLOR, place, 0);
  strbuf_addch(&w->out, '\n');
}

/* Who calls: the caller, and where. */
static void symbols_put_caller(cli_writer *w, const op_row *row) {
  if (op_row_get_count(row, "depth") <= 1) symbols_put_top(w, op_row_get_text(row, "to"), op_row_get_text(row, "at"));
  symbols_put_node(w, row, op_row_get_text(row, "from"));
  symbols_put(w, SYMBOLS_PATH_COLOR, op_row_get_text(row, "path"), 0);
  strbuf_addch(&w->out, ':');
  (void)symbols_put_lines(w, row);
  symbols_put_manner(w, row);
}

/* What is called: the function, where it is defined, and the line of the call. */
static void symbols_put_callee(cli_writer *w, const op_row *row) {
  lode_str at = op_row_get_text(row, "at");
  if (op_row_get_count(row, "depth") <= 1)
    symbols_put_top(w, op_row_get_text(row, "from"), op_row_get_text(row, "path"));
  symbols_put_node(w, row, op_row_get_text(row, "to"));
  if (at.len)
    symbols_put(w, SYMBOLS_PATH_COLOR, at, 0);
  else
    symbols_put(w, CLI_DIM, STR_LIT("(not in the project)"), 0);
  strbuf_addstr(&w->out, "  line ");
  (void)symbols_put_lines(w, row);
  symbols_put_manner(w, row);
}

void cli_text_symbol(cli_writer *w, const op_row *row) {
  switch (w->op->layout) {
    case OP_LAYOUT_OUTLINE: symbols_put_outline(w, row); break;
    case OP_LAYOUT_DEFINITIONS: symbols_put_def(w, row); break;
    case OP_LAYOUT_USES: symbols_put_use(w, row); break;
    case OP_LAYOUT_CALLERS: symbols_put_caller(w, row); break;
    case OP_LAYOUT_CALLEES: symbols_put_callee(w, row); break;
    default: break;
  }
  w->out.failed = w->out.failed || w->heading.failed;
}
