/* SPDX-License-Identifier: Apache-2.0 */
/* indexer.h - brings a store up to date with a tree of files.
 *
 * The steps of a run, each resumable:
 *   walk     compares every file with its recorded state: by size, times and inode, and if these differ, or the
 *            file was written shortly before it was read (racy), by the digest of its bytes
 *   index    several threads read changed files, split them into chunks and embed them; one thread writes. The chunks,
 *            vectors and state of a file change in one transaction: a file is indexed completely or not at all
 *   remove   deletes from the store what is gone from the tree
 *   embed    makes missing vectors, if the model is too slow for the first pass; equal texts share their vectors
 * A run that ends early leaves a store that is correct for the files done so far, and the next run continues.
 *
 * Threads: an indexer belongs to one thread, the only one that writes to the store. The threads that it starts read
 * files, parse and embed.
 */
#ifndef LODE_INDEXER_INDEXER_H
#define LODE_INDEXER_INDEXER_H

#include "project/project.h"
#include "scan/scan.h"

typedef struct indexer_options {
  bool force;              /* rebuild everything in new collections, and switch over at the end */
  bool quality;            /* also make the second vectors */
  bool no_vectors;         /* leave missing vectors to another run */
  bool stays;              /* the caller keeps the store open, and background threads update its indexes: a run
                              over some paths does not wait for them */
  uint32_t workers;        /* 0: from the configuration */
  lode_embedder *embedder; /* instead of the configured model; owned by the caller */
  lode_progress progress;
  project_job *job;                          /* progress is written there too; may be NULL */
  void (*note)(void *ctx, const char *text); /* files that failed to parse, missing models, ...; may be NULL */
  void *note_ctx;
} indexer_options;

typedef struct indexer_report {
  uint64_t files; /* in scope and in the index: the unchanged, added and changed ones */
  uint64_t unchanged, added, changed, removed;
  uint64_t chunks;                   /* written */
  uint64_t vectors;                  /* made */
  uint64_t reused;                   /* copied from equal texts */
  uint64_t pending;                  /* chunks without a vector, in the whole index */
  uint64_t bytes;                    /* of the files read */
  uint64_t skipped[SCAN_SKIP_COUNT]; /* by the walk, and because of their text */
  uint64_t masked;                   /* secrets masked in files in scope */
  uint64_t unparsed;                 /* files whose parser crashed, hung or gave up: chunked by lines */
  uint64_t walk_ms, index_ms, embed_ms, finish_ms;
  bool vectorless; /* there is no model: text only */
} indexer_report;

typedef struct indexer_ctx indexer_ctx;

/* The scan options that the settings of a project ask for. */
scan_options indexer_scan_options(const config_values *config);

/* `store` is open for writing; the caller holds the project's PROJECT_JOB_INDEX during a run. */
LODE_MUST lode_status indexer_open(const project_info *project, lode_store *store, const indexer_options *options,
                                   indexer_ctx **indexer, lode_error *err);
void indexer_close(indexer_ctx *indexer);
/* Indexes everything, or what is at or below the given paths (relative to the root; files or folders, which may be
 * gone). */
LODE_MUST lode_status indexer_run(indexer_ctx *indexer, const lode_str *paths, size_t n_paths, indexer_report *report,
                                  lode_error *err);
/* Removes a path and everything below it from the index, whether it exists or not. */
LODE_MUST lode_status indexer_remove(indexer_ctx *indexer, lode_str path, indexer_report *report, lode_error *err);
/* The root of the tree, for classifying single paths. */
const scan_root *indexer_root(const indexer_ctx *indexer);

/* Counts the files that differ from the index; files whose times or inode changed are read. Reads the store, writes
 * nothing. */
typedef struct indexer_changes {
  uint64_t files, added, changed, removed;
  uint64_t touched; /* other times or inode, the same bytes */
} indexer_changes;
LODE_MUST lode_status indexer_compare(const project_info *project, lode_store *store, lode_progress progress,
                                      indexer_changes *changes, lode_error *err);

#endif
