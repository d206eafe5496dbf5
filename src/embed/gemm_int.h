/* gemm_int.h - 16-bit integers, after gemm_float.h. The including file has quantise() and multiply16() for its instruction set. */

TARGET_INLINE void quantise(const float *x, size_t k, int16_t *q, float *scale);
TARGET static void multiply16(const lode__product *p);

/* The greatest absolute value of a row. */
TARGET_INLINE float top_of(const float *x, size_t n) {
  vec high = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) high = most(high, most(load(x + i), -load(x + i)));
  float top = greatest_of(high);
  for (; i < n; i++) top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
  return top;
}

/* Rounded to the nearest: adding 1.5 * 2^23 leaves the number in the low bits. */
TARGET_INLINE ivec rounded(vec x) { return (ivec)(x + 12582912.0f) - 0x4B400000; }

TARGET static void panel16(const float *x, size_t ldx, size_t k, const float *scales, void *out) {
  for (int j = 0; j < VECS; j++) {
    vec by = 1.0f / load(scales + j * LANES);
    int16_t *to = (int16_t *)out + 2 * j * LANES;
    for (size_t i = 0; i < k; i += 2, to += 2 * LODE__PANEL) {
      ivec low = rounded(load(x + i * ldx + (size_t)j * LANES) * by), high = {0};
      if (i + 1 < k) high = rounded(load(x + (i + 1) * ldx + (size_t)j * LANES) * by);
      ivec pair = (low & 0xFFFF) | (high << 16);
      memcpy(to, &pair, sizeof pair);
    }
  }
}

TARGET static void rows16(const float *x, size_t ldx, const lode__product *p, void *rows, float *row_scales) {
  for (size_t r = 0; r < p->m; r++) {
    int16_t *q = (void *)((char *)rows + r * p->row_bytes);
    quantise(x + r * ldx, p->k, q, &row_scales[r]);
    if (p->k % 2) q[p->k] = 0;
  }
}

/* What gemm.h calls 16-bit integers. */
#define INTEGERS {.bytes = 2, .together = 2, .depth = 384, .scaled = true, .rows = rows16, .panel = panel16, .multiply = multiply16, \
                  .gelu = gelu_coarse, .softmax = softmax_coarse}
