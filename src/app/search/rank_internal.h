/* SPDX-License-Identifier: Apache-2.0 */
/* rank_internal.h - the state of one ranking: of rank.c, and of bench/quality/rank_facts.c, which looks at what the
 * formula made of each file. */
#ifndef LODE_SEARCH_RANK_INTERNAL_H
#define LODE_SEARCH_RANK_INTERNAL_H

#include "search/rank.h"

typedef struct rank_file { /* what all chunks of a file share */
  lode_str path, base;     /* base: the file's name without extension, or the name of the folder it stands for */
  unsigned flags;          /* SCAN_PATH_* */
  search_words stem;       /* of `base` */
  size_t named, named_by;  /* how many other files name it; 1 + the last of them */
  size_t next;             /* 1 + the next file in the same slot of the table of names */
  double name, central;    /* features */
  double best, sum;
  size_t chunks;
  size_t top; /* where its chunks begin in `order` */
} rank_file;

typedef struct rank_state {
  const search_question *question;
  const rank_weights *weights;
  rank_candidate *v;
  size_t n;
  rank_file *files;
  size_t n_files;
  size_t *order; /* candidates by file; once scored, then by how they are shown */
  double word_weight[SEARCH_MAX_WORDS];
  bool is_half;    /* there are only text candidates, or only vector candidates */
  bool has_native; /* some files are for this operating system: files for others rank lower */
} rank_state;

/* Computes features and scores of all chunks and files; question, weights, v and n (at least 1) must be set. */
LODE_MUST lode_status rank_apply_formula(rank_state *r, lode_error *err);
void rank_state_release(rank_state *r);

#endif
