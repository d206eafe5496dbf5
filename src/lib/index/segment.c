/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c - layout, header and reading of a segment; see segment.h. Nothing that comes from the file is trusted.
 * segment_pages.c has its pages in memory.
 *
 * Header:  0 "LODESEG1"   8 u32 format (4)   12 u32 kind   16 u32 metric   20 u32 dim   24 u32 n   28 u32 degree
 * 32 u32 entries   36 float unit   40 u64 id   48 u64 bytes of the file   56 u32 effort   60 u32 CRC-32C of 0 .. 59
 * 64 u16 x 20: what efforts find (effort.h)   104 u32 entry climbs   108 float greatest error of a row, 112 float its
 * greatest length   116 u32 flags (1: placed)   120 u32 bits of a link   124 u32 step, 128 i32 base of the grid
 * (quant_grid.h)   132 zeros up to the end of the page. Formats 2 and 3 (placed) end at 116, and links have 32 bits.
 */
#include "index/segment.h"

#include <math.h>

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "index/index_tuning.h"
#include "index/segment_vectors.h"

static const char segment_magic[8] = {'L', 'O', 'D', 'E', 'S', 'E', 'G', '1'};

enum {
  SEGMENT_FORMAT_FIRST = 2,
  SEGMENT_FORMAT_PLACED = 3,
  SEGMENT_FORMAT = 4,
  SEGMENT_FLAG_PLACED = 1,
  SEGMENT_OLD_LINK_BITS = 32,
  SEGMENT_HEADER_CRC_AT = INDEX_SEG_HEADER_CRC_AT,
  SEGMENT_CURVE_AT = 64,   /* offset of the effort curve in the header */
  SEGMENT_CLIMBS_AT = 104, /* offset of the entry climbs in the header */
  SEGMENT_SPREAD_AT = 108, /* offset of the spread (quant_bounds.h) in the header */
  SEGMENT_FLAGS_AT = 116,
  SEGMENT_LINK_BITS_AT = 120,
  SEGMENT_GRID_AT = 124,
  SEGMENT_MAX_EFFORT = 65536,
};

/* ---- Layout ---- */

static bool segment_add_section(index_segment_layout *layout, int section, uint64_t count, uint64_t size) {
  uint64_t bytes, end;
  if (__builtin_mul_overflow(count, size, &bytes)) return false;
  layout->at[section] = layout->total;
  layout->bytes[section] = bytes;
  if (__builtin_add_overflow(layout->total, bytes, &end)) return false;
  if (__builtin_add_overflow(end, (uint64_t)INDEX_PAGE_BYTES - 1, &end)) return false;
  layout->total = end / INDEX_PAGE_BYTES * INDEX_PAGE_BYTES;
  return layout->total < (uint64_t)1 << 62;
}

bool index_segment_layout_of(const index_segment_info *info, index_segment_layout *layout) {
  bool graph = info->kind == INDEX_GRAPH;
  *layout = (index_segment_layout){.total = INDEX_PAGE_BYTES};
  if (info->kind != INDEX_FLAT && !graph) return false;
  if (info->dim == 0 || info->dim > LODE_MAX_DIMENSION || info->n == 0 || info->n > INDEX_MAX_ROWS) return false;
  if (graph ? info->degree < 2 || info->degree > INDEX_MAX_DEGREE || info->n_entries == 0 || info->n_entries > info->n
            : info->degree != 0 || info->n_entries != 0) {
    return false;
  }
  if (!segment_add_section(layout, INDEX_SEG_VECTORS, info->placed ? 0 : (uint64_t)info->n * info->dim,
                           sizeof(float)) ||
      !segment_add_section(layout, INDEX_SEG_MEAN, info->dim, sizeof(float)) ||
      !segment_add_section(layout, INDEX_SEG_ROWS, info->n, quant_stride(info->dim)) ||
      !segment_add_section(layout, INDEX_SEG_LOW, info->n, quant_grid_low_bytes(&info->grid, info->dim)) ||
      !segment_add_section(layout, INDEX_SEG_LINKS, graph ? info->n : 0,
                           index_link_row_bytes(info->degree, info->link_bits)) ||
      !segment_add_section(layout, INDEX_SEG_ORDINALS, graph ? info->n : 0, sizeof(uint32_t)) ||
      !segment_add_section(layout, INDEX_SEG_RECORDS, info->n, index_segment_record_bytes(info))) {
    return false;
  }
  layout->checked_pages = 1 + (layout->total - layout->at[INDEX_SEG_MEAN]) / INDEX_PAGE_BYTES;
  return segment_add_section(layout, INDEX_SEG_CHECKSUMS, layout->checked_pages, sizeof(uint32_t));
}

