/* sqlite_file.h - reading an SQLite database file without SQLite: pages, trees and rows, as bytes that may lie.
 *
 * One path serves sound and damaged files, files that nobody closed, files on read-only media and files in use. Nothing is ever
 * written, no side file is made. Page numbers, offsets, lengths and counts are checked before use; trees are walked with a
 * stack of bounded depth, each page at most once; overflow chains are as long as the row needs and no longer. What cannot be
 * read is counted and passed over.
 *
 * Side files, by their documented formats (fileformat2.html):
 *   -journal  a transaction that did not finish: its page images, as far as their checksums hold, stand for the file's pages
 *   -wal      the frames up to the last commit whose checksums hold stand for the file's pages
 * While it is open, the reader holds SQLite's shared lock if it can be had, so that a live writer cannot change pages under
 * it; lode__sq_unchanged() says whether the file stayed as it was in any case.
 */
#ifndef LODE_SQLITE_FILE_H
#define LODE_SQLITE_FILE_H

#include "base.h"

#define LODE__SQ_COLUMNS 24
#define LODE__SQ_CELL_BYTES 1000000000u /* the most that a row may have: SQLite's own limit */

typedef struct lode__sq_file lode__sq_file;

typedef struct lode__sq_info {
  uint32_t page_bytes;
  uint32_t pages;
  uint32_t journal_pages;  /* read from a journal that was left */
  uint32_t wal_pages;      /* read from a write-ahead log */
  uint32_t damaged_pages;  /* met so far: not what they should be */
  uint64_t damaged_rows;   /* met so far: cells that are no rows, or whose chain breaks off */
  bool header_lost;        /* page 1 does not begin as it should */
  bool locked;             /* the shared lock is held */
  uint32_t first_damaged;  /* page number, 0 when there is none */
} lode__sq_info;

/* LODE_NOT_FOUND: no such file. LODE_CORRUPT: it is empty or too short to hold a page. */
lode_status lode__sq_open(const char *path, lode__sq_file **file, lode_error *err);
void lode__sq_close(lode__sq_file *file);
void lode__sq_info_of(const lode__sq_file *file, lode__sq_info *info);
/* Trees may be walked once more. */
void lode__sq_forget(lode__sq_file *file);
/* LODE_BUSY when the file or its side files were written to since it was opened. */
lode_status lode__sq_unchanged(lode__sq_file *file, lode_error *err);

/* ---- Rows ---- */

/* SQLite's integer of variable length: its length, or 0 when it goes past the end. */
size_t lode__sq_varint(const unsigned char *p, const unsigned char *end, uint64_t *value);

typedef enum lode__sq_type { LODE__SQ_NULL, LODE__SQ_INT, LODE__SQ_REAL, LODE__SQ_TEXT, LODE__SQ_BLOB } lode__sq_type;
typedef struct lode__sq_value {
  lode__sq_type type;
  int64_t i;
  double d;
  lode_str s;      /* text and blobs, in the file's own buffer */
} lode__sq_value;

/* Where a row is, so that it can be read again. */
typedef struct lode__sq_place {
  uint32_t page;   /* 0: nowhere */
  uint32_t offset;
} lode__sq_place;

typedef struct lode__sq_row {
  int64_t key;           /* rowid; of rows in indexes 0 */
  lode__sq_place place;
  bool table;            /* a table's row; else an index's */
  bool cut;              /* its chain breaks off: values past the break are null */
  size_t n;
  lode__sq_value values[LODE__SQ_COLUMNS];
} lode__sq_row;

/* A row's values live until the next row is read. */
typedef lode_status lode__sq_row_fn(void *ctx, const lode__sq_row *row, lode_error *err);

/* All rows of the tree at `root`, in the order of their keys. */
lode_status lode__sq_walk(lode__sq_file *file, uint32_t root, lode__sq_row_fn *fn, void *ctx, lode_error *err);
/* The same for the tree of an index, in no order: the indexed columns, then the key of the table's row. */
lode_status lode__sq_walk_index(lode__sq_file *file, uint32_t root, lode__sq_row_fn *fn, void *ctx, lode_error *err);
/* The rows of leaf pages that no walk has reached and that are not on the list of free pages; inner index pages too. */
lode_status lode__sq_strays(lode__sq_file *file, lode__sq_row_fn *fn, void *ctx, lode_error *err);
/* LODE_CORRUPT when there is no row any more. */
lode_status lode__sq_read(lode__sq_file *file, lode__sq_place place, lode__sq_row *row, lode_error *err);
/* Where in the file the byte is that says the type of a row's column; false when it is not one byte, or the page is in a side file. */
bool lode__sq_type_at(lode__sq_file *file, lode__sq_place place, size_t column, uint64_t *offset);

#endif
