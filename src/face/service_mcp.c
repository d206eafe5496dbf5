/* service_mcp.c - calls of tools, "mcp.search_code": the worker's half of `lode mcp`. The first word is the project's root, the body the
 * tool's arguments; the answer is what goes between the braces of MCP's result.
 *
 * An answer is for an agent, whose context is small: texts are cut at SNIPPET_BYTES or DOCUMENT_BYTES (a row that was cut says so), and
 * rows are left out once ANSWER_BYTES are reached, which the answer says too.
 */
#include "cli.h"
#include "code/owned.h"
#include "code/project.h"
#include "mcp.h"
#include "worker.h"

enum { SNIPPET_BYTES = 1600, DOCUMENT_BYTES = 4000, ANSWER_BYTES = 40000, MOST_NOTES = 8 };

typedef struct gather {
  lode__sink sink;
  lode__task *task;
  const lode__op *op;
  strbuf rows, text, summary, notes;
  json_doc json;
  size_t n, omitted, n_notes;
} gather;

/* ---- Rows ---- */

/* At a line's end if one is near, never within a character. */
static size_t cut_at(lode_str text, size_t max) {
  size_t len = max;
  while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80) len--;
  for (size_t i = len; i > len / 2; i--)
    if (text.data[i - 1] == '\n') return i;
  return len;
}

/* Shortens the long texts of the parsed row. */
static bool shorten(json_doc *json, const char *name, size_t max) {
  uint32_t node = json_get(json, 0, str_of(name));
  if (!node || json->nodes[node].type != JSON_NODE_STRING || json->nodes[node].u.s.len <= max) return false;
  json->nodes[node].u.s.len = cut_at(json->nodes[node].u.s, max);
  return true;
}

static lode_status take_row(lode__sink *sink, lode_str json, lode_error *err) {
  gather *g = (gather *)sink;
  strbuf row = {0};
  if (lode__task_cancelled(g->task)) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  TRY(json_parse(&g->json, json, NULL, err));
  bool snippet = shorten(&g->json, "snippet", SNIPPET_BYTES), document = shorten(&g->json, "document", DOCUMENT_BYTES), cut = snippet || document;
  json_put_node(&row, &g->json, 0);
  if (!row.failed && cut) {
    row.len--;
    strbuf_addstr(&row, ",\"cut\":true}");
  }
  if (row.failed || g->rows.len + row.len > ANSWER_BYTES) {
    g->omitted++;
  } else {
    if (g->n++) strbuf_addch(&g->rows, ',');
    strbuf_add(&g->rows, row.data, row.len);
    lode__mcp_put_row(&g->text, g->op, &g->json, g->n);
    if (cut) strbuf_addstr(&g->text, snippet ? "(cut: the file has the rest)\n" : "(cut)\n");
    strbuf_addch(&g->text, '\n');
  }
  bool failed = row.failed || g->rows.failed || g->text.failed;
  strbuf_release(&row);
  return failed ? err_nomem(err) : LODE_OK;
}

static lode_status take_summary(lode__sink *sink, lode_str json, lode_error *err) {
  gather *g = (gather *)sink;
  strbuf_add(&g->summary, json.data, json.len);
  return g->summary.failed ? err_nomem(err) : LODE_OK;
}

static void take_note(void *ctx, const char *text) {
  gather *g = ctx;
  lode__task_log(g->task, "%s", text);
  if (g->n_notes == MOST_NOTES) return;
  if (g->n_notes++) strbuf_addch(&g->notes, ',');
  json_put_string(&g->notes, str_of(text));
}

static bool step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  lode__task *task = ctx;
  if (task->flags & LODE__CALL_PROGRESS) lode__task_progress(task, phase, done, total);
  return !lode__task_cancelled(task);
}

/* ---- Running ---- */

