/* code_search.h - a question to an indexed project, and its answer.
 *
 * Candidates come from four places: words (BM25 over chunks), vectors, the outlines of files, and definitions of names that the query
 * holds. rank.h orders them. Whatever part of the index cannot be used (no model, another model, damage) is left out, and the answer says
 * so: a search fails only when nothing can be searched. Nothing is written.
 */
#ifndef LODE_SEARCH_CODE_SEARCH_H
#define LODE_SEARCH_CODE_SEARCH_H

#include "search/source_place.h"
#include "project/project.h"
#include "search/rank.h"

typedef struct search_request {
  lode_str query;           /* or `similar` */
  lode_mode mode;           /* LODE_BY_VECTOR, LODE_BY_TEXT, LODE_HYBRID */
  size_t limit;
  lode_str language;        /* as in the table of languages; absent: any */
  lode_str path;            /* a glob, as a line of .gitignore */
  lode_str kind;            /* "function" also means methods and constructors, "class" all types */
  lode_str name;            /* exactly this name */
  lode_str similar;         /* chunks like this one: a path from the root, as shown */
  uint32_t similar_line;    /* 0: the whole file */
  uint32_t context;         /* lines of the file before and behind each chunk */
  bool files_only;          /* one hit for a file, without text */
  lode_embedder *embedder;  /* instead of the model that the index names; the caller's */
  const rank_weights *weights; /* NULL: the table */
  lode_progress progress;   /* asked now and then; false: LODE_CANCELLED */
} search_request;

typedef struct search_hit {
  lode_str path, language, kind, name, parents, snippet;
  uint32_t first, last, line;    /* of the chunk; `snippet` begins at snippet_line */
  uint32_t snippet_line;
  double score, bm25, cosine, cosine2; /* cosines: NaN where there is none */
  double features[RANK_FEATURE_COUNT];
  size_t more, copies;
  search_freshness freshness;     /* of its file */
} search_hit;

typedef struct search_result {
  search_hit *hits;
  size_t n;
  uint64_t stale;      /* hits whose files changed since they were indexed, or are gone */
  bool doubted;        /* the index was made under other rules for secrets: indexer_stamp_display */
  uint64_t outside;    /* records that were left out because their paths lead out of the project */
  uint64_t pending;    /* chunks without a vector */
  char note[400];      /* what could not be used; empty when all is well */
  search_question question;
  mem_arena arena;
} search_result;

LODE_MUST lode_status search_run(const project_info *project, lode_store *store, const search_request *request,
                                       search_result *result, lode_error *err);
/* The candidates alone, as rank_run takes them: to try other weights. Free them with mem_free; their strings live in the result. */
LODE_MUST lode_status search_candidates(const project_info *project, lode_store *store, const search_request *request,
                                              search_result *result, rank_candidate **candidates, size_t *n, lode_error *err);
void search_result_release(search_result *result);

#endif
