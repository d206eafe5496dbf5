/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h - filters on metadata and documents: parsed once, evaluated on each record.
 *
 * Only this module decides whether a record matches. Indexes merely propose candidates (through probes), so that an
 * index can make a query fast but never wrong. No recursion: filters compile to a flat program of tests with jumps. The
 * language is described in lode.h under "Filters".
 */
#ifndef LODE_QUERY_FILTER_H
#define LODE_QUERY_FILTER_H

#include "base/meta.h"

typedef struct filter_expr filter_expr;

/* Absent texts match everything. Error texts name the unknown operator, key or value. */
LODE_MUST lode_status filter_parse(lode_str where, lode_str where_document, filter_expr **filter, lode_error *err);
void filter_free(filter_expr *filter);

bool filter_is_true(const filter_expr *filter); /* matches every record */
bool filter_needs_metadata(const filter_expr *filter);
bool filter_needs_document(const filter_expr *filter);

/* Evaluator with its scratch memory, one per thread. The filter must outlive it. */
typedef struct filter_eval filter_eval;
LODE_MUST lode_status filter_eval_new(const filter_expr *filter, filter_eval **eval, lode_error *err);
void filter_eval_free(filter_eval *eval);
/* metadata: JSON object or absent. document: absent (data NULL) if the record has none or it is not needed. LODE_LIMIT
 * if a regular expression takes too much work; LODE_CORRUPT if the metadata is not a JSON object, or if a regular
 * expression is evaluated on a document that is not UTF-8. */
LODE_MUST lode_status filter_eval_match(filter_eval *eval, lode_str metadata, lode_str document, bool *match,
                                        lode_error *err);

/* ---- Probes: conditions that an index on (key, value) can answer ---- */

/* The metadata has `key` with a value (or an array element) that equals one of `values` (n_values > 0, sorted,
 * distinct), or lies in a range (n_values == 0). A range has at least one bound; two bounds are both numbers, of either
 * type, or both strings; without a bound, the range extends to the end of the values of that kind; a range may be
 * empty. Equality and order are those of meta_value_cmp(). */
typedef struct filter_condition {
  lode_str key;
  const meta_value *values;
  size_t n_values;
  bool has_low, has_high, low_open, high_open; /* open: the bound itself is excluded */
  meta_value low, high;
} filter_condition;

/* Every matching record satisfies at least one of the conditions: more than one come from $or. */
typedef struct filter_probe {
  filter_condition *any;
  size_t n; /* 1 or more */
} filter_probe;

#define FILTER_MAX_PROBES 64
#define FILTER_MAX_CONDITIONS 64 /* of a probe; equalities on one key are one */
/* The probes of a filter, possibly none; a match satisfies all of them. They belong to the filter. */
size_t filter_get_probes(const filter_expr *filter, const filter_probe **probes);
/* Is its only probe equivalent to the whole filter? Then nearly everything that an index proposes matches; not all of
 * it, because of arrays. */
bool filter_is_probe(const filter_expr *filter);

#endif
