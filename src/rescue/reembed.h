/* reembed.h - vectors that are nowhere on the disk, made again from the documents.
 *
 * Only with the model that made the others: it is the one that the collection names, or the one that the user names, and where the
 * collection still has vectors, it must give the same ones for a sample of their documents. Otherwise nothing is made.
 */
#ifndef LODE_RESCUE_REEMBED_H
#define LODE_RESCUE_REEMBED_H

#include "record.h"

typedef struct lode__reembed {
  lode_embedder *embedder; /* NULL: not for this collection */
  char why[300];           /* why not */
} lode__reembed;

/* model: what the user named, absent: by the collection. */
lode_status lode__reembed_begin(lode__reembed *re, lode__plan *plan, lode_str model, lode_error *err);
void lode__reembed_end(lode__reembed *re);
/* The model that a name of Chroma's embedding functions stands for, NULL when it is none of ours. */
const char *lode__reembed_model(lode_str chroma_name);

#endif
