/* json_write.c - values to JSON text, appended to a buffer.
 *
 * What is written is always valid JSON in valid UTF-8: bytes that are not UTF-8 become U+FFFD one by one, numbers that
 * JSON lacks become null. A subtree is written in one walk over its nodes with a stack of the containers that are
 * open, never by recursion.
 */
#include "json.h"

#include <math.h>

#include "number.h"

static void put_escape(lode__buf *buf, unsigned char c) {
  switch (c) {
    case '"': lode__buf_add(buf, "\\\"", 2); break;
    case '\\': lode__buf_add(buf, "\\\\", 2); break;
    case '\b': lode__buf_add(buf, "\\b", 2); break;
    case '\f': lode__buf_add(buf, "\\f", 2); break;
    case '\n': lode__buf_add(buf, "\\n", 2); break;
    case '\r': lode__buf_add(buf, "\\r", 2); break;
    case '\t': lode__buf_add(buf, "\\t", 2); break;
    default: {
      static const char hex[] = "0123456789abcdef";
      char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      lode__buf_add(buf, text, sizeof text);
    }
  }
}

void lode__json_put_string(lode__buf *buf, lode_str s) {
  size_t run = 0, i = 0; /* bytes from run to i go out as they are */
  lode__buf_addc(buf, '"');
  while (i < s.len) {
    unsigned char c = (unsigned char)s.data[i];
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      i++;
      continue;
    }
    size_t width = lode__utf8_width(s.data + i, s.len - i);
    if (width > 1) {
      i += width;
      continue;
    }
    lode__buf_add(buf, s.data + run, i - run);
    if (width == 0) lode__buf_add(buf, "\xEF\xBF\xBD", 3);
    else put_escape(buf, c);
    run = ++i;
  }
  if (i > run) lode__buf_add(buf, s.data + run, i - run);
  lode__buf_addc(buf, '"');
}

void lode__json_put_double(lode__buf *buf, double d) {
  if (!isfinite(d)) {
    lode__buf_add(buf, "null", 4);
    return;
  }
  char *at = lode__buf_room(buf, LODE__NUMBER_BYTES);
  if (at) buf->len += lode__number_put_double(d, at);
}

static inline size_t put_float(float f, char out[LODE__NUMBER_BYTES]) {
  if (isfinite(f)) return lode__number_put_float(f, out);
  memcpy(out, "null", 4);
  return 4;
}

void lode__json_put_float(lode__buf *buf, float f) {
  char *at = lode__buf_room(buf, LODE__NUMBER_BYTES);
  if (at) buf->len += put_float(f, at);
}

void lode__json_put_vector(lode__buf *buf, const float *v, size_t n) {
  enum { SOME = 64 }; /* numbers that room is made for at once */
  lode__buf_addc(buf, '[');
  for (size_t i = 0; i < n;) {
    char *begin = lode__buf_room(buf, (size_t)SOME * (LODE__NUMBER_BYTES + 1)), *at = begin;
    if (!at) return;
    for (size_t end = n - i < SOME ? n : i + SOME; i < end; i++) {
      if (i) *at++ = ',';
      at += put_float(v[i], at);
    }
    buf->len += (size_t)(at - begin);
  }
  lode__buf_addc(buf, ']');
}

void lode__json_put_int(lode__buf *buf, int64_t i) {
  char text[24];
  char *end = text + sizeof text, *p = end;
  uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  do {
    *--p = (char)('0' + size % 10);
    size /= 10;
  } while (size);
  if (i < 0) *--p = '-';
  lode__buf_add(buf, p, (size_t)(end - p));
}

static void put_scalar(lode__buf *buf, const lode__json_node *node) {
  switch (node->type) {
    case LODE__JSON_NULL: lode__buf_add(buf, "null", 4); break;
    case LODE__JSON_FALSE: lode__buf_add(buf, "false", 5); break;
    case LODE__JSON_TRUE: lode__buf_add(buf, "true", 4); break;
    case LODE__JSON_INT: lode__json_put_int(buf, node->u.i); break;
    case LODE__JSON_DOUBLE: lode__json_put_double(buf, node->u.d); break;
    case LODE__JSON_STRING: lode__json_put_string(buf, node->u.s); break;
    case LODE__JSON_ARRAY:
    case LODE__JSON_OBJECT: break;
  }
}

/* An open container, and how many of its children (keys count) were written. */
typedef struct level {
  uint32_t node;
  size_t children;
} level;

static void put_separator(lode__buf *buf, const lode__json *json, level *in) {
  bool value = json->nodes[in->node].type == LODE__JSON_OBJECT && in->children % 2 == 1;
  if (value) lode__buf_addc(buf, ':');
  else if (in->children > 0) lode__buf_addc(buf, ',');
  in->children++;
}

void lode__json_put_node(lode__buf *buf, const lode__json *json, uint32_t node) {
  level *stack = NULL;
  size_t cap = 0, depth = 0;
  uint32_t i = node, end = json->nodes[node].next;
  while (i < end || depth > 0) {
    if (depth > 0 && json->nodes[stack[depth - 1].node].next == i) {
      lode__buf_addc(buf, json->nodes[stack[--depth].node].type == LODE__JSON_OBJECT ? '}' : ']');
      continue;
    }
    const lode__json_node *n = &json->nodes[i];
    if (depth > 0) put_separator(buf, json, &stack[depth - 1]);
    if (n->type == LODE__JSON_ARRAY || n->type == LODE__JSON_OBJECT) {
      if (!lode__grow(&stack, &cap, depth + 1, sizeof *stack)) {
        buf->failed = true;
        break;
      }
      lode__buf_addc(buf, n->type == LODE__JSON_OBJECT ? '{' : '[');
      stack[depth++] = (level){i, 0};
    } else {
      put_scalar(buf, n);
    }
    i++;
  }
  lode__free(stack);
}
