/* store.h - the truth: what src/core may ask of it. The only folder that knows SQLite.
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
 * Threads: a lode__db is shared; it keeps a pool of connections. A lode__tx is one connection in one transaction and
 * belongs to one thread. Everything returned as lode_str from a row is valid until the next step of that scan or the end
 * of the tx, whichever comes first, unless copied.
 */
#ifndef LODE_STORE_H
#define LODE_STORE_H

#include "base/json.h"
#include "base/meta.h"
#include "base/store_files.h"

#include <stdatomic.h>

#define LODE__FORMAT 2u
#define LODE__KEY_BITS 40
#define LODE__KEY_MAX ((INT64_C(1) << LODE__KEY_BITS) - 1)

typedef struct lode__db lode__db;
typedef struct lode__tx lode__tx;

/* ---- Store ---- */

/* `options` are as given by the user; zero fields are replaced by their defaults here. */
lode_status lode__db_open(const char *folder, const lode_open_options *options, lode__db **db, lode_error *err);
void lode__db_close(lode__db *db);
/* In a forked child, before anything else: threads that are not there any more may have held the locks. */
void lode__db_after_fork(lode__db *db);
const lode_open_options *lode__db_options(const lode__db *db); /* with the defaults filled in */
const char *lode__db_folder(const lode__db *db);
void lode__db_log(lode__db *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Transactions ---- */

typedef enum lode__tx_kind { LODE__READ, LODE__WRITE } lode__tx_kind;
/* A read transaction sees one moment; keep it under 50 ms (see lode__tx_is_old), because it holds up commits. */
lode_status lode__tx_begin(lode__db *db, lode__tx_kind kind, lode__tx **tx, lode_error *err);
lode_status lode__tx_commit(lode__tx *tx, lode_error *err); /* frees tx either way; durable when OK */
void lode__tx_rollback(lode__tx *tx);                        /* also ends a read; NULL is allowed */
bool lode__tx_is_old(lode__tx *tx);                          /* a read that lasted 50 ms: end it and go on with a new one */
/* A read that was kept for half of the time that a writer waits for a lock, and somebody waits: it must end now. */
bool lode__tx_outstays(const lode__tx *tx);
#ifdef LODE_CHECKED
/* Tests: what the clock and the locks decide otherwise, so that every interleaving can be brought about in one
 * thread, from a seed. `gap` is called before each read transaction begins, when the thread has none open: a test
 * commits there. NULL members decide nothing. */
typedef struct lode__tx_gaps {
  bool (*is_old)(void);    /* is this read transaction old? */
  bool (*is_wanted)(void); /* does anybody wait for a lock? */
  bool (*outstays)(void);  /* lode__tx_outstays() */
  void (*gap)(void);
} lode__tx_gaps;
extern const lode__tx_gaps *_Atomic lode__tx_gaps_hook;
#endif
lode__db *lode__tx_db(lode__tx *tx);
/* Position of the newest commit that this tx sees. */
uint64_t lode__tx_cursor(lode__tx *tx);
/* Differs after the store was replaced by another (a backup, say): what is known of the old one says nothing of the new. */
unsigned lode__tx_epoch(const lode__tx *tx);
/* Inside a write: undo what follows if it fails. */
lode_status lode__tx_savepoint(lode__tx *tx, lode_error *err);
void lode__tx_savepoint_end(lode__tx *tx, bool keep);

/* ---- Collections ---- */

typedef struct lode__coll {
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
} lode__coll;

/* LODE_NOT_FOUND names the collection. Strings are copied to the arena. */
lode_status lode__coll_find(lode__tx *tx, lode_str name, mem_arena *arena, lode__coll *coll, lode_error *err);
lode_status lode__coll_load(lode__tx *tx, int64_t cid, mem_arena *arena, lode__coll *coll, lode_error *err);
lode_status lode__coll_create(lode__tx *tx, const lode__coll *wanted, const lode_str *counters, size_t n_counters,
                              mem_arena *arena, lode__coll *coll, lode_error *err);
typedef lode_status lode__coll_fn(void *ctx, const lode__coll *coll, lode_error *err);
lode_status lode__coll_each(lode__tx *tx, lode__coll_fn *fn, void *ctx, lode_error *err); /* by name */
lode_status lode__coll_rename(lode__tx *tx, int64_t cid, lode_str new_name, lode_error *err);
lode_status lode__coll_set_metadata(lode__tx *tx, int64_t cid, lode_str metadata, lode_error *err);
lode_status lode__coll_set_embedder(lode__tx *tx, int64_t cid, lode_str embedder, uint32_t dim, lode_error *err);
lode_status lode__coll_drop(lode__tx *tx, int64_t cid, lode_error *err);

/* ---- Records: reading ---- */

typedef struct lode__rec {
  int64_t rid;
  int64_t vid;        /* 0: pending */
  uint64_t seq;       /* cursor of the last change */
  bool has_document;
  uint32_t doc_crc;   /* of the document, if there is one */
  lode_str id, metadata; /* metadata.data NULL: none */
} lode__rec;

/* rid of the living record with that id: LODE_OK and 0 when there is none. Ids asked in sorted order are fastest. */
lode_status lode__rec_find(lode__tx *tx, int64_t cid, lode_str id, int64_t *rid, lode_error *err);
/* The same of many, for a writer: in the order of ids. */
typedef struct lode__name {
  int64_t rid;   /* 0: no such name */
  int64_t len;   /* bytes of its document + 1, 0 for none */
  bool dead;     /* the record was deleted and not erased yet: the name is free again */
} lode__name;
lode_status lode__names_find(lode__tx *tx, int64_t cid, const lode_str *ids, size_t n, lode__name *names, lode_error *err);
/* LODE_OK and *found = false when there is no such record or it is dead. The checksum is verified. */
lode_status lode__rec_read(lode__tx *tx, int64_t rid, lode__rec *rec, bool *found, lode_error *err);
/* The same of a record that its name has just led to: it is alive, and the graves are not asked again. */
lode_status lode__rec_read_named(lode__tx *tx, int64_t rid, lode__rec *rec, bool *found, lode_error *err);
/* Document of a record that has one: verified. Valid until the next call. */
lode_status lode__rec_document(lode__tx *tx, int64_t rid, lode_str *document, lode_error *err);
/* Vector with that key: verified; copies dim floats. */
lode_status lode__rec_vector(lode__tx *tx, int64_t vid, float *out, uint32_t dim, lode_error *err);

/* Its length alone. */
lode_status lode__rec_document_bytes(lode__tx *tx, int64_t rid, uint64_t *bytes, lode_error *err);
/* Is a record that an index proposed, or that was read before, still alive? */
lode_status lode__rec_alive(lode__tx *tx, int64_t rid, bool *alive, lode_error *err);

/* Scans of living records with rid > after, in order. One scan of each kind per tx. */
lode_status lode__rec_scan(lode__tx *tx, int64_t cid, int64_t after_rid, lode_error *err);
lode_status lode__rec_scan_pending(lode__tx *tx, int64_t cid, int64_t after_rid, lode_error *err);
lode_status lode__rec_next(lode__tx *tx, lode__rec *rec, bool *more, lode_error *err);
/* Living vectors with vid > after, in order. `data` (dim floats, may be unaligned) is valid until the next step.
 * Checked by page checksum; verify_crc also checks the row's own. */
lode_status lode__vec_scan(lode__tx *tx, int64_t cid, int64_t after_vid, lode_error *err);
lode_status lode__vec_next(lode__tx *tx, int64_t *vid, int64_t *rid, const void **data, uint32_t *dim, bool *more,
                           lode_error *err);

/* Graves of a collection with gid > after, in order: what died since a cache was made. vid != 0 only: that vector was
 * replaced; rid != 0: the record died, and its vector with it (vid is then 0). Erasing graves raises the collection's
 * horizon: a cache older than that (made at a cursor < horizon) must be made anew. */
typedef lode_status lode__grave_fn(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err);
lode_status lode__grave_each(lode__tx *tx, int64_t cid, int64_t after_gid, lode__grave_fn *fn, void *ctx,
                             lode_error *err);
lode_status lode__grave_horizon(lode__tx *tx, int64_t cid, int64_t *gid, lode_error *err);

/* ---- Segments of the vector index: the manifest (segments.c) ---- */

typedef struct lode__seg_row {
  uint64_t id;          /* random, below 2^63; names the file and seeds its checksums */
  int64_t cid;
  int64_t after, last;  /* holds the vectors with after < vid <= last that lived when it was made */
  uint64_t bytes;       /* of the file; 0: it is being made */
  uint32_t table_crc, rows, kind;
  bool proven;          /* out: its checksum is right */
} lode__seg_row;
typedef lode_status lode__seg_fn(void *ctx, const lode__seg_row *row, lode_error *err);
/* Those of a collection in the order of vids, the ones being made too; cid 0: of all. */
lode_status lode__seg_each(lode__tx *tx, int64_t cid, lode__seg_fn *fn, void *ctx, lode_error *err);
lode_status lode__seg_put(lode__tx *tx, const lode__seg_row *row, lode_error *err); /* adds or replaces */
lode_status lode__seg_remove(lode__tx *tx, uint64_t id, lode_error *err);
/* Erased vectors of the range that segments may still hold. */
typedef lode_status lode__dead_fn(void *ctx, int64_t vid, int64_t rid, lode_error *err);
lode_status lode__dead_each(lode__tx *tx, int64_t after, int64_t last, lode__dead_fn *fn, void *ctx, lode_error *err);
lode_status lode__dead_count(lode__tx *tx, int64_t after, int64_t last, uint64_t *n, lode_error *err);
lode_status lode__dead_forget(lode__tx *tx, const int64_t *vids, size_t n, lode_error *err);
/* The record of a vector that was not erased yet; 0 when there is none. */
lode_status lode__vec_owner(lode__tx *tx, int64_t vid, int64_t *rid, lode_error *err);
/* Living vectors' keys with vid > after, in order: *more is false at the end. The same scan as lode__vec_scan. */
lode_status lode__vec_scan_keys(lode__tx *tx, int64_t cid, int64_t after_vid, lode_error *err);
lode_status lode__vec_next_key(lode__tx *tx, int64_t *vid, int64_t *rid, bool *more, lode_error *err);
int64_t lode__vec_first(int64_t cid);              /* less than every vid of the collection */
int64_t lode__vec_last(lode__tx *tx, int64_t cid); /* no less than every vid that the transaction sees */
/* LODE_BUSY when another thread or process builds. */
lode_status lode__build_claim(lode__db *db, lode_error *err);
void lode__build_release(lode__db *db);

/* ---- Records: writing (inputs were checked by the caller; metadata is compact JSON or absent) ---- */

typedef struct lode__change {
  lode_str id;
  bool set_document, set_metadata;   /* updates: which parts to change; inserts: all */
  lode_str document, metadata;       /* data NULL: none */
  const float *vector;               /* NULL: none (insert), unchanged (update) */
  uint32_t dim;
  int64_t dead_rid;                  /* inserts: the dead record that still has the name; 0: none */
} lode__change;

/* In the order given; a thousand or so at a time are best. */
lode_status lode__rec_insert(lode__tx *tx, lode__coll *coll, const lode__change *changes, size_t n, lode_error *err);
/* `old` is the record as read in this tx; its strings may be the store's own. */
lode_status lode__rec_update(lode__tx *tx, lode__coll *coll, const lode__rec *old, const lode__change *change,
                             lode_error *err);
/* The records with these ids, which must be sorted; those that do not exist are skipped. No record is read. */
lode_status lode__rec_delete(lode__tx *tx, lode__coll *coll, const lode_str *ids, size_t n, size_t *deleted,
                             lode_error *err);
/* Writes back the collection's changed counts and dimension. Call once before commit for each coll that was changed. */
lode_status lode__coll_save(lode__tx *tx, const lode__coll *coll, lode_error *err);

/* ---- Derived: proposals from the indexes, for records up to their cursors; dead ones may be among them ---- */

/* The range or set that a probe describes: calls fn for each (value, rid) in value order. limit: stops after that many
 * (0: none) and says so in *cut. */
typedef struct lode__term_range {
  lode_str key;
  const meta_value *low, *high;   /* NULL: open; low == high for an exact value */
  bool low_open, high_open;
} lode__term_range;
typedef lode_status lode__term_fn(void *ctx, const meta_value *value, bool exact, int64_t rid, lode_error *err);
/* `exact` is false when the value is a cut prefix of a long string: look at the record. */
lode_status lode__term_each(lode__tx *tx, int64_t cid, const lode__term_range *range, size_t limit, bool *cut,
                            lode__term_fn *fn, void *ctx, lode_error *err);

/* Text index: for each record that holds at least one of the words, how often it holds each (saturates at 65,535).
 * words: as token_split gives them, distinct, at most LODE__TEXT_WORDS. */
#define LODE__TEXT_WORDS 64
typedef lode_status lode__text_fn(void *ctx, int64_t rid, const uint16_t *counts, lode_error *err);
/* Records behind after_rid, in order. */
lode_status lode__text_each(lode__tx *tx, int64_t cid, int64_t after_rid, const lode_str *words, size_t n_words,
                            lode__text_fn *fn, void *ctx, lode_error *err);

/* About how long documents are, a block of keys at a time: all zero at first, rids best in rising order. */
enum { LODE__SIZES = 2048 };
typedef struct lode__sizes {
  int64_t block;
  bool loaded, changed;
  unsigned char codes[LODE__SIZES];
} lode__sizes;
/* *least: no more than the bytes of the document of a record that the text index holds; 0 where nothing is known. */
lode_status lode__sizes_get(lode__tx *tx, lode__sizes *sizes, int64_t rid, uint64_t *least, lode_error *err);

typedef lode_status lode__counter_fn(void *ctx, const meta_value *value, uint64_t count, lode_error *err);
/* LODE_NOT_FOUND when the key is not declared as a counter. */
lode_status lode__counter_each(lode__tx *tx, int64_t cid, lode_str key, lode__counter_fn *fn, void *ctx, lode_error *err);

/* The declared keys, as strings, with how many values each has. */
lode_status lode__counter_keys(lode__tx *tx, int64_t cid, lode__counter_fn *fn, void *ctx, lode_error *err);

/* ---- Background work, in steps of a few milliseconds, each its own transaction ---- */

/* Does one step; *more says that more may be left. LODE_BUSY when another thread or process is at work, or holds the write
 * lock: then try again. */
lode_status lode__work_step(lode__db *db, bool *more, lode_error *err);
/* The same, but nothing is brought up to date: what was deleted is erased, and pages are given back. */
lode_status lode__work_erase(lode__db *db, bool *more, lode_error *err);
/* What is left, in rows. */
lode_status lode__work_left(lode__db *db, uint64_t *left, lode_error *err);
/* Is it enough for a whole step of a bulk load? */
lode_status lode__work_is_much(lode__db *db, bool *much, lode_error *err);

/* ---- Whole-store operations ---- */

/* The random number that it was made with. */
lode_status lode__db_id(lode__db *db, uint64_t *id, lode_error *err);
lode_status lode__db_stats(lode__db *db, lode_stats *stats, lode_error *err);
/* Packs what there is; do the background work first. */
lode_status lode__db_compact(lode__db *db, lode_progress progress, lode_error *err);
lode_status lode__db_verify(lode__db *db, lode_damage_fn *found, void *ctx, lode_progress progress, lode_error *err);
lode_status lode__db_backup(lode__db *db, const char *file, lode_progress progress, lode_error *err);
lode_status lode__db_restore(const char *file, const char *folder, lode_progress progress, lode_error *err);
lode_status lode__db_salvage(const char *from, const char *to, lode_damage_fn *lost, void *ctx, lode_progress progress,
                             lode_salvage_report *report, lode_error *err);

#endif
