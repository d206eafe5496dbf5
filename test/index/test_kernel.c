/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel.c - distances and the k nearest: every implementation that this CPU has gives the bits that kernel.h
 * defines, and those are near the truth. */
#include "kernel/kernel.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/test.h"

enum { LANES = 16, MAX_DIM = LODE_MAX_DIMENSION };
#define QUIET_NAN 0x7fc00000u

static const char *const kernel_names[] = {"portable", "avx2", "avx512", "neon"};
static const size_t n_kernels = sizeof kernel_names / sizeof *kernel_names;
static const size_t large_dims[] = {384, 784, 1536, 65535};

static uint32_t bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static float from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

/* ---- What kernel.h says, word by word ---- */

static float spec(const float *a, const float *b, size_t dim, bool l2) {
  float s[LANES];
  for (size_t j = 0; j < LANES; j++) {
    s[j] = 0;
    for (size_t i = j; i < dim; i += LANES) {
      float x = l2 ? a[i] - b[i] : a[i], y = l2 ? x : b[i];
      float product = x * y;
      s[j] = s[j] + product;
    }
  }
  for (size_t j = 0; j < 8; j++) s[j] = s[j] + s[j + 8];
  for (size_t j = 0; j < 4; j++) s[j] = s[j] + s[j + 4];
  for (size_t j = 0; j < 2; j++) s[j] = s[j] + s[j + 2];
  float sum = s[0] + s[1];
  return isnan(sum) ? from_bits(QUIET_NAN) : sum;
}

static bool is_usual(double norm2) { return norm2 >= 0x1p-80 && norm2 <= 0x1p125; }

static float spec_in_double(lode_metric metric, const float *a, const float *b, size_t dim) {
  double l2 = 0, dot = 0, na = 0, nb = 0;
  for (size_t i = 0; i < dim; i++) {
    double x = a[i], y = b[i];
    l2 += (x - y) * (x - y);
    dot += x * y;
    na += x * x;
    nb += y * y;
  }
  double d = metric == LODE_L2 ? l2 : 1 - dot;
  if (metric == LODE_COSINE) {
    if (na == 0 || nb == 0) return 1;
    double c = dot / sqrt(na * nb);
    return (float)(1 - (c > 1 ? 1 : c < -1 ? -1 : c));
  }
  return d > FLT_MAX ? FLT_MAX : d < -FLT_MAX ? -FLT_MAX : (float)d;
}

static float spec_distance(lode_metric metric, const float *a, const float *b, size_t dim) {
  float sum = spec(a, b, dim, metric == LODE_L2);
  if (metric == LODE_COSINE) {
    double na = spec(a, a, dim, false), nb = spec(b, b, dim, false);
    if (!is_usual(na) || !is_usual(nb)) return spec_in_double(metric, a, b, dim);
    double c = sum / sqrt(na * nb);
    return (float)(1 - (c > 1 ? 1 : c < -1 ? -1 : c));
  }
  if (!isfinite(sum)) return spec_in_double(metric, a, b, dim);
  return metric == LODE_L2 ? sum : 1 - sum;
}

/* ---- Vectors ---- */

typedef enum kind { UNIT, SPREAD, WILD } kind;

static float random_float(kind k) {
  float f = (float)((int64_t)test_below(1u << 25) - (1 << 24)) / (1 << 24);
  if (k == SPREAD) return ldexpf(f, (int)test_below(41) - 20);
  if (k == UNIT) return f;
  do f = from_bits((uint32_t)test_rand());
  while (!isfinite(f));
  return f;
}

static void fill(float *p, size_t n, kind k) {
  for (size_t i = 0; i < n; i++) p[i] = random_float(k);
}

static float *floats(size_t n) {
  float *p = malloc((n ? n : 1) * sizeof *p);
  CHECK(p != NULL);
  return p;
}

