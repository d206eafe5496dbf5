/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - the tools as data: names and parameters for agents, and the operations that do the work. See mcp.h. */
#include "mcp/mcp.h"

#define MCP_P_LANGUAGE                                                                                                 \
  { .name = "language", .type = OP_ARG_TEXT, .about = "only this language: c, python, go, ..." }
#define MCP_P_PATH                                                                                                     \
  {                                                                                                                    \
    .name = "path", .type = OP_ARG_TEXT,                                                                               \
    .about = "only paths that match, as a line of .gitignore would: src/net, *.c, tests/**/*.py"                       \
  }
#define MCP_P_KIND                                                                                                     \
  {                                                                                                                    \
    .name = "kind", .type = OP_ARG_TEXT,                                                                               \
    .about = "only this kind: function (methods too), class (all types), struct, enum, section, ..."                   \
  }
#define MCP_P_LIMIT(maximum, given)                                                                                    \
  {                                                                                                                    \
    .name = "limit", .type = OP_ARG_INT, .min = 1, .max = maximum, .fallback = given,                                  \
    .about = "at most this many results"                                                                               \
  }
#define MCP_P_FILE(flag)                                                                                               \
  { .name = "file", .type = OP_ARG_TEXT, .flags = flag, .about = "path of the file, from the project's root" }
#define MCP_P_LINE                                                                                                     \
  {                                                                                                                    \
    .name = "line", .type = OP_ARG_INT, .min = 1, .max = UINT32_MAX - 1,                                               \
    .about = "a line of the piece of code that is meant"                                                               \
  }
#define MCP_P_COLLECTION                                                                                               \
  { .name = "collection", .type = OP_ARG_TEXT, .flags = OP_PARAM_REQUIRED, .about = "name of the collection" }
#define MCP_P_WHERE                                                                                                    \
  {                                                                                                                    \
    .name = "where", .type = OP_ARG_JSON,                                                                              \
    .about = "filter on metadata: {\"topic\":\"build\"}, {\"n\":{\"$gt\":3}}, {\"$and\":[..]}"                         \
  }
#define MCP_P_WHERE_DOCUMENT                                                                                           \
  { .name = "where_document", .type = OP_ARG_JSON, .about = "filter on documents: {\"$contains\":\"text\"}" }
#define MCP_P_INCLUDE                                                                                                  \
  {                                                                                                                    \
    .name = "include", .type = OP_ARG_SET, .choices = "document|metadata|embedding", .fallback = "document,metadata",  \
    .about = "parts of each record to show"                                                                            \
  }
#define MCP_P_IDS                                                                                                      \
  { .name = "ids", .type = OP_ARG_LIST, .about = "these records only" }

static const op_param mcp_search_params[] = {
    {.name = "query",
     .type = OP_ARG_TEXT,
     .flags = OP_PARAM_REQUIRED,
     .about = "a question in plain words, a name, or a piece of code"},
    MCP_P_LIMIT(50, "10"),
    {.name = "mode",
     .type = OP_ARG_CHOICE,
     .choices = "hybrid|vector|text",
     .about = "by words and vectors, by vectors, or by words"},
    MCP_P_LANGUAGE,
    MCP_P_PATH,
    MCP_P_KIND,
    {.name = "name", .type = OP_ARG_TEXT, .about = "only what defines exactly this name"},
    {0}};
static const op_param mcp_similar_params[] = {
    MCP_P_FILE(OP_PARAM_REQUIRED), MCP_P_LINE, MCP_P_LIMIT(50, "10"), MCP_P_LANGUAGE, MCP_P_PATH, MCP_P_KIND, {0}};
static const op_param mcp_context_params[] = {
    MCP_P_FILE(0),
    MCP_P_LINE,
    {.name = "name", .type = OP_ARG_TEXT, .about = "a function, class or other definition, instead of file and line"},
    MCP_P_LIMIT(50, "10"),
    {0}};
static const op_param mcp_status_params[] = {
    {.name = "check",
     .type = OP_ARG_FLAG,
     .about = "also look at all files and count those that changed since they were indexed"},
    {0}};
static const op_param mcp_index_params[] = {
    {.name = "force",
     .type = OP_ARG_FLAG,
     .about = "rebuild everything instead of what changed; search goes on meanwhile"},
    {0}};
static const op_param mcp_embed_params[] = {
    {.name = "quality", .type = OP_ARG_FLAG, .about = "also the second vectors, by the slower and better model"}, {0}};
static const op_param mcp_get_params[] = {
    MCP_P_COLLECTION,
    MCP_P_IDS,
    MCP_P_WHERE,
    MCP_P_WHERE_DOCUMENT,
    MCP_P_LIMIT(200, "20"),
    {.name = "after", .type = OP_ARG_INT, .about = "continue after an earlier answer: its `next`"},
    MCP_P_INCLUDE,
    {0}};
