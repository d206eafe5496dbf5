/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_compat.c - the tools of mcp-vector-search 4.1 (`lode mcp --compat`), for agents and prompts that know its names:
 * its names and arguments, Lode's operations and answers. Those that set how its ranking works are accepted and have no
 * effect, which a note in the answer says; a filter is honoured or refused. Tools that Lode cannot answer are refused
 * with what to use. See mcp.h. */
#include "mcp/mcp.h"
#include "table/op_args_code.h"
#include "table/op_args_symbols.h"

/* ---- Arguments ---- */

typedef struct compat_search_args {
  op_search_args op;
  op_arg_list file_extensions, focus_areas;
  op_arg_text function_name, class_name, project_name, project_path;
  op_arg_choice search_mode;
  op_arg_flag tests_only;
} compat_search_args;

#define COMPAT_P_LIMIT(args, maximum, given)                                                                           \
  { OP_INT(args, limit), .min = 1, .max = maximum, .fallback = given, .about = "at most this many results" }
#define COMPAT_P_MODE                                                                                                  \
  {                                                                                                                    \
    OP_CHOICE(compat_search_args, search_mode), .choices = "hybrid|vector|bm25",                                       \
                                                .about = "by words and vectors, by vectors, or by words"               \
  }
#define COMPAT_P_TESTS                                                                                                 \
  { OP_FLAG(compat_search_args, tests_only), .about = "only files of tests" }
#define COMPAT_RANKING                                                                                                 \
  "similarity_threshold|diversity|use_mmr|expand|use_rerank|rerank_top_n|hybrid_alpha|search_strategies|strategies"

static const op_param compat_code_params[] = {
    {OP_TEXT(op_search_args, query), .flags = OP_PARAM_REQUIRED, .about = "a question, a name or a piece of code"},
    COMPAT_P_LIMIT(op_search_args, 50, "10"),
    {OP_LIST(compat_search_args, file_extensions), .about = "only files that end so: .py, .js"},
    {OP_TEXT_AS(op_search_args, lang, "language"), .about = "only this language"},
    {OP_TEXT(compat_search_args, function_name), .about = "only the function of this name"},
    {OP_TEXT(compat_search_args, class_name), .about = "only the class of this name"},
    {OP_TEXT(compat_search_args, project_name), .about = "only below the folder of this name"},
    {OP_TEXT_AS(op_search_args, path, "files"), .about = "only paths that match: src/net, *.c"},
    COMPAT_P_MODE,
    COMPAT_P_TESTS,
    {0}};
static const op_param compat_similar_params[] = {
    {OP_TEXT_AS(op_search_args, similar, "file_path"), .flags = OP_PARAM_REQUIRED, .about = "find code like this file"},
    {OP_TEXT(compat_search_args, function_name), .about = "like this function of the file"},
    COMPAT_P_LIMIT(op_search_args, 50, "10"),
    COMPAT_P_MODE,
    COMPAT_P_TESTS,
    {0}};
static const op_param compat_context_params[] = {
    {OP_TEXT_AS(op_search_args, query, "description"), .flags = OP_PARAM_REQUIRED, .about = "what to look for"},
    {OP_LIST(compat_search_args, focus_areas), .about = "words to add"},
    COMPAT_P_LIMIT(op_search_args, 50, "10"),
    COMPAT_P_MODE,
    COMPAT_P_TESTS,
    {0}};
static const op_param compat_hybrid_params[] = {
    {OP_TEXT(op_search_args, query), .flags = OP_PARAM_REQUIRED, .about = "a question, a name or a piece of code"},
    {OP_TEXT(compat_search_args, project_path), .about = "this project's folder; there is no other"},
    COMPAT_P_LIMIT(op_search_args, 50, "10"),
    COMPAT_P_TESTS,
    {0}};
static const op_param compat_index_params[] = {
    {OP_FLAG(op_index_args, force), .about = "rebuild everything instead of what changed"}, {0}};

typedef struct compat_embed_args {
  op_index_args op;
  op_arg_flag fresh;
} compat_embed_args;
static const op_param compat_embed_params[] = {
    {OP_FLAG(compat_embed_args, fresh), .about = "rebuild everything instead of what is missing"}, {0}};
