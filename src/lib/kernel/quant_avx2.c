/* SPDX-License-Identifier: Apache-2.0 */
/* quant_avx2.c - keys of rows, by integer dot products, for x86-64 with AVX2.
 *
 * vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits, with saturation; with bytes of 0 to 127
 * and -127 to 127 the sum is within 2 * 127 * 127 = 32,258, so it never saturates. vpmaddwd with ones then widens to
 * 32 bits: three instructions for 32 elements, half of what sign extension to 16 bits costs. Four rows at a time share
 * the loads of the query and the final sum. The last, partial block is read from dim - 32, with the part of the query
 * that was already counted masked to zero.
 */
#include "kernel/quant_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define QUANT_TARGET __attribute__((target("avx2")))
#define QUANT_INLINE static inline __attribute__((target("avx2"), always_inline))

enum { QUANT_BLOCK = 32 };

QUANT_INLINE __m256i quant_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

QUANT_INLINE uint64_t quant_head_of(const unsigned char *row) {
  return (uint64_t)(uint32_t)_mm256_movemask_epi8(quant_load(row + QUANT_BLOCK)) << 32 |
         (uint32_t)_mm256_movemask_epi8(quant_load(row));
}

/* headed: top bits may be set. */
QUANT_INLINE __m256i quant_step(__m256i sum, __m256i query, __m256i row, bool headed) {
  __m256i codes = headed ? _mm256_and_si256(row, _mm256_set1_epi8(127)) : row;
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, query), _mm256_set1_epi16(1)));
}

/* The query's last block, starting at dim - 32, without the first (-dim mod 32) elements. */
QUANT_INLINE __m256i quant_last_block(const int8_t *query, size_t dim) {
  static const int8_t mask[2 * QUANT_BLOCK] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                               0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                               -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                               -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_and_si256(quant_load(query + dim - QUANT_BLOCK), quant_load(mask + dim % QUANT_BLOCK));
}

QUANT_INLINE int32_t quant_total(__m256i sum) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 1)));
}

/* One block of four rows. */
QUANT_INLINE void quant_step_four(__m256i *sums, __m256i query, const unsigned char *const *rows, size_t i,
                                  bool headed) {
  sums[0] = quant_step(sums[0], query, quant_load(rows[0] + i), headed);
  sums[1] = quant_step(sums[1], query, quant_load(rows[1] + i), headed);
  sums[2] = quant_step(sums[2], query, quant_load(rows[2] + i), headed);
  sums[3] = quant_step(sums[3], query, quant_load(rows[3] + i), headed);
}

QUANT_INLINE __m128i quant_sums_of_four(const int8_t *query, size_t dim, const unsigned char *const *rows) {
  const __m256i none = _mm256_setzero_si256();
  __m256i sums[4] = {none, none, none, none};
  size_t i = 0;
  for (; i + QUANT_BLOCK <= dim && i < QUANT_MIN_ROW_BYTES; i += QUANT_BLOCK)
    quant_step_four(sums, quant_load(query + i), rows, i, true);
  for (; i + QUANT_BLOCK <= dim; i += QUANT_BLOCK) quant_step_four(sums, quant_load(query + i), rows, i, false);
  if (dim < QUANT_BLOCK)
    quant_step_four(sums, quant_load(query), rows, 0, true); /* both are padded */
  else if (dim % QUANT_BLOCK)
    quant_step_four(sums, quant_last_block(query, dim), rows, dim - QUANT_BLOCK, true);
  __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}

#include "kernel/quant_x86.h"

QUANT_TARGET static int32_t quant_avx2_centre(const unsigned char *codes, size_t dim, int8_t *out) {
  const __m256i low7 = _mm256_set1_epi8(127), zero = _mm256_set1_epi8(64);
  __m256i sums = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + QUANT_BLOCK <= dim; i += QUANT_BLOCK) {
    __m256i c = _mm256_and_si256(quant_load(codes + i), low7);
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(c, _mm256_setzero_si256()));
    _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_sub_epi8(c, zero));
  }
  return quant_total(sums) - 64 * (int32_t)i +
         quant_portable_centre(codes + i, dim - i, out + i); /* sums are below 2^31 */
}

QUANT_TARGET static void quant_avx2_decode(const quant_grid *grid, const unsigned char *row, const unsigned char *low,
                                           size_t dim, float *vector) {
  quant_decode_from(grid, row, low, 0, dim, vector);
}

static bool quant_avx2_supported(void) { return __builtin_cpu_supports("avx2"); }

const quant_ops quant_avx2 = {.name = "avx2",
                              .supported = quant_avx2_supported,
                              .keys = quant_x86_keys,
                              .centre = quant_avx2_centre,
                              .decode = quant_avx2_decode};

#endif
