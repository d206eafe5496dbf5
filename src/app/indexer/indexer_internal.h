/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_internal.h - the indexer's state, shared by the files that implement it:
 *   indexer.c        opening and closing; one run from walk to switch
 *   indexer_open.c   models and collections; whether everything must be rebuilt
 *   indexer_walk.c   which files must be read
 */
#ifndef LODE_INDEXER_INDEXER_INTERNAL_H
#define LODE_INDEXER_INDEXER_INTERNAL_H

#include "indexer/indexer_batch.h"
#include "indexer/indexer.h"
#include "indexer/index_stamp.h"
#include "indexer/indexer_tuning.h"

typedef struct indexer_tasks {
  indexer_task *v;
  size_t n, cap;
  uint64_t cost; /* bytes, plus INDEXER_FILE_COST per file */
  mem_arena arena;
} indexer_tasks;

typedef struct indexer_prefixes {
  lode_str *v;
  size_t n, cap;
} indexer_prefixes;

struct indexer_ctx {
  const project_info *project;
  lode_store *store;
  indexer_options options;
  scan_root *root;
  struct stat root_stat;
  parser_pool *pool;
  lode_embedder *embedder, *second;
  bool own_embedder, instant; /* instant: the model is fast enough to embed in the first pass */
  indexer_colls colls;
  lode_collection *old_code, *old_quality; /* during a rebuild: donors of vectors */
  bool rewrite;         /* everything is made again in place, file by file: the store cannot switch collections */
  bool recheck;         /* the index was made with another mask policy or version: read all files again, once */
  bool rebuild, donate; /* rebuild: into new collections; donate: vectors of old_code are from the same model */
  bool other_model; /* a rebuild of an index with vectors of another model, which serve until all new ones are there */
  indexer_file_table file_table;
  indexer_stamp stamp;
  /* of one run */
  indexer_report *report;
  indexer_tasks todo;
  indexer_prefixes scope, unreadable;
  uint64_t seen; /* files that the walk came to */
  size_t notes;
};

/* A message for the user; only the first few of a run are passed on. */
void indexer_note(indexer_ctx *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Progress of the run: shown, and noted in the job file. */
lode_progress indexer_progress(indexer_ctx *x);

LODE_MUST lode_status indexer_open_models(indexer_ctx *x, lode_error *err);
/* After a rebuild: what interrupted ones left is not needed any more. */
LODE_MUST lode_status indexer_drop_kept(indexer_ctx *x, lode_error *err);
LODE_MUST lode_status indexer_prepare_colls(indexer_ctx *x, lode_error *err);
void indexer_close_colls(indexer_ctx *x);
LODE_MUST lode_status indexer_save_stamp(indexer_ctx *x, lode_error *err);

/* Fills x->todo with files that differ from their recorded state, marks what was visited, and records unreadable
 * folders. */
LODE_MUST lode_status indexer_scan(indexer_ctx *x, const lode_str *paths, size_t n, lode_error *err);
LODE_MUST lode_status indexer_load_files(indexer_ctx *x, lode_error *err);
LODE_MUST lode_status indexer_check_root(const indexer_ctx *x, lode_error *err);
LODE_MUST lode_status indexer_add_prefix(indexer_ctx *x, indexer_prefixes *p, lode_str path, lode_error *err);
/* Counts a file that is as it was indexed. */
void indexer_count_unchanged(indexer_report *report, const indexer_file_state *file);
bool indexer_is_under(const indexer_prefixes *p, lode_str path);

#endif