/* The collections of the code index are not memory: agents may read them, no more. */
static lode_status guard(const lode__tool *tool, const lode__op *op, const lode__args *args, lode_error *err) {
  lode_str name = lode__arg_of(args, "collection")->text;
  char quoted[256];
  if (tool->project || op->flags & LODE__OP_READS || !project_is_index_name(name)) return LODE_OK;
  return err_set(err, LODE_REFUSED, "\"collection\": %s belongs to the code index; index_project keeps it: use another name",
                    str_quote(name, quoted, sizeof quoted));
}

/* Memory of a project that has no store yet goes where its index would be. */
static lode_status prepare(const lode__tool *tool, const lode__op *op, const char *root, const char *folder, lode_error *err) {
  project_info project;
  if (tool->project || op->flags & LODE__OP_READS) return LODE_OK;
  TRY(project_locate(&project, root, folder, err));
  lode_status st = project_has_store(&project) ? LODE_OK : project_prepare(&project, err);
  project_release(&project);
  return st;
}

/* The tools of the code index look for themselves. */
static lode_status check_found(lode__op_context *ctx, const lode__tool *tool, lode_error *err) {
  trust_info trust;
  if (!ctx->found || tool->project) return LODE_OK;
  trust_examine(ctx->folder, false, &trust);
  trust_report(&trust, ctx->note, ctx->note_ctx);
  ctx->adopted = trust.state == TRUST_ADOPTED;
  lode_status st = trust_check(&trust, err);
  trust_release(&trust);
  return st;
}

static lode_status run(gather *g, const lode__tool *tool, const char *root, lode_error *err) {
  lode__task *task = g->task;
  const lode__op *base = lode__tool_base(tool);
  lode__param params[LODE__OP_MAX_PARAMS + 1];
  lode__op op;
  lode__args args, translated = {.op = base};
  const char *folder = lode__shared_folder(task->shared);
  lode__op_context ctx = {.open = lode__shared_open, .release = lode__shared_release, .opener = task->shared, .folder = folder,
                          .sink = &g->sink, .progress = {step, task}, .note = take_note, .note_ctx = g,
                          .found = lode__shared_found(task->shared), .models = lode__shared_models(task->shared)};
  lode_status st;
  lode__tool_op(tool, &op, params);
  lode__args_init(&args, &op);
  mem_arena_init(&translated.arena, 0);
  TRY_GOTO(lode__args_from_json(&args, task->body, err));
  TRY_GOTO(lode__tool_translate(tool, root, &args, &translated, err));
  TRY_GOTO(guard(tool, base, &translated, err));
  TRY_GOTO(check_found(&ctx, tool, err));
  TRY_GOTO(prepare(tool, base, root, folder, err));
  TRY_GOTO(lode__op_run(&ctx, &translated, err));
done:
  lode__args_release(&args);
  lode__args_release(&translated);
  return st;
}

/* ---- The answer ---- */

void lode__mcp_put_failure(strbuf *out, lode_str text) {
  strbuf_addstr(out, "\"content\":[{\"type\":\"text\",\"text\":");
  json_put_string(out, text);
  strbuf_addstr(out, "}],\"isError\":true");
}

static void put_error(strbuf *out, const lode_error *err, lode_status st) {
  strbuf text = {0};
  strbuf_addf(&text, "%s: ", lode_status_name(st));
  lode__put_clean(&text, str_of(err->text[0] ? err->text : lode_status_text(st)), 0); /* names by others cannot begin a line of it */
  if (strstr(err->text, "`lode index`")) strbuf_addstr(&text, " (the tool index_project does that)");
  lode__mcp_put_failure(out, text.failed ? str_of(lode_status_text(st)) : (lode_str){text.data, text.len});
  strbuf_release(&text);
}

