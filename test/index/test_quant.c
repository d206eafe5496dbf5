/* SPDX-License-Identifier: Apache-2.0 */
/* test_quant.c - codes: every integer kernel gives the exact sum, codes have the same bytes everywhere, keys order rows
 * as their distances do, and odd vectors (zero, huge, tiny, one dimension) are well-behaved. */
#include "kernel/quant_bounds.h"

#include <float.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "kernel/quant_impl.h"
#include "kernel/kernel.h"
#include "support/test.h"

static const char *const kernel_names[] = {"portable", "avx2", "avx512", "neon", "neon-dot"};
static const char *const metric_names[] = {"l2", "cosine", "ip"};
static const size_t n_kernels = sizeof kernel_names / sizeof *kernel_names;

#define EACH_KERNEL                                                                                                    \
  for (size_t k_ = 0; k_ < n_kernels; k_++)                                                                            \
    if (quant_use(kernel_names[k_]))

enum { MAX_DIM = LODE_MAX_DIMENSION, N_ROWS = 11 };

static void *room(size_t bytes) {
  void *p = mem_alloc_aligned(64, bytes);
  CHECK(p != NULL);
  return p;
}

static size_t row_bytes(size_t dim) { return dim < QUANT_MIN_ROW_BYTES ? QUANT_MIN_ROW_BYTES : dim; }

/* Bit by bit, as the format says it: first 0 is the scale, 32 the bias, 64 the slot. */
static void put_bits(unsigned char *row, size_t first, const void *value) {
  uint32_t bits;
  memcpy(&bits, value, sizeof bits);
  for (size_t i = 0; i < 32; i++) {
    row[first + i] &= 127;
    if (bits >> i & 1) row[first + i] |= 128;
  }
}

static int64_t spec_dot(const int8_t *query, const unsigned char *row, size_t dim) {
  int64_t sum = 0;
  for (size_t j = 0; j < dim; j++) sum += (int64_t)query[j] * ((int)(row[j] & 127) - 64);
  return sum;
}

typedef enum fill { RANDOM, HIGHEST, LOWEST, MIXED } fill;

static void check_keys(size_t dim, fill how) {
  size_t stride = row_bytes(dim), room_bytes = quant_query_bytes((uint32_t)dim);
  int8_t *codes = room(room_bytes);
  unsigned char *rows = room(N_ROWS * stride);
  const unsigned char *at[N_ROWS];
  int32_t sum = 0;
  float got[N_ROWS], scales[N_ROWS], biases[N_ROWS];
  memset(codes, 0, room_bytes);
  for (size_t j = 0; j < dim; j++) {
    int c = how == RANDOM    ? (int)test_below(255) - 127
            : how == HIGHEST ? 127
            : how == LOWEST  ? -127
            : j % 2          ? 127
                             : -127;
    codes[j] = (int8_t)c;
    sum += c;
  }
  for (size_t i = 0; i < N_ROWS; i++) {
    at[i] = rows + i * stride;
    scales[i] = (float)(1 + test_below(1000)) / 1000;
    biases[i] = (float)test_below(1000);
    uint32_t slot = (uint32_t)test_below(UINT32_MAX);
    memset(rows + i * stride, 0, stride);
    for (size_t j = 0; j < dim; j++) rows[i * stride + j] = how == RANDOM ? (unsigned char)test_below(128) : 127;
    put_bits(rows + i * stride, 0, &scales[i]);
    put_bits(rows + i * stride, 32, &biases[i]);
    put_bits(rows + i * stride, 64, &slot);
    CHECK(quant_row_scale(at[i]) == scales[i] && quant_row_bias(at[i]) == biases[i] && quant_row_slot(at[i]) == slot);
  }
  EACH_KERNEL {
    for (size_t n = 0; n <= N_ROWS; n += n < 9 ? 1 : 2) {
      quant_query query = {.code = codes, .dim = (uint32_t)dim, .offset = 64 * sum, .scale = 0.3f};
      quant_keys(&query, at, n, got);
      for (size_t i = 0; i < n; i++) {
        int64_t dot = spec_dot(codes, at[i], dim);
        float by = query.scale * scales[i], part = by * (float)dot, want = biases[i] - part;
        CHECKF(memcmp(&got[i], &want, sizeof want) == 0, "%s: dimension %zu, row %zu of %zu: %.9g, not %.9g",
               quant_name(), dim, i, n, (double)got[i], (double)want);
      }
    }
    for (size_t i = 0; i < N_ROWS; i++) { /* rounding hides nothing where the rest of the sum is 1 */
      int32_t one_less = (int32_t)spec_dot(codes, at[i], dim) - 1;
      quant_query query = {.code = codes, .dim = (uint32_t)dim, .offset = 64 * sum + one_less, .scale = 1};
      quant_keys(&query, at + i, 1, got);
      CHECKF(got[0] == biases[i] - scales[i], "%s: dimension %zu, row %zu: not exact", quant_name(), dim, i);
    }
  }
  mem_free(codes);
  mem_free(rows);
}

