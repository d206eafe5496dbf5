/* SPDX-License-Identifier: Apache-2.0 */
/* instructions.h - a short text that tells agents which tool of Lode answers which question, where clients read such
 * texts.
 *
 * Some clients read a folder of rules or skills in the project: the text becomes a file of Lode's own there. Its last
 * line is a marker with a checksum of what stands above it: a file that has it and matches it was written by Lode and
 * not edited since, and only such a file is replaced or removed. Other clients read one file that the project's people
 * write (AGENTS.md): that is never changed, only shown what to add.
 *
 * Files are read and written below the project's root; no link is followed.
 */
#ifndef LODE_SETUP_INSTRUCTIONS_H
#define LODE_SETUP_INSTRUCTIONS_H

#include "base/base.h"

typedef enum setup_text_state {
  SETUP_TEXT_NONE,    /* the client has no file of its own for it */
  SETUP_TEXT_ABSENT,  /* there is none yet */
  SETUP_TEXT_CURRENT, /* it is there as this version writes it */
  SETUP_TEXT_OLD,     /* Lode's, of another version */
  SETUP_TEXT_FOREIGN, /* there is a file that Lode did not write, or that was edited */
  SETUP_TEXT_HINDERS, /* it would put the project's own file of rules out of use, which setup_text_hindered() names */
} setup_text_state;

/* Clients are numbered as in mcp_clients.h. The path of the file from the project's root; for SETUP_TEXT_NONE that of
 * the shared file. */
const char *setup_text_path(size_t client);
const char *setup_text_hindered(size_t client);
LODE_MUST lode_status setup_text_inspect(size_t client, const char *root, setup_text_state *state, lode_error *err);
/* *state: as it was before. Writes in the states ABSENT and OLD, removes in the states CURRENT and OLD. */
LODE_MUST lode_status setup_text_write(size_t client, const char *root, setup_text_state *state, lode_error *err);
LODE_MUST lode_status setup_text_remove(size_t client, const char *root, setup_text_state *state, lode_error *err);
/* The whole file, or for SETUP_TEXT_NONE the lines to add to the shared one. */
LODE_MUST lode_status setup_text_put(size_t client, strbuf *out, lode_error *err);

#endif
