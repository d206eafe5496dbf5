/* topk.c - the k nearest of a stream of candidates, in a max-heap of k places.
 *
 * The heap's root is the farthest that is held. The order is total (distance with NaN behind all, key, aux), so the
 * outcome does not depend on the order in which candidates come.
 */
#include "index/kernel.h"

#include <math.h>

static bool is_farther(const lode__near *a, const lode__near *b) {
  if (a->distance != b->distance) { /* also when one is a NaN */
    bool a_nan = a->distance != a->distance, b_nan = b->distance != b->distance;
    if (a_nan != b_nan) return a_nan;
    if (!a_nan) return a->distance > b->distance;
  }
  return a->key != b->key ? a->key > b->key : a->aux > b->aux;
}

static void sift_up(lode__near *heap, size_t at, lode__near item) {
  while (at > 0) {
    size_t parent = (at - 1) / 2;
    if (!is_farther(&item, &heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = item;
}

/* Puts item in the root's place of a heap of n. */
static void sift_down(lode__near *heap, size_t n, lode__near item) {
  size_t at = 0;
  for (size_t child = 1; child < n; child = 2 * at + 1) {
    if (child + 1 < n && is_farther(&heap[child + 1], &heap[child])) child++;
    if (!is_farther(&heap[child], &item)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
}

void lode__topk_push(lode__topk *top, float distance, int64_t key, int64_t aux) {
  lode__near item = {distance, key, aux};
  if (top->n < top->k)
    sift_up(top->heap, top->n++, item);
  else if (top->k != 0 && is_farther(&top->heap[0], &item))
    sift_down(top->heap, top->n, item);
}

float lode__topk_bound(const lode__topk *top) {
  if (top->k == 0) return -INFINITY;
  if (top->n < top->k) return INFINITY;
  float farthest = top->heap[0].distance;
  return farthest == farthest ? farthest : INFINITY;
}

void lode__topk_sort(lode__topk *top) {
  for (size_t n = top->n; n > 1; n--) {
    lode__near farthest = top->heap[0];
    sift_down(top->heap, n - 1, top->heap[n - 1]);
    top->heap[n - 1] = farthest;
  }
}