TEST(keys_have_the_same_bits_on_every_kernel) {
  test_srand(test_seed());
  static const size_t large[] = {384, 784, 1536, 65504, 65535};
  for (size_t dim = 1; dim <= 200; dim++) check_keys(dim, RANDOM);
  for (fill how = RANDOM; how <= MIXED; how++) {
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) check_keys(large[i], how);
    check_keys(2, how); /* two products of the greatest numbers: where 16 bits would saturate first */
    check_keys(64, how);
  }
}

/* A row may end where its memory does. */
TEST(kernels_read_nothing_past_a_row) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0);
  int8_t *codes = room(256);
  for (uint32_t dim = 1; dim <= 160; dim++) {
    memset(codes, 0, 256);
    memset(codes, 1, dim);
    static const float one = 1;
    unsigned char *row = p + page - row_bytes(dim);
    const unsigned char *rows[5] = {row, row, row, row, row};
    quant_query query = {.code = codes, .dim = dim, .scale = 1};
    float keys[5];
    memset(row, 0, row_bytes(dim));
    memset(row, 1, dim);
    put_bits(row, 0, &one);
    put_bits(row, 32, &one);
    EACH_KERNEL {
      quant_keys(&query, rows, 5, keys);
      for (int i = 0; i < 5; i++) CHECK(keys[i] == 1 - (float)dim);
    }
  }
  mem_free(codes);
  munmap(p, 2 * page);
}

TEST(a_row_as_query_is_the_row) {
  test_srand(test_seed());
  for (uint32_t dim = 1; dim <= 300; dim += dim < 70 ? 1 : 23) {
    unsigned char *row = room(row_bytes(dim));
    int8_t *codes = room(quant_query_bytes(dim));
    float scale = 0.25f, bias = -3.75f;
    int32_t sum = 0;
    memset(row, 0, row_bytes(dim));
    for (uint32_t j = 0; j < dim; j++) {
      row[j] = (unsigned char)test_below(128);
      sum += row[j] - 64;
    }
    put_bits(row, 0, &scale);
    put_bits(row, 32, &bias);
    EACH_KERNEL {
      quant_query query;
      quant_query_of_row(row, dim, codes, &query);
      for (uint32_t j = 0; j < dim; j++) CHECK(codes[j] == (row[j] & 127) - 64);
      for (size_t j = dim; j < quant_query_bytes(dim); j++) CHECK(codes[j] == 0);
      CHECK(query.offset == 64 * sum && query.scale == 0.5f && query.dim == dim);
    }
    mem_free(row);
    mem_free(codes);
  }
}

/* Also if one row is much longer than the other, or has no length. */
TEST(a_query_between_two_rows_is_halfway) {
  enum { DIM = 100 };
  static const float sizes[][2] = {{1, 1}, {1, 0.8f}, {0.05f, 1}, {1, 0}, {0, 0}};
  float mean[DIM] = {0}, v[2][DIM];
  int8_t *buffer = room(quant_query_bytes(DIM));
  unsigned char *rows[2] = {room(quant_stride(DIM)), room(quant_stride(DIM))};
  quant_model model = {.metric = LODE_L2, .dim = DIM, .unit = 1, .mean = mean};
  test_srand(test_seed());
  for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
    for (size_t i = 0; i < 2; i++) {
      for (size_t j = 0; j < DIM; j++) v[i][j] = sizes[t][i] * ((float)test_below(2001) / 1000 - 1);
      quant_encode_row(&model, v[i], 0, rows[i]);
    }
    quant_query query;
    quant_query_between(rows[0], rows[1], DIM, buffer, &query);
    float step = query.scale / 2, coarse = (quant_row_scale(rows[0]) + quant_row_scale(rows[1])) / 4;
    int32_t sum = 0;
    for (size_t j = 0; j < DIM; j++) {
      float want = (v[0][j] + v[1][j]) / 2, got = step * query.code[j];
      CHECKF(fabsf(got - want) <= (step / 2 + coarse) * 1.001f, "%g instead of %g", (double)got, (double)want);
      sum += query.code[j];
    }
    CHECK(query.offset == QUANT_ZERO * sum);
  }
  mem_free(buffer);
  for (size_t i = 0; i < 2; i++) mem_free(rows[i]);
}

