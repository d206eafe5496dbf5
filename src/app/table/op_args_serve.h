/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_serve.h - arguments and handlers of the servers. */
#ifndef LODE_TABLE_OP_ARGS_SERVE_H
#define LODE_TABLE_OP_ARGS_SERVE_H

#include "table/op_table.h"

/* `ui` takes a part of them, and defaults for the rest. */
typedef struct op_serve_args {
  op_arg_path project, token_file, certificate, key;
  op_arg_text host;
  op_arg_int port, max_connections, wait, timeout, threads;
  op_arg_flag token, allow_reset, no_sandbox, no_open;
  op_arg_choice token_for, log;
  op_arg_list allow_host, allow_origin, allow_model;
  op_arg_size max_body;
} op_serve_args;
OP_HANDLER(serve, op_serve_args)
OP_HANDLER(ui, op_serve_args)

typedef struct op_mcp_args {
  op_arg_path path;
  op_arg_flag watch, compat, no_sandbox;
  op_arg_list allow_model;
} op_mcp_args;
OP_HANDLER(mcp, op_mcp_args)

typedef struct op_mcp_client_args {
  op_arg_path path;
  op_arg_choice client;
  op_arg_flag print, no_instructions;
} op_mcp_client_args;
OP_HANDLER(mcp_install, op_mcp_client_args)
OP_HANDLER(mcp_remove, op_mcp_client_args)

#endif
