/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c - the planner of queries: facts to plans, as a table with both sides of each threshold; and on stores,
 * that what is done is what the plan says. */
#include "base/json.h"
#include "engine/query_plan.h"
#include "segments/segment_build.h"
#include "support/fixture.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

/* ---- Facts to plans ---- */

enum {
  C = ENGINE_FACT_CACHE,
  P = ENGINE_FACT_PROPOSALS,
  L = ENGINE_FACT_LIST,
  M = ENGINE_FACT_MANIFEST,
  V = ENGINE_FACT_SNAPSHOT,
};
#define ALL ENGINE_MATCHES_ALL
#define POST ENGINE_MATCHES_POST
#define CACHED ENGINE_MATCHES_CACHED
#define IDS ENGINE_MATCHES_IDS
#define PROPOSED ENGINE_MATCHES_PROPOSED
#define INDEX ENGINE_MATCHES_INDEX
#define SCAN ENGINE_MATCHES_SCAN

static engine_plan plan_of(engine_facts f) {
  if (!f.want) f.want = 10;
  if (!f.queries) f.queries = 1;
  if (!f.records) f.records = 100000;
  f.has_vectors = true;
  return engine_plan_make(&f);
}

/* What is left out: 10 hits of one query are wanted from 100,000 records with vectors. */
typedef struct selection_case {
  int line;
  engine_facts facts;
  unsigned need; /* the next fact */
  engine_matches matches;
  size_t candidates; /* 0: any */
} selection_case;
#define FETCH(fact, ...)                                                                                               \
  { __LINE__, {.selects = true, __VA_ARGS__}, fact, ALL, 0 }
#define PLAN(fact, matches, candidates, ...)                                                                           \
  { __LINE__, {.selects = true, __VA_ARGS__}, fact, matches, candidates }
#define STATS(n, m) .stats = {.evaluated = (n), .matched = (m)}
#define SNAP .snapshot = true, .known = C
#define ASKED(n) .known = C | P, .proposes = true, .proposals = (n)

static void check_selections(const selection_case *cases, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const selection_case *c = &cases[i];
    engine_plan p = plan_of(c->facts);
    CHECKF(p.need == c->need, "line %d: needs %u, not %u", c->line, (unsigned)p.need, c->need);
    if (c->need == C || c->need == P) continue;
    CHECKF(p.matches == c->matches, "line %d: %s, not %s", c->line, engine_matches_name(p.matches),
           engine_matches_name(c->matches));
    CHECKF(!c->candidates || p.candidates == c->candidates, "line %d: %zu candidates", c->line, p.candidates);
    CHECK(p.matches_why && p.matches_why[0]);
  }
}

