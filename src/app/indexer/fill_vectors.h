/* SPDX-License-Identifier: Apache-2.0 */
/* fill_vectors.h - vectors for chunks that have none yet: copied from chunks with the same text, or made by the
 * model. */
#ifndef LODE_INDEXER_FILL_VECTORS_H
#define LODE_INDEXER_FILL_VECTORS_H

#include "indexer/indexer_batch.h"

typedef struct indexer_backfill {
  lode_collection *code;                      /* has the texts and their hashes */
  lode_collection *target;                    /* gets the vectors: code itself, or a collection with the same ids */
  lode_collection *donor_code, *donor_target; /* another pair whose vectors may be copied; NULL: none */
  lode_embedder *embedder;                    /* NULL: only copy */
  const char *phase;                          /* for progress */
  lode_progress progress;
  uint64_t made, reused; /* so far */
} indexer_backfill;

/* Runs until no chunk is left, some chunks per transaction. LODE_CANCELLED when the progress callback says so. */
LODE_MUST lode_status indexer_backfill_run(indexer_backfill *fill, lode_error *err);
/* Adds a record without a vector to the target for each chunk. Resumable. */
LODE_MUST lode_status indexer_backfill_prepare(indexer_backfill *fill, lode_error *err);

#endif
