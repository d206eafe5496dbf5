/* vector_snapshot.h - what the three files of the vectors in memory share: snapshots (vector_snapshot.c), how the next one is made (vector_snapshot_next.c),
 * and which are kept (vector_cache.c). Everybody else uses engine.h. */
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
engine_segment_view engine_segment_view_ref(const engine_segment_view *covered);
void engine_segment_views_free(engine_segment_view *segs, size_t n);
/* A snapshot to be extended: an empty one, or one that shares all of `from`. NULL: no memory. */
engine_snapshot *engine_snapshot_new(uint32_t dim, const engine_snapshot *from);
engine_snapshot *engine_snapshot_ref(engine_snapshot *vectors); /* NULL is allowed */
bool engine_snapshot_is_current(const engine_snapshot *vectors, const engine_reader *reader);

/* vector_snapshot_next.c: with entry->update held. *out is NULL when the collection cannot be kept in memory. */
lode_status engine_snapshot_next(engine_reader *reader, engine_cache_entry *entry, engine_snapshot **out, lode_error *err);

/* vector_cache.c */
struct engine_cache_entry {
  engine_cache_entry *next;
  int64_t cid;
  pthread_mutex_t update;  /* held while the next snapshot is made */
  engine_snapshot *current;  /* guarded, as is `used`, by the store's lock; NULL: none */
  uint64_t used;
};
size_t engine_cache_budget(const lode_store *store);
/* Makes room for so many bytes by forgetting other collections. */
bool engine_cache_make_room(lode_store *store, const engine_cache_entry *self, size_t bytes);
engine_snapshot *engine_cache_current(lode_store *store, engine_cache_entry *entry); /* with a reference; NULL: none */
void engine_cache_publish(lode_store *store, engine_cache_entry *entry, engine_snapshot *vectors);
void engine_cache_drop(lode_store *store, engine_cache_entry *entry);

#endif
