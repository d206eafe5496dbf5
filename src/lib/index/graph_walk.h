/* SPDX-License-Identifier: Apache-2.0 */
/* graph_walk.h - best-first (beam) search over a graph of codes, for queries and for the construction of the graph.
 *
 * A pool holds the `beam` best rows seen, sorted. The best row that is not expanded yet is expanded, which offers its
 * neighbours to the pool, until the best `effort` of them (usually all) are expanded. Entries of the pool are 64-bit
 * numbers: the key as an order-preserving integer, then the ordinal, then the bit "expanded". So ties are broken by
 * ordinal, and a walk is the same on every machine. Links are rows of `width` ordinals; the first that is not below n
 * ends a row, so forged links end it too. In a file an ordinal has as many bits as the number of rows needs, and one
 * whose bits are all set is no link: 16 to 20 bits instead of 32 make links of 60,000 to a million rows half as large.
 */
#ifndef LODE_INDEX_GRAPH_WALK_H
#define LODE_INDEX_GRAPH_WALK_H

#include "kernel/quant.h"
#include "index/index_tuning.h"
#include "index/paged.h"

#define INDEX_NO_LINK 0xFFFFFFFFu
#define INDEX_MAX_ROWS 0x7FFFFFFFu /* ordinals have 31 bits */

/* Rows of links: `width` numbers of `bits` bits, lowest first, in whole bytes. */
typedef struct index_graph_links {
  const unsigned char *data;
  uint32_t width, bits;
} index_graph_links;

/* The bits of a link of n rows: the greatest number of so many bits is no ordinal. */
static inline uint32_t index_link_bits(uint32_t n) {
  uint32_t bits = 8;
  while (bits < 31 && ((uint32_t)1 << bits) - 1 < n) bits++;
  return bits;
}
static inline size_t index_link_row_bytes(uint32_t width, uint32_t bits) {
  size_t bytes = ((size_t)width * bits + 7) / 8;
  return bytes < 8 ? 8 : bytes;
}
/* What stands where there is no link. */
static inline uint32_t index_link_none(uint32_t bits) { return INDEX_NO_LINK >> (32 - bits); }
/* Unpacks a row of links. */
void index_unpack_links(const index_graph_links *links, uint32_t row, uint32_t *out);
/* Packs `width` links into index_link_row_bytes(). */
void index_pack_links(const uint32_t *links, uint32_t width, uint32_t bits, unsigned char *out);

typedef struct index_graph_view {
  index_paged *rows, *links;
  size_t stride;
  uint32_t n, dim, width;
  uint32_t link_bits;      /* 32: of a graph in memory */
  uint32_t n_entries;      /* number of entry points */
  const uint32_t *entries; /* NULL: ordinals 0 to n_entries - 1 */
  uint32_t entry_climbs;   /* entry climbs before the walk, see graph.h */
  const float *extra;      /* construction only, may be NULL: an additional dimension of each row, see graph.c */
} index_graph_view;

typedef struct index_walk_count {
  uint64_t distances, hops;
} index_walk_count;

/* Scratch memory of one thread; valid when zeroed. */
typedef struct index_walk_scratch {
  uint64_t *pool;
  size_t pool_cap, n, beam, effort, next;
  uint64_t *visited; /* bitmap of rows; all zero between walks */
  size_t visited_words;
  uint32_t *touched; /* the rows whose bit is set */
  size_t n_touched, touched_cap;
  uint32_t *links; /* a row of them, unpacked */
  size_t links_cap;
  index_walk_count count; /* accumulates */
} index_walk_scratch;

typedef struct index_walk_query {
  quant_query code;
  float extra; /* construction only */
} index_walk_query;

static inline uint32_t index_pool_ordinal(uint64_t entry) { return (uint32_t)entry >> 1; }

/* Asks for the cache lines of a row, or a row of links. */
static inline void index_prefetch_row(const unsigned char *row, size_t stride) {
  const unsigned char *p = (const unsigned char *)((uintptr_t)row & ~(uintptr_t)63), *end = row + stride;
  for (unsigned i = 0; i < INDEX_WALK_LINES_AHEAD && p < end; i++, p += 64) {
    __builtin_prefetch(p);
    atomic_signal_fence(memory_order_seq_cst); /* gcc 12 is known to drop loops of nothing but prefetches */
  }
}

LODE_MUST lode_status index_walk_scratch_init(index_walk_scratch *scratch, uint32_t n, size_t beam, lode_error *err);
void index_walk_scratch_release(index_walk_scratch *scratch);
/* A walk among allowed rows. Only rows whose bit is set in `allowed` (by ordinal) enter the pool; others are stepped
 * over: their neighbours are considered instead. Starts near the query and, as the allowed rows may be elsewhere, at
 * some seeds. If hardly any row near the query is allowed, the nearest ones are at the edge of a distant region, where
 * a greedy walk goes astray: then all seeds (otherwise only a few) and distant_beam are used; with distant_beam 0 such
 * a search is given up, with an empty pool. scratch must have been initialised for the larger beam. */
typedef struct index_walk_filter {
  const uint64_t *allowed;
  const uint32_t *seeds;
  size_t n_seeds, beam, distant_beam;
} index_walk_filter;
LODE_MUST lode_status index_walk_allowed(const index_graph_view *view, const index_walk_query *query,
                                         const index_walk_filter *filter, index_walk_scratch *scratch, lode_error *err);
/* Leaves the pool sorted: scratch->pool[0 .. scratch->n). Ends when the `effort` best are expanded. scratch must have
 * been initialised for at least view->n rows and beam. */
LODE_MUST lode_status index_walk(const index_graph_view *view, const index_walk_query *query, size_t beam,
                                 size_t effort, index_walk_scratch *scratch, lode_error *err);

#endif
