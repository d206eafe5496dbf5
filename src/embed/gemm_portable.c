/* gemm_portable.c - the kernel for any CPU. The compiler's vectors of four floats are SSE2 on x86-64 and NEON on ARM, which has
 * registers for larger tiles. */
#define LANES 4
#if defined(__aarch64__)
#define ROWS 6
#else
#define ROWS 2
#endif
#define TARGET
#include "embed/gemm_float.h"

#include "embed/safetensors.h"

static bool supported(void) { return true; }

static void quantise(const float *x, size_t k, size_t k2, int16_t *q, float *scale) {
  float top = top_of(x, k), by = top > 0 ? LODE__QUANT_MOST / top : 0;
  for (size_t i = 0; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  if (k < k2) q[k] = 0;
  *scale = top / LODE__QUANT_MOST;
}

static void panel16(const int16_t *a, size_t lda, const float *row_scales, size_t m, const int16_t *p, size_t k2,
                    const float *scales, const float *bias, float *c, size_t ldc) {
  for (size_t i = 0; i < m; i++, a += lda, c += ldc) {
    int32_t acc[LODE__PANEL] = {0};
    for (size_t g = 0; g < k2; g += 2)
      for (size_t j = 0; j < LODE__PANEL; j++)
        acc[j] += a[g] * p[g * LODE__PANEL + 2 * j] + a[g + 1] * p[g * LODE__PANEL + 2 * j + 1];
    for (int j = 0; j < LODE__PANEL; j++) c[j] = (bias ? bias[j] : 0) + (float)acc[j] * (row_scales[i] * scales[j]);
  }
}

static void widen(const uint16_t *halfs, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = lode__half_to_float(halfs[i]);
}

const lode__gemm_kernel lode__gemm_portable = {
    .name = "portable", .supported = supported, .panel = panel, .panel16 = panel16, .quantise = quantise,
    .gelu = gelu, .softmax = softmax, .norm = norm, .widen = widen, .narrow = narrow,
};
