/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - the tools as data: names and parameters for agents, and the operations that do the work. See mcp.h. */
#include "mcp/mcp.h"
#include "table/op_args_code.h"
#include "table/op_args_db.h"
#include "table/op_args_symbols.h"
#include "ops/op_schema.h"

#define MCP_P_LANGUAGE(args)                                                                                           \
  { OP_TEXT_AS(args, lang, "language"), .about = "only this language: c, python, go, ..." }
#define MCP_P_PATH(args)                                                                                               \
  { OP_TEXT(args, path), .about = "only paths that match, as a line of .gitignore would: src/net, *.c, tests/**/*.py" }
#define MCP_P_KIND(args)                                                                                               \
  {                                                                                                                    \
    OP_TEXT_AS(args, type, "kind"),                                                                                    \
        .about = "only this kind: function (methods too), class (all types), struct, enum, section, ..."               \
  }
#define MCP_P_LIMIT(args, maximum, given)                                                                              \
  { OP_INT(args, limit), .min = 1, .max = maximum, .fallback = given, .about = "at most this many results" }
#define MCP_P_FILE(args, member, flag)                                                                                 \
  { OP_TEXT_AS(args, member, "file"), .flags = flag, .about = "path of the file, from the project's root" }
#define MCP_P_LINE(args)                                                                                               \
  { OP_INT(args, line), .min = 1, .max = UINT32_MAX - 1, .about = "a line of the piece of code that is meant" }
#define MCP_P_COLLECTION(args)                                                                                         \
  { OP_TEXT(args, collection), .flags = OP_PARAM_REQUIRED, .about = "name of the collection" }
#define MCP_P_WHERE(args)                                                                                              \
  { OP_JSON(args, where), .about = "filter on metadata: {\"topic\":\"build\"}, {\"n\":{\"$gt\":3}}, {\"$and\":[..]}" }
#define MCP_P_WHERE_DOCUMENT(args)                                                                                     \
  { OP_JSON(args, where_document), .about = "filter on documents: {\"$contains\":\"text\"}" }
#define MCP_P_INCLUDE(args)                                                                                            \
  {                                                                                                                    \
    OP_SET(args, include), .choices = "document|metadata|embedding", .fallback = "document,metadata",                  \
                           .about = "parts of each record to show"                                                     \
  }
#define MCP_P_IDS(args)                                                                                                \
  { OP_LIST(args, ids), .about = "these records only" }

/* Arguments of tools that take a file and a line, which become one argument of the operation. */
typedef struct mcp_similar_args {
  op_search_args op;
  op_arg_int line;
} mcp_similar_args;
typedef struct mcp_context_args {
  op_context_args op;
  op_arg_int line;
} mcp_context_args;

static const op_param mcp_search_params[] = {
    {OP_TEXT(op_search_args, query), .flags = OP_PARAM_REQUIRED,
     .about = "a question in plain words, a name, or a piece of code"},
    MCP_P_LIMIT(op_search_args, 50, "10"),
    {OP_CHOICE(op_search_args, mode), .choices = "hybrid|vector|text",
     .about = "by words and vectors, by vectors, or by words"},
    MCP_P_LANGUAGE(op_search_args),
    MCP_P_PATH(op_search_args),
    MCP_P_KIND(op_search_args),
    {OP_TEXT(op_search_args, name), .about = "only what defines exactly this name"},
    {OP_FLAG(op_search_args, exact), .about = "the query is text as it stands, case included"},
    {OP_FLAG(op_search_args, regex), .about = "the query is a regular expression (PCRE2)"},
    {0}};
/* Tools made for models: few, with short descriptions. */
#define MCP_P_LINES(args, about_it)                                                                                    \
  { OP_INT(args, line), .min = 1, .max = UINT32_MAX - 1, .about = about_it }
static const op_param mcp_find_params[] = {
    {OP_TEXT(op_search_args, query), .about = "a question, a name, a piece of code or of a message"},
    {OP_TEXT_AS(op_search_args, similar, "file"), .about = "instead: find code like that in this file"},
    MCP_P_LINES(mcp_similar_args, "at this line of the file"),
    MCP_P_LIMIT(op_search_args, 50, "8"),
    {OP_TEXT_AS(op_search_args, lang, "language"), .about = "c, python, go, ..."},
    {OP_TEXT(op_search_args, path), .about = "glob: src/net, *.c, tests/**/*.py"},
    {OP_TEXT_AS(op_search_args, type, "kind"), .about = "function, class, section, ..."},
    {OP_FLAG(op_search_args, exact), .about = "the query is text as it stands"},
    {0}};
