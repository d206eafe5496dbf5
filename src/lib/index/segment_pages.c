/* SPDX-License-Identifier: Apache-2.0 */
/* segment_pages.c - pages of a segment in memory: read when they are first needed, evicted when memory is short.
 *
 * Threads: whoever reads pages is inside the segment, between index_segment_enter() and index_segment_leave(). No lock
 * is held meanwhile, and none over a read of the file. Eviction marks pages as not loaded; their memory is given back
 * when all threads have left that were inside at that time, by the last of them. Who needs such a page before that puts
 * it back. Threads enter on one of two sides, which every eviction swaps, so that those that come later do not delay
 * it.
 *
 * Invariants
 *   1. A page is loaded, busy, leaving, or none of these. Its bytes change only while it is busy, or none of these.
 *   2. A page is loaded only after its checksum was verified. Who has seen that it is loaded may read it until it
 *      leaves the segment.
 *   3. The memory of a run is given back as a whole, and only if all its pages are leaving or none of these: kernels
 *      may have pages that are larger than ours.
 */
#include "index/index_tuning.h"
#include "index/segment_vectors.h"
#include "platform/memory.h"

#include "base/byteorder.h"

enum {
  SEGMENT_RUN_PAGES = 64, /* pages of one word of `loaded`: read and evicted together */
  SEGMENT_RUN_BYTES = SEGMENT_RUN_PAGES * INDEX_PAGE_BYTES,
  LARGE_ALIGN = 2 << 20, /* alignment of large pages */
};

static uint64_t section_pages(const index_paged *paged) {
  return (paged->bytes + INDEX_PAGE_BYTES - 1) / INDEX_PAGE_BYTES;
}

static uint64_t section_runs(const index_paged *paged) {
  return (paged->bytes + SEGMENT_RUN_BYTES - 1) / SEGMENT_RUN_BYTES;
}

bool index_segment_page_is_right(const index_segment *s, uint64_t page, const void *bytes) {
  uint64_t index = index_segment_crc_slot(&s->layout, page);
  return num_le32(s->table + index * sizeof(uint32_t)) == index_segment_page_crc(s->info.id, page, bytes);
}

/* ---- Loading ---- */

static lode_status section_read(const index_section *c, uint64_t first, uint64_t last, lode_error *err) {
  const index_segment *s = c->segment;
  unsigned char *to = (unsigned char *)(uintptr_t)c->paged->data + first * INDEX_PAGE_BYTES;
  size_t bytes = (size_t)(last - first + 1) * INDEX_PAGE_BYTES;
  TRY(s->read(s->ctx, (c->first_page + first) * INDEX_PAGE_BYTES, to, bytes, err));
  for (uint64_t p = first; p <= last; p++) {
    if (!index_segment_page_is_right(s, c->first_page + p, to + (p - first) * INDEX_PAGE_BYTES))
      return index_segment_damaged(err, "page checksum");
  }
  return LODE_OK;
}

/* Under the lock: evicted pages of a run that are still in memory are loaded again. */
static void section_put_back(index_section *c, uint64_t word) {
  if (c->leaving[word]) index_paged_publish(c->paged, word, c->leaving[word]);
  c->leaving[word] = 0;
}

/* Makes pages busy that nobody has loaded or is reading, from *first on up to `last` of the same word; *end is the one
 * after them. False: there are none. */
static bool section_claim(index_section *c, uint64_t *first, uint64_t last, uint64_t *end) {
  uint64_t word = *first / 64, p = *first;
  pthread_mutex_t *lock = &c->segment->lock;
  pthread_mutex_lock(lock);
  section_put_back(c, word);
  for (; p <= last; p++) {
    while (c->busy[word] >> (p % 64) & 1) (void)pthread_cond_wait(&c->segment->read_done, lock);
    section_put_back(c, word); /* while this thread waited */
    if (!index_paged_has(c->paged, p)) break;
  }
  *first = p;
  for (; p <= last && !index_paged_has(c->paged, p) && !(c->busy[word] >> (p % 64) & 1); p++)
    c->busy[word] |= (uint64_t)1 << (p % 64);
  pthread_mutex_unlock(lock);
  *end = p;
  return p > *first;
}

