/* filter_int.h - what the files of the filter share, and nobody else includes.
 *
 * filter_parse.c    JSON text -> tree of and, or, test    ($not is gone: it turned the nodes below it around)
 * filter_compile.c  tree -> program: equal tests on a key become one set; tests with jumps
 * filter_probe.c    tree -> what an index may be asked
 * filter_judge.c    runs the program on a record
 * filter.c          the filter as a whole
 *
 * The program is the tree's tests from left to right. Each names the test that comes next when it holds and when it
 * does not, always one further on, or ACCEPT or REJECT: judging needs no stack, however deep the filter was nested.
 */
#ifndef LODE_FILTER_INT_H
#define LODE_FILTER_INT_H

#include "filter.h"
#include "regex.h"

typedef enum lode__test_kind {
  LODE__TEST_TRUE,
  LODE__TEST_IN,    /* the value is a scalar that equals one of the values */
  LODE__TEST_HAS,   /* the value is an array with an element that does */
  LODE__TEST_LT,    /* the value is a scalar of the same kind, and less than the value */
  LODE__TEST_LTE,
  LODE__TEST_GT,
  LODE__TEST_GTE,
  LODE__TEST_TEXT,  /* the document has the text in it */
  LODE__TEST_REGEX,
} lode__test_kind;

#define LODE__ACCEPT UINT32_MAX
#define LODE__REJECT (UINT32_MAX - 1)

/* A record without the key or document does not hold any test, and so holds each negated one. */
typedef struct lode__test {
  uint8_t kind;
  bool negated;
  uint32_t key;               /* in the filter's keys; of tests on metadata */
  uint32_t on_true, on_false; /* in the program */
  union {
    struct {
      meta_value *items; /* IN, HAS: sorted and distinct once compiled; LT and its like: one */
      size_t count;
    } values;
    lode_str text;
    const lode__regex *regex;
  } u;
} lode__test;

static inline bool lode__test_on_metadata(const lode__test *t) {
  return t->kind >= LODE__TEST_IN && t->kind <= LODE__TEST_GTE;
}
static inline bool lode__test_on_document(const lode__test *t) { return t->kind >= LODE__TEST_TEXT; }

struct lode__filter {
  mem_arena arena; /* keys, values, texts, probes */
  lode_str *keys;    /* distinct */
  size_t n_keys, keys_cap;
  uint32_t *key_slots; /* hash table: index of a key + 1, or 0 */
  size_t key_mask;
  lode__regex **regexes;
  size_t n_regexes, regexes_cap;
  lode__test *program;
  size_t n_tests; /* none: matches everything */
  lode__probe *probes;
  size_t n_probes;
  bool is_probe; /* the one probe says all that the filter does, but for arrays */
  bool needs_metadata, needs_document;
};

#define LODE__NO_KEY UINT32_MAX
/* Index of a key that the filter asks for, or LODE__NO_KEY. */
uint32_t lode__filter_find_key(const lode__filter *filter, lode_str key);
/* The same, and it becomes one of them if it was not. */
lode_status lode__filter_add_key(lode__filter *filter, lode_str key, uint32_t *index, lode_error *err);

/* ---- The tree ---- */

typedef enum lode__node_kind { LODE__NODE_AND, LODE__NODE_OR, LODE__NODE_TEST } lode__node_kind;

/* Children, linked from the last to the first: programs are written from their end. Node 0 is none. */
typedef struct lode__node_list {
  uint32_t first, last, count;
} lode__node_list;

typedef struct lode__node {
  uint8_t kind;
  uint32_t prev;            /* the sibling before it */
  uint32_t test;            /* TEST */
  lode__node_list children; /* AND, OR: two at least, but for those that compiling merges */
} lode__node;

typedef struct lode__filter_tree {
  lode__test *tests;
  size_t n_tests, tests_cap;
  lode__node *nodes;
  size_t n_nodes, nodes_cap;
  lode__node_list root; /* all of them must hold */
  size_t clauses;
} lode__filter_tree;

/* Reads a filter's text (document: one on documents) and adds it to the root. */
lode_status lode__filter_read(lode__filter *filter, lode__filter_tree *tree, lode_str text, bool document,
                              lode_error *err);
lode_status lode__filter_merge(lode__filter *filter, lode__filter_tree *tree, lode_error *err);
lode_status lode__filter_emit(lode__filter *filter, const lode__filter_tree *tree, lode_error *err);
/* After merging. */
lode_status lode__filter_make_probes(lode__filter *filter, const lode__filter_tree *tree, lode_error *err);

#endif