uint64_t index_segment_crc_slot(const index_segment_layout *layout, uint64_t page) {
  return page == 0 ? 0 : 1 + page - layout->at[INDEX_SEG_MEAN] / INDEX_PAGE_BYTES;
}

static uint32_t segment_crc(uint64_t id, uint64_t number, const void *bytes, size_t n) {
  return crc32c_update(crc32c_update_u64(crc32c_update_u64(0, id), number), bytes, n);
}

uint32_t index_segment_page_crc(uint64_t id, uint64_t page, const void *bytes) {
  return segment_crc(id, page, bytes, INDEX_PAGE_BYTES);
}

uint32_t index_segment_vector_crc(uint64_t id, uint32_t slot, const void *bytes, size_t n) {
  return segment_crc(id, ~(uint64_t)slot, bytes, n);
}

uint32_t index_segment_table_crc(uint64_t id, const void *bytes, size_t n) { return segment_crc(id, n, bytes, n); }

/* ---- Header ---- */

void index_segment_put_header(const index_segment_info *info, unsigned char *page) {
  memset(page, 0, INDEX_PAGE_BYTES);
  memcpy(page, segment_magic, sizeof segment_magic);
  num_put_le32(page + 8, SEGMENT_FORMAT);
  num_put_le32(page + 12, (uint32_t)info->kind);
  num_put_le32(page + 16, (uint32_t)info->metric);
  num_put_le32(page + 20, info->dim);
  num_put_le32(page + 24, info->n);
  num_put_le32(page + 28, info->degree);
  num_put_le32(page + 32, info->n_entries);
  memcpy(page + 36, &info->unit, sizeof info->unit);
  num_put_le64(page + 40, info->id);
  num_put_le64(page + 48, info->bytes);
  num_put_le32(page + 56, info->effort);
  num_put_le32(page + SEGMENT_HEADER_CRC_AT, crc32c_update(0, page, SEGMENT_HEADER_CRC_AT));
  memcpy(page + SEGMENT_CURVE_AT, info->curve.found, sizeof info->curve.found);
  num_put_le32(page + SEGMENT_CLIMBS_AT, info->entry_climbs);
  memcpy(page + SEGMENT_SPREAD_AT, &info->spread.error, sizeof info->spread.error);
  memcpy(page + SEGMENT_SPREAD_AT + 4, &info->spread.length, sizeof info->spread.length);
  num_put_le32(page + SEGMENT_FLAGS_AT, info->placed ? SEGMENT_FLAG_PLACED : 0);
  num_put_le32(page + SEGMENT_LINK_BITS_AT, info->link_bits);
  num_put_le32(page + SEGMENT_GRID_AT, info->grid.step);
  num_put_le32(page + SEGMENT_GRID_AT + 4, (uint32_t)info->grid.base);
}

lode_status index_segment_damaged(lode_error *err, const char *what) {
  return err_set(err, LODE_CORRUPT, "damaged index segment (%s): it will be rebuilt from the records", what);
}

