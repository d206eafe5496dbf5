/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - reciprocal rank fusion: see fuse.h.
 *
 * Both lists are copied to `out`, sorted by key so that the two entries of a record are adjacent, and then by score.
 * Heap sort is used: in place, the same order on every machine, and always O(n log n).
 */
#include "query/fuse.h"

#include <math.h>

/* The k of reciprocal rank fusion, 1 / (k + rank): how little the first ranks count more than those after them. 60 is
 * the value of Cormack, Clarke and Buettcher (2009), who found results to depend little on it. */
#define FUSE_RANK_BIAS 60.0
enum { FUSE_MIN_DEPTH = 64, FUSE_DEPTH_FACTOR = 4 }; /* hits of each ranking: at least, and for each that is returned */

typedef bool before_fn(const fuse_ranked *a, const fuse_ranked *b);

static bool fuse_by_key(const fuse_ranked *a, const fuse_ranked *b) { return a->key < b->key; }

static bool fuse_by_score(const fuse_ranked *a, const fuse_ranked *b) {
  if (a->score != b->score) return a->score > b->score;
  return a->key < b->key;
}

/* Moves items[at] down in the heap of n items, whose top is the last in order. */
static void fuse_sink(fuse_ranked *items, size_t at, size_t n, before_fn *before) {
  fuse_ranked item = items[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && before(&items[child], &items[child + 1])) child++;
    if (!before(&item, &items[child])) break;
    items[at] = items[child];
    at = child;
  }
  items[at] = item;
}

static void fuse_heapsort(fuse_ranked *items, size_t n, before_fn *before) {
  for (size_t i = n / 2; i-- > 0;) fuse_sink(items, i, n, before);
  for (size_t end = n; end-- > 1;) {
    fuse_ranked last = items[end];
    items[end] = items[0];
    items[0] = last;
    fuse_sink(items, 0, end, before);
  }
}

static void fuse_put_list(fuse_ranked *out, fuse_ranking list) {
  INVARIANT_CHECKED(isfinite(list.weight) && list.weight >= 0);
  for (size_t i = 0; i < list.n; i++)
    out[i] = (fuse_ranked){list.keys[i], list.weight / (FUSE_RANK_BIAS + (double)i + 1)};
}

size_t fuse_rankings(fuse_ranking a, fuse_ranking b, fuse_ranked *out) {
  size_t n = a.n + b.n;
  fuse_put_list(out, a);
  fuse_put_list(out + a.n, b);
  fuse_heapsort(out, n, fuse_by_key);
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (kept && out[kept - 1].key == out[i].key) {
      out[kept - 1].score += out[i].score;
    } else {
      out[kept++] = out[i];
    }
  }
  fuse_heapsort(out, kept, fuse_by_score);
  for (size_t i = 1; i < kept; i++) INVARIANT_CHECKED(fuse_by_score(&out[i - 1], &out[i]));
  return kept;
}

size_t fuse_depth(size_t k) {
  size_t depth;
  if (mem_mul_overflow(k, FUSE_DEPTH_FACTOR, &depth)) return SIZE_MAX;
  return depth > FUSE_MIN_DEPTH ? depth : FUSE_MIN_DEPTH;
}
