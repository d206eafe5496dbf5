/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_reembed.h - makes vectors that are nowhere on the disk again, from the documents.
 *
 * Only with the model that made the others: the one that the collection or the user names. Where the collection still
 * has vectors, the model must give the same ones for a sample of their documents. Otherwise no vectors are made.
 */
#ifndef LODE_RESCUE_RESCUE_REEMBED_H
#define LODE_RESCUE_RESCUE_REEMBED_H

#include "rescue/rescue_record.h"

typedef struct rescue_reembed {
  lode_embedder *embedder; /* NULL: not for this collection */
  char why[300];           /* why not */
} rescue_reembed;

/* model: named by the user; absent: the one that the collection names. */
LODE_MUST lode_status rescue_reembed_begin(rescue_reembed *re, rescue_plan *plan, lode_str model, lode_error *err);
void rescue_reembed_end(rescue_reembed *re);

#endif
