/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the embedded engine: its handles and its locks.
 *
 * Files; those with a header of their own say in it what others may use
 *   engine_store.c       open, close, fork, statistics; the table of all operations (iface/iface.h)
 *   engine_collection.c  collections
 *   engine_write.c       add, upsert, update, delete, transactions
 *   engine_read.c        get, count, export
 *   engine_query.c       queries by vector, by text, hybrid
 *   query_plan.c         how a query is answered: facts to a plan
 *   query_explain.c      the plan and what was done, as text
 *   engine_facet.c       facets and counters
 *   engine_text.c        BM25
 *   engine_maintain.c    optimize, compact, verify, salvage, backup, restore
 *   reader.c             short read transactions; records as rows of a result
 *   select.c             a selection as live records
 *   nearest.c            the k nearest vectors, wherever they are stored
 *   vector_*.c           vectors in memory: snapshots and their cache
 *   segment_files.c      open files of the vector index
 *   segment_search.c     searching them
 *   filter_cache.c       matches of filters that were used
 *   segment_plan.c, segment_build.c, segment_sweep.c  building, merging and quarantining them
 *   index_verify.c       checks the vector index against itself and the truth file
 *   background.c         the background threads
 *   parallel.c           threads for one loop
 *
 * Locks: engine_store.lock, and filter_cache_lock of each snapshot. Both are held for a moment, never during I/O or
 * computation, and neither while the other is. Long work that one thread is to do for all has a marker that is changed
 * under a lock: the turn of a cache entry (vector_cache.c), the graph of a filter (filter_cache.c). The builder's lock
 * (store.h) is a lease among processes, which no query waits for.
 */
#ifndef LODE_ENGINE_ENGINE_H
#define LODE_ENGINE_ENGINE_H

#include "iface/iface_check.h"
#include "iface/iface.h"
#include "index/index_search.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

IFACE_OPS(ENGINE_DECLARE)
LODE_MUST lode_status engine_open(const char *folder, const lode_open_options *options, lode_store **store,
                                  lode_error *err);
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

typedef struct engine_store {
  lode_store head;
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
} engine_store;
_Static_assert(offsetof(engine_store, head) == 0, "engine_store_of() relies on it");
static inline engine_store *engine_store_of(lode_store *head) {
  return INVARIANT(!head || head->engine == &engine_table) ? (engine_store *)head : NULL;
}

typedef struct engine_collection {
  lode_collection head;
  engine_store *store;
  int64_t cid;
  uint64_t uid;
  iface_vector_spec spec; /* what this handle was opened with */
} engine_collection;
_Static_assert(offsetof(engine_collection, head) == 0, "engine_collection_of() relies on it");
static inline engine_collection *engine_collection_of(lode_collection *head) {
  return INVARIANT(!head || head->engine == &engine_table) ? (engine_collection *)head : NULL;
}
/* The model and dimension of a collection's vectors. */
static inline iface_vector_spec engine_coll_vector_spec(const store_coll *c) {
  return (iface_vector_spec){c->embedder, c->embedder_dim, c->dim};
}

/* For INVARIANTs of what is called under a lock: does a thread hold it? */
bool engine_is_locked(pthread_mutex_t *lock);

/* Reference counts of what threads share. */
static inline void engine_ref(atomic_uint *refs) {
  bool alive = INVARIANT(atomic_fetch_add_explicit(refs, 1, memory_order_relaxed) > 0);
  (void)alive;
}
/* True: that was the last reference. */
LODE_MUST static inline bool engine_unref(atomic_uint *refs) {
  unsigned before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
  return INVARIANT(before > 0) && before == 1;
}

/* Every public call passes through here. In a forked child it reinitialises the locks and drops the parent's
 * threads. */
void engine_enter(engine_store *store);
/* Begins the write transaction of a call; background work yields to it. */
LODE_MUST lode_status engine_begin_write(engine_store *store, store_tx **tx, lode_error *err);
/* Commits and wakes the background threads. */
LODE_MUST lode_status engine_commit_write(engine_store *store, store_tx *tx, lode_error *err);

void engine_background_start(engine_store *store);
void engine_background_stop(engine_store *store);
void engine_background_wake(engine_store *store);

/* Frees the scratch memory of searches that the handle keeps: segment_search.c. */
void engine_scratch_free(engine_store *store);

#endif
