/* SPDX-License-Identifier: Apache-2.0 */
/* test_map_layout.c - the map by neighbours: the nearest of each point, their places on the plane, the names of
 * clusters, and the places that are kept in the store's folder. */
#include "base/base.h"
#include "base/crc32c.h"
#include "commands/clusters.h"
#include "commands/layout.h"
#include "commands/neighbours.h"
#include "commands/saved_map.h"
#include "support/op_kit.h"
#include "support/test.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static lode_error err;
static const lode_progress quiet;

/* -0.5 to 0.5, the same in every run */
static double next_random(void) {
  static uint64_t seed = 11;
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(seed >> 11) * 0x1p-53 - 0.5;
}

static bool stop_at_third(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return ++*(int *)ctx < 3;
}

/* ---- Neighbours ---- */

static double distance_of(const float *v, size_t a, size_t b, uint32_t dimension) {
  double sum = 0;
  for (uint32_t i = 0; i < dimension; i++) sum += pow((double)v[a * dimension + i] - v[b * dimension + i], 2);
  return sum;
}

TEST(the_nearest_are_found) {
  enum { N = 300, D = 70, K = 12 };
  static float v[N * D];
  static uint32_t nearest[N * K];
  for (int i = 0; i < N * D; i++) v[i] = (float)(3 + next_random());
  OK(op_neighbours_find(v, N, D, K, nearest, quiet, &err));
  for (size_t r = 0; r < N; r++) {
    double last = distance_of(v, r, nearest[r * K + K - 1], D);
    size_t nearer = 0;
    for (size_t o = 0; o < N; o++) nearer += o != r && distance_of(v, r, o, D) < last * (1 - 1e-3);
    CHECKF(nearer <= K - 1, "row %zu: %zu are nearer than its last", r, nearer);
    for (size_t k = 0; k < K; k++) {
      CHECK(nearest[r * K + k] != r && nearest[r * K + k] < N);
      for (size_t l = 0; l < k; l++) CHECK(nearest[r * K + k] != nearest[r * K + l]);
      CHECK(k == 0 ||
            distance_of(v, r, nearest[r * K + k - 1], D) <= distance_of(v, r, nearest[r * K + k], D) * (1 + 1e-3));
    }
  }
  CHECK(op_neighbours_share(nearest, K, K, nearest, K, K, N) == 1);
  CHECK(op_neighbours_share(nearest, K, 4, nearest + K, K, K, N - 1) < 0.5);
}

/* Equal distances go by index; numbers of any size; no more neighbours than points. */
TEST(neighbours_of_odd_points) {
  enum { N = 9 };
  float v[N * 2];
  uint32_t nearest[N * (N - 1)];
  for (size_t i = 0; i < 2 * N; i++) v[i] = 1;
  OK(op_neighbours_find(v, N, 2, N - 1, nearest, quiet, &err));
  for (uint32_t r = 0; r < N; r++)
    for (uint32_t k = 0; k < N - 1; k++) CHECK(nearest[r * (N - 1) + k] == (k < r ? k : k + 1));
  memset(v, 0, sizeof v);
  OK(op_neighbours_find(v, N, 2, 3, nearest, quiet, &err));
  for (size_t i = 0; i < 2 * N; i++) v[i] = i % 2 ? 3.4e38f : -3.4e38f;
  v[0] = 3.4e38f;
  OK(op_neighbours_find(v, N, 2, 2, nearest, quiet, &err));
  CHECK(nearest[2] == 2 && nearest[3] == 3);
  for (size_t i = 0; i < 2 * N; i++) v[i] = 1e-45f * (float)(i / 2);
  OK(op_neighbours_find(v, N, 2, 2, nearest, quiet, &err));
  CHECK(nearest[0] == 1 && nearest[1] == 2);
  OK(op_neighbours_find(v, 0, 2, 0, nearest, quiet, &err));
}

/* ---- Places ---- */

