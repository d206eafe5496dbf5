/* op_code_config.c - settings, completion scripts, and starting anew. */
#include "cli.h"
#include "op_code.h"
#include "suggest.h"

#include "base/os.h"
#include "code/fs.h"

#include <stdio.h>
#include <unistd.h>

/* ---- config ---- */

static lode_status find_key(lode_str name, lode__config_key *key, lode_error *err) {
  lode__suggest best;
  char quoted[256];
  *key = lode__config_find(name);
  if (*key != LODE__CONFIG_COUNT) return LODE_OK;
  lode__suggest_init(&best, name);
  for (size_t i = 0; i < LODE__CONFIG_COUNT; i++) lode__suggest_try(&best, lode__str(lode__config_entries[i].key));
  lode__quote(name, quoted, sizeof quoted);
  if (best.found) return lode__fail(err, LODE_INVALID, "there is no setting %s; did you mean %s?", quoted, best.text);
  return lode__fail(err, LODE_INVALID, "there is no setting %s; `lode config list` shows them", quoted);
}

static lode_status send_setting(lode__op_context *ctx, const lode__config *config, lode__config_key key, lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "key", lode__str(lode__config_entries[key].key));
  lode__row_text(ctx, "value", lode__str(lode__config_text(config, key)));
  return lode__row_summary(ctx, err);
}

lode_status lode__op_config_get(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__project project;
  lode__config_key key;
  LODE__TRY(find_key(lode__arg_of(args, "key")->text, &key, err));
  LODE__TRY(lode__code_project(ctx, args, "project", &project, err));
  lode_status st = send_setting(ctx, &project.config, key, err);
  lode__project_release(&project);
  return st;
}

lode_status lode__op_config_set(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__project project;
  lode__config_key key;
  lode_status st;
  LODE__TRY(lode__op_may_write(ctx, err));
  LODE__TRY(find_key(lode__arg_of(args, "key")->text, &key, err));
  LODE__TRY(lode__code_project(ctx, args, "project", &project, err));
  const lode__arg *value = lode__arg_of(args, "value");
  if (key == LODE__CONFIG_MODEL && value->set) LODE__GOTO(lode__code_check_model(value->text, err));
  LODE__GOTO(lode__config_set(&project.config, key, value->text, err));
  if (project.trust.state == LODE__TRUST_FOREIGN) LODE__GOTO(lode__trust_check(&project.trust, err));
  LODE__GOTO(lode__project_prepare(&project, err));
  LODE__GOTO(lode__config_save(&project.config, project.folder, err));
  lode__code_allow(ctx, &project, key);
  LODE__GOTO(send_setting(ctx, &project.config, key, err));
done:
  lode__project_release(&project);
  return st;
}

lode_status lode__op_config_list(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__project project;
  lode_status st = LODE_OK;
  LODE__TRY(lode__code_project(ctx, args, "project", &project, err));
  for (size_t i = 0; i < LODE__CONFIG_COUNT && st == LODE_OK; i++) {
    lode__row_begin(ctx);
    lode__row_text(ctx, "key", lode__str(lode__config_entries[i].key));
    lode__row_text(ctx, "value", lode__str(lode__config_text(&project.config, (lode__config_key)i)));
    lode__row_bool(ctx, "set", project.config.values[i] != NULL);
    if (project.config.held[i]) lode__row_text(ctx, "held", lode__str(project.config.held[i]));
    lode__row_text(ctx, "about", lode__str(lode__config_entries[i].about));
    st = lode__row_send(ctx, err);
  }
  lode__project_release(&project);
  return st;
}

/* ---- completion ---- */

lode_status lode__op_completion(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  static void (*const scripts[])(lode__buf *) = {lode__complete_bash, lode__complete_zsh, lode__complete_fish};
  lode__buf out = {0};
  if (!ctx->sink->bytes) return lode__fail(err, LODE_UNSUPPORTED, "completion scripts are for a shell");
  scripts[lode__arg_of(args, "shell")->number](&out);
  lode_status st = out.failed ? lode__fail_nomem(err) : ctx->sink->bytes(ctx->sink, out.data, out.len, err);
  lode__buf_release(&out);
  return st;
}

/* ---- reset ---- */

