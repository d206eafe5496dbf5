/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h - the format of a segment: an immutable file of vectors, their codes and their graph.
 *
 * All numbers are little-endian; P is INDEX_PAGE_BYTES; every section starts at a page and is padded with zeros to one.
 *
 *   header     one page: see segment.c
 *   vectors    n rows of dim floats, by slot (the order in which rows were added); each has a checksum in its record.
 *              None in a placed segment: see below
 *   mean       dim floats: the quantisation model
 *   rows       n codes, that is, quantised vectors (quant.h), by ordinal
 *   low bits   n rows of bits, by ordinal, that make a vector of a row; only of whole numbers (quant_grid.h)
 *   links      n rows of `degree` ordinals, of `link_bits` bits each (graph_walk.h); graph only
 *   ordinals   the ordinal of each slot, u32; graph only
 *   records    by slot: i64 key | u64 cursor | u32 checksum of the vector | u32 zero; placed: and u64 place
 *   checksums  u32 for each page of the file except `vectors` and this section: header first, then the others
 *
 * The layout follows from the header alone, and must end where the file does. A page's checksum is CRC-32C
 * over segment id, page number and bytes; a vector's over segment id, slot and bytes; the section of checksums has one
 * over segment id and bytes, which is kept outside (in the manifest). So a page from another file or position is
 * detected as damage too.
 *
 * A placed segment does not hold the vectors once more, but where each of them is in another file that holds it anyway.
 * A place is only a hint: what is read there is the vector if its checksum says so. A vector that has moved is fetched
 * by its record (index_fetch), and one that is nowhere any more is left out of results.
 *
 * This module does no file I/O: bytes are read and written through callbacks. Pages are read when they are first
 * needed, checked, and kept in memory until evicted. A vector is read and checked when it is needed, and kept if the
 * segment was given a cache for them (segment_vectors.h). A segment may be searched by many threads at once. No lock is
 * held over a read or a search: eviction waits for nobody, and the memory is given back when the searches that were
 * running have ended (segment_pages.c).
 */
#ifndef LODE_INDEX_SEGMENT_H
#define LODE_INDEX_SEGMENT_H

#include <pthread.h>

#include "index/graph.h"
#include "kernel/quant_bounds.h"

/* Reads exactly n bytes at the offset. LODE_IO if they cannot be read, LODE_CORRUPT if the file is too short. */
typedef lode_status index_read_fn(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err);
typedef lode_status index_write_fn(void *ctx, uint64_t offset, const void *data, size_t n, lode_error *err);

/* Reads the vector of a record that is not at its place any more, dim floats; *found is false if it is gone. */
typedef lode_status index_fetch_fn(void *ctx, int64_t key, uint64_t cursor, float *vector, bool *found,
                                   lode_error *err);
typedef struct index_fetch {
  index_fetch_fn *fn; /* NULL: what has moved counts as gone */
  void *ctx;
} index_fetch;

typedef enum index_segment_kind { INDEX_FLAT = 1, INDEX_GRAPH = 2 } index_segment_kind;

typedef struct index_segment_info {
  index_segment_kind kind;
  lode_metric metric;
  uint32_t dim, n, degree, n_entries;
  uint64_t id;              /* part of all checksums */
  uint64_t bytes;           /* of the file */
  float unit;               /* of the codes */
  uint32_t effort;          /* default of searches: see index_graph; 0: not known */
  index_effort_curve curve; /* for searches with a target recall */
  uint32_t entry_climbs;    /* see index_graph */
  bool placed;              /* it holds the places of its vectors instead of them */
  uint32_t link_bits;       /* of a link; 32 in files of versions before format 4 */
  quant_grid grid;          /* of the codes; step 0: rows do not hold their vectors */
  quant_spread spread;      /* for exact searches by codes; zeros in files of versions that did not have it */
} index_segment_info;

/* ---- Layout; only for segment*.c and tests ---- */

enum {
  INDEX_SEG_VECTORS,
  INDEX_SEG_MEAN,
  INDEX_SEG_ROWS,
  INDEX_SEG_LOW,
  INDEX_SEG_LINKS,
  INDEX_SEG_ORDINALS,
  INDEX_SEG_RECORDS,
  INDEX_SEG_CHECKSUMS,
  INDEX_SEG_SECTIONS
};
enum {
  INDEX_SEG_RECORD_BYTES = 24,
  INDEX_SEG_PLACED_BYTES = 32, /* of a record with a place */
  INDEX_SEG_PLACE_AT = 24,
  INDEX_SEG_HEADER_CRC_AT = 60
};
static inline size_t index_segment_record_bytes(const index_segment_info *info) {
  return info->placed ? INDEX_SEG_PLACED_BYTES : INDEX_SEG_RECORD_BYTES;
}

