/* SPDX-License-Identifier: Apache-2.0 */
/* op_code.c - index and search, and helpers shared by the code search operations. See op_code.h. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "ops/op_text.h"
#include "table/op_args_code.h"

#include "os/os.h"
#include "chunk/parser_pool.h"
#include "indexer/code_record.h"
#include "search/code_search.h"
#include "embed/embed.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
  CODE_INDEX_WAIT_MS = 10000,
  CODE_WEAK_HITS = 3, /* shown of an answer that is weak, unless more are asked for */
};

/* ---- Project and store ---- */

/* Remote requests mean the project around the server's store, not the server's working directory. What the store
 * says about its project root is ignored: requests may have written it. */
lode_status op_code_locate(op_context *ctx, const char *start, project_info *project, lode_error *err) {
  if (ctx->remote && !start && ctx->folder)
    TRY(project_of_store(project, ctx->folder, err));
  else
    TRY(project_locate(project, start, ctx->folder, err));
  /* a folder that the user named is trusted; beside a cluster, the project's own was found */
  if (ctx->folder && !ctx->found && (!project->address || ctx->remote)) return LODE_OK;
  if (project->passed[0]) op_note(ctx, "%s", project->passed);
  bool writes = !ctx->settings || !ctx->settings->read_only;
  /* a worker leaves the trust list to its parent */
  trust_examine(project->folder, writes && !ctx->found, &project->trust);
  if (!ctx->remote) trust_report(&project->trust, ctx->note, ctx->note_ctx);
  return LODE_OK;
}

lode_status op_code_settings(op_context *ctx, project_info *project, lode_error *err) {
  strbuf held = {0};
  if (project->trust.state == TRUST_FOREIGN) return LODE_OK; /* its store is refused, and so are its settings */
  TRY(config_load(&project->config, project->folder, err));
  trust_suppress_config(&project->trust, &project->config, &held);
  if (held.len)
    op_note(ctx,
            "a setting of %.200s reaches beyond the folder and was not set by you, so it has no effect: %.200s; `lode "
            "trust` allows it",
            project->folder, held.data);
  strbuf_release(&held);
  return LODE_OK;
}

lode_status op_code_project(op_context *ctx, const char *start, project_info *project, lode_error *err) {
  TRY(op_code_locate(ctx, start, project, err));
  lode_status st = op_code_settings(ctx, project, err);
  if (st != LODE_OK) project_release(project);
  return st;
}

void op_code_allow(op_context *ctx, const project_info *project, config_key key) {
  lode_str value = str_of(project->config.values[key]);
  lode_error why = {.record = LODE_NO_RECORD};
  if (project->trust.state == TRUST_NAMED || trust_set_value(project->folder, key, value, &why) == LODE_OK) return;
  op_note(ctx, "it cannot be remembered that you have set it: %.300s (LODE_TRUST=1 trusts every folder)", why.text);
}

lode_status op_code_not_indexed(op_context *ctx, const project_info *project, lode_error *err) {
  ctx->unindexed = true;
  return err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", project_display_name(project));
}

lode_status op_code_open(op_context *ctx, const project_info *project, bool write, lode_store **store,
                         lode_error *err) {
  op_open_options how = {.write = write, .create = write, .bulk = write, .folder = project_store(project)};
  TRY(trust_check(&project->trust, err));
  if (write)
    TRY(project_prepare(project, err));
  else if (!project_has_store(project))
    return op_code_not_indexed(ctx, project, err);
  lode_status st = ctx->open(ctx->opener, &how, store, err);
  return st == LODE_NOT_FOUND && project->address ? op_code_not_indexed(ctx, project, err) : st;
}

lode_status op_code_check_model(lode_str name, lode_error *err) {
  if (name.len == 0) return err_set(err, LODE_INVALID, "name the model: code, minilm, none, ...");
  if (str_eq(name, STR_LIT("none"))) return LODE_OK;
  lode_status st = embed_model_check_name(name, err);
  if (st == LODE_NOT_FOUND && err) err->status = LODE_INVALID;
  return st == LODE_NOT_FOUND ? LODE_INVALID : st;
}

/* Removes "." and ".." textually from an absolute path, which may not exist. */
static void code_clean_path(char *path) {
  char *out = path, *p = path;
  while (*p) {
    while (*p == '/') p++;
    size_t len = strcspn(p, "/");
    if (len == 1 && p[0] == '.') {
      p += len;
      continue;
    }
    if (len == 2 && p[0] == '.' && p[1] == '.') {
      while (out > path && *--out != '/') {}
      p += len;
      continue;
    }
    if (len) {
      *out++ = '/';
      memmove(out, p, len);
      out += len;
    }
    p += len;
  }
  if (out == path) *out++ = '/';
  *out = '\0';
}

