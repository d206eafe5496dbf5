/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_avx512.c - the kernels for x86-64 with AVX-512F.
 *
 * The 16 lanes are one register. AVX-512 has fused multiply-adds: -ffp-contract=off keeps the compiler from using them.
 */
#include "kernel/kernel_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define KERNEL_TARGET __attribute__((target("avx512f")))
#define KERNEL_INLINE static inline __attribute__((target("avx512f"), always_inline))

typedef __m512 kernel_lanes;

KERNEL_INLINE kernel_lanes lanes_zero(void) { return _mm512_setzero_ps(); }

KERNEL_INLINE kernel_lanes lanes_load(const float *p) { return _mm512_loadu_ps(p); }

/* The first n < 16 floats, then zeros; reads nothing after them. */
KERNEL_INLINE kernel_lanes lanes_load_tail(const float *p, size_t n) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

KERNEL_INLINE kernel_lanes lanes_add_terms(kernel_lanes sum, kernel_lanes a, kernel_lanes b, bool l2) {
  if (!l2) return _mm512_add_ps(sum, _mm512_mul_ps(a, b));
  kernel_lanes d = _mm512_sub_ps(a, b);
  return _mm512_add_ps(sum, _mm512_mul_ps(d, d));
}

/* 16 lanes to 8 to 4. */
KERNEL_INLINE __m128 lanes_fold(kernel_lanes sum) {
  __m256 hi = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum), 1));
  __m256 s = _mm256_add_ps(_mm512_castps512_ps256(sum), hi);
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

#include "kernel/kernel_x86.h"

static bool kernel_avx512_supported(void) { return __builtin_cpu_supports("avx512f"); }

const kernel_ops kernel_avx512 = {
    .name = "avx512",
    .supported = kernel_avx512_supported,
    .dot = kernel_x86_dot,
    .l2sq = kernel_x86_l2sq,
    .dots = kernel_x86_dots,
    .l2sqs = kernel_x86_l2sqs,
};

#endif