typedef struct index_segment_layout {
  uint64_t at[INDEX_SEG_SECTIONS], bytes[INDEX_SEG_SECTIONS]; /* bytes without padding */
  uint64_t total;
  uint64_t checked_pages; /* entries of the section of checksums */
} index_segment_layout;

/* False if the numbers are out of range or the file would be too large. */
LODE_MUST bool index_segment_layout_of(const index_segment_info *info, index_segment_layout *layout);
/* The index of a page's checksum; not for pages of vectors or checksums. */
uint64_t index_segment_crc_slot(const index_segment_layout *layout, uint64_t page);
uint32_t index_segment_page_crc(uint64_t id, uint64_t page, const void *bytes);
uint32_t index_segment_vector_crc(uint64_t id, uint32_t slot, const void *bytes, size_t n);
uint32_t index_segment_table_crc(uint64_t id, const void *bytes, size_t n);
void index_segment_put_header(const index_segment_info *info, unsigned char *page); /* INDEX_PAGE_BYTES */
LODE_MUST lode_status index_segment_get_header(const unsigned char *page, uint64_t file_bytes, index_segment_info *info,
                                               lode_error *err);

/* ---- Writing ----
 *
 * index_writer_begin(), index_writer_add() for each row, index_writer_finish(), index_writer_release(). Vectors go
 * straight to the file; codes and records stay in memory, and during the construction of the graph its links: about
 * stride + 6 * degree + 44 bytes for each row. The header is written last.
 */
typedef struct index_writer_options {
  uint64_t id;
  index_segment_kind kind;
  quant_model model;  /* its mean must stay valid until index_writer_finish() */
  uint32_t rows_hint; /* expected number of rows, if known */
  bool placed;        /* vectors are not written: index_writer_add_placed() says where they are */
  index_graph_options graph;
  index_write_fn *write;
  void *ctx;
} index_writer_options;

typedef struct index_writer {
  index_writer_options options;
  index_segment_info info;
  size_t stride, rows_cap, records_cap, lengths_cap, sums_cap, low_bytes, low_cap;
  unsigned char *rows, *records, *low;
  float *lengths;
  uint32_t *sums;        /* of the vectors, to tell equal ones from those that only have equal codes */
  unsigned char *buffer; /* vectors to be written */
  size_t buffered;
  uint64_t vectors_end; /* file offset */
  uint32_t table_crc;   /* set by index_writer_finish(), for the manifest */
} index_writer;

LODE_MUST lode_status index_writer_begin(index_writer *writer, const index_writer_options *options, lode_error *err);
LODE_MUST lode_status index_writer_add(index_writer *writer, const float *vector, int64_t key, uint64_t cursor,
                                       lode_error *err);
/* place: offset of the vector's bytes in the file that index_segment_source.read_place reads; 0: not known. */
LODE_MUST lode_status index_writer_add_placed(index_writer *writer, const float *vector, int64_t key, uint64_t cursor,
                                              uint64_t place, lode_error *err);
/* Afterwards writer->info (bytes, n, ...) and writer->table_crc hold what goes into the manifest. */
LODE_MUST lode_status index_writer_finish(index_writer *writer, lode_error *err);
void index_writer_release(index_writer *writer);

/* ---- Reading ---- */

typedef struct index_segment index_segment;
typedef struct index_vectors index_vectors; /* a cache of vectors: segment_vectors.c */

/* A section that is loaded page by page; see segment_pages.c. */
typedef struct index_section {
  index_segment *segment;
  index_paged *paged;
  uint64_t first_page; /* of the file */
  uint64_t *busy;      /* bitmap of pages that a thread is reading */
  uint64_t *leaving;   /* bitmap of evicted pages that are still in memory */
} index_section;

enum { INDEX_SECTIONS = 5 };
typedef enum index_eviction { INDEX_EVICT_NONE, INDEX_EVICT_WAITING, INDEX_EVICT_DROPPING } index_eviction;

struct index_segment {
  index_segment_info info;
  index_segment_layout layout;
  quant_model model;
  size_t stride, record_bytes, low_bytes, link_row_bytes;
  index_paged rows, low, links, ordinals, records;
  unsigned char *table; /* the section of checksums */
  index_read_fn *read, *read_place;
  void *ctx;
  _Atomic uint64_t moved;           /* reads that did not find the vector at its place */
  _Atomic uint64_t resident;        /* bytes of pages in memory */
  _Atomic uint64_t vector_bytes;    /* of the cache of vectors */
  _Atomic(index_vectors *) vectors; /* NULL: vectors are not kept */
  index_vectors *leaving_vectors;   /* guarded by the lock; a cache that was taken away and is still in use */
  index_section sections[INDEX_SECTIONS];
  size_t n_sections;
  pthread_mutex_t lock;            /* guards what pages are busy or leaving, and `hand`; held for a moment */
  pthread_cond_t read_done;        /* pages are no longer busy */
  atomic_uint epoch;               /* counts evictions; its last bit is the side on which searches enter */
  atomic_uint users[2];            /* threads inside, by side */
  _Atomic index_eviction evicting; /* pages that are leaving wait for the users of the other side */
  uint64_t hand;                   /* where eviction resumes */
};

