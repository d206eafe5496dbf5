/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_status.c - `lode status`: the state of an index. Reads counters only, so the time does not depend on the
 * size of the index. What cannot be read is reported, and everything else is still shown. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "os/os.h"
#include "scan/files.h"
#include "indexer/code_record.h"
#include "indexer/index_stamp.h"
#include "setup/mcp_clients.h"

#include <stdio.h>

enum { STATUS_MAX_VALUES = 200 };

typedef struct status_view {
  project_info project;
  lode_store *store;
  lode_collection_list *list;
  lode_collection *code, *files;
  const lode_collection_info *code_info, *files_info, *quality_info, *symbols_info;
  indexer_stamp stamp;
  lode_stats stats;
  bool has_stats;
  project_job_status index, watch;
  lode_error damage; /* status OK: none */
} status_view;

static void status_set_damage(status_view *v, lode_status st, const lode_error *err) {
  if (v->damage.status != LODE_OK) return;
  v->damage = *err;
  v->damage.status = st;
}

static lode_collection *status_open_collection(status_view *v, const lode_collection_info *info) {
  lode_collection_options plain = {0};
  lode_collection *c = NULL;
  lode_error err = {.record = LODE_NO_RECORD};
  if (!info) return NULL;
  lode_status st = lode_collection_open(v->store, info->name, &plain, &c, &err);
  if (st != LODE_OK) status_set_damage(v, st, &err);
  return c;
}

static void status_read_store(op_context *ctx, status_view *v, bool skip_stats) {
  lode_error err = {.record = LODE_NO_RECORD};
  lode_status st = op_code_open(ctx, &v->project, false, &v->store, &err);
  if (st == LODE_OK) st = lode_collections(v->store, &v->list, &err);
  if (st == LODE_UNSUPPORTED) op_note(ctx, "%s", err.text);
  if (st != LODE_OK && st != LODE_UNSUPPORTED) status_set_damage(v, st, &err);
  if (st != LODE_OK) return;
  for (size_t i = 0; i < lode_collection_list_count(v->list); i++) {
    const lode_collection_info *info = lode_collection_list_at(v->list, i);
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_CODE))) v->code_info = info;
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) v->files_info = info;
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_QUALITY))) v->quality_info = info;
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_SYMBOLS))) v->symbols_info = info;
  }
  if (v->files_info) indexer_stamp_parse(v->files_info->metadata, &v->stamp);
  v->files = status_open_collection(v, v->files_info);
  if (skip_stats) return;
  v->code = status_open_collection(v, v->code_info);
  st = lode_store_stats(v->store, &v->stats, &err);
  v->has_stats = st == LODE_OK;
  if (st != LODE_OK) status_set_damage(v, st, &err);
}

static void status_view_release(op_context *ctx, status_view *v) {
  if (v->code) lode_collection_close(v->code);
  if (v->files) lode_collection_close(v->files);
  lode_collection_list_free(v->list);
  if (v->store) ctx->release(ctx->opener, v->store);
  project_release(&v->project);
}

/* ---- Parts of the result ---- */

/* Files in the index: its file table also knows those that were left out because of their text. */
static uint64_t status_count_files(status_view *v) {
  lode_facet_list *skipped = NULL;
  lode_error err = {.record = LODE_NO_RECORD};
  uint64_t n = v->files_info ? v->files_info->records : 0, left_out = 0;
  if (!v->files || lode_counters(v->files, STR_LIT("skip"), &skipped, &err) != LODE_OK) return n;
  for (size_t i = 0; i < lode_facet_list_count(skipped); i++) left_out += lode_facet_list_at(skipped, i)->count;
  lode_facet_list_free(skipped);
  return left_out < n ? n - left_out : 0;
}

/* Files that are known and not indexed have a language, too: takes them away, so that the languages add up to the
 * files. There are as many of them as were left out because of their text; where they are too many to be read, nothing
 * is. */
