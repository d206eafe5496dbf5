/* SPDX-License-Identifier: Apache-2.0 */
/* tombstones.h - what was deleted: tombstones (tombstones.c), and erased vectors that segments may still hold
 * (manifest.c). */
#ifndef LODE_STORE_TOMBSTONES_H
#define LODE_STORE_TOMBSTONES_H

#include "store/tx.h"

#define STORE_TOMBSTONE_MAX_RIDS 256 /* records in one row */
typedef struct store_tombstone {
  int64_t gid; /* of the last entry */
  int64_t vid; /* a replaced vector; 0: the row holds records */
  size_t n;
  int64_t rids[STORE_TOMBSTONE_MAX_RIDS]; /* ascending */
} store_tombstone;
LODE_MUST lode_status store_tombstone_add_vector(store_tx *tx, store_coll *coll, int64_t vid, lode_error *err);
/* The rids must be ascending. */
LODE_MUST lode_status store_tombstone_add_records(store_tx *tx, store_coll *coll, const int64_t *rids, size_t n,
                                                  lode_error *err);
/* Keeps only the records from index `first` on; deletes the row if none is left. */
LODE_MUST lode_status store_tombstone_trim(store_tx *tx, const store_tombstone *tombstone, size_t first,
                                           lode_error *err);
bool store_tombstone_decode(int64_t gid, lode_str rids, int64_t vid, store_tombstone *tombstone); /* false: malformed */
/* The current row of a statement with columns gid, rids, vid, crc; its checksum is verified. */
LODE_MUST lode_status store_tombstone_read(store_tx *tx, sqlite3_stmt *s, store_tombstone *tombstone, lode_error *err);

/* Adds a vector that is about to be erased to table dead, if a segment may hold it. rid 0: look it up. */
LODE_MUST lode_status store_dead_add(store_tx *tx, int64_t vid, int64_t rid, lode_error *err);
LODE_MUST lode_status store_dead_drop_all(store_tx *tx, int64_t cid, lode_error *err);
LODE_MUST lode_status store_manifest_drop_all(store_tx *tx, int64_t cid, lode_error *err);

#endif
