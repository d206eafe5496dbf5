/* filter.h - filters on metadata and documents: parsed once, judged record by record.
 *
 * The judge is this module and nothing else. Indexes only propose candidates (through probes), so that an index
 * can make a query fast and never wrong. No recursion: filters compile to a flat program of tests with jumps. The
 * language is described in lode.h under "Filters".
 */
#ifndef LODE_FILTER_H
#define LODE_FILTER_H

#include "base/meta.h"

typedef struct lode__filter lode__filter;

/* Absent texts mean "everything". Error texts name the unknown operator, key or value. */
lode_status lode__filter_parse(lode_str where, lode_str where_document, lode__filter **filter, lode_error *err);
void lode__filter_free(lode__filter *filter);

bool lode__filter_is_true(const lode__filter *filter);        /* matches every record */
bool lode__filter_needs_metadata(const lode__filter *filter);
bool lode__filter_needs_document(const lode__filter *filter);

/* Scratch for judging, one per thread. The filter must outlive it. */
typedef struct lode__judge lode__judge;
lode_status lode__judge_new(const lode__filter *filter, lode__judge **judge, lode_error *err);
void lode__judge_free(lode__judge *judge);
/* metadata: JSON object or absent. document: absent (data NULL) when the record has none or it is not needed.
 * LODE_LIMIT when a regular expression takes too much work; LODE_CORRUPT for metadata that is no JSON object and (where a
 * regular expression looks at it) a document that is not UTF-8. */
lode_status lode__judge_match(lode__judge *judge, lode_str metadata, lode_str document, bool *match,
                              lode_error *err);

/* ---- Probes: what an index on (key, value) may be asked ---- */

/* A condition that every matching record fulfils: its metadata has `key` with a value (or an array element) that
 * equals one of `values` (n_values > 0, sorted, distinct), or lies in the range (n_values == 0; one bound at least; two
 * are both numbers, of either type, or both strings; where one is missing, the range ends with the values of that kind;
 * a range may be empty). Equal and ordered as by meta_value_cmp. */
typedef struct lode__probe {
  lode_str key;
  const meta_value *values;
  size_t n_values;
  bool has_low, has_high, low_open, high_open; /* open: the bound itself is outside */
  meta_value low, high;
} lode__probe;

#define LODE__MAX_PROBES 64
/* The probes of a filter, all of which hold for every match ($or of equalities on one key is one probe). May be
 * none. They belong to the filter. */
size_t lode__filter_probes(const lode__filter *filter, const lode__probe **probes);
/* Is its only probe as much as the whole filter? Then nearly all that an index proposes matches; not all: arrays. */
bool lode__filter_is_probe(const lode__filter *filter);

#endif
