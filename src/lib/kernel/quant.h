/* SPDX-License-Identifier: Apache-2.0 */
/* quant.h - vectors quantised to one byte per dimension, and distances between them that are the same on every CPU.
 *
 * A model belongs to a segment: a power of two that brings the values near 1, and the mean of the vectors. A row is its
 * vector times that unit (for cosine: divided by its length), minus the mean, divided by a scale of its own, rounded to
 * integers from -63 to 63, and stored as 1 to 127 (64 is zero). A query is treated likewise, in steps of 1/127 of its
 * greatest element, as -127 to 127. So a dot product is a sum of products of a 7-bit unsigned and an 8-bit signed
 * number: two of them are at most 2 * 127 * 127 = 32,258, which is why the 16-bit steps of AVX2 (vpmaddubsw) cannot
 * saturate, and 65,535 of them fit in 32 bits: all implementations give the exact sum.
 *
 * Where vectors are whole numbers in a small range, rows are on a grid instead, and hold them exactly: quant_grid.h.
 *
 *   row:  a byte for each dimension, at least 96, and zeros up to the stride. Seven bits of a byte are the code (0
 *         after the last dimension); the top bits of the first 96 bytes, lowest first, are float scale | float bias |
 *         u32 slot (little-endian)
 *
 * So rows of 128, 256, 384, ... dimensions, as most models have, are whole cache lines: a row of 128 is read in two of
 * them, not in three, and memory is what walks wait for. One instruction gathers the top bits of 64 (32, 16) bytes.
 *
 * The key of a row for a query orders rows by distance: bias - scale_q * scale * dot, with one rounding for each step,
 * so that it has the same bits everywhere. bias is the squared length of the decoded row (l2 and cosine; 1 more for a
 * zero vector with cosine, whose distance is 1 to everything), 0 for ip. Keys are only comparable for the same query.
 *
 * Pure: no files, no clock. LODE_SIMD forces an implementation, as in kernel.h.
 */
#ifndef LODE_KERNEL_QUANT_H
#define LODE_KERNEL_QUANT_H

#include "kernel/quant_grid.h"

enum {
  QUANT_MIN_ROW_BYTES = 96, /* smallest row: one byte for each bit of scale, bias and slot */
  QUANT_SLOT_AT = 64,       /* the bytes from here to the last of these hold the slot */
  QUANT_ZERO = 64,          /* the code of zero in a row */
  QUANT_ROW_MAX = 63,       /* greatest magnitude in a row */
  QUANT_QUERY_MAX = 127,    /* greatest magnitude in a query */
  QUANT_QUERY_ALIGN = 64,   /* alignment of a query's codes, which are padded with zeros to a multiple of it */
};

typedef struct quant_model {
  lode_metric metric;
  uint32_t dim;
  float unit;  /* a power of two that values are multiplied by */
  float *mean; /* dim values, in units */
  quant_grid grid;
} quant_model;

/* ---- A model from a sample of the rows (all of them, or some thousands) ---- */

typedef struct quant_fit {
  lode_metric metric;
  uint32_t dim;
  uint64_t n;
  double *sums;
  float greatest;
  quant_grid_fit grid;
} quant_fit;
LODE_MUST lode_status quant_fit_begin(quant_fit *fit, lode_metric metric, uint32_t dim, lode_error *err);
void quant_fit_add(quant_fit *fit, const float *vector);
/* Writes the model; its mean is the caller's array of dim floats. The fit must be released afterwards. */
void quant_fit_end(const quant_fit *fit, float *mean, quant_model *model);
void quant_fit_release(quant_fit *fit);

/* ---- Rows ---- */

/* Bytes from one row to the next: a multiple of 8, or of a cache line if that costs less than a sixth. */
size_t quant_stride(uint32_t dim);
/* Writes one row (stride bytes). Returns the squared length of the vector in the model's units, before centring. */
float quant_encode_row(const quant_model *model, const float *vector, uint32_t slot, unsigned char *row);

/* The top bits of 8 bytes, or of 32. */
static inline uint32_t quant_top_bits8(const unsigned char *bytes) {
  uint64_t x;
  memcpy(&x, bytes, sizeof x);
  return (uint32_t)((x >> 7 & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}
static inline uint32_t quant_top_bits32(const unsigned char *bytes) {
  return quant_top_bits8(bytes) | quant_top_bits8(bytes + 8) << 8 | quant_top_bits8(bytes + 16) << 16 |
         quant_top_bits8(bytes + 24) << 24;
}
static inline float quant_float_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static inline float quant_row_scale(const unsigned char *row) { return quant_float_of_bits(quant_top_bits32(row)); }
static inline float quant_row_bias(const unsigned char *row) { return quant_float_of_bits(quant_top_bits32(row + 32)); }
static inline uint32_t quant_row_slot(const unsigned char *row) { return quant_top_bits32(row + QUANT_SLOT_AT); }
void quant_set_row_bias(unsigned char *row, float bias);

/* The scale of rows that are on the model's grid, and of no others. */
static inline float quant_grid_scale(const quant_model *model) { return (float)model->grid.step * model->unit; }
static inline bool quant_row_is_on_grid(const quant_model *model, const unsigned char *row) {
  return model->grid.step != 0 && quant_row_scale(row) == quant_grid_scale(model);
}

/* Are the rows equal except for their slots? And a hash that is equal then. */
bool quant_row_equal(const unsigned char *a, const unsigned char *b, size_t stride);
uint32_t quant_row_hash(const unsigned char *row, size_t stride);
/* A hash of the codes and of the scale to about 1 in 64, which is their precision: rows with the same one lie within
 * the error of codes of each other. */
uint32_t quant_cell_hash(const unsigned char *row, uint32_t dim);

/* Squared length of a decoded row: scale * scale * the sum of squares of its codes. */
float quant_row_norm2(const unsigned char *row, uint32_t dim);

/* ---- Queries ---- */

typedef struct quant_query {
  const int8_t *code; /* aligned to QUANT_QUERY_ALIGN */
  uint32_t dim;
  int32_t offset; /* excess of the dot product with the stored bytes: 64 times the sum of the codes */
  float scale;    /* twice the query's scale */
} quant_query;

size_t quant_query_bytes(uint32_t dim); /* size of the buffer below */
void quant_query_of_vector(const quant_model *model, const float *vector, int8_t *buffer, quant_query *query);
/* Uses a row as a query for other rows. */
void quant_query_of_row(const unsigned char *row, uint32_t dim, int8_t *buffer, quant_query *query);
/* A query halfway between two rows. */
void quant_query_between(const unsigned char *a, const unsigned char *b, uint32_t dim, int8_t *buffer,
                         quant_query *query);

/* Keys of n rows. */
void quant_keys(const quant_query *query, const unsigned char *const *rows, size_t n, float *out);

/* Maps floats to unsigned integers of the same order; NaNs come last or first by their sign. */
static inline uint32_t quant_key_order(float key) {
  uint32_t u;
  memcpy(&u, &key, sizeof u);
  return u ^ ((u >> 31) ? 0xFFFFFFFFu : 0x80000000u);
}

static inline float quant_key_of_order(uint32_t order) {
  uint32_t u = order ^ ((order >> 31) ? 0x80000000u : 0xFFFFFFFFu);
  float key;
  memcpy(&key, &u, sizeof key);
  return key;
}

const char *quant_name(void);
/* For tests: like kernel_use(). */
bool quant_use(const char *name);

#endif
