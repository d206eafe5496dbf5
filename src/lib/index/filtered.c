/* SPDX-License-Identifier: Apache-2.0 */
/* filtered.c - see filtered.h.
 *
 * Invariants: `rows` and `ordinal_of` are complete when index_filtered_new() returns; a row of `links` is complete when
 * its bit in `loaded` is set, which is done under the lock. It is built before, without it. The codes are copies of
 * pages that were checked; links of the segment are checked when they are followed.
 */
#include "index/filtered.h"

#include <stdlib.h>

_Static_assert(INDEX_FILTERED_WIDTH * sizeof(uint32_t) == 128, "a row of links is a page of 1 << ROW_BITS bytes");

enum {
  REACH_TABLE = 2 * INDEX_REACH_MAX, /* places of the hash table of visited rows */
  ROW_BITS = 7,                      /* a row of links is a page of its own, built when a walk first visits it */
  ROW_BYTES = 1 << ROW_BITS,         /* size of a row of links */
};

uint64_t index_filtered_bytes(const index_segment *segment, uint32_t n) {
  uint64_t words = (uint64_t)segment->info.n / 64 + 1;
  return words * 12 + (uint64_t)n * (segment->stride + ROW_BYTES + sizeof(uint32_t)) + n / 8;
}

static bool filtered_has(const index_filtered *m, uint32_t ordinal) {
  return m->ordinals[ordinal / 64] >> (ordinal % 64) & 1;
}

static uint32_t filtered_rank_of(const index_filtered *m, uint32_t ordinal) {
  uint64_t below = m->ordinals[ordinal / 64] & (((uint64_t)1 << (ordinal % 64)) - 1);
  return m->before[ordinal / 64] + (uint32_t)__builtin_popcountll(below);
}

/* Are these fewer matches among the rows seen than expected by chance? */
static bool filtered_too_few(const index_filtered *m, uint64_t found, uint64_t seen) {
  return found * m->segment->info.n <= seen * m->n;
}

static lode_status filtered_links_of(index_segment *s, uint32_t ordinal, uint32_t *links, lode_error *err) {
  index_graph_links packed = {.data = s->links.data, .width = s->info.degree, .bits = s->info.link_bits};
  TRY(index_paged_need(&s->links, (uint64_t)ordinal * s->link_row_bytes, s->link_row_bytes, err));
  index_unpack_links(&packed, ordinal, links);
  return LODE_OK;
}

/* ---- Links, built on demand ---- */

typedef struct filtered_reach {
  uint32_t queue[INDEX_REACH_MAX];
  uint32_t table[REACH_TABLE]; /* ordinal + 1; 0: free */
  size_t n, seen;
  uint32_t found[INDEX_FILTERED_WIDTH]; /* ranks of matches, the nearest by links first */
  uint32_t n_found;
  uint32_t links[INDEX_MAX_DEGREE]; /* of one row of the segment */
} filtered_reach;

/* table: REACH_TABLE places, of which at most INDEX_REACH_MAX are used. */
static bool filtered_is_new(uint32_t *table, uint32_t ordinal) {
  uint32_t at = ordinal * 2654435761u % REACH_TABLE;
  for (; table[at]; at = (at + 1) % REACH_TABLE)
    if (table[at] == ordinal + 1) return false;
  table[at] = ordinal + 1;
  return true;
}

/* Breadth-first search from an ordinal over rows that do not match; paths end at matches, which are collected. */
static lode_status filtered_find_near(index_filtered *m, uint32_t ordinal, filtered_reach *r, lode_error *err) {
  index_segment *s = m->segment;
  memset(r->table, 0, sizeof r->table);
  r->n = r->seen = r->n_found = 0;
  r->queue[r->n++] = ordinal;
  (void)filtered_is_new(r->table, ordinal);
  for (size_t i = 0; i < r->n; i++) {
    const uint32_t *links = r->links;
    TRY(filtered_links_of(s, r->queue[i], r->links, err));
    for (uint32_t j = 0; j < s->info.degree && links[j] < s->info.n; j++) {
      if (r->n_found == INDEX_FILTERED_WIDTH || r->seen == INDEX_REACH_MAX - 1) return LODE_OK;
      if (!filtered_is_new(r->table, links[j])) continue;
      r->seen++;
      if (filtered_has(m, links[j]))
        r->found[r->n_found++] = filtered_rank_of(m, links[j]);
      else
        r->queue[r->n++] = links[j];
    }
  }
  return LODE_OK;
}

