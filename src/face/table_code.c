/* table_code.c - the operations of code search, as data. See op.h. */
#include "op.h"

#define REQUIRED LODE__PARAM_REQUIRED
#define PLACE LODE__PARAM_POSITIONAL

#define P_PROJECT                                                                                    \
  {.name = "project", .type = LODE__ARG_PATH, .letter = 'p', .value = "DIR",                         \
   .about = "a file or folder of the project; the working directory when not given"}
#define P_PATH                                                                                       \
  {.name = "path", .type = LODE__ARG_PATH, .flags = PLACE, .value = "PATH",                          \
   .about = "a file or folder of the project; the working directory when not given"}

/* ---- Parameters ---- */

static const lode__param setup_params[] = {
    P_PATH,
    {.name = "dry_run", .type = LODE__ARG_FLAG, .about = "say what would be done, and do nothing"},
    {.name = "no_mcp", .type = LODE__ARG_FLAG, .about = "do not register the MCP server with the clients found"},
    {.name = "no_index", .type = LODE__ARG_FLAG, .about = "do not index"},
    {.name = "model", .type = LODE__ARG_TEXT, .value = "MODEL", .about = "what makes the vectors: code, minilm, none, ..."},
    {0}};
static const lode__param index_params[] = {
    P_PATH,
    {.name = "force", .type = LODE__ARG_FLAG, .letter = 'f',
     .about = "make everything anew, beside the present index, which serves until the new one takes its place"},
    {.name = "quality", .type = LODE__ARG_FLAG, .about = "also second vectors, by MiniLM: slower to make, better to search"},
    {.name = "pending", .type = LODE__ARG_FLAG, .about = "read no files, only make the vectors that are still missing"},
    {.name = "remove", .type = LODE__ARG_PATH, .value = "PATH", .about = "take this file or folder out of the index instead"},
    {.name = "workers", .type = LODE__ARG_INT, .value = "N", .max = 64, .about = "processes that parse; as many as processors when not given"},
    {0}};
static const lode__param search_params[] = {
    {.name = "query", .type = LODE__ARG_TEXT, .flags = PLACE | LODE__PARAM_REST, .value = "QUERY",
     .about = "a question in plain words, a name, or a piece of code"},
    {.name = "limit", .type = LODE__ARG_INT, .letter = 'n', .value = "N", .min = 1, .max = 1000,
     .about = "at most so many results (10, or search.limit)"},
    {.name = "mode", .type = LODE__ARG_CHOICE, .letter = 'm', .value = "MODE", .choices = "hybrid|vector|text",
     .about = "by words and vectors, by vectors, or by words (hybrid, or search.mode)"},
    {.name = "lang", .type = LODE__ARG_TEXT, .letter = 'l', .value = "LANGUAGE", .about = "only this language"},
    {.name = "path", .type = LODE__ARG_TEXT, .value = "GLOB",
     .about = "only paths that match, as a line of .gitignore would: src/net, *.c, tests/**/*.py"},
    {.name = "type", .type = LODE__ARG_TEXT, .letter = 't', .value = "TYPE",
     .about = "only this kind: function (methods too), class (all types), struct, enum, section, ..."},
    {.name = "name", .type = LODE__ARG_TEXT, .value = "NAME", .about = "only what defines exactly this name"},
    {.name = "similar", .type = LODE__ARG_TEXT, .value = "FILE[:LINE]", .about = "what is like this code, instead of a query"},
    {.name = "context", .type = LODE__ARG_INT, .letter = 'C', .value = "N", .max = 1000, .about = "so many lines of the file before and behind"},
    {.name = "files_only", .type = LODE__ARG_FLAG, .about = "paths alone"},
    {.name = "explain", .type = LODE__ARG_FLAG, .about = "show what each score is made of"},
    {.name = "refresh", .type = LODE__ARG_FLAG, .about = "bring changed files up to date first (search.refresh=auto: always)"},
    P_PROJECT,
    {0}};
static const lode__param context_params[] = {
    {.name = "at", .type = LODE__ARG_TEXT, .flags = PLACE, .value = "FILE[:LINE]", .about = "the piece of code"},
    {.name = "name", .type = LODE__ARG_TEXT, .value = "NAME", .about = "or its name"},
    {.name = "limit", .type = LODE__ARG_INT, .letter = 'n', .value = "N", .fallback = "20", .min = 1, .max = 1000, .about = "at most so many uses"},
    P_PROJECT,
    {0}};
