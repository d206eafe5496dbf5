/* SPDX-License-Identifier: Apache-2.0 */
/* quality.c - how well models find code: held-out packages, CoSQA, whole repositories.
 *
 *   quality [NAME=FOLDER ...]
 *
 * Asked of each: BM25, the model "code" of every FOLDER of models (without any: the one lode finds), MiniLM where it is
 * installed (LODE_MINILM_TOKENS="64 128 256" says where texts are cut, 0 leaves it out), and each model together with
 * BM25. From the environment: LODE_PAIRS   pairs of held-out packages, as tools/train writes them LODE_DATA    a folder
 * with cosqa/dev-500.json and cosqa/code_idx_map.txt, repos-dev/repos.json and repos-dev/tasks.jsonl LODE_REPOS   a
 * folder with the repositories' trees, as owner+name or owner/name What is not there is skipped with a line that says
 * so.
 */
#include "rank.h"
#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MODELS_MAX = 12, AMONG = 1000, HELD_MAX = 20000 };

typedef struct model {
  const char *name;
  lode_embedder *embedder;
} model;

typedef struct models {
  model all[MODELS_MAX];
  size_t n;
} models;

static void add_model(models *m, const char *name, const char *kind, const char *folder, uint32_t tokens) {
  lode_error err;
  lode_embedder_options options = {.folder = folder, .max_tokens = tokens};
  if (m->n == MODELS_MAX) return;
  model *one = &m->all[m->n];
  one->name = name;
  if (lode_embedder_open(str_of(kind), &options, &one->embedder, &err) == LODE_OK)
    m->n++;
  else
    printf("skipped: %s: %s\n", name, err.text);
}

/* ---- One question ---- */

typedef struct method { /* model < 0: BM25 alone; fused: with BM25 */
  int model;
  bool fused;
} method;

typedef struct searcher {
  const models *models;
  bm25 *words;
  dense vectors[MODELS_MAX];
  float *scores, *other;
  size_t n;
} searcher;

static void searcher_init(searcher *s, const models *m, const lode_str *all, size_t n, bool say) {
  *s = (searcher){.models = m, .n = n, .words = bm25_new(all, n)};
  s->scores = mem_alloc((n + 1) * sizeof(float));
  s->other = mem_alloc((n + 1) * sizeof(float));
  if (!s->scores || !s->other) exit(2);
  for (size_t i = 0; i < m->n; i++) {
    dense_init(&s->vectors[i], m->all[i].embedder, all, n);
    if (say)
      printf("  %s: %zu texts in %.2f s of CPU, %.0f a second\n", m->all[i].name, n, s->vectors[i].seconds,
             (double)n / (s->vectors[i].seconds + 1e-9));
  }
}

static void searcher_release(searcher *s) {
  bm25_free(s->words);
  for (size_t i = 0; i < s->models->n; i++) dense_release(&s->vectors[i]);
  mem_free(s->scores);
  mem_free(s->other);
}

static void ask(searcher *s, method by, lode_str query) {
  if (by.model < 0) {
    bm25_scores(s->words, query, s->scores);
    return;
  }
  dense_scores(&s->vectors[by.model], query, s->scores);
  if (!by.fused) return;
  bm25_scores(s->words, query, s->other);
  fuse_scores(s->scores, s->other, s->n);
}

static size_t rank_of(const searcher *s, size_t text) {
  size_t rank = 1;
  for (size_t i = 0; i < s->n; i++)
    rank += s->scores[i] > s->scores[text] || (s->scores[i] == s->scores[text] && i < text);
  return rank;
}

static size_t n_methods(const models *m) { return 1 + 2 * m->n; }
static method method_at(size_t i) {
  return i == 0 ? (method){-1, false} : (method){(int)((i - 1) / 2), (i - 1) % 2 == 1};
}
static void print_method(const models *m, size_t i) {
  method by = method_at(i);
  char name[80];
  snprintf(name, sizeof name, "%s%s", by.model < 0 ? "BM25" : m->all[by.model].name, by.fused ? " + BM25" : "");
  printf("  %-24s", name);
}

