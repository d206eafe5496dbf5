/* SPDX-License-Identifier: Apache-2.0 */
/* quant_decode.h - the vector of a row on the grid (quant_grid.h), eight numbers at a time; for quant*.c, each of which
 * compiles it for its instruction set. */
#ifndef LODE_KERNEL_QUANT_DECODE_H
#define LODE_KERNEL_QUANT_DECODE_H

#include "kernel/quant_grid.h"

enum { QUANT_DECODE_LANES = 8 };
typedef unsigned char quant_bytes8 __attribute__((vector_size(QUANT_DECODE_LANES)));
typedef int32_t quant_ints8 __attribute__((vector_size(QUANT_DECODE_LANES * sizeof(int32_t))));
typedef float quant_floats8 __attribute__((vector_size(QUANT_DECODE_LANES * sizeof(float))));

/* Each bit of a byte as a byte of its own, 0 or 1. */
static inline __attribute__((always_inline)) uint64_t quant_spread_bits(unsigned char bits) {
  uint64_t each = (bits * 0x0101010101010101u) & 0x8040201008040201u;
  return (each + 0x7F7F7F7F7F7F7F7Fu) >> 7 & 0x0101010101010101u;
}

/* From dimension j on. */
static inline __attribute__((always_inline)) void quant_decode_from(const quant_grid *grid, const unsigned char *row,
                                                                    const unsigned char *low, size_t j, size_t dim,
                                                                    float *vector) {
  for (; j + QUANT_DECODE_LANES <= dim; j += QUANT_DECODE_LANES) {
    uint64_t codes;
    quant_bytes8 bytes;
    memcpy(&codes, row + j, sizeof codes);
    codes &= 0x7F7F7F7F7F7F7F7Fu;
    if (grid->step == 2) codes = codes << 1 | quant_spread_bits(low[j / 8]);
    memcpy(&bytes, &codes, sizeof bytes);
    quant_floats8 numbers =
        __builtin_convertvector(__builtin_convertvector(bytes, quant_ints8) + grid->base, quant_floats8);
    memcpy(vector + j, &numbers, sizeof numbers);
  }
  for (; j < dim; j++) {
    uint32_t code = row[j] & 127u;
    if (grid->step == 2) code = code << 1 | (low[j / 8] >> (j % 8) & 1u);
    vector[j] = (float)((int32_t)code + grid->base);
  }
}

#endif
