/* SPDX-License-Identifier: Apache-2.0 */
/* op_args.c - typed arguments of an operation, checked against its parameters; from JSON here, from text in
 * op_args_text.c.
 *
 * Lists and records of a JSON request are not copied: their strings point into args->json or into the request's text,
 * which outlive the call. Copies live in args->arena; arrays of lists, vectors and records are freed by
 * op_args_release.
 */
#include "ops/op_args.h"

#include "ops/suggest.h"

#include <float.h>
#include <math.h>

lode_status op_args_init(op_args *args, const op_def *op, lode_error *err) {
  memset(args, 0, sizeof *args);
  args->op = op;
  mem_arena_init(&args->arena, 0);
  args->values = mem_arena_alloc(&args->arena, op->args_size);
  if (!args->values) return err_nomem(err);
  memset(args->values, 0, op->args_size);
  return LODE_OK;
}

static void args_free_stream(op_stream *stream) {
  if (stream) op_stream_close(stream);
  mem_free(stream);
}

static void args_free_value(const op_args *args, const op_param *p) {
  void *arg = op_args_at(args, p);
  switch (p->type) {
    case OP_ARG_LIST: mem_free(((op_arg_list *)arg)->items); break;
    case OP_ARG_LINES: args_free_stream(((op_arg_lines *)arg)->stream); break;
    case OP_ARG_VECTOR:
    case OP_ARG_VECTORS: mem_free(((op_arg_vectors *)arg)->values); break;
    case OP_ARG_RECORDS:
      mem_free(((op_arg_records *)arg)->records);
      args_free_stream(((op_arg_records *)arg)->stream);
      break;
    default: break;
  }
}

void op_args_release(op_args *args) {
  for (const op_param *p = args->values ? args->op->params : NULL; p && p->name; p++) args_free_value(args, p);
  json_release(&args->json);
  mem_arena_release(&args->arena);
  memset(args, 0, sizeof *args);
}

void *op_args_at(const op_args *args, const op_param *param) { return (char *)args->values + param->offset; }

bool op_args_is_set(const op_args *args, const op_param *param) { return *(const bool *)op_args_at(args, param); }

void op_args_mark_set(op_args *args, const op_param *param, bool set) { *(bool *)op_args_at(args, param) = set; }

const void *op_args_find(const op_args *args, const char *name, op_arg_type type) {
  const op_param *param = op_param_find(args->op->params, str_of(name));
  return param && INVARIANT(param->type == type) ? op_args_at(args, param) : NULL;
}

const char *op_param_label(const op_args *args, const op_param *param, char *buf, size_t size) {
  if (!args->flags)
    snprintf(buf, size, "\"%s\"", param->name);
  else if (param->flags & OP_PARAM_POSITIONAL)
    snprintf(buf, size, "%s", param->value);
  else if (param->letter && param->name[1] == '\0')
    snprintf(buf, size, "-%c", param->letter);
  else {
    size_t n = (size_t)snprintf(buf, size, "--%s", param->name);
    for (size_t i = 0; i < n && i < size; i++)
      if (buf[i] == '_') buf[i] = '-';
  }
  return buf;
}

/* ---- Numbers ---- */

bool op_parse_uint(lode_str text, uint64_t *value) {
  uint64_t v = 0;
  if (text.len == 0) return false;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(text.data[i] - '0'), &v))
      return false;
  }
  *value = v;
  return true;
}

