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
#define LEAST _mm512_min_ps
#define MOST _mm512_max_ps
#define INVERSE _mm512_rcp14_ps
#define SUM_OF _mm512_reduce_add_ps
#define GREATEST_OF _mm512_reduce_max_ps
#include "embed/gemm_rows.h"
#include "embed/gemm_float.h"
#include "embed/gemm_int.h"
#include "embed/gemm_x86.h"

static bool supported(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

/* ---- Integers ---- */

TARGET_INLINE void quantise(const float *x, size_t k, int16_t *q, float *scale) {
  float top = top_of(x, k), by = top > 0 ? LODE__QUANT_MOST / top : 0;
  __m512 times = _mm512_set1_ps(by);
  size_t i = 0;
  for (; i + 16 <= k; i += 16) {
    __m512i v = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), times));
    _mm256_storeu_si256((__m256i *)(void *)(q + i), _mm512_cvtepi32_epi16(v));
  }
  for (; i < k; i++) q[i] = (int16_t)nearbyintf(x[i] * by);
  *scale = top / LODE__QUANT_MOST;
}

TARGET_INLINE void tile16(int rows, const lode__product *t, size_t row, size_t at) {
  __m512i acc[ROWS];
  const int16_t *a = row_of(t, row), *p = panel_of(t, at);
  const float *scales = t->scales + at * LODE__PANEL, *bias = t->bias ? t->bias + at * LODE__PANEL : NULL;
  size_t lda = t->row_bytes / sizeof(int16_t), ldc = t->ldc;
  UNROLL for (int r = 0; r < rows; r++) acc[r] = _mm512_setzero_si512();
  for (size_t g = 0; g < t->k; g += 2, p += 2 * LODE__PANEL) {
    __m512i b = _mm512_loadu_si512(p);
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, a + (size_t)r * lda + g, sizeof pair);
      acc[r] = _mm512_dpwssd_epi32(acc[r], _mm512_set1_epi32(pair), b);
    }
  }
  __m512 by = _mm512_loadu_ps(scales);
  UNROLL for (int r = 0; r < rows; r++) {
    float *c = t->c + (row + (size_t)r) * ldc + at * LODE__PANEL;
    const float *from = t->more ? c : bias;
    __m512 base = from ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
    __m512 both = _mm512_mul_ps(_mm512_set1_ps(t->row_scales[row + (size_t)r]), by);
    _mm512_storeu_ps(c, _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[r]), both, base));
  }
}

TARGET static void multiply16(const lode__product *p) { BY_TILES(tile16, p, sizeof(int16_t)) }

const lode__gemm_kernel lode__gemm_vnni = {
    .name = "avx512-vnni", .supported = supported, .full = FLOATS, .narrow = INTEGERS,
    .block = 96, .scale = scale, .norm = norm, .widen = widen,
};

#endif
