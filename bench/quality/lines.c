/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - asks the sets of bench/quality/sets and counts: does the first result hold the line that was meant?
 *
 *   lines SETS TREES STORES HALF [failures]
 *
 * TREES/owner+name is a tree, STORES/owner+name its index, HALF open or held. Prints rows for a table of
 * bench/QUALITY.md; `failures` lists every question whose first result is not the right one instead. A result holds a
 * line if its file is the right one and the line lies within its lines.
 */
#include "os/os.h"
#include "project/project.h"
#include "search/code_search.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINES_AT = 10, LINES_MOST_FIELDS = 8, LINES_MOST_ROWS = 64, LINES_SHORT = 5 };

typedef struct lines_row { /* one row of the table */
  char what[64];
  size_t asked, first, three, ten;
} lines_row;

typedef struct lines_run {
  const char *sets, *trees, *stores, *half;
  bool failures;
  char repo[128]; /* whose store is open */
  project_info project;
  lode_store *store;
  lode_embedder *model;
  lines_row rows[LINES_MOST_ROWS];
  size_t n_rows;
  size_t asked, brief, unsure; /* first results of a few lines; right answers that are marked as weak */
} lines_run;

static void lines_die(const char *what, const lode_error *err) {
  fprintf(stderr, "%s: %s\n", what, err ? err->text : "cannot be read");
  exit(1);
}

static lines_row *lines_row_of(lines_run *run, const char *a, const char *b) {
  char what[64];
  snprintf(what, sizeof what, "%s%s%s", a, b[0] ? ": " : "", b);
  for (size_t i = 0; i < run->n_rows; i++)
    if (strcmp(run->rows[i].what, what) == 0) return &run->rows[i];
  if (run->n_rows == LINES_MOST_ROWS) lines_die("too many rows", NULL);
  lines_row *row = &run->rows[run->n_rows++];
  snprintf(row->what, sizeof row->what, "%s", what);
  return row;
}

/* ---- Repositories ---- */

static void lines_path(const char *folder, const char *repo, char *out, size_t size) {
  int at = snprintf(out, size, "%s/", folder);
  snprintf(out + at, size - (size_t)at, "%s", repo);
  for (char *p = out + at; *p; p++)
    if (*p == '/') *p = '+';
}

static void lines_close(lines_run *run) {
  if (!run->store) return;
  lode_close(run->store);
  project_release(&run->project);
  run->store = NULL;
}

static void lines_open(lines_run *run, const char *repo) {
  char tree[4096], store[4096];
  lode_error err = {.record = LODE_NO_RECORD};
  lode_open_options options = {.read_only = true, .no_background = true};
  if (strcmp(run->repo, repo) == 0) return;
  lines_close(run);
  snprintf(run->repo, sizeof run->repo, "%s", repo);
  lines_path(run->trees, repo, tree, sizeof tree);
  lines_path(run->stores, repo, store, sizeof store);
  if (project_open(&run->project, tree, store, &err) != LODE_OK) lines_die(tree, &err);
  if (lode_open(store, &options, &run->store, &err) != LODE_OK) lines_die(store, &err);
  if (!run->model && project_open_model(&run->project, STR_LIT("code"), NULL, &run->model, &err) != LODE_OK)
    lines_die("the model", &err);
}

/* ---- Questions ---- */

typedef struct lines_question {
  const char *repo, *type, *path, *set;
  lode_str text;
  uint32_t line;
} lines_question;

static void lines_search(lines_run *run, lode_str text, search_result *result) {
  search_request request = {.query = text, .mode = LODE_HYBRID, .limit = LINES_AT, .embedder = run->model};
  lode_error err = {.record = LODE_NO_RECORD};
  if (search_run(&run->project, run->store, &request, result, &err) == LODE_OK) return;
  if (err.status != LODE_INVALID) lines_die("search", &err);
  memset(result, 0, sizeof *result); /* a query without words: nothing was found */
  mem_arena_init(&result->arena, 0);
}

static void lines_show_failure(const lines_question *q, const search_result *result, size_t rank) {
  printf("%s %s %s\n  %.*s\n  wanted %s:%u, rank %zu\n", q->set, q->type, q->repo, (int)q->text.len, q->text.data,
         q->path, q->line, rank);
  for (size_t i = 0; i < result->n && i < 3; i++) {
    const search_hit *h = &result->hits[i];
    printf("  %zu. %.*s:%u-%u %.*s %.*s %.3f\n", i + 1, (int)h->path.len, h->path.data, h->first, h->last,
           (int)h->kind.len, h->kind.data, (int)h->name.len, h->name.data, h->score);
  }
}

