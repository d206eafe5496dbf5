/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_config.c - settings, and `lode reset`. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"
#include "ops/suggest.h"

#include "os/store_files.h"
#include "scan/files.h"
#include "indexer/index_owned.h"
#include "indexer/code_record.h"

#include <unistd.h>

/* ---- config ---- */

static lode_status setting_find(lode_str name, config_key *key, lode_error *err) {
  op_suggest best;
  char quoted[256];
  *key = config_find(name);
  if (*key != CONFIG_COUNT) return LODE_OK;
  op_suggest_init(&best, name);
  for (size_t i = 0; i < CONFIG_COUNT; i++) op_suggest_try(&best, str_of(config_table[i].key));
  str_quote(name, quoted, sizeof quoted);
  if (best.found) return err_set(err, LODE_INVALID, "there is no setting %s; did you mean %s?", quoted, best.text);
  return err_set(err, LODE_INVALID, "there is no setting %s; `lode config list` shows them", quoted);
}

static lode_status setting_send(op_context *ctx, const config_values *config, config_key key, lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "key", str_of(config_table[key].key));
  op_row_text(ctx, "value", str_of(config_text(config, key)));
  return op_row_send(ctx, err);
}

lode_status op_do_config_get(op_context *ctx, const op_config_args *args, lode_error *err) {
  project_info project;
  config_key key;
  TRY(setting_find(args->key.text, &key, err));
  TRY(op_code_project(ctx, args->project.path, &project, err));
  lode_status st = setting_send(ctx, &project.config, key, err);
  project_release(&project);
  return st;
}

/* A value without data: the default. */
static lode_status setting_change(op_context *ctx, const op_config_args *args, lode_str value, lode_error *err) {
  project_info project;
  config_key key;
  lode_status st;
  TRY(op_check_may_write(ctx, err));
  TRY(setting_find(args->key.text, &key, err));
  TRY(op_code_project(ctx, args->project.path, &project, err));
  if (key == CONFIG_MODEL && value.data) TRY_GOTO(op_code_check_model(value, err));
  TRY_GOTO(config_set(&project.config, key, value, err));
  if (project.trust.state == TRUST_FOREIGN) TRY_GOTO(trust_check(&project.trust, err));
  TRY_GOTO(project_prepare(&project, err));
  TRY_GOTO(config_save(&project.config, project.folder, err));
  op_code_allow(ctx, &project, key);
  TRY_GOTO(setting_send(ctx, &project.config, key, err));
done:
  project_release(&project);
  return st;
}

lode_status op_do_config_set(op_context *ctx, const op_config_args *args, lode_error *err) {
  return setting_change(ctx, args, args->value.text, err);
}

lode_status op_do_config_unset(op_context *ctx, const op_config_args *args, lode_error *err) {
  return setting_change(ctx, args, (lode_str){0}, err);
}

lode_status op_do_config_list(op_context *ctx, const op_config_args *args, lode_error *err) {
  project_info project;
  lode_status st = LODE_OK;
  TRY(op_code_project(ctx, args->project.path, &project, err));
  for (size_t i = 0; i < CONFIG_COUNT && st == LODE_OK; i++) {
    op_row_begin(ctx);
    op_row_text(ctx, "key", str_of(config_table[i].key));
    op_row_text(ctx, "value", str_of(config_text(&project.config, (config_key)i)));
    op_row_bool(ctx, "set", project.config.values[i] != NULL);
    if (project.config.held[i]) op_row_text(ctx, "held", str_of(project.config.held[i]));
    op_row_text(ctx, "about", str_of(config_table[i].about));
    st = op_row_send(ctx, err);
  }
  project_release(&project);
  return st;
}

/* ---- reset ---- */

/* Removes nothing that Lode did not make, and nothing else that the user keeps in the same store: os/store_files.h
 * knows the files, indexer/index_owned.h the collections. */
typedef struct reset_state {
  op_context *ctx;
  project_info project;
  bool all, keep;
  strbuf backup;  /* folder with the backup; empty: none was made */
  strbuf foreign; /* names of files that are left alone */
  bool indexed;   /* the store has a code index */
  size_t others;  /* collections that do not belong to it */
} reset_state;

