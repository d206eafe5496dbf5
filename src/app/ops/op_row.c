/* SPDX-License-Identifier: Apache-2.0 */
/* op_row.c - see op_row.h. */
#include "ops/op_row.h"

#include "base/json.h"
#include "ops/op_context.h"

#include <math.h>

/* ---- Making ---- */

static void row_start(op_context *ctx, const op_field *fields, bool is_summary) {
  op_row *row = &ctx->row;
  mem_arena_reset(&row->arena);
  row->fields = fields;
  row->is_summary = is_summary;
  row->failed = row->wrong = false;
  row->n = 0;
}

void op_row_begin(op_context *ctx) { row_start(ctx, ctx->op->row, false); }
void op_summary_begin(op_context *ctx) { row_start(ctx, ctx->op->summary, true); }

static bool row_type_fits(op_field_type field, op_value_type value) {
  switch (field) {
    case OP_FIELD_TEXT: return value == OP_VALUE_TEXT;
    case OP_FIELD_COUNT:
    case OP_FIELD_NUMBER:
    case OP_FIELD_TIME:
    case OP_FIELD_BYTES: return value == OP_VALUE_COUNT;
    case OP_FIELD_REAL: return value == OP_VALUE_REAL;
    case OP_FIELD_BOOL: return value == OP_VALUE_BOOL;
    case OP_FIELD_VECTOR: return value == OP_VALUE_VECTOR;
    case OP_FIELD_OBJECT:
    case OP_FIELD_TEXTS:
    case OP_FIELD_SCALAR: return value == OP_VALUE_JSON;
  }
  return false;
}

/* Fields are mostly put in the order of their declaration, so the search begins after the last one. */
static const op_field *row_field(const op_row *row, const char *name) {
  const op_field *start = row->n ? row->values[row->n - 1].field + 1 : row->fields;
  for (const op_field *f = start; f && f->name; f++)
    if (strcmp(f->name, name) == 0) return f;
  for (const op_field *f = row->fields; f && f < start; f++)
    if (strcmp(f->name, name) == 0) return f;
  return NULL;
}

static const op_value *row_value_of(const op_row *row, const op_field *field) {
  for (size_t i = 0; i < row->n; i++)
    if (row->values[i].field == field) return &row->values[i];
  return NULL;
}

static void row_put(op_context *ctx, const char *name, op_value value) {
  op_row *row = &ctx->row;
  value.field = row_field(row, name);
  bool fits = value.field && (value.type == OP_VALUE_NULL || row_type_fits(value.field->type, value.type)) &&
              !row_value_of(row, value.field) && row->n < OP_MAX_FIELDS;
  if (INVARIANT(fits))
    row->values[row->n++] = value;
  else
    row->wrong = true;
}

void op_row_text(op_context *ctx, const char *name, lode_str text) {
  row_put(ctx, name, (op_value){.type = text.data ? OP_VALUE_TEXT : OP_VALUE_NULL, .u.text = text});
}

void op_row_count(op_context *ctx, const char *name, uint64_t n) {
  row_put(ctx, name, (op_value){.type = OP_VALUE_COUNT, .u.count = n});
}

void op_row_real(op_context *ctx, const char *name, double d) {
  row_put(ctx, name, (op_value){.type = isfinite(d) ? OP_VALUE_REAL : OP_VALUE_NULL, .u.real = d});
}

void op_row_bool(op_context *ctx, const char *name, bool b) {
  row_put(ctx, name, (op_value){.type = OP_VALUE_BOOL, .u.flag = b});
}

void op_row_json(op_context *ctx, const char *name, lode_str json) {
  row_put(ctx, name, (op_value){.type = json.data ? OP_VALUE_JSON : OP_VALUE_NULL, .u.text = json});
}

void op_row_vector(op_context *ctx, const char *name, const float *vector, uint32_t dimension) {
  row_put(ctx, name, (op_value){.type = vector ? OP_VALUE_VECTOR : OP_VALUE_NULL, .u.vector = {vector, dimension}});
}