/* What came with format 4. */
static lode_status segment_get_extension(const unsigned char *page, index_segment_info *info, lode_error *err) {
  uint32_t format = num_le32(page + 8), flags = num_le32(page + SEGMENT_FLAGS_AT);
  if (format < SEGMENT_FORMAT) {
    info->placed = format == SEGMENT_FORMAT_PLACED;
    info->link_bits = SEGMENT_OLD_LINK_BITS;
    return LODE_OK;
  }
  info->placed = flags & SEGMENT_FLAG_PLACED;
  info->link_bits = num_le32(page + SEGMENT_LINK_BITS_AT);
  info->grid =
      (quant_grid){.step = num_le32(page + SEGMENT_GRID_AT), .base = (int32_t)num_le32(page + SEGMENT_GRID_AT + 4)};
  if (flags & ~(uint32_t)SEGMENT_FLAG_PLACED) return index_segment_damaged(err, "flags");
  if (info->link_bits != index_link_bits(info->n)) return index_segment_damaged(err, "bits of a link");
  bool in_range = info->grid.step ? abs(info->grid.base / 2) <= QUANT_GRID_BASE_MAX : info->grid.base == 0;
  if (info->grid.step > QUANT_GRID_STEP_MAX || !in_range || (info->grid.step && info->metric == LODE_COSINE))
    return index_segment_damaged(err, "grid");
  return LODE_OK;
}

lode_status index_segment_get_header(const unsigned char *page, uint64_t file_bytes, index_segment_info *info,
                                     lode_error *err) {
  index_segment_layout layout;
  *info = (index_segment_info){0};
  if (memcmp(page, segment_magic, sizeof segment_magic) != 0) return index_segment_damaged(err, "not a segment");
  if (num_le32(page + SEGMENT_HEADER_CRC_AT) != crc32c_update(0, page, SEGMENT_HEADER_CRC_AT))
    return index_segment_damaged(err, "header checksum");
  if (num_le32(page + 8) > SEGMENT_FORMAT) {
    return err_set(err, LODE_TOO_NEW, "an index segment has format %u: this lode knows formats up to %d, update it",
                   num_le32(page + 8), SEGMENT_FORMAT);
  }
  uint32_t kind = num_le32(page + 12), metric = num_le32(page + 16);
  index_segment_info got = {.dim = num_le32(page + 20),
                            .n = num_le32(page + 24),
                            .degree = num_le32(page + 28),
                            .n_entries = num_le32(page + 32),
                            .id = num_le64(page + 40),
                            .bytes = num_le64(page + 48),
                            .effort = num_le32(page + 56),
                            .entry_climbs = num_le32(page + SEGMENT_CLIMBS_AT)};
  memcpy(&got.unit, page + 36, sizeof got.unit);
  memcpy(got.curve.found, page + SEGMENT_CURVE_AT, sizeof got.curve.found);
  memcpy(&got.spread.error, page + SEGMENT_SPREAD_AT, sizeof got.spread.error);
  memcpy(&got.spread.length, page + SEGMENT_SPREAD_AT + 4, sizeof got.spread.length);
  if (kind != INDEX_FLAT && kind != INDEX_GRAPH) return index_segment_damaged(err, "kind");
  if (metric != LODE_L2 && metric != LODE_COSINE && metric != LODE_IP) return index_segment_damaged(err, "metric");
  if (num_le32(page + 8) < SEGMENT_FORMAT_FIRST) return index_segment_damaged(err, "of an older format");
  if (got.effort > SEGMENT_MAX_EFFORT) return index_segment_damaged(err, "effort");
  if (!(got.unit >= 0x1p-126f && got.unit <= 0x1p100f)) return index_segment_damaged(err, "unit");
  got.kind = (index_segment_kind)kind;
  got.metric = (lode_metric)metric;
  TRY(segment_get_extension(page, &got, err));
  if (!index_segment_layout_of(&got, &layout) || layout.total != file_bytes || got.bytes != file_bytes) {
    return index_segment_damaged(err, "sizes");
  }
  *info = got;
  return LODE_OK;
}

/* ---- Open and close ---- */

static lode_status segment_read_checksums(index_segment *s, uint32_t table_crc, lode_error *err) {
  size_t bytes = (size_t)s->layout.bytes[INDEX_SEG_CHECKSUMS];
  s->table = mem_alloc(bytes);
  if (!s->table) return err_nomem(err);
  TRY(s->read(s->ctx, s->layout.at[INDEX_SEG_CHECKSUMS], s->table, bytes, err));
  if (index_segment_table_crc(s->info.id, s->table, bytes) != table_crc)
    return index_segment_damaged(err, "checksum of checksums");
  return LODE_OK;
}