TEST(what_is_known_about_the_filter) {
  static const selection_case cases[] = {
      {__LINE__, {.attempt = 0}, V, ALL, 10 + 16},
      FETCH(C, .known = 0),
      PLAN(L, CACHED, 26, SNAP, .cached = true),
      /* a new filter is tried on four times as many, whatever was spent before */
      PLAN(V, POST, 10 + 4 * 14, SNAP, .new_filter = true),
      PLAN(V, POST, 66, SNAP, .new_filter = true, .spent = 1000000),
      PLAN(V, POST, 0, SNAP, .new_filter = true, .want = 8192),
      FETCH(P, SNAP, .new_filter = true, .want = 8193),
      FETCH(P, SNAP, .new_filter = true, .by_ids = true),
      FETCH(P, .known = C, .new_filter = true), /* there is no index */
      /* as many more as the share of matches suggests, up to eight for each hit */
      PLAN(V, POST, 14, SNAP, STATS(100, 99)),
      PLAN(V, POST, 10 + 24, SNAP, STATS(99, 49)),
      PLAN(V, POST, 10 + 79, SNAP, STATS(479, 100)),
      FETCH(P, SNAP, STATS(479, 98)),
      /* until it has cost as much as listing: a scan, or a sixteenth of the matches, used four times */
      PLAN(V, POST, 0, SNAP, STATS(100, 99), .spent = 100000 - 4),
      FETCH(P, SNAP, STATS(100, 99), .spent = 100000 - 3),
      PLAN(V, POST, 0, SNAP, STATS(100, 99), .is_probe = true, .spent = 1543),
      FETCH(P, SNAP, STATS(100, 99), .is_probe = true, .spent = 1544),
      FETCH(P, SNAP, STATS(100, 99), .is_probe = true, .spent = 1543, .queries = 2),
      /* the second attempt, if the filter is new and a list costs more */
      FETCH(P, SNAP, STATS(66, 6), .attempt = 1),
      PLAN(V, POST, 10 + 287, SNAP, STATS(66, 6), .attempt = 1, .new_filter = true, .is_probe = true),
      PLAN(V, POST, 0, SNAP, STATS(66, 6), .attempt = 1, .new_filter = true, .is_probe = true, .queries = 2),
      FETCH(P, SNAP, STATS(66, 6), .attempt = 1, .new_filter = true, .is_probe = true, .queries = 3),
      FETCH(P, SNAP, STATS(66, 0), .attempt = 1, .new_filter = true, .is_probe = true),
      PLAN(V, POST, 10 + 2010, SNAP, STATS(66, 0), .attempt = 1, .new_filter = true),
      FETCH(P, SNAP, STATS(66, 6), .attempt = 2, .new_filter = true),
  };
  check_selections(cases, sizeof cases / sizeof *cases);
}

TEST(what_the_index_proposes) {
  static const selection_case cases[] = {
      /* a filter that is one condition of the index is listed as proposed, until that has failed */
      PLAN(L, PROPOSED, 0, SNAP | P, .proposes = true, .proposals = 60000, .is_probe = true, STATS(100, 1)),
      PLAN(L, PROPOSED, 10 + 128, SNAP | P, .proposes = true, .proposals = 9, .is_probe = true, .attempt = 1),
      PLAN(L, INDEX, 10 + 1024, SNAP | P, .proposes = true, .proposals = 9, .is_probe = true, .attempt = 2),
      PLAN(L, PROPOSED, 0, SNAP | P, .proposes = true, .proposals = 9, .is_probe = true, .attempt = 2,
           .second_look = true),
      PLAN(L, INDEX, 0, SNAP | P, .proposes = true, .proposals = 9, .is_probe = true, .attempt = 3,
           .second_look = true),
      /* others: candidates if they are fewer than half of the matches, and within the budget */
      PLAN(V, POST, 10 + 1176, SNAP | P, .proposes = true, .proposals = 2400, STATS(100, 1)),
      PLAN(L, INDEX, 26, SNAP | P, .proposes = true, .proposals = 2350, STATS(100, 1)),
      PLAN(V, POST, 10 + 1176, SNAP | P, .proposes = true, .proposals = 2350, .unindexed = 50, STATS(100, 1)),
      PLAN(V, POST, 0, SNAP | P, .proposes = true, .proposals = 2400, .spent = 1224, STATS(100, 1)),
      PLAN(L, INDEX, 0, SNAP | P, .proposes = true, .proposals = 2400, .spent = 1225, STATS(100, 1)),
      PLAN(L, INDEX, 0, SNAP | P, .proposes = true, .proposals = 0, STATS(100, 1)),
      PLAN(V, POST, 10 + 8 * 168, SNAP | P, .proposes = true, .proposals = 20000, .attempt = 1),
      PLAN(L, INDEX, 0, SNAP | P, .proposes = true, .proposals = 20000, .attempt = 2),
      PLAN(V, POST, 10 + 2856, ASKED(6000)), /* without an index of vectors */
      PLAN(L, INDEX, 0, ASKED(5800)),
      PLAN(L, INDEX, 0, ASKED(6000), .attempt = 1),
      PLAN(L, INDEX, 0, ASKED(30000), .want = 8193),
      PLAN(L, IDS, 0, ASKED(30000), .by_ids = true),
      /* no list: candidates, then a scan */
      PLAN(V, POST, 10 + 8 * 42, .known = C | P),
      PLAN(L, SCAN, 0, .known = C | P, .attempt = 1),
      PLAN(V, POST, 66, SNAP, .stats = {100, 1, true}),
      PLAN(V, POST, 66, SNAP, .stats = {100, 1, true}, .spent = 100000 - 56),
      PLAN(L, SCAN, 0, SNAP, .stats = {100, 1, true}, .spent = 100000 - 55),
      PLAN(V, POST, 10 + 8 * 56, SNAP, .stats = {100, 1, true}, .attempt = 1),
      PLAN(L, SCAN, 0, SNAP, .stats = {100, 1, true}, .attempt = 2),
      /* by text, the records that have the words are few */
      PLAN(0, POST, 0, .known = C | P, .mode = LODE_BY_TEXT),
      PLAN(0, POST, 0, .known = C | P, .mode = LODE_BY_TEXT, .attempt = 3),
      PLAN(L, INDEX, 0, ASKED(5800), .mode = LODE_BY_TEXT),
      PLAN(0, POST, 0, ASKED(6000), .mode = LODE_BY_TEXT),
      PLAN(L, IDS, 0, ASKED(6000), .mode = LODE_BY_TEXT, .by_ids = true),
      /* a list that is there stays */
      PLAN(M, SCAN, 26, .known = L, .listed_by = SCAN, .listed_why = "it was", .listed = 5000),
  };
  check_selections(cases, sizeof cases / sizeof *cases);
}

