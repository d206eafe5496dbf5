/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - parses JSON text (RFC 8259, strictly) to a flat array of nodes, and arrays of numbers to floats.
 *
 * One loop and an explicit stack of open containers: nesting costs four bytes per level and no C stack. Strings without
 * escapes point into the source text. The others are decoded into json->strings, which is allocated with the size of
 * the remaining text at the first escape (decoding never lengthens), so that it does not move under the nodes that
 * point into it. UTF-8 is checked where it can occur: inside strings.
 */
#include "base/json.h"

#include "base/number.h"

enum { DEFAULT_NODES = 64 << 20, DEFAULT_DEPTH = 1000 };

typedef struct json_parser {
  json_doc *json;
  const char *begin, *p, *end;
  size_t max_nodes, max_depth, depth;
  bool decodes; /* json->strings has its full size */
  bool loose;   /* white space between tokens, or an escape, was found */
  lode_error *err;
} json_parser;

static lode_status fail_at_byte(lode_error *err, const char *begin, const char *at, const char *what) {
  return err_set(err, LODE_INVALID, "invalid JSON at byte %zu: %s", (size_t)(at - begin), what);
}

static lode_status json_syntax_error(const json_parser *ps, const char *what) {
  return fail_at_byte(ps->err, ps->begin, ps->p, what);
}

static inline const char *json_skip_blanks(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
  return p;
}

static inline void json_skip(json_parser *ps) {
  const char *p = json_skip_blanks(ps->p, ps->end);
  if (p != ps->p) ps->loose = true;
  ps->p = p;
}

static lode_status json_add_node(json_parser *ps, json_node_type type, json_node **node) {
  json_doc *json = ps->json;
  if (json->count >= ps->max_nodes) {
    return err_set(ps->err, LODE_LIMIT, "the JSON text has more than %zu values (at byte %zu): send less at once",
                   ps->max_nodes, (size_t)(ps->p - ps->begin));
  }
  if (json->count == json->cap && !mem_grow(&json->nodes, &json->cap, (size_t)json->count + 1, sizeof *json->nodes)) {
    return err_nomem(ps->err);
  }
  *node = &json->nodes[json->count++];
  (*node)->type = type;
  (*node)->next = json->count;
  return LODE_OK;
}

/* ---- Strings ---- */

/* Returns the first byte that ends a run of plain characters: a quote, a backslash or a control byte. *high: the run
 * has bytes outside ASCII. */
static const char *plain_run(const char *p, const char *end, bool *high) {
  const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
  uint64_t seen = 0;
  while (end - p >= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
    uint64_t stop = ((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash);
    if (stop & tops) break;
    seen |= w & tops;
    p += 8;
  }
  for (; p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20; p++) seen |= (uint64_t)*p & 0x80;
  *high = seen != 0;
  return p;
}

/* Checks and skips a run of plain characters, up to a quote or backslash. */
static lode_status json_read_run(json_parser *ps) {
  const char *begin = ps->p;
  bool high;
  ps->p = plain_run(begin, ps->end, &high);
  if (high && !utf8_valid(begin, (size_t)(ps->p - begin))) {
    const char *stop = ps->p;
    ps->p = begin;
    for (size_t w; (w = utf8_width(ps->p, (size_t)(stop - ps->p))); ps->p += w) continue;
    return json_syntax_error(ps, "the string is not valid UTF-8");
  }
  if (ps->p == ps->end) return json_syntax_error(ps, "the string is not closed");
  if ((unsigned char)*ps->p < 0x20) return json_syntax_error(ps, "control characters in strings must be escaped");
  return LODE_OK;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hexadecimal digits at p, or -1. */
static int32_t hex4(const char *p, const char *end) {
  int32_t v = 0;
  if (end - p < 4) return -1;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(p[i]);
    if (digit < 0) return -1;
    v = v << 4 | digit;
  }
  return v;
}

static char *put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    *out++ = (char)c;
    return out;
  }
  if (c < 0x800) {
    *out++ = (char)(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    *out++ = (char)(0xE0 | c >> 12);
    *out++ = (char)(0x80 | (c >> 6 & 0x3F));
  } else {
    *out++ = (char)(0xF0 | c >> 18);
    *out++ = (char)(0x80 | (c >> 12 & 0x3F));
    *out++ = (char)(0x80 | (c >> 6 & 0x3F));
  }
  *out++ = (char)(0x80 | (c & 0x3F));
  return out;
}

/* \uXXXX, with ps->p at the first X; a surrogate pair is one character. */
static lode_status json_read_unicode(json_parser *ps, char **out) {
  int32_t c = hex4(ps->p, ps->end);
  if (c < 0) return json_syntax_error(ps, "\\u takes four hexadecimal digits");
  if (c >= 0xDC00 && c <= 0xDFFF) return json_syntax_error(ps, "a low surrogate without a high one before it");
  ps->p += 4;
  if (c >= 0xD800 && c <= 0xDBFF) {
    int32_t low = ps->end - ps->p >= 6 && ps->p[0] == '\\' && ps->p[1] == 'u' ? hex4(ps->p + 2, ps->end) : -1;
    if (low < 0xDC00 || low > 0xDFFF) return json_syntax_error(ps, "a high surrogate without a low one after it");
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    ps->p += 6;
  }
  *out = put_utf8(*out, (uint32_t)c);
  return LODE_OK;
}

