/* core.h - inside src/core, the embedded engine: its handles and what its files share.
 *
 * Who does what
 *   store.c       open, close, what follows a fork, statistics        background.c  the maintenance thread
 *   collection.c  collections                                         read.c        get, count
 *   write.c       add, upsert, update, delete, transactions           facet.c       facets and counters
 *   select.c      a selection becomes living records                  text.c        BM25
 *   vectors*.c    vectors kept in memory                              nearest.c     the k nearest, from wherever
 *   query.c       the three kinds of query
 *   result.c      records as rows                                     export.c      records as lines of JSON
 *   segments.c    the files of the vector index, opened               indexed.c     the nearest in them; filters as bitmaps
 *   plan.c, build.c, sweep.c  making, merging, setting aside them       parallel.c    threads for one loop
 *   index_verify.c  the index against itself and the truth
 *   maintain.c    optimize, compact, verify, salvage, backup, restore     reader.c  short read transactions
 *   engine.c      the table of all that (api/engine.h)
 *
 * Locks, in the order in which they are taken: a cache entry's `update`, then the store's `lock`, which is never held
 * over I/O. Whoever waits for `update` has no transaction open: a reader that waits would hold up a commit, and the
 * holder of `update` may itself be waiting for that commit to end.
 */
#ifndef LODE_CORE_H
#define LODE_CORE_H

#include "api/check.h"
#include "api/engine.h"
#include "base/base.h"
#include "index/search.h"
#include "query/filter.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

LODE__ENGINE_OPS(LODE__CORE_DECLARE)
lode_status lode__core_open(const char *folder, const lode_open_options *options, lode_store **store, lode_error *err);
void lode__core_close(lode_store *store);
void lode__core_collection_close(lode_collection *collection);
void lode__core_rollback(lode_txn *txn);
void lode__core_loaded(lode_store *store, uint64_t records, lode_progress progress);

/* ---- Store ---- */

#define LODE__CACHE_BUCKETS 64
typedef struct lode__cached lode__cached; /* one collection's vectors: vectors_cache.c */

typedef struct lode__background {
  pthread_t thread;
  pthread_cond_t wake;
  bool running;  /* a thread was started and not joined */
  bool stop;
  bool woken;   /* something was written since the thread last looked */
} lode__background;

/* What the builder of this handle is doing, for those who ask. */
typedef struct lode__build_progress {
  _Atomic uint64_t done, total;  /* rows; total 0: nothing */
  _Atomic uint64_t built;        /* segments made by this handle */
} lode__build_progress;

enum { LODE__MOST_SUSPECTS = 64, LODE__KEPT_ROOMS = 8 };

struct lode_store {
  const lode__engine *engine;        /* lode__store_head */
  const lode_open_options *options;  /* with the defaults filled in */
  store_db *db;
  _Atomic unsigned generation;       /* of the process that lock, caches and thread belong to */
  pthread_mutex_t lock;              /* guards all below but the atomics */
  lode__cached *cached[LODE__CACHE_BUCKETS];
  uint64_t cache_tick;
  _Atomic size_t cache_bytes;
  atomic_uint trim_tick;
  atomic_uint optimizers;            /* lode_optimize() is at work: the background leaves it to them */
  atomic_uint writers;               /* calls of this handle that wait to write */
  _Atomic uint64_t written_ns;       /* when it last committed something */
  lode__background background;       /* short steps of the store */
  lode__background builder;          /* segments */
  lode__build_progress progress;
  uint64_t suspects[LODE__MOST_SUSPECTS]; /* ids of segments that cannot be used: answered from the truth until looked at, */
  uint64_t suspect_until_ns[LODE__MOST_SUSPECTS]; /* or, where reading failed, which proves nothing, until then; 0: no such time */
  atomic_size_t n_suspects;
  index_search_scratch *scratch[LODE__KEPT_ROOMS]; /* for searches, kept from one to the next */
  _Atomic uint64_t damaged_segments; /* seen by this handle */
};

