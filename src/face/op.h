/* op.h - the one table of operations, from which every face is made.
 *
 * An operation has a name, parameters, the fields of its answer, and a handler. The parameters are data: JSON Schema,
 * command-line flags, help, completions, manual page and the check of arguments are all derived from them, so
 * that a new operation appears everywhere at once and nothing can drift.
 *
 * A handler takes checked, typed arguments and a context. It never prints, exits, reads flags or knows which face
 * called it: it opens the store through the context and sends its answer to the context's sink, as rows
 * (one JSON object each) and at most one summary (a JSON object) behind them.
 */
#ifndef LODE_FACE_OP_H
#define LODE_FACE_OP_H

#include "base/base.h"
#include "base/json.h"
#include "stream.h"

/* ---- Parameters ---- */

typedef enum lode__arg_type {
  LODE__ARG_TEXT,
  LODE__ARG_PATH,
  LODE__ARG_CHOICE,  /* one of `choices` */
  LODE__ARG_SET,     /* some of `choices`; as JSON an array, as a flag a,b or all or none */
  LODE__ARG_FLAG,
  LODE__ARG_INT,     /* min to max */
  LODE__ARG_SIZE,    /* bytes; as a flag also 64K, 16M, 1G */
  LODE__ARG_REAL,
  LODE__ARG_JSON,    /* an object; as a flag the text, @FILE or - */
  LODE__ARG_LIST,    /* strings; as a flag a,b or a JSON array; adds up when repeated */
  LODE__ARG_LINES,   /* command line only: a file with one string a line, added to the list named by `into`; without
                      * that the operation reads it (lode__lines) */
  LODE__ARG_VECTOR,  /* numbers; as a flag the JSON text, @FILE or - */
  LODE__ARG_VECTORS, /* arrays of numbers; as a flag a file: .npy, .fvecs, or JSON */
  LODE__ARG_RECORDS, /* objects {"id","document","metadata","embedding"}; as a flag a file of JSON lines, or - */
} lode__arg_type;

enum {
  LODE__PARAM_REQUIRED = 1,
  LODE__PARAM_POSITIONAL = 2, /* on the command line: given by place; a LIST takes all that is left */
  LODE__PARAM_CLI = 4,        /* on the command line only */
  LODE__PARAM_REST = 8,       /* a positional text: further words of the command line are added, with spaces between */
};

typedef struct lode__param {
  const char *name;     /* "where_document": a JSON key; the flag is --where-document */
  lode__arg_type type;
  unsigned flags;
  char letter;          /* 'k' for -k, or 0 */
  const char *value;    /* what help calls the value: "JSON" */
  const char *choices;  /* "l2|cosine|ip" */
  const char *fallback; /* the value when it is not given, as text; shown by help and schema */
  const char *into;     /* LODE__ARG_LINES: the list that it fills, or NULL */
  uint64_t min, max;    /* LODE__ARG_INT; max 0 = no bound */
  const char *about;
} lode__param;

/* ---- Answers ---- */

typedef enum lode__field_type {
  LODE__FIELD_TEXT, LODE__FIELD_COUNT, LODE__FIELD_NUMBER, LODE__FIELD_BYTES, LODE__FIELD_REAL, LODE__FIELD_BOOL,
  LODE__FIELD_OBJECT, LODE__FIELD_VECTOR, LODE__FIELD_TEXTS, LODE__FIELD_SCALAR,
} lode__field_type;

enum {
  LODE__FIELD_NULLABLE = 1,
  LODE__FIELD_OPTIONAL = 2, /* may be left out */
};

typedef struct lode__field {
  const char *name;
  lode__field_type type;
  unsigned flags;
  const char *about;
} lode__field;

/* ---- Operations ---- */

enum {
  LODE__OP_READS = 1,       /* never writes: the store is opened read-only */
  LODE__OP_DESTROYS = 2,    /* may remove data */
  LODE__OP_LONG = 4,        /* reports progress and can be cancelled */
  LODE__OP_LOCAL = 8,       /* reads or writes files of this machine: not for remote callers */
  LODE__OP_HIDE_SUMMARY = 16, /* the command line's JSON lines are the rows alone */
  LODE__OP_SERVES = 32,     /* is a face itself: runs until it is stopped, and only from a command line */
  LODE__OP_HERE = 64,       /* lists files of this machine: not for requests */
  LODE__OP_PROJECT = 128,   /* works on the code of a project: finds its store itself */
  LODE__OP_PAGED = 256,     /* long answers on a terminal go through a pager */
};

