/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_neon.c - the kernels for 64-bit ARM, which always has NEON.
 *
 * The 16 lanes are four registers of 4. A scan processes one row after the other, for the reasons given in
 * kernel_x86.h. NEON has fused multiply-adds: -ffp-contract=off keeps the compiler from using them.
 */
#include "kernel/kernel_impl.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define KERNEL_INLINE static inline __attribute__((always_inline))

typedef struct kernel_lanes {
  float32x4_t v[4];
} kernel_lanes;

KERNEL_INLINE kernel_lanes lanes_load(const float *p) {
  return (kernel_lanes){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}

/* The first n < 16 floats, then zeros; reads nothing after them. */
KERNEL_INLINE kernel_lanes lanes_load_tail(const float *p, size_t n) {
  float padded[KERNEL_LANES] = {0};
  for (size_t j = 0; j < n; j++) padded[j] = p[j];
  return lanes_load(padded);
}

KERNEL_INLINE float32x4_t lanes_add_term(float32x4_t sum, float32x4_t a, float32x4_t b, bool l2) {
  if (!l2) return vaddq_f32(sum, vmulq_f32(a, b));
  float32x4_t d = vsubq_f32(a, b);
  return vaddq_f32(sum, vmulq_f32(d, d));
}

KERNEL_INLINE kernel_lanes lanes_add_terms(kernel_lanes sum, kernel_lanes a, kernel_lanes b, bool l2) {
  return (kernel_lanes){{lanes_add_term(sum.v[0], a.v[0], b.v[0], l2), lanes_add_term(sum.v[1], a.v[1], b.v[1], l2),
                         lanes_add_term(sum.v[2], a.v[2], b.v[2], l2), lanes_add_term(sum.v[3], a.v[3], b.v[3], l2)}};
}

/* 16 lanes to 8 (j + j+8), to 4, to 2, to 1. */
KERNEL_INLINE float lanes_fold(kernel_lanes sum) {
  float32x4_t s4 = vaddq_f32(vaddq_f32(sum.v[0], sum.v[2]), vaddq_f32(sum.v[1], sum.v[3]));
  float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
  return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

/* scanning: the memory after the row will be needed next. */
KERNEL_INLINE float lanes_sum_terms(const float *a, const float *b, size_t dim, bool l2, bool scanning) {
  const float32x4_t zero = vdupq_n_f32(0);
  kernel_lanes sum = {{zero, zero, zero, zero}};
  size_t i = 0;
  for (; dim - i >= KERNEL_LANES; i += KERNEL_LANES) {
    if (scanning) __builtin_prefetch((const char *)((uintptr_t)(b + i) + KERNEL_PREFETCH_BYTES));
    sum = lanes_add_terms(sum, lanes_load(a + i), lanes_load(b + i), l2);
  }
  if (i < dim) sum = lanes_add_terms(sum, lanes_load_tail(a + i, dim - i), lanes_load_tail(b + i, dim - i), l2);
  return lanes_fold(sum);
}

static float kernel_neon_dot(const float *a, const float *b, size_t dim) {
  return lanes_sum_terms(a, b, dim, false, false);
}

static float kernel_neon_l2sq(const float *a, const float *b, size_t dim) {
  return lanes_sum_terms(a, b, dim, true, false);
}

static void kernel_neon_dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = lanes_sum_terms(query, rows + i * stride, dim, false, true);
}

static void kernel_neon_l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = lanes_sum_terms(query, rows + i * stride, dim, true, true);
}

static bool kernel_neon_supported(void) { return true; }

const kernel_ops kernel_neon = {
    .name = "neon",
    .supported = kernel_neon_supported,
    .dot = kernel_neon_dot,
    .l2sq = kernel_neon_l2sq,
    .dots = kernel_neon_dots,
    .l2sqs = kernel_neon_l2sqs,
};

#endif
