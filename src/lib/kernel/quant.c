/* SPDX-License-Identifier: Apache-2.0 */
/* quant.c - encoding of rows and queries, keys, and the choice of an integer kernel; see quant.h.
 *
 * All float arithmetic is in single steps in a fixed order (-ffp-contract=off), so codes have the same bytes on every
 * CPU. Values are clamped to 2^40 times the greatest of the sample, so that no square leaves the range of float: a
 * query or row beyond that is distorted, which costs it recall, and its true distance comes from reranking anyway.
 */
#include "kernel/quant.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "base/crc32c.h"
#include "kernel/quant_impl.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "segments hold little-endian numbers that are used where they lie"
#endif

#define QUANT_MAX_VALUE 0x1p40f /* values are clamped to this, in units */

/* ---- Portable kernel, and the choice ---- */

static void quant_portable_keys(const quant_query *query, const unsigned char *const *rows, size_t n, float *out) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char *row = rows[i];
    uint64_t head = (uint64_t)quant_top_bits32(row + 32) << 32 | quant_top_bits32(row);
    int32_t sum = 0;
    for (size_t j = 0; j < query->dim; j++) sum += (int32_t)query->code[j] * (row[j] & 127);
    out[i] = quant_key(query, head, sum);
  }
}

/* Eight bytes per step: c - 64 is c ^ 64, with bit 7 set if bit 6 then is. */
int32_t quant_portable_centre(const unsigned char *codes, size_t dim, int8_t *out) {
  const uint64_t low7 = 0x7F7F7F7F7F7F7F7Fu, bit6 = 0x4040404040404040u, pairs = 0x00FF00FF00FF00FFu;
  int32_t sum = 0;
  size_t j = 0;
  for (; j + 8 <= dim; j += 8) {
    uint64_t c;
    memcpy(&c, codes + j, sizeof c);
    c &= low7;
    uint64_t lanes4 = (c & pairs) + (c >> 8 & pairs); /* four sums of at most 254 */
    sum += (int32_t)(lanes4 * 0x0001000100010001u >> 48);
    c ^= bit6;
    c |= (c & bit6) << 1;
    memcpy(out + j, &c, sizeof c);
  }
  for (; j < dim; j++) {
    out[j] = (int8_t)((codes[j] & 127) - QUANT_ZERO);
    sum += codes[j] & 127;
  }
  return sum - QUANT_ZERO * (int32_t)dim;
}

void quant_portable_decode(const quant_grid *grid, const unsigned char *row, const unsigned char *low, size_t dim,
                           float *vector) {
  quant_decode_from(grid, row, low, 0, dim, vector);
}

static bool quant_portable_supported(void) { return true; }

const quant_ops quant_portable = {
    .name = "portable",
    .supported = quant_portable_supported,
    .keys = quant_portable_keys,
    .centre = quant_portable_centre,
    .decode = quant_portable_decode,
};

/* Best first. */
static const quant_ops *const quant_list[] = {
#if defined(__x86_64__)
    &quant_avx512,   &quant_avx2,
#endif
#if defined(__aarch64__)
    &quant_neon_dot, &quant_neon,
#endif
    &quant_portable,
};

static _Atomic(const quant_ops *) quant_chosen; /* as in kernel.c: all threads choose the same */

static const quant_ops *quant_find(const char *name) {
  for (size_t i = 0; i < sizeof quant_list / sizeof *quant_list; i++)
    if ((!name || strcmp(name, quant_list[i]->name) == 0) && quant_list[i]->supported()) return quant_list[i];
  return NULL;
}

static const quant_ops *quant_choose(void) {
  const char *forced = getenv("LODE_SIMD");
  const quant_ops *k = forced ? quant_find(forced) : NULL;
  if (!k) k = quant_find(NULL);
  atomic_store_explicit(&quant_chosen, k, memory_order_relaxed);
  return k;
}

static inline const quant_ops *quant_current(void) {
  const quant_ops *k = atomic_load_explicit(&quant_chosen, memory_order_relaxed);
  return k ? k : quant_choose();
}

const char *quant_name(void) { return quant_current()->name; }

bool quant_use(const char *name) {
  if (!name) {
    quant_choose();
    return true;
  }
  const quant_ops *k = quant_find(name);
  if (k) atomic_store_explicit(&quant_chosen, k, memory_order_relaxed);
  return k != NULL;
}

/* ---- Four elements at a time ---- */

enum { QUANT_LANES = 4 };
typedef float lanes4 __attribute__((vector_size(QUANT_LANES * sizeof(float))));
typedef int32_t ints4 __attribute__((vector_size(QUANT_LANES * sizeof(int32_t))));

