/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_portable.c - the kernel for any CPU. The compiler's vectors of four floats are SSE2 on x86-64 and NEON on ARM,
 * which has enough registers for larger tiles. */
#define GEMM_LANES 4
#if defined(__aarch64__)
#define GEMM_ROWS 6
#else
#define GEMM_ROWS 2
#endif
#define GEMM_TARGET
#include "gemm/gemm_rows.h"
#include "gemm/gemm_float.h"
#include "gemm/gemm_int.h"

#include "base/vector.h"

static bool gemm_portable_supported(void) { return true; }

static inline void gemm_quantise(const float *x, size_t k, int16_t *q, float *scale) {
  float top = gemm_top_of(x, k), by = top > 0 ? GEMM_QUANT_MAX / top : 0;
  for (size_t i = 0; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  *scale = top / GEMM_QUANT_MAX;
}

static void gemm_multiply16(const gemm_product *p) {
  for (size_t i = 0; i < p->m; i++) {
    const int16_t *a = gemm_row_of(p, i);
    for (size_t at = 0; at < p->n_panels; at++) {
      const int16_t *w = gemm_panel_of(p, at);
      float *c = p->c + i * p->ldc + at * GEMM_PANEL;
      int32_t acc[GEMM_PANEL] = {0};
      for (size_t g = 0; g < p->k; g += 2)
        for (size_t j = 0; j < GEMM_PANEL; j++)
          acc[j] += a[g] * w[g * GEMM_PANEL + 2 * j] + a[g + 1] * w[g * GEMM_PANEL + 2 * j + 1];
      for (size_t j = 0; j < GEMM_PANEL; j++) {
        float base = p->more ? c[j] : p->bias ? p->bias[at * GEMM_PANEL + j] : 0;
        c[j] = base + (float)acc[j] * (p->row_scales[i] * p->scales[at * GEMM_PANEL + j]);
      }
    }
  }
}

static void gemm_widen(const uint16_t *halfs, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = vec_half_to_float(halfs[i]);
}

const gemm_kernel gemm_portable = {
    .name = "portable",
    .supported = gemm_portable_supported,
    .full = GEMM_FLOATS,
    .narrow = GEMM_INTEGERS,
    .block = 96,
    .scale = gemm_scale,
    .norm = gemm_norm,
    .widen = gemm_widen,
};
