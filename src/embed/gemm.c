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

static inline size_t place(size_t k4, unsigned group, size_t output, size_t input) {
  size_t p = output / LODE__PANEL, j = output % LODE__PANEL;
  return p * k4 * LODE__PANEL + input / group * group * LODE__PANEL + j * group + input % group;
}

static int8_t to_int8(float x) {
  float r = nearbyintf(x);
  return (int8_t)(r > 127 ? 127 : r < -127 ? -127 : r);
}

/* The scale that loses least: the greatest weight may be cut where that serves the others. */
static float best_scale(const float *w, size_t k) {
  float most = 0, best = 0;
  double least = INFINITY;
  for (size_t i = 0; i < k; i++) most = fabsf(w[i]) > most ? fabsf(w[i]) : most;
  if (!(most > 0)) return 1;
  for (int step = 0; step < 12; step++) {
    float scale = most * (1 - 0.03f * (float)step) / 127;
    double error = 0;
    for (size_t i = 0; i < k; i++) {
      double d = (double)w[i] - (double)scale * to_int8(w[i] / scale);
      error += d * d;
    }
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

void lode__weights_quantise(const float *w, size_t n, size_t k, unsigned group, int8_t *panels, float *scales, int32_t *sums) {
  size_t k4 = lode__pad(k, 4), padded = lode__pad(n, LODE__PANEL);
  memset(panels, 0, k4 * padded);
  for (size_t o = 0; o < padded; o++) {
    scales[o] = 0;
    sums[o] = 0;
    if (o >= n) continue;
    scales[o] = best_scale(w + o * k, k);
    for (size_t i = 0; i < k; i++) {
      int8_t q = to_int8(w[o * k + i] / scales[o]);
      panels[place(k4, group, o, i)] = q;
      sums[o] += q;
    }
  }
}

void lode__weights_regroup(const int8_t *from, unsigned from_group, int8_t *to, unsigned to_group, size_t n, size_t k) {
  size_t k4 = lode__pad(k, 4);
  for (size_t o = 0; o < lode__pad(n, LODE__PANEL); o++)
    for (size_t i = 0; i < k4; i++) to[place(k4, to_group, o, i)] = from[place(k4, from_group, o, i)];
}

/* ---- Products ---- */

void lode__gemm(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                size_t ldc) {
  for (size_t p = 0; p < lode__panels(w->n); p++)
    kernel->panel(a, lda, m, w->full + p * w->k * LODE__PANEL, w->k, w->bias ? w->bias + p * LODE__PANEL : NULL,
                  c + p * LODE__PANEL, ldc);
}

size_t lode__gemm8_scratch(size_t m, size_t k) {
  size_t k4 = lode__pad(k, 4);
  return lode__pad(2 * k4 * LODE__PANEL, 64) + lode__pad(m * sizeof(lode__quant_row), 64) + m * lode__pad(2 * k4, 64);
}

void lode__gemm8(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                 size_t ldc, void *scratch) {
  size_t k4 = lode__pad(w->k, 4), size = kernel->group == 2 ? 2 : 1, stride = lode__pad(k4, 64 / size);
  char *wide = scratch, *at = wide + lode__pad(2 * k4 * LODE__PANEL, 64);
  lode__quant_row *rows = (lode__quant_row *)(void *)at;
  char *q = at + lode__pad(m * sizeof *rows, 64);
  for (size_t i = 0; i < m; i++) kernel->quantise(a + i * lda, w->k, k4, q + i * stride * size, &rows[i]);
  for (size_t p = 0; p < lode__panels(w->n); p++)
    kernel->panel8(q, stride, rows, m, w->int8 + p * k4 * LODE__PANEL, k4, w->scales + p * LODE__PANEL,
                   w->sums + p * LODE__PANEL, w->bias ? w->bias + p * LODE__PANEL : NULL, c + p * LODE__PANEL, ldc, wide);
}

/* ---- The choice ---- */

/* Best first. */
static const lode__gemm_kernel *const kernels[] = {
#if defined(__x86_64__)
    &lode__gemm_vnni,
    &lode__gemm_avx2,
#endif
#if defined(__aarch64__)
    &lode__gemm_neon,
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
