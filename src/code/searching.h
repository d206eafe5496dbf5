/* searching.h - one search while it lasts, shared by the files that make it up:
 *   search.c          opens what is needed, reads the question, runs the rest
 *   search_filter.c   flags of the request to a filter
 *   search_sources.c  candidates: words, vectors, names, outlines
 *   search_answer.c   ranked candidates to hits with text
 * Strings of candidates and hits live in the arena of the result.
 */
#ifndef LODE_CODE_SEARCHING_H
#define LODE_CODE_SEARCHING_H

#include "code/search.h"
#include "code/stamp.h"

#include <pthread.h>

/* One question to the store, and its answer. */
typedef struct asked {
  lode_result *rows;
  lode_status st;
  lode_error err;
} asked;

typedef struct searching {
  const lode__project *project;
  lode_store *store;
  const lode__search_request *request;
  lode__search_result *result;
  mem_arena *arena;         /* the result's */
  lode_collection *code, *files, *quality;
  lode_embedder *model, *second;
  bool own_model;
  lode__showing showing;      /* of snippets */
  char embedder[400], quality_embedder[400];
  float *vector, *vector2;    /* of the question */
  uint32_t dim, dim2;
  strbuf where;            /* filter as JSON; empty: none */
  lode_str text;              /* what is looked for by words */
  lode__candidate *v;
  size_t n, cap;
  size_t table_size;
  uint32_t *table;            /* of candidates by id */
  json_doc json;
  asked words;                /* asked on `thread`, which reads code, text, where and request */
  pthread_t thread;
  bool asking;                /* the thread was started and not joined yet */
  bool names_behind;          /* so many chunks wait for the metadata index that asking for names would take long */
  bool cut;                   /* a source gave as many as it was asked for: more may match */
  uint64_t moment;            /* of the answers of the store so far; 0: none */
  bool mixed;                 /* they are of several */
  size_t want_more;           /* factor on what is asked for, when the glob leaves too few */
} searching;

/* Something could not be used, and why: for the user to read. */
void lode__searching_note(searching *s, const char *what, const lode_error *why);
/* Notes the moment of an answer of the store. */
void lode__searching_saw(searching *s, const lode_result *rows);
/* A copy in the arena; false: no memory. */
bool lode__searching_copy(searching *s, lode_str *text);
LODE_MUST lode_status lode__searching_filter(searching *s, lode_error *err);
lode_selection lode__searching_selection(const searching *s);
/* Words take about as long as vectors and the model do, so they are asked for beside them: begin early. Without a thread they are asked for
 * later. end: for the way out. */
void lode__searching_begin_words(searching *s);
void lode__searching_end_words(searching *s);
/* *used when any source could be used; else *err says why not. */
LODE_MUST lode_status lode__searching_gather(searching *s, bool *used, lode_error *err);
/* Cosines of candidates that did not come by vectors. */
LODE_MUST lode_status lode__searching_measure(searching *s, lode_error *err);
LODE_MUST lode_status lode__searching_answer(searching *s, lode_error *err);

#endif
