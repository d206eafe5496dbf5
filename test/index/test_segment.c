/* SPDX-License-Identifier: Apache-2.0 */
/* test_segment.c - the bytes of a segment: what is written is read; any damage is a status or harmless, never a wrong
 * answer; a forged file is survived; pages are read on demand, given back, and shared by threads. */
#include <math.h>
#include <pthread.h>

#include "base/crc32c.h"
#include "support/index_scene.h"
#include "support/test.h"

static lode_status search_once(scene *s, const float *query, size_t k, const uint64_t *allowed, index_hit *hits,
                               size_t *n, lode_error *err) {
  index_search_scratch scratch = {0};
  index_search_request request = {.query = query, .k = k, .allowed = allowed, .fetch = {scene_fetch, s}};
  lode_status st = index_search(s->segment, &request, &scratch, hits, n, err);
  index_search_scratch_release(&scratch);
  return st;
}

/* The same among every other row. */
static lode_status search_some(scene *s, const float *query, index_hit *hits, size_t *n, lode_error *err) {
  size_t words = s->segment->info.n / 64 + 1;
  uint64_t *some = malloc(words * sizeof *some);
  CHECK(some != NULL);
  memset(some, 0x55, words * sizeof *some);
  lode_status st = search_once(s, query, 10, some, hits, n, err);
  free(some);
  return st;
}

TEST(what_is_written_is_read) {
  test_srand(test_seed());
  for (index_segment_kind kind = INDEX_FLAT; kind <= INDEX_GRAPH; kind++) {
    scene s;
    lode_error err;
    index_graph_report report;
    float vector[33];
    scene_init(&s, UNIFORM, LODE_COSINE, 700, 33);
    scene_build(&s, kind, 1);
    const index_segment_info *info = &s.segment->info;
    CHECK(info->kind == kind && info->metric == LODE_COSINE && info->n == 700 && info->dim == 33);
    CHECK(info->bytes == s.file_bytes && s.file_bytes % INDEX_PAGE_BYTES == 0);
    for (uint32_t i = 0; i < s.n; i++) {
      index_segment_record record;
      OK(index_segment_get_record(s.segment, i, &record, &err));
      CHECK(record.key == 1000 + (int64_t)i && record.cursor == (uint64_t)i * 7);
      OK(index_segment_get_vector(s.segment, i, vector, NULL, &err));
      CHECK(memcmp(vector, s.vectors + (size_t)i * s.dim, sizeof vector) == 0);
    }
    index_segment_record record;
    FAILS(LODE_CORRUPT, index_segment_get_record(s.segment, 700, &record, &err));
    FAILS(LODE_CORRUPT, index_segment_get_vector(s.segment, UINT32_MAX, vector, NULL, &err));
    OK(index_segment_verify(s.segment, &report, &err));
    scene_release(&s);
  }
}

/* ---- Placed segments ---- */

/* The same rows with and without places. */
static void pair_of_scenes(scene *full, scene *placed, lode_metric metric) {
  uint64_t seed = test_seed();
  test_srand(seed);
  scene_init(full, CLUSTERS, metric, 3000, 33);
  test_srand(seed);
  scene_init(placed, CLUSTERS, metric, 3000, 33);
  placed->placed = true;
  scene_build(full, INDEX_GRAPH, 1);
  scene_build(placed, INDEX_GRAPH, 1);
}

static void check_same_answers(scene *full, scene *placed) {
  lode_error err;
  index_hit want[20], got[20];
  size_t n, m;
  float query[33];
  for (int i = 0; i < 20; i++) {
    scene_query(full, query);
    index_search_request request = {.query = query, .k = 20, .exact = i % 2, .fetch = {scene_fetch, placed}};
    index_search_scratch scratch = {0};
    OK(index_search(full->segment, &request, &scratch, want, &n, &err));
    OK(index_search(placed->segment, &request, &scratch, got, &m, &err));
    index_search_scratch_release(&scratch);
    CHECK(n == m && memcmp(want, got, n * sizeof *want) == 0);
  }
}