enum { BLOBS = 4, EACH = 60, MANY = BLOBS * EACH, DEEP = 24, NEAR = 15 };

static void fill_blobs(float *v) {
  double centre[BLOBS][DEEP];
  for (int b = 0; b < BLOBS; b++)
    for (int i = 0; i < DEEP; i++) centre[b][i] = 2 * next_random();
  for (int r = 0; r < MANY; r++)
    for (int i = 0; i < DEEP; i++) v[r * DEEP + i] = (float)(centre[r % BLOBS][i] + next_random());
}

static void place(const uint32_t *nearest, double *xy) {
  op_layout_points points = {.n = MANY, .nearest = nearest, .k = NEAR, .stride = NEAR, .xy = xy};
  OK(op_layout_compute(&points, quiet, &err));
  for (size_t i = 0; i < 2 * MANY; i++) CHECKF(isfinite(xy[i]) && fabs(xy[i]) <= 1, "%zu: %g", i, xy[i]);
}

TEST(neighbours_stay_together) {
  static float v[MANY * DEEP], plane[2 * MANY];
  static double xy[2 * MANY], again[2 * MANY];
  static uint32_t nearest[MANY * NEAR], shown[MANY * NEAR];
  fill_blobs(v);
  OK(op_neighbours_find(v, MANY, DEEP, NEAR, nearest, quiet, &err));
  place(nearest, xy);
  for (size_t i = 0; i < 2 * MANY; i++) plane[i] = (float)xy[i];
  OK(op_neighbours_find(plane, MANY, 2, NEAR, shown, quiet, &err));
  double kept = op_neighbours_share(shown, NEAR, 10, nearest, NEAR, NEAR, MANY);
  CHECKF(kept > 0.5, "%g of the neighbours are kept", kept); /* by chance: 0.06 */
  size_t apart = 0;
  for (size_t r = 0; r < MANY; r++)
    for (size_t k = 0; k < 5; k++) apart += shown[r * NEAR + k] % BLOBS != r % BLOBS;
  CHECKF(apart < MANY * 5 / 50, "%zu of %d neighbours on the map are of another blob", apart, MANY * 5);
  place(nearest, again);
  CHECK(memcmp(xy, again, sizeof xy) == 0);
  int calls = 0;
  op_layout_points points = {.n = MANY, .nearest = nearest, .k = NEAR, .stride = NEAR, .xy = xy};
  CHECK(op_layout_compute(&points, (lode_progress){stop_at_third, &calls}, &err) == LODE_CANCELLED && calls == 3);
}

/* Points that are all the same, few points, a chain, a star: places that are finite and apart. */
TEST(places_of_odd_graphs) {
  static double xy[2 * MANY];
  static uint32_t nearest[MANY * NEAR];
  for (int shape = 0; shape < 3; shape++) {
    memset(xy, 0, sizeof xy);
    for (uint32_t r = 0; r < MANY; r++)
      for (uint32_t k = 0; k < NEAR; k++) {
        uint32_t other = shape == 0 ? (r + k + 1) % MANY : shape == 1 ? k : r / NEAR * NEAR + k;
        nearest[r * NEAR + k] = other == r ? (r + NEAR) % MANY : other;
      }
    place(nearest, xy);
    size_t same = 0;
    for (size_t a = 0; a < MANY; a++)
      for (size_t b = 0; b < a; b++) same += xy[2 * a] == xy[2 * b] && xy[2 * a + 1] == xy[2 * b + 1];
    CHECKF(same == 0, "shape %d: %zu pairs are in the same place", shape, same);
  }
  double three[6] = {0, 0, 0, 0, 0, 0}, two[4] = {0.5, 0.5, -1, 1};
  uint32_t others[] = {1, 2, 0, 2, 0, 1};
  op_layout_points points = {.n = 3, .nearest = others, .k = 2, .stride = 2, .xy = three};
  OK(op_layout_compute(&points, quiet, &err));
  CHECK(three[0] != three[2] || three[1] != three[3]);
  points = (op_layout_points){.n = 2, .nearest = others, .k = 1, .stride = 2, .xy = two};
  OK(op_layout_compute(&points, quiet, &err));
  CHECK(two[0] == 0.5 && two[3] == 1); /* as they were */
}

