/* SPDX-License-Identifier: Apache-2.0 */
/* test_metamorphic.c - the same content must give the same answers, whatever way it came about and wherever it lies.
 *
 * ask() puts a fixed list of random questions (gets, vector, text and hybrid queries, facets, all with random filters)
 * to a collection and writes down everything that is answered, distances and scores to the bit. Two stores, or one
 * store at two moments, are then compared by these texts. No oracle is needed: no answer is evaluated, only that it is
 * the same.
 */
#include "segments/segment_build.h"
#include "base/json.h"
#include "lode.h"
#include "support/fault.h"
#include "support/oracle.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DIM 6
#define NUMBERS 220 /* ids to choose from */

static const lode_str NAME = {"things", 6};

static size_t pick(size_t n) { return (size_t)test_below(n); }

/* ---- Stores ---- */

typedef struct place {
  char folder[512];
  lode_metric metric;
  uint32_t page_bytes;
  lode_store *store;
  lode_collection *c;
} place;

static void enter(place *p) {
  lode_error err = {0};
  lode_str counter = oracle_key(2);
  lode_open_options o = {.create = true, .no_background = true, .page_bytes = p->page_bytes};
  lode_collection_options co = {.create = true, .metric = p->metric, .counters = &counter, .n_counters = 1};
  /* Half of the runs have segments of the vector index, of few vectors and without graphs, so that answers stay exact.
   */
  if (test_seed() % 2)
    segments_limits = (segments_build_limits){.tail_rows = 16, .graph_rows = UINT32_MAX, .dead_percent = 20};
  OK(lode_open(p->folder, &o, &p->store, &err));
  OK(lode_collection_open(p->store, NAME, &co, &p->c, &err));
}

static void leave(place *p) {
  lode_collection_close(p->c);
  lode_close(p->store);
}

static place new_place(lode_metric metric) {
  place p = {.metric = metric, .page_bytes = pick(2) ? 512 : 4096};
  fault_no_sync();
  snprintf(p.folder, sizeof p.folder, "%s/store", test_folder());
  enter(&p);
  return p;
}

/* ---- Content: step number i of a history is the same each time ---- */

typedef struct batch {
  oracle_record r[40];
  lode_record records[40];
  strbuf json[40];
  size_t n;
} batch;

static void prepare(batch *b, size_t i) { b->records[i] = oracle_to_write(&b->r[i], &b->json[i]); }

static void fill(batch *b, size_t n, bool nulls) {
  oracle_content content = {.owner = -1, .dim = DIM, .nulls = nulls};
  size_t first = pick(NUMBERS);
  b->n = n;
  for (size_t i = 0; i < n; i++) {
    oracle_random_record(&b->r[i], (unsigned)((first + i * 7) % NUMBERS), &content);
    prepare(b, i);
  }
}

static void release(batch *b) {
  for (size_t i = 0; i < sizeof b->json / sizeof *b->json; i++) strbuf_release(&b->json[i]);
}

static void step(lode_collection *c, uint64_t seed, size_t i, bool split) {
  static batch b;
  lode_error err = {0};
  test_srand(seed + i * 1000003);
  size_t what = i < 4 ? 0 : pick(6);
  fill(&b, i < 4 ? 35 : 1 + pick(20), what < 4);
  if (what == 5) { /* ids, or a filter that hits some */
    lode_str ids[20];
    for (size_t k = 0; k < b.n && k < 20; k++) ids[k] = b.records[k].id;
    lode_selection sel = {.ids = ids, .n_ids = b.n < 20 ? b.n : 20};
    if (pick(3) == 0) sel = (lode_selection){.where = str_of("{\"n\":{\"$lte\":-1}}")};
    OK(lode_delete(c, NULL, &sel, NULL, &err));
  } else if (split) {
    for (size_t k = 0; k < b.n; k++)
      OK(what == 4 ? lode_add(c, NULL, &b.records[k], 1, LODE_KEEP_EXISTING, NULL, &err)
                   : lode_upsert(c, NULL, &b.records[k], 1, NULL, &err));
  } else {
    OK(what == 4 ? lode_add(c, NULL, b.records, b.n, LODE_KEEP_EXISTING, NULL, &err)
                 : lode_upsert(c, NULL, b.records, b.n, NULL, &err));
  }
  release(&b);
}

