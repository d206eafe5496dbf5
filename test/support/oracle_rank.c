/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_rank.c - nearest vectors, recall, BM25 and the fusion of ranks; see oracle.h. */
#include "support/oracle.h"

#include "base/token.h"
#include "kernel/kernel.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

/* Sums of the same numbers in another order differ in their last bits. */
#define SAME_SCORE 1e-12

static int smaller_first(const void *a, const void *b) {
  const oracle_hit *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  return str_cmp(oracle_id(x->r), oracle_id(y->r));
}

static int larger_first(const void *a, const void *b) {
  const oracle_hit *x = a, *y = b;
  if (fabs(x->score - y->score) > SAME_SCORE) return x->score > y->score ? -1 : 1;
  return str_cmp(oracle_id(x->r), oracle_id(y->r));
}

/* ---- Vectors ---- */

double oracle_definition(lode_metric metric, const float *a, const float *b, uint32_t dim) {
  double dot = 0, l2 = 0, na = 0, nb = 0;
  for (uint32_t i = 0; i < dim; i++) {
    double x = a[i], y = b[i];
    dot += x * y;
    l2 += (x - y) * (x - y);
    na += x * x;
    nb += y * y;
  }
  if (metric == LODE_L2) return l2;
  if (metric == LODE_IP) return 1 - dot;
  return na > 0 && nb > 0 ? 1 - dot / sqrt(na * nb) : 1;
}

/* By how much a distance in float may be off: products that cancel each other leave their rounding. */
static double rounding(lode_metric metric, const float *a, const float *b, uint32_t dim, double distance) {
  double sum = 1 + fabs(distance);
  for (uint32_t i = 0; metric == LODE_IP && i < dim; i++) sum += fabs((double)a[i] * b[i]);
  return 1e-5 * sum;
}

double oracle_distance(lode_metric metric, const float *query, const float *v, uint32_t dim) {
  double d = kernel_distance(metric, query, kernel_dot(query, query, dim), v, dim);
  double defined = oracle_definition(metric, query, v, dim);
  CHECKF(fabs(d - defined) <= rounding(metric, query, v, dim, defined), "the distance is %.9g, by its definition %.9g",
         d, defined);
  return d;
}

size_t oracle_nearest(const oracle_collection *c, const float *query, const oracle_selection *s, oracle_hit *hits) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) {
    const oracle_record *r = &c->r[i];
    if (!r->has_vector || !oracle_selected(s, r)) continue;
    hits[n++] = (oracle_hit){.at = i, .score = oracle_distance(c->metric, query, r->vector, c->dim), .r = r};
  }
  if (n) qsort(hits, n, sizeof *hits, smaller_first);
  return n;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

double oracle_recall(double *all, size_t n, size_t k, const double *got, size_t n_got) {
  size_t good = 0;
  if (n) qsort(all, n, sizeof *all, by_value);
  if (k > n) k = n;
  double bound = k ? all[k - 1] + 1e-6 * (1 + fabs(all[k - 1])) : 0; /* equals differ by their rounding */
  CHECKF(n_got == k, "%zu hits instead of %zu", n_got, k);
  for (size_t i = 0; i < k; i++) {
    CHECKF(i == 0 || got[i - 1] <= got[i], "hits %zu and %zu are out of order", i - 1, i);
    good += got[i] <= bound;
  }
  return k ? (double)good / (double)k : 1;
}

/* ---- Text ---- */

enum { MOST_WORDS = 64 };
typedef struct bag {
  char word[MOST_WORDS][TOKEN_MAX_BYTES];
  size_t len[MOST_WORDS], n, count[MOST_WORDS];
  bool fixed; /* only counts words that are in it */
} bag;

