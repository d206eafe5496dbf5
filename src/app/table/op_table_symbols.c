/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_symbols.c - the operations on symbols, as data. See op_def.h. */
#include "table/op_args_symbols.h"

#define P_SYMBOLS_PROJECT(args)                                                                                        \
  {                                                                                                                    \
    OP_PATH(args, project), .letter = 'p', .value = "DIR",                                                             \
                            .about = "a file or folder of the project; the working directory when not given"           \
  }
#define P_SYMBOLS_LIMIT(args, given)                                                                                   \
  {                                                                                                                    \
    OP_INT(args, limit), .letter = 'n', .value = "N", .fallback = given, .min = 1, .max = 100000,                      \
                         .about = "at most this many rows"                                                             \
  }
#define P_SYMBOLS_NAME                                                                                                 \
  {                                                                                                                    \
    OP_TEXT(op_symbol_args, name), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "NAME",                  \
                                   .about = "its name; Outer.name, or file.c:name, where several have it"              \
  }
#define P_SYMBOLS_DEPTH(args, given)                                                                                   \
  {                                                                                                                    \
    OP_INT(args, depth), .letter = 'd', .value = "N", .fallback = given, .min = 1, .max = 32,                          \
                         .about = "follow calls of calls, this many steps"                                             \
  }
#define P_SYMBOLS_BELOW(args)                                                                                          \
  {                                                                                                                    \
    OP_TEXT(args, path), .flags = OP_PARAM_POSITIONAL, .value = "PATH",                                                \
                         .about = "only in this file, or below this folder"                                            \
  }

static const op_param params_outline[] = {{OP_TEXT(op_outline_args, path), .flags = OP_PARAM_POSITIONAL,
                                           .value = "FILE|DIR",
                                           .about = "a file, or a folder: the project's root when not given"},
                                          P_SYMBOLS_LIMIT(op_outline_args, "1000"),
                                          P_SYMBOLS_PROJECT(op_outline_args),
                                          {0}};
static const op_param params_def[] = {
    P_SYMBOLS_NAME, P_SYMBOLS_LIMIT(op_symbol_args, "50"), P_SYMBOLS_PROJECT(op_symbol_args), {0}};
static const op_param params_refs[] = {
    P_SYMBOLS_NAME, P_SYMBOLS_LIMIT(op_symbol_args, "200"), P_SYMBOLS_PROJECT(op_symbol_args), {0}};
static const op_param params_calls[] = {P_SYMBOLS_NAME,
                                        P_SYMBOLS_DEPTH(op_symbol_args, "1"),
                                        P_SYMBOLS_LIMIT(op_symbol_args, "200"),
                                        P_SYMBOLS_PROJECT(op_symbol_args),
                                        {0}};
static const op_param params_impact[] = {
    {OP_TEXT(op_impact_args, at), .flags = OP_PARAM_POSITIONAL, .value = "FILE:LINE",
     .about = "the definition at this line; of a file without a line, all that it defines"},
    {OP_TEXT(op_impact_args, name), .value = "NAME", .about = "or its name"},
    {OP_TEXT(op_impact_args, diff), .flags = OP_PARAM_CLI_ONLY, .value = "REV",
     .about = "or all definitions that differ from this revision of git"},
    P_SYMBOLS_DEPTH(op_impact_args, "3"),
    P_SYMBOLS_LIMIT(op_impact_args, "200"),
    P_SYMBOLS_PROJECT(op_impact_args),
    {0}};
static const op_param params_read[] = {
    {OP_TEXT(op_read_args, at), .flags = OP_PARAM_POSITIONAL, .value = "FILE[:LINE]",
     .about = "a file, from this line"},
    {OP_TEXT(op_read_args, name), .value = "NAME", .about = "or a definition: all of it"},
    {OP_INT(op_read_args, lines), .letter = 'n', .value = "N", .fallback = "100", .min = 1, .max = 100000,
     .about = "how many lines"},
    {OP_FLAG(op_read_args, indexed), .about = "the file as it was indexed, from the store; over HTTP only so"},
    {OP_FLAG(op_read_args, spans), .about = "with --indexed: also the tokens of each line, for colours"},
    P_SYMBOLS_PROJECT(op_read_args),
    {0}};
