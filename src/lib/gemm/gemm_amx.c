/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_amx.c - the kernel for x86-64 with AMX: tiles of bfloat16.
 *
 * A tile is 16 rows of 64 bytes. tdpbf16ps multiplies 16 rows of 32 inputs with 32 inputs of 16 outputs and adds the
 * products to 16 x 16 floats: 8192 multiply-adds in 16 cycles. Rows are stored by tiles, like panels: 16 rows of 32
 * inputs, the next 32 inputs of the same rows, and so on.
 *
 * `narrow` is one product of bfloat16. `full` splits a float into two, high + low: each 32 inputs are followed by their
 * low parts, in rows and in panels, and there are three products (low x low is below the last significant bit).
 *
 * A process must ask the system for tiles. A thread's tiles are configured for each product and released after it:
 * while they are in use, each context switch saves 8 KiB more.
 */
#include "gemm/gemm.h"
#include "platform/memory.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define GEMM_LANES 16
#define GEMM_TARGET                                                                                                    \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,f16c")))
#define GEMM_MIN_OP _mm512_min_ps
#define GEMM_MAX_OP _mm512_max_ps
#define GEMM_RCP_OP _mm512_rcp14_ps
#define GEMM_SUM_OP _mm512_reduce_add_ps
#define GEMM_GREATEST_OP _mm512_reduce_max_ps
#include "gemm/gemm_rows.h"
#include "gemm/gemm_x86.h"

enum { TILE_ROWS = 16, TILE_INPUTS = 32, TILE_LINE = 64, TILE_BYTES = TILE_ROWS * TILE_LINE };

/* ---- Is it available? ---- */

static bool has_tiles(void) {
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AVX512_BF16 = 1 << 5 };
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (AMX_BF16 | AMX_TILE)) != (AMX_BF16 | AMX_TILE)) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX512_BF16);
}

static bool gemm_amx_supported(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && has_tiles() &&
         os_cpu_grant_tiles();
}

/* ---- Products ---- */

typedef struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_config;

/* Tiles 0 to 3 are sums, of two tiles of rows with two panels; 4 and 5 are rows, 6 and 7 panels. `first` and `second`
 * are the numbers of rows of the two. */
GEMM_INLINE void amx_configure(size_t first, size_t second) {
  tile_config config = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = TILE_LINE;
    config.rows[i] = (uint8_t)(i < 2 || i == 4 ? first : i < 6 ? second : TILE_ROWS);
  }
  __asm__ volatile("" : : "r"(&config) : "memory"); /* gcc 12 assumes that only its first bytes are read */
  _tile_loadconfig(&config);
}

/* `rows` and `panels` are constants, 1 or 2 tiles; `parts` of a number, 1 or 2. */
GEMM_INLINE void amx_block(int rows, int panels, int parts, const gemm_product *p, size_t row, size_t at) {
  const char *a = gemm_row_of(p, row), *b = gemm_panel_of(p, at);
  size_t next_rows = TILE_ROWS * p->row_bytes, next_panel = p->panel_bytes, ldc = p->ldc * sizeof(float);
  float *c = p->c + row * p->ldc + at * GEMM_PANEL, *below = c + TILE_ROWS * p->ldc;
  static const float zeros[2 * GEMM_PANEL];
  const float *from = p->more ? c : p->bias ? p->bias + at * GEMM_PANEL : zeros, *from_below = p->more ? below : from;
  size_t ld_from = p->more ? ldc : 0; /* 0: every row starts from the same line */

  _tile_loadd(0, from, ld_from);
  if (panels > 1) _tile_loadd(1, from + GEMM_PANEL, ld_from);
  if (rows > 1) _tile_loadd(2, from_below, ld_from);
  if (rows > 1 && panels > 1) _tile_loadd(3, from_below + GEMM_PANEL, ld_from);
  for (size_t i = 0; i < p->k; i += TILE_INPUTS, a += parts * TILE_BYTES, b += parts * TILE_BYTES) {
    GEMM_UNROLL for (int term = 0; term < 2 * parts - 1; term++) { /* high x high, low x high, high x low */
      const char *x = a + (term == 1 ? TILE_BYTES : 0), *y = b + (term == 2 ? TILE_BYTES : 0);
      _tile_loadd(6, y, TILE_LINE);
      _tile_loadd(4, x, TILE_LINE);
      _tile_dpbf16ps(0, 4, 6);
      if (panels > 1) _tile_loadd(7, y + next_panel, TILE_LINE);
      if (panels > 1) _tile_dpbf16ps(1, 4, 7);
      if (rows > 1) _tile_loadd(5, x + next_rows, TILE_LINE);
      if (rows > 1) _tile_dpbf16ps(2, 5, 6);
      if (rows > 1 && panels > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, ldc);
  if (panels > 1) _tile_stored(1, c + GEMM_PANEL, ldc);
  if (rows > 1) _tile_stored(2, below, ldc);
  if (rows > 1 && panels > 1) _tile_stored(3, below + GEMM_PANEL, ldc);
}

GEMM_INLINE void amx_all_panels(int rows, int parts, const gemm_product *p, size_t row, size_t end) {
  for (size_t at = 0; at + 1 < p->n_panels; at += 2)
    for (size_t r = row; r < end; r += 2 * TILE_ROWS) amx_block(rows, 2, parts, p, r, at);
  if (p->n_panels % 2)
    for (size_t r = row; r < end; r += 2 * TILE_ROWS) amx_block(rows, 1, parts, p, r, p->n_panels - 1);
}

GEMM_INLINE void amx_multiply(int parts, const gemm_product *p) {
  size_t rest = p->m % (2 * TILE_ROWS), even = p->m - rest;
  if (even) {
    amx_configure(TILE_ROWS, TILE_ROWS);
    amx_all_panels(2, parts, p, 0, even);
  }
  if (rest > TILE_ROWS) {
    amx_configure(TILE_ROWS, rest - TILE_ROWS);
    amx_all_panels(2, parts, p, even, p->m);
  } else if (rest) {
    amx_configure(rest, rest);
    amx_all_panels(1, parts, p, even, p->m);
  }
  _tile_release();
}

GEMM_TARGET static void amx_multiply_narrow(const gemm_product *p) { amx_multiply(1, p); }
GEMM_TARGET static void amx_multiply_full(const gemm_product *p) { amx_multiply(2, p); }

/* ---- Conversions ---- */

/* The upper halves of lanes, rounded, in the lower halves. */
GEMM_INLINE __m512i amx_upper(__m512 x) { return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x)); }