struct lode_collection {
  const lode__engine *engine; /* lode__collection_head */
  lode_store *store;
  int64_t cid;
  uint64_t uid;
  lode__fit fit;          /* what this handle was opened with */
};
/* What the vectors of a collection are. */
static inline lode__fit lode__coll_fit(const store_coll *c) { return (lode__fit){c->embedder, c->embedder_dim, c->dim}; }

/* Every public call comes through here: a forked child makes locks anew and leaves the parent's thread behind. */
void lode__store_enter(lode_store *store);
/* The write transaction of a call; the background makes room for it. */
lode_status lode__store_begin_write(lode_store *store, store_tx **tx, lode_error *err);
/* Commits, and tells the background that there may be work. */
lode_status lode__store_commit(lode_store *store, store_tx *tx, lode_error *err);

void lode__background_start(lode_store *store);
void lode__background_stop(lode_store *store);
void lode__background_kick(lode_store *store);

/* ---- Reading in short transactions: reader.c has the rules ---- */

/* Two transactions of one moment see the same records. */
typedef struct lode__moment {
  unsigned epoch;      /* which truth file */
  uint64_t cursor;     /* the newest commit of records or segments */
  int64_t text_cursor, term_cursor; /* indexes may advance within a moment; one that was rebuilt is another moment */
} lode__moment;

/* A read transaction on one collection that can be renewed. A borrowed one (a write's) or a patient one never is. */
typedef struct lode__reader {
  lode_collection *handle;
  store_tx *tx;         /* NULL between transactions */
  store_coll coll;      /* as this transaction sees it */
  mem_arena arena;    /* its strings */
  bool borrowed, pinned;
  uint64_t count;       /* transactions so far */
  unsigned epoch;       /* of all of them */
  lode__moment moment;  /* that all transactions since lode__reader_answer() must see */
  uint64_t moments;     /* different ones seen since then: more than 1 only if the reader follows */
  unsigned follows;     /* > 0: later moments may be met */
  bool taken;           /* a part of the answer was made: it is bound to the moment */
  bool overtaken;       /* another moment was met: what was made is void */
  bool gave_way;        /* the patient attempt took too long: LODE_BUSY */
  lode_progress progress; /* asked before each transaction; false: LODE_CANCELLED */
} lode__reader;

/* The collection of a handle in a transaction: LODE_NOT_FOUND when it was dropped. */
lode_status lode__coll_of(lode_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll, lode_error *err);
void lode__reader_init(lode__reader *reader, lode_collection *handle);
void lode__reader_borrow(lode__reader *reader, lode_collection *handle, store_tx *tx, const store_coll *coll);
/* Does nothing when a transaction is open. */
LODE_MUST lode_status lode__reader_begin(lode__reader *reader, lode_error *err);
void lode__reader_pause(lode__reader *reader); /* ends it; borrowed and patient ones stay */
/* It is time to renew. Of a patient reader: writers have waited for too long, and renewing fails. */
bool lode__reader_is_old(lode__reader *reader);
/* Ends an old transaction. A patient reader that is in the way fails instead: LODE_BUSY, and `gave_way`. */
LODE_MUST lode_status lode__reader_pause_if_old(lode__reader *reader, lode_error *err);
/* When the new transaction sees another moment, this fails (as does lode__reader_begin), and lode__reader_answer
 * begins again. */
LODE_MUST lode_status lode__reader_renew_if_old(lode__reader *reader, lode_error *err);
void lode__reader_release(lode__reader *reader);

/* Makes an answer of one moment: calls `make`, which starts from nothing each time, until no commit has come in
 * between. The last attempt keeps its transaction to the end. */
typedef lode_status lode__answer_fn(void *ctx, lode_error *err);
LODE_MUST lode_status lode__reader_answer(lode__reader *reader, lode__answer_fn *make, void *ctx, lode_error *err);

