/* gemm.h - the arithmetic of the encoder: products of activations with packed weights, and what stands between them.
 *
 * Weights (n outputs, k inputs) lie in panels of 16 outputs. A float panel is k x 16, input after input. An int8 panel
 * groups its inputs by 2 or by 4 (what the kernel's instruction adds up): k/group x 16 x group. Both are padded with zeros,
 * to 16 outputs and to a multiple of 4 inputs (int8).
 *
 * Every output is one sum in the order of its inputs, whatever the number of rows or their place: a text's vector does not
 * depend on what stands beside it, nor on the number of threads. Between instruction sets the last bits may differ.
 *
 * int8: weights have a scale for each output. Activations are quantised row by row when they are needed: to 14 bits where
 * the instruction multiplies 16-bit numbers (group 2), to 8 bits with a zero point where it multiplies bytes (group 4).
 */
#ifndef LODE_GEMM_H
#define LODE_GEMM_H

#include "base/base.h"

enum {
  LODE__PANEL = 16,
  LODE__GEMM_K_MAX = 65536,
};

/* A row of quantised activations is `scale * (q - zero)`. */
typedef struct lode__quant_row {
  float scale;
  int32_t zero;
} lode__quant_row;

typedef struct lode__gemm_kernel {
  const char *name;
  bool (*supported)(void); /* by the CPU and the operating system */
  unsigned group;          /* inputs that an int8 panel keeps together: 2 or 4 */
  /* c[i][0..16) = bias + a[i] . panel for m rows; bias may be NULL. */
  void (*panel)(const float *a, size_t lda, size_t m, const float *panel, size_t k, const float *bias, float *c, size_t ldc);
  /* The same of quantised rows of k4 = (k + 3) / 4 * 4 elements (2 bytes each for group 2, 1 for group 4), lda of them
   * apart. sums are those of the weights of each output. `scratch` has 2 * k4 * 16 bytes. */
  void (*panel8)(const void *a, size_t lda, const lode__quant_row *rows, size_t m, const int8_t *panel, size_t k4,
                 const float *scales, const int32_t *sums, const float *bias, float *c, size_t ldc, void *scratch);
  void (*quantise)(const float *x, size_t k, size_t k4, void *q, lode__quant_row *row);
  void (*gelu)(float *x, size_t n); /* exact form (erf), in place; n is a multiple of 16 */
  /* of n values times scale; those from n to `padded` (a multiple of 16) become 0 */
  void (*softmax)(float *x, size_t n, size_t padded, float scale);
  /* x = norm(x + add) * gain + shift; add may be NULL */
  void (*norm)(float *x, const float *add, const float *gain, const float *shift, size_t n, float epsilon);
  void (*widen)(const uint16_t *halfs, float *out, size_t n); /* half precision to float */
} lode__gemm_kernel;

/* The best one for this CPU; LODE_SIMD=NAME in the environment asks for another ("portable", "avx2", ...). */
const lode__gemm_kernel *lode__gemm_kernel_get(void);
/* All that were compiled in, for tests; NULL past the end. */
const lode__gemm_kernel *lode__gemm_kernel_at(size_t i);

/* The largest 16-bit activation with which k products by at most 127 cannot leave 32 bits. */
static inline float lode__quant_most(size_t k) {
  size_t most = (size_t)INT32_MAX / 127 / k;
  return most < 8191 ? (float)most : 8191.0f;
}

/* ---- Packed weights ---- */

typedef struct lode__weights {
  size_t k, n;
  float *bias;       /* n padded to 16; NULL: none */
  float *full;       /* panels, or NULL */
  int8_t *int8;      /* panels, or NULL */
  float *scales;     /* of each output, with int8 */
  int32_t *sums;
  unsigned group;    /* of the int8 panels */
} lode__weights;

static inline size_t lode__pad(size_t n, size_t to) { return (n + to - 1) / to * to; }
static inline size_t lode__panels(size_t n) { return (n + LODE__PANEL - 1) / LODE__PANEL; }

/* From n rows of k floats (as PyTorch has them). */
void lode__weights_pack(const float *w, size_t n, size_t k, float *panels);
void lode__weights_quantise(const float *w, size_t n, size_t k, unsigned group, int8_t *panels, float *scales, int32_t *sums);
/* Panels of one grouping to the other. */
void lode__weights_regroup(const int8_t *from, unsigned from_group, int8_t *to, unsigned to_group, size_t n, size_t k);

/* c (m x n, ldc >= n padded to 16) = a x w + bias. */
void lode__gemm(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                size_t ldc);
/* The same with quantised rows. `scratch`: lode__gemm8_scratch() bytes, 64-byte aligned. */
size_t lode__gemm8_scratch(size_t m, size_t k);
void lode__gemm8(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                 size_t ldc, void *scratch);

extern const lode__gemm_kernel lode__gemm_portable;
#if defined(__x86_64__)
extern const lode__gemm_kernel lode__gemm_avx2, lode__gemm_vnni;
#endif
#if defined(__aarch64__)
extern const lode__gemm_kernel lode__gemm_neon;
#endif

#endif