static const op_param compat_no_params[] = {{0}};
static const op_param compat_file_params[] = {
    {OP_TEXT_AS(op_outline_args, path, "file_path"), .flags = OP_PARAM_REQUIRED, .about = "path of the file"}, {0}};
static const op_param compat_spots_params[] = {COMPAT_P_LIMIT(op_survey_args, 50, "10"), {0}};
static const op_param compat_entity_params[] = {
    {OP_TEXT_AS(op_symbol_args, name, "entity"), .flags = OP_PARAM_REQUIRED, .about = "a name"},
    COMPAT_P_LIMIT(op_symbol_args, 100, "20"),
    {0}};
static const op_param compat_trace_params[] = {
    {OP_TEXT_AS(op_symbol_args, name, "entry_point"), .flags = OP_PARAM_REQUIRED, .about = "a name"},
    {OP_INT(op_symbol_args, depth), .min = 1, .max = 8, .fallback = "3", .about = "how many calls deep"},
    {0}};

/* ---- Their arguments as the operation's ---- */

static lode_status compat_set(op_args *args, const char *name, lode_str text, lode_error *err) {
  const op_param *param = op_param_find(args->op->params, str_of(name));
  ENSURE(param != NULL, err);
  return op_args_set_text(args, param, text, err);
}

/* At most one of the arguments that choose files is honoured: several would have to match at once. */
static lode_status compat_adapt_files(op_args *args, lode_error *err) {
  const compat_search_args *a = args->values;
  strbuf globs = {0};
  int given = a->op.path.set + (a->file_extensions.n > 0) + a->project_name.set + a->tests_only.on;
  lode_status st = LODE_OK;
  if (given > 1)
    return err_set(err, LODE_INVALID,
                   "\"files\", \"file_extensions\", \"project_name\" and \"tests_only\" all choose files: give one of "
                   "them");
  for (size_t i = 0; i < a->file_extensions.n; i++) {
    lode_str e = a->file_extensions.items[i];
    strbuf_addf(&globs, "%s*%s%.*s", i ? "," : "", e.len && e.data[0] == '.' ? "" : ".", (int)e.len, e.data);
  }
  if (a->project_name.set) strbuf_add(&globs, a->project_name.text.data, a->project_name.text.len);
  if (a->tests_only.on) strbuf_addstr(&globs, "test,tests,__tests__,spec,test_*,*_test.*,*.test.*,*.spec.*,*Test.*");
  if (globs.failed) st = err_nomem(err);
  if (st == LODE_OK && globs.len) st = compat_set(args, "path", (lode_str){globs.data, globs.len}, err);
  strbuf_release(&globs);
  return st;
}

static lode_status compat_search_from(op_args *args, const char *root, lode_error *err) {
  const compat_search_args *a = args->values;
  lode_str mode = str_eq(a->search_mode.text, STR_LIT("bm25")) ? STR_LIT("text") : a->search_mode.text;
  strbuf query = {0};
  lode_status st = LODE_OK;
  if (a->project_path.set && !str_eq(a->project_path.text, str_of(root)) && !str_eq(a->project_path.text, STR_LIT(".")))
    return err_set(err, LODE_INVALID, "\"project_path\": this server knows the project %.300s alone", root);
  if (a->function_name.set && a->class_name.set)
    return err_set(err, LODE_INVALID, "\"function_name\" and \"class_name\": give one of them");
  if (a->function_name.set || a->class_name.set) {
    TRY(compat_set(args, "name", a->function_name.set ? a->function_name.text : a->class_name.text, err));
    TRY(compat_set(args, "type", a->function_name.set ? STR_LIT("function") : STR_LIT("class"), err));
  }
  if (a->search_mode.set) TRY(compat_set(args, "mode", mode, err));
  if (a->focus_areas.n) strbuf_add(&query, a->op.query.text.data, a->op.query.text.len);
  for (size_t i = 0; i < a->focus_areas.n; i++)
    strbuf_addf(&query, " %.*s", (int)a->focus_areas.items[i].len, a->focus_areas.items[i].data);
  if (query.failed) st = err_nomem(err);
  if (st == LODE_OK && query.len) st = compat_set(args, "query", (lode_str){query.data, query.len}, err);
  strbuf_release(&query);
  return st == LODE_OK ? compat_adapt_files(args, err) : st;
}

