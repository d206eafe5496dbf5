/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON text to a flat tree and back, without recursion.
 *
 * A document is an array of nodes in depth-first order. A node that is an array or object is followed by its children;
 * `next` is the index of the node after its subtree, so siblings are a loop and skipping is free. An object's children
 * alternate: key (a string node), value. Integers that fit int64 stay exact; other numbers are doubles; numbers out of
 * double's range are refused. Strings are decoded (escapes resolved, valid UTF-8, lone surrogates refused) and point
 * into the document or into the source text, which must outlive it. Duplicate keys: the parser keeps all of them;
 * json_get() returns the last.
 */
#ifndef LODE_BASE_JSON_H
#define LODE_BASE_JSON_H

#include "base/base.h"

typedef enum json_node_type {
  JSON_NODE_NULL,
  JSON_NODE_FALSE,
  JSON_NODE_TRUE,
  JSON_NODE_INT,
  JSON_NODE_DOUBLE,
  JSON_NODE_STRING,
  JSON_NODE_ARRAY,
  JSON_NODE_OBJECT,
} json_node_type;

typedef struct json_node {
  json_node_type type;
  uint32_t next; /* index of the node after this one's subtree */
  union {
    int64_t i;
    double d;
    lode_str s;   /* strings */
    size_t count; /* arrays: elements; objects: pairs */
  } u;
} json_node;

typedef struct json_doc {
  json_node *nodes;
  uint32_t count;
  bool compact; /* the text had no white space between tokens and no escapes: it can be kept as it is */
  /* reused by later parses with the same json_doc; json_release() frees them */
  size_t cap;
  strbuf strings;
  uint32_t *stack;
  size_t stack_cap;
} json_doc;

typedef struct json_limits {
  size_t max_nodes; /* 0 = 64 Mi */
  size_t max_depth; /* 0 = 1000 */
} json_limits;

/* Parses one value that fills `text`, apart from white space. `json` must be zeroed before its first use and can be
 * reused: the nodes and strings of the previous parse are then gone. Errors are LODE_INVALID, LODE_LIMIT or LODE_NOMEM,
 * name the byte offset, and leave no nodes. "-0" is the integer 0. */
LODE_MUST lode_status json_parse(json_doc *json, lode_str text, const json_limits *limits, lode_error *err);
void json_release(json_doc *json);

/* Index of the value of `key` in the object at `object`, or 0 (never a value's index) if there is none. */
uint32_t json_get(const json_doc *json, uint32_t object, lode_str key);

/* Parses an array of numbers into floats without creating nodes; for vectors. Each is the float nearest to the decimal
 * number (ties to even), rounded once. Refuses NaN, infinities and overflow to them (LODE_INVALID), and more than max
 * numbers (LODE_LIMIT). *dim is the count. */
LODE_MUST lode_status json_parse_floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err);

/* Writers; they fail only through the buffer, and do not depend on the locale. */
void json_put_string(strbuf *buf, lode_str s); /* with quotes; invalid UTF-8 becomes U+FFFD */
/* The shortest text that reads back the same, always with . or e; NaN and infinities become null. */
void json_put_double(strbuf *buf, double d);
void json_put_float(strbuf *buf, float f);
void json_put_vector(strbuf *buf, const float *v, size_t n); /* [1.0,0.5] */
void json_put_int(strbuf *buf, int64_t i);
void json_put_node(strbuf *buf, const json_doc *json, uint32_t node); /* compact, whole subtree */

#endif