static void filtered_put_row(index_filtered *m, uint64_t rank, const filtered_reach *r) {
  uint32_t *out = (uint32_t *)(void *)((unsigned char *)(uintptr_t)m->links.data + rank * ROW_BYTES);
  for (uint32_t i = 0; i < INDEX_FILTERED_WIDTH; i++) out[i] = i < r->n_found ? r->found[i] : INDEX_NO_LINK;
  index_paged_publish(&m->links, rank / 64, (uint64_t)1 << (rank % 64));
}

/* Called during a search, inside the segment. Of threads that build the same row, the first stores it. */
static lode_status filtered_load(index_paged *paged, uint64_t first, uint64_t last, lode_error *err) {
  index_filtered *m = paged->owner;
  lode_status st = LODE_OK;
  filtered_reach *r = mem_alloc(sizeof *r);
  if (!r) return err_nomem(err);
  for (uint64_t rank = first; rank <= last && st == LODE_OK; rank++) {
    if (index_paged_has(paged, rank)) continue;
    st = filtered_find_near(m, m->ordinal_of[rank], r, err);
    if (st != LODE_OK) break;
    pthread_mutex_lock(&m->lock);
    if (!index_paged_has(paged, rank)) filtered_put_row(m, rank, r);
    pthread_mutex_unlock(&m->lock);
  }
  mem_free(r);
  return st;
}

/* ---- Construction ---- */

static lode_status filtered_mark_ordinals(index_filtered *m, const uint64_t *slots, lode_error *err) {
  index_segment *s = m->segment;
  uint32_t n = s->info.n, marked = 0;
  for (uint32_t base = 0; base < n; base += 64) {
    uint64_t bits = slots[base / 64];
    if (n - base < 64) bits &= ((uint64_t)1 << (n - base)) - 1;
    for (; bits; bits &= bits - 1) {
      uint32_t slot = base + (uint32_t)__builtin_ctzll(bits), ordinal = slot;
      if (s->info.kind == INDEX_GRAPH) {
        TRY(index_paged_need(&s->ordinals, (uint64_t)slot * 4, 4, err));
        memcpy(&ordinal, s->ordinals.data + (size_t)slot * 4, sizeof ordinal);
      }
      if (ordinal >= n || filtered_has(m, ordinal))
        return err_set(err, LODE_CORRUPT,
                       "damaged index segment (ordinal of a slot): it will be rebuilt from the records");
      m->ordinals[ordinal / 64] |= (uint64_t)1 << (ordinal % 64);
      marked++;
    }
  }
  return marked == m->n ? LODE_OK : err_set(err, LODE_INVALID, "the filter has another number of matches");
}

static lode_status filtered_copy_rows(index_filtered *m, lode_error *err) {
  index_segment *s = m->segment;
  uint32_t words = s->info.n / 64 + 1, rank = 0;
  unsigned char *to = (unsigned char *)(uintptr_t)m->rows.data;
  for (uint32_t w = 0; w < words; w++) {
    m->before[w] = rank;
    for (uint64_t bits = m->ordinals[w]; bits; bits &= bits - 1, rank++) {
      uint32_t ordinal = w * 64 + (uint32_t)__builtin_ctzll(bits);
      uint64_t at = (uint64_t)ordinal * s->stride;
      TRY(index_paged_need(&s->rows, at, s->stride, err));
      memcpy(to + (size_t)rank * s->stride, s->rows.data + at, s->stride);
      m->ordinal_of[rank] = ordinal;
    }
  }
  return LODE_OK;
}

/* The segment's entries are spread over all parts of the data. For each of them the match nearest to it by links is
 * recorded, so that isolated regions are found however few of their rows match. */
