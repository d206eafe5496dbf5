/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_refresh.c - brings the few files that changed up to date before a search. See op_code.h.
 *
 * A search looks at the project's files where that takes a moment (REFRESH_BUDGET_NS), and brings what changed up to
 * date if it is little. It never writes over HTTP, in a store that is opened to be read, or in a folder that is not
 * surely the user's: there it only says what changed. A watcher is believed where there are too many files to look at.
 * What is not known is said, and what goes wrong, too; the search goes on.
 */
#include "commands/op_code.h"

#include "os/os.h"
#include "indexer/code_record.h"
#include "indexer/index_stamp.h"

#define REFRESH_BUDGET_NS 50000000u /* for looking at files */
enum {
  REFRESH_SURE_FILES = 3000, /* looked at in any case: a busy machine changes nothing in a small project */
  REFRESH_MAX_FILES = 20000, /* in the index: reading what it knows of more takes longer than the budget */
  REFRESH_MAX_CHANGED = 100, /* indexing more of them takes longer than a search may */
  REFRESH_OLD_MS = 7200000,  /* age of an index that is doubted aloud */
};

const char *op_code_freshness_name(op_code_freshness freshness) {
  static const char *const names[] = {NULL, "unchecked", "behind"};
  return names[freshness];
}

/* Why a search may not write here; NULL: it may. */
static const char *refresh_obstacle(const op_context *ctx, const project_info *project) {
  trust_state trust = project->trust.state;
  if (ctx->remote) return "a search over HTTP only reads";
  if (ctx->settings && ctx->settings->read_only) return "the store is opened to be read";
  return trust == TRUST_OURS || trust == TRUST_NAMED ? NULL : "the folder is not surely yours";
}

typedef struct refresh_state {
  op_context *ctx;
  const project_info *project;
  project_job_status watch;
  uint64_t start_ns;
  uint64_t scanned_ms; /* when the last index run ended */
  op_code_freshness freshness;
  bool run; /* files changed, and may be brought up to date */
} refresh_state;

/* Nobody has looked at all files: a watcher that has caught up knows them. A note that every command repeats is read by
 * nobody, so a young index is not doubted aloud. */
static void refresh_take_watcher(refresh_state *r) {
  uint64_t now = os_wall_ms(), age_ms = now > r->scanned_ms ? now - r->scanned_ms : 0;
  if (r->watch.running && strcmp(r->watch.phase, PROJECT_WATCH_CURRENT) == 0)
    r->freshness = OP_CODE_FRESH;
  else if (r->watch.running)
    op_note(r->ctx, "the watcher has not caught up with changed files yet (%s)", r->watch.phase);
  else if (age_ms > REFRESH_OLD_MS)
    op_note(r->ctx,
            "the index is %llu hours old, and there are too many files to look for changes: `lode index` brings it up "
            "to date, `lode watch` keeps it so",
            (unsigned long long)(age_ms / 3600000u));
}

/* Is the whole tree worth looking at? Reads the store's list of collections. */
static lode_status refresh_judge_index(refresh_state *r, lode_store *store, bool *look, lode_error *err) {
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  uint64_t files = 0;
  bool indexed = false;
  *look = false;
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) continue;
    indexed = true;
    files = info->records;
    indexer_stamp_parse(info->metadata, &stamp);
  }
  lode_collection_list_free(list);
  r->scanned_ms = stamp.scanned_ms;
  if (!indexed) return LODE_OK; /* the search says so */
  if (!stamp.scanned_ms) {
    r->freshness = OP_CODE_BEHIND;
    op_note(r->ctx, "the project was never indexed to the end: run `lode index`");
  } else if (stamp.revision != INDEXER_REVISION) {
    op_note(r->ctx, "the index is of another version of lode, so changed files were not looked for: run `lode index`");
  } else if (files > REFRESH_MAX_FILES) {
    refresh_take_watcher(r);
  } else {
    /* of a cluster's index all files would be fetched; those of the answer are looked at in any case */
    *look = r->project->root[0] != '\0' && !r->project->address;
  }
  return LODE_OK;
}

