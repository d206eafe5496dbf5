/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_symbols.h - arguments and handlers of the operations on symbols. */
#ifndef LODE_TABLE_OP_ARGS_SYMBOLS_H
#define LODE_TABLE_OP_ARGS_SYMBOLS_H

#include "table/op_table.h"

typedef struct op_outline_args {
  op_arg_text path;
  op_arg_int limit;
  op_arg_path project;
} op_outline_args;
OP_HANDLER(outline, op_outline_args)

typedef struct op_symbol_args {
  op_arg_text name;
  op_arg_int depth, limit;
  op_arg_path project;
} op_symbol_args;
OP_HANDLER(def, op_symbol_args)
OP_HANDLER(refs, op_symbol_args)
OP_HANDLER(callers, op_symbol_args)
OP_HANDLER(callees, op_symbol_args)

typedef struct op_impact_args {
  op_arg_text at, name, diff;
  op_arg_int depth, limit;
  op_arg_path project;
} op_impact_args;
OP_HANDLER(impact, op_impact_args)

typedef struct op_read_args {
  op_arg_text at, name;
  op_arg_int lines;
  op_arg_flag indexed, spans;
  op_arg_path project;
} op_read_args;
OP_HANDLER(read, op_read_args)

typedef struct op_trace_args {
  op_arg_text from, to;
  op_arg_path project;
} op_trace_args;
OP_HANDLER(trace, op_trace_args)

typedef struct op_survey_args {
  op_arg_text path;
  op_arg_int limit;
  op_arg_path project;
} op_survey_args;
OP_HANDLER(unused, op_survey_args)
OP_HANDLER(cycles, op_survey_args)
OP_HANDLER(hotspots, op_survey_args)

#endif
