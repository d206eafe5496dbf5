/* SPDX-License-Identifier: Apache-2.0 */
/* op_row.h - rows and summaries of a result, as typed values.
 *
 * A handler begins a row, puts values under the names of the fields that the table declares, and sends it. The sink of
 * the front end gets the values and writes them as it likes: op_row_put_json is the form for programs, op_text.h that
 * for people. In checked builds, a field that is not declared, has another type, comes twice or is missing aborts.
 *
 * Texts and vectors are not copied: they must live until the row is sent. op_row_copy keeps those that would not.
 */
#ifndef LODE_OPS_OP_ROW_H
#define LODE_OPS_OP_ROW_H

#include "ops/op_def.h"

typedef enum op_value_type {
  OP_VALUE_NULL,
  OP_VALUE_TEXT,
  OP_VALUE_COUNT,
  OP_VALUE_REAL,
  OP_VALUE_BOOL,
  OP_VALUE_JSON,
  OP_VALUE_VECTOR,
} op_value_type;

typedef struct op_value {
  const op_field *field;
  op_value_type type;
  union {
    lode_str text; /* JSON too */
    uint64_t count;
    double real;
    bool flag;
    struct {
      const float *data;
      uint32_t dimension;
    } vector;
  } u;
} op_value;

#define OP_MAX_FIELDS 32

typedef struct op_row {
  const op_field *fields; /* as declared; ends with a NULL name */
  bool is_summary;
  bool failed, wrong; /* out of memory; a field that the table does not have */
  op_value values[OP_MAX_FIELDS];
  size_t n;
  mem_arena arena; /* copies; until the next row begins */
} op_row;

/* ---- For handlers ---- */

void op_row_begin(op_context *ctx);
void op_summary_begin(op_context *ctx);
void op_row_text(op_context *ctx, const char *name, lode_str text); /* no data: null */
void op_row_count(op_context *ctx, const char *name, uint64_t n);
void op_row_real(op_context *ctx, const char *name, double d); /* not finite: null */
void op_row_bool(op_context *ctx, const char *name, bool b);
void op_row_json(op_context *ctx, const char *name, lode_str json);                             /* no data: null */
void op_row_vector(op_context *ctx, const char *name, const float *vector, uint32_t dimension); /* NULL: null */
void op_row_null(op_context *ctx, const char *name);
/* A copy that lives until the row is sent. */
lode_str op_row_copy(op_context *ctx, lode_str text);
/* Sends the row or the summary. */
LODE_MUST lode_status op_row_send(op_context *ctx, lode_error *err);

/* ---- For sinks ---- */

/* The value of a field, which may be null; NULL if the row does not have it. */
const op_value *op_row_find(const op_row *row, const char *name);
/* The same, and NULL also for a null. */
const op_value *op_row_get(const op_row *row, const char *name);
/* Empty, or 0, if the row has no such value. */
lode_str op_row_get_text(const op_row *row, const char *name);
uint64_t op_row_get_count(const op_row *row, const char *name);
void op_row_put_json(strbuf *out, const op_row *row);
/* {"error":{"status","message","record"}} */
void op_error_put_json(strbuf *out, const lode_error *err);
void op_value_put_json(strbuf *out, const op_value *value);

#endif