TEST(places_give_the_same_answers_in_fewer_bytes) {
  for (int metric = 0; metric < 3; metric++) {
    static const lode_metric metrics[] = {LODE_L2, LODE_COSINE, LODE_IP};
    scene full, placed;
    lode_error err;
    index_graph_report report;
    pair_of_scenes(&full, &placed, metrics[metric]);
    size_t vectors = full.n * full.dim * sizeof(float);
    CHECK(placed.file_bytes <= full.file_bytes - vectors + 8 * (size_t)full.n + 2 * INDEX_PAGE_BYTES);
    check_same_answers(&full, &placed);
    OK(index_segment_verify(placed.segment, &report, &err));
    CHECK(placed.fetched == 0 && atomic_load(&placed.segment->moved) == 0);
    scene_release(&full);
    scene_release(&placed);
  }
}

/* Some vectors are elsewhere, or others are where they were. */
TEST(vectors_that_moved_are_fetched) {
  scene full, placed;
  pair_of_scenes(&full, &placed, LODE_L2);
  size_t bytes = placed.dim * sizeof(float);
  for (uint32_t i = 0; i + 1 < placed.n; i += 3)
    memcpy(placed.other + scene_place(&placed, i), placed.other + scene_place(&placed, i + 1), bytes);
  check_same_answers(&full, &placed);
  CHECK(placed.fetched > 0 && placed.fetched == atomic_load(&placed.segment->moved));
  for (uint64_t before = placed.fetched; placed.other_bytes > 0; placed.other_bytes /= 2) { /* it became shorter */
    check_same_answers(&full, &placed);
    CHECK(placed.fetched > before);
    before = placed.fetched;
  }
  scene_release(&full);
  scene_release(&placed);
}

TEST(vectors_that_are_gone_are_left_out) {
  for (int exact = 0; exact < 2; exact++) {
    scene s;
    lode_error err;
    index_hit hits[50];
    size_t n;
    index_graph_report report;
    test_srand(test_seed());
    scene_init(&s, UNIFORM, LODE_L2, 2000, 16);
    s.placed = s.lost = true;
    scene_build(&s, INDEX_GRAPH, 1);
    for (uint32_t i = 0; i < s.n; i += 2) memset(s.other + scene_place(&s, i), 0, s.dim * sizeof(float));
    index_search_request request = {.query = s.vectors, .k = 50, .exact = exact, .fetch = {scene_fetch, &s}};
    index_search_scratch scratch = {0};
    for (int round = 0; round < 2; round++) {
      OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
      CHECK(n > 0);
      for (size_t i = 0; i < n; i++) CHECKF(hits[i].slot % 2 == 1, "slot %u is gone", hits[i].slot);
      request.fetch = (index_fetch){0}; /* nobody to ask */
    }
    index_search_scratch_release(&scratch);
    OK(index_segment_verify(s.segment, &report, &err));
    scene_release(&s);
  }
}

/* What is fetched must be the vector of that row, and a failure to fetch is passed on. */
static lode_status fetch_another(void *ctx, int64_t key, uint64_t cursor, float *vector, bool *found, lode_error *err) {
  scene *s = ctx;
  (void)key;
  (void)cursor;
  if (s->lost) return err_set(err, LODE_IO, "cannot be read");
  *found = true;
  memset(vector, 0, s->dim * sizeof *vector);
  return LODE_OK;
}

TEST(a_wrong_fetch_is_noticed) {
  scene s;
  lode_error err;
  float vector[16];
  test_srand(test_seed());
  scene_init(&s, UNIFORM, LODE_L2, 100, 16);
  s.placed = true;
  scene_build(&s, INDEX_FLAT, 1);
  s.other_bytes = 0;
  index_fetch fetch = {fetch_another, &s};
  FAILS(LODE_CORRUPT, index_segment_get_vector(s.segment, 3, vector, &fetch, &err));
  s.lost = true;
  FAILS(LODE_IO, index_segment_get_vector(s.segment, 3, vector, &fetch, &err));
  OK(index_segment_get_vector(s.segment, 3, vector, NULL, &err));
  CHECK(index_vector_is_gone(vector));
  scene_release(&s);
}