static const lode__param status_params[] = {
    {.name = "check", .type = LODE__ARG_FLAG, .about = "walk the tree and count the files that changed since the index"},
    {.name = "skip_stats", .type = LODE__ARG_FLAG, .about = "leave out languages, sizes and registrations"},
    {.name = "force_refresh", .type = LODE__ARG_FLAG, .about = "count everything again instead of reading counters"},
    P_PROJECT,
    {0}};
static const lode__param skipped_params[] = {
    P_PATH,
    {.name = "reason", .type = LODE__ARG_TEXT, .letter = 'r', .value = "REASON", .about = "only those: secret, masked, ignored, binary, ..."},
    {0}};
static const lode__param watch_params[] = {
    P_PATH,
    {.name = "debounce", .type = LODE__ARG_INT, .value = "MS", .max = 60000, .about = "how long a file must be quiet (watch.debounce_ms)"},
    {.name = "once", .type = LODE__ARG_FLAG, .about = "end after the first changes were indexed"},
    {0}};
static const lode__param doctor_params[] = {
    {.name = "repair", .type = LODE__ARG_FLAG, .about = "mend what can be mended; nothing is deleted"},
    P_PROJECT,
    {0}};
static const lode__param reset_params[] = {
    {.name = "what", .type = LODE__ARG_CHOICE, .flags = REQUIRED | PLACE, .value = "WHAT", .choices = "index|all",
     .about = "the index; or everything that lode made in .lode: settings and other collections too"},
    {.name = "yes", .type = LODE__ARG_FLAG, .letter = 'y', .about = "do not ask"},
    {.name = "no_backup", .type = LODE__ARG_FLAG, .about = "keep no copy of what is removed"},
    P_PROJECT,
    {0}};
static const lode__param completion_params[] = {
    {.name = "shell", .type = LODE__ARG_CHOICE, .flags = REQUIRED | PLACE, .value = "SHELL", .choices = "bash|zsh|fish",
     .about = "whose script to print"},
    {0}};
static const lode__param trust_params[] = {
    {.name = "path", .type = LODE__ARG_PATH, .flags = LODE__PARAM_POSITIONAL, .value = "FOLDER", .about = "a folder of the project; the working directory"},
    {.name = "list", .type = LODE__ARG_FLAG, .about = "show the folders that are known, and do nothing else"},
    {.name = "forget", .type = LODE__ARG_FLAG, .about = "take it back"},
    {0}};
static const lode__param config_get_params[] = {
    {.name = "key", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "KEY", .about = "the setting"}, P_PROJECT, {0}};
static const lode__param config_set_params[] = {
    {.name = "key", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "KEY", .about = "the setting"},
    {.name = "value", .type = LODE__ARG_TEXT, .flags = PLACE, .value = "VALUE", .about = "its value; its default when not given"},
    P_PROJECT,
    {0}};
static const lode__param config_list_params[] = {P_PROJECT, {0}};

/* ---- Answers ---- */

#define NULLABLE LODE__FIELD_NULLABLE
#define OPTIONAL LODE__FIELD_OPTIONAL

static const lode__field setup_row[] = {
    {"step", LODE__FIELD_TEXT, 0, "root, languages, parser, model, index, mcp, or the name of a client"},
    {"state", LODE__FIELD_TEXT, 0, "done, same, would, skipped or failed"},
    {"detail", LODE__FIELD_TEXT, 0, "a sentence"},
    {0}};
static const lode__field index_summary[] = {
    {"root", LODE__FIELD_TEXT, 0, "of the project"},
    {"files", LODE__FIELD_COUNT, 0, "worth indexing"},
    {"added", LODE__FIELD_COUNT, 0, "files that are new"},
    {"changed", LODE__FIELD_COUNT, 0, "files that were read again"},
    {"removed", LODE__FIELD_COUNT, 0, "files that are gone"},
    {"unchanged", LODE__FIELD_COUNT, 0, "files that are as they were"},
    {"chunks", LODE__FIELD_COUNT, 0, "written"},
    {"vectors", LODE__FIELD_COUNT, 0, "made"},
    {"reused", LODE__FIELD_COUNT, 0, "vectors taken from equal texts"},
    {"pending", LODE__FIELD_COUNT, 0, "chunks that have no vector"},
    {"skipped", LODE__FIELD_OBJECT, 0, "files and folders left out, by reason"},
    {"left_out", LODE__FIELD_COUNT, 0, "all of them"},
    {"secrets", LODE__FIELD_COUNT, 0, "those of them that look like keys or passwords"},
    {"masked", LODE__FIELD_COUNT, 0, "secrets inside files that were masked"},
    {"unparsed", LODE__FIELD_COUNT, 0, "files whose parser failed: cut by lines"},
    {"bytes", LODE__FIELD_BYTES, 0, "read"},
    {"walk_ms", LODE__FIELD_NUMBER, 0, "time spent looking at files"},
    {"index_ms", LODE__FIELD_NUMBER, 0, "time spent reading, parsing, embedding and writing"},
    {"embed_ms", LODE__FIELD_NUMBER, 0, "time spent on vectors of slow models"},
    {"finish_ms", LODE__FIELD_NUMBER, 0, "time spent on the text index"},
    {"seconds", LODE__FIELD_REAL, 0, "in all"},
    {0}};
