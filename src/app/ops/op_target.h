/* SPDX-License-Identifier: Apache-2.0 */
/* op_target.h - the collection that an operation works on. */
#ifndef LODE_OPS_OP_TARGET_H
#define LODE_OPS_OP_TARGET_H

#include "ops/op_context.h"

typedef struct op_target {
  lode_store *store;
  lode_collection *collection;
} op_target;

/* Opens the store and the collection. `options` NULL: the collection must exist. For writing,
 * collections of a code index are LODE_REFUSED. */
LODE_MUST lode_status op_target_open(op_context *ctx, lode_str name, const op_open_options *how,
                                     const lode_collection_options *options, op_target *target, lode_error *err);
void op_target_close(op_context *ctx, op_target *target);
/* Is it NAME~reembed, which lode_reembed() makes beside NAME and puts in its place? *name gets NAME. */
bool op_is_reembed(lode_str full, lode_str *name);
/* Drops NAME~reembed, if there is one, after NAME was dropped. */
LODE_MUST lode_status op_drop_reembed(lode_store *store, lode_str name, lode_error *err);
/* From the arguments of these names; NULL: the operation has none. */
lode_selection op_selection_of(const op_arg_list *ids, const op_arg_json *where, const op_arg_json *where_document);

#endif
