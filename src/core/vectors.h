/* vectors.h - what the three files of the vectors in memory share: snapshots (vectors.c), how the next one is made (vectors_next.c),
 * and which are kept (vectors_cache.c). Everybody else uses core.h. */
#ifndef LODE_VECTORS_H
#define LODE_VECTORS_H

#include "core.h"

/* vectors.c */
static inline uint32_t lode__vectors_stride(uint32_t dim) { return (dim + 15u) & ~15u; }
static inline size_t lode__vectors_row_bytes(uint32_t stride) {
  return (size_t)stride * sizeof(float) + sizeof(float) + 2 * sizeof(int64_t);
}
lode__chunk *lode__chunk_new(lode_store *store, uint32_t stride, uint32_t cap);
void lode__chunk_release(lode__chunk *chunk);
/* Replaces *keys by a list that also holds the new keys. */
lode_status lode__keys_add(lode__keys **keys, const lode__rids *more, lode_error *err);
void lode__keys_release(lode__keys *keys);
lode__covered lode__covered_share(const lode__covered *covered);
void lode__covered_free(lode__covered *segs, size_t n);
/* A snapshot to be extended: an empty one, or one that shares all of `from`. NULL: no memory. */
lode__vectors *lode__vectors_new(uint32_t dim, const lode__vectors *from);
lode__vectors *lode__vectors_share(lode__vectors *vectors); /* NULL is allowed */
bool lode__vectors_current(const lode__vectors *vectors, const lode__reader *reader);

/* vectors_next.c: with entry->update held. *out is NULL when the collection cannot be kept in memory. */
lode_status lode__vectors_next(lode__reader *reader, lode__cached *entry, lode__vectors **out, lode_error *err);

/* vectors_cache.c */
struct lode__cached {
  lode__cached *next;
  int64_t cid;
  pthread_mutex_t update;  /* held while the next snapshot is made */
  lode__vectors *current;  /* guarded, as is `used`, by the store's lock; NULL: none */
  uint64_t used;
};
size_t lode__cached_budget(const lode_store *store);
/* Makes room for so many bytes by forgetting other collections. */
bool lode__cached_make_room(lode_store *store, const lode__cached *self, size_t bytes);
lode__vectors *lode__cached_current(lode_store *store, lode__cached *entry); /* with a reference; NULL: none */
void lode__cached_publish(lode_store *store, lode__cached *entry, lode__vectors *vectors);
void lode__cached_drop(lode_store *store, lode__cached *entry);

#endif
