/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_avx2.c - the kernels for x86-64 with AVX2.
 *
 * The 16 lanes are two registers of 8. The target attribute allows AVX2 without FMA, so nothing here can be fused.
 */
#include "kernel/kernel_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define KERNEL_TARGET __attribute__((target("avx2")))
#define KERNEL_INLINE static inline __attribute__((target("avx2"), always_inline))

typedef struct kernel_lanes {
  __m256 lo, hi;
} kernel_lanes;

KERNEL_INLINE kernel_lanes lanes_zero(void) { return (kernel_lanes){_mm256_setzero_ps(), _mm256_setzero_ps()}; }

KERNEL_INLINE kernel_lanes lanes_load(const float *p) {
  return (kernel_lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

/* The first n < 16 floats, then zeros; reads nothing after them. */
KERNEL_INLINE kernel_lanes lanes_load_tail(const float *p, size_t n) {
  static const int32_t mask[2 * KERNEL_LANES] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const int32_t *m = mask + KERNEL_LANES - n;
  return (kernel_lanes){_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)m)),
                        _mm256_maskload_ps(p + 8, _mm256_loadu_si256((const __m256i *)(m + 8)))};
}

KERNEL_INLINE __m256 lanes_add_term(__m256 sum, __m256 a, __m256 b, bool l2) {
  if (!l2) return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
  __m256 d = _mm256_sub_ps(a, b);
  return _mm256_add_ps(sum, _mm256_mul_ps(d, d));
}

KERNEL_INLINE kernel_lanes lanes_add_terms(kernel_lanes sum, kernel_lanes a, kernel_lanes b, bool l2) {
  return (kernel_lanes){lanes_add_term(sum.lo, a.lo, b.lo, l2), lanes_add_term(sum.hi, a.hi, b.hi, l2)};
}

/* 16 lanes to 8 to 4. */
KERNEL_INLINE __m128 lanes_fold(kernel_lanes sum) {
  __m256 s = _mm256_add_ps(sum.lo, sum.hi);
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

#include "kernel/kernel_x86.h"

static bool kernel_avx2_supported(void) { return __builtin_cpu_supports("avx2"); }

const kernel_ops kernel_avx2 = {
    .name = "avx2",
    .supported = kernel_avx2_supported,
    .dot = kernel_x86_dot,
    .l2sq = kernel_x86_l2sq,
    .dots = kernel_x86_dots,
    .l2sqs = kernel_x86_l2sqs,
};

#endif