static inline lanes4 lanes4_all(float f) { return (lanes4){f, f, f, f}; }
static inline lanes4 lanes4_choose(ints4 which, lanes4 a, lanes4 b) {
  return (lanes4)((which & (ints4)a) | (~which & (ints4)b));
}
static inline lanes4 minimum(lanes4 a, lanes4 b) { return lanes4_choose(a < b, a, b); }
static inline lanes4 lanes4_max(lanes4 a, lanes4 b) { return lanes4_choose(a > b, a, b); }

/* The first n floats, then zeros; n is not 0. */
static inline lanes4 lanes4_load(const float *p, size_t n) {
  lanes4 v = {0};
  if (n >= QUANT_LANES)
    memcpy(&v, p, sizeof v);
  else
    memcpy(&v, p, n * sizeof *p);
  return v;
}

static inline float lanes4_greatest(lanes4 v) {
  float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

/* ---- Model ---- */

/* What a vector is multiplied by first: 1, or for cosine 1 / length (0 for a zero vector). */
static double quant_rescale(lode_metric metric, const float *vector, size_t dim) {
  if (metric != LODE_COSINE) return 1;
  double sums[QUANT_LANES] = {0};
  for (size_t j = 0; j < dim; j++) sums[j % QUANT_LANES] += (double)vector[j] * vector[j];
  double norm2 = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return norm2 > 0 ? 1 / sqrt(norm2) : 0;
}

lode_status quant_fit_begin(quant_fit *fit, lode_metric metric, uint32_t dim, lode_error *err) {
  *fit = (quant_fit){.metric = metric, .dim = dim};
  fit->sums = mem_calloc(dim, sizeof *fit->sums);
  return fit->sums ? LODE_OK : err_nomem(err);
}

void quant_fit_add(quant_fit *fit, const float *vector) {
  double by = quant_rescale(fit->metric, vector, fit->dim);
  for (size_t j = 0; j < fit->dim; j++) {
    double v = vector[j] * by;
    fit->sums[j] += v;
    float size = (float)fabs(v);
    if (size > fit->greatest) fit->greatest = size;
  }
  fit->n++;
  if (fit->metric != LODE_COSINE) quant_grid_fit_add(&fit->grid, vector, fit->dim);
}

void quant_fit_end(const quant_fit *fit, float *mean, quant_model *model) {
  int exponent = 0;
  if (fit->greatest > 0) (void)frexpf(fit->greatest, &exponent);
  if (exponent < -100) exponent = -100;
  if (exponent > 126) exponent = 126;
  *model = (quant_model){.metric = fit->metric, .dim = fit->dim, .unit = ldexpf(1, -exponent), .mean = mean};
  model->grid = quant_grid_of_fit(&fit->grid);
  for (size_t j = 0; j < fit->dim; j++) {
    mean[j] = fit->n ? (float)(fit->sums[j] / (double)fit->n * (double)model->unit) : 0;
    if (model->grid.step) mean[j] = quant_grid_middle(&model->grid) * model->unit;
  }
}

void quant_fit_release(quant_fit *fit) {
  mem_free(fit->sums);
  *fit = (quant_fit){0};
}

/* ---- Rows and queries ---- */

size_t quant_stride(uint32_t dim) {
  size_t minimum = dim < QUANT_MIN_ROW_BYTES ? QUANT_MIN_ROW_BYTES : dim;
  size_t lines = (minimum + 63) / 64 * 64;
  return (lines - minimum) * 6 <= minimum ? lines : (minimum + 7) / 8 * 8;
}

/* Four elements of the vector in the model's units, from j on; by is 1 except for cosine. Zeros after its end. */
static inline lanes4 quant_elements(const quant_model *model, const float *vector, double by, size_t j) {
  lanes4 v = lanes4_load(vector + j, model->dim - j);
  if (model->metric == LODE_COSINE)
    v = (lanes4){(float)(v[0] * by), (float)(v[1] * by), (float)(v[2] * by), (float)(v[3] * by)};
  return lanes4_max(minimum(v * lanes4_all(model->unit), lanes4_all(QUANT_MAX_VALUE)), lanes4_all(-QUANT_MAX_VALUE));
}

static inline lanes4 quant_centred(const quant_model *model, lanes4 v, size_t j) {
  return v - lanes4_load(model->mean + j, model->dim - j);
}

static inline lanes4 quant_magnitude(lanes4 v) { return (lanes4)((ints4)v & INT32_MAX); }

/* Quantises to steps of 1 / per, where zero is `middle`; rounds by adding 0.5 and truncating, and clamps to `max`
 * steps. */
static inline ints4 quant_steps(lanes4 v, float per, int middle, int max) {
  ints4 c = __builtin_convertvector(v * lanes4_all(per) + lanes4_all((float)middle + 0.5f), ints4);
  ints4 low = c<middle - max, high = c> middle + max;
  return (low & (middle - max)) | (high & (middle + max)) | (~(low | high) & c);
}

static void quant_set_top_bits32(unsigned char *bytes, uint32_t bits) {
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)((bytes[i] & 127) | (bits >> i & 1) << 7);
}

