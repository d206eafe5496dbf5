/* SPDX-License-Identifier: Apache-2.0 */
/* vector_file.c - see vector_file.h; base/matrix.c reads .npy and .fvecs. */
#include "ops/vector_file.h"

#include "base/json.h"
#include "base/matrix.h"
#include "ops/op_stream.h"

#include <ctype.h>
#include <math.h>

#define VECTORS_MAX_FILE_BYTES ((size_t)16 << 30)

static lode_status vectors_check_finite(const float *vectors, size_t n, uint32_t dimension, lode_error *err) {
  for (size_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < dimension; j++)
      if (!isfinite(vectors[i * dimension + j]))
        return err_set_at(err, LODE_INVALID, i, "vector %zu has NaN or an infinite number at place %u", i, j);
  return LODE_OK;
}

/* ---- .npy and .fvecs ---- */

/* Reads from the lode_str ctx, which loses what was read. */
static lode_status vectors_read_bytes(void *ctx, void *out, size_t n, size_t *got, lode_error *err) {
  lode_str *rest = ctx;
  (void)err;
  *got = n < rest->len ? n : rest->len;
  if (*got == 0) return LODE_OK;
  memcpy(out, rest->data, *got);
  *rest = (lode_str){rest->data + *got, rest->len - *got};
  return LODE_OK;
}

static lode_status vectors_parse_matrix(lode_str bytes, lode_format format, float **vectors, size_t *n,
                                        uint32_t *dimension, lode_error *err) {
  vec_matrix m = {.format = format, .allow_vector = true, .read = vectors_read_bytes, .ctx = &bytes};
  strbuf all = {0};
  uint32_t dim;
  bool more = true;
  lode_status st;
  TRY_GOTO(vec_matrix_begin(&m, err));
  for (;;) {
    TRY_GOTO(vec_matrix_next(&m, &all, &dim, &more, err));
    if (!more) break;
    if (*n && dim != *dimension)
      TRY_GOTO(err_set_at(err, LODE_INVALID, *n, "vector %zu has dimension %u, the first has %u", *n, dim, *dimension));
    *dimension = dim;
    (*n)++;
  }
done:
  *vectors = (float *)(void *)all.data; /* the caller frees it, also after a failure */
  return st;
}

/* ---- JSON: one array per line, or one array of arrays ---- */

typedef struct vectors_arrays {
  lode_str rest;
  bool wrapped; /* an array of arrays */
} vectors_arrays;

static char vectors_first_char(lode_str *text) { /* after white space; 0 at the end */
  while (text->len && isspace((unsigned char)*text->data)) text->data++, text->len--;
  return text->len ? *text->data : 0;
}

static vectors_arrays vectors_arrays_of(lode_str text) {
  vectors_arrays a = {.rest = text};
  if (vectors_first_char(&text) != '[') return a;
  text.data++, text.len--;
  if (vectors_first_char(&text) == '[') a = (vectors_arrays){text, true};
  return a;
}

/* The text of the next vector; false at the end. json_parse_floats rejects what is not an array of numbers. */
static bool vectors_next_array(vectors_arrays *a, lode_str *array) {
  if (vectors_first_char(&a->rest) == 0) return false;
  const char *end = memchr(a->rest.data, a->wrapped ? ']' : '\n', a->rest.len);
  size_t len = !end ? a->rest.len : (size_t)(end - a->rest.data) + a->wrapped;
  *array = (lode_str){a->rest.data, len};
  a->rest = (lode_str){a->rest.data + len, a->rest.len - len};
  char sign = a->wrapped ? vectors_first_char(&a->rest) : 0;
  if (sign == ',' || sign == ']')
    a->rest.data++, a->rest.len--;
  else if (sign)
    *array = (lode_str){array->data, (size_t)(a->rest.data + a->rest.len - array->data)}; /* no comma */
  if (sign == ']') a->wrapped = false; /* only white space may follow */
  return true;
}

static lode_status vectors_parse_json(lode_str text, float **vectors, size_t *n, uint32_t *dimension, lode_error *err) {
  lode_error why;
  vectors_arrays a = vectors_arrays_of(text);
  bool wrapped = a.wrapped;
  lode_str array;
  size_t cap = 0;
  float *row = mem_alloc(LODE_MAX_DIMENSION * sizeof *row);
  lode_status st = row ? LODE_OK : err_nomem(err);
  while (st == LODE_OK && (!wrapped || a.wrapped) && vectors_next_array(&a, &array)) {
    size_t dim = 0, total;
    st = json_parse_floats(array, row, LODE_MAX_DIMENSION, &dim, &why);
    if (st != LODE_OK || dim == 0)
      st = err_set_at(err, LODE_INVALID, *n, "vector %zu must be a JSON array of numbers%s%.300s", *n,
                      st != LODE_OK ? ": " : "", st != LODE_OK ? why.text : "");
    else if (*dimension && dim != *dimension)
      st = err_set_at(err, LODE_INVALID, *n, "vector %zu has dimension %zu, the first has %u", *n, dim, *dimension);
    else if (mem_mul_overflow(*n + 1, dim, &total) || !mem_grow(vectors, &cap, total, sizeof **vectors))
      st = err_nomem(err);
    if (st != LODE_OK) break;
    memcpy(*vectors + *n * dim, row, dim * sizeof *row);
    *dimension = (uint32_t)dim;
    (*n)++;
  }
  mem_free(row);
  if (st == LODE_OK && wrapped && (a.wrapped || vectors_first_char(&a.rest)))
    st = err_set(err, LODE_INVALID, "the array of vectors %s",
                 a.wrapped ? "does not end" : "is followed by something else");
  return st;
}

lode_status op_vectors_parse(lode_str bytes, lode_format format, float **vectors, size_t *n, uint32_t *dimension,
                             lode_error *err) {
  lode_status st;
  *vectors = NULL;
  *n = 0;
  *dimension = 0;
  if (format == LODE_JSONL)
    st = vectors_parse_json(bytes, vectors, n, dimension, err);
  else
    st = vectors_parse_matrix(bytes, format, vectors, n, dimension, err);
  if (st == LODE_OK && *n == 0) st = err_set(err, LODE_INVALID, "the file has no vectors");
  if (st == LODE_OK) st = vectors_check_finite(*vectors, *n, *dimension, err);
  if (st == LODE_OK) return st;
  mem_free(*vectors);
  *vectors = NULL;
  *n = 0;
  *dimension = 0;
  return st;
}

lode_format op_format_of_path(const char *path) {
  size_t len = strlen(path);
  if (len > 4 && strcmp(path + len - 4, ".npy") == 0) return LODE_NPY;
  if (len > 6 && strcmp(path + len - 6, ".fvecs") == 0) return LODE_FVECS;
  return LODE_JSONL;
}

lode_status op_vectors_load(const char *path, float **vectors, size_t *n, uint32_t *dimension, lode_error *err) {
  strbuf file = {0};
  lode_status st = op_read_file(path, VECTORS_MAX_FILE_BYTES, &file, err);
  if (st == LODE_NOT_FOUND) {
    st = LODE_INVALID;
    if (err) err->status = st;
  }
  lode_str bytes = {file.data, file.len};
  if (st == LODE_OK) st = op_vectors_parse(bytes, op_format_of_path(path), vectors, n, dimension, err);
  strbuf_release(&file);
  return st;
}
