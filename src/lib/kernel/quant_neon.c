/* SPDX-License-Identifier: Apache-2.0 */
/* quant_neon.c - keys of rows, by integer dot products, for 64-bit ARM, with and without the dot product instructions
 * of ARMv8.2.
 *
 * Codes are below 128, so both operands can be signed. smull makes 16-bit products (at most 127 * 127), sadalp adds
 * them in pairs to 32 bits; sdot does four at once. A partial block is copied and padded with zeros. Both are exact, so
 * both give the same sums.
 */
#include "kernel/quant_impl.h"
#include "platform/memory.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define QUANT_INLINE static inline __attribute__((always_inline))

enum { QUANT_BLOCK = 16 };

QUANT_INLINE int32x4_t quant_step(int32x4_t sum, int8x16_t query, int8x16_t row) {
  sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(query), vget_low_s8(row)));
  return vpadalq_s16(sum, vmull_high_s8(query, row));
}

QUANT_INLINE int8x16_t quant_load_row(const unsigned char *row) {
  return vreinterpretq_s8_u8(vandq_u8(vld1q_u8(row), vdupq_n_u8(127)));
}

QUANT_INLINE int8x16_t quant_load_part(const unsigned char *row, size_t n) {
  unsigned char padded[QUANT_BLOCK] = {0};
  memcpy(padded, row, n);
  return quant_load_row(padded);
}

/* Gives each of eight bytes a bit of its own and adds them in pairs three times: eight bytes become one. */
QUANT_INLINE uint64_t quant_head_of(const unsigned char *row) {
  static const unsigned char bit[QUANT_BLOCK] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t bits = vld1q_u8(bit), part[4];
  for (int i = 0; i < 4; i++) part[i] = vandq_u8(vcltzq_s8(vreinterpretq_s8_u8(vld1q_u8(row + i * QUANT_BLOCK))), bits);
  uint8x16_t pairs = vpaddq_u8(vpaddq_u8(part[0], part[1]), vpaddq_u8(part[2], part[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)), 0);
}

static void quant_neon_keys(const quant_query *query, const unsigned char *const *rows, size_t n, float *out) {
  for (size_t r = 0; r < n; r++) {
    const unsigned char *row = rows[r];
    const int8_t *codes = query->code;
    size_t dim = query->dim;
    int32x4_t a = vdupq_n_s32(0), b = a;
    size_t i = 0;
    for (; i + 2 * QUANT_BLOCK <= dim; i += 2 * QUANT_BLOCK) {
      a = quant_step(a, vld1q_s8(codes + i), quant_load_row(row + i));
      b = quant_step(b, vld1q_s8(codes + i + QUANT_BLOCK), quant_load_row(row + i + QUANT_BLOCK));
    }
    for (; i + QUANT_BLOCK <= dim; i += QUANT_BLOCK) a = quant_step(a, vld1q_s8(codes + i), quant_load_row(row + i));
    if (i < dim) b = quant_step(b, vld1q_s8(codes + i), quant_load_part(row + i, dim - i));
    out[r] = quant_key(query, quant_head_of(row), vaddvq_s32(vaddq_s32(a, b)));
  }
}

static bool quant_neon_supported(void) { return true; }

const quant_ops quant_neon = {.name = "neon",
                              .supported = quant_neon_supported,
                              .keys = quant_neon_keys,
                              .centre = quant_portable_centre,
                              .decode = quant_portable_decode};

/* Inline assembly: clang's header only offers the instruction if the whole file is compiled for it. */
#if defined(__clang__)
#define QUANT_TARGET_DOT __attribute__((target("dotprod")))
#else
#define QUANT_TARGET_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

QUANT_TARGET_DOT static inline int32x4_t quant_step_dot(int32x4_t sum, int8x16_t query, int8x16_t row) {
  __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(query), "w"(row));
  return sum;
}

QUANT_TARGET_DOT static void quant_neon_dot_keys(const quant_query *query, const unsigned char *const *rows, size_t n,
                                                 float *out) {
  for (size_t r = 0; r < n; r++) {
    const unsigned char *row = rows[r];
    const int8_t *codes = query->code;
    size_t dim = query->dim;
    int32x4_t a = vdupq_n_s32(0), b = a;
    size_t i = 0;
    for (; i + 2 * QUANT_BLOCK <= dim; i += 2 * QUANT_BLOCK) {
      a = quant_step_dot(a, vld1q_s8(codes + i), quant_load_row(row + i));
      b = quant_step_dot(b, vld1q_s8(codes + i + QUANT_BLOCK), quant_load_row(row + i + QUANT_BLOCK));
    }
    for (; i + QUANT_BLOCK <= dim; i += QUANT_BLOCK)
      a = quant_step_dot(a, vld1q_s8(codes + i), quant_load_row(row + i));
    if (i < dim) b = quant_step_dot(b, vld1q_s8(codes + i), quant_load_part(row + i, dim - i));
    out[r] = quant_key(query, quant_head_of(row), vaddvq_s32(vaddq_s32(a, b)));
  }
}

static bool quant_neon_dot_supported(void) { return os_cpu_has(OS_CPU_ARM_DOTPROD); }

const quant_ops quant_neon_dot = {.name = "neon-dot",
                                  .supported = quant_neon_dot_supported,
                                  .keys = quant_neon_dot_keys,
                                  .centre = quant_portable_centre,
                                  .decode = quant_portable_decode};

#endif
