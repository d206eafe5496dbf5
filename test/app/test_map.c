/* SPDX-License-Identifier: Apache-2.0 */
/* test_map.c - vectors on the plane: the projection against what is known of it, and `db map` from a store to its rows.
 */
#include "base/base.h"
#include "server/page.h"
#include "commands/projection.h"
#include "support/fault.h"
#include "support/op_kit.h"
#include "support/test.h"

#include <math.h>

static lode_error err;
static const lode_progress quiet;

/* ---- The projection ---- */

static uint64_t seed = 7;
static double next_random(void) { /* -0.5 to 0.5 */
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(seed >> 11) * 0x1p-53 - 0.5;
}

static float *random_vectors(size_t n, uint32_t dimension) {
  float *v = mem_calloc(n * dimension, sizeof *v);
  CHECK(v);
  for (size_t i = 0; i < n * dimension; i++) v[i] = (float)next_random();
  return v;
}

static op_projection project(float *vectors, size_t n, uint32_t dimension, bool unit, double *xy) {
  op_projection plane = {.vectors = vectors, .n = n, .dimension = dimension, .unit = unit, .xy = xy};
  OK(op_projection_compute(&plane, quiet, &err));
  for (size_t i = 0; i < 2 * n; i++) CHECKF(isfinite(xy[i]) && fabs(xy[i]) <= 1, "coordinate %zu is %g", i, xy[i]);
  CHECKF(plane.kept >= 0 && plane.kept <= 1, "%g", plane.kept);
  return plane;
}

/* Points on a known plane in 40 dimensions, with noise across: distances between points on the map are those on the
 * plane. */
TEST(a_plane_in_many_dimensions_is_found) {
  enum { N = 300, D = 40 };
  static float v[N * D];
  static double u[N], w[N], xy[2 * N];
  double a[D], b[D], aa = 0, ab = 0, bb = 0, largest = 0;
  for (int i = 0; i < D; i++) {
    a[i] = next_random();
    aa += a[i] * a[i];
  }
  for (int i = 0; i < D; i++) {
    a[i] /= sqrt(aa);
    b[i] = next_random();
    ab += a[i] * b[i];
  }
  for (int i = 0; i < D; i++) {
    b[i] -= ab * a[i];
    bb += b[i] * b[i];
  }
  for (int i = 0; i < D; i++) b[i] /= sqrt(bb);
  for (int r = 0; r < N; r++) {
    u[r] = 20 * next_random();
    w[r] = 8 * next_random();
    for (int i = 0; i < D; i++) v[r * D + i] = (float)(3 + u[r] * a[i] + w[r] * b[i] + 0.01 * next_random());
  }
  op_projection plane = project(v, N, D, false, xy);
  CHECKF(plane.kept > 0.999, "%g", plane.kept);
  /* One scale for all distances */
  double scale = 0;
  for (int r = 1; r < N; r++) {
    double here = hypot(xy[2 * r] - xy[0], xy[2 * r + 1] - xy[1]), there = hypot(u[r] - u[0], w[r] - w[0]);
    if (there < 1) continue;
    if (scale <= 0) scale = here / there;
    CHECKF(fabs(here / there / scale - 1) < 0.02, "point %d: %g against %g", r, here / there, scale);
  }
  /* The wider spread is x, and the axes do not correlate */
  double xx = 0, yy = 0, both = 0, mx = 0, my = 0;
  for (int r = 0; r < N; r++) {
    xx += xy[2 * r] * xy[2 * r];
    yy += xy[2 * r + 1] * xy[2 * r + 1];
    both += xy[2 * r] * xy[2 * r + 1];
    mx += xy[2 * r];
    my += xy[2 * r + 1];
    largest = fmax(largest, fmax(fabs(xy[2 * r]), fabs(xy[2 * r + 1])));
  }
  CHECKF(xx > 3 * yy && fabs(both) < 1e-6 * xx, "%g %g %g", xx, yy, both);
  CHECKF(fabs(mx) < 1e-4 * N && fabs(my) < 1e-4 * N && fabs(largest - 1) < 1e-12, "%g %g %g", mx, my, largest);
}