/* What a post-filter that was rejected would have cost is charged, too: a budget that was overdrawn once stays so. */
TEST(evaluations_are_charged) {
  engine_facts f = {.selects = true, .known = C, .snapshot = true, STATS(100, 99), .queries = 3};
  CHECK(plan_of(f).charge == 3 * 4 && plan_of(f).matches == POST);
  f.spent = 99995;
  CHECK(plan_of(f).charge == 3 * 4 && plan_of(f).need == ENGINE_FACT_PROPOSALS);
  f.known |= P;
  CHECK(plan_of(f).charge == 3 * 4 + 56 && plan_of(f).matches == SCAN);
  f.spent = 0;
  f.cached = true;
  CHECK(plan_of(f).charge == 0);
}

TEST(a_list_of_proposals_is_rejected_at_the_third_attempt) {
  static const engine_matches kinds[] = {CACHED, IDS, PROPOSED, INDEX, SCAN};
  for (size_t i = 0; i < 5; i++)
    for (unsigned attempt = 0; attempt < 4; attempt++)
      for (int probe = 0; probe < 2; probe++) {
        engine_facts f = {.known = L, .listed_by = kinds[i], .attempt = attempt, .is_probe = probe};
        bool proposed = kinds[i] == PROPOSED || (kinds[i] == CACHED && probe);
        CHECK(engine_plan_rejects_list(&f) == (proposed && attempt > 1));
        f.known = 0;
        CHECK(!engine_plan_rejects_list(&f));
      }
}

typedef struct vector_case {
  int line;
  engine_facts facts;
  unsigned need;
  engine_vectors vectors;
} vector_case;
#define WITH(vectors, ...)                                                                                             \
  { __LINE__, {__VA_ARGS__}, 0, vectors }
#define NEEDS(fact, ...)                                                                                               \
  { __LINE__, {__VA_ARGS__}, fact, ENGINE_VECTORS_NONE }
#define LIST(n) .selects = true, .listed_by = INDEX, .listed_why = "", .listed = (n), .known = L
#define SNAPSHOT(n) .fits = true, .indexed = (n), .known = V

