/* SPDX-License-Identifier: Apache-2.0 */
/* index_query.h - one search of a segment, shared by the files that do it: index_search.c chooses how, and walks;
 * index_scan.c scans codes; index_rank.c ranks candidates by their float vectors. */
#ifndef LODE_INDEX_INDEX_QUERY_H
#define LODE_INDEX_INDEX_QUERY_H

#include "index/index_search.h"

typedef struct index_query {
  index_segment *segment;
  const index_search_request *request;
  index_search_scratch *scratch;
  index_walk_query query;
  uint64_t n_allowed;
  size_t k, keep; /* results; candidates that may be reranked */
  size_t beam;
  size_t n_candidates; /* in scratch->candidates, in key order */
  size_t n_least;      /* in scratch->least */
  bool coarse;         /* the candidates may be distant from the query, where differences between keys mean little */
  bool exact;          /* nothing but the nearest will do */
  bool proven;         /* the candidates are all rows that can be among the nearest, by `bounds` */
  quant_bounds bounds;
} index_query;

static inline bool index_query_allows(const index_query *s, uint32_t slot) {
  const uint64_t *allowed = s->request->allowed;
  return !allowed || (allowed[slot / 64] >> (slot % 64) & 1);
}

static inline lode_status index_query_damaged(lode_error *err, const char *what) {
  return err_set(err, LODE_CORRUPT, "damaged index segment (%s): it will be rebuilt from the records", what);
}

/* Room for the best `keep` candidates. */
LODE_MUST lode_status index_query_reserve(index_query *s, size_t keep, lode_error *err);
/* The matches may be distant from the query, where differences between keys mean little: keep and rerank more
 * candidates. */
LODE_MUST lode_status index_query_expect_distant(index_query *s, lode_error *err);

/* Candidates by a scan of the codes of all allowed rows: every one that can be among the nearest (s->proven), or if
 * nothing can be proven, the best `keep`; none if s->exact. */
LODE_MUST lode_status index_scan(index_query *s, lode_error *err);

/* Hits from the candidates. */
LODE_MUST lode_status index_rank_candidates(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err);
/* Hits from the vectors of all allowed rows. */
LODE_MUST lode_status index_rank_all(index_query *s, index_hit *hits, size_t *n_hits, lode_error *err);

#endif