/* The remainder of x after rounding. */
GEMM_INLINE __m512 amx_rest_of(__m512 x) {
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(amx_upper(x), 16)));
}

/* Writes 32 inputs of a row. */
GEMM_INLINE void amx_line_of(int parts, __m512 a, __m512 b, char *to) {
  GEMM_UNROLL for (int part = 0; part < parts; part++, to += TILE_BYTES) {
    _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    a = amx_rest_of(a), b = amx_rest_of(b);
  }
}

GEMM_INLINE void amx_rows_of(int parts, const float *x, size_t ldx, const gemm_product *p, void *rows) {
  size_t rest = p->k % TILE_INPUTS, whole = p->k - rest;
  __mmask32 mask = (1u << rest) - 1;
  for (size_t r = 0; r < p->m; r++, x += ldx) {
    char *to = (char *)rows + r / TILE_ROWS * TILE_ROWS * p->row_bytes + r % TILE_ROWS * TILE_LINE;
    for (size_t i = 0; i < whole; i += TILE_INPUTS, to += parts * TILE_BYTES)
      amx_line_of(parts, _mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + GEMM_LANES), to);
    if (rest)
      amx_line_of(parts, _mm512_maskz_loadu_ps((__mmask16)mask, x + whole),
                  _mm512_maskz_loadu_ps((__mmask16)(mask >> GEMM_LANES), x + whole + GEMM_LANES), to);
  }
}

GEMM_INLINE void amx_panel_of_parts(int parts, const float *x, size_t ldx, size_t k, void *panel) {
  for (size_t i = 0; i < gemm_pad(k, TILE_INPUTS); i += 2) {
    __m512 a = i < k ? _mm512_loadu_ps(x + i * ldx) : _mm512_setzero_ps();
    __m512 b = i + 1 < k ? _mm512_loadu_ps(x + (i + 1) * ldx) : _mm512_setzero_ps();
    char *to = (char *)panel + i / TILE_INPUTS * parts * TILE_BYTES + i % TILE_INPUTS / 2 * TILE_LINE;
    GEMM_UNROLL for (int part = 0; part < parts; part++, to += TILE_BYTES) {
      _mm512_store_si512(to, _mm512_or_si512(amx_upper(a), _mm512_slli_epi32(amx_upper(b), 16)));
      a = amx_rest_of(a), b = amx_rest_of(b);
    }
  }
}

