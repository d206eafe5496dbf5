/* SPDX-License-Identifier: Apache-2.0 */
/* query_explain.h - what an attempt at a query did, beside what its plan says: query_explain.c. */
#ifndef LODE_ENGINE_QUERY_EXPLAIN_H
#define LODE_ENGINE_QUERY_EXPLAIN_H

#include "engine/query_plan.h"
#include "engine/select.h"
#include "iface/iface_explain.h"

typedef enum engine_part { ENGINE_PART_FILTER, ENGINE_PART_VECTORS, ENGINE_PART_TEXT, ENGINE_PART_ROWS } engine_part;

/* Counted by those who do the work; times only if the request wants an explanation. */
typedef struct engine_trace {
  uint64_t ns[ENGINE_PART_ROWS + 1];
  bool listed; /* the list was made by this attempt */
  /* vectors */
  uint64_t by_key;          /* read one by one */
  uint64_t scanned;         /* rows compared exactly in scans, those included */
  uint64_t segments;        /* searched by their codes */
  uint64_t damaged;         /* searches that were repeated without a damaged segment */
  index_search_stats index; /* of the searches of those segments */
  /* text */
  uint64_t words;     /* of the query */
  uint64_t with_word; /* records that hold some of them */
  uint64_t tail;      /* records after the index's cursor that were read */
  uint64_t scored;    /* records whose score was computed exactly */
  /* candidates of the vector search */
  uint64_t confirmed, matched; /* read and evaluated; those that are live and match */
  uint64_t rows;
} engine_trace;

/* Adds the steps of one attempt at a group of queries. again: it was not the last. */
void engine_explain_attempt(iface_explain *e, const engine_facts *facts, const engine_plan *plan,
                            const engine_select *select, const engine_trace *trace, bool again);

#endif
