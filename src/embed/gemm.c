/* gemm.c - packing of weights, the loops over panels, and the choice of a kernel; see gemm.h. */
#include "embed/gemm.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- Packing ---- */

void *lode__weights_panel(const lode__arithmetic *how, const lode__weights *w, size_t in, size_t at) {
  return (char *)w->panels + lode__panels(w->n) * lode__panel_bytes(how, in) + at * lode__panel_bytes(how, lode__step(w, in));
}

void lode__weights_put(const lode__arithmetic *how, const lode__weights *w, size_t at, const float *panel) {
  for (size_t in = 0; in < w->k; in += LODE__STEP)
    how->panel(panel + in * LODE__PANEL, LODE__PANEL, lode__step(w, in), w->scales + at * LODE__PANEL, lode__weights_panel(how, w, in, at));
}

void lode__panel_pack(const float *w, size_t ldw, size_t outputs, size_t k, float *panel) {
  for (size_t i = 0; i < k; i++, panel += LODE__PANEL) {
    for (size_t j = 0; j < outputs; j++) panel[j] = w[j * ldw + i];
    for (size_t j = outputs; j < LODE__PANEL; j++) panel[j] = 0;
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

/* Rows take whole cache lines. */
static size_t row_stride(const lode__arithmetic *how, size_t k) { return lode__pad(lode__row_bytes(how, k), 64); }
static size_t scales_bytes(size_t m) { return lode__pad(m * sizeof(float), 64); }

size_t lode__rows_scratch(const lode__arithmetic *how, size_t m, size_t k) {
  return how->rows ? scales_bytes(m) + lode__pad(m, LODE__PANEL) * row_stride(how, k) : 0;
}

void lode__product_rows(const lode__arithmetic *how, const float *x, size_t ldx, void *scratch, lode__product *p) {
  if (!how->rows) {
    p->rows = x;
    p->row_bytes = ldx * sizeof(float);
    return;
  }
  void *rows = (char *)scratch + scales_bytes(p->m);
  p->rows = rows;
  p->row_bytes = row_stride(how, p->k);
  p->row_scales = scratch;
  how->rows(x, ldx, p, rows, scratch);
}

void lode__gemm(const lode__arithmetic *how, const lode__part *part, const float *a, size_t lda, size_t m, float *c, size_t ldc,
                void *scratch) {
  const lode__weights *w = part->w;
  size_t first = part->out / LODE__PANEL;
  lode__product p = {.m = m, .n_panels = lode__panels(part->out_end) - first, .scales = w->scales + part->out,
                     .bias = w->bias ? w->bias + part->out : NULL, .c = c, .ldc = ldc};
  for (size_t i = part->in; i < part->in_end; i += how->depth) {
    size_t inside = i % LODE__STEP;
    p.k = least(part->in_end - i, how->depth);
    p.more = i > 0;
    p.panels = (const char *)lode__weights_panel(how, w, i - inside, first) + lode__panel_bytes(how, inside);
    p.panel_bytes = lode__panel_bytes(how, lode__step(w, i - inside));
    lode__product_rows(how, a + (i - part->in), lda, scratch, &p);
    how->multiply(&p);
  }
}

/* ---- The choice ---- */

/* Best first. */
static const lode__gemm_kernel *const kernels[] = {
#if defined(__x86_64__)
    &lode__gemm_amx,
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