/* Makes a path as the user wrote it, relative to the working directory, relative to the root (not escaped). It need
 * not exist. */
static lode_status code_relative_path(const op_context *ctx, const project_info *project, const char *path, strbuf *out,
                                      lode_error *err) {
  char *real = ctx->remote ? NULL : realpath(path, NULL);
  strbuf full = {0};
  size_t root = strcmp(project->root, "/") == 0 ? 0 : strlen(project->root);
  lode_status st = LODE_OK;
  out->len = 0;
  if (real) {
    strbuf_addstr(&full, real);
  } else if (ctx->remote) { /* a name in the index; this machine's files do not matter */
    if (path[0] != '/') strbuf_addf(&full, "%s/", project->root);
    strbuf_addstr(&full, path);
  } else {
    char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (path[0] != '/' && !cwd) TRY_GOTO(err_errno(err, errno, "the working directory"));
    if (cwd) strbuf_addf(&full, "%s/", cwd);
    strbuf_addstr(&full, path);
    free(cwd);
  }
  strbuf_addch(&full, '\0');
  free(real);
  if (full.failed) TRY_GOTO(err_nomem(err));
  code_clean_path(full.data);
  size_t len = strlen(full.data);
  if (len < root || memcmp(full.data, project->root, root) != 0 || (full.data[root] != '/' && full.data[root] != '\0'))
    TRY_GOTO(err_set(err, LODE_INVALID, "%.200s is not in the project %.200s", path, project->root));
  const char *rest = full.data + root + (full.data[root] == '/');
  strbuf_addstr(out, rest);
  strbuf_addch(out, '\0');
  if (out->failed) TRY_GOTO(err_nomem(err));
done:
  strbuf_release(&full);
  return st;
}

/* Splits FILE:LINE; returns the length of FILE. *line is 0 if there is none. */
static size_t code_split_place(lode_str given, uint64_t *line) {
  *line = 0;
  for (size_t i = given.len; i-- > 1;) {
    if (given.data[i] != ':') continue;
    if (op_parse_uint((lode_str){given.data + i + 1, given.len - i - 1}, line) && *line && *line < UINT32_MAX) return i;
    break;
  }
  *line = 0;
  return given.len;
}

