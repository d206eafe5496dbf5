/* mcp_text.c - answers of tools as text that an agent reads: short, exact places, code as code. See mcp.h.
 *
 * What files and records say cannot pass for what lode says: texts stand in fences that are longer than any in them, names and paths are one
 * line without control characters and backticks, and notes are another item of the answer (service_mcp.c).
 */
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

void lode__mcp_put_line(lode__buf *out, lode_str text) {
  while (text.len) {
    const char *tick = memchr(text.data, '`', text.len);
    size_t n = tick ? (size_t)(tick - text.data) : text.len;
    lode__put_clean(out, (lode_str){text.data, n}, 0);
    if (tick) lode__buf_adds(out, "\\x60");
    n += tick != NULL;
    text = (lode_str){text.data + n, text.len - n};
  }
}

/* Names and the like. */
static void add(lode__buf *out, const char *before, lode_str text, const char *behind) {
  if (!text.len) return;
  lode__buf_adds(out, before);
  lode__mcp_put_line(out, text);
  lode__buf_adds(out, behind);
}

static size_t longest_ticks(lode_str text) {
  size_t longest = 0, run = 0;
  for (size_t i = 0; i < text.len; i++) {
    run = text.data[i] == '`' ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  return longest;
}

static void put_fence(lode__buf *out, size_t n) {
  while (n--) lode__buf_addc(out, '`');
}

/* The text as it is, between fences that it cannot close. */
static void put_block(lode__buf *out, lode_str language, lode_str text) {
  size_t n = longest_ticks(text) < 3 ? 3 : longest_ticks(text) + 1;
  put_fence(out, n);
  for (size_t i = 0; i < language.len; i++) {
    char c = language.data[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("+#-_.", c ? c : '`')) lode__buf_addc(out, c);
  }
  lode__buf_addc(out, '\n');
  lode__buf_add(out, text.data, text.len);
  if (text.len && text.data[text.len - 1] != '\n') lode__buf_addc(out, '\n');
  put_fence(out, n);
  lode__buf_addc(out, '\n');
}

static void put_number(lode__buf *out, const lode__json *row, const char *name, const char *label) {
  uint32_t node = field(row, name);
  if (!node) return;
  lode__buf_addf(out, ", %s ", label);
  /* Every digit is in structuredContent */
  if (row->nodes[node].type == LODE__JSON_DOUBLE) lode__buf_addf(out, "%.4g", row->nodes[node].u.d);
  else lode__json_put_node(out, row, node);
}

/* "1. src/net.c:41-67 function Backoff.next", then the code. */
static void put_hit(lode__buf *out, const lode__json *row, size_t number) {
  lode_str snippet = text_of(row, "snippet"), stale = text_of(row, "stale");
  lode__buf_addf(out, "%zu. ", number);
  add(out, "", text_of(row, "relation"), ": ");
  add(out, "", text_of(row, "path"), "");
  lode__buf_addf(out, ":%lld-%lld", number_of(row, "start_line"), number_of(row, "end_line"));
  add(out, " ", text_of(row, "kind"), "");
  add(out, " ", text_of(row, "parents"), field(row, "name") ? " /" : "");
  add(out, " ", text_of(row, "name"), "");
  if (stale.len) lode__buf_adds(out, lode__str_eq(stale, LODE__LIT("gone")) ? " (the file is gone)" : " (the file changed since it was indexed)");
  lode__buf_addc(out, '\n');
  long long first = field(row, "snippet_line") ? number_of(row, "snippet_line") : number_of(row, "start_line");
  if (!snippet.len) return;
  if (first != number_of(row, "start_line")) lode__buf_addf(out, "from line %lld:\n", first);
  put_block(out, text_of(row, "language"), snippet);
}

/* JSON on one line. */
static void put_json(lode__buf *out, const lode__json *row, uint32_t node) {
  lode__buf text = {0};
  lode__json_put_node(&text, row, node);
  lode__mcp_put_line(out, (lode_str){text.data ? text.data : "", text.len});
  out->failed = out->failed || text.failed;
  lode__buf_release(&text);
}

/* "1. ID, distance 0.1", then metadata and document. */
static void put_record(lode__buf *out, const lode__json *row, size_t number) {
  lode_str document = text_of(row, "document");
  lode__buf_addf(out, "%zu. ", number);
  lode__mcp_put_line(out, text_of(row, "id"));
  put_number(out, row, "distance", "distance");
  put_number(out, row, "score", "score");
  lode__buf_addc(out, '\n');
  if (field(row, "metadata")) {
    lode__buf_adds(out, "metadata: ");
    put_json(out, row, field(row, "metadata"));
    lode__buf_addc(out, '\n');
  }
  if (document.len) put_block(out, (lode_str){"", 0}, document);
}

static void put_field(lode__buf *out, const lode__json *json, uint32_t node) {
  if (json->nodes[node].type == LODE__JSON_STRING) lode__mcp_put_line(out, json->nodes[node].u.s);
  else put_json(out, json, node);
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
    put_field(out, row, node);
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
    put_field(out, summary, node);
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
