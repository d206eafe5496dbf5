/* SPDX-License-Identifier: Apache-2.0 */
/* browse.h - `lode search --interactive`: results as one types, a preview, the editor.
 *
 * The terminal is restored on every way out: the end, Ctrl-C, a signal, a crash (crash_cli.c).
 */
#ifndef LODE_CLI_BROWSE_H
#define LODE_CLI_BROWSE_H

#include "cli/cli_help.h"
#include "ops/op_context.h"

/* Was it asked for, and is there a terminal to do it on? Where there is none, the operation itself refuses it. */
bool cli_browse_wanted(const op_args *args);
/* Runs until the user leaves. LODE_CANCELLED: by Ctrl-C or a signal. */
LODE_MUST lode_status cli_browse(op_context *ctx, op_args *args, const cli_style *style, lode_error *err);
/* Gives the terminal back, from a signal handler too; does nothing when nobody browses. */
void cli_browse_restore(void);

#endif