/* Transposes 16 x 16 numbers of 32 bits: blocks of 8, then of 4, 2 and 1 are swapped across the diagonal. */
GEMM_INLINE void amx_transpose(__m512i x[TILE_ROWS]) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  GEMM_UNROLL for (int d = TILE_ROWS / 2; d > 0; d /= 2) {
    const __mmask16 low = d == 8 ? 0x00ff : d == 4 ? 0x0f0f : d == 2 ? 0x3333 : 0x5555;
    const __m512i by = _mm512_set1_epi32(d);
    const __m512i left =
        _mm512_mask_sub_epi32(lane, (__mmask16)~low, _mm512_add_epi32(lane, _mm512_set1_epi32(TILE_ROWS)), by);
    const __m512i right = _mm512_mask_add_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(TILE_ROWS)), low, lane, by);
    GEMM_UNROLL for (int i = 0; i < TILE_ROWS; i++) {
      if (i & d) continue;
      __m512i a = x[i], b = x[i + d];
      x[i] = _mm512_permutex2var_epi32(a, left, b);
      x[i + d] = _mm512_permutex2var_epi32(a, right, b);
    }
  }
}

/* Writes a tile of a panel: 32 inputs, of which `inputs` are set, of 16 outputs, each of which is a row. */
GEMM_INLINE void amx_tile_of_rows(int parts, const float *x, size_t ldx, size_t outputs, size_t inputs, char *to) {
  __m512i tiles[2][TILE_ROWS];
  __mmask32 mask = inputs < TILE_INPUTS ? (1u << inputs) - 1 : ~0u;
  GEMM_UNROLL for (size_t j = 0; j < TILE_ROWS; j++) {
    const float *row = x + (j < outputs ? j : 0) * ldx;
    __mmask32 here = j < outputs ? mask : 0;
    __m512 a = _mm512_maskz_loadu_ps((__mmask16)here, row);
    __m512 b = _mm512_maskz_loadu_ps((__mmask16)(here >> GEMM_LANES), row + GEMM_LANES);
    GEMM_UNROLL for (int part = 0; part < parts; part++) {
      tiles[part][j] = (__m512i)_mm512_cvtne2ps_pbh(b, a);
      a = amx_rest_of(a), b = amx_rest_of(b);
    }
  }
  GEMM_UNROLL for (int part = 0; part < parts; part++, to += TILE_BYTES) {
    amx_transpose(tiles[part]);
    GEMM_UNROLL for (int i = 0; i < TILE_ROWS; i++) _mm512_store_si512(to + i * TILE_LINE, tiles[part][i]);
  }
}

GEMM_INLINE void amx_panel_of_rows(int parts, const float *x, size_t ldx, size_t outputs, size_t k, char *panel) {
  for (size_t i = 0; i < k; i += TILE_INPUTS, panel += parts * TILE_BYTES)
    amx_tile_of_rows(parts, x + i, ldx, outputs, k - i, panel);
}

GEMM_TARGET static void amx_rows_narrow(const float *x, size_t ldx, const gemm_product *p, void *rows,
                                        float *row_scales) {
  (void)row_scales;
  amx_rows_of(1, x, ldx, p, rows);
}
GEMM_TARGET static void amx_rows_full(const float *x, size_t ldx, const gemm_product *p, void *rows,
                                      float *row_scales) {
  (void)row_scales;
  amx_rows_of(2, x, ldx, p, rows);
}
GEMM_TARGET static void amx_panel_narrow(const float *x, size_t ldx, size_t k, const float *scales, void *panel) {
  (void)scales;
  amx_panel_of_parts(1, x, ldx, k, panel);
}
GEMM_TARGET static void amx_panel_full(const float *x, size_t ldx, size_t k, const float *scales, void *panel) {
  (void)scales;
  amx_panel_of_parts(2, x, ldx, k, panel);
}

GEMM_TARGET static void amx_panel_of_rows_narrow(const float *x, size_t ldx, size_t outputs, size_t k, void *panel) {
  amx_panel_of_rows(1, x, ldx, outputs, k, panel);
}
GEMM_TARGET static void amx_panel_of_rows_full(const float *x, size_t ldx, size_t outputs, size_t k, void *panel) {
  amx_panel_of_rows(2, x, ldx, outputs, k, panel);
}

const gemm_kernel gemm_amx = {
    .name = "amx-bf16",
    .supported = gemm_amx_supported,
    .full = {.bytes = 4,
             .together = TILE_INPUTS,
             .depth = 192,
             .rows = amx_rows_full,
             .panel = amx_panel_full,
             .panel_of_rows = amx_panel_of_rows_full,
             .multiply = amx_multiply_full,
             .gelu = gemm_gelu_fine,
             .softmax = gemm_softmax_fine},
    .narrow = {.bytes = 2,
               .together = TILE_INPUTS,
               .depth = 384,
               .rows = amx_rows_narrow,
               .panel = amx_panel_narrow,
               .panel_of_rows = amx_panel_of_rows_narrow,
               .multiply = amx_multiply_narrow,
               .gelu = gemm_gelu_coarse,
               .softmax = gemm_softmax_coarse},
    .block = 256,
    .scale = gemm_scale,
    .norm = gemm_norm,
    .widen = gemm_widen,
};

#endif
