/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - see layout.h.
 *
 * Two points attract each other when one is among the k nearest of the other (with weight 1, or 2 when each is), and
 * all points repel each other by 1 / (1 + distance^2)^2. In the first rounds attraction is exaggerated, so that
 * clusters form before they spread. A round sums the forces and moves each point, with momentum and a gain for each
 * coordinate that grows while its direction stays.
 *
 * The quadtree is an array of cells in preorder over the points in the order of their Morton codes, so it is built and
 * walked without recursion: a cell that is far enough counts as one point and `skip` is the next cell, otherwise the
 * next in the array is its first child. Centres come from running sums over the points in that order.
 */
#include "commands/layout.h"

#include <math.h>

enum {
  LAYOUT_ROUNDS = 500,
  LAYOUT_EARLY_ROUNDS = 120,
  LAYOUT_LEVELS = 16, /* bits of a coordinate in a Morton code */
  LAYOUT_LEAF_POINTS = 8,
  LAYOUT_RADIX = 1 << 11,
};
#define LAYOUT_EXAGGERATION 12.0
#define LAYOUT_THETA 0.9 /* a cell is one point when it is smaller than this share of its distance */
#define LAYOUT_START 1e-4
#define LAYOUT_MIN_GAIN 0.01

typedef struct layout_cell {
  double x, y, size2; /* centre of its points, square of its width */
  uint32_t first, end, skip;
  bool leaf;
} layout_cell;

typedef struct layout_state {
  size_t n;
  double *xy;
  /* attraction: of point i the edges from edge_start[i] to edge_start[i + 1] */
  uint32_t *edge_start, *edges;
  double weight;                 /* of each edge */
  double *force, *speed, *gain;  /* 2 n each */
  uint64_t *codes, *codes_other; /* Morton code << 32 | point, sorted */
  double *sorted, *sums;         /* positions in that order; running sums of them, one more */
  layout_cell *cells;
  size_t n_cells, max_cells;
  double origin[2], width;
} layout_state;

/* ---- Attraction ---- */

/* The graph in both directions; an edge that is there in both is in it twice. */
static void layout_make_edges(layout_state *s, const op_layout_points *in, uint32_t *fill) {
  memset(s->edge_start, 0, (s->n + 1) * sizeof *s->edge_start);
  for (size_t i = 0; i < s->n; i++)
    for (uint32_t j = 0; j < in->k; j++) s->edge_start[in->nearest[i * in->stride + j] + 1]++;
  for (size_t i = 0; i < s->n; i++) s->edge_start[i + 1] += s->edge_start[i] + in->k;
  for (size_t i = 0; i < s->n; i++) fill[i] = s->edge_start[i];
  for (size_t i = 0; i < s->n; i++) {
    for (uint32_t j = 0; j < in->k; j++) {
      uint32_t other = in->nearest[i * in->stride + j];
      s->edges[fill[i]++] = other;
      s->edges[fill[other]++] = (uint32_t)i;
    }
  }
  s->weight = 1 / (2.0 * (double)s->n * in->k);
}

static void layout_attract(layout_state *s, double factor) {
  for (size_t i = 0; i < s->n; i++) {
    double x = s->xy[2 * i], y = s->xy[2 * i + 1], fx = 0, fy = 0;
    for (uint32_t e = s->edge_start[i]; e < s->edge_start[i + 1]; e++) {
      double dx = s->xy[2 * s->edges[e]] - x, dy = s->xy[2 * s->edges[e] + 1] - y;
      double pull = 1 / (1 + dx * dx + dy * dy);
      fx += pull * dx;
      fy += pull * dy;
    }
    s->force[2 * i] = factor * s->weight * fx;
    s->force[2 * i + 1] = factor * s->weight * fy;
  }
}

/* ---- The quadtree ---- */

static uint64_t layout_spread_bits(uint32_t v) { /* 16 bits to every second of 32 */
  uint64_t x = v & 0xffff;
  x = (x | x << 8) & 0x00ff00ff;
  x = (x | x << 4) & 0x0f0f0f0f;
  x = (x | x << 2) & 0x33333333;
  return (x | x << 1) & 0x55555555;
}

static void layout_sort_codes(layout_state *s) {
  for (unsigned shift = 32; shift < 64; shift += 11) {
    size_t at[LAYOUT_RADIX + 1] = {0};
    for (size_t i = 0; i < s->n; i++) at[(s->codes[i] >> shift & (LAYOUT_RADIX - 1)) + 1]++;
    for (size_t v = 0; v < LAYOUT_RADIX; v++) at[v + 1] += at[v];
    for (size_t i = 0; i < s->n; i++) s->codes_other[at[s->codes[i] >> shift & (LAYOUT_RADIX - 1)]++] = s->codes[i];
    uint64_t *was = s->codes;
    s->codes = s->codes_other;
    s->codes_other = was;
  }
}

