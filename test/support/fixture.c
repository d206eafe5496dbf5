/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c - see fixture.h. */
#include "support/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/query_plan.h"
#include "support/test.h"

void fixture_limits(uint32_t tail_rows, uint32_t graph_rows) {
  segments_limits.tail_rows = tail_rows;
  segments_limits.graph_rows = graph_rows;
  segments_limits.place_bytes = test_below(2) ? 0 : UINT64_MAX;
  segments_limits.exact_rows = 0; /* what has a graph is searched through it */
}

static void open_store(fixture *f) {
  lode_error err;
  lode_open_options o = {
      .create = true, .no_background = f->no_background, .bulk_load = f->bulk_load, .memory_bytes = f->memory_bytes};
  OK(lode_open(f->folder, &o, &f->store, &err));
  lode_collection_options c = {.create = true, .metric = f->oracle.metric};
  OK(lode_collection_open(f->store, (lode_str){"c", 1}, &c, &f->c, &err));
}

void fixture_open(fixture *f, const char *folder, lode_metric metric, uint32_t dim) {
  f->folder = folder;
  f->oracle.metric = metric;
  f->oracle.dim = dim;
  open_store(f);
}

void fixture_reopen(fixture *f) {
  lode_collection_close(f->c);
  lode_close(f->store);
  open_store(f);
}

void fixture_close(fixture *f) {
  lode_collection_close(f->c);
  lode_close(f->store);
  oracle_release(&f->oracle);
  free(f->v);
  *f = (fixture){0};
}

lode_stats fixture_stats(fixture *f) {
  lode_error err;
  lode_stats s;
  OK(lode_store_stats(f->store, &s, &err));
  return s;
}

void fixture_optimize(fixture *f) {
  lode_error err;
  OK(lode_optimize(f->store, (lode_progress){0}, &err));
}

void fixture_wait_built(fixture *f) {
  for (unsigned i = 0; i < 6000 * test_patience(); i++) {
    lode_stats s = fixture_stats(f);
    if (s.tail < segments_limits.tail_rows && s.building == 0) return;
    usleep(10000);
  }
  CHECKF(false, "the background did not build an index in a minute");
}

size_t fixture_files(const char *folder, const char *part, char **paths, size_t most) {
  char path[4400];
  const char *name;
  size_t n = 0;
  snprintf(path, sizeof path, "%s/segments", folder);
  os_dir *d = os_dir_open(path);
  while (d && (name = os_dir_next(d)) != NULL) {
    if (!strstr(name, part) || n == most) continue;
    paths[n] = malloc(strlen(path) + strlen(name) + 2);
    snprintf(paths[n], strlen(path) + strlen(name) + 2, "%s/%s", path, name);
    n++;
  }
  if (d) os_dir_close(d);
  return n;
}

/* ---- Writing ---- */

static lode_collection *writer(const fixture *f) { return f->writer ? f->writer : f->c; }

static lode_status write_records(fixture *f, oracle_kind kind, const lode_record *r, size_t n,
                                 lode_write_result *result, lode_error *err) {
  switch (kind) {
    case ORACLE_UPSERT: return lode_upsert(writer(f), NULL, r, n, result, err);
    case ORACLE_UPDATE: return lode_update(writer(f), NULL, r, n, NULL, result, err);
    case ORACLE_ADD: return lode_add(writer(f), NULL, r, n, LODE_FAIL_EXISTING, result, err);
    default: return lode_add(writer(f), NULL, r, n, LODE_KEEP_EXISTING, result, err);
  }
}

void fixture_write(fixture *f, oracle_kind kind, const oracle_record *r, size_t n) {
  enum { BATCH = 100 };
  lode_error err = {0};
  lode_record records[BATCH];
  strbuf json[BATCH] = {{0}};
  for (size_t from = 0; from < n; from += BATCH) {
    size_t some = n - from < BATCH ? n - from : BATCH;
    lode_write_result got = {0}, wanted;
    bool missing[BATCH];
    for (size_t i = 0; i < some; i++) records[i] = oracle_to_write(&r[from + i], &json[i]);
    lode_status st = write_records(f, kind, records, some, &got, &err);
    lode_status right = oracle_write(&f->oracle, kind, r + from, some, &wanted, missing);
    CHECKF(st == right, "%s (%s), expected %s", lode_status_name(st), err.text, lode_status_name(right));
    CHECK(got.written == wanted.written && got.skipped == wanted.skipped);
  }
  for (size_t i = 0; i < BATCH; i++) strbuf_release(&json[i]);
}

/* Numbers for n more records. */
static size_t take_numbers(fixture *f, size_t n) {
  size_t first = f->n;
  f->n += n;
  f->v = realloc(f->v, (f->n + 1) * sizeof *f->v);
  CHECK(f->v);
  memset(f->v + first, 0, n * sizeof *f->v);
  return first;
}

