/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_x86.h - the loops of the kernels for x86-64, written once and compiled for each instruction set.
 *
 * The including file defines KERNEL_TARGET (function attributes), KERNEL_INLINE, the type `kernel_lanes` of 16 floats
 * and its operations: lanes_zero() is zeros, lanes_load() 16 floats, lanes_load_tail() the first n < 16 of them and
 * then zeros, lanes_add_terms() adds products or squares of differences to a sum, lanes_fold() adds 16 lanes to 8 to 4.
 *
 * A scan processes one row after the other, so that memory is read sequentially; four rows at a time would be faster
 * within the cache, but at 384 dimensions are slower by a quarter in memory, where hardware prefetchers lose the
 * interleaved streams.
 */

/* scanning: the memory after the row will be needed next. */
KERNEL_INLINE float lanes_sum_terms(const float *a, const float *b, size_t dim, bool l2, bool scanning) {
  kernel_lanes sum = lanes_zero();
  size_t i = 0;
  for (; dim - i >= KERNEL_LANES; i += KERNEL_LANES) {
    if (scanning) _mm_prefetch((const char *)((uintptr_t)(b + i) + KERNEL_PREFETCH_BYTES), _MM_HINT_T0);
    sum = lanes_add_terms(sum, lanes_load(a + i), lanes_load(b + i), l2);
  }
  if (i < dim) sum = lanes_add_terms(sum, lanes_load_tail(a + i, dim - i), lanes_load_tail(b + i, dim - i), l2);
  __m128 s = lanes_fold(sum);
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

KERNEL_TARGET static float kernel_x86_dot(const float *a, const float *b, size_t dim) {
  return lanes_sum_terms(a, b, dim, false, false);
}

KERNEL_TARGET static float kernel_x86_l2sq(const float *a, const float *b, size_t dim) {
  return lanes_sum_terms(a, b, dim, true, false);
}

KERNEL_TARGET static void kernel_x86_dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim,
                                          float *out) {
  for (size_t i = 0; i < n; i++) out[i] = lanes_sum_terms(query, rows + i * stride, dim, false, true);
}

KERNEL_TARGET static void kernel_x86_l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim,
                                           float *out) {
  for (size_t i = 0; i < n; i++) out[i] = lanes_sum_terms(query, rows + i * stride, dim, true, true);
}