typedef struct lode__op_context lode__op_context;
typedef struct lode__args lode__args;

/* How rows are shown as text. */
typedef enum lode__layout { LODE__LAYOUT_AUTO, LODE__LAYOUT_HITS, LODE__LAYOUT_CHECKS } lode__layout;

typedef struct lode__op {
  const char *group;  /* "db", or NULL */
  const char *name;
  const char *about;  /* one line */
  const char *detail; /* paragraphs, or NULL */
  unsigned flags;
  const lode__param *params;  /* ends with a NULL name */
  const lode__field *row;     /* fields of the rows, or NULL when there are none */
  const lode__field *summary; /* fields of the summary, or NULL */
  const char *say;            /* the summary as text: {field}; [ ] is left out when a field in it is 0 or null */
  const char *examples;       /* lines: commands, and comments that begin with # */
  lode__layout layout;
  lode_status (*run)(lode__op_context *ctx, const lode__args *args, lode_error *err);
} lode__op;

#define LODE__OP_MAX_PARAMS 20

/* A table of operations. Its name is the first word of their commands, or NULL when they have none (`lode search`). */
typedef struct lode__op_group {
  const char *name;
  const char *about;   /* a heading */
  const lode__op *ops; /* ends with a NULL name */
} lode__op_group;

extern const lode__op_group lode__groups[]; /* ends with NULL ops */
#define LODE__EACH_GROUP(g) for (const lode__op_group *g = lode__groups; g->ops; g++)
#define LODE__EACH_OP(g, op) for (const lode__op *op = (g)->ops; op->name; op++)

/* group may be NULL, here and below */
const lode__op *lode__op_find(const char *group, lode_str name);
bool lode__same_group(const char *a, const char *b);
bool lode__is_group(lode_str word);
/* The entry of `params`, or NULL. */
const lode__param *lode__param_find(const lode__param *params, lode_str name);
/* Calls fn for each of "a|b|c"; stops when it answers false. */
void lode__choices_each(const char *choices, bool (*fn)(void *ctx, size_t i, lode_str choice), void *ctx);
/* Position of `text` in "a|b|c", or -1. */
int lode__choice_index(const char *choices, lode_str text);

/* May a request over HTTP run it at all? Not what is a server itself, changes files of this machine, works on a file that it is given,
 * or has bytes for an answer. */
bool lode__op_for_requests(const lode__op *op);
/* The operation as requests see it: without the arguments that name files. `params` is where its list goes. */
void lode__op_as_request(const lode__op *op, lode__op *out, lode__param params[LODE__OP_MAX_PARAMS + 1]);

/* {"name","description","inputSchema","outputSchema","annotations"}, as MCP lists tools. */
void lode__op_schema(strbuf *out, const lode__op *op);
void lode__op_input_schema(strbuf *out, const lode__op *op);
void lode__op_output_schema(strbuf *out, const lode__op *op);

/* ---- Arguments ---- */

typedef struct lode__arg {
  bool set;           /* given by the caller, not a fallback */
  lode_str text;      /* TEXT, PATH, CHOICE, JSON; paths are NUL-terminated */
  uint64_t number;    /* INT, SIZE; FLAG 0 or 1; CHOICE its position; SET bit i = choice i */
  double real;
  lode_str *list;     /* LIST */
  size_t n, cap;      /* LIST, VECTOR, VECTORS, RECORDS: how many */
  float *vectors;     /* VECTOR, VECTORS: row after row */
  uint32_t dimension;
  lode_record *records; /* RECORDS from JSON: n of them */
  lode__stream *stream; /* RECORDS from a command line: JSON lines */
} lode__arg;

struct lode__args {
  const lode__op *op;
  bool flags;          /* from a command line: messages call a parameter --like-this */
  lode__arg values[LODE__OP_MAX_PARAMS];
  mem_arena arena;
  json_doc json;
  const char *stdin_user; /* which parameter reads standard input: one may */
};