/* Rows that follow each other are read together, forwards or backwards. */
TEST(neighbours_are_read_together) {
  enum { ROWS = 512, DIM = 16 };
  scene s;
  lode_error err;
  static float block[ROWS * DIM];
  static index_segment_record records[ROWS];
  test_srand(test_seed());
  scene_init(&s, UNIFORM, LODE_L2, ROWS, DIM);
  s.placed = true;
  scene_build(&s, INDEX_FLAT, 1);
  s.other_reads = 0;
  OK(index_segment_get_block(s.segment, 0, ROWS, block, records, NULL, &err));
  CHECK(memcmp(block, s.vectors, sizeof block) == 0);
  CHECKF(s.other_reads <= 4, "%llu reads", (unsigned long long)s.other_reads);
  scene_release(&s);
}

/* ---- Rows that hold their vectors ---- */

/* Hits and their distances are those of the vectors, to the last bit, and no vector is read from the file. */
static void check_answers_of_rows(scene *s, uint64_t may_read) {
  lode_error err;
  index_search_scratch scratch = {0};
  float *query = calloc(s->dim, sizeof *query);
  CHECK(query != NULL);
  for (int i = 0; i < 40; i++) {
    index_hit hits[10];
    size_t n;
    scene_query(s, query);
    index_search_request request = {.query = query, .k = 10, .exact = i % 2, .fetch = {scene_fetch, s}};
    OK(index_search(s->segment, &request, &scratch, hits, &n, &err));
    CHECK(n == 10);
    for (size_t j = 0; j < n; j++) {
      float norm2 = 0, want = kernel_distance(s->metric, query, norm2, s->vectors + hits[j].slot * s->dim, s->dim);
      CHECKF(memcmp(&hits[j].distance, &want, sizeof want) == 0, "%.9g, not %.9g", (double)hits[j].distance,
             (double)want);
    }
    if (i % 2) CHECK(scene_recall(s, query, NULL, 10, hits, n) == 1);
  }
  CHECK(scratch.stats.vectors >= 400);
  CHECKF(scratch.stats.vectors_read <= may_read, "%llu vectors read", (unsigned long long)scratch.stats.vectors_read);
  index_search_scratch_release(&scratch);
  free(query);
}

TEST(rows_of_whole_numbers_need_no_vectors) {
  static const struct {
    float least, most;
    uint32_t step;
    size_t low;
  } ranges[] = {{0, 255, 2, 16}, {-128, 127, 2, 16}, {0, 100, 1, 0}, {-3, 3, 1, 0}, {0, 1, 1, 0}};
  test_srand(test_seed());
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    for (index_segment_kind kind = INDEX_FLAT; kind <= INDEX_GRAPH; kind++) {
      scene s;
      lode_error err;
      index_graph_report report;
      scene_init(&s, BYTES, i % 2 ? LODE_IP : LODE_L2, 600, 100);
      for (size_t j = 0; j < (size_t)s.n * s.dim; j++)
        s.vectors[j] = roundf(ranges[i].least + s.vectors[j] / 255 * (ranges[i].most - ranges[i].least));
      s.vectors[0] = ranges[i].least, s.vectors[1] = ranges[i].most;
      s.placed = i == 1;
      scene_build(&s, kind, 1);
      CHECK(s.segment->info.grid.step == ranges[i].step && s.segment->low_bytes == ranges[i].low);
      check_answers_of_rows(&s, 0);
      CHECK(s.other_reads == 0);
      OK(index_segment_verify(s.segment, &report, &err));
      scene_release(&s);
    }
  }
}

/* A few rows are quantised like any others, and read. */
TEST(rows_off_the_grid_are_read) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  index_graph_report report;
  scene_init(&s, BYTES, LODE_L2, 3000, 100);
  for (uint32_t i = 0; i < s.n; i += 20) s.vectors[i * s.dim + i % s.dim] += i % 40 ? 0.25f : 1000;
  scene_build(&s, INDEX_GRAPH, 1);
  CHECK(s.segment->info.grid.step == 2);
  check_answers_of_rows(&s, 400);
  OK(index_segment_verify(s.segment, &report, &err));
  scene_release(&s);
  scene_init(&s, UNIFORM, LODE_L2, 300, 100); /* and where none is whole, there is no grid */
  scene_build(&s, INDEX_FLAT, 1);
  CHECK(s.segment->info.grid.step == 0 && s.segment->low.bytes == 0);
  scene_release(&s);
}