/* The kernel in use against the spec. */
static void check_sums(const float *a, const float *b, size_t dim) {
  float dot = kernel_dot(a, b, dim), l2 = kernel_l2sq(a, b, dim);
  CHECKF(bits(dot) == bits(spec(a, b, dim, false)), "%s: dot of dimension %zu: %a, not %a", kernel_name(), dim,
         (double)dot, (double)spec(a, b, dim, false));
  CHECKF(bits(l2) == bits(spec(a, b, dim, true)), "%s: l2sq of dimension %zu: %a, not %a", kernel_name(), dim,
         (double)l2, (double)spec(a, b, dim, true));
}

#define EACH_KERNEL                                                                                                    \
  for (size_t k_ = 0; k_ < n_kernels; k_++)                                                                            \
    if (kernel_use(kernel_names[k_]))

/* ---- Sums ---- */

TEST(sums_have_the_same_bits_on_every_kernel) {
  test_srand(test_seed());
  float *a = floats(MAX_DIM), *b = floats(MAX_DIM);
  for (kind k = UNIT; k <= WILD; k++) {
    fill(a, MAX_DIM, k);
    fill(b, MAX_DIM, k);
    EACH_KERNEL {
      for (size_t dim = 0; dim <= 257; dim++) check_sums(a, b, dim);
      for (size_t i = 0; i < sizeof large_dims / sizeof *large_dims; i++) check_sums(a, b, large_dims[i]);
    }
  }
  free(a);
  free(b);
}

TEST(sums_do_not_depend_on_alignment) {
  test_srand(test_seed());
  static const size_t dims[] = {1, 7, 15, 16, 17, 31, 48, 63, 100, 384};
  float *a = floats(400), *b = floats(400);
  fill(a, 400, SPREAD);
  fill(b, 400, SPREAD);
  EACH_KERNEL {
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
      for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 16; j++) check_sums(a + i, b + j, dims[d]);
  }
  free(a);
  free(b);
}

TEST(sums_are_near_those_in_double) {
  test_srand(test_seed());
  float *a = floats(MAX_DIM), *b = floats(MAX_DIM);
  EACH_KERNEL {
    for (size_t dim = 1; dim <= MAX_DIM; dim = dim * 3 / 2 + 1) {
      fill(a, dim, SPREAD);
      fill(b, dim, SPREAD);
      double dot = 0, size = 0, l2 = 0;
      for (size_t i = 0; i < dim; i++) {
        double p = (double)a[i] * (double)b[i], d = (double)a[i] - (double)b[i];
        dot += p;
        size += fabs(p);
        l2 += d * d;
      }
      double steps = (double)dim / LANES + 8;
      CHECK(fabs((double)kernel_dot(a, b, dim) - dot) <= size * steps * (double)FLT_EPSILON);
      CHECK(fabs((double)kernel_l2sq(a, b, dim) - l2) <= l2 * steps * (double)FLT_EPSILON);
    }
  }
  free(a);
  free(b);
}

TEST(sums_are_the_ones_written_down_here) {
  /* Made by no random source, so that all machines are held to the same bits, not only all kernels of one. */
  enum { N = 1000 };
  static float a[N], b[N];
  uint32_t x = 1;
  for (size_t i = 0; i < N; i++) {
    x = x * 1664525u + 1013904223u;
    a[i] = (float)(int32_t)x / 2147483648.0f;
    x = x * 1664525u + 1013904223u;
    b[i] = (float)(int32_t)x / 2147483648.0f;
  }
  EACH_KERNEL {
    uint32_t hash = 2166136261u;
    for (size_t dim = 1; dim <= N; dim++) {
      hash = (hash ^ bits(kernel_dot(a, b, dim))) * 16777619u;
      hash = (hash ^ bits(kernel_l2sq(a, b, dim))) * 16777619u;
      hash = (hash ^ bits(kernel_distance(LODE_COSINE, a, kernel_dot(a, a, dim), b, dim))) * 16777619u;
    }
    CHECKF(bits(kernel_dot(a, b, N)) == 0xc026aee0u, "%s: dot is 0x%08" PRIx32, kernel_name(),
           bits(kernel_dot(a, b, N)));
    CHECKF(bits(kernel_l2sq(a, b, N)) == 0x44230797u, "%s: l2sq is 0x%08" PRIx32, kernel_name(),
           bits(kernel_l2sq(a, b, N)));
    CHECKF(hash == 0xaf4f0a3du, "%s: the hash of all is 0x%08" PRIx32, kernel_name(), hash);
  }
}

