/* SPDX-License-Identifier: Apache-2.0 */
/* segment_build.h - shared by segment_build.c, segment_plan.c and segment_sweep.c: how segments of the vector index are
 * made and removed.
 *
 * Everything here runs under the builder's lock (store.h), which one thread of one process holds at a time, and which
 * is released when its holder dies. What a killed builder left (a row of an unfinished segment, a file that no row
 * names) is found and removed by the next one. Queries never wait for any of it.
 */
#ifndef LODE_ENGINE_SEGMENT_BUILD_H
#define LODE_ENGINE_SEGMENT_BUILD_H

#include "engine/engine.h"

/* A segment to build: the live vectors of a collection with after < vid <= last. */
typedef struct engine_build_plan {
  int64_t cid; /* 0: there is nothing to do */
  uint64_t uid;
  lode_metric metric;
  uint32_t dim;
  int64_t after, last; /* last INT64_MAX: up to the newest */
  bool gap;            /* between segments: if it is empty, the next segment's range is extended over it */
  bool empty;          /* no live vectors: the manifest rows are removed */
  bool flat;           /* no graph, however many rows it has */
  size_t max_rows;
} engine_build_plan;
lode_status engine_build_plan_next(lode_store *store, const engine_build_request *request, engine_build_plan *plan,
                                   lode_error *err);

/* Removes what killed builders left. */
lode_status engine_sweep(lode_store *store, lode_error *err);
/* Checks suspects again and quarantines what is damaged; with `unreadable` also what cannot be read. */
lode_status engine_sweep_suspects(lode_store *store, bool unreadable, lode_error *err);
/* Reads all files and quarantines what is damaged; with request->unreadable also what cannot be read. */
lode_status engine_sweep_check_files(lode_store *store, const engine_build_request *request, lode_error *err);
/* Rows of the manifest, of one collection or (cid 0) of all. */
typedef struct engine_manifest {
  store_manifest_row *v;
  size_t n, cap;
} engine_manifest;
lode_status engine_manifest_load(lode_store *store, int64_t cid, engine_manifest *rows, lode_error *err);
lode_status engine_manifest_remove(lode_store *store, uint64_t id, lode_error *err);
lode_status engine_segment_unlink(lode_store *store, uint64_t id, const char *ending);
/* Sorts keys that several transactions have read by record. One whose vector was replaced meanwhile may be there twice:
 * the newer one stays. Returns how many stay. */
size_t engine_keys_dedup(index_segment_record *keys, size_t n);
bool engine_build_is_stopped(const engine_build_request *request);

#endif