TEST(equal_input_gives_equal_bits) {
  enum { N = 200, D = 33 };
  double one[2 * N], two[2 * N];
  float *v = random_vectors(N, D), *copy = mem_calloc(N * D, sizeof *copy);
  CHECK(copy);
  memcpy(copy, v, N * D * sizeof *v);
  for (int unit = 0; unit < 2; unit++) {
    float a[N * D], b[N * D];
    memcpy(a, copy, sizeof a);
    memcpy(b, copy, sizeof b);
    project(a, N, D, unit, one);
    project(b, N, D, unit, two);
    CHECK(memcmp(one, two, sizeof one) == 0);
    /* the sign of each axis is settled: its farthest coordinate is positive */
    for (int k = 0; k < 2; k++) {
      double far = 0;
      for (int r = 0; r < N; r++)
        if (fabs(one[2 * r + k]) > fabs(far)) far = one[2 * r + k];
      CHECK(far > 0);
    }
  }
  mem_free(v);
  mem_free(copy);
}

TEST(input_without_a_plane) {
  double xy[2 * 64];
  float one[] = {3, 4, 5};
  project(one, 1, 3, false, xy);
  CHECK(xy[0] == 0 && xy[1] == 0);
  project(one, 0, 3, true, xy); /* none at all */

  float equal[64 * 5];
  for (int i = 0; i < 64 * 5; i++) equal[i] = 0.1f * (float)(i % 5 + 1);
  op_projection plane = project(equal, 64, 5, true, xy);
  CHECK(plane.kept == 1);
  for (int i = 0; i < 128; i++) CHECKF(xy[i] == 0, "%d: %g", i, xy[i]);

  float zeros[64 * 2] = {0};
  project(zeros, 64, 2, true, xy);
  for (int i = 0; i < 128; i++) CHECK(xy[i] == 0);

  float line[64]; /* dimension 1: everything on x */
  for (int i = 0; i < 64; i++) line[i] = (float)i;
  plane = project(line, 64, 1, false, xy);
  CHECKF(plane.kept > 0.999999, "%g", plane.kept);
  for (int i = 0; i < 64; i++)
    CHECKF(xy[2 * i + 1] == 0 && fabs(fabs(xy[2 * i]) - fabs(i - 31.5) / 31.5) < 1e-6, "%d: %g %g", i, xy[2 * i],
           xy[2 * i + 1]);

  float row[64 * 7]; /* all on one line in seven dimensions */
  for (int r = 0; r < 64; r++)
    for (int i = 0; i < 7; i++) row[r * 7 + i] = (float)(r * (i + 1));
  project(row, 64, 7, false, xy);
  for (int i = 0; i < 64; i++) CHECKF(fabs(xy[2 * i + 1]) < 1e-5, "%d: %g", i, xy[2 * i + 1]);
}

TEST(the_largest_dimension_and_the_largest_numbers) {
  enum { N = 5, D = LODE_MAX_DIMENSION };
  double xy[2 * N];
  float *v = random_vectors(N, D);
  op_projection plane = project(v, N, D, true, xy);
  CHECKF(plane.kept > 0.4, "%g", plane.kept); /* four directions of about the same variance */
  for (size_t i = 0; i < (size_t)N * D; i++) v[i] = i % 2 ? 3.4e38f : -3.4e38f;
  v[0] = 0;
  project(v, N, D, false, xy);
  for (size_t i = 0; i < (size_t)N * D; i++) v[i] = 1e-45f * (float)(i % 3);
  project(v, N, D, false, xy);
  project(v, N, D, true, xy);
  mem_free(v);
}

static bool stop_at_second(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase;
  (void)total;
  ++*(int *)ctx;
  return done < 2;
}

TEST(it_can_be_cancelled) {
  enum { N = 50, D = 20 };
  double xy[2 * N];
  int calls = 0;
  float *v = random_vectors(N, D);
  op_projection plane = {.vectors = v, .n = N, .dimension = D, .xy = xy};
  CHECK(op_projection_compute(&plane, (lode_progress){stop_at_second, &calls}, &err) == LODE_CANCELLED && calls == 3);
  mem_free(v);
}

/* ---- The operation ---- */

static lode_status run(const char *verb, const char *json) { return op_kit_run(verb, json, &err); }
static bool told(const char *part) { return strstr(op_kit_answer.summary.data, part) != NULL; }

