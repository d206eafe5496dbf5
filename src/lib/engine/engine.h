/* engine.h - inside src/lib/engine, the embedded engine: its handles and what its files share.
 *
 * Who does what
 *   engine_store.c       open, close, what follows a fork, statistics        background.c  the maintenance thread
 *   engine_collection.c  collections                                         engine_read.c        get, count
 *   engine_write.c       add, upsert, update, delete, transactions           engine_facet.c       facets and counters
 *   select.c      a selection becomes living records                  engine_text.c        BM25
 *   vectors*.c    vectors kept in memory                              nearest.c     the k nearest, from wherever
 *   engine_query.c       the three kinds of query
 *   engine_result.c      records as rows                                     engine_export.c      records as lines of JSON
 *   segment_files.c    the files of the vector index, opened               segment_search.c     the nearest in them; filters as bitmaps
 *   segment_plan.c, segment_build.c, segment_sweep.c  making, merging, setting aside them       parallel.c    threads for one loop
 *   index_verify.c  the index against itself and the truth
 *   engine_maintain.c    optimize, compact, verify, salvage, backup, restore     reader.c  short read transactions
 *   engine_table.c      the table of all that (iface/iface.h)
 *
 * Locks, in the order in which they are taken: a cache entry's `update`, then the store's `lock`, which is never held
 * over I/O. Whoever waits for `update` has no transaction open: a reader that waits would hold up a commit, and the
 * holder of `update` may itself be waiting for that commit to end.
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
typedef struct engine_cache_entry engine_cache_entry; /* one collection's vectors: vector_cache.c */

typedef struct engine_background {
  pthread_t thread;
  pthread_cond_t wake;
  bool running;  /* a thread was started and not joined */
  bool stop;
  bool woken;   /* something was written since the thread last looked */
} engine_background;

/* What the builder of this handle is doing, for those who ask. */
typedef struct engine_build_progress {
  _Atomic uint64_t done, total;  /* rows; total 0: nothing */
  _Atomic uint64_t built;        /* segments made by this handle */
} engine_build_progress;

enum { ENGINE_MAX_SUSPECTS = 64, ENGINE_SCRATCH_SLOTS = 8 };

struct lode_store {
  const iface_ops *engine;        /* iface_store_head */
  const lode_open_options *options;  /* with the defaults filled in */
  store_db *db;
  _Atomic unsigned generation;       /* of the process that lock, caches and thread belong to */
  pthread_mutex_t lock;              /* guards all below but the atomics */
  engine_cache_entry *cached[ENGINE_CACHE_BUCKETS];
  uint64_t cache_tick;
  _Atomic size_t cache_bytes;
  atomic_uint trim_tick;
  atomic_uint optimizers;            /* lode_optimize() is at work: the background leaves it to them */
  atomic_uint writers;               /* calls of this handle that wait to write */
  _Atomic uint64_t written_ns;       /* when it last committed something */
  engine_background background;       /* short steps of the store */
  engine_background builder;          /* segments */
  engine_build_progress progress;
  uint64_t suspects[ENGINE_MAX_SUSPECTS]; /* ids of segments that cannot be used: answered from the truth until looked at, */
  uint64_t suspect_expires_ns[ENGINE_MAX_SUSPECTS]; /* or, where reading failed, which proves nothing, until then; 0: no such time */
  atomic_size_t n_suspects;
  index_search_scratch *scratch[ENGINE_SCRATCH_SLOTS]; /* for searches, kept from one to the next */
  _Atomic uint64_t damaged_segments; /* seen by this handle */
};

struct lode_collection {
  const iface_ops *engine; /* iface_collection_head */
  lode_store *store;
  int64_t cid;
  uint64_t uid;
  iface_vector_spec fit;          /* what this handle was opened with */
};
/* What the vectors of a collection are. */
static inline iface_vector_spec engine_coll_vector_spec(const store_coll *c) { return (iface_vector_spec){c->embedder, c->embedder_dim, c->dim}; }

