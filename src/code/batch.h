/* batch.h - writing what a feed made: some files to a transaction.
 *
 * In one transaction: the old chunks of each file go, the new ones come, in the first collection and in the second one (if there is
 * one), and the file's state changes. A vector that was made for the same text in the same file before is kept. */
#ifndef LODE_CODE_BATCH_H
#define LODE_CODE_BATCH_H

#include "code/feed.h"

/* The collections of an index; quality may be NULL. */
typedef struct lode__shelf {
  lode_store *store;
  lode_collection *code, *files, *quality;
} lode__shelf;

typedef struct lode__file_batch {
  const lode__shelf *shelf;
  lode__known_files *known;   /* told of what was committed */
  uint32_t dimension;         /* of the feed's vectors */
  bool keep_vectors;          /* vectors of `code` are dear: keep those of texts that did not change */
  lode__feed_file **files;
  size_t n, cap;
  size_t chunks, bytes;
  uint64_t reused;            /* vectors kept, so far */
} lode__file_batch;

/* Takes the file. */
LODE_MUST lode_status lode__file_batch_add(lode__file_batch *batch, lode__feed_file *file, lode_error *err);
bool lode__file_batch_full(const lode__file_batch *batch);
/* Commits and empties it. */
LODE_MUST lode_status lode__file_batch_flush(lode__file_batch *batch, lode_error *err);
void lode__file_batch_release(lode__file_batch *batch);

/* Takes files and their chunks out, some thousands to a transaction. */
LODE_MUST lode_status lode__file_batch_remove(const lode__shelf *shelf, lode__known_files *known, lode__known **files, size_t n,
                                         lode_progress progress, lode_error *err);

#endif