static void lines_ask(lines_run *run, const lines_question *q, const char *language) {
  search_result result;
  size_t rank = 0; /* 0: not found */
  lines_search(run, q->text, &result);
  for (size_t i = 0; i < result.n && !rank; i++) {
    const search_hit *h = &result.hits[i];
    if (str_eq(h->path, str_of(q->path)) && h->first <= q->line && q->line <= h->last) rank = i + 1;
  }
  const char *rows[][2] = {{"", ""}, {q->type, ""}, {language, ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (i == 2 && !language[0]) continue;
    lines_row *row = lines_row_of(run, q->set, rows[i][0]);
    row->asked++;
    row->first += rank == 1;
    row->three += rank && rank <= 3;
    row->ten += rank != 0;
  }
  run->asked++;
  run->unsure += rank == 1 && result.weak;
  run->brief += result.n && result.hits[0].last - result.hits[0].first < LINES_SHORT;
  if (run->failures && rank != 1) lines_show_failure(q, &result, rank);
  search_result_release(&result);
}

static void lines_ask_absent(lines_run *run, const char *type, const char *text) {
  search_result result;
  lines_search(run, str_of(text), &result);
  for (int i = 0; i < 2; i++) {
    lines_row *row = lines_row_of(run, "absent", i ? type : "");
    row->asked++;
    row->first += result.n == 0 || result.weak;
  }
  if (run->failures && result.n && !result.weak) printf("absent %s %s: %s\n", type, run->repo, text);
  search_result_release(&result);
}

/* ---- Sets ---- */

/* The language of a repository, from repos.txt. */
static void lines_language(const lines_run *run, const char *repo, char *out, size_t size) {
  char path[4096], line[512], half[16], name[128];
  snprintf(path, sizeof path, "%s/repos.txt", run->sets);
  FILE *f = fopen(path, "re");
  if (!f) lines_die(path, NULL);
  snprintf(out, size, "%s", "");
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "%15s %31s %127s", half, out, name) == 3 && strcmp(name, repo) == 0) break;
  fclose(f);
}

/* The text of a literal: bytes of a line of a file. */
static lode_str lines_literal(const lines_run *run, char *const *field, strbuf *scratch) {
  char path[8192];
  lines_path(run->trees, field[1], path, sizeof path);
  size_t len = strlen(path);
  snprintf(path + len, sizeof path - len, "/%s", field[3]);
  FILE *f = fopen(path, "re");
  if (!f) lines_die(path, NULL);
  char *text = NULL;
  size_t cap = 0;
  long wanted = strtol(field[4], NULL, 10);
  ssize_t n = 0;
  for (long i = 0; i < wanted && n >= 0; i++) n = getline(&text, &cap, f);
  fclose(f);
  size_t offset = (size_t)strtoul(field[5], NULL, 10), bytes = (size_t)strtoul(field[6], NULL, 10);
  if (n < 0 || offset + bytes > (size_t)n) lines_die(path, NULL);
  scratch->len = 0;
  strbuf_add(scratch, text + offset, bytes);
  free(text);
  return (lode_str){scratch->data, scratch->len};
}

static size_t lines_split(char *line, char **field) {
  size_t n = 0;
  line[strcspn(line, "\n")] = '\0';
  for (char *p = line; p && n < LINES_MOST_FIELDS;) {
    field[n++] = p;
    p = strchr(p, '\t');
    if (p) *p++ = '\0';
  }
  return n;
}

static void lines_ask_line(lines_run *run, const char *set, char *const *field) {
  char language[32];
  strbuf scratch = {0};
  lines_open(run, field[1]);
  lines_language(run, field[1], language, sizeof language);
  if (strcmp(set, "names") == 0) {
    lines_question q = {field[1], field[2], field[4], set, str_of(field[3]), (uint32_t)strtoul(field[5], NULL, 10)};
    lines_ask(run, &q, language);
  } else if (strcmp(set, "literals") == 0) {
    lode_str text = lines_literal(run, field, &scratch);
    lines_question q = {field[1], field[2], field[3], set, text, (uint32_t)strtoul(field[4], NULL, 10)};
    lines_ask(run, &q, "");
  } else {
    lines_ask_absent(run, field[2], field[3]);
  }
  strbuf_release(&scratch);
}

static void lines_ask_set(lines_run *run, const char *set) {
  char path[4096], *line = NULL, *field[LINES_MOST_FIELDS];
  size_t cap = 0, least = strcmp(set, "names") == 0 ? 6 : strcmp(set, "literals") == 0 ? 8 : 4;
  snprintf(path, sizeof path, "%s/%s.tsv", run->sets, set);
  FILE *f = fopen(path, "re");
  if (!f) lines_die(path, NULL);
  while (getline(&line, &cap, f) > 0) {
    if (lines_split(line, field) < least) lines_die(path, NULL);
    if (strcmp(field[0], run->half) == 0) lines_ask_line(run, set, field);
  }
  free(line);
  fclose(f);
}

static double lines_percent(size_t part, size_t of) { return of ? 100.0 * (double)part / (double)of : 0; }

static void lines_print(const lines_run *run) {
  for (size_t i = 0; i < run->n_rows; i++) {
    const lines_row *r = &run->rows[i];
    if (strncmp(r->what, "absent", 6) == 0)
      printf("| %s | %zu | %.1f %% | | |\n", r->what, r->asked, lines_percent(r->first, r->asked));
    else
      printf("| %s | %zu | %.1f %% | %.1f %% | %.1f %% |\n", r->what, r->asked, lines_percent(r->first, r->asked),
             lines_percent(r->three, r->asked), lines_percent(r->ten, r->asked));
  }
  printf("| first results of at most %d lines | %zu | %.1f %% | | |\n", LINES_SHORT, run->asked,
         lines_percent(run->brief, run->asked));
  printf("| right first results marked as weak | %zu | %.1f %% | | |\n", run->asked,
         lines_percent(run->unsure, run->asked));
}

int main(int argc, char **argv) {
  static const char *const sets[] = {"names", "literals", "absent"};
  if (argc < 5) {
    fprintf(stderr, "usage: lines SETS TREES STORES open|held [failures [SET]]\n");
    return 2;
  }
  lines_run run = {.sets = argv[1], .trees = argv[2], .stores = argv[3], .half = argv[4], .failures = argc > 5};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    if (argc < 7 || strcmp(argv[6], sets[i]) == 0) lines_ask_set(&run, sets[i]);
  if (!run.failures) lines_print(&run);
  lines_close(&run);
  lode_embedder_close(run.model);
  return 0;
}
