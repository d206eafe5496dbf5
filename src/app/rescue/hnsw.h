/* SPDX-License-Identifier: Apache-2.0 */
/* hnsw.h - reads vectors from an hnswlib index as Chroma writes it, without loading the graph.
 *
 * header.bin, 100 bytes, little-endian: version i32, offset of level 0 u64, max elements u64, elements u64, bytes per
 * element u64, label offset u64, data offset u64, top level i32, entry point u32, maxM u64, maxM0 u64, M u64, mult
 * f64, ef_construction u64. data_level0.bin, for each element: u16 neighbours, u8 flags (1 deleted), u8 -, maxM0 x
 * u32 neighbours, dimension x f32, u64 label. length.bin: one f32 per element, its norm (for cosine, vectors are
 * stored normalised).
 *
 * Neighbours are never followed. The header is used only if it is consistent with itself and with the dimension.
 * Otherwise the shape is derived: from the size of length.bin, which has a float for each element, or from M, by
 * testing whether labels and neighbours are plausible. An element is in use when its label is valid (labels begin
 * with 1).
 */
#ifndef LODE_RESCUE_HNSW_H
#define LODE_RESCUE_HNSW_H

#include "base/base.h"

typedef struct rescue_hnsw_shape {
  uint32_t dimension;
  uint32_t max_m0;
  uint64_t element_bytes; /* 4 + 4 max_m0 + 4 dimension + 8 */
  uint64_t elements;      /* according to the header; 0: unknown */
} rescue_hnsw_shape;

typedef struct rescue_hnsw_slot {
  uint64_t label; /* 0: not in use */
  uint32_t place; /* which element of the file */
  bool deleted;
  bool beyond; /* past the number of elements in the header: leftover memory, unless the header is wrong */
} rescue_hnsw_slot;

typedef struct rescue_hnsw {
  int fd;
  rescue_hnsw_shape shape;
  bool header_bad;         /* lost, truncated or wrong: the shape was derived */
  bool data_missing;       /* there is no data_level0.bin */
  bool cut;                /* data_level0.bin has fewer elements than the header says */
  bool lengths_bad;        /* length.bin is lost or too short */
  uint64_t claimed;        /* elements according to the header; 0 when that is lost */
  rescue_hnsw_slot *slots; /* those in use, by label, one per label */
  size_t n;
  size_t live;    /* slots that are neither deleted nor beyond */
  size_t doubles; /* elements within the header's count whose label is a duplicate */
  size_t blank;   /* elements within the header's count that have no label */
  float *lengths;
  size_t n_lengths;
  unsigned char *element; /* buffer for one element */
  int64_t mtime_s;        /* of data_level0.bin */
} rescue_hnsw;

/* dimension and m are those of the collection (0: unknown). Damage is reported in the fields. LODE_NOT_FOUND: no such
 * folder; LODE_CORRUPT: nothing can be read from it. */
LODE_MUST lode_status rescue_hnsw_open(const char *folder, uint32_t dimension, uint32_t m, rescue_hnsw *index,
                                       lode_error *err);
void rescue_hnsw_close(rescue_hnsw *index);
/* NULL: no such label. */
const rescue_hnsw_slot *rescue_hnsw_find(const rescue_hnsw *index, uint64_t label);

typedef enum rescue_hnsw_got {
  RESCUE_HNSW_EXACT,
  RESCUE_HNSW_NO_NORM, /* the direction only: the norm is lost */
  RESCUE_HNSW_BAD,     /* not finite, or not of norm 1 where it must be */
} rescue_hnsw_got;
/* Reads the vector; for cosine, multiplied by its norm. */
rescue_hnsw_got rescue_hnsw_vector(rescue_hnsw *index, const rescue_hnsw_slot *slot, bool cosine, float *vector);

#endif
