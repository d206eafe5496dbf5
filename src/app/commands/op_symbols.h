/* SPDX-License-Identifier: Apache-2.0 */
/* op_symbols.h - what the operations on symbols share. */
#ifndef LODE_COMMANDS_OP_SYMBOLS_H
#define LODE_COMMANDS_OP_SYMBOLS_H

#include "commands/op_code.h"
#include "symbols/symbols.h"

typedef struct op_symbols {
  op_context *ctx;
  project_info project;
  lode_store *store;
  symbols_world world;
  op_code_freshness freshness;
  strbuf scratch;
} op_symbols;

/* Finds the project, brings changed files up to date where that is quick, and opens its symbols. To be closed after a
 * failure too. */
LODE_MUST lode_status op_symbols_open(op_context *ctx, const char *start, op_symbols *s, lode_error *err);
void op_symbols_close(op_symbols *s);
/* Reports what an answer may lack. */
void op_symbols_note(op_symbols *s, bool more);
LODE_MUST lode_status op_symbols_send_def(op_symbols *s, symbols_id id, lode_error *err);
LODE_MUST lode_status op_symbols_send_edge(op_symbols *s, const symbols_edge *edge, lode_error *err);
/* A path as the user wrote it, from the root. */
LODE_MUST lode_status op_symbols_path(op_symbols *s, const op_arg_text *given, strbuf *path, lode_error *err);
/* LODE_NOT_FOUND when nothing has that name. */
LODE_MUST lode_status op_symbols_find(op_symbols *s, lode_str name, symbols_ids *ids, lode_error *err);

#endif
