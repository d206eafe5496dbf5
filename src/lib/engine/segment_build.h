/* segment_build.h - what segment_build.c, segment_plan.c and segment_sweep.c share: how segments of the vector index come and go.
 *
 * Everything here is done under the builder's lock (store.h), which one thread of one process holds at a time and which
 * dies with its holder. Whatever a killed builder left behind (a row of a segment being made, a file that no row names)
 * is found and removed by the next one. Queries never wait for any of it.
 */
#ifndef LODE_ENGINE_SEGMENT_BUILD_H
#define LODE_ENGINE_SEGMENT_BUILD_H

#include "engine/engine.h"

/* A segment to be made: the living vectors of a collection with after < vid <= last. */
typedef struct engine_build_plan {
  int64_t cid;          /* 0: there is nothing to do */
  uint64_t uid;
  lode_metric metric;
  uint32_t dim;
  int64_t after, last;  /* last INT64_MAX: up to the newest */
  bool gap;             /* lies between segments: when it is empty, the one behind it answers for it */
  bool empty;           /* nothing in it lives: the rows are taken out */
  bool flat;            /* no graph, however many rows it has */
  size_t max_rows;
} engine_build_plan;
lode_status engine_build_plan_next(lode_store *store, const engine_build_request *request, engine_build_plan *plan, lode_error *err);

/* Removes what killed builders left. */
lode_status engine_sweep(lode_store *store, lode_error *err);
/* Looks at suspects again and sets aside what is damaged; with `unreadable` also what cannot be read. */
lode_status engine_sweep_suspects(lode_store *store, bool unreadable, lode_error *err);
/* Reads all files; what is damaged becomes a suspect. */
lode_status engine_sweep_check_files(lode_store *store, const engine_build_request *request, lode_error *err);
/* The manifest, of all collections. */
typedef struct engine_manifest {
  store_manifest_row *v;
  size_t n, cap;
} engine_manifest;
lode_status engine_manifest_load(lode_store *store, int64_t cid, engine_manifest *rows, lode_error *err);
lode_status engine_manifest_remove(lode_store *store, uint64_t id, lode_error *err);
lode_status engine_segment_unlink(lode_store *store, uint64_t id, const char *ending);
/* Keys that several transactions have read: sorts them by record. One whose vector was replaced meanwhile may be there twice: the newer
 * one stays. Returns how many stay. */
size_t engine_keys_dedup(index_segment_record *keys, size_t n);
bool engine_build_is_stopped(const engine_build_request *request);

#endif
