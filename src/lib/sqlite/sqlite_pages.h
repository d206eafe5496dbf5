/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_pages.h - reads an SQLite database file without SQLite: pages, trees and rows, none of which is trusted.
 *
 * The same code reads intact and damaged files, files that were not closed, files on read-only media and files in use.
 * Nothing is ever written, and no side file is created. Page numbers, offsets, lengths and counts are checked before
 * use; trees are walked with a stack of bounded depth, each page at most once; overflow chains are followed only as far
 * as the row needs. What cannot be read is counted and skipped.
 *
 * Side files, by their documented formats (fileformat2.html):
 *   -journal  an unfinished transaction: its page images, as far as their checksums are right, replace the file's pages
 *   -wal      the frames up to the last commit whose checksums are right replace the file's pages
 * While it is open, the reader holds SQLite's shared lock if it can get it, so that a live writer cannot change pages
 * during the read; in any case sqf_check_unchanged() reports whether the file stayed the same.
 */
#ifndef LODE_SQLITE_SQLITE_PAGES_H
#define LODE_SQLITE_SQLITE_PAGES_H

#include "sqlite/sqlite_tree.h"

typedef struct sqf_file sqf_file;

typedef struct sqf_info {
  uint32_t page_bytes;
  uint32_t pages;
  uint32_t journal_pages; /* read from a leftover journal */
  uint32_t wal_pages;     /* read from a write-ahead log */
  uint32_t damaged_pages; /* so far: pages that are not what they should be */
  uint64_t damaged_rows;  /* so far: cells that are not rows, or whose overflow chain is broken */
  bool header_lost;       /* page 1 does not start with a valid header */
  bool locked;            /* the shared lock is held */
  uint32_t first_damaged; /* page number, 0 if none */
} sqf_info;

/* LODE_NOT_FOUND: no such file. LODE_CORRUPT: it is empty or too short to hold a page. */
LODE_MUST lode_status sqf_open(const char *path, sqf_file **file, lode_error *err);
void sqf_close(sqf_file *file);
void sqf_get_info(const sqf_file *file, sqf_info *info);
/* Clears the visited set, so that trees can be walked again. */
void sqf_reset_seen(sqf_file *file);
/* LODE_BUSY if the file or its side file was written to since it was opened. */
LODE_MUST lode_status sqf_check_unchanged(sqf_file *file, lode_error *err);

/* ---- Rows ---- */

/* Where a row is, so that it can be read again. */
typedef struct sqf_place {
  uint32_t page; /* 0: nowhere */
  uint32_t offset;
} sqf_place;

typedef struct sqf_row {
  int64_t key; /* rowid; 0 for rows of indexes */
  sqf_place place;
  bool table; /* a row of a table, otherwise of an index */
  bool cut;   /* its overflow chain is broken: values past the break are null */
  size_t n;
  sqf_value values[SQF_MAX_COLUMNS];
} sqf_row;

/* A row's values are valid until the next row is read. */
typedef lode_status sqf_row_fn(void *ctx, const sqf_row *row, lode_error *err);

/* All rows of the table tree at `root`, in key order. */
LODE_MUST lode_status sqf_walk_table(sqf_file *file, uint32_t root, sqf_row_fn *fn, void *ctx, lode_error *err);
/* The same for the tree of an index, in no order: the indexed columns, then the key of the table's row. */
LODE_MUST lode_status sqf_walk_index(sqf_file *file, uint32_t root, sqf_row_fn *fn, void *ctx, lode_error *err);
/* The rows of leaf pages and inner index pages that no walk has reached and that are not on the free list. */
LODE_MUST lode_status sqf_walk_orphans(sqf_file *file, sqf_row_fn *fn, void *ctx, lode_error *err);
/* Reads a row again. LODE_CORRUPT if it is no longer there. */
LODE_MUST lode_status sqf_read_row(sqf_file *file, sqf_place place, sqf_row *row, lode_error *err);
/* The file offset of the byte that holds the type of a row's column; false if it is not one byte, or if pages come from
 * a side file. */
bool sqf_type_offset(sqf_file *file, sqf_place place, size_t column, uint64_t *offset);

#endif