TEST(multiply_and_add_are_not_fused) {
  /* In lane 0: -round(x*x) first, then x*x: rounded on its own it cancels, fused its rounding error is left. */
  const float x = 1 + FLT_EPSILON;
  float a[17] = {0}, b[17] = {0};
  a[0] = -(x * x);
  b[0] = 1;
  a[16] = b[16] = x;
  EACH_KERNEL CHECK(bits(kernel_dot(a, b, 17)) == 0);
}

TEST(zeros_have_no_sign) {
  float minus[70], plus[70];
  for (size_t i = 0; i < 70; i++) {
    minus[i] = -0.0f;
    plus[i] = 0.5f;
  }
  EACH_KERNEL {
    for (size_t dim = 0; dim <= 70; dim++) {
      CHECK(bits(kernel_dot(minus, plus, dim)) == 0);
      CHECK(bits(kernel_dot(minus, minus, dim)) == 0);
      CHECK(bits(kernel_l2sq(plus, plus, dim)) == 0);
      CHECK(bits(kernel_l2sq(minus, minus, dim)) == 0);
    }
  }
}

TEST(tiny_values_are_not_flushed_to_zero) {
  float a[33], b[33];
  for (size_t i = 0; i < 33; i++) {
    a[i] = 1e-25f;
    b[i] = 1e-18f;
  }
  EACH_KERNEL {
    CHECK(kernel_dot(a, b, 33) > 0 && kernel_dot(a, b, 33) < FLT_MIN);
    check_sums(a, b, 33);
  }
}

TEST(sums_overflow_to_infinities_and_one_nan_and_distances_never) {
  float a[20], b[20];
  for (size_t i = 0; i < 20; i++) a[i] = 1e30f;
  EACH_KERNEL {
    for (size_t dim = 1; dim <= 20; dim++) {
      memcpy(b, a, sizeof b);
      CHECK(kernel_dot(a, b, dim) == INFINITY);
      CHECK(kernel_distance(LODE_IP, a, 0, b, dim) == -FLT_MAX);
      CHECK(kernel_distance(LODE_COSINE, a, kernel_dot(a, a, dim), b, dim) == 0);
      b[dim - 1] = -1e30f;
      CHECK(kernel_l2sq(a, b, dim) == INFINITY);
      CHECK(kernel_distance(LODE_L2, a, 0, b, dim) == FLT_MAX);
      float cosine = kernel_distance(LODE_COSINE, a, kernel_dot(a, a, dim), b, dim);
      CHECK(fabsf(cosine - 2 / (float)dim) < 1e-6f);
      if (dim == 1) continue;
      CHECK(bits(kernel_dot(a, b, dim)) == QUIET_NAN); /* infinity - infinity */
      CHECK(isfinite(kernel_distance(LODE_IP, a, 0, b, dim)));
    }
  }
}

TEST(tiny_vectors_have_a_direction) {
  float a[20] = {1e-30f, 1e-30f}, b[20] = {1e-30f}, out;
  EACH_KERNEL {
    CHECK(kernel_dot(a, a, 20) == 0);
    CHECK(kernel_distance(LODE_COSINE, a, 0, a, 20) == 0);
    CHECK(fabsf(kernel_distance(LODE_COSINE, a, 0, b, 20) - (1 - sqrtf(0.5f))) < 1e-6f);
    kernel_distances(LODE_COSINE, a, 0, b, 20, NULL, 1, 20, &out);
    CHECK(bits(out) == bits(kernel_distance(LODE_COSINE, a, 0, b, 20)));
  }
}

/* ---- Memory ---- */

