/* gemm.c - packing of weights, the loops over panels, and the choice of a kernel; see gemm.h. */
#include "embed/gemm.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- Packing ---- */

void lode__weights_pack(const float *w, size_t n, size_t k, float *panels) {
  for (size_t p = 0; p < lode__panels(n); p++, panels += k * LODE__PANEL) {
    for (size_t j = 0; j < LODE__PANEL; j++) {
      size_t output = p * LODE__PANEL + j;
      for (size_t i = 0; i < k; i++) panels[i * LODE__PANEL + j] = output < n ? w[output * k + i] : 0;
    }
  }
}

float lode__weight_scale(const float *w, size_t k) {
  double most = 0, sum = 0;
  for (size_t i = 0; i < k; i++) {
    double a = fabs((double)w[i]);
    most = a > most ? a : most;
    sum += a;
  }
  /* sum of |round(w / scale)| <= sum / scale + k / 2, and that times QUANT_MOST must fit; a little is left for rounding */
  double room = (double)INT32_MAX / LODE__QUANT_MOST - (double)k / 2 - 16;
  double by_sum = sum / room, by_most = most / 32700;
  double scale = by_sum > by_most ? by_sum : by_most;
  return scale > 1e-30 ? (float)(scale * 1.0001) : 1e-30f;
}

/* ---- Products ---- */

void lode__gemm(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                size_t ldc) {
  for (size_t p = 0; p < lode__panels(w->n); p++)
    kernel->panel(a, lda, m, w->full + p * w->k * LODE__PANEL, w->k, w->bias ? w->bias + p * LODE__PANEL : NULL,
                  c + p * LODE__PANEL, ldc);
}

size_t lode__gemm16_scratch(size_t m, size_t k) {
  return lode__pad(m * sizeof(float), 64) + m * lode__pad(k, 32) * sizeof(int16_t);
}

void lode__gemm16(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                  size_t ldc, void *scratch) {
  size_t k2 = lode__pad(w->k, 2), stride = lode__pad(w->k, 32);
  float *scales = scratch;
  int16_t *q = (int16_t *)(void *)((char *)scratch + lode__pad(m * sizeof(float), 64));
  for (size_t i = 0; i < m; i++) kernel->quantise(a + i * lda, w->k, k2, q + i * stride, &scales[i]);
  for (size_t p = 0; p < lode__panels(w->n); p++)
    kernel->panel16(q, stride, scales, m, w->narrow + p * k2 * LODE__PANEL, k2, w->scales + p * LODE__PANEL,
                    w->bias ? w->bias + p * LODE__PANEL : NULL, c + p * LODE__PANEL, ldc);
}

/* ---- The choice ---- */

/* Best first. */
static const lode__gemm_kernel *const kernels[] = {
#if defined(__x86_64__)
    &lode__gemm_vnni,
    &lode__gemm_avx2,
#endif
    &lode__gemm_portable,
};

static _Atomic(const lode__gemm_kernel *) chosen; /* whoever comes first, all choose the same */

const lode__gemm_kernel *lode__gemm_kernel_at(size_t i) {
  return i < sizeof kernels / sizeof *kernels ? kernels[i] : NULL;
}

static const lode__gemm_kernel *find(const char *name) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if ((!name || strcmp(name, kernels[i]->name) == 0) && kernels[i]->supported()) return kernels[i];
  return NULL;
}

const lode__gemm_kernel *lode__gemm_kernel_get(void) {
  const lode__gemm_kernel *kernel = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (!kernel) {
    const char *asked = getenv("LODE_SIMD");
    kernel = asked ? find(asked) : NULL;
    if (!kernel) kernel = find(NULL);
    atomic_store_explicit(&chosen, kernel, memory_order_relaxed);
  }
  return kernel;
}
