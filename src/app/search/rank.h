/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - the order of search results: one formula over features of a chunk. Its weights are in search_tuning.h.
 *
 * Candidates come from the text index and from the vectors. Features are numbers between 0 and 1, of each chunk and
 * of each file (shared by all its chunks):
 *
 *   chunk score = (sum of weight * feature of the chunk) * (product of the factors that apply)
 *   file score  = its best chunk's score
 *                 + `more` * (sum of its other chunks' scores, each weighted by `decay` times the weight before)
 *                 + (sum of weight * feature of the file) * (product of the factors that apply)
 *
 * Two exceptions: for a question in words, text and vector features count double when the other kind is missing; and
 * no factor reduces the definition of a name or a text as it stands, and those of a file are not added up. DEFINES has
 * levels (rank_level()); for a name its weight is such that no other feature makes up for one level.
 *
 * Files are ordered by score; chunks with the same text as a better one are folded into it. For a question in words,
 * weights of their own decide which chunks of a file are shown first (`fit`); for a name it is the score. The k-th
 * further chunk of a file is ranked among the files with (`again` * its own score + `again_file` * the file's) /
 * sqrt(k): one file does not fill the page, and its second chunk still comes before files that are hardly relevant.
 * There are two columns of weights for the score: for a question in words, and for a query that is a name. Nothing here
 * reads a store or a file: the same candidates give the same order. `lode search --explain` shows the features.
 */
#ifndef LODE_SEARCH_RANK_H
#define LODE_SEARCH_RANK_H

#include "indexer/code_record.h"
#include "search/search_tuning.h"
#include "search/search_phrase.h"
#include "search/search_words.h"

typedef enum rank_feature {
#define RANK_FEATURE_ENUM(id, of, name, words, names, shown, about) RANK_FEATURE_##id,
  RANK_FEATURES(RANK_FEATURE_ENUM)
#undef RANK_FEATURE_ENUM
      RANK_FEATURE_COUNT
} rank_feature;

typedef enum rank_factor {
#define RANK_FACTOR_ENUM(id, name, factor, about) RANK_FACTOR_##id,
  RANK_FACTORS(RANK_FACTOR_ENUM)
#undef RANK_FACTOR_ENUM
      RANK_FACTOR_COUNT
} rank_factor;

/* Rows of weights: score for a question in words, score for a name, what is shown for a question in words. */
enum { RANK_WORDS, RANK_NAMES, RANK_SHOWN, RANK_ROWS };

typedef struct rank_weights {
  double feature[RANK_ROWS][RANK_FEATURE_COUNT];
  double factor[RANK_FACTOR_COUNT];
  double more[2], decay, again[2], again_file[2]; /* see above; [RANK_WORDS], [RANK_NAMES] */
} rank_weights;
extern const rank_weights rank_default_weights;
const char *rank_feature_name(rank_feature feature);

/* ---- The question ---- */

typedef struct search_question {
  lode_str text;
  search_phrase phrase;
  bool is_name;       /* one identifier: "Mux", "parseHeader", "std::vector", "foo_bar()" */
  bool is_coded;      /* its last name looks like code: snake_case, camelCase */
  bool is_joined;     /* the name has a hyphen or a slash, as "content-type": perhaps not one in code */
  search_words words; /* without stop words, unless there are no others */
  lode_str names[8];  /* identifiers in the text, as written */
  size_t n_names;
  bool wants_tests, wants_docs, wants_examples, wants_legacy, wants_other_os; /* asked for: the factor does not apply */
} search_question;

void search_question_parse(lode_str text, search_question *question);

/* ---- Candidates ---- */

typedef struct rank_candidate {
  lode_str id, path, language, kind, name, parents; /* owned by the caller */
  const char *hash;                                 /* of its text; equal ones are folded */
  uint32_t first, last, line;                       /* line: of its own definition */
  bool head, declared;     /* the definition of its name begins here; it is only declared here */
  const indexer_def *defs; /* other definitions in the chunk */
  size_t n_defs;
  double bm25;            /* 0: not found by text */
  double cosine, cosine2; /* NaN: unknown */
  double outline;         /* BM25 of the file's outline */
  lode_str text;          /* of the chunk; empty: unknown */
  /* set by rank_run(); features are computed once, and kept when other weights are tried */
  bool measured;
  double features[RANK_FEATURE_COUNT];
  unsigned factors;     /* bit i: factor i applies */
  size_t shown;         /* 1 + which of `defs` is what was asked for; 0: its own */
  double score, shared; /* from features of the chunk, and from those of its file */
  double single;        /* the part of `score` that is not added up for its file */
  double fit;           /* orders the chunks of a file */
  size_t file;          /* which file, in the order of paths */
} rank_candidate;

typedef struct rank_hit {
  const rank_candidate *chunk;
  double score;  /* of the file; for a further chunk, its own */
  size_t more;   /* other candidates of the file */
  size_t copies; /* other chunks with the same text */
} rank_hit;

/* Orders the candidates and writes at most `limit` hits; *n gets their number. Changes candidates in place. weights
 * NULL: rank_default_weights. */
LODE_MUST lode_status rank_run(const search_question *question, rank_candidate *candidates, size_t count,
                               const rank_weights *weights, size_t limit, rank_hit *hits, size_t *n, lode_error *err);

#endif
