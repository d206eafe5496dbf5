/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the database file: records, documents, vectors and indexes in one SQLite database. Used by src/lib/engine
 * and src/lib/segments.
 *
 * Main ideas (docs/FORMAT.md describes every table and byte)
 *   - Keys are 64-bit: collection (high 23 bits) and a store-wide, commit-ordered counter (low 40 bits). A record keeps
 *     its key (rid) for life; each version of its vector has a key of its own (vid), and is never changed in place.
 *   - A deletion adds a tombstone; the id and the bytes are erased later, in short steps. A record is alive unless a
 *     tombstone holds its rid. A vector is alive if its record is alive and still points to it.
 *   - The text index and the metadata index may lag: each holds all records up to a cursor (a rid per collection).
 *     Writers keep it exact for records below the cursor; it holds nothing past it. Readers query the index, then
 *     scan the tail, so results never lag.
 *
 * Threads: a store_db is shared and keeps a pool of connections. A store_tx is one connection in one transaction and
 * belongs to one thread. A lode_str returned from a row is valid until the next step of that scan or the end of the
 * transaction, whichever comes first, unless it was copied.
 */
#ifndef LODE_STORE_STORE_H
#define LODE_STORE_STORE_H

#include "base/json.h"
#include "base/meta.h"
#include "os/store_files.h"

#include <stdatomic.h>

#define STORE_FORMAT 2u
#define STORE_KEY_SEQ_BITS 40
#define STORE_KEY_SEQ_MAX ((INT64_C(1) << STORE_KEY_SEQ_BITS) - 1)

typedef struct store_db store_db;
typedef struct store_tx store_tx;

/* ---- Store ---- */

/* `options` as given by the user: zero fields are replaced by defaults. */
LODE_MUST lode_status store_db_open(const char *folder, const lode_open_options *options, store_db **db,
                                    lode_error *err);
void store_db_close(store_db *db);
/* Call this first in a forked child: threads that do not exist there may have held the locks. */
void store_db_after_fork(store_db *db);
const lode_open_options *store_db_options(const store_db *db); /* with the defaults filled in */
const char *store_db_folder(const store_db *db);
/* A broken invariant whose result would be wrong answers or wrong writes: poisons the handle, which begins no
 * transaction from then on. LODE_INTERNAL. */
