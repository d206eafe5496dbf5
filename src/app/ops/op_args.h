/* SPDX-License-Identifier: Apache-2.0 */
/* op_args.h - typed arguments of an operation.
 *
 * Each operation has a struct of arguments (table/op_args_*.h), with one member for each of its parameters. Its rows in
 * the table are made by the macros below, which take name and place from the member and check its type, so a row and
 * its member cannot disagree. Front ends fill the struct through the table, and the handler gets it checked:
 *
 *   typedef struct op_count_args {
 *     op_arg_text collection;
 *   } op_count_args;
 *
 *   static const op_param params_count[] = {
 *       {OP_TEXT(op_count_args, collection), .flags = OP_PARAM_REQUIRED, .about = "name of the collection"}, {0}};
 *
 *   lode_status op_do_count(op_context *ctx, const op_count_args *args, lode_error *err);
 */
#ifndef LODE_OPS_OP_ARGS_H
#define LODE_OPS_OP_ARGS_H

#include "base/json.h"
#include "ops/op_def.h"
#include "ops/op_stream.h"

#include <stddef.h>

/* ---- Values ---- */

/* `set`, always the first member: given by the caller. A default fills the rest and leaves it false. */
typedef struct op_arg_text {
  bool set;
  lode_str text;
} op_arg_text;
typedef struct op_arg_path {
  bool set;
  const char *path; /* NULL: not given, and there is no default */
} op_arg_path;
typedef struct op_arg_choice {
  bool set;
  uint32_t index;
  lode_str text;
} op_arg_choice;
typedef struct op_arg_set {
  bool set;
  uint64_t bits; /* bit i: choice i */
} op_arg_set;
typedef struct op_arg_flag {
  bool set, on;
} op_arg_flag;
typedef struct op_arg_int {
  bool set;
  uint64_t n;
} op_arg_int;
typedef struct op_arg_size {
  bool set;
  uint64_t bytes;
} op_arg_size;
typedef struct op_arg_real {
  bool set;
  double x;
} op_arg_real;
typedef struct op_arg_json {
  bool set;
  lode_str text;
} op_arg_json;
typedef struct op_arg_list {
  bool set;
  lode_str *items;
  size_t n, cap;
} op_arg_list;
typedef struct op_arg_lines {
  bool set;
  op_stream *stream; /* NULL if the lines went into a list */
} op_arg_lines;
typedef struct op_arg_vectors {
  bool set;
  float *values; /* row after row */
  size_t n;
  uint32_t dimension;
} op_arg_vectors; /* OP_ARG_VECTOR too */
typedef struct op_arg_records {
  bool set;
  lode_record *records; /* of a request: n of them */
  size_t n;
  op_stream *stream; /* of a command line: JSON lines */
} op_arg_records;

/* ---- Rows of the table: {OP_INT(op_query_args, k), .min = 1, ...} ---- */

#define OP_PARAM_OF(arg_type, c_type, args, member, label)                                                             \
  .name = label, .type = arg_type, .args_size = sizeof(args),                                                          \
  .offset = _Generic(((args *)0)->member, c_type                                                                       \
                     : offsetof(args, member))
#define OP_TEXT(args, member) OP_TEXT_AS(args, member, #member)
#define OP_TEXT_AS(args, member, label) OP_PARAM_OF(OP_ARG_TEXT, op_arg_text, args, member, label)
#define OP_PATH(args, member) OP_PARAM_OF(OP_ARG_PATH, op_arg_path, args, member, #member)
#define OP_CHOICE(args, member) OP_PARAM_OF(OP_ARG_CHOICE, op_arg_choice, args, member, #member)
#define OP_SET(args, member) OP_PARAM_OF(OP_ARG_SET, op_arg_set, args, member, #member)
#define OP_FLAG(args, member) OP_PARAM_OF(OP_ARG_FLAG, op_arg_flag, args, member, #member)
#define OP_INT(args, member) OP_PARAM_OF(OP_ARG_INT, op_arg_int, args, member, #member)
#define OP_SIZE(args, member) OP_PARAM_OF(OP_ARG_SIZE, op_arg_size, args, member, #member)
#define OP_REAL(args, member) OP_PARAM_OF(OP_ARG_REAL, op_arg_real, args, member, #member)
#define OP_JSON(args, member) OP_PARAM_OF(OP_ARG_JSON, op_arg_json, args, member, #member)
#define OP_LIST(args, member) OP_PARAM_OF(OP_ARG_LIST, op_arg_list, args, member, #member)
#define OP_LINES(args, member) OP_PARAM_OF(OP_ARG_LINES, op_arg_lines, args, member, #member)
#define OP_VECTOR(args, member) OP_PARAM_OF(OP_ARG_VECTOR, op_arg_vectors, args, member, #member)
#define OP_VECTORS(args, member) OP_PARAM_OF(OP_ARG_VECTORS, op_arg_vectors, args, member, #member)
#define OP_RECORDS(args, member) OP_PARAM_OF(OP_ARG_RECORDS, op_arg_records, args, member, #member)

/* ---- Filling and checking ---- */

struct op_args {
  const op_def *op;
  bool flags;   /* from a command line: messages call a parameter --like-this */
  void *values; /* the operation's struct; in the arena */
  mem_arena arena;
  json_doc json;
  const char *stdin_user; /* the parameter that reads standard input: at most one may */
};

/* After a failure too, the arguments must be released. */
LODE_MUST lode_status op_args_init(op_args *args, const op_def *op, lode_error *err);
void op_args_release(op_args *args);
/* The argument of a parameter; it has the type that the parameter's type says. */
void *op_args_at(const op_args *args, const op_param *param);
bool op_args_is_set(const op_args *args, const op_param *param);
void op_args_mark_set(op_args *args, const op_param *param, bool set);
/* For code that works with any operation: the argument of this name and type, or NULL if the operation has none. */
const void *op_args_find(const op_args *args, const char *name, op_arg_type type);
/* From a JSON object, whose text must outlive args. Unknown keys, wrong types and missing arguments are
 * LODE_INVALID. */
LODE_MUST lode_status op_args_from_json(op_args *args, lode_str text, lode_error *err);
/* From text, as on a command line. */
LODE_MUST lode_status op_args_set_text(op_args *args, const op_param *param, lode_str text, lode_error *err);
/* A word given by position: an item of a list, or one more word of a text that takes the rest of the command line
 * (OP_PARAM_REST). */
LODE_MUST lode_status op_args_add_word(op_args *args, const op_param *param, lode_str word, lode_error *err);
/* Fills in defaults and checks that all required arguments are present. */
LODE_MUST lode_status op_args_finish(op_args *args, lode_error *err);
/* "--where" or "where", into buf. */
const char *op_param_label(const op_args *args, const op_param *param, char *buf, size_t size);

/* Decimal digits only. */
LODE_MUST bool op_parse_uint(lode_str text, uint64_t *value);
/* 65536, 64K, 64KB, 64KiB, 16M, 1G, 1T (powers of 1,024). */
LODE_MUST bool op_parse_size(lode_str text, uint64_t *value);

#endif