lode_status op_code_place_parse(const op_context *ctx, const project_info *project, lode_str given,
                                op_code_place *place, lode_error *err) {
  strbuf file = {0}, raw = {0};
  uint64_t n;
  lode_status st;
  strbuf_add(&file, given.data, code_split_place(given, &n));
  strbuf_addch(&file, '\0');
  if (file.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(code_relative_path(ctx, project, file.data, &raw, err));
  files_path_escape(&place->path, str_of(raw.data));
  strbuf_addch(&place->path, '\0');
  if (place->path.failed) TRY_GOTO(err_nomem(err));
  place->line = (uint32_t)n;
done:
  strbuf_release(&file);
  strbuf_release(&raw);
  return st;
}

/* ---- Times ---- */

void op_row_time(op_context *ctx, const char *name, uint64_t wall_ms) {
  strbuf text = {0};
  if (wall_ms) op_put_time(&text, wall_ms);
  op_row_text(ctx, name, op_row_copy(ctx, wall_ms && !text.failed ? (lode_str){text.data, text.len} : (lode_str){0}));
  strbuf_release(&text);
}

/* ---- index ---- */

lode_status op_code_index(op_context *ctx, const project_info *project, const op_code_index_options *run,
                          indexer_report *report, lode_error *err) {
  project_job job = {.fd = -1};
  lode_store *store = NULL;
  indexer_ctx *indexer = NULL;
  indexer_options options = {.force = run->force,
                             .quality = run->quality,
                             .no_vectors = run->no_vectors,
                             .workers = run->workers,
                             .job = &job};
  uint64_t wait_ms = run->no_wait ? 0 : ctx->busy_ms ? ctx->busy_ms : CODE_INDEX_WAIT_MS;
  lode_status st;
  memset(report, 0, sizeof *report);
  if (!run->quiet) {
    options.progress = ctx->progress;
    options.note = ctx->note;
    options.note_ctx = ctx->note_ctx;
  }
  TRY_GOTO(op_check_may_write(ctx, err));
  TRY_GOTO(trust_check(&project->trust, err));
  TRY_GOTO(project_prepare(project, err));
  TRY_GOTO(project_job_begin(&job, project, PROJECT_JOB_INDEX, wait_ms, err));
  TRY_GOTO(op_code_open(ctx, project, true, &store, err));
  TRY_GOTO(indexer_open(project, store, &options, &indexer, err));
  if (run->remove) {
    TRY_GOTO(indexer_remove(indexer, str_of(run->remove), report, err));
  } else if (run->only && run->only[0]) {
    lode_str path = str_of(run->only);
    TRY_GOTO(indexer_run(indexer, &path, 1, report, err));
  } else {
    TRY_GOTO(indexer_run(indexer, NULL, 0, report, err));
  }
done:
  indexer_close(indexer);
  if (store) ctx->release(ctx->opener, store);
  project_job_end(&job);
  return st;
}

void op_code_put_skipped(op_context *ctx, const uint64_t *skipped) {
  strbuf text = {0};
  strbuf_addch(&text, '{');
  for (size_t i = 1; i < SCAN_SKIP_COUNT; i++)
    if (skipped[i])
      strbuf_addf(&text, "%s\"%s\":%llu", text.len > 1 ? "," : "", scan_skip_name((scan_skip)i),
                  (unsigned long long)skipped[i]);
  strbuf_addch(&text, '}');
  op_row_json(ctx, "skipped", op_row_copy(ctx, text.failed ? STR_LIT("{}") : (lode_str){text.data, text.len}));
  strbuf_release(&text);
}

static lode_status code_send_report(op_context *ctx, const project_info *project, const indexer_report *r,
                                    double seconds, lode_error *err) {
  uint64_t left_out = 0;
  for (size_t i = 1; i < SCAN_SKIP_COUNT; i++) left_out += r->skipped[i];
  op_summary_begin(ctx);
  op_row_text(ctx, "root", str_of(project->root));
  op_row_count(ctx, "files", r->files);
  op_row_count(ctx, "added", r->added);
  op_row_count(ctx, "changed", r->changed);
  op_row_count(ctx, "removed", r->removed);
  op_row_count(ctx, "unchanged", r->unchanged);
  op_row_count(ctx, "chunks", r->chunks);
  op_row_count(ctx, "vectors", r->vectors);
  op_row_count(ctx, "reused", r->reused);
  op_row_count(ctx, "pending", r->pending);
  op_code_put_skipped(ctx, r->skipped);
  op_row_count(ctx, "left_out", left_out);
  op_row_count(ctx, "secrets", r->skipped[SCAN_SKIP_SECRET]);
  op_row_count(ctx, "masked", r->masked);
  op_row_count(ctx, "unparsed", r->unparsed);
  op_row_count(ctx, "bytes", r->bytes);
  op_row_count(ctx, "walk_ms", r->walk_ms);
  op_row_count(ctx, "index_ms", r->index_ms);
  op_row_count(ctx, "embed_ms", r->embed_ms);
  op_row_count(ctx, "finish_ms", r->finish_ms);
  op_row_real(ctx, "seconds", round(seconds * 100) / 100);
  return op_row_send(ctx, err);
}

/* Reports what would otherwise be noticed only later: no files, or no parser. */
static void code_note_missing(op_context *ctx, const indexer_report *report) {
  parser_pool_options options = {0};
  parser_pool *pool = NULL;
  if (report->files == 0)
    op_note(ctx, "no files to index here; hidden, ignored, binary and very large ones are left out (lode config list)");
  if (report->skipped[SCAN_SKIP_UNREADABLE])
    op_note(ctx,
            "%llu file%s or folders cannot be read and are left out: `lode skipped --reason unreadable` lists them",
            (unsigned long long)report->skipped[SCAN_SKIP_UNREADABLE],
            report->skipped[SCAN_SKIP_UNREADABLE] == 1 ? "" : "s");
  if (report->chunks == 0 || parser_pool_open(&options, &pool, NULL) != LODE_OK) return;
  if (!parser_pool_program(pool))
    op_note(ctx, "lode-parser was not found: files were cut by lines, not by syntax; `lode doctor` says what to do");
  parser_pool_close(pool);
}

/* LODE_NOT_FOUND if the store has no code index: it may exist for other records only. */
static lode_status code_need_index(op_context *ctx, const project_info *project, lode_error *err) {
  lode_collection_options plain = {0};
  lode_collection *code = NULL;
  lode_store *store = NULL;
  TRY(op_code_open(ctx, project, false, &store, err));
  lode_status st = lode_collection_open(store, STR_LIT(INDEXER_COLL_CODE), &plain, &code, err);
  if (st == LODE_NOT_FOUND) st = op_code_not_indexed(ctx, project, err);
  if (code) lode_collection_close(code);
  ctx->release(ctx->opener, store);
  return st;
}

/* Are there vectors of another model in the index, or none where the model makes some? */
static lode_status code_has_other_model(op_context *ctx, const project_info *project, const lode_embedder *model,
                                        bool *other, lode_error *err) {
  lode_store *store = NULL;
  lode_collection_list *list = NULL;
  *other = false;
  if (!project_has_store(project)) return LODE_OK;
  lode_status st = op_code_open(ctx, project, false, &store, err);
  if (st == LODE_NOT_FOUND && project->address) {
    err_clear(err);
    return LODE_OK;
  }
  if (st == LODE_OK) st = lode_collections(store, &list, err);
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, STR_LIT(INDEXER_COLL_CODE))) continue;
    *other =
        !info->embedder.data != !model || (model && !str_eq(info->embedder, lode_embedder_info_of(model)->identity));
  }
  lode_collection_list_free(list);
  if (store) ctx->release(ctx->opener, store);
  return st;
}

