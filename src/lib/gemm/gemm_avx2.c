/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_avx2.c - the kernel for x86-64 with AVX2, FMA and F16C.
 *
 * Bytes would be no faster here: vpmaddubsw saturates unless a bit is given up, and needs a second multiplication to
 * widen, so that 16-bit vpmaddwd makes as many products per cycle, twice those of a float multiply-add.
 */
#include "gemm/gemm.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define GEMM_LANES 8
#define GEMM_ROWS 6
#define GEMM_TARGET __attribute__((target("avx2,fma,f16c")))
#define GEMM_MIN_OP _mm256_min_ps
#define GEMM_MAX_OP _mm256_max_ps
#define GEMM_RCP_OP _mm256_rcp_ps
#include "gemm/gemm_rows.h"
#include "gemm/gemm_float.h"
#include "gemm/gemm_int.h"
#include "gemm/gemm_x86.h"

/* clang's __builtin_cpu_supports does not know F16C. */
static bool has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool gemm_avx2_supported(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

/* ---- Integers ---- */

/* Keeps the compiler from loading all rows first, for which there are not enough registers. */
#define IN_ORDER(a, b) __asm__ volatile("" : "+x"(a), "+x"(b))

GEMM_INLINE void gemm_quantise(const float *x, size_t k, int16_t *q, float *scale) {
  float top = gemm_top_of(x, k), by = top > 0 ? GEMM_QUANT_MAX / top : 0;
  __m256 times = _mm256_set1_ps(by);
  size_t i = 0;
  for (; i + 16 <= k; i += 16) {
    __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), times));
    __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8), times));
    _mm256_storeu_si256((__m256i *)(void *)(q + i), _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8));
  }
  for (; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  *scale = top / GEMM_QUANT_MAX;
}

GEMM_INLINE void gemm_tile16(int rows, const gemm_product *t, size_t row, size_t at) {
  __m256i acc[GEMM_ROWS][2];
  const int16_t *a = gemm_row_of(t, row), *p = gemm_panel_of(t, at);
  const float *scales = t->scales + at * GEMM_PANEL, *bias = t->bias ? t->bias + at * GEMM_PANEL : NULL;
  size_t lda = t->row_bytes / sizeof(int16_t), ldc = t->ldc;
  GEMM_UNROLL for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  for (size_t g = 0; g < t->k; g += 2, p += 2 * GEMM_PANEL) {
    __m256i b0 = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i b1 = _mm256_loadu_si256((const __m256i *)(const void *)(p + 16));
    GEMM_UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, a + (size_t)r * lda + g, sizeof pair);
      __m256i x = _mm256_set1_epi32(pair);
      acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, b0));
      acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(x, b1));
      IN_ORDER(acc[r][0], acc[r][1]);
    }
  }
  GEMM_UNROLL for (int r = 0; r < rows; r++) {
    float *c = t->c + (row + (size_t)r) * ldc + at * GEMM_PANEL;
    const float *from = t->more ? c : bias;
    GEMM_UNROLL for (int j = 0; j < 2; j++) {
      __m256 by = _mm256_mul_ps(_mm256_set1_ps(t->row_scales[row + (size_t)r]), _mm256_loadu_ps(scales + 8 * j));
      __m256 base = from ? _mm256_loadu_ps(from + 8 * j) : _mm256_setzero_ps();
      _mm256_storeu_ps(c + 8 * j, _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc[r][j]), by, base));
    }
  }
}

GEMM_TARGET static void gemm_multiply16(const gemm_product *p) { GEMM_BY_TILES(gemm_tile16, p, sizeof(int16_t)) }

const gemm_kernel gemm_avx2 = {
    .name = "avx2",
    .supported = gemm_avx2_supported,
    .full = GEMM_FLOATS,
    .narrow = GEMM_INTEGERS,
    .block = 96,
    .scale = gemm_scale,
    .norm = gemm_norm,
    .widen = gemm_widen,
};

#endif
