/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_doctor.c - `lode doctor`: checks everything that can be wrong; each finding comes with its remedy.
 *
 * --repair never deletes a store: a damaged one is renamed, what can be read of it is copied to a new one, and files
 * whose chunks were lost are indexed again. Chunks without a file are deleted.
 */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "os/os.h"
#include "indexer/audit.h"
#include "scan/files.h"
#include "chunk/parser_pool.h"
#include "indexer/index_stamp.h"
#include "search/search_glossary.h"
#include "setup/mcp_clients.h"
#include "platform/process.h"

#include <stdio.h>
#include <unistd.h>

#define DOCTOR_MIN_FREE_BYTES (8u << 20)

typedef enum doctor_verdict { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAULT, DOCTOR_REPAIRED } doctor_verdict;

typedef struct doctor_state {
  op_context *ctx;
  project_info project;
  bool repair, has_config;
  uint64_t checks, bad, mended;
  bool reindex; /* files must be indexed again */
  lode_error *err;
} doctor_state;

static lode_status doctor_report(doctor_state *d, const char *check, doctor_verdict v, const char *remedy,
                                 const char *format, ...) __attribute__((format(printf, 5, 6)));
static lode_status doctor_report(doctor_state *d, const char *check, doctor_verdict v, const char *remedy,
                                 const char *format, ...) {
  static const char *const states[] = {"ok", "note", "bad", "mended"};
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  d->checks++;
  d->bad += v == DOCTOR_FAULT;
  d->mended += v == DOCTOR_REPAIRED;
  op_row_begin(d->ctx);
  op_row_text(d->ctx, "check", str_of(check));
  op_row_text(d->ctx, "state", str_of(states[v]));
  op_row_text(d->ctx, "detail", str_of(text));
  op_row_text(d->ctx, "remedy", remedy ? str_of(remedy) : (lode_str){0});
  return op_row_send(d->ctx, d->err);
}

/* ---- Around the store ---- */

static lode_status doctor_check_settings(doctor_state *d) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = op_code_settings(d->ctx, &d->project, &why);
  d->has_config = st == LODE_OK;
  if (st != LODE_OK)
    return doctor_report(d, "settings", DOCTOR_FAULT, "repair or move away .lode/" STOREFILE_CONFIG, "%s", why.text);
  return doctor_report(d, "settings", DOCTOR_OK, NULL, "model %s, search %s",
                       config_text(&d->project.config, CONFIG_MODEL),
                       config_text(&d->project.config, CONFIG_SEARCH_MODE));
}

static lode_status doctor_check_trust(doctor_state *d) {
  const trust_info *t = &d->project.trust;
  bool held = false;
  for (size_t i = 0; i < CONFIG_COUNT; i++) held = held || d->project.config.held[i];
  const char *remedy = trust_has_store(d->project.folder) ? "lode trust" : "git rm -r .lode";
  if (t->state == TRUST_TRACKED) return doctor_report(d, "trust", DOCTOR_FAULT, remedy, "%s", t->why);
  if (t->state == TRUST_FOREIGN) return doctor_report(d, "trust", DOCTOR_FAULT, "use --store DIR", "%s", t->why);
  if (t->tracked)
    TRY(doctor_report(d, "git", DOCTOR_WARNING, "git rm -r --cached .lode",
                      "git tracks files of the store: what a pull changes there is used as yours"));
  if (held)
    return doctor_report(d, "trust", DOCTOR_WARNING, "lode config list, then lode trust",
                         "settings that reach beyond the folder were not set by you, and have no effect");
  if (t->state == TRUST_ADOPTED)
    return doctor_report(d, "trust", DOCTOR_WARNING, "lode trust",
                         "the index was found here, not made by you: it is used, but the models that it names may not "
                         "reach beyond this machine");
  return doctor_report(d, "trust", DOCTOR_OK, NULL, "%s",
                       t->state == TRUST_NAMED  ? "the store was named, or LODE_TRUST is set"
                       : t->state == TRUST_NONE ? "there is no store yet"
                                                : "the store is yours");
}

