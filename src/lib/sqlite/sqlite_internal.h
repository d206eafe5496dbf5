/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_internal.h - shared by sqlite_pages.c (pages) and sqlite_rows.c (trees, rows). */
#ifndef LODE_SQLITE_SQLITE_INTERNAL_H
#define LODE_SQLITE_SQLITE_INTERNAL_H

#include "os/os.h"
#include "sqlite/sqlite_journal.h"
#include "sqlite/sqlite_pages.h"

#include <stdlib.h>

#define SQF_CACHE_PAGES 128 /* pages in the cache */
#define SQF_MAX_DEPTH 24    /* levels of a tree; 2^32 pages with the smallest fan-out need fewer */

/* Changes whenever the file is written to. */
typedef struct sqf_fingerprint {
  unsigned char counters[8]; /* change counter, size in pages */
  unsigned char side[32];    /* header of the journal or write-ahead log */
  uint64_t bytes;
  int64_t mtime_ns;
} sqf_fingerprint;

struct sqf_file {
  sqf_source src;
  int fd, side_fd;
  sqf_info info;
  sqf_fingerprint fingerprint; /* when it was opened */
  sqf_images images;           /* of the side file */
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
