/* SPDX-License-Identifier: Apache-2.0 */
/* filter_internal.h - shared by the filter's files; nothing else includes it.
 *
 * filter_parse.c    JSON text -> tree of and, or, test    ($not is eliminated: it negates the nodes below it)
 * filter_compile.c  tree -> program: equality tests on a key become one set; tests with jumps
 * filter_probe.c    tree -> probes for an index
 * filter_eval.c     runs the program on a record
 * filter.c          the filter object
 *
 * The program is the tree's tests from left to right. Each names the test to run next if it holds and if it does not,
 * always a later one, or FILTER_ACCEPT or FILTER_REJECT: evaluation needs no stack, however deeply the filter nests.
 */
#ifndef LODE_QUERY_FILTER_INTERNAL_H
#define LODE_QUERY_FILTER_INTERNAL_H

#include "query/filter.h"
#include "query/regex.h"

typedef enum filter_test_kind {
  FILTER_TEST_TRUE,
  FILTER_TEST_IN,  /* the value is a scalar that equals one of the test's values */
  FILTER_TEST_HAS, /* the value is an array with an element that equals one of the test's values */
  FILTER_TEST_LT,  /* the value is a scalar of the same kind as the test's value, and less */
  FILTER_TEST_LTE,
  FILTER_TEST_GT,
  FILTER_TEST_GTE,
  FILTER_TEST_TEXT, /* the document contains the text */
  FILTER_TEST_REGEX,
} filter_test_kind;

#define FILTER_ACCEPT UINT32_MAX
#define FILTER_REJECT (UINT32_MAX - 1)

/* For a record without the key or document every test is false, and so every negated test is true. */
typedef struct filter_test {
  uint8_t kind;
  bool negated;
  uint32_t key;               /* index in the filter's keys; tests on metadata only */
  uint32_t on_true, on_false; /* in the program */
  union {
    struct {
      meta_value *items; /* IN, HAS: sorted and distinct once compiled; LT, LTE, GT, GTE: one */
      size_t count;
    } values;
    lode_str text;
    const regex_pattern *regex;
  } u;
} filter_test;

static inline bool filter_test_on_metadata(const filter_test *t) {
  return t->kind >= FILTER_TEST_IN && t->kind <= FILTER_TEST_GTE;
}
static inline bool filter_test_on_document(const filter_test *t) { return t->kind >= FILTER_TEST_TEXT; }

struct filter_expr {
  mem_arena arena; /* keys, values, texts, probes */
  lode_str *keys;  /* distinct */
  size_t n_keys, keys_cap;
  uint32_t *key_slots; /* hash table: index of a key + 1, or 0 */
  size_t key_mask;
  regex_pattern **regexes;
  size_t n_regexes, regexes_cap;
  filter_test *program;
  size_t n_tests; /* 0: matches everything */
  filter_probe *probes;
  filter_condition *singles; /* those of probes of one condition */
  size_t n_probes;
  bool is_probe; /* its only probe is equivalent to the filter, except for arrays */
  bool needs_metadata, needs_document;
};

#define FILTER_NO_KEY UINT32_MAX
/* Index of a key that the filter uses, or FILTER_NO_KEY. */
uint32_t filter_find_key(const filter_expr *filter, lode_str key);
/* The same, but adds the key if it is new. */
LODE_MUST lode_status filter_add_key(filter_expr *filter, lode_str key, uint32_t *index, lode_error *err);

/* ---- The tree ---- */

typedef enum filter_node_kind { FILTER_NODE_AND, FILTER_NODE_OR, FILTER_NODE_TEST } filter_node_kind;

/* Children, linked from last to first, because programs are written from their end. Node 0 means none. */
typedef struct filter_node_list {
  uint32_t first, last, count;
} filter_node_list;

typedef struct filter_node {
  uint8_t kind;
  uint32_t prev;             /* the previous sibling */
  uint32_t test;             /* TEST */
  filter_node_list children; /* AND, OR: at least two, except after merging */
} filter_node;

typedef struct filter_tree {
  filter_test *tests;
  size_t n_tests, tests_cap;
  filter_node *nodes;
  size_t n_nodes, nodes_cap;
  filter_node_list root; /* all of these must hold */
  size_t clauses;
} filter_tree;

/* Parses a filter's text (document: a document filter) and adds it to the root. */
LODE_MUST lode_status filter_read(filter_expr *filter, filter_tree *tree, lode_str text, bool document,
                                  lode_error *err);
LODE_MUST lode_status filter_merge(filter_expr *filter, filter_tree *tree, lode_error *err);
LODE_MUST lode_status filter_emit(filter_expr *filter, const filter_tree *tree, lode_error *err);
/* After merging. */
LODE_MUST lode_status filter_make_probes(filter_expr *filter, const filter_tree *tree, lode_error *err);

#endif
