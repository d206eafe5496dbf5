/* indexer.h - bringing a store up to date with a tree of files.
 *
 * What a run does, each step of it resumable:
 *   walk     every file is compared with what is known of it: by size, time and inode, and where these differ, or are as young as
 *            the index itself, by the digest of its bytes
 *   index    changed files are read, cut into chunks and embedded by a few threads; one thread writes. A file's chunks, its vectors
 *            and its state change in one transaction: a file is indexed wholly or not at all, whatever happens
 *   remove   what is gone from the tree goes from the store
 *   embed    chunks that have no vector get one, if the model is too slow for the first pass; equal texts share their vectors
 * A run that ends early leaves a store that is right for the files done so far, and the next run goes on.
 *
 * Rules of threads: an indexer belongs to one thread, which is the only one that writes to the store. The threads that it starts
 * read files, parse and embed.
 */
#ifndef LODE_INDEXER_INDEXER_H
#define LODE_INDEXER_INDEXER_H

#include "project/project.h"
#include "scan/scan.h"

typedef struct indexer_options {
  bool force;               /* build everything anew, aside, and switch over at the end */
  bool quality;             /* also the second vectors */
  bool no_vectors;          /* leave missing vectors to another run */
  bool stays;               /* the caller keeps the store open, and its threads bring its indexes along: a run over some paths does not wait for them */
  uint32_t workers;         /* 0: from the configuration */
  lode_embedder *embedder;  /* instead of the configuration's model; the caller's */
  lode_progress progress;
  project_job *job;           /* noted there as well; may be NULL */
  void (*note)(void *ctx, const char *text); /* files that were hard to read, models that are missing, ...; may be NULL */
  void *note_ctx;
} indexer_options;

typedef struct indexer_report {
  uint64_t files;       /* in the scope, worth indexing */
  uint64_t unchanged, added, changed, removed;
  uint64_t chunks;      /* written */
  uint64_t vectors;     /* made */
  uint64_t reused;      /* taken from equal texts */
  uint64_t pending;     /* chunks without a vector, in all */
  uint64_t bytes;       /* of the files read */
  uint64_t skipped[SCAN_SKIP_COUNT]; /* by the walk, and by their text */
  uint64_t masked;      /* secrets inside files in the scope, which were masked */
  uint64_t unparsed;    /* files whose parser crashed, hung or gave up: chunked by lines */
  uint64_t walk_ms, index_ms, embed_ms, finish_ms;
  bool vectorless;      /* there is no model: text only */
} indexer_report;

typedef struct indexer_ctx indexer_ctx;

/* How the settings of a project say to walk it. */
scan_options indexer_scan_options(const config_values *config);

/* `store` is open for writing; the caller holds the project's PROJECT_JOB_INDEX while a run lasts. */
LODE_MUST lode_status indexer_open(const project_info *project, lode_store *store, const indexer_options *options,
                                         indexer_ctx **indexer, lode_error *err);
void indexer_close(indexer_ctx *indexer);
/* Everything, or what lies at or below the given paths (relative to the root; files or folders, also such that are gone). */
LODE_MUST lode_status indexer_run(indexer_ctx *indexer, const lode_str *paths, size_t n_paths, indexer_report *report,
                                        lode_error *err);
/* Takes a path and what is below it out of the index, whether it exists or not. */
LODE_MUST lode_status indexer_remove(indexer_ctx *indexer, lode_str path, indexer_report *report, lode_error *err);
/* The root as the indexer sees it, for judging single paths. */
const scan_root *indexer_root(const indexer_ctx *indexer);

/* How many files differ from the index: a walk that reads names and times only. Reads the store, writes nothing. */
typedef struct indexer_changes {
  uint64_t files, added, changed, removed;
} indexer_changes;
LODE_MUST lode_status indexer_compare(const project_info *project, lode_store *store, lode_progress progress,
                                          indexer_changes *changes, lode_error *err);

#endif
