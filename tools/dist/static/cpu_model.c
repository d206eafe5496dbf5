/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_model.c - what __builtin_cpu_supports() reads, for compilers whose runtime does not bring it: the features that
 * Lode asks for, as bits at the places that gcc and clang agree on. A feature counts where the operating system saves
 * its registers. */
#if defined __x86_64__
#include <cpuid.h>

struct cpu_model {
  unsigned vendor, type, subtype, features[1];
} __cpu_model __attribute__((visibility("hidden")));
unsigned __cpu_features2[4] __attribute__((visibility("hidden")));
int __cpu_indicator_init(void) __attribute__((visibility("hidden"), constructor(101)));

enum {
  CPU_POPCNT = 2,
  CPU_SSE = 3,
  CPU_SSE2 = 4,
  CPU_SSE3 = 5,
  CPU_SSSE3 = 6,
  CPU_SSE4_1 = 7,
  CPU_SSE4_2 = 8,
  CPU_AVX = 9,
  CPU_AVX2 = 10,
  CPU_FMA = 14,
  CPU_AVX512F = 15,
  CPU_BMI = 16,
  CPU_BMI2 = 17,
  CPU_AES = 18,
  CPU_AVX512VL = 20,
  CPU_AVX512BW = 21,
  CPU_AVX512DQ = 22,
  CPU_AVX512CD = 23,
  CPU_AVX512VNNI = 34,
};

static void have(int feature, unsigned bit) {
  if (!bit) return;
  if (feature < 32)
    __cpu_model.features[0] |= 1u << feature;
  else
    __cpu_features2[0] |= 1u << (feature - 32);
}

static unsigned saved_registers(void) {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

int __cpu_indicator_init(void) {
  unsigned a, b, c, d, saved = 0;
  if (__cpu_model.vendor || !__get_cpuid(1, &a, &b, &c, &d)) return 0;
  __cpu_model.vendor = 1; /* known, whichever it is: nobody asks */
  if (c >> 27 & 1) saved = saved_registers();
  int ymm = (saved & 6) == 6, zmm = (saved & 0xe6) == 0xe6;
  have(CPU_SSE, d >> 25 & 1);
  have(CPU_SSE2, d >> 26 & 1);
  have(CPU_SSE3, c & 1);
  have(CPU_SSSE3, c >> 9 & 1);
  have(CPU_FMA, ymm && (c >> 12 & 1));
  have(CPU_SSE4_1, c >> 19 & 1);
  have(CPU_SSE4_2, c >> 20 & 1);
  have(CPU_POPCNT, c >> 23 & 1);
  have(CPU_AES, c >> 25 & 1);
  have(CPU_AVX, ymm && (c >> 28 & 1));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  have(CPU_BMI, b >> 3 & 1);
  have(CPU_AVX2, ymm && (b >> 5 & 1));
  have(CPU_BMI2, b >> 8 & 1);
  have(CPU_AVX512F, zmm && (b >> 16 & 1));
  have(CPU_AVX512DQ, zmm && (b >> 17 & 1));
  have(CPU_AVX512CD, zmm && (b >> 28 & 1));
  have(CPU_AVX512BW, zmm && (b >> 30 & 1));
  have(CPU_AVX512VL, zmm && (b >> 31 & 1));
  have(CPU_AVX512VNNI, zmm && (c >> 11 & 1));
  return 0;
}
#endif
