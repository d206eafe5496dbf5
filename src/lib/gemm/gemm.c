/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - packing of weights, the loops over panels, and the choice of a kernel; see gemm.h. */
#include "gemm/gemm.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

static inline size_t gemm_min_size(size_t a, size_t b) { return a < b ? a : b; }

/* ---- Packing ---- */

void *gemm_weights_panel(const gemm_arithmetic *how, const gemm_weights *w, size_t in, size_t at) {
  return (char *)w->panels + gemm_panels(w->n) * gemm_panel_bytes(how, in) +
         at * gemm_panel_bytes(how, gemm_step_inputs(w, in));
}

void gemm_weights_put(const gemm_arithmetic *how, const gemm_weights *w, size_t at, const float *panel) {
  for (size_t in = 0; in < w->k; in += GEMM_STEP)
    how->panel(panel + in * GEMM_PANEL, GEMM_PANEL, gemm_step_inputs(w, in), w->scales + at * GEMM_PANEL,
               gemm_weights_panel(how, w, in, at));
}

void gemm_pack_panel(const float *w, size_t ldw, size_t outputs, size_t k, float *panel) {
  for (size_t i = 0; i < k; i++, panel += GEMM_PANEL) {
    for (size_t j = 0; j < outputs; j++) panel[j] = w[j * ldw + i];
    for (size_t j = outputs; j < GEMM_PANEL; j++) panel[j] = 0;
  }
}

float gemm_weight_scale(const float *w, size_t k) {
  double greatest = 0, sum = 0;
  for (size_t i = 0; i < k; i++) {
    double a = fabs((double)w[i]);
    greatest = a > greatest ? a : greatest;
    sum += a;
  }
  /* sum of |round(w / scale)| <= sum / scale + k / 2, and that times GEMM_QUANT_MAX must fit; a margin is left for
   * rounding */
  double limit = (double)INT32_MAX / GEMM_QUANT_MAX - (double)k / 2 - 16;
  double by_sum = sum / limit, by_greatest = greatest / 32700;
  double scale = by_sum > by_greatest ? by_sum : by_greatest;
  return scale > 1e-30 ? (float)(scale * 1.0001) : 1e-30f;
}

/* ---- Products ---- */

/* Rows take whole cache lines. */
static size_t gemm_row_stride(const gemm_arithmetic *how, size_t k) { return gemm_pad(gemm_row_bytes(how, k), 64); }
static size_t gemm_scales_bytes(size_t m) { return gemm_pad(m * sizeof(float), 64); }

size_t gemm_rows_scratch(const gemm_arithmetic *how, size_t m, size_t k) {
  return how->rows ? gemm_scales_bytes(m) + gemm_pad(m, GEMM_PANEL) * gemm_row_stride(how, k) : 0;
}

void gemm_product_rows(const gemm_arithmetic *how, const float *x, size_t ldx, void *scratch, gemm_product *p) {
  if (!how->rows) {
    p->rows = x;
    p->row_bytes = ldx * sizeof(float);
    return;
  }
  void *rows = (char *)scratch + gemm_scales_bytes(p->m);
  p->rows = rows;
  p->row_bytes = gemm_row_stride(how, p->k);
  p->row_scales = scratch;
  how->rows(x, ldx, p, rows, scratch);
}

void gemm_multiply(const gemm_arithmetic *how, const gemm_part *part, const float *a, size_t lda, size_t m, float *c,
                   size_t ldc, void *scratch) {
  const gemm_weights *w = part->w;
  size_t first = part->out / GEMM_PANEL;
  gemm_product p = {.m = m,
                    .n_panels = gemm_panels(part->out_end) - first,
                    .scales = w->scales + part->out,
                    .bias = w->bias ? w->bias + part->out : NULL,
                    .c = c,
                    .ldc = ldc};
  for (size_t i = part->in; i < part->in_end; i += how->depth) {
    size_t offset = i % GEMM_STEP;
    p.k = gemm_min_size(part->in_end - i, how->depth);
    p.more = i > 0;
    p.panels = (const char *)gemm_weights_panel(how, w, i - offset, first) + gemm_panel_bytes(how, offset);
    p.panel_bytes = gemm_panel_bytes(how, gemm_step_inputs(w, i - offset));
    gemm_product_rows(how, a + (i - part->in), lda, scratch, &p);
    how->multiply(&p);
  }
}

/* ---- The choice ---- */

/* Best first. */
static const gemm_kernel *const gemm_kernels[] = {
#if defined(__x86_64__)
    &gemm_amx,
    &gemm_vnni,
    &gemm_avx2,
#endif
    &gemm_portable,
};

static _Atomic(const gemm_kernel *) gemm_chosen; /* all threads choose the same */

const gemm_kernel *gemm_kernel_at(size_t i) {
  return i < sizeof gemm_kernels / sizeof *gemm_kernels ? gemm_kernels[i] : NULL;
}

static const gemm_kernel *gemm_find_kernel(const char *name) {
  for (size_t i = 0; i < sizeof gemm_kernels / sizeof *gemm_kernels; i++)
    if ((!name || strcmp(name, gemm_kernels[i]->name) == 0) && gemm_kernels[i]->supported()) return gemm_kernels[i];
  return NULL;
}

const gemm_kernel *gemm_kernel_get(void) {
  const gemm_kernel *kernel = atomic_load_explicit(&gemm_chosen, memory_order_relaxed);
  if (!kernel) {
    const char *name = getenv("LODE_SIMD");
    kernel = name ? gemm_find_kernel(name) : NULL;
    if (!kernel) kernel = gemm_find_kernel(NULL);
    atomic_store_explicit(&gemm_chosen, kernel, memory_order_relaxed);
  }
  return kernel;
}
