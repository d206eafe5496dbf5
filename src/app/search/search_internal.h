/* SPDX-License-Identifier: Apache-2.0 */
/* search_internal.h - the state of one search, shared by the files that implement it:
 *   code_search.c     opens what is needed, parses the question, runs the rest
 *   search_filter.c   options of the request to a filter
 *   search_sources.c  candidates: text, vectors, names, outlines
 *   search_language.c, search_glossary.c  questions in other languages than English
 *   search_verbatim.c text as it stands
 *   search_define.c   definitions that the parser did not see
 *   search_confidence.c  whether there is an answer
 *   search_window.c   the lines of a long chunk that are shown
 *   search_answer.c   ranked candidates to hits with text
 * Strings of candidates and hits are in the arena of the result.
 */
#ifndef LODE_SEARCH_SEARCH_INTERNAL_H
#define LODE_SEARCH_SEARCH_INTERNAL_H

#include "search/code_search.h"
#include "indexer/index_stamp.h"
#include "search/search_versions.h"

#include <pthread.h>

/* The outcome of one query to the store. */
typedef struct search_reply {
  lode_result *rows;
  lode_status st;
  lode_error err;
} search_reply;

typedef struct search_ctx {
  const project_info *project;
  lode_store *store;
  const search_request *request;
  search_request own; /* what it points to: the caller's, with the mode that is used */
  lode_mode asked_mode;
  lode_str asked; /* the query, if it was in another language: own.query has English words for it */
  search_result *result;
  mem_arena *arena; /* the result's */
  lode_collection *code, *files, *quality;
  lode_embedder *model, *second;
  bool own_model;
  indexer_display showing; /* how snippets are displayed */
  char embedder[400], quality_embedder[400];
  float *vector, *vector2; /* of the question */
  uint32_t dim, dim2;
  strbuf where; /* filter as JSON; empty: none */
  strbuf where_document;
  bool verbatim; /* only chunks that hold a text as it stands: `text` has words of it, or is empty */
  bool partial;  /* not every match has them as words */
  lode_str text; /* the text query */
  rank_candidate *v;
  size_t n, cap;
  rank_candidate *batches[SEARCH_BATCHES]; /* earlier v, which hits point into */
  size_t batch_n[SEARCH_BATCHES], n_batches;
  size_t table_size;
  uint32_t *table; /* 1 + candidate, by hash of its id; 0: free */
  json_doc json;
  search_reply words; /* of the text query, run on `thread`, which reads code, text, where and request */
  pthread_t thread;
  bool asking;        /* the thread was started and not joined yet */
  bool unmarked;      /* an index of revision 1 does not say where a long definition begins */
  bool names_backlog; /* too many chunks wait for the metadata index: a query for names would take long */
  bool cut;           /* a source returned as many as it was asked for: more may match */
  uint64_t moment;    /* snapshot of the store's answers so far; 0: none */
  bool mixed;         /* they are of different snapshots */
  bool versioned;     /* files have versions: see search_versions.h */
  bool last;          /* of the attempts */
  search_versions seen;
  const search_versions *before; /* what the attempt before saw; NULL: this is the first */
  size_t want_factor;            /* multiplies the number of candidates asked for, when the glob leaves too few */
} search_ctx;

/* Adds to the notes for the user: what could not be used, and why. */
void search_note(search_ctx *s, const char *what, const lode_error *why);
/* Notes the snapshot that an answer of the store is of. */
void search_note_snapshot(search_ctx *s, const lode_result *rows);
/* Copies text into the arena; false: out of memory. */
LODE_MUST bool search_copy(search_ctx *s, lode_str *text);
LODE_MUST lode_status search_make_filter(search_ctx *s, lode_error *err);
/* Does one of several globs, separated by commas, match? */
bool search_path_matches(lode_str globs, lode_str path);
bool search_is_verbatim(const search_request *request);
/* Sets where_document and text. */
LODE_MUST lode_status search_make_verbatim(search_ctx *s, lode_error *err);
/* Does the text of the candidate define the name, although the index does not say so? */
bool search_find_definition(const rank_candidate *candidate, lode_str name, indexer_def *def);
/* Which rows hold the text as it stands in their chunk's own text: holds[i] is about row i. */
LODE_MUST lode_status search_verify(search_ctx *s, const lode_result *rows, bool *holds, lode_error *err);
/* Makes an error about a pattern one about the pattern that the user wrote. */
void search_explain_regex(lode_error *err);
/* Is a kind what a request for `asked` means? "function" includes methods, "class" all types. */
bool search_kind_fits(lode_str asked, lode_str kind);
/* A filter for chunks that define a name, or are a part of its definition. */
void search_put_name_clause(strbuf *out, lode_str name);
lode_selection search_selection(const search_ctx *s);
/* The text query takes about as long as the vectors and the model, so it runs on a thread beside them: start it
 * early. If no thread can be started it runs later. join also serves for cleanup. */
void search_text_start(search_ctx *s);
void search_text_join(search_ctx *s);
/* *used when any source could be used; else *err says why none could. */
LODE_MUST lode_status search_gather(search_ctx *s, bool *used, lode_error *err);
/* Computes the cosines of candidates that were not found by vector. */
LODE_MUST lode_status search_add_cosines(search_ctx *s, lode_error *err);
/* Do the ranked candidates hardly match? */
bool search_is_weak(const search_ctx *s);
/* Whole lines of at most `most` bytes, as many as there is room for, where the question's words are; of equal ones the
 * first. *skipped gets how many lines stand before them. */
lode_str search_window(const search_question *q, lode_str text, size_t most, uint32_t *skipped);
/* Keeps the candidates as a batch, and asks for further ones: v has those that no batch has. */
LODE_MUST lode_status search_find_more(search_ctx *s, lode_error *err);
LODE_MUST lode_status search_make_hits(search_ctx *s, lode_error *err);

#endif
