/* sqlite_pages.h - reading an SQLite database file without SQLite: pages, trees and rows, as bytes that may lie.
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
 * it; sqf_check_unchanged() says whether the file stayed as it was in any case.
 */
#ifndef LODE_SQLITE_SQLITE_PAGES_H
#define LODE_SQLITE_SQLITE_PAGES_H

#include "base/base.h"

#define SQF_MAX_COLUMNS 24
#define SQF_MAX_ROW_BYTES 1000000000u /* the most that a row may have: SQLite's own limit */

typedef struct sqf_file sqf_file;

typedef struct sqf_info {
  uint32_t page_bytes;
  uint32_t pages;
  uint32_t journal_pages;  /* read from a journal that was left */
  uint32_t wal_pages;      /* read from a write-ahead log */
  uint32_t damaged_pages;  /* met so far: not what they should be */
  uint64_t damaged_rows;   /* met so far: cells that are no rows, or whose chain breaks off */
  bool header_lost;        /* page 1 does not begin as it should */
  bool locked;             /* the shared lock is held */
  uint32_t first_damaged;  /* page number, 0 when there is none */
} sqf_info;

/* LODE_NOT_FOUND: no such file. LODE_CORRUPT: it is empty or too short to hold a page. */
lode_status sqf_open(const char *path, sqf_file **file, lode_error *err);
void sqf_close(sqf_file *file);
void sqf_get_info(const sqf_file *file, sqf_info *info);
/* Trees may be walked once more. */
void sqf_reset_seen(sqf_file *file);
/* LODE_BUSY when the file or its side files were written to since it was opened. */
lode_status sqf_check_unchanged(sqf_file *file, lode_error *err);

/* ---- Rows ---- */

/* SQLite's integer of variable length: its length, or 0 when it goes past the end. */
size_t sqf_get_varint(const unsigned char *p, const unsigned char *end, uint64_t *value);

typedef enum sqf_type { SQF_NULL, SQF_INT, SQF_REAL, SQF_TEXT, SQF_BLOB } sqf_type;
typedef struct sqf_value {
  sqf_type type;
  int64_t i;
  double d;
  lode_str s;      /* text and blobs, in the file's own buffer */
} sqf_value;

/* Where a row is, so that it can be read again. */
typedef struct sqf_place {
  uint32_t page;   /* 0: nowhere */
  uint32_t offset;
} sqf_place;

typedef struct sqf_row {
  int64_t key;           /* rowid; of rows in indexes 0 */
  sqf_place place;
  bool table;            /* a table's row; else an index's */
  bool cut;              /* its chain breaks off: values past the break are null */
  size_t n;
  sqf_value values[SQF_MAX_COLUMNS];
} sqf_row;

/* A row's values live until the next row is read. */
typedef lode_status sqf_row_fn(void *ctx, const sqf_row *row, lode_error *err);

/* All rows of the tree at `root`, in the order of their keys. */
lode_status sqf_walk_table(sqf_file *file, uint32_t root, sqf_row_fn *fn, void *ctx, lode_error *err);
/* The same for the tree of an index, in no order: the indexed columns, then the key of the table's row. */
lode_status sqf_walk_index(sqf_file *file, uint32_t root, sqf_row_fn *fn, void *ctx, lode_error *err);
/* The rows of leaf pages that no walk has reached and that are not on the list of free pages; inner index pages too. */
lode_status sqf_walk_orphans(sqf_file *file, sqf_row_fn *fn, void *ctx, lode_error *err);
/* LODE_CORRUPT when there is no row any more. */
lode_status sqf_read_row(sqf_file *file, sqf_place place, sqf_row *row, lode_error *err);
/* Where in the file the byte is that says the type of a row's column; false when it is not one byte, or the page is in a side file. */
bool sqf_type_offset(sqf_file *file, sqf_place place, size_t column, uint64_t *offset);

#endif