static void section_release(index_section *c, uint64_t first, uint64_t end, bool loaded) {
  uint64_t word = first / 64, bits = 0;
  for (uint64_t p = first; p < end; p++) bits |= (uint64_t)1 << (p % 64);
  pthread_mutex_lock(&c->segment->lock);
  c->busy[word] &= ~bits;
  if (loaded) {
    index_paged_publish(c->paged, word, bits);
    atomic_fetch_add_explicit(&c->segment->resident, (end - first) * INDEX_PAGE_BYTES, memory_order_relaxed);
  }
  (void)pthread_cond_broadcast(&c->segment->read_done);
  pthread_mutex_unlock(&c->segment->lock);
}

static lode_status segment_load_pages(index_paged *paged, uint64_t first, uint64_t last, lode_error *err) {
  index_section *c = paged->owner;
  lode_status st = LODE_OK;
  for (uint64_t p = first, end; p <= last && st == LODE_OK; p = end) {
    uint64_t word_last = p / 64 * 64 + 63;
    if (!section_claim(c, &p, word_last < last ? word_last : last, &end)) continue;
    st = section_read(c, p, end - 1, err);
    section_release(c, p, end, st == LODE_OK);
  }
  return st;
}

lode_status index_section_init(index_segment *s, index_paged *paged, int section, lode_error *err) {
  uint64_t bytes = s->layout.bytes[section];
  if (bytes == 0) return LODE_OK;
  ENSURE(s->n_sections < INDEX_SECTIONS, err);
  uint64_t pages = (bytes + INDEX_PAGE_BYTES - 1) / INDEX_PAGE_BYTES;
  size_t words = (size_t)(pages / 64 + 1);
  index_section *c = &s->sections[s->n_sections++];
  /* Not written to: untouched anonymous memory costs nothing. */
  size_t align = bytes >= INDEX_LARGE_BYTES ? LARGE_ALIGN : SEGMENT_RUN_BYTES;
  unsigned char *data = mem_alloc_aligned(align, (size_t)(pages * INDEX_PAGE_BYTES));
  *paged = (index_paged){.data = data,
                         .bytes = bytes,
                         .page_bits = INDEX_PAGE_BITS,
                         .load = segment_load_pages,
                         .owner = c,
                         .missing = pages};
  *c = (index_section){.segment = s, .paged = paged, .first_page = s->layout.at[section] / INDEX_PAGE_BYTES};
  if (!data) return err_nomem(err);
  paged->loaded = mem_calloc(words, sizeof *paged->loaded);
  c->busy = mem_calloc(2 * words, sizeof *c->busy);
  if (!paged->loaded || !c->busy) return err_nomem(err);
  c->leaving = c->busy + words;
  return LODE_OK;
}

/* Random reads over large arrays miss the TLB as often as the cache: whole arrays use large pages. Not those loaded
 * page by page, which would grow by a large page at each access. */
static void section_advise(const index_paged *paged, os_memory_use use) {
  if (paged->bytes >= INDEX_LARGE_BYTES) os_memory_advise((void *)(uintptr_t)paged->data, (size_t)paged->bytes, use);
}

lode_status index_segment_preload(index_segment *segment, lode_error *err) {
  lode_status st = LODE_OK;
  unsigned side = index_segment_enter(segment);
  for (size_t i = 0; i < segment->n_sections && st == LODE_OK; i++) {
    index_paged *paged = segment->sections[i].paged;
    section_advise(paged, OS_MEMORY_LARGE_PAGES);
    st = index_paged_need(paged, 0, paged->bytes, err);
  }
  index_segment_leave(segment, side);
  return st;
}

/* ---- Eviction ---- */

/* Under the lock: the pages of a run are no longer loaded. Returns their bytes. */
static uint64_t section_retire(index_section *c, uint64_t word) {
  uint64_t bits = atomic_exchange(&c->paged->loaded[word], 0);
  atomic_fetch_add(&c->paged->missing, (uint64_t)__builtin_popcountll(bits));
  c->leaving[word] |= bits;
  return (uint64_t)__builtin_popcountll(bits) * INDEX_PAGE_BYTES;
}

