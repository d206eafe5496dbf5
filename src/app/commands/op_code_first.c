/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_first.c - a search in a project that was never indexed. See op_code.h.
 *
 * A small project is indexed first, which takes less than two seconds. Of a larger one the user is asked, if there is
 * a terminal; otherwise the search fails and says what to run. Nothing is ever made here by a caller that may only
 * read, in a folder that is not the user's, or in the root or home folder.
 */
#include "commands/op_code.h"

#include "scan/scan.h"

#include <stdlib.h>

enum {
  FIRST_SMALL_FILES = 200,
  FIRST_SMALL_BYTES = 1 << 20,
  FIRST_MAX_ENTRIES = 20000, /* looked at to say how many there are */
};

typedef struct first_size {
  uint64_t files, bytes;
  bool whole; /* all were counted */
} first_size;

static lode_status first_measure(const project_info *project, first_size *size, lode_error *err) {
  scan_options options = indexer_scan_options(&project->config);
  scan_root *root = NULL;
  scan_walker *walker = NULL;
  scan_entry entry;
  bool more = true;
  uint64_t seen = 0;
  lode_status st;
  TRY_GOTO(scan_root_open(project->root, &options, &root, err));
  TRY_GOTO(scan_walker_open(root, STR_LIT(""), &walker, err));
  while (more && seen++ < FIRST_MAX_ENTRIES) {
    TRY_GOTO(scan_walker_next(walker, &entry, &more, err));
    if (!more || entry.is_folder || entry.skip != SCAN_SKIP_NONE) continue;
    size->files++;
    size->bytes += entry.size;
  }
  size->whole = !more;
done:
  scan_walker_close(walker);
  scan_root_close(root);
  return st;
}

static bool first_is_small(const project_info *project, const first_size *size) {
  const char *home = getenv("HOME");
  bool own = strcmp(project->root, "/") != 0 && (!home || strcmp(project->root, home) != 0);
  /* where another's .lode or .git was passed over, it is not sure what the project is */
  return own && !project->passed[0] && size->whole && size->files <= FIRST_SMALL_FILES &&
         size->bytes <= FIRST_SMALL_BYTES;
}

static bool first_agreed(const op_context *ctx, const project_info *project, const first_size *size) {
  char question[700];
  if (first_is_small(project, size)) return true;
  if (!op_can_ask(ctx)) return false;
  snprintf(question, sizeof question, "%.400s is not indexed yet. Index its %s%llu files now?", project->root,
           size->whole ? "" : "more than ", (unsigned long long)size->files);
  return op_ask(question, true);
}

lode_status op_code_first_index(op_context *ctx, const project_info *project, bool *made, lode_error *err) {
  first_size size = {0};
  indexer_report report;
  project_job_status job;
  op_code_index_options run = {.no_wait = true};
  *made = false;
  if (!ctx->command_line || ctx->remote || (ctx->settings && ctx->settings->read_only)) return LODE_OK;
  if (!project->root[0]) return LODE_OK;
  if (trust_check(&project->trust, NULL) != LODE_OK || project->address) return LODE_OK;
  project_job_read(project->folder, PROJECT_JOB_INDEX, &job);
  if (job.running) return LODE_OK;
  TRY(first_measure(project, &size, err));
  if (size.files == 0 || !first_agreed(ctx, project, &size)) return LODE_OK;
  lode_status st = op_code_index(ctx, project, &run, &report, err);
  if (st == LODE_BUSY) err_clear(err); /* another process began meanwhile */
  if (st != LODE_OK) return st == LODE_BUSY ? LODE_OK : st;
  op_note(ctx, "the project was not indexed yet: %llu file%s indexed first, in %.300s",
          (unsigned long long)report.files, report.files == 1 ? " was" : "s were", project->folder);
  *made = true;
  return LODE_OK;
}
