/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - see world.h. */
#include "support/world.h"

#include "base/base.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Records ---- */

static const char *const words[] = {"alpha",     "beta", "gamma", "delta", "HttpServer",
                                    "read_file", "x",    "42",    "Zebra", "kilo"};
enum { WORDS = sizeof words / sizeof *words };

void world_vector(const world *w, float *v) {
  for (uint32_t i = 0; i < w->dim; i++)
    v[i] = w->whole ? (float)test_below(3) - 1 : (float)((double)(test_rand() >> 11) / 9007199254740992.0 * 2 - 1);
}

static void random_text(char *text, size_t size, size_t most) {
  size_t n = 1 + test_below(most), at = 0;
  /* Squared, so that the first words are common and the last rare. */
  for (size_t i = 0; i < n && at + 16 < size; i++) {
    size_t r = test_below(WORDS * WORDS), w = 0;
    while ((w + 1) * (w + 1) <= r) w++;
    at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " " : "", words[WORDS - 1 - w]);
  }
}

void world_randomize(const world *w, world_record *r) {
  r->has_vector = test_below(10) != 0;
  r->has_document = test_below(8) != 0;
  world_vector(w, r->v);
  r->n = test_below(5) == 0 ? -1 : (int)test_below(100);
  r->tag = (int)test_below(4);
  random_text(r->text, sizeof r->text, 12);
}

lode_record world_record_of(const world *w, const world_record *r, char *meta, size_t size) {
  if (r->n >= 0)
    snprintf(meta, size, "{\"n\": %d, \"tag\": \"t%d\", \"tags\": [\"t%d\", \"t%d\"], \"odd\": %s}", r->n, r->tag,
             r->tag, r->tag + 1, r->n % 2 ? "true" : "false");
  else
    snprintf(meta, size, "{\"tag\": \"t%d\", \"tags\": [\"t%d\", \"t%d\"]}", r->tag, r->tag, r->tag + 1);
  return (lode_record){.id = str_of(r->id),
                       .document = r->has_document ? str_of(r->text) : (lode_str){NULL, 0},
                       .metadata = str_of(meta),
                       .vector = r->has_vector ? r->v : NULL,
                       .dimension = r->has_vector ? w->dim : 0};
}

world world_make(lode_metric metric, uint32_t dim, bool whole, size_t n, lode_open_options o) {
  lode_error err;
  world w = {.metric = metric, .dim = dim, .whole = whole};
  test_srand(test_seed());
  o.create = o.no_background = true;
  OK(lode_open(test_folder(), &o, &w.store, &err));
  OK(lode_collection_open(w.store, STR_LIT("c"), &(lode_collection_options){.create = true, .metric = metric}, &w.c,
                          &err));
  w.r = calloc(WORLD_MOST, sizeof *w.r);
  CHECK(n <= WORLD_MOST);
  for (size_t from = 0; from < n; from += 100) {
    lode_record batch[100];
    char meta[100][160];
    size_t k = n - from < 100 ? n - from : 100;
    for (size_t i = 0; i < k; i++) {
      world_record *r = &w.r[from + i];
      snprintf(r->id, sizeof r->id, "%zu",
               (from + i) * 2654435761u % 1000003); /* the order of ids is not that of insertion */
      world_randomize(&w, r);
      r->alive = true;
      batch[i] = world_record_of(&w, r, meta[i], sizeof meta[i]);
    }
    OK(lode_add(w.c, NULL, batch, k, LODE_FAIL_EXISTING, NULL, &err));
  }
  w.n = n;
  return w;
}

void world_end(world *w) {
  lode_collection_close(w->c);
  lode_close(w->store);
  free(w->r);
}

/* ---- Answers ---- */

double world_distance(const world *w, const float *q, const float *v) {
  double dot = 0, l2 = 0, qq = 0, vv = 0;
  for (uint32_t i = 0; i < w->dim; i++) {
    dot += (double)q[i] * v[i];
    l2 += ((double)q[i] - v[i]) * ((double)q[i] - v[i]);
    qq += (double)q[i] * q[i];
    vv += (double)v[i] * v[i];
  }
  if (w->metric == LODE_L2) return l2;
  if (w->metric == LODE_IP) return 1 - dot;
  return qq == 0 || vv == 0 ? 1 : 1 - dot / sqrt(qq * vv);
}

static int nearer(const void *a, const void *b) {
  const world_answer *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return strcmp(x->r->id, y->r->id);
}

size_t world_nearest(const world *w, const float *q, world_keep *keep, world_answer *out) {
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) {
    const world_record *r = &w->r[i];
    if (r->alive && r->has_vector && (!keep || keep(r))) out[n++] = (world_answer){r, world_distance(w, q, r->v), 0};
  }
  qsort(out, n, sizeof *out, nearer);
  return n;
}

/* ---- Comparing ---- */

const world_record *world_find(const world *w, lode_str id) {
  for (size_t i = 0; i < w->n; i++)
    if (w->r[i].alive && strlen(w->r[i].id) == id.len && memcmp(w->r[i].id, id.data, id.len) == 0) return &w->r[i];
  return NULL;
}