static const op_param mcp_query_params[] = {
    MCP_P_COLLECTION,
    {.name = "text", .type = OP_ARG_TEXT, .about = "words to look for"},
    {.name = "vector", .type = OP_ARG_VECTOR, .about = "an embedding to look for; with text, both rankings are fused"},
    {.name = "k", .type = OP_ARG_INT, .min = 1, .max = 100, .fallback = "10", .about = "how many records"},
    MCP_P_WHERE,
    MCP_P_WHERE_DOCUMENT,
    MCP_P_INCLUDE,
    {0}};

const mcp_tool mcp_tools[] = {
    {.name = "search_code",
     .title = "Search code",
     .base = "search",
     .params = mcp_search_params,
     .renames = "language=lang|kind=type",
     .project = "project",
     .about = "Find code of this project by a question in plain words, a name, or a piece of code. Answers paths with "
              "line ranges and the "
              "code itself, best first. Works on the index; it never changes it."},
    {.name = "search_similar",
     .title = "Similar code",
     .base = "search",
     .params = mcp_similar_params,
     .renames = "file=similar|line=|language=lang|kind=type",
     .project = "project",
     .about = "Find code that is like the code at a line of a file, or like a whole file: duplicates, relatives, other "
              "implementations."},
    {.name = "search_context",
     .title = "Code in its context",
     .base = "context",
     .params = mcp_context_params,
     .renames = "file=at|line=",
     .project = "project",
     .about = "Show what belongs to a piece of code, named by file and line or by name: its definition, the pieces "
              "before and after it "
              "in the file, and who uses its name elsewhere."},
    {.name = "get_project_status",
     .title = "Project status",
     .base = "status",
     .params = mcp_status_params,
     .project = "project",
     .about = "State of the index: is there one, is it fresh, how many files and chunks, languages, damage, who is "
              "indexing now."},
    {.name = "index_project",
     .title = "Index the project",
     .base = "index",
     .params = mcp_index_params,
     .project = "path",
     .is_long = true,
     .about = "Bring the index up to date with the files. Only what changed is read. Searching goes on meanwhile."},
    {.name = "embed_pending",
     .title = "Make missing vectors",
     .base = "index",
     .params = mcp_embed_params,
     .project = "path",
     .always = "pending",
     .is_long = true,
     .about = "Make the vectors of chunks that have none yet. Search by words finds them already."},
    {.name = "collections",
     .title = "List collections",
     .group = "db",
     .base = "collections",
     .about = "List the collections of the memory kept with this project. code, files and quality are the code index "
              "itself."},
    {.name = "add",
     .title = "Remember records",
     .group = "db",
     .base = "add",
     .hide = "create",
     .always = "create",
     .about = "Add records to a collection, which is made if there is none. An id that exists is refused, or kept as "
              "it is."},
    {.name = "upsert",
     .title = "Remember or change records",
     .group = "db",
     .base = "upsert",
     .hide = "create",
     .always = "create",
     .about = "Add records, or change those that exist: document and embedding are replaced, metadata merge key by "
              "key. The collection "
              "is made if there is none."},
    {.name = "get",
     .title = "Read records",
     .group = "db",
     .base = "get",
     .params = mcp_get_params,
     .about = "Read records of a collection by id or by filter."},
    {.name = "query",
     .title = "Find records",
     .group = "db",
     .base = "query",
     .params = mcp_query_params,
     .about = "Find the records of a collection that fit best: by words, by an embedding, or by both."},
    {.name = "delete",
     .title = "Forget records",
     .group = "db",
     .base = "delete",
     .about = "Delete records of a collection by id or by filter. A filter {} means all."},
    {.name = "count",
     .title = "Count records",
     .group = "db",
     .base = "count",
     .about = "How many records a collection has."},
    {0}};

const mcp_tool *mcp_tool_find(lode_str name) {
  for (const mcp_tool *tool = mcp_tools; tool->name; tool++)
    if (str_eq(str_of(tool->name), name)) return tool;
  return NULL;
}

const op_def *mcp_tool_base_op(const mcp_tool *tool) { return op_find(tool->group, str_of(tool->base)); }

void mcp_tool_as_op(const mcp_tool *tool, op_def *op, op_param params[OP_MAX_PARAMS + 1]) {
  const op_def *base = mcp_tool_base_op(tool);
  size_t n = 0;
  for (const op_param *p = tool->params ? tool->params : base->params; p->name && n < OP_MAX_PARAMS; p++) {
    bool hidden = p->flags & OP_PARAM_CLI_ONLY || (tool->hide && op_choice_index(tool->hide, str_of(p->name)) >= 0);
    if (!hidden) params[n++] = *p;
  }
  params[n] = (op_param){0};
  *op = *base;
  op->group = NULL;
  op->name = tool->name;
  op->about = tool->about;
  op->params = params;
}

/* ---- The list ---- */

