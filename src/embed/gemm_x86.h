/* gemm_x86.h - what the kernels for x86-64 share beside gemm_float.h, which goes before it: F16C, and products of integers by tiles.
 *
 * The including file defines tile16() for its instruction set.
 */
#include <immintrin.h>

/* `rows` rows from number `row` on; called with a constant number of them. */
TARGET_INLINE void tile16(int rows, const lode__product16 *t, size_t row);

TARGET static void panel16(const lode__product16 *p) {
  size_t tiles = (p->m + ROWS - 1) / ROWS;
  for (size_t row = 0, t = 0; row < p->m; t++) {
    size_t rows = tile_rows(p->m - row);
    if (p->next) fetch_share(p->next, p->k2 * LODE__PANEL * sizeof(int16_t), t, tiles);
    switch (rows) { SIZES(tile16, p, row) }
    row += rows;
  }
}

TARGET static void widen(const uint16_t *halfs, float *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(halfs + i))));
  for (; i < n; i++) out[i] = _cvtsh_ss(halfs[i]);
}
