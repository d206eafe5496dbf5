/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm.c - every kernel of the encoder's arithmetic that this CPU runs, against the same sums in doubles: all tile
 * sizes, odd depths, matrices taken in parts. */
#include "gemm/gemm.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "support/test.h"

static float unit(void) { return (float)test_below(20001) / 10000 - 1; }

static float *floats(size_t n) {
  float *v = aligned_alloc(64, gemm_pad(n * sizeof *v, 64));
  CHECK(v);
  for (size_t i = 0; i < n; i++) v[i] = unit();
  return v;
}

typedef struct matrix {
  float *plain; /* n x k */
  gemm_weights w;
} matrix;

static matrix make_matrix(const gemm_arithmetic *how, size_t n, size_t k) {
  size_t padded = gemm_pad(n, GEMM_PANEL), bytes = gemm_panel_bytes(how, k);
  matrix m = {.plain = floats(n * k), .w = {.k = k, .n = n, .bias = floats(padded), .scales = floats(padded)}};
  m.w.panels = floats(gemm_panels(n) * bytes / sizeof(float));
  float *spare = floats(k * GEMM_PANEL);
  for (size_t o = 0; o < padded; o++) m.w.scales[o] = o < n ? gemm_weight_scale(m.plain + o * k, k) : 1;
  for (size_t o = 0; o < n; o += GEMM_PANEL) {
    gemm_pack_panel(m.plain + o * k, k, n - o < GEMM_PANEL ? n - o : GEMM_PANEL, k, spare);
    gemm_weights_put(how, &m.w, o / GEMM_PANEL, spare);
  }
  free(spare);
  return m;
}

static void free_matrix(matrix *m) {
  free(m->plain);
  free(m->w.bias);
  free(m->w.scales);
  free(m->w.panels);
}

/* Rows of c from column `out` to `end` are what they should be. */
static void compare(const char *what, const matrix *m, const float *a, size_t rows, size_t out, size_t end,
                    const float *c, size_t ldc, double slack) {
  for (size_t r = 0; r < rows; r++) {
    for (size_t o = out; o < end; o++) {
      double sum = m->w.bias[o], size = fabs(sum);
      for (size_t i = 0; i < m->w.k; i++) {
        sum += (double)a[r * m->w.k + i] * m->plain[o * m->w.k + i];
        size += fabs((double)a[r * m->w.k + i] * m->plain[o * m->w.k + i]);
      }
      double got = c[r * ldc + o - out];
      CHECKF(fabs(got - sum) <= slack * (size + 1), "%s, %zu x %zu x %zu, row %zu, output %zu: %g, not %g", what, rows,
             m->w.k, m->w.n, r, o, got, sum);
    }
  }
}

static void one_product(const char *what, const gemm_arithmetic *how, double slack, size_t rows, size_t k, size_t n) {
  matrix m = make_matrix(how, n, k);
  size_t ldc = gemm_pad(n, GEMM_PANEL);
  float *a = floats(rows * k), *c = floats(rows * ldc), *parts = floats(rows * ldc);
  float *scratch = floats(gemm_rows_scratch(how, rows, k < how->depth ? k : how->depth) / sizeof(float));
  gemm_part all = gemm_part_all(&m.w);
  gemm_multiply(how, &all, a, k, rows, c, ldc, scratch);
  compare(what, &m, a, rows, 0, n, c, ldc, slack);
  for (size_t i = 0; i < k; i += GEMM_STEP) { /* inputs in steps, as the inner layer of the encoder takes them */
    gemm_part part = {&m.w, i, k - i < GEMM_STEP ? k : i + GEMM_STEP, 0, n};
    gemm_multiply(how, &part, a + i, k, rows, parts, ldc, scratch);
  }
  for (size_t r = 0; r < rows; r++)
    CHECKF(memcmp(c + r * ldc, parts + r * ldc, n * sizeof(float)) == 0, "%s: parts make another sum", what);
  if (n > GEMM_PANEL) { /* the last outputs alone */
    gemm_part part = {&m.w, 0, k, GEMM_PANEL, n};
    gemm_multiply(how, &part, a, k, rows, parts, ldc, scratch);
    compare(what, &m, a, rows, GEMM_PANEL, n, parts, ldc, slack);
  }
  for (size_t r = 0; r < rows; r++) { /* a row alone gives the same bits */
    gemm_multiply(how, &all, a + r * k, k, 1, parts, ldc, scratch);
    CHECKF(memcmp(c + r * ldc, parts, n * sizeof(float)) == 0, "%s: row %zu of %zu has another sum alone", what, r,
           rows);
  }
  free_matrix(&m);
  free(a), free(c), free(parts), free(scratch);
}