TEST(how_vectors_are_found) {
  static const vector_case cases[] = {
      /* a list: record by record if it is short */
      WITH(ENGINE_VECTORS_NONE, LIST(0)),
      WITH(ENGINE_VECTORS_BY_RECORD, LIST(8)),
      NEEDS(M, LIST(9)),
      NEEDS(V, LIST(9) | M, .published = true, .loaded = true),
      WITH(ENGINE_VECTORS_BY_RECORD, LIST(2000) | M, .published = true),
      NEEDS(V, LIST(2001) | M, .published = true),
      WITH(ENGINE_VECTORS_BY_RECORD, LIST(3124) | M, .loaded = true),
      NEEDS(V, LIST(3125) | M, .loaded = true),
      WITH(ENGINE_VECTORS_BY_RECORD, LIST(24999) | M),
      NEEDS(V, LIST(25000) | M),
      /* the last attempt reads every vector */
      NEEDS(V, LIST(25000) | M, .attempt = 2),
      WITH(ENGINE_VECTORS_STREAM, LIST(25000) | M, .attempt = 3),
      WITH(ENGINE_VECTORS_BY_RECORD, LIST(8), .attempt = 3),
      WITH(ENGINE_VECTORS_STREAM, .attempt = 3),
      /* a snapshot: the index, unless it is of no help */
      WITH(ENGINE_VECTORS_NONE, .mode = LODE_BY_TEXT),
      NEEDS(V, .mode = LODE_HYBRID),
      WITH(ENGINE_VECTORS_STREAM, .known = V),
      WITH(ENGINE_VECTORS_SCAN, SNAPSHOT(0)),
      WITH(ENGINE_VECTORS_SCAN, SNAPSHOT(79)),
      WITH(ENGINE_VECTORS_CODES, SNAPSHOT(80)), /* exact when small, unless the request says how much effort it wants */
      WITH(ENGINE_VECTORS_CODES, SNAPSHOT(20000)),
      WITH(ENGINE_VECTORS_INDEX, SNAPSHOT(20001)),
      WITH(ENGINE_VECTORS_INDEX, SNAPSHOT(80), .tuned = true),
      WITH(ENGINE_VECTORS_SCAN, SNAPSHOT(1103), .attempt = 1), /* now 138 are asked for */
      WITH(ENGINE_VECTORS_CODES, SNAPSHOT(1104), .attempt = 1),
      WITH(ENGINE_VECTORS_SCAN, SNAPSHOT(90000), .exact = true),
      WITH(ENGINE_VECTORS_SCAN, SNAPSHOT(90000), .zero_query = true),
      WITH(ENGINE_VECTORS_INDEX, SNAPSHOT(90000)),
  };
  segments_limits.exact_rows = 20000;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    engine_plan p = plan_of(cases[i].facts);
    CHECKF(p.need == cases[i].need, "line %d: needs %u", cases[i].line, (unsigned)p.need);
    if (p.need) continue;
    CHECKF(p.vectors == cases[i].vectors, "line %d: %s", cases[i].line, engine_vectors_name(p.vectors));
    CHECK(p.vectors_why && p.vectors_why[0]);
  }
}

TEST(sizes) {
  CHECK(engine_plan_group(0) == 64 && engine_plan_group(128) == 64 && engine_plan_group(129) == 63);
  CHECK(engine_plan_group(8192) == 1 && engine_plan_group(8193) == 1 && engine_plan_group(SIZE_MAX) == 1);
  CHECK(engine_plan_probes(8) == 8 && engine_plan_probes(9) == 8);
  CHECK(engine_plan_wants_fewer(65) && !engine_plan_wants_fewer(64));
  CHECK(engine_plan_max_proposals(1000, true, false) == 264 && engine_plan_max_proposals(1000, false, true) == 264);
  CHECK(engine_plan_max_proposals(1000, true, true) == 1000);
  CHECK(engine_plan_max_proposals(900000, true, true) == 200000);
  CHECK(engine_plan_max_proposals(2000000, true, true) == 400064);
}