/* `n` records of 8 dimensions in two groups, every `gap`-th without a vector. */
static void fill(size_t n, size_t gap) {
  strbuf text = {0};
  OK(run("create", "{\"collection\":\"c\",\"metric\":\"cosine\",\"if_missing\":true}"));
  strbuf_addstr(&text, "{\"collection\":\"c\",\"embed\":false,\"records\":[");
  for (size_t i = 0; i < n; i++) {
    strbuf_addf(&text,
                "%s{\"id\":\"r%zu\",\"document\":\"record %zu says \xc3\xa9\",\"metadata\":{\"side\":%s,\"n\":%zu}",
                i ? "," : "", i, i, i % 2 ? "\"odd\"" : "true", i);
    if (!gap || i % gap) {
      strbuf_addstr(&text, ",\"embedding\":[");
      for (int k = 0; k < 8; k++)
        strbuf_addf(&text, "%s%.4f", k ? "," : "", next_random() + (k == 0 ? (i % 2 ? 3 : -3) : 0));
      strbuf_addstr(&text, "]");
    }
    strbuf_addstr(&text, "}");
  }
  strbuf_addf(&text, "]}%c", 0);
  CHECK(!text.failed);
  OK(run("add", text.data));
  strbuf_release(&text);
}

TEST(rows_of_a_small_collection) {
  fill(40, 10);
  OK(run("map", "{\"collection\":\"c\",\"key\":\"side\",\"by\":\"pca\"}"));
  CHECKF(op_kit_answer.n_rows == 36 && told("\"records\":40") && told("\"points\":36"), "%zu rows, %s",
         op_kit_answer.n_rows, op_kit_answer.summary.data);
  CHECK(strstr(op_kit_answer.rows.data, "\"label\":\"record 1 says \xc3\xa9\",\"group\":\"odd\"") &&
        strstr(op_kit_answer.rows.data, "\"group\":\"true\""));
  /* The groups part on the axis of largest variance */
  double sides[2] = {0, 0};
  for (const char *p = op_kit_answer.rows.data; (p = strstr(p, "\"x\":")) != NULL; p++) {
    double x = strtod(p + 4, NULL);
    bool odd = strncmp(strstr(p, "\"group\":") + 8, "\"odd\"", 5) == 0;
    CHECKF(sides[odd] * x >= 0 && fabs(x) > 0.2, "%g", x);
    sides[odd] = x;
  }
  CHECK(sides[0] * sides[1] < 0);
  strbuf first = op_kit_answer.rows;
  op_kit_answer.rows = (strbuf){0};
  OK(run("map", "{\"collection\":\"c\",\"key\":\"side\",\"by\":\"pca\"}"));
  CHECK(strcmp(first.data, op_kit_answer.rows.data) == 0);
  strbuf_release(&first);
  OK(run("map", "{\"collection\":\"c\"}"));
  CHECK(strstr(op_kit_answer.rows.data, "\"group\":null") && !strstr(op_kit_answer.rows.data, "odd"));
  OK(run("map", "{\"collection\":\"c\",\"where\":{\"side\":\"odd\"},\"sample\":5}"));
  CHECK(op_kit_answer.n_rows == 5);
  CHECK(run("map", "{\"collection\":\"nope\"}") == LODE_NOT_FOUND &&
        run("map", "{\"collection\":\"c\",\"sample\":0}") == LODE_INVALID);
}

TEST(a_sample_is_spread_and_has_nobody_twice) {
  fill(400, 0);
  OK(run("delete", "{\"collection\":\"c\",\"where\":{\"$and\":[{\"n\":{\"$gt\":100}},{\"n\":{\"$lt\":300}}]}}"));
  OK(run("map", "{\"collection\":\"c\",\"sample\":50}"));
  CHECKF(op_kit_answer.n_rows > 20 && op_kit_answer.n_rows <= 50, "%zu", op_kit_answer.n_rows);
  static bool seen[400];
  size_t early = 0, late = 0;
  for (const char *p = op_kit_answer.rows.data; (p = strstr(p, "\"id\":\"r")) != NULL; p++) {
    size_t i = strtoul(p + 7, NULL, 10);
    CHECKF(i < 400 && !seen[i] && (i <= 100 || i >= 300), "r%zu", i);
    seen[i] = true;
    early += i < 100;
    late += i > 300;
  }
  CHECKF(early > 5 && late > 5, "%zu %zu", early, late);
}

