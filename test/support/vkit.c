/* SPDX-License-Identifier: Apache-2.0 */
/* vkit.c - see vkit.h. */
#include "support/vkit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/test.h"

void vkit_limits(uint32_t tail_rows, uint32_t graph_rows) {
  engine_limits.tail_rows = tail_rows;
  engine_limits.graph_rows = graph_rows;
}

static void open_store(vkit *k) {
  lode_error err;
  lode_open_options o = {
      .create = true, .no_background = k->no_background, .bulk_load = k->bulk_load, .memory_bytes = k->memory_bytes};
  OK(lode_open(k->folder, &o, &k->store, &err));
  lode_collection_options c = {.create = true, .metric = k->metric};
  OK(lode_collection_open(k->store, (lode_str){"c", 1}, &c, &k->c, &err));
}

void vkit_open(vkit *k, const char *folder, lode_metric metric, uint32_t dim) {
  k->folder = folder;
  k->metric = metric;
  k->dim = dim;
  open_store(k);
}

void vkit_reopen(vkit *k) {
  lode_collection_close(k->c);
  lode_close(k->store);
  open_store(k);
}

void vkit_close(vkit *k) {
  lode_collection_close(k->c);
  lode_close(k->store);
  free(k->v);
  free(k->alive);
  free(k->group);
  *k = (vkit){0};
}

/* A hash that is a number from -1 to 1: centres of clusters. */
static float centre(uint32_t cluster, uint32_t j) {
  uint64_t x = ((uint64_t)cluster << 32 | j) * 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  return (float)((double)(x & 0xFFFFFF) / 8388608.0 - 1.0);
}

void vkit_random(const vkit *k, float *out) {
  uint32_t cluster = (uint32_t)test_below(20);
  for (uint32_t j = 0; j < k->dim; j++) out[j] = centre(cluster, j) + (float)((double)test_below(2000) / 2000.0 - 0.5);
}

static void put(vkit *k, size_t first, size_t n) {
  lode_error err;
  lode_record *r = calloc(n, sizeof *r);
  char *text = malloc(n * 96);
  for (size_t i = 0; i < n; i++) {
    char *p = text + i * 96;
    int len = snprintf(p, 24, "%zu", first + i);
    k->group[first + i] = (int)((first + i) % 100);
    int meta = snprintf(p + 24, 72, "{\"g\":%d}", k->group[first + i]);
    r[i] = (lode_record){.id = {p, (size_t)len},
                         .metadata = {p + 24, (size_t)meta},
                         .vector = k->v + (first + i) * k->dim,
                         .dimension = k->dim};
    k->alive[first + i] = true;
  }
  for (size_t at = 0; at < n; at += 1000)
    OK(lode_add(k->c, NULL, r + at, n - at < 1000 ? n - at : 1000, LODE_FAIL_EXISTING, NULL, &err));
  free(r);
  free(text);
}

static void make_room(vkit *k, size_t n) {
  k->cap = k->n + n;
  k->v = realloc(k->v, (k->cap * k->dim + 1) * sizeof *k->v);
  k->alive = realloc(k->alive, k->cap + 1);
  k->group = realloc(k->group, (k->cap + 1) * sizeof *k->group);
}

void vkit_add(vkit *k, size_t n) {
  make_room(k, n);
  for (size_t i = 0; i < n; i++) vkit_random(k, k->v + (k->n + i) * k->dim);
  put(k, k->n, n);
  k->n += n;
}

void vkit_add_vectors(vkit *k, const float *v, size_t n) {
  make_room(k, n);
  memcpy(k->v + k->n * k->dim, v, n * k->dim * sizeof *v);
  put(k, k->n, n);
  k->n += n;
}

void vkit_delete(vkit *k, size_t first, size_t n) {
  lode_error err;
  size_t deleted, m = 0;
  lode_str *ids = calloc(n + 1, sizeof *ids);
  char *text = malloc(n * 24 + 1);
  for (size_t i = first; i < first + n && i < k->n; i++) {
    if (!k->alive[i]) continue;
    char *p = text + m * 24;
    ids[m] = (lode_str){p, (size_t)snprintf(p, 24, "%zu", i)};
    m++;
    k->alive[i] = false;
  }
  lode_selection s = {.ids = ids, .n_ids = m};
  if (m) OK(lode_delete(k->c, NULL, &s, &deleted, &err));
  if (m) CHECK(deleted == m);
  free(ids);
  free(text);
}

void vkit_delete_one(vkit *k, size_t i) { vkit_delete(k, i, 1); }

void vkit_update(vkit *k, size_t i) {
  lode_error err;
  char id[24];
  if (!k->alive[i]) return;
  vkit_random(k, k->v + i * k->dim);
  lode_record r = {
      .id = {id, (size_t)snprintf(id, sizeof id, "%zu", i)}, .vector = k->v + i * k->dim, .dimension = k->dim};
  OK(lode_update(k->c, NULL, &r, 1, NULL, NULL, &err));
}

size_t vkit_living(const vkit *k) {
  size_t n = 0;
  for (size_t i = 0; i < k->n; i++) n += k->alive[i];
  return n;
}