/* ---- Clusters ---- */

TEST(clusters_have_names) {
  enum { N = 300 };
  static double xy[2 * N];
  static op_cluster_point points[N];
  static uint8_t of[N];
  static const char *const texts[] = {"the harbour has ships", "the garden has roses", "THE KITCHEN has knives"};
  op_clusters clusters = {.of = of};
  for (int i = 0; i < N; i++) {
    xy[2 * i] = (i % 3 - 1) * 0.7 + 0.1 * next_random();
    xy[2 * i + 1] = (i % 3 == 1 ? 0.8 : -0.8) + 0.1 * next_random();
    points[i].text = str_of(texts[i % 3]);
    if (i % 3 == 0) points[i].path = str_of("src/sea/harbour.c");
  }
  OK(op_clusters_find(xy, points, N, &clusters, &err));
  CHECKF(clusters.n == 3, "%zu", clusters.n);
  for (int i = 0; i < N; i++) {
    CHECK(of[i] == of[i % 3] && of[i] < clusters.n);
    const char *name = clusters.names[of[i]], *want[] = {"src/sea", "garden", "kitchen"};
    CHECKF(strstr(name, want[i % 3]) && !strstr(name, "has"), "%s", name);
  }
  /* No words, no place of its own, no points: names that are made up, or none */
  for (int i = 0; i < N; i++) points[i] = (op_cluster_point){STR_LIT("\xff\xfe a b"), {0}};
  OK(op_clusters_find(xy, points, N, &clusters, &err));
  CHECKF(clusters.n == 3 && strcmp(clusters.names[1], "group 2") == 0, "%s", clusters.names[1]);
  memset(xy, 0, sizeof xy);
  OK(op_clusters_find(xy, points, N, &clusters, &err));
  CHECK(clusters.n == 1 && of[N - 1] == 0);
  OK(op_clusters_find(xy, points, 0, &clusters, &err));
  CHECK(clusters.n == 0);
}

/* However many places there are, names are few and all different. */
TEST(names_are_few_and_different) {
  enum { N = 4000 };
  static double xy[2 * N];
  static op_cluster_point points[N];
  static uint8_t of[N];
  op_clusters clusters = {.of = of};
  for (int i = 0; i < N; i++) {
    xy[2 * i] = (i % 10) / 5.0 - 0.9 + 0.01 * next_random();
    xy[2 * i + 1] = (i / 10 % 10) / 5.0 - 0.9 + 0.01 * next_random();
    points[i] = (op_cluster_point){i % 2 ? STR_LIT("even waves") : STR_LIT("odd stones"), STR_LIT("a/b/c/d.c")};
  }
  OK(op_clusters_find(xy, points, N, &clusters, &err));
  CHECKF(clusters.n > 1 && clusters.n <= OP_MAX_CLUSTERS, "%zu", clusters.n);
  for (size_t a = 0; a < clusters.n; a++)
    for (size_t b = 0; b < a; b++) CHECKF(strcmp(clusters.names[a], clusters.names[b]) != 0, "%s", clusters.names[a]);
}

/* ---- What is kept ---- */

enum { KEPT = 5 };

static op_saved_map map_of(double *xy) {
  op_saved_map map = {.slot = 3, .n = KEPT, .xy = xy, .kept = {0.123456789, 1}};
  for (size_t i = 0; i < sizeof map.digest; i++) map.digest[i] = (uint8_t)(i + 1);
  return map;
}

