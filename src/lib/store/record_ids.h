/* SPDX-License-Identifier: Apache-2.0 */
/* record_ids.h - the index from an id to its record, for writers; lookups are in store.h. See record_ids.c. */
#ifndef LODE_STORE_RECORD_IDS_H
#define LODE_STORE_RECORD_IDS_H

#include "store/tx.h"

extern int64_t store_fresh_min_rows; /* tests make it small, so that ids are merged often */
/* Adds the ids of new records, in the order given (sorted is fastest). No other record, dead or alive, may have them.
 */
LODE_MUST lode_status store_ids_add(store_tx *tx, const store_coll *coll, const store_new_rec *rows,
                                    const size_t *order, size_t n, lode_error *err);
/* Calls fn for each of the ids (sorted; repeated ones count once) that has a live record. */
typedef lode_status store_id_fn(void *ctx, const store_id_entry *entry, lode_error *err);
LODE_MUST lode_status store_ids_each(store_tx *tx, const store_coll *coll, const lode_str *ids, size_t n,
                                     store_id_fn *fn, void *ctx, lode_error *err);
LODE_MUST lode_status store_id_set_len(store_tx *tx, int64_t cid, lode_str id, int64_t len, lode_error *err);
/* Removes the id if it still belongs to this record. */
LODE_MUST lode_status store_id_remove(store_tx *tx, int64_t cid, lode_str id, int64_t rid, lode_error *err);
LODE_MUST lode_status store_ids_erase_some(store_tx *tx, int64_t cid, bool *more,
                                           lode_error *err); /* of a dropped collection */
LODE_MUST lode_status store_ids_save(store_tx *tx,
                                     lode_error *err); /* saves the row count of `fresh`, before a commit */

#endif
