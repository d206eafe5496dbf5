/* filter.h - filters on metadata and documents: parsed once, judged record by record.
 *
 * The judge is this module and nothing else. Indexes only propose candidates (through probes), so that an index
 * can make a query fast and never wrong. No recursion: filters compile to a flat program of tests with jumps. The
 * language is described in lode.h under "Filters".
 */
#ifndef LODE_QUERY_FILTER_H
#define LODE_QUERY_FILTER_H

#include "base/meta.h"

typedef struct filter_expr filter_expr;

/* Absent texts mean "everything". Error texts name the unknown operator, key or value. */
lode_status filter_parse(lode_str where, lode_str where_document, filter_expr **filter, lode_error *err);
void filter_free(filter_expr *filter);

bool filter_is_true(const filter_expr *filter);        /* matches every record */
bool filter_needs_metadata(const filter_expr *filter);
bool filter_needs_document(const filter_expr *filter);

/* Scratch for judging, one per thread. The filter must outlive it. */
typedef struct filter_eval filter_eval;
lode_status filter_eval_new(const filter_expr *filter, filter_eval **judge, lode_error *err);
void filter_eval_free(filter_eval *judge);
/* metadata: JSON object or absent. document: absent (data NULL) when the record has none or it is not needed.
 * LODE_LIMIT when a regular expression takes too much work; LODE_CORRUPT for metadata that is no JSON object and (where a
 * regular expression looks at it) a document that is not UTF-8. */
lode_status filter_eval_match(filter_eval *judge, lode_str metadata, lode_str document, bool *match,
                              lode_error *err);

/* ---- Probes: what an index on (key, value) may be asked ---- */

/* A condition that every matching record fulfils: its metadata has `key` with a value (or an array element) that
 * equals one of `values` (n_values > 0, sorted, distinct), or lies in the range (n_values == 0; one bound at least; two
 * are both numbers, of either type, or both strings; where one is missing, the range ends with the values of that kind;
 * a range may be empty). Equal and ordered as by meta_value_cmp. */
typedef struct filter_probe {
  lode_str key;
  const meta_value *values;
  size_t n_values;
  bool has_low, has_high, low_open, high_open; /* open: the bound itself is outside */
  meta_value low, high;
} filter_probe;

#define FILTER_MAX_PROBES 64
/* The probes of a filter, all of which hold for every match ($or of equalities on one key is one probe). May be
 * none. They belong to the filter. */
size_t filter_get_probes(const filter_expr *filter, const filter_probe **probes);
/* Is its only probe as much as the whole filter? Then nearly all that an index proposes matches; not all: arrays. */
bool filter_is_probe(const filter_expr *filter);

#endif