static const op_param mcp_grep_params[] = {
    {OP_TEXT_AS(op_search_args, query, "pattern"), .flags = OP_PARAM_REQUIRED,
     .about = "PCRE2; ^ and $ are ends of lines"},
    MCP_P_LIMIT(op_search_args, 50, "20"),
    {OP_TEXT_AS(op_search_args, lang, "language"), .about = "c, python, go, ..."},
    {OP_TEXT(op_search_args, path), .about = "glob"},
    {0}};
static const op_param mcp_outline_params[] = {
    {OP_TEXT_AS(op_outline_args, path, "file"), .about = "a file or folder; all when not given"}, {0}};
static const op_param mcp_symbol_params[] = {
    {OP_TEXT(op_symbol_args, name), .flags = OP_PARAM_REQUIRED, .about = "name, Outer.name or file.c:name"},
    MCP_P_LIMIT(op_symbol_args, 500, "50"),
    {0}};
static const op_param mcp_calls_params[] = {
    {OP_TEXT(op_symbol_args, name), .flags = OP_PARAM_REQUIRED, .about = "name, Outer.name or file.c:name"},
    {OP_INT(op_symbol_args, depth), .min = 1, .max = 10, .fallback = "1", .about = "steps"},
    MCP_P_LIMIT(op_symbol_args, 500, "50"),
    {0}};
typedef struct mcp_impact_args {
  op_impact_args op;
  op_arg_int line;
} mcp_impact_args;
static const op_param mcp_impact_params[] = {
    {OP_TEXT_AS(op_impact_args, at, "file"), .about = "a file"},
    MCP_P_LINES(mcp_impact_args, "the definition at this line"),
    {OP_TEXT(op_impact_args, name), .about = "or a name, instead of file and line"},
    {OP_INT(op_impact_args, depth), .min = 1, .max = 10, .fallback = "3", .about = "steps"},
    MCP_P_LIMIT(op_impact_args, 500, "60"),
    {0}};
typedef struct mcp_read_args {
  op_read_args op;
  op_arg_int line;
} mcp_read_args;
static const op_param mcp_read_params[] = {
    {OP_TEXT_AS(op_read_args, at, "file"), .about = "a file"},
    MCP_P_LINES(mcp_read_args, "from this line"),
    {OP_INT(op_read_args, lines), .min = 1, .max = 2000, .fallback = "80", .about = "how many lines"},
    {OP_TEXT(op_read_args, name), .about = "or a definition, instead of file and line"},
    {0}};

#define MCP_SCHEMA_TOKENS "\"max_tokens\":{\"type\":\"integer\",\"minimum\":100,\"maximum\":50000,\"default\":2000}"
#define MCP_SYMBOL_SCHEMA                                                                                              \
  "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"description\":\"name, Outer.name or "          \
  "file.c:name\"},\"what\":{\"type\":\"string\",\"enum\":[\"definition\",\"references\",\"callers\",\"callees\"],"     \
  "\"default\":\"definition\"},\"depth\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10,\"description\":\"of "     \
  "callers and "                                                                                                       \
  "callees\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":500,\"default\":50}," MCP_SCHEMA_TOKENS        \
  "},\"required\":[\"name\"],\"additionalProperties\":false}"
#define MCP_MEMORY_SCHEMA                                                                                              \
  "{\"type\":\"object\",\"properties\":{\"action\":{\"type\":\"string\",\"enum\":[\"query\",\"get\",\"add\","          \
  "\"upsert\","                                                                                                        \
  "\"delete\",\"count\",\"collections\",\"reembed\"]},\"collection\":{\"type\":\"string\"},\"text\":{\"type\":"        \
  "\"string\","                                                                                                        \
  "\"description\":\"query: words to look for\"},\"k\":{\"type\":\"integer\",\"description\":\"query: how many\"},"    \
  "\"ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"where\":{\"type\":\"object\",\"description\":"       \
  "\"filter on metadata: {\\\"topic\\\":\\\"build\\\"}\"},\"limit\":{\"type\":\"integer\"},\"records\":{\"type\":"     \
  "\"array\",\"description\":\"add, upsert\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":"         \
  "\"string\"},\"document\":{\"type\":\"string\"},\"metadata\":{\"type\":\"object\"}},\"required\":[\"id\"]}}"         \
  ",\"model\":{\"type\":\"string\",\"description\":\"reembed: give the collection this model\"}"                       \
  "," MCP_SCHEMA_TOKENS "},\"required\":[\"action\"]}"

