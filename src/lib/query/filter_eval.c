/* filter_eval.c - runs a filter's program on one record.
 *
 * The record's metadata is parsed into scratch memory that stays, its pairs are walked once, and the values of keys
 * that the filter asks for are noted in slots (one for each such key, valid if stamped with this record's number). Then
 * the tests run. Records come from disk: metadata that is no JSON object is LODE_CORRUPT. Belongs to one thread.
 */
#include "query/filter_internal.h"

typedef struct eval_slot {
  uint32_t stamp;
  uint32_t node; /* of the value in judge.json */
} eval_slot;

struct filter_eval {
  const filter_expr *filter;
  json_doc json;
  eval_slot *slots;
  uint32_t stamp;
  regex_runner *runner; /* NULL: no regular expressions */
  lode_str document;
  bool document_checked; /* is valid UTF-8 */
};

lode_status filter_eval_new(const filter_expr *filter, filter_eval **judge, lode_error *err) {
  lode_status st = LODE_OK;
  *judge = NULL;
  filter_eval *j = mem_calloc(1, sizeof *j);
  if (!j) return err_nomem(err);
  j->filter = filter;
  j->slots = mem_calloc(filter->n_keys, sizeof *j->slots);
  if (!j->slots) st = err_nomem(err);
  if (st == LODE_OK && filter->n_regexes) st = regex_runner_new(&j->runner, err);
  if (st == LODE_OK) *judge = j;
  else filter_eval_free(j);
  return st;
}

void filter_eval_free(filter_eval *j) {
  if (!j) return;
  json_release(&j->json);
  regex_runner_free(j->runner);
  mem_free(j->slots);
  mem_free(j);
}

/* Invalidates all slots. */
static void eval_next_stamp(filter_eval *j) {
  if (++j->stamp != 0) return;
  memset(j->slots, 0, j->filter->n_keys * sizeof *j->slots);
  j->stamp = 1;
}

/* Notes where the record's values are. */
static lode_status eval_bind_record(filter_eval *j, lode_str metadata, lode_error *err) {
  eval_next_stamp(j);
  if (!metadata.data) return LODE_OK;
  lode_error why;
  lode_status st = json_parse(&j->json, metadata, NULL, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  const json_node *nodes = j->json.nodes;
  if (st != LODE_OK || nodes[0].type != JSON_NODE_OBJECT) {
    return err_set(err, LODE_CORRUPT, "a record's metadata is not usable (%s): run a verification",
                      st != LODE_OK ? why.text : "not a JSON object");
  }
  for (uint32_t k = 1; k < nodes[0].next; k = nodes[k + 1].next) {
    uint32_t key = filter_find_key(j->filter, nodes[k].u.s);
    if (key != FILTER_NO_KEY) j->slots[key] = (eval_slot){j->stamp, k + 1};
  }
  return LODE_OK;
}

/* ---- Tests ---- */

static bool is_among(const filter_test *test, const meta_value *value) {
  const meta_value *items = test->u.values.items;
  size_t from = 0, to = test->u.values.count;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    int c = meta_value_cmp(value, &items[middle]);
    if (c == 0) return true;
    if (c < 0) to = middle;
    else from = middle + 1;
  }
  return false;
}

static bool has_element(const filter_eval *j, const filter_test *test, uint32_t array) {
  const json_node *nodes = j->json.nodes;
  meta_value value;
  if (nodes[array].type != JSON_NODE_ARRAY) return false;
  for (uint32_t e = array + 1; e < nodes[array].next; e = nodes[e].next) {
    if (meta_value_of(&j->json, e, &value) && is_among(test, &value)) return true;
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

static bool metadata_holds(const filter_eval *j, const filter_test *test) {
  eval_slot at = j->slots[test->key];
  meta_value value;
  if (at.stamp != j->stamp) return false;
  if (test->kind == FILTER_TEST_HAS) return has_element(j, test, at.node);
  if (!meta_value_of(&j->json, at.node, &value)) return false;
  return test->kind == FILTER_TEST_IN ? is_among(test, &value) : is_ordered(test, &value);
}

static lode_status document_holds(filter_eval *j, const filter_test *test, bool *holds, lode_error *err) {
  lode_str document = j->document;
  *holds = false;
  if (!document.data) return LODE_OK;
  if (test->kind == FILTER_TEST_TEXT) {
    *holds = memmem(document.data, document.len, test->u.text.data, test->u.text.len) != NULL;
    return LODE_OK;
  }
  if (!j->document_checked && !utf8_valid(document.data, document.len)) {
    return err_set(err, LODE_CORRUPT, "a record's document is not valid UTF-8: run a verification");
  }
  j->document_checked = true;
  return regex_search(j->runner, test->u.regex, document, holds, err);
}

lode_status filter_eval_match(filter_eval *j, lode_str metadata, lode_str document, bool *match, lode_error *err) {
  const filter_expr *f = j->filter;
  uint32_t at = f->n_tests ? 0 : FILTER_ACCEPT;
  *match = false;
  if (f->needs_metadata) TRY(eval_bind_record(j, metadata, err));
  j->document = document;
  j->document_checked = false;
  while (at < FILTER_REJECT) {
    const filter_test *test = &f->program[at];
    bool holds = true;
    if (filter_test_on_metadata(test)) holds = metadata_holds(j, test);
    else if (filter_test_on_document(test)) TRY(document_holds(j, test, &holds, err));
    at = holds ? test->on_true : test->on_false;
  }
  *match = at == FILTER_ACCEPT;
  return LODE_OK;
}
