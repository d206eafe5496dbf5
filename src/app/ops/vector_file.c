/* SPDX-License-Identifier: Apache-2.0 */
/* vector_file.c - see vector_file.h.
 *
 * .npy: "\x93NUMPY", version, header length (2 bytes in version 1, 4 later), a Python dict with descr, fortran_order
 * and shape, then the numbers. .fvecs: for each vector an int32 dimension, followed by this many float32; all of one
 * dimension. All little-endian. Every length is checked against the size of the file.
 */
#include "ops/vector_file.h"

#include "base/json.h"
#include "ops/op.h"
#include "ops/op_stream.h"

#include <ctype.h>
#include <float.h>
#include <math.h>

#define VECTORS_MAX_FILE_BYTES ((size_t)16 << 30)

static uint32_t vectors_le32(const char *p) {
  const unsigned char *b = (const unsigned char *)p;
  return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static float vectors_le_float(const char *p) {
  uint32_t bits = vectors_le32(p);
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double vectors_le_double(const char *p) {
  uint64_t bits = vectors_le32(p) | (uint64_t)vectors_le32(p + 4) << 32;
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

static lode_status vectors_alloc(size_t n, size_t dimension, float **vectors, lode_error *err) {
  size_t count, size;
  if (mem_mul_overflow(n, dimension, &count) || mem_mul_overflow(count, sizeof(float), &size)) return err_nomem(err);
  *vectors = mem_alloc(size);
  return *vectors ? LODE_OK : err_nomem(err);
}

static lode_status vectors_check_dimension(uint64_t dimension, lode_error *err) {
  if (dimension >= 1 && dimension <= LODE_MAX_DIMENSION) return LODE_OK;
  return err_set(err, LODE_INVALID, "dimension %llu: a vector has 1 to %d numbers", (unsigned long long)dimension,
                 LODE_MAX_DIMENSION);
}

static lode_status vectors_check_finite(const float *vectors, size_t n, uint32_t dimension, lode_error *err) {
  for (size_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < dimension; j++)
      if (!isfinite(vectors[i * dimension + j]))
        return err_set_at(err, LODE_INVALID, i, "vector %zu has NaN or an infinite number at place %u", i, j);
  return LODE_OK;
}

/* ---- .fvecs ---- */

static lode_status vectors_parse_fvecs(lode_str bytes, float **vectors, size_t *n, uint32_t *dimension,
                                       lode_error *err) {
  if (bytes.len < 4) return err_set(err, LODE_INVALID, "not an .fvecs file: it is shorter than one number");
  uint32_t dim = vectors_le32(bytes.data);
  TRY(vectors_check_dimension(dim, err));
  size_t step = 4 + (size_t)dim * 4;
  if (bytes.len % step) return err_set(err, LODE_INVALID, "the .fvecs file ends inside a vector of dimension %u", dim);
  TRY(vectors_alloc(bytes.len / step, dim, vectors, err));
  for (size_t i = 0; i < bytes.len / step; i++) {
    const char *p = bytes.data + i * step;
    if (vectors_le32(p) != dim)
      return err_set_at(err, LODE_INVALID, i, "vector %zu has dimension %u, the first has %u", i, vectors_le32(p), dim);
    for (uint32_t j = 0; j < dim; j++) (*vectors)[i * dim + j] = vectors_le_float(p + 4 + (size_t)j * 4);
  }
  *n = bytes.len / step;
  *dimension = dim;
  return LODE_OK;
}

/* ---- .npy ---- */

/* Where the value of 'key' begins in the header, or NULL. */
static const char *vectors_npy_value(lode_str header, const char *key) {
  const char *p = memmem(header.data, header.len, key, strlen(key));
  const char *end = header.data + header.len;
  if (!p) return NULL;
  p += strlen(key);
  while (p < end && (*p == ' ' || *p == ':')) p++;
  return p < end ? p : NULL;
}

static bool vectors_npy_shape(lode_str header, uint64_t shape[2], size_t *axes) {
  const char *p = vectors_npy_value(header, "'shape'"), *end = header.data + header.len;
  *axes = 0;
  if (!p || *p++ != '(') return false;
  while (p < end && *p != ')') {
    if (*p == ' ' || *p == ',') {
      p++;
      continue;
    }
    const char *from = p;
    while (p < end && isdigit((unsigned char)*p)) p++;
    if (p == from || *axes == 2 || !op_parse_uint((lode_str){from, (size_t)(p - from)}, &shape[*axes])) return false;
    (*axes)++;
  }
  return p<end && * axes> 0;
}

static bool vectors_npy_split(lode_str bytes, lode_str *header, lode_str *body) {
  if (bytes.len < 12 || memcmp(bytes.data, "\x93NUMPY", 6) != 0) return false;
  size_t at = bytes.data[6] == 1 ? 10 : 12;
  size_t len = at == 10 ? (vectors_le32(bytes.data + 8) & 0xffff) : vectors_le32(bytes.data + 8);
  if (len > bytes.len - at) return false;
  *header = (lode_str){bytes.data + at, len};
  *body = (lode_str){bytes.data + at + len, bytes.len - at - len};
  return true;
}

static lode_status vectors_parse_npy(lode_str bytes, float **vectors, size_t *n, uint32_t *dimension, lode_error *err) {
  lode_str header, body;
  uint64_t shape[2] = {0, 0};
  size_t axes, count, size;
  if (!vectors_npy_split(bytes, &header, &body)) return err_set(err, LODE_INVALID, "not an .npy file, or cut short");
  const char *descr = vectors_npy_value(header, "'descr'"), *order = vectors_npy_value(header, "'fortran_order'");
  const char *end = header.data + header.len;
  bool f4 = descr && end - descr >= 5 && memcmp(descr, "'<f4'", 5) == 0;
  bool f8 = descr && end - descr >= 5 && memcmp(descr, "'<f8'", 5) == 0;
  if (!f4 && !f8)
    return err_set(err, LODE_INVALID, "the .npy file must hold float32 or float64 (save array.astype('float32'))");
  if (!vectors_npy_shape(header, shape, &axes))
    return err_set(err, LODE_INVALID, "the .npy file must have one or two axes");
  if (!order || end - order < 5 || (memcmp(order, "False", 5) != 0 && axes == 2))
    return err_set(err, LODE_INVALID, "the .npy file must be in C order (save numpy.ascontiguousarray(array))");
  uint64_t rows = axes == 2 ? shape[0] : 1, dim = axes == 2 ? shape[1] : shape[0];
  TRY(vectors_check_dimension(dim, err));
  if (__builtin_mul_overflow(rows, dim, &count) || mem_mul_overflow(count, f4 ? 4 : 8, &size) || size > body.len)
    return err_set(err, LODE_INVALID, "the .npy file is cut short");
  TRY(vectors_alloc((size_t)rows, (size_t)dim, vectors, err));
  for (size_t i = 0; i < count; i++) {
    double d = f4 ? 0 : vectors_le_double(body.data + i * 8);
    (*vectors)[i] = f4 ? vectors_le_float(body.data + i * 4) : fabs(d) <= FLT_MAX ? (float)d : INFINITY;
  }
  *n = (size_t)rows;
  *dimension = (uint32_t)dim;
  return LODE_OK;
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
  if (format == LODE_NPY)
    st = vectors_parse_npy(bytes, vectors, n, dimension, err);
  else if (format == LODE_FVECS)
    st = vectors_parse_fvecs(bytes, vectors, n, dimension, err);
  else
    st = vectors_parse_json(bytes, vectors, n, dimension, err);
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
