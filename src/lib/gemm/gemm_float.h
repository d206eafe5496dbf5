/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_float.h - products of floats; include after gemm_rows.h. The including file defines GEMM_ROWS, the rows of a
 * tile: as many as there are registers for their sums. */
enum { GEMM_VECS = GEMM_PANEL / GEMM_LANES };

/* Rows of the next tile, if `left` remain: as many as there are registers for, without a small remainder that would
 * have too few sums to keep the CPU busy. */
static inline size_t gemm_tile_rows(size_t left) {
  if (left >= 2 * GEMM_ROWS || left == GEMM_ROWS) return GEMM_ROWS;
  return left < GEMM_ROWS ? left : (left + 1) / 2;
}

/* While rows are multiplied with panel `at`, the next one is prefetched: a share of it for tile `t` of `tiles`. */
static inline void gemm_prefetch_share(const gemm_product *p, size_t at, size_t bytes, size_t t, size_t tiles) {
  if (at + 1 == p->n_panels) return;
  const char *next = gemm_panel_of(p, at + 1);
  size_t lines = (bytes + 63) / 64;
  for (size_t i = lines * t / tiles; i < lines * (t + 1) / tiles; i++) __builtin_prefetch(next + 64 * i, 0, 3);
}

GEMM_INLINE void gemm_tile_float(int rows, const gemm_product *p, size_t row, size_t at) {
  gemm_vec acc[GEMM_ROWS][GEMM_VECS];
  const float *a = gemm_row_of(p, row), *panel = gemm_panel_of(p, at);
  const float *bias = p->bias ? p->bias + at * GEMM_PANEL : NULL;
  float *c = p->c + row * p->ldc + at * GEMM_PANEL;
  size_t lda = p->row_bytes / sizeof(float), ldc = p->ldc, k = p->k;
  GEMM_UNROLL for (int r = 0; r < rows; r++) GEMM_UNROLL for (int j = 0; j < GEMM_VECS; j++) {
    const float *base = p->more ? c + (size_t)r * ldc : bias;
    acc[r][j] = base ? gemm_load(base + j * GEMM_LANES) : (gemm_vec){0};
  }
  for (size_t i = 0; i < k; i++) {
    gemm_vec b[GEMM_VECS];
    GEMM_UNROLL for (int j = 0; j < GEMM_VECS; j++) b[j] = gemm_load(panel + i * GEMM_PANEL + (size_t)j * GEMM_LANES);
    GEMM_UNROLL for (int r = 0; r < rows; r++) {
      gemm_vec x = gemm_all(a[(size_t)r * lda + i]);
      GEMM_UNROLL for (int j = 0; j < GEMM_VECS; j++) acc[r][j] += x * b[j];
    }
  }
  GEMM_UNROLL for (int r = 0; r < rows; r++) GEMM_UNROLL for (int j = 0; j < GEMM_VECS; j++)
      gemm_store(c + (size_t)r * ldc + (size_t)j * GEMM_LANES, acc[r][j]);
}

/* A tile function for each number of rows: GEMM_SIZES(F) makes a case for each up to GEMM_ROWS. */
#define GEMM_CASE(F, rows, ...)                                                                                        \
  case rows:                                                                                                           \
    F(rows, __VA_ARGS__);                                                                                              \
    break;
#if GEMM_ROWS >= 12
#define GEMM_MORE_SIZES(F, ...)                                                                                        \
  GEMM_CASE(F, 7, __VA_ARGS__)                                                                                         \
  GEMM_CASE(F, 8, __VA_ARGS__)                                                                                         \
  GEMM_CASE(F, 9, __VA_ARGS__) GEMM_CASE(F, 10, __VA_ARGS__) GEMM_CASE(F, 11, __VA_ARGS__) GEMM_CASE(F, 12, __VA_ARGS__)
#else
#define GEMM_MORE_SIZES(F, ...)
#endif
#if GEMM_ROWS >= 6
#define GEMM_SIZES(F, ...)                                                                                             \
  GEMM_CASE(F, 1, __VA_ARGS__)                                                                                         \
  GEMM_CASE(F, 2, __VA_ARGS__)                                                                                         \
  GEMM_CASE(F, 3, __VA_ARGS__)                                                                                         \
  GEMM_CASE(F, 4, __VA_ARGS__) GEMM_CASE(F, 5, __VA_ARGS__) GEMM_CASE(F, 6, __VA_ARGS__) GEMM_MORE_SIZES(F, __VA_ARGS__)
#else
#define GEMM_SIZES(F, ...) GEMM_CASE(F, 1, __VA_ARGS__) GEMM_CASE(F, 2, __VA_ARGS__)
#endif

/* Loops over all panels and tiles of rows; `bytes` is the size of an input. */
#define GEMM_BY_TILES(tile, p, bytes)                                                                                  \
  for (size_t at = 0; at < (p)->n_panels; at++) {                                                                      \
    size_t tiles = ((p)->m + GEMM_ROWS - 1) / GEMM_ROWS;                                                               \
    for (size_t row = 0, rows, t = 0; row < (p)->m; row += rows, t++) {                                                \
      rows = gemm_tile_rows((p)->m - row);                                                                             \
      gemm_prefetch_share(p, at, (p)->k *GEMM_PANEL *(bytes), t, tiles);                                               \
      switch (rows) { GEMM_SIZES(tile, p, row, at) }                                                                   \
    }                                                                                                                  \
  }

GEMM_TARGET static void gemm_multiply_float(const gemm_product *p){GEMM_BY_TILES(gemm_tile_float, p, sizeof(float))}

GEMM_TARGET static void gemm_panel_float(const float *x, size_t ldx, size_t k, const float *scales, void *out) {
  (void)scales;
  for (size_t i = 0; i < k; i++) memcpy((float *)out + i * GEMM_PANEL, x + i * ldx, GEMM_PANEL * sizeof(float));
}

/* The arithmetic `floats` of gemm.h. */
#define GEMM_FLOATS                                                                                                    \
  {                                                                                                                    \
    .bytes = 4, .together = 1, .depth = 192, .panel = gemm_panel_float, .multiply = gemm_multiply_float,               \
    .gelu = gemm_gelu_fine, .softmax = gemm_softmax_fine                                                               \
  }