static void history(lode_collection *c, uint64_t seed, size_t n) {
  for (size_t i = 0; i < n; i++) step(c, seed, i, false);
}

/* ---- Questions ---- */

typedef struct asking {
  const char *also; /* a filter that every question is restricted by; NULL: none */
  bool sets;        /* gets sorted by id; text hits too, and without their scores */
  bool unfiltered;  /* questions have no filters of their own */
} asking;

static void put_row(strbuf *out, const lode_row *row, bool scores) {
  json_put_string(out, row->id);
  strbuf_addch(out, ' ');
  if (row->metadata.data) strbuf_add(out, row->metadata.data, row->metadata.len);
  strbuf_addch(out, ' ');
  if (row->document.data) json_put_string(out, row->document);
  for (uint32_t i = 0; row->vector && i < row->dimension; i++) strbuf_addf(out, " %a", (double)row->vector[i]);
  if (scores) strbuf_addf(out, " distance %a score %a", isnan(row->distance) ? -1 : row->distance, row->score);
  strbuf_addch(out, '\n');
}

static int by_id(const void *a, const void *b) {
  const lode_row *const *x = a, *const *y = b;
  return str_cmp((*x)->id, (*y)->id);
}

static void put_rows(strbuf *out, lode_result *rows, bool sorted, bool scores) {
  size_t n = lode_result_count(rows);
  const lode_row **all = calloc(n + 1, sizeof *all);
  CHECK(all);
  for (size_t i = 0; i < n; i++) all[i] = lode_result_at(rows, i);
  if (sorted && n) qsort(all, n, sizeof *all, by_id);
  for (size_t i = 0; i < n; i++) put_row(out, all[i], scores);
  free(all);
  lode_result_free(rows);
}

/* The question's own filter, and what all are restricted by. */
static lode_str restricted(strbuf *buf, const asking *how) {
  oracle_filter f = {0};
  oracle_random_filter(&f, false, -1);
  bool own = pick(4) != 0 && !how->unfiltered;
  buf->len = 0;
  if (own && how->also)
    strbuf_addf(buf, "{\"$and\":[%.*s,%s]}", (int)f.text.len, f.text.data, how->also);
  else if (own)
    strbuf_add(buf, f.text.data, f.text.len);
  else if (how->also)
    strbuf_addstr(buf, how->also);
  oracle_filter_release(&f);
  return buf->len ? (lode_str){buf->data, buf->len} : (lode_str){NULL, 0};
}

static void ask_get(lode_collection *c, strbuf *out, const asking *how, lode_str where) {
  lode_error err = {0};
  lode_result *rows;
  lode_get_request req = {.select.where = where, .include = LODE_ALL, .pending_only = pick(5) == 0};
  OK(lode_get(c, &req, &rows, &err));
  put_rows(out, rows, how->sets, false);
}

static void ask_query(lode_collection *c, strbuf *out, const asking *how, lode_str where, lode_mode mode) {
  lode_error err = {0};
  lode_result *rows;
  char text[160];
  float v[DIM];
  size_t k = pick(2) ? 1000 : 1 + pick(10);
  oracle_random_vector(v, DIM);
  lode_str words = {text, oracle_random_text(text, sizeof text, 1 + (unsigned)pick(3))};
  lode_query_request req = {.mode = mode,
                            .vectors = v,
                            .dimension = DIM,
                            .texts = &words,
                            .n = 1,
                            .k = k,
                            .select.where = where,
                            .include = LODE_ALL};
  bool loose = how->sets && mode != LODE_BY_VECTOR;
  if (loose) req.k = 1000;
  OK(lode_query(c, &req, &rows, &err));
  put_rows(out, rows, loose, !loose);
}

