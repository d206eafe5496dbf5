/* code_avx512.c - integer dot products for x86-64 with AVX-512 VNNI.
 *
 * vpdpbusd adds four products of an unsigned and a signed byte to 32 bits, and does not saturate. Four rows at a time
 * share the loads of the query; a partial block is read under a mask.
 */
#include "index/code_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define TARGET_INLINE static inline __attribute__((target("avx512f,avx512bw,avx512vnni"), always_inline))

enum { BLOCK = 64 };

TARGET_INLINE __m512i step(__m512i sum, __m512i query, const unsigned char *row) {
  return _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(row), query);
}

TARGET_INLINE __m512i step_part(__m512i sum, __m512i query, const unsigned char *row, __mmask64 part) {
  return _mm512_dpbusd_epi32(sum, _mm512_maskz_loadu_epi8(part, row), query);
}

/* The sums of the lanes of four registers: together, because at 128 dimensions they cost as much as the products. */
TARGET_INLINE __m128i sum_each(__m512i a, __m512i b, __m512i c, __m512i d) {
  __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

TARGET_INLINE __m128i sums_of_four(const int8_t *query, size_t dim, const unsigned char *const *rows) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  size_t i = 0;
  for (; i + BLOCK <= dim; i += BLOCK) {
    __m512i q = _mm512_loadu_si512(query + i);
    a = step(a, q, rows[0] + i);
    b = step(b, q, rows[1] + i);
    c = step(c, q, rows[2] + i);
    d = step(d, q, rows[3] + i);
  }
  if (i < dim) {
    __mmask64 part = ((__mmask64)1 << (dim - i)) - 1;
    __m512i q = _mm512_loadu_si512(query + i);
    a = step_part(a, q, rows[0] + i, part);
    b = step_part(b, q, rows[1] + i, part);
    c = step_part(c, q, rows[2] + i, part);
    d = step_part(d, q, rows[3] + i, part);
  }
  return sum_each(a, b, c, d);
}

#include "index/code_x86.h"

TARGET static int32_t centre(const unsigned char *codes, size_t dim, int8_t *out) {
  const __m512i low7 = _mm512_set1_epi8(127), zero = _mm512_set1_epi8(64);
  __m512i sums = _mm512_setzero_si512();
  size_t i = 0;
  for (; i + BLOCK <= dim; i += BLOCK) {
    __m512i c = _mm512_and_si512(_mm512_loadu_si512(codes + i), low7);
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(c, _mm512_setzero_si512()));
    _mm512_storeu_si512(out + i, _mm512_sub_epi8(c, zero));
  }
  int32_t sum = (int32_t)_mm512_reduce_add_epi64(sums); /* below 2^31 */
  return sum - 64 * (int32_t)i + lode__code_centre(codes + i, dim - i, out + i);
}

static bool supported(void) { return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"); }

const lode__code_kernel lode__code_avx512 = {.name = "avx512", .supported = supported, .keys = keys, .centre = centre};

#endif
