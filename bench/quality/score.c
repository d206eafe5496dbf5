/* SPDX-License-Identifier: Apache-2.0 */
/* score.c - NDCG@10 of lists of results, as tasks.h defines it.
 *
 *   score TASKS.jsonl [REPO...] <results.jsonl
 *
 * A line of results: {"repo": "chi", "query": "...", "results": [{"path": "mux.go", "start_line": 1, "end_line": 40},
 * ...]}, best first, paths as in the tasks (from the repository's root). A task without a line counts 0, unless its
 * repository has none at all or is not among the REPOs named. Prints the mean of each repository and category, and of
 * all.
 */
#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct run {
  double *ndcg; /* by task; -1: no line */
} run;

static const task *find_task(const tasks *t, lode_str repo, lode_str query) {
  for (size_t i = 0; i < t->n; i++) {
    if (str_eq(t->all[i].repo, repo) && str_eq(t->all[i].query, query)) return &t->all[i];
  }
  return NULL;
}

static lode_str text_of(const json_doc *j, uint32_t node) {
  return node && j->nodes[node].type == JSON_NODE_STRING ? j->nodes[node].u.s : STR_LIT("");
}

static int64_t line_of(const json_doc *j, uint32_t object, const char *key) {
  uint32_t node = json_get(j, object, str_of(key));
  return node && j->nodes[node].type == JSON_NODE_INT ? j->nodes[node].u.i : 0;
}

static void score_line(const tasks *t, const json_doc *j, run *r) {
  const task *k =
      find_task(t, text_of(j, json_get(j, 0, STR_LIT("repo"))), text_of(j, json_get(j, 0, STR_LIT("query"))));
  uint32_t list = json_get(j, 0, STR_LIT("results"));
  place places[RESULTS_MAX];
  size_t n = 0;
  if (!k || !list || j->nodes[list].type != JSON_NODE_ARRAY) return;
  for (uint32_t at = list + 1; at < j->nodes[list].next && n < RESULTS_MAX; at = j->nodes[at].next) {
    places[n++] =
        (place){text_of(j, json_get(j, at, STR_LIT("path"))), line_of(j, at, "start_line"), line_of(j, at, "end_line")};
  }
  r->ndcg[k - t->all] = task_ndcg(k, places, n);
}

static bool is_wanted(const tasks *t, const run *r, lode_str repo, int argc, char **argv) {
  for (int i = 2; i < argc; i++) {
    if (str_eq(str_of(argv[i]), repo)) return true;
  }
  if (argc > 2) return false;
  for (size_t i = 0; i < t->n; i++) {
    if (str_eq(t->all[i].repo, repo) && r->ndcg[i] >= 0) return true;
  }
  return false;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: score TASKS.jsonl [REPO...] <results.jsonl\n");
    return 2;
  }
  tasks t;
  tasks_load(&t, argv[1]);
  run r = {.ndcg = mem_calloc(t.n + 1, sizeof(double))};
  if (!r.ndcg) return 2;
  for (size_t i = 0; i < t.n; i++) r.ndcg[i] = -1;
  char *line = NULL;
  size_t cap = 0, missing = 0;
  json_doc json = {.count = 0};
  for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
    lode_error err;
    if (json_parse(&json, (lode_str){line, (size_t)n}, NULL, &err) == LODE_OK)
      score_line(&t, &json, &r);
    else
      fprintf(stderr, "score: a line that is not JSON: %s\n", err.text);
  }
  tally sums = {.n_repos = 0};
  for (size_t i = 0; i < t.n; i++) {
    if (!is_wanted(&t, &r, t.all[i].repo, argc, argv)) continue;
    missing += r.ndcg[i] < 0;
    tally_add(&sums, &t.all[i], r.ndcg[i] < 0 ? 0 : r.ndcg[i]);
  }
  for (size_t i = 0; i < sums.n_repos; i++)
    printf("%-24.*s %.4f  (%zu)\n", (int)sums.repos[i].name.len, sums.repos[i].name.data,
           sums.repos[i].sum / (double)sums.repos[i].n, sums.repos[i].n);
  for (size_t i = 0; i < sums.n_categories; i++)
    printf("  %-22.*s %.4f  (%zu)\n", (int)sums.categories[i].name.len, sums.categories[i].name.data,
           sums.categories[i].sum / (double)sums.categories[i].n, sums.categories[i].n);
  if (missing) printf("%zu tasks without an answer count 0\n", missing);
  printf("NDCG@10 %.4f over %zu repositories\n", tally_mean(&sums), sums.n_repos);
  free(line);
  json_release(&json);
  mem_free(r.ndcg);
  tasks_release(&t);
  return 0;
}