/* Another model for the index: searches use the old vectors, with their model, until the new ones take their place. */
static lode_status code_change_model(op_context *ctx, project_info *project, const op_index_args *args,
                                     op_code_index_options *run, lode_error *err) {
  lode_embedder *model = NULL;
  bool other;
  lode_status st;
  if (args->pending.on || args->remove.set)
    return err_set(err, LODE_INVALID, "--model is for the whole index: not with --pending or --remove");
  TRY(op_code_check_model(args->model.text, err));
  if (!str_eq(args->model.text, STR_LIT("none"))) TRY(lode_embedder_open(args->model.text, NULL, &model, err));
  TRY_GOTO(trust_check(&project->trust, err));
  TRY_GOTO(code_has_other_model(ctx, project, model, &other, err));
  if (other) TRY_GOTO(project_need_folder(project, "another model in place of an index's", err));
  TRY_GOTO(config_set(&project->config, CONFIG_MODEL, args->model.text, err));
  TRY_GOTO(project_prepare(project, err));
  TRY_GOTO(config_save(&project->config, project->folder, err));
  op_code_allow(ctx, project, CONFIG_MODEL);
  run->force = run->force || other;
done:
  lode_embedder_close(model);
  return st;
}

lode_status op_do_index(op_context *ctx, const op_index_args *args, lode_error *err) {
  project_info project = {0};
  indexer_report report;
  strbuf gone = {0};
  uint64_t start = os_api->now_ns();
  lode_status st;
  TRY(op_code_project(ctx, args->path.path, &project, err));
  op_code_index_options run = {
      .force = args->force.on, .quality = args->quality.on, .workers = (uint32_t)args->workers.n};
  bool pending = args->pending.on;
  if ((pending != 0) + (args->remove.set != 0) + run.force > 1)
    TRY_GOTO(
        err_set(err, LODE_INVALID, "--force, --pending and --remove are different runs: give one of them at a time"));
  if (!project.root[0])
    TRY_GOTO(err_set(err, LODE_UNSUPPORTED,
                     "the store %.400s does not lie in a project as " PROJECT_DIR_NAME ", so there is nothing to index",
                     project.folder));
  if (args->model.set) TRY_GOTO(code_change_model(ctx, &project, args, &run, err));
  if (pending) run.only = PROJECT_DIR_NAME; /* matches no files */
  if (run.only) TRY_GOTO(code_need_index(ctx, &project, err));
  if (args->remove.set) {
    TRY_GOTO(code_relative_path(ctx, &project, args->remove.path, &gone, err));
    run.remove = gone.data;
    if (!project_has_store(&project)) TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%.300s is not indexed", project.root));
  }
  TRY_GOTO(op_code_index(ctx, &project, &run, &report, err));
  TRY_GOTO(code_send_report(ctx, &project, &report, (double)(os_api->now_ns() - start) / 1e9, err));
  ctx->nothing = args->remove.set && report.removed == 0;
  if (!args->remove.set && !run.only) code_note_missing(ctx, &report);
done:
  strbuf_release(&gone);
  project_release(&project);
  return st;
}

/* ---- search ---- */

typedef struct code_answer {
  const op_search_args *args;
  search_result result;
  op_code_freshness freshness;
} code_answer;

