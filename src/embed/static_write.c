/* static_write.c - the bytes of a static model's file, from its words and rows: see static_file.h. */
#include "embed/static_file.h"

#include "base/crc32c.h"

char *lode__static_bytes(const lode__static_parts *parts, size_t *size) {
  const lode__words *w = parts->words;
  lode__static_header h = {
      .version = LODE__STATIC_VERSION,
      .dimension = LODE__STATIC_DIM,
      .words = w->count,
      .slots = w->n_slots,
      .word_bytes = (uint32_t)w->n_bytes,
      .pages = (w->count + LODE__STATIC_PAGE_ROWS - 1) / LODE__STATIC_PAGE_ROWS,
      .exponent_milli = parts->exponent_milli,
  };
  memcpy(h.magic, LODE__STATIC_MAGIC, sizeof h.magic);
  size_t revision = strlen(parts->revision);
  memcpy(h.revision, parts->revision, revision < sizeof h.revision ? revision : sizeof h.revision - 1);
  lode__static_layout l = lode__static_layout_of(&h);
  h.file_size = l.file_size;
  char *file = mem_calloc((size_t)l.file_size, 1);
  if (!file) return NULL;
  char *lexicon = file + LODE__STATIC_HEADER, *rows = file + l.rows;
  memcpy(rows, parts->rows, (size_t)w->count * LODE__STATIC_DIM);
  for (uint32_t p = 0; p < h.pages; p++) {
    uint32_t crc = crc32c_update(crc32c_update_u32(0, p), rows + (size_t)p * LODE__STATIC_PAGE, LODE__STATIC_PAGE);
    memcpy(lexicon + l.crcs + 4 * (size_t)p, &crc, sizeof crc);
  }
  memcpy(lexicon + l.starts, w->starts, 4 * ((size_t)w->count + 1));
  memcpy(lexicon + l.scales, parts->scales, 4 * (size_t)w->count);
  memcpy(lexicon + l.slots, w->slots, 2 * (size_t)w->n_slots);
  memcpy(lexicon + l.costs, w->costs, w->count);
  memcpy(lexicon + l.bytes, w->bytes, w->n_bytes);
  h.lexicon_crc = crc32c_update(0, lexicon, (size_t)l.rows - LODE__STATIC_HEADER);
  h.crc = crc32c_update(0, &h, offsetof(lode__static_header, crc));
  memcpy(file, &h, sizeof h);
  *size = (size_t)l.file_size;
  return file;
}