void lode__args_init(lode__args *args, const lode__op *op);
void lode__args_release(lode__args *args);
/* Never NULL; an unknown name answers an argument that is not set. */
const lode__arg *lode__arg_of(const lode__args *args, const char *name);
/* From a JSON object, whose text must outlive args. Unknown keys, wrong types and missing ones are LODE_INVALID. */
lode_status lode__args_from_json(lode__args *args, lode_str text, lode_error *err);
/* From text, as on a command line. */
lode_status lode__args_set_text(lode__args *args, const lode__param *param, lode_str text, lode_error *err);
/* One more word of a text that takes the rest of a command line. */
lode_status lode__args_add_word(lode__args *args, lode__arg *arg, lode_str word, lode_error *err);
/* Fills in fallbacks and checks that all that is required is there. */
lode_status lode__args_finish(lode__args *args, lode_error *err);
/* "--where" or "where", into buf. */
const char *lode__param_label(const lode__args *args, const lode__param *param, char *buf, size_t size);

/* Digits and nothing else. */
bool lode__parse_uint(lode_str text, uint64_t *value);
/* 65536, 64K, 64KB, 64KiB, 16M, 1G, 1T (powers of 1,024). */
bool lode__parse_size(lode_str text, uint64_t *value);

/* ---- Context ---- */

typedef struct lode__sink lode__sink;
struct lode__sink {
  lode_status (*row)(lode__sink *sink, lode_str json, lode_error *err);
  lode_status (*summary)(lode__sink *sink, lode_str json, lode_error *err);
  /* Raw bytes, for what is a file already (export); NULL where a face has no such thing. */
  lode_status (*bytes)(lode__sink *sink, const void *data, size_t size, lode_error *err);
  /* What was sent so far shall be seen now; may be NULL. */
  lode_status (*flush)(lode__sink *sink, lode_error *err);
};

typedef struct lode__open_how {
  bool write;
  bool brief;          /* a program of one command leaves the background's work to others */
  bool bulk;           /* a load that ends with lode_optimize() */
  bool create;         /* make the store if there is none */
  uint32_t page_bytes; /* of a new store */
  const char *folder;  /* of the store; NULL: the context's */
} lode__open_how;

typedef lode_status lode__write_fn(void *ctx, lode_txn *txn, lode_error *err);

#define LODE__MODELS_ALLOWED 64
/* Which models a request may name, besides those that are installed and the collection's own. */
typedef struct lode__model_policy {
  const lode_str *allowed;
  size_t n;
} lode__model_policy;

struct lode__op_context {
  /* Opens the store, or hands out one that is open; given back with release. */
  lode_status (*open)(void *opener, const lode__open_how *how, lode_store **store, lode_error *err);
  void (*release)(void *opener, lode_store *store);
  /* LODE_REFUSED when the folder was found and is not to be used; `open` asks by itself. NULL: somebody has asked before. */
  lode_status (*may_use)(void *opener, lode_error *err);
  /* Runs a small write in a transaction that those of other callers may share, on the context's own store; NULL: there is no such
   * thing here, and a write is a transaction of its own. */
  lode_status (*write)(void *opener, lode__write_fn *write, void *ctx, lode_error *err);
  void *opener;
  const char *folder; /* of the store; for LODE__OP_PROJECT: NULL unless the caller named one */
  bool found;         /* the folder was found, not named: code/trust.h has rules for it */
  bool adopted;       /* and it is adopted: models that it names may not reach beyond this machine */
  bool far;           /* the caller may be on another machine: nothing of this one is changed but the store */
  const lode__model_policy *models; /* NULL: any. Checked by model.c */
  uint64_t busy_ms;   /* how long to wait for others; 0: the default */
  lode__sink *sink;
  lode_progress progress;
  /* Before a read of this many rows: true: not now; the handler gives up at once, with any failure, and is run again. May be NULL. */
  bool (*put_back)(void *ctx, uint64_t rows);
  void *put_back_ctx;
  void (*note)(void *ctx, const char *text); /* things worth knowing that are no failure; may be NULL */
  void *note_ctx;
  const lode_open_options *settings; /* how the caller wants stores opened: for handlers that let another process do it */
  const lode__stream *input; /* set by handlers while they read one: faces may show how far it is */
  strbuf scratch;  /* for rows; lode__op_run frees it */
  bool nothing;       /* set by handlers: done, and nothing was found */
  bool damaged;       /* set by handlers: done, and the answer tells of damage */
};