void fixture_fill(fixture *f, size_t n) {
  oracle_content content = {.owner = -1, .dim = f->oracle.dim};
  size_t first = take_numbers(f, n);
  oracle_record *r = calloc(n + 1, sizeof *r);
  CHECK(r);
  for (size_t i = 0; i < n; i++) {
    oracle_random_record(&r[i], (unsigned)(first + i), &content);
    f->v[first + i] = r[i].vector;
  }
  fixture_write(f, ORACLE_ADD, r, n);
  free(r);
}

void fixture_remove(fixture *f, size_t at) {
  lode_error err;
  size_t deleted;
  lode_str id = oracle_id(&f->oracle.r[at]);
  OK(lode_delete(writer(f), NULL, &(lode_selection){.ids = &id, .n_ids = 1}, &deleted, &err));
  CHECK(deleted == 1);
  oracle_remove(&f->oracle, at);
}

void fixture_change(fixture *f) {
  size_t what = f->oracle.n ? test_below(4) : 0, at = test_below(f->oracle.n + 1);
  if (at == f->oracle.n) what = 0;
  if (what == 0) {
    fixture_fill(f, 1);
  } else if (what == 1) {
    float v[ORACLE_MAX_DIM];
    oracle_record r = {.id_len = f->oracle.r[at].id_len};
    memcpy(r.id, f->oracle.r[at].id, sizeof r.id);
    oracle_random_vector(v, f->oracle.dim);
    oracle_set_vector(&r, v, f->oracle.dim);
    fixture_write(f, ORACLE_UPDATE, &r, 1);
  } else {
    fixture_remove(f, at);
  }
}

/* ---- Clustered vectors ---- */

/* A hash that is a number from -1 to 1: centres of clusters. */
static float centre(uint32_t cluster, uint32_t j) {
  uint64_t x = ((uint64_t)cluster << 32 | j) * 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  return (float)((double)(x & 0xFFFFFF) / 8388608.0 - 1.0);
}

void fixture_random(const fixture *f, float *out) {
  uint32_t cluster = (uint32_t)test_below(20);
  for (uint32_t j = 0; j < f->oracle.dim; j++)
    out[j] = centre(cluster, j) + (float)((double)test_below(2000) / 2000.0 - 0.5);
}

static oracle_record numbered(size_t number) {
  oracle_record r = {0};
  r.id_len = (size_t)snprintf(r.id, sizeof r.id, "%zu", number);
  return r;
}

static void add_numbered(fixture *f, const float *v, size_t n) {
  enum { BATCH = 1000 };
  float random[ORACLE_MAX_DIM];
  size_t first = take_numbers(f, n), dim = f->oracle.dim;
  strbuf *json = calloc(BATCH, sizeof *json);
  lode_record *records = calloc(BATCH, sizeof *records);
  lode_error err;
  CHECK(json && records);
  for (size_t i = 0; i < n; i++) {
    oracle_record r = numbered(first + i);
    r.has_meta = true;
    r.meta = (oracle_meta){1, {{.n = 1, .v = {(uint16_t)oracle_int((first + i) % 100)}}}};
    if (!v) fixture_random(f, random);
    oracle_set_vector(&r, v ? v + i * dim : random, f->oracle.dim);
    f->v[first + i] = r.vector;
    oracle_append(&f->oracle, &r);
  }
  for (size_t from = 0; from < n; from += BATCH) {
    size_t some = n - from < BATCH ? n - from : BATCH;
    const oracle_record *r = &f->oracle.r[f->oracle.n - n + from];
    for (size_t i = 0; i < some; i++) records[i] = oracle_to_write(&r[i], &json[i]);
    OK(lode_add(writer(f), NULL, records, some, LODE_FAIL_EXISTING, NULL, &err));
  }
  for (size_t i = 0; i < BATCH; i++) strbuf_release(&json[i]);
  free(json);
  free(records);
}

void fixture_add(fixture *f, size_t n) { add_numbered(f, NULL, n); }

void fixture_add_vectors(fixture *f, const float *v, size_t n) { add_numbered(f, v, n); }

static size_t find_numbered(const fixture *f, size_t number) {
  oracle_record r = numbered(number);
  return oracle_find(&f->oracle, oracle_id(&r));
}

bool fixture_alive(const fixture *f, size_t i) { return find_numbered(f, i) != SIZE_MAX; }

void fixture_delete(fixture *f, size_t first, size_t n) {
  lode_error err;
  size_t deleted, m = 0;
  lode_str *ids = calloc(n + 1, sizeof *ids);
  oracle_record *gone = calloc(n + 1, sizeof *gone);
  CHECK(ids && gone);
  for (size_t i = first; i < first + n && i < f->n; i++) {
    size_t at = find_numbered(f, i);
    if (at == SIZE_MAX) continue;
    gone[m] = f->oracle.r[at];
    ids[m] = oracle_id(&gone[m]);
    m++;
    oracle_remove(&f->oracle, at);
  }
  if (m) OK(lode_delete(writer(f), NULL, &(lode_selection){.ids = ids, .n_ids = m}, &deleted, &err));
  if (m) CHECK(deleted == m);
  free(ids);
  free(gone);
}

