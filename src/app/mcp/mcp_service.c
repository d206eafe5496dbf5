/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_service.c - calls of tools, "mcp.search_code": the worker part of `lode mcp`. The first word is the project's
 * root, the second "compat" for a tool of mcp-vector-search, the body the tool's arguments; the reply holds the members
 * of MCP's result object.
 *
 * Replies are for agents, whose context is small: texts are truncated to MCP_SNIPPET_BYTES or MCP_DOCUMENT_BYTES (such
 * a row says so), and rows are omitted once MCP_REPLY_BYTES are reached, which the reply reports too. A call with a
 * budget ("max_tokens", and tools made for models without one) is answered in text alone, within that: rows come best
 * first, those that do not fit as a line each, the rest as a number. Definitions that do not fit with their signatures
 * are listed by lines and names instead, file by file.
 */
#include "ops/op_context.h"
#include "ops/op_text.h"
#include "indexer/index_owned.h"
#include "project/project.h"
#include "mcp/mcp.h"

enum { MCP_SNIPPET_BYTES = 1600, MCP_DOCUMENT_BYTES = 4000, MCP_REPLY_BYTES = 40000, MCP_MAX_NOTES = 8 };

/* Definitions in short: by lines and signatures, or by lines and names. */
typedef struct mcp_list {
  strbuf text, path; /* path: of the last one's file */
  size_t n, omitted;
} mcp_list;

typedef struct mcp_tool_reply {
  op_sink sink;
  worker_task *task;
  lode_str body; /* the tool's arguments */
  const op_def *op;
  strbuf rows, text, summary, summary_text, notes, note_lines;
  size_t n, omitted, n_notes;
  size_t budget, shortened; /* bytes of text, 0: none; rows without their code */
  mcp_list signatures, names;
} mcp_tool_reply;

/* ---- Rows ---- */

/* Where to truncate: at a near end of line, never within a character. */
static size_t mcp_cut_at(lode_str text, size_t max) {
  size_t len = max;
  while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80) len--;
  for (size_t i = len; i > len / 2; i--)
    if (text.data[i - 1] == '\n') return i;
  return len;
}

/* Truncates a long text. */
static bool mcp_shorten_field(op_row *row, const char *name, size_t max) {
  for (size_t i = 0; i < row->n; i++) {
    op_value *v = &row->values[i];
    if (strcmp(v->field->name, name) != 0 || v->type != OP_VALUE_TEXT || v->u.text.len <= max) continue;
    v->u.text.len = mcp_cut_at(v->u.text, max);
    return true;
  }
  return false;
}

/* The first line of the code that says something: its signature. */
static void mcp_keep_head(op_row *row) {
  for (size_t i = 0; i < row->n; i++) {
    op_value *v = &row->values[i];
    bool text = v->type == OP_VALUE_TEXT && v->u.text.len;
    if (!text || (strcmp(v->field->name, "snippet") != 0 && strcmp(v->field->name, "document") != 0)) continue;
    const char *end = memchr(v->u.text.data, '\n', v->u.text.len);
    if (end) v->u.text.len = (size_t)(end - v->u.text.data);
    if (v->u.text.len > 200) v->u.text.len = mcp_cut_at(v->u.text, 200);
  }
}

/* A definition for a list, under its file. What is only declared is not listed. */
static lode_status mcp_take_listed(mcp_tool_reply *g, mcp_list *list, const op_row *row, lode_error *err) {
  size_t before = list->text.len;
  lode_str path = op_row_get_text(row, "path");
  if (!op_row_find(row, "end_line") || g->op->layout == OP_LAYOUT_HITS || op_row_get(row, "declared")) return LODE_OK;
  bool same = str_eq(path, (lode_str){list->path.data ? list->path.data : "", list->path.len});
  mcp_put_short_row(&list->text, row, same ? (lode_str){0} : path, list == &g->signatures);
  if (list->text.len > g->budget) {
    list->text.len = before;
    list->omitted++;
  } else {
    list->n++;
    list->path.len = 0;
    strbuf_add(&list->path, path.data, path.len);
  }
  return list->text.failed || list->path.failed ? err_nomem(err) : LODE_OK;
}

