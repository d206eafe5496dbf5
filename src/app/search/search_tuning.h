/* SPDX-License-Identifier: Apache-2.0 */
/* search_tuning.h - every number of code search that was chosen rather than derived.
 *
 * "Tuned" values were chosen for NDCG@10 on twelve repositories with 220 labelled queries, by coordinate ascent
 * (bench/code/tune.c), and checked on four programs that no weight was chosen on (docs/SEARCH.md, "How good it is").
 * Weights tuned on eleven repositories have 0.859 on the twelfth, these 0.871 on all (0.867 with RANK_AGAIN_WORDS),
 * the best that was found 0.877: small changes hardly matter. What is "not measured" is an estimate: nothing is known
 * to be better or worse.
 */
#ifndef LODE_SEARCH_SEARCH_TUNING_H
#define LODE_SEARCH_SEARCH_TUNING_H

/* ---- Ranking: weights of the formula in rank.h ---- */

/* Tuned. CENTRAL brought +0.012 on the twelve and +0.004 on the four. QUALITY is small because a weight of 1.0 had
 * 0.849 instead of 0.860 (seven repositories): files are found without the second model.
 *
 * Which chunk of a file is shown is weighed apart ("shown"): what makes a file the right one is not what makes lines
 * the right ones; a definition whose name the question holds is. These weights were fitted to the lines that answer
 * 1,400 mined questions about 48 repositories (tools/train/lines.py), and judged by those of others: bench/QUALITY.md.
 *
 * X(id, level: CHUNK or FILE, name, weight for words, weight for names, weight for what is shown, description) */
#define RANK_FEATURES(X)                                                                                               \
  X(TEXT, CHUNK, "text", 0.70, 2.40, 1.00, "BM25 of the chunk, against the best candidate's")                          \
  X(VECTOR, CHUNK, "vector", 1.00, 0.10, 1.00, "cosine of question and chunk, against the candidates'")                \
  X(QUALITY, CHUNK, "quality", 0.20, 0.10, 0.20, "the same with the second vector")                                    \
  X(OUTLINE, FILE, "outline", 0.20, 0.50, 0, "BM25 of the file's outline, against the best file's")                    \
  X(DEFINES, CHUNK, "defines", 0.40, 64.0, 0.12, "how exactly the chunk defines a name that the query holds")          \
  X(PHRASE, CHUNK, "phrase", 10.0, 6.00, 20.0,                                                                         \
    "the chunk holds the text of the query as it stands, or a long run of it")                                         \
  X(NAME, CHUNK, "name", 0.30, 0.60, 0.75,                                                                             \
    "how much of the chunk's name the query's words cover, and how much of them it covers")                            \
  X(FILE, FILE, "file", 2.20, 1.60, 0, "the same for the name of the file")                                            \
  X(CENTRAL, FILE, "central", 0.50, 0.10, 0,                                                                           \
    "how many of the candidates' other files name this one, against the most named: by logarithm")                     \
  X(KIND, CHUNK, "kind", 0.10, 0.10, 0, "the chunk is a definition: a type counts fully, a function a little less")

/* Tuned.
 *
 * X(id, name, factor, what it applies to unless the question asks for it) */
#define RANK_FACTORS(X)                                                                                                \
  X(TEST, "test", 0.40, "tests")                                                                                       \
  X(VENDORED, "vendored", 0.60, "copies of other projects")                                                            \
  X(EXAMPLE, "example", 0.70, "examples and demonstrations")                                                           \
  X(DOC, "doc", 0.45, "documents")                                                                                     \
  X(DATA, "data", 0.60, "data and configuration")                                                                      \
  X(OLD, "old", 0.40, "legacy code, and v1/ where there is a v2/")                                                     \
  X(FOREIGN, "foreign", 0.70, "files for another system, where some are for this one")                                 \
  X(STUB, "stub", 0.70, "declarations of what is written elsewhere")

/* Share of a file's further chunks in its score. Tuned: a question in words is often answered by several chunks of a
 * file, a name by one. */
