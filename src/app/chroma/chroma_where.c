/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_where.c - checks filters as Chroma does: stricter than ours (one key per object, one type per list), so that
 * what its server refuses is refused here too. Valid filters mean the same to Lode, and are passed on as text.
 *
 * Objects still to be checked are kept in a list: nesting does not use the stack.
 */
#include "chroma/chroma.h"

typedef struct where_check {
  chroma_request *c;
  uint32_t *todo;
  size_t n, cap;
} where_check;

static bool where_invalid(chroma_request *c, const char *why) {
  return chroma_invalid(c, "Invalid where clause: %s", why);
}

static bool where_unknown_op(chroma_request *c, lode_str op) {
  char quoted[256];
  return chroma_invalid(c, "Invalid where clause: unknown operator %s", str_quote(op, quoted, sizeof quoted));
}

static bool where_is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

typedef enum where_kind { WHERE_NOTHING, WHERE_TEXT, WHERE_NUMBER, WHERE_BOOLEAN } where_kind;

static where_kind where_kind_of(const json_node *x) {
  switch (x->type) {
    case JSON_NODE_STRING: return WHERE_TEXT;
    case JSON_NODE_INT:
    case JSON_NODE_DOUBLE: return WHERE_NUMBER;
    case JSON_NODE_TRUE:
    case JSON_NODE_FALSE: return WHERE_BOOLEAN;
    default: return WHERE_NOTHING;
  }
}

static bool where_check_list(where_check *k, uint32_t node) {
  const json_node *list = chroma_body_node(k->c, node);
  where_kind first = WHERE_NOTHING;
  if (list->type != JSON_NODE_ARRAY || list->u.count == 0)
    return where_invalid(k->c, "$in and $nin take a list that is not empty");
  for (uint32_t i = node + 1; i < list->next; i = chroma_body_node(k->c, i)->next) {
    where_kind this = where_kind_of(chroma_body_node(k->c, i));
    if (this == WHERE_NOTHING || (first && this != first))
      return where_invalid(k->c, "a list holds strings, numbers or booleans, all of one kind");
    first = this;
  }
  return true;
}

static bool where_check_operator(where_check *k, lode_str op, uint32_t operand, bool document) {
  where_kind of = where_kind_of(chroma_body_node(k->c, operand));
  if (document) {
    if (!where_is(op, "$contains") && !where_is(op, "$not_contains") && !where_is(op, "$regex") &&
        !where_is(op, "$not_regex"))
      return where_unknown_op(k->c, op);
    return of == WHERE_TEXT || where_invalid(k->c, "documents are compared with strings");
  }
  if (where_is(op, "$in") || where_is(op, "$nin")) return where_check_list(k, operand);
  if (where_is(op, "$eq") || where_is(op, "$ne") || where_is(op, "$contains") || where_is(op, "$not_contains"))
    return of != WHERE_NOTHING || where_invalid(k->c, "the operand must be a string, a number or a boolean");
  if (where_is(op, "$gt") || where_is(op, "$gte") || where_is(op, "$lt") || where_is(op, "$lte"))
    return of == WHERE_NUMBER || where_invalid(k->c, "the operand must be a number");
  return where_unknown_op(k->c, op);
}

static bool where_push_all(where_check *k, uint32_t node) {
  const json_node *list = chroma_body_node(k->c, node);
  if (list->type != JSON_NODE_ARRAY || list->u.count == 0)
    return where_invalid(k->c, "$and and $or take a list that is not empty");
  if (!mem_grow(&k->todo, &k->cap, k->n + list->u.count, sizeof *k->todo))
    return chroma_respond_status(k->c, err_nomem(&k->c->err));
  for (uint32_t i = node + 1; i < list->next; i = chroma_body_node(k->c, i)->next) k->todo[k->n++] = i;
  return true;
}

static bool where_check_object(where_check *k, uint32_t node, bool document) {
  const json_node *x = chroma_body_node(k->c, node);
  if (x->type != JSON_NODE_OBJECT || x->u.count != 1) return where_invalid(k->c, "each object has exactly one key");
  lode_str key = chroma_body_node(k->c, node + 1)->u.s;
  uint32_t value = node + 2;
  if (where_is(key, "$and") || where_is(key, "$or")) return where_push_all(k, value);
  if (document) return where_check_operator(k, key, value, true);
  if (key.len && key.data[0] == '$') return where_unknown_op(k->c, key);
  x = chroma_body_node(k->c, value);
  if (where_kind_of(x) != WHERE_NOTHING)
    return !where_is(key, "#document") || where_invalid(k->c, "#document takes an operator");
  if (x->type != JSON_NODE_OBJECT || x->u.count != 1)
    return where_invalid(k->c, "a key takes a value, or an object with one operator");
  return where_check_operator(k, chroma_body_node(k->c, value + 1)->u.s, value + 2, where_is(key, "#document"));
}

bool chroma_body_where(chroma_request *c, uint32_t node, bool on_document, lode_str *text) {
  where_check k = {.c = c};
  bool ok = where_check_object(&k, node, on_document);
  while (ok && k.n) ok = where_check_object(&k, k.todo[--k.n], on_document);
  mem_free(k.todo);
  if (!ok) return false;
  *text = chroma_body_subtree(c, node);
  return text->data || chroma_respond_status(c, err_nomem(&c->err));
}
