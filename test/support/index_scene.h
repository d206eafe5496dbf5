/* SPDX-License-Identifier: Apache-2.0 */
/* index_scene.h - for tests of the index: segments in memory, vectors of several kinds, threads, an exact answer. */
#ifndef LODE_INDEX_SCENE_H
#define LODE_INDEX_SCENE_H

#include "index/index_search.h"

typedef struct scene {
  lode_metric metric;
  uint32_t n, dim;
  float *vectors;
  unsigned char *file; /* the segment's bytes */
  size_t file_bytes, file_cap;
  uint64_t id;
  uint32_t table_crc;
  index_segment *segment;
  bool placed;          /* the segment has places only: of vectors in `other` */
  unsigned char *other; /* each vector once, in groups that grow downwards, as rows do on a page */
  size_t other_bytes;
  bool lost; /* scene_fetch(): all that is asked for is gone */
  uint64_t other_reads;
  uint64_t fetched; /* how often it was asked */
  size_t short_by;  /* the reader acts as if the file had lost this many bytes at its end */
  uint64_t bytes_read;
  void (*on_read)(uint64_t offset); /* called before each read; NULL: nothing */
} scene;

/* BYTES: whole numbers of 0 to 255. */
typedef enum shape { CLUSTERS, UNIFORM, EQUAL, ZEROS, LINE, DUPLICATES, SKEWED, BYTES } shape;

/* Nearly normal, variance 1/2. */
float scene_normal(void);
/* n vectors of a shape, from test_rand(). */
void scene_init(scene *s, shape how, lode_metric metric, uint32_t n, uint32_t dim);
/* Makes the segment and opens it; workers > 1: on that many threads. */
void scene_build(scene *s, index_segment_kind kind, unsigned workers);
void scene_build_with(scene *s, index_segment_kind kind, unsigned workers, index_graph_options graph);
lode_status scene_open(scene *s, lode_error *err);
/* Where the vector of a slot is in `other`. */
size_t scene_place(const scene *s, uint32_t slot);
/* An index_fetch_fn. */
lode_status scene_fetch(void *scene, int64_t key, uint64_t cursor, float *vector, bool *found, lode_error *err);
void scene_close(scene *s);
void scene_release(scene *s);
/* Every checksum, also the one that a manifest keeps, made right for the bytes as they are. */
void scene_repair(scene *s);
/* Fills a query near the vectors. */
void scene_query(const scene *s, float *query);
/* The share of the k nearest (by double precision, ties counted fairly) that is among hits; allowed as in the request.
 */
double scene_recall(const scene *s, const float *query, const uint64_t *allowed, size_t k, const index_hit *hits,
                    size_t n_hits);
/* The exact distance in double precision. */
double scene_distance(const scene *s, const float *query, uint32_t slot);

#endif
