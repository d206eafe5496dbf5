/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - private header of src/lib/engine, the embedded engine: its handles and what its files share.
 *
 * Files
 *   engine_store.c       open, close, fork, statistics
 *   engine_collection.c  collections
 *   engine_write.c       add, upsert, update, delete, transactions
 *   engine_read.c        get, count
 *   engine_query.c       queries by vector, by text, hybrid
 *   engine_facet.c       facets and counters
 *   engine_text.c        BM25
 *   engine_result.c      records as rows of a result
 *   engine_export.c      records as lines of JSON
 *   engine_maintain.c    optimize, compact, verify, salvage, backup, restore
 *   engine_table.c       the table of all that (iface/iface.h)
 *   reader.c             short read transactions
 *   select.c             a selection as live records
 *   nearest.c            the k nearest vectors, wherever they are stored
 *   vector_*.c           vectors in memory: snapshots and their cache
 *   segment_files.c      open files of the vector index
 *   segment_search.c     searching them; the filter cache
 *   segment_plan.c, segment_build.c, segment_sweep.c  building, merging and quarantining them
 *   index_verify.c       checks the vector index against itself and the truth file
 *   background.c         the background threads
 *   parallel.c           threads for one loop
 *
 * Lock order: a cache entry's `update`, then the store's `lock`, which is never held during I/O. A thread that waits
 * for `update` must have no transaction open: a waiting reader would block a commit, and the holder of `update` may
 * itself be waiting for that commit.
 */
#ifndef LODE_ENGINE_ENGINE_H
#define LODE_ENGINE_ENGINE_H

#include "iface/iface_check.h"
#include "iface/iface.h"
#include "base/base.h"
#include "index/index_search.h"
#include "query/filter.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

IFACE_OPS(ENGINE_DECLARE)
lode_status engine_open(const char *folder, const lode_open_options *options, lode_store **store, lode_error *err);
void engine_close(lode_store *store);
void engine_collection_close(lode_collection *collection);
void engine_rollback(lode_txn *txn);
void engine_loaded(lode_store *store, uint64_t records, lode_progress progress);

/* ---- Store ---- */

#define ENGINE_CACHE_BUCKETS 64
typedef struct engine_cache_entry engine_cache_entry; /* the vectors of one collection: vector_cache.c */

typedef struct engine_background {
  pthread_t thread;
  pthread_cond_t wake;
  bool running; /* a thread was started and not joined */
  bool stop;
  bool woken; /* something was written since the thread last checked */
} engine_background;

/* Progress of this handle's builder, for statistics. */
typedef struct engine_build_progress {
  _Atomic uint64_t done, total; /* rows; total 0: idle */
  _Atomic uint64_t built;       /* segments built by this handle */
} engine_build_progress;

enum { ENGINE_MAX_SUSPECTS = 64, ENGINE_SCRATCH_SLOTS = 8 };

struct lode_store {
  const iface_ops *engine;          /* iface_store_head */
  const lode_open_options *options; /* with defaults filled in */
  store_db *db;
  _Atomic unsigned generation; /* of the process that owns the lock, caches and threads */
  pthread_mutex_t lock;        /* guards everything below except the atomics */
  engine_cache_entry *cached[ENGINE_CACHE_BUCKETS];
  uint64_t cache_tick;
  _Atomic size_t cache_bytes;
  atomic_uint trim_tick;
  atomic_uint optimizers;       /* running lode_optimize() calls; the background threads pause meanwhile */
  atomic_uint writers;          /* calls of this handle that are waiting to write */
  _Atomic uint64_t written_ns;  /* time of this handle's last commit */
  engine_background background; /* maintenance of the store */
  engine_background builder;    /* builds segments */
  engine_build_progress progress;
  /* Ids of segments that cannot be used: until the builder has checked them, the truth file is read instead. */
  uint64_t suspects[ENGINE_MAX_SUSPECTS];
  /* When to use a suspect again: set after a failed read, which proves no damage. 0: never. */
  uint64_t suspect_expires_ns[ENGINE_MAX_SUSPECTS];
  atomic_size_t n_suspects;
  index_search_scratch *scratch[ENGINE_SCRATCH_SLOTS]; /* scratch memory of searches, reused */
  _Atomic uint64_t damaged_segments;                   /* seen by this handle */
};

