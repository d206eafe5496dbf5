/* SPDX-License-Identifier: Apache-2.0 */
/* filter_parse.c - parses the filter language: JSON text to a tree, with a message for every error a user can make.
 *
 * The nodes of the JSON text are walked with a stack of frames, one for each open object or list. Negation is pushed
 * down: under an odd number of $not, "and" and "or" are swapped and tests are negated, so that only tests in the tree
 * are negated. A node with one child is replaced by it; an "and" in an "and" is replaced by its children; true in an
 * "and" and false in an "or" are dropped. This keeps the tree small.
 */
#include "query/filter_internal.h"

enum {
  FILTER_MAX_REGEXES = 256, /* each pattern may have 64 KiB */
  FILTER_MAX_JSON_NODES = 16 << 20,
};

typedef struct parse_frame {
  uint32_t at, end; /* nodes of the JSON text: the next to read, and where to stop */
  bool object;      /* otherwise a list of filters */
  bool document;    /* operators are those for documents */
  bool negate;
  bool level;   /* counts as a level of nesting */
  uint8_t kind; /* AND or OR, after applying negation */
  filter_node_list children;
} parse_frame;

typedef struct parse_state {
  filter_expr *filter;
  filter_tree *tree;
  json_doc json;
  parse_frame *frames;
  size_t n_frames, frames_cap, depth;
  lode_error *err;
} parse_state;

/* ---- Operators ---- */

typedef enum operand_kind { OPERAND_SCALAR, OPERAND_ORDERED, OPERAND_LIST } operand_kind;

typedef struct operator_row {
  lode_str name;
  uint8_t kind;
  bool negated;
  operand_kind operand;
} operator_row;

#define OPERATOR_NAME(s)                                                                                               \
  { "" s, sizeof(s) - 1 }
static const operator_row metadata_operators[] = {
    {OPERATOR_NAME("$eq"), FILTER_TEST_IN, false, OPERAND_SCALAR},
    {OPERATOR_NAME("$ne"), FILTER_TEST_IN, true, OPERAND_SCALAR},
    {OPERATOR_NAME("$gt"), FILTER_TEST_GT, false, OPERAND_ORDERED},
    {OPERATOR_NAME("$gte"), FILTER_TEST_GTE, false, OPERAND_ORDERED},
    {OPERATOR_NAME("$lt"), FILTER_TEST_LT, false, OPERAND_ORDERED},
    {OPERATOR_NAME("$lte"), FILTER_TEST_LTE, false, OPERAND_ORDERED},
    {OPERATOR_NAME("$in"), FILTER_TEST_IN, false, OPERAND_LIST},
    {OPERATOR_NAME("$nin"), FILTER_TEST_IN, true, OPERAND_LIST},
    {OPERATOR_NAME("$contains"), FILTER_TEST_HAS, false, OPERAND_SCALAR},
    {OPERATOR_NAME("$not_contains"), FILTER_TEST_HAS, true, OPERAND_SCALAR},
};
static const operator_row document_operators[] = {
    {OPERATOR_NAME("$contains"), FILTER_TEST_TEXT, false, OPERAND_SCALAR},
    {OPERATOR_NAME("$not_contains"), FILTER_TEST_TEXT, true, OPERAND_SCALAR},
    {OPERATOR_NAME("$regex"), FILTER_TEST_REGEX, false, OPERAND_SCALAR},
    {OPERATOR_NAME("$not_regex"), FILTER_TEST_REGEX, true, OPERAND_SCALAR},
};
#define OPERATOR_COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const operator_row *find_operator(const operator_row *table, size_t n, lode_str name) {
  for (size_t i = 0; i < n; i++) {
    if (str_eq(table[i].name, name)) return &table[i];
  }
  return NULL;
}

/* ---- Building the tree ---- */

static lode_status parse_add_node(parse_state *r, filter_node node, uint32_t *index) {
  filter_tree *tree = r->tree;
  size_t n = tree->n_nodes ? tree->n_nodes : 1; /* 0 means none */
  if (!mem_grow(&tree->nodes, &tree->nodes_cap, n + 1, sizeof *tree->nodes)) return err_nomem(r->err);
  if (n == 1) tree->nodes[0] = (filter_node){0};
  tree->nodes[n] = node;
  tree->n_nodes = n + 1;
  *index = (uint32_t)n;
  return LODE_OK;
}

