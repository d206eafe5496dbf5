/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - where in the answers are the places that answer a question?
 *
 *   budget TASKS.jsonl STORES <repos
 *
 * A line of `repos` is NAME TREE ROOT, as bench/quality/search.sh writes it; the index is STORES/NAME. A result costs
 * its path and its text, four bytes a token; one that goes beyond the budget does not count, nor what comes after it.
 * Prints the mean over repositories of the share of targets within each budget, NDCG@10 (tasks.h), and how many
 * questions whose first result is a target are marked as weak.
 */
#include "tasks.h"

#include "os/os.h"
#include "project/project.h"
#include "search/code_search.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUDGETS = 3, BUDGET_HITS = 50, BUDGET_BYTES_A_TOKEN = 4 };
static const size_t budgets[BUDGETS] = {500, 1000, 2000};

typedef struct budget_sum {
  double recall[BUDGETS];
  tally ndcg;
  size_t repos, asked, right, weak, wrongly;
} budget_sum;

static void budget_die(const char *what, const lode_error *err) {
  fprintf(stderr, "%s: %s\n", what, err ? err->text : "cannot be read");
  exit(1);
}

static bool budget_is_target(const place *target, const char *root, const search_hit *hit) {
  size_t len = strlen(root);
  lode_str path = target->path;
  if (len) {
    if (path.len <= len || memcmp(path.data, root, len) != 0 || path.data[len] != '/') return false;
    path = (lode_str){path.data + len + 1, path.len - len - 1};
  }
  bool lines = !target->first || (target->first <= hit->last && hit->first <= target->last);
  return str_eq(path, hit->path) && lines;
}

/* NDCG@10 of the hits. Their paths are below root, those of targets are not. */
static double budget_ndcg(const task *t, const char *root, const search_result *result) {
  static char paths[RESULTS_MAX][8192];
  place results[RESULTS_MAX];
  size_t n = result->n < RESULTS_MAX ? result->n : RESULTS_MAX;
  for (size_t i = 0; i < n; i++) {
    const search_hit *hit = &result->hits[i];
    snprintf(paths[i], sizeof paths[i], "%s%s%.*s", root, root[0] ? "/" : "", (int)hit->path.len, hit->path.data);
    results[i] = (place){str_of(paths[i]), hit->first, hit->last};
  }
  return task_ndcg(t, results, n);
}

static void budget_ask(const task *t, const char *root, const search_result *result, double *recall, budget_sum *sum) {
  bool found[TARGETS_MAX] = {0}, right = false;
  size_t bytes = 0;
  for (size_t i = 0; i < result->n; i++) {
    const search_hit *hit = &result->hits[i];
    bytes += hit->path.len + hit->snippet.len;
    for (size_t k = 0; k < t->n_targets; k++) {
      bool is = budget_is_target(&t->targets[k], root, hit);
      right = right || (is && i == 0);
      if (!is || found[k]) continue;
      found[k] = true;
      for (size_t b = 0; b < BUDGETS; b++)
        if (bytes <= budgets[b] * BUDGET_BYTES_A_TOKEN) recall[b] += 1.0 / (double)t->n_targets;
    }
  }
  tally_add(&sum->ndcg, t, budget_ndcg(t, root, result));
  sum->asked++;
  sum->right += right;
  sum->weak += result->weak;
  sum->wrongly += right && result->weak;
}

static void budget_repo(const tasks *all, const char *const *repo, const char *stores, budget_sum *sum) {
  const char *name = repo[0], *root = repo[2];
  char tree[8192], folder[8192];
  project_info project;
  lode_store *store = NULL;
  lode_embedder *model = NULL;
  lode_error err = {.record = LODE_NO_RECORD};
  double recall[BUDGETS] = {0};
  size_t n = 0;
  snprintf(tree, sizeof tree, "%s/%s", repo[1], root);
  snprintf(folder, sizeof folder, "%s/%s", stores, name);
  if (project_open(&project, tree, folder, &err) != LODE_OK) budget_die(tree, &err);
  if (lode_open(folder, &(lode_open_options){.read_only = true, .no_background = true}, &store, &err) != LODE_OK)
    budget_die(folder, &err);
  if (project_open_model(&project, STR_LIT("code"), NULL, &model, &err) != LODE_OK) budget_die("the model", &err);
  for (size_t i = 0; i < all->n; i++) {
    const task *t = &all->all[i];
    if (!str_eq(t->repo, str_of(name)) || !t->n_targets) continue;
    search_request request = {.query = t->query, .mode = LODE_HYBRID, .limit = BUDGET_HITS, .embedder = model};
    search_result result;
    if (search_run(&project, store, &request, &result, &err) != LODE_OK) budget_die("search", &err);
    budget_ask(t, root, &result, recall, sum);
    search_result_release(&result);
    n++;
  }
  lode_embedder_close(model);
  lode_close(store);
  project_release(&project);
  if (!n) return;
  for (size_t b = 0; b < BUDGETS; b++) sum->recall[b] += recall[b] / (double)n;
  sum->repos++;
}

int main(int argc, char **argv) {
  char line[8192], name[256], tree[4096], root[1024];
  static budget_sum sum;
  tasks all;
  if (argc < 3) {
    fprintf(stderr, "usage: budget TASKS.jsonl STORES <repos\n");
    return 2;
  }
  tasks_load(&all, argv[1]);
  while (fgets(line, sizeof line, stdin)) {
    root[0] = '\0';
    if (sscanf(line, "%255s %4095s %1023s", name, tree, root) < 2) continue;
    budget_repo(&all, (const char *const[]){name, tree, root}, argv[2], &sum);
  }
  if (!sum.repos) return 1;
  for (size_t b = 0; b < BUDGETS; b++)
    printf("within %zu tokens: %.3f\n", budgets[b], sum.recall[b] / (double)sum.repos);
  printf("NDCG@10: %.4f\n", tally_mean(&sum.ndcg));
  for (size_t i = 0; i < sum.ndcg.n_categories; i++)
    printf("NDCG@10 of %.*s: %.4f\n", (int)sum.ndcg.categories[i].name.len, sum.ndcg.categories[i].name.data,
           sum.ndcg.categories[i].sum / (double)sum.ndcg.categories[i].n);
  printf("asked %zu, first result right %zu, marked weak %zu, right and marked weak %zu\n", sum.asked, sum.right,
         sum.weak, sum.wrongly);
  tasks_release(&all);
  return 0;
}