static void put_structured(strbuf *out, const gather *g) {
  bool first = true;
  strbuf_addch(out, '{');
  if (g->op->row) {
    strbuf_addstr(out, "\"rows\":[");
    strbuf_add(out, g->rows.data ? g->rows.data : "", g->rows.len);
    strbuf_addch(out, ']');
    first = false;
  }
  if (g->summary.len > 2) {
    if (!first) strbuf_addch(out, ',');
    strbuf_add(out, g->summary.data + 1, g->summary.len - 2);
    first = false;
  }
  if (g->n_notes) {
    strbuf_addf(out, "%s\"notes\":[", first ? "" : ",");
    strbuf_add(out, g->notes.data, g->notes.len);
    strbuf_addch(out, ']');
    first = false;
  }
  if (g->omitted) strbuf_addf(out, "%s\"omitted\":%zu", first ? "" : ",", g->omitted);
  strbuf_addch(out, '}');
}

static lode_status put_text(gather *g, lode_error *err) {
  if (g->op->row && !g->n && !g->omitted) strbuf_addstr(&g->text, "Nothing was found.\n");
  if (g->summary.len) TRY(lode__mcp_put_summary(&g->text, g->op, (lode_str){g->summary.data, g->summary.len}, err));
  while (g->text.len && g->text.data[g->text.len - 1] == '\n') g->text.len--;
  return g->text.failed ? err_nomem(err) : LODE_OK;
}

/* What lode says about the answer is an item of its own, which no text of a file can be part of. */
static lode_status put_notes(gather *g, strbuf *out, lode_error *err) {
  strbuf list = {0}, text = {0};
  if (!g->n_notes && !g->omitted) return LODE_OK;
  strbuf_addch(&list, '[');
  strbuf_add(&list, g->notes.data ? g->notes.data : "", g->notes.len);
  strbuf_addch(&list, ']');
  strbuf_addstr(&text, "Notes by lode about this answer:");
  lode_status st = list.failed ? err_nomem(err) : json_parse(&g->json, (lode_str){list.data, list.len}, NULL, err);
  for (uint32_t i = 1; st == LODE_OK && i < g->json.count; i++) {
    strbuf_addstr(&text, "\n- ");
    lode__put_clean(&text, g->json.nodes[i].u.s, 0);
  }
  if (g->omitted) strbuf_addf(&text, "\n- %zu more did not fit: ask for fewer, or for fewer parts of each.", g->omitted);
  strbuf_addstr(out, ",{\"type\":\"text\",\"text\":");
  json_put_string(out, (lode_str){text.data ? text.data : "", text.len});
  strbuf_addch(out, '}');
  if (st == LODE_OK && text.failed) st = err_nomem(err);
  strbuf_release(&list);
  strbuf_release(&text);
  return st;
}

static lode_status put_answer(gather *g, lode_error *err) {
  strbuf *out = &g->task->out;
  TRY(put_text(g, err));
  strbuf_addstr(out, "\"content\":[{\"type\":\"text\",\"text\":");
  json_put_string(out, (lode_str){g->text.data ? g->text.data : "", g->text.len});
  strbuf_addch(out, '}');
  TRY(put_notes(g, out, err));
  strbuf_addstr(out, "],\"structuredContent\":");
  put_structured(out, g);
  strbuf_addstr(out, ",\"isError\":false");
  return out->failed ? err_nomem(err) : LODE_OK;
}

void lode__service_mcp(lode__task *task) {
  const lode__tool *tool = lode__tool_find(str_of(strchr(task->name, '.') + 1));
  lode_error err = {.record = LODE_NO_RECORD};
  gather g = {.sink = {.row = take_row, .summary = take_summary}, .task = task};
  lode_status st;
  if (!tool || task->n_words != 1) {
    st = err_set(&err, LODE_INTERNAL, "there is no tool %.80s", task->name);
  } else {
    g.op = lode__tool_base(tool);
    st = run(&g, tool, task->words[0].data, &err);
  }
  if (st == LODE_OK) st = put_answer(&g, &err);
  if (st != LODE_OK) {
    strbuf_release(&task->out);
    put_error(&task->out, &err, st);
  }
  task->code = st;
  strbuf_release(&g.rows);
  strbuf_release(&g.text);
  strbuf_release(&g.summary);
  strbuf_release(&g.notes);
  json_release(&g.json);
}