struct lode_collection {
  const iface_ops *engine; /* iface_collection_head */
  lode_store *store;
  int64_t cid;
  uint64_t uid;
  iface_vector_spec spec; /* what this handle was opened with */
};
/* The model and dimension of a collection's vectors. */
static inline iface_vector_spec engine_coll_vector_spec(const store_coll *c) {
  return (iface_vector_spec){c->embedder, c->embedder_dim, c->dim};
}

/* Every public call passes through here. In a forked child it reinitialises the locks and drops the parent's
 * threads. */
void engine_enter(lode_store *store);
/* Begins the write transaction of a call; background work yields to it. */
lode_status engine_begin_write(lode_store *store, store_tx **tx, lode_error *err);
/* Commits and wakes the background threads. */
lode_status engine_commit_write(lode_store *store, store_tx *tx, lode_error *err);

void engine_background_start(lode_store *store);
void engine_background_stop(lode_store *store);
void engine_background_wake(lode_store *store);

/* ---- Reading in short transactions: reader.c has the rules ---- */

/* The state after one commit. Two transactions of the same moment see the same records. */
typedef struct engine_moment {
  unsigned epoch;                   /* which truth file */
  uint64_t cursor;                  /* of the newest commit */
  int64_t text_cursor, term_cursor; /* may advance within a moment; a rebuilt index is another moment */
} engine_moment;

/* A renewable read transaction on one collection. A borrowed one (a write's) or a pinned one is never renewed. */
typedef struct engine_reader {
  lode_collection *handle;
  store_tx *tx;    /* NULL between transactions */
  store_coll coll; /* as this transaction sees it */
  mem_arena arena; /* its strings */
  bool borrowed, pinned;
  uint64_t count;         /* transactions so far */
  unsigned epoch;         /* of all of them */
  engine_moment moment;   /* what all transactions since engine_reader_run() must see */
  uint64_t moments;       /* different ones seen since then: more than 1 only with allow_later */
  unsigned allow_later;   /* nesting of engine_reader_allow_later(); > 0: later moments are accepted */
  bool taken;             /* part of the result exists: it is bound to the moment */
  bool overtaken;         /* another moment was seen: the result is void */
  bool gave_way;          /* the pinned attempt took too long: LODE_BUSY */
  lode_progress progress; /* called before each transaction; false: LODE_CANCELLED */
} engine_reader;

/* The collection of a handle in a transaction: LODE_NOT_FOUND when it was dropped. */
lode_status engine_load_coll(lode_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll,
                             lode_error *err);
void engine_reader_init(engine_reader *reader, lode_collection *handle);
void engine_reader_borrow(engine_reader *reader, lode_collection *handle, store_tx *tx, const store_coll *coll);
/* Does nothing when a transaction is open. */
LODE_MUST lode_status engine_reader_begin(engine_reader *reader, lode_error *err);
void engine_reader_pause(engine_reader *reader); /* ends the transaction, unless borrowed or pinned */
/* Is it time to renew? Of a pinned reader: have writers waited too long, so that renewing fails? */
bool engine_reader_is_old(engine_reader *reader);
/* Ends an old transaction. A pinned reader that blocks a writer fails instead: LODE_BUSY, and `gave_way` is set. */
LODE_MUST lode_status engine_reader_yield_if_old(engine_reader *reader, lode_error *err);
/* Fails, like engine_reader_begin(), when the new transaction sees another moment; engine_reader_run() then retries. */
LODE_MUST lode_status engine_reader_renew_if_old(engine_reader *reader, lode_error *err);
void engine_reader_release(engine_reader *reader);

/* Makes a result of one moment: calls `make`, which starts from scratch each time, until no commit has come in between.
 * The last attempt keeps its transaction to the end. */
typedef lode_status engine_reader_fn(void *ctx, lode_error *err);
LODE_MUST lode_status engine_reader_run(engine_reader *reader, engine_reader_fn *make, void *ctx, lode_error *err);