static lode_status compat_adapt_search(op_args *args, const char *root, lode_error *err) {
  compat_search_args *a = args->values;
  lode_status st = compat_search_from(args, root, err);
  /* the operation knows nothing of them */
  mem_free(a->file_extensions.items);
  mem_free(a->focus_areas.items);
  return st;
}

/* FILE:NAME is the function of that name in the file. */
static lode_status compat_adapt_similar(op_args *args, const char *root, lode_error *err) {
  compat_search_args *a = args->values;
  strbuf place = {0};
  lode_status st = LODE_OK;
  if (a->function_name.set) {
    strbuf_add(&place, a->op.similar.text.data, a->op.similar.text.len);
    strbuf_addch(&place, ':');
    strbuf_add(&place, a->function_name.text.data, a->function_name.text.len);
    st = place.failed ? err_nomem(err) : compat_set(args, "similar", (lode_str){place.data, place.len}, err);
    a->function_name.set = false;
  }
  strbuf_release(&place);
  return st == LODE_OK ? compat_adapt_search(args, root, err) : st;
}

static lode_status compat_adapt_embed(op_args *args, const char *root, lode_error *err) {
  const compat_embed_args *a = args->values;
  (void)root;
  return compat_set(args, a->fresh.on ? "force" : "pending", STR_LIT(""), err);
}

/* ---- The tools ---- */

#define COMPAT_TOOL(tool_name, tool_title, operation)                                                                  \
  .name = tool_name, .title = tool_title, .base = operation, .brief = true, .compat = true
#define COMPAT_SEARCH(tool_name, tool_title, its_params)                                                               \
  COMPAT_TOOL(tool_name, tool_title, "search"), .params = its_params, .args_size = sizeof(compat_search_args),         \
                                                .project = "project", .unused = COMPAT_RANKING, .listed = true
#define COMPAT_KG_SCHEMA                                                                                               \
  "{\"type\":\"object\",\"properties\":{\"entity\":{\"type\":\"string\"},\"relationship\":{\"type\":\"string\","       \
  "\"enum\":[\"calls\",\"called_by\",\"imported_by\",\"inherited_by\"]},\"limit\":{\"type\":\"integer\","              \
  "\"minimum\":1,\"maximum\":100,\"default\":20}},\"required\":[\"entity\"]}"
#define COMPAT_TRACE_SCHEMA                                                                                            \
  "{\"type\":\"object\",\"properties\":{\"entry_point\":{\"type\":\"string\"},\"depth\":{\"type\":\"integer\","        \
  "\"minimum\":1,\"maximum\":8,\"default\":3},\"direction\":{\"type\":\"string\",\"enum\":[\"outgoing\","              \
  "\"incoming\"]}},\"required\":[\"entry_point\"]}"