/* Every public call comes through here: a forked child makes locks anew and leaves the parent's thread behind. */
void engine_enter(lode_store *store);
/* The write transaction of a call; the background makes room for it. */
lode_status engine_begin_write(lode_store *store, store_tx **tx, lode_error *err);
/* Commits, and tells the background that there may be work. */
lode_status engine_commit_write(lode_store *store, store_tx *tx, lode_error *err);

void engine_background_start(lode_store *store);
void engine_background_stop(lode_store *store);
void engine_background_wake(lode_store *store);

/* ---- Reading in short transactions: reader.c has the rules ---- */

/* Two transactions of one moment see the same records. */
typedef struct engine_moment {
  unsigned epoch;      /* which truth file */
  uint64_t cursor;     /* the newest commit of records or segments */
  int64_t text_cursor, term_cursor; /* indexes may advance within a moment; one that was rebuilt is another moment */
} engine_moment;

/* A read transaction on one collection that can be renewed. A borrowed one (a write's) or a patient one never is. */
typedef struct engine_reader {
  lode_collection *handle;
  store_tx *tx;         /* NULL between transactions */
  store_coll coll;      /* as this transaction sees it */
  mem_arena arena;    /* its strings */
  bool borrowed, pinned;
  uint64_t count;       /* transactions so far */
  unsigned epoch;       /* of all of them */
  engine_moment moment;  /* that all transactions since engine_reader_run() must see */
  uint64_t moments;     /* different ones seen since then: more than 1 only if the reader follows */
  unsigned follows;     /* > 0: later moments may be met */
  bool taken;           /* a part of the answer was made: it is bound to the moment */
  bool overtaken;       /* another moment was met: what was made is void */
  bool gave_way;        /* the patient attempt took too long: LODE_BUSY */
  lode_progress progress; /* asked before each transaction; false: LODE_CANCELLED */
} engine_reader;

/* The collection of a handle in a transaction: LODE_NOT_FOUND when it was dropped. */
lode_status engine_load_coll(lode_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll, lode_error *err);
void engine_reader_init(engine_reader *reader, lode_collection *handle);
void engine_reader_borrow(engine_reader *reader, lode_collection *handle, store_tx *tx, const store_coll *coll);
/* Does nothing when a transaction is open. */
LODE_MUST lode_status engine_reader_begin(engine_reader *reader, lode_error *err);
void engine_reader_pause(engine_reader *reader); /* ends it; borrowed and patient ones stay */
/* It is time to renew. Of a patient reader: writers have waited for too long, and renewing fails. */
bool engine_reader_is_old(engine_reader *reader);
/* Ends an old transaction. A patient reader that is in the way fails instead: LODE_BUSY, and `gave_way`. */
LODE_MUST lode_status engine_reader_yield_if_old(engine_reader *reader, lode_error *err);
/* When the new transaction sees another moment, this fails (as does engine_reader_begin), and engine_reader_run
 * begins again. */
LODE_MUST lode_status engine_reader_renew_if_old(engine_reader *reader, lode_error *err);
void engine_reader_release(engine_reader *reader);

/* Makes an answer of one moment: calls `make`, which starts from nothing each time, until no commit has come in
 * between. The last attempt keeps its transaction to the end. */
typedef lode_status engine_reader_fn(void *ctx, lode_error *err);
LODE_MUST lode_status engine_reader_run(engine_reader *reader, engine_reader_fn *make, void *ctx, lode_error *err);

/* For walks that put up with commits, and can prove it: from here on transactions may see later moments. */
engine_moment engine_reader_allow_later(engine_reader *reader);
/* The end of that, when parts of the answer were made before: fails like a renewal if the moment is not the one of
 * before. */
