/* SPDX-License-Identifier: Apache-2.0 */
/* filter_compile.c - compiles the tree to the program.
 *
 * Merging: among the children of an "or", the equality tests on one key become one set, and so do the negated ones of
 * an "and"; the same for tests on array elements. An $or of 30,000 paths is then one binary search. Emitting: tests
 * are written from last to first, so that the target of a jump is always known.
 */
#include "query/filter_internal.h"

/* ---- Merging ---- */

/* The tests of one kind on one key among the children of one node. */
typedef struct merge_group {
  uint32_t owner; /* the list it was counted for, or 0 */
  uint32_t tests;
  size_t values;
  meta_value *merged; /* `values` of them; allocated at the first of several tests */
  size_t filled;
} merge_group;

typedef struct merger {
  filter_expr *filter;
  filter_tree *tree;
  merge_group *groups; /* two for each key */
  uint32_t owner;
  lode_error *err;
} merger;

/* The group of a child, or NULL if it cannot be merged. */
static merge_group *merge_group_of(const merger *m, uint32_t node, uint8_t kind) {
  if (m->tree->nodes[node].kind != FILTER_NODE_TEST) return NULL;
  const filter_test *test = &m->tree->tests[m->tree->nodes[node].test];
  if (test->kind != FILTER_TEST_IN && test->kind != FILTER_TEST_HAS) return NULL;
  if (test->negated != (kind == FILTER_NODE_AND)) return NULL;
  return &m->groups[2 * (size_t)test->key + (test->kind == FILTER_TEST_HAS)];
}

static void count_groups(const merger *m, const filter_node_list *list, uint8_t kind) {
  for (uint32_t n = list->last; n; n = m->tree->nodes[n].prev) {
    merge_group *g = merge_group_of(m, n, kind);
    if (!g) continue;
    if (g->owner != m->owner) *g = (merge_group){.owner = m->owner};
    g->tests++;
    g->values += m->tree->tests[m->tree->nodes[n].test].u.values.count;
  }
}

/* Adds the test's values to its group; *absorbed: the group's first test replaces it. */
static lode_status join_group(const merger *m, merge_group *g, filter_test *test, bool *absorbed) {
  *absorbed = g->merged != NULL;
  if (!g->merged) {
    g->merged = mem_arena_alloc(&m->filter->arena, g->values * sizeof *g->merged);
    if (!g->merged) return err_nomem(m->err);
  }
  memcpy(g->merged + g->filled, test->u.values.items, test->u.values.count * sizeof *g->merged);
  g->filled += test->u.values.count;
  if (!*absorbed) {
    test->u.values.items = g->merged;
    test->u.values.count = g->values;
  }
  return LODE_OK;
}

static lode_status merge_list(merger *m, filter_node_list *list, uint8_t kind) {
  filter_node *nodes = m->tree->nodes;
  m->owner++;
  count_groups(m, list, kind);
  for (uint32_t *link = &list->last; *link;) {
    merge_group *g = merge_group_of(m, *link, kind);
    bool absorbed = false;
    if (g && g->tests > 1) TRY(join_group(m, g, &m->tree->tests[nodes[*link].test], &absorbed));
    if (absorbed) {
      *link = nodes[*link].prev;
      list->count--;
    } else {
      list->first = *link;
      link = &nodes[*link].prev;
    }
  }
  return LODE_OK;
}

/* Sorts the sets, for binary search. */
static lode_status merge_sort_list(const merger *m, const filter_node_list *list) {
  for (uint32_t n = list->last; n; n = m->tree->nodes[n].prev) {
    if (m->tree->nodes[n].kind != FILTER_NODE_TEST) continue;
    filter_test *test = &m->tree->tests[m->tree->nodes[n].test];
    if (test->kind != FILTER_TEST_IN && test->kind != FILTER_TEST_HAS) continue;
    TRY(meta_values_sort(test->u.values.items, &test->u.values.count, m->err));
  }
  return LODE_OK;
}