/* A row within the budget: whole, else its head, else it is counted. */
static lode_status mcp_take_within(mcp_tool_reply *g, op_row *row, lode_error *err) {
  size_t before = g->text.len, share = g->budget / 3 < 300 ? 300 : g->budget / 3;
  TRY(mcp_take_listed(g, &g->signatures, row, err));
  TRY(mcp_take_listed(g, &g->names, row, err));
  bool cut = mcp_shorten_field(row, "snippet", share) || mcp_shorten_field(row, "document", share);
  for (int tries = 0; tries < 2; tries++) {
    mcp_put_row(&g->text, g->op, row, g->n + 1);
    if (cut && !tries) strbuf_addstr(&g->text, "(cut; read has the rest)\n");
    if (g->text.failed) return err_nomem(err);
    if (g->text.len <= g->budget) {
      g->n++;
      g->shortened += tries != 0;
      return LODE_OK;
    }
    g->text.len = before;
    mcp_keep_head(row);
  }
  g->omitted++;
  return LODE_OK;
}

static lode_status mcp_take_row(op_sink *sink, op_row *row, lode_error *err) {
  mcp_tool_reply *g = (mcp_tool_reply *)sink;
  strbuf json = {0};
  if (worker_task_cancelled(g->task)) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  if (g->budget) return mcp_take_within(g, row, err);
  bool snippet = mcp_shorten_field(row, "snippet", MCP_SNIPPET_BYTES),
       document = mcp_shorten_field(row, "document", MCP_DOCUMENT_BYTES), cut = snippet || document;
  op_row_put_json(&json, row);
  if (!json.failed && cut) {
    json.len--;
    strbuf_addstr(&json, ",\"cut\":true}");
  }
  if (json.failed || g->rows.len + json.len > MCP_REPLY_BYTES) {
    g->omitted++;
  } else {
    if (g->n++) strbuf_addch(&g->rows, ',');
    strbuf_add(&g->rows, json.data, json.len);
    mcp_put_row(&g->text, g->op, row, g->n);
    if (cut) strbuf_addstr(&g->text, snippet ? "(cut: the file has the rest)\n" : "(cut)\n");
    strbuf_addch(&g->text, '\n');
  }
  bool failed = json.failed || g->rows.failed || g->text.failed;
  strbuf_release(&json);
  return failed ? err_nomem(err) : LODE_OK;
}

static lode_status mcp_take_summary(op_sink *sink, op_row *summary, lode_error *err) {
  mcp_tool_reply *g = (mcp_tool_reply *)sink;
  op_row_put_json(&g->summary, summary);
  mcp_put_summary(&g->summary_text, g->op, summary);
  return g->summary.failed || g->summary_text.failed ? err_nomem(err) : LODE_OK;
}

static void mcp_take_note(void *ctx, const char *text) {
  mcp_tool_reply *g = ctx;
  worker_task_log(g->task, "%s", text);
  if (g->n_notes == MCP_MAX_NOTES) return;
  if (g->n_notes++) strbuf_addch(&g->notes, ',');
  json_put_string(&g->notes, str_of(text));
  strbuf_addstr(&g->note_lines, "\n- ");
  mcp_put_agent_text(&g->note_lines, str_of(text));
}

static bool mcp_on_progress(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  worker_task *task = ctx;
  if (task->flags & WIRE_CALL_PROGRESS) worker_task_progress(task, phase, done, total);
  return !worker_task_cancelled(task);
}

/* ---- Running ---- */

/* Collections of the code index are not memory: agents may only read them. */
static lode_status mcp_guard_collections(const mcp_tool *tool, const op_def *op, const op_args *args, lode_error *err) {
  const op_arg_text *given = op_args_find(args, "collection", OP_ARG_TEXT);
  char quoted[256];
  if (tool->project || op->flags & OP_READ_ONLY || !given || !indexer_is_index_name(given->text)) return LODE_OK;
  return err_set(err, LODE_REFUSED,
                 "\"collection\": %s belongs to the code index; index_project keeps it: use another name",
                 str_quote(given->text, quoted, sizeof quoted));
}