lode_stats vkit_stats(vkit *k) {
  lode_error err;
  lode_stats s;
  OK(lode_store_stats(k->store, &s, &err));
  return s;
}

void vkit_optimize(vkit *k) {
  lode_error err;
  OK(lode_optimize(k->store, (lode_progress){0}, &err));
}

void vkit_wait_built(vkit *k) {
  for (unsigned i = 0; i < 6000 * test_patience(); i++) {
    lode_stats s = vkit_stats(k);
    if (s.tail < engine_limits.tail_rows && s.building == 0) return;
    usleep(10000);
  }
  CHECKF(false, "the background did not build an index in a minute");
}

void vkit_query(vkit *k, const float *q, size_t want, const lode_query_request *knobs, const char *where,
                vkit_answer *a) {
  lode_error err;
  lode_query_request r = knobs ? *knobs : (lode_query_request){0};
  lode_result *result;
  r.vectors = q;
  r.dimension = k->dim;
  r.n = 1;
  r.k = want;
  if (where) r.select.where = str_of(where);
  OK(lode_query(k->c, &r, &result, &err));
  a->n = lode_result_count(result);
  CHECK(a->n <= 4096);
  for (size_t i = 0; i < a->n; i++) {
    const lode_row *row = lode_result_at(result, i);
    char id[24] = "";
    CHECK(row->id.len < sizeof id);
    memcpy(id, row->id.data, row->id.len);
    a->id[i] = strtoul(id, NULL, 10);
    a->distance[i] = row->distance;
  }
  lode_result_free(result);
}

static double exact(const vkit *k, const float *q, size_t i) {
  const float *v = k->v + i * k->dim;
  double dot = 0, l2 = 0, nq = 0, nv = 0;
  for (uint32_t j = 0; j < k->dim; j++) {
    dot += (double)q[j] * v[j];
    l2 += ((double)q[j] - v[j]) * ((double)q[j] - v[j]);
    nq += (double)q[j] * q[j];
    nv += (double)v[j] * v[j];
  }
  if (k->metric == LODE_L2) return l2;
  if (k->metric == LODE_IP) return 1 - dot;
  return nq > 0 && nv > 0 ? 1 - dot / sqrt(nq * nv) : 1;
}

static int by_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static bool takes_part(const vkit *k, size_t i, int below) { return k->alive[i] && (below < 0 || k->group[i] < below); }

double vkit_recall(vkit *k, const float *q, size_t want, int below, const vkit_answer *a) {
  double *d = malloc((k->n + 1) * sizeof *d);
  bool *seen = calloc(k->n + 1, 1);
  size_t n = 0, good = 0;
  for (size_t i = 0; i < k->n; i++)
    if (takes_part(k, i, below)) d[n++] = exact(k, q, i);
  if (n) qsort(d, n, sizeof *d, by_double);
  size_t wanted = want < n ? want : n;
  CHECKF(a->n == wanted, "%zu rows instead of %zu", a->n, wanted);
  for (size_t i = 0; i < a->n; i++) {
    CHECK(a->id[i] < k->n);
    CHECKF(!seen[a->id[i]], "record %zu twice", a->id[i]);
    CHECKF(takes_part(k, a->id[i], below), "record %zu should not be there", a->id[i]);
    seen[a->id[i]] = true;
    double e = exact(k, q, a->id[i]);
    CHECKF(fabs(e - a->distance[i]) <= 1e-4 * (1 + fabs(e)), "distance %g instead of %g", a->distance[i], e);
    CHECK(i == 0 || a->distance[i - 1] <= a->distance[i]);
    good += e <= d[wanted - 1] + 1e-6 * (1 + fabs(d[wanted - 1]));
  }
  free(d);
  free(seen);
  return wanted ? (double)good / (double)wanted : 1;
}

double vkit_mean(vkit *k, size_t queries, size_t want, const lode_query_request *knobs, const char *where, int below,
                 double *low) {
  float *q = malloc(k->dim * sizeof *q);
  double *all = malloc(queries * sizeof *all), sum = 0;
  vkit_answer *a = malloc(sizeof *a);
  for (size_t i = 0; i < queries; i++) {
    vkit_random(k, q);
    vkit_query(k, q, want, knobs, where, a);
    all[i] = vkit_recall(k, q, want, below, a);
    sum += all[i];
  }
  qsort(all, queries, sizeof *all, by_double);
  if (low) *low = all[queries / 100];
  free(q);
  free(all);
  free(a);
  return sum / (double)queries;
}

size_t vkit_files(const char *folder, const char *part, char **paths, size_t most) {
  char path[4400];
  const char *name;
  size_t n = 0;
  snprintf(path, sizeof path, "%s/segments", folder);
  os_dir *f = os_dir_open(path);
  while (f && (name = os_dir_next(f)) != NULL) {
    if (!strstr(name, part) || n == most) continue;
    paths[n] = malloc(strlen(path) + strlen(name) + 2);
    snprintf(paths[n], strlen(path) + strlen(name) + 2, "%s/%s", path, name);
    n++;
  }
  if (f) os_dir_close(f);
  return n;
}
