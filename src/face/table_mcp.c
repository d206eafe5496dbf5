/* table_mcp.c - `lode mcp` and what tells clients of it, as data. See op.h. */
#include "op.h"

#define PLACE LODE__PARAM_POSITIONAL
#define P_PATH                                                                                       \
  {.name = "path", .type = LODE__ARG_PATH, .flags = PLACE, .value = "PATH",                          \
   .about = "a file or folder of the project; the working directory when not given"}
/* The names of mcp_clients.c. */
#define P_CLIENT                                                                                     \
  {.name = "client", .type = LODE__ARG_CHOICE, .letter = 'c', .flags = LODE__PARAM_REQUIRED, .value = "CLIENT", \
   .choices = "claude-code|cursor|vscode|codex|gemini|windsurf|opencode", .about = "which program"}

static const lode__param mcp_params[] = {
    P_PATH,
    {.name = "watch", .type = LODE__ARG_FLAG, .about = "keep the index up to date while files change, as lode watch does"},
    {.name = "allow_model", .type = LODE__ARG_LIST, .value = "MODEL,MODEL",
     .about = "models that tools may name besides those installed and the collection's own: openai:MODEL, ollama:MODEL, a folder"},
    {.name = "no_sandbox", .type = LODE__ARG_FLAG, .about = "keep all privileges: for debuggers"},
    {0}};
static const lode__param install_params[] = {
    P_PATH,
    P_CLIENT,
    {.name = "print", .type = LODE__ARG_FLAG, .about = "print the settings file as it would be, and change nothing"},
    {0}};
static const lode__param remove_params[] = {P_PATH, P_CLIENT, {0}};

static const lode__field client_row[] = {
    {"client", LODE__FIELD_TEXT, 0, "its name"},
    {"state", LODE__FIELD_TEXT, 0, "registered, same, removed or absent"},
    {"file", LODE__FIELD_TEXT, 0, "its settings"},
    {0}};

#define LOCAL LODE__OP_LOCAL
#define PROJECT LODE__OP_PROJECT

const lode__op lode__ops_mcp[] = {
    {.name = "mcp", .run = lode__op_mcp, .about = "serve a project to AI agents: MCP over standard input and output",
     .flags = LODE__OP_SERVES | LOCAL | PROJECT, .params = mcp_params,
     .detail = "Speaks the Model Context Protocol, from 2024-11-05 to 2026-07-28. AI tools start it themselves: `lode setup` or `lode mcp install` "
               "tells them how. Starts at once and opens nothing before a tool is called; never indexes unless a tool or --watch asks for it; "
               "ends with its input. The work is done by a process of its own: if that dies, the request is answered with an error that "
               "names a crash report, and the next one is served.",
     .examples = "lode mcp\nlode mcp --watch ~/src/project\nlode mcp install --client cursor"},
    {0}};

const lode__op lode__ops_mcp_clients[] = {
    {.group = "mcp", .name = "install", .run = lode__op_mcp_install, .about = "tell an AI tool about the MCP server of a project",
     .flags = LOCAL | PROJECT, .params = install_params, .row = client_row,
     .detail = "Edits its settings file: everything else in it stays as it is, and a copy is kept beside it as FILE.lode-backup. A file that "
               "cannot be parsed is left alone. A file that is a link stays one, and what it leads to is written; a link of the project that leads "
               "out of it is refused. Twice is harmless.",
     .examples = "lode mcp install --client claude-code\nlode mcp install --client codex --print"},
    {.group = "mcp", .name = "remove", .run = lode__op_mcp_remove, .about = "take that back",
     .flags = LOCAL | PROJECT, .params = remove_params, .row = client_row, .examples = "lode mcp remove --client cursor"},
    {0}};