#define RANK_MORE_WORDS 0.30
#define RANK_MORE_NAMES 0.08
/* Weight of each further chunk, relative to the one before. Tuned. */
#define RANK_DECAY 0.7
/* The k-th further chunk of a file ranks among the files with this share of its own score, and this share of its
 * file's, over the square root of k: for a question in words, and for a name. With 0.30 of its own score over k, as for
 * names, the lines that answer mined questions had NDCG@10 0.323, now 0.407 (the weights of what is shown brought 0.008
 * of it); the twelve, which mostly ask for files, 0.869 and 0.867. */
#define RANK_AGAIN_WORDS 1.0
#define RANK_AGAIN_NAMES 0.30
#define RANK_AGAIN_FILE_WORDS 0.20
#define RANK_AGAIN_FILE_NAMES 0
/* Text and vector features of a question in words count this much when the other kind is missing; otherwise the name of
 * the file and who names it would weigh too much. With it, words alone have 0.844, and so have vectors alone; no other
 * value was measured. */
#define RANK_ALONE 2
/* The cosine of the candidate at this rank becomes 0 (rank_scale_cosines()): that of texts which are hardly related,
 * as SEARCH_WANT_VECTOR brings in this many. Not measured. */
#define RANK_VECTOR_FLOOR 200
/* Cosines closer together than this are equal: rounding, not a difference. Not measured. */
#define RANK_COSINE_RANGE 1e-6
/* Square of beta in the F-measure of names (rank_overlap()): at beta = 1/2 precision counts more than recall, so that a
 * short name that the query contains whole beats a long one with as many matching words. Not measured. */
#define RANK_NAME_BETA2 0.25
/* What a definition counts for a question if its name differs from the question's by case only. Not measured. */
#define RANK_OTHER_CASE 0.8
/* What it counts that a chunk holds the query as it stands, if that is only so many plain words: a question may be. If
 * only its words are there, or a run of at least this share of its bytes, it counts that share of RANK_PHRASE_RUN.
 * Estimates, seen to be enough on the open half of bench/quality/sets. */
#define RANK_PHRASE_PLAIN                                                                                              \
  { 0, 0, 0.02, 0.1, 0.3 }
#define RANK_PHRASE_SHARE 0.5
#define RANK_PHRASE_RUN 0.9
/* Levels of DEFINES for a name (rank_level()). One level is 1/8 of its weight: for a name 8, more than all other
 * features of a file together. */
#define RANK_LEVELS 8
/* What a chunk counts as a definition: 1 for types, this for functions and macros, and this for constants, tables,
 * namespaces and implementations. Not measured; the weight of the feature is 0.1. */
#define RANK_KIND_FUNCTION 0.8
#define RANK_KIND_OTHER 0.5

/* ---- Words ---- */

/* Similarity of two words of which one begins with the other: this at equal length, half of it if the other is much
 * longer. Not measured. */
#define SEARCH_PREFIX_SIMILARITY 0.7
enum {
  /* Shortest word that is compared as a prefix: two letters begin too many words. Not measured. */
  SEARCH_MIN_PREFIX = 3,
  /* Shortest stem that is left when an ending is removed: "ring" does not become "r". Not measured. */
  SEARCH_MIN_STEM = 3,
  /* Words kept of a question or a name, and bytes kept of a word: more are ignored. Limits of memory, beyond questions
   * and names that people write. */
  SEARCH_MAX_WORDS = 48,
  SEARCH_WORD_BYTES = 32,
  /* Words of a query that are compared in their order. A limit. */
  SEARCH_PHRASE_WORDS = 64,
  /* Longest identifier that is looked up as a name, in bytes. A limit. */
  SEARCH_MAX_NAME = 128,
};

/* ---- Candidates ---- */

