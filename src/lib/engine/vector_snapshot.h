/* SPDX-License-Identifier: Apache-2.0 */
/* vector_snapshot.h - shared by the three files for vectors in memory: snapshots (vector_snapshot.c), making the next
 * one (vector_snapshot_next.c), and the cache (vector_cache.c). Everyone else uses engine.h. */
#ifndef LODE_ENGINE_VECTOR_SNAPSHOT_H
#define LODE_ENGINE_VECTOR_SNAPSHOT_H

#include "engine/engine.h"

/* vector_snapshot.c */
static inline uint32_t engine_snapshot_stride(uint32_t dim) { return (dim + 15u) & ~15u; }
static inline size_t engine_snapshot_row_bytes(uint32_t stride) {
  return (size_t)stride * sizeof(float) + sizeof(float) + 2 * sizeof(int64_t);
}
engine_chunk *engine_chunk_new(lode_store *store, uint32_t stride, uint32_t cap);
void engine_chunk_release(engine_chunk *chunk);
/* Replaces *keys by a list that also holds the new keys. */
lode_status engine_key_set_add(engine_key_set **keys, const engine_rids *more, lode_error *err);
void engine_key_set_release(engine_key_set *keys);
engine_segment_view engine_segment_view_ref(const engine_segment_view *view);
void engine_segment_views_free(engine_segment_view *segs, size_t n);
/* A new snapshot to be filled: empty, or sharing everything of `from`. NULL: out of memory. */
engine_snapshot *engine_snapshot_new(uint32_t dim, const engine_snapshot *from);
engine_snapshot *engine_snapshot_ref(engine_snapshot *vectors); /* NULL is allowed */
bool engine_snapshot_is_current(const engine_snapshot *vectors, const engine_reader *reader);

/* vector_snapshot_next.c: call with entry->update held. *out is NULL if the collection cannot be kept in memory. */
lode_status engine_snapshot_next(engine_reader *reader, engine_cache_entry *entry, engine_snapshot **out,
                                 lode_error *err);

/* vector_cache.c */
struct engine_cache_entry {
  engine_cache_entry *next;
  int64_t cid;
  pthread_mutex_t update;   /* held while the next snapshot is made */
  engine_snapshot *current; /* NULL: none; guarded, like `used`, by the store's lock */
  uint64_t used;
};
size_t engine_cache_budget(const lode_store *store);
/* Makes room for this many bytes by dropping other collections; false: they cannot fit. */
bool engine_cache_make_room(lode_store *store, const engine_cache_entry *self, size_t bytes);
/* returns a reference; NULL: none */
engine_snapshot *engine_cache_current(lode_store *store, engine_cache_entry *entry);
void engine_cache_publish(lode_store *store, engine_cache_entry *entry, engine_snapshot *vectors);
void engine_cache_drop(lode_store *store, engine_cache_entry *entry);

#endif