/* For walks that put up with commits, and can prove it: from here on transactions may see later moments. */
lode__moment lode__reader_follow(lode__reader *reader);
/* The end of that, when parts of the answer were made before: fails like a renewal if the moment is not the one of
 * before. */
LODE_MUST lode_status lode__reader_rejoin(lode__reader *reader, const lode__moment *before, lode_error *err);
/* The end of that, when nothing was taken before: the answer speaks of the present transaction's moment. */
LODE_MUST lode_status lode__reader_settle(lode__reader *reader, lode_error *err);
/* Have all transactions since lode__reader_answer() (or the first) seen the same records? */
static inline bool lode__reader_one_moment(const lode__reader *reader) { return reader->moments <= 1; }
bool lode__moment_same(const lode__moment *a, const lode__moment *now);

/* A record's document: absent when it has none. Valid until the next call. */
lode_status lode__reader_document(lode__reader *reader, const store_rec *rec, lode_str *document, lode_error *err);

/* ---- Selections ---- */

typedef struct lode__select {
  lode__reader *reader;
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
} lode__select;

/* The selection's memory must outlive the select. */
lode_status lode__select_init(lode__select *select, lode__reader *reader, const lode_selection *what, lode_error *err);
void lode__select_release(lode__select *select);
/* Starts behind this rid (or, with as_asked, this many ids). */
void lode__select_after(lode__select *select, int64_t after);
/* The next living record that matches, in the order of rids. Its strings live until the next call. */
lode_status lode__select_next(lode__select *select, store_rec *rec, bool *more, lode_error *err);
/* Decides how to find the records: *cheap is false when that takes a scan of all. */
lode_status lode__select_plan(lode__select *select, bool *cheap, lode_error *err);
/* Does a record as read in the reader's transaction match the filters? (Not whether its id was asked for.) */
lode_status lode__select_judge(lode__select *select, const store_rec *rec, bool *match, lode_error *err);

typedef struct lode__rids {
  int64_t *v;
  size_t n, cap;
} lode__rids;
/* All of them, sorted, distinct. */
lode_status lode__select_all(lode__select *select, lode__rids *rids, lode_error *err);
/* The same; but where an index proposes hardly anything else than matches (*proposed), these are taken as they are: some may
 * not match, or be dead. */
lode_status lode__select_propose(lode__select *select, lode__rids *rids, bool *proposed, lode_error *err);
/* To be walked from the beginning once more. */
void lode__select_again(lode__select *select);
bool lode__rids_add(lode__rids *rids, int64_t rid);
void lode__rids_sort(lode__rids *rids); /* and removes repetitions */
/* Is it among them? *hint makes queries in rising order fast. */
bool lode__rids_have(const lode__rids *rids, int64_t rid, size_t *hint);

/* ---- Results ---- */

/* Appends a copy of the record's parts. */
lode_status lode__result_add(lode_result *result, lode__reader *reader, const store_rec *rec, unsigned include,
                             lode_row **row, lode_error *err);

/* ---- Vectors in memory ---- */

typedef struct lode__chunk lode__chunk;
struct lode__chunk {
  atomic_uint refs;
  lode_store *store;
  size_t bytes;
  uint32_t cap;
  float *rows, *norms;
  int64_t *vid, *rid;
};
typedef struct lode__part {
  lode__chunk *chunk;
  uint32_t from, n;  /* rows from .. n - 1; those before are in a segment */
} lode__part;

/* ---- Segments ---- */

/* An open segment file; snapshots share it. */
typedef struct lode__seg {
  atomic_uint refs;
  lode_store *store;
  store_manifest_row row;
  index_segment *segment;
  int fd;
} lode__seg;
/* Opens the file of a row, in the transaction that the row was read in: a published file is there as long as its row
 * is. *seg is NULL, and LODE_OK returned, when it is missing, damaged or suspect: its vectors are then in the truth
 * alone, and the builder is told. */