static const lode__field search_row[] = {
    {"rank", LODE__FIELD_NUMBER, 0, "1 is the best"},
    {"path", LODE__FIELD_TEXT, 0, "from the root"},
    {"start_line", LODE__FIELD_NUMBER, 0, "first line of the chunk"},
    {"end_line", LODE__FIELD_NUMBER, 0, "its last line"},
    {"kind", LODE__FIELD_TEXT, 0, "function, class, section, ..."},
    {"name", LODE__FIELD_TEXT, NULLABLE, "what it defines"},
    {"parents", LODE__FIELD_TEXT, NULLABLE, "names around it"},
    {"language", LODE__FIELD_TEXT, 0, "of the file"},
    {"score", LODE__FIELD_REAL, 0, "of the ranking; larger is better"},
    {"cosine", LODE__FIELD_REAL, NULLABLE, "of question and chunk"},
    {"snippet", LODE__FIELD_TEXT, OPTIONAL, "its text"},
    {"snippet_line", LODE__FIELD_NUMBER, OPTIONAL, "where the snippet begins, if not at start_line"},
    {"more", LODE__FIELD_NUMBER, OPTIONAL, "other chunks of the file that match"},
    {"copies", LODE__FIELD_NUMBER, OPTIONAL, "chunks elsewhere that say the same"},
    {"stale", LODE__FIELD_TEXT, OPTIONAL, "changed or gone: its file is not as it was indexed"},
    {"explain", LODE__FIELD_OBJECT, OPTIONAL, "figures from 0 to 1 that the score is made of"},
    {0}};
static const lode__field context_row[] = {
    {"rank", LODE__FIELD_NUMBER, 0, "place in the answer"},
    {"relation", LODE__FIELD_TEXT, 0, "definition, before, behind (in the same file) or use"},
    {"path", LODE__FIELD_TEXT, 0, "from the root"},
    {"start_line", LODE__FIELD_NUMBER, 0, "first line of the chunk"},
    {"end_line", LODE__FIELD_NUMBER, 0, "its last line"},
    {"kind", LODE__FIELD_TEXT, 0, "function, class, section, ..."},
    {"name", LODE__FIELD_TEXT, NULLABLE, "what it defines"},
    {"parents", LODE__FIELD_TEXT, NULLABLE, "names around it"},
    {"language", LODE__FIELD_TEXT, 0, "of the file"},
    {"snippet", LODE__FIELD_TEXT, 0, "its text; of a use, the lines that hold the name"},
    {"snippet_line", LODE__FIELD_NUMBER, OPTIONAL, "where the snippet begins, if not at start_line"},
    {"stale", LODE__FIELD_TEXT, OPTIONAL, "changed or gone: its file is not as it was indexed"},
    {0}};
