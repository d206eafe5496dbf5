/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.c - .npy and .fvecs.
 *
 * .npy: "\x93NUMPY", version (1, 2 or 3) and minor version, length of the header (u16, from version 2 on u32), the
 * header: a Python dict with exactly 'descr', 'fortran_order' and 'shape'; then the elements. Accepted are '<f4' and
 * '<f8', in C order, with two axes, or one if the caller allows it. .fvecs: for each vector its dimension (i32) and
 * that many f32. All numbers are little-endian. The input is untrusted: every length is checked before use, and bytes
 * after the rows announced in the header are an error.
 */
#include "base/matrix.h"

#include "base/byteorder.h"

enum { NPY_MAX_HEADER_BYTES = 1 << 16 };

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

static bool npy_take_shape(npy_cursor *c, bool allow_vector, uint64_t *rows, uint64_t *columns) {
  if (!npy_take(c, "(") || !npy_take_number(c, rows) || !npy_take(c, ",")) return false;
  if (allow_vector && npy_take(c, ")")) {
    *columns = *rows;
    *rows = 1;
    return true;
  }
  if (!npy_take_number(c, columns)) return false;
  (void)npy_take(c, ",");
  return npy_take(c, ")");
}

static lode_status npy_parse_header(lode_str text, vec_matrix *m, lode_error *err) {
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
      ok = npy_take_shape(&c, m->allow_vector, &m->rows, &columns);
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

static lode_status matrix_read(vec_matrix *m, void *out, size_t n, lode_error *err) {
  size_t got;
  TRY(m->read(m->ctx, out, n, &got, err));
  return got == n ? LODE_OK : err_set(err, LODE_INVALID, "the stream ends in the middle: it was cut off");
}

lode_status vec_matrix_begin(vec_matrix *m, lode_error *err) {
  unsigned char head[12];
  lode_status st;
  m->rows = m->at = 0;
  m->dim = 0;
  m->width = 4;
  if (m->format == LODE_FVECS) return LODE_OK;
  TRY(matrix_read(m, head, 10, err));
  if (memcmp(head, "\x93NUMPY", 6) != 0) return err_set(err, LODE_INVALID, "this is no .npy file");
  if (head[6] < 1 || head[6] > 3)
    return err_set(err, LODE_INVALID, "version %u of .npy is not known: 1 to 3 are", (unsigned)head[6]);
  if (head[6] > 1) TRY(matrix_read(m, head + 10, 2, err));
  size_t len = head[6] == 1 ? num_le16(head + 8) : num_le32(head + 8);
  if (len > NPY_MAX_HEADER_BYTES)
    return err_set(err, LODE_INVALID, "the header of the .npy is too long: %zu bytes", len);
  char *text = mem_alloc(len);
  if (!text) return err_nomem(err);
  st = matrix_read(m, text, len, err);
  if (st == LODE_OK) st = npy_parse_header((lode_str){text, len}, m, err);
  mem_free(text);
  return st;
}

/* ---- Rows ---- */

static lode_status matrix_read_row(vec_matrix *m, float *row, uint32_t dim, lode_error *err) {
  unsigned char raw[4096];
  size_t step = sizeof raw / m->width;
  for (size_t i = 0; i < dim; i += step) {
    size_t n = dim - i < step ? dim - i : step;
    TRY(matrix_read(m, raw, n * m->width, err));
    for (size_t j = 0; j < n; j++) {
      if (m->width == 4) {
        uint32_t bits = num_le32(raw + 4 * j);
        memcpy(&row[i + j], &bits, 4);
      } else {
        uint64_t bits = num_le64(raw + 8 * j);
        double d;
        memcpy(&d, &bits, 8);
        row[i + j] = (float)d; /* too large becomes infinite, which callers refuse */
      }
    }
  }
  return LODE_OK;
}

static lode_status matrix_next_dim(vec_matrix *m, uint32_t *dim, bool *more, lode_error *err) {
  unsigned char head[4];
  size_t got;
  *more = false;
  if (m->format == LODE_NPY && m->at < m->rows) {
    *dim = m->dim;
    *more = true;
    return LODE_OK;
  }
  TRY(m->read(m->ctx, head, m->format == LODE_NPY ? 1 : 4, &got, err));
  if (got == 0) return LODE_OK;
  if (m->format == LODE_NPY)
    return err_set(err, LODE_INVALID, "more bytes follow the last row than the header of the .npy says");
  if (got < 4) return err_set(err, LODE_INVALID, "the stream ends in the middle of a vector: it was cut off");
  *dim = num_le32(head);
  if (*dim < 1 || *dim > LODE_MAX_DIMENSION)
    return err_set(err, LODE_INVALID, "vector %llu has %u dimensions: 1 to %d are possible; is this an .fvecs file?",
                   (unsigned long long)m->at, *dim, LODE_MAX_DIMENSION);
  *more = true;
  return LODE_OK;
}

lode_status vec_matrix_next(vec_matrix *m, strbuf *out, uint32_t *dim, bool *more, lode_error *err) {
  *dim = 0;
  TRY(matrix_next_dim(m, dim, more, err));
  if (!*more) return LODE_OK;
  size_t bytes = (size_t)*dim * sizeof(float);
  char *space = strbuf_reserve(out, bytes);
  if (!space) return err_nomem(err);
  TRY(matrix_read_row(m, (float *)(void *)space, *dim, err));
  out->len += bytes;
  m->at++;
  return LODE_OK;
}
