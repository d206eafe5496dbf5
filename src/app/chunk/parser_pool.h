/* SPDX-License-Identifier: Apache-2.0 */
/* parser_pool.h - parses untrusted text in separate processes.
 *
 * Text of a language with a grammar is parsed by workers: processes of the program lode-parser, which loads grammars
 * as shared objects on first use. A worker has limits on memory and CPU time and cannot gain privileges. If it
 * crashes, hangs or uses too much memory, that file is chunked by lines here, the result says why, and the next file
 * gets a new worker. Without lode-parser, or without the grammar, text is chunked by lines.
 *
 * Threads: any number may call parser_pool_chunk() at once; each takes a worker, or waits for one. Workers are
 * started on first use, at most `workers` of them.
 */
#ifndef LODE_CHUNK_PARSER_POOL_H
#define LODE_CHUNK_PARSER_POOL_H

#include "chunk/chunk.h"
#include "chunk/symbol_table.h"

typedef struct parser_pool parser_pool;

typedef struct parser_pool_options {
  const char *parser;    /* the program; NULL: $LODE_PARSER, or the one installed with this program */
  uint32_t workers;      /* 0: one per processor, at most 16 */
  uint64_t memory_bytes; /* of one worker; 0: 512 MiB */
  uint32_t cpu_ms;       /* for one file; 0: 5,000 */
  chunk_options chunk;
} parser_pool_options;

/* X(enum, text for people) */
#define PARSER_POOL_OUTCOMES(X)                                                                                        \
  X(SYNTAX, "by syntax")                                                                                               \
  X(PLAIN, "by paragraphs and lines") /* no grammar for it, or a long list of #define */                               \
  X(NO_GRAMMAR, "the grammar is not installed")                                                                        \
  X(CRASHED, "the parser crashed")                                                                                     \
  X(HUNG, "the parser took too long")                                                                                  \
  X(MEMORY, "the parser needed too much memory")                                                                       \
  X(REFUSED, "the parser gave up") /* it said so, or its answer was invalid */

typedef enum parser_pool_outcome {
#define PARSER_POOL_ENUM(id, text) PARSER_POOL_##id,
  PARSER_POOL_OUTCOMES(PARSER_POOL_ENUM)
#undef PARSER_POOL_ENUM
      PARSER_POOL_COUNT
} parser_pool_outcome;

const char *parser_pool_outcome_text(parser_pool_outcome outcome);

typedef struct parser_pool_result {
  chunk_list chunks;           /* a partition of the text, whatever the outcome */
  strbuf symbols;              /* the table of symbols; empty unless the outcome is SYNTAX */
  parser_pool_outcome outcome; /* CRASHED and later ones should be reported to the user */
  bool broken;                 /* the text has syntax errors, according to the grammar */
  char detail[80];             /* "SIGSEGV", "5.0 s of CPU time"; empty without a problem */
} parser_pool_result;          /* zero before first use; may be reused */

/* Starts no process. A missing lode-parser is not an error: parser_pool_program() is NULL then. */
LODE_MUST lode_status parser_pool_open(const parser_pool_options *options, parser_pool **pool, lode_error *err);
void parser_pool_close(parser_pool *pool);
const char *parser_pool_program(const parser_pool *pool); /* path of lode-parser */
/* Is there a grammar for the language? True if its shared object was found when the pool was opened. */
bool parser_pool_has(const parser_pool *pool, const lang_info *language);

/* Fails only when out of memory or descriptors, or with LODE_LIMIT when the text is too long. */
LODE_MUST lode_status parser_pool_chunk(parser_pool *pool, const lang_info *language, lode_str text,
                                        parser_pool_result *result, lode_error *err);
void parser_pool_result_release(parser_pool_result *result);

#endif
