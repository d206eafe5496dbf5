/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - ways to rank texts for a question: BM25, vectors of an embedder, both together. */
#ifndef QUALITY_RANK_H
#define QUALITY_RANK_H

#include "base/base.h"

typedef struct scored {
  uint32_t text;
  float score;
} scored;

/* Best first; equal scores in the order of the texts. Keeps the best n_best and returns how many there are. */
size_t best_of(const float *scores, size_t n, scored *best, size_t n_best);

/* ---- Words ---- */

typedef struct bm25 bm25;
bm25 *bm25_new(const lode_str *texts, size_t n);
void bm25_scores(const bm25 *b, lode_str query, float *scores);
void bm25_free(bm25 *b);

/* ---- Vectors ---- */

typedef struct dense {
  lode_embedder *embedder;
  float *vectors;
  uint32_t dimension;
  size_t n;
  double seconds; /* of CPU, for embedding the texts */
} dense;

/* Exit with a message when the embedder fails. */
void dense_init(dense *d, lode_embedder *embedder, const lode_str *texts, size_t n);
void dense_scores(const dense *d, lode_str query, float *scores);
void dense_release(dense *d);

/* Adds to `scores` the others, each list brought to 0..1 by its own best and its 50th. */
void fuse_scores(float *scores, const float *others, size_t n);

#endif
