/* SPDX-License-Identifier: Apache-2.0 */
/* engine_text.h - the best documents for some words (engine_text.c), and hits of queries (engine_query.c). */
#ifndef LODE_ENGINE_ENGINE_TEXT_H
#define LODE_ENGINE_ENGINE_TEXT_H

#include "engine/query_explain.h"

typedef struct engine_hit {
  int64_t rid, vid;
  lode_str id;
  double distance, score;
  store_rec rec; /* as read in the reader's transaction `seen`, with what the request includes */
  uint64_t seen; /* 0: rec is not set */
} engine_hit;
typedef struct engine_hits {
  engine_hit *v;
  size_t n, cap;
} engine_hits;
/* By score, largest first, or by distance, smallest first; ties by id. */
void engine_hits_sort(engine_hits *hits, bool larger_first);

typedef struct engine_text_query {
  lode_str text;
  size_t want;
  engine_select *select;   /* the filter; NULL: everything matches */
  const engine_rids *only; /* NULL: all records */
  uint64_t max_tail;       /* records after the index's cursor to scan; 0: all */
  mem_arena *arena;        /* for ids */
  bool skip_common;        /* words in most documents weigh 0; records with no others score 0 */
  engine_trace *trace;
} engine_text_query;
/* The best `want` by BM25, best first. */
LODE_MUST lode_status engine_text_search(engine_reader *reader, const engine_text_query *query, engine_hits *hits,
                                         lode_error *err);

#endif
