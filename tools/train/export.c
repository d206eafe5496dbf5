/* SPDX-License-Identifier: Apache-2.0 */
/* engine_export.c - a trained table to the file that lode loads (src/lib/embed/static_file.h).
 *
 *   export TABLE VOCAB.tsv REVISION OUT.model [tf=0.5]
 *
 * Each row becomes 256 signed bytes and a scale. The rows are what was trained, and nothing else: the frequent words'
 * small weights are the lengths of their rows.
 */
#include "lexicon.h"
#include "table.h"

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
  if (argc < 5 || strlen(argv[3]) == 0 || strlen(argv[3]) >= EMBED_STATIC_REVISION_BYTES) {
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
  int8_t *rows = must_alloc((size_t)t.rows * DIM, 1);
  float *scales = must_alloc(t.rows, sizeof *scales);
  for (uint32_t r = 0; r < t.rows; r++) scales[r] = quantize(t.values + (size_t)r * DIM, rows + (size_t)r * DIM);
  size_t size = 0;
  char *file =
      embed_static_bytes(&(embed_static_parts){&lex.words, rows, scales, argv[3], (uint32_t)lrint(tf * 1000)}, &size);
  FILE *out = fopen(argv[4], "wb");
  if (!file || !out || fwrite(file, 1, size, out) != size || fclose(out) != 0) {
    perror(argv[4]);
    return 1;
  }
  fprintf(stderr, "export: %s, %u words, %zu bytes\n", argv[4], t.rows, size);
  mem_free(file);
  mem_free(rows);
  mem_free(scales);
  table_release(&t);
  lexicon_release(&lex);
  return 0;
}
