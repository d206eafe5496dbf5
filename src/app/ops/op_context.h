/* SPDX-License-Identifier: Apache-2.0 */
/* op_context.h - what a handler works with: the store, the sink for its result, progress, notes, and permissions. */
#ifndef LODE_OPS_OP_CONTEXT_H
#define LODE_OPS_OP_CONTEXT_H

#include "ops/op_args.h"
#include "ops/op_row.h"

typedef struct op_sink op_sink;
struct op_sink {
  /* The values are gone when these return. */
  lode_status (*row)(op_sink *sink, op_row *row, lode_error *err);
  lode_status (*summary)(op_sink *sink, op_row *summary, lode_error *err);
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
  bool command_line;             /* set by op_run: standard input may be read */
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
  const op_def *op;                  /* what runs; set by op_run, as is the row */
  op_row row;                        /* see op_row.h */
  bool nothing;                      /* set by handlers: success, but nothing was found */
  bool unindexed;                    /* set by handlers: the project that was asked for is not indexed yet */
  bool damaged;                      /* set by handlers: success, but the result reports damage */
};

/* Is it a cluster's address, not a folder? */
bool op_is_address(const char *store);
/* Runs the handler. */
LODE_MUST lode_status op_run(op_context *ctx, const op_args *args, lode_error *err);
/* For handlers that change the store's folder without opening the store: LODE_READONLY if the caller said
 * --read-only. */
LODE_MUST lode_status op_check_may_write(const op_context *ctx, lode_error *err);
/* For handlers that use the context's own folder without calling `open`: LODE_REFUSED if it must not be used. */
LODE_MUST lode_status op_check_trust(const op_context *ctx, lode_error *err);
/* LODE_REFUSED for the collections of a project's code index, which only `lode index` writes (indexer/index_owned.h).
 * `folder` is the store's; NULL: the context's. */
LODE_MUST lode_status op_check_may_change(const op_context *ctx, lode_store *store, const char *folder, lode_str name,
                                          lode_error *err);
/* Is there a person at a terminal who can be asked? */
bool op_can_ask(const op_context *ctx);
/* Asks a question that ends with " [y/N] ", or " [Y/n] " if `yes` is the answer of an empty line. */
bool op_ask(const char *question, bool yes);
/* Confirmation before `what` is removed: asks on a terminal unless the caller said yes; without a terminal
 * LODE_REFUSED. Remote callers are not asked. */
LODE_MUST lode_status op_confirm(const op_context *ctx, bool yes, const char *what, lode_error *err);
/* For handlers that may read many rows: LODE_BUSY if they must give up for now. */
LODE_MUST lode_status op_admit_read(const op_context *ctx, uint64_t rows, lode_error *err);
__attribute__((format(printf, 2, 3))) void op_note(op_context *ctx, const char *format, ...);

#endif