static lode_status segment_read_mean(index_segment *s, lode_error *err) {
  size_t pages = (size_t)((s->layout.bytes[INDEX_SEG_MEAN] + INDEX_PAGE_BYTES - 1) / INDEX_PAGE_BYTES);
  uint64_t first = s->layout.at[INDEX_SEG_MEAN] / INDEX_PAGE_BYTES;
  unsigned char *bytes = mem_alloc_aligned(64, pages * INDEX_PAGE_BYTES);
  if (!bytes) return err_nomem(err);
  s->model =
      (quant_model){.metric = s->info.metric, .dim = s->info.dim, .unit = s->info.unit, .mean = (float *)(void *)bytes};
  s->model.grid = s->info.grid;
  TRY(s->read(s->ctx, s->layout.at[INDEX_SEG_MEAN], bytes, pages * INDEX_PAGE_BYTES, err));
  for (size_t p = 0; p < pages; p++) {
    if (!index_segment_page_is_right(s, first + p, bytes + p * INDEX_PAGE_BYTES))
      return index_segment_damaged(err, "page checksum");
  }
  for (uint32_t j = 0; j < s->info.dim; j++) {
    if (!(fabsf(s->model.mean[j]) <= 0x1p40f)) return index_segment_damaged(err, "mean");
  }
  return LODE_OK;
}

static lode_status segment_open_checked(index_segment *s, const index_segment_source *source, lode_error *err) {
  unsigned char page[INDEX_PAGE_BYTES];
  if (source->bytes < sizeof page) return index_segment_damaged(err, "too short");
  TRY(s->read(s->ctx, 0, page, sizeof page, err));
  TRY(index_segment_get_header(page, source->bytes, &s->info, err));
  if (s->info.id != source->id) return index_segment_damaged(err, "the segment of another place");
  ENSURE(index_segment_layout_of(&s->info, &s->layout), err);
  s->stride = quant_stride(s->info.dim);
  s->record_bytes = index_segment_record_bytes(&s->info);
  s->low_bytes = quant_grid_low_bytes(&s->info.grid, s->info.dim);
  s->link_row_bytes = index_link_row_bytes(s->info.degree, s->info.link_bits);
  if (s->info.placed && !s->read_place) return err_internal(err, "a placed segment needs a reader of places");
  TRY(segment_read_checksums(s, source->table_crc, err));
  if (!index_segment_page_is_right(s, 0, page)) return index_segment_damaged(err, "page checksum");
  TRY(segment_read_mean(s, err));
  TRY(index_section_init(s, &s->rows, INDEX_SEG_ROWS, err));
  TRY(index_section_init(s, &s->low, INDEX_SEG_LOW, err));
  TRY(index_section_init(s, &s->links, INDEX_SEG_LINKS, err));
  TRY(index_section_init(s, &s->ordinals, INDEX_SEG_ORDINALS, err));
  return index_section_init(s, &s->records, INDEX_SEG_RECORDS, err);
}

lode_status index_segment_open(const index_segment_source *source, index_segment **segment, lode_error *err) {
  *segment = NULL;
  index_segment *s = mem_calloc(1, sizeof *s);
  if (!s) return err_nomem(err);
  s->read = source->read;
  s->read_place = source->read_place;
  s->ctx = source->ctx;
  (void)pthread_mutex_init(&s->lock, NULL);
  (void)pthread_cond_init(&s->read_done, NULL);
  lode_status st = segment_open_checked(s, source, err);
  if (st != LODE_OK) {
    index_segment_close(s);
    return st;
  }
  *segment = s;
  return LODE_OK;
}