static lode_status doctor_check_folder(doctor_state *d) {
  uint64_t left;
  char network[64];
  if (!files_is_dir(d->project.folder))
    return doctor_report(d, "folder", DOCTOR_WARNING, "lode index", "%.300s does not exist: the project is not indexed",
                         d->project.folder);
  if (access(d->project.folder, W_OK) != 0)
    TRY(doctor_report(d, "folder", DOCTOR_WARNING,
                      "search works; to index, give yourself the right to write, or use --store DIR",
                      "%.300s cannot be written", d->project.folder));
  os_fs_kind kind = os_fs_kind_of(d->project.folder, network, sizeof network);
  if (kind == OS_FS_WINDOWS)
    TRY(doctor_report(d, "folder", DOCTOR_WARNING, "keep the index in a folder of the Linux file system: --store DIR",
                      "it lies on a Windows drive, which is slow here and whose locks cannot be trusted"));
  if (kind == OS_FS_NETWORK)
    TRY(doctor_report(d, "folder", DOCTOR_WARNING, "keep the index on a local disk: --store DIR",
                      "it lies on a network file system (%s), whose locks cannot be trusted", network));
  if (os_disk_free(d->project.folder, &left) && left < DOCTOR_MIN_FREE_BYTES)
    return doctor_report(d, "disk", DOCTOR_FAULT, "make room on the disk", "only %llu KiB are free",
                         (unsigned long long)(left / 1024));
  return doctor_report(d, "folder", DOCTOR_OK, NULL, "%.300s", d->project.folder);
}

static lode_status doctor_check_jobs(doctor_state *d) {
  project_job_status index, watch;
  project_job_read(d->project.folder, PROJECT_JOB_INDEX, &index);
  project_job_read(d->project.folder, PROJECT_JOB_WATCH, &watch);
  if (index.running)
    TRY(doctor_report(d, "indexer", DOCTOR_WARNING, NULL, "process %llu is at work: %s %llu of %llu",
                      (unsigned long long)index.pid, index.phase, (unsigned long long)index.done,
                      (unsigned long long)index.total));
  return doctor_report(d, "watcher", DOCTOR_OK, NULL, "%s", watch.running ? "runs" : "does not run");
}

static lode_status doctor_check_clients(doctor_state *d) {
  size_t registered = 0;
  for (size_t i = 0; i < setup_client_count(); i++) {
    setup_client_state state;
    strbuf path = {0};
    lode_status st = setup_client_inspect(i, d->project.root, &state, &path, d->err);
    if (st == LODE_OK && state == SETUP_CLIENT_BROKEN)
      st = doctor_report(d, "mcp", DOCTOR_FAULT, "repair that file", "%s: %.300s cannot be parsed",
                         setup_client_title(i), path.data);
    if (st == LODE_OK && state == SETUP_CLIENT_DIFFERENT)
      st = doctor_report(d, "mcp", DOCTOR_WARNING, "lode setup", "%s starts another lode: %.300s",
                         setup_client_title(i), path.data);
    registered += state == SETUP_CLIENT_CURRENT || state == SETUP_CLIENT_DIFFERENT;
    strbuf_release(&path);
    if (st != LODE_OK) return st;
  }
  return doctor_report(d, "mcp", registered ? DOCTOR_OK : DOCTOR_WARNING, registered ? NULL : "lode setup",
                       "%zu client%s this project's server", registered, registered == 1 ? " knows" : "s know");
}

static lode_status doctor_check_parser(doctor_state *d) {
  parser_pool_options options = {0};
  parser_pool *pool = NULL;
  size_t with = 0, have = 0;
  TRY(parser_pool_open(&options, &pool, d->err));
  const char *parser = parser_pool_program(pool);
  for (size_t i = 0; i < lang_count; i++) {
    if (lang_table[i].split != LANG_SPLIT_TREE) continue;
    with++;
    have += parser_pool_has(pool, &lang_table[i]);
  }
  lode_status st;
  if (!parser)
    st = doctor_report(d, "parser", DOCTOR_WARNING,
                       "install lode with its parser, or set LODE_PARSER; then lode index --force",
                       "lode-parser was not found: files are cut by lines, not by syntax");
  else
    st = doctor_report(d, "parser", have == with ? DOCTOR_OK : DOCTOR_WARNING,
                       have == with ? NULL : "install the grammars", "%zu of %zu languages with a grammar: %.300s",
                       have, with, parser);
  parser_pool_close(pool);
  return st;
}

static lode_status doctor_check_model(doctor_state *d) {
  const char *name = d->has_config ? config_text(&d->project.config, CONFIG_MODEL) : "code";
  lode_error why = {.record = LODE_NO_RECORD};
  lode_embedder *model = NULL;
  if (strcmp(name, "none") == 0)
    return doctor_report(d, "model", DOCTOR_OK, NULL, "none is wanted: search goes by words");
  lode_status st = lode_embedder_open(str_of(name), NULL, &model, &why); /* a suppressed setting counts as not set */
  if (st != LODE_OK) return doctor_report(d, "model", DOCTOR_WARNING, "lode model list", "%s", why.text);
  lode_str identity = lode_embedder_info_of(model)->identity;
  st = doctor_report(d, "model", DOCTOR_OK, NULL, "%.*s", (int)identity.len, identity.data);
  lode_embedder_close(model);
  return st;
}

