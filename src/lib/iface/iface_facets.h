/* SPDX-License-Identifier: Apache-2.0 */
/* iface_facets.h - counts of values, from which both engines make their facet lists.
 *
 * Equal numbers are one value (1 and 1.0), written as an integer if it is one.
 */
#ifndef LODE_IFACE_IFACE_FACETS_H
#define LODE_IFACE_IFACE_FACETS_H

#include "base/meta.h"
#include "iface/iface.h"

typedef struct iface_facet_count iface_facet_count;

typedef struct iface_facets {
  iface_facet_count *counts; /* in order of first appearance */
  size_t n, cap;
  size_t *slots;  /* open addressing: position + 1, or 0 */
  size_t n_slots; /* a power of two */
  size_t last;    /* the value counted last: an index yields equal values in a row */
  size_t limit_bytes;
  mem_arena arena;
} iface_facets;

void iface_facets_init(iface_facets *t, uint64_t limit_bytes);
/* Removes all values. */
void iface_facets_clear(iface_facets *t);
void iface_facets_release(iface_facets *t);
/* Adds n to the count of a value. LODE_LIMIT: the values need more memory than the limit. */
LODE_MUST lode_status iface_facets_add(iface_facets *t, const meta_value *value, uint64_t n, lode_error *err);
/* The `limit` most frequent values (0: all), the most frequent one first, equally frequent ones in order of value. */
LODE_MUST lode_status iface_facets_list(iface_facets *t, size_t limit, lode_facet_list **list, lode_error *err);

#endif