static void ask_facets(lode_collection *c, strbuf *out, lode_str where) {
  lode_error err = {0};
  lode_facet_list *list;
  OK(lode_facets(c, oracle_key((int)pick(ORACLE_OWNER)), where, 0, &list, &err));
  for (size_t i = 0; i < lode_facet_list_count(list); i++) {
    const lode_facet *f = lode_facet_list_at(list, i);
    strbuf_addf(out, "%.*s: %llu\n", (int)f->value.len, f->value.data, (unsigned long long)f->count);
  }
  lode_facet_list_free(list);
}

static strbuf ask(lode_collection *c, uint64_t seed, const asking *how) {
  strbuf out = {0}, buf = {0};
  test_srand(seed ^ 0x5eed);
  for (size_t i = 0; i < 60; i++) {
    lode_str where = restricted(&buf, how);
    size_t what = pick(7);
    strbuf_addf(&out, "question %zu\n", i);
    switch (what) {
      case 0:
      case 1: ask_get(c, &out, how, where); break;
      case 2:
      case 3: ask_query(c, &out, how, where, LODE_BY_VECTOR); break;
      case 4: ask_query(c, &out, how, where, LODE_BY_TEXT); break;
      case 5: ask_query(c, &out, how, where, LODE_HYBRID); break;
      default: ask_facets(c, &out, where);
    }
  }
  strbuf_addch(&out, '\0');
  CHECK(!out.failed);
  strbuf_release(&buf);
  return out;
}

/* Both must say the same; they are released. */
static void same(const char *what, strbuf a, strbuf b) {
  const char *x = a.data, *y = b.data, *question = x;
  while (*x && *y) {
    size_t lx = strcspn(x, "\n"), ly = strcspn(y, "\n");
    if (strncmp(x, "question", 8) == 0) question = x;
    CHECKF(lx == ly && memcmp(x, y, lx) == 0, "%s, %.*s:\n%.*s\n%.*s", what, (int)strcspn(question, "\n"), question,
           (int)lx, x, (int)ly, y);
    x += lx + (x[lx] != 0);
    y += ly + (y[ly] != 0);
  }
  CHECKF(*x == *y, "%s: one says more than the other", what);
  CHECKF(a.len > 5000, "%s: next to nothing was answered", what);
  strbuf_release(&a);
  strbuf_release(&b);
}

static unsigned rounds(void) { return test_full() ? 40 : 3; }
static const asking plainly = {0};

/* ---- The relations ---- */

TEST_SLOW(a_filter_that_is_true_is_no_filter, 120) {
  static const char *const truths[] = {
      "{}",
      "{\"$and\":[{},{}]}",
      "{\"$or\":[{\"n\":1},{}]}",
      "{\"$not\":{\"$not\":{}}}",
      "{\"$or\":[{\"n\":1},{\"$not\":{\"n\":1}}]}",
      "{\"$or\":[{\"n\":{\"$in\":[1,\"a\"]}},{\"n\":{\"$nin\":[1,\"a\"]}}]}",
      "{\"no such key\":{\"$ne\":0}}",
      "{\"#document\":{}}",
      "{\"#document\":{\"$or\":[{\"$contains\":\"alpha\"},{\"$not_contains\":\"alpha\"}]}}",
  };
  for (unsigned round = 0; round < rounds(); round++) {
    uint64_t seed = test_seed() + round;
    test_srand(seed);
    place p = new_place((lode_metric)(seed % 3));
    history(p.c, seed, 14);
    lode_error err = {0};
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
      if (i == 4) OK(lode_optimize(p.store, (lode_progress){0}, &err));
      same(truths[i], ask(p.c, seed, &plainly), ask(p.c, seed, &(asking){.also = truths[i]}));
    }
    leave(&p);
  }
}