static const op_param params_trace[] = {{OP_TEXT(op_trace_args, from), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL,
                                         .value = "FROM", .about = "the function that calls"},
                                        {OP_TEXT(op_trace_args, to), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL,
                                         .value = "TO", .about = "the function that is reached"},
                                        P_SYMBOLS_PROJECT(op_trace_args),
                                        {0}};
static const op_param params_survey[] = {
    P_SYMBOLS_BELOW(op_survey_args), P_SYMBOLS_LIMIT(op_survey_args, "50"), P_SYMBOLS_PROJECT(op_survey_args), {0}};

#define SYMBOLS_FIELD_PLACE                                                                                            \
  {"path", OP_FIELD_TEXT, 0, "from the root"}, { "line", OP_FIELD_NUMBER, 0, "where it begins" }
static const op_field row_symbols_def[] = {
    SYMBOLS_FIELD_PLACE,
    {"end_line", OP_FIELD_NUMBER, 0, "where it ends"},
    {"kind", OP_FIELD_TEXT, 0, "function, method, class, struct, ..."},
    {"name", OP_FIELD_TEXT, 0, "with the names around it: Outer.name"},
    {"signature", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "on one line"},
    {"doc", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "first sentence of its documentation"},
    {"declared", OP_FIELD_BOOL, OP_FIELD_OPTIONAL, "true: it is only declared there"},
    {"level", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "outline: how many definitions are around it"},
    {"more", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "outline of a folder: what else the file defines"},
    {0}};