static lode_status filtered_probe_entries(index_filtered *m, lode_error *err) {
  lode_status st = LODE_OK;
  filtered_reach *r = mem_alloc(sizeof *r);
  if (!r) return err_nomem(err);
  for (uint32_t i = 0; i < m->segment->info.n_entries && st == LODE_OK; i++) {
    st = filtered_find_near(m, i, r, err);
    if (st != LODE_OK) break;
    m->stand_in[i] = filtered_has(m, i) ? filtered_rank_of(m, i) : r->n_found ? r->found[0] : INDEX_NO_LINK;
    m->sparse[i] = filtered_too_few(m, 2 * (uint64_t)r->n_found + INDEX_FILTERED_SLACK, r->seen);
  }
  mem_free(r);
  return st;
}

static lode_status filtered_alloc(index_filtered *m, lode_error *err) {
  size_t words = (size_t)m->segment->info.n / 64 + 1, links = (size_t)m->n * ROW_BYTES;
  m->ordinals = mem_calloc(words, sizeof *m->ordinals);
  m->before = mem_calloc(words, sizeof *m->before);
  m->ordinal_of = mem_calloc(m->n, sizeof *m->ordinal_of);
  m->stand_in = mem_calloc(m->segment->info.n_entries, sizeof *m->stand_in);
  m->sparse = mem_calloc(m->segment->info.n_entries, sizeof *m->sparse);
  m->rows = (index_paged){.data = mem_alloc_aligned(64, (size_t)m->n * m->segment->stride),
                          .bytes = (uint64_t)m->n * m->segment->stride};
  m->links = (index_paged){.data = mem_alloc_aligned(INDEX_PAGE_BYTES, links),
                           .bytes = links,
                           .page_bits = ROW_BITS,
                           .load = filtered_load,
                           .owner = m,
                           .missing = m->n,
                           .loaded = mem_calloc((size_t)m->n / 64 + 1, sizeof(uint64_t))};
  bool ok = m->ordinals && m->before && m->ordinal_of && m->stand_in && m->sparse && m->rows.data && m->links.data &&
            m->links.loaded;
  return ok ? LODE_OK : err_nomem(err);
}

lode_status index_filtered_new(index_segment *segment, const uint64_t *slots, uint32_t n, index_filtered **out,
                               lode_error *err) {
  *out = NULL;
  index_filtered *m = mem_calloc(1, sizeof *m);
  if (!m) return err_nomem(err);
  m->segment = segment;
  m->n = n;
  (void)pthread_mutex_init(&m->lock, NULL);
  lode_status st =
      n > 0 && n <= segment->info.n ? filtered_alloc(m, err) : err_set(err, LODE_INVALID, "a filter without matches");
  unsigned side = index_segment_enter(segment);
  if (st == LODE_OK) st = filtered_mark_ordinals(m, slots, err);
  if (st == LODE_OK) st = filtered_copy_rows(m, err);
  if (st == LODE_OK) st = filtered_probe_entries(m, err);
  index_segment_leave(segment, side);
  if (st == LODE_OK)
    *out = m;
  else
    index_filtered_free(m);
  return st;
}

void index_filtered_free(index_filtered *m) {
  if (!m) return;
  mem_free(m->ordinals);
  mem_free(m->before);
  mem_free(m->ordinal_of);
  mem_free(m->stand_in);
  mem_free(m->sparse);
  mem_free((void *)(uintptr_t)m->rows.data);
  mem_free((void *)(uintptr_t)m->links.data);
  mem_free(m->links.loaded);
  (void)pthread_mutex_destroy(&m->lock);
  mem_free(m);
}

/* ---- Where walks start ---- */

static uint32_t filtered_sort_unique(uint32_t *ranks, uint32_t n) {
  uint32_t kept = 0;
  qsort(ranks, n, sizeof *ranks, sort_cmp_u32);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || ranks[i] != ranks[i - 1]) ranks[kept++] = ranks[i];
  return kept;
}

