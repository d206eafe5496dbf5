/* gemm.h - the arithmetic of the encoder: products of activations with packed weights, and what stands between them.
 *
 * Weights (n outputs, k inputs) lie in panels of 16 outputs, padded with zeros. A float panel is k x 16, input after input.
 * An integer panel keeps two inputs together, as the instructions multiply and add them: k/2 x 16 x 2.
 *
 * Every output is one sum in the order of its inputs, whatever the number of rows or their place: a text's vector does not
 * depend on what stands beside it, nor on the number of threads. Between instruction sets the last bits may differ.
 *
 * Integers: a row of activations becomes numbers of 13 bits with a scale of its own when it is needed; weights have a
 * scale for each output, as fine as 32-bit sums allow (no sum can overflow: lode__weight_scale). Eight bits were tried:
 * they keep a cosine of 0.999 but change one neighbour in thirty; sixteen cost no more on CPUs without VNNI.
 */
#ifndef LODE_GEMM_H
#define LODE_GEMM_H

#include "base/base.h"

enum {
  LODE__PANEL = 16,
  LODE__QUANT_MOST = 4095, /* of an activation */
};

typedef struct lode__gemm_kernel {
  const char *name;
  bool (*supported)(void); /* by the CPU and the operating system */
  /* c[i][0..16) = bias + a[i] . panel for m rows; bias may be NULL. */
  void (*panel)(const float *a, size_t lda, size_t m, const float *panel, size_t k, const float *bias, float *c, size_t ldc);
  /* The same of quantised rows of k2 elements (k padded to a multiple of 2), with the scale of each row. */
  void (*panel16)(const int16_t *a, size_t lda, const float *row_scales, size_t m, const int16_t *panel, size_t k2,
                  const float *scales, const float *bias, float *c, size_t ldc);
  void (*quantise)(const float *x, size_t k, size_t k2, int16_t *q, float *scale);
  void (*gelu)(float *x, size_t n); /* exact form (erf), in place; n is a multiple of 16 */
  /* of n values times scale; those from n to `padded` (a multiple of 16) become 0 */
  void (*softmax)(float *x, size_t n, size_t padded, float scale);
  /* x = norm(x + add) * gain + shift; add may be NULL */
  void (*norm)(float *x, const float *add, const float *gain, const float *shift, size_t n, float epsilon);
  void (*widen)(const uint16_t *halfs, float *out, size_t n); /* half precision to float */
  /* A float panel of k inputs to an integer panel. */
  void (*narrow)(const float *panel, size_t k, const float *scales, int16_t *out);
} lode__gemm_kernel;

/* The best one for this CPU; LODE_SIMD=NAME in the environment asks for another ("portable", "avx2", ...). */
const lode__gemm_kernel *lode__gemm_kernel_get(void);
/* All that were compiled in, for tests; NULL past the end. */
const lode__gemm_kernel *lode__gemm_kernel_at(size_t i);

/* ---- Packed weights ---- */

typedef struct lode__weights {
  size_t k, n;
  float *bias;       /* n padded to 16; NULL: none */
  float *scales;     /* of each output of `narrow`, padded to 16 */
  float *full;       /* panels, or NULL */
  int16_t *narrow;   /* panels, or NULL */
} lode__weights;

static inline size_t lode__pad(size_t n, size_t to) { return (n + to - 1) / to * to; }
static inline size_t lode__panels(size_t n) { return (n + LODE__PANEL - 1) / LODE__PANEL; }

/* The finest scale with which k weights fit 16 bits, and their sum with any activations 32 bits. */
float lode__weight_scale(const float *w, size_t k);
/* n rows of k floats (as PyTorch has them) to panels. */
void lode__weights_pack(const float *w, size_t n, size_t k, float *panels);

/* c (m x n, ldc >= n padded to 16) = a x w + bias. */
void lode__gemm(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                size_t ldc);
/* The same with integers. `scratch`: lode__gemm16_scratch() bytes, 64-byte aligned. */
size_t lode__gemm16_scratch(size_t m, size_t k);
void lode__gemm16(const lode__gemm_kernel *kernel, const lode__weights *w, const float *a, size_t lda, size_t m, float *c,
                  size_t ldc, void *scratch);

extern const lode__gemm_kernel lode__gemm_portable;
#if defined(__x86_64__)
extern const lode__gemm_kernel lode__gemm_avx2, lode__gemm_vnni;
#endif

#endif
