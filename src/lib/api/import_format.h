/* SPDX-License-Identifier: Apache-2.0 */
/* import_format.h - input streams of lines and matrices, for import. */
#ifndef LODE_API_IMPORT_FORMAT_H
#define LODE_API_IMPORT_FORMAT_H

#include "base/base.h"

typedef struct api_input {
  lode_read_fn *read;
  void *ctx;
  char *data;
  size_t cap, at, end;
  bool eof;
} api_input;
lode_status api_input_init(api_input *in, lode_read_fn *read, void *ctx, lode_error *err);
void api_input_release(api_input *in);
/* The next line without its newline; *more is false at the end. A line longer than max is LODE_LIMIT. */
lode_status api_input_line(api_input *in, size_t max, lode_str *line, bool *more, lode_error *err);
/* Reads n bytes; fewer only at the end of the stream. */
lode_status api_input_bytes(api_input *in, void *out, size_t n, size_t *got, lode_error *err);

typedef struct api_matrix {
  lode_format format;
  uint64_t rows;  /* .npy: from the header */
  uint32_t dim;   /* .npy: of all rows */
  unsigned width; /* bytes per element */
  uint64_t at;    /* rows read so far */
} api_matrix;
lode_status api_matrix_begin(api_matrix *m, api_input *in, lode_format format, lode_error *err);
/* Reads the next row into `row` (grown as needed); *more is false at the end. */
lode_status api_matrix_next(api_matrix *m, api_input *in, strbuf *row, uint32_t *dim, bool *more, lode_error *err);

#endif