/* ---- Plans and what was done ---- */

static json_doc told;

/* Asks, and keeps the explanation in `told`. The number of rows. */
static size_t ask(fixture *f, size_t k, const char *where, lode_query_request r) {
  lode_error err;
  lode_result *rows;
  static float q[ORACLE_MAX_DIM];
  static strbuf text;
  fixture_random(f, q);
  if (r.mode != LODE_BY_TEXT) r.vectors = q, r.dimension = f->oracle.dim;
  r.n = 1;
  r.k = k;
  r.explain = 1;
  if (where) r.select.where = (lode_str){where, strlen(where)};
  OK(lode_query(f->c, &r, &rows, &err));
  text.len = 0;
  lode_str json = lode_result_explain(rows);
  strbuf_add(&text, json.data, json.len);
  OK(json_parse(&told, (lode_str){text.data, text.len}, NULL, &err));
  size_t n = lode_result_count(rows);
  lode_result_free(rows);
  return n;
}

/* The step of this name, of the last attempt or of the first; 0: there is none. */
static uint32_t step_of(const char *name, bool last) {
  uint32_t steps = json_get(&told, 0, S("steps")), found = 0;
  for (uint32_t at = steps + 1; at < told.nodes[steps].next; at = told.nodes[at].next) {
    uint32_t is = json_get(&told, at, S("step"));
    if (str_eq(told.nodes[is].u.s, str_of(name)) && (last || !found)) found = at;
  }
  return found;
}

static const char *method(const char *step) {
  static char text[64];
  uint32_t at = step_of(step, true), node = at ? json_get(&told, at, S("method")) : 0;
  snprintf(text, sizeof text, "%.*s", node ? (int)told.nodes[node].u.s.len : 1, node ? told.nodes[node].u.s.data : "-");
  return text;
}

static long long figure(const char *step, const char *name) {
  uint32_t at = step_of(step, true), node = at ? json_get(&told, at, str_of(name)) : 0;
  return node ? told.nodes[node].u.i : -1;
}

#define IS(step, text) CHECKF(strcmp(method(step), text) == 0, "%s: %s, not %s", step, method(step), text)

/* What the counters of those who do the work say must fit what the plan says. */
static void check_done(const fixture *f) {
  long long records = (long long)f->oracle.n, evaluated = figure("filter", "evaluated"),
            listed = figure("filter", "listed"), read = figure("vectors", "read"),
            scanned = figure("vectors", "scanned"), segments = figure("vectors", "segments");
  if (step_of("filter", true)) {
    bool lists = strstr(method("filter"), "list") != NULL;
    CHECK(lists == (listed >= 0) && lists == (evaluated >= 0));
    if (strcmp(method("filter"), "cached list") == 0) CHECK(evaluated == 0);
    if (strcmp(method("filter"), "list by a scan") == 0) CHECK(evaluated == records || evaluated == 0);
    if (strcmp(method("filter"), "list proposed by the index") == 0)
      CHECK(evaluated <= figure("filter", "unindexed") && listed >= figure("filter", "proposals"));
    if (strcmp(method("filter"), "list by the index") == 0)
      CHECK(evaluated <= figure("filter", "proposals") + figure("filter", "unindexed") && listed <= records);
  }
  if (strcmp(method("vectors"), "record by record") == 0)
    CHECK(read == scanned && read <= listed && segments == -1);
  else
    CHECK(read <= 0);
  if (strcmp(method("vectors"), "vector index") == 0) CHECK(segments > 0 && figure("vectors", "distances") > 0);
  if (strcmp(method("vectors"), "scan of all vectors") == 0) CHECK(segments == -1);
  if (strcmp(method("vectors"), "scan of all vectors") == 0 && listed < 0)
    CHECK(scanned >= records); /* dead rows too */
  if (strcmp(method("vectors"), "none") == 0) CHECK(segments == -1 && scanned == 0);
  CHECK(figure("rows", "records") == records && figure("rows", "matched") <= figure("rows", "confirmed"));
}