bool op_parse_size(lode_str text, uint64_t *value) {
  static const char units[] = "KMGT";
  unsigned shift = 0;
  size_t len = text.len;
  if (len && (text.data[len - 1] == 'B' || text.data[len - 1] == 'b')) len--;
  bool binary = len && len < text.len && text.data[len - 1] == 'i';
  if (binary) len--;
  if (len) {
    char c = text.data[len - 1];
    const char *unit = strchr(units, c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    if (unit && c) {
      shift = 10u * (unsigned)(unit - units + 1);
      len--;
    }
  }
  if (binary && !shift) return false;
  uint64_t v;
  if (!op_parse_uint((lode_str){text.data, len}, &v) || (v << shift) >> shift != v) return false;
  *value = v << shift;
  return true;
}

/* ---- JSON ---- */

static lode_status args_wrong_type(const op_args *args, const op_param *param, const char *wanted, lode_error *err) {
  char label[80];
  return err_set(err, LODE_INVALID, "%s must be %s", op_param_label(args, param, label, sizeof label), wanted);
}

/* A subtree as JSON text in the arena. */
static lode_status args_copy_node(op_args *args, uint32_t node, lode_str *out, lode_error *err) {
  strbuf text = {0};
  json_put_node(&text, &args->json, node);
  out->data = text.failed ? NULL : mem_arena_copy(&args->arena, text.data, text.len);
  out->len = out->data ? text.len : 0;
  strbuf_release(&text);
  return out->data ? LODE_OK : err_nomem(err);
}

static bool args_node_to_float(const json_node *x, float *out) {
  if (x->type != JSON_NODE_INT && x->type != JSON_NODE_DOUBLE) return false;
  double d = x->type == JSON_NODE_INT ? (double)x->u.i : x->u.d;
  if (!(fabs(d) <= FLT_MAX)) return false;
  *out = (float)d;
  return true;
}

static lode_status args_json_list(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_doc *json = &args->json;
  op_arg_list *arg = op_args_at(args, param);
  if (json->nodes[node].type != JSON_NODE_ARRAY) return args_wrong_type(args, param, "an array of strings", err);
  size_t count = json->nodes[node].u.count;
  if (!mem_grow(&arg->items, &arg->cap, count ? count : 1, sizeof *arg->items)) return err_nomem(err);
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i].next) {
    if (json->nodes[i].type != JSON_NODE_STRING) return args_wrong_type(args, param, "an array of strings", err);
    arg->items[arg->n++] = json->nodes[i].u.s;
  }
  return LODE_OK;
}

static lode_status args_json_set(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_doc *json = &args->json;
  op_arg_set *arg = op_args_at(args, param);
  char wanted[200];
  snprintf(wanted, sizeof wanted, "an array of %s", param->choices);
  if (json->nodes[node].type != JSON_NODE_ARRAY) return args_wrong_type(args, param, wanted, err);
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i].next) {
    int at = json->nodes[i].type == JSON_NODE_STRING ? op_choice_index(param->choices, json->nodes[i].u.s) : -1;
    if (at < 0) return args_wrong_type(args, param, wanted, err);
    arg->bits |= UINT64_C(1) << at;
  }
  return LODE_OK;
}

static lode_status args_json_floats(op_args *args, const op_param *param, uint32_t node, float *out, lode_error *err) {
  const json_doc *json = &args->json;
  size_t n = 0;
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i].next) {
    if (!args_node_to_float(&json->nodes[i], &out[n++]))
      return args_wrong_type(args, param, "numbers that fit 32-bit floats", err);
  }
  return LODE_OK;
}

/* One vector, or an array of vectors of one dimension. */
static lode_status args_json_vectors(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_doc *json = &args->json;
  op_arg_vectors *arg = op_args_at(args, param);
  bool many = param->type == OP_ARG_VECTORS;
  const char *wanted = many ? "an array of arrays of numbers, all of one length" : "an array of numbers";
  if (json->nodes[node].type != JSON_NODE_ARRAY || json->nodes[node].u.count == 0)
    return args_wrong_type(args, param, wanted, err);
  uint32_t first = many ? node + 1 : node;
  size_t rows = many ? json->nodes[node].u.count : 1, size;
  if (json->nodes[first].type != JSON_NODE_ARRAY) return args_wrong_type(args, param, wanted, err);
  size_t dimension = json->nodes[first].u.count;
  if (dimension == 0 || dimension > LODE_MAX_DIMENSION)
    return args_wrong_type(args, param, "of 1 to 65,535 numbers", err);
  if (mem_mul_overflow(rows, dimension * sizeof(float), &size)) return err_nomem(err);
  arg->values = mem_alloc(size);
  if (!arg->values) return err_nomem(err);
  for (uint32_t i = first; arg->n < rows; i = json->nodes[i].next) {
    if (json->nodes[i].type != JSON_NODE_ARRAY || json->nodes[i].u.count != dimension)
      return args_wrong_type(args, param, wanted, err);
    TRY(args_json_floats(args, param, i, arg->values + arg->n * dimension, err));
    arg->n++;
  }
  arg->dimension = (uint32_t)dimension;
  return LODE_OK;
}

/* ---- Records of a request ---- */

static lode_status args_record_vector(op_args *args, uint32_t node, size_t at, lode_record *record, lode_error *err) {
  const json_doc *json = &args->json;
  size_t dimension = json->nodes[node].u.count, n = 0;
  if (json->nodes[node].type != JSON_NODE_ARRAY || dimension == 0 || dimension > LODE_MAX_DIMENSION)
    return err_set_at(err, LODE_REFUSED, at, "record %zu: the embedding must be an array of 1 to 65,535 numbers", at);
  float *vector = mem_arena_alloc(&args->arena, dimension * sizeof *vector);
  if (!vector) return err_nomem(err);
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i].next)
    if (!args_node_to_float(&json->nodes[i], &vector[n++]))
      return err_set_at(err, LODE_REFUSED, at, "record %zu: the embedding must hold numbers that fit 32-bit floats",
                        at);
  record->vector = vector;
  record->dimension = (uint32_t)dimension;
  return LODE_OK;
}