/* From here on, transactions may see later moments. For scans that are provably correct under concurrent commits. */
engine_moment engine_reader_allow_later(engine_reader *reader);
/* Ends that when parts of the result were made before: fails like a renewal if the moment is not `before`. */
LODE_MUST lode_status engine_reader_require_same(engine_reader *reader, const engine_moment *before, lode_error *err);
/* Ends that when no part of the result was made before: the result is of the current transaction's moment. */
LODE_MUST lode_status engine_reader_adopt_current(engine_reader *reader, lode_error *err);
/* Have all transactions since engine_reader_run() (or the first) seen the same records? */
static inline bool engine_reader_is_consistent(const engine_reader *reader) { return reader->moments <= 1; }
bool engine_moment_is_same(const engine_moment *a, const engine_moment *now);

/* A record's document, absent if it has none. Valid until the next call. */
lode_status engine_reader_document(engine_reader *reader, const store_rec *rec, lode_str *document, lode_error *err);

/* ---- Selections ---- */

typedef struct engine_select {
  engine_reader *reader;
  lode_selection what;
  filter_expr *filter;
  filter_eval *eval;
  bool has_filter; /* the filter does not match everything */
  bool pending_only;
  bool will_reuse; /* the list will be cached: a long one is worth making */
  bool as_asked;   /* ids: keep their order and duplicates */
  bool planned;
  int phase;
  int64_t *list; /* rids found by id or proposed by an index; 0: no such id */
  size_t n, cap, at;
  int64_t last;                  /* scans: everything up to here was visited */
  uint64_t scan_tx;              /* the reader's transaction that the scan belongs to; 0: none */
  bool scan_whole;               /* the scan began with the first record, and all its transactions saw the same ones */
  uint64_t scan_cursor, scanned; /* the scan's commit; records visited */
} engine_select;

/* The selection's memory must outlive `select`. */
lode_status engine_select_init(engine_select *select, engine_reader *reader, const lode_selection *what,
                               lode_error *err);
void engine_select_release(engine_select *select);
/* Starts after this rid (or, with as_asked, after this many ids). */
void engine_select_start_after(engine_select *select, int64_t after);
/* The next live record that matches, in rid order. Its strings are valid until the next call. */
lode_status engine_select_next(engine_select *select, store_rec *rec, bool *more, lode_error *err);
/* Decides how to find the records. *cheap is false if that takes a full scan. */
lode_status engine_select_plan(engine_select *select, bool *cheap, lode_error *err);
/* Does a record, as read in the reader's transaction, match the filter? Ids are not checked. */
lode_status engine_select_eval(engine_select *select, const store_rec *rec, bool *match, lode_error *err);

typedef struct engine_rids {
  int64_t *v;
  size_t n, cap;
} engine_rids;
/* All matching rids, sorted, without duplicates. */
lode_status engine_select_all(engine_select *select, engine_rids *rids, lode_error *err);
/* The same, but if an index proposes almost only matches (*proposed), its list is taken as it is: some may not match or
 * be dead. */
lode_status engine_select_propose(engine_select *select, engine_rids *rids, bool *proposed, lode_error *err);
/* Restarts the selection from the beginning. */
void engine_select_rewind(engine_select *select);
bool engine_rids_add(engine_rids *rids, int64_t rid);
void engine_rids_sort(engine_rids *rids); /* and removes duplicates */
/* Is it among them? *hint makes lookups in ascending order fast. */
bool engine_rids_contain(const engine_rids *rids, int64_t rid, size_t *hint);

/* ---- Results ---- */

/* Appends a copy of the record's parts. */
lode_status engine_result_add(lode_result *result, engine_reader *reader, const store_rec *rec, unsigned include,
                              lode_row **row, lode_error *err);

/* ---- Vectors in memory ---- */

typedef struct engine_chunk engine_chunk;
struct engine_chunk {
  atomic_uint refs;
  lode_store *store;
  size_t bytes;
  uint32_t cap;
  float *rows, *norms;
  int64_t *vid, *rid;
};
typedef struct engine_chunk_part {
  engine_chunk *chunk;
  uint32_t from, n; /* rows [from, n); earlier ones are in a segment */
} engine_chunk_part;

/* ---- Segments ---- */