/* Questions in other languages than English need a table that is part of lode. */
static lode_status doctor_check_glossary(doctor_state *d) {
  lode_error why = {.record = LODE_NO_RECORD};
  search_glossary *glossary = NULL;
  lode_status st = search_glossary_open(NULL, &glossary, &why);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK)
    return doctor_report(d, "languages", DOCTOR_WARNING, "install lode with its models folder, or set LODE_MODELS",
                         "only English is understood in questions: %s", why.text);
  st = doctor_report(d, "languages", DOCTOR_OK, NULL, "questions in five languages, %zu words",
                     search_glossary_count(glossary));
  search_glossary_close(glossary);
  return st;
}

/* ---- The store ---- */

typedef struct doctor_damages {
  uint64_t n;
  char first[300];
} doctor_damages;

static void doctor_count_damage(void *ctx, const lode_damage *damage) {
  doctor_damages *all = ctx;
  if (all->n++ == 0) snprintf(all->first, sizeof all->first, "%s: %s", damage->what, damage->detail);
}

/* The new store has its own id; it is trusted like the old one. */
static void doctor_remember_store(doctor_state *d) {
  lode_error why = {.record = LODE_NO_RECORD};
  if (trust_add_created(d->project.folder, NULL, &why) != LODE_OK)
    op_note(d->ctx, "%.200s cannot be remembered: %.300s", d->project.folder, why.text);
}

/* Copies all that is provably intact to a new store that replaces the old one; the old one is kept. The new one is made
 * in a folder that git ignores from the start, so that an interrupted repair leaves nothing for git to list. */
static lode_status doctor_salvage(doctor_state *d, lode_salvage_report *report, strbuf *kept) {
  unsigned long long now = (unsigned long long)(os_wall_ms() / 1000);
  strbuf around = {0}, fresh = {0};
  project_info made = d->project;
  lode_status st;
  kept->len = 0;
  strbuf_addf(kept, "%s.damaged-%llu", d->project.folder, now);
  strbuf_addch(kept, '\0');
  strbuf_addf(&around, "%s.new-%llu", d->project.folder, now);
  strbuf_addch(&around, '\0');
  if (kept->failed || around.failed) TRY_GOTO(err_nomem(d->err));
  TRY_GOTO(files_join(&fresh, around.data, "store", d->err));
  doctor_damages lost = {0};
  made.folder = around.data;
  TRY_GOTO(project_prepare(&made, d->err));
  TRY_GOTO(lode_salvage(d->project.folder, fresh.data, doctor_count_damage, &lost, d->ctx->progress, report, d->err));
  made.folder = fresh.data;
  TRY_GOTO(project_prepare(&made, d->err));
  if (d->has_config) TRY_GOTO(config_save(&d->project.config, fresh.data, d->err));
  if (os_api->rename(d->project.folder, kept->data) < 0) TRY_GOTO(err_errno(d->err, errno, d->project.folder));
  if (os_api->rename(fresh.data, d->project.folder) < 0) {
    st = err_errno(d->err, errno, fresh.data);
    (void)!os_api->rename(kept->data, d->project.folder);
    goto done;
  }
  if (d->project.trust.state == TRUST_OURS) doctor_remember_store(d);
done:
  /* empty now, unless something failed after the salvage; what stays does no harm */
  if (made.folder != d->project.folder && !files_is_dir(fresh.data)) {
    (void)!beneath_unlink(around.data, ".gitignore");
    (void)!os_api->rmdir(around.data);
  }
  strbuf_release(&around);
  strbuf_release(&fresh);
  return st;
}

static lode_status doctor_repair_store(doctor_state *d, const char *why) {
  lode_salvage_report report = {0};
  strbuf kept = {0};
  project_job job = {.fd = -1};
  lode_status st;
  if (d->project.address) return doctor_report(d, "store", DOCTOR_FAULT, "look at the cluster", "%s", why);
  if (!d->repair) return doctor_report(d, "store", DOCTOR_FAULT, "lode doctor --repair", "%s", why);
  TRY_GOTO(project_job_begin(&job, &d->project, PROJECT_JOB_INDEX, d->ctx->busy_ms ? d->ctx->busy_ms : 10000, d->err));
  TRY_GOTO(doctor_salvage(d, &report, &kept));
  d->reindex = true;
  st = doctor_report(d, "store", DOCTOR_REPAIRED, NULL,
                     "%llu records were brought into a new store, %llu were lost; the damaged one is at %.300s",
                     (unsigned long long)report.records, (unsigned long long)report.lost, kept.data);
done:
  project_job_end(&job);
  strbuf_release(&kept);
  return st;
}