LODE_MUST lode_status engine_reader_require_same(engine_reader *reader, const engine_moment *before, lode_error *err);
/* The end of that, when nothing was taken before: the answer speaks of the present transaction's moment. */
LODE_MUST lode_status engine_reader_adopt_current(engine_reader *reader, lode_error *err);
/* Have all transactions since engine_reader_run() (or the first) seen the same records? */
static inline bool engine_reader_is_consistent(const engine_reader *reader) { return reader->moments <= 1; }
bool engine_moment_is_same(const engine_moment *a, const engine_moment *now);

/* A record's document: absent when it has none. Valid until the next call. */
lode_status engine_reader_document(engine_reader *reader, const store_rec *rec, lode_str *document, lode_error *err);

/* ---- Selections ---- */

typedef struct engine_select {
  engine_reader *reader;
  lode_selection what;
  filter_expr *filter;
  filter_eval *eval;
  bool has_filter;        /* the filter does not match everything */
  bool pending_only;
  bool will_reuse;      /* the list will be used again: a long one is worth while */
  bool as_asked;      /* ids: keep their order and repetitions */
  bool planned;
  int phase;
  int64_t *list;      /* rids found by id or proposed by an index; 0: no such id */
  size_t n, cap, at;
  int64_t last;       /* scans: everything up to here has been looked at */
  uint64_t scan_tx;   /* which transaction of the reader the scan stands in; 0: none */
  bool scan_whole;    /* the scan began with the first record, and all its transactions saw the same ones */
  uint64_t scan_cursor, scanned; /* as of which commit; records met */
} engine_select;

/* The selection's memory must outlive the select. */
lode_status engine_select_init(engine_select *select, engine_reader *reader, const lode_selection *what, lode_error *err);
void engine_select_release(engine_select *select);
/* Starts behind this rid (or, with as_asked, this many ids). */
void engine_select_start_after(engine_select *select, int64_t after);
/* The next living record that matches, in the order of rids. Its strings live until the next call. */
lode_status engine_select_next(engine_select *select, store_rec *rec, bool *more, lode_error *err);
/* Decides how to find the records: *cheap is false when that takes a scan of all. */
lode_status engine_select_plan(engine_select *select, bool *cheap, lode_error *err);
/* Does a record as read in the reader's transaction match the filters? (Not whether its id was asked for.) */
lode_status engine_select_eval(engine_select *select, const store_rec *rec, bool *match, lode_error *err);

typedef struct engine_rids {
  int64_t *v;
  size_t n, cap;
} engine_rids;
/* All of them, sorted, distinct. */
lode_status engine_select_all(engine_select *select, engine_rids *rids, lode_error *err);
/* The same; but where an index proposes hardly anything else than matches (*proposed), these are taken as they are: some may
 * not match, or be dead. */
lode_status engine_select_propose(engine_select *select, engine_rids *rids, bool *proposed, lode_error *err);
/* To be walked from the beginning once more. */
void engine_select_rewind(engine_select *select);
bool engine_rids_add(engine_rids *rids, int64_t rid);
void engine_rids_sort(engine_rids *rids); /* and removes repetitions */
/* Is it among them? *hint makes queries in rising order fast. */
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
  uint32_t from, n;  /* rows from .. n - 1; those before are in a segment */
} engine_chunk_part;

/* ---- Segments ---- */

/* An open segment file; snapshots share it. */
typedef struct engine_segment {
  atomic_uint refs;
  lode_store *store;
  store_manifest_row row;
  index_segment *segment;
  int fd;
} engine_segment;
/* Opens the file of a row, in the transaction that the row was read in: a published file is there as long as its row
 * is. *seg is NULL, and LODE_OK returned, when it is missing, damaged or suspect: its vectors are then in the truth
 * alone, and the builder is told. */