TEST_SLOW(deleting_is_as_filtering_out, 120) {
  for (unsigned round = 0; round < 2 * rounds(); round++) {
    uint64_t seed = test_seed() + round, left;
    lode_error err = {0};
    oracle_filter x = {0};
    strbuf not_x = {0};
    lode_result *rows;
    size_t deleted, all;
    test_srand(seed);
    place p = new_place((lode_metric)(seed % 3));
    history(p.c, seed, 12);
    if (round % 2) OK(lode_optimize(p.store, (lode_progress){0}, &err));
    do {
      oracle_random_filter(&x, false, -1);
      lode_get_request req = {.select.where = {x.text.data, x.text.len}};
      OK(lode_get(p.c, &req, &rows, &err));
      deleted = lode_result_count(rows);
      lode_result_free(rows);
      OK(lode_count(p.c, &left, &err));
      all = (size_t)left;
    } while (deleted == 0 || deleted * 2 > all);
    strbuf_addf(&not_x, "{\"$not\":%.*s}%c", (int)x.text.len, x.text.data, 0);
    strbuf before = ask(p.c, seed, &(asking){.also = not_x.data, .sets = true});
    lode_selection sel = {.where = {x.text.data, x.text.len}};
    OK(lode_delete(p.c, NULL, &sel, &deleted, &err));
    OK(lode_count(p.c, &left, &err));
    CHECK(left == all - deleted);
    same(not_x.data, before, ask(p.c, seed, &(asking){.sets = true}));
    leave(&p);
    strbuf_release(&not_x);
    oracle_filter_release(&x);
  }
}

TEST_SLOW(one_batch_is_as_many_small_ones, 120) {
  for (unsigned round = 0; round < rounds(); round++) {
    uint64_t seed = test_seed() + round;
    test_srand(seed);
    place a = new_place((lode_metric)(seed % 3)), b = new_place(a.metric);
    for (size_t i = 0; i < 14; i++) {
      step(a.c, seed, i, false);
      step(b.c, seed, i, true);
    }
    same("whole batches, and single records", ask(a.c, seed, &plainly), ask(b.c, seed, &plainly));
    leave(&a);
    leave(&b);
  }
}

static void upkeep(place *p, size_t what) {
  lode_error err = {0};
  if (what == 0) {
    leave(p);
    enter(p);
  } else if (what == 1) {
    OK(lode_optimize(p->store, (lode_progress){0}, &err));
  } else {
    OK(lode_compact(p->store, (lode_progress){0}, &err));
  }
}

/* The same history, with the store closed and opened, brought up to date or compacted at any point of it. */
TEST_SLOW(upkeep_at_any_point_changes_nothing, 240) {
  for (unsigned round = 0; round < rounds(); round++) {
    uint64_t seed = test_seed() + round;
    test_srand(seed);
    place a = new_place((lode_metric)(seed % 3));
    history(a.c, seed, 20);
    for (size_t how = 0; how < 4; how++) {
      place b = new_place(a.metric);
      for (size_t i = 0; i < 20; i++) {
        step(b.c, seed, i, false);
        if (how < 3 || pick(2)) upkeep(&b, how < 3 ? how : pick(3));
      }
      static const char *const names[] = {"reopened after each step", "optimized after each step",
                                          "compacted after each step", "some of each"};
      same(names[how], ask(a.c, seed, &plainly), ask(b.c, seed, &plainly));
      leave(&b);
    }
    leave(&a);
  }
}

