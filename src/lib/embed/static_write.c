/* SPDX-License-Identifier: Apache-2.0 */
/* static_write.c - the bytes of a static model's file, from its words and rows: see static_file.h. */
#include "embed/static_file.h"

#include "base/crc32c.h"

char *embed_static_bytes(const embed_static_parts *parts, size_t *size) {
  const embed_words *w = parts->words;
  embed_static_header h = {
      .version = EMBED_STATIC_VERSION,
      .dimension = EMBED_STATIC_DIM,
      .words = w->count,
      .slots = w->n_slots,
      .word_bytes = (uint32_t)w->n_bytes,
      .pages = (w->count + EMBED_STATIC_PAGE_ROWS - 1) / EMBED_STATIC_PAGE_ROWS,
      .exponent_milli = parts->exponent_milli,
  };
  memcpy(h.magic, EMBED_STATIC_MAGIC, sizeof h.magic);
  size_t revision = strlen(parts->revision);
  memcpy(h.revision, parts->revision, revision < sizeof h.revision ? revision : sizeof h.revision - 1);
  embed_static_layout l = embed_static_layout_of(&h);
  h.file_size = l.file_size;
  char *file = mem_calloc((size_t)l.file_size, 1);
  if (!file) return NULL;
  char *lexicon = file + EMBED_STATIC_HEADER_BYTES, *rows = file + l.rows;
  memcpy(rows, parts->rows, (size_t)w->count * EMBED_STATIC_DIM);
  for (uint32_t p = 0; p < h.pages; p++) {
    uint32_t crc =
        crc32c_update(crc32c_update_u32(0, p), rows + (size_t)p * EMBED_STATIC_PAGE_BYTES, EMBED_STATIC_PAGE_BYTES);
    memcpy(lexicon + l.crcs + 4 * (size_t)p, &crc, sizeof crc);
  }
  memcpy(lexicon + l.starts, w->starts, 4 * ((size_t)w->count + 1));
  memcpy(lexicon + l.scales, parts->scales, 4 * (size_t)w->count);
  memcpy(lexicon + l.slots, w->slots, 2 * (size_t)w->n_slots);
  memcpy(lexicon + l.costs, w->costs, w->count);
  memcpy(lexicon + l.bytes, w->bytes, w->n_bytes);
  h.lexicon_crc = crc32c_update(0, lexicon, (size_t)l.rows - EMBED_STATIC_HEADER_BYTES);
  h.crc = crc32c_update(0, &h, offsetof(embed_static_header, crc));
  memcpy(file, &h, sizeof h);
  *size = (size_t)l.file_size;
  return file;
}
