/* SPDX-License-Identifier: Apache-2.0 */
/* op_removal.h - records that a person is about to remove: asks on a terminal, and keeps a copy of them. */
#ifndef LODE_COMMANDS_OP_REMOVAL_H
#define LODE_COMMANDS_OP_REMOVAL_H

#include "ops/op_context.h"

typedef struct op_removal {
  const char *name;                /* of the collection */
  const lode_selection *selection; /* NULL: all records */
  bool vectors;                    /* only the vectors of the records are removed */
  bool yes, no_backup;
  bool unasked; /* where nobody can be asked it is done, not refused */
  strbuf copy;  /* result: the file with the records, NUL-terminated; empty: none was made */
} op_removal;

/* On a terminal: writes the records to a file of JSON lines beside the store (in the working directory for a cluster),
 * asks, and removes the file again if the answer is no. LODE_REFUSED: do not remove them. */
LODE_MUST lode_status op_removal_ask(op_context *ctx, lode_collection *collection, op_removal *removal,
                                     lode_error *err);
/* Puts the field "backup" if there is a copy. */
void op_removal_put(op_context *ctx, const op_removal *removal);

#endif