static lode_status code_send_hit(op_context *ctx, const code_answer *answer, size_t i, lode_error *err) {
  const op_search_args *args = answer->args;
  const search_hit *h = &answer->result.hits[i];
  op_row_begin(ctx);
  op_row_count(ctx, "rank", i + 1);
  op_row_text(ctx, "path", h->path);
  op_row_count(ctx, "start_line", h->first);
  op_row_count(ctx, "end_line", h->last);
  if (h->line != h->first) op_row_count(ctx, "line", h->line);
  op_row_text(ctx, "kind", h->kind);
  op_row_text(ctx, "name", h->name.len ? h->name : (lode_str){0});
  op_row_text(ctx, "parents", h->parents.len ? h->parents : (lode_str){0});
  op_row_text(ctx, "language", h->language);
  op_row_real(ctx, "score", round(h->score * 10000) / 10000);
  op_row_real(ctx, "cosine", round(h->cosine * 10000) / 10000);
  if (!args->files_only.on) op_row_text(ctx, "snippet", h->snippet);
  if (h->snippet_line != h->first) op_row_count(ctx, "snippet_line", h->snippet_line);
  if (answer->result.weak) op_row_bool(ctx, "weak", true);
  if (h->more) op_row_count(ctx, "more", h->more);
  if (h->copies) op_row_count(ctx, "copies", h->copies);
  if (h->freshness != SEARCH_FILE_FRESH) op_row_text(ctx, "stale", str_of(search_freshness_name(h->freshness)));
  if (answer->freshness != OP_CODE_FRESH) op_row_text(ctx, "index", str_of(op_code_freshness_name(answer->freshness)));
  if (args->explain.on) {
    strbuf text = {0};
    strbuf_addf(&text, "{\"bm25\":%.4f", h->bm25);
    for (size_t f = 0; f < RANK_FEATURE_COUNT; f++)
      strbuf_addf(&text, ",\"%s\":%.4f", rank_feature_name((rank_feature)f), h->features[f]);
    strbuf_addch(&text, '}');
    if (!text.failed) op_row_json(ctx, "explain", op_row_copy(ctx, (lode_str){text.data, text.len}));
    strbuf_release(&text);
  }
  return op_row_send(ctx, err);
}

void op_code_note_stale(op_context *ctx, uint64_t stale, uint64_t outside, bool doubted) {
  if (doubted)
    op_note(ctx, "the index was made under other rules for secrets than those of now, so it may hold some: what looks "
                 "like one is masked in this "
                 "answer; `lode index` reads the files again");
  if (stale)
    op_note(ctx, "%llu of the files shown changed since %s: `lode index` or --refresh brings %s up to date",
            (unsigned long long)stale, stale == 1 ? "it was indexed, or is gone" : "they were indexed, or are gone",
            stale == 1 ? "it" : "them");
  if (outside)
    op_note(ctx,
            "%llu record%s left out: %s out of the project, so lode index did not write %s; `lode index --force` "
            "rebuilds the index",
            (unsigned long long)outside, outside == 1 ? " was" : "s were",
            outside == 1 ? "its path leads" : "their paths lead", outside == 1 ? "it" : "them");
}

/* What the arguments and the settings say about bringing files up to date. */
static lode_status code_refresh_mode(const op_context *ctx, const project_info *project, const op_search_args *args,
                                     op_code_refresh_mode *mode, lode_error *err) {
  const char *setting = config_text(&project->config, CONFIG_SEARCH_REFRESH);
  if (args->refresh.on && ctx->remote)
    return err_set(err, LODE_UNSUPPORTED,
                   "\"refresh\": over HTTP a search only reads: `lode index` or `lode watch` on the server's machine "
                   "brings files up to date");
  if (args->refresh.on && args->no_refresh.on)
    return err_set(err, LODE_INVALID, "--refresh and --no-refresh: give one of them");
  *mode = args->refresh.on                               ? OP_CODE_REFRESH_FULL
          : args->no_refresh.on                          ? OP_CODE_REFRESH_OFF
          : strcmp(setting, "auto") == 0 && !ctx->remote ? OP_CODE_REFRESH_FULL
          : strcmp(setting, "off") == 0                  ? OP_CODE_REFRESH_OFF
                                                         : OP_CODE_REFRESH_QUICK;
  return LODE_OK;
}

