/* schema.c - JSON Schema of an operation's arguments and answer, from the table. */
#include "op.h"

static void put(lode__buf *out, const char *text) { lode__json_put_string(out, lode__str(text)); }

static bool put_choice(void *ctx, size_t i, lode_str choice) {
  lode__buf *out = ctx;
  if (i) lode__buf_addc(out, ',');
  lode__json_put_string(out, choice);
  return true;
}

static void put_enum(lode__buf *out, const char *choices) {
  lode__buf_adds(out, "{\"type\":\"string\",\"enum\":[");
  lode__choices_each(choices, put_choice, out);
  lode__buf_adds(out, "]}");
}

/* Opens an object that the caller closes. */
static void put_type(lode__buf *out, const lode__param *p) {
  switch (p->type) {
    case LODE__ARG_TEXT:
    case LODE__ARG_PATH:
    case LODE__ARG_LINES: lode__buf_adds(out, "{\"type\":\"string\""); break;
    case LODE__ARG_CHOICE:
      put_enum(out, p->choices);
      out->len -= !out->failed;
      break;
    case LODE__ARG_SET:
      lode__buf_adds(out, "{\"type\":\"array\",\"uniqueItems\":true,\"items\":");
      put_enum(out, p->choices);
      break;
    case LODE__ARG_FLAG: lode__buf_adds(out, "{\"type\":\"boolean\""); break;
    case LODE__ARG_INT:
    case LODE__ARG_SIZE:
      lode__buf_addf(out, "{\"type\":\"integer\",\"minimum\":%llu", (unsigned long long)p->min);
      if (p->max) lode__buf_addf(out, ",\"maximum\":%llu", (unsigned long long)p->max);
      break;
    case LODE__ARG_REAL: lode__buf_adds(out, "{\"type\":\"number\""); break;
    case LODE__ARG_JSON: lode__buf_adds(out, "{\"type\":\"object\""); break;
    case LODE__ARG_LIST: lode__buf_adds(out, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}"); break;
    case LODE__ARG_VECTOR:
      lode__buf_addf(out, "{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":1,\"maxItems\":%d",
                     LODE_MAX_DIMENSION);
      break;
    case LODE__ARG_VECTORS:
      lode__buf_addf(out, "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},"
                          "\"minItems\":1,\"maxItems\":%d}", LODE_MAX_DIMENSION);
      break;
    case LODE__ARG_RECORDS:
      lode__buf_adds(out, "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
                          "\"document\":{\"type\":[\"string\",\"null\"]},\"metadata\":{\"type\":[\"object\",\"null\"]},"
                          "\"embedding\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"number\"}}},\"required\":[\"id\"]}");
      break;
  }
}

struct pieces {
  lode__buf *out;
  const lode__param *param;
  size_t n;
};

static bool put_fallback_item(void *ctx, size_t i, lode_str choice) {
  struct pieces *pieces = ctx;
  lode_str all = lode__str(pieces->param->fallback);
  (void)i;
  for (size_t at = 0; at + choice.len <= all.len; at++) {
    if (memcmp(all.data + at, choice.data, choice.len) != 0) continue;
    if (pieces->n++) lode__buf_addc(pieces->out, ',');
    lode__json_put_string(pieces->out, choice);
    break;
  }
  return true;
}

static void put_fallback(lode__buf *out, const lode__param *p) {
  lode__buf_adds(out, ",\"default\":");
  uint64_t bytes = 0;
  if (p->type == LODE__ARG_SIZE && lode__parse_size(lode__str(p->fallback), &bytes)) {
    lode__buf_addf(out, "%llu", (unsigned long long)bytes);
  } else if (p->type == LODE__ARG_INT || p->type == LODE__ARG_REAL) {
    lode__buf_adds(out, p->fallback);
  } else if (p->type == LODE__ARG_SET) {
    struct pieces pieces = {out, p, 0};
    lode__buf_addc(out, '[');
    lode__choices_each(p->choices, put_fallback_item, &pieces);
    lode__buf_addc(out, ']');
  } else {
    put(out, p->fallback);
  }
}

