/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - files in, chunks and vectors out: the part of indexing that runs on several threads.
 *
 * Each thread takes the next file, reads it, compares its digest, has the parser pool split it into chunks, makes
 * their records and embeds them. Finished files wait for the writer in a queue that is bounded in length and bytes.
 * They come in the order in which they are finished. */
#ifndef LODE_INDEXER_PIPELINE_H
#define LODE_INDEXER_PIPELINE_H

#include "os/os.h"
#include "indexer/file_table.h"
#include "chunk/parser_pool.h"
#include "scan/scan.h"

typedef struct indexer_task {
  lode_str path; /* escaped */
  indexer_file_state old;
  bool known;    /* the file was indexed before, and `old` is set */
  bool rewrite;  /* its chunks are to be made again, even if its bytes are the same */
  bool recheck;  /* indexed with another mask policy or version: process it even if its bytes are the same */
  uint64_t size; /* as seen by the walk */
} indexer_task;

typedef struct indexer_file {
  const indexer_task *task;
  scan_skip skip; /* NONE, or why it has no chunks; UNREADABLE: its record is left alone */
  bool same;      /* its bytes are the indexed ones: only its state changes */
  const lang_info *language;
  indexer_file_state state;
  mem_arena arena; /* of all below */
  indexer_record *records;
  size_t n;
  float *vectors; /* n x dimension, or NULL */
  lode_str outline;
  lode_str symbols; /* metadata of its table of symbols; empty: it has none */
  parser_pool_outcome outcome;
  char detail[80];
  lode_error error; /* status LODE_OK, or why the run must end */
  struct indexer_file *next;
} indexer_file;

typedef struct indexer_pipeline_options {
  const scan_root *root;
  parser_pool *pool;
  lode_embedder *embedder; /* NULL: no vectors in this pass */
  uint32_t threads;
  const indexer_task *tasks; /* must outlive the pipeline */
  size_t n;
} indexer_pipeline_options;

typedef struct indexer_pipeline indexer_pipeline;
LODE_MUST lode_status indexer_pipeline_open(const indexer_pipeline_options *options, indexer_pipeline **pipeline,
                                            lode_error *err);
/* The next finished file, to be freed with indexer_file_free(); NULL when there are no more, or when none was
 * finished within wait_ms (then *waiting is true). */
indexer_file *indexer_pipeline_next(indexer_pipeline *pipeline, uint32_t wait_ms, bool *waiting);
void indexer_file_free(indexer_file *file);
/* Stops the threads after their current files. */
void indexer_pipeline_close(indexer_pipeline *pipeline);

#endif
