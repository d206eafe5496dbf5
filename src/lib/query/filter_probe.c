/* SPDX-License-Identifier: Apache-2.0 */
/* filter_probe.c - conditions for an index on (key, value), to avoid evaluating the filter on every record.
 *
 * A probe is a union of conditions of which every match satisfies one. So only tests of the top conjunction can become
 * one, and no negated ones: a record without the key would match. An "or" becomes one if each of its branches has a
 * condition: the branch itself, or one of the tests that must all hold. Such an index has array elements as well as
 * scalars, so $eq and $contains give the same condition. Ranges on one key are narrowed to one: the order tests hold
 * for scalars only, and a record has one scalar per key.
 */
#include "query/filter_internal.h"

#include <stdlib.h>

static bool probe_is_set(const filter_test *t) {
  return (t->kind == FILTER_TEST_IN || t->kind == FILTER_TEST_HAS) && !t->negated && t->u.values.count;
}

static bool probe_is_range(const filter_test *t) {
  return t->kind >= FILTER_TEST_LT && t->kind <= FILTER_TEST_GTE && !t->negated;
}

/* ---- Conditions ---- */

static filter_condition condition_of_set(const filter_expr *f, const filter_test *t) {
  return (filter_condition){.key = f->keys[t->key], .values = t->u.values.items, .n_values = t->u.values.count};
}

static bool condition_takes(const filter_condition *c, const meta_value *value) {
  return (!c->has_low && !c->has_high) || meta_value_comparable(c->has_low ? &c->low : &c->high, value);
}

/* Narrows a range by a test on the same key. A bound of another type is left out: nothing satisfies both. */
static void condition_narrow(filter_condition *c, const filter_test *test) {
  const meta_value *value = test->u.values.items;
  bool open = test->kind == FILTER_TEST_GT || test->kind == FILTER_TEST_LT;
  if (!condition_takes(c, value)) return;
  if (test->kind == FILTER_TEST_GT || test->kind == FILTER_TEST_GTE) {
    int order = c->has_low ? meta_value_cmp(value, &c->low) : 1;
    if (order > 0) c->low = *value, c->low_open = open;
    if (order == 0) c->low_open |= open;
    c->has_low = true;
  } else {
    int order = c->has_high ? meta_value_cmp(value, &c->high) : -1;
    if (order < 0) c->high = *value, c->high_open = open;
    if (order == 0) c->high_open |= open;
    c->has_high = true;
  }
}

/* ---- Tests of the top conjunction ---- */

/* A probe of one condition; NULL: too many probes. */
static filter_condition *probe_new(filter_expr *f) {
  if (f->n_probes == FILTER_MAX_PROBES) return NULL;
  filter_condition *one = &f->singles[f->n_probes];
  f->probes[f->n_probes++] = (filter_probe){.any = one, .n = 1};
  return one;
}

static bool probe_add_set(filter_expr *f, const filter_test *test) {
  filter_condition *c = probe_new(f);
  if (c) *c = condition_of_set(f, test);
  return c != NULL;
}

/* Narrows the range of the key, if there is one. False: too many probes, or the key is required to be both a number and
 * a string. */
static bool probe_add_range(filter_expr *f, const filter_test *test) {
  filter_condition *c = NULL;
  for (size_t i = 0; i < f->n_probes && !c; i++) {
    filter_condition *other = &f->singles[i];
    if (f->probes[i].any == other && other->key.data == f->keys[test->key].data && !other->n_values) c = other;
  }
  if (c && !condition_takes(c, test->u.values.items)) return false;
  if (!c && (c = probe_new(f))) *c = (filter_condition){.key = f->keys[test->key]};
  if (c) condition_narrow(c, test);
  return c != NULL;
}

/* ---- Unions ---- */

/* What a branch of an "or" gives: its test, or the first range of several on its key. */
typedef struct probe_branch {
  const filter_test *test;
  uint32_t within; /* the conjunction that the test is of; 0: the branch is the test */
} probe_branch;

/* The condition of a branch: of tests that must all hold, that for the fewest values, else a range. */
static probe_branch probe_branch_of(const filter_tree *tree, uint32_t node) {
  const filter_node *n = &tree->nodes[node];
  probe_branch best = {0};
  while (n->kind != FILTER_NODE_TEST && n->children.count == 1) n = &tree->nodes[n->children.last];
  if (n->kind == FILTER_NODE_TEST) {
    const filter_test *test = &tree->tests[n->test];
    return (probe_branch){.test = probe_is_set(test) || probe_is_range(test) ? test : NULL};
  }
  if (n->kind == FILTER_NODE_OR) return best;
  best.within = (uint32_t)(n - tree->nodes);
  for (uint32_t c = n->children.last; c; c = tree->nodes[c].prev) {
    const filter_test *test = tree->nodes[c].kind == FILTER_NODE_TEST ? &tree->tests[tree->nodes[c].test] : NULL;
    if (!test || !(probe_is_set(test) || probe_is_range(test))) continue;
    bool better = !best.test || (probe_is_set(test) &&
                                 (!probe_is_set(best.test) || test->u.values.count < best.test->u.values.count));
    if (better) best.test = test;
  }
  return best;
}