void lode__op_input_schema(lode__buf *out, const lode__op *op) {
  bool first = true;
  lode__buf_adds(out, "{\"type\":\"object\",\"properties\":{");
  for (const lode__param *p = op->params; p->name; p++) {
    if (p->flags & LODE__PARAM_CLI) continue;
    if (!first) lode__buf_addc(out, ',');
    first = false;
    put(out, p->name);
    lode__buf_addc(out, ':');
    put_type(out, p);
    lode__buf_adds(out, ",\"description\":");
    put(out, p->about);
    if (p->fallback) put_fallback(out, p);
    lode__buf_addc(out, '}');
  }
  lode__buf_adds(out, "},\"required\":[");
  first = true;
  for (const lode__param *p = op->params; p->name; p++) {
    if (!(p->flags & LODE__PARAM_REQUIRED) || (p->flags & LODE__PARAM_CLI)) continue;
    if (!first) lode__buf_addc(out, ',');
    first = false;
    put(out, p->name);
  }
  lode__buf_adds(out, "],\"additionalProperties\":false}");
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

static void put_field(lode__buf *out, const lode__field *f) {
  const char *type = field_type(f->type);
  put(out, f->name);
  if (!type) lode__buf_adds(out, ":{\"type\":[\"string\",\"number\",\"boolean\"]");
  else if (f->flags & LODE__FIELD_NULLABLE) lode__buf_addf(out, ":{\"type\":[\"%s\",\"null\"]", type);
  else lode__buf_addf(out, ":{\"type\":\"%s\"", type);
  if (f->type == LODE__FIELD_VECTOR) lode__buf_adds(out, ",\"items\":{\"type\":\"number\"}");
  if (f->type == LODE__FIELD_TEXTS) lode__buf_adds(out, ",\"items\":{\"type\":\"string\"}");
  lode__buf_adds(out, ",\"description\":");
  put(out, f->about);
  lode__buf_addc(out, '}');
}

/* The properties, and then the names of those that are always there. */
static void put_fields(lode__buf *out, const lode__field *fields, bool first) {
  for (const lode__field *f = fields; f && f->name; f++) {
    if (!first) lode__buf_addc(out, ',');
    first = false;
    put_field(out, f);
  }
}

static void put_required(lode__buf *out, const lode__field *fields, bool first) {
  for (const lode__field *f = fields; f && f->name; f++) {
    if (f->flags & LODE__FIELD_OPTIONAL) continue;
    if (!first) lode__buf_addc(out, ',');
    first = false;
    put(out, f->name);
  }
}

void lode__op_output_schema(lode__buf *out, const lode__op *op) {
  lode__buf_adds(out, "{\"type\":\"object\",\"properties\":{");
  if (op->row) {
    lode__buf_adds(out, "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{");
    put_fields(out, op->row, true);
    lode__buf_adds(out, "},\"required\":[");
    put_required(out, op->row, true);
    lode__buf_adds(out, "]}}");
  }
  put_fields(out, op->summary, op->row == NULL);
  lode__buf_adds(out, "},\"required\":[");
  if (op->row) lode__buf_adds(out, "\"rows\"");
  put_required(out, op->summary, op->row == NULL);
  lode__buf_adds(out, "]}");
}

void lode__op_schema(lode__buf *out, const lode__op *op) {
  bool reads = op->flags & LODE__OP_READS, destroys = op->flags & LODE__OP_DESTROYS;
  lode__buf_adds(out, "{\"name\":\"");
  if (op->group) lode__buf_addf(out, "%s_", op->group);
  lode__buf_addf(out, "%s\",\"description\":", op->name);
  put(out, op->about);
  lode__buf_adds(out, ",\"inputSchema\":");
  lode__op_input_schema(out, op);
  lode__buf_adds(out, ",\"outputSchema\":");
  lode__op_output_schema(out, op);
  lode__buf_addf(out, ",\"annotations\":{\"readOnlyHint\":%s,\"destructiveHint\":%s,\"openWorldHint\":false}}",
                 reads ? "true" : "false", destroys ? "true" : "false");
}
