/* SPDX-License-Identifier: Apache-2.0 */
/* segment_vectors.c - float vectors of a segment: read and checked, and the cache of those that were used last.
 *
 * The cache is set-associative: a slot belongs to one set of VECTORS_WAYS entries. An entry is a row of floats and a
 * word that says what it holds:
 *
 *   slot << 32 | VECTORS_HELD | VECTORS_USED | pins       0: nothing
 *
 * Threads: without locks. Who uses a vector pins its entry, by adding to the word while it still names the slot. Who
 * replaces one swaps a word without pins for one that has his pin but not VECTORS_HELD: from then on the row is his
 * alone, until he has read and checked the vector and says so. Nobody waits: if all entries of a set are pinned, the
 * vector goes to the caller's buffer. Vectors used once leave before those used again (VECTORS_USED, second chance).
 * The cache as a whole goes as pages do: when all that were inside the segment have left (segment_pages.c).
 */
#include "index/segment_vectors.h"

#include <math.h>

#include "base/byteorder.h"
#include "index/index_tuning.h"

enum {
  VECTORS_WAYS = 8,
  VECTORS_PREFETCH_LINES = 16,
  VECTORS_RUN_BYTES = 64 << 10, /* read at once, at most; a vector may be longer */
  VECTORS_RUN_SLACK = 16 << 10, /* of these not wanted, besides as many as are wanted: the rest of a page */
};
#define VECTORS_HELD ((uint64_t)1 << 31)
#define VECTORS_USED ((uint64_t)1 << 30)
#define VECTORS_PINS ((uint64_t)0xFFFF)

struct index_vectors {
  uint64_t bytes; /* of everything here */
  uint32_t n_sets;
  size_t stride; /* floats from one row to the next: whole cache lines */
  float *rows;
  _Atomic uint64_t *words;
};

/* ---- Reading ---- */

static lode_status vectors_need_record(index_segment *s, uint32_t slot, const unsigned char **record, lode_error *err) {
  uint64_t at = (uint64_t)slot * s->record_bytes;
  TRY(index_paged_need(&s->records, at, s->record_bytes, err));
  *record = s->records.data + at;
  return LODE_OK;
}

/* ---- Vectors at their places ---- */

static bool vectors_is_right(const index_segment *s, uint32_t slot, const void *vector, const unsigned char *record) {
  return index_segment_vector_crc(s->info.id, slot, vector, s->info.dim * sizeof(float)) == num_le32(record + 16);
}

/* The vector of a slot was not at its place. What is fetched must be the vector that the segment was made with. */
static lode_status vectors_fetch(index_segment *s, uint32_t slot, float *vector, const index_fetch *fetch,
                                 lode_error *err) {
  const unsigned char *record = NULL;
  bool found = false;
  TRY(vectors_need_record(s, slot, &record, err));
  if (num_le64(record + INDEX_SEG_PLACE_AT)) atomic_fetch_add_explicit(&s->moved, 1, memory_order_relaxed);
  if (fetch && fetch->fn)
    TRY(fetch->fn(fetch->ctx, (int64_t)num_le64(record), num_le64(record + 8), vector, &found, err));
  if (found && !vectors_is_right(s, slot, vector, record)) return index_segment_damaged(err, "checksum of a vector");
  if (!found) vector[0] = NAN;
  return LODE_OK;
}

/* Neighbours are often next to each other in the other file too: the end of those from `first` on that are read at
 * once, and the bytes [*low, *high) where they are. */
static lode_status vectors_find_run(index_segment *s, uint32_t first, uint32_t end, uint64_t *low, uint64_t *high,
                                    uint32_t *run_end, lode_error *err) {
  const unsigned char *record = NULL;
  uint64_t bytes = s->info.dim * sizeof(float);
  *low = UINT64_MAX;
  *high = 0;
  for (*run_end = first; *run_end < end; ++*run_end) {
    TRY(vectors_need_record(s, *run_end, &record, err));
    uint64_t place = num_le64(record + INDEX_SEG_PLACE_AT);
    if (place > INT64_MAX - bytes) place = 0; /* forged */
    uint64_t from = place < *low ? place : *low, to = place + bytes > *high ? place + bytes : *high;
    bool near = to - from <= VECTORS_RUN_BYTES && to - from <= 2 * bytes * (*run_end + 1 - first) + VECTORS_RUN_SLACK;
    if (*run_end > first && !near) break;
    *low = from;
    *high = to;
  }
  return LODE_OK;
}

