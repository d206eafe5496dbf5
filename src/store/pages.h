/* pages.h - reading the truth file without SQLite: pages, cells and rows of its b-trees, as bytes that may lie.
 *
 * Nothing here trusts what it reads: page numbers, offsets, lengths and counts are checked against the file before they are
 * used, overflow chains are followed for as many pages as the row's length needs and no further, and a row is
 * only proven by the checksum in it (checksums.c). A page that the medium does not give back reads as zeros.
 *
 * A journal beside the file that is hot (judge.h) belongs to a transaction that did not finish: its images are the pages as
 * they were, and are read instead of the file's. From one that is damaged, images serve only where the file's own page is.
 */
#ifndef LODE_PAGES_H
#define LODE_PAGES_H

#include "judge.h"

#define LODE__ROW_COLUMNS 24

typedef struct lode__pages {
  int fd, journal_fd;
  /* Where pages come from instead of the file, if it is set: whoever holds SQLite's lock reads through SQLite's handle. */
  bool (*read)(void *ctx, uint32_t number, unsigned char *page);
  void *read_ctx;
  uint64_t file_bytes;
  uint32_t page_bytes;
  uint32_t usable;       /* without the reserved bytes */
  uint32_t count;        /* pages, one that is cut short included */
  uint32_t declared;     /* pages that page 1 says there are; 0 when page 1 is damaged */
  uint32_t format;       /* the same for the store's format */
  bool has_map;          /* pointer-map pages say what each page is for */
  bool journal_whole;
  lode__page_image *images; /* sorted by number */
  size_t n_images, cap_images;
  uint32_t map_number;   /* pointer-map page held in `map`; 0: none */
  bool map_sound;
  unsigned char *map, *chain; /* page buffers */
  uint64_t damaged_reads;
} lode__pages;

/* Opens a file as pages. LODE_CORRUPT when nothing in it looks like a page of a store. */
/* An absolute path; neither the file nor its folder may be a link. */
lode_status lode__pages_open(const char *file, lode__pages *pages, lode_error *err);
void lode__pages_close(lode__pages *pages);
/* `page` has page_bytes bytes. False: damaged (the bytes are what could be read). */
bool lode__pages_read(lode__pages *pages, uint32_t number, unsigned char *page);

/* What a page is for, as far as the pointer map can tell. */
typedef enum lode__page_use {
  LODE__USE_UNKNOWN, LODE__USE_ROOT, LODE__USE_FREE, LODE__USE_OVERFLOW_FIRST, LODE__USE_OVERFLOW, LODE__USE_TREE,
  LODE__USE_MAP, LODE__USE_LOCK,
} lode__page_use;
lode__page_use lode__pages_use(lode__pages *pages, uint32_t number);

/* ---- Cells ---- */

typedef struct lode__page_view {
  const unsigned char *page;
  size_t pointers;   /* where the cell pointers begin */
  size_t content;    /* where the header says that cells begin */
  uint32_t cells;
  bool table;        /* rows with keys; else rows of an index or WITHOUT ROWID */
  size_t child;      /* bytes before each cell's length: 4 on inner index pages */
} lode__page_view;

/* False for pages that hold no rows. */
bool lode__page_look(const lode__pages *pages, uint32_t number, const unsigned char *page, lode__page_view *view);
/* The same for a page whose header is not to be trusted: seen as a leaf of a table. */
void lode__page_assume_leaf(uint32_t number, const unsigned char *page, lode__page_view *view);
/* Offset of cell i, 0 when the pointer is impossible. */
size_t lode__page_cell(const lode__pages *pages, const lode__page_view *view, uint32_t i);

typedef enum lode__col_type { LODE__COL_NULL, LODE__COL_INT, LODE__COL_REAL, LODE__COL_TEXT, LODE__COL_BLOB } lode__col_type;
typedef struct lode__col {
  lode__col_type type;
  uint8_t constant;   /* integers 0 and 1 may have no bytes: their value + 1 */
  size_t at, len;     /* in the payload */
} lode__col;

typedef struct lode__row lode__row;
struct lode__row {
  int64_t key;               /* of rows in tables */
  uint64_t bytes;            /* of the payload */
  const unsigned char *local;
  size_t local_bytes;        /* of it on the page itself */
  uint32_t overflow;         /* where it goes on, or 0 */
  size_t n;
  lode__col cols[LODE__ROW_COLUMNS];
};

/* Parses the cell at `offset`: key, and the columns' types and places. False: no row of ours begins there. */
bool lode__row_at(const lode__pages *pages, const lode__page_view *view, size_t offset, lode__row *row);
/* The whole payload, overflow included. LODE_CORRUPT when the chain breaks. */
lode_status lode__row_load(lode__pages *pages, const lode__row *row, strbuf *payload, lode_error *err);
/* Columns of a loaded row. */
int64_t lode__row_int(const lode__row *row, size_t column, const strbuf *payload);
lode_str lode__row_str(const lode__row *row, size_t column, const strbuf *payload);
/* An integer column that lies on the page itself; false when it does not. */
bool lode__row_local_int(const lode__row *row, size_t column, int64_t *value);

/* ---- Our tables, by the shape of their rows ---- */

typedef enum lode__row_kind {
  LODE__ROW_OTHER, LODE__ROW_RECORD, LODE__ROW_DOCUMENT, LODE__ROW_VECTOR, LODE__ROW_GRAVE, LODE__ROW_COLLECTION,
  LODE__ROW_KEY, LODE__ROW_NAME,
} lode__row_kind;
lode__row_kind lode__row_shape(const lode__row *row, bool table);

/* ---- Progress ---- */

static inline lode_status lode__progress(lode_progress p, const char *phase, uint64_t done, uint64_t total, lode_error *err) {
  if (!p.step || p.step(p.ctx, phase, done, total)) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "cancelled by the caller");
}

#endif
