/* SPDX-License-Identifier: Apache-2.0 */
/* op_sample.h - records spread evenly over a collection, and the recall of searches for their vectors. */
#ifndef LODE_COMMANDS_OP_SAMPLE_H
#define LODE_COMMANDS_OP_SAMPLE_H

#include "base/base.h"

/* A position (lode_get_request.after) with no records after it. Found by bisection, as "is there a record after this
 * position" only changes from yes to no. */
LODE_MUST lode_status op_sample_end(lode_collection *collection, uint64_t records, uint64_t *end, lode_error *err);

/* The share of the ten nearest that searches find. */
typedef struct op_recall {
  char collection[LODE_MAX_NAME_BYTES + 1]; /* "": no collection has vectors */
  size_t queries;
  double mean, margin; /* the true mean is within the margin with 95 % confidence */
} op_recall;
/* Of the collection in which it is worst. Half of the queries are vectors of records, half lie between two of them. */
LODE_MUST lode_status op_sample_recall(lode_store *store, lode_progress progress, op_recall *worst, lode_error *err);

#endif
