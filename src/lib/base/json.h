/* json.h - JSON text to a flat tree and back, without recursion.
 *
 * A document is an array of nodes in depth-first order. Node i of an array or object is followed by its
 * children; `next` is the index of the node behind its subtree, so siblings are a walk and skipping is free.
 * An object's children alternate: key (a string node), value. Integers that fit int64 stay exact integers;
 * other numbers are doubles; numbers out of double's range are refused. Strings are decoded (escapes resolved,
 * valid UTF-8, lone surrogates refused) and live in the document or in the source text, which must outlive
 * it. Duplicate keys: the parser keeps both; json_get answers the last.
 */
#ifndef LODE_BASE_JSON_H
#define LODE_BASE_JSON_H

#include "base/base.h"

typedef enum json_node_type {
  JSON_NODE_NULL, JSON_NODE_FALSE, JSON_NODE_TRUE, JSON_NODE_INT, JSON_NODE_DOUBLE,
  JSON_NODE_STRING, JSON_NODE_ARRAY, JSON_NODE_OBJECT,
} json_node_type;

typedef struct json_node {
  json_node_type type;
  uint32_t next;   /* index behind this node's subtree */
  union {
    int64_t i;
    double d;
    lode_str s;    /* strings */
    size_t count;  /* arrays: elements; objects: pairs */
  } u;
} json_node;

typedef struct json_doc {
  json_node *nodes;
  uint32_t count;
  bool compact;    /* the text had no white space between tokens and no escapes: it can be kept as it is */
  /* re-used between parses with the same json_doc; json_release frees them */
  size_t cap;
  strbuf strings;
  uint32_t *stack;
  size_t stack_cap;
} json_doc;

typedef struct json_limits {
  size_t max_nodes; /* 0 = 64 Mi */
  size_t max_depth; /* 0 = 1000 */
} json_limits;

/* Parses one value that fills `text` but for white space. `json` must be zeroed before its first use and may be
 * used again: nodes and strings of the last parse are then gone. Errors are LODE_INVALID, LODE_LIMIT or LODE_NOMEM,
 * name the byte offset, and leave no nodes. "-0" is the integer 0. */
lode_status json_parse(json_doc *json, lode_str text, const json_limits *limits, lode_error *err);
void json_release(json_doc *json);

/* Index of the value of `key` in the object at `object`, or 0 (never a value's index) when it has none. */
uint32_t json_get(const json_doc *json, uint32_t object, lode_str key);

/* A number array to floats without making nodes; for vectors. Each is the float nearest to the decimal number (ties to
 * even), rounded once. Refuses NaN, infinities and overflow to them (LODE_INVALID), and more than max (LODE_LIMIT).
 * *dim = how many. */
lode_status json_parse_floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err);

/* Writers; they never fail but through the buffer, and do not depend on the locale. */
void json_put_string(strbuf *buf, lode_str s);   /* with quotes; invalid UTF-8 becomes U+FFFD */
/* Shortest that reads back the same, always with . or e; NaN and infinities as null. */
void json_put_double(strbuf *buf, double d);
void json_put_float(strbuf *buf, float f);
void json_put_vector(strbuf *buf, const float *v, size_t n); /* [1.0,0.5] */
void json_put_int(strbuf *buf, int64_t i);
void json_put_node(strbuf *buf, const json_doc *json, uint32_t node); /* compact, whole subtree */

#endif
