/* json.c - JSON text (RFC 8259, exactly) to a flat array of nodes, and arrays of numbers to floats.
 *
 * One loop and an explicit stack of open containers, so that nesting costs four bytes a level and never the C stack.
 * Strings without escapes point into the source text. The others are decoded into json->strings, which is made large
 * enough for all that is left of the text when the first one is met (decoding never lengthens), so that it does not
 * move under the nodes that point into it. UTF-8 is checked where it can occur: inside strings.
 */
#include "json.h"

#include "number.h"

enum { DEFAULT_NODES = 64 << 20, DEFAULT_DEPTH = 1000 };

typedef struct parser {
  lode__json *json;
  const char *begin, *p, *end;
  size_t max_nodes, max_depth, depth;
  bool decodes; /* json->strings has its full size */
  bool loose;   /* white space between tokens, or an escape, was met */
  lode_error *err;
} parser;

static lode_status fail_at_byte(lode_error *err, const char *begin, const char *at, const char *what) {
  return lode__fail(err, LODE_INVALID, "invalid JSON at byte %zu: %s", (size_t)(at - begin), what);
}

static lode_status bad(const parser *ps, const char *what) { return fail_at_byte(ps->err, ps->begin, ps->p, what); }

static inline const char *skip_space(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
  return p;
}

static inline void skip(parser *ps) {
  const char *p = skip_space(ps->p, ps->end);
  if (p != ps->p) ps->loose = true;
  ps->p = p;
}

static lode_status add_node(parser *ps, lode__json_type type, lode__json_node **node) {
  lode__json *json = ps->json;
  if (json->count >= ps->max_nodes) {
    return lode__fail(ps->err, LODE_LIMIT, "the JSON text has more than %zu values (at byte %zu): send less at once",
                      ps->max_nodes, (size_t)(ps->p - ps->begin));
  }
  if (json->count == json->cap && !lode__grow(&json->nodes, &json->cap, (size_t)json->count + 1, sizeof *json->nodes)) {
    return lode__fail_nomem(ps->err);
  }
  *node = &json->nodes[json->count++];
  (*node)->type = type;
  (*node)->next = json->count;
  return LODE_OK;
}

/* ---- Strings ---- */

/* The first byte that ends a run of plain characters: a quote, a backslash or a control byte. *high: whether bytes
 * past ASCII were among them. */
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

/* Moves over a run of plain characters up to a quote or backslash, checking it. */
static lode_status take_run(parser *ps) {
  const char *begin = ps->p;
  bool high;
  ps->p = plain_run(begin, ps->end, &high);
  if (high && !lode__utf8_valid(begin, (size_t)(ps->p - begin))) {
    const char *stop = ps->p;
    ps->p = begin;
    for (size_t w; (w = lode__utf8_width(ps->p, (size_t)(stop - ps->p))); ps->p += w) continue;
    return bad(ps, "the string is not valid UTF-8");
  }
  if (ps->p == ps->end) return bad(ps, "the string is not closed");
  if ((unsigned char)*ps->p < 0x20) return bad(ps, "control characters in strings must be escaped");
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

/* \uXXXX, of which ps->p is at the X; a pair of surrogates is one character. */
static lode_status take_unicode(parser *ps, char **out) {
  int32_t c = hex4(ps->p, ps->end);
  if (c < 0) return bad(ps, "\\u takes four hexadecimal digits");
  if (c >= 0xDC00 && c <= 0xDFFF) return bad(ps, "a low surrogate without a high one before it");
  ps->p += 4;
  if (c >= 0xD800 && c <= 0xDBFF) {
    int32_t low = ps->end - ps->p >= 6 && ps->p[0] == '\\' && ps->p[1] == 'u' ? hex4(ps->p + 2, ps->end) : -1;
    if (low < 0xDC00 || low > 0xDFFF) return bad(ps, "a high surrogate without a low one behind it");
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    ps->p += 6;
  }
  *out = put_utf8(*out, (uint32_t)c);
  return LODE_OK;
}

/* The character behind a backslash. */
static lode_status take_escape(parser *ps, char **out) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  if (ps->p == ps->end) return bad(ps, "the string is not closed");
  if (*ps->p == 'u') {
    ps->p++;
    return take_unicode(ps, out);
  }
  const char *at = *ps->p ? strchr(names, *ps->p) : NULL;
  if (!at) return bad(ps, "no such escape in JSON strings");
  *(*out)++ = values[at - names];
  ps->p++;
  return LODE_OK;
}

