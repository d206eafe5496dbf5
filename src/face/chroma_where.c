/* chroma_where.c - filters as Chroma takes them: stricter than ours (one key in an object, one kind in a list), so that what
 * its server refuses is refused here too. What passes means the same to lode, and goes on as text.
 *
 * Objects that are still to be looked at wait on a list: nesting costs no stack.
 */
#include "chroma.h"

typedef struct check {
  lode__chroma *c;
  uint32_t *todo;
  size_t n, cap;
} check;

static bool no(lode__chroma *c, const char *why) { return lode__chroma_invalid(c, "Invalid where clause: %s", why); }

static bool unknown(lode__chroma *c, lode_str op) {
  char quoted[256];
  return lode__chroma_invalid(c, "Invalid where clause: unknown operator %s", str_quote(op, quoted, sizeof quoted));
}

static bool is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

typedef enum kind { NOTHING, TEXT, NUMBER, BOOLEAN } kind;

static kind kind_of(const json_node *x) {
  switch (x->type) {
    case JSON_NODE_STRING: return TEXT;
    case JSON_NODE_INT:
    case JSON_NODE_DOUBLE: return NUMBER;
    case JSON_NODE_TRUE:
    case JSON_NODE_FALSE: return BOOLEAN;
    default: return NOTHING;
  }
}

static bool check_list(check *k, uint32_t node) {
  const json_node *list = lode__chroma_node(k->c, node);
  kind first = NOTHING;
  if (list->type != JSON_NODE_ARRAY || list->u.count == 0) return no(k->c, "$in and $nin take a list that is not empty");
  for (uint32_t i = node + 1; i < list->next; i = lode__chroma_node(k->c, i)->next) {
    kind this = kind_of(lode__chroma_node(k->c, i));
    if (this == NOTHING || (first && this != first)) return no(k->c, "a list holds strings, numbers or booleans, all of one kind");
    first = this;
  }
  return true;
}

static bool check_operator(check *k, lode_str op, uint32_t operand, bool document) {
  kind of = kind_of(lode__chroma_node(k->c, operand));
  if (document) {
    if (!is(op, "$contains") && !is(op, "$not_contains") && !is(op, "$regex") && !is(op, "$not_regex"))
      return unknown(k->c, op);
    return of == TEXT || no(k->c, "documents are compared with strings");
  }
  if (is(op, "$in") || is(op, "$nin")) return check_list(k, operand);
  if (is(op, "$eq") || is(op, "$ne") || is(op, "$contains") || is(op, "$not_contains"))
    return of != NOTHING || no(k->c, "the operand must be a string, a number or a boolean");
  if (is(op, "$gt") || is(op, "$gte") || is(op, "$lt") || is(op, "$lte")) return of == NUMBER || no(k->c, "the operand must be a number");
  return unknown(k->c, op);
}

static bool push_all(check *k, uint32_t node) {
  const json_node *list = lode__chroma_node(k->c, node);
  if (list->type != JSON_NODE_ARRAY || list->u.count == 0) return no(k->c, "$and and $or take a list that is not empty");
  if (!mem_grow(&k->todo, &k->cap, k->n + list->u.count, sizeof *k->todo)) return lode__chroma_failed(k->c, err_nomem(&k->c->err));
  for (uint32_t i = node + 1; i < list->next; i = lode__chroma_node(k->c, i)->next) k->todo[k->n++] = i;
  return true;
}

static bool check_object(check *k, uint32_t node, bool document) {
  const json_node *x = lode__chroma_node(k->c, node);
  if (x->type != JSON_NODE_OBJECT || x->u.count != 1) return no(k->c, "each object has exactly one key");
  lode_str key = lode__chroma_node(k->c, node + 1)->u.s;
  uint32_t value = node + 2;
  if (is(key, "$and") || is(key, "$or")) return push_all(k, value);
  if (document) return check_operator(k, key, value, true);
  if (key.len && key.data[0] == '$') return unknown(k->c, key);
  x = lode__chroma_node(k->c, value);
  if (kind_of(x) != NOTHING) return !is(key, "#document") || no(k->c, "#document takes an operator");
  if (x->type != JSON_NODE_OBJECT || x->u.count != 1) return no(k->c, "a key takes a value, or an object with one operator");
  return check_operator(k, lode__chroma_node(k->c, value + 1)->u.s, value + 2, is(key, "#document"));
}

bool lode__chroma_where(lode__chroma *c, uint32_t node, bool on_document, lode_str *text) {
  check k = {.c = c};
  bool ok = check_object(&k, node, on_document);
  while (ok && k.n) ok = check_object(&k, k.todo[--k.n], on_document);
  mem_free(k.todo);
  if (!ok) return false;
  *text = lode__chroma_subtree(c, node);
  return text->data || lode__chroma_failed(c, err_nomem(&c->err));
}