/* The parts of the folder that are the index: the truth and what is derived from it. */
static bool is_setting(const char *name) {
  return strcmp(name, LODE__CONFIG_FILE) == 0 || strcmp(name, ".gitignore") == 0 || strcmp(name, "index.lock") == 0 ||
      strcmp(name, "watch.lock") == 0;
}

static lode_status empty_folder(const char *folder, bool all, lode_error *err) {
  lode__os_folder *names = lode__os_folder_open(folder);
  lode__buf path = {0};
  lode_status st = LODE_OK;
  const char *name;
  if (!names) return lode__fail_errno(err, errno, folder);
  while (st == LODE_OK && (name = lode__os_folder_next(names)) != NULL) {
    if (!all && is_setting(name)) continue;
    st = lode__fs_join(&path, folder, name, err);
    if (st != LODE_OK) break;
    if (lode__fs_is_folder(path.data)) st = lode__fs_remove_tree(path.data, err);
    else if (lode__os->unlink(path.data) < 0 && errno != ENOENT) st = lode__fail_errno(err, errno, path.data);
  }
  lode__os_folder_close(names);
  lode__buf_release(&path);
  return st;
}

/* One rename takes it away whole; what stays is copied back. */
static lode_status set_aside(const lode__project *project, bool all, lode__buf *backup, lode_error *err) {
  lode__config config = {0};
  lode_status st = LODE_OK;
  lode__buf_addf(backup, "%s.backup-%llu", project->folder, (unsigned long long)lode__os_wall_ms());
  lode__buf_addc(backup, '\0');
  if (backup->failed) return lode__fail_nomem(err);
  if (!all) LODE__GOTO(lode__config_load(&config, project->folder, err));
  if (lode__os->rename(project->folder, backup->data) < 0) LODE__GOTO(lode__fail_errno(err, errno, project->folder));
  if (all) goto done;
  LODE__GOTO(lode__project_prepare(project, err));
  LODE__GOTO(lode__config_save(&config, project->folder, err));
done:
  lode__config_release(&config);
  return st;
}

lode_status lode__op_reset(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  bool all = lode__arg_of(args, "what")->number == 1, keep = !lode__arg_of(args, "no_backup")->number;
  lode__project project;
  lode__job job = {.fd = -1};
  lode__buf backup = {0}, what = {0};
  lode_status st;
  LODE__TRY(lode__op_may_write(ctx, err));
  LODE__TRY(lode__project_locate(&project, lode__arg_of(args, "project")->text.data, ctx->folder, err));
  if (!ctx->folder && *lode__trust_foreign(project.folder))
    LODE__GOTO(lode__fail(err, LODE_REFUSED, "%.300s %s: name it with --store if it is to be removed", project.folder, lode__trust_foreign(project.folder)));
  if (!lode__fs_is_folder(project.folder)) LODE__GOTO(lode__fail(err, LODE_NOT_FOUND, "there is no index at %.300s", project.folder));
  lode__buf_addf(&what, "%s %s", all ? "everything in" : "the index in", project.folder);
  lode__buf_addc(&what, '\0');
  if (what.failed) LODE__GOTO(lode__fail_nomem(err));
  LODE__GOTO(lode__op_confirm(ctx, args, what.data, err));
  LODE__GOTO(lode__job_begin(&job, &project, LODE__JOB_INDEX, ctx->busy_ms ? ctx->busy_ms : 10000, err));
  if (keep) LODE__GOTO(set_aside(&project, all, &backup, err));
  else LODE__GOTO(empty_folder(project.folder, all, err));
  lode__job_end(&job);
  if (all && !keep && lode__os->rmdir(project.folder) < 0 && errno != ENOENT) LODE__GOTO(lode__fail_errno(err, errno, project.folder));
  lode__row_begin(ctx);
  lode__row_text(ctx, "root", lode__str(project.root));
  lode__row_text(ctx, "removed", lode__str(all ? "the index and its settings are removed" : "the index is removed"));
  lode__row_text(ctx, "backup", keep ? lode__str(backup.data) : (lode_str){0});
  LODE__GOTO(lode__row_summary(ctx, err));
done:
  lode__job_end(&job);
  lode__buf_release(&backup);
  lode__buf_release(&what);
  lode__project_release(&project);
  return st;
}