static const op_param mcp_similar_params[] = {MCP_P_FILE(op_search_args, similar, OP_PARAM_REQUIRED),
                                              MCP_P_LINE(mcp_similar_args),
                                              MCP_P_LIMIT(op_search_args, 50, "10"),
                                              MCP_P_LANGUAGE(op_search_args),
                                              MCP_P_PATH(op_search_args),
                                              MCP_P_KIND(op_search_args),
                                              {0}};
static const op_param mcp_context_params[] = {
    MCP_P_FILE(op_context_args, at, 0),
    MCP_P_LINE(mcp_context_args),
    {OP_TEXT(op_context_args, name), .about = "a function, class or other definition, instead of file and line"},
    MCP_P_LIMIT(op_context_args, 50, "10"),
    {0}};
static const op_param mcp_status_params[] = {
    {OP_FLAG(op_status_args, check),
     .about = "also look at all files and count those that changed since they were indexed"},
    {0}};
static const op_param mcp_index_params[] = {
    {OP_FLAG(op_index_args, force), .about = "rebuild everything instead of what changed; search goes on meanwhile"},
    {0}};
static const op_param mcp_survey_params[] = {
    {OP_TEXT(op_survey_args, path), .about = "a folder or file; all when not given"},
    MCP_P_LIMIT(op_survey_args, 500, "20"),
    {0}};
static const op_param mcp_embed_params[] = {
    {OP_FLAG(op_index_args, quality), .about = "also the second vectors, by the slower and better model"}, {0}};
static const op_param mcp_get_params[] = {
    MCP_P_COLLECTION(op_get_args),
    MCP_P_IDS(op_get_args),
    MCP_P_WHERE(op_get_args),
    MCP_P_WHERE_DOCUMENT(op_get_args),
    MCP_P_LIMIT(op_get_args, 200, "20"),
    {OP_INT(op_get_args, after), .about = "continue after an earlier answer: its `next`"},
    MCP_P_INCLUDE(op_get_args),
    {0}};
static const op_param mcp_query_params[] = {
    MCP_P_COLLECTION(op_query_args),
    {OP_TEXT(op_query_args, text), .about = "words to look for"},
    {OP_VECTOR(op_query_args, vector), .about = "an embedding to look for; with text, both rankings are fused"},
    {OP_INT(op_query_args, k), .min = 1, .max = 100, .fallback = "10", .about = "how many records"},
    MCP_P_WHERE(op_query_args),
    MCP_P_WHERE_DOCUMENT(op_query_args),
    MCP_P_INCLUDE(op_query_args),
    {0}};