static fixture indexed_store(size_t n) {
  fixture f = {.no_background = true};
  test_srand(test_seed());
  fixture_limits(400, 300);
  fixture_open(&f, test_folder(), LODE_L2, 16);
  fixture_add(&f, n);
  fixture_optimize(&f);
  return f;
}

TEST(the_plan_is_what_is_done) {
  fixture f = indexed_store(6000);
  static const lode_query_request plain;
  CHECK(ask(&f, 10, NULL, plain) == 10);
  IS("filter", "-");
  IS("vectors", "vector index");
  IS("rows", "complete");
  IS("query", "by vector");
  check_done(&f);
  ask(&f, 10, NULL, (lode_query_request){.exact = true});
  IS("vectors", "scan of all vectors");
  check_done(&f);
  ask(&f, 751, NULL, plain);
  IS("vectors", "scan of all vectors");
  ask(&f, 750, NULL, plain);
  IS("vectors", "vector index");
  /* most match, and evaluating a few candidates twice is cheaper than a list */
  for (int i = 0; i < 2; i++) {
    CHECK(ask(&f, 10, "{\"n\":{\"$gte\":10}}", plain) == 10);
    IS("filter", "post-filter");
    IS("vectors", "vector index");
    CHECK(figure("filter", "attempt") == 1);
    check_done(&f);
  }
  /* few match, one condition of the index */
  CHECK(ask(&f, 50, "{\"n\":7}", plain) == 50);
  IS("filter", "list proposed by the index");
  CHECK(figure("filter", "attempt") > 1 && figure("filter", "proposals") == 60 && figure("filter", "listed") == 60);
  check_done(&f);
  CHECK(ask(&f, 50, "{\"n\":7}", plain) == 50);
  IS("filter", "cached list");
  check_done(&f);
  /* two conditions; if by chance many of the first candidates match, a second look seems cheaper than a list, once */
  static const char two_conditions[] = "{\"n\":{\"$gt\":5,\"$lt\":8,\"$ne\":7}}";
  CHECK(ask(&f, 50, two_conditions, plain) == 50);
  if (strcmp(method("filter"), "post-filter") == 0) {
    CHECK(figure("filter", "attempt") == 2);
    check_done(&f);
    CHECK(ask(&f, 50, two_conditions, plain) == 50);
  }
  IS("filter", "list by the index");
  check_done(&f);
  /* none of an index, until evaluating has cost as much as a scan */
  for (int i = 0; i < 12; i++) {
    CHECK(ask(&f, 50, "{\"$not\":{\"n\":{\"$ne\":8}}}", plain) == 50);
    check_done(&f);
  }
  IS("filter", "cached list");
  lode_str ids[9] = {S("1"), S("2"), S("3"), S("4"), S("5"), S("6"), S("7"), S("8"), S("9")};
  CHECK(ask(&f, 10, NULL, (lode_query_request){.select = {.ids = ids, .n_ids = 8}}) == 8);
  IS("filter", "list of ids");
  IS("vectors", "record by record");
  check_done(&f);
  CHECK(ask(&f, 10, NULL, (lode_query_request){.select = {.ids = ids, .n_ids = 9}}) == 9);
  IS("vectors", "vector index");
  check_done(&f);
  CHECK(ask(&f, 10, "{\"n\":1000}", plain) == 0);
  IS("vectors", "none");
  check_done(&f);
  fixture_reopen(&f); /* nothing is loaded */
  CHECK(ask(&f, 10, "{\"n\":7}", plain) == 10);
  IS("filter", "list by the index");
  IS("vectors", "record by record");
  CHECK(figure("vectors", "read") == 60);
  check_done(&f);
  fixture_close(&f);
}

