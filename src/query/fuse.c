/* fuse.c - reciprocal rank fusion: see fuse.h.
 *
 * Both lists go to `out`, are sorted by key so that the two places of one record meet, and then by score. Sorting is
 * heap sort: in place, the same order on every machine, and never slower than n log n.
 */
#include "fuse.h"

#include <math.h>

#define RANK_BIAS 60.0

typedef bool before_fn(const lode__ranked *a, const lode__ranked *b);

static bool by_key(const lode__ranked *a, const lode__ranked *b) { return a->key < b->key; }

static bool by_score(const lode__ranked *a, const lode__ranked *b) {
  if (a->score != b->score) return a->score > b->score;
  return a->key < b->key;
}

/* Lets items[at] sink in the heap of n items, whose top is the last in order. */
static void sink(lode__ranked *items, size_t at, size_t n, before_fn *before) {
  lode__ranked item = items[at];
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

static void sort(lode__ranked *items, size_t n, before_fn *before) {
  for (size_t i = n / 2; i-- > 0;) sink(items, i, n, before);
  for (size_t end = n; end-- > 1;) {
    lode__ranked last = items[end];
    items[end] = items[0];
    items[0] = last;
    sink(items, 0, end, before);
  }
}

static void put_list(lode__ranked *out, const uint64_t *keys, size_t n, double weight) {
  for (size_t i = 0; i < n; i++) out[i] = (lode__ranked){keys[i], weight / (RANK_BIAS + (double)i + 1)};
}

static bool is_weight(double w) { return isfinite(w) && w >= 0; }

lode_status lode__fuse(const uint64_t *a, size_t na, double weight_a, const uint64_t *b, size_t nb, double weight_b,
                       lode__ranked *out, size_t *n, lode_error *err) {
  *n = 0;
  if (!is_weight(weight_a) || !is_weight(weight_b)) {
    return err_set(err, LODE_INVALID, "the weights of a hybrid query are %g and %g; give numbers of at least 0", weight_a,
                      weight_b);
  }
  put_list(out, a, na, weight_a);
  put_list(out + na, b, nb, weight_b);
  sort(out, na + nb, by_key);
  size_t kept = 0;
  for (size_t i = 0; i < na + nb; i++) {
    if (kept && out[kept - 1].key == out[i].key) {
      out[kept - 1].score += out[i].score;
    } else {
      out[kept++] = out[i];
    }
  }
  sort(out, kept, by_score);
  *n = kept;
  return LODE_OK;
}
