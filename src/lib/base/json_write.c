/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.c - appends values as JSON text to a buffer.
 *
 * The output is always valid JSON in valid UTF-8: each byte that is not UTF-8 becomes U+FFFD, numbers that JSON lacks
 * become null. A subtree is written in one pass over its nodes with a stack of open containers, without recursion.
 */
#include "base/json.h"

#include <math.h>

#include "base/number.h"

static void put_escape(strbuf *buf, unsigned char c) {
  switch (c) {
    case '"': strbuf_add(buf, "\\\"", 2); break;
    case '\\': strbuf_add(buf, "\\\\", 2); break;
    case '\b': strbuf_add(buf, "\\b", 2); break;
    case '\f': strbuf_add(buf, "\\f", 2); break;
    case '\n': strbuf_add(buf, "\\n", 2); break;
    case '\r': strbuf_add(buf, "\\r", 2); break;
    case '\t': strbuf_add(buf, "\\t", 2); break;
    default: {
      static const char hex[] = "0123456789abcdef";
      char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      strbuf_add(buf, text, sizeof text);
    }
  }
}

void json_put_string(strbuf *buf, lode_str s) {
  size_t run = 0, i = 0; /* bytes from run to i are copied unchanged */
  strbuf_addch(buf, '"');
  while (i < s.len) {
    unsigned char c = (unsigned char)s.data[i];
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      i++;
      continue;
    }
    size_t width = utf8_width(s.data + i, s.len - i);
    if (width > 1) {
      i += width;
      continue;
    }
    strbuf_add(buf, s.data + run, i - run);
    if (width == 0)
      strbuf_add(buf, "\xEF\xBF\xBD", 3);
    else
      put_escape(buf, c);
    run = ++i;
  }
  if (i > run) strbuf_add(buf, s.data + run, i - run);
  strbuf_addch(buf, '"');
}

void json_put_double(strbuf *buf, double d) {
  if (!isfinite(d)) {
    strbuf_add(buf, "null", 4);
    return;
  }
  char *at = strbuf_reserve(buf, NUM_MAX_BYTES);
  if (at) buf->len += num_put_double(d, at);
}

static inline size_t put_float(float f, char out[NUM_MAX_BYTES]) {
  if (isfinite(f)) return num_put_float(f, out);
  memcpy(out, "null", 4);
  return 4;
}

void json_put_float(strbuf *buf, float f) {
  char *at = strbuf_reserve(buf, NUM_MAX_BYTES);
  if (at) buf->len += put_float(f, at);
}

void json_put_vector(strbuf *buf, const float *v, size_t n) {
  enum { VECTOR_BATCH = 64 }; /* numbers per reservation of the buffer */
  strbuf_addch(buf, '[');
  for (size_t i = 0; i < n;) {
    char *begin = strbuf_reserve(buf, (size_t)VECTOR_BATCH * (NUM_MAX_BYTES + 1)), *at = begin;
    if (!at) return;
    for (size_t end = n - i < VECTOR_BATCH ? n : i + VECTOR_BATCH; i < end; i++) {
      if (i) *at++ = ',';
      at += put_float(v[i], at);
    }
    buf->len += (size_t)(at - begin);
  }
  strbuf_addch(buf, ']');
}

void json_put_int(strbuf *buf, int64_t i) {
  char text[24];
  char *end = text + sizeof text, *p = end;
  uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  do {
    *--p = (char)('0' + size % 10);
    size /= 10;
  } while (size);
  if (i < 0) *--p = '-';
  strbuf_add(buf, p, (size_t)(end - p));
}

static void put_scalar(strbuf *buf, const json_node *node) {
  switch (node->type) {
    case JSON_NODE_NULL: strbuf_add(buf, "null", 4); break;
    case JSON_NODE_FALSE: strbuf_add(buf, "false", 5); break;
    case JSON_NODE_TRUE: strbuf_add(buf, "true", 4); break;
    case JSON_NODE_INT: json_put_int(buf, node->u.i); break;
    case JSON_NODE_DOUBLE: json_put_double(buf, node->u.d); break;
    case JSON_NODE_STRING: json_put_string(buf, node->u.s); break;
    case JSON_NODE_ARRAY:
    case JSON_NODE_OBJECT: break;
  }
}

/* An open container, and how many of its children (counting keys) have been written. */
typedef struct json_level {
  uint32_t node;
  size_t children;
} json_level;

static void put_separator(strbuf *buf, const json_doc *json, json_level *in) {
  bool value = json->nodes[in->node].type == JSON_NODE_OBJECT && in->children % 2 == 1;
  if (value)
    strbuf_addch(buf, ':');
  else if (in->children > 0)
    strbuf_addch(buf, ',');
  in->children++;
}

void json_put_node(strbuf *buf, const json_doc *json, uint32_t node) {
  json_level *stack = NULL;
  size_t cap = 0, depth = 0;
  uint32_t i = node, end = json->nodes[node].next;
  while (i < end || depth > 0) {
    if (depth > 0 && json->nodes[stack[depth - 1].node].next == i) {
      strbuf_addch(buf, json->nodes[stack[--depth].node].type == JSON_NODE_OBJECT ? '}' : ']');
      continue;
    }
    const json_node *n = &json->nodes[i];
    if (depth > 0) put_separator(buf, json, &stack[depth - 1]);
    if (n->type == JSON_NODE_ARRAY || n->type == JSON_NODE_OBJECT) {
      if (!mem_grow(&stack, &cap, depth + 1, sizeof *stack)) {
        buf->failed = true;
        break;
      }
      strbuf_addch(buf, n->type == JSON_NODE_OBJECT ? '{' : '[');
      stack[depth++] = (json_level){i, 0};
    } else {
      put_scalar(buf, n);
    }
    i++;
  }
  mem_free(stack);
}