static const lode__field status_summary[] = {
    {"root", LODE__FIELD_TEXT, NULLABLE, "of the project; null in a request to a store that does not lie in one as .lode"},
    {"state", LODE__FIELD_TEXT, 0, "not indexed, indexing, unfinished, ready, busy, damaged or untrusted"},
    {"damage", LODE__FIELD_TEXT, NULLABLE | OPTIONAL, "what is wrong, and what to run"},
    {"files", LODE__FIELD_COUNT, NULLABLE, "indexed"},
    {"chunks", LODE__FIELD_COUNT, NULLABLE, "of them"},
    {"pending", LODE__FIELD_COUNT, NULLABLE, "chunks that have no vector yet"},
    {"quality_pending", LODE__FIELD_COUNT, OPTIONAL, "chunks that have no second vector yet"},
    {"languages", LODE__FIELD_OBJECT, OPTIONAL, "files by language"},
    {"kinds", LODE__FIELD_OBJECT, OPTIONAL, "chunks by kind"},
    {"skipped", LODE__FIELD_OBJECT, OPTIONAL, "left out by the last full run, by reason"},
    {"masked", LODE__FIELD_COUNT, OPTIONAL, "secrets inside files that were masked"},
    {"model", LODE__FIELD_TEXT, NULLABLE, "that made the vectors"},
    {"model_wanted", LODE__FIELD_TEXT, 0, "of the configuration"},
    {"bytes", LODE__FIELD_BYTES, OPTIONAL, "of the index"},
    {"last_index", LODE__FIELD_TEXT, NULLABLE, "when, as a date"},
    {"last_scan", LODE__FIELD_TEXT, NULLABLE, "when the whole tree was last looked at"},
    {"seconds_since_scan", LODE__FIELD_COUNT, NULLABLE, "how long that was ago"},
    {"activity", LODE__FIELD_TEXT, NULLABLE, "who indexes now, and how far it is"},
    {"watcher", LODE__FIELD_TEXT, NULLABLE, "who watches"},
    {"mcp", LODE__FIELD_TEXTS, OPTIONAL, "clients that know this project's MCP server"},
    {"segments", LODE__FIELD_COUNT, OPTIONAL, "files of the vector index"},
    {"untexted", LODE__FIELD_COUNT, OPTIONAL, "chunks that text search still scans"},
    {"damaged_pages", LODE__FIELD_COUNT, OPTIONAL, "met by this command"},
    {"quarantined", LODE__FIELD_COUNT, OPTIONAL, "damaged files that were set aside"},
    {"trust", LODE__FIELD_TEXT, OPTIONAL, "none (no store yet), ours, adopted, untrusted or foreign; absent when the store was named"},
    {"held", LODE__FIELD_OBJECT, OPTIONAL, "settings without effect until `lode trust`"},
    {"changed_files", LODE__FIELD_COUNT, OPTIONAL, "--check: not as they were indexed"},
    {"new_files", LODE__FIELD_COUNT, OPTIONAL, "--check: not indexed yet"},
    {"removed_files", LODE__FIELD_COUNT, OPTIONAL, "--check: indexed, and gone"},
    {"revision", LODE__FIELD_NUMBER, OPTIONAL, "of the way files are cut"},
    {0}};
static const lode__field skipped_row[] = {
    {"path", LODE__FIELD_TEXT, 0, "from the root; of a folder, with a slash at its end"},
    {"reason", LODE__FIELD_TEXT, 0, "one word, as status counts it"},
    {"about", LODE__FIELD_TEXT, 0, "what it means"},
    {0}};
static const lode__field watch_row[] = {
    {"time", LODE__FIELD_TEXT, 0, "when"},
    {"what", LODE__FIELD_TEXT, 0, "a sentence"},
    {"added", LODE__FIELD_COUNT, 0, "files"},
    {"changed", LODE__FIELD_COUNT, 0, "files"},
    {"removed", LODE__FIELD_COUNT, 0, "files"},
    {"ms", LODE__FIELD_NUMBER, 0, "it took"},
    {0}};
static const lode__field doctor_row[] = {
    {"check", LODE__FIELD_TEXT, 0, "what was looked at"},
    {"state", LODE__FIELD_TEXT, 0, "ok, note, bad or mended"},
    {"detail", LODE__FIELD_TEXT, 0, "a sentence"},
    {"remedy", LODE__FIELD_TEXT, NULLABLE, "what to run"},
    {0}};
static const lode__field doctor_summary[] = {
    {"ok", LODE__FIELD_BOOL, 0, "nothing bad was found, or it was mended"},
    {"checks", LODE__FIELD_COUNT, 0, "how many"},
    {"bad", LODE__FIELD_COUNT, 0, "how many were bad and still are"},
    {"mended", LODE__FIELD_COUNT, 0, "how many were mended"},
    {0}};
static const lode__field reset_summary[] = {
    {"root", LODE__FIELD_TEXT, 0, "of the project"},
    {"removed", LODE__FIELD_TEXT, NULLABLE, "what was removed"},
    {"backup", LODE__FIELD_TEXT, NULLABLE, "where a copy of it is"},
    {0}};
static const lode__field trust_row[] = {
    {"folder", LODE__FIELD_TEXT, 0, "of a store"},
    {"level", LODE__FIELD_TEXT, 0, "made, adopted or trusted"},
    {"settings", LODE__FIELD_OBJECT, 0, "values that may reach beyond the folder"},
    {0}};
