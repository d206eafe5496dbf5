/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_model.h - arguments and handlers of `lode embed` and `lode model`. */
#ifndef LODE_TABLE_OP_ARGS_MODEL_H
#define LODE_TABLE_OP_ARGS_MODEL_H

#include "table/op_table.h"

typedef struct op_embed_args {
  op_arg_list texts;
  op_arg_text model, url;
  op_arg_choice precision;
  op_arg_int max_tokens, threads;
  op_arg_path npy, models;
} op_embed_args;
OP_HANDLER(embed, op_embed_args)

/* Each of these operations takes a part of them. */
typedef struct op_model_args {
  op_arg_path models, from;
  op_arg_text name;
  op_arg_flag again;
} op_model_args;
OP_HANDLER(model_list, op_model_args)
OP_HANDLER(model_install, op_model_args)
OP_HANDLER(model_info, op_model_args)
OP_HANDLER(model_verify, op_model_args)

#endif
