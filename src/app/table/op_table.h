/* SPDX-License-Identifier: Apache-2.0 */
/* op_table.h - the groups of operations, lookups in them, and the handlers. */
#ifndef LODE_TABLE_OP_TABLE_H
#define LODE_TABLE_OP_TABLE_H

#include "ops/op_context.h"

/* A table of operations. Its name is the first word of their commands, or NULL if they have none (`lode search`). */
typedef struct op_group {
  const char *name;
  const char *about; /* heading in the help */
  const op_def *ops; /* ends with a NULL name */
} op_group;

extern const op_group op_groups[]; /* ends with NULL ops */
#define OP_EACH_GROUP(g) for (const op_group *g = op_groups; g->ops; g++)
#define OP_EACH(g, op) for (const op_def *op = (g)->ops; op->name; op++)

/* group may be NULL, here and below. */
const op_def *op_find(const char *group, lode_str name);
bool op_same_group(const char *a, const char *b);
bool op_is_group(lode_str word);

/* ---- Tables and handlers ---- */

extern const op_def op_table_db[];
extern const op_def op_table_embed[], op_table_model[];
extern const op_def op_table_rescue[], op_table_import[], op_table_chroma[], op_table_export[];
extern const op_def op_table_serve[], op_table_mcp[], op_table_mcp_clients[];
extern const op_def op_table_code[], op_table_symbols[], op_table_config[];

/* Declares a handler, which takes its own struct of arguments, and what the table calls for it. */
#define OP_HANDLER(verb, args_type)                                                                                    \
  typedef args_type op_args_of_##verb;                                                                                 \
  LODE_MUST lode_status op_do_##verb(op_context *ctx, const args_type *args, lode_error *err);                         \
  static inline lode_status op_run_##verb(op_context *ctx, const void *args, lode_error *err) {                        \
    return op_do_##verb(ctx, args, err);                                                                               \
  }
/* The members of an op_def that name its handler. */
#define OP_RUNS(verb) .run = op_run_##verb, .args_size = sizeof(op_args_of_##verb)

#endif