/* The character after a backslash. */
static lode_status json_read_escape(json_parser *ps, char **out) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  if (ps->p == ps->end) return json_syntax_error(ps, "the string is not closed");
  if (*ps->p == 'u') {
    ps->p++;
    return json_read_unicode(ps, out);
  }
  const char *at = *ps->p ? strchr(names, *ps->p) : NULL;
  if (!at) return json_syntax_error(ps, "no such escape in JSON strings");
  *(*out)++ = values[at - names];
  ps->p++;
  return LODE_OK;
}

/* Decodes the rest of a string whose first escape is at ps->p; its plain start is at `begin`. */
static lode_status decode_string(json_parser *ps, const char *begin, lode_str *s) {
  strbuf *strings = &ps->json->strings;
  if (!ps->decodes && !strbuf_reserve(strings, (size_t)(ps->end - begin))) return err_nomem(ps->err);
  ps->decodes = ps->loose = true;
  char *first = strings->data + strings->len, *out = first;
  for (;;) {
    size_t run = (size_t)(ps->p - begin);
    memcpy(out, begin, run);
    out += run;
    if (*ps->p == '"') break;
    ps->p++;
    TRY(json_read_escape(ps, &out));
    begin = ps->p;
    TRY(json_read_run(ps));
  }
  *s = (lode_str){first, (size_t)(out - first)};
  strings->len += s->len;
  return LODE_OK;
}

/* ps->p is at the opening quote, and afterwards after the closing one. */
static lode_status json_read_string(json_parser *ps) {
  json_node *node;
  TRY(json_add_node(ps, JSON_NODE_STRING, &node));
  const char *begin = ++ps->p;
  TRY(json_read_run(ps));
  if (*ps->p == '"')
    node->u.s = (lode_str){begin, (size_t)(ps->p - begin)};
  else
    TRY(decode_string(ps, begin, &node->u.s));
  ps->p++;
  return LODE_OK;
}

/* ---- Other values ---- */

static lode_status json_read_number(json_parser *ps) {
  num_parsed number;
  json_node *node;
  const char *after = num_scan(ps->p, ps->end, &number);
  if (!after) return json_syntax_error(ps, "not a number as JSON writes them");
  TRY(json_add_node(ps, JSON_NODE_INT, &node));
  if (!num_to_int(&number, &node->u.i)) {
    node->type = JSON_NODE_DOUBLE;
    if (!num_to_double(&number, &node->u.d)) return json_syntax_error(ps, "the number is too large for a double");
  }
  ps->p = after;
  return LODE_OK;
}

static lode_status json_read_word(json_parser *ps, lode_str word, json_node_type type) {
  json_node *node;
  if ((size_t)(ps->end - ps->p) < word.len || memcmp(ps->p, word.data, word.len) != 0) {
    return json_syntax_error(ps, "expected a value");
  }
  TRY(json_add_node(ps, type, &node));
  ps->p += word.len;
  return LODE_OK;
}

static lode_status open_container(json_parser *ps, json_node_type type) {
  json_doc *json = ps->json;
  json_node *node;
  if (ps->depth >= ps->max_depth) {
    return err_set(ps->err, LODE_LIMIT, "the JSON text is nested deeper than %zu levels (at byte %zu)", ps->max_depth,
                   (size_t)(ps->p - ps->begin));
  }
  if (!mem_grow(&json->stack, &json->stack_cap, ps->depth + 1, sizeof *json->stack)) return err_nomem(ps->err);
  TRY(json_add_node(ps, type, &node));
  node->u.count = 0;
  json->stack[ps->depth++] = json->count - 1;
  ps->p++;
  return LODE_OK;
}

/* Reads a value, or the start of a container (which is then the top of the stack). */
static lode_status json_read_value(json_parser *ps) {
  json_skip(ps);
  if (ps->p == ps->end) return json_syntax_error(ps, "the text ends where a value is expected");
  switch (*ps->p) {
    case '{': return open_container(ps, JSON_NODE_OBJECT);
    case '[': return open_container(ps, JSON_NODE_ARRAY);
    case '"': return json_read_string(ps);
    case 't': return json_read_word(ps, STR_LIT("true"), JSON_NODE_TRUE);
    case 'f': return json_read_word(ps, STR_LIT("false"), JSON_NODE_FALSE);
    case 'n': return json_read_word(ps, STR_LIT("null"), JSON_NODE_NULL);
    default: break;
  }
  if (*ps->p == '-' || (*ps->p >= '0' && *ps->p <= '9')) return json_read_number(ps);
  return json_syntax_error(ps, "expected a value");
}

