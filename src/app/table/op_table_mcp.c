/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_mcp.c - `lode mcp` and the operations that register it with clients, as data. See op_def.h. */
#include "table/op_args_serve.h"

#define P_MCP_PATH(args)                                                                                               \
  {                                                                                                                    \
    OP_PATH(args, path), .flags = OP_PARAM_POSITIONAL, .value = "PATH",                                                \
                         .about = "a file or folder of the project; the working directory when not given"              \
  }
/* choices: the names in mcp_clients.c */
#define P_MCP_CLIENT(args)                                                                                             \
  {                                                                                                                    \
    OP_CHOICE(args, client),                                                                                           \
        .letter = 'c', .flags = OP_PARAM_REQUIRED, .value = "CLIENT",                                                  \
        .choices = "claude-code|cursor|vscode|codex|gemini|windsurf|opencode|zed|kiro|roo|kilo|qwen",                  \
        .about = "which program"                                                                                       \
  }

static const op_param params_mcp[] = {
    P_MCP_PATH(op_mcp_args),
    {OP_FLAG(op_mcp_args, watch), .about = "keep the index up to date while files change, as lode watch does"},
    {OP_FLAG(op_mcp_args, compat), .about = "also take the tools of mcp-vector-search, by its names and arguments"},
    {OP_LIST(op_mcp_args, allow_model), .value = "MODEL,MODEL",
     .about = "models that tools may name besides those installed and the collection's own: openai:MODEL, "
              "ollama:MODEL, a folder"},
    {OP_FLAG(op_mcp_args, no_sandbox), .about = "keep all privileges: for debuggers"},
    {0}};
static const op_param params_mcp_install[] = {
    P_MCP_PATH(op_mcp_client_args),
    P_MCP_CLIENT(op_mcp_client_args),
    {OP_FLAG(op_mcp_client_args, print),
     .about = "print the settings file as it would be and the instructions, and change nothing"},
    {OP_FLAG(op_mcp_client_args, no_instructions),
     .about = "do not write the file that tells agents which tool answers which question"},
    {0}};
static const op_param params_mcp_remove[] = {P_MCP_PATH(op_mcp_client_args), P_MCP_CLIENT(op_mcp_client_args), {0}};

static const op_field row_mcp_client[] = {{"client", OP_FIELD_TEXT, 0, "its name"},
                                          {"state", OP_FIELD_TEXT, 0, "registered, same, removed or absent"},
                                          {"file", OP_FIELD_TEXT, 0, "its settings"},
                                          {"instructions", OP_FIELD_TEXT, OP_FIELD_OPTIONAL,
                                           "written, same, left (it is not Lode's), failed, removed, absent, or none: "
                                           "the client reads a file of yours"},
                                          {"instructions_file", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "that file"},
                                          {0}};

const op_def op_table_mcp[] = {
    {.name = "mcp",
     OP_RUNS(mcp),
     .about = "serve a project to AI agents: MCP over standard input and output",
     .flags = OP_SERVER | OP_LOCAL | OP_PROJECT,
     .params = params_mcp,
     .detail = "Speaks the Model Context Protocol, from 2024-11-05 to 2026-07-28. AI tools start it themselves: `lode "
               "setup` or `lode mcp install` "
               "tells them how. Starts at once and opens nothing before a tool is called; never indexes unless a tool "
               "or --watch asks for it; "
               "ends with its input. The work is done in a separate process: if that dies, the request is answered "
               "with an error that "
               "names a crash report, and the next one is served.",
     .examples = "lode mcp\nlode mcp --watch ~/src/project\nlode mcp install --client cursor"},
    {0}};

const op_def op_table_mcp_clients[] = {
    {.group = "mcp",
     .name = "install",
     OP_RUNS(mcp_install),
     .about = "register the MCP server of a project with an AI tool",
     .flags = OP_LOCAL | OP_PROJECT,
     .params = params_mcp_install,
     .row = row_mcp_client,
     .detail = "Edits its settings file: everything else in it stays as it is, and a copy is kept beside it as "
               "FILE.lode-backup. A file that "
               "cannot be parsed is left alone. A file that is a link stays one, and what it leads to is written; a "
               "link of the project that leads "
               "out of it is refused. Running it twice is harmless. Where the client reads a folder of rules or skills "
               "in the "
               "project, a file of Lode's own there tells agents which tool answers which question; one that is there "
               "and was not written by Lode, or was edited, is left alone. A client that reads a file of yours "
               "(AGENTS.md, GEMINI.md, QWEN.md) gets none: --print shows lines to add to it.",
     .examples = "lode mcp install --client claude-code\nlode mcp install --client codex --print"},
    {.group = "mcp",
     .name = "remove",
     OP_RUNS(mcp_remove),
     .about = "unregister the MCP server of a project from an AI tool",
     .flags = OP_LOCAL | OP_PROJECT,
     .params = params_mcp_remove,
     .row = row_mcp_client,
     .detail = "Its instructions go, too, unless they were edited since Lode wrote them.",
     .examples = "lode mcp remove --client cursor"},
    {0}};
