/* gemm_vnni.c - the kernel for x86-64 with AVX-512 and VNNI.
 *
 * vpdpbusd multiplies unsigned bytes (activations with a zero point) with signed ones and adds four products to a 32-bit
 * sum without saturation. The zero point's share, zero * (sum of the weights), is taken off at the end.
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

/* ---- int8 ---- */

TARGET static void quantise(const float *x, size_t k, size_t k4, void *q, lode__quant_row *row) {
  uint8_t *out = q;
  float low, high;
  range_of(x, k, &low, &high); /* 0 is always inside */
  float step = (high - low) / 255, scale = step > 0 ? 1 / step : 0;
  int32_t zero = (int32_t)nearbyintf(-low * scale);
  __m512 by = _mm512_set1_ps(scale);
  __m512i shift = _mm512_set1_epi32(zero), top = _mm512_set1_epi32(255);
  size_t i = 0;
  for (; i + 16 <= k; i += 16) {
    __m512i v = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), by)), shift);
    v = _mm512_min_epi32(_mm512_max_epi32(v, _mm512_setzero_si512()), top);
    _mm_storeu_si128((__m128i *)(void *)(out + i), _mm512_cvtepi32_epi8(v));
  }
  for (; i < k; i++) {
    int32_t v = (int32_t)nearbyintf(x[i] * scale) + zero;
    out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
  }
  for (; i < k4; i++) out[i] = (uint8_t)zero;
  *row = (lode__quant_row){.scale = step, .zero = zero};
}

TARGET_INLINE void tile8(int rows, const uint8_t *a, size_t lda, const lode__quant_row *quant, const int8_t *p, size_t k4,
                         const float *scales, const int32_t *sums, const float *bias, float *c, size_t ldc) {
  __m512i acc[ROWS];
  UNROLL for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_si512();
  for (size_t g = 0; g < k4; g += 4, p += 4 * LODE__PANEL) {
    __m512i b = _mm512_loadu_si512(p);
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t four;
      memcpy(&four, a + (size_t)r * lda + g, sizeof four);
      acc[r] = _mm512_dpbusd_epi32(acc[r], _mm512_set1_epi32(four), b);
    }
  }
  __m512i sum = _mm512_loadu_si512(sums);
  __m512 scale = _mm512_loadu_ps(scales), base = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
  UNROLL for (int r = 0; r < rows; r++) {
    __m512i exact = _mm512_sub_epi32(acc[r], _mm512_mullo_epi32(sum, _mm512_set1_epi32(quant[r].zero)));
    __m512 by = _mm512_mul_ps(scale, _mm512_set1_ps(quant[r].scale));
    _mm512_storeu_ps(c + (size_t)r * ldc, _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), by, base));
  }
}

TARGET static void panel8(const void *q, size_t lda, const lode__quant_row *rows, size_t m, const int8_t *p, size_t k4,
                          const float *scales, const int32_t *sums, const float *bias, float *c, size_t ldc, void *scratch) {
  (void)scratch;
  const uint8_t *a = q;
  size_t i = 0;
  for (; i + ROWS <= m; i += ROWS) tile8(ROWS, a + i * lda, lda, rows + i, p, k4, scales, sums, bias, c + i * ldc, ldc);
  for (; i + 2 <= m; i += 2) tile8(2, a + i * lda, lda, rows + i, p, k4, scales, sums, bias, c + i * ldc, ldc);
  for (; i < m; i++) tile8(1, a + i * lda, lda, rows + i, p, k4, scales, sums, bias, c + i * ldc, ldc);
}

TARGET static void widen(const uint16_t *halfs, float *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(halfs + i))));
  for (; i < n; i++) out[i] = _cvtsh_ss(halfs[i]);
}

const lode__gemm_kernel lode__gemm_vnni = {
    .name = "avx512-vnni", .supported = supported, .group = 4, .panel = panel, .panel8 = panel8, .quantise = quantise,
    .gelu = gelu, .softmax = softmax, .norm = norm, .widen = widen,
};

#endif