TEST(rows_are_equal_whatever_their_slots) {
  for (uint32_t dim = 3; dim <= 203; dim += 50) {
    size_t stride = quant_stride(dim);
    unsigned char *a = room(stride), *b = room(stride);
    uint32_t slots[2] = {0x12345678, 0xEDCBA987}; /* each bit differs */
    memset(a, 0, stride);
    for (uint32_t j = 0; j < dim; j++) a[j] = (unsigned char)(1 + j % 127);
    memcpy(b, a, stride);
    put_bits(a, 64, &slots[0]);
    put_bits(b, 64, &slots[1]);
    CHECK(quant_row_equal(a, b, stride) && quant_row_hash(a, stride) == quant_row_hash(b, stride));
    for (size_t i = 0; i < 8 * stride; i++) {
      bool of_slot = i / 8 >= 64 && i / 8 < 96 && i % 8 == 7;
      b[i / 8] ^= (unsigned char)(1u << i % 8);
      CHECKF(quant_row_equal(a, b, stride) == of_slot, "dimension %u, bit %zu", dim, i);
      CHECK((quant_row_hash(a, stride) == quant_row_hash(b, stride)) == of_slot);
      b[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    mem_free(a);
    mem_free(b);
  }
}

/* ---- Codes of vectors ---- */

typedef struct scene {
  quant_model model;
  size_t n, dim, stride;
  float *vectors, *mean;
  unsigned char *rows;
  int8_t *query;
} scene;

static float normal(void) {
  float sum = 0;
  for (int i = 0; i < 6; i++) sum += (float)test_below(1 << 20) / (1 << 20) - 0.5f;
  return sum;
}

static void encode(scene *s, lode_metric metric) {
  lode_error err;
  quant_fit fit;
  OK(quant_fit_begin(&fit, metric, (uint32_t)s->dim, &err));
  for (size_t i = 0; i < s->n; i++) quant_fit_add(&fit, s->vectors + i * s->dim);
  quant_fit_end(&fit, s->mean, &s->model);
  quant_fit_release(&fit);
  for (size_t i = 0; i < s->n; i++) {
    quant_encode_row(&s->model, s->vectors + i * s->dim, (uint32_t)i, s->rows + i * s->stride);
  }
}

static scene make_scene(size_t n, size_t dim, float size, float shift) {
  scene s = {.n = n, .dim = dim, .stride = quant_stride((uint32_t)dim)};
  s.vectors = room(n * dim * sizeof(float));
  s.mean = room(dim * sizeof(float));
  s.rows = room(n * s.stride);
  s.query = room(quant_query_bytes((uint32_t)dim));
  for (size_t i = 0; i < n * dim; i++) s.vectors[i] = (normal() + shift) * size;
  return s;
}

static void free_scene(scene *s) {
  mem_free(s->vectors);
  mem_free(s->mean);
  mem_free(s->rows);
  mem_free(s->query);
}

/* How many of the 10 nearest by distance are among the 20 nearest by key. */
static size_t agreement(scene *s, lode_metric metric, const float *query) {
  enum { K = 10, WIDE = 20 };
  kernel_neighbour near_room[K], code_room[WIDE];
  kernel_topk near = {.heap = near_room, .k = K}, code = {.heap = code_room, .k = WIDE};
  quant_query q;
  float norm2 = kernel_dot(query, query, s->dim);
  quant_query_of_vector(&s->model, query, s->query, &q);
  for (size_t i = 0; i < s->n; i++) {
    const unsigned char *row = s->rows + i * s->stride;
    float key;
    quant_keys(&q, &row, 1, &key);
    CHECK(isfinite(key));
    kernel_topk_push(&code, key, (int64_t)i, 0);
    kernel_topk_push(&near, kernel_distance(metric, query, norm2, s->vectors + i * s->dim, s->dim), (int64_t)i, 0);
  }
  size_t found = 0;
  for (size_t i = 0; i < K; i++)
    for (size_t j = 0; j < WIDE; j++) found += near_room[i].key == code_room[j].key;
  return found;
}

TEST(keys_order_rows_as_distances_do) {
  test_srand(test_seed());
  static const float sizes[] = {1, 1e-15f, 1e18f, 255};
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
      /* where float distances overflow, or are lost beside the 1 of ip, there is nothing to compare with */
      if ((sizes[c] == 1e18f && metric == LODE_L2) || (sizes[c] == 1e-15f && metric == LODE_IP)) continue;
      scene s = make_scene(2000, 48, sizes[c], 0.3f);
      encode(&s, metric);
      size_t found = 0;
      for (size_t q = 0; q < 20; q++) found += agreement(&s, metric, s.vectors + (q * 97 % s.n) * s.dim);
      CHECKF(found >= 196, "%s at size %g: %zu of 200", metric_names[metric], (double)sizes[c], found);
      free_scene(&s);
    }
  }
}

