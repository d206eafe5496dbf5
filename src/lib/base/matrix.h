/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.h - reads the vectors of .npy and .fvecs streams. */
#ifndef LODE_BASE_MATRIX_H
#define LODE_BASE_MATRIX_H

#include "base/base.h"

/* Reads n bytes; fewer only at the end of the stream. */
typedef lode_status vec_read_fn(void *ctx, void *out, size_t n, size_t *got, lode_error *err);

typedef struct vec_matrix {
  lode_format format; /* LODE_NPY or LODE_FVECS */
  bool allow_vector;  /* .npy: an array with one axis is one row */
  vec_read_fn *read;
  void *ctx;
  /* The rest is set by vec_matrix_begin(). */
  uint64_t rows;  /* .npy: from the header */
  uint32_t dim;   /* .npy: of all rows */
  unsigned width; /* bytes per element */
  uint64_t at;    /* rows read so far */
} vec_matrix;

/* Reads the header. Input that is not of this format is LODE_INVALID. */
LODE_MUST lode_status vec_matrix_begin(vec_matrix *m, lode_error *err);
/* Appends the floats of the next row to `out`; *more is false at the end. The rows of an .fvecs may differ in *dim.
 * Elements may be infinite or NaN. */
LODE_MUST lode_status vec_matrix_next(vec_matrix *m, strbuf *out, uint32_t *dim, bool *more, lode_error *err);

#endif