void fixture_delete_one(fixture *f, size_t i) { fixture_delete(f, i, 1); }

void fixture_update(fixture *f, size_t i) {
  float v[ORACLE_MAX_DIM];
  oracle_record r = numbered(i);
  if (!fixture_alive(f, i)) return;
  fixture_random(f, v);
  oracle_set_vector(&r, v, f->oracle.dim);
  f->v[i] = r.vector;
  fixture_write(f, ORACLE_UPDATE, &r, 1);
}

/* ---- Queries ---- */

void fixture_check_query_for(fixture *f, const float *v, size_t queries, size_t k, const oracle_selection *s) {
  lode_error err;
  lode_result *rows;
  unsigned include = (unsigned)test_below(8);
  size_t at = 0;
  oracle_hit *hits = calloc(f->oracle.n + 1, sizeof *hits);
  CHECK(hits);
  lode_query_request q = {
      .vectors = v, .dimension = f->oracle.dim, .n = queries, .k = k, .select = oracle_request(s), .include = include};
  OK(lode_query(f->c, &q, &rows, &err));
  for (size_t i = 0; i < queries; i++) {
    size_t n = oracle_nearest(&f->oracle, v + i * f->oracle.dim, s, hits);
    oracle_check_nearest(rows, &at, i, hits, n < k ? n : k, include);
  }
  CHECKF(lode_result_count(rows) == at, "%zu rows, expected %zu", lode_result_count(rows), at);
  free(hits);
  lode_result_free(rows);
}

void fixture_check_query(fixture *f, size_t k, const oracle_selection *s) {
  float v[ORACLE_MAX_DIM];
  oracle_random_vector(v, f->oracle.dim);
  fixture_check_query_for(f, v, 1, k, s);
}

static size_t number_of(lode_str id) {
  char text[24] = "";
  CHECK(id.len < sizeof text);
  memcpy(text, id.data, id.len);
  return strtoul(text, NULL, 10);
}

void fixture_query(fixture *f, const float *q, size_t k, const lode_query_request *knobs, const oracle_filter *where,
                   fixture_answer *a) {
  lode_error err;
  lode_query_request r = knobs ? *knobs : (lode_query_request){0};
  lode_result *result;
  r.vectors = q;
  r.dimension = f->oracle.dim;
  r.n = 1;
  r.k = k;
  if (where) r.select = oracle_request(&(oracle_selection){.where = where});
  OK(lode_query(f->c, &r, &result, &err));
  a->n = lode_result_count(result);
  CHECK(a->n <= 4096);
  for (size_t i = 0; i < a->n; i++) {
    const lode_row *row = lode_result_at(result, i);
    a->id[i] = number_of(row->id);
    a->distance[i] = row->distance;
  }
  lode_result_free(result);
}

double fixture_recall(const fixture *f, const float *q, size_t k, const oracle_filter *where, const fixture_answer *a) {
  double *all = calloc(f->oracle.n + 1, sizeof *all), *by_number = calloc(f->n + 1, sizeof *by_number);
  size_t n = 0;
  CHECK(all && by_number);
  for (size_t i = 0; i < f->n; i++) by_number[i] = NAN;
  for (size_t i = 0; i < f->oracle.n; i++) {
    const oracle_record *r = &f->oracle.r[i];
    if (!oracle_match(where, r)) continue;
    all[n] = oracle_distance(f->oracle.metric, q, r->vector, r->dim);
    by_number[number_of(oracle_id(r))] = all[n++];
  }
  for (size_t i = 0; i < a->n; i++) {
    CHECK(a->id[i] < f->n);
    double right = by_number[a->id[i]];
    CHECKF(!isnan(right), "record %zu should not be there, or not twice", a->id[i]);
    CHECKF(right == a->distance[i], "record %zu is at %.9g, expected %.9g", a->id[i], a->distance[i], right);
    by_number[a->id[i]] = NAN;
  }
  double recall = oracle_recall(all, n, k, a->distance, a->n);
  free(all);
  free(by_number);
  return recall;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

double fixture_mean_recall(fixture *f, size_t queries, size_t k, const lode_query_request *knobs,
                           const oracle_filter *where, double *low) {
  float q[ORACLE_MAX_DIM];
  double *all = malloc(queries * sizeof *all), sum = 0;
  fixture_answer *a = malloc(sizeof *a);
  CHECK(all && a);
  for (size_t i = 0; i < queries; i++) {
    fixture_random(f, q);
    fixture_query(f, q, k, knobs, where, a);
    all[i] = fixture_recall(f, q, k, where, a);
    sum += all[i];
  }
  qsort(all, queries, sizeof *all, by_value);
  if (low) *low = all[queries / 100];
  free(all);
  free(a);
  return sum / (double)queries;
}