/* Moves all of `from` to the end of `to`. */
static void node_list_move(filter_tree *tree, filter_node_list *to, filter_node_list from) {
  if (!from.count) return;
  tree->nodes[from.first].prev = to->last;
  if (!to->count) to->first = from.first;
  to->last = from.last;
  to->count += from.count;
}

static void node_list_append(filter_tree *tree, filter_node_list *to, uint32_t node) {
  node_list_move(tree, to, (filter_node_list){node, node, 1});
}

static lode_status parse_add_test_node(parse_state *r, filter_test test, uint32_t *node) {
  filter_tree *tree = r->tree;
  if (!mem_grow(&tree->tests, &tree->tests_cap, tree->n_tests + 1, sizeof *tree->tests)) return err_nomem(r->err);
  TRY(parse_add_node(r, (filter_node){.kind = FILTER_NODE_TEST, .test = (uint32_t)tree->n_tests}, node));
  tree->tests[tree->n_tests++] = test;
  return LODE_OK;
}

/* Adds a test to the top frame. */
static lode_status parse_add_test(parse_state *r, filter_test test) {
  parse_frame *f = &r->frames[r->n_frames - 1];
  uint32_t node;
  if (f->negate) test.negated = !test.negated;
  TRY(parse_add_test_node(r, test, &node));
  node_list_append(r->tree, &f->children, node);
  return LODE_OK;
}

static lode_status count_clauses(parse_state *r, size_t n) {
  r->tree->clauses += n;
  if (r->tree->clauses <= LODE_MAX_FILTER_CLAUSES) return LODE_OK;
  return err_set(r->err, LODE_LIMIT, "the filter has more than %d clauses and list values: ask in several parts",
                 LODE_MAX_FILTER_CLAUSES);
}

static lode_status parse_push(parse_state *r, parse_frame f) {
  if (f.level && ++r->depth > LODE_MAX_FILTER_DEPTH) {
    return err_set(r->err, LODE_LIMIT, "the filter nests $and, $or and $not more than %d deep", LODE_MAX_FILTER_DEPTH);
  }
  if (!mem_grow(&r->frames, &r->frames_cap, r->n_frames + 1, sizeof *r->frames)) return err_nomem(r->err);
  r->frames[r->n_frames++] = f;
  return LODE_OK;
}

static lode_status parse_push_object(parse_state *r, uint32_t object, bool document, bool negate, bool level) {
  return parse_push(r, (parse_frame){.at = object + 1,
                                     .end = r->json.nodes[object].next,
                                     .object = true,
                                     .document = document,
                                     .negate = negate,
                                     .level = level,
                                     .kind = negate ? FILTER_NODE_OR : FILTER_NODE_AND});
}

/* Does the node have no effect among the children of a node of that kind? */
static bool is_neutral(const filter_tree *tree, uint32_t node, uint8_t kind) {
  if (tree->nodes[node].kind != FILTER_NODE_TEST) return false;
  const filter_test *test = &tree->tests[tree->nodes[node].test];
  return test->kind == FILTER_TEST_TRUE && test->negated == (kind == FILTER_NODE_OR);
}

/* Ends the top frame: its content becomes a child of the frame below, or of the root. */
static lode_status parse_pop(parse_state *r) {
  filter_tree *tree = r->tree;
  parse_frame f = r->frames[--r->n_frames];
  parse_frame *below = r->n_frames ? &r->frames[r->n_frames - 1] : NULL;
  filter_node_list *to = below ? &below->children : &tree->root;
  uint8_t kind = below ? below->kind : FILTER_NODE_AND;
  uint32_t node = f.children.last;
  if (f.level) r->depth--;
  if (f.kind == kind) {
    node_list_move(tree, to, f.children);
    return LODE_OK;
  }
  if (f.children.count == 0) { /* "and" of nothing is true, "or" of nothing is false */
    TRY(parse_add_test_node(r, (filter_test){.kind = FILTER_TEST_TRUE, .negated = f.kind == FILTER_NODE_OR}, &node));
  } else if (f.children.count > 1) {
    TRY(parse_add_node(r, (filter_node){.kind = f.kind, .children = f.children}, &node));
  }
  if (is_neutral(tree, node, kind)) return LODE_OK;
  if (tree->nodes[node].kind == kind) {
    node_list_move(tree, to, tree->nodes[node].children);
    tree->nodes[node].children = (filter_node_list){0};
  } else {
    node_list_append(tree, to, node);
  }
  return LODE_OK;
}