/* --exact and --regex look for one text, by words. */
static lode_status code_check_verbatim(const op_search_args *args, lode_error *err) {
  bool vector = args->mode.set && args->mode.index == 1;
  if (!args->exact.on && !args->regex.on) return LODE_OK;
  if (args->exact.on && args->regex.on)
    return err_set(err, LODE_INVALID, "--exact and --regex are different searches: give one of them");
  if (args->similar.set || vector || !args->query.text.len)
    return err_set(err, LODE_INVALID,
                   "--exact and --regex look for a text: they take a query, not --similar or --mode vector");
  return LODE_OK;
}

/* Does a hit before this one have its path? */
static bool code_has_path(const search_result *result, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (str_eq(result->hits[i].path, result->hits[at].path)) return true;
  return false;
}

lode_status op_do_search(op_context *ctx, const op_search_args *args, lode_error *err) {
  static const lode_mode modes[] = {LODE_HYBRID, LODE_BY_VECTOR, LODE_BY_TEXT};
  project_info project = {0};
  code_answer answer = {.args = args, .freshness = OP_CODE_UNCHECKED};
  search_result *result = &answer.result;
  lode_store *store = NULL;
  op_code_place place = {0};
  lode_status st;
  if (args->interactive.on) /* the command line runs it itself, where there is a terminal (cli/browse.h) */
    return err_set(err, LODE_INVALID,
                   "--interactive needs a terminal to type in and to show results on: leave it out in scripts, pipes "
                   "and with --json");
  TRY(op_code_project(ctx, args->project.path, &project, err));
  search_request request = {
      .query = args->query.text,
      .limit = args->limit.set ? (size_t)args->limit.n : (size_t)config_int(&project.config, CONFIG_SEARCH_LIMIT),
      .language = args->lang.text,
      .path = args->path.text,
      .kind = args->type.text,
      .name = args->name.text,
      .exact = args->exact.on,
      .regex = args->regex.on,
      .context = (uint32_t)args->context.n,
      .files_only = args->files_only.on,
      .progress = ctx->progress,
  };
  const char *setting = config_text(&project.config, CONFIG_SEARCH_MODE);
  request.mode = modes[args->mode.set                   ? args->mode.index
                       : strcmp(setting, "vector") == 0 ? 1
                       : strcmp(setting, "text") == 0   ? 2
                                                        : 0];
  if (request.limit < 1) request.limit = 1;
  if (args->similar.set) {
    TRY_GOTO(op_code_place_parse(ctx, &project, args->similar.text, &place, err));
    request.similar = op_code_place_path(&place);
    request.similar_line = place.line;
  } else if (!request.query.len && request.name.data) {
    request.query = request.name;
  }
  if (!args->similar.set && !request.query.len)
    TRY_GOTO(err_set(err, LODE_INVALID,
                     "say what to look for: lode search \"where are sessions closed\", or --similar FILE:LINE"));
  TRY_GOTO(code_check_verbatim(args, err));
  op_code_refresh_mode refresh = OP_CODE_REFRESH_OFF;
  TRY_GOTO(code_refresh_mode(ctx, &project, args, &refresh, err));
  bool made = false;
  if (!project_has_store(&project) && refresh != OP_CODE_REFRESH_OFF)
    TRY_GOTO(op_code_first_index(ctx, &project, &made, err));
  if (made)
    answer.freshness = OP_CODE_FRESH;
  else
    TRY_GOTO(op_code_refresh(ctx, &project, refresh, &answer.freshness, err));
  TRY_GOTO(op_code_open(ctx, &project, false, &store, err));
  st = search_run(&project, store, &request, result, err);
  if (st == LODE_NOT_FOUND) (void)!code_need_index(ctx, &project, NULL); /* sets ctx->unindexed */
  TRY_GOTO(st);
  if (result->weak && !args->limit.set && result->n > CODE_WEAK_HITS) result->n = CODE_WEAK_HITS;
  for (size_t i = 0; i < result->n && st == LODE_OK; i++)
    if (!request.files_only || !code_has_path(result, i)) st = code_send_hit(ctx, &answer, i, err);
  if (st == LODE_OK && result->note[0]) op_note(ctx, "%s", result->note);
  if (st == LODE_OK)
    op_code_note_stale(ctx, result->stale, result->outside, result->doubted && result->n && !request.files_only);
  if (st == LODE_OK && result->weak)
    op_note(ctx, "nothing matches well: the project may not have what was asked for; these are the nearest results");
  ctx->nothing = result->n == 0 || result->weak;
done:
  search_result_release(result);
  if (store) ctx->release(ctx->opener, store);
  strbuf_release(&place.path);
  project_release(&project);
  return st;
}
