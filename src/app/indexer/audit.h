/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - checks that the collections of an index agree. They change in the same transactions, so they do, unless
 * records were lost to damage or deleted by somebody. */
#ifndef LODE_INDEXER_AUDIT_H
#define LODE_INDEXER_AUDIT_H

#include "indexer/indexer_batch.h"

typedef struct indexer_audit {
  uint64_t files, chunks;
  uint64_t short_files; /* files with a different number of chunks than recorded */
  uint64_t orphans;     /* chunks without a record of their file, or of a version that it does not have */
  uint64_t unpaired;    /* difference between the numbers of chunks and of second vectors */
  uint64_t mended;      /* files and chunks removed by `repair` */
} indexer_audit;

/* Reads all ids. With `repair`, removes what does not match: the next index run reads those files again. */
LODE_MUST lode_status indexer_audit_run(lode_store *store, bool repair, lode_progress progress, indexer_audit *audit,
                                        lode_error *err);

#endif