TEST(places_are_kept) {
  double xy[2 * KEPT] = {-1, 1, 0.12345678, -1e-9, 0, 0.5, -0.25, 0.75, 1, -1}, back[2 * KEPT];
  const char *dir = test_folder();
  op_saved_map map = map_of(xy), read = map_of(back);
  CHECK(!op_saved_map_read(dir, &read));
  op_saved_map_round(&map);
  CHECK(!signbit(xy[3]) && xy[2] == 0.1235);
  op_saved_map_write(dir, &map);
  CHECK(op_saved_map_read(dir, &read) && memcmp(xy, back, sizeof xy) == 0);
  CHECK(read.kept[0] == map.kept[0] && read.kept[1] == 1);
  read.digest[31]++;
  CHECK(!op_saved_map_read(dir, &read)); /* another input */
  read = map_of(back);
  read.n = KEPT - 1;
  CHECK(!op_saved_map_read(dir, &read));
  read = map_of(back);
  read.slot += OP_SAVED_MAPS;
  CHECK(op_saved_map_read(dir, &read)); /* a bounded number of files */
}

static void write_file(const char *dir, const char *name, const void *bytes, size_t n) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "wb");
  CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static size_t read_file(const char *dir, const char *name, uint8_t *bytes, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "rb");
  if (!f) return 0;
  size_t n = fread(bytes, 1, size, f);
  CHECK(fclose(f) == 0);
  return n;
}

/* Whatever the bytes are: the map that was written, or none. */
TEST(a_damaged_file_is_no_map) {
  double xy[2 * KEPT] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, back[2 * KEPT];
  uint8_t good[256], bad[256];
  const char *dir = test_folder(), *name = "map-3.cache";
  op_saved_map map = map_of(xy), read = map_of(back);
  op_saved_map_write(dir, &map);
  size_t n = read_file(dir, name, good, sizeof good);
  CHECKF(n == 8 + 12 + 32 + 4 * KEPT + 4, "%zu", n);
  for (size_t at = 0; at < n; at++) {
    memcpy(bad, good, n);
    bad[at] ^= (uint8_t)(1 << test_below(8));
    write_file(dir, name, bad, n);
    CHECKF(!op_saved_map_read(dir, &read), "byte %zu", at);
    write_file(dir, name, good, at);
    CHECKF(!op_saved_map_read(dir, &read), "%zu bytes", at);
  }
  good[n] = 0;
  write_file(dir, name, good, n + 1);
  CHECK(!op_saved_map_read(dir, &read));
  /* Places out of range and shares above 1, with a checksum that fits */
  static const struct {
    size_t at;
    uint8_t byte;
  } wrong[] = {{8 + 12 + 32 + 1, 0x7f}, {8 + 12 + 32 + 3, 0x80}, {8 + 4 + 3, 0xff}, {8 + 8 + 3, 0x7f}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    memcpy(bad, good, n);
    bad[wrong[i].at] = wrong[i].byte;
    uint32_t crc = crc32c_update(0, bad, n - 4);
    for (int k = 0; k < 4; k++) bad[n - 4 + (size_t)k] = (uint8_t)(crc >> 8 * k);
    write_file(dir, name, bad, n);
    CHECKF(!op_saved_map_read(dir, &read), "wrong value %zu", i);
  }
  /* A link is neither read nor written through; what is in the way is replaced */
  char link_at[4096];
  write_file(dir, "other", good, n);
  snprintf(link_at, sizeof link_at, "%s/%s", dir, name);
  CHECK(unlink(link_at) == 0 && symlink("other", link_at) == 0 && !op_saved_map_read(dir, &read));
  xy[0] = 1;
  op_saved_map_write(dir, &map);
  CHECK(read_file(dir, "other", bad, sizeof bad) == n && memcmp(bad, good, n) == 0);
  CHECK(op_saved_map_read(dir, &read) && back[0] == 1);
}

/* ---- The operation ---- */

static lode_status run(const char *json) { return op_kit_run("map", json, &err); }

static bool stop_at_placing(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx, (void)done, (void)total;
  return strcmp(phase, "placing") != 0;
}