void world_check_nearest(const world *w, const lode_result *r, size_t from, size_t query, const float *q,
                         world_keep *keep, size_t k) {
  world_answer *want = calloc(w->n + 1, sizeof *want);
  size_t n = world_nearest(w, q, keep, want);
  if (n > k) n = k;
  CHECKF(lode_result_count(r) >= from + n, "%zu rows, wanted %zu", lode_result_count(r), from + n);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(r, from + i);
    const world_record *x = world_find(w, row->id);
    CHECK(row->query == query && row->rank == i && x && x->has_vector && (!keep || keep(x)));
    double d = world_distance(w, q, x->v), tolerance = w->whole && w->metric != LODE_COSINE ? 0 : 2e-5;
    CHECKF(fabs(row->distance - d) <= tolerance, "%s is at %.9g, not %.9g", x->id, d, row->distance);
    CHECKF(fabs(want[i].distance - d) <= tolerance, "rank %zu: %s at %.9g, wanted %s at %.9g", i, x->id, d,
           want[i].r->id, want[i].distance);
    if (tolerance == 0) CHECKF(x == want[i].r, "rank %zu: %s, wanted %s, both at %g", i, x->id, want[i].r->id, d);
    if (i) {
      const lode_row *before = lode_result_at(r, from + i - 1);
      bool ordered = before->distance < row->distance ||
                     (before->distance == row->distance && strcmp(world_find(w, before->id)->id, x->id) < 0);
      CHECKF(ordered, "ranks %zu and %zu are out of order", i - 1, i);
    }
  }
  free(want);
}

size_t world_count(const world *w, world_keep *keep) {
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) n += w->r[i].alive && w->r[i].has_vector && (!keep || keep(&w->r[i]));
  return n;
}

void world_query(const world *w, size_t k, lode_selection select, world_keep *keep) {
  lode_error err;
  lode_result *r;
  float q[WORLD_MOST_DIM];
  world_vector(w, q);
  OK(lode_query(w->c, &(lode_query_request){.vectors = q, .dimension = w->dim, .n = 1, .k = k, .select = select}, &r,
                &err));
  CHECKF(lode_result_count(r) == least(k, world_count(w, keep)), "%zu rows of %zu", lode_result_count(r),
         world_count(w, keep));
  world_check_nearest(w, r, 0, 0, q, keep, k);
  lode_result_free(r);
}

/* ---- Selections ---- */

static bool n_below_3(const world_record *r) { return r->n >= 0 && r->n < 3; }
static bool n_from_20(const world_record *r) { return r->n >= 20; }
static bool n_is_not_7(const world_record *r) { return r->n != 7; }
static bool n_in(const world_record *r) { return r->n == 1 || r->n == 50 || r->n == 99; }
static bool is_tag_1(const world_record *r) { return r->tag == 1; }
static bool has_tag_4(const world_record *r) { return r->tag == 3; }
static bool odd_and_low(const world_record *r) { return r->n >= 0 && r->n % 2 && r->n < 10; }
static bool tag_0_or_n_5(const world_record *r) { return r->tag == 0 || r->n == 5; }
static bool no_n(const world_record *r) { return r->n < 0; }
static bool nothing(const world_record *r) { return r->n > 1000; }
static bool everything(const world_record *r) { return r->n < 1000; }
static bool has_zebra(const world_record *r) { return r->has_document && strstr(r->text, "Zebra"); }
static bool no_zebra(const world_record *r) { return !has_zebra(r); }
static bool zebra_and_tag_1(const world_record *r) { return has_zebra(r) && r->tag == 1; }

const world_filter world_filters[] = {
    {"{\"n\": {\"$lt\": 3}}", NULL, n_below_3},
    {"{\"n\": {\"$gte\": 20}}", NULL, n_from_20},
    {"{\"n\": {\"$ne\": 7}}", NULL, n_is_not_7},
    {"{\"n\": {\"$in\": [99, 1.0, 50, \"1\"]}}", NULL, n_in},
    {"{\"tag\": \"t1\"}", NULL, is_tag_1},
    {"{\"tags\": {\"$contains\": \"t4\"}}", NULL, has_tag_4},
    {"{\"odd\": true, \"n\": {\"$lt\": 10}}", NULL, odd_and_low},
    {"{\"$or\": [{\"tag\": \"t0\"}, {\"n\": 5}]}", NULL, tag_0_or_n_5},
    {"{\"$not\": {\"n\": {\"$gte\": 0}}}", NULL, no_n},
    {"{\"n\": {\"$gt\": 1000}}", NULL, nothing},
    {"{}", NULL, everything},
    {NULL, "{\"$contains\": \"Zebra\"}", has_zebra},
    {NULL, "{\"$not_regex\": \"Z.bra\"}", no_zebra},
    {"{\"tag\": \"t1\"}", "{\"$regex\": \"Zeb\"}", zebra_and_tag_1},
    {"{\"$and\": [{\"tag\": \"t1\"}, {\"#document\": {\"$contains\": \"Zebra\"}}]}", NULL, zebra_and_tag_1},
};
const size_t world_n_filters = sizeof world_filters / sizeof *world_filters;

lode_selection world_selection(size_t f) {
  return (lode_selection){.where = world_filters[f].where ? str_of(world_filters[f].where) : (lode_str){NULL, 0},
                          .where_document = world_filters[f].where_document ? str_of(world_filters[f].where_document)
                                                                            : (lode_str){NULL, 0}};
}