const mcp_tool mcp_tools[] = {
    {.name = "search",
     .title = "Search code",
     .base = "search",
     .params = mcp_find_params,
     .args_size = sizeof(mcp_similar_args),
     .place = "similar",
     .project = "project",
     .listed = true,
     .brief = true,
     .about = "Find code by a question in plain words, a name, or an example. Answers places and code, best first."},
    {.name = "outline",
     .title = "Outline",
     .base = "outline",
     .params = mcp_outline_params,
     .place = "path",
     .project = "project",
     .listed = true,
     .brief = true,
     .about = "What a file or folder defines: kinds, names, lines, signatures."},
    {.name = "symbol",
     .title = "Symbol",
     .base = "def",
     .pick = "what",
     .picks = "definition=symbol_definition|references=symbol_references|callers=symbol_callers|callees=symbol_callees",
     .schema = MCP_SYMBOL_SCHEMA,
     .project = "project",
     .listed = true,
     .brief = true,
     .about = "Where a name is defined, every place that uses it, who calls it, or what it calls. Says where the text "
              "leaves several candidates."},
    {.name = "symbol_definition",
     .title = "Definition",
     .base = "def",
     .params = mcp_symbol_params,
     .project = "project",
     .brief = true,
     .about = "Where a name is defined."},
    {.name = "symbol_references",
     .title = "References",
     .base = "refs",
     .params = mcp_symbol_params,
     .project = "project",
     .brief = true,
     .about = "Every place that uses a name."},
    {.name = "symbol_callers",
     .title = "Callers",
     .base = "callers",
     .params = mcp_calls_params,
     .project = "project",
     .brief = true,
     .about = "Who calls a function."},
    {.name = "symbol_callees",
     .title = "Callees",
     .base = "callees",
     .params = mcp_calls_params,
     .project = "project",
     .brief = true,
     .about = "What a function calls."},
    {.name = "impact",
     .title = "Impact of a change",
     .base = "impact",
     .params = mcp_impact_params,
     .args_size = sizeof(mcp_impact_args),
     .place = "at",
     .project = "project",
     .listed = true,
     .brief = true,
     .about = "What may break when a definition changes: all that uses it, and what uses that."},
    {.name = "read",
     .title = "Read",
     .base = "read",
     .params = mcp_read_params,
     .args_size = sizeof(mcp_read_args),
     .place = "at",
     .project = "project",
     .listed = true,
     .brief = true,
     .about = "Lines of a file, or a whole definition, as the file is now."},
    {.name = "grep",
     .title = "Search by regular expression",
     .base = "search",
     .params = mcp_grep_params,
     .project = "project",
     .always = "regex",
     .listed = true,
     .brief = true,
     .about = "Code that matches a regular expression, with the code around it."},
    {.name = "status",
     .title = "Status",
     .base = "status",
     .params = mcp_status_params,
     .project = "project",
     .listed = true,
     .brief = true,
     .about = "Is there an index, is it fresh, how large, which languages, who is indexing."},
    {.name = "index",
     .title = "Index",
     .base = "index",
     .params = mcp_index_params,
     .project = "path",
     .is_long = true,
     .listed = true,
     .brief = true,
     .about = "Bring the index up to date with the files; reads only what changed. What was done stays if the call is "
              "given up."},
    {.name = "memory",
     .title = "Memory",
     .group = "db",
     .base = "upsert",
     .pick = "action",
     .picks = "query=query|get=get|add=add|upsert=upsert|delete=delete|count=count|collections=collections|"
              "reembed=reembed",
     .schema = MCP_MEMORY_SCHEMA,
     .listed = true,
     .brief = true,
     .about = "Keep records for later in collections of your own, and find them again by words, id or filter."},
    {.name = "hotspots",
     .title = "Hotspots",
     .base = "hotspots",
     .params = mcp_survey_params,
     .project = "project",
     .brief = true,
     .about = "Functions that are the hardest to change."},
    {.name = "cycles",
     .title = "Cycles",
     .base = "cycles",
     .params = mcp_survey_params,
     .project = "project",
     .brief = true,
     .about = "Files that import each other."},
    {.name = "unused",
     .title = "Unused definitions",
     .base = "unused",
     .params = mcp_survey_params,
     .project = "project",
     .brief = true,
     .about = "Functions and types whose names no file uses."},
    {.name = "overview",
     .title = "Overview",
     .base = "status",
     .params = mcp_status_params,
     .project = "project",
     .brief = true,
     .parts = "status|outline|hotspots",
     .about = "State of the index, what the project defines, where it is hardest to change."},
    {.name = "search_code",
     .title = "Search code",
     .base = "search",
     .params = mcp_search_params,
     .project = "project",
     .about = "Find code of this project by a question in plain words, a name, or a piece of code. Answers paths with "
              "line ranges and the "
              "code itself, best first. Works on the index; it never changes it."},
    {.name = "search_similar",
     .title = "Similar code",
     .base = "search",
     .params = mcp_similar_params,
     .args_size = sizeof(mcp_similar_args),
     .place = "similar",
     .project = "project",
     .about = "Find code that is like the code at a line of a file, or like a whole file: duplicates, relatives, other "
              "implementations."},
    {.name = "search_context",
     .title = "Code in its context",
     .base = "context",
     .params = mcp_context_params,
     .args_size = sizeof(mcp_context_args),
     .place = "at",
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
    {.name = "reembed",
     .title = "Another model",
     .group = "db",
     .base = "reembed",
     .is_long = true,
     .about = "Give a collection the vectors of another model, while it is in use. If the call is given up, the same "
              "call goes on where it stopped."},
    {.name = "count",
     .title = "Count records",
     .group = "db",
     .base = "count",
     .about = "How many records a collection has."},
    {0}};

static const mcp_tool *mcp_tool_of(const mcp_tool *tool, lode_str name) {
  while (tool->name && !str_eq(str_of(tool->name), name)) tool++;
  return tool->name ? tool : NULL;
}

const mcp_tool *mcp_tool_find(lode_str name, bool compat) {
  const mcp_tool *tool = compat ? mcp_tool_of(mcp_compat_tools, name) : NULL;
  return tool ? tool : mcp_tool_of(mcp_tools, name);
}

const mcp_tool *mcp_tool_pick(const mcp_tool *family, lode_str word) {
  for (const char *p = family->picks; p && *p;) {
    size_t n = strcspn(p, "="), m = strcspn(p, "|");
    if (str_eq((lode_str){p, n}, word)) return mcp_tool_find((lode_str){p + n + 1, m - n - 1}, family->compat);
    p += m + (p[m] == '|');
  }
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
  if (tool->args_size) op->args_size = tool->args_size;
}

/* ---- The list ---- */

/* The operation's schema, and the budget that every tool takes. */
static void mcp_put_schema(strbuf *out, const mcp_tool *tool, const op_def *op) {
  static const char head[] = "{\"type\":\"object\",\"properties\":{";
  strbuf schema = {0};
  if (tool->schema) {
    strbuf_addstr(out, tool->schema);
    return;
  }
  op_input_schema(&schema, op);
  out->failed = out->failed || schema.failed;
  strbuf_addstr(out, head);
  strbuf_addstr(out, MCP_SCHEMA_TOKENS);
  if (!schema.failed && schema.data[sizeof head - 1] != '}') strbuf_addch(out, ',');
  if (!schema.failed) strbuf_add(out, schema.data + sizeof head - 1, schema.len - (sizeof head - 1));
  strbuf_release(&schema);
}

/* Results have no schema: replies are text, made to be read. */
static void mcp_put_tool(strbuf *out, const mcp_tool *tool) {
  op_param params[OP_MAX_PARAMS + 1];
  op_def op;
  mcp_tool_as_op(tool, &op, params);
  strbuf_addf(out, "{\"name\":\"%s\",\"title\":\"%s\",\"description\":", tool->name, tool->title);
  json_put_string(out, str_of(tool->about));
  strbuf_addstr(out, ",\"inputSchema\":");
  mcp_put_schema(out, tool, &op);
  strbuf_addf(out, ",\"annotations\":{\"readOnlyHint\":%s,\"destructiveHint\":%s,\"openWorldHint\":false}}",
              op.flags & OP_READ_ONLY ? "true" : "false", tool->pick && !(op.flags & OP_READ_ONLY) ? "true" : "false");
}

static void mcp_put_listed(strbuf *out, const mcp_tool *tool) {
  for (; tool->name; tool++) {
    if (!tool->listed) continue;
    if (out->len && out->data[out->len - 1] == '}') strbuf_addch(out, ',');
    mcp_put_tool(out, tool);
  }
}

void mcp_tools_put(strbuf *out, bool compat) {
  strbuf_addch(out, '[');
  if (compat) mcp_put_listed(out, mcp_compat_tools);
  mcp_put_listed(out, mcp_tools);
  strbuf_addch(out, ']');
}

/* ---- Arguments ---- */

static lode_status mcp_set_arg(op_args *args, const char *name, lode_str text, lode_error *err) {
  const op_param *param = op_param_find(args->op->params, str_of(name));
  ENSURE(param != NULL, err);
  return op_args_set_text(args, param, text, err);
}

/* ROOT/FILE[:LINE] instead of the file that the tool was given. */
static lode_status mcp_set_place(op_args *args, const char *place, const char *root, const op_arg_int *line,
                                 lode_error *err) {
  const op_arg_text *file = op_args_find(args, place, OP_ARG_TEXT);
  ENSURE(file, err);
  lode_str name = file->text;
  strbuf text = {0};
  if (!file->set) return LODE_OK;
  if (memchr(name.data, '\0', name.len)) return err_set(err, LODE_INVALID, "\"file\" must be a path without NUL bytes");
  if (name.len == 0) return err_set(err, LODE_INVALID, "\"file\" must not be empty");
  if (name.data[0] != '/') strbuf_addf(&text, "%s/", root);
  strbuf_add(&text, name.data, name.len);
  if (line && line->set) strbuf_addf(&text, ":%llu", (unsigned long long)line->n);
  lode_status st = text.failed ? err_nomem(err) : mcp_set_arg(args, place, (lode_str){text.data, text.len}, err);
  strbuf_release(&text);
  return st;
}

lode_status mcp_tool_complete(const mcp_tool *tool, const char *root, op_args *args, lode_error *err) {
  const op_arg_int *line = tool->place ? op_args_find(args, "line", OP_ARG_INT) : NULL;
  /* a default of the tool's own goes before the operation's */
  for (const op_param *p = tool->params; p && p->name; p++)
    if (p->fallback) op_args_mark_set(args, p, true);
  args->op = mcp_tool_base_op(tool);
  if (tool->adapt) TRY(tool->adapt(args, root, err));
  if (tool->place) TRY(mcp_set_place(args, tool->place, root, line, err));
  if (tool->project) TRY(mcp_set_arg(args, tool->project, str_of(root), err));
  if (tool->always) TRY(mcp_set_arg(args, tool->always, STR_LIT(""), err));
  return op_args_finish(args, err);
}
