/* test_query.c - what queries answer, against an oracle that is too simple to be wrong: all records in an array, every
 * distance and score computed anew in double, everything sorted. Data are random; a failure prints its seed.
 */
#include "base/os.h"
#include "base/token.h"
#include "lode.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define NONE ((lode_str){NULL, 0})

static lode_str str(const char *s) { return (lode_str){s, strlen(s)}; }
static const lode_progress quiet;

/* ---- The oracle's records ---- */

enum { MOST = 3000, MOST_DIM = 128, MOST_TEXT = 200 };

typedef struct rec {
  char id[12];
  bool alive, has_vector, has_document;
  float v[MOST_DIM];
  int n;               /* metadata n: -1 = absent */
  int tag;             /* metadata tag: "t<tag>", one of 4; also in the array tags with t<tag+1> */
  char text[MOST_TEXT];
} rec;

typedef struct world {
  lode_store *store;
  lode_collection *c;
  lode_metric metric;
  uint32_t dim;
  bool whole;          /* coordinates are small integers: distances are exact, and often equal */
  rec *r;
  size_t n;
} world;

static const char *const words[] = {"alpha", "beta", "gamma", "delta", "HttpServer", "read_file", "x", "42", "Zebra", "kilo"};
enum { WORDS = sizeof words / sizeof *words };

static void random_vector(const world *w, float *v) {
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

static void randomize(const world *w, rec *r) {
  r->has_vector = test_below(10) != 0;
  r->has_document = test_below(8) != 0;
  random_vector(w, r->v);
  r->n = test_below(5) == 0 ? -1 : (int)test_below(100);
  r->tag = (int)test_below(4);
  random_text(r->text, sizeof r->text, 12);
}

static lode_record record_of(const world *w, const rec *r, char *meta, size_t size) {
  if (r->n >= 0)
    snprintf(meta, size, "{\"n\": %d, \"tag\": \"t%d\", \"tags\": [\"t%d\", \"t%d\"], \"odd\": %s}", r->n, r->tag, r->tag, r->tag + 1,
             r->n % 2 ? "true" : "false");
  else
    snprintf(meta, size, "{\"tag\": \"t%d\", \"tags\": [\"t%d\", \"t%d\"]}", r->tag, r->tag, r->tag + 1);
  return (lode_record){.id = str(r->id), .document = r->has_document ? str(r->text) : NONE, .metadata = str(meta),
                       .vector = r->has_vector ? r->v : NULL, .dimension = r->has_vector ? w->dim : 0};
}

static world make_world(lode_metric metric, uint32_t dim, bool whole, size_t n, lode_open_options o) {
  lode_error err;
  world w = {.metric = metric, .dim = dim, .whole = whole};
  test_srand(test_seed());
  o.create = o.no_background = true;
  OK(lode_open(test_folder(), &o, &w.store, &err));
  OK(lode_collection_open(w.store, S("c"), &(lode_collection_options){.create = true, .metric = metric}, &w.c, &err));
  w.r = calloc(MOST, sizeof *w.r);
  CHECK(n <= MOST);
  for (size_t from = 0; from < n; from += 100) {
    lode_record batch[100];
    char meta[100][160];
    size_t k = n - from < 100 ? n - from : 100;
    for (size_t i = 0; i < k; i++) {
      rec *r = &w.r[from + i];
      snprintf(r->id, sizeof r->id, "%zu", (from + i) * 2654435761u % 1000003); /* the order of ids is not that of insertion */
      randomize(&w, r);
      r->alive = true;
      batch[i] = record_of(&w, r, meta[i], sizeof meta[i]);
    }
    OK(lode_add(w.c, NULL, batch, k, LODE_FAIL_EXISTING, NULL, &err));
  }
  w.n = n;
  return w;
}

static void end_world(world *w) {
  lode_collection_close(w->c);
  lode_close(w->store);
  free(w->r);
}

/* ---- The oracle's answers ---- */

typedef struct answer {
  const rec *r;
  double distance, score;
} answer;

typedef bool keep_fn(const rec *r);

static double distance(const world *w, const float *q, const float *v) {
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
  const answer *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return strcmp(x->r->id, y->r->id);
}

static int better(const void *a, const void *b) {
  const answer *x = a, *y = b;
  if (fabs(x->score - y->score) > 1e-12) return x->score > y->score ? -1 : 1;
  return strcmp(x->r->id, y->r->id);
}

static int better_fused(const void *a, const void *b) { /* sums of the same two numbers: equal to the last bit */
  const answer *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return strcmp(x->r->id, y->r->id);
}

static size_t by_vector(const world *w, const float *q, keep_fn *keep, answer *out) {
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) {
    const rec *r = &w->r[i];
    if (r->alive && r->has_vector && (!keep || keep(r))) out[n++] = (answer){r, distance(w, q, r->v), 0};
  }
  qsort(out, n, sizeof *out, nearer);
  return n;
}

typedef struct count_ctx {
  const char *word;
  size_t len, n;
} count_ctx;

static int count_token(void *ctx, const lode__token *t) {
  count_ctx *c = ctx;
  c->n += t->len == c->len && memcmp(t->text, c->word, c->len) == 0;
  return 0;
}

typedef struct word_list {
  char text[64][40];
  size_t n;
} word_list;

static int list_token(void *ctx, const lode__token *t) {
  word_list *l = ctx;
  for (size_t i = 0; i < l->n; i++)
    if (strlen(l->text[i]) == t->len && memcmp(l->text[i], t->text, t->len) == 0) return 0;
  memcpy(l->text[l->n], t->text, t->len);
  l->text[l->n++][t->len] = 0;
  return l->n == 64;
}

