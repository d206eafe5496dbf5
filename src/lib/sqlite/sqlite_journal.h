/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_journal.h - what all readers of rollback journals share: the magic, SQLite's sum of a page, and lists of the
 * page images in a journal or write-ahead log. */
#ifndef LODE_SQLITE_SQLITE_JOURNAL_H
#define LODE_SQLITE_SQLITE_JOURNAL_H

#include "base/base.h"

#define SQF_JOURNAL_RECORD_EXTRA 8u /* page number before, and sum after each page image */

extern const unsigned char sqf_journal_magic[8];

/* SQLite's checksum of a page image: the nonce plus every 200th byte, counted from the end. */
uint32_t sqf_journal_sum(uint32_t nonce, const unsigned char *page, uint32_t page_bytes);

typedef struct sqf_image {
  uint32_t number; /* of the page */
  uint64_t offset; /* of its image, in the journal or log */
} sqf_image;

typedef struct sqf_images {
  sqf_image *items; /* after sqf_images_sort(): sorted by number, each page once */
  size_t n, cap;
} sqf_images;

LODE_MUST bool sqf_images_add(sqf_images *images, uint32_t number, uint64_t offset); /* false: out of memory */
/* Keeps one image per page: the first of a journal (the original page), the last of a log (the newest). */
void sqf_images_sort(sqf_images *images, bool keep_last);
const sqf_image *sqf_images_find(const sqf_images *images, uint32_t number); /* NULL: there is none */
void sqf_images_release(sqf_images *images);

#endif