TEST(verify_compares_low_bits_with_vectors) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  index_graph_report report;
  scene_init(&s, BYTES, LODE_L2, 100, 20);
  scene_build(&s, INDEX_GRAPH, 1);
  s.file[s.segment->layout.at[INDEX_SEG_LOW] + 8 * 17] ^= 1;
  scene_repair(&s);
  OK(scene_open(&s, &err));
  FAILS(LODE_CORRUPT, index_segment_verify(s.segment, &report, &err));
  CHECK(strstr(err.text, "low bits") != NULL);
  scene_release(&s);
}

/* ---- Files of earlier versions ---- */

/* 60 rows of 6 dimensions, written by version 0.1.0: vectors in the file (format 2), and places (format 3). */
static void old_scene(scene *s, int format) {
  char path[64];
  uint64_t state = 1;
  scene_init(s, UNIFORM, LODE_L2, 60, 6);
  s->id = 42;
  s->table_crc = format == 2 ? 0x9060830du : 0xb93084abu;
  for (size_t i = 0; i < (size_t)s->n * s->dim; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    s->vectors[i] = (float)((state >> 33) % 1000) / 500 - 1;
  }
  s->other_bytes = 64 + s->n * s->dim * sizeof(float);
  s->other = calloc(1, s->other_bytes);
  CHECK(s->other != NULL);
  memcpy(s->other + 64, s->vectors, s->n * s->dim * sizeof(float));
  snprintf(path, sizeof path, "test/fixtures/segment-format%d.seg", format);
  FILE *f = fopen(path, "rb");
  s->file = calloc(1, 1 << 16);
  CHECKF(f && s->file, "%s is missing: run the test in the project's folder", path);
  s->file_bytes = fread(s->file, 1, 1 << 16, f);
  (void)fclose(f);
}

TEST(files_of_earlier_formats_are_read) {
  for (int format = 2; format <= 3; format++) {
    scene s;
    lode_error err;
    index_graph_report report;
    test_srand(test_seed());
    old_scene(&s, format);
    OK(scene_open(&s, &err));
    const index_segment_info *info = &s.segment->info;
    CHECK(info->link_bits == 32 && info->grid.step == 0 && info->placed == (format == 3) && info->n == 60);
    CHECK(s.segment->links.bytes == 60 * 4 * 4);
    OK(index_segment_verify(s.segment, &report, &err));
    check_answers_of_rows(&s, 2000);
    s.file[s.segment->layout.at[INDEX_SEG_LINKS] + 5] ^= 1;
    OK(scene_open(&s, &err));
    FAILS(LODE_CORRUPT, index_segment_verify(s.segment, &report, &err));
    scene_release(&s);
  }
}

TEST(a_segment_needs_rows_and_a_right_model) {
  scene s;
  lode_error err;
  float mean[4] = {0};
  index_writer maker;
  scene_init(&s, UNIFORM, LODE_L2, 4, 4);
  index_writer_options options = {.kind = INDEX_GRAPH, .model = {.metric = LODE_L2, .dim = 4, .unit = 1, .mean = mean}};
  OK(index_writer_begin(&maker, &options, &err));
  FAILS(LODE_INVALID, index_writer_finish(&maker, &err));
  index_writer_release(&maker);
  options.model.dim = 0;
  FAILS(LODE_INVALID, index_writer_begin(&maker, &options, &err));
  options.model.dim = LODE_MAX_DIMENSION + 1;
  FAILS(LODE_INVALID, index_writer_begin(&maker, &options, &err));
  scene_release(&s);
}

/* ---- Damage ---- */

static void small_scene(scene *s, shape how, index_segment_kind kind, bool placed) {
  scene_init(s, how, LODE_L2, 40, 8);
  s->placed = placed;
  scene_build_with(s, kind, 1, (index_graph_options){.degree = 6});
}

