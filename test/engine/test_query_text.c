/* SPDX-License-Identifier: Apache-2.0 */
/* test_query_text.c - queries by words and hybrid ones answer what the oracle does: BM25 and the fusion of ranks over
 * all records. */
#include "base/base.h"
#include "support/fixture.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

static const char *const texts[] = {"alpha",     "w22",
                                    "TODO todo", "http",
                                    "get user",  "get_user_name w1 the",
                                    "unknown",   "",
                                    "  ?! ",     "alpha beta gamma delta HTTPServer2 get_user_name the of w1 x86_64"};
enum { TEXTS = sizeof texts / sizeof *texts };

/* ---- Text ---- */

static void check_text(const fixture *f, const char *query, size_t k, const oracle_selection *s) {
  lode_error err;
  lode_result *rows;
  oracle_hit *hits = calloc(f->oracle.n + 1, sizeof *hits);
  lode_str text = str_of(query);
  lode_query_request q = {
      .mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = k, .select = oracle_request(s), .include = LODE_ALL};
  OK(lode_query(f->c, &q, &rows, &err));
  oracle_check_text(rows, hits, oracle_text(&f->oracle, text, s, false, hits), k, true, LODE_ALL);
  free(hits);
  lode_result_free(rows);
}

static void check_texts(const fixture *f, bool filtered) {
  oracle_filter where = {0};
  for (size_t t = 0; t < TEXTS; t++) {
    check_text(f, texts[t], 10, NULL);
    check_text(f, texts[t], 1000, NULL);
    oracle_random_filter(&where, t % 2, -1);
    oracle_selection s = {.where = t % 2 ? NULL : &where, .document = t % 2 ? &where : NULL};
    if (filtered) check_text(f, texts[t], 7, &s);
  }
  oracle_filter_release(&where);
}

/* Some records get other documents, metadata and vectors, and some are added. */
static void change_half(fixture *f) {
  oracle_content content = {.owner = -1, .dim = f->oracle.dim, .nulls = true};
  for (unsigned i = 0; i < 50; i++) {
    oracle_record r;
    oracle_random_record(&r, i * 2, &content);
    fixture_write(f, ORACLE_UPSERT, &r, 1);
  }
  fixture_fill(f, 50);
}

TEST_SLOW(bm25_is_exact_with_and_without_an_index, 120) {
  fixture f = {.no_background = true};
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_L2, 4);
  fixture_fill(&f, 500);
  for (int round = 0; round < 3; round++) {
    check_texts(&f, true);
    if (round == 0) fixture_optimize(&f);
    if (round == 1) change_half(&f); /* changed documents below the cursor, new ones past it */
  }
  /* Deleted ones are never found and count no more, whether they are erased or not. */
  for (size_t i = 0; i < 200; i++) fixture_remove(&f, test_below(f.oracle.n));
  for (int round = 0; round < 2; round++) {
    check_texts(&f, false);
    fixture_optimize(&f);
  }
  fixture_close(&f);
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

static void check_hybrid(const fixture *f, const char *query, size_t k, double by_vector, double by_text,
                         const oracle_selection *s) {
  lode_error err;
  lode_result *rows;
  float v[16];
  lode_str text = str_of(query);
  oracle_hit *hits = calloc(2 * f->oracle.n + 1, sizeof *hits);
  oracle_random_vector(v, f->oracle.dim);
  lode_query_request q = {.mode = LODE_HYBRID,
                          .vectors = v,
                          .dimension = f->oracle.dim,
                          .texts = &text,
                          .n = 1,
                          .k = k,
                          .vector_weight = by_vector,
                          .text_weight = by_text,
                          .select = oracle_request(s)};
  OK(lode_query(f->c, &q, &rows, &err));
  oracle_check_hybrid(&f->oracle, rows, &q, hits, oracle_hybrid(&f->oracle, &q, s, hits));
  free(hits);
  lode_result_free(rows);
}

TEST_SLOW(hybrid_fuses_both_rankings, 120) {
  fixture f = {.no_background = true};
  oracle_filter where = {0};
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_L2, 6);
  fixture_fill(&f, 400);
  for (int round = 0; round < 2; round++) {
    for (size_t t = 0; t < TEXTS; t++) {
      oracle_selection s = {.where = &where};
      check_hybrid(&f, texts[t], 5, 0, 0, NULL);
      check_hybrid(&f, texts[t], 40, 1, 0.25, NULL);
      check_hybrid(&f, texts[t], 30, 0, 1, NULL);
      oracle_random_filter(&where, false, -1); /* filters hold for what comes by words as for what comes by vectors */
      check_hybrid(&f, texts[t], 30, 1, 1, &s);
    }
    fixture_optimize(&f);
  }
  oracle_filter_release(&where);
  fixture_close(&f);
}

/* A word that all documents hold must not put one before another, however few they are. */
TEST(common_words_do_not_mislead_hybrid_queries) {
  lode_error err;
  lode_store *s;
  lode_collection *c;
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &s, &err));
  OK(lode_collection_open(s, S("c"), &(lode_collection_options){.create = true, .metric = LODE_COSINE}, &c, &err));
  lode_record r[] = {
      {.id = S("boil"),
       .document = S("how to boil an egg: a pot, a lid, a minute, a spoon"),
       .vector = (float[]){0, 1, 0},
       .dimension = 3},
      {.id = S("cats"), .document = S("a note on cats"), .vector = (float[]){0.1f, 0, 1}, .dimension = 3},
      {.id = S("parser"),
       .document = S("the parser is a table of states that a token moves through"),
       .vector = (float[]){1, 0.1f, 0},
       .dimension = 3},
      {.id = S("pending"), .document = S("a thing without a vector")},
      {.id = S("rain"), .document = S("a day of rain"), .vector = (float[]){0, 0.5f, 0.5f}, .dimension = 3},
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
    q.texts = &S("a note on rain"); /* a rare word counts as ever */
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