static lode_status reset_make_backup(reset_state *r, lode_error *err) {
  strbuf_addf(&r->backup, "%s.backup-%llu", r->project.folder, (unsigned long long)os_wall_ms());
  strbuf_addch(&r->backup, '\0');
  if (r->backup.failed) return err_nomem(err);
  if (os_api->mkdir(r->backup.data, 0700) == 0) return LODE_OK;
  lode_status st = errno == EROFS || errno == EACCES
                       ? err_set(err, LODE_READONLY, "%.400s cannot be made: %.100s", r->backup.data, strerror(errno))
                       : err_errno(err, errno, r->backup.data);
  r->backup.len = 0;
  return st;
}

/* The backup is complete, so a failure here is only reported. */
static void hide_backup(reset_state *r) {
  lode_error why = {.record = LODE_NO_RECORD};
  if (project_write_gitignore(r->backup.data, &why) != LODE_OK)
    op_note(r->ctx, "git will list %.200s: %.200s", r->backup.data, why.text);
}

/* Removes the store's files, or moves them to the backup. */
static lode_status reset_clear_files(reset_state *r, lode_error *err) {
  unsigned kinds = STOREFILE_DATA | (r->all ? STOREFILE_PROJECT : 0u);
  if (r->keep) TRY(reset_make_backup(r, err));
  TRY(storefile_clear(r->project.folder, kinds, r->keep ? r->backup.data : NULL, &r->foreign, err));
  /* there were no files, so there is no backup */
  if (r->keep && os_api->rmdir(r->backup.data) == 0) r->backup.len = 0;
  if (r->backup.len) hide_backup(r);
  return LODE_OK;
}

static lode_status reset_count_others(reset_state *r, lode_store *store, lode_error *err) {
  lode_collection_list *list = NULL;
  TRY(indexer_owns_coll(store, STR_LIT(INDEXER_COLL_FILES), &r->indexed, err));
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    if (!r->indexed || !indexer_is_index_name(lode_collection_list_at(list, i)->name)) r->others++;
  }
  lode_collection_list_free(list);
  return LODE_OK;
}

static lode_status reset_drop(lode_store *store, lode_str name, lode_error *err) {
  lode_status st = lode_collection_drop(store, name, err);
  return st == LODE_NOT_FOUND ? LODE_OK : st; /* another process dropped it */
}

/* Drops the collection whose metadata marks this as an index last: if the process is killed before, what is left is
 * still recognised as the project's. */
static lode_status reset_drop_owned(lode_store *store, lode_error *err) {
  static const lode_str last = STR_LIT(INDEXER_COLL_FILES);
  lode_collection_list *list = NULL;
  lode_status st = LODE_OK;
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list) && st == LODE_OK; i++) {
    lode_str name = lode_collection_list_at(list, i)->name;
    if (indexer_is_index_name(name) && !str_eq(name, last)) st = reset_drop(store, name, err);
  }
  lode_collection_list_free(list);
  return st == LODE_OK ? reset_drop(store, last, err) : st;
}

/* For a store that also holds other collections: backs up all of it and drops the project's collections. */
static lode_status reset_clear_collections(reset_state *r, lode_store *store, lode_error *err) {
  strbuf file = {0};
  lode_status st = LODE_OK;
  if (r->keep) {
    TRY_GOTO(reset_make_backup(r, err));
    TRY_GOTO(files_join(&file, r->backup.data, STOREFILE_DB, err));
    TRY_GOTO(lode_backup(store, file.data, r->ctx->progress, err));
    hide_backup(r);
  }
  if (r->indexed) TRY_GOTO(reset_drop_owned(store, err));
done:
  strbuf_release(&file);
  return st;
}

/* Opening the store also finishes what a killed writer left, so that no file is moved or removed while its journal
 * is needed. A store that is not trusted is not opened, but removed or moved as it is. */