void index_segment_close(index_segment *segment) {
  if (!segment) return;
  index_paged *all[] = {&segment->rows, &segment->low, &segment->links, &segment->ordinals, &segment->records};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    mem_free((void *)(uintptr_t)all[i]->data);
    mem_free(all[i]->loaded);
  }
  for (size_t i = 0; i < INDEX_SECTIONS; i++) mem_free(segment->sections[i].busy);
  index_vectors_discard(segment, atomic_load(&segment->vectors));
  index_vectors_discard(segment, segment->leaving_vectors);
  mem_free(segment->table);
  mem_free(segment->model.mean);
  (void)pthread_cond_destroy(&segment->read_done);
  (void)pthread_mutex_destroy(&segment->lock);
  mem_free(segment);
}

/* ---- Records and vectors ---- */

static lode_status segment_need_record(index_segment *s, uint32_t slot, const unsigned char **record, lode_error *err) {
  if (slot >= s->info.n) return index_segment_damaged(err, "slot");
  uint64_t at = (uint64_t)slot * s->record_bytes;
  TRY(index_paged_need(&s->records, at, s->record_bytes, err));
  *record = s->records.data + at;
  return LODE_OK;
}

lode_status index_segment_record_nolock(index_segment *s, uint32_t slot, index_segment_record *record,
                                        lode_error *err) {
  const unsigned char *bytes = NULL;
  *record = (index_segment_record){0};
  TRY(segment_need_record(s, slot, &bytes, err));
  *record = (index_segment_record){.key = (int64_t)num_le64(bytes), .cursor = num_le64(bytes + 8)};
  return LODE_OK;
}

lode_status index_segment_get_record(index_segment *segment, uint32_t slot, index_segment_record *record,
                                     lode_error *err) {
  unsigned side = index_segment_enter(segment);
  lode_status st = index_segment_record_nolock(segment, slot, record, err);
  index_segment_leave(segment, side);
  return st;
}

lode_status index_segment_get_block(index_segment *segment, uint32_t first, uint32_t n, float *vectors,
                                    index_segment_record *records, const index_fetch *fetch, lode_error *err) {
  unsigned side = index_segment_enter(segment);
  lode_status st = index_segment_vectors_nolock(segment, first, n, vectors, fetch, err);
  for (uint32_t i = 0; i < n && st == LODE_OK; i++)
    st = index_segment_record_nolock(segment, first + i, &records[i], err);
  index_segment_leave(segment, side);
  return st;
}

uint64_t index_segment_section_bytes(const index_segment *s) {
  return s->rows.bytes + s->low.bytes + s->links.bytes + s->ordinals.bytes + s->records.bytes;
}

lode_status index_segment_ordinal_nolock(index_segment *s, uint32_t slot, uint32_t *ordinal, lode_error *err) {
  *ordinal = slot;
  if (slot >= s->info.n) return index_segment_damaged(err, "slot");
  if (s->info.kind == INDEX_FLAT) return LODE_OK;
  TRY(index_paged_need(&s->ordinals, (uint64_t)slot * 4, 4, err));
  memcpy(ordinal, s->ordinals.data + (size_t)slot * 4, sizeof *ordinal);
  return *ordinal < s->info.n ? LODE_OK : index_segment_damaged(err, "ordinal of a slot");
}

lode_status index_segment_decode_nolock(index_segment *s, uint32_t slot, float *vector, bool *exact, lode_error *err) {
  uint32_t ordinal;
  *exact = false;
  if (s->info.grid.step == 0) return LODE_OK;
  TRY(index_segment_ordinal_nolock(s, slot, &ordinal, err));
  uint64_t at = (uint64_t)ordinal * s->stride, low_at = (uint64_t)ordinal * s->low_bytes;
  TRY(index_paged_need(&s->rows, at, s->stride, err));
  if (s->low_bytes) TRY(index_paged_need(&s->low, low_at, s->low_bytes, err));
  const unsigned char *row = s->rows.data + at;
  *exact = quant_row_is_on_grid(&s->model, row);
  if (*exact) quant_grid_decode(&s->info.grid, row, s->low_bytes ? s->low.data + low_at : NULL, s->info.dim, vector);
  return LODE_OK;
}