/* Fields that any reply may have besides those of the operation. */
#define MCP_EXTRA_FIELDS                                                                                               \
  "\"notes\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"what should be known about the "    \
  "answer\"},"                                                                                                         \
  "\"omitted\":{\"type\":\"integer\",\"description\":\"rows that did not fit into the answer\"},"

static void mcp_put_tool(strbuf *out, const mcp_tool *tool) {
  static const char head[] = "{\"type\":\"object\",\"properties\":{";
  op_param params[OP_MAX_PARAMS + 1];
  op_def op;
  strbuf schema = {0};
  mcp_tool_as_op(tool, &op, params);
  strbuf_addf(out, "{\"name\":\"%s\",\"title\":\"%s\",\"description\":", tool->name, tool->title);
  json_put_string(out, str_of(tool->about));
  strbuf_addstr(out, ",\"inputSchema\":");
  op_input_schema(out, &op);
  strbuf_addf(out, ",\"outputSchema\":%s" MCP_EXTRA_FIELDS, head);
  op_output_schema(&schema, &op);
  if (!schema.failed)
    strbuf_add(out, schema.data + sizeof head - 1, schema.len - (sizeof head - 1));
  else
    out->failed = true;
  strbuf_release(&schema);
  strbuf_addf(out,
              ",\"annotations\":{\"title\":\"%s\",\"readOnlyHint\":%s,\"destructiveHint\":%s,\"idempotentHint\":%s,"
              "\"openWorldHint\":false}}",
              tool->title, op.flags & OP_READ_ONLY ? "true" : "false",
              op.flags & OP_DESTRUCTIVE && !tool->is_long ? "true" : "false",
              strcmp(tool->name, "add") ? "true" : "false");
}

void mcp_tools_put(strbuf *out) {
  strbuf_addch(out, '[');
  for (const mcp_tool *tool = mcp_tools; tool->name; tool++) {
    if (tool != mcp_tools) strbuf_addch(out, ',');
    mcp_put_tool(out, tool);
  }
  strbuf_addch(out, ']');
}

/* ---- Arguments ---- */

/* The operation's name of a tool's parameter; empty if it is used in another way. */
static lode_str mcp_target_param(const mcp_tool *tool, const char *name) {
  size_t len = strlen(name);
  for (const char *p = tool->renames; p && *p;) {
    size_t size = strcspn(p, "|");
    if (size > len && p[len] == '=' && memcmp(p, name, len) == 0) return (lode_str){p + len + 1, size - len - 1};
    p += size + (p[size] == '|');
  }
  return str_of(name);
}

static lode_status mcp_set_arg(op_args *args, const char *name, lode_str text, lode_error *err) {
  return op_args_set_text(args, op_param_find(args->op->params, str_of(name)), text, err);
}

/* ROOT/FILE[:LINE] */
static lode_status mcp_set_place(op_args *args, const op_param *param, const char *root, lode_str file,
                                 const op_arg *line, lode_error *err) {
  strbuf text = {0};
  if (memchr(file.data, '\0', file.len)) return err_set(err, LODE_INVALID, "\"file\" must be a path without NUL bytes");
  if (file.len == 0) return err_set(err, LODE_INVALID, "\"file\" must not be empty");
  if (file.data[0] != '/') strbuf_addf(&text, "%s/", root);
  strbuf_add(&text, file.data, file.len);
  if (line->set) strbuf_addf(&text, ":%llu", (unsigned long long)line->number);
  lode_status st = text.failed ? err_nomem(err) : op_args_set_text(args, param, (lode_str){text.data, text.len}, err);
  strbuf_release(&text);
  return st;
}

lode_status mcp_tool_translate(const mcp_tool *tool, const char *root, op_args *args, op_args *base, lode_error *err) {
  const op_def *from = args->op, *to = mcp_tool_base_op(tool);
  const op_arg *line = op_arg_get(args, "line");
  op_arg given[OP_MAX_PARAMS], here = *line;
  memcpy(given, args->values, sizeof given);
  *base = *args; /* what the arguments point to moves along */
  memset(args, 0, sizeof *args);
  memset(base->values, 0, sizeof base->values);
  base->op = to;
  lode_status st = LODE_OK;
  for (const op_param *p = from->params; p->name; p++) {
    op_arg *arg = &given[p - from->params];
    const op_param *q = op_param_find(to->params, mcp_target_param(tool, p->name));
    if (!q) continue;
    if (strcmp(p->name, "file") == 0) {
      if (arg->set && st == LODE_OK) st = mcp_set_place(base, q, root, arg->text, &here, err);
      continue;
    }
    base->values[q - to->params] = *arg;
    if (p->fallback && !q->fallback) base->values[q - to->params].set = true;
  }
  if (st == LODE_OK && tool->project) st = mcp_set_arg(base, tool->project, str_of(root), err);
  if (st == LODE_OK && tool->always) st = mcp_set_arg(base, tool->always, STR_LIT(""), err);
  return st == LODE_OK ? op_args_finish(base, err) : st;
}
