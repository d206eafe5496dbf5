/* SPDX-License-Identifier: Apache-2.0 */
/* vector_snapshot.h - the vectors of a collection at one moment (vector_snapshot.c), and the cache of them
 * (vector_cache.c). The second part is shared by these two and vector_snapshot_next.c alone. */
#ifndef LODE_ENGINE_VECTOR_SNAPSHOT_H
#define LODE_ENGINE_VECTOR_SNAPSHOT_H

#include "segments/segment_files.h"
#include "engine/select.h"

typedef struct engine_chunk engine_chunk;
struct engine_chunk {
  atomic_uint refs;
  engine_store *store;
  size_t bytes;
  uint32_t cap;
  float *rows, *norms;
  int64_t *vid, *rid;
};
typedef struct engine_chunk_part {
  engine_chunk *chunk;
  uint32_t from, n; /* rows [from, n); earlier ones are in a segment */
} engine_chunk_part;
/* The first row of the part with a larger vid; part->n if there is none. */
uint32_t engine_chunk_first_after(const engine_chunk_part *part, int64_t vid);

/* A segment as a snapshot sees it. */
typedef struct engine_segment_view {
  segments_file *seg;
  segments_slots *live; /* NULL: all are live */
  int64_t after, last;  /* it covers after < vid <= last */
} engine_segment_view;

/* Matches of filters that were used: filter_cache.c. */
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
  unsigned epoch;            /* of the database file */
  engine_segment_view *segs; /* in vid order, not overlapping; the parts hold the rest */
  size_t n_segs;
  _Atomic uint64_t spent; /* records evaluated against filters that had no list */
  bool streams;           /* the parts exceed the budget: what no segment holds is read from the store */
  pthread_mutex_t filter_cache_lock;
  engine_filter_entry *filter_cache; /* guarded by filter_cache_lock */
} engine_snapshot;

/* LODE_CORRUPT: fewer vectors (or, in one moment, another number) were found than the collection's count says. */
LODE_MUST lode_status engine_lost_vectors(const store_coll *coll, uint64_t met, lode_error *err);
/* The next range (*from, *to] after `at` that no segment of the snapshot holds; false when there is none. */
bool engine_snapshot_next_gap(const engine_snapshot *vectors, int64_t at, int64_t *from, int64_t *to);

/* The vectors as the reader's transaction sees them; that may be a new transaction on return. *vectors is NULL if they
 * do not fit in the budget and no segment holds any, or if a pinned reader would have to wait for them. */
LODE_MUST lode_status engine_snapshot_get(engine_reader *reader, engine_snapshot **vectors, lode_error *err);
void engine_snapshot_release(engine_snapshot *vectors);
/* The same if a snapshot is cached and has segments; else NULL. */
LODE_MUST lode_status engine_snapshot_peek(engine_reader *reader, engine_snapshot **vectors, lode_error *err);
/* Loads them as far as the budget allows; failures are left for queries to report. */
void engine_snapshot_preload(engine_collection *handle);
/* Evicts segment pages if they take more than their share of the budget. */
void engine_snapshot_trim(engine_store *store, engine_snapshot *used);
/* Is one of its segments a suspect? */
bool engine_snapshot_is_suspect(const engine_snapshot *vectors);
bool engine_snapshot_is_live(const engine_snapshot *vectors, int64_t rid, int64_t vid);
bool engine_snapshot_is_cached(const engine_collection *handle); /* an estimate, for planning */
void engine_cache_forget(engine_store *store, int64_t cid);
void engine_cache_forget_all(engine_store *store);
/* In a forked child. sane: no other thread of the parent was changing the list of cache entries. */
void engine_cache_after_fork(engine_store *store, bool sane);

/* ---- Shared by the three files ---- */

/* vector_snapshot.c */
static inline uint32_t engine_snapshot_stride(uint32_t dim) { return (dim + 15u) & ~15u; }
static inline size_t engine_snapshot_row_bytes(uint32_t stride) {
  return (size_t)stride * sizeof(float) + sizeof(float) + 2 * sizeof(int64_t);
}
engine_chunk *engine_chunk_new(engine_store *store, uint32_t stride, uint32_t cap);
void engine_chunk_release(engine_chunk *chunk);
/* Replaces *keys by a list that also holds the new keys. */
LODE_MUST lode_status engine_key_set_add(engine_key_set **keys, const engine_rids *more, lode_error *err);
void engine_key_set_release(engine_key_set *keys);
engine_segment_view engine_segment_view_ref(const engine_segment_view *view);
void engine_segment_views_free(engine_segment_view *segs, size_t n);
/* A new snapshot to be filled: empty, or sharing everything of `from`. NULL: out of memory. */
engine_snapshot *engine_snapshot_new(uint32_t dim, const engine_snapshot *from);
engine_snapshot *engine_snapshot_ref(engine_snapshot *vectors); /* NULL is allowed */
bool engine_snapshot_is_current(const engine_snapshot *vectors, const engine_reader *reader);
/* Do its segments and parts lie in the order of keys, without overlaps, and are its counts right? */
bool engine_snapshot_is_sound(const engine_snapshot *vectors);

/* vector_snapshot_next.c: the caller has the entry's turn (vector_cache.c). *out is NULL if the collection cannot be
 * kept in memory. */
LODE_MUST lode_status engine_snapshot_next(engine_reader *reader, engine_cache_entry *entry, engine_snapshot **out,
                                           lode_error *err);

/* vector_cache.c */
struct engine_cache_entry {
  engine_cache_entry *next;
  int64_t cid;
  /* guarded by the store's lock */
  bool updating; /* a thread is making the next snapshot */
  pthread_cond_t updated;
  engine_snapshot *current; /* NULL: none */
  uint64_t used;
};
size_t engine_cache_budget(const engine_store *store);
/* Makes room for this many bytes by dropping other collections; false: they cannot fit. */
LODE_MUST bool engine_cache_make_room(engine_store *store, const engine_cache_entry *self, size_t bytes);
/* returns a reference; NULL: none */
engine_snapshot *engine_cache_current(engine_store *store, engine_cache_entry *entry);
void engine_cache_publish(engine_store *store, engine_cache_entry *entry, engine_snapshot *vectors);
void engine_cache_drop(engine_store *store, engine_cache_entry *entry);

#endif
