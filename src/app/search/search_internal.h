/* search_internal.h - one search while it lasts, shared by the files that make it up:
 *   code_search.c          opens what is needed, reads the question, runs the rest
 *   search_filter.c   flags of the request to a filter
 *   search_sources.c  candidates: words, vectors, names, outlines
 *   search_answer.c   ranked candidates to hits with text
 * Strings of candidates and hits live in the arena of the result.
 */
#ifndef LODE_SEARCH_SEARCH_INTERNAL_H
#define LODE_SEARCH_SEARCH_INTERNAL_H

#include "search/code_search.h"
#include "indexer/index_stamp.h"

#include <pthread.h>

/* One question to the store, and its answer. */
typedef struct search_reply {
  lode_result *rows;
  lode_status st;
  lode_error err;
} search_reply;

typedef struct search_ctx {
  const project_info *project;
  lode_store *store;
  const search_request *request;
  search_result *result;
  mem_arena *arena;         /* the result's */
  lode_collection *code, *files, *quality;
  lode_embedder *model, *second;
  bool own_model;
  indexer_display showing;      /* of snippets */
  char embedder[400], quality_embedder[400];
  float *vector, *vector2;    /* of the question */
  uint32_t dim, dim2;
  strbuf where;            /* filter as JSON; empty: none */
  lode_str text;              /* what is looked for by words */
  rank_candidate *v;
  size_t n, cap;
  size_t table_size;
  uint32_t *table;            /* of candidates by id */
  json_doc json;
  search_reply words;                /* asked on `thread`, which reads code, text, where and request */
  pthread_t thread;
  bool asking;                /* the thread was started and not joined yet */
  bool names_backlog;          /* so many chunks wait for the metadata index that asking for names would take long */
  bool cut;                   /* a source gave as many as it was asked for: more may match */
  uint64_t moment;            /* of the answers of the store so far; 0: none */
  bool mixed;                 /* they are of several */
  size_t want_factor;           /* factor on what is asked for, when the glob leaves too few */
} search_ctx;

/* Something could not be used, and why: for the user to read. */
void search_note(search_ctx *s, const char *what, const lode_error *why);
/* Notes the moment of an answer of the store. */
void search_note_snapshot(search_ctx *s, const lode_result *rows);
/* A copy in the arena; false: no memory. */
bool search_copy(search_ctx *s, lode_str *text);
LODE_MUST lode_status search_make_filter(search_ctx *s, lode_error *err);
lode_selection search_selection(const search_ctx *s);
/* Words take about as long as vectors and the model do, so they are asked for beside them: begin early. Without a thread they are asked for
 * later. end: for the way out. */
void search_text_start(search_ctx *s);
void search_text_join(search_ctx *s);
/* *used when any source could be used; else *err says why not. */
LODE_MUST lode_status search_gather(search_ctx *s, bool *used, lode_error *err);
/* Cosines of candidates that did not come by vectors. */
LODE_MUST lode_status search_add_cosines(search_ctx *s, lode_error *err);
LODE_MUST lode_status search_make_hits(search_ctx *s, lode_error *err);

#endif
