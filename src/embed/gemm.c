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

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }

void lode__gemm(const lode__gemm_kernel *kernel, const lode__part *part, const float *a, size_t lda, size_t m, float *c,
                size_t ldc) {
  const lode__weights *w = part->w;
  size_t first = part->out / LODE__PANEL, end = lode__panels(part->out_end);
  for (size_t i = part->in; i < part->in_end; i += LODE__DEPTH) {
    lode__product p = {.a = a + (i - part->in), .lda = lda, .m = m, .k = least(part->in_end - i, LODE__DEPTH), .more = i > 0, .ldc = ldc};
    for (size_t o = first; o < end; o++) {
      p.panel = w->full + (o * w->k + i) * LODE__PANEL;
      p.next = o + 1 < end ? p.panel + w->k * LODE__PANEL : NULL;
      p.bias = w->bias ? w->bias + o * LODE__PANEL : NULL;
      p.c = c + (o - first) * LODE__PANEL;
      kernel->panel(&p);
    }
  }
}

enum { DEPTH16 = 2 * LODE__DEPTH };

size_t lode__gemm16_scratch(size_t m, size_t k) {
  return lode__pad(m * sizeof(float), 64) + m * lode__pad(least(k, DEPTH16), 32) * sizeof(int16_t);
}

void lode__gemm16(const lode__gemm_kernel *kernel, const lode__part *part, const float *a, size_t lda, size_t m, float *c,
                  size_t ldc, void *scratch) {
  const lode__weights *w = part->w;
  size_t first = part->out / LODE__PANEL, end = lode__panels(part->out_end), panel = lode__pad(w->k, 2) * LODE__PANEL;
  float *row_scales = scratch;
  int16_t *q = (int16_t *)(void *)((char *)scratch + lode__pad(m * sizeof(float), 64));
  for (size_t i = part->in; i < part->in_end; i += DEPTH16) {
    size_t k = least(part->in_end - i, DEPTH16), k2 = lode__pad(k, 2), stride = lode__pad(k, 32);
    for (size_t r = 0; r < m; r++) kernel->quantise(a + r * lda + (i - part->in), k, k2, q + r * stride, &row_scales[r]);
    lode__product16 p = {.a = q, .lda = stride, .m = m, .k2 = k2, .row_scales = row_scales, .more = i > 0, .ldc = ldc};
    for (size_t o = first; o < end; o++) {
      p.panel = w->narrow + o * panel + i * LODE__PANEL;
      p.next = o + 1 < end ? p.panel + panel : NULL;
      p.scales = w->scales + o * LODE__PANEL;
      p.bias = w->bias ? w->bias + o * LODE__PANEL : NULL;
      p.c = c + (o - first) * LODE__PANEL;
      kernel->panel16(&p);
    }
  }
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