/* ---- Tests on metadata ---- */

static const char *parse_type_name(json_node_type type) {
  switch (type) {
    case JSON_NODE_NULL: return "null";
    case JSON_NODE_FALSE:
    case JSON_NODE_TRUE: return "a boolean";
    case JSON_NODE_INT:
    case JSON_NODE_DOUBLE: return "a number";
    case JSON_NODE_STRING: return "a string";
    case JSON_NODE_ARRAY: return "an array";
    case JSON_NODE_OBJECT: break;
  }
  return "an object";
}

static lode_status fail_operand(parse_state *r, lode_str key, lode_str op, uint32_t node, const char *wants) {
  char shown_key[256], shown_op[256];
  return err_set(r->err, LODE_INVALID, "the filter on the key %s gives %s %s; it takes %s",
                 str_quote(key, shown_key, sizeof shown_key), str_quote(op, shown_op, sizeof shown_op),
                 parse_type_name(r->json.nodes[node].type), wants);
}

/* Copies the scalar at the node into the filter's memory. */
static lode_status keep_value(parse_state *r, uint32_t node, meta_value *value, bool *scalar) {
  *scalar = meta_value_of(&r->json, node, value);
  if (*scalar && value->type == META_STRING) {
    value->s.data = mem_arena_copy(&r->filter->arena, value->s.data, value->s.len);
    if (!value->s.data) return err_nomem(r->err);
  }
  return LODE_OK;
}

static lode_status read_list_operand(parse_state *r, lode_str key, const operator_row *op, uint32_t node,
                                     filter_test *test) {
  const json_node *list = &r->json.nodes[node];
  if (list->type != JSON_NODE_ARRAY) return fail_operand(r, key, op->name, node, "an array of scalars");
  if (list->u.count == 0) {
    char shown[256];
    return err_set(r->err, LODE_INVALID,
                   "the filter on the key %s has %.*s with an empty list; name at least one value",
                   str_quote(key, shown, sizeof shown), (int)op->name.len, op->name.data);
  }
  TRY(count_clauses(r, list->u.count));
  meta_value *items = mem_arena_alloc(&r->filter->arena, list->u.count * sizeof *items);
  if (!items) return err_nomem(r->err);
  size_t n = 0;
  for (uint32_t e = node + 1; e < list->next; e = r->json.nodes[e].next) {
    bool scalar;
    TRY(keep_value(r, e, &items[n++], &scalar));
    if (!scalar) return fail_operand(r, key, op->name, e, "an array of strings, numbers or booleans");
  }
  test->u.values.items = items;
  test->u.values.count = n;
  return LODE_OK;
}

static lode_status read_scalar_operand(parse_state *r, lode_str key, const operator_row *op, uint32_t node,
                                       filter_test *test) {
  bool scalar;
  TRY(count_clauses(r, 1));
  meta_value *item = mem_arena_alloc(&r->filter->arena, sizeof *item);
  if (!item) return err_nomem(r->err);
  TRY(keep_value(r, node, item, &scalar));
  if (!scalar) return fail_operand(r, key, op->name, node, "a string, number or boolean");
  if (op->operand == OPERAND_ORDERED && item->type == META_BOOL) {
    return fail_operand(r, key, op->name, node, "a string or number");
  }
  test->u.values.items = item;
  test->u.values.count = 1;
  return LODE_OK;
}

static lode_status add_metadata_test(parse_state *r, lode_str key, const operator_row *op, uint32_t operand) {
  filter_test test = {.kind = op->kind, .negated = op->negated};
  TRY((op->operand == OPERAND_LIST ? read_list_operand : read_scalar_operand)(r, key, op, operand, &test));
  TRY(filter_add_key(r->filter, key, &test.key, r->err));
  return parse_add_test(r, test);
}

