/* op_code.h - what the operations of code search share. */
#ifndef LODE_FACE_OP_CODE_H
#define LODE_FACE_OP_CODE_H

#include "code/index.h"
#include "code/project.h"
#include "op.h"

/* The project that args name by `param` ("path" or "project"); the store's folder is the context's, if it has one. */
lode_status lode__code_locate(lode__op_context *ctx, const lode__args *args, const char *param, project_info *project, lode_error *err);
lode_status lode__code_project(lode__op_context *ctx, const lode__args *args, const char *param, project_info *project, lode_error *err);
/* Its settings, those without effect held; part of lode__code_project. */
lode_status lode__code_settings(lode__op_context *ctx, project_info *project, lode_error *err);
/* The user has set the value that the configuration has now: it may reach beyond the folder. */
void lode__code_allow(lode__op_context *ctx, const project_info *project, config_key key);
/* The project's store. For reading: LODE_NOT_FOUND says that it is not indexed. */
lode_status lode__code_open(lode__op_context *ctx, const project_info *project, bool write, lode_store **store, lode_error *err);
/* A setting `model` that could be one: a name of a model, installed or not, or none. Else LODE_INVALID. */
lode_status lode__code_check_model(lode_str name, lode_error *err);
/* A whole run of the indexer: takes the job, opens the store. `only` may be NULL. */
typedef struct lode__code_run {
  bool force, quality, no_vectors, quiet;
  uint32_t workers;
  const char *remove;  /* a path from the root */
  const char *only;    /* a path from the root: no more than this */
} lode__code_run;
lode_status lode__code_index(lode__op_context *ctx, const project_info *project, const lode__code_run *run, indexer_report *report,
                             lode_error *err);
/* A path as the user wrote it, from the working directory, becomes one from the root, as shown. It need not exist. */
lode_status lode__code_relative(const lode__op_context *ctx, const project_info *project, const char *path, strbuf *out, lode_error *err);
/* What should be known about an answer that shows files: how many are not as they were indexed, and what was left out. */
void lode__code_notes(lode__op_context *ctx, uint64_t stale, uint64_t outside, bool doubted);
/* "2026-11-16 02:55:01" */
void lode__put_time(strbuf *out, uint64_t wall_ms);
void lode__row_time(lode__op_context *ctx, const char *name, uint64_t wall_ms); /* 0: null */

#endif