lode_status lode__seg_open(lode_store *store, const store_manifest_row *row, lode__seg **seg, lode_error *err);
/* The same, but says what is wrong. */
lode_status lode__seg_open_checked(lode_store *store, const store_manifest_row *row, lode__seg **seg, lode_error *err);
lode__seg *lode__seg_share(lode__seg *seg);
void lode__seg_release(lode__seg *seg);
#define LODE__SEG_NAME 64
void lode__seg_name(char name[LODE__SEG_NAME], uint64_t id, const char *ending); /* below the store's folder: base/inside.h */
char *lode__seg_path(const lode_store *store, uint64_t id, const char *ending); /* for messages; freed by the caller */
/* It cannot be used, and the builder is to look at it. `st`: LODE_IO is the medium's or the system's failure, and the file is tried again
 * in some seconds; all else is damage, and this handle does not use it again. */
void lode__seg_suspect(lode_store *store, uint64_t id, lode_status st, const char *why);
/* The same for a file that is not there, which is no damage. */
void lode__seg_missing(lode_store *store, uint64_t id);
bool lode__seg_is_missing(const lode_store *store, uint64_t id);
bool lode__seg_is_suspect(lode_store *store, uint64_t id);
void lode__seg_clear_suspect(lode_store *store, uint64_t id);

/* Bits of slots; shared by snapshots, never changed once they are. */
typedef struct lode__slots {
  atomic_uint refs;
  size_t n;         /* set */
  size_t words;
  uint64_t bits[];
} lode__slots;
lode__slots *lode__slots_new(uint32_t rows, bool set);
void lode__slots_release(lode__slots *slots);

/* A segment as a snapshot sees it. */
typedef struct lode__covered {
  lode__seg *seg;
  lode__slots *live;  /* NULL: all are alive */
  int64_t after, last; /* the vids that it answers for */
} lode__covered;

/* A filter that was used, with the slots that match it: see indexed.c. */
typedef struct lode__marked lode__marked;
typedef struct lode__keys { /* sorted; shared by snapshots */
  atomic_uint refs;
  size_t n;
  int64_t v[];
} lode__keys;

/* All vectors of a collection at one moment: those in the parts whose record and whose own key are not among the dead.
 * Up to `unknown` of them are dead without our knowing which. Never changes. Rows are in the order of vid. */
typedef struct lode__vectors {
  atomic_uint refs;
  uint32_t dim, stride;
  lode__part *parts;
  size_t n_parts, cap_parts;
  size_t rows;
  lode__keys *dead_rids, *dead_vids;
  int64_t last_vid, last_gid;
  bool missed;      /* in the making: graves were erased before they were seen */
  size_t unknown;   /* because of that: so many of the dead are not in the lists; few */
  uint64_t cursor;  /* the moment; 0 while it is being made */
  unsigned epoch;   /* of the store that they are from */
  lode__covered *segs;   /* in the order of vids, not overlapping; the parts hold what is in none of them */
  size_t n_segs;
  _Atomic uint64_t spent; /* records judged because filters were not listed */
  bool streams;     /* the parts do not fit in the budget: what no segment holds is read from the store */
  pthread_mutex_t marks_lock;
  lode__marked *filter_cache;   /* guarded by marks_lock */
} lode__vectors;

/* LODE_CORRUPT: fewer vectors (or, in one moment, another number) were met than the truth says there are. */
lode_status lode__vectors_lost(const store_coll *coll, uint64_t met, lode_error *err);
/* The next range (*from, *to] behind `at` that no segment of the snapshot holds; false when there is none. */
bool lode__vectors_gap(const lode__vectors *vectors, int64_t at, int64_t *from, int64_t *to);

/* The vectors as the reader's transaction sees them; that transaction may be a new one when this returns. *vectors is
 * NULL when they do not fit in the budget and no segment holds any, or when a patient reader would have to wait for
 * them. */
