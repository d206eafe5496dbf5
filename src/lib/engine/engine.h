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
 *   segment_search.c     ... in files of the vector index (src/lib/segments)
 *   filter_cache.c       matches of filters that were used
 *   background.c         the background threads
 *
 * Locks: engine_store.lock, that of its segments, and filter_cache_lock of each snapshot. All are held for a moment,
 * never during I/O or computation, and none while another is. Long work that one thread is to do for all has a marker
 * that is changed under a lock: the turn of a cache entry (vector_cache.c), the graph of a filter (filter_cache.c). The
 * builder's lock (store.h) is a lease among processes, which no query waits for.
 */
#ifndef LODE_ENGINE_ENGINE_H
#define LODE_ENGINE_ENGINE_H

#include "segments/segment_files.h"
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
LODE_MUST lode_status engine_collection_succeed(lode_txn *txn, lode_str name, lode_str successor, lode_error *err);
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

enum { ENGINE_SCRATCH_SLOTS = 8 };

typedef struct engine_store {
  lode_store head;
  store_db *db;
  segments_store segments;
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
  index_search_scratch *scratch[ENGINE_SCRATCH_SLOTS]; /* scratch memory of searches, reused */
} engine_store;
_Static_assert(offsetof(engine_store, head) == 0, "engine_store_of() relies on it");
static inline engine_store *engine_store_of(lode_store *head) {
  return INVARIANT(!head || head->engine == &engine_table) ? (engine_store *)head : NULL;
}

typedef struct engine_collection {
  lode_collection head;
  engine_store *store;
  _Atomic int64_t cid; /* changes when another collection succeeds this one (lode_reembed) */
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

/* Wakes the thread that builds segments; ctx is the store. */
void engine_builder_wake(void *ctx);

/* Frees the scratch memory of searches that the handle keeps: segment_search.c. */
void engine_scratch_free(engine_store *store);

#endif
