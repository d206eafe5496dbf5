/* test_gemm.c - every kernel of the encoder's arithmetic that this CPU runs, against the same sums in doubles: all tile sizes, odd depths,
 * matrices taken in parts. */
#include "embed/gemm.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

static float unit(void) { return (float)test_below(20001) / 10000 - 1; }

static float *floats(size_t n) {
  float *v = aligned_alloc(64, lode__pad(n * sizeof *v, 64));
  CHECK(v);
  for (size_t i = 0; i < n; i++) v[i] = unit();
  return v;
}

typedef struct matrix {
  float *plain; /* n x k */
  lode__weights w;
} matrix;

static matrix make_matrix(const lode__gemm_kernel *kernel, size_t n, size_t k) {
  size_t padded = lode__pad(n, LODE__PANEL), k2 = lode__pad(k, 2);
  matrix m = {.plain = floats(n * k), .w = {.k = k, .n = n, .bias = floats(padded), .scales = floats(padded), .full = floats(padded * k)}};
  m.w.narrow = (int16_t *)(void *)floats(padded * k2 / 2 + 1);
  for (size_t o = 0; o < padded; o++) m.w.scales[o] = o < n ? lode__weight_scale(m.plain + o * k, k) : 1;
  lode__weights_pack(m.plain, n, k, m.w.full);
  for (size_t p = 0; p < lode__panels(n); p++)
    kernel->narrow(m.w.full + p * k * LODE__PANEL, k, m.w.scales + p * LODE__PANEL, m.w.narrow + p * k2 * LODE__PANEL);
  return m;
}

static void free_matrix(matrix *m) {
  free(m->plain);
  free(m->w.bias);
  free(m->w.scales);
  free(m->w.full);
  free(m->w.narrow);
}

/* Rows of c from column `out` to `end` are what they should be. */
static void compare(const char *what, const matrix *m, const float *a, size_t rows, size_t out, size_t end, const float *c, size_t ldc, double slack) {
  for (size_t r = 0; r < rows; r++) {
    for (size_t o = out; o < end; o++) {
      double sum = m->w.bias[o], size = fabs(sum);
      for (size_t i = 0; i < m->w.k; i++) {
        sum += (double)a[r * m->w.k + i] * m->plain[o * m->w.k + i];
        size += fabs((double)a[r * m->w.k + i] * m->plain[o * m->w.k + i]);
      }
      double got = c[r * ldc + o - out];
      CHECKF(fabs(got - sum) <= slack * (size + 1), "%s, %zu x %zu x %zu, row %zu, output %zu: %g, not %g", what, rows, m->w.k, m->w.n, r, o, got, sum);
    }
  }
}

static void one_product(const lode__gemm_kernel *kernel, size_t rows, size_t k, size_t n) {
  char what[64];
  matrix m = make_matrix(kernel, n, k);
  size_t ldc = lode__pad(n, LODE__PANEL);
  float *a = floats(rows * k), *c = floats(rows * ldc), *parts = floats(rows * ldc), *scratch = floats(lode__gemm16_scratch(rows, k) / sizeof(float) + 16);
  for (int narrow = 0; narrow < 2; narrow++) {
    double slack = narrow ? 4e-4 : 2e-6;
    lode__part all = lode__part_all(&m.w);
    snprintf(what, sizeof what, "%s %s", kernel->name, narrow ? "integers" : "floats");
    if (narrow) lode__gemm16(kernel, &all, a, k, rows, c, ldc, scratch);
    else lode__gemm(kernel, &all, a, k, rows, c, ldc);
    compare(what, &m, a, rows, 0, n, c, ldc, slack);
    for (size_t i = 0; i < k; i += 2 * LODE__DEPTH) { /* inputs in steps, as the inner layer of the encoder takes them */
      lode__part part = {&m.w, i, k - i < 2 * LODE__DEPTH ? k : i + 2 * LODE__DEPTH, 0, n};
      if (narrow) lode__gemm16(kernel, &part, a + i, k, rows, parts, ldc, scratch);
      else lode__gemm(kernel, &part, a + i, k, rows, parts, ldc);
    }
    for (size_t r = 0; r < rows; r++) CHECKF(memcmp(c + r * ldc, parts + r * ldc, n * sizeof(float)) == 0, "%s: parts make another sum", what);
    if (n > LODE__PANEL) { /* the last outputs alone */
      lode__part part = {&m.w, 0, k, LODE__PANEL, n};
      if (narrow) lode__gemm16(kernel, &part, a, k, rows, parts, ldc, scratch);
      else lode__gemm(kernel, &part, a, k, rows, parts, ldc);
      compare(what, &m, a, rows, LODE__PANEL, n, parts, ldc, slack);
    }
    for (size_t r = 0; r < rows; r++) { /* a row alone gives the same bits */
      if (narrow) lode__gemm16(kernel, &all, a + r * k, k, 1, parts, ldc, scratch);
      else lode__gemm(kernel, &all, a + r * k, k, 1, parts, ldc);
      CHECKF(memcmp(c + r * ldc, parts, n * sizeof(float)) == 0, "%s: row %zu of %zu has another sum alone", what, r, rows);
    }
  }
  free_matrix(&m);
  free(a), free(c), free(parts), free(scratch);
}

