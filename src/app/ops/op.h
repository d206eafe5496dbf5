/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - the table of operations, from which every front end is derived.
 *
 * An operation has a name, parameters, the fields of its result, and a handler. The parameters are data: JSON Schema,
 * command-line flags, help, completions, manual page and argument checks are all derived from them, so a new operation
 * appears everywhere at once.
 *
 * A handler takes checked, typed arguments and a context. It never prints, exits or reads flags, and does not know
 * which front end called it: it opens the store through the context and sends its result to the context's sink, as
 * rows (one JSON object each) followed by at most one summary (a JSON object).
 */
#ifndef LODE_OPS_OP_H
#define LODE_OPS_OP_H

#include "base/base.h"
#include "base/json.h"
#include "ops/op_stream.h"

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
};

typedef struct op_param {
  const char *name; /* "where_document": a JSON key; the flag is --where-document */
  op_arg_type type;
  unsigned flags;
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
typedef enum op_layout { OP_LAYOUT_AUTO, OP_LAYOUT_HITS, OP_LAYOUT_CHECKS } op_layout;

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
  lode_status (*run)(op_context *ctx, const op_args *args, lode_error *err);
} op_def;

#define OP_MAX_PARAMS 20

/* A table of operations. Its name is the first word of their commands, or NULL if they have none (`lode search`). */
typedef struct op_group {
  const char *name;
  const char *about; /* heading in the help */
  const op_def *ops; /* ends with a NULL name */
} op_group;

extern const op_group op_groups[]; /* ends with NULL ops */
#define OP_EACH_GROUP(g) for (const op_group *g = op_groups; g->ops; g++)
#define OP_EACH(g, op) for (const op_def *op = (g)->ops; op->name; op++)

/* group may be NULL, here and below. */
const op_def *op_find(const char *group, lode_str name);
bool op_same_group(const char *a, const char *b);
bool op_is_group(lode_str word);
/* The entry of `params`, or NULL. */
const op_param *op_param_find(const op_param *params, lode_str name);
/* Calls fn for each of "a|b|c"; stops when it returns false. */
void op_choices_each(const char *choices, bool (*fn)(void *ctx, size_t i, lode_str choice), void *ctx);
/* Position of `text` in "a|b|c", or -1. */
int op_choice_index(const char *choices, lode_str text);

/* May an HTTP request run it? Not servers, not what changes files of this machine or needs a path, and not what
 * returns raw bytes. */
bool op_allowed_over_http(const op_def *op);
/* The operation as HTTP requests see it: without path arguments. `params` receives its parameter list. */
void op_http_view(const op_def *op, op_def *out, op_param params[OP_MAX_PARAMS + 1]);

/* {"name","description","inputSchema","outputSchema","annotations"}: an entry of MCP's tools/list. */
void op_schema(strbuf *out, const op_def *op);
void op_input_schema(strbuf *out, const op_def *op);
void op_output_schema(strbuf *out, const op_def *op);

/* ---- Arguments ---- */

typedef struct op_arg {
  bool set;        /* given by the caller, not a default */
  lode_str text;   /* TEXT, PATH, CHOICE, JSON; paths are NUL-terminated */
  uint64_t number; /* INT, SIZE; FLAG 0 or 1; CHOICE its position; SET bit i = choice i */
  double real;
  lode_str *list; /* LIST */
  size_t n, cap;  /* LIST, VECTOR, VECTORS, RECORDS: count */
  float *vectors; /* VECTOR, VECTORS: row after row */
  uint32_t dimension;
  lode_record *records; /* RECORDS from JSON: n of them */
  op_stream *stream;    /* RECORDS from a command line: JSON lines */
} op_arg;

struct op_args {
  const op_def *op;
  bool flags; /* from a command line: messages call a parameter --like-this */
  op_arg values[OP_MAX_PARAMS];
  mem_arena arena;
  json_doc json;
  const char *stdin_user; /* the parameter that reads standard input: at most one may */
};

void op_args_init(op_args *args, const op_def *op);
void op_args_release(op_args *args);
/* Never NULL; for an unknown name an argument that is not set. */
const op_arg *op_arg_get(const op_args *args, const char *name);
/* From a JSON object, whose text must outlive args. Unknown keys, wrong types and missing arguments are
 * LODE_INVALID. */
