/* pipeline.h - files in, chunks and vectors out: the part of indexing that runs on several threads.
 *
 * Each thread takes the next file, reads it, compares its digest, lets the pool cut it into chunks, makes their records and embeds
 * them. What is done waits in a queue of bounded length and bytes for the one thread that writes. Results come in the order in
 * which they are done. */
#ifndef LODE_INDEXER_PIPELINE_H
#define LODE_INDEXER_PIPELINE_H

#include "os/os.h"
#include "indexer/file_table.h"
#include "chunk/parser_pool.h"
#include "scan/scan.h"

typedef struct indexer_task {
  lode_str path;          /* as shown */
  indexer_file_state old;
  bool known;             /* old is set */
  bool recheck;           /* secrets were treated in another way when it was indexed: the same bytes may have to be done again */
  uint64_t size;          /* as the walk saw it */
} indexer_task;

typedef struct indexer_file {
  const indexer_task *task;
  scan_skip skip;        /* NONE, or why it has no chunks; UNREADABLE: nothing is known about it now */
  bool same;              /* its bytes are those that are indexed: only its state changes */
  const lang_info *language;
  indexer_file_state state;
  mem_arena arena;      /* of all below */
  indexer_record *records;
  size_t n;
  float *vectors;         /* n x dimension, or NULL */
  lode_str outline;
  parser_pool_outcome outcome;
  char detail[80];
  lode_error error;       /* status LODE_OK, or why the run must end */
  struct indexer_file *next;
} indexer_file;

typedef struct indexer_pipeline_options {
  const scan_root *root;
  parser_pool *pool;
  lode_embedder *embedder; /* NULL: no vectors in this pass */
  uint32_t threads;
  const indexer_task *tasks; /* must outlive the feed */
  size_t n;
} indexer_pipeline_options;

typedef struct indexer_pipeline indexer_pipeline;
LODE_MUST lode_status indexer_pipeline_open(const indexer_pipeline_options *options, indexer_pipeline **feed, lode_error *err);
/* The next file that is done, to be freed with indexer_file_free; NULL when there are no more, or when none was done within
 * wait_ms (then *waiting is true). */
indexer_file *indexer_pipeline_next(indexer_pipeline *feed, uint32_t wait_ms, bool *waiting);
void indexer_file_free(indexer_file *file);
/* Stops the threads after their present files. */
void indexer_pipeline_close(indexer_pipeline *feed);

#endif
