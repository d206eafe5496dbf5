/* SPDX-License-Identifier: Apache-2.0 */
/* quant_x86.h - keys from sums, four rows at a time, shared by the kernels for x86-64. The including file defines
 * QUANT_TARGET (function attributes), QUANT_INLINE, quant_head_of(): the top bits of 64 bytes, and
 * quant_sums_of_four(): the dot products of a query's codes and those of four rows. */

/* Like quant_key(), with the same rounding at each step. */
QUANT_INLINE __m128 quant_keys_of_four(const quant_query *query, const unsigned char *const *rows) {
  __m128i dots = _mm_sub_epi32(quant_sums_of_four(query->code, query->dim, rows), _mm_set1_epi32(query->offset));
  __m128i head0 = _mm_cvtsi64_si128((long long)quant_head_of(rows[0]));
  __m128i head1 = _mm_cvtsi64_si128((long long)quant_head_of(rows[1]));
  __m128i head2 = _mm_cvtsi64_si128((long long)quant_head_of(rows[2]));
  __m128i head3 = _mm_cvtsi64_si128((long long)quant_head_of(rows[3]));
  __m128i low = _mm_unpacklo_epi32(head0, head1), high = _mm_unpacklo_epi32(head2, head3);
  __m128 scales = _mm_castsi128_ps(_mm_unpacklo_epi64(low, high));
  __m128 biases = _mm_castsi128_ps(_mm_unpackhi_epi64(low, high));
  return _mm_sub_ps(biases, _mm_mul_ps(_mm_mul_ps(_mm_set1_ps(query->scale), scales), _mm_cvtepi32_ps(dots)));
}

QUANT_TARGET static void quant_x86_keys(const quant_query *query, const unsigned char *const *rows, size_t n,
                                        float *out) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) _mm_storeu_ps(out + i, quant_keys_of_four(query, rows + i));
  if (i == n) return;
  const unsigned char *last[4]; /* padded with the last row */
  float some[4];
  for (size_t j = 0; j < 4; j++) last[j] = rows[i + j < n ? i + j : n - 1];
  _mm_storeu_ps(some, quant_keys_of_four(query, last));
  memcpy(out + i, some, (n - i) * sizeof *some);
}
