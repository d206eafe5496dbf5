/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - what the learnt order of files is learnt from: the facts of every candidate file of every task.
 *
 *   facts TASKS.jsonl TREES STORES [CATEGORY] >FACTS
 *
 * TREES/REPO is a tree, STORES/REPO its index (or TREES/REPO/.lode, with STORES -). Written are, as
 * little-endian 32-bit numbers, the number of facts, and for each task its index in TASKS, the number of files, the
 * number of targets, and for each file 1.0 if it is a target, its score by the formula of rank.h, and its facts
 * (rank_facts.h), as floats. Only questions in words are written. tools/train/rank.py reads it.
 */
#include "rank_facts.h"
#include "tasks.h"

#include "project/project.h"
#include "search/code_search.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct facts_dump {
  const task *asked;
  float *rows;
  size_t n, cap;
} facts_dump;

static void facts_die(const char *what, const lode_error *err) {
  fprintf(stderr, "%s: %s\n", what, err ? err->text : "");
  exit(1);
}

static void facts_take(facts_dump *d, lode_str path, const double *facts, double hand) {
  bool wanted = false;
  for (size_t i = 0; i < d->asked->n_targets; i++) wanted = wanted || str_eq(d->asked->targets[i].path, path);
  if (d->n == d->cap) {
    d->cap = d->cap ? 2 * d->cap : 256;
    d->rows = realloc(d->rows, d->cap * (2 + RANK_FACT_COUNT) * sizeof(float));
    if (!d->rows) facts_die("out of memory", NULL);
  }
  float *row = d->rows + d->n++ * (2 + RANK_FACT_COUNT);
  row[0] = wanted;
  row[1] = (float)hand;
  for (size_t i = 0; i < RANK_FACT_COUNT; i++) row[2 + i] = (float)facts[i];
}

static void facts_take_all(facts_dump *d, const search_question *question, rank_candidate *v, size_t n) {
  rank_state r = {.question = question, .weights = &rank_default_weights, .v = v, .n = n};
  lode_error err = {.record = LODE_NO_RECORD};
  d->n = 0;
  if (n == 0 || question->is_name) return;
  if (rank_apply_formula(&r, &err) != LODE_OK) facts_die("formula", &err);
  double(*x)[RANK_FACT_COUNT] = mem_calloc(r.n_files, sizeof *x);
  if (!x || rank_find_facts(&r, x, &err) != LODE_OK) facts_die("facts", &err);
  for (size_t i = 0; i < r.n_files; i++) facts_take(d, r.files[i].path, x[i], r.files[i].best);
  mem_free(x);
  rank_state_release(&r);
}

typedef struct facts_repo {
  char name[200];
  project_info project;
  lode_store *store;
  lode_embedder *model;
} facts_repo;

static void facts_open(facts_repo *r, lode_str name, const char *trees, const char *stores) {
  char tree[1024], store[1100];
  lode_error err;
  lode_open_options options = {.read_only = true, .no_background = true};
  if (str_eq(str_of(r->name), name)) return;
  if (r->store) lode_close(r->store);
  if (r->store) project_release(&r->project);
  snprintf(r->name, sizeof r->name, "%.*s", (int)name.len, name.data);
  snprintf(tree, sizeof tree, "%s/%s", trees, r->name);
  snprintf(store, sizeof store, "%s/%s%s", strcmp(stores, "-") == 0 ? trees : stores, r->name,
           strcmp(stores, "-") == 0 ? "/.lode" : "");
  if (project_open(&r->project, tree, store, &err) != LODE_OK) facts_die(tree, &err);
  if (lode_open(store, &options, &r->store, &err) != LODE_OK) facts_die(store, &err);
  if (!r->model && project_open_model(&r->project, STR_LIT("code"), NULL, &r->model, &err) != LODE_OK)
    facts_die("model", &err);
}

int main(int argc, char **argv) {
  facts_repo repo = {.store = NULL};
  facts_dump dump = {.n = 0};
  tasks t;
  lode_error err;
  if (argc < 4) facts_die("usage: facts TASKS.jsonl TREES STORES [CATEGORY]", NULL);
  tasks_load(&t, argv[1]);
  uint32_t facts = RANK_FACT_COUNT;
  if (fwrite(&facts, sizeof facts, 1, stdout) != 1) facts_die("cannot write", NULL);
  for (size_t i = 0; i < t.n; i++) {
    search_result result;
    rank_candidate *v;
    size_t n;
    if (argc > 4 && !str_eq(t.all[i].category, str_of(argv[4]))) continue;
    facts_open(&repo, t.all[i].repo, argv[2], argv[3]);
    search_request request = {.query = t.all[i].query, .mode = LODE_HYBRID, .limit = 10, .embedder = repo.model};
    if (search_candidates(&repo.project, repo.store, &request, &result, &v, &n, &err) != LODE_OK) {
      fprintf(stderr, "%s: %.*s: %s\n", repo.name, (int)t.all[i].query.len, t.all[i].query.data, err.text);
      continue;
    }
    dump.asked = &t.all[i];
    facts_take_all(&dump, &result.question, v, n);
    uint32_t head[] = {(uint32_t)i, (uint32_t)dump.n, (uint32_t)t.all[i].n_targets};
    if (dump.n && (fwrite(head, sizeof head, 1, stdout) != 1 ||
                   fwrite(dump.rows, (2 + RANK_FACT_COUNT) * sizeof(float), dump.n, stdout) != dump.n))
      facts_die("cannot write", NULL);
    mem_free(v);
    search_result_release(&result);
  }
  free(dump.rows);
  tasks_release(&t);
  return 0;
}
