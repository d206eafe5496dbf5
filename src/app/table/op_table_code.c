/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_code.c - the operations of code search, as data. See op_def.h. */
#include "table/op_args_code.h"

#define P_CODE_PROJECT(args)                                                                                           \
  {                                                                                                                    \
    OP_PATH(args, project), .letter = 'p', .value = "DIR",                                                             \
                            .about = "a file or folder of the project; the working directory when not given"           \
  }
#define P_CODE_PROJECT_PLACED(args)                                                                                    \
  {                                                                                                                    \
    OP_PATH(args, project), .letter = 'p', .flags = OP_PARAM_EITHER, .value = "DIR",                                   \
                            .about = "a file or folder of the project; the working directory when not given"           \
  }
#define P_CODE_PATH(args)                                                                                              \
  {                                                                                                                    \
    OP_PATH(args, path), .flags = OP_PARAM_POSITIONAL, .value = "PATH",                                                \
                         .about = "a file or folder of the project; the working directory when not given"              \
  }

/* ---- Parameters ---- */

static const op_param params_code_setup[] = {
    P_CODE_PATH(op_setup_args),
    {OP_FLAG(op_setup_args, dry_run), .about = "report what would be done, and change nothing"},
    {OP_FLAG(op_setup_args, no_mcp), .about = "do not register the MCP server with the clients found"},
    {OP_FLAG(op_setup_args, no_instructions),
     .about = "do not write the files that tell agents which tool answers which question"},
    {OP_FLAG(op_setup_args, no_index), .about = "do not index"},
    {OP_FLAG(op_setup_args, replace),
     .about = "take the entry of mcp-vector-search out of the settings of clients where Lode is registered"},
    {OP_TEXT(op_setup_args, model), .value = "MODEL", .about = "what makes the vectors: code, minilm, none, ..."},
    {0}};
static const op_param params_code_index[] = {
    P_CODE_PATH(op_index_args),
    {OP_FLAG(op_index_args, force), .letter = 'f',
     .about = "rebuild everything beside the present index, which serves until the new one takes its place"},
    {OP_TEXT(op_index_args, model), .value = "MODEL",
     .about = "from now on make the vectors with this model (code, minilm, ...): rebuilds the index if it has others"},
    {OP_FLAG(op_index_args, quality), .about = "also make second vectors with MiniLM: slower to index, better results"},
    {OP_FLAG(op_index_args, pending), .about = "read no files, only make the vectors that are still missing"},
    {OP_PATH(op_index_args, remove), .value = "PATH", .about = "remove this file or folder from the index instead"},
    {OP_INT(op_index_args, workers), .value = "N", .max = 64,
     .about = "number of parser processes; one per processor when not given"},
    {0}};
static const op_param params_code_search[] = {
    {OP_TEXT(op_search_args, query), .flags = OP_PARAM_POSITIONAL | OP_PARAM_REST, .value = "QUERY",
     .about = "a question in plain words, a name, a piece of code or of a message; \"quoted\": text as it stands"},
    {OP_FLAG(op_search_args, exact), .letter = 'F', .about = "the query is text as it stands, case included"},
    {OP_FLAG(op_search_args, regex), .letter = 'E',
     .about = "the query is a regular expression (PCRE2); ^ and $ are the ends of a line"},
    {OP_INT(op_search_args, limit), .letter = 'n', .value = "N", .min = 1, .max = 1000,
     .about = "at most this many results (10, or search.limit)"},
    {OP_CHOICE(op_search_args, mode), .letter = 'm', .value = "MODE", .choices = "hybrid|vector|text",
     .about = "by words and vectors, by vectors, or by words (hybrid, or search.mode)"},
    {OP_TEXT(op_search_args, lang), .letter = 'l', .value = "LANGUAGE", .about = "only this language"},
    {OP_TEXT(op_search_args, path), .value = "GLOB",
     .about = "only paths that match, as a line of .gitignore would: src/net, *.c, tests/**/*.py; several with commas"},
    {OP_TEXT(op_search_args, type), .letter = 't', .value = "TYPE",
     .about = "only this kind: function (methods too), class (all types), struct, enum, section, ..."},
    {OP_TEXT(op_search_args, name), .value = "NAME", .about = "only what defines exactly this name"},
    {OP_TEXT(op_search_args, similar), .value = "FILE[:LINE]",
     .about = "find code like this, instead of a query; FILE:NAME is a definition in it"},
    {OP_INT(op_search_args, context), .letter = 'C', .value = "N", .max = 1000,
     .about = "this many lines of the file before and after"},
    {OP_FLAG(op_search_args, files_only), .about = "show paths only, each once"},
    {OP_FLAG(op_search_args, interactive), .letter = 'i', .flags = OP_PARAM_CLI_ONLY,
     .about = "results as you type, with a preview; Enter opens one in $VISUAL or $EDITOR"},
    {OP_FLAG(op_search_args, oneline), .flags = OP_PARAM_CLI_ONLY,
     .about = "show one line of each result: PATH:LINE: its text, as grep does and editors read"},
    {OP_FLAG(op_search_args, explain), .about = "show what each score is made of"},
    {OP_FLAG(op_search_args, refresh), .about = "bring changed files up to date first, however long it takes"},
    {OP_FLAG(op_search_args, no_refresh), .about = "search the index as it is (search.refresh=off: always)"},
    P_CODE_PROJECT(op_search_args),
    {0}};
