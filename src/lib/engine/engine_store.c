/* SPDX-License-Identifier: Apache-2.0 */
/* engine_store.c - opening and closing a store, fork, statistics.
 *
 * A forked child inherits memory, but neither threads nor the right to use locks that a thread of the parent may have
 * held. Every public call goes through engine_enter(), which notices by the generation (vfs/vfs.h) that it runs in a
 * new child, reinitialises the locks, drops the caches and continues without background threads. engine_fork_lock makes
 * sure that only one thread does that; it is held across every fork, so a child never finds it locked.
 */
#include "engine/reader.h"
#include "engine/engine.h"
#include "segments/segment_build.h"
#include "engine/vector_snapshot.h"

#include "vfs/vfs.h"

static pthread_mutex_t engine_fork_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t engine_fork_once = PTHREAD_ONCE_INIT;

static void engine_before_fork(void) { pthread_mutex_lock(&engine_fork_lock); }
static void engine_after_fork(void) { pthread_mutex_unlock(&engine_fork_lock); }
static void engine_register_fork(void) {
  (void)pthread_atfork(engine_before_fork, engine_after_fork, engine_after_fork);
}

static void engine_become_child(engine_store *store) {
  bool sane = pthread_mutex_trylock(&store->lock) == 0;
  (void)pthread_mutex_init(&store->lock, NULL);
  store->background = store->builder = (engine_background){0};
  memset(store->scratch, 0, sizeof store->scratch); /* a thread of the parent may have been using them */
  segments_after_fork(&store->segments);
  store_db_after_fork(store->db);
  atomic_store(&store->writers, 0);
  engine_cache_after_fork(store, sane);
}

void engine_enter(engine_store *store) {
  unsigned now = vfs_generation();
  if (atomic_load_explicit(&store->generation, memory_order_acquire) == now) return;
  pthread_mutex_lock(&engine_fork_lock);
  if (atomic_load(&store->generation) != now) {
    engine_become_child(store);
    atomic_store_explicit(&store->generation, now, memory_order_release);
  }
  pthread_mutex_unlock(&engine_fork_lock);
}

/* ---- Transactions of writers ---- */

lode_status engine_begin_write(engine_store *store, store_tx **tx, lode_error *err) {
  *tx = NULL;
  engine_enter(store);
  if (store->head.options->read_only)
    return err_set(err, LODE_READONLY, "%s is open for reading only: open it without read_only to write",
                   store_db_folder(store->db));
  atomic_fetch_add(&store->writers, 1);
  lode_status st = store_tx_begin(store->db, STORE_TX_WRITE, tx, err);
  atomic_fetch_sub(&store->writers, 1);
  return st;
}

lode_status engine_commit_write(engine_store *store, store_tx *tx, lode_error *err) {
  TRY(store_tx_commit(tx, err));
  atomic_store(&store->written_ns, os_api->now_ns());
  engine_background_wake(store);
  return LODE_OK;
}

/* ---- Open and close ---- */

lode_status engine_open(const char *folder, const lode_open_options *options, lode_store **out, lode_error *err) {
  static const lode_open_options defaults;
  const lode_open_options *o = options ? options : &defaults;
  lode_status st;
  err_clear(err);
  *out = NULL;
  (void)pthread_once(&engine_fork_once, engine_register_fork);
  engine_store *store = mem_calloc(1, sizeof *store);
  if (!store) return err_nomem(err);
  store->head.engine = &engine_table;
  (void)pthread_mutex_init(&store->lock, NULL);
  TRY_GOTO(store_db_open(folder, o, &store->db, err));
  atomic_store(&store->generation, vfs_generation());
  store->head.options = store_db_options(store->db);
  segments_init(&store->segments, store->db, engine_builder_wake, store);
  if (!o->read_only && !o->no_background) engine_background_start(store);
  *out = &store->head;
done:
  if (st != LODE_OK) {
    (void)pthread_mutex_destroy(&store->lock);
    mem_free(store);
  }
  return st;
}

