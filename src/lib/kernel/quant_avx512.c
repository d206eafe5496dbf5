/* SPDX-License-Identifier: Apache-2.0 */
/* quant_avx512.c - keys of rows, by integer dot products, for x86-64 with AVX-512 VNNI.
 *
 * vpdpbusd adds four products of an unsigned and a signed byte to 32 bits, and does not saturate. Four rows at a time
 * share the loads of the query; a partial block is read under a mask.
 */
#include "kernel/quant_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define QUANT_TARGET __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define QUANT_INLINE static inline __attribute__((target("avx512f,avx512bw,avx512vnni"), always_inline))

enum { QUANT_BLOCK = 64 };

QUANT_INLINE uint64_t quant_head_of(const unsigned char *row) {
  return _cvtmask64_u64(_mm512_movepi8_mask(_mm512_loadu_si512(row)));
}

/* headed: top bits may be set. */
QUANT_INLINE __m512i quant_step(__m512i sum, __m512i query, __m512i row, bool headed) {
  return _mm512_dpbusd_epi32(sum, headed ? _mm512_and_si512(row, _mm512_set1_epi8(127)) : row, query);
}

/* The sums of the lanes of four registers, computed together: at 128 dimensions they cost as much as the products. */
QUANT_INLINE __m128i quant_sum_each(__m512i a, __m512i b, __m512i c, __m512i d) {
  __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* One block of four rows. */
QUANT_INLINE void quant_step_four(__m512i *sums, __m512i query, const unsigned char *const *rows, size_t i,
                                  bool headed) {
  sums[0] = quant_step(sums[0], query, _mm512_loadu_si512(rows[0] + i), headed);
  sums[1] = quant_step(sums[1], query, _mm512_loadu_si512(rows[1] + i), headed);
  sums[2] = quant_step(sums[2], query, _mm512_loadu_si512(rows[2] + i), headed);
  sums[3] = quant_step(sums[3], query, _mm512_loadu_si512(rows[3] + i), headed);
}

QUANT_INLINE void quant_step_four_partly(__m512i *sums, __m512i query, const unsigned char *const *rows, size_t i,
                                         __mmask64 part) {
  sums[0] = quant_step(sums[0], query, _mm512_maskz_loadu_epi8(part, rows[0] + i), true);
  sums[1] = quant_step(sums[1], query, _mm512_maskz_loadu_epi8(part, rows[1] + i), true);
  sums[2] = quant_step(sums[2], query, _mm512_maskz_loadu_epi8(part, rows[2] + i), true);
  sums[3] = quant_step(sums[3], query, _mm512_maskz_loadu_epi8(part, rows[3] + i), true);
}

QUANT_INLINE __m128i quant_sums_of_four(const int8_t *query, size_t dim, const unsigned char *const *rows) {
  const __m512i none = _mm512_setzero_si512();
  __m512i sums[4] = {none, none, none, none};
  size_t i = 0;
  for (; i + QUANT_BLOCK <= dim && i < QUANT_MIN_ROW_BYTES; i += QUANT_BLOCK)
    quant_step_four(sums, _mm512_loadu_si512(query + i), rows, i, true);
  for (; i + QUANT_BLOCK <= dim; i += QUANT_BLOCK) quant_step_four(sums, _mm512_loadu_si512(query + i), rows, i, false);
  if (i < dim) quant_step_four_partly(sums, _mm512_loadu_si512(query + i), rows, i, ((__mmask64)1 << (dim - i)) - 1);
  return quant_sum_each(sums[0], sums[1], sums[2], sums[3]);
}

#include "kernel/quant_x86.h"

QUANT_TARGET static int32_t quant_avx512_centre(const unsigned char *codes, size_t dim, int8_t *out) {
  const __m512i low7 = _mm512_set1_epi8(127), zero = _mm512_set1_epi8(64);
  __m512i sums = _mm512_setzero_si512();
  size_t i = 0;
  for (; i + QUANT_BLOCK <= dim; i += QUANT_BLOCK) {
    __m512i c = _mm512_and_si512(_mm512_loadu_si512(codes + i), low7);
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(c, _mm512_setzero_si512()));
    _mm512_storeu_si512(out + i, _mm512_sub_epi8(c, zero));
  }
  int32_t sum = (int32_t)_mm512_reduce_add_epi64(sums); /* below 2^31 */
  return sum - 64 * (int32_t)i + quant_portable_centre(codes + i, dim - i, out + i);
}

QUANT_TARGET static inline void quant_put_16(float *vector, __m128i codes, __m512i base) {
  _mm512_storeu_ps(vector, _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_cvtepu8_epi32(codes), base)));
}

/* 64 numbers at a time: their last bits are a mask. */
QUANT_TARGET static void quant_avx512_decode(const quant_grid *grid, const unsigned char *row, const unsigned char *low,
                                             size_t dim, float *vector) {
  const __m512i low7 = _mm512_set1_epi8(127), one = _mm512_set1_epi8(1), base = _mm512_set1_epi32(grid->base);
  size_t j = 0;
  for (; j + QUANT_BLOCK <= dim; j += QUANT_BLOCK) {
    __m512i codes = _mm512_and_si512(_mm512_loadu_si512(row + j), low7);
    if (grid->step == 2) {
      uint64_t bits;
      memcpy(&bits, low + j / 8, sizeof bits);
      codes = _mm512_add_epi8(codes, codes);
      codes = _mm512_mask_add_epi8(codes, _cvtu64_mask64(bits), codes, one);
    }
    quant_put_16(vector + j, _mm512_castsi512_si128(codes), base);
    quant_put_16(vector + j + 16, _mm512_extracti32x4_epi32(codes, 1), base);
    quant_put_16(vector + j + 32, _mm512_extracti32x4_epi32(codes, 2), base);
    quant_put_16(vector + j + 48, _mm512_extracti32x4_epi32(codes, 3), base);
  }
  quant_decode_from(grid, row, low, j, dim, vector);
}

static bool quant_avx512_supported(void) {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
}

const quant_ops quant_avx512 = {.name = "avx512",
                                .supported = quant_avx512_supported,
                                .keys = quant_x86_keys,
                                .centre = quant_avx512_centre,
                                .decode = quant_avx512_decode};

#endif