static void layout_order_points(layout_state *s) {
  double low[2] = {s->xy[0], s->xy[1]}, high[2] = {s->xy[0], s->xy[1]};
  for (size_t i = 0; i < 2 * s->n; i++) {
    low[i % 2] = fmin(low[i % 2], s->xy[i]);
    high[i % 2] = fmax(high[i % 2], s->xy[i]);
  }
  s->width = fmax(high[0] - low[0], high[1] - low[1]) * (1 + 1e-9);
  if (s->width <= 0) s->width = 1;
  memcpy(s->origin, low, sizeof low);
  double scale = (1 << LAYOUT_LEVELS) / s->width;
  for (size_t i = 0; i < s->n; i++) {
    uint32_t x = (uint32_t)((s->xy[2 * i] - low[0]) * scale), y = (uint32_t)((s->xy[2 * i + 1] - low[1]) * scale);
    s->codes[i] = (layout_spread_bits(x) | layout_spread_bits(y) << 1) << 32 | i;
  }
  layout_sort_codes(s);
  s->sums[0] = s->sums[1] = 0;
  for (size_t i = 0; i < s->n; i++) {
    size_t point = (uint32_t)s->codes[i];
    for (size_t k = 0; k < 2; k++) {
      s->sorted[2 * i + k] = s->xy[2 * point + k];
      s->sums[2 * i + 2 + k] = s->sums[2 * i + k] + s->xy[2 * point + k];
    }
  }
}