lode_status op_args_from_json(op_args *args, lode_str text, lode_error *err);
/* From text, as on a command line. */
lode_status op_args_set_text(op_args *args, const op_param *param, lode_str text, lode_error *err);
/* Appends a word to a text argument that takes the rest of the command line (OP_PARAM_REST). */
lode_status op_args_add_word(op_args *args, op_arg *arg, lode_str word, lode_error *err);
/* Fills in defaults and checks that all required arguments are present. */
lode_status op_args_finish(op_args *args, lode_error *err);
/* "--where" or "where", into buf. */
const char *op_param_label(const op_args *args, const op_param *param, char *buf, size_t size);

/* Decimal digits only. */
bool op_parse_uint(lode_str text, uint64_t *value);
/* 65536, 64K, 64KB, 64KiB, 16M, 1G, 1T (powers of 1,024). */
bool op_parse_size(lode_str text, uint64_t *value);

/* ---- Context ---- */

typedef struct op_sink op_sink;
struct op_sink {
  lode_status (*row)(op_sink *sink, lode_str json, lode_error *err);
  lode_status (*summary)(op_sink *sink, lode_str json, lode_error *err);
  /* Raw bytes, for results that are a file (export); NULL if the front end does not support them. */
  lode_status (*bytes)(op_sink *sink, const void *data, size_t size, lode_error *err);
  /* Makes visible what was sent so far; may be NULL. */
  lode_status (*flush)(op_sink *sink, lode_error *err);
};

typedef struct op_open_options {
  bool write;
  bool brief;          /* a one-command program: background work is left to others */
  bool bulk;           /* a bulk load that ends with lode_optimize() */
  bool create;         /* create the store if it does not exist */
  uint32_t page_bytes; /* page size of a new store */
  const char *folder;  /* folder of the store; NULL: the context's */
} op_open_options;

typedef lode_status op_write_fn(void *ctx, lode_txn *txn, lode_error *err);

#define OP_MAX_ALLOWED_MODELS 64
/* Which models a request may name besides the installed ones and the collection's own. */
typedef struct op_model_policy {
  const lode_str *allowed;
  size_t n;
} op_model_policy;

struct op_context {
  /* Opens the store, or returns one that is already open; release returns it. */
  lode_status (*open)(void *opener, const op_open_options *how, lode_store **store, lode_error *err);
  void (*release)(void *opener, lode_store *store);
  /* LODE_REFUSED if the folder was found and must not be used; `open` checks this itself. NULL: already checked. */
  lode_status (*may_use)(void *opener, lode_error *err);
  /* Runs a small write on the context's own store in a transaction that may be shared with other callers (group
   * commit). NULL: not available, every write is a transaction of its own. */
  lode_status (*write)(void *opener, op_write_fn *write, void *ctx, lode_error *err);
  void *opener;
  const char *folder; /* folder of the store; for OP_PROJECT: NULL unless the caller named one */
  bool found;         /* the folder was found, not named: the rules of project/trust.h apply */
  bool adopted;       /* ... and adopted: models that it names must not leave this machine */
  bool remote;        /* the caller may be on another machine: only the store may be changed, no other files here */
  const op_model_policy *models; /* NULL: any; checked by model_embedder.c */
  uint64_t busy_ms;              /* how long to wait for locks; 0: the default */
  op_sink *sink;
  lode_progress progress;
  /* Asked before a read of this many rows. True: not now; the handler must fail at once and will be run again. May
   * be NULL. */
  bool (*defer_read)(void *ctx, uint64_t rows);
  void *defer_read_ctx;
  void (*note)(void *ctx, const char *text); /* reports what is worth knowing but no failure; may be NULL */
  void *note_ctx;
  const lode_open_options *settings; /* the caller's options for opening stores, for handlers that have another
                                      * process do it */
  const op_stream *input;            /* set by handlers while they read one, so that front ends can show progress */
  strbuf scratch;                    /* for rows; freed by op_run */
  bool nothing;                      /* set by handlers: success, but nothing was found */
  bool damaged;                      /* set by handlers: success, but the result reports damage */
};

/* Runs the handler. */
lode_status op_run(op_context *ctx, const op_args *args, lode_error *err);
/* For handlers that change the store's folder without opening the store: LODE_READONLY if the caller said
 * --read-only. */