static lode_status args_record_part(op_args *args, lode_str key, uint32_t node, size_t at, lode_record *record,
                                    lode_error *err) {
  const json_node *x = &args->json.nodes[node];
  char quoted[256];
  bool id = str_eq(key, STR_LIT("id")), document = str_eq(key, STR_LIT("document"));
  if (x->type == JSON_NODE_NULL) return LODE_OK;
  if (str_eq(key, STR_LIT("embedding"))) return args_record_vector(args, node, at, record, err);
  if (str_eq(key, STR_LIT("metadata"))) {
    if (x->type != JSON_NODE_OBJECT)
      return err_set_at(err, LODE_REFUSED, at, "record %zu: the metadata must be an object", at);
    return args_copy_node(args, node, &record->metadata, err);
  }
  str_quote(key, quoted, sizeof quoted);
  if (!id && !document)
    return err_set_at(err, LODE_REFUSED, at, "record %zu has a key %s; there are id, document, metadata and embedding",
                      at, quoted);
  if (x->type != JSON_NODE_STRING)
    return err_set_at(err, LODE_REFUSED, at, "record %zu: %s must be a string", at, quoted);
  *(id ? &record->id : &record->document) = x->u.s;
  return LODE_OK;
}

/* Checks the form only; the store decides what may be written. */
static lode_status args_json_records(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_doc *json = &args->json;
  op_arg_records *arg = op_args_at(args, param);
  if (json->nodes[node].type != JSON_NODE_ARRAY) return args_wrong_type(args, param, "an array of records", err);
  arg->records = mem_calloc(json->nodes[node].u.count, sizeof *arg->records);
  if (!arg->records) return err_nomem(err);
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i].next, arg->n++) {
    if (json->nodes[i].type != JSON_NODE_OBJECT)
      return err_set_at(err, LODE_REFUSED, arg->n, "record %zu must be an object", arg->n);
    for (uint32_t k = i + 1; k < json->nodes[i].next; k = json->nodes[k + 1].next)
      TRY(args_record_part(args, json->nodes[k].u.s, k + 1, arg->n, &arg->records[arg->n], err));
    if (!arg->records[arg->n].id.data) return err_set_at(err, LODE_REFUSED, arg->n, "record %zu has no id", arg->n);
  }
  return LODE_OK;
}

/* ---- One argument ---- */

static lode_status args_json_object(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  if (args->json.nodes[node].type != JSON_NODE_OBJECT) return args_wrong_type(args, param, "an object", err);
  return args_copy_node(args, node, &((op_arg_json *)op_args_at(args, param))->text, err);
}

static lode_status args_json_number(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_node *x = &args->json.nodes[node];
  void *arg = op_args_at(args, param);
  if (param->type == OP_ARG_REAL) {
    if (x->type != JSON_NODE_INT && x->type != JSON_NODE_DOUBLE) return args_wrong_type(args, param, "a number", err);
    ((op_arg_real *)arg)->x = x->type == JSON_NODE_INT ? (double)x->u.i : x->u.d;
    return LODE_OK;
  }
  if (x->type != JSON_NODE_INT || x->u.i < 0) return args_wrong_type(args, param, "a non-negative whole number", err);
  if (param->type == OP_ARG_INT)
    ((op_arg_int *)arg)->n = (uint64_t)x->u.i;
  else
    ((op_arg_size *)arg)->bytes = (uint64_t)x->u.i;
  return LODE_OK;
}

static lode_status args_json_string(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_node *x = &args->json.nodes[node];
  if (x->type != JSON_NODE_STRING) return args_wrong_type(args, param, "a string", err);
  return op_args_set_text(args, param, x->u.s, err);
}

