/* SPDX-License-Identifier: Apache-2.0 */
/* quant_grid.c - see quant_grid.h. */
#include "kernel/quant_grid.h"

#include <math.h>

#include "kernel/quant.h"

enum {
  GRID_NUMBERS = 128, /* of step 1; twice as many of step 2 */
  GRID_MISFITS = 16,  /* of so many vectors one may be off the grid: it costs what every vector costs without a grid */
};

static const quant_grid grids[QUANT_GRIDS] = {{1, -64}, {1, 0}, {2, 0}, {2, -128}};

void quant_grid_fit_add(quant_grid_fit *fit, const float *vector, size_t dim) {
  float least = INFINITY, most = -INFINITY;
  fit->n++;
  for (size_t j = 0; j < dim; j++) {
    float v = vector[j];
    if (!(fabsf(v) <= 2 * GRID_NUMBERS) || v != (float)(int32_t)v) return;
    least = v < least ? v : least;
    most = v > most ? v : most;
  }
  for (size_t i = 0; i < QUANT_GRIDS; i++) {
    float base = (float)grids[i].base;
    fit->fitting[i] += least >= base && most < base + (float)(GRID_NUMBERS * grids[i].step);
  }
}

quant_grid quant_grid_of_fit(const quant_grid_fit *fit) {
  for (size_t i = 0; i < QUANT_GRIDS; i++)
    if (fit->n > 0 && (fit->n - fit->fitting[i]) * GRID_MISFITS < fit->n) return grids[i];
  return (quant_grid){0};
}

float quant_grid_middle(const quant_grid *grid) {
  return (float)(grid->base + (int32_t)grid->step * QUANT_ZERO) + (grid->step == 2 ? 0.5f : 0);
}

bool quant_grid_encode(const quant_grid *grid, const float *vector, uint32_t dim, unsigned char *row) {
  float base = (float)grid->base, numbers = (float)(GRID_NUMBERS * grid->step);
  for (size_t j = 0; j < dim; j++) {
    float i = vector[j] - base;
    if (!(i >= 0 && i < numbers) || i != (float)(int32_t)i) return false;
    row[j] = (unsigned char)((uint32_t)i / grid->step);
  }
  return true;
}

void quant_grid_encode_low(const quant_grid *grid, const float *vector, uint32_t dim, unsigned char *low) {
  memset(low, 0, quant_grid_low_bytes(grid, dim));
  if (grid->step != 2) return;
  for (size_t j = 0; j < dim; j++) {
    float i = vector[j] - (float)grid->base;
    if (i >= 0 && i < 2 * GRID_NUMBERS) low[j / 8] |= (unsigned char)(((uint32_t)i & 1) << (j % 8));
  }
}
