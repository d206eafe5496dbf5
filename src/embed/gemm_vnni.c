/* gemm_vnni.c - the kernel for x86-64 with AVX-512 and VNNI.
 *
 * vpdpwssd multiplies pairs of 16-bit numbers and adds them to a 32-bit sum: 32 products in one instruction.
 */
#include "embed/gemm.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 16
#define ROWS 12
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#include "embed/gemm_float.h"

static bool supported(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

/* ---- Integers ---- */

TARGET static void quantise(const float *x, size_t k, size_t k2, int16_t *q, float *scale) {
  float top = top_of(x, k), by = top > 0 ? LODE__QUANT_MOST / top : 0;
  __m512 times = _mm512_set1_ps(by);
  size_t i = 0;
  for (; i + 16 <= k; i += 16) {
    __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), times));
    _mm256_storeu_si256((__m256i *)(void *)(q + i), _mm512_cvtepi32_epi16(v));
  }
  for (; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  if (k < k2) q[k] = 0;
  *scale = top / LODE__QUANT_MOST;
}

TARGET_INLINE void tile16(int rows, const int16_t *a, size_t lda, const float *row_scales, const int16_t *p, size_t k2,
                          const float *scales, const float *bias, float *c, size_t ldc) {
  __m512i acc[ROWS];
  UNROLL for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_si512();
  for (size_t g = 0; g < k2; g += 2, p += 2 * LODE__PANEL) {
    __m512i b = _mm512_loadu_si512(p);
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, a + (size_t)r * lda + g, sizeof pair);
      acc[r] = _mm512_dpwssd_epi32(acc[r], _mm512_set1_epi32(pair), b);
    }
  }
  __m512 by = _mm512_loadu_ps(scales), base = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
  UNROLL for (int r = 0; r < rows; r++)
    _mm512_storeu_ps(c + (size_t)r * ldc,
                     _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[r]), _mm512_mul_ps(by, _mm512_set1_ps(row_scales[r])), base));
}

TARGET static void panel16(const int16_t *a, size_t lda, const float *row_scales, size_t m, const int16_t *p, size_t k2,
                           const float *scales, const float *bias, float *c, size_t ldc) {
  size_t i = 0;
  for (; i + ROWS <= m; i += ROWS) tile16(ROWS, a + i * lda, lda, row_scales + i, p, k2, scales, bias, c + i * ldc, ldc);
  for (; i + 2 <= m; i += 2) tile16(2, a + i * lda, lda, row_scales + i, p, k2, scales, bias, c + i * ldc, ldc);
  for (; i < m; i++) tile16(1, a + i * lda, lda, row_scales + i, p, k2, scales, bias, c + i * ldc, ldc);
}

TARGET static void widen(const uint16_t *halfs, float *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(halfs + i))));
  for (; i < n; i++) out[i] = _cvtsh_ss(halfs[i]);
}

const lode__gemm_kernel lode__gemm_vnni = {
    .name = "avx512-vnni", .supported = supported, .panel = panel, .panel16 = panel16, .quantise = quantise,
    .gelu = gelu, .softmax = softmax, .norm = norm, .widen = widen, .narrow = narrow,
};

#endif
