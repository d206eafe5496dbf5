/* kernel_neon.c - the kernels for 64-bit ARM, where NEON is always there.
 *
 * The 16 lanes are four registers of 4. A scan takes row after row, for the reasons given in kernel_avx2.c. NEON has
 * fused multiply-adds: that the compiler makes none of our separate steps is the work of -ffp-contract=off.
 */
#include "index/kernel_impl.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct lanes { float32x4_t v[4]; } lanes;

INLINE lanes load(const float *p) {
  return (lanes){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}

/* The first n < 16 floats, then zeros; reads nothing behind them. */
INLINE lanes load_tail(const float *p, size_t n) {
  float padded[LODE__LANES] = {0};
  for (size_t j = 0; j < n; j++) padded[j] = p[j];
  return load(padded);
}

INLINE float32x4_t add_term(float32x4_t sum, float32x4_t a, float32x4_t b, bool l2) {
  if (!l2) return vaddq_f32(sum, vmulq_f32(a, b));
  float32x4_t d = vsubq_f32(a, b);
  return vaddq_f32(sum, vmulq_f32(d, d));
}

INLINE lanes add_terms(lanes sum, lanes a, lanes b, bool l2) {
  return (lanes){{add_term(sum.v[0], a.v[0], b.v[0], l2), add_term(sum.v[1], a.v[1], b.v[1], l2),
                  add_term(sum.v[2], a.v[2], b.v[2], l2), add_term(sum.v[3], a.v[3], b.v[3], l2)}};
}

/* 16 lanes to 8 (j + j+8), to 4, to 2, to 1. */
INLINE float fold(lanes sum) {
  float32x4_t s4 = vaddq_f32(vaddq_f32(sum.v[0], sum.v[2]), vaddq_f32(sum.v[1], sum.v[3]));
  float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
  return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

/* scanning: memory behind the row will be wanted next. */
INLINE float one(const float *a, const float *b, size_t dim, bool l2, bool scanning) {
  const float32x4_t zero = vdupq_n_f32(0);
  lanes sum = {{zero, zero, zero, zero}};
  size_t i = 0;
  for (; dim - i >= LODE__LANES; i += LODE__LANES) {
    if (scanning) __builtin_prefetch((const char *)((uintptr_t)(b + i) + LODE__AHEAD_BYTES));
    sum = add_terms(sum, load(a + i), load(b + i), l2);
  }
  if (i < dim) sum = add_terms(sum, load_tail(a + i, dim - i), load_tail(b + i, dim - i), l2);
  return fold(sum);
}

static float dot(const float *a, const float *b, size_t dim) { return one(a, b, dim, false, false); }

static float l2sq(const float *a, const float *b, size_t dim) { return one(a, b, dim, true, false); }

static void dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, false, true);
}

static void l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, true, true);
}

static bool supported(void) { return true; }

const lode__kernel lode__kernel_neon = {
    .name = "neon", .supported = supported, .dot = dot, .l2sq = l2sq, .dots = dots, .l2sqs = l2sqs,
};

#endif
