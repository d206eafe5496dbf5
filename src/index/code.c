/* code.c - making codes and keys, and the choice of an integer kernel; see code.h.
 *
 * All arithmetic on floats is in single steps in a fixed order (-ffp-contract=off), so codes have the same bytes on
 * every CPU. Values are kept within 2^40 times the greatest of the sample, so that no square leaves float's range:
 * a query or row beyond that is bent, which costs it recall, and its true distance comes from re-ranking anyway.
 */
#include "index/code.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "base/crc32c.h"
#include "index/code_impl.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "segments hold little-endian numbers that are used where they lie"
#endif

#define FARTHEST 0x1p40f

/* ---- Portable kernel, and the choice ---- */

static void portable_keys(const lode__code_query *query, const unsigned char *const *rows, size_t n, float *out) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char *row = rows[i];
    uint64_t head = (uint64_t)lode__code_bits32(row + 32) << 32 | lode__code_bits32(row);
    int32_t sum = 0;
    for (size_t j = 0; j < query->dim; j++) sum += (int32_t)query->code[j] * (row[j] & 127);
    out[i] = lode__code_key(query, head, sum);
  }
}

/* Eight bytes a step: c - 64 is c ^ 64, with bit 7 set where bit 6 then is. */
int32_t lode__code_centre(const unsigned char *codes, size_t dim, int8_t *out) {
  const uint64_t low7 = 0x7F7F7F7F7F7F7F7Fu, bit6 = 0x4040404040404040u, pairs = 0x00FF00FF00FF00FFu;
  int32_t sum = 0;
  size_t j = 0;
  for (; j + 8 <= dim; j += 8) {
    uint64_t c;
    memcpy(&c, codes + j, sizeof c);
    c &= low7;
    uint64_t lanes = (c & pairs) + (c >> 8 & pairs); /* four sums of at most 254 */
    sum += (int32_t)(lanes * 0x0001000100010001u >> 48);
    c ^= bit6;
    c |= (c & bit6) << 1;
    memcpy(out + j, &c, sizeof c);
  }
  for (; j < dim; j++) {
    out[j] = (int8_t)((codes[j] & 127) - LODE__CODE_ZERO);
    sum += codes[j] & 127;
  }
  return sum - LODE__CODE_ZERO * (int32_t)dim;
}

static bool portable_supported(void) { return true; }

const lode__code_kernel lode__code_portable = {
    .name = "portable", .supported = portable_supported, .keys = portable_keys,
    .centre = lode__code_centre,
};

/* Best first. */
static const lode__code_kernel *const kernels[] = {
#if defined(__x86_64__)
    &lode__code_avx512,
    &lode__code_avx2,
#endif
#if defined(__aarch64__)
    &lode__code_neon_dot,
    &lode__code_neon,
#endif
    &lode__code_portable,
};

static _Atomic(const lode__code_kernel *) chosen; /* as in kernel.c: whoever comes first, all choose the same */

static const lode__code_kernel *find(const char *name) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if ((!name || strcmp(name, kernels[i]->name) == 0) && kernels[i]->supported()) return kernels[i];
  return NULL;
}

static const lode__code_kernel *choose(void) {
  const char *forced = getenv("LODE_SIMD");
  const lode__code_kernel *k = forced ? find(forced) : NULL;
  if (!k) k = find(NULL);
  atomic_store_explicit(&chosen, k, memory_order_relaxed);
  return k;
}

static inline const lode__code_kernel *kernel(void) {
  const lode__code_kernel *k = atomic_load_explicit(&chosen, memory_order_relaxed);
  return k ? k : choose();
}

const char *lode__code_name(void) { return kernel()->name; }

bool lode__code_use(const char *name) {
  if (!name) {
    choose();
    return true;
  }
  const lode__code_kernel *k = find(name);
  if (k) atomic_store_explicit(&chosen, k, memory_order_relaxed);
  return k != NULL;
}

/* ---- Four elements at a time ---- */

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline lanes all(float f) { return (lanes){f, f, f, f}; }
static inline lanes choose_lanes(ints which, lanes a, lanes b) { return (lanes)((which & (ints)a) | (~which & (ints)b)); }
static inline lanes least(lanes a, lanes b) { return choose_lanes(a < b, a, b); }
static inline lanes greatest_of(lanes a, lanes b) { return choose_lanes(a > b, a, b); }

/* The first n of them, and zeros; n is not 0. */
static inline lanes load(const float *p, size_t n) {
  lanes v = {0};
  if (n >= LANES) memcpy(&v, p, sizeof v);
  else memcpy(&v, p, n * sizeof *p);
  return v;
}