/* {"key": value} and {"key": {"$op": operand, ...}} */
static lode_status read_condition(parse_state *r, lode_str key, uint32_t node) {
  const json_node *nodes = r->json.nodes;
  char shown_key[256], shown_op[256];
  if (nodes[node].type != JSON_NODE_OBJECT) return add_metadata_test(r, key, &metadata_operators[0], node);
  if (nodes[node].u.count == 0) {
    return err_set(r->err, LODE_INVALID, "the filter on the key %s is empty; give a value or an operator: {\"$eq\": 1}",
                   str_quote(key, shown_key, sizeof shown_key));
  }
  for (uint32_t k = node + 1; k < nodes[node].next; k = nodes[k + 1].next) {
    const operator_row *op = find_operator(metadata_operators, OPERATOR_COUNT(metadata_operators), nodes[k].u.s);
    if (!op) {
      return err_set(r->err, LODE_INVALID,
                     "the filter on the key %s has the unknown operator %s; known are $eq $ne $gt $gte $lt $lte $in "
                     "$nin $contains $not_contains",
                     str_quote(key, shown_key, sizeof shown_key), str_quote(nodes[k].u.s, shown_op, sizeof shown_op));
    }
    TRY(add_metadata_test(r, key, op, k + 1));
  }
  return LODE_OK;
}

/* ---- Tests on documents ---- */

static lode_status keep_regex(parse_state *r, lode_str pattern, const regex_pattern **regex) {
  filter_expr *f = r->filter;
  if (f->n_regexes == FILTER_MAX_REGEXES) {
    return err_set(r->err, LODE_LIMIT, "the filter has more than %d regular expressions: write several as one, a|b",
                   FILTER_MAX_REGEXES);
  }
  if (!mem_grow(&f->regexes, &f->regexes_cap, f->n_regexes + 1, sizeof *f->regexes)) return err_nomem(r->err);
  TRY(regex_new(pattern, &f->regexes[f->n_regexes], r->err));
  *regex = f->regexes[f->n_regexes++];
  return LODE_OK;
}

static lode_status read_document_pair(parse_state *r, lode_str key, uint32_t node) {
  const operator_row *op = find_operator(document_operators, OPERATOR_COUNT(document_operators), key);
  char shown[256];
  if (!op) {
    return err_set(r->err, LODE_INVALID,
                   "the document filter has the unknown operator %s; known are $contains $not_contains $regex "
                   "$not_regex $and $or $not",
                   str_quote(key, shown, sizeof shown));
  }
  if (r->json.nodes[node].type != JSON_NODE_STRING) {
    return err_set(r->err, LODE_INVALID, "the document filter gives %.*s %s; it takes a string", (int)key.len, key.data,
                   parse_type_name(r->json.nodes[node].type));
  }
  TRY(count_clauses(r, 1));
  lode_str text = r->json.nodes[node].u.s;
  filter_test test = {.kind = op->kind, .negated = op->negated};
  if (op->kind == FILTER_TEST_REGEX) {
    TRY(keep_regex(r, text, &test.u.regex));
  } else {
    test.u.text = (lode_str){mem_arena_copy(&r->filter->arena, text.data, text.len), text.len};
    if (!test.u.text.data) return err_nomem(r->err);
  }
  return parse_add_test(r, test);
}

/* ---- Logic ---- */

/* {"$and": [..]} and {"$or": [..]} */
static lode_status read_list(parse_state *r, const parse_frame *f, lode_str op, uint32_t node) {
  const json_node *list = &r->json.nodes[node];
  if (list->type != JSON_NODE_ARRAY || list->u.count == 0) {
    return err_set(r->err, LODE_INVALID, "the filter gives %.*s %s; it takes a list of at least one filter",
                   (int)op.len, op.data, list->type == JSON_NODE_ARRAY ? "an empty list" : parse_type_name(list->type));
  }
  bool is_and = str_eq(op, STR_LIT("$and"));
  return parse_push(r, (parse_frame){.at = node + 1,
                                     .end = list->next,
                                     .document = f->document,
                                     .negate = f->negate,
                                     .level = true,
                                     .kind = is_and != f->negate ? FILTER_NODE_AND : FILTER_NODE_OR});
}