/* Those of the segment's entries that are nearest to the query: the order of the key, then the entry. */
static lode_status filtered_near_entries(index_segment *s, const quant_query *query, uint64_t *best, size_t *n,
                                         lode_error *err) {
  const unsigned char *rows[INDEX_STEP_ROWS];
  float keys[INDEX_STEP_ROWS];
  *n = 0;
  for (uint32_t base = 0; base < s->info.n_entries; base += INDEX_STEP_ROWS) {
    uint32_t some = s->info.n_entries - base < INDEX_STEP_ROWS ? s->info.n_entries - base : INDEX_STEP_ROWS;
    TRY(index_paged_need(&s->rows, (uint64_t)base * s->stride, (uint64_t)some * s->stride, err));
    for (uint32_t i = 0; i < some; i++) rows[i] = s->rows.data + (size_t)(base + i) * s->stride;
    quant_keys(query, rows, some, keys);
    for (uint32_t i = 0; i < some; i++) {
      uint64_t entry = (uint64_t)quant_key_order(keys[i]) << 32 | (base + i);
      if (*n == INDEX_NEAR_ENTRIES && entry >= best[INDEX_NEAR_ENTRIES - 1]) continue;
      size_t at = *n < INDEX_NEAR_ENTRIES ? (*n)++ : INDEX_NEAR_ENTRIES - 1;
      for (; at > 0 && best[at - 1] > entry; at--) best[at] = best[at - 1];
      best[at] = entry;
    }
  }
  return LODE_OK;
}

lode_status index_filtered_begin(index_filtered *m, const quant_query *query, index_filtered_starts *starts,
                                 lode_error *err) {
  uint64_t best[INDEX_NEAR_ENTRIES], matching = 0;
  size_t n;
  *starts = (index_filtered_starts){0};
  TRY(filtered_near_entries(m->segment, query, best, &n, err));
  for (size_t i = 0; i < n; i++) {
    uint32_t entry = (uint32_t)best[i];
    if (m->stand_in[entry] != INDEX_NO_LINK) starts->ranks[starts->n++] = m->stand_in[entry];
    starts->distant = starts->distant || m->sparse[entry];
    matching += filtered_has(m, entry);
  }
  starts->distant = starts->distant || filtered_too_few(m, matching + INDEX_FILTERED_SLACK / 2, n);
  for (uint32_t i = 0; i < INDEX_SPREAD_STARTS; i++)
    starts->ranks[starts->n++] = (uint32_t)((uint64_t)i * m->n / INDEX_SPREAD_STARTS);
  starts->n = filtered_sort_unique(starts->ranks, starts->n);
  return LODE_OK;
}

/* What was seen around a query. */
typedef struct filtered_around {
  uint32_t table[REACH_TABLE];
  uint32_t seen, found, nearest; /* nearest: matches among the rows nearest to the query */
} filtered_around;

static void filtered_probe_row(const index_filtered *m, uint32_t ordinal, filtered_around *around,
                               index_filtered_starts *starts) {
  if (around->seen == INDEX_REACH_MAX || !filtered_is_new(around->table, ordinal)) return;
  around->seen++;
  if (!filtered_has(m, ordinal)) return;
  if (around->found++ < INDEX_FILTERED_STARTS) starts->ranks[starts->n++] = filtered_rank_of(m, ordinal);
}

lode_status index_filtered_probe(index_filtered *m, const index_walk_scratch *probes, index_filtered_starts *starts,
                                 lode_error *err) {
  const index_segment_info *info = &m->segment->info;
  filtered_around around = {0};
  *starts = (index_filtered_starts){0};
  for (size_t i = 0; i < probes->n; i++) {
    uint32_t ordinal = index_pool_ordinal(probes->pool[i]), links[INDEX_MAX_DEGREE];
    TRY(filtered_links_of(m->segment, ordinal, links, err));
    around.nearest += filtered_has(m, ordinal);
    filtered_probe_row(m, ordinal, &around, starts);
    for (uint32_t j = 0; j < info->degree && links[j] < info->n; j++) filtered_probe_row(m, links[j], &around, starts);
  }
  starts->distant = around.found == 0 ||
                    filtered_too_few(m, 2 * (uint64_t)around.found + INDEX_FILTERED_SLACK, around.seen) ||
                    filtered_too_few(m, 4 * (uint64_t)around.nearest + INDEX_FILTERED_SLACK, probes->n);
  return LODE_OK;
}

index_graph_view index_filtered_view(index_filtered *m, const index_filtered_starts *starts) {
  return (index_graph_view){.rows = &m->rows,
                            .links = &m->links,
                            .stride = m->segment->stride,
                            .n = m->n,
                            .dim = m->segment->info.dim,
                            .width = INDEX_FILTERED_WIDTH,
                            .link_bits = 32,
                            .n_entries = starts->n,
                            .entries = starts->ranks};
}
