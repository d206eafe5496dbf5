/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c - CRC-32C: polynomial 0x1EDC6F41, reflected, initial value and final XOR all ones.
 *
 * Two implementations with the same results. Portable: slicing by 8, one table lookup per byte, eight bytes per step.
 * Hardware: the CPU's instruction (SSE4.2, ARMv8 CRC), which has a latency of three cycles and a throughput of one per
 * cycle: so long inputs are processed as three interleaved streams. Streams are combined by linearity: the register
 * after A then B is shift(register after A, length of B) ^ (register of B started with 0); a shift by a fixed length is
 * four lookups. Tables are computed on first use; the chosen function is published after them, so any thread may be
 * first.
 */
#include "base/crc32c.h"

#include "base/byteorder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u /* bits reversed */

enum { CRC_LONG_BYTES = 4096, CRC_SHORT_BYTES = 256, CRC_TINY_BYTES = 80 }; /* bytes per stream; multiples of 16 */

static uint32_t crc_slices[8][256];
static uint32_t shift_long[4][256], shift_short[4][256], shift_tiny[4][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* ---- Portable; works on the raw register, without the initial and final inversion ---- */

static uint32_t crc_sliced(uint32_t reg, const unsigned char *p, size_t len) {
  for (; len >= 8; p += 8, len -= 8) {
    uint64_t x = num_le64(p) ^ reg;
    reg = crc_slices[7][x & 255] ^ crc_slices[6][x >> 8 & 255] ^ crc_slices[5][x >> 16 & 255] ^
          crc_slices[4][x >> 24 & 255] ^ crc_slices[3][x >> 32 & 255] ^ crc_slices[2][x >> 40 & 255] ^
          crc_slices[1][x >> 48 & 255] ^ crc_slices[0][x >> 56];
  }
  for (; len; p++, len--) reg = crc_slices[0][(reg ^ *p) & 255] ^ (reg >> 8);
  return reg;
}

/* table[j][b]: the effect on a register of byte j with value b, after `bytes` zero bytes. */
static void make_shift(uint32_t table[4][256], size_t bytes) {
  static const unsigned char zeros[16];
  for (unsigned bit = 0; bit < 32; bit++) {
    uint32_t reg = (uint32_t)1 << bit;
    for (size_t at = 0; at < bytes; at += sizeof zeros) reg = crc_sliced(reg, zeros, sizeof zeros);
    for (unsigned b = 0; b < 256; b++) {
      if (b >> (bit % 8) & 1) table[bit / 8][b] ^= reg;
    }
  }
}

static void make_tables(void) {
  for (unsigned b = 0; b < 256; b++) {
    uint32_t reg = b;
    for (int i = 0; i < 8; i++) reg = (reg >> 1) ^ (reg & 1 ? POLYNOMIAL : 0);
    crc_slices[0][b] = reg;
  }
  for (int k = 1; k < 8; k++) {
    for (unsigned b = 0; b < 256; b++) {
      crc_slices[k][b] = crc_slices[0][crc_slices[k - 1][b] & 255] ^ (crc_slices[k - 1][b] >> 8);
    }
  }
  make_shift(shift_long, CRC_LONG_BYTES);
  make_shift(shift_short, CRC_SHORT_BYTES);
  make_shift(shift_tiny, CRC_TINY_BYTES);
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len) {
  pthread_once(&tables_once, make_tables);
  return ~crc_sliced(~crc, data, len);
}

/* ---- Hardware ---- */

#if defined(__x86_64__)
#define HARDWARE_NAME "sse4.2"
#include <nmmintrin.h>
#if defined(__clang__) && __clang_major__ >= 16
#define HARDWARE __attribute__((target("sse4.2,crc32")))
#else
#define HARDWARE __attribute__((target("sse4.2")))
#endif
#define STEP8(reg, v) _mm_crc32_u64((reg), (v))
#define STEP1(reg, v) _mm_crc32_u8((reg), (v))
static bool crc_has_hardware(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HARDWARE_NAME "armv8"
#include "platform/memory.h"
#define HARDWARE
static inline uint64_t arm_step8(uint64_t reg, uint64_t v) {
  __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(reg) : "r"(v));
  return reg;
}
static inline uint32_t arm_step1(uint32_t reg, unsigned char v) {
  __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(reg) : "r"((uint32_t)v));
  return reg;
}
#define STEP8(reg, v) arm_step8((reg), (v))
#define STEP1(reg, v) arm_step1((reg), (v))
static bool crc_has_hardware(void) { return os_cpu_has(OS_CPU_ARM_CRC32); }
#endif