enum {
  /* Chunks asked for by words, and by vectors; more when a glob leaves too few. With these, 95 % of the labelled files
   * are candidates: what is lost is lost in their order. */
  SEARCH_WANT_TEXT = 200,
  SEARCH_WANT_VECTOR = 200,
  /* Files asked for by their outlines. Not measured. */
  SEARCH_WANT_OUTLINES = 40,
  /* Chunks asked for by the names they define; a name with more definitions says little. Not measured. */
  SEARCH_WANT_NAMES = 64,
  /* Best files by outline of which chunks are added, and how many of each: the outline may match where no chunk does.
   * Not measured. */
  SEARCH_OUTLINE_FILES = 12,
  SEARCH_OUTLINE_CHUNKS = 3,
  /* When the candidates give fewer results than are asked for: how often more are taken, and how many times as many:
   * about 17,000 in all. */
  SEARCH_BATCHES = 3,
  SEARCH_BATCH_FACTOR = 4,
  /* With a glob, candidates that are enough: more are asked for until there are so many. Not measured. */
  SEARCH_ENOUGH = 50,
  /* Most candidates ever asked for, with a glob that matches little. A limit of memory. */
  SEARCH_MAX_WANT = 1 << 20,
  /* Most chunks read one by one because the text index does not hold them yet. Bounds how long a search takes while
   * a large tree is indexed; the answer says how many were not read. */
  SEARCH_MAX_UNINDEXED = 10000,
  /* With more candidates than this, their texts are not read, and CENTRAL is 0: bounds the memory of a search. */
  SEARCH_MAX_TEXTS = 1000,
  /* For a question, a chunk of fewer lines than the first of these is shown with what follows at most so many lines
   * after it, up to so many lines in all. A fifth of the first results had at most five lines. */
  SEARCH_BRIEF_LINES = 5,
  SEARCH_BRIEF_GAP = 3,
  SEARCH_SHOWN_LINES = 9,
  /* For a question, results after so many first ones show at most so many bytes of a chunk. Of the places that answer
   * mined questions (tools/train/lines.py, train), 0.368, 0.488 and 0.578 are within 500, 1,000 and 2,000 tokens, and
   * 0.347, 0.473 and 0.570 with whole chunks; NDCG@10 0.405 and 0.411. With 700 bytes: 0.379, 0.502, 0.578; 0.398. */
  SEARCH_WHOLE_HITS = 1,
  SEARCH_WINDOW_BYTES = 1000,
  /* Bytes of the head of a definition, up to its body, when it is looked for in the text. A limit. */
  SEARCH_DEFINE_HEAD = 1000,
  /* A text as it stands that no index knows: chunks read at once, and matches that are enough. Bounds the memory of a
   * search, and how long matches are ranked; the answer says when there may be more. */
  SEARCH_SCAN_PAGE = 256,
  SEARCH_SCAN_MATCHES = 10000,
  /* How often a search is made again when the store changes in between; the last answer may be of several moments. */
  SEARCH_ATTEMPTS = 4,
};

/* How much more the words of later lines must be worth (1: a word that no other line has) for them to be shown instead
 * of earlier ones, which have the head of the definition. Not measured. */
#define SEARCH_WINDOW_MARGIN 0.5

/* ---- Confidence ---- */

/* Cosines of the model for code: of a chunk that surely has to do with the question, and of one that has nothing to do
 * with it. Chosen on the open half of bench/quality/sets: 90 % of its absent topics are weak, and of 270 subjects of
 * commits of the same programs, which are no questions, 5.6 %. */
#define SEARCH_COSINE_NEAR 0.45
#define SEARCH_COSINE_FAR 0.30
enum {
  /* Bytes of a text that are split at once: at most SEARCH_MAX_WORDS words are kept of it. */
  SEARCH_CONFIDENCE_PIECE = 200,
};

/* ---- Context ---- */

enum {
  /* Definitions shown of a name. Keeps the answer within what an agent reads; not measured. */
  SEARCH_CONTEXT_DEFINITIONS = 4,
  /* Chunks looked at for definitions, and for uses. Not measured. */
  SEARCH_CONTEXT_CANDIDATES = 200,
  /* Lines shown of each use. Not measured. */
  SEARCH_CONTEXT_USE_LINES = 3,
  /* Bytes shown of a neighbouring chunk. Not measured. */
  SEARCH_CONTEXT_SHORT_BYTES = 600,
};

#endif
