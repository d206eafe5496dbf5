/* store.h - the truth: what src/lib/engine may ask of it. The only folder that knows SQLite.
 *
 * Ideas (docs/FORMAT.md has every table and byte)
 *   - Keys are 64-bit: collection (high 23 bits) and a store-wide, commit-ordered counter (low 40 bits). A record keeps
 *     its key (rid) for life; each version of its vector has a key of its own (vid), and is never changed in place.
 *   - A deletion digs a grave; name and bytes are erased later, in short steps. A record is alive unless its rid lies
 *     in a grave; a vector is alive if its record is and still points to it.
 *   - The text index and the metadata index may lag: each holds all records up to a cursor (a rid per collection), kept
 *     exact by the writers for records below it, and says nothing about records past it. Readers ask the index, then
 *     scan the tail: results never lag.
 *
 * Threads: a store_db is shared; it keeps a pool of connections. A store_tx is one connection in one transaction and
 * belongs to one thread. Everything returned as lode_str from a row is valid until the next step of that scan or the end
 * of the tx, whichever comes first, unless copied.
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

/* `options` are as given by the user; zero fields are replaced by their defaults here. */
lode_status store_db_open(const char *folder, const lode_open_options *options, store_db **db, lode_error *err);
void store_db_close(store_db *db);
/* In a forked child, before anything else: threads that are not there any more may have held the locks. */
void store_db_after_fork(store_db *db);
const lode_open_options *store_db_options(const store_db *db); /* with the defaults filled in */
const char *store_db_folder(const store_db *db);
void store_db_log(store_db *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Transactions ---- */

typedef enum store_tx_kind { STORE_TX_READ, STORE_TX_WRITE } store_tx_kind;
/* A read transaction sees one moment; keep it under 50 ms (see store_tx_is_old), because it holds up commits. */
lode_status store_tx_begin(store_db *db, store_tx_kind kind, store_tx **tx, lode_error *err);
lode_status store_tx_commit(store_tx *tx, lode_error *err); /* frees tx either way; durable when OK */
void store_tx_rollback(store_tx *tx);                        /* also ends a read; NULL is allowed */
bool store_tx_is_old(store_tx *tx);                          /* a read that lasted 50 ms: end it and go on with a new one */
/* A read that was kept for half of the time that a writer waits for a lock, and somebody waits: it must end now. */
bool store_tx_must_yield(const store_tx *tx);
#ifdef LODE_CHECKED
/* Tests: what the clock and the locks decide otherwise, so that every interleaving can be brought about in one
 * thread, from a seed. `gap` is called before each read transaction begins, when the thread has none open: a test
 * commits there. NULL members decide nothing. */
typedef struct store_tx_hooks {
  bool (*is_old)(void);    /* is this read transaction old? */
  bool (*lock_is_wanted)(void); /* does anybody wait for a lock? */
  bool (*outstays)(void);  /* store_tx_must_yield() */
  void (*gap)(void);
} store_tx_hooks;
extern const store_tx_hooks *_Atomic store_tx_test_hooks;
#endif
store_db *store_tx_db(store_tx *tx);
/* Position of the newest commit that this tx sees. */
uint64_t store_tx_cursor(store_tx *tx);
/* Differs after the store was replaced by another (a backup, say): what is known of the old one says nothing of the new. */
unsigned store_tx_epoch(const store_tx *tx);
/* Inside a write: undo what follows if it fails. */
lode_status store_tx_savepoint(store_tx *tx, lode_error *err);
void store_tx_savepoint_end(store_tx *tx, bool keep);

/* ---- Collections ---- */

typedef struct store_coll {
  int64_t cid;          /* 1 .. 2^22 */
  uint64_t uid;         /* random: tells a collection from a later one with the same cid in a replaced store */
  uint32_t counted;     /* how many of its metadata keys are declared as counters */
  lode_metric metric;
  uint32_t dim;
  uint32_t embedder_dim;
  uint64_t records, pending;
  uint64_t documents, document_bytes;  /* of records with a document: for BM25 */
  uint64_t tombstones;      /* not erased yet */
  int64_t text_cursor;  /* rid up to which the text index holds every record */
  int64_t term_cursor;  /* the same of the metadata index */
  uint64_t untexted, unindexed; /* records past them */
  int64_t low_water;      /* newest erased grave */
  lode_str name, metadata, embedder; /* in the arena given */
} store_coll;

/* LODE_NOT_FOUND names the collection. Strings are copied to the arena. */
lode_status store_coll_find(store_tx *tx, lode_str name, mem_arena *arena, store_coll *coll, lode_error *err);
lode_status store_coll_load(store_tx *tx, int64_t cid, mem_arena *arena, store_coll *coll, lode_error *err);
lode_status store_coll_create(store_tx *tx, const store_coll *wanted, const lode_str *counters, size_t n_counters,
                              mem_arena *arena, store_coll *coll, lode_error *err);
typedef lode_status store_coll_fn(void *ctx, const store_coll *coll, lode_error *err);
lode_status store_coll_each(store_tx *tx, store_coll_fn *fn, void *ctx, lode_error *err); /* by name */
lode_status store_coll_rename(store_tx *tx, int64_t cid, lode_str new_name, lode_error *err);
lode_status store_coll_set_metadata(store_tx *tx, int64_t cid, lode_str metadata, lode_error *err);
lode_status store_coll_set_embedder(store_tx *tx, int64_t cid, lode_str embedder, uint32_t dim, lode_error *err);
lode_status store_coll_drop(store_tx *tx, int64_t cid, lode_error *err);

/* ---- Records: reading ---- */

typedef struct store_rec {
  int64_t rid;
  int64_t vid;        /* 0: pending */
  uint64_t seq;       /* cursor of the last change */
  bool has_document;
  uint32_t doc_crc;   /* of the document, if there is one */
  lode_str id, metadata; /* metadata.data NULL: none */
} store_rec;

/* rid of the living record with that id: LODE_OK and 0 when there is none. Ids asked in sorted order are fastest. */
lode_status store_rec_find(store_tx *tx, int64_t cid, lode_str id, int64_t *rid, lode_error *err);
/* The same of many, for a writer: in the order of ids. */
typedef struct store_id_entry {
  int64_t rid;   /* 0: no such name */
  int64_t len;   /* bytes of its document + 1, 0 for none */
  bool dead;     /* the record was deleted and not erased yet: the name is free again */
} store_id_entry;
lode_status store_ids_find(store_tx *tx, int64_t cid, const lode_str *ids, size_t n, store_id_entry *names, lode_error *err);
/* LODE_OK and *found = false when there is no such record or it is dead. The checksum is verified. */
lode_status store_rec_read(store_tx *tx, int64_t rid, store_rec *rec, bool *found, lode_error *err);
/* The same of a record that its name has just led to: it is alive, and the graves are not asked again. */
lode_status store_rec_read_live(store_tx *tx, int64_t rid, store_rec *rec, bool *found, lode_error *err);
/* Document of a record that has one: verified. Valid until the next call. */
lode_status store_rec_document(store_tx *tx, int64_t rid, lode_str *document, lode_error *err);
/* Vector with that key: verified; copies dim floats. */
lode_status store_rec_vector(store_tx *tx, int64_t vid, float *out, uint32_t dim, lode_error *err);

/* Its length alone. */
lode_status store_rec_document_bytes(store_tx *tx, int64_t rid, uint64_t *bytes, lode_error *err);
/* Is a record that an index proposed, or that was read before, still alive? */
lode_status store_rec_is_live(store_tx *tx, int64_t rid, bool *alive, lode_error *err);

/* Scans of living records with rid > after, in order. One scan of each kind per tx. */
lode_status store_rec_scan(store_tx *tx, int64_t cid, int64_t after_rid, lode_error *err);
lode_status store_rec_scan_pending(store_tx *tx, int64_t cid, int64_t after_rid, lode_error *err);
lode_status store_rec_next(store_tx *tx, store_rec *rec, bool *more, lode_error *err);
/* Living vectors with vid > after, in order. `data` (dim floats, may be unaligned) is valid until the next step.
 * Checked by page checksum; verify_crc also checks the row's own. */
lode_status store_vec_scan(store_tx *tx, int64_t cid, int64_t after_vid, lode_error *err);
lode_status store_vec_next(store_tx *tx, int64_t *vid, int64_t *rid, const void **data, uint32_t *dim, bool *more,
                           lode_error *err);

/* Graves of a collection with gid > after, in order: what died since a cache was made. vid != 0 only: that vector was
 * replaced; rid != 0: the record died, and its vector with it (vid is then 0). Erasing graves raises the collection's
 * horizon: a cache older than that (made at a cursor < horizon) must be made anew. */
typedef lode_status store_tombstone_fn(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err);
lode_status store_tombstone_each(store_tx *tx, int64_t cid, int64_t after_gid, store_tombstone_fn *fn, void *ctx,
                             lode_error *err);
lode_status store_tombstone_low_water(store_tx *tx, int64_t cid, int64_t *gid, lode_error *err);

/* ---- Segments of the vector index: the manifest (manifest.c) ---- */

typedef struct store_manifest_row {
  uint64_t id;          /* random, below 2^63; names the file and seeds its checksums */
  int64_t cid;
  int64_t after, last;  /* holds the vectors with after < vid <= last that lived when it was made */
  uint64_t bytes;       /* of the file; 0: it is being made */
  uint32_t table_crc, rows, kind;
  bool proven;          /* out: its checksum is right */
} store_manifest_row;
typedef lode_status store_manifest_fn(void *ctx, const store_manifest_row *row, lode_error *err);
/* Those of a collection in the order of vids, the ones being made too; cid 0: of all. */
lode_status store_manifest_each(store_tx *tx, int64_t cid, store_manifest_fn *fn, void *ctx, lode_error *err);
lode_status store_manifest_put(store_tx *tx, const store_manifest_row *row, lode_error *err); /* adds or replaces */
lode_status store_manifest_remove(store_tx *tx, uint64_t id, lode_error *err);
/* Erased vectors of the range that segments may still hold. */
typedef lode_status store_dead_fn(void *ctx, int64_t vid, int64_t rid, lode_error *err);
lode_status store_dead_each(store_tx *tx, int64_t after, int64_t last, store_dead_fn *fn, void *ctx, lode_error *err);
lode_status store_dead_count(store_tx *tx, int64_t after, int64_t last, uint64_t *n, lode_error *err);
lode_status store_dead_remove(store_tx *tx, const int64_t *vids, size_t n, lode_error *err);
/* The record of a vector that was not erased yet; 0 when there is none. */
lode_status store_vec_owner(store_tx *tx, int64_t vid, int64_t *rid, lode_error *err);
/* Living vectors' keys with vid > after, in order: *more is false at the end. The same scan as store_vec_scan. */
lode_status store_vec_scan_keys(store_tx *tx, int64_t cid, int64_t after_vid, lode_error *err);
lode_status store_vec_next_key(store_tx *tx, int64_t *vid, int64_t *rid, bool *more, lode_error *err);
int64_t store_vec_before_first(int64_t cid);              /* less than every vid of the collection */
int64_t store_vec_last(store_tx *tx, int64_t cid); /* no less than every vid that the transaction sees */
/* LODE_BUSY when another thread or process builds. */
lode_status store_build_lock(store_db *db, lode_error *err);
void store_build_unlock(store_db *db);

/* ---- Records: writing (inputs were checked by the caller; metadata is compact JSON or absent) ---- */

typedef struct store_change {
  lode_str id;
  bool set_document, set_metadata;   /* updates: which parts to change; inserts: all */
  lode_str document, metadata;       /* data NULL: none */
  const float *vector;               /* NULL: none (insert), unchanged (update) */
  uint32_t dim;
  int64_t dead_rid;                  /* inserts: the dead record that still has the name; 0: none */
} store_change;

/* In the order given; a thousand or so at a time are best. */
lode_status store_rec_insert(store_tx *tx, store_coll *coll, const store_change *changes, size_t n, lode_error *err);
/* `old` is the record as read in this tx; its strings may be the store's own. */
lode_status store_rec_update(store_tx *tx, store_coll *coll, const store_rec *old, const store_change *change,
                             lode_error *err);
/* The records with these ids, which must be sorted; those that do not exist are skipped. No record is read. */
lode_status store_rec_delete(store_tx *tx, store_coll *coll, const lode_str *ids, size_t n, size_t *deleted,
                             lode_error *err);
/* Writes back the collection's changed counts and dimension. Call once before commit for each coll that was changed. */
lode_status store_coll_save(store_tx *tx, const store_coll *coll, lode_error *err);

/* ---- Derived: proposals from the indexes, for records up to their cursors; dead ones may be among them ---- */

/* The range or set that a probe describes: calls fn for each (value, rid) in value order. limit: stops after that many
 * (0: none) and says so in *cut. */
typedef struct store_term_range {
  lode_str key;
  const meta_value *low, *high;   /* NULL: open; low == high for an exact value */
  bool low_open, high_open;
} store_term_range;
typedef lode_status store_term_fn(void *ctx, const meta_value *value, bool exact, int64_t rid, lode_error *err);
/* `exact` is false when the value is a cut prefix of a long string: look at the record. */
lode_status store_term_each(store_tx *tx, int64_t cid, const store_term_range *range, size_t limit, bool *cut,
                            store_term_fn *fn, void *ctx, lode_error *err);

/* Text index: for each record that holds at least one of the words, how often it holds each (saturates at 65,535).
 * words: as token_split gives them, distinct, at most STORE_TEXT_MAX_WORDS. */
#define STORE_TEXT_MAX_WORDS 64
typedef lode_status store_text_fn(void *ctx, int64_t rid, const uint16_t *counts, lode_error *err);
/* Records behind after_rid, in order. */
lode_status store_text_each(store_tx *tx, int64_t cid, int64_t after_rid, const lode_str *words, size_t n_words,
                            store_text_fn *fn, void *ctx, lode_error *err);

/* About how long documents are, a block of keys at a time: all zero at first, rids best in rising order. */
enum { STORE_DOC_SIZES_BLOCK = 2048 };
typedef struct store_doc_sizes {
  int64_t block;
  bool loaded, changed;
  unsigned char codes[STORE_DOC_SIZES_BLOCK];
} store_doc_sizes;
/* *least: no more than the bytes of the document of a record that the text index holds; 0 where nothing is known. */
lode_status store_doc_sizes_get(store_tx *tx, store_doc_sizes *sizes, int64_t rid, uint64_t *least, lode_error *err);

typedef lode_status store_counter_fn(void *ctx, const meta_value *value, uint64_t count, lode_error *err);
/* LODE_NOT_FOUND when the key is not declared as a counter. */
lode_status store_counter_each(store_tx *tx, int64_t cid, lode_str key, store_counter_fn *fn, void *ctx, lode_error *err);

/* The declared keys, as strings, with how many values each has. */
lode_status store_counter_keys(store_tx *tx, int64_t cid, store_counter_fn *fn, void *ctx, lode_error *err);

/* ---- Background work, in steps of a few milliseconds, each its own transaction ---- */

/* Does one step; *more says that more may be left. LODE_BUSY when another thread or process is at work, or holds the write
 * lock: then try again. */
lode_status store_maintain_step(store_db *db, bool *more, lode_error *err);
/* The same, but nothing is brought up to date: what was deleted is erased, and pages are given back. */
lode_status store_maintain_erase(store_db *db, bool *more, lode_error *err);
/* What is left, in rows. */
lode_status store_maintain_left(store_db *db, uint64_t *left, lode_error *err);
/* Is it enough for a whole step of a bulk load? */
lode_status store_maintain_fills_step(store_db *db, bool *much, lode_error *err);

/* ---- Whole-store operations ---- */

/* The random number that it was made with. */
lode_status store_db_id(store_db *db, uint64_t *id, lode_error *err);
lode_status store_db_stats(store_db *db, lode_stats *stats, lode_error *err);
/* Packs what there is; do the background work first. */
lode_status store_db_compact(store_db *db, lode_progress progress, lode_error *err);
lode_status store_db_verify(store_db *db, lode_damage_fn *found, void *ctx, lode_progress progress, lode_error *err);
lode_status store_db_backup(store_db *db, const char *file, lode_progress progress, lode_error *err);
lode_status store_db_restore(const char *file, const char *folder, lode_progress progress, lode_error *err);
lode_status store_db_salvage(const char *from, const char *to, lode_damage_fn *lost, void *ctx, lode_progress progress,
                             lode_salvage_report *report, lode_error *err);

#endif
