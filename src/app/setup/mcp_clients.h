/* mcp_clients.h - telling the AI tools on this machine about `lode mcp`, and taking it back.
 *
 * One table has the clients: where their settings lie, and in which form they list servers. A settings file is edited, not rewritten:
 * every byte that is not ours stays as it is, comments included. What was there is kept beside it as FILE.lode-backup before the first
 * change. A file that cannot be parsed is left alone, and said so. A settings file that is a link stays one: what it leads to is written; a link
 * of the project that leads out of it is refused.
 */
#ifndef LODE_SETUP_MCP_CLIENTS_H
#define LODE_SETUP_MCP_CLIENTS_H

#include "base/base.h"

typedef enum setup_client_state {
  SETUP_CLIENT_ABSENT,   /* the client does not seem to be used here */
  SETUP_CLIENT_UNSET,  /* the client is there and does not know lode */
  SETUP_CLIENT_CURRENT,     /* it knows lode as it should */
  SETUP_CLIENT_DIFFERENT,    /* it knows another lode, or with other arguments */
  SETUP_CLIENT_BROKEN,   /* its settings cannot be read, parsed or written */
} setup_client_state;

size_t setup_client_count(void);
const char *setup_client_name(size_t i);    /* "claude-code" */
const char *setup_client_title(size_t i);   /* "Claude Code" */
/* SETUP_CLIENT_... and the file's path (NUL behind). A client of the project has its file in `root`. */
lode_status setup_client_inspect(size_t i, const char *root, setup_client_state *state, strbuf *path, lode_error *err);
/* Writes the entry; *changed is false when it was there. `program` is lode's path. The client's folder is made if it is missing. */
lode_status setup_client_install(size_t i, const char *root, const char *program, bool *changed, lode_error *err);
lode_status setup_client_remove(size_t i, const char *root, bool *changed, lode_error *err);
/* What install would write: the whole file as it would be. */
lode_status setup_client_preview(size_t i, const char *root, const char *program, strbuf *out, lode_error *err);
/* ["claude-code","cursor"]: those that know lode. Never fails. */
void setup_client_list(const char *root, strbuf *out);
/* The path of this very program. */
lode_status setup_program_path(strbuf *out, lode_error *err);

#endif