void index_segment_prefetch_row(const index_segment *s, uint32_t slot, bool is_near) {
  uint32_t ordinal = slot;
  if (s->info.grid.step == 0 || !index_paged_complete(&s->ordinals)) return;
  if (s->info.kind == INDEX_GRAPH && !is_near) {
    __builtin_prefetch(s->ordinals.data + (size_t)slot * 4);
    return;
  }
  if (s->info.kind == INDEX_GRAPH) memcpy(&ordinal, s->ordinals.data + (size_t)slot * 4, sizeof ordinal);
  if (ordinal >= s->info.n) return;
  index_prefetch_row(s->rows.data + (size_t)ordinal * s->stride, s->stride);
  if (s->low_bytes) index_prefetch_row(s->low.data + (size_t)ordinal * s->low_bytes, s->low_bytes);
}

static lode_status segment_key_at(index_segment *s, uint32_t slot, int64_t *key, lode_error *err) {
  const unsigned char *bytes = NULL;
  TRY(segment_need_record(s, slot, &bytes, err));
  *key = (int64_t)num_le64(bytes);
  return LODE_OK;
}

/* The first slot from `from` on whose key is not less: by exponential, then binary search. */
static lode_status segment_seek_key(index_segment *s, int64_t key, uint32_t from, uint32_t *slot, lode_error *err) {
  uint64_t low = from, high = s->info.n, step = 1;
  int64_t found;
  while (low + step < high) {
    TRY(segment_key_at(s, (uint32_t)(low + step), &found, err));
    if (found >= key) {
      high = low + step;
      break;
    }
    low += step;
    step *= 2;
  }
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    TRY(segment_key_at(s, (uint32_t)middle, &found, err));
    if (found < key)
      low = middle + 1;
    else
      high = middle;
  }
  *slot = (uint32_t)low;
  return LODE_OK;
}

/* How many of the keys, which are sorted, are below `key`. */
static size_t count_below(const index_segment_record *keys, size_t n, int64_t key) {
  size_t at = 0;
  SORT_LOWER_BOUND(at, n, keys[at].key < key);
  return at;
}

/* If there are many keys on few pages, reads those pages run by run rather than one by one. */
static lode_status segment_need_range(index_segment *s, const index_segment_record *keys, size_t n, lode_error *err) {
  int64_t least, greatest;
  uint32_t first, last;
  if (n < INDEX_RANGE_MIN_KEYS) return LODE_OK;
  TRY(segment_key_at(s, 0, &least, err));
  TRY(segment_key_at(s, s->info.n - 1, &greatest, err));
  size_t before = count_below(keys, n, least), end = count_below(keys, n, greatest);
  if (end < before + INDEX_RANGE_MIN_KEYS) return LODE_OK;
  TRY(segment_seek_key(s, keys[before].key, 0, &first, err));
  TRY(segment_seek_key(s, keys[end - 1].key, first, &last, err));
  if (last >= s->info.n) return LODE_OK;
  uint64_t at = (uint64_t)first * s->record_bytes, bytes = (uint64_t)(last - first + 1) * s->record_bytes;
  return end - before > bytes / INDEX_PAGE_BYTES / 2 ? index_paged_need(&s->records, at, bytes, err) : LODE_OK;
}

static lode_status segment_mark_nolock(index_segment *s, const index_segment_record *keys, size_t n, uint64_t *bits,
                                       size_t *marked, lode_error *err) {
  const unsigned char *bytes = NULL;
  uint32_t slot = 0;
  TRY(segment_need_range(s, keys, n, err));
  for (size_t i = 0; i < n && slot < s->info.n; i++) {
    TRY(segment_seek_key(s, keys[i].key, slot, &slot, err));
    if (slot >= s->info.n) break;
    TRY(segment_need_record(s, slot, &bytes, err));
    if ((int64_t)num_le64(bytes) != keys[i].key || (keys[i].cursor && num_le64(bytes + 8) != keys[i].cursor)) continue;
    uint64_t bit = (uint64_t)1 << (slot % 64);
    *marked += !(bits[slot / 64] & bit);
    bits[slot / 64] |= bit;
  }
  return LODE_OK;
}

