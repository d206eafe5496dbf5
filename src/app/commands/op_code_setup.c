/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_setup.c - `lode setup`: root, languages, model, index and clients in one command. Running it twice is
 * harmless. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "os/os.h"
#include "chunk/parser_pool.h"
#include "setup/instructions.h"
#include "setup/mcp_clients.h"
#include "setup/vector_search.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct setup_state {
  op_context *ctx;
  project_info project;
  bool dry, replace, with_text;
} setup_state;

static lode_status setup_report(setup_state *s, const char *step, const char *state, lode_error *err,
                                const char *format, ...) __attribute__((format(printf, 5, 6)));
static lode_status setup_report(setup_state *s, const char *step, const char *state, lode_error *err,
                                const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  op_row_begin(s->ctx);
  op_row_text(s->ctx, "step", str_of(step));
  op_row_text(s->ctx, "state", str_of(state));
  op_row_text(s->ctx, "detail", str_of(text));
  return op_row_send(s->ctx, err);
}

/* ---- Settings of mcp-vector-search ---- */

/* A setting that Lode has already is kept. */
static lode_status setup_take_setting(setup_state *s, config_key key, lode_str value, strbuf *taken, lode_error *err) {
  config_values *config = &s->project.config;
  if (!value.len || config->values[key] || config->held[key]) return LODE_OK;
  TRY(config_set(config, key, value, err));
  strbuf_addf(taken, "%s%s = %.*s", taken->len ? "; " : "", config_table[key].key, (int)value.len, value.data);
  return LODE_OK;
}

/* Its default, MiniLM, where that is installed; Lode has no other model of its list. */
static lode_status setup_take_model(setup_state *s, const setup_vector_search *from, strbuf *taken, strbuf *left,
                                    lode_error *err) {
  const char *name = from->embedding_model.data;
  lode_embedder *model = NULL;
  /* an index keeps the model that it was made with */
  if (!*name || s->project.config.values[CONFIG_MODEL] || project_was_indexed(s->project.folder)) return LODE_OK;
  if (!strstr(name, "all-MiniLM-L6-v2")) {
    strbuf_addf(left, "; Lode has no model %.100s: `lode model list`", name);
  } else if (lode_embedder_open(STR_LIT("minilm"), NULL, &model, NULL) == LODE_OK) {
    lode_embedder_close(model);
    return setup_take_setting(s, CONFIG_MODEL, STR_LIT("minilm"), taken, err);
  } else {
    strbuf_addstr(left, "; its model is `lode model install minilm`, then lode setup --model minilm");
  }
  return LODE_OK;
}

static lode_status setup_save_settings(setup_state *s, lode_error *err) {
  if (s->dry) return LODE_OK;
  TRY(trust_check(&s->project.trust, err));
  TRY(project_prepare(&s->project, err));
  return config_save(&s->project.config, s->project.folder, err);
}

static lode_status setup_take_over(setup_state *s, bool with_model, lode_error *err) {
  setup_vector_search from;
  strbuf taken = {0}, left = {0};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = setup_vector_search_read(s->project.root, &from, &why);
  if (st == LODE_NOMEM) TRY_GOTO(err_nomem(err));
  if (st != LODE_OK)
    TRY_GOTO(setup_report(s, "settings", "failed", err, ".mcp-vector-search/config.json: %.300s", why.text));
  if (!from.found) goto done;
  TRY_GOTO(setup_take_setting(s, CONFIG_INDEX_EXTENSIONS, (lode_str){from.extensions.data, from.extensions.len}, &taken,
                              err));
  TRY_GOTO(setup_take_setting(s, CONFIG_INDEX_EXCLUDE, (lode_str){from.include.data, from.include.len}, &taken, err));
  TRY_GOTO(setup_take_setting(s, CONFIG_INDEX_HIDDEN, from.hidden ? STR_LIT("true") : STR_LIT(""), &taken, err));
  if (with_model) TRY_GOTO(setup_take_model(s, &from, &taken, &left, err));
  if (from.without_git) strbuf_addstr(&left, "; what .gitignore names is left out all the same");
  bool any = taken.len > 0;
  strbuf_addch(&taken, '\0');
  strbuf_addch(&left, '\0');
  if (taken.failed || left.failed) TRY_GOTO(err_nomem(err));
  if (any) TRY_GOTO(setup_save_settings(s, err));
  TRY_GOTO(setup_report(s, "settings",
                        !any     ? "same"
                        : s->dry ? "would"
                                 : "done",
                        err, "of mcp-vector-search: %.300s%.200s", any ? taken.data : "nothing to take over",
                        left.data));
done:
  setup_vector_search_release(&from);
  strbuf_release(&taken);
  strbuf_release(&left);
  return st;
}