TEST(nothing_outside_the_vectors_is_read) {
  enum { ROWS = 5 };
  size_t page = (size_t)sysconf(_SC_PAGESIZE), room = page / sizeof(float);
  char *map = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  CHECK(mprotect(map + page, page, PROT_READ | PROT_WRITE) == 0);
  float *first = (float *)(void *)(map + page), out[ROWS];
  fill(first, room, UNIT);
  EACH_KERNEL {
    for (size_t dim = 1; dim <= 100; dim++) {
      const float *last = first + room - ROWS * dim;
      kernel_distances(LODE_L2, first, 0, last, dim, NULL, ROWS, dim, out); /* rows end where the page ends */
      CHECK(bits(out[ROWS - 1]) == bits(spec(first, first + room - dim, dim, true)));
      kernel_distances(LODE_COSINE, first + room - dim, 1, first, dim, NULL, ROWS, dim, out); /* so does the query */
      CHECK(bits(kernel_dot(first, first + room - dim, dim)) == bits(spec(first, first + room - dim, dim, false)));
    }
  }
  CHECK(munmap(map, 3 * page) == 0);
}

/* ---- Distances ---- */

TEST(scans_give_the_distances_of_single_rows) {
  enum { MAX_ROWS = 11, DIM = 130, STRIDE = DIM + 21 };
  static const size_t dims[] = {1, 3, 15, 16, 17, 33, 64, 100, 128, 129, DIM};
  test_srand(test_seed());
  float query[DIM], rows[MAX_ROWS * STRIDE], norms[MAX_ROWS], out[MAX_ROWS + 1], unaided[MAX_ROWS];
  fill(query, DIM, SPREAD);
  fill(rows, MAX_ROWS * STRIDE, SPREAD);
  for (size_t i = 0; i < DIM; i++) rows[3 * STRIDE + i] = 0;
  EACH_KERNEL {
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
      size_t dim = dims[d], stride = dim + test_below(STRIDE - dim + 1), n = test_below(MAX_ROWS + 1);
      float norm2 = kernel_dot(query, query, dim);
      for (size_t i = 0; i < n; i++) norms[i] = kernel_dot(rows + i * stride, rows + i * stride, dim);
      for (lode_metric m = LODE_L2; m <= LODE_IP; m++) {
        out[n] = 42;
        kernel_distances(m, query, norm2, rows, stride, norms, n, dim, out);
        kernel_distances(m, query, norm2, rows, stride, NULL, n, dim, unaided);
        CHECK(out[n] == 42);
        for (size_t i = 0; i < n; i++) {
          const float *row = rows + i * stride;
          CHECKF(bits(out[i]) == bits(spec_distance(m, query, row, dim)),
                 "%s: metric %d, dimension %zu, row %zu of %zu", kernel_name(), (int)m, dim, i, n);
          CHECK(bits(unaided[i]) == bits(out[i]));
          CHECK(bits(kernel_distance(m, query, norm2, row, dim)) == bits(out[i]));
        }
      }
    }
  }
}

TEST(many_queries_give_the_distances_of_each) {
  enum { Q = 5, GAP = 3 };
  /* the last two: several tiles, and rows larger than a tile */
  static const struct { size_t n, dim; } sizes[] = {{0, 8}, {1, 1}, {7, 20}, {300, 129}, {9, 40000}};
  test_srand(test_seed());
  for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
    size_t n = sizes[z].n, dim = sizes[z].dim, stride = dim + GAP;
    float *data = floats(n * stride), *asked = floats(Q * stride), *out = floats(Q * (n + GAP)), *one = floats(n);
    fill(data, n * stride, UNIT);
    fill(asked, Q * stride, UNIT);
    kernel_rows rows = {data, NULL, n, dim, stride}, queries = {asked, NULL, Q, dim, stride};
    for (lode_metric m = LODE_L2; m <= LODE_IP; m++) {
      kernel_distances_many(m, &queries, &rows, out, n + GAP);
      for (size_t q = 0; q < Q; q++) {
        const float *query = asked + q * stride;
        kernel_distances(m, query, kernel_dot(query, query, dim), data, stride, NULL, n, dim, one);
        CHECK(n == 0 || memcmp(one, out + q * (n + GAP), n * sizeof *one) == 0);
      }
    }
    free(data);
    free(asked);
    free(out);
    free(one);
  }
}

