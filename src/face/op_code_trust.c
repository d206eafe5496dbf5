/* op_code_trust.c - `lode trust`: the user's word about folders of stores that Lode found. The rules are in code/trust.h. */
#include "op_code.h"

#include "base/os.h"
#include "code/trust_list.h"

static lode_status send_list(lode__op_context *ctx, lode_error *err) {
  lode__trust_list list;
  lode__trust_entry e = {0};
  size_t at = 0, n = 0;
  lode_status st = LODE_OK;
  lode__trust_list_read(&list);
  if (list.note[0]) lode__op_note(ctx, "%s", list.note);
  for (; st == LODE_OK && lode__trust_list_next(&list, &at, &e); n++) {
    lode__row_begin(ctx);
    lode__row_text(ctx, "folder", lode__str(e.path.data));
    lode__row_text(ctx, "level", lode__str(lode__trust_level_name(e.level)));
    lode__row_json(ctx, "settings", e.settings.len ? (lode_str){e.settings.data, e.settings.len} : LODE__LIT("{}"));
    st = lode__row_send(ctx, err);
  }
  ctx->nothing = n == 0;
  lode__trust_entry_release(&e);
  lode__trust_list_release(&list);
  return st;
}

static lode_status send_summary(lode__op_context *ctx, const char *folder, const char *done, const lode__buf *settings, lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "folder", lode__str(folder));
  lode__row_text(ctx, "done", lode__str(done));
  lode__row_json(ctx, "settings", settings && settings->len ? (lode_str){settings->data, settings->len} : LODE__LIT("{}"));
  return lode__row_summary(ctx, err);
}

/* A folder that is gone is forgotten by its path. */
static lode_status forget(lode__op_context *ctx, const char *start, const lode__project *project, lode_error *err) {
  lode__buf folder = {0};
  bool was = false;
  lode_status st = LODE_OK;
  if (project) lode__buf_adds(&folder, project->folder);
  else lode__buf_addf(&folder, "%s/" LODE__PROJECT_FOLDER, start);
  lode__buf_addc(&folder, '\0');
  if (folder.failed) LODE__GOTO(lode__fail_nomem(err));
  LODE__GOTO(lode__trust_list_forget(folder.data, &was, err));
  if (!was && !project) LODE__GOTO(lode__trust_list_forget(start, &was, err));
  if (!was) LODE__GOTO(lode__fail(err, LODE_NOT_FOUND, "%.300s is not in the list: `lode trust --list` shows it", folder.data));
  LODE__GOTO(send_summary(ctx, folder.data, "forgotten", NULL, err));
done:
  lode__buf_release(&folder);
  return st;
}

static lode_status grant(lode__op_context *ctx, const lode__project *project, lode_error *err) {
  lode__buf settings = {0};
  lode_status st = LODE_OK;
  LODE__GOTO(lode__trust_grant(project->folder, &settings, err));
  LODE__GOTO(send_summary(ctx, project->folder, "trusted as it is now", &settings, err));
done:
  lode__buf_release(&settings);
  return st;
}

lode_status lode__op_trust(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  const char *start = lode__arg_of(args, "path")->text.data;
  bool list = lode__arg_of(args, "list")->number, gone = lode__arg_of(args, "forget")->number;
  lode__project project = {0};
  if (list && (gone || start)) return lode__fail(err, LODE_INVALID, "--list takes neither a folder nor --forget");
  if (list) return send_list(ctx, err);
  if (ctx->folder) return lode__fail(err, LODE_INVALID, "a store that --store names needs no trust: name the project's folder instead");
  lode_status st = lode__project_locate(&project, start, NULL, err);
  if (st == LODE_NOT_FOUND && gone && start && start[0] == '/') st = forget(ctx, start, NULL, err);
  else if (st == LODE_OK) st = gone ? forget(ctx, start, &project, err) : grant(ctx, &project, err);
  lode__project_release(&project);
  return st;
}