/* Nothing indexed yet, everything indexed, everything rewritten: the same to the bit, scores of text included. */
TEST_SLOW(tail_and_index_and_compacted_agree, 120) {
  for (unsigned round = 0; round < 2 * rounds(); round++) {
    uint64_t seed = test_seed() + round;
    lode_error err = {0};
    test_srand(seed);
    place p = new_place((lode_metric)(seed % 3));
    history(p.c, seed, 8);
    if (round % 2) OK(lode_optimize(p.store, (lode_progress){0}, &err));
    for (size_t i = 8; i < 16; i++) step(p.c, seed, i, false);
    strbuf tail = ask(p.c, seed, &plainly);
    upkeep(&p, 1);
    strbuf indexed = ask(p.c, seed, &plainly);
    same("in the tail, and in the index", tail, indexed);
    indexed = ask(p.c, seed, &plainly);
    upkeep(&p, 2);
    strbuf compacted = ask(p.c, seed, &plainly);
    same("before and after compacting", indexed, compacted);
    indexed = ask(p.c, seed, &plainly);
    upkeep(&p, 0);
    same("before and after reopening", indexed, ask(p.c, seed, &plainly));
    leave(&p);
  }
}

static void shuffle(batch *b) {
  for (size_t i = b->n; i > 1; i--) {
    size_t j = pick(i);
    lode_record swap = b->records[i - 1];
    b->records[i - 1] = b->records[j];
    b->records[j] = swap;
  }
}

/* What was inserted first does not matter to a query: equal ones are ordered by id. */
TEST_SLOW(the_order_of_insertion_does_not_show, 120) {
  static batch b;
  for (unsigned round = 0; round < rounds(); round++) {
    uint64_t seed = test_seed() + round;
    lode_error err = {0};
    test_srand(seed);
    place p = new_place((lode_metric)(seed % 3)), q = new_place(p.metric);
    for (size_t i = 0; i < 5; i++) {
      fill(&b, 40, false);
      for (size_t k = 0; k < b.n; k++) {
        oracle_name_record(&b.r[k], (unsigned)(i * 1000 + k));
        prepare(&b, k);
      }
      OK(lode_add(p.c, NULL, b.records, b.n, LODE_FAIL_EXISTING, NULL, &err));
      shuffle(&b);
      OK(lode_add(q.c, NULL, b.records, b.n, LODE_FAIL_EXISTING, NULL, &err));
    }
    same("inserted in another order", ask(p.c, seed, &(asking){.sets = true}), ask(q.c, seed, &(asking){.sets = true}));
    release(&b);
    leave(&p);
    leave(&q);
  }
}

/* ---- Queries against each other ---- */

static lode_result *query(lode_collection *c, lode_query_request req) {
  lode_error err = {0};
  lode_result *rows;
  OK(lode_query(c, &req, &rows, &err));
  return rows;
}

static bool same_id(const lode_row *a, const lode_row *b) { return a && b && str_cmp(a->id, b->id) == 0; }

/* Both start with the same n rows; distances of b are those of a times `scale`. */
static void same_hits(const lode_result *a, size_t from, const lode_result *b, size_t n, double scale) {
  for (size_t i = 0; i < n; i++) {
    const lode_row *x = lode_result_at(a, from + i), *y = lode_result_at(b, i);
    CHECKF(same_id(x, y), "hit %zu of %zu differs", i, n);
    CHECKF(x->distance * scale == y->distance, "hit %zu: %a times %g is not %a", i, x->distance, scale, y->distance);
    CHECK(x->rank == i && y->rank == i);
  }
}

TEST(many_queries_are_as_one_each_and_few_hits_as_the_first_of_many) {
  uint64_t seed = test_seed();
  float v[150 * DIM];
  test_srand(seed);
  place p = new_place((lode_metric)(seed % 3));
  history(p.c, seed, 12);
  test_srand(seed);
  for (size_t i = 0; i < 150; i++) oracle_random_vector(v + i * DIM, DIM);
  lode_result *all = query(p.c, (lode_query_request){.vectors = v, .dimension = DIM, .n = 150, .k = 30});
  CHECK(lode_result_count(all) == 150 * 30);
  for (size_t i = 0; i < 150; i++) {
    size_t k = 1 + pick(30);
    lode_result *one = query(p.c, (lode_query_request){.vectors = v + i * DIM, .dimension = DIM, .n = 1, .k = k});
    CHECK(lode_result_count(one) == k && lode_result_at(all, i * 30)->query == i);
    same_hits(all, i * 30, one, k, 1);
    lode_result_free(one);
  }
  lode_result_free(all);
  leave(&p);
}