const mcp_tool mcp_compat_tools[] = {
    {COMPAT_SEARCH("search_code", "Search code", compat_code_params), .adapt = compat_adapt_search,
     .about = "Find code by a question, a name or a piece of code."},
    {COMPAT_SEARCH("search_similar", "Similar code", compat_similar_params), .adapt = compat_adapt_similar,
     .place = "similar", .about = "Find code like a file, or like a function in it."},
    {COMPAT_SEARCH("search_context", "Search by description", compat_context_params), .adapt = compat_adapt_search,
     .about = "Find code by a description and words to add to it."},
    {COMPAT_SEARCH("search_hybrid", "Search code", compat_hybrid_params), .adapt = compat_adapt_search,
     .about = "Find code by words, names and meaning."},
    {COMPAT_TOOL("get_project_status", "Project status", "status"), .params = compat_no_params, .project = "project",
     .listed = true, .about = "State of the index."},
    {COMPAT_TOOL("index_project", "Index the project", "index"), .params = compat_index_params, .project = "path",
     .unused = "file_extensions", .is_long = true, .listed = true,
     .about = "Bring the index up to date with the files."},
    {COMPAT_TOOL("embed_chunks", "Make vectors", "index"), .params = compat_embed_params,
     .args_size = sizeof(compat_embed_args), .adapt = compat_adapt_embed, .project = "path", .unused = "batch_size",
     .is_long = true, .listed = true, .about = "Make the vectors that are missing."},
    {COMPAT_TOOL("kg_build", "Index the project", "index"), .params = compat_index_params, .project = "path",
     .unused = "skip_documents|limit", .is_long = true, .listed = true,
     .about = "The graph is made with the index: brings both up to date."},
    {COMPAT_TOOL("kg_stats", "Project status", "status"), .params = compat_no_params, .project = "project",
     .listed = true, .about = "State of the index, which has the graph."},
    {COMPAT_TOOL("kg_query", "Relations of a name", "refs"), .pick = "relationship",
     .picks = "all=kg_query_uses|calls=kg_query_calls|called_by=kg_query_called_by|imported_by=kg_query_uses|"
              "inherited_by=kg_query_uses",
     .schema = COMPAT_KG_SCHEMA, .project = "project", .listed = true,
     .about = "Who uses a name, calls it, or is called by it."},
    {COMPAT_TOOL("kg_query_uses", "Uses", "refs"), .params = compat_entity_params, .project = "project",
     .about = "Who uses a name."},
    {COMPAT_TOOL("kg_query_calls", "Calls", "callees"), .params = compat_entity_params, .project = "project",
     .about = "What it calls."},
    {COMPAT_TOOL("kg_query_called_by", "Callers", "callers"), .params = compat_entity_params, .project = "project",
     .about = "Who calls it."},
    {COMPAT_TOOL("trace_execution_flow", "Chains of calls", "callees"), .pick = "direction",
     .picks = "outgoing=trace_outgoing|incoming=trace_incoming", .schema = COMPAT_TRACE_SCHEMA, .project = "project",
     .listed = true, .about = "What a function calls, or who calls it, several steps far."},
    {COMPAT_TOOL("trace_outgoing", "Calls", "callees"), .params = compat_trace_params, .project = "project",
     .about = "What it calls."},
    {COMPAT_TOOL("trace_incoming", "Callers", "callers"), .params = compat_trace_params, .project = "project",
     .about = "Who calls it."},
    {COMPAT_TOOL("analyze_file", "Outline", "outline"), .params = compat_file_params, .place = "path",
     .project = "project", .listed = true, .about = "What a file defines."},
    {COMPAT_TOOL("get_complexity_hotspots", "Hotspots", "hotspots"), .params = compat_spots_params,
     .project = "project", .listed = true, .about = "Long functions with many branches, in files that change often."},
    {COMPAT_TOOL("check_circular_dependencies", "Cycles", "cycles"), .params = compat_no_params, .project = "project",
     .listed = true, .about = "Files that import each other."},
    {0}};

const char *mcp_compat_instead(lode_str name) {
  static const char by_model[] = "it needs a language model, and that is you: ask search, outline, symbol and impact";
  static const struct {
    const char *name, *instead;
  } refused[] = {
      {"analyze_project", "get_complexity_hotspots, check_circular_dependencies and get_project_status have the facts"},
      {"find_smells", "get_complexity_hotspots lists long and branching functions, `lode unused` what nothing uses"},
      {"analyze_tests", "search_code with tests_only finds tests"},
      {"interpret_analysis", by_model},
      {"save_report", "the agent's own tools write files"},
      {"review_repository", by_model},
      {"review_pull_request", "impact shows what a change may break; the review is yours to write"},
      {"code_review", "impact shows what a change may break; the review is yours to write"},
      {"wiki_generate", by_model},
      {"story_generate", by_model},
      {"kg_ontology", "outline shows what a file or folder has; search_code finds documents, too"},
      {"kg_ia", "outline shows what a file or folder has; search_code finds documents, too"},
      {"kg_history", "the index is of the files as they are; git log -S has their history"},
      {"kg_callers_at_commit", "the index is of the files as they are: index a worktree of that commit"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (str_eq(str_of(refused[i].name), name)) return refused[i].instead;
  return NULL;
}