static const op_param params_code_context[] = {
    {OP_TEXT(op_context_args, at), .flags = OP_PARAM_POSITIONAL, .value = "FILE[:LINE]|NAME",
     .about = "the piece of code: a place in a file, or the name of what it defines (./Makefile is a file)"},
    {OP_TEXT(op_context_args, name), .value = "NAME", .about = "its name, where a file is called the same"},
    {OP_INT(op_context_args, limit), .letter = 'n', .value = "N", .fallback = "20", .min = 1, .max = 1000,
     .about = "at most this many uses"},
    P_CODE_PROJECT(op_context_args),
    {0}};
static const op_param params_code_status[] = {
    {OP_FLAG(op_status_args, check), .about = "walk the tree and count the files that changed since the index"},
    {OP_FLAG(op_status_args, skipped), .flags = OP_PARAM_CLI_ONLY,
     .about = "list the files that are not in the index and why, as lode skipped does"},
    {OP_FLAG(op_status_args, skip_stats), .about = "leave out languages, sizes and registrations"},
    {OP_FLAG(op_status_args, force_refresh), .about = "count everything again instead of reading counters"},
    P_CODE_PROJECT_PLACED(op_status_args),
    {0}};
static const op_param params_code_skipped[] = {
    P_CODE_PATH(op_skipped_args),
    {OP_TEXT(op_skipped_args, reason), .letter = 'r', .value = "REASON",
     .about = "only those left out for this reason: secret, masked, ignored, binary, ..."},
    {0}};
static const op_param params_code_watch[] = {
    P_CODE_PATH(op_watch_args),
    {OP_INT(op_watch_args, debounce), .value = "MS", .max = 60000,
     .about = "how long a file must stay unchanged (watch.debounce_ms)"},
    {OP_FLAG(op_watch_args, once), .about = "stop after the first changes are indexed"},
    {0}};
static const op_param params_code_doctor[] = {
    {OP_FLAG(op_doctor_args, repair), .about = "repair what can be repaired; nothing is deleted"},
    P_CODE_PROJECT_PLACED(op_doctor_args),
    {0}};
static const op_param params_code_reset[] = {
    {OP_CHOICE(op_reset_args, what), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "WHAT",
     .choices = "index|all",
     .about = "the index; or everything that lode made in .lode: settings and other collections too"},
    {OP_FLAG(op_reset_args, yes), .letter = 'y', .about = "do not ask for confirmation"},
    {OP_FLAG(op_reset_args, no_backup), .about = "keep no copy of what is removed"},
    P_CODE_PROJECT(op_reset_args),
    {0}};
static const op_param params_code_completion[] = {{OP_CHOICE(op_completion_args, shell),
                                                   .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "SHELL",
                                                   .choices = "bash|zsh|fish", .about = "the shell"},
                                                  {0}};