/* A run of several vectors is read into `span`. */
static lode_status vectors_read_run(index_segment *s, uint32_t first, uint32_t n, uint64_t low, uint64_t high,
                                    unsigned char *span, float *vectors, const index_fetch *fetch, lode_error *err) {
  const unsigned char *record = NULL;
  size_t bytes = s->info.dim * sizeof(float);
  void *to = n > 1 ? (void *)span : (void *)vectors;
  lode_error why;
  bool read = low > 0 && s->read_place(s->ctx, low, to, (size_t)(high - low), &why) == LODE_OK;
  for (uint32_t i = 0; i < n; i++) {
    float *vector = vectors + (size_t)i * s->info.dim;
    TRY(vectors_need_record(s, first + i, &record, err));
    if (read && n > 1) memcpy(vector, span + (num_le64(record + INDEX_SEG_PLACE_AT) - low), bytes);
    if (!read || !vectors_is_right(s, first + i, vector, record)) TRY(vectors_fetch(s, first + i, vector, fetch, err));
  }
  return LODE_OK;
}

static lode_status vectors_read_placed(index_segment *s, uint32_t first, uint32_t n, float *vectors,
                                       const index_fetch *fetch, lode_error *err) {
  lode_status st = LODE_OK;
  unsigned char *span = n > 1 ? mem_alloc(VECTORS_RUN_BYTES) : NULL;
  if (n > 1 && !span) return err_nomem(err);
  for (uint32_t i = first, end = i; i < first + n && st == LODE_OK; i = end) {
    uint64_t low, high;
    TRY_GOTO(vectors_find_run(s, i, first + n, &low, &high, &end, err));
    st = vectors_read_run(s, i, end - i, low, high, span, vectors + (size_t)(i - first) * s->info.dim, fetch, err);
  }
done:
  mem_free(span);
  return st;
}

/* ---- Any vectors ---- */

lode_status index_segment_vectors_nolock(index_segment *s, uint32_t first, uint32_t n, float *vectors,
                                         const index_fetch *fetch, lode_error *err) {
  const unsigned char *record = NULL;
  size_t bytes = s->info.dim * sizeof(float);
  if (n == 0 || n > s->info.n || first > s->info.n - n) return index_segment_damaged(err, "slot");
  if (s->info.placed) return vectors_read_placed(s, first, n, vectors, fetch, err);
  uint64_t at = s->layout.at[INDEX_SEG_VECTORS] + (uint64_t)first * bytes;
  TRY(s->read(s->ctx, at, vectors, bytes * n, err));
  for (uint32_t i = 0; i < n; i++) {
    TRY(vectors_need_record(s, first + i, &record, err));
    const float *vector = vectors + (size_t)i * s->info.dim;
    if (!vectors_is_right(s, first + i, vector, record)) return index_segment_damaged(err, "checksum of a vector");
  }
  return LODE_OK;
}

/* ---- The cache ---- */

static size_t vectors_stride(uint32_t dim) { return ((size_t)dim + 15) / 16 * 16; }

static void vectors_free(index_vectors *v) {
  if (!v) return;
  mem_free(v->rows);
  mem_free(v->words);
  mem_free(v);
}

/* With sets for `bytes`, and not more than the segment has vectors; NULL if that is none, or memory is short. */
static index_vectors *vectors_new(const index_segment_info *info, uint64_t bytes) {
  size_t stride = vectors_stride(info->dim), set = VECTORS_WAYS * (stride * sizeof(float) + sizeof(uint64_t));
  uint64_t all = ((uint64_t)info->n + VECTORS_WAYS - 1) / VECTORS_WAYS, sets = bytes / set < all ? bytes / set : all;
  index_vectors *v = sets ? mem_calloc(1, sizeof *v) : NULL;
  if (!v) return NULL;
  *v = (index_vectors){.bytes = sets * set, .n_sets = (uint32_t)sets, .stride = stride};
  v->rows = mem_alloc_large((size_t)sets * VECTORS_WAYS * stride * sizeof(float));
  v->words = mem_calloc((size_t)sets * VECTORS_WAYS, sizeof *v->words);
  if (v->rows && v->words) return v;
  vectors_free(v);
  return NULL;
}

void index_vectors_keep(index_segment *s, uint64_t bytes) {
  index_vectors *none = NULL, *v = atomic_load(&s->vectors) ? NULL : vectors_new(&s->info, bytes);
  if (!v) return;
  if (atomic_compare_exchange_strong(&s->vectors, &none, v))
    atomic_fetch_add(&s->vector_bytes, v->bytes);
  else
    vectors_free(v);
}

