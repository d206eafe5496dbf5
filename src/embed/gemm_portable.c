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

static void panel16(const lode__product16 *p) {
  for (size_t i = 0; i < p->m; i++) {
    const int16_t *a = p->a + i * p->lda, *w = p->panel;
    float *c = p->c + i * p->ldc;
    int32_t acc[LODE__PANEL] = {0};
    for (size_t g = 0; g < p->k2; g += 2)
      for (size_t j = 0; j < LODE__PANEL; j++)
        acc[j] += a[g] * w[g * LODE__PANEL + 2 * j] + a[g + 1] * w[g * LODE__PANEL + 2 * j + 1];
    for (int j = 0; j < LODE__PANEL; j++) {
      float base = p->more ? c[j] : p->bias ? p->bias[j] : 0;
      c[j] = base + (float)acc[j] * (p->row_scales[i] * p->scales[j]);
    }
  }
}

static void widen(const uint16_t *halfs, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = lode__half_to_float(halfs[i]);
}

const lode__gemm_kernel lode__gemm_portable = {
    .name = "portable", .supported = supported, .panel = panel, .panel16 = panel16, .quantise = quantise,
    .gelu = gelu, .softmax = softmax, .norm = norm, .widen = widen, .narrow = narrow,
};