lode_status lode__vectors_get(lode__reader *reader, lode__vectors **vectors, lode_error *err);
void lode__vectors_release(lode__vectors *vectors);
/* The same if there was one before, and it has segments; else NULL. */
lode_status lode__vectors_peek(lode__reader *reader, lode__vectors **vectors, lode_error *err);
/* Brings them into memory as far as the budget allows; failures are left to queries. */
void lode__vectors_preload(lode_collection *handle);
/* Gives memory of segments back when they take more than their share of the budget. */
void lode__vectors_trim(lode_store *store, lode__vectors *used);
/* Adds to what was spent on judging for want of a list, and gives the sum. */
uint64_t lode__vectors_spend(lode__vectors *vectors, uint64_t cost);
/* One of its segments is not to be used any more. */
bool lode__vectors_suspect(const lode__vectors *vectors);
bool lode__vectors_alive(const lode__vectors *vectors, int64_t rid, int64_t vid);
bool lode__vectors_loaded(const lode_collection *handle); /* a guess, for planning */
void lode__vectors_forget(lode_store *store, int64_t cid);
void lode__vectors_forget_all(lode_store *store);
/* In a forked child. sane: no other thread of the parent was changing the list of caches. */
void lode__vectors_after_fork(lode_store *store, bool sane);

/* ---- Nearest ---- */

/* The best `want` candidates of one query, and all further ones at the distance of the last. */
typedef struct lode__best {
  kernel_topk top;
  size_t cap;
  kernel_neighbour *ties;
  size_t n_ties, cap_ties;
  bool full;         /* candidates were left out: those not held are farther than all held */
} lode__best;

typedef struct lode__nearest {
  lode__reader *reader;
  lode_metric metric;
  uint32_t dim;
  const float *queries;    /* n x dim */
  size_t n;
  float *norms;            /* squared length of each query */
  lode__best *best;        /* of each query; key is rid, aux is vid */
  const lode__rids *only;  /* NULL: all records */
  bool exact;              /* do not trust codes and graphs */
  bool from_truth;         /* read every vector from the store */
  uint32_t effort;         /* of walks; 0: the default */
  double target_recall;    /* 0: the default */
  size_t k;                /* what is wanted in the end: segments are asked for that many */
  const char *filter;      /* NULL: none; else names `only` among the snapshot's marks */
  size_t filter_len;
  bool by_record;          /* out: found record by record; one that has another vector now was missed: search again */
} lode__nearest;
lode_status lode__nearest_init(lode__nearest *near, lode__reader *reader, const float *queries, size_t n, size_t want,
                               const lode__rids *only, lode_error *err);
/* Fills `best`. When it returns, every living vector of the reader's present transaction has been looked at. Without
 * `only`, and if the reader has taken nothing yet, this may be a later moment than before; candidates may have died
 * since they were looked at, so look at each again. *again: the search must be done again. */
lode_status lode__nearest_run(lode__nearest *near, bool *again, lode_error *err);
void lode__nearest_release(lode__nearest *near);

/* Scans of more bytes are made without a transaction. Tests make it small. */
extern uint64_t lode__scan_in_tx_bytes;

/* For indexed.c: offers a candidate; false when out of memory. */
bool lode__best_push(lode__best *best, float distance, int64_t rid, int64_t vid);
/* Looks for the nearest in those segments of a snapshot that have a graph. *damaged: one of them cannot be trusted; search again. */
lode_status lode__indexed_search(lode__nearest *near, lode__vectors *vectors, bool *damaged, lode_error *err);
/* The records that a filter matched when it was last used with this snapshot; NULL: not known. */
const lode__rids *lode__marked_find(lode__vectors *vectors, const char *filter, size_t len);
/* Notes them; the snapshot takes the list over. */
const lode__rids *lode__marked_add(const lode_store *store, lode__vectors *vectors, const char *filter, size_t len, lode__rids *rids);
/* What is known of a filter whose matches are not listed. */
typedef struct lode__filter_note {
  uint64_t evaluated, matched; /* records near queries that were looked at, and those of them that match */
  bool scans;               /* listing takes a scan of all records */
} lode__filter_note;
lode__filter_note lode__marked_noted(lode__vectors *vectors, const char *filter, size_t len);
/* Adds to it. */
void lode__marked_note(const lode_store *store, lode__vectors *vectors, const char *filter, size_t len, lode__filter_note more);
void lode__marked_free(lode__marked *marks);
/* Frees the rooms of searches. */
void lode__indexed_forget(lode_store *store);