static const op_param params_code_trust[] = {
    {OP_PATH(op_trust_args, path), .flags = OP_PARAM_POSITIONAL, .value = "FOLDER",
     .about = "a folder of the project; the working directory when not given"},
    {OP_FLAG(op_trust_args, list), .about = "show the folders that are known, and do nothing else"},
    {OP_FLAG(op_trust_args, forget), .about = "no longer trust it"},
    {0}};
#define P_CONFIG_KEY                                                                                                   \
  {                                                                                                                    \
    OP_TEXT(op_config_args, key), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "SETTING",                \
                                  .about = "the setting"                                                               \
  }
static const op_param params_config_get[] = {P_CONFIG_KEY, P_CODE_PROJECT(op_config_args), {0}};
static const op_param params_config_set[] = {P_CONFIG_KEY,
                                             {OP_TEXT(op_config_args, value),
                                              .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "VALUE",
                                              .about = "its value"},
                                             P_CODE_PROJECT(op_config_args),
                                             {0}};
static const op_param params_config_list[] = {P_CODE_PROJECT(op_config_args), {0}};

/* ---- Answers ---- */

static const op_field row_code_setup[] = {
    {"step", OP_FIELD_TEXT, 0, "root, languages, parser, model, index, mcp, or the name of a client"},
    {"state", OP_FIELD_TEXT, 0, "done, same, would, skipped or failed"},
    {"detail", OP_FIELD_TEXT, 0, "a sentence"},
    {0}};
static const op_field summary_code_index[] = {
    {"root", OP_FIELD_TEXT, 0, "of the project"},
    {"files", OP_FIELD_COUNT, 0, "in the index: the new, changed and unchanged ones"},
    {"added", OP_FIELD_COUNT, 0, "files that are new"},
    {"changed", OP_FIELD_COUNT, 0, "files that were read again"},
    {"removed", OP_FIELD_COUNT, 0, "files that are gone, or left out now"},
    {"unchanged", OP_FIELD_COUNT, 0, "files that are as they were"},
    {"chunks", OP_FIELD_COUNT, 0, "written"},
    {"vectors", OP_FIELD_COUNT, 0, "made"},
    {"reused", OP_FIELD_COUNT, 0, "vectors taken from equal texts"},
    {"pending", OP_FIELD_COUNT, 0, "chunks that have no vector"},
    {"skipped", OP_FIELD_OBJECT, 0, "files and folders left out, by reason"},
    {"left_out", OP_FIELD_COUNT, 0, "all of them"},
    {"secrets", OP_FIELD_COUNT, 0, "those of them that look like keys or passwords"},
    {"masked", OP_FIELD_COUNT, 0, "secrets inside files that were masked"},
    {"unparsed", OP_FIELD_COUNT, 0, "files whose parser failed: cut by lines"},
    {"bytes", OP_FIELD_BYTES, 0, "read"},
    {"walk_ms", OP_FIELD_NUMBER, 0, "time spent looking at files"},
    {"index_ms", OP_FIELD_NUMBER, 0, "time spent reading, parsing, embedding and writing"},
    {"embed_ms", OP_FIELD_NUMBER, 0, "time spent on vectors of slow models"},
    {"finish_ms", OP_FIELD_NUMBER, 0, "time spent on the text index"},
    {"seconds", OP_FIELD_REAL, 0, "in all"},
    {0}};
static const op_field row_code_search[] = {
    {"rank", OP_FIELD_NUMBER, 0, "1 is the best"},
    {"path", OP_FIELD_TEXT, 0, "from the root"},
    {"start_line", OP_FIELD_NUMBER, 0, "first line of the chunk"},
    {"end_line", OP_FIELD_NUMBER, 0, "its last line"},
    {"line", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "where the definition begins, if not at start_line"},
    {"kind", OP_FIELD_TEXT, 0, "function, class, section, ..."},
    {"name", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "what it defines"},
    {"parents", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "names around it"},
    {"language", OP_FIELD_TEXT, 0, "of the file"},
    {"score", OP_FIELD_REAL, 0, "of the ranking; larger is better"},
    {"cosine", OP_FIELD_REAL, OP_FIELD_NULLABLE, "of question and chunk"},
    {"snippet", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "its text"},
    {"snippet_line", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "where the snippet begins, if not at start_line"},
    {"weak", OP_FIELD_BOOL, OP_FIELD_OPTIONAL, "true: nothing matches well, and this is only the nearest there is"},
    {"more", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "other chunks of the file that match"},
    {"copies", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "chunks elsewhere that say the same"},
    {"stale", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "changed or gone: its file is not as it was indexed"},
    {"index", OP_FIELD_TEXT, OP_FIELD_OPTIONAL,
     "behind: files changed and were not brought up to date; unchecked: not looked at"},
    {"explain", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL, "figures from 0 to 1 that the score is made of"},
    {0}};