/* What a reader of the damaged file may see: an error, or the truth. */
static bool noticed(scene *s, const index_hit *want, size_t n_want) {
  lode_error err;
  index_hit hits[10];
  size_t n;
  index_graph_report report;
  lode_status st = scene_open(s, &err);
  CHECK(st == LODE_OK || st == LODE_CORRUPT || st == LODE_TOO_NEW);
  if (st != LODE_OK) return true;
  st = search_once(s, s->vectors, 10, NULL, hits, &n, &err);
  CHECK(st == LODE_OK || st == LODE_CORRUPT);
  if (st == LODE_OK) CHECKF(n == n_want && memcmp(hits, want, n * sizeof *hits) == 0, "a wrong answer");
  st = search_some(s, s->vectors, hits, &n, &err);
  CHECK(st == LODE_OK || st == LODE_CORRUPT);
  return index_segment_verify(s->segment, &report, &err) != LODE_OK;
}

TEST_SLOW(no_flipped_bit_gives_a_wrong_answer, 240) {
  test_srand(test_seed());
  for (int how = 0; how < 6; how++) {
    scene s;
    lode_error err;
    index_hit want[10];
    size_t n_want;
    small_scene(&s, how < 4 ? UNIFORM : BYTES, how % 2 ? INDEX_GRAPH : INDEX_FLAT, how == 2 || how == 3);
    OK(search_once(&s, s.vectors, 10, NULL, want, &n_want, &err));
    index_segment_layout layout;
    CHECK(index_segment_layout_of(&s.segment->info, &layout));
    for (size_t at = 0; at < s.file_bytes; at++) {
      unsigned char bit = (unsigned char)(1u << test_below(8));
      /* after the vectors and after the checksums are zeros that nothing covers and nothing reads */
      bool idle =
          (at >= layout.at[INDEX_SEG_VECTORS] + layout.bytes[INDEX_SEG_VECTORS] && at < layout.at[INDEX_SEG_MEAN]) ||
          at >= layout.at[INDEX_SEG_CHECKSUMS] + layout.bytes[INDEX_SEG_CHECKSUMS];
      s.file[at] ^= bit;
      bool seen = noticed(&s, want, n_want);
      CHECKF(seen != idle, "byte %zu of %zu: %s", at, s.file_bytes, seen ? "noticed" : "not noticed");
      s.file[at] ^= bit;
    }
    CHECK(!noticed(&s, want, n_want));
    scene_release(&s);
  }
}

/* A forger who makes all checksums right: no signal, no endless loop; the answers cannot be vouched for. */
TEST_SLOW(a_forged_file_is_survived, 240) {
  test_srand(test_seed());
  for (int how = 0; how < 6; how++) {
    scene s, copy;
    small_scene(&s, how < 4 ? UNIFORM : BYTES, how % 2 ? INDEX_GRAPH : INDEX_FLAT, how == 2 || how == 3);
    copy = s;
    copy.segment = NULL;
    copy.file = malloc(s.file_bytes);
    CHECK(copy.file != NULL);
    for (size_t at = 0; at < s.file_bytes; at += 1 + (at > 64 ? test_below(3) : 0)) {
      memcpy(copy.file, s.file, s.file_bytes);
      copy.id = s.id;
      copy.file[at] = (unsigned char)test_below(256);
      if (test_below(2)) memset(copy.file + at, test_below(2) ? 0xFF : 0x7F, at + 4 <= s.file_bytes ? 4 : 1);
      scene_repair(&copy);
      lode_error err;
      index_hit hits[10];
      index_graph_report report;
      size_t n;
      if (scene_open(&copy, &err) != LODE_OK) continue;
      lode_status st = search_once(&copy, s.vectors, 10, NULL, hits, &n, &err);
      CHECK(st == LODE_OK || st == LODE_CORRUPT);
      for (size_t i = 0; i < n; i++) CHECK(hits[i].slot < copy.segment->info.n);
      st = search_some(&copy, s.vectors, hits, &n, &err);
      CHECK(st == LODE_OK || st == LODE_CORRUPT);
      st = index_segment_verify(copy.segment, &report, &err);
      CHECK(st == LODE_OK || st == LODE_CORRUPT);
    }
    scene_close(&copy);
    free(copy.file);
    scene_release(&s);
  }
}

TEST(a_file_of_any_other_length_is_damage) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  small_scene(&s, test_below(2) ? UNIFORM : BYTES, INDEX_GRAPH, test_below(2));
  size_t whole = s.file_bytes;
  for (size_t len = 0; len < whole; len += len < 5000 ? 7 : 509) {
    s.file_bytes = len;
    FAILS(LODE_CORRUPT, scene_open(&s, &err));
  }
  s.file_bytes = whole;
  OK(scene_open(&s, &err));
  scene_release(&s);
}

