/* SPDX-License-Identifier: Apache-2.0 */
/* op_code.h - helpers shared by the code search operations. */
#ifndef LODE_COMMANDS_OP_CODE_H
#define LODE_COMMANDS_OP_CODE_H

#include "indexer/indexer.h"
#include "project/project.h"
#include "ops/op_context.h"

/* The project around `start`, a path of the user; NULL: around the working directory. The store's folder is the
 * context's if it has one. op_code_project also loads the settings. */
LODE_MUST lode_status op_code_locate(op_context *ctx, const char *start, project_info *project, lode_error *err);
LODE_MUST lode_status op_code_project(op_context *ctx, const char *start, project_info *project, lode_error *err);
/* Loads the project's settings; those that are not trusted have no effect. Part of op_code_project. */
LODE_MUST lode_status op_code_settings(op_context *ctx, project_info *project, lode_error *err);
/* Records that the user has set the current value of `key`, so that it may reach beyond the folder. */
void op_code_allow(op_context *ctx, const project_info *project, config_key key);
/* Opens the project's store. For reading: LODE_NOT_FOUND if the project is not indexed. */
LODE_MUST lode_status op_code_open(op_context *ctx, const project_info *project, bool write, lode_store **store,
                                   lode_error *err);
/* LODE_NOT_FOUND: the project is not indexed. */
LODE_MUST lode_status op_code_not_indexed(op_context *ctx, const project_info *project, lode_error *err);
/* LODE_INVALID unless `name` can be a value of the setting `model`: a model's name, installed or not, or none. */
LODE_MUST lode_status op_code_check_model(lode_str name, lode_error *err);
/* A complete run of the indexer: takes the job lock and opens the store. */
typedef struct op_code_index_options {
  bool force, quality, no_vectors, quiet;
  bool no_wait; /* for another run that is under way: LODE_BUSY */
  uint32_t workers;
  const char *remove; /* path relative to the root, or NULL */
  const char *only;   /* index only this path, relative to the root; may be NULL */
} op_code_index_options;
LODE_MUST lode_status op_code_index(op_context *ctx, const project_info *project, const op_code_index_options *run,
                                    indexer_report *report, lode_error *err);
/* Brings changed files up to date before a search. QUICK: looks at the files if that takes a moment, and brings them up
 * to date if they are few and the search may write here; it fails only when out of memory. FULL: looks at all files. */
typedef enum op_code_refresh_mode {
  OP_CODE_REFRESH_OFF,
  OP_CODE_REFRESH_QUICK,
  OP_CODE_REFRESH_FULL
} op_code_refresh_mode;
/* Is the index as the files are? What is not known to be, an answer says. */
typedef enum op_code_freshness { OP_CODE_FRESH, OP_CODE_UNCHECKED, OP_CODE_BEHIND } op_code_freshness;
const char *op_code_freshness_name(op_code_freshness freshness); /* NULL: fresh */
LODE_MUST lode_status op_code_refresh(op_context *ctx, const project_info *project, op_code_refresh_mode mode,
                                      op_code_freshness *freshness, lode_error *err);
/* Indexes a project that was never indexed, if it is small or the user agrees; *made is false if it was not. */
LODE_MUST lode_status op_code_first_index(op_context *ctx, const project_info *project, bool *made, lode_error *err);
/* A place in a file of the project. */
typedef struct op_code_place {
  strbuf path;   /* escaped, relative to the root, NUL-terminated */
  uint32_t line; /* 0: none */
} op_code_place;
/* Takes a place as the user wrote it: FILE[:LINE]. */
LODE_MUST lode_status op_code_place_parse(const op_context *ctx, const project_info *project, lode_str given,
                                          op_code_place *place, lode_error *err);
static inline lode_str op_code_place_path(const op_code_place *place) {
  return (lode_str){place->path.data, place->path.len - 1};
}
/* Puts the field "skipped": files and folders left out, by reason (SCAN_SKIP_COUNT of them). */
void op_code_put_skipped(op_context *ctx, const uint64_t *skipped);
/* Reports what a result that shows files may hide: files that changed since they were indexed, and what was left
 * out. */
void op_code_note_stale(op_context *ctx, uint64_t stale, uint64_t outside, bool doubted);
void op_row_time(op_context *ctx, const char *name, uint64_t wall_ms); /* as text; 0: null */

#endif
