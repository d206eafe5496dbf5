/* kernel_avx512.c - the kernels for x86-64 with AVX-512F.
 *
 * The 16 lanes are one register. A scan takes row after row, for the reasons given in kernel_avx2.c. AVX-512 has fused
 * multiply-adds: that the compiler makes none of our separate steps is the work of -ffp-contract=off.
 */
#include "index/kernel_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define AVX512_INLINE static inline __attribute__((target("avx512f"), always_inline))

AVX512_INLINE __m512 load(const float *p) { return _mm512_loadu_ps(p); }

/* The first n < 16 floats, then zeros; reads nothing behind them. */
AVX512_INLINE __m512 load_tail(const float *p, size_t n) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

AVX512_INLINE __m512 add_terms(__m512 sum, __m512 a, __m512 b, bool l2) {
  if (!l2) return _mm512_add_ps(sum, _mm512_mul_ps(a, b));
  __m512 d = _mm512_sub_ps(a, b);
  return _mm512_add_ps(sum, _mm512_mul_ps(d, d));
}

/* 16 lanes to 8 to 4. */
AVX512_INLINE __m128 fold(__m512 sum) {
  __m256 hi = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sum), 1));
  __m256 s = _mm256_add_ps(_mm512_castps512_ps256(sum), hi);
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

/* scanning: memory behind the row will be wanted next. */
AVX512_INLINE float one(const float *a, const float *b, size_t dim, bool l2, bool scanning) {
  __m512 sum = _mm512_setzero_ps();
  size_t i = 0;
  for (; dim - i >= LODE__LANES; i += LODE__LANES) {
    if (scanning) _mm_prefetch((const char *)((uintptr_t)(b + i) + LODE__AHEAD_BYTES), _MM_HINT_T0);
    sum = add_terms(sum, load(a + i), load(b + i), l2);
  }
  if (i < dim) sum = add_terms(sum, load_tail(a + i, dim - i), load_tail(b + i, dim - i), l2);
  __m128 s = fold(sum);
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

AVX512 static float dot(const float *a, const float *b, size_t dim) { return one(a, b, dim, false, false); }

AVX512 static float l2sq(const float *a, const float *b, size_t dim) { return one(a, b, dim, true, false); }

AVX512 static void dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, false, true);
}

AVX512 static void l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, true, true);
}

static bool supported(void) { return __builtin_cpu_supports("avx512f"); }

const lode__kernel lode__kernel_avx512 = {
    .name = "avx512", .supported = supported, .dot = dot, .l2sq = l2sq, .dots = dots, .l2sqs = l2sqs,
};

#endif