static size_t occurrences(const rec *r, const char *word) {
  count_ctx c = {word, strlen(word), 0};
  if (r->has_document) (void)lode__tokenize(r->text, strlen(r->text), count_token, &c);
  return c.n;
}

/* telling: words that most documents hold weigh nothing, and who holds no others comes last. */
static size_t by_words(const world *w, const char *query, keep_fn *keep, bool telling, answer *out) {
  word_list l = {.n = 0};
  double documents = 0, bytes = 0;
  size_t n = 0;
  (void)lode__tokenize(query, strlen(query), list_token, &l);
  for (size_t i = 0; i < w->n; i++) {
    if (!w->r[i].alive || !w->r[i].has_document) continue;
    documents++;
    bytes += (double)strlen(w->r[i].text);
  }
  double *scores = calloc(w->n, sizeof *scores);
  bool *found = calloc(w->n, sizeof *found);
  for (size_t k = 0; k < l.n; k++) {
    double df = 0;
    for (size_t i = 0; i < w->n; i++) df += w->r[i].alive && occurrences(&w->r[i], l.text[k]) > 0;
    double idf = telling && 2 * df > documents ? 0 : log(1 + (documents - df + 0.5) / (df + 0.5));
    for (size_t i = 0; i < w->n; i++) {
      double tf = w->r[i].alive ? (double)occurrences(&w->r[i], l.text[k]) : 0;
      double norm = 1.2 * (0.25 + 0.75 * (double)strlen(w->r[i].text) / (bytes / documents));
      if (tf > 0) scores[i] += idf * tf * 2.2 / (tf + norm);
      found[i] = found[i] || tf > 0;
    }
  }
  for (size_t i = 0; i < w->n; i++)
    if (found[i] && (!keep || keep(&w->r[i]))) out[n++] = (answer){&w->r[i], NAN, scores[i]};
  free(scores);
  free(found);
  qsort(out, n, sizeof *out, better);
  return n;
}

static size_t by_text(const world *w, const char *query, keep_fn *keep, answer *out) { return by_words(w, query, keep, false, out); }

/* ---- Comparing ---- */

static const rec *find(const world *w, lode_str id) {
  for (size_t i = 0; i < w->n; i++)
    if (w->r[i].alive && strlen(w->r[i].id) == id.len && memcmp(w->r[i].id, id.data, id.len) == 0) return &w->r[i];
  return NULL;
}

/* Rows [from, from + k) of the result must be the k nearest. Where distances are inexact, neighbours of (almost) the
 * same distance may have changed places. */
static void check_nearest(const world *w, const lode_result *r, size_t from, size_t query, const float *q, keep_fn *keep, size_t k) {
  answer *want = calloc(w->n + 1, sizeof *want);
  size_t n = by_vector(w, q, keep, want);
  if (n > k) n = k;
  CHECKF(lode_result_count(r) >= from + n, "%zu rows, wanted %zu", lode_result_count(r), from + n);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(r, from + i);
    const rec *x = find(w, row->id);
    CHECK(row->query == query && row->rank == i && x && x->has_vector && (!keep || keep(x)));
    double d = distance(w, q, x->v), tolerance = w->whole && w->metric != LODE_COSINE ? 0 : 2e-5;
    CHECKF(fabs(row->distance - d) <= tolerance, "%s is at %.9g, not %.9g", x->id, d, row->distance);
    CHECKF(fabs(want[i].distance - d) <= tolerance, "rank %zu: %s at %.9g, wanted %s at %.9g", i, x->id, d, want[i].r->id, want[i].distance);
    if (tolerance == 0) CHECKF(x == want[i].r, "rank %zu: %s, wanted %s, both at %g", i, x->id, want[i].r->id, d);
    if (i) {
      const lode_row *before = lode_result_at(r, from + i - 1);
      bool ordered = before->distance < row->distance ||
                     (before->distance == row->distance && strcmp(find(w, before->id)->id, x->id) < 0);
      CHECKF(ordered, "ranks %zu and %zu are out of order", i - 1, i);
    }
  }
  free(want);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t count_kept(const world *w, keep_fn *keep) {
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) n += w->r[i].alive && w->r[i].has_vector && (!keep || keep(&w->r[i]));
  return n;
}

static void query_and_check(const world *w, size_t k, lode_selection select, keep_fn *keep) {
  lode_error err;
  lode_result *r;
  float q[MOST_DIM];
  random_vector(w, q);
  OK(lode_query(w->c, &(lode_query_request){.vectors = q, .dimension = w->dim, .n = 1, .k = k, .select = select}, &r, &err));
  CHECKF(lode_result_count(r) == least(k, count_kept(w, keep)), "%zu rows of %zu", lode_result_count(r), count_kept(w, keep));
  check_nearest(w, r, 0, 0, q, keep, k);
  lode_result_free(r);
}

/* ---- Vectors ---- */

static void all_sizes(lode_metric metric) {
  static const uint32_t dims[] = {1, 3, 16, 17, 100};
  for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
    for (int whole = 0; whole < 2; whole++) {
      world w = make_world(metric, dims[d], whole, 400, (lode_open_options){0});
      static const size_t ks[] = {1, 2, 10, 399, 400, 100000, SIZE_MAX};
      for (size_t k = 0; k < sizeof ks / sizeof *ks; k++) query_and_check(&w, ks[k], (lode_selection){0}, NULL);
      end_world(&w);
    }
}