TEST(without_an_index_all_is_scanned) {
  fixture f = {.no_background = true};
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_COSINE, 8);
  fixture_add(&f, 5000);
  ask(&f, 5, NULL, (lode_query_request){0});
  IS("vectors", "scan of all vectors");
  check_done(&f);
  CHECK(ask(&f, 50, "{\"n\":3}", (lode_query_request){0}) == 50);
  IS("filter", "list by the index"); /* which holds none of them yet */
  CHECK(figure("filter", "proposals") == 0 && figure("filter", "evaluated") == 5000 &&
        figure("filter", "listed") == 50);
  check_done(&f);
  strbuf all_but_3 = {0}; /* the index is not asked for what is not there */
  for (int n = 0; n < 100; n++)
    if (n != 3) strbuf_addf(&all_but_3, "%s%d", n ? "," : "{\"n\":{\"$nin\":[", n);
  strbuf_addf(&all_but_3, "]}}%c", 0);
  CHECK(ask(&f, 50, all_but_3.data, (lode_query_request){0}) == 50);
  strbuf_release(&all_but_3);
  IS("filter", "list by a scan");
  CHECK(figure("filter", "attempt") == 2 && figure("filter", "listed") == 50);
  check_done(&f);
  fixture_close(&f);
}

TEST(text_and_fusion_are_steps) {
  fixture f = {.no_background = true};
  lode_error err;
  lode_str text = S("blue boat");
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_L2, 8);
  fixture_add(&f, 300);
  lode_record r = {.id = S("x"), .document = S("a blue boat")};
  OK(lode_add(f.c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  CHECK(ask(&f, 5, NULL, (lode_query_request){.mode = LODE_BY_TEXT, .texts = &text}) == 1);
  IS("vectors", "-");
  IS("text", "BM25");
  IS("fusion", "-");
  CHECK(figure("text", "words") == 2 && figure("text", "with_a_word") == 1 && figure("text", "not_indexed") == 301);
  fixture_optimize(&f);
  CHECK(ask(&f, 5, "{\"n\":1000}", (lode_query_request){.mode = LODE_HYBRID, .texts = &text}) == 0);
  CHECK(ask(&f, 5, NULL, (lode_query_request){.mode = LODE_HYBRID, .texts = &text}) == 5);
  IS("fusion", "reciprocal ranks");
  CHECK(figure("text", "not_indexed") == 0 && figure("fusion", "of_each") == 64);
  fixture_close(&f);
}

/* Random queries between random changes: the counters fit the plan each time. */
TEST_SLOW(random_queries_do_what_their_plan_says, 180) {
  fixture f = indexed_store(3000);
  for (int i = 0; i < 400; i++) {
    char where[96];
    unsigned a = (unsigned)test_below(100), b = (unsigned)test_below(100);
    switch (test_below(5)) {
      case 0: snprintf(where, sizeof where, "{\"n\":%u}", a % 4); break;
      case 1: snprintf(where, sizeof where, "{\"n\":{\"$lt\":%u}}", a); break;
      case 2: snprintf(where, sizeof where, "{\"n\":{\"$lt\":%u,\"$ne\":%u}}", a, b); break;
      case 3: snprintf(where, sizeof where, "{\"n\":{\"$nin\":[%u,%u]}}", a, b); break;
      default: snprintf(where, sizeof where, "{\"$or\":[{\"n\":%u},{\"m\":1}]}", a % 4);
    }
    ask(&f, 1 + test_below(i % 10 ? 20 : 400), where, (lode_query_request){.exact = test_below(20) == 0});
    check_done(&f);
    if (test_below(10) == 0) fixture_update(&f, test_below(f.n));
    if (test_below(100) == 0) fixture_optimize(&f);
    if (test_below(100) == 0) fixture_reopen(&f);
  }
  fixture_close(&f);
}

TEST(only_who_asks_gets_an_explanation) {
  fixture f = {.no_background = true};
  lode_error err;
  lode_result *rows;
  const float v[2] = {1, 2};
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_L2, 2);
  fixture_add(&f, 3);
  lode_query_request r = {.vectors = v, .dimension = 2, .n = 1, .k = 1};
  OK(lode_query(f.c, &r, &rows, &err));
  CHECK(!lode_result_explain(rows).data && !lode_result_explain(NULL).data);
  lode_result_free(rows);
  r.explain = 2;
  FAILS(LODE_INVALID, lode_query(f.c, &r, &rows, &err));
  r.explain = 1;
  r.n = 0;
  OK(lode_query(f.c, &r, &rows, &err));
  CHECK(lode_result_explain(rows).data);
  lode_result_free(rows);
  fixture_close(&f);
}

