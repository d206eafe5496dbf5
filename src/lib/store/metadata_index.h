/* SPDX-License-Identifier: Apache-2.0 */
/* metadata_index.h - the metadata index and the declared counters, for writers; queries are in store.h. See
 * metadata_index.c. */
#ifndef LODE_STORE_METADATA_INDEX_H
#define LODE_STORE_METADATA_INDEX_H

#include "store/tx.h"

#define STORE_TERM_MAX_BYTES 64 /* strings in the index are truncated to this */

/* For records up to term_cursor. */
LODE_MUST lode_status store_terms_add(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
LODE_MUST lode_status store_terms_remove(store_tx *tx, int64_t cid, int64_t rid, lode_str metadata, lode_error *err);
/* For all records. */
LODE_MUST lode_status store_counters_change(store_tx *tx, int64_t cid, lode_str metadata, int delta, lode_error *err);
/* *kid is 0 if the key does not exist and `create` is false. */
LODE_MUST lode_status store_metakey_id(store_tx *tx, int64_t cid, lode_str name, bool create, bool counted,
                                       int64_t *kid, lode_error *err);

/* Terms of many records, written in the order of the index. */
typedef struct store_term_item {
  int64_t kid, rid;
  meta_value value;
} store_term_item;
typedef struct store_term_batch {
  store_tx *tx;
  int64_t cid, rid;
  bool creates; /* create keys that do not exist yet */
  store_term_item *items;
  size_t n, cap;
  mem_arena arena;
} store_term_batch;
LODE_MUST lode_status store_term_batch_add(store_term_batch *b, store_tx *tx, int64_t cid, int64_t rid,
                                           lode_str metadata, bool creates, lode_error *err);
/* which: STORE_STMT_TERM_PUT or STORE_STMT_TERM_DELETE */
LODE_MUST lode_status store_term_batch_write(store_term_batch *b, int which, lode_error *err);
void store_term_batch_release(store_term_batch *b);

#endif
