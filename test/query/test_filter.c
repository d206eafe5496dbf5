/* SPDX-License-Identifier: Apache-2.0 */
/* test_filter.c - filters: each rule of the language by example, and what they ask of the index. */
#include "support/filter_kit.h"

/* ---- The language, by example ---- */

TEST(filter_equality) {
  MATCHES("{\"a\": 1}", "{\"a\": 1}");
  MATCHES("{\"a\": {\"$eq\": 1}}", "{\"a\": 1.0}");
  DIFFERS("{\"a\": 1}", "{\"a\": true}");
  DIFFERS("{\"a\": 1}", "{\"a\": \"1\"}");
  DIFFERS("{\"a\": 1}", "{\"b\": 1}");
  DIFFERS("{\"a\": 1}", NULL);
  DIFFERS("{\"a\": 9007199254740993}", "{\"a\": 9007199254740992.0}");
  MATCHES("{\"a\": {\"$ne\": 1}}", "{\"a\": 2}");
  MATCHES("{\"a\": {\"$ne\": 1}}", "{}");
  MATCHES("{\"a\": {\"$ne\": 1}}", NULL);
  DIFFERS("{\"a\": {\"$ne\": 1}}", "{\"a\": 1}");
  MATCHES("{\"a\": \"\"}", "{\"a\": \"\"}");
  MATCHES("{\"\": 1}", "{\"\": 1}");
}

TEST(filter_arrays_are_not_scalars) {
  DIFFERS("{\"a\": 1}", "{\"a\": [1]}");
  MATCHES("{\"a\": {\"$ne\": 1}}", "{\"a\": [1]}");
  DIFFERS("{\"a\": {\"$gt\": 0}}", "{\"a\": [1]}");
  DIFFERS("{\"a\": {\"$in\": [1]}}", "{\"a\": [1]}");
  MATCHES("{\"a\": {\"$contains\": 1}}", "{\"a\": [3, 1.0]}");
  DIFFERS("{\"a\": {\"$contains\": 1}}", "{\"a\": 1}");
  DIFFERS("{\"a\": {\"$contains\": 1}}", "{\"a\": []}");
  MATCHES("{\"a\": {\"$not_contains\": 1}}", "{\"a\": 1}");
  MATCHES("{\"a\": {\"$not_contains\": 1}}", "{\"a\": []}");
  DIFFERS("{\"a\": {\"$not_contains\": \"x\"}}", "{\"a\": [\"y\", \"x\"]}");
}

TEST(filter_order) {
  MATCHES("{\"a\": {\"$gt\": 1}}", "{\"a\": 1.5}");
  DIFFERS("{\"a\": {\"$gt\": 1}}", "{\"a\": 1.0}");
  MATCHES("{\"a\": {\"$gte\": 1.0}}", "{\"a\": 1}");
  MATCHES("{\"a\": {\"$lt\": \"b\"}}", "{\"a\": \"a\"}");
  MATCHES("{\"a\": {\"$lte\": \"b\"}}", "{\"a\": \"b\"}");
  DIFFERS("{\"a\": {\"$lt\": \"b\"}}", "{\"a\": 1}");
  DIFFERS("{\"a\": {\"$gt\": 0}}", "{\"a\": \"x\"}");
  DIFFERS("{\"a\": {\"$gt\": 0}}", "{\"a\": true}");
  DIFFERS("{\"a\": {\"$gte\": 0}}", "{}");
  MATCHES("{\"a\": {\"$gt\": 9007199254740992.0}}", "{\"a\": 9007199254740993}");
  MATCHES("{\"$not\": {\"a\": {\"$gt\": 0}}}", "{}"); /* $not is "does not match", also without the key */
}

TEST(filter_lists) {
  MATCHES("{\"a\": {\"$in\": [1, \"x\", true]}}", "{\"a\": \"x\"}");
  MATCHES("{\"a\": {\"$in\": [1, \"x\", true]}}", "{\"a\": true}");
  MATCHES("{\"a\": {\"$in\": [3, 2, 1, 2.0]}}", "{\"a\": 2}");
  DIFFERS("{\"a\": {\"$in\": [1, \"x\", true]}}", "{\"a\": false}");
  DIFFERS("{\"a\": {\"$in\": [1]}}", "{}");
  MATCHES("{\"a\": {\"$nin\": [1]}}", "{}");
  MATCHES("{\"a\": {\"$nin\": [1, 2]}}", "{\"a\": 3}");
  DIFFERS("{\"a\": {\"$nin\": [1, 2]}}", "{\"a\": 2}");
}

