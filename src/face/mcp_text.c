/* mcp_text.c - answers of tools as text that an agent reads: short, exact places, code as code. See mcp.h. */
#include "cli.h"
#include "mcp.h"

static uint32_t field(const lode__json *row, const char *name) {
  uint32_t node = lode__json_get(row, 0, lode__str(name));
  return node && row->nodes[node].type != LODE__JSON_NULL ? node : 0;
}

static lode_str text_of(const lode__json *row, const char *name) {
  uint32_t node = field(row, name);
  return node && row->nodes[node].type == LODE__JSON_STRING ? row->nodes[node].u.s : (lode_str){"", 0};
}

static long long number_of(const lode__json *row, const char *name) {
  uint32_t node = field(row, name);
  return node && row->nodes[node].type == LODE__JSON_INT ? (long long)row->nodes[node].u.i : 0;
}

static void add(lode__buf *out, const char *before, lode_str text, const char *behind) {
  if (!text.len) return;
  lode__buf_adds(out, before);
  lode__buf_add(out, text.data, text.len);
  lode__buf_adds(out, behind);
}

static void put_number(lode__buf *out, const lode__json *row, const char *name, const char *label) {
  uint32_t node = field(row, name);
  if (!node) return;
  lode__buf_addf(out, ", %s ", label);
  /* Every digit is in structuredContent */
  if (row->nodes[node].type == LODE__JSON_DOUBLE) lode__buf_addf(out, "%.4g", row->nodes[node].u.d);
  else lode__json_put_node(out, row, node);
}

/* "1. src/net.c:41-67 function Backoff.next (c, score 2.3)", then the code. */
static void put_hit(lode__buf *out, const lode__json *row, size_t number) {
  lode_str snippet = text_of(row, "snippet"), path = text_of(row, "path");
  lode__buf_addf(out, "%zu. ", number);
  add(out, "", text_of(row, "relation"), ": ");
  lode__buf_add(out, path.data, path.len);
  lode__buf_addf(out, ":%lld-%lld", number_of(row, "start_line"), number_of(row, "end_line"));
  add(out, " ", text_of(row, "kind"), "");
  add(out, " ", text_of(row, "parents"), field(row, "name") ? " /" : "");
  add(out, " ", text_of(row, "name"), "");
  lode__buf_addc(out, '\n');
  long long first = field(row, "snippet_line") ? number_of(row, "snippet_line") : number_of(row, "start_line");
  if (!snippet.len) return;
  if (first != number_of(row, "start_line")) lode__buf_addf(out, "from line %lld:\n", first);
  add(out, "```", text_of(row, "language"), "");
  lode__buf_addc(out, '\n');
  add(out, "", snippet, "");
  lode__buf_adds(out, snippet.data[snippet.len - 1] == '\n' ? "```\n" : "\n```\n");
}

/* "1. ID, distance 0.1", then metadata and document. */
static void put_record(lode__buf *out, const lode__json *row, size_t number) {
  lode_str id = text_of(row, "id"), document = text_of(row, "document");
  lode__buf_addf(out, "%zu. ", number);
  lode__buf_add(out, id.data, id.len);
  put_number(out, row, "distance", "distance");
  put_number(out, row, "score", "score");
  lode__buf_addc(out, '\n');
  if (field(row, "metadata")) {
    lode__buf_adds(out, "metadata: ");
    lode__json_put_node(out, row, field(row, "metadata"));
    lode__buf_addc(out, '\n');
  }
  add(out, "", document, document.len && document.data[document.len - 1] == '\n' ? "" : "\n");
}

/* "1. name notes, records 12, ..." */
static void put_fields(lode__buf *out, const lode__op *op, const lode__json *row, size_t number) {
  bool first = true;
  lode__buf_addf(out, "%zu. ", number);
  for (const lode__field *f = op->row; f->name; f++) {
    uint32_t node = field(row, f->name);
    if (!node) continue;
    lode__buf_addf(out, "%s%s ", first ? "" : ", ", f->name);
    first = false;
    if (row->nodes[node].type == LODE__JSON_STRING) lode__buf_add(out, row->nodes[node].u.s.data, row->nodes[node].u.s.len);
    else lode__json_put_node(out, row, node);
  }
  lode__buf_addc(out, '\n');
}

void lode__mcp_put_row(lode__buf *out, const lode__op *op, const lode__json *row, size_t number) {
  if (op->layout == LODE__LAYOUT_HITS) put_hit(out, row, number);
  else if (field(row, "id")) put_record(out, row, number);
  else put_fields(out, op, row, number);
}

/* "state: ready", a line each; what is null or empty says nothing. */
static void put_figures(lode__buf *out, const lode__op *op, const lode__json *summary) {
  for (const lode__field *f = op->summary; f->name; f++) {
    uint32_t node = field(summary, f->name);
    const lode__json_node *x = &summary->nodes[node];
    bool empty = (x->type == LODE__JSON_OBJECT || x->type == LODE__JSON_ARRAY) && x->u.count == 0;
    if (!node || empty) continue;
    lode__buf_addf(out, "%s: ", f->name);
    if (x->type == LODE__JSON_STRING) lode__buf_add(out, x->u.s.data, x->u.s.len);
    else lode__json_put_node(out, summary, node);
    lode__buf_addc(out, '\n');
  }
}

lode_status lode__mcp_put_summary(lode__buf *out, const lode__op *op, lode_str summary, lode_error *err) {
  lode__writer w;
  lode__writer_init(&w, op, -1);
  lode_status st = lode__json_parse(&w.parsed, summary, NULL, err);
  if (st == LODE_OK && op->say) st = lode__text_summary(&w, err);
  else if (st == LODE_OK) put_figures(&w.out, op, &w.parsed);
  if (st == LODE_OK) lode__buf_add(out, w.out.data ? w.out.data : "", w.out.len);
  lode__writer_release(&w);
  return st;
}