lode_status engine_segment_open(lode_store *store, const store_manifest_row *row, engine_segment **seg, lode_error *err);
/* The same, but says what is wrong. */
lode_status engine_segment_open_checked(lode_store *store, const store_manifest_row *row, engine_segment **seg, lode_error *err);
engine_segment *engine_segment_ref(engine_segment *seg);
void engine_segment_release(engine_segment *seg);
#define ENGINE_SEGMENT_NAME_MAX 64
void engine_segment_name(char name[ENGINE_SEGMENT_NAME_MAX], uint64_t id, const char *ending); /* below the store's folder: os/beneath.h */
char *engine_segment_path(const lode_store *store, uint64_t id, const char *ending); /* for messages; freed by the caller */
/* It cannot be used, and the builder is to look at it. `st`: LODE_IO is the medium's or the system's failure, and the file is tried again
 * in some seconds; all else is damage, and this handle does not use it again. */
void engine_segment_suspect(lode_store *store, uint64_t id, lode_status st, const char *why);
/* The same for a file that is not there, which is no damage. */
void engine_segment_missing(lode_store *store, uint64_t id);
bool engine_segment_is_missing(const lode_store *store, uint64_t id);
bool engine_segment_is_suspect(lode_store *store, uint64_t id);
void engine_segment_clear_suspect(lode_store *store, uint64_t id);

/* Bits of slots; shared by snapshots, never changed once they are. */
typedef struct engine_slot_set {
  atomic_uint refs;
  size_t n;         /* set */
  size_t words;
  uint64_t bits[];
} engine_slot_set;
engine_slot_set *engine_slot_set_new(uint32_t rows, bool set);
void engine_slot_set_release(engine_slot_set *slots);

/* A segment as a snapshot sees it. */
typedef struct engine_segment_view {
  engine_segment *seg;
  engine_slot_set *live;  /* NULL: all are alive */
  int64_t after, last; /* the vids that it answers for */
} engine_segment_view;

/* A filter that was used, with the slots that match it: see segment_search.c. */
typedef struct engine_filter_entry engine_filter_entry;
typedef struct engine_key_set { /* sorted; shared by snapshots */
  atomic_uint refs;
  size_t n;
  int64_t v[];
} engine_key_set;

/* All vectors of a collection at one moment: those in the parts whose record and whose own key are not among the dead.
 * Up to `unknown` of them are dead without our knowing which. Never changes. Rows are in the order of vid. */
typedef struct engine_snapshot {
  atomic_uint refs;
  uint32_t dim, stride;
  engine_chunk_part *parts;
  size_t n_parts, cap_parts;
  size_t rows;
  engine_key_set *dead_rids, *dead_vids;
  int64_t last_vid, last_gid;
  bool missed;      /* in the making: graves were erased before they were seen */
  size_t unknown;   /* because of that: so many of the dead are not in the lists; few */
  uint64_t cursor;  /* the moment; 0 while it is being made */
  unsigned epoch;   /* of the store that they are from */
  engine_segment_view *segs;   /* in the order of vids, not overlapping; the parts hold what is in none of them */
  size_t n_segs;
  _Atomic uint64_t spent; /* records judged because filters were not listed */
  bool streams;     /* the parts do not fit in the budget: what no segment holds is read from the store */
  pthread_mutex_t filter_cache_lock;
  engine_filter_entry *filter_cache;   /* guarded by filter_cache_lock */
} engine_snapshot;

/* LODE_CORRUPT: fewer vectors (or, in one moment, another number) were met than the truth says there are. */
lode_status engine_lost_vectors(const store_coll *coll, uint64_t met, lode_error *err);
/* The next range (*from, *to] behind `at` that no segment of the snapshot holds; false when there is none. */
bool engine_snapshot_next_gap(const engine_snapshot *vectors, int64_t at, int64_t *from, int64_t *to);

/* The vectors as the reader's transaction sees them; that transaction may be a new one when this returns. *vectors is
 * NULL when they do not fit in the budget and no segment holds any, or when a patient reader would have to wait for
 * them. */
