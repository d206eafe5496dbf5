/* SPDX-License-Identifier: Apache-2.0 */
/* vkit.h - a collection of vectors and what it must answer, for the tests of the vector index behind lode_query.
 *
 * A kit keeps every record's vector in an array by number (its id is that number in decimal), so that the truth about a
 * query is a scan in double precision. Limits of the builder are made small, so that a few hundred records have several
 * segments.
 */
#ifndef LODE_VKIT_H
#define LODE_VKIT_H

#include "engine/engine.h"

typedef struct vkit {
  const char *folder;
  lode_store *store;
  lode_collection *c;
  lode_metric metric;
  uint32_t dim;
  float *v; /* of record i at v + i * dim */
  bool *alive;
  int *group; /* metadata "g" */
  size_t n, cap;
  bool no_background, bulk_load;
  uint64_t memory_bytes;
} vkit;

/* tail_rows, graph_rows; dead_percent as it is. */
void vkit_limits(uint32_t tail_rows, uint32_t graph_rows);
void vkit_open(vkit *k, const char *folder, lode_metric metric, uint32_t dim);
void vkit_reopen(vkit *k);
void vkit_close(vkit *k);
/* Adds n records: clustered vectors, group = number % 100. */
void vkit_add(vkit *k, size_t n);
void vkit_add_vectors(vkit *k, const float *v, size_t n);
void vkit_delete(vkit *k, size_t first, size_t n); /* those that are alive */
void vkit_delete_one(vkit *k, size_t i);
void vkit_update(vkit *k, size_t i);         /* another vector */
void vkit_random(const vkit *k, float *out); /* one more vector of the same kind */
size_t vkit_living(const vkit *k);
lode_stats vkit_stats(vkit *k);
void vkit_optimize(vkit *k);
void vkit_wait_built(vkit *k); /* until the background has nothing to do */

typedef struct vkit_answer {
  size_t n;
  size_t id[4096];
  double distance[4096];
} vkit_answer;
/* where: NULL or a filter; group of the filter for the truth (-1: all; below `groups`: group < it). */
void vkit_query(vkit *k, const float *q, size_t want, const lode_query_request *knobs, const char *where,
                vkit_answer *a);
/* Share of the answer that is as near as the k-th nearest by the truth; fails the test when a row is dead, comes twice,
 * is out of order, has a wrong distance, or when there are fewer than there should be. */
double vkit_recall(vkit *k, const float *q, size_t want, int below, const vkit_answer *a);
/* Mean recall over `queries` random queries; *first_percentile may be NULL. */
double vkit_mean(vkit *k, size_t queries, size_t want, const lode_query_request *knobs, const char *where, int below,
                 double *low);
/* Paths of the files in the segments folder that end so; free each and the list. */
size_t vkit_files(const char *folder, const char *part, char **paths, size_t most);

#endif
