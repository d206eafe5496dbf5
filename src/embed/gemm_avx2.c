/* gemm_avx2.c - the kernel for x86-64 with AVX2, FMA and F16C.
 *
 * Without VNNI, bytes gain nothing: vpmaddubsw saturates unless a bit is given up, and needs a second multiplication to
 * widen, so that 16-bit vpmaddwd makes as many products a cycle with 14 bits of activation. An int8 panel is widened once
 * for all rows of a call.
 */
#include "embed/gemm.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 8
#define ROWS 6
#define TARGET __attribute__((target("avx2,fma,f16c")))
#include "embed/gemm_float.h"

static bool supported(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

/* ---- int8 ---- */

/* Keeps the compiler from loading all rows first, for which there are not enough registers. */
#define IN_ORDER(a, b) __asm__ volatile("" : "+x"(a), "+x"(b))

TARGET static void quantise(const float *x, size_t k, size_t k4, void *q, lode__quant_row *row) {
  int16_t *out = q;
  float low, high;
  range_of(x, k, &low, &high);
  float top = -low > high ? -low : high;
  float most_q = lode__quant_most(k4), scale = top > 0 ? most_q / top : 0;
  __m256 by = _mm256_set1_ps(scale);
  size_t i = 0;
  for (; i + 16 <= k; i += 16) {
    __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), by));
    __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8), by));
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
    _mm256_storeu_si256((__m256i *)(void *)(out + i), packed);
  }
  for (; i < k; i++) out[i] = (int16_t)nearbyintf(x[i] * scale);
  for (; i < k4; i++) out[i] = 0;
  *row = (lode__quant_row){.scale = top / most_q};
}

TARGET_INLINE void tile8(int rows, const int16_t *a, size_t lda, const lode__quant_row *quant, const int16_t *p, size_t k4,
                         const float *scales, const float *bias, float *c, size_t ldc) {
  __m256i acc[ROWS][2];
  UNROLL for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  for (size_t g = 0; g < k4; g += 2, p += 2 * LODE__PANEL) {
    __m256i b0 = _mm256_load_si256((const __m256i *)(const void *)p);
    __m256i b1 = _mm256_load_si256((const __m256i *)(const void *)(p + 16));
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, a + (size_t)r * lda + g, sizeof pair);
      __m256i x = _mm256_set1_epi32(pair);
      acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, b0));
      acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(x, b1));
      IN_ORDER(acc[r][0], acc[r][1]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) {
    __m256 scale = _mm256_set1_ps(quant[r].scale);
    UNROLL for (int j = 0; j < 2; j++) {
      __m256 by = _mm256_mul_ps(scale, _mm256_loadu_ps(scales + 8 * j));
      __m256 base = bias ? _mm256_loadu_ps(bias + 8 * j) : _mm256_setzero_ps();
      _mm256_storeu_ps(c + (size_t)r * ldc + 8 * j, _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc[r][j]), by, base));
    }
  }
}

TARGET static void panel8(const void *q, size_t lda, const lode__quant_row *rows, size_t m, const int8_t *p, size_t k4,
                          const float *scales, const int32_t *sums, const float *bias, float *c, size_t ldc, void *scratch) {
  (void)sums;
  int16_t *wide = scratch;
  const int16_t *a = q;
  for (size_t i = 0; i < k4 * LODE__PANEL; i += 16)
    _mm256_store_si256((__m256i *)(void *)(wide + i), _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p + i))));
  size_t i = 0;
  for (; i + ROWS <= m; i += ROWS) tile8(ROWS, a + i * lda, lda, rows + i, wide, k4, scales, bias, c + i * ldc, ldc);
  for (; i + 2 <= m; i += 2) tile8(2, a + i * lda, lda, rows + i, wide, k4, scales, bias, c + i * ldc, ldc);
  for (; i < m; i++) tile8(1, a + i * lda, lda, rows + i, wide, k4, scales, bias, c + i * ldc, ldc);
}

TARGET static void widen(const uint16_t *halfs, float *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(halfs + i))));
  for (; i < n; i++) out[i] = _cvtsh_ss(halfs[i]);
}

const lode__gemm_kernel lode__gemm_avx2 = {
    .name = "avx2", .supported = supported, .group = 2, .panel = panel, .panel8 = panel8, .quantise = quantise,
    .gelu = gelu, .softmax = softmax, .norm = norm, .widen = widen,
};

#endif