static const op_field row_code_context[] = {
    {"rank", OP_FIELD_NUMBER, 0, "place in the answer"},
    {"relation", OP_FIELD_TEXT, 0, "definition; before, behind: the pieces above and below it in the file; use"},
    {"path", OP_FIELD_TEXT, 0, "from the root"},
    {"start_line", OP_FIELD_NUMBER, 0, "first line of the chunk"},
    {"end_line", OP_FIELD_NUMBER, 0, "its last line"},
    {"kind", OP_FIELD_TEXT, 0, "function, class, section, ..."},
    {"name", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "what it defines"},
    {"parents", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "names around it"},
    {"language", OP_FIELD_TEXT, 0, "of the file"},
    {"snippet", OP_FIELD_TEXT, 0, "its text; of a use, the lines that hold the name"},
    {"snippet_line", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "where the snippet begins, if not at start_line"},
    {"stale", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "changed or gone: its file is not as it was indexed"},
    {0}};
static const op_field summary_code_status[] = {
    {"root", OP_FIELD_TEXT, OP_FIELD_NULLABLE,
     "of the project; null in a request to a store that does not lie in one as .lode"},
    {"state", OP_FIELD_TEXT, 0, "not indexed, indexing, unfinished, ready, busy, damaged, untrusted or unreachable"},
    {"damage", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "what is wrong, and what to run"},
    {"files", OP_FIELD_COUNT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "indexed"},
    {"chunks", OP_FIELD_COUNT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "of them"},
    {"pending", OP_FIELD_COUNT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "chunks that have no vector yet"},
    {"quality_pending", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_QUIET, "chunks that have no second vector yet"},
    {"symbols", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_DETAIL, "files whose definitions and uses are known"},
    {"symbols_missing", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "files whose definitions and uses were lost: on a cluster"},
    {"languages", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL, "files by language"},
    {"kinds", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL | OP_FIELD_DETAIL, "chunks by kind"},
    {"skipped", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL | OP_FIELD_QUIET, "left out by the last full run, by reason"},
    {"masked", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_QUIET, "secrets inside files that were masked"},
    {"model", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "that made the vectors"},
    {"model_wanted", OP_FIELD_TEXT, OP_FIELD_DETAIL, "of the configuration"},
    {"bytes", OP_FIELD_BYTES, OP_FIELD_OPTIONAL, "of the index"},
    {"last_index", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "when, as a date"},
    {"last_scan", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_DETAIL, "when the whole tree was last looked at"},
    {"seconds_since_scan", OP_FIELD_COUNT, OP_FIELD_NULLABLE | OP_FIELD_DETAIL, "how long that was ago"},
    {"activity", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "who indexes now, and how far it is"},
    {"watcher", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_QUIET, "who watches"},
    {"mcp", OP_FIELD_TEXTS, OP_FIELD_OPTIONAL | OP_FIELD_QUIET, "clients that know this project's MCP server"},
    {"segments", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_DETAIL, "files of the vector index"},
    {"untexted", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_DETAIL, "chunks that text search still scans"},
    {"damaged_pages", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_QUIET, "met by this command"},
    {"quarantined", OP_FIELD_COUNT, OP_FIELD_OPTIONAL | OP_FIELD_QUIET, "damaged files that were set aside"},
    {"trust", OP_FIELD_TEXT, OP_FIELD_OPTIONAL | OP_FIELD_DETAIL,
     "none (no store yet), ours, adopted, untrusted or foreign; absent when the store was named"},
    {"held", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL, "settings without effect until `lode trust`"},
    {"changed_files", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "--check: not as they were indexed"},
    {"new_files", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "--check: not indexed yet"},
    {"removed_files", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "--check: indexed, and gone"},
    {"revision", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL | OP_FIELD_DETAIL, "of the way files are cut"},
    {0}};