static inline float greatest_lane(lanes v) {
  float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
  return a > b ? a : b;
}

/* ---- Model ---- */

/* What a vector is multiplied by before anything else: 1, or for cosine 1 / length (0 for a zero vector). */
static double rescale(lode_metric metric, const float *vector, size_t dim) {
  if (metric != LODE_COSINE) return 1;
  double sums[LANES] = {0};
  for (size_t j = 0; j < dim; j++) sums[j % LANES] += (double)vector[j] * vector[j];
  double norm2 = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return norm2 > 0 ? 1 / sqrt(norm2) : 0;
}

lode_status lode__code_fit_begin(lode__code_fit *fit, lode_metric metric, uint32_t dim, lode_error *err) {
  *fit = (lode__code_fit){.metric = metric, .dim = dim};
  fit->sums = mem_calloc(dim, sizeof *fit->sums);
  return fit->sums ? LODE_OK : err_nomem(err);
}

void lode__code_fit_add(lode__code_fit *fit, const float *vector) {
  double by = rescale(fit->metric, vector, fit->dim);
  for (size_t j = 0; j < fit->dim; j++) {
    double v = vector[j] * by;
    fit->sums[j] += v;
    float size = (float)fabs(v);
    if (size > fit->greatest) fit->greatest = size;
  }
  fit->n++;
}

void lode__code_fit_end(const lode__code_fit *fit, float *mean, lode__code_model *model) {
  int exponent = 0;
  if (fit->greatest > 0) (void)frexpf(fit->greatest, &exponent);
  if (exponent < -100) exponent = -100;
  if (exponent > 126) exponent = 126;
  *model = (lode__code_model){.metric = fit->metric, .dim = fit->dim, .unit = ldexpf(1, -exponent), .mean = mean};
  for (size_t j = 0; j < fit->dim; j++) {
    mean[j] = fit->n ? (float)(fit->sums[j] / (double)fit->n * (double)model->unit) : 0;
  }
}

void lode__code_fit_release(lode__code_fit *fit) {
  mem_free(fit->sums);
  *fit = (lode__code_fit){0};
}

/* ---- Rows and queries ---- */

size_t lode__code_stride(uint32_t dim) {
  size_t least = dim < LODE__CODE_LEAST ? LODE__CODE_LEAST : dim;
  size_t lines = (least + 63) / 64 * 64;
  return (lines - least) * 6 <= least ? lines : (least + 7) / 8 * 8;
}

/* The vector in the model's units, elements from j on; by is 1 except for cosine. Behind its end there are zeros. */
static inline lanes elements(const lode__code_model *model, const float *vector, double by, size_t j) {
  lanes v = load(vector + j, model->dim - j);
  if (model->metric == LODE_COSINE)
    v = (lanes){(float)(v[0] * by), (float)(v[1] * by), (float)(v[2] * by), (float)(v[3] * by)};
  return greatest_of(least(v * all(model->unit), all(FARTHEST)), all(-FARTHEST));
}

static inline lanes centred(const lode__code_model *model, lanes v, size_t j) { return v - load(model->mean + j, model->dim - j); }

static inline lanes magnitude(lanes v) { return (lanes)((ints)v & INT32_MAX); }

/* Steps of 1 / per, counted from zero on, which is `middle`; rounded by what is added, and then cut off. */
static inline ints steps(lanes v, float per, int middle, int reach) {
  ints c = __builtin_convertvector(v * all(per) + all((float)middle + 0.5f), ints), low = c < middle - reach, high = c > middle + reach;
  return (low & (middle - reach)) | (high & (middle + reach)) | (~(low | high) & c);
}

static void set_bits32(unsigned char *bytes, uint32_t bits) {
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)((bytes[i] & 127) | (bits >> i & 1) << 7);
}

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

void lode__code_set_bias(unsigned char *row, float bias) { set_bits32(row + 32, bits_of(bias)); }

/* A row without its slot. */
enum { SLOT_AT = 64, SLOT_END = LODE__CODE_LEAST };
static void codes_beside_slot(const unsigned char *row, unsigned char *codes) {
  for (int i = 0; i < SLOT_END - SLOT_AT; i++) codes[i] = row[SLOT_AT + i] & 127;
}

bool lode__code_equal(const unsigned char *a, const unsigned char *b, size_t stride) {
  unsigned char x[SLOT_END - SLOT_AT], y[sizeof x];
  codes_beside_slot(a, x);
  codes_beside_slot(b, y);
  return memcmp(a, b, SLOT_AT) == 0 && memcmp(x, y, sizeof x) == 0 && memcmp(a + SLOT_END, b + SLOT_END, stride - SLOT_END) == 0;
}

