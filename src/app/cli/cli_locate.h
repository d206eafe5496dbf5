/* SPDX-License-Identifier: Apache-2.0 */
/* cli_locate.h - where the store is. */
#ifndef LODE_CLI_CLI_LOCATE_H
#define LODE_CLI_CLI_LOCATE_H

#include "base/base.h"

typedef struct cli_store_location {
  bool found;       /* a .lode folder that nobody named: the rules of project/trust.h apply */
  char passed[400]; /* a folder that was skipped, and why; "": none */
} cli_store_location;
/* Finds the store: `given`, else the nearest .lode folder upward (project/project.h), else $XDG_DATA_HOME/lode, else
 * ~/.local/share/lode. `absent`: before these two, where the store of the project around would be, if it has a .git.
 * The path is NUL-terminated. */
LODE_MUST lode_status cli_locate_store(const char *given, bool absent, strbuf *path, cli_store_location *located,
                                       lode_error *err);
/* The store of the project that a file or folder belongs to; `absent`: or where it would be, else LODE_NOT_FOUND if it
 * has none. */
LODE_MUST lode_status cli_store_of_project(const char *place, bool absent, strbuf *path, cli_store_location *located,
                                           lode_error *err);

#endif