TEST(l2_is_exact) { all_sizes(LODE_L2); }
TEST(cosine_is_exact) { all_sizes(LODE_COSINE); }
TEST(ip_is_exact) { all_sizes(LODE_IP); }

TEST(equal_distances_are_ordered_by_id) {
  lode_error err;
  world w = make_world(LODE_L2, 4, true, 1000, (lode_open_options){0});
  const float same[4] = {1, 1, 1, 1}, zero[4] = {0};
  char meta[160];
  for (size_t i = 0; i < w.n; i++) {
    rec *r = &w.r[i];
    r->has_vector = true;
    memcpy(r->v, same, sizeof same);
    lode_record x = record_of(&w, r, meta, sizeof meta);
    OK(lode_update(w.c, NULL, &x, 1, NULL, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    static const size_t ks[] = {1, 10, 999};
    for (size_t k = 0; k < 3; k++) {
      lode_result *r;
      OK(lode_query(w.c, &(lode_query_request){.vectors = zero, .dimension = 4, .n = 1, .k = ks[k]}, &r, &err));
      check_nearest(&w, r, 0, 0, zero, NULL, ks[k]);
      lode_result_free(r);
    }
    OK(lode_optimize(w.store, quiet, &err));
  }
  end_world(&w);
}

TEST(many_queries_are_answered_as_each_alone) {
  lode_error err;
  world w = make_world(LODE_L2, 20, false, 700, (lode_open_options){0});
  enum { N = 150 };
  float *q = calloc(N * 20, sizeof *q);
  for (int i = 0; i < N; i++) random_vector(&w, q + i * 20);
  static const size_t ks[] = {1, 60, 5000};
  for (size_t k = 0; k < 3; k++) {
    lode_result *r;
    OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 20, .n = N, .k = ks[k]}, &r, &err));
    size_t each = least(ks[k], count_kept(&w, NULL));
    CHECK(lode_result_count(r) == each * N);
    for (size_t i = 0; i < N; i += 13) check_nearest(&w, r, i * each, i, q + i * 20, NULL, ks[k]);
    lode_result_free(r);
  }
  free(q);
  end_world(&w);
}

TEST(distances_that_overflow_come_last) {
  lode_error err;
  lode_store *s;
  lode_collection *c;
  lode_result *r;
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &s, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true, .metric = LODE_IP}, &c, &err));
  const float big[] = {3e38f, 3e38f, -3e38f, -3e38f}, one[] = {1, 1, 1, 1};
  lode_record x[] = {{.id = S("a"), .vector = big, .dimension = 4}, {.id = S("b"), .vector = one, .dimension = 4}};
  OK(lode_add(c, NULL, x, 2, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_query(c, &(lode_query_request){.vectors = big, .dimension = 4, .n = 1, .k = 2}, &r, &err));
  CHECK(lode_result_count(r) == 2 && !isnan(lode_result_at(r, 0)->distance) && !isnan(lode_result_at(r, 1)->distance));
  lode_result_free(r);
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Selections ---- */

static bool n_below_3(const rec *r) { return r->n >= 0 && r->n < 3; }
static bool n_from_20(const rec *r) { return r->n >= 20; }
static bool n_is_not_7(const rec *r) { return r->n != 7; }
static bool n_in(const rec *r) { return r->n == 1 || r->n == 50 || r->n == 99; }
static bool is_tag_1(const rec *r) { return r->tag == 1; }
static bool has_tag_4(const rec *r) { return r->tag == 3; }
static bool odd_and_low(const rec *r) { return r->n >= 0 && r->n % 2 && r->n < 10; }
static bool tag_0_or_n_5(const rec *r) { return r->tag == 0 || r->n == 5; }
static bool no_n(const rec *r) { return r->n < 0; }
static bool nothing(const rec *r) { return r->n > 1000; }
static bool everything(const rec *r) { return r->n < 1000; }
static bool has_zebra(const rec *r) { return r->has_document && strstr(r->text, "Zebra"); }
static bool no_zebra(const rec *r) { return !has_zebra(r); }
static bool zebra_and_tag_1(const rec *r) { return has_zebra(r) && r->tag == 1; }

static const struct { const char *where, *where_document; keep_fn *keep; } filters[] = {
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
enum { FILTERS = sizeof filters / sizeof *filters };

static lode_selection selection(size_t f) {
  return (lode_selection){.where = filters[f].where ? str(filters[f].where) : NONE,
                          .where_document = filters[f].where_document ? str(filters[f].where_document) : NONE};
}

/* get by the same filter, in the order of insertion. */
static void check_get(const world *w, size_t f) {
  lode_error err;
  lode_result *r;
  size_t at = 0;
  OK(lode_get(w->c, &(lode_get_request){.select = selection(f)}, &r, &err));
  for (size_t i = 0; i < w->n; i++) {
    if (!w->r[i].alive || !filters[f].keep(&w->r[i])) continue;
    const lode_row *row = lode_result_at(r, at++);
    CHECKF(row && find(w, row->id) == &w->r[i], "filter %zu: record %zu", f, i);
  }
  CHECK(lode_result_count(r) == at);
  lode_result_free(r);
}

TEST(filters_select_the_same_with_and_without_an_index) {
  lode_error err;
  world w = make_world(LODE_L2, 8, true, 1200, (lode_open_options){0});
  for (int round = 0; round < 3; round++) {
    for (size_t f = 0; f < FILTERS; f++) {
      check_get(&w, f);
      query_and_check(&w, 1, selection(f), filters[f].keep);
      query_and_check(&w, 20, selection(f), filters[f].keep);
      query_and_check(&w, 5000, selection(f), filters[f].keep);
    }
    if (round == 0) OK(lode_optimize(w.store, quiet, &err)); /* round 1: all indexed */
    if (round == 1)                                          /* round 2: a tail behind the index, and graves in it */
      for (size_t i = 0; i < 300; i++) {
        rec *r = &w.r[i];
        r->alive = false;
        OK(lode_delete(w.c, NULL, &(lode_selection){.ids = (lode_str[]){str(r->id)}, .n_ids = 1}, NULL, &err));
        rec *x = &w.r[w.n++];
        snprintf(x->id, sizeof x->id, "x%zu", i);
        randomize(&w, x);
        x->alive = true;
        char meta[160];
        lode_record add = record_of(&w, x, meta, sizeof meta);
        OK(lode_add(w.c, NULL, &add, 1, LODE_FAIL_EXISTING, NULL, &err));
      }
  }
  end_world(&w);
}

TEST(ids_restrict_a_query) {
  lode_error err;
  world w = make_world(LODE_COSINE, 8, false, 600, (lode_open_options){0});
  static const size_t sizes[] = {1, 5, 100, 600};
  for (size_t s = 0; s < 4; s++) {
    lode_str ids[602];
    float q[MOST_DIM];
    world few = w;
    few.r = calloc(MOST, sizeof *few.r);
    few.n = sizes[s];
    for (size_t i = 0; i < sizes[s]; i++) {
      few.r[i] = w.r[i * 7 % 600];
      ids[i] = str(few.r[i].id);
    }
    ids[sizes[s]] = S("nobody");
    ids[sizes[s] + 1] = ids[0];
    random_vector(&w, q);
    lode_result *r;
    OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 8, .n = 1, .k = 50,
                                             .select = {.ids = ids, .n_ids = sizes[s] + 2, .where = S("{\"tag\": {\"$ne\": \"t2\"}}")}}, &r, &err));
    size_t kept = 0;
    for (size_t i = 0; i < few.n; i++) {
      if (few.r[i].tag == 2) few.r[i].alive = false;
      kept += few.r[i].alive && few.r[i].has_vector;
    }
    CHECK(lode_result_count(r) == least(50, kept));
    check_nearest(&few, r, 0, 0, q, NULL, 50);
    lode_result_free(r);
    free(few.r);
  }
  end_world(&w);
}

