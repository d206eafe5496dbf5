/* rescue_reembed.h - vectors that are nowhere on the disk, made again from the documents.
 *
 * Only with the model that made the others: it is the one that the collection names, or the one that the user names, and where the
 * collection still has vectors, it must give the same ones for a sample of their documents. Otherwise nothing is made.
 */
#ifndef LODE_RESCUE_RESCUE_REEMBED_H
#define LODE_RESCUE_RESCUE_REEMBED_H

#include "rescue/rescue_record.h"

typedef struct rescue_reembed {
  lode_embedder *embedder; /* NULL: not for this collection */
  char why[300];           /* why not */
} rescue_reembed;

/* model: what the user named, absent: by the collection. */
lode_status rescue_reembed_begin(rescue_reembed *re, rescue_plan *plan, lode_str model, lode_error *err);
void rescue_reembed_end(rescue_reembed *re);
/* The model that a name of Chroma's embedding functions stands for, NULL when it is none of ours. */
const char *rescue_reembed_model(lode_str chroma_name);

#endif
