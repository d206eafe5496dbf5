/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_rescue.h - arguments and handlers of `lode rescue`, `import`, `chroma` and `export`. */
#ifndef LODE_TABLE_OP_ARGS_RESCUE_H
#define LODE_TABLE_OP_ARGS_RESCUE_H

#include "table/op_table.h"

typedef struct op_rescue_args {
  op_arg_path dir, to, doubtful;
  op_arg_flag dry_run, embed;
  op_arg_text model;
} op_rescue_args;
OP_HANDLER(rescue_chroma, op_rescue_args)
OP_HANDLER(rescue_palace, op_rescue_args)

typedef struct op_import_lance_args {
  op_arg_path dir, to, python;
  op_arg_text table, collection, id, text, vector;
  op_arg_choice metric;
} op_import_lance_args;
OP_HANDLER(import_lance, op_import_lance_args)

typedef struct op_chroma_check_args {
  op_arg_path dir;
} op_chroma_check_args;
OP_HANDLER(chroma_check, op_chroma_check_args)

typedef struct op_quarantine_args {
  op_arg_path dir, to;
  op_arg_int stale_seconds;
  op_arg_flag fix_seq_ids, dry_run;
} op_quarantine_args;
OP_HANDLER(chroma_quarantine, op_quarantine_args)

typedef struct op_export_file_args {
  op_arg_text collection;
  op_arg_path file;
  op_arg_json where;
} op_export_file_args;
OP_HANDLER(export_chroma, op_export_file_args)
OP_HANDLER(export_npy, op_export_file_args)

#endif