/* Under the lock: pages leave until the others take at most `keep` bytes. */
static void segment_retire(index_segment *s, uint64_t keep) {
  uint64_t entries = (uint64_t)s->info.n_entries * s->stride / SEGMENT_RUN_BYTES + 1, total = 0;
  uint64_t resident = atomic_load(&s->resident);
  for (size_t i = 0; i < s->n_sections; i++) {
    total += section_runs(s->sections[i].paged);
    section_advise(s->sections[i].paged, OS_MEMORY_SMALL_PAGES); /* from now on it is loaded page by page */
  }
  for (uint64_t tried = 0; tried < total && resident > keep; tried++) {
    uint64_t run = s->hand++ % total;
    size_t i = 0;
    for (; run >= section_runs(s->sections[i].paged); i++) run -= section_runs(s->sections[i].paged);
    if (s->sections[i].paged == &s->rows && run < entries && keep > 0) continue;
    resident -= section_retire(&s->sections[i], run);
  }
}

/* Gives the memory of a run back, if its pages were not used again. A kernel with larger pages than a run may refuse:
 * they then stay allocated, but are read again. */
static void section_drop_run(index_section *c, uint64_t word) {
  index_paged *paged = c->paged;
  uint64_t at = word * SEGMENT_RUN_BYTES, left = section_pages(paged) * INDEX_PAGE_BYTES - at, bits;
  pthread_mutex_lock(&c->segment->lock);
  if (atomic_load(&paged->loaded[word]) || c->busy[word]) section_put_back(c, word);
  bits = c->leaving[word];
  c->leaving[word] = 0;
  if (bits) {
    os_memory_advise((void *)(uintptr_t)(paged->data + at), left < SEGMENT_RUN_BYTES ? left : SEGMENT_RUN_BYTES,
                     OS_MEMORY_DROP);
    atomic_fetch_sub(&c->segment->resident, (uint64_t)__builtin_popcountll(bits) * INDEX_PAGE_BYTES);
  }
  pthread_mutex_unlock(&c->segment->lock);
}

/* Ends an eviction, if all have left that were inside when it began. */
static void segment_give_back(index_segment *s) {
  pthread_mutex_lock(&s->lock);
  unsigned other = (atomic_load(&s->epoch) + 1) % 2;
  bool mine = atomic_load(&s->evicting) == INDEX_EVICT_WAITING && atomic_load(&s->users[other]) == 0;
  if (mine) atomic_store(&s->evicting, INDEX_EVICT_DROPPING);
  index_vectors *vectors = mine ? s->leaving_vectors : NULL;
  if (mine) s->leaving_vectors = NULL;
  pthread_mutex_unlock(&s->lock);
  if (!mine) return;
  index_vectors_discard(s, vectors);
  for (size_t i = 0; i < s->n_sections; i++)
    for (uint64_t word = 0; word < section_runs(s->sections[i].paged); word++) section_drop_run(&s->sections[i], word);
  atomic_store(&s->evicting, INDEX_EVICT_NONE);
}

void index_segment_evict(index_segment *segment, uint64_t keep) {
  if (atomic_load(&segment->resident) + atomic_load(&segment->vector_bytes) <= keep) return;
  pthread_mutex_lock(&segment->lock);
  if (atomic_load(&segment->evicting) == INDEX_EVICT_NONE) {
    segment->leaving_vectors = atomic_exchange(&segment->vectors, NULL);
    if (atomic_load(&segment->resident) > keep) segment_retire(segment, keep);
    atomic_fetch_add(&segment->epoch, 1);
    atomic_store(&segment->evicting, INDEX_EVICT_WAITING);
  }
  pthread_mutex_unlock(&segment->lock);
  segment_give_back(segment);
}

unsigned index_segment_enter(index_segment *segment) {
  for (;;) {
    unsigned epoch = atomic_load(&segment->epoch);
    atomic_fetch_add(&segment->users[epoch % 2], 1);
    if (atomic_load(&segment->epoch) == epoch) return epoch % 2;
    index_segment_leave(segment, epoch % 2);
  }
}

void index_segment_leave(index_segment *segment, unsigned side) {
  bool last = atomic_fetch_sub(&segment->users[side], 1) == 1;
  if (last && atomic_load(&segment->evicting) == INDEX_EVICT_WAITING) segment_give_back(segment);
}
