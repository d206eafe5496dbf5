/* SPDX-License-Identifier: Apache-2.0 */
/* rank_facts.h - what search knows of each candidate file: numbers that an order of files can be learnt from
 * (tools/train/rank.py). */
#ifndef QUALITY_RANK_FACTS_H
#define QUALITY_RANK_FACTS_H

#include "search/rank_internal.h"

/* X(id, name, description). "Best" is over the file's candidates; "share" is relative to the best of all files. */
#define RANK_FACTS(X)                                                                                                  \
  X(ASKED, "asked", "words of the question")                                                                           \
  X(FILES, "files", "candidate files, by logarithm")                                                                   \
  X(HAND, "hand", "the score of the formula in rank.h, as a share")                                                    \
  X(PLACE, "place", "1 / (1 + files with a higher one)")                                                               \
  X(BEST, "best", "the highest score of a chunk, as a share")                                                          \
  X(TEXT, "text", "best and second best BM25, and all of them, each counting half of the one before")                  \
  X(TEXT2, "text2", "")                                                                                                \
  X(TEXTS, "texts", "")                                                                                                \
  X(TEXT_PLACE, "text_place", "1 / (1 + files with a higher BM25)")                                                    \
  X(VECTOR, "vector", "the same of cosines")                                                                           \
  X(VECTOR2, "vector2", "")                                                                                            \
  X(VECTORS, "vectors", "")                                                                                            \
  X(VECTOR_PLACE, "vector_place", "")                                                                                  \
  X(COSINE, "cosine", "best cosine, as it is")                                                                         \
  X(OUTLINE, "outline", "features of rank.h")                                                                          \
  X(DEFINES, "defines", "")                                                                                            \
  X(NAME, "name", "")                                                                                                  \
  X(FILE, "file", "")                                                                                                  \
  X(CENTRAL, "central", "")                                                                                            \
  X(KIND, "kind", "")                                                                                                  \
  X(PHRASE, "phrase", "")                                                                                              \
  X(FILE_RECALL, "file_recall", "how much of the question the file's name has, and of the name the question")          \
  X(FILE_PRECISION, "file_precision", "")                                                                              \
  X(FOLDER_RECALL, "folder_recall", "how much of the question the names of its folders have")                          \
  X(NAMES_RECALL, "names_recall", "the same of the names of its chunks")                                               \
  X(COVER, "cover", "how much of the question its candidates have, by weight; the best of them; the number of words")  \
  X(COVER_ONE, "cover_one", "")                                                                                        \
  X(COVER_COUNT, "cover_count", "")                                                                                    \
  X(CHUNKS, "chunks", "candidates of the file, by logarithm")                                                          \
  X(DEPTH, "depth", "folders above it")                                                                                \
  X(SIBLINGS, "siblings", "share of its folder in all scores, without its own")                                        \
  X(LANGUAGE, "language", "share of its language in the candidates")                                                   \
  X(LINES, "lines", "of its best chunk, by logarithm")                                                                 \
  X(NAMED, "named", "files that name it, by logarithm")                                                                \
  X(TEST, "test", "factors of rank.h that apply")                                                                      \
  X(VENDORED, "vendored", "")                                                                                          \
  X(EXAMPLE, "example", "")                                                                                            \
  X(DOC, "doc", "")                                                                                                    \
  X(DATA, "data", "")                                                                                                  \
  X(OLD, "old", "")                                                                                                    \
  X(FOREIGN, "foreign", "")                                                                                            \
  X(STUB, "stub", "")

typedef enum rank_fact {
#define RANK_FACT_ENUM(id, name, about) RANK_FACT_##id,
  RANK_FACTS(RANK_FACT_ENUM)
#undef RANK_FACT_ENUM
      RANK_FACT_COUNT
} rank_fact;

/* The facts of each file of a state that rank_apply_formula() filled; x has a zeroed row for each. */
LODE_MUST lode_status rank_find_facts(rank_state *r, double (*x)[RANK_FACT_COUNT], lode_error *err);

#endif