static const op_field row_code_skipped[] = {
    {"path", OP_FIELD_TEXT, 0, "from the root; of a folder, with a slash at its end"},
    {"reason", OP_FIELD_TEXT, 0, "one word, as status counts it"},
    {"about", OP_FIELD_TEXT, 0, "what it means"},
    {0}};
static const op_field row_code_watch[] = {{"time", OP_FIELD_TEXT, 0, "when"},
                                          {"what", OP_FIELD_TEXT, 0, "a sentence"},
                                          {"added", OP_FIELD_COUNT, 0, "files"},
                                          {"changed", OP_FIELD_COUNT, 0, "files"},
                                          {"removed", OP_FIELD_COUNT, 0, "files"},
                                          {"ms", OP_FIELD_NUMBER, 0, "it took"},
                                          {0}};
static const op_field row_code_doctor[] = {{"check", OP_FIELD_TEXT, 0, "what was looked at"},
                                           {"state", OP_FIELD_TEXT, 0, "ok, note, bad or mended"},
                                           {"detail", OP_FIELD_TEXT, 0, "a sentence"},
                                           {"remedy", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "what to run"},
                                           {0}};
static const op_field summary_code_doctor[] = {{"ok", OP_FIELD_BOOL, 0, "nothing bad was found, or it was repaired"},
                                               {"checks", OP_FIELD_COUNT, 0, "how many"},
                                               {"bad", OP_FIELD_COUNT, 0, "how many were bad and still are"},
                                               {"mended", OP_FIELD_COUNT, 0, "how many were repaired"},
                                               {0}};
static const op_field summary_code_reset[] = {{"root", OP_FIELD_TEXT, 0, "of the project"},
                                              {"removed", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "what was removed"},
                                              {"backup", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "where a copy of it is"},
                                              {0}};
static const op_field row_code_trust[] = {{"folder", OP_FIELD_TEXT, 0, "of a store"},
                                          {"level", OP_FIELD_TEXT, 0, "made, adopted or trusted"},
                                          {"settings", OP_FIELD_OBJECT, 0, "values that may reach beyond the folder"},
                                          {0}};
static const op_field summary_code_trust[] = {
    {"folder", OP_FIELD_TEXT, 0, "of the store"},
    {"done", OP_FIELD_TEXT, 0, "what was done"},
    {"settings", OP_FIELD_OBJECT, 0, "values that may reach beyond the folder from now on"},
    {0}};
static const op_field row_config[] = {
    {"key", OP_FIELD_TEXT, 0, "the setting"},
    {"value", OP_FIELD_TEXT, 0, "its value"},
    {"set", OP_FIELD_BOOL, 0, "false: it is the default"},
    {"held", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "the value in the file, which has no effect until `lode trust`"},
    {"about", OP_FIELD_TEXT, 0, "what it means"},
    {0}};
static const op_field summary_config[] = {
    {"key", OP_FIELD_TEXT, 0, "the setting"}, {"value", OP_FIELD_TEXT, 0, "its value"}, {0}};

/* ---- The tables ---- */

#define OP_OF_CODE(verb) .name = #verb, OP_RUNS(verb)

