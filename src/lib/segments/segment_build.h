/* SPDX-License-Identifier: Apache-2.0 */
/* segment_build.h - how segments of the vector index are planned (segment_plan.c), built (segment_build.c), removed
 * (segment_sweep.c) and verified (segment_verify.c).
 *
 * Everything in the second part runs under the builder's lock (store.h), which one thread of one process holds at a
 * time, and which is released when its holder dies. What a killed builder left (a row of an unfinished segment, a file
 * that no row names) is found and removed by the next one. Queries never wait for any of it.
 */
#ifndef LODE_SEGMENTS_SEGMENT_BUILD_H
#define LODE_SEGMENTS_SEGMENT_BUILD_H

#include "segments/segment_files.h"

/* Thresholds; tests lower them. */
typedef struct segments_build_limits {
  uint32_t tail_rows;    /* this many vectors outside of segments become a segment */
  uint32_t exact_rows;   /* collections of at most this many vectors are searched exactly: no segment has a graph */
  uint32_t graph_rows;   /* in larger ones, segments of at least this many rows have a graph */
  uint32_t dead_percent; /* segments with at least this share of dead rows are rebuilt */
  uint32_t max_rows;     /* of a segment; 0: as the memory budget allows */
  uint64_t place_bytes;  /* segments with this many bytes of vectors have their places instead of them */
  uint32_t threads;      /* 0: one for each processor, at most 8 */
} segments_build_limits;
extern segments_build_limits segments_limits;

/* What to build. If stop (may be NULL) returns true, the build ends with LODE_CANCELLED. */
typedef struct segments_build_request {
  bool (*stop)(void *ctx);
  void *stop_ctx;
  lode_progress progress;
  bool thorough;   /* check all files */
  bool unreadable; /* with thorough: also rebuild what cannot be read */
  bool gentle;     /* use half of the threads */
  bool flat;       /* no graphs: a bulk load is running and would replace them */
  bool only_dead;  /* only rewrite segments that hold dead vectors, keeping their kind */
} segments_build_request;
/* Builds until nothing is left to do; waits while a thread of this handle builds. */
LODE_MUST lode_status segments_build_all(segments_store *segments, const segments_build_request *request,
                                         lode_error *err);
/* Builds at most one segment; *more: there may be more to do. LODE_BUSY when another thread or process builds. */
LODE_MUST lode_status segments_build_step(segments_store *segments, const segments_build_request *request, bool *more,
                                          lode_error *err);
/* Marks segments whose files were removed as suspect. Whoever has them open keeps using them until they are rebuilt. */
void segments_sweep_missing(segments_store *segments);
typedef struct segments_counts {
  uint64_t segments, rows, bytes;
  uint64_t making; /* segments being built */
  uint64_t tail;   /* living vectors that no segment holds */
} segments_counts;
/* Adds the segments of a collection. */
LODE_MUST lode_status segments_count(store_tx *tx, const store_coll *coll, segments_counts *counts, lode_error *err);
/* Verifies every file, its graph and its recall. */
LODE_MUST lode_status segments_verify(segments_store *segments, lode_damage_fn *found, void *ctx,
                                      lode_progress progress, uint64_t *n_found, lode_error *err);

/* Runs loops on *n threads; 0: as many as there are processors. Sets *n. */
index_parallel segments_parallel(unsigned *n);

/* ---- Shared by these files ---- */

/* A segment to build: the live vectors of a collection with after < vid <= last. */
typedef struct segments_build_plan {
  int64_t cid; /* 0: there is nothing to do */
  uint64_t uid;
  lode_metric metric;
  uint32_t dim;
  int64_t after, last; /* last INT64_MAX: up to the newest */
  bool flat;           /* no graph, however many rows it has */
  size_t max_rows;
} segments_build_plan;
LODE_MUST lode_status segments_build_plan_next(segments_store *segments, const segments_build_request *request,
                                               segments_build_plan *plan, lode_error *err);

/* Removes what killed builders left. */
LODE_MUST lode_status segments_sweep(segments_store *segments, lode_error *err);
/* Checks suspects again and quarantines what is damaged; with `unreadable` also what cannot be read. */
LODE_MUST lode_status segments_sweep_suspects(segments_store *segments, bool unreadable, lode_error *err);
/* Reads all files and quarantines what is damaged; with request->unreadable also what cannot be read. */
LODE_MUST lode_status segments_sweep_check_files(segments_store *segments, const segments_build_request *request,
                                                 lode_error *err);
/* Rows of the manifest, of one collection or (cid 0) of all. */
typedef struct segments_manifest {
  store_manifest_row *v;
  size_t n, cap;
} segments_manifest;
LODE_MUST lode_status segments_manifest_load(segments_store *segments, int64_t cid, segments_manifest *rows,
                                             lode_error *err);
LODE_MUST lode_status segments_manifest_remove(segments_store *segments, uint64_t id, lode_error *err);
/* Removes a file. If that fails, segments_sweep() will try again: no row names it. */
void segments_file_unlink(segments_store *segments, uint64_t id, const char *ending);
/* Sorts keys that several transactions have read by record. One whose vector was replaced meanwhile may be there twice:
 * the newer one stays. Returns how many stay. */
size_t segments_keys_dedup(index_segment_record *keys, size_t n);
bool segments_build_is_stopped(const segments_build_request *request);

#endif