/* The rest of a string whose first escape is at ps->p; its plain beginning is at `begin`. */
static lode_status decode_string(parser *ps, const char *begin, lode_str *s) {
  lode__buf *strings = &ps->json->strings;
  if (!ps->decodes && !lode__buf_room(strings, (size_t)(ps->end - begin))) return lode__fail_nomem(ps->err);
  ps->decodes = ps->loose = true;
  char *first = strings->data + strings->len, *out = first;
  for (;;) {
    size_t run = (size_t)(ps->p - begin);
    memcpy(out, begin, run);
    out += run;
    if (*ps->p == '"') break;
    ps->p++;
    LODE__TRY(take_escape(ps, &out));
    begin = ps->p;
    LODE__TRY(take_run(ps));
  }
  *s = (lode_str){first, (size_t)(out - first)};
  strings->len += s->len;
  return LODE_OK;
}

/* ps->p is at the opening quote, and afterwards behind the closing one. */
static lode_status take_string(parser *ps) {
  lode__json_node *node;
  LODE__TRY(add_node(ps, LODE__JSON_STRING, &node));
  const char *begin = ++ps->p;
  LODE__TRY(take_run(ps));
  if (*ps->p == '"') node->u.s = (lode_str){begin, (size_t)(ps->p - begin)};
  else LODE__TRY(decode_string(ps, begin, &node->u.s));
  ps->p++;
  return LODE_OK;
}

/* ---- Other values ---- */

static lode_status take_number(parser *ps) {
  lode__number number;
  lode__json_node *node;
  const char *behind = lode__number_scan(ps->p, ps->end, &number);
  if (!behind) return bad(ps, "not a number as JSON writes them");
  LODE__TRY(add_node(ps, LODE__JSON_INT, &node));
  if (!lode__number_to_int(&number, &node->u.i)) {
    node->type = LODE__JSON_DOUBLE;
    if (!lode__number_to_double(&number, &node->u.d)) return bad(ps, "the number is too large for a double");
  }
  ps->p = behind;
  return LODE_OK;
}

static lode_status take_word(parser *ps, lode_str word, lode__json_type type) {
  lode__json_node *node;
  if ((size_t)(ps->end - ps->p) < word.len || memcmp(ps->p, word.data, word.len) != 0) {
    return bad(ps, "expected a value");
  }
  LODE__TRY(add_node(ps, type, &node));
  ps->p += word.len;
  return LODE_OK;
}

static lode_status open_container(parser *ps, lode__json_type type) {
  lode__json *json = ps->json;
  lode__json_node *node;
  if (ps->depth >= ps->max_depth) {
    return lode__fail(ps->err, LODE_LIMIT, "the JSON text is nested deeper than %zu levels (at byte %zu)",
                      ps->max_depth, (size_t)(ps->p - ps->begin));
  }
  if (!lode__grow(&json->stack, &json->stack_cap, ps->depth + 1, sizeof *json->stack)) return lode__fail_nomem(ps->err);
  LODE__TRY(add_node(ps, type, &node));
  node->u.count = 0;
  json->stack[ps->depth++] = json->count - 1;
  ps->p++;
  return LODE_OK;
}

/* A value, or the beginning of a container (which is then the top of the stack). */
static lode_status take_value(parser *ps) {
  skip(ps);
  if (ps->p == ps->end) return bad(ps, "the text ends where a value is expected");
  switch (*ps->p) {
    case '{': return open_container(ps, LODE__JSON_OBJECT);
    case '[': return open_container(ps, LODE__JSON_ARRAY);
    case '"': return take_string(ps);
    case 't': return take_word(ps, LODE__LIT("true"), LODE__JSON_TRUE);
    case 'f': return take_word(ps, LODE__LIT("false"), LODE__JSON_FALSE);
    case 'n': return take_word(ps, LODE__LIT("null"), LODE__JSON_NULL);
    default: break;
  }
  if (*ps->p == '-' || (*ps->p >= '0' && *ps->p <= '9')) return take_number(ps);
  return bad(ps, "expected a value");
}

/* ---- The loop ---- */

static lode_status take_key(parser *ps) {
  skip(ps);
  if (ps->p == ps->end || *ps->p != '"') return bad(ps, "expected a key in double quotes");
  LODE__TRY(take_string(ps));
  skip(ps);
  if (ps->p == ps->end || *ps->p != ':') return bad(ps, "expected ':' behind the key");
  ps->p++;
  return LODE_OK;
}

