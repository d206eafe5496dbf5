/* schema.c - JSON Schema of an operation's arguments and answer, from the table. */
#include "op.h"

static void put(strbuf *out, const char *text) { json_put_string(out, str_of(text)); }

static bool put_choice(void *ctx, size_t i, lode_str choice) {
  strbuf *out = ctx;
  if (i) strbuf_addch(out, ',');
  json_put_string(out, choice);
  return true;
}

static void put_enum(strbuf *out, const char *choices) {
  strbuf_addstr(out, "{\"type\":\"string\",\"enum\":[");
  lode__choices_each(choices, put_choice, out);
  strbuf_addstr(out, "]}");
}

/* Opens an object that the caller closes. */
static void put_type(strbuf *out, const lode__param *p) {
  switch (p->type) {
    case LODE__ARG_TEXT:
    case LODE__ARG_PATH:
    case LODE__ARG_LINES: strbuf_addstr(out, "{\"type\":\"string\""); break;
    case LODE__ARG_CHOICE:
      put_enum(out, p->choices);
      out->len -= !out->failed;
      break;
    case LODE__ARG_SET:
      strbuf_addstr(out, "{\"type\":\"array\",\"uniqueItems\":true,\"items\":");
      put_enum(out, p->choices);
      break;
    case LODE__ARG_FLAG: strbuf_addstr(out, "{\"type\":\"boolean\""); break;
    case LODE__ARG_INT:
    case LODE__ARG_SIZE:
      strbuf_addf(out, "{\"type\":\"integer\",\"minimum\":%llu", (unsigned long long)p->min);
      if (p->max) strbuf_addf(out, ",\"maximum\":%llu", (unsigned long long)p->max);
      break;
    case LODE__ARG_REAL: strbuf_addstr(out, "{\"type\":\"number\""); break;
    case LODE__ARG_JSON: strbuf_addstr(out, "{\"type\":\"object\""); break;
    case LODE__ARG_LIST: strbuf_addstr(out, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}"); break;
    case LODE__ARG_VECTOR:
      strbuf_addf(out, "{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":1,\"maxItems\":%d",
                     LODE_MAX_DIMENSION);
      break;
    case LODE__ARG_VECTORS:
      strbuf_addf(out, "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},"
                          "\"minItems\":1,\"maxItems\":%d}", LODE_MAX_DIMENSION);
      break;
    case LODE__ARG_RECORDS:
      strbuf_addstr(out, "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
                          "\"document\":{\"type\":[\"string\",\"null\"]},\"metadata\":{\"type\":[\"object\",\"null\"]},"
                          "\"embedding\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"number\"}}},\"required\":[\"id\"]}");
      break;
  }
}

struct pieces {
  strbuf *out;
  const lode__param *param;
  size_t n;
};