void op_row_null(op_context *ctx, const char *name) { row_put(ctx, name, (op_value){.type = OP_VALUE_NULL}); }

lode_str op_row_copy(op_context *ctx, lode_str text) {
  op_row *row = &ctx->row;
  if (!text.data) return text;
  lode_str copy = {mem_arena_copy(&row->arena, text.data, text.len), text.len};
  row->failed = row->failed || !copy.data;
  return copy;
}

/* Has the row every field that its table promises, and no null where it promises none? */
static bool row_is_whole(const op_row *row) {
  for (const op_field *f = row->fields; f && f->name; f++) {
    const op_value *v = row_value_of(row, f);
    if (v ? v->type == OP_VALUE_NULL && !(f->flags & OP_FIELD_NULLABLE) && f->type != OP_FIELD_REAL
          : !(f->flags & OP_FIELD_OPTIONAL))
      return false;
  }
  return row->fields != NULL;
}

lode_status op_row_send(op_context *ctx, lode_error *err) {
  op_row *row = &ctx->row;
  if (row->failed) return err_nomem(err);
  ENSURE(!row->wrong, err);
  bool whole = INVARIANT(row_is_whole(row));
  (void)whole; /* a release build sends it all the same */
  return row->is_summary ? ctx->sink->summary(ctx->sink, row, err) : ctx->sink->row(ctx->sink, row, err);
}

/* ---- Reading ---- */

const op_value *op_row_find(const op_row *row, const char *name) {
  for (size_t i = 0; i < row->n; i++)
    if (strcmp(row->values[i].field->name, name) == 0) return &row->values[i];
  return NULL;
}

const op_value *op_row_get(const op_row *row, const char *name) {
  const op_value *v = op_row_find(row, name);
  return v && v->type != OP_VALUE_NULL ? v : NULL;
}

lode_str op_row_get_text(const op_row *row, const char *name) {
  const op_value *v = op_row_find(row, name);
  return v && v->type == OP_VALUE_TEXT ? v->u.text : (lode_str){"", 0};
}

uint64_t op_row_get_count(const op_row *row, const char *name) {
  const op_value *v = op_row_find(row, name);
  return v && v->type == OP_VALUE_COUNT ? v->u.count : 0;
}

void op_value_put_json(strbuf *out, const op_value *value) {
  switch (value->type) {
    case OP_VALUE_NULL: strbuf_addstr(out, "null"); break;
    case OP_VALUE_TEXT: json_put_string(out, value->u.text); break;
    case OP_VALUE_COUNT: strbuf_addf(out, "%llu", (unsigned long long)value->u.count); break;
    case OP_VALUE_REAL: json_put_double(out, value->u.real); break;
    case OP_VALUE_BOOL: strbuf_addstr(out, value->u.flag ? "true" : "false"); break;
    case OP_VALUE_JSON: strbuf_add(out, value->u.text.data, value->u.text.len); break;
    case OP_VALUE_VECTOR: json_put_vector(out, value->u.vector.data, value->u.vector.dimension); break;
  }
}

void op_row_put_json(strbuf *out, const op_row *row) {
  strbuf_addch(out, '{');
  for (size_t i = 0; i < row->n; i++) {
    if (i) strbuf_addch(out, ',');
    json_put_string(out, str_of(row->values[i].field->name));
    strbuf_addch(out, ':');
    op_value_put_json(out, &row->values[i]);
  }
  strbuf_addch(out, '}');
}

void op_error_put_json(strbuf *out, const lode_error *err) {
  strbuf_addf(out, "{\"error\":{\"status\":\"%s\",\"message\":", lode_status_name(err->status));
  json_put_string(out, str_of(err->text[0] ? err->text : lode_status_text(err->status)));
  if (err->record != LODE_NO_RECORD) strbuf_addf(out, ",\"record\":%zu", err->record);
  strbuf_addstr(out, "}}");
}
