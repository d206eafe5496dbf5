/* gemm_float.h - products of floats, after gemm_rows.h. The including file defines ROWS, the rows of a tile: as many as there are
 * registers for their sums. */
enum { VECS = LODE__PANEL / LANES };

/* Rows of the next tile, where `left` remain: as many as there are registers for, and no small rest that would have too few
 * sums to keep the CPU busy. */
static inline size_t tile_rows(size_t left) {
  if (left >= 2 * ROWS || left == ROWS) return ROWS;
  return left < ROWS ? left : (left + 1) / 2;
}

/* While rows are multiplied with panel `at` the next is fetched: a share of it for tile `t` of `tiles`. */
static inline void fetch_share(const lode__product *p, size_t at, size_t bytes, size_t t, size_t tiles) {
  if (at + 1 == p->n_panels) return;
  const char *next = panel_of(p, at + 1);
  size_t lines = (bytes + 63) / 64;
  for (size_t i = lines * t / tiles; i < lines * (t + 1) / tiles; i++) __builtin_prefetch(next + 64 * i, 0, 3);
}

TARGET_INLINE void tile(int rows, const lode__product *p, size_t row, size_t at) {
  vec acc[ROWS][VECS];
  const float *a = row_of(p, row), *panel = panel_of(p, at), *bias = p->bias ? p->bias + at * LODE__PANEL : NULL;
  float *c = p->c + row * p->ldc + at * LODE__PANEL;
  size_t lda = p->row_bytes / sizeof(float), ldc = p->ldc, k = p->k;
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int j = 0; j < VECS; j++) {
      const float *base = p->more ? c + (size_t)r * ldc : bias;
      acc[r][j] = base ? load(base + j * LANES) : (vec){0};
    }
  for (size_t i = 0; i < k; i++) {
    vec b[VECS];
    UNROLL for (int j = 0; j < VECS; j++) b[j] = load(panel + i * LODE__PANEL + (size_t)j * LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      vec x = all(a[(size_t)r * lda + i]);
      UNROLL for (int j = 0; j < VECS; j++) acc[r][j] += x * b[j];
    }
  }
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int j = 0; j < VECS; j++) store(c + (size_t)r * ldc + (size_t)j * LANES, acc[r][j]);
}

/* A tile of each number of rows: SIZES(F) makes a case for each up to ROWS. */
#define CASE(F, rows, ...) case rows: F(rows, __VA_ARGS__); break;
#if ROWS >= 12
#define MORE_SIZES(F, ...) CASE(F, 7, __VA_ARGS__) CASE(F, 8, __VA_ARGS__) CASE(F, 9, __VA_ARGS__) \
  CASE(F, 10, __VA_ARGS__) CASE(F, 11, __VA_ARGS__) CASE(F, 12, __VA_ARGS__)
#else
#define MORE_SIZES(F, ...)
#endif
#if ROWS >= 6
#define SIZES(F, ...) CASE(F, 1, __VA_ARGS__) CASE(F, 2, __VA_ARGS__) CASE(F, 3, __VA_ARGS__) CASE(F, 4, __VA_ARGS__) \
  CASE(F, 5, __VA_ARGS__) CASE(F, 6, __VA_ARGS__) MORE_SIZES(F, __VA_ARGS__)
#else
#define SIZES(F, ...) CASE(F, 1, __VA_ARGS__) CASE(F, 2, __VA_ARGS__)
#endif

/* All panels by tiles of all rows; `bytes` is the size of an input. */
#define BY_TILES(tile, p, bytes) \
  for (size_t at = 0; at < (p)->n_panels; at++) { \
    size_t tiles = ((p)->m + ROWS - 1) / ROWS; \
    for (size_t row = 0, rows, t = 0; row < (p)->m; row += rows, t++) { \
      rows = tile_rows((p)->m - row); \
      fetch_share(p, at, (p)->k * LODE__PANEL * (bytes), t, tiles); \
      switch (rows) { SIZES(tile, p, row, at) } \
    } \
  }

TARGET static void multiply(const lode__product *p) { BY_TILES(tile, p, sizeof(float)) }

TARGET static void panel(const float *x, size_t ldx, size_t k, const float *scales, void *out) {
  (void)scales;
  for (size_t i = 0; i < k; i++) memcpy((float *)out + i * LODE__PANEL, x + i * ldx, LODE__PANEL * sizeof(float));
}

/* What gemm.h calls floats. */
#define FLOATS {.bytes = 4, .together = 1, .depth = 192, .panel = panel, .multiply = multiply, \
                .gelu = gelu_fine, .softmax = softmax_fine}
