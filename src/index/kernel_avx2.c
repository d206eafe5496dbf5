/* kernel_avx2.c - the kernels for x86-64 with AVX2.
 *
 * The 16 lanes are two registers of 8. A scan takes row after row, so that it reads memory straight ahead as plain
 * reading does; four rows at a time would be faster within the cache, but at 384 dimensions are slower by a quarter
 * in memory, where hardware prefetchers lose the interleaved streams. AVX2 without FMA is what the target attribute
 * grants, so that nothing here can be fused.
 */
#include "index/kernel_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

typedef struct lanes { __m256 lo, hi; } lanes;

AVX2_INLINE lanes load(const float *p) { return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }

/* The first n < 16 floats, then zeros; reads nothing behind them. */
AVX2_INLINE lanes load_tail(const float *p, size_t n) {
  static const int32_t mask[2 * LODE__LANES] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const int32_t *m = mask + LODE__LANES - n;
  return (lanes){_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)m)),
                 _mm256_maskload_ps(p + 8, _mm256_loadu_si256((const __m256i *)(m + 8)))};
}

AVX2_INLINE __m256 add_term(__m256 sum, __m256 a, __m256 b, bool l2) {
  if (!l2) return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
  __m256 d = _mm256_sub_ps(a, b);
  return _mm256_add_ps(sum, _mm256_mul_ps(d, d));
}

AVX2_INLINE lanes add_terms(lanes sum, lanes a, lanes b, bool l2) {
  return (lanes){add_term(sum.lo, a.lo, b.lo, l2), add_term(sum.hi, a.hi, b.hi, l2)};
}

/* 16 lanes to 8 to 4. */
AVX2_INLINE __m128 fold(lanes sum) {
  __m256 s = _mm256_add_ps(sum.lo, sum.hi);
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

/* scanning: memory behind the row will be wanted next. */
AVX2_INLINE float one(const float *a, const float *b, size_t dim, bool l2, bool scanning) {
  lanes sum = {_mm256_setzero_ps(), _mm256_setzero_ps()};
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

AVX2 static float dot(const float *a, const float *b, size_t dim) { return one(a, b, dim, false, false); }

AVX2 static float l2sq(const float *a, const float *b, size_t dim) { return one(a, b, dim, true, false); }

AVX2 static void dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, false, true);
}

AVX2 static void l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, true, true);
}

static bool supported(void) { return __builtin_cpu_supports("avx2"); }

const lode__kernel lode__kernel_avx2 = {
    .name = "avx2", .supported = supported, .dot = dot, .l2sq = l2sq, .dots = dots, .l2sqs = l2sqs,
};

#endif
