/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - the arithmetic of the encoder: products of activations with packed weights, and the functions between them.
 *
 * A kernel is written for a CPU. It has two arithmetics, `full` and `narrow`, that differ in the number format:
 *   floats            as they are
 *   16-bit integers   the inputs of a step of a row become 13 bits with a scale of their own; weights have a scale for
 *                     each output, as fine as 32-bit sums allow (no sum can overflow: gemm_weight_scale()). Eight bits
 *                     were tried: they keep a cosine of 0.999 but change one neighbour in thirty.
 *   bfloat16          the upper half of a float, 8 bits of precision; or two, a number and its remainder: 16 bits
 *
 * Weights (n outputs, k inputs) are stored in steps of GEMM_STEP inputs, and a step in panels of 16 outputs, padded
 * with zeros, so that memory is read sequentially. A panel is stored input by input; the inputs that an instruction
 * multiplies and adds at once (`together`) are adjacent: k/2 x 16 x 2 if it takes two.
 *
 * Every output is one sum in the order of its inputs, whatever the number of rows or their position: a text's vector
 * depends neither on its neighbours nor on the number of threads. Between instruction sets the last bits may differ.
 *
 * A product processes `depth` inputs at a time: that much of a panel, and of its rows, stays in the first-level cache;
 * the sums continue from those of the inputs before.
 */
#ifndef LODE_GEMM_GEMM_H
#define LODE_GEMM_GEMM_H

#include "base/base.h"

enum {
  GEMM_PANEL = 16,       /* outputs of a panel */
  GEMM_QUANT_MAX = 4095, /* greatest magnitude of an activation as an integer */
  GEMM_STEP = 384,       /* inputs of a step; a multiple of every depth */
};

/* c[i][16 j + 0..16) = (more ? c[i][...] : bias) + row i . panel j, for m rows of k inputs and any number of panels. */
typedef struct gemm_product {
  const void *rows, *panels;
  size_t row_bytes, panel_bytes; /* of one row or panel; the layout of rows depends on the arithmetic */
  size_t m, k, n_panels;
  const float *row_scales, *scales; /* of each row and of each output, if the numbers are scaled */
  const float *bias;                /* NULL: zeros */
  bool more;
  float *c;
  size_t ldc;
} gemm_product;

typedef struct gemm_arithmetic {
  size_t bytes;    /* of an input, in a row and in a panel */
  size_t together; /* inputs that an instruction takes at once; rows and panels are padded to a multiple of it */
  size_t depth;
  bool scaled;
  /* Converts p->m rows of p->k floats, ldx apart, to `rows`, with room for m padded to 16; NULL: floats are used as
   * they are */
  void (*rows)(const float *x, size_t ldx, const gemm_product *p, void *rows, float *row_scales);
  /* Converts k inputs of 16 outputs, ldx apart, to a panel */
  void (*panel)(const float *x, size_t ldx, size_t k, const float *scales, void *panel);
  /* The same if each of at most 16 outputs is a row of x: gemm_pack_panel() and `panel` in one; NULL: no faster than
   * those */
  void (*panel_of_rows)(const float *x, size_t ldx, size_t outputs, size_t k, void *panel);
  void (*multiply)(const gemm_product *p);
  /* Functions between products, with the same precision. */
  void (*gelu)(float *x, size_t n); /* exact form (erf), in place; n is a multiple of 16 */
  /* Softmax of m rows of n values multiplied by `times`, except for a factor of each row; rows are `stride` apart, a
   * multiple of 16, and the padding after their values becomes 0 */
  void (*softmax)(float *x, size_t m, size_t n, size_t stride, float times, float *factors);
} gemm_arithmetic;

typedef struct gemm_kernel {
  const char *name;
  bool (*supported)(void); /* by the CPU and the operating system */
  gemm_arithmetic full, narrow;
  /* rows that should go through a layer together: the faster the products, the more rows must share what is fetched */
  size_t block;
  void (*scale)(const float *x, float by, size_t n, float *out);
  /* x = norm(x + add) * gain + shift; add may be NULL */
  void (*norm)(float *x, const float *add, const float *gain, const float *shift, size_t n, float epsilon);
  void (*widen)(const uint16_t *halfs, float *out, size_t n); /* half precision to float */
} gemm_kernel;

/* The best kernel for this CPU; LODE_SIMD=NAME in the environment selects another ("portable", "avx2", ...). */
const gemm_kernel *gemm_kernel_get(void);
/* All kernels that were compiled in, for tests; NULL past the end. */
const gemm_kernel *gemm_kernel_at(size_t i);

/* ---- Packed weights ---- */

typedef struct gemm_weights {
  size_t k, n;
  float *bias;   /* n padded to 16; NULL: none */
  float *scales; /* scale of each output, for integers; padded to 16 */
  void *panels;
} gemm_weights;

static inline size_t gemm_pad(size_t n, size_t to) { return (n + to - 1) / to * to; }
static inline size_t gemm_panels(size_t n) { return (n + GEMM_PANEL - 1) / GEMM_PANEL; }
static inline size_t gemm_step_inputs(const gemm_weights *w, size_t in) {
  return w->k - in < GEMM_STEP ? w->k - in : GEMM_STEP;
}
static inline size_t gemm_row_bytes(const gemm_arithmetic *how, size_t k) {
  return gemm_pad(k, how->together) * how->bytes;
}
static inline size_t gemm_panel_bytes(const gemm_arithmetic *how, size_t k) {
  return gemm_row_bytes(how, k) * GEMM_PANEL;
}

/* The finest scale with which k weights fit in 16 bits, and their sum with any activations in 32 bits. */
float gemm_weight_scale(const float *w, size_t k);
/* Packs `outputs` (at most 16) rows of k floats, ldw apart, as PyTorch stores weights, into a panel of floats. */
void gemm_pack_panel(const float *w, size_t ldw, size_t outputs, size_t k, float *panel);
/* Panel number `at` of the step that starts with input `in`. */
void *gemm_weights_panel(const gemm_arithmetic *how, const gemm_weights *w, size_t in, size_t at);
/* Converts a panel of floats, of all inputs, to panel number `at` of w, whose scales are set. */
void gemm_weights_put(const gemm_arithmetic *how, const gemm_weights *w, size_t at, const float *panel);

/* ---- Products ---- */

/* Prepares p->m rows of p->k floats for a product. `scratch`: gemm_rows_scratch() bytes, 64-byte aligned. */
void gemm_product_rows(const gemm_arithmetic *how, const float *x, size_t ldx, void *scratch, gemm_product *p);
size_t gemm_rows_scratch(const gemm_arithmetic *how, size_t m, size_t k);

/* Part of a matrix: outputs [out, out_end) from inputs [in, in_end). `in` is a multiple of GEMM_STEP, `out` of
 * GEMM_PANEL. If `in` is not 0, the sums continue from those that c holds. */
typedef struct gemm_part {
  const gemm_weights *w;
  size_t in, in_end, out, out_end;
} gemm_part;
static inline gemm_part gemm_part_all(const gemm_weights *w) { return (gemm_part){w, 0, w->k, 0, w->n}; }

/* c (m rows, ldc >= outputs padded to 16) = a (m rows of the part's inputs) x part + bias. `scratch` is for a step of m
 * rows. */
void gemm_multiply(const gemm_arithmetic *how, const gemm_part *part, const float *a, size_t lda, size_t m, float *c,
                   size_t ldc, void *scratch);

extern const gemm_kernel gemm_portable;
#if defined(__x86_64__)
extern const gemm_kernel gemm_avx2, gemm_vnni, gemm_amx;
#endif

#endif
