/* SPDX-License-Identifier: Apache-2.0 */
/* test_query_text.c - what queries by words and hybrid ones answer, against naive ones: BM25 and the fusion of ranks
 * computed anew over all records of world.h. */
#include "base/base.h"
#include "base/token.h"
#include "support/test.h"
#include "support/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

/* ---- The oracle's answers ---- */

static int better(const void *a, const void *b) {
  const world_answer *x = a, *y = b;
  if (fabs(x->score - y->score) > 1e-12) return x->score > y->score ? -1 : 1;
  return strcmp(x->r->id, y->r->id);
}

typedef struct count_ctx {
  const char *word;
  size_t len, n;
} count_ctx;

static int count_token(void *ctx, const token_item *t) {
  count_ctx *c = ctx;
  c->n += t->len == c->len && memcmp(t->text, c->word, c->len) == 0;
  return 0;
}

typedef struct word_list {
  char text[64][40];
  size_t n;
} word_list;

static int list_token(void *ctx, const token_item *t) {
  word_list *l = ctx;
  for (size_t i = 0; i < l->n; i++)
    if (strlen(l->text[i]) == t->len && memcmp(l->text[i], t->text, t->len) == 0) return 0;
  memcpy(l->text[l->n], t->text, t->len);
  l->text[l->n++][t->len] = 0;
  return l->n == 64;
}

static size_t occurrences(const world_record *r, const char *word) {
  count_ctx c = {word, strlen(word), 0};
  if (r->has_document) (void)token_split(r->text, strlen(r->text), count_token, &c);
  return c.n;
}

/* telling: words that most documents hold weigh nothing, and who holds no others comes last. */
static size_t by_words(const world *w, const char *query, world_keep *keep, bool telling, world_answer *out) {
  word_list l = {.n = 0};
  double documents = 0, bytes = 0;
  size_t n = 0;
  (void)token_split(query, strlen(query), list_token, &l);
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
    if (found[i] && (!keep || keep(&w->r[i]))) out[n++] = (world_answer){&w->r[i], NAN, scores[i]};
  free(scores);
  free(found);
  qsort(out, n, sizeof *out, better);
  return n;
}

static size_t by_text(const world *w, const char *query, world_keep *keep, world_answer *out) {
  return by_words(w, query, keep, false, out);
}

/* ---- Text ---- */

/* Sums of the same numbers in another order differ in their last bits, and then records that are equal change places.
 */
static bool may_stand_at(const world_answer *want, size_t n, size_t place, const void *record) {
  for (size_t i = 0; i < n; i++)
    if (want[i].r == record) return fabs(want[i].score - want[place].score) < 1e-9;
  return false;
}

static void check_text(const world *w, const char *query, size_t k, lode_selection select, world_keep *keep) {
  lode_error err;
  lode_result *r;
  world_answer *want = calloc(w->n + 1, sizeof *want);
  size_t all = by_text(w, query, keep, want), n = least(all, k);
  OK(lode_query(w->c,
                &(lode_query_request){
                    .mode = LODE_BY_TEXT, .texts = (lode_str[]){str_of(query)}, .n = 1, .k = k, .select = select},
                &r, &err));
  CHECKF(lode_result_count(r) == n, "\"%s\": %zu rows, wanted %zu", query, lode_result_count(r), n);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(r, i);
    CHECK(isnan(row->distance) && row->rank == i);
    CHECKF(fabs(row->score - want[i].score) < 1e-9, "\"%s\" rank %zu: score %.12g, wanted %.12g", query, i, row->score,
           want[i].score);
    CHECKF(may_stand_at(want, all, i, world_find(w, row->id)), "\"%s\" rank %zu: %.*s, wanted %s", query, i,
           (int)row->id.len, row->id.data, want[i].r->id);
  }
  free(want);
  lode_result_free(r);
}

static const char *const texts[] = {"alpha",       "kilo",
                                    "Zebra zebra", "http",
                                    "read file",   "read_file 42 x",
                                    "unknown",     "",
                                    "  ?! ",       "alpha beta gamma delta HttpServer read_file x 42 Zebra kilo"};
enum { TEXTS = sizeof texts / sizeof *texts };

TEST(bm25_is_exact_with_and_without_an_index) {
  lode_error err;
  world w = world_make(LODE_L2, 4, true, 500, (lode_open_options){0});
  for (int round = 0; round < 3; round++) {
    for (size_t t = 0; t < TEXTS; t++) {
      check_text(&w, texts[t], 10, (lode_selection){0}, NULL);
      check_text(&w, texts[t], 1000, (lode_selection){0}, NULL);
      size_t f = test_below(world_n_filters);
      check_text(&w, texts[t], 7, world_selection(f), world_filters[f].keep);
    }
    if (round == 0) OK(lode_optimize(w.store, (lode_progress){0}, &err));
    if (round == 1) { /* changed documents below the cursor, new ones behind it */
      char meta[160];
      for (size_t i = 0; i < 100; i++) {
        world_record *r = i % 2 ? &w.r[w.n++] : &w.r[i];
        if (i % 2) snprintf(r->id, sizeof r->id, "y%zu", i);
        world_randomize(&w, r);
        r->alive = r->has_document = true;
        lode_record x = world_record_of(&w, r, meta, sizeof meta);
        r->has_vector = true; /* an upsert without one keeps the old */
        OK(lode_upsert(w.c, NULL, &x, 1, NULL, &err));
        if (i % 2 == 0 && r->n < 0)
          OK(lode_update(w.c, NULL, &(lode_record){.id = str_of(r->id), .metadata = S("{\"n\": null, \"odd\": null}")},
                         1, NULL, NULL, &err));
      }
    }
  }
  /* Deleted ones are never found and count no more, whether they are erased or not. */
  for (size_t i = 0; i < 200; i++) {
    w.r[i].alive = false;
    OK(lode_delete(w.c, NULL, &(lode_selection){.ids = (lode_str[]){str_of(w.r[i].id)}, .n_ids = 1}, NULL, &err));
  }
  for (int round = 0; round < 2; round++) {
    for (size_t t = 0; t < TEXTS; t++) check_text(&w, texts[t], 1000, (lode_selection){0}, NULL);
    OK(lode_optimize(w.store, (lode_progress){0}, &err));
  }
  world_end(&w);
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
    OK(lode_add(c, NULL, &(lode_record){.id = str_of(id), .document = S("same words")}, 1, LODE_FAIL_EXISTING, NULL,
                &err));
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
    OK(lode_optimize(s, (lode_progress){0}, &err));
  }
  lode_collection_close(c);
  lode_close(s);
}