lode_status engine_snapshot_get(engine_reader *reader, engine_snapshot **vectors, lode_error *err);
void engine_snapshot_release(engine_snapshot *vectors);
/* The same if there was one before, and it has segments; else NULL. */
lode_status engine_snapshot_peek(engine_reader *reader, engine_snapshot **vectors, lode_error *err);
/* Brings them into memory as far as the budget allows; failures are left to queries. */
void engine_snapshot_preload(lode_collection *handle);
/* Gives memory of segments back when they take more than their share of the budget. */
void engine_snapshot_trim(lode_store *store, engine_snapshot *used);
/* Adds to what was spent on judging for want of a list, and gives the sum. */
uint64_t engine_snapshot_charge(engine_snapshot *vectors, uint64_t cost);
/* One of its segments is not to be used any more. */
bool engine_snapshot_is_suspect(const engine_snapshot *vectors);
bool engine_snapshot_is_live(const engine_snapshot *vectors, int64_t rid, int64_t vid);
bool engine_snapshot_is_cached(const lode_collection *handle); /* a guess, for planning */
void engine_cache_forget(lode_store *store, int64_t cid);
void engine_cache_forget_all(lode_store *store);
/* In a forked child. sane: no other thread of the parent was changing the list of caches. */
void engine_cache_after_fork(lode_store *store, bool sane);

/* ---- Nearest ---- */

/* The best `want` candidates of one query, and all further ones at the distance of the last. */
typedef struct engine_best {
  kernel_topk top;
  size_t cap;
  kernel_neighbour *ties;
  size_t n_ties, cap_ties;
  bool full;         /* candidates were left out: those not held are farther than all held */
} engine_best;

typedef struct engine_nearest {
  engine_reader *reader;
  lode_metric metric;
  uint32_t dim;
  const float *queries;    /* n x dim */
  size_t n;
  float *norms;            /* squared length of each query */
  engine_best *best;        /* of each query; key is rid, aux is vid */
  const engine_rids *only;  /* NULL: all records */
  bool exact;              /* do not trust codes and graphs */
  bool from_truth;         /* read every vector from the store */
  uint32_t effort;         /* of walks; 0: the default */
  double target_recall;    /* 0: the default */
  size_t k;                /* what is wanted in the end: segments are asked for that many */
  const char *filter;      /* NULL: none; else names `only` among the snapshot's marks */
  size_t filter_len;
  bool by_record;          /* out: found record by record; one that has another vector now was missed: search again */
} engine_nearest;
lode_status engine_nearest_init(engine_nearest *near, engine_reader *reader, const float *queries, size_t n, size_t want,
                               const engine_rids *only, lode_error *err);
/* Fills `best`. When it returns, every living vector of the reader's present transaction has been looked at. Without
 * `only`, and if the reader has taken nothing yet, this may be a later moment than before; candidates may have died
 * since they were looked at, so look at each again. *again: the search must be done again. */
lode_status engine_nearest_run(engine_nearest *near, bool *again, lode_error *err);
void engine_nearest_release(engine_nearest *near);

/* Scans of more bytes are made without a transaction. Tests make it small. */
extern uint64_t engine_scan_in_tx_bytes;

/* For segment_search.c: offers a candidate; false when out of memory. */
bool engine_best_push(engine_best *best, float distance, int64_t rid, int64_t vid);
/* Looks for the nearest in those segments of a snapshot that have a graph. *damaged: one of them cannot be trusted; search again. */
lode_status engine_segments_search(engine_nearest *near, engine_snapshot *vectors, bool *damaged, lode_error *err);
/* The records that a filter matched when it was last used with this snapshot; NULL: not known. */
const engine_rids *engine_filter_cache_find(engine_snapshot *vectors, const char *filter, size_t len);
/* Notes them; the snapshot takes the list over. */
const engine_rids *engine_filter_cache_add(const lode_store *store, engine_snapshot *vectors, const char *filter, size_t len, engine_rids *rids);
/* What is known of a filter whose matches are not listed. */
typedef struct engine_filter_stats {
  uint64_t evaluated, matched; /* records near queries that were looked at, and those of them that match */
  bool scans;               /* listing takes a scan of all records */
} engine_filter_stats;
engine_filter_stats engine_filter_cache_stats(engine_snapshot *vectors, const char *filter, size_t len);
/* Adds to it. */
void engine_filter_cache_note(const lode_store *store, engine_snapshot *vectors, const char *filter, size_t len, engine_filter_stats more);
void engine_filter_cache_free(engine_filter_entry *marks);
/* Frees the rooms of searches. */
void engine_scratch_free(lode_store *store);

