/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_filter.c - filters (random ones, their JSON, what they match), selections, facets; see oracle.h. */
#include "support/oracle.h"

#include "base/json.h"
#include "support/test.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* mean the same to POSIX and to PCRE2 */
static const char *const patterns[] = {"alpha|beta",        "w[0-9]+", "^alpha",    "[A-Z][a-z]+Name",
                                       "get_(user|group)_", "c$",      "(the )+of", "^$"};

static size_t pick(size_t n) { return (size_t)test_below(n); }

/* ---- Values ---- */

static bool is_number(const meta_value *v) { return v->type == META_INT || v->type == META_DOUBLE; }

/* long double holds every int64 and every double as it is, on each CPU that we know. */
static long double number(const meta_value *v) { return v->type == META_INT ? (long double)v->i : (long double)v->d; }

int oracle_compare(const meta_value *a, const meta_value *b) {
  if (is_number(a) && is_number(b)) return (number(a) > number(b)) - (number(a) < number(b));
  if (a->type != b->type) return ORACLE_UNORDERED;
  if (a->type == META_BOOL) return (a->i > b->i) - (a->i < b->i);
  size_t n = a->s.len < b->s.len ? a->s.len : b->s.len;
  int c = n ? memcmp(a->s.data, b->s.data, n) : 0;
  if (c == 0) return (a->s.len > b->s.len) - (a->s.len < b->s.len);
  return c > 0 ? 1 : -1;
}

static int compare(int a, int b) {
  meta_value x = oracle_value(a), y = oracle_value(b);
  return oracle_compare(&x, &y);
}

static void put_value(strbuf *buf, int v) {
  meta_value value = oracle_value(v);
  meta_value_put(buf, &value);
}

/* ---- Filters ---- */

static int16_t new_node(oracle_filter *f, oracle_op op) {
  CHECK((size_t)f->n < COUNT(f->node));
  f->node[f->n] = (oracle_node){.op = op, .kid = {-1, -1, -1}};
  return f->n++;
}

/* An operand: mostly of the type that the key's values mostly have. Booleans have no order. */
static uint16_t random_operand(int key, bool ordered) {
  static const uint8_t from[] = {0, ORACLE_NUMBERS, ORACLE_NUMBERS + ORACLE_STRINGS};
  static const uint8_t n[] = {ORACLE_NUMBERS, ORACLE_STRINGS, 2};
  size_t kind = pick(6) ? (size_t)key % 3 : pick(3);
  if (ordered && kind == 2) kind = pick(2);
  return (uint16_t)(from[kind] + pick(n[kind]));
}

static int16_t random_condition(oracle_filter *f, int key) {
  static const oracle_op ops[] = {ORACLE_EQ,  ORACLE_EQ, ORACLE_NE,  ORACLE_GT,  ORACLE_GTE,    ORACLE_LT,
                                  ORACLE_LTE, ORACLE_IN, ORACLE_NIN, ORACLE_HAS, ORACLE_HAS_NOT};
  int16_t at = new_node(f, ops[pick(COUNT(ops))]);
  oracle_node *node = &f->node[at];
  node->key = (uint8_t)key;
  node->flat = pick(2);
  node->n = (uint8_t)(node->op == ORACLE_IN || node->op == ORACLE_NIN ? 1 + pick(COUNT(node->v)) : 1);
  for (int i = 0; i < node->n; i++) node->v[i] = random_operand(key, node->op >= ORACLE_GT && node->op <= ORACLE_LTE);
  return at;
}

static int16_t random_leaf(oracle_filter *f) {
  int key = (int)pick(ORACLE_OWNER);
  size_t what = pick(13);
  if (what == 0) return new_node(f, ORACLE_TRUE);
  if (what > 2) return random_condition(f, key);
  int16_t at = new_node(f, ORACLE_BOTH);
  f->node[at].key = (uint8_t)key;
  for (int i = 0; i < 2; i++) {
    int16_t kid = random_condition(f, key);
    f->node[at].kid[i] = kid;
  }
  return at;
}

static int16_t random_document_leaf(oracle_filter *f) {
  static const oracle_op ops[] = {ORACLE_TEXT, ORACLE_TEXT, ORACLE_NO_TEXT, ORACLE_REGEX, ORACLE_NO_REGEX};
  int16_t at = new_node(f, ops[pick(COUNT(ops))]);
  oracle_node *node = &f->node[at];
  node->v[0] = (uint16_t)pick(node->op >= ORACLE_REGEX ? COUNT(patterns) : ORACLE_WORDS);
  return at;
}