/* An open segment file, shared by snapshots. */
typedef struct engine_segment {
  atomic_uint refs;
  lode_store *store;
  store_manifest_row row;
  index_segment *segment;
  int fd;
} engine_segment;
/* Opens the file of a manifest row, in the transaction that read the row: a published file exists as long as its row
 * does. *seg is NULL, with LODE_OK, if it is missing, damaged or suspect: its vectors are then read from the truth
 * file, and the builder is woken. */
lode_status engine_segment_open(lode_store *store, const store_manifest_row *row, engine_segment **seg,
                                lode_error *err);
/* The same, but reports what is wrong. */
lode_status engine_segment_open_checked(lode_store *store, const store_manifest_row *row, engine_segment **seg,
                                        lode_error *err);
engine_segment *engine_segment_ref(engine_segment *seg);
void engine_segment_release(engine_segment *seg);
#define ENGINE_SEGMENT_NAME_MAX 64
/* relative to the store's folder */
void engine_segment_name(char name[ENGINE_SEGMENT_NAME_MAX], uint64_t id, const char *ending);
char *engine_segment_path(const lode_store *store, uint64_t id,
                          const char *ending); /* for messages; freed by the caller */
/* Marks a segment as unusable until the builder has checked it. `st`: after LODE_IO, a failure of the medium or the
 * system, the file is tried again some seconds later; anything else is damage, and this handle does not use it
 * again. */
void engine_segment_suspect(lode_store *store, uint64_t id, lode_status st, const char *why);
/* The same for a missing file, which is no damage. */
void engine_segment_missing(lode_store *store, uint64_t id);
bool engine_segment_is_missing(const lode_store *store, uint64_t id);
bool engine_segment_is_suspect(lode_store *store, uint64_t id);
void engine_segment_clear_suspect(lode_store *store, uint64_t id);

/* A bitmap of a segment's slots; shared by snapshots and immutable once it is. */
typedef struct engine_slot_set {
  atomic_uint refs;
  size_t n; /* number of bits set */
  size_t words;
  uint64_t bits[];
} engine_slot_set;
engine_slot_set *engine_slot_set_new(uint32_t rows, bool set);
void engine_slot_set_release(engine_slot_set *slots);

/* A segment as a snapshot sees it. */
typedef struct engine_segment_view {
  engine_segment *seg;
  engine_slot_set *live; /* NULL: all are live */
  int64_t after, last;   /* it covers after < vid <= last */
} engine_segment_view;

/* An entry of the filter cache: a filter and the slots that match it (segment_search.c). */
typedef struct engine_filter_entry engine_filter_entry;
typedef struct engine_key_set { /* sorted; shared by snapshots */
  atomic_uint refs;
  size_t n;
  int64_t v[];
} engine_key_set;

/* All vectors of a collection at one moment: segments, and the chunk parts without rows whose rid or vid is in the dead
 * lists. Up to `unknown` further rows are dead. Immutable once published. Rows are in vid order. */
typedef struct engine_snapshot {
  atomic_uint refs;
  uint32_t dim, stride;
  engine_chunk_part *parts;
  size_t n_parts, cap_parts;
  size_t rows;
  engine_key_set *dead_rids, *dead_vids;
  int64_t last_vid, last_gid;
  bool missed;               /* while it is being made: tombstones were erased before they were seen */
  size_t unknown;            /* this many dead rows are not in the lists, because of that; few */
  uint64_t cursor;           /* of the moment; 0 while it is being made */
  unsigned epoch;            /* of the truth file */
  engine_segment_view *segs; /* in vid order, not overlapping; the parts hold the rest */
  size_t n_segs;
  _Atomic uint64_t spent; /* records evaluated against filters that had no list */
  bool streams;           /* the parts exceed the budget: what no segment holds is read from the store */
  pthread_mutex_t filter_cache_lock;
  engine_filter_entry *filter_cache; /* guarded by filter_cache_lock */
} engine_snapshot;

/* LODE_CORRUPT: fewer vectors (or, in one moment, another number) were found than the collection's count says. */
lode_status engine_lost_vectors(const store_coll *coll, uint64_t met, lode_error *err);
/* The next range (*from, *to] after `at` that no segment of the snapshot holds; false when there is none. */
bool engine_snapshot_next_gap(const engine_snapshot *vectors, int64_t at, int64_t *from, int64_t *to);

