/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_tuning.h - every number of indexing that was chosen rather than derived.
 *
 * The times of docs/SEARCH.md ("How fast") were measured with these values; where nothing else is said, no others were
 * tried.
 */
#ifndef LODE_INDEXER_INDEXER_TUNING_H
#define LODE_INDEXER_INDEXER_TUNING_H

enum {
  /* Bytes of a chunk's own text that are embedded: what follows hardly changes the vector. */
  INDEXER_EMBED_BODY_BYTES = 1500,
  /* Bytes of a file's outline: names beyond are in the chunks. Bounds the text index of files with thousands of
   * definitions. */
  INDEXER_OUTLINE_BYTES = 16384,
  /* Cost of a file in addition to its bytes, to estimate the time left. An estimate. */
  INDEXER_FILE_COST = 2048,
  /* A file written this shortly before it was read may have changed again without another time: file systems keep
   * times to two seconds at worst. */
  INDEXER_RACY_MS = 2000,

  /* Files of which the times changed that are read to see whether their bytes did, when changes are only counted; more
   * count as changed. Bounds its time. */
  INDEXER_COMPARE_READ = 1000,

  /* One transaction: it is committed at the first of these limits, or after INDEXER_FLUSH_MS. Larger ones index faster,
   * smaller ones let readers see files sooner and hold less memory. */
  INDEXER_BATCH_MAX_CHUNKS = 4000,
  INDEXER_BATCH_MAX_FILES = 1000,
  INDEXER_BATCH_MAX_BYTES = 16 << 20,
  INDEXER_FLUSH_MS = 1000,
  /* Ids removed in one transaction. */
  INDEXER_BATCH_REMOVE_IDS = 20000,
  /* How often a batch is tried again when the store is busy: a run of many minutes must not fail because of some
   * seconds. */
  INDEXER_BATCH_MAX_TRIES = 20,
  /* Versions of files (file_version.h): how long the chunks of one may take to be written, from when its age makes them
   * nobody's, and until when a reader looks twice. Each leaves a minute for clocks that differ. */
  INDEXER_VERSION_WRITE_MS = 60000,
  INDEXER_VERSION_ORPHAN_MS = 600000,
  INDEXER_VERSION_YOUNG_MS = 180000,
  /* How long the writer waits for the next file before it looks whether to commit what it has. */
  INDEXER_WAIT_MS = 100,
  /* Notes that one run gives: after these, a broken tree would only repeat itself. */
  INDEXER_MAX_NOTES = 20,

  /* What waits between the threads that read and the one that writes: bounds the memory of a run. */
  INDEXER_QUEUE_FILES = 256,
  INDEXER_QUEUE_BYTES = 64 << 20,
  /* Texts that are embedded in one call while files are read. */
  INDEXER_EMBED_BATCH = 128,
  /* Chunks without a vector that are embedded and written together, and ids that are looked at in one read. */
  INDEXER_FILL_BATCH = 256,
  INDEXER_FILL_PAGE = 5000,
  /* Records in one read of the collection `files`, and of an audit. */
  INDEXER_FILES_PAGE = 5000,
};

#endif