TEST(a_file_cut_short_while_open) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  index_hit hits[10];
  size_t n;
  scene_init(&s, UNIFORM, LODE_L2, 3000, 32);
  scene_build(&s, INDEX_GRAPH, 1);
  s.short_by = s.file_bytes - 5000; /* nothing but the header and some vectors are left */
  FAILS(LODE_CORRUPT, search_once(&s, s.vectors, 10, NULL, hits, &n, &err));
  CHECK(n == 0);
  s.short_by = 0; /* back again: what failed to load is loaded now */
  OK(search_once(&s, s.vectors, 10, NULL, hits, &n, &err));
  CHECK(n == 10 && hits[0].distance == 0);
  scene_release(&s);
}

TEST(pages_and_files_of_another_place_are_damage) {
  test_srand(test_seed());
  scene a, b;
  lode_error err;
  index_graph_report report;
  scene_init(&a, UNIFORM, LODE_L2, 500, 32);
  scene_build(&a, INDEX_GRAPH, 1);
  scene_init(&b, UNIFORM, LODE_L2, 500, 32);
  b.id = 77;
  scene_build(&b, INDEX_GRAPH, 1);
  uint64_t rows = a.segment->layout.at[INDEX_SEG_ROWS], links = a.segment->layout.at[INDEX_SEG_LINKS];
  /* the same page of another segment */
  unsigned char page[INDEX_PAGE_BYTES];
  memcpy(page, a.file + rows, sizeof page);
  memcpy(a.file + rows, b.file + rows, sizeof page);
  OK(scene_open(&a, &err));
  FAILS(LODE_CORRUPT, index_segment_verify(a.segment, &report, &err));
  /* another page of the same */
  memcpy(a.file + rows, a.file + links, sizeof page);
  OK(scene_open(&a, &err));
  FAILS(LODE_CORRUPT, index_segment_verify(a.segment, &report, &err));
  memcpy(a.file + rows, page, sizeof page);
  /* a vector of another slot */
  size_t bytes = a.dim * sizeof(float);
  memcpy(a.file + INDEX_PAGE_BYTES, a.file + INDEX_PAGE_BYTES + bytes, bytes);
  OK(scene_open(&a, &err));
  FAILS(LODE_CORRUPT, index_segment_verify(a.segment, &report, &err));
  /* the whole file of another */
  memcpy(a.file, b.file, a.file_bytes);
  FAILS(LODE_CORRUPT, scene_open(&a, &err));
  scene_release(&a);
  scene_release(&b);
}

TEST(a_newer_format_is_told_apart_from_damage) {
  scene s;
  lode_error err;
  test_srand(test_seed());
  small_scene(&s, UNIFORM, INDEX_FLAT, false);
  s.file[8] = 5;
  uint32_t crc = crc32c_update(0, s.file, INDEX_SEG_HEADER_CRC_AT);
  memcpy(s.file + INDEX_SEG_HEADER_CRC_AT, &crc, sizeof crc);
  FAILS(LODE_TOO_NEW, scene_open(&s, &err));
  scene_release(&s);
}

TEST(sizes_of_a_layout_are_checked) {
  index_segment_layout layout;
  index_segment_info good = {.kind = INDEX_GRAPH, .dim = 100, .n = 10, .degree = 32, .n_entries = 1, .link_bits = 8};
  CHECK(index_segment_layout_of(&good, &layout));
  for (int i = 0; i < 10; i++) {
    index_segment_info bad = good;
    switch (i) {
      case 0: bad.kind = (index_segment_kind)3; break;
      case 1: bad.dim = 0; break;
      case 2: bad.dim = LODE_MAX_DIMENSION + 1; break;
      case 3: bad.n = 0; break;
      case 4: bad.n = INDEX_MAX_ROWS + 1; break;
      case 5: bad.degree = 1; break;
      case 6: bad.degree = 1025; break;
      case 7: bad.n_entries = 0; break;
      case 8: bad.n_entries = 11; break;
      case 9: bad.kind = INDEX_FLAT; break; /* with a degree */
    }
    CHECKF(!index_segment_layout_of(&bad, &layout), "case %d", i);
  }
  index_segment_info large = {.kind = INDEX_GRAPH,
                              .dim = LODE_MAX_DIMENSION,
                              .n = INDEX_MAX_ROWS,
                              .degree = 1024,
                              .n_entries = 1,
                              .link_bits = 31};
  CHECK(index_segment_layout_of(&large, &layout) && layout.total > (uint64_t)1 << 49);
}