/* The vectors as the reader's transaction sees them; that may be a new transaction on return. *vectors is NULL if they
 * do not fit in the budget and no segment holds any, or if a pinned reader would have to wait for them. */
lode_status engine_snapshot_get(engine_reader *reader, engine_snapshot **vectors, lode_error *err);
void engine_snapshot_release(engine_snapshot *vectors);
/* The same if a snapshot is cached and has segments; else NULL. */
lode_status engine_snapshot_peek(engine_reader *reader, engine_snapshot **vectors, lode_error *err);
/* Loads them as far as the budget allows; failures are left for queries to report. */
void engine_snapshot_preload(lode_collection *handle);
/* Evicts segment pages if they take more than their share of the budget. */
void engine_snapshot_trim(lode_store *store, engine_snapshot *used);
/* Adds to the cost of evaluating filters without a list, and returns the sum. */
uint64_t engine_snapshot_charge(engine_snapshot *vectors, uint64_t cost);
/* Is one of its segments a suspect? */
bool engine_snapshot_is_suspect(const engine_snapshot *vectors);
bool engine_snapshot_is_live(const engine_snapshot *vectors, int64_t rid, int64_t vid);
bool engine_snapshot_is_cached(const lode_collection *handle); /* an estimate, for planning */
void engine_cache_forget(lode_store *store, int64_t cid);
void engine_cache_forget_all(lode_store *store);
/* In a forked child. sane: no other thread of the parent was changing the list of cache entries. */
void engine_cache_after_fork(lode_store *store, bool sane);

/* ---- Nearest ---- */

/* The best `want` candidates of one query, and all others at the distance of the last. */
typedef struct engine_best {
  kernel_topk top;
  size_t cap;
  kernel_neighbour *ties;
  size_t n_ties, cap_ties;
  bool full; /* candidates were left out; all are farther than those held */
} engine_best;

typedef struct engine_nearest {
  engine_reader *reader;
  lode_metric metric;
  uint32_t dim;
  const float *queries; /* n x dim */
  size_t n;
  float *norms;            /* squared norm of each query */
  engine_best *best;       /* of each query; key is rid, aux is vid */
  const engine_rids *only; /* NULL: all records */
  bool exact;              /* do not use quantised vectors and graphs */
  bool from_truth;         /* read every vector from the truth file */
  uint32_t effort;         /* of graph walks; 0: the default */
  double target_recall;    /* 0: the default */
  size_t k;                /* how many are wanted in the end; segments are asked for that many */
  const char *filter;      /* NULL: none; else the key of `only` in the filter cache */
  size_t filter_len;
  bool by_record; /* out: found record by record; if a record's vector changed since, search again */
} engine_nearest;
lode_status engine_nearest_init(engine_nearest *near, engine_reader *reader, const float *queries, size_t n,
                                size_t want, const engine_rids *only, lode_error *err);
/* Fills `best`. On return every live vector of the reader's current transaction has been considered. Without `only`,
 * and if the reader has taken nothing yet, this may be a later moment than before. Candidates may have died since:
 * check each again. *again: repeat the search. */
lode_status engine_nearest_run(engine_nearest *near, bool *again, lode_error *err);
void engine_nearest_release(engine_nearest *near);

/* Longer scans run without a transaction. Tests lower it. */
extern uint64_t engine_scan_in_tx_bytes;

/* Adds a candidate; false when out of memory. */
bool engine_best_push(engine_best *best, float distance, int64_t rid, int64_t vid);
/* Searches the snapshot's segments that have a graph. *damaged: one of them cannot be trusted; search again. */
lode_status engine_segments_search(engine_nearest *near, engine_snapshot *vectors, bool *damaged, lode_error *err);
/* The cached list of records that match a filter; NULL: none. */
const engine_rids *engine_filter_cache_find(engine_snapshot *vectors, const char *filter, size_t len);
/* Caches the list. The snapshot takes it over: *rids is empty then. Returns the cached list, or NULL if it was not
 * kept. */
