/* SPDX-License-Identifier: Apache-2.0 */
/* meta.h - a record's metadata: values, checks, merging.
 *
 * Metadata is one JSON object: strings, 64-bit integers, doubles, booleans, or arrays of one of those kinds
 * (integers and doubles may share an array). An empty array is allowed; it has no values.
 */
#ifndef LODE_BASE_META_H
#define LODE_BASE_META_H

#include "base/json.h"

typedef enum meta_type { META_INT, META_DOUBLE, META_STRING, META_BOOL } meta_type;
typedef struct meta_value {
  meta_type type;
  int64_t i; /* also booleans */
  double d;
  lode_str s;
} meta_value;

/* Total order: bool < number < string; int64 and double compared exactly, strings by bytes. */
int meta_value_cmp(const meta_value *a, const meta_value *b);
/* Of the same kind (both booleans, both numbers, both strings)? Only then can a filter find them equal or ordered. */
bool meta_value_comparable(const meta_value *a, const meta_value *b);
/* Sorts and removes duplicates (the first one is kept); *n is the number left. */
LODE_MUST lode_status meta_values_sort(meta_value *values, size_t *n, lode_error *err);
/* As a JSON scalar. */
void meta_value_put(strbuf *buf, const meta_value *value);
/* The value of a scalar node; false for other nodes. */
LODE_MUST bool meta_value_of(const json_doc *json, uint32_t node, meta_value *value);

/* Parses and checks a record's metadata. allow_null: values may be null (updates). Duplicate keys, other kinds of
 * values and more than LODE_MAX_METADATA_BYTES are LODE_REFUSED. On success `parsed` holds the result. */
LODE_MUST lode_status meta_check(json_doc *parsed, lode_str text, bool allow_null, lode_error *err);

/* Parses metadata that was checked before it was stored: anything but an object is LODE_CORRUPT. */
LODE_MUST lode_status meta_parse_stored(json_doc *parsed, lode_str text, lode_error *err);

/* Calls fn for each scalar value and each distinct element of each array. Stops at the first status other than OK. */
typedef lode_status meta_value_fn(void *ctx, lode_str key, const meta_value *value, lode_error *err);
LODE_MUST lode_status meta_each_value(const json_doc *parsed, meta_value_fn *fn, void *ctx, lode_error *err);

/* Appends `old` (may be NULL) merged with `change` as compact JSON: keys of `change` replace, null removes. Keys of
 * `old` keep their positions, new ones follow. *empty: no key is left, and nothing is appended. LODE_REFUSED if the
 * result is longer than LODE_MAX_METADATA_BYTES. */
LODE_MUST lode_status meta_merge(const json_doc *old, const json_doc *change, strbuf *out, bool *empty,
                                 lode_error *err);

#endif