/* ---- Languages ---- */

typedef struct setup_tally {
  const lang_info *language;
  uint64_t files;
} setup_tally;

static int setup_tally_cmp(const void *a, const void *b) {
  const setup_tally *x = a, *y = b;
  return (x->files < y->files) - (x->files > y->files);
}

static lode_status setup_count_languages(setup_state *s, setup_tally *all, uint64_t *files, lode_error *err) {
  scan_options options = indexer_scan_options(&s->project.config);
  scan_root *root = NULL;
  scan_walker *walker = NULL;
  scan_entry entry;
  bool more = true;
  lode_status st;
  TRY_GOTO(scan_root_open(s->project.root, &options, &root, err));
  TRY_GOTO(scan_walker_open(root, STR_LIT(""), &walker, err));
  while (more) {
    TRY_GOTO(scan_walker_next(walker, &entry, &more, err));
    if (!more || entry.skip != SCAN_SKIP_NONE) continue;
    all[lang_id(entry.language)].language = entry.language;
    all[lang_id(entry.language)].files++;
    (*files)++;
    TRY_GOTO(err_progress(s->ctx->progress, "looking at files", *files, 0, err));
  }
done:
  scan_walker_close(walker);
  scan_root_close(root);
  return st;
}

/* Reports languages that are split by lines because there is no grammar; unreported, this would only show as poor
 * results. */
static lode_status setup_check_grammars(setup_state *s, const setup_tally *all, lode_error *err) {
  parser_pool_options options = {0};
  parser_pool *pool = NULL;
  strbuf with = {0}, without = {0};
  lode_status st;
  TRY_GOTO(parser_pool_open(&options, &pool, err));
  for (size_t i = 0; i < lang_count && all[i].files; i++) {
    if (all[i].language->split != LANG_SPLIT_TREE) continue;
    strbuf *list = parser_pool_has(pool, all[i].language) ? &with : &without;
    strbuf_addf(list, "%s%s", list->len ? ", " : "", all[i].language->name);
  }
  strbuf_addch(&with, '\0');
  strbuf_addch(&without, '\0');
  if (with.failed || without.failed) TRY_GOTO(err_nomem(err));
  if (without.len > 1)
    TRY_GOTO(setup_report(s, "parser", "failed", err,
                          "%s: cut by lines, not by syntax: %.300s; `make grammars all` in Lode's source brings it, "
                          "then lode index --force",
                          parser_pool_program(pool) ? "no grammar" : "no lode-parser", without.data));
  else if (with.len > 1)
    TRY_GOTO(setup_report(s, "parser", "done", err, "cut by syntax: %.300s", with.data));
done:
  parser_pool_close(pool);
  strbuf_release(&with);
  strbuf_release(&without);
  return st;
}

