/* sqlite_int.h - what sqlite_file.c (pages) and sqlite_row.c (trees, rows) share. */
#ifndef LODE_SQLITE_INT_H
#define LODE_SQLITE_INT_H

#include "os.h"
#include "sqlite_file.h"
#include "sqlite_format.h"

#include <stdlib.h>

#define LODE__SQ_SLOTS 128 /* pages held */
#define LODE__SQ_DEPTH 24  /* levels of a tree; 2^32 pages of the least fan-out need fewer */

typedef struct lode__sq_image {
  uint32_t number, order;
  uint64_t offset;   /* in the side file */
} lode__sq_image;

/* What changes when the file is written to. */
typedef struct lode__sq_mark {
  unsigned char counters[8]; /* change counter, size in pages */
  unsigned char side[32];
  uint64_t bytes;
  int64_t mtime_ns;
} lode__sq_mark;

struct lode__sq_file {
  int fd, side_fd;
  uint64_t bytes;
  uint32_t page_bytes, usable;
  lode__sq_info info;
  lode__sq_mark mark;
  lode__sq_image *images;     /* sorted by number */
  size_t n_images, cap_images;
  unsigned char *cache;
  uint32_t cached[LODE__SQ_SLOTS];
  unsigned char *seen;        /* one bit a page: walked, or free */
  unsigned char *level[LODE__SQ_DEPTH];
  uint32_t own_page;          /* in the last of them: the page of a row that was read again */
  lode__buf payload;
};

void lode__sq_load(lode__sq_file *f, uint32_t number, unsigned char *page);
/* The page in a buffer of the file's, until other pages are asked for. */
const unsigned char *lode__sq_page(lode__sq_file *f, uint32_t number);
void lode__sq_damaged(lode__sq_file *f, uint32_t number);

#endif