TEST(filter_logic) {
  MATCHES("{}", NULL);
  MATCHES("{\"a\": 1, \"b\": {\"$gt\": 1, \"$lt\": 3}}", "{\"a\": 1, \"b\": 2}");
  DIFFERS("{\"a\": 1, \"b\": {\"$gt\": 1, \"$lt\": 3}}", "{\"a\": 1, \"b\": 3}");
  MATCHES("{\"$or\": [{\"a\": 1}, {\"b\": 1}]}", "{\"b\": 1}");
  DIFFERS("{\"$and\": [{\"a\": 1}, {\"b\": 1}]}", "{\"b\": 1}");
  DIFFERS("{\"$not\": {}}", "{}");
  MATCHES("{\"$not\": {\"$not\": {}}}", "{}");
  MATCHES("{\"$not\": {\"a\": 1, \"b\": 1}}", "{\"a\": 1, \"b\": 2}");
  MATCHES("{\"$or\": [{\"a\": 1}, {}]}", "{}");
  DIFFERS("{\"a\": 1, \"$or\": [{\"b\": 1}]}", "{\"a\": 1}");
  MATCHES("{\"a\": 1, \"a\": {\"$gt\": 0}}", "{\"a\": 1}");
}

TEST(filter_documents) {
  DOC_MATCHES("{\"$contains\": \"lo w\"}", "hello world");
  DOC_DIFFERS("{\"$contains\": \"LO\"}", "hello world");
  DOC_DIFFERS("{\"$contains\": \"\"}", NULL);
  DOC_MATCHES("{\"$contains\": \"\"}", "");
  DOC_MATCHES("{\"$not_contains\": \"x\"}", NULL);
  DOC_MATCHES("{\"$regex\": \"^h.*d$\"}", "hello world");
  DOC_MATCHES("{\"$regex\": \"(?i)WORLD\"}", "hello world");
  DOC_MATCHES("{\"$not_regex\": \"x\"}", NULL);
  DOC_DIFFERS("{\"$not_regex\": \"o+\"}", "foo");
  DOC_MATCHES("{\"$and\": [{\"$contains\": \"a\"}, {\"$not\": {\"$contains\": \"b\"}}]}", "xay");
  DOC_DIFFERS("{\"$contains\": \"a\", \"$not_contains\": \"b\"}", "ab");
  DOC_MATCHES("{}", NULL);
  CHECK(evaluate_texts("{\"a\": 1, \"#document\": {\"$contains\": \"x\"}}", NULL, "{\"a\": 1}", "xyz"));
  CHECK(!evaluate_texts("{\"a\": 1}", "{\"$contains\": \"q\"}", "{\"a\": 1}", "xyz"));
  CHECK(evaluate_texts("{\"$not\": {\"#document\": {\"$contains\": \"x\"}}}", NULL, NULL, NULL));
}

TEST(filter_regular_expressions_know_unicode) {
  DOC_MATCHES("{\"$regex\": \"^\\\\w+$\"}", "stra\xC3\x9F"
                                            "e");
  DOC_MATCHES("{\"$regex\": \"^.{3}$\"}", "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E");
  DOC_MATCHES("{\"$regex\": \"(?i)\\u00c4\"}", "\xC3\xA4");
  DOC_MATCHES("{\"$regex\": \"\"}", "");
}

