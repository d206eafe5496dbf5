/* gemm_portable.c - the kernel for any CPU. The compiler's vectors of four floats are SSE2 on x86-64 and NEON on ARM, which has
 * registers for larger tiles. */
#define LANES 4
#if defined(__aarch64__)
#define ROWS 6
#else
#define ROWS 2
#endif
#define TARGET
#include "embed/gemm_rows.h"
#include "embed/gemm_float.h"
#include "embed/gemm_int.h"

#include "embed/safetensors.h"

static bool supported(void) { return true; }

static inline void quantise(const float *x, size_t k, int16_t *q, float *scale) {
  float top = top_of(x, k), by = top > 0 ? LODE__QUANT_MOST / top : 0;
  for (size_t i = 0; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  *scale = top / LODE__QUANT_MOST;
}

static void multiply16(const lode__product *p) {
  for (size_t i = 0; i < p->m; i++) {
    const int16_t *a = row_of(p, i);
    for (size_t at = 0; at < p->n_panels; at++) {
      const int16_t *w = panel_of(p, at);
      float *c = p->c + i * p->ldc + at * LODE__PANEL;
      int32_t acc[LODE__PANEL] = {0};
      for (size_t g = 0; g < p->k; g += 2)
        for (size_t j = 0; j < LODE__PANEL; j++)
          acc[j] += a[g] * w[g * LODE__PANEL + 2 * j] + a[g + 1] * w[g * LODE__PANEL + 2 * j + 1];
      for (size_t j = 0; j < LODE__PANEL; j++) {
        float base = p->more ? c[j] : p->bias ? p->bias[at * LODE__PANEL + j] : 0;
        c[j] = base + (float)acc[j] * (p->row_scales[i] * p->scales[at * LODE__PANEL + j]);
      }
    }
  }
}

static void widen(const uint16_t *halfs, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = lode__half_to_float(halfs[i]);
}

const lode__gemm_kernel lode__gemm_portable = {
    .name = "portable", .supported = supported, .full = FLOATS, .narrow = INTEGERS,
    .block = 96, .scale = scale, .norm = norm, .widen = widen,
};