const op_def op_table_code[] = {
    {OP_OF_CODE(setup), .about = "index a project and register it with the AI tools on this machine",
     .flags = OP_LONG | OP_LOCAL | OP_PROJECT, .params = params_code_setup, .row = row_code_setup,
     .detail =
         "Finds the project's root and its languages, indexes it, and registers `lode mcp` with the clients it "
         "finds: Claude Code, "
         "Cursor, VS Code, Codex, Gemini CLI, Windsurf, opencode, Zed, Kiro, Roo Code, Kilo Code, Qwen Code. "
         "Running it again is harmless: what is there "
         "already stays. Clients that read a folder of rules or skills get a file there that tells agents which tool "
         "answers which question. A project of mcp-vector-search keeps its choice of files and model, where Lode has "
         "no "
         "setting of its own yet.",
     .examples = "lode setup\nlode setup --dry-run\nlode setup ~/src/project --no-mcp\nlode setup --replace"},
    {OP_OF_CODE(index), .about = "bring the index of a project up to date",
     .flags = OP_LONG | OP_LOCAL | OP_PROJECT | OP_DESTRUCTIVE, .params = params_code_index,
     .summary = summary_code_index,
     .say =
         "{root}: {files} file{s}: {added} new, {changed} changed, {removed} removed, {unchanged} unchanged; {chunks} "
         "chunk{s}, {vectors} "
         "vector{s}[, {reused} reused][, {pending} pending][, {secrets} secret{s} left out][, {masked} masked][, "
         "{unparsed} not parsed]; {seconds} s",
     .detail =
         "Only what changed is read: a file is known by its size, times and inode, and by the digest of its bytes. A "
         "file's chunks, "
         "vectors and state change in one transaction; a run that was interrupted continues where it stopped. Files "
         "that "
         ".gitignore or .lodeignore leave out are left out, as are binary, generated and very large ones, and what "
         "looks like secrets; "
         "keys and tokens inside other files are masked (index.secrets). `lode skipped` lists what was left out, and "
         "why.",
     .examples = "lode index\nlode index ~/src/linux\n# second vectors, better and slower\nlode index --quality\n"
                 "# rebuild everything; search goes on meanwhile\nlode index --force\nlode index --remove src/old"},
    {OP_OF_CODE(search), .about = "find code by a question, a name or an example",
     .flags = OP_READ_ONLY | OP_PROJECT | OP_PAGED, .params = params_code_search, .row = row_code_search,
     .layout = OP_LAYOUT_HITS,
     .detail =
         "Words and vectors bring candidates; definitions, names of files, how many others name them, and how "
         "much of a file matches decide the "
         "order; tests, examples and copies of other projects come later. Each file shows its best chunk. A name finds "
         "its definition; text copied from code or a message, the place that holds it. Exit code 1 when nothing is "
         "found, or nothing that matches well. Files that changed are brought up to date first where that takes a "
         "moment, never in a store that is only read; what was not looked at is said.",
     .examples = "lode search \"where are sessions closed\"\nlode search parseHeader\nlode search --lang go --type "
                 "function \"retry with backoff\"\n"
                 "lode search --exact 'cannot open %s'\nlode search --regex 'fn \\w+_all\\('\n"
                 "lode search --interactive\nlode search --similar src/net.c:120\nlode search \"read config\" --path "
                 "'src/**' --json -n 5"},
    {.name = "context",
     OP_RUNS(context),
     .about = "show the code around a definition, and where it is used",
     .flags = OP_READ_ONLY | OP_PROJECT | OP_PAGED,
     .params = params_code_context,
     .row = row_code_context,
     .layout = OP_LAYOUT_HITS,
     .detail = "The definition, the pieces before and after it in the file, and the places elsewhere where its name "
               "stands. By words, not by "
               "types: a name that several things share shows the users of all.",
     .examples = "lode context src/net.c:120\nlode context parseHeader"},
    {OP_OF_CODE(status), .about = "show the state of a project's index", .flags = OP_READ_ONLY | OP_PROJECT | OP_LOCAL,
     .params = params_code_status, .row = row_code_skipped, .summary = summary_code_status,
     .detail = "Shows what matters most; -v shows every figure, and --skipped one row for each file that was left out. "
               "Answers at once, whatever the size, and also while another process indexes, when the index is damaged, "
               "or when there is "
               "no model.",
     .examples = "lode status\nlode status --json\nlode status --check\nlode status --skipped"},
    {OP_OF_CODE(skipped), .about = "list the files that are not in the index, and why",
     .flags = OP_NO_HTTP | OP_READ_ONLY | OP_PROJECT | OP_LOCAL | OP_PAGED, .params = params_code_skipped,
     .row = row_code_skipped,
     .detail = "Walks the tree by the rules of lode index, and adds the files that the last run left out because of "
               "their text. A folder that is left out is one line. Files "
               "in which secrets were masked are listed too, with the reason masked. Exit code 1 when there are none.",
     .examples = "lode skipped\nlode skipped --reason secret\nlode skipped --reason masked --json"},
    {OP_OF_CODE(watch), .about = "keep the index up to date while files change",
     .flags = OP_LONG | OP_LOCAL | OP_PROJECT, .params = params_code_watch, .row = row_code_watch,
     .detail = "Indexes what changed a moment after it was saved. When the kernel drops events, the whole tree is "
               "looked at again. Ctrl-C ends.",
     .examples = "lode watch\nlode watch --debounce 1000"},
    {OP_OF_CODE(doctor), .about = "check everything, and say how to repair what is wrong",
     .flags = OP_LONG | OP_LOCAL | OP_PROJECT, .params = params_code_doctor, .row = row_code_doctor,
     .summary = summary_code_doctor, .say = "{checks} check{s}[, {bad} bad][, {mended} repaired]",
     .layout = OP_LAYOUT_CHECKS,
     .detail = "Settings, folder, locks, every checksum of the store, files against chunks, model, parsers, "
               "registrations. With --repair, a "
               "damaged store is moved aside, and what can be read of it is copied into a new one. Exit code 3 when "
               "something is bad.",
     .examples = "lode doctor\nlode doctor --repair"},
    {OP_OF_CODE(reset), .about = "remove the index, or all that lode keeps for a project",
     .flags = OP_DESTRUCTIVE | OP_LOCAL | OP_PROJECT, .params = params_code_reset, .summary = summary_code_reset,
     .say = "{root}: {removed}[; a copy is at {backup}]",
     .detail = "Asks on a terminal; elsewhere --yes is needed. A copy is kept beside it unless --no-backup is given. "
               "Other collections of the store "
               "stay when the index is removed. Files that lode did not make always stay, and are named.",
     .examples = "lode reset index\nlode reset all --yes --no-backup"},
    {OP_OF_CODE(trust), .about = "use a store that came from elsewhere, and let its settings count",
     .flags = OP_LOCAL | OP_PROJECT, .params = params_code_trust, .row = row_code_trust, .summary = summary_code_trust,
     .say = "{folder}: {done}; settings that may reach beyond it: {settings}",
     .detail = "A .lode folder that is found is used when you made it, or when it is yours and git does not track it. "
               "One that git tracks came with a "
               "clone, or may be changed by a pull: it is refused until you say `lode trust`, and then used with a "
               "note; `git rm -r --cached .lode` "
               "takes it out of git. Where there is no store yet, only the settings are trusted. Settings that reach "
               "beyond the "
               "folder (a model that is a server or a path, search.refresh, "
               "index.secrets) count only with the values that you have set by `lode config set` or `lode setup`, or "
               "that you trust here. "
               "Look at .lode first: from then on lode reads that store as yours. A store that --store names is always "
               "used; LODE_TRUST=1 in the "
               "environment trusts every folder. What you trust is kept in $XDG_DATA_HOME/lode/trusted, else "
               "~/.local/share/lode/trusted.",
     .examples = "lode trust\nlode trust ~/src/project\nlode trust --list\nlode trust --forget ~/src/project"},
    {OP_OF_CODE(completion), .about = "print a completion script for a shell",
     .flags = OP_READ_ONLY | OP_LOCAL | OP_PROJECT, .params = params_code_completion,
     .examples = "lode completion bash > /etc/bash_completion.d/lode\nlode completion fish | source"},
    {0}};

#define OP_OF_CONFIG(verb) .group = "config", .name = #verb, OP_RUNS(config_##verb)

const op_def op_table_config[] = {
    {OP_OF_CONFIG(get), .about = "print one setting", .flags = OP_READ_ONLY | OP_PROJECT | OP_LOCAL,
     .params = params_config_get, .summary = summary_config, .say = "{value}", .examples = "lode config get model"},
    {OP_OF_CONFIG(set), .about = "change one setting", .flags = OP_PROJECT | OP_LOCAL, .params = params_config_set,
     .summary = summary_config, .say = "{key} = {value}", .examples = "lode config set search.refresh auto"},
    {OP_OF_CONFIG(unset), .about = "give one setting its default again", .flags = OP_PROJECT | OP_LOCAL,
     .params = params_config_get, .summary = summary_config, .say = "{key} = {value}",
     .examples = "lode config unset model"},
    {OP_OF_CONFIG(list), .about = "show all settings", .flags = OP_READ_ONLY | OP_PROJECT | OP_LOCAL,
     .params = params_config_list, .row = row_config, .examples = "lode config list"},
    {0}};