TEST(a_filter_is_as_the_list_of_the_ids_that_match) {
  uint64_t seed = test_seed();
  lode_error err = {0};
  test_srand(seed);
  place p = new_place((lode_metric)(seed % 3));
  history(p.c, seed, 12);
  size_t some = 0;
  for (unsigned i = 0; i < (test_full() ? 2000u : 150u); i++) {
    oracle_filter f = {0};
    lode_result *named;
    lode_str ids[NUMBERS];
    float v[DIM];
    if (i == 70) OK(lode_optimize(p.store, (lode_progress){0}, &err));
    test_srand(seed + i);
    oracle_random_filter(&f, false, -1);
    oracle_random_vector(v, DIM);
    lode_selection where = {.where = {f.text.data, f.text.len}};
    lode_get_request get = {.select = where};
    OK(lode_get(p.c, &get, &named, &err));
    size_t n = lode_result_count(named);
    for (size_t k = 0; k < n; k++) ids[k] = lode_result_at(named, k)->id;
    lode_result *a =
        query(p.c, (lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 1000, .select = where});
    lode_result *b = query(
        p.c,
        (lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 1000, .select = {.ids = ids, .n_ids = n}});
    CHECK(lode_result_count(a) == lode_result_count(b));
    same_hits(a, 0, b, lode_result_count(a), 1);
    some += lode_result_count(a) > 0;
    lode_result_free(a);
    lode_result_free(b);
    lode_result_free(named);
    oracle_filter_release(&f);
  }
  CHECK(some > 30);
  leave(&p);
}

/* Powers of two and small whole numbers: nothing is rounded, so that equal must be equal. */
TEST(scaling_and_permuting_dimensions_keep_the_order) {
  static const size_t places[DIM] = {3, 0, 5, 1, 4, 2};
  static const double scales[] = {[LODE_L2] = 64, [LODE_COSINE] = 1};
  for (int metric = LODE_L2; metric <= LODE_COSINE; metric++) {
    lode_error err = {0};
    test_srand(test_seed());
    place p = new_place((lode_metric)metric), q = new_place((lode_metric)metric);
    for (unsigned i = 0; i < 300; i++) {
      oracle_record r;
      float v[DIM], w[DIM];
      oracle_name_record(&r, i);
      for (size_t d = 0; d < DIM; d++) v[d] = (float)pick(5) - 2;
      for (size_t d = 0; d < DIM; d++) w[places[d]] = v[d] * 8;
      lode_record a = {.id = oracle_id(&r), .vector = v, .dimension = DIM},
                  b = {.id = oracle_id(&r), .vector = w, .dimension = DIM};
      OK(lode_add(p.c, NULL, &a, 1, LODE_FAIL_EXISTING, NULL, &err));
      OK(lode_add(q.c, NULL, &b, 1, LODE_FAIL_EXISTING, NULL, &err));
      if (i == 200) OK(lode_optimize(q.store, (lode_progress){0}, &err));
    }
    for (unsigned i = 0; i < 40; i++) {
      float v[DIM], w[DIM];
      for (size_t d = 0; d < DIM; d++) v[d] = (float)pick(5) - 2;
      for (size_t d = 0; d < DIM; d++) w[places[d]] = v[d] * 8;
      lode_result *a = query(p.c, (lode_query_request){.vectors = v, .dimension = DIM, .n = 1, .k = 300});
      lode_result *b = query(q.c, (lode_query_request){.vectors = w, .dimension = DIM, .n = 1, .k = 300});
      CHECK(lode_result_count(a) == 300 && lode_result_count(b) == 300);
      same_hits(a, 0, b, 300, scales[metric]);
      lode_result_free(a);
      lode_result_free(b);
    }
    leave(&p);
    leave(&q);
  }
}