TEST(codes_use_their_range_and_carry_slot_and_length) {
  test_srand(test_seed());
  scene s = make_scene(50, 37, 3, 0);
  encode(&s, LODE_L2);
  for (size_t i = 0; i < s.n; i++) {
    const unsigned char *row = s.rows + i * s.stride;
    int least = 255, most = 0;
    double length2 = 0;
    for (size_t j = 0; j < s.dim; j++) {
      int c = row[j] & 127;
      if (c < least) least = c;
      if (c > most) most = c;
      length2 += (double)(c - 64) * (c - 64) * (double)quant_row_scale(row) * (double)quant_row_scale(row);
    }
    CHECK(least >= 1 && most <= 127 && (least == 1 || most == 127));
    CHECK(quant_row_slot(row) == i);
    CHECK(fabs(length2 - (double)quant_row_bias(row)) <= 1e-5 * length2);
    for (size_t j = s.dim; j < s.stride; j++) CHECK((row[j] & (j < QUANT_MIN_ROW_BYTES ? 127 : 255)) == 0);
  }
  free_scene(&s);
}

TEST(odd_vectors_have_codes) {
  enum { DIM = 5 };
  float vectors[][DIM] = {{0, 0, 0, 0, 0},
                          {FLT_MAX, -FLT_MAX, FLT_MAX, 0, 1},
                          {FLT_TRUE_MIN, 0, 0, 0, 0},
                          {1, 1, 1, 1, 1},
                          {-0.0f, 1e-38f, 1e38f, -1e-45f, 3}};
  size_t n = sizeof vectors / sizeof *vectors;
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    for (size_t alone = 0; alone <= n; alone++) { /* each as the only one, and all together */
      scene s = make_scene(alone < n ? 1 : n, DIM, 1, 0);
      memcpy(s.vectors, alone < n ? vectors[alone] : vectors[0], s.n * sizeof vectors[0]);
      encode(&s, metric);
      for (size_t q = 0; q < n; q++) {
        quant_query query;
        quant_query_of_vector(&s.model, vectors[q], s.query, &query);
        for (size_t i = 0; i < s.n; i++) {
          const unsigned char *row = s.rows + i * s.stride;
          float key;
          quant_keys(&query, &row, 1, &key);
          CHECKF(isfinite(key), "%s, set %zu, query %zu, row %zu", metric_names[metric], alone, q, i);
        }
      }
      free_scene(&s);
    }
  }
}

/* Under cosine a zero vector is at distance 1: farther than what points the same way, nearer than what points away. */
TEST(a_zero_vector_is_at_right_angles) {
  float vectors[3][2] = {{3, 0.1f}, {0, 0}, {-5, 0.2f}}, query[2] = {1, 0}, keys[3];
  scene s = make_scene(3, 2, 1, 0);
  memcpy(s.vectors, vectors, sizeof vectors);
  encode(&s, LODE_COSINE);
  quant_query q;
  const unsigned char *rows[3] = {s.rows, s.rows + s.stride, s.rows + 2 * s.stride};
  quant_query_of_vector(&s.model, query, s.query, &q);
  quant_keys(&q, rows, 3, keys);
  CHECK(keys[0] < keys[1] && keys[1] < keys[2]);
  free_scene(&s);
}

