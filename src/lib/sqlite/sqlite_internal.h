/* sqlite_internal.h - what sqlite_pages.c (pages) and sqlite_rows.c (trees, rows) share. */
#ifndef LODE_SQLITE_SQLITE_INTERNAL_H
#define LODE_SQLITE_SQLITE_INTERNAL_H

#include "os/os.h"
#include "sqlite/sqlite_pages.h"
#include "sqlite/sqlite_format.h"

#include <stdlib.h>

#define SQF_CACHE_PAGES 128 /* pages held */
#define SQF_MAX_DEPTH 24  /* levels of a tree; 2^32 pages of the least fan-out need fewer */

typedef struct sqf_image {
  uint32_t number, order;
  uint64_t offset;   /* in the side file */
} sqf_image;

/* What changes when the file is written to. */
typedef struct sqf_fingerprint {
  unsigned char counters[8]; /* change counter, size in pages */
  unsigned char side[32];
  uint64_t bytes;
  int64_t mtime_ns;
} sqf_fingerprint;

struct sqf_file {
  int fd, side_fd;
  uint64_t bytes;
  uint32_t page_bytes, usable;
  sqf_info info;
  sqf_fingerprint mark;
  sqf_image *images;     /* sorted by number */
  size_t n_images, cap_images;
  unsigned char *cache;
  uint32_t cached[SQF_CACHE_PAGES];
  unsigned char *seen;        /* one bit a page: walked, or free */
  unsigned char *level[SQF_MAX_DEPTH];
  uint32_t own_page;          /* in the last of them: the page of a row that was read again */
  strbuf payload;
};

void sqf_load_page(sqf_file *f, uint32_t number, unsigned char *page);
/* The page in a buffer of the file's, until other pages are asked for. */
const unsigned char *sqf_get_page(sqf_file *f, uint32_t number);
void sqf_note_damage(sqf_file *f, uint32_t number);

#endif
