/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_text.c - results of tools as text for agents: short, exact locations, code as code. See mcp.h.
 *
 * Contents of files and records cannot pass for Lode's own text: they are fenced with more backticks than they
 * contain, names and paths are one line without control characters and backticks, and notes are a separate content
 * item (mcp_service.c).
 */
#include "ops/op_text.h"
#include "mcp/mcp.h"

static uint32_t mcp_row_field(const json_doc *row, const char *name) {
  uint32_t node = json_get(row, 0, str_of(name));
  return node && row->nodes[node].type != JSON_NODE_NULL ? node : 0;
}

static lode_str mcp_row_text(const json_doc *row, const char *name) {
  uint32_t node = mcp_row_field(row, name);
  return node && row->nodes[node].type == JSON_NODE_STRING ? row->nodes[node].u.s : (lode_str){"", 0};
}

static long long mcp_row_number(const json_doc *row, const char *name) {
  uint32_t node = mcp_row_field(row, name);
  return node && row->nodes[node].type == JSON_NODE_INT ? (long long)row->nodes[node].u.i : 0;
}

void mcp_put_line(strbuf *out, lode_str text) {
  while (text.len) {
    const char *tick = memchr(text.data, '`', text.len);
    size_t n = tick ? (size_t)(tick - text.data) : text.len;
    op_put_printable(out, (lode_str){text.data, n}, 0);
    if (tick) strbuf_addstr(out, "\\x60");
    n += tick != NULL;
    text = (lode_str){text.data + n, text.len - n};
  }
}

/* Untrusted text between two literals; nothing if it is empty. */
static void mcp_put_part(strbuf *out, const char *before, lode_str text, const char *after) {
  if (!text.len) return;
  strbuf_addstr(out, before);
  mcp_put_line(out, text);
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

static void mcp_put_number(strbuf *out, const json_doc *row, const char *name, const char *label) {
  uint32_t node = mcp_row_field(row, name);
  if (!node) return;
  strbuf_addf(out, ", %s ", label);
  /* structuredContent has all digits */
  if (row->nodes[node].type == JSON_NODE_DOUBLE)
    strbuf_addf(out, "%.4g", row->nodes[node].u.d);
  else
    json_put_node(out, row, node);
}

/* "1. src/net.c:41-67 function Backoff.next", then the code. */
static void mcp_put_hit(strbuf *out, const json_doc *row, size_t number) {
  lode_str snippet = mcp_row_text(row, "snippet"), stale = mcp_row_text(row, "stale");
  strbuf_addf(out, "%zu. ", number);
  mcp_put_part(out, "", mcp_row_text(row, "relation"), ": ");
  mcp_put_part(out, "", mcp_row_text(row, "path"), "");
  strbuf_addf(out, ":%lld-%lld", mcp_row_number(row, "start_line"), mcp_row_number(row, "end_line"));
  mcp_put_part(out, " ", mcp_row_text(row, "kind"), "");
  mcp_put_part(out, " ", mcp_row_text(row, "parents"), mcp_row_field(row, "name") ? " /" : "");
  mcp_put_part(out, " ", mcp_row_text(row, "name"), "");
  if (stale.len)
    strbuf_addstr(out,
                  str_eq(stale, STR_LIT("gone")) ? " (the file is gone)" : " (the file changed since it was indexed)");
  strbuf_addch(out, '\n');
  long long first =
      mcp_row_field(row, "snippet_line") ? mcp_row_number(row, "snippet_line") : mcp_row_number(row, "start_line");
  if (!snippet.len) return;
  if (first != mcp_row_number(row, "start_line")) strbuf_addf(out, "from line %lld:\n", first);
  mcp_put_block(out, mcp_row_text(row, "language"), snippet);
}

/* JSON on one line. */
static void mcp_put_json(strbuf *out, const json_doc *row, uint32_t node) {
  strbuf text = {0};
  json_put_node(&text, row, node);
  mcp_put_line(out, (lode_str){text.data ? text.data : "", text.len});
  out->failed = out->failed || text.failed;
  strbuf_release(&text);
}

/* "1. ID, distance 0.1", then metadata and document. */
static void mcp_put_record(strbuf *out, const json_doc *row, size_t number) {
  lode_str document = mcp_row_text(row, "document");
  strbuf_addf(out, "%zu. ", number);
  mcp_put_line(out, mcp_row_text(row, "id"));
  mcp_put_number(out, row, "distance", "distance");
  mcp_put_number(out, row, "score", "score");
  strbuf_addch(out, '\n');
  if (mcp_row_field(row, "metadata")) {
    strbuf_addstr(out, "metadata: ");
    mcp_put_json(out, row, mcp_row_field(row, "metadata"));
    strbuf_addch(out, '\n');
  }
  if (document.len) mcp_put_block(out, (lode_str){"", 0}, document);
}

static void mcp_put_field(strbuf *out, const json_doc *json, uint32_t node) {
  if (json->nodes[node].type == JSON_NODE_STRING)
    mcp_put_line(out, json->nodes[node].u.s);
  else
    mcp_put_json(out, json, node);
}

/* "1. name notes, records 12, ..." */
static void mcp_put_fields(strbuf *out, const op_def *op, const json_doc *row, size_t number) {
  bool first = true;
  strbuf_addf(out, "%zu. ", number);
  for (const op_field *f = op->row; f->name; f++) {
    uint32_t node = mcp_row_field(row, f->name);
    if (!node) continue;
    strbuf_addf(out, "%s%s ", first ? "" : ", ", f->name);
    first = false;
    mcp_put_field(out, row, node);
  }
  strbuf_addch(out, '\n');
}

void mcp_put_row(strbuf *out, const op_def *op, const json_doc *row, size_t number) {
  if (op->layout == OP_LAYOUT_HITS)
    mcp_put_hit(out, row, number);
  else if (mcp_row_field(row, "id"))
    mcp_put_record(out, row, number);
  else
    mcp_put_fields(out, op, row, number);
}

/* "state: ready", one line per field; null and empty fields are left out. */
static void mcp_put_figures(strbuf *out, const op_def *op, const json_doc *summary) {
  for (const op_field *f = op->summary; f->name; f++) {
    uint32_t node = mcp_row_field(summary, f->name);
    const json_node *x = &summary->nodes[node];
    bool empty = (x->type == JSON_NODE_OBJECT || x->type == JSON_NODE_ARRAY) && x->u.count == 0;
    if (!node || empty) continue;
    strbuf_addf(out, "%s: ", f->name);
    mcp_put_field(out, summary, node);
    strbuf_addch(out, '\n');
  }
}

lode_status mcp_put_summary(strbuf *out, const op_def *op, lode_str summary, lode_error *err) {
  json_doc parsed = {0};
  lode_status st = json_parse(&parsed, summary, NULL, err);
  if (st == LODE_OK && op->say)
    op_put_sentence(out, op, &parsed);
  else if (st == LODE_OK)
    mcp_put_figures(out, op, &parsed);
  json_release(&parsed);
  return st == LODE_OK && out->failed ? err_nomem(err) : st;
}