/* ---- Building ---- */

/* Thresholds; tests make them small. */
typedef struct lode__build_limits {
  uint32_t tail_rows;    /* so many vectors outside of segments become one */
  uint32_t graph_rows;   /* from so many on, a segment has a graph */
  uint32_t dead_percent; /* from that share on it is made anew */
  uint32_t most_rows;    /* of one segment; 0: as the memory budget allows */
  uint32_t threads;      /* 0: as many as there are processors, at most 8 */
} lode__build_limits;
extern lode__build_limits lode__build_limits_now;

/* Makes at most one segment; *more says that there may be more to do. LODE_BUSY when another builds. stop may be NULL;
 * when it says true, the work ends with LODE_CANCELLED. thorough: all files are checked, and dead rows removed. */
typedef struct lode__build_request {
  bool (*stop)(void *ctx);
  void *stop_ctx;
  lode_progress progress;
  bool thorough;
  bool unreadable;       /* what cannot be read is built again too; with thorough */
  bool gentle;           /* leaves processors to others */
  bool flat;             /* no graphs: a load goes on, and more than once they would be made for nothing */
  bool only_dead;        /* rewrite every segment that holds a dead vector, as what it is, and make no others */
} lode__build_request;
/* All of it, now; waits while a thread of this handle builds. */
lode_status lode__build_all(lode_store *store, const lode__build_request *request, lode_error *err);
lode_status lode__build_step(lode_store *store, const lode__build_request *request, bool *more, lode_error *err);
/* Files that somebody removed become suspects; whoever has them open goes on with them until they are made anew. */
void lode__sweep_missing(lode_store *store);
/* Rows in and outside of segments. */
typedef struct lode__build_counts {
  uint64_t segments, rows, dead, bytes, making;
} lode__build_counts;
lode_status lode__build_count(store_tx *tx, int64_t cid, lode__build_counts *counts, lode_error *err);
/* For verification: every file, its graph, and its recall. */
lode_status lode__build_verify(lode_store *store, lode_damage_fn *found, void *ctx, lode_progress progress,
                               uint64_t *n_found, lode_error *err);

/* A loop over threads; workers is set by it. */
index_parallel lode__threads(unsigned *n);

/* ---- Query ---- */

typedef struct lode__hit {
  int64_t rid, vid;
  lode_str id;
  double distance, score;
  store_rec rec;   /* as the reader's transaction number `seen` had it, with what the request includes; seen 0: not kept */
  uint64_t seen;
} lode__hit;
typedef struct lode__hits {
  lode__hit *v;
  size_t n, cap;
} lode__hits;
/* larger_first: by score, else by distance, smaller first; ties by id. */
void lode__hits_sort(lode__hits *hits, bool larger_first);

typedef struct lode__text_query {
  lode_str text;
  size_t want;
  lode__select *select;    /* judges; NULL: everything matches */
  const lode__rids *only;  /* NULL: all records */
  uint64_t most_tail;      /* records behind the index that are looked at; 0: all */
  mem_arena *arena;      /* for ids */
  bool skip_common;            /* words that most documents hold tell nothing: they weigh 0, and records that hold no others score 0 */
} lode__text_query;
/* The best `want` by BM25, in order. */
lode_status lode__text_search(lode__reader *reader, const lode__text_query *query, lode__hits *hits, lode_error *err);

#endif
