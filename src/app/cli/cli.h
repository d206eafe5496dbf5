/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the command line: from argv to an operation and its arguments.
 *
 * Flags may stand before or after positional arguments; -- ends them. The flags that every command takes and those of
 * `lode help` are tables like those of the operations, and are parsed by the same code.
 */
#ifndef LODE_CLI_CLI_H
#define LODE_CLI_CLI_H

#include "ops/op_args.h"

/* Exit codes; `lode help exit-codes` explains them. */
enum {
  CLI_EXIT_DONE = 0,
  CLI_EXIT_NOTHING = 1,
  CLI_EXIT_USAGE = 2,
  CLI_EXIT_DAMAGED = 3,
  CLI_EXIT_BUSY = 4,
  CLI_EXIT_REFUSED = 5,
  CLI_EXIT_UNINDEXED = 6,
  CLI_EXIT_INTERRUPTED = 130,
};
int cli_exit_code(lode_status status);

/* Arguments of these two. */
typedef struct cli_common_args {
  op_arg_path store;
  op_arg_flag json, full, quiet, verbose, read_only, help, version;
  op_arg_choice color;
  op_arg_int busy_ms;
  op_arg_size memory, max_document;
} cli_common_args;
typedef struct cli_help_args {
  op_arg_list topic;
  op_arg_choice completions;
  op_arg_flag schema, man, list;
} cli_help_args;
extern const op_def cli_common_def; /* flags that every command takes: a table entry without handler */
extern const op_def cli_help_def;   /* `lode help` */

typedef struct cli_command {
  const op_def *op;  /* NULL: none was named */
  const char *group; /* "db" when only that was named */
  bool help, version;
  op_args args; /* of op */
  op_args common;
} cli_command;

/* Parses argv. LODE_INVALID for wrong usage; what was understood is in *command, which must be released in both
 * cases. */
LODE_MUST lode_status cli_parse(cli_command *command, int argc, char **argv, lode_error *err);
/* The flags that every command takes. */
const cli_common_args *cli_common(const cli_command *command);
void cli_command_release(cli_command *command);

#endif
