/* SPDX-License-Identifier: Apache-2.0 */
/* query_plan.c - the planner of queries.
 *
 * Costs are counted in evaluations: one is reading a record and evaluating the filter on it. Applying a filter to the
 * nearest records (post-filter) costs one for each candidate; listing its matches costs one for each record that is
 * scanned, or a sixteenth for each that the metadata index proposes, and the list is cached. Whether a filter comes
 * again is not known, so evaluations are charged to the snapshot: a filter is listed as soon as evaluating has cost
 * about what the list does.
 */
#include "engine/query_plan.h"
#include "segments/segment_build.h"

/* docs/INDEX.md says which of these were measured, and what was. */
enum {
  QPLAN_GROUP_QUERIES = 64,       /* queries answered together, at most */
  QPLAN_GROUP_ROWS = 8192,        /* rows of their result, at most, unless one query has more */
  QPLAN_MORE = 16,                /* candidates beyond those wanted: records that died or changed meanwhile */
  QPLAN_MORE_GROWTH = 8,          /* more of them at each attempt */
  QPLAN_FEW_MORE = 4,             /* candidates added to those that a post-filter is expected to need */
  QPLAN_NEW_FACTOR = 4,           /* candidates for each hit, if nothing is known about the filter */
  QPLAN_KNOWN_FACTOR = 2,         /* candidates for each that is expected to fail, if its share of matches is known */
  QPLAN_SECOND_FACTOR = 3,        /* candidates for each that is expected to be needed, at a second look */
  QPLAN_FLAT_FACTOR = 8,          /* the same where all vectors are scanned, which makes candidates cheap */
  QPLAN_FLAT_MORE = 32,           /* ... and what is added */
  QPLAN_MAX_EVALS_FACTOR = 8,     /* a filter that needs more evaluations per hit is listed when it is used again */
  QPLAN_PROPOSALS_PER_EVAL = 16,  /* the metadata index lists this many records in the time of one evaluation */
  QPLAN_EXPECTED_REUSES = 4,      /* how often a cached list is expected to be used */
  QPLAN_MAX_PROBES = 8,           /* probes of a filter that are tried */
  QPLAN_MIN_PROPOSALS = 64,       /* a list this short is always used, and no other probe is tried */
  QPLAN_MAX_SHARE = 5,            /* proposals are worth having up to a fifth of all records */
  QPLAN_MAX_REUSED_LIST = 200000, /* longest list made for the filter cache: about 40 ms */
  QPLAN_FEW_RECORDS = 8,          /* read record by record in any case */
  QPLAN_FEW_WHEN_COLD = 2000,     /* read record by record if the index is not loaded */
  QPLAN_FEW_IN_MEMORY = 32,       /* without an index: read record by record if they are less than a 32nd of all */
  QPLAN_FEW_ON_DISK = 4,          /* the same where vectors are not in memory, and a scan reads them: a quarter */
  QPLAN_MAX_INDEXED_K = 8,        /* a graph is of no help for more than an eighth of all rows */
};