static lode_status doctor_verify(doctor_state *d, lode_store *store, bool *sound) {
  doctor_damages all = {0};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = lode_verify(store, doctor_count_damage, &all, d->ctx->progress, &why);
  *sound = st == LODE_OK;
  if (st == LODE_OK) return doctor_report(d, "store", DOCTOR_OK, NULL, "every checksum is right");
  if (st != LODE_CORRUPT) {
    *d->err = why;
    return st;
  }
  char text[400];
  snprintf(text, sizeof text, "%llu problem%s, the first: %.300s", (unsigned long long)all.n, all.n == 1 ? "" : "s",
           all.n ? all.first : why.text);
  return doctor_report(d, "damage", DOCTOR_WARNING, NULL, "%s", text);
}

static lode_status doctor_check_index(doctor_state *d, lode_store *store) {
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  bool code = false, files = false, unfinished = false;
  char embedder[400] = "";
  uint64_t pending = 0;
  TRY(lode_collections(store, &list, d->err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_CODE))) {
      code = true;
      if (info->embedder.data)
        snprintf(embedder, sizeof embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
      pending = info->pending;
    }
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) {
      files = true;
      indexer_stamp_parse(info->metadata, &stamp);
    }
    unfinished = unfinished || str_eq(info->name, STR_LIT(INDEXER_COLL_CODE INDEXER_NEW_SUFFIX));
  }
  lode_collection_list_free(list);
  if (pending)
    TRY(doctor_report(d, "vectors", DOCTOR_WARNING, "lode index", "%llu chunks have no vector",
                      (unsigned long long)pending));
  if (!code || !files || !stamp.indexed_ms)
    return doctor_report(d, "index", DOCTOR_WARNING, "lode index", "the project is not indexed yet, or not to the end");
  if (unfinished)
    TRY(doctor_report(d, "index", DOCTOR_WARNING, "lode index",
                      "a run with --force was interrupted; the old index serves"));
  if (stamp.revision != INDEXER_REVISION)
    TRY(doctor_report(d, "index", DOCTOR_WARNING, "lode index",
                      "it was made by lode %s, which cuts files in another way", stamp.lode));
  if (indexer_stamp_display(&stamp, &d->project.config) == INDEXER_DISPLAY_UNSURE)
    TRY(doctor_report(d, "index", DOCTOR_WARNING, "lode index",
                      "it was made under other rules for secrets than those of now, and may hold some"));
  if (stamp.skipped[SCAN_SKIP_UNREADABLE])
    TRY(doctor_report(d, "files", DOCTOR_WARNING, "lode skipped --reason unreadable",
                      "%llu file%s or folders could not be read by the last run",
                      (unsigned long long)stamp.skipped[SCAN_SKIP_UNREADABLE],
                      stamp.skipped[SCAN_SKIP_UNREADABLE] == 1 ? "" : "s"));
  if (stamp.root[0] && strcmp(stamp.root, d->project.root) != 0)
    TRY(doctor_report(d, "index", DOCTOR_WARNING, NULL, "it was made when the project lay at %.300s", stamp.root));
  return doctor_report(d, "index", DOCTOR_OK, NULL, "made by lode %s%s%s", stamp.lode, embedder[0] ? " with " : "",
                       embedder);
}