/* Runs the handler. */
lode_status lode__op_run(lode__op_context *ctx, const lode__args *args, lode_error *err);
/* For handlers that change the store's folder without opening the store: LODE_READONLY when the caller said --read-only. */
lode_status lode__op_may_write(const lode__op_context *ctx, lode_error *err);
/* For handlers that use the context's own folder without `open`ing the store: LODE_REFUSED when it is not to be used. */
LODE_MUST lode_status lode__op_may_use(const lode__op_context *ctx, lode_error *err);
/* LODE_REFUSED for the collections of a code index, which only `lode index` writes (code/owned.h). */
LODE_MUST lode_status lode__op_may_change(const lode__op_context *ctx, lode_store *store, lode_str name, lode_error *err);
/* Before `what` is removed: a terminal is asked, unless --yes was given; without a terminal LODE_REFUSED. A caller over HTTP named the
 * operation and is not asked. */
lode_status lode__op_confirm(const lode__op_context *ctx, const lode__args *args, const char *what, lode_error *err);
/* For handlers that may read many rows: LODE_BUSY when they shall give up for now. */
lode_status lode__op_before_reading(const lode__op_context *ctx, uint64_t rows, lode_error *err);
__attribute__((format(printf, 2, 3))) void lode__op_note(lode__op_context *ctx, const char *format, ...);

/* ---- Rows: begin, put fields, send ---- */

void lode__row_begin(lode__op_context *ctx);
void lode__row_text(lode__op_context *ctx, const char *name, lode_str text); /* absent: null */
void lode__row_count(lode__op_context *ctx, const char *name, uint64_t n);
void lode__row_real(lode__op_context *ctx, const char *name, double d);      /* not finite: null */
void lode__row_bool(lode__op_context *ctx, const char *name, bool b);
void lode__row_json(lode__op_context *ctx, const char *name, lode_str json); /* absent: null */
void lode__row_vector(lode__op_context *ctx, const char *name, const float *vector,
                      uint32_t dimension); /* NULL: null */
lode_status lode__row_send(lode__op_context *ctx, lode_error *err);
lode_status lode__row_summary(lode__op_context *ctx, lode_error *err);

/* ---- What handlers share ---- */

typedef struct lode__target {
  lode_store *store;
  lode_collection *collection;
} lode__target;

/* Opens the store and the collection that args name. `options` NULL: it must exist. To write: LODE_REFUSED for those of a code index. */
lode_status lode__target_open(lode__op_context *ctx, const lode__args *args, const lode__open_how *how,
                              const lode_collection_options *options, lode__target *target, lode_error *err);
void lode__target_close(lode__op_context *ctx, lode__target *target);
/* From ids, where and where_document. */
lode_selection lode__selection_of(const lode__args *args);

/* ---- Tables and handlers ---- */

extern const lode__op lode__ops_db[];
extern const lode__op lode__ops_embed[], lode__ops_model[];
extern const lode__op lode__ops_rescue[], lode__ops_import[], lode__ops_chroma[], lode__ops_export[];
extern const lode__op lode__ops_serve[], lode__ops_mcp[], lode__ops_mcp_clients[];
extern const lode__op lode__ops_code[], lode__ops_config[];

#define LODE__OPS_DB(X)                                                                                        \
  X(create) X(collections) X(rename) X(drop) X(add) X(upsert) X(update) X(get) X(query) X(delete) X(count)  \
  X(facets) X(stats) X(verify) X(salvage) X(backup) X(restore) X(compact) X(optimize) X(export) X(import)  \
  X(push) X(pull) X(fill) X(map)
#define LODE__OP_DECLARE(verb) \
  lode_status lode__op_##verb(lode__op_context *ctx, const lode__args *args, lode_error *err);
LODE__OPS_DB(LODE__OP_DECLARE)
#define LODE__OPS_RESCUE(X) X(rescue_chroma) X(chroma_check) X(chroma_quarantine) X(export_chroma) X(export_npy)
LODE__OPS_RESCUE(LODE__OP_DECLARE)
LODE__OP_DECLARE(serve) LODE__OP_DECLARE(mcp) LODE__OP_DECLARE(mcp_install) LODE__OP_DECLARE(mcp_remove) LODE__OP_DECLARE(ui)
#define LODE__OPS_CODE(X) \
  X(setup) X(index) X(search) X(around) X(status) X(skipped) X(watch) X(doctor) X(reset) X(trust) X(completion) X(config_get) X(config_set) X(config_list)
LODE__OPS_CODE(LODE__OP_DECLARE)
#define LODE__OPS_MODEL(X) X(embed) X(model_list) X(model_install) X(model_info) X(model_verify)
LODE__OPS_MODEL(LODE__OP_DECLARE)
#undef LODE__OP_DECLARE

#endif
