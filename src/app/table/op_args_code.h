/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_code.h - arguments and handlers of code search. */
#ifndef LODE_TABLE_OP_ARGS_CODE_H
#define LODE_TABLE_OP_ARGS_CODE_H

#include "table/op_table.h"

typedef struct op_setup_args {
  op_arg_path path;
  op_arg_flag dry_run, no_mcp, no_instructions, no_index, replace;
  op_arg_text model;
} op_setup_args;
OP_HANDLER(setup, op_setup_args)

typedef struct op_index_args {
  op_arg_path path, remove;
  op_arg_flag force, quality, pending;
  op_arg_text model;
  op_arg_int workers;
} op_index_args;
OP_HANDLER(index, op_index_args)

typedef struct op_search_args {
  op_arg_text query, lang, path, type, name, similar;
  op_arg_int limit, context;
  op_arg_choice mode;
  op_arg_flag exact, regex, files_only, oneline, explain, refresh, no_refresh, interactive;
  op_arg_path project;
} op_search_args;
OP_HANDLER(search, op_search_args)

typedef struct op_context_args {
  op_arg_text at, name;
  op_arg_int limit;
  op_arg_path project;
} op_context_args;
OP_HANDLER(context, op_context_args)

typedef struct op_status_args {
  op_arg_flag check, skipped, skip_stats, force_refresh;
  op_arg_path project;
} op_status_args;
OP_HANDLER(status, op_status_args)

typedef struct op_skipped_args {
  op_arg_path path;
  op_arg_text reason;
} op_skipped_args;
OP_HANDLER(skipped, op_skipped_args)

typedef struct op_watch_args {
  op_arg_path path;
  op_arg_int debounce;
  op_arg_flag once;
} op_watch_args;
OP_HANDLER(watch, op_watch_args)

typedef struct op_doctor_args {
  op_arg_flag repair;
  op_arg_path project;
} op_doctor_args;
OP_HANDLER(doctor, op_doctor_args)

typedef struct op_reset_args {
  op_arg_choice what;
  op_arg_flag yes, no_backup;
  op_arg_path project;
} op_reset_args;
OP_HANDLER(reset, op_reset_args)

typedef struct op_trust_args {
  op_arg_path path;
  op_arg_flag list, forget;
} op_trust_args;
OP_HANDLER(trust, op_trust_args)

typedef struct op_completion_args {
  op_arg_choice shell;
} op_completion_args;
OP_HANDLER(completion, op_completion_args)

typedef struct op_config_args {
  op_arg_text key, value;
  op_arg_path project;
} op_config_args;
OP_HANDLER(config_get, op_config_args)
OP_HANDLER(config_set, op_config_args)
OP_HANDLER(config_unset, op_config_args)
OP_HANDLER(config_list, op_config_args)

#endif
