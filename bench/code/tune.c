/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - finds weights for src/app/search/search_tuning.h: coordinate ascent on labelled queries, evaluated on
 * repositories that it did not see.
 *
 *   tune TASKS.jsonl REPOS-FOLDER [text|vector|hybrid [quick|scan|why]]
 *
 * REPOS-FOLDER/NAME is an indexed tree. The candidates of each query are gathered once; then only rank_run runs. It
 * prints the mean NDCG@10 with the weights of the table, after tuning on all repositories, and when each repository is
 * evaluated with weights tuned on the others: the last figure is the honest one. `quick` stops after the table's
 * figures, `scan` shows what each weight does alone, `why` lists the queries below 1: what stands above the labelled
 * files, by which features, and which labelled files were never gathered.
 */
#include "project/project.h"
#include "search/code_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TASKS = 2000, MOST_REPOS = 64, MOST_TARGETS = 32, AT = 10 };

typedef struct target {
  char path[400];
  long first, last;
} target;

typedef struct task {
  size_t repo;
  char category[24];
  const char *query;
  target targets[MOST_TARGETS];
  size_t n_targets;
  search_result result;
  rank_candidate *candidates;
  size_t n;
} task;

typedef struct repo {
  char name[64], prefix[200];
  project_info project;
  lode_store *store;
} repo;

static task tasks[MOST_TASKS];
static repo repos[MOST_REPOS];
static size_t n_tasks, n_repos;

static void die(const char *what, const lode_error *err) {
  fprintf(stderr, "%s: %s\n", what, err ? err->text : "");
  exit(1);
}

static double evaluate(task *t, const rank_weights *w) {
  rank_hit hits[AT];
  size_t n = 0;
  double gain = 0, ideal = 0;
  lode_error err;
  if (rank_run(&t->result.question, t->candidates, t->n, w, AT, hits, &n, &err) != LODE_OK) die("rank", &err);
  for (size_t g = 0; g < t->n_targets; g++) {
    if (g < AT) ideal += 1 / log2((double)g + 2);
    for (size_t i = 0; i < n; i++) {
      const rank_candidate *c = hits[i].chunk;
      size_t skip = strlen(repos[t->repo].prefix);
      const char *want = t->targets[g].path;
      if (strncmp(want, repos[t->repo].prefix, skip) == 0) want += skip;
      if (!str_eq(c->path, str_of(want))) continue;
      if (t->targets[g].first && ((long)c->last < t->targets[g].first || (long)c->first > t->targets[g].last)) continue;
      gain += 1 / log2((double)i + 2);
      break;
    }
  }
  return ideal > 0 ? gain / ideal : 0;
}

/* Mean over repositories; `left_out` takes no part, or, with only, is the one that does. */
static double mean(const rank_weights *w, size_t left_out, bool only) {
  double sum[MOST_REPOS] = {0}, total = 0;
  size_t count[MOST_REPOS] = {0}, n = 0;
  for (size_t i = 0; i < n_tasks; i++) {
    if ((tasks[i].repo == left_out) != only) continue;
    sum[tasks[i].repo] += evaluate(&tasks[i], w);
    count[tasks[i].repo]++;
  }
  for (size_t r = 0; r < n_repos; r++)
    if (count[r]) {
      total += sum[r] / (double)count[r];
      n++;
    }
  return n ? total / (double)n : 0;
}

static double *knob(rank_weights *w, size_t i) {
  if (i < 2 * RANK_FEATURE_COUNT) return &w->feature[i / RANK_FEATURE_COUNT][i % RANK_FEATURE_COUNT];
  i -= 2 * RANK_FEATURE_COUNT;
  if (i < RANK_FACTOR_COUNT) return &w->factor[i];
  i -= RANK_FACTOR_COUNT;
  return i < 2 ? &w->more[i] : i == 2 ? &w->decay : i < 5 ? &w->again[i - 3] : i < 7 ? &w->again_file[i - 5] : NULL;
}