static bool refresh_step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  const refresh_state *r = ctx;
  (void)phase, (void)total;
  return done <= REFRESH_SURE_FILES || os_api->now_ns() - r->start_ns <= REFRESH_BUDGET_NS;
}

static lode_status refresh_judge_tree(refresh_state *r, lode_store *store, lode_error *err) {
  lode_progress bounded = {.step = refresh_step, .ctx = r};
  const char *obstacle = refresh_obstacle(r->ctx, r->project);
  indexer_changes changes;
  lode_status st = indexer_compare(r->project, store, bounded, &changes, err);
  if (st == LODE_CANCELLED) {
    refresh_take_watcher(r);
    return LODE_OK;
  }
  if (st != LODE_OK) return st;
  uint64_t changed = changes.added + changes.changed + changes.removed;
  r->freshness = changed ? OP_CODE_BEHIND : OP_CODE_FRESH;
  r->run =
      (changed || changes.touched) && changed <= REFRESH_MAX_CHANGED && !obstacle; /* touched ones are only noted */
  if (changed && obstacle)
    op_note(r->ctx, "%llu file%s changed since the last index run, and %s: `lode index` brings the index up to date",
            (unsigned long long)changed, changed == 1 ? "" : "s", obstacle);
  else if (changed > REFRESH_MAX_CHANGED)
    op_note(r->ctx,
            "many files changed since they were indexed (%llu): `lode index` or --refresh brings them up to date",
            (unsigned long long)changed);
  return LODE_OK;
}

/* Looks at who indexes, at the index, then at the tree. */
static lode_status refresh_judge(refresh_state *r, lode_error *err) {
  project_job_status index;
  lode_store *store = NULL;
  bool look;
  if (!project_has_store(r->project)) return LODE_OK; /* the search says so */
  project_job_read(r->project->folder, PROJECT_JOB_WATCH, &r->watch);
  project_job_read(r->project->folder, PROJECT_JOB_INDEX, &index);
  if (index.running) {
    r->freshness = OP_CODE_BEHIND;
    op_note(r->ctx, "process %llu is indexing the project (%s): what it has not reached yet is not found",
            (unsigned long long)index.pid, index.phase);
    return LODE_OK;
  }
  lode_status st = op_code_open(r->ctx, r->project, false, &store, err);
  if (st == LODE_NOT_FOUND || (st == LODE_IO && r->project->address)) return LODE_OK; /* the same */
  if (st == LODE_OK) st = refresh_judge_index(r, store, &look, err);
  if (st == LODE_OK && look) st = refresh_judge_tree(r, store, err);
  if (store) r->ctx->release(r->ctx->opener, store);
  return st;
}

static lode_status refresh_run(op_context *ctx, const project_info *project, bool waits, lode_error *err) {
  op_code_index_options run = {.no_vectors = true, .quiet = true, .no_wait = !waits};
  indexer_report report;
  return op_code_index(ctx, project, &run, &report, err);
}

lode_status op_code_refresh(op_context *ctx, const project_info *project, op_code_refresh_mode mode,
                            op_code_freshness *freshness, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  refresh_state r = {.ctx = ctx,
                     .project = project,
                     .start_ns = os_api->now_ns(),
                     .freshness = OP_CODE_UNCHECKED,
                     .run = mode == OP_CODE_REFRESH_FULL};
  lode_status st = LODE_OK;
  if (mode == OP_CODE_REFRESH_QUICK) st = refresh_judge(&r, &why);
  if (st == LODE_OK && r.run) {
    st = refresh_run(ctx, project, mode == OP_CODE_REFRESH_FULL, &why);
    if (st == LODE_OK) r.freshness = OP_CODE_FRESH;
  }
  *freshness = r.freshness;
  if (st == LODE_OK) return LODE_OK;
  bool goes_on = mode == OP_CODE_REFRESH_QUICK ? st != LODE_NOMEM : st == LODE_BUSY || st == LODE_READONLY;
  if (goes_on)
    op_note(ctx, "not brought up to date: %.300s", why.text);
  else if (err)
    *err = why;
  return goes_on ? LODE_OK : st;
}