lode_status index_segment_mark(index_segment *segment, const index_segment_record *keys, size_t n, uint64_t *bits,
                               size_t *marked, lode_error *err) {
  unsigned side = index_segment_enter(segment);
  lode_status st = segment_mark_nolock(segment, keys, n, bits, marked, err);
  index_segment_leave(segment, side);
  return st;
}

lode_status index_segment_get_vector(index_segment *segment, uint32_t slot, float *vector, const index_fetch *fetch,
                                     lode_error *err) {
  unsigned side = index_segment_enter(segment);
  lode_status st = index_segment_vectors_nolock(segment, slot, 1, vector, fetch, err);
  index_segment_leave(segment, side);
  return st;
}

/* ---- Verification ---- */

/* Do the low bits of a row, if it is on the grid, make its vector? */
static bool segment_low_is_right(const index_segment *s, uint32_t ordinal, const float *vector, unsigned char *low) {
  if (s->low_bytes == 0 || !quant_row_is_on_grid(&s->model, s->rows.data + (size_t)ordinal * s->stride)) return true;
  quant_grid_encode_low(&s->info.grid, vector, s->info.dim, low);
  return memcmp(s->low.data + (size_t)ordinal * s->low_bytes, low, s->low_bytes) == 0;
}

static lode_status segment_verify_row(index_segment *s, uint32_t ordinal, float *vector, unsigned char *row,
                                      lode_error *err) {
  const unsigned char *stored = s->rows.data + (size_t)ordinal * s->stride;
  uint32_t slot = quant_row_slot(stored);
  if (slot >= s->info.n || (s->info.kind == INDEX_FLAT && slot != ordinal))
    return index_segment_damaged(err, "slot of a row");
  if (s->info.kind == INDEX_GRAPH && num_le32(s->ordinals.data + (size_t)slot * 4) != ordinal) {
    return index_segment_damaged(err, "ordinal of a slot");
  }
  TRY(index_segment_vectors_nolock(s, slot, 1, vector, NULL, err));
  if (s->info.placed && index_vector_is_gone(vector)) return LODE_OK;
  for (uint32_t j = 0; j < s->info.dim; j++) {
    if (!isfinite(vector[j])) return index_segment_damaged(err, "element of a vector");
  }
  quant_encode_row(&s->model, vector, slot, row);
  if (memcmp(stored, row, s->stride) != 0) return index_segment_damaged(err, "code of a row");
  bool low_is_right = segment_low_is_right(s, ordinal, vector, row + s->stride);
  quant_spread spread = s->info.spread;
  quant_spread_add(&spread, &s->model, vector, row);
  if (!low_is_right) return index_segment_damaged(err, "low bits of a row");
  bool known = s->info.spread.error > 0;
  return known && memcmp(&spread, &s->info.spread, sizeof spread) != 0 ? index_segment_damaged(err, "error of a row")
                                                                       : LODE_OK;
}

lode_status index_segment_verify(index_segment *segment, index_graph_report *report, lode_error *err) {
  lode_status st = LODE_OK;
  index_segment *s = segment;
  *report = (index_graph_report){.bad_link = INDEX_NO_LINK};
  float *vector = mem_calloc(s->info.dim, sizeof *vector);
  unsigned char *row = mem_alloc(s->stride + s->low_bytes);
  unsigned side = index_segment_enter(s);
  if (!vector || !row) TRY_GOTO(err_nomem(err));
  index_paged *all[] = {&s->rows, &s->low, &s->links, &s->ordinals, &s->records};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (all[i]->bytes) TRY_GOTO(index_paged_need(all[i], 0, all[i]->bytes, err));
  }
  for (uint32_t i = 0; i < s->info.n; i++) TRY_GOTO(segment_verify_row(s, i, vector, row, err));
  if (s->info.kind == INDEX_GRAPH) {
    index_graph_links links = {.data = s->links.data, .width = s->info.degree, .bits = s->info.link_bits};
    TRY_GOTO(index_graph_check(&links, s->info.n, report, err));
  }
done:
  index_segment_leave(s, side);
  mem_free(vector);
  mem_free(row);
  return st;
}