static bool there(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

/* ---- Held-out packages: a description finds its function among 1,000 of the same language ---- */

typedef struct held {
  lode_str lang, doc, code;
} held;

static int by_language(const void *a, const void *b) {
  const held *x = a, *y = b;
  int c = str_cmp(x->lang, y->lang);
  return c ? c : x->code.data < y->code.data ? -1 : 1;
}

static lode_str unescape(char *s, size_t n) {
  size_t to = 0;
  for (size_t i = 0; i < n; i++) {
    char c = s[i];
    if (c == '\\' && i + 1 < n) c = s[++i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i];
    s[to++] = c;
  }
  return (lode_str){s, to};
}

/* lang, package, path, kind, name, doc, code; modules and sections are left out: they are not functions. */
static size_t held_load(char *data, held **out) {
  held *all = NULL;
  size_t n = 0, cap = 0;
  for (char *line = data; *line;) {
    size_t len = strcspn(line, "\n");
    char *field[7], *at = line, *end = line + len;
    size_t width[7], k = 0;
    for (; k < 7 && at <= end; k++) {
      char *tab = memchr(at, '\t', (size_t)(end - at));
      field[k] = at;
      width[k] = tab ? (size_t)(tab - at) : (size_t)(end - at);
      at = tab ? tab + 1 : end + 1;
    }
    if (k == 7 && field[3][0] == 'f' && width[6] > 80) {
      if (!mem_grow(&all, &cap, n + 1, sizeof *all)) exit(2);
      lode_str doc = unescape(field[5], width[5]);
      const char *stop = memchr(doc.data, '.', doc.len);
      if (stop && stop - doc.data > 12) doc.len = (size_t)(stop - doc.data);
      /* nobody asks for a function by its name first, as comments of Go do */
      if (width[4] && doc.len > width[4] + 1 && memcmp(doc.data, field[4], width[4]) == 0)
        doc.data += width[4] + 1, doc.len -= width[4] + 1;
      all[n++] = (held){{field[0], width[0]}, doc, unescape(field[6], width[6])};
    }
    line += len + (line[len] == '\n');
  }
  *out = all;
  return n;
}

static void run_held_out(const models *m) {
  const char *path = getenv("LODE_PAIRS");
  if (!path || !there(path)) {
    printf("skipped: held-out packages (LODE_PAIRS names no file)\n");
    return;
  }
  size_t len, n_held;
  char *data = read_file(path, &len);
  held *all;
  n_held = held_load(data, &all);
  if (n_held) qsort(all, n_held, sizeof *all, by_language);
  printf("held-out packages: the first sentence of a comment finds its function among up to %d of its language\n",
         AMONG);
  double mrr_sum[1 + 2 * MODELS_MAX] = {0};
  size_t languages = 0;
  for (size_t from = 0; from < n_held;) {
    size_t to = from;
    while (to < n_held && str_eq(all[to].lang, all[from].lang)) to++;
    size_t n = to - from, take = n < AMONG ? n : AMONG;
    if (n >= 100) {
      lode_str *codes = mem_alloc(take * sizeof *codes), *docs = mem_alloc(take * sizeof *docs);
      if (!codes || !docs) exit(2);
      for (size_t i = 0; i < take; i++)
        codes[i] = all[from + i * n / take].code, docs[i] = all[from + i * n / take].doc;
      searcher s;
      searcher_init(&s, m, codes, take, false);
      printf(" %.*s (%zu)\n", (int)all[from].lang.len, all[from].lang.data, take);
      for (size_t k = 0; k < n_methods(m); k++) {
        double mrr = 0, first = 0, ten = 0;
        for (size_t i = 0; i < take; i++) {
          ask(&s, method_at(k), docs[i]);
          size_t rank = rank_of(&s, i);
          mrr += 1.0 / (double)rank;
          first += rank == 1;
          ten += rank <= 10;
        }
        print_method(m, k);
        printf(" MRR %.3f  r@1 %.3f  r@10 %.3f\n", mrr / (double)take, first / (double)take, ten / (double)take);
        mrr_sum[k] += mrr / (double)take;
      }
      languages++;
      searcher_release(&s);
      mem_free(codes);
      mem_free(docs);
    }
    from = to;
  }
  printf(" mean MRR over %zu languages\n", languages);
  for (size_t k = 0; k < n_methods(m) && languages; k++) {
    print_method(m, k);
    printf(" %.3f\n", mrr_sum[k] / (double)languages);
  }
  mem_free(all);
  mem_free(data);
}

/* ---- CoSQA ---- */

static json_doc load_json(const char *path, char **text) {
  json_doc j = {.count = 0};
  lode_error err;
  size_t len;
  *text = read_file(path, &len);
  if (json_parse(&j, (lode_str){*text, len}, NULL, &err) == LODE_OK) return j;
  fprintf(stderr, "%s: %s\n", path, err.text);
  exit(2);
}

static void run_cosqa(const models *m, const char *folder) {
  char path[4096], *map_text, *query_text;
  snprintf(path, sizeof path, "%s/cosqa/code_idx_map.txt", folder ? folder : "");
  if (!folder || !there(path)) {
    printf("skipped: CoSQA (LODE_DATA names no folder with it)\n");
    return;
  }
  json_doc map = load_json(path, &map_text);
  snprintf(path, sizeof path, "%s/cosqa/dev-500.json", folder);
  json_doc queries = load_json(path, &query_text);
  size_t n = map.nodes[0].u.count;
  lode_str *codes = mem_calloc(n, sizeof *codes);
  if (!codes) exit(2);
  for (uint32_t at = 1; at < map.nodes[0].next; at = map.nodes[at + 1].next) {
    int64_t i = map.nodes[at + 1].type == JSON_NODE_INT ? map.nodes[at + 1].u.i : -1;
    if (i >= 0 && (size_t)i < n) codes[i] = map.nodes[at].u.s;
  }
  printf("CoSQA: %zu questions, %zu functions\n", queries.nodes[0].u.count, n);
  searcher s;
  searcher_init(&s, m, codes, n, true);
  for (size_t k = 0; k < n_methods(m); k++) {
    double mrr = 0, ten = 0;
    size_t asked = 0;
    for (uint32_t at = 1; at < queries.nodes[0].next; at = queries.nodes[at].next) {
      uint32_t doc = json_get(&queries, at, STR_LIT("doc")), idx = json_get(&queries, at, STR_LIT("retrieval_idx"));
      if (!doc || !idx || queries.nodes[idx].u.i < 0 || (size_t)queries.nodes[idx].u.i >= n) continue;
      ask(&s, method_at(k), queries.nodes[doc].u.s);
      size_t rank = rank_of(&s, (size_t)queries.nodes[idx].u.i);
      mrr += 1.0 / (double)rank;
      ten += rank <= 10;
      asked++;
    }
    print_method(m, k);
    printf(" MRR %.4f  r@10 %.3f\n", mrr / (double)asked, ten / (double)asked);
  }
  searcher_release(&s);
  mem_free(codes);
  json_release(&map);
  json_release(&queries);
  mem_free(map_text);
  mem_free(query_text);
}

/* ---- Repositories ---- */

static bool tree_of(const char *repos, lode_str github, char *path, size_t size) {
  snprintf(path, size, "%s/%.*s", repos, (int)github.len, github.data);
  if (there(path)) return true;
  char *slash = strchr(path + strlen(repos) + 1, '/');
  if (slash) *slash = '+';
  return there(path);
}

static void run_repos(const models *m, const char *folder, const char *repos, bool with_path) {
  char path[4096], *text;
  snprintf(path, sizeof path, "%s/repos-dev/repos.json", folder ? folder : "");
  if (!folder || !there(path) || !repos) {
    printf("skipped: repositories (LODE_DATA names no folder with them, or LODE_REPOS none with their trees)\n");
    return;
  }
  json_doc list = load_json(path, &text);
  tasks asked;
  snprintf(path, sizeof path, "%s/repos-dev/tasks.jsonl", folder);
  tasks_load(&asked, path);
  static tally sums[1 + 2 * MODELS_MAX];
  memset(sums, 0, sizeof sums);
  size_t chunks = 0;
  double seconds[MODELS_MAX] = {0};
  for (uint32_t at = 1; at < list.nodes[0].next; at = list.nodes[at].next) {
    lode_str name = list.nodes[json_get(&list, at, STR_LIT("name"))].u.s,
             github = list.nodes[json_get(&list, at, STR_LIT("github"))].u.s;
    lode_str root = list.nodes[json_get(&list, at, STR_LIT("root"))].u.s;
    if (!tree_of(repos, github, path, sizeof path)) {
      printf("skipped: %.*s (no such folder in LODE_REPOS)\n", (int)github.len, github.data);
      continue;
    }
    texts t = {.n = 0};
    texts_of_tree(&t, path, root, with_path);
    chunks += t.n;
    searcher s;
    searcher_init(&s, m, t.all, t.n, false);
    for (size_t i = 0; i < m->n; i++) seconds[i] += s.vectors[i].seconds;
    for (size_t k = 0; k < n_methods(m); k++) {
      for (size_t i = 0; i < asked.n; i++) {
        if (!str_eq(asked.all[i].repo, name)) continue;
        scored best[RESULTS_MAX];
        place results[RESULTS_MAX];
        ask(&s, method_at(k), asked.all[i].query);
        size_t found = best_of(s.scores, s.n, best, RESULTS_MAX);
        for (size_t r = 0; r < found; r++) results[r] = t.places[best[r].text];
        tally_add(&sums[k], &asked.all[i], task_ndcg(&asked.all[i], results, found));
      }
    }
    searcher_release(&s);
    texts_release(&t);
  }
  printf("repositories: NDCG@10 of the best ten chunks as they come (%zu chunks%s)\n", chunks,
         with_path ? ", with their path" : "");
  for (size_t k = 0; k < n_methods(m); k++) {
    print_method(m, k);
    printf(" %.4f ", tally_mean(&sums[k]));
    for (size_t i = 0; i < sums[k].n_categories; i++) {
      if (sums[k].categories[i].n > 10)
        printf("  %.*s %.3f", (int)sums[k].categories[i].name.len, sums[k].categories[i].name.data,
               sums[k].categories[i].sum / (double)sums[k].categories[i].n);
    }
    if (getenv("LODE_VERBOSE")) {
      for (size_t i = 0; i < sums[k].n_repos; i++)
        printf(" %.*s=%.3f", (int)sums[k].repos[i].name.len, sums[k].repos[i].name.data,
               sums[k].repos[i].sum / (double)sums[k].repos[i].n);
    }
    printf("\n");
  }
  for (size_t i = 0; i < m->n; i++)
    printf("  %s: %.0f chunks a second of CPU\n", m->all[i].name, (double)chunks / (seconds[i] + 1e-9));
  tasks_release(&asked);
  json_release(&list);
  mem_free(text);
}

int main(int argc, char **argv) {
  static models m;
  const char *data = getenv("LODE_DATA"), *repos = getenv("LODE_REPOS"), *minilm = getenv("LODE_MINILM_TOKENS");
  for (int i = 1; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (equals) *equals = 0;
    add_model(&m, argv[i], LODE_MODEL_CODE, equals ? equals + 1 : NULL, 0);
  }
  if (argc == 1) add_model(&m, "code", LODE_MODEL_CODE, NULL, 0);
  static char names[3][32];
  const char *at = minilm ? minilm : "128";
  for (int i = 0; i < 3; i++) {
    char *end;
    unsigned long tokens = strtoul(at, &end, 10);
    if (end == at || tokens == 0) break;
    snprintf(names[i], sizeof names[i], "minilm %lu", tokens);
    add_model(&m, names[i], LODE_MODEL_MINILM, NULL, (uint32_t)tokens);
    at = end;
  }
  const char *only = getenv("LODE_QUALITY"); /* cosqa, repos, held: some of them */
  if (!only || strstr(only, "cosqa")) run_cosqa(&m, data);
  if (!only || strstr(only, "repos")) run_repos(&m, data, repos, false);
  if (!only || strstr(only, "paths")) run_repos(&m, data, repos, true);
  if (!only || strstr(only, "held")) run_held_out(&m);
  for (size_t i = 0; i < m.n; i++) lode_embedder_close(m.all[i].embedder);
  return 0;
}
