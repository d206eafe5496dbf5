/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_batch.h - writes what a pipeline has produced, several files per transaction.
 *
 * One transaction deletes the old chunks of each file and adds the new ones, in "code" and in "quality" (if there is
 * one), and updates the file's state and its table of symbols. A vector that exists for the same text is kept.
 * In a store without transactions the same comes true for each file by versions (file_version.h). */
#ifndef LODE_INDEXER_INDEXER_BATCH_H
#define LODE_INDEXER_INDEXER_BATCH_H

#include "indexer/pipeline.h"

/* The collections of an index; quality and symbols may be NULL. */
typedef struct indexer_colls {
  lode_store *store;
  lode_collection *code, *files, *quality, *symbols;
  bool versioned; /* the store has no transactions: files have versions (file_version.h) */
} indexer_colls;
/* Does the store lack transactions? */
LODE_MUST lode_status indexer_is_versioned(lode_store *store, bool *versioned, lode_error *err);

typedef struct indexer_batch {
  const indexer_colls *colls;
  indexer_file_table *file_table; /* updated after each commit */
  uint32_t dimension;             /* of the pipeline's vectors */
  bool keep_vectors;              /* vectors of `code` are expensive: keep those of texts that did not change */
  indexer_file **files;
  size_t n, cap;
  size_t chunks, bytes;
  uint64_t reused; /* vectors kept, so far */
} indexer_batch;

/* Takes ownership of the file. */
LODE_MUST lode_status indexer_batch_add(indexer_batch *batch, indexer_file *file, lode_error *err);
bool indexer_batch_full(const indexer_batch *batch);
/* Commits and empties it. */
LODE_MUST lode_status indexer_batch_flush(indexer_batch *batch, lode_error *err);
void indexer_batch_release(indexer_batch *batch);

/* Deletes files and their chunks, some thousands per transaction. */
LODE_MUST lode_status indexer_remove_files(const indexer_colls *colls, indexer_file_table *file_table,
                                           indexer_file_entry **files, size_t n, lode_progress progress,
                                           lode_error *err);

#endif
