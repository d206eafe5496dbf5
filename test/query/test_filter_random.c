/* SPDX-License-Identifier: Apache-2.0 */
/* test_filter_random.c - random filters on random records against the oracle, and what their probes promise. */
#include "support/filter_kit.h"
#include "support/oracle.h"

/* Whether the value is what the condition asks for. */
static bool satisfies(const filter_condition *c, const meta_value *v) {
  for (size_t i = 0; i < c->n_values; i++)
    if (oracle_compare(v, &c->values[i]) == 0) return true;
  if (c->n_values) return false;
  int low = c->has_low ? oracle_compare(v, &c->low) : 1;
  int high = c->has_high ? oracle_compare(v, &c->high) : -1;
  if (low == ORACLE_UNORDERED || high == ORACLE_UNORDERED) return false;
  return (low > 0 || (low == 0 && !c->low_open)) && (high < 0 || (high == 0 && !c->high_open));
}

/* Whether an index on (key, value) that is asked the condition finds the record. */
static bool is_found(const filter_condition *c, const oracle_record *r) {
  for (int i = 0; r->has_meta && i < r->meta.n; i++) {
    const oracle_field *f = &r->meta.f[i];
    if (!str_eq(oracle_key(f->key), c->key)) continue;
    for (int e = 0; e < f->n; e++) {
      meta_value v = oracle_value(f->v[e]);
      if (satisfies(c, &v)) return true;
    }
  }
  return false;
}

static bool is_proposed(const filter_probe *probe, const oracle_record *r) {
  bool found = false;
  for (size_t i = 0; i < probe->n; i++) found = found || is_found(&probe->any[i], r);
  return found;
}

static int check_records(const filter_expr *filter, const oracle_filter *where, const oracle_filter *document) {
  static const oracle_content content = {.owner = -1, .dim = 1};
  filter_eval *eval;
  const filter_probe *probes;
  strbuf json = {0};
  int matches = 0;
  size_t n_probes = filter_get_probes(filter, &probes);
  OK(filter_eval_new(filter, &eval, &err));
  for (unsigned i = 0; i < 20; i++) {
    oracle_record r;
    oracle_random_record(&r, i, &content);
    lode_record record = oracle_to_write(&r, &json);
    bool got, want = oracle_match(where, &r) && oracle_match(document, &r);
    OK(filter_eval_match(eval, record.metadata, record.document, &got, &err));
    CHECKF(got == want, "%.*s on %.*s, document %.*s: %d, not %d", (int)where->text.len, where->text.data,
           (int)record.metadata.len, record.metadata.data, (int)record.document.len, record.document.data, got, want);
    CHECK(want || !filter_is_true(filter));
    matches += want;
    for (size_t p = 0; want && p < n_probes; p++)
      CHECKF(is_proposed(&probes[p], &r), "probe %zu of %.*s misses %.*s", p, (int)where->text.len, where->text.data,
             (int)record.metadata.len, record.metadata.data);
  }
  filter_eval_free(eval);
  strbuf_release(&json);
  return matches;
}

TEST_SLOW(filters_agree_with_the_oracle, 300) {
  oracle_filter where = {0}, document = {0};
  int matches = 0, with_probes = 0, with_unions = 0, rounds = test_full() ? 100000 : 10000;
  test_srand(test_seed());
  for (int round = 0; round < rounds; round++) {
    filter_expr *filter;
    const filter_probe *probes;
    bool both = test_below(3) == 0;
    oracle_random_filter(&where, false, -1);
    oracle_random_filter(&document, true, -1);
    lode_selection s = oracle_request(&(oracle_selection){.where = &where, .document = both ? &document : NULL});
    OK(filter_parse(s.where, s.where_document, &filter, &err));
    size_t n = filter_get_probes(filter, &probes);
    with_probes += n > 0;
    for (size_t i = 0; i < n; i++) with_unions += probes[i].n > 1;
    matches += check_records(filter, &where, both ? &document : NULL);
    filter_free(filter);
  }
  CHECKF(matches > rounds && matches < rounds * 19 && with_probes > rounds / 20 && with_unions > rounds / 100,
         "filters that show little: %d matches, %d with probes, %d unions", matches, with_probes, with_unions);
  oracle_filter_release(&where);
  oracle_filter_release(&document);
}