static const lode__field trust_summary[] = {
    {"folder", LODE__FIELD_TEXT, 0, "of the store"},
    {"done", LODE__FIELD_TEXT, 0, "what was done"},
    {"settings", LODE__FIELD_OBJECT, 0, "values that may reach beyond the folder from now on"},
    {0}};
static const lode__field config_row[] = {
    {"key", LODE__FIELD_TEXT, 0, "the setting"},
    {"value", LODE__FIELD_TEXT, 0, "its value"},
    {"set", LODE__FIELD_BOOL, 0, "false: it is the default"},
    {"held", LODE__FIELD_TEXT, OPTIONAL, "the value in the file, which has no effect until `lode trust`"},
    {"about", LODE__FIELD_TEXT, 0, "what it means"},
    {0}};
static const lode__field config_summary[] = {
    {"key", LODE__FIELD_TEXT, 0, "the setting"},
    {"value", LODE__FIELD_TEXT, 0, "its value"},
    {0}};

/* ---- The tables ---- */

#define READS LODE__OP_READS
#define DESTROYS LODE__OP_DESTROYS
#define LONG LODE__OP_LONG
#define LOCAL LODE__OP_LOCAL
#define ROWS_ONLY LODE__OP_HIDE_SUMMARY
#define PROJECT LODE__OP_PROJECT
#define OP(verb) .name = #verb, .run = lode__op_##verb