/* ---- Changing data under a warm cache ---- */

/* One random change, by this or by another handle of the store. */
static void change(world *w, lode_collection *c) {
  lode_error err;
  char meta[160];
  rec *r = &w->r[test_below(w->n)];
  switch (test_below(4)) {
    case 0:
      if (w->n == MOST) return;
      r = &w->r[w->n++];
      snprintf(r->id, sizeof r->id, "n%zu", w->n * 7919 % 10007);
      randomize(w, r);
      r->alive = true;
      lode_record add = record_of(w, r, meta, sizeof meta);
      OK(lode_add(c, NULL, &add, 1, LODE_FAIL_EXISTING, NULL, &err));
      break;
    case 1:
      if (!r->alive) return;
      random_vector(w, r->v);
      r->has_vector = true;
      OK(lode_update(c, NULL, &(lode_record){.id = str(r->id), .vector = r->v, .dimension = w->dim}, 1, NULL, NULL, &err));
      break;
    default:
      if (!r->alive) return;
      r->alive = false;
      OK(lode_delete(c, NULL, &(lode_selection){.ids = (lode_str[]){str(r->id)}, .n_ids = 1}, NULL, &err));
  }
}

static void change_and_query(size_t records, uint32_t dim, unsigned rounds, lode_open_options o) {
  lode_error err;
  world w = make_world(LODE_L2, dim, true, records, o);
  for (unsigned round = 0; round < rounds; round++) {
    for (size_t i = test_below(60); i-- > 0;) change(&w, w.c);
    if (test_below(5) == 0) OK(lode_optimize(w.store, quiet, &err)); /* erases graves before the cache has seen them */
    query_and_check(&w, 1 + test_below(30), (lode_selection){0}, NULL);
    if (round % 3 == 0) {
      size_t f = test_below(FILTERS);
      query_and_check(&w, 1 + test_below(30), selection(f), filters[f].keep);
    }
    if (test_below(6) == 0) OK(lode_optimize(w.store, quiet, &err));
  }
  end_world(&w);
}

TEST(a_warm_cache_follows_every_change) { change_and_query(1500, 8, 80, (lode_open_options){0}); }

TEST(what_was_erased_unseen_is_not_found) {
  lode_error err;
  world w = make_world(LODE_L2, 8, false, 2000, (lode_open_options){0});
  static const size_t deletions[] = {1, 40, 300, 900}; /* few stay in the cache, not known to be dead; many make it anew */
  float q[MOST_DIM];
  answer *all = calloc(w.n, sizeof *all);
  random_vector(&w, q);
  for (size_t d = 0; d < 4; d++) {
    lode_result *r;
    query_and_check(&w, 10, (lode_selection){0}, NULL); /* warm */
    size_t n = by_vector(&w, q, NULL, all);
    for (size_t i = 0; i < deletions[d] && i < n; i++) {
      rec *nearest = &w.r[all[i].r - w.r];
      OK(lode_delete(w.c, NULL, &(lode_selection){.ids = (lode_str[]){str(nearest->id)}, .n_ids = 1}, NULL, &err));
      nearest->alive = false;
    }
    OK(lode_optimize(w.store, quiet, &err));
    OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 8, .n = 1, .k = 10}, &r, &err));
    CHECK(lode_result_count(r) == 10);
    check_nearest(&w, r, 0, 0, q, NULL, 10);
    lode_result_free(r);
  }
  free(all);
  end_world(&w);
}