TEST(no_vectors_no_points) {
  fill(3, 1);
  OK(run("map", "{\"collection\":\"c\"}"));
  CHECKF(op_kit_answer.n_rows == 0 && op_kit_answer.nothing && told("\"points\":0"), "%s", op_kit_answer.summary.data);
  OK(run("add", "{\"collection\":\"c\",\"records\":[{\"id\":\"only\",\"embedding\":[1,2]}]}"));
  OK(run("map", "{\"collection\":\"c\"}"));
  CHECKF(op_kit_answer.n_rows == 1 && strstr(op_kit_answer.rows.data, "\"x\":0.0,\"y\":0.0,\"label\":\"\""), "%s",
         op_kit_answer.rows.data);
}

/* Whatever allocation or call of the system fails: an error that says so, or the same map; and op_kit_answer.nothing
 * leaks. */
TEST(memory_and_disk_that_fail) {
  fault_alloc_install();
  fill(30, 10);
  OK(run("map", "{\"collection\":\"c\",\"key\":\"side\",\"sample\":20}"));
  strbuf sound = op_kit_answer.rows;
  op_kit_answer.rows = (strbuf){0};
  uint64_t failed = 0, step = test_full() ? 1 : 7;
  for (uint64_t at = 1 + test_below(step);; at += 1 + test_below(2 * step - 1)) {
    fault_alloc_set(at, false);
    lode_status st = run("map", "{\"collection\":\"c\",\"key\":\"side\",\"sample\":20}");
    uint64_t hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    if (!hits) break;
    CHECKF(st == LODE_NOMEM ||
               (st == LODE_OK && (op_kit_answer.rows.failed || strcmp(op_kit_answer.rows.data, sound.data) == 0)),
           "allocation %llu: %s %s", (unsigned long long)at, lode_status_name(st), err.text);
    failed += st != LODE_OK;
  }
  CHECKF(failed > 5, "%llu", (unsigned long long)failed);
  fault_install(os_api);
  for (uint64_t at = 1;; at += 1 + test_below(2)) {
    fault_set(FAULT_PREAD, at, false, FAULT_EIO);
    lode_status st = run("map", "{\"collection\":\"c\",\"key\":\"side\",\"sample\":20}");
    if (!fault_hits()) break;
    CHECKF(st == LODE_IO || st == LODE_CORRUPT || (st == LODE_OK && strcmp(op_kit_answer.rows.data, sound.data) == 0),
           "read %llu: %s %s", (unsigned long long)at, lode_status_name(st), err.text);
  }
  fault_uninstall();
  strbuf_release(&sound);
}

/* ---- The page ---- */

TEST(the_page_is_one_text_that_asks_nobody) {
  static char html[1 << 20];
  CHECK(server_page_size > 1000 && server_page_size < sizeof html);
  memcpy(html, server_page_bytes, server_page_size);
  CHECK(utf8_valid(html, server_page_size) && strncmp(html, "<!doctype html>", 15) == 0);
  CHECK(!strstr(html, "https://") && !strstr(html, "innerHTML") && !strstr(html, "eval(") && !strstr(html, " style="));
  const char *script = strstr(html, "<script>"), *style = strstr(html, "<style>");
  CHECK(script && style && !strstr(script + 1, "<script") && !strstr(style + 1, "<style"));
  for (const char *p = html; (p = strstr(p, "http://")) != NULL; p++)
    CHECK(strncmp(p, "http://www.w3.org/2000/svg", 26) == 0); /* a name, not a place */
}

/* Digests as `openssl dgst -sha256 -binary | base64` gives them. */
TEST(the_policy_names_the_digests) {
  server_page_headers head, other;
  server_page_headers_of(str_of("<style>a{}</style><script>let a;</script>"), &head);
  CHECKF(strstr(head.policy, "script-src 'sha256-81WALLbUROF1pWdYjuQYKuIcGgY/+TqVJr8UsV6Tkvo='"), "%s", head.policy);
  CHECKF(strstr(head.policy, "style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"), "%s", head.policy);
  server_page_headers_of(str_of("<style>a{}</style><script>let b;</script>"), &other);
  CHECK(strcmp(head.etag, other.etag) != 0 && strcmp(head.policy, other.policy) != 0 && head.etag[0] == '"');
  server_page_headers_of(str_of("<script>"), &head); /* op_kit_answer.nothing to allow */
  CHECK(strcmp(server_page_headers_get()->policy, head.policy) != 0);
}