static lode_status args_json_value(op_args *args, const op_param *param, uint32_t node, lode_error *err) {
  const json_node *x = &args->json.nodes[node];
  if (x->type == JSON_NODE_NULL) return LODE_OK;
  if (op_args_is_set(args, param)) return args_wrong_type(args, param, "given once", err);
  op_args_mark_set(args, param, true);
  switch (param->type) {
    case OP_ARG_TEXT:
    case OP_ARG_PATH:
    case OP_ARG_CHOICE: return args_json_string(args, param, node, err);
    case OP_ARG_FLAG:
      if (x->type != JSON_NODE_TRUE && x->type != JSON_NODE_FALSE)
        return args_wrong_type(args, param, "true or false", err);
      ((op_arg_flag *)op_args_at(args, param))->on = x->type == JSON_NODE_TRUE;
      return LODE_OK;
    case OP_ARG_INT:
    case OP_ARG_SIZE:
    case OP_ARG_REAL: return args_json_number(args, param, node, err);
    case OP_ARG_SET: return args_json_set(args, param, node, err);
    case OP_ARG_LIST: return args_json_list(args, param, node, err);
    case OP_ARG_JSON: return args_json_object(args, param, node, err);
    case OP_ARG_VECTOR:
    case OP_ARG_VECTORS: return args_json_vectors(args, param, node, err);
    case OP_ARG_RECORDS: return args_json_records(args, param, node, err);
    case OP_ARG_LINES: break;
  }
  return err_internal(err, "parameter %s has no form in JSON", param->name);
}

static lode_status args_unknown_key(const op_args *args, lode_str key, lode_error *err) {
  char quoted[256];
  op_suggest best;
  op_suggest_init(&best, key);
  for (const op_param *p = args->op->params; p->name; p++)
    if (!(p->flags & OP_PARAM_CLI_ONLY)) op_suggest_try(&best, str_of(p->name));
  str_quote(key, quoted, sizeof quoted);
  if (best.found)
    return err_set(err, LODE_INVALID, "%s has no argument %s; did you mean \"%s\"?", args->op->name, quoted, best.text);
  return err_set(err, LODE_INVALID, "%s has no argument %s", args->op->name, quoted);
}

lode_status op_args_from_json(op_args *args, lode_str text, lode_error *err) {
  json_doc *json = &args->json;
  TRY(json_parse(json, text, NULL, err));
  if (json->nodes[0].type != JSON_NODE_OBJECT)
    return err_set(err, LODE_INVALID, "the arguments must be one JSON object");
  for (uint32_t i = 1; i < json->nodes[0].next; i = json->nodes[i + 1].next) {
    const op_param *param = op_param_find(args->op->params, json->nodes[i].u.s);
    if (!param || (param->flags & OP_PARAM_CLI_ONLY)) return args_unknown_key(args, json->nodes[i].u.s, err);
    TRY(args_json_value(args, param, i + 1, err));
  }
  return op_args_finish(args, err);
}

/* ---- Checks for both sources ---- */

static lode_status args_check_range(const op_args *args, const op_param *param, lode_error *err) {
  char label[80];
  if (param->type != OP_ARG_INT || !op_args_is_set(args, param)) return LODE_OK;
  uint64_t n = ((const op_arg_int *)op_args_at(args, param))->n;
  if (n >= param->min && (param->max == 0 || n <= param->max)) return LODE_OK;
  op_param_label(args, param, label, sizeof label);
  if (param->max)
    return err_set(err, LODE_INVALID, "%s must be %llu to %llu", label, (unsigned long long)param->min,
                   (unsigned long long)param->max);
  return err_set(err, LODE_INVALID, "%s must be at least %llu", label, (unsigned long long)param->min);
}

static lode_status args_missing(const op_args *args, const op_param *param, lode_error *err) {
  const char *group = args->op->group ? args->op->group : "", *space = args->op->group ? " " : "";
  char label[80];
  op_param_label(args, param, label, sizeof label);
  if (!args->flags) return err_set(err, LODE_INVALID, "%s needs %s: %s", args->op->name, label, param->about);
  if (param->choices)
    return err_set(err, LODE_INVALID, "lode %s%s%s needs %s, one of %s; see: lode %s%s%s --help", group, space,
                   args->op->name, label, param->choices, group, space, args->op->name);
  return err_set(err, LODE_INVALID, "lode %s%s%s needs %s, %s; see: lode %s%s%s --help", group, space, args->op->name,
                 label, param->about, group, space, args->op->name);
}

lode_status op_args_finish(op_args *args, lode_error *err) {
  for (const op_param *p = args->op->params; p->name; p++) {
    bool set = op_args_is_set(args, p);
    if (!set && p->fallback) {
      TRY(op_args_set_text(args, p, str_of(p->fallback), err));
      op_args_mark_set(args, p, false);
    }
    if (!set && (p->flags & OP_PARAM_REQUIRED)) return args_missing(args, p, err);
    TRY(args_check_range(args, p, err));
  }
  return LODE_OK;
}