/* ---- Hybrid ---- */

static int better_fused(const void *a, const void *b) { /* sums of the same two numbers: equal to the last bit */
  const world_answer *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return strcmp(x->r->id, y->r->id);
}

static void check_hybrid(const world *w, const char *text, size_t k, double wv, double wt) {
  lode_error err;
  lode_result *r;
  float q[WORLD_MOST_DIM];
  world_vector(w, q);
  world_answer *a = calloc(w->n + 1, sizeof *a), *b = calloc(w->n + 1, sizeof *b),
               *both = calloc(2 * w->n + 1, sizeof *both);
  size_t m = k * 4 > 64 ? k * 4 : 64, n = 0;
  size_t na = least(world_nearest(w, q, NULL, a), m), nb = least(by_words(w, text, NULL, na > 0, b), m);
  double va = wv > 0 || wt > 0 ? wv : 1, vb = wv > 0 || wt > 0 ? wt : 1;
  for (size_t i = 0; i < na; i++) both[n++] = (world_answer){a[i].r, 0, va / (61.0 + (double)i)};
  for (size_t i = 0; i < nb; i++) {
    size_t j = 0;
    while (j < na && both[j].r != b[i].r) j++;
    if (j == na) {
      j = n++;
      both[j] = (world_answer){b[i].r, 0, 0};
    }
    if (b[i].score > 0) both[j].score += vb / (61.0 + (double)i);
  }
  qsort(both, n, sizeof *both, better_fused);
  OK(lode_query(w->c,
                &(lode_query_request){.mode = LODE_HYBRID,
                                      .vectors = q,
                                      .dimension = w->dim,
                                      .texts = (lode_str[]){str_of(text)},
                                      .n = 1,
                                      .k = k,
                                      .vector_weight = wv,
                                      .text_weight = wt},
                &r, &err));
  CHECKF(lode_result_count(r) == least(k, n), "%zu rows, wanted %zu", lode_result_count(r), least(k, n));
  for (size_t i = 0; i < lode_result_count(r); i++) {
    const lode_row *row = lode_result_at(r, i);
    const world_record *x = world_find(w, row->id);
    CHECKF(fabs(row->score - both[i].score) < 1e-12, "\"%s\" rank %zu: score %.12g, wanted %.12g", text, i, row->score,
           both[i].score);
    CHECKF(x == both[i].r, "\"%s\" rank %zu: %s, wanted %s", text, i, x->id, both[i].r->id);
    CHECK(x->has_vector ? row->distance == world_distance(w, q, x->v) : isnan(row->distance));
  }
  free(a);
  free(b);
  free(both);
  lode_result_free(r);
}

TEST(hybrid_fuses_both_rankings) {
  lode_error err;
  world w = world_make(LODE_L2, 6, true, 400, (lode_open_options){0});
  for (int round = 0; round < 2; round++) {
    for (size_t t = 0; t < TEXTS; t++) {
      check_hybrid(&w, texts[t], 5, 0, 0);
      check_hybrid(&w, texts[t], 40, 1, 0.25);
      check_hybrid(&w, texts[t], 30, 0, 1);
    }
    OK(lode_optimize(w.store, (lode_progress){0}, &err));
  }
  /* Filters hold for what comes by words as for what comes by meaning. */
  lode_result *r;
  float q[WORLD_MOST_DIM];
  world_vector(&w, q);
  OK(lode_query(w.c,
                &(lode_query_request){.mode = LODE_HYBRID,
                                      .vectors = q,
                                      .dimension = 6,
                                      .texts = &S("alpha beta"),
                                      .n = 1,
                                      .k = 400,
                                      .select.where = S("{\"tag\": \"t1\"}"),
                                      .include = LODE_METADATA},
                &r, &err));
  CHECK(lode_result_count(r) > 10);
  for (size_t i = 0; i < lode_result_count(r); i++) CHECK(world_find(&w, lode_result_at(r, i)->id)->tag == 1);
  lode_result_free(r);
  world_end(&w);
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
    lode_query_request q = {.mode = LODE_HYBRID,
                            .vectors = (float[]){1, 0, 0},
                            .dimension = 3,
                            .texts = &S("what a compiler reads"),
                            .n = 1,
                            .k = 5};
    OK(lode_query(c, &q, &rows, &err));
    CHECK(lode_result_count(rows) == 5 && memcmp(lode_result_at(rows, 0)->id.data, "parser", 6) == 0);
    CHECK(memcmp(lode_result_at(rows, 4)->id.data, "pending", 7) == 0 &&
          lode_result_at(rows, 4)->score == 0); /* found, and last */
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
    OK(lode_optimize(s, (lode_progress){0}, &err));
  }
  lode_collection_close(c);
  lode_close(s);
}
