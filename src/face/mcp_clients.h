/* mcp_clients.h - telling the AI tools on this machine about `lode mcp`, and taking it back.
 *
 * One table has the clients: where their settings lie, and in which form they list servers. A settings file is edited, not rewritten:
 * every byte that is not ours stays as it is, comments included. What was there is kept beside it as FILE.lode-backup before the first
 * change. A file that cannot be parsed is left alone, and said so. A settings file that is a link stays one: what it leads to is written; a link
 * of the project that leads out of it is refused.
 */
#ifndef LODE_FACE_MCP_CLIENTS_H
#define LODE_FACE_MCP_CLIENTS_H

#include "base/base.h"

typedef enum lode__mcp_state {
  LODE__MCP_ABSENT,   /* the client does not seem to be used here */
  LODE__MCP_MISSING,  /* the client is there and does not know lode */
  LODE__MCP_SAME,     /* it knows lode as it should */
  LODE__MCP_OTHER,    /* it knows another lode, or with other arguments */
  LODE__MCP_BROKEN,   /* its settings cannot be read, parsed or written */
} lode__mcp_state;

size_t lode__mcp_count(void);
const char *lode__mcp_name(size_t i);    /* "claude-code" */
const char *lode__mcp_title(size_t i);   /* "Claude Code" */
/* LODE__MCP_... and the file's path (NUL behind). A client of the project has its file in `root`. */
lode_status lode__mcp_look(size_t i, const char *root, lode__mcp_state *state, strbuf *path, lode_error *err);
/* Writes the entry; *changed is false when it was there. `program` is lode's path. The client's folder is made if it is missing. */
lode_status lode__mcp_install(size_t i, const char *root, const char *program, bool *changed, lode_error *err);
lode_status lode__mcp_remove(size_t i, const char *root, bool *changed, lode_error *err);
/* What install would write: the whole file as it would be. */
lode_status lode__mcp_preview(size_t i, const char *root, const char *program, strbuf *out, lode_error *err);
/* ["claude-code","cursor"]: those that know lode. Never fails. */
void lode__mcp_list(const char *root, strbuf *out);
/* The path of this very program. */
lode_status lode__mcp_program(strbuf *out, lode_error *err);

#endif
