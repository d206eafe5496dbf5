/* SPDX-License-Identifier: Apache-2.0 */
/* code_search.h - searches an indexed project.
 *
 * Candidates come from four sources: text (BM25 over chunks), vectors, the outlines of files, and definitions of
 * names in the query. rank.h orders them. A text as it stands (exact, regex, or "quoted" in the query) is looked for in
 * the texts alone. A part of the index that cannot be used (no model, another model, damage)
 * is left out, and the answer says so: a search fails only when nothing can be searched. Nothing is written.
 */
#ifndef LODE_SEARCH_CODE_SEARCH_H
#define LODE_SEARCH_CODE_SEARCH_H

#include "search/source_place.h"
#include "project/project.h"
#include "search/rank.h"

typedef struct search_request {
  lode_str query; /* or `similar` */
  lode_mode mode; /* LODE_BY_VECTOR, LODE_BY_TEXT, LODE_HYBRID */
  size_t limit;
  lode_str language;           /* as in the table of languages; absent: any */
  lode_str path;               /* globs, as in lines of .gitignore, separated by commas */
  lode_str kind;               /* "function" includes methods and constructors, "class" all types */
  lode_str name;               /* exactly this name */
  bool exact, regex;           /* chunks that hold the query as it stands; that a pattern of PCRE2 matches */
  lode_str similar;            /* find chunks like this one: an escaped path from the root, or PATH:NAME */
  uint32_t similar_line;       /* 0: the whole file */
  uint32_t context;            /* lines of the file before and after each chunk */
  bool files_only;             /* one hit per file, without text */
  lode_embedder *embedder;     /* instead of the model that the index names; owned by the caller */
  const rank_weights *weights; /* NULL: rank_default_weights */
  lode_progress progress;      /* called now and then; false: LODE_CANCELLED */
} search_request;

typedef struct search_hit {
  lode_str path, language, kind, name, parents, snippet;
  uint32_t first, last, line; /* of the chunk; `snippet` begins at snippet_line */
  uint32_t snippet_line;
  double score, bm25, cosine, cosine2; /* cosines: NaN when unknown */
  double features[RANK_FEATURE_COUNT];
  size_t more, copies;
  search_freshness freshness; /* of its file */
} search_hit;

typedef struct search_result {
  search_hit *hits;
  size_t n;
  uint64_t stale;   /* hits whose files changed since they were indexed, or are gone */
  bool weak;        /* the question is hardly answered: the hits are only the nearest there is */
  bool doubted;     /* the index was made with another mask policy or version: see indexer_stamp_display() */
  uint64_t outside; /* records left out because their paths lead out of the project */
  uint64_t pending; /* chunks without a vector */
  char note[400];   /* what could not be used; empty: no problem */
  search_question question;
  mem_arena arena;
} search_result;

LODE_MUST lode_status search_run(const project_info *project, lode_store *store, const search_request *request,
                                 search_result *result, lode_error *err);
/* Only the candidates, as rank_run() takes them: to try other weights. Free them with mem_free(); the result owns their
 * strings. */
LODE_MUST lode_status search_candidates(const project_info *project, lode_store *store, const search_request *request,
                                        search_result *result, rank_candidate **candidates, size_t *n, lode_error *err);
void search_result_release(search_result *result);

#endif