static uint32_t quant_bits_of_float(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

void quant_set_row_bias(unsigned char *row, float bias) { quant_set_top_bits32(row + 32, quant_bits_of_float(bias)); }

/* Where the slot is in a row. */
enum { SLOT_AT = QUANT_SLOT_AT, SLOT_END = QUANT_MIN_ROW_BYTES };
/* The codes of the bytes whose top bits are the slot. */
static void quant_codes_beside_slot(const unsigned char *row, unsigned char *codes) {
  for (int i = 0; i < SLOT_END - SLOT_AT; i++) codes[i] = row[SLOT_AT + i] & 127;
}

bool quant_row_equal(const unsigned char *a, const unsigned char *b, size_t stride) {
  unsigned char x[SLOT_END - SLOT_AT], y[sizeof x];
  quant_codes_beside_slot(a, x);
  quant_codes_beside_slot(b, y);
  return memcmp(a, b, SLOT_AT) == 0 && memcmp(x, y, sizeof x) == 0 &&
         memcmp(a + SLOT_END, b + SLOT_END, stride - SLOT_END) == 0;
}

uint32_t quant_row_hash(const unsigned char *row, size_t stride) {
  unsigned char x[SLOT_END - SLOT_AT];
  quant_codes_beside_slot(row, x);
  return crc32c_update(crc32c_update(crc32c_update(0, row, SLOT_AT), x, sizeof x), row + SLOT_END, stride - SLOT_END);
}

uint32_t quant_cell_hash(const unsigned char *row, uint32_t dim) {
  uint32_t scale = quant_top_bits32(row) >> 17, hash = crc32c_update(0, &scale, sizeof scale);
  for (uint32_t at = 0; at < dim; at += 64) {
    unsigned char codes[64];
    uint32_t n = dim - at < sizeof codes ? dim - at : (uint32_t)sizeof codes;
    for (uint32_t i = 0; i < n; i++) codes[i] = row[at + i] & 127;
    hash = crc32c_update(hash, codes, n);
  }
  return hash;
}

/* The scale with which the greatest magnitude is `max` steps, and its reciprocal; both are 0 if the scale is too small
 * for a reciprocal. */
static float quant_scale_for(float greatest, int max, float *per) {
  float scale = greatest / (float)max;
  *per = scale > FLT_MIN ? 1 / scale : 0;
  return *per == 0 ? 0 : scale;
}

/* The codes of a vector that is not on a grid; returns the scale. */
static float quant_encode_codes(const quant_model *model, const float *vector, double by, lanes4 greatest,
                                unsigned char *row) {
  float per, scale = quant_scale_for(lanes4_greatest(greatest), QUANT_ROW_MAX, &per);
  for (size_t j = 0; j < model->dim; j += QUANT_LANES) {
    ints4 c =
        quant_steps(quant_centred(model, quant_elements(model, vector, by, j), j), per, QUANT_ZERO, QUANT_ROW_MAX);
    for (size_t k = 0; k < QUANT_LANES && j + k < model->dim; k++) row[j + k] = (unsigned char)c[k];
  }
  return model->grid.step && scale == quant_grid_scale(model) ? nextafterf(scale, INFINITY) : scale;
}

float quant_encode_row(const quant_model *model, const float *vector, uint32_t slot, unsigned char *row) {
  double by = quant_rescale(model->metric, vector, model->dim);
  lanes4 greatest = {0}, length2 = {0};
  for (size_t j = 0; j < model->dim; j += QUANT_LANES) {
    lanes4 v = quant_elements(model, vector, by, j);
    length2 += v * v;
    greatest = lanes4_max(greatest, quant_magnitude(quant_centred(model, v, j)));
  }
  memset(row, 0, quant_stride(model->dim));
  bool exact = model->grid.step && quant_grid_encode(&model->grid, vector, model->dim, row);
  float scale = exact ? quant_grid_scale(model) : quant_encode_codes(model, vector, by, greatest, row);
  quant_set_top_bits32(row, quant_bits_of_float(scale));
  float bias = model->metric == LODE_IP ? 0 : quant_row_norm2(row, model->dim);
  if (model->metric == LODE_COSINE && by == 0) bias += model->unit * model->unit;
  quant_set_row_bias(row, bias);
  quant_set_top_bits32(row + QUANT_SLOT_AT, slot);
  return (length2[0] + length2[1]) + (length2[2] + length2[3]);
}

float quant_row_norm2(const unsigned char *row, uint32_t dim) {
  uint32_t sum = 0;
  for (size_t j = 0; j < dim; j++) {
    int32_t c = (row[j] & 127) - QUANT_ZERO;
    sum += (uint32_t)(c * c);
  }
  float scale = quant_row_scale(row);
  return scale * scale * (float)sum;
}

size_t quant_query_bytes(uint32_t dim) {
  return ((size_t)dim + QUANT_QUERY_ALIGN - 1) / QUANT_QUERY_ALIGN * QUANT_QUERY_ALIGN;
}

static void quant_finish_query(int8_t *buffer, uint32_t dim, int32_t sum, float scale, quant_query *query) {
  memset(buffer + dim, 0, quant_query_bytes(dim) - dim);
  *query = (quant_query){.code = buffer, .dim = dim, .offset = QUANT_ZERO * sum, .scale = scale};
}

void quant_query_of_vector(const quant_model *model, const float *vector, int8_t *buffer, quant_query *query) {
  double by = quant_rescale(model->metric, vector, model->dim);
  bool from_mean = model->metric != LODE_IP;
  lanes4 greatest = {0};
  for (size_t j = 0; j < model->dim; j += QUANT_LANES) {
    lanes4 v = quant_elements(model, vector, by, j);
    greatest = lanes4_max(greatest, quant_magnitude(from_mean ? quant_centred(model, v, j) : v));
  }
  float per, scale = quant_scale_for(lanes4_greatest(greatest), QUANT_QUERY_MAX, &per);
  ints4 sums = {0};
  for (size_t j = 0; j < model->dim; j += QUANT_LANES) {
    lanes4 v = quant_elements(model, vector, by, j);
    /* offset by 128, because truncation needs numbers that are not negative */
    ints4 c = quant_steps(from_mean ? quant_centred(model, v, j) : v, per, 128, QUANT_QUERY_MAX) - 128;
    sums += c;
    for (size_t k = 0; k < QUANT_LANES && j + k < model->dim; k++) buffer[j + k] = (int8_t)c[k];
  }
  quant_finish_query(buffer, model->dim, (sums[0] + sums[1]) + (sums[2] + sums[3]), 2 * scale, query);
}

void quant_query_of_row(const unsigned char *row, uint32_t dim, int8_t *buffer, quant_query *query) {
  int32_t sum = quant_current()->centre(row, dim, buffer);
  quant_finish_query(buffer, dim, sum, 2 * quant_row_scale(row), query);
}

/* In steps of the mean of both scales, in which no element of the sum of both rows is more than 126. */
void quant_query_between(const unsigned char *a, const unsigned char *b, uint32_t dim, int8_t *buffer,
                         quant_query *query) {
  float scale = (quant_row_scale(a) + quant_row_scale(b)) / 2, per = scale > FLT_MIN ? 1 / scale : 0;
  float part_a = quant_row_scale(a) * per, part_b = quant_row_scale(b) * per;
  int32_t sum = 0;
  for (size_t j = 0; j < dim; j++) {
    float x = part_a * (float)((a[j] & 127) - QUANT_ZERO) + part_b * (float)((b[j] & 127) - QUANT_ZERO);
    int32_t c = (int32_t)(x + 128.5f) - 128; /* truncation needs numbers that are not negative */
    buffer[j] = (int8_t)(c > QUANT_QUERY_MAX ? QUANT_QUERY_MAX : c < -QUANT_QUERY_MAX ? -QUANT_QUERY_MAX : c);
    sum += buffer[j];
  }
  quant_finish_query(buffer, dim, sum, scale, query);
}

/* ---- Keys ---- */

void quant_keys(const quant_query *query, const unsigned char *const *rows, size_t n, float *out) {
  quant_current()->keys(query, rows, n, out);
}

void quant_grid_decode(const quant_grid *grid, const unsigned char *row, const unsigned char *low, uint32_t dim,
                       float *vector) {
  quant_current()->decode(grid, row, low, dim, vector);
}
