/* SPDX-License-Identifier: Apache-2.0 */
/* op_def.h - what an operation is: its parameters, the fields of its result, its texts and its handler.
 *
 * The table of operations (table/op_table_*.c) is made of these. JSON Schema, command-line flags, help, completions,
 * manual page and argument checks are all derived from it, so a new operation appears everywhere at once.
 *
 * A handler takes checked, typed arguments and a context. It never prints, exits or reads flags, and does not know
 * which front end called it: it opens the store through the context (op_context.h) and sends its result to the
 * context's sink, as rows followed by at most one summary (op_row.h).
 */
#ifndef LODE_OPS_OP_DEF_H
#define LODE_OPS_OP_DEF_H

#include "base/base.h"

/* ---- Parameters ---- */

typedef enum op_arg_type {
  OP_ARG_TEXT,
  OP_ARG_PATH,
  OP_ARG_CHOICE, /* one of `choices` */
  OP_ARG_SET,    /* some of `choices`; as JSON an array, as a flag a,b or all or none */
  OP_ARG_FLAG,
  OP_ARG_INT,  /* min to max */
  OP_ARG_SIZE, /* bytes; as a flag also 64K, 16M, 1G */
  OP_ARG_REAL,
  OP_ARG_JSON,    /* an object; as a flag the text, @FILE or - */
  OP_ARG_LIST,    /* strings; as a flag a,b or a JSON array; repeated flags accumulate */
  OP_ARG_LINES,   /* command line only: a file with one string per line, appended to the list named by `into`;
                   * without `into` the operation reads the file itself (op_lines) */
  OP_ARG_VECTOR,  /* numbers; as a flag the JSON text, @FILE or - */
  OP_ARG_VECTORS, /* arrays of numbers; as a flag a file: .npy, .fvecs, or JSON */
  OP_ARG_RECORDS, /* objects {"id","document","metadata","embedding"}; as a flag a file of JSON lines, or - */
} op_arg_type;

enum {
  OP_PARAM_REQUIRED = 1,
  OP_PARAM_POSITIONAL = 2, /* command line: given by position; a LIST takes all remaining words */
  OP_PARAM_CLI_ONLY = 4,   /* on the command line only */
  OP_PARAM_REST = 8,       /* a positional text: further words of the command line are appended, separated by spaces */
  OP_PARAM_EITHER = 16,    /* command line: a flag that may also be given by position */
};

typedef struct op_param {
  const char *name; /* "where_document": a JSON key; the flag is --where-document */
  op_arg_type type;
  unsigned flags;
  size_t offset;        /* of the argument in the operation's struct of arguments */
  size_t args_size;     /* of that struct: equal to the operation's */
  char letter;          /* 'k' for -k, or 0 */
  const char *value;    /* placeholder for the value in help: "JSON" */
  const char *choices;  /* "l2|cosine|ip" */
  const char *fallback; /* default value, as text; shown by help and schema */
  const char *into;     /* OP_ARG_LINES: the list that is filled, or NULL */
  uint64_t min, max;    /* OP_ARG_INT; max 0 = no bound */
  const char *about;
} op_param;

/* ---- Results ---- */

typedef enum op_field_type {
  OP_FIELD_TEXT,
  OP_FIELD_COUNT,
  OP_FIELD_NUMBER,
  OP_FIELD_BYTES,
  OP_FIELD_TIME, /* milliseconds since 1970, 0: unknown; its name ends with _ms. People see a date */
  OP_FIELD_REAL,
  OP_FIELD_BOOL,
  OP_FIELD_OBJECT,
  OP_FIELD_VECTOR,
  OP_FIELD_TEXTS,
  OP_FIELD_SCALAR,
} op_field_type;

enum {
  OP_FIELD_NULLABLE = 1,
  OP_FIELD_OPTIONAL = 2, /* may be left out */
  OP_FIELD_DETAIL = 4,   /* people see it with --verbose only */
  OP_FIELD_QUIET = 8,    /* ... also where it is null or 0 */
};

typedef struct op_field {
  const char *name;
  op_field_type type;
  unsigned flags;
  const char *about;
} op_field;

/* ---- Operations ---- */

enum {
  OP_READ_ONLY = 1,     /* never writes: the store is opened read-only */
  OP_DESTRUCTIVE = 2,   /* may remove data */
  OP_LONG = 4,          /* reports progress and can be cancelled */
  OP_LOCAL = 8,         /* reads or writes files of this machine: not for remote callers */
  OP_HIDE_SUMMARY = 16, /* the command line's JSON output has the rows only */
  OP_SERVER = 32,       /* is a server: runs until stopped, and only from a command line */
  OP_NO_HTTP = 64,      /* lists files of this machine: not over HTTP */
  OP_PROJECT = 128,     /* works on the code of a project: finds its store itself */
  OP_PAGED = 256,       /* long output on a terminal goes through a pager */
};

typedef struct op_context op_context;
typedef struct op_args op_args;

/* How rows are shown as text. */
typedef enum op_layout {
  OP_LAYOUT_AUTO,
  OP_LAYOUT_HITS,
  OP_LAYOUT_CHECKS,
  OP_LAYOUT_OUTLINE, /* definitions below their files */
  OP_LAYOUT_DEFINITIONS,
  OP_LAYOUT_USES,
  OP_LAYOUT_CALLERS, /* trees */
  OP_LAYOUT_CALLEES,
} op_layout;

typedef struct op_def {
  const char *group; /* "db", or NULL */
  const char *name;
  const char *about;  /* one line */
  const char *detail; /* paragraphs, or NULL */
  unsigned flags;
  const op_param *params;  /* ends with a NULL name */
  const op_field *row;     /* fields of the rows, or NULL when there are none */
  const op_field *summary; /* fields of the summary, or NULL */
  const char *say;         /* the summary as text: {field}; [ ] is left out when a field in it is blank */
  const char *examples;    /* lines: commands, and comments that begin with # */
  op_layout layout;
  size_t args_size; /* of the struct of arguments */
  lode_status (*run)(op_context *ctx, const void *args, lode_error *err);
} op_def;

#define OP_MAX_PARAMS 20

/* The entry of `params`, or NULL. */
const op_param *op_param_find(const op_param *params, lode_str name);
/* Calls fn for each of "a|b|c"; stops when it returns false. */
void op_choices_each(const char *choices, bool (*fn)(void *ctx, size_t i, lode_str choice), void *ctx);
/* Position of `text` in "a|b|c", or -1. */
int op_choice_index(const char *choices, lode_str text);

#endif
