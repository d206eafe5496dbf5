/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_vnni.c - the kernel for x86-64 with AVX-512 and VNNI.
 *
 * vpdpwssd multiplies pairs of 16-bit numbers and adds them to a 32-bit sum: 32 products in one instruction.
 */
#include "gemm/gemm.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define GEMM_LANES 16
#define GEMM_ROWS 12
#define GEMM_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#define GEMM_MIN_OP _mm512_min_ps
#define GEMM_MAX_OP _mm512_max_ps
#define GEMM_RCP_OP _mm512_rcp14_ps
#define GEMM_SUM_OP _mm512_reduce_add_ps
#define GEMM_GREATEST_OP _mm512_reduce_max_ps
#include "gemm/gemm_rows.h"
#include "gemm/gemm_float.h"
#include "gemm/gemm_int.h"
#include "gemm/gemm_x86.h"

static bool gemm_vnni_supported(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

/* ---- Integers ---- */

GEMM_INLINE void gemm_quantise(const float *x, size_t k, int16_t *q, float *scale) {
  float top = gemm_top_of(x, k), by = top > 0 ? GEMM_QUANT_MAX / top : 0;
  __m512 times = _mm512_set1_ps(by);
  size_t i = 0;
  for (; i + 16 <= k; i += 16) {
    __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), times));
    _mm256_storeu_si256((__m256i *)(void *)(q + i), _mm512_cvtepi32_epi16(v));
  }
  for (; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  *scale = top / GEMM_QUANT_MAX;
}

GEMM_INLINE void gemm_tile16(int rows, const gemm_product *t, size_t row, size_t at) {
  __m512i acc[GEMM_ROWS];
  const int16_t *a = gemm_row_of(t, row), *p = gemm_panel_of(t, at);
  const float *scales = t->scales + at * GEMM_PANEL, *bias = t->bias ? t->bias + at * GEMM_PANEL : NULL;
  size_t lda = t->row_bytes / sizeof(int16_t), ldc = t->ldc;
  GEMM_UNROLL for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_si512();
  for (size_t g = 0; g < t->k; g += 2, p += 2 * GEMM_PANEL) {
    __m512i b = _mm512_loadu_si512(p);
    GEMM_UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, a + (size_t)r * lda + g, sizeof pair);
      acc[r] = _mm512_dpwssd_epi32(acc[r], _mm512_set1_epi32(pair), b);
    }
  }
  __m512 by = _mm512_loadu_ps(scales);
  GEMM_UNROLL for (int r = 0; r < rows; r++) {
    float *c = t->c + (row + (size_t)r) * ldc + at * GEMM_PANEL;
    const float *from = t->more ? c : bias;
    __m512 base = from ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
    __m512 both = _mm512_mul_ps(_mm512_set1_ps(t->row_scales[row + (size_t)r]), by);
    _mm512_storeu_ps(c, _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[r]), both, base));
  }
}

GEMM_TARGET static void gemm_multiply16(const gemm_product *p) { GEMM_BY_TILES(gemm_tile16, p, sizeof(int16_t)) }

const gemm_kernel gemm_vnni = {
    .name = "avx512-vnni",
    .supported = gemm_vnni_supported,
    .full = GEMM_FLOATS,
    .narrow = GEMM_INTEGERS,
    .block = 96,
    .scale = gemm_scale,
    .norm = gemm_norm,
    .widen = gemm_widen,
};

#endif