TEST(filter_tells_what_it_needs) {
  const struct {
    const char *where, *document;
    bool is_true, metadata, text;
  } cases[] = {
      {NULL, NULL, true, false, false},
      {"{}", "{}", true, false, false},
      {"{\"$and\": [{}, {\"$or\": [{}]}, {\"$not\": {\"$not\": {}}}]}", NULL, true, false, false},
      {"{\"$not\": {}}", NULL, false, false, false},
      {"{\"a\": 1}", NULL, false, true, false},
      {NULL, "{\"$contains\": \"a\"}", false, false, true},
      {"{\"a\": 1, \"#document\": {\"$regex\": \"a\"}}", NULL, false, true, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    filter_expr *f;
    OK(filter_parse(str_of(cases[i].where), str_of(cases[i].document), &f, &err));
    CHECKF(filter_is_true(f) == cases[i].is_true, "case %zu", i);
    CHECKF(filter_needs_metadata(f) == cases[i].metadata, "case %zu", i);
    CHECKF(filter_needs_document(f) == cases[i].text, "case %zu", i);
    filter_free(f);
  }
}

TEST(filter_mistakes_are_named) {
  REFUSED("", "JSON");
  REFUSED("{\"a\": 1", "JSON");
  REFUSED("[]", "object");
  REFUSED("{\"a\": {\"$like\": 1}}", "$like");
  REFUSED("{\"size\": {\"$like\": 1}}", "size");
  REFUSED("{\"$eq\": 1}", "$eq");
  REFUSED("{\"$nor\": [{}]}", "$nor");
  REFUSED("{\"a\": {}}", "\"a\"");
  REFUSED("{\"a\": null}", "null");
  REFUSED("{\"a\": [1]}", "array");
  REFUSED("{\"a\": {\"$eq\": {}}}", "$eq");
  REFUSED("{\"a\": {\"$gt\": true}}", "$gt");
  REFUSED("{\"a\": {\"$lte\": [1]}}", "$lte");
  REFUSED("{\"a\": {\"$in\": []}}", "$in");
  REFUSED("{\"a\": {\"$nin\": []}}", "$nin");
  REFUSED("{\"a\": {\"$in\": 1}}", "$in");
  REFUSED("{\"a\": {\"$in\": [1, null]}}", "$in");
  REFUSED("{\"a\": {\"$contains\": [1]}}", "$contains");
  REFUSED("{\"a\": {\"$regex\": \"x\"}}", "$regex");
  REFUSED("{\"$and\": []}", "$and");
  REFUSED("{\"$or\": {}}", "$or");
  REFUSED("{\"$or\": [1]}", "$or");
  REFUSED("{\"$not\": []}", "$not");
  REFUSED("{\"#document\": \"x\"}", "#document");
  REFUSED("{\"#document\": {\"a\": 1}}", "\"a\"");
  DOC_REFUSED("{\"a\": 1}", "\"a\"");
  DOC_REFUSED("{\"$eq\": \"x\"}", "$eq");
  DOC_REFUSED("{\"$contains\": 1}", "$contains");
  DOC_REFUSED("{\"#document\": {}}", "#document");
  DOC_REFUSED("{\"$regex\": \"(unclosed\"}", "(unclosed");
  DOC_REFUSED("{\"$regex\": \"a(*SKIP)b\"}", "(*SKIP)");
  DOC_REFUSED("{\"$regex\": \"\\\\Ga\"}", "\\\\G");
  DOC_REFUSED("{\"$regex\": \"\\\\C\"}", "\\\\C");
}

TEST(filter_meets_damaged_records) {
  filter_expr *f;
  filter_eval *j;
  bool match = true;
  OK(filter_parse(STR_LIT("{\"a\": 1}"), STR_LIT("{\"$regex\": \"x\"}"), &f, &err));
  OK(filter_eval_new(f, &j, &err));
  FAILS(LODE_CORRUPT, filter_eval_match(j, STR_LIT("{\"a\""), none, &match, &err));
  CHECK(!match);
  FAILS(LODE_CORRUPT, filter_eval_match(j, STR_LIT("[1]"), none, &match, &err));
  FAILS(LODE_CORRUPT, filter_eval_match(j, STR_LIT("{\"a\": 1}"), STR_LIT("x\xFF"), &match, &err));
  OK(filter_eval_match(j, STR_LIT("{\"a\": 1}"), STR_LIT("x"), &match, &err));
  CHECK(match);
  OK(filter_eval_match(j, STR_LIT("{\"b\": 1}"), STR_LIT("x"), &match, &err));
  CHECK(!match); /* nothing is left of the record before */
  filter_eval_free(j);
  filter_free(f);
}

/* ---- Probes ---- */

static filter_expr *probes_of(const char *where, size_t n, const filter_probe **probes) {
  filter_expr *f;
  OK(filter_parse(str_of(where), none, &f, &err));
  size_t got = filter_get_probes(f, probes);
  CHECKF(got == n, "%s: %zu probes, not %zu", where, got, n);
  return f;
}

TEST(filter_probes_are_equalities) {
  const filter_probe *p;
  const char *texts[] = {
      "{\"k\": {\"$in\": [2, 1, 2.0]}}",
      "{\"$or\": [{\"k\": 1}, {\"k\": 2}]}",
      "{\"$or\": [{\"k\": {\"$contains\": 2}}, {\"k\": 1}, {\"k\": {\"$in\": [2, 1]}}]}",
      "{\"$and\": [{\"$or\": [{\"$and\": [{\"k\": 1}]}, {\"$or\": [{\"k\": 2}]}]}, {\"x\": {\"$ne\": 1}}]}",
      "{\"$not\": {\"k\": {\"$nin\": [1, 2]}}}",
      "{\"$not\": {\"$and\": [{\"k\": {\"$ne\": 1}}, {\"k\": {\"$ne\": 2}}]}}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    filter_expr *f = probes_of(texts[i], 1, &p);
    CHECK(p->n == 1 && str_eq(p->any->key, STR_LIT("k")) && p->any->n_values == 2);
    CHECK(p->any->values[0].i == 1 && p->any->values[1].i == 2);
    filter_free(f);
  }
}

TEST(filter_probes_narrow_ranges) {
  const filter_probe *p;
  filter_expr *f = probes_of("{\"k\": {\"$gt\": 1, \"$lte\": 9.5, \"$gte\": 0, \"$lt\": 20}, "
                             "\"$and\": [{\"k\": {\"$gte\": 1}}]}",
                             1, &p);
  const filter_condition *c = p->any;
  CHECK(p->n == 1 && c->n_values == 0 && c->has_low && c->has_high);
  CHECK(c->low.i == 1 && c->low_open && c->high.d == 9.5 && !c->high_open);
  filter_free(f);
  f = probes_of("{\"k\": {\"$gt\": \"a\"}, \"j\": {\"$lt\": 3}}", 2, &p);
  for (int i = 0; i < 2; i++) {
    bool k = p[i].any->key.data[0] == 'k';
    CHECK(p[i].any->has_low == k && p[i].any->has_high == !k);
  }
  filter_free(f);
  filter_free(probes_of("{\"k\": {\"$gt\": \"a\", \"$lt\": 3}}", 1, &p)); /* nothing matches: either will do */
}

/* conditions of the only probe of each "or", sets by key and then ranges: key, number of values, bounds */
TEST(filter_probes_are_unions) {
  static const struct {
    const char *where, *conditions;
    bool is_probe;
  } cases[] = {
      {"{\"$or\": [{\"k\": 1}, {\"j\": {\"$contains\": 1}}]}", "k1 j1 ", true},
      {"{\"$or\": [{\"k\": 1}, {\"j\": 1}, {\"k\": {\"$in\": [1, 2]}}, {\"j\": {\"$contains\": 3}}]}", "k2 j2 ", true},
      {"{\"$or\": [{\"k\": 1}, {\"k\": {\"$gt\": 2}}, {\"k\": {\"$lt\": 0}}]}", "k1 k>  k < ", true},
      {"{\"$or\": [{\"k\": {\"$in\": [1, 2]}, \"j\": 1}, {\"k\": {\"$gt\": 2, \"$lte\": 3}}]}", "j1 k>< ", false},
      {"{\"$or\": [{\"k\": 1, \"j\": {\"$ne\": 1}}, {\"$not\": {\"$or\": [{\"j\": {\"$ne\": 2}}, {\"k\": 1}]}}]}",
       "k1 j1 ", false},
      {"{\"$not\": {\"k\": {\"$ne\": 1}, \"j\": {\"$nin\": [2, 3]}}}", "k1 j2 ", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const filter_probe *p;
    strbuf got = {0};
    filter_expr *f = probes_of(cases[i].where, 1, &p);
    for (size_t k = 0; k < p->n; k++) {
      const filter_condition *c = &p->any[k];
      strbuf_add(&got, c->key.data, c->key.len);
      if (c->n_values)
        strbuf_addf(&got, "%zu ", c->n_values);
      else
        strbuf_addf(&got, "%s%s ", c->has_low ? ">" : " ", c->has_high ? "<" : " ");
    }
    CHECKF(strcmp(got.data, cases[i].conditions) == 0, "%s: %s", cases[i].where, got.data);
    CHECK(filter_is_probe(f) == cases[i].is_probe);
    strbuf_release(&got);
    filter_free(f);
  }
}

/* More conditions than an index is asked for: as many equalities as there are, on one key, are one. */
TEST(filter_probes_of_too_many_conditions_are_none) {
  for (int n = FILTER_MAX_CONDITIONS; n <= FILTER_MAX_CONDITIONS + 1; n++) {
    const filter_probe *p;
    strbuf where = {0};
    strbuf_addstr(&where, "{\"$or\": [{\"k\": -1}, {\"k\": -2, \"x\": {\"$ne\": 1}}");
    for (int i = 1; i < n; i++) strbuf_addf(&where, ", {\"k\": {\"$gt\": %d, \"$lt\": %d}}", 10 * i, 10 * i + 5);
    strbuf_addstr(&where, "]}");
    strbuf_addch(&where, 0);
    filter_expr *f = probes_of(where.data, n == FILTER_MAX_CONDITIONS, &p);
    CHECK(n > FILTER_MAX_CONDITIONS || (p->n == FILTER_MAX_CONDITIONS && p->any[0].n_values == 2));
    filter_free(f);
    strbuf_release(&where);
  }
}

TEST(filter_probes_are_none_where_a_match_may_lack_the_value) {
  const filter_probe *p;
  const char *texts[] = {
      "{}",
      "{\"k\": {\"$ne\": 1}}",
      "{\"k\": {\"$nin\": [1]}}",
      "{\"k\": {\"$not_contains\": 1}}",
      "{\"$not\": {\"k\": 1}}",
      "{\"$not\": {\"k\": {\"$gt\": 1}}}",
      "{\"$or\": [{\"k\": 1}, {\"k\": {\"$ne\": 2}}]}",
      "{\"$or\": [{\"k\": 1}, {\"j\": {\"$ne\": 1}, \"$or\": [{\"k\": 2}, {\"j\": 3}]}]}",
      "{\"$or\": [{\"k\": 1}, {}]}",
      "{\"#document\": {\"$contains\": \"k\"}}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) filter_free(probes_of(texts[i], 0, &p));
}