/* Memory of a project without a store goes where its index would be. */
static lode_status mcp_prepare_store(const op_context *ctx, const mcp_tool *tool, const op_def *op, const char *root,
                                     lode_error *err) {
  project_info project;
  if (tool->project || op->flags & OP_READ_ONLY) return LODE_OK;
  TRY(op_check_may_write(ctx, err));
  TRY(project_locate(&project, root, ctx->folder, err));
  lode_status st = project_has_store(&project) ? LODE_OK : project_prepare(&project, err);
  project_release(&project);
  return st;
}

/* For memory tools; the code index operations check the folder themselves. */
static lode_status mcp_check_found(op_context *ctx, const mcp_tool *tool, lode_error *err) {
  trust_info trust;
  if (!ctx->found || tool->project) return LODE_OK;
  trust_examine(ctx->folder, false, &trust);
  trust_report(&trust, ctx->note, ctx->note_ctx);
  ctx->adopted = trust.state == TRUST_ADOPTED;
  lode_status st = trust_check(&trust, err);
  trust_release(&trust);
  return st;
}

/* An argument that the tool accepts although it does nothing is taken out, with a note. */
static bool mcp_is_unused(mcp_tool_reply *g, const mcp_tool *tool, lode_str key) {
  char text[160];
  if (!tool->unused || op_choice_index(tool->unused, key) < 0) return false;
  snprintf(text, sizeof text, "\"%.*s\" has no effect: Lode has no such setting", (int)key.len, key.data);
  mcp_take_note(g, text);
  return true;
}

/* Takes "max_tokens", which any tool may have, and what has no effect out of the arguments. */
static lode_status mcp_take_budget(mcp_tool_reply *g, const mcp_tool *tool, strbuf *arguments, lode_error *err) {
  lode_str given = g->body;
  json_doc json = {0};
  lode_status st = LODE_OK;
  uint64_t tokens = tool->brief ? MCP_DEFAULT_TOKENS : 0;
  bool object = json_parse(&json, given, NULL, NULL) == LODE_OK && json.nodes[0].type == JSON_NODE_OBJECT;
  uint32_t node = object ? json_get(&json, 0, STR_LIT("max_tokens")) : 0;
  if (node && (json.nodes[node].type != JSON_NODE_INT || json.nodes[node].u.i < 100 || json.nodes[node].u.i > 50000))
    TRY_GOTO(err_set(err, LODE_INVALID, "\"max_tokens\" must be a number from 100 to 50000"));
  if (node) tokens = (uint64_t)json.nodes[node].u.i;
  g->budget = (size_t)tokens * MCP_TOKEN_BYTES;
  if (!object || (!node && !tool->unused)) {
    strbuf_add(arguments, given.data, given.len);
    goto done;
  }
  strbuf_addch(arguments, '{');
  for (uint32_t key = 1; key < json.nodes[0].next;) {
    uint32_t value = key + 1;
    if (value != node && !mcp_is_unused(g, tool, json.nodes[key].u.s)) {
      if (arguments->len > 1) strbuf_addch(arguments, ',');
      json_put_string(arguments, json.nodes[key].u.s);
      strbuf_addch(arguments, ':');
      json_put_node(arguments, &json, value);
    }
    key = json.nodes[value].next;
  }
  strbuf_addch(arguments, '}');
done:
  json_release(&json);
  return st == LODE_OK && arguments->failed ? err_nomem(err) : st;
}

static lode_status mcp_run_tool(mcp_tool_reply *g, const mcp_tool *tool, const char *root, lode_error *err) {
  strbuf arguments = {0};
  worker_task *task = g->task;
  const op_def *base = mcp_tool_base_op(tool);
  op_param params[OP_MAX_PARAMS + 1];
  op_def op;
  op_args args;
  op_context ctx = {.open = worker_stores_open,
                    .release = worker_stores_release,
                    .opener = task->shared,
                    .folder = worker_stores_folder(task->shared),
                    .settings = worker_stores_settings(task->shared),
                    .sink = &g->sink,
                    .progress = {mcp_on_progress, task},
                    .note = mcp_take_note,
                    .note_ctx = g,
                    .found = worker_stores_found(task->shared),
                    .models = worker_stores_models(task->shared)};
  lode_status st;
  mcp_tool_as_op(tool, &op, params);
  TRY_GOTO(op_args_init(&args, &op, err));
  TRY_GOTO(mcp_take_budget(g, tool, &arguments, err));
  TRY_GOTO(op_args_from_json(&args, (lode_str){arguments.data, arguments.len}, err));
  TRY_GOTO(mcp_tool_complete(tool, root, &args, err));
  TRY_GOTO(mcp_guard_collections(tool, base, &args, err));
  TRY_GOTO(mcp_check_found(&ctx, tool, err));
  TRY_GOTO(mcp_prepare_store(&ctx, tool, base, root, err));
  TRY_GOTO(op_run(&ctx, &args, err));
done:
  op_args_release(&args);
  strbuf_release(&arguments);
  return st;
}