static lode_status reset_store(reset_state *r, lode_error *err) {
  op_open_options how = {.write = true, .brief = true, .folder = project_store(&r->project)};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_store *store = NULL;
  if (!project_has_store(&r->project)) return reset_clear_files(r, err);
  lode_status st = trust_check(&r->project.trust, &why);
  if (st == LODE_OK) st = r->ctx->open(r->ctx->opener, &how, &store, &why);
  if (st == LODE_OK) st = reset_count_others(r, store, &why);
  if (st == LODE_OK && ((!r->all && r->others) || r->project.address)) {
    st = reset_clear_collections(r, store, err);
    r->ctx->release(r->ctx->opener, store);
    return st;
  }
  if (store) r->ctx->release(r->ctx->opener, store);
  if (st != LODE_OK && r->project.address) {
    if (err) *err = why;
    return st;
  }
  if (st == LODE_BUSY || st == LODE_READONLY || st == LODE_NOMEM) {
    if (err) *err = why;
    return st;
  }
  if (st != LODE_OK && !r->all && !r->keep)
    return err_set(err, LODE_REFUSED,
                   "the store %s, so it is not known what else is in it (%.200s): without "
                   "--no-backup it is set aside, `lode reset all` removes all of it",
                   st == LODE_REFUSED ? "is not trusted" : "cannot be read", why.text);
  r->others = 0; /* they are removed with the files */
  return reset_clear_files(r, err);
}

static lode_status reset_send(reset_state *r, lode_error *err) {
  op_context *ctx = r->ctx;
  if (r->foreign.len)
    op_note(ctx, "not made by lode, so left in %.200s: %.*s", r->project.folder,
            (int)(r->foreign.len > 300 ? 300 : r->foreign.len), r->foreign.data);
  if (r->others)
    op_note(ctx, "%zu other collection%s of this store stay%s", r->others, r->others == 1 ? "" : "s",
            r->others == 1 ? "s" : "");
  op_summary_begin(ctx);
  op_row_text(ctx, "root", str_of(r->project.root));
  op_row_text(ctx, "removed", str_of(r->all ? "the index and its settings are removed" : "the index is removed"));
  op_row_text(ctx, "backup", r->backup.len ? str_of(r->backup.data) : (lode_str){0});
  return op_row_send(ctx, err);
}

lode_status op_do_reset(op_context *ctx, const op_reset_args *args, lode_error *err) {
  reset_state r = {.ctx = ctx, .all = args->what.index == 1, .keep = !args->no_backup.on};
  project_job job = {.fd = -1};
  strbuf what = {0};
  lode_status st;
  TRY(op_check_may_write(ctx, err));
  TRY(project_locate(&r.project, args->project.path, ctx->folder, err));
  if (!ctx->folder && *trust_foreign_reason(r.project.folder))
    TRY_GOTO(err_set(err, LODE_REFUSED, "%.300s %s: name it with --store if it is to be removed", r.project.folder,
                     trust_foreign_reason(r.project.folder)));
  if (!ctx->folder) trust_examine(r.project.folder, false, &r.project.trust);
  if (r.all) TRY_GOTO(project_need_folder(&r.project, "`lode reset all`", err));
  if (r.project.address) {
    TRY_GOTO(project_prepare(&r.project, err)); /* for the lock */
  } else if (!files_is_dir(r.project.folder))
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "there is no index at %.300s", r.project.folder));
  strbuf_addf(&what, "%s %s", r.all ? "everything that lode made in" : "the index in", project_store(&r.project));
  strbuf_addch(&what, '\0');
  if (what.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(op_confirm(ctx, args->yes.on, what.data, err));
  bool indexed = project_was_indexed(r.project.folder);
  TRY_GOTO(project_job_begin(&job, &r.project, PROJECT_JOB_INDEX, ctx->busy_ms ? ctx->busy_ms : 10000, err));
  st = reset_store(&r, err);
  /* the lock file marks a folder that `lode index` writes; a copy of an index is none */
  if (!indexed) (void)!beneath_unlink(r.project.folder, STOREFILE_INDEX_LOCK);
  TRY_GOTO(st);
  project_job_end(&job);
  if (r.all && os_api->rmdir(r.project.folder) < 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
    TRY_GOTO(err_errno(err, errno, r.project.folder));
  TRY_GOTO(reset_send(&r, err));
done:
  project_job_end(&job);
  strbuf_release(&r.backup);
  strbuf_release(&r.foreign);
  strbuf_release(&what);
  project_release(&r.project);
  return st;
}
