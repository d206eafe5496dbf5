/* SPDX-License-Identifier: Apache-2.0 */
/* import_input.c - the input of an import, as lines and as bytes. */
#include "api/import_input.h"

enum { INPUT_INITIAL_BYTES = 1 << 16 };

lode_status api_input_init(api_input *in, lode_read_fn *read, void *ctx, lode_error *err) {
  *in = (api_input){.read = read, .ctx = ctx};
  if (!read) return err_set(err, LODE_INVALID, "an import needs a function to read from");
  return mem_grow(&in->data, &in->cap, INPUT_INITIAL_BYTES, 1) ? LODE_OK : err_nomem(err);
}

void api_input_release(api_input *in) {
  mem_free(in->data);
  *in = (api_input){0};
}

/* Reads more input after what is in the buffer; moves or grows the buffer if it is full. */
static lode_status input_fill(api_input *in, lode_error *err) {
  if (in->at > 0 && (in->at == in->end || in->end == in->cap)) {
    memmove(in->data, in->data + in->at, in->end - in->at);
    in->end -= in->at;
    in->at = 0;
  }
  if (in->end == in->cap && !mem_grow(&in->data, &in->cap, in->cap + 1, 1)) return err_nomem(err);
  int64_t n = in->read(in->ctx, in->data + in->end, in->cap - in->end);
  if (n < 0 || (uint64_t)n > in->cap - in->end) return err_set(err, LODE_IO, "reading the import failed");
  in->end += (size_t)n;
  in->eof = n == 0;
  return LODE_OK;
}

lode_status api_input_line(api_input *in, size_t max, lode_str *line, bool *more, lode_error *err) {
  size_t looked = 0;
  char *end;
  *line = (lode_str){NULL, 0};
  *more = false;
  for (;;) {
    size_t have = in->end - in->at;
    end = have > looked ? memchr(in->data + in->at + looked, '\n', have - looked) : NULL;
    size_t len = end ? (size_t)(end - in->data) - in->at : have;
    if (len > max)
      return err_set(err, LODE_LIMIT, "the line is longer than %zu bytes: is this JSON, one object a line?", max);
    if (end || in->eof) break;
    looked = have;
    TRY(input_fill(in, err));
  }
  if (!end && in->at == in->end) return LODE_OK;
  size_t len = (end ? (size_t)(end - in->data) : in->end) - in->at;
  *line = (lode_str){in->data + in->at, len};
  in->at += len + (end != NULL);
  *more = true;
  return LODE_OK;
}

lode_status api_input_bytes(void *ctx, void *out, size_t n, size_t *got, lode_error *err) {
  api_input *in = ctx;
  *got = 0;
  while (*got < n) {
    size_t have = in->end - in->at, count = have < n - *got ? have : n - *got;
    if (count) memcpy((char *)out + *got, in->data + in->at, count);
    in->at += count;
    *got += count;
    if (*got == n || in->eof) break;
    TRY(input_fill(in, err));
  }
  return LODE_OK;
}