/* ---- The reply ---- */

void mcp_put_failure(strbuf *out, lode_str text) {
  strbuf_addstr(out, "\"content\":[{\"type\":\"text\",\"text\":");
  json_put_string(out, text);
  strbuf_addstr(out, "}],\"isError\":true");
}

static void mcp_put_error(strbuf *out, const lode_error *err, lode_status st) {
  strbuf text = {0};
  strbuf_addf(&text, "%s: ", lode_status_name(st));
  /* on one line: untrusted names cannot begin another */
  mcp_put_agent_text(&text, str_of(err->text[0] ? err->text : lode_status_text(st)));
  mcp_put_failure(out, text.failed ? str_of(lode_status_text(st)) : (lode_str){text.data, text.len});
  strbuf_release(&text);
}

static void mcp_put_structured(strbuf *out, const mcp_tool_reply *g) {
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

/* Definitions that were left out for space fit in short, or more of them do. */
static void mcp_prefer_list(mcp_tool_reply *g) {
  const mcp_list *list = g->signatures.omitted ? &g->names : &g->signatures;
  if (!g->omitted || list->n <= g->n) return;
  g->text.len = 0;
  strbuf_add(&g->text, list->text.data, list->text.len);
  g->n = list->n;
  g->omitted = list->omitted;
  g->shortened = 0;
  g->n_notes++;
  strbuf_addf(&g->note_lines, "\n- in short: without %s, and without what is only declared.",
              list == &g->names ? "signatures and documentation" : "documentation");
}

static lode_status mcp_put_text(mcp_tool_reply *g, lode_error *err) {
  mcp_prefer_list(g);
  if (g->op->row && !g->n && !g->omitted && !g->text.len && !g->summary_text.len)
    strbuf_addstr(&g->text, "Nothing was found.\n");
  strbuf_add(&g->text, g->summary_text.data ? g->summary_text.data : "", g->summary_text.len);
  while (g->text.len && g->text.data[g->text.len - 1] == '\n') g->text.len--;
  return g->text.failed ? err_nomem(err) : LODE_OK;
}

/* Lode's notes about the result are a content item of their own, so that no text of a file can pass for one. */
static void mcp_put_notes(mcp_tool_reply *g, strbuf *out) {
  strbuf text = {0};
  if (!g->n_notes && !g->omitted && !g->shortened) return;
  strbuf_addstr(&text, "Notes by lode about this answer:");
  strbuf_add(&text, g->note_lines.data ? g->note_lines.data : "", g->note_lines.len);
  if (g->shortened)
    strbuf_addf(&text, "\n- of %zu rows only the first line of code is shown: read shows the rest.", g->shortened);
  if (g->omitted && g->budget)
    strbuf_addf(&text, "\n- %zu more did not fit: raise max_tokens, or narrow the question.", g->omitted);
  else if (g->omitted)
    strbuf_addf(&text, "\n- %zu more did not fit: ask for fewer, or for fewer parts of each.", g->omitted);
  strbuf_addstr(out, ",{\"type\":\"text\",\"text\":");
  json_put_string(out, (lode_str){text.data ? text.data : "", text.len});
  strbuf_addch(out, '}');
  out->failed = out->failed || text.failed || g->notes.failed || g->note_lines.failed;
  strbuf_release(&text);
}

static lode_status mcp_put_reply(mcp_tool_reply *g, lode_error *err) {
  strbuf *out = &g->task->out;
  TRY(mcp_put_text(g, err));
  strbuf_addstr(out, "\"content\":[{\"type\":\"text\",\"text\":");
  json_put_string(out, (lode_str){g->text.data ? g->text.data : "", g->text.len});
  strbuf_addch(out, '}');
  mcp_put_notes(g, out);
  strbuf_addch(out, ']');
  if (!g->budget) {
    strbuf_addstr(out, ",\"structuredContent\":");
    mcp_put_structured(out, g);
  }
  strbuf_addstr(out, ",\"isError\":false");
  return out->failed ? err_nomem(err) : LODE_OK;
}

static void mcp_reply_release(mcp_tool_reply *g) {
  strbuf_release(&g->rows);
  strbuf_release(&g->text);
  strbuf_release(&g->summary);
  strbuf_release(&g->summary_text);
  strbuf_release(&g->notes);
  strbuf_release(&g->note_lines);
  for (size_t i = 0; i < 2; i++) {
    strbuf_release(&(i ? &g->names : &g->signatures)->text);
    strbuf_release(&(i ? &g->names : &g->signatures)->path);
  }
}

/* One part of a reply, under its title. One that fails says why; the first one's failure is that of the whole. */
static lode_status mcp_put_part(mcp_tool_reply *whole, const mcp_tool *tool, const char *root, lode_error *err) {
  mcp_tool_reply g = {.sink = {.row = mcp_take_row, .summary = mcp_take_summary},
                      .task = whole->task,
                      .body = tool->base == whole->op->name ? STR_LIT("{\"check\":true}") : STR_LIT("{}"),
                      .op = mcp_tool_base_op(tool)};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = mcp_run_tool(&g, tool, root, &why);
  if (st == LODE_OK) st = mcp_put_text(&g, &why);
  if (st != LODE_OK && (!whole->text.len || st == LODE_NOMEM || st == LODE_CANCELLED)) {
    *err = why;
    mcp_reply_release(&g);
    return st;
  }
  strbuf_addf(&whole->text, "%s# %s\n\n", whole->text.len ? "\n\n" : "", tool->title);
  if (st == LODE_OK)
    strbuf_add(&whole->text, g.text.data ? g.text.data : "", g.text.len);
  else
    mcp_put_agent_text(&whole->text, str_of(why.text));
  whole->n_notes += g.n_notes;
  strbuf_add(&whole->note_lines, g.note_lines.data ? g.note_lines.data : "", g.note_lines.len);
  whole->omitted += g.omitted;
  bool failed = whole->text.failed || whole->note_lines.failed;
  mcp_reply_release(&g);
  return failed ? err_nomem(err) : LODE_OK;
}

static lode_status mcp_run_parts(mcp_tool_reply *g, const mcp_tool *tool, const char *root, lode_error *err) {
  g->budget = MCP_DEFAULT_TOKENS * MCP_TOKEN_BYTES; /* of each: the reply is text */
  for (const char *p = tool->parts; *p;) {
    size_t n = strcspn(p, "|");
    const mcp_tool *part = mcp_tool_find((lode_str){p, n}, false);
    ENSURE(part && !part->parts, err);
    TRY(mcp_put_part(g, part, root, err));
    p += n + (p[n] == '|');
  }
  return LODE_OK;
}

void mcp_service(worker_task *task) {
  /* the words: the project's root, and "compat" for a tool of mcp_compat.c */
  const mcp_tool *tool = mcp_tool_find(str_of(strchr(task->name, '.') + 1), task->n_words == 2);
  lode_error err = {.record = LODE_NO_RECORD};
  mcp_tool_reply g = {.sink = {.row = mcp_take_row, .summary = mcp_take_summary}, .task = task, .body = task->body};
  lode_status st;
  if (!tool || task->n_words < 1) {
    st = err_internal(&err, "the worker has no tool %.80s", task->name);
  } else {
    g.op = mcp_tool_base_op(tool);
    st = tool->parts ? mcp_run_parts(&g, tool, task->words[0].data, &err)
                     : mcp_run_tool(&g, tool, task->words[0].data, &err);
  }
  if (st == LODE_OK) st = mcp_put_reply(&g, &err);
  if (st != LODE_OK) {
    strbuf_release(&task->out);
    mcp_put_error(&task->out, &err, st);
  }
  task->code = st;
  mcp_reply_release(&g);
}