enum { STATUS_MAX_LEFT_OUT = 20000 };
static lode_facet_list *status_left_out_languages(status_view *v) {
  strbuf where = {0};
  lode_facet_list *list = NULL;
  uint64_t left_out = v->files_info ? v->files_info->records - status_count_files(v) : 0;
  if (left_out == 0 || left_out > STATUS_MAX_LEFT_OUT) return NULL;
  strbuf_addstr(&where, "{\"skip\":{\"$in\":[");
  for (size_t i = 1; i < SCAN_SKIP_COUNT; i++)
    strbuf_addf(&where, "%s\"%s\"", i > 1 ? "," : "", scan_skip_name((scan_skip)i));
  strbuf_addstr(&where, "]}}");
  if (where.failed || lode_facets(v->files, STR_LIT("language"), (lode_str){where.data, where.len}, STATUS_MAX_VALUES,
                                  &list, NULL) != LODE_OK)
    list = NULL;
  strbuf_release(&where);
  return list;
}

static uint64_t status_left_out_of(const lode_facet_list *list, lode_str value) {
  for (size_t i = 0; list && i < lode_facet_list_count(list); i++)
    if (str_eq(lode_facet_list_at(list, i)->value, value)) return lode_facet_list_at(list, i)->count;
  return 0;
}

/* {"c":120,"go":3}; from counters, or from the records. */
static void status_put_counts(op_context *ctx, status_view *v, const char *name, lode_collection *c, const char *key,
                              bool recount) {
  lode_facet_list *list = NULL;
  lode_error err = {.record = LODE_NO_RECORD};
  strbuf text = {0};
  if (!c) return;
  lode_status st = recount ? lode_facets(c, str_of(key), (lode_str){0}, STATUS_MAX_VALUES, &list, &err)
                           : lode_counters(c, str_of(key), &list, &err);
  /* a salvaged store may have lost its counters: then count the records */
  if (st == LODE_NOT_FOUND) st = lode_facets(c, str_of(key), (lode_str){0}, STATUS_MAX_VALUES, &list, &err);
  if (st != LODE_OK) {
    status_set_damage(v, st, &err);
    return;
  }
  lode_facet_list *left_out = c == v->files ? status_left_out_languages(v) : NULL;
  strbuf_addch(&text, '{');
  for (size_t i = 0; i < lode_facet_list_count(list) && i < STATUS_MAX_VALUES; i++) {
    const lode_facet *f = lode_facet_list_at(list, i);
    uint64_t without = status_left_out_of(left_out, f->value), n = f->count > without ? f->count - without : 0;
    if (n)
      strbuf_addf(&text, "%s%.*s:%llu", text.len > 1 ? "," : "", (int)f->value.len, f->value.data,
                  (unsigned long long)n);
  }
  lode_facet_list_free(left_out);
  strbuf_addch(&text, '}');
  if (!text.failed) op_row_json(ctx, name, op_row_copy(ctx, (lode_str){text.data, text.len}));
  strbuf_release(&text);
  lode_facet_list_free(list);
}

static void status_put_job(op_context *ctx, const char *name, const project_job_status *job) {
  char text[160];
  if (!job->running) {
    op_row_null(ctx, name);
    return;
  }
  if (job->total)
    snprintf(text, sizeof text, "process %llu: %s, %llu of %llu", (unsigned long long)job->pid, job->phase,
             (unsigned long long)job->done, (unsigned long long)job->total);
  else
    snprintf(text, sizeof text, "process %llu: %s", (unsigned long long)job->pid, job->phase);
  op_row_text(ctx, name, op_row_copy(ctx, str_of(text)));
}

static const char *status_state_of(const status_view *v) {
  if (v->damage.status == LODE_REFUSED && trust_check(&v->project.trust, NULL) != LODE_OK) return "untrusted";
  if (v->damage.status == LODE_IO && v->project.address) return "unreachable";
  if (v->damage.status == LODE_NOT_FOUND) return v->index.running ? "indexing" : "not indexed";
  if (v->damage.status != LODE_OK) return v->damage.status == LODE_BUSY ? "busy" : "damaged";
  if (v->index.running) return "indexing";
  if (v->code_info && !v->stamp.indexed_ms && v->code_info->records) return "unfinished";
  if (!v->code_info || !v->stamp.indexed_ms) return "not indexed";
  return "ready";
}

