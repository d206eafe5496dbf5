/* SPDX-License-Identifier: Apache-2.0 */
/* quant_grid.h - rows that hold their vectors exactly.
 *
 * Many vectors are whole numbers in a small range: pixels, histograms, embeddings that a model gives as bytes. If
 * nearly all of a segment are, its codes are not scaled row by row: a code is the number itself, or half of it. Then
 * one more bit for each dimension, its last one, makes a vector of a row again, with the same bits, and nothing has to
 * be read from a file to measure it.
 *
 *   step 1   128 numbers: base + code
 *   step 2   256 numbers: base + 2 * code + bit; the bits of a row are 64-bit words, lowest first
 *
 * Such a row has the scale of the grid, which no other row of the model has. A vector that does not fit is quantised
 * like any other. Cosine has no grid: its rows are divided by their lengths. Pure, and the same on every CPU.
 */
#ifndef LODE_KERNEL_QUANT_GRID_H
#define LODE_KERNEL_QUANT_GRID_H

#include "base/base.h"

enum { QUANT_GRID_STEP_MAX = 2, QUANT_GRID_BASE_MAX = 1 << 20 };

typedef struct quant_grid {
  uint32_t step; /* 0: none */
  int32_t base;
} quant_grid;

/* How many of some vectors fit each of the grids that there are, the finest first; begins as {0}. */
enum { QUANT_GRIDS = 4 };
typedef struct quant_grid_fit {
  uint64_t n, fitting[QUANT_GRIDS];
} quant_grid_fit;
void quant_grid_fit_add(quant_grid_fit *fit, const float *vector, size_t dim);
/* The first that all but a few fit. */
quant_grid quant_grid_of_fit(const quant_grid_fit *fit);

/* The number in the middle of the grid, which is the code QUANT_ZERO: rows are centred on it. */
float quant_grid_middle(const quant_grid *grid);
/* Bytes of a row's bits; 0 if there are none. */
static inline size_t quant_grid_low_bytes(const quant_grid *grid, uint32_t dim) {
  return grid->step == 2 ? ((size_t)dim + 63) / 64 * 8 : 0;
}
/* Writes the codes; false if the vector is not on the grid. */
bool quant_grid_encode(const quant_grid *grid, const float *vector, uint32_t dim, unsigned char *row);
/* Writes the bits of a vector that is on the grid (of another: some bits). */
void quant_grid_encode_low(const quant_grid *grid, const float *vector, uint32_t dim, unsigned char *low);
/* The vector of a row that is on the grid. */
void quant_grid_decode(const quant_grid *grid, const unsigned char *row, const unsigned char *low, uint32_t dim,
                       float *vector);

#endif