lode_status filter_merge(filter_expr *filter, filter_tree *tree, lode_error *err) {
  lode_status st = LODE_OK;
  merger m = {.filter = filter, .tree = tree, .err = err};
  m.groups = mem_calloc(filter->n_keys, 2 * sizeof *m.groups);
  if (!m.groups) return err_nomem(err);
  TRY_GOTO(merge_list(&m, &tree->root, FILTER_NODE_AND));
  TRY_GOTO(merge_sort_list(&m, &tree->root));
  for (size_t i = 1; i < tree->n_nodes; i++) {
    filter_node *node = &tree->nodes[i];
    if (node->kind == FILTER_NODE_TEST) continue;
    TRY_GOTO(merge_list(&m, &node->children, node->kind));
    TRY_GOTO(merge_sort_list(&m, &node->children));
  }
done:
  mem_free(m.groups);
  return st;
}

/* ---- Emitting ---- */

typedef struct program_writer {
  const filter_tree *tree;
  filter_test *program;
  size_t at; /* index of the last written test: the program is filled from its end */
  struct open_node {
    uint32_t child; /* the next to write, in reverse order; 0: none */
    uint8_t kind;
    bool begun; /* a child was written: it starts at writer.at */
    uint32_t on_true, on_false;
  } * stack;
  size_t depth, cap;
} program_writer;

static bool open_list(program_writer *w, const filter_node_list *list, uint8_t kind, uint32_t on_true,
                      uint32_t on_false) {
  if (!mem_grow(&w->stack, &w->cap, w->depth + 1, sizeof *w->stack)) return false;
  w->stack[w->depth++] =
      (struct open_node){.child = list->last, .kind = kind, .on_true = on_true, .on_false = on_false};
  return true;
}

/* Writes the next child of the innermost open node, or opens it, or closes the node. */
static bool program_write_next(program_writer *w) {
  struct open_node *top = &w->stack[w->depth - 1];
  if (!top->child) {
    w->depth--;
    return true;
  }
  const filter_node *child = &w->tree->nodes[top->child];
  uint32_t on_true = top->on_true, on_false = top->on_false;
  if (top->begun) { /* not the last child: if it does not decide, the next one is evaluated */
    if (top->kind == FILTER_NODE_AND)
      on_true = (uint32_t)w->at;
    else
      on_false = (uint32_t)w->at;
  }
  top->begun = true;
  top->child = child->prev;
  if (child->kind != FILTER_NODE_TEST) return open_list(w, &child->children, child->kind, on_true, on_false);
  filter_test *test = &w->program[--w->at];
  *test = w->tree->tests[child->test];
  test->on_true = test->negated ? on_false : on_true;
  test->on_false = test->negated ? on_true : on_false;
  return true;
}

static size_t count_tests(const filter_tree *tree, const filter_node_list *list) {
  size_t n = 0;
  for (uint32_t c = list->last; c; c = tree->nodes[c].prev) n += tree->nodes[c].kind == FILTER_NODE_TEST;
  return n;
}

static bool program_jumps_forward(const filter_expr *filter, size_t from, uint32_t to) {
  return to == FILTER_ACCEPT || to == FILTER_REJECT || (to > from && to < filter->n_tests);
}

lode_status filter_emit(filter_expr *filter, const filter_tree *tree, lode_error *err) {
  bool ok = true;
  size_t n = count_tests(tree, &tree->root);
  for (size_t i = 1; i < tree->n_nodes; i++) n += count_tests(tree, &tree->nodes[i].children);
  program_writer w = {.tree = tree, .at = n};
  filter->program = w.program = mem_calloc(n, sizeof *w.program);
  ok = w.program && open_list(&w, &tree->root, FILTER_NODE_AND, FILTER_ACCEPT, FILTER_REJECT);
  while (ok && w.depth) ok = program_write_next(&w);
  mem_free(w.stack);
  if (!ok) return err_nomem(err);
  if (!INVARIANT(w.at == 0)) return err_internal(err, "the filter's program has a gap");
  filter->n_tests = n;
  for (size_t i = 0; i < n; i++) /* so that evaluation ends, and stays inside */
    ENSURE(program_jumps_forward(filter, i, filter->program[i].on_true) &&
               program_jumps_forward(filter, i, filter->program[i].on_false),
           err);
  return LODE_OK;
}