/* Place of an id in a ranking, from 1; 0: it is not there. */
static size_t place_of(const lode_result *rows, const lode_row *row) {
  for (size_t i = 0; i < lode_result_count(rows); i++)
    if (same_id(lode_result_at(rows, i), row)) return i + 1;
  return 0;
}

static size_t documents(lode_collection *c) {
  lode_error err = {0};
  lode_result *all;
  size_t n = 0;
  OK(lode_get(c, &(lode_get_request){.include = LODE_DOCUMENT}, &all, &err));
  for (size_t i = 0; i < lode_result_count(all); i++) n += lode_result_at(all, i)->document.data != NULL;
  lode_result_free(all);
  return n;
}

/* Leaves out the words that most documents hold: in a hybrid query they count for nothing. */
static size_t keep_telling(lode_collection *c, char *text, size_t len) {
  size_t most = documents(c) / 2, kept = 0;
  for (size_t at = 0, end; at < len; at = end + 1) {
    for (end = at; end < len && text[end] != ' '; end++) {}
    lode_str word = {text + at, end - at};
    lode_result *found = query(c, (lode_query_request){.mode = LODE_BY_TEXT, .texts = &word, .n = 1, .k = 100000});
    if (lode_result_count(found) <= most) {
      if (kept) text[kept++] = ' ';
      memmove(text + kept, word.data, word.len);
      kept += word.len;
    }
    lode_result_free(found);
  }
  return kept;
}

/* Reciprocal rank fusion of what the two kinds of query answer by themselves. */
TEST(hybrid_is_the_fusion_of_both_rankings) {
  uint64_t seed = test_seed();
  test_srand(seed);
  place p = new_place((lode_metric)(seed % 3));
  history(p.c, seed, 12);
  for (unsigned i = 0; i < 60; i++) {
    float v[DIM];
    char text[160];
    double weights[2] = {(double)pick(3), (double)pick(3)};
    test_srand(seed + i);
    oracle_random_vector(v, DIM);
    lode_str words = {text, keep_telling(p.c, text, oracle_random_text(text, sizeof text, 1 + (unsigned)pick(3)))};
    size_t k = 1 + pick(20), want = 4 * k > 64 ? 4 * k : 64;
    lode_query_request req = {.vectors = v,
                              .dimension = DIM,
                              .texts = &words,
                              .n = 1,
                              .k = want,
                              .vector_weight = weights[0],
                              .text_weight = weights[1]};
    lode_result *near = query(p.c, req);
    req.mode = LODE_BY_TEXT;
    lode_result *found = query(p.c, req);
    req.mode = LODE_HYBRID;
    req.k = k;
    lode_result *both = query(p.c, req);
    if (weights[0] == 0 && weights[1] == 0) weights[0] = weights[1] = 1;
    double last = INFINITY;
    for (size_t h = 0; h < lode_result_count(both); h++) {
      const lode_row *row = lode_result_at(both, h);
      size_t a = place_of(near, row), b = place_of(found, row);
      double score = (a ? weights[0] / (60.0 + (double)a) : 0) + (b ? weights[1] / (60.0 + (double)b) : 0);
      CHECK(a || b);
      CHECKF(fabs(score - row->score) < 1e-12 && row->score <= last, "hit %zu scores %a, expected %a", h, row->score,
             score);
      if (a) CHECK(row->distance == lode_result_at(near, a - 1)->distance);
      last = row->score;
    }
    size_t union_size = lode_result_count(near);
    for (size_t h = 0; h < lode_result_count(found); h++) {
      const lode_row *row = lode_result_at(found, h);
      size_t a = place_of(near, row);
      double score = (a ? weights[0] / (60.0 + (double)a) : 0) + weights[1] / (61.0 + (double)h);
      CHECKF(place_of(both, row) || score <= last + 1e-12, "a better hit was left out");
      union_size += a == 0;
    }
    CHECK(lode_result_count(both) == (union_size < k ? union_size : k));
    lode_result_free(near);
    lode_result_free(found);
    lode_result_free(both);
  }
  leave(&p);
}