static bool put_fallback_item(void *ctx, size_t i, lode_str choice) {
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

static void put_fallback(strbuf *out, const lode__param *p) {
  strbuf_addstr(out, ",\"default\":");
  uint64_t bytes = 0;
  if (p->type == LODE__ARG_SIZE && lode__parse_size(str_of(p->fallback), &bytes)) {
    strbuf_addf(out, "%llu", (unsigned long long)bytes);
  } else if (p->type == LODE__ARG_INT || p->type == LODE__ARG_REAL) {
    strbuf_addstr(out, p->fallback);
  } else if (p->type == LODE__ARG_SET) {
    struct pieces pieces = {out, p, 0};
    strbuf_addch(out, '[');
    lode__choices_each(p->choices, put_fallback_item, &pieces);
    strbuf_addch(out, ']');
  } else {
    put(out, p->fallback);
  }
}

void lode__op_input_schema(strbuf *out, const lode__op *op) {
  bool first = true;
  strbuf_addstr(out, "{\"type\":\"object\",\"properties\":{");
  for (const lode__param *p = op->params; p->name; p++) {
    if (p->flags & LODE__PARAM_CLI) continue;
    if (!first) strbuf_addch(out, ',');
    first = false;
    put(out, p->name);
    strbuf_addch(out, ':');
    put_type(out, p);
    strbuf_addstr(out, ",\"description\":");
    put(out, p->about);
    if (p->fallback) put_fallback(out, p);
    strbuf_addch(out, '}');
  }
  strbuf_addstr(out, "},\"required\":[");
  first = true;
  for (const lode__param *p = op->params; p->name; p++) {
    if (!(p->flags & LODE__PARAM_REQUIRED) || (p->flags & LODE__PARAM_CLI)) continue;
    if (!first) strbuf_addch(out, ',');
    first = false;
    put(out, p->name);
  }
  strbuf_addstr(out, "],\"additionalProperties\":false}");
}

/* ---- Answers ---- */

static const char *field_type(lode__field_type type) {
  switch (type) {
    case LODE__FIELD_TEXT: return "string";
    case LODE__FIELD_COUNT:
    case LODE__FIELD_NUMBER:
    case LODE__FIELD_BYTES: return "integer";
    case LODE__FIELD_REAL: return "number";
    case LODE__FIELD_BOOL: return "boolean";
    case LODE__FIELD_OBJECT: return "object";
    case LODE__FIELD_VECTOR:
    case LODE__FIELD_TEXTS: return "array";
    case LODE__FIELD_SCALAR: break;
  }
  return NULL;
}

static void put_field(strbuf *out, const lode__field *f) {
  const char *type = field_type(f->type);
  put(out, f->name);
  if (!type) strbuf_addstr(out, ":{\"type\":[\"string\",\"number\",\"boolean\"]");
  else if (f->flags & LODE__FIELD_NULLABLE) strbuf_addf(out, ":{\"type\":[\"%s\",\"null\"]", type);
  else strbuf_addf(out, ":{\"type\":\"%s\"", type);
  if (f->type == LODE__FIELD_VECTOR) strbuf_addstr(out, ",\"items\":{\"type\":\"number\"}");
  if (f->type == LODE__FIELD_TEXTS) strbuf_addstr(out, ",\"items\":{\"type\":\"string\"}");
  strbuf_addstr(out, ",\"description\":");
  put(out, f->about);
  strbuf_addch(out, '}');
}

/* The properties, and then the names of those that are always there. */
static void put_fields(strbuf *out, const lode__field *fields, bool first) {
  for (const lode__field *f = fields; f && f->name; f++) {
    if (!first) strbuf_addch(out, ',');
    first = false;
    put_field(out, f);
  }
}

static void put_required(strbuf *out, const lode__field *fields, bool first) {
  for (const lode__field *f = fields; f && f->name; f++) {
    if (f->flags & LODE__FIELD_OPTIONAL) continue;
    if (!first) strbuf_addch(out, ',');
    first = false;
    put(out, f->name);
  }
}

void lode__op_output_schema(strbuf *out, const lode__op *op) {
  strbuf_addstr(out, "{\"type\":\"object\",\"properties\":{");
  if (op->row) {
    strbuf_addstr(out, "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{");
    put_fields(out, op->row, true);
    strbuf_addstr(out, "},\"required\":[");
    put_required(out, op->row, true);
    strbuf_addstr(out, "]}}");
  }
  put_fields(out, op->summary, op->row == NULL);
  strbuf_addstr(out, "},\"required\":[");
  if (op->row) strbuf_addstr(out, "\"rows\"");
  put_required(out, op->summary, op->row == NULL);
  strbuf_addstr(out, "]}");
}

void lode__op_schema(strbuf *out, const lode__op *op) {
  bool reads = op->flags & LODE__OP_READS, destroys = op->flags & LODE__OP_DESTROYS;
  strbuf_addstr(out, "{\"name\":\"");
  if (op->group) strbuf_addf(out, "%s_", op->group);
  strbuf_addf(out, "%s\",\"description\":", op->name);
  put(out, op->about);
  strbuf_addstr(out, ",\"inputSchema\":");
  lode__op_input_schema(out, op);
  strbuf_addstr(out, ",\"outputSchema\":");
  lode__op_output_schema(out, op);
  strbuf_addf(out, ",\"annotations\":{\"readOnlyHint\":%s,\"destructiveHint\":%s,\"openWorldHint\":false}}",
                 reads ? "true" : "false", destroys ? "true" : "false");
}