static rank_weights tune(rank_weights w, size_t left_out, bool loud) {
  static const double steps[] = {0.5, 0.75, 1.25, 1.6};
  double best = mean(&w, left_out, false);
  for (int round = 0; round < 3; round++) {
    double before = best;
    for (size_t k = 0; knob(&w, k); k++) {
      double old = *knob(&w, k), keep = old;
      for (size_t s = 0; s < 5; s++) {
        double value = s < 4 ? (old > 0 ? old * steps[s] : 0.1 * steps[s]) : 0;
        if (k >= 2 * RANK_FEATURE_COUNT && k < 2 * RANK_FEATURE_COUNT + RANK_FACTOR_COUNT && (value > 1 || value == 0))
          continue;
        *knob(&w, k) = value;
        double got = mean(&w, left_out, false);
        if (got > best + 0.0003) {
          best = got;
          keep = value;
        }
      }
      *knob(&w, k) = keep;
    }
    if (loud) fprintf(stderr, "round %d: %.4f\n", round + 1, best);
    if (best - before < 0.0005) break;
  }
  return w;
}

/* What each knob does alone: the change of the mean, and how many repositories gain and lose by it. */
static void scan_knobs(void) {
  static const double steps[] = {0, 0.5, 0.75, 1.4, 2};
  rank_weights w = rank_default_weights;
  double base[MOST_REPOS];
  for (size_t r = 0; r < n_repos; r++) base[r] = mean(&w, r, true);
  for (size_t k = 0; knob(&w, k); k++) {
    double old = *knob(&w, k);
    printf("knob %2zu (%.2f)", k, old);
    for (size_t s = 0; s < 5; s++) {
      double sum = 0;
      int up = 0, down = 0;
      *knob(&w, k) = old * steps[s];
      for (size_t r = 0; r < n_repos; r++) {
        double change = mean(&w, r, true) - base[r];
        sum += change;
        up += change > 0.0005;
        down += change < -0.0005;
      }
      printf("  x%.2f %+.4f (%d/%d)", steps[s], sum / (double)n_repos, up, down);
    }
    *knob(&w, k) = old;
    printf("\n");
  }
}

/* ---- Why ---- */

static bool meets(const task *t, const target *g, const rank_candidate *c) {
  size_t skip = strlen(repos[t->repo].prefix);
  const char *want = g->path;
  if (strncmp(want, repos[t->repo].prefix, skip) == 0) want += skip;
  return str_eq(c->path, str_of(want)) && (!g->first || ((long)c->last >= g->first && (long)c->first <= g->last));
}

static void show(const task *t, size_t rank, const rank_hit *hit) {
  const rank_candidate *c = hit->chunk;
  bool wanted = false;
  for (size_t g = 0; g < t->n_targets; g++) wanted = wanted || meets(t, &t->targets[g], c);
  printf("  %c %3zu %.2f (own %.2f, %zu more) %.*s:%u %.*s %.*s [", wanted ? '*' : ' ', rank + 1, hit->score, c->score,
         hit->more, (int)c->path.len, c->path.data, c->first, (int)c->kind.len, c->kind.data, (int)c->name.len,
         c->name.data);
  for (size_t f = 0; f < RANK_FEATURE_COUNT; f++)
    if (c->features[f] > 0) printf(" %s %.2f", rank_feature_name((rank_feature)f), c->features[f]);
  printf(" ] factors %x\n", c->factors);
}

/* What stands in the way, and how much any ranking could gain: the share of labelled files that are candidates at all,
 * and within the first 10, 20 and 50 files. */