static lode_status setup_find_languages(setup_state *s, lode_error *err) {
  setup_tally *all = mem_calloc(lang_count, sizeof *all);
  strbuf text = {0};
  uint64_t files = 0;
  lode_status st;
  if (!all) return err_nomem(err);
  TRY_GOTO(setup_count_languages(s, all, &files, err));
  qsort(all, lang_count, sizeof *all, setup_tally_cmp);
  strbuf_addf(&text, "%llu file%s", (unsigned long long)files, files == 1 ? "" : "s");
  for (size_t i = 0; i < lang_count && i < 8 && all[i].files; i++)
    strbuf_addf(&text, "%s %s %llu", i ? "," : ":", all[i].language->name, (unsigned long long)all[i].files);
  strbuf_addch(&text, '\0');
  if (text.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(setup_report(s, "languages", "done", err, "%s", text.data));
  TRY_GOTO(setup_check_grammars(s, all, err));
done:
  mem_free(all);
  strbuf_release(&text);
  return st;
}

/* ---- Model ---- */

static lode_status setup_choose_model(setup_state *s, const op_arg_text *wanted, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_embedder *model = NULL;
  if (wanted->set) {
    TRY(op_code_check_model(wanted->text, err));
    TRY(config_set(&s->project.config, CONFIG_MODEL, wanted->text, err));
    TRY(setup_save_settings(s, err));
    if (!s->dry) op_code_allow(s->ctx, &s->project, CONFIG_MODEL);
  }
  const char *name = config_text(&s->project.config, CONFIG_MODEL);
  if (strcmp(name, "none") == 0) return setup_report(s, "model", "done", err, "none: search goes by words");
  if (lode_embedder_open(str_of(name), NULL, &model, &why) != LODE_OK)
    return setup_report(s, "model", "failed", err, "%.200s; search goes by words until it is there", why.text);
  lode_str identity = lode_embedder_info_of(model)->identity;
  lode_status st = setup_report(s, "model", "done", err, "%.*s", (int)identity.len, identity.data);
  lode_embedder_close(model);
  return st;
}

/* ---- Index, clients ---- */

static lode_status setup_make_index(setup_state *s, lode_error *err) {
  indexer_report r;
  op_code_index_options run = {0};
  if (s->dry) return setup_report(s, "index", "would", err, "index %s", s->project.root);
  uint64_t start = os_api->now_ns();
  TRY(op_code_index(s->ctx, &s->project, &run, &r, err));
  return setup_report(s, "index", r.added || r.changed || r.removed ? "done" : "same", err,
                      "%llu file%s: %llu new, %llu changed, %llu removed; %llu chunk%s in %.1f s",
                      (unsigned long long)r.files, r.files == 1 ? "" : "s", (unsigned long long)r.added,
                      (unsigned long long)r.changed, (unsigned long long)r.removed, (unsigned long long)r.chunks,
                      r.chunks == 1 ? "" : "s", (double)(os_api->now_ns() - start) / 1e9);
}

/* The file that tells the agents of a registered client which tool answers which question. */
static lode_status setup_add_text(setup_state *s, size_t i, lode_error *err) {
  static const char step[] = "instructions";
  const char *title = setup_client_title(i), *file = setup_text_path(i), *root = s->project.root;
  lode_error why = {.record = LODE_NO_RECORD};
  setup_text_state state;
  lode_status st = s->dry ? setup_text_inspect(i, root, &state, &why) : setup_text_write(i, root, &state, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return setup_report(s, step, "failed", err, "%s: %s: %.300s", title, file, why.text);
  switch (state) {
    case SETUP_TEXT_NONE:
      return setup_report(s, step, "skipped", err,
                          "%s reads %s, which is yours: `lode mcp install --client %s --print` shows lines for it",
                          title, file, setup_client_name(i));
    case SETUP_TEXT_CURRENT: return setup_report(s, step, "same", err, "%s: %s", title, file);
    case SETUP_TEXT_FOREIGN:
      return setup_report(s, step, "skipped", err,
                          "%s: %s is left as it is: Lode did not write it, or it was edited since", title, file);
    case SETUP_TEXT_HINDERS:
      return setup_report(s, step, "skipped", err, "%s: with %s, %s would no longer be read", title, file,
                          setup_text_hindered(i));
    case SETUP_TEXT_ABSENT:
    case SETUP_TEXT_OLD: break;
  }
  return setup_report(s, step, s->dry ? "would" : "done", err, "%s: how to use Lode, in %s", title, file);
}

static lode_status setup_add_client(setup_state *s, size_t i, const char *program, size_t *found, lode_error *err) {
  strbuf path = {0};
  bool fails = false;
  lode_error why = {.record = LODE_NO_RECORD};
  setup_client_state state;
  bool changed = false;
  lode_status st = setup_client_inspect(i, s->project.root, &state, &path, err);
  if (st != LODE_OK || state == SETUP_CLIENT_ABSENT) goto done;
  (*found)++;
  if (state == SETUP_CLIENT_CURRENT)
    st = setup_report(s, setup_client_name(i), "same", err, "%s knows it: %s", setup_client_title(i), path.data);
  else if ((fails = s->dry && state == SETUP_CLIENT_BROKEN))
    st = setup_report(s, setup_client_name(i), "failed", err, "%s cannot be read, parsed or written", path.data);
  else if (s->dry)
    st = setup_report(s, setup_client_name(i), "would", err, "register with %s: %s", setup_client_title(i), path.data);
  else if (setup_client_install(i, s->project.root, program, &changed, &why) == LODE_OK)
    st = setup_report(s, setup_client_name(i), "done", err, "registered with %s: %s", setup_client_title(i), path.data);
  else {
    fails = true;
    st = setup_report(s, setup_client_name(i), "failed", err, "%.300s", why.text);
  }
  if (st == LODE_OK && !fails && s->with_text) st = setup_add_text(s, i, err);
done:
  strbuf_release(&path);
  return st;
}

/* The entry of mcp-vector-search in the settings of a client that has ours. */
static lode_status setup_replace_entry(setup_state *s, size_t i, lode_error *err) {
  static const char entry[] = SETUP_VECTOR_SEARCH_ENTRY;
  const char *name = setup_client_name(i);
  lode_error why = {.record = LODE_NO_RECORD};
  bool changed = false;
  if (!setup_client_has(i, s->project.root, entry)) return LODE_OK;
  if (!s->replace)
    return setup_report(s, name, "skipped", err, "%s starts %s, too: `lode setup --replace` takes that entry out",
                        setup_client_title(i), entry);
  if (s->dry) return setup_report(s, name, "would", err, "take the entry of %s out", entry);
  if (!setup_client_has(i, s->project.root, SETUP_CLIENT_ENTRY))
    return setup_report(s, name, "failed", err, "the entry of %s stays: there is none of Lode's", entry);
  if (setup_client_remove(i, s->project.root, entry, &changed, &why) != LODE_OK)
    return setup_report(s, name, "failed", err, "%.300s", why.text);
  return setup_report(s, name, "done", err, "took the entry of %s out", entry);
}

static lode_status setup_add_clients(setup_state *s, lode_error *err) {
  strbuf program = {0};
  size_t found = 0;
  lode_status st = setup_program_path(&program, err);
  for (size_t i = 0; i < setup_client_count() && st == LODE_OK; i++) {
    st = setup_add_client(s, i, program.data, &found, err);
    if (st == LODE_OK) st = setup_replace_entry(s, i, err);
  }
  if (st == LODE_OK && !found)
    st = setup_report(s, "mcp", "skipped", err,
                      "no AI tool was found here; `lode mcp install --client NAME` registers with one all the same");
  strbuf_release(&program);
  return st;
}

lode_status op_do_setup(op_context *ctx, const op_setup_args *args, lode_error *err) {
  setup_state s = {
      .ctx = ctx, .dry = args->dry_run.on, .replace = args->replace.on, .with_text = !args->no_instructions.on};
  lode_status st;
  if (args->replace.on && args->no_mcp.on)
    return err_set(err, LODE_INVALID, "--replace and --no-mcp: give one of them");
  TRY(op_code_project(ctx, args->path.path, &s.project, err));
  /* check before anything is done */
  if (!args->no_index.on) TRY_GOTO(trust_check(&s.project.trust, err));
  TRY_GOTO(setup_report(&s, "root", "done", err, "%s", s.project.root));
  TRY_GOTO(setup_take_over(&s, !args->model.set, err));
  TRY_GOTO(setup_find_languages(&s, err));
  TRY_GOTO(setup_choose_model(&s, &args->model, err));
  if (args->no_index.on)
    TRY_GOTO(setup_report(&s, "index", "skipped", err, "as you wished"));
  else
    TRY_GOTO(setup_make_index(&s, err));
  if (args->no_mcp.on)
    TRY_GOTO(setup_report(&s, "mcp", "skipped", err, "as you wished"));
  else
    TRY_GOTO(setup_add_clients(&s, err));
done:
  project_release(&s.project);
  return st;
}