static int16_t random_tree(oracle_filter *f, bool document, unsigned depth) {
  size_t what = depth == 0 ? 9 : pick(10);
  if (what == 0 && !document) {
    int16_t at = new_node(f, ORACLE_DOCUMENT), kid = random_tree(f, true, depth - 1);
    f->node[at].kid[0] = kid;
    return at;
  }
  if (what > 5 || f->n > 40) return document ? random_document_leaf(f) : random_leaf(f);
  int16_t at = new_node(f, what == 1 ? ORACLE_NOT : what < 4 ? ORACLE_AND : ORACLE_OR);
  f->node[at].flat = pick(2);
  for (size_t i = 0, n = what == 1 ? 1 : 1 + pick(3); i < n; i++) {
    int16_t kid = random_tree(f, document, depth - 1);
    f->node[at].kid[i] = kid;
  }
  return at;
}

static void put_node(strbuf *buf, const oracle_filter *f, int16_t at, bool braces);

static void put_list(strbuf *buf, const oracle_filter *f, const oracle_node *node) {
  strbuf_addstr(buf, node->op == ORACLE_AND ? "\"$and\":[" : "\"$or\":[");
  for (int i = 0; i < 3 && node->kid[i] >= 0; i++) {
    if (i) strbuf_addch(buf, ',');
    put_node(buf, f, node->kid[i], true);
  }
  strbuf_addch(buf, ']');
}

/* "$op":operand */
static void put_condition(strbuf *buf, const oracle_node *node) {
  static const char *const names[] = {[ORACLE_EQ] = "$eq",        [ORACLE_NE] = "$ne",
                                      [ORACLE_GT] = "$gt",        [ORACLE_GTE] = "$gte",
                                      [ORACLE_LT] = "$lt",        [ORACLE_LTE] = "$lte",
                                      [ORACLE_IN] = "$in",        [ORACLE_NIN] = "$nin",
                                      [ORACLE_HAS] = "$contains", [ORACLE_HAS_NOT] = "$not_contains"};
  bool list = node->op == ORACLE_IN || node->op == ORACLE_NIN;
  strbuf_addf(buf, "\"%s\":%s", names[node->op], list ? "[" : "");
  for (int i = 0; i < node->n; i++) {
    if (i) strbuf_addch(buf, ',');
    put_value(buf, node->v[i]);
  }
  if (list) strbuf_addch(buf, ']');
}

/* "key":operand, or "key":{"$op":operand} with one or two operators */
static void put_leaf(strbuf *buf, const oracle_filter *f, const oracle_node *node) {
  json_put_string(buf, oracle_key(node->key));
  strbuf_addch(buf, ':');
  if (node->op == ORACLE_EQ && node->flat) {
    put_value(buf, node->v[0]);
    return;
  }
  strbuf_addch(buf, '{');
  if (node->op == ORACLE_BOTH) {
    put_condition(buf, &f->node[node->kid[0]]);
    strbuf_addch(buf, ',');
    put_condition(buf, &f->node[node->kid[1]]);
  } else {
    put_condition(buf, node);
  }
  strbuf_addch(buf, '}');
}

static void put_document_leaf(strbuf *buf, const oracle_node *node) {
  static const char *const names[] = {[ORACLE_TEXT] = "$contains",
                                      [ORACLE_NO_TEXT] = "$not_contains",
                                      [ORACLE_REGEX] = "$regex",
                                      [ORACLE_NO_REGEX] = "$not_regex"};
  strbuf_addf(buf, "\"%s\":", names[node->op]);
  json_put_string(buf, node->op >= ORACLE_REGEX ? str_of(patterns[node->v[0]]) : oracle_word(node->v[0]));
}

