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

#include "index/code_impl.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "segments hold little-endian numbers that are used where they lie"
#endif

#define FARTHEST 0x1p40f

/* ---- Portable kernel, and the choice ---- */

static void portable_keys(const lode__code_query *query, const unsigned char *const *rows, size_t n, float *out) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char *codes = rows[i] + LODE__CODE_HEAD;
    int32_t sum = 0;
    for (size_t j = 0; j < query->dim; j++) sum += (int32_t)query->code[j] * codes[j]; /* 255 * 127 * 65,535 still fits */
    out[i] = lode__code_key(query, rows[i], sum);
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

/* ---- Model ---- */

/* What a vector is multiplied by before anything else: 1, or for cosine 1 / length (0 for a zero vector). */
static double rescale(lode_metric metric, const float *vector, size_t dim) {
  if (metric != LODE_COSINE) return 1;
  double norm2 = 0;
  for (size_t j = 0; j < dim; j++) norm2 += (double)vector[j] * vector[j];
  return norm2 > 0 ? 1 / sqrt(norm2) : 0;
}

lode_status lode__code_fit_begin(lode__code_fit *fit, lode_metric metric, uint32_t dim, lode_error *err) {
  *fit = (lode__code_fit){.metric = metric, .dim = dim};
  fit->sums = lode__alloc_zero(dim, sizeof *fit->sums);
  return fit->sums ? LODE_OK : lode__fail_nomem(err);
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
  lode__free(fit->sums);
  *fit = (lode__code_fit){0};
}

/* ---- Rows and queries ---- */

size_t lode__code_stride(uint32_t dim) {
  size_t least = LODE__CODE_HEAD + (size_t)dim;
  size_t lines = (least + 63) / 64 * 64;
  return (lines - least) * 6 <= least ? lines : (least + 7) / 8 * 8;
}

static inline float within(float v) { return v > FARTHEST ? FARTHEST : v < -FARTHEST ? -FARTHEST : v; }

/* Element j of the vector in the model's units. by is 1 except for cosine. */
static inline float element(const lode__code_model *model, const float *vector, double by, size_t j) {
  float v = model->metric == LODE_COSINE ? (float)(vector[j] * by) : vector[j];
  return within(v * model->unit);
}

float lode__code_row(const lode__code_model *model, const float *vector, uint32_t slot, unsigned char *row) {
  double by = rescale(model->metric, vector, model->dim);
  float greatest = 0, length2 = 0;
  for (size_t j = 0; j < model->dim; j++) {
    float v = element(model, vector, by, j), size = fabsf(v - model->mean[j]);
    length2 += v * v;
    if (size > greatest) greatest = size;
  }
  float scale = greatest / LODE__CODE_REACH;
  float per = scale > FLT_MIN ? 1 / scale : 0;
  if (per == 0) scale = 0;
  unsigned char *code = row + LODE__CODE_HEAD;
  memset(row, 0, lode__code_stride(model->dim));
  for (size_t j = 0; j < model->dim; j++) {
    float v = (element(model, vector, by, j) - model->mean[j]) * per + (LODE__CODE_ZERO + 0.5f);
    int c = (int)v; /* v is positive: this rounds */
    code[j] = (unsigned char)(c < 1 ? 1 : c > 127 ? 127 : c);
  }
  memcpy(row, &scale, sizeof scale);
  float bias = model->metric == LODE_IP ? 0 : lode__code_norm(row, model->dim);
  if (model->metric == LODE_COSINE && by == 0) bias += model->unit * model->unit;
  memcpy(row + 4, &bias, sizeof bias);
  memcpy(row + 8, &slot, sizeof slot);
  return length2;
}

float lode__code_norm(const unsigned char *row, uint32_t dim) {
  const unsigned char *code = row + LODE__CODE_HEAD;
  uint32_t sum = 0; /* 191 * 191 * 65,535, of a forged file, fits too */
  for (size_t j = 0; j < dim; j++) {
    int32_t c = code[j] - LODE__CODE_ZERO;
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
  bool centred = model->metric != LODE_IP;
  float greatest = 0;
  for (size_t j = 0; j < model->dim; j++) {
    float size = fabsf(element(model, vector, by, j) - (centred ? model->mean[j] : 0));
    if (size > greatest) greatest = size;
  }
  float scale = greatest / LODE__QUERY_REACH;
  float per = scale > FLT_MIN ? 1 / scale : 0;
  if (per == 0) scale = 0;
  int32_t sum = 0;
  for (size_t j = 0; j < model->dim; j++) {
    float v = (element(model, vector, by, j) - (centred ? model->mean[j] : 0)) * per + 128.5f;
    int c = (int)v - 128;
    c = c < -LODE__QUERY_REACH ? -LODE__QUERY_REACH : c > LODE__QUERY_REACH ? LODE__QUERY_REACH : c;
    room[j] = (int8_t)c;
    sum += c;
  }
  finish_query(room, model->dim, sum, 2 * scale, query);
}

void lode__code_query_row(const unsigned char *row, uint32_t dim, int8_t *room, lode__code_query *query) {
  int32_t sum = kernel()->centre(row + LODE__CODE_HEAD, dim, room);
  finish_query(room, dim, sum, 2 * lode__code_scale(row), query);
}

/* ---- Keys ---- */

void lode__code_keys(const lode__code_query *query, const unsigned char *const *rows, size_t n, float *out) {
  kernel()->keys(query, rows, n, out);
}
