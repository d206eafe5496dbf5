/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - see rank.h. */
#include "rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/token.h"

static void *must(void *p) {
  if (p) return p;
  fprintf(stderr, "out of memory\n");
  exit(2);
}

static int by_score(const void *a, const void *b) {
  const scored *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->text < y->text ? -1 : x->text > y->text;
}

size_t best_of(const float *scores, size_t n, scored *best, size_t n_best) {
  size_t used = 0;
  for (size_t i = 0; i < n; i++) {
    if (used == n_best && scores[i] <= best[used - 1].score) continue;
    size_t at = used < n_best ? used++ : used - 1;
    best[at] = (scored){(uint32_t)i, scores[i]};
    for (; at && by_score(&best[at], &best[at - 1]) < 0; at--) {
      scored swap = best[at];
      best[at] = best[at - 1];
      best[at - 1] = swap;
    }
  }
  return used;
}

/* ---- Words ---- */

typedef struct posting {
  uint32_t term, text;
} posting;

struct bm25 {
  posting *postings; /* sorted by term, then text; a word of a text stands as often as it occurs */
  size_t n_postings, cap;
  uint32_t *starts; /* by term */
  float *lengths;
  double mean;
  size_t n_texts;
  struct {
    uint64_t hash;
    uint32_t term;
  } * slots;
  size_t n_slots;
  uint32_t n_terms;
  uint32_t text; /* while indexing */
};

static uint64_t stable_hash(const char *s, size_t n) {
  uint64_t h = 0xCBF29CE484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001B3u;
  return (h ^ h >> 31) | 1;
}

static size_t slot_of(const bm25 *b, uint64_t hash) {
  size_t at = (size_t)(hash >> 8) & (b->n_slots - 1);
  while (b->slots[at].hash && b->slots[at].hash != hash) at = (at + 1) & (b->n_slots - 1);
  return at;
}

static int index_word(void *ctx, const token_item *t) {
  bm25 *b = ctx;
  uint64_t hash = stable_hash(t->text, t->len);
  size_t at = slot_of(b, hash);
  if (!b->slots[at].hash) {
    if (b->n_terms * 2 > b->n_slots) return 0; /* more words than a repository has */
    b->slots[at].hash = hash;
    b->slots[at].term = b->n_terms++;
  }
  if (!mem_grow(&b->postings, &b->cap, b->n_postings + 1, sizeof *b->postings)) must(NULL);
  b->postings[b->n_postings++] = (posting){b->slots[at].term, b->text};
  b->lengths[b->text]++;
  return 0;
}

static int by_term(const void *a, const void *b) {
  const posting *x = a, *y = b;
  if (x->term != y->term) return x->term < y->term ? -1 : 1;
  return x->text < y->text ? -1 : x->text > y->text;
}

bm25 *bm25_new(const lode_str *texts, size_t n) {
  bm25 *b = must(mem_calloc(1, sizeof *b));
  b->n_slots = 1 << 22;
  b->slots = must(mem_calloc(b->n_slots, sizeof *b->slots));
  b->lengths = must(mem_calloc(n + 1, sizeof *b->lengths));
  b->n_texts = n;
  for (size_t i = 0; i < n; i++) {
    b->text = (uint32_t)i;
    (void)token_split(texts[i].data, texts[i].len, index_word, b);
  }
  if (b->n_postings) qsort(b->postings, b->n_postings, sizeof *b->postings, by_term);
  b->starts = must(mem_calloc(b->n_terms + 1, sizeof *b->starts));
  for (size_t i = 0; i < b->n_postings; i++) b->starts[b->postings[i].term + 1] = (uint32_t)i + 1;
  for (size_t i = 0; i < n; i++) b->mean += b->lengths[i];
  b->mean /= n ? (double)n : 1;
  return b;
}

typedef struct asking {
  const bm25 *index;
  float *scores;
} asking;

static int score_word(void *ctx, const token_item *t) {
  const asking *a = ctx;
  const bm25 *b = a->index;
  size_t at = slot_of(b, stable_hash(t->text, t->len));
  if (!b->slots[at].hash) return 0;
  uint32_t from = b->starts[b->slots[at].term], to = b->starts[b->slots[at].term + 1], texts = 0;
  for (uint32_t i = from; i < to; i++) texts += i == from || b->postings[i].text != b->postings[i - 1].text;
  double idf = log(1 + ((double)b->n_texts - texts + 0.5) / (texts + 0.5));
  for (uint32_t i = from; i < to;) {
    uint32_t text = b->postings[i].text, end = i;
    while (end < to && b->postings[end].text == text) end++;
    double tf = end - i, norm = 1.2 * (0.25 + 0.75 * b->lengths[text] / b->mean);
    a->scores[text] += (float)(idf * tf * 2.2 / (tf + norm));
    i = end;
  }
  return 0;
}

void bm25_scores(const bm25 *b, lode_str query, float *scores) {
  asking a = {b, scores};
  memset(scores, 0, b->n_texts * sizeof *scores);
  (void)token_split(query.data, query.len, score_word, &a);
}

void bm25_free(bm25 *b) {
  mem_free(b->postings);
  mem_free(b->starts);
  mem_free(b->lengths);
  mem_free(b->slots);
  mem_free(b);
}

/* ---- Vectors ---- */

static void embed(lode_embedder *e, const lode_str *texts, size_t n, float *vectors) {
  lode_error err;
  if (lode_embed(e, texts, n, vectors, &err) == LODE_OK) return;
  fprintf(stderr, "embedding: %s\n", err.text);
  exit(2);
}

void dense_init(dense *d, lode_embedder *embedder, const lode_str *texts, size_t n) {
  *d = (dense){.embedder = embedder, .dimension = lode_embedder_info_of(embedder)->dimension, .n = n};
  d->vectors = must(mem_alloc((n + 1) * d->dimension * sizeof(float)));
  clock_t began = clock();
  for (size_t i = 0; i < n; i += 64) embed(embedder, texts + i, n - i < 64 ? n - i : 64, d->vectors + i * d->dimension);
  d->seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
}

void dense_scores(const dense *d, lode_str query, float *scores) {
  float *q = d->vectors + d->n * d->dimension;
  embed(d->embedder, &query, 1, q);
  for (size_t i = 0; i < d->n; i++) {
    const float *v = d->vectors + i * d->dimension;
    float sum = 0;
    for (uint32_t k = 0; k < d->dimension; k++) sum += q[k] * v[k];
    scores[i] = sum;
  }
}

void dense_release(dense *d) {
  mem_free(d->vectors);
  *d = (dense){.n = 0};
}

void fuse_scores(float *scores, const float *others, size_t n) {
  const float *lists[2] = {scores, others};
  float low[2] = {0, 0}, span[2] = {1, 1};
  for (int k = 0; k < 2; k++) {
    scored best[50];
    size_t found = best_of(lists[k], n, best, 50);
    if (!found) return;
    low[k] = best[found - 1].score;
    span[k] = best[0].score - low[k];
  }
  for (size_t i = 0; i < n; i++) {
    float a = span[0] > 0 ? (scores[i] - low[0]) / span[0] : 0, b = span[1] > 0 ? (others[i] - low[1]) / span[1] : 0;
    scores[i] = (a > 0 ? a : 0) + (b > 0 ? b : 0);
  }
}