uint32_t lode__code_hash(const unsigned char *row, size_t stride) {
  unsigned char x[SLOT_END - SLOT_AT];
  codes_beside_slot(row, x);
  return crc32c_update(crc32c_update(crc32c_update(0, row, SLOT_AT), x, sizeof x), row + SLOT_END, stride - SLOT_END);
}

/* The scale by which the greatest magnitude is `reach` steps, and its reciprocal; both are 0 where the one would be too small for a
 * reciprocal. */
static float scale_for(float greatest, int reach, float *per) {
  float scale = greatest / (float)reach;
  *per = scale > FLT_MIN ? 1 / scale : 0;
  return *per == 0 ? 0 : scale;
}

float lode__code_row(const lode__code_model *model, const float *vector, uint32_t slot, unsigned char *row) {
  double by = rescale(model->metric, vector, model->dim);
  lanes greatest = {0}, length2 = {0};
  for (size_t j = 0; j < model->dim; j += LANES) {
    lanes v = elements(model, vector, by, j);
    length2 += v * v;
    greatest = greatest_of(greatest, magnitude(centred(model, v, j)));
  }
  float per, scale = scale_for(greatest_lane(greatest), LODE__CODE_REACH, &per);
  memset(row, 0, lode__code_stride(model->dim));
  for (size_t j = 0; j < model->dim; j += LANES) {
    ints c = steps(centred(model, elements(model, vector, by, j), j), per, LODE__CODE_ZERO, LODE__CODE_REACH);
    for (size_t k = 0; k < LANES && j + k < model->dim; k++) row[j + k] = (unsigned char)c[k];
  }
  set_bits32(row, bits_of(scale));
  float bias = model->metric == LODE_IP ? 0 : lode__code_norm(row, model->dim);
  if (model->metric == LODE_COSINE && by == 0) bias += model->unit * model->unit;
  lode__code_set_bias(row, bias);
  set_bits32(row + 64, slot);
  return (length2[0] + length2[1]) + (length2[2] + length2[3]);
}

float lode__code_norm(const unsigned char *row, uint32_t dim) {
  uint32_t sum = 0;
  for (size_t j = 0; j < dim; j++) {
    int32_t c = (row[j] & 127) - LODE__CODE_ZERO;
    sum += (uint32_t)(c * c);
  }
  float scale = lode__code_scale(row);
  return scale * scale * (float)sum;
}

size_t lode__code_query_bytes(uint32_t dim) {
  return ((size_t)dim + LODE__QUERY_ALIGN - 1) / LODE__QUERY_ALIGN * LODE__QUERY_ALIGN;
}

static void finish_query(int8_t *room, uint32_t dim, int32_t sum, float scale, lode__code_query *query) {
  memset(room + dim, 0, lode__code_query_bytes(dim) - dim);
  *query = (lode__code_query){.code = room, .dim = dim, .offset = LODE__CODE_ZERO * sum, .scale = scale};
}

void lode__code_query_vector(const lode__code_model *model, const float *vector, int8_t *room,
                             lode__code_query *query) {
  double by = rescale(model->metric, vector, model->dim);
  bool from_mean = model->metric != LODE_IP;
  lanes greatest = {0};
  for (size_t j = 0; j < model->dim; j += LANES) {
    lanes v = elements(model, vector, by, j);
    greatest = greatest_of(greatest, magnitude(from_mean ? centred(model, v, j) : v));
  }
  float per, scale = scale_for(greatest_lane(greatest), LODE__QUERY_REACH, &per);
  ints sums = {0};
  for (size_t j = 0; j < model->dim; j += LANES) {
    lanes v = elements(model, vector, by, j);
    /* counted from 128, as numbers that are cut off must not be negative */
    ints c = steps(from_mean ? centred(model, v, j) : v, per, 128, LODE__QUERY_REACH) - 128;
    sums += c;
    for (size_t k = 0; k < LANES && j + k < model->dim; k++) room[j + k] = (int8_t)c[k];
  }
  finish_query(room, model->dim, (sums[0] + sums[1]) + (sums[2] + sums[3]), 2 * scale, query);
}

void lode__code_query_row(const unsigned char *row, uint32_t dim, int8_t *room, lode__code_query *query) {
  int32_t sum = kernel()->centre(row, dim, room);
  finish_query(room, dim, sum, 2 * lode__code_scale(row), query);
}

/* ---- Keys ---- */

void lode__code_keys(const lode__code_query *query, const unsigned char *const *rows, size_t n, float *out) {
  kernel()->keys(query, rows, n, out);
}
