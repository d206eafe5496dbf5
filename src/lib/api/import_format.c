/* SPDX-License-Identifier: Apache-2.0 */
/* import_format.c - reads streams in foreign formats: lines, .npy and .fvecs.
 *
 * .npy: "\x93NUMPY", version (1, 2 or 3) and minor version, length of the header (u16, from version 2 on u32), the
 * header: a Python dict with exactly 'descr', 'fortran_order' and 'shape'; then the elements. Accepted are '<f4' and
 * '<f8', in C order, with two dimensions. .fvecs: for each vector its dimension (i32) and that many f32. All numbers
 * are little-endian. The input is untrusted: every length is checked before use, and bytes after the rows announced in
 * the header are an error.
 */
#include "api/import_format.h"

#include <math.h>

enum { INPUT_INITIAL_BYTES = 1 << 16, NPY_MAX_HEADER_BYTES = 1 << 16 };

/* ---- Input ---- */

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

lode_status api_input_bytes(api_input *in, void *out, size_t n, size_t *got, lode_error *err) {
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

/* ---- The header of a .npy ---- */

typedef struct npy_cursor {
  const char *at, *end;
} npy_cursor;

static void npy_skip_space(npy_cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

static bool npy_take(npy_cursor *c, const char *word) {
  size_t n = strlen(word);
  npy_skip_space(c);
  if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
  c->at += n;
  return true;
}

static bool npy_take_quoted(npy_cursor *c, lode_str *out) {
  npy_skip_space(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
  char quote = *c->at++;
  const char *end = memchr(c->at, quote, (size_t)(c->end - c->at));
  if (!end) return false;
  *out = (lode_str){c->at, (size_t)(end - c->at)};
  c->at = end + 1;
  return true;
}

static bool npy_take_number(npy_cursor *c, uint64_t *out) {
  const char *from;
  npy_skip_space(c);
  *out = 0;
  for (from = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(*c->at - '0'), out))
      return false;
  return c->at > from;
}

static bool npy_take_shape(npy_cursor *c, uint64_t *rows, uint64_t *columns) {
  if (!npy_take(c, "(") || !npy_take_number(c, rows) || !npy_take(c, ",") || !npy_take_number(c, columns)) return false;
  (void)npy_take(c, ",");
  return npy_take(c, ")");
}

static lode_status npy_parse_header(lode_str text, api_matrix *m, lode_error *err) {
  npy_cursor c = {text.data, text.data + text.len};
  lode_str key, descr = {NULL, 0};
  bool c_order = false, ok = npy_take(&c, "{");
  uint64_t columns = 0;
  unsigned seen = 0;
  while (ok && !npy_take(&c, "}")) {
    unsigned bit = 0;
    ok = npy_take_quoted(&c, &key) && npy_take(&c, ":");
    if (ok && str_eq(key, STR_LIT("descr"))) {
      bit = 1;
      ok = npy_take_quoted(&c, &descr);
    } else if (ok && str_eq(key, STR_LIT("fortran_order"))) {
      bit = 2;
      c_order = npy_take(&c, "False");
      ok = c_order || npy_take(&c, "True");
    } else if (ok && str_eq(key, STR_LIT("shape"))) {
      bit = 4;
      ok = npy_take_shape(&c, &m->rows, &columns);
    }
    ok = ok && bit && !(seen & bit);
    seen |= bit;
    npy_skip_space(&c);
    if (ok && !npy_take(&c, ",")) ok = c.at < c.end && *c.at == '}';
  }
  npy_skip_space(&c);
  if (!ok || seen != 7 || c.at != c.end)
    return err_set(err, LODE_INVALID, "the header of the .npy is not that of a matrix: save a two-dimensional array");
  m->width = str_eq(descr, STR_LIT("<f4")) ? 4 : str_eq(descr, STR_LIT("<f8")) ? 8 : 0;
  if (!m->width || !c_order)
    return err_set(err, LODE_INVALID,
                   "the .npy must hold little-endian float32 or float64 in C order: "
                   "numpy.ascontiguousarray(a, dtype='<f4') makes it so");
  if (columns < 1 || columns > LODE_MAX_DIMENSION)
    return err_set(err, LODE_INVALID, "the .npy has %llu columns: vectors have 1 to %d dimensions",
                   (unsigned long long)columns, LODE_MAX_DIMENSION);
  m->dim = (uint32_t)columns;
  return LODE_OK;
}

static uint32_t matrix_le32(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static lode_status input_read_exactly(api_input *in, void *out, size_t n, lode_error *err) {
  size_t got;
  TRY(api_input_bytes(in, out, n, &got, err));
  return got == n ? LODE_OK : err_set(err, LODE_INVALID, "the stream ends in the middle: it was cut off");
}

lode_status api_matrix_begin(api_matrix *m, api_input *in, lode_format format, lode_error *err) {
  unsigned char head[12];
  lode_status st;
  *m = (api_matrix){.format = format, .width = 4};
  if (format == LODE_FVECS) return LODE_OK;
  TRY(input_read_exactly(in, head, 10, err));
  if (memcmp(head, "\x93NUMPY", 6) != 0) return err_set(err, LODE_INVALID, "this is no .npy file");
  if (head[6] < 1 || head[6] > 3)
    return err_set(err, LODE_INVALID, "version %u of .npy is not known: 1 to 3 are", (unsigned)head[6]);
  if (head[6] > 1) TRY(input_read_exactly(in, head + 10, 2, err));
  size_t len = head[6] == 1 ? (size_t)head[8] | (size_t)head[9] << 8 : matrix_le32(head + 8);
  if (len > NPY_MAX_HEADER_BYTES)
    return err_set(err, LODE_INVALID, "the header of the .npy is too long: %zu bytes", len);
  char *text = mem_alloc(len);
  if (!text) return err_nomem(err);
  st = input_read_exactly(in, text, len, err);
  if (st == LODE_OK) st = npy_parse_header((lode_str){text, len}, m, err);
  mem_free(text);
  return st;
}

/* ---- Rows ---- */

static lode_status matrix_read_row(api_matrix *m, api_input *in, float *row, uint32_t dim, lode_error *err) {
  unsigned char raw[4096];
  size_t step = sizeof raw / m->width;
  for (size_t i = 0; i < dim; i += step) {
    size_t n = dim - i < step ? dim - i : step;
    TRY(input_read_exactly(in, raw, n * m->width, err));
    for (size_t j = 0; j < n; j++) {
      const unsigned char *p = raw + j * m->width;
      if (m->width == 4) {
        uint32_t bits = matrix_le32(p);
        memcpy(&row[i + j], &bits, 4);
        continue;
      }
      uint64_t bits = matrix_le32(p) | (uint64_t)matrix_le32(p + 4) << 32;
      double d;
      memcpy(&d, &bits, 8);
      row[i + j] = (float)d; /* too large becomes infinite, which the check of the record refuses */
    }
  }
  return LODE_OK;
}

static lode_status matrix_next_dim(api_matrix *m, api_input *in, uint32_t *dim, bool *more, lode_error *err) {
  unsigned char head[4];
  size_t got;
  *more = false;
  if (m->format == LODE_NPY && m->at < m->rows) {
    *dim = m->dim;
    *more = true;
    return LODE_OK;
  }
  TRY(api_input_bytes(in, head, m->format == LODE_NPY ? 1 : 4, &got, err));
  if (got == 0) return LODE_OK;
  if (m->format == LODE_NPY)
    return err_set(err, LODE_INVALID, "more bytes follow the last row than the header of the .npy says");
  if (got < 4) return err_set(err, LODE_INVALID, "the stream ends in the middle of a vector: it was cut off");
  *dim = matrix_le32(head);
  if (*dim < 1 || *dim > LODE_MAX_DIMENSION)
    return err_set(err, LODE_INVALID, "vector %llu has %u dimensions: 1 to %d are possible; is this an .fvecs file?",
                   (unsigned long long)m->at, *dim, LODE_MAX_DIMENSION);
  *more = true;
  return LODE_OK;
}

lode_status api_matrix_next(api_matrix *m, api_input *in, strbuf *row, uint32_t *dim, bool *more, lode_error *err) {
  *dim = 0;
  TRY(matrix_next_dim(m, in, dim, more, err));
  if (!*more) return LODE_OK;
  row->len = 0;
  char *space = strbuf_reserve(row, (size_t)*dim * sizeof(float));
  if (!space) return err_nomem(err);
  TRY(matrix_read_row(m, in, (float *)(void *)space, *dim, err));
  row->len = (size_t)*dim * sizeof(float);
  m->at++;
  return LODE_OK;
}
