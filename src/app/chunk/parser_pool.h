/* parser_pool.h - chunks of foreign text, made where they can do no harm.
 *
 * Text of a language with a grammar is parsed by workers: processes of the program lode-parser, which loads grammars as
 * shared objects when they are first needed. A worker has limits of memory and CPU time and no privileges to gain. If
 * it crashes, hangs or takes too much memory, that one file is chunked by lines here, the result says why, and the next
 * file gets a new worker. Where there is no lode-parser or no such grammar everything is chunked by lines.
 *
 * Threads: any number may call parser_pool_chunk at once; each borrows a worker, or waits for one. Workers are started
 * when first needed, at most `workers` of them.
 */
#ifndef LODE_CHUNK_PARSER_POOL_H
#define LODE_CHUNK_PARSER_POOL_H

#include "chunk/chunk.h"

typedef struct parser_pool parser_pool;

typedef struct parser_pool_options {
  const char *parser;     /* the program; NULL: $LODE_PARSER, or where it lies beside this program */
  uint32_t workers;       /* 0: one for each processor, 16 at most */
  uint64_t memory_bytes;  /* of one worker; 0 = 512 MiB */
  uint32_t cpu_ms;        /* for one file; 0 = 5,000 */
  chunk_options chunk;
} parser_pool_options;

/* X(enum, text for people) */
#define PARSER_POOL_OUTCOMES(X)                                        \
  X(SYNTAX, "by syntax")                                               \
  X(PLAIN, "by paragraphs and lines")      /* no grammar for it, or a long list of #define */ \
  X(NO_GRAMMAR, "the grammar is not installed")                        \
  X(CRASHED, "the parser crashed")                                     \
  X(HUNG, "the parser took too long")                                  \
  X(MEMORY, "the parser needed too much memory")                       \
  X(REFUSED, "the parser gave up")         /* said so itself, or answered nonsense */

typedef enum parser_pool_outcome {
#define PARSER_POOL_ENUM(id, text) PARSER_POOL_##id,
  PARSER_POOL_OUTCOMES(PARSER_POOL_ENUM)
#undef PARSER_POOL_ENUM
  PARSER_POOL_COUNT
} parser_pool_outcome;

const char *parser_pool_outcome_text(parser_pool_outcome outcome);

typedef struct parser_pool_result {
  chunk_list chunks;      /* the partition, whatever the outcome */
  parser_pool_outcome outcome;  /* from CRASHED on: the file is to be reported */
  bool broken;                  /* the text has errors of syntax, as far as the grammar can tell */
  char detail[80];              /* "SIGSEGV", "5.0 s of CPU time"; empty when all is well */
} parser_pool_result; /* zeroed before first use; may be used again */

/* Does not start anything. A missing lode-parser is no error: parser_pool_program says NULL then. */
LODE_MUST lode_status parser_pool_open(const parser_pool_options *options, parser_pool **pool, lode_error *err);
void parser_pool_close(parser_pool *pool);
const char *parser_pool_program(const parser_pool *pool); /* path of the program in use */
/* May the language be parsed by syntax here? Looks for its shared object only. */
bool parser_pool_has(const parser_pool *pool, const lang_info *language);

/* Fails for want of memory or descriptors only, and by LODE_LIMIT when the text is too long. */
LODE_MUST lode_status parser_pool_chunk(parser_pool *pool, const lang_info *language, lode_str text,
                                       parser_pool_result *result, lode_error *err);
void parser_pool_result_release(parser_pool_result *result);

#endif