void engine_close(lode_store *head) {
  engine_store *store = engine_store_of(head);
  if (!store) return;
  engine_enter(store);
  engine_background_stop(store);
  engine_cache_forget_all(store);
  engine_scratch_free(store);
  segments_release(&store->segments);
  store_db_close(store->db);
  (void)pthread_mutex_destroy(&store->lock);
  mem_free(store);
}

/* ---- Statistics ---- */

static void engine_put_segment_stats(engine_store *store, const segments_counts *c, lode_stats *stats) {
  uint64_t living = stats->records - stats->pending;
  stats->segments = c->segments;
  stats->segment_bytes = c->bytes;
  stats->tail = c->tail < living ? c->tail : living;
  stats->indexed = living - stats->tail;
  stats->dead = c->rows > stats->indexed ? c->rows - stats->indexed : 0;
  stats->building = c->making;
  stats->build_total = atomic_load(&store->segments.progress.total);
  stats->build_done = stats->build_total ? atomic_load(&store->segments.progress.done) : 0;
  stats->damaged_segments = atomic_load(&store->segments.damaged);
}

typedef struct engine_counting {
  store_tx *tx;
  segments_counts counts;
} engine_counting;

static lode_status engine_count_collection(void *ctx, const store_coll *coll, lode_error *err) {
  engine_counting *c = ctx;
  return segments_count(c->tx, coll, &c->counts, err);
}

static lode_status engine_read_store_stats(engine_store *store, lode_stats *stats, lode_error *err) {
  engine_counting c = {0};
  TRY(store_tx_begin(store->db, STORE_TX_READ, &c.tx, err));
  lode_status st = store_stats(c.tx, stats, err);
  if (st == LODE_OK) st = store_coll_each(c.tx, engine_count_collection, &c, err);
  store_tx_rollback(c.tx);
  if (st == LODE_OK) engine_put_segment_stats(store, &c.counts, stats);
  return st;
}

lode_status engine_store_stats(lode_store *head, lode_stats *stats, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  *stats = (lode_stats){0};
  engine_enter(store);
  lode_status st = engine_read_store_stats(store, stats, err);
  if (st != LODE_OK) *stats = (lode_stats){0};
  return st;
}

lode_status engine_store_id(lode_store *head, uint64_t *id, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  engine_enter(store);
  return store_db_id(store->db, id, err);
}

lode_status engine_collection_stats(lode_collection *head, lode_stats *stats, lode_error *err) {
  engine_collection *handle = engine_collection_of(head);
  engine_reader reader;
  err_clear(err);
  *stats = (lode_stats){0};
  engine_reader_init(&reader, handle);
  lode_status st = engine_reader_begin(&reader, err);
  if (st == LODE_OK) {
    const store_coll *c = &reader.coll;
    *stats = (lode_stats){
        .collections = 1,
        .records = c->records,
        .pending = c->pending,
        .cursor = store_tx_cursor(reader.tx),
        .unerased = c->tombstones,
        .untexted = c->untexted,
        .unindexed = c->unindexed,
    };
    segments_counts counts = {0};
    st = segments_count(reader.tx, c, &counts, err);
    engine_put_segment_stats(handle->store, &counts, stats);
  }
  if (st != LODE_OK) *stats = (lode_stats){0};
  engine_reader_release(&reader);
  return st;
}

/* ---- The table of operations ---- */

const iface_ops engine_table = {.open = engine_open,
                                .close = engine_close,
                                .collection_close = engine_collection_close,
                                .rollback = engine_rollback,
                                .collection_succeed = engine_collection_succeed,
                                .loaded = engine_loaded,
#define ENGINE_MEMBER(name, handle, params, args) .name = engine_##name,
                                IFACE_OPS(ENGINE_MEMBER)
#undef ENGINE_MEMBER
};