TEST(another_handle_is_followed_too) {
  lode_error err;
  world w = make_world(LODE_L2, 8, true, 300, (lode_open_options){0});
  const char *folder = test_folder();
  lode_store *mine, *theirs;
  lode_collection *a, *b;
  lode_open_options o = {.create = true, .no_background = true};
  OK(lode_open(folder, &o, &mine, &err));
  OK(lode_open(folder, &o, &theirs, &err));
  OK(lode_collection_open(mine, S("c"), &(lode_collection_options){.create = true}, &a, &err));
  OK(lode_collection_open(theirs, S("c"), NULL, &b, &err));
  lode_collection *first = w.c;
  char meta[160];
  for (size_t i = 0; i < w.n; i++) {
    lode_record x = record_of(&w, &w.r[i], meta, sizeof meta);
    OK(lode_add(b, NULL, &x, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  w.c = a;
  for (int round = 0; round < 30; round++) {
    for (size_t i = test_below(10); i-- > 0;) change(&w, b);
    query_and_check(&w, 10, (lode_selection){0}, NULL);
    if (round % 7 == 0) OK(lode_optimize(theirs, quiet, &err));
  }
  w.c = first;
  lode_collection_close(a);
  lode_collection_close(b);
  lode_close(mine);
  lode_close(theirs);
  end_world(&w);
}

/* Vectors of 16 KiB: 8 MiB of cache hold some 500. */
TEST_SLOW(what_does_not_fit_in_memory_is_answered_all_the_same, 120) {
  lode_error err;
  enum { DIM = 4096, N = 700 };
  lode_store *small, *large;
  lode_collection *c[2], *d;
  const char *folder = test_folder();
  test_srand(test_seed());
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true, .memory_bytes = 16 << 20}, &small, &err));
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &large, &err));
  OK(lode_collection_open(small, S("c"), &(lode_collection_options){.create = true, .metric = LODE_COSINE}, &c[0], &err));
  OK(lode_collection_open(large, S("c"), NULL, &c[1], &err));
  OK(lode_collection_open(small, S("d"), &(lode_collection_options){.create = true}, &d, &err));
  float *v = calloc(DIM, sizeof *v);
  for (int i = 0; i < N; i++) {
    char id[24], meta[48];
    snprintf(id, sizeof id, "%d", i);
    snprintf(meta, sizeof meta, "{\"n\": %d}", i % 3);
    for (int j = 0; j < DIM; j++) v[j] = (float)test_below(1000) - 500;
    lode_record x = {.id = str(id), .metadata = str(meta), .vector = v, .dimension = DIM};
    OK(lode_add(c[0], NULL, &x, 1, LODE_FAIL_EXISTING, NULL, &err));
    if (i % 4 == 0) OK(lode_add(d, NULL, &x, 1, LODE_FAIL_EXISTING, NULL, &err));
    if (i % 5 == 4) OK(lode_upsert(c[0], NULL, &(lode_record){.id = S("3"), .vector = v, .dimension = DIM}, 1, NULL, &err));
    if (i % 7 == 6) OK(lode_delete(c[0], NULL, &(lode_selection){.ids = (lode_str[]){str(id)}, .n_ids = 1}, NULL, &err));
  }
  lode_str wheres[] = {NONE, S("{\"n\": 1}"), S("{\"n\": {\"$ne\": 1}}")};
  for (int round = 0; round < 2; round++) {
    for (int f = 0; f < 3; f++) {
      lode_result *r[2];
      for (int i = 0; i < 2; i++)
        OK(lode_query(c[i], &(lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 40, .select.where = wheres[f]}, &r[i], &err));
      CHECK(lode_result_count(r[0]) == 40 && lode_result_count(r[1]) == 40);
      for (size_t i = 0; i < 40; i++) {
        const lode_row *x = lode_result_at(r[0], i), *y = lode_result_at(r[1], i);
        CHECK(x->id.len == y->id.len && memcmp(x->id.data, y->id.data, x->id.len) == 0 && x->distance == y->distance);
      }
      lode_result_free(r[0]);
      lode_result_free(r[1]);
    }
    lode_result *r; /* a smaller collection of the same handle is cached beside it */
    OK(lode_query(d, &(lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 1000}, &r, &err));
    CHECK(lode_result_count(r) == N / 4);
    lode_result_free(r);
    OK(lode_optimize(small, quiet, &err));
  }
  free(v);
  lode_collection_close(c[0]);
  lode_collection_close(c[1]);
  lode_collection_close(d);
  lode_close(small);
  lode_close(large);
}

/* ---- Long scans while others write ---- */

enum { LONG_DIM = 2048, LONG_RECORDS = 2000, LONG_QUERIES = 16, PAIRS = 30 };

typedef struct scene {
  lode_collection *c;
  atomic_bool stop;
} scene;

/* Both of a pair are written, moved and deleted together, always nearer than all others. */
static void *move_pairs(void *ctx) {
  scene *s = ctx;
  lode_error err;
  float *v = calloc(LONG_DIM, sizeof *v);
  for (unsigned i = 0; !atomic_load(&s->stop); i++) {
    char left[24], right[24];
    snprintf(left, sizeof left, "l%u", i * 7 % PAIRS);
    snprintf(right, sizeof right, "r%u", i * 7 % PAIRS);
    v[i % 16] = (float)(i % 5);
    lode_record pair[] = {{.id = str(left), .vector = v, .dimension = LONG_DIM}, {.id = str(right), .vector = v, .dimension = LONG_DIM}};
    lode_str ids[] = {str(left), str(right)};
    OK(lode_upsert(s->c, NULL, pair, 2, NULL, &err));
    if (i % 4 == 0) OK(lode_delete(s->c, NULL, &(lode_selection){.ids = ids, .n_ids = 2}, NULL, &err));
  }
  free(v);
  return NULL;
}

