/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_text.c - results of tools as text for agents: short, exact locations, code as code. See mcp.h.
 *
 * Contents of files and records cannot pass for Lode's own text: they are fenced with more backticks than they
 * contain, names and paths are one line without control characters and backticks, and notes are a separate content
 * item (mcp_service.c).
 */
#include "ops/op_text.h"
#include "mcp/mcp.h"

/* Untrusted text as part of one line: without control characters and backticks. */
static void text_put_line(strbuf *out, lode_str text) {
  while (text.len) {
    const char *tick = memchr(text.data, '`', text.len);
    size_t n = tick ? (size_t)(tick - text.data) : text.len;
    op_put_printable(out, (lode_str){text.data, n}, 0);
    if (tick) strbuf_addstr(out, "\\x60");
    n += tick != NULL;
    text = (lode_str){text.data + n, text.len - n};
  }
}

void mcp_put_agent_text(strbuf *out, lode_str text) {
  static const char *const words[][2] = {
      {"`lode index --force`", "the tool index with \"force\""},
      {"run `lode index`", "call the tool index"},
      {"`lode index` or --refresh", "the tool index"},
      {"`lode index`", "the tool index"},
      {"lode search \"where are sessions closed\", or --similar FILE:LINE", "\"query\", or \"file\" and \"line\""},
      {"`lode db collections` lists them, `lode db create` makes one", "action collections lists them, add makes one"},
      {"`lode db create` makes a new one", "action add makes a new one"},
      {"`lode status`", "the tool status"},
      {"(LODE_KEEP_EXISTING, --on-existing keep)", "(\"on_existing\": \"keep\")"},
      {"`lode search --mode text`", "\"mode\": \"text\""}};
  strbuf plain = {0};
  op_put_printable(&plain, text, 0);
  for (size_t at = 0; at < plain.len;) {
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !found; i++) {
      size_t n = strlen(words[i][0]);
      found = plain.len - at >= n && memcmp(plain.data + at, words[i][0], n) == 0;
      if (!found) continue;
      strbuf_addstr(out, words[i][1]);
      at += n;
    }
    if (!found) strbuf_addch(out, plain.data[at++]);
  }
  out->failed = out->failed || plain.failed;
  strbuf_release(&plain);
}

/* Untrusted text between two literals; nothing if it is empty. */
static void mcp_put_part(strbuf *out, const char *before, lode_str text, const char *after) {
  if (!text.len) return;
  strbuf_addstr(out, before);
  text_put_line(out, text);
  strbuf_addstr(out, after);
}