const lode__op lode__ops_code[] = {
    {OP(setup), .about = "index a project and tell the AI tools on this machine about it", .flags = LONG | LOCAL | PROJECT,
     .params = setup_params, .row = setup_row,
     .detail = "Finds the project's root and its languages, indexes it, and registers `lode mcp` with the clients it finds: Claude Code, "
               "Cursor, VS Code, Codex, Gemini CLI, Windsurf, opencode. Running it again is harmless: what is there already stays.",
     .examples = "lode setup\nlode setup --dry-run\nlode setup ~/src/project --no-mcp"},
    {OP(index), .about = "bring the index of a project up to date", .flags = LONG | LOCAL | PROJECT | DESTROYS, .params = index_params,
     .summary = index_summary,
     .say = "{root}: {files} files: {added} new, {changed} changed, {removed} removed, {unchanged} unchanged; {chunks} chunks, {vectors} "
            "vectors[, {reused} reused][, {pending} pending][, {secrets} secrets left out][, {masked} masked][, {unparsed} not parsed]; {seconds} s",
     .detail = "Only what changed is read: a file is known by its size, times and inode, and by the digest of its bytes. A file's chunks, "
               "vectors and state change in one transaction; a run that was interrupted goes on where it stopped. Files that "
               ".gitignore or .lodeignore leave out are left out, as are binary, generated and very large ones, and what looks like secrets; "
               "keys and tokens inside other files are masked (index.secrets). `lode skipped` lists what was left out, and why.",
     .examples = "lode index\nlode index ~/src/linux\n# second vectors, better and slower\nlode index --quality\n"
                 "# everything anew; search goes on meanwhile\nlode index --force\nlode index --remove src/old"},
    {OP(search), .about = "find code by a question, a name or an example", .flags = READS | PROJECT | LODE__OP_PAGED,
     .params = search_params, .row = search_row, .layout = LODE__LAYOUT_HITS,
     .detail = "Words and vectors bring candidates; definitions, names of files, how many others name them, and how much of a file matches decide the "
               "order; tests, examples and copies of other projects come later. Each file shows its best chunk. Exit code 1 when nothing is found. "
               "Search writes nothing, unless --refresh is given.",
     .examples = "lode search \"where are sessions closed\"\nlode search parseHeader\nlode search --lang go --type function \"retry with backoff\"\n"
                 "lode search --similar src/net.c:120\nlode search \"read config\" --path 'src/**' --json -n 5"},
    {.name = "context", .run = lode__op_around, .about = "show what belongs to a piece of code: its neighbours, and who uses it", .flags = READS | PROJECT | LODE__OP_PAGED,
     .params = context_params, .row = context_row, .layout = LODE__LAYOUT_HITS,
     .detail = "The definition, the pieces before and behind it in the file, and the places elsewhere where its name stands. By words, not by "
               "types: a name that several things share shows the users of all.",
     .examples = "lode context src/net.c:120\nlode context --name parseHeader"},
    {OP(status), .about = "show the state of a project's index", .flags = READS | PROJECT | LOCAL, .params = status_params,
     .summary = status_summary,
     .detail = "Answers at once, whatever the size, and also while another process indexes, when the index is damaged, or when there is "
               "no model.",
     .examples = "lode status\nlode status --json\nlode status --check"},
    {OP(skipped), .about = "list the files that are not in the index, and why", .flags = LODE__OP_HERE | READS | PROJECT | LOCAL | LODE__OP_PAGED,
     .params = skipped_params, .row = skipped_row,
     .detail = "Walks the tree by the rules of lode index, and adds the files that the last run left out because of their text. A folder that is left out is one line. Files "
               "in which secrets were masked are listed too, with the reason masked. Exit code 1 when there are none.",
     .examples = "lode skipped\nlode skipped --reason secret\nlode skipped --reason masked --json"},
    {OP(watch), .about = "keep the index up to date while files change", .flags = LONG | LOCAL | PROJECT, .params = watch_params, .row = watch_row,
     .detail = "Indexes what changed a moment after it was saved. When the kernel drops events, the whole tree is looked at again. Ctrl-C ends.",
     .examples = "lode watch\nlode watch --debounce 1000"},
    {OP(doctor), .about = "check everything, and say what to do", .flags = LONG | LOCAL | PROJECT, .params = doctor_params, .row = doctor_row,
     .summary = doctor_summary, .say = "{checks} checks[, {bad} bad][, {mended} mended]", .layout = LODE__LAYOUT_CHECKS,
     .detail = "Settings, folder, locks, every checksum of the store, files against chunks, model, parsers, registrations. With --repair, a "
               "damaged store is kept aside and what can be read of it is brought into a new one. Exit code 3 when something is bad.",
     .examples = "lode doctor\nlode doctor --repair"},
    {OP(reset), .about = "remove the index, or all that lode keeps for a project", .flags = DESTROYS | LOCAL | PROJECT, .params = reset_params,
     .summary = reset_summary, .say = "{root}: {removed}[; a copy is at {backup}]",
     .detail = "Asks on a terminal; elsewhere --yes is needed. A copy is kept beside it unless --no-backup is given. Other collections of the store "
               "stay when the index is removed. Files that lode did not make always stay, and are named.",
     .examples = "lode reset index\nlode reset all --yes --no-backup"},
    {OP(trust), .about = "use a store that came from elsewhere, and let its settings count", .flags = LOCAL | PROJECT, .params = trust_params,
     .row = trust_row, .summary = trust_summary, .say = "{folder}: {done}; settings that may reach beyond it: {settings}",
     .detail = "A .lode folder that is found is used when you made it, or when it is yours and git does not track it. One that git tracks came with a "
               "clone, or may be changed by a pull: it is refused until you say `lode trust`, and then used with a note; `git rm -r --cached .lode` "
               "takes it out of git. Where there is no store yet there is nothing to trust. Settings that reach beyond the "
               "folder (a model that is a server or a path, search.refresh, "
               "index.secrets) count only with the values that you have set by `lode config set` or `lode setup`, or that you trust here. "
               "Look at .lode first: from then on lode reads that store as yours. A store that --store names is always used; LODE_TRUST=1 in the "
               "environment trusts every folder. What you trust is kept in $XDG_DATA_HOME/lode/trusted, else ~/.local/share/lode/trusted.",
     .examples = "lode trust\nlode trust ~/src/project\nlode trust --list\nlode trust --forget ~/src/project"},
    {OP(completion), .about = "print the completion script of a shell", .flags = READS | LOCAL | PROJECT, .params = completion_params,
     .examples = "lode completion bash > /etc/bash_completion.d/lode\nlode completion fish | source"},
    {0}};

#define SUB(verb) .group = "config", .name = #verb, .run = lode__op_config_##verb

const lode__op lode__ops_config[] = {
    {SUB(get), .about = "print one setting", .flags = READS | PROJECT | LOCAL, .params = config_get_params, .summary = config_summary,
     .say = "{value}", .examples = "lode config get model"},
    {SUB(set), .about = "change one setting", .flags = PROJECT | LOCAL, .params = config_set_params, .summary = config_summary,
     .say = "{key} = {value}", .examples = "lode config set search.refresh auto\n# back to its default\nlode config set model"},
    {SUB(list), .about = "show all settings", .flags = READS | PROJECT | LOCAL, .params = config_list_params, .row = config_row,
     .examples = "lode config list"},
    {0}};