TEST_SLOW(a_long_scan_sees_one_moment, 120) {
  lode_error err;
  lode_store *store;
  scene s = {0};
  pthread_t writer;
  lode_record batch[100];
  float *v = calloc(LONG_DIM * 100, sizeof *v), *queries = calloc(LONG_QUERIES * LONG_DIM, sizeof *queries);
  char ids[100][16];
  OK(lode_open(test_folder(), &(lode_open_options){.create = true}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &s.c, &err));
  for (size_t i = 0; i < LONG_RECORDS; i++) {
    for (size_t j = 0; j < LONG_DIM; j++) v[i % 100 * LONG_DIM + j] = (float)(100 + (i + j) % 7);
    snprintf(ids[i % 100], sizeof ids[0], "%zu", i);
    batch[i % 100] = (lode_record){.id = str(ids[i % 100]), .vector = v + i % 100 * LONG_DIM, .dimension = LONG_DIM};
    if (i % 100 == 99) OK(lode_add(s.c, NULL, batch, 100, LODE_FAIL_EXISTING, NULL, &err));
  }
  CHECK(pthread_create(&writer, NULL, move_pairs, &s) == 0);
  for (int round = 0; round < 12; round++) {
    lode_result *r;
    OK(lode_query(s.c, &(lode_query_request){.vectors = queries, .dimension = LONG_DIM, .n = LONG_QUERIES, .k = 2 * PAIRS + 5}, &r, &err));
    CHECK(lode_result_count(r) == LONG_QUERIES * (2 * PAIRS + 5));
    double sum[LONG_QUERIES] = {0};
    size_t rows[LONG_QUERIES] = {0};
    for (size_t i = 0; i < lode_result_count(r); i++) {
      const lode_row *row = lode_result_at(r, i);
      if (row->id.data[0] != 'l' && row->id.data[0] != 'r') continue;
      rows[row->query]++;
      sum[row->query] += row->id.data[0] == 'l' ? row->distance : -row->distance;
    }
    for (size_t q = 0; q < LONG_QUERIES; q++) {
      CHECKF(rows[q] % 2 == 0 && sum[q] == 0, "query %zu: %zu rows, %g", q, rows[q], sum[q]);
      CHECK(rows[q] == rows[0]); /* the same moment for all of a group */
    }
    lode_result_free(r);
  }
  atomic_store(&s.stop, true);
  CHECK(pthread_join(writer, NULL) == 0);
  free(v);
  free(queries);
  lode_collection_close(s.c);
  lode_close(store);
}

/* ---- Text ---- */

static void check_text(const world *w, const char *query, size_t k, lode_selection select, keep_fn *keep) {
  lode_error err;
  lode_result *r;
  answer *want = calloc(w->n + 1, sizeof *want);
  size_t n = least(by_text(w, query, keep, want), k);
  OK(lode_query(w->c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = (lode_str[]){str(query)}, .n = 1, .k = k, .select = select}, &r, &err));
  CHECKF(lode_result_count(r) == n, "\"%s\": %zu rows, wanted %zu", query, lode_result_count(r), n);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(r, i);
    CHECK(isnan(row->distance) && row->rank == i);
    CHECKF(fabs(row->score - want[i].score) < 1e-9, "\"%s\" rank %zu: score %.12g, wanted %.12g", query, i, row->score, want[i].score);
    CHECKF(find(w, row->id) == want[i].r, "\"%s\" rank %zu: %.*s, wanted %s", query, i, (int)row->id.len, row->id.data, want[i].r->id);
  }
  free(want);
  lode_result_free(r);
}

static const char *const texts[] = {"alpha", "kilo", "Zebra zebra", "http", "read file", "read_file 42 x", "unknown", "", "  ?! ",
                                    "alpha beta gamma delta HttpServer read_file x 42 Zebra kilo"};
enum { TEXTS = sizeof texts / sizeof *texts };

