/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_trust.c - `lode trust`: the user's decisions about store folders that Lode found. The rules are in
 * project/trust.h. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "os/os.h"
#include "project/trust_list.h"

static lode_status op_trust_send_list(op_context *ctx, lode_error *err) {
  trust_list list;
  trust_entry e = {0};
  size_t at = 0, n = 0;
  lode_status st = LODE_OK;
  trust_list_read(&list);
  if (list.note[0]) op_note(ctx, "%s", list.note);
  for (; st == LODE_OK && trust_list_next(&list, &at, &e); n++) {
    op_row_begin(ctx);
    op_row_text(ctx, "folder", str_of(e.path.data));
    op_row_text(ctx, "level", str_of(trust_level_name(e.level)));
    op_row_json(ctx, "settings", e.settings.len ? (lode_str){e.settings.data, e.settings.len} : STR_LIT("{}"));
    st = op_row_send(ctx, err);
  }
  ctx->nothing = n == 0;
  trust_entry_release(&e);
  trust_list_release(&list);
  return st;
}

static lode_status op_trust_send_summary(op_context *ctx, const char *folder, const char *done, const strbuf *settings,
                                         lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "folder", str_of(folder));
  op_row_text(ctx, "done", str_of(done));
  op_row_json(ctx, "settings", settings && settings->len ? (lode_str){settings->data, settings->len} : STR_LIT("{}"));
  return op_row_send(ctx, err);
}

/* A folder that no longer exists is removed from the list by its path. */
static lode_status op_trust_forget(op_context *ctx, const char *start, const project_info *project, lode_error *err) {
  strbuf folder = {0};
  bool was = false;
  lode_status st = LODE_OK;
  if (project)
    strbuf_addstr(&folder, project->folder);
  else
    strbuf_addf(&folder, "%s/" PROJECT_DIR_NAME, start);
  strbuf_addch(&folder, '\0');
  if (folder.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(trust_list_remove(folder.data, &was, err));
  if (!was && !project) TRY_GOTO(trust_list_remove(start, &was, err));
  if (!was)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%.300s is not in the list: `lode trust --list` shows it", folder.data));
  TRY_GOTO(op_trust_send_summary(ctx, folder.data, "forgotten", NULL, err));
done:
  strbuf_release(&folder);
  return st;
}

static lode_status op_trust_grant(op_context *ctx, const project_info *project, lode_error *err) {
  strbuf settings = {0};
  bool store = trust_has_store(project->folder);
  lode_status st = LODE_OK;
  TRY_GOTO(trust_grant(project->folder, &settings, err));
  const char *done = store ? "trusted as it is now" : "settings trusted, there is no store yet";
  TRY_GOTO(op_trust_send_summary(ctx, project->folder, done, &settings, err));
done:
  strbuf_release(&settings);
  return st;
}

lode_status op_do_trust(op_context *ctx, const op_trust_args *args, lode_error *err) {
  const char *start = args->path.path;
  bool list = args->list.on, gone = args->forget.on;
  project_info project = {0};
  if (list && (gone || start)) return err_set(err, LODE_INVALID, "--list takes neither a folder nor --forget");
  if (list) return op_trust_send_list(ctx, err);
  if (ctx->folder)
    return err_set(err, LODE_INVALID, "a store that --store names needs no trust: name the project's folder instead");
  lode_status st = project_locate(&project, start, NULL, err);
  if (st == LODE_NOT_FOUND && gone && start && start[0] == '/')
    st = op_trust_forget(ctx, start, NULL, err);
  else if (st == LODE_OK)
    st = gone ? op_trust_forget(ctx, start, &project, err) : op_trust_grant(ctx, &project, err);
  project_release(&project);
  return st;
}
