/* indexer_batch.h - writing what a feed made: some files to a transaction.
 *
 * In one transaction: the old chunks of each file go, the new ones come, in the first collection and in the second one (if there is
 * one), and the file's state changes. A vector that was made for the same text in the same file before is kept. */
#ifndef LODE_INDEXER_INDEXER_BATCH_H
#define LODE_INDEXER_INDEXER_BATCH_H

#include "indexer/pipeline.h"

/* The collections of an index; quality may be NULL. */
typedef struct indexer_colls {
  lode_store *store;
  lode_collection *code, *files, *quality;
} indexer_colls;

typedef struct indexer_batch {
  const indexer_colls *colls;
  indexer_file_table *known;   /* told of what was committed */
  uint32_t dimension;         /* of the feed's vectors */
  bool keep_vectors;          /* vectors of `code` are dear: keep those of texts that did not change */
  indexer_file **files;
  size_t n, cap;
  size_t chunks, bytes;
  uint64_t reused;            /* vectors kept, so far */
} indexer_batch;

/* Takes the file. */
LODE_MUST lode_status indexer_batch_add(indexer_batch *batch, indexer_file *file, lode_error *err);
bool indexer_batch_full(const indexer_batch *batch);
/* Commits and empties it. */
LODE_MUST lode_status indexer_batch_flush(indexer_batch *batch, lode_error *err);
void indexer_batch_release(indexer_batch *batch);

/* Takes files and their chunks out, some thousands to a transaction. */
LODE_MUST lode_status indexer_remove_files(const indexer_colls *colls, indexer_file_table *known, indexer_file_entry **files, size_t n,
                                         lode_progress progress, lode_error *err);

#endif