/* The same bytes on every machine: this value was computed once. */
TEST(codes_have_the_same_bytes_everywhere) {
  enum { N = 64, DIM = 100 };
  scene s = make_scene(N, DIM, 1, 0);
  uint32_t x = 12345, crc = 0;
  for (size_t i = 0; i < N * DIM; i++) {
    x = x * 1664525u + 1013904223u;
    s.vectors[i] = (float)(x >> 8) / (1 << 24) - 0.4f;
  }
  EACH_KERNEL {
    crc = 0;
    for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
      encode(&s, metric);
      crc = crc32c_update(crc, s.rows, N * s.stride);
      quant_query q;
      quant_query_of_vector(&s.model, s.vectors + 7 * DIM, s.query, &q);
      crc = crc32c_update(crc, s.query, DIM);
      for (size_t i = 0; i < N; i++) {
        const unsigned char *row = s.rows + i * s.stride;
        float key;
        quant_keys(&q, &row, 1, &key);
        crc = crc32c_update(crc, &key, sizeof key);
      }
    }
    CHECKF(crc == 0xF40B2F16u, "%s: %#x", quant_name(), crc);
  }
  free_scene(&s);
}

/* A row on the grid is its vector, whatever kernel makes it; nothing is read after the row or its low bits. */
TEST(rows_on_a_grid_are_their_vectors) {
  static const quant_grid grids[] = {{1, -64}, {1, 0}, {2, 0}, {2, -128}, {2, 5000}};
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0 && mprotect(p + 3 * page, page, PROT_NONE) == 0);
  test_srand(test_seed());
  for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
    for (uint32_t dim = 1; dim <= 300; dim++) {
      float vector[300], got[301], mean[300], unit = 1.0f / 8192;
      quant_model model = {.metric = LODE_L2, .dim = dim, .unit = unit, .mean = mean, .grid = grids[g]};
      unsigned char *row = p + page - quant_stride(dim), *low = p + 3 * page - quant_grid_low_bytes(&grids[g], dim);
      for (uint32_t j = 0; j < dim; j++) {
        mean[j] = quant_grid_middle(&grids[g]) * unit;
        vector[j] = (float)(grids[g].base + (int32_t)test_below(128 * grids[g].step));
      }
      (void)quant_encode_row(&model, vector, (uint32_t)test_below(1000), row);
      quant_grid_encode_low(&grids[g], vector, dim, low);
      CHECK(quant_row_is_on_grid(&model, row));
      EACH_KERNEL {
        got[dim] = 77;
        quant_grid_decode(&grids[g], row, low, dim, got);
        CHECKF(memcmp(got, vector, dim * sizeof *got) == 0 && got[dim] == 77, "%s: %u dimensions, step %u",
               quant_name(), dim, grids[g].step);
      }
      vector[test_below(dim)] += test_below(2) ? 0.5f : 300;
      (void)quant_encode_row(&model, vector, 1, row);
      CHECK(!quant_row_is_on_grid(&model, row));
    }
  }
  munmap(p, 4 * page);
}

/* Off the grid, a row whose own scale would be that of the grid gets the next one. */
TEST(the_scale_of_a_grid_is_of_its_rows_alone) {
  float mean[2] = {0}, vector[2] = {63, 0.5f};
  unsigned char row[QUANT_MIN_ROW_BYTES];
  quant_model model = {.metric = LODE_L2, .dim = 2, .unit = 1, .mean = mean, .grid = {1, -64}};
  (void)quant_encode_row(&model, vector, 0, row);
  CHECK(!quant_row_is_on_grid(&model, row) && quant_row_scale(row) > 1 && quant_row_scale(row) < 1.001f);
}