static void tell_why(const rank_weights *w) {
  enum { MOST = 1000 };
  static rank_hit hits[MOST];
  static const size_t at[] = {10, 20, 50, MOST};
  size_t within[4] = {0}, targets = 0, gathered = 0;
  for (size_t i = 0; i < n_tasks; i++) {
    task *t = &tasks[i];
    double got = evaluate(t, w);
    size_t n = 0;
    lode_error err;
    if (rank_run(&t->result.question, t->candidates, t->n, w, MOST, hits, &n, &err) != LODE_OK) die("rank", &err);
    if (got < 0.999) printf("%.3f %s %s: %s (%zu candidates)\n", got, repos[t->repo].name, t->category, t->query, t->n);
    size_t worst = 0;
    for (size_t g = 0; g < t->n_targets; g++, targets++) {
      bool candidate = false;
      size_t rank = 0;
      for (size_t k = 0; k < t->n && !candidate; k++) candidate = meets(t, &t->targets[g], &t->candidates[k]);
      while (rank < n && !meets(t, &t->targets[g], hits[rank].chunk)) rank++;
      gathered += candidate;
      for (size_t a = 0; a < 4; a++) within[a] += rank < at[a] && rank < n;
      if (!candidate) printf("  ! never gathered: %s\n", t->targets[g].path);
      if (rank < n && rank > worst) worst = rank;
    }
    for (size_t k = 0; k < n && k <= worst && got < 0.999; k++)
      if (k < 6 || k == worst) show(t, k, &hits[k]);
  }
  printf("of %zu labelled files: candidates %.3f", targets, (double)gathered / (double)targets);
  for (size_t a = 0; a < 4; a++) printf(", first %zu %.3f", at[a], (double)within[a] / (double)targets);
  printf("\n");
}

static void by_repo(const rank_weights *w) {
  for (size_t r = 0; r < n_repos; r++) printf("  %-20s %.4f\n", repos[r].name, mean(w, r, true));
}

static void print(const rank_weights *w) {
  for (size_t f = 0; f < RANK_FEATURE_COUNT; f++)
    printf("  %-9s %.3f %.3f\n", rank_feature_name((rank_feature)f), w->feature[0][f], w->feature[1][f]);
  for (size_t f = 0; f < RANK_FACTOR_COUNT; f++) printf("  factor %zu  %.3f\n", f, w->factor[f]);
  printf("  more      %.3f %.3f\n", w->more[0], w->more[1]);
}

/* ---- Loading ---- */

static size_t repo_of(const char *name, const char *folder) {
  char path[1024];
  lode_error err;
  lode_open_options options = {.read_only = true, .no_background = true};
  for (size_t i = 0; i < n_repos; i++)
    if (strcmp(repos[i].name, name) == 0) return i;
  repo *r = &repos[n_repos];
  snprintf(r->name, sizeof r->name, "%s", name);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  /* NAME.root holds the folder of the repository that is indexed, which the labels' paths begin with */
  char list[1100];
  snprintf(list, sizeof list, "%s.root", path);
  FILE *f = fopen(list, "r");
  if (f) {
    if (fgets(r->prefix, sizeof r->prefix - 1, f)) r->prefix[strcspn(r->prefix, "\n")] = '\0';
    fclose(f);
    if (r->prefix[0]) {
      snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", r->prefix);
      size_t len = strlen(r->prefix);
      if (len + 1 < sizeof r->prefix) memcpy(r->prefix + len, "/", 2);
    }
  }
  char store[1100];
  snprintf(store, sizeof store, "%s/.lode", path);
  if (project_open(&r->project, path, store, &err) != LODE_OK) die(path, &err);
  if (lode_open(store, &options, &r->store, &err) != LODE_OK) die(store, &err);
  return n_repos++;
}

static const char *text_at(const json_doc *json, uint32_t object, const char *key, char *out, size_t size) {
  uint32_t node = json_get(json, object, str_of(key));
  out[0] = '\0';
  if (node && json->nodes[node].type == JSON_NODE_STRING)
    snprintf(out, size, "%.*s", (int)json->nodes[node].u.s.len, json->nodes[node].u.s.data);
  return out;
}

static long number_at(const json_doc *json, uint32_t object, const char *key) {
  uint32_t node = json_get(json, object, str_of(key));
  return node && json->nodes[node].type == JSON_NODE_INT ? (long)json->nodes[node].u.i : 0;
}