/* ---- Pages on demand ---- */

TEST_SLOW(a_first_query_reads_only_what_it_needs, 120) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  index_hit hits[10];
  size_t n;
  scene_init(&s, CLUSTERS, LODE_L2, 20000, 32);
  scene_build(&s, INDEX_GRAPH, 1);
  s.bytes_read = 0;
  OK(scene_open(&s, &err));
  OK(search_once(&s, s.vectors + 5 * s.dim, 10, NULL, hits, &n, &err));
  CHECK(hits[0].distance == 0);
  uint64_t codes = s.segment->rows.bytes + s.segment->links.bytes;
  CHECKF(s.bytes_read < codes / 4, "%llu of %llu bytes", (unsigned long long)s.bytes_read, (unsigned long long)codes);
  CHECK(atomic_load(&s.segment->resident) <= s.bytes_read);
  OK(index_segment_preload(s.segment, &err));
  s.bytes_read = 0;
  OK(search_once(&s, s.vectors + 5 * s.dim, 10, NULL, hits, &n, &err));
  CHECK(s.bytes_read <= 24 * (s.dim * sizeof(float) + INDEX_PAGE_BYTES)); /* vectors, and pages of their records */
  scene_release(&s);
}

TEST_SLOW(memory_is_given_back_and_queries_go_on, 120) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  index_hit before[10], after[10];
  size_t n;
  scene_init(&s, CLUSTERS, LODE_IP, 8000, 64);
  scene_build(&s, INDEX_GRAPH, 1);
  OK(index_segment_preload(s.segment, &err));
  OK(search_once(&s, s.vectors, 10, NULL, before, &n, &err));
  uint64_t all = atomic_load(&s.segment->resident);
  uint64_t keep[] = {all, all / 2, 600000, 0};
  for (size_t i = 0; i < 4; i++) {
    index_segment_evict(s.segment, keep[i]);
    CHECKF(atomic_load(&s.segment->resident) <= keep[i], "%llu of %llu bytes are left",
           (unsigned long long)atomic_load(&s.segment->resident), (unsigned long long)keep[i]);
    OK(search_once(&s, s.vectors, 10, NULL, after, &n, &err));
    CHECK(n == 10 && memcmp(before, after, sizeof before) == 0);
  }
  scene_release(&s);
}

typedef struct crowd {
  scene *s;
  index_hit want[4][10];
  unsigned rounds;
} crowd;

static void *search_on(void *arg) {
  crowd *c = arg;
  lode_error err;
  index_search_scratch scratch = {0};
  for (unsigned r = 0; r < c->rounds; r++) {
    index_hit hits[10];
    size_t n;
    unsigned q = r % 4;
    index_search_request request = {.query = c->s->vectors + (size_t)q * 50 * c->s->dim, .k = 10};
    OK(index_search(c->s->segment, &request, &scratch, hits, &n, &err));
    CHECK(n == 10 && memcmp(hits, c->want[q], sizeof hits) == 0);
  }
  index_search_scratch_release(&scratch);
  return NULL;
}

/* A read of the file that takes as long as the test wants: of the first thread that reads there. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t from, to; /* offsets */
  bool armed, stuck, released;
  unsigned reads;
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void read_slowly(uint64_t offset) {
  pthread_mutex_lock(&slow.lock);
  if (offset >= slow.from && offset < slow.to) {
    slow.reads++;
    if (slow.armed) {
      slow.armed = false;
      slow.stuck = true;
      (void)pthread_cond_broadcast(&slow.changed);
      while (!slow.released) (void)pthread_cond_wait(&slow.changed, &slow.lock);
      slow.stuck = false;
    }
  }
  pthread_mutex_unlock(&slow.lock);
}

