/* SPDX-License-Identifier: Apache-2.0 */
/* paged.h - a range of bytes in memory that is loaded page by page on demand.
 *
 * `data` is anonymous memory of the size of the range; `loaded` has a bit for each page of 1 << page_bits bytes;
 * `missing` counts the pages that are not loaded. Before bytes are read, index_paged_need() must be called: it checks
 * `missing` if everything is loaded (a graph being built, a preloaded segment), the bits if something is not, and
 * otherwise calls the loader, which reads, checks and publishes the pages.
 */
#ifndef LODE_INDEX_PAGED_H
#define LODE_INDEX_PAGED_H

#include "base/base.h"

#include <stdatomic.h>

enum { INDEX_PAGE_BITS = 12, INDEX_PAGE_BYTES = 1 << INDEX_PAGE_BITS };

typedef struct index_paged index_paged;
struct index_paged {
  const unsigned char *data;
  uint64_t bytes;
  _Atomic uint64_t missing;
  _Atomic uint64_t *loaded; /* NULL: nothing is ever missing */
  unsigned page_bits;
  /* Loads pages [first, last]; LODE_CORRUPT, LODE_IO, LODE_NOMEM when that fails. */
  lode_status (*load)(index_paged *paged, uint64_t first, uint64_t last, lode_error *err);
  void *owner; /* for the loader */
};

static inline bool index_paged_has(const index_paged *paged, uint64_t page) {
  return (atomic_load_explicit(&paged->loaded[page / 64], memory_order_acquire) >> (page % 64)) & 1;
}

/* Is everything loaded? It then stays in memory until the search ends. */
static inline bool index_paged_complete(const index_paged *paged) {
  return atomic_load_explicit(&paged->missing, memory_order_acquire) == 0;
}

/* For the loader: marks pages of one word of `loaded` as loaded, which they were not before. */
static inline void index_paged_publish(index_paged *paged, uint64_t word, uint64_t bits) {
  atomic_fetch_or_explicit(&paged->loaded[word], bits, memory_order_release);
  atomic_fetch_sub_explicit(&paged->missing, (uint64_t)__builtin_popcountll(bits), memory_order_release);
}

/* After LODE_OK the bytes [at, at + n) may be read; n > 0, the range is within the section. */
LODE_MUST static inline lode_status index_paged_need(index_paged *paged, uint64_t at, uint64_t n, lode_error *err) {
  INVARIANT_CHECKED(n > 0 && n <= paged->bytes && at <= paged->bytes - n);
  if (index_paged_complete(paged)) return LODE_OK;
  uint64_t first = at >> paged->page_bits, last = (at + n - 1) >> paged->page_bits;
  for (uint64_t p = first; p <= last; p++) {
    if (!index_paged_has(paged, p)) return paged->load(paged, p, last, err);
  }
  return LODE_OK;
}

#endif