TEST(many_queries_use_the_norms_given) {
  float data[] = {3, 4, 0, 2}, asked[] = {1, 0}, out[2];
  float norms[] = {100, 4}, asked_norms[] = {1}; /* 100, not 25: to see that it is read */
  kernel_rows rows = {data, norms, 2, 2, 2}, queries = {asked, asked_norms, 1, 2, 2};
  kernel_distances_many(LODE_COSINE, &queries, &rows, out, 2);
  CHECK(out[0] == 0.7f && out[1] == 1);
}

TEST(cosine_knows_equal_opposite_and_zero_vectors) {
  enum { DIM = 100 };
  test_srand(test_seed());
  float a[DIM], b[DIM], zero[DIM] = {0};
  EACH_KERNEL {
    for (int round = 0; round < 1000; round++) {
      fill(a, DIM, SPREAD);
      float norm2 = kernel_dot(a, a, DIM), factor = 0.1f + (float)test_below(1000);
      CHECK(bits(kernel_distance(LODE_COSINE, a, norm2, a, DIM)) == 0);
      for (size_t i = 0; i < DIM; i++) b[i] = -a[i];
      CHECK(kernel_distance(LODE_COSINE, a, norm2, b, DIM) == 2);
      for (size_t i = 0; i < DIM; i++) b[i] = a[i] * factor;
      float d = kernel_distance(LODE_COSINE, a, norm2, b, DIM);
      CHECK(d >= 0 && d < 1e-5f);
      CHECK(kernel_distance(LODE_COSINE, a, norm2, zero, DIM) == 1);
      CHECK(kernel_distance(LODE_COSINE, zero, 0, a, DIM) == 1);
    }
    CHECK(kernel_distance(LODE_COSINE, zero, 0, zero, DIM) == 1);
  }
}

TEST(distances_are_those_users_know) {
  const float a[] = {1, 2, 3}, b[] = {4, 6, 3}, x[] = {1, 0}, y[] = {0, 5};
  CHECK(kernel_distance(LODE_L2, a, 0, b, 3) == 25);
  CHECK(kernel_distance(LODE_IP, a, 0, b, 3) == 1 - 25);
  CHECK(kernel_distance(LODE_COSINE, x, 1, y, 2) == 1);
}

/* ---- The choice ---- */

TEST(the_kernel_can_be_forced) {
  CHECK(unsetenv("LODE_SIMD") == 0);
  CHECK(kernel_use(NULL));
  const char *best = kernel_name();
  EACH_KERNEL {
    CHECK(strcmp(kernel_name(), kernel_names[k_]) == 0);
    CHECK(!kernel_use("abacus")); /* changes nothing */
    CHECK(strcmp(kernel_name(), kernel_names[k_]) == 0);
    CHECK(setenv("LODE_SIMD", kernel_names[k_], 1) == 0);
    CHECK(kernel_use("portable") && kernel_use(NULL));
    CHECK(strcmp(kernel_name(), kernel_names[k_]) == 0);
  }
  CHECK(setenv("LODE_SIMD", "abacus", 1) == 0);
  CHECK(kernel_use(NULL));
  CHECK(strcmp(kernel_name(), best) == 0);
#if defined(__aarch64__)
  CHECK(strcmp(best, "neon") == 0);
#elif defined(__x86_64__)
  CHECK((__builtin_cpu_supports("avx2") != 0) == (strcmp(best, "portable") != 0));
#endif
}

static void *first_use(void *arg) {
  const float a[] = {1, 2, 3, 4};
  float *sum = arg;
  *sum = kernel_dot(a, a, 4);
  return NULL;
}

TEST(threads_may_race_for_the_first_use) {
  pthread_t threads[8];
  float sums[8] = {0};
  for (size_t i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, first_use, &sums[i]) == 0);
  for (size_t i = 0; i < 8; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(sums[i] == 30);
  }
}

/* ---- The k nearest ---- */