const engine_rids *engine_filter_cache_add(const lode_store *store, engine_snapshot *vectors, const char *filter,
                                           size_t len, engine_rids *rids);
/* What is known about a filter whose matches are not listed. */
typedef struct engine_filter_stats {
  uint64_t evaluated, matched; /* records near queries that were evaluated, and those that matched */
  bool scans;                  /* listing takes a full scan */
} engine_filter_stats;
engine_filter_stats engine_filter_cache_stats(engine_snapshot *vectors, const char *filter, size_t len);
/* Adds to these statistics. */
void engine_filter_cache_note(const lode_store *store, engine_snapshot *vectors, const char *filter, size_t len,
                              engine_filter_stats more);
void engine_filter_cache_free(engine_filter_entry *entries);
/* Frees the cached scratch memory of searches. */
void engine_scratch_free(lode_store *store);

/* ---- Building ---- */

/* Thresholds; tests lower them. */
typedef struct engine_build_limits {
  uint32_t tail_rows;    /* this many vectors outside of segments become a segment */
  uint32_t graph_rows;   /* segments of at least this many rows have a graph */
  uint32_t dead_percent; /* segments with at least this share of dead rows are rebuilt */
  uint32_t max_rows;     /* of a segment; 0: as the memory budget allows */
  uint32_t threads;      /* 0: one for each processor, at most 8 */
} engine_build_limits;
extern engine_build_limits engine_limits;

/* What to build. If stop (may be NULL) returns true, the build ends with LODE_CANCELLED. */
typedef struct engine_build_request {
  bool (*stop)(void *ctx);
  void *stop_ctx;
  lode_progress progress;
  bool thorough;   /* check all files */
  bool unreadable; /* with thorough: also rebuild what cannot be read */
  bool gentle;     /* use half of the threads */
  bool flat;       /* no graphs: a bulk load is running and would replace them */
  bool only_dead;  /* only rewrite segments that hold dead vectors, keeping their kind */
} engine_build_request;
/* Builds until nothing is left to do; waits while a thread of this handle builds. */
lode_status engine_build_all(lode_store *store, const engine_build_request *request, lode_error *err);
/* Builds at most one segment; *more: there may be more to do. LODE_BUSY when another thread or process builds. */
lode_status engine_build_step(lode_store *store, const engine_build_request *request, bool *more, lode_error *err);
/* Marks segments whose files were removed as suspect. Whoever has them open keeps using them until they are rebuilt. */
void engine_sweep_missing(lode_store *store);
/* The segments of a collection. */
typedef struct engine_index_counts {
  uint64_t segments, rows, dead, bytes;
  uint64_t making; /* segments being built */
} engine_index_counts;
lode_status engine_index_count(store_tx *tx, int64_t cid, engine_index_counts *counts, lode_error *err);
/* Verifies every file, its graph and its recall. */
lode_status engine_index_verify(lode_store *store, lode_damage_fn *found, void *ctx, lode_progress progress,
                                uint64_t *n_found, lode_error *err);

/* Runs loops on *n threads; 0: as many as there are processors. Sets *n. */
index_parallel engine_parallel(unsigned *n);

/* ---- Query ---- */

typedef struct engine_hit {
  int64_t rid, vid;
  lode_str id;
  double distance, score;
  store_rec rec; /* as read in the reader's transaction `seen`, with what the request includes */
  uint64_t seen; /* 0: rec is not set */
} engine_hit;
typedef struct engine_hits {
  engine_hit *v;
  size_t n, cap;
} engine_hits;
/* By score, largest first, or by distance, smallest first; ties by id. */
void engine_hits_sort(engine_hits *hits, bool larger_first);

typedef struct engine_text_query {
  lode_str text;
  size_t want;
  engine_select *select;   /* the filter; NULL: everything matches */
  const engine_rids *only; /* NULL: all records */
  uint64_t max_tail;       /* records after the index's cursor to scan; 0: all */
  mem_arena *arena;        /* for ids */
  bool skip_common;        /* words in most documents weigh 0; records with no others score 0 */
} engine_text_query;
/* The best `want` by BM25, best first. */
lode_status engine_text_search(engine_reader *reader, const engine_text_query *query, engine_hits *hits,
                               lode_error *err);

#endif