/* Where the points of [first, end) stop having the digit `digit` or a smaller one at this level. */
static uint32_t layout_digit_end(const layout_state *s, uint32_t first, uint32_t end, unsigned shift, unsigned digit) {
  while (first < end) {
    uint32_t middle = first + (end - first) / 2;
    if ((s->codes[middle] >> shift & 3) <= digit)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/* A range of points that agree above this level, to become a cell. */
typedef struct layout_range {
  uint32_t first, end;
  int level;
} layout_range;

static size_t layout_push_children(const layout_state *s, const layout_range *at, layout_range *stack, size_t n) {
  unsigned shift = 32 + 2 * (unsigned)(LAYOUT_LEVELS - 1 - at->level);
  uint32_t cut[5] = {at->first};
  for (unsigned d = 0; d < 4; d++) cut[d + 1] = d == 3 ? at->end : layout_digit_end(s, cut[d], at->end, shift, d);
  for (int d = 3; d >= 0; d--) /* the first is taken first */
    if (cut[d] < cut[d + 1]) stack[n++] = (layout_range){cut[d], cut[d + 1], at->level + 1};
  return n;
}

static void layout_build_tree(layout_state *s) {
  layout_range stack[4 * LAYOUT_LEVELS + 4];
  uint32_t open[LAYOUT_LEVELS + 2]; /* cells whose end is not known yet, each in the one before */
  size_t n = 0, n_open = 0;
  s->n_cells = 0;
  stack[n++] = (layout_range){0, (uint32_t)s->n, 0};
  while (n > 0) {
    layout_range at = stack[--n];
    uint32_t count = at.end - at.first, cell = (uint32_t)s->n_cells++;
    /* levels in which all its points are in one quarter make no cells */
    uint64_t apart = (s->codes[at.first] ^ s->codes[at.end - 1]) >> 32;
    while (at.level < LAYOUT_LEVELS && apart >> (2 * (LAYOUT_LEVELS - 1 - at.level)) == 0) at.level++;
    while (n_open > 0 && s->cells[open[n_open - 1]].end <= at.first) s->cells[open[--n_open]].skip = cell;
    bool leaf = count <= LAYOUT_LEAF_POINTS || at.level >= LAYOUT_LEVELS;
    double size = ldexp(s->width, -at.level);
    s->cells[cell] = (layout_cell){.x = (s->sums[2 * at.end] - s->sums[2 * at.first]) / count,
                                   .y = (s->sums[2 * at.end + 1] - s->sums[2 * at.first + 1]) / count,
                                   .size2 = size * size,
                                   .first = at.first,
                                   .end = at.end,
                                   .leaf = leaf};
    open[n_open++] = cell;
    if (!leaf) n = layout_push_children(s, &at, stack, n);
  }
  while (n_open > 0) s->cells[open[--n_open]].skip = (uint32_t)s->n_cells;
}

/* ---- Repulsion ---- */

/* The force on the point at this place of the order, not yet divided by the sum of all (which is returned). */
static double layout_repel_one(const layout_state *s, uint32_t place, double force[2]) {
  double x = s->sorted[2 * place], y = s->sorted[2 * place + 1], sum = 0, fx = 0, fy = 0;
  for (uint32_t c = 0; c < s->n_cells;) {
    const layout_cell *cell = &s->cells[c];
    double dx = x - cell->x, dy = y - cell->y, far2 = dx * dx + dy * dy;
    if (cell->size2 < LAYOUT_THETA * LAYOUT_THETA * far2 && (place < cell->first || place >= cell->end)) {
      double q = 1 / (1 + far2), many = (cell->end - cell->first) * q;
      sum += many;
      fx += many * q * dx;
      fy += many * q * dy;
      c = cell->skip;
      continue;
    }
    for (uint32_t p = cell->first; cell->leaf && p < cell->end; p++) {
      if (p == place) continue;
      double px = x - s->sorted[2 * p], py = y - s->sorted[2 * p + 1], q = 1 / (1 + px * px + py * py);
      sum += q;
      fx += q * q * px;
      fy += q * q * py;
    }
    c = cell->leaf ? cell->skip : c + 1;
  }
  force[0] = fx;
  force[1] = fy;
  return sum;
}

/* `apart` has room for two numbers of each point. */
static void layout_repel(layout_state *s, double *apart) {
  double sum = 0;
  layout_order_points(s);
  layout_build_tree(s);
  for (uint32_t place = 0; place < s->n; place++) sum += layout_repel_one(s, place, apart + 2 * (size_t)place);
  if (sum <= 0) return;
  for (size_t place = 0; place < s->n; place++)
    for (size_t k = 0; k < 2; k++) s->force[2 * (uint32_t)s->codes[place] + k] += apart[2 * place + k] / sum;
}

/* ---- Moving ---- */

static void layout_move(layout_state *s, double rate, double momentum) {
  for (size_t i = 0; i < 2 * s->n; i++) {
    bool onward = s->force[i] * s->speed[i] > 0;
    s->gain[i] = onward ? s->gain[i] + 0.2 : fmax(s->gain[i] * 0.8, LAYOUT_MIN_GAIN);
    s->speed[i] = momentum * s->speed[i] + rate * s->gain[i] * s->force[i];
    s->xy[i] += s->speed[i];
  }
}

/* The start: small, and no two points in exactly the same place, where they would stay together. */
static void layout_start(layout_state *s) {
  double largest = 0;
  for (size_t i = 0; i < 2 * s->n; i++) largest = fmax(largest, fabs(s->xy[i]));
  for (size_t i = 0; i < 2 * s->n; i++) {
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    double jitter = (double)((x ^ x >> 31) >> 11) * 0x1p-53 - 0.5;
    s->xy[i] = LAYOUT_START * ((largest > 0 ? s->xy[i] / largest : 0) + 1e-2 * jitter);
    s->gain[i] = 1;
  }
}

/* Into the square from -1 to 1, the middle of what the points fill at its centre. */
static void layout_fit(double *xy, size_t n) {
  double low[2] = {xy[0], xy[1]}, high[2] = {xy[0], xy[1]};
  for (size_t i = 0; i < 2 * n; i++) {
    low[i % 2] = fmin(low[i % 2], xy[i]);
    high[i % 2] = fmax(high[i % 2], xy[i]);
  }
  double half = fmax(high[0] - low[0], high[1] - low[1]) / 2;
  for (size_t i = 0; i < 2 * n; i++)
    xy[i] = half > 0 ? fmax(-1, fmin(1, (xy[i] - (low[i % 2] + high[i % 2]) / 2) / half)) : 0;
}

static lode_status layout_run(layout_state *s, double *apart, lode_progress progress, lode_error *err) {
  double rate = fmax((double)s->n / LAYOUT_EXAGGERATION, 50) * 4;
  layout_start(s);
  for (uint32_t round = 0; round < LAYOUT_ROUNDS; round++) {
    bool early = round < LAYOUT_EARLY_ROUNDS;
    if (!err_go_on(progress, "placing", round, LAYOUT_ROUNDS))
      return err_set(err, LODE_CANCELLED, "the map was not finished");
    layout_attract(s, early ? LAYOUT_EXAGGERATION : 1);
    for (size_t i = 0; i < 2 * s->n; i++) apart[i] = 0;
    layout_repel(s, apart);
    layout_move(s, rate, early ? 0.5 : 0.8);
  }
  layout_fit(s->xy, s->n);
  return LODE_OK;
}

lode_status op_layout_compute(op_layout_points *in, lode_progress progress, lode_error *err) {
  size_t n = in->n, edges = 2 * n * in->k;
  layout_state s = {.n = n, .xy = in->xy, .max_cells = 2 * n + 2};
  lode_status st = LODE_OK;
  if (n < 3 || in->k == 0) return LODE_OK;
  double *numbers = mem_calloc(14 * n + 2, sizeof *numbers);
  uint32_t *fill = mem_calloc(n, sizeof *fill);
  uint64_t *codes = mem_calloc(2 * n, sizeof *codes);
  s.edge_start = mem_calloc(n + 1, sizeof *s.edge_start);
  s.edges = mem_calloc(edges, sizeof *s.edges);
  s.cells = mem_calloc(s.max_cells, sizeof *s.cells);
  if (!numbers || !fill || !codes || !s.edge_start || !s.edges || !s.cells) TRY_GOTO(err_nomem(err));
  s.force = numbers;
  s.speed = numbers + 2 * n;
  s.gain = numbers + 4 * n;
  s.sorted = numbers + 6 * n;
  s.sums = numbers + 8 * n;
  s.codes = codes;
  s.codes_other = codes + n;
  layout_make_edges(&s, in, fill);
  TRY_GOTO(layout_run(&s, numbers + 10 * n + 2, progress, err));
done:
  mem_free(numbers);
  mem_free(fill);
  mem_free(codes);
  mem_free(s.edge_start);
  mem_free(s.edges);
  mem_free(s.cells);
  return st;
}