LODE_MUST lode_status store_db_broken(store_db *db, const char *what, lode_error *err);
#define STORE_ENSURE(db, cond, err)                                                                                    \
  do {                                                                                                                 \
    if (!INVARIANT(cond)) return store_db_broken((db), #cond, (err));                                                  \
  } while (0)
void store_db_log(store_db *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Transactions ---- */

typedef enum store_tx_kind { STORE_TX_READ, STORE_TX_WRITE } store_tx_kind;
/* A read transaction sees one snapshot. Keep it under 50 ms (see store_tx_is_old()), because it holds up commits. */
LODE_MUST lode_status store_tx_begin(store_db *db, store_tx_kind kind, store_tx **tx, lode_error *err);
LODE_MUST lode_status store_tx_commit(store_tx *tx, lode_error *err); /* frees tx either way; durable when OK */
void store_tx_rollback(store_tx *tx);                                 /* also ends a read; NULL is allowed */
bool store_tx_is_old(store_tx *tx); /* a read older than 50 ms: continue in a new one */
/* Has this read lasted half of busy_ms while somebody waits for a lock? Then it must end now. */
bool store_tx_must_yield(const store_tx *tx);
#ifdef LODE_CHECKED
/* Test hooks: they replace the decisions of the clock and the locks, so that a test can produce every interleaving in
 * one thread, from a seed. A NULL member changes nothing. */
typedef struct store_tx_hooks {
  bool (*is_old)(void);         /* store_tx_is_old() */
  bool (*lock_is_wanted)(void); /* does anybody wait for a lock? */
  bool (*must_yield)(void);     /* store_tx_must_yield() */
  void (*gap)(void);            /* called before each read transaction begins; a test commits here */
} store_tx_hooks;
extern const store_tx_hooks *_Atomic store_tx_test_hooks;
#endif
/* Position of the newest commit that this transaction sees. */
uint64_t store_tx_cursor(store_tx *tx);
/* Changes when the database file was replaced by another (a backup, for example): caches of the old one are useless. */
unsigned store_tx_epoch(const store_tx *tx);
/* Within a write transaction: a part that can be rolled back alone. */
LODE_MUST lode_status store_tx_savepoint(store_tx *tx, lode_error *err);
void store_tx_savepoint_end(store_tx *tx, bool keep);

/* ---- Collections ---- */

typedef struct store_coll {
  int64_t cid;      /* 1 .. 2^22 - 1 */
  uint64_t uid;     /* random: differs from that of another collection with the same cid in a replaced store */
  uint32_t counted; /* number of metadata keys declared as counters */
  lode_metric metric;
  uint32_t dim;
  uint32_t embedder_dim;
  uint64_t records, pending;
  uint64_t documents, document_bytes; /* of records with a document: for BM25 */
  uint64_t tombstones;                /* dead records and vectors that are not erased yet */
  int64_t text_cursor;                /* rid up to which the text index holds every record */
  int64_t term_cursor;                /* rid up to which the metadata index holds every record */
  uint64_t untexted;                  /* records past text_cursor */
  uint64_t unindexed;                 /* records past term_cursor */
  int64_t low_water;                  /* gid of the newest erased tombstone */
  lode_str name, metadata, embedder;  /* in the arena given */
} store_coll;

/* Strings are copied to the arena. */
LODE_MUST lode_status store_coll_find(store_tx *tx, lode_str name, mem_arena *arena, store_coll *coll, lode_error *err);
LODE_MUST lode_status store_coll_load(store_tx *tx, int64_t cid, mem_arena *arena, store_coll *coll, lode_error *err);
LODE_MUST lode_status store_coll_load_uid(store_tx *tx, uint64_t uid, mem_arena *arena, store_coll *coll,
                                          lode_error *err);
LODE_MUST lode_status store_coll_create(store_tx *tx, const store_coll *wanted, const lode_str *counters,
                                        size_t n_counters, mem_arena *arena, store_coll *coll, lode_error *err);
typedef lode_status store_coll_fn(void *ctx, const store_coll *coll, lode_error *err);
LODE_MUST lode_status store_coll_each(store_tx *tx, store_coll_fn *fn, void *ctx, lode_error *err); /* by name */
LODE_MUST lode_status store_coll_rename(store_tx *tx, int64_t cid, lode_str new_name, lode_error *err);
LODE_MUST lode_status store_coll_set_metadata(store_tx *tx, int64_t cid, lode_str metadata, lode_error *err);
LODE_MUST lode_status store_coll_set_embedder(store_tx *tx, int64_t cid, lode_str embedder, uint32_t dim,
                                              lode_error *err);
LODE_MUST lode_status store_coll_drop(store_tx *tx, int64_t cid, lode_error *err);
/* Drops `old`; `successor` takes its name and its uid, so that handles of `old` find it. */
LODE_MUST lode_status store_coll_succeed(store_tx *tx, const store_coll *old, const store_coll *successor,
                                         lode_error *err);

/* ---- Records: reading ---- */

typedef struct store_rec {
  int64_t rid;
  int64_t vid;  /* 0: pending */
  uint64_t seq; /* cursor of the last change */
  bool has_document;
  uint32_t doc_crc;      /* of the document, if there is one */
  lode_str id, metadata; /* metadata.data NULL: none */
} store_rec;

/* rid of the live record with this id; LODE_OK and 0 if there is none. Lookups in sorted order are fastest. */
LODE_MUST lode_status store_rec_find(store_tx *tx, int64_t cid, lode_str id, int64_t *rid, lode_error *err);
/* Looks up many ids, for a writer; entries come in the order of ids. */
typedef struct store_id_entry {
  int64_t rid; /* 0: no such id */
  int64_t len; /* bytes of its document + 1, 0 for none */
  bool dead;   /* the record was deleted but not erased yet: the id is free again */
} store_id_entry;
LODE_MUST lode_status store_ids_find(store_tx *tx, int64_t cid, const lode_str *ids, size_t n, store_id_entry *entries,
                                     lode_error *err);
/* LODE_OK and *found = false if there is no such record or it is dead. The checksum is verified. */
LODE_MUST lode_status store_rec_read(store_tx *tx, int64_t rid, store_rec *rec, bool *found, lode_error *err);
/* The same for a record just found by its id: it is known to be alive, so tombstones are not checked again. */
LODE_MUST lode_status store_rec_read_live(store_tx *tx, int64_t rid, store_rec *rec, bool *found, lode_error *err);
/* The document of a record that has one, checksum verified. Valid until the next call. */
LODE_MUST lode_status store_rec_document(store_tx *tx, int64_t rid, lode_str *document, lode_error *err);
/* Copies the vector with this key (dim floats), checksum verified. */
LODE_MUST lode_status store_rec_vector(store_tx *tx, int64_t vid, float *out, uint32_t dim, lode_error *err);

/* The length of the document only; its checksum is not verified. */
LODE_MUST lode_status store_rec_document_bytes(store_tx *tx, int64_t rid, uint64_t *bytes, lode_error *err);
/* Counts live records by their keys. */
LODE_MUST lode_status store_rec_count(store_tx *tx, int64_t cid, uint64_t *n, lode_error *err);
/* Is a record that an index proposed, or that was read before, still alive? */
LODE_MUST lode_status store_rec_is_live(store_tx *tx, int64_t rid, bool *alive, lode_error *err);

/* Scans of live records with rid > after_rid, in key order. One record scan and one vector scan per transaction. */
LODE_MUST lode_status store_rec_scan(store_tx *tx, int64_t cid, int64_t after_rid, lode_error *err);
LODE_MUST lode_status store_rec_scan_pending(store_tx *tx, int64_t cid, int64_t after_rid, lode_error *err);
LODE_MUST lode_status store_rec_next(store_tx *tx, store_rec *rec, bool *more, lode_error *err);
/* Live vectors with vid > after_vid, in key order. `data` (dim floats, may be unaligned) is valid until the next
 * step. The row's checksum is verified. */
LODE_MUST lode_status store_vec_scan(store_tx *tx, int64_t cid, int64_t after_vid, lode_error *err);
LODE_MUST lode_status store_vec_next(store_tx *tx, int64_t *vid, int64_t *rid, const void **data, uint32_t *dim,
                                     bool *more, lode_error *err);

/* Tombstones of a collection with gid > after_gid, in order: what died since a cache was made. vid != 0: this vector
 * was replaced (rid is 0). rid != 0: the record died, and its vector with it (vid is 0). Erasing tombstones raises
 * the collection's low-water mark: a cache made at a cursor below it must be rebuilt. */
typedef lode_status store_tombstone_fn(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err);
LODE_MUST lode_status store_tombstone_each(store_tx *tx, int64_t cid, int64_t after_gid, store_tombstone_fn *fn,
                                           void *ctx, lode_error *err);
LODE_MUST lode_status store_tombstone_low_water(store_tx *tx, int64_t cid, int64_t *gid, lode_error *err);

/* ---- Segments of the vector index: the manifest (manifest.c) ---- */

typedef struct store_manifest_row {
  uint64_t id; /* random, below 2^63; names the file and seeds its checksums */
  int64_t cid;
  int64_t after, last; /* holds the vectors with after < vid <= last that were alive when it was built */
  uint64_t bytes;      /* of the file; 0: it is being built */
  uint32_t table_crc, rows, kind;
  bool proven; /* out: the row's checksum and key range are valid */
} store_manifest_row;
typedef lode_status store_manifest_fn(void *ctx, const store_manifest_row *row, lode_error *err);
/* Rows of a collection in vid order, including segments being built; cid 0: of all collections. */
LODE_MUST lode_status store_manifest_each(store_tx *tx, int64_t cid, store_manifest_fn *fn, void *ctx, lode_error *err);
LODE_MUST lode_status store_manifest_put(store_tx *tx, const store_manifest_row *row,
                                         lode_error *err); /* adds or replaces */
LODE_MUST lode_status store_manifest_remove(store_tx *tx, uint64_t id, lode_error *err);
/* Erased vectors with after < vid <= last that segments may still hold. */
typedef lode_status store_dead_fn(void *ctx, int64_t vid, int64_t rid, lode_error *err);
LODE_MUST lode_status store_dead_each(store_tx *tx, int64_t after, int64_t last, store_dead_fn *fn, void *ctx,
                                      lode_error *err);
LODE_MUST lode_status store_dead_count(store_tx *tx, int64_t after, int64_t last, uint64_t *n, lode_error *err);
LODE_MUST lode_status store_dead_remove(store_tx *tx, const int64_t *vids, size_t n, lode_error *err);
/* The rid of a vector that is not erased yet; 0 if there is none. */
LODE_MUST lode_status store_vec_owner(store_tx *tx, int64_t vid, int64_t *rid, lode_error *err);
/* Keys of live vectors with vid > after_vid, in order; *more is false at the end. Shares the scan of
 * store_vec_scan(). */
LODE_MUST lode_status store_vec_scan_keys(store_tx *tx, int64_t cid, int64_t after_vid, lode_error *err);
LODE_MUST lode_status store_vec_next_key(store_tx *tx, int64_t *vid, int64_t *rid, bool *more, lode_error *err);
/* Copies the vector with this key, if it is not erased yet. */
LODE_MUST lode_status store_vec_get(store_tx *tx, int64_t vid, float *out, uint32_t dim, bool *found, lode_error *err);
/* Where vectors are in the database file: vector_place.c. Opened and used within a read transaction, used again in
 * later ones. */
typedef struct store_places store_places;
LODE_MUST lode_status store_places_open(store_tx *tx, store_places **places, lode_error *err);
void store_places_close(store_places *places); /* NULL is allowed */
/* The offset at which the file has these dim floats, as the vector's data; 0: not known. */
uint64_t store_places_find(store_places *places, int64_t vid, const float *vector, uint32_t dim);
int64_t store_vec_before_first(int64_t cid);       /* less than every vid of the collection */
int64_t store_vec_last(store_tx *tx, int64_t cid); /* not less than any vid that the transaction sees */
/* The lock of the index builder. LODE_BUSY: another thread or process holds it. */
LODE_MUST lode_status store_build_lock(store_db *db, lode_error *err);
void store_build_unlock(store_db *db);

/* ---- Records: writing (the caller has validated the input; metadata is compact JSON or absent) ---- */

typedef struct store_change {
  lode_str id;
  bool set_document, set_metadata; /* updates: which parts to change; inserts write all */
  lode_str document, metadata;     /* data NULL: none */
  const float *vector;             /* NULL: none (insert), unchanged (update) */
  uint32_t dim;
  int64_t dead_rid; /* inserts: the dead record that still holds the id; 0: none */
} store_change;

/* Inserts in the order given; batches of about a thousand are best. */
LODE_MUST lode_status store_rec_insert(store_tx *tx, store_coll *coll, const store_change *changes, size_t n,
                                       lode_error *err);
/* `old` is the record as read in this transaction; its strings may still belong to the statement that read it. */
LODE_MUST lode_status store_rec_update(store_tx *tx, store_coll *coll, const store_rec *old, const store_change *change,
                                       lode_error *err);
/* Deletes the records with these ids, which must be sorted; ids without a record are skipped. */
LODE_MUST lode_status store_rec_delete(store_tx *tx, store_coll *coll, const lode_str *ids, size_t n, size_t *deleted,
                                       lode_error *err);
/* Writes back the changed counts and dimension. Call once before commit for each collection that was changed. */
LODE_MUST lode_status store_coll_save(store_tx *tx, const store_coll *coll, lode_error *err);

/* ---- Indexes: they propose records up to their cursors; dead ones may be among them ---- */

typedef struct store_term_range {
  lode_str key;
  const meta_value *low, *high; /* NULL: open; low == high for an exact value */
} store_term_range;
/* `exact` is false if the value is a truncated prefix of a long string: check the record itself. */
typedef lode_status store_term_fn(void *ctx, const meta_value *value, bool exact, int64_t rid, lode_error *err);
/* Calls fn for each (value, rid) of the range in value order. Stops after `limit` entries (0: no limit) and sets
 * *truncated if there were more. */
LODE_MUST lode_status store_term_each(store_tx *tx, int64_t cid, const store_term_range *range, size_t limit,
                                      bool *truncated, store_term_fn *fn, void *ctx, lode_error *err);

#define STORE_TEXT_MAX_WORDS 64
/* counts[i]: how often the record contains words[i], at most 65,535. */
typedef lode_status store_text_fn(void *ctx, int64_t rid, const uint16_t *counts, lode_error *err);
/* Calls fn for each record with rid > after_rid that contains at least one of the words, in key order. The words are
 * distinct, as token_split() returns them, and at most STORE_TEXT_MAX_WORDS. */
LODE_MUST lode_status store_text_each(store_tx *tx, int64_t cid, int64_t after_rid, const lode_str *words,
                                      size_t n_words, store_text_fn *fn, void *ctx, lode_error *err);

/* Approximate lengths of documents, cached a block of keys at a time. Zero it first; ascending rids are fastest. */
enum { STORE_DOC_SIZES_BLOCK = 2048 };
typedef struct store_doc_sizes {
  int64_t block;
  bool loaded, changed;
  unsigned char codes[STORE_DOC_SIZES_BLOCK];
} store_doc_sizes;
/* *min_bytes: a lower bound of the document's length, for a record that the text index holds; 0 if not known. */
LODE_MUST lode_status store_doc_sizes_get(store_tx *tx, store_doc_sizes *sizes, int64_t rid, uint64_t *min_bytes,
                                          lode_error *err);

typedef lode_status store_counter_fn(void *ctx, const meta_value *value, uint64_t count, lode_error *err);
/* The values of a counter, the most frequent first. LODE_NOT_FOUND: the key is not declared as a counter. */
LODE_MUST lode_status store_counter_each(store_tx *tx, int64_t cid, lode_str key, store_counter_fn *fn, void *ctx,
                                         lode_error *err);

/* The declared keys, as strings, with the number of values of each. */
LODE_MUST lode_status store_counter_keys(store_tx *tx, int64_t cid, store_counter_fn *fn, void *ctx, lode_error *err);

/* ---- Maintenance, in steps of at most a second, each a transaction of its own ---- */

/* Does one step; *more: more work may be left. LODE_BUSY: another thread or process does maintenance, or holds the
 * write lock; try again. */
LODE_MUST lode_status store_maintain_step(store_db *db, bool *more, lode_error *err);
/* Only erases deleted records and returns free pages to the file system; indexes are not backfilled. */
LODE_MUST lode_status store_maintain_erase(store_db *db, bool *more, lode_error *err);
/* The work left, in rows. */
LODE_MUST lode_status store_maintain_left(store_db *db, uint64_t *left, lode_error *err);
/* Is there enough work for a whole step of a bulk load? */
LODE_MUST lode_status store_maintain_fills_step(store_db *db, bool *enough, lode_error *err);
extern uint64_t store_load_batch; /* records whose metadata a bulk load indexes at once; tests make it small */

/* ---- Whole-store operations ---- */

/* The random id of the store, set when it was created. */
LODE_MUST lode_status store_db_id(store_db *db, uint64_t *id, lode_error *err);
LODE_MUST lode_status store_stats(store_tx *tx, lode_stats *stats, lode_error *err);
/* Repacks the tables; run maintenance to its end first. */
LODE_MUST lode_status store_db_compact(store_db *db, lode_progress progress, lode_error *err);

#endif
