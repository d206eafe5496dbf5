/* SPDX-License-Identifier: Apache-2.0 */
/* truth_pages.h - reading the truth file without SQLite: pages, cells and rows of its b-trees.
 *
 * Nothing that is read is trusted: page numbers, offsets, lengths and counts are checked against the file before they
 * are used, an overflow chain is followed only for as many pages as the row's length needs, and a row is proven only
 * by its own checksum (row_checksums.c). A page that cannot be read from the medium reads as zeros.
 *
 * A hot journal (journal.h) belongs to a transaction that did not finish: its images are the pages before it, and are
 * read instead of the file's. Images of a damaged journal are used only where the file's own page is damaged.
 */
#ifndef LODE_STORE_TRUTH_PAGES_H
#define LODE_STORE_TRUTH_PAGES_H

#include "vfs/journal.h"

#define STORE_ROW_MAX_COLUMNS 24

typedef struct store_pages {
  int fd, journal_fd;
  /* If set, pages come from here instead of fd: a holder of SQLite's lock reads through SQLite's handle. */
  bool (*read)(void *ctx, uint32_t number, unsigned char *page);
  void *read_ctx;
  uint64_t file_bytes;
  uint32_t page_bytes;
  uint32_t usable;       /* without the reserved bytes */
  uint32_t count;        /* pages in the file, including an incomplete last one */
  uint32_t declared;     /* number of pages according to page 1; 0: page 1 is damaged */
  uint32_t format;       /* the store's format according to page 1; 0: page 1 is damaged */
  bool has_map;          /* there are pointer-map pages */
  bool journal_whole;    /* the journal is hot and valid: its images are preferred */
  journal_image *images; /* sorted by number */
  size_t n_images, cap_images;
  uint32_t map_number; /* pointer-map page held in `map`; 0: none */
  bool map_sound;
  unsigned char *map, *chain; /* page buffers */
  uint64_t damaged_reads;
} store_pages;

/* Opens a file as pages. The path is absolute, and neither the file nor its folder may be a link. LODE_CORRUPT:
 * nothing in it looks like a page of a store. */
lode_status store_pages_open(const char *file, store_pages *pages, lode_error *err);
void store_pages_close(store_pages *pages);
/* `page` has page_bytes bytes. False: the page is damaged; the bytes are what could be read. */
bool store_pages_read(store_pages *pages, uint32_t number, unsigned char *page);

/* What a page is used for, according to the pointer map. */
typedef enum store_page_use {
  STORE_PAGE_UNKNOWN,
  STORE_PAGE_ROOT,
  STORE_PAGE_FREE,
  STORE_PAGE_OVERFLOW_FIRST,
  STORE_PAGE_OVERFLOW,
  STORE_PAGE_TREE,
  STORE_PAGE_PTRMAP,
  STORE_PAGE_LOCK,
} store_page_use;
store_page_use store_pages_use_of(store_pages *pages, uint32_t number);

/* ---- Cells ---- */

typedef struct store_page_view {
  const unsigned char *page;
  size_t pointers; /* where the cell pointers begin */
  size_t content;  /* where the header says that cells begin */
  uint32_t cells;
  bool table;   /* rows with keys; false: rows of an index or of a WITHOUT ROWID table */
  size_t child; /* bytes before each cell's length: 4 on inner index pages */
} store_page_view;

/* False for pages that hold no rows. */
bool store_page_parse(const store_pages *pages, uint32_t number, const unsigned char *page, store_page_view *view);
/* For a page whose header cannot be trusted: views it as a leaf of a table. */
void store_page_assume_leaf(uint32_t number, const unsigned char *page, store_page_view *view);
/* Offset of cell i; 0: the pointer is invalid. */
size_t store_page_cell(const store_pages *pages, const store_page_view *view, uint32_t i);

typedef enum store_col_type {
  STORE_COL_NULL,
  STORE_COL_INT,
  STORE_COL_REAL,
  STORE_COL_TEXT,
  STORE_COL_BLOB
} store_col_type;
typedef struct store_col {
  store_col_type type;
  uint8_t constant; /* value + 1 of an integer 0 or 1 that is stored without bytes; otherwise 0 */
  size_t at, len;   /* in the payload */
} store_col;

typedef struct store_row store_row;
struct store_row {
  int64_t key;    /* rowid; 0 for index rows */
  uint64_t bytes; /* length of the payload */
  const unsigned char *local;
  size_t local_bytes; /* bytes of the payload on the page itself */
  uint32_t overflow;  /* page on which it continues, or 0 */
  size_t n;
  store_col cols[STORE_ROW_MAX_COLUMNS];
};

/* Parses the cell at `offset`: key, and types and positions of the columns. False: no row of ours begins there. */
bool store_row_parse(const store_pages *pages, const store_page_view *view, size_t offset, store_row *row);
/* Loads the whole payload, including overflow pages. LODE_CORRUPT: the chain is broken. */
lode_status store_row_load(store_pages *pages, const store_row *row, strbuf *payload, lode_error *err);
/* Columns of a loaded row. */
int64_t store_row_int(const store_row *row, size_t column, const strbuf *payload);
lode_str store_row_str(const store_row *row, size_t column, const strbuf *payload);
/* An integer column, without loading the payload; false: it is not on the page itself. */
bool store_row_local_int(const store_row *row, size_t column, int64_t *value);

/* ---- Our tables, recognized by the column types of their rows ---- */

typedef enum store_row_kind {
  STORE_ROW_OTHER,
  STORE_ROW_RECORD,
  STORE_ROW_DOCUMENT,
  STORE_ROW_VECTOR,
  STORE_ROW_TOMBSTONE,
  STORE_ROW_COLLECTION,
  STORE_ROW_METAKEY,
  STORE_ROW_ID,
} store_row_kind;
store_row_kind store_row_kind_of(const store_row *row, bool table);

/* ---- Progress ---- */

static inline lode_status store_progress(lode_progress p, const char *phase, uint64_t done, uint64_t total,
                                         lode_error *err) {
  if (!p.step || p.step(p.ctx, phase, done, total)) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "cancelled by the caller");
}

#endif
