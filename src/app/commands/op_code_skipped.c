/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_skipped.c - which files are not, or not completely, in the index, and why: from a scan of the tree, and from
 * the index. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "indexer/file_table.h"
#include "indexer/code_record.h"

#define SKIPPED_MASKED "masked"

typedef struct skipped_list {
  op_context *ctx;
  lode_str reason; /* only this reason; no data: all */
  strbuf shown, about;
  uint64_t rows;
} skipped_list;

static bool skipped_wanted(const skipped_list *l, const char *reason) {
  return !l->reason.data || str_eq(l->reason, str_of(reason));
}

static lode_status skipped_send(skipped_list *l, lode_str path, const char *reason, const char *about,
                                lode_error *err) {
  op_row_begin(l->ctx);
  op_row_text(l->ctx, "path", path);
  op_row_text(l->ctx, "reason", str_of(reason));
  op_row_text(l->ctx, "about", str_of(about));
  l->rows++;
  return op_row_send(l->ctx, err);
}

static lode_status skipped_send_entry(skipped_list *l, const scan_entry *e, lode_error *err) {
  if (e->skip == SCAN_SKIP_NONE || !skipped_wanted(l, scan_skip_name(e->skip))) return LODE_OK;
  l->shown.len = 0;
  files_path_escape(&l->shown, e->path);
  if (e->is_folder) strbuf_addch(&l->shown, '/');
  if (l->shown.failed) return err_nomem(err);
  return skipped_send(l, (lode_str){l->shown.data ? l->shown.data : "", l->shown.len}, scan_skip_name(e->skip),
                      scan_skip_text(e->skip), err);
}

/* Of a file to index the index knows nothing if it could not be read. */
static void skipped_see_readable(const skipped_list *l, const scan_root *root, scan_entry *e) {
  if (e->skip != SCAN_SKIP_NONE || !skipped_wanted(l, scan_skip_name(SCAN_SKIP_UNREADABLE))) return;
  if (!scan_root_may_read(root, e->path)) e->skip = SCAN_SKIP_UNREADABLE;
}

/* Files left out because of their name, kind or size, or because they cannot be read. */
static lode_status skipped_list_tree(skipped_list *l, const project_info *project, lode_error *err) {
  scan_options options = indexer_scan_options(&project->config);
  scan_root *root = NULL;
  scan_walker *walker = NULL;
  scan_entry entry;
  bool more = true;
  uint64_t seen = 0;
  lode_progress progress = l->ctx->progress;
  lode_status st;
  TRY_GOTO(scan_root_open(project->root, &options, &root, err));
  TRY_GOTO(scan_walker_open(root, STR_LIT(""), &walker, err));
  while (more) {
    TRY_GOTO(scan_walker_next(walker, &entry, &more, err));
    if (!more) break;
    skipped_see_readable(l, root, &entry);
    TRY_GOTO(skipped_send_entry(l, &entry, err));
    TRY_GOTO(err_progress(progress, "looking at files", ++seen, 0, err));
  }
done:
  scan_walker_close(walker);
  scan_root_close(root);
  return st;
}

static lode_status skipped_send_indexed(skipped_list *l, const indexer_file_entry *k, lode_error *err) {
  if (k->file.skip != SCAN_SKIP_NONE && skipped_wanted(l, scan_skip_name(k->file.skip)))
    return skipped_send(l, k->path, scan_skip_name(k->file.skip), scan_skip_text(k->file.skip), err);
  if (!k->file.masked || k->file.skip != SCAN_SKIP_NONE || !skipped_wanted(l, SKIPPED_MASKED)) return LODE_OK;
  l->about.len = 0;
  strbuf_addf(&l->about, "is indexed, with %u secret%s masked", k->file.masked, k->file.masked == 1 ? "" : "s");
  strbuf_addch(&l->about, '\0');
  return l->about.failed ? err_nomem(err) : skipped_send(l, k->path, SKIPPED_MASKED, l->about.data, err);
}

/* Files left out or masked because of their contents, as found by the last run. */
static lode_status skipped_list_index(skipped_list *l, const project_info *project, lode_error *err) {
  lode_collection_options plain = {0};
  indexer_file_table table = {0};
  lode_collection *files = NULL;
  lode_store *store = NULL;
  lode_status st = op_code_open(l->ctx, project, false, &store, err);
  if (st == LODE_OK) st = lode_collection_open(store, STR_LIT(INDEXER_COLL_FILES), &plain, &files, err);
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    op_note(l->ctx, "not indexed yet: files left out because of their text are not listed");
    st = LODE_OK;
    goto done;
  }
  if (st == LODE_OK) st = indexer_file_table_load(&table, files, l->ctx->progress, err);
  for (size_t i = 0; i < table.n && st == LODE_OK; i++) st = skipped_send_indexed(l, &table.items[i], err);
done:
  indexer_file_table_release(&table);
  if (files) lode_collection_close(files);
  if (store) l->ctx->release(l->ctx->opener, store);
  return st;
}

static lode_status skipped_check_reason(lode_str reason, lode_error *err) {
  strbuf all = {0};
  char quoted[256];
  if (!reason.data || str_eq(reason, STR_LIT(SKIPPED_MASKED)) || scan_skip_parse(reason) != SCAN_SKIP_NONE)
    return LODE_OK;
  for (size_t i = 1; i < SCAN_SKIP_COUNT; i++) strbuf_addf(&all, "%s, ", scan_skip_name((scan_skip)i));
  strbuf_addstr(&all, SKIPPED_MASKED);
  strbuf_addch(&all, '\0');
  lode_status st = all.failed ? err_nomem(err)
                              : err_set(err, LODE_INVALID, "there is no reason %s; it is one of %s",
                                        str_quote(reason, quoted, sizeof quoted), all.data);
  strbuf_release(&all);
  return st;
}

lode_status op_do_skipped(op_context *ctx, const op_skipped_args *args, lode_error *err) {
  skipped_list l = {.ctx = ctx, .reason = args->reason.text};
  project_info project = {0};
  lode_status st;
  if (ctx->remote)
    return err_set(err, LODE_UNSUPPORTED, "this lists files of the server's machine: use the command line there");
  TRY(skipped_check_reason(l.reason, err));
  TRY(op_code_project(ctx, args->path.path, &project, err));
  TRY_GOTO(trust_check(&project.trust, err));
  TRY_GOTO(skipped_list_tree(&l, &project, err));
  TRY_GOTO(skipped_list_index(&l, &project, err));
  ctx->nothing = l.rows == 0;
done:
  strbuf_release(&l.shown);
  strbuf_release(&l.about);
  project_release(&project);
  return st;
}