/* The steps of many queries are cut, and counted. */
TEST(a_long_explanation_is_cut) {
  enum { QUERIES = 64 * 200 };
  fixture f = {.no_background = true};
  lode_error err;
  lode_result *rows;
  float *v = calloc(QUERIES, sizeof *v);
  test_srand(test_seed());
  fixture_open(&f, test_folder(), LODE_L2, 1);
  fixture_add(&f, 3);
  OK(lode_query(f.c, &(lode_query_request){.vectors = v, .dimension = 1, .n = QUERIES, .k = 1, .explain = 1}, &rows,
                &err));
  lode_str json = lode_result_explain(rows);
  OK(json_parse(&told, json, NULL, &err));
  uint32_t steps = json_get(&told, 0, S("steps")), left_out = json_get(&told, 0, S("left_out"));
  CHECK(told.nodes[steps].u.count == 256 && told.nodes[left_out].u.i == 1 + 2 * 200 - 256);
  lode_result_free(rows);
  free(v);
  fixture_close(&f);
}

/* Arrays that hold a value are proposed for it, and do not match. Two filters whose proposals fail must not share a
 * list. */
TEST(lists_of_rejected_proposals_are_not_cached_for_others) {
  enum { N = 3000, DIM = 4 };
  fixture f = {.no_background = true};
  lode_error err;
  lode_txn *txn;
  test_srand(test_seed());
  fixture_limits(400, 300);
  fixture_open(&f, test_folder(), LODE_L2, DIM);
  OK(lode_begin(f.store, &txn, &err));
  for (int i = 0; i < N; i++) { /* those that match are far away from the others */
    char id[16], meta[32];
    float v[DIM];
    bool far = i % 100 < 2;
    for (int j = 0; j < DIM; j++) v[j] = (float)test_below(1000) / 1000 + (far ? 100 : 0);
    int n = snprintf(id, sizeof id, "r%d", i);
    int m = snprintf(meta, sizeof meta, far ? "{\"k\":\"%c\"}" : "{\"k\":[\"%c\"]}", "ab"[i % 2]);
    lode_record r = {.id = {id, (size_t)n}, .metadata = {meta, (size_t)m}, .vector = v, .dimension = DIM};
    OK(lode_add(f.c, txn, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  OK(lode_commit(txn, &err));
  fixture_optimize(&f);
  const float q[DIM] = {0};
  static const char *const filters[] = {NULL, "{\"k\":\"a\"}", "{\"k\":\"b\"}", "{\"k\":\"a\"}"};
  for (size_t i = 0; i < 4; i++) {
    lode_result *rows;
    lode_query_request r = {.vectors = q, .dimension = DIM, .n = 1, .k = 5};
    if (filters[i]) r.select.where = (lode_str){filters[i], strlen(filters[i])};
    OK(lode_query(f.c, &r, &rows, &err));
    CHECKF(lode_result_count(rows) == 5, "%s: %zu rows", filters[i] ? filters[i] : "all", lode_result_count(rows));
    lode_result_free(rows);
  }
  fixture_close(&f);
}
