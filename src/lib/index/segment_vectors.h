/* SPDX-License-Identifier: Apache-2.0 */
/* segment_vectors.h - float vectors of a segment, and the cache of those that were used last: segment_vectors.c.
 *
 * Without a cache every vector is read from the file and its checksum verified each time. With one, a vector is read
 * and verified once for as long as it is held. The functions of one vector are called inside the segment
 * (index_segment_enter()). */
#ifndef LODE_INDEX_SEGMENT_VECTORS_H
#define LODE_INDEX_SEGMENT_VECTORS_H

#include "index/segment.h"

/* Gives the segment a cache of at most this many bytes, unless it has one. Does what it can: without memory there is
 * none. index_segment_evict() takes it away. */
void index_vectors_keep(index_segment *segment, uint64_t bytes);
/* The bytes of a cache that holds every vector. */
uint64_t index_vectors_wanted(const index_segment *segment);
/* For segment*.c: frees a cache that no thread can reach any more; NULL is allowed. */
void index_vectors_discard(index_segment *segment, index_vectors *vectors);

/* One vector, from index_vector_take() to index_vector_give(). */
typedef struct index_vector {
  const float *data;
  _Atomic uint64_t *word; /* of the cache's entry; NULL: in the caller's buffer */
  bool read;              /* from the file */
} index_vector;
/* buffer: dim floats, used if the vector cannot be kept. The vector may be gone (index_vector_is_gone()). */
LODE_MUST lode_status index_vector_take(index_segment *segment, uint32_t slot, float *buffer, const index_fetch *fetch,
                                        index_vector *vector, lode_error *err);
void index_vector_give(const index_vector *vector);
/* Asks for the vector's cache lines, if it is held. */
void index_vector_prefetch(const index_segment *segment, uint32_t slot);
/* n vectors from slot `first` on, past the cache. */
LODE_MUST lode_status index_segment_vectors_nolock(index_segment *s, uint32_t first, uint32_t n, float *vectors,
                                                   const index_fetch *fetch, lode_error *err);

#endif
