/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_x86.h - shared by the kernels for x86-64; include after gemm_rows.h. */
GEMM_TARGET static void gemm_widen(const uint16_t *halfs, float *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(halfs + i))));
  for (; i < n; i++) out[i] = _cvtsh_ss(halfs[i]);
}
