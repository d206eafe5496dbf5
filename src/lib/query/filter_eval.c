/* SPDX-License-Identifier: Apache-2.0 */
/* filter_eval.c - runs a filter's program on one record.
 *
 * The record's metadata is parsed into reused scratch memory, its pairs are visited once, and the values of keys that
 * the filter uses are recorded in slots (one per key, valid if it has this record's stamp). Then the tests run. Records
 * come from disk: metadata that is not a JSON object is LODE_CORRUPT. An evaluator belongs to one thread.
 */
#include "query/filter_internal.h"

typedef struct eval_slot {
  uint32_t stamp;
  uint32_t node; /* of the value, in the evaluator's json */
} eval_slot;

struct filter_eval {
  const filter_expr *filter;
  json_doc json;
  eval_slot *slots;
  uint32_t stamp;
  regex_runner *runner; /* NULL: no regular expressions */
  lode_str document;
  bool document_checked; /* it is valid UTF-8 */
};

lode_status filter_eval_new(const filter_expr *filter, filter_eval **eval, lode_error *err) {
  lode_status st = LODE_OK;
  *eval = NULL;
  filter_eval *ev = mem_calloc(1, sizeof *ev);
  if (!ev) return err_nomem(err);
  ev->filter = filter;
  ev->slots = mem_calloc(filter->n_keys, sizeof *ev->slots);
  if (!ev->slots) st = err_nomem(err);
  if (st == LODE_OK && filter->n_regexes) st = regex_runner_new(&ev->runner, err);
  if (st == LODE_OK)
    *eval = ev;
  else
    filter_eval_free(ev);
  return st;
}

void filter_eval_free(filter_eval *ev) {
  if (!ev) return;
  json_release(&ev->json);
  regex_runner_free(ev->runner);
  mem_free(ev->slots);
  mem_free(ev);
}

/* Invalidates all slots. */
static void eval_next_stamp(filter_eval *ev) {
  if (++ev->stamp != 0) return;
  memset(ev->slots, 0, ev->filter->n_keys * sizeof *ev->slots);
  ev->stamp = 1;
}

/* Records where the record's values are. */
static lode_status eval_bind_record(filter_eval *ev, lode_str metadata, lode_error *err) {
  eval_next_stamp(ev);
  if (!metadata.data) return LODE_OK;
  lode_error why;
  lode_status st = json_parse(&ev->json, metadata, NULL, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  const json_node *nodes = ev->json.nodes;
  if (st != LODE_OK || nodes[0].type != JSON_NODE_OBJECT) {
    return err_set(err, LODE_CORRUPT, "a record's metadata is not usable (%s): run a verification",
                   st != LODE_OK ? why.text : "not a JSON object");
  }
  for (uint32_t k = 1; k < nodes[0].next; k = nodes[k + 1].next) {
    uint32_t key = filter_find_key(ev->filter, nodes[k].u.s);
    if (key != FILTER_NO_KEY) ev->slots[key] = (eval_slot){ev->stamp, k + 1};
  }
  return LODE_OK;
}

/* ---- Tests ---- */

static int eval_compare_values(const void *a, const void *b) { return meta_value_cmp(a, b); }

static bool is_among(const filter_test *test, const meta_value *value) {
  size_t n = test->u.values.count;
  return n && bsearch(value, test->u.values.items, n, sizeof *value, eval_compare_values) != NULL;
}

static bool has_element(const filter_eval *ev, const filter_test *test, uint32_t array) {
  const json_node *nodes = ev->json.nodes;
  meta_value value;
  if (nodes[array].type != JSON_NODE_ARRAY) return false;
  for (uint32_t e = array + 1; e < nodes[array].next; e = nodes[e].next) {
    if (meta_value_of(&ev->json, e, &value) && is_among(test, &value)) return true;
  }
  return false;
}

static bool is_ordered(const filter_test *test, const meta_value *value) {
  const meta_value *bound = test->u.values.items;
  if (!meta_value_comparable(value, bound)) return false;
  int c = meta_value_cmp(value, bound);
  switch (test->kind) {
    case FILTER_TEST_LT: return c < 0;
    case FILTER_TEST_LTE: return c <= 0;
    case FILTER_TEST_GT: return c > 0;
    default: return c >= 0;
  }
}

static bool metadata_holds(const filter_eval *ev, const filter_test *test) {
  eval_slot at = ev->slots[test->key];
  meta_value value;
  if (at.stamp != ev->stamp) return false;
  if (test->kind == FILTER_TEST_HAS) return has_element(ev, test, at.node);
  if (!meta_value_of(&ev->json, at.node, &value)) return false;
  return test->kind == FILTER_TEST_IN ? is_among(test, &value) : is_ordered(test, &value);
}

static lode_status document_holds(filter_eval *ev, const filter_test *test, bool *holds, lode_error *err) {
  lode_str document = ev->document;
  *holds = false;
  if (!document.data) return LODE_OK;
  if (test->kind == FILTER_TEST_TEXT) {
    *holds = memmem(document.data, document.len, test->u.text.data, test->u.text.len) != NULL;
    return LODE_OK;
  }
  if (!ev->document_checked && !utf8_valid(document.data, document.len)) {
    return err_set(err, LODE_CORRUPT, "a record's document is not valid UTF-8: run a verification");
  }
  ev->document_checked = true;
  return regex_search(ev->runner, test->u.regex, document, holds, err);
}

lode_status filter_eval_match(filter_eval *ev, lode_str metadata, lode_str document, bool *match, lode_error *err) {
  const filter_expr *f = ev->filter;
  uint32_t at = f->n_tests ? 0 : FILTER_ACCEPT;
  *match = false;
  if (f->needs_metadata) TRY(eval_bind_record(ev, metadata, err));
  ev->document = document;
  ev->document_checked = false;
  while (at < FILTER_REJECT) {
    const filter_test *test = &f->program[at];
    bool holds = true;
    if (filter_test_on_metadata(test))
      holds = metadata_holds(ev, test);
    else if (filter_test_on_document(test))
      TRY(document_holds(ev, test, &holds, err));
    at = holds ? test->on_true : test->on_false;
  }
  *match = at == FILTER_ACCEPT;
  return LODE_OK;
}
