/* SPDX-License-Identifier: Apache-2.0 */
/* topk.c - the k nearest of a stream of candidates, in a max-heap of k places.
 *
 * The root of the heap is the farthest that is held. The order is total (distance with NaN last, key, aux), so the
 * result does not depend on the order in which candidates come.
 */
#include "kernel/kernel.h"

#include <math.h>

static bool topk_is_farther(const kernel_neighbour *a, const kernel_neighbour *b) {
  if (a->distance != b->distance) { /* also when one is a NaN */
    bool a_nan = a->distance != a->distance, b_nan = b->distance != b->distance;
    if (a_nan != b_nan) return a_nan;
    if (!a_nan) return a->distance > b->distance;
  }
  return a->key != b->key ? a->key > b->key : a->aux > b->aux;
}

static void topk_sift_up(kernel_neighbour *heap, size_t at, kernel_neighbour item) {
  while (at > 0) {
    size_t parent = (at - 1) / 2;
    if (!topk_is_farther(&item, &heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = item;
}

/* Replaces the root of a heap of n by item. */
static void topk_sift_down(kernel_neighbour *heap, size_t n, kernel_neighbour item) {
  size_t at = 0;
  for (size_t child = 1; child < n; child = 2 * at + 1) {
    if (child + 1 < n && topk_is_farther(&heap[child + 1], &heap[child])) child++;
    if (!topk_is_farther(&heap[child], &item)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
}

/* Is nobody farther than its parent? */
static bool topk_is_heap(const kernel_topk *top) {
  for (size_t i = 1; i < top->n; i++)
    if (topk_is_farther(&top->heap[i], &top->heap[(i - 1) / 2])) return false;
  return top->n <= top->k;
}

void kernel_topk_push(kernel_topk *top, float distance, int64_t key, int64_t aux) {
  kernel_neighbour item = {distance, key, aux};
  if (top->n < top->k)
    topk_sift_up(top->heap, top->n++, item);
  else if (top->k != 0 && topk_is_farther(&top->heap[0], &item))
    topk_sift_down(top->heap, top->n, item);
}

float kernel_topk_bound(const kernel_topk *top) {
  if (top->k == 0) return -INFINITY;
  if (top->n < top->k) return INFINITY;
  float farthest = top->heap[0].distance;
  return farthest == farthest ? farthest : INFINITY;
}

void kernel_topk_sort(kernel_topk *top) {
  INVARIANT_CHECKED(topk_is_heap(top));
  for (size_t n = top->n; n > 1; n--) {
    kernel_neighbour farthest = top->heap[0];
    topk_sift_down(top->heap, n - 1, top->heap[n - 1]);
    top->heap[n - 1] = farthest;
  }
  for (size_t i = 1; i < top->n; i++) INVARIANT_CHECKED(!topk_is_farther(&top->heap[i - 1], &top->heap[i]));
}