static const op_field row_symbols_ref[] = {
    SYMBOLS_FIELD_PLACE,
    {"use", OP_FIELD_TEXT, 0, "call, type, use, member, base or import"},
    {"in", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the definition around it"},
    {"to", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the definition that it means: path:line; null: not known"},
    {"candidates", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "definitions that it may mean, if it is not clear"},
    {"text", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "the line, as the file is now"},
    {0}};
static const op_field row_symbols_edge[] = {
    {"depth", OP_FIELD_NUMBER, 0, "how many calls away"},
    {"path", OP_FIELD_TEXT, 0, "where it is called, or used"},
    {"line", OP_FIELD_NUMBER, 0, "of the first such place in the caller"},
    {"from", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "who calls; null: code outside of definitions"},
    {"use", OP_FIELD_TEXT, 0, "call, type, use, member, base"},
    {"to", OP_FIELD_TEXT, 0, "what is called"},
    {"at", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "where that is defined: path:line; null: not in the project"},
    {"times", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "places in the caller, if more than one"},
    {"candidates", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "definitions that may be meant, if it is not clear"},
    {0}};
static const op_field row_symbols_read[] = {
    {"path", OP_FIELD_TEXT, 0, "from the root"},
    {"start_line", OP_FIELD_NUMBER, 0, "first line shown"},
    {"end_line", OP_FIELD_NUMBER, 0, "last line shown"},
    {"kind", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "of the definition"},
    {"name", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "of the definition"},
    {"language", OP_FIELD_TEXT, 0, "of the file"},
    {"snippet", OP_FIELD_TEXT, 0, "the lines; secrets are masked"},
    {"lines", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "of the whole file, as indexed"},
    {"spans", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL,
     "for each line [KIND, LENGTH, ...]: kinds 0 plain, 1 comment, 2 string, 3 "
     "number, 4 word of the language, 5 name; lengths in UTF-16 units"},
    {0}};
static const op_field row_symbols_cycle[] = {
    {"size", OP_FIELD_COUNT, 0, "how many files"}, {"files", OP_FIELD_TEXTS, 0, "that import each other"}, {0}};
static const op_field row_symbols_hotspot[] = {
    SYMBOLS_FIELD_PLACE,
    {"kind", OP_FIELD_TEXT, 0, "function, method, ..."},
    {"name", OP_FIELD_TEXT, 0, "with the names around it"},
    {"lines", OP_FIELD_COUNT, 0, "its size"},
    {"branches", OP_FIELD_COUNT, 0, "ifs, loops and cases in it"},
    {"uses", OP_FIELD_COUNT, 0, "places that name it"},
    {"changes", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "commits that changed its file, of the last 1,000"},
    {"score", OP_FIELD_REAL, 0, "branches and size, more where a file changes often"},
    {0}};
static const op_field summary_symbols_impact[] = {{"changed", OP_FIELD_COUNT, 0, "definitions that were asked about"},
                                                  {"reached", OP_FIELD_COUNT, 0, "places that may be affected"},
                                                  {"files", OP_FIELD_COUNT, 0, "in as many files"},
                                                  {0}};

#define SYMBOLS_OP(verb) .name = #verb, OP_RUNS(verb), .flags = OP_READ_ONLY | OP_PROJECT | OP_PAGED

const op_def op_table_symbols[] = {
    {SYMBOLS_OP(outline), .about = "list what a file or a folder defines", .layout = OP_LAYOUT_OUTLINE,
     .params = params_outline, .row = row_symbols_def,
     .detail = "Of a file, every definition, what is inside of another below it; of a folder, the outermost functions "
               "and types "
               "of each file. A folder with more than --limit of them shows some of each file, and how many are left.",
     .examples = "lode outline src/net.c\nlode outline src/api --json"},
    {SYMBOLS_OP(def), .about = "show where a name is defined", .layout = OP_LAYOUT_DEFINITIONS, .params = params_def,
     .row = row_symbols_def,
     .detail = "Fields, values of enums and nested functions too. Exit code 1 when nothing has that name.",
     .examples = "lode def parseHeader\nlode def Server.Start\nlode def src/net.c:retry"},
    {SYMBOLS_OP(refs), .about = "list every place that uses a name", .layout = OP_LAYOUT_USES, .params = params_refs,
     .row = row_symbols_ref,
     .detail = "Places in comments and strings, and local names, are not uses. Each place says which definition it "
               "means, as far as the text shows that.",
     .examples = "lode refs parseHeader\nlode refs MAX_RETRIES --json"},
    {SYMBOLS_OP(callers), .about = "show who calls a function", .layout = OP_LAYOUT_CALLERS, .params = params_calls,
     .row = row_symbols_edge,
     .detail = "A call belongs to a function if scopes, imports and the types that are written down say so. Where "
               "several functions may be meant, `candidates` says how many.",
     .examples = "lode callers retry\nlode callers Server.Start --depth 3"},
    {SYMBOLS_OP(callees), .about = "show what a function calls", .layout = OP_LAYOUT_CALLEES, .params = params_calls,
     .row = row_symbols_edge, .detail = "Calls that lead out of the project are listed without a place.",
     .examples = "lode callees retry\nlode callees main --depth 2"},
    {SYMBOLS_OP(impact), .about = "show what a change may break", .layout = OP_LAYOUT_CALLERS, .params = params_impact,
     .row = row_symbols_edge, .summary = summary_symbols_impact,
     .say = "{changed} definition{s} changed, {reached} place{s} in {files} file{s}",
     .detail = "Everything that uses the definition, and what uses that, up to --depth steps.",
     .examples = "lode impact src/net.c:120\nlode impact --name Server.Start --depth 5\nlode impact --diff HEAD~1"},
    {.name = "read",
     OP_RUNS(read),
     .flags = OP_READ_ONLY | OP_PROJECT | OP_PAGED,
     .about = "print lines of a file, or a definition, as the file is now",
     .params = params_read,
     .row = row_symbols_read,
     .layout = OP_LAYOUT_HITS,
     .detail = "Files that the index leaves out are not shown, and secrets are masked as they are there.",
     .examples = "lode read src/net.c:120 -n 40\nlode read --name Server.Start\nlode read src/net.c --indexed"},
    {SYMBOLS_OP(trace), .about = "show how one function reaches another", .layout = OP_LAYOUT_CALLEES,
     .params = params_trace, .row = row_symbols_edge,
     .detail = "The shortest chain of calls. Exit code 1 when there is none.",
     .examples = "lode trace main store_open"},
    {SYMBOLS_OP(unused), .about = "list functions and types that nothing uses", .layout = OP_LAYOUT_OUTLINE,
     .params = params_survey, .row = row_symbols_def,
     .detail = "By name: a definition is listed only if no file uses its name. What a library exports, and what a "
               "framework calls by its name, may be among them.",
     .examples = "lode unused\nlode unused src --json"},
    {SYMBOLS_OP(cycles), .about = "list files that import each other", .params = params_survey,
     .row = row_symbols_cycle, .examples = "lode cycles\nlode cycles src"},
    {SYMBOLS_OP(hotspots), .about = "list the functions that are the hardest to change", .params = params_survey,
     .row = row_symbols_hotspot,
     .detail = "By branches, size, and how often the file changed, if the project is a repository of git.",
     .examples = "lode hotspots\nlode hotspots src -n 10"},
    {0}};