static bool is_kept(void) {
  struct stat info;
  char path[4096];
  for (int slot = 0; slot < OP_SAVED_MAPS; slot++) {
    snprintf(path, sizeof path, "%s/map-%x.cache", op_kit_store(), (unsigned)slot);
    if (stat(path, &info) == 0) return (info.st_mode & 0777) == 0600;
  }
  return false;
}

TEST(a_map_is_made_once) {
  strbuf text = {0};
  OK(op_kit_run("create", "{\"collection\":\"c\",\"metric\":\"cosine\"}", &err));
  strbuf_addstr(&text, "{\"collection\":\"c\",\"embed\":false,\"records\":[");
  for (int i = 0; i < 90; i++) {
    strbuf_addf(&text,
                "%s{\"id\":\"r%d\",\"document\":\"src/%s.c\\n%s number %d\",\"metadata\":{\"path\":\"src/%s/a.c\","
                "\"span\":\"%d-9/3@0\"},\"embedding\":[",
                i ? "," : "", i, i % 2 ? "sea" : "land", i % 2 ? "harbour" : "garden", i, i % 2 ? "sea" : "land",
                i + 1);
    for (int k = 0; k < 6; k++) strbuf_addf(&text, "%s%.4f", k ? "," : "", 0.4 * next_random() + (k == i % 2 ? 1 : 0));
    strbuf_addstr(&text, "]}");
  }
  strbuf_addf(&text, "]}%c", 0);
  CHECK(!text.failed);
  OK(op_kit_run("add", text.data, &err));
  strbuf_release(&text);
  OK(run("{\"collection\":\"c\",\"where\":{\"path\":\"src/sea/a.c\"}}"));
  OK(run("{\"collection\":\"c\",\"by\":\"pca\"}"));
  CHECK(!is_kept());
  OK(run("{\"collection\":\"c\"}"));
  CHECK(is_kept() && op_kit_answer.n_rows == 90);
  CHECKF(strstr(op_kit_answer.rows.data, "\"cluster\":\"src/sea") &&
             strstr(op_kit_answer.rows.data, "\"path\":\"src/sea/a.c\",\"line\":2"),
         "%s", op_kit_answer.rows.data);
  CHECKF(strstr(op_kit_answer.summary.data, "\"kept\":0."), "%s", op_kit_answer.summary.data);
  strbuf rows = op_kit_answer.rows, summary = op_kit_answer.summary;
  op_kit_answer.rows = op_kit_answer.summary = (strbuf){0};
  op_kit_how.on_step = stop_at_placing;
  OK(run("{\"collection\":\"c\"}")); /* from the file: nothing is placed */
  CHECK(strcmp(rows.data, op_kit_answer.rows.data) == 0 && strcmp(summary.data, op_kit_answer.summary.data) == 0);
  for (int slot = 0; slot < OP_SAVED_MAPS; slot++) {
    char name[24];
    uint8_t bytes[4096];
    snprintf(name, sizeof name, "map-%x.cache", (unsigned)slot);
    size_t n = read_file(op_kit_store(), name, bytes, sizeof bytes);
    if (!n) continue;
    bytes[n / 2] ^= 4;
    write_file(op_kit_store(), name, bytes, n);
  }
  CHECK(run("{\"collection\":\"c\"}") == LODE_CANCELLED); /* the damaged file is no map */
  op_kit_how.on_step = NULL;
  OK(run("{\"collection\":\"c\"}"));
  CHECK(strcmp(rows.data, op_kit_answer.rows.data) == 0);
  OK(op_kit_run("delete", "{\"collection\":\"c\",\"ids\":[\"r7\"]}", &err));
  OK(run("{\"collection\":\"c\"}"));
  CHECK(op_kit_answer.n_rows == 89 && strcmp(rows.data, op_kit_answer.rows.data) != 0);
  strbuf_release(&rows);
  strbuf_release(&summary);
}
