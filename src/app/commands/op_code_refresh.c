/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_refresh.c - brings the few files that changed up to date before a search. See op_code.h.
 *
 * A search may do so where it only takes a moment: the project has few files, few of them changed, and no one else
 * keeps the index up to date. It never does over HTTP, in a store that is opened to be read, or in a folder that is not
 * surely the user's. What it did not look at, it says; what goes wrong is said, too, and the search goes on.
 */
#include "commands/op_code.h"

#include "indexer/code_record.h"
#include "indexer/index_stamp.h"

enum {
  REFRESH_MAX_FILES = 2000,  /* in the index: looking at them takes about 50 ms */
  REFRESH_MAX_CHANGED = 100, /* more of them take longer than a search may */
};

typedef enum refresh_verdict { REFRESH_NO, REFRESH_LOOK, REFRESH_RUN } refresh_verdict;

/* Is this a place where a search may write? */
static bool refresh_is_allowed(const op_context *ctx, const project_info *project) {
  trust_state trust = project->trust.state;
  bool writes = !ctx->settings || !ctx->settings->read_only;
  return !ctx->remote && writes && project->root[0] && (trust == TRUST_OURS || trust == TRUST_NAMED);
}

/* Is the whole tree worth looking at? Reads the store's list of collections. */
static lode_status refresh_judge_index(op_context *ctx, lode_store *store, refresh_verdict *verdict, lode_error *err) {
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  uint64_t files = 0;
  *verdict = REFRESH_NO;
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) continue;
    files = info->records;
    indexer_stamp_parse(info->metadata, &stamp);
  }
  lode_collection_list_free(list);
  if (!stamp.scanned_ms) return LODE_OK; /* the first run is still to come, or to end */
  if (stamp.revision != INDEXER_REVISION)
    op_note(ctx, "the index is of another version of lode, so changed files were not looked for: run `lode index`");
  else if (files > REFRESH_MAX_FILES)
    op_note(ctx,
            "the project has %llu files, too many to look for changes before each search: `lode watch` keeps up, "
            "--refresh looks now",
            (unsigned long long)files);
  else
    *verdict = REFRESH_LOOK;
  return LODE_OK;
}

static bool refresh_step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx, (void)phase, (void)total;
  return done <= 2 * REFRESH_MAX_FILES; /* the tree may have grown */
}

static lode_status refresh_judge_tree(op_context *ctx, const project_info *project, lode_store *store,
                                      refresh_verdict *verdict, lode_error *err) {
  lode_progress bounded = {.step = refresh_step};
  indexer_changes changes;
  *verdict = REFRESH_NO;
  lode_status st = indexer_compare(project, store, bounded, &changes, err);
  uint64_t changed = changes.added + changes.changed + changes.removed;
  if (st == LODE_CANCELLED || changed > REFRESH_MAX_CHANGED) {
    op_note(ctx, "many files changed since they were indexed: `lode index` or --refresh brings them up to date");
    return LODE_OK;
  }
  if (st == LODE_OK && changed) *verdict = REFRESH_RUN;
  return st;
}

/* Looks at the index, then at the tree. */
static lode_status refresh_judge(op_context *ctx, const project_info *project, refresh_verdict *verdict,
                                 lode_error *err) {
  project_job_status watch, index;
  lode_store *store = NULL;
  *verdict = REFRESH_NO;
  if (!project_has_store(project)) return LODE_OK; /* the search says so */
  project_job_read(project->folder, PROJECT_JOB_WATCH, &watch);
  project_job_read(project->folder, PROJECT_JOB_INDEX, &index);
  if (watch.running || index.running) return LODE_OK; /* they bring it up to date */
  TRY(op_code_open(ctx, project, false, &store, err));
  lode_status st = refresh_judge_index(ctx, store, verdict, err);
  if (st == LODE_OK && *verdict == REFRESH_LOOK) st = refresh_judge_tree(ctx, project, store, verdict, err);
  ctx->release(ctx->opener, store);
  return st;
}

static lode_status refresh_run(op_context *ctx, const project_info *project, bool waits, lode_error *err) {
  op_code_index_options run = {.no_vectors = true, .quiet = true, .no_wait = !waits};
  indexer_report report;
  return op_code_index(ctx, project, &run, &report, err);
}

lode_status op_code_refresh(op_context *ctx, const project_info *project, op_code_refresh_mode mode, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  refresh_verdict verdict = REFRESH_RUN;
  lode_status st = LODE_OK;
  if (mode == OP_CODE_REFRESH_OFF || (mode == OP_CODE_REFRESH_QUICK && !refresh_is_allowed(ctx, project)))
    return LODE_OK;
  if (mode == OP_CODE_REFRESH_QUICK) st = refresh_judge(ctx, project, &verdict, &why);
  if (st == LODE_OK && verdict == REFRESH_RUN) st = refresh_run(ctx, project, mode == OP_CODE_REFRESH_FULL, &why);
  if (st == LODE_OK) return LODE_OK;
  bool goes_on = mode == OP_CODE_REFRESH_QUICK ? st != LODE_NOMEM : st == LODE_BUSY || st == LODE_READONLY;
  if (goes_on)
    op_note(ctx, "not brought up to date: %.300s", why.text);
  else if (err)
    *err = why;
  return goes_on ? LODE_OK : st;
}
