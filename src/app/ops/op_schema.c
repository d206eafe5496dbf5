/* SPDX-License-Identifier: Apache-2.0 */
/* op_schema.c - see op_schema.h. */
#include "ops/op_schema.h"

#include "base/json.h"
#include "ops/op_args.h"

static void schema_put(strbuf *out, const char *text) { json_put_string(out, str_of(text)); }

static bool schema_put_choice(void *ctx, size_t i, lode_str choice) {
  strbuf *out = ctx;
  if (i) strbuf_addch(out, ',');
  json_put_string(out, choice);
  return true;
}

static void schema_put_enum(strbuf *out, const char *choices) {
  strbuf_addstr(out, "{\"type\":\"string\",\"enum\":[");
  op_choices_each(choices, schema_put_choice, out);
  strbuf_addstr(out, "]}");
}

/* Opens an object that the caller closes. */
static void schema_put_type(strbuf *out, const op_param *p) {
  switch (p->type) {
    case OP_ARG_TEXT:
    case OP_ARG_PATH:
    case OP_ARG_LINES: strbuf_addstr(out, "{\"type\":\"string\""); break;
    case OP_ARG_CHOICE:
      schema_put_enum(out, p->choices);
      out->len -= !out->failed;
      break;
    case OP_ARG_SET:
      strbuf_addstr(out, "{\"type\":\"array\",\"uniqueItems\":true,\"items\":");
      schema_put_enum(out, p->choices);
      break;
    case OP_ARG_FLAG: strbuf_addstr(out, "{\"type\":\"boolean\""); break;
    case OP_ARG_INT:
    case OP_ARG_SIZE:
      strbuf_addf(out, "{\"type\":\"integer\",\"minimum\":%llu", (unsigned long long)p->min);
      if (p->max) strbuf_addf(out, ",\"maximum\":%llu", (unsigned long long)p->max);
      break;
    case OP_ARG_REAL: strbuf_addstr(out, "{\"type\":\"number\""); break;
    case OP_ARG_JSON: strbuf_addstr(out, "{\"type\":\"object\""); break;
    case OP_ARG_LIST: strbuf_addstr(out, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}"); break;
    case OP_ARG_VECTOR:
      strbuf_addf(out, "{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":1,\"maxItems\":%d",
                  LODE_MAX_DIMENSION);
      break;
    case OP_ARG_VECTORS:
      strbuf_addf(out,
                  "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},"
                  "\"minItems\":1,\"maxItems\":%d}",
                  LODE_MAX_DIMENSION);
      break;
    case OP_ARG_RECORDS:
      strbuf_addstr(
          out, "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
               "\"document\":{\"type\":[\"string\",\"null\"]},\"metadata\":{\"type\":[\"object\",\"null\"]},"
               "\"embedding\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"number\"}}},\"required\":[\"id\"]}");
      break;
  }
}

struct pieces {
  strbuf *out;
  const op_param *param;
  size_t n;
};

static bool schema_put_fallback_item(void *ctx, size_t i, lode_str choice) {
  struct pieces *pieces = ctx;
  lode_str all = str_of(pieces->param->fallback);
  (void)i;
  for (size_t at = 0; at + choice.len <= all.len; at++) {
    if (memcmp(all.data + at, choice.data, choice.len) != 0) continue;
    if (pieces->n++) strbuf_addch(pieces->out, ',');
    json_put_string(pieces->out, choice);
    break;
  }
  return true;
}

static void schema_put_fallback(strbuf *out, const op_param *p) {
  strbuf_addstr(out, ",\"default\":");
  uint64_t bytes = 0;
  if (p->type == OP_ARG_SIZE && op_parse_size(str_of(p->fallback), &bytes)) {
    strbuf_addf(out, "%llu", (unsigned long long)bytes);
  } else if (p->type == OP_ARG_INT || p->type == OP_ARG_REAL) {
    strbuf_addstr(out, p->fallback);
  } else if (p->type == OP_ARG_SET) {
    struct pieces pieces = {out, p, 0};
    strbuf_addch(out, '[');
    op_choices_each(p->choices, schema_put_fallback_item, &pieces);
    strbuf_addch(out, ']');
  } else {
    schema_put(out, p->fallback);
  }
}

void op_input_schema(strbuf *out, const op_def *op) {
  bool first = true;
  strbuf_addstr(out, "{\"type\":\"object\",\"properties\":{");
  for (const op_param *p = op->params; p->name; p++) {
    if (p->flags & OP_PARAM_CLI_ONLY) continue;
    if (!first) strbuf_addch(out, ',');
    first = false;
    schema_put(out, p->name);
    strbuf_addch(out, ':');
    schema_put_type(out, p);
    strbuf_addstr(out, ",\"description\":");
    schema_put(out, p->about);
    if (p->fallback) schema_put_fallback(out, p);
    strbuf_addch(out, '}');
  }
  strbuf_addstr(out, "},\"required\":[");
  first = true;
  for (const op_param *p = op->params; p->name; p++) {
    if (!(p->flags & OP_PARAM_REQUIRED) || (p->flags & OP_PARAM_CLI_ONLY)) continue;
    if (!first) strbuf_addch(out, ',');
    first = false;
    schema_put(out, p->name);
  }
  strbuf_addstr(out, "],\"additionalProperties\":false}");
}