lode_status op_check_may_write(const op_context *ctx, lode_error *err);
/* For handlers that use the context's own folder without calling `open`: LODE_REFUSED if it must not be used. */
LODE_MUST lode_status op_check_trust(const op_context *ctx, lode_error *err);
/* LODE_REFUSED for the collections of a project's code index, which only `lode index` writes (indexer/index_owned.h).
 * `folder` is the store's; NULL: the context's. */
LODE_MUST lode_status op_check_may_change(const op_context *ctx, lode_store *store, const char *folder, lode_str name,
                                          lode_error *err);
/* Confirmation before `what` is removed: asks on a terminal unless --yes was given; without a terminal LODE_REFUSED.
 * Remote callers are not asked. */
lode_status op_confirm(const op_context *ctx, const op_args *args, const char *what, lode_error *err);
/* For handlers that may read many rows: LODE_BUSY if they must give up for now. */
lode_status op_admit_read(const op_context *ctx, uint64_t rows, lode_error *err);
__attribute__((format(printf, 2, 3))) void op_note(op_context *ctx, const char *format, ...);

/* ---- Rows: begin, put fields, send ---- */

void op_row_begin(op_context *ctx);
void op_row_text(op_context *ctx, const char *name, lode_str text); /* no data: null */
void op_row_count(op_context *ctx, const char *name, uint64_t n);
void op_row_real(op_context *ctx, const char *name, double d); /* not finite: null */
void op_row_bool(op_context *ctx, const char *name, bool b);
void op_row_json(op_context *ctx, const char *name, lode_str json);                             /* no data: null */
void op_row_vector(op_context *ctx, const char *name, const float *vector, uint32_t dimension); /* NULL: null */
lode_status op_row_send(op_context *ctx, lode_error *err);
lode_status op_row_send_summary(op_context *ctx, lode_error *err);

/* ---- What handlers share ---- */

typedef struct op_target {
  lode_store *store;
  lode_collection *collection;
} op_target;

/* Opens the store and the collection named by args. `options` NULL: the collection must exist. For writing,
 * collections of a code index are LODE_REFUSED. */
lode_status op_target_open(op_context *ctx, const op_args *args, const op_open_options *how,
                           const lode_collection_options *options, op_target *target, lode_error *err);
void op_target_close(op_context *ctx, op_target *target);
/* From the arguments ids, where and where_document. */
lode_selection op_selection_of(const op_args *args);

/* ---- Tables and handlers ---- */

extern const op_def op_table_db[];
extern const op_def op_table_embed[], op_table_model[];
extern const op_def op_table_rescue[], op_table_import[], op_table_chroma[], op_table_export[];
extern const op_def op_table_serve[], op_table_mcp[], op_table_mcp_clients[];
extern const op_def op_table_code[], op_table_config[];

#define OP_HANDLERS_DB(X)                                                                                              \
  X(create)                                                                                                            \
  X(collections) X(rename) X(drop) X(add) X(upsert) X(update) X(get) X(query) X(delete) X(count) X(facets) X(stats)    \
      X(verify) X(salvage) X(backup) X(restore) X(compact) X(optimize) X(export) X(import) X(push) X(pull) X(fill)     \
          X(map)
#define OP_DECLARE_HANDLER(verb) lode_status op_do_##verb(op_context *ctx, const op_args *args, lode_error *err);
OP_HANDLERS_DB(OP_DECLARE_HANDLER)
#define OP_HANDLERS_RESCUE(X) X(rescue_chroma) X(chroma_check) X(chroma_quarantine) X(export_chroma) X(export_npy)
OP_HANDLERS_RESCUE(OP_DECLARE_HANDLER)
OP_DECLARE_HANDLER(serve)
OP_DECLARE_HANDLER(mcp) OP_DECLARE_HANDLER(mcp_install) OP_DECLARE_HANDLER(mcp_remove) OP_DECLARE_HANDLER(ui)
#define OP_HANDLERS_CODE(X)                                                                                            \
  X(setup)                                                                                                             \
  X(index) X(search) X(context) X(status) X(skipped) X(watch) X(doctor) X(reset) X(trust) X(completion) X(config_get)  \
      X(config_set) X(config_list)
    OP_HANDLERS_CODE(OP_DECLARE_HANDLER)
#define OP_HANDLERS_MODEL(X) X(embed) X(model_list) X(model_install) X(model_info) X(model_verify)
        OP_HANDLERS_MODEL(OP_DECLARE_HANDLER)
#undef OP_DECLARE_HANDLER

#endif
