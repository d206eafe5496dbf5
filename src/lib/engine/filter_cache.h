/* SPDX-License-Identifier: Apache-2.0 */
/* filter_cache.h - matches of filters that were used, kept with a snapshot of vectors: filter_cache.c. */
#ifndef LODE_ENGINE_FILTER_CACHE_H
#define LODE_ENGINE_FILTER_CACHE_H

#include "engine/query_plan.h"
#include "engine/vector_snapshot.h"
#include "index/filtered.h"

/* The cached list of records that match a filter; NULL: none. */
const engine_rids *engine_filter_cache_find(engine_snapshot *vectors, lode_str filter);
/* Caches the list. The snapshot takes it over: *rids is empty then. Returns the cached list, or NULL if it was not
 * kept. */
const engine_rids *engine_filter_cache_add(const engine_store *store, engine_snapshot *vectors, lode_str filter,
                                           engine_rids *rids);
engine_filter_stats engine_filter_cache_stats(engine_snapshot *vectors, lode_str filter);
/* Adds to these statistics. */
void engine_filter_cache_note(const engine_store *store, engine_snapshot *vectors, lode_str filter,
                              engine_filter_stats more);
void engine_filter_cache_free(engine_filter_entry *entries);

/* The slots of a segment whose records match a filter and whose vectors are live. */
typedef struct engine_filter_slots {
  segments_slots *slots; /* the caller releases it */
  index_filtered *match; /* a graph of them, owned by the snapshot; NULL: none */
} engine_filter_slots;
/* Those of segment i. out->slots is NULL if the filter has no cached list. */
LODE_MUST lode_status engine_filter_cache_slots(const engine_store *store, engine_snapshot *vectors, size_t i,
                                                lode_str filter, engine_filter_slots *out, lode_error *err);
/* Those of a list of records, not cached. */
LODE_MUST lode_status engine_filter_slots_make(const engine_segment_view *view, const engine_rids *rids,
                                               segments_slots **slots, lode_error *err);

#ifdef LODE_CHECKED
/* Tests: called by the thread that is about to make a graph of a filter's matches. */
extern void (*_Atomic engine_filter_graph_hook)(void);
#endif

#endif