static void put_node(strbuf *buf, const oracle_filter *f, int16_t at, bool braces) {
  const oracle_node *node = &f->node[at];
  if (braces) strbuf_addch(buf, '{');
  if (node->op == ORACLE_AND && node->flat) {
    for (int i = 0; i < 3 && node->kid[i] >= 0; i++) {
      if (i) strbuf_addch(buf, ',');
      put_node(buf, f, node->kid[i], false);
    }
  } else if (node->op == ORACLE_AND || node->op == ORACLE_OR) {
    put_list(buf, f, node);
  } else if (node->op == ORACLE_NOT || node->op == ORACLE_DOCUMENT) {
    strbuf_addstr(buf, node->op == ORACLE_NOT ? "\"$not\":" : "\"#document\":");
    put_node(buf, f, node->kid[0], true);
  } else if (node->op > ORACLE_DOCUMENT) {
    put_document_leaf(buf, node);
  } else if (node->op != ORACLE_TRUE) {
    put_leaf(buf, f, node);
  }
  if (braces) strbuf_addch(buf, '}');
}

/* Members of one object must not be empty, nor objects themselves. */
static void tidy(oracle_filter *f) {
  for (int i = 0; i < f->n; i++) {
    oracle_node *node = &f->node[i];
    if (node->op != ORACLE_AND || !node->flat) continue;
    for (int k = 0; k < 3 && node->kid[k] >= 0; k++) {
      oracle_op op = f->node[node->kid[k]].op;
      if (op == ORACLE_TRUE || op == ORACLE_AND) node->flat = false;
    }
  }
}

static void write_filter(oracle_filter *f) {
  tidy(f);
  f->text.len = 0;
  put_node(&f->text, f, f->root, true);
  CHECK(!f->text.failed);
}

static int16_t leaf_node(oracle_filter *f, int key, oracle_op op, int value) {
  int16_t at = new_node(f, op);
  f->node[at].key = (uint8_t)key;
  f->node[at].n = 1;
  f->node[at].v[0] = (uint16_t)value;
  return at;
}

void oracle_leaf_filter(oracle_filter *f, int key, oracle_op op, int value) {
  f->n = 0;
  f->root = leaf_node(f, key, op, value);
  write_filter(f);
}

void oracle_random_filter(oracle_filter *f, bool document, int owner) {
  f->n = 0;
  f->root = random_tree(f, document, (unsigned)pick(4));
  if (owner >= 0 && !document) {
    int16_t both = new_node(f, ORACLE_AND), mine = leaf_node(f, ORACLE_OWNER, ORACLE_EQ, owner);
    bool first = pick(2);
    f->node[both].kid[0] = first ? mine : f->root;
    f->node[both].kid[1] = first ? f->root : mine;
    f->root = both;
  }
  write_filter(f);
}

void oracle_filter_release(oracle_filter *f) {
  strbuf_release(&f->text);
  f->n = 0;
}

/* ---- Evaluation ---- */

static const oracle_field *field_of(const oracle_record *r, int key) {
  for (int i = 0; r->has_meta && i < r->meta.n; i++)
    if (r->meta.f[i].key == key) return &r->meta.f[i];
  return NULL;
}

static bool is_one_of(const oracle_node *node, int v) {
  for (int i = 0; i < node->n; i++)
    if (compare(v, node->v[i]) == 0) return true;
  return false;
}

static bool has_one_of(const oracle_node *node, const oracle_field *f) {
  for (int e = 0; f && f->array && e < f->n; e++)
    if (is_one_of(node, f->v[e])) return true;
  return false;
}

static bool is_in_order(oracle_op op, int v, int bound) {
  int c = compare(v, bound);
  if (c == ORACLE_UNORDERED) return false;
  return op == ORACLE_GT ? c > 0 : op == ORACLE_GTE ? c >= 0 : op == ORACLE_LT ? c < 0 : c <= 0;
}

static bool has_text(const oracle_record *r, lode_str text) {
  if (!r->has_document) return false;
  return memmem(r->document, r->document_len, text.data, text.len) != NULL;
}

static bool has_pattern(const oracle_record *r, int which) {
  static regex_t compiled[COUNT(patterns)];
  static bool ready[COUNT(patterns)];
  if (!r->has_document) return false;
  if (!ready[which]) CHECK(regcomp(&compiled[which], patterns[which], REG_EXTENDED) == 0);
  ready[which] = true;
  regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)r->document_len};
  return regexec(&compiled[which], r->document, 1, &m, REG_STARTEND) == 0;
}

