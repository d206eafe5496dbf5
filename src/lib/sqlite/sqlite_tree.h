/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_tree.h - pages, cells and rows of SQLite's b-trees, read from bytes that may lie. The one decoder of the
 * format: for foreign files (sqlite_pages.h) and for the database file (vfs/vfs_pages.h).
 *
 * Invariants
 *   1. Nothing is read outside of a page's first `usable` bytes, whatever offsets and lengths the page holds.
 *   2. A page number is used only if it is within the file.
 *   3. A chain of overflow pages is followed only for as many pages as the row's length needs, so a cycle ends.
 *   4. No memory is allocated for a length that the file could not hold.
 * Whether a page is intact is the business of whoever supplies it; whether a row is right, that of the caller.
 */
#ifndef LODE_SQLITE_SQLITE_TREE_H
#define LODE_SQLITE_SQLITE_TREE_H

#include "base/base.h"
#include "sqlite/sqlite_format.h"

#define SQF_MAX_COLUMNS 24
#define SQF_MAX_ROW_BYTES 1000000000u /* SQLite's own limit */

/* Where pages come from. */
typedef struct sqf_source {
  uint32_t page_bytes;
  uint32_t usable; /* without the reserved bytes at the end of each page */
  uint32_t pages;  /* in the file, including an incomplete last one */
  uint64_t bytes;  /* of the file */
  /* An overflow page, valid until the next call. If it is damaged, its bytes as far as they can be read, then zeros. */
  const unsigned char *(*overflow_page)(void *ctx, uint32_t number);
  void *ctx;
} sqf_source;

/* ---- Pages ---- */

typedef enum sqf_page_type {
  SQF_INNER_INDEX = 0x02,
  SQF_INNER_TABLE = 0x05,
  SQF_LEAF_INDEX = 0x0a,
  SQF_LEAF_TABLE = 0x0d,
} sqf_page_type;

typedef struct sqf_view {
  const unsigned char *page;
  uint32_t number;
  size_t header;   /* where the page's header starts */
  size_t pointers; /* where the cell pointers start */
  size_t
      lowest; /* least offset that a cell may have; may be lowered to `pointers` if the number of cells is in doubt */
  size_t content; /* where the header says that cells start */
  uint32_t cells;
  unsigned char type; /* sqf_page_type */
} sqf_view;

/* False: not a page of a tree. */
LODE_MUST bool sqf_view_page(const sqf_source *src, uint32_t number, const unsigned char *page, sqf_view *view);
/* For a page whose header cannot be trusted: views it as a leaf of a table, without cells. */
void sqf_view_as_leaf(uint32_t number, const unsigned char *page, sqf_view *view);
static inline bool sqf_view_is_table(const sqf_view *v) {
  return v->type == SQF_LEAF_TABLE || v->type == SQF_INNER_TABLE;
}
static inline bool sqf_view_is_inner(const sqf_view *v) {
  return v->type == SQF_INNER_TABLE || v->type == SQF_INNER_INDEX;
}
/* Inner pages of tables have keys only. */
static inline bool sqf_view_has_rows(const sqf_view *v) { return v->type != SQF_INNER_TABLE; }
/* Offset of cell i; 0: the pointer is invalid. */
size_t sqf_view_cell(const sqf_source *src, const sqf_view *view, uint32_t i);
/* Child i of an inner page, 0 .. cells; 0: the pointer is invalid. */
uint32_t sqf_view_child(const sqf_source *src, const sqf_view *view, uint32_t i);

/* ---- Rows ---- */

typedef enum sqf_type { SQF_NULL, SQF_INT, SQF_REAL, SQF_TEXT, SQF_BLOB } sqf_type;

typedef struct sqf_column {
  sqf_type type;
  uint8_t serial; /* of types without a length of their own, otherwise 12 or 13 */
  size_t at, len; /* in the payload */
} sqf_column;

typedef struct sqf_cell {
  int64_t key;    /* rowid; 0 for rows of indexes */
  uint64_t bytes; /* length of the payload */
  const unsigned char *local;
  size_t local_bytes; /* bytes of the payload on the page itself */
  uint32_t overflow;  /* page on which it continues, or 0 */
  size_t n;
  sqf_column cols[SQF_MAX_COLUMNS];
} sqf_cell;

typedef struct sqf_value {
  sqf_type type;
  int64_t i;
  double d;
  lode_str s; /* text and blobs, in the payload */
} sqf_value;

/* The cell at `offset` of a page with rows: key, length, and where its payload is. False: no row starts there. */
LODE_MUST bool sqf_cell_parse(const sqf_source *src, const sqf_view *view, size_t offset, sqf_cell *cell);
/* Parses the header of the payload, of which `have` bytes are at hand: types and places of the columns. False: it is
 * not a row. */
LODE_MUST bool sqf_cell_columns(sqf_cell *cell, const void *payload, size_t have);
/* Both, for a row whose header is on the page itself. */
LODE_MUST bool sqf_cell_parse_row(const sqf_source *src, const sqf_view *view, size_t offset, sqf_cell *cell);
/* Loads the payload. *cut: the overflow chain is broken, and the payload ends there. LODE_NOMEM. */
LODE_MUST lode_status sqf_cell_load(const sqf_source *src, const sqf_cell *cell, strbuf *payload, bool *cut,
                                    lode_error *err);

/* Columns of a loaded row. What the payload does not hold is SQF_NULL, 0, or an absent string. */
void sqf_cell_value(const sqf_cell *cell, size_t column, const strbuf *payload, sqf_value *value);
int64_t sqf_cell_int(const sqf_cell *cell, size_t column, const strbuf *payload);
lode_str sqf_cell_str(const sqf_cell *cell, size_t column, const strbuf *payload);
/* An integer column, without loading the payload; false: it is not on the page itself. */
LODE_MUST bool sqf_cell_local_int(const sqf_cell *cell, size_t column, int64_t *value);

/* Reads SQLite's variable-length integer. Returns its length, or 0 if it extends past the end. */
size_t sqf_get_varint(const unsigned char *p, const unsigned char *end, uint64_t *value);

/* ---- The pointer map: what a page is used for ---- */

typedef enum sqf_page_use {
  SQF_PAGE_UNKNOWN,
  SQF_PAGE_ROOT,
  SQF_PAGE_FREE,
  SQF_PAGE_OVERFLOW_FIRST,
  SQF_PAGE_OVERFLOW,
  SQF_PAGE_TREE,
  SQF_PAGE_PTRMAP,
  SQF_PAGE_LOCK,
} sqf_page_use;

/* The page of the map that has the entry of page `number`, which is 2 or more; the same number for pages of the map. */
uint32_t sqf_map_page_of(const sqf_source *src, uint32_t number);
/* The entry of page `number` in that page. */
sqf_page_use sqf_map_entry(const sqf_source *src, const unsigned char *map_page, uint32_t map_number, uint32_t number);

#endif
