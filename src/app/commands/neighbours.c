/* SPDX-License-Identifier: Apache-2.0 */
/* neighbours.c - see neighbours.h.
 *
 * Vectors are scaled so that no norm exceeds NEIGHBOUR_MAX_NORM and rounded to 16 bits. By Cauchy-Schwarz no product of
 * two vectors, nor any part of its sum, leaves 32 bits then, and sums of integers are the same in any order: equal
 * input gives equal output on every machine.
 */
#include "commands/neighbours.h"

#include <math.h>

enum {
  NEIGHBOUR_STEP = 64,   /* dimensions are padded to a multiple; a constant, so that the loop is vectorised */
  NEIGHBOUR_BLOCK = 128, /* rows that are compared with each other while they are in the cache */
  NEIGHBOUR_MAX_NORM = 46000,
};

typedef struct neighbour_search {
  int16_t *rows; /* n of `width` */
  int64_t *norms;
  size_t n, width;
  uint32_t k;
  uint32_t *nearest;
  int64_t *distances; /* beside `nearest`, ascending */
  uint32_t *found;    /* how many each has so far */
} neighbour_search;

/* ---- Rounding ---- */

static void neighbour_round(neighbour_search *s, const float *vectors, uint32_t dimension) {
  double largest = 0, longest = 0;
  for (size_t i = 0; i < s->n * dimension; i++) largest = fmax(largest, fabs((double)vectors[i]));
  if (largest <= 0) return;
  for (size_t r = 0; r < s->n; r++) {
    double sum = 0;
    for (uint32_t i = 0; i < dimension; i++) {
      double x = vectors[r * dimension + i] / largest;
      sum += x * x;
    }
    longest = fmax(longest, sqrt(sum));
  }
  /* rounding can lengthen a vector by half the root of its dimensions */
  double scale = fmin((NEIGHBOUR_MAX_NORM - sqrt(dimension)) / longest, INT16_MAX - 1);
  for (size_t r = 0; r < s->n; r++) {
    int16_t *row = s->rows + r * s->width;
    for (uint32_t i = 0; i < dimension; i++) {
      row[i] = (int16_t)round(vectors[r * dimension + i] / largest * scale);
      s->norms[r] += (int64_t)row[i] * row[i];
    }
  }
}

/* ---- Comparing ---- */

static int32_t neighbour_product(const int16_t *a, const int16_t *b, size_t width) {
  int32_t sum = 0;
  for (size_t i = 0; i < width; i += NEIGHBOUR_STEP) {
    int32_t part = 0;
    for (int j = 0; j < NEIGHBOUR_STEP; j++) part += (int32_t)a[i + (size_t)j] * b[i + (size_t)j];
    sum += part;
  }
  return sum;
}

/* Row `i` learns that `other` is this far away. */
static void neighbour_offer(neighbour_search *s, size_t i, size_t other, int64_t distance) {
  uint32_t *nearest = s->nearest + i * s->k, at = s->found[i];
  int64_t *distances = s->distances + i * s->k;
  if (at == s->k) {
    /* `other` comes in ascending order, so that of equal ones the first stays */
    if (distance > distances[at - 1] || (distance == distances[at - 1] && other > nearest[at - 1])) return;
    at--;
  } else {
    s->found[i]++;
  }
  for (; at > 0 && (distances[at - 1] > distance || (distances[at - 1] == distance && nearest[at - 1] > other)); at--) {
    distances[at] = distances[at - 1];
    nearest[at] = nearest[at - 1];
  }
  distances[at] = distance;
  nearest[at] = (uint32_t)other;
}

static void neighbour_compare_blocks(neighbour_search *s, size_t a, size_t b) {
  size_t a_end = a + NEIGHBOUR_BLOCK < s->n ? a + NEIGHBOUR_BLOCK : s->n;
  size_t b_end = b + NEIGHBOUR_BLOCK < s->n ? b + NEIGHBOUR_BLOCK : s->n;
  for (size_t i = a; i < a_end; i++) {
    for (size_t j = b; j < b_end && j < i; j++) {
      int64_t distance = s->norms[i] + s->norms[j] -
                         2 * (int64_t)neighbour_product(s->rows + i * s->width, s->rows + j * s->width, s->width);
      neighbour_offer(s, i, j, distance);
      neighbour_offer(s, j, i, distance);
    }
  }
}

lode_status op_neighbours_find(const float *vectors, size_t n, uint32_t dimension, uint32_t k, uint32_t *nearest,
                               lode_progress progress, lode_error *err) {
  neighbour_search s = {.n = n, .k = k, .nearest = nearest};
  lode_status st = LODE_OK;
  if (k == 0 || n == 0) return LODE_OK;
  s.width = ((size_t)dimension + NEIGHBOUR_STEP - 1) / NEIGHBOUR_STEP * NEIGHBOUR_STEP;
  s.rows = mem_calloc(n * s.width, sizeof *s.rows);
  s.norms = mem_calloc(n, sizeof *s.norms);
  s.distances = mem_calloc(n * k, sizeof *s.distances);
  s.found = mem_calloc(n, sizeof *s.found);
  if (!s.rows || !s.norms || !s.distances || !s.found) TRY_GOTO(err_nomem(err));
  neighbour_round(&s, vectors, dimension);
  for (size_t a = 0; a < n; a += NEIGHBOUR_BLOCK) {
    if (!err_go_on(progress, "comparing", a, n)) TRY_GOTO(err_set(err, LODE_CANCELLED, "the map was not finished"));
    for (size_t b = 0; b <= a; b += NEIGHBOUR_BLOCK) neighbour_compare_blocks(&s, a, b);
  }
done:
  mem_free(s.rows);
  mem_free(s.norms);
  mem_free(s.distances);
  mem_free(s.found);
  return st;
}

double op_neighbours_share(const uint32_t *shown, uint32_t shown_k, uint32_t near, const uint32_t *real,
                           uint32_t real_k, uint32_t far, size_t n) {
  uint64_t hits = 0;
  if (near > shown_k) near = shown_k;
  if (far > real_k) far = real_k;
  if (n == 0 || near == 0) return 1;
  for (size_t r = 0; r < n; r++)
    for (uint32_t i = 0; i < near; i++)
      for (uint32_t j = 0; j < far; j++)
        if (shown[r * shown_k + i] == real[r * real_k + j]) {
          hits++;
          break;
        }
  return (double)hits / (double)(n * near);
}