/* ---- Building ---- */

/* Thresholds; tests make them small. */
typedef struct engine_build_limits {
  uint32_t tail_rows;    /* so many vectors outside of segments become one */
  uint32_t graph_rows;   /* from so many on, a segment has a graph */
  uint32_t dead_percent; /* from that share on it is made anew */
  uint32_t max_rows;    /* of one segment; 0: as the memory budget allows */
  uint32_t threads;      /* 0: as many as there are processors, at most 8 */
} engine_build_limits;
extern engine_build_limits engine_limits;

/* Makes at most one segment; *more says that there may be more to do. LODE_BUSY when another builds. stop may be NULL;
 * when it says true, the work ends with LODE_CANCELLED. thorough: all files are checked, and dead rows removed. */
typedef struct engine_build_request {
  bool (*stop)(void *ctx);
  void *stop_ctx;
  lode_progress progress;
  bool thorough;
  bool unreadable;       /* what cannot be read is built again too; with thorough */
  bool gentle;           /* leaves processors to others */
  bool flat;             /* no graphs: a load goes on, and more than once they would be made for nothing */
  bool only_dead;        /* rewrite every segment that holds a dead vector, as what it is, and make no others */
} engine_build_request;
/* All of it, now; waits while a thread of this handle builds. */
lode_status engine_build_all(lode_store *store, const engine_build_request *request, lode_error *err);
lode_status engine_build_step(lode_store *store, const engine_build_request *request, bool *more, lode_error *err);
/* Files that somebody removed become suspects; whoever has them open goes on with them until they are made anew. */
void engine_sweep_missing(lode_store *store);
/* Rows in and outside of segments. */
typedef struct engine_index_counts {
  uint64_t segments, rows, dead, bytes, making;
} engine_index_counts;
lode_status engine_index_count(store_tx *tx, int64_t cid, engine_index_counts *counts, lode_error *err);
/* For verification: every file, its graph, and its recall. */
lode_status engine_index_verify(lode_store *store, lode_damage_fn *found, void *ctx, lode_progress progress,
                               uint64_t *n_found, lode_error *err);

/* A loop over threads; workers is set by it. */
index_parallel engine_parallel(unsigned *n);

/* ---- Query ---- */

typedef struct engine_hit {
  int64_t rid, vid;
  lode_str id;
  double distance, score;
  store_rec rec;   /* as the reader's transaction number `seen` had it, with what the request includes; seen 0: not kept */
  uint64_t seen;
} engine_hit;
typedef struct engine_hits {
  engine_hit *v;
  size_t n, cap;
} engine_hits;
/* larger_first: by score, else by distance, smaller first; ties by id. */
void engine_hits_sort(engine_hits *hits, bool larger_first);

typedef struct engine_text_query {
  lode_str text;
  size_t want;
  engine_select *select;    /* judges; NULL: everything matches */
  const engine_rids *only;  /* NULL: all records */
  uint64_t max_tail;      /* records behind the index that are looked at; 0: all */
  mem_arena *arena;      /* for ids */
  bool skip_common;            /* words that most documents hold tell nothing: they weigh 0, and records that hold no others score 0 */
} engine_text_query;
/* The best `want` by BM25, in order. */
lode_status engine_text_search(engine_reader *reader, const engine_text_query *query, engine_hits *hits, lode_error *err);

#endif
