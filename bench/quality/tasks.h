/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.h - questions to whole repositories, with the places that answer them, and what a list of results is worth.
 *
 * A task is a line of tasks.jsonl: repo, query, category, relevant and secondary, each a list of places (path,
 * and start_line and end_line where it is narrower than the file). All of them are targets. A target counts at the
 * rank of the first of ten results whose path is its path and whose lines overlap its lines, where it has any. Gains
 * are binary: DCG is the sum of 1/log2(rank + 1) over the targets found, and NDCG@10 is DCG over that of the best
 * possible list. The figure of a set is the mean over its repositories of the mean over their tasks.
 */
#ifndef QUALITY_TASKS_H
#define QUALITY_TASKS_H

#include "base/json.h"

enum { TARGETS_MAX = 16, RESULTS_MAX = 10 };

typedef struct place {
  lode_str path;
  int64_t first, last; /* lines, from 1; 0: the whole file */
} place;

typedef struct task {
  lode_str repo, query, category;
  place targets[TARGETS_MAX];
  size_t n_targets;
} task;

typedef struct tasks {
  task *all;
  size_t n, cap;
  char *text; /* what the strings point into, with the documents of the lines */
  json_doc *lines;
} tasks;

/* Exits with a message when the file cannot be read or is not such a file. */
void tasks_load(tasks *t, const char *path);
void tasks_release(tasks *t);

double task_ndcg(const task *t, const place *results, size_t n);

/* Sums by repository and by category. */
typedef struct tally {
  struct {
    lode_str name;
    double sum;
    size_t n;
  } repos[256], categories[16];
  size_t n_repos, n_categories;
} tally;

void tally_add(tally *t, const task *asked, double ndcg);
double tally_mean(const tally *t); /* over repositories */

/* The whole file in memory, with a NUL after it; exits with a message. */
char *read_file(const char *path, size_t *len);

#endif
