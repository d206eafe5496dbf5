/* SPDX-License-Identifier: Apache-2.0 */
/* query_plan.h - how a query is answered: facts go in, a plan comes out.
 *
 * The planner reads no store and changes nothing: the same facts always give the same plan. Facts that cost something
 * are fetched only if the plan depends on them: as long as plan.need is set, the caller fetches that fact, marks it as
 * known, and plans again. engine_query.c fetches what concerns the selection, nearest.c what concerns the vectors. Both
 * then do what the plan says. They leave it in two cases only: a segment turns out to be damaged (the rest is planned
 * again without it), or too few hits are left (the next attempt is planned). docs/INDEX.md has the table of choices.
 */
#ifndef LODE_ENGINE_QUERY_PLAN_H
#define LODE_ENGINE_QUERY_PLAN_H

#include "base/base.h"

enum { ENGINE_PLAN_ATTEMPTS = 4 }; /* at an answer, each with more candidates; the last reads every vector */

/* Facts to fetch, and facts that are known. */
typedef enum engine_fact {
  ENGINE_FACT_CACHE = 1,     /* what a snapshot in memory and its filter cache know */
  ENGINE_FACT_PROPOSALS = 2, /* what the metadata index proposes */
  ENGINE_FACT_LIST = 4,      /* the list of records that plan.matches names: how long it is */
  ENGINE_FACT_MANIFEST = 8,  /* whether there are segments, and whether they are loaded */
  ENGINE_FACT_SNAPSHOT = 16, /* the snapshot to be searched */
} engine_fact;

/* How the selection is applied. */
typedef enum engine_matches {
  ENGINE_MATCHES_ALL,      /* there is none */
  ENGINE_MATCHES_POST,     /* the filter is evaluated on the candidates of a search */
  ENGINE_MATCHES_CACHED,   /* a list of the filter cache */
  ENGINE_MATCHES_IDS,      /* a list: ids looked up, the filter evaluated */
  ENGINE_MATCHES_PROPOSED, /* a list: what the metadata index proposes, as it is */
  ENGINE_MATCHES_INDEX,    /* a list: what the metadata index proposes, the filter evaluated */
  ENGINE_MATCHES_SCAN,     /* a list: the filter evaluated on every record */
} engine_matches;

/* How the nearest vectors are found. */
typedef enum engine_vectors {
  ENGINE_VECTORS_NONE,
  ENGINE_VECTORS_BY_RECORD, /* the vector of each listed record is read from the database file */
  ENGINE_VECTORS_INDEX,     /* segments through their graphs, the rest by a scan */
  ENGINE_VECTORS_CODES,     /* segments by a scan of their codes with proven bounds, the rest by a scan: exact */
  ENGINE_VECTORS_SCAN,      /* every vector of the snapshot */
  ENGINE_VECTORS_STREAM,    /* every vector of the database file */
} engine_vectors;

/* What is known about a filter whose matches are not listed. */
typedef struct engine_filter_stats {
  uint64_t evaluated, matched; /* records near queries that were evaluated, and those that matched */
  bool scans;                  /* listing takes a full scan */
} engine_filter_stats;

typedef struct engine_facts {
  unsigned known; /* engine_fact: which of the facts below were fetched */
  /* the request */
  lode_mode mode;
  size_t want;    /* hits of each query, before fusion */
  size_t queries; /* answered together */
  bool exact;
  bool tuned;    /* an effort or a recall is asked for */
  bool selects;  /* there is a selection */
  bool by_ids;   /* it names ids */
  bool is_probe; /* its filter is one condition, which the metadata index can answer */
  /* the attempt */
  unsigned attempt; /* from 0 */
  bool new_filter;  /* there were no statistics of the filter at the first attempt */
  bool second_look; /* ... and the second attempt was planned as a second look: plan.second_look */
  /* the collection */
  bool has_vectors;
  uint64_t records, unindexed; /* unindexed: those that the metadata index does not hold yet */
  /* ENGINE_FACT_CACHE */
  bool snapshot;             /* one with segments is in memory */
  bool cached;               /* its filter cache has the list */
  engine_filter_stats stats; /* if it has not */
  uint64_t spent;            /* evaluations charged to the snapshot so far */
  /* ENGINE_FACT_PROPOSALS */
  bool proposes; /* there is a list of proposals, or of ids */
  size_t proposals;
  /* ENGINE_FACT_LIST */
  engine_matches listed_by;
  const char *listed_why;
  size_t listed;
  /* ENGINE_FACT_MANIFEST */
  bool published, loaded;
  /* ENGINE_FACT_SNAPSHOT */
  bool fits;        /* false: there is none, because vectors and graphs do not fit in memory */
  bool zero_query;  /* all are equally far from a query: the order is that of ids */
  uint64_t indexed; /* rows of its segments */
  uint64_t rest;    /* rows that are scanned in any case */
} engine_facts;

typedef struct engine_plan {
  engine_fact need; /* 0: the plan is complete */
  engine_matches matches;
  const char *matches_why;
  bool second_look;  /* a post-filter for the second time, because the filter is new */
  double share;      /* of the candidates that are expected to match; 0: unknown */
  size_t candidates; /* to ask for, for each query: more than wanted, because some may be rejected */
  size_t per_segment;
  uint64_t charge; /* evaluations to be charged to the snapshot: those of this plan, and of post-filters rejected */
  engine_vectors vectors;
  const char *vectors_why;
  bool text; /* a search by words */
  bool fuse; /* of both rankings */
} engine_plan;

engine_plan engine_plan_make(const engine_facts *facts);
/* Is the list to be made again, evaluating what was only proposed? Earlier attempts have found too few matches in it.
 */
bool engine_plan_rejects_list(const engine_facts *facts);
static inline bool engine_plan_lists(const engine_plan *plan) { return plan->matches > ENGINE_MATCHES_POST; }

/* How many queries of a request are answered together. */
size_t engine_plan_group(size_t k);
/* How many of a filter's probes are tried, and how many proposals are worth having: beyond, all records are scanned.
 * reuse: the list will be cached. */
size_t engine_plan_probes(size_t probes);
size_t engine_plan_max_proposals(uint64_t records, bool is_probe, bool reuse);
/* May another probe propose fewer, if one proposes this many? */
bool engine_plan_wants_fewer(size_t proposals);

const char *engine_matches_name(engine_matches matches);
const char *engine_vectors_name(engine_vectors vectors);

#endif