/* What the manifest says about the file: its id, length and table_crc must match. */
typedef struct index_segment_source {
  uint64_t id, bytes;
  uint32_t table_crc;
  index_read_fn *read;
  index_read_fn *read_place; /* for placed segments; whatever it fails with, the vector counts as moved */
  void *ctx;
} index_segment_source;
/* Reads the header, the checksums and the mean; everything else on demand. LODE_TOO_NEW for a newer format,
 * LODE_CORRUPT for damage. */
LODE_MUST lode_status index_segment_open(const index_segment_source *source, index_segment **segment, lode_error *err);
void index_segment_close(index_segment *segment);

/* Loads everything except the vectors. */
LODE_MUST lode_status index_segment_preload(index_segment *segment, lode_error *err);
/* Evicts the cache of vectors, then pages, so that at most `keep` bytes stay resident once the searches that are
 * running have ended; the entries stay. Does nothing while an earlier eviction still waits for that. */
void index_segment_evict(index_segment *segment, uint64_t keep);

typedef struct index_segment_record {
  int64_t key;
  uint64_t cursor;
} index_segment_record;
LODE_MUST lode_status index_segment_get_record(index_segment *segment, uint32_t slot, index_segment_record *record,
                                               lode_error *err);
/* Sets the bit of each slot whose key is among `keys`, which are sorted by key, and whose cursor is that of the entry
 * (0: any); *marked counts those that were not set before. Only for segments whose rows were added by ascending key: in
 * others (forged ones) some are not found. */
LODE_MUST lode_status index_segment_mark(index_segment *segment, const index_segment_record *keys, size_t n,
                                         uint64_t *bits, size_t *marked, lode_error *err);
/* Reads and checks n vectors from slot `first` on, and their records. `fetch` may be NULL, here and below. */
LODE_MUST lode_status index_segment_get_block(index_segment *segment, uint32_t first, uint32_t n, float *vectors,
                                              index_segment_record *records, const index_fetch *fetch, lode_error *err);
/* Reads and checks the vector of a slot (dim floats). */
LODE_MUST lode_status index_segment_get_vector(index_segment *segment, uint32_t slot, float *vector,
                                               const index_fetch *fetch, lode_error *err);
/* Is this in place of a vector that is gone? Vectors are finite. */
static inline bool index_vector_is_gone(const float *vector) { return vector[0] != vector[0]; }

/* Pages that were found loaded stay in memory between these two; what index_segment_enter() returns goes to
 * index_segment_leave(). Functions with _nolock in their name, and those that read `data` of a section, are called in
 * between. */
LODE_MUST unsigned index_segment_enter(index_segment *segment);
void index_segment_leave(index_segment *segment, unsigned side);

/* For segment*.c. */
LODE_MUST lode_status index_segment_damaged(lode_error *err, const char *what);
LODE_MUST bool index_segment_page_is_right(const index_segment *s, uint64_t page, const void *bytes);
LODE_MUST lode_status index_section_init(index_segment *s, index_paged *paged, int section, lode_error *err);

/* For all sections in memory: their bytes, loaded or not. */
uint64_t index_segment_section_bytes(const index_segment *s);

/* The vector of a slot, of its row alone; *exact is false if the row does not hold it. Inside the segment. */
LODE_MUST lode_status index_segment_decode_nolock(index_segment *s, uint32_t slot, float *vector, bool *exact,
                                                  lode_error *err);
/* Asks for the memory that the above will need: first what is_near is false for, and a little later the rest. */
void index_segment_prefetch_row(const index_segment *s, uint32_t slot, bool is_near);
/* The ordinal of a slot. Inside the segment. */
LODE_MUST lode_status index_segment_ordinal_nolock(index_segment *s, uint32_t slot, uint32_t *ordinal, lode_error *err);
/* For index_search.c: the record of a slot. */
LODE_MUST lode_status index_segment_record_nolock(index_segment *s, uint32_t slot, index_segment_record *record,
                                                  lode_error *err);

/* Reads everything: checks every checksum, every invariant of rows, links and ordinals, and each code against its
 * vector, if that is at its place. */
LODE_MUST lode_status index_segment_verify(index_segment *segment, index_graph_report *report, lode_error *err);

#endif