TEST(a_grid_is_one_that_nearly_all_vectors_fit) {
  static const struct {
    float a, b;
    uint32_t step;
    int32_t base;
  } cases[] = {{0, 255, 2, 0},  {3, 200, 2, 0},     {-128, 127, 2, -128}, {-64, 63, 1, -64},   {0, 1, 1, -64},
               {10, 122, 1, 0}, {64, 0, 1, 0},      {-1, 128, 0, 0},      {0, 256, 0, 0},      {0.5f, 1, 0, 0},
               {0, NAN, 0, 0},  {-0.0f, 0, 1, -64}, {0, INFINITY, 0, 0},  {-2e6f, -2e6f, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    quant_grid_fit fit = {0};
    const float vector[] = {cases[i].a, cases[i].b}, odd[] = {0, 0.5f};
    for (int k = 0; k < 32; k++) quant_grid_fit_add(&fit, vector, 2);
    quant_grid got = quant_grid_of_fit(&fit);
    CHECKF(got.step == cases[i].step && got.base == cases[i].base, "case %zu: step %u, base %d", i, got.step, got.base);
    quant_grid_fit_add(&fit, odd, 2);
    CHECK(quant_grid_of_fit(&fit).step == cases[i].step);
    for (int k = 0; k < 3; k++) quant_grid_fit_add(&fit, odd, 2);
    CHECK(quant_grid_of_fit(&fit).step == 0);
  }
  CHECK(quant_grid_of_fit(&(quant_grid_fit){0}).step == 0);
}

TEST(order_of_floats_as_integers) {
  static const float sorted[] = {-INFINITY, -FLT_MAX, -1, -FLT_TRUE_MIN, 0, FLT_TRUE_MIN, 1, FLT_MAX, INFINITY};
  for (size_t i = 1; i < sizeof sorted / sizeof *sorted; i++) {
    CHECK(quant_key_order(sorted[i - 1]) < quant_key_order(sorted[i]));
  }
}

/* ---- Bounds ---- */

/* No row is nearer than its key says, and none that is as near as another has a key beyond that other's reach. Values
 * far from zero, of very different size, and queries of another kind than the rows among them. */
TEST(keys_bound_distances) {
  enum { ROWS = 200, DIM = 67, ROUNDS = 60 };
  static float vectors[ROWS * DIM], mean[DIM], query[DIM];
  static unsigned char rows[ROWS][256];
  static int8_t _Alignas(64) buffer[128];
  test_srand(test_seed());
  CHECK(quant_stride(DIM) <= sizeof rows[0] && quant_query_bytes(DIM) <= sizeof buffer);
  for (int round = 0; round < ROUNDS; round++) {
    lode_error err;
    quant_fit fit;
    quant_model model;
    quant_query code;
    quant_bounds bounds;
    quant_spread spread = {0};
    lode_metric metric = (lode_metric)(round % 3);
    float size = ldexpf(1, (int)test_below(40) - 20), centre = round % 4 == 3 ? 1000 * size : 0;
    OK(quant_fit_begin(&fit, metric, DIM, &err));
    for (int i = 0; i < ROWS * DIM; i++)
      vectors[i] = centre + size * (float)((double)test_below(1000001) / 1e6 - 0.5) * (i % DIM == 3 ? 50 : 1);
    if (round % 5 == 0) memset(vectors, 0, DIM * sizeof *vectors);
    for (int i = 0; i < ROWS / 2; i++) quant_fit_add(&fit, vectors + i * DIM);
    quant_fit_end(&fit, mean, &model);
    quant_fit_release(&fit);
    for (uint32_t i = 0; i < ROWS; i++) {
      quant_encode_row(&model, vectors + i * DIM, i, rows[i]);
      quant_spread_add(&spread, &model, vectors + i * DIM, rows[i]);
    }
    for (int j = 0; j < DIM; j++)
      query[j] = centre + size * (float)((double)test_below(1000001) / 1e6 - 0.5) * (round % 7 == 0 ? 1000 : 1);
    quant_query_of_vector(&model, query, buffer, &code);
    CHECK(!quant_bounds_of(&model, &(quant_spread){0}, query, &code, &bounds));
    CHECK(quant_bounds_of(&model, &spread, query, &code, &bounds));
    float keys[ROWS], distances[ROWS], norm2 = kernel_dot(query, query, DIM);
    for (int i = 0; i < ROWS; i++) {
      const unsigned char *row = rows[i];
      quant_keys(&code, &row, 1, &keys[i]);
      distances[i] = kernel_distance(metric, query, norm2, vectors + i * DIM, DIM);
      CHECKF(quant_bounds_least(&bounds, keys[i]) <= distances[i], "round %d, row %d: %g at key %g, at least %g", round,
             i, (double)distances[i], (double)keys[i], quant_bounds_least(&bounds, keys[i]));
    }
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < ROWS; j++)
        CHECK(distances[j] > distances[i] || keys[j] <= quant_bounds_last_key(&bounds, keys[i]));
  }
}