/* Both arithmetics of a kernel. */
static void one_size(const gemm_kernel *kernel, size_t rows, size_t k, size_t n) {
  char what[64];
  double full = kernel->full.rows ? 1e-5 : 2e-6, narrow = kernel->narrow.scaled ? 4e-4 : 8e-3; /* bfloat16 is coarser */
  snprintf(what, sizeof what, "%s full", kernel->name);
  one_product(what, &kernel->full, full, rows, k, n);
  snprintf(what, sizeof what, "%s narrow", kernel->name);
  one_product(what, &kernel->narrow, narrow, rows, k, n);
}

static void products_of_any_size(const gemm_kernel *kernel) {
  for (size_t rows = 1; rows <= 26; rows++) one_size(kernel, rows, 1 + test_below(70), 1 + test_below(50));
  static const size_t depths[] = {1, 2, 191, 192, 193, 383, 384, 385, 768, 1537};
  for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
    one_size(kernel, 1 + test_below(70), depths[i], 1 + test_below(40));
}

/* Outputs as rows make the panel that their columns make, byte for byte. */
static void panels_of_rows(const gemm_kernel *kernel) {
  const gemm_arithmetic *both[] = {&kernel->full, &kernel->narrow};
  for (int b = 0; b < 2; b++) {
    const gemm_arithmetic *how = both[b];
    for (size_t k = 1; how->panel_of_rows && k <= 100; k += 1 + test_below(7)) {
      size_t outputs = 1 + test_below(GEMM_PANEL), ldx = k + test_below(20), bytes = gemm_panel_bytes(how, k);
      float *x = floats(GEMM_PANEL * ldx), *columns = floats(k * GEMM_PANEL), *one = floats(bytes / sizeof(float)),
            *other = floats(bytes / sizeof(float));
      gemm_pack_panel(x, ldx, outputs, k, columns);
      how->panel(columns, GEMM_PANEL, k, NULL, one);
      how->panel_of_rows(x, ldx, outputs, k, other);
      CHECKF(memcmp(one, other, bytes) == 0, "%s: panel of %zu outputs, %zu inputs", kernel->name, outputs, k);
      free(x), free(columns), free(one), free(other);
    }
  }
}

/* gelu within `error` times its argument, softmax within `error`, in rows of every length. */
static void as_fine_as_products(const char *name, const gemm_arithmetic *how, double error) {
  enum { N = 160, ROWS = 3 };
  float x[N], y[N], rows[ROWS * N], factors[ROWS];
  for (int i = 0; i < N; i++) y[i] = x[i] = 12 * unit();
  how->gelu(y, N);
  for (int i = 0; i < N; i++) {
    double want = x[i] * 0.5 * (1 + erf(x[i] / sqrt(2)));
    CHECKF(fabs(y[i] - want) < error * (1 + fabs((double)x[i])), "%s: gelu(%g) is %g, not %g", name, (double)x[i],
           (double)y[i], want);
  }
  for (size_t n = 1; n <= N; n += 1 + test_below(9)) {
    size_t padded = gemm_pad(n, GEMM_PANEL);
    for (size_t r = 0; r < ROWS; r++)
      for (size_t i = 0; i < padded; i++) rows[r * padded + i] = (float)(r + 1) * x[i];
    how->softmax(rows, ROWS, n, padded, 0.25f, factors);
    for (size_t r = 0; r < ROWS; r++) {
      double sum = 0, top = -1e9, by = 0.25 * (double)(r + 1);
      for (size_t i = 0; i < n; i++) top = x[i] > top ? (double)x[i] : top;
      for (size_t i = 0; i < n; i++) sum += exp((x[i] - top) * by);
      for (size_t i = 0; i < padded; i++) {
        double want = i < n ? exp((x[i] - top) * by) / sum : 0, is = rows[r * padded + i] * factors[r];
        CHECKF(fabs(is - want) < error, "%s: softmax of %zu, number %zu: %g, not %g", name, n, i, is, want);
      }
    }
  }
}