static const lode__gemm_kernel *next_kernel(size_t *i) {
  const lode__gemm_kernel *kernel;
  while ((kernel = lode__gemm_kernel_at((*i)++)) != NULL)
    if (kernel->supported()) return kernel;
  return NULL;
}

TEST(products_of_any_size) {
  const lode__gemm_kernel *kernel;
  test_srand(test_seed());
  for (size_t at = 0; (kernel = next_kernel(&at)) != NULL;) {
    for (size_t rows = 1; rows <= 26; rows++) one_product(kernel, rows, 1 + test_below(70), 1 + test_below(50));
    static const size_t depths[] = {1, 2, 191, 192, 193, 383, 384, 385, 768, 1537};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) one_product(kernel, 1 + test_below(14), depths[i], 1 + test_below(40));
  }
}

TEST(what_stands_between_products) {
  enum { N = 160 };
  const lode__gemm_kernel *kernel;
  test_srand(test_seed());
  for (size_t at = 0; (kernel = next_kernel(&at)) != NULL;) {
    float x[N], y[N], gain[N], shift[N];
    for (int i = 0; i < N; i++) y[i] = x[i] = 12 * unit();
    kernel->gelu(y, N);
    for (int i = 0; i < N; i++) {
      double want = x[i] * 0.5 * (1 + erf(x[i] / sqrt(2)));
      CHECKF(fabs(y[i] - want) < 1e-5, "%s: gelu(%g) is %g, not %g", kernel->name, (double)x[i], (double)y[i], want);
    }
    for (size_t n = 1; n <= N; n += 1 + test_below(9)) {
      double sum = 0, top = -1e9, mean = 0, var = 0;
      for (size_t i = 0; i < n; i++) top = x[i] > top ? (double)x[i] : top;
      for (size_t i = 0; i < n; i++) sum += exp((x[i] - top) * 0.25);
      memcpy(y, x, sizeof y);
      size_t padded = lode__pad(n, LODE__PANEL);
      kernel->softmax(y, n, padded, 0.25f);
      for (size_t i = 0; i < padded; i++) {
        double want = i < n ? exp((x[i] - top) * 0.25) / sum : 0;
        CHECKF(fabs(y[i] - want) < 1e-6, "%s: softmax of %zu, number %zu: %g, not %g", kernel->name, n, i, (double)y[i], want);
      }
      for (size_t i = 0; i < n; i++) gain[i] = unit(), shift[i] = unit();
      memcpy(y, x, sizeof y);
      kernel->norm(y, NULL, gain, shift, n, 1e-12f);
      for (size_t i = 0; i < n; i++) mean += x[i] / (double)n;
      for (size_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
      for (size_t i = 0; i < n && n > 1; i++) {
        double want = (x[i] - mean) / sqrt(var + 1e-12) * gain[i] + shift[i];
        CHECKF(fabs(y[i] - want) < 1e-4, "%s: norm of %zu, number %zu: %g, not %g", kernel->name, n, i, (double)y[i], want);
      }
    }
  }
}