static void status_put_damage(op_context *ctx, const status_view *v) {
  char text[760];
  if (v->damage.status == LODE_OK || v->damage.status == LODE_NOT_FOUND) return;
  snprintf(text, sizeof text, "%s%s", v->damage.text,
           v->damage.status == LODE_CORRUPT
               ? "; `lode doctor` says more, `lode doctor --repair` brings over what can be read"
               : "");
  op_row_text(ctx, "damage", op_row_copy(ctx, str_of(text)));
}

/* Trust in the store, and settings without effect. Nothing if the store was named. */
static void status_put_trust(op_context *ctx, const status_view *v) {
  const config_values *config = &v->project.config;
  strbuf held = {0};
  bool any = false;
  if (v->project.trust.state == TRUST_NAMED) return;
  op_row_text(ctx, "trust", str_of(trust_state_name(v->project.trust.state)));
  for (size_t i = 0; i < CONFIG_COUNT; i++) {
    if (!config->held[i]) continue;
    strbuf_addch(&held, any ? ',' : '{');
    json_put_string(&held, str_of(config_table[i].key));
    strbuf_addch(&held, ':');
    json_put_string(&held, str_of(config->held[i]));
    any = true;
  }
  strbuf_addch(&held, '}');
  if (any && !held.failed) op_row_json(ctx, "held", op_row_copy(ctx, (lode_str){held.data, held.len}));
  strbuf_release(&held);
}

static void status_put_count(op_context *ctx, const char *name, const lode_collection_info *info, uint64_t n) {
  if (info)
    op_row_count(ctx, name, n);
  else
    op_row_null(ctx, name);
}

static void status_put_clients(op_context *ctx, const status_view *v) {
  strbuf text = {0};
  setup_client_list(v->project.root, &text);
  if (!text.failed) op_row_json(ctx, "mcp", op_row_copy(ctx, (lode_str){text.data, text.len}));
  strbuf_release(&text);
}

static lode_status status_put_changes(op_context *ctx, status_view *v, lode_error *err) {
  indexer_changes changes;
  if (!v->store || !v->files_info) return LODE_OK;
  if (!v->project.root[0]) {
    op_note(
        ctx,
        "\"check\": this store does not lie in its project as .lode, so the server does not know where the files are");
    return LODE_OK;
  }
  TRY(indexer_compare(&v->project, v->store, ctx->progress, &changes, err));
  op_row_count(ctx, "changed_files", changes.changed);
  op_row_count(ctx, "new_files", changes.added);
  op_row_count(ctx, "removed_files", changes.removed);
  return LODE_OK;
}

/* On a cluster the tables of symbols are written one by one, and may be lost one by one: files say whether they have
 * one. */
static void status_put_missing_symbols(op_context *ctx, const status_view *v) {
  lode_facet_list *list = NULL;
  uint64_t there = v->symbols_info ? v->symbols_info->records : 0, wanted = 0;
  if (!v->stamp.versions || !v->files) return;
  if (lode_facets(v->files, STR_LIT("symbols"), (lode_str){0}, 2, &list, NULL) != LODE_OK) return;
  for (size_t i = 0; i < lode_facet_list_count(list); i++) wanted += lode_facet_list_at(list, i)->count;
  lode_facet_list_free(list);
  if (wanted <= there) return;
  op_row_count(ctx, "symbols_missing", wanted - there);
  op_note(ctx, "symbols are partial: those of %llu files are missing; `lode index --force` makes them again",
          (unsigned long long)(wanted - there));
}