static lode_status read_not(parse_state *r, const parse_frame *f, uint32_t node) {
  if (r->json.nodes[node].type != JSON_NODE_OBJECT) {
    return err_set(r->err, LODE_INVALID, "the filter gives $not %s; it takes one filter, an object",
                   parse_type_name(r->json.nodes[node].type));
  }
  return parse_push_object(r, node, f->document, !f->negate, true);
}

static lode_status read_pair(parse_state *r, parse_frame f, lode_str key, uint32_t node) {
  char shown[256];
  if (str_eq(key, STR_LIT("$and")) || str_eq(key, STR_LIT("$or"))) return read_list(r, &f, key, node);
  if (str_eq(key, STR_LIT("$not"))) return read_not(r, &f, node);
  if (f.document) return read_document_pair(r, key, node);
  if (str_eq(key, STR_LIT("#document"))) {
    if (r->json.nodes[node].type == JSON_NODE_OBJECT) return parse_push_object(r, node, true, f.negate, false);
    return err_set(r->err, LODE_INVALID,
                   "the filter gives #document %s; it takes a document filter as in {\"$contains\": \"text\"}",
                   parse_type_name(r->json.nodes[node].type));
  }
  if (key.len && key.data[0] == '$') {
    return err_set(r->err, LODE_INVALID,
                   "the filter has %s where a key, $and, $or or $not is expected; operators stand below a key: "
                   "{\"key\": {\"$eq\": 1}}",
                   str_quote(key, shown, sizeof shown));
  }
  return read_condition(r, key, node);
}

/* Reads the next child of the top frame. */
static lode_status parse_step(parse_state *r) {
  parse_frame *f = &r->frames[r->n_frames - 1];
  const json_node *nodes = r->json.nodes;
  uint32_t at = f->at;
  if (f->object) {
    f->at = nodes[at + 1].next;
    return read_pair(r, *f, nodes[at].u.s, at + 1);
  }
  f->at = nodes[at].next;
  if (nodes[at].type != JSON_NODE_OBJECT) {
    return err_set(r->err, LODE_INVALID, "the filter has %s in the list of $and or $or; it takes filters (objects)",
                   parse_type_name(nodes[at].type));
  }
  return parse_push_object(r, at, f->document, f->negate, false);
}

static lode_status parse_text(parse_state *r, lode_str text, bool document) {
  const char *name = document ? "document filter" : "filter";
  const json_limits limits = {.max_nodes = FILTER_MAX_JSON_NODES, .max_depth = 2 * (size_t)LODE_MAX_FILTER_DEPTH + 8};
  lode_error why;
  if (text.len > LODE_MAX_FILTER_BYTES) {
    return err_set(r->err, LODE_LIMIT, "the %s is %zu bytes long, the limit is %u: ask in several parts", name,
                   text.len, LODE_MAX_FILTER_BYTES);
  }
  lode_status st = json_parse(&r->json, text, &limits, &why);
  if (st == LODE_NOMEM) return err_nomem(r->err);
  if (st != LODE_OK) return err_set(r->err, st, "the %s is not usable: %s", name, why.text);
  if (r->json.nodes[0].type != JSON_NODE_OBJECT) {
    return err_set(r->err, LODE_INVALID, "the %s is %s; it must be an object", name,
                   parse_type_name(r->json.nodes[0].type));
  }
  TRY(parse_push_object(r, 0, document, false, false));
  while (r->n_frames) {
    const parse_frame *f = &r->frames[r->n_frames - 1];
    TRY(f->at < f->end ? parse_step(r) : parse_pop(r));
  }
  return LODE_OK;
}

lode_status filter_read(filter_expr *filter, filter_tree *tree, lode_str text, bool document, lode_error *err) {
  parse_state r = {.filter = filter, .tree = tree, .err = err};
  lode_status st = parse_text(&r, text, document);
  json_release(&r.json);
  mem_free(r.frames);
  return st;
}