uint64_t index_vectors_wanted(const index_segment *s) {
  uint64_t sets = ((uint64_t)s->info.n + VECTORS_WAYS - 1) / VECTORS_WAYS;
  if (s->info.grid.step) return 0; /* rows are vectors there */
  return sets * VECTORS_WAYS * (vectors_stride(s->info.dim) * sizeof(float) + sizeof(uint64_t));
}

void index_vectors_discard(index_segment *s, index_vectors *v) {
  if (v) atomic_fetch_sub(&s->vector_bytes, v->bytes);
  vectors_free(v);
}

static size_t vectors_set_of(const index_vectors *v, uint32_t slot) {
  return (size_t)(slot % v->n_sets) * VECTORS_WAYS;
}

static bool vectors_names(uint64_t word, uint32_t slot) { return word >> 32 == slot && (word & VECTORS_HELD); }

/* Pins the entry of a slot; false if it is not there. */
static bool vectors_pin(index_vectors *v, uint32_t slot, size_t *entry) {
  size_t set = vectors_set_of(v, slot);
  for (size_t i = set; i < set + VECTORS_WAYS; i++) {
    uint64_t word = atomic_load_explicit(&v->words[i], memory_order_relaxed);
    while (vectors_names(word, slot) && (word & VECTORS_PINS) < VECTORS_PINS) {
      if (!atomic_compare_exchange_weak_explicit(&v->words[i], &word, (word | VECTORS_USED) + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        continue;
      *entry = i;
      return true;
    }
  }
  return false;
}

/* Takes an entry of the slot's set that is not in use, pinned and not held; false if there is none. */
static bool vectors_claim(index_vectors *v, uint32_t slot, size_t *entry) {
  size_t set = vectors_set_of(v, slot), from = slot / v->n_sets;
  for (size_t i = from; i < from + 2 * VECTORS_WAYS; i++) { /* twice: the first time may only find them used */
    _Atomic uint64_t *at = &v->words[set + i % VECTORS_WAYS];
    uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
    if (word & VECTORS_PINS) continue;
    if (word & VECTORS_USED) {
      (void)atomic_compare_exchange_strong_explicit(at, &word, word & ~VECTORS_USED, memory_order_relaxed,
                                                    memory_order_relaxed);
    } else if (atomic_compare_exchange_strong_explicit(at, &word, (uint64_t)slot << 32 | 1, memory_order_acquire,
                                                       memory_order_relaxed)) {
      *entry = set + i % VECTORS_WAYS;
      return true;
    }
  }
  return false;
}

lode_status index_vector_take(index_segment *s, uint32_t slot, float *buffer, const index_fetch *fetch,
                              index_vector *vector, lode_error *err) {
  index_vectors *v = atomic_load_explicit(&s->vectors, memory_order_acquire);
  size_t entry;
  *vector = (index_vector){.data = buffer};
  if (v && vectors_pin(v, slot, &entry)) {
    *vector = (index_vector){.data = v->rows + entry * v->stride, .word = &v->words[entry]};
    return LODE_OK;
  }
  vector->read = true;
  if (!v || !vectors_claim(v, slot, &entry)) return index_segment_vectors_nolock(s, slot, 1, buffer, fetch, err);
  float *row = v->rows + entry * v->stride;
  lode_status st = index_segment_vectors_nolock(s, slot, 1, row, fetch, err);
  bool keep = st == LODE_OK && !index_vector_is_gone(row);
  if (st == LODE_OK && !keep) buffer[0] = NAN;
  atomic_store_explicit(&v->words[entry], keep ? (uint64_t)slot << 32 | VECTORS_HELD | 1 : 0, memory_order_release);
  if (keep) {
    vector->data = row;
    vector->word = &v->words[entry];
  }
  return st;
}

void index_vector_give(const index_vector *vector) {
  if (vector->word) atomic_fetch_sub_explicit(vector->word, 1, memory_order_release);
}

void index_vector_prefetch(const index_segment *s, uint32_t slot) {
  const index_vectors *v = atomic_load_explicit(&s->vectors, memory_order_acquire);
  if (!v) return;
  size_t set = vectors_set_of(v, slot);
  for (size_t i = set; i < set + VECTORS_WAYS; i++) {
    if (!vectors_names(atomic_load_explicit(&v->words[i], memory_order_relaxed), slot)) continue;
    const float *row = v->rows + i * v->stride;
    for (size_t line = 0; line < v->stride / 16 && line < VECTORS_PREFETCH_LINES; line++) {
      __builtin_prefetch(row + line * 16);
      atomic_signal_fence(memory_order_seq_cst); /* gcc 12 is known to drop loops of nothing but prefetches */
    }
    return;
  }
}