/* Weights may be anything: where scores are huge, the greatest takes all. */
static void softmax_of_huge_scores(const char *name, const gemm_arithmetic *how) {
  enum { N = 48 };
  for (float size = 1e6f; size < 1e37f; size *= 10) {
    float x[N], factor;
    size_t top = test_below(N - 5);
    for (size_t i = 0; i < N - 5; i++) x[i] = size * (i == top ? 1.5f + unit() / 4 : unit());
    how->softmax(x, 1, N - 5, N, 0.125f, &factor);
    for (size_t i = 0; i < N; i++) {
      double want = i == top, is = x[i] * factor;
      CHECKF(fabs(is - want) < 1e-3, "%s: softmax of numbers to %g, number %zu: %g, not %g", name, (double)size, i, is,
             want);
    }
  }
}

static void what_stands_between_products(const gemm_kernel *kernel) {
  enum { N = 160 };
  float x[N], y[N], gain[N], shift[N];
  as_fine_as_products(kernel->name, &kernel->full, 1e-6);
  as_fine_as_products(kernel->name, &kernel->narrow, 1e-4);
  softmax_of_huge_scores(kernel->name, &kernel->full);
  softmax_of_huge_scores(kernel->name, &kernel->narrow);
  for (int i = 0; i < N; i++) x[i] = 12 * unit();
  for (size_t n = 1; n <= N; n += 1 + test_below(9)) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; i++) gain[i] = unit(), shift[i] = unit();
    memcpy(y, x, sizeof y);
    kernel->norm(y, NULL, gain, shift, n, 1e-12f);
    for (size_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (size_t i = 0; i < n && n > 1; i++) {
      double want = (x[i] - mean) / sqrt(var + 1e-12) * gain[i] + shift[i];
      CHECKF(fabs(y[i] - want) < 1e-4, "%s: norm of %zu, number %zu: %g, not %g", kernel->name, n, i, (double)y[i],
             want);
    }
  }
}

static const gemm_kernel *named(const char *name) {
  const gemm_kernel *kernel;
  for (size_t i = 0; (kernel = gemm_kernel_at(i)) != NULL; i++)
    if (strcmp(kernel->name, name) == 0 && kernel->supported()) return kernel;
  test_skip("this CPU, or its system, has no such instructions");
  return NULL;
}

#define KERNEL_TEST(id, name)                                                                                          \
  TEST(id) {                                                                                                           \
    const gemm_kernel *kernel = named(name);                                                                           \
    test_srand(test_seed());                                                                                           \
    products_of_any_size(kernel);                                                                                      \
    panels_of_rows(kernel);                                                                                            \
    what_stands_between_products(kernel);                                                                              \
  }
KERNEL_TEST(kernel_portable, "portable")
KERNEL_TEST(kernel_avx2, "avx2")
KERNEL_TEST(kernel_avx512_vnni, "avx512-vnni")
KERNEL_TEST(kernel_amx_bf16, "amx-bf16")

/* As in a container whose filter of system calls does not know tiles: the next best kernel is taken, and nobody is
 * killed. */
TEST(a_system_that_refuses_tiles) {
#if defined(__x86_64__)
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    test_skip("this system has no filters of system calls");
  CHECK(!gemm_amx.supported());
  const gemm_kernel *kernel = gemm_kernel_get();
  CHECK(kernel && kernel != &gemm_amx);
  test_srand(test_seed());
  one_size(kernel, 20, 100, 40);
#else
  test_skip("tiles are of x86-64");
#endif
}
