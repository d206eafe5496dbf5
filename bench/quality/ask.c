/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - asks the questions of a tasks file, as `lode search` does, and prints the results as score.c reads them.
 *
 *   ask TASKS.jsonl TREES STORES [text|vector|hybrid]
 *
 * TREES/REPO is a tree, STORES/REPO its index.
 */
#include "tasks.h"

#include "project/project.h"
#include "search/code_search.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct ask_run {
  char repo[200]; /* whose store is open */
  project_info project;
  lode_store *store;
  lode_embedder *model;
} ask_run;

static void ask_die(const char *what, const lode_error *err) {
  fprintf(stderr, "%s: %s\n", what, err ? err->text : "");
  exit(1);
}

static void ask_open(ask_run *run, lode_str repo, const char *trees, const char *stores) {
  char tree[1024], store[1024];
  lode_error err = {.record = LODE_NO_RECORD};
  lode_open_options options = {.read_only = true, .no_background = true};
  if (str_eq(str_of(run->repo), repo)) return;
  if (run->store) {
    lode_close(run->store);
    project_release(&run->project);
  }
  snprintf(run->repo, sizeof run->repo, "%.*s", (int)repo.len, repo.data);
  snprintf(tree, sizeof tree, "%s/%s", trees, run->repo);
  snprintf(store, sizeof store, "%s/%s", stores, run->repo);
  if (project_open(&run->project, tree, store, &err) != LODE_OK) ask_die(tree, &err);
  if (lode_open(store, &options, &run->store, &err) != LODE_OK) ask_die(store, &err);
  if (!run->model && project_open_model(&run->project, STR_LIT("code"), NULL, &run->model, &err) != LODE_OK)
    ask_die("the model", &err);
}

static void ask_print(const task *t, const search_result *result, strbuf *out) {
  out->len = 0;
  strbuf_addstr(out, "{\"repo\":");
  json_put_string(out, t->repo);
  strbuf_addstr(out, ",\"query\":");
  json_put_string(out, t->query);
  strbuf_addstr(out, ",\"results\":[");
  for (size_t i = 0; i < result->n; i++) {
    const search_hit *hit = &result->hits[i];
    strbuf_addstr(out, i ? ",{\"path\":" : "{\"path\":");
    json_put_string(out, hit->path);
    strbuf_addf(out, ",\"start_line\":%u,\"end_line\":%u}", hit->first, hit->last);
  }
  strbuf_addstr(out, "]}\n");
  if (out->failed || fwrite(out->data, 1, out->len, stdout) != out->len) ask_die("cannot write", NULL);
}

int main(int argc, char **argv) {
  ask_run run = {.store = NULL};
  strbuf out = {0};
  tasks t;
  lode_error err = {.record = LODE_NO_RECORD};
  if (argc < 4) ask_die("usage: ask TASKS.jsonl TREES STORES [text|vector|hybrid]", NULL);
  lode_mode mode = argc > 4 && strcmp(argv[4], "text") == 0     ? LODE_BY_TEXT
                   : argc > 4 && strcmp(argv[4], "vector") == 0 ? LODE_BY_VECTOR
                                                                : LODE_HYBRID;
  tasks_load(&t, argv[1]);
  for (size_t i = 0; i < t.n; i++) {
    search_result result;
    ask_open(&run, t.all[i].repo, argv[2], argv[3]);
    search_request request = {.query = t.all[i].query, .mode = mode, .limit = RESULTS_MAX, .embedder = run.model};
    if (search_run(&run.project, run.store, &request, &result, &err) != LODE_OK) ask_die(run.repo, &err);
    ask_print(&t.all[i], &result, &out);
    search_result_release(&result);
  }
  if (run.store) {
    lode_close(run.store);
    project_release(&run.project);
  }
  lode_embedder_close(run.model);
  strbuf_release(&out);
  tasks_release(&t);
  return 0;
}
