/* audit.h - do the collections of an index agree with each other? They change in the same transactions, so they do, unless something was
 * lost: by damage, or by somebody who deleted records. */
#ifndef LODE_INDEXER_AUDIT_H
#define LODE_INDEXER_AUDIT_H

#include "indexer/indexer_batch.h"

typedef struct indexer_audit {
  uint64_t files, chunks;
  uint64_t short_files;   /* have another number of chunks than they should */
  uint64_t orphans;       /* chunks whose file is not known */
  uint64_t unpaired;      /* chunks without a record in the collection of second vectors, or the other way round */
  uint64_t mended;
} indexer_audit;

/* Reads all ids. With `repair`, what does not fit is taken out: the next index run reads those files again. */
LODE_MUST lode_status indexer_audit_run(lode_store *store, bool repair, lode_progress progress, indexer_audit *audit, lode_error *err);

#endif
