/* SPDX-License-Identifier: Apache-2.0 */
/* import_input.h - the input of an import, as lines and as bytes. */
#ifndef LODE_API_IMPORT_INPUT_H
#define LODE_API_IMPORT_INPUT_H

#include "base/base.h"

typedef struct api_input {
  lode_read_fn *read;
  void *ctx;
  char *data;
  size_t cap, at, end;
  bool eof;
} api_input;
LODE_MUST lode_status api_input_init(api_input *in, lode_read_fn *read, void *ctx, lode_error *err);
void api_input_release(api_input *in);
/* The next line without its newline; *more is false at the end. A line longer than max is LODE_LIMIT. */
LODE_MUST lode_status api_input_line(api_input *in, size_t max, lode_str *line, bool *more, lode_error *err);
/* Reads n bytes; fewer only at the end of the stream. ctx is an api_input: a vec_read_fn. */
LODE_MUST lode_status api_input_bytes(void *ctx, void *out, size_t n, size_t *got, lode_error *err);

#endif
