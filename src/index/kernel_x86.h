/* kernel_x86.h - the loops of the kernels for x86-64, written once and compiled for each instruction set.
 *
 * The including file defines TARGET (function attributes), TARGET_INLINE, the type `lanes` of 16 floats and what is done with them:
 * none() is zeros, load() 16 floats, load_tail() the first n < 16 of them and then zeros, add_terms() products or squares of differences
 * added to a sum, fold() 16 lanes to 8 to 4.
 *
 * A scan takes row after row, so that it reads memory straight ahead as plain reading does; four rows at a time would be faster within
 * the cache, but at 384 dimensions are slower by a quarter in memory, where hardware prefetchers lose the interleaved streams.
 */

/* scanning: memory behind the row will be wanted next. */
TARGET_INLINE float one(const float *a, const float *b, size_t dim, bool l2, bool scanning) {
  lanes sum = none();
  size_t i = 0;
  for (; dim - i >= LODE__LANES; i += LODE__LANES) {
    if (scanning) _mm_prefetch((const char *)((uintptr_t)(b + i) + LODE__AHEAD_BYTES), _MM_HINT_T0);
    sum = add_terms(sum, load(a + i), load(b + i), l2);
  }
  if (i < dim) sum = add_terms(sum, load_tail(a + i, dim - i), load_tail(b + i, dim - i), l2);
  __m128 s = fold(sum);
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

TARGET static float dot(const float *a, const float *b, size_t dim) { return one(a, b, dim, false, false); }

TARGET static float l2sq(const float *a, const float *b, size_t dim) { return one(a, b, dim, true, false); }

TARGET static void dots(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, false, true);
}

TARGET static void l2sqs(const float *query, const float *rows, size_t stride, size_t n, size_t dim, float *out) {
  for (size_t i = 0; i < n; i++) out[i] = one(query, rows + i * stride, dim, true, true);
}
