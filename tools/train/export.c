/* export.c - a trained table to the file that lode loads (src/embed/static_file.h).
 *
 *   export TABLE VOCAB.tsv REVISION OUT.model [tf=0.5]
 *
 * Each row becomes 256 signed bytes and a scale. The rows are what was trained, and nothing else: the frequent words'
 * small weights are the lengths of their rows.
 */
#include "lexicon.h"
#include "table.h"

#include "base/crc32c.h"
#include "embed/static_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The scale under which the row loses least: not always that of its largest number. */
static float quantize(const float *row, int8_t *out) {
  float most = 0, best = 0, least = INFINITY;
  for (int d = 0; d < DIM; d++) most = fmaxf(most, fabsf(row[d]));
  if (most == 0) return 0;
  for (int step = 0; step < 8; step++) {
    float scale = most * (1.0f - 0.04f * (float)step) / 127.0f, lost = 0;
    for (int d = 0; d < DIM; d++) {
      float q = fmaxf(-127, fminf(127, rintf(row[d] / scale)));
      lost += (row[d] - q * scale) * (row[d] - q * scale);
    }
    if (lost < least) least = lost, best = scale;
  }
  for (int d = 0; d < DIM; d++) out[d] = (int8_t)fmaxf(-127, fminf(127, rintf(row[d] / best)));
  return best;
}

int main(int argc, char **argv) {
  if (argc < 5 || strlen(argv[3]) == 0 || strlen(argv[3]) >= LODE__STATIC_REVISION) {
    fprintf(stderr, "usage: export TABLE VOCAB.tsv REVISION OUT.model [tf=0.5]\n");
    return 2;
  }
  double tf = argc > 5 && strncmp(argv[5], "tf=", 3) == 0 ? strtod(argv[5] + 3, NULL) : 0.5;
  lexicon lex;
  table t;
  lexicon_load(&lex, argv[2]);
  if (!table_load(&t, argv[1]) || t.rows != lex.words.count) {
    fprintf(stderr, "export: %s is not a table of this vocabulary\n", argv[1]);
    return 1;
  }
  lode__static_header h = {.version = LODE__STATIC_VERSION, .dimension = DIM, .words = t.rows, .slots = lex.words.n_slots,
                           .word_bytes = (uint32_t)lex.words.n_bytes,
                           .pages = (t.rows + LODE__STATIC_PAGE_ROWS - 1) / LODE__STATIC_PAGE_ROWS,
                           .exponent_milli = (uint32_t)lrint(tf * 1000)};
  memcpy(h.magic, LODE__STATIC_MAGIC, sizeof h.magic);
  memcpy(h.revision, argv[3], strlen(argv[3]));
  lode__static_layout l = lode__static_layout_of(&h);
  h.file_size = l.file_size;
  char *file = must_alloc((size_t)l.file_size, 1), *lexicon_at = file + LODE__STATIC_HEADER;
  int8_t *rows = (int8_t *)file + l.rows;
  float *scales = must_alloc(t.rows, sizeof *scales);
  for (uint32_t r = 0; r < t.rows; r++) scales[r] = quantize(t.values + (size_t)r * DIM, rows + (size_t)r * DIM);
  memcpy(lexicon_at + l.starts, lex.words.starts, 4 * ((size_t)t.rows + 1));
  for (uint32_t p = 0; p < h.pages; p++) {
    uint32_t crc = lode__crc32c(lode__crc32c_u32(0, p), rows + (size_t)p * LODE__STATIC_PAGE, LODE__STATIC_PAGE);
    memcpy(lexicon_at + l.crcs + 4 * (size_t)p, &crc, 4);
  }
  memcpy(lexicon_at + l.scales, scales, 4 * (size_t)t.rows);
  memcpy(lexicon_at + l.slots, lex.words.slots, 2 * (size_t)h.slots);
  memcpy(lexicon_at + l.costs, lex.words.costs, t.rows);
  memcpy(lexicon_at + l.bytes, lex.words.bytes, lex.words.n_bytes);
  h.lexicon_crc = lode__crc32c(0, lexicon_at, (size_t)l.rows - LODE__STATIC_HEADER);
  h.crc = lode__crc32c(0, &h, offsetof(lode__static_header, crc));
  memcpy(file, &h, sizeof h);
  FILE *out = fopen(argv[4], "wb");
  if (!out || fwrite(file, 1, (size_t)l.file_size, out) != l.file_size || fclose(out) != 0) {
    perror(argv[4]);
    return 1;
  }
  fprintf(stderr, "export: %s, %u words, %llu bytes\n", argv[4], t.rows, (unsigned long long)l.file_size);
  lode__free(file);
  lode__free(scales);
  table_release(&t);
  lexicon_release(&lex);
  return 0;
}