static int add_word(void *ctx, const token_item *t) {
  bag *b = ctx;
  size_t i = 0;
  while (i < b->n && (b->len[i] != t->len || memcmp(b->word[i], t->text, t->len) != 0)) i++;
  if (i == b->n && b->fixed) return 0;
  if (i == b->n) {
    CHECK(b->n < MOST_WORDS);
    memcpy(b->word[i], t->text, t->len);
    b->len[i] = t->len;
    b->n++;
  }
  b->count[i]++;
  return 0;
}

static bool count_words(bag *b, const oracle_record *r) {
  bool any = false;
  memset(b->count, 0, sizeof b->count);
  if (r->has_document) (void)token_split(r->document, r->document_len, add_word, b);
  for (size_t i = 0; i < b->n; i++) any = any || b->count[i];
  return any;
}

static double bm25(const bag *b, const double *idf, double length, double average) {
  double sum = 0, norm = 1.2 * (1 - 0.75 + 0.75 * length / average);
  for (size_t i = 0; i < b->n; i++) {
    double tf = (double)b->count[i];
    if (tf > 0) sum += idf[i] * tf * 2.2 / (tf + norm);
  }
  return sum;
}

size_t oracle_text(const oracle_collection *c, lode_str text, const oracle_selection *s, bool hybrid,
                   oracle_hit *hits) {
  static bag b;
  double df[MOST_WORDS] = {0}, idf[MOST_WORDS], documents = (double)oracle_documents(c), bytes = 0;
  size_t n = 0;
  b = (bag){0};
  (void)token_split_query(text.data, text.len, add_word, &b);
  b.fixed = true;
  for (size_t i = 0; i < c->n; i++) {
    bytes += c->r[i].has_document ? (double)c->r[i].document_len : 0;
    if (!count_words(&b, &c->r[i])) continue;
    for (size_t w = 0; w < b.n; w++) df[w] += b.count[w] > 0;
  }
  for (size_t w = 0; w < b.n; w++)
    idf[w] = hybrid && 2 * df[w] > documents ? 0 : log(1 + (documents - df[w] + 0.5) / (df[w] + 0.5));
  for (size_t i = 0; i < c->n; i++) {
    const oracle_record *r = &c->r[i];
    if (!count_words(&b, r) || !oracle_selected(s, r)) continue;
    hits[n++] = (oracle_hit){.at = i, .r = r, .score = bm25(&b, idf, (double)r->document_len, bytes / documents)};
  }
  if (n) qsort(hits, n, sizeof *hits, larger_first);
  return n;
}

/* ---- Both ---- */

static int larger_sum_first(const void *a, const void *b) { /* sums of the same two numbers: equal to the last bit */
  const oracle_hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return str_cmp(oracle_id(x->r), oracle_id(y->r));
}

size_t oracle_hybrid(const oracle_collection *c, const lode_query_request *q, const oracle_selection *s,
                     oracle_hit *hits) {
  size_t most = q->k * 4 > 64 ? q->k * 4 : 64;
  bool weighted = q->vector_weight > 0 || q->text_weight > 0;
  double by_vector = weighted ? q->vector_weight : 1, by_text = weighted ? q->text_weight : 1;
  oracle_hit *found = calloc(c->n + 1, sizeof *found);
  CHECK(found);
  size_t near = oracle_nearest(c, q->vectors, s, hits);
  if (near > most) near = most;
  size_t n = near, n_found = oracle_text(c, q->texts[0], s, near > 0, found);
  for (size_t i = 0; i < near; i++) hits[i].score = by_vector / (61.0 + (double)i);
  for (size_t i = 0; i < n_found && i < most; i++) {
    size_t j = 0;
    while (j < near && hits[j].r != found[i].r) j++;
    if (j == near) {
      j = n++;
      hits[j] = (oracle_hit){.at = found[i].at, .r = found[i].r};
    }
    if (found[i].score > 0) hits[j].score += by_text / (61.0 + (double)i);
  }
  free(found);
  if (n) qsort(hits, n, sizeof *hits, larger_sum_first);
  return n;
}
