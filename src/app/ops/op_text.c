/* SPDX-License-Identifier: Apache-2.0 */
/* op_text.c - values of results as text for people: see op_text.h. */
#include "ops/op_context.h"
#include "ops/op_text.h"

#include <time.h>

/* ---- Values ---- */

void op_put_grouped(strbuf *out, uint64_t n) {
  char digits[24];
  int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) strbuf_addch(out, ',');
    strbuf_addch(out, digits[i]);
  }
}

void op_put_bytes(strbuf *out, uint64_t n) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double d = (double)n / 1024;
  size_t unit = 0;
  if (n < 1024) {
    strbuf_addf(out, "%u byte%s", (unsigned)n, n == 1 ? "" : "s");
    return;
  }
  for (; d >= 1023.95 && unit < 5; unit++) d /= 1024;
  strbuf_addf(out, "%.1f %s", d, units[unit]);
}

void op_put_time(strbuf *out, uint64_t wall_ms) {
  time_t seconds = (time_t)(wall_ms / 1000);
  struct tm parts;
  char text[40] = "-";
  if (wall_ms && localtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  strbuf_addstr(out, text);
}

static void put_printable_char(strbuf *out, const char *p, size_t width) {
  uint32_t code = utf8_decode(p, width);
  if (code == '\t')
    strbuf_addch(out, ' ');
  else if (code == '\n')
    strbuf_addstr(out, "⏎");
  else if (!utf8_is_hidden(code))
    strbuf_add(out, p, width);
  else if (code <= 0xFF)
    strbuf_addf(out, "\\x%02x", (unsigned)code);
  else
    strbuf_addf(out, code <= 0xFFFF ? "\\u%04x" : "\\u{%x}", (unsigned)code);
}

void op_put_printable(strbuf *out, lode_str text, size_t max) {
  size_t chars = 0;
  for (size_t i = 0; i < text.len; chars++) {
    size_t width = utf8_width(text.data + i, text.len - i), n = width ? width : 1;
    if (max && chars + 1 >= max && i + n < text.len) {
      strbuf_addstr(out, "…");
      return;
    }
    if (width)
      put_printable_char(out, text.data + i, width);
    else
      strbuf_addstr(out, "\xef\xbf\xbd");
    i += n;
  }
}

/* An object of counts as "c 120, go 3", an array of strings as its members. False for anything else. */
static bool put_members(strbuf *out, const json_doc *json, uint32_t node) {
  bool object = json->nodes[node].type == JSON_NODE_OBJECT;
  json_node_type member = object ? JSON_NODE_INT : JSON_NODE_STRING;
  uint32_t first = node + 1, end = json->nodes[node].next;
  if (!object && json->nodes[node].type != JSON_NODE_ARRAY) return false;
  for (uint32_t i = first; i < end; i = json->nodes[i + object].next)
    if (json->nodes[i + object].type != member || (object && json->nodes[i + 1].u.i < 0)) return false;
  if (first == end) strbuf_addch(out, '-');
  for (uint32_t i = first; i < end; i = json->nodes[i + object].next) {
    if (i > first) strbuf_addstr(out, ", ");
    strbuf_add(out, json->nodes[i].u.s.data, json->nodes[i].u.s.len);
    if (object) strbuf_addch(out, ' ');
    if (object) op_put_grouped(out, (uint64_t)json->nodes[i + 1].u.i);
  }
  return true;
}

void op_put_node(strbuf *out, const json_doc *json, uint32_t node, size_t max) {
  const json_node *x = &json->nodes[node];
  strbuf text = {0};
  if (x->type == JSON_NODE_NULL) {
    strbuf_addstr(out, "-");
  } else if (x->type == JSON_NODE_STRING) {
    op_put_printable(out, x->u.s, max);
  } else {
    json_put_node(&text, json, node);
    op_put_printable(out, (lode_str){text.data, text.len}, max);
    out->failed = out->failed || text.failed;
    strbuf_release(&text);
  }
}

static void put_json(strbuf *out, const op_value *value, size_t max) {
  json_doc json = {0};
  strbuf text = {0};
  bool lists = value->field->type == OP_FIELD_OBJECT || value->field->type == OP_FIELD_TEXTS;
  if (json_parse(&json, value->u.text, NULL, NULL) != LODE_OK)
    op_put_printable(out, value->u.text, max);
  else if (lists && put_members(&text, &json, 0))
    op_put_printable(out, (lode_str){text.data, text.len}, max);
  else
    op_put_node(out, &json, 0, max);
  out->failed = out->failed || text.failed;
  strbuf_release(&text);
  json_release(&json);
}

static void put_count(strbuf *out, const op_value *value) {
  if (value->field->type == OP_FIELD_COUNT)
    op_put_grouped(out, value->u.count);
  else if (value->field->type == OP_FIELD_BYTES)
    op_put_bytes(out, value->u.count);
  else if (value->field->type == OP_FIELD_TIME)
    op_put_time(out, value->u.count);
  else
    strbuf_addf(out, "%llu", (unsigned long long)value->u.count);
}

static void put_vector(strbuf *out, const op_value *value, size_t max) {
  strbuf text = {0};
  op_value_put_json(&text, value);
  op_put_printable(out, (lode_str){text.data, text.len}, max);
  out->failed = out->failed || text.failed;
  strbuf_release(&text);
}

void op_put_value(strbuf *out, const op_value *value, size_t max) {
  switch (value->type) {
    case OP_VALUE_NULL: strbuf_addstr(out, "-"); break;
    case OP_VALUE_TEXT: op_put_printable(out, value->u.text, max); break;
    case OP_VALUE_COUNT: put_count(out, value); break;
    case OP_VALUE_REAL: strbuf_addf(out, "%.6g", value->u.real); break;
    case OP_VALUE_BOOL: strbuf_addstr(out, value->u.flag ? "yes" : "no"); break;
    case OP_VALUE_JSON: put_json(out, value, max); break;
    case OP_VALUE_VECTOR: put_vector(out, value, max); break;
  }
}

/* ---- Summaries ---- */

static bool value_is_blank(const op_value *v) {
  return !v || v->type == OP_VALUE_NULL || (v->type == OP_VALUE_BOOL && !v->u.flag) ||
         (v->type == OP_VALUE_COUNT && v->u.count == 0);
}

void op_put_sentence(strbuf *out, const char *say, const op_row *summary) {
  size_t open_at = SIZE_MAX;
  bool drop = false, one = false;
  for (const char *p = say; *p; p++) {
    if (*p == '[') {
      open_at = out->len;
      drop = false;
    } else if (*p == ']') {
      if (drop && !out->failed) out->len = open_at;
    } else if (*p == '{') {
      const char *end = strchr(p, '}');
      bool asks = p[1] == '?';
      char name[40];
      snprintf(name, sizeof name, "%.*s", (int)(end - p - 1 - asks), p + 1 + asks);
      p = end;
      char *many = strchr(name, '|');
      if (many || strcmp(name, "s") == 0 || strcmp(name, "es") == 0) {
        if (many) *many++ = '\0';
        strbuf_addstr(out, one ? (many ? name : "") : many ? many : name);
        continue;
      }
      const op_value *value = op_row_find(summary, name);
      drop = drop || value_is_blank(value);
      one = value && value->type == OP_VALUE_COUNT && value->u.count == 1;
      if (value && !asks) op_put_value(out, value, 0);
    } else {
      strbuf_addch(out, *p);
    }
  }
  strbuf_addch(out, '\n');
}