static void status_put_numbers(op_context *ctx, status_view *v, bool skip, bool recount) {
  const lode_collection_info *code = v->code_info;
  status_put_count(ctx, "files", v->files_info, status_count_files(v));
  status_put_count(ctx, "chunks", code, code ? code->records : 0);
  status_put_count(ctx, "pending", code, code ? code->pending : 0);
  if (v->symbols_info) op_row_count(ctx, "symbols", v->symbols_info->records);
  if (!skip) status_put_missing_symbols(ctx, v);
  if (v->quality_info) op_row_count(ctx, "quality_pending", v->quality_info->pending);
  if (!skip) {
    status_put_counts(ctx, v, "languages", v->files, "language", recount);
    status_put_counts(ctx, v, "kinds", v->code, "kind", recount);
    op_code_put_skipped(ctx, v->stamp.skipped);
    if (v->stamp.masked) op_row_count(ctx, "masked", v->stamp.masked);
  }
  op_row_text(ctx, "model", code ? code->embedder : (lode_str){0});
  op_row_text(ctx, "model_wanted", str_of(config_text(&v->project.config, CONFIG_MODEL)));
  if (v->has_stats) op_row_count(ctx, "bytes", v->stats.bytes);
}

static void status_put_times(op_context *ctx, const status_view *v) {
  uint64_t now = os_wall_ms();
  op_row_time(ctx, "last_index", v->stamp.indexed_ms);
  op_row_time(ctx, "last_scan", v->stamp.scanned_ms);
  if (v->stamp.scanned_ms)
    op_row_count(ctx, "seconds_since_scan", now > v->stamp.scanned_ms ? (now - v->stamp.scanned_ms) / 1000 : 0);
  else
    op_row_null(ctx, "seconds_since_scan");
}

lode_status op_do_status(op_context *ctx, const op_status_args *args, lode_error *err) {
  bool skip = args->skip_stats.on, recount = args->force_refresh.on;
  status_view v = {.damage = {.status = LODE_OK}};
  lode_error config = {.record = LODE_NO_RECORD};
  op_skipped_args skipped = {.path = args->project};
  lode_status st;
  if (args->skipped.on) return op_do_skipped(ctx, &skipped, err);
  TRY(op_code_locate(ctx, args->project.path, &v.project, err));
  st = op_code_settings(ctx, &v.project, &config);
  if (st != LODE_OK) status_set_damage(&v, st, &config);
  project_job_read(v.project.folder, PROJECT_JOB_INDEX, &v.index);
  project_job_read(v.project.folder, PROJECT_JOB_WATCH, &v.watch);
  status_read_store(ctx, &v, skip);
  op_summary_begin(ctx);
  op_row_text(ctx, "root", v.project.root[0] ? str_of(v.project.root) : (lode_str){0});
  op_row_text(ctx, "state", str_of(status_state_of(&v)));
  status_put_numbers(ctx, &v, skip, recount);
  status_put_times(ctx, &v);
  status_put_job(ctx, "activity", &v.index);
  status_put_job(ctx, "watcher", &v.watch);
  if (!skip && !ctx->remote) status_put_clients(ctx, &v);
  if (v.has_stats) {
    op_row_count(ctx, "segments", v.stats.segments);
    op_row_count(ctx, "untexted", v.stats.untexted);
    op_row_count(ctx, "damaged_pages", v.stats.damaged_pages);
    op_row_count(ctx, "quarantined", v.stats.quarantined);
  }
  status_put_damage(ctx, &v);
  status_put_trust(ctx, &v);
  st = args->check.on ? status_put_changes(ctx, &v, err) : LODE_OK;
  if (v.stamp.revision) op_row_count(ctx, "revision", v.stamp.revision);
  if (st == LODE_OK) st = op_row_send(ctx, err);
  ctx->nothing = v.damage.status == LODE_NOT_FOUND || (v.damage.status == LODE_OK && !v.code_info);
  if (st == LODE_OK && ctx->nothing && !v.index.running) op_note(ctx, "not indexed yet: run `lode index`");
  if (st == LODE_OK && strcmp(status_state_of(&v), "unfinished") == 0)
    op_note(ctx, "the first run did not come to its end: `lode index` goes on from there");
  bool damaged = v.damage.status == LODE_CORRUPT;
  if (strcmp(status_state_of(&v), "unreachable") == 0) ctx->nothing = true;
  status_view_release(ctx, &v);
  if (st == LODE_OK && damaged) ctx->damaged = true;
  return st;
}