static size_t mcp_longest_ticks(lode_str text) {
  size_t longest = 0, run = 0;
  for (size_t i = 0; i < text.len; i++) {
    run = text.data[i] == '`' ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  return longest;
}

static void mcp_put_fence(strbuf *out, size_t n) {
  while (n--) strbuf_addch(out, '`');
}

/* The text unchanged, between fences that it cannot close. */
static void mcp_put_block(strbuf *out, lode_str language, lode_str text) {
  size_t n = mcp_longest_ticks(text) < 3 ? 3 : mcp_longest_ticks(text) + 1;
  mcp_put_fence(out, n);
  for (size_t i = 0; i < language.len; i++) {
    char c = language.data[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("+#-_.", c ? c : '`'))
      strbuf_addch(out, c);
  }
  strbuf_addch(out, '\n');
  strbuf_add(out, text.data, text.len);
  if (text.len && text.data[text.len - 1] != '\n') strbuf_addch(out, '\n');
  mcp_put_fence(out, n);
  strbuf_addch(out, '\n');
}

static void mcp_put_real(strbuf *out, const op_row *row, const char *name) {
  const op_value *v = op_row_get(row, name);
  if (v) strbuf_addf(out, ", %s %.4g", name, v->u.real); /* structuredContent has all digits */
}

/* "1. src/net.c:41-67 function Backoff.next", then the code. */
static void mcp_put_hit(strbuf *out, const op_row *row, size_t number) {
  lode_str snippet = op_row_get_text(row, "snippet"), stale = op_row_get_text(row, "stale");
  strbuf_addf(out, "%zu. ", number);
  mcp_put_part(out, "", op_row_get_text(row, "relation"), ": ");
  mcp_put_part(out, "", op_row_get_text(row, "path"), "");
  unsigned long long start = op_row_get_count(row, "start_line"), end = op_row_get_count(row, "end_line");
  strbuf_addf(out, ":%llu-%llu", start, end);
  mcp_put_part(out, " ", op_row_get_text(row, "kind"), "");
  mcp_put_part(out, " ", op_row_get_text(row, "parents"), op_row_get(row, "name") ? " /" : "");
  mcp_put_part(out, " ", op_row_get_text(row, "name"), "");
  const op_value *score = op_row_get(row, "score");
  if (score) strbuf_addf(out, " (score %.2f)", score->u.real);
  if (stale.len)
    strbuf_addstr(out,
                  str_eq(stale, STR_LIT("gone")) ? " (the file is gone)" : " (the file changed since it was indexed)");
  if (op_row_get(row, "weak")) strbuf_addstr(out, " (a weak match)");
  strbuf_addch(out, '\n');
  unsigned long long first = op_row_get(row, "snippet_line") ? op_row_get_count(row, "snippet_line") : start;
  if (!snippet.len) return;
  if (first != start) strbuf_addf(out, "from line %llu:\n", first);
  mcp_put_block(out, op_row_get_text(row, "language"), snippet);
}

/* A text as it is, other values as JSON on one line. */
static void mcp_put_value(strbuf *out, const op_value *value) {
  strbuf text = {0};
  if (value->type == OP_VALUE_TEXT) {
    text_put_line(out, value->u.text);
    return;
  }
  op_value_put_json(&text, value);
  text_put_line(out, (lode_str){text.data ? text.data : "", text.len});
  out->failed = out->failed || text.failed;
  strbuf_release(&text);
}

/* "1. ID, distance 0.1", then metadata and document. */
static void mcp_put_record(strbuf *out, const op_row *row, size_t number) {
  lode_str document = op_row_get_text(row, "document");
  strbuf_addf(out, "%zu. ", number);
  text_put_line(out, op_row_get_text(row, "id"));
  mcp_put_real(out, row, "distance");
  mcp_put_real(out, row, "score");
  strbuf_addch(out, '\n');
  if (op_row_get(row, "metadata")) {
    strbuf_addstr(out, "metadata: ");
    mcp_put_value(out, op_row_get(row, "metadata"));
    strbuf_addch(out, '\n');
  }
  if (document.len) mcp_put_block(out, (lode_str){"", 0}, document);
}

/* "1. name notes, records 12, ..." */
static void mcp_put_fields(strbuf *out, const op_def *op, const op_row *row, size_t number) {
  bool first = true;
  strbuf_addf(out, "%zu. ", number);
  for (const op_field *f = op->row; f->name; f++) {
    const op_value *v = op_row_get(row, f->name);
    if (!v) continue;
    strbuf_addf(out, "%s%s ", first ? "" : ", ", f->name);
    first = false;
    mcp_put_value(out, v);
  }
  strbuf_addch(out, '\n');
}

/* "src/net.c:41-67 function Backoff.next: int next(void)  Waits." */
static void mcp_put_definition(strbuf *out, const op_row *row) {
  mcp_put_part(out, "", op_row_get_text(row, "path"), "");
  strbuf_addf(out, ":%llu-%llu", (unsigned long long)op_row_get_count(row, "line"),
              (unsigned long long)op_row_get_count(row, "end_line"));
  mcp_put_part(out, " ", op_row_get_text(row, "kind"), "");
  mcp_put_part(out, " ", op_row_get_text(row, "name"), op_row_get(row, "declared") ? " (declared only)" : "");
  mcp_put_part(out, ": ", op_row_get_text(row, "signature"), "");
  mcp_put_part(out, "  // ", op_row_get_text(row, "doc"), "");
  strbuf_addch(out, '\n');
}

void mcp_put_short_row(strbuf *out, const op_row *row, lode_str path, bool signature) {
  mcp_put_part(out, "", path, "\n");
  unsigned long long level = op_row_find(row, "level") ? op_row_get_count(row, "level") : 0;
  for (unsigned long long i = 0; i <= level && i < 8; i++) strbuf_addstr(out, "  ");
  strbuf_addf(out, "%llu-%llu", (unsigned long long)op_row_get_count(row, "line"),
              (unsigned long long)op_row_get_count(row, "end_line"));
  if (signature && op_row_get(row, "signature")) {
    mcp_put_part(out, " ", op_row_get_text(row, "signature"), "\n");
    return;
  }
  mcp_put_part(out, " ", op_row_get_text(row, "kind"), "");
  mcp_put_part(out, " ", op_row_get_text(row, "name"), "\n");
}

static void mcp_put_candidates(strbuf *out, const op_row *row) {
  if (op_row_get(row, "candidates") && op_row_get_count(row, "candidates") == 1)
    strbuf_addstr(out, " (perhaps)");
  else if (op_row_get(row, "candidates"))
    strbuf_addf(out, " (one of %llu candidates)", (unsigned long long)op_row_get_count(row, "candidates"));
}

/* "src/net.c:50 open calls Backoff.next (src/retry.c:12)" */
static void mcp_put_edge(strbuf *out, const op_row *row) {
  lode_str use = op_row_get_text(row, "use");
  unsigned long long depth = op_row_get_count(row, "depth"), times = op_row_get_count(row, "times");
  for (unsigned long long i = 1; i < depth && i < 16; i++) strbuf_addstr(out, "  ");
  mcp_put_part(out, "", op_row_get_text(row, "path"), "");
  strbuf_addf(out, ":%llu ", (unsigned long long)op_row_get_count(row, "line"));
  if (op_row_get_text(row, "from").len)
    text_put_line(out, op_row_get_text(row, "from"));
  else
    strbuf_addstr(out, "(outside of definitions)");
  strbuf_addstr(out, str_eq(use, STR_LIT("call")) ? " calls " : " uses ");
  text_put_line(out, op_row_get_text(row, "to"));
  mcp_put_part(out, " (", op_row_get_text(row, "at"), ")");
  if (times > 1) strbuf_addf(out, " %llu times", times);
  if (!op_row_get(row, "at")) strbuf_addstr(out, " (not in this project)");
  mcp_put_candidates(out, row);
  strbuf_addch(out, '\n');
}

/* "src/net.c:50 call in open -> src/retry.c:12" */
static void mcp_put_use(strbuf *out, const op_row *row) {
  mcp_put_part(out, "", op_row_get_text(row, "path"), "");
  strbuf_addf(out, ":%llu", (unsigned long long)op_row_get_count(row, "line"));
  mcp_put_part(out, " ", op_row_get_text(row, "use"), "");
  mcp_put_part(out, " in ", op_row_get_text(row, "in"), "");
  mcp_put_part(out, " -> ", op_row_get_text(row, "to"), "");
  if (!op_row_get(row, "to") && !op_row_get(row, "candidates")) strbuf_addstr(out, " (which definition is not known)");
  mcp_put_candidates(out, row);
  strbuf_addch(out, '\n');
}

void mcp_put_row(strbuf *out, const op_def *op, const op_row *row, size_t number) {
  if (op->layout == OP_LAYOUT_HITS)
    mcp_put_hit(out, row, number);
  else if (op_row_find(row, "end_line"))
    mcp_put_definition(out, row);
  else if (op_row_find(row, "depth"))
    mcp_put_edge(out, row);
  else if (op_row_find(row, "in"))
    mcp_put_use(out, row);
  else if (op_row_get(row, "id"))
    mcp_put_record(out, row, number);
  else
    mcp_put_fields(out, op, row, number);
}

/* "state: ready", one line per field; null and empty fields are left out. */
static void mcp_put_figures(strbuf *out, const op_def *op, const op_row *summary) {
  for (const op_field *f = op->summary; f->name; f++) {
    const op_value *v = op_row_get(summary, f->name);
    bool empty = v && v->type == OP_VALUE_JSON && v->u.text.len == 2; /* {} or [] */
    if (!v || empty) continue;
    strbuf_addf(out, "%s: ", f->name);
    mcp_put_value(out, v);
    strbuf_addch(out, '\n');
  }
}

void mcp_put_summary(strbuf *out, const op_def *op, const op_row *summary) {
  if (op->say)
    op_put_sentence(out, op->say, summary);
  else
    mcp_put_figures(out, op, summary);
}
