/* SPDX-License-Identifier: Apache-2.0 */
/* op_kit.h - runs operations of `lode db` in process, against a store of the test's own. Each row and summary is
 * checked against the schema of its operation. */
#ifndef LODE_TEST_OP_KIT_H
#define LODE_TEST_OP_KIT_H

#include "table/op_table.h"

typedef struct op_kit {
  op_sink sink;
  const op_def *op;
  strbuf rows, summary, bytes; /* of the last answer; rows are lines; rows and summary are NUL-terminated */
  size_t n_rows, n_summaries, n_notes;
  bool nothing; /* nothing was found */
} op_kit;
extern op_kit op_kit_answer;

/* Set by tests; they apply to the runs that follow. */
typedef struct op_kit_options {
  bool remote;                /* as if the caller were on another machine */
  void (*on_first_row)(void); /* when the first row of an answer is sent */
  bool (*on_step)(void *ctx, const char *phase, uint64_t done, uint64_t total);
} op_kit_options;
extern op_kit_options op_kit_how;

/* The folder of the store. */
const char *op_kit_store(void);
LODE_MUST lode_status op_kit_run(const char *verb, const char *json, lode_error *err);

#endif