static int near_cmp(const void *a, const void *b) {
  const kernel_neighbour *x = a, *y = b;
  if (isnan(x->distance) != isnan(y->distance)) return isnan(x->distance) ? 1 : -1;
  if (x->distance < y->distance) return -1;
  if (x->distance > y->distance) return 1;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->aux > y->aux) - (x->aux < y->aux);
}

static float any_distance(uint64_t variety) {
  static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, FLT_TRUE_MIN};
  uint64_t r = test_below(variety + 8);
  return r < 8 ? special[r] : (float)r;
}

TEST(topk_keeps_what_sorting_would) {
  enum { N = 300 };
  static const size_t ks[] = {0, 1, 2, 3, 7, 8, 50, N - 1, N, N + 1, 2 * N};
  static kernel_neighbour all[N], room[2 * N];
  test_srand(test_seed());
  for (int round = 0; round < 300; round++) {
    size_t n = test_below(N + 1), k = ks[test_below(sizeof ks / sizeof *ks)];
    uint64_t variety = round % 3 == 0 ? 5 : 100000; /* few: many duplicates */
    bool ask_first = round % 2 == 0;
    kernel_topk top = {.heap = room, .k = k};
    for (size_t i = 0; i < n; i++) {
      all[i] = (kernel_neighbour){any_distance(variety), (int64_t)test_below(variety) - 2, (int64_t)test_below(3)};
      if (!ask_first || kernel_topk_wants(&top, all[i].distance))
        kernel_topk_push(&top, all[i].distance, all[i].key, all[i].aux);
    }
    kernel_topk_sort(&top);
    qsort(all, n, sizeof *all, near_cmp);
    CHECK(top.n == (n < k ? n : k));
    for (size_t i = 0; i < top.n; i++) CHECKF(near_cmp(&top.heap[i], &all[i]) == 0, "n %zu, k %zu: place %zu", n, k, i);
  }
}

TEST(topk_breaks_ties_by_key) {
  kernel_neighbour room[2];
  kernel_topk top = {.heap = room, .k = 2};
  static const int64_t keys[] = {5, 9, INT64_MAX, 3, INT64_MIN, 4};
  for (size_t i = 0; i < 6; i++) kernel_topk_push(&top, i % 2 ? 0.0f : -0.0f, keys[i], keys[i]);
  kernel_topk_sort(&top);
  CHECK(top.n == 2 && room[0].key == INT64_MIN && room[0].aux == INT64_MIN && room[1].key == 3);
}

TEST(topk_bound_never_turns_away_a_winner) {
  kernel_neighbour room[2];
  kernel_topk top = {.heap = room, .k = 2}, none = {.heap = NULL, .k = 0};
  CHECK(kernel_topk_bound(&none) == -INFINITY && !kernel_topk_wants(&none, -INFINITY) &&
        !kernel_topk_wants(&none, NAN));
  kernel_topk_push(&none, 1, 1, 1);
  kernel_topk_sort(&none);
  CHECK(none.n == 0);

  CHECK(kernel_topk_bound(&top) == INFINITY && kernel_topk_wants(&top, NAN));
  kernel_topk_push(&top, NAN, 8, 0);
  kernel_topk_push(&top, 1, 1, 0);
  CHECK(kernel_topk_bound(&top) == INFINITY && kernel_topk_wants(&top, INFINITY)); /* infinity beats NaN */
  CHECK(kernel_topk_wants(&top, NAN)); /* one with a smaller key would win */
  kernel_topk_push(&top, NAN, 7, 0);
  kernel_topk_push(&top, INFINITY, 9, 0);
  CHECK(kernel_topk_bound(&top) == INFINITY && kernel_topk_wants(&top, INFINITY));
  kernel_topk_push(&top, 3, 2, 0);
  CHECK(kernel_topk_bound(&top) == 3 && kernel_topk_wants(&top, 3) && !kernel_topk_wants(&top, nextafterf(3, 4)));
  kernel_topk_push(&top, NAN, 0, 0); /* changes nothing now */
  kernel_topk_sort(&top);
  CHECK(room[0].distance == 1 && room[1].distance == 3 && room[1].key == 2);
}