static lode_status doctor_check_agreement(doctor_state *d) {
  indexer_audit audit;
  lode_store *store = NULL;
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = op_code_open(d->ctx, &d->project, d->repair, &store, &why);
  if (st == LODE_OK) st = indexer_audit_run(store, d->repair, d->ctx->progress, &audit, &why);
  if (store) d->ctx->release(d->ctx->opener, store);
  if (st == LODE_NOT_FOUND) return LODE_OK;
  if (st == LODE_CANCELLED || st == LODE_NOMEM) {
    *d->err = why;
    return st;
  }
  if (st != LODE_OK) return doctor_report(d, "agreement", DOCTOR_FAULT, "lode doctor --repair", "%s", why.text);
  if (!audit.short_files && !audit.orphans && !audit.unpaired)
    return doctor_report(d, "agreement", DOCTOR_OK, NULL, "%llu file%s, %llu chunk%s", (unsigned long long)audit.files,
                         audit.files == 1 ? "" : "s", (unsigned long long)audit.chunks, audit.chunks == 1 ? "" : "s");
  d->reindex = d->reindex || d->repair;
  return doctor_report(
      d, "agreement", d->repair ? DOCTOR_REPAIRED : DOCTOR_FAULT, d->repair ? NULL : "lode doctor --repair",
      "%llu files lack chunks, %llu chunks lack their file, %llu lack their pair",
      (unsigned long long)audit.short_files, (unsigned long long)audit.orphans, (unsigned long long)audit.unpaired);
}

static lode_status doctor_check_store(doctor_state *d) {
  lode_store *store = NULL;
  lode_error why = {.record = LODE_NO_RECORD};
  bool sound = false;
  if (trust_check(&d->project.trust, NULL) != LODE_OK) return LODE_OK; /* already reported */
  if (!project_has_store(&d->project))
    return doctor_report(d, "store", DOCTOR_WARNING, "lode index", "there is none yet");
  lode_status st = op_code_open(d->ctx, &d->project, false, &store, &why);
  if (st == LODE_OK) {
    lode_stats stats;
    st = doctor_verify(d, store, &sound);
    if (st == LODE_OK && sound) st = doctor_check_index(d, store);
    if (st == LODE_OK && lode_store_stats(store, &stats, NULL) == LODE_OK && stats.quarantined)
      st = doctor_report(d, "quarantine", DOCTOR_WARNING, "look at them, then remove them",
                         "%llu damaged files were set aside and replaced", (unsigned long long)stats.quarantined);
    d->ctx->release(d->ctx->opener, store);
    if (st != LODE_OK) return st;
    return sound ? LODE_OK : doctor_repair_store(d, "the store is damaged");
  }
  if (st == LODE_CORRUPT || st == LODE_IO) return doctor_repair_store(d, why.text);
  return doctor_report(d, "store", DOCTOR_FAULT, st == LODE_BUSY ? "wait, or end the process that holds it" : NULL,
                       "%s", why.text);
}

/* Indexes again the files whose records were lost. */
static lode_status doctor_reindex(doctor_state *d) {
  op_code_index_options run = {0};
  indexer_report report;
  lode_error why = {.record = LODE_NO_RECORD};
  if (!d->reindex) return LODE_OK;
  lode_status st = op_code_index(d->ctx, &d->project, &run, &report, &why);
  if (st != LODE_OK)
    return doctor_report(d, "index", DOCTOR_FAULT, "lode index", "it could not be brought up to date: %s", why.text);
  return doctor_report(d, "index", DOCTOR_REPAIRED, NULL, "%llu files were read again, %llu chunks written",
                       (unsigned long long)(report.added + report.changed), (unsigned long long)report.chunks);
}

lode_status op_do_doctor(op_context *ctx, const op_doctor_args *args, lode_error *err) {
  doctor_state d = {.ctx = ctx, .repair = args->repair.on, .err = err};
  lode_status st;
  if (d.repair) TRY(op_check_may_write(ctx, err));
  TRY(op_code_locate(ctx, args->project.path, &d.project, err));
  TRY_GOTO(doctor_report(&d, "root", DOCTOR_OK, NULL, "%.400s", d.project.root));
  TRY_GOTO(doctor_check_settings(&d));
  TRY_GOTO(doctor_check_trust(&d));
  TRY_GOTO(doctor_check_folder(&d));
  TRY_GOTO(doctor_check_jobs(&d));
  TRY_GOTO(doctor_check_store(&d));
  if (!d.bad) TRY_GOTO(doctor_check_agreement(&d));
  TRY_GOTO(doctor_reindex(&d));
  TRY_GOTO(doctor_check_model(&d));
  TRY_GOTO(doctor_check_glossary(&d));
  TRY_GOTO(doctor_check_parser(&d));
  TRY_GOTO(doctor_check_clients(&d));
  op_summary_begin(ctx);
  op_row_bool(ctx, "ok", d.bad == 0);
  op_row_count(ctx, "checks", d.checks);
  op_row_count(ctx, "bad", d.bad);
  op_row_count(ctx, "mended", d.mended);
  TRY_GOTO(op_row_send(ctx, err));
  ctx->damaged = d.bad > 0;
done:
  project_release(&d.project);
  return st;
}