static void slow_arm(scene *s, int section) {
  slow.from = s->segment->layout.at[section];
  slow.to = s->segment->layout.at[section + 1];
  slow.armed = true;
  slow.stuck = slow.released = false;
  slow.reads = 0;
  s->on_read = read_slowly;
}

static void slow_await(void) {
  pthread_mutex_lock(&slow.lock);
  while (!slow.stuck) (void)pthread_cond_wait(&slow.changed, &slow.lock);
  pthread_mutex_unlock(&slow.lock);
}

static void slow_release(void) {
  pthread_mutex_lock(&slow.lock);
  slow.released = true;
  (void)pthread_cond_broadcast(&slow.changed);
  pthread_mutex_unlock(&slow.lock);
}

/* No lock is held over a read: eviction and other searches go on beside one that waits for the disk, and what was
 * evicted is given back when that one ends. */
TEST(a_search_that_waits_for_the_disk_delays_nobody) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  pthread_t thread;
  crowd c = {.s = &s, .rounds = 1};
  index_hit hits[10];
  size_t n;
  scene_init(&s, CLUSTERS, LODE_L2, 20000, 24);
  scene_build(&s, INDEX_GRAPH, 1);
  OK(search_once(&s, s.vectors, 10, NULL, c.want[0], &n, &err));
  OK(index_segment_preload(s.segment, &err));
  slow_arm(&s, INDEX_SEG_VECTORS);
  CHECK(pthread_create(&thread, NULL, search_on, &c) == 0);
  slow_await();
  uint64_t all = atomic_load(&s.segment->resident);
  index_segment_evict(s.segment, 0);
  index_segment_evict(s.segment, 0);
  CHECK(atomic_load(&s.segment->resident) == all); /* somebody reads there */
  s.bytes_read = 0;
  OK(search_once(&s, s.vectors, 10, NULL, hits, &n, &err));
  CHECK(n == 10 && memcmp(hits, c.want[0], sizeof hits) == 0);
  CHECK(s.bytes_read <= 24 * s.dim * sizeof(float)); /* pages that were still in memory are not read again */
  slow_release();
  pthread_join(thread, NULL);
  uint64_t left = atomic_load(&s.segment->resident);
  CHECKF(left < all, "%llu of %llu bytes", (unsigned long long)left, (unsigned long long)all);
  index_segment_evict(s.segment, 0);
  CHECK(atomic_load(&s.segment->resident) == 0);
  scene_release(&s);
}

static void *get_first_record(void *arg) {
  scene *s = arg;
  lode_error err;
  index_segment_record record;
  OK(index_segment_get_record(s->segment, 0, &record, &err));
  CHECK(record.key == 1000);
  return NULL;
}

/* Who needs the page that another thread is reading waits for it; who needs the next one does not. */
TEST(a_page_is_read_by_one_thread_and_the_others_wait_for_it_alone) {
  scene s;
  lode_error err;
  pthread_t threads[3];
  index_segment_record record;
  scene_init(&s, UNIFORM, LODE_L2, 4000, 4);
  scene_build(&s, INDEX_FLAT, 1);
  OK(scene_open(&s, &err));
  slow_arm(&s, INDEX_SEG_RECORDS);
  CHECK(pthread_create(&threads[0], NULL, get_first_record, &s) == 0);
  slow_await();
  for (int i = 1; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, get_first_record, &s) == 0);
  OK(index_segment_get_record(s.segment, 3999, &record, &err));
  CHECK(record.key == 4999);
  slow_release();
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  CHECKF(slow.reads == 2, "%u reads", slow.reads);
  scene_release(&s);
}

TEST(threads_search_while_pages_come_and_go) {
  test_srand(test_seed());
  scene s;
  lode_error err;
  pthread_t threads[4];
  crowd c = {.s = &s, .rounds = 300};
  size_t n;
  scene_init(&s, CLUSTERS, LODE_L2, 8000, 24);
  scene_build(&s, INDEX_GRAPH, 1);
  for (size_t q = 0; q < 4; q++) OK(search_once(&s, s.vectors + q * 50 * s.dim, 10, NULL, c.want[q], &n, &err));
  OK(scene_open(&s, &err));
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, search_on, &c) == 0);
  for (int i = 0; i < 200; i++) index_segment_evict(s.segment, test_below(2) ? 0 : 300000);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  scene_release(&s);
}
