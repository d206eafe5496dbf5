/* meta.h - a record's metadata: its values, its checks, its merging.
 *
 * Metadata is one JSON object: strings, 64-bit integers, doubles, booleans, or arrays of one of those kinds
 * (integers and doubles may share an array). An empty array is allowed; it has no values.
 */
#ifndef LODE_META_H
#define LODE_META_H

#include "json.h"

typedef enum lode__value_type { LODE__VALUE_INT, LODE__VALUE_DOUBLE, LODE__VALUE_STRING, LODE__VALUE_BOOL } lode__value_type;
typedef struct lode__value {
  lode__value_type type;
  int64_t i;   /* also bool */
  double d;
  lode_str s;
} lode__value;

/* Total order: bool < number < string; int64 and double compared exactly, strings by bytes. */
int lode__value_cmp(const lode__value *a, const lode__value *b);
/* Of one kind (both booleans, both numbers, both strings): only then they may be equal or ordered for a filter. */
bool lode__value_comparable(const lode__value *a, const lode__value *b);
/* Sorts and removes equal values (the first of them stays); *n is how many are left. */
lode_status lode__values_sort(lode__value *values, size_t *n, lode_error *err);
/* As a JSON scalar. */
void lode__value_put(lode__buf *buf, const lode__value *value);
/* The value of a scalar node; false for other nodes. */
bool lode__value_of(const lode__json *json, uint32_t node, lode__value *value);

/* Parses and checks a record's metadata. allow_null: values may be null (updates). Duplicate keys, other kinds of
 * values and more than LODE_MAX_METADATA_BYTES are refused with LODE_REFUSED. On success `parsed` holds it. */
lode_status lode__meta_check(lode__json *parsed, lode_str text, bool allow_null, lode_error *err);

/* Parses metadata that was checked before it was stored: anything but an object is LODE_CORRUPT. */
lode_status lode__meta_parse_stored(lode__json *parsed, lode_str text, lode_error *err);

/* Calls fn for each scalar value and each distinct element of each array. Stops at the first status that is not OK. */
typedef lode_status lode__value_fn(void *ctx, lode_str key, const lode__value *value, lode_error *err);
lode_status lode__meta_values(const lode__json *parsed, lode__value_fn *fn, void *ctx, lode_error *err);

/* Appends old (NULL: none) merged with change as compact JSON: keys of change replace, null removes. Keys of old keep
 * their places, new ones follow. *empty says that no key is left (then nothing is appended). LODE_REFUSED when the
 * result is longer than LODE_MAX_METADATA_BYTES. */
lode_status lode__meta_merge(const lode__json *old, const lode__json *change, lode__buf *out, bool *empty,
                             lode_error *err);

#endif
