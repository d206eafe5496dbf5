/* SPDX-License-Identifier: Apache-2.0 */
/* tx.h - a transaction from the inside: its state, its keys, the numbers in table state. Not for other rooms, except
 * repair. */
#ifndef LODE_STORE_TX_H
#define LODE_STORE_TX_H

#include "store/conn.h"
#include "vfs/vfs_pages.h"

/* A metadata key in the cache of a store_tx. */
typedef struct store_metakey {
  lode_str name;
  int64_t kid;
  bool counted;
} store_metakey;

struct store_tx {
  store_db *db;
  store_conn *conn;
  store_tx_kind kind;
  unsigned epoch;
  uint64_t began_ns;
  bool age_checked;                  /* store_tx_is_old() was called before */
  uint64_t cursor;                   /* as read at the start; in a write, the last number handed out */
  uint64_t cursor_saved;             /* as stored in the database */
  int64_t fresh;                     /* rows of table fresh (record_ids.c) */
  int64_t fresh_saved;               /* their number as stored in the database */
  bool fresh_known;                  /* fresh and fresh_saved were loaded */
  int64_t fresh_before;              /* value of fresh at the savepoint; -1: it was not loaded */
  sqlite3_stmt *rec_scan, *vec_scan; /* the running scans */
  int64_t keys_cid;                  /* collection whose metadata keys are cached; 0: none */
  store_metakey *keys;
  size_t n_keys, cap_keys;
  mem_arena keys_arena;
  json_doc json;          /* scratch for metadata */
  int64_t dead_cid;       /* collection whose dead keys in conn are up to date for this transaction; 0: none */
  int64_t segmented_cid;  /* collection that segmented_last belongs to; 0: none */
  int64_t segmented_last; /* the last vid that a segment may hold */
  int bind_rc;            /* first failed bind since the last step, which reports it (statements.c) */
  bool open;              /* BEGIN was done */
  bool format_1;          /* the store had format 1 at BEGIN; a write transaction has upgraded it */
  bool failed;            /* a statement failed: only a rollback, or the end of the savepoint, is allowed */
  lode_status why;        /* the status of that failure */
  bool in_savepoint;
};

/* The next commit-ordered number, for a write. */
LODE_MUST lode_status store_tx_next_seq(store_tx *tx, uint64_t *seq, lode_error *err);

/* ---- The pages of the database file, as the transaction sees them ---- */

/* `pages` is VFS_PAGES_NONE, or was used with an earlier transaction; the caller closes it. */
LODE_MUST lode_status store_tx_pages(store_tx *tx, vfs_pages *pages, lode_error *err);
/* LODE_CORRUPT: the page is damaged. Free pages may read as zeros. */
LODE_MUST lode_status store_tx_read_page(store_tx *tx, vfs_pages *pages, uint32_t number, unsigned char *page,
                                         lode_error *err);

/* ---- Keys: the collection in the high bits, a number of the counter in the low ones ---- */

static inline int64_t store_key_make(int64_t cid, uint64_t seq) {
  return (int64_t)((uint64_t)cid << STORE_KEY_SEQ_BITS | seq);
}
static inline int64_t store_key_before_first(int64_t cid) { return (int64_t)((uint64_t)cid << STORE_KEY_SEQ_BITS); }
static inline int64_t store_key_last(int64_t cid) { return store_key_make(cid, STORE_KEY_SEQ_MAX); }
static inline int64_t store_key_cid(int64_t key) { return key >> STORE_KEY_SEQ_BITS; }

/* ---- Table state ---- */

/* Its rows. Format 1 had the cursor in row 3. It moved so that a program that knows only format 1, and has the store
 * open during the upgrade, finds no cursor and stops. */
enum {
  STORE_STATE_UID = 1,
  STORE_STATE_CREATED,
  STORE_STATE_CURSOR_FORMAT_1,
  STORE_STATE_NEXT_CID,
  STORE_STATE_NEXT_KID,
  STORE_STATE_FRESH,
  STORE_STATE_CURSOR,
  STORE_STATE_COMMITTED, /* wall clock at the last change of the cursor; missing before the first */
};

LODE_MUST lode_status store_state_get(store_tx *tx, int key, int64_t *value,
                                      lode_error *err); /* LODE_CORRUPT: it is missing */
LODE_MUST lode_status store_state_find(store_tx *tx, int key, int64_t *value, bool *found, lode_error *err);
LODE_MUST lode_status store_state_put(store_tx *tx, int key, int64_t value, lode_error *err);

#endif