static size_t qplan_add(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }
static size_t qplan_mul(size_t a, size_t b) {
  size_t product;
  return mem_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static bool qplan_need(engine_plan *p, engine_fact fact) {
  p->need = fact;
  return false;
}

/* ---- The selection ---- */

static bool qplan_match(engine_plan *p, engine_matches matches, const char *why) {
  p->matches = matches;
  p->matches_why = why;
  return true;
}

static void qplan_post(engine_plan *p, const char *why, size_t more) {
  (void)qplan_match(p, ENGINE_MATCHES_POST, why);
  p->candidates = more;
}

/* A post-filter, going by how many of the candidates of earlier queries matched. At a first attempt, that is as many
 * candidates as they suggest, or a few for a new filter. A new filter of which too few matched is tried once more, if
 * that is cheaper than a list: it may never be used again. */
static bool qplan_try_known_share(const engine_facts *f, engine_plan *p) {
  bool again = f->attempt > 0, known = f->stats.evaluated > 0, probe = f->is_probe && !f->stats.scans;
  double want = (double)f->want, records = (double)f->records;
  double share = ((double)f->stats.matched + 1) / ((double)f->stats.evaluated + 1);
  double list = probe ? share * records / QPLAN_PROPOSALS_PER_EVAL : records;
  double more = again   ? QPLAN_SECOND_FACTOR * want / share
                : known ? QPLAN_KNOWN_FACTOR * want * (1 / share - 1) + QPLAN_FEW_MORE
                        : QPLAN_NEW_FACTOR * (want + QPLAN_FEW_MORE);
  if (!f->snapshot || f->attempt > 1 || (again && !(f->new_filter && known))) return false;
  if (known) p->share = share;
  if (!again && known && more > QPLAN_MAX_EVALS_FACTOR * want) return false;
  /* a short list may hold all matches */
  if (again && (more * (double)f->queries > list || (probe && !f->stats.matched))) return false;
  p->charge = (uint64_t)more * f->queries;
  if (!f->new_filter && (double)(f->spent + p->charge) > (probe ? list / QPLAN_EXPECTED_REUSES : list)) return false;
  p->second_look = again;
  qplan_post(p,
             again   ? "too few of the first candidates match, and looking at more is cheaper than listing all matches"
             : known ? "enough of the candidates of earlier queries match"
                     : "the filter is new: the nearest records are tried before its matches are listed",
             (size_t)more);
  return true;
}

/* A post-filter, going by the number of matches that the metadata index proposes, or knowing nothing. */
static bool qplan_try_estimate(const engine_facts *f, engine_plan *p) {
  size_t matches = qplan_add(f->proposals, (size_t)f->unindexed);
  size_t factor = f->snapshot ? QPLAN_NEW_FACTOR : QPLAN_FLAT_FACTOR;
  size_t few = f->snapshot ? QPLAN_FEW_MORE : QPLAN_FLAT_MORE;
  if (f->attempt > (f->snapshot ? 1 : 0)) return false;
  if (f->proposes) factor = matches ? factor / 2 * (size_t)(f->records / matches + 1) : SIZE_MAX;
  if (f->proposes && f->records) p->share = (double)matches / (double)f->records;
  size_t more = qplan_mul(factor, f->want + few);
  if (f->attempt) more = qplan_mul(more, QPLAN_MORE_GROWTH);
  if (f->proposes && more >= matches / 2) return false;
  if (f->snapshot) {
    p->charge += more;
    if (f->spent + p->charge > (f->proposes ? matches : f->records)) return false;
  }
  qplan_post(p,
             f->proposes ? "many records match, so the nearest ones will do"
                         : "no index has a short list: the nearest records are tried before all are scanned",
             more);
  return true;
}

static bool qplan_may_postfilter(const engine_facts *f) { return !f->by_ids && f->want <= QPLAN_GROUP_ROWS; }

/* Nearly all records that the index proposes for a filter of one condition match: they are listed as they are, unless
 * such a list has failed. */
static bool qplan_may_take_proposals(const engine_facts *f) {
  return f->snapshot && f->proposes && f->is_probe && f->attempt <= (f->second_look ? 2 : 1);
}

bool engine_plan_rejects_list(const engine_facts *f) {
  bool proposed = f->listed_by == ENGINE_MATCHES_PROPOSED || (f->listed_by == ENGINE_MATCHES_CACHED && f->is_probe);
  return (f->known & ENGINE_FACT_LIST) && proposed && f->attempt > 1;
}

/* False: a fact is needed. */
static bool qplan_matches(const engine_facts *f, engine_plan *p) {
  if (!f->selects) return qplan_match(p, ENGINE_MATCHES_ALL, "there is no selection");
  if (f->known & ENGINE_FACT_LIST) return qplan_match(p, f->listed_by, f->listed_why);
  if (!(f->known & ENGINE_FACT_CACHE)) return qplan_need(p, ENGINE_FACT_CACHE);
  if (f->cached)
    return qplan_match(p, ENGINE_MATCHES_CACHED, "the filter was used before, and nothing was written since");
  if (qplan_may_postfilter(f) && qplan_try_known_share(f, p)) return true;
  if (!f->stats.scans && !(f->known & ENGINE_FACT_PROPOSALS)) return qplan_need(p, ENGINE_FACT_PROPOSALS);
  if (f->mode == LODE_BY_TEXT && !f->proposes)
    return qplan_match(p, ENGINE_MATCHES_POST,
                       "no index has a short list: the records that have the words are evaluated");
  bool post = qplan_may_postfilter(f) && qplan_try_estimate(f, p);
  if (qplan_may_take_proposals(f))
    return qplan_match(p, ENGINE_MATCHES_PROPOSED, "the filter is one condition of the index: nearly all match");
  if (post) return true;
  if (f->by_ids) return qplan_match(p, ENGINE_MATCHES_IDS, "the request names them");
  if (f->proposes) return qplan_match(p, ENGINE_MATCHES_INDEX, "the index proposes few enough to evaluate them all");
  return qplan_match(p, ENGINE_MATCHES_SCAN,
                     "no index has a short list, and trying more of the nearest records costs more");
}

static void qplan_candidates(const engine_facts *f, engine_plan *p) {
  size_t more = QPLAN_MORE;
  for (unsigned i = 0; i < f->attempt; i++) more = qplan_mul(more, QPLAN_MORE_GROWTH);
  bool post = p->matches == ENGINE_MATCHES_POST;
  p->candidates = qplan_add(f->want, post ? p->candidates : more);
  p->per_segment = f->attempt || post ? p->candidates : f->want;
}

/* ---- The vectors ---- */

static bool qplan_search(engine_plan *p, engine_vectors vectors, const char *why) {
  p->vectors = vectors;
  p->vectors_why = why;
  return true;
}

/* Is reading the listed records one by one cheaper than searching? False: a fact is needed. */
static bool qplan_is_few(const engine_facts *f, engine_plan *p, bool *few) {
  *few = f->listed <= QPLAN_FEW_RECORDS;
  if (*few) return true;
  if (!(f->known & ENGINE_FACT_MANIFEST)) return qplan_need(p, ENGINE_FACT_MANIFEST);
  if (f->published)
    *few = !f->loaded && f->listed <= QPLAN_FEW_WHEN_COLD;
  else
    *few = f->listed < f->records / (f->loaded ? QPLAN_FEW_IN_MEMORY : QPLAN_FEW_ON_DISK);
  return true;
}

static bool qplan_vectors(const engine_facts *f, engine_plan *p) {
  bool few = false, lists = engine_plan_lists(p);
  if (f->mode == LODE_BY_TEXT) return qplan_search(p, ENGINE_VECTORS_NONE, "the query has no vector");
  if (!f->has_vectors) return qplan_search(p, ENGINE_VECTORS_NONE, "the collection has no vectors");
  if (lists && f->listed == 0) return qplan_search(p, ENGINE_VECTORS_NONE, "no record is selected");
  if (lists && !qplan_is_few(f, p, &few)) return false;
  if (few) return qplan_search(p, ENGINE_VECTORS_BY_RECORD, "few records are selected");
  if (f->attempt + 1 == ENGINE_PLAN_ATTEMPTS)
    return qplan_search(p, ENGINE_VECTORS_STREAM, "the attempts before found too few");
  if (!(f->known & ENGINE_FACT_SNAPSHOT)) return qplan_need(p, ENGINE_FACT_SNAPSHOT);
  if (!f->fits) return qplan_search(p, ENGINE_VECTORS_STREAM, "the vectors do not fit in memory");
  if (f->exact) return qplan_search(p, ENGINE_VECTORS_SCAN, "exact search was asked for");
  if (f->zero_query) return qplan_search(p, ENGINE_VECTORS_SCAN, "all vectors are equally far from a zero vector");
  if (!f->indexed) return qplan_search(p, ENGINE_VECTORS_SCAN, "there is no segment yet");
  if (p->per_segment > f->indexed / QPLAN_MAX_INDEXED_K)
    return qplan_search(p, ENGINE_VECTORS_SCAN, "a large part of all vectors is asked for");
  if (!f->tuned && f->indexed <= segments_limits.exact_rows)
    return qplan_search(p, ENGINE_VECTORS_CODES, "there are so few vectors that all codes are scanned");
  return qplan_search(p, ENGINE_VECTORS_INDEX,
                      f->tuned ? "an effort or a recall is asked for" : "segments have graphs");
}

engine_plan engine_plan_make(const engine_facts *f) {
  engine_plan p = {.text = f->mode != LODE_BY_VECTOR, .fuse = f->mode == LODE_HYBRID};
  if (!qplan_matches(f, &p)) return p;
  qplan_candidates(f, &p);
  if (engine_plan_lists(&p) && !(f->known & ENGINE_FACT_LIST)) {
    p.need = ENGINE_FACT_LIST;
    return p;
  }
  (void)qplan_vectors(f, &p);
  return p;
}

/* ---- Sizes ---- */

size_t engine_plan_group(size_t k) {
  size_t group = k ? QPLAN_GROUP_ROWS / k : QPLAN_GROUP_QUERIES;
  if (group < 1) return 1;
  return group < QPLAN_GROUP_QUERIES ? group : QPLAN_GROUP_QUERIES;
}

size_t engine_plan_probes(size_t probes) { return probes < QPLAN_MAX_PROBES ? probes : QPLAN_MAX_PROBES; }

size_t engine_plan_max_proposals(uint64_t records, bool is_probe, bool reuse) {
  size_t all = (size_t)records, max = all / QPLAN_MAX_SHARE + QPLAN_MIN_PROPOSALS;
  if (!reuse || !is_probe || max >= QPLAN_MAX_REUSED_LIST) return max;
  return all < QPLAN_MAX_REUSED_LIST ? all : QPLAN_MAX_REUSED_LIST;
}

bool engine_plan_wants_fewer(size_t proposals) { return proposals > QPLAN_MIN_PROPOSALS; }

/* ---- Names ---- */

const char *engine_matches_name(engine_matches matches) {
  static const char *const names[] = {
      "all",           "post-filter", "cached list", "list of ids", "list proposed by the index", "list by the index",
      "list by a scan"};
  return names[matches];
}

const char *engine_vectors_name(engine_vectors vectors) {
  static const char *const names[] = {"none",          "record by record",    "vector index",
                                      "scan of codes", "scan of all vectors", "scan of the truth file"};
  return names[vectors];
}
