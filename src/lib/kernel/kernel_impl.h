/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_impl.h - what an implementation of the kernels provides; only for the kernel*.c files.
 *
 * kernel.h defines the sums. The functions here may return any NaN where those give one: kernel.c makes them equal.
 */
#ifndef LODE_KERNEL_KERNEL_IMPL_H
#define LODE_KERNEL_KERNEL_IMPL_H

#include "base/base.h"

enum {
  KERNEL_LANES = 16,
  KERNEL_PREFETCH_BYTES = 768, /* prefetch distance of a scan: the best of those tried with bench_scan */
};

typedef struct kernel_ops {
  const char *name;
  bool (*supported)(void); /* by the CPU and the operating system */
  float (*dot)(const float *a, const float *b, size_t dim);
  float (*l2sq)(const float *a, const float *b, size_t dim);
  /* The same between one query and n rows, to out[0 .. n). */
  void (*dots)(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out);
  void (*l2sqs)(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out);
} kernel_ops;

extern const kernel_ops kernel_portable;
#if defined(__x86_64__)
extern const kernel_ops kernel_avx2, kernel_avx512;
#endif
#if defined(__aarch64__)
extern const kernel_ops kernel_neon;
#endif

#endif
