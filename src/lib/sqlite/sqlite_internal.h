/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_internal.h - shared by sqlite_pages.c (pages) and sqlite_rows.c (trees, rows). */
#ifndef LODE_SQLITE_SQLITE_INTERNAL_H
#define LODE_SQLITE_SQLITE_INTERNAL_H

#include "os/os.h"
#include "sqlite/sqlite_pages.h"
#include "sqlite/sqlite_format.h"

#include <stdlib.h>

#define SQF_CACHE_PAGES 128 /* pages in the cache */
#define SQF_MAX_DEPTH 24    /* levels of a tree; 2^32 pages with the smallest fan-out need fewer */

typedef struct sqf_image {
  uint32_t number, order;
  uint64_t offset; /* in the side file */
} sqf_image;

/* Changes whenever the file is written to. */
typedef struct sqf_fingerprint {
  unsigned char counters[8]; /* change counter, size in pages */
  unsigned char side[32];    /* header of the journal or write-ahead log */
  uint64_t bytes;
  int64_t mtime_ns;
} sqf_fingerprint;

struct sqf_file {
  int fd, side_fd;
  uint64_t bytes;
  uint32_t page_bytes, usable;
  sqf_info info;
  sqf_fingerprint fingerprint; /* when it was opened */
  sqf_image *images;           /* sorted by number */
  size_t n_images, cap_images;
  unsigned char *cache;
  uint32_t cached[SQF_CACHE_PAGES];
  unsigned char *seen;                 /* one bit per page: visited, or free */
  unsigned char *level[SQF_MAX_DEPTH]; /* one page buffer per level of a tree; sqf_read_row() uses the last */
  uint32_t own_page;                   /* the page in the last buffer */
  strbuf payload;
};

void sqf_load_page(sqf_file *f, uint32_t number, unsigned char *page);
/* The page, in the file's cache; valid until other pages are requested. */
const unsigned char *sqf_get_page(sqf_file *f, uint32_t number);
void sqf_note_damage(sqf_file *f, uint32_t number);

#endif
