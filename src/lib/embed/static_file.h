/* SPDX-License-Identifier: Apache-2.0 */
/* static_file.h - the file format of a static model. Numbers are little-endian.
 *
 *   0  "LODESTM1"
 *   8  u32 version (1), u32 dimension (256), u32 words, u32 slots, u32 bytes of all words, u32 pages of rows
 *  32  u32 exponent of a word's count, in thousandths; u32 CRC-32C of the lexicon
 *  40  revision, 24 bytes of printable ASCII, padded with zeros
 *  64  u64 size of the file
 *  72  zeros
 * 124  u32 CRC-32C of bytes 0 to 123 128  the lexicon, padded with zeros to a multiple of 4,096:
 *      u32 starts[words + 1]   where each word starts
 *      u32 crcs[pages]         CRC-32C of each page of rows, seeded with the page's number
 *      f32 scales[words]       of the rows
 *      u16 slots[slots]        row + 1 by hash (embed_words.h)
 *      u8 costs[words]         as a piece of an unknown word (embed_words.h)
 *      the words' bytes
 *  ..  the rows, 256 signed bytes each, 16 to a page of 4,096; the last page is padded with zeros
 *
 * A vector is the sum of scale x row over the distinct words of a text, each times count^exponent, normalised to length
 * 1.
 */
#ifndef LODE_EMBED_STATIC_FILE_H
#define LODE_EMBED_STATIC_FILE_H

#include "embed/embed_words.h"

#define EMBED_STATIC_MAGIC "LODESTM1"

enum {
  EMBED_STATIC_VERSION = 1,
  EMBED_STATIC_DIM = 256,
  EMBED_STATIC_HEADER_BYTES = 128,
  EMBED_STATIC_PAGE_BYTES = 4096,
  EMBED_STATIC_PAGE_ROWS = EMBED_STATIC_PAGE_BYTES / EMBED_STATIC_DIM,
  EMBED_STATIC_REVISION_BYTES = 24,
};

typedef struct embed_static_header {
  char magic[8];
  uint32_t version, dimension, words, slots, word_bytes, pages;
  uint32_t exponent_milli, lexicon_crc;
  char revision[EMBED_STATIC_REVISION_BYTES];
  uint64_t file_size;
  char zeros[52];
  uint32_t crc;
} embed_static_header;
_Static_assert(sizeof(embed_static_header) == EMBED_STATIC_HEADER_BYTES, "the header has no holes");

/* Offsets, computed from the header alone. */
typedef struct embed_static_layout {
  size_t starts, crcs, scales, slots, costs, bytes, lexicon_end; /* relative to the lexicon */
  uint64_t rows, file_size;                                      /* relative to the file */
} embed_static_layout;

static inline embed_static_layout embed_static_layout_of(const embed_static_header *h) {
  embed_static_layout l = {.starts = 0};
  l.crcs = l.starts + 4 * ((size_t)h->words + 1);
  l.scales = l.crcs + 4 * (size_t)h->pages;
  l.slots = l.scales + 4 * (size_t)h->words;
  l.costs = l.slots + 2 * (size_t)h->slots;
  l.bytes = l.costs + (size_t)h->words;
  l.lexicon_end = l.bytes + h->word_bytes;
  size_t end = EMBED_STATIC_HEADER_BYTES + l.lexicon_end;
  l.rows = (end + EMBED_STATIC_PAGE_BYTES - 1) / EMBED_STATIC_PAGE_BYTES * EMBED_STATIC_PAGE_BYTES;
  l.file_size = l.rows + (uint64_t)h->pages * EMBED_STATIC_PAGE_BYTES;
  return l;
}

/* For writing a model: the bytes of the whole file (mem_free()), or NULL when out of memory. */
typedef struct embed_static_parts {
  const embed_words *words;
  const int8_t *rows; /* words x 256 */
  const float *scales;
  const char *revision; /* at most 23 bytes */
  uint32_t exponent_milli;
} embed_static_parts;
char *embed_static_bytes(const embed_static_parts *parts, size_t *size);

#endif
