/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c - see tasks.h. */
#include "tasks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

char *read_file(const char *path, size_t *len) {
  FILE *in = fopen(path, "rb");
  long size;
  if (!in || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < 0) {
    perror(path);
    exit(2);
  }
  rewind(in);
  char *data = mem_alloc((size_t)size + 1);
  if (!data || fread(data, 1, (size_t)size, in) != (size_t)size) {
    perror(path);
    exit(2);
  }
  fclose(in);
  data[size] = 0;
  *len = (size_t)size;
  return data;
}

static lode_str string_at(const json_doc *j, uint32_t object, const char *key) {
  uint32_t node = json_get(j, object, str_of(key));
  return node && j->nodes[node].type == JSON_NODE_STRING ? j->nodes[node].u.s : STR_LIT("");
}

static int64_t number_at(const json_doc *j, uint32_t object, const char *key) {
  uint32_t node = json_get(j, object, str_of(key));
  return node && j->nodes[node].type == JSON_NODE_INT ? j->nodes[node].u.i : 0;
}

static void add_places(task *t, const json_doc *j, const char *key) {
  uint32_t list = json_get(j, 0, str_of(key));
  if (!list || j->nodes[list].type != JSON_NODE_ARRAY) return;
  for (uint32_t at = list + 1; at < j->nodes[list].next && t->n_targets < TARGETS_MAX; at = j->nodes[at].next) {
    t->targets[t->n_targets++] =
        (place){string_at(j, at, "path"), number_at(j, at, "start_line"), number_at(j, at, "end_line")};
  }
}

void tasks_load(tasks *t, const char *path) {
  size_t len, line_cap = 0;
  *t = (tasks){.n = 0};
  t->text = read_file(path, &len);
  for (char *at = t->text; *at;) {
    size_t n = strcspn(at, "\n");
    lode_error err;
    if (n > 1) {
      if (!mem_grow(&t->all, &t->cap, t->n + 1, sizeof *t->all) ||
          !mem_grow(&t->lines, &line_cap, t->n + 1, sizeof *t->lines))
        exit(2);
      json_doc *j = &t->lines[t->n];
      task *k = &t->all[t->n];
      *j = (json_doc){.count = 0};
      if (json_parse(j, (lode_str){at, n}, NULL, &err) != LODE_OK) {
        fprintf(stderr, "%s: line %zu: %s\n", path, t->n + 1, err.text);
        exit(2);
      }
      *k = (task){string_at(j, 0, "repo"), string_at(j, 0, "query"), string_at(j, 0, "category"), {{.first = 0}}, 0};
      add_places(k, j, "relevant");
      add_places(k, j, "secondary");
      t->n++;
    }
    at += n + (at[n] == '\n');
  }
}

void tasks_release(tasks *t) {
  for (size_t i = 0; i < t->n; i++) json_release(&t->lines[i]);
  mem_free(t->lines);
  mem_free(t->all);
  mem_free(t->text);
  *t = (tasks){.n = 0};
}

static bool answers(const place *target, const place *result) {
  if (!str_eq(target->path, result->path)) return false;
  return !target->first || (result->first <= target->last && result->last >= target->first);
}

double task_ndcg(const task *t, const place *results, size_t n) {
  double gain = 0, best = 0;
  for (size_t i = 0; i < t->n_targets; i++) {
    for (size_t r = 0; r < n && r < RESULTS_MAX; r++) {
      if (!answers(&t->targets[i], &results[r])) continue;
      gain += 1 / log2((double)r + 2);
      break;
    }
    if (i < RESULTS_MAX) best += 1 / log2((double)i + 2);
  }
  return best > 0 ? gain / best : 0;
}

void tally_add(tally *t, const task *asked, double ndcg) {
  size_t i = 0;
  while (i < t->n_repos && !str_eq(t->repos[i].name, asked->repo)) i++;
  if (i < sizeof t->repos / sizeof t->repos[0]) {
    if (i == t->n_repos) t->repos[t->n_repos++].name = asked->repo;
    t->repos[i].sum += ndcg;
    t->repos[i].n++;
  }
  for (i = 0; i < t->n_categories && !str_eq(t->categories[i].name, asked->category);) i++;
  if (i < sizeof t->categories / sizeof t->categories[0]) {
    if (i == t->n_categories) t->categories[t->n_categories++].name = asked->category;
    t->categories[i].sum += ndcg;
    t->categories[i].n++;
  }
}

double tally_mean(const tally *t) {
  double sum = 0;
  for (size_t i = 0; i < t->n_repos; i++) sum += t->repos[i].sum / (double)t->repos[i].n;
  return t->n_repos ? sum / (double)t->n_repos : 0;
}