TEST(bm25_is_exact_with_and_without_an_index) {
  lode_error err;
  world w = make_world(LODE_L2, 4, true, 500, (lode_open_options){0});
  for (int round = 0; round < 3; round++) {
    for (size_t t = 0; t < TEXTS; t++) {
      check_text(&w, texts[t], 10, (lode_selection){0}, NULL);
      check_text(&w, texts[t], 1000, (lode_selection){0}, NULL);
      size_t f = test_below(FILTERS);
      check_text(&w, texts[t], 7, selection(f), filters[f].keep);
    }
    if (round == 0) OK(lode_optimize(w.store, quiet, &err));
    if (round == 1) { /* changed documents below the cursor, new ones behind it */
      char meta[160];
      for (size_t i = 0; i < 100; i++) {
        rec *r = i % 2 ? &w.r[w.n++] : &w.r[i];
        if (i % 2) snprintf(r->id, sizeof r->id, "y%zu", i);
        randomize(&w, r);
        r->alive = r->has_document = true;
        lode_record x = record_of(&w, r, meta, sizeof meta);
        r->has_vector = true; /* an upsert without one keeps the old */
        OK(lode_upsert(w.c, NULL, &x, 1, NULL, &err));
        if (i % 2 == 0 && r->n < 0) OK(lode_update(w.c, NULL, &(lode_record){.id = str(r->id), .metadata = S("{\"n\": null, \"odd\": null}")}, 1, NULL, NULL, &err));
      }
    }
  }
  /* Deleted ones are never found and count no more, whether they are erased or not. */
  for (size_t i = 0; i < 200; i++) {
    w.r[i].alive = false;
    OK(lode_delete(w.c, NULL, &(lode_selection){.ids = (lode_str[]){str(w.r[i].id)}, .n_ids = 1}, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    for (size_t t = 0; t < TEXTS; t++) check_text(&w, texts[t], 1000, (lode_selection){0}, NULL);
    OK(lode_optimize(w.store, quiet, &err));
  }
  end_world(&w);
}

TEST(equal_scores_are_ordered_by_id) {
  lode_error err;
  lode_store *s;
  lode_collection *c;
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &s, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  for (int i = 299; i >= 0; i--) {
    char id[24];
    snprintf(id, sizeof id, "%03d", i * 7 % 300);
    OK(lode_add(c, NULL, &(lode_record){.id = str(id), .document = S("same words")}, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    lode_result *r;
    OK(lode_query(c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = &S("words"), .n = 1, .k = 10}, &r, &err));
    CHECK(lode_result_count(r) == 10);
    for (size_t i = 0; i < 10; i++) {
      char id[24];
      snprintf(id, sizeof id, "%03zu", i);
      CHECK(memcmp(lode_result_at(r, i)->id.data, id, 3) == 0);
    }
    lode_result_free(r);
    OK(lode_optimize(s, quiet, &err));
  }
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Hybrid ---- */

static void check_hybrid(const world *w, const char *text, size_t k, double wv, double wt) {
  lode_error err;
  lode_result *r;
  float q[MOST_DIM];
  random_vector(w, q);
  answer *a = calloc(w->n + 1, sizeof *a), *b = calloc(w->n + 1, sizeof *b), *both = calloc(2 * w->n + 1, sizeof *both);
  size_t m = k * 4 > 64 ? k * 4 : 64, n = 0;
  size_t na = least(by_vector(w, q, NULL, a), m), nb = least(by_words(w, text, NULL, na > 0, b), m);
  double va = wv > 0 || wt > 0 ? wv : 1, vb = wv > 0 || wt > 0 ? wt : 1;
  for (size_t i = 0; i < na; i++) both[n++] = (answer){a[i].r, 0, va / (61.0 + (double)i)};
  for (size_t i = 0; i < nb; i++) {
    size_t j = 0;
    while (j < na && both[j].r != b[i].r) j++;
    if (j == na) {
      j = n++;
      both[j] = (answer){b[i].r, 0, 0};
    }
    if (b[i].score > 0) both[j].score += vb / (61.0 + (double)i);
  }
  qsort(both, n, sizeof *both, better_fused);
  OK(lode_query(w->c, &(lode_query_request){.mode = LODE_HYBRID, .vectors = q, .dimension = w->dim, .texts = (lode_str[]){str(text)}, .n = 1, .k = k,
                                            .vector_weight = wv, .text_weight = wt}, &r, &err));
  CHECKF(lode_result_count(r) == least(k, n), "%zu rows, wanted %zu", lode_result_count(r), least(k, n));
  for (size_t i = 0; i < lode_result_count(r); i++) {
    const lode_row *row = lode_result_at(r, i);
    const rec *x = find(w, row->id);
    CHECKF(fabs(row->score - both[i].score) < 1e-12, "\"%s\" rank %zu: score %.12g, wanted %.12g", text, i, row->score, both[i].score);
    CHECKF(x == both[i].r, "\"%s\" rank %zu: %s, wanted %s", text, i, x->id, both[i].r->id);
    CHECK(x->has_vector ? row->distance == distance(w, q, x->v) : isnan(row->distance));
  }
  free(a);
  free(b);
  free(both);
  lode_result_free(r);
}

TEST(hybrid_fuses_both_rankings) {
  lode_error err;
  world w = make_world(LODE_L2, 6, true, 400, (lode_open_options){0});
  for (int round = 0; round < 2; round++) {
    for (size_t t = 0; t < TEXTS; t++) {
      check_hybrid(&w, texts[t], 5, 0, 0);
      check_hybrid(&w, texts[t], 40, 1, 0.25);
      check_hybrid(&w, texts[t], 30, 0, 1);
    }
    OK(lode_optimize(w.store, quiet, &err));
  }
  /* Filters hold for what comes by words as for what comes by meaning. */
  lode_result *r;
  float q[MOST_DIM];
  random_vector(&w, q);
  OK(lode_query(w.c, &(lode_query_request){.mode = LODE_HYBRID, .vectors = q, .dimension = 6, .texts = &S("alpha beta"), .n = 1, .k = 400,
                                           .select.where = S("{\"tag\": \"t1\"}"), .include = LODE_METADATA}, &r, &err));
  CHECK(lode_result_count(r) > 10);
  for (size_t i = 0; i < lode_result_count(r); i++) CHECK(find(&w, lode_result_at(r, i)->id)->tag == 1);
  lode_result_free(r);
  end_world(&w);
}

/* A word that all documents hold must not put one before another, however few they are. */
TEST(common_words_do_not_mislead_hybrid_queries) {
  lode_error err;
  lode_store *s;
  lode_collection *c;
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &s, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true, .metric = LODE_COSINE}, &c, &err));
  lode_record r[] = {
      {S("boil"), S("how to boil an egg: a pot, a lid, a minute, a spoon"), {0}, (float[]){0, 1, 0}, 3},
      {S("cats"), S("a note on cats"), {0}, (float[]){0.1f, 0, 1}, 3},
      {S("parser"), S("the parser is a table of states that a token moves through"), {0}, (float[]){1, 0.1f, 0}, 3},
      {S("pending"), S("a thing without a vector"), {0}, NULL, 0},
      {S("rain"), S("a day of rain"), {0}, (float[]){0, 0.5f, 0.5f}, 3},
  };
  OK(lode_add(c, NULL, r, 5, LODE_FAIL_EXISTING, NULL, &err));
  for (int round = 0; round < 2; round++) {
    lode_result *rows;
    lode_query_request q = {.mode = LODE_HYBRID, .vectors = (float[]){1, 0, 0}, .dimension = 3, .texts = &S("what a compiler reads"), .n = 1, .k = 5};
    OK(lode_query(c, &q, &rows, &err));
    CHECK(lode_result_count(rows) == 5 && memcmp(lode_result_at(rows, 0)->id.data, "parser", 6) == 0);
    CHECK(memcmp(lode_result_at(rows, 4)->id.data, "pending", 7) == 0 && lode_result_at(rows, 4)->score == 0); /* found, and last */
    lode_result_free(rows);
    q.texts = &S("a note on rain"); /* a word that tells something counts as ever */
    q.vectors = (float[]){0, 0.5f, 0.4f};
    OK(lode_query(c, &q, &rows, &err));
    CHECK(memcmp(lode_result_at(rows, 0)->id.data, "rain", 4) == 0 && lode_result_at(rows, 0)->score > 0.032);
    lode_result_free(rows);
    q = (lode_query_request){.mode = LODE_BY_TEXT, .texts = &S("a"), .n = 1, .k = 9};
    OK(lode_query(c, &q, &rows, &err)); /* alone, it still finds them all */
    CHECK(lode_result_count(rows) == 5);
    lode_result_free(rows);
    OK(lode_optimize(s, quiet, &err));
  }
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Cancelling ---- */

static int stop_after, asked;

static bool stop_at(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx, (void)phase, (void)done, (void)total;
  return ++asked != stop_after;
}

/* A clock by which every look at it takes longer than a transaction may. */
static const lode__os_table *real_os;
static uint64_t hasty_ns(void) {
  static uint64_t late;
  return real_os->now_ns() + (late += 60000000);
}

TEST(what_nobody_wants_any_more_is_cancelled) {
  lode_error err;
  world w = make_world(LODE_L2, 8, true, 2000, (lode_open_options){0});
  float v[MOST_DIM];
  lode_result *r;
  random_vector(&w, v);
  lode_str where = S("{\"$and\": [{\"tag\": {\"$ne\": \"t1\"}}, {\"$not\": {\"tag\": \"t2\"}}]}");
  lode_query_request q = {.vectors = v, .dimension = 8, .texts = &S("alpha beta"), .n = 1, .k = 5, .select.where = where, .progress = {stop_at, NULL}};
  lode_get_request g = {.select.where = where, .limit = 3, .progress = {stop_at, NULL}};
  lode__os_table hasty = *lode__os;
  real_os = lode__os;
  hasty.now_ns = hasty_ns;
  lode__os = &hasty;
  for (int mode = LODE_BY_VECTOR; mode <= LODE_HYBRID; mode++) {
    q.mode = (lode_mode)mode;
    stop_after = asked = 0;
    OK(lode_query(w.c, &q, &r, &err));
    lode_result_free(r);
    int times = asked;
    CHECKF(times > 2, "asked %d times only", times);
    for (stop_after = 1; stop_after <= times; stop_after += 1 + times / 10) {
      asked = 0;
      lode_status st = lode_query(w.c, &q, &r, &err); /* a warm cache may ask less often */
      CHECKF(st == (asked < stop_after ? LODE_OK : LODE_CANCELLED), "asked %d times, stopped at %d: %s", asked, stop_after, lode_status_name(st));
      CHECK((st == LODE_OK) == (r != NULL) && asked <= stop_after && (stop_after > 1 || !r));
      lode_result_free(r);
    }
  }
  stop_after = 1;
  asked = 0;
  FAILS(LODE_CANCELLED, lode_get(w.c, &g, &r, &err));
  CHECK(!r);
  lode__os = real_os;
  stop_after = 0;
  OK(lode_get(w.c, &g, &r, &err));
  CHECK(lode_result_count(r) == 3);
  lode_result_free(r);
  end_world(&w);
}

TEST(rows_carry_what_was_asked_for) {
  lode_error err;
  world w = make_world(LODE_L2, 5, true, 50, (lode_open_options){0});
  lode_result *r;
  float q[MOST_DIM];
  random_vector(&w, q);
  OK(lode_query(w.c, &(lode_query_request){.vectors = q, .dimension = 5, .n = 1, .k = 50, .include = LODE_ALL}, &r, &err));
  for (size_t i = 0; i < lode_result_count(r); i++) {
    const lode_row *row = lode_result_at(r, i);
    const rec *x = find(&w, row->id);
    CHECK(row->dimension == 5 && memcmp(row->vector, x->v, 5 * sizeof(float)) == 0 && row->metadata.data && row->cursor > 0);
    CHECK(x->has_document ? row->document.len == strlen(x->text) && memcmp(row->document.data, x->text, row->document.len) == 0 : !row->document.data);
  }
  lode_result_free(r);
  end_world(&w);
}