static inline lode__json_node *top(const parser *ps) { return &ps->json->nodes[ps->json->stack[ps->depth - 1]]; }

/* Takes the end of the top container if it is there. */
static bool take_close(parser *ps) {
  lode__json_node *node = top(ps);
  skip(ps);
  if (ps->p == ps->end || *ps->p != (node->type == LODE__JSON_OBJECT ? '}' : ']')) return false;
  ps->p++;
  node->next = ps->json->count;
  ps->depth--;
  return true;
}

/* Behind a whole value: closes what ends here, and stands where the next value begins unless depth is 0. */
static lode_status after_value(parser *ps) {
  while (ps->depth > 0) {
    lode__json_node *node = top(ps);
    node->u.count++;
    if (take_close(ps)) continue;
    bool object = node->type == LODE__JSON_OBJECT;
    if (ps->p == ps->end || *ps->p != ',') return bad(ps, object ? "expected ',' or '}'" : "expected ',' or ']'");
    ps->p++;
    return object ? take_key(ps) : LODE_OK;
  }
  return LODE_OK;
}

static lode_status parse(parser *ps) {
  do {
    size_t depth = ps->depth;
    LODE__TRY(take_value(ps));
    if (ps->depth > depth && !take_close(ps)) {
      if (top(ps)->type == LODE__JSON_OBJECT) LODE__TRY(take_key(ps));
      continue;
    }
    LODE__TRY(after_value(ps));
  } while (ps->depth > 0);
  skip(ps);
  return ps->p == ps->end ? LODE_OK : bad(ps, "more text behind the value");
}

lode_status lode__json_parse(lode__json *json, lode_str text, const lode__json_limits *limits, lode_error *err) {
  const char *begin = text.data ? text.data : "";
  parser ps = {.json = json, .begin = begin, .p = begin, .end = begin + text.len, .err = err};
  ps.max_nodes = limits && limits->max_nodes ? limits->max_nodes : DEFAULT_NODES;
  ps.max_depth = limits && limits->max_depth ? limits->max_depth : DEFAULT_DEPTH;
  if (ps.max_nodes > UINT32_MAX - 1) ps.max_nodes = UINT32_MAX - 1; /* `next` must fit */
  json->count = 0;
  json->strings.len = 0;
  json->strings.failed = false;
  lode_status st = parse(&ps);
  json->compact = st == LODE_OK && !ps.loose;
  if (st != LODE_OK) json->count = 0;
  return st;
}

void lode__json_release(lode__json *json) {
  lode__free(json->nodes);
  lode__free(json->stack);
  lode__buf_release(&json->strings);
  *json = (lode__json){0};
}

uint32_t lode__json_get(const lode__json *json, uint32_t object, lode_str key) {
  uint32_t found = 0;
  if (object >= json->count || json->nodes[object].type != LODE__JSON_OBJECT) return 0;
  for (uint32_t i = object + 1; i < json->nodes[object].next; i = json->nodes[i + 1].next) {
    if (lode__str_eq(json->nodes[i].u.s, key)) found = i + 1;
  }
  return found;
}

/* ---- Vectors ---- */

static lode_status floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err) {
  const char *p = text.data, *end = text.data + text.len;
  size_t n = 0;
  p = skip_space(p, end);
  if (p == end || *p != '[') return fail_at_byte(err, text.data, p, "expected an array of numbers");
  p = skip_space(p + 1, end);
  bool more = p == end || *p != ']';
  while (more) {
    lode__number number;
    p = skip_space(p, end);
    const char *behind = lode__number_scan(p, end, &number);
    if (!behind) return fail_at_byte(err, text.data, p, "expected a number");
    if (n == max) return lode__fail(err, LODE_LIMIT, "the array has more than %zu numbers", max);
    if (!lode__number_to_float(&number, &out[n++])) {
      return fail_at_byte(err, text.data, p, "the number is too large for a 32-bit float");
    }
    p = skip_space(behind, end);
    if (p == end || (*p != ',' && *p != ']')) return fail_at_byte(err, text.data, p, "expected ',' or ']'");
    more = *p == ',';
    if (more) p++;
  }
  p = skip_space(p + 1, end);
  if (p != end) return fail_at_byte(err, text.data, p, "more text behind the array");
  *dim = n;
  return LODE_OK;
}

lode_status lode__json_floats(lode_str text, float *out, size_t max, size_t *dim, lode_error *err) {
  *dim = 0;
  if (!text.data) text = LODE__LIT("");
  return floats(text, out, max, dim, err);
}
