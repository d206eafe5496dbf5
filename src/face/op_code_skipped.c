/* op_code_skipped.c - which files are not in the index, or not wholly, and why: from a walk of the tree, and from what the index knows. */
#include "op_code.h"

#include "code/known.h"
#include "code/record.h"

#define MASKED "masked"

typedef struct listing {
  lode__op_context *ctx;
  lode_str reason; /* only these; absent: all */
  strbuf shown, about;
  uint64_t rows;
} listing;

static bool is_wanted(const listing *l, const char *reason) { return !l->reason.data || str_eq(l->reason, str_of(reason)); }

static lode_status send(listing *l, lode_str path, const char *reason, const char *about, lode_error *err) {
  lode__row_begin(l->ctx);
  lode__row_text(l->ctx, "path", path);
  lode__row_text(l->ctx, "reason", str_of(reason));
  lode__row_text(l->ctx, "about", str_of(about));
  l->rows++;
  return lode__row_send(l->ctx, err);
}

static lode_status send_entry(listing *l, const lode__entry *e, lode_error *err) {
  if (e->skip == LODE__SKIP_NONE || !is_wanted(l, lode__skip_name(e->skip))) return LODE_OK;
  l->shown.len = 0;
  lode__path_show(&l->shown, e->path);
  if (e->is_folder) strbuf_addch(&l->shown, '/');
  if (l->shown.failed) return err_nomem(err);
  return send(l, (lode_str){l->shown.data ? l->shown.data : "", l->shown.len}, lode__skip_name(e->skip), lode__skip_text(e->skip), err);
}

/* Files left out because of their names, kinds and sizes. */
static lode_status list_tree(listing *l, const lode__project *project, lode_error *err) {
  lode__walk_options options = lode__index_walk_options(&project->config);
  lode__root *root = NULL;
  lode__walker *walker = NULL;
  lode__entry entry;
  bool more = true;
  uint64_t seen = 0;
  lode_progress progress = l->ctx->progress;
  lode_status st;
  TRY_GOTO(lode__root_open(project->root, &options, &root, err));
  TRY_GOTO(lode__walker_open(root, STR_LIT(""), &walker, err));
  while (more) {
    TRY_GOTO(lode__walker_next(walker, &entry, &more, err));
    if (more) TRY_GOTO(send_entry(l, &entry, err));
    if (progress.step && !progress.step(progress.ctx, "looking at files", ++seen, 0)) TRY_GOTO(err_set(err, LODE_CANCELLED, "interrupted"));
  }
done:
  lode__walker_close(walker);
  lode__root_close(root);
  return st;
}

static lode_status send_known(listing *l, const lode__known *k, lode_error *err) {
  if (k->file.skip != LODE__SKIP_NONE && is_wanted(l, lode__skip_name(k->file.skip)))
    return send(l, k->path, lode__skip_name(k->file.skip), lode__skip_text(k->file.skip), err);
  if (!k->file.masked || k->file.skip != LODE__SKIP_NONE || !is_wanted(l, MASKED)) return LODE_OK;
  l->about.len = 0;
  strbuf_addf(&l->about, "is indexed, with %u secret%s masked", k->file.masked, k->file.masked == 1 ? "" : "s");
  strbuf_addch(&l->about, '\0');
  return l->about.failed ? err_nomem(err) : send(l, k->path, MASKED, l->about.data, err);
}

/* Files left out, or masked, because of their text, as the last run found them. */
static lode_status list_index(listing *l, const lode__project *project, lode_error *err) {
  lode_collection_options plain = {0};
  lode__known_files known = {0};
  lode_collection *files = NULL;
  lode_store *store = NULL;
  lode_status st = lode__code_open(l->ctx, project, false, &store, err);
  if (st == LODE_OK) st = lode_collection_open(store, STR_LIT(LODE__CODE_FILES), &plain, &files, err);
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    lode__op_note(l->ctx, "not indexed yet: files left out because of their text are not listed");
    st = LODE_OK;
    goto done;
  }
  if (st == LODE_OK) st = lode__known_load(&known, files, l->ctx->progress, err);
  for (size_t i = 0; i < known.n && st == LODE_OK; i++) st = send_known(l, &known.items[i], err);
done:
  lode__known_release(&known);
  if (files) lode_collection_close(files);
  if (store) l->ctx->release(l->ctx->opener, store);
  return st;
}

static lode_status check_reason(lode_str reason, lode_error *err) {
  strbuf all = {0};
  char quoted[256];
  if (!reason.data || str_eq(reason, STR_LIT(MASKED)) || lode__skip_of(reason) != LODE__SKIP_NONE) return LODE_OK;
  for (size_t i = 1; i < LODE__SKIP_COUNT; i++) strbuf_addf(&all, "%s, ", lode__skip_name((lode__skip)i));
  strbuf_addstr(&all, MASKED);
  strbuf_addch(&all, '\0');
  lode_status st = all.failed ? err_nomem(err)
                              : err_set(err, LODE_INVALID, "there is no reason %s; it is one of %s", str_quote(reason, quoted, sizeof quoted), all.data);
  strbuf_release(&all);
  return st;
}

lode_status lode__op_skipped(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  listing l = {.ctx = ctx, .reason = lode__arg_of(args, "reason")->text};
  lode__project project = {0};
  lode_status st;
  if (ctx->far) return err_set(err, LODE_UNSUPPORTED, "this lists files of the server's machine: use the command line there");
  TRY(check_reason(l.reason, err));
  TRY(lode__code_project(ctx, args, "path", &project, err));
  TRY_GOTO(lode__trust_check(&project.trust, err));
  TRY_GOTO(list_tree(&l, &project, err));
  TRY_GOTO(list_index(&l, &project, err));
  ctx->nothing = l.rows == 0;
done:
  strbuf_release(&l.shown);
  strbuf_release(&l.about);
  lode__project_release(&project);
  return st;
}
