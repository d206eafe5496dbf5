/* op_code.h - what the operations of code search share. */
#ifndef LODE_COMMANDS_OP_CODE_H
#define LODE_COMMANDS_OP_CODE_H

#include "indexer/indexer.h"
#include "project/project.h"
#include "ops/op.h"

/* The project that args name by `param` ("path" or "project"); the store's folder is the context's, if it has one. */
lode_status op_code_locate(op_context *ctx, const op_args *args, const char *param, project_info *project, lode_error *err);
lode_status op_code_project(op_context *ctx, const op_args *args, const char *param, project_info *project, lode_error *err);
/* Its settings, those without effect held; part of op_code_project. */
lode_status op_code_settings(op_context *ctx, project_info *project, lode_error *err);
/* The user has set the value that the configuration has now: it may reach beyond the folder. */
void op_code_allow(op_context *ctx, const project_info *project, config_key key);
/* The project's store. For reading: LODE_NOT_FOUND says that it is not indexed. */
lode_status op_code_open(op_context *ctx, const project_info *project, bool write, lode_store **store, lode_error *err);
/* A setting `model` that could be one: a name of a model, installed or not, or none. Else LODE_INVALID. */
lode_status op_code_check_model(lode_str name, lode_error *err);
/* A whole run of the indexer: takes the job, opens the store. `only` may be NULL. */
typedef struct op_code_index_options {
  bool force, quality, no_vectors, quiet;
  uint32_t workers;
  const char *remove;  /* a path from the root */
  const char *only;    /* a path from the root: no more than this */
} op_code_index_options;
lode_status op_code_index(op_context *ctx, const project_info *project, const op_code_index_options *run, indexer_report *report,
                             lode_error *err);
/* A path as the user wrote it, from the working directory, becomes one from the root, as shown. It need not exist. */
lode_status op_code_relative_path(const op_context *ctx, const project_info *project, const char *path, strbuf *out, lode_error *err);
/* What should be known about an answer that shows files: how many are not as they were indexed, and what was left out. */
void op_code_note_stale(op_context *ctx, uint64_t stale, uint64_t outside, bool doubted);
/* "2026-11-16 02:55:01" */
void op_put_time(strbuf *out, uint64_t wall_ms);
void op_row_time(op_context *ctx, const char *name, uint64_t wall_ms); /* 0: null */

#endif