/* ---- Results ---- */

static const char *schema_field_type(op_field_type type) {
  switch (type) {
    case OP_FIELD_TEXT: return "string";
    case OP_FIELD_COUNT:
    case OP_FIELD_NUMBER:
    case OP_FIELD_TIME:
    case OP_FIELD_BYTES: return "integer";
    case OP_FIELD_REAL: return "number";
    case OP_FIELD_BOOL: return "boolean";
    case OP_FIELD_OBJECT: return "object";
    case OP_FIELD_VECTOR:
    case OP_FIELD_TEXTS: return "array";
    case OP_FIELD_SCALAR: break;
  }
  return NULL;
}

static void schema_put_field(strbuf *out, const op_field *f) {
  const char *type = schema_field_type(f->type);
  schema_put(out, f->name);
  if (!type)
    strbuf_addstr(out, ":{\"type\":[\"string\",\"number\",\"boolean\"]");
  else if (f->flags & OP_FIELD_NULLABLE)
    strbuf_addf(out, ":{\"type\":[\"%s\",\"null\"]", type);
  else
    strbuf_addf(out, ":{\"type\":\"%s\"", type);
  if (f->type == OP_FIELD_VECTOR) strbuf_addstr(out, ",\"items\":{\"type\":\"number\"}");
  if (f->type == OP_FIELD_TEXTS) strbuf_addstr(out, ",\"items\":{\"type\":\"string\"}");
  strbuf_addstr(out, ",\"description\":");
  schema_put(out, f->about);
  strbuf_addch(out, '}');
}

static void schema_put_fields(strbuf *out, const op_field *fields, bool first) {
  for (const op_field *f = fields; f && f->name; f++) {
    if (!first) strbuf_addch(out, ',');
    first = false;
    schema_put_field(out, f);
  }
}

static void schema_put_required(strbuf *out, const op_field *fields, bool first) {
  for (const op_field *f = fields; f && f->name; f++) {
    if (f->flags & OP_FIELD_OPTIONAL) continue;
    if (!first) strbuf_addch(out, ',');
    first = false;
    schema_put(out, f->name);
  }
}

static void schema_put_output(strbuf *out, const op_def *op) {
  strbuf_addstr(out, "{\"type\":\"object\",\"properties\":{");
  if (op->row) {
    strbuf_addstr(out, "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{");
    schema_put_fields(out, op->row, true);
    strbuf_addstr(out, "},\"required\":[");
    schema_put_required(out, op->row, true);
    strbuf_addstr(out, "]}}");
  }
  schema_put_fields(out, op->summary, op->row == NULL);
  strbuf_addstr(out, "},\"required\":[");
  if (op->row) strbuf_addstr(out, "\"rows\"");
  schema_put_required(out, op->summary, op->row == NULL);
  strbuf_addstr(out, "]}");
}

void op_schema(strbuf *out, const op_def *op) {
  bool reads = op->flags & OP_READ_ONLY, destroys = op->flags & OP_DESTRUCTIVE;
  strbuf_addstr(out, "{\"name\":\"");
  if (op->group) strbuf_addf(out, "%s_", op->group);
  strbuf_addf(out, "%s\",\"description\":", op->name);
  schema_put(out, op->about);
  strbuf_addstr(out, ",\"inputSchema\":");
  op_input_schema(out, op);
  strbuf_addstr(out, ",\"outputSchema\":");
  schema_put_output(out, op);
  strbuf_addf(out, ",\"annotations\":{\"readOnlyHint\":%s,\"destructiveHint\":%s,\"openWorldHint\":false}}",
              reads ? "true" : "false", destroys ? "true" : "false");
}

/* ---- HTTP ---- */

bool op_allowed_over_http(const op_def *op) {
  if (op->flags & (OP_SERVER | OP_NO_HTTP)) return false;
  if (!(op->flags & OP_LOCAL)) return true;
  if (!(op->flags & OP_READ_ONLY) || (!op->row && !op->summary)) return false;
  for (const op_param *p = op->params; p->name; p++)
    if (p->type == OP_ARG_PATH && (p->flags & OP_PARAM_REQUIRED || p->fallback)) return false;
  return true;
}

void op_http_view(const op_def *op, op_def *out, op_param params[OP_MAX_PARAMS + 1]) {
  size_t n = 0;
  for (const op_param *p = op->params; p->name && n < OP_MAX_PARAMS; p++)
    if (p->type != OP_ARG_PATH) params[n++] = *p;
  params[n] = (op_param){0};
  *out = *op;
  out->params = params;
}
