/* gemm_portable.c - the kernel for any CPU. */
#define LANES 4
#define ROWS 2
#define TARGET
#include "embed/gemm_float.h"

#include "embed/safetensors.h"

static bool supported(void) { return true; }

static void quantise(const float *x, size_t k, size_t k4, void *q, lode__quant_row *row) {
  int16_t *out = q;
  float low, high;
  range_of(x, k, &low, &high);
  float top = -low > high ? -low : high;
  float most_q = lode__quant_most(k4), scale = top > 0 ? most_q / top : 0;
  for (size_t i = 0; i < k; i++) out[i] = (int16_t)nearbyintf(x[i] * scale);
  for (size_t i = k; i < k4; i++) out[i] = 0;
  *row = (lode__quant_row){.scale = top / most_q};
}

static void panel8(const void *a, size_t lda, const lode__quant_row *rows, size_t m, const int8_t *p, size_t k4,
                   const float *scales, const int32_t *sums, const float *bias, float *c, size_t ldc, void *scratch) {
  (void)sums;
  (void)scratch;
  const int16_t *q = a;
  for (size_t i = 0; i < m; i++, q += lda, c += ldc) {
    int32_t acc[LODE__PANEL] = {0};
    for (size_t g = 0; g < k4; g += 2)
      for (int j = 0; j < LODE__PANEL; j++)
        acc[j] += q[g] * p[g * LODE__PANEL + 2 * (size_t)j] + q[g + 1] * p[g * LODE__PANEL + 2 * (size_t)j + 1];
    for (int j = 0; j < LODE__PANEL; j++) c[j] = (bias ? bias[j] : 0) + (float)acc[j] * (rows[i].scale * scales[j]);
  }
}

static void widen(const uint16_t *halfs, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = lode__half_to_float(halfs[i]);
}

const lode__gemm_kernel lode__gemm_portable = {
    .name = "portable", .supported = supported, .group = 2, .panel = panel, .panel8 = panel8, .quantise = quantise,
    .gelu = gelu, .softmax = softmax, .norm = norm, .widen = widen,
};