#ifdef HARDWARE
static inline uint32_t crc_shift(const uint32_t table[4][256], uint32_t reg) {
  return table[0][reg & 255] ^ table[1][reg >> 8 & 255] ^ table[2][reg >> 16 & 255] ^ table[3][reg >> 24];
}

/* Registers are 64 bits wide, as the instruction has them: narrow ones cost a move each. */
HARDWARE static inline uint32_t three_streams(uint64_t a, const unsigned char *p, size_t stream,
                                              const uint32_t table[4][256]) {
  uint64_t b = 0, c = 0;
  const unsigned char *end = p + stream, *q = p + stream, *r = q + stream;
  for (; p < end; p += 16, q += 16, r += 16) {
    a = STEP8(STEP8(a, num_le64(p)), num_le64(p + 8));
    b = STEP8(STEP8(b, num_le64(q)), num_le64(q + 8));
    c = STEP8(STEP8(c, num_le64(r)), num_le64(r + 8));
  }
  return crc_shift(table, crc_shift(table, (uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

HARDWARE static uint32_t crc_hardware(uint32_t crc, const void *data, size_t len) {
  const unsigned char *p = data;
  uint32_t reg = ~crc;
  for (; len >= 3 * CRC_LONG_BYTES; p += 3 * CRC_LONG_BYTES, len -= 3 * CRC_LONG_BYTES) {
    reg = three_streams(reg, p, CRC_LONG_BYTES, shift_long);
  }
  for (; len >= 3 * CRC_SHORT_BYTES; p += 3 * CRC_SHORT_BYTES, len -= 3 * CRC_SHORT_BYTES) {
    reg = three_streams(reg, p, CRC_SHORT_BYTES, shift_short);
  }
  for (; len >= 3 * CRC_TINY_BYTES; p += 3 * CRC_TINY_BYTES, len -= 3 * CRC_TINY_BYTES) {
    reg = three_streams(reg, p, CRC_TINY_BYTES, shift_tiny);
  }
  for (; len >= 8; p += 8, len -= 8) reg = (uint32_t)STEP8(reg, num_le64(p));
  for (; len; p++, len--) reg = STEP1(reg, *p);
  return ~reg;
}
#endif

/* ---- Choice ---- */

typedef uint32_t crc_fn(uint32_t crc, const void *data, size_t len);

static uint32_t crc_choose_and_run(uint32_t crc, const void *data, size_t len);
static crc_fn *_Atomic crc_chosen = crc_choose_and_run;

static crc_fn *crc_choose(void) {
  crc_fn *fn = crc32c_portable;
  pthread_once(&tables_once, make_tables);
#ifdef HARDWARE
  const char *simd = getenv("LODE_SIMD");
  if (crc_has_hardware() && !(simd && strcmp(simd, "portable") == 0)) fn = crc_hardware;
#endif
  atomic_store_explicit(&crc_chosen, fn, memory_order_release);
  return fn;
}

static uint32_t crc_choose_and_run(uint32_t crc, const void *data, size_t len) { return crc_choose()(crc, data, len); }

uint32_t crc32c_update(uint32_t crc, const void *data, size_t len) {
  return atomic_load_explicit(&crc_chosen, memory_order_acquire)(crc, data, len);
}

const char *crc32c_name(void) {
#ifdef HARDWARE
  crc_fn *fn = atomic_load_explicit(&crc_chosen, memory_order_acquire);
  if (fn == crc_choose_and_run) fn = crc_choose();
  if (fn == crc_hardware) return HARDWARE_NAME;
#endif
  return "portable";
}

uint32_t crc32c_update_u32(uint32_t crc, uint32_t v) {
  unsigned char bytes[4];
  num_put_le32(bytes, v);
  return crc32c_update(crc, bytes, sizeof bytes);
}

uint32_t crc32c_update_u64(uint32_t crc, uint64_t v) {
  unsigned char bytes[8];
  num_put_le64(bytes, v);
  return crc32c_update(crc, bytes, sizeof bytes);
}
