/* gemm.h - the arithmetic of the encoder: products of activations with packed weights, and what stands between them.
 *
 * Weights (n outputs, k inputs) lie in panels of 16 outputs, padded with zeros. A float panel is k x 16, input after input.
 * An integer panel keeps two inputs together, as the instructions multiply and add them: k/2 x 16 x 2.
 *
 * Every output is one sum in the order of its inputs, whatever the number of rows or their place: a text's vector does not
 * depend on what stands beside it, nor on the number of threads. Between instruction sets the last bits may differ.
 *
 * A product goes through its inputs in steps of LODE__DEPTH: that much of a panel, and of the rows it meets, stays in the
 * first-level cache; the sums of a step go on from those of the one before. While a panel is multiplied the next is fetched.
 *
 * Integers: the inputs of a step of a row become numbers of 13 bits with a scale of their own when they are needed; weights
 * have a scale for each output, as fine as 32-bit sums allow (no sum can overflow: lode__weight_scale). Eight bits were
 * tried: they keep a cosine of 0.999 but change one neighbour in thirty; sixteen cost no more on CPUs without VNNI.
 */
#ifndef LODE_GEMM_H
#define LODE_GEMM_H

#include "base/base.h"

enum {
  LODE__PANEL = 16,
  LODE__QUANT_MOST = 4095, /* of an activation */
  LODE__DEPTH = 192,       /* inputs of a step: 12 KiB of a float panel; integers take two at once */
};

/* c[i][0..16) = (more ? c[i] : bias) + a[i] . panel, for m rows of k inputs. */
typedef struct lode__product {
  const float *a, *panel;
  size_t lda, m, k;
  const float *bias; /* NULL: zeros */
  bool more;
  float *c;
  size_t ldc;
  const void *next;  /* what will be needed after this panel, and is as large; or NULL */
} lode__product;

/* The same of quantised rows, with a scale for each row and each output. */
typedef struct lode__product16 {
  const int16_t *a, *panel;
  size_t lda, m, k2; /* k2: the inputs padded to a multiple of 2 */
  const float *row_scales, *scales;
  const float *bias;
  bool more;
  float *c;
  size_t ldc;
  const void *next;
} lode__product16;

typedef struct lode__gemm_kernel {
  const char *name;
  bool (*supported)(void); /* by the CPU and the operating system */
  void (*panel)(const lode__product *p);
  void (*panel16)(const lode__product16 *p);
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

/* Part of a matrix: outputs [out, out_end) from inputs [in, in_end). `in` is a multiple of LODE__DEPTH * 2, `out` of
 * LODE__PANEL. Where `in` is not 0 the sums go on from those that c holds. */
typedef struct lode__part {
  const lode__weights *w;
  size_t in, in_end, out, out_end;
} lode__part;
static inline lode__part lode__part_all(const lode__weights *w) { return (lode__part){w, 0, w->k, 0, w->n}; }

/* c (m rows, ldc >= outputs padded to 16) = a (m rows of the part's inputs) x part + bias. */
void lode__gemm(const lode__gemm_kernel *kernel, const lode__part *part, const float *a, size_t lda, size_t m, float *c,
                size_t ldc);
/* The same with integers. `scratch`: lode__gemm16_scratch() bytes, 64-byte aligned. */
size_t lode__gemm16_scratch(size_t m, size_t k);
void lode__gemm16(const lode__gemm_kernel *kernel, const lode__part *part, const float *a, size_t lda, size_t m, float *c,
                  size_t ldc, void *scratch);

extern const lode__gemm_kernel lode__gemm_portable;
#if defined(__x86_64__)
extern const lode__gemm_kernel lode__gemm_avx2, lode__gemm_vnni;
#endif

#endif