static filter_condition condition_of_branch(const filter_expr *f, const filter_tree *tree, const probe_branch *b) {
  if (probe_is_set(b->test)) return condition_of_set(f, b->test);
  filter_condition range = {.key = f->keys[b->test->key]};
  condition_narrow(&range, b->test);
  for (uint32_t c = b->within ? tree->nodes[b->within].children.last : 0; c; c = tree->nodes[c].prev) {
    if (tree->nodes[c].kind != FILTER_NODE_TEST) continue;
    const filter_test *test = &tree->tests[tree->nodes[c].test];
    if (probe_is_range(test) && test->key == b->test->key) condition_narrow(&range, test);
  }
  return range;
}

/* Sets by key, then ranges; else in the order of the text. */
static int probe_compare_branches(const void *a, const void *b) {
  const filter_test *x = ((const probe_branch *)a)->test, *y = ((const probe_branch *)b)->test;
  if (probe_is_set(x) != probe_is_set(y)) return probe_is_set(x) ? -1 : 1;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x > y) - (x < y);
}

/* How many branches from the first one are sets on its key: one condition. A range is one of its own. */
static size_t probe_count_same(const probe_branch *branches, size_t n) {
  size_t same = 1;
  while (same < n && probe_is_set(branches[same].test) && branches[same].test->key == branches[0].test->key) same++;
  return same;
}

/* The sets of branches on one key as one. */
static lode_status probe_join_sets(filter_expr *f, const probe_branch *branches, size_t n, filter_condition *c,
                                   lode_error *err) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += branches[i].test->u.values.count;
  meta_value *values = mem_arena_alloc(&f->arena, count * sizeof *values);
  if (!values) return err_nomem(err);
  *c = (filter_condition){.key = f->keys[branches->test->key], .values = values};
  for (size_t i = 0; i < n; i++) {
    const filter_test *test = branches[i].test;
    memcpy(values + c->n_values, test->u.values.items, test->u.values.count * sizeof *values);
    c->n_values += test->u.values.count;
  }
  return meta_values_sort(values, &c->n_values, err);
}

static lode_status probe_join_branches(filter_expr *f, const filter_tree *tree, const probe_branch *branches, size_t n,
                                       bool *added, lode_error *err) {
  size_t conditions = 0;
  for (size_t i = 0; i < n; i += probe_count_same(branches + i, n - i)) conditions++;
  *added = false;
  if (conditions > FILTER_MAX_CONDITIONS || f->n_probes == FILTER_MAX_PROBES) return LODE_OK;
  filter_condition *c = mem_arena_alloc(&f->arena, conditions * sizeof *c);
  if (!c) return err_nomem(err);
  f->probes[f->n_probes++] = (filter_probe){.any = c, .n = conditions};
  *added = true;
  for (size_t i = 0, same; i < n; i += same, c++) {
    same = probe_count_same(branches + i, n - i);
    if (same > 1)
      TRY(probe_join_sets(f, branches + i, same, c, err));
    else
      *c = condition_of_branch(f, tree, &branches[i]);
  }
  return LODE_OK;
}

/* Adds the probe of an "or", if each branch has a condition. *added: it has; *exact: the probe is the "or". */
static lode_status probe_add_union(filter_expr *f, const filter_tree *tree, const filter_node_list *list, bool *added,
                                   bool *exact, lode_error *err) {
  lode_status st = LODE_OK;
  size_t n = 0;
  probe_branch *branches = mem_calloc(list->count, sizeof *branches);
  *added = false;
  *exact = true;
  if (!branches) return err_nomem(err);
  for (uint32_t c = list->last; c; c = tree->nodes[c].prev) {
    branches[n] = probe_branch_of(tree, c);
    if (!branches[n].test) goto done;
    *exact = *exact && !branches[n].within;
    n++;
  }
  qsort(branches, n, sizeof *branches, probe_compare_branches);
  st = probe_join_branches(f, tree, branches, n, added, err);
done:
  mem_free(branches);
  return st;
}

lode_status filter_make_probes(filter_expr *f, const filter_tree *tree, lode_error *err) {
  f->probes = mem_arena_alloc(&f->arena, FILTER_MAX_PROBES * sizeof *f->probes);
  f->singles = mem_arena_alloc(&f->arena, FILTER_MAX_PROBES * sizeof *f->singles);
  if (!f->probes || !f->singles) return err_nomem(err);
  size_t used = 0, all = 0;
  for (uint32_t c = tree->root.last; c; c = tree->nodes[c].prev) {
    const filter_node *node = &tree->nodes[c];
    bool added, exact;
    all++;
    if (node->kind == FILTER_NODE_OR) {
      TRY(probe_add_union(f, tree, &node->children, &added, &exact, err));
      used += added && exact;
      continue;
    }
    const filter_test *test = &tree->tests[node->test];
    if (probe_is_set(test)) used += probe_add_set(f, test);
    if (probe_is_range(test)) used += probe_add_range(f, test);
  }
  f->is_probe = f->n_probes == 1 && used == all;
  return LODE_OK;
}