/* ---- The loop ---- */

static lode_status json_read_key(json_parser *ps) {
  json_skip(ps);
  if (ps->p == ps->end || *ps->p != '"') return json_syntax_error(ps, "expected a key in double quotes");
  TRY(json_read_string(ps));
  json_skip(ps);
  if (ps->p == ps->end || *ps->p != ':') return json_syntax_error(ps, "expected ':' after the key");
  ps->p++;
  return LODE_OK;
}

static inline json_node *json_top(const json_parser *ps) { return &ps->json->nodes[ps->json->stack[ps->depth - 1]]; }

/* Reads the end of the top container, if it is next. */
static bool json_read_close(json_parser *ps) {
  json_node *node = json_top(ps);
  json_skip(ps);
  if (ps->p == ps->end || *ps->p != (node->type == JSON_NODE_OBJECT ? '}' : ']')) return false;
  ps->p++;
  node->next = ps->json->count;
  ps->depth--;
  return true;
}

/* After a complete value: closes the containers that end here, and moves to the next value unless depth is 0. */
static lode_status after_value(json_parser *ps) {
  while (ps->depth > 0) {
    json_node *node = json_top(ps);
    node->u.count++;
    if (json_read_close(ps)) continue;
    bool object = node->type == JSON_NODE_OBJECT;
    if (ps->p == ps->end || *ps->p != ',')
      return json_syntax_error(ps, object ? "expected ',' or '}'" : "expected ',' or ']'");
    ps->p++;
    return object ? json_read_key(ps) : LODE_OK;
  }
  return LODE_OK;
}

static lode_status json_parse_text(json_parser *ps) {
  do {
    size_t depth = ps->depth;
    TRY(json_read_value(ps));
    if (ps->depth > depth && !json_read_close(ps)) {
      if (json_top(ps)->type == JSON_NODE_OBJECT) TRY(json_read_key(ps));
      continue;
    }
    TRY(after_value(ps));
  } while (ps->depth > 0);
  json_skip(ps);
  return ps->p == ps->end ? LODE_OK : json_syntax_error(ps, "more text after the value");
}

lode_status json_parse(json_doc *json, lode_str text, const json_limits *limits, lode_error *err) {
  const char *begin = text.data ? text.data : "";
  json_parser ps = {.json = json, .begin = begin, .p = begin, .end = begin + text.len, .err = err};
  ps.max_nodes = limits && limits->max_nodes ? limits->max_nodes : DEFAULT_NODES;
  ps.max_depth = limits && limits->max_depth ? limits->max_depth : DEFAULT_DEPTH;
  if (ps.max_nodes > UINT32_MAX - 1) ps.max_nodes = UINT32_MAX - 1; /* `next` must fit */
  json->count = 0;
  json->strings.len = 0;
  json->strings.failed = false;
  lode_status st = json_parse_text(&ps);
  json->compact = st == LODE_OK && !ps.loose;
  if (st != LODE_OK) json->count = 0;
  return st;
}

void json_release(json_doc *json) {
  mem_free(json->nodes);
  mem_free(json->stack);
  strbuf_release(&json->strings);
  *json = (json_doc){0};
}

uint32_t json_get(const json_doc *json, uint32_t object, lode_str key) {
  uint32_t found = 0;
  if (object >= json->count || json->nodes[object].type != JSON_NODE_OBJECT) return 0;
  for (uint32_t i = object + 1; i < json->nodes[object].next; i = json->nodes[i + 1].next) {
    if (str_eq(json->nodes[i].u.s, key)) found = i + 1;
  }
  return found;
}

/* ---- Vectors ---- */

static lode_status json_read_floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err) {
  const char *p = text.data, *end = text.data + text.len;
  size_t n = 0;
  p = json_skip_blanks(p, end);
  if (p == end || *p != '[') return fail_at_byte(err, text.data, p, "expected an array of numbers");
  p = json_skip_blanks(p + 1, end);
  bool more = p == end || *p != ']';
  while (more) {
    num_parsed number;
    p = json_skip_blanks(p, end);
    const char *after = num_scan(p, end, &number);
    if (!after) return fail_at_byte(err, text.data, p, "expected a number");
    if (n == max) return err_set(err, LODE_LIMIT, "the array has more than %zu numbers", max);
    if (!num_to_float(&number, &out[n++])) {
      return fail_at_byte(err, text.data, p, "the number is too large for a 32-bit float");
    }
    p = json_skip_blanks(after, end);
    if (p == end || (*p != ',' && *p != ']')) return fail_at_byte(err, text.data, p, "expected ',' or ']'");
    more = *p == ',';
    if (more) p++;
  }
  p = json_skip_blanks(p + 1, end);
  if (p != end) return fail_at_byte(err, text.data, p, "more text after the array");
  *dim = n;
  return LODE_OK;
}

lode_status json_parse_floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err) {
  *dim = 0;
  if (!text.data) text = STR_LIT("");
  return json_read_floats(text, out, max, dim, err);
}
