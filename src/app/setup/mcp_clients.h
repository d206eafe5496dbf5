/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_clients.h - registers `lode mcp` with the AI tools on this machine, and removes it again.
 *
 * One table has the clients: where their settings are, and in which form they list servers. A settings file is edited,
 * not rewritten: every byte that is not ours stays, comments included. Before the first change the old file is saved
 * beside it as FILE.lode-backup. A file that cannot be parsed is left alone and reported. A settings file that is a
 * link stays one: its target is written; a link of the project that leads out of it is refused.
 */
#ifndef LODE_SETUP_MCP_CLIENTS_H
#define LODE_SETUP_MCP_CLIENTS_H

#include "base/base.h"

#define SETUP_CLIENT_ENTRY "lode" /* the name of our entry */

typedef enum setup_client_state {
  SETUP_CLIENT_ABSENT,    /* the client does not seem to be used here */
  SETUP_CLIENT_UNSET,     /* the client is used, and has no entry for Lode */
  SETUP_CLIENT_CURRENT,   /* it has our entry */
  SETUP_CLIENT_DIFFERENT, /* its entry starts another Lode, or with other arguments */
  SETUP_CLIENT_BROKEN,    /* its settings cannot be read, parsed or written */
} setup_client_state;

size_t setup_client_count(void);
const char *setup_client_name(size_t i);  /* "claude-code" */
const char *setup_client_title(size_t i); /* "Claude Code" */
/* SETUP_CLIENT_... and the file's path, NUL-terminated. The file of a per-project client is in `root`. */
LODE_MUST lode_status setup_client_inspect(size_t i, const char *root, setup_client_state *state, strbuf *path,
                                           lode_error *err);
/* Writes the entry; *changed is false if it was there. `program` is the path of this program. A missing folder is
 * created. */
LODE_MUST lode_status setup_client_install(size_t i, const char *root, const char *program, bool *changed,
                                           lode_error *err);
/* Removes an entry, Lode's or that of another server. */
LODE_MUST lode_status setup_client_remove(size_t i, const char *root, const char *entry, bool *changed,
                                          lode_error *err);
/* Is there an entry of this name? False, too, if the settings cannot be read. */
bool setup_client_has(size_t i, const char *root, const char *entry);
/* The complete file as install would write it. */
LODE_MUST lode_status setup_client_preview(size_t i, const char *root, const char *program, strbuf *out,
                                           lode_error *err);
/* ["claude-code","cursor"]: clients with an entry for Lode. Never fails. */
void setup_client_list(const char *root, strbuf *out);
/* The path of this program. */
LODE_MUST lode_status setup_program_path(strbuf *out, lode_error *err);

#endif