static bool match_node(const oracle_filter *f, int16_t at, const oracle_record *r) {
  const oracle_node *node = &f->node[at];
  const oracle_field *field = field_of(r, node->key);
  int scalar = field && !field->array ? field->v[0] : -1;
  switch (node->op) {
    case ORACLE_TRUE: return true;
    case ORACLE_AND:
    case ORACLE_OR:
    case ORACLE_BOTH:
      for (int i = 0; i < 3 && node->kid[i] >= 0; i++)
        if (match_node(f, node->kid[i], r) == (node->op == ORACLE_OR)) return node->op == ORACLE_OR;
      return node->op != ORACLE_OR;
    case ORACLE_NOT: return !match_node(f, node->kid[0], r);
    case ORACLE_DOCUMENT: return match_node(f, node->kid[0], r);
    case ORACLE_EQ:
    case ORACLE_IN: return scalar >= 0 && is_one_of(node, scalar);
    case ORACLE_NE:
    case ORACLE_NIN: return scalar < 0 || !is_one_of(node, scalar);
    case ORACLE_GT:
    case ORACLE_GTE:
    case ORACLE_LT:
    case ORACLE_LTE: return scalar >= 0 && is_in_order(node->op, scalar, node->v[0]);
    case ORACLE_HAS: return has_one_of(node, field);
    case ORACLE_HAS_NOT: return !has_one_of(node, field);
    case ORACLE_TEXT: return has_text(r, oracle_word(node->v[0]));
    case ORACLE_NO_TEXT: return !has_text(r, oracle_word(node->v[0]));
    case ORACLE_REGEX: return has_pattern(r, node->v[0]);
    case ORACLE_NO_REGEX: return !has_pattern(r, node->v[0]);
  }
  return false;
}

bool oracle_match(const oracle_filter *f, const oracle_record *r) { return !f || match_node(f, f->root, r); }

/* ---- Selections ---- */

bool oracle_selected(const oracle_selection *s, const oracle_record *r) {
  if (!s) return true;
  bool named = !s->ids;
  for (size_t i = 0; i < s->n_ids && !named; i++) named = str_eq(s->ids[i], oracle_id(r));
  return named && oracle_match(s->where, r) && oracle_match(s->document, r);
}

static lode_str text_of(const oracle_filter *f) {
  return f ? (lode_str){f->text.data, f->text.len} : (lode_str){NULL, 0};
}

lode_selection oracle_request(const oracle_selection *s) {
  if (!s) return (lode_selection){0};
  return (lode_selection){
      .ids = s->ids, .n_ids = s->n_ids, .where = text_of(s->where), .where_document = text_of(s->document)};
}

/* ---- Facets ---- */

/* Booleans, then numbers, then strings. */
static int rank_of_type(int v) {
  meta_value value = oracle_value(v);
  return value.type == META_BOOL ? 0 : is_number(&value) ? 1 : 2;
}

static int compare_any(int a, int b) {
  int c = compare(a, b);
  return c == ORACLE_UNORDERED ? rank_of_type(a) - rank_of_type(b) : c;
}

static void count_facet(oracle_facet *facets, size_t *n, int v) {
  size_t i = 0;
  while (i < *n && compare(facets[i].value, v) != 0) i++;
  if (i == *n) facets[(*n)++] = (oracle_facet){.value = v};
  facets[i].count++;
}

static int most_first(const void *a, const void *b) {
  const oracle_facet *x = a, *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return compare_any(x->value, y->value);
}

size_t oracle_facets(const oracle_collection *c, int key, const oracle_filter *where, oracle_facet *facets) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) {
    const oracle_field *f = field_of(&c->r[i], key);
    if (!f || !oracle_match(where, &c->r[i])) continue;
    for (int e = 0; e < f->n; e++) {
      bool again = false;
      for (int before = 0; before < e; before++) again = again || compare(f->v[before], f->v[e]) == 0;
      if (!again) count_facet(facets, &n, f->v[e]);
    }
  }
  if (n) qsort(facets, n, sizeof *facets, most_first);
  return n;
}

/* Equal numbers are one value, written as an integer where they are one. */
void oracle_facet_text(const oracle_facet *facet, strbuf *buf) {
  meta_value v = oracle_value(facet->value);
  if (v.type == META_DOUBLE && v.d >= -0x1p63 && v.d < 0x1p63 && v.d == floor(v.d))
    json_put_int(buf, (int64_t)v.d);
  else
    meta_value_put(buf, &v);
}