static void add_targets(task *t, const json_doc *json, const char *key) {
  uint32_t list = json_get(json, 0, str_of(key));
  if (!list || json->nodes[list].type != JSON_NODE_ARRAY) return;
  for (uint32_t i = list + 1; i < json->nodes[list].next && t->n_targets < MOST_TARGETS; i = json->nodes[i].next) {
    target *g = &t->targets[t->n_targets++];
    text_at(json, i, "path", g->path, sizeof g->path);
    g->first = number_at(json, i, "start_line");
    g->last = number_at(json, i, "end_line");
  }
}

static void load(const char *file, const char *folder, lode_mode mode) {
  char *line = NULL, name[64], query[2000];
  size_t cap = 0;
  ssize_t len;
  FILE *f = fopen(file, "r");
  json_doc json = {0};
  lode_error err;
  if (!f) die(file, NULL);
  while ((len = getline(&line, &cap, f)) > 0 && n_tasks < MOST_TASKS) {
    if (json_parse(&json, (lode_str){line, (size_t)len}, NULL, &err) != LODE_OK) die(file, &err);
    task *t = &tasks[n_tasks++];
    t->repo = repo_of(text_at(&json, 0, "repo", name, sizeof name), folder);
    text_at(&json, 0, "category", t->category, sizeof t->category);
    add_targets(t, &json, "relevant");
    add_targets(t, &json, "secondary");
    text_at(&json, 0, "query", query, sizeof query);
    char *kept = strdup(query);
    t->query = kept;
    search_request request = {.query = str_of(kept), .mode = mode, .limit = AT};
    repo *r = &repos[t->repo];
    if (search_candidates(&r->project, r->store, &request, &t->result, &t->candidates, &t->n, &err) != LODE_OK)
      die(kept, &err);
    if (t->result.note[0]) die(t->result.note, NULL);
  }
  free(line);
  fclose(f);
  json_release(&json);
}

static void by_category(const rank_weights *w) {
  static const char *const names[] = {"symbol", "semantic", "architecture"};
  for (size_t c = 0; c < 3; c++) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < n_tasks; i++)
      if (strcmp(tasks[i].category, names[c]) == 0) {
        sum += evaluate(&tasks[i], w);
        n++;
      }
    printf("  %s %.4f", names[c], n ? sum / (double)n : 0);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  lode_mode mode = argc > 3 && strcmp(argv[3], "text") == 0     ? LODE_BY_TEXT
                   : argc > 3 && strcmp(argv[3], "vector") == 0 ? LODE_BY_VECTOR
                                                                : LODE_HYBRID;
  if (argc < 3) die("usage: tune TASKS.jsonl REPOS-FOLDER [text|vector|hybrid]", NULL);
  load(argv[1], argv[2], mode);
  printf("table: %.4f", mean(&rank_default_weights, SIZE_MAX, false));
  by_category(&rank_default_weights);
  if (argc > 4 && strcmp(argv[4], "scan") == 0) scan_knobs();
  if (argc > 4 && strcmp(argv[4], "why") == 0) tell_why(&rank_default_weights);
  if (argc > 4) by_repo(&rank_default_weights);
  if (argc > 4) return 0;
  rank_weights all = tune(rank_default_weights, SIZE_MAX, true);
  printf("tuned on all: %.4f", mean(&all, SIZE_MAX, false));
  by_category(&all);
  print(&all);
  double unseen = 0;
  for (size_t r = 0; r < n_repos; r++) {
    rank_weights w = tune(rank_default_weights, r, false);
    double got = mean(&w, r, true), table = mean(&rank_default_weights, r, true);
    printf("  %-20s table %.4f, tuned on the others %.4f\n", repos[r].name, table, got);
    unseen += got;
  }
  printf("each evaluated with weights of the others: %.4f\n", unseen / (double)n_repos);
  return 0;
}
