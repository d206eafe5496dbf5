/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_int.h - 16-bit integers; include after gemm_float.h. The including file defines gemm_quantise() and
 * gemm_multiply16() for its instruction set. */

GEMM_INLINE void gemm_quantise(const float *x, size_t k, int16_t *q, float *scale);
GEMM_TARGET static void gemm_multiply16(const gemm_product *p);

/* The greatest absolute value of a row. */
GEMM_INLINE float gemm_top_of(const float *x, size_t n) {
  gemm_vec high = {0};
  size_t i = 0;
  for (; i + GEMM_LANES <= n; i += GEMM_LANES) high = gemm_most(high, gemm_most(gemm_load(x + i), -gemm_load(x + i)));
  float top = gemm_greatest_of(high);
  for (; i < n; i++) top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
  return top;
}

/* Rounds to nearest: adding 1.5 * 2^23 leaves the integer in the low bits. */
GEMM_INLINE gemm_ivec gemm_rounded(gemm_vec x) { return (gemm_ivec)(x + 12582912.0f) - 0x4B400000; }

GEMM_TARGET static void gemm_panel16(const float *x, size_t ldx, size_t k, const float *scales, void *out) {
  for (int j = 0; j < GEMM_VECS; j++) {
    gemm_vec by = 1.0f / gemm_load(scales + j * GEMM_LANES);
    int16_t *to = (int16_t *)out + 2 * j * GEMM_LANES;
    for (size_t i = 0; i < k; i += 2, to += 2 * GEMM_PANEL) {
      gemm_ivec low = gemm_rounded(gemm_load(x + i * ldx + (size_t)j * GEMM_LANES) * by), high = {0};
      if (i + 1 < k) high = gemm_rounded(gemm_load(x + (i + 1) * ldx + (size_t)j * GEMM_LANES) * by);
      gemm_ivec pair = (low & 0xFFFF) | (high << 16);
      memcpy(to, &pair, sizeof pair);
    }
  }
}

GEMM_TARGET static void gemm_rows16(const float *x, size_t ldx, const gemm_product *p, void *rows, float *row_scales) {
  for (size_t r = 0; r < p->m; r++) {
    int16_t *q = (void *)((char *)rows + r * p->row_bytes);
    gemm_quantise(x + r * ldx, p->k, q, &row_scales[r]);
    if (p->k % 2) q[p->k] = 0;
  }
}

/* The arithmetic `16-bit integers` of gemm.h. */
#define GEMM_INTEGERS                                                                                                  \
  {                                                                                                                    \
    .bytes = 2, .together = 2, .depth = 384, .scaled = true, .rows = gemm_rows16, .panel = gemm_panel16,               \
    .multiply = gemm_multiply16, .gelu = gemm_gelu_coarse, .softmax = gemm_softmax_coarse                              \
  }
