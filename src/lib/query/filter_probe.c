/* SPDX-License-Identifier: Apache-2.0 */
/* filter_probe.c - conditions for an index on (key, value), to avoid evaluating the filter on every record.
 *
 * A probe is a condition that every match satisfies, so only tests of the top conjunction can become one, and no
 * negated ones: a record without the key would match. Such an index has array elements as well as scalars, so $eq and
 * $contains give the same probe. Ranges on one key are narrowed to one: the order tests hold for scalars only, and a
 * record has one scalar per key.
 */
#include "query/filter_internal.h"

static bool is_set(const filter_test *t) {
  return (t->kind == FILTER_TEST_IN || t->kind == FILTER_TEST_HAS) && !t->negated;
}

static bool is_range(const filter_test *t) {
  return t->kind >= FILTER_TEST_LT && t->kind <= FILTER_TEST_GTE && !t->negated;
}

static filter_probe *new_probe(filter_expr *f, uint32_t key) {
  if (f->n_probes == FILTER_MAX_PROBES) return NULL;
  filter_probe *probe = &f->probes[f->n_probes++];
  *probe = (filter_probe){.key = f->keys[key]};
  return probe;
}

static bool add_set(filter_expr *f, const filter_test *test) {
  filter_probe *probe = new_probe(f, test->key);
  if (!probe) return false;
  probe->values = test->u.values.items;
  probe->n_values = test->u.values.count;
  return true;
}

/* The range probe of a key, if its bounds are comparable with the value; a new one if there is none. NULL: too many
 * probes, or the key is required to be both a number and a string. */
static filter_probe *range_for(filter_expr *f, uint32_t key, const meta_value *value) {
  for (size_t i = 0; i < f->n_probes; i++) {
    filter_probe *probe = &f->probes[i];
    if (probe->key.data != f->keys[key].data || probe->n_values) continue;
    return meta_value_comparable(probe->has_low ? &probe->low : &probe->high, value) ? probe : NULL;
  }
  return new_probe(f, key);
}

static bool add_range(filter_expr *f, const filter_test *test) {
  const meta_value *value = test->u.values.items;
  bool open = test->kind == FILTER_TEST_GT || test->kind == FILTER_TEST_LT;
  filter_probe *probe = range_for(f, test->key, value);
  if (!probe) return false;
  if (test->kind == FILTER_TEST_GT || test->kind == FILTER_TEST_GTE) {
    int c = probe->has_low ? meta_value_cmp(value, &probe->low) : 1;
    if (c > 0) probe->low = *value, probe->low_open = open;
    if (c == 0) probe->low_open |= open;
    probe->has_low = true;
  } else {
    int c = probe->has_high ? meta_value_cmp(value, &probe->high) : -1;
    if (c < 0) probe->high = *value, probe->high_open = open;
    if (c == 0) probe->high_open |= open;
    probe->has_high = true;
  }
  return true;
}

/* Adds the probe of an "or" whose branches all test one key for values: after merging, that is one test, or two ($eq
 * and $contains). */
static lode_status add_union(filter_expr *f, const filter_tree *tree, const filter_node_list *list, lode_error *err) {
  const filter_test *first = NULL;
  size_t n = 0;
  for (uint32_t c = list->last; c; c = tree->nodes[c].prev) {
    if (tree->nodes[c].kind != FILTER_NODE_TEST) return LODE_OK;
    const filter_test *test = &tree->tests[tree->nodes[c].test];
    if (!is_set(test) || (first && test->key != first->key)) return LODE_OK;
    first = test;
    n += test->u.values.count;
  }
  if (list->count == 1) add_set(f, first);
  filter_probe *probe = list->count > 1 ? new_probe(f, first->key) : NULL;
  if (!probe) return LODE_OK;
  meta_value *values = mem_arena_alloc(&f->arena, n * sizeof *values);
  if (!values) return err_nomem(err);
  probe->values = values;
  for (uint32_t c = list->last; c; c = tree->nodes[c].prev) {
    const filter_test *test = &tree->tests[tree->nodes[c].test];
    memcpy(values + probe->n_values, test->u.values.items, test->u.values.count * sizeof *values);
    probe->n_values += test->u.values.count;
  }
  return meta_values_sort(values, &probe->n_values, err);
}

lode_status filter_make_probes(filter_expr *f, const filter_tree *tree, lode_error *err) {
  f->probes = mem_arena_alloc(&f->arena, FILTER_MAX_PROBES * sizeof *f->probes);
  if (!f->probes) return err_nomem(err);
  size_t used = 0, all = 0;
  for (uint32_t c = tree->root.last; c; c = tree->nodes[c].prev) {
    const filter_node *node = &tree->nodes[c];
    all++;
    if (node->kind == FILTER_NODE_OR) {
      size_t before = f->n_probes;
      TRY(add_union(f, tree, &node->children, err));
      used += f->n_probes > before;
      continue;
    }
    const filter_test *test = &tree->tests[node->test];
    if (is_set(test)) used += add_set(f, test);
    if (is_range(test)) used += add_range(f, test);
  }
  f->is_probe = f->n_probes == 1 && used == all;
  return LODE_OK;
}
