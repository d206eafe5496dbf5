/* pool.h - chunks of foreign text, made where they can do no harm.
 *
 * Text of a language with a grammar is parsed by workers: processes of the program lode-parser, which loads grammars as
 * shared objects when they are first needed. A worker has limits of memory and CPU time and no privileges to gain. If
 * it crashes, hangs or takes too much memory, that one file is chunked by lines here, the result says why, and the next
 * file gets a new worker. Where there is no lode-parser or no such grammar everything is chunked by lines.
 *
 * Threads: any number may call lode__pool_chunk at once; each borrows a worker, or waits for one. Workers are started
 * when first needed, at most `workers` of them.
 */
#ifndef LODE_CODE_POOL_H
#define LODE_CODE_POOL_H

#include "code/chunk.h"

typedef struct lode__pool lode__pool;

typedef struct lode__pool_options {
  const char *parser;     /* the program; NULL: $LODE_PARSER, or where it lies beside this program */
  uint32_t workers;       /* 0: one for each processor, 16 at most */
  uint64_t memory_bytes;  /* of one worker; 0 = 512 MiB */
  uint32_t cpu_ms;        /* for one file; 0 = 5,000 */
  lode__chunk_options chunk;
} lode__pool_options;

/* X(enum, text for people) */
#define LODE__PARSE_OUTCOMES(X)                                        \
  X(SYNTAX, "by syntax")                                               \
  X(PLAIN, "by paragraphs and lines")      /* no grammar for it, or a long list of #define */ \
  X(NO_GRAMMAR, "the grammar is not installed")                        \
  X(CRASHED, "the parser crashed")                                     \
  X(HUNG, "the parser took too long")                                  \
  X(MEMORY, "the parser needed too much memory")                       \
  X(REFUSED, "the parser gave up")         /* said so itself, or answered nonsense */

typedef enum lode__parse_outcome {
#define LODE__PARSE_ENUM(id, text) LODE__PARSE_##id,
  LODE__PARSE_OUTCOMES(LODE__PARSE_ENUM)
#undef LODE__PARSE_ENUM
  LODE__PARSE_COUNT
} lode__parse_outcome;

const char *lode__parse_outcome_text(lode__parse_outcome outcome);

typedef struct lode__pool_result {
  lode__chunk_list chunks;      /* the partition, whatever the outcome */
  lode__parse_outcome outcome;  /* from CRASHED on: the file is to be reported */
  bool broken;                  /* the text has errors of syntax, as far as the grammar can tell */
  char detail[80];              /* "SIGSEGV", "5.0 s of CPU time"; empty when all is well */
} lode__pool_result; /* zeroed before first use; may be used again */

/* Does not start anything. A missing lode-parser is no error: lode__pool_parser says NULL then. */
LODE_MUST lode_status lode__pool_open(const lode__pool_options *options, lode__pool **pool, lode_error *err);
void lode__pool_close(lode__pool *pool);
const char *lode__pool_parser(const lode__pool *pool); /* path of the program in use */
/* May the language be parsed by syntax here? Looks for its shared object only. */
bool lode__pool_has(const lode__pool *pool, const lode__language *language);

/* Fails for want of memory or descriptors only, and by LODE_LIMIT when the text is too long. */
LODE_MUST lode_status lode__pool_chunk(lode__pool *pool, const lode__language *language, lode_str text,
                                       lode__pool_result *result, lode_error *err);
void lode__pool_result_release(lode__pool_result *result);

#endif
