/* json.h - JSON text to a flat tree and back, without recursion.
 *
 * A document is an array of nodes in depth-first order. Node i of an array or object is followed by its
 * children; `next` is the index of the node behind its subtree, so siblings are a walk and skipping is free.
 * An object's children alternate: key (a string node), value. Integers that fit int64 stay exact integers;
 * other numbers are doubles; numbers out of double's range are refused. Strings are decoded (escapes resolved,
 * valid UTF-8, lone surrogates refused) and live in the document or in the source text, which must outlive
 * it. Duplicate keys: the parser keeps both; lode__json_get answers the last.
 */
#ifndef LODE_JSON_H
#define LODE_JSON_H

#include "base.h"

typedef enum lode__json_type {
  LODE__JSON_NULL, LODE__JSON_FALSE, LODE__JSON_TRUE, LODE__JSON_INT, LODE__JSON_DOUBLE,
  LODE__JSON_STRING, LODE__JSON_ARRAY, LODE__JSON_OBJECT,
} lode__json_type;

typedef struct lode__json_node {
  lode__json_type type;
  uint32_t next;   /* index behind this node's subtree */
  union {
    int64_t i;
    double d;
    lode_str s;    /* strings */
    size_t count;  /* arrays: elements; objects: pairs */
  } u;
} lode__json_node;

typedef struct lode__json {
  lode__json_node *nodes;
  uint32_t count;
  bool compact;    /* the text had no white space between tokens and no escapes: it can be kept as it is */
  /* re-used between parses with the same lode__json; lode__json_release frees them */
  size_t cap;
  lode__buf strings;
  uint32_t *stack;
  size_t stack_cap;
} lode__json;

typedef struct lode__json_limits {
  size_t max_nodes; /* 0 = 64 Mi */
  size_t max_depth; /* 0 = 1000 */
} lode__json_limits;

/* Parses one value that fills `text` but for white space. `json` must be zeroed before its first use and may be
 * used again: nodes and strings of the last parse are then gone. Errors are LODE_INVALID, LODE_LIMIT or LODE_NOMEM,
 * name the byte offset, and leave no nodes. "-0" is the integer 0. */
lode_status lode__json_parse(lode__json *json, lode_str text, const lode__json_limits *limits, lode_error *err);
void lode__json_release(lode__json *json);

/* Index of the value of `key` in the object at `object`, or 0 (never a value's index) when it has none. */
uint32_t lode__json_get(const lode__json *json, uint32_t object, lode_str key);

/* A number array to floats without making nodes; for vectors. Each is the float nearest to the decimal number (ties to
 * even), rounded once. Refuses NaN, infinities and overflow to them (LODE_INVALID), and more than max (LODE_LIMIT).
 * *dim = how many. */
lode_status lode__json_floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err);

/* Writers; they never fail but through the buffer, and do not depend on the locale. */
void lode__json_put_string(lode__buf *buf, lode_str s);   /* with quotes; invalid UTF-8 becomes U+FFFD */
/* Shortest that reads back the same, always with . or e; NaN and infinities as null. */
void lode__json_put_double(lode__buf *buf, double d);
void lode__json_put_float(lode__buf *buf, float f);
void lode__json_put_vector(lode__buf *buf, const float *v, size_t n); /* [1.0,0.5] */
void lode__json_put_int(lode__buf *buf, int64_t i);
void lode__json_put_node(lode__buf *buf, const lode__json *json, uint32_t node); /* compact, whole subtree */

#endif
